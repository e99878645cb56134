//! `waterfilld run`: one process for all roles, laws and devices of the configuration file.
//!
//! The main thread owns the loaded programs ([`loaded`]); the threads of signals, devices, metrics and the control socket
//! ([`control`]) send it requests. What the kernel programs do does not depend on this process.

pub(crate) mod control;
mod loaded;
mod systemd;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};

use crate::daemon::commands::cli::RunCommand;
use crate::daemon::commands::config::Config;
use crate::daemon::commands::snapshot::{RunStatus, Snapshot};
use crate::daemon::commands::{http, log, metrics, signals};
use crate::daemon::kernel::device::{self, NetworkChange};
use crate::daemon::kernel::pins::Pins;
use crate::daemon::kernel::privileges;
use crate::daemon::kernel::probe::System;
use crate::daemon::options::error::{UserError, one_line, user_error};
use crate::daemon::roles::{host, router};
use control::{ControlCommand, ControlReply};
use loaded::{Loaded, Wanted};

/// Interval at which fallbacks are counted for the log.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum number of fallbacks for one reason in an interval that is logged.
const BURST: u64 = 10;

/// A request to the thread that owns the loaded programs.
#[derive(Debug)]
enum Request {
    /// A scraper's request for the state, or for the reason why there is none.
    Scrape(Sender<Result<Snapshot, String>>),
    /// A request from a client of the control socket.
    Control(ControlCommand, Sender<ControlReply>),
    /// A change of network devices, or of their queueing disciplines and filters.
    Devices(NetworkChange),
    Signal(Signal),
}

/// State of a running daemon.
struct Daemon {
    config: Config,
    system: System,
    loaded: Loaded,
    metrics: Option<http::Server>,
    requests: Sender<Request>,
    /// Number of fallbacks by law and reason at the last count.
    fallbacks: BTreeMap<(&'static str, String), u64>,
    status: RunStatus,
}

/// Runs `waterfilld run`.
pub(crate) fn run(command: &RunCommand) -> Result<()> {
    let config = Config::read(&command.config)?;
    log::configure(&config.log)?;
    privileges::check()?;
    let signals = signals::block()?;
    let control = control::Listener::bind(&config.control)?;

    let system = System::find()?;
    let wanted = Wanted::of(&config, &system)?;
    let listener = config.metrics.map(|address| listen(&config, address)).transpose()?;
    let mut loaded = Loaded::new(Pins::open(config.pins.clone())?);
    loaded.start(&wanted)?;

    let (requests, inbox) = channel();
    let started_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let status = RunStatus { started_s, current: true, ..RunStatus::default() };
    let mut daemon = Daemon { config, system, loaded, metrics: None, requests, fallbacks: BTreeMap::new(), status };
    if let Some(listener) = listener {
        daemon.serve_metrics(listener)?;
    }
    daemon.start_threads(signals)?;
    let owner = daemon.requests.clone();
    let _control = control.serve(move |command| {
        let (reply, answer) = channel();
        owner.send(Request::Control(command, reply)).ok()?;
        answer.recv().ok()
    });
    tracing::info!(file = %daemon.config.file.display(), "ready: {}", daemon.loaded.describe());
    systemd::ready(&daemon.loaded.describe());
    let result = daemon.answer(&inbox);
    systemd::stopping();
    log::flush();
    result
}

/// Binds the metrics socket at `address`. An error names the configuration file and its key.
fn listen(config: &Config, address: SocketAddr) -> Result<TcpListener> {
    http::listen(&format!("{}: metrics.listen", config.file.display()), address)
}

impl Daemon {
    fn start_threads(&self, signals: SigSet) -> Result<()> {
        let requests = self.requests.clone();
        thread::spawn(move || {
            while let Ok(signal) = signals.wait() {
                if requests.send(Request::Signal(signal)).is_err() {
                    return;
                }
            }
        });
        let requests = self.requests.clone();
        device::watch(move |change| requests.send(Request::Devices(change)).is_ok())
    }

    fn serve_metrics(&mut self, listener: TcpListener) -> Result<()> {
        if let Ok(address) = listener.local_addr() {
            tracing::info!("metrics at http://{address}/metrics");
        }
        let owner = self.requests.clone();
        let scrape = move || {
            let (reply, answer) = channel();
            owner.send(Request::Scrape(reply)).map_err(|_| "the daemon is stopping")?;
            answer.recv().map_err(|_| "the daemon is stopping")?
        };
        self.metrics = Some(http::serve(listener, move |request| metrics::respond(request, &scrape))?);
        Ok(())
    }

    /// Handles requests until a signal ends the daemon, and does periodic work in between.
    fn answer(&mut self, inbox: &Receiver<Request>) -> Result<()> {
        let watchdog = systemd::watchdog();
        let mut divide = Instant::now();
        let mut events = Instant::now();
        let mut count = Instant::now() + COUNT_INTERVAL;
        let mut alive = Instant::now();
        loop {
            let now = Instant::now();
            let mut next = now + Duration::from_secs(3600);
            if self.loaded.divides() {
                if divide <= now {
                    self.loaded.divide();
                    divide = now + router::UPDATE;
                }
                next = next.min(divide);
            }
            if self.loaded.has_hosts() {
                if events <= now {
                    self.loaded.log_events();
                    events = now + host::LOG_INTERVAL;
                }
                next = next.min(events);
                if count <= now {
                    self.log_fallbacks();
                    count = now + COUNT_INTERVAL;
                }
                next = next.min(count);
            }
            if let Some(interval) = watchdog {
                if alive <= now {
                    systemd::alive();
                    alive = now + interval;
                }
                next = next.min(alive);
            }
            match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Request::Scrape(reply)) => {
                    let _ = reply.send(self.summary().map_err(|e| format!("{e:#}"))); // the client may have gone
                }
                Ok(Request::Control(ControlCommand::Status, reply)) => {
                    let _ = reply.send(ControlReply::ok(self.loaded.describe()));
                }
                Ok(Request::Control(ControlCommand::Reload, reply)) => {
                    let _ = reply.send(ControlReply::from(self.reload()));
                }
                Ok(Request::Devices(change)) => {
                    self.loaded.follow(&change);
                    systemd::status(&self.loaded.describe());
                }
                Ok(Request::Signal(Signal::SIGHUP)) => drop(self.reload()), // the log has the result
                Ok(Request::Signal(signal)) => {
                    tracing::info!("stopped by {signal}; what is loaded keeps running until `waterfilld unload`");
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Reads the state of all loaded programs for the metrics.
    fn summary(&self) -> Result<Snapshot> {
        let status = RunStatus { missing: self.loaded.missing().len(), ..self.status.clone() };
        Ok(Snapshot { run: Some(status), ..self.loaded.summary()? })
    }

    /// Reloads the file and applies the changes. Returns a description of the changes. After an error, the previous
    /// setup is restored if possible.
    fn reload(&mut self) -> Result<String> {
        systemd::reloading();
        let result = self.try_reload();
        self.status.current = result.is_ok();
        *match &result {
            Ok(_) => &mut self.status.applied,
            Err(e) if e.is::<UserError>() => &mut self.status.refused,
            Err(_) => &mut self.status.failed,
        } += 1;
        match &result {
            Ok(changes) => tracing::info!(event = "reload", "reloaded {}: {changes}", self.config.file.display()),
            Err(e) => tracing::error!(event = "reload", "not reloaded: {}", one_line(&format!("{e:#}"))),
        }
        systemd::ready(&self.loaded.describe());
        result
    }

    fn try_reload(&mut self) -> Result<String> {
        let config = Config::read(&self.config.file)?;
        self.check_fixed(&config)?;
        // Congestion controls and modules may have been loaded since.
        self.system = System::find()?;
        let wanted = Wanted::of(&config, &self.system)?;
        let moved = config.metrics != self.config.metrics;
        let listener = config.metrics.filter(|_| moved).map(|address| listen(&config, address)).transpose()?;
        let mut changes = self.loaded.apply(&wanted)?;
        if moved {
            if let Some(old) = self.metrics.take() {
                old.stop();
            }
            changes.push("metrics");
        }
        if let Some(listener) = listener {
            self.serve_metrics(listener)?;
        }
        if config.log != self.config.log {
            log::configure(&config.log)?;
            changes.push("log");
        }
        self.config = config;
        Ok(changes.describe())
    }

    /// Refuses changes of settings that need a restart of the daemon.
    fn check_fixed(&self, config: &Config) -> Result<()> {
        let now = &self.config;
        let refuse = |key: &str, now: &Path| {
            let (file, now) = (config.file.display(), now.display());
            Err(user_error(format!("{file}: {key}: cannot change from {now} while the daemon runs; restart it")))
        };
        if config.control != now.control {
            return refuse("control.path", &now.control);
        }
        if config.pins != now.pins {
            return refuse("pins.directory", now.pins.as_deref().unwrap_or(Path::new("none")));
        }
        Ok(())
    }

    /// Logs each reason for which many connections fell back since the last count.
    fn log_fallbacks(&mut self) {
        for (law, counters) in self.loaded.counters() {
            for (reason, now) in counters {
                let before = self.fallbacks.insert((law, reason.clone()), now).unwrap_or(now);
                let more = now.saturating_sub(before);
                if more >= BURST {
                    let seconds = COUNT_INTERVAL.as_secs();
                    tracing::warn!(event = "fallbacks", law, "{more} connections fell back in {seconds} s: {reason}");
                }
            }
        }
    }
}
