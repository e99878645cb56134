//! Networks for tests, in the form that the front end passes to the core, and helpers for their results.

#![allow(dead_code, unreachable_pub, reason = "each test file is a crate of its own and uses a part of this")]
#![allow(clippy::needless_pass_by_value, reason = "calls read better")]

use serde_json::{Value, json};
use waterfill_laws::units::Instant;
use waterfill_network::summary::Summary;
use waterfill_network::{Network, Series};
use waterfill_sim::Simulation;

/// Returns the two directions of a duplex link.
pub fn link(name: &str, rate_bps: f64, delay_s: f64, buffer_bytes: u64) -> [Value; 2] {
    [name.to_string(), format!("{name}:rev")]
        .map(|name| json!({"name": name, "rate_bps": rate_bps, "delay_s": delay_s, "buffer_bytes": buffer_bytes}))
}

/// Returns a flow over links, given by the indexes of their forward directions.
pub fn flow(name: &str, protocol: &str, forward: &[u32], stop_s: f64) -> Value {
    let reverse: Vec<u32> = forward.iter().rev().map(|l| l ^ 1).collect();
    json!({"name": name, "count": 1, "protocol": protocol, "forward": forward, "reverse": reverse,
        "start_s": 0.0, "stagger_s": 0.0, "stop_s": stop_s, "size_bytes": null, "pad_s": 0.0, "base_rtt_s": 0.0,
        "weight": 1.0, "demand_bps": null, "initial_window_packets": 10.0, "pacing": null, "delayed_ack": false})
}

/// Returns a network that is measured over its last third.
pub fn network(duration_s: f64, links: Vec<Value>, flows: Vec<Value>) -> Value {
    json!({"name": "test", "seed": 1, "duration_s": duration_s, "measure_s": [duration_s * 2.0 / 3.0, duration_s],
        "sample_s": 0.1, "packet_bytes": 1500, "ack_bytes": 40, "rto_min_s": 1.0, "params": {},
        "links": links, "flows": flows, "traffic": []})
}

/// Builds a network's simulation.
pub fn build(network: &Value) -> Simulation {
    Simulation::new(Network::from_json(&network.to_string()).expect("a valid network")).expect("it builds")
}

/// Runs a network to its end.
pub fn run(network: &Value) -> (Simulation, Summary) {
    let mut sim = build(network);
    let end = sim.end();
    sim.advance(end);
    let summary = sim.summary();
    (sim, summary)
}

/// Runs a network up to a time.
pub fn run_until(network: &Value, s: f64) -> Simulation {
    let mut sim = build(network);
    sim.advance(Instant::from_secs(s));
    sim
}

/// Returns a column of a series.
pub fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    let index = series.names().iter().position(|n| n == name);
    &series.columns()[index.unwrap_or_else(|| panic!("no column {name} in {:?}", series.names()))]
}

/// Returns the mean of some values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Asserts that `a` equals `b` within a relative tolerance.
pub fn assert_close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b} within {relative}");
}

/// Asserts that `a` equals `b` within an absolute tolerance; `what` names the quantity.
pub fn assert_within(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance, "{what}: {a} is not {b} within {tolerance}");
}
