//! Tests that a multi-threaded run gives byte-identical results to a single-threaded run, even if every event ties with
//! others.

use crate::common::{build, cbr, flow, link, network};
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::Instant;
use waterfill_network::{
    ArrivalSpec, DemandSpec, Distribution, FlowSpec, LossSpec, Network, RouteChangeSpec, RouteSpec, Series,
    TrafficKind, TrafficSpec,
};
use waterfill_sim::Simulation;

/// Returns all results of a run: summary, series, counts.
fn print(sim: &mut Simulation) -> (String, Vec<u64>, String) {
    let arrivals = sim.arrivals();
    let series = sim.series().into_iter().chain([&arrivals]);
    let series = series.flat_map(Series::columns).flatten().map(|x| x.to_bits()).collect();
    let counts = format!("{:?} {}", sim.ledger(), sim.sacks_in_use());
    (serde_json::to_string(&sim.summary()).unwrap(), series, counts)
}

/// Runs a network on up to `threads` threads, in slices. Returns the results and the number of threads used.
fn run_on(n: &Network, threads: usize, slices: u32) -> ((String, Vec<u64>, String), usize) {
    let mut sim = build(n);
    let used = sim.set_threads(Some(threads));
    for i in 1..=slices {
        sim.advance(Instant::from_secs(n.duration_s * f64::from(i) / f64::from(slices)));
    }
    (print(&mut sim), used)
}

/// Asserts that 1, 2, 3 and 8 threads give the same bytes. Returns the number of threads that the last run used.
fn assert_same(n: &Network) -> usize {
    let (one, _) = run_on(n, 1, 1);
    let mut used = 1;
    for (threads, slices) in [(2, 1), (8, 1), (3, 3)] {
        let (several, threads) = run_on(n, threads, slices);
        assert_eq!(one.2, several.2, "counts of {threads} threads");
        assert_eq!(one.0, several.0, "summary of {threads} threads");
        assert!(one.1 == several.1, "series of {threads} threads");
        used = threads;
    }
    used
}

/// Returns a fabric of leaves with `hosts` hosts each, all connected to all spines by equal links. Each host sends to
/// the host of the same number at the next leaf and at the one after it, from time 0.
fn fabric(protocol: &str, leaves: u32, spines: u32, hosts: u32, duration_s: f64) -> Network {
    let mut links = Vec::new();
    let mut add = |name: String| {
        links.extend(link(&name, 1e8, 2e-3, 30_000));
        links.len() as u32 - 2
    };
    let up: Vec<u32> = (0..leaves * hosts).map(|h| add(format!("host{h}"))).collect();
    let across: Vec<u32> =
        (0..leaves * spines).map(|s| add(format!("leaf{}-spine{}", s / spines, s % spines))).collect();
    let mut flows = Vec::new();
    for h in 0..leaves * hosts {
        for further in 1..=2 {
            let (leaf, spine) = (h / hosts, (h + further) % spines);
            let to = (leaf + further) % leaves;
            let path = [
                up[h as usize],
                across[(leaf * spines + spine) as usize],
                across[(to * spines + spine) as usize] + 1,
                up[(to * hosts + h % hosts) as usize] + 1,
            ];
            flows.push(flow(&format!("h{h}-{further}"), protocol, &path, duration_s));
            flows.last_mut().unwrap().base_rtt_s = 16e-3;
        }
    }
    for f in &mut flows {
        f.reverse = f.forward.iter().rev().map(|l| l ^ 1).collect();
    }
    let mut n = network(duration_s, links, flows);
    n.sample_s = duration_s / 20.0;
    n.set_param("window", "packets", 40.0);
    n
}

/// With equal rates, delays and starts, nearly every event ties with others in every part.
#[test]
fn a_symmetric_fabric_gives_the_same_bytes_with_every_protocol() {
    for protocol in ProtocolId::ALL {
        let n = fabric(protocol.info().name, 4, 2, 3, 0.1);
        assert_eq!(assert_same(&n), 3, "{}", protocol.info().name);
    }
}

#[test]
fn queues_faults_traffic_and_padding_give_the_same_bytes() {
    let codel = || waterfill_network::CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true };
    let mut n = fabric("cubic", 3, 2, 2, 0.4);
    for (l, spec) in n.links.iter_mut().enumerate() {
        match l % 5 {
            0 => spec.queue = waterfill_network::QueueSpec::Codel(codel()),
            1 => spec.loss_model = Some(LossSpec::Independent { p: 0.01 }),
            2 => spec.duplicate = 0.02,
            3 => spec.reorder = Some(waterfill_network::link::ReorderSpec { share: 0.05, delay_s: 3e-4 }),
            _ => {}
        }
    }
    for (i, f) in n.flows.iter_mut().enumerate() {
        f.delayed_ack = i % 2 == 0;
        f.pad_s = if i % 3 == 0 { 2e-4 } else { 0.0 };
        f.access_bps = (i % 4 == 0).then_some(5e7);
        f.size_bytes = (i % 5 == 0).then_some(200_000);
        f.recovery = (i % 3 == 1).then(|| "quic".into());
    }
    let path = n.flows[0].forward.clone();
    n.traffic = vec![
        TrafficSpec { access_bps: Some(4e7), ..cbr("limited", &path, 2e7, [0.0, 0.3], 1500) },
        cbr("cbr", &path[1..], 1e7, [0.0, 0.4], 500),
    ];
    assert_eq!(assert_same(&n), 3);
}

/// Flows that start during the run and take one route. The hosts of the third and later sources are on other threads than
/// the path that the source states.
#[test]
fn arriving_flows_give_the_same_bytes() {
    let mut n = fabric("reno", 3, 2, 2, 0.3);
    // The last sources state paths of other flows, whose first hosts are on other threads.
    for (name, of, stated) in [("web", 0, 0), ("web2", 3, 3), ("web3", 0, 7), ("web4", 0, 9), ("web5", 0, 11)] {
        let FlowSpec { forward, reverse, .. } = n.flows[of].clone();
        let flow = FlowSpec { reverse, ..flow("web", "cubic", &forward, 0.3) };
        let sizes_bytes = Distribution::Exponential { mean: 9_000.0 };
        let flows = Some(ArrivalSpec {
            arrivals_per_s: 400.0,
            at_s: vec![],
            sizes_bytes,
            flow,
            routes: vec![],
            pairs: vec![],
            fan_in: 1,
        });
        let source = cbr(name, &n.flows[stated].forward, 0.0, [0.0, 0.25], 1500);
        n.traffic.push(TrafficSpec { kind: TrafficKind::Web, rate_bps: None, flows, ..source });
    }
    assert!(assert_same(&n) > 1);
}

/// Flows that draw their routes give the same bytes.
#[test]
fn flows_of_a_pattern_give_the_same_bytes() {
    let mut n = fabric("reno", 3, 2, 2, 0.3);
    let route = |of: &FlowSpec| RouteSpec {
        forward: of.forward.clone(),
        reverse: of.reverse.clone(),
        pad_s: 0.0,
        base_rtt_s: 0.016,
    };
    let routes = vec![n.flows[..2].iter().map(route).collect(), n.flows[2..4].iter().map(route).collect()];
    let FlowSpec { forward, reverse, .. } = n.flows[0].clone();
    let flow = FlowSpec { reverse, ..flow("web", "cubic", &forward, 0.3) };
    let sizes_bytes = Distribution::Exponential { mean: 4_000.0 };
    let flows =
        Some(ArrivalSpec { arrivals_per_s: 600.0, at_s: vec![], sizes_bytes, flow, routes, pairs: vec![], fan_in: 2 });
    let source = cbr("web", &forward, 0.0, [0.0, 0.25], 1500);
    n.traffic.push(TrafficSpec { kind: TrafficKind::Web, rate_bps: None, flows, ..source });
    assert!(assert_same(&n) > 1);
}

/// Flows of one source begin and end at all hosts, hence on all threads. Losses and slow answers let slots
/// be used again while packets of their last flow are on the way.
#[test]
fn one_source_between_all_hosts_gives_the_same_bytes() {
    let mut n = fabric("reno", 4, 2, 2, 0.4);
    let route = |of: &FlowSpec| RouteSpec {
        forward: of.forward.clone(),
        reverse: of.reverse.clone(),
        pad_s: if of.name.ends_with('1') { 1e-4 } else { 0.0 },
        base_rtt_s: 0.016,
    };
    let routes: Vec<Vec<RouteSpec>> = n.flows.chunks(4).map(|group| group.iter().map(route).collect()).collect();
    let FlowSpec { forward, reverse, .. } = n.flows[0].clone();
    n.flows.clear();
    for (l, spec) in n.links.iter_mut().enumerate() {
        spec.loss_model = (l % 2 == 1).then_some(LossSpec::Independent { p: 0.05 });
        spec.reorder = (l % 3 == 0).then_some(waterfill_network::link::ReorderSpec { share: 0.05, delay_s: 5e-3 });
    }
    for (protocol, handshake) in
        [("cubic", true), ("maxnet", true), ("reno", true), ("cubic", false), ("maxnet", false)]
    {
        let flow = FlowSpec { handshake, reverse: reverse.clone(), ..flow("web", protocol, &forward, 0.4) };
        let flow = FlowSpec { recovery: (protocol == "reno").then(|| "quic".into()), ..flow };
        let sizes_bytes = Distribution::Exponential { mean: 6_000.0 };
        let flows = Some(ArrivalSpec {
            arrivals_per_s: 900.0,
            at_s: vec![],
            sizes_bytes,
            flow,
            routes: routes.clone(),
            pairs: vec![],
            fan_in: 2,
        });
        let source = cbr(protocol, &forward, 0.0, [0.0, 0.35], 1500);
        n.traffic.push(TrafficSpec { kind: TrafficKind::Web, rate_bps: None, flows, ..source });
    }
    assert_eq!(assert_same(&n), 3);
    let mut sim = build(&n);
    sim.advance(Instant::from_secs(0.4));
    let summary = sim.summary();
    for source in &summary.traffic {
        let web = source.flows.as_ref().unwrap();
        assert!(web.flows_completed > 100 && web.retransmissions > 20 && web.flows_open_max > 2, "{web:?}");
    }
}

#[test]
fn parts_in_turn_give_the_same_bytes_and_the_time_of_each() {
    let n = fabric("window", 4, 2, 3, 0.1);
    let (one, _) = run_on(&n, 1, 1);
    let mut sim = build(&n);
    assert_eq!(sim.set_threads(Some(3)), 3);
    // A clock that advances with each reading: every step of every part takes one second.
    let reads = std::cell::Cell::new(0.0);
    let turns = sim.run_in_turns(|| reads.replace(reads.get() + 1.0)).expect("a divided run");
    assert_eq!(print(&mut sim), one);
    assert_eq!(turns.parts_s, [turns.slowest_s; 3]);
    // The other steps are 20 samples, the two edges of the summary's window, and the end.
    assert_eq!(turns.slowest_s - turns.windows as f64, 23.0);
    assert_eq!(build(&n).run_in_turns(|| 0.0), None);
}

#[test]
fn one_link_runs_on_one_thread() {
    let n = network(1.0, link("l", 1e7, 0.0, 60_000).to_vec(), vec![flow("f", "window", &[0], 1.0)]);
    assert_eq!(run_on(&n, 4, 1).1, 1);
}

/// Returns a fabric of flows with a size in which each host's second flow follows the first flow of another host.
fn steps_of_a_ring() -> Network {
    let mut n = fabric("window", 6, 2, 2, 0.6);
    n.measure_s = [0.0, 0.6];
    n.set_param("window", "packets", 5.0); // no queue overflows
    for g in 0..n.flows.len() {
        n.flows[g].size_bytes = Some(60_000 + 1_000 * g as u64);
        if g % 2 == 1 {
            // The first flow of host h ends at host h + 2. Odd hosts wait for a flow that ends elsewhere.
            let host = g / 2;
            let before = if host % 2 == 0 { (host + 12 - 2) % 12 } else { (host + 3) % 12 };
            n.flows[g].after = vec![2 * before as u32];
        }
    }
    n
}

#[test]
fn flows_that_follow_others_start_alike_on_any_number_of_threads() {
    let n = steps_of_a_ring();
    assert!(assert_same(&n) > 1, "divided");
    let mut sim = build(&n);
    sim.advance(sim.end());
    let flows = sim.summary().flows;
    assert!(flows.iter().all(|flow| flow.completed_s.is_some()));
    for (g, spec) in n.flows.iter().enumerate().filter(|(_, spec)| !spec.after.is_empty()) {
        assert_eq!(Some(flows[g].start_s), flows[spec.after[0] as usize].completed_s, "{}", spec.name);
    }
}

/// Flows that move to the other spine and back, some with padding or a demand over time, give the same bytes.
#[test]
fn routes_that_change_give_the_same_bytes_on_any_number_of_threads() {
    let mut n = fabric("maxnet", 6, 2, 2, 0.6);
    for g in 0..n.flows.len() {
        let here = &n.flows[g];
        // Duplex links are pairs: those of a leaf's two spines are next to each other, from link 24 on.
        let other = |l: &u32| if *l < 24 { *l } else { 24 + ((l - 24) ^ 2) };
        let there = RouteChangeSpec {
            at_s: 0.2,
            forward: here.forward.iter().map(other).collect(),
            reverse: here.reverse.iter().map(other).collect(),
        };
        let back = RouteChangeSpec { at_s: 0.4, forward: here.forward.clone(), reverse: here.reverse.clone() };
        n.flows[g].routes = vec![there, back];
        n.flows[g].pad_s = if g % 3 == 0 { 1e-3 } else { 0.0 };
        if g % 4 == 1 {
            n.flows[g].demands = [(0.0, 2e6), (0.3, 5e6)].map(|(at_s, rate_bps)| DemandSpec { at_s, rate_bps }).into();
        }
    }
    assert!(assert_same(&n) > 1, "divided");
    let (changed, _) = run_on(&n, 1, 1);
    n.flows.iter_mut().for_each(|flow| flow.routes.clear());
    assert_ne!(changed.1, run_on(&n, 1, 1).0.1, "a route that changes has an effect");
}
