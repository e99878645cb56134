//! Tests of XCP's header, receiver and source, checked by hand from the papers. The router has its own tests.

use super::header::inter_packet_time;
use super::*;
use crate::protocol::{Ack, Connection, Event, PacketKind, Received, Sending, Wire as _};
use crate::testing::close;
use crate::units::{Duration, Instant, Rate, Volume};

pub(super) fn bps(bps: f64) -> Rate {
    Rate::from_bps(bps)
}

pub(super) fn bytes(bytes: f64) -> Volume {
    Volume::from_bytes(bytes)
}

pub(super) fn packet_of(form: Form, rtt: f64, cwnd: f64) -> Header {
    Header::stamped(form, Some(rtt), bytes(cwnd), bytes(1000.0))
}

pub(super) fn feedback(header: &Header) -> f64 {
    match *header {
        Header::Katabi { feedback, .. } => f64::from(feedback),
        Header::Falk { delta_throughput, .. } => f64::from(delta_throughput),
    }
}

fn roundtrip(header: Header) -> [u8; 20] {
    let mut out = [0; 20];
    header.encode(&mut out);
    assert_eq!(Header::decode(&out), Some(header));
    out
}

#[test]
fn headers_on_the_wire() {
    // 80 ms are 21474836 ticks of 2⁻²⁸ s; X = 80 ms · 1000/100000 is 0.8 ms, 214748 ticks.
    let mut falk = packet_of(Form::Falk, 0.08, 1e5);
    falk.set_feedback(bps(-8.0 * 258.0), 0.08);
    let out = roundtrip(falk);
    assert_eq!(out[..4], [6, 20, 0x21, 0]);
    assert_eq!(out[4..8], 21_474_836_u32.to_be_bytes());
    assert_eq!(out[8..12], 214_748_u32.to_be_bytes());
    assert_eq!(out[12..], [0xff, 0xff, 0xfe, 0xfe, 0, 0, 0, 0]);
    let out = roundtrip(packet_of(Form::Katabi, 0.5, 1024.0));
    assert_eq!(out, [6, 20, 0x2e, 0, 0x3f, 0, 0, 0, 0x44, 0x80, 0, 0, 0x7f, 0x7f, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(Header::decode(&out[..19]), None);
    let not_a_number = [6, 20, 0x2e, 0, 0x7f, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(Header::decode(&not_a_number), None);
    for echo in [Echo::Window(-1.5), Echo::Throughput(i32::MIN), Echo::Total(1e9)] {
        let mut out = [0; 20];
        echo.encode(&mut out);
        assert_eq!(Echo::decode(&out), Some(echo));
    }
}

/// `[draft-falk:x]` At 100 ms per 100 kB, X of 1 kB is 1 ms. A SYN without a window has X = 0.
#[test]
fn x_is_the_time_between_packets() {
    close(inter_packet_time(0.1, bytes(1000.0), bytes(100e3)), 1e-3, 1e-12);
    assert_eq!(inter_packet_time(0.1, bytes(40.0), Volume::ZERO), 0.0);
}

#[test]
fn a_field_without_a_router_differs_from_any_written_one() {
    for form in [Form::Katabi, Form::Falk] {
        let mut header = packet_of(form, 0.08, 1e5);
        assert_eq!(header.feedback(0.08), None);
        header.set_feedback(bps(1e40), 0.08);
        assert!(header.feedback(0.08).is_some());
    }
}

fn ack(echo: Echo) -> Ack<Echo> {
    let rtt = Duration::from_millis(100);
    Ack {
        now: Instant::ZERO,
        echo,
        kind: PacketKind::Ack,
        acked: bytes(1000.0),
        rtt: Some(rtt),
        base_rtt: rtt,
        in_flight: bytes(1e6),
        marked: Volume::ZERO,
        smoothed_rtt: rtt,
        recovering: false,
        window_limited: true,
    }
}

fn source(params: &Params) -> Source {
    let packet = bytes(1000.0);
    Source::new(
        params,
        &Connection {
            weight: 1.0,
            packet,
            initial_window: 10.0 * packet,
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: crate::protocol::Validation::Off,
            seed: 0,
        },
    )
}

/// `[katabi-2002:cwnd]` The window changes by the feedback, but not below one packet.
#[test]
fn cwnd_follows_feedback() {
    let mut source = source(&Params::default());
    assert_eq!(source.cwnd, bytes(1000.0));
    source.on_ack(&ack(Echo::Window(2500.0)));
    assert_eq!(source.cwnd, bytes(3500.0));
    source.on_ack(&ack(Echo::Window(-500.0)));
    assert_eq!(source.cwnd, bytes(3000.0));
    source.on_ack(&ack(Echo::Throughput(10_000))); // 10 kB/s · 100 ms
    assert_eq!(source.cwnd, bytes(4000.0));
    source.on_ack(&ack(Echo::Window(-1e9)));
    assert_eq!(source.cwnd, bytes(1000.0));
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut source = source(&Params { first_window: 100.0, ..Params::default() });
    source.on_ack(&Ack { in_flight: bytes(48e3), ..ack(Echo::Window(1000.0)) });
    assert_eq!(source.cwnd, bytes(100e3));
    source.on_ack(&Ack { in_flight: bytes(49e3), ..ack(Echo::Window(1000.0)) });
    assert_eq!(source.cwnd, bytes(101e3));
}

#[test]
fn losses_reduce_the_window_as_in_tcp() {
    let mut cut = source(&Params { first_window: 100.0, ..Params::default() });
    cut.on_event(Event::Loss);
    assert_eq!(cut.cwnd, bytes(50e3));
    cut.on_event(Event::Timeout);
    assert_eq!(cut.cwnd, bytes(1e3));
    let mut whole = source(&Params { first_window: 100.0, halve_on_loss: false, ..Params::default() });
    whole.on_event(Event::Loss);
    assert_eq!(whole.cwnd, bytes(100e3));
}

/// A sender of weight 2 states half its window, which doubles X and the gain.
#[test]
fn a_weight_scales_the_gain() {
    let packet = bytes(1000.0);
    let connection = Connection {
        weight: 2.0,
        packet,
        initial_window: packet,
        claimed_rtt: None,
        path: crate::protocol::PathView::UNKNOWN,
        validation: crate::protocol::Validation::Off,
        seed: 0,
    };
    let mut double = Source::new(&Params { first_window: 100.0, ..Params::default() }, &connection);
    double.on_ack(&ack(Echo::Window(0.0)));
    let header = double.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, packet));
    close(header.x(packet, 1.0), 2.0 * 0.1 * 1000.0 / 100e3, 1e-6);
}

/// A source of 100 ms and 100 kB that claims 10 s states a window of 10 MB, which keeps X true. It applies 10 of 1000
/// bytes of feedback.
#[test]
fn a_claimed_rtt_is_stated_at_the_true_rate() {
    let packet = bytes(1000.0);
    let claimed_rtt = Some(Duration::from_millis(10_000));
    let connection = Connection {
        weight: 1.0,
        packet,
        initial_window: packet,
        claimed_rtt,
        path: crate::protocol::PathView::UNKNOWN,
        validation: crate::protocol::Validation::Off,
        seed: 0,
    };
    for form in [Form::Katabi, Form::Falk] {
        let mut liar = Source::new(&Params { first_window: 100.0, header: form, ..Params::default() }, &connection);
        let stamp = |liar: &Source| liar.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, packet));
        assert_eq!(stamp(&liar).rtt(), None, "nothing to lie about before the first sample");
        liar.on_ack(&ack(Echo::Window(0.0)));
        close(stamp(&liar).rtt().unwrap(), 10.0, 1e-6);
        close(stamp(&liar).x(packet, 1.0), 0.1 * 1000.0 / 100e3, 1e-5);
        liar.on_ack(&ack(Echo::Window(1000.0)));
        close(liar.cwnd.as_bytes(), 100_010.0, 1e-12);
        liar.on_ack(&ack(Echo::Throughput(1000))); // byte/s, over the own RTT
        close(liar.cwnd.as_bytes(), 100_110.0, 1e-12);
    }
}

fn received(form: Form, change: Option<f64>) -> Received<Header> {
    let mut header = packet_of(form, 0.1, 1e5);
    if let Some(bytes_per_s) = change {
        header.set_feedback(bps(8.0 * bytes_per_s), 0.1);
    }
    Received { now: Instant::ZERO, kind: PacketKind::Data, header, rtt: None }
}

#[test]
fn an_acknowledgement_sums_the_feedback_of_its_packets() {
    for (form, sum) in [(Form::Katabi, Echo::Window(300.0)), (Form::Falk, Echo::Throughput(3000))] {
        let mut receiver = Receiver::new(&Params { header: form, ..Params::default() });
        receiver.on_data(&received(form, Some(1000.0)));
        receiver.on_data(&received(form, Some(2000.0)));
        receiver.on_data(&received(form, None)); // no router wrote it
        assert_eq!(receiver.echo(Instant::ZERO), sum);
        assert_eq!(feedback_of(receiver.echo(Instant::ZERO)), 0.0);
    }
}

fn feedback_of(echo: Echo) -> f64 {
    match echo {
        Echo::Window(x) | Echo::Total(x) => f64::from(x),
        Echo::Throughput(x) => f64::from(x),
    }
}

/// In XCP-r the last acknowledgement carries the whole sum, even if earlier acknowledgements are lost.
#[test]
fn the_receivers_sum_survives_lost_acknowledgements() {
    let cwnd_after = |feedback_at, delivered: [bool; 4]| {
        let params = Params { feedback_at, ..Params::default() };
        let (mut receiver, mut source) = (Receiver::new(&params), source(&params));
        for arrives in delivered {
            receiver.on_data(&received(Form::Katabi, Some(5000.0)));
            let echo = receiver.echo(Instant::ZERO);
            if arrives {
                source.on_ack(&ack(echo));
            }
        }
        source.cwnd.as_bytes()
    };
    let (all, last) = ([true; 4], [false, false, false, true]);
    assert_eq!(cwnd_after(FeedbackAt::Receiver, all), 3000.0);
    assert_eq!(cwnd_after(FeedbackAt::Receiver, last), 3000.0);
    assert_eq!(cwnd_after(FeedbackAt::Source, all), 3000.0);
    assert_eq!(cwnd_after(FeedbackAt::Source, last), 1500.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |params: Params| params.check().is_err();
    assert!(refused(Params { alpha: 0.0, ..Params::default() }));
    assert!(refused(Params { gamma: 1.0, ..Params::default() }));
    assert!(refused(Params { first_window: 0.5, ..Params::default() }));
    assert!(refused(Params { min_interval: Duration::from_millis(2000), ..Params::default() }));
    assert!(Params::default().check().is_ok());
}

/// The feedback of a parcel is a sum over its packets. Parts of a parcel divide this sum, and joined parcels add their
/// sums. A field that no router wrote stays unwritten.
#[test]
fn feedback_of_parcels_is_a_sum() {
    let falk = |delta_throughput| Header::Falk { rtt: 7, x: 8, delta_throughput };
    let katabi = |feedback| Header::Katabi { rtt: 0.1, cwnd: 1e5, feedback };
    assert_eq!(falk(-400).part(0.25), falk(-100));
    assert_eq!(katabi(-400.0).part(0.25), katabi(-100.0));
    assert_eq!(falk(-100).joined(&falk(-400)), falk(-500));
    assert_eq!(katabi(-100.0).joined(&katabi(-400.0)), katabi(-500.0));
    assert_eq!(falk(i32::MAX - 1).joined(&falk(5)), falk(i32::MAX - 1), "not the sign that no router wrote");
    for (asked, written) in [(falk(i32::MAX), falk(-400)), (katabi(f32::MAX), katabi(-400.0))] {
        assert_eq!((asked.part(0.25), asked.joined(&written), written.joined(&asked)), (asked, written, asked));
    }
    let newest = Header::Falk { rtt: 9, x: 10, delta_throughput: 1 };
    assert_eq!(falk(1).joined(&newest), Header::Falk { rtt: 9, x: 10, delta_throughput: 2 });
}
