//! Tests of properties shared by explicit protocols: max-min rates over several bottlenecks, two protocols on one link,
//! and links without the protocol's router. MaxNet's range of rates is tested too.

use crate::common::{assert_close, flow, link, network, run};
use waterfill_network::Network;
use waterfill_network::summary::Summary;

fn rates(summary: &Summary) -> Vec<f64> {
    summary.flows.iter().map(|f| f.rate_bps.expect("an active flow")).collect()
}

/// Returns a parking lot of five hops of different rates with 5 ms each, and the rates. One flow crosses all hops and
/// one crosses each, with RTTs of 10 to 110 ms.
fn parking_lot(protocol: &str, duration_s: f64) -> (Network, [f64; 5]) {
    let mbps = [100.0, 80.0, 60.0, 90.0, 70.0];
    let links = mbps
        .iter()
        .enumerate()
        .flat_map(|(i, m)| link(&format!("l{i}"), m * 1e6, 0.005, (m * 1e6 * 0.11 / 8.0) as u64));
    let mut flows = vec![flow("long", protocol, &[0, 2, 4, 6, 8], duration_s)];
    for i in 0..5u32 {
        let mut short = flow(&format!("short{i}"), protocol, &[2 * i], duration_s);
        short.pad_s = 0.01 * f64::from(i + 1);
        short.start_s = 0.5 * f64::from(i + 1);
        flows.push(short);
    }
    (network(duration_s, links.collect(), flows), mbps)
}

/// The long flow gets half of the third hop, which has the smallest rate. Each short flow gets the rest of its hop.
#[test]
fn five_hop_parking_lot_is_max_min() {
    for (protocol, target) in [("maxnet", 0.9), ("ixcp", 1.0), ("aecp", 1.0), ("rcp", 1.0), ("jetmax", 0.95)] {
        let (n, mbps) = parking_lot(protocol, 60.0);
        let (_, summary) = run(&n);
        let long = target * 60e6 / 2.0;
        let rates = rates(&summary);
        println!("{protocol}: {:?}", rates.iter().map(|r| r / 1e6).collect::<Vec<_>>());
        assert_close(rates[0], long, 0.03);
        for (rate, m) in rates[1..].iter().zip(mbps) {
            assert_close(*rate, target * m * 1e6 - long, 0.03);
        }
    }
}

/// XCP shuffles bandwidth to flows with a bottleneck elsewhere, so some flow deviates by more than 5 %, as in
/// ixcp-2007.
#[test]
fn xcp_misses_max_min() {
    let (n, mbps) = parking_lot("xcp", 60.0);
    let rates = rates(&run(&n).1);
    let shares = std::iter::once(30e6).chain(mbps.map(|m| m * 1e6 - 30e6));
    let worst = rates.iter().zip(shares).map(|(rate, share)| (rate / share - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst > 0.05, "{worst}");
}

/// The protocol with the higher target takes a shared link. Each router law sees all packets as load and writes only
/// its own header. MaxNet targets a total of 0.9 C and RCP targets C. MaxNet's price therefore rises until MaxNet has
/// its smallest window and RCP the rest.
#[test]
fn the_higher_target_wins_a_shared_link() {
    let links = link("l", 1e8, 0.02, 500_000).to_vec();
    let n = network(40.0, links, vec![flow("m", "maxnet", &[0], 40.0), flow("r", "rcp", &[0], 40.0)]);
    let (_, summary) = run(&n);
    let [maxnet, rcp] = [0, 1].map(|i| rates(&summary)[i]);
    // One packet per RTT.
    assert_close(maxnet, 1500.0 * 8.0 / 0.04, 0.05);
    assert_close(maxnet + rcp, 1e8, 0.02);
    // With one target they still measure the load differently, but the link reaches the target.
    let mut n = n;
    n.links[0].target = Some(0.9);
    let (_, summary) = run(&n);
    assert_close(summary.links[0].utilization, 0.9, 0.02);
}

/// A link without the protocol's router gives no price, which matters only at the bottleneck. There the source follows
/// the other links, and the bottleneck's buffer fills and drops packets.
#[test]
fn a_missing_router_matters_only_at_the_bottleneck() {
    let build = |silent: usize| {
        let links = [link("wide", 1e8, 0.01, 250_000), link("narrow", 5e7, 0.01, 250_000)].concat();
        let mut n = network(20.0, links, vec![flow("f", "maxnet", &[0, 2], 20.0)]);
        n.links[silent].routers = Some(vec![]);
        run(&n).1
    };
    let wide_is_silent = build(0);
    assert_close(rates(&wide_is_silent)[0], 0.9 * 5e7, 0.01);
    assert_eq!(wide_is_silent.links[2].drops, 0);
    let narrow_is_silent = build(2);
    assert_close(narrow_is_silent.links[2].utilization, 1.0, 1e-9);
    assert!(narrow_is_silent.links[2].queue_bytes.mean > 100_000.0, "{:?}", narrow_is_silent.links[2]);
}

/// Without any router on the path a source keeps its initial window.
#[test]
fn without_any_router_the_initial_window_stays() {
    let mut n = network(6.0, link("l", 1e8, 0.02, 500_000).to_vec(), vec![flow("f", "maxnet", &[0], 6.0)]);
    n.links[0].routers = Some(vec![]);
    // The measurement window of 2 s cuts one of 50 bursts of ten packets.
    assert_close(rates(&run(&n).1)[0], 10.0 * 12_000.0 / 0.040_12, 0.02);
}

/// MaxNet holds its target over six decades of rate with one set of parameters, at RTTs from 6 s to 1.2 µs. The
/// bandwidth-delay product is 50 packets for long RTTs and ten below 12 ms. (With ten packets and longer RTTs the
/// window of 9.9 packets rounds down to 9 of the 11 packets per RTT, and the utilization stays at 82 to 86 %.)
#[test]
fn maxnet_holds_its_target_from_100_kbps_to_100_gbps() {
    for (rate_bps, rtt_s, duration_s) in [
        (1e5, 6.0, 200.0),
        (1e6, 0.6, 60.0),
        (1e7, 0.06, 20.0),
        (1e8, 0.006, 12.0),
        (1e9, 0.0006, 9.0),
        (1e10, 0.000_06, 1.5),
        (1e8, 0.001_2, 12.0),
        (1e9, 0.000_12, 5.0),
        (1e10, 0.000_012, 2.0),
        (1e11, 0.000_001_2, 1.5),
    ] {
        let bdp = (rate_bps * rtt_s / 8.0) as u64;
        let mut f = flow("f", "maxnet", &[0], duration_s);
        f.pacing = Some(true);
        let (_, summary) = run(&network(duration_s, link("l", rate_bps, rtt_s / 2.0, bdp).to_vec(), vec![f]));
        println!("{rate_bps:e} bit/s, {rtt_s} s: {:.4}", summary.links[0].utilization);
        assert_close(summary.links[0].utilization, 0.9, 0.015);
        assert_eq!(summary.links[0].drops, 0);
    }
}
