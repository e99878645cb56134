//! Speed and memory of the packet simulator on dumbbells, and of the fluid model on random networks, as one JSON
//! document.
//!
//! `waterfill-bench [NAME]` runs all cases, or the one named. Times are wall times on one core: compare ratios within
//! one run.

mod fluid;

use std::time::Instant as WallInstant;

use serde_json::{Value, json};
use waterfill_laws::units::Instant;
use waterfill_network::Network;
use waterfill_sim::Simulation;

/// A dumbbell: one bottleneck and its reverse direction.
struct Case {
    name: &'static str,
    protocol: &'static str,
    flows: u32,
    /// Time between the starts of two flows.
    stagger_s: f64,
    rate_bps: f64,
    rtt_s: f64,
    duration_s: f64,
}

const CASES: &[Case] = &[
    Case {
        name: "maxnet-10",
        protocol: "maxnet",
        flows: 10,
        stagger_s: 0.05,
        rate_bps: 1e9,
        rtt_s: 0.05,
        duration_s: 120.0,
    },
    Case {
        name: "window-10",
        protocol: "window",
        flows: 10,
        stagger_s: 0.05,
        rate_bps: 1e9,
        rtt_s: 0.05,
        duration_s: 120.0,
    },
    Case {
        name: "maxnet-10000",
        protocol: "maxnet",
        flows: 10_000,
        stagger_s: 0.001,
        rate_bps: 1e10,
        rtt_s: 0.05,
        duration_s: 20.0,
    },
    Case {
        name: "window-10000",
        protocol: "window",
        flows: 10_000,
        stagger_s: 0.001,
        rate_bps: 1e10,
        rtt_s: 0.05,
        duration_s: 20.0,
    },
];

fn main() {
    let wanted = std::env::args().nth(1);
    let chosen = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let packets = CASES.iter().filter(|case| chosen(case.name)).map(run);
    let fluids = fluid::CASES.iter().filter(|case| chosen(case.name)).map(fluid::run);
    let runs: Vec<Value> = packets.chain(fluids).collect();
    println!("{:#}", json!({ "version": env!("CARGO_PKG_VERSION"), "runs": runs }));
}

/// Returns the case's network in the form that the front end passes to the core.
fn network(case: &Case) -> Value {
    let bdp_bytes = case.rate_bps * case.rtt_s / 8.0;
    // The windows add up to one bandwidth-delay product; a few packets wait, so the pipe is full.
    let packets = (bdp_bytes / 1500.0 / f64::from(case.flows)).floor().max(1.0);
    let link = |name: &str| json!({"name": name, "rate_bps": case.rate_bps, "delay_s": case.rtt_s / 2.0, "buffer_bytes": bdp_bytes as u64});
    json!({
        "name": case.name, "seed": 1, "duration_s": case.duration_s, "measure_s": [case.duration_s * 2.0 / 3.0, case.duration_s],
        "sample_s": 1.0, "packet_bytes": 1500, "ack_bytes": 40, "rto_min_s": 1.0,
        // With 1,000 starts per second, `promise` keeps MaxNet from granting each of them the whole link.
        "params": {"window": {"packets": packets}, "maxnet": {"promise": true}},
        "links": [link("bottleneck"), link("bottleneck:rev")],
        "flows": [{"name": "flow", "count": case.flows, "protocol": case.protocol, "forward": [0], "reverse": [1],
            "start_s": 0.0, "stagger_s": case.stagger_s, "stop_s": case.duration_s,
            "size_bytes": null, "pad_s": 0.0, "base_rtt_s": case.rtt_s, "weight": 1.0, "demand_bps": null,
            "initial_window_packets": 10.0, "pacing": null, "delayed_ack": false}],
    })
}

/// Runs a case; returns its figures.
fn run(case: &Case) -> Value {
    let network = Network::from_json(&network(case).to_string()).expect("a valid network");
    let mut sim = Simulation::new(network).expect("a valid network");
    let started = WallInstant::now();
    sim.advance(Instant::from_secs(case.duration_s));
    let wall_s = started.elapsed().as_secs_f64();
    let summary = sim.summary();
    let sent: u64 = summary.flows.iter().map(|f| f.packets_sent).sum();
    let ledger = sim.ledger();
    // Only the bottleneck drops packets: acknowledgements load the reverse direction by 40/1500.
    let crossed = sent - ledger.dropped;
    let (flow_bytes, path_bytes) = sim.heap_bytes();
    json!({
        "name": case.name, "protocol": case.protocol, "flows": case.flows, "rate_bps": case.rate_bps, "rtt_s": case.rtt_s,
        "simulated_s": case.duration_s, "wall_s": wall_s,
        "bottleneck_packets_per_s": crossed as f64 / wall_s,
        "packet_hops_per_s": summary.engine.packet_hops as f64 / wall_s,
        "events_per_s": summary.engine.events as f64 / wall_s,
        "utilization": summary.links[0].utilization,
        "bytes_per_flow": flow_bytes as f64 / f64::from(case.flows),
        "bytes_per_packet": path_bytes as f64 / ledger.in_transit.max(1) as f64,
        "packets_in_transit": ledger.in_transit,
    })
}
