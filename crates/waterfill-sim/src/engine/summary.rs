//! Computes the summary of a run: per flow, link and traffic source, over the measurement window.

use waterfill_laws::units::Instant;
use waterfill_network::summary::{
    CompletionSummary, EngineSummary, FlowSummary, LinkSummary, RttSummary, Summary, TrafficSummary, WebSummary,
};

use super::Simulation;
use crate::flow::{Flow, Owner};
use crate::traffic::{CompletionTimes, FlowTotals, Traffic};

impl Simulation {
    /// Returns the summary of the run up to now, over the elapsed part of the measurement window.
    pub fn summary(&mut self) -> Summary {
        let now = self.now();
        let flows = self.flows.iter().filter_map(|flow| self.flow_summary(flow, now)).collect();
        let totals = self.flow_totals();
        let traffic = self.traffic.iter().zip(&totals).map(|(t, totals)| traffic_summary(t, totals, now)).collect();
        let engine =
            EngineSummary { packet_hops: self.packet_hops(), events: self.events(), ..EngineSummary::default() };
        let names = self.network.links.iter().map(|spec| spec.name.clone());
        let links = names
            .zip(&mut self.links)
            .map(|(name, link)| {
                let result = link.result(now);
                LinkSummary {
                    name,
                    utilization: result.utilization,
                    queue_bytes: result.queue_bytes,
                    queue_packets: result.queue_packets,
                    drops: result.drops,
                    marks: result.marks,
                    lost: result.lost,
                }
            })
            .collect();
        Summary { flows, links, traffic, engine }
    }

    /// Returns the totals of each traffic source's flows, both finished and open.
    fn flow_totals(&self) -> Vec<FlowTotals> {
        let finished = |t: &Traffic| t.web.as_ref().map(|web| web.finished.clone()).unwrap_or_default();
        let mut totals: Vec<FlowTotals> = self.traffic.iter().map(finished).collect();
        for flow in &self.flows {
            if let Owner::Traffic(t) = flow.owner {
                totals[t as usize].add(flow, self.traffic[t as usize].counted);
            }
        }
        totals
    }

    fn flow_summary(&self, flow: &Flow, now: Instant) -> Option<FlowSummary> {
        let Owner::Group(group) = flow.owner else { return None };
        let spec = &self.network.flows[group as usize];
        let index = flow.sender.spec.index;
        let name = if spec.count > 1 { format!("{}[{index}]", spec.name) } else { spec.name.clone() };
        let start_s = match flow.sender.spec.start {
            _ if spec.after.is_empty() => spec.start_of_s(index),
            Instant::NEVER => spec.stop_s,
            start => start.as_secs().min(spec.stop_s),
        };
        let until = flow.receiver.completed.unwrap_or(Instant::NEVER).min(flow.sender.spec.stop).min(now);
        let active_s = intersection([self.measure.0.as_secs(), self.measure.1.as_secs()], [start_s, until.as_secs()]);
        let rate = |bytes: u64| active_s.map(|[from, to]| bytes as f64 * 8.0 / (to - from));
        let base_ms = spec.base_rtt_of_s(index) * 1e3;
        let rtt = &flow.sender.rtt;
        Some(FlowSummary {
            name,
            group: spec.name.clone(),
            index,
            protocol: spec.protocol.clone(),
            start_s,
            stop_s: spec.stop_s,
            active_s,
            rate_bps: rate(flow.receiver.bytes_counted),
            goodput_bps: rate(flow.receiver.payload_counted),
            rtt_ms: RttSummary {
                base: base_ms,
                mean: rtt.mean_s().map(|s| s * 1e3),
                p50: rtt.quantile_above_base_s(0.5).map(|s| base_ms + s * 1e3),
                p99: rtt.quantile_above_base_s(0.99).map(|s| base_ms + s * 1e3),
            },
            packets_sent: flow.sender.packets_sent(),
            retransmissions: flow.sender.retransmissions,
            timeouts: flow.sender.timeouts,
            completed_s: flow.receiver.completed.map(Instant::as_secs),
            count: None,
        })
    }
}

fn traffic_summary(traffic: &Traffic, totals: &FlowTotals, now: Instant) -> TrafficSummary {
    let (from, to) = (traffic.counted.0.as_secs(), traffic.counted.1.min(now).as_secs());
    let rate = |bytes: u64| (to > from).then(|| bytes as f64 * 8.0 / (to - from));
    let flows = traffic.web.as_ref().map(|web| WebSummary {
        protocol: web.flow.protocol.clone(),
        goodput_bps: rate(totals.payload_counted),
        flows_started: web.started,
        flows_completed: totals.completed,
        flows_open_max: web.open_max,
        flow_completion_ms: completion_summary(&totals.completion),
        retransmissions: totals.retransmissions,
        timeouts: totals.timeouts,
    });
    TrafficSummary {
        name: traffic.spec.name.clone(),
        kind: traffic.spec.kind.name(),
        rate_bps: rate(traffic.bytes_counted),
        packets_sent: traffic.sent + totals.packets_sent,
        packets_received: traffic.received,
        flows,
    }
}

fn completion_summary(times: &CompletionTimes) -> CompletionSummary {
    let ms = |s: f64| s * 1e3;
    let percentile = |q: f64| times.quantile_s(q).map(ms);
    CompletionSummary {
        count: times.count,
        mean: times.mean_s().map(ms),
        p50: percentile(0.5),
        p90: percentile(0.9),
        p95: percentile(0.95),
        p99: percentile(0.99),
        max: times.max_s().map(ms),
    }
}

/// Returns the intersection of two time spans; `None` if it is empty or a single instant.
fn intersection(a: [f64; 2], b: [f64; 2]) -> Option<[f64; 2]> {
    let both = [a[0].max(b[0]), a[1].min(b[1])];
    (both[0] < both[1]).then_some(both)
}
