//! The state of links and connections at one moment, as `--line`, `status` and the metrics show it.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use crate::daemon::kernel::laws;
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::roles::csig::{self, Csig, TagStatus};
use crate::daemon::roles::host::{self, CounterStatus, FlowStatus, Host, Summary};
use crate::daemon::roles::router::{self, LinkStatus, Router};

/// The state at one moment; `--line` and `status --json` print it as one JSON document.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    /// Names of the roles that are loaded.
    pub(crate) roles: Vec<&'static str>,
    pub(crate) links: Vec<LinkStatus>,
    pub(crate) flows: Vec<FlowStatus>,
    /// Counts of all connections, also those that have ended; `None` without the host role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counters: Option<CounterStatus>,
    /// Servers of this network namespace that listened before the host programs were loaded, and do not answer the option.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) silent_listeners: BTreeSet<String>,
    /// Devices of a CSIG domain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) csig: Vec<TagStatus>,
    /// Sums over each law's connections, of which a scrape reads no list.
    #[serde(skip)]
    pub(crate) summaries: Vec<Summary>,
    /// State of `waterfilld run`; `None` for other commands.
    #[serde(skip)]
    pub(crate) run: Option<RunStatus>,
}

/// The life of `waterfilld run`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunStatus {
    /// Time at which it started, in s since 1970.
    pub(crate) started_s: f64,
    /// Reloads since then: applied, refused as the file was wrong, and undone as the kernel refused a change.
    pub(crate) applied: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
    /// True if the file was applied when it was last read.
    pub(crate) current: bool,
    /// Devices of the file that do not exist.
    pub(crate) missing: usize,
}

impl Snapshot {
    /// A role without links or flows.
    #[cfg(test)]
    pub(crate) fn of(role: Role) -> Self {
        Self { roles: vec![role.name()], ..Self::default() }
    }

    /// Reads the state of loaded programs.
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

    /// Reads the state of loaded programs as the metrics show it: sums over connections, and no list of them.
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

    /// Returns whether a role is loaded.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role.name())
    }
}
