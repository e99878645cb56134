//! Tests of the estimated needs of a simulator run against its measured needs.

use crate::common::{flow, link, network, run, set};
use waterfill_laws::units::{Duration, Rate};
use waterfill_network::{BufferSpec, Network, TrafficSpec};
use waterfill_sim::estimate;

fn dumbbell(protocol: &str) -> Network {
    network(5.0, link("l", 1e7, 0.01, 50_000).into(), vec![flow("f", protocol, &[0], 5.0)])
}

/// The estimated and measured numbers of events differ by less than a factor of four.
#[test]
fn events_are_of_the_estimated_order() {
    let mut cases: Vec<Network> = ["reno", "cubic", "maxnet", "xcp", "rcp", "vcp"].map(dumbbell).into();
    let mut sized = dumbbell("reno");
    (sized.flows[0].size_bytes, sized.flows[0].count) = (Some(100_000), 20);
    let span = [0.0, 5.0].map(Duration::from_secs);
    let mut source = dumbbell("reno");
    source.traffic.push(TrafficSpec::cbr("t", &[0], Rate::from_bps(8e6), span));
    let mut counted = dumbbell("reno");
    counted.links[0].buffer = BufferSpec::Packets(30);
    cases.extend([sized, source, counted]);
    for n in cases {
        let (needs, (_, summary)) = (estimate(&n), run(&n));
        let ratio = needs.events.total / summary.engine.events as f64;
        assert!((1.0 / 4.0..4.0).contains(&ratio), "{}: {ratio}", n.flows[0].protocol);
        assert_eq!(needs.cpu_s, needs.events.total * 1e-7);
    }
}

/// The estimate names the key of its largest part, so that a user knows which one to change.
#[test]
fn the_largest_part_is_named() {
    let mut many = dumbbell("reno");
    (many.flows[0].count, many.sample_s) = (1_000_000, 5.0);
    assert_eq!(estimate(&many).bytes.key, "flow.f.count");
    let mut bursts = many.clone();
    bursts.flows[0].initial_window_packets = 1000.0;
    assert_eq!(estimate(&bursts).events.key, "flow.f.initial_window");
    let mut long = dumbbell("reno");
    (long.links[0].rate_bps, long.links[0].delay_s, long.sample_s) = (1e12, 100.0, 1.0);
    long.flows[0].stop_s = 5.0;
    assert_eq!(estimate(&long).bytes.key, "link.l.delay");
    let mut dense = dumbbell("reno");
    dense.sample_s = 1e-7;
    assert_eq!((estimate(&dense).bytes.key.as_str(), estimate(&dense).events.key.as_str()), ("sample", "sample"));
    let mut timers = dumbbell("aecp");
    set(&mut timers, "aecp", &[("t_2", 1e-9.into())]);
    assert_eq!(estimate(&timers).events.key, "params.aecp");
}
