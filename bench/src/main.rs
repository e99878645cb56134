//! Speed and memory of the packet simulator on dumbbells, and of the fluid model on random networks, as one JSON
//! document.
//!
//! `waterfill-bench [NAME]` runs all cases, or the one named. Times are wall times on one core: compare ratios within
//! one run.

mod fluid;

use std::time::Instant as WallInstant;

use serde_json::{Value, json};
use waterfill_laws::units::{Duration, Instant, Rate};
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

fn network(case: &Case) -> Network {
    let (rate, rtt) = (Rate::from_bps(case.rate_bps), Duration::from_secs(case.rtt_s));
    let bdp = rate * rtt;
    // The windows add up to one bandwidth-delay product; a few packets wait, so the pipe is full.
    let packets = (bdp.as_bytes() / 1500.0 / f64::from(case.flows)).floor().max(1.0);
    Network::builder(Duration::from_secs(case.duration_s))
        .link("bottleneck", rate, Duration::from_secs(case.rtt_s / 2.0), bdp)
        .flow("flow", case.protocol, &["bottleneck"])
        .param("window", "packets", packets)
        // With 1,000 starts per second, `promise` keeps MaxNet from granting each of them the whole link.
        .param("maxnet", "promise", true)
        .with(|network| {
            network.sample_s = 1.0;
            let flow = &mut network.flows[0];
            (flow.count, flow.stagger_s, flow.base_rtt_s) = (case.flows, case.stagger_s, case.rtt_s);
        })
        .build()
        .expect("a valid network")
}

/// Runs a case; returns its figures.
fn run(case: &Case) -> Value {
    let mut sim = Simulation::new(network(case)).expect("a valid network");
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
