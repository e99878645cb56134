//! The resolved scenario: links, flows and traffic in SI units, with routes as link indexes.
//!
//! The front end parses units, names and routes; this room checks what it is handed and expands
//! `count`. Field names end in their unit.

use std::collections::BTreeMap;

use serde::Deserialize;
use waterfill_laws::params::Value;
use waterfill_laws::protocol::Ecn;
use waterfill_laws::registry::{AnyParams, ProtocolId};

use crate::distribution::Distribution;
use crate::fault::{LossSpec, ReorderSpec};
use crate::queue::QueueSpec;

/// A network to simulate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Title.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Length of the run.
    pub duration_s: f64,
    /// Window of the summary.
    pub measure_s: [f64; 2],
    /// Interval of the time series.
    pub sample_s: f64,
    /// A full data packet on the wire, headers included.
    pub packet_bytes: u16,
    /// An acknowledgement on the wire, and a SYN.
    pub ack_bytes: u16,
    /// Least retransmission time-out.
    pub rto_min_s: f64,
    /// What the user set, by protocol and parameter.
    #[serde(default)]
    pub params: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    /// One a direction.
    pub links: Vec<LinkSpec>,
    /// Groups of alike flows.
    pub flows: Vec<FlowSpec>,
    /// What is not congestion controlled.
    #[serde(default)]
    pub traffic: Vec<TrafficSpec>,
}

/// One link direction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name; a reverse direction ends in `:rev`.
    pub name: String,
    /// Rate.
    pub rate_bps: f64,
    /// Propagation delay.
    pub delay_s: f64,
    /// Most bytes that may wait; none is no limit in bytes.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// Most packets that may wait; none is no limit in packets.
    #[serde(default)]
    pub buffer_packets: Option<u64>,
    /// What waits, and what is done about it.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Probability that a packet is lost on the wire; zero where there is a `loss_model`.
    #[serde(default)]
    pub loss: f64,
    /// Which packets are lost on the wire.
    #[serde(default)]
    pub loss_model: Option<LossSpec>,
    /// Packets that arrive late.
    #[serde(default)]
    pub reorder: Option<ReorderSpec>,
    /// Share of packets that arrive twice.
    #[serde(default)]
    pub duplicate: f64,
    /// Utilisation aimed at in place of the protocols'.
    #[serde(default)]
    pub target: Option<f64>,
    /// Protocols whose router law runs here; none is all whose data cross it.
    #[serde(default)]
    pub routers: Option<Vec<String>>,
}

/// A group of `count` alike flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name of the group.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Protocol's name.
    pub protocol: String,
    /// Links that data crosses, in order.
    pub forward: Vec<u32>,
    /// Links that acknowledgements cross, in order.
    pub reverse: Vec<u32>,
    /// When the first flow sends its SYN.
    pub start_s: f64,
    /// How much later each next one does.
    pub stagger_s: f64,
    /// When they stop sending new data.
    pub stop_s: f64,
    /// Payload to send; none is without end.
    pub size_bytes: Option<u64>,
    /// One-way padding at the source's access, both ways.
    pub pad_s: f64,
    /// Base round trip, for the summary.
    pub base_rtt_s: f64,
    /// Share in weighted fairness.
    pub weight: f64,
    /// Rate at which the application writes; none is as fast as it can.
    pub demand_bps: Option<f64>,
    /// Window before anything is known.
    pub initial_window_packets: f64,
    /// Pacing on or off; none is as the law asks.
    pub pacing: Option<bool>,
    /// Acknowledge every second packet.
    pub delayed_ack: bool,
    /// Whether packets may be marked; none is as the law asks.
    #[serde(default)]
    pub ecn: Option<bool>,
}

/// A source of packets that nothing controls, or of finite flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name.
    pub name: String,
    /// What decides on the times.
    pub kind: TrafficKind,
    /// Links that its packets, or its flows' data, cross in order.
    pub path: Vec<u32>,
    /// Of packets: their rate, while the source is on.
    #[serde(default)]
    pub rate_bps: Option<f64>,
    /// When it starts.
    pub start_s: f64,
    /// When it sends its last packet, or begins its last flow.
    pub stop_s: f64,
    /// Size of its packets.
    pub packet_bytes: u16,
    /// Of an on–off source.
    #[serde(default)]
    pub periods: Option<PeriodSpec>,
    /// Of a source of flows.
    #[serde(default)]
    pub flows: Option<ArrivalSpec>,
}

/// How long an on–off source is on and off, in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodSpec {
    /// Lengths of the periods in which it sends.
    pub on_s: Distribution,
    /// Lengths of those in which it does not.
    pub off_s: Distribution,
}

/// Flows that arrive as a Poisson process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalSpec {
    /// Mean number in a second.
    pub arrivals_per_s: f64,
    /// Payload of each.
    pub sizes_bytes: Distribution,
    /// What they have in common; its count, size and times of start are not looked at.
    pub flow: FlowSpec,
}

/// Kinds of traffic.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum TrafficKind {
    /// Constant bit rate.
    Cbr,
    /// Packets with exponential gaps, or flows that arrive so.
    Poisson,
    /// Constant bit rate in periods.
    OnOff,
    /// Flows with exponential gaps.
    Web,
}

impl TrafficKind {
    /// Its name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cbr => "cbr",
            Self::Poisson => "poisson",
            Self::OnOff => "onoff",
            Self::Web => "web",
        }
    }
}

/// Most flows, sources and links together that a run may have (an index must fit 32 bits, and a run memory).
pub const FLOWS_MAX: u64 = 10_000_000;

/// Most flows that one source may begin in a second: a thousand in the time of a packet at 10 Gbit/s.
const ARRIVALS_MAX: f64 = 1e9;

/// Largest weight: beyond, one flow's share is the link.
const WEIGHT_MAX: f64 = 1e6;

/// Room for TCP and IP headers in every packet.
pub const TCP_IP_BYTES: u16 = 40;

impl Network {
    /// Reads the resolved scenario.
    ///
    /// # Errors
    /// One sentence: what is missing or out of range.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let network: Self = serde_json::from_str(json).map_err(|e| e.to_string())?;
        network.check()?;
        Ok(network)
    }

    /// The parameters of a protocol, the user's over the defaults.
    ///
    /// # Errors
    /// One sentence that names the parameter.
    pub fn params_of(&self, id: ProtocolId) -> Result<AnyParams, String> {
        params_from(id, self.params.get(id.info().name))
    }

    fn check(&self) -> Result<(), String> {
        time("duration", self.duration_s)?;
        positive("duration", self.duration_s)?;
        positive("sample", self.sample_s)?;
        time("rto_min", self.rto_min_s)?;
        let [from, to] = self.measure_s;
        if !(0.0 <= from && from < to && to <= self.duration_s) {
            return Err(format!("measure: expected a window within the run, got {from} to {to} s"));
        }
        if self.links.is_empty() {
            return Err("link: expected at least one".into());
        }
        for link in &self.links {
            positive(&format!("link.{}.rate", link.name), link.rate_bps)?;
            time(&format!("link.{}.delay", link.name), link.delay_s)?;
            link.check().map_err(|e| format!("link.{}.{e}", link.name))?;
            if link.target.is_some_and(|t| !(t > 0.0 && t <= 1.0)) {
                return Err(format!("link.{}.target: expected a number in (0, 1]", link.name));
            }
        }
        let mut flows = 0;
        for flow in &self.flows {
            let at = format!("flow.{}", flow.name);
            flows += u64::from(flow.count);
            if flows > FLOWS_MAX {
                return Err(format!("{at}.count: expected at most {FLOWS_MAX} flows in all"));
            }
            self.check_flow(&at, flow)?;
        }
        for traffic in &self.traffic {
            self.check_traffic(&format!("traffic.{}", traffic.name), traffic)?;
        }
        if self.ack_bytes == 0 {
            return Err("ack_size: expected a volume above zero".into());
        }
        Ok(())
    }

    fn check_path(&self, at: &str, path: &[u32]) -> Result<(), String> {
        let known = path.iter().all(|&l| (l as usize) < self.links.len());
        if !path.is_empty() && path.len() < usize::from(u16::MAX) && known {
            Ok(())
        } else {
            Err(format!("{at}.path: expected at least one of the links"))
        }
    }

    fn check_flow(&self, at: &str, flow: &FlowSpec) -> Result<(), String> {
        self.check_path(at, &flow.forward)?;
        self.check_path(at, &flow.reverse)?;
        for (key, s) in
            [("start", flow.start_s), ("stagger", flow.stagger_s), ("stop", flow.stop_s), ("rtt", flow.pad_s)]
        {
            time(&format!("{at}.{key}"), s)?;
        }
        positive(&format!("{at}.weight"), flow.weight)?;
        if flow.weight > WEIGHT_MAX {
            return Err(format!("{at}.weight: expected at most {WEIGHT_MAX:e}, got {:e}", flow.weight));
        }
        positive(&format!("{at}.initial_window"), flow.initial_window_packets)?;
        if let Some(demand) = flow.demand_bps {
            positive(&format!("{at}.demand"), demand)?;
        }
        if flow.size_bytes == Some(0) {
            return Err(format!("{at}.size: expected a volume above zero"));
        }
        let id = Self::protocol_of(at, flow)?;
        let headers = TCP_IP_BYTES + id.header_bytes() as u16;
        if self.packet_bytes <= headers {
            return Err(format!(
                "packet_size: expected more than the {headers} B of headers of {}, got {} B",
                flow.protocol, self.packet_bytes
            ));
        }
        if flow.ecn == Some(true) && id.info().host.ecn == Ecn::Off {
            return Err(format!("{at}.ecn: expected false, as {} does not hear marks", flow.protocol));
        }
        self.params_of(id).map(drop)
    }

    fn check_traffic(&self, at: &str, traffic: &TrafficSpec) -> Result<(), String> {
        self.check_path(at, &traffic.path)?;
        positive(&format!("{at}.packet_size"), f64::from(traffic.packet_bytes))?;
        time(&format!("{at}.start"), traffic.start_s)?;
        time(&format!("{at}.stop"), traffic.stop_s)?;
        let kind = traffic.kind;
        let of_flows = kind == TrafficKind::Web || (kind == TrafficKind::Poisson && traffic.rate_bps.is_none());
        if traffic.rate_bps.is_none() != of_flows || traffic.flows.is_some() != of_flows {
            return Err(format!("{at}.rate: expected a rate of packets, or arrivals of flows, as {} has", kind.name()));
        }
        if traffic.periods.is_some() != (kind == TrafficKind::OnOff) {
            return Err(format!("{at}.on: expected on- and off-periods of an on–off source, and of no other"));
        }
        if let Some(rate_bps) = traffic.rate_bps {
            positive(&format!("{at}.rate"), rate_bps)?;
            if let Some(PeriodSpec { on_s, off_s }) = &traffic.periods {
                on_s.check().map_err(|e| format!("{at}.on: {e}"))?;
                off_s.check().map_err(|e| format!("{at}.off: {e}"))?;
                let packet_s = f64::from(traffic.packet_bytes) * 8.0 / rate_bps;
                if on_s.mean() < packet_s {
                    return Err(format!("{at}.on: expected at least a packet's time at the rate, {packet_s} s"));
                }
            }
        }
        if let Some(flows) = &traffic.flows {
            positive(&format!("{at}.arrival_rate"), flows.arrivals_per_s)?;
            if flows.arrivals_per_s > ARRIVALS_MAX {
                return Err(format!("{at}.arrival_rate: expected at most {ARRIVALS_MAX:e} flows a second"));
            }
            flows.sizes_bytes.check().map_err(|e| format!("{at}.sizes: {e}"))?;
            self.check_flow(at, &flows.flow)?;
        }
        Ok(())
    }

    /// The protocol of a flow; `at` names it.
    ///
    /// # Errors
    /// One sentence: the registry has none of that name.
    pub fn protocol_of(at: &str, flow: &FlowSpec) -> Result<ProtocolId, String> {
        ProtocolId::by_name(&flow.protocol)
            .ok_or_else(|| format!("{at}.protocol: expected one of the registry, got {:?}", flow.protocol))
    }
}

fn time(name: &str, s: f64) -> Result<(), String> {
    // 10⁶ s are 10¹⁸ ps: far from where the clock saturates.
    if (0.0..=1e6).contains(&s) { Ok(()) } else { Err(format!("{name}: expected 0 to 1e6 s, got {s}")) }
}

fn positive(name: &str, x: f64) -> Result<(), String> {
    if x.is_finite() && x > 0.0 { Ok(()) } else { Err(format!("{name}: expected a number above zero, got {x}")) }
}

impl LinkSpec {
    /// The queue and the faults.
    fn check(&self) -> Result<(), String> {
        let share = |name: &str, x: f64| {
            let good = (0.0..=1.0).contains(&x);
            good.then_some(()).ok_or_else(|| format!("{name}: expected 0 to 1, got {x}"))
        };
        share("loss", self.loss)?;
        share("duplicate", self.duplicate)?;
        if let Some(model) = &self.loss_model {
            if self.loss > 0.0 {
                return Err("loss_model: expected either this or loss, got both".into());
            }
            model.check()?;
        }
        if let Some(reorder) = &self.reorder {
            share("reorder.share", reorder.share)?;
            if !(reorder.delay_s > 0.0 && reorder.delay_s <= 1e6) {
                return Err(format!("reorder.delay: expected a time above zero, got {} s", reorder.delay_s));
            }
        }
        self.queue.check()
    }
}

/// A protocol's parameters from name–value pairs in SI units.
///
/// # Errors
/// One sentence that names the parameter.
pub fn params_from(id: ProtocolId, set: Option<&BTreeMap<String, serde_json::Value>>) -> Result<AnyParams, String> {
    let name = id.info().name;
    let mut params = id.params();
    for (key, value) in set.into_iter().flatten() {
        let value = match value {
            serde_json::Value::Number(n) => Value::Number(n.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(s) => Value::Word(s.clone()),
            serde_json::Value::Bool(b) => Value::Flag(*b),
            other => return Err(format!("params.{name}.{key}: expected a number, a word or a flag, got {other}")),
        };
        params.set(key, &value).map_err(|e| format!("params.{name}.{e}"))?;
    }
    params.validate().map_err(|e| format!("params.{name}.{e}"))?;
    Ok(params)
}
