//! Where the router's program sits: at a device's egress, by a tcx link (Linux 6.6) or as a filter of clsact.
//!
//! The two calls into libbpf that libbpf-rs has no safe function for are here, and no other unsafe code of the daemon.

#![expect(unsafe_code, reason = "libbpf-rs attaches no tcx links, and requests to a program are bytes")]

use std::os::fd::AsFd;
use std::path::Path;
use std::ptr::{self, NonNull};

use anyhow::{Context as _, Result};
use libbpf_rs::{AsRawLibbpf as _, Link, ProgramMut, TC_EGRESS, TC_INGRESS, TcHook, libbpf_sys};
use nix::errno::Errno;

use super::router_skeleton::types::waterfill_request;
use super::shaper;

/// Our filter among those of clsact.
const FILTER: u32 = 0x5746;

/// Attaches by a link; `None` where the kernel has no tcx.
pub(super) fn attach(program: &ProgramMut<'_>, ifindex: u32) -> Result<Option<Link>> {
    // SAFETY: the program is loaded and outlives the call; no options is what a null pointer says.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), ifindex as i32, ptr::null())
    };
    match NonNull::new(link) {
        // SAFETY: it is a new link, and nobody else has it.
        Some(link) => Ok(Some(unsafe { Link::from_ptr(link) })),
        None => match Errno::last() {
            // A kernel that does not know how to attach there says so in one of these ways.
            Errno::EINVAL | Errno::EOPNOTSUPP => Ok(None),
            other => Err(other).context("cannot attach the router's program by tcx"),
        },
    }
}

/// A request as the kernel copies it, both ways.
pub(super) fn as_bytes(request: &mut waterfill_request) -> &mut [u8] {
    // SAFETY: the structure has integers only and no byte between them (router.h asserts its size), so each of its bytes can
    // be read, and any value written to one is valid.
    unsafe { std::slice::from_raw_parts_mut(ptr::from_mut(request).cast(), size_of::<waterfill_request>()) }
}

/// Puts our filter at a device's egress, or in the place of the one that is there.
pub(super) fn attach_filter(program: impl AsFd, ifindex: u32) -> Result<()> {
    let mut hook = filter(&program, ifindex);
    hook.create().context("cannot add clsact")?;
    hook.attach().context("cannot add a filter to clsact")?;
    Ok(())
}

/// Takes our filter away; then clsact, if it was ours (`made`) and nobody else uses it.
pub(super) fn detach_filter(any: impl AsFd, ifindex: u32, device: &str, made: bool) -> Result<()> {
    // A descriptor is asked for when a hook is made and not used when it goes.
    let mut hook = filter(&any, ifindex);
    if let Err(e) = hook.detach() {
        tracing::debug!("device {device}: no filter of ours: {e}");
    }
    if made && shaper::has_clsact(device)? && !shaper::has_filters(device)? {
        hook.attach_point(TC_EGRESS | TC_INGRESS).destroy().context("cannot remove clsact")?;
    }
    Ok(())
}

fn filter(program: &impl AsFd, ifindex: u32) -> TcHook {
    let mut hook = TcHook::new(program.as_fd());
    hook.ifindex(ifindex as i32).attach_point(TC_EGRESS).handle(FILTER).priority(FILTER).replace(true);
    hook
}

/// Takes what a pinned link holds away from its device, and the pin.
pub(super) fn detach_pinned(path: &Path) -> Result<()> {
    let link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    // One whose device has gone has nothing to detach.
    if let Err(e) = link.detach() {
        tracing::debug!("{}: {e}", path.display());
    }
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}
