//! Tests of MaxNet of 2007: its fixed-point version (`kernel/maxnet.h`) against real numbers, and the additions of the
//! kernel's host program (`kernel/host.h`).
//!
//! Bounds computed before any run: a rate may differ by 1.1·10⁻⁶ by the exponential, 4·10⁻⁶ by a code, and 1/(2τ) by
//! the whole microsecond of an RTT of 20 ms or more, together below 4·10⁻⁵. A window may differ by one packet: hosts
//! send whole packets, and two runs may round at different times. Flows here have windows of 200 packets or more, so a
//! mean rate may differ by up to half a per cent, and a link's utilization, which includes all flows, by 5·10⁻⁴.

use crate::common::{cbr, column, flow, link, network, run};
use waterfill_network::summary::Summary;
use waterfill_network::{BufferSpec, Network};

const FLOW_BOUND: f64 = 5e-3;
const LINK_BOUND: f64 = 5e-4;

/// Returns a network of paced flows (name, links, padding in each direction) that start half a second apart. Links have
/// 400 Mbit/s, 10 ms and a buffer of 20 ms.
fn scenario(links: usize, flows: &[(&str, &[u32], f64)]) -> Network {
    let links = (0..links).flat_map(|i| link(&format!("l{i}"), 4e8, 0.010, 1_000_000)).collect();
    let flows = flows
        .iter()
        .enumerate()
        .map(|(i, &(name, path, pad_s))| {
            let mut flow = flow(name, "maxnet", path, 9.0);
            flow.start_s = 0.5 * i as f64;
            flow.pad_s = pad_s;
            flow.base_rtt_s = 2.0 * (0.010 * path.len() as f64 + pad_s);
            flow.pacing = Some(true);
            flow
        })
        .collect();
    network(9.0, links, flows)
}

/// Returns the summaries of a network in real numbers and in the fixed-point version.
fn run_both(mut n: Network) -> [Summary; 2] {
    ["real", "kernel"].map(|arithmetic| {
        n.set_param("maxnet", "arithmetic", arithmetic);
        run(&n).1
    })
}

/// Asserts that both versions agree within the bounds. Returns the fixed-point version's summary.
fn assert_agreement(n: Network) -> Summary {
    let [real, kernel] = run_both(n);
    for (a, b) in real.flows.iter().zip(&kernel.flows) {
        let off = b.rate_bps.unwrap() / a.rate_bps.unwrap() - 1.0;
        assert!(off.abs() < FLOW_BOUND, "{}: {off}", a.name);
    }
    for (a, b) in real.links.iter().zip(&kernel.links) {
        // Absolute, since a link that carries only acknowledgements has almost no load.
        let off = b.utilization - a.utilization;
        assert!(off.abs() < LINK_BOUND, "{}: {off}", a.name);
        assert!((b.queue_bytes.mean - a.queue_bytes.mean).abs() < 1500.0, "{}", a.name);
    }
    kernel
}

fn rate(summary: &Summary, flow: usize) -> f64 {
    summary.flows[flow].rate_bps.expect("it ran")
}

/// Three flows with one RTT get 120 Mbit/s each, which is 200 packets at 20 ms.
#[test]
fn a_dumbbell() {
    let kernel = assert_agreement(scenario(1, &[("a", &[0], 0.0), ("b", &[0], 0.0), ("c", &[0], 0.0)]));
    for flow in 0..3 {
        assert!((rate(&kernel, flow) / 1.2e8 - 1.0).abs() < 0.01, "{}", rate(&kernel, flow));
    }
}

/// Flows with RTTs of 20 and 60 ms get equal shares.
#[test]
fn two_rtts() {
    let kernel = assert_agreement(scenario(1, &[("near", &[0], 0.0), ("far", &[0], 0.020)]));
    for flow in 0..2 {
        assert!((rate(&kernel, flow) / 1.8e8 - 1.0).abs() < 0.01, "{}", rate(&kernel, flow));
    }
}

/// Flows over three links get max-min shares: a third of the last link, and the rest of the other links. One flow
/// crosses all links, one more crosses each of the first two, and two more cross the last.
#[test]
fn a_parking_lot() {
    let all: &[u32] = &[0, 2, 4];
    let flows = [("long", all, 0.0), ("s0", &[0][..], 0.0), ("s1", &[2], 0.0), ("s2", &[4], 0.0), ("s3", &[4], 0.0)];
    let kernel = assert_agreement(scenario(3, &flows));
    for (flow, share) in [1.2e8, 2.4e8, 2.4e8, 1.2e8, 1.2e8].into_iter().enumerate() {
        assert!((rate(&kernel, flow) / share - 1.0).abs() < 0.01, "{flow}: {}", rate(&kernel, flow));
    }
}

/// A flow whose RTT falls keeps its rate with `compensate`, in both versions.
#[test]
fn a_shorter_rtt_is_compensated() {
    let mut n = scenario(1, &[("a", &[0], 0.0)]);
    // 1 ms of buffer on the reverse link is kept full until 3 s; until then no RTT is shorter.
    n.links[1].buffer = BufferSpec::Bytes(50_000);
    n.traffic = vec![cbr("back", &[1], 4.04e8, [0.0, 3.0], 1500)];
    n.flows[0].start_s = 0.3;
    n.sample_s = 0.01;
    let mut lowest = |arithmetic: &str, compensate: bool| {
        n.set_param("maxnet", "arithmetic", arithmetic);
        n.set_param("maxnet", "compensate", compensate);
        let (sim, _) = run(&n);
        let flows = sim.series()[0];
        let windows = column(flows, "time_s").iter().zip(column(flows, "window_bytes"));
        let min = |from, to| {
            let within = windows.clone().filter(|(t, _)| (from..to).contains(*t)).map(|(_, w)| *w);
            within.fold(f64::INFINITY, f64::min)
        };
        min(3.0, 3.3) / min(2.5, 3.0)
    };
    // Without `compensate`, x falls at once by exp(−0.66 · q · (1/0.020 − 1/0.021)), and q = 5.93 makes that a factor
    // of 10⁴.
    assert!(lowest("kernel", false) < 0.1);
    for arithmetic in ["real", "kernel"] {
        let lowest = lowest(arithmetic, true);
        assert!((lowest / (20.0 / 21.0) - 1.0).abs() < 0.02, "{arithmetic}: {lowest}");
    }
}

/// The kernel's host program gives the same mean rates for windows of 200 packets and more, because the price sets the
/// rates.
#[test]
fn the_kernels_host_gives_the_same_rates() {
    let mut n = scenario(1, &[("near", &[0], 0.0), ("far", &[0], 0.020)]);
    let [kernel, host] = ["kernel", "kernel-host"].map(|arithmetic| {
        n.set_param("maxnet", "arithmetic", arithmetic);
        n.flows.iter_mut().for_each(|flow| flow.pacing = None);
        run(&n).1
    });
    for flow in 0..2 {
        assert!((rate(&host, flow) / 1.8e8 - 1.0).abs() < 0.01, "{}", rate(&host, flow));
    }
    assert!((host.links[0].utilization - kernel.links[0].utilization).abs() < 0.005);
    assert_eq!(host.links[0].drops, 0);
}

/// A hundred flows on 10 Mbit/s with RTTs of 20 ms get 0.15 packets per RTT each. The bare law sends one packet per
/// RTT, which builds a queue. The kernel's host program paces below one packet per RTT and holds the target.
#[test]
fn the_kernels_host_sends_less_than_a_packet_per_rtt() {
    let links = link("l0", 1e7, 0.010, 250_000).into();
    let mut crowd = flow("crowd", "maxnet", &[0], 60.0);
    crowd.base_rtt_s = 0.020;
    crowd.count = 100;
    crowd.stagger_s = 0.1;
    let mut n = network(60.0, links, vec![crowd]);
    n.measure_s = [40.0, 60.0];
    let mut with = |arithmetic: &str| {
        n.set_param("maxnet", "arithmetic", arithmetic);
        run(&n).1
    };
    let (bare, host) = (with("kernel"), with("kernel-host"));
    let (utilization, queue) = (bare.links[0].utilization, bare.links[0].queue_bytes.mean);
    // A packet each, less what 20 ms of the link hold.
    assert!(utilization > 0.99 && queue > 75.0 * 1500.0, "{utilization}, {queue}");
    let (utilization, queue) = (host.links[0].utilization, host.links[0].queue_bytes.mean);
    assert!((utilization / 0.9 - 1.0).abs() < 0.05 && queue < 5.0 * 1500.0, "{utilization}, {queue}");
}
