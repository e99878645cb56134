//! Load beside the flows: packets that no law controls, and web-like arrivals of finite flows.

use serde::Deserialize;

use crate::check::{positive, time};
use crate::distribution::Distribution;
use crate::flow::FlowSpec;
use crate::network::Network;

/// A source of uncontrolled packets, or of finite flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name.
    pub name: String,
    /// Arrival process.
    pub kind: TrafficKind,
    /// Links that its packets, or its flows' data, cross in order.
    pub path: Vec<u32>,
    /// Rate of an uncontrolled source while it is on.
    pub rate_bps: Option<f64>,
    /// Start time.
    pub start_s: f64,
    /// Time of its last packet, or of its last new flow.
    pub stop_s: f64,
    /// Size of its packets.
    pub packet_bytes: u16,
    /// Periods of an on–off source.
    pub periods: Option<PeriodSpec>,
    /// Arrivals of a source of flows.
    pub flows: Option<ArrivalSpec>,
}

/// How long an on–off source is on and off, in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodSpec {
    /// Lengths of the on-periods, in seconds.
    pub on_s: Distribution,
    /// Lengths of the off-periods, in seconds.
    pub off_s: Distribution,
}

/// Flows that arrive as a Poisson process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalSpec {
    /// Mean number of arrivals per second.
    pub arrivals_per_s: f64,
    /// Payload of each flow.
    pub sizes_bytes: Distribution,
    /// What the flows have in common; its count, size and start times are ignored.
    pub flow: FlowSpec,
}

/// Kinds of traffic.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum TrafficKind {
    /// Constant bit rate.
    Cbr,
    /// Packets with exponential gaps, or flows with exponential gaps.
    Poisson,
    /// Constant bit rate during on-periods.
    OnOff,
    /// Flows with exponential gaps.
    Web,
}

impl TrafficKind {
    /// Name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cbr => "cbr",
            Self::Poisson => "poisson",
            Self::OnOff => "onoff",
            Self::Web => "web",
        }
    }
}

/// Maximum arrivals per second of one source: a thousand per packet time at 10 Gbit/s.
const MAX_ARRIVALS: f64 = 1e9;

impl TrafficSpec {
    /// Checks the source against the network that it is part of; `at` names it in the error.
    pub(crate) fn check(&self, at: &str, network: &Network) -> Result<(), String> {
        network.check_path(at, &self.path)?;
        positive(&format!("{at}.packet_size"), f64::from(self.packet_bytes))?;
        time(&format!("{at}.start"), self.start_s)?;
        time(&format!("{at}.stop"), self.stop_s)?;
        let kind = self.kind;
        let of_flows = kind == TrafficKind::Web || (kind == TrafficKind::Poisson && self.rate_bps.is_none());
        if self.rate_bps.is_none() != of_flows || self.flows.is_some() != of_flows {
            let name = kind.name();
            return Err(format!("{at}.rate: expected either a packet rate or flow arrivals, as {name} needs"));
        }
        if self.periods.is_some() != (kind == TrafficKind::OnOff) {
            return Err(format!("{at}.on: expected on- and off-periods for an on–off source only"));
        }
        if let Some(rate_bps) = self.rate_bps {
            positive(&format!("{at}.rate"), rate_bps)?;
            if let Some(PeriodSpec { on_s, off_s }) = &self.periods {
                on_s.check().map_err(|e| format!("{at}.on: {e}"))?;
                off_s.check().map_err(|e| format!("{at}.off: {e}"))?;
                let packet_s = f64::from(self.packet_bytes) * 8.0 / rate_bps;
                if on_s.mean() < packet_s {
                    return Err(format!("{at}.on: expected a mean of at least one packet time, {packet_s} s"));
                }
            }
        }
        if let Some(flows) = &self.flows {
            positive(&format!("{at}.arrival_rate"), flows.arrivals_per_s)?;
            if flows.arrivals_per_s > MAX_ARRIVALS {
                return Err(format!("{at}.arrival_rate: expected at most {MAX_ARRIVALS:e} flows per second"));
            }
            flows.sizes_bytes.check().map_err(|e| format!("{at}.sizes: {e}"))?;
            flows.flow.check(at, network)?;
        }
        Ok(())
    }
}
