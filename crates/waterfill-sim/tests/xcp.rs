//! Tests of XCP, iXCP and P-XCP against their papers' statements and the consequences of their equations.

use crate::common::{assert_close, cbr, flow, link, network, run, set};
use waterfill_network::ParamValue;
use waterfill_network::summary::Summary;

/// Gain α of ixcp-2007 §2.1. `GAMMA` is the gain γ.
const ALPHA: f64 = 0.4;
const GAMMA: f64 = 0.1;
/// Rate of the first link in Fig. 1 of ixcp-2007, in Mbit/s. `SECOND` is the rate of the second link.
const FIRST: f64 = 155.0;
const SECOND: f64 = 100.0;
const SHORT_SHARE: f64 = FIRST - SECOND;

/// Returns XCP's equilibrium rate on a link of `c`. Other flows use `elsewhere` of the link and have their bottleneck
/// downstream.
///
/// With an empty queue, eq. 1 and 2 give every flow (φ + h)/N and take h·x/y from one of rate x; with
/// φ = α(c − y) and h = γy − φ these are equal at x = (y/N)·γy/(γy − α(c − y)), y = elsewhere + x.
fn equilibrium(c: f64, elsewhere: f64, flows: f64) -> f64 {
    let (mut low, mut high) = (0.0, c - elsewhere);
    for _ in 0..100 {
        let x = f64::midpoint(low, high);
        let y = elsewhere + x;
        let h = GAMMA * y - ALPHA * (c - y);
        let is_below = h <= 0.0 || y / flows * GAMMA * y / h > x;
        (low, high) = if is_below { (x, high) } else { (low, x) };
    }
    low
}

#[test]
fn equilibrium_of_many_flows_leaves_a_fifth_of_the_link_unused() {
    // ixcp-2007 §2.2: "as low as 80 %", between 24 and 55 Mbit/s for the short flow.
    assert_close(SECOND + equilibrium(FIRST, SECOND, 1e9), 124.0, 1e-6);
    assert_close(equilibrium(FIRST, SECOND, 1.0 + 1e-9), SHORT_SHARE, 1e-3);
}

/// Flows of Fig. 1 that start first. The others start 5 s later.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Short,
    Both,
}

/// Runs Fig. 1's network: `n` long flows over both links in the given order, and a short flow over the first link of
/// 155 Mbit/s.
fn fig1(
    protocol: &str,
    params: &[(&str, ParamValue)],
    n: u32,
    long_path: &[u32],
    first: First,
    duration_s: f64,
) -> Summary {
    let buffer = (FIRST * 1e6 * 0.08 / 8.0) as u64; // one bandwidth-delay product
    let links = [link("first", FIRST * 1e6, 0.02, buffer), link("second", SECOND * 1e6, 0.02, buffer)].concat();
    let mut long = flow("long", protocol, long_path, duration_s);
    long.count = n;
    if first == First::Short {
        long.start_s = 5.0;
        long.stagger_s = 1.0 / f64::from(n);
    }
    let mut network = network(duration_s, links, vec![flow("short", protocol, &[0], duration_s), long]);
    network.packet_bytes = 1000;
    set(&mut network, protocol, params);
    let (sim, summary) = run(&network);
    assert_eq!(sim.ledger().dropped, 0, "{protocol} with {n} long flows");
    summary
}

fn mbps(summary: &Summary, flow: usize) -> f64 {
    summary.flows[flow].rate_bps.unwrap() / 1e6
}

/// Asserts that the long flows fill the second link.
fn assert_long_flows_fill_the_second_link(summary: &Summary) {
    let long: f64 = (1..summary.flows.len()).map(|i| mbps(summary, i)).sum();
    assert_close(long, SECOND, 0.015);
}

/// XCP's short flow settles where eq. 1 and 2 balance, for up to 1024 long flows (ixcp-2007 Fig. 2).
#[test]
fn xcp_settles_at_its_equilibrium() {
    for n in [4, 8, 16, 32, 64, 128, 256, 1024] {
        let summary = fig1("xcp", &[], n, &[0, 2], First::Short, 45.0);
        assert_close(mbps(&summary, 0), equilibrium(FIRST, SECOND, f64::from(n) + 1.0), 0.03);
        assert_long_flows_fill_the_second_link(&summary);
        assert!(summary.links[0].queue_packets.mean < 3.0);
    }
}

/// XCP's equilibrium depends neither on the header's form nor on which flow started first (ixcp-2007 §2.2).
#[test]
fn xcp_settles_there_with_either_header_and_from_below() {
    let expected = equilibrium(FIRST, SECOND, 17.0);
    for params in [vec![("header", "falk".into())], vec![("feedback_at", "receiver".into())], vec![]] {
        assert_close(mbps(&fig1("xcp", &params, 16, &[0, 2], First::Both, 45.0), 0), expected, 0.03);
    }
}

/// iXCP gives the short flow its share without drops. The paper states "more than 97 % link utilization; the short
/// flow's rate is more than 90 % of its max-min rate" (ixcp-2007 §4.1). From below the short flow grows by its N-th
/// part of φ, which is slow.
#[test]
fn ixcp_gives_the_short_flow_its_share() {
    for (n, first, duration_s) in
        [(4, First::Both, 30.0), (16, First::Both, 60.0), (64, First::Short, 90.0), (256, First::Both, 240.0)]
    {
        let summary = fig1("ixcp", &[], n, &[0, 2], first, duration_s);
        assert!(summary.links[0].utilization >= 0.97, "{n}: {}", summary.links[0].utilization);
        assert!(mbps(&summary, 0) >= 0.9 * SHORT_SHARE, "{n}: {}", mbps(&summary, 0));
        assert_long_flows_fill_the_second_link(&summary);
    }
}

/// With 1024 long flows at a window of one packet, the short flow grows slowly: ẋ = α(55 − x)/(N·d). These windows
/// exceed the 80 ms bandwidth-delay product of the second link, which therefore stays full.
#[test]
fn ixcp_with_windows_of_one_packet_grows_slowly() {
    let summary = fig1("ixcp", &[], 1024, &[0, 2], First::Both, 90.0);
    assert_close(summary.links[2].utilization, 1.0, 1e-12);
    let d = summary.flows[1].rtt_ms.mean.unwrap() / 1e3;
    let tau = 1025.0 * d / ALPHA;
    // The mean over the window from 60 to 90 s of 55·(1 − exp(−t/τ)).
    let mean_gap = tau / 30.0 * ((-60.0 / tau).exp() - (-90.0 / tau).exp());
    assert_close(mbps(&summary, 0), SHORT_SHARE * (1.0 - mean_gap), 0.05);
}

/// With `claim = "least-feedback"`, long flows that keep naming the first link reduce the short flow's rate. The rate
/// settles where φ alone compensates for shuffling: α(55 − x) = γ·x. With `shuffle = "draft"` this is the literal
/// reading of §3.
#[test]
fn ixcp_as_printed_misses_the_share_with_many_flows() {
    for shuffle in ["paired", "draft"] {
        let printed = [("claim", "least-feedback".into()), ("shuffle", shuffle.into())];
        let few = fig1("ixcp", &printed, 4, &[0, 2], First::Short, 60.0);
        assert!(few.links[0].utilization >= 0.97 && mbps(&few, 0) >= 0.9 * SHORT_SHARE, "{shuffle}");
        let many = fig1("ixcp", &printed, 64, &[0, 2], First::Short, 60.0);
        assert_close(mbps(&many, 0), ALPHA * SHORT_SHARE / (ALPHA + GAMMA), 0.05);
    }
}

/// P-XCP leaves the short flow of Fig. 1 at XCP's equilibrium, because the other flows' bottleneck is downstream
/// (ixcp-2007 §5).
#[test]
fn pxcp_does_not_help_where_the_bottleneck_is_downstream() {
    for n in [4, 64, 256] {
        let summary = fig1("pxcp", &[], n, &[0, 2], First::Short, 45.0);
        assert_close(mbps(&summary, 0), equilibrium(FIRST, SECOND, f64::from(n) + 1.0), 0.03);
    }
}

/// P-XCP gives the short flow over 90 % of its share if the other flows' bottleneck is upstream (ixcp-2007 §5). It also
/// "increases the persistent queue size".
#[test]
fn pxcp_helps_where_the_bottleneck_is_upstream() {
    for n in [16, 64] {
        let xcp = fig1("xcp", &[], n, &[2, 0], First::Short, 45.0);
        let pxcp = fig1("pxcp", &[], n, &[2, 0], First::Short, 45.0);
        assert!(mbps(&xcp, 0) < 0.75 * SHORT_SHARE, "{}", mbps(&xcp, 0));
        assert!(mbps(&pxcp, 0) > 0.9 * SHORT_SHARE, "{}", mbps(&pxcp, 0));
        assert!(pxcp.links[0].queue_bytes.mean > 2.0 * xcp.links[0].queue_bytes.mean);
    }
}

/// XCP is at its equilibrium before a narrow link, but behind it the local flow keeps more (aecp-2010 Fig. 9 and 10).
/// Links have 500, 250 and 500 Mbit/s, with a long flow and one flow per link. Behind the narrow link the residues let
/// the local flow keep 365 Mbit/s.
#[test]
fn xcp_upstream_and_downstream_of_a_narrow_link() {
    let rates = |protocol: &str| {
        let links = [500e6, 250e6, 500e6].map(|rate| link("l", rate, 0.02, (rate * 0.12 / 8.0) as u64)).concat();
        let flows = [&[0, 2, 4][..], &[0], &[2], &[4]].map(|path| flow("f", protocol, path, 30.0)).to_vec();
        let (sim, summary) = run(&network(30.0, links, flows));
        assert_eq!(sim.ledger().dropped, 0);
        [0, 1, 2, 3].map(|i| mbps(&summary, i))
    };
    let xcp = rates("xcp");
    for (got, paper) in xcp.iter().zip([125.0, equilibrium(500.0, 125.0, 2.0), 125.0, 365.0]) {
        assert_close(*got, paper, 0.015);
    }
    assert_close(xcp[1], 338.0, 0.01);
    for (got, share) in rates("ixcp").iter().zip([125.0, 375.0, 125.0, 375.0]) {
        assert_close(*got, share, 0.02);
    }
}

/// Rates of ixcp-2007 §4.2 for flows with their bottleneck at links 1 to 5, in Mbit/s.
const FIG4: [f64; 5] = [10.0, 8.0, 4.0, 3.0, 2.0];

/// Runs an instance of Fig. 4. Returns each group's mean rate over its share, and each link's utilization. Groups of
/// 10, 10, 10, 20 and 30 flows cross the first 1, 2, 3, 4 and 5 of five links. The rates make the last link of every
/// flow its bottleneck.
fn fig4(protocol: &str, params: &[(&str, ParamValue)], duration_s: f64) -> [(f64, f64); 5] {
    let counts = [10_u32, 10, 10, 20, 30];
    let (mut links, mut flows) = (Vec::new(), Vec::new());
    for i in 0..5 {
        let rate: f64 = (i..5).map(|j| 1e6 * FIG4[j] * f64::from(counts[j])).sum();
        links.extend(link("l", rate, 0.02, (rate * 0.2 / 8.0) as u64));
        let path: Vec<u32> = (0..=i as u32).map(|l| 2 * l).collect();
        flows.push(flow("f", protocol, &path, duration_s));
        flows[i].count = counts[i];
    }
    let mut network = network(duration_s, links, flows);
    network.packet_bytes = 1000;
    set(&mut network, protocol, params);
    let (sim, summary) = run(&network);
    assert_eq!(sim.ledger().dropped, 0);
    let mut first = 0;
    std::array::from_fn(|i| {
        let group = first..first + counts[i] as usize;
        first = group.end;
        let mean = group.map(|f| mbps(&summary, f)).sum::<f64>() / f64::from(counts[i]);
        (mean / FIG4[i], summary.links[2 * i].utilization)
    })
}

/// iXCP uses the first four of five links, which XCP cannot: "XCP cannot fully utilize the bandwidth of the first four
/// links" (ixcp-2007 §4.2). As printed in §3, iXCP comes within 5 %. Naming only full links costs some of that here.
#[test]
fn ixcp_on_five_links() {
    let xcp = fig4("xcp", &[], 30.0);
    let printed = fig4("ixcp", &[("claim", "least-feedback".into())], 60.0);
    for i in 0..5 {
        assert!(printed[i].0 > 0.95 && printed[i].1 > 0.975, "link {}: {:?}", i + 1, printed[i]);
        assert!(i == 4 || xcp[i].1 < printed[i].1 - 0.02, "link {}: {:?}", i + 1, xcp[i]);
    }
}

#[test]
fn ixcp_on_five_links_naming_full_links_only() {
    for (i, (rate, utilization)) in fig4("ixcp", &[], 100.0).into_iter().enumerate() {
        assert!(rate > 0.9 && utilization > 0.95, "link {}: {rate} of its share, {utilization}", i + 1);
    }
}

/// iXCP follows a bottleneck that moves, and all flows reach their max-min rates within ten seconds (ixcp-2007 §4.3). A
/// long flow crosses links of 150, 100 and 120 Mbit/s. Flow s1 is on the first link, s2 on the second, s3 and s4 on the
/// third. Flows s5 to s7 join the first link at 20 s, and s4 to s7 leave at 40 s.
#[test]
fn ixcp_follows_a_bottleneck_that_moves() {
    let links = [150e6, 100e6, 120e6].map(|rate| link("l", rate, 0.02, (rate * 0.12 / 8.0) as u64)).concat();
    let mut flows = vec![flow("long", "ixcp", &[0, 2, 4], 60.0)];
    for (path, start_s, stop_s) in [
        (0, 0.0, 60.0),
        (2, 0.0, 60.0),
        (4, 0.0, 60.0),
        (4, 0.0, 40.0),
        (0, 20.0, 40.0),
        (0, 20.0, 40.0),
        (0, 20.0, 40.0),
    ] {
        let mut short = flow("s", "ixcp", &[path], stop_s);
        short.start_s = start_s;
        flows.push(short);
    }
    for (measure_s, shares) in [
        ([10.0, 20.0], &[40.0, 110.0, 60.0, 40.0, 40.0][..]),
        ([30.0, 40.0], &[30.0, 30.0, 70.0, 45.0, 45.0, 30.0, 30.0, 30.0]),
        ([50.0, 60.0], &[50.0, 100.0, 50.0, 70.0]),
    ] {
        let mut network = network(measure_s[1], links.clone(), flows.clone());
        network.packet_bytes = 1000;
        network.measure_s = measure_s;
        let (_, summary) = run(&network);
        for (i, share) in shares.iter().enumerate() {
            assert_close(mbps(&summary, i), *share, 0.03);
        }
    }
}

/// Four flows with RTTs from 20 to 50 ms share one bottleneck by weight. One of them has twice the weight.
#[test]
fn one_bottleneck_is_full_and_shared_by_weight() {
    for protocol in ["xcp", "ixcp", "pxcp"] {
        for header in ["katabi", "falk"] {
            let flows = (0..4).map(|i| {
                let mut flow = flow("f", protocol, &[0], 12.0);
                flow.pad_s = 0.005 * f64::from(i);
                flow.start_s = 0.3 * f64::from(i);
                flow.weight = if i == 3 { 2.0 } else { 1.0 };
                flow
            });
            let mut network = network(12.0, link("l", 1e8, 0.01, 500_000).to_vec(), flows.collect());
            network.set_param(protocol, "header", header);
            let (sim, summary) = run(&network);
            assert_eq!(sim.ledger().dropped, 0);
            assert!(summary.links[0].utilization > 0.995, "{}", summary.links[0].utilization);
            assert!(summary.links[0].queue_packets.mean < 10.0);
            for i in 0..4 {
                assert_close(mbps(&summary, i), if i == 3 { 40.0 } else { 20.0 }, 0.03);
            }
        }
    }
}

/// Traffic without congestion control counts as load: XCP takes the rest.
#[test]
fn xcp_takes_what_other_traffic_leaves() {
    let mut network = network(9.0, link("l", 1e8, 0.02, 500_000).to_vec(), vec![flow("f", "xcp", &[0], 9.0); 2]);
    network.traffic = vec![cbr("cbr", &[0], 4e7, [0.0, 9.0], 1500)];
    let (sim, summary) = run(&network);
    assert_eq!(sim.ledger().dropped, 0);
    for i in 0..2 {
        assert_close(mbps(&summary, i), 30.0, 0.02);
    }
}

/// XCP-r keeps every flow's rate when a tenth of the acknowledgements is lost while windows grow.
#[test]
fn xcpr_survives_lost_acknowledgements() {
    let rates = |feedback_at: &str, loss: f64| {
        let flows = vec![flow("f", "xcp", &[0], 2.0); 4];
        let mut network = network(2.0, link("l", 1e8, 0.05, 1_250_000).to_vec(), flows);
        network.links[1].loss = loss;
        network.set_param("xcp", "feedback_at", feedback_at);
        let (_, summary) = run(&network);
        [0, 1, 2, 3].map(|i| mbps(&summary, i))
    };
    let largest_change = |feedback_at| {
        let (whole, lossy) = (rates(feedback_at, 0.0), rates(feedback_at, 0.1));
        whole.iter().zip(lossy).map(|(a, b)| (b / a - 1.0).abs()).fold(0.0, f64::max)
    };
    assert!(largest_change("receiver") < 0.01, "{}", largest_change("receiver"));
    assert!(largest_change("source") > 0.05, "{}", largest_change("source"));
}
