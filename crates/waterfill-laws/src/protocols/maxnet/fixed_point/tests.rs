//! The C code compared with the law: each equation over its range, then router, receiver and source as a whole. Every
//! bound is the quantisation that `kernel/maxnet.h` states, propagated through the equation. Where errors add up, the
//! bound is updated step by step.

use super::*;
use crate::params::Params as _;
use crate::protocol::{Receiver as _, Router as _, Source as _};
use crate::protocols::maxnet::router::with_queue;
use crate::protocols::maxnet::source::{
    Start, clipped, compensated, rate, start_rise, window, xi_equilibrium, xi_next,
};
use crate::protocols::maxnet::{self, CODE_MAX, demand, demand_inverse, quantise, real, start_rate};
use crate::testing::{connection, numbers, spread};

unsafe extern "C" {
    safe fn waterfill_maxnet_params_default(params: &mut HostParams);
    safe fn waterfill_maxnet_idle(link: &mut LinkState, intervals: u64, queue: u64);
    safe fn waterfill_maxnet_mark_price(link: &LinkState, field: u32) -> u32;
    safe fn waterfill_maxnet_base_rtt(params: &HostParams, source: &mut SourceState, base_rtt: u32);
    safe fn waterfill_maxnet_exp(scale: u64, u: u64) -> u64;
    safe fn waterfill_maxnet_time_for(bytes: u64, queue: u64, dt_p: u32, t_0: u32, capacity: u64) -> u64;
    safe fn waterfill_maxnet_xi_rest(code: u32, alpha: u32, base_rtt: u32, t: u32) -> i64;
    safe fn waterfill_maxnet_xi_step(params: &HostParams, xi: i64, code: u32, dt: u64, base_rtt: u32) -> i64;
    safe fn waterfill_maxnet_compensated(xi: i64, code: u32, alpha: u32, rtt_new: u32, rtt_old: u32) -> i64;
    safe fn waterfill_maxnet_rate(scale: u64, xi: i64, code: u32, alpha: u32, base_rtt: u32) -> u64;
    safe fn waterfill_maxnet_window(rate: u64, base_rtt: u32) -> u64;
    safe fn waterfill_maxnet_start_rise(delta: u64, dt: u64, base_rtt: u32) -> u64;
}

const X_MAX: u64 = 1_000_000_000_000_000;
/// The unit of prices and ξ in the C code.
const UNIT: f64 = 1.0 / MEMORY_SCALE;
/// Largest relative error of the exponential (`kernel/fixed.h`).
const EXP: f64 = 1.1e-6;
/// Relative error of a few operations in doubles.
const DOUBLE: f64 = 1e-14;
const FLAG: u32 = 1 << 23;

/// The value of a number in the memory scale.
fn value(raw: i64) -> f64 {
    raw as f64 * UNIT
}

fn near(a: f64, b: f64, bound: f64, what: &str) {
    assert!((a - b).abs() <= bound, "{what}: {a} is not {b} within {bound}");
}

/// Returns a base RTT from 1 µs to 16.8 s and any price code.
fn path(random: &mut impl FnMut(u64) -> u64) -> (u32, u32) {
    (spread(random, 1.0, f64::from(1 << 24)) as u32, 1 + random(u64::from(CODE_MAX)) as u32)
}

/// Returns α, η and T from their ranges.
fn gains(random: &mut impl FnMut(u64) -> u64) -> HostParams {
    HostParams {
        x_max: X_MAX,
        alpha: 1 + random(1571) as u32,
        eta: spread(random, 1.0, 65_000.0) as u32,
        t: spread(random, 1.0, 1e5) as u32,
        xi_first: 1,
        average: 1,
        ..HostParams::default()
    }
}

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn at(us: u64) -> Instant {
    Instant::ZERO + micros(us)
}

fn seconds(us: u32) -> f64 {
    f64::from(us) * 1e-6
}

fn view(bps: f64) -> LinkView {
    LinkView { id: 0, capacity: Rate::from_bps(bps), target: None, queue: Volume::ZERO }
}

fn mark(router: &mut impl crate::protocol::Router<MaxNet>, price: Field) -> Field {
    let mut header = Header { price };
    let volume = Volume::ZERO;
    let mut passing =
        Passing { now: Instant::ZERO, volume, packets: 0.0, kind: PacketKind::Data, header: Some(&mut header) };
    router.on_arrival(&view(1e9), &mut passing);
    header.price
}

// ---------------------------------------------------------------------------------- equations

/// For every code of the wire: within the stated error plus the truncation to whole bit/s, and never rising.
#[test]
fn the_exponential_over_every_code() {
    let (mut before, mut worst) = (u64::MAX, 0.0_f64);
    for code in 0..=u64::from(CODE_MAX) {
        let got = waterfill_maxnet_exp(X_MAX, code << 16);
        let exact = X_MAX as f64 * (-real(code as u32)).exp();
        assert!(got <= before, "at code {code}");
        worst = worst.max(((got as f64 - exact).abs() - 1.0) / exact);
        before = got;
    }
    assert!(worst < EXP, "{worst}");
    assert!(worst > 0.8 * EXP, "the stated bound is not tight: {worst}");
    assert_eq!(waterfill_maxnet_exp(1 << 57, u64::MAX), 0);
}

#[test]
fn section_vi_is_the_default() {
    let mut params = HostParams::default();
    waterfill_maxnet_params_default(&mut params);
    assert_eq!(params, HostParams::new(&Params::default()));
}

/// `[maxnet-2007:fig3]` (y_dt + Q·dt_p/T₀)/C: up to 2⁻¹⁶ bytes and up to 2⁻³⁴ s are truncated.
#[test]
fn fig3_time_over_the_range() {
    let mut random = numbers(1);
    for _ in 0..50_000 {
        let capacity = spread(&mut random, 32.0, 1e17);
        let (bytes, queue) = (spread(&mut random, 1.0, 1e12), spread(&mut random, 1.0, 1e12));
        let dt_p = spread(&mut random, 1.0, 1e6) as u32;
        let t_0 = dt_p + spread(&mut random, 1.0, 1e9) as u32;
        let volume =
            with_queue(Volume::from_bytes(bytes as f64), Volume::from_bytes(queue as f64), seconds(dt_p), seconds(t_0));
        let law = volume / Rate::from_bps(capacity as f64);
        let got = waterfill_maxnet_time_for(bytes, queue, dt_p, t_0, capacity) as f64 * UNIT;
        let max = (1u64 << 24) as f64;
        let bound = 8.0 / 65_536.0 / capacity as f64 + UNIT + law * DOUBLE;
        near(got, law.min(max), bound, "y/C");
    }
}

/// `[maxnet-2007:eq10]` by hand, as for the real law: τ = 50 ms, q = 5.6, ξ = 110, dt = 1 ms.
#[test]
fn eq10_worked_example() {
    let params = HostParams::new(&Params::default());
    let code = quantise(5.6);
    let xi = waterfill_maxnet_xi_step(&params, 110 << 34, code, 1000, 50_000);
    // 15.84 · 10⁻³ · (4.28 q − 44), for the code's q.
    near(value(xi), 110.0 + 0.015_84 * (5.6 * real(code) - 44.0 - 1.32 * real(code)), 2.0 * UNIT, "ξ");
}

/// `[maxnet-2007:VI, tcp-maxnet-2006:eq12, maxnet-2007:eq6a, maxnet-2007:eq10]` over all codes and RTTs.
#[test]
fn xi_rest_compensation_rate_and_window_over_the_range() {
    let mut random = numbers(2);
    for _ in 0..50_000 {
        let (base_rtt, code) = path(&mut random);
        let (other, _) = path(&mut random);
        let HostParams { alpha, t, .. } = gains(&mut random);
        let (q, a) = (real(code), f64::from(alpha) * 1e-3);
        let (gain, gain_other) = (a / seconds(base_rtt), a / seconds(other));
        let rest = waterfill_maxnet_xi_rest(code, alpha, base_rtt, t);
        let law = xi_equilibrium(q, gain, f64::from(t) * 1e-3);
        // Two quotients, rounded to nearest.
        let doubles = (q * gain + q / f64::from(t) * 1e3) * DOUBLE;
        near(value(rest), law, UNIT + doubles, "ξ*");

        let xi = waterfill_maxnet_compensated(rest, code, alpha, base_rtt, other);
        let law = compensated(value(rest), q, gain, gain_other);
        near(value(xi), law, UNIT + (q * (gain + gain_other) + value(rest).abs()) * DOUBLE, "ξ of eq. 12");

        let xi = rest - random(1 << 34) as i64 * 30;
        let x = waterfill_maxnet_rate(X_MAX, xi, code, alpha, base_rtt) as f64;
        let law = rate(Rate::from_bps(X_MAX as f64), value(xi), q, gain).as_bps();
        let bound = law * (EXP + UNIT + (q * gain + value(xi).abs()) * DOUBLE) + 1.0;
        near(x, law, bound, "x");

        let x = spread(&mut random, 1.0, RATE_MAX_BPS as f64);
        let law = window(Rate::from_bps(x as f64), micros(u64::from(base_rtt))).as_bytes();
        near(waterfill_maxnet_window(x, base_rtt) as f64, law, 1.125 + law * DOUBLE, "W"); // bits, then bytes
    }
}

/// `[maxnet-2007:eq10]` the step, stopped at ξ*. The bound: 2⁻⁶² per µs of the speed, the rounding of ξ*, and the bits below
/// 2⁻³⁴, which are kept in `xi_low`.
#[test]
fn eq10_over_the_range() {
    let mut random = numbers(3);
    for _ in 0..50_000 {
        let (base_rtt, code) = path(&mut random);
        let params = gains(&mut random);
        let dt = spread(&mut random, 1.0, 1e9);
        let (q, t) = (real(code), f64::from(params.t) * 1e-3);
        let gain = f64::from(params.alpha) * 1e-3 / seconds(base_rtt);
        let zero = f64::from(params.eta) * 1e-3 / seconds(base_rtt);
        let rest = waterfill_maxnet_xi_rest(code, params.alpha, base_rtt, params.t);
        let xi = rest + random(1 << 36) as i64 - (1 << 35); // up to 2 away: a factor of 7.4 in the rate
        let next = waterfill_maxnet_xi_step(&params, xi, code, dt, base_rtt);
        let law = clipped(value(xi), xi_next(value(xi), q, dt as f64 * 1e-6, gain, zero, t), value(rest));
        let gap = value(rest - xi).abs();
        let speed_off = dt as f64 / (1u64 << 62) as f64;
        // In doubles eq. 10 is a small difference of large terms.
        let step = (gain * zero * dt as f64 * 1e-6).min(1.0 / t);
        let doubles = step * (q * (t * gain + 1.0) + t * value(xi).abs()) + value(xi).abs();
        near(value(next), law, 2.0 * UNIT + gap * speed_off + doubles * DOUBLE, "ξ");
    }
}

/// `[maxnet-2007:IV.B]` Δ·dt/(2τ), rounded up to whole bit/s, and not more than Δ.
#[test]
fn iv_b_start_rise_over_the_range() {
    let mut random = numbers(4);
    for _ in 0..50_000 {
        let (base_rtt, _) = path(&mut random);
        let delta = spread(&mut random, 1.0, RATE_MAX_BPS as f64);
        let dt = spread(&mut random, 1.0, f64::from(base_rtt) * 4.0);
        let law = start_rise(Rate::from_bps(delta as f64), micros(dt), micros(u64::from(base_rtt))).as_bps();
        let got = waterfill_maxnet_start_rise(delta, dt, base_rtt);
        near(got as f64, law.min(delta as f64), 1.0 + law * DOUBLE, "rise");
        assert!(got > 0, "MaxStart ends");
    }
}

// ---------------------------------------------------------------------------------- router

/// `[maxnet-2007:eq3, eq8, IV.B]` one second of random load and queue, on links of every speed.
#[test]
fn the_fixed_point_router_follows_the_law() {
    let mut random = numbers(5);
    for decade in 0..30 {
        let promise = decade % 2 == 1;
        let capacity = (1e5 * 10f64.powf(f64::from(decade) / 3.0)).round();
        let params = Params { promise, ..Params::default() };
        let mut link = view(capacity);
        let (mut law, mut fixed) = (maxnet::Router::new(&params, &link), Router::new(&params, &link));
        let p_min = demand_inverse(link.capacity, params.x_max, 0.4);
        let start = fixed.state.price as f64 * UNIT - law.price;
        // T times one code of the logarithm, one bit/s of truncation, and the error of the exponential.
        near(law.price + start, p_min, 0.4 * (1.0 / 262_144.0 + 1.0 / capacity + EXP), "p_min");
        for tick in 1..=1000_u32 {
            // 0 to 2 C, in whole bytes; up to 10 ms of queue.
            let bytes = Volume::from_bytes((capacity / 8e3 * random(2000) as f64 / 1e3).round());
            link.queue = Volume::from_bytes((capacity / 8e3 * random(10) as f64).round());
            (law.arrived, fixed.arrived) = (bytes, bytes);
            law.on_timer(&link, Instant::ZERO);
            fixed.on_timer(&link, Instant::ZERO);
            // Per interval: a unit truncated from y/C, half a unit of μ·dt_p, and 2⁻¹⁶ bytes of the queue's part.
            let bound = f64::from(tick) * (1.5 * UNIT + 8.0 / 65_536.0 / capacity + law.price * DOUBLE);
            let off = fixed.state.price as f64 * UNIT - law.price;
            near(off, start, bound + start.abs(), "p"); // either may have stood at its own p_min
            if let (Field::Price(a), Field::Price(b)) =
                (mark(&mut fixed, Field::Price(0)), mark(&mut law, Field::Price(0)))
            {
                let codes = (bound + 2.0 * start.abs()) * 262_144.0 + 1.0;
                assert!(f64::from(a.abs_diff(b)) <= codes && a > 0);
            }
            if random(50) > 0 {
                continue;
            }
            let spare =
                |f| if let Field::StartRate(code) = f { start_rate(real(code), params.x_max).as_bps() } else { 0.0 };
            let got = spare(mark(&mut fixed, Field::StartRate(0)));
            let expected = spare(mark(&mut law, Field::StartRate(0)));
            // Two codes of 2⁻¹⁸ and two errors of the exponential; whole bit/s of share, y and promises, whose errors add
            // up. Without spare capacity both give the last code.
            let bound = expected * (8e-6 + 2.0 * EXP) + 4.0 + if promise { capacity * 4e-5 } else { capacity * DOUBLE };
            near(got, expected, bound, "start rate");
        }
    }
}

/// At half the capacity, p is at least its p_min = T·ln(x_max/C), and 125 kB take 2 ms.
#[test]
fn another_capacity_by_hand() {
    let params = Params::default();
    let (mut law, mut fixed) = (maxnet::Router::new(&params, &view(1e9)), Router::new(&params, &view(1e9)));
    (law.arrived, fixed.arrived) = (Volume::from_bytes(125e3), Volume::from_bytes(125e3));
    law.on_timer(&view(5e8), Instant::ZERO);
    fixed.on_timer(&view(5e8), Instant::ZERO);
    let expected = 0.4 * 2e6_f64.ln() + 2e-3 - 0.9e-3;
    assert!((law.price - expected).abs() < 1e-12, "{}", law.price);
    let price = fixed.state.price as f64 * UNIT;
    assert!((price - expected).abs() < 0.4 / 262_144.0, "{price}");
}

/// One step by hand: 125 kB take 1 ms at 1 Gbit/s, 130 kB of queue count as 1 kB, and p_min is the paper's.
#[test]
fn fig3_one_interval() {
    let mut router = Router::new(&Params::default(), &view(1e9));
    let p_min = router.state.price;
    assert_eq!(mark(&mut router, Field::Price(0)), Field::Price(quantise(0.4 * 1e6_f64.ln())));
    waterfill_maxnet_tick(&mut router.state, 125_000, 130_000);
    // 1.008 ms less 0.9 ms.
    near(router.state.price.abs_diff(p_min) as f64 * UNIT, 0.000_108, 2.0 * UNIT, "p");
    assert_eq!(mark(&mut router, Field::StartRate(0)), Field::StartRate(CODE_MAX), "1 Gbit/s is more than 0.925");
}

/// μ·dt_p over its range, rounded to nearest.
#[test]
fn target_times_over_the_range() {
    let mut random = numbers(13);
    for _ in 0..5000 {
        let (mu, dt_p) = (1 + random(1_000_000), spread(&mut random, 1.0, 1e6));
        let mut link = LinkState::default();
        waterfill_maxnet_link_init(&mut link, 1_000_000, X_MAX, 400, mu as u32, dt_p as u32, u32::MAX, 0);
        near(link.target_time as f64, mu as f64 * dt_p as f64 * 1e-12 * MEMORY_SCALE, 0.501, "μ·dt_p");
    }
}

/// n idle intervals at once equal n single ones, bit for bit: rising, falling, constant, at both ends, and with promises.
#[test]
fn idle_is_as_many_ticks_of_nothing() {
    let mut random = numbers(6);
    for case in 0..3000_u64 {
        let promise = random(2) == 0;
        let t_0 = Duration::from_micros(1001 + spread(&mut random, 1.0, 1e6));
        let capacity = spread(&mut random, 32.0, 1e12);
        let params = Params { promise, t_0, mu: 0.01 + random(99) as f64 * 0.01, ..Params::default() };
        let mut at_once = Router::new(&params, &view(capacity as f64)).state;
        for _ in 0..random(5) {
            waterfill_maxnet_tick(&mut at_once, spread(&mut random, 1.0, capacity as f64), 0);
        }
        if case % 10 == 0 {
            at_once.price = (1 << 60) - random(1 << 30);
        }
        waterfill_maxnet_mark(&mut at_once, FLAG);
        let mut one_by_one = at_once;
        // From no queue to one that counts for more than μ.
        let queue = random(3) * spread(&mut random, 1.0, capacity as f64 + 2.0);
        let n = random(300);
        waterfill_maxnet_idle(&mut at_once, n, queue);
        for _ in 0..n {
            waterfill_maxnet_tick(&mut one_by_one, 0, queue);
        }
        assert_eq!(at_once, one_by_one, "{n} intervals with {queue} bytes");
    }
}

/// A new rate or target keeps the price, unless the new p_min is higher.
#[test]
fn a_link_changes_its_rate_without_losing_its_price() {
    let mut link = Router::new(&Params::default(), &view(1e8)).state;
    waterfill_maxnet_tick(&mut link, 1 << 20, 0);
    let price = link.price;
    waterfill_maxnet_link_set(&mut link, 1_000_000_000, 500_000);
    let fresh = Router::new(&Params { mu: 0.5, ..Params::default() }, &view(1e9)).state;
    assert_eq!(link.price, price);
    assert_eq!(
        (link.price_min, link.target_time, link.start_share),
        (fresh.price_min, fresh.target_time, fresh.start_share)
    );
    waterfill_maxnet_link_set(&mut link, 1_000_000, 500_000);
    assert_eq!(link.price, link.price_min, "a thousandth of the rate has a higher p_min");
    assert_eq!(waterfill_maxnet_mark_price(&link, 0), link.price_code);
}

/// The fast path writes the same prices as the slow one, and does not change start rates.
#[test]
fn the_fast_path_marks_prices_alike() {
    let mut random = numbers(7);
    let mut link = Router::new(&Params::default(), &view(1e9)).state;
    for _ in 0..10_000 {
        waterfill_maxnet_tick(&mut link, random(300_000), 0);
        let field = random(1 << 24) as u32;
        let fast = waterfill_maxnet_mark_price(&link, field);
        assert_eq!(fast, if field & FLAG == 0 { waterfill_maxnet_mark(&mut link, field) } else { field });
    }
}

// ---------------------------------------------------------------------------------- receiver

/// `[maxnet-2007:VI]` 10⁵ packets: prices drift and jump, RTT samples shrink, with start rates and gaps in between. The
/// errors of 2⁻³² of each difference and of 2⁻⁵⁸ s add up, and decay with the average.
#[test]
fn the_fixed_point_receiver_follows_the_law() {
    let mut random = numbers(8);
    for rtt_us in [3_u64, 500, 28_000, 160_000, 8_000_000] {
        let params = Params::default();
        let (mut law, mut fixed) = (maxnet::Receiver::new(&params), Receiver::new(&params));
        let (mut now, mut price, mut bound) = (0, 1_500_000_u64, 0.0_f64);
        let mut samples = 0;
        for step in 0..20_000 {
            now += random(rtt_us / 10 + 3);
            price = if random(1000) == 0 { 1 + random(8_000_000) } else { (price + random(101)).max(51) - 50 };
            let field = match random(500) {
                0 => Field::StartRate(random(1 << 23) as u32),
                1 => Field::Price(0),
                _ => Field::Price(price as u32),
            };
            let sample = (step % 100 == 7 && samples < 50).then(|| {
                samples += 1;
                // Decreasing samples, and every second one larger than the one before.
                micros(rtt_us + rtt_us / 2 * (50 - samples) / 50 + samples % 2 * (rtt_us / 3))
            });
            let before = (law.average, law.last);
            let received =
                Received { now: at(now), kind: PacketKind::Data, header: Header { price: field }, rtt: sample };
            law.on_data(&received);
            fixed.on_data(&received);
            if let ((Some(average), last), Field::Price(code), Some(rtt)) = (before, field, law.rtt) {
                let weight = (at(now).since(last) / rtt).min(1.0);
                let difference = (real(code) - average).abs();
                bound = bound * (1.0 - weight) + difference / 4_294_967_296.0 + (0.5f64).powi(58) + 32.0 * DOUBLE;
            }
            if law.average.is_none() {
                bound = 0.0;
            }
            let got = fixed.state.average as f64 / (1u64 << 58) as f64;
            assert_eq!(law.average.is_some(), fixed.state.has_price == 1);
            near(got, law.average.unwrap_or(got), bound, "average");
            let (a, b) = (fixed.echo(at(now)).echo.bits(), law.echo(at(now)).echo.bits());
            assert_eq!(a & FLAG, b & FLAG);
            assert!(f64::from(a.abs_diff(b)) <= (bound * 262_144.0).ceil(), "{a} and {b}");
        }
    }
}

/// `[maxnet-2007:VI]` by hand: code 1003 a quarter of an RTT after code 1000 gives 1000.75, rounded to 1001; without averaging,
/// and before the first RTT sample, it gives 1003.
#[test]
fn vi_average_to_the_nearest_code() {
    for (average, rtt, expected) in
        [(Average::Exponential, 100_000, 1001), (Average::Off, 100_000, 1003), (Average::Exponential, 0, 1003)]
    {
        let params = HostParams::new(&Params { average, ..Params::default() });
        let mut state = ReceiverState::default();
        assert_eq!(waterfill_maxnet_echo(&state), 0);
        waterfill_maxnet_receive(&params, &mut state, 0, rtt, 1000);
        waterfill_maxnet_receive(&params, &mut state, 25_000, 0, 1003);
        assert_eq!(waterfill_maxnet_echo(&state), expected);
        waterfill_maxnet_receive(&params, &mut state, 26_000, 0, FLAG | 7);
        assert_eq!(waterfill_maxnet_echo(&state), FLAG | 7);
    }
}

// ---------------------------------------------------------------------------------- source

/// The whole source after MaxStart, 10⁵ acknowledgements: the same prices at the same times give the same ξ, rates and
/// windows, for every RTT and when it changes. ξ's bound is the sum of the errors that each step adds, with their decay.
#[test]
fn the_fixed_point_source_follows_the_law() {
    let mut random = numbers(9);
    for (case, rtt_us) in [4_u64, 120, 1000, 5000, 28_000, 56_000, 150_000, 1_000_000, 16_000_000].iter().enumerate() {
        let compensate = case % 2 == 0;
        let order = if case % 3 == 0 { Order::RateFirst } else { Order::XiFirst };
        let params = Params { order, compensate, ..Params::default() };
        let (mut law, mut fixed) = (maxnet::Source::new(&params, &connection()), Source::new(&params, &connection()));
        let (mut now, mut rtt) = (1_000_000, rtt_us + 3);
        let (mut price, mut bound) = (1_450_000_u64, 0.0_f64);
        let gigabit = u64::from(quantise(demand_inverse(Rate::from_bps(1e9), params.x_max, 0.4)));
        for step in 0..12_000 {
            now += 1 + random(1 + rtt_us / 200);
            // A drifting price between those of 1 Gbit/s and of a hundredth of it.
            price = (price + random(101)).max(gigabit + 50).min(gigabit + 482_000) - 50;
            if step % 4000 == 3999 && rtt > 1 {
                rtt -= 1;
            }
            let echo = Echo { echo: Field::Price(price as u32) };
            let ack = Ack::new(at(now), echo, micros(rtt));
            let (before, priced) = (law.updated, law.updated.is_some());
            let xi_before = law.xi;
            law.on_ack(&ack);
            fixed.on_ack(&ack);
            let (tau, q) = (rtt as f64 * 1e-6, real(price as u32));
            let gain = 0.66 / tau;
            let size = q * gain + law.xi.abs();
            if priced {
                let dt = at(now).since(before.unwrap()).as_secs();
                let fraction = (gain * 0.06 / tau * 0.4 * dt).min(1.0);
                let gap = (xi_equilibrium(q, gain, 0.4) - xi_before).abs();
                let speed_off = dt * 1e6 / (1u64 << 62) as f64;
                // ξ* has an error of a unit, of which a step takes its fraction; eq. 12 one of a unit. In doubles, large
                // terms with a small difference lose precision, and a short RTT multiplies the loss.
                let terms = gain * 0.06 / tau * dt * (q * (0.4 * gain + 1.0) + 0.4 * xi_before.abs());
                bound = bound * (1.0 - fraction)
                    + fraction * UNIT
                    + UNIT / 4_294_967_296.0
                    + gap * speed_off
                    + (terms + size) * 4e-16
                    + if step % 4000 == 3999 { UNIT + size * DOUBLE } else { 0.0 };
            } else {
                bound = UNIT + size * DOUBLE;
            }
            near(value(fixed.state.xi), law.xi, bound + UNIT, "ξ");
            let expected = law.price_rate.as_bps();
            let relative = EXP + bound + 2.0 * UNIT + size * DOUBLE;
            near(fixed.state.rate as f64, expected, expected * relative + 1.0, "x");
            let Limit { window: Some(a), pacing: Some(paced) } = fixed.limit() else { panic!("a price has come") };
            let Limit { window: Some(b), pacing: Some(law_paced) } = law.limit() else { panic!("a price has come") };
            near(a.as_bytes(), b.as_bytes(), b.as_bytes() * relative + tau / 8.0 + 1.125, "W");
            near(paced.as_bps(), law_paced.as_bps(), law_paced.as_bps() * relative + 1.0, "pacing");
        }
    }
}

/// The whole source during MaxStart: granted, rising, over. The bound is 1 bit/s per rise, and the exponential's error twice.
#[test]
fn the_fixed_point_maxstart_follows_the_law() {
    let mut random = numbers(10);
    for rtt_us in [16_u64, 1000, 28_000, 160_000, 4_000_000] {
        let params = Params::default();
        let (mut law, mut fixed) = (maxnet::Source::new(&params, &connection()), Source::new(&params, &connection()));
        let price = Field::Price(quantise(demand_inverse(Rate::from_bps(9e8), params.x_max, 0.4)));
        let granted = Field::StartRate(quantise((1e15_f64 / 1e8).ln()));
        let mut now = rtt_us;
        for step in 0..600 {
            let echo = Echo { echo: if step == 0 { granted } else { price } };
            let ack = Ack::new(at(now), echo, micros(rtt_us));
            law.on_ack(&ack);
            fixed.on_ack(&ack);
            // The price is constant and ξ is at rest, so the price's rate is too. One version may end MaxStart one
            // acknowledgement later, at a rate that close to the price's.
            let (a, b) = (fixed.state.rate as f64, law.limit().pacing.unwrap().as_bps());
            near(a.max(12_000e6 / rtt_us as f64), b, b * (4.0 * EXP + 8.0 * UNIT) + 40.0, "rate");
            now += 1 + random(1 + rtt_us / 80);
        }
        assert_eq!((law.start, fixed.state.mode), (Start::Over, 2), "MaxStart ended at {rtt_us} µs");
    }
}

/// Fields of every kind in any order, at times that stand still or go back, give the same modes, the same prices used and
/// ignored, and the same rates. Prices are within a factor of ten of 1 Gbit/s, so that ξ's error is a few units.
#[test]
fn any_order_of_fields_gives_the_same_states() {
    let mut random = numbers(12);
    let mut modes = [0; 3];
    for case in 0..3000 {
        let dt_min = micros([0, 1, 3000][case % 3]);
        let compensate = case % 2 == 0;
        let params = Params { dt_min, compensate, ..Params::default() };
        let (mut law, mut fixed) = (maxnet::Source::new(&params, &connection()), Source::new(&params, &connection()));
        let (mut now, mut rtt) = (1_000_000, 28_000 + random(3));
        for step in 0..60 {
            now = now + random(4) * random(2000) - random(4) / 3 * random(1500);
            rtt -= u64::from(random(30) == 0);
            let field = match random(if step < 3 { 3 } else { 12 }) {
                0 => Field::Price(0),
                1 if random(10) == 0 => Field::StartRate(0),
                2 => Field::StartRate(4_225_000 + random(600_000) as u32),
                _ => Field::Price(1_448_661 - 241_000 + random(482_000) as u32),
            };
            let ack = Ack::new(at(now), Echo { echo: field }, micros(rtt));
            law.on_ack(&ack);
            fixed.on_ack(&ack);
            let mode = match law.start {
                Start::Asking => 0,
                Start::Rising { .. } => 1,
                Start::Over => 2,
            };
            modes[mode as usize] += 1;
            let state = &fixed.state;
            assert_eq!((state.mode, state.has_price == 1), (mode, law.updated.is_some()));
            assert_eq!(law.updated.unwrap_or(Instant::ZERO), at(state.updated));
            near(real(state.price), law.price, DOUBLE, "q");
            match law.limit().pacing {
                Some(x) => {
                    // A grant, a rise and a price each add an error of the exponential; 60 rises add 1 bit/s each.
                    let bound = x.as_bps() * (4.0 * EXP + 60.0 * UNIT) + 61.0;
                    near(waterfill_maxnet_pacing(state) as f64, x.as_bps(), bound, "pacing");
                    let bound = bound * rtt as f64 / 8e6 + 1.125;
                    near(state.window as f64, law.window.as_bytes(), bound, "W");
                }
                None => assert_eq!((state.rate, state.window), (0, 15_000)),
            }
        }
    }
    assert!(modes.into_iter().all(|n| n > 1000), "{modes:?}");
}

/// An RTT that falls at a high price and rises at a low one raises ξ each time; it stops at 2⁶¹, and in the opposite case
/// at −2⁶¹.
#[test]
fn repeated_compensation_does_not_overflow() {
    for (falls, rises, end) in [(CODE_MAX, 1, 1_i64 << 61), (1, CODE_MAX, -(1_i64 << 61))] {
        let params = Params { compensate: true, dt_min: Duration::ZERO, alpha: 1.57, ..Params::default() };
        let mut fixed = Source::new(&params, &connection());
        for _ in 0..100 {
            for (rtt, code) in [(1000, falls), (1, falls), (1, rises), (1000, rises)] {
                waterfill_maxnet_ack(&fixed.params, &mut fixed.state, 5, rtt, code);
                assert!(fixed.state.xi.unsigned_abs() <= 1 << 61, "{}", fixed.state.xi);
            }
        }
        assert!(fixed.state.xi.abs_diff(end) < 1 << 60, "{}", fixed.state.xi);
        assert!(fixed.state.rate <= X_MAX && fixed.state.rate > 0);
    }
}

/// A grant within 1 bit/s of the price's rate ends MaxStart.
#[test]
fn maxstart_ends_at_the_slowest_rates() {
    let params = Params::default();
    let mut fixed = Source::new(&params, &connection());
    let rtt = Duration::from_millis(1000);
    let code = |bps: f64| quantise((1e15_f64 / bps).ln());
    fixed.on_ack(&Ack::new(at(1), Echo { echo: Field::StartRate(code(32.0)) }, rtt));
    let price = quantise(demand_inverse(Rate::from_bps(60.0), params.x_max, 0.4));
    for step in 0..60 {
        fixed.on_ack(&Ack::new(at(2 + step * 62_500), Echo { echo: Field::Price(price) }, rtt));
    }
    assert_eq!(fixed.state.mode, 2);
    near(fixed.state.rate as f64, 60.0, 1.0, "x, cut");
    assert_eq!(fixed.state.window, 1500, "a packet");
    assert_eq!(fixed.limit().pacing, Some(Rate::from_bps(12_000.0)), "the law asks for a packet per RTT");
}

/// `[tcp-maxnet-2006:eq12]` a new base RTT without an echo: the rate stays and the window follows; uncompensated, the rate is
/// eq. 6a of the old ξ.
#[test]
fn a_new_base_rtt_without_an_echo() {
    let price = quantise(demand_inverse(Rate::from_bps(9e8), Rate::from_bps(1e15), 0.4));
    for compensate in [true, false] {
        let params = Params { compensate, ..Params::default() };
        let mut fixed = Source::new(&params, &connection());
        waterfill_maxnet_base_rtt(&fixed.params, &mut fixed.state, 30_000);
        assert_eq!((fixed.state.rate, fixed.state.window), (0, 15_000), "no answer yet");
        // During MaxStart its rate stays: before the first price, and after it unless the price's rate is lower.
        let grant = Field::StartRate(quantise((1e15_f64 / 1e8).ln()));
        let mut rising = Source::new(&params, &connection());
        for (field, rtt) in
            [(grant, 30_000), (Field::Price(price), 27_000)].into_iter().take(1 + usize::from(compensate))
        {
            rising.on_ack(&Ack::new(at(30_000), Echo { echo: field }, micros(rtt)));
            waterfill_maxnet_base_rtt(&rising.params, &mut rising.state, rtt as u32 - 1000);
            near(rising.state.rate as f64, 1e8, 1e8 * (EXP + 2e-6) + 1.0, "MaxStart's");
            near(rising.state.window as f64, 1e8 * (rtt as f64 - 1000.0) / 8e6, 3.0, "its window");
            assert_eq!(rising.state.mode, 1);
        }
        fixed.on_ack(&Ack::new(at(30_000), Echo { echo: Field::Price(price) }, Duration::from_millis(29)));
        let xi = value(fixed.state.xi);
        waterfill_maxnet_base_rtt(&fixed.params, &mut fixed.state, 28_000);
        let gain = |ms: f64| 0.66e3 / ms;
        let expected = if compensate {
            demand(real(price), params.x_max, 0.4)
        } else {
            rate(params.x_max, xi, real(price), gain(28.0))
        };
        near(fixed.state.rate as f64, expected.as_bps(), expected.as_bps() * (EXP + 4.0 * UNIT) + 1.0, "x");
        let bytes = (Rate::from_bps(fixed.state.rate as f64) * Duration::from_millis(28)).as_bytes();
        near(fixed.state.window as f64, bytes.max(1500.0), 1.125, "W");
        let before = fixed.state.window;
        waterfill_maxnet_base_rtt(&fixed.params, &mut fixed.state, 0);
        assert_eq!((fixed.state.window, fixed.state.base_rtt), (before, 28_000), "0 is not known");
    }
}

// ---------------------------------------------------------------------------------- all together

/// Any parameters that pass the check, and any calls, even with fields and times that no law gives: every number stays in
/// its range, and a later price still changes the window.
#[test]
fn no_calls_leave_the_ranges() {
    let mut random = numbers(11);
    for _ in 0..2000 {
        let dt_p = micros(spread(&mut random, 1.0, 1e6));
        let params = Params {
            arithmetic: HostArithmetic::Kernel,
            x_max: Rate::from_bps(spread(&mut random, 32.0, 1e15) as f64),
            t: micros(spread(&mut random, 1e3, 1e8)),
            alpha: 0.001 + random(1570) as f64 * 1e-3,
            eta: spread(&mut random, 1.0, 65e3) as f64 * 1e-3,
            dt_min: micros(random(2) * spread(&mut random, 1.0, 1e6)),
            mu: 0.01 + random(100) as f64 * 0.0099,
            dt_p,
            t_0: dt_p + micros(spread(&mut random, 1.0, 3.9e9)),
            average: if random(2) == 0 { Average::Exponential } else { Average::Off },
            order: if random(2) == 0 { Order::XiFirst } else { Order::RateFirst },
            promise: random(2) == 0,
            compensate: random(2) == 0,
            load_average: Duration::ZERO,
            ..Params::default()
        };
        params.validate().unwrap();
        let capacity = spread(&mut random, 1.0, 1e16);
        let mut link = Router::new(&params, &view(capacity as f64)).state;
        let mut receiver = Receiver::new(&params);
        let packet = 1.0 + random(9000) as f64;
        let connection = Connection {
            weight: spread(&mut random, 1.0, 1e7) as f64 * 1e-3,
            packet: Volume::from_bytes(packet),
            initial_window: Volume::from_bytes(packet * 10.0),
            claimed_rtt: None,
            seed: 0,
        };
        let mut source = Source::new(&params, &connection);
        let mut now = 0_u64;
        for _ in 0..200 {
            now = match random(50) {
                0 => now.wrapping_sub(random(1 << 30)), // a clock that goes back
                1 => now.wrapping_add(random(1 << 30) << 30),
                _ => now.wrapping_add(spread(&mut random, 1.0, 1e7)),
            };
            let any = random(1 << 24) as u32;
            let bytes = spread(&mut random, 1.0, 1.8e19);
            match random(8) {
                0 => waterfill_maxnet_link_set(&mut link, random(2) * bytes, any),
                1 => waterfill_maxnet_idle(&mut link, bytes, bytes / 3),
                _ => waterfill_maxnet_tick(&mut link, bytes >> random(64), bytes >> random(64)),
            }
            let marked = waterfill_maxnet_mark(&mut link, if random(4) == 0 { any } else { any & FLAG });
            assert!(marked < 1 << 24 && marked & FLAG == any & FLAG);
            let rtt = random(3) as u32 * any;
            waterfill_maxnet_receive(&receiver.params, &mut receiver.state, now, rtt, marked);
            let echoed = waterfill_maxnet_echo(&receiver.state);
            assert!(echoed < 1 << 24);
            let base_rtt = if random(8) == 0 { u32::MAX - any } else { spread(&mut random, 1.0, 3e7) as u32 }
                * (random(9) as u32).min(1);
            if random(5) == 0 {
                waterfill_maxnet_base_rtt(&source.params, &mut source.state, base_rtt);
            }
            let field = if random(3) == 0 { any } else { echoed };
            waterfill_maxnet_ack(&source.params, &mut source.state, now, base_rtt, field);
            let s = source.state;
            assert!(link.price >= link.price_min && link.price <= 1 << 60 && link.promised <= 1 << 58);
            assert!(receiver.state.average < 1 << 63 && receiver.state.rtt <= 1 << 24);
            assert!(s.xi.unsigned_abs() <= (1 << 61) + 1 && s.xi_speed <= 1 << 62 && s.base_rtt <= 1 << 24);
            assert!(
                s.rate <= RATE_MAX_BPS
                    && s.start_rate <= RATE_MAX_BPS + 1
                    && s.window >= packet as u64
                    && s.window < 1 << 59
            );
        }
        let price = 1 + random(u64::from(CODE_MAX)) as u32;
        let later = source.state.updated.saturating_add(1_000_000);
        waterfill_maxnet_ack(&source.params, &mut source.state, later, 1000, price);
        assert!(source.state.has_price == 1 && source.state.price == price && source.state.rate > 0);
    }
}
