//! `--scone`: writes the link's fair rate as throughput advice into SCONE packets (`bpf/scone.bpf.c`).
//!
//! A program of its own, behind the router's at the same hook, where the router has just brought the link up to date. It
//! reads the law's signal from the router's map of links. It needs tcx (Linux 6.6). Its link and its map are pinned with
//! the router's. A start begins with new counters.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, Map, MapCore as _, MapFlags, MapHandle};
use serde::Serialize;
use waterfill_laws::scone::{Advice, UNKNOWN, fixed_rate};

use crate::daemon::kernel::hook;
use crate::daemon::kernel::interface::{Bytes as _, SconeLink, SconeRule};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::pins::Pins;
use crate::daemon::kernel::skeleton::scone::{SconeSkel, SconeSkelBuilder};
use crate::daemon::options::error::user_error;
use crate::daemon::options::quantity;

/// Name of the programs in the kernel, truncated to 15 bytes. The programs are meant to run behind the router's
/// program.
pub(crate) const PROGRAM: &str = "waterfill_scone";

/// Returns the rule for computing the fair rate from a law's first signal, or `None` if the signal does not determine
/// the fair rate.
fn rule(law: &LoadableLaw) -> Option<(SconeRule, u32)> {
    match law.name {
        "maxnet" | "maxnet2006" => Some((SconeRule::SCONE_DEMAND, 0)),
        "rcp" => Some((SconeRule::SCONE_RATE, 10)),
        "jetmax" => Some((SconeRule::SCONE_RATE, 0)),
        _ => None,
    }
}

/// Checks that the law's routers know the fair rate of a flow.
pub(crate) fn check_law(law: &LoadableLaw) -> Result<(), String> {
    let name = law.name;
    rule(law).map(drop).ok_or_else(|| {
        format!("routers of {name} do not know a flow's fair rate; use maxnet, maxnet2006, rcp or jetmax")
    })
}

/// Returns the advice settings for a link of this law.
fn advice(law: &LoadableLaw, parameters: &[u8]) -> Result<SconeLink> {
    let Some((rule, shift)) = rule(law) else { bail!("{} has no fair rate", law.name) };
    let mut link = SconeLink::default();
    (link.advice.rule, link.advice.shift) = (rule.0, shift);
    if rule == SconeRule::SCONE_DEMAND {
        link.advice.x_max = law.raw(parameters, "x_max").context("the law has no x_max")?;
        link.advice.t = u32::try_from(law.raw(parameters, "t").context("the law has no t")?)?;
    }
    Ok(link)
}

/// Packet counts of the SCONE element on a link, and its current advice.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(crate) struct SconeStatus {
    /// Rate signal from 0 to 126, or `None` without advice.
    pub(crate) signal: Option<u8>,
    /// Rate of the advice in bit/s, or `None` without advice.
    pub(crate) advice_bps: Option<u64>,
    pub(crate) seen: u64,
    pub(crate) lowered: u64,
    /// Number of packets that kept a higher signal because their flow had reached the limit of writes per monitoring
    /// period.
    pub(crate) held: u64,
    pub(crate) malformed: u64,
    pub(crate) no_memory: u64,
}

impl SconeStatus {
    fn of(link: &SconeLink, law_signal: u64) -> Self {
        let raw = link.advice;
        let advice = Advice { x_max: raw.x_max, t: raw.t, rule: raw.rule, shift: raw.shift, ..Advice::default() };
        let signal = advice.signal(law_signal);
        let signal = (signal < UNKNOWN).then_some(signal);
        let SconeLink { seen, lowered, held, malformed, no_memory, .. } = *link;
        Self { signal, advice_bps: signal.map(fixed_rate), seen, lowered, held, malformed, no_memory }
    }
}

impl fmt::Display for SconeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.advice_bps.map_or_else(|| "none".to_owned(), quantity::show_rate);
        let Self { seen, lowered, held, malformed, .. } = self;
        write!(f, "SCONE: advice {advice}; {seen} packets seen, {lowered} lowered, {held} held, {malformed} malformed")
    }
}

/// The loaded SCONE programs, with their links.
pub(crate) struct Scone {
    skeleton: Box<SconeSkel<'static>>,
    links: BTreeMap<u32, Link>,
}

impl fmt::Debug for Scone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scone").field("links", &self.links.keys()).finish_non_exhaustive()
    }
}

impl Scone {
    /// Loads the programs with the router's map of links.
    fn load(links: &Map<'_>, pins: &Pins) -> Result<Self> {
        // The programs stay loaded as long as the process runs.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = SconeSkelBuilder::default().open(storage).context("cannot read the SCONE programs")?;
        open.maps.links.reuse_fd(links.as_fd()).context("cannot share the map of links")?;
        let mut skeleton = Box::new(open.load().context("the kernel refused the SCONE programs")?);
        if let Some(path) = map_path(pins) {
            if path.exists() {
                fs::remove_file(&path)?;
            }
            skeleton.maps.scone_links.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        Ok(Self { skeleton, links: BTreeMap::new() })
    }

    /// Closes the link of a device. The caller detaches the link by its pin.
    pub(crate) fn forget(&mut self, ifindex: u32) {
        self.links.remove(&ifindex);
    }

    /// Changes the advice settings of a device to which the element is attached.
    pub(crate) fn change(&self, law: &LoadableLaw, parameters: &[u8], ifindex: u32) -> Result<()> {
        self.set(&advice(law, parameters)?, ifindex)
    }

    /// Writes the advice settings of a device. Its counters continue.
    fn set(&self, link: &SconeLink, ifindex: u32) -> Result<()> {
        let key = ifindex.to_ne_bytes();
        let map = &self.skeleton.maps.scone_links;
        let known = map.lookup(&key, MapFlags::ANY)?.and_then(|value| SconeLink::from_prefix(&value));
        let counted = known.unwrap_or_default();
        map.update(&key, SconeLink { advice: link.advice, ..counted }.as_bytes(), MapFlags::ANY)?;
        Ok(())
    }

    fn attach(&mut self, pins: &Pins, link: &SconeLink, ifindex: u32, header_bytes: u32) -> Result<()> {
        self.set(link, ifindex)?;
        // Of an earlier process, or of a device that had this index.
        self.links.remove(&ifindex);
        detach(pins, ifindex)?;
        let programs = &self.skeleton.progs;
        let program = if header_bytes == 0 { &programs.waterfill_scone_ip } else { &programs.waterfill_scone };
        let Some(mut link) = hook::attach_last(program, ifindex)? else {
            bail!(user_error("--scone: this kernel has no tcx; use Linux 6.6 or newer"));
        };
        if let Some(path) = link_path(pins, ifindex) {
            link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        self.links.insert(ifindex, link);
        Ok(())
    }
}

/// Attaches the element to a device, or detaches it if `parameters` is `None`. The router, whose map is `links`, must
/// be attached already.
pub(crate) fn apply(
    loaded: &mut Option<Scone>,
    links: &Map<'_>,
    pins: &Pins,
    law: &LoadableLaw,
    parameters: Option<&[u8]>,
    ifindex: u32,
    header_bytes: u32,
) -> Result<()> {
    let Some(parameters) = parameters else {
        if let Some(scone) = loaded {
            scone.links.remove(&ifindex);
        }
        return detach(pins, ifindex);
    };
    let link = advice(law, parameters)?;
    let scone = match loaded {
        Some(scone) => scone,
        none => none.insert(Scone::load(links, pins)?),
    };
    scone.attach(pins, &link, ifindex, header_bytes)
}

/// Detaches a pinned element from a device.
pub(crate) fn detach(pins: &Pins, ifindex: u32) -> Result<()> {
    match link_path(pins, ifindex).filter(|path| path.exists()) {
        Some(path) => hook::detach_pinned(&path),
        None => Ok(()),
    }
}

/// Returns a device's element counts and its advice at the law's signal, or `None` without an element. `loaded` is the
/// program of this process.
pub(crate) fn status(
    loaded: Option<&Scone>,
    pins: &Pins,
    ifindex: u32,
    law_signal: u64,
) -> Result<Option<SconeStatus>> {
    let map = match (loaded, map_path(pins).filter(|path| path.exists())) {
        (Some(scone), _) if scone.links.contains_key(&ifindex) => {
            MapHandle::try_from(&scone.skeleton.maps.scone_links)?
        }
        (None, Some(path)) if link_path(pins, ifindex).is_some_and(|path| path.exists()) => {
            MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?
        }
        _ => return Ok(None),
    };
    let Some(value) = map.lookup(&ifindex.to_ne_bytes(), MapFlags::ANY)? else { return Ok(None) };
    ensure!(
        value.len() == size_of::<SconeLink>(),
        "the pinned map of --scone is from another version: restart the daemon"
    );
    Ok(SconeLink::from_prefix(&value).map(|link| SconeStatus::of(&link, law_signal)))
}

fn map_path(pins: &Pins) -> Option<PathBuf> {
    pins.path("router/scone")
}

fn link_path(pins: &Pins, ifindex: u32) -> Option<PathBuf> {
    pins.path(&format!("router/scone-{ifindex}"))
}
