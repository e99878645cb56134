//! Tests of routers that restart, damage headers or write false signals, of hosts that misreport or ignore feedback,
//! and of clocks that jump.

use crate::common::{assert_within, column, flow, link, mean, network, refusal, run, run_on};
use waterfill_laws::registry::kernel_protocols;
use waterfill_network::fault::{Effect, FalseSignal, FaultSpec, HostEffect, HostFaultSpec};
use waterfill_network::{BufferSpec, ChangeSpec, FlowSpec, Network};
use waterfill_sim::Simulation;

/// Returns a network of two flows over a link of 10 Mbit/s and an RTT of 40 ms. Each host writes up to twice that rate.
fn shared(protocol: &str, duration_s: f64) -> Network {
    let host = |name| FlowSpec { demand_bps: Some(20e6), base_rtt_s: 0.04, ..flow(name, protocol, &[0], duration_s) };
    network(duration_s, link("l", 10e6, 0.02, 50_000).to_vec(), vec![host("a"), host("b")])
}

fn fault(from_s: f64, until_s: f64, share: f64, effect: Effect) -> FaultSpec {
    FaultSpec { from_s, until_s, share, effect }
}

fn host_fault(from_s: f64, until_s: f64, effect: HostEffect) -> HostFaultSpec {
    HostFaultSpec { from_s, until_s, effect }
}

/// Returns the mean rate of a flow between two times, in bit/s.
fn rate(sim: &Simulation, group: usize, span_s: [f64; 2]) -> f64 {
    let flows = sim.series()[0];
    let rows = column(flows, "time_s").iter().zip(column(flows, "flow")).zip(column(flows, "rate_bps"));
    let own = rows.filter(|((time, flow), _)| **flow == group as f64 && span_s[0] < **time && **time <= span_s[1]);
    mean(&own.map(|(_, rate)| *rate).collect::<Vec<_>>())
}

/// Returns the names of the laws whose routers write into a header.
fn explicit() -> impl Iterator<Item = &'static str> {
    kernel_protocols().into_iter().map(|(name, _)| name).chain(["abc"])
}

#[test]
fn a_fault_that_never_acts_changes_no_byte() {
    for protocol in explicit().chain(["cubic", "bbr"]) {
        let plain = shared(protocol, 4.0);
        let mut other = plain.clone();
        let effects = [Effect::Strip {}, Effect::Corrupt {}, Effect::Lie { value: FalseSignal::Random }];
        other.links[0].faults = effects.map(|effect| fault(1.0, 4.0, 0.0, effect)).to_vec();
        other.links[1].faults = vec![fault(1.0, 1.0 + 1e-12, 1.0, Effect::Hold { every_s: 1e-12 })];
        let effects = [HostEffect::Lie {}, HostEffect::Ignore {}, HostEffect::Clock { step_s: 0.0 }];
        other.flows[0].faults = effects.map(|effect| host_fault(3.999_999_999, 4.0, effect)).to_vec();
        other.links[0].changes = vec![ChangeSpec { at_s: 2.0, clock_step_s: Some(0.0), ..ChangeSpec::default() }];
        let (one, two) = (run(&plain), run(&other));
        assert_eq!((one.1.flows, one.1.links), (two.1.flows, two.1.links), "{protocol}");
        assert_eq!(one.0.ledger(), two.0.ledger(), "{protocol}");
        assert_eq!(one.1.engine.events + 1, two.1.engine.events, "{protocol}: the clock's step");
    }
}

/// A restarted router begins with its first price and clock, and runs no timer for the time before.
#[test]
fn a_restarted_router_has_lost_its_price() {
    let mut n = shared("maxnet", 12.0);
    n.sample_s = 0.001;
    n.links[0].changes = vec![ChangeSpec { at_s: 10.0, restart: true, ..ChangeSpec::default() }];
    let (sim, _) = run(&n);
    let links = sim.series()[1];
    let price = |at_s: f64| {
        let rows = column(links, "time_s").iter().zip(column(links, "link")).zip(column(links, "maxnet_price"));
        rows.filter(|((time, link), _)| **link == 0.0 && (**time - at_s).abs() < 1e-6).map(|(_, p)| *p).next().unwrap()
    };
    let first = price(0.001);
    assert!(price(9.999) > first + 0.2, "{} {first}", price(9.999));
    assert_within(price(10.001), first, 0.01, "price after the restart");
    let recovered = rate(&sim, 0, [11.0, 12.0]) + rate(&sim, 1, [11.0, 12.0]);
    assert!(recovered > 0.9 * rate(&sim, 0, [9.0, 10.0]) + 0.9 * rate(&sim, 1, [9.0, 10.0]), "{recovered}");
}

#[test]
fn every_law_recovers_from_a_restart_and_from_steps_of_clocks() {
    for protocol in explicit() {
        let mut n = shared(protocol, 24.0);
        n.links[0].changes = vec![
            ChangeSpec { at_s: 4.0, restart: true, ..ChangeSpec::default() },
            ChangeSpec { at_s: 7.0, clock_step_s: Some(0.5), ..ChangeSpec::default() },
            ChangeSpec { at_s: 11.0, clock_step_s: Some(-0.2), ..ChangeSpec::default() },
        ];
        n.flows[0].faults = vec![
            host_fault(9.0, 10.0, HostEffect::Clock { step_s: 0.5 }),
            host_fault(13.0, 14.0, HostEffect::Clock { step_s: -0.2 }),
        ];
        let (sim, _) = run(&n);
        let all = rate(&sim, 0, [20.0, 24.0]) + rate(&sim, 1, [20.0, 24.0]);
        assert!(all > 8e6, "{protocol}: {all}");
    }
}

/// Without headers, acknowledgements carry no echo, and the source stays at its first window of 10 packets per RTT of
/// 40 ms.
#[test]
fn without_headers_a_source_stays_at_its_first_window() {
    for protocol in ["xcp", "vcp", "aecp"] {
        let mut n = shared(protocol, 10.0);
        n.links[0].faults = vec![fault(0.0, 10.0, 1.0, Effect::Strip {})];
        let (sim, s) = run(&n);
        let most = 10.0 * 1500.0 * 8.0 / 0.04 * 1.01;
        assert!(s.flows[0].rate_bps.unwrap() < most, "{protocol}: {:?}", s.flows[0].rate_bps);
        assert!(rate(&sim, 0, [5.0, 10.0]) > 0.0, "{protocol}");
    }
}

/// A rate of zero for one second does not stop a paced source permanently.
#[test]
fn a_rate_of_zero_is_left_again() {
    for protocol in ["rcp", "alpha_rcp", "rocc", "jetmax"] {
        let mut n = shared(protocol, 20.0);
        n.links[0].faults = vec![fault(5.0, 6.0, 1.0, Effect::Lie { value: FalseSignal::Zero })];
        let (sim, _) = run(&n);
        let [during, after] = [[5.5, 6.0], [15.0, 20.0]].map(|span| rate(&sim, 0, span) + rate(&sim, 1, span));
        assert!(during < 1e6 && after > 8e6, "{protocol}: {during} {after}");
    }
}

/// Every law computes finite numbers, even if any bit of a header may be wrong.
#[test]
fn laws_survive_damaged_headers_and_random_signals() {
    for protocol in explicit() {
        for effect in [Effect::Corrupt {}, Effect::Lie { value: FalseSignal::Random }] {
            for kernel in [false, true] {
                let mut n = shared(protocol, 6.0);
                if kernel {
                    let lies = effect != Effect::Corrupt {};
                    if protocol == "abc" || lies {
                        continue;
                    }
                    n.set_param(protocol, "arithmetic", "kernel");
                }
                n.links[0].faults = vec![fault(2.0, 3.0, 0.1, effect)];
                n.links[1].faults = vec![fault(2.0, 3.0, 0.1, effect)];
                let (sim, _) = run(&n);
                let (during, all) = (rate(&sim, 0, [2.0, 3.0]), sim.ledger());
                assert!(during.is_finite() && during >= 0.0, "{protocol} {effect:?}: {during}");
                assert_eq!(all.sent, all.delivered + all.dropped + all.lost + all.in_transit, "{protocol} {effect:?}");
            }
        }
    }
}

#[test]
fn a_lying_receiver_takes_from_the_honest_one() {
    for protocol in ["maxnet", "xcp", "rcp", "alpha_rcp", "mkc", "rocc", "poseidon", "vcp", "abc", "newreno"] {
        let mut n = shared(protocol, 12.0);
        n.flows[0].faults = vec![host_fault(6.0, 12.0, HostEffect::Lie {})];
        let (sim, _) = run(&n);
        let [liar, honest] = [0, 1].map(|group| rate(&sim, group, [9.0, 12.0]));
        assert!(liar > 1.3 * honest, "{protocol}: {liar} {honest}");
    }
}

#[test]
fn a_source_that_ignores_feedback_keeps_its_window() {
    let mut n = shared("newreno", 30.0);
    n.flows[0].faults = vec![host_fault(10.0, 20.0, HostEffect::Ignore {})];
    let (sim, _) = run(&n);
    let flows = sim.series()[0];
    let rows = column(flows, "time_s").iter().zip(column(flows, "flow")).zip(column(flows, "window_bytes"));
    let windows: Vec<f64> =
        rows.filter(|((time, flow), _)| **flow == 0.0 && 10.1 < **time && **time < 19.9).map(|(_, w)| *w).collect();
    assert!(windows.len() > 90 && windows.iter().all(|w| *w == windows[0]), "{windows:?}");
}

/// Acknowledgements held for 20 ms arrive together, and the RTT grows by up to 20 ms. Data is not held, and without data in
/// the other direction a hold of all packets does the same.
#[test]
fn held_acknowledgements_are_released_together() {
    let mut n = shared("newreno", 10.0);
    n.flows.truncate(1);
    let acks = fault(0.1, 10.0, 1.0, Effect::Acks { every_s: 0.02, thinning: 1 });
    n.links[0].faults = vec![acks];
    let plain = run(&n).1;
    n.links[1].faults = vec![acks];
    let (sim, s) = run(&n);
    n.links[1].faults = vec![fault(0.1, 10.0, 1.0, Effect::Hold { every_s: 0.02 })];
    let all = run(&n).1;
    assert!(s.flows[0].rate_bps.unwrap() > 0.8 * plain.flows[0].rate_bps.unwrap());
    assert_eq!(s.flows[0].rate_bps, all.flows[0].rate_bps, "the SYN's answer is back before 0.1 s");
    let rtts = column(sim.series()[0], "rtt_s");
    assert!(rtts.iter().filter(|rtt| rtt.is_finite()).all(|rtt| *rtt > 0.04), "{rtts:?}");
    let l = sim.ledger();
    assert_eq!(l.sent, l.delivered + l.dropped + l.lost + l.in_transit);
}

/// Of eight acknowledgements in a release one arrives, and the last always: the data are delivered as without thinning.
#[test]
fn thinned_acknowledgements_lose_no_information() {
    let of = |thinning| {
        let mut n = shared("sack", 10.0);
        n.flows.truncate(1);
        n.flows[0].demand_bps = Some(8e6);
        n.links[0].buffer = BufferSpec::UNLIMITED;
        n.links[1].faults = vec![fault(0.0, 10.0, 1.0, Effect::Acks { every_s: 0.02, thinning })];
        run(&n)
    };
    let runs = [1, 8, u32::MAX].map(of);
    let all = &runs[0].1.flows[0];
    // 20 ms at 8 Mbit/s are 13 acknowledgements, of which two pass, or one.
    let shares = runs.each_ref().map(|(sim, _)| sim.ledger().lost as f64 / all.packets_sent as f64);
    assert_eq!(shares[0], 0.0);
    assert!((0.80..0.90).contains(&shares[1]) && (0.88..0.93).contains(&shares[2]), "{shares:?}");
    for (sim, s) in &runs {
        let flow = &s.flows[0];
        assert_eq!(flow.retransmissions, 0);
        assert!((flow.rate_bps.unwrap() / all.rate_bps.unwrap() - 1.0).abs() < 0.02, "{flow:?}");
        let l = sim.ledger();
        assert_eq!(l.sent, l.delivered + l.dropped + l.lost + l.in_transit);
    }
}

#[test]
fn threads_give_the_same_bytes() {
    let mut links = Vec::new();
    (0..3).for_each(|i| links.extend(link(&format!("l{i}"), 10e6, 0.01, 50_000)));
    for protocol in explicit().chain(["dctcp"]) {
        let host = |name: &str, path: &[u32]| FlowSpec { demand_bps: Some(20e6), ..flow(name, protocol, path, 6.0) };
        let mut n = network(6.0, links.clone(), vec![host("a", &[0, 2, 4]), host("b", &[2]), host("c", &[4])]);
        for (i, l) in n.links.iter_mut().enumerate() {
            let from_s = 1.0 + 0.1 * i as f64;
            l.faults = vec![
                fault(from_s, 3.0, 0.1, Effect::Strip {}),
                fault(from_s, 4.0, 0.1, Effect::Corrupt {}),
                fault(from_s, 5.0, 0.3, Effect::Lie { value: FalseSignal::Random }),
                fault(from_s, 4.0, 1.0, Effect::Hold { every_s: 0.003 }),
                fault(4.0, 6.0, 1.0, Effect::Acks { every_s: 0.007, thinning: 3 }),
            ];
            l.loss = 0.001;
            l.duplicate = 0.01;
            l.changes = vec![
                ChangeSpec { at_s: from_s, restart: true, ..ChangeSpec::default() },
                ChangeSpec { at_s: from_s + 1.0, clock_step_s: Some(0.1), ..ChangeSpec::default() },
                ChangeSpec { at_s: from_s + 2.0, clock_step_s: Some(-0.1), ..ChangeSpec::default() },
            ];
        }
        n.flows[0].faults = vec![host_fault(2.0, 4.0, HostEffect::Lie {})];
        n.flows[1].faults = vec![host_fault(2.0, 4.0, HostEffect::Ignore {})];
        n.flows[2].faults = vec![host_fault(2.0, 4.0, HostEffect::Clock { step_s: 0.3 })];
        let bytes = |threads| {
            let (sim, summary) = run_on(&n, threads);
            let series: Vec<u64> =
                sim.series().iter().flat_map(|s| s.columns()).flatten().map(|x| x.to_bits()).collect();
            (serde_json::to_string(&summary).unwrap(), series, sim.ledger(), sim.threads())
        };
        let one = bytes(1);
        for threads in [2, 3] {
            let several = bytes(threads);
            assert_eq!(several.3, threads, "{protocol}");
            assert!(one.0 == several.0 && one.1 == several.1 && one.2 == several.2, "{protocol} on {threads}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let with = |change: &dyn Fn(&mut Network)| {
        let mut n = shared("xcp", 10.0);
        change(&mut n);
        refusal(n)
    };
    let strip = |from_s, until_s, share| fault(from_s, until_s, share, Effect::Strip {});
    for (faults, expected) in [
        (strip(10.0, 11.0, 1.0), "link.l.fault.at: must be before the end of the run at 10 s, got 10"),
        (strip(2.0, 2.0, 1.0), "link.l.fault.until: must be after at, 2 s, got 2"),
        (strip(2.0, 3.0, 1.5), "link.l.fault.share: must be in [0, 1], got 1.5"),
        (fault(2.0, 3.0, 1.0, Effect::Hold { every_s: 0.0 }), "link.l.fault.every: must be above zero, got 0"),
    ] {
        assert_eq!(with(&|n| n.links[0].faults = vec![faults]), expected);
    }
    let back = host_fault(2.0, 3.0, HostEffect::Clock { step_s: -3.0 });
    let expected = "flow.a.fault.step: must not exceed the 2 s that the clock has run, got -3";
    assert_eq!(with(&|n| n.flows[0].faults = vec![back]), expected);
    let far = ChangeSpec { at_s: 1.0, clock_step_s: Some(1e4), ..ChangeSpec::default() };
    let expected = "link.l.event.step: must be -3600 to 3600 s, got 10000";
    assert_eq!(with(&|n| n.links[0].changes = vec![far]), expected);
    let refused = with(&|n| {
        n.set_param("xcp", "arithmetic", "kernel");
        n.links[0].faults = vec![fault(1.0, 2.0, 1.0, Effect::Lie { value: FalseSignal::Max })];
    });
    assert_eq!(refused, "params.xcp.arithmetic: must be real where a router or a receiver misreports, got kernel");
}
