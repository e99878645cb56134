//! Estimates of a run's memory and computing time, made before the run is built.
//!
//! Flows are taken as greedy: an entry sends at the slowest link of its path, from its start to its stop or until its
//! size is sent, and links that are offered more than they carry carry what they can. What depends on a law (its window,
//! its queue) is not known here, so a run may need a few times as much, or as little.

use waterfill_laws::protocol::LinkView;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Instant, Rate, Volume};

use crate::flow::FlowSpec;
use crate::link::LinkSpec;
use crate::network::{Network, TCP_IP_BYTES};
use crate::series::{FLOW_COLUMNS, LINK_COLUMNS};
use crate::traffic::{TrafficKind, TrafficSpec};

/// Bytes of memory per number in a time series, for the growing copy in the engine and the copy in Python.
const CELL_BYTES: f64 = 24.0;
/// Maximum number of packets that one flow has in flight.
const MAX_IN_FLIGHT: f64 = (1 << 24) as f64;

/// Amount of a resource, with the scenario key that contributes most to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Need {
    /// Sum of all contributions.
    pub total: f64,
    /// Key of the largest contribution.
    pub key: String,
    largest: f64,
}

impl Need {
    /// Adds a contribution and its key.
    pub fn add(&mut self, amount: f64, key: impl FnOnce() -> String) {
        self.total += amount;
        if amount > self.largest {
            (self.largest, self.key) = (amount, key());
        }
    }
}

/// Expected memory, work and computing time of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Memory in bytes.
    pub bytes: Need,
    /// Number of events that the engine counts, plus other work expressed in events.
    pub events: Need,
    /// Computing time in seconds, on one CPU of 2020.
    pub cpu_s: f64,
}

/// Traffic of a scenario entry: a group of flows, or a traffic source.
#[derive(Clone, Debug)]
pub struct EntryTraffic<'a> {
    /// Scenario key of the entry, for example `flow.long`.
    pub key: String,
    /// Links that the entry's data crosses, and links that its acknowledgements cross.
    pub ways: (&'a [u32], &'a [u32]),
    /// Packets per second while the entry sends.
    pub packets_per_s: f64,
    /// Time for which the entry sends, in seconds.
    pub lasts_s: f64,
    /// Packets that the entry offers in the whole run.
    pub packets: f64,
    /// Fraction of the offered packets that the entry's links carry.
    pub carried: f64,
    /// Acknowledgements per data packet.
    pub acks: f64,
}

/// Returns the traffic of every entry of the scenario.
#[must_use]
pub fn entries(network: &Network) -> Vec<EntryTraffic<'_>> {
    let mut entries: Vec<EntryTraffic<'_>> = network.flows.iter().map(|flow| of_flows(network, flow)).collect();
    entries.extend(network.traffic.iter().map(|source| of_source(network, source)));
    // Bits offered to each link in the run.
    let mut offered = vec![0.0; network.links.len()];
    let bits = f64::from(network.packet_bytes) * 8.0;
    for entry in &entries {
        for &l in entry.ways.0 {
            if let Some(offered) = offered.get_mut(l as usize) {
                *offered += entry.packets * bits;
            }
        }
    }
    let carried = |(link, offered): (&LinkSpec, f64)| link.rate_range_bps().1 * network.duration_s / offered.max(1.0);
    let carried: Vec<f64> = network.links.iter().zip(offered).map(carried).collect();
    for entry in &mut entries {
        let shares = entry.ways.0.iter().filter_map(|&l| carried.get(l as usize).copied());
        entry.carried = shares.fold(1.0, f64::min);
    }
    entries
}

fn slowest_bps(network: &Network, path: &[u32]) -> f64 {
    let links = path.iter().filter_map(|&l| network.links.get(l as usize));
    links.map(|link| link.rate_range_bps().1).fold(f64::INFINITY, f64::min)
}

fn of_flows<'a>(network: &'a Network, flow: &'a FlowSpec) -> EntryTraffic<'a> {
    let count = f64::from(flow.count);
    let limits = [flow.access_bps.unwrap_or(f64::INFINITY), flow.demand_max_bps()].into_iter().map(|bps| bps * count);
    let rate_bps = limits.fold(slowest_bps(network, &flow.forward), f64::min);
    let bits = f64::from(network.packet_bytes) * 8.0;
    let lives_s = (flow.stop_s.min(network.duration_s) - flow.start_s).max(0.0);
    let mut packets = rate_bps * lives_s / bits;
    if let Some(size) = flow.size_bytes {
        let payload = f64::from(network.packet_bytes.saturating_sub(TCP_IP_BYTES).max(1));
        packets = packets.min((size as f64 / payload).ceil() * count);
    }
    let lasts_s = (packets * bits / rate_bps).max(flow.base_rtt_s).min(lives_s);
    EntryTraffic {
        key: format!("flow.{}", flow.name),
        ways: (&flow.forward, &flow.reverse),
        packets_per_s: rate_bps / bits,
        lasts_s,
        packets,
        carried: 1.0,
        acks: flow.packets_per_ack().recip(),
    }
}

fn of_source<'a>(network: &'a Network, source: &'a TrafficSpec) -> EntryTraffic<'a> {
    let lasts_s = (source.stop_s.min(network.duration_s) - source.start_s).max(0.0);
    let key = format!("traffic.{}", source.name);
    if let Some(flows) = &source.flows {
        let payload = f64::from(network.packet_bytes.saturating_sub(TCP_IP_BYTES).max(1));
        let packets_per_s =
            flows.arrivals_per_s * f64::from(flows.fan_in) * (flows.sizes_bytes.mean() / payload).max(1.0);
        let ways = flows.ways().max_by_key(|(out, _)| out.len()).unwrap_or((&[], &[]));
        return EntryTraffic {
            key,
            ways,
            packets_per_s,
            lasts_s,
            packets: packets_per_s * lasts_s,
            carried: 1.0,
            acks: 1.0,
        };
    }
    let on = source.periods.as_ref().filter(|_| source.kind == TrafficKind::OnOff).map_or(1.0, |periods| {
        let (on_s, off_s) = (periods.on_s.mean(), periods.off_s.mean());
        on_s / (on_s + off_s)
    });
    let packets_per_s = source.rate_bps.unwrap_or(0.0) * on / (f64::from(source.packet_bytes) * 8.0);
    EntryTraffic {
        key,
        ways: (&source.path, &[]),
        packets_per_s,
        lasts_s,
        packets: packets_per_s * lasts_s,
        carried: 1.0,
        acks: 0.0,
    }
}

/// Returns the number of packets that a group of flows sends at once when it starts.
#[must_use]
pub fn first_burst(flow: &FlowSpec) -> f64 {
    let most = flow.size_bytes.map_or(MAX_IN_FLIGHT, |size| MAX_IN_FLIGHT.min((size as f64 / 1000.0).ceil()));
    f64::from(flow.count) * flow.initial_window_packets.min(most)
}

impl Estimate {
    /// Adds the memory and work of the time series. `rows` gives the number of rows that a group of flows has per
    /// sample.
    pub fn add_series(&mut self, network: &Network, entries: &[EntryTraffic<'_>], rows: impl Fn(&FlowSpec) -> f64) {
        let samples = network.duration_s / network.sample_s;
        let signals = |names: &mut dyn Iterator<Item = &str>| -> f64 {
            let mut ids: Vec<ProtocolId> = names.filter_map(|name| network.protocol_named(name)).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.iter().map(|id| network.signals_of(*id).len() as f64).sum()
        };
        let laws = signals(&mut network.flows.iter().map(|flow| flow.protocol.as_str()));
        let of_flows = FLOW_COLUMNS.len() as f64 + laws;
        for (flow, entry) in network.flows.iter().zip(entries) {
            let share = (entry.lasts_s / network.duration_s).min(1.0);
            let cells = rows(flow) * (samples * share + 1.0) * of_flows;
            self.bytes.add(cells * CELL_BYTES, || "sample".into());
            self.events.add(rows(flow) * samples * share, || "sample".into());
        }
        let links = network.sampled_links().len() as f64;
        let samples = samples * f64::from(network.samples_of_links());
        self.bytes.add(samples * links * (LINK_COLUMNS.len() as f64 + laws) * CELL_BYTES, || "sample".into());
        self.events.add(samples * (1.0 + links), || "sample".into());
    }

    /// Adds the timers of router laws, assuming that each timer repeats at its first interval.
    pub fn add_timers(&mut self, network: &Network) {
        let mut known: Vec<(u32, ProtocolId)> = Vec::new();
        let web = network.traffic.iter().filter_map(|source| source.flows.as_ref()).map(|flows| &flows.flow);
        let mut laws: Vec<(ProtocolId, &FlowSpec)> = Vec::new();
        for flow in network.flows.iter().chain(web) {
            if let Ok(id) = network.protocol_of(&flow.name, flow) {
                laws.push((id, flow));
            }
        }
        for (id, flow) in laws {
            known.extend(flow.ways().flat_map(|way| way.0).map(|&l| (l, id)));
        }
        known.sort_unstable();
        known.dedup();
        for (l, id) in known {
            // A program's law runs in Python when it is built: not here.
            if id.header_bytes() == 0 || matches!(id, ProtocolId::Own { .. }) {
                continue;
            }
            let (Some(spec), Ok(params)) = (network.links.get(l as usize), network.params_of(id)) else { continue };
            let capacity = Rate::from_bps(spec.rate_bps);
            let view = LinkView { id: l, capacity, target: spec.target, queue: Volume::ZERO };
            if params.check_link(&view).is_err() {
                continue; // the run says so
            }
            let first = params.router(&view).poll_at();
            if first < Instant::from_secs(network.duration_s) {
                let timers = network.duration_s / first.as_secs().max(1e-12);
                self.events.add(timers, || format!("params.{}", id.info().name));
            }
        }
    }
}
