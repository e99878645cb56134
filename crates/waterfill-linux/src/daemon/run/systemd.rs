//! What systemd is told over `NOTIFY_SOCKET` (sd_notify(3)); without one, nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;

fn notify(states: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(states) {
        tracing::debug!("systemd: {e}");
    }
}

/// The daemon is ready, for the first time or after a reload.
pub(super) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// A reload begins; [`ready`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(e) => tracing::debug!("systemd: {e}"),
    }
}

/// The daemon is about to end.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Says what is loaded.
pub(super) fn status(status: &str) {
    notify(&[NotifyState::Status(status)]);
}

/// The daemon answers requests.
pub(super) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// Returns how often [`alive`] is expected; `None`: not at all.
pub(super) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}
