//! Control socket of `waterfilld run`, which `waterfilld reload` connects to.
//!
//! A client sends one line and gets one line: `ok TEXT`, or `error CODE TEXT` with the exit code for the client. A client
//! has [`REQUEST_TIME`] for its line and [`MAX_CLIENTS`] are served at the same time, each by a thread of its own, so none
//! keeps the daemon or another client waiting. The socket has mode 0600 in a folder of mode 0700, and only root and the
//! daemon's own user are answered.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

use crate::daemon::commands::cli::ReloadCommand;
use crate::daemon::commands::config::Config;
use crate::daemon::commands::output;
use crate::daemon::kernel::safety;
use crate::daemon::options::error::{UserError, exit_code_number, one_line, user_error};
use crate::daemon::options::file::check_socket_path;

/// Time limit for receiving a client's line, and for sending the answer.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Maximum time for which a client waits for the answer. A reload starts `tc` for each device.
const ANSWER_TIME: Duration = Duration::from_secs(120);
/// Maximum length of a client's line in bytes.
const MAX_LINE_BYTES: usize = 256;
/// Maximum length of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// Maximum number of clients served at the same time.
const MAX_CLIENTS: usize = 8;

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlCommand {
    /// Reload the configuration file.
    Reload,
    /// Describe the loaded programs.
    Status,
}

/// Answer to a client: an exit code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlReply {
    code: u8,
    text: String,
}

impl ControlReply {
    pub(crate) fn ok(text: String) -> Self {
        Self { code: 0, text }
    }

    /// Returns the line that is sent to the client.
    fn line(&self) -> String {
        let text = one_line(&self.text);
        if self.code == 0 { format!("ok {text}\n") } else { format!("error {} {text}\n", self.code) }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        if let Some(text) = line.strip_prefix("ok ") {
            return Some(Self::ok(text.into()));
        }
        let (code, text) = line.strip_prefix("error ")?.split_once(' ')?;
        Some(Self { code: code.parse().ok().filter(|code| *code != 0)?, text: text.into() })
    }
}

impl ControlReply {
    /// Returns the exit code and the sentence.
    pub(crate) fn into_parts(self) -> (u8, String) {
        (self.code, self.text)
    }
}

impl From<Result<String>> for ControlReply {
    fn from(result: Result<String>) -> Self {
        match result {
            Ok(text) => Self::ok(text),
            Err(e) => Self { code: exit_code_number(&e), text: format!("{e:#}") },
        }
    }
}

/// The control socket, listening at `path`.
#[derive(Debug)]
pub(super) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

/// Guard that removes the socket's file when dropped.
#[derive(Debug)]
pub(super) struct Served(PathBuf);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // the folder may have gone with the unit
    }
}

impl Listener {
    /// Binds the control socket. It replaces a socket that a dead daemon left, and fails if a daemon answers.
    pub(super) fn bind(path: &Path) -> Result<Self> {
        let refused = |why: String| user_error(format!("control.path {}: {why}", path.display()));
        check_socket_path(path).map_err(refused)?;
        let folder = path.parent().unwrap_or(path); // "/" has none, and is no place for a socket
        // One that is there may be used by others, such as /run: its mode stays.
        let safe = if folder.exists() { safety::check_folder(folder) } else { safety::make_folder(folder) };
        safe.map_err(|e| refused(format!("{e:#}")))?;
        match UnixStream::connect(path) {
            Ok(_) => return Err(refused("another daemon answers here; stop it first".into())),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(|e| refused(e.to_string()))?;
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(refused(e.to_string())),
        }
        let socket = UnixListener::bind(path).map_err(|e| refused(e.to_string()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).context("cannot protect the control socket")?;
        Ok(Self { socket, path: path.into() })
    }

    /// Serves clients in threads until the process ends. `ask` returns `None` if the daemon is stopping.
    pub(super) fn serve(self, ask: impl Fn(ControlCommand) -> Option<ControlReply> + Send + Sync + 'static) -> Served {
        let served = Served(self.path);
        let shared = Arc::new((ask, AtomicUsize::new(0)));
        let socket = self.socket;
        thread::spawn(move || {
            loop {
                let Ok((mut stream, _)) = socket.accept() else {
                    thread::sleep(Duration::from_millis(100)); // such as no free descriptors
                    continue;
                };
                let shared = Arc::clone(&shared);
                if shared.1.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
                    shared.1.fetch_sub(1, Ordering::Relaxed);
                    let text = format!("{MAX_CLIENTS} clients are connected already; try again");
                    let _ = stream.write_all(ControlReply { code: 1, text }.line().as_bytes()); // it fits the socket's memory
                    continue;
                }
                thread::spawn(move || {
                    if let Err(e) = serve_client(&stream, &shared.0) {
                        tracing::debug!("control: {e}"); // for example a client that hung up
                    }
                    shared.1.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        served
    }
}

pub(crate) fn serve_client(
    mut stream: &UnixStream,
    ask: &impl Fn(ControlCommand) -> Option<ControlReply>,
) -> io::Result<()> {
    let peer = getsockopt(&stream, sockopt::PeerCredentials)?;
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    let reply = if peer.uid() != 0 && peer.uid() != geteuid().as_raw() {
        ControlReply { code: 2, text: format!("user {} may not do this; ask as root", peer.uid()) }
    } else {
        let line = read_line(stream, Instant::now() + REQUEST_TIME)?;
        match line.as_str() {
            "reload" => ask(ControlCommand::Reload).unwrap_or_else(stopping),
            "status" => ask(ControlCommand::Status).unwrap_or_else(stopping),
            _ => ControlReply { code: 2, text: "unknown request; write reload or status".into() },
        }
    };
    stream.write_all(reply.line().as_bytes())
}

fn stopping() -> ControlReply {
    ControlReply { code: 1, text: "the daemon is stopping".into() }
}

/// Reads a client's line, or fails after `end`.
fn read_line(mut stream: &UnixStream, end: Instant) -> io::Result<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; MAX_LINE_BYTES]);
    while !bytes.contains(&b'\n') {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let n = stream.read(&mut chunk)?;
        if n == 0 || bytes.len() + n > MAX_LINE_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&chunk[..n]);
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).trim().to_owned())
}

/// Runs `waterfilld reload`: sends the request to the daemon and prints its answer.
pub(crate) fn reload(command: &ReloadCommand) -> Result<()> {
    let (path, named) = match &command.config {
        Some(file) => (Config::read(file)?.control, format!("{}: control.path", file.display())),
        None => (command.control.clone(), "--control".into()),
    };
    let missing =
        |e: io::Error| user_error(format!("{named} {}: no `waterfilld run` answers here: {e}", path.display()));
    let mut stream = UnixStream::connect(&path).map_err(missing)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    match stream.write_all(b"reload\n") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => return Err(missing(e)),
        _ => {} // a daemon that is busy says so and closes at once
    }
    let mut answer = String::new();
    // Up to the line's end: what follows may be a reset, where the daemon has not read the request.
    let mut answers = BufReader::new(stream.take(MAX_ANSWER_BYTES));
    answers.read_line(&mut answer).context("the daemon did not answer")?;
    match ControlReply::parse(&answer) {
        Some(ControlReply { code: 0, text }) => output::print(&format!("{text}\n")),
        Some(ControlReply { code: UserError::CODE, text }) => Err(user_error(text)),
        Some(ControlReply { text, .. }) => bail!("{text}"),
        None => bail!("the daemon closed the connection without an answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends bytes to the socket and returns the complete answer.
    fn ask(path: &Path, bytes: &[u8]) -> String {
        let mut client = UnixStream::connect(path).unwrap();
        let _ = client.write_all(bytes); // may close before it has read all
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer); // as above
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn hostile_clients_get_a_line_or_nothing_and_keep_nobody_waiting() {
        let folder = std::env::temp_dir().join(format!("waterfill-control-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let path = folder.join("control.sock");
        let served = Listener::bind(&path).unwrap().serve(|command| Some(ControlReply::ok(format!("{command:?}"))));
        assert_eq!(ask(&path, b"status\n"), "ok Status\n");
        for refused in [&b"no command\n"[..], b"\n", b"\xff\xfe\n", b"reload now\n"] {
            assert_eq!(ask(&path, refused), "error 2 unknown request; write reload or status\n");
        }
        // A line without an end is not kept: nothing is answered.
        assert_eq!(ask(&path, &vec![b'x'; 1 << 20]), "");
        // Half a line each, until no more clients are served. Threads of those before may not have ended yet.
        let busy = "error 1 8 clients are connected already; try again\n";
        let mut slow = Vec::new();
        while ask(&path, b"status\n") != busy {
            assert!(slow.len() < 64, "{} slow clients are served", slow.len());
            let mut client = UnixStream::connect(&path).unwrap();
            let _ = client.write_all(b"relo"); // may be refused already
            slow.push(client);
        }
        for client in &mut slow {
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer); // until the daemon closes
            assert!(answer.is_empty() || answer == busy.as_bytes(), "{answer:?}");
        }
        let served_again = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            ask(&path, b"status\n") == "ok Status\n"
        });
        assert!(served_again, "the slow clients are still served");
        drop(served);
        fs::remove_dir(&folder).unwrap();
    }
}
