//! `waterfilld status`.

use clap::Args;

use super::PinsOption;

/// `waterfilld status`.
#[derive(Debug, Args)]
pub(crate) struct StatusCommand {
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Repeat every second until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
}
