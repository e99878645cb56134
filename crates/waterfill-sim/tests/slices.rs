//! Tests of runs in slices, and of runs that their caller stops.

use crate::common::{build, cbr, flow, link, network, run};
use waterfill_network::{Network, Series, Watch};
use waterfill_sim::Simulation;

/// Returns a network with two links, loss, a law with timers, a TCP and a source of packets.
fn mixed() -> Network {
    let links = [link("a", 2e7, 0.005, 30_000), link("b", 1e7, 0.01, 30_000)].concat();
    let flows = vec![flow("x", "aecp", &[0, 2], 3.0), flow("r", "sack", &[0], 3.0)];
    let mut n = network(3.0, links, flows);
    n.links[2].loss = 0.01;
    n.traffic = vec![cbr("t", &[2], 1e6, [0.5, 2.0], 700)];
    n
}

fn everything(sim: &mut Simulation) -> (String, Vec<u64>, String) {
    let series = sim.series().into_iter().flat_map(Series::columns).flatten().map(|x| x.to_bits()).collect();
    let counts = format!("{:?} {} {:?}", sim.ledger(), sim.events(), sim.now());
    (serde_json::to_string(&sim.summary()).unwrap(), series, counts)
}

#[test]
fn slices_of_any_size_give_the_same_bytes() {
    let n = mixed();
    let (mut whole, _) = run(&n);
    let whole = everything(&mut whole);
    for size in [1, 2, 1000] {
        let mut sim = build(&n);
        let (end, mut slices, mut events) = (sim.end(), 0, 0);
        while sim.advance_slice(end, size) {
            assert!(sim.events() - events <= size, "{size}");
            (events, slices) = (sim.events(), slices + 1);
        }
        assert!(slices > 0 && everything(&mut sim) == whole, "slices of {size}");
        assert!(!sim.advance_slice(end, 1), "nothing is left");
    }
}

/// Returns a simulation that its caller stopped at the first poll of the watch, after checking that the simulation
/// stays stopped.
fn stopped(n: &Network, threads: usize) -> Simulation {
    let mut sim = Simulation::watched(n.clone().checked().unwrap(), Watch::new(|| true)).unwrap();
    sim.set_threads(Some(threads));
    let end = sim.end();
    assert!(sim.advance_slice(end, u64::MAX), "cut short");
    let (events, sums) = (sim.events(), sim.ledger());
    assert_eq!(sums.sent + sums.duplicated, sums.delivered + sums.dropped + sums.lost + sums.in_transit);
    assert!(sim.advance_slice(end, u64::MAX) && sim.events() == events, "it stays stopped");
    assert_eq!(sim.summary().flows.len(), n.flows.iter().map(|f| f.count as usize).sum::<usize>());
    assert!(sim.now() < end);
    sim
}

/// Runs that would take hours end when the caller says so: with many events, many timers of an unused link, or large
/// bursts.
#[test]
fn long_loops_end_when_the_caller_says_so() {
    let two = || [link("a", 5e8, 0.01, 600_000), link("b", 5e8, 0.01, 600_000)].concat();
    let mut events = network(1e6, two(), vec![flow("f", "newreno", &[0, 2], 1e6)]);
    events.traffic = vec![cbr("t", &[0, 2], 1e16, [0.0, 1e6], 1500)];
    let mut timers = network(1e6, two(), vec![flow("f", "aecp", &[0, 2], 1e6)]);
    timers.set_param("aecp", "t_2", 1e-12);
    let mut bursts = network(1e6, two(), vec![flow("f", "window", &[0, 2], 1e6)]);
    bursts.set_param("window", "packets", 1e9);
    bursts.flows[0].count = 100;
    for n in [events, timers, bursts] {
        for threads in [1, 2] {
            stopped(&n, threads);
        }
    }
}

#[test]
fn building_ends_when_the_caller_says_so() {
    let mut n = network(1.0, link("a", 5e8, 0.01, 600_000).to_vec(), vec![flow("f", "newreno", &[0], 1.0)]);
    n.flows[0].count = 10_000_000;
    let watch = Watch::new(|| true);
    watch.ask_here();
    assert!(Simulation::watched(n.checked().unwrap(), watch).unwrap_err().contains("stopped"));
}
