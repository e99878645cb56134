//! Notifications to systemd through `NOTIFY_SOCKET` (sd_notify(3)). Without this variable, nothing is sent.
//!
//! A send never waits: the thread that notifies also answers scrapes and reloads. What systemd has no space for is lost, and
//! the log says so.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use sd_notify::NotifyState;

fn notify(states: &[NotifyState<'_>]) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET") else { return };
    let mut text = String::new();
    for state in states {
        let _ = writeln!(text, "{state}");
    }
    if let Err(e) = send(&socket, &text) {
        let what = text.split(['=', '\n']).next().unwrap_or_default();
        tracing::warn!(event = "notification", "systemd was not notified of {what}: {e}");
    }
}

/// Sends a message to a socket, given by its path or by `@` and an abstract name. Fails at once if the socket's queue
/// is full.
fn send(socket: &OsStr, text: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    from.set_nonblocking(true)?;
    from.send_to_addr(text.as_bytes(), &address).map(drop)
}

/// Reports that the daemon is ready, for the first time or after a reload.
pub(super) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports the beginning of a reload; [`ready`] reports its end.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(e) => tracing::debug!("systemd: {e}"),
    }
}

/// Reports that the daemon is about to end.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Reports a description of the loaded programs.
pub(super) fn status(status: &str) {
    notify(&[NotifyState::Status(status)]);
}

/// Reports to the watchdog that the daemon answers requests.
pub(super) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// Returns the interval at which to call [`alive`], or `None` without a watchdog.
pub(super) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}
