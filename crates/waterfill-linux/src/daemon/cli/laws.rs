//! `waterfilld laws`.

use clap::Args;

/// `waterfilld laws`.
#[derive(Debug, Args)]
pub(crate) struct LawsCommand {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
