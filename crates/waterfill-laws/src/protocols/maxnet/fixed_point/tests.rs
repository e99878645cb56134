//! Comparison of the C code of MaxNet with the law in real numbers. The tests compare each equation over its range, and
//! then router, receiver and source as a whole. Every bound is the quantisation that `kernel/maxnet.h` states,
//! propagated through the equation. Where errors add up, the bound is updated step by step.

use super::*;
use crate::kernel::{KernelLimit as Allowed, Tcp, Value, Words, scaled};
use crate::protocol::{
    Ack, Connection, LinkView, PacketKind, Passing, Received, Receiver as _, Router as _, Source as _,
};
use crate::protocols::maxnet::router::with_queue;
use crate::protocols::maxnet::source::{
    Start, clipped, compensated, rate, start_rise, window, xi_equilibrium, xi_next,
};
use crate::protocols::maxnet::{
    self, CODE_MAX, Echo, Field as Code, Header, demand, demand_inverse, quantise, start_rate,
};
use crate::registry::{AnyParams, AnyRouter};
use crate::testing::{Signals, connection, header_of, numbers, spread, value_of, value_with};
use crate::units::{Duration, Instant, Rate, Volume};

#[allow(unsafe_code, reason = "pure functions of integers")]
mod equations {
    unsafe extern "C" {
        pub(super) safe fn waterfill_maxnet_time_for(bytes: u64, queue: u64, dt_p: u32, t_0: u32, capacity: u64)
        -> u64;
        pub(super) safe fn waterfill_maxnet_xi_rest(code: u32, alpha: u32, base_rtt: u32, t: u32) -> i64;
        pub(super) safe fn waterfill_maxnet_xi_step(
            alpha: u32,
            eta: u32,
            t: u32,
            xi: i64,
            code: u32,
            dt: u64,
            base_rtt: u32,
        ) -> i64;
        pub(super) safe fn waterfill_maxnet_compensated(
            xi: i64,
            code: u32,
            alpha: u32,
            rtt_new: u32,
            rtt_old: u32,
        ) -> i64;
        pub(super) safe fn waterfill_maxnet_rate(scale: u64, xi: i64, code: u32, alpha: u32, base_rtt: u32) -> u64;
        pub(super) safe fn waterfill_maxnet_window(rate: u64, base_rtt: u32) -> u64;
        pub(super) safe fn waterfill_maxnet_start_rise(delta: u64, dt: u64, base_rtt: u32) -> u64;
        pub(super) safe fn waterfill_maxnet_host_tau(rate: u64, tau: u32, packet: u32, base_rtt: u32) -> u32;
    }
}
use equations::*;

const X_MAX: u64 = 1_000_000_000_000_000;
/// Maximum rate of the C code, in bit/s (`MAXNET_RATE_MAX_BPS`).
const RATE_MAX_BPS: u64 = 1 << 57;
/// Unit of prices and ξ in the C code.
const UNIT: f64 = 1.0 / MEMORY_SCALE;
/// Largest relative error of the exponential (`kernel/fixed.h`).
const EXP: f64 = 1.1e-6;
/// Relative error of a few operations in doubles.
const DOUBLE: f64 = 1e-14;
const FLAG: u32 = 1 << 23;

/// Returns the value of a number in the memory scale.
fn value(raw: i64) -> f64 {
    raw as f64 * UNIT
}

fn near(a: f64, b: f64, bound: f64, what: &str) {
    assert!((a - b).abs() <= bound, "{what}: {a} is not {b} within {bound}");
}

/// Draws a base RTT from 1 µs to 16.8 s and any price code.
fn path(random: &mut impl FnMut(u64) -> u64) -> (u32, u32) {
    (spread(random, 1.0, f64::from(1 << 24)) as u32, 1 + random(u64::from(CODE_MAX)) as u32)
}

/// Draws α, η and T from their ranges.
fn gains(random: &mut impl FnMut(u64) -> u64) -> [u32; 3] {
    [1 + random(1571) as u32, spread(random, 1.0, 65_000.0) as u32, spread(random, 1.0, 1e5) as u32]
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

fn kind_of(code: Code) -> PacketKind {
    if matches!(code, Code::StartRate(_)) { PacketKind::Syn } else { PacketKind::Data }
}

/// Returns the field of a packet after the router in real numbers has written to it. Only a SYN asks for a start rate.
fn mark(router: &mut maxnet::Router, price: Code) -> Code {
    let (mut header, now, volume, kind) = (Header::from(price), Instant::ZERO, Volume::ZERO, kind_of(price));
    router.on_arrival(&view(1e9), &mut Passing { now, volume, packets: 0.0, kind, header: Some(&mut header) });
    header.price
}

// The law in kernel arithmetic.

fn field_of(value: &Value) -> u32 {
    u32::from_be_bytes([0, value[0], value[1], value[2]])
}

fn fixed_router(params: &Params, link: &LinkView) -> AnyRouter {
    AnyParams::MaxNet(Params { arithmetic: Arithmetic::Kernel, ..params.clone() }).router(link)
}

fn price_of(router: &AnyRouter) -> f64 {
    Signals::of(|probe| router.observe(probe)).get("price")
}

fn arrive(router: &mut AnyRouter, volume: Volume) {
    let (now, kind) = (Instant::ZERO, PacketKind::Other);
    router.on_arrival(&view(1e9), &mut Passing { now, volume, packets: 1.0, kind, header: None });
}

fn mark_any(router: &mut AnyRouter, price: Code) -> Code {
    let (mut header, now, volume) = (header_of::<MaxNet>(value_with(price.bits())), Instant::ZERO, Volume::ZERO);
    let kind = kind_of(price);
    router.on_arrival(&view(1e9), &mut Passing { now, volume, packets: 0.0, kind, header: Some(&mut header) });
    Code::from_bits(field_of(&value_of(&header)))
}

/// Creates the C state and the C parameters of a link.
fn link_of(params: &Params, capacity: u64) -> (Words, Words) {
    let law = MaxNet::law();
    let (mut link, words) = (law.link(), law.params(&MaxNet::numbers(params, 1.0)));
    law.link_set(&mut link, &words, capacity, scaled(params.mu, 1e6));
    (link, words)
}

fn tick(link: &mut Words, bytes: u64, queue: u64) {
    let law = MaxNet::law();
    let mut sums = law.sums();
    sums.set(0, bytes);
    law.tick(link, &sums, queue);
}

/// Lets the C router write a packet's field, and returns the field.
fn mark_link(link: &mut Words, field: u32, syn: bool) -> u32 {
    let law = MaxNet::law();
    let (mut value, syn) = (value_with(field), u32::from(syn));
    law.mark(link, &mut law.cpu(), &kernel::Packet { bytes: 0, segments: 1, syn }, &mut value);
    field_of(&value)
}

/// Source as the C code stores it.
struct Fixed {
    params: Words,
    state: Words,
    tcp: Tcp,
}

impl Fixed {
    fn new(params: &Params, connection: &Connection) -> Self {
        let law = MaxNet::law();
        let packet = connection.packet.as_bytes() as u32;
        let (params, mut state) = (law.params(&MaxNet::numbers(params, connection.weight)), law.source());
        law.source_init(&params, &mut state, packet, connection.initial_window.as_bytes() as u64);
        Self { params, state, tcp: Tcp { packet, payload: packet, ..Tcp::default() } }
    }
    fn ack(&mut self, now_us: u64, base_rtt_us: u64, field: Option<u32>) {
        self.tcp = Tcp {
            now_us,
            base_rtt_us: base_rtt_us as u32,
            srtt_us: (base_rtt_us as u32).saturating_mul(8),
            ..self.tcp
        };
        MaxNet::law().ack(&self.params, &mut self.state, &self.tcp, field.map(value_with).as_ref());
    }
    fn limit(&mut self) -> Allowed {
        MaxNet::law().limit(&mut self.state, &self.tcp)
    }
    fn price(&self) -> u32 {
        MaxNet::law().source_signals(&self.state)[0] as u32
    }
    fn xi(&self) -> i64 {
        MaxNet::law().source_signals(&self.state)[1] as i64
    }
    fn tau(&self) -> u32 {
        MaxNet::law().source_signals(&self.state)[3] as u32
    }
}

/// Returns a connection with packets of one byte. The host's additions for slow rates then begin below 40 bit/s.
const fn bytewise() -> Connection {
    let (packet, initial_window) = (Volume::from_bytes(1.0), Volume::from_bytes(15_000.0));
    Connection {
        weight: 1.0,
        packet,
        initial_window,
        claimed_rtt: None,
        path: crate::protocol::PathView::UNKNOWN,
        validation: crate::protocol::Validation::Off,
        seed: 0,
    }
}

// ---------------------------------------------------------------------------------- equations

/// `[maxnet-2007:fig3]` The time (y_dt + Q·dt_p/T₀)/C agrees with the law; the C code truncates up to 2⁻¹⁶ bytes and
/// 2⁻³⁴ s.
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

/// `[maxnet-2007:eq10]` A hand-computed step of ξ agrees with the C code (τ = 50 ms, q = 5.6, ξ = 110, dt = 1 ms).
#[test]
fn eq10_worked_example() {
    let code = quantise(5.6);
    let xi = waterfill_maxnet_xi_step(660, 60, 400, 110 << 34, code, 1000, 50_000);
    // 15.84 · 10⁻³ · (4.28 q − 44), for the code's q.
    near(value(xi), 110.0 + 0.015_84 * (5.6 * real(code) - 44.0 - 1.32 * real(code)), 2.0 * UNIT, "ξ");
}

/// `[maxnet-2007:VI, tcp-maxnet-2006:eq12, maxnet-2007:eq6a, maxnet-2007:eq10]` The equilibrium and the compensation of
/// ξ, the rate and the window agree with the law over all codes and RTTs.
#[test]
fn xi_rest_compensation_rate_and_window_over_the_range() {
    let mut random = numbers(2);
    for _ in 0..50_000 {
        let (base_rtt, code) = path(&mut random);
        let (other, _) = path(&mut random);
        let [alpha, _, t] = gains(&mut random);
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

/// `[maxnet-2007:eq10]` A step of ξ, stopped at ξ*, agrees with eq. 10 in real numbers. The bound adds the errors of
/// the fixed-point speed (2⁻⁶² per µs), of ξ*, of the bits below 2⁻³⁴, and of double precision.
#[test]
fn eq10_over_the_range() {
    let mut random = numbers(3);
    for _ in 0..50_000 {
        let (base_rtt, code) = path(&mut random);
        let [alpha, eta, t_ms] = gains(&mut random);
        let dt = spread(&mut random, 1.0, 1e9);
        let (q, t) = (real(code), f64::from(t_ms) * 1e-3);
        let gain = f64::from(alpha) * 1e-3 / seconds(base_rtt);
        let zero = f64::from(eta) * 1e-3 / seconds(base_rtt);
        let rest = waterfill_maxnet_xi_rest(code, alpha, base_rtt, t_ms);
        let xi = rest + random(1 << 36) as i64 - (1 << 35); // up to 2 away: a factor of 7.4 in the rate
        let next = waterfill_maxnet_xi_step(alpha, eta, t_ms, xi, code, dt, base_rtt);
        let law = clipped(value(xi), xi_next(value(xi), q, dt as f64 * 1e-6, gain, zero, t), value(rest));
        let gap = value(rest - xi).abs();
        let speed_off = dt as f64 / (1u64 << 62) as f64;
        // In doubles eq. 10 is a small difference of large terms.
        let step = (gain * zero * dt as f64 * 1e-6).min(1.0 / t);
        let doubles = step * (q * (t * gain + 1.0) + t * value(xi).abs()) + value(xi).abs();
        near(value(next), law, 2.0 * UNIT + gap * speed_off + doubles * DOUBLE, "ξ");
    }
}

/// `[maxnet-2007:IV.B]` The rise Δ·dt/(2τ) of MaxStart is rounded up to whole bit/s and is at most Δ.
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

/// `[maxnet-2007:eq3, eq8, IV.B]` One second of random load and queue gives the same prices and start rates in both
/// arithmetics, on links of every speed.
#[test]
fn the_fixed_point_router_follows_the_law() {
    let mut random = numbers(5);
    for decade in 0..30 {
        let promise = decade % 2 == 1;
        let capacity = (1e5 * 10f64.powf(f64::from(decade) / 3.0)).round();
        let params = Params { promise, ..Params::default() };
        let mut link = view(capacity);
        let (mut law, mut fixed) = (maxnet::Router::new(&params, &link), fixed_router(&params, &link));
        let p_min = demand_inverse(link.capacity, params.x_max, 0.4);
        let start = price_of(&fixed) - law.price;
        // T times one code of the logarithm, one bit/s of truncation, and the error of the exponential.
        near(law.price + start, p_min, 0.4 * (1.0 / 262_144.0 + 1.0 / capacity + EXP), "p_min");
        for tick in 1..=1000_u32 {
            // 0 to 2 C, in whole bytes; up to 10 ms of queue.
            let bytes = Volume::from_bytes((capacity / 8e3 * random(2000) as f64 / 1e3).round());
            link.queue = Volume::from_bytes((capacity / 8e3 * random(10) as f64).round());
            law.arrived = bytes;
            arrive(&mut fixed, bytes);
            law.on_timer(&link, Instant::ZERO);
            fixed.on_timer(&link, Instant::ZERO);
            // Per interval: a unit truncated from y/C, half a unit of μ·dt_p, and 2⁻¹⁶ bytes of the queue's part.
            let bound = f64::from(tick) * (1.5 * UNIT + 8.0 / 65_536.0 / capacity + law.price * DOUBLE);
            let off = price_of(&fixed) - law.price;
            near(off, start, bound + start.abs(), "p"); // either may have stood at its own p_min
            if let (Code::Price(a), Code::Price(b)) =
                (mark_any(&mut fixed, Code::Price(0)), mark(&mut law, Code::Price(0)))
            {
                let codes = (bound + 2.0 * start.abs()) * 262_144.0 + 1.0;
                assert!(f64::from(a.abs_diff(b)) <= codes && a > 0);
            }
            if random(50) > 0 {
                continue;
            }
            let spare =
                |f| if let Code::StartRate(code) = f { start_rate(real(code), params.x_max).as_bps() } else { 0.0 };
            let got = spare(mark_any(&mut fixed, Code::StartRate(0)));
            let expected = spare(mark(&mut law, Code::StartRate(0)));
            // Two codes of 2⁻¹⁸ and two errors of the exponential; whole bit/s of share, y and promises, whose errors add
            // up. Without spare capacity both give the last code.
            let bound = expected * (8e-6 + 2.0 * EXP) + 4.0 + if promise { capacity * 4e-5 } else { capacity * DOUBLE };
            near(got, expected, bound, "start rate");
        }
    }
}

/// At half the capacity, p starts from the new p_min = T·ln(x_max/C), and 125 kB take 2 ms.
#[test]
fn another_capacity_by_hand() {
    let params = Params::default();
    let (mut law, mut fixed) = (maxnet::Router::new(&params, &view(1e9)), fixed_router(&params, &view(1e9)));
    law.arrived = Volume::from_bytes(125e3);
    arrive(&mut fixed, Volume::from_bytes(125e3));
    law.on_timer(&view(5e8), Instant::ZERO);
    fixed.on_timer(&view(5e8), Instant::ZERO);
    let expected = 0.4 * 2e6_f64.ln() + 2e-3 - 0.9e-3;
    assert!((law.price - expected).abs() < 1e-12, "{}", law.price);
    let price = price_of(&fixed);
    assert!((price - expected).abs() < 0.4 / 262_144.0, "{price}");
}

/// One price step by hand agrees with the C code. 125 kB take 1 ms at 1 Gbit/s, 130 kB of queue count as 1 kB, and
/// p_min is 0.4·ln 10⁶.
#[test]
fn fig3_one_interval() {
    let mut router = fixed_router(&Params::default(), &view(1e9));
    let p_min = price_of(&router);
    assert_eq!(mark_any(&mut router, Code::Price(0)), Code::Price(quantise(0.4 * 1e6_f64.ln())));
    arrive(&mut router, Volume::from_bytes(125e3));
    router.on_timer(&LinkView { queue: Volume::from_bytes(130e3), ..view(1e9) }, Instant::ZERO);
    // 1.008 ms less 0.9 ms.
    near(price_of(&router) - p_min, 0.000_108, 2.0 * UNIT, "p");
    assert_eq!(mark_any(&mut router, Code::StartRate(0)), Code::StartRate(CODE_MAX), "1 Gbit/s is more than 0.925");
}

/// Without arrivals a price falls by μ·dt_p, rounded to nearest, over the whole range of μ and dt_p.
#[test]
fn target_times_over_the_range() {
    let mut random = numbers(13);
    for _ in 0..5000 {
        let (mu, dt_p) = (1 + random(1_000_000), spread(&mut random, 1.0, 1e6));
        let params = Params { dt_p: micros(dt_p), t_0: micros(1 << 31), mu: mu as f64 * 1e-6, ..Params::default() };
        let (mut link, _) = link_of(&params, 1_000_000);
        MaxNet::law().link_restore(&mut link, u64::MAX); // p_max, which is 4 s above p_min
        let before = MaxNet::law().link_signals(&link)[0];
        tick(&mut link, 0, 0);
        let fell = before - MaxNet::law().link_signals(&link)[0];
        near(fell as f64, mu as f64 * dt_p as f64 * 1e-12 * MEMORY_SCALE, 0.501, "μ·dt_p");
    }
}

/// A call for n idle intervals has bit for bit the result of n calls for one interval. Prices rise, fall, stay constant
/// and reach both limits, with and without promises.
#[test]
fn idle_is_as_many_ticks_of_nothing() {
    let mut random = numbers(6);
    for case in 0..3000_u64 {
        let promise = random(2) == 0;
        let t_0 = Duration::from_micros(1001 + spread(&mut random, 1.0, 1e6));
        let capacity = spread(&mut random, 32.0, 1e12);
        let params = Params { promise, t_0, mu: 0.01 + random(99) as f64 * 0.01, ..Params::default() };
        let (mut at_once, _) = link_of(&params, capacity);
        for _ in 0..random(5) {
            tick(&mut at_once, spread(&mut random, 1.0, capacity as f64), 0);
        }
        if case % 10 == 0 {
            MaxNet::law().link_restore(&mut at_once, (1 << 60) - random(1 << 30));
        }
        mark_link(&mut at_once, FLAG, true);
        let mut one_by_one = at_once.clone();
        // From no queue to one that counts for more than μ.
        let queue = random(3) * spread(&mut random, 1.0, capacity as f64 + 2.0);
        let n = 1 + random(300);
        MaxNet::law().idle(&mut at_once, n, queue);
        for _ in 0..n {
            tick(&mut one_by_one, 0, queue);
        }
        assert_eq!(at_once, one_by_one, "{n} intervals with {queue} bytes");
    }
}

/// A new capacity or target keeps the price, unless the new p_min is higher.
#[test]
fn a_link_changes_its_rate_without_losing_its_price() {
    let law = MaxNet::law();
    let (mut link, words) = link_of(&Params::default(), 100_000_000);
    tick(&mut link, 1 << 20, 0);
    let price = law.link_signals(&link)[0];
    law.link_set(&mut link, &words, 1_000_000_000, 500_000);
    let (mut fresh, _) = link_of(&Params { mu: 0.5, ..Params::default() }, 1_000_000_000);
    assert_eq!(law.link_signals(&link)[..2], [price, law.link_signals(&fresh)[1]]);
    law.link_restore(&mut fresh, price);
    for link in [&mut link, &mut fresh] {
        tick(link, 0, 0);
    }
    assert_eq!(law.link_signals(&link)[0], law.link_signals(&fresh)[0], "the same target");
    law.link_set(&mut link, &words, 1_000_000, 500_000);
    let [price, price_min, _, code] = law.link_signals(&link);
    assert_eq!(price, price_min, "a thousandth of the rate has a higher p_min");
    assert_eq!(mark_link(&mut link, 0, false), code as u32);
}

/// `[maxnet-2007:V]` p_max = 0.4·ln(10¹⁵/32) bounds the price of an overloaded link, a restored one, and one whose
/// parameters change.
#[test]
fn p_max_bounds_every_price() {
    let law = MaxNet::law();
    let price = |link: &Words| law.link_signals(link)[0];
    let p_max = (0.4 * (1e15_f64 / 32.0).ln() * MEMORY_SCALE) as u64;
    let (mut link, _) = link_of(&Params::default(), 100_000_000);
    for _ in 0..20_000 {
        tick(&mut link, 25_000, 0); // twice the capacity
    }
    let highest = price(&link);
    assert!(highest.abs_diff(p_max) < 1 << 16, "{highest} and {p_max}"); // one code of ln, times 0.4
    tick(&mut link, 25_000, 0);
    assert_eq!(price(&link), highest);
    for saved in [highest + 1, 1 << 59, u64::MAX] {
        let (mut fresh, _) = link_of(&Params::default(), 100_000_000);
        law.link_restore(&mut fresh, saved);
        assert_eq!(price(&fresh), highest);
    }
    let fast = Params { x_min: Rate::from_bps(1e6), ..Params::default() };
    let restarted = Params { dt_p: Duration::from_millis(2), ..fast.clone() };
    let lower = (0.4 * 1e9_f64.ln() * MEMORY_SCALE) as u64;
    for params in [&fast, &restarted] {
        let mut link = link.clone();
        law.link_set(&mut link, &law.params(&MaxNet::numbers(params, 1.0)), 100_000_000, 900_000);
        assert!(price(&link).abs_diff(lower) < 1 << 16, "{}", price(&link));
    }
    assert_eq!(mark_link(&mut link, 0, false), quantise(highest as f64 / MEMORY_SCALE));
}

/// A source applies prices up to p_max, from which ξ follows.
#[test]
fn a_source_applies_prices_up_to_p_max() {
    let params = Params { x_min: Rate::from_bps(1e6), ..Params::default() };
    let after = |code| {
        let mut source = Fixed::new(&params, &connection());
        for (now, code) in [(160_000, quantise(5.6)), (170_000, code)] {
            source.ack(now, 160_000, Some(code));
        }
        MaxNet::law().source_signals(&source.state)
    };
    let p_max = quantise(0.4 * 1e9_f64.ln());
    let [price, xi, ..] = after(CODE_MAX);
    assert!(price.abs_diff(u64::from(p_max)) <= 1, "{price} and {p_max}");
    assert_eq!(after(price as u32), after(CODE_MAX));
    assert_ne!(after(quantise(8.2))[1], xi);
}

/// On a host, a source that is granted less than a packet per RTT sends its first window per RTT, up to the price's rate
/// and to x_max. MaxStart ends where this reaches the price's rate. The bare law sends what it was granted.
#[test]
fn a_host_without_a_grant_sends_its_first_window_per_rtt() {
    let first = 15e3 * 8.0 / 0.16;
    let host = Params::default();
    let small = Params { x_max: Rate::from_bps(0.1e6), ..Params::default() };
    let bare = Params { arithmetic: Arithmetic::Kernel, ..Params::default() };
    let nothing = FLAG | CODE_MAX;
    let granted = |bps: f64| FLAG | ((1e15 / bps).ln() * f64::from(1 << 18)) as u32;
    for (params, grant, price_rate, expected, rising) in [
        (&host, nothing, 1e9, [first, first], true),
        (&host, nothing, first / 2.0, [first, first / 2.0], false),
        (&host, granted(60e3), 1e9, [first, first], true),
        (&host, granted(80e3), 1e9, [80e3, 80e3], true),
        (&small, nothing, 0.1e6, [0.1e6, 0.1e6], false),
        (&bare, nothing, 1e9, [12.0, 12.0], true),
    ] {
        let mut source = Fixed::new(params, &connection());
        let price = quantise(0.4 * (params.x_max.as_bps() / price_rate).ln()).max(1);
        for ((now, field), expected) in [(160_000, grant), (320_000, price)].into_iter().zip(expected) {
            source.ack(now, 160_000, Some(field));
            near(source.limit().rate as f64, expected, 0.03 * expected, "rate");
        }
        assert_eq!(source.limit().steady == 0, rising, "{grant} {price_rate}");
    }
}

/// While MaxStart rises, τ is the path's RTT even at less than a packet per RTT.
#[test]
fn a_rising_host_keeps_the_path_s_rtt() {
    let mut source = Fixed::new(&Params::default(), &connection());
    source.ack(500_000, 500_000, Some(FLAG | CODE_MAX));
    MaxNet::law().reduce(&mut source.state, 8);
    source.ack(510_000, 10_000, None);
    assert_eq!(source.tau(), 10_000);
}

/// A data packet receives the higher price, even if it asks for a start rate. With promises, the first SYN of an
/// interval reserves the spare capacity.
#[test]
fn data_get_prices_and_syns_start_rates() {
    let mut random = numbers(7);
    let (mut link, _) = link_of(&Params { promise: true, ..Params::default() }, 1_000_000_000);
    for _ in 0..10_000 {
        tick(&mut link, random(100_000), 0);
        let (field, code) = (random(1 << 24) as u32, MaxNet::law().link_signals(&link)[3] as u32);
        assert_eq!(mark_link(&mut link, field, false), field.max(code));
        assert_eq!(mark_link(&mut link, field & !FLAG, true), (field & !FLAG).max(code), "a SYN that asks for a price");
        let [first, second] = [(); 2].map(|()| mark_link(&mut link, FLAG, true));
        assert!(first & FLAG == FLAG && second == FLAG | CODE_MAX && first <= second);
    }
}

// ---------------------------------------------------------------------------------- receiver

/// `[maxnet-2007:VI]` The real and the fixed-point receiver have the same average over 10⁵ packets. Prices drift and
/// jump, start rates and gaps occur, and RTT samples shrink. The errors of 2⁻³² of each difference and of 2⁻⁵⁸ s add
/// up, and decay with the average.
#[test]
fn the_fixed_point_receiver_follows_the_law() {
    let mut random = numbers(8);
    for rtt_us in [1000_u64, 5000, 28_000, 160_000, 8_000_000] {
        let params = Params::default();
        let (c, words) = (MaxNet::law(), MaxNet::law().params(&MaxNet::numbers(&params, 1.0)));
        let (mut law, mut fixed) = (maxnet::Receiver::new(&params), c.receiver());
        let (mut now, mut price, mut bound) = (0, 1_500_000_u64, 0.0_f64);
        let mut samples = 0;
        for step in 0..20_000 {
            now += random(rtt_us / 10 + 3);
            price = if random(1000) == 0 { 1 + random(8_000_000) } else { (price + random(101)).max(51) - 50 };
            let field = match random(500) {
                0 => Code::StartRate(random(1 << 23) as u32),
                1 => Code::Price(0),
                _ => Code::Price(price as u32),
            };
            let sample = (step % 100 == 7 && samples < 50).then(|| {
                samples += 1;
                // Decreasing samples, and every second one larger than the one before.
                micros(rtt_us + rtt_us / 2 * (50 - samples) / 50 + samples % 2 * (rtt_us / 3))
            });
            let before = (law.average, law.last);
            let received = Received { now: at(now), kind: PacketKind::Data, header: Header::from(field), rtt: sample };
            law.on_data(&received);
            let sample_us = sample.map_or(0, |rtt| (rtt.as_ps() / 1_000_000) as u32);
            c.receive(&words, &mut fixed, now, sample_us, &value_with(field.bits()), 1);
            if let ((Some(average), last), Code::Price(code), Some(rtt)) = (before, field, law.rtt) {
                let weight = (at(now).since(last) / rtt).min(1.0);
                let difference = (real(code) - average).abs();
                bound = bound * (1.0 - weight) + difference / 4_294_967_296.0 + (0.5f64).powi(58) + 32.0 * DOUBLE;
            }
            if law.average.is_none() {
                bound = 0.0;
            }
            let average = c.receiver_signal(&fixed);
            let got = average as f64 / (1u64 << 58) as f64;
            assert_eq!(law.average.is_some(), average > 0);
            near(got, law.average.unwrap_or(got), bound, "average");
            let (a, b) = (field_of(&c.echo(&mut fixed)), law.echo(at(now)).echo.bits());
            assert_eq!(a & FLAG, b & FLAG);
            assert!(f64::from(a.abs_diff(b)) <= (bound * 262_144.0).ceil(), "{a} and {b}");
        }
    }
}

/// `[maxnet-2007:VI]` Code 1003 a quarter of an RTT after code 1000 gives an average of 1000.75, rounded to 1001.
/// Without averaging, and before the first RTT sample, the result is 1003.
#[test]
fn vi_average_to_the_nearest_code() {
    let law = MaxNet::law();
    for (average, rtt, expected) in
        [(Average::Exponential, 100_000, 1001), (Average::Off, 100_000, 1003), (Average::Exponential, 0, 1003)]
    {
        let params = law.params(&MaxNet::numbers(&Params { average, ..Params::default() }, 1.0));
        let mut receiver = law.receiver();
        let mut echo_after = |now, rtt, field| {
            law.receive(&params, &mut receiver, now, rtt, &value_with(field), 1);
            field_of(&law.echo(&mut receiver))
        };
        assert_eq!(echo_after(0, rtt, 1000), 1000);
        assert_eq!(echo_after(25_000, 0, 1003), expected);
        assert_eq!(echo_after(26_000, 0, FLAG | 7), FLAG | 7);
    }
}

// ---------------------------------------------------------------------------------- source

/// After MaxStart, the real and the fixed-point source compute the same ξ, rates and windows in 10⁵ acknowledgements,
/// also when the RTT changes. The bound of ξ is the sum of the errors that each step adds, with their decay.
#[test]
fn the_fixed_point_source_follows_the_law() {
    let mut random = numbers(9);
    for (case, rtt_us) in [1000_u64, 2000, 5000, 28_000, 56_000, 150_000, 1_000_000, 16_000_000].iter().enumerate() {
        let compensate = case % 2 == 0;
        let order = if case % 3 == 0 { Order::RateFirst } else { Order::XiFirst };
        let params = Params { order, compensate, ..Params::default() };
        let (mut law, mut fixed) = (maxnet::Source::new(&params, &bytewise()), Fixed::new(&params, &bytewise()));
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
            let echo = Echo { echo: Code::Price(price as u32) };
            let ack = Ack::new(at(now), echo, micros(rtt));
            let (before, priced) = (law.updated, law.updated.is_some());
            let xi_before = law.xi;
            law.on_ack(&ack);
            fixed.ack(now, rtt, Some(price as u32));
            assert_eq!(u64::from(fixed.tau()), rtt);
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
            near(value(fixed.xi()), law.xi, bound + UNIT, "ξ");
            let expected = law.price_rate.as_bps();
            let relative = EXP + bound + 2.0 * UNIT + size * DOUBLE;
            let allowed = fixed.limit();
            near(allowed.rate as f64, expected, expected * relative + 1.0, "x");
            let b = law.limit().window.expect("a price has come").as_bytes();
            near(allowed.window as f64, b, b * relative + tau / 8.0 + 1.125, "W");
        }
    }
}

/// During MaxStart, the real and the fixed-point source have the same rate, and MaxStart ends in both. The bound is 40
/// bit/s, plus four times the error of the exponential and the unit of prices.
#[test]
fn the_fixed_point_maxstart_follows_the_law() {
    let mut random = numbers(10);
    for rtt_us in [1000_u64, 5000, 28_000, 160_000, 4_000_000] {
        let params = Params::default();
        let (mut law, mut fixed) = (maxnet::Source::new(&params, &bytewise()), Fixed::new(&params, &bytewise()));
        let price = Code::Price(quantise(demand_inverse(Rate::from_bps(9e8), params.x_max, 0.4)));
        let granted = Code::StartRate(quantise((1e15_f64 / 1e8).ln()));
        let mut now = rtt_us;
        for step in 0..600 {
            let echo = Echo { echo: if step == 0 { granted } else { price } };
            let ack = Ack::new(at(now), echo, micros(rtt_us));
            law.on_ack(&ack);
            fixed.ack(now, rtt_us, Some(echo.echo.bits()));
            // The price is constant and ξ is at rest, so the price's rate is too. One version may end MaxStart one
            // acknowledgement later, at a rate that close to the price's.
            let (a, b) = (fixed.limit().rate as f64, law.limit().pacing.unwrap().as_bps());
            near(a, b, b * (4.0 * EXP + 8.0 * UNIT) + 40.0, "rate");
            now += 1 + random(1 + rtt_us / 80);
        }
        assert_eq!((law.start, fixed.limit().steady), (Start::Over, 1), "MaxStart ended at {rtt_us} µs");
    }
}

/// Fields in any order, at times that stand still or go back, give the same states and rates in real and in kernel
/// arithmetic. Prices stay within 1 % of the price of 1 Gbit/s. A larger step would lower the rate below a packet per
/// 200 ms. A host then applies the next price as the first one.
#[test]
fn any_order_of_fields_gives_the_same_states() {
    let mut random = numbers(12);
    let mut modes = [0; 3];
    for case in 0..3000 {
        let dt_min = micros([0, 1, 3000][case % 3]);
        let compensate = case % 2 == 0;
        let params = Params { dt_min, compensate, ..Params::default() };
        let (mut law, mut fixed) = (maxnet::Source::new(&params, &bytewise()), Fixed::new(&params, &bytewise()));
        let (mut now, mut rtt) = (1_000_000, 28_000 + random(3));
        for step in 0..60 {
            now = now + random(4) * random(2000) - random(4) / 3 * random(1500);
            rtt -= u64::from(random(30) == 0);
            let field = match random(if step < 3 { 3 } else { 12 }) {
                0 => Code::Price(0),
                1 if random(10) == 0 => Code::StartRate(0),
                2 => Code::StartRate(4_225_000 + random(600_000) as u32),
                _ => Code::Price(1_448_661 - 2000 + random(4000) as u32),
            };
            let ack = Ack::new(at(now), Echo { echo: field }, micros(rtt));
            law.on_ack(&ack);
            fixed.ack(now, rtt, Some(field.bits()));
            let mode = match law.start {
                Start::Asking => 0,
                Start::Rising { .. } => 1,
                Start::Over => 2,
            };
            modes[mode as usize] += 1;
            let Allowed { rate, window, steady, heard, .. } = fixed.limit();
            assert_eq!((steady == 1, heard == 1), (mode == 2, law.updated.is_some()));
            near(real(fixed.price()), law.price, DOUBLE, "q");
            match law.limit().pacing {
                Some(x) => {
                    // A grant, a rise and a price each add an error of the exponential; 60 rises add 1 bit/s each.
                    let bound = x.as_bps() * (4.0 * EXP + 60.0 * UNIT) + 61.0;
                    near(rate as f64, x.as_bps(), bound, "x");
                    let bound = bound * rtt as f64 / 8e6 + 1.125;
                    near(window as f64, law.window.as_bytes(), bound, "W");
                }
                None => assert_eq!((rate, window), (0, 15_000)),
            }
        }
    }
    assert!(modes.into_iter().all(|n| n > 1000), "{modes:?}");
}

/// Compensation raises ξ to at most 2⁶¹ when the RTT falls, and lowers it to at least −2⁶¹ when the RTT rises.
#[test]
fn compensation_does_not_overflow() {
    for end in [1_i64 << 61, -(1_i64 << 61)] {
        let mut xi = end / 2;
        for _ in 0..100_000 {
            let (new, old) = if end > 0 { (1, 1000) } else { (1000, 1) };
            xi = waterfill_maxnet_compensated(xi, CODE_MAX, 1570, new, old);
        }
        assert_eq!(xi, end);
    }
}

/// A grant within 1 bit/s of the price's rate ends MaxStart.
#[test]
fn maxstart_ends_at_the_slowest_rates() {
    let mut fixed = Fixed::new(&Params::default(), &bytewise());
    fixed.ack(1, 1_000_000, Some(FLAG | quantise((1e15_f64 / 64.0).ln())));
    let price = quantise(demand_inverse(Rate::from_bps(120.0), Rate::from_bps(1e15), 0.4));
    for step in 0..60 {
        fixed.ack(2 + step * 62_500, 1_000_000, Some(price));
    }
    let Allowed { rate, window, steady, .. } = fixed.limit();
    assert_eq!((steady, window), (1, 15), "120 bit/s for a second");
    near(rate as f64, 120.0, 1.0, "x, cut");
}

/// `[tcp-maxnet-2006:eq12]` A new base RTT without an echo keeps the rate, and the window follows. Without
/// compensation, eq. 6a with the old ξ gives the rate.
#[test]
fn a_new_base_rtt_without_an_echo() {
    let price = quantise(demand_inverse(Rate::from_bps(9e8), Rate::from_bps(1e15), 0.4));
    let window_of = |rate: u64, us: f64| rate as f64 * us / 8e6;
    for compensate in [true, false] {
        let params = Params { compensate, ..Params::default() };
        let mut fixed = Fixed::new(&params, &bytewise());
        fixed.ack(1, 30_000, None);
        assert_eq!((fixed.limit().rate, fixed.limit().window), (0, 15_000), "no answer yet");
        // During MaxStart its rate stays: before the first price, and after it unless the price's rate is lower.
        let grant = FLAG | quantise((1e15_f64 / 1e8).ln());
        let mut rising = Fixed::new(&params, &bytewise());
        for (field, rtt) in [(grant, 30_000), (price, 27_000)].into_iter().take(1 + usize::from(compensate)) {
            rising.ack(30_000, rtt, Some(field));
            rising.ack(30_000, rtt - 1000, None);
            let Allowed { rate, window, steady, .. } = rising.limit();
            near(rate as f64, 1e8, 1e8 * (EXP + 2e-6) + 1.0, "MaxStart's");
            near(window as f64, window_of(100_000_000, rtt as f64 - 1000.0), 3.0, "its window");
            assert_eq!(steady, 0);
        }
        fixed.ack(30_000, 29_000, Some(price));
        let xi = value(fixed.xi());
        fixed.ack(30_000, 28_000, None);
        let expected = if compensate {
            demand(real(price), params.x_max, 0.4)
        } else {
            rate(params.x_max, xi, real(price), 0.66e3 / 28.0)
        };
        let before = fixed.limit();
        near(before.rate as f64, expected.as_bps(), expected.as_bps() * (EXP + 4.0 * UNIT) + 1.0, "x");
        near(before.window as f64, window_of(before.rate, 28e3), 1.125, "W");
        fixed.ack(30_000, 0, None);
        assert_eq!((fixed.limit(), fixed.tau()), (before, 28_000), "0 is not known");
    }
}

/// At 600 kbit/s two packets take 40 ms, and tau is 80 ms on a path with an RTT of 20 ms. This tau stays until a pair
/// of packets takes more than tau, or less than a quarter of tau.
#[test]
fn tau_covers_pairs_of_packets_in_steps_of_two() {
    let tau = |rate: u64, before: u32, rtt: u32| waterfill_maxnet_host_tau(rate, before, 1500, rtt);
    assert_eq!(tau(0, 0, 20_000), 20_000, "no rate yet");
    assert_eq!(tau(600_000, 20_000, 20_000), 80_000);
    assert_eq!(tau(310_000, 80_000, 20_000), 80_000, "a pair takes 77 ms");
    assert_eq!(tau(1_190_000, 80_000, 20_000), 80_000, "a pair takes 20.2 ms");
    assert_eq!(tau(2_400_000, 80_000, 20_000), 20_000, "a pair takes 10 ms");
    assert_eq!(tau(290_000, 80_000, 20_000), 165_516, "twice 82.8 ms");
    assert_eq!(tau(1, 80_000, 20_000), 1_000_000, "at most a second");
    assert_eq!(tau(1, 80_000, 2_000_000), 2_000_000, "or the path's RTT");
}

/// After a price step on a path of 4 ms, eq. 6a falls far below D(q). tau is then the time between the rare packets,
/// and the source applies the next price as the first one.
#[test]
fn the_next_price_counts_as_the_first_after_tau_has_grown() {
    let code = |bps| quantise(demand_inverse(Rate::from_bps(bps), Rate::from_bps(1e15), 0.4));
    let mut fixed = Fixed::new(&Params::default(), &connection());
    fixed.ack(1_000_000, 4000, Some(code(1e8)));
    fixed.ack(1_000_250, 4000, Some(code(2e7)));
    assert!(fixed.limit().rate < 1000, "{}", fixed.limit().rate); // x_max e^(xi - alpha q / tau)
    fixed.ack(1_100_000, 4000, Some(code(2e7)));
    near(fixed.limit().rate as f64, 2e7, 200.0, "D(q)");
}

/// A weight scales the rate that a price gives, but not the start rate.
#[test]
fn a_weight_scales_the_prices_rate() {
    let price = quantise(demand_inverse(Rate::from_bps(1e8), Rate::from_bps(1e15), 0.4));
    let rates = [1.0, 3.0].map(|weight| {
        let mut fixed = Fixed::new(&Params::default(), &Connection { weight, ..bytewise() });
        fixed.ack(1, 20_000, Some(FLAG | quantise((1e15_f64 / 1e7).ln())));
        let granted = fixed.limit().rate;
        for n in 1..1000 {
            fixed.ack(1250 * n, 20_000, Some(price));
        }
        (granted, fixed.limit().rate)
    });
    assert_eq!(rates[0].0, rates[1].0);
    near(rates[1].1 as f64, 3.0 * rates[0].1 as f64, 3.0, "three times the rate");
}

// ---------------------------------------------------------------------------------- all together

/// Any valid parameters and any calls keep every number in its range, even with fields and times that no law produces.
/// A later price still changes the window.
#[test]
fn no_calls_leave_the_ranges() {
    let law = MaxNet::law();
    let mut random = numbers(11);
    for _ in 0..2000 {
        let dt_p = micros(spread(&mut random, 1.0, 1e6));
        let params = Params {
            arithmetic: Arithmetic::Kernel,
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
        crate::params::Params::validate(&params).unwrap();
        let (mut link, words) = link_of(&params, spread(&mut random, 1.0, 1e16));
        let whole_ms = (params.t.as_secs() * 1e3).round() / 1e3;
        let p_max = demand_inverse(params.x_min, params.x_max, whole_ms);
        let mut receiver = law.receiver();
        let packet = 1.0 + random(9000) as f64;
        let connection = Connection {
            weight: spread(&mut random, 1.0, 1e7) as f64 * 1e-3,
            packet: Volume::from_bytes(packet),
            initial_window: Volume::from_bytes(packet * 10.0),
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: crate::protocol::Validation::Off,
            seed: 0,
        };
        let mut source = Fixed::new(&params, &connection);
        let (mut now, mut latest) = (0_u64, 0_u64);
        for _ in 0..200 {
            now = match random(50) {
                0 => now.wrapping_sub(random(1 << 30)), // a clock that goes back
                1 => now.wrapping_add(random(1 << 30) << 30),
                _ => now.wrapping_add(spread(&mut random, 1.0, 1e7)),
            };
            latest = latest.max(now);
            let any = random(1 << 24) as u32;
            let bytes = spread(&mut random, 1.0, 1.8e19);
            match random(8) {
                0 => law.link_set(&mut link, &words, random(2) * bytes, any),
                1 => law.idle(&mut link, bytes, bytes / 3),
                _ => tick(&mut link, bytes >> random(64), bytes >> random(64)),
            }
            let field = if random(4) == 0 { any } else { any & FLAG };
            let marked = mark_link(&mut link, field, random(2) == 0);
            assert!(marked < 1 << 24 && marked & FLAG == any & FLAG);
            law.receive(&words, &mut receiver, now, random(3) as u32 * any, &value_with(marked), 1);
            let echoed = field_of(&law.echo(&mut receiver));
            assert!(echoed < 1 << 24);
            let base_rtt = if random(8) == 0 { u32::MAX - any } else { spread(&mut random, 1.0, 3e7) as u32 }
                * (random(9) as u32).min(1);
            if random(5) == 0 {
                source.ack(now, u64::from(base_rtt), None);
            }
            let field = if random(3) == 0 { any } else { echoed };
            source.ack(now, u64::from(base_rtt), Some(field));
            let [price, price_min, ..] = law.link_signals(&link);
            assert!(price >= price_min && price as f64 <= p_max * MEMORY_SCALE + 1e8);
            assert!(law.receiver_signal(&receiver) < 1 << 63);
            let [_, xi, start_rate, tau] = law.source_signals(&source.state);
            assert!((xi as i64).unsigned_abs() <= (1 << 61) + 1, "{}", xi as i64);
            assert!(tau <= 1 << 24, "{tau}");
            // The last rise may pass the price's rate, which then applies.
            assert!(start_rate <= 2 * RATE_MAX_BPS, "{start_rate}");
            let Allowed { rate, window, .. } = source.limit();
            assert!(rate <= RATE_MAX_BPS && window >= packet as u64 && window < 1 << 59);
        }
        let price = 1 + random(u64::from(CODE_MAX)) as u32;
        source.ack(latest.saturating_add(1_000_000), 1000, Some(price));
        let Allowed { rate, heard, .. } = source.limit();
        let applied = f64::from(price).min(p_max * f64::from(1 << 18));
        assert!(heard == 1 && rate > 0);
        near(f64::from(source.price()), applied, 101.0, "one code of ln, times T");
    }
}
