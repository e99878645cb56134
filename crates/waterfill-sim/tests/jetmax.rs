//! Tests of JetMax: max-min rates, even while bottlenecks move.

use crate::common::{assert_close, cbr, column, flow, link, mean, network, run};
use waterfill_network::{FlowSpec, LinkSpec};
use waterfill_sim::Simulation;

/// Default target utilization γ.
const GAMMA: f64 = 0.95;

/// Returns the samples of a flow's column after `from` and up to `to`.
fn samples(sim: &Simulation, name: &str, flow: usize, [from, to]: [f64; 2]) -> Vec<f64> {
    let [time, id, wanted] = ["time_s", "flow", name].map(|name| column(sim.series()[0], name));
    let rows =
        (0..time.len()).filter(|&row| id[row] == flow as f64 && from + 1e-9 < time[row] && time[row] < to + 1e-9);
    rows.map(|row| wanted[row]).collect()
}

/// Returns a chain of links of 10 ms each, with buffers that never fill.
fn hops(rates_mbps: &[f64]) -> Vec<LinkSpec> {
    rates_mbps.iter().enumerate().flat_map(|(i, rate)| link(&format!("l{i}"), rate * 1e6, 0.01, 1 << 26)).collect()
}

/// Returns a flow over a range of hops whose access adds `pad_s` in each direction.
fn over(name: &str, hops: std::ops::RangeInclusive<u32>, pad_s: f64, stop_s: f64) -> FlowSpec {
    let forward: Vec<u32> = hops.map(|hop| 2 * hop).collect();
    let mut flow = flow(name, "jetmax", &forward, stop_s);
    flow.pad_s = pad_s;
    flow
}

/// Flows over five links of different rates get their max-min shares of 95 %. One flow crosses all links (RTT 100 ms)
/// and one crosses each (20 to 220 ms). Queues are almost empty, and no flow changes its router any more.
#[test]
fn five_hop_parking_lot_is_max_min() {
    let rates = [100.0, 80.0, 60.0, 90.0, 70.0];
    let pads = [0.0, 0.025, 0.05, 0.075, 0.1];
    let mut flows = vec![over("long", 0..=4, 0.0, 15.0)];
    flows.extend((0..5u32).map(|i| over(&format!("short{i}"), i..=i, pads[i as usize], 15.0)));
    let (sim, summary) = run(&network(15.0, hops(&rates), flows));
    // The third link has the smallest rate and two flows; each other link leaves the rest to its own flow.
    let long = GAMMA * 60e6 / 2.0;
    assert_close(summary.flows[0].rate_bps.unwrap(), long, 0.005);
    for (i, rate) in rates.iter().enumerate() {
        assert_close(summary.flows[i + 1].rate_bps.unwrap(), GAMMA * rate * 1e6 - long, 0.005);
        assert_close(summary.links[2 * i].utilization, GAMMA, 0.005);
        assert!(summary.links[2 * i].queue_packets.max <= 3.0, "up to two flows may collide");
        assert_eq!(summary.links[2 * i].drops, 0);
    }
    assert!(samples(&sim, "jetmax_bottleneck", 0, [5.0, 15.0]).iter().all(|&router| router == 3.0));
}

/// A long flow over five equal links keeps one of them as its bottleneck.
#[test]
fn a_flow_does_not_switch_between_equal_links() {
    let mut flows = vec![over("long", 0..=4, 0.0, 15.0)];
    flows.extend((0..5u32).map(|i| over(&format!("short{i}"), i..=i, 0.02 * f64::from(i), 15.0)));
    let (sim, summary) = run(&network(15.0, hops(&[50.0; 5]), flows));
    for flow in &summary.flows {
        assert_close(flow.rate_bps.unwrap(), GAMMA * 25e6, 0.005);
    }
    let routers = samples(&sim, "jetmax_bottleneck", 0, [3.0, 15.0]);
    assert!(routers.windows(2).all(|pair| pair[0] == pair[1]));
}

/// A flow follows its bottleneck from the second link to the first and back. At first the second link (60 Mbit/s, no
/// other flow) is the bottleneck. From 5 to 10 s, two more flows make the first link the bottleneck. Within 2 s of each
/// change all flows have their shares.
#[test]
fn a_flow_follows_its_bottleneck_and_returns() {
    let mut flows = vec![over("long", 0..=1, 0.0, 15.0)];
    flows.extend([0.02, 0.045].map(|pad| over("guest", 0..=0, pad, 10.0)));
    for guest in &mut flows[1..] {
        guest.start_s = 5.0;
    }
    let (sim, summary) = run(&network(15.0, hops(&[100.0, 60.0]), flows));
    let routers = |span| samples(&sim, "jetmax_bottleneck", 0, span);
    let rate = |flow, span| mean(&samples(&sim, "rate_bps", flow, span));
    for (span, router, long) in
        [([2.0, 5.0], 2.0, GAMMA * 60e6), ([7.0, 10.0], 1.0, GAMMA * 100e6 / 3.0), ([12.0, 15.0], 2.0, GAMMA * 60e6)]
    {
        assert!(routers(span).iter().all(|&r| r == router), "router {router} from {span:?}");
        assert_close(rate(0, span), long, 0.01);
    }
    for guest in [1, 2] {
        assert_close(rate(guest, [7.0, 10.0]), GAMMA * 100e6 / 3.0, 0.01);
    }
    // One switch in each direction after the start.
    let switches = routers([0.3, 15.0]).windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(switches, 2);
    assert_eq!(summary.links.iter().map(|l| l.drops).sum::<u64>(), 0);
}

/// Rates are within 1 % after six RTTs at any capacity, without overshoot, as the abstract of the JetMax paper claims.
#[test]
fn rates_converge_to_one_per_cent_in_six_rtts_at_any_capacity() {
    for capacity in [1e7, 1e8, 1e9] {
        let rtt = 0.1;
        let mut n =
            network(2.5, link("l", capacity, rtt / 2.0, 1 << 26).to_vec(), vec![flow("f", "jetmax", &[0], 2.5)]);
        n.sample_s = 0.01;
        let (sim, _) = run(&n);
        let mut rates = samples(&sim, "pacing_bps", 0, [0.0, 2.5]);
        rates.retain(|rate| !rate.is_nan()); // the handshake
        // The first increase is the first target; until then it sends its initial window.
        let first = rates.iter().position(|&rate| rate > 0.5 * capacity).expect("a first step");
        let after = |rtts: usize| rates[first + 10 * rtts - 1]; // the last sample before the next step
        assert!(after(1) < 0.7 * GAMMA * capacity, "{} is one step of 0.6", after(1));
        assert!(after(6) > 0.99 * GAMMA * capacity);
        assert!(rates.iter().all(|&rate| rate <= GAMMA * capacity * 1.000_001));
    }
}

/// Returns max-min shares by progressive filling: raises all rates equally, and freezes the flows of the link that
/// fills first.
fn max_min(capacities: &[f64], paths: &[std::ops::RangeInclusive<u32>]) -> Vec<f64> {
    let mut shares = vec![None; paths.len()];
    while shares.iter().any(Option::is_none) {
        let level = |link: usize| {
            let crossing = || paths.iter().zip(&shares).filter(|(path, _)| path.contains(&(link as u32)));
            let used: f64 = crossing().filter_map(|(_, share)| *share).sum();
            let open = crossing().filter(|(_, share)| share.is_none()).count();
            (open > 0).then(|| ((capacities[link] - used) / open as f64, link))
        };
        let (share, link) = (0..capacities.len()).filter_map(level).min_by(|a, b| a.0.total_cmp(&b.0)).expect("a link");
        for (path, own) in paths.iter().zip(&mut shares) {
            if own.is_none() && path.contains(&(link as u32)) {
                *own = Some(share);
            }
        }
    }
    shares.into_iter().flatten().collect()
}

/// Random chains of two to six links converge to max-min shares, with queues of a few packets. Links have 20, 22, 25 or
/// 60 Mbit/s, and three to twelve flows cross any part of them. RTTs are up to 200 ms longer, and flows start within 2
/// s.
#[test]
fn random_networks_converge_to_max_min() {
    let mut state = 1_u64;
    let mut below = |n: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407); // Knuth's MMIX
        ((state >> 33) % u64::from(n)) as u32
    };
    for case in 0..10 {
        let rates: Vec<f64> = (0..2 + below(5)).map(|_| [20.0, 22.0, 25.0, 60.0][below(4) as usize]).collect();
        let (mut paths, mut flows) = (Vec::new(), Vec::new());
        for _ in 0..3 + below(10) {
            let (a, b) = (below(rates.len() as u32), below(rates.len() as u32));
            let mut flow = over("f", a.min(b)..=a.max(b), f64::from(below(11)) * 0.01, 36.0);
            flow.start_s = f64::from(below(20)) * 0.1;
            paths.push(a.min(b)..=a.max(b));
            flows.push(flow);
        }
        let capacities: Vec<f64> = rates.iter().map(|rate| GAMMA * rate * 1e6).collect();
        let (_, summary) = run(&network(36.0, hops(&rates), flows));
        for (flow, share) in summary.flows.iter().zip(max_min(&capacities, &paths)) {
            let error = flow.rate_bps.unwrap() / share - 1.0;
            assert!(error.abs() < 0.03, "case {case}: {error} on {rates:?} with {paths:?}");
        }
        assert!(summary.links.iter().all(|l| l.queue_packets.max < 20.0), "case {case}");
    }
}

/// Demands, weights, and traffic without congestion control all enter the shares.
#[test]
fn demands_weights_and_uncontrolled_traffic_enter_the_shares() {
    let mut flows =
        vec![over("plain", 0..=0, 0.0, 12.0), over("limited", 0..=0, 0.01, 12.0), over("double", 0..=0, 0.02, 12.0)];
    flows[1].demand_bps = Some(5e6);
    flows[2].weight = 2.0;
    let mut n = network(12.0, hops(&[100.0]), flows);
    n.traffic = vec![cbr("cbr", &[0], 20e6, [2.0, 12.0], 1500)];
    let (_, summary) = run(&n);
    let share = (95e6 - 20e6 - 5e6) / 3.0;
    assert_close(summary.flows[0].rate_bps.unwrap(), share, 0.01);
    assert_close(summary.flows[1].rate_bps.unwrap(), 5e6, 0.01);
    assert_close(summary.flows[2].rate_bps.unwrap(), 2.0 * share, 0.01);
}

/// Fifty flows may start at once without a burst, because they are counted before they may send. Shares are 1.9 Mbit/s,
/// 16 packets per interval.
#[test]
fn fifty_flows_may_start_together() {
    let mut n = network(9.0, hops(&[100.0]), vec![over("f", 0..=0, 0.01, 9.0)]);
    n.flows[0].count = 50;
    let (_, summary) = run(&n);
    for flow in &summary.flows {
        assert_close(flow.rate_bps.unwrap(), GAMMA * 2e6, 0.01);
    }
    assert!(summary.links[0].queue_packets.max <= 50.0, "one packet per flow");
}

/// Shares of four packets per interval (0.475 Mbit/s) are kept within 3 %. Smaller shares need a longer interval,
/// because whole packets make the count N of flows noisy. The mean of 1/N then exceeds 1 over the mean of N.
#[test]
fn small_shares_need_a_long_interval() {
    let error = |count: u32, interval_s: f64| {
        let mut n = network(40.0, hops(&[2.0]), vec![over("f", 0..=0, 0.01, 40.0)]);
        n.flows[0].count = count;
        n.flows[0].stagger_s = 0.37;
        n.set_param("jetmax", "interval", interval_s);
        let share = GAMMA * 2e6 / f64::from(count);
        let (_, summary) = run(&n);
        summary.flows.iter().map(|f| (f.rate_bps.unwrap() / share - 1.0).abs()).fold(0.0, f64::max)
    };
    assert!(error(4, 0.1) < 0.03);
    assert!(error(20, 0.1) > 0.05);
    assert!(error(20, 0.5) < 0.03);
}

/// A flow with a short RTT takes its share before a flow with a long RTT has reduced its rate. This is a limit of the
/// law. The excess waits in the queue until the headroom has drained the queue.
#[test]
fn unequal_rtts_overshoot_and_recover() {
    let mut flows = vec![over("far", 0..=0, 0.2, 30.0), over("near", 0..=0, 0.0, 30.0)];
    flows[1].start_s = 3.0;
    let mut n = network(30.0, hops(&[50.0]), flows);
    n.measure_s = [3.0, 8.0];
    let (_, transient) = run(&n);
    assert!(transient.links[0].queue_packets.max > 100.0);
    n.measure_s = [20.0, 30.0];
    let (_, settled) = run(&n);
    assert!(settled.links[0].queue_packets.max <= 2.0);
    for flow in &settled.flows {
        assert_close(flow.rate_bps.unwrap(), GAMMA * 25e6, 0.005);
    }
}
