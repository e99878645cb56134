//! The summary document: per flow, link and traffic source, over the measurement window.

use serde::Serialize;

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Flows in the scenario's order, groups expanded.
    pub flows: Vec<FlowSummary>,
    /// Link directions in the scenario's order, each followed by its reverse.
    pub links: Vec<LinkSummary>,
    /// Traffic sources in the scenario's order.
    pub traffic: Vec<TrafficSummary>,
    /// Work done by the engine.
    pub engine: EngineSummary,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// `long`, or `long[3]` in a group of several flows.
    pub name: String,
    /// Name of the group.
    pub group: String,
    /// Index in the group.
    pub index: u32,
    /// Protocol's name.
    pub protocol: &'static str,
    /// Time of its SYN.
    pub start_s: f64,
    /// Time after which it sent no new data.
    pub stop_s: f64,
    /// Intersection of the measurement window and the flow's lifetime; none if it is empty.
    pub active_s: Option<[f64; 2]>,
    /// Bytes received in `active_s` (full packets, duplicates included), as a rate.
    pub rate_bps: Option<f64>,
    /// Payload that arrived for the first time in `active_s`, in order or not, as a rate: never above `rate_bps`.
    pub goodput_bps: Option<f64>,
    /// RTT samples of the sender in the window.
    pub rtt_ms: RttSummary,
    /// Data packets sent during the whole run, retransmissions included.
    pub packets_sent: u64,
    /// Retransmissions during the whole run.
    pub retransmissions: u64,
    /// Retransmission timeouts during the whole run.
    pub timeouts: u64,
    /// Time at which the receiver had the last byte.
    pub completed_s: Option<f64>,
    /// Number of identical flows that this entry stands for, where not every flow has an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// RTTs in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RttSummary {
    /// Propagation and padding in both directions.
    pub base: f64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median; the part above `base` is exact to 1/64.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// One link direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name.
    pub name: String,
    /// Bits serialised in the window, over capacity × window.
    pub utilization: f64,
    /// Waiting bytes, excluding the packet in service.
    pub queue_bytes: QueueSummary,
    /// Waiting packets.
    pub queue_packets: QueueSummary,
    /// Packets that the queue dropped in the window: buffer full, or by its discipline.
    pub drops: u64,
    /// Packets that the queue marked in the window.
    pub marks: u64,
    /// Packets lost on the wire in the window.
    pub lost: u64,
}

/// One traffic source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSummary {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: &'static str,
    /// Bytes received in the window while the source is active, as a rate.
    pub rate_bps: Option<f64>,
    /// Packets (data packets, for flows) sent during the whole run.
    pub packets_sent: u64,
    /// Packets (data packets, for flows) received during the whole run.
    pub packets_received: u64,
    /// Figures of a source of flows.
    #[serde(flatten)]
    pub flows: Option<WebSummary>,
}

/// Figures of the flows of a traffic source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebSummary {
    /// Protocol's name.
    pub protocol: &'static str,
    /// Payload that arrived for the first time in the window while the source is active, as a rate.
    pub goodput_bps: Option<f64>,
    /// Flows started during the whole run.
    pub flows_started: u64,
    /// Flows completed during the whole run.
    pub flows_completed: u64,
    /// Maximum number of concurrent flows during the whole run.
    pub flows_open_max: u64,
    /// Time from SYN to the last byte at the receiver, for flows that started in the window and have completed.
    pub flow_completion_ms: CompletionSummary,
    /// Retransmissions during the whole run.
    pub retransmissions: u64,
    /// Retransmission timeouts during the whole run.
    pub timeouts: u64,
}

/// Completion times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompletionSummary {
    /// Number of flows.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median; all percentiles here are exact to 1/64.
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

/// Work done by an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EngineSummary {
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Wall time of the run; the engine itself has no clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Figures of a fluid run.
    #[serde(flatten)]
    pub fluid: Option<FluidSummary>,
}

/// Work done by the fluid model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FluidSummary {
    /// Length of a step.
    pub step_s: f64,
    /// Steps taken.
    pub steps: u64,
    /// Classes of identical flows.
    pub classes: usize,
    /// Delay added to links so that every loop takes at least one step.
    pub delay_added_s: f64,
}

/// Mean, 99th percentile and maximum, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueSummary {
    /// Time mean.
    pub mean: f64,
    /// Exceeded 1 % of the time; exact to 1/64.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}
