//! Cost of the fluid model by classes, links and simulated time: MaxNet flows over random networks.

use std::collections::VecDeque;

use serde_json::json;
use waterfill_fluid::Fluid;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{FlowSpec, LinkSpec, Network};

use crate::{Measurement, clock};

/// A random network with random routes.
pub(crate) struct FluidCase {
    pub(crate) name: &'static str,
    nodes: u32,
    /// Duplex links: twice as many directions.
    links: u32,
    classes: u32,
    flows_per_class: u32,
    duration_s: f64,
}

const BASE: FluidCase =
    FluidCase { name: "fluid-10-s", nodes: 400, links: 1000, classes: 1000, flows_per_class: 1000, duration_s: 10.0 };

pub(crate) const CASES: &[FluidCase] = &[
    FluidCase { name: "fluid-million", duration_s: 60.0, ..BASE },
    BASE,
    FluidCase { name: "fluid-one-flow", flows_per_class: 1, ..BASE },
    FluidCase { name: "fluid-100-classes", classes: 100, ..BASE },
    FluidCase { name: "fluid-10000-classes", classes: 10_000, flows_per_class: 100, ..BASE },
    FluidCase { name: "fluid-250-links", nodes: 100, links: 250, ..BASE },
    FluidCase { name: "fluid-4000-links", nodes: 1600, links: 4000, ..BASE },
];

/// Runs a case once.
pub(crate) fn run(case: &FluidCase) -> Measurement {
    let mut fluid = Fluid::new(network(case), None).expect("a valid network");
    let ((), took) = clock::measure(|| fluid.advance(Instant::from_secs(case.duration_s)));
    let largest_utilization = fluid.summary().links.iter().map(|link| link.utilization).fold(0.0, f64::max);
    let figures = json!({
        "name": case.name, "flows": case.classes * case.flows_per_class, "classes": fluid.classes(),
        "links": case.links, "simulated_s": case.duration_s, "step_s": fluid.step().as_secs(), "steps": fluid.steps(),
        "parcels": fluid.events(), "heap_bytes": fluid.heap_bytes(), "largest_utilization": largest_utilization,
    });
    Measurement { figures, counts: vec![("parcels_per_s", fluid.events() as f64)], took }
}

/// A reproducible random number generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.roll() % u64::from(n)) as u32
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Builds a tree over all nodes, and links between random nodes; 1 to 40 Gbit/s, 1 to 10 ms; RTTs of 50 to 250 ms.
fn network(case: &FluidCase) -> Network {
    let mut dice = Dice(7);
    let (mut ends, mut delays, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..case.links {
        let from = if i + 1 < case.nodes { i + 1 } else { dice.below(case.nodes) };
        let mut to = dice.below(if i + 1 < case.nodes { i + 1 } else { case.nodes });
        if to == from {
            to = (to + 1) % case.nodes;
        }
        let (rate_bps, delay_s) = (1e9 * dice.between(0.0, 40f64.ln()).exp(), dice.between(0.001, 0.01));
        ends.extend([(from, to), (to, from)]);
        delays.extend([delay_s; 2]);
        let (rate, delay) = (Rate::from_bps(rate_bps), Duration::from_secs(delay_s));
        links.extend(LinkSpec::duplex(&format!("l{i}"), rate, delay, rate * Duration::from_millis(100)));
    }
    let mut out = vec![Vec::new(); case.nodes as usize];
    for (l, &(from, to)) in ends.iter().enumerate() {
        out[from as usize].push((l as u32, to));
    }
    let stop = Duration::from_secs(case.duration_s);
    let flows: Vec<FlowSpec> = (0..case.classes)
        .map(|c| {
            let from = dice.below(case.nodes);
            let to = (from + 1 + dice.below(case.nodes - 1)) % case.nodes;
            let forward = route(&out, from, to);
            let path_s: f64 = 2.0 * forward.iter().map(|&l| delays[l as usize]).sum::<f64>();
            let rtt_s = path_s.max(dice.between(0.05, 0.25));
            FlowSpec {
                count: case.flows_per_class,
                start_s: dice.between(0.0, 5.0),
                pad_s: (rtt_s - path_s) / 2.0,
                base_rtt_s: rtt_s,
                ..FlowSpec::new(&format!("f{c}"), "maxnet", &forward, stop)
            }
        })
        .collect();
    let empty = Network::builder(stop).with(|network| {
        network.sample_s = 1.0;
        (network.links, network.flows) = (links, flows);
    });
    empty.build().expect("a valid network")
}

/// Returns a route with the fewest links.
fn route(out: &[Vec<(u32, u32)>], from: u32, to: u32) -> Vec<u32> {
    let mut by = vec![None; out.len()];
    let mut next = VecDeque::from([from]);
    while let Some(node) = next.pop_front() {
        for &(l, end) in &out[node as usize] {
            if end != from && by[end as usize].is_none() {
                by[end as usize] = Some((l, node));
                next.push_back(end);
            }
        }
    }
    let (mut route, mut node) = (Vec::new(), to);
    while let Some((l, before)) = by[node as usize].filter(|_| node != from) {
        route.push(l);
        node = before;
    }
    route.reverse();
    route
}
