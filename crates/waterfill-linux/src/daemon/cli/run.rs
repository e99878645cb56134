//! `waterfilld run` and `waterfilld reload`.

use std::path::PathBuf;

use clap::Args;

use crate::daemon::config::{DEFAULT_CONTROL, DEFAULT_FILE};

/// `waterfilld run`.
#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) config: PathBuf,
}

/// `waterfilld reload`.
#[derive(Debug, Args)]
pub(crate) struct ReloadCommand {
    /// The daemon's control socket, as `path` of [control] in its file
    #[arg(long, value_name = "PATH", default_value = DEFAULT_CONTROL)]
    pub(crate) control: PathBuf,
    /// The daemon that runs this configuration file: the socket is that of its key `control.path`
    #[arg(long, value_name = "FILE", conflicts_with = "control")]
    pub(crate) config: Option<PathBuf>,
}
