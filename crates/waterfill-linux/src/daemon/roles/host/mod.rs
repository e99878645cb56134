//! Host role: registers the law as a TCP congestion control, and processes its option in packets.
//!
//! Four things are pinned, so that they outlive this process: the congestion control, the option program on its cgroup,
//! the list of connections, and the maps. A new process replaces programs and keeps maps, so connections continue.

#[cfg(test)]
mod cost;
mod events;
mod layout;
mod listeners;
#[cfg(test)]
mod missed;
mod namespaces;
mod registration;
mod setup;
mod stale;
mod status;
mod summary;
mod sysctl;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, Object, OpenMapMut, OpenObject};

use crate::daemon::kernel::interface::{
    Bytes as _, HostCounters, HostParams, OptionKind as WireKind, Prefix, write_name, write_params,
};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::object::{self, LAW_FLAGS, LAW_MAP, LAW_NAME};
use crate::daemon::kernel::pins::{PinNames, Pins, Role};
use crate::daemon::kernel::steps::{StepLog, Target};
use crate::daemon::options::network::Network;
use crate::daemon::options::values::OptionKind;

pub(crate) use events::{EventReader, FlowEvent, Reading};
pub(crate) use listeners::describe as describe_silent;
pub(crate) use setup::{HostSetup, check};
pub(crate) use stale::remove_stale;
pub(crate) use status::{CounterStatus, FlowStatus, NONE, PRICED, parse_records};
#[cfg(test)]
pub(crate) use summary::Quantiles;
pub(crate) use summary::Summary;

/// Flag of a TCP congestion control (include/net/tcp.h) that any user may select without a capability.
const TCP_CONG_NON_RESTRICTED: u32 = 1;

/// Interval at which a running daemon logs fallbacks and returns.
pub(crate) const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Path of the law's pin in the folder of pins.
const LAW: &str = "host/law";
const OPTIONS: &str = "host/options";
const FLOWS: &str = "host/flows";
const SUMMARY: &str = "host/summary";
const LISTENERS: &str = "host/listeners";
const PARAMETERS: &str = "host/parameters";
const CONNECTIONS: &str = "host/connections";
const COUNTERS: &str = "host/counters";
const PLACES: &str = "host/places";
const NAMESPACES: &str = "host/namespaces";
const PEERS: &str = "host/peers";
const EVENTS: &str = "host/events";
const EVENT_COUNT: &str = "host/event_count";
/// Digest of the maps' layout, in a map of its own.
const LAYOUT: &str = "host/layout";
/// Paths of all pins of the host role.
const PINS: [&str; 14] = [
    LAW,
    OPTIONS,
    FLOWS,
    SUMMARY,
    LISTENERS,
    PARAMETERS,
    CONNECTIONS,
    COUNTERS,
    PLACES,
    NAMESPACES,
    PEERS,
    EVENTS,
    EVENT_COUNT,
    LAYOUT,
];
/// Pins of maps, each with the map's name in the programs.
const MAPS: [(&str, &str); 8] = [
    (PARAMETERS, "parameters"),
    (CONNECTIONS, "connections"),
    (COUNTERS, "counters"),
    (PLACES, "places"),
    (NAMESPACES, "namespaces"),
    (PEERS, "peers"),
    (EVENTS, "events"),
    (EVENT_COUNT, "event_count"),
];
/// Map that contains the constant `listener_cgroup` (bpf/listeners.inc.h).
const SCOPE_MAP: &str = ".rodata.scope";

/// Loaded host programs of a law.
pub(crate) struct Host {
    /// Log of the law's steps, which ends with the host.
    _steps: Option<StepLog>,
    law: &'static LoadableLaw,
    #[cfg_attr(not(test), expect(dead_code, reason = "holds the law registered"))]
    registered: Link,
    _options: Link,
    flows: Link,
    summary: Link,
    listeners: Link,
    /// Reader of fallbacks and returns, for the log.
    events: EventReader,
    /// Owner of everything that is not pinned. It is dropped last, because before Linux 6.4 the law is unregistered
    /// through its map.
    object: Object,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive() // libbpf-rs's objects have no Debug
    }
}

impl Host {
    /// Loads the programs, or replaces pinned programs. Connections continue with the state in pinned maps.
    pub(crate) fn load(pins: &Pins, setup: &HostSetup) -> Result<Self> {
        Self::load_with(pins, setup, None)
    }

    /// Loads the programs like [`Host::load`], with an optional log of the law's steps.
    pub(crate) fn load_with(pins: &Pins, setup: &HostSetup, steps: Option<&Target>) -> Result<Self> {
        let linked = has_struct_ops_links()?;
        if !linked && pins.path(LAW).is_none_or(|pin| !pin.exists()) {
            for name in remove_stale(Some(&setup.name))? {
                tracing::info!("removed the congestion control {name}, which a daemon left that was killed");
            }
        }
        Self::load_as(pins, setup, linked, steps)
    }

    /// Loads the programs. `linked` is true if the kernel registers a law by a link.
    fn load_as(pins: &Pins, setup: &HostSetup, linked: bool, steps: Option<&Target>) -> Result<Self> {
        Self::load_object(object::open_host(setup.law.host)?, pins, setup, linked, steps)
    }

    fn load_object(
        mut open: OpenObject,
        pins: &Pins,
        setup: &HostSetup,
        linked: bool,
        steps: Option<&Target>,
    ) -> Result<Self> {
        if steps.is_some() {
            object::log_steps(&mut open)?;
        }
        let mut law = object::open_map(&mut open, LAW_MAP)?;
        let value =
            law.initial_value_mut().filter(|value| value.len() >= LAW_FLAGS.end).context("no name in the law")?;
        value[LAW_NAME].fill(0);
        value[LAW_NAME][..setup.name.len()].copy_from_slice(setup.name.as_bytes());
        let flags = if setup.options.unrestricted { TCP_CONG_NON_RESTRICTED } else { 0 };
        value[LAW_FLAGS].copy_from_slice(&flags.to_ne_bytes());
        if !linked {
            let flags = law.map_flags() & !libbpf_sys::BPF_F_LINK;
            law.set_map_flags(flags)?;
        }
        let scope = fs::metadata(&setup.cgroup)
            .with_context(|| format!("cannot open the cgroup {}", setup.cgroup.display()))?;
        object::open_map(&mut open, SCOPE_MAP)?
            .initial_value_mut()
            .and_then(|value| value.first_chunk_mut())
            .map(|value| *value = scope.ino().to_ne_bytes())
            .context("no cgroup in the programs")?;
        let layout = layout::digest(setup.law)?;
        layout::remove_others(pins, layout)?;
        for (pin, map) in MAPS {
            reuse_or_pin(pins, pin, &mut object::open_map(&mut open, map)?)?;
        }
        let mut object = open.load().context("the kernel refused the host programs")?;
        layout::pin(pins, layout)?;

        // Before the programs run. Programs that run already read the same maps only if the layout is the same.
        configure(&object, setup)?;
        let options_link = attach_options(pins, &setup.cgroup, &object)?;
        let law_pin = pins.path(LAW);
        let mut law = object::map_mut(&mut object, LAW_MAP)?;
        let law = registration::register(law_pin.as_deref(), &setup.name, &mut law, linked)?;
        if let Err(e) = sysctl::renew(&setup.name) {
            tracing::warn!("{e:#}");
        }
        let flows = attach_list(pins, &object, "waterfill_flows", FLOWS)?;
        let summary = attach_list(pins, &object, "waterfill_summary", SUMMARY)?;
        let listeners = attach_list(pins, &object, "waterfill_listeners", LISTENERS)?;
        let steps = steps.map(|target| StepLog::start(target, setup.law, "host", &object)).transpose()?;
        let events = EventReader::from_now(setup.law, &object)?;
        let host = Self {
            _steps: steps,
            events,
            object,
            law: setup.law,
            registered: law,
            _options: options_link,
            flows,
            summary,
            listeners,
        };
        host.enable_listeners();
        Ok(host)
    }

    /// Enables the option for servers that listened before the programs were loaded. Later servers need no such step.
    fn enable_listeners(&self) {
        if let Err(e) = listeners::enable(&self.object) {
            tracing::warn!("servers that listened before do not answer the option until they are restarted: {e:#}");
        }
    }

    /// Changes the setup of loaded programs. Connections keep their state and apply new values with the next packet,
    /// unless programs must be replaced. `pins` are the pins that the programs were loaded with.
    pub(crate) fn change(&mut self, pins: &Pins, before: &HostSetup, now: &HostSetup) -> Result<()> {
        let fixed = |setup: &HostSetup| (setup.name.clone(), setup.cgroup.clone(), setup.options.unrestricted);
        if fixed(before) == fixed(now) {
            configure(&self.object, now)?;
            self.enable_listeners(); // other namespaces may take part now
            return Ok(());
        }
        self.log_events();
        *self = Self::load(pins, now)?;
        Ok(())
    }

    /// Returns the state of all connections that use the law.
    pub(crate) fn flows(&self) -> Result<Vec<FlowStatus>> {
        let bytes = read(Iter::new(&self.flows)?).context("cannot list connections")?;
        parse_records(self.law, &bytes)
    }

    /// Returns the servers of this network namespace that do not answer the option because they listened before the
    /// programs were loaded.
    pub(crate) fn silent_listeners(&self) -> Result<Vec<String>> {
        Ok(listeners::read(&self.listeners)?.into_iter().map(|listener| listener.address).collect())
    }

    /// Reads the sums over present connections, and the counts over all connections.
    pub(crate) fn summary(&self) -> Result<Summary> {
        let bytes = read(Iter::new(&self.summary)?).context("cannot add up connections")?;
        let mut summary = Summary::parse(self.law, &bytes, self.counters()?)?;
        summary.events_lost = self.events.lost;
        Ok(summary)
    }

    /// Logs the connections that fell back or returned since the last call.
    pub(crate) fn log_events(&mut self) {
        let law = self.law.name;
        match self.events.read() {
            Ok(Reading { events, lost }) => {
                events.iter().for_each(FlowEvent::log);
                if lost > 0 {
                    tracing::warn!(law, "{lost} fallbacks and returns were overwritten before they were logged");
                }
            }
            Err(e) => tracing::warn!(law, "{e:#}"),
        }
    }

    /// Reads the counts over all connections.
    pub(crate) fn counters(&self) -> Result<CounterStatus> {
        counters(self.law, &object::map(&self.object, "counters")?)
    }
}

/// Reads the output of an iterator program. The kernel interrupts a read after a million sockets without output.
fn read(mut from: impl Read) -> io::Result<Vec<u8>> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Returns the connections of a pinned host, whether or not its daemon runs. Returns `None` if nothing is pinned.
pub(crate) fn pinned_flows(law: &'static LoadableLaw, pins: &Pins) -> Result<Option<Vec<FlowStatus>>> {
    read_pinned(pins, FLOWS)?.map(|bytes| parse_records(law, &bytes)).transpose()
}

/// Returns the servers of this network namespace that do not answer a pinned host's option.
pub(crate) fn pinned_silent_listeners(pins: &Pins) -> Result<Vec<String>> {
    let Some(bytes) = read_pinned(pins, LISTENERS)? else { return Ok(Vec::new()) };
    Ok(listeners::parse(&bytes)?.into_iter().map(|listener| listener.address).collect())
}

/// Reads the output of a pinned iterator program. Returns `None` if the program is not pinned.
fn read_pinned(pins: &Pins, name: &str) -> Result<Option<Vec<u8>>> {
    let Some(path) = pins.path(name).filter(|path| path.exists()) else { return Ok(None) };
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    read(file).with_context(|| format!("cannot read {}", path.display())).map(Some)
}

/// Reads the counts over all connections of a pinned host. Returns `None` if nothing is pinned.
pub(crate) fn pinned_counters(law: &LoadableLaw, pins: &Pins) -> Result<Option<CounterStatus>> {
    let Some(path) = pins.path(COUNTERS).filter(|path| path.exists()) else { return Ok(None) };
    let map = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
    counters(law, &map).map(Some)
}

fn counters(law: &LoadableLaw, map: &impl MapCore) -> Result<CounterStatus> {
    let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.context("no counters")?;
    let counters = HostCounters::from_prefix(&bytes).context("the counters are from another version of waterfilld")?;
    Ok(CounterStatus::new(law, &counters))
}

/// Removes the host programs from the kernel, with their pins.
pub(crate) fn unload(pins: &Pins) -> Result<()> {
    for name in PINS {
        let Some(path) = pins.path(name).filter(|path| path.exists()) else { continue };
        remove(name, &path)?;
    }
    pins.remove(&PinNames { role: Role::Host, names: &PINS, by_device: &[] })
}

/// Removes a pin. The law and the option program are also detached.
fn remove(name: &str, path: &Path) -> Result<()> {
    match name {
        LAW => return registration::unregister(path, has_struct_ops_links()?),
        OPTIONS => drop(Link::open(path).and_then(|link| link.detach())),
        _ => {}
    }
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Reuses the map that is pinned under this name, or pins the given map there.
fn reuse_or_pin(pins: &Pins, name: &str, map: &mut OpenMapMut<'_>) -> Result<()> {
    let Some(path) = pins.path(name) else { return Ok(()) };
    map.set_pin_path(&path).with_context(|| format!("cannot use {}", path.display()))
}

/// Writes the options into the maps of the loaded programs. New keys come before the parameters that make the programs
/// look for them, and old ones go afterwards: at no time does a program find no key that should be there.
fn configure(object: &Object, setup: &HostSetup) -> Result<()> {
    let cookies = setup.options.netns_cookies.iter().map(|cookie| cookie.0.to_ne_bytes().to_vec()).collect();
    let sets: [(_, Vec<Vec<u8>>); 2] = [
        (object::map(object, "namespaces")?, cookies),
        (object::map(object, "peers")?, setup.options.peers.iter().map(network_key).collect()),
    ];
    for (map, keys) in &sets {
        keys.iter().try_for_each(|key| map.update(key, &[1], MapFlags::ANY))?;
    }
    let parameters = parameters(setup);
    object::map(object, "parameters")?.update(&0_u32.to_ne_bytes(), parameters.as_bytes(), MapFlags::ANY)?;
    for (map, keys) in &sets {
        for old in map.keys().filter(|old| !keys.contains(old)).collect::<Vec<_>>() {
            map.delete(&old)?;
        }
    }
    Ok(())
}

/// Returns a network's key in the map of peers (`struct host_prefix`).
fn network_key(network: &Network) -> Vec<u8> {
    let mut prefix = Prefix { bits: network.bits, ..Prefix::default() };
    for (word, bytes) in prefix.address.iter_mut().zip(network.address.octets().chunks_exact(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    prefix.as_bytes().to_vec()
}

/// Converts the setup to the configuration of the kernel programs.
fn parameters(setup: &HostSetup) -> HostParams {
    let kind = match setup.options.option_kind {
        OptionKind::Experiment => WireKind::WATERFILL_KIND_EXPERIMENT,
        OptionKind::Paper => WireKind::WATERFILL_KIND_PAPER,
    };
    let mut out = HostParams {
        kind,
        filter_netns: (!setup.options.netns_cookies.is_empty()).into(),
        filter_peers: (!setup.options.peers.is_empty()).into(),
        queue_margin_us: microseconds(setup.options.queue_margin.0) as u32,
        base_rtt_window_us: setup.options.base_rtt_window.0.map_or(0, microseconds),
        ..HostParams::default()
    };
    write_params(&mut out.law, &setup.parameters);
    write_name(&mut out.name, &setup.name);
    write_name(&mut out.fallback, &setup.options.fallback.0);
    out
}

/// Returns a time in whole microseconds.
fn microseconds(time: Duration) -> u64 {
    time.as_secs() * 1_000_000 + u64::from(time.subsec_micros())
}

/// Attaches the option program to its cgroup. If a link is pinned for this cgroup, its program is replaced without a
/// gap.
fn attach_options(pins: &Pins, cgroup: &Path, object: &Object) -> Result<Link> {
    let program = object::program(object, "waterfill_options")?;
    let folder = File::open(cgroup).with_context(|| format!("cannot open the cgroup {}", cgroup.display()))?;
    let path = pins.path(OPTIONS);
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        let mut link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let attached_to = match link.info()?.info {
            LinkTypeInfo::Cgroup(cgroup) => cgroup.cgroup_id,
            _ => 0,
        };
        if attached_to == folder.metadata()?.ino() {
            link.update_prog(&program).context("cannot replace the option program")?;
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

/// Returns true if struct_ops are registered by links, which a pin keeps (Linux 6.4). On older kernels, the map's
/// element keeps them registered.
fn has_struct_ops_links() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
    let mut numbers = release.split(['.', '-', '+', '\n']).map(|number| number.parse::<u32>().unwrap_or(0));
    Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 4))
}

/// Attaches and pins an iterator program over connections, or over the sockets of its reader's network namespace.
fn attach_list(pins: &Pins, object: &Object, program: &str, pin: &str) -> Result<Link> {
    let connections = object::map(object, "connections")?;
    let program = object::program(object, program)?;
    let link = if pin == LISTENERS { program.attach() } else { program.attach_iter(connections.as_fd()) };
    let mut link = link.context("cannot list connections")?;
    if let Some(path) = pins.path(pin) {
        if path.exists() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        link.pin(path)?;
    }
    Ok(link)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

    use super::{HostSetup, configure, network_key};
    use crate::daemon::kernel::interface::{Bytes as _, HostParams};
    use crate::daemon::kernel::{laws, object, privileges};

    /// Whenever programs look for peers, all of them are there, also the one that was written last. The margin numbers the
    /// setups, so a reader knows that the parameters did not change meanwhile.
    #[test]
    fn programs_that_look_for_peers_find_all_at_any_time() {
        if let Err(why) = privileges::check() {
            eprintln!("skipped: {why:#}");
            return;
        }
        let loaded = object::open_host(laws::default().host).unwrap().load().unwrap();
        let map = |name| MapHandle::try_from(&object::map(&loaded, name).unwrap()).unwrap();
        let networks: Vec<_> = (0..2000).map(|n| format!("'10.{}.{}.0/24'", n / 250, n % 250)).collect();
        let mut setups = ["", &format!("peers = [{}]", networks.join(", "))].map(HostSetup::read);
        let last = network_key(setups[1].options.peers.last().unwrap());
        let (parameters, peers, done) = (map("parameters"), map("peers"), AtomicBool::new(false));
        let read = || {
            let bytes = parameters.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
            let now = HostParams::from_prefix(&bytes).unwrap();
            (now.filter_peers, now.queue_margin_us)
        };
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut without, mut looked) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let (before, found, after) = (read(), peers.lookup(&last, MapFlags::ANY).unwrap(), read());
                    let looks = u32::from(before.0 == 1 && before == after);
                    looked += looks;
                    without += if found.is_none() { looks } else { 0 };
                }
                (without, looked)
            });
            for turn in 1..=40 {
                let setup = &mut setups[turn % 2];
                setup.options.queue_margin.0 = Duration::from_micros(turn as u64);
                configure(&loaded, setup).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            let (without, looked) = reader.join().unwrap();
            assert!(without == 0 && looked > 20, "{without} of {looked} times");
        });
    }

    #[test]
    fn a_network_is_a_prefix_and_its_bytes() {
        let key = |text: &str| network_key(&text.parse().unwrap());
        let mapped = |bits: u8, ip: [u8; 4]| [&[bits, 0, 0, 0][..], &[0; 10], &[255; 2], &ip].concat();
        assert_eq!(key("10.0.0.0/8"), mapped(104, [10, 0, 0, 0]));
        assert_eq!(key("fd00::/8"), [&[8, 0, 0, 0, 0xfd][..], &[0; 15]].concat());
    }
}
