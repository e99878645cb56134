//! Signals that end a daemon or make it reload its file.

use anyhow::{Context as _, Result};
use nix::sys::signal::{SigSet, Signal};

/// Blocks SIGTERM, SIGINT and SIGHUP in this thread. Returns these signals for the thread that waits for them.
///
/// Threads inherit the mask, so the signals are blocked before the first thread starts.
pub(crate) fn block() -> Result<SigSet> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().context("cannot block signals")?;
    Ok(signals)
}
