//! `waterfilld unload`.

use std::path::PathBuf;

use clap::Args;

use super::PinsOption;
use super::values::device;
use crate::daemon::law::{self, Law};

/// `waterfilld unload`: everything, unless options select something.
#[derive(Debug, Args)]
pub(crate) struct UnloadCommand {
    /// Only the host
    #[arg(long)]
    pub(crate) host: bool,
    /// Only the router
    #[arg(long)]
    pub(crate) router: bool,
    /// Only this device of the router; repeatable
    #[arg(long = "dev", value_name = "DEVICE", conflicts_with = "host", value_parser = device)]
    pub(crate) devices: Vec<String>,
    /// Only this law
    #[arg(long, value_name = "LAW", value_parser = law::find)]
    pub(crate) law: Option<&'static Law>,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    /// The pins of `waterfilld run` with this configuration file: its key `pins.directory`
    #[arg(long, value_name = "FILE", conflicts_with = "pins")]
    pub(crate) config: Option<PathBuf>,
}
