//! `waterfilld status`: links and connections as tables or JSON.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::cli::StatusCommand;
use super::host::{self, FlowStatus};
use super::pins::{Pins, Role};
use super::probe;
use super::quantity::{show_rate, show_time, show_volume};
use super::router::{self, LinkStatus};

/// What is known at one moment. `--line` and `status --json` print it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Snapshot {
    /// Which roles are loaded.
    pub(super) roles: Vec<&'static str>,
    pub(super) links: Vec<LinkStatus>,
    pub(super) flows: Vec<FlowStatus>,
}

impl Snapshot {
    /// Of a role without links or flows yet.
    pub(super) fn of(role: Role) -> Self {
        Self { roles: vec![role.name()], ..Self::default() }
    }

    /// What pins show, whether or not a daemon runs.
    fn pinned(pins: &Pins) -> Result<Self> {
        let mut out = Self::default();
        if pins.has(Role::Router) {
            if let Some(links) = router::pinned_links(pins)? {
                out = Self { links, ..Self::of(Role::Router) };
            }
        }
        if pins.has(Role::Host) {
            if let Some(flows) = host::pinned_flows(pins)? {
                out.roles.push(Role::Host.name());
                out.flows = flows;
            }
        }
        Ok(out)
    }

    fn tables(&self, pins: &Pins) -> String {
        if self.roles.is_empty() {
            return format!("nothing is loaded; {}\n", pins.shown());
        }
        let mut out = String::new();
        if self.roles.contains(&Role::Router.name()) {
            out.push_str(&links(&self.links));
        }
        if self.roles.contains(&Role::Host.name()) {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&flows(&self.flows));
        }
        out
    }
}

/// Shows it, once or every second.
pub(super) fn run(command: &StatusCommand) -> Result<()> {
    probe::check_privileges()?;
    let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
    let mut out = io::stdout().lock();
    let screen = command.watch && !command.json && out.is_terminal();
    loop {
        let begun = Instant::now();
        let mut now = Snapshot::pinned(&pins)?;
        if !command.json && !now.links.is_empty() {
            // The load of one interval is all or nothing when packets come in bursts.
            thread::sleep(LOOK);
            let before = std::mem::replace(&mut now, Snapshot::pinned(&pins)?);
            now.measure(&before, begun.elapsed());
        }
        let text = if command.json { serde_json::to_string(&now)? + "\n" } else { now.tables(&pins) };
        // Home, the text, then erase what an earlier, longer one left: nothing flickers.
        let text = if screen { format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")) } else { text };
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() || !command.watch {
            return Ok(()); // the reader has gone, or has what it wants
        }
        thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
    }
}

/// How long a load is looked at.
const LOOK: Duration = Duration::from_millis(200);

impl Snapshot {
    /// Has links show their load since an earlier look instead of the last interval's.
    fn measure(&mut self, before: &Self, elapsed: Duration) {
        for link in &mut self.links {
            let then = before.links.iter().find(|then| then.ifindex == link.ifindex && then.bytes <= link.bytes);
            if let Some(then) = then {
                let bits = 8.0 * (link.bytes - then.bytes) as f64;
                link.load = bits / elapsed.as_secs_f64() / link.rate_bps.max(1) as f64;
            }
        }
    }
}

fn links(links: &[LinkStatus]) -> String {
    let row = |link: &LinkStatus| {
        let untouched: u64 = link.left_untouched.values().sum();
        [
            link.device.clone(),
            show_rate(link.rate_bps),
            percent(link.target),
            show_time(link.price_s),
            percent(link.load),
            link.queue_bytes.map_or_else(|| "unknown".into(), show_volume),
            link.packets.to_string(),
            link.marked.to_string(),
            link.starts.to_string(),
            untouched.to_string(),
        ]
    };
    let head = ["link", "rate", "target", "price", "load", "queue", "packets", "marked", "starts", "untouched"];
    let head = head.map(|name| (name, if name == "link" { Side::Left } else { Side::Right }));
    let mut out = table(head, &links.iter().map(row).collect::<Vec<_>>());
    for link in links {
        let reasons = link.left_untouched.iter().filter(|(_, n)| **n > 0);
        let reasons: Vec<String> = reasons.map(|(why, n)| format!("{n} {why}")).collect();
        if !reasons.is_empty() {
            let _ = writeln!(out, "{}: left untouched: {}", link.device, reasons.join(", "));
        }
    }
    out
}

fn flows(flows: &[FlowStatus]) -> String {
    let row = |flow: &FlowStatus| {
        let microseconds = |us: u32| if us == 0 { "unknown".into() } else { show_time(f64::from(us) * 1e-6) };
        [
            flow.local.clone(),
            flow.remote.clone(),
            flow.fallback_reason.as_ref().map_or_else(|| flow.mode.clone(), |why| format!("{} ({why})", flow.mode)),
            show_time(flow.price_s),
            format!("{:.3}", flow.xi),
            show_rate(flow.rate_bps),
            show_volume(flow.window_bytes),
            microseconds(flow.rtt_us),
            microseconds(flow.base_rtt_us),
        ]
    };
    let head = ["local", "remote", "mode", "price", "xi", "rate", "window", "RTT", "base RTT"];
    let head =
        head.map(|name| (name, if matches!(name, "local" | "remote" | "mode") { Side::Left } else { Side::Right }));
    table(head, &flows.iter().map(row).collect::<Vec<_>>())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Where a column's text stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Columns as wide as their widest cell.
pub(super) fn table<const N: usize>(head: [(&str, Side); N], rows: &[[String; N]]) -> String {
    let mut lines = vec![head.map(|(name, _)| name.to_owned())];
    lines.extend_from_slice(rows);
    let widest = |c: usize| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths).zip(head).map(|((cell, width), (_, side))| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a".into(), "1 Gbit/s".into()], ["longer".into(), "5 Mbit/s".into()]];
        let shown = table([("link", Side::Left), ("rate", Side::Right)], &rows);
        assert_eq!(shown, "link        rate\na       1 Gbit/s\nlonger  5 Mbit/s\n");
    }

    #[test]
    fn nothing_loaded_is_said_in_a_line() {
        let said = Snapshot::default().tables(&Pins::none());
        assert_eq!(said.lines().count(), 1);
        let json = serde_json::to_string(&Snapshot::default()).unwrap();
        assert_eq!(json, r#"{"roles":[],"links":[],"flows":[]}"#);
    }

    #[test]
    fn links_and_connections_for_a_reader() {
        let left_untouched = [("not TCP".into(), 3), ("fragment".into(), 0)].into();
        let link = LinkStatus {
            device: "eth1".into(),
            rate_bps: 1_000_000_000,
            target: 0.94,
            price_s: 1.8125,
            left_untouched,
            ..LinkStatus::default()
        };
        let flow = FlowStatus {
            local: "10.0.0.1:80".into(),
            mode: "fallen back".into(),
            fallback_reason: Some("echoes have stopped".into()),
            rtt_us: 28_500,
            ..FlowStatus::default()
        };
        let both = Snapshot { roles: vec!["router", "host"], links: vec![link], flows: vec![flow] };
        let said = both.tables(&Pins::none());
        for part in [
            "1 Gbit/s",
            "94.0 %",
            "1.81 s",
            "unknown",
            "eth1: left untouched: 3 not TCP\n",
            "10.0.0.1:80",
            "fallen back (echoes have stopped)",
            "28.5 ms",
        ] {
            assert!(said.contains(part), "{part} is not in:\n{said}");
        }
        assert!(!said.contains("0 fragment"), "{said}");
    }

    #[test]
    fn a_load_is_what_came_between_two_looks() {
        let at = |ifindex, bytes| {
            let link = LinkStatus { ifindex, bytes, rate_bps: 8_000, load: 5.0, ..LinkStatus::default() };
            Snapshot { links: vec![link], ..Snapshot::of(Role::Router) }
        };
        let load = |before: &Snapshot, mut now: Snapshot| {
            now.measure(before, Duration::from_millis(500));
            now.links[0].load
        };
        assert_eq!(load(&at(1, 1000), at(1, 1250)), 0.5);
        assert_eq!(load(&at(2, 1000), at(1, 1250)), 5.0, "another link");
        assert_eq!(load(&at(1, 1000), at(1, 10)), 5.0, "the link began anew");
    }

    #[test]
    fn a_role_without_anything_yet_has_its_head() {
        let said = Snapshot::of(Role::Host).tables(&Pins::none());
        assert!(said.starts_with("local") && said.lines().count() == 1, "{said}");
    }
}
