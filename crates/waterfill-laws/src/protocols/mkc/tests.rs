//! Tests of MKC: equations checked by hand, headers on the wire, and calls of the laws.

use super::router::{Router, price};
use super::source::{Source, rate_next};
use super::{Echo, Header, Mkc, Params};
use crate::params::Params as _;
use crate::protocol::{Ack, Connection, PacketKind, Router as _, Source as _, Wire};
use crate::testing::{self, close, connection, echo_after, link};
use crate::units::{Duration, Instant, Rate};

fn bps(rate: f64) -> Rate {
    Rate::from_bps(rate)
}

/// `[mkc-2004:price]` A load of 120 over a target of 90 Mbit/s is a quarter overload; a load of 45 is −1.
#[test]
fn price_of_a_load() {
    close(price(bps(9e7), bps(1.2e8)), 0.25, 1e-12);
    close(price(bps(9e7), bps(4.5e7)), -1.0, 1e-12);
}

/// `[mkc-2004:source]` At p = 0.25, 20 Mbit/s become 20 + 0.1 − 0.5·0.25·20 = 17.6 Mbit/s.
#[test]
fn source_step() {
    close(rate_next(bps(2e7), bps(1e5), 0.5, 0.25).as_bps(), 1.76e7, 1e-12);
}

/// Four flows of 100/4 + 0.2 Mbit/s do not change: their load of 100.8 Mbit/s has the price
/// 0.8/100.8, and β times that price times the rate is α.
#[test]
fn stationary_rate() {
    let rate = bps(1e8 / 4.0 + 1e5 / 0.5);
    close(rate_next(rate, bps(1e5), 0.5, price(bps(1e8), 4.0 * rate)).as_bps(), rate.as_bps(), 1e-12);
}

#[test]
fn headers_on_the_wire() {
    let header = Header { rate: 1e6, loss: -0.5, hops: 3, router: 2, sequence: 0x0102 };
    let mut out = [0; 12];
    header.encode(&mut out);
    assert_eq!(out, [0x49, 0x74, 0x24, 0, 0xbf, 0, 0, 0, 3, 2, 1, 2]);
    assert_eq!(Header::decode(&out), Some(header));
    let mut echo = [0; 11];
    Echo::from(header).encode(&mut echo);
    assert_eq!(echo, [0x49, 0x74, 0x24, 0, 0xbf, 0, 0, 0, 2, 1, 2]);
    assert_eq!(Echo::decode(&echo), Some(header.into()));
    assert_eq!((Header::decode(&out[..11]), Echo::decode(&echo[..10])), (None, None));
    out[0..4].copy_from_slice(&(-1.0_f32).to_be_bytes());
    assert_eq!(Header::decode(&out), None, "no negative rates");
    out[0..8].copy_from_slice(&[0, 0, 0, 0, 0x7f, 0x80, 0, 0]);
    assert_eq!(Header::decode(&out), None, "no infinite price");
}

/// Returns a router of a 100 Mbit/s link after an interval of 20 ms with `bytes` bytes.
fn router_after(bytes: f64) -> Router {
    let mut router = Router::new(&Params::default(), &link(1e8, 0.0));
    testing::pass::<Mkc>(&mut router, &link(1e8, 0.0), Header::default(), bytes);
    router.on_timer(&link(1e8, 0.0), Instant::ZERO);
    router
}

fn pass(router: &mut Router, header: Header) -> Header {
    testing::pass::<Mkc>(router, &link(1e8, 0.0), header, 1500.0)
}

/// `[mkc-2004:path]` 475 kB in 20 ms are 190 Mbit/s, twice the target of 95: p = 0.5. A packet keeps a larger price
/// of an earlier router, with that router's interval.
#[test]
fn a_packet_carries_the_largest_price() {
    let mut router = router_after(475_000.0);
    let first = pass(&mut router, Header { rate: 1e6, ..Header::default() });
    assert_eq!(first, Header { rate: 1e6, loss: 0.5, hops: 1, router: 1, sequence: 1 });
    let larger = Header { loss: 0.6, sequence: 7, ..first };
    assert_eq!(pass(&mut router, larger), Header { hops: 2, ..larger });
    let smaller = Header { loss: 0.4, sequence: 7, ..first };
    assert_eq!(pass(&mut router, smaller), Header { hops: 2, router: 2, ..first });
}

/// A router says nothing before its first interval ends. A flow of 40 Mbit/s that an idle link has not counted is
/// taken for a load of 20 Mbit/s: p = 1 − 95/20.
#[test]
fn a_flow_that_is_not_counted_yet_counts_half() {
    let mut new = Router::new(&Params::default(), &link(1e8, 0.0));
    assert_eq!(pass(&mut new, Header { rate: 4e7, ..Header::default() }).router, 0);
    let idle = pass(&mut router_after(0.0), Header { rate: 4e7, ..Header::default() });
    assert_eq!((idle.loss, idle.router), (-3.75, 1));
    assert!(pass(&mut router_after(0.0), Header::default()).loss.is_finite());
}

/// Returns a source of weight 2 after the answer to its SYN at an RTT of 60 ms.
fn source() -> Source {
    let mut source = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    assert_eq!(source.limit().window, Some(connection().initial_window));
    let syn = Ack::new(Instant::ZERO, echo_after::<Mkc>(&Params::default(), &[]), Duration::from_millis(60));
    source.on_ack(&Ack { kind: PacketKind::Syn, ..syn });
    source
}

fn receive(source: &mut Source, at_ms: u64, rate: f32, loss: f32, (router, sequence): (u8, u16)) -> f64 {
    let (now, rtt) = (Instant::ZERO + Duration::from_millis(at_ms), Duration::from_millis(60));
    let echo = Echo { rate, loss, router, sequence };
    source.on_ack(&Ack { acked: connection().packet, ..Ack::new(now, echo, rtt) });
    source.limit().pacing.expect("paced after the handshake").as_bps()
}

/// The first window of 15 kB is spread over 60 + 2·20 ms: 1.2 Mbit/s. The first price is of an interval before the
/// flow, and the second of one in which it began. The third is applied once, to the mean of the rates of its interval:
/// two packets at 1 and 3 Mbit/s, sent in 12 + 4 ms, are 1.5 Mbit/s.
#[test]
fn a_source_takes_one_step_for_each_interval() {
    let mut source = source();
    assert_eq!(receive(&mut source, 60, 1.2e6, -9.0, (1, 4)), 1.2e6);
    assert_eq!(receive(&mut source, 80, 1e6, -9.0, (1, 5)), 1.2e6);
    assert_eq!(receive(&mut source, 90, 3e6, -9.0, (1, 5)), 1.2e6);
    close(receive(&mut source, 100, 5e6, -0.5, (1, 6)), 1.5e6 + 2e5 + 0.25 * 1.5e6, 1e-9);
    close(receive(&mut source, 101, 5e6, 0.9, (1, 6)), 1.5e6 + 2e5 + 0.25 * 1.5e6, 1e-9);
    assert_eq!(receive(&mut source, 120, 5e6, 40.0, (1, 7)), 1e4, "x_min");
}

/// A price of another router waits until an interval after the last step.
#[test]
fn another_router_waits_an_interval() {
    let mut source = source();
    receive(&mut source, 60, 1e6, 0.0, (1, 4));
    receive(&mut source, 80, 1e6, 0.0, (1, 5));
    let stepped = receive(&mut source, 100, 1e6, 0.0, (1, 6));
    assert_eq!(receive(&mut source, 119, 1e6, -1.0, (2, 9)), stepped);
    close(receive(&mut source, 120, 1e6, -1.0, (2, 9)), 1e6 + 2e5 + 0.5e6, 1e-9);
}

#[test]
fn parameters_that_no_step_can_use_are_refused() {
    Params { beta: 0.0, ..Params::default() }.validate().expect_err("no gain");
    Params { alpha: Rate::ZERO, ..Params::default() }.validate().expect_err("no flow would become equal");
    Params { beta: 2.2, ..Params::default() }.validate().expect("unstable, and worth a run");
}
