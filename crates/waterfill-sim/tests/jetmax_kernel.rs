//! Tests of JetMax: its fixed-point version (`kernel/jetmax.h`) against real numbers.
//!
//! Rates on the wire are within 2⁻²⁰, so runs differ by when packets fall into an interval: one packet of the hundred or
//! more that a flow sends per interval here. Over five seconds that is less than 0.1 % of a mean rate.

use crate::common::{assert_close, cbr, flow, link, network, run};
use waterfill_network::summary::Summary;
use waterfill_network::{FlowSpec, LinkSpec, Network};

/// Default target utilization γ.
const GAMMA: f64 = 0.95;

/// Returns a chain of links of 10 ms each, with buffers that never fill.
fn hops(rates_mbps: &[f64]) -> Vec<LinkSpec> {
    rates_mbps.iter().enumerate().flat_map(|(i, rate)| link(&format!("l{i}"), rate * 1e6, 0.01, 1 << 26)).collect()
}

/// Returns a flow over a range of hops whose access adds `pad_s` in each direction.
fn over(name: &str, hops: std::ops::RangeInclusive<u32>, pad_s: f64, stop_s: f64) -> FlowSpec {
    let forward: Vec<u32> = hops.map(|hop| 2 * hop).collect();
    let mut flow = flow(name, "jetmax", &forward, stop_s);
    flow.pad_s = pad_s;
    flow
}

fn bps(summary: &Summary, flow: usize) -> f64 {
    summary.flows[flow].rate_bps.expect("it ran")
}

/// Returns the fixed-point version's summary after checking that both versions agree.
fn run_both(mut n: Network) -> Summary {
    let [real, kernel] = ["real", "kernel"].map(|arithmetic| {
        n.set_param("jetmax", "arithmetic", arithmetic);
        run(&n).1
    });
    for i in 0..real.flows.len() {
        assert_close(bps(&kernel, i), bps(&real, i), 0.001);
    }
    for (real, kernel) in real.links.iter().zip(&kernel.links) {
        assert!((kernel.utilization - real.utilization).abs() < 0.001, "{}", real.name);
        assert!((kernel.queue_packets.mean - real.queue_packets.mean).abs() < 0.2, "{}", real.name);
        assert_eq!(kernel.drops, 0);
    }
    kernel
}

/// Both versions agree on five links of different rates, with one flow over all of them and one over each.
#[test]
fn a_parking_lot() {
    let mut flows = vec![over("long", 0..=4, 0.0, 15.0)];
    flows.extend((0..5u32).map(|i| over("short", i..=i, 0.025 * f64::from(i), 15.0)));
    let rates = [100.0, 80.0, 60.0, 90.0, 70.0];
    let kernel = run_both(network(15.0, hops(&rates), flows));
    let long = GAMMA * 60e6 / 2.0;
    assert_close(bps(&kernel, 0), long, 0.002);
    for (i, rate) in rates.iter().enumerate() {
        assert_close(bps(&kernel, i + 1), GAMMA * rate * 1e6 - long, 0.002);
    }
}

/// Both versions agree with weights and uncontrolled traffic. A weight of 0.3 is 0.297 on the wire.
#[test]
fn weights_and_uncontrolled_traffic() {
    let mut flows = vec![over("plain", 0..=0, 0.0, 12.0), over("double", 0..=0, 0.02, 12.0)];
    flows[1].weight = 2.0;
    let mut n = network(12.0, hops(&[100.0]), flows);
    n.traffic = vec![cbr("cbr", &[0], 20e6, [2.0, 12.0], 1500)];
    let kernel = run_both(n.clone());
    let share = (GAMMA * 100e6 - 20e6) / 3.0;
    assert_close(bps(&kernel, 0), share, 0.002);
    assert_close(bps(&kernel, 1), 2.0 * share, 0.002);
    n.set_param("jetmax", "arithmetic", "kernel");
    n.flows[1].weight = 0.3;
    let (_, kernel) = run(&n);
    assert_close(bps(&kernel, 1) / bps(&kernel, 0), 19.0 / 64.0, 0.002);
}

/// The long flow's bottleneck moves to the first link at 5 s and back at 10 s.
#[test]
fn a_flow_follows_its_bottleneck_and_returns() {
    let mut flows = vec![over("long", 0..=1, 0.0, 15.0)];
    flows.extend([0.02, 0.045].map(|pad| over("guest", 0..=0, pad, 10.0)));
    for guest in &mut flows[1..] {
        guest.start_s = 5.0;
    }
    for (measure_s, long) in
        [([2.0, 5.0], GAMMA * 60e6), ([7.0, 10.0], GAMMA * 100e6 / 3.0), ([12.0, 15.0], GAMMA * 60e6)]
    {
        let mut n = network(15.0, hops(&[100.0, 60.0]), flows.clone());
        n.measure_s = measure_s;
        n.set_param("jetmax", "arithmetic", "kernel");
        let (_, summary) = run(&n);
        assert_close(bps(&summary, 0), long, 0.01);
        assert_eq!(summary.links.iter().map(|l| l.drops).sum::<u64>(), 0);
    }
}
