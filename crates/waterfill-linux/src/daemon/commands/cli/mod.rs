//! Command line of `waterfilld`. Options are checked here as far as possible without the kernel.

mod former;
mod roles;
#[cfg(test)]
pub(super) mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::options::error::{self, exit_code_number};
use crate::daemon::options::file::{DEFAULT_CONTROL, DEFAULT_FILE};
use crate::daemon::options::names;
use crate::daemon::options::quantity;
use crate::daemon::options::values::{CongestionControl, Device, Volume};

pub(crate) use roles::{Common, CsigCommand, HostCommand, RouterCommand};

/// Run explicit congestion control on this Linux host. On an end host, TCP sets its rate from the congestion signal of
/// its path. On a router, each link's signal is written into packets. The law is MaxNet unless --law names another.
/// Write rates as "1 Gbit/s", 940Mbit/s or 1gbit, and times as "1 ms".
#[derive(Debug, Parser)]
#[command(name = "waterfilld", version, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// Commands of `waterfilld`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Register a law as a TCP congestion control, with its TCP option
    Host(Box<HostCommand>),
    /// Attach a law's router program to devices; it writes the congestion signal of their links into packets
    Router(Box<RouterCommand>),
    /// Run all roles, laws and devices of a configuration file until SIGTERM; SIGHUP reloads the file
    Run(RunCommand),
    /// Check a configuration file and print its setup
    Check(CheckCommand),
    /// Print the JSON Schema of the configuration file
    Schema,
    /// Make a running `waterfilld run` reload its file; an invalid file changes nothing
    Reload(ReloadCommand),
    /// Show links and connections; works without a running daemon too
    Status(StatusCommand),
    /// List connections that fell back or returned, with the evidence; works without a running daemon too
    Events(EventsCommand),
    /// Remove programs, links and settings from the kernel
    Unload(UnloadCommand),
    /// List the kernel features that hosts and routers use, and the substitutes for missing ones
    Probe(ListCommand),
    /// List the laws and their parameters
    Laws(ListCommand),
    /// Print a shell's completion script for commands and options
    Completions(CompletionsCommand),
    /// Write the manual pages to a directory
    #[command(hide = true)]
    Man(ManCommand),
    /// Add CSIG tags with MaxNet's price or another signal to the frames of a domain's devices
    Csig(CsigCommand),
    /// Measure a path with and without a law, and report whether the path strips or drops the option
    CheckPath(CheckPathCommand),
}

/// The option `--pins` of all commands that load or read kernel programs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PinsOption {
    /// Directory for pinned programs, on a BPF file system [default: waterfill on the mounted BPF file system]
    #[arg(long, value_name = "DIR")]
    pub(crate) pins: Option<PathBuf>,
}

/// Arguments of `waterfilld check`.
#[derive(Debug, Args)]
pub(crate) struct CheckCommand {
    /// Configuration file
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) file: PathBuf,
}

/// Options of `waterfilld run`.
#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    /// Configuration file
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) config: PathBuf,
}

/// Options of `waterfilld reload`.
#[derive(Debug, Args)]
pub(crate) struct ReloadCommand {
    /// Control socket of the daemon, given by the key `control.path` of its configuration file
    #[arg(long, value_name = "PATH", default_value = DEFAULT_CONTROL)]
    pub(crate) control: PathBuf,
    /// Configuration file of the daemon, whose key `control.path` names the socket
    #[arg(long, value_name = "FILE", conflicts_with = "control")]
    pub(crate) config: Option<PathBuf>,
}

/// Options of `waterfilld status`.
#[derive(Debug, Args)]
pub(crate) struct StatusCommand {
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep showing the state: a live view on a terminal, otherwise one report per second
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print every column, even if tables become wider than the terminal
    #[arg(long, conflicts_with = "json")]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    /// Configuration file of `waterfilld run`, whose key `pins.directory` names the directory of the pins
    #[arg(long, value_name = "FILE", conflicts_with = "pins")]
    pub(crate) config: Option<PathBuf>,
}

/// Options of `waterfilld events`.
#[derive(Debug, Args)]
pub(crate) struct EventsCommand {
    /// Print one JSON document per line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep printing events as they happen, until a signal
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    /// Configuration file of `waterfilld run`, whose key `pins.directory` names the directory of the pins
    #[arg(long, value_name = "FILE", conflicts_with = "pins")]
    pub(crate) config: Option<PathBuf>,
}

/// Options of `waterfilld unload`. The command unloads everything unless an option selects something.
#[derive(Debug, Args)]
pub(crate) struct UnloadCommand {
    /// Unload only the host programs
    #[arg(long)]
    pub(crate) host: bool,
    /// Unload only the router programs
    #[arg(long)]
    pub(crate) router: bool,
    /// Unload the router programs only from this device (repeatable)
    #[arg(long = "dev", value_name = "DEVICE", conflicts_with = "host")]
    pub(crate) devices: Vec<Device>,
    /// Unload only the programs of this law
    #[arg(long, value_name = "LAW", value_parser = laws::find)]
    pub(crate) law: Option<&'static LoadableLaw>,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    /// Configuration file of `waterfilld run`, whose key `pins.directory` names the directory of the pins
    #[arg(long, value_name = "FILE", conflicts_with = "pins")]
    pub(crate) config: Option<PathBuf>,
}

/// Options of `waterfilld probe` and `waterfilld laws`.
#[derive(Debug, Args)]
pub(crate) struct ListCommand {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `waterfilld completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsCommand {
    /// Shell to write the script for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// A shell that completes commands and options.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `waterfilld man`.
#[derive(Debug, Args)]
pub(crate) struct ManCommand {
    /// Directory for the pages; created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Arguments of `waterfilld check-path`.
#[derive(Debug, Args)]
pub(crate) struct CheckPathCommand {
    /// Name or address of the far end, where `waterfilld check-path --serve` runs
    #[arg(value_name = "HOST", required_unless_present = "serve", conflicts_with = "serve")]
    pub(crate) host: Option<String>,
    /// Answer checks on this host until SIGTERM
    #[arg(long)]
    pub(crate) serve: bool,
    /// TCP port of the far end. The port of another program, such as iperf3, gives the results of this end only
    #[arg(long, value_name = "PORT", default_value_t = 7465)]
    pub(crate) port: u16,
    /// Law whose option is checked
    #[arg(long, value_name = "LAW", default_value = "maxnet", value_parser = laws::find)]
    pub(crate) law: &'static LoadableLaw,
    /// Name of the law's congestion control [default: bpf_LAW]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<CongestionControl>,
    /// Congestion control of the kernel to compare with
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) baseline: CongestionControl,
    /// Sending time of each law
    #[arg(long, value_name = "TIME", default_value = "3 s", value_parser = span)]
    pub(crate) time: Duration,
    /// Maximum volume that each law sends
    #[arg(long, value_name = "VOLUME", default_value = "1 GB")]
    pub(crate) volume: Volume,
    /// Print one JSON document
    #[arg(long, conflicts_with = "serve")]
    pub(crate) json: bool,
}

impl CheckPathCommand {
    /// Returns the name under which the kernel's TCP knows the law.
    pub(crate) fn congestion_control(&self) -> String {
        self.name.as_ref().map_or_else(|| self.law.congestion_control(), |name| name.0.clone())
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let form = "must be a time from 100 ms to 60 s, such as \"3 s\"";
    let span = quantity::time(text).map_err(|_| form)?;
    let fits = (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&span);
    fits.then_some(span).ok_or_else(|| form.into())
}

/// Parses the arguments of this process. Returns the exit code after printing help, the version or an error.
pub(crate) fn parse() -> Result<Command, ExitCode> {
    let (arguments, hints) = former::replace(std::env::args_os());
    for hint in hints {
        eprintln!("waterfilld: {}", error::one_line(&hint));
    }
    parse_from(arguments).map_err(|error| {
        if error.use_stderr() {
            eprintln!("waterfilld: {}", one_line(&error));
            ExitCode::from(2)
        } else {
            let _ = error.print(); // to standard output, which may have closed
            ExitCode::SUCCESS
        }
    })
}

/// Parses a command line and checks it as far as possible without the kernel. An error has the exit code and the
/// message.
pub(crate) fn check_words(words: &[&str]) -> Result<(), (u8, String)> {
    let refused = |e: anyhow::Error| (exit_code_number(&e), error::one_line(&format!("{e:#}")));
    match parse_from(former::replace(words.iter().map(OsString::from)).0) {
        Ok(Command::Host(host)) => host.setup(|| Ok("/".into())).map(drop).map_err(refused),
        Ok(Command::Router(router)) => router.setups().map(drop).map_err(refused),
        Ok(Command::Csig(csig)) => csig.setups().map(drop).map_err(refused),
        Ok(_) => Ok(()),
        Err(error) if error.use_stderr() => Err((2, one_line(&error))),
        Err(error) => Err((0, error.to_string())),
    }
}

fn parse_from(arguments: Vec<OsString>) -> Result<Command, clap::Error> {
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

/// Returns clap's error message as one line, without hints and usage.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command given; type one, such as run or status (`waterfilld --help` lists all)".into();
    }
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let (ErrorKind::InvalidSubcommand, Some(word)) = (error.kind(), context(ContextKind::InvalidSubcommand)) {
        let command = CommandLine::command();
        let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
        return error::one_line(&format!("{word}: {}", names::unknown("command", word, known)));
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    error::one_line(first.trim_start_matches("error: "))
}
