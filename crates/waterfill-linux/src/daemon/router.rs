//! The router's side: the program at a device's egress, its links, its shaper.
//!
//! Pinned are the map of links and one link for each device. A process that starts anew takes the map, prices included, and puts
//! its own program in the place of the one that runs: no packet goes by uncounted. What was done to a device is noted in
//! the map beside its price, so that whoever unloads knows what to undo.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fmt;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, ProgramInput};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_indextoname, if_nametoindex};
use serde::Serialize;

use super::failure::wrong;
use super::hook;
use super::pins::Pins;
use super::router_skeleton::types::{waterfill_link, waterfill_place, waterfill_request};
use super::router_skeleton::{RouterSkel, RouterSkelBuilder};
use super::shaper::{self, Shaping};

/// The map's pin.
const LINKS: &str = "router/links";

// Of bpf/router.h.
const LAYOUT: u32 = 1;
const MADE_FILTER: u32 = 1;
const MADE_CLSACT: u32 = 2;
const MADE_SHAPER: u32 = 4;
const SET: u32 = 0;
const SHOW: u32 = 1;
const DONE: u32 = 0;
const BUSY: u32 = 2;
/// The counts' order there; what it is not is shown as left untouched.
const SEEN: usize = 0;
const MARKED: usize = 1;
const STARTS: usize = 2;
const PLAIN: usize = 3;
const UNTOUCHED: [(usize, &str); 4] = [(4, "fragment"), (5, "malformed"), (6, "signed"), (7, "no memory")];

/// Of linux/if_arp.h: devices whose packets begin with Ethernet's header, and those whose packets begin with IP's.
const ETHERNET: [u16; 2] = [1, 772];
const IP: [u16; 6] = [512, 519, 768, 769, 776, 0xfffe];
const ETHERNET_BYTES: u32 = 14;

/// A price's unit in the kernel, s.
const PRICE_UNIT: f64 = 1.0 / (1_u64 << 34) as f64;

/// One device and what it is told. Checked by `cli`: every value is in range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) device: String,
    pub(super) rate_bps: u64,
    pub(super) target: f64,
    /// Bytes that a packet has on the link beyond its IP length.
    pub(super) overhead_bytes: i32,
    pub(super) dt_p: Duration,
    pub(super) t_0: Duration,
    pub(super) x_max_bps: u64,
    /// The law's T.
    pub(super) t: Duration,
    /// Whether promised start rates are remembered.
    pub(super) promise: bool,
    /// Whether the queue is reckoned even where it could be read.
    pub(super) virtual_queue: bool,
    pub(super) shape: Option<Shape>,
}

/// The shaper that the router sets up itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) buffer_bytes: Option<u64>,
}

/// What is known of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LinkStatus {
    pub(super) device: String,
    pub(super) ifindex: u32,
    pub(super) rate_bps: u64,
    pub(super) target: f64,
    pub(super) price_s: f64,
    /// y/C over the last full interval.
    pub(super) load: f64,
    /// What waits in the device's queue, as last seen; `None` where it cannot be read.
    pub(super) queue_bytes: Option<u64>,
    /// What would wait if the link were exactly as fast as it is said to be; `None` where the queue is read.
    pub(super) virtual_queue_bytes: Option<u64>,
    pub(super) packets: u64,
    /// Packets as they are sent: super-packets count as what they are cut into.
    pub(super) segments: u64,
    /// IP bytes and overhead.
    pub(super) bytes: u64,
    /// TCP segments with an option of ours.
    pub(super) seen: u64,
    pub(super) marked: u64,
    pub(super) starts: u64,
    /// Packets left as they were, by reason.
    pub(super) left_untouched: BTreeMap<String, u64>,
}

/// The program, loaded.
pub(super) struct Router {
    skeleton: Box<RouterSkel<'static>>,
    pins: Pins,
    /// Those of this process.
    links: BTreeMap<u32, Link>,
    /// Prices that a map of another layout had.
    handed: BTreeMap<u32, u64>,
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("pins", &self.pins).finish_non_exhaustive() // what libbpf-cargo makes has no Debug
    }
}

impl Router {
    /// Loads the program; maps that are pinned go on with what is in them, and attached devices get the new program.
    pub(super) fn load(pins: &Pins) -> Result<Self> {
        let mut router = Self::open(pins, true)?;
        for key in router.skeleton.maps.links.keys().collect::<Vec<_>>() {
            let ifindex = number(&key);
            let place = router.show(ifindex)?.place;
            if place.namespace == namespace()? {
                if if_indextoname(ifindex).is_err() {
                    router.forget(ifindex)?; // the device has gone, and its link with it
                    continue;
                }
                if place.made & MADE_FILTER != 0 {
                    hook::attach_filter(&router.skeleton.progs.waterfill_router, ifindex)?;
                }
            }
            router.update(ifindex)?;
        }
        Ok(router)
    }

    /// The program with the map that is pinned, or a new one. Without `mark`, for looking only, not the part that marks.
    fn open(pins: &Pins, mark: bool) -> Result<Self> {
        // The program stays for as long as the process does.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = RouterSkelBuilder::default().open(storage).context("cannot read the router's program")?;
        open.progs.waterfill_router.set_autoload(mark);
        let path = pins.path(LINKS);
        let mut handed = BTreeMap::new();
        if let Some(path) = path.as_deref().filter(|path| path.exists()) {
            let map = MapHandle::from_pinned_path(path).with_context(|| format!("cannot open {}", path.display()))?;
            if fits(&map)? {
                open.maps.links.reuse_pinned_map(path).context("cannot take over the pinned map")?;
            } else if mark {
                for (ifindex, place) in places(&map)? {
                    handed.insert(ifindex, place.price);
                }
                fs::remove_file(path)?;
            } else {
                bail!("{} is another version's: start the daemon anew or unload it", path.display());
            }
        }
        let mut skeleton = Box::new(open.load().context("the kernel does not take the router's program")?);
        if let Some(path) = path.filter(|path| mark && !path.exists()) {
            skeleton.maps.links.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        Ok(Self { skeleton, pins: pins.clone(), links: BTreeMap::new(), handed })
    }

    /// Puts the program at a device's egress, or tells a link that is there already its new values. Its price stays.
    pub(super) fn attach(&mut self, options: &Options) -> Result<()> {
        self.attach_by(options, Hook::Newest)
    }

    fn attach_by(&mut self, options: &Options, wanted: Hook) -> Result<()> {
        let device = options.device.as_str();
        let ifindex = if_nametoindex(device).map_err(|_| wrong(format!("--dev {device}: expected a device")))?;
        let header = header_bytes(device)?;
        let key = ifindex.to_ne_bytes();
        if self.skeleton.maps.links.lookup(&key, MapFlags::ANY)?.is_none() {
            let empty = vec![0; self.skeleton.maps.links.value_size() as usize];
            self.skeleton.maps.links.update(&key, &empty, MapFlags::NO_EXIST)?;
        }
        let place = self.show(ifindex)?.place;
        ensure!(
            place.layout == 0 || place.namespace == namespace()?,
            "its pins are another network namespace's: give this one pins of its own (--pins)"
        );
        let mut made = place.made;
        // Noted before it is done, so that it is undone in any case.
        if options.shape.is_some() {
            made |= MADE_SHAPER;
        }
        self.set(options, ifindex, header, made)?;
        if let Some(shape) = options.shape {
            let shaping = Shaping {
                rate_bps: options.rate_bps,
                correction_bytes: options.overhead_bytes - header as i32,
                buffer_bytes: shape.buffer_bytes,
            };
            if let Err(e) = shaper::install(device, &shaping) {
                self.set(options, ifindex, header, place.made)?;
                return Err(e);
            }
        } else if made & MADE_SHAPER != 0 {
            shaper::remove(device)?;
            made &= !MADE_SHAPER;
            self.set(options, ifindex, header, made)?;
        }
        if self.update(ifindex)? {
            return Ok(());
        }
        if made & MADE_FILTER == 0 && wanted == Hook::Newest {
            if let Some(mut link) = hook::attach(&self.skeleton.progs.waterfill_router, ifindex)? {
                if let Some(path) = self.pin(ifindex) {
                    link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
                }
                self.links.insert(ifindex, link);
                return Ok(());
            }
        }
        if made & MADE_FILTER == 0 {
            made |= MADE_FILTER | if shaper::has_clsact(device)? { 0 } else { MADE_CLSACT };
            self.set(options, ifindex, header, made)?;
        }
        hook::attach_filter(&self.skeleton.progs.waterfill_router, ifindex)
    }

    /// Gives a link that is there the new program; whether there is one.
    fn update(&mut self, ifindex: u32) -> Result<bool> {
        if let Some(path) = self.pin(ifindex).filter(|path| !self.links.contains_key(&ifindex) && path.exists()) {
            let link = Link::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
            // A link outlives its device, and is of no use then.
            if matches!(link.info()?.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == ifindex) {
                self.links.insert(ifindex, link);
            } else {
                fs::remove_file(&path)?;
            }
        }
        let Some(link) = self.links.get_mut(&ifindex) else { return Ok(false) };
        link.update_prog(&self.skeleton.progs.waterfill_router).context("cannot replace the program of a link")?;
        Ok(true)
    }

    fn pin(&self, ifindex: u32) -> Option<PathBuf> {
        link_pin(&self.pins, ifindex)
    }

    fn set(&self, options: &Options, ifindex: u32, header: u32, made: u32) -> Result<()> {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let mut place = waterfill_place {
            made,
            namespace: namespace()?,
            price: self.handed.get(&ifindex).copied().unwrap_or(0),
            ..waterfill_place::default()
        };
        for (to, from) in place.device.iter_mut().zip(options.device.bytes()).take(15) {
            *to = from as _;
        }
        let mut request = waterfill_request {
            what: SET,
            ifindex,
            place,
            rate: options.rate_bps,
            x_max: options.x_max_bps,
            mu: (options.target * 1e6).round() as u32,
            t: u32::try_from(options.t.as_millis()).unwrap_or(u32::MAX),
            dt_p: micros(options.dt_p),
            t_0: micros(options.t_0),
            promise: options.promise.into(),
            virtual_only: options.virtual_queue.into(),
            overhead: options.overhead_bytes,
            header,
            ..waterfill_request::default()
        };
        self.ask(&mut request)
    }

    fn show(&self, ifindex: u32) -> Result<waterfill_request> {
        let mut request = waterfill_request { what: SHOW, ifindex, ..waterfill_request::default() };
        self.ask(&mut request)?;
        Ok(request)
    }

    /// Has the program do something to a link between packets.
    fn ask(&self, request: &mut waterfill_request) -> Result<()> {
        // Somebody else is at it for less than a microsecond, unless its processor was taken from it.
        for _ in 0..1000 {
            let input = ProgramInput { context_in: Some(hook::as_bytes(request)), ..ProgramInput::default() };
            match self
                .skeleton
                .progs
                .waterfill_ask
                .test_run(input)
                .context("cannot ask the router's program")?
                .return_value
            {
                DONE => return Ok(()),
                BUSY => std::thread::yield_now(),
                _ => bail!("no link of number {}", request.ifindex),
            }
        }
        bail!("the link of number {} is busy and stays so", request.ifindex)
    }

    /// All links.
    pub(super) fn links(&self) -> Result<Vec<LinkStatus>> {
        let mut links = Vec::new();
        for key in self.skeleton.maps.links.keys() {
            let found = self.show(number(&key))?;
            if found.place.layout != 0 {
                links.push(status(&found));
            }
        }
        links.sort_by(|a, b| a.device.cmp(&b.device));
        Ok(links)
    }

    /// Removes a link whose device has gone.
    fn forget(&mut self, ifindex: u32) -> Result<()> {
        if let Some(path) = self.pin(ifindex).filter(|path| path.exists()) {
            fs::remove_file(path)?;
        }
        self.skeleton.maps.links.delete(&ifindex.to_ne_bytes())?;
        Ok(())
    }
}

impl Drop for Router {
    /// What is not pinned ends here; filters and shapers do not end by themselves.
    fn drop(&mut self) {
        if self.pins.path(LINKS).is_some() {
            return;
        }
        let undo_all = || -> Result<()> {
            let map = MapHandle::try_from(&self.skeleton.maps.links)?;
            for (ifindex, place) in places(&map)? {
                undo(&map, ifindex, &place)?;
            }
            Ok(())
        };
        if let Err(e) = undo_all() {
            tracing::warn!("{e:#}");
        }
    }
}

/// Which hook to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    Newest,
    #[cfg_attr(not(test), expect(dead_code, reason = "older kernels get there by not having the other"))]
    Filter,
}

/// All links of a router that is pinned, whether or not its daemon runs; `None` when nothing is pinned. Changes nothing.
pub(super) fn pinned_links(pins: &Pins) -> Result<Option<Vec<LinkStatus>>> {
    if !pins.path(LINKS).is_some_and(|path| path.exists()) {
        return Ok(None);
    }
    Router::open(pins, false)?.links().map(Some)
}

/// Takes the program off one device, or off all: filters, clsact and shaper of ours. The folder of pins is removed by the
/// caller after the last. Answers the devices it was taken off.
pub(super) fn unload(pins: &Pins, device: Option<&str>) -> Result<Vec<String>> {
    let Some(path) = pins.path(LINKS).filter(|path| path.exists()) else { return Ok(Vec::new()) };
    let map = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut names = Vec::new();
    for (ifindex, place) in places(&map)? {
        let name = name(ifindex, &place);
        if device.is_some_and(|device| device != name) {
            continue;
        }
        if let Some(path) = link_pin(pins, ifindex).filter(|path| path.exists()) {
            hook::detach_pinned(&path)?;
        }
        undo(&map, ifindex, &place)?;
        map.delete(&ifindex.to_ne_bytes())?;
        names.push(name);
    }
    Ok(names)
}

/// Undoes what was done to a device beside its link.
fn undo(map: &MapHandle, ifindex: u32, place: &waterfill_place) -> Result<()> {
    if place.made == 0 {
        return Ok(());
    }
    let device = noted_name(place);
    if place.namespace != namespace()? {
        tracing::warn!("device {device} is in another network namespace: its filter and shaper stay until that ends");
        return Ok(());
    }
    let Ok(device) = if_indextoname(ifindex) else { return Ok(()) }; // gone, and all that it had
    let device = device.to_string_lossy();
    if place.made & MADE_FILTER != 0 {
        hook::detach_filter(map, ifindex, &device, place.made & MADE_CLSACT != 0)?;
    }
    if place.made & MADE_SHAPER != 0 {
        shaper::remove(&device)?;
    }
    Ok(())
}

fn link_pin(pins: &Pins, ifindex: u32) -> Option<PathBuf> {
    pins.path(&format!("router/device-{ifindex}"))
}

/// Whether a pinned map is of our layout.
fn fits(map: &MapHandle) -> Result<bool> {
    let set = places(map)?.into_values().filter(|place| place.layout != 0);
    Ok(map.value_size() as usize == size_of::<waterfill_link>() && set.into_iter().all(|place| place.layout == LAYOUT))
}

/// Of each link what all versions keep in the same place.
fn places(map: &MapHandle) -> Result<BTreeMap<u32, waterfill_place>> {
    let mut out = BTreeMap::new();
    for key in map.keys() {
        let Some(value) = map.lookup(&key, MapFlags::ANY)? else { continue };
        let word = |at: usize| value.get(at..at + 4).map_or(0, number);
        let long = |at: usize| u64::from_ne_bytes(value[at..at + 8].try_into().unwrap_or_default());
        ensure!(value.len() >= size_of::<waterfill_place>(), "the pinned map is not of this daemon");
        let mut device = [0; 16];
        for (to, from) in device.iter_mut().zip(&value[32..]) {
            *to = *from as _;
        }
        let place = waterfill_place {
            price: long(0),
            namespace: long(8),
            layout: word(16),
            made: word(20),
            device,
            ..waterfill_place::default()
        };
        out.insert(number(&key), place);
    }
    Ok(out)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_ne_bytes)
}

/// This process's network namespace, as a number.
fn namespace() -> Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net").context("cannot tell the network namespace")?.ino())
}

/// A device's name now, or as it was when it was attached.
fn name(ifindex: u32, place: &waterfill_place) -> String {
    match (namespace(), if_indextoname(ifindex)) {
        (Ok(here), Ok(name)) if here == place.namespace => name.to_string_lossy().into_owned(),
        _ => noted_name(place),
    }
}

fn noted_name(place: &waterfill_place) -> String {
    let bytes = place.device.map(|c| c as u8);
    CStr::from_bytes_until_nul(&bytes).map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

/// What stands before the IP header in a device's packets.
fn header_bytes(device: &str) -> Result<u32> {
    let addresses = getifaddrs().context("cannot list devices")?;
    let kind = addresses
        .filter(|a| a.interface_name == device)
        .find_map(|a| a.address.and_then(|address| address.as_link_addr().map(nix::sys::socket::LinkAddr::hatype)));
    // One that has no address of its own (tun, ppp, wireguard) puts none before its packets.
    let Some(kind) = kind else { return Ok(0) };
    match kind {
        kind if ETHERNET.contains(&kind) => Ok(ETHERNET_BYTES),
        kind if IP.contains(&kind) => Ok(0),
        kind => bail!(wrong(format!(
            "--dev {device}: expected Ethernet or plain IP, got a device of type {kind} (if_arp.h)"
        ))),
    }
}

fn status(found: &waterfill_request) -> LinkStatus {
    let counts = &found.counts;
    let mut left: BTreeMap<String, u64> = UNTOUCHED.iter().map(|(at, why)| ((*why).to_owned(), counts[*at])).collect();
    left.insert("no option".into(), counts[PLAIN]);
    let known = counts[SEEN] + left.values().sum::<u64>();
    left.insert("not TCP".into(), found.packets.saturating_sub(known));
    let queue = |real: bool| ((found.queue_is_real != 0) == real).then_some(found.queue);
    LinkStatus {
        device: name(found.ifindex, &found.place),
        ifindex: found.ifindex,
        rate_bps: found.rate,
        target: f64::from(found.mu) / 1e6,
        price_s: found.place.price as f64 * PRICE_UNIT,
        load: found.arrival_rate as f64 / found.rate as f64,
        queue_bytes: queue(true),
        virtual_queue_bytes: queue(false),
        packets: found.packets,
        segments: found.segments,
        bytes: found.bytes,
        seen: counts[SEEN],
        marked: counts[MARKED],
        starts: counts[STARTS],
        left_untouched: left,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that has namespaces of its own.
    const INSIDE: &str = "WATERFILL_TEST_INSIDE";

    fn options() -> Options {
        Options {
            device: "wf0".into(),
            rate_bps: 100_000_000,
            target: 0.94,
            overhead_bytes: 0,
            dt_p: Duration::from_millis(1),
            t_0: Duration::from_millis(130),
            x_max_bps: 1_000_000_000_000_000,
            t: Duration::from_millis(400),
            promise: false,
            virtual_queue: false,
            shape: None,
        }
    }

    /// What `tc` and `ip` say, or do.
    fn shell(script: &str) -> String {
        let output = Command::new("sh").args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs the test of this name again in a network namespace of its own, with a device `wf0`; true inside.
    fn inside(test: &str) -> bool {
        if std::env::var_os(INSIDE).is_some() {
            shell("ip link add wf0 type veth peer name wf1; ip link set wf0 up; ip link set wf1 up");
            return true;
        }
        if fs::metadata("/proc/self").map_or(true, |me| me.uid() != 0) {
            eprintln!("skipped: needs root");
            return false;
        }
        let this = std::env::current_exe().unwrap();
        let name = format!("daemon::router::tests::{test}");
        let output = Command::new("timeout")
            .args(["50", "unshare", "-n"])
            .arg(this)
            .args(["--exact", &name, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        false
    }

    fn state() -> String {
        shell(
            "tc qdisc show; tc filter show dev wf0 egress; tc filter show dev wf0 ingress; bpftool net show 2>/dev/null || true",
        )
    }

    #[test]
    fn a_kernel_without_tcx_has_a_filter_instead() {
        if !inside("a_kernel_without_tcx_has_a_filter_instead") {
            return;
        }
        let before = state();
        let mut router = Router::load(&Pins::none()).unwrap();
        router.attach_by(&options(), Hook::Filter).unwrap();
        assert!(state().contains("clsact") && !router.links.contains_key(&if_nametoindex("wf0").unwrap()));
        shell("ip address add 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0");
        std::net::UdpSocket::bind("10.9.0.1:0").unwrap().send_to(&[0; 72], "10.9.0.2:9").unwrap();
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert!(link.packets > 0 && link.bytes >= 100, "{link:?}");
        // Again: the same filter, other values.
        router.attach_by(&Options { rate_bps: 1_000_000, ..options() }, Hook::Filter).unwrap();
        assert_eq!(shell("tc filter show dev wf0 egress").matches("handle 0x5746").count(), 1);
        assert_eq!(router.links().unwrap()[0].rate_bps, 1_000_000);
        drop(router);
        assert_eq!(state(), before);
    }

    #[test]
    fn a_clsact_of_somebody_stays() {
        if !inside("a_clsact_of_somebody_stays") {
            return;
        }
        shell("tc qdisc add dev wf0 clsact");
        let before = state();
        let mut router = Router::load(&Pins::none()).unwrap();
        router.attach_by(&options(), Hook::Filter).unwrap();
        assert_ne!(state(), before);
        drop(router);
        assert_eq!(state(), before);
    }

    #[test]
    fn a_clsact_of_ours_stays_while_somebody_uses_it() {
        if !inside("a_clsact_of_ours_stays_while_somebody_uses_it") {
            return;
        }
        let mut router = Router::load(&Pins::none()).unwrap();
        router.attach_by(&options(), Hook::Filter).unwrap();
        shell("tc filter add dev wf0 ingress bpf bytecode '1,6 0 0 0'");
        drop(router);
        assert!(shell("tc filter show dev wf0 ingress").contains("bytecode"));
        assert_eq!(shell("tc filter show dev wf0 egress"), "");
    }

    #[test]
    fn ip_bytes_are_counted_with_ethernet_and_without() {
        if !inside("ip_bytes_are_counted_with_ethernet_and_without") {
            return;
        }
        shell(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
             ip address add 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0
             ip tuntap add wft mode tun; ip address add 10.8.0.1/24 dev wft; ip link set wft up",
        );
        let mut router = Router::load(&Pins::none()).unwrap();
        router.attach(&options()).unwrap();
        router.attach(&Options { device: "wft".into(), ..options() }).unwrap();
        let bytes = |device: &str| router.links().unwrap().into_iter().find(|l| l.device == device).unwrap().bytes;
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        for (device, to) in [("wf0", "10.9.0.2:9"), ("wft", "10.8.0.2:9")] {
            let before = bytes(device);
            socket.send_to(&[0; 72], to).unwrap();
            assert_eq!(bytes(device) - before, 100, "{device}: headers of IP and UDP and nothing else");
        }
    }

    #[test]
    fn a_queue_is_read_where_it_is_one_number() {
        if !inside("a_queue_is_read_where_it_is_one_number") {
            return;
        }
        let mut router = Router::load(&Pins::none()).unwrap();
        shell(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
             ip address add 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0",
        );
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
        // As good as stopped, so that what is sent waits: 972 IP bytes each.
        for (qdisc, real) in [
            ("tbf rate 8bit burst 1600 limit 100000", true),
            ("tbf rate 8bit burst 1600 limit 100000 stab", true),
            ("pfifo_fast", false),
        ] {
            let (qdisc, stab) =
                qdisc.strip_suffix("stab").map_or((qdisc, ""), |q| (q, "stab overhead -14 linklayer ethernet"));
            shell(&format!("tc qdisc replace dev wf0 root handle 9: {stab} {qdisc}"));
            router.attach(&options()).unwrap();
            for _ in 0..12 {
                socket.send_to(&[0; 944], "10.9.0.2:9").unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
            let link = &router.links().unwrap()[0];
            assert_eq!(link.queue_bytes.is_some(), real, "{qdisc}: {link:?}");
            assert_eq!(link.virtual_queue_bytes.is_some(), !real);
            if let Some(bytes) = link.queue_bytes {
                // The first one or two pass; the last one came after the last look.
                assert!(bytes % 972 == 0 && (9 * 972..=11 * 972).contains(&bytes), "{qdisc} {stab}: {bytes}");
            }
            router.attach(&Options { virtual_queue: true, ..options() }).unwrap();
            socket.send_to(&[0; 944], "10.9.0.2:9").unwrap();
            assert_eq!(router.links().unwrap()[0].queue_bytes, None);
            shell("tc qdisc del dev wf0 root");
        }
    }

    #[test]
    fn devices_of_other_kinds_are_refused() {
        assert!(header_bytes("lo").is_ok_and(|bytes| bytes == 14));
    }
}
