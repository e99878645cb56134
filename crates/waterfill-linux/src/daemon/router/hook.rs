//! Attaches the router program to a device's egress, by a tcx link (Linux 6.6) or as a filter of clsact.
#![expect(unsafe_code, reason = "libbpf-rs has no safe function to attach a tcx link")]

use std::os::fd::AsFd;
use std::path::Path;
use std::ptr::{self, NonNull};

use anyhow::{Context as _, Result};
use libbpf_rs::{AsRawLibbpf as _, Link, ProgramMut, TC_EGRESS, TC_INGRESS, TcHook, libbpf_sys};
use nix::errno::Errno;

use super::shaper;

/// Handle and priority of our filter in clsact.
const FILTER: u32 = 0x5746;

/// Attaches by a tcx link; `None` if the kernel has no tcx.
pub(super) fn attach(program: &ProgramMut<'_>, ifindex: u32) -> Result<Option<Link>> {
    // SAFETY: the program is loaded and outlives the call; a null pointer means default options.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), ifindex as i32, ptr::null())
    };
    match NonNull::new(link) {
        // SAFETY: a new link without another owner.
        Some(link) => Ok(Some(unsafe { Link::from_ptr(link) })),
        None => match Errno::last() {
            // A kernel without tcx answers with one of these.
            Errno::EINVAL | Errno::EOPNOTSUPP => Ok(None),
            other => Err(other).context("cannot attach the router program by tcx"),
        },
    }
}

/// Adds our filter to a device's egress, or replaces it.
pub(super) fn attach_filter(program: impl AsFd, ifindex: u32) -> Result<()> {
    let mut hook = filter(&program, ifindex);
    hook.create().context("cannot add clsact")?;
    hook.attach().context("cannot add a filter to clsact")?;
    Ok(())
}

/// Removes our filter; then clsact, if we created it and nobody else uses it.
pub(super) fn detach_filter(any: impl AsFd, ifindex: u32, device: &str, created_clsact: bool) -> Result<()> {
    // Making a hook needs a descriptor, removing it does not use it.
    let mut hook = filter(&any, ifindex);
    if let Err(e) = hook.detach() {
        tracing::debug!("device {device}: no filter of ours: {e}");
    }
    if created_clsact && shaper::has_clsact(device)? && !shaper::has_filters(device)? {
        hook.attach_point(TC_EGRESS | TC_INGRESS).destroy().context("cannot remove clsact")?;
    }
    Ok(())
}

fn filter(program: &impl AsFd, ifindex: u32) -> TcHook {
    let mut hook = TcHook::new(program.as_fd());
    hook.ifindex(ifindex as i32).attach_point(TC_EGRESS).handle(FILTER).priority(FILTER).replace(true);
    hook
}

/// Detaches a pinned link from its device, and removes the pin.
pub(super) fn detach_pinned(path: &Path) -> Result<()> {
    let link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    // Fails where the device was removed, with nothing to detach.
    if let Err(e) = link.detach() {
        tracing::debug!("{}: {e}", path.display());
    }
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}
