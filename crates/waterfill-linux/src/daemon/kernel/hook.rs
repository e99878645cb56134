//! Attaches the router program to a device's egress, by a tcx link (Linux 6.6) or as a filter of clsact.
//!
//! It is the first program there, because others may end the chain: tcx stops at the first program that does not answer
//! TCX_NEXT, clsact at the first that does not answer TC_ACT_UNSPEC. Ours always lets the chain go on.
#![expect(unsafe_code, reason = "libbpf-rs has no safe functions for tcx links and programs on a hook")]

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;

use anyhow::{Context as _, Result};
use libbpf_rs::{AsRawLibbpf as _, Link, ProgramMut, TC_EGRESS, TC_INGRESS, TcHook, libbpf_sys};
use nix::errno::Errno;

use super::tc;

/// Handle of the daemon's filter in a clsact that existed before. [`FILTER_AND_CLSACT`] is for a clsact that the daemon
/// added. The handle thus records what to remove, even without the daemon that added the filter.
const FILTER: u32 = 0x5746;
const FILTER_AND_CLSACT: u32 = 0x5747;
/// Priorities of the daemon's filter. The first is preferred, and the second is for devices where another filter has
/// the first. Older versions of the daemon used only the second.
const PRIORITIES: [u32; 2] = [1, FILTER];
/// Name of CSIG's program at egress, truncated to 15 bytes as in the kernel. The program is meant to run after the
/// router's program.
pub(crate) const CSIG_PROGRAM: &str = "waterfill_csig_";
/// Maximum number of programs on one hook of a device (BPF_MPROG_MAX of the kernel).
const MAX_PROGRAMS: usize = 64;

/// Names of the programs before and after the daemon's at a device's egress, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

impl Chain {
    /// Splits a list of names at index `ours`, which belongs to the daemon's program.
    fn split(names: Vec<String>, ours: usize) -> Self {
        let mut before = names;
        let after = before.split_off(ours).into_iter().skip(1).collect();
        Self { before, after }
    }
}

/// Attaches a program by a tcx link, in front of all others. Returns `None` if the kernel has no tcx.
pub(crate) fn attach(program: &ProgramMut<'_>, ifindex: u32) -> Result<Option<Link>> {
    attach_at(program, ifindex, libbpf_sys::BPF_F_BEFORE)
}

/// Attaches a program by a tcx link, behind all others. Returns `None` if the kernel has no tcx.
pub(crate) fn attach_last(program: &ProgramMut<'_>, ifindex: u32) -> Result<Option<Link>> {
    attach_at(program, ifindex, libbpf_sys::BPF_F_AFTER)
}

/// Attaches a program by a tcx link before or after all others, as `flags` selects. Returns `None` if the kernel has no
/// tcx.
fn attach_at(program: &ProgramMut<'_>, ifindex: u32, flags: u32) -> Result<Option<Link>> {
    let options = libbpf_sys::bpf_tcx_opts {
        sz: size_of::<libbpf_sys::bpf_tcx_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    // SAFETY: the program is loaded, and both it and the options outlive the call.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), ifindex as i32, &raw const options)
    };
    match NonNull::new(link) {
        // SAFETY: a new link without another owner.
        Some(link) => Ok(Some(unsafe { Link::from_ptr(link) })),
        None => match Errno::last() {
            // A kernel without tcx answers with one of these.
            Errno::EINVAL | Errno::EOPNOTSUPP => Ok(None),
            other => Err(other).context("cannot attach a program by tcx"),
        },
    }
}

/// Returns the programs around program `ours` at a device's tcx egress, or `None` if `ours` is not attached.
pub(crate) fn chain(ifindex: u32, ours: u32) -> Result<Option<Chain>> {
    let ids = program_ids(ifindex)?;
    let names = ids.iter().map(|id| program_name(*id)).collect();
    Ok(ids.iter().position(|id| *id == ours).map(|at| Chain::split(names, at)))
}

/// Returns the names of all programs at a device's tcx egress.
pub(crate) fn programs(ifindex: u32) -> Result<Vec<String>> {
    Ok(program_ids(ifindex)?.into_iter().map(program_name).collect())
}

fn program_ids(ifindex: u32) -> Result<Vec<u32>> {
    let mut ids = [0_u32; MAX_PROGRAMS];
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = MAX_PROGRAMS as u32;
    // SAFETY: the kernel writes up to `count` ids, which the array holds.
    let code = unsafe { libbpf_sys::bpf_prog_query_opts(ifindex as i32, libbpf_sys::BPF_TCX_EGRESS, &raw mut options) };
    if code != 0 {
        return Err(Errno::from_raw(-code)).context("cannot list the programs on a device");
    }
    // SAFETY: both members of the union are the same number.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    Ok(ids[..count.min(MAX_PROGRAMS)].to_vec())
}

/// Returns a program's name, or its id if it has none or has just ended.
fn program_name(id: u32) -> String {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: a system call without pointers; a result of 0 or more is a new descriptor without another owner.
    let program = unsafe {
        let fd = libbpf_sys::bpf_prog_get_fd_by_id(id);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    };
    let name = program.and_then(|program| {
        // SAFETY: the kernel writes up to `bytes` bytes, the size of the structure, whose pointers are null.
        let code =
            unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &raw mut bytes) };
        let name = info.name.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&name).ok().filter(|name| code == 0 && !name.is_empty());
        name.map(|name| name.to_string_lossy().into_owned())
    });
    name.unwrap_or_else(|| format!("program {id}"))
}

/// Returns the filters around the daemon's at a device's clsact egress, or `None` if the daemon has no filter there.
pub(crate) fn filter_chain(device: &str) -> Result<Option<Chain>> {
    let filters = tc::egress_filters(device)?;
    let at = filters.iter().position(is_ours);
    Ok(at.map(|at| Chain::split(filters.iter().map(tc::Filter::name).collect(), at)))
}

/// Returns true if a filter has one of the daemon's handles.
pub(crate) fn is_ours(filter: &tc::Filter) -> bool {
    filter.is(FILTER) || filter.is(FILTER_AND_CLSACT)
}

/// Returns true if a device's filter records that the daemon added clsact.
pub(crate) fn made_clsact(device: &str) -> Result<bool> {
    Ok(tc::egress_filters(device)?.iter().any(|filter| filter.is(FILTER_AND_CLSACT)))
}

/// Adds the daemon's filter to a device's egress, or replaces it. `created_clsact` is true if the daemon added clsact.
pub(crate) fn attach_filter(program: impl AsFd, ifindex: u32, created_clsact: bool) -> Result<()> {
    let [first, other] = PRIORITIES;
    let (handle, before) = if created_clsact { (FILTER_AND_CLSACT, FILTER) } else { (FILTER, FILTER_AND_CLSACT) };
    filter(&program, ifindex, first, handle).create().context("cannot add clsact")?;
    let old = if filter(&program, ifindex, first, handle).attach().is_ok() {
        let _ = filter(&program, ifindex, other, handle).detach(); // of an older version, if there is one
        first
    } else {
        filter(&program, ifindex, other, handle).attach().context("cannot add a filter to clsact")?;
        other
    };
    let _ = filter(&program, ifindex, old, before).detach(); // the same with the other handle
    Ok(())
}

/// Removes the daemon's filter. Also removes clsact if the daemon added it and no other filter uses it.
pub(crate) fn detach_filter(any: impl AsFd, ifindex: u32, device: &str, created_clsact: bool) -> Result<()> {
    // Making a hook needs a descriptor, removing it does not use it.
    for (priority, handle) in PRIORITIES.into_iter().flat_map(|p| [(p, FILTER), (p, FILTER_AND_CLSACT)]) {
        if let Err(e) = filter(&any, ifindex, priority, handle).detach() {
            tracing::debug!("device {device}: no filter {handle:#x} with priority {priority}: {e}");
        }
    }
    if created_clsact && tc::has_clsact(device)? && !tc::has_filters(device)? {
        filter(&any, ifindex, PRIORITIES[0], FILTER)
            .attach_point(TC_EGRESS | TC_INGRESS)
            .destroy()
            .context("cannot remove clsact")?;
    }
    Ok(())
}

fn filter(program: &impl AsFd, ifindex: u32, priority: u32, handle: u32) -> TcHook {
    let mut hook = TcHook::new(program.as_fd());
    hook.ifindex(ifindex as i32).attach_point(TC_EGRESS).handle(handle).priority(priority).replace(true);
    hook
}

/// Detaches a pinned link from its device and removes the pin.
pub(crate) fn detach_pinned(path: &Path) -> Result<()> {
    let link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    // Fails where the device was removed, with nothing to detach.
    if let Err(e) = link.detach() {
        tracing::debug!("{}: {e}", path.display());
    }
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}
