//! The host's side: TCP's congestion control, and the option on its packets.
//!
//! Four things are pinned, so that they outlive this process: the law as TCP lists it, the option's program on its cgroup,
//! the list of connections, and the maps. A process that starts anew replaces programs and keeps maps: connections go on.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, MapHandle, OpenMapMut};
use serde::Serialize;

use super::host_skeleton::{HostSkel, HostSkelBuilder};
use super::pins::Pins;

/// The option's kind on the wire (`bpf/intf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 253, with an ExID.
    Experiment,
    /// 42, the papers' own.
    Paper,
}

/// What the host is told. Checked by `cli`: every value is in range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// The name that TCP lists.
    pub(super) name: String,
    pub(super) cgroup: PathBuf,
    /// The kernel's law for paths that give no price.
    pub(super) fallback: String,
    /// Network namespaces whose connections take part; empty: all.
    pub(super) netns_cookies: Vec<u64>,
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

/// What is known of a connection.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct FlowStatus {
    pub(super) local: String,
    pub(super) remote: String,
    pub(super) mode: String,
    pub(super) price_s: f64,
    pub(super) xi: f64,
    pub(super) rate_bps: u64,
    pub(super) window_bytes: u64,
    pub(super) rtt_us: u32,
    pub(super) base_rtt_us: u32,
    pub(super) fallback_reason: Option<String>,
    /// The window as TCP has it, packets.
    pub(super) window_packets: u32,
    /// The averaged price that this end echoes for the other's data; 0: none.
    pub(super) echoed_price_s: f64,
    pub(super) echoes: u32,
    pub(super) timeouts: u32,
}

/// The kernel's `TCP_CA_NAME_MAX`, the end of the string included.
const NAME_BYTES: usize = 16;
/// The name in the object file, which [`Options::name`] replaces.
const NAME_AS_COMPILED: &[u8; 11] = b"bpf_maxnet\0";
/// How long a law's name may still be taken after the law's last pin is gone.
const NAME_FREE_WITHIN: Duration = Duration::from_secs(2);

/// Names of pins below the pins' folder.
const LAW: &str = "host/law";
const OPTIONS: &str = "host/options";
const FLOWS: &str = "host/flows";
const PARAMETERS: &str = "host/parameters";
const CONNECTIONS: &str = "host/connections";
const PLACES: &str = "host/places";
const NAMESPACES: &str = "host/namespaces";

/// The programs, loaded.
pub(super) struct Host {
    /// Holds what is not pinned; and the links, which end with it where they are not.
    _skeleton: Box<HostSkel<'static>>,
    _law: Link,
    _options: Link,
    flows: Link,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive() // what libbpf-cargo makes has no Debug
    }
}

impl Host {
    /// Loads the programs, or replaces those that are pinned; connections go on with what the maps hold.
    pub(super) fn load(pins: &Pins, options: &Options) -> Result<Self> {
        // The programs stay for as long as the process does.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = HostSkelBuilder::default().open(storage).context("cannot read the host's programs")?;
        if let Some(constants) = open.maps.rodata_data.as_mut() {
            constants.filter_netns = !options.netns_cookies.is_empty();
        }
        name_law(&mut open.maps.waterfill_law, &options.name)?;
        let linked = laws_are_links()?;
        if !linked {
            let flags = open.maps.waterfill_law.map_flags() & !libbpf_sys::BPF_F_LINK;
            open.maps.waterfill_law.set_map_flags(flags)?;
        }
        keep(pins, PARAMETERS, &mut open.maps.parameters)?;
        keep(pins, CONNECTIONS, &mut open.maps.connections)?;
        keep(pins, PLACES, &mut open.maps.places)?;
        keep(pins, NAMESPACES, &mut open.maps.namespaces)?;
        let mut skeleton = Box::new(open.load().context("the kernel does not take the host's programs")?);

        let parameters = parameters(options);
        skeleton.maps.parameters.update(&0_u32.to_ne_bytes(), &parameters, MapFlags::ANY)?;
        for old in skeleton.maps.namespaces.keys().collect::<Vec<_>>() {
            skeleton.maps.namespaces.delete(&old)?;
        }
        for cookie in &options.netns_cookies {
            skeleton.maps.namespaces.update(&cookie.to_ne_bytes(), &[1], MapFlags::ANY)?;
        }

        let options_link = attach_options(pins, &options.cgroup, &skeleton)?;
        let law = attach_law(pins, &options.name, &mut skeleton, linked)?;
        let flows = attach_flows(pins, &skeleton)?;
        Ok(Self { _skeleton: skeleton, _law: law, _options: options_link, flows })
    }

    /// All connections that use the law.
    pub(super) fn flows(&self) -> Result<Vec<FlowStatus>> {
        let mut bytes = Vec::new();
        Iter::new(&self.flows)?.read_to_end(&mut bytes).context("cannot list connections")?;
        records(&bytes)
    }
}

/// All connections of a host that is pinned, whether or not its daemon runs; `None` when nothing is pinned. Changes nothing.
pub(super) fn pinned_flows(pins: &Pins) -> Result<Option<Vec<FlowStatus>>> {
    // A pinned iterator is read like a file.
    let Some(path) = pins.path(FLOWS).filter(|path| path.exists()) else { return Ok(None) };
    let mut bytes = Vec::new();
    let mut file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    records(&bytes).map(Some)
}

/// Takes law and options out of the kernel. The folder of pins is removed by the caller. Answers whether anything was there.
pub(super) fn unload(pins: &Pins) -> Result<bool> {
    let mut found = false;
    for name in [LAW, OPTIONS, FLOWS, PARAMETERS, CONNECTIONS, PLACES, NAMESPACES] {
        let Some(path) = pins.path(name).filter(|path| path.exists()) else { continue };
        found = true;
        remove(name, &path)?;
    }
    Ok(found)
}

/// Detaches what a pin holds, where it can be, and removes the pin.
fn remove(name: &str, path: &Path) -> Result<()> {
    if matches!(name, LAW | OPTIONS) {
        if name == LAW && !laws_are_links()? {
            let law = MapHandle::from_pinned_path(path).with_context(|| format!("cannot open {}", path.display()))?;
            law.delete(&0_u32.to_ne_bytes()).context("cannot take the law out of TCP")?;
        } else {
            // Kernels before 6.9 cannot detach a law; there the pin's end is the link's.
            drop(Link::open(path).and_then(|link| link.detach()));
        }
    }
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Writes the name that TCP will list over the one in the object file.
fn name_law(law: &mut OpenMapMut<'_>, name: &str) -> Result<()> {
    ensure!(
        !name.is_empty() && name.len() < NAME_BYTES,
        "a congestion control's name has 1 to {} bytes",
        NAME_BYTES - 1
    );
    let value = law.initial_value_mut().context("the law's description has no value")?;
    let at = value.windows(NAME_AS_COMPILED.len()).position(|bytes| bytes == NAME_AS_COMPILED);
    let at = at.context("the law's description has no name")?;
    value[at..at + NAME_BYTES].fill(0);
    value[at..at + name.len()].copy_from_slice(name.as_bytes());
    Ok(())
}

/// Uses the map that is pinned under this name, or pins this one there. One of another shape, of another version, is left behind.
fn keep(pins: &Pins, name: &str, map: &mut OpenMapMut<'_>) -> Result<()> {
    let Some(path) = pins.path(name) else { return Ok(()) };
    if path.exists() {
        let old = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if old.value_size() != map.value_size() || old.key_size() != map.key_size() {
            tracing::warn!("{name} is of another version: connections that it knows fall back");
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    map.set_pin_path(&path).with_context(|| format!("cannot use {}", path.display()))
}

/// The bytes of `struct host_params`.
fn parameters(options: &Options) -> Vec<u8> {
    let thousandths = |x: f64| clamped((x * 1000.0).round());
    let mut fallback = [0; NAME_BYTES];
    let length = options.fallback.len().min(NAME_BYTES - 1);
    fallback[..length].copy_from_slice(&options.fallback.as_bytes()[..length]);
    let mut bytes = options.x_max_bps.to_ne_bytes().to_vec();
    for word in [
        thousandths(options.alpha),
        thousandths(options.eta),
        u32::try_from(options.t.as_millis()).unwrap_or(u32::MAX),
        u32::try_from(options.dt_min.as_micros()).unwrap_or(u32::MAX),
        u32::from(options.average),
        u32::from(options.compensate),
        1, // ξ first, as Fig. 2 prints it
        0,
        match options.kind {
            Kind::Experiment => 253,
            Kind::Paper => 42,
        },
        0,
    ] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(fallback);
    bytes
}

/// A non-negative whole number as an integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn clamped(x: f64) -> u32 {
    x.clamp(0.0, f64::from(u32::MAX)) as u32
}

/// The option's program on its cgroup: a pinned link there gets the new program without a gap.
fn attach_options(pins: &Pins, cgroup: &Path, skeleton: &HostSkel<'_>) -> Result<Link> {
    let program = &skeleton.progs.waterfill_options;
    let folder = File::open(cgroup).with_context(|| format!("cannot open the cgroup {}", cgroup.display()))?;
    let path = pins.path(OPTIONS);
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        let mut link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let there = match link.info()?.info {
            LinkTypeInfo::Cgroup(cgroup) => cgroup.cgroup_id,
            _ => 0,
        };
        if there == folder.metadata()?.ino() {
            link.update_prog(program).context("cannot replace the option's program")?;
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

/// The law, registered with TCP. One of ours that is pinned makes room for it first: for an instant the name is unknown.
/// Connections keep the programs that they began with.
fn attach_law(pins: &Pins, name: &str, skeleton: &mut HostSkel<'_>, linked: bool) -> Result<Link> {
    let path = pins.path(LAW);
    let mut replaced = false;
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        remove(LAW, path)?;
        replaced = true;
    }
    let step = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    let mut link = loop {
        match skeleton.maps.waterfill_law.attach_struct_ops() {
            Ok(link) => break link,
            Err(e) if replaced && e.kind() == libbpf_rs::ErrorKind::AlreadyExists && waited < NAME_FREE_WITHIN => {
                sleep(step);
                waited += step;
            }
            Err(e) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists => {
                return Err(anyhow::anyhow!("TCP already has a congestion control of the name {name}"));
            }
            Err(e) => return Err(e).with_context(|| format!("TCP does not take {name}")),
        }
    };
    match path {
        Some(path) if linked => link.pin(path)?,
        Some(path) => {
            skeleton.maps.waterfill_law.pin(path)?;
            link.disconnect(); // or the law would end with this process
        }
        None => {}
    }
    Ok(link)
}

/// Whether a law is a link, which a pin keeps registered (Linux 6.4). Before, it is so as long as its map has its element.
fn laws_are_links() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
    let mut numbers = release.split(['.', '-', '+', '\n']).map(|number| number.parse::<u32>().unwrap_or(0));
    Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 4))
}

/// The list of connections.
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

// ---------------------------------------------------------------------------------- records

/// `struct host_record`.
const RECORD_BYTES: usize = 112;

/// `enum host_flag`.
const FLAG_NEGOTIATED: u32 = 1 << 1;
const FLAG_LAW: u32 = 1 << 3;
const FLAG_STARTED: u32 = 1 << 4;
const FLAG_WAS_PRICED: u32 = 1 << 8;
const FLAG_WANTED: u32 = 1 << 9;

fn records(bytes: &[u8]) -> Result<Vec<FlowStatus>> {
    ensure!(bytes.len() % RECORD_BYTES == 0, "the list of connections is of another version");
    Ok(bytes.chunks_exact(RECORD_BYTES).filter_map(record).collect())
}

/// A connection; none if neither end uses the law.
fn record(bytes: &[u8]) -> Option<FlowStatus> {
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let port = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("2 bytes"));
    let address = |at: usize, port: u16| {
        let bytes: [u8; 16] = bytes[at..at + 16].try_into().expect("16 bytes");
        let ip = Ipv6Addr::from(bytes);
        SocketAddr::new(ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4), port).to_string()
    };
    let (price, mode, flags, reason, cap) = (word(64), word(68), word(72), word(76), word(80));
    if flags & (FLAG_WANTED | FLAG_NEGOTIATED) == 0 {
        return None;
    }
    let law = flags & FLAG_LAW != 0;
    let obeys = law && flags & FLAG_STARTED != 0;
    let mode = match (flags & FLAG_WANTED != 0, law, cap, mode) {
        (false, ..) => "receiving",
        (true, false, ..) => "fallen back",
        (true, true, 1.., _) => "restarting",
        (true, true, 0, 1) => "rising",
        (true, true, 0, 2) if flags & FLAG_WAS_PRICED != 0 => "priced",
        (true, true, 0, _) => "asking",
    };
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "shown, not computed with")]
    let (xi, average) = (long(48) as i64 as f64 / 2_f64.powi(34), long(56) as f64 / 2_f64.powi(58));
    Some(FlowStatus {
        local: address(0, port(108)),
        remote: address(16, port(110)),
        mode: mode.into(),
        price_s: if obeys { f64::from(price) / 2_f64.powi(18) } else { 0.0 },
        xi: if obeys { xi } else { 0.0 },
        rate_bps: if obeys { long(32) } else { 0 },
        window_bytes: if obeys { long(40) } else { 0 },
        rtt_us: word(84),
        base_rtt_us: word(88),
        fallback_reason: if mode == "fallen back" { why(reason).map(Into::into) } else { None },
        window_packets: word(92),
        echoed_price_s: average,
        echoes: word(96),
        timeouts: word(100),
    })
}

/// `enum host_reason` in words.
fn why(reason: u32) -> Option<&'static str> {
    Some(match reason {
        1 => "the peer did not answer the option",
        2 => "a SYN with the option got no answer",
        3 => "options did not get through to this place before",
        4 => "no router on the path writes a price",
        5 => "echoes have stopped",
        6 => "a queue stands while the price does not rise",
        7 => "packets are lost while the price does not rise",
        _ => return None,
    })
}
