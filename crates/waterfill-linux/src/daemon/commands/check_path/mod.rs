//! `waterfilld check-path`: measures a path with and without a law, and finds where the option is lost.
//!
//! Both laws send for the same time over a connection of their own. A packet socket at this end, and one at the far end if
//! `check-path --serve` runs there, count packets with the option. [`findings`] compares the counts. Each connection ends
//! with a reset, so that nothing has to drain; the far end's counts come over another one.

mod findings;
mod serve;
mod socket;
mod watch;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};

use crate::daemon::commands::cli::CheckPathCommand;
use crate::daemon::commands::table::{Align, table};
use crate::daemon::options::error::user_error;
use crate::daemon::options::quantity::{show_rate, show_time};
use findings::Finding;
use watch::{Connection, Watch};

/// Start of the line that a connection sends to `check-path --serve` before its data.
const SEND: &str = "waterfill-check send";
const REPORT: &str = "waterfill-check report";
/// Time limit for connecting, long enough for one or two lost SYNs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
const REPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for which one write waits for buffer space.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);
/// Interval at which acknowledgements are checked after all data has been written.
const POLL: Duration = Duration::from_millis(2);
const BUFFER_BYTES: usize = 1 << 16;

/// The far end's packet counts of a connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Report {
    /// Counts of the connection, or `None` if the far end may not watch packets.
    seen: Option<Connection>,
}

/// Measurement of one law.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    congestion_control: String,
    /// Error of the connection attempt, if it failed.
    error: Option<String>,
    connect_s: f64,
    /// Acknowledged rate over the last two thirds of the sending time, in bit/s.
    rate_bps: f64,
    #[serde(flatten)]
    info: socket::Info,
    here: Connection,
    far_end: Option<Connection>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    host: &'a str,
    address: SocketAddr,
    law: &'a str,
    /// True if `check-path --serve` answered.
    served: bool,
    baseline: Measured,
    measured: Measured,
    findings: Vec<Finding>,
    /// True if the law works for connections on the path.
    ok: bool,
}

/// Runs `waterfilld check-path`.
pub(crate) fn run(command: &CheckPathCommand) -> Result<()> {
    let Some(host) = &command.host else { return serve::run(command.port) };
    let law = command.congestion_control();
    require_law(&law)?;
    require_law(&command.baseline.0)?;
    let address = resolve(host, command.port)?;
    let watch = Watch::start(command.port).map_err(packet_socket_error)?;
    let measure = |law: &str| measure(command, law, address, &watch);
    // The law first: the baseline fills queues, and a router's price takes seconds to fall after that.
    let measured = measure(&law)?;
    let baseline = measure(&command.baseline.0)?;
    if let Some(error) = &baseline.error {
        bail!("{host}: port {}: {error}; start `waterfilld check-path --serve` there", command.port);
    }
    let served = baseline.far_end.is_some();
    let findings = findings::find(&baseline, &measured, served);
    let ok = findings.iter().all(|finding| finding.ok);
    let document = Document { host, address, law: command.law.name, served, baseline, measured, findings, ok };
    let text = if command.json { serde_json::to_string(&document)? + "\n" } else { describe(&document) };
    io::stdout().write_all(text.as_bytes())?;
    if !document.ok {
        // The findings have been printed: exit 1 without another line.
        std::process::exit(1);
    }
    Ok(())
}

/// Returns the error for a packet socket that cannot be opened, with advice if permission is missing.
fn packet_socket_error(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return user_error("no permission to read the options of packets; run check-path as root or with CAP_NET_RAW");
    }
    anyhow::Error::from(error).context("a packet socket")
}

/// Checks that the kernel's TCP offers the named congestion control.
fn require_law(name: &str) -> Result<()> {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = fs::read_to_string(list).with_context(|| list.to_owned())?;
    if names.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    let hint = if name.starts_with("bpf_") { "; start `waterfilld host`" } else { "" };
    let names = names.split_whitespace().collect::<Vec<_>>().join(", ");
    Err(user_error(format!("TCP has no congestion control {name}, only {names}{hint}")))
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| user_error(format!("{host}: no such host; type the name or address of the far end")))
}

/// Sends data with a law, then asks the far end for its packet counts. If the connection fails, only the error is
/// reported.
fn measure(command: &CheckPathCommand, law: &str, to: SocketAddr, watch: &Watch) -> Result<Measured> {
    let mut measured = Measured {
        congestion_control: law.to_owned(),
        error: None,
        connect_s: 0.0,
        rate_bps: 0.0,
        info: socket::Info::default(),
        here: Connection::default(),
        far_end: None,
    };
    let began = Instant::now();
    let stream = match socket::connect_with(law, to, CONNECT_TIMEOUT) {
        Ok(stream) => stream,
        Err(error) => {
            measured.error = Some(error.to_string());
            return Ok(measured);
        }
    };
    measured.connect_s = began.elapsed().as_secs_f64();
    let local = stream.local_addr()?;
    measured.rate_bps = send(&stream, command)?;
    measured.info = socket::info(&stream)?;
    // A reset: what is queued need not arrive, and the far end stops at once.
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&stream, sockopt::Linger, &at_once)?;
    drop(stream);
    let (report, later) = ask(&command.baseline.0, to, local.port()).unwrap_or((Report { seen: None }, local.port()));
    measured.far_end = report.seen;
    let host = local.ip().to_canonical();
    measured.here = watch.of((host, local.port()), (host, later));
    Ok(measured)
}

/// Sends zeros until the time or the volume is used up. Returns the rate over the last two thirds of the time, in
/// bit/s.
fn send(mut stream: &TcpStream, command: &CheckPathCommand) -> Result<f64> {
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut buffer = vec![0; BUFFER_BYTES];
    buffer[..SEND.len()].copy_from_slice(SEND.as_bytes());
    buffer[SEND.len()] = b'\n';
    let began = Instant::now();
    let (mut sent, mut first) = (0, None);
    while began.elapsed() < command.time {
        if sent >= command.volume.0 {
            // What was written may not have been sent yet.
            if socket::info(stream)?.bytes_acked >= sent {
                break;
            }
            std::thread::sleep(POLL);
            continue;
        }
        // The first words once, then zeros.
        let from = usize::try_from(sent).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES) % BUFFER_BYTES;
        match stream.write(&buffer[from..]) {
            Ok(n) => sent += n as u64,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            // A program that is no sink closes; what was measured counts.
            Err(_) => break,
        }
        if sent >= buffer.len() as u64 {
            buffer.fill(0);
        }
        if first.is_none() && began.elapsed() >= command.time / 3 {
            first = Some((Instant::now(), socket::info(stream)?.bytes_acked));
        }
    }
    let (since, acked) = first.unwrap_or((began, 0));
    let acked = socket::info(stream)?.bytes_acked.saturating_sub(acked);
    Ok(acked as f64 * 8.0 / since.elapsed().as_secs_f64().max(1e-3))
}

/// Asks the far end for its packet counts of the connection from `port`. Returns them with the port of the question.
fn ask(law: &str, to: SocketAddr, port: u16) -> Result<(Report, u16)> {
    let mut stream = socket::connect_with(law, to, CONNECT_TIMEOUT)?;
    let own = stream.local_addr()?.port();
    stream.set_read_timeout(Some(REPORT_TIMEOUT))?;
    stream.write_all(format!("{REPORT} {port}\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    let began = Instant::now();
    while answer.len() < BUFFER_BYTES && began.elapsed() < REPORT_TIMEOUT && !answer.ends_with(b"\n") {
        match stream.read(&mut buffer)? {
            0 => break,
            n => answer.extend_from_slice(&buffer[..n]),
        }
    }
    Ok((serde_json::from_slice(&answer)?, own))
}

/// Formats the result as text for people.
fn describe(document: &Document<'_>) -> String {
    let head = [
        ("law", Align::Left),
        ("rate", Align::Right),
        ("RTT", Align::Right),
        ("smallest", Align::Right),
        ("retransmissions", Align::Right),
    ];
    let row = |measured: &Measured| {
        let info = &measured.info;
        if measured.error.is_some() {
            return [measured.congestion_control.clone(), "–".into(), "–".into(), "–".into(), "–".into()];
        }
        [
            measured.congestion_control.clone(),
            show_rate(measured.rate_bps as u64),
            show_time(info.rtt_s),
            show_time(info.min_rtt_s),
            format!("{} of {}", info.retransmissions, info.segments_sent),
        ]
    };
    let mut text = table(head, &[row(&document.baseline), row(&document.measured)]);
    for finding in &document.findings {
        let _ = writeln!(text, "{}: {}", if finding.ok { "ok" } else { "problem" }, finding.text);
    }
    text
}
