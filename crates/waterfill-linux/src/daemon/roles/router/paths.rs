//! Paths of the router's pins.

use std::path::PathBuf;

use crate::daemon::kernel::pins::Pins;

/// Returns the path of the pinned map of links, or `None` if nothing is pinned.
pub(super) fn links(pins: &Pins) -> Option<PathBuf> {
    pins.path("router/links")
}

/// Returns the path of another pinned map of the router, or `None` if nothing is pinned.
pub(super) fn map(pins: &Pins, name: &str) -> Option<PathBuf> {
    pins.path(&format!("router/{name}"))
}

/// Returns the path of a device's pinned link, or `None` if nothing is pinned.
pub(super) fn device(pins: &Pins, ifindex: u32) -> Option<PathBuf> {
    pins.path(&format!("router/device-{ifindex}"))
}
