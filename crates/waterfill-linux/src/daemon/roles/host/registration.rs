//! Registers the law as one of TCP's congestion controls, in place of an older version.
#![expect(unsafe_code, reason = "libbpf-rs has no function that replaces the map of a pinned link")]

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use libbpf_rs::{ErrorKind, Link, MapCore as _, MapHandle, MapMut, libbpf_sys};
use nix::errno::Errno;

/// Maximum time that the kernel takes to free a congestion control's name after its last pin is gone.
const NAME_RELEASE_TIME: Duration = Duration::from_secs(2);

/// Registers the law `map` under `name` and pins it at `pin`. An older law pinned there is replaced, and its
/// connections keep their programs. With `linked`, the kernel swaps the laws without a gap if it can.
pub(super) fn register(pin: Option<&Path>, name: &str, map: &mut MapMut<'_>, linked: bool) -> Result<Link> {
    let old = pin.filter(|pin| pin.exists());
    let taken = |e: &libbpf_rs::Error| e.kind() == ErrorKind::AlreadyExists;
    // If TCP has the name already, this fails, but leaves the map ready to replace the old one.
    let mut result = map.attach_struct_ops();
    if let (Some(old), Err(e)) = (old, &result) {
        if linked && taken(e) {
            match replace(old, map) {
                Ok(link) => return Ok(link),
                Err(e) => tracing::debug!("cannot replace the congestion control without a gap: {e:#}"),
            }
        }
    }
    if let Some(old) = old {
        unregister(old, linked)?;
    }
    let step = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    let mut link = loop {
        match result {
            Ok(link) => break link,
            Err(e) if old.is_some() && taken(&e) && waited < NAME_RELEASE_TIME => {
                sleep(step);
                waited += step;
                result = map.attach_struct_ops();
            }
            Err(e) if taken(&e) => bail!("TCP already has a congestion control named {name}"),
            Err(e) => return Err(e).with_context(|| format!("TCP refused the congestion control {name}")),
        }
    };
    match pin {
        Some(pin) if linked => link.pin(pin)?,
        Some(pin) => {
            map.pin(pin)?;
            link.disconnect(); // else it would be unregistered when this process ends
        }
        None => {}
    }
    Ok(link)
}

/// Replaces the law of a pinned link with another one of the same name. The kernel adds the new law before it removes
/// the old one.
fn replace(pin: &Path, map: &MapMut<'_>) -> Result<Link> {
    let link = Link::open(pin)?;
    // SAFETY: a system call with two descriptors, which outlive it, and no options.
    let code =
        unsafe { libbpf_sys::bpf_link_update(link.as_fd().as_raw_fd(), map.as_fd().as_raw_fd(), std::ptr::null()) };
    if code != 0 {
        return Err(Errno::from_raw(-code).into());
    }
    Ok(link)
}

/// Unregisters a pinned law from TCP and removes its pin.
pub(super) fn unregister(pin: &Path, linked: bool) -> Result<()> {
    if linked {
        // Kernels before 6.9 cannot detach struct_ops links; there the link ends with its last pin.
        drop(Link::open(pin).and_then(|link| link.detach()));
    } else {
        let law = MapHandle::from_pinned_path(pin).with_context(|| format!("cannot open {}", pin.display()))?;
        law.delete(&0_u32.to_ne_bytes()).context("cannot unregister the congestion control")?;
    }
    fs::remove_file(pin).with_context(|| format!("cannot remove {}", pin.display()))
}
