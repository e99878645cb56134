//! The daemon `waterfilld`: loads the kernel programs of `bpf/`, keeps them pinned, and shows their state.
//!
//! Reading order: [`cli`] (options), [`probe`] (kernel features), [`pins`] (where programs are kept), [`router`] and
//! [`host`] (the two roles), [`law`] (the laws that they run), [`serve`] (a running daemon), [`snapshot`], [`status`] and [`metrics`] (its state). The data
//! path is in the kernel: it works without a running daemon.

mod check_path;
mod claim;
mod cli;
mod config;
mod csig;
mod error;
mod host;
mod http;
mod interface;
mod law;
mod laws;
mod listing;
mod log;
mod metrics;
mod object;
mod output;
mod pins;
mod privileges;
mod probe;
mod quantity;
mod router;
mod run;
mod safety;
mod serve;
mod settings;
mod skeleton;
mod snapshot;
mod status;
mod steps;
mod table;
#[doc(hidden)]
pub mod testing;
mod unload;

use std::process::ExitCode;

use anyhow::Result;
use cli::Command;

/// Runs the command line. Returns 0 when done, 1 when the kernel refused, 2 when the user can fix the cause.
#[must_use]
pub fn main() -> ExitCode {
    share_one_arena();
    match cli::parse() {
        Ok(command) => dispatch(&command).map_or_else(|e| error::report(&e), |()| ExitCode::SUCCESS),
        Err(code) => code,
    }
}

/// Makes all threads allocate from one arena, before the first of them starts.
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

fn dispatch(command: &Command) -> Result<()> {
    log::start();
    match command {
        Command::Host(command) => serve::host(command),
        Command::Router(command) => serve::router(command),
        Command::Run(command) => run::run(command),
        Command::Reload(command) => run::control::reload(command),
        Command::Check(command) => config::check(command),
        Command::Schema => config::print_schema(),
        Command::Status(command) => status::run(command),
        Command::Unload(command) => unload::run(command),
        Command::Probe(command) => probe::run(command),
        Command::Laws(command) => listing::run(command),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::Csig(command) => csig::run(command),
        Command::CheckPath(command) => check_path::run(command),
    }
}
