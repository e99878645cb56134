//! CSIG role: tags at the devices of a domain (`bpf/csig.bpf.c`), from `[[csig]]` tables or `waterfilld csig`.
//!
//! The programs read link prices from the maps of MaxNet's router, and are replaced without a gap when these change. Maps
//! and links are pinned in a folder of their own, `csig`: a new start takes them over with counters and remembered tags.

mod setup;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, OpenObject, ProgramMut};
use nix::net::if_::if_nametoindex;

use crate::daemon::kernel::device::{header_bytes, mtu, name_in, namespace};
use crate::daemon::kernel::hook;
use crate::daemon::kernel::interface::{Bytes as _, CsigCounts, CsigDevice, CsigLayout};
use crate::daemon::kernel::pins::{PinNames, Pins, Role};
use crate::daemon::kernel::skeleton::csig::{CsigSkel, CsigSkelBuilder};
use crate::daemon::options::error::user_error;
use crate::daemon::roles::router;

pub(crate) use setup::TagSetup;
pub(crate) use status::TagStatus;

/// Names of the pinned maps.
const MAPS: [&str; 4] = ["devices", "counters", "saved", "next"];
/// Prefixes of pinned links, in the order of attachment. The program for arriving frames is attached first because a
/// neighbour may tag frames before this host does.
const DIRECTIONS: [&str; 2] = ["in", "out"];
const PINS: PinNames = PinNames { role: Role::Csig, names: &MAPS, by_device: &["in-", "out-"] };
/// Length of an Ethernet header in bytes. Every device can send a frame of its MTU with this header and a VLAN tag.
const FRAME_BYTES: u32 = 14;
const VLAN_BYTES: u32 = 4;

/// Parses a link's file name, such as "out-7", into its direction and the index of its device. Returns `None` for other
/// names.
fn link_name(name: &str) -> Option<(&str, u32)> {
    let (direction, ifindex) = name.split_once('-')?;
    DIRECTIONS.contains(&direction).then_some(())?;
    Some((direction, ifindex.parse().ok()?))
}

fn path(pins: &Pins, name: &str) -> Option<PathBuf> {
    pins.path(&format!("csig/{name}"))
}

fn link_path(pins: &Pins, direction: &str, ifindex: u32) -> Option<PathBuf> {
    path(pins, &format!("{direction}-{ifindex}"))
}

/// CSIG's loaded programs, with the devices that they are attached to.
pub(crate) struct Csig {
    skeleton: Box<CsigSkel<'static>>,
    pins: Pins,
    /// Ids of the router's maps that the programs read; empty without a router.
    router: Vec<u32>,
    /// Setup and index of each device by name. An index of 0 means that the device is gone.
    followed: BTreeMap<String, (TagSetup, u32)>,
    /// Links of the programs by device index, in the order of [`DIRECTIONS`].
    links: BTreeMap<u32, [Link; 2]>,
}

impl fmt::Debug for Csig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Csig").field("pins", &self.pins).finish_non_exhaustive() // libbpf-rs's objects have no Debug
    }
}

impl Csig {
    /// Loads the programs. Pinned maps keep their state. `router` has the maps of MaxNet's router, or is empty.
    pub(crate) fn load(pins: &Pins, router: &[MapHandle]) -> Result<Self> {
        let own = pinned_maps(pins)?.filter(|own| is_compatible(own));
        // The programs stay loaded as long as the process runs.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let skeleton = Box::new(open(storage, own.as_deref().unwrap_or_default(), router, true)?);
        let router = ids(router)?;
        let csig = Self { skeleton, pins: pins.clone(), router, followed: BTreeMap::new(), links: BTreeMap::new() };
        if own.is_none() {
            for (name, mut map) in MAPS.into_iter().zip(csig.own_maps()?) {
                let Some(path) = path(pins, name) else { continue };
                if path.exists() {
                    fs::remove_file(&path)?; // another version's
                }
                map.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
            }
        }
        Ok(csig)
    }

    fn own_maps(&self) -> Result<Vec<MapHandle>> {
        let maps = &self.skeleton.maps;
        let own = [&maps.csig_devices, &maps.csig_counters, &maps.csig_saved, &maps.csig_next];
        own.into_iter().map(|map| Ok(MapHandle::try_from(map)?)).collect()
    }

    /// Returns the maps of links that the programs read. Without a router, the programs have maps of their own.
    fn router_maps(&self) -> Result<Vec<MapHandle>> {
        let maps = &self.skeleton.maps;
        [&maps.links, &maps.slots, &maps.cpus].into_iter().map(|map| Ok(MapHandle::try_from(map)?)).collect()
    }

    /// Makes the programs read the maps of another router. Counters and remembered tags are kept.
    pub(crate) fn bind(&mut self, router: &[MapHandle]) -> Result<()> {
        let now = ids(router)?;
        if now != self.router {
            self.replace(router, &BTreeSet::new())?;
            self.router = now;
        }
        Ok(())
    }

    /// Moves the programs that push tags behind all other programs, which would not find the IP header behind a tag.
    pub(crate) fn keep_last(&mut self) -> Result<()> {
        let is_last = |ifindex: u32, link: &Link| {
            // The device may have gone.
            let chain = link.info().ok().and_then(|info| hook::chain(ifindex, info.prog_id).ok().flatten());
            chain.is_none_or(|chain| chain.after.is_empty())
        };
        let links = self.links.iter().filter(|(ifindex, [_, last])| !is_last(**ifindex, last));
        let behind: BTreeSet<u32> = links.map(|(ifindex, _)| *ifindex).collect();
        if behind.is_empty() {
            return Ok(());
        }
        self.replace(&self.router_maps()?, &behind)
    }

    /// Replaces all programs without a gap. On the devices `behind`, the programs that push tags are moved to the end
    /// of their chain.
    fn replace(&mut self, router: &[MapHandle], behind: &BTreeSet<u32>) -> Result<()> {
        let storage = Box::leak(Box::new(MaybeUninit::uninit())); // a pointer, leaked on a rare occasion
        let skeleton = Box::new(open(storage, &self.own_maps()?, router, true)?);
        let programs = &skeleton.progs;
        for (ifindex, [first, last]) in &mut self.links {
            let mut replaced = first.update_prog(&programs.waterfill_csig_in);
            if behind.contains(ifindex) {
                // A link cannot be moved. While there are two, the second finds the tag and has nothing to replace.
                let mut new = new_link(&programs.waterfill_csig_out, *ifindex, hook::attach_last)?;
                if let Some(path) = link_path(&self.pins, DIRECTIONS[1], *ifindex) {
                    if path.exists() {
                        fs::remove_file(&path)?;
                    }
                    new.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
                }
                *last = new;
            } else {
                replaced = replaced.and_then(|()| last.update_prog(&programs.waterfill_csig_out));
            }
            if let Err(e) = replaced {
                tracing::debug!("device {ifindex}: {e}"); // it went: follow() attaches the programs again
            }
        }
        self.skeleton = skeleton;
        Ok(())
    }

    /// Attaches the programs to a device, or changes their configuration. Returns false if the device does not exist;
    /// [`Csig::follow`] attaches the programs later.
    pub(crate) fn set_device(&mut self, setup: &TagSetup) -> Result<bool> {
        let device = setup.device();
        let then = self.followed.get(device).map_or(0, |(_, ifindex)| *ifindex);
        let Ok(now) = if_nametoindex(device) else {
            self.followed.insert(device.into(), (setup.clone(), then));
            return Ok(false);
        };
        if then != 0 && then != now {
            self.remove(then)?;
        }
        self.attach(setup, now)?;
        Ok(true)
    }

    /// Detaches the programs from a device.
    pub(crate) fn detach(&mut self, device: &str) -> Result<()> {
        match self.followed.remove(device) {
            Some((_, ifindex)) if ifindex != 0 => self.remove(ifindex),
            _ => Ok(()),
        }
    }

    /// Detaches the programs from devices of an earlier start that this process does not follow. Returns the names of
    /// these devices.
    pub(crate) fn forget_others(&mut self) -> Result<Vec<String>> {
        let here = namespace()?;
        let (mut others, mut names) = (pinned_links(&self.pins)?, Vec::new());
        let keys: Vec<_> = self.skeleton.maps.csig_devices.keys().collect();
        for ifindex in keys.iter().filter_map(|key| key.as_slice().try_into().ok().map(u32::from_ne_bytes)) {
            match self.configured(ifindex)? {
                Some(config) if config.namespace == here => others.insert(ifindex),
                _ => others.remove(&ifindex),
            };
        }
        others.retain(|ifindex| !self.followed.values().any(|(_, index)| index == ifindex));
        for ifindex in others {
            let config = self.configured(ifindex)?.unwrap_or_default();
            names.push(name_in(ifindex, config.namespace, &config.device));
            self.remove(ifindex)?;
        }
        Ok(names)
    }

    /// Returns the names of followed devices that do not exist now.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.followed.iter().filter(|(_, (_, ifindex))| *ifindex == 0);
        missing.map(|(device, _)| device.clone()).collect()
    }

    /// Attaches the programs to devices that reappeared under their name, and follows changes of the MTU. An error is
    /// logged, and the next call tries again.
    pub(crate) fn follow(&mut self) {
        for (setup, then) in self.followed.clone().into_values() {
            if let Err(e) = self.follow_device(&setup, then) {
                tracing::warn!("device {}: {e:#}", setup.device());
            }
        }
    }

    fn follow_device(&mut self, setup: &TagSetup, then: u32) -> Result<()> {
        let device = setup.device();
        let now = if_nametoindex(device).unwrap_or(0);
        let lost =
            self.links.get(&then).is_some_and(|[link, _]| link.info().is_ok_and(|info| !is_at(&info.info, then)));
        if now == then && !lost {
            return if now == 0 { Ok(()) } else { self.configure(setup, now) };
        }
        if then != 0 {
            self.remove(then)?;
            self.followed.insert(device.into(), (setup.clone(), 0));
            tracing::warn!(event = "device_went", device, csig = true, "device {device} of CSIG went");
        }
        if now != 0 {
            self.attach(setup, now)?;
            tracing::info!(event = "device_came", device, csig = true, "device {device} of CSIG came: attached");
        }
        Ok(())
    }

    fn attach(&mut self, setup: &TagSetup, ifindex: u32) -> Result<()> {
        let known = self.links.contains_key(&ifindex);
        self.try_attach(setup, ifindex).inspect_err(|_| {
            if !known {
                if let Err(e) = self.remove(ifindex) {
                    tracing::warn!("{e:#}");
                }
            }
        })?;
        self.followed.insert(setup.device().to_owned(), (setup.clone(), ifindex));
        Ok(())
    }

    fn try_attach(&mut self, setup: &TagSetup, ifindex: u32) -> Result<()> {
        self.configure(setup, ifindex)?;
        if self.links.contains_key(&ifindex) {
            return Ok(());
        }
        let at = |direction| link_path(&self.pins, direction, ifindex);
        let programs = &self.skeleton.progs;
        let first = attach(&programs.waterfill_csig_in, ifindex, at(DIRECTIONS[0]), hook::attach)?;
        let last = attach(&programs.waterfill_csig_out, ifindex, at(DIRECTIONS[1]), hook::attach_last)?;
        self.links.insert(ifindex, [first, last]);
        Ok(())
    }

    /// Configures the programs for a device. Each packet sees either the old or the new configuration.
    fn configure(&self, setup: &TagSetup, ifindex: u32) -> Result<()> {
        if header_bytes(setup.device())? == 0 {
            bail!(user_error("has no Ethernet header, which tags need"));
        }
        let here = namespace()?;
        let config = setup.config(mtu(setup.device())? + FRAME_BYTES + VLAN_BYTES, here);
        let before = self.configured(ifindex)?;
        if let Some(before) = &before {
            ensure!(
                before.namespace == here,
                "the pins belong to another network namespace: give this one its own (--pins DIR)"
            );
            if before.as_bytes() == config.as_bytes() {
                return Ok(());
            }
        }
        let (maps, key) = (&self.skeleton.maps, ifindex.to_ne_bytes());
        if before.is_none() {
            // Without counters the programs let frames pass.
            let zero = vec![0; size_of::<CsigCounts>()];
            let cpus = libbpf_rs::num_possible_cpus()?;
            maps.csig_counters.update_percpu(&key, &vec![zero; cpus], MapFlags::ANY)?;
        }
        Ok(maps.csig_devices.update(&key, config.as_bytes(), MapFlags::ANY)?)
    }

    /// Returns the configuration of a device, or `None` if the device has none.
    fn configured(&self, ifindex: u32) -> Result<Option<CsigDevice>> {
        let found = self.skeleton.maps.csig_devices.lookup(&ifindex.to_ne_bytes(), MapFlags::ANY)?;
        Ok(found.and_then(|bytes| CsigDevice::from_prefix(&bytes)))
    }

    /// Detaches the programs from a device, which may be gone.
    fn remove(&mut self, ifindex: u32) -> Result<()> {
        self.links.remove(&ifindex);
        // No more tags are pushed before those that arrive are no longer read.
        for direction in DIRECTIONS.into_iter().rev() {
            if let Some(path) = link_path(&self.pins, direction, ifindex).filter(|path| path.exists()) {
                hook::detach_pinned(&path)?;
            }
        }
        let (maps, key) = (&self.skeleton.maps, ifindex.to_ne_bytes());
        if self.configured(ifindex)?.is_some() {
            maps.csig_devices.delete(&key)?;
        }
        if maps.csig_counters.lookup_percpu(&key, MapFlags::ANY)?.is_some() {
            maps.csig_counters.delete(&key)?;
        }
        Ok(())
    }

    /// Returns the state of all devices, sorted by name.
    pub(crate) fn tags(&self) -> Result<Vec<TagStatus>> {
        let (maps, programs) = (&self.skeleton.maps, &self.skeleton.progs);
        status::tags(&maps.csig_devices, &maps.csig_counters, &programs.waterfill_csig_read)
    }
}

/// Returns the state of devices with pinned tags, whether or not a daemon runs. Returns `None` if nothing is pinned.
pub(crate) fn pinned_tags(pins: &Pins) -> Result<Option<Vec<TagStatus>>> {
    let Some(own) = pinned_maps(pins)? else { return Ok(None) };
    if own[0].keys().next().is_none() {
        return Ok(Some(Vec::new()));
    }
    ensure!(is_compatible(&own), "CSIG's pins are from another version: restart the daemon, or run waterfilld unload");
    let mut storage = MaybeUninit::uninit();
    let skeleton = open(&mut storage, &own, &router::pinned_maps(pins)?, false)?;
    let (maps, programs) = (&skeleton.maps, &skeleton.progs);
    status::tags(&maps.csig_devices, &maps.csig_counters, &programs.waterfill_csig_read).map(Some)
}

/// Detaches the programs from all devices and removes the pins.
pub(crate) fn unload(pins: &Pins) -> Result<()> {
    let links = pinned_links(pins)?;
    for direction in DIRECTIONS.into_iter().rev() {
        for path in links.iter().filter_map(|ifindex| link_path(pins, direction, *ifindex)) {
            if path.exists() {
                hook::detach_pinned(&path)?;
            }
        }
    }
    pins.remove(&PINS)
}

/// Returns the indexes of the devices that have pinned links.
fn pinned_links(pins: &Pins) -> Result<BTreeSet<u32>> {
    let Some(folder) = pins.path("csig").filter(|folder| folder.exists()) else { return Ok(BTreeSet::new()) };
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let index = |name: String| link_name(&name).map(|(_, ifindex)| ifindex);
    Ok(entries.flatten().filter_map(|entry| index(entry.file_name().to_string_lossy().into_owned())).collect())
}

/// Opens the pinned maps. Returns `None` if one is missing.
fn pinned_maps(pins: &Pins) -> Result<Option<Vec<MapHandle>>> {
    let mut maps = Vec::new();
    for name in MAPS {
        let Some(path) = path(pins, name).filter(|path| path.exists()) else { return Ok(None) };
        maps.push(MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?);
    }
    Ok(Some(maps))
}

/// Returns true if pinned maps have this version's layout and at least one device. Maps without devices have nothing to
/// keep.
fn is_compatible(own: &[MapHandle]) -> bool {
    let sizes = [size_of::<CsigDevice>(), size_of::<CsigCounts>()];
    let same = own.iter().zip(sizes).all(|(map, size)| map.value_size() as usize == size);
    let layout = |key: Vec<u8>| CsigDevice::from_prefix(&own[0].lookup(&key, MapFlags::ANY).ok()??).map(|d| d.layout);
    let mut layouts = own[0].keys().map(layout).peekable();
    same && layouts.peek().is_some() && layouts.all(|layout| layout == Some(CsigLayout::CSIG_LAYOUT.0))
}

/// Loads the programs with these maps, or with new maps if a list is empty. Without `attach`, loads only the program
/// that reads values.
fn open<'o>(
    storage: &'o mut MaybeUninit<OpenObject>,
    own: &[MapHandle],
    router: &[MapHandle],
    attach: bool,
) -> Result<CsigSkel<'o>> {
    let mut open = CsigSkelBuilder::default().open(storage).context("cannot read CSIG's programs")?;
    let maps = &mut open.maps;
    let ours = [&mut maps.csig_devices, &mut maps.csig_counters, &mut maps.csig_saved, &mut maps.csig_next];
    let theirs = [&mut maps.links, &mut maps.slots, &mut maps.cpus];
    for (map, shared) in ours.into_iter().zip(own).chain(theirs.into_iter().zip(router)) {
        map.reuse_fd(shared.as_fd()).context("cannot share a map")?;
    }
    open.progs.waterfill_csig_in.set_autoload(attach);
    open.progs.waterfill_csig_out.set_autoload(attach);
    open.load().context("the kernel refused CSIG's programs")
}

fn ids(maps: &[MapHandle]) -> Result<Vec<u32>> {
    maps.iter().map(|map| Ok(map.info()?.info.id)).collect()
}

/// Returns true if a link is attached to a device.
fn is_at(info: &LinkTypeInfo, ifindex: u32) -> bool {
    matches!(info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == ifindex)
}

/// Attaches a program to a device, or replaces the program of an earlier start.
fn attach(
    program: &ProgramMut<'_>,
    ifindex: u32,
    path: Option<PathBuf>,
    attach: impl FnOnce(&ProgramMut<'_>, u32) -> Result<Option<Link>>,
) -> Result<Link> {
    if let Some(path) = path.as_ref().filter(|path| path.exists()) {
        let mut link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        if is_at(&link.info()?.info, ifindex) && link.update_prog(program).is_ok() {
            return Ok(link);
        }
        hook::detach_pinned(path)?; // of a device that is gone
    }
    let mut link = new_link(program, ifindex, attach)?;
    if let Some(path) = path {
        link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
    }
    Ok(link)
}

fn new_link(
    program: &ProgramMut<'_>,
    ifindex: u32,
    attach: impl FnOnce(&ProgramMut<'_>, u32) -> Result<Option<Link>>,
) -> Result<Link> {
    attach(program, ifindex)?.context(user_error("csig: this kernel has no tcx; use Linux 6.6 or newer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_are_detached() {
        assert_eq!(link_name("in-7"), Some(("in", 7)));
        assert_eq!(link_name("out-12"), Some(("out", 12)));
        assert_eq!(link_name("slots"), None);
        assert_eq!(link_name("in-x"), None);
    }
}
