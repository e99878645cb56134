//! Tests of switches that choose each packet's next link among equal ones.

use crate::common::{flow, link, network, refusal, run, run_on};
use waterfill_laws::units::{Duration, Rate};
use waterfill_network::summary::Summary;
use waterfill_network::{
    ArrivalSpec, Distribution, FlowSpec, Network, PathChoice, SwitchingSpec, TrafficKind, TrafficSpec,
};
use waterfill_sim::Simulation;

const SPINES: u32 = 4;
/// Nodes of [`fabric`]: two hosts, two leaves, then the spines.
const LEAVES: [u32; 2] = [2, 3];

/// Two hosts at two leaves, and four spines between them. Links 0 and 2 are the hosts', link 4 + 2s is that of the first
/// leaf to spine s, and link 12 + 2s of the second.
fn fabric(choice: PathChoice, duration_s: f64, flows: Vec<FlowSpec>) -> Network {
    let mut links = [link("h0", 1e9, 1e-6, 1_000_000), link("h1", 1e9, 1e-6, 1_000_000)].concat();
    let mut nodes = vec![(0, LEAVES[0]), (LEAVES[0], 0), (1, LEAVES[1]), (LEAVES[1], 1)];
    for leaf in LEAVES {
        for spine in 0..SPINES {
            links.extend(link(&format!("l{leaf}-s{spine}"), 1e9, 1e-6, 1_000_000));
            nodes.extend([(leaf, 4 + spine), (4 + spine, leaf)]);
        }
    }
    let gap_s = (choice == PathChoice::Flowlet).then_some(50e-6);
    let switching = Some(SwitchingSpec { choice, gap_s, nodes });
    Network { measure_s: [0.0, duration_s], switching, ..network(duration_s, links, flows) }
}

/// A flow from host 0 to host 1, or back, over the first spine if nothing chooses.
fn across(name: &str, protocol: &str, back: bool, stop_s: f64) -> FlowSpec {
    let forward: &[u32] = if back { &[2, 12, 5, 1] } else { &[0, 4, 13, 3] };
    FlowSpec { switched: true, base_rtt_s: 8e-6, ..flow(name, protocol, forward, stop_s) }
}

/// The finalizer of SplitMix64, from its publication (Steele, Lea and Flood, 2014).
fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The spine that a switch chooses for a flow to the host of a row, by the documented rule.
fn spine_of(flow: u64, row: u64, seed: u64, switch: u64) -> u32 {
    let key = finalize(flow ^ (row + 1).wrapping_mul(GAMMA));
    let of_switch = finalize(seed.wrapping_add((switch + 1).wrapping_mul(GAMMA)));
    ((u128::from(finalize(key ^ of_switch)) * u128::from(SPINES)) >> 64) as u32
}

/// Returns the number of bytes that links sent in the run.
fn sent_bytes(summary: &Summary, links: impl Iterator<Item = u32>) -> Vec<f64> {
    links.map(|l| (summary.links[l as usize].utilization * 1e9 * 0.1 / 8.0).round()).collect()
}

/// Flow f sends 10·2ᶠ packets of 1500 B, so the bytes of a link tell which flows crossed it. The acknowledgements have
/// a hash of their own.
#[test]
fn each_flow_takes_the_link_of_its_hash() {
    let sized = |f: u32| FlowSpec {
        size_bytes: Some(1460 * (10 << f)),
        handshake: false,
        ..across(&format!("f{f}"), "window", false, 0.1)
    };
    let n = fabric(PathChoice::Hash, 0.1, (0..8).map(sized).collect());
    let (_, summary) = run(&n);
    let mut data = [0.0; SPINES as usize];
    let mut acks = data;
    for f in 0..8u64 {
        let packets = f64::from(10 << f);
        // Host 0 has row 0 and host 1 row 1.
        data[spine_of(f, 1, n.seed, LEAVES[0].into()) as usize] += packets * 1500.0;
        acks[spine_of(f, 0, n.seed, LEAVES[1].into()) as usize] += packets * 40.0;
    }
    assert_eq!(sent_bytes(&summary, (0..SPINES).map(|s| 4 + 2 * s)), data);
    assert_eq!(sent_bytes(&summary, (0..SPINES).map(|s| 12 + 2 * s)), acks);
    assert!(data.iter().filter(|&&bytes| bytes > 0.0).count() > 1);
    let [one, other] = [1, 2].map(|seed| sent_bytes(&run(&Network { seed, ..n.clone() }).1, (4..12).step_by(2)));
    assert_ne!(one, other, "the seed decides");
}

/// 4,000 flows over four spines: each has 1,000, with a standard deviation of √(4000 · ¼ · ¾) = 27.4.
#[test]
fn many_flows_divide_evenly() {
    let one = FlowSpec { count: 4000, size_bytes: Some(100), handshake: false, ..across("f", "window", false, 0.1) };
    let (_, summary) = run(&fabric(PathChoice::Hash, 0.1, vec![one]));
    let flows: Vec<f64> = sent_bytes(&summary, (4..12).step_by(2)).into_iter().map(|bytes| bytes / 140.0).collect();
    assert_eq!(flows.iter().sum::<f64>(), 4000.0);
    assert!(flows.iter().all(|count| (count - 1000.0).abs() < 4.0 * 27.4), "{flows:?}");
}

/// One flow of 4,000 packets: spraying uses all spines alike, and nothing is lost, so nothing is sent again.
#[test]
fn spraying_divides_one_flow() {
    let one = FlowSpec { size_bytes: Some(1460 * 4000), handshake: false, ..across("f", "window", false, 0.1) };
    let (_, summary) = run(&fabric(PathChoice::Spray, 0.1, vec![one]));
    let packets: Vec<f64> = sent_bytes(&summary, (4..12).step_by(2)).into_iter().map(|bytes| bytes / 1500.0).collect();
    assert_eq!(packets.iter().sum::<f64>(), 4000.0);
    assert!(packets.iter().all(|count| (count - 1000.0).abs() < 4.0 * 27.4), "{packets:?}");
    assert_eq!(summary.flows[0].retransmissions, 0);
}

/// A burst of ten packets each 100 µs: with a gap of 50 µs the bursts are flowlets, and a continuous flow is one.
#[test]
fn flowlets_change_links_after_pauses_only() {
    let spines = |flow: FlowSpec| {
        let (_, summary) = run(&fabric(PathChoice::Flowlet, 0.1, vec![flow]));
        sent_bytes(&summary, (4..12).step_by(2)).into_iter().filter(|&bytes| bytes > 0.0).count()
    };
    let long = FlowSpec { size_bytes: Some(1460 * 4000), handshake: false, ..across("f", "window", false, 0.1) };
    assert_eq!(spines(long.clone()), 1);
    // A packet each 60 µs.
    assert_eq!(spines(FlowSpec { demand_bps: Some(2e8), ..long }), SPINES as usize);
}

/// Where routes are unique, a choice changes nothing, padding included.
#[test]
fn unique_routes_are_as_without_a_choice() {
    let link = |name| link(name, 1e8, 1e-3, 30_000);
    let flows = |switched| {
        let one = |name: &str, protocol: &str| FlowSpec {
            switched,
            pad_s: 2e-3,
            count: 2,
            base_rtt_s: 8e-3,
            ..flow(name, protocol, &[0, 2], 2.0)
        };
        vec![one("a", "cubic"), one("b", "xcp")]
    };
    let listed = network(2.0, [link("a"), link("b")].concat(), flows(false));
    let nodes = vec![(0, 1), (1, 0), (1, 2), (2, 1)];
    let switching = Some(SwitchingSpec { choice: PathChoice::Hash, gap_s: None, nodes });
    let switched = Network { switching, flows: flows(true), ..listed.clone() };
    let print = |n: &Network| serde_json::to_string(&run(n).1).unwrap();
    assert_eq!(print(&listed), print(&switched));
}

/// Returns the fabric with a source of flows between both hosts.
fn with_arrivals(choice: PathChoice) -> Network {
    let mut n = fabric(choice, 0.02, vec![across("long", "dctcp", true, 0.02)]);
    let arrivals = ArrivalSpec {
        arrivals_per_s: 20_000.0,
        at_s: vec![],
        sizes_bytes: Distribution::Constant { mean: 5e3 },
        flow: across("web", "maxnet", false, 0.02),
        routes: vec![],
        pairs: vec![vec![(0, 1), (1, 0)]],
        fan_in: 1,
    };
    let source = TrafficSpec::cbr("web", &[0], Rate::from_bps(1.0), [Duration::ZERO; 2]);
    n.traffic =
        vec![TrafficSpec { kind: TrafficKind::Web, rate_bps: None, stop_s: 0.02, flows: Some(arrivals), ..source }];
    n
}

/// A host with two links takes one for each connection, also where switches spray.
#[test]
fn a_host_with_two_links_divides_connections() {
    let links = ["a", "b"].map(|name| link(name, 1e9, 1e-6, 100_000_000)).concat();
    let one = FlowSpec { count: 1000, size_bytes: Some(14_600), handshake: false, ..across("f", "window", false, 0.1) };
    let flows = vec![FlowSpec { forward: vec![0], reverse: vec![1], ..one }];
    let nodes = vec![(0, 1), (1, 0), (0, 1), (1, 0)];
    let switching = Some(SwitchingSpec { choice: PathChoice::Spray, gap_s: None, nodes });
    let (_, summary) = run(&Network { measure_s: [0.0, 0.1], switching, ..network(0.1, links, flows) });
    let bytes = sent_bytes(&summary, [0, 2].into_iter());
    // Ten packets each, so whole connections; half of them with a standard deviation of 15.8.
    assert!(bytes.iter().all(|b| b % 15_000.0 == 0.0 && (b / 15_000.0 - 500.0).abs() < 4.0 * 15.8), "{bytes:?}");
}

#[test]
fn threads_choose_alike() {
    for choice in [PathChoice::Hash, PathChoice::Flowlet, PathChoice::Spray] {
        let n = with_arrivals(choice);
        let (one, summary) = run_on(&n, 1);
        let (two, divided) = run_on(&n, 2);
        assert_eq!((one.threads(), two.threads()), (1, 2));
        assert!(summary.traffic[0].packets_received > 500, "{:?}", summary.traffic);
        let print = |summary| serde_json::to_string(&summary).unwrap();
        assert_eq!(print(summary), print(divided), "{choice:?}");
        // NaN stands for an unfinished flow.
        let bits =
            |sim: &Simulation| -> Vec<u64> { sim.arrivals().columns().iter().flatten().map(|x| x.to_bits()).collect() };
        assert!(bits(&one) == bits(&two), "{choice:?}");
    }
}

#[test]
fn what_switches_cannot_forward_is_refused() {
    let n = fabric(PathChoice::Spray, 0.1, vec![across("f", "hpcc", false, 0.1)]);
    assert!(refusal(n).starts_with("flow.f.protocol: hpcc compares telemetry of one path"));
    let n = fabric(PathChoice::Hash, 0.1, vec![across("f", "reno", false, 0.1)]);
    assert_eq!(
        refusal(Network { switching: None, ..n.clone() }),
        "flow.f: the network has no switches that choose its route"
    );
    let mut wrong = n.clone();
    wrong.switching.as_mut().unwrap().nodes.pop();
    assert_eq!(refusal(wrong), "ecmp: must have two nodes for each of 20 links, got 19");
    let mut elsewhere = n.clone();
    elsewhere.switching.as_mut().unwrap().nodes[3].1 = 9;
    assert_eq!(refusal(elsewhere), "flow.f.path: acknowledgements must return to where the data came from");
    let mut apart = n;
    apart.switching.as_mut().unwrap().nodes[2..4].copy_from_slice(&[(1, 9), (9, 1)]);
    let error = Simulation::new(apart.checked().unwrap()).map(|_| ()).unwrap_err();
    assert_eq!(error, "no route from node 0 to node 1");
}
