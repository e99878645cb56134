//! Queueing disciplines and filters of devices, read and changed with the command `tc`.
//!
//! That is simpler than netlink messages of our own: tc handles rate tables and 64-bit rates, works in the namespace where it
//! starts, and is documented.

use std::io::ErrorKind;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::daemon::options::error::user_error;

/// A queueing discipline of a device.
#[derive(Debug, Deserialize)]
pub(crate) struct Qdisc {
    /// Device name, only in lists of all devices.
    #[serde(default)]
    pub(crate) dev: String,
    pub(crate) kind: String,
    pub(crate) handle: String,
    #[serde(default)]
    pub(crate) root: bool,
    pub(crate) options: Option<QdiscOptions>,
    /// Queue length in bytes, only with statistics.
    #[serde(default)]
    pub(crate) backlog: u64,
}

/// Options of a queueing discipline.
#[derive(Debug, Deserialize)]
pub(crate) struct QdiscOptions {
    /// Rate of tbf, in bytes per second.
    pub(crate) rate: Option<u64>,
}

/// A filter of clsact, as tc prints it.
#[derive(Debug, Deserialize)]
pub(crate) struct Filter {
    kind: String,
    pref: u32,
    /// Options of the filter, which are missing in the line that tc prints for each priority.
    options: Option<FilterOptions>,
}

#[derive(Debug, Deserialize)]
struct FilterOptions {
    /// Handle, which is text for bpf filters and a number or missing for others.
    handle: Option<serde_json::Value>,
    prog: Option<FilterProgram>,
}

#[derive(Debug, Deserialize)]
struct FilterProgram {
    name: Option<String>,
    id: Option<u32>,
}

impl Filter {
    /// Returns true if the filter is the bpf filter with this handle.
    pub(crate) fn is(&self, handle: u32) -> bool {
        let its = self.options.as_ref().and_then(|options| options.handle.as_ref()?.as_str());
        self.kind == "bpf" && its == Some(&format!("{handle:#x}"))
    }

    /// Returns the id of the filter's program, or `None` if the filter has no program.
    pub(crate) fn program_id(&self) -> Option<u32> {
        self.options.as_ref()?.prog.as_ref()?.id
    }

    /// Returns the name of the filter's program, or the filter's kind and priority if no program name is known.
    pub(crate) fn name(&self) -> String {
        let program = self.options.as_ref().and_then(|options| options.prog.as_ref()?.name.clone());
        program.unwrap_or_else(|| format!("{} filter of priority {}", self.kind, self.pref))
    }
}

/// Returns the filters of a device's clsact egress, in the order in which they run.
pub(crate) fn egress_filters(device: &str) -> Result<Vec<Filter>> {
    let mut filters: Vec<Filter> = json("tc", &["-j", "filter", "show", "dev", device, "egress"])?;
    filters.retain(|filter| filter.options.is_some());
    Ok(filters)
}

/// Returns true if a device has clsact.
pub(crate) fn has_clsact(device: &str) -> Result<bool> {
    Ok(qdiscs(device)?.iter().any(|q| q.kind == "clsact"))
}

/// Returns true if a device's clsact has filters in either direction.
pub(crate) fn has_filters(device: &str) -> Result<bool> {
    for side in ["ingress", "egress"] {
        if !run("tc", &["filter", "show", "dev", device, side])?.trim().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the queueing disciplines of a device.
pub(crate) fn qdiscs(device: &str) -> Result<Vec<Qdisc>> {
    json("tc", &["-j", "qdisc", "show", "dev", device])
}

/// Runs a program of iproute2 and parses its JSON output.
pub(crate) fn json<T: serde::de::DeserializeOwned>(program: &str, arguments: &[&str]) -> Result<T> {
    let text = run(program, arguments)?;
    serde_json::from_str(&text).with_context(|| format!("{program} {}: unexpected JSON", arguments.join(" ")))
}

/// Runs a program of iproute2 and returns its output. Searches for the program in PATH, /usr/sbin and /sbin.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    for folder in ["", "/usr/sbin/", "/sbin/"] {
        let output = match Command::new(format!("{folder}{program}")).args(arguments).output() {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            output => output.with_context(|| format!("cannot run {program}"))?,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    bail!(user_error(format!("{program} not found; install iproute2")))
}
