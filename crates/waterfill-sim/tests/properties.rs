//! Tests of properties of every network: conservation, bounds, determinism, delivery.

use crate::common::{cbr, column, flow, link, network, run, run_on, run_until};
use proptest::prelude::*;
use waterfill_laws::registry::ProtocolId;
use waterfill_network::{ChangeSpec, CodelSpec, Network, QueueSpec, TrafficSpec};

/// Tolerance of a utilization: half a picosecond in the 16 µs of the shortest packet on the fastest link, with a
/// margin.
const ROUNDING: f64 = 1e-7;

/// Draws a random parking lot: one to four links, flows of any protocol over parts of it, losses, small buffers,
/// traffic.
fn networks() -> impl Strategy<Value = Network> {
    let links = prop::collection::vec((1e6..2e7, 0.0..0.03, 3_000u64..60_000, prop_oneof![Just(0.0), 0.0..0.1]), 1..5);
    let flows = prop::collection::vec(
        (0usize..4, 1usize..4, 1u32..4, 0.0..1.0, (0..ProtocolId::ALL.len(), any::<[bool; 2]>()), 1u64..400_000),
        1..5,
    );
    (links, flows, 0u64..1000, prop::option::of(1e5..2e7)).prop_map(|(links, flows, seed, cbr_bps)| {
        let names: Vec<String> = (0..links.len()).map(|i| format!("l{i}")).collect();
        let mut directions = Vec::new();
        for ((rate, delay, buffer, loss), name) in links.iter().zip(&names) {
            let [mut out, back] = link(name, *rate, *delay, *buffer);
            out.loss = *loss;
            directions.extend([out, back]);
        }
        let flows = flows.iter().enumerate().map(
            |(i, &(from, length, count, start_s, (protocol, [pacing, delayed_ack]), size))| {
                let from = from % links.len();
                let path: Vec<u32> = (from..(from + length).min(links.len())).map(|l| 2 * l as u32).collect();
                let mut f = flow(&format!("f{i}"), ProtocolId::ALL[protocol].info().name, &path, 5.0);
                f.count = count;
                f.start_s = start_s;
                f.stagger_s = 0.05;
                f.pad_s = if pacing { 0.004 } else { 0.0 };
                f.pacing = Some(pacing);
                f.delayed_ack = delayed_ack;
                f.size_bytes = (size % 2 == 0).then_some(size);
                f.access_bps = (size % 3 == 0).then_some(3e6); // slower and faster than links
                f
            },
        );
        let mut n = network(5.0, directions.clone(), flows.collect());
        n.seed = seed;
        n.set_param("window", "packets", 30.0);
        if let Some(rate) = cbr_bps {
            let access_bps = (seed % 2 == 0).then_some(2.0 * rate);
            n.traffic = vec![TrafficSpec { access_bps, ..cbr("cbr", &[0], rate, [0.3, 4.0], 700) }];
        }
        n
    })
}

/// Returns everything that a run gives: summary and series.
fn print(sim: &mut waterfill_sim::Simulation) -> (String, Vec<u64>) {
    let series = sim.series().iter().flat_map(|s| s.columns()).flatten().map(|x| x.to_bits()).collect();
    (serde_json::to_string(&sim.summary()).unwrap(), series)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// At any time, every packet sent is delivered, dropped, lost or in transit.
    #[test]
    fn packets_are_conserved(n in networks(), at in 0.0..5.0) {
        for sim in [run_until(&n, at), run(&n).0] {
            let l = sim.ledger();
            prop_assert_eq!(l.sent, l.delivered + l.dropped + l.lost + l.in_transit);
            prop_assert!(sim.sacks_in_use() as u64 <= l.in_transit);
        }
    }

    /// No queue exceeds its buffer, no link exceeds its rate, and no value is negative.
    #[test]
    fn queues_and_links_stay_within_their_limits(n in networks()) {
        let (sim, summary) = run(&n);
        for (link, spec) in summary.links.iter().zip(&n.links) {
            prop_assert!(link.queue_bytes.max <= spec.buffer.as_bytes(1500.0));
            prop_assert!(0.0 <= link.queue_bytes.mean && link.queue_bytes.mean <= link.queue_bytes.max);
            prop_assert!(link.queue_bytes.p99 <= link.queue_bytes.max);
            prop_assert!((0.0..=1.0 + ROUNDING).contains(&link.utilization), "{}", link.utilization);
        }
        let [flows, links, _] = sim.series();
        for name in ["rate_bps", "window_bytes", "in_flight_bytes"] {
            prop_assert!(column(flows, name).iter().all(|&x| x.is_nan() || x >= 0.0));
        }
        for &u in column(links, "utilization") {
            prop_assert!((-ROUNDING..=1.0 + ROUNDING).contains(&u), "utilization {u}");
        }
    }

    /// The same seed gives equal bytes, in one run or in slices.
    #[test]
    fn reruns_are_identical(n in networks(), slice in 0.01..1.0) {
        let whole = print(&mut run(&n).0);
        prop_assert_eq!(&whole, &print(&mut run(&n).0));
        let mut sliced = run_until(&n, 0.0);
        let mut t = 0.0;
        while t < 5.0 {
            t += slice;
            sliced.advance(waterfill_laws::units::Instant::from_secs(t));
        }
        prop_assert_eq!(&whole, &print(&mut sliced));
    }

    /// Any number of threads gives the same bytes. With `ties`, all links are equal and all flows start together. With
    /// `varied`, links have a discipline that decides at departure, or change when a sample is due.
    #[test]
    fn threads_change_nothing(mut n in networks(), ties: bool, varied: bool) {
        if ties {
            n.links.iter_mut().for_each(|link| (link.rate_bps, link.delay_s) = (1e7, 5e-3));
            n.flows.iter_mut().for_each(|flow| (flow.start_s, flow.stagger_s) = (0.0, 0.0));
        }
        for (l, link) in n.links.iter_mut().enumerate().filter(|_| varied) {
            if l % 3 == 0 {
                link.queue = QueueSpec::Codel(CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true });
            } else {
                let change = ChangeSpec { at_s: 1.0, rate_bps: Some(4e6), ..ChangeSpec::default() };
                let delay_s = Some(0.5 * link.delay_s);
                let down = ChangeSpec { at_s: 2.0 + l as f64, up: Some(false), delay_s, ..ChangeSpec::default() };
                link.changes = vec![change, down];
                link.changes.retain(|change| change.at_s < 5.0);
            }
        }
        let one = print(&mut run_on(&n, 1).0);
        for threads in [2, 3, 8] {
            prop_assert_eq!(&one, &print(&mut run_on(&n, threads).0), "{} threads", threads);
        }
    }

    /// Every byte of a finite flow arrives exactly once, whatever is lost.
    #[test]
    fn finite_flows_complete(loss in 0.0..0.2, loss_back in 0.0..0.2, buffer in 3_000u64..40_000, size in 1u64..500_000, seed in 0u64..1000, [delayed_ack, quic]: [bool; 2]) {
        let mut n = network(3_000.0, link("l", 1e7, 0.01, buffer).to_vec(), vec![flow("f", "window", &[0], 3_000.0)]);
        n.sample_s = 100.0;
        n.measure_s = [0.0, 3_000.0];
        n.seed = seed;
        n.links[0].loss = loss;
        n.links[1].loss = loss_back;
        n.flows[0].size_bytes = Some(size);
        n.flows[0].delayed_ack = delayed_ack;
        n.flows[0].recovery = quic.then(|| "quic".into());
        n.set_param("window", "packets", 30.0);
        let (sim, summary) = run(&n);
        let flow = &summary.flows[0];
        let completed = flow.completed_s;
        prop_assert!(completed.is_some(), "{flow:?}");
        let [from, to] = flow.active_s.unwrap();
        let payload = flow.goodput_bps.unwrap() * (to - from) / 8.0;
        prop_assert!((payload - size as f64).abs() < 1e-3, "{payload} of {size} bytes");
        prop_assert_eq!(flow.packets_sent - flow.retransmissions, size.div_ceil(1460));
        prop_assert_eq!(sim.ledger().in_transit, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Goodput never exceeds the rate of all bytes that have arrived. In-order delivery can, because a retransmission
    /// in the window releases packets that arrived before it.
    #[test]
    fn goodput_is_at_most_the_rate(
        (rate, delay, buffer) in (1e6..1e7, 0.001..0.03, 3_000u64..60_000),
        (loss, duplicate, late) in (0.0..0.1, 0.0..0.05, 0.0..0.05),
        (protocol, count, from, seed) in (0..ProtocolId::ALL.len(), 1u32..4, 0.2..1.4, 0u64..1000),
        [delayed_ack, quic]: [bool; 2],
    ) {
        let name = ProtocolId::ALL[protocol].info().name;
        let mut n = network(1.5, link("l", rate, delay, buffer).to_vec(), vec![flow("f", name, &[0], 1.5)]);
        (n.seed, n.measure_s) = (seed, [from, 1.5]);
        (n.flows[0].count, n.flows[0].delayed_ack) = (count, delayed_ack);
        n.flows[0].recovery = quic.then(|| "quic".into());
        (n.links[0].loss, n.links[0].duplicate) = (loss, duplicate);
        n.links[0].reorder = Some(waterfill_network::ReorderSpec { share: late, delay_s: 0.02 });
        for f in run(&n).1.flows {
            prop_assert!(f.goodput_bps.unwrap() <= f.rate_bps.unwrap(), "{f:?}");
        }
    }
}

/// Different seeds give different losses.
#[test]
fn the_seed_changes_the_result() {
    let mut n = network(5.0, link("l", 1e7, 0.01, 60_000).to_vec(), vec![flow("f", "window", &[0], 5.0)]);
    n.links[0].loss = 0.01;
    let one = run(&n).1;
    n.seed = 2;
    assert_ne!(one, run(&n).1);
}

/// Memory does not grow with simulated time, except for the rows of the series.
#[test]
fn memory_does_not_grow_with_time() {
    let mut n = network(400.0, link("l", 1e7, 0.01, 60_000).to_vec(), vec![flow("f", "maxnet", &[0], 400.0)]);
    n.measure_s = [1.0, 400.0];
    let mut sim = run_until(&n, 40.0);
    let early = sim.heap_bytes();
    sim.advance(waterfill_laws::units::Instant::from_secs(400.0));
    let late = sim.heap_bytes();
    // 270,000 packets later: only a histogram may have grown, for a larger queue.
    assert!(late.0 <= early.0 + 20_000 && late.1 <= early.1 + 20_000, "{early:?} became {late:?}");
}
