//! Tests of AECP: equations checked by hand, the header on the wire, and calls of the laws.

use crate::protocol::{Ack, Connection, LinkView, PacketKind, Passing, Protocol, Wire};
use crate::units::{Duration, Instant, Volume};

use super::params::{Ceiling, First, Params, Rounding, SourceKind, WindowRtt};
use super::router::{Router, queue_as_load, r_next, resting_load};
use super::source::{Source, weight_exact, weight_printed, x_next};
use super::{Aecp, Factor, Header, place_of};
use crate::params::Params as _;
use crate::protocol::{Router as _, Source as _};
use crate::testing::{close, connection, echo_after, link};

/// `[aecp-2010:fig4]` Every code is recovered from its rate, and rounding changes a rate by at most half a step.
#[test]
fn fig4_codes_are_logarithms() {
    for code in 0..=Factor::LARGEST.0 {
        let rate = Factor(code).rate().expect("written");
        assert_eq!(Factor::nearest(place_of(rate)).0, Factor(code));
    }
    assert_eq!(Factor(0).rate(), Some(0.25));
    assert_eq!(Factor(2048).rate(), Some(1.0));
    assert_eq!(Factor::UNWRITTEN.rate(), None);
    close(Factor::LARGEST.rate().unwrap(), 4.605_447e18, 1e-4); // 2^(65534/1024 − 2)
    close(Factor(2049).rate().unwrap(), 1.000_677_131, 1e-8); // 2^(1/1024)
    for rate in [0.26, 10.0, 62_500.0, 1e12] {
        close(Factor::nearest(place_of(rate)).0.rate().unwrap(), rate, 3.4e-4);
    }
    assert_eq!(Factor::nearest(-1.0).0, Factor(0));
    assert_eq!(Factor::nearest(f64::NAN).0, Factor(0));
    assert_eq!(Factor::nearest(1e9).0, Factor::LARGEST);
}

/// `[aecp-2010:fig4]` Next Header and factor are encoded byte for byte; a sender writes −1 (§5.2).
#[test]
fn fig4_header_on_the_wire() {
    let mut out = [0; 3];
    Header::default().encode(&mut out);
    assert_eq!(out, [6, 0xff, 0xff]);
    Header { factor: Factor(0x1234) }.encode(&mut out);
    assert_eq!(out, [6, 0x12, 0x34]);
    for code in 0..=u16::MAX {
        let header = Header { factor: Factor(code) };
        header.encode(&mut out);
        assert_eq!(Header::decode(&out), Some(header));
    }
    assert_eq!(Header::decode(&[17, 0, 0]), None);
    assert_eq!(Header::decode(&[6, 0]), None);
}

/// `[aecp-2010:eq49, eq2]` An empty link of 62,500 packets/s multiplies r by e^(0.1·(1 + 50/62500)). A full link with q
/// = q₀ keeps r.
#[test]
fn eq49_router_step() {
    let used = queue_as_load(0.0, 100.0, 2.0);
    assert_eq!(used, -50.0);
    close(r_next(10.0, used, 62_500.0, 1.0, 0.1), 11.052_593, 1e-7);
    assert_eq!(r_next(10.0, 62_500.0 + queue_as_load(100.0, 100.0, 2.0), 62_500.0, 1.0, 0.1), 10.0);
    // Twice the capacity and 100 packets beyond q₀: e^(0.1·(1 − 2 − 0.0008)).
    close(r_next(10.0, 125_000.0 + queue_as_load(200.0, 100.0, 2.0), 62_500.0, 1.0, 0.1), 9.047_650, 1e-6);
    assert_eq!(resting_load(0.0, 62_500.0, 100.0, 2.0), 62_550.0);
}

/// `[aecp-2010:eq46, eq48]` At τ = 0.1 s the next rate is x^0.8·r^0.2. From 10 towards 1000 that is a fifth of two
/// decades.
#[test]
fn eq48_source_step() {
    close(weight_printed(2.0, 0.1), 0.2, 1e-12);
    close(x_next(10.0, 1000.0, weight_printed(2.0, 0.1)), 25.118_864, 1e-7); // 10^1.4
    close(x_next(1000.0, 10.0, 0.2), 398.107_17, 1e-7); // 10^2.6
    assert_eq!(weight_printed(2.0, 0.5), 1.0);
    assert_eq!(weight_printed(2.0, 0.8), 1.0, "beyond 0.5 s eq. 48 is no mean any more");
    close(x_next(10.0, 1000.0, 1.0), 1000.0, 1e-12);
}

/// `[aecp-2010:eq3]` A step has the weight 1 − e^(−0.2), and two steps of half the time equal one step.
#[test]
fn eq3_exact_step() {
    close(weight_exact(2.0, 0.1), 0.181_269_247, 1e-8);
    let once = x_next(10.0, 1000.0, weight_exact(2.0, 0.4));
    let half = x_next(10.0, 1000.0, weight_exact(2.0, 0.2));
    close(x_next(half, 1000.0, weight_exact(2.0, 0.2)), once, 1e-12);
    assert!(weight_exact(2.0, 1e6) <= 1.0);
}

/// `[aecp-2010:eq43]` The default β and T follow from the default α = 2.
#[test]
fn eq43_parameters() {
    let params = Params::default();
    assert_eq!(params.beta, params.alpha / 2.0);
    assert_eq!(params.t.as_secs(), 4.0 / params.alpha);
    Params { x_0: 0.2, ..params }.validate().expect_err("slower than the smallest code");
}

fn arrive(router: &mut Router, factor: Factor, kind: PacketKind, bytes: f64) -> Factor {
    let mut header = Header { factor };
    let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes));
    let mut passing = Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) };
    router.on_arrival(&link(1e8, 0.0), &mut passing);
    header.factor
}

/// `[aecp-2010:eq4]` A router lowers a factor and never raises it.
#[test]
fn eq4_the_smallest_factor_of_the_path() {
    let mut router = Router::new(&Params { rounding: Rounding::Nearest, ..Params::default() }, &link(1e8, 0.0));
    let ten = Factor::nearest(place_of(10.0)).0;
    assert_eq!(arrive(&mut router, Factor::UNWRITTEN, PacketKind::Syn, 40.0), ten);
    assert_eq!(arrive(&mut router, Factor(ten.0 + 1), PacketKind::Data, 1500.0), ten);
    assert_eq!(arrive(&mut router, Factor(ten.0 - 1), PacketKind::Data, 1500.0), Factor(ten.0 - 1));
}

#[test]
fn carried_rounding_means_r() {
    let mut router = Router::new(&Params::default(), &link(1e8, 0.0));
    let sum: f64 =
        (0..1000).map(|_| f64::from(arrive(&mut router, Factor::UNWRITTEN, PacketKind::Data, 1500.0).0)).sum();
    assert!((sum / 1000.0 - place_of(10.0)).abs() < 1e-3);
}

/// A router learns the packet size from AECP's data, and counts the bytes of all packets as load.
#[test]
fn packets_are_those_of_the_data() {
    let params = Params { r_0: First::Capacity, ceiling: Ceiling::Capacity, ..Params::default() };
    let mut router = Router::new(&params, &link(8e6, 0.0));
    close(router.r, 8e6 / 12_000.0, 1e-12); // 1500 B until data is seen
    arrive(&mut router, Factor::UNWRITTEN, PacketKind::Syn, 40.0);
    for _ in 0..200 {
        arrive(&mut router, Factor::UNWRITTEN, PacketKind::Data, 1000.0);
    }
    // 200 kB and a SYN in 0.1 s of 8 Mbit/s are twice its capacity; 150 packets wait, 50 beyond q₀: 25 a second.
    router.on_timer(&link(8e6, 150_000.0), Instant::ZERO);
    close(router.r, 666.666_67 * (0.1 * (1.0 - 2.000_4 - 0.025_f64)).exp(), 1e-7);
    // Nothing more comes, and r climbs to the ceiling, C in packets of 1000 B.
    for _ in 0..100 {
        router.on_timer(&link(8e6, 0.0), Instant::ZERO);
    }
    assert_eq!(router.r, 1000.0);
}

#[test]
fn a_ceiling_lets_one_flow_fill_the_queue() {
    let idle = |ceiling| {
        let mut router = Router::new(&Params { ceiling, ..Params::default() }, &link(1.2e7, 0.0));
        (0..200).for_each(|_| router.on_timer(&link(1.2e7, 0.0), Instant::ZERO));
        router.r
    };
    assert_eq!(idle(Ceiling::Capacity), 1000.0);
    assert_eq!(idle(Ceiling::EmptyQueue), 1050.0); // C + q₀/T
    let half = LinkView { target: Some(0.5), ..link(1.2e7, 0.0) };
    let mut router = Router::new(&Params::default(), &half);
    (0..200).for_each(|_| router.on_timer(&half, Instant::ZERO));
    assert_eq!(router.r, 500.0, "no queue to fill on a link that shall not be full");
}

/// A source steps once per RTT, however many acknowledgements arrive (§5.2 with T₁ = τ).
#[test]
fn a_source_steps_once_per_rtt() {
    let mut source = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    let factor = Factor::nearest(place_of(1000.0)).0;
    let r = factor.rate().unwrap();
    let mut ack = |ms, factor| {
        source.on_ack(&Ack {
            base_rtt: Duration::from_millis(50),
            ..Ack::new(Instant::ZERO + Duration::from_millis(ms), Header { factor }, Duration::from_millis(100))
        });
        source.limit().pacing.unwrap().as_bps() / 24_000.0 // weight 2, 12000 bit a packet
    };
    assert_eq!(ack(0, Factor::UNWRITTEN), 10.0, "no router on the path");
    assert_eq!(ack(100, factor), 10.0, "the clock starts");
    assert_eq!(ack(199, factor), 10.0);
    close(ack(200, factor), 10.0_f64.powf(0.8) * r.powf(0.2), 1e-12);
    close(ack(299, factor), 10.0_f64.powf(0.8) * r.powf(0.2), 1e-12);
    close(ack(1300, factor), r, 1e-12); // silent for 1.1 s: αT₁ is past 1
}

/// The window is W = x·τ in bytes, with the RTT of the last step. Between steps neither x nor τ changes.
#[test]
fn a_window_is_the_rate_times_the_rtt() {
    let params = Params { source: SourceKind::Window, ..Params::default() };
    let mut source = Source::new(&params, &Connection { weight: 2.0, ..connection() });
    assert_eq!(source.limit().window, Some(Volume::ZERO), "no RTT yet: the host's one packet");
    let factor = Factor::nearest(place_of(1000.0)).0;
    let mut ack = |ms, rtt_ms, factor| {
        let now = Instant::ZERO + Duration::from_millis(ms);
        source.on_ack(&Ack::new(now, Header { factor }, Duration::from_millis(rtt_ms)));
        source.limit().window.unwrap().as_bytes() / 3000.0 // weight 2, 1500 B a packet
    };
    close(ack(0, 100, Factor::UNWRITTEN), 10.0 * 0.1, 1e-12);
    close(ack(100, 120, factor), 10.0 * 0.1, 1e-12); // the clock starts
    close(ack(219, 125, factor), 10.0 * 0.1, 1e-12);
    let x = 10.0_f64.powf(0.72) * factor.rate().unwrap().powf(0.28); // αT₁ = 2·0.14
    close(ack(240, 140, factor), x * 0.14, 1e-12);
    close(ack(250, 400, factor), x * 0.14, 1e-12);
    let base = Params { window_rtt: WindowRtt::Base, ..params };
    let mut source = Source::new(&base, &connection());
    let smallest = Duration::from_millis(100);
    source
        .on_ack(&Ack { base_rtt: smallest, ..Ack::new(Instant::ZERO, Header { factor }, Duration::from_millis(400)) });
    close(source.limit().window.unwrap().as_bytes(), 10.0 * 0.1 * 1500.0, 1e-12);
    assert!(!<Aecp as Protocol>::paced(&params) && <Aecp as Protocol>::paced(&Params::default()));
}

#[test]
fn a_receiver_copies_the_last_header() {
    let after = |headers: &[Header]| echo_after::<Aecp>(&Params::default(), headers);
    assert_eq!(after(&[]).factor, Factor::UNWRITTEN);
    assert_eq!(after(&[Header { factor: Factor(5) }, Header { factor: Factor(77) }]).factor, Factor(77));
}
