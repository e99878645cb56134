//! Entry points to the daemon's parsers of outside bytes, for the fuzz targets (`fuzz/src/daemon.rs`). None of them
//! asks the kernel.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::daemon::commands::config::Config;
use crate::daemon::commands::run::control::{ControlReply, serve_client};
use crate::daemon::commands::snapshot::Snapshot;
use crate::daemon::commands::{cli, http, metrics, status};
use crate::daemon::kernel::interface::{Bytes, CsigCounts, HostCounters, HostRecord, HostSummary, Request};
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::kernel::{hook, laws};
use crate::daemon::options::error::one_line;
use crate::daemon::options::{TagFormat, TagRole, TagSignal};
use crate::daemon::roles::csig::TagStatus;
use crate::daemon::roles::host::{CounterStatus, Summary, parse_records};
use crate::daemon::roles::router::LinkStatus;

/// Parses the text of a configuration file and describes its setup.
///
/// # Errors
/// The sentence that `waterfilld check` prints.
pub fn config(text: &str) -> Result<String, String> {
    Config::parse(Path::new("f.toml"), text).map(|config| config.summary()).map_err(|why| one_line(&why))
}

/// Parses a command line. The first word is the name of the program.
///
/// # Errors
/// The exit code and what is printed.
pub fn arguments(words: &[&str]) -> Result<(), (u8, String)> {
    cli::check_words(words)
}

/// Serves bytes at the control socket as a client that closes after sending. Returns the answer and the number of
/// requests to the daemon.
///
/// # Errors
/// The sockets failed.
pub fn control(bytes: &[u8]) -> std::io::Result<(Vec<u8>, u32)> {
    let (mut client, server) = UnixStream::pair()?;
    client.write_all(bytes)?;
    client.shutdown(std::net::Shutdown::Write)?;
    let asked = AtomicU32::new(0);
    let served = serve_client(&server, &|command| {
        asked.fetch_add(1, Ordering::Relaxed);
        Some(ControlReply::ok(format!("{command:?}")))
    });
    drop(server);
    let mut answer = Vec::new();
    let read = client.read_to_end(&mut answer);
    // A socket that closes before it has read everything is reset, and what was refused has no answer.
    read.map(|_| ()).or(served)?;
    Ok((answer, asked.into_inner()))
}

/// Parses the answer of a daemon as `waterfilld reload` does. Returns the exit code and the sentence, or `None` for an
/// invalid answer.
#[must_use]
pub fn reply(answer: &str) -> Option<(u8, String)> {
    ControlReply::parse(answer).map(ControlReply::into_parts)
}

/// Returns the status and body of the response to an HTTP request for metrics, or `None` if the request is incomplete
/// or too long.
#[must_use]
pub fn scrape(bytes: &[u8]) -> Option<(&'static str, String)> {
    let request = http::read_request(&mut &*bytes).ok()?;
    let response = metrics::respond(&request, || Ok(Snapshot::default()));
    Some((response.status, response.body))
}

/// Reads a structure from the start of `bytes`. Missing bytes are zero.
fn take<T: Bytes + Default>(bytes: &mut &[u8]) -> T {
    let mut value = T::default();
    let n = bytes.len().min(size_of::<T>());
    let (head, rest) = bytes.split_at(n);
    value.as_bytes_mut()[..n].copy_from_slice(head);
    *bytes = rest;
    value
}

/// Formats the contents of maps as `status` and the metrics do: a link, devices with tags, sums, counts, and
/// connections.
///
/// # Errors
/// The sentence about contents that are no daemon's.
pub fn state(mut bytes: &[u8]) -> Result<[String; 4], String> {
    let all: Vec<_> = laws::all().collect();
    let which = bytes.split_first().map_or(0, |(first, rest)| {
        bytes = rest;
        usize::from(*first)
    });
    let law = all[which % all.len()];
    let mut request: Request = take(&mut bytes);
    request.ifindex = 0; // of no device: its name is that of the map
    let link = LinkStatus::of(law, &request, hook::Chain::default());
    let counters = CounterStatus::new(law, &take::<HostCounters>(&mut bytes));
    let sums = take::<HostSummary>(&mut bytes);
    let tags: CsigCounts = take(&mut bytes);
    let tags = TagStatus {
        device: link.device.clone(),
        ifindex: 0,
        role: TagRole::Inside,
        format: TagFormat::Wide,
        signal: TagSignal::of(which as u32),
        value: Some(TagSignal::of(which as u32).value(tags.pushed)),
        code: Some(1),
        pushed: tags.pushed,
        compared: tags.compared,
        replaced: tags.replaced,
        popped: tags.popped,
        stripped: tags.stripped,
        stored: tags.stored,
        too_long: tags.too_long,
        other: tags.other,
        failed: tags.failed,
    };
    let summary = Summary::parse(law, sums.as_bytes(), counters.clone()).map_err(|e| format!("{e:#}"))?;
    let whole = bytes.len() / size_of::<HostRecord>() * size_of::<HostRecord>();
    let listed = if which % 2 == 0 { whole } else { bytes.len() };
    let flows = parse_records(law, &bytes[..listed]).map_err(|e| format!("{e:#}"))?;
    let mut total = counters.clone();
    total.add(&counters);
    let roles = [Role::Host, Role::Router, Role::Csig].map(Role::name).into();
    let now = Snapshot {
        roles,
        links: vec![link],
        flows,
        counters: Some(total),
        csig: vec![tags],
        summaries: vec![summary],
        ..Snapshot::default()
    };
    let json = serde_json::to_string(&now).map_err(|e| e.to_string())?;
    let scraped = metrics::respond(&http::HttpRequest::new("GET /metrics HTTP/1.1\r\n\r\n"), || Ok(now.clone()));
    let [narrow, wide] = [Some(80), None].map(|width| status::tables(&now, &Pins::none(), width));
    Ok([narrow, wide, json, scraped.body])
}
