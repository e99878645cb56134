//! Tests of refused networks: each value out of range gives one sentence that begins with its key.

use waterfill_laws::units::{Duration, Rate, Volume};
use waterfill_network::{
    AckFrequencySpec, ArrivalSpec, ChangeSpec, CodelSpec, CohabitSpec, ControllerSpec, CountDrops, DemandSpec,
    Distribution, DualPi2Spec, Effect, EstimatorSpec, FalseSignal, FaultSpec, FlowSpec, FqCodelSpec, FqPieSpec,
    HostEffect, HostFaultSpec, Level, LinkSpec, LossSpec, MAX_FLOWS, Network, ParamValue, PeriodSpec, PieSpec,
    QueueSpec, RampSpec, RedSpec, ReorderSpec, RouteChangeSpec, RouteSpec, ShaperSpec, Trials, UpdateSpec,
};
use waterfill_network::{TrafficKind, TrafficSpec};

/// Returns a network with one duplex link `l`, one flow `f` of this protocol and a source of packets `t`.
fn network(protocol: &str) -> Network {
    let second = Duration::from_secs(1.0);
    let network = Network::builder(Duration::from_secs(10.0))
        .link("l", Rate::from_bps(1e7), Duration::from_millis(10), Volume::from_bytes(1e5))
        .flow("f", protocol, &["l"]);
    network
        .with(|n| n.traffic.push(TrafficSpec::cbr("t", &[0], Rate::from_bps(1e6), [Duration::ZERO, second])))
        .unchecked()
}

/// Returns the error of a network that `change` has modified.
fn refused(protocol: &str, change: impl FnOnce(&mut Network)) -> String {
    let mut changed = network(protocol);
    change(&mut changed);
    changed.checked().expect_err("a network that cannot run")
}

fn of_network(change: impl FnOnce(&mut Network)) -> String {
    refused("maxnet", change)
}

fn of_link(change: impl FnOnce(&mut LinkSpec)) -> String {
    of_network(|n| change(&mut n.links[0]))
}

fn of_flow(change: impl FnOnce(&mut FlowSpec)) -> String {
    of_network(|n| change(&mut n.flows[0]))
}

fn of_traffic(change: impl FnOnce(&mut TrafficSpec)) -> String {
    of_network(|n| change(&mut n.traffic[0]))
}

fn of_queue(queue: QueueSpec) -> String {
    of_link(|l| l.queue = queue)
}

#[test]
fn the_base_of_these_tests_is_valid() {
    for protocol in ["maxnet", "xcp", "reno"] {
        network(protocol).checked().expect("a valid network");
    }
}

#[test]
fn times_and_sizes_of_a_run() {
    assert_eq!(of_network(|n| n.duration_s = 0.0), "duration: must be above zero, got 0");
    assert_eq!(of_network(|n| n.duration_s = 2e6), "duration: must be 0 to 1e6 s, got 2000000");
    assert_eq!(of_network(|n| n.sample_s = f64::NAN), "sample: must be above zero, got NaN");
    // Zero on the clock, which would divide by zero.
    assert_eq!(of_network(|n| n.sample_s = 4e-13), "sample: must be at least 1 ps, got 4e-13 s");
    assert_eq!(of_network(|n| n.rttvar_min_s = -1.0), "rttvar_min: must be 0 to 1e6 s, got -1");
    assert_eq!(of_network(|n| n.rto_min_s = -1.0), "rto_min: must be 0 to 1e6 s, got -1");
    for [from, to] in [[2.0, 1.0], [0.0, 11.0], [-1.0, 5.0], [f64::NAN, 5.0]] {
        let window = of_network(|n| n.measure_s = [from, to]);
        assert_eq!(window, format!("measure: must be within the run, got {from} to {to} s"));
    }
    assert_eq!(of_network(|n| n.links.clear()), "link: no link");
    assert_eq!(of_network(|n| n.ack_bytes = 0), "ack_size: must be above zero");
    let headers = of_network(|n| n.packet_bytes = 48);
    assert_eq!(headers, "packet_size: must be above the 48 B of headers of maxnet, got 48 B");
    let many = of_network(|n| n.flows[0].count = MAX_FLOWS as u32 + 1);
    assert_eq!(many, "flow.f.count: more than 10000000 flows in all");
}

#[test]
fn links_and_their_wires() {
    assert_eq!(of_link(|l| l.rate_bps = 0.0), "link.l.rate: must be above zero, got 0");
    assert_eq!(of_link(|l| l.delay_s = 1e9), "link.l.delay: must be 0 to 1e6 s, got 1000000000");
    for target in [0.0, 1.1, f64::NAN] {
        assert_eq!(of_link(|l| l.target = Some(target)), "link.l.target: must be in (0, 1]");
    }
    assert_eq!(of_link(|l| l.duplicate = 2.0), "link.l.duplicate: must be in [0, 1], got 2");
    let both = of_link(|l| (l.loss, l.loss_model) = (0.1, Some(LossSpec::Independent { p: 0.1 })));
    assert_eq!(both, "link.l.loss_model: not allowed together with loss");
    let model = of_link(|l| {
        l.loss_model = Some(LossSpec::GilbertElliott { p: 0.1, r: 0.1, loss_good: 0.0, loss_bad: 1.5 });
    });
    assert_eq!(model, "link.l.loss_model.loss_bad: must be in [0, 1], got 1.5");
    let share = of_link(|l| l.reorder = Some(ReorderSpec { share: -1.0, delay_s: 0.1 }));
    assert_eq!(share, "link.l.reorder.share: must be in [0, 1], got -1");
    let never = of_link(|l| l.reorder = Some(ReorderSpec { share: 0.5, delay_s: 2e6 }));
    assert_eq!(never, "link.l.reorder.delay: must be above zero, got 2000000 s");
}

#[test]
fn shapers() {
    let shaper = ShaperSpec { line_bps: 1e8, depth_bytes: 3000.0, timer_s: 0.0 };
    network("maxnet").with_shaper(shaper).checked().expect("a valid shaper");
    let of_shaper = |shaper: ShaperSpec| of_link(|l| l.shaper = Some(shaper));
    assert_eq!(
        of_shaper(ShaperSpec { line_bps: 1e7, ..shaper }),
        "link.l.shaper.rate: must be below the line's 10000000 bit/s"
    );
    assert_eq!(of_shaper(ShaperSpec { depth_bytes: 0.0, ..shaper }), "link.l.shaper.depth: must be above zero, got 0");
    assert_eq!(
        of_shaper(ShaperSpec { depth_bytes: 1000.0, ..shaper }),
        "link.l.shaper.depth: must be at least one packet of 1500 B"
    );
    assert_eq!(of_shaper(ShaperSpec { timer_s: 1.5, ..shaper }), "link.l.shaper.timer: must be 0 to 1 s, got 1.5");
    let unordered = of_link(|l| {
        (l.shaper, l.queue) = (Some(shaper), QueueSpec::Codel(codel()));
    });
    assert_eq!(unordered, "link.l.shaper: needs a queue that serves in order of arrival (droptail, red)");
    let varies = of_link(|l| {
        l.shaper = Some(shaper);
        l.changes = vec![ChangeSpec { at_s: 1.0, rate_bps: Some(1e6), ..ChangeSpec::default() }];
    });
    assert_eq!(varies, "link.l.shaper: not allowed on a link with events or a rate trace");
}

trait WithShaper {
    fn with_shaper(self, shaper: ShaperSpec) -> Self;
}

impl WithShaper for Network {
    fn with_shaper(mut self, shaper: ShaperSpec) -> Self {
        self.links[0].shaper = Some(shaper);
        self
    }
}

#[test]
fn events_of_a_link() {
    let of_changes = |changes: &[ChangeSpec]| of_link(|l| l.changes = changes.to_vec());
    let at = |at_s| ChangeSpec { at_s, up: Some(false), ..ChangeSpec::default() };
    assert_eq!(of_changes(&[at(-1.0)]), "link.l.event.at: must be 0 to 1e6 s, got -1");
    assert_eq!(of_changes(&[at(10.0)]), "link.l.event.at: must be before the end of the run at 10 s, got 10");
    assert_eq!(of_changes(&[at(2.0), at(2.0)]), "link.l.event.at: must be after the event before, at 2 s, got 2");
    assert_eq!(
        of_changes(&[ChangeSpec { rate_bps: Some(-1.0), ..at(1.0) }]),
        "link.l.event.rate: must not be negative, got -1"
    );
    assert_eq!(
        of_changes(&[ChangeSpec { delay_s: Some(-1.0), ..at(1.0) }]),
        "link.l.event.delay: must be 0 to 1e6 s, got -1"
    );
    assert_eq!(
        of_changes(&[ChangeSpec { clock_step_s: Some(-2.0), ..at(1.0) }]),
        "link.l.event.step: must not exceed the 1 s that the clock has run, got -2"
    );
}

#[test]
fn faults_of_links_and_hosts() {
    let of_fault =
        |from_s, until_s, share, effect| of_link(|l| l.faults = vec![FaultSpec { from_s, until_s, share, effect }]);
    assert_eq!(of_fault(-1.0, 2.0, 1.0, Effect::Strip {}), "link.l.fault.at: must be 0 to 1e6 s, got -1");
    assert_eq!(of_fault(1.0, 2e6, 1.0, Effect::Strip {}), "link.l.fault.until: must be 0 to 1e6 s, got 2000000");
    assert_eq!(
        of_fault(10.0, 11.0, 1.0, Effect::Corrupt {}),
        "link.l.fault.at: must be before the end of the run at 10 s, got 10"
    );
    assert_eq!(of_fault(2.0, 2.0, 1.0, Effect::Corrupt {}), "link.l.fault.until: must be after at, 2 s, got 2");
    assert_eq!(of_fault(1.0, 2.0, 1.5, Effect::Strip {}), "link.l.fault.share: must be in [0, 1], got 1.5");
    for every_s in [0.0, f64::INFINITY] {
        let every = of_fault(1.0, 2.0, 1.0, Effect::Hold { every_s });
        assert_eq!(every, format!("link.l.fault.every: must be above zero, got {every_s}"));
        assert_eq!(of_fault(1.0, 2.0, 1.0, Effect::Acks { every_s, thinning: 1 }), every);
    }
    let none = of_fault(1.0, 2.0, 1.0, Effect::Acks { every_s: 0.1, thinning: 0 });
    assert_eq!(none, "link.l.fault.thinning: must be at least 1, got 0");
    let of_host = |effect| of_flow(|f| f.faults = vec![HostFaultSpec { from_s: 1.0, until_s: 2.0, effect }]);
    assert_eq!(of_host(HostEffect::Clock { step_s: 4000.0 }), "flow.f.fault.step: must be -3600 to 3600 s, got 4000");
    assert_eq!(
        of_host(HostEffect::Clock { step_s: -1.5 }),
        "flow.f.fault.step: must not exceed the 1 s that the clock has run, got -1.5"
    );
}

/// Misreporting requires real arithmetic, because kernel arithmetic puts the signal at another position in the header.
#[test]
fn lies_and_kernel_arithmetic() {
    let kernel = |n: &mut Network| n.set_param("xcp", "arithmetic", "kernel");
    let expected = "params.xcp.arithmetic: must be real where a router or a receiver misreports, got kernel";
    let router = refused("xcp", |n| {
        kernel(n);
        let effect = Effect::Lie { value: FalseSignal::Max };
        n.links[0].faults = vec![FaultSpec { from_s: 1.0, until_s: 2.0, share: 1.0, effect }];
    });
    let receiver = refused("xcp", |n| {
        kernel(n);
        n.flows[0].faults = vec![HostFaultSpec { from_s: 1.0, until_s: 2.0, effect: HostEffect::Lie {} }];
    });
    assert_eq!((router.as_str(), receiver.as_str()), (expected, expected));
    let mut honest = network("xcp");
    kernel(&mut honest);
    honest.checked().expect("no lies");
}

#[test]
fn flows() {
    assert_eq!(of_flow(|f| f.forward = vec![7]), "flow.f.path: must name at least one link");
    assert_eq!(of_flow(|f| f.reverse.clear()), "flow.f.path: must name at least one link");
    assert_eq!(of_flow(|f| f.start_s = -1.0), "flow.f.start: must be 0 to 1e6 s, got -1");
    assert_eq!(of_flow(|f| f.stagger_s = 2e6), "flow.f.stagger: must be 0 to 1e6 s, got 2000000");
    assert_eq!(of_flow(|f| f.stop_s = f64::NAN), "flow.f.stop: must be 0 to 1e6 s, got NaN");
    assert_eq!(of_flow(|f| f.pad_s = -1e-3), "flow.f.rtt: must be 0 to 1e6 s, got -0.001");
    assert_eq!(
        of_flow(|f| f.start_jitter_s = vec![0.1, 0.2]),
        "flow.f.start_jitter: must have one time per flow, got 2"
    );
    assert_eq!(of_flow(|f| f.pad_jitter_s = vec![-0.1]), "flow.f.rtt_jitter: must be 0 to 1e6 s, got -0.1");
    assert_eq!(of_flow(|f| f.weight = 0.0), "flow.f.weight: must be above zero, got 0");
    assert_eq!(of_flow(|f| f.weight = 1e7), "flow.f.weight: must be at most 1e6, got 1e7");
    assert_eq!(of_flow(|f| f.initial_window_packets = 0.0), "flow.f.initial_window: must be above zero, got 0");
    assert_eq!(of_flow(|f| f.demand_bps = Some(0.0)), "flow.f.demand: must be above zero, got 0");
    let demands = vec![DemandSpec { at_s: 1.0, rate_bps: 1e6 }];
    assert_eq!(of_flow(|f| f.demands = demands), "flow.f.demand_trace: the first time must be 0 s, got 1 s");
    let route = |at_s, forward: &[u32]| RouteChangeSpec { at_s, forward: forward.into(), reverse: vec![1] };
    let late = "flow.f.route[0].at: must be above 0 s and below 10 s, got";
    assert_eq!(of_flow(|f| f.routes = vec![route(0.0, &[0])]), format!("{late} 0 s"));
    assert_eq!(of_flow(|f| f.routes = vec![route(10.0, &[0])]), format!("{late} 10 s"));
    assert_eq!(
        of_flow(|f| f.routes = vec![route(2.0, &[0]), route(2.0, &[0])]),
        "flow.f.route[1].at: must be above 2 s and below 10 s, got 2 s"
    );
    assert_eq!(of_flow(|f| f.routes = vec![route(1.0, &[7])]), "flow.f.route[0].path: must name at least one link");
    assert_eq!(of_flow(|f| f.access_bps = Some(-1.0)), "flow.f.access_rate: must be above zero, got -1");
    assert_eq!(of_flow(|f| f.size_bytes = Some(0)), "flow.f.size: must be above zero");
    assert_eq!(of_flow(|f| f.protocol = "tcp".into()), "flow.f.protocol: unknown protocol \"tcp\"");
    assert_eq!(of_flow(|f| f.ecn = Some(true)), "flow.f.ecn: must be false, because maxnet does not react to marks");
    let claim = |protocol: &str, s| refused(protocol, |n| n.flows[0].claimed_rtt_s = Some(s));
    assert_eq!(claim("xcp", 0.0), "flow.f.claimed_rtt: must be above zero, got 0");
    assert_eq!(claim("reno", 0.1), "flow.f.claimed_rtt: not allowed, because packets of reno have no RTT field");
}

#[test]
fn parameters_of_protocols() {
    let set = |name: &str, value: ParamValue| of_network(|n| n.set_param("maxnet", name, value));
    assert_eq!(set("no_such", 1.0.into()), "params.maxnet.no_such: unknown parameter");
    assert_eq!(set("mu", true.into()), "params.maxnet.mu: must be a ratio, got true");
    assert_eq!(set("arithmetic", "exact".into()), "params.maxnet.arithmetic: must be a choice, got \"exact\"");
    assert!(set("mu", 0.0.into()).starts_with("params.maxnet.mu: must be "), "{}", set("mu", 0.0.into()));
}

#[test]
fn sources_of_packets() {
    assert_eq!(of_traffic(|t| t.path.clear()), "traffic.t.path: must name at least one link");
    assert_eq!(of_traffic(|t| t.packet_bytes = 0), "traffic.t.packet_size: must be above zero, got 0");
    assert_eq!(of_traffic(|t| t.start_s = -1.0), "traffic.t.start: must be 0 to 1e6 s, got -1");
    assert_eq!(of_traffic(|t| t.stop_s = 2e6), "traffic.t.stop: must be 0 to 1e6 s, got 2000000");
    assert_eq!(of_traffic(|t| t.rate_bps = Some(0.0)), "traffic.t.rate: must be above zero, got 0");
    let kinds = [(TrafficKind::Web, "web"), (TrafficKind::OnOff, "onoff"), (TrafficKind::Poisson, "poisson")];
    for (kind, name) in kinds {
        let neither = of_traffic(|t| (t.kind, t.rate_bps) = (kind, None));
        assert_eq!(neither, format!("traffic.t.rate: {name} needs either a packet rate or flow arrivals"));
    }
    let on_off = |periods: Option<PeriodSpec>| of_traffic(|t| (t.kind, t.periods) = (TrafficKind::OnOff, periods));
    assert_eq!(on_off(None), "traffic.t.on: only allowed for an on–off source");
    let periods = |on: f64, off: f64| {
        Some(PeriodSpec { on_s: Distribution::Constant { mean: on }, off_s: Distribution::Exponential { mean: off } })
    };
    assert_eq!(on_off(periods(-1.0, 1.0)), "traffic.t.on: mean must be above zero, got -1");
    assert_eq!(on_off(periods(1.0, 0.0)), "traffic.t.off: mean must be above zero, got 0");
    assert_eq!(on_off(periods(1e-3, 1.0)), "traffic.t.on: the mean must be at least one packet time, 0.012 s");
    for access in [1e5, f64::INFINITY] {
        let slow = of_traffic(|t| t.access_bps = Some(access));
        assert_eq!(slow, format!("traffic.t.access_rate: must be at least the rate, 1000000 bit/s, got {access}"));
    }
}

/// Turns a traffic source into a source of flows over the link, on two routes to one host.
fn web(t: &mut TrafficSpec) -> &mut ArrivalSpec {
    let flow = FlowSpec::new("t", "maxnet", &[0], Duration::from_secs(10.0));
    let route = RouteSpec { forward: vec![0], reverse: vec![1], pad_s: 0.0, base_rtt_s: 0.02 };
    (t.kind, t.rate_bps) = (TrafficKind::Web, None);
    t.flows.insert(ArrivalSpec {
        arrivals_per_s: 10.0,
        at_s: vec![],
        sizes_bytes: Distribution::Constant { mean: 1e4 },
        flow,
        routes: vec![vec![route.clone(), route]],
        pairs: vec![],
        fan_in: 2,
    })
}

#[test]
fn sources_of_flows() {
    let mut valid = network("maxnet");
    web(&mut valid.traffic[0]);
    valid.checked().expect("a valid source of flows");
    let of_web = |change: &dyn Fn(&mut ArrivalSpec)| of_traffic(|t| change(web(t)));
    assert_eq!(of_web(&|w| w.arrivals_per_s = 0.0), "traffic.t.arrival_rate: must be above zero, got 0");
    assert_eq!(of_web(&|w| w.arrivals_per_s = 2e9), "traffic.t.arrival_rate: must be at most 1e9 flows per second");
    assert_eq!(
        of_web(&|w| w.sizes_bytes = Distribution::Constant { mean: 0.0 }),
        "traffic.t.sizes: mean must be above zero, got 0"
    );
    assert_eq!(of_web(&|w| w.flow.weight = 0.0), "traffic.t.weight: must be above zero, got 0");
    assert_eq!(of_web(&|w| w.routes[0][1].reverse.clear()), "traffic.t.path: must name at least one link");
    assert_eq!(of_web(&|w| w.routes[0][1].forward = vec![9]), "traffic.t.path: must name at least one link");
    assert_eq!(of_web(&|w| w.routes[0][0].pad_s = -1.0), "traffic.t.rtt: must be 0 to 1e6 s, got -1");
    assert_eq!(of_web(&|w| w.routes[0][0].base_rtt_s = -1.0), "traffic.t.rtt: must be 0 to 1e6 s, got -1");
    for (fan_in, got) in [(0, 0), (3, 3)] {
        let expected = format!("traffic.t.fan_in: must be 1 to 2, the routes to one host, got {got}");
        assert_eq!(of_web(&|w| w.fan_in = fan_in), expected);
    }
    assert_eq!(
        of_web(&|w| w.flow.access_bps = Some(1e6)),
        "traffic.t.access_rate: not allowed, because its flows have several hosts"
    );
    let access = of_traffic(|t| {
        web(t);
        t.access_bps = Some(1e6);
    });
    assert_eq!(access, "traffic.t.access_rate: only allowed for its flows");
}

const fn codel() -> CodelSpec {
    CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: false }
}

#[test]
fn queue_disciplines() {
    assert_eq!(
        of_queue(QueueSpec::Droptail { mark_at: Some(Level::Packets(-1.0)), ramp: None }),
        "link.l.mark_at: must not be negative"
    );
    let ramp = |to, max_p| {
        let (mark_at, ramp) = (Some(Level::Packets(10.0)), Some(RampSpec { to, max_p }));
        of_queue(QueueSpec::Droptail { mark_at, ramp })
    };
    for to in [Level::Packets(10.0), Level::Bytes(1e9)] {
        assert_eq!(ramp(to, 0.5), "link.l.mark_to: must be above mark_at, in the same unit");
    }
    assert_eq!(ramp(Level::Packets(11.0), 1.5), "link.l.mark_max: must be in [0, 1], got 1.5");
    let red = RedSpec {
        min_threshold: Level::Packets(5.0),
        max_threshold: Level::Packets(15.0),
        max_p: 0.1,
        weight: 0.002,
        gentle: false,
        ecn: false,
    };
    assert_eq!(
        of_queue(QueueSpec::Red(RedSpec { max_p: 0.0, ..red.clone() })),
        "link.l.queue_params.max_p: must be in (0, 1], got 0"
    );
    assert_eq!(
        of_queue(QueueSpec::Choke(RedSpec { weight: 2.0, ..red.clone() })),
        "link.l.queue_params.weight: must be in (0, 1], got 2"
    );
    for max_threshold in [Level::Packets(5.0), Level::Bytes(1e5), Level::Packets(f64::INFINITY)] {
        assert_eq!(
            of_queue(QueueSpec::Red(RedSpec { max_threshold, ..red.clone() })),
            "link.l.queue_params.max_threshold: must be above min_threshold, in the same unit"
        );
    }
    assert_eq!(
        of_queue(QueueSpec::Codel(CodelSpec { target_s: 0.0, ..codel() })),
        "link.l.queue_params.target: must be at least 1 ps, got 0 s"
    );
    assert_eq!(
        of_queue(QueueSpec::Codel(CodelSpec { target_s: 0.1, ..codel() })),
        "link.l.queue_params.target: must be below interval"
    );
    let fair =
        |quantum_bytes, flows| of_queue(QueueSpec::FqCodel(FqCodelSpec { codel: codel(), quantum_bytes, flows }));
    let pie = PieSpec {
        target_s: 0.015,
        update_s: 0.015,
        alpha_hz: 0.125,
        beta_hz: 1.25,
        max_burst_s: 0.15,
        ecn: true,
        mark_below: 0.1,
    };
    let refused = |change: &dyn Fn(&mut PieSpec)| {
        let mut pie = pie.clone();
        change(&mut pie);
        of_queue(QueueSpec::FqPie(FqPieSpec { pie, quantum_bytes: 1514, flows: 8 }))
    };
    assert_eq!(refused(&|pie| pie.update_s = 0.0), "link.l.queue_params.update: must be at least 1 us, got 0 s");
    assert_eq!(refused(&|pie| pie.target_s = 0.0), "link.l.queue_params.target: must be at least 1 ps, got 0 s");
    assert_eq!(refused(&|pie| pie.beta_hz = -1.0), "link.l.queue_params.beta: must be from 0 to 1e9 Hz, got -1");
    assert_eq!(refused(&|pie| pie.mark_below = 2.0), "link.l.queue_params.mark_below: must be in [0, 1], got 2");
    assert_eq!(refused(&|pie| pie.max_burst_s = -1.0), "link.l.queue_params.max_burst: must not be negative, got -1 s");
    let dual = DualPi2Spec {
        target_s: 0.015,
        rtt_max_s: 0.1,
        coupling: 2.0,
        ramp_start_s: 0.8e-3,
        ramp_range_s: 0.4e-3,
        ramp_packets: 1,
        classic_share: 0.1,
    };
    let refused = |change: &dyn Fn(&mut DualPi2Spec)| {
        let mut dual = dual.clone();
        change(&mut dual);
        of_queue(QueueSpec::DualPi2(dual))
    };
    assert_eq!(
        refused(&|dual| dual.rtt_max_s = 2e-6),
        "link.l.queue_params.rtt_max: must be at least 3 us, got 0.000002 s"
    );
    assert_eq!(refused(&|dual| dual.target_s = 0.0), "link.l.queue_params.target: must be at least 1 us, got 0 s");
    assert_eq!(refused(&|dual| dual.coupling = 0.0), "link.l.queue_params.coupling: must be from 0.01 to 1000, got 0");
    assert_eq!(
        refused(&|dual| dual.classic_share = 1.0),
        "link.l.queue_params.classic_share: must be between 0 and 1, got 1"
    );
    assert_eq!(fair(0, 1024), "link.l.queue_params.quantum: must be above zero");
    assert_eq!(fair(1514, 65_537), "link.l.queue_params.flows: must be 1 to 65536, got 65537");
}

#[test]
fn the_cohabitation_module() {
    let valid = CohabitSpec {
        controller: ControllerSpec::Off,
        estimator: EstimatorSpec::Exact { period_s: 1.0 },
        inspect: 1.0,
        interval_s: 0.02,
        interval_of_law: false,
        count_drops: CountDrops::Never,
        explicit_weight: 1.0,
        ecn: false,
    };
    let mut good = network("maxnet");
    good.links[0].queue = QueueSpec::Cohabit(valid.clone());
    good.checked().expect("a valid module");
    let of = |change: &dyn Fn(&mut CohabitSpec)| {
        let mut spec = valid.clone();
        change(&mut spec);
        let said = of_queue(QueueSpec::Cohabit(spec));
        said.strip_prefix("link.l.queue_params.").expect("the key").to_string()
    };
    assert_eq!(of(&|s| s.inspect = 0.0), "inspect: must be in (0, 1], got 0");
    assert_eq!(of(&|s| s.interval_s = 0.0), "interval: must be at least 1 ps, got 0");
    assert_eq!(of(&|s| s.explicit_weight = 0.0), "explicit_weight: must be above zero, got 0");

    let of_controller = |controller: ControllerSpec| of(&|s| s.controller = controller.clone());
    let period = |period_s| UpdateSpec::Period { period_s };
    let paper = |initial, decrease, increase, threshold, update| {
        of_controller(ControllerSpec::Paper { initial, decrease, increase, threshold, update })
    };
    assert_eq!(paper(0.0, 0.9, 1.1, 0.9, period(1.0)), "initial: must be in (0, 1], got 0");
    assert_eq!(paper(0.1, 1.0, 1.1, 0.9, period(1.0)), "decrease: must be in (0, 1), got 1");
    assert_eq!(paper(0.1, 0.9, 1.0, 0.9, period(1.0)), "increase: must be above 1, got 1");
    assert_eq!(paper(0.1, 0.9, 1.1, 1.5, period(1.0)), "threshold: must be in (0, 1], got 1.5");
    assert_eq!(paper(0.1, 0.9, 1.1, 0.9, period(0.0)), "update: must be at least 1 ps, got 0");
    let improved = |aim, integral, proportional, depth_s| {
        of_controller(ControllerSpec::Improved { aim, integral, proportional, depth_s })
    };
    assert_eq!(improved(2.0, 1.0, 0.0, 0.1), "aim: must be in (0, 1], got 2");
    assert_eq!(improved(1.0, 0.0, 0.0, 0.1), "integral: must be above zero, got 0");
    assert_eq!(improved(1.0, 1.0, -1.0, 0.1), "proportional: must be at least zero, got -1");
    assert_eq!(improved(1.0, 1.0, 0.0, 0.0), "depth: must be at least 1 ps, got 0");

    let of_estimator = |estimator: EstimatorSpec| of(&|s| s.estimator = estimator.clone());
    let exact = of_estimator(EstimatorSpec::Exact { period_s: 0.0 });
    assert_eq!(exact, "period: must be at least 1 ps, got 0");
    let sred = |size, replace, delta| {
        of_estimator(EstimatorSpec::Sred { size, replace, delta, shared: false, trials: Trials::Class })
    };
    assert_eq!(sred(0, 0.25, 0.01), "size: must be 1 to 8388608, got 0");
    assert_eq!(sred(10, 0.0, 0.01), "replace: must be in (0, 1], got 0");
    assert_eq!(sred(10, 0.25, 1.5), "delta: must be in (0, 1], got 1.5");
    let nred = |levels, bins, period_s| {
        let hash = waterfill_network::HashKey::Pair;
        of_estimator(EstimatorSpec::Nred { levels, bins, period_s, hash })
    };
    assert_eq!(nred(65, 8, 1.0), "levels: must be 1 to 64, got 65");
    assert_eq!(nred(1, 0, 1.0), "bins: must be 1 to 8388608, got 0");
    assert_eq!(nred(1, 8, 0.0), "period: must be at least 1 ps, got 0");
}

#[test]
fn uses_of_ecn() {
    let refused = |protocol: &str, change: &dyn Fn(&mut FlowSpec)| {
        let mut network = network(protocol);
        change(&mut network.flows[0]);
        network.checked().expect_err("refused")
    };
    let keys = |feedback: Option<&str>, codepoint: Option<&str>| {
        let (feedback, codepoint) = (feedback.map(str::to_owned), codepoint.map(str::to_owned));
        move |flow: &mut FlowSpec| (flow.ecn_feedback, flow.ecn_codepoint) = (feedback.clone(), codepoint.clone())
    };
    assert_eq!(
        refused("cubic", &keys(Some("accecn"), None)),
        "flow.f.ecn_feedback: has no effect without ECN; add ecn = true"
    );
    assert_eq!(
        refused("maxnet", &keys(None, Some("ect1"))),
        "flow.f.ecn_codepoint: not allowed, because maxnet does not react to marks"
    );
    assert_eq!(
        refused("dctcp", &keys(Some("classic"), None)),
        "flow.f.ecn_feedback: must be dctcp, accecn or accecn-ace, because dctcp needs each packet's mark"
    );
    assert_eq!(
        refused("dctcp", &keys(Some("ace"), None)),
        "flow.f.ecn_feedback: must be one of classic, dctcp, accecn, accecn-ace, got \"ace\""
    );
    assert_eq!(
        refused("prague", &keys(None, Some("ect2"))),
        "flow.f.ecn_codepoint: must be one of ect0, ect1, got \"ect2\""
    );
    let quic = |flow: &mut FlowSpec| {
        flow.recovery = Some("quic".into());
        flow.ecn_feedback = Some("accecn".into());
    };
    assert_eq!(
        refused("prague", &quic),
        "flow.f.ecn_feedback: not allowed with recovery = \"quic\", whose acknowledgements count marks"
    );
}

/// QUIC's sender reports no pauses, on which two of the rules act.
#[test]
fn rules_for_pauses_need_a_recovery_that_reports_them() {
    let with = |rule: &str| {
        refused("cubic", |n| {
            n.flows[0].recovery = Some("quic".into());
            n.flows[0].window_validation = Some(rule.into());
            n.flows[0].base_rtt_window_s = Some(-1.0); // the next key, for which all others are refused
        })
    };
    assert!(with("rfc2861").starts_with("flow.f.window_validation: \"rfc2861\" has no effect"), "{}", with("rfc2861"));
    assert!(with("rfc5681").starts_with("flow.f.window_validation: \"rfc5681\" has no effect"));
    for allowed in ["rfc7661", "off"] {
        assert!(!with(allowed).contains("window_validation"));
    }
}

#[test]
fn acknowledgements_that_a_quic_sender_asks_for() {
    let asked = |recovery: Option<&str>, max_delay_s| {
        refused("cubic", |n| {
            let flow = &mut n.flows[0];
            flow.recovery = recovery.map(Into::into);
            flow.ack_frequency = Some(AckFrequencySpec { threshold: 9, max_delay_s, reordering: 3 });
        })
    };
    let needs = r#"flow.f.ack_frequency: needs recovery = "quic""#;
    assert_eq!(asked(None, 0.1), needs);
    assert_eq!(asked(Some("rack"), 0.1), needs);
    let limits = "flow.f.ack_frequency.max_delay: must be above 0 s and below 16.384 s";
    assert_eq!(asked(Some("quic"), 0.0), format!("{limits}, got 0 s"));
    assert_eq!(asked(Some("quic"), 16.384), format!("{limits}, got 16.384 s"));
}
