//! Roles of the daemon. Each role loads, changes, shows and unloads its programs.

pub(crate) mod csig;
pub(crate) mod host;
pub(crate) mod router;
pub(crate) mod scone;

use anyhow::Result;

use super::kernel::law::LoadableLaw;
use super::kernel::pins::{Pins, Role};
use super::options::{Names, Wrong};

/// Encodes a law's parameters with these values as bytes of its `struct law_params`.
fn law_parameters(
    law: &LoadableLaw,
    names: Names,
    values: &[(String, String)],
    device: Option<&str>,
) -> Result<Vec<u8>, Wrong> {
    wrong_parameter(names, law.encode(values, device))
}

/// Converts a parameter's error to the form in which the user named the parameter.
fn wrong_parameter<T>(names: Names, found: Result<T, (String, String)>) -> Result<T, Wrong> {
    found.map_err(|(name, why)| {
        let prefix = if names == Names::Keys { "params." } else { "" };
        Wrong::new(format!("params.{name}"), format!("{prefix}{why}"))
    })
}

/// Unloads a role's programs from the kernel and removes their pins.
pub(crate) fn unload(role: Role, pins: &Pins) -> Result<()> {
    match role {
        Role::Host => host::unload(pins),
        Role::Router => router::unload(pins),
        Role::Csig => csig::unload(pins),
    }
}
