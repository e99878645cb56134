//! `waterfilld unload`: removes programs, links and settings from the kernel.

use anyhow::{Result, bail};

use super::claim;
use super::cli::UnloadCommand;
use super::config::Config;
use super::csig;
use super::error::user_error;
use super::host;
use super::law::{self, Law};
use super::pins::{Pins, Role};
use super::privileges;
use super::router;

/// Unloads what the command names: roles, devices, or everything.
pub(super) fn run(command: &UnloadCommand) -> Result<()> {
    privileges::check()?;
    let folder = match &command.config {
        Some(file) => Config::read(file)?.pins,
        None => command.pins.pins.clone(),
    };
    let pins = Pins::find(folder)?.unwrap_or_else(Pins::none);
    let everything = !command.host && !command.router && command.devices.is_empty();
    let chosen = |role| match role {
        Role::Host => command.host || everything,
        Role::Router => command.router || !command.devices.is_empty() || everything,
        Role::Csig => everything && command.law.is_none(),
    };
    let mut nothing = true;
    // Its programs read the router's maps, so they go first.
    if chosen(Role::Csig) && pins.has(Role::Csig) {
        nothing = false;
        let _lock = pins.lock(Role::Csig)?;
        csig::unload(&pins)?;
        pins.remove(Role::Csig)?;
    }
    let mut unknown = command.devices.clone();
    // The default law's folder contains the others'.
    let laws = law::all().filter(|law| command.law.is_none_or(|only| only == *law)).collect::<Vec<_>>();
    for (law, role) in laws.into_iter().rev().flat_map(|law| [(law, Role::Router), (law, Role::Host)]) {
        let pins = pins.of(law);
        if !chosen(role) || !pins.has(role) {
            continue;
        }
        nothing = false;
        let _lock = pins.lock(role)?;
        if role == Role::Host || command.devices.is_empty() {
            unload_role(law, &pins, role, &[])?;
            continue;
        }
        let links = router::pinned_links(law, &pins)?.unwrap_or_default();
        let here = |device: &&String| links.iter().any(|link| link.device == **device);
        let devices: Vec<String> = command.devices.iter().filter(here).cloned().collect();
        if !devices.is_empty() {
            unload_role(law, &pins, role, &devices)?;
            unknown.retain(|device| !devices.contains(device));
        }
    }
    let mut left = Vec::new();
    if chosen(Role::Host) {
        let name = command.law.map(Law::congestion_control);
        left.extend(host::remove_stale(name.as_deref())?);
    }
    if chosen(Role::Router) && command.law.is_none() {
        let devices = router::remove_leftovers(&command.devices)?;
        unknown.retain(|device| !devices.contains(device));
        left.extend(devices.into_iter().map(|device| format!("device {device}")));
    }
    if !left.is_empty() {
        nothing = false;
        tracing::info!("removed what a daemon left that was killed: {}", left.join(", "));
    }
    claim::remove_leftovers();
    if nothing {
        if !command.devices.is_empty() {
            let devices = command.devices.join(", ");
            bail!(user_error(format!("--dev {devices}: no router is loaded; {}", pins.describe())));
        }
        tracing::info!("nothing is loaded; {}", pins.describe());
    } else if let Some(device) = unknown.first() {
        bail!(user_error(format!("--dev {device}: expected an attached device (listed by: waterfilld status)")));
    }
    Ok(())
}

/// Unloads a role, or only these devices of the router.
pub(super) fn unload_role(law: &'static Law, pins: &Pins, role: Role, devices: &[String]) -> Result<()> {
    if role == Role::Host {
        host::unload(pins)?;
        return pins.remove(role);
    }
    if devices.is_empty() {
        router::unload(pins, None)?;
        return pins.remove(role);
    }
    for device in devices {
        router::unload(pins, Some(device))?;
    }
    if router::pinned_links(law, pins)?.is_none_or(|links| links.is_empty()) {
        router::unload(pins, None)?;
        return pins.remove(role);
    }
    Ok(())
}
