//! Options of `waterfilld router` and of `[[router]]`.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;

use super::reading::optional_word;
use super::values::{
    Device, LawName, Overhead, Rate, Target, Text, Volume, assignment, assignments, cohabit_assignment,
};

/// Settings of one law on one device of this router.
#[derive(Clone, Debug, PartialEq, Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "options of a device that do not depend on each other")]
pub(crate) struct RouterOptions {
    /// Device whose outgoing packets carry the signal; it may appear later, disappear and reappear
    #[arg(skip)] // the command line may name several, each with its rate
    pub(crate) device: Device,
    /// Rate of the link behind the device
    #[arg(skip)]
    pub(crate) rate: Rate,
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
    /// Fraction of the rate to fill, above 0 and at most 1 [default: the law's; 0.9 for MaxNet]
    #[arg(long, value_name = "FRACTION")]
    pub(crate) target: Option<Target>,
    /// Bytes per packet on the link beyond its IP length; an Ethernet header has 14
    #[arg(long, value_name = "BYTES", default_value_t)]
    #[serde(default)]
    pub(crate) overhead: Overhead,
    /// Compute the queue from arrivals and the rate, even if the device's queue can be read
    #[arg(long)]
    #[serde(default)]
    pub(crate) virtual_queue: bool,
    /// Limit the device to the rate, for a link that is slower than the device
    #[arg(long)]
    #[serde(default)]
    pub(crate) shape: bool,
    /// Buffer of the shaper [default: 100 ms at the rate]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) buffer: Option<Volume>,
    /// Drop or mark TCP packets so that explicit flows keep their fair share; needs Linux 6.6
    #[arg(long, value_name = "CONTROLLER", value_enum)]
    #[serde(default, deserialize_with = "optional_word")]
    pub(crate) cohabit: Option<CohabitController>,
    /// Parameter of --cohabit, named as in a scenario's queue_params, such as interval=30ms (repeatable)
    #[arg(long = "cohabit-set", value_name = "NAME=VALUE", value_parser = cohabit_assignment)]
    #[serde(default, deserialize_with = "assignments")]
    #[schemars(
        with = "BTreeMap<String, Text>",
        description = "Parameters of `cohabit`, named as in a scenario's `queue_params`",
        extend("default" = {})
    )]
    pub(crate) cohabit_params: Vec<(String, String)>,
    /// Use one queue for explicit flows and one for all others, without cohabit's controller; implies a virtual queue
    #[arg(long)]
    #[serde(default)]
    pub(crate) separate: bool,
    /// Write each flow's fair rate as advice into SCONE packets of QUIC; needs Linux 6.6
    #[arg(long)]
    #[serde(default)]
    pub(crate) scone: bool,
}

/// The controller that drops or marks TCP's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CohabitController {
    /// Controller of xcp-tcp-2008: the drop probability is multiplied by one of two fixed factors
    Paper,
    /// Improved controller: the factor follows the error of TCP's rate
    Improved,
}
