//! Estimates of a fluid run's memory and CPU time, from the fluid in transit, the series and the parcels.

use waterfill_laws::math;
use waterfill_laws::registry::AnyHeader;
use waterfill_network::estimate::{Estimate, Need, entries};
use waterfill_network::{FlowSpec, Network};

use crate::class::{Class, FEEDBACK_BYTES};
use crate::engine::check;
use crate::plan;
use crate::report::MAX_EXPANDED;

/// CPU time per parcel in seconds, on a CPU of 2020.
const EVENT_S: f64 = 4e-8;
/// Bytes of memory for a parcel's volume and age.
const VOLUME_BYTES: f64 = 16.0;
/// Growth factor of a history's memory. The old and new copies exist together while a history doubles.
const GROWTH: f64 = 1.5;

/// Estimates the cost of a checked network in the fluid model. `step_s` has the same meaning as in
/// [`crate::Fluid::new`].
///
/// The test against measured runs is `tests/python/runs/test_estimate.py`.
///
/// # Errors
/// One sentence: what the fluid model does not have, or a step that does not fit the network.
pub fn estimate(network: &Network, step_s: Option<f64>) -> Result<Estimate, String> {
    check(network)?;
    let step = plan::step(network, step_s)?.as_secs();
    let mut estimate = Estimate::default();
    let steps = network.duration_s / step;
    // Powers of two; no more than the run has steps, but for padding, which is there from the start.
    let rows = |seconds: f64| math::exp2(math::log2(seconds / step + 2.0).ceil());
    let kept = |seconds: f64| rows(seconds.min(network.duration_s));
    let history = |need: &mut Need, bytes: f64, key: String| {
        need.add(bytes * GROWTH, || if step_s.is_some() { "step".into() } else { key });
    };
    for flow in &network.flows {
        let classes = if flow.differ() { f64::from(flow.count) } else { 1.0 };
        let key = || format!("flow.{}.rtt", flow.name);
        let pads_s = flow.pad_jitter_s.iter().copied().fold(0.0, f64::max) + flow.pad_s;
        let own = rows(2.0 * pads_s) * 8.0 + kept(flow.base_rtt_s) * FEEDBACK_BYTES as f64;
        history(&mut estimate.bytes, classes * own, key());
        estimate.bytes.add(classes * size_of::<Class>() as f64, || format!("flow.{}.count", flow.name));
        for (path, bytes) in
            [(&flow.forward, VOLUME_BYTES + size_of::<AnyHeader>() as f64), (&flow.reverse, VOLUME_BYTES)]
        {
            for &l in path {
                let link = &network.links[l as usize];
                let sending_s = f64::from(network.packet_bytes) * 8.0 / link.rate_bps;
                let held_s = link.delay_s + sending_s; // a queue that grows takes more
                history(&mut estimate.bytes, classes * kept(held_s) * bytes, format!("link.{}.delay", link.name));
            }
        }
        let parcels = classes * (flow.forward.len() + flow.reverse.len() + 2) as f64;
        estimate.events.add(steps * parcels, || if step_s.is_some() { "step".into() } else { key() });
    }
    estimate.add_timers(network);
    let all: u64 = network.flows.iter().map(|flow| u64::from(flow.count)).sum();
    let per_entry = |flow: &FlowSpec| match (all <= MAX_EXPANDED, flow.differ()) {
        (true, _) | (_, true) => f64::from(flow.count),
        _ => 1.0,
    };
    estimate.add_series(network, &entries(network), per_entry);
    estimate.cpu_s = estimate.events.total * EVENT_S;
    Ok(estimate)
}
