//! Tests of links whose rate, delay and state change over time, with results that follow by arithmetic.

#![expect(clippy::float_cmp, reason = "whole numbers, computed by hand")]

use crate::common::{assert_close, cbr, column, flow, link, network, refusal, run, run_on};
use waterfill_laws::registry::kernel_protocols;
use waterfill_network::{ChangeSpec, CodelSpec, LossSpec, Network, QueueSpec};

fn rate(at_s: f64, bps: f64) -> ChangeSpec {
    ChangeSpec { at_s, rate_bps: Some(bps), ..ChangeSpec::default() }
}

fn delay(at_s: f64, delay_s: f64) -> ChangeSpec {
    ChangeSpec { at_s, delay_s: Some(delay_s), ..ChangeSpec::default() }
}

fn up(at_s: f64, up: bool) -> ChangeSpec {
    ChangeSpec { at_s, up: Some(up), ..ChangeSpec::default() }
}

/// Returns a network of one link of 10 Mbit/s and 10 ms that is offered 20 Mbit/s. Packets of 1250 bytes take 1 ms.
fn overloaded(duration_s: f64, changes: &[ChangeSpec]) -> Network {
    let mut n = network(duration_s, link("l", 1e7, 0.01, 1 << 30).to_vec(), vec![]);
    n.links.truncate(1);
    n.links[0].changes = changes.to_vec();
    n.traffic = vec![cbr("cbr", &[0], 2e7, [0.0, duration_s], 1250)];
    n.measure_s = [0.0, duration_s];
    n
}

/// A busy link with rates of 10, 1, 0 and 16 Mbit/s for 1 s each sends 1000 + 100 + 0 + 1600 packets.
#[test]
fn a_busy_link_sends_the_integral_of_its_rate() {
    // The changes fall into the middle of packets, at 0.3 of one.
    let changes = [rate(1.0003, 1e6), rate(2.0003, 0.0), rate(3.0003, 1.6e7)];
    for queue in [QueueSpec::default(), QueueSpec::Codel(CodelSpec { target_s: 50.0, interval_s: 60.0, ecn: false })] {
        let mut n = overloaded(4.0003, &changes);
        n.links[0].queue = queue;
        n.sample_s = 0.5;
        let (sim, summary) = run(&n);
        assert_close(summary.links[0].utilization, 1.0, 1e-7);
        // 10003 kbit + 1000 kbit + 16000 kbit are 2700.3 packets; the last 10 ms are on the wire.
        let received = summary.traffic[0].packets_received;
        assert_eq!(received, 2700 - 16);
        assert_eq!(sim.ledger().in_transit + received, sim.ledger().sent);
        let capacity = column(sim.series()[1], "capacity_bps");
        let expected = [1e7, 1e7, 1.0054e6, 1e6, 600.0, 0.0, 1.5990_4e7, 1.6e7];
        for (&found, expected) in capacity.iter().zip(expected) {
            assert_close(found, expected, 1e-9);
        }
    }
}

/// The queue drains at the current rate: 20 Mbit/s arrive, and first 10, then 30 Mbit/s leave.
#[test]
fn waiting_packets_follow_the_new_rate() {
    let (_, summary) = run(&overloaded(2.0, &[rate(1.0, 3e7)]));
    // After 1 s 1000 packets wait (one is in transmission); they shrink by 10 Mbit/s and are gone at 2 s.
    assert_close(summary.links[0].queue_packets.max, 1000.0, 2e-3);
    assert_close(summary.links[0].queue_packets.mean, 500.0, 3e-3);
}

/// Packets stay in order when the delay changes. When the delay rises, the wire is silent for the difference. When the
/// delay falls, packets arrive at the link's rate.
#[test]
fn packets_stay_in_order_when_the_delay_falls() {
    // At 1 s the delay falls from 100 to 10 ms: 100 packets are on the wire. They arrive until 1.1 s, one every ms.
    let mut n = overloaded(3.0, &[delay(1.0, 0.01), delay(2.0, 0.11)]);
    n.links[0].delay_s = 0.1;
    n.sample_s = 0.05;
    let (sim, summary) = run(&n);
    let rates = column(sim.series()[2], "rate_bps");
    let at = |from: usize, to: usize| rates[from..to].iter().sum::<f64>() / (to - from) as f64;
    assert_eq!(at(0, 2), 0.0);
    assert_close(at(3, 40), 1e7, 1e-3); // also after 1 s: the link never delivers faster than it sends
    // The delay that fell is still there while packets are back to back, and then rises by 10 ms: 10 packets less.
    // A packet that arrives as a sample is taken counts in either.
    assert_close(at(40, 42), 1e7, 1.01e-2);
    assert_close(at(42, 43), 0.8e7, 2.6e-2);
    assert_close(at(43, 59), 1e7, 2e-3);
    assert_eq!(summary.links[0].utilization, 1.0);
}

/// Packets with gaps between them catch up with a shorter delay.
#[test]
fn a_shorter_delay_holds_once_the_wire_allows() {
    let mut n = overloaded(2.0, &[delay(1.0, 0.01)]);
    n.links[0].delay_s = 0.1;
    n.traffic[0].rate_bps = Some(5e6); // every second transmission slot is empty
    let (_, summary) = run(&n);
    // One packet every 2 ms: those sent before 1.99 s less the transmission have arrived.
    assert_eq!(summary.traffic[0].packets_received, 995);
}

/// An outage from 1 to 2 s drops packets that wait, are in transmission or arrive. Packets on the wire still arrive.
#[test]
fn a_link_that_goes_down_drops_its_queue_and_what_arrives() {
    for queue in [QueueSpec::default(), QueueSpec::Codel(CodelSpec { target_s: 50.0, interval_s: 60.0, ecn: false })] {
        let mut n = overloaded(3.0, &[up(1.0005, false), up(2.0005, true)]);
        n.links[0].queue = queue;
        let (sim, summary) = run(&n);
        // Packets are sent every 0.5 ms. Half of the 1001st is sent when it is dropped.
        // From 2.0005 to 3 s less the delay of 10 ms: 989 whole packets.
        assert_eq!(summary.traffic[0].packets_received, 1000 + 989);
        let sent_before = 2002; // at 0, 0.5 … 1000.5 ms
        let sent_while_down = 1999; // at 1001 … 2000 ms; that of 2000.5 ms comes after the link
        assert!(
            summary.links[0].drops.abs_diff(sent_before - 1000 + sent_while_down) <= 1,
            "{}",
            summary.links[0].drops
        );
        assert_eq!(sim.ledger().dropped, summary.links[0].drops);
        // 2 s of capacity, all of it used.
        assert_close(summary.links[0].utilization, 1.0, 1e-9);
    }
}

/// Losses drawn for packets that never reach the wire are not counted as losses.
#[test]
fn a_dropped_packet_is_not_lost_as_well() {
    let mut n = overloaded(2.0, &[up(1.0, false)]);
    n.links[0].loss_model = Some(LossSpec::Independent { p: 0.5 });
    n.traffic[0].start_s = 1e-3; // after the window has opened
    let (sim, summary) = run(&n);
    assert_eq!(sim.ledger().lost, summary.links[0].lost);
    assert_eq!(sim.ledger().dropped, summary.links[0].drops);
}

/// A change to the current values has no effect, at any time.
#[test]
fn a_change_to_the_same_values_changes_nothing() {
    let mut n = network(5.0, link("l", 1e7, 0.02, 50_000).to_vec(), vec![flow("f", "cubic", &[0], 5.0)]);
    n.flows[0].count = 3;
    let (plain, _) = run(&n);
    for l in [0, 1] {
        n.links[l].changes = (1..100)
            .map(|i| ChangeSpec { delay_s: Some(0.02), up: Some(true), ..rate(f64::from(i) * 0.0437, 1e7) })
            .collect();
    }
    let (changed, _) = run(&n);
    let bits = |sim: &waterfill_sim::Simulation| -> Vec<u64> {
        sim.series()[0].columns().iter().flatten().map(|x| x.to_bits()).collect()
    };
    assert!(bits(&plain) == bits(&changed));
    assert_eq!(plain.ledger(), changed.ledger());
}

/// Explicit laws follow the capacity: at half the rate their flows get half, and at the full rate they get all again.
#[test]
fn explicit_laws_follow_the_rate() {
    for (protocol, _) in kernel_protocols() {
        let share = |to_s: f64| {
            let mut n = network(to_s, link("l", 2e7, 0.01, 1 << 20).to_vec(), vec![flow("f", protocol, &[0], to_s)]);
            n.flows[0].count = 2;
            n.links[0].changes = vec![rate(15.0, 1e7), rate(30.0, 2e7)].into_iter().filter(|c| c.at_s < to_s).collect();
            n.measure_s = [to_s - 5.0, to_s];
            let (_, summary) = run(&n);
            summary.flows.iter().map(|f| f.rate_bps.unwrap()).sum::<f64>()
        };
        let [full, half, again] = [15.0, 30.0, 45.0].map(share);
        assert_close(half, full / 2.0, 0.06);
        assert_close(again, full, 0.06);
    }
}

/// Every flow continues after an outage of two seconds.
#[test]
fn flows_survive_an_outage() {
    for protocol in ["maxnet", "xcp", "aecp", "rcp", "jetmax", "vcp", "cubic", "bbr"] {
        for outage in [[up(10.0, false), up(12.0, true)], [rate(10.0, 0.0), rate(12.0, 1e7)]] {
            let mut n = network(40.0, link("l", 1e7, 0.01, 50_000).to_vec(), vec![flow("f", protocol, &[0], 40.0)]);
            n.links[0].changes = outage.to_vec();
            n.measure_s = [30.0, 40.0];
            let (_, summary) = run(&n);
            let used = summary.links[0].utilization;
            assert!(used > 0.7, "{protocol} uses {used} after {outage:?}");
        }
    }
}

/// Several threads give the bytes of one thread when every link changes, including cut links. The lookahead uses the
/// smallest delay.
#[test]
fn threads_give_the_same_bytes() {
    let hops = 6;
    let links: Vec<_> = (0..hops).flat_map(|i| link(&format!("l{i}"), 2e7, 8e-3, 40_000)).collect();
    let forward: Vec<u32> = (0..hops).map(|i| 2 * i).collect();
    let mut flows = vec![flow("a", "maxnet", &forward, 4.0), flow("b", "sack", &forward, 4.0)];
    flows[1].count = 2;
    for i in 0..hops {
        flows.push(flow(&format!("c{i}"), "xcp", &[2 * i], 4.0));
    }
    let mut n = network(4.0, links, flows);
    for (l, spec) in n.links.iter_mut().enumerate() {
        let shift = 0.003 * (l / 2) as f64; // both directions at the same time, as from a file
        spec.changes = vec![
            rate(0.5 + shift, 5e6),
            delay(0.9, 2e-3),
            rate(1.2 + shift, 4e7),
            up(1.8 + shift, false),
            up(1.9 + shift, true),
            delay(2.1 + shift, 2e-2),
            rate(2.5, 0.0),
            rate(2.8, 2e7),
            delay(3.1, 4e-3),
        ];
        spec.changes.truncate(if l < 4 { 9 } else { 7 });
    }
    let text = |threads| {
        let (sim, summary) = run_on(&n, threads);
        let bits: Vec<u64> = sim.series().iter().flat_map(|s| s.columns()).flatten().map(|x| x.to_bits()).collect();
        assert_eq!(sim.threads(), threads);
        (serde_json::to_string(&summary).unwrap(), format!("{:?} {}", sim.ledger(), sim.sacks_in_use()), bits)
    };
    let one = text(1);
    for threads in [2, 3] {
        let several = text(threads);
        assert_eq!((&one.0, &one.1), (&several.0, &several.1), "{threads} threads");
        assert!(one.2 == several.2, "series of {threads} threads");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let with = |changes: &[ChangeSpec]| refusal(overloaded(2.0, changes));
    assert_eq!(with(&[rate(1.0, -1.0)]), "link.l.event.rate: must not be negative, got -1");
    assert_eq!(
        with(&[rate(1.0, 1e6), up(1.0, false)]),
        "link.l.event.at: must be after the event before, at 1 s, got 1"
    );
    assert_eq!(with(&[up(2.0, false)]), "link.l.event.at: must be before the end of the run at 2 s, got 2");
    assert_eq!(with(&[delay(1.0, 1e7)]), "link.l.event.delay: must be 0 to 1e6 s, got 10000000");
}
