//! A small HTTP/1.1 server for `--metrics`: it answers GET and closes the connection.
//!
//! A client has [`REQUEST_TIME`] for its request and [`RESPONSE_TIME`] to take the answer, both in total. [`WORKERS`] clients
//! are served at the same time, so slow ones delay others only if that many are slow.
//!
//! Written here because the small HTTP crates tried (tiny_http 0.12, oxhttp 0.3) have no limit on a client's total time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::socket::{Shutdown, shutdown};

use crate::daemon::options::error::user_error;

/// Maximum number of clients served at the same time.
const WORKERS: usize = 16;
/// Time limit for a client's request.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Time limit for reading the response, equal to a scraper's usual timeout.
const RESPONSE_TIME: Duration = Duration::from_secs(10);
/// Pause of a thread after a failed accept().
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum size of a request in bytes, more than any scraper sends.
const MAX_REQUEST_BYTES: usize = 8192;

/// An HTTP request.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    /// Request line and header fields.
    head: String,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    /// Status code and reason, such as "200 OK".
    pub(crate) status: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl HttpRequest {
    /// Creates a request with these header lines.
    pub(crate) fn new(head: impl Into<String>) -> Self {
        Self { head: head.into() }
    }

    /// Returns the path of a GET request without its query, or `None` for any other request.
    pub(crate) fn path(&self) -> Option<&str> {
        let mut words = self.head.lines().next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        (method == "GET" && words.next()?.starts_with("HTTP/1.")).then(|| target.split('?').next().unwrap_or(target))
    }

    /// Returns true if the header names this media type.
    pub(crate) fn mentions(&self, media_type: &str) -> bool {
        self.head.contains(media_type)
    }
}

/// Binds the server's socket. A failure is a user error that names the option or key `name`.
pub(crate) fn listen(name: &str, address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| user_error(format!("{name} {address}: {e}")))
}

/// A running HTTP server.
#[derive(Debug)]
pub(crate) struct Server {
    socket: TcpListener,
    stopped: Arc<AtomicBool>,
}

impl Server {
    /// Closes the listening socket. Clients that are being served still receive their answers.
    pub(crate) fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Linux makes accept() return in all threads.
        if let Err(e) = shutdown(self.socket.as_raw_fd(), Shutdown::Both) {
            tracing::debug!("metrics: {}", e.desc());
        }
    }
}

/// Serves the responses of `respond` in threads, until the server is stopped or the process ends.
pub(crate) fn serve(
    listener: TcpListener,
    respond: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
) -> io::Result<Server> {
    let stopped = Arc::new(AtomicBool::new(false));
    let server = Server { socket: listener.try_clone()?, stopped: Arc::clone(&stopped) };
    let shared = Arc::new((listener, respond, stopped));
    for _ in 0..WORKERS {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (listener, respond, stopped) = &*shared;
            while !stopped.load(Ordering::Relaxed) {
                let Ok((stream, _)) = listener.accept() else {
                    thread::sleep(ACCEPT_PAUSE); // such as no free descriptors
                    continue;
                };
                if let Err(e) = serve_client(&stream, respond) {
                    tracing::debug!("metrics: {e}"); // for example a client that hung up
                }
            }
        });
    }
    Ok(server)
}

fn serve_client(stream: &TcpStream, respond: &impl Fn(&HttpRequest) -> HttpResponse) -> io::Result<()> {
    let request = read_request(&mut Timed { stream, end: Instant::now() + REQUEST_TIME })?;
    let HttpResponse { status, content_type, body } = respond(&request);
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    Timed { stream, end: Instant::now() + RESPONSE_TIME }.write_all(text.as_bytes())
}

/// Reads a request up to the empty line that ends its header fields.
pub(crate) fn read_request(stream: &mut impl Read) -> io::Result<HttpRequest> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 1024]);
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = stream.read(&mut chunk)?;
        if n == 0 || bytes.len() + n > MAX_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&chunk[..n]);
    }
    Ok(HttpRequest::new(String::from_utf8_lossy(&bytes)))
}

/// A TCP stream whose reads and writes time out at `end`.
struct Timed<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that responds with the path of the request.
    fn server() -> SocketAddr {
        let listener = listen("--metrics", "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, |request| HttpResponse {
            status: "200 OK",
            content_type: "text/plain",
            body: request.path().unwrap_or("none").to_owned(),
        })
        .unwrap();
        address
    }

    /// Sends bytes to a server and returns its answer.
    fn exchange(server: SocketAddr, sent: &[u8]) -> String {
        let mut client = TcpStream::connect(server).unwrap();
        client.write_all(sent).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        let _ = client.read_to_string(&mut text); // reset, where the server does not read the request to its end
        text
    }

    #[test]
    fn a_get_has_a_path_and_nothing_else_has() {
        let path = |text: &str| HttpRequest::new(text).path().map(String::from);
        assert_eq!(path("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").as_deref(), Some("/metrics"));
        assert_eq!(path("GET /metrics?x=1 HTTP/1.0\r\n\r\n").as_deref(), Some("/metrics"));
        assert_eq!(path("GET / HTTP/1.1\r\n\r\n").as_deref(), Some("/"));
        for other in ["POST /metrics HTTP/1.1\r\n\r\n", "GET /metrics\r\n\r\n", "\r\n\r\n", ""] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn a_response_has_its_length_and_closes_the_connection() {
        let wanted = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n/a";
        assert_eq!(exchange(server(), b"GET /a HTTP/1.1\r\n\r\n"), wanted);
    }

    #[test]
    fn half_a_request_and_one_that_is_too_long_get_no_response() {
        let server = server();
        assert_eq!(exchange(server, b"GET /met"), "");
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(MAX_REQUEST_BYTES));
        assert_eq!(exchange(server, long.as_bytes()), "");
    }

    #[test]
    fn slow_clients_neither_delay_others_nor_stay() {
        let server = server();
        let start = Instant::now();
        // One byte per 50 ms: each read is quick, the whole request never ends.
        let slow: Vec<_> = (1..WORKERS)
            .map(|_| {
                thread::spawn(move || {
                    let mut client = TcpStream::connect(server).unwrap();
                    client.write_all(b"GET /a HTTP/1.1\r\nX: ").unwrap();
                    while client.write_all(b"x").is_ok() {
                        thread::sleep(Duration::from_millis(50));
                    }
                    start.elapsed()
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        for _ in 0..10 {
            assert!(exchange(server, b"GET /a HTTP/1.1\r\n\r\n").ends_with("/a"));
        }
        let served = start.elapsed();
        assert!(served < REQUEST_TIME, "waited {served:?} for slow clients");
        for client in slow {
            let lived = client.join().unwrap();
            assert!(lived >= REQUEST_TIME && lived < 2 * REQUEST_TIME, "a slow client was served for {lived:?}");
        }
    }

    #[test]
    fn an_address_in_use_is_the_users_error() {
        let first = listen("--metrics", "127.0.0.1:0".parse().unwrap()).unwrap();
        let why = listen("--metrics", first.local_addr().unwrap()).unwrap_err();
        assert!(why.is::<crate::daemon::options::error::UserError>(), "{why}");
        assert!(why.to_string().starts_with("--metrics 127.0.0.1:"), "{why}");
    }
}
