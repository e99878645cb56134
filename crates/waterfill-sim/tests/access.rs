//! Tests of hosts with their own access links: serialization, order and queueing, computed by hand.

#![expect(clippy::float_cmp, reason = "whole numbers, computed by hand")]

use crate::common::{assert_close, cbr, flow, link, network, refusal, run, run_until};
use waterfill_network::{ArrivalSpec, Distribution, FlowSpec, Network, TrafficKind, TrafficSpec};

/// Returns a network of one link of 10 Mbit/s and 20 ms.
fn single(duration_s: f64, flows: Vec<FlowSpec>) -> Network {
    network(duration_s, link("l", 1e7, 0.02, 1 << 30).to_vec(), flows)
}

/// Returns a flow of `size_bytes` bytes that starts at 0 s.
fn transfer(name: &str, size_bytes: u64, access_bps: Option<f64>) -> FlowSpec {
    FlowSpec { size_bytes: Some(size_bytes), access_bps, ..flow(name, "window", &[0], 3.0) }
}

fn completed_ms(n: &Network) -> Vec<f64> {
    run(n).1.flows.iter().map(|f| f.completed_s.expect("a finished flow") * 1e3).collect()
}

/// Checks a transfer's completion time against serialization times computed by hand.
///
/// - SYN: 40 B at 1 and 10 Mbit/s, 0.32 + 0.032 ms, and 20 ms
/// - SYN-ACK: 0.032 + 20 ms, without the access link
/// - Data: 1500 B, 12 + 1.2 ms, and 20 ms
/// - The padding is added three times.
#[test]
fn a_packet_takes_its_serialization_at_the_access_too() {
    let mut n = single(3.0, vec![transfer("f", 1460, Some(1e6))]);
    let by_hand = (0.32 + 0.032 + 20.0) + (0.032 + 20.0) + (12.0 + 1.2 + 20.0);
    assert_close(completed_ms(&n)[0], by_hand, 1e-12);
    n.flows[0].pad_s = 0.005;
    assert_close(completed_ms(&n)[0], by_hand + 3.0 * 5.0, 1e-12);
    n.flows[0].access_bps = None;
    assert_close(completed_ms(&n)[0], by_hand + 3.0 * 5.0 - 12.32, 1e-12);
}

/// A window of ten packets leaves a host of 5 Mbit/s in 24 ms. No packet then waits for the next link of 10 Mbit/s.
#[test]
fn a_window_leaves_the_host_at_the_rate_of_its_link() {
    let mut n = single(3.0, vec![transfer("f", 14_600, Some(5e6))]);
    n.set_param("window", "packets", 10.0);
    n.measure_s = [0.0, 3.0];
    let (_, summary) = run(&n);
    assert_eq!(summary.links[0].queue_packets.max, 0.0);
    let handshake = (0.064 + 0.032 + 20.0) + (0.032 + 20.0);
    assert_close(summary.flows[0].completed_s.unwrap() * 1e3, handshake + 24.0 + 1.2 + 20.0, 1e-12);
    n.flows[0].access_bps = None;
    assert_eq!(run(&n).1.links[0].queue_packets.max, 9.0, "one packet of the burst is in service");
}

/// A host of 5 Mbit/s takes 2.4 ms for each of 60 packets in flight, so all packets queue at the host.
#[test]
fn packets_wait_at_a_slow_host_and_not_at_the_link() {
    let mut n = single(6.0, vec![FlowSpec { access_bps: Some(5e6), ..flow("f", "window", &[0], 6.0) }]);
    n.set_param("window", "packets", 60.0);
    let (_, summary) = run(&n);
    assert_close(summary.flows[0].rate_bps.unwrap(), 5e6, 1e-3);
    assert_close(summary.flows[0].rtt_ms.mean.unwrap(), 60.0 * 2.4, 1e-3);
    assert_eq!(summary.links[0].queue_packets.max, 0.0);
}

/// Hosts do not wait for each other. A host of 1 Mbit/s takes 0.32 ms for its SYN and 12 ms for its data. A host of 100
/// Mbit/s that starts 0.1 ms later has sent everything by then.
#[test]
fn hosts_of_one_group_and_of_another_do_not_wait_for_each_other() {
    let alone = |spec: FlowSpec| completed_ms(&single(3.0, vec![spec]))[0];
    let slow = transfer("slow", 1460, Some(1e6));
    let quick = FlowSpec { start_s: 0.0001, ..transfer("quick", 1460, Some(1e8)) };
    let both = completed_ms(&single(3.0, vec![slow.clone(), quick.clone()]));
    assert_eq!(both, [alone(slow.clone()), alone(quick)]);

    // Two flows of one group: at 1 Mbit/s their SYNs and their packets meet at the link only, 32 µs and 1.2 ms each.
    let pair = completed_ms(&single(3.0, vec![FlowSpec { count: 2, ..slow.clone() }]));
    assert_close(pair[0], alone(slow.clone()), 1e-12);
    assert_close(pair[1], alone(slow) + 1.2, 1e-12);
}

/// Poisson packets at 6 Mbit/s queue at a link of 12 Mbit/s, unless their host's own link of 12 Mbit/s has spaced them.
#[test]
fn a_source_s_own_link_spaces_its_packets() {
    let mut n = network(20.0, link("l", 12e6, 0.0, 1 << 30).to_vec(), vec![]);
    n.measure_s = [0.0, 20.0];
    n.traffic = vec![TrafficSpec { kind: TrafficKind::Poisson, ..cbr("p", &[0], 6e6, [0.0, 20.0], 1500) }];
    let ideal = run(&n).1;
    assert!(ideal.links[0].queue_packets.max > 3.0);
    n.traffic[0].access_bps = Some(12e6);
    let spaced = run(&n).1;
    assert_eq!(spaced.links[0].queue_packets.max, 0.0);
    assert_eq!(spaced.traffic[0].packets_sent, ideal.traffic[0].packets_sent);
    assert_close(spaced.traffic[0].rate_bps.unwrap(), ideal.traffic[0].rate_bps.unwrap(), 1e-3);
}

/// Flows of ten packets arrive one at a time, each from a host of 5 Mbit/s as in the scheduled transfer above.
#[test]
fn arriving_flows_have_a_link_each() {
    let mut common = flow("web", "newreno", &[0], 20_000.0);
    common.access_bps = Some(5e6);
    let sizes_bytes = Distribution::Constant { mean: 14_600.0 };
    let flows = Some(ArrivalSpec {
        arrivals_per_s: 1e-3,
        at_s: vec![],
        sizes_bytes,
        flow: common,
        routes: vec![],
        pairs: vec![],
        fan_in: 1,
    });
    let base = cbr("web", &[0], 0.0, [0.0, 20_000.0], 1500);
    let mut n = single(20_000.0, vec![]);
    (n.sample_s, n.measure_s) = (1000.0, [0.0, 20_000.0]);
    n.traffic = vec![TrafficSpec { kind: TrafficKind::Web, rate_bps: None, flows, ..base }];
    let (_, summary) = run(&n);
    let web = summary.traffic[0].flows.as_ref().unwrap();
    assert!(web.flows_completed > 10);
    assert_close(web.flow_completion_ms.max.unwrap(), 40.128 + 24.0 + 1.2 + 20.0, 1e-9);
}

#[test]
fn packets_at_hosts_are_in_transit() {
    let mut n = single(3.0, vec![transfer("f", 146_000, Some(1e6))]);
    n.set_param("window", "packets", 100.0);
    // 100 packets are handed over at 40.384 ms. By 0.1 s three have arrived, each 12 ms after the last, and one
    // acknowledgement has: 100 packets, three acknowledgements and the handshake are sent, four and that delivered.
    let ledger = run_until(&n, 0.1).ledger();
    assert_eq!((ledger.sent, ledger.delivered, ledger.in_transit), (103 + 2, 4 + 2, 99));
    let end = run(&n).0.ledger();
    assert_eq!((end.sent, end.in_transit), (end.delivered, 0));
}

#[test]
fn invalid_access_rates_are_refused_in_one_sentence() {
    let rate = |bps: f64| refusal(single(1.0, vec![transfer("f", 1, Some(bps))]));
    assert_eq!(rate(0.0), "flow.f.access_rate: must be above zero, got 0");
    assert_eq!(rate(f64::INFINITY), "flow.f.access_rate: must be above zero, got inf");
    let mut n = single(1.0, vec![]);
    n.traffic = vec![TrafficSpec { access_bps: Some(9e5), ..cbr("c", &[0], 1e6, [0.0, 1.0], 1500) }];
    assert_eq!(refusal(n), "traffic.c.access_rate: must be at least the rate, 1000000 bit/s, got 900000");
}
