//! Programs that `waterfilld run` has loaded, and the changes that make them match the file.
//!
//! Every change keeps the kernel's state: a link that stays keeps its price and counters, a connection its window.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use libbpf_rs::MapHandle;

use crate::daemon::commands::config::Config;
use crate::daemon::commands::snapshot::Snapshot;
use crate::daemon::kernel::claim::{self, Claim};
use crate::daemon::kernel::device::NetworkChange;
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::kernel::pins::{Lock, Pins, Role};
use crate::daemon::kernel::probe::System;
use crate::daemon::options::Names;
use crate::daemon::roles;
use crate::daemon::roles::csig::{self, Csig, TagSetup};
use crate::daemon::roles::host::{self, Host, HostSetup};
use crate::daemon::roles::router::{self, LinkSetup, Router};

/// Setup that the configuration file asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    hosts: Vec<HostSetup>,
    routers: BTreeMap<&'static str, (&'static LoadableLaw, Vec<LinkSetup>)>,
    csig: Vec<TagSetup>,
}

impl Wanted {
    /// Returns the setup that a file asks for, checked against this host.
    pub(super) fn of(config: &Config, system: &System) -> Result<Self> {
        let mut wanted = Self::default();
        let refused = |key: String, wrong| config.refuse(&key, &wrong);
        for (i, options) in config.hosts.iter().enumerate() {
            let setup = HostSetup::of(options, Names::Keys, || system.cgroup())?;
            setup.check_kernel(system, Names::Keys).map_err(|wrong| refused(format!("host.{i}"), wrong))?;
            wanted.hosts.push(setup);
        }
        for (i, options) in config.routers.iter().enumerate() {
            let setup = LinkSetup::of(options, Names::Keys)?;
            setup.check_kernel(system, Names::Keys).map_err(|wrong| refused(format!("router.{i}"), wrong))?;
            wanted.routers.entry(setup.law.name).or_insert_with(|| (setup.law, Vec::new())).1.push(setup);
        }
        for (i, options) in config.csig.iter().enumerate() {
            let setup = TagSetup::of(options, Names::Keys)?;
            setup.check_kernel(system).map_err(|wrong| refused(format!("csig.{i}"), wrong))?;
            wanted.csig.push(setup);
        }
        if !wanted.hosts.is_empty() {
            system.check(Role::Host)?;
        }
        if !wanted.routers.is_empty() {
            system.check(Role::Router)?;
        }
        Ok(wanted)
    }

    fn has(&self, law: &LoadableLaw, role: Role) -> bool {
        match role {
            Role::Host => self.hosts.iter().any(|host| host.law == law),
            Role::Router => self.routers.contains_key(law.name),
            Role::Csig => !self.csig.is_empty(),
        }
    }
}

/// Maximum number of names that a reload prints for each kind of change; the log has all names.
const MAX_NAMES: usize = 8;

/// Changes made by a reload: hosts and devices by name, such as `router maxnet on eth0`.
#[derive(Debug, Default)]
pub(super) struct Changes {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    /// Parts that others had removed or changed.
    restored: Vec<String>,
    others: Vec<&'static str>,
}

impl Changes {
    /// Records a change that is not about a host or device, such as "log".
    pub(super) fn push(&mut self, what: &'static str) {
        self.others.push(what);
    }

    /// Describes the changes in one line.
    pub(super) fn describe(&self) -> String {
        let kinds = [
            (&self.added, "added"),
            (&self.changed, "changed"),
            (&self.removed, "removed"),
            (&self.restored, "restored"),
        ];
        let kinds = kinds.iter().filter(|(names, _)| !names.is_empty()).map(|(names, what)| {
            let more = names.len().saturating_sub(MAX_NAMES);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let first = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>();
            format!("{} {what} ({}{rest})", names.len(), first.join(", "))
        });
        let others = self.others.iter().map(|what| format!("{what} changed"));
        let all: Vec<_> = kinds.chain(others).collect();
        if all.is_empty() { "nothing changed".into() } else { all.join(", ") }
    }
}

/// Returns the name of a law's host in the answer to a reload.
fn host_name(law: &str) -> String {
    format!("host {law}")
}

/// Returns the name of a law's router at a device in the answer to a reload.
fn link_name(law: &str, device: &str) -> String {
    format!("router {law} on {device}")
}

/// Returns the name of CSIG at a device in the answer to a reload.
fn tags_name(device: &str) -> String {
    format!("csig on {device}")
}

/// Host programs of a law.
struct HostRole {
    host: Host,
    options: HostSetup,
    /// True if nothing of this role was pinned before this process loaded it.
    first: bool,
    _lock: Lock,
}

/// Router programs of a law, with their devices.
struct RouterRole {
    router: Router,
    law: &'static LoadableLaw,
    /// Claims of devices, by device name.
    claims: BTreeMap<String, Claim>,
    options: BTreeMap<String, LinkSetup>,
    /// True if nothing of this role was pinned before this process loaded it.
    first: bool,
    _lock: Lock,
}

/// CSIG's programs, with their devices.
struct CsigRole {
    csig: Csig,
    /// Claims of devices, by device name.
    claims: BTreeMap<String, Claim>,
    options: BTreeMap<String, TagSetup>,
    /// True if nothing of this role was pinned before this process loaded it.
    first: bool,
    _lock: Lock,
}

/// All programs that this process has loaded.
pub(super) struct Loaded {
    pins: Pins,
    hosts: BTreeMap<&'static str, HostRole>,
    routers: BTreeMap<&'static str, RouterRole>,
    csig: Option<CsigRole>,
}

impl Loaded {
    /// Creates the state before the first load, without any program.
    pub(super) fn new(pins: Pins) -> Self {
        Self { pins, hosts: BTreeMap::new(), routers: BTreeMap::new(), csig: None }
    }

    /// Loads the wanted setup, and unloads an earlier process's pinned programs that are not part of this setup. Prices
    /// and connections continue. On an error, the earlier pins stay.
    pub(super) fn start(&mut self, wanted: &Wanted) -> Result<()> {
        self.try_apply(wanted).inspect_err(|_| self.remove_first())?;
        if let Some(role) = &mut self.csig {
            for device in role.csig.forget_others()? {
                tracing::info!(
                    event = "device_removed",
                    device,
                    csig = true,
                    "took CSIG of an earlier start off {device}"
                );
            }
        } else if self.pins.has(Role::Csig) {
            let _lock = self.pins.lock(Role::Csig)?;
            csig::unload(&self.pins)?;
            tracing::info!(event = "unloaded", csig = true, "unloaded the csig of an earlier start");
        }
        for (law, role) in laws::all().flat_map(|law| [(law, Role::Host), (law, Role::Router)]) {
            let pins = self.pins.of(law);
            if !wanted.has(law, role) && pins.has(role) {
                let _lock = pins.lock(role)?;
                roles::unload(role, &pins)?;
                tracing::info!(event = "unloaded", law = law.name, "unloaded the {} of an earlier start", role.name());
            }
        }
        for role in self.routers.values_mut() {
            for device in role.router.forget_others()? {
                let law = role.law.name;
                tracing::info!(
                    event = "device_removed",
                    device,
                    law,
                    "took the router of an earlier start off {device}"
                );
            }
        }
        Ok(())
    }

    /// Unloads the roles that had nothing pinned before this process loaded them.
    fn remove_first(&mut self) {
        if self.csig.take_if(|role| role.first).is_some() {
            clean_up(&self.pins, Role::Csig, true);
        }
        let hosts = self.hosts.values().filter(|role| role.first).map(|role| (role.options.law, Role::Host));
        let routers = self.routers.values().filter(|role| role.first).map(|role| (role.law, Role::Router));
        for (law, role) in hosts.chain(routers).collect::<Vec<_>>() {
            if role == Role::Host {
                self.hosts.remove(law.name);
            } else {
                self.routers.remove(law.name);
            }
            clean_up(&self.pins.of(law), role, true);
        }
    }

    /// Changes the loaded programs to the wanted setup. After an error, the previous setup is restored if possible.
    pub(super) fn apply(&mut self, wanted: &Wanted) -> Result<Changes> {
        let before = self.wanted();
        self.try_apply(wanted).inspect_err(|_| {
            if let Err(e) = self.try_apply(&before) {
                tracing::error!(event = "reload", "cannot restore what was loaded: {e:#}");
            }
        })
    }

    /// Returns the setup that is loaded now.
    fn wanted(&self) -> Wanted {
        let routers =
            self.routers.iter().map(|(name, role)| (*name, (role.law, role.options.values().cloned().collect())));
        Wanted {
            hosts: self.hosts.values().map(|role| role.options.clone()).collect(),
            routers: routers.collect(),
            csig: self.csig.iter().flat_map(|role| role.options.values().cloned()).collect(),
        }
    }

    fn try_apply(&mut self, wanted: &Wanted) -> Result<Changes> {
        let mut changes = Changes::default();
        for options in &wanted.hosts {
            self.apply_host(options, &mut changes).with_context(|| format!("host {}", options.law.name))?;
        }
        for (law, devices) in wanted.routers.values() {
            for options in devices {
                self.apply_device(law, options, &mut changes)
                    .with_context(|| format!("device {}", options.device()))?;
            }
        }
        self.apply_csig(&wanted.csig, &mut changes)?;
        for name in self.hosts.keys().copied().collect::<Vec<_>>() {
            if !wanted.hosts.iter().any(|options| options.law.name == name) {
                self.remove_host(name)?;
                changes.removed.push(host_name(name));
            }
        }
        for name in self.routers.keys().copied().collect::<Vec<_>>() {
            let devices = wanted.routers.get(name).map_or(&[][..], |(_, devices)| devices);
            let gone = self.remove_devices(name, devices)?;
            changes.removed.extend(gone.iter().map(|device| link_name(name, device)));
        }
        // The router whose prices tags carry may have gone.
        let maps = self.router_maps()?;
        if let Some(role) = &mut self.csig {
            role.csig.bind(&maps)?;
        }
        Ok(changes)
    }

    /// Returns the maps of MaxNet's links, which CSIG reads.
    fn router_maps(&self) -> Result<Vec<MapHandle>> {
        self.routers.get(laws::default().name).map_or_else(|| Ok(Vec::new()), |role| role.router.maps())
    }

    fn apply_csig(&mut self, wanted: &[TagSetup], changes: &mut Changes) -> Result<()> {
        if wanted.is_empty() {
            if let Some(role) = self.csig.take() {
                let devices: Vec<_> = role.options.keys().cloned().collect();
                csig::unload(&self.pins)?;
                for device in devices {
                    changes.removed.push(tags_name(&device));
                    tracing::info!(event = "device_removed", device, csig = true, "took CSIG off {device}");
                }
            }
            return Ok(());
        }
        let maps = self.router_maps()?;
        let first = !self.pins.has(Role::Csig);
        let role = match &mut self.csig {
            Some(role) => role,
            none => {
                let lock = self.pins.lock(Role::Csig)?;
                let csig = Csig::load(&self.pins, &maps).inspect_err(|_| clean_up(&self.pins, Role::Csig, first))?;
                none.insert(CsigRole { csig, claims: BTreeMap::new(), options: BTreeMap::new(), first, _lock: lock })
            }
        };
        let result = role.apply(wanted, &maps, changes);
        if result.is_err() && role.options.is_empty() {
            self.csig = None;
            clean_up(&self.pins, Role::Csig, first);
        }
        result
    }

    fn apply_host(&mut self, options: &HostSetup, changes: &mut Changes) -> Result<()> {
        let law = options.law;
        let pins = self.pins.of(law);
        if let Some(role) = self.hosts.get_mut(law.name) {
            if role.options != *options {
                role.host.change(&pins, &role.options, options)?;
                role.options = options.clone();
                changes.changed.push(host_name(law.name));
                tracing::info!(event = "host_changed", law = law.name, "changed the host's settings");
            }
            return Ok(());
        }
        let first = !pins.has(Role::Host);
        let lock = pins.lock(Role::Host)?;
        let host = Host::load(&pins, options).inspect_err(|_| clean_up(&pins, Role::Host, first))?;
        self.hosts.insert(law.name, HostRole { host, options: options.clone(), first, _lock: lock });
        changes.added.push(host_name(law.name));
        tracing::info!(event = "host_loaded", law = law.name, name = options.name, "loaded the host");
        Ok(())
    }

    fn apply_device(&mut self, law: &'static LoadableLaw, options: &LinkSetup, changes: &mut Changes) -> Result<()> {
        let device = options.device();
        if let Some(role) = self.routers.get_mut(law.name).filter(|role| role.options.get(device) == Some(options)) {
            let restored = role.router.restore(device)?;
            changes.restored.extend(restored.iter().map(|what| format!("{what} of {}", link_name(law.name, device))));
            return Ok(());
        }
        let pins = self.pins.of(law);
        let first = !pins.has(Role::Router);
        if !self.routers.contains_key(law.name) {
            let lock = pins.lock(Role::Router)?;
            let router = Router::load(law, &pins).inspect_err(|_| clean_up(&pins, Role::Router, first))?;
            let (claims, options) = (BTreeMap::new(), BTreeMap::new());
            self.routers.insert(law.name, RouterRole { router, law, claims, options, first, _lock: lock });
        }
        let Some(role) = self.routers.get_mut(law.name) else { return Ok(()) };
        let result = role.apply(options, changes);
        if result.is_err() && role.options.is_empty() {
            self.routers.remove(law.name);
            clean_up(&pins, Role::Router, first);
        }
        result
    }

    fn remove_host(&mut self, name: &'static str) -> Result<()> {
        let Some(role) = self.hosts.remove(name) else { return Ok(()) };
        let law = role.options.law;
        host::unload(&self.pins.of(law))?;
        tracing::info!(event = "host_unloaded", law = name, "unloaded the host");
        Ok(())
    }

    /// Detaches a law's router from all devices that are not in `wanted`. Returns the names of these devices.
    fn remove_devices(&mut self, name: &'static str, wanted: &[LinkSetup]) -> Result<Vec<String>> {
        let Some(role) = self.routers.get_mut(name) else { return Ok(Vec::new()) };
        let gone = |device: &&String| !wanted.iter().any(|options| options.device() == device.as_str());
        let gone: Vec<_> = role.options.keys().filter(gone).cloned().collect();
        for device in &gone {
            role.router.detach(device)?;
            role.claims.remove(device);
            role.options.remove(device);
            tracing::info!(event = "device_removed", device, law = name, "took the router off {device}");
        }
        if role.options.is_empty() {
            let law = role.law;
            self.routers.remove(name);
            router::unload(&self.pins.of(law))?;
        }
        Ok(gone)
    }

    /// Updates the attached programs after devices have appeared or disappeared, and compares their qdiscs and filters.
    pub(super) fn follow(&mut self, change: &NetworkChange) {
        for role in self.routers.values_mut() {
            if change.devices || change.lost {
                role.router.follow();
            }
            role.router.check_qdiscs(change);
        }
        if let Some(role) = self.csig.as_mut().filter(|_| change.devices || change.lost) {
            role.csig.follow();
            if let Err(e) = role.csig.keep_last() {
                tracing::warn!(csig = true, "{e:#}");
            }
        }
    }

    /// Returns true if any device has a queue per class.
    pub(super) fn divides(&self) -> bool {
        self.routers.values().any(|role| role.router.divides())
    }

    /// Divides the rate of each link with `--separate` between explicit and other packets.
    pub(super) fn divide(&mut self) {
        for role in self.routers.values_mut() {
            role.router.divide();
        }
    }

    pub(super) fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Logs the connections that fell back or returned since the last call.
    pub(super) fn log_events(&mut self) {
        for role in self.hosts.values_mut() {
            role.host.log_events();
        }
    }

    /// Returns the number of fallbacks by law and reason. A law whose counters cannot be read is left out.
    pub(super) fn counters(&self) -> Vec<(&'static str, BTreeMap<String, u64>)> {
        let read = |(name, role): (&&'static str, &HostRole)| match role.host.counters() {
            Ok(counters) => Some((*name, counters.fallbacks)),
            Err(e) => {
                tracing::warn!(law = name, "{e:#}");
                None
            }
        };
        self.hosts.iter().filter_map(read).collect()
    }

    /// Reads the state of all loaded programs for the metrics.
    pub(super) fn summary(&self) -> Result<Snapshot> {
        let (hosts, routers) = (self.hosts.values(), self.routers.values());
        let csig = self.csig.as_ref().map(|role| &role.csig);
        Snapshot::summed(hosts.map(|role| &role.host), routers.map(|role| &role.router), csig)
    }

    /// Describes the loaded setup in one line.
    pub(super) fn describe(&self) -> String {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let links = self.routers.values().map(|role| role.options.len()).sum();
        let missing: Vec<_> = self.missing().into_iter().collect();
        let mut out = format!("{}, {}", count(self.hosts.len(), "host law"), count(links, "link"));
        if let Some(role) = &self.csig {
            out = format!("{out}, {} of CSIG", count(role.options.len(), "device"));
        }
        if !missing.is_empty() {
            out = format!("{out}; no device yet: {}", missing.join(", "));
        }
        out
    }

    /// Returns the configured devices that do not exist.
    pub(super) fn missing(&self) -> BTreeSet<String> {
        let tags = self.csig.iter().flat_map(|role| role.csig.missing());
        self.routers.values().flat_map(|role| role.router.missing()).chain(tags).collect()
    }
}

impl RouterRole {
    fn apply(&mut self, options: &LinkSetup, changes: &mut Changes) -> Result<()> {
        let (device, law) = (options.device().to_owned(), self.law.name);
        if !self.claims.contains_key(&device) {
            let claim = claim::device(self.law, &device)?;
            self.claims.insert(device.clone(), claim);
        }
        let known = self.options.contains_key(&device);
        let there = self.router.set_device(options).inspect_err(|_| {
            if !known {
                self.claims.remove(&device);
                if let Err(e) = self.router.detach(&device) {
                    tracing::warn!("{e:#}");
                }
            }
        })?;
        self.options.insert(device.clone(), options.clone());
        match (known, there) {
            (true, _) => {
                changes.changed.push(link_name(law, &device));
                tracing::info!(event = "device_changed", device, law, "changed the link of {device}");
            }
            (false, true) => {
                changes.added.push(link_name(law, &device));
                tracing::info!(event = "device_added", device, law, "attached the router to {device}");
            }
            (false, false) => {
                changes.added.push(link_name(law, &device));
                tracing::warn!(event = "device_missing", device, law, "{device} does not exist yet: waiting for it");
            }
        }
        Ok(())
    }
}

impl CsigRole {
    fn apply(&mut self, wanted: &[TagSetup], maps: &[MapHandle], changes: &mut Changes) -> Result<()> {
        self.csig.bind(maps)?;
        for options in wanted {
            self.apply_device(options, changes).with_context(|| format!("device {}", options.device()))?;
        }
        let gone = |device: &&String| !wanted.iter().any(|options| options.device() == device.as_str());
        for device in self.options.keys().filter(gone).cloned().collect::<Vec<_>>() {
            self.csig.detach(&device)?;
            self.claims.remove(&device);
            self.options.remove(&device);
            changes.removed.push(tags_name(&device));
            tracing::info!(event = "device_removed", device, csig = true, "took CSIG off {device}");
        }
        self.csig.keep_last()
    }

    fn apply_device(&mut self, options: &TagSetup, changes: &mut Changes) -> Result<()> {
        let device = options.device().to_owned();
        if self.options.get(&device) == Some(options) {
            return Ok(());
        }
        if !self.claims.contains_key(&device) {
            let claim = claim::tags(&device)?;
            self.claims.insert(device.clone(), claim);
        }
        let known = self.options.contains_key(&device);
        let there = self.csig.set_device(options).inspect_err(|_| {
            if !known {
                self.claims.remove(&device);
            }
        })?;
        self.options.insert(device.clone(), options.clone());
        match (known, there) {
            (true, _) => {
                changes.changed.push(tags_name(&device));
                tracing::info!(event = "device_changed", device, csig = true, "changed the tags of {device}");
            }
            (false, true) => {
                changes.added.push(tags_name(&device));
                tracing::info!(event = "device_added", device, csig = true, "attached CSIG to {device}");
            }
            (false, false) => {
                changes.added.push(tags_name(&device));
                let text = format!("{device} of CSIG does not exist yet: waiting for it");
                tracing::warn!(event = "device_missing", device, csig = true, "{text}");
            }
        }
        Ok(())
    }
}

/// Unloads a role whose first start failed. Does nothing if `first` is false.
fn clean_up(pins: &Pins, role: Role, first: bool) {
    if first {
        if let Err(e) = roles::unload(role, pins) {
            tracing::warn!("{e:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_names_what_changed() {
        let mut changes = Changes::default();
        assert_eq!(changes.describe(), "nothing changed");
        changes.changed = vec![host_name("maxnet"), link_name("maxnet", "eth0")];
        changes.added = (0..10).map(|n| tags_name(&format!("t{n}"))).collect();
        changes.push("log");
        let eight: Vec<_> = (0..8).map(|n| format!("csig on t{n}")).collect();
        let wanted = format!(
            "10 added ({} and 2 more), 2 changed (host maxnet, router maxnet on eth0), log changed",
            eight.join(", ")
        );
        assert_eq!(changes.describe(), wanted);
    }
}
