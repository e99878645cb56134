//! Traffic in addition to the flows: packets without congestion control, and web-like arrivals of finite flows.

use serde::Deserialize;

use crate::distribution::Distribution;
use crate::flow::FlowSpec;

/// Source of uncontrolled packets or of finite flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name of the source.
    pub name: String,
    /// Arrival process of the source.
    pub kind: TrafficKind,
    /// Links that the source's packets, or its flows' data, cross in order.
    pub path: Vec<u32>,
    /// Rate of a source of packets while the source is on.
    pub rate_bps: Option<f64>,
    /// Rate of the host's own link to its first router, for a source of packets; `None` for an ideal access.
    pub access_bps: Option<f64>,
    /// Start time in seconds.
    pub start_s: f64,
    /// Time of the last packet or the last new flow, in seconds.
    pub stop_s: f64,
    /// Size of the source's packets in bytes.
    pub packet_bytes: u16,
    /// On- and off-periods, for an on–off source.
    pub periods: Option<PeriodSpec>,
    /// Flow arrivals, for a source of flows.
    pub flows: Option<ArrivalSpec>,
    /// True if switches choose the links of a source's packets. `path` is then one of the shortest routes.
    #[serde(default)]
    pub switched: bool,
}

/// Durations of the alternating on- and off-periods of an on–off source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodSpec {
    /// Lengths of the on-periods, in seconds.
    pub on_s: Distribution,
    /// Lengths of the off-periods, in seconds.
    pub off_s: Distribution,
}

/// Arrivals of flows: a Poisson process, or given times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalSpec {
    /// Mean number of arrivals per second.
    pub arrivals_per_s: f64,
    /// Times of the arrivals in seconds, in their order, instead of a Poisson process; empty for that.
    #[serde(default)]
    pub at_s: Vec<f64>,
    /// Payload of each flow in bytes.
    pub sizes_bytes: Distribution,
    /// Common properties of the flows. The count, size and start times in this field are ignored.
    pub flow: FlowSpec,
    /// Groups of routes; empty if all flows take the route of `flow`.
    ///
    /// An arrival draws a group, and a route in the group for each of its flows.
    #[serde(default)]
    pub routes: Vec<Vec<RouteSpec>>,
    /// Groups of pairs of nodes between which switches choose the routes. `routes` are then routes that together cross
    /// each link which the flows may cross, for estimates only.
    #[serde(default)]
    pub pairs: Vec<Vec<(u32, u32)>>,
    /// Number of flows that start at each arrival, on different routes of one group.
    #[serde(default = "one")]
    pub fan_in: u32,
}

/// Route of a source's flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// Links that data crosses, in order.
    pub forward: Vec<u32>,
    /// Links that acknowledgements cross, in order.
    pub reverse: Vec<u32>,
    /// One-way delay in seconds at the source's access in each direction, in addition to the links' delays.
    pub pad_s: f64,
    /// Base RTT of the route in seconds.
    pub base_rtt_s: f64,
}

const fn one() -> u32 {
    1
}

impl ArrivalSpec {
    /// Returns the data links and the acknowledgement links of each route.
    pub fn ways(&self) -> impl Iterator<Item = (&[u32], &[u32])> + Clone {
        let own = self.routes.is_empty().then_some((&self.flow.forward[..], &self.flow.reverse[..]));
        own.into_iter().chain(self.routes.iter().flatten().map(|route| (&route.forward[..], &route.reverse[..])))
    }

    /// Returns the number of routes, or of pairs of nodes between which switches choose the route, in each group.
    #[must_use]
    pub fn group_sizes(&self) -> Vec<usize> {
        match (self.pairs.is_empty(), self.routes.is_empty()) {
            (false, _) => self.pairs.iter().map(Vec::len).collect(),
            (true, false) => self.routes.iter().map(Vec::len).collect(),
            (true, true) => vec![1],
        }
    }

    /// Returns the number of routes, or of pairs of nodes between which switches choose the route.
    #[must_use]
    pub fn route_count(&self) -> usize {
        self.group_sizes().iter().sum()
    }

    /// Returns the common properties of the flows on a route.
    #[must_use]
    pub fn flow_on(&self, route: &RouteSpec) -> FlowSpec {
        let (forward, reverse) = (route.forward.clone(), route.reverse.clone());
        FlowSpec { forward, reverse, pad_s: route.pad_s, base_rtt_s: route.base_rtt_s, ..self.flow.clone() }
    }
}

/// Kinds of traffic sources.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum TrafficKind {
    /// Packets at a constant bit rate.
    Cbr,
    /// Packets or flows with exponential gaps.
    Poisson,
    /// Packets at a constant bit rate during on-periods.
    OnOff,
    /// Flows with exponential gaps.
    Web,
}

impl TrafficKind {
    /// Returns the name of the kind in scenarios.
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
