//! The far end of a check: receives data, counts packets with the option, and reports the counts.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::watch::Watch;
use super::{REPORT, Report, SEND};

/// Maximum number of open connections. Further connections are closed at once.
const CONNECTIONS_MAX: usize = 16;
/// Maximum lifetime of a connection; [`SILENCE`] limits its idle time.
const LIFETIME: Duration = Duration::from_secs(90);
const SILENCE: Duration = Duration::from_secs(15);
const LINE_MAX: u64 = 64;

/// Answers checks until a signal ends the process.
pub(super) fn run(port: u16) -> Result<()> {
    let listener = listen(port).with_context(|| format!("port {port}"))?;
    let watch = match Watch::start(port) {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!("packets cannot be watched, so only the rate is known: {error}");
            None
        }
    };
    let (watch, open) = (Arc::new(watch), Arc::new(AtomicUsize::new(0)));
    tracing::info!("answering check-path on port {port}");
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (watch, open) = (Arc::clone(&watch), Arc::clone(&open));
        std::thread::spawn(move || {
            if let Err(error) = answer(&stream, watch.as_ref().as_ref()) {
                tracing::debug!("a connection ended: {error}");
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// Listens on all IPv6 and IPv4 addresses, or on IPv4 only if the host has no IPv6.
fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
        .or_else(|_| TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], port))))
}

fn answer(mut stream: &TcpStream, watch: Option<&Watch>) -> io::Result<()> {
    let began = Instant::now();
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let peer = stream.peer_addr()?;
    let (host, later) = (peer.ip().to_canonical(), peer.port());
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    if let Some(port) = line.strip_prefix(REPORT) {
        let port = port.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let report = Report { seen: watch.map(|watch| watch.of((host, port), (host, later))) };
        let mut text = serde_json::to_vec(&report)?;
        text.push(b'\n');
        return stream.write_all(&text);
    }
    if !line.starts_with(SEND) {
        return Ok(());
    }
    let mut buffer = vec![0; 1 << 16];
    while began.elapsed() < LIFETIME && reader.read(&mut buffer)? > 0 {}
    Ok(())
}
