//! `waterfilld events`: lists the fallbacks and returns of connections, with the evidence.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::cli::EventsCommand;
use super::config::Config;
use super::output::print;
use crate::daemon::kernel::pins::Pins;
use crate::daemon::kernel::{laws, privileges};
use crate::daemon::options::error::user_error;
use crate::daemon::options::quantity::show_utc;
use crate::daemon::roles::host::{EventReader, FlowEvent, Reading};

/// Version of the JSON lines. It grows when a key is renamed, removed or gets another meaning.
const SCHEMA_VERSION: u32 = 1;
/// Interval at which `--follow` reads new events.
const INTERVAL: Duration = Duration::from_millis(200);
/// Columns of the table before the evidence, with their widths.
const COLUMNS: [(&str, usize); 6] =
    [("time (UTC)", 23), ("law", 10), ("local", 21), ("remote", 21), ("event", 8), ("reason", 9)];

/// A line of `--json`.
#[derive(Debug, Serialize)]
struct Line<T> {
    schema_version: u32,
    #[serde(flatten)]
    content: T,
}

/// Content of a line that counts the events that were overwritten before they were read.
#[derive(Debug, Serialize)]
struct Gap {
    event: &'static str,
    law: &'static str,
    lost: u64,
}

/// Prints the events of all pinned laws, and with `--follow` those that follow until a signal ends the process.
pub(crate) fn run(command: &EventsCommand) -> Result<()> {
    privileges::check()?;
    let folder = match &command.config {
        Some(file) => Config::read(file)?.pins,
        None => command.pins.pins.clone(),
    };
    let pins = Pins::find(folder)?.unwrap_or_else(Pins::none);
    let mut readers = Vec::new();
    for law in laws::all() {
        readers.extend(EventReader::pinned(law, &pins.of(law))?.map(|reader| (law.name, reader)));
    }
    if readers.is_empty() {
        let text = format!("no host has events here ({}); start `waterfilld host` without --no-pin", pins.describe());
        return Err(user_error(text));
    }
    if !command.json {
        print(&row(&COLUMNS.map(|(name, _)| name.to_owned()), "evidence"))?;
    }
    loop {
        let mut text = String::new();
        let mut events = Vec::new();
        for (law, reader) in &mut readers {
            let Reading { events: new, lost } = reader.read()?;
            events.extend(new);
            if lost > 0 {
                text += &lost_line(command.json, law, lost)?;
            }
        }
        events.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        for event in &events {
            text += &line(command.json, event)?;
        }
        if !command.follow {
            return print(&text);
        }
        let mut out = io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            return Ok(()); // a reader that closed the pipe has seen enough
        }
        thread::sleep(INTERVAL);
    }
}

fn line(json: bool, event: &FlowEvent) -> Result<String> {
    if json {
        return Ok(serde_json::to_string(&Line { schema_version: SCHEMA_VERSION, content: event })? + "\n");
    }
    let FlowEvent { time_s, law, local, remote, event: kind, brief, .. } = event;
    let cells = [&show_utc(*time_s), *law, local, remote, *kind, *brief].map(ToOwned::to_owned);
    Ok(row(&cells, &event.describe_evidence()))
}

fn lost_line(json: bool, law: &'static str, lost: u64) -> Result<String> {
    if json {
        let content = Gap { event: "lost", law, lost };
        return Ok(serde_json::to_string(&Line { schema_version: SCHEMA_VERSION, content })? + "\n");
    }
    Ok(format!("{law}: {lost} earlier events were overwritten\n"))
}

/// Formats a row. Columns have fixed widths, because later rows are not known.
fn row(cells: &[String; 6], evidence: &str) -> String {
    let cells = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:<width$}  "));
    format!("{}{evidence}", cells.collect::<String>()).trim_end().to_owned() + "\n"
}
