//! Tests of runs whose results follow by arithmetic.

#![expect(clippy::float_cmp, reason = "whole numbers, computed by hand")]

use crate::common::{assert_close, cbr, column, flow, link, network, run, run_until};
use waterfill_network::{BufferSpec, DemandSpec};

/// Packets in flight fill the pipe, then the queue. At 10 Mbit/s and 20 ms, 1500 bytes take 1.2 ms, so the pipe holds
/// 40/1.2 + 1 packets. The rest of the window waits in the queue, less the packet in service.
#[test]
fn packets_in_flight_fill_the_pipe_and_then_the_queue() {
    let mut n = network(6.0, link("l", 1e7, 0.02, 1 << 30).to_vec(), vec![flow("f", "window", &[0], 6.0)]);
    n.set_param("window", "packets", 20.0);
    let (_, half) = run(&n);
    // RTT = 40 ms + 1.2 ms + the acknowledgement's 32 µs; the measurement window of 2 s cuts one burst in 48.
    assert_close(half.flows[0].rate_bps.unwrap(), 20.0 * 12_000.0 / 0.041_232, 1.0 / 48.0);
    assert_eq!(half.links[0].queue_packets.max, 0.0);

    n.set_param("window", "packets", 60.0);
    let (_, full) = run(&n);
    assert_close(full.flows[0].rate_bps.unwrap(), 1e7, 1e-3);
    assert_eq!(full.links[0].utilization, 1.0);
    // Of 60 packets, 40.032 ms / 1.2 ms = 33.36 are on the wires and one is in service.
    assert_close(full.links[0].queue_packets.mean, 60.0 - 40.032 / 1.2 - 1.0, 1e-3);
    assert_close(full.flows[0].rtt_ms.mean.unwrap(), 60.0 * 1.2, 1e-3);
    // Acknowledgements of 40 bytes, one per packet, load the reverse link by 40/1500.
    assert_close(full.links[1].utilization, 40.0 / 1500.0, 1e-3);
}

/// An offered load of 8 Mbit/s on 4 Mbit/s with a buffer of 10 packets loses half of its packets.
#[test]
fn an_overloaded_link_serves_its_rate_and_drops_the_rest() {
    let mut n = network(3.0, link("l", 4e6, 0.01, 0).to_vec(), vec![]);
    n.links.truncate(1);
    n.links[0].buffer = BufferSpec::Packets(10);
    n.traffic = vec![cbr("cbr", &[0], 8e6, [0.0, 3.0], 1000)];
    let (sim, summary) = run(&n);
    assert_eq!(summary.links[0].utilization, 1.0);
    assert_close(summary.traffic[0].rate_bps.unwrap(), 4e6, 2e-3);
    assert_eq!(summary.links[0].drops, 500); // 1000 per second arrive, 500 are served, for 1 s
    assert_eq!(summary.links[0].queue_packets.max, 10.0);
    // Every second arrival finds a slot that was freed at the same instant.
    assert_eq!(summary.links[0].queue_packets.mean, 10.0);
    assert_eq!(summary.traffic[0].packets_sent, 3000);
    assert_eq!(sim.ledger().sent, 3000);
}

/// One packet crosses two links and its acknowledgement returns, with every step computed by hand.
#[test]
fn one_packet_takes_the_sum_of_its_delays() {
    let links = [link("a", 1e6, 0.003, 1 << 20), link("b", 2e6, 0.005, 1 << 20)].concat();
    let mut n = network(1.0, links, vec![flow("f", "window", &[0, 2], 1.0)]);
    n.flows[0].size_bytes = Some(1460);
    n.flows[0].pad_s = 0.002;
    let (sim, summary) = run(&n);
    // SYN and SYN-ACK, 40 B: 0.32 + 0.16 ms of transmission and 8 ms + 2 ms of delay in each direction.
    let handshake = 2.0 * (10.0 + 0.32 + 0.16);
    // 1500 B: 12 + 6 ms of transmission, 10 ms of delay.
    assert_close(summary.flows[0].completed_s.unwrap() * 1e3, handshake + 28.0, 1e-9);
    assert_eq!(summary.flows[0].packets_sent, 1);
    let ledger = sim.ledger();
    assert_eq!((ledger.sent, ledger.delivered, ledger.in_transit), (4, 4, 0));
    assert_eq!(summary.engine.packet_hops, 8);
}

/// A paced window sends at its rate from the start, so that no packet waits.
#[test]
fn pacing_spaces_packets() {
    let mut n = network(3.0, link("l", 1e8, 0.02, 1 << 20).to_vec(), vec![flow("f", "window", &[0], 3.0)]);
    n.set_param("window", "packets", 100.0);
    n.measure_s = [0.0, 3.0];
    let (_, burst) = run(&n);
    assert_eq!(burst.links[0].queue_packets.max, 99.0, "a whole window at once, one packet of it in service");
    n.flows[0].pacing = Some(true);
    let (_, paced) = run(&n);
    assert_eq!(paced.links[0].queue_packets.max, 0.0);
    assert_close(paced.flows[0].rate_bps.unwrap(), burst.flows[0].rate_bps.unwrap(), 0.01);
}

/// A law with a rate and no window is paced whatever the scenario says, because nothing else limits it.
#[test]
fn a_rate_without_a_window_is_always_paced() {
    let mut n = network(6.0, link("l", 1e7, 0.02, 1 << 20).to_vec(), vec![flow("f", "rcp", &[0], 6.0)]);
    n.flows[0].pacing = Some(false);
    let (_, summary) = run(&n);
    assert_close(summary.flows[0].rate_bps.unwrap(), 1e7, 0.01);
}

/// An application that writes 3 Mbit/s gets 3 Mbit/s on a faster path.
#[test]
fn a_demand_limits_the_rate() {
    let mut n = network(9.0, link("l", 1e8, 0.02, 1 << 20).to_vec(), vec![flow("f", "maxnet", &[0], 9.0)]);
    n.flows[0].demand_bps = Some(3e6);
    let (_, summary) = run(&n);
    assert_close(summary.flows[0].rate_bps.unwrap(), 3e6, 5e-3);
}

/// An application that writes 8 Mbit/s, nothing from 3 s on, and 2 Mbit/s from 6 s on is received at these rates.
#[test]
fn a_demand_over_time_limits_the_rate() {
    let mut n = network(9.0, link("l", 1e8, 0.02, 1 << 20).to_vec(), vec![flow("f", "maxnet", &[0], 9.0)]);
    n.flows[0].demands =
        [(0.0, 8e6), (3.0, 0.0), (6.0, 2e6)].map(|(at_s, rate_bps)| DemandSpec { at_s, rate_bps }).into();
    let mut bits = |from_s: f64, to_s: f64| {
        n.measure_s = [from_s, to_s];
        let (_, summary) = run(&n);
        summary.flows[0].rate_bps.unwrap() * (to_s - from_s)
    };
    let found = [[1.0, 2.5], [3.1, 6.0], [7.0, 9.0], [0.0, 9.0]].map(|[from_s, to_s]| bits(from_s, to_s));
    // The handshake takes 40 ms, the last packets are on their way for 20 ms, and a packet is 12 kbit.
    for (found, wanted) in found.into_iter().zip([1.5 * 8e6, 0.0, 2.0 * 2e6, 2.96 * 8e6 + 2.98 * 2e6]) {
        assert!((found - wanted).abs() <= 5.0 * 12e3, "{found} {wanted}");
    }
}

/// Delayed acknowledgements halve the number of acknowledgements at the same data rate.
#[test]
fn delayed_acknowledgements_halve_the_reverse_load() {
    let mut n = network(6.0, link("l", 1e7, 0.02, 1 << 30).to_vec(), vec![flow("f", "window", &[0], 6.0)]);
    n.set_param("window", "packets", 60.0);
    n.flows[0].delayed_ack = true;
    let (_, summary) = run(&n);
    assert_eq!(summary.links[0].utilization, 1.0);
    assert_close(summary.links[1].utilization, 20.0 / 1500.0, 1e-2);
}

/// A lost SYN is sent again after one second, then after two and four more (RFC 6298).
#[test]
fn a_lost_syn_is_sent_again() {
    let mut n = network(10.0, link("l", 1e7, 0.02, 1 << 20).to_vec(), vec![flow("f", "window", &[0], 10.0)]);
    n.links[0].loss = 1.0;
    let sim = run_until(&n, 2.9);
    assert_eq!(sim.ledger().sent, 2);
    let (sim, summary) = run(&n);
    assert_eq!(sim.ledger().sent, 4); // at 0, 1, 3 and 7 s
    assert_eq!(sim.ledger().lost, 4);
    assert_eq!(summary.flows[0].rate_bps, Some(0.0));
    assert_eq!(summary.flows[0].rtt_ms.mean, None);
}

/// A link's own target replaces the protocol's target.
#[test]
fn a_link_is_filled_to_its_own_target() {
    let mut n = network(9.0, link("l", 1e8, 0.01, 250_000).to_vec(), vec![flow("f", "maxnet", &[0], 9.0)]);
    n.links[0].target = Some(0.5);
    assert_close(run(&n).1.links[0].utilization, 0.5, 0.01);
}

/// A path of 50 s has an RTT above the largest timeout. This must not cause retransmissions.
#[test]
fn an_rtt_above_the_largest_timeout_works() {
    let mut n = network(900.0, link("l", 1e6, 50.0, 1 << 24).to_vec(), vec![flow("f", "window", &[0], 900.0)]);
    n.sample_s = 10.0;
    let (_, summary) = run(&n);
    assert_eq!(summary.flows[0].retransmissions, 0);
    assert_eq!(summary.flows[0].packets_sent, 80); // a window of ten at 100, 200 … 800 s
}

/// The series end with the run, even if its length is not a multiple of the sampling interval.
#[test]
fn the_last_sample_is_at_the_end() {
    let mut n = network(1.0, link("l", 1e7, 0.01, 250_000).to_vec(), vec![flow("f", "window", &[0], 1.0)]);
    n.sample_s = 0.3;
    let (sim, _) = run(&n);
    let times = column(sim.series()[1], "time_s");
    assert_eq!(times.iter().copied().step_by(2).collect::<Vec<_>>(), [0.3, 0.6, 0.9, 1.0]);
}

/// One MaxNet flow fills a link to its target μ with almost no queue, over four decades of rate.
#[test]
fn maxnet_holds_its_target() {
    for (rate_bps, delay_s) in [(1e7, 0.05), (1e8, 0.01), (1e9, 0.0145), (1e10, 0.02)] {
        let bdp = rate_bps * 2.0 * delay_s / 8.0;
        let duration_s = if rate_bps > 5e9 { 6.0 } else { 15.0 };
        let (_, summary) = run(&network(
            duration_s,
            link("l", rate_bps, delay_s, bdp as u64).to_vec(),
            vec![flow("f", "maxnet", &[0], duration_s)],
        ));
        assert_close(summary.links[0].utilization, 0.9, 0.01);
        assert!(summary.links[0].queue_bytes.mean < 0.01 * bdp, "{:?} of {bdp}", summary.links[0].queue_bytes);
        assert_eq!(summary.links[0].drops, 0);
    }
}

/// Jitter shifts the starts and RTTs of single flows in a group.
#[test]
fn jitter_moves_starts_and_rtts_of_single_flows() {
    let mut group = flow("f", "window", &[0], 4.0);
    group.count = 3;
    group.start_jitter_s = vec![0.0, 0.25, 1.0];
    group.pad_jitter_s = vec![0.0, 0.002, 0.01];
    (group.base_rtt_s, group.initial_window_packets) = (0.02, 1.0);
    let mut n = network(4.0, link("l", 1e9, 0.01, 1 << 20).to_vec(), vec![group]);
    n.measure_s = [0.0, 4.0];
    let (_, summary) = run(&n);
    for (f, (start_s, rtt_ms)) in summary.flows.iter().zip([(0.0, 20.0), (0.25, 24.0), (1.0, 40.0)]) {
        assert_close(f.start_s, start_s, 1e-12);
        assert_close(f.active_s.unwrap()[0], start_s, 1e-12);
        assert_close(f.rtt_ms.base, rtt_ms, 1e-12);
        assert_close(f.rtt_ms.mean.unwrap(), rtt_ms, 0.02);
    }
}
