//! Plan of a run: classes of identical flows, the length of a step, and the order of tasks within a step.

use std::collections::HashMap;

use waterfill_laws::units::Duration;
use waterfill_network::{FlowSpec, Network};

/// Steps per shortest RTT, unless the user sets the step. Halving the default step changes rates by at most about 1 %
/// on the test networks.
const STEPS_PER_RTT: f64 = 20.0;
/// Minimum number of steps per shortest RTT. With fewer steps, an acknowledgement would arrive in the step of its data.
const MIN_STEPS_PER_RTT: f64 = 4.0;

/// Flows of one group that belong to the same class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) class: u32,
    pub(crate) group: u32,
    /// Index of the first of these flows in the group.
    pub(crate) index: u32,
    pub(crate) count: u32,
}

/// Plan for a class: an example flow of a group, the start time and the number of flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassPlan {
    pub(crate) group: u32,
    pub(crate) index: u32,
    pub(crate) start_s: f64,
    pub(crate) count: u32,
}

/// Properties that two flows must share to be identical.
#[derive(PartialEq, Eq, Hash)]
struct ClassKey<'a> {
    protocol: &'a str,
    path: (&'a [u32], &'a [u32]),
    numbers: [u64; 6],
    limits: (Option<u64>, Option<u64>),
    rtts: (Option<u64>, Option<u64>),
    demands: Vec<(u64, u64)>,
    flags: (Option<bool>, bool),
}

impl<'a> ClassKey<'a> {
    fn of(flow: &'a FlowSpec, index: u32) -> Self {
        let (start_s, pad_s, base_rtt_s) = (flow.start_of_s(index), flow.pad_of_s(index), flow.base_rtt_of_s(index));
        let numbers = [start_s, flow.stop_s, pad_s, base_rtt_s, flow.weight, flow.initial_window_packets];
        Self {
            protocol: &flow.protocol,
            path: (&flow.forward, &flow.reverse),
            numbers: numbers.map(f64::to_bits),
            limits: (flow.size_bytes, flow.demand_bps.map(f64::to_bits)),
            rtts: (flow.claimed_rtt_s.map(f64::to_bits), flow.base_rtt_window_s.map(f64::to_bits)),
            demands: flow.demands.iter().map(|demand| (demand.at_s.to_bits(), demand.rate_bps.to_bits())).collect(),
            flags: (flow.pacing, flow.delayed_ack),
        }
    }
}

/// Returns the classes of a network, and its flows in the scenario's order.
pub(crate) fn classes(network: &Network) -> (Vec<ClassPlan>, Vec<Member>) {
    let mut known: HashMap<ClassKey<'_>, u32> = HashMap::new();
    let (mut plans, mut members) = (Vec::<ClassPlan>::new(), Vec::new());
    for (group, flow) in (0u32..).zip(&network.flows) {
        // Flows with different start times or delays are separate classes.
        let (parts, count) = if flow.differ() { (flow.count, 1) } else { (1, flow.count) };
        for index in 0..parts {
            let start_s = flow.start_of_s(index);
            let class = *known.entry(ClassKey::of(flow, index)).or_insert_with(|| {
                plans.push(ClassPlan { group, index, start_s, count: 0 });
                plans.len() as u32 - 1
            });
            plans[class as usize].count += count;
            members.push(Member { class, group, index, count });
        }
    }
    (plans, members)
}

/// Returns the shortest RTT of a network: propagation, padding and serialization.
fn shortest_rtt_s(network: &Network) -> f64 {
    let sending = |l: &u32, bytes: f64| bytes * 8.0 / network.links[*l as usize].rate_range_bps().1;
    let rtt = |flow: &FlowSpec| {
        let out: f64 = flow.forward.iter().map(|l| sending(l, f64::from(network.packet_bytes))).sum();
        let back: f64 = flow.reverse.iter().map(|l| sending(l, f64::from(network.ack_bytes))).sum();
        let links = flow.forward.iter().chain(&flow.reverse).map(|l| network.links[*l as usize].delay_min_s());
        out + back + links.sum::<f64>() + 2.0 * flow.pad_s
    };
    network.flows.iter().map(rtt).fold(f64::INFINITY, f64::min)
}

/// Returns the length of a run's step.
///
/// This is the user's value or, by default, a fraction of the shortest RTT that divides the sampling interval.
///
/// # Errors
/// One sentence: the step is too long for this network, or there is none.
pub(crate) fn step(network: &Network, wanted_s: Option<f64>) -> Result<Duration, String> {
    let shortest_s = shortest_rtt_s(network);
    let interval_s = network.sample_s.min(network.duration_s);
    let step_s = match wanted_s {
        Some(step_s) => {
            let longest_s = shortest_s / MIN_STEPS_PER_RTT;
            if !(step_s > 0.0 && step_s <= longest_s) {
                return Err(format!(
                    "step: must be above zero and at most {longest_s:.3e} s, a quarter of the shortest RTT, \
                     got {step_s:e} s"
                ));
            }
            step_s
        }
        None => interval_s / (interval_s * STEPS_PER_RTT / shortest_s).ceil().max(1.0),
    };
    let step = Duration::from_secs(step_s);
    if step.is_zero() {
        return Err(format!("step: every RTT must be at least 100 ps, got {shortest_s:e} s"));
    }
    Ok(step)
}

/// Dependency between two tasks through an inbox entry that is written and read in the same step. The writer must run
/// before the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Pipe between the two tasks; `None` if the writer is a host.
    pub(crate) pipe: Option<u32>,
}

/// Orders the nodes so that every edge points forward, except edges over pipes that close a cycle.
///
/// Also returns the pipes whose edges were left out because they close a cycle. Of the pipes on a cycle, the one with
/// the longest latency is left out.
pub(crate) fn order(nodes: usize, mut edges: Vec<Edge>, latency: impl Fn(u32) -> Duration) -> (Vec<u32>, Vec<u32>) {
    edges.sort_unstable();
    edges.dedup();
    let (mut placed, mut late) = (Vec::with_capacity(nodes), Vec::new());
    let mut done = vec![false; nodes];
    loop {
        let mut before = vec![0u32; nodes];
        let mut after = vec![Vec::new(); nodes];
        for edge in edges.iter().filter(|e| !done[e.from as usize]) {
            before[edge.to as usize] += 1;
            after[edge.from as usize].push(edge.to);
        }
        let mut next: Vec<u32> = (0..nodes as u32).filter(|&n| !done[n as usize] && before[n as usize] == 0).collect();
        let mut place = 0;
        while let Some(&node) = next.get(place) {
            place += 1;
            done[node as usize] = true;
            for &to in &after[node as usize] {
                before[to as usize] -= 1;
                if before[to as usize] == 0 {
                    next.push(to);
                }
            }
        }
        placed.extend(next);
        if placed.len() == nodes {
            return (placed, late);
        }
        edges.retain(|e| !done[e.from as usize]);
        let cycle = on_cycles(&edges);
        let pipe = cycle.iter().filter_map(|e| e.pipe).max_by_key(|&p| (latency(p), std::cmp::Reverse(p)));
        let pipe = pipe.expect("what cannot be placed lies on or behind a cycle");
        edges.retain(|e| e.pipe != Some(pipe));
        late.push(pipe);
    }
}

/// Returns the edges on cycles, or on paths from one cycle to another.
fn on_cycles(edges: &[Edge]) -> Vec<Edge> {
    let mut left = edges.to_vec();
    loop {
        let starts: std::collections::HashSet<u32> = left.iter().map(|e| e.from).collect();
        let before = left.len();
        left.retain(|e| starts.contains(&e.to));
        if left.len() == before {
            return left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u32, to: u32, pipe: u32) -> Edge {
        Edge { from, to, pipe: Some(pipe) }
    }

    #[test]
    fn writers_come_before_readers() {
        let edges = vec![edge(2, 1, 0), edge(1, 0, 1), edge(2, 0, 0)];
        let (order, late) = order(4, edges, |_| Duration::ZERO);
        assert_eq!((order, late), (vec![2, 3, 1, 0], vec![]));
    }

    #[test]
    fn a_cycle_is_cut_at_its_longest_pipe() {
        // 0 → 1 → 2 → 0 and 2 → 3: pipe 1 (from 1 to 2) is the longest on the cycle, pipe 3 longer but not on it.
        let edges = vec![edge(0, 1, 0), edge(1, 2, 1), edge(2, 0, 2), edge(2, 3, 3)];
        let (order, late) = order(4, edges, |pipe| Duration::from_micros([1, 5, 2, 9][pipe as usize]));
        assert_eq!((order, late), (vec![2, 0, 3, 1], vec![1]));
    }
}
