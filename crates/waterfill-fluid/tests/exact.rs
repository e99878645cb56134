//! Tests of the fluid model's exact results: delays, volumes and classes.

use crate::common;
use crate::common::{assert_close, flows, link, network, rates, run, run_until};
use proptest::prelude::*;
use waterfill_network::summary::Summary;
use waterfill_network::{DemandSpec, FlowSpec, LinkSpec, Network};

/// Returns two links of 10.3 and 4.7 ms, neither a multiple of the step. The RTT is 30 ms plus serialization.
fn two_links(protocol: &str) -> Network {
    let links = [link("a", 1e9, 0.0103, 1_000_000), link("b", 1e8, 0.0047, 1_000_000)].concat();
    network(3.0, links, vec![flows("f", 1, protocol, &[0, 2], 3.0)])
}

#[test]
fn the_rtt_is_the_sum_of_its_delays() {
    // 1500 B last 12 µs and 120 µs, 40 B 0.32 and 3.2 µs.
    let rtt_s = 0.030 + 132e-6 + 3.52e-6;
    for step_s in [None, Some(0.0013), Some(0.0071)] {
        let (fluid, summary) = run(&two_links("window"), step_s);
        assert_eq!(fluid.delay_added().as_ps(), 0);
        assert_close("RTT", summary.flows[0].rtt_ms.mean.unwrap(), rtt_s * 1e3, 1e-9);
        // The window is ten packets per RTT. They stay in the burst in which they were first sent, so the measurement window
        // of 33 RTTs holds one burst more or less.
        assert_close("rate", rates(&summary)[0], 10.0 * 12_000.0 / rtt_s, 1.0 / 33.0);
        let in_flight = fluid.series()[0].columns()[6].last().copied();
        assert_close("in flight", in_flight.unwrap(), 15_000.0, 1e-9);
    }
}

#[test]
fn padding_equals_propagation_delay() {
    let links = |delay_s| link("a", 1e9, delay_s, 1_000_000).to_vec();
    let flow = |pad_s: f64| FlowSpec { pad_s, ..flows("f", 3, "rcp", &[0], 12.0) };
    let own = network(12.0, links(0.02), vec![flow(0.0)]);
    let padded = network(12.0, links(0.005), vec![flow(0.015)]);
    let (_, own) = run(&own, Some(0.0017));
    let (_, padded) = run(&padded, Some(0.0017));
    let rtt = |summary: &Summary| summary.flows[0].rtt_ms.mean.unwrap();
    assert_close("RTT", rtt(&padded), rtt(&own), 1e-6);
    assert_close("rate", rates(&padded)[0], rates(&own)[0], 1e-3);
}

#[test]
fn a_transfer_ends_when_its_last_byte_arrives() {
    // 1 MB is 685 packets of 1460 B (no header of its own): 1,027,400 B on the wire at 8 Mbit/s, after a handshake.
    let mut net = network(5.0, link("a", 1e9, 0.05, 1_000_000).to_vec(), vec![]);
    let flow = flows("f", 2, "window", &[0], 5.0);
    net.flows = vec![FlowSpec { size_bytes: Some(1_000_000), demand_bps: Some(8e6), ..flow }];
    net.set_param("window", "packets", 1000.0);
    let (fluid, summary) = run(&net, None);
    let completed = 0.1 + 2.0 * 40.0 * 8e-9 + 1_027_400.0 / 1e6 + 0.05 + 12e-6;
    // The last parcel is spread over the step in which it is sent and the step in which it arrives.
    let late = summary.flows[1].completed_s.unwrap() - completed;
    assert!((-1e-9..2.0 * fluid.step().as_secs()).contains(&late), "{late}");
    assert_close("sent", summary.flows[0].packets_sent as f64, 685.0, 2e-3);
}

#[test]
fn a_demand_over_time_limits_the_volume() {
    let mut net = network(9.0, link("a", 1e8, 0.02, 1_000_000).to_vec(), vec![flows("f", 2, "maxnet", &[0], 9.0)]);
    let demands = [(0.0, 8e6), (3.0, 0.0), (6.0, 2e6)].map(|(at_s, rate_bps)| DemandSpec { at_s, rate_bps });
    // Padding must not shift the demand: the application keeps its own clock.
    for pad_s in [0.0, 0.3] {
        net.flows[0] = FlowSpec { demands: demands.into(), pad_s, ..net.flows[0].clone() };
        for (from_s, to_s, bits) in [(2.0, 3.0, 8e6), (3.5, 6.0, 0.0), (7.0, 9.0, 4e6)] {
            net.measure_s = [from_s, to_s];
            let (_, summary) = run(&net, None);
            assert!((rates(&summary)[1] * (to_s - from_s) - bits).abs() < 0.05 * 8e6, "{pad_s} {from_s} {summary:?}");
        }
    }
}

/// Flows that differ only in their demands over time, their stated RTT or their window are not one class.
#[test]
fn flows_with_other_keys_are_classes_of_their_own() {
    let mut net = network(3.0, link("a", 1e8, 0.02, 1_000_000).to_vec(), vec![flows("f", 1, "maxnet", &[0], 3.0)]);
    net.flows.push(FlowSpec { name: "g".into(), ..net.flows[0].clone() });
    net.flows[1].demands = vec![DemandSpec { at_s: 0.0, rate_bps: 1e6 }];
    let (_, summary) = run(&net, None);
    assert!(rates(&summary)[0] > 50e6 && rates(&summary)[1] < 1.1e6, "{:?}", rates(&summary));

    net.flows.iter_mut().for_each(|flow| (flow.protocol, flow.demands) = ("xcp".into(), vec![]));
    let (_, alike) = run(&net, None);
    net.flows[1].claimed_rtt_s = Some(0.5);
    let (_, lies) = run(&net, None);
    assert_close("alike", rates(&alike)[0], rates(&alike)[1], 1e-9);
    assert!(rates(&lies)[0] != rates(&lies)[1], "{:?}", rates(&lies));
}

#[test]
fn excess_is_dropped_and_the_link_runs_at_capacity() {
    // Windows of 200 packets in a pipe of 10 Mbit/s × 40 ms = 33 packets with a buffer of 50.
    let mut net = network(6.0, link("a", 1e7, 0.02, 75_000).to_vec(), vec![flows("f", 4, "window", &[0], 6.0)]);
    net.set_param("window", "packets", 50.0);
    let (fluid, summary) = run(&net, None);
    let bottleneck = &summary.links[0];
    assert_close("utilization", bottleneck.utilization, 1.0, 1e-9);
    assert_close("queue", bottleneck.queue_bytes.max, 75_000.0, 1e-9);
    assert!(bottleneck.drops > 0);
    assert!(fluid.ledger().dropped > 0.0);
    assert_close("rate", rates(&summary).iter().sum(), 1e7, 1e-3);
}

#[test]
fn identical_flows_are_one_class_with_the_same_rates() {
    for (protocol, share) in [("maxnet", 1e-3), ("aecp", 1e-3), ("rcp", 1e-3), ("xcp", 1e-3), ("jetmax", 1e-3)] {
        let net = |stagger_s: f64| {
            let flow = FlowSpec { stagger_s, ..flows("f", 1000, protocol, &[0], 8.0) };
            network(8.0, link("a", 1e10, 0.025, 60_000_000).to_vec(), vec![flow])
        };
        let (one, together) = run(&net(0.0), None);
        // With starts one picosecond apart each flow is a class.
        let (many, apart) = run(&net(1e-12), None);
        assert_eq!((one.classes(), many.classes()), (1, 1000));
        let (together, apart) = (rates(&together), rates(&apart));
        assert_eq!(together.len(), 1000);
        for rate in apart {
            assert_close(protocol, rate, together[0], share);
        }
    }
}

#[test]
fn identical_groups_are_one_class() {
    let entry = |name| flows(name, 5, "maxnet", &[0], 2.0);
    let other = FlowSpec { weight: 2.0, ..entry("c") };
    let net = network(2.0, link("a", 1e9, 0.01, 1_000_000).to_vec(), vec![entry("a"), entry("b"), other]);
    let (fluid, summary) = run(&net, None);
    assert_eq!(fluid.classes(), 2);
    let names: Vec<&str> = summary.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!((names.len(), names[4], names[5], names[14]), (15, "a[4]", "b[0]", "c[4]"));
}

#[test]
fn many_flows_are_reported_by_class() {
    let net = network(1.0, link("a", 1e11, 0.01, 1_000_000).to_vec(), vec![flows("f", 20_000, "maxnet", &[0], 1.0)]);
    let (_, summary) = run(&net, None);
    assert_eq!(summary.flows.len(), 1);
    assert_eq!(summary.flows[0].count, Some(20_000));
}

#[test]
fn acknowledgements_load_the_reverse_path() {
    let net = network(5.0, link("a", 1e8, 0.01, 1_000_000).to_vec(), vec![flows("f", 2, "rcp", &[0], 5.0)]);
    let (_, summary) = run(&net, None);
    let used = |i: usize| summary.links[i].utilization;
    assert_close("acknowledgements", used(1), used(0) * 40.0 / 1500.0, 1e-3);
}

#[test]
fn reruns_are_identical() {
    assert_eq!(run(&two_links("maxnet"), None).1, run(&two_links("maxnet"), None).1);
}

#[test]
fn runs_in_slices_are_identical() {
    let net = two_links("aecp");
    let mut sliced = run_until(&net, 0.3217);
    for s in [0.9, 0.9001, 2.0, 9.0] {
        sliced.advance(waterfill_laws::units::Instant::from_secs(s));
    }
    assert_eq!(sliced.summary(), run(&net, None).1);
}

/// Returns a random chain of links, some with small buffers, with flows of any protocol over any section of the chain.
fn any_network() -> impl Strategy<Value = (Network, f64)> {
    let links = prop::collection::vec((1e7..1e9f64, 0.0..0.03f64, 3_000u64..300_000), 1..5);
    let flow = (0usize..9, 0usize..5, 1usize..5, 1u32..20, 0.0..1.0f64, 0.0..0.05f64);
    (links, prop::collection::vec(flow, 1..5), 0.3..1.5f64).prop_map(|(links, specs, duration_s)| {
        let names = ["maxnet", "maxnet2006", "aecp", "rcp", "xcp", "ixcp", "jetmax", "vcp", "window"];
        let count = links.len();
        let both: Vec<LinkSpec> = (0..)
            .zip(links)
            .flat_map(|(i, (rate, delay, buffer))| link(&format!("l{i}"), rate, delay + 1e-4, buffer))
            .collect();
        let entries = specs
            .into_iter()
            .enumerate()
            .map(|(i, (name, first, hops, n, start_s, pad_s))| {
                let first = first % count;
                let path: Vec<u32> = (first..(first + hops).min(count)).map(|l| 2 * l as u32).collect();
                let entry = flows(&format!("f{i}"), n, names[name], &path, duration_s * 0.8);
                FlowSpec { start_s: start_s * duration_s * 0.5, pad_s, ..entry }
            })
            .collect();
        (network(duration_s, both, entries), duration_s)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn volume_is_conserved((net, duration_s) in any_network()) {
        let mut fluid = common::fluid(&net, None).expect("a valid network");
        for part in 1..=4 {
            fluid.advance(waterfill_laws::units::Instant::from_secs(duration_s * f64::from(part) / 4.0));
            let ledger = fluid.ledger();
            let found = ledger.delivered + ledger.dropped + ledger.in_transit;
            prop_assert!((ledger.sent - found).abs() <= 1e-9 * ledger.sent.max(1.0), "{ledger:?}");
        }
        for (link, spec) in fluid.summary().links.iter().zip(&net.links) {
            let (used, queue) = (link.utilization, link.queue_bytes.max);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&used), "{used}");
            prop_assert!(queue <= spec.buffer.as_bytes(1500.0), "{queue}");
        }
    }
}
