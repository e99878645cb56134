//! Tests of ABC: full links, queues where its equations put them, rates as 1/RTT, and a bottleneck without ABC.

use crate::common::{assert_close, assert_within, column, flow, link, mean, network, run};
use waterfill_network::{BufferSpec, ChangeSpec, Level, Network, ParamValue, QueueSpec};
use waterfill_sim::Simulation;

const RTT_S: f64 = 0.1;
const PACKET_BITS: f64 = 12_000.0;
const ETA: f64 = 0.98;
const DELAY_THRESHOLD_S: f64 = 0.05;

/// Returns a network of flows with RTTs of 100 ms on one link whose buffer never fills.
fn alone(rate_bps: f64, flows: u32, delta_s: f64) -> Network {
    let links = link("l", rate_bps, RTT_S / 2.0, (rate_bps / 8.0) as u64).to_vec();
    let mut n = network(60.0, links, vec![flow("f", "abc", &[0], 60.0)]);
    n.flows[0].count = flows;
    n.flows[0].stagger_s = 0.1;
    n.sample_s = 0.01;
    n.set_param("abc", "delta", delta_s);
    n
}

/// Returns the queueing delay at which arrivals equal departures: 2f·μ + N packets per RTT = μ, with 2f = η − (x −
/// d_t)⁺/δ.
fn settled_delay_s(rate_bps: f64, flows: u32, delta_s: f64) -> f64 {
    let added = |x: f64| f64::from(flows) * PACKET_BITS / (rate_bps * (RTT_S + x));
    let surplus = |x: f64| ETA - (x - DELAY_THRESHOLD_S).max(0.0) / delta_s + added(x) - 1.0;
    let (mut low, mut high) = (0.0, 10.0); // the surplus falls with x
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if surplus(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

/// Returns the sampled queueing delays of the last third of a run, in seconds.
fn delays_s(sim: &Simulation, rate_bps: f64) -> Vec<f64> {
    let links = sim.series()[1];
    let (time, queue, id) = (column(links, "time_s"), column(links, "queue_bytes"), column(links, "link"));
    let rows = time.iter().zip(queue).zip(id).filter(|((time, _), id)| **time > 40.0 && **id == 0.0);
    rows.map(|((_, queue), _)| queue * 8.0 / rate_bps).collect()
}

fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    mean(&values.iter().map(|x| (x - centre).powi(2)).collect::<Vec<_>>()).sqrt()
}

/// Below the delay threshold d_t, the load is η plus the additive increase of N packets per RTT.
#[test]
fn a_link_is_full_without_a_queue() {
    for (rate_bps, flows) in [(12e6, 1), (1e9, 10)] {
        let (sim, summary) = run(&alone(rate_bps, flows, 0.133));
        let load = ETA + f64::from(flows) * PACKET_BITS / (rate_bps * RTT_S);
        assert_within(summary.links[0].utilization, load, 0.001, "utilization");
        let queue_s = mean(&delays_s(&sim, rate_bps));
        assert!(queue_s < 0.002, "{queue_s} s at {rate_bps}");
    }
}

/// If the additive increase of N packets per RTT exceeds 1 − η of the capacity, a queue grows until Eq. 1 compensates
/// for the excess.
#[test]
fn a_queue_settles_where_the_equations_balance() {
    for (rate_bps, flows, delta_s) in [(12e6, 10, 0.133), (12e6, 10, 0.3), (50e6, 10, 0.133)] {
        let (sim, summary) = run(&alone(rate_bps, flows, delta_s));
        let queue_s = mean(&delays_s(&sim, rate_bps));
        assert_within(queue_s, settled_delay_s(rate_bps, flows, delta_s), 0.002, "queueing delay");
        assert_eq!(summary.links[0].drops, 0);
    }
}

/// By Theorem 3.1, δ must exceed 67 ms at τ = 100 ms. A hundred flows put the queue well above d_t, where δ matters.
#[test]
fn a_queue_oscillates_below_two_thirds_of_the_rtt() {
    let swing_s = |delta_s| deviation(&delays_s(&run(&alone(12e6, 100, delta_s)).0, 12e6));
    let (stable, unstable) = (swing_s(0.08), swing_s(0.05));
    assert!(stable < 0.006 && unstable > 0.012, "{stable} s at 80 ms, {unstable} s at 50 ms");
}

/// All flows see the same f, so their windows are equal (1/(1 − 2f) packets) and their rates are proportional to 1/RTT.
#[test]
fn windows_are_equal_and_rates_go_as_one_over_the_rtt() {
    let mut n = alone(24e6, 4, 0.133);
    n.duration_s = 120.0;
    n.measure_s = [40.0, 120.0];
    n.flows[0].stop_s = 120.0;
    let mut far = n.flows[0].clone();
    (far.name, far.pad_s) = ("far".into(), 0.1);
    n.flows.push(far);
    let (_, summary) = run(&n);
    let of = |from: usize| {
        let flows = &summary.flows[from..from + 4];
        let rate = mean(&flows.iter().map(|f| f.rate_bps.unwrap()).collect::<Vec<_>>());
        (rate, mean(&flows.iter().map(|f| f.rtt_ms.mean.unwrap()).collect::<Vec<_>>()))
    };
    let ((near, near_ms), (far, far_ms)) = (of(0), of(4));
    assert!(far_ms > 1.5 * near_ms, "{near_ms} ms, {far_ms} ms");
    assert_close(near * near_ms, far * far_ms, 0.05);
}

/// A link is full two RTTs after its capacity doubles. After the capacity halves, brakes take effect one RTT later, and
/// the queueing delay reaches 100 ms. Eq. 1 then brings the queue back to d_t in three more RTTs.
#[test]
fn a_change_of_the_capacity_is_followed_within_rtts() {
    let (up_s, down_s) = (20.0, 40.0);
    let mut n = alone(12e6, 2, 0.133);
    n.links[0].changes = [(up_s, 24e6), (down_s, 12e6)]
        .map(|(at_s, rate_bps)| ChangeSpec { at_s, rate_bps: Some(rate_bps), ..ChangeSpec::default() })
        .to_vec();
    let (sim, _) = run(&n);
    let flows = sim.series()[0];
    let rates = column(flows, "time_s").iter().zip(column(flows, "rate_bps"));
    let within = |from: f64, until: f64| move |time: f64| from + 1e-6 < time && time < until + 1e-6;
    let bits = |from, until| -> f64 {
        let inside = within(from, until);
        rates.clone().filter(|(time, rate)| inside(**time) && rate.is_finite()).map(|(_, rate)| rate * n.sample_s).sum()
    };
    let mean_bps = |from: f64, until: f64| -> f64 { bits(up_s + from, up_s + until) / (until - from) };
    assert!(mean_bps(0.0, 0.1) < 13e6 && mean_bps(0.2, 0.3) > 0.97 * 24e6, "{}", mean_bps(0.2, 0.3));
    assert!(mean_bps(0.3, 5.0) > ETA * 24e6);
    let links = sim.series()[1];
    let (time, queue, id) = (column(links, "time_s"), column(links, "queue_bytes"), column(links, "link"));
    let longest_s = |from: f64, until: f64| {
        let inside = within(down_s + from, down_s + until);
        let rows = time.iter().zip(queue).zip(id).filter(|((time, _), id)| inside(**time) && **id == 0.0);
        rows.map(|((_, queue), _)| queue * 8.0 / 12e6).fold(0.0, f64::max)
    };
    assert_within(longest_s(0.0, 0.3), 0.1, 0.01, "the longest queue");
    assert!(longest_s(0.4, 10.0) < DELAY_THRESHOLD_S, "{} s", longest_s(0.4, 10.0));
}

/// A flow over two links follows the slower link, because a router never turns a brake into an accelerate. Neither link
/// has a queue.
#[test]
fn the_smallest_share_of_a_path_holds() {
    for slow in [0, 1] {
        let rates = if slow == 0 { [6e6, 24e6] } else { [24e6, 6e6] };
        let links = [("a", rates[0]), ("b", rates[1])].map(|(name, rate)| link(name, rate, 0.025, 1_000_000)).concat();
        let (_, summary) = run(&network(30.0, links, vec![flow("f", "abc", &[0, 2], 30.0)]));
        assert_within(summary.links[2 * slow].utilization, ETA + 0.02, 0.003, "the slow link's utilization");
        for (index, rate) in [(0, rates[0]), (2, rates[1])] {
            assert!(summary.links[index].queue_bytes.mean * 8.0 / rate < 0.005);
        }
    }
}

/// CUBIC's window limits flows at a bottleneck that drops packets before ABC sees a queue. Without this window, packets
/// are lost in every RTT.
#[test]
fn a_full_buffer_is_answered_by_cubic() {
    let losses = |fallback: &str| {
        let mut n = alone(12e6, 4, 0.133);
        n.links[0].buffer = BufferSpec::Bytes(12 * 1500);
        n.set_param("abc", "fallback", ParamValue::Word(fallback.into()));
        let (_, summary) = run(&n);
        (summary.links[0].drops, summary.links[0].utilization)
    };
    let ((with, used), (without, _)) = (losses("cubic"), losses("none"));
    assert!(without > 5 * with && with > 0, "{with} drops with CUBIC, {without} without");
    assert!(used > 0.8, "{used}");
}

/// At a bottleneck without an ABC router all packets accelerate, so a flow behaves like CUBIC, with losses or with ECN
/// marks.
#[test]
fn a_bottleneck_without_abc_makes_it_cubic() {
    for marks in [false, true] {
        let figures = |protocol: &str| {
            let mut n = alone(12e6, 2, 0.133);
            for link in &mut n.links {
                (link.routers, link.buffer) = (Some(Vec::new()), BufferSpec::Bytes(150 * 1500));
                link.queue = QueueSpec::Droptail { mark_at: marks.then_some(Level::Packets(75.0)), ramp: None };
            }
            n.flows[0].protocol = protocol.into();
            n.flows[0].ecn = Some(marks);
            let link = run(&n).1.links[0].clone();
            (link.utilization, link.drops + link.marks)
        };
        let ((abc, signals), (cubic, cubic_signals)) = (figures("abc"), figures("cubic"));
        assert_within(abc, cubic, 0.05, "utilization");
        assert!(signals > 0 && signals < 4 * cubic_signals, "{signals} losses and marks, CUBIC {cubic_signals}");
    }
}

/// An acknowledgement of two packets carries one bit, so the receiver keeps the sum of their signals.
#[test]
fn delayed_acknowledgements_change_little() {
    let mut n = alone(12e6, 2, 0.133);
    n.flows[0].delayed_ack = true;
    let (sim, summary) = run(&n);
    assert!(summary.links[0].utilization > 0.97, "{}", summary.links[0].utilization);
    let queue_s = mean(&delays_s(&sim, 12e6));
    assert!(queue_s < 0.015, "{queue_s}");
}
