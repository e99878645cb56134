//! MaxNet of 2007 in the kernel's integers beside real numbers: `kernel/maxnet.h` is what these networks run.
//!
//! What may differ, reckoned before any run: of a rate, 1.1·10⁻⁶ by the exponential, 4·10⁻⁶ by a code and 1/(2τ) by the whole
//! microsecond of a round trip of 20 ms or more, together below 4·10⁻⁵; of a window, a packet, because hosts send whole
//! packets and two runs need not round at the same time. Flows here have windows of 200 packets or more, so a mean rate
//! may differ by half a per cent at most; a link, whose router sees all of it, by 5·10⁻⁴.

mod common;

use common::{flow, link, network, run};
use serde_json::{Value, json};
use waterfill_network::summary::Summary;

const FLOW_BOUND: f64 = 5e-3;
const LINK_BOUND: f64 = 5e-4;

/// Paced flows, (name, links, padding on each side), half a second after one another, over links of 400 Mbit/s and 10 ms with 20 ms of buffer.
fn scenario(links: usize, flows: &[(&str, &[u32], f64)]) -> Value {
    let links = (0..links).flat_map(|i| link(&format!("l{i}"), 4e8, 0.010, 1_000_000)).collect();
    let flows = flows
        .iter()
        .enumerate()
        .map(|(i, &(name, path, pad_s))| {
            let mut flow = flow(name, "maxnet", path, 9.0);
            flow["start_s"] = json!(0.5 * i as f64);
            flow["pad_s"] = json!(pad_s);
            flow["base_rtt_s"] = json!(2.0 * (0.010 * path.len() as f64 + pad_s));
            flow["pacing"] = json!(true);
            flow
        })
        .collect();
    network(9.0, links, flows)
}

fn in_both(mut n: Value) -> [Summary; 2] {
    ["real", "kernel"].map(|arithmetic| {
        n["params"]["maxnet"] = json!({"arithmetic": arithmetic});
        run(&n).1
    })
}

fn alike(n: Value) -> Summary {
    let [real, kernel] = in_both(n);
    for (a, b) in real.flows.iter().zip(&kernel.flows) {
        let off = b.rate_bps.unwrap() / a.rate_bps.unwrap() - 1.0;
        assert!(off.abs() < FLOW_BOUND, "{}: {off}", a.name);
    }
    for (a, b) in real.links.iter().zip(&kernel.links) {
        // A link that carries acknowledgements only has hardly anything to compare.
        let off = b.utilization - a.utilization;
        assert!(off.abs() < LINK_BOUND, "{}: {off}", a.name);
        assert!((b.queue_bytes.mean - a.queue_bytes.mean).abs() < 1500.0, "{}", a.name);
    }
    kernel
}

fn rate(summary: &Summary, flow: usize) -> f64 {
    summary.flows[flow].rate_bps.expect("it ran")
}

/// Three flows of one round trip: 120 Mbit/s each are 200 packets at 20 ms.
#[test]
fn a_dumbbell() {
    let kernel = alike(scenario(1, &[("a", &[0], 0.0), ("b", &[0], 0.0), ("c", &[0], 0.0)]));
    for flow in 0..3 {
        assert!((rate(&kernel, flow) / 1.2e8 - 1.0).abs() < 0.01, "{}", rate(&kernel, flow));
    }
}

/// 20 and 60 ms: equal shares all the same.
#[test]
fn two_round_trips() {
    let kernel = alike(scenario(1, &[("near", &[0], 0.0), ("far", &[0], 0.020)]));
    for flow in 0..2 {
        assert!((rate(&kernel, flow) / 1.8e8 - 1.0).abs() < 0.01, "{}", rate(&kernel, flow));
    }
}

/// A flow over three links beside one on each, and two on the last: max-min shares, a third on the last and the rest elsewhere.
#[test]
fn a_parking_lot() {
    let all: &[u32] = &[0, 2, 4];
    let flows = [("long", all, 0.0), ("s0", &[0][..], 0.0), ("s1", &[2], 0.0), ("s2", &[4], 0.0), ("s3", &[4], 0.0)];
    let kernel = alike(scenario(3, &flows));
    for (flow, share) in [1.2e8, 2.4e8, 2.4e8, 1.2e8, 1.2e8].into_iter().enumerate() {
        assert!((rate(&kernel, flow) / share - 1.0).abs() < 0.01, "{flow}: {}", rate(&kernel, flow));
    }
}

/// Round trips that shrink while a flow runs: with `compensate` the rate does not notice, in integers as in real numbers.
#[test]
fn a_shorter_round_trip_is_compensated() {
    let mut n = scenario(1, &[("a", &[0], 0.0)]);
    // 1 ms of buffer on the way back, kept full until 3 s: until then no packet knows a shorter way.
    n["links"][1]["buffer_bytes"] = json!(50_000);
    n["traffic"] = json!([{"name": "back", "kind": "cbr", "path": [1], "rate_bps": 4.04e8, "start_s": 0.0,
        "stop_s": 3.0, "packet_bytes": 1500}]);
    n["flows"][0]["start_s"] = json!(0.3);
    n["sample_s"] = json!(0.01);
    let mut lowest = |arithmetic: &str, compensate: bool| {
        n["params"]["maxnet"] = json!({"arithmetic": arithmetic, "compensate": compensate});
        let (sim, _) = run(&n);
        let series = &sim.series()[0];
        let column = |name: &str| &series.columns()[series.names().iter().position(|n| n == name).expect("a column")];
        let windows = column("time_s").iter().zip(column("window_bytes"));
        let least = |from, to| {
            let within = windows.clone().filter(|(t, _)| (from..to).contains(*t)).map(|(_, w)| *w);
            within.fold(f64::INFINITY, f64::min)
        };
        least(3.0, 3.3) / least(2.5, 3.0)
    };
    // Without, x falls at once by exp(−0.66 · q · (1/0.020 − 1/0.021)), and q = 5.93 makes that a factor of 10⁴.
    assert!(lowest("kernel", false) < 0.1);
    for arithmetic in ["real", "kernel"] {
        let lowest = lowest(arithmetic, true);
        assert!((lowest / (20.0 / 21.0) - 1.0).abs() < 0.02, "{arithmetic}: {lowest}");
    }
}
