//! The host's settings.

use std::path::PathBuf;

use super::{Names, Wrong, parameters};
use crate::daemon::host::{Kind, Network, Options};
use crate::daemon::law::Law;

/// Settings of one law on this host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostSettings {
    pub(crate) law: &'static Law,
    /// Parameters of the law, by name.
    pub(crate) values: Vec<(String, String)>,
    /// `None`: the law's usual one.
    pub(crate) name: Option<String>,
    /// `None`: the root of the control groups.
    pub(crate) cgroup: Option<PathBuf>,
    pub(crate) fallback: String,
    pub(crate) netns_cookies: Vec<u64>,
    pub(crate) peers: Vec<Network>,
    pub(crate) unrestricted: bool,
    pub(crate) kind: Kind,
}

impl HostSettings {
    /// Returns the congestion control's name.
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.law.congestion_control())
    }

    /// Checks settings against each other.
    pub(crate) fn check(&self, names: Names) -> Result<(), Wrong> {
        if self.kind == Kind::Paper && !self.law.is_default() {
            let (kind, law) = (names.of("option_kind"), names.of("law"));
            return Err(Wrong::new("option_kind", format!("{kind} 42: expected 253 with {law} {}", self.law.name)));
        }
        let name = self.name();
        if self.fallback == name {
            let text = format!("{} {name}: expected another than the law's own name", names.of("fallback"));
            return Err(Wrong::new("fallback", text));
        }
        parameters(self.law, names, &self.values, None).map(drop)
    }

    /// Returns the options of the role; `cgroup` returns the root of the control groups.
    pub(crate) fn options(
        &self,
        names: Names,
        cgroup: impl FnOnce() -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Options> {
        self.check(names)?;
        Ok(Options {
            law: self.law,
            parameters: parameters(self.law, names, &self.values, None)?,
            name: self.name(),
            cgroup: self.cgroup.clone().map_or_else(cgroup, Ok)?,
            fallback: self.fallback.clone(),
            netns_cookies: self.netns_cookies.clone(),
            peers: self.peers.clone(),
            unrestricted: self.unrestricted,
            kind: self.kind,
        })
    }
}
