//! Tests of queue disciplines in a network, each against its purpose.

use crate::common::{cbr, column, flow, link, mean, network, refusal, run};
use waterfill_network::summary::Summary;
use waterfill_network::{
    BufferSpec, CodelSpec, DualPi2Spec, FqCodelSpec, FqPieSpec, Level, Network, PieSpec, QueueSpec, RedSpec,
};

/// Returns `count` flows over one bottleneck of 10 Mbit/s, with an unresponsive source if its rate is given.
fn bottleneck(queue: &QueueSpec, protocol: &str, count: u32, cbr_bps: Option<f64>) -> Network {
    let mut n = network(30.0, link("l", 1e7, 0.02, 250_000).to_vec(), vec![flow("f", protocol, &[0], 30.0)]);
    n.links[0].queue = queue.clone();
    n.flows[0].count = count;
    n.flows[0].stagger_s = 0.1;
    if let Some(rate) = cbr_bps {
        n.traffic = vec![cbr("cbr", &[0], rate, [0.0, 30.0], 1500)];
    }
    n
}

fn red(min: f64, max: f64) -> RedSpec {
    RedSpec {
        min_threshold: Level::Packets(min),
        max_threshold: Level::Packets(max),
        max_p: 0.1,
        weight: 0.002,
        gentle: true,
        ecn: true,
    }
}

fn codel_spec() -> CodelSpec {
    CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true }
}

fn codel() -> QueueSpec {
    QueueSpec::Codel(codel_spec())
}

fn fq_codel() -> FqCodelSpec {
    FqCodelSpec { codel: codel_spec(), quantum_bytes: 1514, flows: 1024 }
}

fn pie() -> PieSpec {
    PieSpec {
        target_s: 0.015,
        update_s: 0.015,
        alpha_hz: 0.125,
        beta_hz: 1.25,
        max_burst_s: 0.15,
        ecn: true,
        mark_below: 0.1,
    }
}

fn fq_pie() -> QueueSpec {
    QueueSpec::FqPie(FqPieSpec { pie: pie(), quantum_bytes: 1514, flows: 1024 })
}

fn dualpi2() -> QueueSpec {
    QueueSpec::DualPi2(DualPi2Spec {
        target_s: 0.015,
        rtt_max_s: 0.1,
        coupling: 2.0,
        ramp_start_s: 0.8e-3,
        ramp_range_s: 0.4e-3,
        ramp_packets: 1,
        classic_share: 0.1,
    })
}

fn droptail() -> QueueSpec {
    QueueSpec::default()
}

fn rates(s: &Summary) -> Vec<f64> {
    s.flows.iter().map(|f| f.rate_bps.unwrap()).collect()
}

#[test]
fn red_holds_its_average_between_the_thresholds() {
    for protocol in ["sack", "newreno"] {
        let s = run(&bottleneck(&QueueSpec::Red(red(20.0, 60.0)), protocol, 8, None)).1;
        let queue = s.links[0].queue_packets.mean;
        assert!((20.0..60.0).contains(&queue), "{protocol}: {queue} packets");
        assert!(s.links[0].utilization > 0.95, "{protocol}: {}", s.links[0].utilization);
        assert!(s.links[0].drops > 0 && s.links[0].marks == 0);
        let full = run(&bottleneck(&droptail(), protocol, 8, None)).1;
        assert!(full.links[0].queue_packets.mean > 2.0 * queue, "{protocol}: {}", full.links[0].queue_packets.mean);
    }
}

#[test]
fn red_marks_ecn_capable_flows_and_drops_nothing() {
    let mut n = bottleneck(&QueueSpec::Red(red(20.0, 60.0)), "sack", 8, None);
    n.flows[0].ecn = Some(true);
    n.measure_s = [10.0, 30.0];
    let s = run(&n).1;
    assert!(s.links[0].marks > 20, "{}", s.links[0].marks);
    assert_eq!(s.links[0].drops, 0);
    assert!(s.links[0].queue_packets.mean < 60.0 && s.links[0].utilization > 0.95);
    assert_eq!(s.links[1].marks, 0, "the reverse link is not congested");
}

/// Returns the queueing delays of the bottleneck's samples after 25 s, in seconds.
fn delays_s(sim: &waterfill_sim::Simulation, rate_bps: f64) -> Vec<f64> {
    let [_, links, _] = sim.series();
    let rows = column(links, "time_s").iter().zip(column(links, "link")).zip(column(links, "queue_bytes"));
    rows.filter(|((t, link), _)| **t > 25.0 && **link == 0.0).map(|(_, queue)| queue * 8.0 / rate_bps).collect()
}

/// CoDel holds the smallest delay of an interval at 5 to 10 % of the interval of 100 ms (RFC 8289 §4.3). Tail drop
/// keeps most of its 100 ms of buffer full. Delays are measured from 25 s on, because NewReno without selective
/// acknowledgements takes that long to repair the losses of its first slow start.
#[test]
fn codel_holds_its_target() {
    for (protocol, count) in [("sack", 4), ("sack", 16), ("newreno", 4)] {
        let standing = |queue| {
            let mut n = bottleneck(queue, protocol, count, None);
            n.sample_s = 0.001;
            n.duration_s = 35.0;
            n.flows[0].stop_s = 35.0;
            n.measure_s = [25.0, 35.0];
            for l in 0..2 {
                n.links[l].rate_bps = 1e8;
                n.links[l].delay_s = 0.005;
                n.links[l].buffer = BufferSpec::Bytes(1_250_000);
            }
            let (sim, s) = run(&n);
            assert!(s.links[0].utilization > 0.98, "{protocol} {count}: {}", s.links[0].utilization);
            let smallest: Vec<f64> =
                delays_s(&sim, 1e8).chunks(100).map(|ms| ms.iter().copied().fold(f64::INFINITY, f64::min)).collect();
            mean(&smallest)
        };
        let (codel, tail) = (standing(&codel()), standing(&droptail()));
        assert!(codel < 0.01, "{protocol} {count}: {codel} s");
        assert!(tail > 0.05, "{protocol} {count}: {tail} s");
    }
}

#[test]
fn codel_marks_instead_of_dropping() {
    let mut n = bottleneck(&codel(), "sack", 4, None);
    n.flows[0].ecn = Some(true);
    let s = run(&n).1;
    assert!(s.links[0].marks > 10 && s.links[0].drops == 0, "{:?}", s.links[0]);
    let full = run(&bottleneck(&droptail(), "sack", 4, None)).1;
    assert!(s.links[0].queue_bytes.mean < 0.25 * full.links[0].queue_bytes.mean);
}

/// PIE holds the mean delay near its target, whatever the number of flows, and fills the link.
#[test]
fn pie_holds_its_target() {
    for count in [4, 16, 40] {
        let mut n = bottleneck(&QueueSpec::Pie(pie()), "sack", count, None);
        n.measure_s = [15.0, 30.0];
        let s = run(&n).1;
        let delay_s = s.links[0].queue_bytes.mean * 8.0 / 1e7;
        assert!((0.01..0.022).contains(&delay_s), "{count} flows: {delay_s} s");
        assert!(s.links[0].utilization > 0.95 && s.links[0].drops > 0, "{count} flows: {:?}", s.links[0]);
    }
}

#[test]
fn pie_marks_instead_of_dropping() {
    let mut n = bottleneck(&QueueSpec::Pie(pie()), "sack", 4, None);
    n.flows[0].ecn = Some(true);
    n.measure_s = [10.0, 30.0];
    let s = run(&n).1;
    assert!(s.links[0].marks > 10 && s.links[0].drops == 0, "{:?}", s.links[0]);
}

/// FQ-PIE gives an unresponsive source that offers the whole link's rate one share, like FQ-CoDel.
#[test]
fn fq_pie_shares_by_flow() {
    let s = run(&bottleneck(&fq_pie(), "sack", 11, Some(1e7))).1;
    let share = 1e7 / 12.0;
    for rate in rates(&s).into_iter().chain([s.traffic[0].rate_bps.unwrap()]) {
        assert!((rate / share - 1.0).abs() < 0.06, "{rate} of {share} bit/s");
    }
    assert!(s.links[0].utilization > 0.98);
}

/// Returns a Prague and a CUBIC flow in one `dualpi2`, at this rate and base RTT.
fn prague_and_cubic(rate_bps: f64, rtt_s: f64) -> Summary {
    let buffer = (rate_bps / 8.0 * 0.25) as u64;
    let flows = ["prague", "cubic"].map(|protocol| flow(protocol, protocol, &[0], 60.0)).to_vec();
    let mut n = network(60.0, link("l", rate_bps, rtt_s / 2.0, buffer).to_vec(), flows);
    n.links[0].queue = dualpi2();
    n.measure_s = [20.0, 60.0];
    run(&n).1
}

/// Prague and CUBIC share a coupled queue within a factor of two at equal RTTs, and Prague's packets hardly wait.
#[test]
fn prague_and_cubic_share_a_dualpi2() {
    for rate_bps in [2e7, 1e8] {
        for rtt_s in [0.01, 0.02, 0.04] {
            let s = prague_and_cubic(rate_bps, rtt_s);
            let ratio = rates(&s)[0] / rates(&s)[1];
            let delay_ms = s.flows[0].rtt_ms.mean.unwrap() - rtt_s * 1e3;
            println!(
                "{rate_bps:e} bit/s, {rtt_s} s: ratio {ratio:.2}, L4S delay {delay_ms:.2} ms, {:?}",
                s.flows[0].rtt_ms
            );
            assert!((0.5..2.0).contains(&ratio), "{rate_bps:e} bit/s, {rtt_s} s: {:?}", rates(&s));
            assert!(delay_ms < 2.0, "{rate_bps:e} bit/s, {rtt_s} s: {:?}", s.flows[0].rtt_ms);
            assert!(s.links[0].utilization > 0.9, "{:?}", s.links[0]);
        }
    }
}

/// AccECN and RFC 8257's feedback tell DCTCP the same marks. With delayed acknowledgements they differ only in timing.
#[test]
fn dctcp_behaves_alike_with_both_feedbacks() {
    let queue = QueueSpec::Droptail { mark_at: Some(Level::Packets(20.0)), ramp: None };
    for delayed_ack in [false, true] {
        let of = |feedback: &str| {
            let mut n = bottleneck(&queue, "dctcp", 4, None);
            n.flows[0].ecn_feedback = Some(feedback.to_owned());
            n.flows[0].delayed_ack = delayed_ack;
            run(&n).1
        };
        let (flags, counted) = (of("dctcp"), of("accecn"));
        if !delayed_ack {
            assert_eq!(rates(&flags), rates(&counted));
        }
        let queue = |s: &Summary| s.links[0].queue_packets.mean;
        assert!((queue(&flags) / queue(&counted) - 1.0).abs() < 0.2, "{} {}", queue(&flags), queue(&counted));
        assert!(counted.links[0].marks > 100 && counted.links[0].drops == 0);
    }
}

/// A flow's codepoint chooses its queue: CUBIC that claims ECT(1) takes the L queue and is marked like Prague.
#[test]
fn the_codepoint_chooses_the_queue() {
    let delay_ms = |codepoint: &str| {
        let mut n = bottleneck(&dualpi2(), "cubic", 2, None);
        n.flows[0].ecn = Some(true);
        n.flows[0].ecn_codepoint = Some(codepoint.to_owned());
        let s = run(&n).1;
        s.flows[0].rtt_ms.mean.unwrap() - 40.0
    };
    let (classic, low) = (delay_ms("ect0"), delay_ms("ect1"));
    assert!(classic > 8.0 && low < 4.0, "{classic} ms, {low} ms");
}

/// FQ-CoDel gives an unresponsive source that offers the whole link's rate one share, like each of eleven other flows.
#[test]
fn fq_codel_shares_by_flow() {
    let s = run(&bottleneck(&QueueSpec::FqCodel(fq_codel()), "sack", 11, Some(1e7))).1;
    let share = 1e7 / 12.0;
    for rate in rates(&s) {
        assert!((rate / share - 1.0).abs() < 0.06, "{rate} of {share} bit/s");
    }
    let cbr = s.traffic[0].rate_bps.unwrap();
    assert!((cbr / share - 1.0).abs() < 0.06, "{cbr} of {share} bit/s");
    assert!(s.links[0].utilization > 0.98);
    // With tail drop the source takes nearly all of the link.
    let s = run(&bottleneck(&droptail(), "sack", 11, Some(1e7))).1;
    assert!(s.traffic[0].rate_bps.unwrap() > 0.85 * 1e7);
}

/// A flow with a low rate finds its own queue empty and loses no packet.
#[test]
fn fq_codel_isolates_a_low_rate_flow() {
    let s = run(&bottleneck(&QueueSpec::FqCodel(fq_codel()), "sack", 8, Some(2e5))).1;
    let low = s.traffic[0].rate_bps.unwrap();
    assert!((low / 2e5 - 1.0).abs() < 0.01, "{low}");
    assert!(s.traffic[0].packets_sent - s.traffic[0].packets_received <= 1);
}

/// CHOKe limits an unresponsive source of 2 Mbit/s to a quarter of a 1 Mbit/s link with 32 TCPs, as in the paper's
/// figure. With RED the source gets nearly all of the link. Thresholds are 100 and 200 packets, and the buffer holds
/// 300 packets of 1 kB.
#[test]
fn choke_limits_an_unresponsive_source() {
    let share = |queue: fn(RedSpec) -> QueueSpec| {
        let mut n = bottleneck(&queue(red(100.0, 200.0)), "sack", 32, Some(2e6));
        n.packet_bytes = 1000;
        n.traffic[0].packet_bytes = 1000;
        n.traffic[0].stop_s = 200.0;
        n.flows[0].stop_s = 200.0;
        n.duration_s = 200.0;
        n.measure_s = [50.0, 200.0];
        for l in 0..2 {
            n.links[l].rate_bps = 1e6;
            n.links[l].delay_s = 0.001;
            n.links[l].buffer = BufferSpec::Bytes(300_000);
        }
        let s = run(&n).1;
        assert!(s.links[0].utilization > 0.97, "{}", s.links[0].utilization);
        s.traffic[0].rate_bps.unwrap() / 1e6
    };
    let (under_red, under_choke) = (share(QueueSpec::Red), share(QueueSpec::Choke));
    assert!(under_red > 0.9, "RED: {under_red}");
    assert!((0.2..0.3).contains(&under_choke), "CHOKe: {under_choke}");
}

/// A TCP reduces its window at marks above the level, and nothing is dropped. Without ECN the queue exceeds the level.
#[test]
fn marks_above_the_level_limit_the_queue_without_drops() {
    let standing = |mark_at: f64, ecn: bool| {
        let queue = QueueSpec::Droptail { mark_at: Some(Level::Packets(mark_at)), ramp: None };
        let mut n = bottleneck(&queue, "sack", 1, None);
        n.flows[0].ecn = Some(ecn);
        run(&n).1
    };
    let s = standing(20.0, true);
    assert!(s.links[0].marks > 0 && s.links[0].drops == 0);
    // After slow start the window grows by one packet per RTT until the sender learns of the mark, and then halves.
    assert!(s.links[0].queue_packets.max <= 23.0, "{:?}", s.links[0].queue_packets);
    assert!(s.links[0].queue_packets.max > 20.0, "{:?}", s.links[0].queue_packets);
    let without_ecn = standing(20.0, false);
    assert!(
        without_ecn.links[0].marks == 0 && without_ecn.links[0].queue_packets.mean > 60.0,
        "{:?}",
        without_ecn.links[0]
    );
}

/// A scheduler that only stores packets gives the same bytes as the drop-tail FIFO.
#[test]
fn a_passive_scheduler_equals_the_drop_tail_fifo() {
    let passive = QueueSpec::Codel(CodelSpec { target_s: 1e3, interval_s: 1e4, ecn: false });
    for delay_s in [0.0, 0.003, 0.02] {
        let mut n = bottleneck(&droptail(), "sack", 3, Some(4e6));
        n.flows.push(flow("explicit", "xcp", &[0], 8.0));
        n.duration_s = 8.0;
        n.measure_s = [2.0, 8.0];
        for l in 0..2 {
            n.links[l].delay_s = delay_s;
            n.links[l].buffer = BufferSpec::Bytes(20_000);
        }
        n.flows[0].pad_s = 0.01;
        n.links[0].loss = 0.01;
        let mut fifo = run(&n);
        n.links[0].queue = passive.clone();
        n.links[1].queue = passive.clone();
        let mut scheduler = run(&n);
        assert!(fifo.1.links[0].drops > 0 && fifo.1.links[0].lost > 0);
        // Losses are drawn when a packet is put on the wire, which is earlier where its departure time is known in
        // advance.
        fifo.1.links[0].lost = 0;
        scheduler.1.links[0].lost = 0;
        assert_eq!(fifo.1, scheduler.1, "delay {delay_s}");
        assert_eq!(fifo.0.ledger(), scheduler.0.ledger());
        for (fifo, scheduler) in fifo.0.series().iter().zip(scheduler.0.series()) {
            for ((name, a), b) in fifo.names().iter().zip(fifo.columns()).zip(scheduler.columns()) {
                let same = a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same || name == "lost", "{name}, delay {delay_s}");
            }
        }
    }
}

#[test]
fn invalid_parameters_are_refused_in_one_sentence() {
    let refused = |queue: QueueSpec| {
        let line = refusal(bottleneck(&queue, "sack", 1, None));
        assert!(!line.contains('\n'));
        line
    };
    let mixed = RedSpec { max_threshold: Level::Bytes(1e5), ..red(5.0, 15.0) };
    let line = refused(QueueSpec::Red(mixed));
    assert!(line.starts_with("link.l.queue_params.max_threshold: must be above min_threshold"));
    assert!(refused(QueueSpec::Choke(red(15.0, 15.0))).contains("must be above min_threshold"));
    let lazy = QueueSpec::Codel(CodelSpec { target_s: 0.2, ..codel_spec() });
    assert_eq!(refused(lazy), "link.l.queue_params.target: must be below interval");
    let none = QueueSpec::FqCodel(FqCodelSpec { flows: 0, ..fq_codel() });
    assert_eq!(refused(none), "link.l.queue_params.flows: must be 1 to 65536, got 0");
    let negative = QueueSpec::Droptail { mark_at: Some(Level::Packets(-1.0)), ramp: None };
    assert!(refused(negative).contains("must not be negative"));
}
