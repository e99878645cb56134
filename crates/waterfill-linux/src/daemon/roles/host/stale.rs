//! Finds and removes laws that a killed daemon left in TCP.
//!
//! Before Linux 6.4 a law has no link: the element of its map keeps it registered, also without a pin and without the
//! process. Such a map is found among all maps of the kernel by its name, and its element is deleted.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::query::{MapInfo, MapInfoIter};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};

use crate::daemon::kernel::object::LAW_MAP;
use crate::daemon::kernel::pins;

/// Name of the kernel structure of a law's map value. The structure contains [`OPERATIONS`].
const VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";
const OPERATIONS: &str = "tcp_congestion_ops";
/// Offset of the registration state in a law's map value. [`IN_USE`] is the state of a registered law
/// (BPF_STRUCT_OPS_STATE_INUSE).
const STATE: usize = 4;
const IN_USE: u32 = 1;
const NAME_BYTES: usize = 16;

/// Unregisters the daemon's laws that no process holds and no pin keeps. With `name`, unregisters only the law of this
/// name. Returns the names of the unregistered laws.
pub(crate) fn remove_stale(name: Option<&str>) -> Result<Vec<String>> {
    let maps: Vec<_> = MapInfoIter::default().filter(is_ours).collect();
    if maps.is_empty() {
        return Ok(Vec::new());
    }
    let at = name_offset()?;
    let mut removed = Vec::new();
    for info in maps {
        // The map, or what is in it, may go meanwhile.
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        let Ok(Some(value)) = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY) else { continue };
        let Some(found) = registered_name(&value, at).filter(|found| name.is_none_or(|name| name == found)) else {
            continue;
        };
        if !holders(info.id).is_empty() || pins::is_pinned(info.id, "law")? {
            continue;
        }
        map.delete(&0_u32.to_ne_bytes()).with_context(|| format!("cannot remove the congestion control {found}"))?;
        removed.push(found);
    }
    Ok(removed)
}

/// Returns true if a map is a law of the daemon without a link. A law with a link ends with the link.
fn is_ours(info: &MapInfo) -> bool {
    info.ty == MapType::StructOps && info.name == LAW_MAP && info.map_flags & libbpf_sys::BPF_F_LINK == 0
}

/// Returns the name under which TCP has registered a law, or `None` if the law is not registered.
fn registered_name(value: &[u8], at: usize) -> Option<String> {
    let state = u32::from_ne_bytes(value.get(STATE..STATE + 4)?.try_into().ok()?);
    let name = value.get(at..at + NAME_BYTES)?;
    let name = name.split(|byte| *byte == 0).next()?;
    (state == IN_USE).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Returns the offset of a law's name in its map value, for the running kernel.
fn name_offset() -> Result<usize> {
    let btf = Btf::from_vmlinux().context("cannot read the kernel's type information")?;
    let member = |structure: &str, member: &str| -> Option<usize> {
        let structure: Struct<'_> = btf.type_by_name(structure)?;
        let found = structure.iter().find(|found| found.name.is_some_and(|name| name == member))?;
        match found.attr {
            MemberAttr::Normal { offset } => Some(offset as usize / 8),
            MemberAttr::BitField { .. } => None,
        }
    };
    let at = member(VALUE, "data").zip(member(OPERATIONS, "name")).map(|(data, name)| data + name);
    at.with_context(|| format!("the kernel's {VALUE} has no name"))
}

/// Returns the ids of the other processes that hold a map.
fn holders(id: u32) -> Vec<u32> {
    let line = format!("map_id:\t{id}");
    let list = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let holds = |process: &PathBuf| {
        let mut files = list(&process.join("fdinfo"));
        files.any(|file| fs::read_to_string(file).is_ok_and(|text| text.lines().any(|found| found == line)))
    };
    let processes = list(Path::new("/proc")).filter_map(|path| {
        let id = path.file_name()?.to_str()?.parse::<u32>().ok()?;
        (id != std::process::id() && holds(&path)).then_some(id)
    });
    processes.collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::{Host, HostSetup};
    use super::*;
    use crate::daemon::kernel::pins::Pins;
    use crate::daemon::kernel::privileges;

    fn is_listed(name: &str) -> bool {
        let laws = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        laws.split_whitespace().any(|listed| listed == name)
    }

    /// Loads a host without pins whose law has no link, as before Linux 6.4. Returns `None` without root.
    fn host(name: &str) -> Option<Host> {
        privileges::check().inspect_err(|why| eprintln!("skipped: {why:#}")).ok()?;
        // No namespace has this cookie, so no connection takes part.
        let setup = HostSetup::read(&format!(
            "name = '{name}'
netns_cookies = [{}]",
            1_u64 << 60
        ));
        Some(Host::load_as(&Pins::none(), &setup, false, None).unwrap())
    }

    #[test]
    fn a_law_without_a_link_ends_with_its_host() {
        let name = format!("bpf_end{}", std::process::id() % 10_000_000);
        let Some(host) = host(&name) else { return };
        assert!(is_listed(&name));
        drop(host);
        assert!(!is_listed(&name));
    }

    #[test]
    fn a_law_that_a_killed_host_left_is_removed_and_a_running_hosts_is_not() {
        let name = format!("bpf_old{}", std::process::id() % 10_000_000);
        let Some(mut host) = host(&name) else { return };
        let id = MapInfoIter::default()
            .filter(is_ours)
            .find(|info| {
                // Laws of other tests may go meanwhile.
                let Ok(map) = MapHandle::from_map_id(info.id) else { return false };
                let Ok(Some(value)) = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY) else { return false };
                registered_name(&value, name_offset().unwrap()).as_deref() == Some(&name)
            })
            .unwrap()
            .id;
        // Another process that holds the map: a child that inherits a descriptor without the flag to close it.
        let map = MapHandle::from_map_id(id).unwrap();
        let shared = nix::unistd::dup(&map).unwrap();
        nix::fcntl::fcntl(&shared, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
        let mut holder = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        drop((map, shared));
        host.registered.disconnect(); // as a kill does: nothing is undone
        drop(host);
        assert!(holders(id).contains(&holder.id()));
        assert_eq!(remove_stale(Some(&name)).unwrap(), [""; 0]);
        assert!(is_listed(&name));
        holder.kill().unwrap();
        holder.wait().unwrap();
        remove_stale(Some(&name)).unwrap();
        assert!(!is_listed(&name));
    }

    #[test]
    fn only_a_registered_law_has_a_name() {
        let mut value = vec![0; 100];
        value[64..68].copy_from_slice(b"name");
        assert_eq!(registered_name(&value, 64), None);
        value[STATE] = 1;
        assert_eq!(registered_name(&value, 64).as_deref(), Some("name"));
        assert_eq!(registered_name(&value, 90), None, "it ends before");
    }
}
