//! Networks for tests, and helpers for their results.

#![allow(unreachable_pub, reason = "seen by every test file, and by nothing outside")]
#![allow(clippy::needless_pass_by_value, reason = "calls read better")]

use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::summary::Summary;
use waterfill_network::{FlowSpec, LinkSpec, Network, ParamValue, Series, TrafficSpec};
use waterfill_sim::Simulation;

/// Returns the two directions of a duplex link.
pub fn link(name: &str, rate_bps: f64, delay_s: f64, buffer_bytes: u64) -> [LinkSpec; 2] {
    let (rate, delay) = (Rate::from_bps(rate_bps), Duration::from_secs(delay_s));
    LinkSpec::duplex(name, rate, delay, Volume::from_bytes(buffer_bytes as f64))
}

/// Returns a flow over links, given by the indexes of their forward directions.
pub fn flow(name: &str, protocol: &str, forward: &[u32], stop_s: f64) -> FlowSpec {
    FlowSpec::new(name, protocol, forward, Duration::from_secs(stop_s))
}

/// Returns a source of packets at a constant rate, from one time to another.
pub fn cbr(name: &str, path: &[u32], rate_bps: f64, span_s: [f64; 2], packet_bytes: u16) -> TrafficSpec {
    let source = TrafficSpec::cbr(name, path, Rate::from_bps(rate_bps), span_s.map(Duration::from_secs));
    TrafficSpec { packet_bytes, ..source }
}

/// Returns a network that is measured over the last third of its run.
pub fn network(duration_s: f64, links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> Network {
    let empty = Network::builder(Duration::from_secs(duration_s));
    empty.with(|network| (network.links, network.flows) = (links, flows)).unchecked()
}

/// Sets parameters of a protocol.
pub fn set(network: &mut Network, protocol: &str, params: &[(&str, ParamValue)]) {
    for (name, value) in params {
        network.set_param(protocol, name, value.clone());
    }
}

/// Returns the error of an invalid network.
pub fn refusal(network: Network) -> String {
    network.checked().expect_err("a network that cannot run")
}

/// Builds a network's simulation.
pub fn build(network: &Network) -> Simulation {
    Simulation::new(network.clone().checked().expect("a valid network")).expect("it builds")
}

/// Runs a network to its end.
pub fn run(network: &Network) -> (Simulation, Summary) {
    let mut sim = build(network);
    let end = sim.end();
    sim.advance(end);
    let summary = sim.summary();
    (sim, summary)
}

/// Runs a network to its end on up to a number of threads.
pub fn run_on(network: &Network, threads: usize) -> (Simulation, Summary) {
    let mut sim = build(network);
    sim.set_threads(Some(threads));
    sim.advance(sim.end());
    let summary = sim.summary();
    (sim, summary)
}

/// Runs a network up to a time.
pub fn run_until(network: &Network, s: f64) -> Simulation {
    let mut sim = build(network);
    sim.advance(Instant::from_secs(s));
    sim
}

/// Returns a column of a series, given its name.
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
