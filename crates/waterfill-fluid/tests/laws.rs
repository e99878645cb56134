//! Tests of the laws in the fluid model: their equilibria, and the influence of the step.

use crate::common::{assert_close, flows, link, network, rates, run};
use waterfill_laws::registry::ProtocolId;
use waterfill_network::{FlowSpec, Network};

/// Returns the expected utilization of a link with ten flows, and its tolerance. The utilization is the law's target,
/// which all laws except VCP reach.
fn fill(protocol: ProtocolId) -> (f64, f64) {
    match protocol {
        // MI below 80 %, MD above 98 % of γ: it oscillates between them (aecp-2010 Table 1: 93.06 %).
        ProtocolId::Vcp => (0.93, 0.05),
        // Each flow adds α/β = 0.2 Mbit/s to the target.
        ProtocolId::Mkc => (protocol.params().target() + 0.02, 0.002),
        _ => (protocol.params().target(), 0.002),
    }
}

/// Returns the laws of the fluid model. A constant window is not a law.
fn laws() -> impl Iterator<Item = ProtocolId> {
    ProtocolId::ALL.iter().copied().filter(|id| !id.info().needs_packets && *id != ProtocolId::Window)
}

#[test]
fn one_bottleneck_is_filled_and_shared_equally() {
    for id in laws() {
        let (protocol, (fill, share)) = (id.info().name, fill(id));
        // Two halves with different starts are two classes, so only the law makes their rates equal.
        let late = FlowSpec { start_s: 1.0, ..flows("late", 5, protocol, &[0], 60.0) };
        // Poseidon's queue at a tenth of this link, 55 ms, must fit into the buffer.
        let buffer = if protocol == "poseidon" { 800_000 } else { 600_000 };
        let links = link("a", 1e8, 0.025, buffer).to_vec();
        let net = network(60.0, links, vec![flows("early", 5, protocol, &[0], 60.0), late]);
        let (_, summary) = run(&net, None);
        let rates = rates(&summary);
        assert_close(protocol, rates.iter().sum(), fill * 1e8, share);
        // VCP's flows take minutes to become equal, in the packet simulator too.
        if protocol != "vcp" {
            assert_close(protocol, rates[9], rates[0], 0.01);
        }
    }
}

/// AECP's sources with a window of x·τ share one bottleneck equally at two RTTs. The queue stays at q₀.
#[test]
fn aecp_windows_fill_one_bottleneck_too() {
    let far = FlowSpec { pad_s: 0.05, base_rtt_s: 0.15, ..flows("far", 5, "aecp", &[0], 60.0) };
    let mut net =
        network(60.0, link("a", 1e8, 0.025, 600_000).to_vec(), vec![flows("near", 5, "aecp", &[0], 60.0), far]);
    net.set_param("aecp", "source", "window");
    let (_, summary) = run(&net, None);
    let rates = rates(&summary);
    assert_close("aecp", rates.iter().sum(), 1e8, 0.002);
    assert_close("aecp", rates[9], rates[0], 0.01);
    assert_close("queue", summary.links[0].queue_packets.mean, 100.0, 0.1);
}

/// A window of τ·x is fair only if τ is the path's RTT. The test uses delays that are not multiples of the step of
/// τ/10.
#[test]
fn a_measured_base_rtt_is_not_below_the_path_s_own() {
    let links = [link("a", 1e9, 0.0089, 12_500_000), link("b", 1e8, 0.0071, 1_250_000)].concat();
    let flow = |name: &str, path: &[u32], pad_s: f64| FlowSpec {
        pad_s,
        base_rtt_s: 0.05,
        ..flows(name, 1, "maxnet", path, 20.0)
    };
    let entries = vec![flow("long", &[0, 2], 0.025 - 0.016), flow("short", &[2], 0.025 - 0.0071)];
    let (_, summary) = run(&network(20.0, links, entries), Some(5e-3));
    let rates = rates(&summary);
    assert_close("long to short", rates[0], rates[1], 0.005);
}

#[test]
fn several_bottlenecks_are_filled_max_min() {
    // Three flows share 90 of the first link's 100 Mbit/s; the last one gets what the long one leaves of the second link.
    for (protocol, target) in [("maxnet", 0.9), ("rcp", 1.0), ("aecp", 1.0), ("jetmax", 0.95), ("ixcp", 1.0)] {
        let links = [link("a", 1e8, 0.01, 600_000), link("b", 2e8, 0.02, 1_500_000)].concat();
        let entries = vec![
            flows("long", 1, protocol, &[0, 2], 60.0),
            flows("a", 2, protocol, &[0], 60.0),
            flows("b", 1, protocol, &[2], 60.0),
        ];
        let (_, summary) = run(&network(60.0, links, entries), None);
        let rates = rates(&summary);
        let share = target * 1e8 / 3.0;
        for (i, wanted) in [share, share, share, target * 2e8 - share].into_iter().enumerate() {
            assert_close(&format!("{protocol}, flow {i}"), rates[i], wanted, 0.01);
        }
    }
}

/// A SYN counts with its own size, not as a full packet.
///
/// If it counted as a full packet, JetMax's SYN would request the rate of 37 flows and take the idle link for the
/// bottleneck.
#[test]
fn a_syn_finds_the_busy_link() {
    let links = [link("idle", 1e8, 0.01, 900_000), link("busy", 1.1e8, 0.02, 900_000)].concat();
    let long = FlowSpec { start_s: 2.0, ..flows("long", 1, "jetmax", &[0, 2], 6.0) };
    let (_, summary) = run(&network(6.0, links, vec![flows("short", 1, "jetmax", &[2], 6.0), long]), None);
    let queue = summary.links[2].queue_bytes.max;
    assert!(queue < 50_000.0, "both flows share the busy link, which has a queue of {queue} bytes");
}

#[test]
fn rates_are_proportional_to_weights() {
    for protocol in ["maxnet", "rcp", "aecp", "jetmax", "xcp"] {
        let heavy = FlowSpec { weight: 3.0, ..flows("heavy", 2, protocol, &[0], 60.0) };
        let net =
            network(60.0, link("a", 1e8, 0.02, 600_000).to_vec(), vec![flows("light", 2, protocol, &[0], 60.0), heavy]);
        let rates = rates(&run(&net, None).1);
        assert_close(protocol, rates[2], 3.0 * rates[0], 0.01);
    }
}

/// Halving the step changes every rate by less than 1 %.
///
/// MaxNet starts from half the default step. At the default step, flows with two RTTs are 1.1 % from their common share
/// (0.9 % in the packet simulator).
#[test]
fn half_the_step_changes_no_rate_by_one_percent() {
    for protocol in laws().map(|id| id.info().name) {
        let late = FlowSpec { start_s: 1.5, ..flows("late", 5, protocol, &[0, 2], 40.0) };
        let links = [link("a", 2e8, 0.01, 600_000), link("b", 1e8, 0.015, 600_000)].concat();
        let net = network(40.0, links, vec![flows("early", 5, protocol, &[2], 40.0), late]);
        let (fluid, first) = run(&net, None);
        let mut step_s = fluid.step().as_secs();
        if protocol == "maxnet" {
            step_s /= 2.0;
        }
        let whole = if protocol == "maxnet" { run(&net, Some(step_s)).1 } else { first };
        let (_, half) = run(&net, Some(step_s / 2.0));
        for (whole, half) in rates(&whole).into_iter().zip(rates(&half)) {
            assert_close(protocol, whole, half, 0.01);
        }
    }
}

/// Returns the peak-to-peak amplitude of the sources' total rate after 150 s, relative to the capacity.
fn late_swing(net: &Network) -> f64 {
    let (fluid, _) = run(net, None);
    let series = fluid.series()[0];
    let column = |name: &str| &series.columns()[series.names().iter().position(|n| n == name).unwrap()];
    let late = |(&t, &x): (&f64, &f64)| (t > 150.0).then_some(x);
    let rates: Vec<f64> = column("time_s").iter().zip(column("aecp_x")).filter_map(late).collect();
    let ends = rates.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
    // One class of ten flows: any row represents all. The capacity is 62,500 packets/s.
    10.0 * (ends.1 - ends.0) / 62_500.0
}

/// AECP is stable on the link of aecp-2010 §6 with an RTT well below the delay margin of eq. 38 (0.6435 s), and
/// unstable well above it.
#[test]
fn aecp_is_stable_below_its_delay_margin_only() {
    let [exact, printed] = ["exact", "printed"].map(|form| ("form", form));
    for params in [vec![exact, ("step", "acknowledgement")], vec![exact], vec![printed]] {
        let net = |rtt_s: f64| {
            let mut net = network(
                200.0,
                link("a", 5e8, rtt_s / 2.0, 30_000_000).to_vec(),
                vec![flows("f", 10, "aecp", &[0], 200.0)],
            );
            net.packet_bytes = 1000;
            for &(name, value) in &params {
                net.set_param("aecp", name, value);
            }
            net
        };
        let (below, above) = (late_swing(&net(0.4)), late_swing(&net(1.0)));
        assert!(below < 0.01, "{params:?}: {below}");
        assert!(above > 0.1, "{params:?}: {above}");
    }
}

/// MaxNet with the parameters of maxnet-2007 reaches its target at RTTs down to 0.12 ms, with a ripple below 0.4 %.
#[test]
fn maxnet_is_steady_at_small_rtts() {
    for rtt_s in [0.12e-3, 1e-3, 5e-3] {
        let mut net =
            network(6.0, link("a", 1e10, rtt_s / 2.0, 3_000_000).to_vec(), vec![flows("f", 1, "maxnet", &[0], 6.0)]);
        net.sample_s = 0.01;
        let (fluid, summary) = run(&net, None);
        assert_close("utilization", summary.links[0].utilization, 0.9, 0.002);
        let series = fluid.series()[1];
        let rows = series.columns()[0].iter().zip(&series.columns()[1]).zip(&series.columns()[2]);
        let late: Vec<f64> = rows.filter(|((t, link), _)| **t > 4.0 && **link == 0.0).map(|(_, &used)| used).collect();
        let ends = late.iter().fold((1.0f64, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
        assert!(late.len() > 100 && ends.1 - ends.0 < 0.004, "{rtt_s}: {ends:?}");
    }
}
