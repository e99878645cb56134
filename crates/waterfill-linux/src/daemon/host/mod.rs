//! The host role: TCP's congestion control, and the option on its packets.
//!
//! Four things are pinned, so that they outlive this process: the congestion control, the option program on its cgroup,
//! the list of connections, and the maps. A new process replaces programs and keeps maps, so connections continue.

mod registration;
mod status;
mod sysctl;

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, OpenMapMut};

use super::interface::{Bytes as _, HostCounters, HostParams, LawParams, MaxnetParams, OptionKind, write_name};
use super::pins::Pins;
use super::skeleton::host::{HostMaxnetSkel as HostSkel, HostMaxnetSkelBuilder as HostSkelBuilder};

pub(super) use status::{CounterStatus, FlowStatus};

/// The option's kind on the wire (`bpf/wire.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 253, with an ExID.
    Experiment,
    /// 42, the papers' own.
    Paper,
}

/// The options of the host role; `cli` has checked their ranges.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// The congestion control's name in TCP's list.
    pub(super) name: String,
    pub(super) cgroup: PathBuf,
    /// The kernel's congestion control for paths without a price.
    pub(super) fallback: String,
    /// Network namespaces whose connections take part, by cookie; empty: all.
    pub(super) netns_cookies: Vec<u64>,
    /// Whether every user may select the law, in every network namespace.
    pub(super) unrestricted: bool,
    pub(super) kind: Kind,
    pub(super) alpha: f64,
    pub(super) eta: f64,
    /// The law's T.
    pub(super) t: Duration,
    pub(super) x_max_bps: u64,
    pub(super) dt_min: Duration,
    pub(super) average: bool,
    pub(super) compensate: bool,
}

/// A flag of TCP's congestion controls (include/net/tcp.h): no capability is needed to select it.
const TCP_CONG_NON_RESTRICTED: u32 = 1;

/// Pins, by their paths in the folder of pins.
const LAW: &str = "host/law";
const OPTIONS: &str = "host/options";
const FLOWS: &str = "host/flows";
const PARAMETERS: &str = "host/parameters";
const CONNECTIONS: &str = "host/connections";
const COUNTERS: &str = "host/counters";
const PLACES: &str = "host/places";
const NAMESPACES: &str = "host/namespaces";

/// The loaded programs.
pub(super) struct Host {
    /// Owns what is not pinned.
    skeleton: Box<HostSkel<'static>>,
    _law: Link,
    _options: Link,
    flows: Link,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive() // generated skeletons have no Debug
    }
}

impl Host {
    /// Loads the programs, or replaces pinned ones. Connections continue with the state in the maps.
    pub(super) fn load(pins: &Pins, options: &Options) -> Result<Self> {
        // The programs stay loaded as long as the process runs.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = HostSkelBuilder::default().open(storage).context("cannot read the host programs")?;
        if let Some(constants) = open.maps.rodata_data.as_mut() {
            constants.filter_netns = !options.netns_cookies.is_empty();
            write_name(&mut constants.law_name, &options.name);
        }
        write_name(&mut open.struct_ops.waterfill_law_mut().name, &options.name);
        open.struct_ops.waterfill_law_mut().flags = if options.unrestricted { TCP_CONG_NON_RESTRICTED } else { 0 };
        let linked = has_struct_ops_links()?;
        if !linked {
            let flags = open.maps.waterfill_law.map_flags() & !libbpf_sys::BPF_F_LINK;
            open.maps.waterfill_law.set_map_flags(flags)?;
        }
        reuse_or_pin(pins, PARAMETERS, &mut open.maps.parameters)?;
        reuse_or_pin(pins, CONNECTIONS, &mut open.maps.connections)?;
        reuse_or_pin(pins, COUNTERS, &mut open.maps.counters)?;
        reuse_or_pin(pins, PLACES, &mut open.maps.places)?;
        reuse_or_pin(pins, NAMESPACES, &mut open.maps.namespaces)?;
        let mut skeleton = Box::new(open.load().context("the kernel refused the host programs")?);

        skeleton.maps.parameters.update(&0_u32.to_ne_bytes(), parameters(options).as_bytes(), MapFlags::ANY)?;
        for old in skeleton.maps.namespaces.keys().collect::<Vec<_>>() {
            skeleton.maps.namespaces.delete(&old)?;
        }
        for cookie in &options.netns_cookies {
            skeleton.maps.namespaces.update(&cookie.to_ne_bytes(), &[1], MapFlags::ANY)?;
        }

        let options_link = attach_options(pins, &options.cgroup, &skeleton)?;
        let law_pin = pins.path(LAW);
        let law = registration::register(law_pin.as_deref(), &options.name, &mut skeleton.maps.waterfill_law, linked)?;
        if let Err(e) = sysctl::renew(&options.name) {
            tracing::warn!("{e:#}");
        }
        let flows = attach_flows(pins, &skeleton)?;
        Ok(Self { skeleton, _law: law, _options: options_link, flows })
    }

    /// Lists the connections that use MaxNet.
    pub(super) fn flows(&self) -> Result<Vec<FlowStatus>> {
        let mut bytes = Vec::new();
        Iter::new(&self.flows)?.read_to_end(&mut bytes).context("cannot list connections")?;
        status::parse_records(&bytes)
    }

    /// Reads the counts of all connections.
    pub(super) fn counters(&self) -> Result<CounterStatus> {
        counters(&self.skeleton.maps.counters)
    }
}

/// Lists the connections of a pinned host, whether or not its daemon runs; `None` if nothing is pinned.
pub(super) fn pinned_flows(pins: &Pins) -> Result<Option<Vec<FlowStatus>>> {
    // A pinned iterator reads like a file.
    let Some(path) = pins.path(FLOWS).filter(|path| path.exists()) else { return Ok(None) };
    let mut bytes = Vec::new();
    let mut file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    status::parse_records(&bytes).map(Some)
}

/// Reads the counts of a pinned host's connections; `None` if nothing is pinned.
pub(super) fn pinned_counters(pins: &Pins) -> Result<Option<CounterStatus>> {
    let Some(path) = pins.path(COUNTERS).filter(|path| path.exists()) else { return Ok(None) };
    let map = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
    counters(&map).map(Some)
}

fn counters(map: &impl MapCore) -> Result<CounterStatus> {
    let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.context("no counters")?;
    let counters = HostCounters::from_prefix(&bytes).context("the counters are from another version of waterfilld")?;
    Ok(CounterStatus::new(&counters))
}

/// Removes the programs from the kernel, with their pins. The caller removes the folder of pins.
pub(super) fn unload(pins: &Pins) -> Result<()> {
    for name in [LAW, OPTIONS, FLOWS, PARAMETERS, CONNECTIONS, COUNTERS, PLACES, NAMESPACES] {
        let Some(path) = pins.path(name).filter(|path| path.exists()) else { continue };
        remove(name, &path)?;
    }
    Ok(())
}

/// Detaches the object behind a pin, where that is possible, and removes the pin.
fn remove(name: &str, path: &Path) -> Result<()> {
    match name {
        LAW => return registration::unregister(path, has_struct_ops_links()?),
        OPTIONS => drop(Link::open(path).and_then(|link| link.detach())),
        _ => {}
    }
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Reuses the map that is pinned under this name, or pins this one there. Removes the pin of a map of another size.
fn reuse_or_pin(pins: &Pins, name: &str, map: &mut OpenMapMut<'_>) -> Result<()> {
    let Some(path) = pins.path(name) else { return Ok(()) };
    if path.exists() {
        let old = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if old.value_size() != map.value_size() || old.key_size() != map.key_size() {
            tracing::warn!("{name} is from another version: its connections fall back");
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    map.set_pin_path(&path).with_context(|| format!("cannot use {}", path.display()))
}

/// Converts options to the units of the kernel programs.
fn parameters(options: &Options) -> HostParams {
    let thousandths = |x: f64| clamped((x * 1000.0).round());
    let law = LawParams {
        source: MaxnetParams {
            x_max: options.x_max_bps,
            alpha: thousandths(options.alpha),
            eta: thousandths(options.eta),
            t: u32::try_from(options.t.as_millis()).unwrap_or(u32::MAX),
            dt_min: u32::try_from(options.dt_min.as_micros()).unwrap_or(u32::MAX),
            average: options.average.into(),
            compensate: options.compensate.into(),
            xi_first: 1, // in the order of the paper's Fig. 2
            ..MaxnetParams::default()
        },
        ..LawParams::default()
    };
    let kind = match options.kind {
        Kind::Experiment => OptionKind::WATERFILL_KIND_EXPERIMENT,
        Kind::Paper => OptionKind::WATERFILL_KIND_PAPER,
    };
    let mut out = HostParams { kind, ..HostParams::default() };
    for (word, bytes) in out.law.iter_mut().zip(law.as_bytes().chunks(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("whole words"));
    }
    write_name(&mut out.fallback, &options.fallback);
    out
}

/// Converts a whole number, clamped to the range of the type.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn clamped(x: f64) -> u32 {
    x.clamp(0.0, f64::from(u32::MAX)) as u32
}

/// Attaches the option program to its cgroup. A pinned link there gets the new program without a gap.
fn attach_options(pins: &Pins, cgroup: &Path, skeleton: &HostSkel<'_>) -> Result<Link> {
    let program = &skeleton.progs.waterfill_options;
    let folder = File::open(cgroup).with_context(|| format!("cannot open the cgroup {}", cgroup.display()))?;
    let path = pins.path(OPTIONS);
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        let mut link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let attached_to = match link.info()?.info {
            LinkTypeInfo::Cgroup(cgroup) => cgroup.cgroup_id,
            _ => 0,
        };
        if attached_to == folder.metadata()?.ino() {
            link.update_prog(program).context("cannot replace the option program")?;
            return Ok(link);
        }
        drop(link);
        remove(OPTIONS, path)?;
    }
    let mut link = program
        .attach_cgroup(folder.as_raw_fd())
        .with_context(|| format!("cannot attach to the cgroup {}", cgroup.display()))?;
    if let Some(path) = path {
        link.pin(path)?;
    }
    Ok(link)
}

/// Whether struct_ops are links, which a pin keeps registered (Linux 6.4). Before, the map's element keeps them registered.
fn has_struct_ops_links() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
    let mut numbers = release.split(['.', '-', '+', '\n']).map(|number| number.parse::<u32>().unwrap_or(0));
    Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 4))
}

/// Attaches the iterator program that lists connections.
fn attach_flows(pins: &Pins, skeleton: &HostSkel<'_>) -> Result<Link> {
    let connections = skeleton.maps.connections.as_fd();
    let mut link = skeleton.progs.waterfill_flows.attach_iter(connections).context("cannot list connections")?;
    if let Some(path) = pins.path(FLOWS) {
        if path.exists() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        link.pin(path)?;
    }
    Ok(link)
}
