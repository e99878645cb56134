//! A group of congestion-controlled flows.

use serde::Deserialize;
use waterfill_laws::protocol::Ecn;

use crate::check::{positive, time};
use crate::network::{Network, TCP_IP_BYTES};

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

impl FlowSpec {
    /// Checks the flow against the network that it is part of; `at` names it in the error.
    pub(crate) fn check(&self, at: &str, network: &Network) -> Result<(), String> {
        network.check_path(at, &self.forward)?;
        network.check_path(at, &self.reverse)?;
        for (key, s) in
            [("start", self.start_s), ("stagger", self.stagger_s), ("stop", self.stop_s), ("rtt", self.pad_s)]
        {
            time(&format!("{at}.{key}"), s)?;
        }
        positive(&format!("{at}.weight"), self.weight)?;
        if self.weight > MAX_WEIGHT {
            return Err(format!("{at}.weight: expected at most {MAX_WEIGHT:e}, got {:e}", self.weight));
        }
        positive(&format!("{at}.initial_window"), self.initial_window_packets)?;
        if let Some(demand) = self.demand_bps {
            positive(&format!("{at}.demand"), demand)?;
        }
        if self.size_bytes == Some(0) {
            return Err(format!("{at}.size: expected a volume above zero"));
        }
        let id = Network::protocol_of(at, self)?;
        let headers = TCP_IP_BYTES + id.header_bytes() as u16;
        if network.packet_bytes <= headers {
            return Err(format!(
                "packet_size: expected more than the {headers} B of headers of {}, got {} B",
                self.protocol, network.packet_bytes
            ));
        }
        if self.ecn == Some(true) && id.info().host.ecn == Ecn::Off {
            return Err(format!("{at}.ecn: expected false, as {} does not react to marks", self.protocol));
        }
        network.params_of(id).map(drop)
    }
}

/// Beyond this weight one flow's share is the link.
const MAX_WEIGHT: f64 = 1e6;
