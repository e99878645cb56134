//! `waterfilld check-path`.

use std::time::Duration;

use clap::Args;

use super::values::law_name;
use crate::daemon::law::{self, Law};
use crate::daemon::quantity;

/// `waterfilld check-path`: measures a path with and without the law, and says what on it strips or drops.
#[derive(Debug, Args)]
pub(crate) struct CheckPathCommand {
    /// The far end: a name or an address, where `waterfilld check-path --serve` runs
    #[arg(value_name = "HOST", required_unless_present = "serve", conflicts_with = "serve")]
    pub(crate) host: Option<String>,
    /// Answer checks on this host until SIGTERM
    #[arg(long)]
    pub(crate) serve: bool,
    /// TCP port of the far end; of another program there, such as discard or iperf3, only what this end sees is known
    #[arg(long, value_name = "PORT", default_value_t = 7465)]
    pub(crate) port: u16,
    /// The law whose option is looked for
    #[arg(long, value_name = "LAW", default_value = "maxnet", value_parser = law::find)]
    pub(crate) law: &'static Law,
    /// The law's name in TCP's list [default: bpf_ and the law's]
    #[arg(long, value_name = "NAME", value_parser = law_name)]
    pub(crate) name: Option<String>,
    /// The kernel's law to compare with
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = law_name)]
    pub(crate) baseline: String,
    /// How long each law sends
    #[arg(long, value_name = "TIME", default_value = "3 s", value_parser = span)]
    pub(crate) time: Duration,
    /// How much each law sends at most
    #[arg(long, value_name = "VOLUME", default_value = "1 GB", value_parser = quantity::volume)]
    pub(crate) volume: u64,
    /// Print one JSON document
    #[arg(long, conflicts_with = "serve")]
    pub(crate) json: bool,
}

impl CheckPathCommand {
    /// Returns the law's name in TCP's list.
    pub(crate) fn congestion_control(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.law.congestion_control())
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let expected = "expected a time from 100 ms to 60 s, such as \"3 s\"";
    let span = quantity::time(text).map_err(|_| expected)?;
    let fits = (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&span);
    fits.then_some(span).ok_or_else(|| expected.into())
}
