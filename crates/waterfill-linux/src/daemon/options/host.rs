//! Options of `waterfilld host` and of `[[host]]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;

use super::network::Network;
use super::values::{
    BaseRttWindow, CongestionControl, Cookie, LawName, OptionKind, QueueMargin, Text, assignment, assignments,
};

/// Settings of one law on this end host.
#[derive(Clone, Debug, PartialEq, Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostOptions {
    /// Control only connections of this control group (version 2) [default: all]
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Law; all hosts and routers of a path need the same one
    #[arg(long, value_name = "LAW", default_value_t)]
    #[serde(default)]
    pub(crate) law: LawName,
    /// Parameter of the law, such as alpha=0.5 (repeatable; see `waterfilld laws`)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    #[serde(default, deserialize_with = "assignments")]
    #[schemars(
        with = "BTreeMap<String, Text>",
        description = "Parameters of the law; `waterfilld laws` lists them",
        extend("default" = {})
    )]
    pub(crate) params: Vec<(String, String)>,
    /// Name of the law's congestion control [default: bpf_LAW]
    #[arg(long)]
    pub(crate) name: Option<CongestionControl>,
    /// Congestion control for paths without a router
    #[arg(long, value_name = "NAME", default_value_t = default_fallback())]
    #[serde(default = "default_fallback")]
    pub(crate) fallback: CongestionControl,
    /// Time after which a host forgets an RTT as the smallest, or "unlimited" for TCP's own window of 300 s
    #[arg(long, value_name = "TIME", default_value_t)]
    #[serde(default)]
    pub(crate) base_rtt_window: BaseRttWindow,
    /// RTT above the smallest one that counts as a queue, if it is more than a quarter of the smallest
    #[arg(long, value_name = "TIME", default_value_t)]
    #[serde(default)]
    pub(crate) queue_margin: QueueMargin,
    /// Control only connections of the network namespace with this cookie, SO_NETNS_COOKIE (repeatable) [default: all]
    #[arg(long = "netns-cookie", value_name = "N")]
    #[serde(default)]
    #[schemars(
        description = "Control only connections of these network namespaces, by cookie (SO_NETNS_COOKIE) [default: all]"
    )]
    pub(crate) netns_cookies: Vec<Cookie>,
    /// Control only connections with hosts of this network, such as 10.0.0.0/8 (repeatable) [default: all]
    #[arg(long, value_name = "PREFIX")]
    #[serde(default)]
    #[schemars(description = "Control only connections with hosts of these networks [default: all]")]
    pub(crate) peers: Vec<Network>,
    /// Let every user and network namespace select the law, not only processes with CAP_NET_ADMIN
    #[arg(long)]
    #[serde(default)]
    pub(crate) unrestricted: bool,
    /// Kind of the TCP option: 253 (experimental, RFC 6994) or 42 (used in the MaxNet papers; closed networks only)
    #[arg(long, value_name = "KIND", default_value_t)]
    #[serde(default)]
    pub(crate) option_kind: OptionKind,
}

fn default_fallback() -> CongestionControl {
    CongestionControl("cubic".into())
}
