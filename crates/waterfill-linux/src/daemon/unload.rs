//! `waterfilld unload`: removes programs, links and settings from the kernel.

use anyhow::{Result, bail};

use super::cli::UnloadCommand;
use super::error::user_error;
use super::host;
use super::pins::{Pins, Role};
use super::privileges;
use super::router;

/// Unloads what the command names: roles, devices, or everything.
pub(super) fn run(command: &UnloadCommand) -> Result<()> {
    privileges::check()?;
    let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
    let everything = !command.host && !command.router && command.devices.is_empty();
    let chosen = |role| match role {
        Role::Host => command.host || everything,
        Role::Router => command.router || !command.devices.is_empty() || everything,
    };
    let mut nothing = true;
    for role in [Role::Router, Role::Host] {
        if chosen(role) && pins.has(role) {
            nothing = false;
            let _lock = pins.lock(role)?;
            unload_role(&pins, role, if role == Role::Router { &command.devices } else { &[] })?;
        }
    }
    if nothing {
        if !command.devices.is_empty() {
            let devices = command.devices.join(", ");
            bail!(user_error(format!("--dev {devices}: no router is loaded; {}", pins.describe())));
        }
        tracing::info!("nothing is loaded; {}", pins.describe());
    }
    Ok(())
}

/// Unloads a role, or only these devices of the router.
pub(super) fn unload_role(pins: &Pins, role: Role, devices: &[String]) -> Result<()> {
    if role == Role::Host {
        host::unload(pins)?;
        return pins.remove(role);
    }
    if devices.is_empty() {
        router::unload(pins, None)?;
        return pins.remove(role);
    }
    for device in devices {
        if router::unload(pins, Some(device))?.is_empty() {
            bail!(user_error(format!("--dev {device}: expected an attached device (listed by: waterfilld status)")));
        }
    }
    if router::pinned_links(pins)?.is_none_or(|links| links.is_empty()) {
        router::unload(pins, None)?;
        return pins.remove(role);
    }
    Ok(())
}
