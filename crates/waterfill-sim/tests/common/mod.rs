//! Networks for tests, written as the front end would hand them over.

#![allow(dead_code, unreachable_pub, reason = "every test is a crate of its own and uses its part of this")]
#![allow(clippy::needless_pass_by_value, reason = "calls read better")]

use serde_json::{Value, json};
use waterfill_laws::units::Instant;
use waterfill_network::Network;
use waterfill_network::summary::Summary;
use waterfill_sim::Simulation;

/// A duplex link: two directions.
pub fn link(name: &str, rate_bps: f64, delay_s: f64, buffer_bytes: u64) -> [Value; 2] {
    [name.to_string(), format!("{name}:rev")]
        .map(|name| json!({"name": name, "rate_bps": rate_bps, "delay_s": delay_s, "buffer_bytes": buffer_bytes}))
}

/// A flow over links given by their forward directions' indexes.
pub fn flow(name: &str, protocol: &str, forward: &[u32], stop_s: f64) -> Value {
    let reverse: Vec<u32> = forward.iter().rev().map(|l| l ^ 1).collect();
    json!({"name": name, "count": 1, "protocol": protocol, "forward": forward, "reverse": reverse,
        "start_s": 0.0, "stagger_s": 0.0, "stop_s": stop_s, "size_bytes": null, "pad_s": 0.0, "base_rtt_s": 0.0,
        "weight": 1.0, "demand_bps": null, "initial_window_packets": 10.0, "pacing": null, "delayed_ack": false})
}

/// A network measured over its last third.
pub fn network(duration_s: f64, links: Vec<Value>, flows: Vec<Value>) -> Value {
    json!({"name": "test", "seed": 1, "duration_s": duration_s, "measure_s": [duration_s * 2.0 / 3.0, duration_s],
        "sample_s": 0.1, "packet_bytes": 1500, "ack_bytes": 40, "rto_min_s": 1.0, "params": {},
        "links": links, "flows": flows, "traffic": []})
}

/// Runs it to its end.
pub fn run(network: &Value) -> (Simulation, Summary) {
    let mut sim =
        Simulation::new(Network::from_json(&network.to_string()).expect("a valid network")).expect("it builds");
    let end = sim.end();
    sim.advance(end);
    let summary = sim.summary();
    (sim, summary)
}

/// Runs it up to a time.
pub fn run_until(network: &Value, s: f64) -> Simulation {
    let mut sim =
        Simulation::new(Network::from_json(&network.to_string()).expect("a valid network")).expect("it builds");
    sim.advance(Instant::from_secs(s));
    sim
}
