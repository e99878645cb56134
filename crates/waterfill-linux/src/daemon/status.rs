//! `waterfilld status`: links and connections as tables or JSON.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::cli::StatusCommand;
use super::host::{CounterStatus, FlowStatus};
use super::law::{self, Law};
use super::pins::{Pins, Role};
use super::privileges;
use super::quantity::{show_rate, show_time, show_volume};
use super::router::LinkStatus;
use super::snapshot::Snapshot;
use super::table::{Align, table};

/// Time over which the tables measure a link's load.
const LOAD_WINDOW: Duration = Duration::from_millis(200);

/// Prints the state, once or every second.
pub(super) fn run(command: &StatusCommand) -> Result<()> {
    privileges::check()?;
    let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
    let mut out = io::stdout().lock();
    let screen = command.watch && !command.json && out.is_terminal();
    loop {
        let start = Instant::now();
        let mut now = Snapshot::pinned(&pins)?;
        if !command.json && !now.links.is_empty() {
            // The load of one interval jumps between nothing and full when packets come in bursts.
            thread::sleep(LOAD_WINDOW);
            let before = std::mem::replace(&mut now, Snapshot::pinned(&pins)?);
            measure_load(&mut now, &before, start.elapsed());
        }
        let text = if command.json { serde_json::to_string(&now)? + "\n" } else { tables(&now, &pins) };
        // Cursor home, the text, then erase what a longer one left: no flicker.
        let text = if screen { format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")) } else { text };
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() || !command.watch {
            return Ok(()); // a reader that closed the pipe has seen enough
        }
        thread::sleep(Duration::from_secs(1).saturating_sub(start.elapsed()));
    }
}

/// Replaces the last interval's load of each link by the load since an earlier snapshot.
fn measure_load(now: &mut Snapshot, before: &Snapshot, elapsed: Duration) {
    for link in &mut now.links {
        let then = before.links.iter().find(|then| then.ifindex == link.ifindex && then.bytes <= link.bytes);
        if let Some(then) = then {
            let bits = 8.0 * (link.bytes - then.bytes) as f64;
            link.load = Some(bits / elapsed.as_secs_f64() / link.rate_bps.max(1) as f64);
        }
    }
}

fn tables(snapshot: &Snapshot, pins: &Pins) -> String {
    if snapshot.roles.is_empty() {
        return format!("nothing is loaded; {}\n", pins.describe());
    }
    let mut out = String::new();
    if snapshot.has(Role::Router) {
        out.push_str(&link_tables(&snapshot.links));
    }
    if snapshot.has(Role::Host) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&flow_tables(&snapshot.flows));
        if let Some(counters) = &snapshot.counters {
            out.push_str(&counter_lines(counters));
        }
    }
    out
}

/// One table for each law.
fn link_tables(links: &[LinkStatus]) -> String {
    let mut out = String::new();
    for law in law::all() {
        let links: Vec<_> = links.iter().filter(|link| link.law == law.name).collect();
        if !links.is_empty() {
            out.push_str(&link_table(law, &links));
        }
    }
    out
}

fn link_table(law: &Law, links: &[&LinkStatus]) -> String {
    let row = |link: &&LinkStatus| {
        let untouched: u64 = link.left_untouched.values().sum();
        let mut cells =
            vec![link.device.clone(), show_rate(link.rate_bps), link.target.map_or_else(|| "own".into(), percent)];
        cells.push(link.shown.first().map_or_else(String::new, |(_, text)| text.clone()));
        cells.extend([
            link.load.map_or_else(|| "unknown".into(), percent),
            link.queue_bytes.map_or_else(|| "unknown".into(), show_volume),
            link.packets.to_string(),
            link.marked.to_string(),
            link.starts.to_string(),
            untouched.to_string(),
        ]);
        cells
    };
    let signal = law.link.first().map_or("", |signal| signal.title);
    let head = ["link", "rate", "target", signal, "load", "queue", "packets", "marked", "starts", "untouched"];
    let head = head.map(|name| (name, if name == "link" { Align::Left } else { Align::Right }));
    let mut out = table(head, &links.iter().map(row).collect::<Vec<_>>());
    for link in links {
        let reasons = link.left_untouched.iter().filter(|(_, n)| **n > 0);
        let reasons: Vec<String> = reasons.map(|(why, n)| format!("{n} {why}")).collect();
        if !reasons.is_empty() {
            let _ = writeln!(out, "{}: left untouched: {}", link.device, reasons.join(", "));
        }
        if let Some(cohabit) = &link.cohabit {
            let _ = writeln!(out, "{}: {cohabit}", link.device);
        }
        if let Some(scone) = &link.scone {
            let _ = writeln!(out, "{}: {scone}", link.device);
        }
        if !link.programs_before.is_empty() {
            let others = link.programs_before.join(", ");
            let _ =
                writeln!(out, "{}: warning: {others} runs first and may keep packets from this router", link.device);
        }
        if !link.programs_after.is_empty() {
            let _ = writeln!(out, "{}: then runs {}", link.device, link.programs_after.join(", "));
        }
    }
    out
}

/// One table for each law.
fn flow_tables(flows: &[FlowStatus]) -> String {
    let mut laws: Vec<&str> = flows.iter().map(|flow| flow.law).collect();
    laws.dedup();
    if laws.is_empty() {
        laws.push(law::default().name);
    }
    let of = |law: &str| flows.iter().filter(|flow| flow.law == law).collect::<Vec<_>>();
    laws.into_iter().map(|law| flow_table(law, &of(law))).collect::<Vec<_>>().join("\n")
}

fn flow_table(law: &str, flows: &[&FlowStatus]) -> String {
    let row = |flow: &&FlowStatus| {
        let microseconds = |us: u32| if us == 0 { "unknown".into() } else { show_time(f64::from(us) * 1e-6) };
        let mode =
            flow.fallback_reason.as_ref().map_or_else(|| flow.mode.clone(), |why| format!("{} ({why})", flow.mode));
        let mut cells = vec![flow.local.clone(), flow.remote.clone(), mode];
        cells.extend(flow.shown.iter().map(|(_, text)| text.clone()));
        cells.extend([
            show_rate(flow.rate_bps),
            show_volume(flow.window_bytes),
            microseconds(flow.rtt_us),
            microseconds(flow.base_rtt_us),
            flow.state.into(),
            if flow.ca_initialized { "yes" } else { "no" }.into(),
            format!("{:#05x}", flow.flag_bits),
        ]);
        cells
    };
    let signals = law::find(law).map_or(&[][..], |law| law.source).iter().map(|signal| signal.title);
    let head = ["local", "remote", "mode"].into_iter().chain(signals);
    let head = head.chain(["rate", "window", "RTT", "base RTT", "TCP", "init", "flags"]).map(|name| {
        (name, if matches!(name, "local" | "remote" | "mode" | "TCP" | "init") { Align::Left } else { Align::Right })
    });
    table(head.collect::<Vec<_>>(), &flows.iter().map(row).collect::<Vec<_>>())
}

/// The counts of all connections; what should not be only where it is.
fn counter_lines(counters: &CounterStatus) -> String {
    let mut out = format!("{} connections started, {} priced", counters.started, counters.priced);
    for (reason, n) in counters.fallbacks.iter().filter(|(_, n)| **n > 0) {
        let _ = write!(out, ", {n} fell back: {reason}");
    }
    out.push('\n');
    if counters.control_without_init > 0 {
        let (all, after_init) = (counters.control_without_init, counters.init_unrecorded);
        let _ = writeln!(out, "{all} ran without an init, {after_init} of them initialised for the kernel");
    }
    if counters.fallback_refused > 0 {
        let _ = writeln!(out, "{} run our Reno, as the kernel keeps them on the law", counters.fallback_refused);
    }
    if counters.no_memory > 0 {
        let _ = writeln!(out, "{} have no state, as the kernel had no memory", counters.no_memory);
    }
    out
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_loaded_is_one_line() {
        let text = tables(&Snapshot::default(), &Pins::none());
        assert_eq!(text.lines().count(), 1);
        let json = serde_json::to_string(&Snapshot::default()).unwrap();
        assert_eq!(json, r#"{"roles":[],"links":[],"flows":[]}"#);
    }

    #[test]
    fn links_and_connections_have_a_table_each() {
        let left_untouched = [("not TCP".into(), 3), ("fragment".into(), 0)].into();
        let link = LinkStatus {
            device: "eth1".into(),
            rate_bps: 1_000_000_000,
            target: Some(0.94),
            law: "maxnet",
            shown: vec![("price", "1.81 s".into())],
            left_untouched,
            programs_before: vec!["first_of_all".into()],
            programs_after: vec!["second".into(), "third".into()],
            ..LinkStatus::default()
        };
        let flow = FlowStatus {
            law: "maxnet",
            shown: vec![("price", "0 s".into()), ("xi", "0.000".into())],
            local: "10.0.0.1:80".into(),
            mode: "fallen back".into(),
            fallback_reason: Some("no echo arrives".into()),
            rtt_us: 28_500,
            state: "close-wait",
            flag_bits: 0x21e,
            ca_initialized: true,
            ..FlowStatus::default()
        };
        let counters = CounterStatus {
            started: 3,
            priced: 2,
            control_without_init: 4,
            init_unrecorded: 1,
            fallbacks: [("no echo arrives", 1), ("no router on the path writes a price", 0)].into(),
            ..CounterStatus::default()
        };
        let roles = vec!["router", "host"];
        let both = Snapshot { roles, links: vec![link], flows: vec![flow], counters: Some(counters) };
        let text = tables(&both, &Pins::none());
        for part in [
            "1 Gbit/s",
            "94.0 %",
            "1.81 s",
            "unknown",
            "eth1: left untouched: 3 not TCP\n",
            "eth1: warning: first_of_all runs first and may keep packets from this router\n",
            "eth1: then runs second, third\n",
            "10.0.0.1:80",
            "fallen back (no echo arrives)",
            "28.5 ms",
            "close-wait  yes   0x21e",
            "3 connections started, 2 priced, 1 fell back: no echo arrives\n",
            "4 ran without an init, 1 of them initialised for the kernel\n",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        for absent in ["0 fragment", "0 fell back", "no memory"] {
            assert!(!text.contains(absent), "{text}");
        }
    }

    #[test]
    fn the_load_is_that_between_two_snapshots() {
        let at = |ifindex, bytes| {
            let link = LinkStatus { ifindex, bytes, rate_bps: 8_000, load: Some(5.0), ..LinkStatus::default() };
            Snapshot { links: vec![link], ..Snapshot::of(Role::Router) }
        };
        let load = |before: &Snapshot, mut now: Snapshot| {
            measure_load(&mut now, before, Duration::from_millis(500));
            now.links[0].load
        };
        assert_eq!(load(&at(1, 1000), at(1, 1250)), Some(0.5));
        assert_eq!(load(&at(2, 1000), at(1, 1250)), Some(5.0), "another link");
        assert_eq!(load(&at(1, 1000), at(1, 10)), Some(5.0), "the link has restarted");
    }

    #[test]
    fn a_role_without_connections_has_a_heading() {
        let text = tables(&Snapshot::of(Role::Host), &Pins::none());
        assert!(text.starts_with("local") && text.lines().count() == 1, "{text}");
    }
}
