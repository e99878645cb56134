//! Tests of switches whose output queues share a buffer.

use crate::common::{cbr, flow, link, network, refusal, run, run_on};
use waterfill_network::{CodelSpec, FlowSpec, Network, QueueSpec, SwitchSpec};

const PACKET: f64 = 1000.0;

fn switch(name: &str, buffer_bytes: u64, alpha: f64, outputs: &[u32]) -> SwitchSpec {
    SwitchSpec { name: name.into(), buffer_bytes, alpha, outputs: outputs.into(), pfc: None }
}

/// Four links of 10 Mbit/s that leave a switch, the first `overloaded` of which are offered 20 Mbit/s.
fn overload(buffer_bytes: u64, alpha: f64, overloaded: u32) -> Network {
    let links = (0..4).flat_map(|i| link(&format!("p{i}"), 10e6, 1e-3, 1)).collect();
    let sources = (0..overloaded).map(|i| cbr(&format!("c{i}"), &[2 * i], 20e6, [0.0, 2.0], PACKET as u16));
    let switches = vec![switch("s", buffer_bytes, alpha, &[0, 2, 4, 6])];
    Network { traffic: sources.collect(), switches, measure_s: [1.0, 2.0], ..network(2.0, links, vec![]) }
}

/// Each of n queues grows to α(B − nq), so q = αB/(1 + nα). In the end a packet more or less is waiting.
#[test]
fn overloaded_queues_reach_the_dynamic_threshold() {
    let buffer = 600e3;
    for (alpha, overloaded) in [(1.0, 1), (1.0, 2), (0.5, 1), (0.5, 2), (0.5, 4), (0.125, 3), (8.0, 2)] {
        let (_, summary) = run(&overload(buffer as u64, alpha, overloaded));
        let expected = alpha * buffer / (1.0 + f64::from(overloaded) * alpha);
        for i in 0..overloaded as usize {
            let queue = summary.links[2 * i].queue_bytes;
            assert!((queue.mean - expected).abs() <= 2.0 * PACKET, "α {alpha}, {overloaded}: {queue:?}, {expected}");
            assert!(summary.links[2 * i].drops > 0);
        }
        let [used] = &summary.switches[..] else { panic!("one switch") };
        let all = f64::from(overloaded) * expected;
        assert!((used.used_mean_bytes - all).abs() <= 4.0 * PACKET, "{used:?}, {all}");
        assert!((used.used_max_bytes as f64 - all).abs() <= 4.0 * PACKET, "{used:?}, {all}");
    }
}

/// A queue that has been alone has half of the buffer (α = 1). When a second one begins to grow, the first shrinks as its
/// threshold falls, and both end with a third. No packet is pushed out: for a while the sum is above two thirds.
#[test]
fn a_queue_yields_to_a_later_one() {
    let mut n = overload(600_000, 1.0, 2);
    (n.traffic[1].start_s, n.duration_s) = (1.0, 3.0);
    n.traffic.iter_mut().for_each(|source| source.stop_s = 3.0);
    n.measure_s = [0.9, 1.0];
    let (_, alone) = run(&n);
    assert!((alone.links[0].queue_bytes.mean - 300e3).abs() <= PACKET);
    n.measure_s = [2.9, 3.0];
    let (_, both) = run(&n);
    for l in [0, 2] {
        assert!((both.links[l].queue_bytes.mean - 200e3).abs() <= 2.0 * PACKET, "{:?}", both.links[l].queue_bytes);
    }
}

/// With a large α a queue takes nearly the whole buffer, never more, and the buffers of the links do not count.
#[test]
fn the_buffer_is_never_exceeded() {
    let (_, summary) = run(&overload(50_500, 1e6, 4));
    let used = &summary.switches[0];
    assert!((49_500..=50_500).contains(&used.used_max_bytes), "{used:?}");
}

/// What leaves a queue while nobody looks makes room. Two queues of 6.7 kB are empty long before a third one grows, and only
/// the first has been used since. The third takes half of the buffer; with the second one's 6.7 kB it would take a third.
#[test]
fn departures_that_have_not_been_counted_make_room() {
    let mut n = overload(20_000, 1.0, 3);
    n.traffic[..2].iter_mut().for_each(|source| source.stop_s = 0.03);
    let once = cbr("once", &[0], 20e6, [0.15, 0.1505], PACKET as u16);
    n.traffic.push(once);
    (n.traffic[2].start_s, n.traffic[2].stop_s) = (0.2, 0.5);
    (n.duration_s, n.measure_s) = (0.5, [0.0, 0.5]);
    let (_, summary) = run(&n);
    assert!((summary.links[4].queue_bytes.max - 10_000.0).abs() <= PACKET, "{:?}", summary.links[4].queue_bytes);
}

/// Two switches with four hosts each. Links 0 to 6 are those of the first one's hosts, 8 to 14 of the second one's.
fn two_switches() -> Network {
    let hosts = (0..8).flat_map(|h| link(&format!("h{h}"), 100e6, 10e-6, 1_000_000));
    let links = hosts.chain(link("trunk", 100e6, 1e-3, 1)).collect();
    let across = |h: u32| FlowSpec { start_s: 1e-3 * f64::from(h), ..flow("f", "reno", &[2 * h, 16, 9 + 2 * h], 1.0) };
    let back = |h: u32| flow("b", "cubic", &[8 + 2 * h, 17, 1], 1.0);
    let flows = (0..4).map(across).chain((0..4).map(back)).enumerate();
    let flows = flows.map(|(i, flow)| FlowSpec { name: format!("f{i}"), ..flow }).collect();
    let switches = vec![switch("a", 60_000, 1.0, &[1, 3, 5, 7, 16]), switch("b", 60_000, 0.5, &[9, 11, 13, 15, 17])];
    Network { switches, measure_s: [0.0, 1.0], ..network(1.0, links, flows) }
}

#[test]
fn threads_do_not_change_a_byte() {
    let n = two_switches();
    let (one, summary) = run(&n);
    let (two, divided) = run_on(&n, 2);
    assert_eq!(two.threads(), 2);
    assert_eq!(summary.switches, divided.switches);
    assert_eq!((&summary.flows, &summary.links), (&divided.flows, &divided.links));
    assert_eq!(one.ledger(), two.ledger());
    assert!(summary.links.iter().any(|link| link.drops > 0));
    let used = &summary.switches[0];
    assert!(used.used_max_bytes <= 60_000 && used.used_mean_bytes > 100.0, "{used:?}");
}

#[test]
fn wrong_switches_are_refused() {
    let n = overload(1000, 1.0, 1);
    let with = |change: fn(&mut Network)| {
        let mut n = n.clone();
        change(&mut n);
        refusal(n)
    };
    let codel = QueueSpec::Codel(CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true });
    let queue = refusal(Network {
        links: n
            .links
            .iter()
            .map(|l| {
                let mut l = l.clone();
                l.queue = codel.clone();
                l
            })
            .collect(),
        ..n.clone()
    });
    assert_eq!(
        [
            with(|n| n.switches[0].buffer_bytes = 0),
            with(|n| n.switches[0].alpha = 0.0),
            with(|n| n.switches[0].alpha = f64::NAN),
            with(|n| n.switches[0].outputs = vec![0, 9]),
            with(|n| n.switches[0].outputs = vec![0, 0]),
            queue,
        ],
        [
            "switch.buffer: must be above zero, got 0 B",
            "switch.alpha: must be above zero, got 0",
            "switch.alpha: must be above zero, got NaN",
            "switch: s has no link 9",
            "switch: link p0 leaves two switches",
            "link.p0.queue: cannot share the buffer of switch s; use droptail or red",
        ]
    );
}
