//! Tests of traffic sources: queueing theory, results by arithmetic, and flows that start and finish.

use crate::common::{assert_close, cbr, column, flow, link, mean, network, refusal, run, run_until};
use proptest::prelude::*;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::Instant;
use waterfill_network::series::ARRIVAL_COLUMNS;
use waterfill_network::summary::{Summary, WebSummary};
use waterfill_network::{
    ArrivalSpec, Distribution, FlowSpec, LinkSpec, Network, PeriodSpec, ReorderSpec, RouteSpec, TrafficKind,
    TrafficSpec,
};

fn constant(mean: f64) -> Distribution {
    Distribution::Constant { mean }
}

fn exponential(mean: f64) -> Distribution {
    Distribution::Exponential { mean }
}

/// Returns a source of flows over links, given by the indices of their forward directions.
fn web(protocol: &str, forward: &[u32], arrivals_per_s: f64, sizes_bytes: Distribution, stop_s: f64) -> TrafficSpec {
    let arrivals = ArrivalSpec {
        arrivals_per_s,
        at_s: vec![],
        sizes_bytes,
        flow: flow("web", protocol, forward, stop_s),
        routes: vec![],
        pairs: vec![],
        fan_in: 1,
    };
    TrafficSpec {
        kind: TrafficKind::Web,
        rate_bps: None,
        flows: Some(arrivals),
        ..cbr("web", forward, 0.0, [0.0, stop_s], 1500)
    }
}

fn packets(kind: TrafficKind, rate_bps: f64, stop_s: f64) -> TrafficSpec {
    TrafficSpec { kind, ..cbr(kind.name(), &[0], rate_bps, [0.0, stop_s], 1500) }
}

fn poisson(rate_bps: f64, stop_s: f64) -> TrafficSpec {
    packets(TrafficKind::Poisson, rate_bps, stop_s)
}

fn periods(on_s: f64, off_s: f64) -> PeriodSpec {
    PeriodSpec { on_s: constant(on_s), off_s: constant(off_s) }
}

/// Returns the common properties of a source's flows.
fn common_flow(source: &mut TrafficSpec) -> &mut FlowSpec {
    &mut source.flows.as_mut().expect("a source of flows").flow
}

/// Returns a network without scheduled flows, measured from the start.
fn only(traffic: Vec<TrafficSpec>, links: Vec<LinkSpec>, duration_s: f64) -> Network {
    let mut n = network(duration_s, links, vec![]);
    n.measure_s = [0.0, duration_s];
    n.traffic = traffic;
    n
}

fn flows_of(summary: &Summary) -> &WebSummary {
    summary.traffic[0].flows.as_ref().expect("a source of flows")
}

/// Poisson packets wait as in an M/D/1 queue: ρ² / 2(1 − ρ) packets on average (Pollaczek–Khinchine).
///
/// Over T service times the mean of a queue near saturation has a variance of about 1 / 2(1 − ρ)⁴T (reflected Brownian
/// motion). For two million packets this is a standard deviation of 0.8 %; the tolerance is 3 %.
#[test]
fn poisson_packets_wait_as_in_an_m_d_1_queue() {
    for load in [0.5, 0.8] {
        let duration_s = 2000.0 / load;
        let mut n = only(vec![poisson(load * 12e6, duration_s)], link("l", 12e6, 0.0, 1 << 40).to_vec(), duration_s);
        n.sample_s = duration_s;
        let (_, summary) = run(&n);
        assert_close(summary.links[0].queue_packets.mean, load * load / (2.0 * (1.0 - load)), 0.03);
        assert_close(summary.links[0].utilization, load, 0.003); // 1/√2·10⁶ = 0.07 %
        assert_close(summary.traffic[0].rate_bps.unwrap(), load * 12e6, 0.003);
    }
}

/// An on–off source at 8 Mbit/s with a duty cycle of 1/4 offers 0.8 Mbit per period of 0.4 s.
#[test]
fn an_on_off_source_offers_its_duty_cycle() {
    let mut source = packets(TrafficKind::OnOff, 8e6, 40.0);
    source.periods = Some(periods(0.1, 0.3));
    let (_, summary) = run(&only(vec![source], link("l", 12e6, 0.0, 1 << 40).to_vec(), 40.0));
    assert_close(summary.traffic[0].rate_bps.unwrap(), 2e6, 1e-3);
    assert_eq!(summary.links[0].queue_packets.max, 0.0, "one packet at a time, even at the ends of periods");
}

/// Flows of one packet, alone on 10 Mbit/s and 20 ms each way, wait 40.064 ms for the answer to the SYN, and 41.232 ms for
/// the acknowledgement, when the application has nothing more.
#[test]
fn limits_of_a_sources_flows_are_of_their_whole_lives() {
    let mut n =
        only(vec![web("newreno", &[0], 1e-3, constant(1460.0), 20_000.0)], link("l", 1e7, 0.02, 1 << 30).to_vec(), 2e4);
    n.measure_s = [1e4, 1.1e4];
    let (_, summary) = run(&n);
    let limits = flows_of(&summary).limited_by.expect("flows");
    assert_close(limits.handshake, 40.064 / (40.064 + 41.232), 1e-9);
    assert_close(limits.handshake + limits.application, 1.0, 1e-9);
    assert_eq!(flows_of(&summary).longest_recovery, None);
}

/// Lost packets of a source's flows are full packets that are sent again, mostly not in vain, and a recovery takes some RTTs.
#[test]
fn losses_of_a_sources_flows_are_counted() {
    let source = web("sack", &[0], 20.0, constant(1460.0 * 50.0), 60.0);
    let mut n = only(vec![source], link("l", 1e8, 0.02, 1 << 30).to_vec(), 60.0);
    n.links[0].loss = 0.02;
    let (_, summary) = run(&n);
    let (flows, sent) = (flows_of(&summary), summary.traffic[0].packets_sent);
    assert_eq!(flows.resent_bytes, 1500 * flows.retransmissions);
    let lost = (flows.retransmissions - flows.spurious_retransmissions) as f64 / sent as f64;
    assert_close(lost, 0.02, 0.05); // 1/√1200 = 3 %
    let longest = flows.longest_recovery.expect("a recovery");
    assert!(longest.rtts > 1.0 && longest.took_s > 0.04, "{longest:?}");
    assert!(flows.limited_by.expect("flows").recovery > 0.0);
}

/// A flow alone takes a handshake, slow start and its packets. The link has 10 Mbit/s and 20 ms in each direction. The
/// handshake takes twice 20 ms and 32 µs (40 bytes). Then follow rounds of ten, twenty and forty packets. A round
/// starts with the first acknowledgement of the previous round: one packet (1.2 ms) and one RTT (40.032 ms) after that
/// round's start. The packets of the last round take 1.2 ms each, and 20 ms.
#[test]
fn a_flow_alone_takes_a_handshake_slow_start_and_its_packets() {
    let (handshake, round) = (40.064, 1.2 + 40.032);
    for (count, by_hand) in [
        (1.0, handshake + 1.2 + 20.0),
        (10.0, handshake + 12.0 + 20.0),
        (30.0, handshake + round + 24.0 + 20.0),
        (70.0, handshake + 2.0 * round + 48.0 + 20.0),
    ] {
        // About twenty flows, a thousand seconds apart.
        let source = web("newreno", &[0], 1e-3, constant(1460.0 * count), 20_000.0);
        let mut n = only(vec![source], link("l", 1e7, 0.02, 1 << 30).to_vec(), 20_000.0);
        n.sample_s = 1000.0;
        let (_, summary) = run(&n);
        let web = flows_of(&summary);
        assert!(web.flows_started > 10 && web.flows_open_max == 1, "{web:?}");
        assert_eq!(web.flows_completed, web.flows_started);
        assert_eq!(web.flow_completion_ms.count, web.flows_started);
        assert_close(web.flow_completion_ms.mean.unwrap(), by_hand, 1e-9);
        assert_close(web.flow_completion_ms.max.unwrap(), by_hand, 1e-9);
        assert_close(web.flow_completion_ms.p50.unwrap(), by_hand, 1.0 / 64.0);
        assert_eq!(summary.traffic[0].packets_sent as f64, web.flows_started as f64 * count);
        assert_eq!(summary.traffic[0].packets_received, summary.traffic[0].packets_sent);
    }
}

/// Every flow that a source starts is a row with its size, and with the time of the last byte once that byte has
/// arrived.
#[test]
fn each_arrival_is_a_row_finished_or_not() {
    let sources = vec![
        web("newreno", &[0], 40.0, Distribution::Pareto { mean: 2e4, shape: 1.35, max: Some(1e6) }, 9.0),
        web("cubic", &[0], 0.5, constant(1e9), 10.0),
    ];
    let n = only(sources, link("l", 1e7, 0.005, 60_000).to_vec(), 10.0);
    let (sim, summary) = run(&n);
    let arrivals = sim.arrivals();
    assert_eq!(arrivals.names(), ARRIVAL_COLUMNS.map(String::from));
    let [traffic, index, _, start_s, size_bytes, completed_s] = arrivals.columns() else { panic!("six columns") };
    for (t, source) in summary.traffic.iter().enumerate() {
        let web = source.flows.as_ref().expect("a source of flows");
        let mut mine: Vec<usize> = (0..traffic.len()).filter(|&row| traffic[row] == t as f64).collect();
        assert_eq!(mine.len() as u64, web.flows_started);
        assert_eq!(mine.iter().filter(|&&row| completed_s[row].is_finite()).count() as u64, web.flows_completed);
        mine.sort_by(|&a, &b| index[a].total_cmp(&index[b]));
        assert!(mine.iter().enumerate().all(|(i, &row)| index[row] == i as f64), "counted from zero");
        assert!(mine.windows(2).all(|w| start_s[w[0]] < start_s[w[1]]), "in the order of their starts");
        let took: Vec<f64> =
            mine.iter().map(|&row| completed_s[row] - start_s[row]).filter(|s| s.is_finite()).collect();
        let largest = took.iter().copied().fold(0.0, f64::max);
        assert_close(largest * 1e3, web.flow_completion_ms.max.unwrap_or(0.0), 1e-9);
    }
    let reno = (0..traffic.len()).filter(|&row| traffic[row] == 0.0);
    assert!(reno.clone().count() > 200 && reno.clone().all(|row| (1.0..=1e6).contains(&size_bytes[row])));
    assert!(reno.map(|row| size_bytes[row].to_bits()).collect::<std::collections::HashSet<_>>().len() > 100);
    assert!((0..traffic.len()).filter(|&row| traffic[row] == 1.0).all(|row| size_bytes[row] == 1e9));
}

/// Returns a network of four hosts around a switch. Link 2h leads from host h to the switch, and link 2h + 1 back.
fn star(fan_in: u32, routes: impl Fn(u32) -> Vec<u32>) -> Network {
    let links = (0..4).flat_map(|h| link(&format!("h{h}"), 1e8, 0.001, 1 << 20)).collect();
    let route = |from: u32, to: u32| RouteSpec {
        forward: vec![2 * from, 2 * to + 1],
        reverse: vec![2 * to, 2 * from + 1],
        pad_s: 0.0,
        base_rtt_s: 0.004,
    };
    let mut source = web("newreno", &[0, 3], 100.0, constant(5000.0), 18.0);
    let flows = source.flows.as_mut().expect("a source of flows");
    flows.routes = (0..4).map(|to| routes(to).into_iter().map(|from| route(from, to)).collect()).collect();
    flows.fan_in = fan_in;
    only(vec![source], links, 20.0)
}

/// Routes are drawn uniformly: every pair of hosts gets a twelfth of the flows, 150 ± 12 of 1,800.
#[test]
fn flows_draw_their_routes_uniformly() {
    let others = |to: u32| (0..4).filter(|&from| from != to).collect();
    let (sim, summary) = run(&star(1, others));
    let arrivals = sim.arrivals();
    let mut counts = [0.0; 12];
    arrivals.columns()[2].iter().for_each(|&route| counts[route as usize] += 1.0);
    assert_eq!(counts.iter().sum::<f64>(), flows_of(&summary).flows_started as f64);
    assert!(counts.iter().all(|count| (100.0..200.0).contains(count)), "{counts:?}");
    assert_eq!(flows_of(&summary).flows_completed, flows_of(&summary).flows_started);
    for l in &summary.links {
        // Of 100 flows a second a host sends 25 ± 1.2 and receives as many, in 18 of 20 s: a SYN and four packets, 5000 B
        // with 160 B of headers; a SYN-ACK and four acknowledgements.
        let bytes = 40.0 + 5160.0 + 5.0 * 40.0;
        assert_close(l.utilization, 0.9 * 25.0 * bytes * 8.0 / 1e8, 0.2);
    }
}

/// An arrival with a fan-in of three starts a flow from each other host to one host, all at once.
#[test]
fn an_incast_starts_its_flows_together_from_different_hosts() {
    let others = |to: u32| (0..4).filter(|&from| from != to).collect();
    for fan_in in [2, 3] {
        let (sim, summary) = run(&star(fan_in, others));
        let arrivals = sim.arrivals();
        let [_, index, route, start_s, ..] = arrivals.columns() else { panic!("six columns") };
        let mut rows: Vec<usize> = (0..index.len()).collect();
        rows.sort_by(|&a, &b| index[a].total_cmp(&index[b]));
        for together in rows.chunks(fan_in as usize) {
            let mut routes: Vec<usize> = together.iter().map(|&row| route[row] as usize).collect();
            assert!(together.iter().all(|&row| start_s[row] == start_s[together[0]]));
            assert!(routes.iter().all(|r| r / 3 == routes[0] / 3), "one receiver: {routes:?}");
            routes.sort_unstable();
            routes.dedup();
            assert_eq!(routes.len(), together.len());
        }
        assert_eq!(index.len() as u64 % u64::from(fan_in), 0);
        assert_eq!(flows_of(&summary).flows_started, index.len() as u64);
    }
}

#[test]
fn a_fan_in_needs_as_many_routes() {
    let mut n = star(4, |to| (0..4).filter(|&from| from != to).collect());
    assert_eq!(refusal(n.clone()), "traffic.web.fan_in: must be 1 to 3, the routes to one host, got 4");
    n.traffic[0].flows.as_mut().expect("flows").routes.clear();
    assert_eq!(refusal(n), "traffic.web.fan_in: must be 1 to 1, the routes to one host, got 4");
}

/// Padding at the source's access delays the SYN, the SYN-ACK and the data.
#[test]
fn padding_delays_arriving_flows() {
    let mut source = web("newreno", &[0], 1e-3, constant(1460.0), 9000.0);
    common_flow(&mut source).pad_s = 0.03;
    let mut n = only(vec![source], link("l", 1e7, 0.02, 1 << 30).to_vec(), 9000.0);
    n.sample_s = 1000.0;
    assert_close(flows_of(&run(&n).1).flow_completion_ms.mean.unwrap(), 100.064 + 51.2, 1e-9);
}

/// Flows of ten packets and a SYN offer a load of λ × 15,040 bytes and a goodput of λ × 14,600 bytes.
///
/// For about 24,000 flows the standard deviation is 0.65 %; the tolerance is three of them.
#[test]
fn arriving_flows_offer_their_load() {
    let arrivals = 0.6 * 1e8 / (15_040.0 * 8.0);
    let n = only(
        vec![web("newreno", &[0], arrivals, constant(14_600.0), 48.0)],
        link("l", 1e8, 0.005, 1 << 30).to_vec(),
        48.0,
    );
    let (_, summary) = run(&n);
    assert_close(summary.links[0].utilization, 0.6, 0.02);
    assert_close(flows_of(&summary).goodput_bps.unwrap(), arrivals * 14_600.0 * 8.0, 0.02);
    assert_close(summary.traffic[0].rate_bps.unwrap(), arrivals * 15_000.0 * 8.0, 0.02);
    assert_close(flows_of(&summary).flows_started as f64, arrivals * 48.0, 0.02);
}

/// Heavy-tailed sizes have their specified mean, with the bound included. The mean is the payload of all flows over
/// their number.
///
/// With a squared coefficient of variation of about 6 and 80,000 flows the standard deviation is 0.9 %; the tolerance
/// is three of them.
#[test]
fn pareto_sizes_have_their_mean() {
    let sizes = Distribution::Pareto { mean: 10_000.0, shape: 1.35, max: Some(400_000.0) };
    let mut n = only(vec![web("newreno", &[0], 2000.0, sizes, 40.0)], link("l", 1e9, 1e-3, 1 << 30).to_vec(), 50.0);
    n.measure_s = [0.0, 50.0];
    let (_, summary) = run(&n);
    let web = flows_of(&summary);
    assert_eq!(web.flows_completed, web.flows_started, "all complete after the last has started");
    assert_close(web.goodput_bps.unwrap() * 40.0 / 8.0 / web.flows_started as f64, 10_000.0, 0.027);
}

/// The number of open flows follows Little's law: arrivals per second × time open. A flow is open until its last
/// acknowledgement arrives: 5 ms and 40 bytes after its completion, with almost no queue on the reverse link.
#[test]
fn flows_obey_littles_law() {
    let sizes = exponential(60_000.0);
    let mut n = only(vec![web("newreno", &[0], 150.0, sizes, 60.0)], link("l", 1e8, 0.005, 1 << 30).to_vec(), 60.0);
    n.sample_s = 0.01;
    let (sim, summary) = run(&n);
    let web = flows_of(&summary);
    let mean = mean(column(sim.series()[2], "flows"));
    let time_s = web.flow_completion_ms.mean.unwrap() * 1e-3 + 0.005 + 3.2e-6;
    assert!(mean > 5.0, "{mean}");
    assert_close(mean, web.flows_started as f64 / 60.0 * time_s, 0.01);
    assert!(web.flows_open_max as f64 > mean);
}

/// Memory grows with the number of concurrent flows only, because the slots of finished flows are reused.
#[test]
fn memory_does_not_grow_with_the_total_number_of_flows() {
    for (protocol, timers) in [("newreno", 1), ("maxnet", 1), ("rcp", 600)] {
        let traffic = web(protocol, &[0], 500.0, constant(3000.0), 100.0);
        let mut n = only(vec![traffic], link("l", 1e8, 0.005, 1 << 20).to_vec(), 100.0);
        n.sample_s = 10.0;
        let mut sim = run_until(&n, 10.0);
        let early = sim.heap_bytes();
        sim.advance(Instant::from_secs(100.0));
        let web = flows_of(&sim.summary()).clone();
        assert!(web.flows_started > 45_000 && web.flows_open_max < 100, "{web:?}");
        assert!(sim.heap_bytes().0 <= 2 * early.0, "{early:?} became {:?}", sim.heap_bytes());
        // One entry per flow, source and link, and the sample. Finished flows of a paced law leave entries in the heap
        // for the second of a retransmission timeout.
        assert!(sim.pending() as u64 <= web.flows_open_max + 4 + timers, "{protocol}: {}", sim.pending());
    }
}

/// Late packets of a closed connection are acknowledged by a receiver that no later flow has used, and change nothing else.
///
/// The smallest timeout is far below the delay of a burst's queue, so packets are sent again although none is lost. Packets
/// that arrive after the last acknowledgement are copies. The sender ignores their acknowledgements.
#[test]
fn late_packets_of_a_finished_flow_change_nothing() {
    let mut burst = packets(TrafficKind::OnOff, 6e7, 55.0);
    burst.periods = Some(periods(0.01, 0.1));
    let traffic = vec![web("newreno", &[0], 20.0, constant(4000.0), 55.0), burst];
    let mut n = only(traffic, link("l", 1e7, 0.005, 1 << 40).to_vec(), 60.0);
    n.rto_min_s = 0.001;
    n.rttvar_min_s = 0.001;
    let (sim, summary) = run(&n);
    let web = flows_of(&summary);
    let ledger = sim.ledger();
    assert_eq!((ledger.sent, ledger.in_transit), (ledger.delivered, 0));
    assert!(web.timeouts > 50, "{web:?}");
    assert_eq!(web.flows_completed, web.flows_started);
    let sent = summary.traffic[0].packets_sent;
    assert!(web.retransmissions > 50 && sent == 3 * web.flows_started + web.retransmissions, "{web:?}");
    assert_eq!(summary.traffic[0].packets_received, sent, "none is lost, and each slot's next SYN is behind them");
    // SYNs and SYN-ACKs, data, an acknowledgement for each packet, and the bursts.
    assert_eq!(ledger.sent, 2 * web.flows_started + 2 * sent + summary.traffic[1].packets_sent);
    // Each flow's payload is counted once.
    assert_close(web.goodput_bps.unwrap() * 55.0 / 8.0, web.flows_started as f64 * 4000.0, 1e-12);
}

/// A source that has stopped starts no more flows, but open flows continue.
#[test]
fn open_flows_continue_after_their_source_stops() {
    let n = only(vec![web("newreno", &[0], 50.0, constant(1e6), 1.0)], link("l", 1e7, 0.01, 1 << 20).to_vec(), 60.0);
    let (sim, summary) = run(&n);
    let web = flows_of(&summary);
    assert!(web.flows_started > 30);
    assert_eq!(web.flows_completed, web.flows_started);
    assert!(web.flow_completion_ms.max.unwrap() > 20_000.0, "40 MB at 10 Mbit/s");
    assert_eq!(sim.ledger().in_transit, 0);
}

/// Each source has its own random stream. Other sources, the protocol and the distribution of sizes do not change a
/// source's flows.
#[test]
fn each_source_has_its_own_draws() {
    let started = |mut traffic: Vec<TrafficSpec>, seed: u64| {
        traffic.push(poisson(1e6, 20.0));
        let mut n = only(traffic, link("l", 1e8, 0.001, 1 << 30).to_vec(), 20.0);
        n.seed = seed;
        let (sim, summary) = run(&n);
        let sent = summary.traffic.last().unwrap().packets_sent;
        (flows_of(&summary).flows_started, sent, sim.series()[2].columns().to_vec(), summary)
    };
    let sizes = exponential(9000.0);
    let first = web("newreno", &[0], 50.0, sizes.clone(), 20.0);
    let a = started(vec![first.clone()], 1);
    let b = started(vec![first.clone()], 1);
    assert_eq!((&a.2[2], &a.3), (&b.2[2], &b.3));
    assert_ne!(started(vec![first.clone()], 2).0, a.0);
    let second = started(vec![first.clone(), web("newreno", &[0], 20.0, sizes, 20.0)], 1);
    assert_eq!(second.0, a.0);
    assert_ne!(second.1, a.1, "the third source is not the second");
    assert_eq!(started(vec![web("maxnet", &[0], 50.0, constant(100.0), 20.0)], 1).0, a.0);
}

/// The router law of arriving flows runs on the links that their data cross, and records its state.
#[test]
fn arriving_flows_have_router_laws() {
    let n = only(vec![web("rcp", &[0], 20.0, constant(30_000.0), 5.0)], link("l", 1e7, 0.01, 1 << 20).to_vec(), 5.0);
    let (sim, summary) = run(&n);
    let [flows, links, _] = sim.series();
    assert!(!flows.names().iter().any(|name| name.starts_with("rcp_")));
    let column = links.names().iter().position(|name| name.starts_with("rcp_")).expect("a signal of the router law");
    let finite = links.columns()[column].iter().filter(|x| x.is_finite()).count();
    assert_eq!(finite, links.columns()[column].len() / 2, "on the forward direction only");
    assert_eq!(flows_of(&summary).protocol, "rcp");
}

/// Completion times count only flows that started in the window, in summaries before and after it.
#[test]
fn completion_times_count_flows_that_started_in_the_window() {
    let mut n =
        only(vec![web("newreno", &[0], 100.0, constant(1460.0), 9.0)], link("l", 1e8, 0.01, 1 << 20).to_vec(), 10.0);
    n.measure_s = [4.0, 6.0];
    let mut sim = run_until(&n, 3.0);
    assert_eq!(flows_of(&sim.summary()).flow_completion_ms.count, 0);
    assert_eq!(sim.summary().traffic[0].rate_bps, None);
    sim.advance(Instant::from_secs(10.0));
    let summary = sim.summary();
    let web = flows_of(&summary);
    assert!((150..250).contains(&web.flow_completion_ms.count), "{web:?}");
    assert!(web.flows_completed > 800);
    assert_close(web.goodput_bps.unwrap(), web.flow_completion_ms.count as f64 * 1460.0 * 8.0 / 2.0, 0.02);
}

#[test]
fn invalid_traffic_is_refused_in_one_sentence() {
    let refused = |change: &dyn Fn(&mut TrafficSpec)| {
        let mut n =
            only(vec![web("newreno", &[0], 1.0, constant(1.0), 1.0)], link("l", 1e8, 0.0, 1 << 20).to_vec(), 1.0);
        change(&mut n.traffic[0]);
        refusal(n)
    };
    let either = |name| format!("traffic.web.rate: {name} needs either a packet rate or flow arrivals");
    let on = "traffic.web.on: only allowed for an on–off source";
    assert_eq!(refused(&|t| t.rate_bps = Some(1e6)), either("web"));
    assert_eq!(refused(&|t| t.flows = None), either("web"));
    assert_eq!(refused(&|t| t.kind = TrafficKind::Cbr), either("cbr"));
    let poisson = |t: &mut TrafficSpec| t.kind = TrafficKind::Poisson;
    assert_eq!(
        refused(&|t| {
            poisson(t);
            t.flows = None;
        }),
        either("poisson")
    );
    assert_eq!(
        refused(&|t| {
            poisson(t);
            t.rate_bps = Some(1e6);
        }),
        either("poisson")
    );
    let on_off = |t: &mut TrafficSpec, rate_bps, between| {
        (t.kind, t.flows, t.rate_bps, t.periods) = (TrafficKind::OnOff, None, Some(rate_bps), between);
    };
    assert_eq!(refused(&|t| on_off(t, 1e6, None)), on);
    assert_eq!(refused(&|t| t.periods = Some(periods(1.0, 1.0))), on);
    assert_eq!(
        refused(&|t| on_off(t, 12e6, Some(periods(0.0005, 1.0)))),
        "traffic.web.on: the mean must be at least one packet time, 0.001 s"
    );
    assert_eq!(
        refused(&|t| on_off(t, 12e6, Some(periods(1.0, 0.0)))),
        "traffic.web.off: mean must be above zero, got 0"
    );
    let arrivals = |per_s: f64| refused(&|t| t.flows.as_mut().unwrap().arrivals_per_s = per_s);
    assert_eq!(arrivals(0.0), "traffic.web.arrival_rate: must be above zero, got 0");
    assert_eq!(arrivals(1e10), "traffic.web.arrival_rate: must be at most 1e9 flows per second");
    let sizes = refused(&|t| t.flows.as_mut().unwrap().sizes_bytes = constant(-1.0));
    assert_eq!(sizes, "traffic.web.sizes: mean must be above zero, got -1");
    let unknown = refused(&|t| common_flow(t).protocol = "tcp".into());
    assert_eq!(unknown, "traffic.web.protocol: unknown protocol \"tcp\"");
    let path = "traffic.web.path: must name at least one link";
    assert_eq!(refused(&|t| common_flow(t).reverse = vec![]), path);
    assert_eq!(refused(&|t| t.path = vec![7]), path);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Packets are conserved while flow slots are reused, whatever is lost or late.
    #[test]
    fn packets_are_conserved_while_slots_are_reused(
        protocol in 0..ProtocolId::ALL.len(),
        (rate, delay, buffer) in (1e6..2e7, 0.0..0.03, 3_000u64..60_000),
        [loss, duplicate, reorder] in prop::array::uniform3(prop_oneof![Just(0.0), 0.0..0.1]),
        (arrivals, mean, seed) in (1.0..200.0, 100.0..20_000.0, 0u64..1000),
        (pad, rto_min, delayed_ack) in (prop_oneof![Just(0.0), 0.0..0.02], prop_oneof![Just(1.0), 1e-3..0.1], any::<bool>()),
        at in 0.0..5.0,
    ) {
        let links = [link("a", rate, delay, buffer), link("b", 1.3 * rate, delay, buffer)].concat();
        let mut source = web(
            ProtocolId::ALL[protocol].info().name, &[0, 2], arrivals,
            Distribution::Pareto { mean, shape: 1.2, max: Some(50.0 * mean) }, 4.0,
        );
        common_flow(&mut source).pad_s = pad;
        common_flow(&mut source).delayed_ack = delayed_ack;
        let mut other = source.clone();
        other.path = vec![2];
        common_flow(&mut other).forward = vec![2];
        common_flow(&mut other).reverse = vec![3];
        let mut n = only(vec![source, other, poisson(0.1 * rate, 4.0)], links, 5.0);
        n.seed = seed;
        n.rto_min_s = rto_min;
        n.rttvar_min_s = rto_min.min(0.2);
        n.links[0].loss = loss;
        n.links[3].loss = loss;
        n.links[2].duplicate = duplicate;
        n.links[2].reorder = Some(ReorderSpec { share: reorder, delay_s: 0.02 });
        let (whole, summary) = run(&n);
        for sim in [&run_until(&n, at), &whole] {
            let l = sim.ledger();
            prop_assert_eq!(l.sent + l.duplicated, l.delivered + l.dropped + l.lost + l.in_transit);
            prop_assert!(sim.sacks_in_use() as u64 <= l.in_transit);
        }
        for source in &summary.traffic[..2] {
            let web = source.flows.as_ref().unwrap();
            prop_assert!(web.flows_completed <= web.flows_started);
            prop_assert!(web.flows_open_max <= web.flows_started);
            prop_assert!(source.packets_received <= source.packets_sent + whole.ledger().duplicated);
            let c = &web.flow_completion_ms;
            prop_assert_eq!(c.count, web.flows_completed);
            if let (Some(p50), Some(p90), Some(p99), Some(max)) = (c.p50, c.p90, c.p99, c.max) {
                prop_assert!(2e3 * delay <= p50 && p50 <= p90 && p90 <= p99 && p99 <= max);
            }
        }
    }
}
