//! The daemon `waterfilld`: loads the kernel programs of `bpf/`, keeps them pinned, and shows their state.
//!
//! Reading order: [`cli`] (options), [`probe`] (kernel features), [`pins`] (where programs are kept), [`router`] and
//! [`host`] (the two roles), [`law`] (the laws that they run), [`serve`] (a running daemon), [`snapshot`], [`status`] and [`metrics`] (its state). The data
//! path is in the kernel: it works without a running daemon.

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
mod metrics;
mod object;
mod pins;
mod privileges;
mod probe;
mod quantity;
mod router;
mod serve;
mod settings;
mod skeleton;
mod snapshot;
mod status;
mod table;
mod unload;

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use cli::Command;

/// Runs the command line. Returns 0 when done, 1 when the kernel refused, 2 when the user can fix the cause.
#[must_use]
pub fn main() -> ExitCode {
    match cli::parse() {
        Ok(command) => run(&command).map_or_else(|e| error::report(&e), |()| ExitCode::SUCCESS),
        Err(code) => code,
    }
}

fn run(command: &Command) -> Result<()> {
    start_log();
    match command {
        Command::Host(command) => serve::host(command),
        Command::Router(command) => serve::router(command),
        Command::Run(_) | Command::Reload(_) => anyhow::bail!("later"),
        Command::Check(command) => config::check(command),
        Command::Schema => config::print_schema(),
        Command::Status(command) => status::run(command),
        Command::Unload(command) => unload::run(command),
        Command::Probe(command) => probe::run(command),
        Command::Laws(command) => listing::run(command),
        Command::Completions(command) => {
            command.run();
            Ok(())
        }
        Command::Man(command) => command.run(),
        Command::Csig(command) => csig::run(command),
    }
}

/// Logs to standard error, at the level that RUST_LOG sets.
fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false).init();
    // The verifier's log has many pages, so it is shown at the debug level only.
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Debug, |_, text| {
        tracing::debug!("libbpf: {}", text.trim_end());
    })));
}
