//! Computes the summary of a run: per flow, link and traffic source, over the measurement window.

use waterfill_laws::units::Instant;
use waterfill_network::SwitchSpec;
use waterfill_network::summary::{
    CompletionSummary, DeadlockSummary, EngineSummary, FlowSummary, LinkSummary, MessageSummary, PauseSummary,
    RecoverySummary, RttSummary, Summary, SwitchSummary, TrafficSummary, WebSummary,
};

use super::Simulation;
use super::arrivals::{Arrival, completion_times, open_max};
use super::buffers::SharedBuffer;
use super::endpoint::EndpointFlow;
use super::record::place;
use crate::application::Application;
use crate::flow::{Owner, ReceivingHost, SendingHost};
use crate::limits::LongestRecovery;
use crate::sender::Sender;
use crate::traffic::{CompletionTimes, FlowTotals, Traffic};

impl Simulation {
    /// Returns the summary of the run up to now, over the elapsed part of the measurement window.
    pub fn summary(&mut self) -> Summary {
        let now = self.now();
        let places = &self.record.places;
        let flows = (0..self.record.flows()).filter_map(|i| {
            let ((here, from), (there, to)) = (place(&places.senders, i), place(&places.receivers, i));
            self.flow_summary(&self.parts[here].senders[from], &self.parts[there].receivers[to], now)
        });
        let flows = flows.collect();
        let totals = self.flow_totals(now);
        let arrivals = self.all_arrivals();
        let traffic = totals.iter().enumerate().map(|(t, totals)| self.traffic_summary(t, totals, &arrivals, now));
        let traffic = traffic.collect();
        let engine =
            EngineSummary { packet_hops: self.packet_hops(), events: self.events(), ..EngineSummary::default() };
        let links = self.network.links.iter().enumerate().map(|(i, spec)| {
            let (part, l) = place(&self.record.places.links, i);
            let result = self.parts[part].links[l].result(now);
            LinkSummary {
                name: spec.name.clone(),
                utilization: result.utilization,
                queue_bytes: result.queue_bytes,
                queue_packets: result.queue_packets,
                drops: result.drops,
                marks: result.marks,
                lost: result.lost,
                pauses: self.parts[part].links[l]
                    .can_pause()
                    .then(|| PauseSummary { paused_s: result.pauses.0.as_secs(), pause_frames: result.pauses.1 }),
            }
        });
        let links: Vec<LinkSummary> = links.collect();
        let switches = self.switch_summaries(&links);
        let deadlock = self.parts.iter().find_map(|part| part.deadlock.as_ref()).map(|found| DeadlockSummary {
            at_s: found.at.as_secs(),
            links: found.links.iter().map(|&l| self.network.links[l as usize].name.clone()).collect(),
        });
        Summary { flows, links, traffic, switches, deadlock, engine }
    }

    fn switch_summaries(&self, links: &[LinkSummary]) -> Vec<SwitchSummary> {
        let mut buffers: Vec<_> = self.parts.iter().flat_map(|part| &part.buffers).collect();
        buffers.sort_unstable_by_key(|buffer| buffer.number);
        let summary = |(buffer, spec): (&SharedBuffer, &SwitchSpec)| SwitchSummary {
            name: spec.name.clone(),
            buffer_bytes: spec.buffer_bytes,
            used_mean_bytes: spec.outputs.iter().map(|&l| links[l as usize].queue_bytes.mean).sum(),
            used_max_bytes: buffer.max(),
        };
        buffers.into_iter().zip(&self.network.switches).map(summary).collect()
    }

    /// Returns the senders of the flows in the summary's order.
    pub(super) fn group_senders(&self) -> impl Iterator<Item = &Sender> {
        let senders = &self.record.places.senders;
        let hosts = (0..self.record.flows()).map(|i| place(senders, i)).map(|(part, at)| &self.parts[part].senders[at]);
        hosts.filter(|host| matches!(host.owner, Owner::Group(_))).map(|host| &host.sender)
    }

    fn flow_summary(&self, from: &SendingHost, to: &ReceivingHost, now: Instant) -> Option<FlowSummary> {
        let Owner::Group(group) = from.owner else { return None };
        let (sender, receiver) = (&from.sender, &to.receiver);
        let spec = &self.network.flows[group as usize];
        let index = sender.spec.index;
        let name = if spec.count > 1 { format!("{}[{index}]", spec.name) } else { spec.name.clone() };
        let endpoint = self.parts[0].endpoints.iter().find(|endpoint| endpoint.flow == sender.spec.flow);
        let start_s = match sender.spec.start {
            _ if spec.after.is_empty() || endpoint.is_some() => spec.start_of_s(index),
            Instant::NEVER => spec.stop_s,
            start => start.as_secs().min(spec.stop_s),
        };
        let until = receiver.completed().unwrap_or(Instant::NEVER).min(sender.spec.stop).min(now);
        let (from_s, to_s) = (self.parts[0].measure.0.as_secs(), self.parts[0].measure.1.as_secs());
        let active_s = intersection([from_s, to_s], [start_s, until.as_secs()]);
        let rate = |bytes: u64| active_s.map(|[from, to]| bytes as f64 * 8.0 / (to - from));
        let base_ms = spec.base_rtt_of_s(index) * 1e3;
        let (rtt, recovery) = (&sender.rtt, sender.longest_recovery(now));
        Some(FlowSummary {
            name,
            group: spec.name.clone(),
            index,
            protocol: endpoint.map_or(&spec.protocol, |endpoint| &endpoint.name).clone(),
            start_s,
            stop_s: spec.stop_s,
            active_s,
            rate_bps: rate(receiver.bytes_counted),
            goodput_bps: rate(receiver.payload_counted),
            rtt_ms: RttSummary {
                base: base_ms,
                mean: rtt.mean_s().map(|s| s * 1e3),
                p50: rtt.quantile_above_base_s(0.5).map(|s| base_ms + s * 1e3),
                p99: rtt.p99_above_base_s(sender.spec.base_rtt).map(|s| base_ms + s * 1e3),
            },
            packets_sent: endpoint.map_or(sender.packets_sent(), |endpoint| endpoint.sent),
            // An endpoint's own are unknown, but each loss causes one.
            retransmissions: endpoint.map_or(sender.retransmissions, EndpointFlow::lost),
            resent_bytes: sender.resent_bytes(),
            spurious_retransmissions: Some(receiver.duplicates.min(sender.retransmissions)),
            timeouts: sender.timeouts,
            limited_by: active_s.filter(|_| endpoint.is_none()).and_then(|_| sender.limited_by(until)),
            longest_recovery: recovery_summary(recovery),
            messages: sender.application().map(|application| message_summary(application, now)),
            playback: sender.application().and_then(|application| application.playback(now)),
            completed_s: receiver.completed().map(Instant::as_secs),
            count: None,
        })
    }
    fn traffic_summary(&self, t: usize, totals: &FlowTotals, arrivals: &[Arrival], now: Instant) -> TrafficSummary {
        let of_parts = || self.parts.iter().map(|part| &part.traffic[t]);
        let sum = |count: fn(&Traffic) -> u64| of_parts().map(count).sum::<u64>();
        let (spec, counted) = (&self.network.traffic[t], self.parts[0].traffic[t].counted);
        let (from, to) = (counted.0.as_secs(), counted.1.min(now).as_secs());
        let rate = |bytes: u64| (to > from).then(|| bytes as f64 * 8.0 / (to - from));
        // Parts that draw the arrivals have counted them all.
        let web = of_parts().filter_map(|traffic| traffic.web.as_ref()).max_by_key(|web| web.started);
        let flows = web.map(|web| WebSummary {
            protocol: web.flow.protocol.clone(),
            goodput_bps: rate(totals.payload_counted),
            flows_started: web.started,
            flows_completed: totals.completed,
            flows_open_max: open_max(arrivals, t),
            flow_completion_ms: completion_summary(&completion_times(arrivals, t, counted)),
            retransmissions: totals.retransmissions,
            resent_bytes: totals.resent_bytes,
            spurious_retransmissions: totals.duplicates.min(totals.retransmissions),
            timeouts: totals.timeouts,
            limited_by: totals.limits.shares(),
            longest_recovery: recovery_summary(totals.longest_recovery),
        });
        TrafficSummary {
            name: spec.name.clone(),
            kind: spec.kind.name(),
            rate_bps: rate(sum(|traffic| traffic.bytes_counted)),
            packets_sent: sum(|traffic| traffic.sent) + totals.packets_sent,
            packets_received: sum(|traffic| traffic.received),
            flows,
        }
    }
}

/// Returns the summary of an application's messages up to `now`.
fn message_summary(application: &Application, now: Instant) -> MessageSummary {
    MessageSummary {
        written: application.written_by(now),
        completed: application.completed(),
        completion_ms: completion_summary(application.times()),
    }
}

/// Returns the longest recovery of one or several flows, or `None` if there was none.
fn recovery_summary(longest: LongestRecovery) -> Option<RecoverySummary> {
    (longest.rtts > 0.0).then(|| RecoverySummary { took_s: longest.took.as_secs(), rtts: longest.rtts })
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
