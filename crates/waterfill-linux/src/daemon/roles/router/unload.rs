//! Removes the router from devices: its program, and everything that it created there.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use nix::net::if_::if_indextoname;

use super::{PINS, cohabit, paths, pinned_links, shaper};
use crate::daemon::kernel::device::{name, namespace};
use crate::daemon::kernel::hook;
use crate::daemon::kernel::interface::{Attachment, Bytes as _, Created, read_name};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::pins::Pins;
use crate::daemon::roles::scone;

/// Detaches the program from all devices and removes the pins.
pub(crate) fn unload(pins: &Pins) -> Result<()> {
    unload_from(pins, |_| true)?;
    pins.remove(&PINS)
}

/// Detaches the program from these devices. If no device is left, also removes the pins.
pub(crate) fn unload_devices(law: &'static LoadableLaw, pins: &Pins, devices: &[String]) -> Result<()> {
    unload_from(pins, |name| devices.iter().any(|device| device == name))?;
    if pinned_links(law, pins)?.is_none_or(|links| links.is_empty()) {
        return unload(pins);
    }
    Ok(())
}

/// Detaches the program from one device.
pub(super) fn unload_device(pins: &Pins, device: &str) -> Result<()> {
    unload_from(pins, |name| name == device)
}

fn unload_from(pins: &Pins, chosen: impl Fn(&str) -> bool) -> Result<()> {
    let Some(path) = paths::links(pins).filter(|path| path.exists()) else { return Ok(()) };
    let map = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
    for (ifindex, attachment) in attachments(&map)? {
        if !chosen(&name(ifindex, &attachment)) {
            continue;
        }
        if let Some(path) = paths::device(pins, ifindex).filter(|path| path.exists()) {
            hook::detach_pinned(&path)?;
        }
        cohabit::detach(pins, ifindex)?;
        scone::detach(pins, ifindex)?;
        restore(&map, ifindex, &attachment)?;
        map.delete(&ifindex.to_ne_bytes())?;
    }
    Ok(())
}

/// Removes everything that the daemon created on a device, except the link.
pub(super) fn restore(map: &MapHandle, ifindex: u32, attachment: &Attachment) -> Result<()> {
    let created = |what: Created| attachment.created & what.0 != 0;
    if attachment.created == 0 {
        return Ok(());
    }
    if attachment.namespace != namespace()? {
        let device = read_name(&attachment.device);
        tracing::warn!(
            "device {device} is in another network namespace: its filter and shaper stay until that namespace ends"
        );
        return Ok(());
    }
    let Ok(device) = if_indextoname(ifindex) else { return Ok(()) }; // removed, with all that it had
    let device = device.to_string_lossy();
    if created(Created::WATERFILL_CREATED_FILTER) {
        hook::detach_filter(map, ifindex, &device, created(Created::WATERFILL_CREATED_CLSACT))?;
    }
    if created(Created::WATERFILL_CREATED_SHAPER) {
        shaper::remove(&device)?;
    }
    Ok(())
}

/// Reads the attachment of each link. The layout of an attachment is the same in all versions.
pub(super) fn attachments(map: &MapHandle) -> Result<BTreeMap<u32, Attachment>> {
    let mut out = BTreeMap::new();
    for key in map.keys() {
        let Some(value) = map.lookup(&key, MapFlags::ANY)? else { continue };
        let attachment = Attachment::from_prefix(&value);
        ensure!(attachment.is_some(), "the pinned map was not made by waterfilld");
        out.extend(attachment.map(|attachment| (ifindex(&key), attachment)));
    }
    Ok(out)
}

/// Converts a key of the map of links to a device index.
pub(super) fn ifindex(key: &[u8]) -> u32 {
    key.try_into().map_or(0, u32::from_ne_bytes)
}
