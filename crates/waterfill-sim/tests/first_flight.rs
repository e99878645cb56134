//! Tests of flows without a handshake: what leaves at the start, with times computed by hand.

use crate::common::{assert_close, assert_within, cbr, column, flow, link, network, run};
use waterfill_laws::registry::ProtocolId;
use waterfill_network::{ArrivalSpec, ChangeSpec, Distribution, Network, TrafficKind, TrafficSpec};

/// Returns a flow of `size_bytes` without a handshake over two links of 1 and 2 Mbit/s, with delays of 3 and 5 ms.
fn two_links(protocol: &str, size_bytes: u64) -> Network {
    let links = [link("a", 1e6, 0.003, 1 << 20), link("b", 2e6, 0.005, 1 << 20)].concat();
    let mut n = network(4.0, links, vec![flow("f", protocol, &[0, 2], 4.0)]);
    (n.flows[0].handshake, n.flows[0].size_bytes) = (false, Some(size_bytes));
    n
}

/// Returns the network's flow as a traffic source's, which starts one flow at 0 s.
fn as_arrival(mut n: Network) -> Network {
    let flow = n.flows.remove(0);
    let size = flow.size_bytes.unwrap() as f64;
    let flows = ArrivalSpec {
        arrivals_per_s: 1.0,
        at_s: vec![0.0],
        sizes_bytes: Distribution::Constant { mean: size },
        flow,
        routes: vec![],
        pairs: vec![],
        fan_in: 1,
    };
    let source = cbr("web", &[0, 2], 0.0, [0.0, 4.0], 1500);
    n.traffic = vec![TrafficSpec { kind: TrafficKind::Web, rate_bps: None, flows: Some(flows), ..source }];
    n.measure_s = [0.0, 4.0];
    n
}

/// Returns the time at which the only flow is complete.
fn completed_s(n: &Network) -> f64 {
    let (sim, summary) = run(n);
    if let Some(flow) = summary.flows.first() {
        return flow.completed_s.expect("it completes");
    }
    column(&sim.arrivals(), "completed_s")[0]
}

/// 1500 B take 12 and 6 ms of transmission and 8 ms of delay. Further packets follow at the first link's rate.
#[test]
fn the_first_window_takes_one_way() {
    for (protocol, packets) in [("reno", 1), ("reno", 4), ("window", 4), ("maxnet", 1), ("xcp", 1), ("bbr", 1)] {
        let payload = 1460 - ProtocolId::by_name(protocol).unwrap().params().header_bytes() as u64;
        let n = two_links(protocol, packets * payload);
        let by_hand = 0.012 * packets as f64 + 0.006 + 0.008;
        assert_within(completed_s(&n), by_hand, 1e-9, protocol);
        assert_within(completed_s(&as_arrival(n)), by_hand, 1e-9, protocol);
    }
}

/// Packets of the first window leave at the rate of the host's own link, so none waits there.
#[test]
fn the_first_window_is_paced_at_the_hosts_link() {
    let mut n = two_links("reno", 10 * 1460);
    // No answer comes before the last packet has left.
    (n.measure_s, n.links[2].delay_s) = ([0.0, 4.0], 0.2);
    let (_, summary) = run(&n);
    assert_within(summary.links[0].queue_packets.max, 0.0, 0.0, "without a handshake");
    n.flows[0].handshake = true;
    let (_, summary) = run(&n);
    assert_within(summary.links[0].queue_packets.max, 9.0, 0.0, "with one");
}

/// A flow of many windows has all its data, whoever starts it, and nothing is sent twice.
#[test]
fn long_flows_complete_with_every_law() {
    for id in ProtocolId::ALL {
        let name = id.info().name;
        let mut n = two_links(name, 60_000);
        n.duration_s = 60.0;
        (n.flows[0].stop_s, n.rto_min_s) = (60.0, 1.0);
        let mut with = n.clone();
        with.flows[0].handshake = true;
        let (own, shaken) = (completed_s(&n), completed_s(&with));
        // θ-PowerTCP takes the RTTs of its first flight for a queue, and adds a hundredth of a window per RTT afterwards.
        let slack = if name == "theta_powertcp" { 1.35 } else { 1.05 };
        assert!(own < slack * shaken, "{name}: {own} s is far above {shaken} s");
        let mut arriving = as_arrival(n);
        arriving.traffic[0].stop_s = 60.0;
        assert_close(completed_s(&arriving), own, 0.05);
    }
}

/// The whole first window is lost. The timer of a SYN sends it again after a second, one packet first.
#[test]
fn a_lost_first_window_is_sent_again_after_the_first_timeout() {
    for packets in [1, 4] {
        let mut n = two_links("reno", packets * 1460);
        let down = |at_s, up| ChangeSpec { at_s, up: Some(up), ..ChangeSpec::default() };
        n.links[0].changes = vec![down(0.001, false), down(0.5, true)];
        for n in [n.clone(), as_arrival(n)] {
            let (_, summary) = run(&n);
            let again = if packets == 1 { 0.026 } else { 0.026 * 2.0 + 0.008 + 0.012 * 2.0 };
            assert_within(completed_s(&n), 1.0 + again, 0.03, "a timeout");
            assert_eq!(summary.flows.first().map_or(1, |f| f.timeouts), 1);
        }
    }
}

/// The answer of MaxNet's routers to the first packet is a start rate: of an idle link nearly all of it.
#[test]
fn the_first_packet_asks_for_a_start_rate() {
    let mut n = network(0.4, link("l", 1e8, 0.05, 1 << 22).to_vec(), vec![flow("f", "maxnet", &[0], 0.4)]);
    (n.flows[0].handshake, n.flows[0].initial_window_packets, n.sample_s) = (false, 2.0, 0.01);
    let window = |n: &Network| column(run(n).0.series()[0], "window_bytes")[12];
    let granted = window(&n);
    // Half of the link's rate times the RTT of 0.1 s is 625 kB; two packets are 3 kB.
    assert!(granted > 625e3, "{granted} B at 0.13 s");
    n.flows[0].handshake = true;
    assert_close(granted, window(&n), 0.05);
}
