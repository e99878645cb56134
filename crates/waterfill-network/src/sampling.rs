//! Links that have time series, and their interval.

use serde::Deserialize;

/// Links with time series, where not all links have them at each sample of the flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesSpec {
    /// Indexes of the links, in increasing order.
    pub links: Vec<u32>,
    /// Number of samples of these links per sample of flows and traffic sources.
    pub per_sample: u32,
}

impl SeriesSpec {
    pub(crate) fn check(&self, links: usize) -> Result<(), String> {
        if self.links.is_empty() || !self.links.is_sorted_by(|a, b| a < b) {
            return Err(format!("series.links: must be increasing indexes, got {} of them", self.links.len()));
        }
        if self.links.iter().any(|&l| l as usize >= links) {
            return Err(format!("series.links: must be below {links}"));
        }
        if self.per_sample == 0 { Err("series.step: must be at most sample".into()) } else { Ok(()) }
    }
}
