//! Tests of the estimated needs of a run, for networks that can be calculated by hand.

use waterfill_laws::units::{Duration, Rate, Volume};
use waterfill_network::estimate::{EntryTraffic, Need, entries, first_burst};
use waterfill_network::{
    ArrivalSpec, Distribution, FlowSpec, Network, NetworkBuilder, PeriodSpec, TrafficKind, TrafficSpec,
};

/// Returns the builder of a run of 10 s with links of 12 and 6 Mbit/s, which carry 1,000 and 500 packets per second.
fn builder() -> NetworkBuilder {
    let (delay, buffer) = (Duration::from_millis(10), Volume::from_bytes(15_000.0));
    Network::builder(Duration::from_secs(10.0)).link("a", Rate::from_bps(12e6), delay, buffer).link(
        "b",
        Rate::from_bps(6e6),
        delay,
        buffer,
    )
}

fn close(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-9 * wanted.abs(), "{got} is not {wanted}");
}

/// Returns the packets per second, packets, seconds and carried fraction of the only entry.
fn only(network: &Network) -> [f64; 4] {
    let [EntryTraffic { packets_per_s, packets, lasts_s, carried, .. }] = entries(network)[..] else {
        panic!("expected one entry");
    };
    [packets_per_s, packets, lasts_s, carried]
}

fn of_flow(change: impl FnOnce(&mut FlowSpec)) -> [f64; 4] {
    let network = builder().flow("f", "reno", &["a", "b"]).with(|n| change(&mut n.flows[0]));
    only(&network.build().expect("a valid network"))
}

fn of_source(change: impl FnOnce(&mut TrafficSpec)) -> [f64; 4] {
    let mut source = TrafficSpec::cbr("t", &[0], Rate::from_bps(1.2e6), [2.0, 20.0].map(Duration::from_secs));
    change(&mut source);
    only(&builder().with(|n| n.traffic.push(source)).build().expect("a valid network"))
}

#[test]
fn a_flow_sends_at_its_slowest_link_until_it_stops() {
    assert_eq!(of_flow(|_| {}), [500.0, 5000.0, 10.0, 1.0]);
    assert_eq!(of_flow(|f| (f.start_s, f.stop_s) = (1.0, 4.0)), [500.0, 1500.0, 3.0, 1.0]);
    assert_eq!(of_flow(|f| (f.start_s, f.stop_s) = (5.0, 4.0))[1..3], [0.0, 0.0]);
    assert_eq!(of_flow(|f| f.demand_bps = Some(1.2e6))[..2], [100.0, 1000.0]);
    // Ten hosts of 0.12 Mbit/s each.
    assert_eq!(of_flow(|f| (f.count, f.access_bps) = (10, Some(1.2e5)))[..2], [100.0, 1000.0]);
}

#[test]
fn a_flow_of_a_size_ends_when_it_is_sent() {
    // 1,000 packets of 1,460 B of payload, the last of 1 B, for each of two flows.
    let [_, packets, lasts_s, _] = of_flow(|f| (f.count, f.size_bytes) = (2, Some(999 * 1460 + 1)));
    assert_eq!((packets, lasts_s), (2000.0, 4.0));
    let short = of_flow(|f| (f.size_bytes, f.base_rtt_s) = (Some(1), 0.04));
    assert_eq!(short[1..3], [1.0, 0.04]);
}

#[test]
fn links_carry_what_they_can() {
    let two = builder().flow("f", "reno", &["a"]).flow("g", "reno", &["a", "b"]).build().expect("a valid network");
    // Link a is offered 12 and 6 Mbit/s, and carries two thirds of that.
    for entry in entries(&two) {
        close(entry.carried, 2.0 / 3.0);
    }
    assert_eq!(entries(&two).iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["flow.f", "flow.g"]);
}

#[test]
fn sources_send_while_they_are_on() {
    assert_eq!(of_source(|_| {}), [100.0, 800.0, 8.0, 1.0]);
    let constant = |mean| Distribution::Constant { mean };
    let on_off = of_source(|t| {
        (t.kind, t.periods) = (TrafficKind::OnOff, Some(PeriodSpec { on_s: constant(1.0), off_s: constant(3.0) }));
    });
    assert_eq!(on_off[..2], [25.0, 200.0]);
}

#[test]
fn sources_of_flows_send_arrivals_times_size() {
    let web = of_source(|t| {
        let flow = FlowSpec::new("t", "reno", &[0], Duration::from_secs(10.0));
        let sizes_bytes = Distribution::Exponential { mean: 14_600.0 };
        (t.kind, t.rate_bps) = (TrafficKind::Web, None);
        t.flows = Some(ArrivalSpec {
            arrivals_per_s: 5.0,
            at_s: vec![],
            sizes_bytes,
            flow,
            routes: Vec::new(),
            pairs: Vec::new(),
            fan_in: 1,
        });
    });
    assert_eq!(web[..2], [50.0, 400.0]);
}

#[test]
fn a_burst_is_no_larger_than_the_flow() {
    let mut flow = FlowSpec::new("f", "reno", &[0], Duration::from_secs(1.0));
    (flow.count, flow.initial_window_packets) = (3, 1e9);
    assert_eq!(first_burst(&flow), 3.0 * f64::from(1 << 24));
    flow.size_bytes = Some(2500);
    assert_eq!(first_burst(&flow), 9.0);
    flow.initial_window_packets = 2.0;
    assert_eq!(first_burst(&flow), 6.0);
}

/// A need names the key of its largest contribution, for use in a warning.
#[test]
fn a_need_names_its_largest_part() {
    let mut need = Need::default();
    for (amount, key) in [(3.0, "a"), (5.0, "b"), (4.0, "c")] {
        need.add(amount, || key.into());
    }
    assert_eq!((need.total, need.key.as_str()), (12.0, "b"));
}
