//! `--cohabit`: drops or marks TCP packets so that explicit flows keep their fair share (`bpf/cohabit.bpf.c`).
//!
//! A program of its own, in front of the router's at the same hook: the explicit laws neither see nor count what it
//! drops. It needs tcx (Linux 6.6). Its link and its map are pinned with the router's. A start begins with a new map, as
//! the module measures everything that it needs within seconds.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};
#[cfg(test)]
use libbpf_rs::{ProgramInput, ProgramOutput};
use serde::Serialize;

use super::{LinkSetup, shaper};
use crate::daemon::kernel::hook;
use crate::daemon::kernel::interface::{
    Bytes as _, CohabitController as KernelController, CohabitSetup, CohabitState, CohabitUpdate,
};
use crate::daemon::kernel::pins::Pins;
use crate::daemon::kernel::skeleton::cohabit::{CohabitSkel, CohabitSkelBuilder};
use crate::daemon::options::error::user_error;
use crate::daemon::options::names::unknown;
use crate::daemon::options::{CohabitController, quantity};

/// Offset of the module's state in a map value, behind the lock and a word that only the program uses.
const STATE: usize = 8;
/// Fixed-point scale of the kernel's fractions. [`LOG_SCALE`] is the scale of its logarithms.
const FRACTION: f64 = (1_u64 << 32) as f64;
const LOG_SCALE: f64 = (1_u64 << 34) as f64;
/// Name of the program in the kernel, truncated to 15 bytes. The program is meant to run before the router's program.
pub(super) const PROGRAM: &str = "waterfill_cohab";
const MILLISECOND: Duration = Duration::from_millis(1);

/// Parameters of the module, with the names and defaults of a scenario's `queue_params`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CohabitParams {
    pub(crate) controller: CohabitController,
    pub(crate) interval: Duration,
    pub(crate) period: Duration,
    pub(crate) explicit_weight: f64,
    pub(crate) ecn: bool,
    pub(crate) aim: f64,
    pub(crate) integral: f64,
    pub(crate) proportional: f64,
    pub(crate) depth: Duration,
    pub(crate) initial: f64,
    pub(crate) decrease: f64,
    pub(crate) increase: f64,
    pub(crate) threshold: f64,
    pub(crate) update: Update,
}

/// Event at which the controller of xcp-tcp-2008 applies its factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Interval,
    Packet,
    ExplicitPacket,
    TcpPacket,
}

impl CohabitParams {
    /// Returns the default parameters of a controller.
    fn new(controller: CohabitController) -> Self {
        Self {
            controller,
            interval: Duration::from_millis(100),
            period: Duration::from_secs(2),
            explicit_weight: 1.0,
            ecn: controller == CohabitController::Improved,
            aim: 0.9,
            integral: 0.5,
            proportional: 1.0,
            depth: Duration::from_millis(300),
            initial: 0.001,
            decrease: 0.9999,
            increase: 1.0001,
            threshold: 0.97,
            update: Update::Interval,
        }
    }

    /// Returns a controller's default parameters, overridden by the given parameters. An error has the name, the value
    /// and the problem.
    pub(crate) fn with(
        controller: CohabitController,
        given: &[(String, String)],
    ) -> Result<Self, (&str, &str, String)> {
        let mut params = Self::new(controller);
        for (name, value) in given {
            params.set(name, value).map_err(|why| (name.as_str(), value.as_str(), why))?;
        }
        Ok(params)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        const IMPROVED: [&str; 8] =
            ["interval", "period", "explicit_weight", "ecn", "aim", "integral", "proportional", "depth"];
        const PAPER: [&str; 9] =
            ["interval", "period", "explicit_weight", "ecn", "initial", "decrease", "increase", "threshold", "update"];
        match name {
            "interval" => self.interval = span(value, MILLISECOND, Duration::from_secs(1))?,
            "period" => self.period = span(value, Duration::from_millis(10), Duration::from_secs(100))?,
            "explicit_weight" => self.explicit_weight = within(value, 0.001..=64.0)?,
            "ecn" => self.ecn = value.parse().map_err(|_| "must be true or false".to_owned())?,
            _ => match (self.controller, name) {
                (CohabitController::Improved, "aim") => self.aim = within(value, 0.001..=1.0)?,
                (CohabitController::Improved, "integral") => self.integral = within(value, 0.001..=100.0)?,
                (CohabitController::Improved, "proportional") => self.proportional = within(value, 0.0..=100.0)?,
                (CohabitController::Improved, "depth") => {
                    self.depth = span(value, MILLISECOND, Duration::from_secs(10))?;
                }
                (CohabitController::Paper, "initial") => self.initial = within(value, 1e-9..=1.0)?,
                (CohabitController::Paper, "decrease") => self.decrease = within(value, 0.5..=0.999_999_999)?,
                (CohabitController::Paper, "increase") => self.increase = within(value, 1.000_000_001..=2.0)?,
                (CohabitController::Paper, "threshold") => self.threshold = within(value, 0.001..=1.0)?,
                (CohabitController::Paper, "update") => {
                    self.update = match value {
                        "interval" => Update::Interval,
                        "packet" => Update::Packet,
                        "explicit-packet" => Update::ExplicitPacket,
                        "tcp-packet" => Update::TcpPacket,
                        _ => return Err("must be interval, packet, explicit-packet or tcp-packet".into()),
                    }
                }
                (CohabitController::Improved, _) => return Err(unknown("parameter", name, IMPROVED)),
                (CohabitController::Paper, _) => return Err(unknown("parameter", name, PAPER)),
            },
        }
        Ok(())
    }

    /// Converts the parameters to the kernel program's setup.
    fn setup(&self, link: &LinkSetup, header_bytes: u32) -> Result<CohabitSetup> {
        let millionths = |x: f64| (x * 1e6).round() as u32;
        let thousandths = |x: f64| (x * 1e3).round() as u32;
        let micros = |t: Duration| u32::try_from(t.as_micros()).unwrap_or(u32::MAX);
        let log = |x: f64| (x.ln().abs() * LOG_SCALE).round() as u64;
        let mut salt = [0; 8];
        getrandom(&mut salt)?;
        let mut setup = CohabitSetup {
            salt: u64::from_ne_bytes(salt),
            overhead_bytes: link.options.overhead.0,
            header_bytes,
            ..CohabitSetup::default()
        };
        let params = &mut setup.params;
        params.capacity = link.rate_bps();
        // Without a target, the law's own is not known here: all of the rate may be used.
        params.target = millionths(link.target.unwrap_or(1.0));
        params.interval = micros(self.interval);
        params.period = micros(self.period);
        params.controller = match self.controller {
            CohabitController::Paper => KernelController::COHABIT_PAPER,
            CohabitController::Improved => KernelController::COHABIT_IMPROVED,
        }
        .0;
        params.weight = thousandths(self.explicit_weight);
        params.ecn = self.ecn.into();
        (params.initial_log, params.decrease_log, params.increase_log) =
            (log(self.initial), log(self.decrease), log(self.increase));
        params.threshold = millionths(self.threshold);
        params.update = match self.update {
            Update::Interval => CohabitUpdate::COHABIT_PER_INTERVAL,
            Update::Packet => CohabitUpdate::COHABIT_PER_PACKET,
            Update::ExplicitPacket => CohabitUpdate::COHABIT_PER_EXPLICIT_PACKET,
            Update::TcpPacket => CohabitUpdate::COHABIT_PER_TCP_PACKET,
        }
        .0;
        params.aim = millionths(self.aim);
        params.integral = thousandths(self.integral);
        params.proportional = thousandths(self.proportional);
        params.depth = micros(self.depth);
        if link.options.separate {
            (setup.explicit_queue, setup.other_queue) = shaper::QUEUES;
            params.controller = KernelController::COHABIT_OFF.0;
            // The classes divide all of the link; a law's headroom is of its own class's part.
            params.target = 1_000_000;
        }
        Ok(setup)
    }
}

fn within(text: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x| range.contains(x));
    number.ok_or_else(|| format!("must be a number from {} to {}", range.start(), range.end()))
}

fn span(text: &str, min: Duration, max: Duration) -> Result<Duration, String> {
    let time = quantity::time(text)?;
    let fits = (min..=max).contains(&time) && time.subsec_nanos() % 1000 == 0;
    fits.then_some(time).ok_or_else(|| format!("must be a time from {min:?} to {max:?}, in whole microseconds"))
}

fn getrandom(into: &mut [u8]) -> Result<()> {
    use std::io::Read as _;
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(into)).context("cannot read random bytes")
}

/// Counts and measurements of the cohabitation module on a link.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub(crate) struct CohabitStatus {
    pub(crate) drop_probability: f64,
    pub(crate) explicit_flows: u32,
    pub(crate) tcp_flows: u32,
    /// Admitted rate of explicit flows in the last control interval, in bit/s.
    pub(crate) explicit_bps: u64,
    pub(crate) tcp_bps: u64,
    /// Rate of traffic without congestion control, in bit/s. The two classes share the rest of the usable capacity.
    pub(crate) other_bps: u64,
    pub(crate) explicit_share_bps: u64,
    /// Fair share of TCP in bit/s, including the rate that explicit flows lend to it.
    pub(crate) tcp_share_bps: u64,
    /// Number of TCP packets dropped since the module was attached.
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
}

impl CohabitStatus {
    fn of(state: &CohabitState) -> Self {
        let link = &state.link;
        let flows = |class: usize| link.flows_now[class].max(link.flows_last[class]);
        Self {
            drop_probability: link.probability as f64 / FRACTION,
            explicit_flows: flows(0),
            tcp_flows: flows(1),
            explicit_bps: link.rates[0],
            tcp_bps: link.rates[1],
            other_bps: link.rates[2],
            explicit_share_bps: link.explicit_share,
            tcp_share_bps: link.share.max(link.usable - link.explicit_share),
            dropped: link.before.dropped,
            marked: link.before.marked,
        }
    }
}

impl fmt::Display for CohabitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { explicit_flows, tcp_flows, explicit_bps, tcp_bps, .. } = *self;
        let rate = quantity::show_rate;
        write!(
            f,
            "cohabitation: {explicit_flows} explicit flows send {} of {}, {tcp_flows} TCP flows {} of {}; \
             p = {:.2e}, {} dropped, {} marked",
            rate(explicit_bps),
            rate(self.explicit_share_bps),
            rate(tcp_bps),
            rate(self.tcp_share_bps),
            self.drop_probability,
            self.dropped,
            self.marked
        )
    }
}

/// The loaded cohabitation program, with its links.
pub(super) struct Cohabit {
    skeleton: Box<CohabitSkel<'static>>,
    links: BTreeMap<u32, Link>,
}

impl fmt::Debug for Cohabit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cohabit").field("links", &self.links.keys()).finish_non_exhaustive()
    }
}

impl Cohabit {
    #[cfg(test)]
    pub(super) fn test_run<'a>(&self, input: ProgramInput<'a>) -> Result<ProgramOutput<'a>> {
        Ok(self.skeleton.progs.waterfill_cohabit.test_run(input)?)
    }

    fn load(pins: &Pins) -> Result<Self> {
        // The program stays loaded as long as the process runs.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = CohabitSkelBuilder::default().open(storage).context("cannot read the cohabitation program")?;
        let mut skeleton = Box::new(open.load().context("the kernel refused the cohabitation program")?);
        if let Some(path) = map_path(pins) {
            if path.exists() {
                fs::remove_file(&path)?;
            }
            skeleton.maps.cohabit_modules.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        Ok(Self { skeleton, links: BTreeMap::new() })
    }

    /// Closes the link of a device. The caller detaches the link by its pin.
    pub(super) fn forget(&mut self, ifindex: u32) {
        self.links.remove(&ifindex);
    }

    fn attach(
        &mut self,
        pins: &Pins,
        link: &LinkSetup,
        params: &CohabitParams,
        ifindex: u32,
        header: u32,
    ) -> Result<()> {
        let key = ifindex.to_ne_bytes();
        let maps = &self.skeleton.maps;
        let sums = vec![0; maps.cohabit_cpus.value_size() as usize];
        let cpus = libbpf_rs::num_possible_cpus()?;
        maps.cohabit_cpus.update_percpu(&key, &vec![sums; cpus], MapFlags::ANY)?;
        let mut value = vec![0; maps.cohabit_modules.value_size() as usize];
        let state = CohabitState { setup: params.setup(link, header)?, ..CohabitState::default() };
        value[STATE..STATE + size_of::<CohabitState>()].copy_from_slice(state.as_bytes());
        maps.cohabit_modules.update(&key, &value, MapFlags::ANY)?;
        // Of an earlier process, or of a device that had this index.
        self.links.remove(&ifindex);
        detach(pins, ifindex)?;
        let Some(mut link) = hook::attach(&self.skeleton.progs.waterfill_cohabit, ifindex)? else {
            bail!(user_error("--cohabit: this kernel has no tcx; use Linux 6.6 or newer"));
        };
        if let Some(path) = link_path(pins, ifindex) {
            link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        self.links.insert(ifindex, link);
        Ok(())
    }
}

/// Attaches the module to a device or detaches it, as the link's setup requires. The router must be attached already.
pub(super) fn apply(
    loaded: &mut Option<Cohabit>,
    pins: &Pins,
    link: &LinkSetup,
    ifindex: u32,
    header_bytes: u32,
) -> Result<()> {
    let Some(params) = &link.cohabit else { return detach(pins, ifindex) };
    let cohabit = match loaded {
        Some(cohabit) => cohabit,
        none => none.insert(Cohabit::load(pins)?),
    };
    cohabit.attach(pins, link, params, ifindex, header_bytes)
}

/// Detaches a pinned module from a device.
pub(super) fn detach(pins: &Pins, ifindex: u32) -> Result<()> {
    match link_path(pins, ifindex).filter(|path| path.exists()) {
        Some(path) => hook::detach_pinned(&path),
        None => Ok(()),
    }
}

/// Returns the status of a device's module, or `None` if the device has none. `loaded` is the program of this process.
pub(super) fn status(loaded: Option<&Cohabit>, pins: &Pins, ifindex: u32) -> Result<Option<CohabitStatus>> {
    Ok(state(loaded, pins, ifindex)?.as_ref().map(CohabitStatus::of))
}

/// Returns the kernel state of a device's module, or `None` if the device has none. `loaded` is the program of this
/// process.
pub(super) fn state(loaded: Option<&Cohabit>, pins: &Pins, ifindex: u32) -> Result<Option<CohabitState>> {
    let map = match (loaded, map_path(pins).filter(|path| path.exists())) {
        (Some(cohabit), _) => MapHandle::try_from(&cohabit.skeleton.maps.cohabit_modules)?,
        (None, Some(path)) if link_path(pins, ifindex).is_some_and(|path| path.exists()) => {
            MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?
        }
        _ => return Ok(None),
    };
    let Some(value) = map.lookup(&ifindex.to_ne_bytes(), MapFlags::ANY)? else { return Ok(None) };
    let state = value.get(STATE..).and_then(CohabitState::from_prefix);
    ensure!(state.is_some(), "the pinned map of --cohabit is from another version: restart the daemon");
    Ok(state)
}

fn map_path(pins: &Pins) -> Option<PathBuf> {
    pins.path("router/cohabit")
}

fn link_path(pins: &Pins, ifindex: u32) -> Option<PathBuf> {
    pins.path(&format!("router/cohabit-{ifindex}"))
}
