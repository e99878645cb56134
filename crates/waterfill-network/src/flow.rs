//! Groups of congestion-controlled flows.

use serde::Deserialize;

use crate::application::ApplicationSpec;
use crate::demand::DemandSpec;
use crate::fault::HostFaultSpec;

/// Group of `count` flows that differ only in their start times and access delays.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name of the group.
    pub name: String,
    /// Number of flows.
    pub count: u32,
    /// Name of the protocol.
    pub protocol: String,
    /// Links that data crosses, in order.
    pub forward: Vec<u32>,
    /// Links that acknowledgements cross, in order.
    pub reverse: Vec<u32>,
    /// Time at which the first flow sends its SYN, in seconds. With `after` it counts from the last completion.
    pub start_s: f64,
    /// Time between the starts of two consecutive flows, in seconds.
    pub stagger_s: f64,
    /// Time added to each flow's start, in seconds; empty for no jitter.
    pub start_jitter_s: Vec<f64>,
    /// Time after which no flow sends new data, in seconds.
    pub stop_s: f64,
    /// Payload of each flow in bytes; `None` for unlimited data.
    pub size_bytes: Option<u64>,
    /// One-way delay in seconds at the source's access in each direction, in addition to the links' delays.
    pub pad_s: f64,
    /// One-way delay in seconds added to each flow's `pad_s`; empty for no jitter.
    pub pad_jitter_s: Vec<f64>,
    /// Rate in bit/s of each source host's own link to its first router; `None` for an ideal access.
    pub access_bps: Option<f64>,
    /// Base RTT in seconds, for the summary.
    pub base_rtt_s: f64,
    /// Weight in weighted fairness.
    pub weight: f64,
    /// Rate in bit/s at which the application writes data; `None` for no limit. The mean rate of `application` if there is
    /// one, for estimates only.
    pub demand_bps: Option<f64>,
    /// Demands over time instead of `demand_bps`; empty for a constant demand.
    #[serde(default)]
    pub demands: Vec<DemandSpec>,
    /// Application that writes the data; `None` for one that always has data, within the demand.
    #[serde(default)]
    pub application: Option<ApplicationSpec>,
    /// Window in packets before the first feedback.
    pub initial_window_packets: f64,
    /// True if data waits for the answer to a SYN; false if the first window leaves at the start, at the rate of the
    /// host's own link.
    #[serde(default = "yes")]
    pub handshake: bool,
    /// True if packets are paced; `None` to follow the law's default.
    pub pacing: Option<bool>,
    /// Number of packets that leave at once when pacing allows one.
    #[serde(default = "one")]
    pub pacing_quantum_packets: u32,
    /// Time at the pacing rate whose packets leave at once (s), instead of that number; `None` for the number.
    #[serde(default)]
    pub pacing_quantum_s: Option<f64>,
    /// True if the receiver acknowledges only every second packet.
    pub delayed_ack: bool,
    /// Acknowledgements that a QUIC sender asks for; `None` for those of RFC 9000.
    #[serde(default)]
    pub ack_frequency: Option<AckFrequencySpec>,
    /// True if packets may be marked (ECN); `None` to follow the law's default.
    pub ecn: Option<bool>,
    /// Name of the way in which marks are reported to the sender; `None` to follow the law's default.
    #[serde(default)]
    pub ecn_feedback: Option<String>,
    /// `"ect0"` or `"ect1"`: ECN field of packets that may be marked; `None` to follow the law's default.
    #[serde(default)]
    pub ecn_codepoint: Option<String>,
    /// Name of the method of loss recovery; `None` to follow the protocol's default.
    #[serde(default)]
    pub recovery: Option<String>,
    /// Name of the rule for a window that the application does not use; `None` to follow the protocol's default.
    #[serde(default)]
    pub window_validation: Option<String>,
    /// RTT that packets state to routers; `None` for the measured RTT.
    pub claimed_rtt_s: Option<f64>,
    /// Time in seconds after which a host forgets an RTT as its smallest; `None` for never.
    pub base_rtt_window_s: Option<f64>,
    /// Faults of the flows' hosts.
    #[serde(default)]
    pub faults: Vec<HostFaultSpec>,
    /// Groups whose flows have all completed before this group starts, as indexes. `start_s` counts from that time.
    #[serde(default)]
    pub after: Vec<u32>,
    /// Number of groups of `after` that must have completed; `None` for all.
    #[serde(default)]
    pub after_count: Option<u32>,
    /// Group of `after` whose connections this group goes on to use; `None` for new connections.
    #[serde(default)]
    pub continues: Option<u32>,
    /// Later routes, in order of time; empty if `forward` and `reverse` hold for the whole run.
    #[serde(default)]
    pub routes: Vec<RouteChangeSpec>,
    /// True if switches choose each packet's links. `forward` and `reverse` are then one of the shortest routes.
    #[serde(default)]
    pub switched: bool,
}

/// Contents of an ACK_FREQUENCY frame, in force from the first packet on (draft-ietf-quic-ack-frequency §4).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AckFrequencySpec {
    /// Maximum number of packets that the receiver leaves without an acknowledgement.
    pub threshold: u32,
    /// Maximum delay of an acknowledgement, in seconds.
    pub max_delay_s: f64,
    /// Reordering in packets at which the receiver acknowledges at once; 0 for never.
    pub reordering: u32,
}

/// Route of a group's flows from a given time on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteChangeSpec {
    /// Time of the change in seconds. Packets in flight finish on the old route.
    pub at_s: f64,
    /// Links that data crosses, in order.
    pub forward: Vec<u32>,
    /// Links that acknowledgements cross, in order.
    pub reverse: Vec<u32>,
}

impl FlowSpec {
    /// Returns the data links and the acknowledgement links of each route that the flows ever take.
    pub fn ways(&self) -> impl Iterator<Item = (&[u32], &[u32])> + Clone {
        let later = self.routes.iter().map(|route| (&route.forward[..], &route.reverse[..]));
        std::iter::once((&self.forward[..], &self.reverse[..])).chain(later)
    }

    /// Returns the number of packets for which there is one acknowledgement, without losses and marks.
    #[must_use]
    pub fn packets_per_ack(&self) -> f64 {
        let default = if self.delayed_ack { 2.0 } else { 1.0 };
        self.ack_frequency.map_or(default, |asked| f64::from(asked.threshold) + 1.0)
    }

    /// Returns the time at which a flow of the group sends its SYN.
    #[must_use]
    pub fn start_of_s(&self, index: u32) -> f64 {
        let start_s = self.start_s + f64::from(index) * self.stagger_s;
        added(start_s, &self.start_jitter_s, index)
    }

    /// Returns a flow's one-way access delay.
    #[must_use]
    pub fn pad_of_s(&self, index: u32) -> f64 {
        added(self.pad_s, &self.pad_jitter_s, index)
    }

    /// Returns a flow's base RTT.
    #[must_use]
    pub fn base_rtt_of_s(&self, index: u32) -> f64 {
        added(added(self.base_rtt_s, &self.pad_jitter_s, index), &self.pad_jitter_s, index)
    }

    /// Returns the largest rate in bit/s at which the application ever writes data; infinite for no limit.
    #[must_use]
    pub fn demand_max_bps(&self) -> f64 {
        let constant = if self.demands.is_empty() { self.demand_bps.unwrap_or(f64::INFINITY) } else { 0.0 };
        self.demands.iter().map(|demand| demand.rate_bps).fold(constant, f64::max)
    }

    /// Returns true if the flows of the group have individual start times or delays.
    #[must_use]
    pub fn differ(&self) -> bool {
        self.stagger_s > 0.0 || !self.start_jitter_s.is_empty() || !self.pad_jitter_s.is_empty()
    }
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

/// Adds a flow's individual time to `time_s`, if the flow has one.
fn added(time_s: f64, parts_s: &[f64], index: u32) -> f64 {
    parts_s.get(index as usize).map_or(time_s, |part_s| time_s + part_s)
}
