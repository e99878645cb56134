//! The command line. Options are checked here as far as possible without the kernel. Each command has a file.

mod check;
mod check_path;
mod completions;
mod csig;
mod host;
mod law;
mod laws;
mod man;
mod probe;
mod router;
mod run;
mod status;
#[cfg(test)]
pub(super) mod tests;
mod unload;
pub(super) mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use law::LawChoice;
use values::address;

use super::steps::Target;

pub(super) use check::CheckCommand;
pub(super) use check_path::CheckPathCommand;
pub(super) use completions::CompletionsCommand;
pub(super) use csig::CsigCommand;
pub(super) use host::HostCommand;
pub(super) use laws::LawsCommand;
pub(super) use man::ManCommand;
pub(super) use probe::ProbeCommand;
pub(super) use router::RouterCommand;
pub(super) use run::{ReloadCommand, RunCommand};
pub(super) use status::StatusCommand;
pub(super) use unload::UnloadCommand;

/// Run MaxNet on this Linux host: as an end host, whose TCP sets its rate from the congestion price of the path, or as a
/// router, which writes the price of its links into packets. Write rates as "1 Gbit/s", 940Mbit/s or 1gbit, times as "1 ms".
#[derive(Debug, Parser)]
#[command(name = "waterfilld", version, arg_required_else_help = true, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Register MaxNet as a TCP congestion control, with its TCP option
    Host(Box<HostCommand>),
    /// Attach the router program to a device; it writes the link's congestion price into packets
    Router(Box<RouterCommand>),
    /// Run all roles, laws and devices of a configuration file, until SIGTERM; SIGHUP reads the file again
    Run(RunCommand),
    /// Check a configuration file, and say what it sets up
    Check(CheckCommand),
    /// Print the JSON Schema of the configuration file
    Schema,
    /// Make a running `waterfilld run` read its file again; a bad file changes nothing
    Reload(ReloadCommand),
    /// Show links and connections, whether or not a daemon runs
    Status(StatusCommand),
    /// Remove programs, links and settings from the kernel
    Unload(UnloadCommand),
    /// List the kernel features that host and router use, and the substitutes for missing ones
    Probe(ProbeCommand),
    /// List the laws and their parameters
    Laws(LawsCommand),
    /// Print the script with which a shell completes commands and options
    Completions(CompletionsCommand),
    /// Write the manual pages to a folder
    #[command(hide = true)]
    Man(ManCommand),
    /// Put CSIG's tags, with MaxNet's price or another signal, on the frames of a domain's devices
    Csig(CsigCommand),
    /// Measure a path with and without a law, and find what on it strips or drops the option
    CheckPath(CheckPathCommand),
}

/// `--pins`, which every command but `probe` has.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PinsOption {
    /// Folder for pins, on a BPF file system [default: waterfill on the mounted one]
    #[arg(long, value_name = "DIR")]
    pub(super) pins: Option<PathBuf>,
}

/// Options of both roles.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) pins: PinsOption,
    /// Pin nothing: everything is unloaded when this process ends
    #[arg(long, conflicts_with = "pins")]
    pub(super) no_pin: bool,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(super) metrics: Option<SocketAddr>,
    /// Exit after loading; the kernel programs keep running
    #[arg(long, conflicts_with_all = ["no_pin", "metrics", "line"])]
    pub(super) once: bool,
    /// Log the law's steps to this file, for certificates; needs --no-pin
    #[arg(long, value_name = "FILE", requires = "no_pin")]
    pub(super) log_steps: Option<PathBuf>,
    /// Most steps that --log-steps writes; later ones are counted
    #[arg(long, value_name = "STEPS", default_value = "1000000", requires = "log_steps")]
    pub(super) log_limit: u64,
    /// Print {"ready":true}, then one JSON line of status per line of standard input; exit when that closes
    #[arg(long)]
    pub(super) line: bool,
}

impl Common {
    /// Returns where the law's steps are logged.
    pub(super) fn steps(&self) -> Option<Target> {
        self.log_steps.clone().map(|file| Target { file, limit: self.log_limit })
    }
}

/// Parses the arguments of this process. Prints help, version or the error and returns the exit code in these cases.
pub(super) fn parse() -> Result<Command, ExitCode> {
    parse_from(std::env::args_os()).map_err(|error| {
        if error.use_stderr() {
            eprintln!("waterfilld: {}", one_line(&error));
            ExitCode::from(2)
        } else {
            let _ = error.print(); // to standard output, which may have closed
            ExitCode::SUCCESS
        }
    })
}

/// Parses and checks a command line as far as that goes without the kernel; the error has the exit code and the text.
pub(super) fn check_words(words: &[&str]) -> Result<(), (u8, String)> {
    let refused = |e: anyhow::Error| (super::error::exit_code_number(&e), super::error::one_line(&format!("{e:#}")));
    match parse_from(words) {
        Ok(Command::Host(host)) => host.options(|| Ok("/".into())).map(drop).map_err(refused),
        Ok(Command::Router(router)) => router.options().map(drop).map_err(refused),
        Ok(Command::Csig(csig)) => csig.options().map(drop).map_err(refused),
        Ok(_) => Ok(()),
        Err(error) if error.use_stderr() => Err((2, one_line(&error))),
        Err(error) => Err((0, error.to_string())),
    }
}

fn parse_from<I: IntoIterator<Item: Into<std::ffi::OsString> + Clone>>(arguments: I) -> Result<Command, clap::Error> {
    let command = CommandLine::try_parse_from(arguments)?.command;
    let checked = match &command {
        Command::Router(router) => router.check(),
        Command::Host(host) => host.check(),
        Command::Csig(csig) => csig.check(),
        _ => Ok(()),
    };
    checked.map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, why))?;
    Ok(command)
}

/// Returns the first paragraph of clap's message; the others are hints and usage.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "expected a command: run, host, router, status, unload or another (try --help)".into();
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    super::error::one_line(first.trim_start_matches("error: "))
}
