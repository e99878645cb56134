//! The tables of the file. Their doc comments are the descriptions in its JSON Schema.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{
    Address, AnyRate, Burst, CongestionControl, Cookie, DemandTime, Device, Interval, Law, Locator, Network, OneOrMany,
    OptionKind, Overhead, Parsed, Rate, Target, Text, Tpid, Volume, required_word, table, word,
};
use super::{DEFAULT_CONTROL, Format, Level, LogConfig};
use crate::daemon::csig::{Format as CsigFormat, Role, Signal};
use crate::daemon::host::Kind as KindOfOption;
use crate::daemon::law;
use crate::daemon::router::CohabitController;
use crate::daemon::settings::{CsigSettings, HostSettings, RouterSettings};

/// The configuration of waterfilld: what `waterfilld run` loads and serves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "waterfilld.toml")]
pub(super) struct File {
    /// Laws of this end host; [[host]] for several.
    #[serde(default)]
    pub(super) host: OneOrMany<HostTable>,
    /// Links of this router: a table for each device and law.
    #[serde(default)]
    pub(super) router: OneOrMany<RouterTable>,
    /// Devices of a CSIG domain: a table for each device.
    #[serde(default)]
    pub(super) csig: OneOrMany<CsigTable>,
    /// Metrics for Prometheus.
    #[serde(default, deserialize_with = "table")]
    pub(super) metrics: MetricsTable,
    /// The log, on standard error.
    #[serde(default, deserialize_with = "table")]
    pub(super) log: LogTable,
    /// Where kernel programs are pinned.
    #[serde(default, deserialize_with = "table")]
    pub(super) pins: PinsTable,
    /// The socket of `waterfilld reload`.
    #[serde(default, deserialize_with = "table")]
    pub(super) control: ControlTable,
}

/// One law on this end host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HostTable {
    /// The law; hosts and routers of a path have the same. Default: maxnet.
    law: Option<Parsed<Law>>,
    /// Parameters of the law, by the names of `waterfilld laws`.
    #[serde(default)]
    params: BTreeMap<String, Parsed<Text>>,
    /// Name in TCP's list of congestion controls. Default: bpf_ and the law's.
    name: Option<Parsed<CongestionControl>>,
    /// Only connections of this control group (version 2). Default: all.
    cgroup: Option<PathBuf>,
    /// Congestion control for paths without a router. Default: cubic.
    fallback: Option<Parsed<CongestionControl>>,
    /// Only connections of these network namespaces, by cookie (`SO_NETNS_COOKIE`). Default: all.
    #[serde(default)]
    netns_cookies: Vec<Parsed<Cookie>>,
    /// Only connections with hosts of these networks. Default: all.
    #[serde(default)]
    peers: Vec<Parsed<Network>>,
    /// Let every user and network namespace select the law.
    #[serde(default)]
    unrestricted: bool,
    /// Kind of the TCP option: 253 (RFC 6994), or 42 (the papers' own, for closed networks only). Default: 253.
    option_kind: Option<Parsed<OptionKind>>,
}

/// One law on one device of this router.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "options of a device that do not depend on each other")]
pub(super) struct RouterTable {
    /// Device whose outgoing packets get the price. It may come later, go, and come again.
    device: Parsed<Device>,
    /// Rate of the link behind the device.
    rate: Parsed<Rate>,
    /// The law; hosts and routers of a path have the same. Default: maxnet.
    law: Option<Parsed<Law>>,
    /// Parameters of the law, by the names of `waterfilld laws`.
    #[serde(default)]
    params: BTreeMap<String, Parsed<Text>>,
    /// Fraction of the rate to fill. Default: the law's; MaxNet's is 0.9.
    target: Option<Parsed<Target>>,
    /// Bytes per packet on the link beyond its IP length. Default: 14, Ethernet's header.
    overhead: Option<Parsed<Overhead>>,
    /// Compute the queue from arrivals and the rate, even where the device's queue can be read.
    #[serde(default)]
    virtual_queue: bool,
    /// Limit the device to the rate, for a link that is slower than its device.
    #[serde(default)]
    shape: bool,
    /// Buffer of the shaper. Default: 100 ms at the rate.
    buffer: Option<Parsed<Volume>>,
    /// Drop or mark TCP packets so that explicit flows keep their fair share; needs Linux 6.6.
    #[serde(default, deserialize_with = "word")]
    cohabit: Option<Cohabit>,
    /// Parameters of `cohabit`, named as in a scenario's `queue_params`.
    #[serde(default)]
    cohabit_params: BTreeMap<String, Parsed<Text>>,
    /// A queue for explicit flows and one for the rest instead of the controller of `cohabit`.
    #[serde(default)]
    separate: bool,
    /// Write the fair rate of a flow as advice into SCONE packets of QUIC; needs Linux 6.6.
    #[serde(default)]
    scone: bool,
}

/// CSIG's tags at one device; needs Linux 6.6.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CsigTable {
    /// Device with Ethernet headers. It may come later, go, and come again.
    device: Parsed<Device>,
    /// What is behind the device.
    #[serde(deserialize_with = "required_word")]
    role: Role,
    /// The tags that are pushed. Default: wide.
    #[serde(default, deserialize_with = "word")]
    format: Option<CsigFormat>,
    /// What the tags carry. Default: price.
    #[serde(default, deserialize_with = "word")]
    signal: Option<Signal>,
    /// The first band's end: a rate; of the other signals a time, or a share. Default: 100 kbit/s, others 0.
    from: Option<Parsed<Text>>,
    /// The last band's end. Default: price 250 Gbit/s, abw 100 Gbit/s, delay and nqd 10 ms.
    to: Option<Parsed<Text>>,
    /// EtherType of compact tags. Default: 0x88b5.
    tpid_compact: Option<Parsed<Tpid>>,
    /// EtherType of wide tags. Default: 0x88b6.
    tpid_wide: Option<Parsed<Tpid>>,
    /// This hop's locator metadata, from 1 to 63, or to 32767 in wide tags. Default: 1.
    locator: Option<Parsed<Locator>>,
    /// MaxNet's T of the demand function, for the bands of prices. Default: 400 ms.
    t: Option<Parsed<DemandTime>>,
    /// MaxNet's largest rate of a connection, for the bands of prices. Default: 1 Pbit/s.
    x_max: Option<Parsed<AnyRate>>,
}

/// What controls TCP's packets.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Cohabit {
    /// The paper's: two fixed factors.
    Paper,
    /// The improved one, which follows the error.
    Improved,
}

/// Metrics for Prometheus.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricsTable {
    /// Address and port, such as 127.0.0.1:9465. Default: no metrics.
    pub(super) listen: Option<Parsed<Address>>,
}

/// The log, on standard error.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogTable {
    /// Least level that is logged; the environment's `RUST_LOG` overrides it. Default: info.
    #[serde(default, deserialize_with = "word")]
    level: Option<Level>,
    /// Lines of text, or one JSON object a line. Default: text.
    #[serde(default, deserialize_with = "word")]
    format: Option<Format>,
    /// Messages of one kind that are logged in an interval; the others are counted. Default: 20.
    burst: Option<Parsed<Burst>>,
    /// The interval of `burst`. Default: 10 s.
    interval: Option<Parsed<Interval>>,
}

/// Where kernel programs are pinned.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PinsTable {
    /// Folder on a BPF file system. Default: waterfill on the mounted one.
    pub(super) directory: Option<PathBuf>,
}

/// The socket of `waterfilld reload`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlTable {
    /// Path of the socket; its folder is made with mode 0700. Default: /run/waterfill/control.sock.
    path: Option<PathBuf>,
}

fn named(values: BTreeMap<String, Parsed<Text>>) -> Vec<(String, String)> {
    values.into_iter().map(|(name, Parsed(text))| (name, text)).collect()
}

fn or<K: super::values::Kind>(value: Option<Parsed<K>>, default: K::Value) -> K::Value {
    value.map_or(default, |Parsed(value)| value)
}

fn all<K: super::values::Kind>(values: Vec<Parsed<K>>) -> Vec<K::Value> {
    values.into_iter().map(|Parsed(value)| value).collect()
}

impl From<HostTable> for HostSettings {
    fn from(table: HostTable) -> Self {
        Self {
            law: or(table.law, law::default()),
            values: named(table.params),
            name: table.name.map(|Parsed(name)| name),
            cgroup: table.cgroup,
            fallback: or(table.fallback, "cubic".into()),
            netns_cookies: all(table.netns_cookies),
            peers: all(table.peers),
            unrestricted: table.unrestricted,
            kind: or(table.option_kind, KindOfOption::Experiment),
        }
    }
}

impl From<RouterTable> for RouterSettings {
    fn from(table: RouterTable) -> Self {
        Self {
            device: table.device.0,
            rate_bps: table.rate.0,
            law: or(table.law, law::default()),
            values: named(table.params),
            target: table.target.map(|Parsed(target)| target),
            overhead_bytes: or(table.overhead, 14),
            virtual_queue: table.virtual_queue,
            shape: table.shape,
            buffer_bytes: table.buffer.map(|Parsed(bytes)| bytes),
            cohabit: table.cohabit.map(|controller| match controller {
                Cohabit::Paper => CohabitController::Paper,
                Cohabit::Improved => CohabitController::Improved,
            }),
            cohabit_values: named(table.cohabit_params),
            separate: table.separate,
            scone: table.scone,
        }
    }
}

impl From<CsigTable> for CsigSettings {
    fn from(table: CsigTable) -> Self {
        let text = |value: Option<Parsed<Text>>| value.map(|Parsed(text)| text);
        Self {
            device: table.device.0,
            role: table.role,
            format: table.format.unwrap_or(CsigFormat::Wide),
            signal: table.signal.unwrap_or(Signal::Price),
            from: text(table.from),
            to: text(table.to),
            tpid_compact: or(table.tpid_compact, 0x88b5),
            tpid_wide: or(table.tpid_wide, 0x88b6),
            locator: or(table.locator, 1),
            t: table.t.map(|Parsed(time)| time),
            x_max: table.x_max.map(|Parsed(rate)| rate),
        }
    }
}

impl From<LogTable> for LogConfig {
    fn from(table: LogTable) -> Self {
        let default = Self::default();
        Self {
            level: table.level.unwrap_or(default.level),
            format: table.format.unwrap_or(default.format),
            burst: or(table.burst, default.burst),
            interval: or(table.interval, default.interval),
        }
    }
}

impl ControlTable {
    pub(super) fn path(self) -> PathBuf {
        self.path.unwrap_or_else(|| DEFAULT_CONTROL.into())
    }
}
