//! Switches that choose each packet's next link among equal shortest routes (ECMP).

use serde::Deserialize;

use crate::check::{positive, time};
use crate::network::Network;
use crate::traffic::{ArrivalSpec, TrafficSpec};

/// Choice of the network's switches, and the nodes of its links.
///
/// A route is shortest if it has the fewest links and, among these, the smallest propagation delay at the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchingSpec {
    /// What a choice depends on.
    pub choice: PathChoice,
    /// Pause in seconds after which a flow's next packet may take another link, for flowlets.
    pub gap_s: Option<f64>,
    /// Numbers of the nodes at which each link direction begins and ends.
    pub nodes: Vec<(u32, u32)>,
}

/// What a switch's choice among equal links depends on.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PathChoice {
    /// A hash of the flow and its direction.
    Hash,
    /// A hash that a pause of the flow renews.
    Flowlet,
    /// A hash of the packet.
    Spray,
}

impl SwitchingSpec {
    /// Returns the nodes at which a path begins and ends, if it has links of the network.
    #[must_use]
    pub fn ends(&self, path: &[u32]) -> Option<(u32, u32)> {
        let node = |link: Option<&u32>| self.nodes.get(*link? as usize);
        Some((node(path.first())?.0, node(path.last())?.1))
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.iter().map(|&(start, end)| start.max(end) as usize + 1).max().unwrap_or(0)
    }

    /// Returns the sending and the receiving node of each pair between which a source's flows are switched.
    pub fn pairs(flows: &ArrivalSpec) -> impl Iterator<Item = (u32, u32)> {
        flows.pairs.iter().flatten().copied()
    }

    fn check(&self, links: usize) -> Result<(), String> {
        if self.nodes.len() != links {
            return Err(format!("must have two nodes for each of {links} links, got {}", self.nodes.len()));
        }
        if self.count() > 2 * links {
            return Err(format!("node numbers must be below {}, got {}", 2 * links, self.count() - 1));
        }
        match (self.choice, self.gap_s) {
            (PathChoice::Flowlet, None) => Err("flowlets need a gap".into()),
            (_, Some(gap_s)) => positive("gap", gap_s).and_then(|()| time("gap", gap_s)),
            (_, None) => Ok(()),
        }
    }
}

impl Network {
    /// Checks the switches, and that what they forward allows it.
    pub(crate) fn check_switching(&self) -> Result<(), String> {
        let switched = |source: &TrafficSpec| {
            source.switched || source.flows.as_ref().is_some_and(|flows| flows.flow.switched || !flows.pairs.is_empty())
        };
        let Some(switching) = &self.switching else {
            if let Some(flow) = self.flows.iter().find(|flow| flow.switched) {
                return Err(format!("flow.{}: the network has no switches that choose its route", flow.name));
            }
            return match self.traffic.iter().find(|source| switched(source)) {
                Some(source) => {
                    Err(format!("traffic.{}: the network has no switches that choose its route", source.name))
                }
                None => Ok(()),
            };
        };
        switching.check(self.links.len()).map_err(|e| format!("ecmp: {e}"))?;
        let own = self.flows.iter().map(|flow| (format!("flow.{}", flow.name), flow));
        let arriving = self
            .traffic
            .iter()
            .filter_map(|source| source.flows.as_ref().map(|flows| (format!("traffic.{}", source.name), &flows.flow)));
        for (at, flow) in own.chain(arriving).filter(|(_, flow)| flow.switched) {
            if !flow.routes.is_empty() {
                return Err(format!("{at}.route: not allowed, because switches choose the flow's route"));
            }
            let (there, back) = (switching.ends(&flow.forward), switching.ends(&flow.reverse));
            if there != back.map(|(from, to)| (to, from)) {
                return Err(format!("{at}.path: acknowledgements must return to where the data came from"));
            }
            if switching.choice == PathChoice::Spray && self.protocol_of(&at, flow)?.has_telemetry() {
                return Err(format!(
                    "{at}.protocol: {} compares telemetry of one path, and ecmp = \"spray\" sends each packet on another; \
                     use ecmp = \"hash\" or \"flowlet\"",
                    flow.protocol
                ));
            }
        }
        let nodes = switching.count();
        for source in &self.traffic {
            let pairs = source.flows.iter().flat_map(SwitchingSpec::pairs);
            if let Some((from, to)) = pairs.into_iter().find(|&(a, b)| a == b || a.max(b) as usize >= nodes) {
                return Err(format!("traffic.{}.pairs: no pair of two nodes: {from}, {to}", source.name));
            }
        }
        Ok(())
    }
}
