//! Tests of TCPs that grow until a packet is lost: a full link, shares with equal and different RTTs, and slow start.

use crate::common::{cbr, flow, link, network, run, set};
use waterfill_network::summary::Summary;
use waterfill_network::{LinkSpec, ParamValue, TrafficSpec};

/// Laws that react to losses only, with selective acknowledgements.
const LAWS: [&str; 6] = ["sack", "cubic", "bic", "highspeed", "scalable", "htcp"];

/// Returns one link whose buffer is a multiple of the bandwidth-delay product at `rtt_s`.
fn bottleneck(rate_bps: f64, rtt_s: f64, buffer_bdp: f64) -> Vec<LinkSpec> {
    link("l", rate_bps, rtt_s / 2.0, (buffer_bdp * rate_bps * rtt_s / 8.0) as u64).to_vec()
}

/// Returns cross traffic at a tenth of the link's rate, with packet sizes and rates that share no period with the
/// flows. Without it, phase effects decide which flow loses a packet at a full queue (Floyd and Jacobson, "On Traffic
/// Phase Effects in Packet-Switched Gateways", 1992).
fn cross_traffic(rate_bps: f64, stop_s: f64) -> Vec<TrafficSpec> {
    [(300, 0.13), (700, 0.31), (1100, 0.19), (500, 0.07), (900, 0.30)]
        .map(|(bytes, part)| cbr(&format!("cross{bytes}"), &[0], 0.10137 * part * rate_bps, [0.0, stop_s], bytes))
        .to_vec()
}

fn rates(summary: &Summary) -> Vec<f64> {
    summary.flows.iter().map(|f| f.rate_bps.expect("active")).collect()
}

fn jain(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * rates.iter().map(|r| r * r).sum::<f64>())
}

/// A buffer of one bandwidth-delay product keeps a link full when a law halves its window. No law reduces its window by
/// more than half.
#[test]
fn one_flow_fills_a_link_with_a_bandwidth_delay_product_of_buffer() {
    for law in LAWS {
        let (_, summary) = run(&network(60.0, bottleneck(1e8, 0.04, 1.0), vec![flow("f", law, &[0], 60.0)]));
        let (link, flow) = (&summary.links[0], &summary.flows[0]);
        assert!(link.utilization >= 0.98, "{law}: {}", link.utilization);
        assert!(link.drops > 0, "{law} grows until packets are lost");
        assert_eq!(flow.timeouts, 0, "{law}");
    }
}

/// At a full queue of seconds the RTT hardly varies, and a repair takes as long as the last RTT. No timer may fire before it
/// is acknowledged, whatever is left of the window after a loss.
#[test]
fn a_repair_through_a_queue_of_seconds_is_not_late() {
    for beta in [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8] {
        let mut n = network(120.0, link("l", 64e3, 0.15, 30_000).to_vec(), vec![flow("f", "cubic", &[0], 120.0)]);
        set(&mut n, "cubic", &[("beta", ParamValue::Number(beta))]);
        let flow = &run(&n).1.flows[0];
        assert!(flow.retransmissions > 0, "{beta}: the queue overflows");
        assert_eq!((flow.timeouts, flow.spurious_retransmissions), (0, Some(0)), "{beta}");
    }
}

/// Two identical flows converge to equal shares with losses at a full queue. Scalable, with multiplicative increase and
/// decrease, converges last (Chiu and Jain 1989; RFC 3649 §6). The second flow starts at 20 s, and rates are measured
/// up to 60 s.
#[test]
fn two_identical_flows_share_a_link_and_scalable_converges_last() {
    let fairness = LAWS.map(|law| {
        let mut n = network(60.0, bottleneck(1e8, 0.04, 1.0), vec![flow("f", law, &[0], 60.0)]);
        n.flows[0].count = 2;
        n.flows[0].stagger_s = 20.0;
        n.flows[0].recovery = Some("rfc6675".into()); // the same for all: the laws are compared
        n.measure_s = [20.0, 60.0];
        n.traffic = cross_traffic(1e8, 60.0);
        (law, jain(&rates(&run(&n).1)))
    });
    let (scalable, others): (Vec<_>, Vec<_>) = fairness.into_iter().partition(|(law, _)| *law == "scalable");
    for (law, jain) in others {
        assert!(jain >= 0.95, "{law}: {jain}");
        assert!(scalable[0].1 < jain, "{scalable:?}, {law}: {jain}");
    }
}

/// Returns the exponent e of rates proportional to RTT^−e, for one flow at 40 ms and one at 160 ms.
fn rtt_exponent(law: &str, params: &[(&str, ParamValue)]) -> f64 {
    let duration_s = 180.0;
    let flows = vec![flow("short", law, &[0], duration_s), flow("long", law, &[0], duration_s)];
    let mut n = network(duration_s, bottleneck(1e8, 0.04, 0.2), flows);
    n.flows[1].pad_s = (0.1613 - 0.04) / 2.0;
    set(&mut n, law, params);
    n.measure_s = [60.0, duration_s];
    n.traffic = cross_traffic(1e8, duration_s);
    let (_, summary) = run(&n);
    let rates = rates(&summary);
    let rtt = |i: usize| summary.flows[i].rtt_ms.mean.expect("samples");
    (rates[0] / rates[1]).ln() / (rtt(1) / rtt(0)).ln()
}

/// RTT unfairness is linear to quadratic for Reno and linear for CUBIC (RFC 9438 §3.3). Reno's shares range from 1/RTT,
/// for independent losses, to 1/RTT², for synchronised losses. CUBIC's are proportional to 1/RTT. The tolerances, a
/// tenth of Reno's 2 and three tenths of CUBIC's 1, allow for a few dozen losses.
#[test]
fn rtt_unfairness_is_linear_to_quadratic_for_reno_and_linear_for_cubic() {
    let (reno, cubic) = (rtt_exponent("sack", &[]), rtt_exponent("cubic", &[]));
    assert!((1.0..=2.2).contains(&reno), "{reno}");
    assert!((0.7..=1.3).contains(&cubic), "{cubic}");
    assert!(cubic < reno, "{cubic} {reno}");
}

/// RTT unfairness is worse for laws that grow faster with their window (Xu, Harfoush and Rhee, "Binary Increase
/// Congestion Control", 2004). With W ~ p^−d shares reach 1/RTT^(1/(1−d)), above the exponent 2 of d = 1/2.
#[test]
fn rtt_unfairness_is_worse_than_quadratic_for_highspeed_and_scalable() {
    for law in ["highspeed", "scalable"] {
        let exponent = rtt_exponent(law, &[]);
        assert!(exponent > 2.0, "{law}: {exponent}");
    }
}

/// Scaling H-TCP's increase by the RTT makes shares less unequal.
#[test]
fn rtt_scaling_of_htcp_brings_shares_closer() {
    let [on, off] = [true, false].map(|scaling| rtt_exponent("htcp", &[("rtt_scaling", scaling.into())]));
    assert!(on < off, "{on} with scaling, {off} without");
}

/// Returns the number of packets that CUBIC's first slow start loses at 100 Mbit/s and 80 ms. The bandwidth-delay
/// product is 667 packets.
fn lost_at_start(hystart: &str, buffer_bdp: f64) -> u64 {
    let mut n = network(5.0, bottleneck(1e8, 0.08, buffer_bdp), vec![flow("f", "cubic", &[0], 5.0)]);
    n.set_param("cubic", "hystart", hystart);
    run(&n).1.flows[0].retransmissions
}

/// Classic HyStart leaves slow start before a loss. Linux's train of acknowledgements exceeds half an RTT while the
/// window doubles from 640 packets to 1280, which a buffer of one bandwidth-delay product holds. Without HyStart the
/// next doubling overflows the buffer.
#[test]
fn classic_hystart_leaves_slow_start_before_a_loss() {
    assert_eq!(lost_at_start("classic", 1.0), 0);
    assert!(lost_at_start("off", 1.0) > 1000);
}

/// HyStart++ halves the loss if the buffer is large enough to show delay. RFC 9406 uses the smallest delay of a round,
/// which is the delay of its first packets. They find a queue only if the window exceeded the bandwidth-delay product
/// when they were sent. By then the window has doubled twice, so HyStart++ needs a buffer of four bandwidth-delay
/// products to act. From there the window grows by a quarter where slow start doubles it.
#[test]
fn hystart_plus_plus_halves_the_loss_if_the_buffer_shows_delay() {
    let [with, without] = ["plus-plus", "off"].map(|hystart| lost_at_start(hystart, 4.0));
    assert!(with < without / 2, "{with} of {without}");
}
