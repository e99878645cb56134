//! Tests of links that lose, delay and duplicate packets, and of the reactions of hosts and queues.

use crate::common::{cbr, flow, link, network, refusal, run, run_until};
use proptest::prelude::*;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::Instant;
use waterfill_network::{
    BufferSpec, CodelSpec, DualPi2Spec, FqCodelSpec, FqPieSpec, Level, LinkSpec, LossSpec, Network, PieSpec, QueueSpec,
    RedSpec, ReorderSpec,
};

/// Returns a network of one flow without congestion: a window of ten packets on a link that holds eight hundred.
fn uncongested(faults: impl FnOnce(&mut LinkSpec)) -> Network {
    let mut n = network(60.0, link("l", 1e8, 0.05, 1_000_000).to_vec(), vec![flow("f", "window", &[0], 60.0)]);
    n.set_param("window", "packets", 10.0);
    n.measure_s = [0.0, 60.0];
    faults(&mut n.links[0]);
    n
}

#[test]
fn periodic_loss_drops_every_thousandth_packet_and_no_other() {
    let s = run(&uncongested(|l| l.loss_model = Some(LossSpec::Periodic { every: 1000 }))).1;
    let sent = s.flows[0].packets_sent;
    assert!(sent > 5_000, "{sent}");
    assert_eq!(s.links[0].lost, sent / 1000);
    assert_eq!(s.flows[0].retransmissions, sent / 1000);
    assert_eq!(s.flows[0].timeouts, 0);
    assert_eq!(s.links[1].lost, 0, "acknowledgements are not data");
}

#[test]
fn an_independent_loss_model_equals_the_plain_loss() {
    let plain = run(&uncongested(|l| l.loss = 0.02)).1;
    assert_eq!(plain, run(&uncongested(|l| l.loss_model = Some(LossSpec::Independent { p: 0.02 }))).1);
    assert!(plain.links[0].lost > 50);
}

#[test]
fn bursts_lose_the_same_share_and_cause_more_timeouts() {
    // p/(p + r) = 0.02 in both runs.
    let bursts = LossSpec::GilbertElliott { p: 0.005, r: 0.245, loss_good: 0.0, loss_bad: 1.0 };
    let s = run(&uncongested(|l| l.loss_model = Some(bursts))).1;
    let sent = s.flows[0].packets_sent as f64;
    let share = s.links[0].lost as f64 / sent;
    // The standard deviation of a share with bursty losses: √(π_b π_g (1 + λ)/(1 − λ)/n), λ = 1 − p − r = 0.75.
    let sigma = (0.02 * 0.98 * 7.0 / sent).sqrt();
    assert!((share - 0.02).abs() < 5.0 * sigma, "{share}");
    let independent = run(&uncongested(|l| l.loss = 0.02)).1;
    assert!(s.flows[0].timeouts > independent.flows[0].timeouts, "bursts lose whole windows");
}

/// A packet that more than three others overtake looks lost, so it is sent again and arrives twice.
#[test]
fn late_packets_cause_retransmissions() {
    let late = |delay_s: f64| {
        let n = uncongested(|l| {
            l.reorder = Some(ReorderSpec { share: 0.01, delay_s });
            l.rate_bps = 1e6;
        });
        let (sim, s) = run(&n);
        assert_eq!((s.links[0].lost, s.links[0].drops), (0, 0));
        let l = sim.ledger();
        assert_eq!(l.sent, l.delivered + l.in_transit, "no packet is lost or duplicated");
        s.flows[0].clone()
    };
    // A packet takes 12 ms. Late by one position: one packet overtakes it, which is harmless. By six: more than three
    // duplicates.
    assert_eq!(late(0.013).retransmissions, 0);
    let far = late(0.072);
    let share = far.retransmissions as f64 / far.packets_sent as f64;
    assert!((share - 0.01).abs() < 5.0 * (0.01 * 0.99 / far.packets_sent as f64).sqrt(), "{share}");
    assert_eq!(far.timeouts, 0);
}

#[test]
fn duplicates_arrive_twice_and_count_once() {
    let mut n = uncongested(|l| l.duplicate = 0.1);
    n.flows[0].size_bytes = Some(4_000_000);
    let (sim, s) = run(&n);
    let (l, f) = (sim.ledger(), &s.flows[0]);
    assert_eq!(l.sent + l.duplicated, l.delivered);
    let expected = f.packets_sent as f64 * 0.1;
    assert!((l.duplicated as f64 - expected).abs() < 5.0 * (expected * 0.9).sqrt(), "{}", l.duplicated);
    let [from, to] = f.active_s.unwrap();
    assert!((f.goodput_bps.unwrap() * (to - from) / 8.0 - 4e6).abs() < 1e-3);
    // A duplicate packet causes one duplicate acknowledgement; a retransmission needs three.
    assert_eq!((f.retransmissions, f.timeouts), (0, 0));
}

/// Acknowledgements of a flow in the other direction are duplicated together with their selective blocks.
#[test]
fn acknowledgements_with_blocks_may_be_duplicated_and_late() {
    let mut n = uncongested(|l| {
        l.duplicate = 0.3;
        l.reorder = Some(ReorderSpec { share: 0.3, delay_s: 0.004 });
    });
    n.links[1].loss = 0.05;
    n.flows[0].forward = vec![1];
    n.flows[0].reverse = vec![0];
    n.flows[0].size_bytes = Some(1_000_000);
    let (sim, s) = run(&n);
    assert!(s.flows[0].completed_s.is_some() && s.flows[0].retransmissions > 10);
    assert_eq!((sim.sacks_in_use(), sim.ledger().in_transit), (0, 0));
}

/// `[rfc8985:§7.2]` Lost packets that wait for pacing are not counted once more by a probe, which made more packets
/// outstanding than were sent.
#[test]
fn no_probe_while_lost_packets_wait_for_pacing() {
    let mut n = network(3.0, link("l", 1e7, 0.004, 0).to_vec(), vec![flow("f", "prague", &[0], 3.0)]);
    n.flows[0].count = 3;
    let [out, back] = &mut n.links[..] else { unreachable!("both directions of one link") };
    (out.buffer, back.buffer) = (BufferSpec::Packets(8), BufferSpec::Packets(2));
    out.loss_model = Some(LossSpec::Periodic { every: 73 });
    out.reorder = Some(ReorderSpec { share: 0.150_184_442_872_732_64, delay_s: 0.129_505_998_064_694_34 });
    back.loss = 0.171_345_311_003_676_67;
    let s = run(&n).1;
    for f in &s.flows {
        assert!(f.retransmissions > 0 && f.packets_sent > 50, "{f:?}");
    }
}

#[test]
fn invalid_faults_are_refused_in_one_sentence() {
    let refused = |faults: fn(&mut LinkSpec)| refusal(uncongested(faults));
    let independent = |p| Some(LossSpec::Independent { p });
    assert_eq!(
        refusal(uncongested(|l| l.loss_model = independent(1.5))),
        "link.l.loss_model.p: must be in [0, 1], got 1.5"
    );
    let never = refused(|l| l.loss_model = Some(LossSpec::Periodic { every: 0 }));
    assert_eq!(never, "link.l.loss_model.every: must be a whole number above zero, got 0");
    let at_once = refused(|l| l.reorder = Some(ReorderSpec { share: 0.1, delay_s: 0.0 }));
    assert!(at_once.starts_with("link.l.reorder.delay: "));
    assert_eq!(refused(|l| l.duplicate = -0.1), "link.l.duplicate: must be in [0, 1], got -0.1");
    let both = refusal(uncongested(|l| (l.loss_model, l.loss) = (independent(0.1), 0.1)));
    assert_eq!(both, "link.l.loss_model: not allowed together with loss");
}

// ---------------------------------------------------------------- random faults

fn loss_models() -> impl Strategy<Value = Option<LossSpec>> {
    prop_oneof![
        Just(None),
        (0.0..0.2).prop_map(|p| Some(LossSpec::Independent { p })),
        (0.0..0.1, 0.1..1.0, 0.5..1.0).prop_map(|(p, r, loss_bad)| Some(LossSpec::GilbertElliott {
            p,
            r,
            loss_good: 0.0,
            loss_bad
        })),
        (2u64..200).prop_map(|every| Some(LossSpec::Periodic { every })),
    ]
}

fn queues() -> impl Strategy<Value = QueueSpec> {
    let codel = CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true };
    let packets = |n: u32| Level::Packets(f64::from(n));
    prop_oneof![
        Just(QueueSpec::default()),
        (0u32..20).prop_map(move |k| QueueSpec::Droptail { mark_at: Some(packets(k)), ramp: None }),
        (any::<bool>(), 1u32..8, 1u32..10, 0.05..1.0, any::<[bool; 2]>()).prop_map(
            move |(choke, min, more, max_p, [gentle, ecn])| {
                let (min_threshold, max_threshold) = (packets(min), packets(min + more));
                let spec = RedSpec { min_threshold, max_threshold, max_p, weight: 0.1, gentle, ecn };
                if choke { QueueSpec::Choke(spec) } else { QueueSpec::Red(spec) }
            }
        ),
        Just(QueueSpec::Codel(codel.clone())),
        (500u32..4000, 1u32..6).prop_map(move |(quantum_bytes, flows)| {
            QueueSpec::FqCodel(FqCodelSpec { codel: codel.clone(), quantum_bytes, flows })
        }),
        (0.001..0.05, 0.001..0.2, 0u64..4).prop_map(|(target_s, rtt_max_s, ramp_packets)| {
            let (coupling, classic_share, ramp_start_s, ramp_range_s) = (2.0, 0.1, 0.8e-3, 0.4e-3);
            QueueSpec::DualPi2(DualPi2Spec {
                target_s,
                rtt_max_s,
                coupling,
                ramp_start_s,
                ramp_range_s,
                ramp_packets,
                classic_share,
            })
        }),
        (any::<[bool; 2]>(), 0.001..0.05, 500u32..4000, 1u32..6).prop_map(
            move |([ecn, many], update_s, quantum_bytes, flows)| {
                let (target_s, alpha_hz, beta_hz, max_burst_s) = (0.005, 0.125, 1.25, 0.02);
                let pie = PieSpec { target_s, update_s, alpha_hz, beta_hz, max_burst_s, ecn, mark_below: 0.1 };
                if many { QueueSpec::FqPie(FqPieSpec { pie, quantum_bytes, flows }) } else { QueueSpec::Pie(pie) }
            }
        ),
    ]
}

/// Queue, buffer and faults of one direction of a link.
#[derive(Clone, Debug)]
struct Impairment {
    queue: QueueSpec,
    loss: Option<LossSpec>,
    late: Option<(f64, f64)>,
    duplicate: f64,
    buffer_packets: u64,
}

impl Impairment {
    fn apply(&self, link: &mut LinkSpec) {
        link.queue = self.queue.clone();
        link.loss_model = self.loss;
        if let Some((share, delay_s)) = self.late {
            link.reorder = Some(ReorderSpec { share, delay_s });
        }
        link.duplicate = self.duplicate;
        link.buffer = BufferSpec::Packets(self.buffer_packets);
    }
}

fn impairments() -> impl Strategy<Value = Impairment> {
    let share = || prop_oneof![Just(0.0), 0.0..0.3];
    (queues(), loss_models(), prop::option::of((share(), 0.000_1..0.2)), share(), 2u64..40).prop_map(
        |(queue, loss, late, duplicate, buffer_packets)| Impairment { queue, loss, late, duplicate, buffer_packets },
    )
}

/// Draws any protocol, so that every way to detect and repair losses is covered.
fn protocols() -> impl Strategy<Value = &'static str> {
    (0..ProtocolId::ALL.len()).prop_map(|i| ProtocolId::ALL[i].info().name)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Every byte is delivered once and in order. With any mix of loss, reordering and duplication in both directions,
    /// a finite flow completes with exactly its size, and then sends nothing more.
    #[test]
    fn no_byte_is_lost_or_delivered_twice(
        protocol in protocols(),
        out in impairments(),
        back in impairments(),
        size in 1u64..300_000,
        seed in 0u64..1000,
        [delayed_ack, ecn, paced] in any::<[bool; 3]>(),
        initial in 1u32..40,
    ) {
        // Timeouts double up to a minute: 50,000 s hold several hundred of them, and idle time costs nothing.
        let mut n = network(50_000.0, link("l", 1e7, 0.01, 0).to_vec(), vec![flow("f", protocol, &[0], 50_000.0)]);
        n.sample_s = 1000.0;
        n.measure_s = [0.0, 50_000.0];
        n.rto_min_s = 0.2;
        n.seed = seed;
        n.flows[0].size_bytes = Some(size);
        n.flows[0].delayed_ack = delayed_ack;
        n.flows[0].initial_window_packets = f64::from(initial);
        n.flows[0].pacing = paced.then_some(true);
        let ecn_capable = ProtocolId::by_name(protocol).unwrap().info().host.ecn != waterfill_laws::protocol::Ecn::Off;
        n.flows[0].ecn = Some(ecn && ecn_capable);
        out.apply(&mut n.links[0]);
        back.apply(&mut n.links[1]);
        // Routers' timers continue after the flow, so the run ends when nothing is in transit.
        let (mut sim, mut at) = (run_until(&n, 0.0), 1.0);
        loop {
            sim.advance(Instant::from_secs(at));
            let idle = sim.ledger().in_transit == 0 && sim.summary().flows[0].completed_s.is_some();
            if idle || at >= 50_000.0 {
                break;
            }
            at *= 1.5;
        }
        let summary = sim.summary();
        let f = &summary.flows[0];
        prop_assert!(f.completed_s.is_some(), "{f:?}");
        let [from, to] = f.active_s.unwrap();
        let payload = f.goodput_bps.unwrap() * (to - from) / 8.0;
        prop_assert!((payload - size as f64).abs() < 1e-3, "{payload} of {size} bytes");
        let packets = size.div_ceil(u64::from(1500 - 40 - ProtocolId::by_name(protocol).unwrap().header_bytes() as u16));
        prop_assert_eq!(f.packets_sent - f.retransmissions, packets, "each packet is new exactly once");
        let l = sim.ledger();
        prop_assert_eq!(l.in_transit, 0, "the sender knows that all has arrived");
        prop_assert_eq!(l.sent + l.duplicated, l.delivered + l.dropped + l.lost);
        prop_assert_eq!(sim.sacks_in_use(), 0);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every packet sent or duplicated is delivered, dropped, lost or in transit.
    #[test]
    fn packets_are_conserved(
        impairments in prop::collection::vec(impairments(), 4),
        flows in prop::collection::vec((protocols(), 0usize..4, any::<bool>()), 1..4),
        cbr_bps in prop::option::of(1e5..3e7),
        seed in 0u64..1000,
        at in 0.0..3.0,
    ) {
        let mut links = [link("a", 1e7, 0.003, 0), link("b", 8e6, 0.0, 0)].concat();
        for (link, impairment) in links.iter_mut().zip(&impairments) {
            impairment.apply(link);
        }
        let paths: [&[u32]; 4] = [&[0], &[0, 2], &[3, 1], &[2]];
        let flows = flows.iter().enumerate().map(|(i, &(protocol, path, padded))| {
            let mut f = flow(&format!("f{i}"), protocol, paths[path], 3.0);
            f.pad_s = if padded { 0.004 } else { 0.0 };
            f.count = 2;
            f
        });
        let mut n = network(3.0, links, flows.collect());
        n.seed = seed;
        if let Some(rate) = cbr_bps {
            n.traffic = vec![cbr("cbr", &[0, 2], rate, [0.3, 2.5], 700)];
        }
        for mut sim in [run_until(&n, at), run(&n).0] {
            let l = sim.ledger();
            prop_assert_eq!(l.sent + l.duplicated, l.delivered + l.dropped + l.lost + l.in_transit);
            prop_assert!(sim.sacks_in_use() as u64 <= l.in_transit);
            for (link, impairment) in sim.summary().links.iter().zip(&impairments) {
                prop_assert!(link.queue_packets.max <= impairment.buffer_packets as f64);
                prop_assert!(link.queue_bytes.mean >= 0.0 && link.queue_bytes.p99 <= link.queue_bytes.max);
                prop_assert!((0.0..=1.0 + 1e-6).contains(&link.utilization));
            }
            let l = sim.ledger();
            prop_assert_eq!(l.sent + l.duplicated, l.delivered + l.dropped + l.lost + l.in_transit);
        }
    }

    /// The same seed gives equal bytes, in one run or in slices, because reading results changes nothing.
    #[test]
    fn reruns_are_identical(out in impairments(), back in impairments(), protocol in protocols(), slice in 0.01..1.0) {
        let mut n = network(3.0, link("l", 1e7, 0.004, 0).to_vec(), vec![flow("f", protocol, &[0], 3.0)]);
        n.flows[0].count = 3;
        out.apply(&mut n.links[0]);
        back.apply(&mut n.links[1]);
        let print = |mut sim: waterfill_sim::Simulation| {
            let summary = serde_json::to_string(&sim.summary()).unwrap();
            let series: Vec<u64> = sim.series().iter().flat_map(|s| s.columns()).flatten().map(|x| x.to_bits()).collect();
            (summary, series, sim.ledger())
        };
        let whole = print(run(&n).0);
        prop_assert!(whole == print(run(&n).0));
        let mut sliced = run_until(&n, 0.0);
        let mut t = 0.0;
        while t < 3.0 {
            t += slice;
            sliced.advance(Instant::from_secs(t));
        }
        prop_assert!(whole == print(sliced));
        let mut fine = n.clone();
        fine.sample_s = 0.003;
        let (mut a, mut b) = (run(&n).1, run(&fine).1);
        a.engine.events = 0;
        b.engine.events = 0;
        prop_assert_eq!(a, b, "more samples do not change the packets");
    }
}
