//! Builds flows, routes, router laws, traffic sources and series from the resolved network.

use std::sync::Arc;

use waterfill_laws::protocol::PathView;
use waterfill_laws::telemetry::HOPS_MAX;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{ArrivalSpec, DemandCourse, FlowSpec, Network, SwitchingSpec};

use super::event::Event;
use super::order::Order;
use super::routes::{RouteChange, RouteChanges, RouteHost};
use super::switching::{SwitchedPaths, Switches};
use super::{Part, path};
use crate::access::AccessLink;
use crate::binding::FlowProtocol;
use crate::delay_line::DelayLine;
use crate::fault::damages;
use crate::flow::{FlowSetup, HostAccess, Owner, Route, connect};
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

/// The list of all paths while it is built.
#[derive(Debug, Default)]
struct Paths {
    entries: Vec<u32>,
    switched: SwitchedPaths,
}

impl Paths {
    /// Appends a path. Returns where it begins.
    fn add(&mut self, links: &[u32], end: u32) -> u32 {
        let begins = self.entries.len() as u32;
        self.entries.extend_from_slice(links);
        self.entries.push(end);
        begins
    }
}

impl Part {
    /// Builds the links and hosts of the whole network.
    pub(super) fn build(&mut self) -> Result<(), String> {
        let network = Arc::clone(&self.network);
        self.links = (0u32..).zip(&network.links).map(|(l, spec)| Link::new(l, spec, &network, &self.watch)).collect();
        self.build_buffers(&network);
        self.build_pfc(&network);
        self.switches = Switches::new(&network);
        let mut paths = Paths::default();
        self.build_flows(&network, &mut paths)?;
        self.order = Order::new(&network, &mut self.receivers);
        self.build_traffic(&network, &mut paths)?;
        self.paths = paths.entries.into();
        Ok(())
    }

    /// Schedules the first events, with the ranks that follow from the entities' numbers.
    pub(super) fn start_agenda(&mut self) {
        self.build_nics();
        self.schedule_routes();
        self.agenda.reserve(self.links.len(), self.delay_lines.len());
        for (l, link) in (0u32..).zip(&self.links) {
            self.agenda.add_station(Event::Link(l), u64::from(link.view().id));
            if let Some(time) = link.varies_at() {
                self.agenda.add_change(time, l);
            }
        }
        for (d, line) in (0u32..).zip(&self.delay_lines) {
            self.agenda.add_station(Event::DelayLine(d), line.number);
        }
        for (a, access) in (0u32..).zip(&self.access_links) {
            self.agenda.add_station(Event::Access(a), access.wire.number);
        }
        (0..self.senders.len() as u32).for_each(|f| self.schedule_sender(f, Instant::NEVER));
        for (t, traffic) in (0u32..).zip(&self.traffic).filter(|(_, traffic)| traffic.is_on()) {
            self.agenda.add_timer(traffic.next, Event::Traffic(t), u64::from(t));
        }
    }

    fn build_flows(&mut self, network: &Network, paths: &mut Paths) -> Result<(), String> {
        // Exactly: a doubling would leave up to as much again unused.
        let count = network.flows.iter().map(|spec| spec.count as usize).sum();
        self.senders.reserve_exact(count);
        self.receivers.reserve_exact(count);
        let mut changes = Vec::new();
        for (group, spec) in (0u32..).zip(&network.flows) {
            let law = self.build_law(&format!("flow.{}", spec.name), spec)?;
            let mut route = self.build_route(paths, spec, 0, 0)?;
            let mut later = self.build_later_routes(paths, spec, 0);
            let demand = DemandCourse::of(&spec.demands).map(Arc::new);
            for index in 0..spec.count {
                if index > 0 && !spec.pad_jitter_s.is_empty() {
                    route = self.build_route(paths, spec, index, 0)?;
                    later = self.build_later_routes(paths, spec, index);
                }
                let flow = self.senders.len() as u32;
                for &(at, forward, reverse) in &later {
                    changes.push(RouteChange { at, host: RouteHost::Sender(flow), path: forward });
                    changes.push(RouteChange { at, host: RouteHost::Receiver(flow), path: reverse });
                }
                let sender = SenderSpec::new(network, spec, &law, FlowIndex { flow, index });
                let first = if spec.after.is_empty() { sender.start } else { Instant::ZERO };
                let counted = (self.measure.0.max(first), self.measure.1.min(sender.stop));
                if let HostAccess::Access(access) = &mut route.entry {
                    *access = add_access(&mut self.access_links, spec, index, flow);
                }
                let owner = Owner::Group(group);
                let route = self.leaving_hosts(&paths.entries, route, (flow, 0));
                let setup = FlowSetup { owner, law: &law, spec, sender, from: flow, counted, route };
                let (mut sending, receiving) = connect(network, &setup);
                sending.sender.add_rare(&setup, demand.as_ref(), network.seed);
                self.senders.push(sending);
                self.receivers.push(receiving);
                if flow % FLOWS_PER_POLL == 0 && self.watch.poll() {
                    return Err("run: stopped while it was built".into());
                }
            }
        }
        self.routes = RouteChanges::new(changes);
        Ok(())
    }

    /// Returns a flow's law after adding its router law to each link direction that the flow's data crosses. `at` names
    /// the flow.
    fn build_law(&mut self, at: &str, spec: &FlowSpec) -> Result<FlowProtocol, String> {
        let protocol = self.network.protocol_of(at, spec)?;
        let params = self.network.params_of(protocol)?;
        let law = FlowProtocol { protocol, params };
        let network = Arc::clone(&self.network);
        match (&network.switching, &self.switches) {
            (Some(switching), Some(_)) if spec.switched => {
                let pairs: Vec<_> = switching.ends(&spec.forward).into_iter().collect();
                self.add_switched_routers(spec, &law, &pairs)?;
            }
            _ => self.add_routers(spec, &law)?,
        }
        Ok(law)
    }

    /// Adds a law's router to each link that a packet of a switched flow may cross, between any of these pairs of nodes.
    fn add_switched_routers(
        &mut self,
        spec: &FlowSpec,
        law: &FlowProtocol,
        pairs: &[(u32, u32)],
    ) -> Result<(), String> {
        let Some(switches) = &self.switches else { return Ok(()) };
        let table = Arc::clone(&switches.table);
        let list = |crossed: Vec<bool>| (0u32..).zip(crossed).filter(|(_, crossed)| *crossed).map(|(l, _)| l).collect();
        let there: Vec<u32> = list(table.crossed(pairs.iter().copied()));
        let back: Vec<u32> = list(table.crossed(pairs.iter().map(|&(from, to)| (to, from))));
        if law.protocol.has_telemetry() {
            let longest = pairs.iter().map(|&(from, to)| table.route(from, to).count()).max().unwrap_or(0);
            self.check_telemetry(spec, law, longest)?;
        }
        self.add_routers_to(law, &there, &back)
    }

    /// Checks that a law's telemetry holds a record of each link of the longest path.
    fn check_telemetry(&mut self, spec: &FlowSpec, law: &FlowProtocol, longest: usize) -> Result<(), String> {
        self.telemetry = true;
        if longest > HOPS_MAX {
            let found = format!("{}: {} has a path of {longest} links", self.network.name_of(law.protocol), spec.name);
            return Err(format!("{found}, and its telemetry holds at most {HOPS_MAX}; shorten the path"));
        }
        Ok(())
    }

    /// Adds a law's router to each forward link of a flow's routes, unless the link already has one.
    fn add_routers(&mut self, spec: &FlowSpec, law: &FlowProtocol) -> Result<(), String> {
        if law.protocol.has_telemetry() {
            let longest = spec.ways().map(|(there, _)| there.len()).max().unwrap_or(0);
            self.check_telemetry(spec, law, longest)?;
        }
        spec.ways().try_for_each(|(there, back)| self.add_routers_to(law, there, back))
    }

    /// Adds a law's router to each of the links `there`, unless the link already has one. Acknowledgements take the links
    /// `back`.
    fn add_routers_to(&mut self, law: &FlowProtocol, there: &[u32], back: &[u32]) -> Result<(), String> {
        let (protocol, params) = (law.protocol, &law.params);
        let network = Arc::clone(&self.network);
        let name = network.name_of(protocol);
        if protocol.has_fields() {
            there.iter().chain(back).for_each(|&l| self.links[l as usize].carry_fields());
        }
        for &l in there {
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
    fn build_route(&mut self, paths: &mut Paths, spec: &FlowSpec, index: u32, number: u32) -> Result<Route, String> {
        let pad = Duration::from_secs(spec.pad_of_s(index));
        let lines = (!pad.is_zero()).then(|| (self.delay_line(pad, Side::Out), self.delay_line(pad, Side::Back)));
        let entry = match (spec.access_bps, lines) {
            (Some(_), _) => HostAccess::Access(0), // each host has its own, with the padding's delay
            (None, Some((out, _))) => HostAccess::DelayLine(out),
            (None, None) => HostAccess::Ideal,
        };
        let end = lines.map_or(path::END, |(_, back)| back | path::DELAY_LINE);
        let (forward, reverse) = if spec.switched {
            let (there, back) = (self.ends(&spec.forward), self.ends(&spec.reverse));
            (self.add_switched(paths, there, path::END)?, self.add_switched(paths, back, end)?)
        } else {
            (paths.add(&spec.forward, path::END), paths.add(&spec.reverse, end))
        };
        let damages = match &self.switches {
            Some(switches) if spec.switched => switches.damages,
            _ => spec.ways().any(|(there, _)| damages(&self.network, there)),
        };
        let first_link = spec.forward.first().and_then(|&link| self.network.links.get(link as usize));
        let nic = spec.access_bps.or(first_link.map(|link| link.rate_bps)).map_or(Rate::UNLIMITED, Rate::from_bps);
        let view = PathView { host_rate: nic, hops: spec.forward.len() as u32 };
        Ok(Route { forward, reverse, entry, number, damages, view })
    }

    /// Returns the nodes at which a path begins and ends.
    fn ends(&self, path: &[u32]) -> (u32, u32) {
        self.network.switching.as_ref().and_then(|switching| switching.ends(path)).unwrap_or_default()
    }

    /// Adds a path between two nodes that switches choose. Returns where it begins.
    fn add_switched(&mut self, paths: &mut Paths, ends: (u32, u32), end: u32) -> Result<u32, String> {
        let Some(switches) = &mut self.switches else { return Err("the network has no switches".into()) };
        paths.switched.place((switches, &mut paths.entries), ends, end)
    }

    /// Returns the route of a new flow, which takes one of the equal links of each host.
    pub(super) fn leaving_hosts(&self, paths: &[u32], route: Route, flow: (u32, u16)) -> Route {
        let Some(switches) = &self.switches else { return route };
        let [forward, reverse] = [route.forward, route.reverse].map(|place| switches.leave_host(paths, place, flow));
        Route { forward, reverse, ..route }
    }

    /// Builds the later routes of flow `index` of a group. Returns their times, and where their paths begin.
    fn build_later_routes(&mut self, paths: &mut Paths, spec: &FlowSpec, index: u32) -> Vec<(Instant, u32, u32)> {
        let mut later = Vec::new();
        for route in &spec.routes {
            let pad = Duration::from_secs(spec.pad_of_s(index));
            let end = if pad.is_zero() { path::END } else { self.delay_line(pad, Side::Back) | path::DELAY_LINE };
            let reverse = paths.add(&route.reverse, end);
            later.push((Instant::from_secs(route.at_s), paths.add(&route.forward, path::END), reverse));
        }
        later
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
            let number = self.delay_lines.len() as u64;
            self.delay_lines.push(DelayLine::new(number, delay));
            self.delay_lines.push(DelayLine::new(number + 1, delay));
        }
        self.delay_lines.len() as u32 - 2 + side as u32
    }

    fn build_traffic(&mut self, network: &Network, paths: &mut Paths) -> Result<(), String> {
        // The numbers of the sources' own hosts follow those of the flows.
        let first = self.senders.len() as u32;
        let arriving = || network.traffic.iter().filter_map(|spec| spec.flows.as_ref());
        let all_routes = arriving().map(ArrivalSpec::route_count).sum::<usize>() as u32;
        let mut next_route = first + network.traffic.len() as u32;
        for (i, spec) in (0u32..).zip(&network.traffic) {
            let mut traffic = Traffic::new(spec, i, network.seed, self.measure);
            if let Some(flows) = &spec.flows {
                let law = self.build_law(&format!("traffic.{}", spec.name), &flows.flow)?;
                let routes = self.build_arrivals(paths, flows, &law)?;
                let numbers = (next_route, all_routes);
                next_route += routes.len() as u32;
                let end = Instant::from_secs(network.duration_s);
                traffic.web = Some(Box::new(WebFlows::new(flows, law, routes, numbers, end)));
            } else if spec.switched {
                let begins = self.add_switched(paths, self.ends(&spec.path), path::END)?;
                // The flows' numbers follow those of the sources.
                let own = |all: &Switches| all.leave_host(&paths.entries, begins, (i, 0));
                traffic.path = self.switches.as_deref().map_or(begins, own);
            } else {
                traffic.path = paths.add(&spec.path, path::END);
            }
            traffic.access = spec.access_bps.map(|bps| {
                let number = u64::from(first + i);
                self.access_links.push(AccessLink::new(number, Rate::from_bps(bps), Duration::ZERO));
                self.access_links.len() as u32 - 1
            });
            self.traffic.push(traffic);
        }
        Ok(())
    }

    /// Builds the routes of a source's flows, and the routers on their links. Returns each with its base RTT.
    fn build_arrivals(
        &mut self,
        paths: &mut Paths,
        flows: &ArrivalSpec,
        law: &FlowProtocol,
    ) -> Result<Vec<(Route, Duration)>, String> {
        let mut routes = Vec::with_capacity(flows.route_count());
        if !flows.pairs.is_empty() {
            let pairs: Vec<_> = SwitchingSpec::pairs(flows).collect();
            self.add_switched_routers(&flows.flow, law, &pairs)?;
            let mut route = self.build_route(paths, &flows.flow, 0, 0)?;
            for &(from, to) in &pairs {
                route.forward = self.add_switched(paths, (from, to), path::END)?;
                route.reverse = self.add_switched(paths, (to, from), path::END)?;
                let first_link = paths.entries[route.forward as usize] as usize;
                let hops = self.switches.as_ref().map_or(0, |switches| switches.table.route(from, to).count());
                let host_rate = Rate::from_bps(self.network.links[first_link].rate_bps);
                route.view = PathView { host_rate, hops: hops as u32 };
                route.number = routes.len() as u32;
                routes.push((route, self.base_rtt(from, to)));
            }
            return Ok(routes);
        }
        for route in flows.routes.iter().flatten() {
            let flow = flows.flow_on(route);
            self.add_routers(&flow, law)?;
            let number = routes.len() as u32;
            let built = self.build_route(paths, &flow, 0, number)?;
            routes.push((built, Duration::from_secs(flow.base_rtt_s)));
        }
        if routes.is_empty() {
            let built = self.build_route(paths, &flows.flow, 0, 0)?;
            routes.push((built, Duration::from_secs(flows.flow.base_rtt_s)));
        }
        Ok(routes)
    }

    /// Returns the base RTT of two nodes, over the first of their equal routes each way.
    fn base_rtt(&self, from: u32, to: u32) -> Duration {
        let Some(switches) = &self.switches else { return Duration::ZERO };
        let links = switches.table.route(from, to).chain(switches.table.route(to, from));
        Duration::from_secs(links.map(|l| self.network.links[l as usize].delay_min_s()).sum())
    }
}

/// Adds the access link of the host of a flow with this number. Returns its index.
pub(super) fn add_access(links: &mut Vec<AccessLink>, spec: &FlowSpec, index: u32, number: u32) -> u32 {
    let rate = spec.access_bps.map_or(Rate::UNLIMITED, Rate::from_bps);
    links.push(AccessLink::new(u64::from(number), rate, Duration::from_secs(spec.pad_of_s(index))));
    links.len() as u32 - 1
}
