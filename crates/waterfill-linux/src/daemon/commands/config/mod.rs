//! Reads and checks the configuration file of `waterfilld run`. Also contains the command `waterfilld check`.
//!
//! [`tables`] has its tables as the file spells them, [`values`] how their values are read, [`document`] where things are in
//! the text. Settings that the command line has too are checked by [`crate::daemon::options`].

mod document;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::cli::CheckCommand;
use super::output;
use crate::daemon::options::error::{escaped, user_error};
use crate::daemon::options::file::{File, LogOptions, check_socket_path};
use crate::daemon::options::{CsigOptions, HostOptions, Names, RouterOptions, TagRole, Wrong};
use crate::daemon::roles::csig::TagSetup;
use crate::daemon::roles::host;
use crate::daemon::roles::router::LinkSetup;
use document::Document;

pub(crate) use schema::print as print_schema;

/// Maximum size of a configuration file in bytes, enough for thousands of devices.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Contents of a configuration file, with defaults for all missing keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) file: PathBuf,
    pub(crate) hosts: Vec<HostOptions>,
    pub(crate) routers: Vec<RouterOptions>,
    pub(crate) csig: Vec<CsigOptions>,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) log: LogOptions,
    pub(crate) pins: Option<PathBuf>,
    pub(crate) control: PathBuf,
}

impl Config {
    /// Reads and checks a file. An error is one sentence with file, line, key, problem and advice.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let refused = |why: String| user_error(format!("{}: {why}", file.display()));
        let unreadable = |e: io::Error| refused(format!("cannot be read: {e}"));
        // A pipe without a writer would keep the daemon waiting, and a device may never end.
        let about = fs::metadata(file).map_err(unreadable)?;
        if !about.is_file() {
            return Err(refused("not a regular file".into()));
        }
        let mut bytes = Vec::new();
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file).map_err(unreadable)?;
        opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(refused(format!(
                "must be at most {MAX_FILE_BYTES} bytes long, got {}",
                about.len().max(bytes.len() as u64)
            )));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused("not text in UTF-8".into()))?;
        Self::parse(file, &text).map_err(user_error)
    }

    /// Parses and checks the text of a file.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, String> {
        let document = Document { name: file.display().to_string(), text };
        document.check_dates()?;
        let parsed: File = toml::from_str(text).map_err(|e| document.explain(&e))?;
        let config = Self {
            file: file.to_owned(),
            hosts: parsed.host.0,
            routers: parsed.router.0,
            csig: parsed.csig.0,
            metrics: parsed.metrics.listen.map(|listen| listen.0),
            log: parsed.log,
            pins: parsed.pins.directory,
            control: parsed.control.path,
        };
        config.check().map_err(|(table, wrong)| document.at(&table, &wrong))?;
        Ok(config)
    }

    /// Returns the error for a setting that this host refuses. `table` is a path such as `router.1`.
    pub(crate) fn refuse(&self, table: &str, wrong: &Wrong) -> anyhow::Error {
        let text = fs::read_to_string(&self.file).unwrap_or_default(); // without it there are no lines
        let document = Document { name: self.file.display().to_string(), text: &text };
        user_error(document.at(table, wrong))
    }

    /// Checks that the settings fit together. An error includes the table of the setting, such as `router.1`.
    fn check(&self) -> Result<(), (String, Wrong)> {
        check_socket_path(&self.control)
            .map_err(|why| ("control".into(), Wrong::new("path", format!("path {}: {why}", self.control.display()))))?;
        if let Some(pins) = self.pins.as_ref().filter(|pins| pins.as_os_str().as_bytes().contains(&0)) {
            let text = format!("directory {}: must not contain a NUL character", pins.display());
            return Err(("pins".into(), Wrong::new("directory", text)));
        }
        self.check_hosts()?;
        self.check_routers()?;
        let mut tagged = BTreeSet::new();
        for (i, csig) in self.csig.iter().enumerate() {
            let at = |wrong| (format!("csig.{i}"), wrong);
            TagSetup::of(csig, Names::Keys).map_err(at)?;
            let device = &csig.device;
            if !tagged.insert(&device.0) {
                let text = format!("device {device}: in two [[csig]] tables; keep one");
                return Err(at(Wrong::new("device", text)));
            }
        }
        Ok(())
    }

    fn check_hosts(&self) -> Result<(), (String, Wrong)> {
        let (mut laws, mut names) = (BTreeSet::new(), BTreeSet::new());
        for (i, host) in self.hosts.iter().enumerate() {
            let at = |wrong| (format!("host.{i}"), wrong);
            let (law, name, _) = host::check(host, Names::Keys).map_err(at)?;
            if !laws.insert(law.name) {
                let text = format!("law {}: in two [[host]] tables; keep one", law.name);
                return Err(at(Wrong::new("law", text)));
            }
            if !names.insert(name.clone()) {
                return Err(at(Wrong::new("name", format!("name {name}: another law has this name; choose another"))));
            }
        }
        Ok(())
    }

    fn check_routers(&self) -> Result<(), (String, Wrong)> {
        let (mut links, mut owners) = (BTreeSet::new(), BTreeSet::new());
        for (i, router) in self.routers.iter().enumerate() {
            let at = |wrong| (format!("router.{i}"), wrong);
            LinkSetup::of(router, Names::Keys).map_err(at)?;
            let device = &router.device;
            if !links.insert((&device.0, router.law.0)) {
                let text = format!("device {device}: in two [[router]] tables with the law {}; keep one", router.law);
                return Err(at(Wrong::new("device", text)));
            }
            for (key, given) in [("shape", router.shape), ("cohabit", router.cohabit.is_some())] {
                if given && !owners.insert((&device.0, key)) {
                    let text = format!("{key}: in two [[router]] tables of device {device}; keep one");
                    return Err(at(Wrong::new(key, text)));
                }
            }
        }
        Ok(())
    }

    /// Describes the configured setup, in several lines.
    pub(crate) fn summary(&self) -> String {
        let mut out = String::new();
        for host in &self.hosts {
            let name = host::check(host, Names::Keys).map(|(_, name, _)| name).unwrap_or_default();
            let _ = writeln!(out, "host: {} as {name}, falls back to {}", host.law, host.fallback);
        }
        for router in &self.routers {
            let target = LinkSetup::of(router, Names::Keys).ok().and_then(|setup| setup.target);
            let target = target.map_or_else(String::new, |target| format!(", target {target}"));
            let (law, rate) = (router.law, router.rate);
            let _ = writeln!(out, "router: {law} on {}, {rate}{target}", router.device);
        }
        for csig in &self.csig {
            let (role, format, signal) = (csig.role, csig.format, csig.signal);
            let what = match role {
                TagRole::Edge => "no tags beyond it".to_owned(),
                _ => format!("{format} tags with {signal}"),
            };
            let _ = writeln!(out, "csig: {role} on {}, {what}", csig.device);
        }
        if self.hosts.is_empty() && self.routers.is_empty() && self.csig.is_empty() {
            out += "no [[host]], [[router]] or [[csig]]: nothing to load\n";
        }
        if let Some(address) = self.metrics {
            let _ = writeln!(out, "metrics: http://{address}/metrics");
        }
        out
    }
}

/// Runs `waterfilld check`: reads a file and describes its setup.
pub(crate) fn check(command: &CheckCommand) -> Result<()> {
    let config = Config::read(&command.file)?;
    let file = command.file.display().to_string();
    output::print(&format!("{}: valid\n{}", escaped(&file), config.summary()))
}
