//! Tests of explicit and TCP flows on one bottleneck, with and without the module that protects explicit flows.

use crate::common::{column, flow, link, network, refusal, run};
use waterfill_laws::protocol::ProtocolKind;
use waterfill_laws::registry::ProtocolId;
use waterfill_network::summary::Summary;
use waterfill_network::{
    BufferSpec, CohabitSpec, ControllerSpec, CountDrops, EstimatorSpec, HashKey, Network, PacketClass, QueueSpec,
    Trials, UpdateSpec,
};
use waterfill_sim::Simulation;

fn exact() -> EstimatorSpec {
    EstimatorSpec::Exact { period_s: 2.0 }
}

fn sred(replace: f64) -> EstimatorSpec {
    EstimatorSpec::Sred { size: 1000, replace, delta: replace / 1000.0, shared: false, trials: Trials::Class }
}

fn sred_delta(delta: f64) -> EstimatorSpec {
    EstimatorSpec::Sred { size: 1000, replace: 0.25, delta, shared: false, trials: Trials::Class }
}

fn nred() -> EstimatorSpec {
    EstimatorSpec::Nred { levels: 4, bins: 4096, period_s: 2.0, hash: HashKey::Flow }
}

fn spec(controller: ControllerSpec, estimator: EstimatorSpec, interval_s: f64) -> CohabitSpec {
    CohabitSpec {
        controller,
        estimator,
        inspect: 1.0,
        interval_s,
        interval_of_law: false,
        count_drops: CountDrops::Never,
        explicit_weight: 1.0,
        ecn: true,
    }
}

fn cohabit(controller: ControllerSpec, estimator: EstimatorSpec, interval_s: f64) -> QueueSpec {
    QueueSpec::Cohabit(spec(controller, estimator, interval_s))
}

fn paper() -> ControllerSpec {
    paper_updated(UpdateSpec::Interval)
}

fn paper_updated(update: UpdateSpec) -> ControllerSpec {
    ControllerSpec::Paper { initial: 0.001, decrease: 0.9999, increase: 1.0001, threshold: 0.97, update }
}

fn improved() -> ControllerSpec {
    ControllerSpec::Improved { aim: 0.9, integral: 0.5, proportional: 1.0, depth_s: 0.3 }
}

fn separate() -> QueueSpec {
    cohabit(ControllerSpec::Separate, nred(), 0.02)
}

/// Returns a dumbbell of 50 Mbit/s with `explicit` flows from 0 s and `tcp` flows from 5 s, measured from 25 s to 45 s.
fn dumbbell(queue: &QueueSpec, rtt_s: f64, explicit: (&str, u32), tcp: (&str, u32)) -> Network {
    let rate = 50e6;
    let buffer = (rate * rtt_s / 8.0) as u64;
    let mut flows = vec![flow("explicit", explicit.0, &[0], 45.0), flow("tcp", tcp.0, &[0], 45.0)];
    flows[0].count = explicit.1;
    flows[1].count = tcp.1;
    flows[1].start_s = 5.0;
    let mut n = network(45.0, link("l", rate, rtt_s / 2.0, buffer).to_vec(), flows);
    n.links[0].queue = queue.clone();
    n.measure_s = [25.0, 45.0];
    n
}

/// Returns the rates of the explicit and TCP classes, in Mbit/s.
fn rates(s: &Summary) -> (f64, f64) {
    let of = |group: &str| s.flows.iter().filter(|f| f.group == group).map(|f| f.rate_bps.unwrap() / 1e6).sum();
    (of("explicit"), of("tcp"))
}

/// Returns the last sample of one of the module's columns.
fn last_sample(sim: &Simulation, name: &str) -> f64 {
    let [_, links, _] = sim.series();
    let last = column(links, "link").iter().rposition(|&link| link == 0.0).unwrap();
    column(links, name)[last]
}

#[test]
fn without_the_module_tcp_takes_the_link() {
    let mut n = dumbbell(&QueueSpec::default(), 0.02, ("xcp", 1), ("sack", 2));
    n.flows[1].recovery = Some("rfc3517".into()); // as in the paper's scenarios
    let (explicit, tcp) = rates(&run(&n).1);
    assert!(explicit < 2.5 && tcp > 45.0, "{explicit} {tcp}");
}

#[test]
fn the_improved_controller_gives_both_classes_their_share() {
    for protocol in ["xcp", "rcp"] {
        let (explicit, tcp) =
            rates(&run(&dumbbell(&cohabit(improved(), nred(), 0.02), 0.02, (protocol, 3), ("cubic", 2))).1);
        assert!(explicit > 0.9 * 30.0, "{protocol}: {explicit}");
        assert!(tcp > 0.75 * 20.0 && tcp < 1.05 * 20.0, "{protocol}: {tcp}");
        assert!(explicit + tcp > 0.95 * 50.0, "{protocol}: {explicit} + {tcp}");
    }
}

/// The limit on the excess keeps a TCP that ignores losses to its share.
#[test]
fn a_tcp_that_ignores_losses_is_limited_too() {
    let (explicit, tcp) = rates(&run(&dumbbell(&cohabit(improved(), nred(), 0.02), 0.02, ("xcp", 3), ("bbr", 2))).1);
    assert!(explicit > 0.9 * 30.0 && tcp < 1.05 * 20.0, "{explicit} {tcp}");
}

#[test]
fn estimates_agree_with_the_exact_count() {
    for estimator in [sred(0.25), nred(), exact()] {
        let sim = run(&dumbbell(&cohabit(improved(), estimator.clone(), 0.02), 0.02, ("xcp", 6), ("sack", 3))).0;
        let (explicit, tcp) = (last_sample(&sim, "cohabit_explicit_flows"), last_sample(&sim, "cohabit_tcp_flows"));
        // For XCP's equal rates a zombie list's estimate has a standard deviation of 2.5 %; TCP's rates are unequal.
        assert!((explicit - 6.0).abs() < 0.75 && tcp > 2.2 && tcp < 3.3, "{estimator:?}: {explicit} {tcp}");
    }
}

/// Inspecting half of the packets halves the work and does not change the shares (§6).
#[test]
fn inspecting_half_of_the_packets_is_enough() {
    let of = |inspect: f64, replace: f64| {
        let queue = CohabitSpec { inspect, ..spec(improved(), sred(replace), 0.02) };
        let (sim, s) = run(&dumbbell(&QueueSpec::Cohabit(queue), 0.02, ("xcp", 6), ("sack", 3)));
        (rates(&s).0, last_sample(&sim, "cohabit_operations"))
    };
    let (all, half) = (of(1.0, 0.25), of(0.5, 0.5));
    assert!((half.0 / all.0 - 1.0).abs() < 0.05, "{half:?} {all:?}");
    assert!((half.1 / all.1 - 0.5).abs() < 0.02, "{half:?} {all:?}");
}

/// p_drop of xcp-tcp-2008 changes by 0.01 % per interval, so by at most a factor of e^0.2 in 40 s at 20 ms.
#[test]
fn the_papers_probability_changes_slowly() {
    let sim = run(&dumbbell(&cohabit(paper(), exact(), 0.02), 0.02, ("xcp", 10), ("sack", 3))).0;
    let p = last_sample(&sim, "cohabit_drop_probability");
    assert!(p == 0.0 || (0.0008..0.001_25).contains(&p), "{p}");
}

/// With a factor for each packet, p_drop holds TCP to its share within seconds.
#[test]
fn a_factor_for_each_packet_holds_tcp_to_its_share() {
    let tcp = |update| {
        let controller =
            ControllerSpec::Paper { initial: 0.001, decrease: 0.9999, increase: 1.0001, threshold: 0.5, update };
        rates(&run(&dumbbell(&cohabit(controller, exact(), 0.02), 0.02, ("xcp", 10), ("sack", 3))).1).1
    };
    let (slow, quick) = (tcp(UpdateSpec::Interval), tcp(UpdateSpec::Packet { packets: PacketClass::All }));
    let share = 50.0 * 3.0 / 13.0;
    assert!(slow > 1.3 * share && (quick / share - 1.0).abs() < 0.2, "{slow} {quick} {share}");
}

/// The control interval follows XCP's mean RTT of about 20 ms instead of its initial value of 500 ms.
#[test]
fn the_control_interval_may_follow_the_laws() {
    // At this probability one TCP has less than its share, so that p_drop shrinks in every interval.
    let shrinking = ControllerSpec::Paper {
        initial: 0.1,
        decrease: 0.9999,
        increase: 1.0001,
        threshold: 0.01,
        update: UpdateSpec::Interval,
    };
    let updates = |interval_s, interval_of_law| {
        let queue = CohabitSpec { interval_of_law, ..spec(shrinking.clone(), exact(), interval_s) };
        let sim = run(&dumbbell(&QueueSpec::Cohabit(queue), 0.02, ("xcp", 10), ("sack", 1))).0;
        let found = column(sim.series()[1], "cohabit_drop_probability");
        // Zero where the module does not act: one class sent nothing.
        let smallest = found.iter().copied().filter(|&p| p > 0.0).fold(0.1, f64::min);
        (0.1 / smallest).ln() / 0.0001
    };
    let (followed, given) = (updates(0.5, true), updates(0.5, false));
    // From 5 s to 45 s: 80 intervals of 500 ms, and up to 2000 of 20 ms; those without TCP's packets do not count.
    assert!(given > 40.0 && given < 80.5 && followed > 500.0 && followed < 2001.0, "{given} {followed}");
}

/// `count_drops` selects where dropped packets, a tenth of TCP's, count as input: nowhere, in the module, or in the
/// module and XCP's router.
#[test]
fn dropped_packets_may_count_as_input() {
    let drop = ControllerSpec::Paper {
        initial: 0.1,
        decrease: 0.999_999,
        increase: 1.000_001,
        threshold: 0.5,
        update: UpdateSpec::Interval,
    };
    let found = [CountDrops::Never, CountDrops::Module, CountDrops::Router].map(|count_drops| {
        let queue = CohabitSpec { count_drops, ..spec(drop.clone(), exact(), 0.02) };
        let mut n = dumbbell(&QueueSpec::Cohabit(queue), 0.02, ("xcp", 3), ("bbr", 2));
        n.flows[1].demand_bps = Some(15e6);
        rates(&run(&n).1)
    });
    let [never, module, router] = found;
    // XCP fills what TCP leaves of the link, unless it takes the dropped packets for load.
    assert!(never.0 + never.1 > 0.97 * 50.0 && module.0 + module.1 > 0.97 * 50.0, "{found:?}");
    assert!(router.0 + router.1 < never.0 + never.1 - 1.0, "{found:?}");
}

#[test]
fn ecn_capable_packets_are_marked_instead_of_dropped() {
    let mut n = dumbbell(&cohabit(improved(), nred(), 0.02), 0.02, ("xcp", 3), ("sack", 2));
    n.flows[1].ecn = Some(true);
    let marked = run(&n).1;
    n.links[0].queue = QueueSpec::Cohabit(CohabitSpec { ecn: false, ..spec(improved(), nred(), 0.02) });
    let dropped = run(&n).1;
    assert!(marked.links[0].marks > 10 && dropped.links[0].marks == 0);
    assert!(marked.links[0].drops < dropped.links[0].drops, "{} {}", marked.links[0].drops, dropped.links[0].drops);
    for s in [&marked, &dropped] {
        assert!(rates(s).0 > 0.9 * 30.0, "{:?}", rates(s));
    }
}

/// Explicit flows with weight 3 get three quarters of the capacity when they compete with as many TCP flows.
#[test]
fn the_explicit_weight_sets_the_shares() {
    let queue = CohabitSpec { explicit_weight: 3.0, ..spec(improved(), nred(), 0.02) };
    let (explicit, tcp) = rates(&run(&dumbbell(&QueueSpec::Cohabit(queue), 0.02, ("xcp", 2), ("sack", 2))).1);
    assert!(explicit > 0.9 * 37.5 && tcp > 0.75 * 12.5 && tcp < 1.05 * 12.5, "{explicit} {tcp}");
}

/// Capacity that explicit flows do not use is lent to TCP.
#[test]
fn an_unused_share_is_lent() {
    let mut n = dumbbell(&cohabit(improved(), nred(), 0.02), 0.02, ("xcp", 1), ("sack", 2));
    n.flows[0].demand_bps = Some(5e6);
    let (explicit, tcp) = rates(&run(&n).1);
    assert!(explicit > 4.5 && explicit + tcp > 0.85 * 50.0, "{explicit} {tcp}");
}

/// The module never drops explicit packets, and does nothing on a link without TCP.
#[test]
fn the_module_does_not_affect_explicit_flows_alone() {
    let alone = |queue: &QueueSpec| {
        let mut n = dumbbell(queue, 0.02, ("xcp", 3), ("sack", 1));
        n.flows.pop();
        run(&n).1
    };
    let (with, without) = (alone(&cohabit(improved(), nred(), 0.02)), alone(&QueueSpec::default()));
    assert_eq!(rates(&with).0, rates(&without).0);
    assert_eq!(with.links[0].drops, without.links[0].drops);
}

/// Every explicit law gets its share next to TCPs that fill queues, avoid them, or ignore losses.
#[test]
fn with_one_queue_per_class_each_class_gets_its_share() {
    // A user's own law does nothing until there is one.
    let explicit = ProtocolId::ALL
        .iter()
        .filter(|id| id.info().kind == ProtocolKind::Explicit && !matches!(id, ProtocolId::Own { .. }));
    for (protocol, target) in explicit.map(|id| (id.info().name, id.params().target())) {
        for tcp in ["sack", "vegas", "bbr"] {
            let mut n = dumbbell(&separate(), 0.02, (protocol, 3), (tcp, 2));
            if protocol == "rocc" {
                n.links[0].buffer = BufferSpec::Bytes(500_000); // its queue of 37.5 ms must fit
            }
            let (explicit, other) = rates(&run(&n).1);
            let fair = 0.6 * target * 50.0;
            assert!(explicit > 0.9 * fair, "{protocol}, {tcp}: {explicit} of {fair}");
            assert!(explicit < 1.1 * fair, "{protocol}, {tcp}: {explicit} of {fair}");
            assert!(other > 0.9 * 20.0 && explicit + other > 0.95 * 50.0, "{protocol}, {tcp}: {explicit} + {other}");
        }
    }
}

/// TCP's queue of one bandwidth-delay product, at two fifths of the link's rate, does not delay explicit flows.
#[test]
fn explicit_flows_keep_their_low_delay() {
    let s = run(&dumbbell(&separate(), 0.02, ("maxnet", 3), ("sack", 2))).1;
    let rtt_ms =
        |group: &str| s.flows.iter().filter(|f| f.group == group).map(|f| f.rtt_ms.p99.unwrap()).fold(0.0, f64::max);
    assert!(rtt_ms("explicit") < 22.0 && rtt_ms("tcp") > 40.0, "{} {}", rtt_ms("explicit"), rtt_ms("tcp"));
}

/// Each class uses the rate that the other class leaves.
#[test]
fn separate_queues_conserve_work() {
    for (limited, index) in [("explicit", 0), ("tcp", 1)] {
        let mut n = dumbbell(&separate(), 0.02, ("xcp", 2), ("sack", 2));
        n.flows[index].demand_bps = Some(2.5e6);
        let (explicit, tcp) = rates(&run(&n).1);
        let (little, much) = if index == 0 { (explicit, tcp) } else { (tcp, explicit) };
        assert!(little > 0.95 * 5.0 && much > 0.95 * 45.0, "{limited} is limited: {explicit} + {tcp}");
    }
}

/// A class alone on the link gets all of it, and an explicit law then fills the link to its usual target.
#[test]
fn separate_queues_do_not_limit_a_class_that_is_alone() {
    for (kept, min) in [(0, 0.89 * 50.0), (1, 0.98 * 50.0)] {
        let mut n = dumbbell(&separate(), 0.02, ("maxnet", 2), ("sack", 2));
        let flow = n.flows[kept].clone();
        n.flows = vec![flow];
        let (explicit, tcp) = rates(&run(&n).1);
        assert!(explicit + tcp > min, "{explicit} + {tcp}");
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let good = spec(improved(), nred(), 0.02);
    let (controller, estimator) = (improved(), nred());
    let ControllerSpec::Improved { aim, integral, proportional, depth_s } = controller else { unreachable!() };
    let EstimatorSpec::Nred { levels, bins, period_s, hash } = estimator else { unreachable!() };
    for (queue, key) in [
        (CohabitSpec { inspect: 0.0, ..good.clone() }, "inspect"),
        (CohabitSpec { interval_s: 0.0, ..good.clone() }, "interval"),
        (CohabitSpec { explicit_weight: -1.0, ..good.clone() }, "explicit_weight"),
        (spec(ControllerSpec::Improved { aim: 1.5, integral, proportional, depth_s }, nred(), 0.02), "aim"),
        (spec(ControllerSpec::Improved { aim, integral, proportional, depth_s: -1.0 }, nred(), 0.02), "depth"),
        (spec(improved(), EstimatorSpec::Nred { levels, bins: 0, period_s, hash }, 0.02), "bins"),
        (spec(paper_updated(UpdateSpec::Period { period_s: 0.0 }), nred(), 0.02), "update"),
        (spec(paper(), sred_delta(0.0), 0.02), "delta"),
        (spec(improved(), EstimatorSpec::Nred { levels: 65, bins, period_s, hash }, 0.02), "levels"),
    ] {
        let message = refusal(dumbbell(&QueueSpec::Cohabit(queue), 0.02, ("xcp", 1), ("sack", 1)));
        assert!(message.starts_with(&format!("link.l.queue_params.{key}: must be")), "{message}");
    }
}
