//! Builds flows, routes, router laws, traffic sources and series from the resolved network.

use std::sync::Arc;

use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::FlowSpec;
use waterfill_network::series::{CAPACITY_COLUMN, FLOW_COLUMNS, LINK_COLUMNS, Series, TRAFFIC_COLUMNS};

use super::Simulation;
use super::event::{Event, Observation};
use super::order::Order;
use crate::access::AccessLink;
use crate::binding::FlowProtocol;
use crate::delay_line::DelayLine;
use crate::flow::{Flow, FlowSetup, HostAccess, Owner, Route};
use crate::link::Link;
use crate::sender::{FlowIndex, SenderSpec};
use crate::traffic::{Traffic, WebFlows};

/// Number of flows built between two polls of the watch. Building these flows takes some tens of microseconds.
const FLOWS_PER_POLL: u32 = 256;

/// Direction of a delay line, seen from the source.
#[derive(Clone, Copy, Debug)]
enum Side {
    Out,
    Back,
}

impl Simulation {
    /// Builds everything except the links, and schedules the first events.
    pub(super) fn build(&mut self) -> Result<(), String> {
        self.build_flows()?;
        self.order = Order::new(&self.network, &mut self.flows);
        self.build_traffic()?;
        self.build_series();
        self.agenda.add_stations(self.links.len(), self.delay_lines.len());
        for flow in self.flows.iter().filter(|flow| matches!(flow.route.entry, HostAccess::Access)) {
            self.agenda.add_station(Event::Access(flow.access), flow.number);
        }
        for (traffic, t) in self.traffic.iter().zip(self.flows.len() as u64..) {
            if let Some(access) = traffic.access {
                self.agenda.add_station(Event::Access(access), t);
            }
        }
        self.agenda.add_observation(self.measure.0, Observation::WindowOpens);
        self.agenda.add_observation(self.measure.1, Observation::WindowCloses);
        self.agenda.add_observation(Instant::ZERO + self.sample, Observation::Sample);
        for (l, link) in (0u32..).zip(&self.links) {
            if let Some(time) = link.varies_at() {
                self.agenda.add_observation(time, Observation::Change(l));
            }
        }
        Ok(())
    }

    fn build_flows(&mut self) -> Result<(), String> {
        let network = Arc::clone(&self.network);
        // Exactly: a doubling would leave up to as much again unused.
        self.flows.reserve_exact(network.flows.iter().map(|spec| spec.count as usize).sum());
        for (group, spec) in (0u32..).zip(&network.flows) {
            let law = self.build_law(&format!("flow.{}", spec.name), spec)?;
            let mut route = self.build_route(spec, 0, 0);
            for index in 0..spec.count {
                if index > 0 && !spec.pad_jitter_s.is_empty() {
                    route = self.build_route(spec, index, 0);
                }
                let flow = self.flows.len() as u32;
                let sender = SenderSpec::new(&network, spec, &law, FlowIndex { flow, index });
                let first = if spec.after.is_empty() { sender.start } else { Instant::ZERO };
                let counted = (self.measure.0.max(first), self.measure.1.min(sender.stop));
                let access = add_access(&mut self.access_links, spec, index);
                let (owner, number) = (Owner::Group(group), u64::from(flow));
                let setup = FlowSetup { owner, number, law: &law, spec, sender, counted, route: &route, access };
                self.flows.push(Flow::new(&network, setup));
                self.schedule_sender(flow);
                if flow % FLOWS_PER_POLL == 0 && self.watch.poll() {
                    return Err("run: stopped while it was built".into());
                }
            }
        }
        Ok(())
    }

    /// Returns a flow's law after adding its router law to each link direction that the flow's data crosses. `at` names
    /// the flow.
    fn build_law(&mut self, at: &str, spec: &FlowSpec) -> Result<FlowProtocol, String> {
        let protocol = self.network.protocol_of(at, spec)?;
        let params = self.network.params_of(protocol)?;
        let law = FlowProtocol { protocol, params };
        self.add_routers(spec, &law)?;
        Ok(law)
    }

    /// Adds a law's router to each forward link of a flow's route, unless the link already has one.
    fn add_routers(&mut self, spec: &FlowSpec, law: &FlowProtocol) -> Result<(), String> {
        let (protocol, params) = (law.protocol, &law.params);
        let network = Arc::clone(&self.network);
        let name = network.name_of(protocol);
        if protocol.has_fields() {
            spec.forward.iter().chain(&spec.reverse).for_each(|&l| self.links[l as usize].carry_fields());
        }
        for &l in &spec.forward {
            let (link, link_spec) = (&mut self.links[l as usize], &network.links[l as usize]);
            let enabled = link_spec.routers.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
            // Also SCONE's: congestion control is its source's, and routers write advice into its header.
            if enabled && params.header_bytes() > 0 && !link.has_router(protocol) {
                let at = |e| format!("params.{name}.{e} (for link {})", link_spec.name);
                params.check_link(link.view()).map_err(at)?;
                link.add_router(protocol, params.router(link.view()), params.target());
            }
        }
        Ok(())
    }

    /// Builds the route of flow `index` of a group, or route `number` of a traffic source.
    fn build_route(&mut self, spec: &FlowSpec, index: u32, number: u32) -> Arc<Route> {
        let pad = Duration::from_secs(spec.pad_of_s(index));
        let lines = (!pad.is_zero()).then(|| (self.delay_line(pad, Side::Out), self.delay_line(pad, Side::Back)));
        let entry = match (spec.access_bps, lines) {
            (Some(_), _) => HostAccess::Access, // it has the padding's delay
            (None, Some((out, _))) => HostAccess::DelayLine(out),
            (None, None) => HostAccess::Ideal,
        };
        let (forward, reverse) = (spec.forward.clone().into(), spec.reverse.clone().into());
        Arc::new(Route { forward, reverse, entry, back: lines.map(|(_, back)| back), number })
    }

    /// Returns the index of the delay line with this delay and direction. Flows with equal delays share a line, because
    /// it keeps their packets in order.
    fn delay_line(&mut self, delay: Duration, side: Side) -> u32 {
        // Lines are stored in pairs: out at even indexes, back at odd ones.
        let side = side as usize;
        let known = self.delay_lines.iter().enumerate().find(|(i, line)| i % 2 == side && line.delay() == delay);
        if let Some((i, _)) = known {
            return i as u32;
        }
        if side == Side::Out as usize {
            self.delay_lines.push(DelayLine::new(delay));
            self.delay_lines.push(DelayLine::new(delay));
        }
        self.delay_lines.len() as u32 - 2 + side as u32
    }

    fn build_traffic(&mut self) -> Result<(), String> {
        for (i, spec) in (0u32..).zip(self.network.traffic.clone()) {
            let mut traffic = Traffic::new(spec, i, self.network.seed, self.measure);
            if let Some(spec) = &traffic.spec.flows {
                let at = format!("traffic.{}", traffic.spec.name);
                let law = self.build_law(&at, &spec.flow)?;
                let mut routes = Vec::new();
                for route in spec.routes.iter().flatten() {
                    let flow = spec.flow_on(route);
                    self.add_routers(&flow, &law)?;
                    let number = routes.len() as u32;
                    routes.push((self.build_route(&flow, 0, number), Duration::from_secs(flow.base_rtt_s)));
                }
                if routes.is_empty() {
                    routes.push((self.build_route(&spec.flow, 0, 0), Duration::from_secs(spec.flow.base_rtt_s)));
                }
                traffic.web = Some(Box::new(WebFlows::new(spec, law, routes, self.end)));
            }
            traffic.access = traffic.spec.access_bps.map(|bps| {
                self.access_links.push(AccessLink::new(Rate::from_bps(bps), Duration::ZERO));
                self.access_links.len() as u32 - 1
            });
            self.agenda.add_timer(traffic.next, Event::Traffic(i), u64::from(i));
            self.traffic.push(traffic);
        }
        Ok(())
    }

    fn build_series(&mut self) {
        let of_flows = distinct(self.flows.iter().map(|flow| flow.protocol));
        let of_web = self.traffic.iter().filter_map(|traffic| traffic.web.as_ref()).map(|web| web.law.protocol);
        let all = distinct(of_flows.iter().copied().chain(of_web));
        self.queue_columns = distinct(self.links.iter().flat_map(|link| link.queue_columns().iter().copied()));
        self.flow_series = Series::with_signals(&FLOW_COLUMNS, &self.network, &of_flows);
        let capacity: &[&str] = if self.links.iter().any(Link::varies) { &[CAPACITY_COLUMN] } else { &[] };
        self.link_series =
            Series::with_signals(&[&LINK_COLUMNS[..], capacity, &self.queue_columns].concat(), &self.network, &all);
        self.traffic_series = Series::new(&TRAFFIC_COLUMNS);
    }
}

/// Adds the access link of a flow's host. Returns its index, or 0 if the host has none.
pub(super) fn add_access(links: &mut Vec<AccessLink>, spec: &FlowSpec, index: u32) -> u32 {
    let Some(bps) = spec.access_bps else { return 0 };
    links.push(AccessLink::new(Rate::from_bps(bps), Duration::from_secs(spec.pad_of_s(index))));
    links.len() as u32 - 1
}

/// Returns the distinct items in order of first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if found.last() != Some(&item) && !found.contains(&item) {
            found.push(item);
        }
    }
    found
}
