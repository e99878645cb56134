//! Assignment of a network's parts to threads, and its expected cost.
//!
//! A part is a set of nodes. The nodes follow from the routes: where one link ends, the next begins. A link belongs to
//! the part in which it begins; it is cut if it ends in another one. The propagation delay and the shortest transmission
//! of cut links are the lookahead, so links of no or short delay are contracted first: for each delay in the network
//! there is a candidate that cuts only links of at least this delay. Each candidate is divided by greedy growth from
//! several nodes, then improved by moving one node at a time. The one with the least predicted time is taken.

use std::collections::{BTreeMap, BinaryHeap};

use waterfill_laws::units::{Duration, Rate};
use waterfill_network::{ArrivalSpec, FlowSpec, Network, SwitchingSpec, TCP_IP_BYTES};

use crate::engine::switching::RouteTable;

/// CPU time of a packet that joins a link, in seconds; used for the prediction only. The next constants are for its
/// arrival at a node, the sending host (data and acknowledgement), the receiving host, and the move to another thread.
const COST_JOIN_S: f64 = 45e-9;
const COST_ARRIVAL_S: f64 = 25e-9;
const COST_SENDER_S: f64 = 70e-9;
const COST_RECEIVER_S: f64 = 40e-9;
const COST_CROSSING_S: f64 = 50e-9;
/// Cost of a window in seconds: its barriers, and each thread's scan of its heap and of cut links.
const COST_WINDOW_S: f64 = 0.7e-6;
const COST_WINDOW_PER_THREAD_S: f64 = 0.3e-6;

/// Maximum share of one thread's predicted time at which several threads are used. `WORTHWHILE_S` is the minimum time
/// saved.
const WORTHWHILE_SHARE: f64 = 0.85;
const WORTHWHILE_S: f64 = 0.05;

/// Maximum weight of a part after a move, relative to the mean weight.
const IMBALANCE: f64 = 1.04;
/// Number of starting nodes tried for the division of a candidate.
const STARTS: usize = 6;
/// Maximum number of candidates. `PASSES` is the maximum number of improvement passes.
const CANDIDATES: usize = 12;
const PASSES: usize = 12;

/// The parts of a network; thread `i` simulates part `i`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) parts: usize,
    /// Parts in which each link begins and ends.
    pub(super) links: Vec<(usize, usize)>,
    /// Parts of the sender and the receiver of each group's flows.
    pub(super) groups: Vec<(usize, usize)>,
    /// Parts in which the packets of each traffic source begin and end, for each of its routes.
    pub(super) traffic: Vec<Vec<(usize, usize)>>,
    /// Lookahead from each part to each: minimum time until an event of the first causes one of the second, over any
    /// parts between. From a part to itself it is the shortest way out and back.
    pub(super) lookahead: Vec<Vec<Duration>>,
    /// Predicted wall time per simulated second, in seconds.
    pub(super) predicted: f64,
}

impl Plan {
    /// Divides a network into `parts` parts, or returns `None` if it cannot be divided.
    pub(super) fn new(network: &Network, parts: usize) -> Option<Self> {
        Layout::new(network).divide(parts)
    }

    /// Returns the part of a node, given the nodes at which each link begins and ends.
    pub(super) fn part_of(&self, node: u32, nodes: &[(u32, u32)]) -> usize {
        let ends = nodes.iter().position(|&(_, end)| end == node);
        ends.map_or(0, |l| self.links[l].1)
    }

    /// Returns the plan of at most `max` parts that is predicted to be fastest, or `None` if several threads would not
    /// save enough time.
    pub(super) fn fastest(network: &Network, max: usize) -> Option<Self> {
        let layout = Layout::new(network);
        let one = layout.weights.iter().sum::<f64>();
        let plans = (2..=max).filter_map(|parts| layout.divide(parts));
        let best = plans.min_by(|a, b| a.predicted.total_cmp(&b.predicted))?;
        let saved_s = (one - best.predicted) * network.duration_s;
        (best.predicted < WORTHWHILE_SHARE * one && saved_s > WORTHWHILE_S).then_some(best)
    }
}

/// The nodes of a network, with their expected cost.
#[derive(Debug)]
struct Layout {
    /// Indices of the nodes at which each link begins and ends.
    links: Vec<(usize, usize)>,
    groups: Vec<(usize, usize)>,
    traffic: Vec<Vec<(usize, usize)>>,
    /// Minimum propagation delay and shortest transmission time of each link over the run.
    delays: Vec<(Duration, Duration)>,
    /// Packets per second over each link.
    rates: Vec<f64>,
    /// Seconds of CPU time per simulated second, by node.
    weights: Vec<f64>,
}

impl Layout {
    fn new(network: &Network) -> Self {
        let mut nodes = Sets::new(2 * network.links.len());
        let (begins, ends) = (|l: u32| 2 * l as usize, |l: u32| 2 * l as usize + 1);
        let table = RouteTable::new(network);
        nodes.join_nodes(network);
        let arriving = network.traffic.iter().filter_map(|t| t.flows.as_ref()).flat_map(ArrivalSpec::ways);
        let own = network.flows.iter().flat_map(FlowSpec::ways);
        let ways: Vec<(&[u32], &[u32])> = own.chain(arriving).collect();
        let paths = ways.iter().flat_map(|&(there, back)| [there, back]);
        for path in paths.chain(network.traffic.iter().map(|t| &t.path[..])) {
            path.windows(2).for_each(|pair| nodes.join(ends(pair[0]), begins(pair[1])));
        }
        let hosts = |(there, back): (&[u32], &[u32])| (begins(there[0]), begins(back[0]));
        for &(there, back) in &ways {
            let (source, sink) = hosts((there, back));
            nodes.join(source, ends(back[back.len() - 1]));
            nodes.join(sink, ends(there[there.len() - 1]));
        }
        // The hosts of a flow keep their place when its route changes.
        for flow in &network.flows {
            let (source, sink) = hosts((&flow.forward, &flow.reverse));
            for later in flow.ways().skip(1).map(hosts) {
                nodes.join(source, later.0);
                nodes.join(sink, later.1);
            }
        }
        // A flow that starts after another does so in no time: one part has the end of one and the start of the other.
        for flow in &network.flows {
            for before in flow.after.iter().map(|&g| &network.flows[g as usize]) {
                nodes.join(begins(flow.forward[0]), begins(before.reverse[0]));
            }
            // Both senders of a connection.
            if let Some(before) = flow.continues.map(|g| &network.flows[g as usize]) {
                nodes.join(begins(flow.forward[0]), begins(before.forward[0]));
            }
        }
        let at = |nodes: &mut Sets, (a, b): (usize, usize)| (nodes.root(a), nodes.root(b));
        let smallest = network.traffic.iter().map(|t| t.packet_bytes).chain([network.ack_bytes, TCP_IP_BYTES]).min();
        let delay = |spec: &waterfill_network::LinkSpec| {
            let line = Rate::from_bps(spec.bucket().map_or(spec.rate_range_bps().1, |bucket| bucket.line_bps));
            (Duration::from_secs(spec.delay_min_s()), line.time_for(u32::from(smallest.unwrap_or(0))))
        };
        let mut layout = Self {
            links: (0..network.links.len() as u32).map(|l| at(&mut nodes, (begins(l), ends(l)))).collect(),
            groups: network.flows.iter().map(|f| at(&mut nodes, hosts((&f.forward, &f.reverse)))).collect(),
            traffic: (network.traffic.iter())
                .map(|t| match &t.flows {
                    Some(flows) if !flows.pairs.is_empty() => SwitchingSpec::pairs(flows)
                        .map(|(from, to)| {
                            let first =
                                |from, to| table.iter().find_map(|table| table.route(from, to).next()).unwrap_or(0);
                            at(&mut nodes, (begins(first(from, to)), begins(first(to, from))))
                        })
                        .collect(),
                    Some(flows) => flows.ways().map(|way| at(&mut nodes, hosts(way))).collect(),
                    None => vec![at(&mut nodes, (begins(t.path[0]), ends(t.path[t.path.len() - 1])))],
                })
                .collect(),
            delays: network.links.iter().map(delay).collect(),
            rates: vec![0.0; network.links.len()],
            weights: vec![0.0; 2 * network.links.len()],
        };
        layout.weigh(network, table.as_ref());
        layout
    }

    /// Estimates packet rates and CPU costs. Each flow is assumed to get the smallest capacity per flow on its path.
    fn weigh(&mut self, network: &Network, table: Option<&RouteTable>) {
        let mut users = vec![0.0; network.links.len()];
        for f in &network.flows {
            f.forward.iter().for_each(|&l| users[l as usize] += f64::from(f.count));
        }
        let (bits, s) = (f64::from(network.packet_bytes) * 8.0, network.duration_s);
        for (g, f) in network.flows.iter().enumerate() {
            let share = |&l: &u32| network.links[l as usize].rate_bps / users[l as usize];
            let fair = f.forward.iter().map(share).fold(f64::INFINITY, f64::min);
            let size = f.size_bytes.map_or(f64::INFINITY, |bytes| bytes as f64 * 8.0 / s);
            let active = ((f.stop_s.min(s) - f.start_s) / s).clamp(0.0, 1.0);
            let limit = f.demand_max_bps().min(f.access_bps.unwrap_or(f64::INFINITY));
            let packets = f64::from(f.count) * (fair.min(limit) * active).min(size) / bits;
            let (source, sink) = self.groups[g];
            self.weights[source] += packets * COST_SENDER_S;
            self.weights[sink] += packets * COST_RECEIVER_S;
            self.load(f.forward.iter().copied(), packets);
            self.load(f.reverse.iter().copied(), packets);
        }
        for (i, t) in network.traffic.iter().enumerate() {
            if let Some(flows) = &t.flows {
                let packets = flows.arrivals_per_s * f64::from(flows.fan_in) * flows.sizes_bytes.mean() * 8.0 / bits;
                let of_each = packets / flows.route_count() as f64;
                for &(source, sink) in &self.traffic[i] {
                    self.weights[source] += of_each * COST_SENDER_S;
                    self.weights[sink] += of_each * COST_RECEIVER_S;
                }
                if flows.pairs.is_empty() {
                    for (there, back) in flows.ways() {
                        self.load(there.iter().copied(), of_each);
                        self.load(back.iter().copied(), of_each);
                    }
                }
                for (table, (from, to)) in
                    table.iter().flat_map(|&t| SwitchingSpec::pairs(flows).map(move |of| (t, of)))
                {
                    self.load(table.route(from, to), of_each);
                    self.load(table.route(to, from), of_each);
                }
            } else {
                self.load(t.path.iter().copied(), t.rate_bps.unwrap_or(0.0) / (f64::from(t.packet_bytes) * 8.0));
            }
        }
    }

    fn load(&mut self, path: impl Iterator<Item = u32>, packets: f64) {
        for l in path {
            let (begins, ends) = self.links[l as usize];
            self.rates[l as usize] += packets;
            self.weights[begins] += packets * COST_JOIN_S;
            self.weights[ends] += packets * COST_ARRIVAL_S;
        }
    }

    /// Returns the best division into `parts` parts, if there is one.
    fn divide(&self, parts: usize) -> Option<Plan> {
        let mut delays: Vec<Duration> = self.delays.iter().map(|&(delay, _)| delay).filter(|d| !d.is_zero()).collect();
        delays.sort_unstable();
        delays.dedup();
        let step = delays.len().div_ceil(CANDIDATES).max(1);
        let candidates = delays.iter().step_by(step).map(|&min_delay| Graph::contracted(self, min_delay));
        let divided = candidates.flat_map(|graph| {
            let part_of: Vec<Vec<usize>> = (0..STARTS).filter_map(|start| graph.divide(parts, start)).collect();
            part_of.into_iter().filter_map(move |part_of| self.plan(&graph, &part_of, parts)).collect::<Vec<Plan>>()
        });
        divided.min_by(|a, b| a.predicted.total_cmp(&b.predicted))
    }

    /// Returns the plan for a division, or `None` if no link is cut.
    fn plan(&self, graph: &Graph, part_of: &[usize], parts: usize) -> Option<Plan> {
        let place = |(a, b): (usize, usize)| (part_of[graph.group_of[a]], part_of[graph.group_of[b]]);
        let links: Vec<(usize, usize)> = self.links.iter().map(|&ends| place(ends)).collect();
        let mut loads = vec![0.0; parts];
        for (node, &weight) in self.weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
            loads[part_of[graph.group_of[node]]] += weight;
        }
        let mut shortest = Duration::MAX;
        let mut lookahead = vec![vec![Duration::MAX; parts]; parts];
        for (l, &(from, to)) in links.iter().enumerate().filter(|(_, (from, to))| from != to) {
            let (delay, transmission) = self.delays[l];
            lookahead[from][to] = lookahead[from][to].min(delay + transmission);
            shortest = shortest.min(delay + transmission);
            loads[from] += self.rates[l] * COST_CROSSING_S / 2.0;
            loads[to] += self.rates[l] * COST_CROSSING_S / 2.0;
        }
        let window_s = COST_WINDOW_S + COST_WINDOW_PER_THREAD_S * parts as f64;
        let busiest = loads.iter().copied().fold(0.0, f64::max);
        for by in 0..parts {
            for (from, to) in (0..parts).flat_map(|from| (0..parts).map(move |to| (from, to))) {
                lookahead[from][to] = lookahead[from][to].min(lookahead[from][by] + lookahead[by][to]);
            }
        }
        (shortest < Duration::MAX && !shortest.is_zero()).then(|| Plan {
            parts,
            groups: self.groups.iter().map(|&hosts| place(hosts)).collect(),
            traffic: self.traffic.iter().map(|of| of.iter().map(|&ends| place(ends)).collect()).collect(),
            links,
            lookahead,
            predicted: busiest + window_s / shortest.as_secs(),
        })
    }
}

/// Graph of node groups, in which all links between groups have at least a minimum delay.
#[derive(Debug)]
struct Graph {
    /// Group of each node.
    group_of: Vec<usize>,
    weights: Vec<f64>,
    /// Neighbours of each group, with the packets per second between them.
    edges: Vec<Vec<(usize, f64)>>,
}

impl Graph {
    /// Builds the graph by contracting the links whose delay is less than `min_delay`.
    fn contracted(layout: &Layout, min_delay: Duration) -> Self {
        let mut sets = Sets::new(layout.weights.len());
        for (&(a, b), &(delay, _)) in layout.links.iter().zip(&layout.delays) {
            if delay < min_delay {
                sets.join(a, b);
            }
        }
        let mut ids = BTreeMap::new();
        let mut group_of = vec![0; layout.weights.len()];
        let used = layout.links.iter().flat_map(|&(a, b)| [a, b]);
        for node in used {
            let next = ids.len();
            group_of[node] = *ids.entry(sets.root(node)).or_insert(next);
        }
        let mut weights = vec![0.0; ids.len()];
        for (node, weight) in layout.weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
            weights[group_of[node]] += weight;
        }
        let mut between = BTreeMap::new();
        for (&(a, b), rate) in layout.links.iter().zip(&layout.rates) {
            let (a, b) = (group_of[a], group_of[b]);
            if a != b {
                *between.entry((a.min(b), a.max(b))).or_insert(0.0) += rate;
            }
        }
        let mut edges = vec![Vec::new(); ids.len()];
        for ((a, b), rate) in between {
            edges[a].push((b, rate));
            edges[b].push((a, rate));
        }
        Self { group_of, weights, edges }
    }

    /// Divides the groups into parts. Returns the part of each group, or `None` if some part would be empty.
    fn divide(&self, parts: usize, start: usize) -> Option<Vec<usize>> {
        if self.weights.len() < parts {
            return None;
        }
        let mut part_of = self.grow(parts, start);
        self.improve(&mut part_of, parts);
        (0..parts).all(|part| part_of.contains(&part)).then_some(part_of)
    }

    /// Grows one part after another, always adding the group that exchanges the most packets with it.
    fn grow(&self, parts: usize, start: usize) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let groups = self.weights.len();
        let mut part_of = vec![NONE; groups];
        let mut left: f64 = self.weights.iter().sum();
        let mut seed = start * groups / STARTS;
        for part in 0..parts - 1 {
            let aim = left / (parts - part) as f64;
            let (mut weight, mut tied, mut heap) = (0.0, vec![0.0; groups], BinaryHeap::new());
            while weight < aim {
                // Rates are not negative, so their bits are in their order; ties go to the first group.
                let next = std::iter::from_fn(|| heap.pop())
                    .find_map(|(_, std::cmp::Reverse(group))| (part_of[group] == NONE).then_some(group));
                let free = |&group: &usize| part_of[group] == NONE;
                let first = (weight == 0.0 && free(&seed)).then_some(seed);
                let Some(group) = first.or(next).or_else(|| (0..groups).find(free)) else { break };
                if weight > 0.0 && weight + self.weights[group] - aim > aim - weight {
                    break; // without it the part is nearer to its aim
                }
                part_of[group] = part;
                weight += self.weights[group];
                for &(neighbour, rate) in &self.edges[group] {
                    tied[neighbour] += rate;
                    heap.push((tied[neighbour].to_bits(), std::cmp::Reverse(neighbour)));
                }
            }
            left -= weight;
            seed = (0..groups).find(|&group| part_of[group] == NONE).unwrap_or(0);
        }
        part_of.iter_mut().filter(|part| **part == NONE).for_each(|part| *part = parts - 1);
        part_of
    }

    /// Moves groups to the parts with which they exchange the most packets, while keeping the parts balanced.
    fn improve(&self, part_of: &mut [usize], parts: usize) {
        let mut loads = vec![0.0; parts];
        for (group, &part) in part_of.iter().enumerate() {
            loads[part] += self.weights[group];
        }
        let most = IMBALANCE * loads.iter().sum::<f64>() / parts as f64;
        let mut tied = vec![0.0; parts];
        for _ in 0..PASSES {
            let mut moved = false;
            for group in 0..part_of.len() {
                tied.fill(0.0);
                self.edges[group].iter().for_each(|&(neighbour, rate)| tied[part_of[neighbour]] += rate);
                let (from, weight) = (part_of[group], self.weights[group]);
                let overfull = loads[from] > most;
                let better = |&to: &usize| {
                    let after = loads[to] + weight;
                    to != from && (if overfull { after < loads[from] } else { after <= most && tied[to] > tied[from] })
                };
                let best = (0..parts).filter(better).max_by(|&a, &b| tied[a].total_cmp(&tied[b]));
                if let Some(to) = best {
                    (part_of[group], moved) = (to, true);
                    loads[from] -= weight;
                    loads[to] += weight;
                }
            }
            if !moved {
                break;
            }
        }
    }
}

/// Disjoint sets of node numbers (union-find).
#[derive(Debug)]
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&mut self, mut i: usize) -> usize {
        while self.0[i] != i {
            self.0[i] = self.0[self.0[i]];
            i = self.0[i];
        }
        i
    }

    /// Joins the ends of links at each switch. The beginning of link l has the number 2l, its end
    /// 2l + 1.
    fn join_nodes(&mut self, network: &Network) {
        let mut first = BTreeMap::new();
        for (l, &(start, end)) in network.switching.iter().flat_map(|switching| switching.nodes.iter().enumerate()) {
            for (node, place) in [(start, 2 * l), (end, 2 * l + 1)] {
                self.join(place, *first.entry(node).or_insert(place));
            }
        }
        for switch in &network.switches {
            switch.outputs.windows(2).for_each(|pair| self.join(2 * pair[0] as usize, 2 * pair[1] as usize));
        }
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waterfill_laws::units::Volume;
    use waterfill_network::{ArrivalSpec, Distribution, FlowSpec, RouteSpec, TrafficKind, TrafficSpec};

    /// Returns a network of nodes in a line, crossed by `flows` flows. `delays_ms` gives the delay of each link.
    fn line(delays_ms: &[u64], flows: u32) -> Network {
        let names: Vec<String> = (0..delays_ms.len()).map(|i| format!("l{i}")).collect();
        let mut builder = Network::builder(Duration::from_millis(10_000));
        for (name, &ms) in names.iter().zip(delays_ms) {
            builder = builder.link(name, Rate::from_bps(1e8), Duration::from_millis(ms), Volume::from_bytes(1e5));
        }
        let path: Vec<&str> = names.iter().map(String::as_str).collect();
        builder.flow("f", "window", &path).with(|network| network.flows[0].count = flows).unchecked()
    }

    #[test]
    fn the_lookahead_is_delay_and_shortest_transmission_of_the_cut() {
        let plan = Plan::new(&line(&[2, 7, 2], 4), 2).expect("a division");
        // Cut at the longest link: 7 ms, and 40 bytes at 100 Mbit/s.
        let lookahead = Duration::from_millis(7) + Duration::from_ps(3_200_000);
        let there_and_back = lookahead + lookahead;
        assert_eq!(plan.lookahead, [[there_and_back, lookahead], [lookahead, there_and_back]]);
        assert_eq!(
            plan.links.iter().map(|&(from, to)| from != to).collect::<Vec<_>>(),
            [false, false, true, true, false, false]
        );
        let (source, sink) = plan.groups[0];
        assert!(source != sink, "the hosts are at the ends");
    }

    #[test]
    fn links_without_delay_are_never_cut() {
        assert_eq!(Plan::new(&line(&[0, 0, 0], 4), 2), None);
        let plan = Plan::new(&line(&[0, 3, 0], 4), 2).expect("a division");
        assert!([0, 1, 4, 5].iter().all(|&l| plan.links[l].0 == plan.links[l].1));
        assert_eq!(Plan::new(&line(&[0, 3, 0], 4), 3), None, "two groups of nodes");
    }

    #[test]
    fn threads_are_taken_where_they_are_worthwhile() {
        // 8,333 packets/s over nine links: 11 ms of CPU time a simulated second.
        let mut long = line(&[2, 2, 2, 2, 7, 2, 2, 2, 2], 4);
        (long.duration_s, long.flows[0].stop_s) = (1_000.0, 1_000.0);
        assert_eq!(Plan::fastest(&long, 2).map(|plan| plan.parts), Some(2));
        assert_eq!(Plan::fastest(&long, 1), None, "one CPU");
        let mut short = long;
        (short.duration_s, short.flows[0].stop_s) = (1.0, 1.0);
        assert_eq!(Plan::fastest(&short, 8), None, "nothing to save");
    }

    /// The routes of one web source begin and end where their hosts are, so the source is not one part's alone.
    #[test]
    fn the_routes_of_one_web_source_lie_in_several_parts() {
        let mut network = line(&[2, 7, 2], 1);
        let route =
            |l: u32| RouteSpec { forward: vec![2 * l], reverse: vec![2 * l + 1], pad_s: 0.0, base_rtt_s: 0.004 };
        let arrivals = ArrivalSpec {
            arrivals_per_s: 100.0,
            at_s: vec![],
            sizes_bytes: Distribution::Constant { mean: 1e5 },
            flow: network.flows[0].clone(),
            routes: vec![vec![route(0), route(1), route(2)]],
            pairs: vec![],
            fan_in: 1,
        };
        network.traffic = vec![TrafficSpec {
            name: "web".into(),
            kind: TrafficKind::Web,
            path: vec![0],
            rate_bps: None,
            access_bps: None,
            start_s: 0.0,
            stop_s: 1.0,
            packet_bytes: 1500,
            periods: None,
            flows: Some(arrivals),
            switched: false,
        }];
        let plan = Plan::new(&network, 2).expect("a division");
        let [left, across, right] = plan.traffic[0][..] else { panic!("three routes: {:?}", plan.traffic) };
        assert_eq!((left.0, right.0), (left.1, right.1), "both hosts of the outer routes are in one part");
        assert_ne!(left, right);
        assert_eq!(across, (left.0, right.0));
    }

    #[test]
    fn the_parts_of_a_ring_are_balanced() {
        // Sixteen nodes; every node sends to the next but one.
        let mut network = line(&[1; 16], 1);
        let flow = network.flows[0].clone();
        network.flows = (0..16)
            .map(|i| {
                let forward: Vec<u32> = (0..2).map(|step| 2 * ((i + step) % 16)).collect();
                let reverse = forward.iter().rev().map(|l| l + 1).collect();
                FlowSpec { name: format!("f{i}"), forward, reverse, ..flow.clone() }
            })
            .collect();
        for parts in [2, 4] {
            let plan = Plan::new(&network, parts).expect("a division");
            let sizes: Vec<usize> =
                (0..parts).map(|p| plan.links.iter().filter(|&&(from, _)| from == p).count()).collect();
            assert!(sizes.iter().all(|&size| size == 32 / parts), "{sizes:?}");
            assert_eq!(plan.links.iter().filter(|(from, to)| from != to).count(), 2 * parts, "connected parts");
        }
    }
}
