//! Networks for tests, written as the front end would hand them over.

#![allow(dead_code, unreachable_pub, reason = "every test is a crate of its own and uses its part of this")]
#![allow(clippy::needless_pass_by_value, reason = "calls read better")]

use serde_json::{Value, json};
use waterfill_fluid::Fluid;
use waterfill_laws::units::Instant;
use waterfill_network::Network;

/// A duplex link: two directions.
pub fn link(name: &str, rate_bps: f64, delay_s: f64, buffer_bytes: u64) -> [Value; 2] {
    [name.to_string(), format!("{name}:rev")]
        .map(|name| json!({"name": name, "rate_bps": rate_bps, "delay_s": delay_s, "buffer_bytes": buffer_bytes}))
}

/// Flows over links given by their forward directions' indexes.
pub fn flows(name: &str, count: u32, protocol: &str, forward: &[u32], stop_s: f64) -> Value {
    let reverse: Vec<u32> = forward.iter().rev().map(|l| l ^ 1).collect();
    json!({"name": name, "count": count, "protocol": protocol, "forward": forward, "reverse": reverse,
        "start_s": 0.0, "stagger_s": 0.0, "stop_s": stop_s, "size_bytes": null, "pad_s": 0.0, "base_rtt_s": 0.0,
        "weight": 1.0, "demand_bps": null, "initial_window_packets": 10.0, "pacing": null, "delayed_ack": false})
}

/// The same flow, but for one key.
pub fn with(mut flow: Value, key: &str, value: Value) -> Value {
    flow[key] = value;
    flow
}

/// A network measured over its last third.
pub fn network(duration_s: f64, links: Vec<Value>, flows: Vec<Value>) -> Value {
    json!({"name": "test", "seed": 1, "duration_s": duration_s, "measure_s": [duration_s * 2.0 / 3.0, duration_s],
        "sample_s": 0.1, "packet_bytes": 1500, "ack_bytes": 40, "rto_min_s": 1.0, "params": {},
        "links": links, "flows": flows, "traffic": []})
}

/// A fluid of it, before its first step.
pub fn fluid(network: &Value, step_s: Option<f64>) -> Result<Fluid, String> {
    Fluid::new(Network::from_json(&network.to_string())?, step_s)
}

/// Runs it to its end, with a step of its own choice or this one; the summary is the packet simulator's, as JSON.
pub fn run(network: &Value, step_s: Option<f64>) -> (Fluid, Value) {
    let mut fluid = fluid(network, step_s).expect("a valid network");
    let end = fluid.end();
    fluid.advance(end);
    let summary = json!(fluid.summary());
    (fluid, summary)
}

/// Runs it up to a time.
pub fn run_until(network: &Value, s: f64) -> Fluid {
    let mut fluid = fluid(network, None).expect("a valid network");
    fluid.advance(Instant::from_secs(s));
    fluid
}

/// A figure of each flow.
pub fn of_flows(summary: &Value, key: &str) -> Vec<f64> {
    let flows = summary["flows"].as_array().expect("flows");
    flows.iter().map(|flow| flow[key].as_f64().unwrap_or(f64::NAN)).collect()
}

/// `got` is within `share` of `wanted`.
pub fn close(what: &str, got: f64, wanted: f64, share: f64) {
    assert!((got - wanted).abs() <= share * wanted.abs(), "{what}: expected {wanted} within {share}, got {got}");
}
