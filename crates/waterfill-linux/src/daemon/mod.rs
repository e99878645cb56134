//! The daemon `waterfilld`: loads the kernel programs of `bpf/`, keeps them pinned, and shows their state.
//!
//! Four layers, each of which imports only from those above it: [`options`] (of the command line and of the file),
//! [`kernel`] (programs, pins and hooks), [`roles`] (host, router, CSIG, SCONE), [`commands`] (what users run). The data path is
//! in the kernel: it works without a running daemon.

mod commands;
mod kernel;
mod options;
mod roles;
#[doc(hidden)]
pub mod testing;

use std::process::ExitCode;

/// Runs the command line. The exit code is 0 on success, 2 for an error that the user can fix, and 1 for any other
/// error.
#[must_use]
pub fn main() -> ExitCode {
    share_one_arena();
    commands::run()
}

/// Makes all threads allocate from one arena. This must run before the first thread starts.
///
/// The threads that serve metrics do so in turn. With an arena each they would hold a megabyte that one of them needs at a
/// time. They allocate a few times per scrape, so they do not wait for each other.
#[allow(unsafe_code, reason = "mallopt() has no safe wrapper")]
fn share_one_arena() {
    // SAFETY: the call takes two numbers, and no other thread runs yet.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
