//! Commands of `waterfilld`. Each reads its options, does its work, and prints the result.

mod check_path;
pub(crate) mod cli;
mod completions;
pub(crate) mod config;
mod csig;
mod events;
pub(crate) mod http;
mod laws;
mod log;
mod man;
pub(crate) mod metrics;
mod output;
mod probe;
pub(crate) mod run;
mod serve;
mod signals;
pub(crate) mod snapshot;
pub(crate) mod status;
mod table;
mod unload;

use std::process::ExitCode;

use anyhow::Result;
use cli::Command;

use super::options::error;

/// Runs the command that the command line names.
pub(crate) fn run() -> ExitCode {
    match cli::parse() {
        Ok(command) => dispatch(&command).map_or_else(|e| error::report(&e), |()| ExitCode::SUCCESS),
        Err(code) => code,
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
        Command::Events(command) => events::run(command),
        Command::Unload(command) => unload::run(command),
        Command::Probe(command) => probe::run(command),
        Command::Laws(command) => laws::run(command),
        Command::Completions(command) => completions::run(command),
        Command::Man(command) => man::run(command),
        Command::Csig(command) => csig::run(command),
        Command::CheckPath(command) => check_path::run(command),
    }
}
