//! A group of congestion-controlled flows.

use serde::Deserialize;

/// A group of `count` flows that differ only in their start time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name of the group.
    pub name: String,
    /// Number of flows.
    pub count: u32,
    /// Protocol's name.
    pub protocol: String,
    /// Links that data crosses, in order.
    pub forward: Vec<u32>,
    /// Links that acknowledgements cross, in order.
    pub reverse: Vec<u32>,
    /// Time at which the first flow sends its SYN.
    pub start_s: f64,
    /// Time between the starts of two consecutive flows.
    pub stagger_s: f64,
    /// Time after which no flow sends new data.
    pub stop_s: f64,
    /// Payload to send; none means unlimited.
    pub size_bytes: Option<u64>,
    /// One-way delay at the source's access, in each direction, in addition to the links'.
    pub pad_s: f64,
    /// Rate of each source host's own link to its first router; none means an ideal access.
    pub access_bps: Option<f64>,
    /// Base RTT, for the summary.
    pub base_rtt_s: f64,
    /// Weight in weighted fairness.
    pub weight: f64,
    /// Rate at which the application writes; none means unlimited.
    pub demand_bps: Option<f64>,
    /// Window before the first feedback.
    pub initial_window_packets: f64,
    /// Whether packets are paced; none means as the law asks.
    pub pacing: Option<bool>,
    /// Whether only every second packet is acknowledged.
    pub delayed_ack: bool,
    /// Whether packets may be marked (ECN); none means as the law asks.
    pub ecn: Option<bool>,
}
