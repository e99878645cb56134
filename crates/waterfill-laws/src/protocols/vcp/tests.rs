//! Tests of VCP: equations checked by hand, bits on the wire, and calls of the laws.

use crate::protocol::{Ack, Connection, Event, LinkView, PacketKind, Passing, Wire};
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Freeze, Params};
use super::router::{Router, code, highest, load_factor, next_percent, persistent_queue};
use super::source::{Source, alpha_scaled, decreased, xi_scaled};
use super::{Load, Vcp};
use crate::protocol::{Router as _, Source as _};
use crate::testing::{close, connection, echo_after};

/// RTTs (s) between which AI is scaled with the square of the RTT, by default.
const AI_RTTS: (f64, f64) = (0.02, 0.5);

const fn bytes(bytes: f64) -> Volume {
    Volume::from_bytes(bytes)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// `[vcp-2005:load-factor]` The load factor is 1.25/1.225, because 1.2 MB and half of 100 kB are 1.25 MB. 50 Mbit/s for
/// 200 ms at 98 % are 1.225 MB.
#[test]
fn load_factor_by_hand() {
    close(load_factor(bytes(1.2e6), bytes(1e5), 0.5, bytes(1.225e6)), 1.25 / 1.225, 1e-12);
    close(persistent_queue(bytes(1000.0), bytes(5000.0), 0.25).as_bytes(), 2000.0, 1e-12);
}

/// `[vcp-2005:code]` The code changes at 80 and 100 %, and the more congested code of two prevails.
#[test]
fn code_levels() {
    assert_eq!([0.0, 0.7999, 0.8, 0.9999, 1.0, 9.0].map(code), {
        use Load::{High, Low, Over};
        [Low, Low, High, High, Over, Over]
    });
    assert_eq!(highest(Load::Over, Load::Low), Load::Over);
    assert_eq!(highest(Load::Low, Load::High), Load::High);
}

/// Rounding up moves 79.1 % and 99.1 % to the next level, but not a load factor just below 79 or 99 %.
#[test]
fn whole_per_cent_reach_a_level_one_per_cent_earlier() {
    assert_eq!([0.0, 0.5, 0.7899, 0.791, 0.9899, 0.991].map(next_percent), [0.01, 0.51, 0.79, 0.80, 0.99, 1.0]);
    for (whole_percent, level) in [(false, Load::High), (true, Load::Over)] {
        let mut router = Router::new(&Params { whole_percent, ..Params::default() }, &link(0.0));
        pass(&mut router, 0.995 * 1.225e6, Load::Low);
        run_timers(&mut router, at(200), 0.0);
        assert_eq!(pass(&mut router, 0.0, Load::Low), level, "{whole_percent}");
    }
}

/// `[vcp-2005:MI-scaling]` MI adds 6.25 % in t_ρ = 200 ms, √1.0625 − 1 in 100 ms, and 1.0625^2.5 − 1 from 500 ms on.
#[test]
fn mi_scaling() {
    close(xi_scaled(0.0625, 0.2, 0.2), 0.0625, 1e-12);
    close(xi_scaled(0.0625, 0.1, 0.2), 0.030_776_406_4, 1e-9);
    close(xi_scaled(0.0625, 0.5, 0.2), 0.163_649_93, 1e-7);
    assert_eq!(xi_scaled(0.0625, 3.0, 0.2), xi_scaled(0.0625, 0.5, 0.2));
}

/// `[vcp-2005:AI-scaling]` AI adds a quarter of α at half the reference RTT, and four times α at twice the reference
/// RTT. It is linear in the RTT outside 20 to 500 ms.
#[test]
fn ai_scaling() {
    close(alpha_scaled(1.0, 0.2, 0.2, AI_RTTS), 1.0, 1e-12);
    close(alpha_scaled(1.0, 0.1, 0.2, AI_RTTS), 0.25, 1e-12);
    close(alpha_scaled(3.0, 0.4, 0.2, AI_RTTS), 12.0, 1e-12);
    close(alpha_scaled(1.0, 0.01, 0.2, AI_RTTS), 0.05 * 0.1, 1e-12);
    close(alpha_scaled(1.0, 1.0, 0.2, AI_RTTS), 6.25 + 2.5, 1e-12);
    // Rates of different RTTs grow alike: α_rate/rtt² is one number.
    close(
        alpha_scaled(1.0, 0.04, 0.2, AI_RTTS) / 0.04_f64.powi(2),
        alpha_scaled(1.0, 0.3, 0.2, AI_RTTS) / 0.3_f64.powi(2),
        1e-12,
    );
}

/// `[vcp-2005:MD]` MD reduces 100 packets to 87.5, and keeps a window of one packet.
#[test]
fn md_by_hand() {
    assert_eq!(decreased(100.0, 0.875), 87.5);
    assert_eq!(decreased(1.0, 0.875), 1.0);
}

#[test]
fn bits_on_the_wire() {
    for load in [Load::Low, Load::High, Load::Over] {
        let mut out = [0xff];
        load.encode(&mut out);
        assert_eq!(Load::decode(&out), Some(load));
    }
    assert_eq!(Load::decode(&[0]), None, "not ECN capable");
    assert_eq!(Load::decode(&[4]), None);
    assert_eq!(Load::decode(&[]), None);
}

fn link(queue: f64) -> LinkView {
    LinkView { id: 0, capacity: Rate::from_bps(5e7), target: None, queue: bytes(queue) }
}

/// Sends a packet of `volume` bytes through the router; returns the packet's code.
fn pass(router: &mut Router, volume: f64, header: Load) -> Load {
    let mut header = header;
    for departs in [false, true] {
        let mut passing = Passing {
            now: Instant::ZERO,
            volume: bytes(volume),
            packets: 1.0,
            kind: PacketKind::Data,
            header: Some(&mut header),
        };
        if departs {
            router.on_departure(&link(0.0), &mut passing);
        } else {
            router.on_arrival(&link(0.0), &mut passing);
        }
    }
    header
}

/// Runs the router's timers until `until`, with a standing queue.
fn run_timers(router: &mut Router, until: Instant, queue: f64) {
    while router.poll_at() <= until {
        let due = router.poll_at();
        router.on_timer(&link(queue), due);
    }
}

#[test]
fn a_router_measures_every_200_ms() {
    let mut router = Router::new(&Params::default(), &link(0.0));
    assert_eq!(router.poll_at(), at(10));
    assert_eq!(pass(&mut router, 1.3e6, Load::Low), Load::Low, "not before the first measurement");
    run_timers(&mut router, at(199), 0.0);
    assert_eq!(pass(&mut router, 0.0, Load::Low), Load::Low);
    run_timers(&mut router, at(200), 0.0);
    close(router.load_factor, 1.3 / 1.225, 1e-12);
    assert_eq!(pass(&mut router, 1.1e6, Load::Low), Load::Over);
    run_timers(&mut router, at(400), 0.0);
    assert_eq!(pass(&mut router, 0.0, Load::Low), Load::High);
    assert_eq!(pass(&mut router, 0.0, Load::Over), Load::Over, "a router before was worse");
    // A standing queue of 1 MB alone: 0.5 · 250 kB in the first interval.
    run_timers(&mut router, at(600), 1e6);
    close(router.load_factor, 0.125 / 1.225, 1e-12);
}

fn source() -> Source {
    Source::new(&Params::default(), &connection())
}

fn receive(source: &mut Source, ms: u64, load: Load) -> f64 {
    let rtt = Duration::from_millis(200);
    source.on_ack(&Ack {
        now: at(ms),
        echo: load,
        kind: PacketKind::Ack,
        acked: bytes(1500.0),
        rtt: Some(rtt),
        base_rtt: rtt,
        in_flight: Volume::ZERO,
        marked: Volume::ZERO,
        smoothed_rtt: rtt,
        recovering: false,
        window_limited: true,
    });
    source.limit().window.unwrap() / source.packet
}

/// `[vcp-2005:MI, AI]` In an RTT of 200 ms, ten acknowledgements multiply the window by 1.0625 with MI, and add about
/// one packet with AI.
#[test]
fn one_rtt_of_each_law() {
    let mut source = source();
    let low = (0..10).map(|_| receive(&mut source, 200, Load::Low)).last().unwrap();
    close(low, 10.625, 1e-12);
    let high = (0..10).map(|_| receive(&mut source, 400, Load::High)).last().unwrap();
    close(high, 11.525, 2e-3); // 10 of the 10.6 acknowledgements that make a whole packet
}

/// `[vcp-2005:MD]` MD acts once. The window is then frozen for 200 ms, AI follows for an RTT of 200 ms, and MD acts
/// again.
#[test]
fn one_decrease_then_a_freeze_then_one_rtt_of_ai() {
    let mut source = source();
    assert_eq!(receive(&mut source, 1000, Load::Over), 8.75);
    for load in [Load::Over, Load::High, Load::Low] {
        assert_eq!(receive(&mut source, 1199, load), 8.75);
    }
    close(receive(&mut source, 1200, Load::Over), 8.75 + 1.0 / 8.75, 1e-12);
    let grown = receive(&mut source, 1399, Load::Over);
    assert!(grown > 8.86);
    assert_eq!(receive(&mut source, 1400, Load::Over), 0.875 * grown);
}

/// With `freeze = "overload"`, a lower code ends the freeze at once, but a second overload still has no effect.
#[test]
fn a_freeze_of_overload_only_lets_ai_and_mi_go_on() {
    let mut source = Source::new(&Params { freeze: Freeze::Overload, ..Params::default() }, &connection());
    assert_eq!(receive(&mut source, 1000, Load::Over), 8.75);
    assert_eq!(receive(&mut source, 1100, Load::Over), 8.75);
    close(receive(&mut source, 1110, Load::High), 8.75 + 1.0 / 8.75, 1e-12);
    let grown = receive(&mut source, 1120, Load::Low);
    close(grown, 8.75 + 1.0 / 8.75 + 0.0625, 1e-12);
    assert_eq!(receive(&mut source, 1199, Load::Over), grown);
}

#[test]
fn losses_are_answered_as_by_reno() {
    let mut source = source();
    source.on_event(at(1), Event::Loss);
    assert_eq!(source.window, 5.0);
    source.on_event(at(2), Event::Recovered);
    assert_eq!(source.window, 5.0);
    source.on_event(at(3), Event::Timeout);
    assert_eq!(source.window, 1.0);
}

#[test]
fn a_weight_scales_ai() {
    let mut double = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    close(receive(&mut double, 200, Load::High) - 10.0, 0.2, 1e-9);
    close(receive(&mut source(), 200, Load::High) - 10.0, 0.1, 1e-9);
}

#[test]
fn the_receiver_echoes_what_came_last() {
    let after = |headers: &[Load]| echo_after::<Vcp>(&Params::default(), headers);
    assert_eq!(after(&[]), Load::Low);
    assert_eq!(after(&[Load::High, Load::Over]), Load::Over);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let good = Params::default();
    assert_eq!(good.check(), Ok(()));
    let refused = |params: Params| params.check().is_err();
    assert!(refused(Params { t_rho: Duration::ZERO, ..good.clone() }));
    assert!(refused(Params { t_q: Duration::from_millis(201), ..good.clone() }));
    assert!(refused(Params { beta: 1.0, ..good.clone() }));
    assert!(refused(Params { gamma: 0.0, ..good.clone() }));
    assert!(refused(Params { xi: 0.0, ..good }));
}
