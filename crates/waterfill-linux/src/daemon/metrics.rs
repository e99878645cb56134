//! `--metrics`: the state as Prometheus reads it, from one thread that answers one request at a time.
//!
//! Labels are devices, reasons and modes, of which there are few. Connections are counted and summed up, never named: a busy host
//! would have a new series for each.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::failure::wrong;
use super::pins::Role;
use super::router::LinkStatus;
use super::serve::Request;
use super::status::Snapshot;

/// Nobody may keep the next one waiting for longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// No scraper's request has so many bytes.
const REQUEST_BYTES: usize = 8192;
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A socket at the address, taken before anything is loaded.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| wrong(format!("--metrics {address}: {e}")))
}

/// Answers at `listener` as long as the process lives.
pub(super) fn serve(listener: TcpListener, owner: Sender<Request>) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!("metrics at http://{address}/metrics");
    }
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answered = stream.and_then(|stream| answer(stream, || ask(&owner)));
            if let Err(e) = answered {
                tracing::debug!("metrics: {e}"); // a scraper that hung up is its own affair
            }
        }
    });
}

/// The state, from the thread that owns it.
fn ask(owner: &Sender<Request>) -> Result<Snapshot, String> {
    let (reply, answer) = channel();
    owner.send(Request::Scrape(reply)).map_err(|_| "the daemon ends")?;
    answer.recv().map_err(|_| "the daemon ends")?
}

fn answer(mut stream: TcpStream, snapshot: impl FnOnce() -> Result<Snapshot, String>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = request(&mut stream)?;
    let (status, kind, body) = match path(&request) {
        None => ("400 Bad Request", PLAIN, "expected GET /metrics\n".into()),
        Some("/metrics") => match snapshot() {
            Ok(now) if request.contains("application/openmetrics-text") => ("200 OK", OPEN_METRICS, text(&now)),
            Ok(now) => ("200 OK", PLAIN, plain(&text(&now))),
            Err(why) => ("500 Internal Server Error", PLAIN, format!("{why}\n")),
        },
        Some(_) => ("404 Not Found", PLAIN, "metrics are at /metrics\n".into()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// The request's head, in lower case where it is read.
fn request(stream: &mut TcpStream) -> io::Result<String> {
    let begun = Instant::now();
    let (mut bytes, mut some) = (Vec::new(), [0; 1024]);
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = PATIENCE.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let n = stream.read(&mut some)?;
        if n == 0 || bytes.len() + n > REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&some[..n]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a GET asks for, without a query.
fn path(request: &str) -> Option<&str> {
    let mut words = request.lines().next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET" && words.next()?.starts_with("HTTP/1.")).then(|| target.split('?').next().unwrap_or(target))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Link {
    device: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Untouched {
    device: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Mode {
    mode: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Loaded {
    role: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct At {
    at: &'static str,
}

/// A value now.
type Real = Gauge<f64, std::sync::atomic::AtomicU64>;

/// OpenMetrics text.
fn text(now: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("waterfill");
    let loaded = Family::<Loaded, Gauge>::default();
    for role in &now.roles {
        loaded.get_or_create(&Loaded { role }).set(1);
    }
    registry.register("loaded", "Roles of this machine", loaded);
    links(&mut registry, now);
    flows(&mut registry, now);
    let mut out = String::new();
    // A String takes everything; were it to fail, a scraper sees the end missing.
    let _ = encode(&mut out, &registry);
    out
}

fn links(registry: &mut Registry, now: &Snapshot) {
    type Now = fn(&LinkStatus) -> Option<f64>;
    type Count = fn(&LinkStatus) -> u64;
    let gauges: [(&str, &str, Option<Unit>, Now); 5] = [
        ("link_price", "Price that the link puts on packets", Some(Unit::Seconds), |link| Some(link.price_s)),
        ("link_load", "Arrivals of the last interval over the rate", Some(Unit::Other("ratio".into())), |link| {
            Some(link.load)
        }),
        ("link_target", "Share of the rate that is aimed at", Some(Unit::Other("ratio".into())), |link| {
            Some(link.target)
        }),
        ("link_rate", "Rate of the link, bytes a second", Some(Unit::Other("bytes_per_second".into())), |link| {
            Some(link.rate_bps as f64 / 8.0)
        }),
        ("link_queue", "What waits at the device, where it can be read", Some(Unit::Bytes), |link| {
            link.queue_bytes.map(|bytes| bytes as f64)
        }),
    ];
    for (name, help, unit, value) in gauges {
        let family = Family::<Link, Real>::default();
        for link in &now.links {
            if let Some(value) = value(link) {
                family.get_or_create(&Link { device: link.device.clone() }).set(value);
            }
        }
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, family),
            None => registry.register(name, help, family),
        }
    }
    let counters: [(&str, &str, Count); 4] = [
        ("link_packets", "Packets that left by the device", |link| link.packets),
        ("link_bytes", "Bytes that they had on the link", |link| link.bytes),
        ("link_marked_packets", "Packets that carry this link's price", |link| link.marked),
        ("link_start_rates", "Start rates that were answered", |link| link.starts),
    ];
    for (name, help, value) in counters {
        let family = Family::<Link, Counter>::default();
        for link in &now.links {
            family.get_or_create(&Link { device: link.device.clone() }).inc_by(value(link));
        }
        registry.register(name, help, family);
    }
    let untouched = Family::<Untouched, Counter>::default();
    for link in &now.links {
        for (reason, n) in &link.left_untouched {
            let labels = Untouched { device: link.device.clone(), reason: reason.clone() };
            untouched.get_or_create(&labels).inc_by(*n);
        }
    }
    registry.register(
        "link_untouched_packets",
        "Packets that were left as they were, most of them because they are none of ours",
        untouched,
    );
}

fn flows(registry: &mut Registry, now: &Snapshot) {
    if !now.roles.contains(&Role::Host.name()) {
        return; // a router knows no connections
    }
    let (count, rate) = (Family::<Mode, Gauge>::default(), Family::<Mode, Real>::default());
    for flow in &now.flows {
        let mode = Mode { mode: flow.mode.clone() };
        count.get_or_create(&mode).inc();
        rate.get_or_create(&mode).inc_by(flow.rate_bps as f64 / 8.0);
    }
    registry.register("flows", "Connections that use the law", count);
    let unit = Unit::Other("bytes_per_second".into());
    registry.register_with_unit("flows_rate", "Sum of their rates, bytes a second", unit, rate);

    // Connections come and go, so what stands now is no histogram, whose counts only grow.
    let price = Family::<At, Real>::default();
    let mut prices: Vec<f64> = now.flows.iter().map(|flow| flow.price_s).collect();
    prices.sort_by(f64::total_cmp);
    if let Some(last) = prices.len().checked_sub(1) {
        for (at, share) in [("least", 0.0), ("median", 0.5), ("p90", 0.9), ("most", 1.0)] {
            price.get_or_create(&At { at }).set(prices[(share * last as f64).round() as usize]);
        }
    }
    registry.register_with_unit("flows_price", "Prices of paths, over the connections of now", Unit::Seconds, price);
}

/// The text format from before OpenMetrics, for those who do not ask for the newer: there a counter's family has its samples' name.
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
    use crate::daemon::host::FlowStatus;

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

    #[test]
    fn a_get_of_a_path() {
        assert_eq!(path("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some("/metrics"));
        assert_eq!(path("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Some("/metrics"));
        assert_eq!(path("GET / HTTP/1.1\r\n\r\n"), Some("/"));
        for other in ["POST /metrics HTTP/1.1\r\n\r\n", "GET /metrics\r\n\r\n", "\r\n\r\n", ""] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    /// What a client gets that sends these bytes and closes its side.
    fn exchange(sent: &[u8], snapshot: Result<Snapshot, String>) -> (String, io::Result<()>) {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(sent).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let served = answer(listener.accept().unwrap().0, || snapshot);
        let mut text = String::new();
        let _ = client.read_to_string(&mut text); // reset, where what was sent is not read to its end
        (text, served)
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_asks_for() {
        let get = |accept: &str| {
            exchange(format!("GET /metrics HTTP/1.1\r\n{accept}\r\n").as_bytes(), Ok(Snapshot::of(Role::Host))).0
        };
        let (old, new) = (get(""), get("Accept: application/openmetrics-text;version=1.0.0\r\n"));
        assert!(old.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain") && !old.contains("# EOF"), "{old}");
        assert!(new.contains("waterfill_loaded{role=\"host\"} 1\n"), "{new}");
        assert!(new.contains("openmetrics-text") && new.ends_with("# EOF\n"), "{new}");
    }

    #[test]
    fn connections_are_counted_and_summed_up() {
        let flow = |mode: &str, price_s, rate_bps| FlowStatus {
            mode: mode.into(),
            price_s,
            rate_bps,
            ..FlowStatus::default()
        };
        let flows = vec![flow("priced", 2.0, 800), flow("priced", 1.0, 1600), flow("asking", 0.0, 0)];
        let said = text(&Snapshot { flows, ..Snapshot::of(Role::Host) });
        for line in [
            "waterfill_flows{mode=\"priced\"} 2",
            "waterfill_flows{mode=\"asking\"} 1",
            "waterfill_flows_rate_bytes_per_second{mode=\"priced\"} 300.0",
            "waterfill_flows_price_seconds{at=\"least\"} 0.0",
            "waterfill_flows_price_seconds{at=\"median\"} 1.0",
            "waterfill_flows_price_seconds{at=\"most\"} 2.0",
        ] {
            assert!(said.lines().any(|found| found == line), "{line} is not in:\n{said}");
        }
    }

    #[test]
    fn a_queue_that_cannot_be_read_is_no_number() {
        let link =
            |device: &str, queue_bytes| LinkStatus { device: device.into(), queue_bytes, ..LinkStatus::default() };
        let links = vec![link("a", Some(7)), link("b", None)];
        let said = text(&Snapshot { links, ..Snapshot::of(Role::Router) });
        assert!(said.contains("waterfill_link_queue_bytes{device=\"a\"} 7.0\n"), "{said}");
        assert!(!said.contains("waterfill_link_queue_bytes{device=\"b\"}"), "{said}");
        assert!(!said.contains("waterfill_flows"), "{said}");
    }

    #[test]
    fn what_is_no_request_for_metrics_is_refused() {
        let said = |sent: &str| exchange(sent.as_bytes(), Err("the kernel refused".into()));
        assert!(said("GET /other HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404 "));
        assert!(said("POST /metrics HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 400 "));
        let refused = said("GET /metrics HTTP/1.1\r\n\r\n").0;
        assert!(refused.starts_with("HTTP/1.1 500 ") && refused.ends_with("the kernel refused\n"), "{refused}");
        assert!(said("GET /met").1.is_err());
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(REQUEST_BYTES));
        assert!(said(&long).1.is_err());
    }

    #[test]
    fn an_address_that_is_taken_is_the_users_to_put_right() {
        let first = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let why = listen(first.local_addr().unwrap()).unwrap_err();
        assert!(
            why.is::<super::super::failure::Wrong>() && why.to_string().starts_with("--metrics 127.0.0.1:"),
            "{why}"
        );
    }
}
