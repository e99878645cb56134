//! `waterfilld host`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::{alpha, any_rate, cookie, demand_time, dt_min, eta, law_name};
use super::{Common, LawChoice};
use crate::daemon::host;
use crate::daemon::settings::{HostSettings, Names};

/// `waterfilld host`.
#[derive(Debug, Args)]
pub(crate) struct HostCommand {
    /// Only connections of this control group (version 2) [default: all]
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    #[command(flatten)]
    law: LawChoice,
    /// Name in TCP's list of congestion controls [default: bpf_ and the law's]
    #[arg(long, value_parser = law_name)]
    name: Option<String>,
    /// Congestion control for paths without a router
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = law_name)]
    fallback: String,
    /// Only connections of this network namespace, by its cookie (SO_NETNS_COOKIE); repeatable
    #[arg(long = "netns-cookie", value_name = "N", value_parser = cookie)]
    netns_cookies: Vec<u64>,
    /// Only connections with hosts of this network, such as 10.0.0.0/8; repeatable [default: all]
    #[arg(long = "peers", value_name = "PREFIX")]
    peers: Vec<host::Network>,
    /// Let every user and network namespace select the law; without, only processes with CAP_NET_ADMIN may
    #[arg(long)]
    unrestricted: bool,
    /// Kind of the TCP option: 253 (experiments, RFC 6994), or 42 (the papers' own, for closed networks only)
    #[arg(long, value_name = "KIND", default_value = "253")]
    option_kind: KindArgument,
    /// MaxNet's loop gain, from 0.001 to below pi/2 [default: 0.66]
    #[arg(long, value_parser = alpha)]
    alpha: Option<String>,
    /// MaxNet's zero of the lead-lag compensator, times the RTT [default: 0.06]
    #[arg(long, value_parser = eta)]
    eta: Option<String>,
    /// MaxNet's T of the demand function; must be the same on all hosts and routers [default: 400 ms]
    #[arg(long, value_name = "TIME", value_parser = demand_time)]
    t: Option<String>,
    /// MaxNet's largest rate of a connection; must be the same on all hosts and routers [default: 1 Pbit/s]
    #[arg(long, value_name = "RATE", value_parser = any_rate)]
    x_max: Option<String>,
    /// MaxNet's shortest time between updates of window and rate [default: 1 us]
    #[arg(long, value_name = "TIME", value_parser = dt_min)]
    dt_min: Option<String>,
    /// MaxNet: echo the last price instead of its average over one RTT
    #[arg(long)]
    no_average: bool,
    /// MaxNet: keep xi when a smaller base RTT is seen, instead of compensating for it
    #[arg(long)]
    no_compensate: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArgument {
    #[value(name = "253")]
    Experiment,
    #[value(name = "42")]
    Paper,
}

impl HostCommand {
    /// Returns the settings of the role.
    fn settings(&self) -> HostSettings {
        HostSettings {
            law: self.law.law,
            values: self.values(),
            name: self.name.clone(),
            cgroup: self.cgroup.clone(),
            fallback: self.fallback.clone(),
            netns_cookies: self.netns_cookies.clone(),
            peers: self.peers.clone(),
            unrestricted: self.unrestricted,
            kind: match self.option_kind {
                KindArgument::Experiment => host::Kind::Experiment,
                KindArgument::Paper => host::Kind::Paper,
            },
        }
    }

    /// Returns the options of the role; `cgroup` returns the root of the control groups.
    pub(crate) fn options(&self, cgroup: impl FnOnce() -> anyhow::Result<PathBuf>) -> anyhow::Result<host::Options> {
        self.settings().options(Names::Options, cgroup)
    }

    /// The parameters given, by MaxNet's own options and by `--set`.
    fn values(&self) -> Vec<(String, String)> {
        let off = |given: bool, text: &str| given.then(|| text.to_owned());
        let options = [
            ("alpha", self.alpha.clone()),
            ("eta", self.eta.clone()),
            ("t", self.t.clone()),
            ("x_max", self.x_max.clone()),
            ("dt_min", self.dt_min.clone()),
            ("average", off(self.no_average, "false")),
            ("compensate", off(self.no_compensate, "false")),
        ];
        self.law.with(options)
    }

    /// Checks options against each other.
    pub(super) fn check(&self) -> Result<(), String> {
        self.law.check(&self.values())?;
        self.settings().check(Names::Options).map_err(|wrong| wrong.text)
    }
}
