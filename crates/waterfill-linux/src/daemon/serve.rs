//! What a process does beside the kernel: loads, answers, waits for the end.
//!
//! One thread owns what is loaded; standard input, signals and the metrics' socket send it what they want.

use std::io::{self, BufRead as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use nix::sys::signal::{SigSet, Signal};
use tracing_subscriber::EnvFilter;

use super::cli::{Command, Common, UnloadCommand};
use super::failure::wrong;
use super::host::{self, Host};
use super::metrics;
use super::pins::{Pins, Role};
use super::probe;
use super::router::{self, Router};
use super::status::{self, Snapshot};

/// What the owner of the programs is asked.
#[derive(Debug)]
pub(super) enum Request {
    /// A line came on standard input.
    Line,
    /// Standard input closed.
    Closed,
    /// Somebody scrapes: the state, or why there is none.
    Scrape(Sender<Result<Snapshot, String>>),
    /// The end.
    Signal(Signal),
}

/// The programs of one role.
enum Loaded {
    Host(Host),
    Router(Router),
}

impl Loaded {
    fn snapshot(&self) -> Result<Snapshot> {
        Ok(match self {
            Self::Host(host) => Snapshot { flows: host.flows()?, ..Snapshot::of(Role::Host) },
            Self::Router(router) => Snapshot { links: router.links()?, ..Snapshot::of(Role::Router) },
        })
    }
}

/// Does what was asked for.
pub(super) fn run(command: Command) -> Result<()> {
    log();
    match command {
        Command::Host(host) => {
            let machine = probe::Machine::find()?;
            let options = host.options(|| machine.cgroup())?;
            machine.check(Role::Host)?;
            machine.check_host(&options)?;
            serve(&host.common, Role::Host, |pins| Ok(Loaded::Host(Host::load(pins, &options)?)))
        }
        Command::Router(router) => {
            let options = router.options();
            let machine = probe::Machine::find()?;
            machine.check_router(&options)?;
            machine.check(Role::Router)?;
            let _devices = claim(&options)?;
            serve(&router.common, Role::Router, |pins| {
                let mut router = Router::load(pins)?;
                for one in &options {
                    router.attach(one).with_context(|| format!("device {}", one.device))?;
                }
                Ok(Loaded::Router(router))
            })
        }
        Command::Status(command) => status::run(&command),
        Command::Unload(command) => unload(&command),
        Command::Probe(command) => probe::run(&command),
    }
}

/// What there is to say beside answers goes to standard error; RUST_LOG chooses how much.
fn log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false).init();
    // A verifier's log is pages long: for those who ask for it.
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Debug, |_, text| {
        tracing::debug!("libbpf: {}", text.trim_end());
    })));
}

fn serve(common: &Common, role: Role, load: impl FnOnce(&Pins) -> Result<Loaded>) -> Result<()> {
    // Before any thread begins, as threads inherit it: the one that waits for them is then the only one to get them.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().context("cannot hold back signals")?;
    let listener = common.metrics.map(metrics::listen).transpose()?;

    let pins = if common.no_pin { Pins::none() } else { Pins::open(common.pins.pins.clone())? };
    let fresh = !pins.has(role);
    let _held = pins.hold(role)?;
    let loaded = load(&pins).inspect_err(|_| {
        // A first start that failed leaves nothing; a restart that failed leaves what ran before.
        if fresh {
            if let Err(e) = take_out(&pins, role, &[]) {
                tracing::warn!("{e:#}");
            }
        }
    })?;
    tracing::info!("{} loaded; {}", role.name(), pins.shown());
    if common.once {
        return Ok(());
    }

    let (requests, inbox) = channel();
    if let Some(listener) = listener {
        metrics::serve(listener, requests.clone());
    }
    if common.line {
        say(r#"{"ready":true}"#)?;
        let requests = requests.clone();
        thread::spawn(move || read_lines(&requests));
    }
    thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            let _ = requests.send(Request::Signal(signal));
        }
    });
    answer(&inbox, &loaded)
}

fn read_lines(requests: &Sender<Request>) {
    for line in io::stdin().lock().lines() {
        if line.is_err() || requests.send(Request::Line).is_err() {
            break;
        }
    }
    let _ = requests.send(Request::Closed);
}

/// Until the end is asked for.
fn answer(inbox: &Receiver<Request>, loaded: &Loaded) -> Result<()> {
    for request in inbox {
        match request {
            Request::Line => say(&serde_json::to_string(&loaded.snapshot()?)?)?,
            Request::Scrape(reply) => {
                let _ = reply.send(loaded.snapshot().map_err(|e| format!("{e:#}"))); // the asker may have gone
            }
            Request::Closed => return Ok(()),
            Request::Signal(signal) => {
                tracing::info!("ends on {signal}");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// One line on standard output, at once.
fn say(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output")
}

/// Names in this network namespace that stand for its devices: two routers on one device would both count its packets, also if
/// they pin apart or not at all. The names are the process's and end with it.
fn claim(options: &[router::Options]) -> Result<Vec<UnixListener>> {
    let one = |options: &router::Options| {
        let name = format!("waterfilld router {}", options.device);
        let address = SocketAddr::from_abstract_name(&name)?;
        UnixListener::bind_addr(&address).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => anyhow!("device {}: another waterfilld has it: end that first", options.device),
            _ => anyhow!("device {}: {e}", options.device),
        })
    };
    options.iter().map(one).collect()
}

fn unload(command: &UnloadCommand) -> Result<()> {
    probe::check_privileges()?;
    let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
    let chosen = command.host || command.router || !command.devices.is_empty();
    let asked = |role| match role {
        Role::Host => command.host || !chosen,
        Role::Router => command.router || !command.devices.is_empty() || !chosen,
    };
    let mut nothing = true;
    for role in [Role::Router, Role::Host] {
        if asked(role) && pins.has(role) {
            nothing = false;
            let _held = pins.hold(role)?;
            take_out(&pins, role, if role == Role::Router { &command.devices } else { &[] })?;
        }
    }
    if nothing {
        if !command.devices.is_empty() {
            bail!(wrong(format!(
                "--dev {}: nothing of a router is loaded; {}",
                command.devices.join(", "),
                pins.shown()
            )));
        }
        tracing::info!("nothing is loaded; {}", pins.shown());
    }
    Ok(())
}

/// Unloads a role, or some devices of the router's.
fn take_out(pins: &Pins, role: Role, devices: &[String]) -> Result<()> {
    if role == Role::Host {
        host::unload(pins)?;
        return pins.remove(role);
    }
    if devices.is_empty() {
        router::unload(pins, None)?;
        return pins.remove(role);
    }
    for device in devices {
        if router::unload(pins, Some(device))?.is_empty() {
            bail!(wrong(format!("--dev {device}: expected a device that is attached; status lists them")));
        }
    }
    if router::pinned_links(pins)?.is_none_or(|links| links.is_empty()) {
        router::unload(pins, None)?;
        return pins.remove(role);
    }
    Ok(())
}
