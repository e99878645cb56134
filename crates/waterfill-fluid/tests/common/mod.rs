//! Networks for the fluid model's tests, and helpers that check results.

#![allow(unreachable_pub, reason = "seen by every test file, and by nothing outside")]

use waterfill_fluid::Fluid;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::summary::Summary;
use waterfill_network::{FlowSpec, LinkSpec, Network};

/// Returns the two directions of a duplex link.
pub fn link(name: &str, rate_bps: f64, delay_s: f64, buffer_bytes: u64) -> [LinkSpec; 2] {
    let (rate, delay) = (Rate::from_bps(rate_bps), Duration::from_secs(delay_s));
    LinkSpec::duplex(name, rate, delay, Volume::from_bytes(buffer_bytes as f64))
}

/// Returns a group of flows over the links with these forward indices.
pub fn flows(name: &str, count: u32, protocol: &str, forward: &[u32], stop_s: f64) -> FlowSpec {
    FlowSpec { count, ..FlowSpec::new(name, protocol, forward, Duration::from_secs(stop_s)) }
}

/// Returns a network whose measurement window is the last third of the run.
pub fn network(duration_s: f64, links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> Network {
    let empty = Network::builder(Duration::from_secs(duration_s));
    empty.with(|network| (network.links, network.flows) = (links, flows)).unchecked()
}

/// Builds a network's fluid model.
pub fn fluid(network: &Network, step_s: Option<f64>) -> Result<Fluid, String> {
    Fluid::new(network.clone().checked()?, step_s)
}

/// Runs a network to its end, with its default step or with `step_s`.
pub fn run(network: &Network, step_s: Option<f64>) -> (Fluid, Summary) {
    let mut fluid = fluid(network, step_s).expect("a valid network");
    let end = fluid.end();
    fluid.advance(end);
    let summary = fluid.summary();
    (fluid, summary)
}

/// Runs a network up to a time.
pub fn run_until(network: &Network, s: f64) -> Fluid {
    let mut fluid = fluid(network, None).expect("a valid network");
    fluid.advance(Instant::from_secs(s));
    fluid
}

/// Returns each flow's rate, in bit/s.
pub fn rates(summary: &Summary) -> Vec<f64> {
    summary.flows.iter().map(|flow| flow.rate_bps.unwrap_or(f64::NAN)).collect()
}

/// Asserts that `got` equals `wanted` within a relative tolerance; `what` names the quantity.
pub fn assert_close(what: &str, got: f64, wanted: f64, relative: f64) {
    let difference = (got - wanted).abs();
    assert!(difference <= relative * wanted.abs(), "{what}: expected {wanted} within {relative}, got {got}");
}
