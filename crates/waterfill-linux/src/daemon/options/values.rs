//! Types of option values. Options and keys of the file parse them in the same way, and errors say what to write.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use waterfill_laws::protocol::BaseRtt;
use waterfill_laws::registry::ProtocolId;

use super::names::unknown;
use super::network::Network;
use super::quantity::{self, show_rate};
use super::reading::{Scalar, scalar};

/// Implements deserialization from the file for a type that parses text.
macro_rules! read_from_files {
    ($name:ident, $schema:expr) => {
        impl Scalar for $name {
            fn schema() -> Schema {
                $schema
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                scalar(deserializer)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                <Self as Scalar>::schema()
            }
        }
    };
}

/// Declares a type of option value with its parser and its JSON Schema.
macro_rules! value {
    ($(#[$about:meta])* $name:ident($inner:ty), $parse:expr, $schema:tt) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub(crate) struct $name(pub(crate) $inner);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                ($parse)(text).map(Self)
            }
        }

        read_from_files!($name, json_schema!($schema));
    };
}

value!(
    /// A rate in bit/s. Text must include a unit.
    #[derive(Copy, Default)]
    Rate(u64), quantity::rate,
    { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*([kMGTP]?(bit/s|bit|B/s)|[kmgtp]bit)$" }
);
value!(
    /// A volume in bytes. Text may include a unit.
    #[derive(Copy)]
    Volume(u64), quantity::volume,
    {
        "type": ["string", "integer"], "minimum": 1,
        "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*([kMGTP]?B)?$"
    }
);
value!(
    /// Interval in which the log limits messages of one kind.
    #[derive(Copy)]
    LogInterval(Duration), log_interval,
    { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*[munµμ]?s$" }
);
value!(
    /// Time parameter T of MaxNet's demand function.
    #[derive(Copy)]
    DemandTime(Duration), demand_time,
    { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*[munµμ]?s$" }
);
value!(
    /// Time after which a host forgets an RTT as the smallest; `None` for TCP's own window.
    #[derive(Copy)]
    BaseRttWindow(Option<Duration>), base_rtt_window,
    { "type": "string", "pattern": r"^\s*(unlimited|[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*[munµμ]?s)$" }
);
value!(
    /// RTT above the base RTT from which a host suspects a queue without a router.
    #[derive(Copy)]
    QueueMargin(Duration), queue_margin,
    { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*[munµμ]?s$" }
);
value!(
    /// Target utilization: a fraction of a link's rate.
    #[derive(Copy)]
    Target(f64), target,
    { "type": "number", "minimum": 1e-6, "maximum": 1 }
);
value!(
    /// Number of bytes that a packet has on the link beyond its IP length.
    #[derive(Copy)]
    Overhead(i32), overhead,
    { "type": "integer", "minimum": 0, "maximum": 1000 }
);
value!(
    /// An EtherType.
    #[derive(Copy)]
    Tpid(u16), tpid,
    { "type": ["integer", "string"], "minimum": 1536, "maximum": 65535, "pattern": "^(0x[0-9a-fA-F]{3,4}|[0-9]{4,5})$" }
);
value!(
    /// Locator of a hop in tags. Compact tags have space for locators up to 63.
    #[derive(Copy)]
    Locator(u32), locator,
    { "type": "integer", "minimum": 1, "maximum": 32767 }
);
value!(
    /// Name of a network device.
    #[derive(Default)]
    Device(String), device,
    { "type": "string", "pattern": r"^[^/\s]{1,15}$" }
);
value!(
    /// Name of a TCP congestion control in the kernel.
    CongestionControl(String), congestion_control,
    { "type": "string", "pattern": "^[A-Za-z0-9_]{1,15}$" }
);
value!(
    /// Cookie of a network namespace.
    #[derive(Copy)]
    Cookie(u64), cookie,
    { "type": ["string", "integer"], "minimum": 1, "pattern": "^(0x[0-9A-Fa-f]+|[0-9]+)$" }
);
value!(
    /// Address and port where metrics are served.
    #[derive(Copy)]
    Address(SocketAddr), address,
    { "type": "string", "pattern": r"^([0-9.]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$" }
);
value!(
    /// Maximum number of messages of one kind that are logged in an interval.
    #[derive(Copy)]
    Burst(u32), burst,
    { "type": "integer", "minimum": 1, "maximum": 1_000_000 }
);
value!(
    /// Text of a value that is checked elsewhere.
    Text(String), |text: &str| Ok::<_, String>(text.to_owned()),
    { "type": ["string", "number", "boolean"] }
);
read_from_files!(Network, json_schema!({ "type": "string", "pattern": r"^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$" }));

impl Default for Overhead {
    /// Returns the length of an Ethernet header.
    fn default() -> Self {
        Self(14)
    }
}

impl Default for BaseRttWindow {
    /// Returns the window of laws that keep queues empty, as in the simulator.
    fn default() -> Self {
        Self(BaseRtt::EmptyQueues.window().map(|window| Duration::from_nanos(window.as_ps() / 1000)))
    }
}

impl Default for QueueMargin {
    fn default() -> Self {
        Self(Duration::from_millis(3))
    }
}

impl fmt::Display for BaseRttWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map_or_else(|| UNLIMITED.into(), |window| quantity::show_time(window.as_secs_f64())))
    }
}

impl fmt::Display for QueueMargin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quantity::show_time(self.0.as_secs_f64()))
    }
}

impl Default for Locator {
    fn default() -> Self {
        Self(1)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_rate(self.0))
    }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tpid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of a law that has kernel code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LawName(pub(crate) &'static str);

impl LawName {
    /// Returns the names of all laws that have kernel code, the default first.
    fn all() -> impl Iterator<Item = &'static str> {
        ProtocolId::ALL.iter().filter(|id| id.kernel().is_some()).map(|id| id.info().name)
    }
}

impl Default for LawName {
    fn default() -> Self {
        Self(ProtocolId::ALL[0].info().name)
    }
}

impl FromStr for LawName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::all().find(|name| *name == text);
        found.map(Self).ok_or_else(|| unknown("law", text, Self::all()))
    }
}

impl fmt::Display for LawName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

read_from_files!(LawName, json_schema!({ "type": "string", "enum": LawName::all().collect::<Vec<_>>() }));

/// Kind of the TCP option on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OptionKind {
    /// Kind 253, for experiments, with an ExID.
    #[default]
    Experiment,
    /// Kind 42, which the MaxNet papers use.
    Paper,
}

impl OptionKind {
    fn number(self) -> u8 {
        match self {
            Self::Experiment => 253,
            Self::Paper => 42,
        }
    }
}

impl FromStr for OptionKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::Experiment, Self::Paper].into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| "must be 253 or 42".into())
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl Serialize for OptionKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

read_from_files!(OptionKind, json_schema!({ "type": "integer", "enum": [253, 42] }));

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an address and a port, such as 127.0.0.1:9465 or [::1]:9465".into())
}

/// Parses the name of a congestion control. It has up to 15 bytes (TCP_CA_NAME_MAX), and BPF restricts its characters.
fn congestion_control(text: &str) -> Result<String, String> {
    let fits = (1..16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    fits.then(|| text.into()).ok_or_else(|| "must be 1 to 15 letters, digits and underscores".into())
}

/// Parses the name of a device, which has up to 15 bytes (IFNAMSIZ). Another check finds out if the device exists.
fn device(text: &str) -> Result<String, String> {
    let fits =
        (1..16).contains(&text.len()) && !text.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    fits.then(|| text.into()).ok_or_else(|| "must be the name of a network device".into())
}

fn cookie(text: &str) -> Result<u64, String> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    parsed.filter(|n| *n != 0).ok_or_else(|| "must be a namespace's cookie (SO_NETNS_COOKIE), a number above 0".into())
}

/// Parses an EtherType of at least 0x600. The EtherTypes of IP, ARP and VLANs are refused because the network already
/// uses them.
fn tpid(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u16::from_str_radix(hex, 16).ok());
    number
        .filter(|n| *n >= 0x600 && ![0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8].contains(n))
        .ok_or_else(|| "must be an EtherType from 0x0600, such as 0x88b5, and not that of IP, ARP or a VLAN".into())
}

fn locator(text: &str) -> Result<u32, String> {
    let fits = text.parse().ok().filter(|n| (1..=32767).contains(n));
    fits.ok_or_else(|| "must be a whole number from 1 to 63, or to 32767 in wide tags".into())
}

fn target(text: &str) -> Result<f64, String> {
    let fits = text.parse().ok().filter(|x| (1e-6..=1.0).contains(x));
    fits.ok_or_else(|| "must be a fraction such as 0.9, from 1e-6 to 1".into())
}

fn overhead(text: &str) -> Result<i32, String> {
    let fits = text.parse().ok().filter(|bytes| (0..=1000).contains(bytes));
    fits.ok_or_else(|| "must be whole bytes from 0 to 1000".into())
}

fn burst(text: &str) -> Result<u32, String> {
    let fits = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    fits.ok_or_else(|| "must be a whole number from 1 to 1000000".into())
}

fn log_interval(text: &str) -> Result<Duration, String> {
    let fits = quantity::time(text).ok().filter(|time| (100..=3_600_000).contains(&time.as_millis()));
    fits.ok_or_else(|| "must be a time from \"100 ms\" to \"3600 s\"".into())
}

/// Text of a window that never ends.
const UNLIMITED: &str = "unlimited";

fn base_rtt_window(text: &str) -> Result<Option<Duration>, String> {
    if text.trim() == UNLIMITED {
        return Ok(None);
    }
    let fits = quantity::time(text).ok().filter(|time| (1..=1_000_000_000).contains(&time.as_millis()));
    fits.map(Some).ok_or_else(|| "must be a time from \"1 ms\" to \"1000000 s\", or \"unlimited\"".into())
}

fn queue_margin(text: &str) -> Result<Duration, String> {
    let fits = quantity::time(text).ok().filter(|time| (10..=1_000_000).contains(&time.as_micros()));
    fits.ok_or_else(|| "must be a time from \"10 us\" to \"1 s\"".into())
}

fn demand_time(text: &str) -> Result<Duration, String> {
    let time = quantity::time(text)?;
    let fits = (1..=100_000).contains(&time.as_millis()) && time.subsec_nanos() % 1_000_000 == 0;
    fits.then_some(time).ok_or_else(|| "must be a time from 1ms to 100s, in steps of 1ms".into())
}

/// Parses a law's parameter written as `name=value`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be a parameter and its value, such as alpha=0.5")?;
    Ok((name.trim().into(), value.trim().into()))
}

/// Parses a parameter of `cohabit` written as `name=value`. A missing value is reported later as an error of the
/// parameter.
#[expect(clippy::unnecessary_wraps, reason = "clap takes parsers that may fail")]
pub(crate) fn cohabit_assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    Ok((name.trim().into(), value.trim().into()))
}

/// Deserializes a table of parameters into names and values.
pub(crate) fn assignments<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    let table = BTreeMap::<String, Text>::deserialize(from)?;
    Ok(table.into_iter().map(|(name, Text(value))| (name, value)).collect())
}
