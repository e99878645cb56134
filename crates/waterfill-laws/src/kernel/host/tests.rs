//! Tests of the host's additions by hand, with MaxNet as the law.
//!
//! docs/explanation/kernel-programs.md has the definitions. The test `replay_laws` of waterfill-linux compares the same
//! calls with a loaded kernel program's.

use super::{Pace, Send, waterfill_host_init, waterfill_host_time_out};
use crate::kernel::{Arithmetic, KernelLimit, RunsInKernel as _, Tcp, VALUE_MAX};
use crate::protocol::{Ack, Connection, Event, PacketKind, Received, Sending, Validation};
use crate::protocols::maxnet::{Field, MaxNet, Params, demand_inverse, quantise};
use crate::protocols::xcp::Xcp;
use crate::registry::{AnyEcho, AnyParams, AnySource, ProtocolId};
use crate::testing::{echo_of, header_of};
use crate::units::{Duration, Instant, Rate, Volume};

const PACKET: f64 = 1500.0;

unsafe extern "C" {
    safe fn waterfill_host_time_out_undone(pace: &mut Pace, in_flight: u32);
    safe fn waterfill_host_silent_round(pace: &mut Pace, lossy: i32);
}

fn params() -> AnyParams {
    AnyParams::MaxNet(Params { arithmetic: Arithmetic::KernelHost, ..Params::default() })
}

/// Source end of a connection, whose rate the tests read.
struct Source(AnySource);

impl Source {
    fn on_ack(&mut self, (now, rtt, echo): (u64, u64, Field)) {
        self.acknowledge(now, rtt, echo, true);
    }
    /// Acknowledges two packets at time `now` in us, on a path with this RTT in us.
    fn acknowledge(&mut self, now: u64, rtt: u64, echo: Field, window_limited: bool) {
        let (acked, in_flight) = (Volume::from_bytes(2.0 * PACKET), Volume::ZERO);
        let echo = value(echo);
        let ack = Ack::new(at(now), &echo, Duration::from_micros(rtt));
        self.0.on_ack(&Ack { acked, in_flight, window_limited, ..ack });
    }
}

fn value(field: Field) -> AnyEcho {
    let mut value = [0; VALUE_MAX];
    value[..3].copy_from_slice(&field.bits().to_be_bytes()[1..]);
    echo_of::<MaxNet>(value)
}

fn source() -> Source {
    let packet = Volume::from_bytes(PACKET);
    let initial_window = packet * 10.0;
    Source(params().source(&Connection {
        weight: 1.0,
        packet,
        initial_window,
        claimed_rtt: None,
        path: crate::protocol::PathView::UNKNOWN,
        validation: Validation::Off,
        seed: 0,
    }))
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// Returns the field whose rate is D(q) = `bps`.
fn price(bps: f64) -> Field {
    Field::Price(quantise(demand_inverse(Rate::from_bps(bps), Rate::from_bps(1e15), 0.4)))
}

fn ack(now: u64, rtt: u64, echo: Field) -> (u64, u64, Field) {
    (now, rtt, echo)
}

/// Returns a source that has received its first price.
fn priced(bps: f64, rtt: u64) -> Source {
    let mut source = source();
    source.on_ack(ack(1_000_000, rtt, price(bps)));
    source
}

fn window(source: &Source) -> f64 {
    source.0.limit().window.unwrap().as_bytes() / PACKET
}

fn pacing(source: &Source) -> f64 {
    source.0.limit().pacing.map_or(0.0, Rate::as_bps)
}

fn near(value: f64, expected: f64, relative: f64) {
    assert!((value / expected - 1.0).abs() <= relative, "{value} is not {expected}");
}

#[test]
fn slow_start_lasts_until_a_router_answers() {
    let mut source = source();
    assert_eq!((window(&source), pacing(&source)), (10.0, 0.0));
    for n in 1..4 {
        source.on_ack(ack(20_000 * n, 20_000, Field::Price(0)));
        assert_eq!((window(&source), pacing(&source)), (10.0 + 2.0 * n as f64, 0.0));
    }
    source.on_ack(ack(100_000, 20_000, price(1e7)));
    near(pacing(&source), 1e7, 1e-5);
}

/// The window is in whole packets with a margin of three. 2 Mbit/s at 28 ms are 4.7 packets, rounded up to five.
#[test]
fn the_window_is_in_whole_packets_with_a_margin_of_three() {
    let source = priced(2e6, 28_000);
    assert_eq!(window(&source), 5.0 + 3.0);
    near(pacing(&source), 2e6, 1e-5);
}

/// Large windows of frequent packets are clocked by ACKs, as for 1 Gbit/s at 28 ms: 2333.3 packets, one per 12 us.
///
/// 30 Mbit/s are one packet per 400 us, and 1 Gbit/s at 1 ms only 84 packets. Both are paced.
#[test]
fn large_windows_of_frequent_packets_are_clocked_by_acks() {
    let clocked = priced(1e9, 28_000);
    assert_eq!((window(&clocked), pacing(&clocked)), (2334.0, f64::INFINITY));
    near(pacing(&priced(3e7, 28_000)), 3e7, 1e-5);
    near(pacing(&priced(1e9, 1000)), 1e9, 1e-5);
}

#[test]
fn tau_is_at_least_a_millisecond_at_both_ends() {
    // 100 Mbit/s for 1 ms are 8.3 packets.
    assert_eq!(window(&priced(1e8, 50)), 9.0 + 3.0);
    // With an RTT of 50 us the second price would count in full.
    let mut receiver = params().receiver();
    for (us, code) in [(1000, 1000), (1050, 2000)] {
        let AnyEcho::Kernel(value) = value(Field::Price(code)) else { unreachable!("in kernel arithmetic") };
        let (header, rtt) = (header_of::<MaxNet>(value.value), Some(Duration::from_micros(50)));
        receiver.on_data(&Received { now: at(us), kind: PacketKind::Data, header: &header, rtt });
    }
    assert_eq!(receiver.echo(at(1050)), value(Field::Price(1050)));
}

/// The slowest rate is one packet per 200 ms, which is 60 kbit/s, for any price.
#[test]
fn the_slowest_rate_is_a_packet_per_200_ms() {
    assert_eq!(pacing(&priced(1000.0, 20_000)), 60_000.0);
}

/// The law is called at most 16 times per RTT, every 1250 us for an RTT of 20 ms.
///
/// Earlier acknowledgements wait with their packets, which the restart window counts later. A window of 166 packets
/// limits the rate, so pacing is a quarter above it.
#[test]
fn the_law_is_called_at_most_16_times_per_rtt() {
    let mut source = priced(1e8, 20_000);
    source.on_ack(ack(1_001_249, 20_000, price(5e7)));
    near(pacing(&source), 1.25e8, 1e-5);
    source.on_ack(ack(1_001_250, 20_000, price(5e7)));
    assert!(pacing(&source) < 1.1e8, "{}", pacing(&source));
    source.0.on_event(at(1_300_000), Event::Timeout);
    for now in [1_300_000, 1_300_100, 1_300_200, 1_301_250] {
        source.on_ack(ack(now, 20_000, price(1e8)));
    }
    assert_eq!(window(&source), 1.0 + 4.0 * 2.0);
}

#[test]
fn after_a_time_out_the_window_doubles_per_rtt() {
    let mut source = priced(1e8, 20_000);
    let full = window(&source);
    source.0.on_event(at(1_300_000), Event::Timeout);
    // Each acknowledgement is of two packets.
    for n in 1..4 {
        source.on_ack(ack(1_300_000 + 1250 * n, 20_000, price(1e8)));
        assert_eq!(window(&source), 1.0 + 2.0 * n as f64);
    }
    for n in 4..200 {
        source.on_ack(ack(1_300_000 + 1250 * n, 20_000, price(1e8)));
    }
    assert_eq!(window(&source), full);
    let sending = Sending::new(at(0), PacketKind::Data, Volume::from_bytes(PACKET));
    assert_eq!(source.0.stamp(&sending), header_of::<MaxNet>([0; VALUE_MAX]));
}

/// Pacing becomes faster if data arrives at nine tenths of the rate and the window is not the limit. While the
/// application limits the rate, the boost falls back.
#[test]
fn pacing_makes_up_for_what_is_not_delivered() {
    let mut source = priced(5e7, 20_000);
    let mut now = 1_000_000;
    let mut deliver = |source: &mut Source, share: f64, window_limited: bool| {
        for _ in 0..4000 {
            now += (2.0 * PACKET * 8.0 / (5e7 * share) * 1e6) as u64;
            source.acknowledge(now, 20_000, price(5e7), window_limited);
        }
        pacing(source) / 5e7
    };
    let boosted = deliver(&mut source, 0.9, true);
    assert!(boosted > 1.05, "{boosted}");
    let idle = deliver(&mut source, 0.5, false);
    assert!(idle < 1.0 + (boosted - 1.0) / 2.0, "{idle}");
}

/// A law without pacing has a window of whole packets without a margin. After a timeout, its own decrease and the
/// restart apply.
#[test]
fn a_law_of_windows_gets_whole_packets() {
    let mut params = ProtocolId::Xcp.params();
    params.set("arithmetic", &crate::params::Value::Word("kernel-host".into())).unwrap();
    params.set("first_window", &crate::params::Value::Number(7.6)).unwrap();
    assert!(!params.paced());
    let packet = Volume::from_bytes(PACKET);
    let connection = Connection {
        weight: 1.0,
        packet,
        initial_window: packet * 10.0,
        claimed_rtt: None,
        path: crate::protocol::PathView::UNKNOWN,
        validation: Validation::Off,
        seed: 0,
    };
    let mut source = params.source(&connection);
    let mut answered = |us| {
        let echo = AnyEcho::None;
        source.on_ack(&Ack { acked: packet, ..Ack::new(at(us), &echo, Duration::from_millis(20)) })
    };
    assert_eq!(answered(1).window, Some(packet * 10.0), "an echo of another protocol changes nothing");
    let mut heard = [0; VALUE_MAX];
    heard[0] = 0x80;
    let zero = echo_of::<Xcp>(heard);
    let limit = source.on_ack(&Ack { acked: packet, ..Ack::new(at(20_000), &zero, Duration::from_millis(20)) });
    assert_eq!((limit.window, limit.pacing), (Some(packet * 7.0), None));
    source.on_event(at(30_000), Event::Timeout);
    let limit = source.on_ack(&Ack { acked: packet, ..Ack::new(at(40_000), &zero, Duration::from_millis(20)) });
    assert_eq!(limit.window, Some(packet));
}

/// Returns pacing rate and window of a host at an RTT of 20 ms, after `acked` packets, at a law's rate in bit/s.
fn sent(pace: &mut Pace, rate: u64, acked: u32) -> (u64, u32) {
    let tcp = Tcp {
        srtt_us: 8 * 20_000,
        base_rtt_us: 20_000,
        packet: 1500,
        payload: 1448,
        max_segments: 43,
        acked,
        ..Tcp::default()
    };
    let (mut send, limit) = (Send::default(), KernelLimit { rate, packet: 1500, ..KernelLimit::default() });
    MaxNet::law().host_control(pace, &limit, &tcp, &mut send);
    (send.rate, send.window)
}

/// After 20 s without the link, TCP takes the time-out back and counts 13 lost packets as in flight. The restart then
/// has space for two more, which show the losses: without them nothing is sent until the next time-out, 9 s later.
#[test]
fn a_time_out_that_is_undone_leaves_space_to_probe() {
    let mut pace = Pace::default();
    waterfill_host_init(&mut pace);
    waterfill_host_time_out_undone(&mut pace, 13);
    assert_eq!(sent(&mut pace, 10_000_000, 0).1, 34 + 3, "no restart, no limit");
    waterfill_host_time_out(&mut pace);
    assert_eq!(sent(&mut pace, 10_000_000, 0).1, 1);
    waterfill_host_time_out_undone(&mut pace, 13);
    assert_eq!(sent(&mut pace, 10_000_000, 0).1, 15);
    waterfill_host_time_out_undone(&mut pace, 4);
    assert_eq!(sent(&mut pace, 10_000_000, 0).1, 15, "no smaller than before");
    assert_eq!(sent(&mut pace, 10_000_000, 4).1, 19, "and it doubles on");
}

/// In a recovery without echoes the host sends at least as Reno from one packet per RTT on. Losses halve it, and a time-out
/// ends it.
#[test]
fn a_recovery_without_echoes_continues_as_reno() {
    let mut pace = Pace::default();
    waterfill_host_init(&mut pace);
    let sent = |pace: &mut Pace, rate| sent(pace, rate, 0);
    let slowest = 1448 * 5; // a packet per 200 ms, and a margin of three
    assert_eq!(sent(&mut pace, 1000), (slowest, 4));
    for round in 1..=20 {
        waterfill_host_silent_round(&mut pace, 0);
        assert_eq!(sent(&mut pace, 1000), (round * 1448 * 50, (round as u32).max(4)));
    }
    assert_eq!(sent(&mut pace, 15_000_000).0, 15_000_000 / 8 * 1448 / 1500, "the law's rate is higher");
    waterfill_host_silent_round(&mut pace, 1);
    assert_eq!(sent(&mut pace, 1000), (10 * 1448 * 50, 10));
    waterfill_host_time_out(&mut pace);
    assert_eq!(sent(&mut pace, 1000), (slowest, 1));
}
