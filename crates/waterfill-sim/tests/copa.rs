//! Tests of Copa against its paper: queue, fairness and the competitive mode.

use crate::common::{flow, link, network, run};
use waterfill_network::Network;
use waterfill_network::summary::Summary;

/// Returns a network of these flows over 50 Mbit/s and 40 ms, with a buffer of 2 BDP. Flows have a protocol, a number and
/// a start time in seconds.
fn shared(flows: &[(&str, u32, f64)]) -> Network {
    let links = link("l", 50e6, 0.02, 500_000);
    let flows = flows.iter().enumerate().map(|(i, &(protocol, count, start_s))| {
        let mut group = flow(&format!("f{i}"), protocol, &[0], 60.0);
        (group.count, group.start_s) = (count, start_s);
        group
    });
    network(60.0, links.to_vec(), flows.collect())
}

fn rates(s: &Summary) -> Vec<f64> {
    s.flows.iter().map(|f| f.rate_bps.expect("measured")).collect()
}

/// One flow keeps 1/δ packets in the queue, within the 1.25/δ by which the window swings (Arun and Balakrishnan 2018, §3).
#[test]
fn a_copa_flow_keeps_about_one_over_delta_packets_in_the_queue() {
    for delta in [0.5, 0.25, 0.1] {
        let mut n = shared(&[("copa", 1, 0.0)]);
        n.set_param("copa", "delta", delta);
        let (_, s) = run(&n);
        let queue = &s.links[0].queue_packets;
        assert!(queue.mean > 0.5 / delta && queue.mean < 2.25 / delta, "{delta}: {queue:?}");
        assert!(s.links[0].utilization > 0.97 && s.links[0].drops == 0, "{delta}: {:?}", s.links[0]);
    }
}

/// Two flows share evenly, also if one starts late.
#[test]
fn two_copa_flows_share_evenly() {
    let (_, s) = run(&shared(&[("copa", 1, 0.0), ("copa", 1, 10.0)]));
    let found = rates(&s);
    assert!((found[0] - found[1]).abs() < 0.05 * 25e6, "{found:?}");
    assert!(s.links[0].utilization > 0.98, "{:?}", s.links[0]);
}

/// Next to CUBIC the competitive mode gives Copa a share that the default mode does not have.
#[test]
fn the_competitive_mode_holds_its_own_next_to_cubic() {
    let share = |competitive: bool| {
        let mut n = shared(&[("copa", 1, 0.0), ("cubic", 1, 0.0)]);
        n.set_param("copa", "competitive", competitive);
        let found = rates(&run(&n).1);
        found[0] / (found[0] + found[1])
    };
    let (default, competitive) = (share(false), share(true));
    assert!(default < 0.1 && competitive > 0.25 && competitive < 0.75, "{default} {competitive}");
}
