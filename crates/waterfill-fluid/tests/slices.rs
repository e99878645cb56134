//! Tests of runs in slices, and of runs that their caller stops.

use crate::common::{flows, fluid, link, network, run};
use waterfill_fluid::Fluid;
use waterfill_network::{Series, Watch};

#[test]
fn slices_of_any_size_give_the_same_bytes() {
    let n = network(5.0, link("a", 1e7, 0.01, 60_000).to_vec(), vec![flows("f", 3, "maxnet", &[0], 5.0)]);
    let print = |fluid: &Fluid| {
        let series = fluid.series().into_iter().flat_map(Series::columns).flatten().map(|x| x.to_bits());
        (format!("{:?}", fluid.summary()), series.collect::<Vec<_>>(), fluid.steps())
    };
    let (whole, _) = run(&n, None);
    for size in [1, 1000] {
        let mut sliced = fluid(&n, None).unwrap();
        let (end, mut slices) = (sliced.end(), 0);
        while sliced.advance_slice(end, size) {
            slices += 1;
        }
        assert!(slices > 1 && print(&sliced) == print(&whole), "slices of {size}");
    }
}

/// The caller can stop networks that would take hours because of their many steps, or many timers within a step.
#[test]
fn long_loops_end_when_the_caller_says_so() {
    let n = |law| network(1e6, link("a", 1e7, 0.01, 60_000).to_vec(), vec![flows("f", 3, law, &[0], 1e6)]);
    let mut timers = n("aecp");
    timers.set_param("aecp", "t_2", 1e-12);
    for (n, step_s) in [(n("maxnet"), Some(1e-9)), (timers, None)] {
        let mut fluid = Fluid::watched(n.checked().unwrap(), step_s, Watch::new(|| true)).unwrap();
        let end = fluid.end();
        assert!(fluid.advance_slice(end, u64::MAX) && fluid.now() < end);
        let steps = fluid.steps();
        assert!(fluid.advance_slice(end, u64::MAX) && fluid.steps() == steps, "it stays stopped");
        assert_eq!(fluid.summary().flows.len(), 3);
    }
}
