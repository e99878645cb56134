//! Tests of links that change over time in the fluid model. The expected values follow by arithmetic, as in the packet
//! simulator's tests.

use crate::common::{assert_close, flows, link, network, run, run_until};
use waterfill_fluid::Fluid;
use waterfill_laws::registry::kernel_protocols;
use waterfill_laws::units::{Duration, Rate};
use waterfill_network::{ChangeSpec, Network, TrafficSpec};

fn rate(at_s: f64, bps: f64) -> ChangeSpec {
    ChangeSpec { at_s, rate_bps: Some(bps), ..ChangeSpec::default() }
}

fn delay(at_s: f64, delay_s: f64) -> ChangeSpec {
    ChangeSpec { at_s, delay_s: Some(delay_s), ..ChangeSpec::default() }
}

fn up(at_s: f64, up: bool) -> ChangeSpec {
    ChangeSpec { at_s, up: Some(up), ..ChangeSpec::default() }
}

/// Returns a network with one link of 10 Mbit/s and delay `delay_s`, to which `offered_bps` is offered. A packet of
/// 1250 bytes takes 1 ms.
fn offered(duration_s: f64, offered_bps: f64, delay_s: f64, changes: &[ChangeSpec]) -> Network {
    let mut n =
        network(duration_s, link("l", 1e7, delay_s, 1 << 30).to_vec(), vec![flows("f", 1, "window", &[0], 0.0)]);
    n.links[0].changes = changes.to_vec();
    n.packet_bytes = 1250;
    let span = [0.0, duration_s].map(Duration::from_secs);
    n.traffic =
        vec![TrafficSpec { packet_bytes: 1250, ..TrafficSpec::cbr("cbr", &[0], Rate::from_bps(offered_bps), span) }];
    n.measure_s = [0.0, duration_s];
    n.sample_s = 0.05;
    n
}

fn traffic_rates(fluid: &Fluid) -> Vec<f64> {
    let series = fluid.series()[2];
    let column = series.names().iter().position(|name| name == "rate_bps").unwrap();
    series.columns()[column].clone()
}

/// A busy link sends the integral of its rate: 10, 1, 0 and 16 Mbit/s for 1 s each. The changes fall into the middle of
/// steps.
#[test]
fn a_busy_link_sends_the_integral_of_its_rate() {
    let changes = [rate(1.0003, 1e6), rate(2.0003, 0.0), rate(3.0003, 1.6e7)];
    let (fluid, summary) = run(&offered(4.0, 2e7, 0.01, &changes), Some(1e-3));
    assert_close("utilization", summary.links[0].utilization, 1.0, 1e-9);
    // 10003 + 1000 + 15995.2 kbit, less the last 10.5 ms, which are on the wire, or being sent.
    let kbits = 10_003.0 + 1_000.0 + 15_995.2 - 10.5 * 16.0 - 10.0 / 2.0;
    assert_close("received", summary.traffic[0].packets_received as f64, kbits / 10.0, 1e-3);
    let link = fluid.series()[1];
    let column = link.names().iter().position(|name| name == "capacity_bps").unwrap();
    let capacity: Vec<f64> = link.columns()[column].iter().step_by(2).copied().collect();
    for (i, bps) in [(0, 1e7), (20, 1.054e6), (40, 6000.0), (41, 0.0), (60, 1.5904e7), (61, 1.6e7)] {
        assert!((capacity[i] - bps).abs() < 1.0, "{i}: {}", capacity[i]);
    }
}

/// The queue grows while 20 Mbit/s arrive and 10 Mbit/s leave, and shrinks when the rate rises to 30 Mbit/s after 1 s.
#[test]
fn a_queue_follows_the_rate() {
    let (_, summary) = run(&offered(2.0, 2e7, 0.01, &[rate(1.0, 3e7)]), Some(1e-3));
    assert_close("largest queue", summary.links[0].queue_packets.max, 1000.0, 1e-6);
    assert_close("mean queue", summary.links[0].queue_packets.mean, 500.0, 1e-3);
}

/// Packets stay in order on a wire whose delay changes.
///
/// When the delay rises, the wire is silent for the difference. When it falls, a busy link keeps the old delay, because
/// the wire delivers no faster than the link sends.
#[test]
fn a_busy_wire_stays_in_order() {
    let (fluid, _) = run(&offered(3.0, 2e7, 0.1, &[delay(1.0, 0.01), delay(2.0, 0.15)]), Some(1e-3));
    let rates = traffic_rates(&fluid);
    let mean = |from: usize, to: usize| rates[from..to].iter().sum::<f64>() / (to - from) as f64;
    assert!(mean(0, 2) < 1.0);
    assert_close("before and after the fall", mean(3, 41), 1e7, 1e-3);
    // Packets left at 2 s with the delay of 100 ms, and from then on with 150: silence from 2.1 to 2.15 s.
    assert!(mean(42, 43) < 0.03e7, "{rates:?}");
    assert_close("after the rise", mean(44, 59), 1e7, 1e-3);
}

/// A shorter delay takes full effect once later packets have caught up with those on the wire. The source leaves half
/// of the link free.
#[test]
fn a_shorter_delay_holds_once_the_wire_allows() {
    let (_, summary) = run(&offered(2.0, 5e6, 0.1, &[delay(1.0, 0.01)]), Some(1e-3));
    // What was sent before 1.989 s, at 500 packets/s.
    assert_close("received", summary.traffic[0].packets_received as f64, 994.5, 1e-3);
}

/// During an outage from 1 to 2 s, waiting and arriving packets are dropped. Packets on the wire still arrive.
#[test]
fn a_link_that_goes_down_drops_its_queue_and_what_arrives() {
    let (fluid, summary) = run(&offered(3.0, 2e7, 0.01, &[up(1.0, false), up(2.0, true)]), Some(1e-3));
    assert_close("received", summary.traffic[0].packets_received as f64, 1000.0 + 989.0, 1e-3);
    assert_close("dropped", summary.links[0].drops as f64, 1000.0 + 2000.0, 1e-3);
    assert_close("utilization", summary.links[0].utilization, 1.0, 1e-9);
    let rates = traffic_rates(&fluid);
    assert_eq!(rates[22..40].iter().sum::<f64>(), 0.0);
}

/// Bytes are conserved under any changes of the link.
#[test]
fn bytes_are_conserved() {
    for protocol in ["xcp", "maxnet", "window"] {
        let mut n = network(6.0, link("l", 2e7, 0.01, 50_000).to_vec(), vec![flows("f", 3, protocol, &[0], 6.0)]);
        for spec in &mut n.links {
            let mut both = rate(0.7, 4e7);
            both.delay_s = Some(0.03);
            spec.changes = vec![both, delay(1.1, 0.005), rate(1.5, 5e6), rate(2.0, 0.0), rate(2.1003, 3e7)];
            spec.changes.extend([up(3.0, false), rate(3.1, 2e7), up(3.3, true), delay(5.0, 0.02)]);
        }
        for s in [1.0, 2.05, 3.0, 3.2, 6.0] {
            let ledger = run_until(&n, s).ledger();
            let found = ledger.delivered + ledger.dropped + ledger.in_transit;
            assert_close(&format!("{protocol} at {s} s"), found, ledger.sent, 1e-9);
        }
    }
}

/// A change to the current values changes results only by rounding.
#[test]
fn a_change_to_the_same_values_changes_nothing() {
    let mut n = network(5.0, link("l", 1e7, 0.02, 50_000).to_vec(), vec![flows("f", 3, "maxnet", &[0], 5.0)]);
    let (_, plain) = run(&n, None);
    for spec in &mut n.links {
        let same = |i| ChangeSpec { delay_s: Some(0.02), up: Some(true), ..rate(f64::from(i) * 0.0437, 1e7) };
        spec.changes = (1..100).map(same).collect();
    }
    let (_, changed) = run(&n, None);
    assert_close("rate", changed.flows[0].rate_bps.unwrap(), plain.flows[0].rate_bps.unwrap(), 1e-6);
}

/// Explicit laws follow the link's current capacity. Their flows have half the rate while the link has half, and then
/// the full rate again.
#[test]
fn explicit_laws_follow_the_rate() {
    for (protocol, _) in kernel_protocols() {
        let share = |to_s: f64| {
            let mut n =
                network(to_s, link("l", 2e7, 0.01, 1 << 20).to_vec(), vec![flows("f", 2, protocol, &[0], to_s)]);
            n.links[0].changes = vec![rate(15.0, 1e7), rate(30.0, 2e7)].into_iter().filter(|c| c.at_s < to_s).collect();
            n.measure_s = [to_s - 5.0, to_s];
            run(&n, None).1.flows.iter().map(|f| f.rate_bps.unwrap()).sum::<f64>()
        };
        let [full, half, again] = [15.0, 30.0, 45.0].map(share);
        assert_close(protocol, half, full / 2.0, 0.06);
        assert_close(protocol, again, full, 0.06);
    }
}

/// After an outage of two seconds, flows resume when their retransmission timers fire, after 1 s and then 2 s.
#[test]
fn flows_wait_for_their_timers_after_an_outage() {
    for protocol in ["maxnet", "xcp", "aecp", "rcp", "jetmax", "vcp"] {
        let mut n = network(40.0, link("l", 1e7, 0.01, 50_000).to_vec(), vec![flows("f", 1, protocol, &[0], 40.0)]);
        for spec in &mut n.links {
            spec.changes = vec![up(10.0, false), up(12.0, true)];
        }
        n.measure_s = [30.0, 40.0];
        let (fluid, summary) = run(&n, None);
        assert_eq!(summary.flows[0].timeouts, 2, "{protocol}");
        let received = |s: f64| run_until(&n, s).ledger().delivered;
        assert_eq!(received(10.1), received(13.0), "{protocol}");
        assert!(received(13.5) > received(13.0), "{protocol}");
        let used = summary.links[0].utilization;
        assert!(used > 0.7, "{protocol} uses {used} in the end, {} steps", fluid.steps());
    }
}

/// A flow that starts while its link is down repeats its SYN after 1 s and after another 2 s.
#[test]
fn a_handshake_is_repeated() {
    let mut n = network(5.0, link("l", 1e7, 0.01, 50_000).to_vec(), vec![flows("f", 1, "xcp", &[0], 5.0)]);
    n.flows[0].start_s = 1.0;
    n.links[0].changes = vec![up(0.5, false), up(2.5, true)];
    let received = |s: f64| run_until(&n, s).ledger().delivered;
    assert_eq!(received(4.0), 0.0);
    assert!(received(4.2) > 0.0);
}

/// A path whose RTT of 40 ms becomes 8 ms, or 200 ms, at 15 s gives MaxNet its share again: hosts follow the RTT down at
/// once, and up after their window. With the smallest RTT of the whole run, a fifth of the capacity is left.
#[test]
fn hosts_follow_the_rtt() {
    let rate = |delay_s: f64, window_s: Option<f64>| {
        let mut n = network(60.0, link("l", 5e7, 0.02, 250_000).to_vec(), vec![flows("f", 1, "maxnet", &[0], 60.0)]);
        n.flows[0].base_rtt_window_s = window_s;
        n.links.iter_mut().for_each(|link| link.changes = vec![delay(15.0, delay_s)]);
        let flow = run(&n, Some(1e-3)).1.flows.swap_remove(0);
        (flow.rate_bps.unwrap() / 1e6, flow.rtt_ms.p50.unwrap())
    };
    let (shorter, rtt_ms) = rate(0.004, None);
    assert_close("after a shorter RTT", shorter, 45.0, 0.01);
    assert!(rtt_ms < 12.0, "{rtt_ms}");
    assert_close("after a longer RTT", rate(0.1, Some(10.0)).0, 45.0, 0.01);
    assert_close("without a window", rate(0.1, None).0, 10.0, 0.02);
}
