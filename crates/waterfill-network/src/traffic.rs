//! Load in addition to the flows: packets without congestion control, and web-like arrivals of
//! finite flows.

use serde::Deserialize;

use crate::distribution::Distribution;
use crate::flow::FlowSpec;

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
    /// Rate of the host's own link to its first router, of a source of packets; none means an ideal access.
    pub access_bps: Option<f64>,
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

/// Durations of an on–off source's on and off periods, which alternate.
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
    /// Common properties of the flows; the count, size and start times in it are ignored.
    pub flow: FlowSpec,
    /// Groups of routes. An arrival draws a group, and a route in it for each of its flows; empty: all take the flow's own.
    #[serde(default)]
    pub routes: Vec<Vec<RouteSpec>>,
    /// Flows that start at each arrival, on different routes of one group.
    #[serde(default = "one")]
    pub fan_in: u32,
}

/// A route of a source's flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// Links that data crosses, in order.
    pub forward: Vec<u32>,
    /// Links that acknowledgements cross, in order.
    pub reverse: Vec<u32>,
    /// One-way delay at the source's access, in each direction, in addition to the links'.
    pub pad_s: f64,
    /// Base RTT.
    pub base_rtt_s: f64,
}

const fn one() -> u32 {
    1
}

impl ArrivalSpec {
    /// Returns the links that data, and that acknowledgements, cross on each route.
    pub fn ways(&self) -> impl Iterator<Item = (&[u32], &[u32])> + Clone {
        let own = self.routes.is_empty().then_some((&self.flow.forward[..], &self.flow.reverse[..]));
        own.into_iter().chain(self.routes.iter().flatten().map(|route| (&route.forward[..], &route.reverse[..])))
    }

    /// Returns the common properties of the flows of a route.
    #[must_use]
    pub fn flow_on(&self, route: &RouteSpec) -> FlowSpec {
        let (forward, reverse) = (route.forward.clone(), route.reverse.clone());
        FlowSpec { forward, reverse, pad_s: route.pad_s, base_rtt_s: route.base_rtt_s, ..self.flow.clone() }
    }
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
