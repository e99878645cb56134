//! The configuration file of `waterfilld run`, and `waterfilld check`.
//!
//! [`tables`] has its tables as the file spells them, [`values`] how their values are read, [`document`] where things are in
//! the text. Settings that the command line has too are checked by [`super::settings`].

mod document;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::cli::CheckCommand;
use super::csig::Role;
use super::error::{escaped, user_error};
use super::output;
use super::quantity::show_rate;
use super::run::control;
use super::settings::{CsigSettings, HostSettings, Names, RouterSettings, Wrong};
use document::Document;
use tables::File;

pub(super) use schema::print as print_schema;

/// Where the file is unless the command line says otherwise.
pub(super) const DEFAULT_FILE: &str = "/etc/waterfill/waterfilld.toml";
/// Where the control socket is unless the file says otherwise.
pub(super) const DEFAULT_CONTROL: &str = "/run/waterfill/control.sock";
/// Largest file: thousands of devices fit.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What the file says, with defaults for the rest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Config {
    pub(super) file: PathBuf,
    pub(super) hosts: Vec<HostSettings>,
    pub(super) routers: Vec<RouterSettings>,
    pub(super) csig: Vec<CsigSettings>,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) log: LogConfig,
    pub(super) pins: Option<PathBuf>,
    pub(super) control: PathBuf,
}

/// How messages are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogConfig {
    pub(super) level: Level,
    pub(super) format: Format,
    /// Messages of one kind that are logged in an interval.
    pub(super) burst: u32,
    pub(super) interval: Duration,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: Level::Info, format: Format::Text, burst: 20, interval: Duration::from_secs(10) }
    }
}

/// The least level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Text,
    Json,
}

impl Config {
    /// Reads a file. An error is one sentence with file, line, key and what was expected.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let refused = |why: String| user_error(format!("{}: {why}", file.display()));
        let unreadable = |e: io::Error| refused(format!("expected a readable file: {e}"));
        // A pipe without a writer would keep the daemon waiting, and a device may never end.
        let about = fs::metadata(file).map_err(unreadable)?;
        if !about.is_file() {
            return Err(refused("expected a regular file".into()));
        }
        let mut bytes = Vec::new();
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file).map_err(unreadable)?;
        opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(refused(format!(
                "expected up to {MAX_FILE_BYTES} bytes, got {}",
                about.len().max(bytes.len() as u64)
            )));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused("expected text in UTF-8".into()))?;
        Self::parse(file, &text).map_err(user_error)
    }

    /// Parses the text of a file.
    pub(super) fn parse(file: &Path, text: &str) -> Result<Self, String> {
        let document = Document { name: file.display().to_string(), text };
        document.check_dates()?;
        let parsed: File = toml::from_str(text).map_err(|e| document.explain(&e))?;
        let config = Self {
            file: file.to_owned(),
            hosts: parsed.host.0.into_iter().map(Into::into).collect(),
            routers: parsed.router.0.into_iter().map(Into::into).collect(),
            csig: parsed.csig.0.into_iter().map(Into::into).collect(),
            metrics: parsed.metrics.listen.map(|listen| listen.0),
            log: parsed.log.into(),
            pins: parsed.pins.directory,
            control: parsed.control.path(),
        };
        config.check().map_err(|(table, wrong)| document.at(&table, &wrong))?;
        Ok(config)
    }

    /// Makes an error of a setting that this host refuses. `table` is such as `router.1`.
    pub(super) fn refuse(&self, table: &str, wrong: &Wrong) -> anyhow::Error {
        let text = fs::read_to_string(&self.file).unwrap_or_default(); // without it there are no lines
        let document = Document { name: self.file.display().to_string(), text: &text };
        user_error(document.at(table, wrong))
    }

    /// Checks settings against each other. The error has its table, such as `router.1`.
    fn check(&self) -> Result<(), (String, Wrong)> {
        control::check_path(&self.control)
            .map_err(|why| ("control".into(), Wrong::new("path", format!("path {}: {why}", self.control.display()))))?;
        if let Some(pins) = self.pins.as_ref().filter(|pins| pins.as_os_str().as_bytes().contains(&0)) {
            let text = format!("directory {}: expected a path without a NUL character", pins.display());
            return Err(("pins".into(), Wrong::new("directory", text)));
        }
        let mut laws = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (i, host) in self.hosts.iter().enumerate() {
            let at = |wrong| (format!("host.{i}"), wrong);
            host.check(Names::Keys).map_err(at)?;
            let law = host.law.name;
            if laws.insert(law, i).is_some() {
                return Err(at(Wrong::new("law", format!("law {law}: expected each law in one [[host]] only"))));
            }
            let name = host.name();
            if names.insert(name.clone(), i).is_some() {
                return Err(at(Wrong::new("name", format!("name {name}: expected another than the other law's"))));
            }
        }
        let mut links = BTreeMap::new();
        let mut owners = BTreeMap::new();
        for (i, router) in self.routers.iter().enumerate() {
            let at = |wrong| (format!("router.{i}"), wrong);
            router.options(Names::Keys).map_err(at)?;
            let device = router.device.as_str();
            if links.insert((device, router.law.name), i).is_some() {
                let text = format!("device {device}: expected each device once with the law {}", router.law.name);
                return Err(at(Wrong::new("device", text)));
            }
            for (key, given) in [("shape", router.shape), ("cohabit", router.cohabit.is_some())] {
                if given && owners.insert((device, key), i).is_some() {
                    let text = format!("{key}: expected in one [[router]] of the device {device} only");
                    return Err(at(Wrong::new(key, text)));
                }
            }
        }
        let mut tagged = BTreeMap::new();
        for (i, csig) in self.csig.iter().enumerate() {
            let at = |wrong| (format!("csig.{i}"), wrong);
            csig.options(Names::Keys).map_err(at)?;
            let device = csig.device.as_str();
            if tagged.insert(device, i).is_some() {
                let text = format!("device {device}: expected each device in one [[csig]] only");
                return Err(at(Wrong::new("device", text)));
            }
        }
        Ok(())
    }

    /// Describes what the file sets up, in lines.
    pub(super) fn summary(&self) -> String {
        let mut out = String::new();
        for host in &self.hosts {
            let _ = writeln!(out, "host: {} as {}, else {}", host.law.name, host.name(), host.fallback);
        }
        for router in &self.routers {
            let target = router.options(Names::Keys).ok().and_then(|options| options.target);
            let target = target.map_or_else(String::new, |target| format!(", target {target}"));
            let (law, rate) = (router.law.name, show_rate(router.rate_bps));
            let _ = writeln!(out, "router: {law} on {}, {rate}{target}", router.device);
        }
        for csig in &self.csig {
            let (role, format, signal) = (csig.role, csig.format, csig.signal);
            let what = match role {
                Role::Edge => "no tags beyond it".to_owned(),
                _ => format!("{format} tags with {signal}"),
            };
            let _ = writeln!(out, "csig: {role} on {}, {what}", csig.device);
        }
        if self.hosts.is_empty() && self.routers.is_empty() && self.csig.is_empty() {
            out += "no [host], [[router]] or [[csig]]: nothing to load\n";
        }
        if let Some(address) = self.metrics {
            let _ = writeln!(out, "metrics: http://{address}/metrics");
        }
        out
    }
}

/// `waterfilld check`: reads a file and says what it sets up.
pub(super) fn check(command: &CheckCommand) -> Result<()> {
    let config = Config::read(&command.file)?;
    let file = command.file.display().to_string();
    output::print(&format!("{}: valid\n{}", escaped(&file), config.summary()))
}
