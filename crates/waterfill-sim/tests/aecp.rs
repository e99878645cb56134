//! AECP as `aecp-2010` says it behaves: queues of q₀, equal rates whatever the round trip, its times.

mod common;

use common::{flow, link, network, run};
use serde_json::{Value, json};
use waterfill_sim::Simulation;

/// A flow over links, with a base round trip; the links' own is `path_s`.
fn padded(name: &str, forward: &[u32], path_s: f64, rtt_s: f64, stop_s: f64) -> Value {
    let mut f = flow(name, "aecp", forward, stop_s);
    f["pad_s"] = json!((rtt_s - path_s) / 2.0);
    f["base_rtt_s"] = json!(rtt_s);
    f
}

/// One link of 1 ms, with room for every queue.
fn dumbbell(rate_bps: f64, rtts_s: &[f64], duration_s: f64, params: &Value) -> Value {
    let flows = rtts_s.iter().enumerate().map(|(i, &rtt)| padded(&format!("f{i}"), &[0], 0.002, rtt, duration_s));
    let mut n = network(duration_s, link("l", rate_bps, 0.001, 1 << 40).to_vec(), flows.collect());
    n["packet_bytes"] = json!(1000); // §6
    n["params"] = json!({"aecp": params});
    n
}

/// Column of a flow's series, by time; 0 before the law has a value.
fn column(sim: &Simulation, flow: f64, name: &str) -> Vec<(f64, f64)> {
    let series = sim.series()[0];
    let of = |name: &str| &series.columns()[series.names().iter().position(|n| n == name).expect("a column")];
    let (times, flows, values) = (of("time_s"), of("flow"), of(name));
    let rows = times.iter().zip(flows).zip(values);
    rows.filter(|((_, f), _)| **f == flow).map(|((t, _), v)| (*t, if v.is_nan() { 0.0 } else { *v })).collect()
}

fn within(a: f64, b: f64, off: f64, what: &str) {
    assert!((a - b).abs() <= off, "{what}: {a} is not {b} within {off}");
}

/// Eq. 16 with §6.1's round trips: x = C/N, q = q₀, in both forms of the source, and for one flow alone.
#[test]
fn the_queue_rests_at_q_0_and_rates_at_c_over_n() {
    let rtts: [&[f64]; 2] = [&[0.05, 0.1, 0.2, 0.4], &[0.05]];
    for (form, rtts) in ["printed", "exact"].iter().flat_map(|form| rtts.map(|rtts| (form, rtts))) {
        let (_, s) = run(&dumbbell(1e8, rtts, 45.0, &json!({"form": form})));
        let share = 1e8 / rtts.len() as f64;
        for f in &s.flows {
            within(f.rate_bps.unwrap(), share, 0.02 * share, &f.name);
        }
        within(s.links[0].queue_packets.mean, 100.0, 10.0, "queue");
        assert!(s.links[0].queue_packets.max < 120.0, "{:?}", s.links[0].queue_packets);
        within(s.links[0].utilization, 1.0, 1e-3, "utilisation");
    }
}

/// What q₀ is, is what the queue is; with a target below 1 there is none.
#[test]
fn q_0_and_a_target_are_obeyed() {
    let (_, s) = run(&dumbbell(1e8, &[0.05, 0.1], 30.0, &json!({"q_0": 30})));
    within(s.links[0].queue_packets.mean, 30.0, 3.0, "queue");
    let mut n = dumbbell(1e8, &[0.05, 0.1], 30.0, &json!({}));
    n["links"][0]["target"] = json!(0.8);
    let (_, s) = run(&n);
    within(s.links[0].utilization, 0.8, 0.002, "utilisation");
    assert!(s.links[0].queue_packets.mean < 1.0, "{:?}", s.links[0].queue_packets);
}

/// Theorem 2 with 500 Mbit/s, N = 10: the simulator takes eq. 6's times, which leave the bounds.
#[test]
fn times_to_efficiency_are_those_of_eq_6() {
    let (c, thetas) = (62_500.0, [0.5, 0.9, 0.99]);
    // Eq. 18 with C/(N·x_0) = 625: ln(625·θ/(1 − θ)), and ½·ln(ln 625/−ln θ) later.
    let bounds = [6.438..7.552, 8.635..10.692, 11.033..14.264];
    // Eq. 6 without delay, integrated.
    for (r_0, eq6, duration_s) in [("x_0", [6.673, 8.023, 8.598], 9.0), ("capacity", [0.506, 0.600, 0.616], 1.2)] {
        let mut n = dumbbell(500e6, &[0.02; 10], duration_s, &json!({"r_0": r_0}));
        n["sample_s"] = json!(0.01);
        let (sim, _) = run(&n);
        let flows: Vec<_> = (0..10).map(|i| column(&sim, f64::from(i), "aecp.x")).collect();
        let load = |k: usize| flows.iter().map(|f| f[k].1).sum::<f64>();
        for ((theta, eq6), bounds) in thetas.iter().zip(eq6).zip(&bounds) {
            let first = (0..flows[0].len()).find(|&k| load(k) >= theta * c).expect("it gets there");
            let time = flows[0][first].0;
            // The SYN's round trip and T₂ come on top; sampled steps are a little larger than continuous ones.
            within(time, eq6, 0.2, &format!("time to {theta} from r(0) = {r_0}"));
            assert_eq!(bounds.contains(&time), r_0 == "x_0" && *theta < 0.9, "{time} in {bounds:?}");
        }
    }
}

/// Theorem 3: a fifth flow joins four; the ratio of rates is 0.9 when eq. 31 says, not when eq. 29 does.
#[test]
fn a_newcomer_is_level_when_eq_31_says() {
    let mut n = dumbbell(1e8, &[0.05; 5], 40.0, &json!({}));
    n["flows"][4]["start_s"] = json!(30.0);
    n["sample_s"] = json!(0.02);
    let (sim, _) = run(&n);
    let (old, new) = (column(&sim, 0.0, "aecp.x"), column(&sim, 4.0, "aecp.x"));
    let skip = old.len() - new.len();
    let level = new.iter().zip(&old[skip..]).find(|(n, o)| n.1 >= 0.9 * o.1).expect("it gets there").0.0;
    let took = level - 30.05; // it starts when its SYN is answered
    // C/(N·x_0) = 12500/40: eq. 31 solved is ½·ln(ln 312.5/ln(1/0.9)); eq. 29 prints ½·ln ln(0.9·312.5).
    within(took, 1.999, 0.2, "time to fairness");
    assert!(took > 2.0 * 0.865);
}

/// Five hops, a flow over all of them, one on each and two over two, 10 to 200 ms: max-min shares by hand.
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
        within(f.rate_bps.unwrap(), share, 0.03 * share, &f.name);
    }
}

/// The sampled loop rests at 0.4 s and swings at 1 s, in both forms: Theorem 1 left the delay out.
#[test]
fn a_delay_margin_there_is() {
    for form in ["printed", "exact"] {
        for (rtt_s, rests) in [(0.4, true), (1.0, false)] {
            let (sim, s) = run(&dumbbell(2e7, &[rtt_s; 2], 120.0, &json!({"form": form})));
            let late: Vec<f64> = column(&sim, 0.0, "aecp.x").iter().filter(|x| x.0 > 80.0).map(|x| x.1).collect();
            let (least, most) = late.iter().fold((f64::MAX, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
            if rests {
                within(most / least, 1.0, 0.01, "swing");
                within(s.links[0].queue_packets.mean, 100.0, 10.0, "queue");
            } else {
                assert!(most > 1.5 * least, "{form} at 1 s: {least} to {most}");
            }
        }
    }
}

/// Four flows that all start at C, into a buffer without an end: seconds of queue, r at its floor, and back.
#[test]
fn sources_come_back_from_a_long_overload() {
    let (_, s) = run(&dumbbell(1e8, &[0.05, 0.1, 0.2, 0.4], 60.0, &json!({"r_0": "capacity"})));
    for f in &s.flows {
        within(f.rate_bps.unwrap(), 25e6, 0.02 * 25e6, &f.name);
    }
    within(s.links[0].queue_packets.mean, 100.0, 10.0, "queue");
}
