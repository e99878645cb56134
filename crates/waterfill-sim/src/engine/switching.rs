//! Switches that choose each packet's next link among equal shortest routes (ECMP).
//!
//! A packet that switches forward has a path of two entries: its host's link, and its destination. It stays at the first of
//! them for its whole way. A switch looks up the links that lead to the destination on shortest routes, and takes one by a
//! hash with a seed of its own, so that the choices of consecutive switches are independent. The table has a row for each
//! destination; equal sets of links are stored once per node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::{Network, PathChoice, SwitchingSpec};

use super::path;
use crate::fault::damages;
use crate::packet::Packet;
use crate::random::mix;

/// Number of entries of a switch's table of flowlets. Flows with the same entry share their flowlets.
const FLOWLETS: usize = 1 << 12;

/// The odd number ⌊2⁶⁴/φ⌋, which keeps the seeds of consecutive switches far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Entry of the table for a node without a route.
const NO_ROUTE: u32 = 0;

/// The links that lead from each node to each destination on shortest routes.
#[derive(Clone, Debug)]
pub(super) struct RouteTable {
    /// Nodes at which each link begins and ends.
    nodes: Vec<(u32, u32)>,
    count: usize,
    /// Row of each node that is a destination.
    rows: BTreeMap<u32, u32>,
    /// Place in `sets` of the links of each node, row by row.
    table: Vec<u32>,
    /// Sets of links, each after its length. The first set is empty.
    sets: Vec<u32>,
}

impl RouteTable {
    /// Finds all shortest routes between the hosts of switched packets, in both directions. Returns `None` if the network
    /// has no switches.
    pub(super) fn new(network: &Network) -> Option<Self> {
        let spec = network.switching.as_ref()?;
        let mut table = Self {
            nodes: spec.nodes.clone(),
            count: spec.count(),
            rows: BTreeMap::new(),
            table: Vec::new(),
            sets: vec![0],
        };
        let mut is_host = vec![false; table.count];
        for (from, to) in switched_pairs(network, spec) {
            is_host[from as usize] = true;
            is_host[to as usize] = true;
        }
        let mut entering = vec![Vec::new(); table.count];
        for (l, (&(start, end), link)) in (0u32..).zip(spec.nodes.iter().zip(&network.links)) {
            entering[end as usize].push((l, start, Duration::from_secs(link.delay_s).as_ps()));
        }
        let mut known = vec![Vec::new(); table.count];
        for host in (0..table.count as u32).filter(|&node| is_host[node as usize]) {
            table.rows.insert(host, table.rows.len() as u32);
            table.add_row(host, &entering, &mut known);
        }
        Some(table)
    }

    /// Appends the row of a destination, by Dijkstra's algorithm from there against the links' direction. A length is a
    /// number of links, then a delay in picoseconds. `known` has the places of each node's sets in other rows.
    fn add_row(&mut self, to: u32, entering: &[Vec<(u32, u32, u64)>], known: &mut [Vec<u32>]) {
        let mut found = vec![((u32::MAX, 0), Vec::new()); self.count];
        let mut waiting = BinaryHeap::from([Reverse(((0, 0), to))]);
        found[to as usize].0 = (0, 0);
        while let Some(Reverse((length, node))) = waiting.pop() {
            if length > found[node as usize].0 {
                continue; // a shorter route has been found since
            }
            for &(link, start, delay_ps) in &entering[node as usize] {
                let total = (length.0 + 1, length.1 + delay_ps);
                let (before, links) = &mut found[start as usize];
                if total < *before {
                    *before = total;
                    links.clear();
                    waiting.push(Reverse((total, start)));
                }
                if total == *before {
                    links.push(link);
                }
            }
        }
        for ((_, mut links), known) in found.into_iter().zip(known) {
            links.sort_unstable();
            let place = known.iter().copied().find(|&place| *self.set(place) == links[..]);
            let place = place.unwrap_or_else(|| self.add_set(&links, known));
            self.table.push(place);
        }
    }

    fn add_set(&mut self, links: &[u32], known: &mut Vec<u32>) -> u32 {
        if links.is_empty() {
            return NO_ROUTE;
        }
        let place = self.sets.len() as u32;
        self.sets.push(links.len() as u32);
        self.sets.extend_from_slice(links);
        known.push(place);
        place
    }

    #[inline]
    fn set(&self, place: u32) -> &[u32] {
        let (place, count) = (place as usize + 1, self.sets[place as usize] as usize);
        &self.sets[place..place + count]
    }

    /// Returns the links that lead from a node to the destination of a row.
    #[inline]
    fn links(&self, node: u32, row: u32) -> &[u32] {
        self.set(self.table[row as usize * self.count + node as usize])
    }

    /// Returns a shortest route between two hosts: at each node the first of the equal links. It is empty if there is none.
    pub(super) fn route(&self, from: u32, to: u32) -> impl Iterator<Item = u32> + '_ {
        let mut node = from;
        let row = self.rows.get(&to).copied();
        std::iter::from_fn(move || {
            let link = *self.links(node, row?).first()?;
            node = self.nodes[link as usize].1;
            Some(link)
        })
    }

    /// Returns true for each link that is on a shortest route of a pair of hosts.
    pub(super) fn crossed(&self, pairs: impl Iterator<Item = (u32, u32)>) -> Vec<bool> {
        let mut crossed = vec![false; self.nodes.len()];
        let mut reached = vec![false; self.table.len()];
        let mut waiting = Vec::new();
        for (from, to) in pairs {
            let Some(&row) = self.rows.get(&to) else { continue };
            waiting.push(from);
            while let Some(node) = waiting.pop() {
                let place = row as usize * self.count + node as usize;
                if std::mem::replace(&mut reached[place], true) {
                    continue;
                }
                for &link in self.links(node, row) {
                    crossed[link as usize] = true;
                    waiting.push(self.nodes[link as usize].1);
                }
            }
        }
        crossed
    }

    /// Returns the row of a host that is a destination.
    fn row(&self, host: u32) -> Option<u32> {
        self.rows.get(&host).copied()
    }

    /// Replaces the number of each link by its index in the part of the network where it begins.
    pub(super) fn renumber(&mut self, index: impl Fn(u32) -> u32) {
        let mut place = 0;
        while let Some(&count) = self.sets.get(place) {
            let end = place + 1 + count as usize;
            self.sets[place + 1..end].iter_mut().for_each(|link| *link = index(*link));
            place = end;
        }
    }
}

/// Returns the sending and the receiving node of all switched packets, in both directions.
fn switched_pairs<'a>(network: &'a Network, spec: &'a SwitchingSpec) -> impl Iterator<Item = (u32, u32)> + 'a {
    let arriving = network.traffic.iter().filter_map(|source| source.flows.as_ref());
    let own = network.flows.iter().chain(arriving.clone().map(|flows| &flows.flow)).filter(|flow| flow.switched);
    let own = own.flat_map(move |flow| [spec.ends(&flow.forward), spec.ends(&flow.reverse)]);
    let packets = network.traffic.iter().filter(|source| source.switched).map(|source| spec.ends(&source.path));
    let paired = arriving.flat_map(SwitchingSpec::pairs).flat_map(|(a, b)| [(a, b), (b, a)]);
    own.chain(packets).flatten().chain(paired)
}

/// A host, and what its packets find at the end of their path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    row: u32,
    pub(super) node: u32,
    /// Last entry of the path: a delay line, or [`path::END`].
    pub(super) end: u32,
}

/// State of a flow at a switch that forwards flowlets.
#[derive(Clone, Copy, Debug)]
struct Flowlet {
    last: Instant,
    hash: u64,
}

/// The switches of a part of the network.
#[derive(Clone, Debug)]
pub(super) struct Switches {
    choice: PathChoice,
    gap: Duration,
    seed: u64,
    /// True if any link damages packets.
    pub(super) damages: bool,
    pub(super) table: Arc<RouteTable>,
    /// Nodes at which each of the part's links begins and ends.
    pub(super) nodes: Vec<(u32, u32)>,
    pub(super) destinations: Vec<Destination>,
    /// Flowlets of each switch that has had a choice.
    flowlets: Vec<Option<Box<[Flowlet]>>>,
}

impl Switches {
    /// Prepares the switches of a network, if it has some.
    pub(super) fn new(network: &Network) -> Option<Box<Self>> {
        let (spec, table) = (network.switching.as_ref()?, RouteTable::new(network)?);
        Some(Box::new(Self {
            choice: spec.choice,
            gap: Duration::from_secs(spec.gap_s.unwrap_or(0.0)),
            seed: network.seed,
            damages: damages(network, &(0..network.links.len() as u32).collect::<Vec<_>>()),
            nodes: table.nodes.clone(),
            destinations: Vec::new(),
            flowlets: vec![None; if spec.choice == PathChoice::Flowlet { table.count } else { 0 }],
            table: Arc::new(table),
        }))
    }

    /// Returns the switches of a part whose links begin and end at these nodes.
    pub(super) fn of_part(&self, nodes: Vec<(u32, u32)>) -> Self {
        Self { nodes, ..self.clone() }
    }

    /// Returns the entry that follows a link on the way to a destination: a link or the end of the path.
    pub(super) fn next(&mut self, now: Instant, l: u32, destination: u32, packet: &Packet) -> u32 {
        let node = self.nodes[l as usize].1;
        let Destination { row, node: last, end } = self.destinations[destination as usize];
        if node == last {
            return end;
        }
        match self.table.links(node, row) {
            &[only] => only,
            links => {
                let count = links.len();
                let hash = self.hash(now, node, row, packet);
                self.table.links(node, row)[pick(hash, count)]
            }
        }
    }

    /// Returns the hash by which a switch chooses.
    fn hash(&mut self, now: Instant, node: u32, row: u32, packet: &Packet) -> u64 {
        let (flow, seed) = (flow_key(packet.flow, packet.incarnation, row), switch_seed(self.seed, node));
        match self.choice {
            PathChoice::Hash => mix(flow, seed),
            PathChoice::Spray => mix(mix(flow ^ packet.number.wrapping_mul(SPREAD), packet.sent.as_ps()), seed),
            PathChoice::Flowlet => {
                let new = Flowlet { last: Instant::NEVER, hash: 0 };
                let flowlets = self.flowlets[node as usize].get_or_insert_with(|| vec![new; FLOWLETS].into());
                let flowlet = &mut flowlets[flow as usize % FLOWLETS];
                if flowlet.last == Instant::NEVER || now.since(flowlet.last) > self.gap {
                    flowlet.hash = mix(mix(flow, now.as_ps()), seed);
                }
                flowlet.last = now;
                flowlet.hash
            }
        }
    }

    /// Returns the start of a flow's path, among those over the equal links of its host. The hash of the flow decides for
    /// all of its packets. Other paths stay as they are.
    pub(super) fn leave_host(&self, paths: &[u32], place: u32, (flow, incarnation): (u32, u16)) -> u32 {
        let Some(destination) = path::destination(paths, place) else { return place };
        let row = self.destinations[destination as usize].row;
        let node = self.nodes[paths[place as usize] as usize].0;
        let count = self.table.links(node, row).len();
        let hash = mix(flow_key(flow, incarnation, row), switch_seed(self.seed, node));
        place + 2 * pick(hash, count) as u32
    }

    /// Returns the number of links before link `l` on the way of a packet with this path.
    pub(super) fn hop(&self, paths: &[u32], place: u32, l: u32) -> Option<usize> {
        let to = self.destinations[path::destination(paths, place)? as usize].node;
        let left = |l: u32| self.table.route(self.nodes[l as usize].1, to).count();
        Some(left(paths[place as usize]) - left(l))
    }
}

/// Hash of a flow's packets in one direction. `row` is that of the addressee.
const fn flow_key(flow: u32, incarnation: u16, row: u32) -> u64 {
    mix(flow as u64 | (incarnation as u64) << 32, (row as u64 + 1).wrapping_mul(SPREAD))
}

/// Seed of a switch.
const fn switch_seed(seed: u64, node: u32) -> u64 {
    mix(seed.wrapping_add((node as u64 + 1).wrapping_mul(SPREAD)), 0)
}

/// Returns an index below `count` from a hash, uniformly.
const fn pick(hash: u64, count: usize) -> usize {
    ((hash as u128 * count as u128) >> 64) as usize
}

/// Paths of switched packets while the list of all paths is built.
#[derive(Debug, Default)]
pub(super) struct SwitchedPaths {
    destinations: BTreeMap<(u32, u32), u32>,
    /// Start of the paths from a node to a destination.
    places: BTreeMap<(u32, u32), u32>,
}

impl SwitchedPaths {
    /// Returns the start of the path from one host to another, which ends with the entry `end`. Hosts with several equal
    /// links have a path for each, one after the other.
    ///
    /// # Errors
    /// One sentence: there is no route.
    pub(super) fn place(
        &mut self,
        (switches, paths): (&mut Switches, &mut Vec<u32>),
        (from, to): (u32, u32),
        end: u32,
    ) -> Result<u32, String> {
        let destination = *self.destinations.entry((to, end)).or_insert_with(|| {
            let row = switches.table.row(to).unwrap_or(0); // checked next
            switches.destinations.push(Destination { row, node: to, end });
            switches.destinations.len() as u32 - 1
        });
        let links = switches.table.row(to).map_or(&[][..], |row| switches.table.links(from, row));
        if links.is_empty() || from == to {
            return Err(format!("no route from node {from} to node {to}"));
        }
        Ok(*self.places.entry((from, destination)).or_insert_with(|| {
            let place = paths.len() as u32;
            paths.extend(links.iter().flat_map(|&link| [link, path::SWITCHED | destination]));
            place
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the pairs of choices that 4,096 flows meet at two switches of four links each.
    fn choices(seeds: [u64; 2]) -> [u32; 16] {
        let mut counts = [0; 16];
        for flow in 0..4096 {
            let [one, other] = seeds.map(|seed| pick(mix(flow_key(flow, 0, 3), seed), 4));
            counts[4 * one + other] += 1;
        }
        counts
    }

    /// Each pair has 256 flows with a standard deviation of √(4096 · 1/16 · 15/16) = 15.5. With one seed for both switches
    /// the second has no choice left.
    #[test]
    fn consecutive_switches_choose_independently() {
        let counts = choices([switch_seed(1, 7), switch_seed(1, 8)]);
        assert!(counts.iter().all(|&count| count.abs_diff(256) < 5 * 16), "{counts:?}");
        let polarized = choices([switch_seed(1, 7); 2]);
        assert_eq!(polarized.iter().filter(|&&count| count > 0).count(), 4);
    }

    /// Later connections of the same hosts, and the other direction, have hashes of their own.
    #[test]
    fn connections_and_directions_hash_apart() {
        let keys = [(5, 0, 3), (5, 1, 3), (5, 0, 4), (6, 0, 3)];
        let mut distinct = keys.map(|(flow, incarnation, row)| flow_key(flow, incarnation, row)).to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), keys.len());
    }
}
