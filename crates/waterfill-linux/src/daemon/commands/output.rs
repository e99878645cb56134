//! Output of commands on standard output.

use std::io::{self, ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};

/// True if the process was started without standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Checks standard output before Rust's start-up code runs. That code opens /dev/null in place of a closed stream, so
/// later writes would succeed.
#[allow(unsafe_code, reason = "a start-up function of the C library has no safe form")]
mod start {
    use super::{CLOSED, Ordering};

    extern "C" fn look() {
        // SAFETY: the call reads a flag of a file descriptor, which may be closed.
        if unsafe { libc::fcntl(1, libc::F_GETFD) } < 0 {
            CLOSED.store(true, Ordering::Relaxed);
        }
    }

    #[used]
    // SAFETY: the section holds functions that the C library calls once, and `look` needs nothing of Rust's runtime.
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}

/// Prints the output of a command. A closed pipe is not an error, because its reader needs no more output.
pub(crate) fn print(text: &str) -> Result<()> {
    if CLOSED.load(Ordering::Relaxed) {
        bail!("standard output: cannot be written: it is closed");
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => bail!("standard output: cannot be written: {e}"),
        _ => Ok(()),
    }
}

/// Writes one line to standard output and flushes it.
pub(crate) fn print_line(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output")
}
