//! Tests of switches that pause links and drop nothing.

use crate::common::{assert_close, assert_within, column, flow, link, network, refusal, run, run_on};
use waterfill_network::{FlowSpec, InputSpec, LinkSpec, Network, ParamValue, PfcSpec, SwitchSpec};

const PACKET: f64 = 1500.0;

/// Bytes that may arrive after the decision to pause, for links of equal rates both ways.
fn headroom(rate_bps: f64, delay_s: f64) -> u64 {
    (2.0 * delay_s * rate_bps / 8.0 + 2.0 * PACKET + 64.0).ceil() as u64
}

/// A switch with these links that leave it; the others of the same duplex links end at it.
fn lossless(name: &str, xoff_bytes: Option<u64>, room: u64, outputs: &[u32]) -> SwitchSpec {
    let inputs = outputs.iter().map(|&back| InputSpec { link: back ^ 1, back, headroom_bytes: room });
    SwitchSpec {
        name: name.into(),
        buffer_bytes: 200_000 + room * outputs.len() as u64,
        alpha: 0.125,
        outputs: outputs.into(),
        pfc: Some(PfcSpec { xoff_bytes, inputs: inputs.collect() }),
    }
}

/// Hosts at one switch: `fast` links of 100 Mbit/s toward it, then one of 40 Mbit/s away from it. All pull.
fn one_switch(fast: u32, delay_s: f64, room: u64, xoff_bytes: Option<u64>) -> Network {
    let mut links: Vec<LinkSpec> = (0..fast).flat_map(|i| link(&format!("h{i}"), 100e6, delay_s, 50_000)).collect();
    links.extend(link("slow", 40e6, delay_s, 1));
    links.iter_mut().step_by(2).for_each(|link| link.pull = true);
    let to = 2 * fast;
    let sending =
        |i: u32| FlowSpec { base_rtt_s: 4.0 * delay_s, ..flow(&format!("f{i}"), "window", &[2 * i, to], 2.0) };
    let mut outputs: Vec<u32> = (0..fast).map(|i| 2 * i + 1).collect();
    outputs.push(to);
    let switches = vec![lossless("s", xoff_bytes, room, &outputs)];
    let mut n = Network { switches, measure_s: [1.0, 2.0], ..network(2.0, links, (0..fast).map(sending).collect()) };
    n.set_param("window", "packets", ParamValue::Number(2000.0));
    n
}

/// A link of 100 Mbit/s into one of 40: it sends 40 % of the time and is paused 60 %. One packet a cycle that begins or
/// ends outside the window is the error.
#[test]
fn a_fast_link_is_paused_for_the_rest_of_the_time() {
    for (delay_s, xoff) in [(10e-6, Some(30_000)), (1e-3, Some(60_000)), (100e-6, None)] {
        let n = one_switch(1, delay_s, headroom(100e6, delay_s), xoff);
        let (sim, summary) = run(&n);
        let [up, slow] = [&summary.links[0], &summary.links[2]];
        assert_eq!(summary.links.iter().map(|link| link.drops).sum::<u64>(), 0);
        assert_close(slow.utilization, 1.0, 1e-9);
        assert_close(up.utilization, 0.4, 0.01);
        let pauses = up.pauses.unwrap();
        assert_within(pauses.paused_s, 0.6, 0.006, "time in pauses");
        assert!(pauses.pause_frames > 50, "{pauses:?}");
        assert_eq!(slow.pauses.unwrap().pause_frames, 0, "a host does not pause its switch");
        let ledger = sim.ledger();
        assert_eq!(ledger.sent, ledger.delivered + ledger.in_transit);
        let series = sim.series()[1];
        let shares: Vec<f64> = column(series, "link")
            .iter()
            .zip(column(series, "paused"))
            .filter(|(l, _)| **l == 0.0)
            .map(|(_, p)| *p)
            .collect();
        assert_within(shares[10..].iter().sum::<f64>() / shares[10..].len() as f64, 0.6, 0.006, "series");
    }
}

/// In the 2 ms until a pause takes effect, 25,000 B arrive and 10,000 B leave. So the queue grows by 15,000 B and at most
/// two packets above the threshold, in the headroom. With less headroom, packets are lost.
#[test]
fn the_headroom_takes_what_a_pause_is_too_late_for() {
    let (delay_s, xoff) = (1e-3, 60_000);
    let (_, summary) = run(&one_switch(1, delay_s, headroom(100e6, delay_s), Some(xoff)));
    let most = summary.switches[0].used_max_bytes;
    assert!((xoff + 15_000 - 1500..=xoff + 15_000 + 3000).contains(&most), "{most}");
    let (sim, summary) = run(&one_switch(1, delay_s, 10_000, Some(xoff)));
    assert!(summary.links[2].drops > 0);
    let ledger = sim.ledger();
    assert_eq!(ledger.sent, ledger.delivered + ledger.dropped + ledger.in_transit);
}

/// The threshold α(B − Q) of two inputs that are always full is αB/(1 + 2α): 20 kB of 200 kB for α = 1/8.
#[test]
fn the_threshold_follows_the_free_part_of_the_buffer() {
    let delay_s = 1e-6;
    let (_, summary) = run(&one_switch(2, delay_s, headroom(100e6, delay_s), None));
    assert_eq!(summary.links[4].drops, 0);
    let queue = summary.links[4].queue_bytes;
    assert!(queue.max <= 40_000.0 + 2.0 * 5.0 * PACKET, "{queue:?}");
    assert!(queue.mean > 40_000.0 - 2.0 * 4.0 * PACKET, "{queue:?}");
    for flow in &summary.flows {
        assert_close(flow.rate_bps.unwrap(), 20e6, 0.02);
    }
}

/// Without pauses a lossless queue sends the same packets at the same times as a drop-tail queue.
#[test]
fn a_network_without_pauses_is_as_without_pfc() {
    let mut n = one_switch(2, 1e-4, headroom(100e6, 1e-4), Some(100_000));
    n.set_param("window", "packets", ParamValue::Number(20.0));
    let (_, with) = run(&n);
    n.switches[0].pfc = None;
    n.switches[0].alpha = 1e3;
    let (_, without) = run(&n);
    assert_eq!(with.flows, without.flows);
    let queues = |summary: &waterfill_network::Summary| summary.links.iter().map(|l| l.queue_bytes).collect::<Vec<_>>();
    assert_eq!(queues(&with), queues(&without));
    assert_eq!(
        with.switches,
        without
            .switches
            .iter()
            .map(|s| {
                let mut s = s.clone();
                s.buffer_bytes = with.switches[0].buffer_bytes;
                s
            })
            .collect::<Vec<_>>()
    );
    assert!(with.links[4].queue_bytes.mean > PACKET);
}

/// Three switches in a ring, with a host each; flow i crosses the two links of the ring after its host.
fn ring(cyclic: bool) -> Network {
    let rate = 100e6;
    let mut links: Vec<LinkSpec> = (0..3).flat_map(|i| link(&format!("r{i}"), rate, 10e-6, 1)).collect();
    links.extend((0..3).flat_map(|i| link(&format!("h{i}"), rate, 10e-6, 100_000)));
    (0..3).for_each(|i| links[6 + 2 * i].pull = true);
    // Ring link i goes from switch i to switch i + 1; host i's link is 6 + 2i.
    let outputs = |i: u32| [2 * i, 2 * ((i + 2) % 3) + 1, 7 + 2 * i];
    let mut switches: Vec<_> =
        (0..3).map(|i| lossless(&format!("s{i}"), Some(15_000), headroom(rate, 10e-6), &outputs(i))).collect();
    for switch in &mut switches {
        switch.buffer_bytes = 100_000;
    }
    let across = |i: u32| {
        let (next, last) = ((i + 1) % 3, (i + 2) % 3);
        let forward: &[u32] =
            if cyclic { &[6 + 2 * i, 2 * i, 2 * next, 7 + 2 * last] } else { &[6 + 2 * i, 2 * i, 7 + 2 * next] };
        let reverse: Vec<u32> = forward.iter().rev().map(|l| l ^ 1).collect();
        FlowSpec { reverse, base_rtt_s: 80e-6, ..flow(&format!("f{i}"), "window", forward, 1.0) }
    };
    let mut n = Network { switches, measure_s: [0.0, 1.0], ..network(1.0, links, (0..3).map(across).collect()) };
    n.set_param("window", "packets", ParamValue::Number(500.0));
    n.sample_s = 0.01;
    n
}

/// Each link of the ring waits for the next one.
#[test]
fn a_deadlock_is_found_and_its_links_are_named() {
    let n = ring(true);
    let (sim, summary) = run(&n);
    let found = summary.deadlock.expect("a deadlock");
    assert_eq!(found.links, ["r0", "r1", "r2"]);
    assert!(found.at_s < 0.5, "{found:?}");
    let late = run(&Network { measure_s: [0.9, 1.0], ..n }).1;
    assert_eq!(late.links[0].utilization, 0.0, "nothing moves");
    assert_within(late.links[0].pauses.unwrap().paused_s, 0.1, 1e-9, "paused");
    assert_eq!(sim.ledger().dropped, 0);
}

/// Windows that fit into the buffers of the ring let it move, and larger ones do not. A deadlock is reported if and only if
/// nothing moves in the end, whatever waits for each other at a sample.
#[test]
fn a_ring_that_moves_has_no_deadlock() {
    let ends = [4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0, 48.0].map(|packets| {
        let mut n = ring(true);
        n.set_param("window", "packets", ParamValue::Number(packets));
        (n.sample_s, n.measure_s) = (1e-4, [0.0, 1.0]);
        let (_, summary) = run(&n);
        let stands = run(&Network { measure_s: [0.9, 1.0], ..n }).1.links[0].utilization == 0.0;
        assert_eq!(summary.deadlock.is_some(), stands, "{packets} packets");
        (stands, summary.links[0].pauses.unwrap().pause_frames > 0)
    });
    assert!(ends[0] == (false, false) && ends[7] == (true, true), "{ends:?}");
}

#[test]
fn a_network_without_a_cycle_has_no_deadlock() {
    for n in [ring(false), one_switch(3, 1e-3, headroom(100e6, 1e-3), Some(60_000))] {
        let (_, summary) = run(&n);
        assert_eq!(summary.deadlock, None);
    }
    let paused = run(&one_switch(3, 1e-3, headroom(100e6, 1e-3), Some(60_000))).1;
    assert!(paused.links[..6].iter().step_by(2).all(|link| link.pauses.unwrap().pause_frames > 0));
}

#[test]
fn a_run_with_pauses_stays_on_one_thread() {
    assert_eq!(run_on(&one_switch(2, 1e-3, headroom(100e6, 1e-3), None), 2).0.threads(), 1);
}

#[test]
fn what_cannot_pause_is_refused() {
    let n = one_switch(1, 1e-3, 30_000, None);
    let with = |change: fn(&mut Network)| {
        let mut n = n.clone();
        change(&mut n);
        refusal(n)
    };
    let at_host = "s is a switch with pfc, which counts packets by link; let the flow begin and end at hosts";
    assert_eq!(
        [
            with(|n| n.switches[0].buffer_bytes = 60_000),
            with(|n| n.switches[0].pfc.as_mut().unwrap().xoff_bytes = Some(0)),
            with(|n| n.switches[0].pfc.as_mut().unwrap().inputs[0].back = 0),
            with(|n| n.flows[0].forward = vec![2]),
        ],
        [
            "switch.buffer: must be above the headroom of s, 60000 B, got 60000 B".to_string(),
            "switch.xoff: must be above zero, got 0 B".to_string(),
            "switch: an input of s has no link that carries its pause frames".to_string(),
            format!("flow.f0: {at_host}"),
        ]
    );
}
