//! Tests of iXCP: equations checked by hand, headers on the wire, and the naming of bottlenecks.

use super::header::ACCESS;
use super::params::{Claim, Shuffle};
use super::{Echo, Header, IXcp, Params, Router, Source};
use crate::protocol::{
    Ack, Connection, Event, LinkView, PacketKind, Passing, Router as RouterLaw, Sending, Source as _, Validation, Wire,
};
use crate::protocols::xcp;
use crate::units::{Duration, Instant, Rate, Volume};

const HERE: u32 = 3;

fn link() -> LinkView {
    LinkView { id: HERE - 1, capacity: Rate::from_bps(96e6), target: None, queue: Volume::ZERO }
}

fn packet_of(cwnd: f32, bottleneck: u32) -> Header {
    let congestion = xcp::Header::Katabi { rtt: 0.1, cwnd, feedback: f32::MAX };
    Header { congestion, bottleneck, next_bottleneck: ACCESS }
}

fn passing(header: &mut Header) -> Passing<'_, Header> {
    let volume = Volume::from_bytes(1000.0);
    Passing { now: Instant::ZERO, volume, packets: 1.0, kind: PacketKind::Data, header: Some(header) }
}

/// Sends a packet out of the router; returns its feedback in bytes, and its header.
fn leave(router: &mut Router, mut header: Header) -> (f64, Header) {
    RouterLaw::<IXcp>::on_departure(router, &link(), &mut passing(&mut header));
    match header.congestion {
        xcp::Header::Katabi { feedback, .. } => (f64::from(feedback), header),
        xcp::Header::Falk { .. } => unreachable!("the packets here are Katabi's"),
    }
}

/// Returns a router after 100 ms of two flows with an RTT of 100 ms and `bytes` in total. The flow that is bottlenecked
/// here has three quarters of the bytes.
fn router_after(bytes: f32, claim: Claim) -> Router {
    let params = Params { claim, first_interval: Duration::from_millis(100), ..Params::default() };
    let mut router = RouterLaw::<IXcp>::new(&params, &link());
    for (cwnd, bottleneck) in [(0.75 * bytes, HERE), (0.25 * bytes, 7)] {
        for _ in 0..(cwnd / 1000.0) as u32 {
            RouterLaw::<IXcp>::on_arrival(&mut router, &link(), &mut passing(&mut packet_of(cwnd, bottleneck)));
        }
    }
    RouterLaw::<IXcp>::on_timer(&mut router, &link(), Instant::from_secs(0.1));
    router
}

#[test]
fn eight_bytes_more_out_and_four_back() {
    assert_eq!((Header::BYTES, Echo::BYTES), (xcp::Header::BYTES + 8, xcp::Echo::BYTES + 4));
    let mut out = [0; 28];
    let header = Header { next_bottleneck: 0x0102_0304, ..packet_of(1e5, HERE) };
    header.encode(&mut out);
    assert_eq!((out[1], &out[20..]), (28, &[0, 0, 0, 3, 1, 2, 3, 4][..]));
    assert_eq!(Header::decode(&out), Some(header));
    assert_eq!(xcp::Header::decode(&out), None, "no XCP header");
    let mut out = [0; 24];
    let echo = Echo { congestion: xcp::Echo::Window(-3.0), next_bottleneck: 9 };
    echo.encode(&mut out);
    assert_eq!((Echo::decode(&out), Echo::decode(&out[..23])), (Some(echo), None));
}

/// `[ixcp-2007:eq1, eq3]` All packets together fill the link of 96 Mbit/s, which gives φ = 0 and h = γ·72 Mbit/s. The
/// local flow gains and loses all of h; the other flow gains and loses nothing.
#[test]
fn eq3_shuffles_local_flows_only() {
    let mut router = router_after(1200e3, Claim::FullLink);
    for (cwnd, bottleneck) in [(900e3, HERE), (300e3, 7)] {
        let (feedback, header) = leave(&mut router, packet_of(cwnd, bottleneck));
        assert!(feedback.abs() < 1.0, "{feedback}");
        assert_eq!(header.next_bottleneck, HERE);
    }
    // A small flow that names this link gains from it: C_p·X, X = 0.1 s/4, of 7.2 Mbit/s per 0.1 s of X,
    // times 0.1 s, less γ of its packet.
    let (feedback, _) = leave(&mut router, packet_of(4e3, HERE));
    let expected = 7.2e6 / 0.1 * 0.025 / 8.0 * 0.1 - 100.0;
    assert!((feedback / expected - 1.0).abs() < 0.01, "{feedback} is not {expected}");
    // XCP would divide the same sum between both flows; the flow that names another link gets none.
    let (feedback, _) = leave(&mut router, packet_of(4e3, 7));
    assert!(feedback.abs() < 1.0, "{feedback}");
}

/// `[ixcp-2007:3]` A link that gives smaller feedback becomes the next bottleneck. By default, the link must also be
/// full.
#[test]
fn the_smaller_feedback_names_the_bottleneck() {
    for (bytes, claim, named) in [
        (1200e3, Claim::FullLink, HERE),
        (1000e3, Claim::FullLink, ACCESS),
        (1200e3, Claim::LeastFeedback, HERE),
        (1000e3, Claim::LeastFeedback, HERE),
    ] {
        let mut router = router_after(bytes, claim);
        // An earlier link that gave more, and one that gave less.
        for (given, named) in [(1e6, named), (-1e6, 5)] {
            let mut header = Header { next_bottleneck: 5, ..packet_of(1e5, 7) };
            header.congestion = xcp::Header::Katabi { rtt: 0.1, cwnd: 1e5, feedback: given };
            let (_, header) = leave(&mut router, header);
            assert_eq!(header.next_bottleneck, named, "{claim:?} with {bytes} B in 100 ms");
        }
    }
}

/// `[ixcp-2007:2.1]` A packet with half of its gains left takes only half of its losses. A sum of zero does not limit
/// the other sum.
#[test]
fn a_packet_shuffles_by_what_is_left() {
    let bps = Rate::from_bps;
    let (half, all) = ((bps(2500.0), bps(5000.0)), (bps(10e3), bps(10e3)));
    for (gain, loss, part) in [(half, all, 0.5), (all, half, 0.5), (all, (Rate::ZERO, Rate::ZERO), 1.0)] {
        assert_eq!(Shuffle::Paired.part(gain, loss), part);
        assert_eq!(Shuffle::Draft.part(gain, loss), 1.0);
    }
}

/// `[ixcp-2007:2.1, 3]` Four packets with small windows use up the gains from shuffling, a quarter each. The next local
/// packet still loses γ of itself in draft shuffling, and takes no part in paired shuffling. Without residues it gains
/// like the others, a quarter of 1.2 MB in 100 ms times γ.
#[test]
fn paired_shuffling_ends_with_the_gains() {
    for (shuffle, residues, left) in [
        (Shuffle::Paired, true, 0.0),
        (Shuffle::Draft, true, -100.0),
        (Shuffle::Paired, false, 29_900.0),
        (Shuffle::Draft, false, 29_900.0),
    ] {
        let params = Params { shuffle, residues, first_interval: Duration::from_millis(100), ..Params::default() };
        let mut router = RouterLaw::<IXcp>::new(&params, &link());
        for _ in 0..1200 {
            RouterLaw::<IXcp>::on_arrival(&mut router, &link(), &mut passing(&mut packet_of(1200e3, HERE)));
        }
        RouterLaw::<IXcp>::on_timer(&mut router, &link(), Instant::from_secs(0.1));
        for _ in 0..5 {
            leave(&mut router, packet_of(4e3, HERE));
        }
        let (feedback, _) = leave(&mut router, packet_of(4e3, HERE));
        assert!((feedback - left).abs() < 1.0, "{shuffle:?}, residues {residues}: {feedback} B");
    }
}

#[test]
fn a_source_names_what_the_acknowledgement_names() {
    let packet = Volume::from_bytes(1000.0);
    let mut source = Source::new(
        &Params::default(),
        &Connection {
            weight: 1.0,
            packet,
            initial_window: packet,
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: Validation::Off,
            seed: 0,
        },
    );
    let mut named_after = |next_bottleneck| {
        let rtt = Duration::from_millis(100);
        source.on_ack(&Ack {
            acked: packet,
            in_flight: packet,
            ..Ack::new(Instant::ZERO, Echo { congestion: xcp::Echo::Window(0.0), next_bottleneck }, rtt)
        });
        let sent = source.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, packet));
        (sent.bottleneck, sent.next_bottleneck)
    };
    assert_eq!(named_after(ACCESS), (ACCESS, ACCESS));
    assert_eq!(named_after(4), (4, ACCESS));
    assert_eq!(named_after(ACCESS), (4, ACCESS), "no link named: it stays");
    assert_eq!(named_after(2), (2, ACCESS));
}

/// The parts of a parcel divide the parcel's feedback, which is a sum over packets. Each part keeps the link
/// identifiers.
#[test]
fn parts_divide_the_feedback_and_keep_the_names() {
    let of = |feedback, bottleneck| {
        let congestion = xcp::Header::Katabi { rtt: 0.1, cwnd: 1e5, feedback };
        Header { congestion, bottleneck, next_bottleneck: bottleneck + 1 }
    };
    assert_eq!(of(-400.0, 3).part(0.25), of(-100.0, 3));
    assert_eq!(of(-100.0, 3).joined(&of(-400.0, 7)), of(-500.0, 7));
}

/// A loss halves the window and a timeout reduces it to one packet, as in XCP.
#[test]
fn losses_halve_the_window() {
    let packet = Volume::from_bytes(1000.0);
    let mut source = Source::new(
        &Params::default(),
        &Connection {
            weight: 1.0,
            packet,
            initial_window: packet,
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: Validation::Off,
            seed: 0,
        },
    );
    let echo = Echo { congestion: xcp::Echo::Window(9000.0), next_bottleneck: ACCESS };
    let ack = Ack::new(Instant::ZERO, echo, Duration::from_millis(100));
    source.on_ack(&Ack { acked: packet, in_flight: packet, ..ack });
    let window = |source: &Source| source.limit().window.unwrap().as_bytes();
    assert_eq!(window(&source), 10_000.0);
    source.on_event(Instant::ZERO, Event::Loss);
    assert_eq!(window(&source), 5000.0);
    source.on_event(Instant::ZERO, Event::Timeout);
    assert_eq!(window(&source), 1000.0);
}
