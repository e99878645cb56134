//! Tests of XCP, P-XCP and iXCP: their fixed-point version (`kernel/xcp.h`) against real numbers.
//!
//! The fixed-point router writes at arrival and samples the queue at ticks, so runs differ packet by packet from the first
//! round on. Mean rates over tens of seconds may differ by 2 %, utilizations by 0.5 %, and mean queues by a packet.

use crate::common::{assert_close, flow, link, network, refusal, run};
use waterfill_network::Network;
use waterfill_network::summary::Summary;

/// Rate of the first link in Fig. 1 of ixcp-2007, in Mbit/s. `SECOND` is the rate of the second link.
const FIRST: f64 = 155.0;
const SECOND: f64 = 100.0;
const SHORT_SHARE: f64 = FIRST - SECOND;

fn mbps(summary: &Summary, flow: usize) -> f64 {
    summary.flows[flow].rate_bps.expect("it ran") / 1e6
}

/// Returns the summaries of both versions after checking that they agree on every link.
fn run_both(mut n: Network, protocol: &str) -> [Summary; 2] {
    let both = ["real", "kernel"].map(|arithmetic| {
        n.set_param(protocol, "arithmetic", arithmetic);
        let (sim, summary) = run(&n);
        assert_eq!(sim.ledger().dropped, 0, "{protocol}, {arithmetic}");
        summary
    });
    for (real, kernel) in both[0].links.iter().zip(&both[1].links) {
        let off = kernel.utilization - real.utilization;
        assert!(off.abs() < 0.005, "{protocol}: utilization of {} is off by {off}", real.name);
        let off = kernel.queue_packets.mean - real.queue_packets.mean;
        assert!(off.abs() < 1.0, "{protocol}: queue of {} is off by {off} packets", real.name);
    }
    both
}

/// Both versions share one bottleneck by weight among four flows, with RTTs up to 30 ms longer than the base RTT.
#[test]
fn one_bottleneck() {
    for protocol in ["xcp", "ixcp", "pxcp"] {
        for delay_s in [0.001, 0.01] {
            let flows = (0..4).map(|i| {
                let mut flow = flow("f", protocol, &[0], 12.0);
                flow.pad_s = 0.005 * f64::from(i);
                flow.start_s = 0.3 * f64::from(i);
                flow.weight = if i == 3 { 2.0 } else { 1.0 };
                flow
            });
            let n = network(12.0, link("l", 1e8, delay_s, 500_000).to_vec(), flows.collect());
            let [real, kernel] = run_both(n, protocol);
            for i in 0..4 {
                assert_close(mbps(&kernel, i), mbps(&real, i), 0.02);
                // The law itself, with RTTs this different.
                assert_close(mbps(&kernel, i), if i == 3 { 40.0 } else { 20.0 }, 0.03);
            }
        }
    }
}

/// Both versions agree at RTTs of 2 ms, where control intervals have two ticks.
#[test]
fn short_rtts() {
    let flows = vec![flow("f", "xcp", &[0], 6.0); 4];
    let [real, kernel] = run_both(network(6.0, link("l", 1e9, 0.001, 500_000).to_vec(), flows), "xcp");
    for i in 0..4 {
        assert_close(mbps(&kernel, i), 250.0, 0.02);
        assert_close(mbps(&kernel, i), mbps(&real, i), 0.02);
    }
}

/// Returns Fig. 1's network: 16 long flows over both links in the given order, and a short flow that starts first, over
/// the first link.
fn fig1(protocol: &str, long_path: &[u32], duration_s: f64) -> Network {
    let buffer = (FIRST * 1e6 * 0.08 / 8.0) as u64; // one bandwidth-delay product
    let links = [link("first", FIRST * 1e6, 0.02, buffer), link("second", SECOND * 1e6, 0.02, buffer)].concat();
    let mut long = flow("long", protocol, long_path, duration_s);
    (long.count, long.start_s, long.stagger_s) = (16, 5.0, 1.0 / 16.0);
    let mut network = network(duration_s, links, vec![flow("short", protocol, &[0], duration_s), long]);
    network.packet_bytes = 1000;
    network
}

/// Returns the short flow's rate after checking that both versions agree and that the long flows fill the second link.
fn short_rate(protocol: &str, long_path: &[u32], duration_s: f64) -> f64 {
    let [real, kernel] = run_both(fig1(protocol, long_path, duration_s), protocol);
    let long: f64 = (1..17).map(|i| mbps(&kernel, i)).sum();
    assert_close(long, SECOND, 0.015);
    assert_close(mbps(&kernel, 0), mbps(&real, 0), 0.02);
    mbps(&kernel, 0)
}

/// XCP leaves the short flow at 31 of 55 Mbit/s, and iXCP gives it its share (ixcp-2007 Fig. 1).
#[test]
fn the_unfairness_and_its_cure() {
    assert_close(short_rate("xcp", &[0, 2], 45.0), 30.75, 0.03);
    assert!(short_rate("ixcp", &[0, 2], 60.0) > 0.95 * SHORT_SHARE);
}

/// P-XCP gives the short flow over 90 % of its share if the long flows' bottleneck is upstream (ixcp-2007 §5). XCP
/// leaves it below 75 %.
#[test]
fn scaled_spare_bandwidth() {
    assert!(short_rate("pxcp", &[2, 0], 45.0) > 0.9 * SHORT_SHARE);
    assert!(short_rate("xcp", &[2, 0], 45.0) < 0.75 * SHORT_SHARE);
}

/// Losing a tenth of the acknowledgements changes no rate, because totals survive the losses.
#[test]
fn lost_acknowledgements_lose_nothing() {
    let rates = |loss| {
        let mut n = network(2.0, link("l", 1e8, 0.05, 1_250_000).to_vec(), vec![flow("f", "xcp", &[0], 2.0); 4]);
        n.links[1].loss = loss;
        n.set_param("xcp", "arithmetic", "kernel");
        let (_, summary) = run(&n);
        [0, 1, 2, 3].map(|i| mbps(&summary, i))
    };
    for (whole, lossy) in rates(0.0).iter().zip(rates(0.1)) {
        assert_close(lossy, *whole, 0.01);
    }
}

#[test]
fn what_a_kernel_cannot_do_is_refused() {
    let mut n = network(2.0, link("l", 1e8, 0.05, 1_250_000).to_vec(), vec![flow("f", "xcp", &[0], 2.0)]);
    n.set_param("xcp", "arithmetic", "kernel");
    n.set_param("xcp", "header", "falk");
    assert!(refusal(n).contains("header: must be \"katabi\" in kernel arithmetic"));
}
