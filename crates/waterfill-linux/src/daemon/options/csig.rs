//! Options of `waterfilld csig` and of `[[csig]]`.

use std::fmt;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::word;
use super::values::{DemandTime, Device, Locator, Rate, Text, Tpid};

/// Settings of CSIG tags at one device; needs Linux 6.6.
#[derive(Clone, Debug, PartialEq, Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CsigOptions {
    /// Device with Ethernet headers; it may appear later, disappear and reappear
    #[arg(skip)] // the command line names devices by their role
    pub(crate) device: Device,
    /// Kind of neighbour behind the device
    #[arg(skip)]
    #[serde(deserialize_with = "word")]
    pub(crate) role: TagRole,
    /// Format of added tags: 4 bytes with 32 bands, or 8 bytes with 2^20
    #[arg(long, value_enum, default_value_t)]
    #[serde(default, deserialize_with = "word")]
    pub(crate) format: TagFormat,
    /// Signal that tags carry
    #[arg(long, value_enum, default_value_t)]
    #[serde(default, deserialize_with = "word")]
    pub(crate) signal: TagSignal,
    /// Lower end of the first band: a rate, time or ratio, depending on the signal [default: price 100 kbit/s, others 0]
    #[arg(long, value_name = "VALUE")]
    pub(crate) from: Option<Text>,
    /// Upper end of the last band [default: price 250 Gbit/s, abw 100 Gbit/s, abwc 1, delay and nqd 10 ms]
    #[arg(long, value_name = "VALUE")]
    pub(crate) to: Option<Text>,
    /// EtherType of compact tags
    #[arg(long, value_name = "TPID", default_value_t = COMPACT_TPID)]
    #[serde(default = "compact_tpid")]
    pub(crate) tpid_compact: Tpid,
    /// EtherType of wide tags
    #[arg(long, value_name = "TPID", default_value_t = WIDE_TPID)]
    #[serde(default = "wide_tpid")]
    pub(crate) tpid_wide: Tpid,
    /// Locator of this hop, from 1 to 63, or to 32767 in wide tags
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub(crate) locator: Locator,
    /// T of MaxNet's demand function, for the bands of prices [default: the law's]
    #[arg(long, value_name = "TIME")]
    pub(crate) t: Option<DemandTime>,
    /// Maximum rate of a connection in MaxNet, for the bands of prices [default: the law's]
    #[arg(long, value_name = "RATE")]
    pub(crate) x_max: Option<Rate>,
}

const COMPACT_TPID: Tpid = Tpid(0x88b5);
const WIDE_TPID: Tpid = Tpid(0x88b6);

fn compact_tpid() -> Tpid {
    COMPACT_TPID
}

fn wide_tpid() -> Tpid {
    WIDE_TPID
}

/// The kind of neighbour behind a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TagRole {
    /// A neighbour that reads tags: frames leave with a tag.
    #[default]
    Inside,
    /// A neighbour outside the domain: frames leave without a tag, and arriving tags are ignored.
    Edge,
    /// A neighbour of a host in the domain: like inside, and arriving prices are copied into MaxNet's option.
    End,
}

/// The format of tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TagFormat {
    /// Tag of 4 bytes with 32 bands.
    Compact,
    /// Tag of 8 bytes with 2²⁰ bands.
    #[default]
    Wide,
}

/// The signal that tags carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TagSignal {
    /// MaxNet's price: the maximum on the path (type 7, which is not assigned)
    #[default]
    Price,
    /// Available bandwidth: the minimum on the path
    Abw,
    /// Available bandwidth over capacity: the minimum on the path
    Abwc,
    /// Queueing delay: the maximum on the path
    Delay,
    /// Queue length over the port's speed: the maximum on the path
    Nqd,
}

/// Implements `Display` with the names of variants in the file and on the command line.
macro_rules! names {
    ($type:ident { $($variant:ident = $name:literal),+ }) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $name),+ })
            }
        }
    };
}

names!(TagRole { Inside = "inside", Edge = "edge", End = "end" });
names!(TagFormat { Compact = "compact", Wide = "wide" });
names!(TagSignal { Price = "price", Abw = "abw", Abwc = "abwc", Delay = "delay", Nqd = "nqd" });
