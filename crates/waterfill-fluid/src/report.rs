//! Summary of a fluid run, in the same format as the packet simulator's summary.

use waterfill_laws::units::Instant;
use waterfill_network::summary::{
    EngineSummary, FlowSummary, FluidSummary, LinkSummary, QueueSummary, RttSummary, Summary, TrafficSummary,
};

use crate::engine::Fluid;
use crate::plan::Member;

/// Maximum number of flows that are reported one by one. With more flows, each entry represents all flows of a class.
pub const MAX_EXPANDED: u64 = 10_000;

impl Fluid {
    /// Returns true if every flow has its own entry.
    pub(crate) fn is_expanded(&self) -> bool {
        self.network.flows.iter().map(|flow| u64::from(flow.count)).sum::<u64>() <= MAX_EXPANDED
    }

    /// Returns the summary of the run up to now.
    ///
    /// With more than [`MAX_EXPANDED`] flows an entry of `flows` stands for `count` identical flows.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let expanded = self.is_expanded();
        let now = self.now();
        let mut flows = Vec::new();
        for member in &self.members {
            let entries = if expanded { member.count } else { 1 };
            for i in 0..entries {
                let count = (!expanded).then_some(member.count / entries);
                flows.push(FlowSummary { count, ..self.flow(member, member.index + i, now) });
            }
        }
        let fluid = FluidSummary {
            step_s: self.step().as_secs(),
            steps: self.steps(),
            classes: self.classes(),
            delay_added_s: self.delay_added().as_secs(),
        };
        let engine = EngineSummary {
            packet_hops: self.packet_hops(),
            events: self.events(),
            fluid: Some(fluid),
            ..EngineSummary::default()
        };
        Summary {
            flows,
            links: self.link_summaries(),
            traffic: self.traffic(now),
            switches: Vec::new(),
            deadlock: None,
            engine,
        }
    }

    fn flow(&self, member: &Member, index: u32, now: Instant) -> FlowSummary {
        let spec = &self.network.flows[member.group as usize];
        let class = &self.classes[member.class as usize];
        let whole = spec.count == 1 || (member.count == spec.count && !self.is_expanded());
        let name = if whole { spec.name.clone() } else { format!("{}[{index}]", spec.name) };
        let start_s = spec.start_of_s(index);
        let until = class.completed.unwrap_or(Instant::NEVER).min(class.spec.stop).min(now);
        let active_s = intersection([self.measure.0.as_secs(), self.measure.1.as_secs()], [start_s, until.as_secs()]);
        let rate = |bytes: f64| active_s.map(|[from, to]| bytes * 8.0 / (to - from));
        let base_ms = spec.base_rtt_of_s(index) * 1e3;
        let packets = |bytes: f64| (bytes / class.spec.packet_bytes).round() as u64;
        FlowSummary {
            name,
            group: spec.name.clone(),
            index,
            protocol: class.spec.protocol.info().name.into(),
            start_s,
            stop_s: spec.stop_s,
            active_s,
            rate_bps: rate(class.counted),
            goodput_bps: rate(class.counted * class.spec.payload_share),
            rtt_ms: RttSummary {
                base: base_ms,
                mean: class.rtt.mean_s().map(|s| s * 1e3),
                p50: class.rtt.quantile_above_base_s(0.5).map(|s| base_ms + s * 1e3),
                p99: class.rtt.p99_above_base_s(class.spec.base_rtt).map(|s| base_ms + s * 1e3),
            },
            packets_sent: packets(class.sent),
            retransmissions: packets(class.lost),
            resent_bytes: class.lost.round() as u64,
            spurious_retransmissions: None,
            timeouts: class.timeouts,
            limited_by: None,
            longest_recovery: None,
            messages: None,
            playback: None,
            completed_s: class.completed.map(Instant::as_secs),
            count: None,
        }
    }

    fn link_summaries(&self) -> Vec<LinkSummary> {
        let packet_bytes = f64::from(self.network.packet_bytes);
        let specs = self.network.links.iter().zip(&self.links);
        let link = |(spec, link): (&waterfill_network::LinkSpec, &crate::link::Link)| {
            let (span, queue) = link.meter.result();
            let per_packet = |bytes: f64| bytes / packet_bytes;
            LinkSummary {
                name: spec.name.clone(),
                utilization: span.utilization,
                queue_bytes: queue,
                queue_packets: QueueSummary {
                    mean: per_packet(queue.mean),
                    p99: per_packet(queue.p99),
                    max: per_packet(queue.max),
                },
                drops: span.dropped_packets.round() as u64,
                marks: 0,
                lost: 0,
                pauses: None,
            }
        };
        specs.map(link).collect()
    }

    fn traffic(&self, now: Instant) -> Vec<TrafficSummary> {
        let summary = |traffic: &crate::engine::Traffic| {
            let packets = |bytes: f64| (bytes / f64::from(traffic.spec.packet_bytes)).round() as u64;
            let (from, to) = (traffic.counted.0.as_secs(), traffic.counted.1.min(now).as_secs());
            TrafficSummary {
                name: traffic.spec.name.clone(),
                kind: traffic.spec.kind.name(),
                rate_bps: (to > from).then(|| traffic.counted_bytes * 8.0 / (to - from)),
                packets_sent: packets(traffic.sent_bytes),
                packets_received: packets(traffic.received_bytes),
                flows: None,
            }
        };
        self.traffic.iter().map(summary).collect()
    }
}

/// Returns the intersection of two time spans, or `None` if they do not overlap.
fn intersection(window: [f64; 2], life: [f64; 2]) -> Option<[f64; 2]> {
    let both = [window[0].max(life[0]), window[1].min(life[1])];
    (both[0] < both[1]).then_some(both)
}
