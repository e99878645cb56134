//! The figures of a run: per flow, link and traffic source, over the summary's window.

use serde::Serialize;
use waterfill_laws::units::Instant;

use crate::engine::{Flow, Owner, Simulation};
pub use crate::meter::QueueSummary;
use crate::traffic::{CompletionTimes, Tally, Traffic};

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// In the scenario's order, groups expanded.
    pub flows: Vec<FlowSummary>,
    /// In the scenario's order, each followed by its reverse direction.
    pub links: Vec<LinkSummary>,
    /// In the scenario's order.
    pub traffic: Vec<TrafficSummary>,
    /// What it took.
    pub engine: EngineSummary,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// `long`, or `long[3]` in a group of more than one.
    pub name: String,
    /// Name of the group.
    pub group: String,
    /// Place in the group.
    pub index: u32,
    /// Protocol's name.
    pub protocol: &'static str,
    /// When it sent its SYN.
    pub start_s: f64,
    /// When it stopped sending new data.
    pub stop_s: f64,
    /// The window cut to the flow's life; none if they do not meet.
    pub active_s: Option<[f64; 2]>,
    /// Bytes received in `active_s` (full packets, duplicates included), as a rate.
    pub rate_bps: Option<f64>,
    /// New payload in order in `active_s`, as a rate.
    pub goodput_bps: Option<f64>,
    /// Round trips of the sender in the window.
    pub rtt_ms: RttSummary,
    /// Data packets sent in the whole run, retransmissions included.
    pub packets_sent: u64,
    /// Retransmissions in the whole run.
    pub retransmissions: u64,
    /// Retransmission time-outs in the whole run.
    pub timeouts: u64,
    /// When the receiver had the last byte.
    pub completed_s: Option<f64>,
}

/// Round trips in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RttSummary {
    /// Propagation and padding, both ways.
    pub base: f64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median, to within 1/64 of the part above base.
    pub p50: Option<f64>,
    /// 99th percentile, likewise.
    pub p99: Option<f64>,
}

/// One link direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name.
    pub name: String,
    /// Bits serialised over capacity, in the window.
    pub utilization: f64,
    /// Waiting bytes, the packet in service excluded.
    pub queue_bytes: QueueSummary,
    /// Waiting packets.
    pub queue_packets: QueueSummary,
    /// Packets that the queue dropped, for want of room or by its discipline, in the window.
    pub drops: u64,
    /// Packets that the queue marked, in the window.
    pub marks: u64,
    /// Packets lost on the wire, in the window.
    pub lost: u64,
}

/// One traffic source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSummary {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: &'static str,
    /// Bytes received in the window cut to its life, as a rate.
    pub rate_bps: Option<f64>,
    /// In the whole run; of flows, data packets.
    pub packets_sent: u64,
    /// In the whole run; of flows, data packets.
    pub packets_received: u64,
    /// Of a source of flows.
    #[serde(flatten)]
    pub flows: Option<WebSummary>,
}

/// What became of the flows of a traffic source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebSummary {
    /// Protocol's name.
    pub protocol: &'static str,
    /// New payload in order in the window cut to the source's life, as a rate.
    pub goodput_bps: Option<f64>,
    /// In the whole run.
    pub flows_started: u64,
    /// In the whole run.
    pub flows_completed: u64,
    /// Most that were open at once in the whole run.
    pub flows_open_max: u64,
    /// From SYN to the last byte at the receiver, of flows that began in the window and have completed.
    pub flow_completion_ms: CompletionSummary,
    /// In the whole run.
    pub retransmissions: u64,
    /// In the whole run.
    pub timeouts: u64,
}

/// Completion times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompletionSummary {
    /// Flows that they are of.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median, to within 1/64 as all percentiles here.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// Work done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSummary {
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Heap entries handled.
    pub events: u64,
}

impl Simulation {
    /// The figures up to now; of the part of the window that has been, if the run is not over.
    pub fn summary(&mut self) -> Summary {
        let now = self.now();
        let flows = self.flows.iter().filter_map(|flow| self.flow_summary(flow, now)).collect();
        let tallies = self.tallies();
        let traffic = self.traffic.iter().zip(&tallies).map(|(t, tally)| traffic_summary(t, tally, now)).collect();
        let engine = EngineSummary { packet_hops: self.packet_hops(), events: self.events() };
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

    /// What became of each source's flows: of those that are over and those that are open.
    fn tallies(&self) -> Vec<Tally> {
        let over = |t: &Traffic| t.web.as_ref().map(|web| web.over.clone()).unwrap_or_default();
        let mut tallies: Vec<Tally> = self.traffic.iter().map(over).collect();
        for flow in &self.flows {
            if let Owner::Traffic(t) = flow.owner {
                tallies[t as usize].add(flow, self.traffic[t as usize].counted);
            }
        }
        tallies
    }

    fn flow_summary(&self, flow: &Flow, now: Instant) -> Option<FlowSummary> {
        let Owner::Group(group) = flow.owner else { return None };
        let spec = &self.network.flows[group as usize];
        let index = flow.sender.spec.index;
        let name = if spec.count > 1 { format!("{}[{index}]", spec.name) } else { spec.name.clone() };
        let start_s = spec.start_s + f64::from(index) * spec.stagger_s;
        let until = flow.receiver.completed.unwrap_or(Instant::NEVER).min(flow.sender.spec.stop).min(now);
        let active_s = window_of_life([self.measure.0.as_secs(), self.measure.1.as_secs()], [start_s, until.as_secs()]);
        let rate = |bytes: u64| active_s.map(|[from, to]| bytes as f64 * 8.0 / (to - from));
        let base_ms = spec.base_rtt_s * 1e3;
        let rtt = &flow.sender.rtt;
        Some(FlowSummary {
            name,
            group: spec.name.clone(),
            index,
            protocol: flow.protocol.info().name,
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
            packets_sent: flow.sender.packets_sent,
            retransmissions: flow.sender.retransmissions,
            timeouts: flow.sender.timeouts,
            completed_s: flow.receiver.completed.map(Instant::as_secs),
        })
    }
}

fn traffic_summary(traffic: &Traffic, tally: &Tally, now: Instant) -> TrafficSummary {
    let (from, to) = (traffic.counted.0.as_secs(), traffic.counted.1.min(now).as_secs());
    let rate = |bytes: u64| (to > from).then(|| bytes as f64 * 8.0 / (to - from));
    let flows = traffic.web.as_ref().map(|web| WebSummary {
        protocol: web.protocol.info().name,
        goodput_bps: rate(tally.payload_counted),
        flows_started: web.started,
        flows_completed: tally.completed,
        flows_open_max: web.open_max,
        flow_completion_ms: completion_summary(&tally.completion),
        retransmissions: tally.retransmissions,
        timeouts: tally.timeouts,
    });
    TrafficSummary {
        name: traffic.spec.name.clone(),
        kind: traffic.spec.kind.name(),
        rate_bps: rate(traffic.bytes_counted),
        packets_sent: traffic.sent + tally.packets_sent,
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

/// Where two spans of time meet; none if they do not, or only touch.
fn window_of_life(window: [f64; 2], life: [f64; 2]) -> Option<[f64; 2]> {
    let both = [window[0].max(life[0]), window[1].min(life[1])];
    (both[0] < both[1]).then_some(both)
}
