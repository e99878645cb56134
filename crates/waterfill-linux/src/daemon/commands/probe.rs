//! `waterfilld probe`: prints the kernel features that the daemon needs.

use std::path::PathBuf;

use anyhow::Result;

use super::cli::ListCommand;
use super::output;
use super::table::{Align, table};
use crate::daemon::kernel::privileges;
use crate::daemon::kernel::probe::{Feature, System};

/// Prints the kernel's features and the host's mounts.
pub(crate) fn run(command: &ListCommand) -> Result<()> {
    let found = System::find()?;
    let text = if command.json { serde_json::to_string(&found)? + "\n" } else { tables(&found) };
    output::print(&text)
}

fn tables(system: &System) -> String {
    let place =
        |path: &Option<PathBuf>| path.as_ref().map_or_else(|| "not mounted".into(), |path| path.display().to_string());
    let may = privileges::check().map_or_else(|e| e.to_string(), |()| "may load programs".into());
    let top = [
        ["kernel".into(), system.kernel.clone()],
        ["control groups".into(), place(&system.cgroup2)],
        ["BPF file system".into(), place(&system.bpffs)],
        ["TCP congestion controls".into(), system.congestion_controls.join(" ")],
        ["this process".into(), may],
    ];
    let row = |f: &Feature| {
        let then = match (f.present, f.without) {
            (true, _) => "",
            (false, Some(instead)) => instead,
            (false, None) => "none: required",
        };
        let here = if f.present { "yes" } else { "no" };
        [f.name.into(), f.used_by.join(", "), f.since.into(), here.into(), then.into()]
    };
    let head = ["feature", "used by", "since", "present", "substitute"].map(|name| (name, Align::Left));
    let features: Vec<_> = system.features.iter().map(row).collect();
    let top_head = ["this host", ""].map(|name| (name, Align::Left));
    format!("{}\n{}", table(top_head, &top), table(head, &features))
}
