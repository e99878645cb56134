//! Tests of TCPs that use more than losses, against their papers: Vegas, FAST, Westwood+, BBR and DCTCP.

use crate::common::{column, flow, link, network, run};
use waterfill_network::summary::Summary;
use waterfill_network::{Level, Network, QueueSpec};

const RATE_BPS: f64 = 1e8;
/// One-way delay in seconds. The RTT is 40 ms, and the path holds 333 packets.
const DELAY_S: f64 = 0.02;
const BDP_PACKETS: f64 = RATE_BPS * 2.0 * DELAY_S / 12_000.0;

/// Returns a network of `count` flows of one protocol over 100 Mbit/s and 40 ms, with this buffer and random loss.
fn identical_flows(protocol: &str, count: u32, duration_s: f64, buffer_packets: f64, loss: f64) -> Network {
    let mut links = link("l", RATE_BPS, DELAY_S, (buffer_packets * 1500.0) as u64);
    links[0].loss = loss;
    let mut flows = flow("f", protocol, &[0], duration_s);
    flows.count = count;
    network(duration_s, links.to_vec(), vec![flows])
}

fn rates(s: &Summary) -> Vec<f64> {
    s.flows.iter().map(|f| f.rate_bps.expect("measured")).collect()
}

/// Vegas keeps α = 2 to β = 4 packets per flow in the queue (Brakmo et al. 1994).
#[test]
fn vegas_keeps_alpha_to_beta_packets_per_flow_in_the_queue() {
    for n in [1, 4, 16] {
        let (_, s) = run(&identical_flows("vegas", n, 60.0, BDP_PACKETS, 0.0));
        let queue = &s.links[0].queue_packets;
        let n = f64::from(n);
        assert!(queue.mean >= 2.0 * n && queue.mean <= 4.0 * n, "{n} flows: {queue:?}");
        assert!(s.links[0].utilization > 0.99 && s.links[0].drops == 0, "{:?}", s.links[0]);
    }
}

/// FAST keeps α = 50 packets per flow in the queue, for any number of flows. "In equilibrium each flow keeps α packets
/// in the queue" (Wei et al. 2006).
#[test]
fn fast_keeps_alpha_packets_per_flow_in_the_queue_and_shares_evenly() {
    for n in [1, 4] {
        let mut network = identical_flows("fast", n, 30.0, 2.0 * BDP_PACKETS, 0.0);
        network.set_param("fast", "alpha", 50.0);
        let (_, s) = run(&network);
        let queue = &s.links[0].queue_packets;
        let wanted = 50.0 * f64::from(n);
        // Windows are rounded to whole packets.
        assert!((queue.mean - wanted).abs() <= f64::from(n), "{n} flows: {queue:?}");
        assert!(s.links[0].utilization > 0.99 && s.links[0].drops == 0, "{:?}", s.links[0]);
        let share = RATE_BPS / f64::from(n);
        assert!(rates(&s).iter().all(|r| (r - share).abs() < 0.02 * share), "{:?}", rates(&s));
    }
}

/// Without loss, BBR fills the link, keeps less than one BDP in the queue (cwnd_gain 2), and estimates the RTT
/// correctly.
#[test]
fn bbr_alone_fills_the_link_with_a_short_queue() {
    let (sim, s) = run(&identical_flows("bbr", 1, 30.0, 4.0 * BDP_PACKETS, 0.0));
    let l = &s.links[0];
    assert!(l.utilization > 0.95 && l.drops == 0, "{l:?}");
    assert!(l.queue_packets.mean < 0.5 * BDP_PACKETS && l.queue_packets.max < BDP_PACKETS, "{:?}", l.queue_packets);
    let series = sim.series()[0];
    let last = |name: &str| *column(series, name).last().unwrap();
    let (rtprop, btlbw) = (last("bbr_rtprop"), last("bbr_btlbw"));
    // 40 ms and the transmission times of data and acknowledgement: 120 µs and 3.2 µs.
    assert!((rtprop - 0.040_123).abs() < 1e-5, "{rtprop}");
    assert!((btlbw * 12_000.0 / RATE_BPS - 1.0).abs() < 0.02, "{btlbw}");
}

/// BBR keeps nine tenths of the rate under 1 % of random loss. "BBR … operates near capacity under random loss"
/// (Cardwell et al., CACM 2017, Fig. 8: up to 5 %, and 15 % at the cliff).
#[test]
fn bbr_keeps_nine_tenths_under_one_percent_of_random_loss() {
    let (_, s) = run(&identical_flows("bbr", 1, 30.0, 4.0 * BDP_PACKETS, 0.01));
    assert!(s.flows[0].goodput_bps.unwrap() > 0.9 * 1460.0 / 1500.0 * RATE_BPS, "{:?}", s.flows[0]);
}

/// Without loss, BBR version 3 fills the link, keeps less than half a BDP in the queue on average, measures RTT and bandwidth,
/// and goes through its states: Startup and Drain once, ProbeBW's four, and ProbeRTT after 5 s (draft-ietf-ccwg-bbr §4.3).
#[test]
fn bbr3_alone_fills_the_link_and_passes_through_its_states() {
    let (sim, s) = run(&identical_flows("bbr3", 1, 30.0, 4.0 * BDP_PACKETS, 0.0));
    let l = &s.links[0];
    assert!(l.utilization > 0.93 && l.drops == 0, "{l:?}"); // paced at 99 %, and ProbeRTT takes 0.25 of 5 s at half
    assert!(
        l.queue_packets.mean < 0.5 * BDP_PACKETS && l.queue_packets.max < 1.5 * BDP_PACKETS,
        "{:?}",
        l.queue_packets
    );
    let series = sim.series()[0];
    let last = |name: &str| *column(series, name).last().unwrap();
    assert!((last("bbr3_min_rtt") - 0.040_123).abs() < 1e-5, "{}", last("bbr3_min_rtt"));
    assert!((last("bbr3_max_bw") * 12_000.0 / RATE_BPS - 1.0).abs() < 0.02, "{}", last("bbr3_max_bw"));
    let (times, states) = (column(series, "time_s"), column(series, "bbr3_state"));
    let seen = |state: f64| times.iter().zip(states).filter(move |(_, s)| **s == state).map(|(time, _)| *time);
    assert!(seen(0.0).all(|time| time < 1.0) && seen(0.0).count() > 0, "Startup");
    assert!((2..=5).all(|state| seen(f64::from(state)).count() > 0), "ProbeBW: {states:?}");
    let probes: Vec<f64> = seen(6.0).collect();
    assert!(probes.iter().all(|time| *time > 5.0) && probes.len() >= 4, "ProbeRTT: {probes:?}");
}

/// BBR version 3 keeps nine tenths of the rate under 1 % of random loss, which is below its LossThresh of 2 %.
#[test]
fn bbr3_keeps_nine_tenths_under_one_percent_of_random_loss() {
    let (_, s) = run(&identical_flows("bbr3", 1, 30.0, 4.0 * BDP_PACKETS, 0.01));
    assert!(s.flows[0].goodput_bps.unwrap() > 0.9 * 1460.0 / 1500.0 * RATE_BPS, "{:?}", s.flows[0]);
}

/// Westwood is faster than Reno under random loss, as in Fig. 14 of tcp-maxnet-2006.
#[test]
fn westwood_is_faster_than_reno_under_random_loss() {
    for loss in [0.001, 0.0025, 0.01] {
        let rate = |protocol| rates(&run(&identical_flows(protocol, 1, 60.0, BDP_PACKETS, loss)).1)[0];
        let (westwood, sack) = (rate("westwood"), rate("sack"));
        assert!(westwood > 1.2 * sack, "{loss}: {westwood} and {sack}");
    }
}

/// DCTCP keeps the queue at its marks, as in Alizadeh et al. 2010 (§3.3, Fig. 12). At 10 Gbit/s and 100 µs, with K = 40
/// and g = 1/16, synchronised flows reach a queue of K + N (eq. 10). They oscillate down to ½·√(2N·(C·RTT + K)) packets
/// below that (eq. 8, 11). Many flows desynchronise.
///
/// The paper's queue is a real number; here the first marked packet finds K + 1, so the queue is one packet longer.
#[test]
fn dctcp_keeps_the_queue_at_its_marks() {
    const K: f64 = 40.0;
    let bdp = 1e10 * 100e-6 / 12_000.0;
    for n in [1, 2, 10, 40] {
        let mut links = link("l", 1e10, 50e-6, 1500 * 1000);
        links[0].queue = QueueSpec::Droptail { mark_at: Some(Level::Packets(40.0)), ramp: None };
        let mut flows = flow("f", "dctcp", &[0], 0.3);
        flows.count = n;
        let (_, s) = run(&network(0.3, links.to_vec(), vec![flows]));
        let (n, l) = (f64::from(n), &s.links[0]);
        let (top, swing) = (K + 1.0 + n, 0.5 * (2.0 * n * (bdp + K)).sqrt());
        let queue = &l.queue_packets;
        assert!(queue.max <= top && (top - swing..top).contains(&queue.mean), "{n} flows: {queue:?}");
        if n <= 2.0 {
            // A synchronised sawtooth: a second reduction for one overshoot would lower its mean.
            assert!((queue.mean - (top - swing / 2.0)).abs() < 1.0, "{n} flows: {queue:?}");
        }
        assert!(l.utilization > 0.99 && l.drops == 0, "{l:?}");
    }
}
