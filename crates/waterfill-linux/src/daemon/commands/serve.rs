//! `waterfilld host` and `waterfilld router`: load the programs, answer requests, and wait for the end.
//!
//! The main thread owns the loaded programs. The threads of standard input, signals and metrics send it requests.

use std::io::{self, BufRead as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::cli::{Common, HostCommand, RouterCommand};
use super::http;
use super::log;
use super::metrics;
use super::output::print_line;
use super::signals;
use super::snapshot::Snapshot;
use crate::daemon::kernel::claim;
use crate::daemon::kernel::device::{self, NetworkChange};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::kernel::probe::{self, System};
use crate::daemon::options::Names;
use crate::daemon::options::error::user_error;
use crate::daemon::options::file::LogOptions;
use crate::daemon::options::values::Rate;
use crate::daemon::roles;
use crate::daemon::roles::host::{self, Host};
use crate::daemon::roles::router::{self, Router};

/// A request to the thread that owns the loaded programs.
#[derive(Debug)]
enum Request {
    /// A line on standard input.
    Line(String),
    /// End of standard input.
    Closed,
    /// A scraper's request for the state, or for the reason why there is none.
    Scrape(Sender<Result<Snapshot, String>>),
    /// A change of network devices, or of their queueing disciplines and filters.
    Devices(NetworkChange),
    /// Request to log the connections that fell back or returned.
    Events,
    /// Request to divide the rate of each link with `--separate` between explicit and other packets.
    Divide,
    /// A signal that ends the process.
    Signal(Signal),
}

/// Loaded programs of one role.
enum Loaded {
    Host(Host),
    Router(Router),
}

impl Loaded {
    fn snapshot(&self) -> Result<Snapshot> {
        match self {
            Self::Host(host) => Snapshot::loaded([host].into_iter(), std::iter::empty()),
            Self::Router(router) => Snapshot::loaded(std::iter::empty(), [router].into_iter()),
        }
    }

    /// Reads the state for the metrics, without a list of connections.
    fn summary(&self) -> Result<Snapshot> {
        match self {
            Self::Host(host) => Snapshot::summed([host].into_iter(), std::iter::empty(), None),
            Self::Router(router) => Snapshot::summed(std::iter::empty(), [router].into_iter(), None),
        }
    }
}

/// Runs `waterfilld host`.
pub(crate) fn host(command: &HostCommand) -> Result<()> {
    let system = System::find()?;
    let setup = command.setup(|| system.cgroup())?;
    system.check(Role::Host)?;
    setup.check_kernel(&system, Names::Options)?;
    serve(&command.common, Role::Host, setup.law, None, |pins| {
        Ok(Loaded::Host(Host::load_with(pins, &setup, command.common.steps().as_ref())?))
    })
}

/// Runs `waterfilld router`.
pub(crate) fn router(command: &RouterCommand) -> Result<()> {
    let setups = command.setups()?;
    let system = System::find()?;
    setups.iter().try_for_each(|one| one.check_kernel(&system, Names::Options))?;
    setups.iter().try_for_each(|one| probe::check_device(one.device()))?;
    system.check(Role::Router)?;
    let law = command.law();
    let claims = setups.iter().map(|one| claim::device(law, one.device()));
    let _claims = claims.collect::<Result<Vec<_>>>()?;
    serve(&command.common, Role::Router, law, Some(command), |pins| {
        let mut router = Router::load_with(law, pins, command.common.steps().as_ref())?;
        for one in &setups {
            router.attach(one).with_context(|| format!("device {}", one.device()))?;
        }
        Ok(Loaded::Router(router))
    })
}

/// Loads a role's programs and serves requests until the end. `router` is the command of a router whose link rates may
/// change.
fn serve(
    common: &Common,
    role: Role,
    law: &'static LoadableLaw,
    router: Option<&RouterCommand>,
    load: impl FnOnce(&Pins) -> Result<Loaded>,
) -> Result<()> {
    log::configure(&LogOptions::default())?;
    let signals = signals::block()?;
    let listener = common.metrics().map(|address| http::listen("--metrics", address)).transpose()?;

    let pins = if common.life.no_pin { Pins::none() } else { Pins::open(common.pins.pins.clone())?.of(law) };
    let first_start = !pins.has(role);
    let _lock = pins.lock(role)?;
    let loaded = load(&pins).inspect_err(|_| {
        // A first start that failed leaves nothing; a restart that failed leaves what ran before.
        if first_start {
            if let Err(e) = roles::unload(role, &pins) {
                tracing::warn!("{e:#}");
            }
        }
    })?;
    tracing::info!("{} loaded; {}", role.name(), pins.describe());
    if common.life.once {
        return Ok(());
    }

    let (requests, inbox) = channel();
    if let Some(listener) = listener {
        if let Ok(address) = listener.local_addr() {
            tracing::info!("metrics at http://{address}/metrics");
        }
        let owner = requests.clone();
        http::serve(listener, move |request| metrics::respond(request, || scrape(&owner)))?;
    }
    if common.life.line {
        print_line(r#"{"ready":true}"#)?;
        let requests = requests.clone();
        thread::spawn(move || read_lines(&requests));
    }
    let devices = requests.clone();
    if role == Role::Host {
        repeat(requests.clone(), host::LOG_INTERVAL, || Request::Events);
    }
    if matches!(&loaded, Loaded::Router(router) if router.divides()) {
        repeat(requests.clone(), router::UPDATE, || Request::Divide);
    }
    thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            let _ = requests.send(Request::Signal(signal));
        }
    });
    if role == Role::Router {
        device::watch(move |change| devices.send(Request::Devices(change)).is_ok())?;
    }
    answer(&inbox, loaded, router)
}

/// Starts a thread that sends a request at once and then in each interval, until the owner of the programs ends.
fn repeat(owner: Sender<Request>, interval: Duration, request: fn() -> Request) {
    thread::spawn(move || {
        while owner.send(request()).is_ok() {
            thread::sleep(interval);
        }
    });
}

/// Asks the thread that owns the programs for the state.
fn scrape(owner: &Sender<Request>) -> Result<Snapshot, String> {
    let (reply, answer) = channel();
    owner.send(Request::Scrape(reply)).map_err(|_| "the daemon is stopping")?;
    answer.recv().map_err(|_| "the daemon is stopping")?
}

fn read_lines(requests: &Sender<Request>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if requests.send(Request::Line(line)).is_err() {
            break;
        }
    }
    let _ = requests.send(Request::Closed);
}

/// Handles requests until one ends the process.
fn answer(inbox: &Receiver<Request>, mut loaded: Loaded, command: Option<&RouterCommand>) -> Result<()> {
    for request in inbox {
        match request {
            Request::Line(line) => {
                let answer = match (Change::read(&line), &mut loaded, command) {
                    (Some(change), Loaded::Router(router), Some(command)) => {
                        serde_json::to_string(&change.make(router, command))
                    }
                    _ => serde_json::to_string(&loaded.snapshot()?),
                };
                print_line(&answer?)?;
            }
            Request::Scrape(reply) => {
                let _ = reply.send(loaded.summary().map_err(|e| format!("{e:#}"))); // the client may have gone
            }
            Request::Devices(change) => {
                if let Loaded::Router(router) = &mut loaded {
                    router.follow();
                    router.check_qdiscs(&change);
                }
            }
            Request::Events => {
                if let Loaded::Host(host) = &mut loaded {
                    host.log_events();
                }
            }
            Request::Divide => {
                if let Loaded::Router(router) = &mut loaded {
                    router.divide();
                }
            }
            Request::Closed => return Ok(()),
            Request::Signal(signal) => {
                tracing::info!("stopped by {signal}");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A line of standard input that changes a router's link.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change<'a> {
    /// Line `rate DEVICE RATE`, which sets the rate; the link keeps its signal.
    Rate(&'a str),
    /// Line `restart DEVICE`, which resets the link's state.
    Restart(&'a str),
}

/// Answer to a line that changes a link.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    /// Requested change, serialized as the line's first word with the remaining words.
    #[serde(flatten)]
    change: Change<'a>,
    /// Time at which the link was changed, in seconds of CLOCK_MONOTONIC.
    at_s: f64,
    /// Reason why the link could not be changed, if it failed.
    error: Option<String>,
}

impl<'a> Change<'a> {
    fn read(line: &'a str) -> Option<Self> {
        match line.split_once(' ')? {
            ("rate", words) => Some(Self::Rate(words)),
            ("restart", device) => Some(Self::Restart(device)),
            _ => None,
        }
    }

    fn make(self, router: &mut Router, command: &RouterCommand) -> Changed<'a> {
        let done = match self {
            Self::Rate(words) => {
                let (device, rate) = words.split_once(' ').unwrap_or((words, ""));
                let rate = rate.parse::<Rate>().map_err(|why| user_error(format!("rate {rate}: {why}")));
                rate.and_then(|rate| router.set_rate(&command.at_rate(device, rate)?))
            }
            Self::Restart(device) => router.restart(device),
        };
        let at = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(f64::NAN, |now| Duration::from(now).as_secs_f64());
        Changed { change: self, at_s: at, error: done.err().map(|e| format!("{e:#}")) }
    }
}
