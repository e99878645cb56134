//! Tests of ABC: equations checked by hand, bits on the wire, and calls of the laws.

use crate::protocol::{Ack, Connection, Event, PacketKind, Passing, Received, Wire};
use crate::protocol::{Receiver as _, Router as _, Source as _};
use crate::testing::{close, connection, link};
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Fallback, Params};
use super::receiver::Receiver;
use super::router::{Router, accelerate, marked, target_rate};
use super::sliding::Sliding;
use super::source::{Source, cap, next_window};
use super::{Abc, Mark};
use Mark::{Accelerate, Brake};

const PACKET: Volume = Volume::from_bytes(1500.0);

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// `[abc-2020:eq1]` At 12 Mbit/s, a queue of 60 ms (10 ms more than d_t) lowers the target from 11.76 Mbit/s by 0.9023
/// Mbit/s.
#[test]
fn target_rate_by_hand() {
    let (mu, kilobytes) = (Rate::from_bps(12e6), |n: f64| Volume::from_bytes(1e3 * n));
    let target = |queue| target_rate(0.98, mu, queue, ms(50), ms(133)).as_bps();
    close(target(kilobytes(90.0)), 11.76e6 - 120e3 / 0.133, 1e-12);
    assert_eq!(target(kilobytes(75.0)), 11.76e6, "up to d_t the queue is no congestion");
    assert_eq!(target(kilobytes(0.0)), 11.76e6);
    assert_eq!(target(kilobytes(1e3)), 0.0, "a rate is not negative");
    assert_eq!(target_rate(0.98, Rate::ZERO, PACKET, ms(50), ms(133)), Rate::ZERO, "nor is a link that is down fast");
}

/// `[abc-2020:eq2]` Accelerating half of the packets keeps the rate. Accelerating a quarter halves the rate, and
/// accelerating all packets doubles it.
#[test]
fn share_that_accelerates() {
    let share = |target: f64, departing: f64| accelerate(Rate::from_bps(target), Rate::from_bps(departing));
    assert_eq!(share(10e6, 10e6), 0.5);
    assert_eq!(share(5e6, 10e6), 0.25);
    assert_eq!(share(20e6, 10e6), 1.0);
    assert_eq!(share(90e6, 10e6), 1.0);
    assert_eq!(share(0.0, 10e6), 0.0);
    assert_eq!(share(10e6, 0.0), 1.0);
    assert_eq!(share(0.0, 0.0), 1.0, "no division by zero");
}

/// Returns the new marks of `n` packets that arrive with the mark `came`, for the fraction `f` of accelerates.
fn marks(f: f64, came: Mark, n: usize) -> Vec<Mark> {
    let mut token = 0.0;
    (0..n).map(|_| marked(came, &mut token, f, 5.0)).collect()
}

/// `[abc-2020:alg1]` With f = 1/2, every second packet from the third keeps "accelerate".
///
/// The tokens are 0.5, 1, 1.5 − 1, 1, 1.5 − 1 and so on.
#[test]
fn tokens_by_hand() {
    assert_eq!(marks(0.5, Accelerate, 7), [Brake, Brake, Accelerate, Brake, Accelerate, Brake, Accelerate]);
    assert_eq!(marks(1.0, Accelerate, 4), [Brake, Accelerate, Accelerate, Accelerate]);
    assert_eq!(marks(0.0, Accelerate, 3), [Brake; 3]);
    assert_eq!(marks(1.0, Brake, 9), [Brake; 9], "a brake of a router before stays one");
    for f in [0.1, 0.37, 0.49, 0.9] {
        let accelerates = marks(f, Accelerate, 1000).iter().filter(|&&mark| mark == Accelerate).count();
        assert!(((1000.0 * f - 2.0)..=(1000.0 * f)).contains(&(accelerates as f64)), "{accelerates} at {f}");
    }
}

/// `[abc-2020:alg1]` Unused tokens accumulate up to the limit of five, which allows a burst of four accelerated
/// packets.
#[test]
fn tokens_are_limited() {
    let mut token = 0.0;
    for _ in 0..100 {
        marked(Brake, &mut token, 1.0, 5.0);
    }
    assert_eq!(token, 5.0);
    let burst = (0..100).take_while(|_| marked(Accelerate, &mut token, 0.0, 5.0) == Accelerate).count();
    assert_eq!((burst, token), (4, 1.0));
}

/// `[abc-2020:eq3]` A window of 10 packets becomes 11.1 after "accelerate" and 9.1 after "brake". An RTT with equal
/// numbers of both adds about one packet.
#[test]
fn window_steps_by_hand() {
    close(next_window(10.0, Accelerate, 1.0, 1.0), 11.1, 1e-12);
    close(next_window(10.0, Brake, 1.0, 1.0), 9.1, 1e-12);
    close(next_window(10.0, Accelerate, 2.0, 1.0), 12.2, 1e-12);
    close(next_window(10.0, Brake, 1.0, 3.0), 9.3, 1e-12);
    let rtt = (0..10).fold(10.0, |w, i| next_window(w, if i % 2 == 0 { Accelerate } else { Brake }, 1.0, 1.0));
    close(rtt, 11.0, 0.01);
    // w + 1/w ≥ 2: brakes alone lead to one packet and no further.
    let mut window = 10.0;
    for _ in 0..40 {
        window = next_window(window, Brake, 1.0, 1.0);
        assert!(window >= 1.0);
    }
    close(window, 1.0, 0.03);
}

#[test]
fn bits_on_the_wire() {
    for (mark, bits) in [(Accelerate, 0b01), (Brake, 0b10)] {
        let mut out = [0xff];
        mark.encode(&mut out);
        assert_eq!(out, [bits]);
        assert_eq!(Mark::decode(&out), Some(mark));
    }
    assert_eq!(Mark::decode(&[0b00]), None, "a packet without ECN");
    assert_eq!(Mark::decode(&[0b11]), None, "the mark of a queue without ABC, which the host reports");
    assert_eq!(Mark::decode(&[0b101]), None);
    assert_eq!(Mark::decode(&[]), None);
}

#[test]
fn a_sliding_rate_forgets_what_is_a_window_old() {
    let mut sliding = Sliding::new(ms(20), Rate::from_bps(12e6));
    close(sliding.rate(at(0)).as_bps(), 12e6, 1e-12);
    // Nothing more: a straight line down to the last of 20 parts.
    for i in 1..=20 {
        let now = sliding.ends();
        assert_eq!(now, at(1000 * i));
        sliding.advance();
        let parts_left = 19_u32.saturating_sub(i as u32);
        assert!((sliding.rate(now).as_bps() - 12e6 * f64::from(parts_left) / 19.0).abs() < 1.0);
    }
    // One packet a millisecond, at the middle of each part.
    for i in 20..60 {
        sliding.add(PACKET);
        close(
            sliding.rate(at(1000 * i + 500)).as_bps().max(1.0),
            f64::from(i as u32 - 19).min(20.0) / 19.5 * 12e6,
            1e-9,
        );
        sliding.advance();
    }
}

/// Sends one packet every `gap_us` through a router with `queue` bytes waiting; returns the packets' marks.
fn run(router: &mut Router, from_us: u64, gap_us: u64, packets: u64, bps: f64, queue: f64) -> Vec<Mark> {
    let link = link(bps, queue);
    let depart = |i: u64| {
        let now = at(from_us + i * gap_us);
        while router.poll_at() <= now {
            let due = router.poll_at();
            router.on_timer(&link, due);
        }
        let mut mark = Accelerate;
        let (kind, header) = (PacketKind::Data, Some(&mut mark));
        router.on_departure(&link, &mut Passing { now, volume: PACKET, packets: 1.0, kind, header });
        mark
    };
    (0..packets).map(depart).collect()
}

fn router() -> Router {
    Router::new(&Params::default(), &link(12e6, 0.0))
}

/// `[abc-2020:eq1, eq2]` A full link has a target of 98 % of its rate. An idle link accelerates all packets after the
/// first.
#[test]
fn a_router_compares_departures_with_capacity() {
    let mut busy = router();
    run(&mut busy, 0, 1000, 100, 12e6, 0.0);
    close(busy.accelerate, 0.49, 1e-9);
    close(busy.target_rate.as_bps(), 0.98 * 12e6, 1e-9);
    let mut idle = router();
    let marks = run(&mut idle, 0, 10_000, 10, 12e6, 0.0);
    assert_eq!(idle.accelerate, 1.0);
    assert_eq!(marks[1..], [Accelerate; 9]);
    // A packet every 4/3 ms: three quarters of the link.
    run(&mut busy, 100_000, 1333, 100, 12e6, 0.0);
    close(busy.accelerate, 0.49 / 0.75, 0.03);
    // 100 ms of queue: 11.76 − 12·(0.1 − 0.05)/0.133 = 7.249 Mbit/s.
    run(&mut busy, 300_000, 1000, 40, 12e6, 150e3);
    close(busy.target_rate.as_bps(), 7.249e6, 1e-3);
}

/// Algorithm 1 accelerates a fraction f of the packets, on average over a window.
#[test]
fn a_busy_router_accelerates_a_little_less_than_half() {
    let mut router = router();
    run(&mut router, 0, 1000, 100, 12e6, 0.0);
    let marks = run(&mut router, 100_000, 1000, 1000, 12e6, 0.0);
    let share = marks.iter().filter(|&&mark| mark == Accelerate).count() as f64 / 1000.0;
    close(share, 0.49, 0.005);
}

/// A capacity change is fully included in μ after T, and only partly before.
#[test]
fn a_router_follows_the_capacity_within_a_window() {
    let mut router = router();
    run(&mut router, 0, 1000, 50, 12e6, 0.0);
    run(&mut router, 50_000, 2000, 6, 6e6, 0.0);
    let half = router.target_rate.as_bps();
    assert!(half > 0.98 * 8.4e6 && half < 0.98 * 9.6e6, "{half}");
    run(&mut router, 62_000, 2000, 8, 6e6, 0.0);
    close(router.target_rate.as_bps(), 0.98 * 6e6, 1e-9);
}

/// A link that has a queue but sends nothing for 10 ms reports half its rate as μ, because 10 ms are half of T.
#[test]
fn an_outage_is_no_capacity() {
    let mut router = router();
    run(&mut router, 0, 1000, 50, 12e6, 15e3);
    run(&mut router, 60_000, 1000, 1, 12e6, 15e3);
    let half = router.target_rate.as_bps();
    assert!(half > 0.98 * 5.4e6 && half < 0.98 * 7.2e6, "{half}");
    run(&mut router, 61_000, 1000, 30, 12e6, 15e3);
    close(router.target_rate.as_bps(), 0.98 * 12e6, 1e-9);
}

#[test]
fn a_router_leaves_syns_alone_and_counts_other_packets() {
    let (mut router, link) = (router(), link(12e6, 0.0));
    let mut mark = Accelerate;
    for (kind, own) in [(PacketKind::Syn, true), (PacketKind::Other, false)] {
        let header = own.then_some(&mut mark);
        router.on_departure(&link, &mut Passing { now: at(0), volume: PACKET, packets: 1.0, kind, header });
    }
    assert_eq!(mark, Accelerate);
    // Another protocol's packets fill the link for 20 ms: the ABC packet that follows finds cr = μ.
    for i in 0..20 {
        let (now, kind) = (at(1000 * i), PacketKind::Other);
        while router.poll_at() <= now {
            let due = router.poll_at();
            router.on_timer(&link, due);
        }
        router.on_departure(&link, &mut Passing { now, volume: PACKET, packets: 1.0, kind, header: None });
    }
    run(&mut router, 20_000, 1000, 1, 12e6, 0.0);
    close(router.accelerate, 0.49, 1e-9);
}

fn receive(receiver: &mut Receiver, mark: Mark) {
    receiver.on_data(&Received { now: at(0), kind: PacketKind::Data, header: mark, rtt: None });
}

#[test]
fn the_receiver_returns_each_bit() {
    let mut receiver = Receiver::new(&Params::default());
    receiver.on_data(&Received { now: at(0), kind: PacketKind::Syn, header: Accelerate, rtt: None });
    receiver.echo(at(0));
    for mark in [Accelerate, Brake, Brake, Accelerate, Brake] {
        receive(&mut receiver, mark);
        assert_eq!(receiver.echo(at(0)), mark);
    }
}

/// With one acknowledgement for two packets, the sum of the returned marks equals the sum of the received marks, within
/// one acknowledgement.
#[test]
fn acknowledgements_of_two_packets_keep_the_sum() {
    let patterns: [&[Mark]; 4] = [
        &[Accelerate, Brake],
        &[Brake, Accelerate],
        &[Accelerate, Accelerate, Brake, Brake],
        &[Brake, Brake, Accelerate],
    ];
    for pattern in patterns {
        let mut receiver = Receiver::new(&Params::default());
        let (mut owed, mut paid) = (0_i32, 0);
        for pair in pattern.repeat(20).chunks(2) {
            for &mark in pair {
                receive(&mut receiver, mark);
                owed += if mark == Accelerate { 1 } else { -1 };
            }
            paid += if receiver.echo(at(0)) == Accelerate { 2 } else { -2 };
            assert!((owed - paid).abs() <= 2, "{owed} owed, {paid} paid, {pattern:?}");
        }
    }
}

fn source(params: &Params) -> Source {
    Source::new(params, &connection())
}

/// Acknowledges one packet with `in_flight` packets left; returns the window in packets.
fn acknowledge(source: &mut Source, mark: Mark, in_flight: f64) -> f64 {
    let ack = Ack::new(at(100_000), mark, ms(100));
    source.on_ack(&Ack { acked: PACKET, in_flight: in_flight * PACKET, ..ack });
    source.limit().window.expect("a window") / PACKET
}

/// `[abc-2020:eq3, window]` Both windows start at ten packets. An "accelerate" adds 1 packet to CUBIC's window in slow
/// start, and 1.1 packets to ABC's.
#[test]
fn the_smaller_window_holds() {
    let mut both = source(&Params::default());
    assert_eq!(acknowledge(&mut both, Accelerate, 9.0), 11.0);
    close(both.abc, 11.1, 1e-12);
    close(acknowledge(&mut both, Brake, 9.0), 11.1 - 1.0 + 1.0 / 11.1, 1e-12);
    let mut alone = source(&Params { fallback: Fallback::None, ..Params::default() });
    close(acknowledge(&mut alone, Accelerate, 9.0), 11.1, 1e-12);
}

/// `[abc-2020:cap]` Four packets in flight before the acknowledgement limit both windows to eight packets.
#[test]
fn a_window_that_is_not_in_use_comes_down() {
    let mut source = source(&Params::default());
    assert_eq!(acknowledge(&mut source, Accelerate, 3.0), 8.0);
    assert_eq!((source.abc, source.nonabc.as_ref().expect("CUBIC").cwnd()), (8.0, 8.0));
    assert_eq!(acknowledge(&mut source, Brake, 0.0), 2.0, "one packet in flight still allows two");
    assert_eq!(cap(0.0), 1.0);
}

/// `[abc-2020:window]` A loss or an ECN mark reduces CUBIC's window by 30 % and leaves ABC's window unchanged.
#[test]
fn cubic_answers_losses_and_marks() {
    for event in [Event::Loss, Event::Marked] {
        let mut both = source(&Params::default());
        both.on_event(at(1), event);
        assert_eq!((both.abc, both.window()), (10.0, 7.0), "{event:?}");
        let mut alone = source(&Params { fallback: Fallback::None, ..Params::default() });
        alone.on_event(at(1), event);
        assert_eq!(alone.window(), 10.0);
        both.on_event(at(2), Event::Timeout);
        assert_eq!((both.abc, both.window()), (1.0, 1.0));
    }
}

#[test]
fn a_weight_multiplies_the_additive_increase() {
    let mut double = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    acknowledge(&mut double, Brake, 9.0);
    close(double.abc, 9.2, 1e-12);
}

#[test]
fn what_the_scenario_asks_of_a_link_replaces_eta() {
    let mut view = link(12e6, 0.0);
    view.target = Some(0.9);
    let router = Router::new(&Params::default(), &view);
    close(router.target_rate.as_bps(), 0.9 * 12e6, 1e-12);
    assert_eq!(<Abc as crate::protocol::Protocol>::target(&Params::default()), 0.98);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let good = Params::default();
    assert_eq!(good.check(), Ok(()));
    let refused = |params: Params| params.check().is_err();
    assert!(refused(Params { eta: 0.0, ..good.clone() }));
    assert!(refused(Params { eta: 1.01, ..good.clone() }));
    assert!(refused(Params { delta: Duration::ZERO, ..good.clone() }));
    assert!(refused(Params { window: Duration::from_ps(1000), ..good.clone() }));
    assert!(refused(Params { token_limit: 1.0, ..good }));
}
