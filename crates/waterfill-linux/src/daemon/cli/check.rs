//! `waterfilld check`.

use std::path::PathBuf;

use clap::Args;

use crate::daemon::config::DEFAULT_FILE;

/// `waterfilld check`.
#[derive(Debug, Args)]
pub(crate) struct CheckCommand {
    /// The configuration file
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) file: PathBuf,
}
