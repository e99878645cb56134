//! Tests of AECP against `aecp-2010`: queues of q₀, equal rates for all RTTs, convergence times.

use crate::common::{assert_within, cbr, column, flow, link, network, run, set};
use waterfill_network::{FlowSpec, Network, ParamValue};
use waterfill_sim::Simulation;

/// Returns a flow with a base RTT of `rtt_s` over links whose own RTT is `path_s`.
fn padded(name: &str, forward: &[u32], path_s: f64, rtt_s: f64, stop_s: f64) -> FlowSpec {
    let mut f = flow(name, "aecp", forward, stop_s);
    f.pad_s = (rtt_s - path_s) / 2.0;
    f.base_rtt_s = rtt_s;
    f
}

/// Returns a network of flows with the given RTTs over one link of 1 ms with an unlimited buffer.
fn dumbbell(rate_bps: f64, rtts_s: &[f64], duration_s: f64, params: &[(&str, ParamValue)]) -> Network {
    let flows = rtts_s.iter().enumerate().map(|(i, &rtt)| padded(&format!("f{i}"), &[0], 0.002, rtt, duration_s));
    let mut n = network(duration_s, link("l", rate_bps, 0.001, 1 << 40).to_vec(), flows.collect());
    n.packet_bytes = 1000; // §6
    set(&mut n, "aecp", params);
    n
}

/// Returns the times and values of a flow's column, with 0 before the law has a value.
fn samples(sim: &Simulation, flow: f64, name: &str) -> Vec<(f64, f64)> {
    let series = sim.series()[0];
    let (times, flows, values) = (column(series, "time_s"), column(series, "flow"), column(series, name));
    let rows = times.iter().zip(flows).zip(values);
    rows.filter(|((_, f), _)| **f == flow).map(|((t, _), v)| (*t, if v.is_nan() { 0.0 } else { *v })).collect()
}

/// The equilibrium is x = C/N and q = q₀ (eq. 16), for §6.1's RTTs and for a single flow, in both forms of the source.
#[test]
fn the_queue_settles_at_q_0_and_rates_at_c_over_n() {
    let rtts: [&[f64]; 2] = [&[0.05, 0.1, 0.2, 0.4], &[0.05]];
    for (form, rtts) in ["printed", "exact"].iter().flat_map(|form| rtts.map(|rtts| (form, rtts))) {
        let (_, s) = run(&dumbbell(1e8, rtts, 45.0, &[("form", (*form).into())]));
        let share = 1e8 / rtts.len() as f64;
        for f in &s.flows {
            assert_within(f.rate_bps.unwrap(), share, 0.02 * share, &f.name);
        }
        assert_within(s.links[0].queue_packets.mean, 100.0, 10.0, "queue");
        assert!(s.links[0].queue_packets.max < 120.0, "{:?}", s.links[0].queue_packets);
        assert_within(s.links[0].utilization, 1.0, 1e-3, "utilization");
    }
}

/// Sources with a window of x·τ have the same equilibrium, and their packets leave with acknowledgements.
#[test]
fn windows_settle_where_rates_do() {
    let n = dumbbell(1e8, &[0.05, 0.1, 0.2, 0.4], 60.0, &[("source", "window".into())]);
    let (sim, s) = run(&n);
    for f in &s.flows {
        assert_within(f.rate_bps.unwrap(), 25e6, 0.5e6, &f.name);
    }
    assert_within(s.links[0].queue_packets.mean, 100.0, 15.0, "queue");
    // x·τ is the window of the last sample, its queueing delay included: 8 ms of 100 packets.
    let last = |flow, name| samples(&sim, flow, name).last().unwrap().1;
    for (flow, rtt_s) in [(0.0, 0.058), (3.0, 0.408)] {
        assert_within(
            last(flow, "window_bytes"),
            last(flow, "aecp_x") * 1000.0 * rtt_s,
            0.02 * 25e6 / 8.0 * rtt_s,
            "W",
        );
        assert!(samples(&sim, flow, "pacing_bps").iter().all(|(_, rate)| *rate == 0.0), "not paced");
    }
}

/// Sources with a rate keep it until r has fallen, but sources with a window slow down as a queue grows. The queue is
/// due to a burst that takes half of the link.
#[test]
fn windows_leave_a_burst_a_shorter_queue_than_rates() {
    let queue = |params: &[(&str, ParamValue)]| {
        let mut n = dumbbell(1e8, &[0.05; 4], 45.0, params);
        n.traffic = vec![cbr("burst", &[0], 5e7, [30.0, 45.0], 1000)];
        run(&n).1.links[0].queue_packets.max
    };
    let rate = queue(&[]);
    let latest = queue(&[("source", "window".into())]);
    let base = queue(&[("source", "window".into()), ("window_rtt", "base".into())]);
    assert!(rate > 5000.0 && latest < 0.8 * rate && base < 0.2 * latest, "{rate}, {latest}, {base} packets");
}

/// The queue settles at q₀, and a target below 1 leaves no queue.
#[test]
fn the_queue_follows_q_0_and_the_target() {
    let (_, s) = run(&dumbbell(1e8, &[0.05, 0.1], 30.0, &[("q_0", 30.0.into())]));
    assert_within(s.links[0].queue_packets.mean, 30.0, 3.0, "queue");
    let mut n = dumbbell(1e8, &[0.05, 0.1], 30.0, &[]);
    n.links[0].target = Some(0.8);
    let (_, s) = run(&n);
    assert_within(s.links[0].utilization, 0.8, 0.002, "utilization");
    assert!(s.links[0].queue_packets.mean < 1.0, "{:?}", s.links[0].queue_packets);
}

/// Times to efficiency follow eq. 6, for 500 Mbit/s and N = 10. Most of these times are outside the bounds of Theorem
/// 2.
#[test]
fn times_to_efficiency_are_those_of_eq_6() {
    let (c, thetas) = (62_500.0, [0.5, 0.9, 0.99]);
    // Eq. 18 with C/(N·x_0) = 625: ln(625·θ/(1 − θ)), and ½·ln(ln 625/−ln θ) added.
    let bounds = [6.438..7.552, 8.635..10.692, 11.033..14.264];
    // Eq. 6 integrated, without delay.
    for (r_0, eq6, duration_s) in [("x_0", [6.673, 8.023, 8.598], 9.0), ("capacity", [0.506, 0.600, 0.616], 1.2)] {
        let mut n = dumbbell(500e6, &[0.02; 10], duration_s, &[("r_0", r_0.into())]);
        n.sample_s = 0.01;
        let (sim, _) = run(&n);
        let flows: Vec<_> = (0..10).map(|i| samples(&sim, f64::from(i), "aecp_x")).collect();
        let load = |k: usize| flows.iter().map(|f| f[k].1).sum::<f64>();
        for ((theta, eq6), bounds) in thetas.iter().zip(eq6).zip(&bounds) {
            let first = (0..flows[0].len()).find(|&k| load(k) >= theta * c).expect("it reaches the level");
            let time = flows[0][first].0;
            // The SYN's RTT and T₂ are added; sampled steps are slightly larger than continuous ones.
            assert_within(time, eq6, 0.2, &format!("time to {theta} from r(0) = {r_0}"));
            assert_eq!(bounds.contains(&time), r_0 == "x_0" && *theta < 0.9, "{time} in {bounds:?}");
        }
    }
}

/// After a fifth flow joins four (Theorem 3), the ratio of rates reaches 0.9 at the time of eq. 31, not of eq. 29.
#[test]
fn a_new_flow_reaches_the_others_at_the_time_of_eq_31() {
    let mut n = dumbbell(1e8, &[0.05; 5], 40.0, &[]);
    n.flows[4].start_s = 30.0;
    n.sample_s = 0.02;
    let (sim, _) = run(&n);
    let (old, new) = (samples(&sim, 0.0, "aecp_x"), samples(&sim, 4.0, "aecp_x"));
    let skip = old.len() - new.len();
    let level = new.iter().zip(&old[skip..]).find(|(n, o)| n.1 >= 0.9 * o.1).expect("it reaches the level").0.0;
    let took = level - 30.05; // it starts with the SYN-ACK
    // C/(N·x_0) = 12500/40: eq. 31 gives ½·ln(ln 312.5/ln(1/0.9)), eq. 29 as printed ½·ln ln(0.9·312.5).
    assert_within(took, 1.999, 0.2, "time to fairness");
    assert!(took > 2.0 * 0.865);
}

/// Flows over five hops get the max-min shares computed by hand. One flow crosses all hops, five cross one hop and two
/// cross two, with RTTs of 10 to 200 ms.
#[test]
fn a_parking_lot_gets_max_min_shares() {
    let rates = [100e6, 80e6, 60e6, 90e6, 70e6];
    let links = rates.iter().enumerate().flat_map(|(i, &r)| link(&format!("l{i}"), r, 0.005, 5_000_000));
    // Link 2 gives 60/3 = 20, then link 4 (70 − 20)/2 = 25, link 1 80 − 40, link 3 90 − 45, link 0 100 − 20.
    let flows: [(&[u32], f64, f64); 8] = [
        (&[0, 2, 4, 6, 8], 0.05, 20e6),
        (&[0], 0.05, 80e6),
        (&[2], 0.1, 40e6),
        (&[4], 0.2, 20e6),
        (&[6], 0.03, 45e6),
        (&[8], 0.01, 25e6),
        (&[2, 4], 0.14, 20e6),
        (&[6, 8], 0.08, 25e6),
    ];
    let specs = flows
        .iter()
        .enumerate()
        .map(|(i, &(path, rtt, _))| padded(&format!("f{i}"), path, 0.01 * path.len() as f64, rtt, 60.0));
    let (_, s) = run(&network(60.0, links.collect(), specs.collect()));
    for (f, (_, _, share)) in s.flows.iter().zip(flows) {
        assert_within(f.rate_bps.unwrap(), share, 0.03 * share, &f.name);
    }
}

/// The sampled loop is stable at an RTT of 0.4 s and oscillates at 1 s, in both forms. Theorem 1 ignores the delay.
#[test]
fn stability_has_a_delay_margin() {
    for form in ["printed", "exact"] {
        for (rtt_s, stable) in [(0.4, true), (1.0, false)] {
            let (sim, s) = run(&dumbbell(2e7, &[rtt_s; 2], 120.0, &[("form", form.into())]));
            let late: Vec<f64> = samples(&sim, 0.0, "aecp_x").iter().filter(|x| x.0 > 80.0).map(|x| x.1).collect();
            let (min, max) = late.iter().fold((f64::MAX, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
            if stable {
                assert_within(max / min, 1.0, 0.01, "oscillation");
                assert_within(s.links[0].queue_packets.mean, 100.0, 10.0, "queue");
            } else {
                assert!(max > 1.5 * min, "{form} at 1 s: {min} to {max}");
            }
        }
    }
}

/// Four flows that start at C into an unlimited buffer recover from a queue of several seconds, during which r is at
/// its minimum.
#[test]
fn sources_recover_from_a_long_overload() {
    let (_, s) = run(&dumbbell(1e8, &[0.05, 0.1, 0.2, 0.4], 60.0, &[("r_0", "capacity".into())]));
    for f in &s.flows {
        assert_within(f.rate_bps.unwrap(), 25e6, 0.02 * 25e6, &f.name);
    }
    assert_within(s.links[0].queue_packets.mean, 100.0, 10.0, "queue");
}
