//! Checks of a whole network.
//!
//! Every error is one sentence, `KEY: PROBLEM`, for example `measure: must be in the run`.

mod switches;
mod switching;

use std::collections::{BTreeMap, BTreeSet};

use waterfill_laws::kernel::Arithmetic;
use waterfill_laws::protocol::{Ecn, Retransmission, Validation};
use waterfill_laws::registry::{AnyParams, ProtocolId};

use crate::change;
use crate::check::{MIN_TIME_S, positive, time};
use crate::demand;
use crate::fault::{Effect, HostEffect};
use crate::flow::{AckFrequencySpec, FlowSpec};
use crate::link::LinkSpec;
use crate::network::{MAX_FLOWS, Network, TCP_IP_BYTES};
use crate::series::{CAPACITY_COLUMN, COHABIT_COLUMNS, FLOW_COLUMNS, LINK_COLUMNS, PAUSED_COLUMN, signal_column};
use crate::traffic::{ArrivalSpec, PeriodSpec, TrafficKind, TrafficSpec};

/// Maximum weight of a flow. With a larger weight, one flow would take the whole link.
const MAX_WEIGHT: f64 = 1e6;
/// Maximum flow arrivals per second of one source: a thousand per packet time at 10 Gbit/s.
const MAX_ARRIVALS: f64 = 1e9;

/// Returns the names of all columns that a series of flows or links may have without a program's law.
fn columns() -> BTreeSet<String> {
    let signals = ProtocolId::ALL.iter().flat_map(|id| {
        let law = id.info();
        law.signals.iter().map(|signal| signal_column(law.name, signal.name))
    });
    let fixed = [&FLOW_COLUMNS[..], &LINK_COLUMNS, &COHABIT_COLUMNS, &[CAPACITY_COLUMN, PAUSED_COLUMN]].concat();
    fixed.into_iter().map(String::from).chain(signals).collect()
}

impl Network {
    /// Checks every value of the network, and the references of flows and traffic.
    pub(crate) fn check(&self) -> Result<(), String> {
        time("duration", self.duration_s)?;
        positive("duration", self.duration_s)?;
        positive("sample", self.sample_s)?;
        if self.sample_s < MIN_TIME_S {
            return Err(format!("sample: must be at least 1 ps, got {:e} s", self.sample_s));
        }
        time("rto_min", self.rto_min_s)?;
        time("syn_rto", self.syn_rto_s)?;
        positive("syn_rto", self.syn_rto_s)?;
        time("rttvar_min", self.rttvar_min_s)?;
        let [from, to] = self.measure_s;
        if !(0.0 <= from && from < to && to <= self.duration_s) {
            return Err(format!("measure: must be within the run, got {from} to {to} s"));
        }
        if self.links.is_empty() {
            return Err("link: no link".into());
        }
        for link in &self.links {
            link.check()?;
            change::check(&link.changes, self.duration_s).map_err(|e| format!("link.{}.event.{e}", link.name))?;
            (link.faults.iter())
                .try_for_each(|fault| fault.check(self.duration_s))
                .map_err(|e| format!("link.{}.fault.{e}", link.name))?;
            self.check_depth(link)?;
        }
        let mut flows = 0;
        for flow in &self.flows {
            let at = format!("flow.{}", flow.name);
            flows += u64::from(flow.count);
            if flows > MAX_FLOWS {
                return Err(format!("{at}.count: more than {MAX_FLOWS} flows in all"));
            }
            self.check_flow(&at, flow)?;
            self.check_flow_routes(&at, flow)?;
        }
        self.check_order()?;
        self.check_switching()?;
        if let Some(chosen) = &self.series {
            chosen.check(self.links.len())?;
        }
        self.check_switches()?;
        self.check_columns()?;
        for traffic in &self.traffic {
            self.check_traffic(&format!("traffic.{}", traffic.name), traffic)?;
        }
        if self.ack_bytes == 0 {
            return Err("ack_size: must be above zero".into());
        }
        Ok(())
    }

    /// Checks that each signal of a program's law has a column of its own.
    fn check_columns(&self) -> Result<(), String> {
        let mut taken = columns();
        let laws = (0..u8::MAX).map_while(|law| Some((self.own.name(law)?, self.own.signals(law))));
        for (name, signal) in laws.flat_map(|(name, signals)| signals.iter().map(move |signal| (name, signal))) {
            let column = signal_column(name, signal);
            if taken.contains(&column) {
                return Err(format!(
                    "laws.{name}.signals.{signal}: the column {column} exists already; choose another name"
                ));
            }
            taken.insert(column);
        }
        Ok(())
    }

    /// Checks that a link's token bucket holds every packet that may cross it.
    fn check_depth(&self, link: &LinkSpec) -> Result<(), String> {
        let Some(bucket) = link.bucket() else { return Ok(()) };
        let key = if link.shaper.is_some() { "shaper" } else { "policer" };
        let sizes = self.traffic.iter().map(|traffic| traffic.packet_bytes);
        let largest = sizes.fold(self.packet_bytes.max(self.ack_bytes), u16::max);
        if bucket.depth_bytes < f64::from(largest) {
            return Err(format!("link.{}.{key}.depth: must be at least one packet of {largest} B", link.name));
        }
        Ok(())
    }

    /// Checks that a path is not empty and consists of links of this network.
    fn check_path(&self, at: &str, path: &[u32]) -> Result<(), String> {
        let known = path.iter().all(|&l| (l as usize) < self.links.len());
        if !path.is_empty() && path.len() < usize::from(u16::MAX) && known {
            Ok(())
        } else {
            Err(format!("{at}.path: must name at least one link"))
        }
    }

    /// Checks a flow. `at` names the flow in the error.
    fn check_flow(&self, at: &str, flow: &FlowSpec) -> Result<(), String> {
        self.check_path(at, &flow.forward)?;
        self.check_path(at, &flow.reverse)?;
        for (key, s) in
            [("start", flow.start_s), ("stagger", flow.stagger_s), ("stop", flow.stop_s), ("rtt", flow.pad_s)]
        {
            time(&format!("{at}.{key}"), s)?;
        }
        for (key, parts_s) in [("start_jitter", &flow.start_jitter_s), ("rtt_jitter", &flow.pad_jitter_s)] {
            if !parts_s.is_empty() && parts_s.len() != flow.count as usize {
                return Err(format!("{at}.{key}: must have one time per flow, got {}", parts_s.len()));
            }
            parts_s.iter().try_for_each(|&s| time(&format!("{at}.{key}"), s))?;
        }
        positive(&format!("{at}.weight"), flow.weight)?;
        if flow.weight > MAX_WEIGHT {
            return Err(format!("{at}.weight: must be at most {MAX_WEIGHT:e}, got {:e}", flow.weight));
        }
        positive(&format!("{at}.initial_window"), flow.initial_window_packets)?;
        if flow.pacing_quantum_packets == 0 {
            return Err(format!("{at}.pacing_quantum: must be above zero, got 0"));
        }
        if let Some(quantum_s) = flow.pacing_quantum_s {
            positive(&format!("{at}.pacing_quantum"), quantum_s)?;
            time(&format!("{at}.pacing_quantum"), quantum_s)?;
        }
        if let Some(demand) = flow.demand_bps {
            positive(&format!("{at}.demand"), demand)?;
        }
        demand::check(&flow.demands).map_err(|e| format!("{at}.demand_trace: {e}"))?;
        if let Some(application) = &flow.application {
            application.check().map_err(|e| format!("{at}.application.{e}"))?;
            if flow.size_bytes.is_some() || !flow.demands.is_empty() {
                return Err(format!("{at}.application: not allowed with size or demand_trace"));
            }
            if flow.delayed_ack && flow.recovery.as_deref() != Some("quic") {
                return Err(format!(
                    "{at}.delayed_ack: not allowed with an application, whose client would wait for it"
                ));
            }
        }
        if let Some(access) = flow.access_bps {
            positive(&format!("{at}.access_rate"), access)?;
        }
        if flow.size_bytes == Some(0) {
            return Err(format!("{at}.size: must be above zero"));
        }
        let params = self.params_of(self.protocol_of(at, flow)?)?;
        let headers = TCP_IP_BYTES + params.header_bytes() as u16;
        if self.packet_bytes <= headers {
            return Err(format!(
                "packet_size: must be above the {headers} B of headers of {}, got {} B",
                flow.protocol, self.packet_bytes
            ));
        }
        check_ecn(at, flow, params.info().host.ecn)?;
        check_recovery(at, flow)?;
        if let Some(name) = &flow.window_validation {
            if params.info().host.validation.is_none() {
                return Err(format!(
                    "{at}.window_validation: not allowed, because {} has no congestion window of TCP",
                    flow.protocol
                ));
            }
            if Validation::by_name(name).is_none() {
                let known: Vec<_> = Validation::NAMES.iter().map(|(_, name)| *name).collect();
                return Err(format!("{at}.window_validation: must be one of {}, got {name:?}", known.join(", ")));
            }
            let by_pauses = matches!(name.as_str(), "rfc5681" | "rfc2861");
            if by_pauses && flow.recovery.as_deref() == Some("quic") {
                return Err(format!(
                    "{at}.window_validation: {name:?} has no effect, because recovery = \"quic\" reports no pauses; write \
                     \"rfc7661\" or \"off\", or remove it"
                ));
            }
        }
        if let Some(window_s) = flow.base_rtt_window_s {
            time(&format!("{at}.base_rtt_window"), window_s)?;
            positive(&format!("{at}.base_rtt_window"), window_s)?;
            if params.info().host.base_rtt.is_none() {
                return Err(format!(
                    "{at}.base_rtt_window: not allowed, because {} does not use the smallest RTT",
                    flow.protocol
                ));
            }
        }
        if let Some(claimed) = flow.claimed_rtt_s {
            time(&format!("{at}.claimed_rtt"), claimed)?;
            positive(&format!("{at}.claimed_rtt"), claimed)?;
            if !params.info().host.states_rtt {
                return Err(format!(
                    "{at}.claimed_rtt: not allowed, because packets of {} have no RTT field",
                    flow.protocol
                ));
            }
        }
        (flow.faults.iter())
            .try_for_each(|fault| fault.check(self.duration_s))
            .map_err(|e| format!("{at}.fault.{e}"))?;
        self.check_false_signals(flow, &params)
    }

    /// Checks the later routes of a group's flows: their links, and times in order and within the run.
    fn check_flow_routes(&self, at: &str, flow: &FlowSpec) -> Result<(), String> {
        let mut before_s = 0.0;
        for (i, route) in flow.routes.iter().enumerate() {
            let at = format!("{at}.route[{i}]");
            if !(route.at_s > before_s && route.at_s < self.duration_s) {
                let end_s = self.duration_s;
                return Err(format!("{at}.at: must be above {before_s} s and below {end_s} s, got {} s", route.at_s));
            }
            self.check_path(&at, &route.forward)?;
            self.check_path(&at, &route.reverse)?;
            before_s = route.at_s;
        }
        Ok(())
    }

    /// Checks that the flow whose connection a flow uses is like it and has completed before.
    fn check_connection(&self, flow: &FlowSpec) -> Result<(), String> {
        let Some(before) = flow.continues else { return Ok(()) };
        let at = format!("flow.{}.continues", flow.name);
        if flow.after_count.is_some() || !flow.after.contains(&before) {
            return Err(format!("{at}: must be a flow of after, and all of these must have completed"));
        }
        let like = |flow: &FlowSpec| {
            let ends = [&flow.forward, &flow.reverse].map(|path| path.first().copied());
            (
                flow.protocol.clone(),
                ends,
                flow.count,
                flow.recovery.clone(),
                flow.window_validation.clone(),
                flow.switched,
            )
        };
        let other = self.flows.get(before as usize).ok_or_else(|| format!("{at}: no flow {before}"))?;
        if like(other) != like(flow) {
            return Err(format!(
                "{at}: must have the same hosts, count, protocol, recovery and window_validation, got {}",
                other.name
            ));
        }
        if flow.recovery.as_deref() == Some("quic") || !(flow.faults.is_empty() && other.faults.is_empty()) {
            return Err(format!("{at}: not for QUIC's recovery and not for hosts with faults, got {}", other.name));
        }
        Ok(())
    }

    /// Checks that flows wait only for flows that end, and for none that waits for them.
    fn check_order(&self) -> Result<(), String> {
        let mut followers = BTreeMap::<u32, Vec<u32>>::new();
        let mut waits = BTreeMap::<u32, usize>::new();
        let mut users = BTreeMap::<u32, &str>::new();
        for (g, flow) in (0u32..).zip(&self.flows).filter(|(_, flow)| !flow.after.is_empty()) {
            let at = format!("flow.{}.after", flow.name);
            if let Some(count) = flow.after_count.filter(|&count| count == 0 || count as usize > flow.after.len()) {
                return Err(format!("{at}_count: must be 1 to {}, got {count}", flow.after.len()));
            }
            for &before in &flow.after {
                let other = self.flows.get(before as usize).ok_or_else(|| format!("{at}: no flow {before}"))?;
                if other.size_bytes.is_none() {
                    return Err(format!("{at}: must name flows with a size, got {}", other.name));
                }
                followers.entry(before).or_default().push(g);
            }
            self.check_connection(flow)?;
            if let Some(before) = flow.continues
                && let Some(first) = users.insert(before, &flow.name)
            {
                return Err(format!("flow.{}.continues: {first} uses this connection at the same time", flow.name));
            }
            waits.insert(g, flow.after.len());
        }
        let mut ready: Vec<u32> = followers.keys().copied().filter(|g| !waits.contains_key(g)).collect();
        while let Some(g) = ready.pop() {
            for follower in followers.remove(&g).unwrap_or_default() {
                let left = waits.get(&follower).map_or(0, |left| left - 1);
                waits.insert(follower, left);
                if left == 0 {
                    waits.remove(&follower);
                    ready.push(follower);
                }
            }
        }
        match waits.keys().next().and_then(|&g| self.flows.get(g as usize)) {
            Some(flow) => Err(format!("flow.{}.after: the flow waits for flows that wait for it", flow.name)),
            None => Ok(()),
        }
    }

    /// Checks that misreporting faults use real arithmetic if kernel arithmetic puts the signal at another position.
    fn check_false_signals(&self, flow: &FlowSpec, params: &AnyParams) -> Result<(), String> {
        let id = params.protocol();
        let signal_moves =
            matches!(id, ProtocolId::Xcp | ProtocolId::IXcp | ProtocolId::PXcp | ProtocolId::Rcp | ProtocolId::JetMax);
        let lies = |link: &LinkSpec| link.faults.iter().any(|f| matches!(f.effect, Effect::Lie { .. }));
        let router = |l: &u32| self.links.get(*l as usize).is_some_and(lies);
        let lies =
            flow.faults.iter().any(|f| f.effect == HostEffect::Lie {}) || flow.ways().flat_map(|way| way.0).any(router);
        let arithmetic = params.arithmetic();
        if signal_moves && lies && arithmetic != Arithmetic::Real {
            let (name, got) = (id.info().name, arithmetic.word());
            return Err(format!(
                "params.{name}.arithmetic: must be real where a router or a receiver misreports, got {got}"
            ));
        }
        Ok(())
    }

    /// Checks a traffic source. `at` names the source in the error.
    fn check_traffic(&self, at: &str, traffic: &TrafficSpec) -> Result<(), String> {
        self.check_path(at, &traffic.path)?;
        positive(&format!("{at}.packet_size"), f64::from(traffic.packet_bytes))?;
        time(&format!("{at}.start"), traffic.start_s)?;
        time(&format!("{at}.stop"), traffic.stop_s)?;
        let kind = traffic.kind;
        let of_flows = kind == TrafficKind::Web || (kind == TrafficKind::Poisson && traffic.rate_bps.is_none());
        if traffic.rate_bps.is_none() != of_flows || traffic.flows.is_some() != of_flows {
            let name = kind.name();
            return Err(format!("{at}.rate: {name} needs either a packet rate or flow arrivals"));
        }
        if of_flows && traffic.access_bps.is_some() {
            return Err(format!("{at}.access_rate: only allowed for its flows"));
        }
        if traffic.periods.is_some() != (kind == TrafficKind::OnOff) {
            return Err(format!("{at}.on: only allowed for an on–off source"));
        }
        if let Some(rate_bps) = traffic.rate_bps {
            positive(&format!("{at}.rate"), rate_bps)?;
            if let Some(access) = traffic.access_bps.filter(|&access| !(access >= rate_bps && access.is_finite())) {
                return Err(format!("{at}.access_rate: must be at least the rate, {rate_bps} bit/s, got {access}"));
            }
            if let Some(PeriodSpec { on_s, off_s }) = &traffic.periods {
                on_s.check().map_err(|e| format!("{at}.on: {e}"))?;
                off_s.check().map_err(|e| format!("{at}.off: {e}"))?;
                let packet_s = f64::from(traffic.packet_bytes) * 8.0 / rate_bps;
                if on_s.mean() < packet_s {
                    return Err(format!("{at}.on: the mean must be at least one packet time, {packet_s} s"));
                }
            }
        }
        if let Some(flows) = &traffic.flows {
            positive(&format!("{at}.arrival_rate"), flows.arrivals_per_s)?;
            if flows.arrivals_per_s > MAX_ARRIVALS {
                return Err(format!("{at}.arrival_rate: must be at most {MAX_ARRIVALS:e} flows per second"));
            }
            flows.at_s.iter().try_for_each(|&at_s| time(&format!("{at}.at"), at_s))?;
            if !flows.at_s.is_sorted() {
                return Err(format!("{at}.at: must be in order of time"));
            }
            flows.sizes_bytes.check().map_err(|e| format!("{at}.sizes: {e}"))?;
            self.check_flow(at, &flows.flow)?;
            if !flows.flow.demands.is_empty() || !flows.flow.routes.is_empty() || flows.flow.application.is_some() {
                return Err(format!(
                    "{at}: applications, and demands and routes over time, are only allowed for flows"
                ));
            }
            self.check_routes(at, flows)?;
        }
        Ok(())
    }

    /// Checks the routes that a traffic source's flows may take.
    fn check_routes(&self, at: &str, flows: &ArrivalSpec) -> Result<(), String> {
        for route in flows.routes.iter().flatten() {
            self.check_path(at, &route.forward)?;
            self.check_path(at, &route.reverse)?;
            time(&format!("{at}.rtt"), route.pad_s)?;
            time(&format!("{at}.rtt"), route.base_rtt_s)?;
        }
        if !flows.routes.is_empty() && flows.flow.access_bps.is_some() {
            return Err(format!("{at}.access_rate: not allowed, because its flows have several hosts"));
        }
        if !flows.pairs.is_empty() && (flows.flow.access_bps.is_some() || flows.flow.pad_s > 0.0) {
            return Err(format!("{at}.rtt: not allowed, and no access rate, because its flows have several hosts"));
        }
        let smallest = flows.group_sizes().into_iter().min().unwrap_or(1);
        if flows.fan_in < 1 || flows.fan_in as usize > smallest {
            return Err(format!("{at}.fan_in: must be 1 to {smallest}, the routes to one host, got {}", flows.fan_in));
        }
        Ok(())
    }
}

/// Checks how a group's flows use ECN, given the use that their law makes of it.
fn check_ecn(at: &str, flow: &FlowSpec, law: Ecn) -> Result<(), String> {
    let protocol = &flow.protocol;
    if flow.ecn == Some(true) && law == Ecn::Off {
        return Err(format!("{at}.ecn: must be false, because {protocol} does not react to marks"));
    }
    for (key, value) in [("ecn_feedback", &flow.ecn_feedback), ("ecn_codepoint", &flow.ecn_codepoint)] {
        if value.is_some() && law == Ecn::Off {
            return Err(format!("{at}.{key}: not allowed, because {protocol} does not react to marks"));
        }
        if value.is_some() && !flow.ecn.unwrap_or(law.is_per_packet()) {
            return Err(format!("{at}.{key}: has no effect without ECN; add ecn = true"));
        }
    }
    if let Some(name) = &flow.ecn_feedback {
        let known: Vec<_> = Ecn::FEEDBACK.iter().map(|(_, name)| *name).collect();
        let Some(feedback) = Ecn::by_name(name) else {
            return Err(format!("{at}.ecn_feedback: must be one of {}, got {name:?}", known.join(", ")));
        };
        if law.is_per_packet() && !feedback.is_per_packet() {
            return Err(format!(
                "{at}.ecn_feedback: must be dctcp, accecn or accecn-ace, because {protocol} needs each packet's mark"
            ));
        }
        if flow.recovery.as_deref().and_then(Retransmission::by_name) == Some(Retransmission::Quic) {
            return Err(format!(
                "{at}.ecn_feedback: not allowed with recovery = \"quic\", whose acknowledgements count marks"
            ));
        }
    }
    match flow.ecn_codepoint.as_deref() {
        None | Some("ect0" | "ect1") => Ok(()),
        Some(other) => Err(format!("{at}.ecn_codepoint: must be one of ect0, ect1, got {other:?}")),
    }
}

/// Checks a flow's method of loss recovery and the acknowledgements that it asks for.
fn check_recovery(at: &str, flow: &FlowSpec) -> Result<(), String> {
    if let Some(name) = flow.recovery.as_ref().filter(|name| Retransmission::by_name(name).is_none()) {
        let known: Vec<_> = Retransmission::NAMES.iter().map(|(_, name)| *name).collect();
        return Err(format!("{at}.recovery: must be one of {}, got {name:?}", known.join(", ")));
    }
    let asked = flow.ack_frequency.as_ref();
    asked.map_or(Ok(()), |asked| check_ack_frequency(flow, asked).map_err(|e| format!("{at}.ack_frequency{e}")))
}

/// Longest delay of an acknowledgement that QUIC allows, in seconds: below 2¹⁴ ms (RFC 9000 §18.2).
const MAX_ACK_DELAY_S: f64 = 16.384;

/// Checks the acknowledgements that a flow asks for. An error continues the key.
fn check_ack_frequency(flow: &FlowSpec, asked: &AckFrequencySpec) -> Result<(), String> {
    if flow.recovery.as_deref() != Some("quic") {
        return Err(r#": needs recovery = "quic""#.into());
    }
    if !(asked.max_delay_s > 0.0 && asked.max_delay_s < MAX_ACK_DELAY_S) {
        let got = asked.max_delay_s;
        return Err(format!(".max_delay: must be above 0 s and below {MAX_ACK_DELAY_S} s, got {got} s"));
    }
    Ok(())
}
