//! Removes the remains of a killed router without pins: its shaper and, on kernels before Linux 6.6, its filter and
//! clsact.
//!
//! It is found in the kernel, by our handles and the program's name. A device that a running router has claimed, or to
//! which a router's programs are pinned, is left alone.

use std::fs::File;

use anyhow::{Context as _, Result};
use libbpf_rs::query::ProgInfoIter;
use nix::net::if_::if_nametoindex;

use super::{LINKS, PROGRAM, shaper};
use crate::daemon::kernel::{claim, hook, laws, pins, tc};

/// Length of a program's name in the kernel in bytes (BPF_OBJ_NAME_LEN without the final zero).
const NAME_BYTES: usize = 15;

/// Removes the remains of a killed router on these devices of this network namespace, or on all devices if none is
/// named. Returns the names of these devices.
pub(crate) fn remove_leftovers(devices: &[String]) -> Result<Vec<String>> {
    let mut cleaned = Vec::new();
    for (device, shaped) in shaper::marked_devices()? {
        if !devices.is_empty() && !devices.contains(&device) {
            continue;
        }
        // It may go meanwhile.
        let Ok(ifindex) = if_nametoindex(device.as_str()) else { continue };
        let filter = our_filter(&device)?;
        if filter.is_none() && !shaped {
            continue;
        }
        if is_in_use(&device, ifindex, filter.as_ref())? {
            tracing::info!(
                "device {device}: left as it is, since another router uses it, with pins elsewhere or running"
            );
            continue;
        }
        if filter.is_some() {
            // Any descriptor does: none is used to remove a filter.
            let any = File::open("/dev/null").context("cannot open /dev/null")?;
            hook::detach_filter(&any, ifindex, &device, hook::made_clsact(&device)?)?;
        }
        if shaped {
            shaper::remove(&device)?;
        }
        cleaned.push(device);
    }
    Ok(cleaned)
}

fn our_filter(device: &str) -> Result<Option<tc::Filter>> {
    if !tc::has_clsact(device)? {
        return Ok(None);
    }
    let mut filters = tc::egress_filters(device)?.into_iter();
    Ok(filters.find(|filter| hook::is_ours(filter) && is_program(&filter.name())))
}

/// Returns true if a program's name is the router's. The kernel truncates names.
fn is_program(name: &str) -> bool {
    name == &PROGRAM[..NAME_BYTES.min(PROGRAM.len())]
}

/// Returns true if a router is running on the device, if its tcx program is attached, or if its filter's map is pinned.
fn is_in_use(device: &str, ifindex: u32, filter: Option<&tc::Filter>) -> Result<bool> {
    for law in laws::all() {
        if claim::is_claimed(law, device)? {
            return Ok(true);
        }
    }
    if hook::programs(ifindex).is_ok_and(|names| names.iter().any(|name| is_program(name))) {
        return Ok(true);
    }
    let Some(id) = filter.and_then(tc::Filter::program_id) else { return Ok(false) };
    let maps = ProgInfoIter::default().find(|info| info.id == id).map_or_else(Vec::new, |info| info.map_ids);
    for map in maps {
        if pins::is_pinned(map, LINKS)? {
            return Ok(true);
        }
    }
    Ok(false)
}
