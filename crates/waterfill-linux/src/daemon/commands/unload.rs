//! `waterfilld unload`: removes programs, links and settings from the kernel.

use anyhow::{Result, bail};

use super::cli::UnloadCommand;
use super::config::Config;
use crate::daemon::kernel::claim;
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::kernel::privileges;
use crate::daemon::options::error::user_error;
use crate::daemon::roles::router::LinkStatus;
use crate::daemon::roles::{self, csig, host, router};

/// Unloads the roles or devices that the command names, or everything.
pub(crate) fn run(command: &UnloadCommand) -> Result<()> {
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
    let mut removed = Vec::new();
    // Its programs read the router's maps, so they go first.
    if chosen(Role::Csig) && pins.has(Role::Csig) {
        nothing = false;
        let _lock = pins.lock(Role::Csig)?;
        csig::unload(&pins)?;
        removed.push("csig".to_owned());
    }
    let named: Vec<_> = command.devices.iter().map(|device| device.0.clone()).collect();
    let mut unknown = named.clone();
    // The default law's folder contains the others'.
    let laws = laws::all().filter(|law| command.law.is_none_or(|only| only == *law)).collect::<Vec<_>>();
    for (law, role) in laws.into_iter().rev().flat_map(|law| [(law, Role::Router), (law, Role::Host)]) {
        let pins = pins.of(law);
        if !chosen(role) || !pins.has(role) {
            continue;
        }
        nothing = false;
        let _lock = pins.lock(role)?;
        if role == Role::Host {
            roles::unload(role, &pins)?;
            removed.push(format!("host of {}", law.name));
            continue;
        }
        let links = router::pinned_links(law, &pins);
        if command.devices.is_empty() {
            roles::unload(role, &pins)?;
            // Pins of another version can be removed, but not listed.
            removed.push(router_of(law, &devices_of(links.ok().flatten())));
            continue;
        }
        let attached = devices_of(links?);
        let devices: Vec<String> = named.iter().filter(|device| attached.contains(device)).cloned().collect();
        if !devices.is_empty() {
            router::unload_devices(law, &pins, &devices)?;
            unknown.retain(|device| !devices.contains(device));
            removed.push(router_of(law, &devices));
        }
    }
    let mut left = Vec::new();
    if chosen(Role::Host) {
        let name = command.law.map(LoadableLaw::congestion_control);
        left.extend(host::remove_stale(name.as_deref())?);
    }
    if chosen(Role::Router) && command.law.is_none() {
        let devices = router::remove_leftovers(&named)?;
        unknown.retain(|device| !devices.contains(device));
        left.extend(devices.into_iter().map(|device| format!("device {device}")));
    }
    if !removed.is_empty() {
        tracing::info!("removed: {}", removed.join("; "));
    }
    if !left.is_empty() {
        nothing = false;
        tracing::info!("removed what a daemon left that was killed: {}", left.join(", "));
    }
    claim::remove_leftovers();
    if nothing {
        if !command.devices.is_empty() {
            let devices = named.join(", ");
            bail!(user_error(format!("--dev {devices}: no router is loaded; {}", pins.describe())));
        }
        tracing::info!("nothing is loaded; {}", pins.describe());
    } else if let Some(device) = unknown.first() {
        bail!(user_error(format!("--dev {device}: not attached; `waterfilld status` lists the attached devices")));
    }
    Ok(())
}

fn devices_of(links: Option<Vec<LinkStatus>>) -> Vec<String> {
    links.unwrap_or_default().into_iter().map(|link| link.device).collect()
}

/// Describes a law's router by the devices that it was attached to.
fn router_of(law: &LoadableLaw, devices: &[String]) -> String {
    match devices {
        [] => format!("router of {}", law.name),
        _ => format!("router of {} on {}", law.name, devices.join(", ")),
    }
}
