//! Tests of AECP, RCP and VCP: fixed-point versions (`kernel/<law>.h`) against real numbers, over one and two
//! bottlenecks.
//!
//! Rates on the wire have steps of 4·10⁻⁶ (RCP) and 0.07 % with a residue that is carried (AECP); VCP has codes only, and
//! its fixed-point router writes at arrival. So runs differ packet by packet. AECP has a queue to smooth them, and agrees
//! within 0.5 %. A packet more in RCP's mean queue is βq/(αd̂C) = 0.6 % less load at 100 Mbit/s and 50 ms, and packets of
//! several flows meet in another order; VCP's windows move in steps of an eighth: within 1 and 2 %.

use crate::common::{assert_close, flow, link, network, refusal, run};
use waterfill_network::Network;
use waterfill_network::summary::Summary;

const MEGABIT: f64 = 1e6;

/// Returns the summaries of a network in real numbers and in the fixed-point version.
fn run_both(mut n: Network, protocol: &str) -> [Summary; 2] {
    ["real", "kernel"].map(|arithmetic| {
        n.set_param(protocol, "arithmetic", arithmetic);
        run(&n).1
    })
}

/// Returns a network of links with these rates and 5 ms each. A flow is given by its links, padding in each direction
/// and weight.
fn scenario(protocol: &str, rates_mbps: &[f64], flows: &[(&[u32], f64, f64)], duration_s: f64) -> Network {
    let links = rates_mbps.iter().enumerate();
    let links = links.flat_map(|(i, &rate)| link(&format!("l{i}"), rate * MEGABIT, 0.005, 1_000_000)).collect();
    let flows = flows.iter().enumerate().map(|(i, &(path, pad_s, weight))| {
        let mut flow = flow(&format!("f{i}"), protocol, path, duration_s);
        flow.pad_s = pad_s;
        flow.base_rtt_s = 2.0 * (0.005 * path.len() as f64 + pad_s);
        flow.start_s = 0.1 * i as f64;
        flow.weight = weight;
        flow
    });
    network(duration_s, links, flows.collect())
}

/// Asserts that both versions agree: flow rates within the relative tolerance `rate`, utilizations within
/// `utilization`. Returns the rates of both versions in Mbit/s.
fn agreement(n: Network, protocol: &str, rate: f64, utilization: f64) -> [Vec<f64>; 2] {
    let both = run_both(n, protocol);
    let rates = both
        .each_ref()
        .map(|summary| summary.flows.iter().map(|flow| flow.rate_bps.expect("it ran") / MEGABIT).collect::<Vec<_>>());
    for (real, kernel) in both[0].links.iter().zip(&both[1].links) {
        let off = kernel.utilization - real.utilization;
        assert!(off.abs() < utilization, "{protocol}: utilization of {} is off by {off}", real.name);
    }
    for (real, kernel) in rates[0].iter().zip(&rates[1]) {
        assert_close(*kernel, *real, rate);
    }
    rates
}

/// AECP gives weighted max-min shares, with RTTs of 10 to 100 ms.
#[test]
fn aecp() {
    let flows: &[(&[u32], f64, f64)] = &[(&[0], 0.0, 1.0), (&[0], 0.02, 1.0), (&[0], 0.045, 2.0)];
    let [_, kernel] = agreement(scenario("aecp", &[100.0], flows, 30.0), "aecp", 0.005, 0.001);
    for (rate, share) in kernel.iter().zip([25.0, 25.0, 50.0]) {
        assert_close(*rate, share, 0.01);
    }
    let flows: &[(&[u32], f64, f64)] = &[(&[0, 2], 0.0, 1.0), (&[0], 0.0, 1.0), (&[2], 0.01, 1.0)];
    let [_, kernel] = agreement(scenario("aecp", &[50.0, 100.0], flows, 30.0), "aecp", 0.005, 0.001);
    for (rate, share) in kernel.iter().zip([25.0, 25.0, 75.0]) {
        assert_close(*rate, share, 0.01);
    }
}

/// RCP gives max-min shares, with a weight and with RTTs of 10 to 100 ms.
#[test]
fn rcp() {
    let flows: &[(&[u32], f64, f64)] = &[(&[0], 0.0, 1.0), (&[0], 0.02, 1.0), (&[0], 0.045, 2.0)];
    let [_, kernel] = agreement(scenario("rcp", &[100.0], flows, 15.0), "rcp", 0.01, 0.005);
    for (rate, share) in kernel.iter().zip([25.0, 25.0, 50.0]) {
        assert_close(*rate, share, 0.01);
    }
    let flows: &[(&[u32], f64, f64)] = &[(&[0, 2], 0.0, 1.0), (&[0], 0.0, 1.0), (&[2], 0.01, 1.0)];
    let [_, kernel] = agreement(scenario("rcp", &[50.0, 100.0], flows, 15.0), "rcp", 0.01, 0.005);
    for (rate, share) in kernel.iter().zip([25.0, 25.0, 75.0]) {
        // At 50 Mbit/s and d̂ = 15 ms half a packet in the queue is βq/(αd̂C) = 2 %.
        assert_close(*rate, share, 0.02);
    }
}

/// Both versions of VCP have the same shares, which the law leaves far from max-min after 90 s.
#[test]
fn vcp() {
    let flows: &[(&[u32], f64, f64)] = &[(&[0], 0.045, 1.0), (&[0], 0.045, 1.0), (&[0], 0.045, 1.0)];
    agreement(scenario("vcp", &[100.0], flows, 90.0), "vcp", 0.02, 0.005);
    let flows: &[(&[u32], f64, f64)] = &[(&[0, 2], 0.04, 1.0), (&[0], 0.045, 1.0), (&[2], 0.045, 1.0)];
    agreement(scenario("vcp", &[50.0, 100.0], flows, 90.0), "vcp", 0.02, 0.005);
}

/// Parameters that the kernel's arithmetic does not support are refused in one sentence.
#[test]
fn refusals() {
    let refused = |protocol: &str, name: &str, value: waterfill_network::ParamValue| {
        let mut n = scenario(protocol, &[10.0], &[(&[0], 0.0, 1.0)], 1.0);
        n.set_param(protocol, name, value);
        assert!(n.clone().checked().is_ok(), "real numbers can");
        n.set_param(protocol, "arithmetic", "kernel");
        refusal(n)
    };
    assert!(refused("aecp", "source", "window".into()).contains("\"rate\" in kernel arithmetic"));
    assert!(refused("aecp", "t_2", 2.0.into()).contains("1 ms to 1 s in kernel arithmetic"));
    assert!(refused("rcp", "writes", "departure".into()).contains("\"arrival\" in kernel arithmetic"));
    assert!(refused("rcp", "alpha", 1.5.into()).contains("0.001 to 1 in kernel arithmetic"));
    assert!(refused("vcp", "t_rho", 0.205.into()).contains("times t_q in kernel arithmetic"));
}
