//! `waterfilld status`.

use std::path::PathBuf;

use clap::Args;

use super::PinsOption;

/// `waterfilld status`.
#[derive(Debug, Args)]
pub(crate) struct StatusCommand {
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Follow the state: a live view on a terminal, else repeated every second
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print every column, however wide the tables become
    #[arg(long, conflicts_with = "json")]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    /// The pins of `waterfilld run` with this configuration file: its key `pins.directory`
    #[arg(long, value_name = "FILE", conflicts_with = "pins")]
    pub(crate) config: Option<PathBuf>,
}
