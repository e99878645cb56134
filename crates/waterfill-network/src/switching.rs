//! Switches that choose each packet's next link among equal shortest routes (ECMP).

use serde::Deserialize;

use crate::check::{positive, time};
use crate::traffic::ArrivalSpec;

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

    pub(crate) fn check(&self, links: usize) -> Result<(), String> {
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
