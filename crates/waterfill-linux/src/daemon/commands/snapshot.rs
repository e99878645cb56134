//! State of links and connections at one moment, shown by `--line`, `status` and the metrics.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use crate::daemon::kernel::laws;
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::roles::csig::{self, Csig, TagStatus};
use crate::daemon::roles::host::{self, CounterStatus, FlowStatus, Host, Summary};
use crate::daemon::roles::router::{self, LinkStatus, Router};

/// State of links and connections at one moment. `--line` and `status --json` print it as one JSON document.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    /// Names of the loaded roles.
    pub(crate) roles: Vec<&'static str>,
    pub(crate) links: Vec<LinkStatus>,
    pub(crate) flows: Vec<FlowStatus>,
    /// Counts over all connections, including those that have ended. `None` without the host role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counters: Option<CounterStatus>,
    /// Servers in this network namespace that do not answer the option because they listened before the host programs
    /// were loaded.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) silent_listeners: BTreeSet<String>,
    /// State of each device of a CSIG domain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) csig: Vec<TagStatus>,
    /// Sums over each law's connections, which metrics show in place of a list.
    #[serde(skip)]
    pub(crate) summaries: Vec<Summary>,
    /// State of `waterfilld run`; `None` for other commands.
    #[serde(skip)]
    pub(crate) run: Option<RunStatus>,
}

/// State of `waterfilld run` since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunStatus {
    /// Time at which the daemon started, in seconds since 1970.
    pub(crate) started_s: f64,
    /// Number of reloads that were applied. `refused` counts reloads with a wrong file. `failed` counts reloads that
    /// failed for another reason.
    pub(crate) applied: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
    /// True if the last reading of the file was applied.
    pub(crate) current: bool,
    /// Number of configured devices that do not exist.
    pub(crate) missing: usize,
}

impl Snapshot {
    /// Creates a snapshot of a loaded role without links or flows.
    #[cfg(test)]
    pub(crate) fn of(role: Role) -> Self {
        Self { roles: vec![role.name()], ..Self::default() }
    }

    /// Reads the state of loaded programs, with a list of all connections.
    pub(crate) fn loaded<'a>(
        hosts: impl Iterator<Item = &'a Host>,
        routers: impl Iterator<Item = &'a Router>,
    ) -> Result<Self> {
        let mut out = Self::links_of(routers)?;
        for host in hosts {
            out.add(Role::Host);
            out.flows.extend(host.flows()?);
            out.counters.get_or_insert_default().add(&host.counters()?);
            out.silent_listeners.extend(host.silent_listeners()?);
        }
        Ok(out)
    }

    /// Reads the state of loaded programs for the metrics, with sums over connections instead of a list.
    pub(crate) fn summed<'a>(
        hosts: impl Iterator<Item = &'a Host>,
        routers: impl Iterator<Item = &'a Router>,
        csig: Option<&Csig>,
    ) -> Result<Self> {
        let mut out = Self::links_of(routers)?;
        for host in hosts {
            out.add(Role::Host);
            out.summaries.push(host.summary()?);
        }
        if let Some(csig) = csig {
            out.add(Role::Csig);
            out.csig = csig.tags()?; // after the links, whose prices are up to date then
        }
        Ok(out)
    }

    fn links_of<'a>(routers: impl Iterator<Item = &'a Router>) -> Result<Self> {
        let mut out = Self::default();
        for router in routers {
            out.add(Role::Router);
            out.links.extend(router.links()?);
        }
        Ok(out)
    }

    /// Reads the state of every law from the pins, whether or not a daemon runs.
    pub(crate) fn pinned(pins: &Pins) -> Result<Self> {
        let mut out = Self::default();
        for law in laws::all() {
            let pins = pins.of(law);
            if pins.has(Role::Router) {
                if let Some(links) = router::pinned_links(law, &pins)? {
                    out.add(Role::Router);
                    out.links.extend(links);
                }
            }
            if pins.has(Role::Host) {
                if let Some(flows) = host::pinned_flows(law, &pins)? {
                    out.add(Role::Host);
                    out.flows.extend(flows);
                    if let Some(counters) = host::pinned_counters(law, &pins)? {
                        out.counters.get_or_insert_default().add(&counters);
                    }
                    out.silent_listeners.extend(host::pinned_silent_listeners(&pins)?);
                }
            }
        }
        if pins.has(Role::Csig) {
            if let Some(tags) = csig::pinned_tags(pins)? {
                out.add(Role::Csig);
                out.csig = tags;
            }
        }
        Ok(out)
    }

    fn add(&mut self, role: Role) {
        if !self.has(role) {
            self.roles.push(role.name());
        }
    }

    /// Returns true if a role is loaded.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role.name())
    }
}
