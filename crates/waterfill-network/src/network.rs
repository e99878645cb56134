//! Resolved scenario: links, flows and traffic in SI units, with routes as link indexes.
//!
//! The front end parses units, names and routes. This crate checks what it receives, so that the engines are safe to use
//! without the front end. Every field name ends in its unit.

use std::collections::BTreeMap;

use serde::Deserialize;
use waterfill_laws::params::Value;
use waterfill_laws::protocols::own;
use waterfill_laws::registry::{AnyParams, ProtocolId};

use crate::flow::FlowSpec;
use crate::link::LinkSpec;
use crate::sampling::SeriesSpec;
use crate::switch::SwitchSpec;
use crate::switching::SwitchingSpec;
use crate::traffic::TrafficSpec;

/// Network to simulate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Title of the network.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Length of the run in seconds.
    pub duration_s: f64,
    /// Start and end of the measurement window in seconds.
    pub measure_s: [f64; 2],
    /// Interval between samples of the time series in seconds.
    pub sample_s: f64,
    /// Size of a full data packet on the wire in bytes, headers included.
    pub packet_bytes: u16,
    /// Size of an acknowledgement or a SYN on the wire in bytes.
    pub ack_bytes: u16,
    /// Minimum retransmission timeout in seconds.
    pub rto_min_s: f64,
    /// Retransmission timeout of a SYN in seconds.
    pub syn_rto_s: f64,
    /// Minimum of the retransmission timeout's variance term in seconds.
    pub rttvar_min_s: f64,
    /// Parameters set by the user, by protocol name and parameter name.
    pub params: Params,
    /// Link directions, one entry per direction.
    pub links: Vec<LinkSpec>,
    /// Groups of flows.
    pub flows: Vec<FlowSpec>,
    /// Traffic sources in addition to the flows.
    pub traffic: Vec<TrafficSpec>,
    /// Switches that choose the links of packets without a path of their own; `None` if all packets have one.
    #[serde(default)]
    pub switching: Option<SwitchingSpec>,
    /// Links with time series; `None` if all have them, at each sample.
    #[serde(default)]
    pub series: Option<SeriesSpec>,
    /// Switches with a shared buffer. Other links have buffers of their own.
    #[serde(default)]
    pub switches: Vec<SwitchSpec>,
    /// Laws that programs provide, by name. They are not part of the serialized data.
    #[serde(skip)]
    pub own: own::Laws,
}

/// Values of parameters in SI units, by protocol name and parameter name.
pub type Params = BTreeMap<String, BTreeMap<String, ParamValue>>;

/// Value of a protocol's parameter in SI units.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged, expecting = "expected a number, a word or a flag")]
pub enum ParamValue {
    /// A flag, `true` or `false`.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A word from the parameter's choices.
    Word(String),
}

/// Maximum number of flows in a run. Flow indexes must fit into 32 bits, and the run must fit into memory.
pub const MAX_FLOWS: u64 = 10_000_000;

/// Bytes of TCP and IP headers in every packet.
pub const TCP_IP_BYTES: u16 = 40;

impl Network {
    /// Returns the network if all values are in range, and an error otherwise.
    ///
    /// # Errors
    /// One sentence: `KEY: must be …`.
    pub fn checked(self) -> Result<Self, String> {
        self.check()?;
        Ok(self)
    }

    /// Returns the protocol with this name, if there is one.
    #[must_use]
    pub fn protocol_named(&self, name: &str) -> Option<ProtocolId> {
        self.own.find(name).map(|law| ProtocolId::Own { law }).or_else(|| ProtocolId::by_name(name))
    }

    /// Returns a protocol's name in this run.
    #[must_use]
    pub fn name_of(&self, id: ProtocolId) -> &str {
        let own = if let ProtocolId::Own { law } = id { self.own.name(law) } else { None };
        own.unwrap_or(id.info().name)
    }

    /// Returns the indexes of the links with time series.
    #[must_use]
    pub fn sampled_links(&self) -> Vec<u32> {
        self.series.as_ref().map_or_else(|| (0..).take(self.links.len()).collect(), |chosen| chosen.links.clone())
    }

    /// Returns the number of samples of links per sample of flows and traffic sources.
    #[must_use]
    pub fn samples_of_links(&self) -> u32 {
        self.series.as_ref().map_or(1, |chosen| chosen.per_sample)
    }

    /// Returns the names of the series that a protocol's router and source record.
    #[must_use]
    pub fn signals_of(&self, id: ProtocolId) -> Vec<&str> {
        match id {
            ProtocolId::Own { law } => self.own.signals(law).iter().map(String::as_str).collect(),
            _ => id.info().signals.iter().map(|signal| signal.name).collect(),
        }
    }

    /// Returns a protocol's parameters: the user's values, and defaults for all others.
    ///
    /// # Errors
    /// One sentence that names the parameter.
    pub fn params_of(&self, id: ProtocolId) -> Result<AnyParams, String> {
        if let ProtocolId::Own { law } = id {
            return Ok(AnyParams::Own(self.own.params(law)));
        }
        params_from(id, self.params.get(id.info().name))
    }

    /// Returns the protocol of a flow. `at` names the flow in the error.
    ///
    /// # Errors
    /// One sentence: neither the registry nor a program has a protocol of that name.
    pub fn protocol_of(&self, at: &str, flow: &FlowSpec) -> Result<ProtocolId, String> {
        self.protocol_named(&flow.protocol)
            .ok_or_else(|| format!("{at}.protocol: unknown protocol {:?}", flow.protocol))
    }
}

/// Builds a protocol's parameters from name–value pairs in SI units, with defaults for all others.
///
/// # Errors
/// One sentence that names the parameter.
pub fn params_from(id: ProtocolId, set: Option<&BTreeMap<String, ParamValue>>) -> Result<AnyParams, String> {
    let name = id.info().name;
    let mut params = id.params();
    for (key, value) in set.into_iter().flatten() {
        let value = match value {
            ParamValue::Flag(flag) => Value::Flag(*flag),
            ParamValue::Number(number) => Value::Number(*number),
            ParamValue::Word(word) => Value::Word(word.clone()),
        };
        params.set(key, &value).map_err(|e| format!("params.{name}.{e}"))?;
    }
    params.validate().map_err(|e| format!("params.{name}.{e}"))?;
    Ok(params)
}
