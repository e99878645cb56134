//! `waterfilld probe`.

use clap::Args;

/// `waterfilld probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeCommand {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
