//! Tests of JetMax: equations checked by hand, the header on the wire, and calls of the laws.

use crate::protocol::{Ack, Connection, LinkView, PacketKind, Passing, Sending, Validation, Wire};
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::router::{LEAST, Router, fair_rate, flows, loss, share_if_joined};
use super::source::{Source, capped, is_less, rate_next, share};
use super::{Echo, Header, JetMax, single};
use crate::protocol::{Router as _, Source as _};
use crate::testing::{close, echo_after};

const fn mbps(rate: f64) -> Rate {
    Rate::from_bps(rate * 1e6)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// `[jetmax-2006:fair-rate]` The fair rate of three flows is (95 − 20)/3 = 25 Mbit/s.
#[test]
fn fair_rate_divides_what_the_others_leave() {
    close(fair_rate(mbps(95.0), mbps(20.0), 3.0).as_bps(), 25e6, 1e-12);
}

/// `[jetmax-2006:membership]` In 100 ms, 25 packets 4 ms apart and 50 packets 2 ms apart count as two flows.
#[test]
fn membership_counts_each_flow_once_whatever_its_rate() {
    close(flows(25.0 * 0.004 + 50.0 * 0.002, 0.1), 2.0, 1e-12);
}

/// `[jetmax-2006:source]` With τ = 0.6, a step from 100 towards 40 Mbit/s reaches 64 Mbit/s. Six steps leave less than
/// the abstract's 1 %.
#[test]
fn source_step_and_the_abstracts_six_intervals() {
    close(rate_next(mbps(100.0), mbps(40.0), 0.6).as_bps(), 64e6, 1e-12);
    let tau = Params::default().tau;
    let distance = |steps| {
        let mut rate = Rate::ZERO;
        for _ in 0..steps {
            rate = rate_next(rate, mbps(1.0), tau);
        }
        1.0 - rate / mbps(1.0)
    };
    close(distance(5), 0.010_24, 1e-9); // 0.4⁵
    close(distance(6), 0.004_096, 1e-9);
}

/// `[jetmax-2006:loss]` A flow of 57 Mbit/s would have a share of 19 Mbit/s at a full link of 95 Mbit/s with two flows.
/// That is a loss of 1 − 19/57 = 2/3.
#[test]
fn loss_of_a_flow_that_would_join() {
    let share_there = share_if_joined(mbps(95.0), mbps(95.0), 2.0, mbps(57.0), 1.0);
    close(share_there.as_bps(), 19e6, 1e-12);
    close(loss(share_there, mbps(57.0)), 2.0 / 3.0, 1e-12);
    close(share(2.0 / 3.0, 57e6), 19e6, 1e-12);
    // Nobody belongs to it and 190 Mbit/s come: each gives up half.
    close(share_if_joined(mbps(95.0), mbps(190.0), 0.0, mbps(57.0), 1.0).as_bps(), 28.5e6, 1e-12);
}

/// `[jetmax-2006:switching]` A flow switches only if another router's share is below 98 % of the target.
#[test]
fn switching_needs_a_share_less_by_epsilon() {
    assert!(!is_less(mbps(98.1), mbps(100.0), 0.02));
    assert!(is_less(mbps(97.9), mbps(100.0), 0.02));
    assert!(is_less(mbps(500.0), Rate::ZERO, 0.02), "no target: the router is gone");
    assert_eq!(capped(mbps(80.0), mbps(50.0), mbps(60.0)), mbps(60.0));
    assert_eq!(capped(mbps(80.0), mbps(50.0), mbps(40.0)), mbps(50.0));
    assert_eq!(capped(mbps(30.0), mbps(50.0), mbps(40.0)), mbps(30.0));
}

/// Headers and echoes are encoded byte for byte, and invalid numbers are refused.
#[test]
fn header_on_the_wire() {
    let header = Header { rate: 1.0, interval: 2.0, loss: -1.0, target: 0.5, hops: 3, bottleneck: 4, next: 5 };
    let mut out = [0; 19];
    header.encode(&mut out);
    assert_eq!(out, [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0, 0xbf, 0x80, 0, 0, 0x3f, 0, 0, 0, 3, 4, 5]);
    assert_eq!(Header::decode(&out), Some(header));
    let echo = Echo { rate: 1.0, loss: -1.0, target: 0.5, bottleneck: 4, next: 5 };
    let mut short = [0; 14];
    echo.encode(&mut short);
    assert_eq!(short, [0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0, 0x3f, 0, 0, 0, 4, 5]);
    assert_eq!(Echo::decode(&short), Some(echo));
    assert_eq!(Header::decode(&out[..18]), None);
    for (field, bits) in [(0, f32::NAN), (4, f32::INFINITY), (8, f32::NAN), (12, -1.0), (0, -1.0)] {
        let mut wrong = out;
        wrong[field..field + 4].copy_from_slice(&bits.to_be_bytes());
        assert_eq!(Header::decode(&wrong), None, "{bits} at {field}");
    }
    assert_eq!(single(f64::INFINITY), f32::MAX);
}

fn link(rate: Rate) -> LinkView {
    LinkView { id: 0, capacity: rate, target: None, queue: Volume::ZERO }
}

/// Sends a packet of 1500 bytes through a router; returns its header.
fn pass(router: &mut Router, header: Option<Header>) -> Option<Header> {
    let mut header = header;
    router.on_arrival(
        &link(mbps(100.0)),
        &mut Passing {
            now: Instant::ZERO,
            volume: Volume::from_bytes(1500.0),
            packets: 1.0,
            kind: PacketKind::Data,
            header: header.as_mut(),
        },
    );
    header
}

fn of_flow(rate_mbps: f64, bottleneck: u8, hops: u8) -> Header {
    let interval = single(0.012 / rate_mbps); // 12 kbit
    Header { rate: single(rate_mbps * 1e6), interval, bottleneck, hops, ..Header::default() }
}

/// `[jetmax-2006:W]` A router counts its own flows and measures the rate of all other traffic.
#[test]
fn a_router_counts_its_own_and_measures_the_rest() {
    let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
    // In 100 ms: 100 packets at 12 Mbit/s of its own, 200 packets (24 Mbit/s) bottlenecked at hop 1 and
    // 100 packets (12 Mbit/s) of somebody else's. This is hop 2.
    for _ in 0..100 {
        pass(&mut router, Some(of_flow(12.0, 2, 1)));
        pass(&mut router, Some(of_flow(24.0, 1, 1)));
        pass(&mut router, Some(of_flow(24.0, 1, 1)));
        pass(&mut router, None);
    }
    router.on_timer(&link(mbps(100.0)), at(100));
    close(router.flows, 1.0, 1e-6);
    close(router.unresponsive.as_bps(), 36e6, 1e-9);
    close(router.target.unwrap().as_bps(), 59e6, 1e-6); // 95 − 36
    // Its own flows receive the target, the others do not.
    let own = pass(&mut router, Some(of_flow(12.0, 2, 1))).unwrap();
    assert_eq!((own.hops, own.bottleneck, own.next), (2, 2, 2));
    close(f64::from(own.target), 59e6, 1e-6);
    close(f64::from(own.loss), 1.0 - 59.0 / 12.0, 1e-6);
    let other = pass(&mut router, Some(of_flow(24.0, 1, 1))).unwrap();
    assert_eq!(other.target, 0.0);
    close(f64::from(other.loss), 1.0 - 41.5 / 24.0, 1e-6); // (95 − 36 + 24)/2 = 41.5
    // A larger loss from an earlier hop stays.
    let earlier = Header { loss: 0.5, next: 1, ..of_flow(24.0, 1, 1) };
    assert_eq!(pass(&mut router, Some(earlier)).unwrap().next, 1);
}

#[test]
fn an_interval_without_its_own_keeps_the_target() {
    let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
    for _ in 0..200 {
        pass(&mut router, Some(of_flow(12.0, 1, 0)));
    }
    router.on_timer(&link(mbps(100.0)), at(100));
    router.on_timer(&link(mbps(100.0)), at(200));
    assert_eq!(router.flows, 0.0);
    close(router.target.unwrap().as_bps(), 47.5e6, 1e-6);
}

#[test]
fn targets_stay_within_the_goal() {
    let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
    pass(&mut router, Some(of_flow(12.0, 1, 0)));
    router.on_timer(&link(mbps(100.0)), at(100));
    assert_eq!(router.target.map(Rate::as_bps), Some(95e6), "a hundredth of a flow");
    for _ in 0..1000 {
        pass(&mut router, None); // 120 Mbit/s
    }
    pass(&mut router, Some(of_flow(12.0, 1, 0)));
    router.on_timer(&link(mbps(100.0)), at(200));
    assert_eq!(router.target, Some(LEAST));
}

#[test]
fn a_scenario_may_set_its_own_target() {
    let view = LinkView { target: Some(0.8), ..link(mbps(100.0)) };
    close(Router::new(&Params::default(), &view).goal.as_bps(), 80e6, 1e-12);
}

fn ack(ms: u64, kind: PacketKind, echo: Echo) -> Ack<Echo> {
    let rtt = Duration::from_millis(50);
    Ack {
        now: at(ms),
        echo,
        kind,
        acked: Volume::from_bytes(1500.0),
        rtt: Some(rtt),
        base_rtt: rtt,
        in_flight: Volume::ZERO,
        marked: Volume::ZERO,
        smoothed_rtt: rtt,
        recovering: false,
        window_limited: true,
    }
}

fn source(weight: f64) -> Source {
    let packet = Volume::from_bytes(1500.0);
    Source::new(
        &Params::default(),
        &Connection {
            weight,
            packet,
            initial_window: 10.0 * packet,
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: Validation::Off,
            seed: 0,
        },
    )
}

/// Returns a source after a handshake at 50 ms that found `share` at hop 2.
fn opened(weight: f64, share_mbps: f64) -> Source {
    let mut source = source(weight);
    let syn = source.stamp(&Sending::new(Instant::ZERO, PacketKind::Syn, Volume::from_bytes(40.0)));
    let loss = single(loss(mbps(share_mbps), Rate::from_bps(f64::from(syn.rate))));
    source.on_ack(&ack(50, PacketKind::Syn, Echo { rate: syn.rate, loss, target: 0.0, bottleneck: 0, next: 2 }));
    source
}

fn pacing(source: &Source) -> f64 {
    source.limit().pacing.expect("a rate").as_bps()
}

/// The initial window of 15,000 bytes is spread over 50 ms and two intervals, which gives 480 kbit/s.
#[test]
fn a_start_spreads_the_initial_window() {
    close(pacing(&opened(1.0, 50.0)), 480e3, 1e-9);
    let mut alone = source(1.0);
    alone.on_ack(&ack(50, PacketKind::Syn, Echo::default()));
    alone.on_ack(&ack(500, PacketKind::Ack, Echo::default()));
    close(pacing(&alone), 480e3, 1e-9); // no router on the path
}

#[test]
fn a_source_waits_until_it_is_counted_and_then_follows_the_target() {
    let mut source = opened(1.0, 50.0);
    let echo = Echo { rate: 480e3, loss: 0.0, target: 40e6, bottleneck: 2, next: 2 };
    source.on_ack(&ack(299, PacketKind::Ack, echo));
    close(pacing(&source), 480e3, 1e-9);
    source.on_ack(&ack(300, PacketKind::Ack, Echo { bottleneck: 1, ..echo }));
    close(pacing(&source), 480e3, 1e-9); // of a packet that belonged elsewhere
    source.on_ack(&ack(300, PacketKind::Ack, echo));
    close(pacing(&source), 0.4 * 480e3 + 0.6 * 40e6, 1e-9);
}

/// After one interval, a flow joins a router that offers a third less than the flow sends. The flow's rate follows once
/// that router has counted the flow.
#[test]
fn a_source_switches_and_waits_again() {
    let mut source = opened(1.0, 50.0);
    let elsewhere = Echo { rate: 30e6, loss: 1.0 - 20.0 / 30.0, target: 40e6, bottleneck: 2, next: 1 };
    let packet = Volume::from_bytes(1500.0);
    let mut stamped = |ms: u64, echo: Echo| {
        source.on_ack(&ack(ms, PacketKind::Ack, echo));
        let header = source.stamp(&Sending::new(at(ms), PacketKind::Data, packet));
        (header.bottleneck, f64::from(header.rate))
    };
    for ms in [300, 399] {
        assert_eq!(stamped(ms, elsewhere), (2, 30e6), "no rise past 20, and no switch yet");
    }
    assert_eq!(stamped(400, elsewhere), (1, 30e6));
    let counted = Echo { target: 20e6, bottleneck: 1, ..elsewhere };
    assert_eq!(stamped(649, counted), (1, 30e6));
    assert_eq!(stamped(650, counted), (1, 24e6));
}

/// A router that offers less than the target, but more than the flow sends, is watched for 1 s, four times 250 ms.
#[test]
fn a_source_takes_its_time_where_nothing_is_urgent() {
    let mut source = opened(1.0, 50.0);
    let less = Echo { rate: 20e6, loss: -0.5, target: 40e6, bottleneck: 2, next: 1 };
    for ms in (300..1300).step_by(50) {
        source.on_ack(&ack(ms, PacketKind::Ack, less));
        assert_eq!(source.bottleneck, 2, "at {ms} ms");
        close(pacing(&source), 30e6, 1e-6); // what router 1 has: 1.5 · 20
    }
    source.on_ack(&ack(1300, PacketKind::Ack, less));
    assert_eq!(source.bottleneck, 1);
    // A single better word starts the watch anew.
    let mut again = opened(1.0, 50.0);
    for ms in (300..2950).step_by(50) {
        let fine = Echo { loss: -1.0, next: 2, ..less };
        again.on_ack(&ack(ms, PacketKind::Ack, if ms == 1000 || ms == 1950 { fine } else { less }));
    }
    assert_eq!((again.bottleneck, again.joined), (2, at(50)));
}

/// A weight of 2 counts as two flows and receives two targets.
#[test]
fn a_weight_is_a_number_of_flows() {
    let mut source = opened(2.0, 50.0);
    let packet = Volume::from_bytes(1500.0);
    let stamped = source.stamp(&Sending::new(at(60), PacketKind::Data, packet));
    close(f64::from(stamped.interval), 2.0 * 12_000.0 / 480e3, 1e-6);
    let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
    let joining = pass(&mut router, Some(Header { bottleneck: 0, ..stamped })).unwrap();
    close(share(f64::from(joining.loss), f64::from(joining.rate)), 95e6 + 480e3, 0.01); // 2/(0 + 2) of the link
    source.on_ack(&ack(300, PacketKind::Ack, Echo { rate: 480e3, loss: 0.0, target: 40e6, bottleneck: 2, next: 2 }));
    close(pacing(&source), 0.4 * 480e3 + 0.6 * 80e6, 1e-9);
}

#[test]
fn the_receiver_echoes_what_came_last() {
    let header = Header { rate: 1.0, interval: 2.0, loss: 3.0, target: 4.0, hops: 5, bottleneck: 6, next: 7 };
    let echo = echo_after::<JetMax>(&Params::default(), &[Header::default(), header]);
    assert_eq!(echo, Echo { rate: 1.0, loss: 3.0, target: 4.0, bottleneck: 6, next: 7 });
}

#[test]
fn parameters_out_of_range_are_refused() {
    let good = Params::default();
    assert_eq!(good.check(), Ok(()));
    let refused = |params: Params| params.check().is_err();
    assert!(refused(Params { gamma: 1.01, ..good.clone() }));
    assert!(refused(Params { tau: 2.0, ..good.clone() }));
    assert!(refused(Params { interval: Duration::ZERO, ..good.clone() }));
    assert!(refused(Params { epsilon: 1.0, ..good.clone() }));
    assert!(refused(Params { urgent: 0.01, ..good.clone() }));
    assert!(refused(Params { x_min: Rate::ZERO, ..good.clone() }));
    // The message names the parameter that a user can set.
    let message = Params { urgent: 0.01, ..good }.check().unwrap_err().to_string();
    assert!(message.starts_with("urgent: "), "{message}");
}

/// The window holds one packet and two RTTs at the pacing rate. The first rate is the initial window of 15 kB over 40
/// ms plus two intervals of 100 ms.
#[test]
fn a_window_of_two_rtts_bounds_what_is_in_flight() {
    let connection = crate::testing::connection();
    let mut source = Source::new(&Params::default(), &connection);
    assert_eq!(source.limit().window, Some(connection.initial_window));
    let echo = Echo { rate: 1e4, loss: 0.0, target: 0.0, bottleneck: 0, next: 1 };
    source.on_ack(&Ack { kind: PacketKind::Syn, ..Ack::new(at(40), echo, Duration::from_millis(40)) });
    let rate = 15_000.0 * 8.0 / 0.24;
    close(source.limit().pacing.unwrap().as_bps(), rate, 1e-12);
    close(source.limit().window.unwrap().as_bytes(), rate / 8.0 * 0.08 + 1500.0, 1e-12);
}
