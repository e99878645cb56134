//! Metrics for Prometheus (`--metrics`), made from the state of links and connections.
//!
//! Labels are devices, reasons and modes, of which there are few. Connections are aggregated, never named: a busy host
//! would otherwise have a new time series for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::daemon::commands::http::{HttpRequest, HttpResponse};
use crate::daemon::commands::snapshot::{RunStatus, Snapshot};
use crate::daemon::kernel::pins::Role;
use crate::daemon::roles::host::Summary;
use crate::daemon::roles::router::{LinkStatus, ShaperState};
use crate::daemon::roles::scone::SconeStatus;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers GET /metrics with the current state, in the OpenMetrics format if the client accepts it. Other requests
/// receive an error.
pub(crate) fn respond(request: &HttpRequest, snapshot: impl FnOnce() -> Result<Snapshot, String>) -> HttpResponse {
    let answer = |status, content_type, body| HttpResponse { status, content_type, body };
    match request.path() {
        None => answer("400 Bad HttpRequest", PLAIN, "only GET /metrics is answered\n".into()),
        Some("/metrics") => match snapshot() {
            Ok(now) if request.mentions("application/openmetrics-text") => answer("200 OK", OPEN_METRICS, text(&now)),
            Ok(now) => answer("200 OK", PLAIN, plain(&text(&now))),
            Err(why) => answer("500 Internal Server Error", PLAIN, format!("{why}\n")),
        },
        Some(_) => answer("404 Not Found", PLAIN, "metrics are at /metrics\n".into()),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeviceLabel {
    device: String,
    law: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    device: String,
    law: &'static str,
    reason: String,
}

/// Labels of a link's signal; `signal` is its name in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LinkSignalLabel {
    device: String,
    law: &'static str,
    signal: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabel {
    law: &'static str,
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoleLabel {
    role: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LawLabel {
    law: &'static str,
}

/// Labels of a count of fallbacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FallbackLabel {
    law: &'static str,
    reason: String,
}

/// Labels of a quantile; `at` is the quantile's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuantileLabel {
    at: &'static str,
    law: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowSignalLabel {
    at: &'static str,
    law: &'static str,
    signal: &'static str,
}

/// Labels of a device in a CSIG domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TagLabel {
    device: String,
    format: String,
    role: String,
    signal: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TagSignalLabel {
    device: String,
    signal: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TagActionLabel {
    action: &'static str,
    device: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

type FloatGauge = Gauge<f64, AtomicU64>;

/// Formats the state as OpenMetrics text.
fn text(now: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("waterfill");
    let loaded = Family::<RoleLabel, Gauge>::default();
    for role in &now.roles {
        loaded.get_or_create(&RoleLabel { role }).set(1);
    }
    registry.register("loaded", "Loaded roles of this host", loaded);
    register_links(&mut registry, now);
    register_tags(&mut registry, now);
    register_flows(&mut registry, now);
    if let Some(run) = &now.run {
        register_run(&mut registry, run);
    }
    let mut out = String::new();
    // Writing to a String cannot fail; if it did, the missing "# EOF" would show it.
    let _ = encode(&mut out, &registry);
    out
}

/// A gauge of links: name, help, unit, and a function that reads the value if the link has one.
type LinkGauge = (&'static str, &'static str, fn() -> Unit, fn(&LinkStatus) -> Option<f64>);
/// A counter of links: name, help, and a function that reads the value.
type LinkCounter = (&'static str, &'static str, fn(&LinkStatus) -> u64);

const LINK_GAUGES: [LinkGauge; 7] = [
    (
        "link_price",
        "Congestion price that the link writes into packets",
        || Unit::Seconds,
        |link| link.signals.get(PRICE).copied(),
    ),
    ("link_load", "Arrival rate in the last interval over the link rate", ratio, |link| link.load),
    ("link_target", "Fraction of the link rate to fill", ratio, |link| link.target),
    ("link_rate", "Link rate, bytes per second", bytes_per_second, |link| Some(link.rate_bps as f64 / 8.0)),
    (
        "link_queue",
        "Queue at the device, where it can be read",
        || Unit::Bytes,
        |link| link.queue_bytes.map(|bytes| bytes as f64),
    ),
    ("link_cohabit_drop_probability", "Probability with which --cohabit drops or marks TCP packets", ratio, |link| {
        link.cohabit.as_ref().map(|cohabit| cohabit.drop_probability)
    }),
    (
        "link_scone_advice",
        "Advice that --scone writes into SCONE packets, bytes per second",
        bytes_per_second,
        |link| link.scone.as_ref().and_then(|scone| scone.advice_bps).map(|bps| bps as f64 / 8.0),
    ),
];
const LINK_COUNTERS: [LinkCounter; 4] = [
    ("link_packets", "Packets sent by the device", |link| link.packets),
    ("link_bytes", "Bytes sent on the link, overhead included", |link| link.bytes),
    ("link_marked_packets", "Packets into which the link wrote its law's value", |link| link.marked),
    ("link_start_rates", "Start rates granted", |link| link.starts),
];

fn ratio() -> Unit {
    Unit::Other("ratio".into())
}

fn bytes_per_second() -> Unit {
    Unit::Other("bytes_per_second".into())
}

fn register_links(registry: &mut Registry, now: &Snapshot) {
    let label = |link: &LinkStatus| DeviceLabel { device: link.device.clone(), law: link.law };
    for (name, help, unit, value) in LINK_GAUGES {
        let family = Family::<DeviceLabel, FloatGauge>::default();
        for link in &now.links {
            if let Some(value) = value(link) {
                family.get_or_create(&label(link)).set(value);
            }
        }
        registry.register_with_unit(name, help, unit(), family);
    }
    let shapers = Family::<DeviceLabel, Gauge>::default();
    for link in &now.links {
        if let Some(shaper) = &link.shaper {
            shapers.get_or_create(&label(link)).set((*shaper == ShaperState::Present).into());
        }
    }
    registry.register("link_shaper_present", "Whether the shaper is the root qdisc of its device: 1 or 0", shapers);
    let signals = Family::<LinkSignalLabel, FloatGauge>::default();
    for link in &now.links {
        for (signal, value) in &link.signals {
            signals.get_or_create(&LinkSignalLabel { device: link.device.clone(), law: link.law, signal }).set(*value);
        }
    }
    registry.register("link_signal", "What the link's law shows of it, in the unit that the name says", signals);
    for (name, help, value) in LINK_COUNTERS {
        let family = Family::<DeviceLabel, Counter>::default();
        for link in &now.links {
            family.get_or_create(&label(link)).inc_by(value(link));
        }
        registry.register(name, help, family);
    }
    let help = "TCP packets that --cohabit dropped or marked, to protect explicit flows";
    register_reasons(registry, now, "link_cohabit_packets", help, |link| {
        link.cohabit.iter().flat_map(|of| [("dropped", of.dropped), ("marked", of.marked)]).collect()
    });
    let help = "SCONE packets, by what --scone did with them";
    register_reasons(registry, now, "link_scone_packets", help, |link| {
        let counts = |of: &SconeStatus| {
            [
                ("seen", of.seen),
                ("lowered", of.lowered),
                ("held", of.held),
                ("malformed", of.malformed),
                ("no memory", of.no_memory),
            ]
        };
        link.scone.iter().flat_map(counts).collect()
    });
    let help = "Packets passed on unchanged, by reason; most have no option of the law";
    register_reasons(registry, now, "link_untouched_packets", help, |link| {
        link.left_untouched.iter().map(|(reason, n)| (reason.as_str(), *n)).collect()
    });
}

/// Registers a counter of packets by device, law and reason.
fn register_reasons(
    registry: &mut Registry,
    now: &Snapshot,
    name: &str,
    help: &str,
    counts: fn(&LinkStatus) -> Vec<(&str, u64)>,
) {
    let family = Family::<ReasonLabel, Counter>::default();
    for link in &now.links {
        for (reason, n) in counts(link) {
            let labels = ReasonLabel { device: link.device.clone(), law: link.law, reason: reason.into() };
            family.get_or_create(&labels).inc_by(n);
        }
    }
    registry.register(name, help, family);
}

fn register_tags(registry: &mut Registry, now: &Snapshot) {
    if !now.has(Role::Csig) {
        return;
    }
    let (devices, values) = (Family::<TagLabel, Gauge>::default(), Family::<TagSignalLabel, FloatGauge>::default());
    let frames = Family::<TagActionLabel, Counter>::default();
    for tags in &now.csig {
        let device = || tags.device.clone();
        let (role, format, signal) = (tags.role.to_string(), tags.format.to_string(), tags.signal.to_string());
        devices.get_or_create(&TagLabel { device: device(), format, role, signal }).set(1);
        if let Some(value) = tags.value {
            values.get_or_create(&TagSignalLabel { device: device(), signal: tags.signal.metric() }).set(value);
        }
        for (action, n) in tags.counts() {
            frames.get_or_create(&TagActionLabel { action, device: device() }).inc_by(n);
        }
    }
    registry.register(
        "csig_device",
        "Devices of a CSIG domain, with their role and the tags that they push: 1",
        devices,
    );
    let help = "What the device's tags would carry of its link now, in the unit that the name says";
    registry.register("csig_value", help, values);
    registry.register("csig_frames", "Frames at devices of a CSIG domain, by what was done with them", frames);
}

/// Registers the metrics of `waterfilld run`.
fn register_run(registry: &mut Registry, run: &RunStatus) {
    let number = |value: f64| {
        let gauge = FloatGauge::default();
        gauge.set(value);
        gauge
    };
    let help = "When the daemon started, since 1970";
    registry.register_with_unit("run_start_time", help, Unit::Seconds, number(run.started_s));
    let help = "Whether the file was applied when it was last read: 1 or 0";
    registry.register("run_file_applied", help, number(f64::from(u8::from(run.current))));
    let help = "Devices that the file names and that do not exist";
    registry.register("run_missing_devices", help, number(run.missing as f64));
    let reloads = Family::<ResultLabel, Counter>::default();
    for (result, n) in [("applied", run.applied), ("refused", run.refused), ("failed", run.failed)] {
        reloads.get_or_create(&ResultLabel { result }).inc_by(n);
    }
    registry.register("run_reloads", "Reloads: applied, refused as the file was wrong, failed in the kernel", reloads);
}

fn register_flows(registry: &mut Registry, now: &Snapshot) {
    if !now.has(Role::Host) {
        return; // a router has no connections
    }
    let (count, rate) = (Family::<ModeLabel, Gauge>::default(), Family::<ModeLabel, FloatGauge>::default());
    let fallen_back = Family::<FallbackLabel, Gauge>::default();
    // Not histograms: their counts may only grow, and connections end.
    let (price, signals) =
        (Family::<QuantileLabel, FloatGauge>::default(), Family::<FlowSignalLabel, FloatGauge>::default());
    for one in &now.summaries {
        let law = one.law.name;
        for (mode, (flows, rate_bps)) in &one.modes {
            let label = ModeLabel { law, mode };
            count.get_or_create(&label).set(*flows as i64);
            rate.get_or_create(&label).set(*rate_bps as f64 / 8.0);
        }
        for (reason, n) in &one.fallen_back {
            fallen_back.get_or_create(&FallbackLabel { law, reason: reason.clone() }).set(*n as i64);
        }
        let (Some(of), Some(signal)) = (one.signal, one.law.source.first().map(|signal| signal.name)) else { continue };
        for (at, value) in [("least", of.least), ("median", of.median), ("p90", of.p90), ("most", of.most)] {
            signals.get_or_create(&FlowSignalLabel { at, law, signal }).set(value);
            if signal == PRICE {
                price.get_or_create(&QuantileLabel { at, law }).set(value);
            }
        }
    }
    register_counters(registry, &now.summaries);
    registry.register("flows", "Connections that use an explicit law", count);
    let help = "Sum of the connections' rates, bytes per second";
    registry.register_with_unit("flows_rate", help, bytes_per_second(), rate);
    registry.register("flows_fallen_back", "Present connections that fell back, by reason", fallen_back);
    let help = "Path prices of the present connections that have received one";
    registry.register_with_unit("flows_price", help, Unit::Seconds, price);
    let help = "The path's signal at the present connections that have received one, in the unit that the name says";
    registry.register("flows_signal", help, signals);
}

/// Counts of connections by the reason of their fallback.
type Reasons = fn(&Summary) -> &BTreeMap<String, u64>;

/// JSON name of a signal that is a price.
const PRICE: &str = "price_s";

fn register_counters(registry: &mut Registry, summaries: &[Summary]) {
    type Count = fn(&Summary) -> u64;
    let plain: [(&str, &str, Count); 10] = [
        ("flows_started", "Connections that the law began to control", |one| one.counters.started),
        ("flows_priced", "Connections that got a value of a router", |one| one.counters.priced),
        ("flows_control_without_init", "Connections whose law ran without an init before it", |one| {
            one.counters.control_without_init
        }),
        ("flows_init_unrecorded", "Of these, connections that the kernel considers initialised", |one| {
            one.counters.init_unrecorded
        }),
        ("flows_without_state", "Runs of the law for sockets that have no state", |one| one.counters.without_state),
        ("flows_fallback_refused", "Connections that the kernel kept on the law", |one| one.counters.fallback_refused),
        ("flows_longer_paths", "Times that what looked like a queue was a longer path", |one| {
            one.counters.longer_paths
        }),
        ("flows_control_missed", "Times that echoes arrived and the kernel did not run the law", |one| {
            one.counters.control_missed
        }),
        ("flows_events_lost", "Fallbacks and returns that were overwritten before they were logged", |one| {
            one.events_lost
        }),
        ("flows_no_memory", "Connections for whose state the kernel had no memory", |one| one.counters.no_memory),
    ];
    for (name, help, value) in plain {
        let family = Family::<LawLabel, Counter>::default();
        for one in summaries {
            family.get_or_create(&LawLabel { law: one.law.name }).inc_by(value(one));
        }
        registry.register(name, help, family);
    }
    let by_reason: [(&str, &str, Reasons); 2] = [
        ("flows_fallbacks", "Connections that fell back, by reason", |one| &one.counters.fallbacks),
        ("flows_returns", "Times that connections came back to the law, by reason of the fallback", |one| {
            &one.counters.returns
        }),
    ];
    for (name, help, counts) in by_reason {
        let family = Family::<FallbackLabel, Counter>::default();
        for one in summaries {
            for (reason, n) in counts(one) {
                family.get_or_create(&FallbackLabel { law: one.law.name, reason: reason.clone() }).inc_by(*n);
            }
        }
        registry.register(name, help, family);
    }
}

/// Converts OpenMetrics text to Prometheus' older format, in which a counter's family and samples have the same name.
fn plain(open: &str) -> String {
    let mut counters: Vec<&str> = Vec::new();
    for line in open.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counters.push(name);
        }
    }
    let mut out = String::new();
    for line in open.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), rest) if counters.contains(&name) => {
                let _ = writeln!(out, "# {what} {name}_total {}", rest.unwrap_or_default());
            }
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::laws;
    use crate::daemon::options::{TagFormat, TagRole, TagSignal};
    use crate::daemon::roles::csig;
    use crate::daemon::roles::host::{CounterStatus, Quantiles};

    const OPEN: &str = "\
# HELP waterfill_link_price_seconds Price.
# TYPE waterfill_link_price_seconds gauge
# UNIT waterfill_link_price_seconds seconds
waterfill_link_price_seconds{device=\"a\"} 0.5
# HELP waterfill_link_packets Packets.
# TYPE waterfill_link_packets counter
waterfill_link_packets_total{device=\"a\"} 3
# EOF
";

    #[test]
    fn the_older_format_names_counters_by_their_samples() {
        let wanted = "\
# HELP waterfill_link_price_seconds Price.
# TYPE waterfill_link_price_seconds gauge
waterfill_link_price_seconds{device=\"a\"} 0.5
# HELP waterfill_link_packets_total Packets.
# TYPE waterfill_link_packets_total counter
waterfill_link_packets_total{device=\"a\"} 3
";
        assert_eq!(plain(OPEN), wanted);
    }

    fn ask(head: &str, snapshot: Result<Snapshot, String>) -> HttpResponse {
        respond(&HttpRequest::new(head), || snapshot)
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_asks_for() {
        let get = |accept: &str| ask(&format!("GET /metrics HTTP/1.1\r\n{accept}\r\n"), Ok(Snapshot::of(Role::Host)));
        let (old, new) = (get(""), get("Accept: application/openmetrics-text;version=1.0.0\r\n"));
        assert!(old.status == "200 OK" && old.content_type.starts_with("text/plain"), "{old:?}");
        assert!(!old.body.contains("# EOF"), "{old:?}");
        assert!(new.body.contains("waterfill_loaded{role=\"host\"} 1\n"), "{new:?}");
        assert!(new.content_type.contains("openmetrics-text") && new.body.ends_with("# EOF\n"), "{new:?}");
    }

    fn summary(law: &str) -> Summary {
        Summary {
            law: laws::find(law).unwrap(),
            modes: [("priced", (2, 2400)), ("asking", (1, 0))].into(),
            fallen_back: [("no echo arrives".into(), 3)].into(),
            signal: Some(Quantiles { least: 1.0, median: 2.0, p90: 3.0, most: 4.0 }),
            counters: CounterStatus::default(),
            events_lost: 0,
        }
    }

    fn assert_lines(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} is not in:\n{text}");
        }
    }

    #[test]
    fn connections_are_aggregated_law_by_law() {
        let text = text(&Snapshot { summaries: vec![summary("maxnet"), summary("rcp")], ..Snapshot::of(Role::Host) });
        assert_lines(
            &text,
            &[
                "waterfill_flows{law=\"maxnet\",mode=\"priced\"} 2",
                "waterfill_flows{law=\"rcp\",mode=\"asking\"} 1",
                "waterfill_flows_rate_bytes_per_second{law=\"maxnet\",mode=\"priced\"} 300.0",
                "waterfill_flows_fallen_back{law=\"maxnet\",reason=\"no echo arrives\"} 3",
                "waterfill_flows_price_seconds{at=\"p90\",law=\"maxnet\"} 3.0",
                "waterfill_flows_signal{at=\"most\",law=\"rcp\",signal=\"rate_heard_bps\"} 4.0",
            ],
        );
        assert!(!text.contains("flows_price_seconds{at=\"p90\",law=\"rcp\"}"), "RCP has no price:\n{text}");
    }

    #[test]
    fn connections_that_have_ended_stay_in_the_counters() {
        let counters = CounterStatus {
            started: 9,
            priced: 8,
            control_without_init: 2,
            init_unrecorded: 1,
            without_state: 3,
            no_memory: 4,
            fallback_refused: 5,
            longer_paths: 6,
            control_missed: 10,
            fallbacks: [("no echo arrives".into(), 5)].into(),
            returns: [("no echo arrives".into(), 7)].into(),
        };
        let summaries = vec![Summary { counters, events_lost: 11, ..summary("maxnet") }];
        let text = text(&Snapshot { summaries, ..Snapshot::of(Role::Host) });
        assert_lines(
            &text,
            &[
                "waterfill_flows_started_total{law=\"maxnet\"} 9",
                "waterfill_flows_priced_total{law=\"maxnet\"} 8",
                "waterfill_flows_control_without_init_total{law=\"maxnet\"} 2",
                "waterfill_flows_init_unrecorded_total{law=\"maxnet\"} 1",
                "waterfill_flows_without_state_total{law=\"maxnet\"} 3",
                "waterfill_flows_no_memory_total{law=\"maxnet\"} 4",
                "waterfill_flows_fallback_refused_total{law=\"maxnet\"} 5",
                "waterfill_flows_longer_paths_total{law=\"maxnet\"} 6",
                "waterfill_flows_control_missed_total{law=\"maxnet\"} 10",
                "waterfill_flows_events_lost_total{law=\"maxnet\"} 11",
                "waterfill_flows_fallbacks_total{law=\"maxnet\",reason=\"no echo arrives\"} 5",
                "waterfill_flows_returns_total{law=\"maxnet\",reason=\"no echo arrives\"} 7",
            ],
        );
    }

    #[test]
    fn a_queue_that_cannot_be_read_has_no_sample() {
        let link = |device: &str, queue_bytes| LinkStatus {
            device: device.into(),
            law: "maxnet",
            queue_bytes,
            ..LinkStatus::default()
        };
        let links = vec![link("a", Some(7)), link("b", None)];
        let text = text(&Snapshot { links, ..Snapshot::of(Role::Router) });
        assert!(text.contains("waterfill_link_queue_bytes{device=\"a\",law=\"maxnet\"} 7.0\n"), "{text}");
        assert!(!text.contains("waterfill_link_queue_bytes{device=\"b\""), "{text}");
        assert!(!text.contains("waterfill_flows"), "{text}");
    }

    #[test]
    fn a_link_with_a_shaper_says_whether_it_is_there() {
        let link =
            |device: &str, shaper| LinkStatus { device: device.into(), law: "maxnet", shaper, ..LinkStatus::default() };
        let replaced = ShaperState::Replaced("pfifo 8007:".into());
        let links = vec![link("a", Some(ShaperState::Present)), link("b", Some(replaced)), link("c", None)];
        let text = text(&Snapshot { links, ..Snapshot::of(Role::Router) });
        let found: Vec<_> = text.lines().filter(|line| line.starts_with("waterfill_link_shaper_present{")).collect();
        assert!(found.contains(&"waterfill_link_shaper_present{device=\"a\",law=\"maxnet\"} 1"), "{text}");
        assert!(found.contains(&"waterfill_link_shaper_present{device=\"b\",law=\"maxnet\"} 0"), "{text}");
        assert_eq!(found.len(), 2, "{text}");
    }

    #[test]
    fn tags_have_a_form_a_value_and_counters() {
        let tags = csig::TagStatus {
            device: "t2".into(),
            ifindex: 3,
            role: TagRole::End,
            format: TagFormat::Wide,
            signal: TagSignal::Price,
            value: Some(6.5),
            code: Some(7),
            pushed: 1,
            compared: 2,
            replaced: 3,
            popped: 4,
            stripped: 5,
            stored: 6,
            too_long: 7,
            other: 8,
            failed: 9,
        };
        let edge = csig::TagStatus { device: "ta".into(), value: None, ..tags.clone() };
        let text = text(&Snapshot { csig: vec![tags, edge], ..Snapshot::of(Role::Csig) });
        assert_lines(
            &text,
            &[
                "waterfill_loaded{role=\"csig\"} 1",
                "waterfill_csig_device{device=\"t2\",format=\"wide\",role=\"end\",signal=\"price\"} 1",
                "waterfill_csig_value{device=\"t2\",signal=\"price_s\"} 6.5",
                "waterfill_csig_frames_total{action=\"pushed\",device=\"t2\"} 1",
                "waterfill_csig_frames_total{action=\"compared\",device=\"t2\"} 2",
                "waterfill_csig_frames_total{action=\"replaced\",device=\"t2\"} 3",
                "waterfill_csig_frames_total{action=\"popped\",device=\"t2\"} 4",
                "waterfill_csig_frames_total{action=\"stripped\",device=\"t2\"} 5",
                "waterfill_csig_frames_total{action=\"stored\",device=\"t2\"} 6",
                "waterfill_csig_frames_total{action=\"too long\",device=\"t2\"} 7",
                "waterfill_csig_frames_total{action=\"other\",device=\"t2\"} 8",
                "waterfill_csig_frames_total{action=\"failed\",device=\"t2\"} 9",
            ],
        );
        assert!(!text.contains("waterfill_csig_value{device=\"ta\""), "an edge compares nothing:\n{text}");
    }

    #[test]
    fn the_life_of_the_daemon_is_its_reloads_and_what_it_waits_for() {
        let run = RunStatus { started_s: 1.5e9, applied: 3, refused: 2, failed: 1, current: false, missing: 4 };
        let text = text(&Snapshot { run: Some(run), ..Snapshot::of(Role::Router) });
        assert_lines(
            &text,
            &[
                "waterfill_run_start_time_seconds 1500000000.0",
                "waterfill_run_file_applied 0.0",
                "waterfill_run_missing_devices 4.0",
                "waterfill_run_reloads_total{result=\"applied\"} 3",
                "waterfill_run_reloads_total{result=\"refused\"} 2",
                "waterfill_run_reloads_total{result=\"failed\"} 1",
            ],
        );
    }

    #[test]
    fn other_requests_are_refused() {
        let answer = |head: &str| ask(head, Err("the kernel refused".into()));
        assert!(answer("GET /other HTTP/1.1\r\n\r\n").status.starts_with("404 "));
        assert!(answer("POST /metrics HTTP/1.1\r\n\r\n").status.starts_with("400 "));
        let refused = answer("GET /metrics HTTP/1.1\r\n\r\n");
        assert!(refused.status.starts_with("500 ") && refused.body == "the kernel refused\n", "{refused:?}");
    }
}
