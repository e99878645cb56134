//! Tests of RCP against `maxnet-2007` §IX: max-min shares, and a network on which it is unstable.

use crate::common::{assert_within, column, flow, link, network, refusal, run, set};
use waterfill_network::{FlowSpec, ParamValue};

/// Statistics of Flow 1's rate in samples of 100 ms, in Mbit/s.
#[derive(Debug)]
struct RateStatistics {
    mean: f64,
    deviation: f64,
    min: f64,
    max: f64,
}

/// Returns statistics of Flow 1's rate in Fig. 12's network with N other flows, from `from_s` to `to_s`.
///
/// L1: 155 Mbit/s, 1 ms, then L2: 622 Mbit/s, 100 ms for Flow 1, and L3: 100 Mbit/s, 1 ms for the others. Delays are
/// one-way, as in ns-2. The paper gives no buffers; here they never fill.
fn flow_1(protocol: &str, others: u32, from_s: f64, to_s: f64) -> RateStatistics {
    let links = [("L1", 155e6, 0.001), ("L2", 622e6, 0.1), ("L3", 100e6, 0.001)];
    let links = links.map(|(name, rate, delay)| link(name, rate, delay, 1 << 40)).concat();
    let mut rest = flow("other", protocol, &[0, 4], to_s);
    rest.count = others;
    let mut flows = vec![flow("f1", protocol, &[0, 2], to_s), rest];
    for f in &mut flows {
        f.pacing = Some(true); // without pacing MaxNet's bursts never disperse; this tests the law
    }
    let (sim, _) = run(&network(to_s, links, flows));
    let series = sim.series()[0];
    let rows = series.columns()[0].iter().zip(&series.columns()[1]).zip(&series.columns()[2]);
    let rates: Vec<f64> = rows.filter(|((t, f), _)| **f == 0.0 && **t > from_s).map(|(_, rate)| rate / 1e6).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    let extreme = |f: fn(f64, f64) -> f64, start| rates.iter().copied().fold(start, f);
    let (min, max) = (extreme(f64::min, f64::MAX), extreme(f64::max, 0.0));
    RateStatistics { mean, deviation: variance.sqrt(), min, max }
}

/// RCP is stable with one other flow: "For N = 1, RCP stabilises after 3 s, after overshooting by around 50 %."
#[test]
fn fig_12_with_one_other_is_stable_after_an_overshoot() {
    let start = flow_1("rcp", 1, 0.0, 3.0);
    assert!((1.25..1.6).contains(&(start.max / 77.5)), "{start:?}");
    let late = flow_1("rcp", 1, 3.5, 12.0);
    assert!((late.mean - 77.5).abs() < 1.0 && late.deviation < 0.8, "{late:?}");
}

/// RCP oscillates with nine other flows, as in the text on Fig. 12. "For N = 9, the rate of Flow 1 oscillates between
/// 10 Mbit/s and up to 100 Mbit/s for the first 10 seconds, and then settles down to steady aperiodic oscillations of
/// about 30 % of the link capacity."
#[test]
fn fig_12_with_nine_others_oscillates() {
    let start = flow_1("rcp", 9, 2.0, 10.0);
    assert!(start.min < 10.0 && start.max > 60.0, "{start:?}");
    let late = flow_1("rcp", 9, 20.0, 40.0);
    assert!(late.deviation > 3.0 && late.max - late.min > 15.0, "{late:?}");
}

/// RCP switches between extremes with 49 other flows: "For N = 49 the rate switches rapidly between 0 and the link
/// capacity."
#[test]
fn fig_12_with_forty_nine_others_switches() {
    let late = flow_1("rcp", 49, 20.0, 60.0);
    assert!(late.deviation > 10.0, "{late:?}");
    assert!(late.min < 1.0 && late.max > 75.0, "{late:?}");
}

/// MaxNet is stable on Fig. 12's network, as the paper says: "MaxNet has been confirmed to be stable for this network".
/// Flow 1 gets 90 % of 155/2 Mbit/s with one other flow, and 139.5 − 90 Mbit/s with 9 or 49.
///
/// A window of one packet at 4 ms is 3 Mbit/s: 49 others cannot go below it, so they fill L3 and leave 139.5 − 100.
#[test]
fn maxnet_is_stable_on_fig_12() {
    for (others, shares) in [(1, 68.0..72.5), (9, 48.0..51.0), (49, 38.0..51.0)] {
        let late = flow_1("maxnet", others, 30.0, 60.0);
        assert!(shares.contains(&late.mean) && late.deviation < 0.5, "{others}: {late:?}");
    }
}

/// Flows over five hops with RTTs of 10 to 200 ms get the max-min shares computed by hand.
#[test]
fn a_parking_lot_gets_max_min_shares() {
    let rates = [100e6, 80e6, 60e6, 90e6, 70e6];
    let links = rates.iter().enumerate().flat_map(|(i, &r)| link(&format!("l{i}"), r, 0.005, 5_000_000));
    // Link 2 gives 60/3 = 20, then link 4 (70 − 20)/2 = 25, link 1 80 − 40, link 3 90 − 45, link 0 100 − 20.
    let flows: [(&[u32], f64, f64); 8] = [
        (&[0, 2, 4, 6, 8], 0.0, 20e6),
        (&[0], 0.02, 80e6),
        (&[2], 0.045, 40e6),
        (&[4], 0.095, 20e6),
        (&[6], 0.01, 45e6),
        (&[8], 0.0, 25e6),
        (&[2, 4], 0.06, 20e6),
        (&[6, 8], 0.03, 25e6),
    ];
    let specs = flows.iter().enumerate().map(|(i, &(path, pad_s, _))| {
        let mut f = flow(&format!("f{i}"), "rcp", path, 30.0);
        f.pad_s = pad_s;
        f
    });
    let (_, s) = run(&network(30.0, links.collect(), specs.collect()));
    for (f, (_, _, share)) in s.flows.iter().zip(flows) {
        assert_within(f.rate_bps.unwrap(), share, 0.03 * share, &f.name);
    }
    assert!(s.links.iter().all(|l| l.drops == 0));
}

/// Flows that send less than one packet per interval T gather in phase, because T makes the rate alternate. Here 26
/// flows over 15.5 and 10 Mbit/s send every 21 ms, and T is 10 ms. Rates written at departure spread the flows more
/// (docs/validation/ns2-peers.md), and a T of 1 ms spreads them nearly evenly.
#[test]
fn sparse_flows_gather_in_phase_and_t_decides_how_far() {
    let measured = |writes: &str, max_interval_s: f64| {
        let links = [link("first", 15.5e6, 0.02, 155_000), link("second", 10e6, 0.02, 100_000)].concat();
        let mut flows = vec![flow("short", "rcp", &[0], 60.0), flow("long", "rcp", &[0, 2], 60.0)];
        flows[1].count = 26;
        flows[1].stagger_s = 0.0037;
        let mut n = network(60.0, links, flows);
        n.packet_bytes = 1000;
        let writes = ParamValue::Word(writes.into());
        let average = ParamValue::Word("reluctant".into());
        set(&mut n, "rcp", &[("writes", writes), ("average", average), ("beta", ParamValue::Number(0.4))]);
        n.set_param("rcp", "max_interval", max_interval_s);
        let (_, summary) = run(&n);
        (summary.flows[0].rate_bps.unwrap() / 5.5e6, summary.links[0].queue_packets.mean)
    };
    let (arrival, departure, quick) =
        (measured("arrival", 0.01), measured("departure", 0.01), measured("arrival", 0.001));
    assert!(arrival.0 < 0.92 && arrival.1 > 5.0, "{arrival:?}");
    assert!(departure.0 > 0.93 && departure.1 < 0.7 * arrival.1, "{departure:?} and {arrival:?}");
    assert!(quick.0 > 0.96 && quick.1 < 3.0, "{quick:?}");
}

/// A SYN is granted 5 % of an idle link, and data uses that rate one RTT later.
#[test]
fn the_syn_carries_the_request() {
    let mut n = network(0.05, link("l", 1e8, 0.02, 1 << 20).to_vec(), vec![flow("f", "rcp", &[0], 1.0)]);
    n.sample_s = 0.001;
    n.measure_s = [0.0, 0.05];
    let (sim, _) = run(&n);
    let series = sim.series()[0];
    let rows = column(series, "time_s").iter().zip(column(series, "pacing_bps"));
    let first = rows.into_iter().find(|(_, pacing)| !pacing.is_nan()).expect("the connection opens");
    assert!((*first.0 - 0.041).abs() < 1e-9, "{first:?}"); // 40 ms, two transmissions of 3.2 µs
    assert_eq!(*first.1, 5e6);
    assert_eq!(sim.ledger().sent, 2 + 5); // SYN and SYN-ACK, and data at 40, 42.4 … 49.6 ms
}

/// A flow that claims an RTT of 10 s slows the router down for nine flows of 10 ms. The router's d̂ is a tenth of the
/// claim. After other flows have left, the nine flows take far longer to fill the link than without the claim. A claim
/// is refused for a protocol without an RTT in its header.
#[test]
fn a_claimed_rtt_slows_the_router_down() {
    let filled_by = |claimed_rtt_s| {
        let honest = FlowSpec { count: 9, ..flow("honest", "rcp", &[0], 20.0) };
        let liar = FlowSpec { claimed_rtt_s, ..flow("liar", "rcp", &[0], 20.0) };
        let leaver = FlowSpec { count: 10, ..flow("leaver", "rcp", &[0], 10.0) };
        let mut n = network(20.0, link("l", 1e8, 0.005, 1_000_000).to_vec(), vec![honest, liar, leaver]);
        n.sample_s = 0.01;
        let (sim, _) = run(&n);
        let (times, loads) = (column(sim.series()[1], "time_s"), column(sim.series()[1], "utilization"));
        let full = times.iter().zip(loads).find(|&(&t, &load)| t > 10.02 && load > 0.9);
        full.map(|(t, _)| t - 10.0)
    };
    assert!(filled_by(None).unwrap() < 0.1);
    assert!(filled_by(Some(10.0)).unwrap() > 0.5);
    let mut n = network(1.0, link("l", 1e8, 0.01, 100_000).to_vec(), vec![flow("f", "maxnet", &[0], 1.0)]);
    n.flows[0].claimed_rtt_s = Some(1.0);
    assert_eq!(refusal(n), "flow.f.claimed_rtt: not allowed, because packets of maxnet have no RTT field");
}
