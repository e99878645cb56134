//! Tests of routes that change during the run.

use crate::common::{assert_close, flow, link, network, run, run_until};
use waterfill_network::{FlowSpec, Network, RouteChangeSpec};

/// Returns a flow that takes link `a` (10 ms) for 3 s, and then link `b` (25 ms) of half the rate.
fn handover(protocol: &str) -> Network {
    let links = [link("a", 2e7, 0.01, 60_000), link("b", 1e7, 0.025, 60_000)].concat();
    let routes = vec![RouteChangeSpec { at_s: 3.0, forward: vec![2], reverse: vec![3] }];
    network(9.0, links, vec![FlowSpec { routes, base_rtt_s: 0.02, ..flow("f", protocol, &[0], 9.0) }])
}

#[test]
fn data_and_acknowledgements_take_the_new_route() {
    let (_, summary) = run(&handover("xcp"));
    // The measurement window is from 6 to 9 s.
    let used: Vec<f64> = summary.links.iter().map(|link| link.utilization).collect();
    assert_eq!((used[0], used[1]), (0.0, 0.0));
    assert!(used[2] > 0.85 && used[3] > 0.02, "{used:?}");
    assert!(summary.flows[0].rtt_ms.mean.unwrap() >= 50.0);
}

/// A window of 10 packets: those sent before the change arrive 10 ms later over the old link, and their
/// acknowledgements return over the new one.
#[test]
fn packets_in_flight_finish_on_the_old_route() {
    let mut n = handover("window");
    n.set_param("window", "packets", 10.0);
    n.measure_s = [2.96, 3.1];
    let before = run_until(&n, 2.999).ledger();
    let after = run_until(&n, 3.0105).ledger();
    assert!(before.in_transit > 0 && after.delivered > before.delivered);
    let (_, summary) = run(&n);
    assert_eq!(summary.flows[0].retransmissions, 0);
    assert!(summary.links[0].utilization > 0.0 && summary.links[2].utilization > 0.0);
    // From 3.06 s on, every RTT is 50 ms and the packets' serialization.
    n.measure_s = [3.1, 9.0];
    let (_, summary) = run(&n);
    assert_close(summary.flows[0].rate_bps.unwrap(), 10.0 * 12_000.0 / (0.05 + 12e-4 + 320.0 / 1e7), 0.01);
}

/// The padding belongs to the hosts, so it stays when the route changes, and so do the members of a group.
#[test]
fn padding_and_groups_keep_their_hosts() {
    let mut n = handover("window");
    n.set_param("window", "packets", 4.0);
    n.flows[0].count = 3;
    n.flows[0].pad_s = 0.005;
    n.flows[0].pad_jitter_s = vec![0.0, 0.01, 0.02];
    n.measure_s = [4.0, 9.0];
    let (_, summary) = run(&n);
    for (flow, rtt_ms) in summary.flows.iter().zip([60.0, 80.0, 100.0]) {
        let own_ms = 1.2 + 0.032;
        let found = flow.rtt_ms.mean.unwrap();
        assert!((rtt_ms + own_ms..rtt_ms + own_ms + 5.0).contains(&found), "{found} {rtt_ms}");
    }
}
