//! `waterfilld csig`: CSIG's tags at the devices of a domain (`bpf/csig.bpf.c`).
//!
//! The programs read link prices from the maps of MaxNet's router, which has to be pinned and loaded first. They are pinned
//! in a folder of their own, `csig`, and a new start replaces them without a gap.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, ErrorKind, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore as _, MapFlags, OpenMapMut, ProgramMut};
use nix::net::if_::if_nametoindex;
use nix::sys::signal::{SigSet, Signal as Unix};
use serde::Serialize;

use super::cli::{CsigCommand, CsigFormat as Format, CsigSignal as Signal};
use super::error::user_error;
use super::interface::{Bytes as _, CsigBands, CsigCounts, CsigDevice, CsigFormat, CsigRole, CsigType};
use super::pins::Pins;
use super::privileges;
use super::quantity;
use super::router::{self, hook};
use super::skeleton::csig::{CsigSkel, CsigSkelBuilder};

/// The folder of pins.
const FOLDER: &str = "csig";
/// Maps of the router that the programs read.
const ROUTER_MAPS: [&str; 3] = ["links", "slots", "cpus"];
/// Units of a price on the wire.
const PRICE_UNITS_PER_S: f64 = 262_144.0;
/// Bands of the wide tag.
const WIDE_BANDS: f64 = 1_048_576.0;
/// Defaults of MaxNet's demand function.
const T_S: f64 = 0.4;
const X_MAX_BPS: u64 = 1_000_000_000_000_000;
/// Ethernet's header and a VLAN tag, which every device of an MTU can send.
const FRAME_BYTES: u32 = 14;
const VLAN_BYTES: u32 = 4;

/// Runs the command.
pub(super) fn run(command: &CsigCommand) -> Result<()> {
    privileges::check()?;
    if command.off {
        let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
        if !unload(&pins)? {
            tracing::info!("csig is not loaded; {}", pins.describe());
        }
        return Ok(());
    }
    let setups = setups(command)?;
    // Threads inherit the mask, so it is set before the first one: then only the waiting thread gets these signals.
    let mut signals = SigSet::empty();
    for signal in [Unix::SIGTERM, Unix::SIGINT, Unix::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().context("cannot block signals")?;
    let pins = if command.life.no_pin { Pins::none() } else { Pins::open(command.pins.pins.clone())? };
    let loaded = Csig::load(&pins, &setups).inspect_err(|_| {
        if let Err(e) = unload(&pins) {
            tracing::warn!("{e:#}");
        }
    })?;
    tracing::info!("csig loaded; {}", pins.describe());
    if command.life.once {
        return Ok(());
    }
    if command.life.line {
        std::thread::spawn(move || {
            if let Ok(signal) = signals.wait() {
                tracing::info!("stopped by {signal}");
                std::process::exit(0);
            }
        });
        return loaded.answer_lines();
    }
    let signal = signals.wait().context("cannot wait for a signal")?;
    tracing::info!("stopped by {signal}");
    Ok(())
}

/// Takes the programs off their devices and removes the pins; false if there were none.
pub(super) fn unload(pins: &Pins) -> Result<bool> {
    let Some(folder) = pins.path(FOLDER) else { return Ok(false) };
    let entries = match fs::read_dir(&folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    for entry in entries {
        let path = entry?.path();
        if link_name(&path.file_name().unwrap_or_default().to_string_lossy()).is_some() {
            hook::detach_pinned(&path)?;
        }
    }
    fs::remove_dir(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    if let Some(root) = folder.parent() {
        let _ = fs::remove_dir(root); // unless a role has pins there
    }
    Ok(true)
}

/// Reads a link's file name, such as "out-7": its direction and device.
fn link_name(name: &str) -> Option<(&str, u32)> {
    let (direction, ifindex) = name.split_once('-')?;
    ["in", "out"].contains(&direction).then_some(())?;
    Some((direction, ifindex.parse().ok()?))
}

/// A device and its configuration for the programs.
struct Setup {
    device: String,
    ifindex: u32,
    role: CsigRole,
    config: CsigDevice,
}

/// Makes the configuration of each device.
fn setups(command: &CsigCommand) -> Result<Vec<Setup>> {
    let (compact, wide) = bands(command).map_err(user_error)?;
    let of = |role: CsigRole, devices: &[String]| {
        let one = |device: &String| {
            let ifindex = if_nametoindex(device.as_str())
                .map_err(|_| user_error(format!("device {device}: expected a network device of this namespace")))?;
            if router::link_header_bytes(device)? == 0 {
                bail!(user_error(format!(
                    "device {device}: expected one with Ethernet headers, as tags follow addresses"
                )));
            }
            let config = CsigDevice {
                role: role.0,
                format: match command.format {
                    Format::Compact => CsigFormat::CSIG_COMPACT.0,
                    Format::Wide => CsigFormat::CSIG_WIDE.0,
                },
                tpid_compact: command.tpid_compact.into(),
                tpid_wide: command.tpid_wide.into(),
                signal: signal_type(command.signal).0,
                locator: command.locator,
                max_frame: mtu(device)? + FRAME_BYTES + VLAN_BYTES,
                reserved: 0,
                compact,
                wide,
            };
            Ok(Setup { device: device.clone(), ifindex, role, config })
        };
        devices.iter().map(one).collect::<Result<Vec<_>>>()
    };
    let mut setups = of(CsigRole::CSIG_INSIDE, &command.inside)?;
    setups.extend(of(CsigRole::CSIG_EDGE, &command.edge)?);
    setups.extend(of(CsigRole::CSIG_END, &command.end)?);
    Ok(setups)
}

fn signal_type(signal: Signal) -> CsigType {
    match signal {
        Signal::Price => CsigType::CSIG_PRICE,
        Signal::Abw => CsigType::CSIG_ABW,
        Signal::Abwc => CsigType::CSIG_ABWC,
        Signal::Delay => CsigType::CSIG_DELAY,
        Signal::Nqd => CsigType::CSIG_NQD,
    }
}

/// Returns the bands of both tags in the signal's unit: 2⁻¹⁸ s, bit/s, 10⁻⁶ or ns.
///
/// The compact tag's are of one width between the ends. The wide tag's begin at 0 and have the smallest width, a power of
/// two, with which they reach the last end: prices of up to 32 s in steps of 2⁻¹⁵ s.
fn bands(command: &CsigCommand) -> Result<(CsigBands, CsigBands), String> {
    let (mut from, mut to) = command.range()?;
    if command.signal == Signal::Price {
        let t_s = command.t.as_deref().map_or(Ok(T_S), |text| quantity::time(text).map(|t| t.as_secs_f64()))?;
        let x_max = command.x_max.as_deref().map_or(Ok(X_MAX_BPS), quantity::rate)? as f64;
        if to > x_max {
            return Err(format!("--to: expected at most --x-max, {}", quantity::show_rate(x_max as u64)));
        }
        let price = |bps: f64| t_s * (x_max / bps).ln() * PRICE_UNITS_PER_S;
        (from, to) = (price(to), price(from)); // the fastest rate has the lowest price
    }
    let mut compact = CsigBands { end: to.round() as u64, count: 32, ..CsigBands::default() };
    for (i, lower) in compact.lower.iter_mut().enumerate() {
        *lower = (from + (to - from) * i as f64 / 32.0).round() as u64;
    }
    let reach = if command.signal == Signal::Price { 32.0 * PRICE_UNITS_PER_S } else { to };
    let step_log = (reach / WIDE_BANDS).log2().ceil().max(0.0) as u32;
    Ok((compact, CsigBands { step_log, ..CsigBands::default() }))
}

fn mtu(device: &str) -> Result<u32> {
    let path = format!("/sys/class/net/{device}/mtu");
    // Another namespace's /sys may be mounted here: then the limit is the usual one.
    let text = fs::read_to_string(&path).unwrap_or_default();
    if let Ok(mtu) = text.trim().parse() {
        return Ok(mtu);
    }
    let out = std::process::Command::new("ip").args(["-j", "link", "show", "dev", device]).output().context("ip")?;
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).context("cannot read the device's MTU")?;
    document[0]["mtu"].as_u64().map(|mtu| mtu as u32).with_context(|| format!("device {device} has no MTU"))
}

/// The loaded programs.
struct Csig {
    skeleton: Box<CsigSkel<'static>>,
    devices: BTreeMap<String, (u32, CsigRole)>,
    /// Keep the programs attached that are not pinned.
    links: Vec<Link>,
}

/// What was done at a device, since it was configured.
#[derive(Debug, Serialize)]
struct Line<'a> {
    device: &'a str,
    role: &'static str,
    pushed: u64,
    replaced: u64,
    popped: u64,
    stripped: u64,
    stored: u64,
    too_long: u64,
    other: u64,
    failed: u64,
}

impl Csig {
    fn load(pins: &Pins, setups: &[Setup]) -> Result<Self> {
        // The programs stay loaded as long as the process runs.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = CsigSkelBuilder::default().open(storage).context("cannot read CSIG's programs")?;
        let maps = &mut open.maps;
        let mut found = 0;
        for (name, map) in ROUTER_MAPS.into_iter().zip([&mut maps.links, &mut maps.slots, &mut maps.cpus]) {
            found += usize::from(share(map, router_map(pins, name))?);
        }
        if found < ROUTER_MAPS.len() {
            tracing::warn!(
                "MaxNet's router is not loaded, or not pinned here: tags carry only what other hops write; \
                 start waterfilld router first, then csig again"
            );
        }
        let skeleton = Box::new(open.load().context("the kernel refused CSIG's programs")?);
        let mut loaded = Self { skeleton, devices: BTreeMap::new(), links: Vec::new() };
        let cpus = libbpf_rs::num_possible_cpus()?;
        for setup in setups {
            let key = setup.ifindex.to_ne_bytes();
            let zero = vec![0; size_of::<CsigCounts>()];
            loaded.skeleton.maps.csig_counters.update_percpu(&key, &vec![zero; cpus], MapFlags::ANY)?;
            loaded.skeleton.maps.csig_devices.update(&key, setup.config.as_bytes(), MapFlags::ANY)?;
            loaded.devices.insert(setup.device.clone(), (setup.ifindex, setup.role));
        }
        let folder = pins.path(FOLDER);
        if let Some(folder) = &folder {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.with_context(|| format!("cannot make {}", folder.display()))?;
        }
        for setup in setups {
            // Ingress first: a neighbour may tag frames already.
            let (first, last) = (&loaded.skeleton.progs.waterfill_csig_in, &loaded.skeleton.progs.waterfill_csig_out);
            let context = || format!("device {}", setup.device);
            let path = |direction: &str| folder.as_ref().map(|f| f.join(format!("{direction}-{}", setup.ifindex)));
            let one = attach(first, setup.ifindex, path("in"), hook::attach).with_context(context)?;
            let two = attach(last, setup.ifindex, path("out"), hook::attach_last).with_context(context)?;
            loaded.links.extend([one, two]);
        }
        // Devices of an earlier start that this one does not name.
        for entry in folder.iter().flat_map(fs::read_dir).flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((_, ifindex)) = link_name(&name) else { continue };
            if !setups.iter().any(|setup| setup.ifindex == ifindex) {
                hook::detach_pinned(&entry.path())?;
            }
        }
        Ok(loaded)
    }

    /// Returns the counters of all devices.
    fn lines(&self) -> Result<Vec<Line<'_>>> {
        let mut lines = Vec::new();
        for (device, (ifindex, role)) in &self.devices {
            let found = self.skeleton.maps.csig_counters.lookup_percpu(&ifindex.to_ne_bytes(), MapFlags::ANY)?;
            let cpus: Vec<_> = found.iter().flatten().filter_map(|bytes| CsigCounts::from_prefix(bytes)).collect();
            let sum = |of: fn(&CsigCounts) -> u64| cpus.iter().map(of).sum();
            lines.push(Line {
                device,
                role: match *role {
                    CsigRole::CSIG_INSIDE => "inside",
                    CsigRole::CSIG_EDGE => "edge",
                    _ => "end",
                },
                pushed: sum(|c| c.pushed),
                replaced: sum(|c| c.replaced),
                popped: sum(|c| c.popped),
                stripped: sum(|c| c.stripped),
                stored: sum(|c| c.stored),
                too_long: sum(|c| c.too_long),
                other: sum(|c| c.other),
                failed: sum(|c| c.failed),
            });
        }
        Ok(lines)
    }

    fn answer_lines(&self) -> Result<()> {
        let print = |text: &str| {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output")
        };
        print(r#"{"ready":true}"#)?;
        for line in io::stdin().lock().lines() {
            line.context("standard input")?;
            print(&serde_json::json!({ "csig": self.lines()? }).to_string())?;
        }
        Ok(())
    }
}

fn router_map(pins: &Pins, name: &str) -> Option<PathBuf> {
    pins.path(&format!("router/{name}")).filter(|path| path.exists())
}

/// Uses a pinned map instead of a new one; false if it is not pinned.
fn share(map: &mut OpenMapMut<'_>, path: Option<PathBuf>) -> Result<bool> {
    let Some(path) = path else { return Ok(false) };
    map.reuse_pinned_map(&path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(true)
}

/// Attaches a program, or puts it in the place of an earlier start's.
fn attach(
    program: &ProgramMut<'_>,
    ifindex: u32,
    path: Option<PathBuf>,
    attach: impl FnOnce(&ProgramMut<'_>, u32) -> Result<Option<Link>>,
) -> Result<Link> {
    if let Some(path) = path.as_ref().filter(|path| path.exists()) {
        let mut link = Link::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        if link.update_prog(program).is_ok() {
            return Ok(link);
        }
        hook::detach_pinned(path)?; // of a device that is gone
    }
    let Some(mut link) = attach(program, ifindex)? else {
        bail!(user_error("csig: expected a kernel with tcx (Linux 6.6)"));
    };
    if let Some(path) = path {
        link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
    }
    Ok(link)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use waterfill_laws::csig::{Bands, Format as Tags};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        command: CsigCommand,
    }

    fn bands_of(arguments: &str) -> Result<(CsigBands, CsigBands), String> {
        let words = ["csig", "--inside", "x"].into_iter().chain(arguments.split_whitespace());
        bands(&Line::try_parse_from(words).unwrap().command)
    }

    /// The bands as the codec of the simulator has them, which calls the kernel's functions.
    fn codec(of: &CsigBands) -> Bands {
        Bands { lower: of.lower, end: of.end, base: of.base, count: of.count, step_log: of.step_log }
    }

    #[test]
    fn a_price_in_a_wide_tag_keeps_20_of_its_23_bits() {
        let (_, wide) = bands_of("").unwrap();
        assert_eq!((wide.base, wide.step_log), (0, 3));
        let wide = codec(&wide);
        for price in (0..1_u64 << 23).step_by(1001) {
            let back = wide.value(Tags::Wide, wide.code(Tags::Wide, price));
            assert!(back.abs_diff(price) <= 4, "{price} {back}");
        }
    }

    #[test]
    fn a_price_in_a_compact_tag_is_within_half_a_band_of_its_rate() {
        let (compact, _) = bands_of("--format compact --from 1mbit --to 100mbit").unwrap();
        let compact = codec(&compact);
        // 2^-18 s per unit, T = 0.4 s: half of one of 32 bands over a hundredfold.
        let half = 100_f64.ln() / 32.0 / 2.0;
        for i in 0..=1000 {
            let rate = 1e6 * 100_f64.powf(f64::from(i) / 1000.0);
            let price = (0.4 * (1e15 / rate).ln() * 262_144.0).round() as u64;
            let code = compact.code(Tags::Compact, price);
            let back = 1e15 * (-(compact.value(Tags::Compact, code) as f64) / 262_144.0 / 0.4).exp();
            assert!((back / rate).ln().abs() <= half * 1.001, "{rate} {back}");
        }
    }

    #[test]
    fn other_signals_have_their_units() {
        let (compact, wide) = bands_of("--signal abw --to 10gbit").unwrap();
        assert_eq!((compact.lower[0], compact.lower[16], compact.end), (0, 5_000_000_000, 10_000_000_000));
        assert_eq!(wide.step_log, 14, "2^20 steps of 2^14 bit/s are 17 Gbit/s, of 2^13 less than 10");
        let (compact, wide) = bands_of("--signal abwc").unwrap();
        assert_eq!((compact.end, wide.step_log), (1_000_000, 0));
        let (compact, _) = bands_of("--signal delay --to 1ms").unwrap();
        assert_eq!(compact.end, 1_000_000);
        assert!(bands_of("--x-max 1gbit --to 2gbit").unwrap_err().contains("--x-max"));
    }

    #[test]
    fn only_links_are_detached() {
        assert_eq!(link_name("in-7"), Some(("in", 7)));
        assert_eq!(link_name("out-12"), Some(("out", 12)));
        assert_eq!(link_name("slots"), None);
        assert_eq!(link_name("in-x"), None);
    }
}
