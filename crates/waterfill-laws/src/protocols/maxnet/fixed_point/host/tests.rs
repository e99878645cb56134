//! The host's additions by hand, from their definitions in docs/explanation/kernel-programs.md. The replay test of
//! waterfill-linux compares the same calls with the loaded kernel program's.

use crate::protocol::{Ack, Connection, Event, PacketKind, Received, Receiver as _, Sending, Source as _};
use crate::protocols::maxnet::fixed_point::{Receiver, Source, SourceState};
use crate::protocols::maxnet::{Echo, Field, Header, HostArithmetic, Params, demand_inverse, quantise};
use crate::units::{Duration, Instant, Rate, Volume};

unsafe extern "C" {
    safe fn waterfill_maxnet_host_tau(source: &SourceState, base_rtt: u32) -> u32;
}

const PACKET: f64 = 1500.0;

fn params() -> Params {
    Params { arithmetic: HostArithmetic::KernelHost, compensate: true, ..Params::default() }
}

fn source() -> Source {
    let packet = Volume::from_bytes(PACKET);
    Source::new(
        &params(),
        &Connection { weight: 1.0, packet, initial_window: packet * 10.0, claimed_rtt: None, seed: 0 },
    )
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// The field whose rate is D(q) = `bps`.
fn price(bps: f64) -> Field {
    Field::Price(quantise(demand_inverse(Rate::from_bps(bps), Rate::from_bps(1e15), 0.4)))
}

/// An acknowledgement of two packets at a time, of a path with this RTT, both in us.
fn ack(now: u64, rtt: u64, echo: Field) -> Ack<Echo> {
    Ack { acked: Volume::from_bytes(2.0 * PACKET), ..Ack::new(at(now), Echo { echo }, Duration::from_micros(rtt)) }
}

/// A source after the first price.
fn priced(bps: f64, rtt: u64) -> Source {
    let mut source = source();
    source.on_ack(&ack(1_000_000, rtt, price(bps)));
    source
}

fn window(source: &Source) -> f64 {
    source.limit().window.unwrap().as_bytes() / PACKET
}

fn pacing(source: &Source) -> f64 {
    source.limit().pacing.map_or(0.0, Rate::as_bps)
}

fn near(value: f64, expected: f64, relative: f64) {
    assert!((value / expected - 1.0).abs() <= relative, "{value} is not {expected}");
}

#[test]
fn slow_start_lasts_until_a_router_answers() {
    let mut source = source();
    assert_eq!((window(&source), pacing(&source)), (10.0, 0.0));
    for n in 1..4 {
        source.on_ack(&ack(20_000 * n, 20_000, Field::Price(0)));
        assert_eq!((window(&source), pacing(&source)), (10.0 + 2.0 * n as f64, 0.0));
    }
    source.on_ack(&ack(100_000, 20_000, price(1e7)));
    near(pacing(&source), 1e7, 1e-5);
}

/// 2 Mbit/s at 28 ms are 4.7 packets: rounded up, plus three.
#[test]
fn the_window_is_in_whole_packets_with_a_margin_of_three() {
    let source = priced(2e6, 28_000);
    assert_eq!(window(&source), 5.0 + 3.0);
    near(pacing(&source), 2e6, 1e-5);
}

/// 1 Gbit/s at 28 ms are 2333.3 packets, one per 12 us: ACKs are the clock. 30 Mbit/s are one per 400 us, and 1 Gbit/s at
/// 1 ms only 84 packets: both are paced.
#[test]
fn large_windows_of_frequent_packets_are_clocked_by_acks() {
    let clocked = priced(1e9, 28_000);
    assert_eq!((window(&clocked), pacing(&clocked)), (2334.0, f64::INFINITY));
    near(pacing(&priced(3e7, 28_000)), 3e7, 1e-5);
    near(pacing(&priced(1e9, 1000)), 1e9, 1e-5);
}

#[test]
fn tau_is_at_least_a_millisecond_at_both_ends() {
    let source = priced(1e8, 50);
    assert_eq!(source.state.base_rtt, 1000);
    // 100 Mbit/s for 1 ms are 8.3 packets.
    assert_eq!(window(&source), 9.0 + 3.0);
    let mut receiver = Receiver::new(&params());
    receiver.on_data(&Received {
        now: at(1000),
        kind: PacketKind::Data,
        header: Header { price: price(1e8) },
        rtt: Some(Duration::from_micros(50)),
    });
    assert_eq!(receiver.state.rtt, 1000);
}

/// At 600 kbit/s two packets take 40 ms: tau is 80 ms where the RTT is 20 ms. It stays until a pair takes more than
/// tau, or less than a quarter of it.
#[test]
fn tau_covers_pairs_of_packets_in_steps_of_two() {
    let with = |rate: u64, base_rtt: u32| SourceState { rate, base_rtt, packet: 1500, ..SourceState::default() };
    let tau = |rate: u64, before: u32, rtt: u32| waterfill_maxnet_host_tau(&with(rate, before), rtt);
    assert_eq!(tau(0, 0, 20_000), 20_000, "no rate yet");
    assert_eq!(tau(600_000, 20_000, 20_000), 80_000);
    assert_eq!(tau(310_000, 80_000, 20_000), 80_000, "a pair takes 77 ms");
    assert_eq!(tau(1_190_000, 80_000, 20_000), 80_000, "a pair takes 20.2 ms");
    assert_eq!(tau(2_400_000, 80_000, 20_000), 20_000, "a pair takes 10 ms");
    assert_eq!(tau(290_000, 80_000, 20_000), 165_516, "twice 82.8 ms");
    assert_eq!(tau(1, 80_000, 20_000), 1_000_000, "at most a second");
    assert_eq!(tau(1, 80_000, 2_000_000), 2_000_000, "or the path's RTT");
}

/// A price step on a path of 4 ms makes eq. 6a fall far below D(q). tau is then the time of the rare packets, and the
/// next price is applied as the first one.
#[test]
fn the_next_price_counts_as_the_first_after_tau_has_grown() {
    let mut host = priced(1e8, 4000);
    host.on_ack(&ack(1_000_250, 4000, price(2e7)));
    assert!(host.state.rate < 1000, "{}", host.state.rate); // x_max e^(xi - alpha q / tau)
    host.on_ack(&ack(1_100_000, 4000, price(2e7)));
    near(host.state.rate as f64, 2e7, 1e-5);
}

/// One packet per 200 ms is 60 kbit/s, whatever the price.
#[test]
fn the_slowest_rate_is_a_packet_per_200_ms() {
    assert_eq!(pacing(&priced(1000.0, 20_000)), 60_000.0);
}

/// 20 ms / 16 are 1250 us. What comes before waits, with its packets: the restart window counts them later.
#[test]
fn the_law_is_called_at_most_16_times_per_rtt() {
    let mut source = priced(1e8, 20_000);
    source.on_ack(&ack(1_001_249, 20_000, price(5e7)));
    near(source.state.rate as f64, 1e8, 1e-5);
    source.on_ack(&ack(1_001_250, 20_000, price(5e7)));
    assert!(source.state.rate < 90_000_000, "{}", source.state.rate);
    source.on_event(at(1_300_000), Event::Timeout);
    for now in [1_300_000, 1_300_100, 1_300_200, 1_301_250] {
        source.on_ack(&ack(now, 20_000, price(1e8)));
    }
    assert_eq!(window(&source), 1.0 + 4.0 * 2.0);
}

#[test]
fn after_a_time_out_the_window_doubles_per_rtt() {
    let mut source = priced(1e8, 20_000);
    let full = window(&source);
    source.on_event(at(1_300_000), Event::Timeout);
    // Each acknowledgement is of two packets.
    for n in 1..4 {
        source.on_ack(&ack(1_300_000 + 1250 * n, 20_000, price(1e8)));
        assert_eq!(window(&source), 1.0 + 2.0 * n as f64);
    }
    for n in 4..200 {
        source.on_ack(&ack(1_300_000 + 1250 * n, 20_000, price(1e8)));
    }
    assert_eq!(window(&source), full);
    let sending = Sending::new(at(0), PacketKind::Data, Volume::from_bytes(PACKET));
    assert_eq!(source.stamp(&sending), Header { price: Field::Price(0) });
}

/// Data arrive at nine tenths of the rate, although the window does not limit it: pacing becomes faster. While the
/// application limits the rate, the boost falls back.
#[test]
fn pacing_makes_up_for_what_is_not_delivered() {
    let mut source = priced(5e7, 20_000);
    let mut now = 1_000_000;
    let mut deliver = |source: &mut Source, share: f64, window_limited: bool| {
        for _ in 0..4000 {
            now += (2.0 * PACKET * 8.0 / (5e7 * share) * 1e6) as u64;
            source.on_ack(&Ack { window_limited, ..ack(now, 20_000, price(5e7)) });
        }
        pacing(source) / 5e7
    };
    let boosted = deliver(&mut source, 0.9, true);
    assert!(boosted > 1.05, "{boosted}");
    let idle = deliver(&mut source, 0.5, false);
    assert!(idle < 1.0 + (boosted - 1.0) / 2.0, "{idle}");
}
