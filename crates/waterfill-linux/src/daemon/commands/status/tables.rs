//! Text tables of links, connections and CSIG devices, with a limited width.

use std::cmp::Reverse;
use std::fmt::Write as _;

use crate::daemon::commands::snapshot::Snapshot;
use crate::daemon::commands::table::{Column, fitted, fitted_without, wrapped};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::options::quantity::{show_count, show_rate, show_time, show_volume};
use crate::daemon::roles::csig::TagStatus;
use crate::daemon::roles::host::{CounterStatus, FlowStatus, NONE, PRICED, describe_silent};
use crate::daemon::roles::router::{LinkStatus, ShaperState};

/// Formats the state in lines of at most `width` characters. `None` keeps every column.
pub(crate) fn tables(snapshot: &Snapshot, pins: &Pins, width: Option<usize>) -> String {
    if snapshot.roles.is_empty() {
        return format!("nothing is loaded; {}\n", pins.describe());
    }
    let mut out = String::new();
    if snapshot.has(Role::Router) {
        out.push_str(&link_tables(&snapshot.links, width));
    }
    if snapshot.has(Role::Csig) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&tag_table(&snapshot.csig, width));
    }
    if snapshot.has(Role::Host) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&flow_tables(&snapshot.flows, width));
        if let Some(counters) = &snapshot.counters {
            out.push_str(&counter_lines(counters, width));
        }
        if !snapshot.silent_listeners.is_empty() {
            let silent = describe_silent(snapshot.silent_listeners.iter().map(String::as_str));
            out.push_str(&wrapped(&silent, width));
        }
    }
    out
}

/// Formats the links in one table per law.
fn link_tables(links: &[LinkStatus], width: Option<usize>) -> String {
    let mut out = String::new();
    for law in laws::all() {
        let links: Vec<_> = links.iter().filter(|link| link.law == law.name).collect();
        if !links.is_empty() {
            out.push_str(&link_table(law, &links, width));
        }
    }
    out
}

/// Formats the law's first signal of a link, unless it has not been computed yet.
pub(super) fn link_signal(law: &LoadableLaw, link: &LinkStatus) -> String {
    let value = law.link.first().and_then(|signal| link.signals.get(signal.name)).copied().unwrap_or(0.0);
    let text = link.shown.first().filter(|_| value != 0.0);
    text.map_or_else(|| NONE.into(), |(_, text)| text.clone())
}

/// Share of packets without the option above which they keep a full link's signal from falling.
const UNPRICED: f64 = 0.5;

fn link_table(law: &LoadableLaw, links: &[&LinkStatus], width: Option<usize>) -> String {
    let row = |link: &&LinkStatus| {
        let untouched = link.left_untouched.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let count = |n: u64| if width.is_some() { show_count(n) } else { n.to_string() };
        vec![
            link.device.clone(),
            show_rate(link.rate_bps),
            link.target.map_or_else(|| "own".into(), percent),
            link_signal(law, link),
            link.load.map_or_else(|| NONE.into(), percent),
            link.queue_bytes.map_or_else(|| NONE.into(), show_volume),
            count(link.packets),
            count(link.marked),
            count(link.starts),
            count(untouched),
        ]
    };
    let columns = [
        Column::words("link", 0, 8),
        Column::right("rate", 0),
        Column::right("target", 1),
        Column::right(law.link.first().map_or("", |signal| signal.title), 0),
        Column::right("load", 0),
        Column::right("queue", 0),
        Column::right("packets", 2),
        Column::right("marked", 0),
        Column::right("starts", 3),
        Column::right("untouched", 4),
    ];
    let mut out = fitted(&columns, &links.iter().map(row).collect::<Vec<_>>(), width);
    for link in links {
        let mut line = |text: String| out.push_str(&wrapped(&format!("{}: {text}", link.device), width));
        let reasons = link.left_untouched.iter().filter(|(_, n)| **n > 0);
        let reasons: Vec<String> = reasons.map(|(why, n)| format!("{n} {why}")).collect();
        if !reasons.is_empty() {
            line(format!("left untouched: {}", reasons.join(", ")));
        }
        if let Some(shaper) = link.shaper.as_ref().filter(|shaper| **shaper != ShaperState::Present) {
            line(format!("warning: its shaper is {shaper}, so the link is not limited to its rate"));
        }
        if let Some(share) = link.unpriced.filter(|share| *share > UNPRICED && link.load > link.target) {
            line(format!(
                "{} of its packets have no option and fill it beyond its target: they hold the {} up (see --cohabit)",
                percent(share),
                law.link.first().map_or("signal", |signal| signal.title)
            ));
        }
        if let Some(cohabit) = &link.cohabit {
            line(cohabit.to_string());
        }
        if let Some(scone) = &link.scone {
            line(scone.to_string());
        }
        if !link.programs_before.is_empty() {
            let others = link.programs_before.join(", ");
            line(format!("warning: {others} runs first and may keep packets from this router"));
        }
        if !link.programs_after.is_empty() {
            line(format!("then runs {}", link.programs_after.join(", ")));
        }
    }
    out
}

/// Formats the value that a device's tags would carry now, or [`NONE`] without a value.
pub(super) fn tag_value(tags: &TagStatus) -> String {
    tags.value.map_or_else(|| NONE.into(), |value| tags.signal.show(value))
}

/// Formats the devices of a CSIG domain as a table.
fn tag_table(tags: &[TagStatus], width: Option<usize>) -> String {
    let row = |tags: &TagStatus| {
        let count = |n: u64| if width.is_some() { show_count(n) } else { n.to_string() };
        let mut cells = vec![
            tags.device.clone(),
            tags.role.to_string(),
            tags.format.to_string(),
            tags.signal.to_string(),
            tag_value(tags),
        ];
        let counts = [tags.pushed, tags.compared, tags.replaced, tags.popped, tags.stripped, tags.stored];
        cells.extend(counts.map(count));
        cells
    };
    let columns = [
        Column::words("CSIG at", 0, 8),
        Column::left("role", 0),
        Column::left("tags", 2),
        Column::left("signal", 3),
        Column::right("value", 0),
        Column::right("pushed", 0),
        Column::right("compared", 0),
        Column::right("replaced", 0),
        Column::right("popped", 4),
        Column::right("stripped", 0),
        Column::right("stored", 5),
    ];
    let mut out = fitted(&columns, &tags.iter().map(row).collect::<Vec<_>>(), width);
    for tags in tags {
        let mut line = |text: String| out.push_str(&wrapped(&format!("{}: {text}", tags.device), width));
        if tags.too_long > 0 || tags.other > 0 {
            line(format!("left without a tag: {} too long, {} neither IPv4 nor IPv6", tags.too_long, tags.other));
        }
        if tags.failed > 0 {
            line(format!("warning: the kernel refused to change {} frames", tags.failed));
        }
    }
    out
}

/// Formats the connections in one table per law.
fn flow_tables(flows: &[FlowStatus], width: Option<usize>) -> String {
    let mut laws: Vec<&str> = flows.iter().map(|flow| flow.law).collect();
    laws.dedup();
    if laws.is_empty() {
        laws.push(laws::default().name);
    }
    let of = |law: &str| flows.iter().filter(|flow| flow.law == law).collect::<Vec<_>>();
    laws.into_iter().map(|law| flow_table(law, of(law), width)).collect::<Vec<_>>().join("\n")
}

/// Formats a connection's mode in the words of its law, with the reason of a fallback.
pub(super) fn mode(flow: &FlowStatus) -> String {
    let law = laws::find(flow.law).ok().filter(|_| flow.mode == PRICED);
    let mode = law.map_or(flow.mode.as_str(), |law| law.words.controlled);
    flow.fallback_brief.map_or_else(|| mode.into(), |why| format!("{mode} ({why})"))
}

/// Formats the rate that the law set, or [`NONE`] if TCP's own law sets it.
pub(super) fn rate(flow: &FlowStatus) -> String {
    if flow.rate_bps == 0 { NONE.into() } else { show_rate(flow.rate_bps) }
}

/// Formats a time in microseconds, or [`NONE`] for an unknown time of 0.
pub(super) fn microseconds(us: u32) -> String {
    if us == 0 { NONE.into() } else { show_time(f64::from(us) * 1e-6) }
}

fn flow_table(law: &str, mut flows: Vec<&FlowStatus>, width: Option<usize>) -> String {
    flows.sort_by_key(|flow| Reverse(flow.rate_bps));
    let row = |flow: &&FlowStatus| {
        let mut cells = vec![flow.local.clone(), flow.remote.clone(), mode(flow)];
        cells.extend(flow.shown.iter().map(|(_, text)| text.clone()));
        cells.extend([
            rate(flow),
            if flow.window_bytes == 0 { NONE.into() } else { show_volume(flow.window_bytes) },
            microseconds(flow.rtt_us),
            microseconds(flow.base_rtt_us),
            flow.state.into(),
            if flow.ca_initialized { "yes" } else { "no" }.into(),
            format!("{:#05x}", flow.flag_bits),
        ]);
        cells
    };
    let mut columns = vec![Column::words("local", 1, 14), Column::words("remote", 0, 14), Column::words("mode", 0, 11)];
    let signals = laws::find(law).map_or(&[][..], |law| law.source);
    // The path's signal stays; what the law makes of it goes first.
    columns.extend(signals.iter().enumerate().map(|(n, signal)| Column::right(signal.title, 5 * u8::from(n > 0))));
    columns.extend([
        Column::right("rate", 0),
        Column::right("window", 4),
        Column::right("RTT", 0),
        Column::right("base RTT", 3),
        Column::left("TCP", 2),
        Column::left("init", 6),
        Column::right("flags", 7),
    ]);
    // Which end is local says more than the RTT.
    fitted_without("RTT", &columns, &flows.iter().map(row).collect::<Vec<_>>(), width)
}

/// Formats the counts over all connections. Error counts appear only if they are not zero.
fn counter_lines(counters: &CounterStatus, width: Option<usize>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} connections started, {} controlled by routers", counters.started, counters.priced);
    let mut line = |text: String| out.push_str(&wrapped(&text, width));
    for (reason, n) in counters.fallbacks.iter().filter(|(_, n)| **n > 0) {
        line(format!("{n} fell back: {reason}"));
    }
    for (reason, n) in counters.returns.iter().filter(|(_, n)| **n > 0) {
        line(format!("{n} came back: {reason}"));
    }
    if counters.control_without_init > 0 {
        let (all, after_init) = (counters.control_without_init, counters.init_unrecorded);
        line(format!("{all} ran without an init, {after_init} of them initialised for the kernel"));
    }
    if counters.fallback_refused > 0 {
        line(format!("{} run our Reno, as the kernel keeps them on the law", counters.fallback_refused));
    }
    if counters.longer_paths > 0 {
        line(format!("{} times a path became longer", counters.longer_paths));
    }
    if counters.control_missed > 0 {
        line(format!("{} times echoes arrived and the kernel did not run the law", counters.control_missed));
    }
    if counters.no_memory > 0 {
        line(format!("{} have no state, as the kernel had no memory", counters.no_memory));
    }
    out
}

pub(super) fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::daemon::kernel::law::LawSignal;
    use crate::daemon::options::{TagFormat, TagRole, TagSignal};

    #[test]
    fn nothing_loaded_is_one_line() {
        let text = tables(&Snapshot::default(), &Pins::none(), Some(80));
        assert_eq!(text.lines().count(), 1);
        let json = serde_json::to_string(&Snapshot::default()).unwrap();
        assert_eq!(json, r#"{"roles":[],"links":[],"flows":[]}"#);
    }

    /// Returns a snapshot of a link and `flows` connections whose texts are as long as possible.
    pub(in super::super) fn widest(law: &'static LoadableLaw, flows: usize) -> Snapshot {
        let signals =
            |of: &'static [LawSignal]| of.iter().filter(|s| !s.is_arrival()).map(|s| (s.name, 123.4)).collect();
        let shown = |of: &'static [LawSignal]| of.iter().filter(|s| !s.is_arrival()).map(|s| (s.title, s.show(-123.4)));
        let left_untouched = ["not TCP", "fragment", "malformed", "no memory", "no option", "signed"];
        let link = LinkStatus {
            device: "enp129s0f0npabc".into(),
            rate_bps: 1_230_000_000,
            target: Some(0.94),
            law: law.name,
            signals: signals(law.link),
            shown: shown(law.link).collect(),
            load: Some(1.234),
            queue_bytes: Some(123_400_000),
            packets: 123_456_789_012,
            marked: 123_456_789_012,
            starts: 123_456_789,
            left_untouched: left_untouched.map(|why| (why.into(), 123_456_789_012)).into(),
            programs_before: vec!["first_of_all_15".into(), "second_of_all15".into()],
            programs_after: vec!["third_of_all_15".into(); 4],
            ..LinkStatus::default()
        };
        let address = |n: usize| format!("[2001:db8:1234:5678:9abc:def0:1234:{n:04x}]:50443");
        let flow = |n: usize| FlowStatus {
            local: address(n),
            remote: if n % 2 == 0 { address(n + 1) } else { "255.255.255.255:65535".into() },
            law: law.name,
            mode: if n % 3 == 0 { "fallen back" } else { PRICED }.into(),
            fallback_brief: (n % 3 == 0).then_some("no router"),
            signals: signals(law.source),
            shown: shown(law.source).collect(),
            rate_bps: 1_230_000_000,
            window_bytes: 123_400_000,
            rtt_us: 123_400,
            base_rtt_us: 123_400,
            state: "new-syn-received",
            flag_bits: 0xffff,
            ..FlowStatus::default()
        };
        let reason = "in a cgroup, a namespace or with a peer for which the law is not loaded";
        let counters = CounterStatus {
            started: 123_456_789,
            fallbacks: [(reason.into(), 123_456_789)].into(),
            ..CounterStatus::default()
        };
        let tags = TagStatus {
            device: "enp129s0f0npabc".into(),
            ifindex: 7,
            role: TagRole::Inside,
            format: TagFormat::Compact,
            signal: TagSignal::Price,
            value: Some(12.3456),
            code: Some(1_048_575),
            pushed: 123_456_789_012,
            compared: 123_456_789_012,
            replaced: 123_456_789_012,
            popped: 123_456_789_012,
            stripped: 123_456_789_012,
            stored: 123_456_789_012,
            too_long: 123_456_789_012,
            other: 123_456_789_012,
            failed: 123_456_789_012,
        };
        Snapshot {
            roles: vec!["router", "csig", "host"],
            csig: vec![tags],
            links: vec![link],
            flows: (0..flows).map(flow).collect(),
            counters: Some(counters),
            silent_listeners: (0..20).map(address).collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn every_line_fits_80_columns_whatever_the_law() {
        for law in laws::all() {
            for flows in [0, 4, 200] {
                let text = tables(&widest(law, flows), &Pins::none(), Some(80));
                let long = text.lines().find(|line| line.chars().count() > 80);
                assert_eq!(long, None, "{}:\n{text}", law.name);
                assert!(text.lines().count() > flows + 5, "{text}");
            }
            let wide = tables(&widest(law, 4), &Pins::none(), None);
            for name in ["stored", "compact", "untouched", "local", "base RTT", "flags", "123456789012", "0xffff"] {
                assert!(wide.contains(name), "{}: {name} is not in:\n{wide}", law.name);
            }
        }
    }

    #[test]
    fn a_full_link_says_what_fills_it() {
        let text = |load, unpriced, shaper| {
            let link =
                LinkStatus { load, target: Some(0.9), unpriced, shaper, ..widest(laws::default(), 0).links[0].clone() };
            link_table(laws::default(), &[&link], None)
        };
        let cause = "60.0 % of its packets have no option and fill it beyond its target: they hold the price up";
        assert!(text(Some(0.95), Some(0.6), None).contains(cause), "{}", text(Some(0.95), Some(0.6), None));
        for (load, unpriced) in [(0.85, Some(0.6)), (0.95, Some(0.4)), (0.95, None)] {
            assert!(!text(Some(load), unpriced, None).contains("hold the price up"), "{load} {unpriced:?}");
        }
        let shaper = Some(ShaperState::Replaced("pfifo 7:".into()));
        let wanted = "warning: its shaper is replaced by pfifo 7:, so the link is not limited to its rate";
        assert!(text(None, None, shaper).contains(wanted));
        assert!(!text(None, None, Some(ShaperState::Present)).contains("shaper is"));
    }

    #[test]
    fn links_and_connections_have_a_table_each() {
        let left_untouched = [("not TCP".into(), 3), ("fragment".into(), 0)].into();
        let link = LinkStatus {
            device: "eth1".into(),
            rate_bps: 1_000_000_000,
            target: Some(0.94),
            law: "maxnet",
            signals: [("price_s", 1.81)].into(),
            shown: vec![("price", "1.81 s".into())],
            left_untouched,
            programs_before: vec!["first_of_all".into()],
            programs_after: vec!["second".into(), "third".into()],
            ..LinkStatus::default()
        };
        let flow = FlowStatus {
            law: "maxnet",
            shown: vec![("price", "\u{2013}".into()), ("xi", "\u{2013}".into())],
            local: "10.0.0.1:80".into(),
            mode: "fallen back".into(),
            fallback_reason: Some("no echo arrives".into()),
            fallback_brief: Some("no echo"),
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
            fallbacks: [("no echo arrives".into(), 1), ("no router on the path writes a price".into(), 0)].into(),
            ..CounterStatus::default()
        };
        let roles = vec!["router", "host"];
        let both =
            Snapshot { roles, links: vec![link], flows: vec![flow], counters: Some(counters), ..Snapshot::default() };
        let text = tables(&both, &Pins::none(), None);
        for part in [
            "1 Gbit/s",
            "94.0 %",
            "1.81 s",
            "eth1: left untouched: 3 not TCP\n",
            "eth1: warning: first_of_all runs first and may keep packets from this router\n",
            "eth1: then runs second, third\n",
            "10.0.0.1:80",
            "fallen back (no echo)",
            "28.5 ms",
            "close-wait  yes   0x21e",
            "3 connections started, 2 controlled by routers\n1 fell back: no echo arrives\n",
            "4 ran without an init, 1 of them initialised for the kernel\n",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        for absent in ["0 fragment", "0 fell back", "no memory", "0 s ", "0 bit/s", "unknown"] {
            assert!(!text.contains(absent), "{text}");
        }
    }

    #[test]
    fn a_fallback_does_not_hide_which_end_is_local() {
        let flow = FlowStatus {
            law: "maxnet",
            local: "10.88.1.1:46842".into(),
            remote: "10.88.2.1:50123".into(),
            mode: "fallen back".into(),
            fallback_brief: Some("no router"),
            shown: vec![("price", "\u{2013}".into()), ("xi", "\u{2013}".into())],
            rate_bps: 45_000_000,
            rtt_us: 28_500,
            state: "established",
            ..FlowStatus::default()
        };
        let text = flow_table("maxnet", vec![&flow], Some(80));
        assert!(text.starts_with("local            remote           mode                     price"), "{text}");
        assert!(text.contains("fallen back (no router)") && !text.contains("RTT"), "{text}");
        let priced = FlowStatus { mode: PRICED.into(), fallback_brief: None, ..flow };
        let text = flow_table("maxnet", vec![&priced], Some(80));
        assert!(text.starts_with("local") && text.contains("RTT"), "{text}");
    }

    #[test]
    fn tags_have_a_row_for_each_device() {
        let none = TagStatus {
            device: "ta".into(),
            ifindex: 1,
            role: TagRole::Edge,
            format: TagFormat::Wide,
            signal: TagSignal::Price,
            value: None,
            code: None,
            pushed: 0,
            compared: 0,
            replaced: 0,
            popped: 0,
            stripped: 512,
            stored: 500,
            too_long: 0,
            other: 0,
            failed: 0,
        };
        let mut inside = TagStatus { device: "t2".into(), role: TagRole::Inside, value: Some(6.45), ..none.clone() };
        (inside.pushed, inside.compared, inside.replaced, inside.stripped, inside.too_long) = (900, 890, 7, 0, 3);
        let both = Snapshot { roles: vec!["csig"], csig: vec![inside, none], ..Snapshot::default() };
        let text = tables(&both, &Pins::none(), Some(80));
        let wanted = "\
CSIG at  role    tags  signal   value  pushed  compared  replaced  stripped
t2       inside  wide  price   6.45 s     900       890         7         0
ta       edge    wide  price        \u{2013}       0         0         0       512
t2: left without a tag: 3 too long, 0 neither IPv4 nor IPv6
";
        assert_eq!(text, wanted);
        let json = serde_json::to_value(&both).unwrap();
        assert_eq!((&json["csig"][1]["role"], &json["csig"][1]["value"]), (&"edge".into(), &serde_json::Value::Null));
    }

    #[test]
    fn a_role_without_connections_has_a_heading() {
        let text = tables(&Snapshot::of(Role::Host), &Pins::none(), Some(80));
        assert!(text.contains("remote") && text.lines().count() == 1, "{text}");
    }
}
