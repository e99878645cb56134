//! Summary document of a run, with statistics per flow, link and traffic source over the measurement window.

use serde::Serialize;

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Summaries of the flows in the scenario's order, with groups expanded.
    pub flows: Vec<FlowSummary>,
    /// Summaries of the link directions in the scenario's order, each followed by its reverse.
    pub links: Vec<LinkSummary>,
    /// Summaries of the traffic sources in the scenario's order.
    pub traffic: Vec<TrafficSummary>,
    /// Summaries of the switches with a shared buffer, in the scenario's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchSummary>,
    /// The first deadlock of the run, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadlock: Option<DeadlockSummary>,
    /// Work done by the engine.
    pub engine: EngineSummary,
}

/// Summary of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Name of the flow: `long`, or `long[3]` in a group of several flows.
    pub name: String,
    /// Name of the flow's group.
    pub group: String,
    /// Index of the flow in its group.
    pub index: u32,
    /// Name of the protocol.
    pub protocol: String,
    /// Time at which the flow sent its SYN, in seconds.
    pub start_s: f64,
    /// Time after which the flow sent no new data, in seconds.
    pub stop_s: f64,
    /// Intersection of the measurement window and the flow's lifetime, in seconds; `None` if they do not overlap.
    pub active_s: Option<[f64; 2]>,
    /// Rate of bytes received in `active_s`, in bit/s; `None` without `active_s`. Full packets and duplicates are
    /// included.
    pub rate_bps: Option<f64>,
    /// Rate of payload that arrived for the first time in `active_s`, in order or not, in bit/s. The goodput is never
    /// above `rate_bps`.
    pub goodput_bps: Option<f64>,
    /// RTT statistics of the sender's samples in the window.
    pub rtt_ms: RttSummary,
    /// Number of data packets sent during the whole run, retransmissions included.
    pub packets_sent: u64,
    /// Number of retransmissions during the whole run.
    pub retransmissions: u64,
    /// Bytes of the retransmissions during the whole run, headers included.
    pub resent_bytes: u64,
    /// Number of retransmissions in vain during the whole run: data packets that reached the receiver again, at most
    /// `retransmissions`. `None` in the fluid model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spurious_retransmissions: Option<u64>,
    /// Number of retransmission timeouts during the whole run.
    pub timeouts: u64,
    /// Shares of the time in `active_s` that each limit applied; `None` in the fluid model and without `active_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// The loss recovery of the whole run that took the most RTTs; `None` without a recovery and in the fluid model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_recovery: Option<RecoverySummary>,
    /// Messages of the flow's application during the whole run; `None` without an application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageSummary>,
    /// Playback of the flow's video during the whole run; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playback: Option<PlaybackSummary>,
    /// Time at which the receiver had the last byte, in seconds; `None` if the flow has not completed.
    pub completed_s: Option<f64>,
    /// Number of identical flows that this entry represents, if not every flow has an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// Messages of an application: on periods, responses, segments or ticks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageSummary {
    /// Number of messages that the application has written, or has begun to write.
    pub written: u64,
    /// Number of messages whose last byte the receiver has, as far as the sender knows.
    pub completed: u64,
    /// Times from the writing of a message's first byte to its last byte at the receiver, of messages written in the
    /// measurement window.
    pub completion_ms: CompletionSummary,
}

/// Playback of a video at its client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlaybackSummary {
    /// Time from the opening of the connection to the first picture, in seconds; `None` if playback has not begun.
    pub startup_s: Option<f64>,
    /// Time played, in seconds.
    pub played_s: f64,
    /// Number of stalls: times at which the buffer ran empty.
    pub stalls: u64,
    /// Time in stalls, in seconds.
    pub stalled_s: f64,
}

/// What limits a flow: the share of its time for each limit. The sum is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LimitedBy {
    /// Share of the time in which as much was in flight as the window allowed.
    pub window: f64,
    /// Share of the time in which the next packet waited for its time.
    pub pacing: f64,
    /// Share of the time in which there was nothing to send.
    pub application: f64,
    /// Share of the time in which a loss recovery's window allowed no more, or in which a timeout was waited for.
    pub recovery: f64,
    /// Share of the time until the SYN was answered.
    pub handshake: f64,
}

/// Duration of a loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecoverySummary {
    /// Duration in seconds, without the wait for a timeout.
    pub took_s: f64,
    /// Duration in smoothed RTTs, the longer of those at its start and its end.
    pub rtts: f64,
}

/// RTT statistics in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RttSummary {
    /// Base RTT: propagation and padding in both directions.
    pub base: f64,
    /// Mean RTT; `None` without samples.
    pub mean: Option<f64>,
    /// Median RTT; `None` without samples. The excess over `base` is exact to 1/64.
    pub p50: Option<f64>,
    /// 99th percentile of the RTT; `None` without samples.
    pub p99: Option<f64>,
}

/// Summary of a link direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name of the link direction.
    pub name: String,
    /// Utilization: bits serialized in the window, divided by the capacity times the window.
    pub utilization: f64,
    /// Statistics of the queue in bytes, excluding the packet in service.
    pub queue_bytes: QueueSummary,
    /// Statistics of the queue in packets.
    pub queue_packets: QueueSummary,
    /// Number of packets that the queue dropped in the window, because the buffer was full or by its discipline.
    pub drops: u64,
    /// Number of packets that the queue marked in the window.
    pub marks: u64,
    /// Number of packets lost on the wire in the window.
    pub lost: u64,
    /// Pauses of the link in the window; `None` if it cannot be paused.
    #[serde(flatten)]
    pub pauses: Option<PauseSummary>,
}

/// Pauses of a link by the switch at its far end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PauseSummary {
    /// Time in which a pause kept the link from sending, in seconds.
    pub paused_s: f64,
    /// Number of pause frames that reached the link's transmitter.
    pub pause_frames: u64,
}

/// Paused links, each of which waits for others of them, so that none can ever send again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadlockSummary {
    /// Time of the sample that found the deadlock, in seconds.
    pub at_s: f64,
    /// Names of the links.
    pub links: Vec<String>,
}

/// Summary of a switch with a shared buffer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwitchSummary {
    /// Name of the node.
    pub name: String,
    /// Size of the buffer in bytes.
    pub buffer_bytes: u64,
    /// Time-weighted mean of the bytes in all output queues.
    pub used_mean_bytes: f64,
    /// Maximum of the bytes in all output queues at one time.
    pub used_max_bytes: u64,
}

/// Summary of a traffic source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSummary {
    /// Name of the traffic source.
    pub name: String,
    /// Kind of the traffic source.
    pub kind: &'static str,
    /// Rate of bytes received in the window while the source is active, in bit/s.
    pub rate_bps: Option<f64>,
    /// Number of packets sent during the whole run. For a source of flows, only data packets count.
    pub packets_sent: u64,
    /// Number of packets received during the whole run. For a source of flows, only data packets count.
    pub packets_received: u64,
    /// Statistics of the flows, for a source of flows.
    #[serde(flatten)]
    pub flows: Option<WebSummary>,
}

/// Statistics of a traffic source's flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebSummary {
    /// Name of the protocol.
    pub protocol: String,
    /// Rate of payload that arrived for the first time in the window while the source is active, in bit/s.
    pub goodput_bps: Option<f64>,
    /// Number of flows started during the whole run.
    pub flows_started: u64,
    /// Number of flows completed during the whole run.
    pub flows_completed: u64,
    /// Maximum number of concurrent flows during the whole run.
    pub flows_open_max: u64,
    /// Times from SYN to the last byte at the receiver, for completed flows that started in the window.
    pub flow_completion_ms: CompletionSummary,
    /// Number of retransmissions during the whole run.
    pub retransmissions: u64,
    /// Bytes of the retransmissions during the whole run, headers included.
    pub resent_bytes: u64,
    /// Number of data packets that reached a receiver again during the whole run, at most `retransmissions`.
    pub spurious_retransmissions: u64,
    /// Number of retransmission timeouts during the whole run.
    pub timeouts: u64,
    /// Shares of the flows' time during the whole run, all flows together, that each limit applied; `None` without flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// The loss recovery of the whole run that took the most RTTs; `None` without a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_recovery: Option<RecoverySummary>,
}

/// Statistics of flow completion times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompletionSummary {
    /// Number of completed flows.
    pub count: u64,
    /// Mean completion time; `None` without completed flows.
    pub mean: Option<f64>,
    /// Median completion time. All percentiles of completion times are exact to 1/64.
    pub p50: Option<f64>,
    /// 90th percentile of the completion time.
    pub p90: Option<f64>,
    /// 95th percentile of the completion time.
    pub p95: Option<f64>,
    /// 99th percentile of the completion time.
    pub p99: Option<f64>,
    /// Maximum completion time.
    pub max: Option<f64>,
}

/// Work done by an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EngineSummary {
    /// Number of packet hops: each packet counts once per link that it crosses.
    pub packet_hops: u64,
    /// Number of events handled.
    pub events: u64,
    /// Wall time of the run in seconds. The caller measures it, because the engine has no clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Statistics of a fluid run; `None` for the packet simulator.
    #[serde(flatten)]
    pub fluid: Option<FluidSummary>,
}

/// Work done by the fluid model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FluidSummary {
    /// Length of a step in seconds.
    pub step_s: f64,
    /// Number of steps taken.
    pub steps: u64,
    /// Number of classes of identical flows.
    pub classes: usize,
    /// Largest delay added to a link, in seconds. The model adds delays because every loop must take at least one step.
    pub delay_added_s: f64,
}

/// Mean, 99th percentile and maximum of a queue, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueSummary {
    /// Time-weighted mean of the queue.
    pub mean: f64,
    /// Queue length exceeded during 1 % of the time, exact to 1/64.
    pub p99: f64,
    /// Maximum queue length.
    pub max: f64,
}
