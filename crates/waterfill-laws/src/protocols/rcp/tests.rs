//! Tests of RCP: equations checked by hand, the header on the wire, and calls of the laws.

use crate::protocol::{Ack, Connection, LinkView, SendLimit, Sending, Wire};
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Average, Params, Writes};
use super::router::{Router, interval, mean_rtt_next, rate_next, spare};
use super::source::Source;
use super::{Echo, HEADER_BYTES, Header, Rcp, WireRate};
use crate::params::Params as _;
use crate::protocol::{PacketKind, Passing, Router as _, Source as _};
use crate::testing::{self, close, connection, echo_after};

fn bps(rate: f64) -> Rate {
    Rate::from_bps(rate)
}

fn link(queue_bytes: f64) -> LinkView {
    LinkView { id: 0, capacity: bps(1e8), target: None, queue: Volume::from_bytes(queue_bytes) }
}

/// `[rcp-2006:R]` The spare rate at 60 of 100 Mbit/s and 62.5 kB of queue is 0.4·40 − 5 = 11 Mbit/s. An interval of T =
/// 10 ms applies a tenth of the spare rate, because d̂ = 0.1 s.
#[test]
fn r_step() {
    let spare = spare(bps(1e8), bps(6e7), Volume::from_bytes(62_500.0), 0.4, 1.0, 0.1);
    close(spare.as_bps(), 1.1e7, 1e-12);
    close(rate_next(bps(2e7), spare, bps(1e8), 0.01, 0.1).as_bps(), 2e7 * 1.011, 1e-12);
}

/// `[maxnet-2007:eq16]` Without a queue, the next rate is R·(1 + dt·α(C − y)/(τC)).
#[test]
fn eq16_of_maxnet_is_r_without_beta() {
    let (c, y, tau, dt, alpha) = (1e8, 4e7, 0.05, 0.001, 0.4);
    let spare = spare(bps(c), bps(y), Volume::from_bytes(1e6), alpha, 0.0, tau);
    close(rate_next(bps(3e7), spare, bps(c), dt, tau).as_bps(), 3e7 * (1.0 + dt * alpha * (c - y) / (tau * c)), 1e-12);
}

/// `[rcp-2006:d]` The mean RTT moves towards a sample by the gain, and the interval T is at most d̂.
#[test]
fn d_mean_and_interval() {
    close(mean_rtt_next(0.1, 0.2, 0.25), 0.125, 1e-12);
    assert_eq!(mean_rtt_next(0.1, 0.2, 3.0), 0.2);
    assert_eq!(interval(0.1, Duration::from_millis(10)), Duration::from_millis(10));
    assert_eq!(interval(0.004, Duration::from_millis(10)), Duration::from_millis(4));
}

#[test]
fn header_on_the_wire() {
    let mut out = [0; HEADER_BYTES];
    Header { rate: WireRate::of(bps(1e6)), rtt: 0x0102_0304 }.encode(&mut out);
    assert_eq!(out, [0x49, 0x74, 0x24, 0, 0x7f, 0x80, 0, 0, 1, 2, 3, 4]); // 10⁶ = 1.9073486·2¹⁹
    assert_eq!(Header::decode(&out), Some(Header { rate: WireRate(1e6), rtt: 0x0102_0304 }));
    Echo { rate: WireRate::of(bps(1e6)) }.encode(&mut out);
    assert_eq!(out, [0x7f, 0x80, 0, 0, 0x49, 0x74, 0x24, 0, 0, 0, 0, 0]);
    assert_eq!(Echo::decode(&out), Some(Echo { rate: WireRate(1e6) }));
    assert_eq!(Header::decode(&out[..11]), None);
    out[0..4].copy_from_slice(&(-1.0_f32).to_be_bytes());
    assert_eq!(Header::decode(&out), None, "no negative rates");
    out[0..4].copy_from_slice(&f32::NAN.to_be_bytes());
    assert_eq!(Header::decode(&out), None);
}

fn pass(router: &mut Router, rate: WireRate, rtt: u32, bytes: f64) -> WireRate {
    testing::pass::<Rcp>(router, &link(0.0), Header { rate, rtt }, bytes).rate
}

/// `[rcp-2006:path]` A router lowers a requested rate to its own rate, and never raises it.
#[test]
fn a_router_lowers_requests_to_its_first_rate() {
    let mut router = Router::new(&Params::default(), &link(0.0));
    assert_eq!(pass(&mut router, WireRate::UNLIMITED, 0, 40.0).rate(), Some(bps(5e6)));
    assert_eq!(pass(&mut router, WireRate::of(bps(4e6)), 0, 40.0).rate(), Some(bps(4e6)));
}

/// A waiting packet leaves with the rate of its arrival or of its departure, depending on `writes`. A router that
/// writes at arrival needs no calls at departures.
#[test]
fn a_waiting_packet_receives_the_older_or_the_newer_rate() {
    let rate = |writes| {
        let mut router = Router::new(&Params { writes, ..Params::default() }, &link(0.0));
        let mut header = Header::default();
        let (now, volume, kind) = (Instant::ZERO, Volume::from_bytes(1000.0), PacketKind::Data);
        router.on_arrival(&link(0.0), &mut Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) });
        router.on_timer(&link(0.0), Instant::ZERO);
        if router.sees_departures() {
            let passing = &mut Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) };
            router.on_departure(&link(0.0), passing);
        }
        (header.rate.rate(), router.sees_departures(), router.rate)
    };
    let (older, asks, newer) = rate(Writes::Arrival);
    assert_eq!((older, asks), (Some(bps(5e6)), false));
    assert!(newer > bps(5e6), "an idle link raises its rate");
    assert_eq!(rate(Writes::Departure), (WireRate::of(newer).rate(), true, newer));
}

/// RTTs are weighted by bytes: two bytes at 20 ms for each byte at 80 ms give 40 ms. The first sample becomes d̂, and
/// later samples move d̂ by T/d̂.
#[test]
fn rtts_are_weighted_by_traffic() {
    let average = |average| {
        let mut router = Router::new(&Params { average, ..Params::default() }, &link(0.0));
        pass(&mut router, WireRate::UNLIMITED, 0, 1e6); // a SYN's RTT is not known
        pass(&mut router, WireRate::UNLIMITED, 20_000, 2000.0);
        pass(&mut router, WireRate::UNLIMITED, 80_000, 1000.0);
        router.on_timer(&link(0.0), Instant::ZERO);
        close(router.mean_rtt, 0.04, 1e-12);
        pass(&mut router, WireRate::UNLIMITED, 20_000, 1500.0);
        let share = router.rate / router.capacity;
        router.on_timer(&link(0.0), Instant::ZERO);
        (router.mean_rtt, share)
    };
    close(average(Average::Traffic).0, 0.035, 1e-12); // 40 − ¼·20 ms
    let (mean, share) = average(Average::Reluctant);
    close(mean, 0.04 - 0.25 * share * 0.5 * 0.02, 1e-12);
}

#[test]
fn a_rate_stays_between_r_min_and_capacity() {
    let mut router = Router::new(&Params::default(), &link(0.0));
    for _ in 0..10_000 {
        router.on_timer(&link(0.0), Instant::ZERO);
    }
    assert_eq!(router.rate, bps(1e8));
    for _ in 0..10_000 {
        router.on_timer(&link(1e9), Instant::ZERO);
    }
    assert_eq!(router.rate, bps(24e3));
    Params { r_min: Rate::ZERO, ..Params::default() }
        .validate()
        .expect_err("a source that may not send never receives a rate");
}

/// A source that claims an RTT of 10 s states this RTT from its first sample on, and follows the router's rate.
#[test]
fn a_claimed_rtt_is_stated_from_the_first_sample_on() {
    let claimed_rtt = Some(Duration::from_millis(10_000));
    let mut liar = Source::new(&Params::default(), &Connection { claimed_rtt, ..connection() });
    let sending = Sending::new(Instant::ZERO, PacketKind::Data, Volume::from_bytes(1500.0));
    assert_eq!(liar.stamp(&sending).rtt, 0);
    let echo = echo_after::<Rcp>(&Params::default(), &[Header { rate: WireRate::of(bps(5e6)), rtt: 0 }]);
    liar.on_ack(&Ack::new(Instant::ZERO, echo, Duration::from_millis(40)));
    assert_eq!(liar.stamp(&sending).rtt, 10_000_000);
    assert_eq!(liar.limit().pacing, Some(bps(5e6)));
}

/// The SYN carries no RTT. The answer to the SYN sets the source's rate, and later answers change this rate.
#[test]
fn a_source_sends_at_the_rate_it_receives() {
    let packet = Volume::from_bytes(1500.0);
    let mut source = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    let sending = |kind| Sending::new(Instant::ZERO, kind, packet);
    assert_eq!(source.stamp(&sending(PacketKind::Syn)), Header { rate: WireRate::UNLIMITED, rtt: 0 });
    assert_eq!(source.limit().window, Some(10.0 * packet));
    let answer = |source: &mut Source, kind, rate, rtt_ms| {
        let echo = echo_after::<Rcp>(&Params::default(), &[Header { rate, rtt: 0 }]);
        source.on_ack(&Ack {
            now: Instant::ZERO,
            echo,
            kind,
            acked: Volume::ZERO,
            rtt: Some(Duration::from_millis(rtt_ms)),
            base_rtt: Duration::from_millis(rtt_ms),
            in_flight: Volume::ZERO,
            marked: Volume::ZERO,
            smoothed_rtt: Duration::from_millis(rtt_ms),
            recovering: false,
            window_limited: true,
        });
    };
    answer(&mut source, PacketKind::Syn, WireRate::of(bps(5e6)), 40);
    assert_eq!(source.limit(), SendLimit { window: None, pacing: Some(bps(1e7)) });
    assert_eq!(source.stamp(&sending(PacketKind::Data)).rtt, 40_000);
    answer(&mut source, PacketKind::Ack, WireRate::of(bps(6e6)), 41);
    assert_eq!(source.limit().pacing, Some(bps(1.2e7)));
    answer(&mut source, PacketKind::Ack, WireRate::UNLIMITED, 41);
    assert_eq!(source.limit().pacing, Some(bps(1.2e7)), "an answer without a rate changes nothing");
}
