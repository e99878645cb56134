//! `waterfilld status`: shows links and connections as tables, as JSON, or as a live view.

mod tables;
mod watch;

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::daemon::commands::cli::StatusCommand;
use crate::daemon::commands::config::Config;
use crate::daemon::commands::snapshot::Snapshot;
use crate::daemon::kernel::pins::Pins;
use crate::daemon::kernel::privileges;
pub(crate) use tables::tables;

/// Time over which the tables measure a link's load.
const LOAD_WINDOW: Duration = Duration::from_millis(200);
/// Interval between two views of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum width of tables in characters.
const MIN_WIDTH: usize = 80;

/// Prints the state once, or repeatedly with `--watch`.
pub(crate) fn run(command: &StatusCommand) -> Result<()> {
    privileges::check()?;
    let folder = match &command.config {
        Some(file) => Config::read(file)?.pins,
        None => command.pins.pins.clone(),
    };
    let pins = Pins::find(folder)?.unwrap_or_else(Pins::none);
    let mut out = io::stdout().lock();
    let capable = out.is_terminal() && env::var_os("TERM").is_some_and(|term| term != "dumb");
    if command.watch && !command.json && capable && io::stdin().is_terminal() {
        drop(out);
        return watch::run(pins);
    }
    let terminal = out.is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    let width = (!command.wide).then(|| terminal.map_or(MIN_WIDTH, |(width, _)| MIN_WIDTH.max(width.into())));
    loop {
        let start = Instant::now();
        let mut now = Snapshot::pinned(&pins)?;
        if !command.json && !now.links.is_empty() {
            // The load of one interval jumps between nothing and full when packets come in bursts.
            thread::sleep(LOAD_WINDOW);
            let before = std::mem::replace(&mut now, Snapshot::pinned(&pins)?);
            measure_load(&mut now, &before);
        }
        let text = if command.json { serde_json::to_string(&now)? + "\n" } else { tables(&now, &pins, width) };
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() || !command.watch {
            return Ok(()); // a reader that closed the pipe has seen enough
        }
        thread::sleep(WATCH_INTERVAL.saturating_sub(start.elapsed()));
    }
}

/// Replaces each link's load in the last interval by its load since an earlier snapshot, if that snapshot has the link. Also
/// sets the share of packets without the option.
///
/// A link has the time at which it was read: a snapshot also lists connections, which takes as long as the load's window.
fn measure_load(now: &mut Snapshot, before: &Snapshot) {
    for link in &mut now.links {
        let same = |then: &&crate::daemon::roles::router::LinkStatus| {
            let grows = then.bytes <= link.bytes && then.packets <= link.packets && then.seen <= link.seen;
            (then.ifindex, then.law) == (link.ifindex, link.law) && grows
        };
        let then = before.links.iter().find(same);
        if let Some((then, (at, since))) = then.and_then(|then| Some((then, link.read.zip(then.read)?))) {
            let bits = 8.0 * (link.bytes - then.bytes) as f64;
            let elapsed = at.duration_since(since).as_secs_f64();
            link.load = Some(bits / elapsed.max(1e-9) / link.rate_bps.max(1) as f64);
            let (packets, with_option) = (link.packets - then.packets, link.seen - then.seen);
            link.unpriced = (packets > 0).then(|| 1.0 - with_option as f64 / packets as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::pins::Role;
    use crate::daemon::roles::router::LinkStatus;

    #[test]
    fn the_load_is_that_between_two_snapshots() {
        let start = Instant::now();
        let at = |ms, ifindex, bytes| {
            let read = Some(start + Duration::from_millis(ms));
            let (packets, seen) = (bytes / 10, bytes / 100);
            let link = LinkStatus {
                read,
                ifindex,
                bytes,
                packets,
                seen,
                rate_bps: 8_000,
                load: Some(5.0),
                ..LinkStatus::default()
            };
            Snapshot { links: vec![link], ..Snapshot::of(Role::Router) }
        };
        let load = |before: &Snapshot, mut now: Snapshot| {
            measure_load(&mut now, before);
            (now.links[0].load, now.links[0].unpriced)
        };
        assert_eq!(load(&at(0, 1, 1000), at(500, 1, 1250)), (Some(0.5), Some(1.0 - 2.0 / 25.0)));
        assert_eq!(load(&at(0, 2, 1000), at(500, 1, 1250)), (Some(5.0), None), "another link");
        assert_eq!(load(&at(0, 1, 1000), at(500, 1, 10)), (Some(5.0), None), "the link has restarted");
    }
}
