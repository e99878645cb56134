//! Tests of the estimated cost of a fluid run.

use crate::common;

use crate::common::{flows, link, network};
use waterfill_fluid::estimate;
use waterfill_network::Network;

fn dumbbell(count: u32) -> Network {
    network(5.0, link("l", 1e9, 0.01, 100_000).into(), vec![flows("f", count, "maxnet", &[0], 5.0)])
}

/// The work is the number of steps times the number of parcels. A class has one parcel for each link and direction, and
/// one at each host.
#[test]
fn work_is_steps_times_parcels() {
    let mut n = dumbbell(1);
    n.sample_s = 5.0;
    let needs = |step_s| estimate(&n, Some(step_s)).expect("a step that fits");
    let (coarse, fine) = (needs(1e-4), needs(1e-5));
    let difference = fine.events.total - coarse.events.total;
    assert!((difference - 450_000.0 * 4.0).abs() < 1.0, "{difference}");
    assert_eq!((fine.events.key.as_str(), fine.cpu_s), ("step", fine.events.total * 4e-8));
    // The history of what is in transit has ten times the rows, in powers of two.
    assert!(fine.bytes.total > 4.0 * coarse.bytes.total, "{fine:?} {coarse:?}");
    assert_eq!(fine.bytes.key, "step");
}

/// Identical flows form one class and cost much less than flows with different start times, which are separate classes.
#[test]
fn flows_that_differ_cost_each() {
    let events = |n: &Network| estimate(n, Some(1e-3)).expect("a step that fits").events.total;
    let (one, thousand) = (dumbbell(1), dumbbell(1000));
    let mut staggered = dumbbell(1000);
    staggered.flows[0].stagger_s = 1e-3;
    assert!(events(&thousand) < 1000.0 * events(&one) / 5.0);
    assert!(events(&staggered) > 500.0 * events(&one));
    let many = dumbbell(1_000_000);
    assert!(events(&many) < 1.01 * events(&dumbbell(2_000_000)), "rows of flows that are not expanded");
}

/// The estimate names `step` as the decisive key if the step is given, and the flow's RTT otherwise.
#[test]
fn long_delays_are_named() {
    let mut n = dumbbell(1);
    (n.flows[0].pad_s, n.flows[0].base_rtt_s, n.sample_s) = (1000.0, 2000.02, 5.0);
    assert_eq!(estimate(&n, Some(1e-5)).expect("a step that fits").bytes.key, "step");
    assert_eq!(estimate(&n, None).expect("a step that fits").bytes.key, "flow.f.rtt");
}

#[test]
fn what_the_fluid_does_not_have_is_said_first() {
    let mut n = dumbbell(1);
    n.flows[0].protocol = "cubic".into();
    let (said, run) = (estimate(&n, None).expect_err("no fluid"), common::fluid(&n, None).expect_err("no fluid"));
    assert_eq!(said, run);
}
