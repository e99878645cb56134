//! Samples flows, links and traffic sources into the time series.

use waterfill_laws::protocol::Probe;
use waterfill_laws::units::{Duration, Rate, Volume};

use super::Simulation;
use crate::flow::Owner;
use crate::link::Link;

/// Columns of a link's row that the queue discipline fills in.
struct QueueCells<'a> {
    names: &'a [&'static str],
    values: &'a mut [f64],
}

impl Probe for QueueCells<'_> {
    fn record(&mut self, signal: &str, value: f64) {
        let column = self.names.iter().position(|&name| name == signal);
        debug_assert!(column.is_some(), "{signal} is not a column of a queue discipline");
        if let Some(column) = column {
            self.values[column] = value;
        }
    }
}

/// Returns the mean rate since the last sample in bit/s, and stores the total for the next sample.
fn rate_since(sampled: &mut u64, total: u64, lasted_s: f64) -> f64 {
    let bytes = total - std::mem::replace(sampled, total);
    bytes as f64 * 8.0 / lasted_s
}

impl Simulation {
    /// Appends one row per flow, link and traffic source to the time series.
    pub(super) fn take_sample(&mut self) {
        let lasted_s = self.now.since(self.sampled).as_secs();
        self.sampled = self.now;
        self.sample_flows(lasted_s);
        self.sample_links();
        self.sample_traffic(lasted_s);
    }

    fn sample_flows(&mut self, lasted_s: f64) {
        for (i, flow) in self.flows.iter_mut().enumerate() {
            if !matches!(flow.owner, Owner::Group(_)) {
                continue; // reported with its traffic source
            }
            let received = flow.receiver.bytes_total != flow.sampled_bytes;
            if !received && !flow.sender.is_live(self.now) {
                continue; // not started, or finished
            }
            let sender = &flow.sender;
            self.flow_series.push(&[
                self.now.as_secs(),
                i as f64,
                rate_since(&mut flow.sampled_bytes, flow.receiver.bytes_total, lasted_s),
                sender.window().map_or(f64::NAN, Volume::as_bytes),
                sender.pacing().map_or(f64::NAN, Rate::as_bps),
                sender.latest_rtt().map_or(f64::NAN, Duration::as_secs),
                sender.in_flight().as_bytes(),
            ]);
            sender.observe(&mut self.flow_series.newest(flow.protocol));
        }
    }

    fn sample_links(&mut self) {
        let varies = self.links.iter().any(Link::varies);
        for (i, (link, before)) in self.links.iter_mut().zip(&mut self.link_readings).enumerate() {
            let (span, queue_max) = link.sample(self.now, before);
            let row = [
                self.now.as_secs(),
                i as f64,
                span.utilization,
                span.queue_bytes,
                queue_max as f64,
                span.drops as f64,
                span.marks as f64,
                span.lost as f64,
            ];
            let mut of_queue = vec![f64::NAN; self.queue_columns.len()];
            link.observe_queue(&mut QueueCells { names: &self.queue_columns, values: &mut of_queue });
            let capacity: &[f64] = if varies { &[span.capacity.as_bps()] } else { &[] };
            self.link_series.push(&[&row[..], capacity, &of_queue].concat());
            for (id, router) in link.routers() {
                router.observe(&mut self.link_series.newest(*id));
            }
        }
    }

    fn sample_traffic(&mut self, lasted_s: f64) {
        for (i, traffic) in self.traffic.iter_mut().enumerate() {
            let rate = rate_since(&mut traffic.sampled_bytes, traffic.bytes_total, lasted_s);
            let open = traffic.web.as_ref().map_or(f64::NAN, |web| web.open as f64);
            self.traffic_series.push(&[self.now.as_secs(), i as f64, rate, open]);
        }
    }
}
