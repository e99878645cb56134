//! Comparison of the C code of the 2006 thesis's law with the law in real numbers. The tests compare each equation over
//! its range, and then router and source as a whole. Every bound is the quantisation that `kernel/maxnet2006.h` states.

use super::*;
use crate::kernel::{Tcp, Words as CWords};
use crate::protocol::{Ack, Connection, LinkView, PacketKind, Passing, Router as _, Source as _};
use crate::protocols::maxnet::{
    CODE_MAX, Echo, Field as Code, PriceRange, averaged, clipped, demand_inverse, price_next, quantise, rate, real,
    start_rate, window, xi_equilibrium,
};
use crate::protocols::maxnet2006 as law;
use crate::protocols::maxnet2006::source::{Mode, compensated, rises_slowly, xi_next};
use crate::registry::{AnyParams, AnyRouter};
use crate::testing::{Signals, connection, header_of, numbers, spread, value_of, value_with};
use crate::units::{Duration, Instant, Rate, Volume};

#[allow(unsafe_code, reason = "pure functions of integers")]
mod equations {
    unsafe extern "C" {
        pub(super) safe fn waterfill_maxnet2006_base_rtt(rtt: u64, unit: u32) -> u32;
        pub(super) safe fn waterfill_maxnet2006_xi_rest(q: u64, alpha: u32, base_rtt: u32, t: u32) -> i64;
        pub(super) safe fn waterfill_maxnet2006_xi_step(
            xi: i64,
            q: u64,
            dt: u64,
            base_rtt: u32,
            alpha: u32,
            eta: u32,
            t: u32,
        ) -> i64;
        pub(super) safe fn waterfill_maxnet2006_compensated(
            xi: i64,
            q: u64,
            alpha: u32,
            rtt_new: u32,
            rtt_old: u32,
        ) -> i64;
        pub(super) safe fn waterfill_maxnet2006_rate(scale: u64, xi: i64, q: u64, alpha: u32, base_rtt: u32) -> u64;
        pub(super) safe fn waterfill_maxnet2006_window(rate: u64, base_rtt: u32) -> u64;
        pub(super) safe fn waterfill_maxnet2006_averaged(average: u64, price: u64, dt: u64, base_rtt: u32) -> u64;
        pub(super) safe fn waterfill_maxnet2006_rises_slowly(
            price: u32,
            last: u32,
            base_rtt: u32,
            mindeltaq: u32,
        ) -> u32;
    }
}
use equations::*;

const X_MAX: u64 = 1_000_000_000_000_000;
/// Maximum rate of the C code, in bit/s (`MAXNET2006_RATE_MAX_BPS`).
const RATE_MAX_BPS: u64 = 1 << 57;

/// Returns the value of a number in the memory scale.
fn value(raw: u64) -> f64 {
    raw as f64 / MEMORY_SCALE
}

fn signed_value(raw: i64) -> f64 {
    raw as f64 / MEMORY_SCALE
}

/// Asserts that `a` equals `b` within `units` of 2⁻³⁴ and the relative precision of a double.
fn near(a: f64, b: f64, units: f64, what: &str) {
    assert!((a - b).abs() <= units / MEMORY_SCALE + b.abs() * 1e-14, "{what}: {a} is not {b}");
}

fn view(capacity: Rate) -> LinkView {
    LinkView { id: 0, capacity, target: None, queue: Volume::ZERO }
}

// The law in kernel arithmetic.

fn fixed_router(params: &Params, capacity: Rate) -> AnyRouter {
    AnyParams::MaxNet2006(Params { arithmetic: Words::Kernel, ..params.clone() }).router(&view(capacity))
}

fn price_of(router: &AnyRouter) -> f64 {
    Signals::of(|probe| router.observe(probe)).get("price")
}

/// Ends an interval with `arrived` bytes on a link whose capacity is now `capacity`.
fn end_interval(router: &mut AnyRouter, arrived: Volume, capacity: Rate) {
    let (now, kind) = (Instant::ZERO, PacketKind::Other);
    router.on_arrival(&view(capacity), &mut Passing { now, volume: arrived, packets: 1.0, kind, header: None });
    router.on_timer(&view(capacity), now);
}

fn mark(router: &mut AnyRouter, code: Code) -> Code {
    let mut header = header_of::<MaxNet2006>(value_with(code.bits()));
    let (now, volume, kind) = (Instant::ZERO, Volume::ZERO, PacketKind::Data);
    let link = view(Rate::from_bps(1e9));
    router.on_arrival(&link, &mut Passing { now, volume, packets: 0.0, kind, header: Some(&mut header) });
    let [a, b, c, ..] = value_of(&header);
    Code::from_bits(u32::from_be_bytes([0, a, b, c]))
}

/// Source as the C code stores it.
struct Fixed {
    params: CWords,
    state: CWords,
    tcp: Tcp,
}

impl Fixed {
    fn new(params: &Params, connection: &Connection) -> Self {
        let law = MaxNet2006::law();
        let packet = connection.packet.as_bytes() as u32;
        let (params, mut state) = (law.params(&MaxNet2006::numbers(params, connection.weight)), law.source());
        law.source_init(&params, &mut state, packet, connection.initial_window.as_bytes() as u64);
        Self { params, state, tcp: Tcp { packet, payload: packet, ..Tcp::default() } }
    }
    fn ack(&mut self, now: Instant, rtt: Duration, field: Code) {
        let us = |ps: u64| ps / 1_000_000;
        self.tcp = Tcp { now_us: us(now.as_ps()), base_rtt_us: us(rtt.as_ps()) as u32, ..self.tcp };
        MaxNet2006::law().ack(&self.params, &mut self.state, &self.tcp, Some(&value_with(field.bits())));
    }
    fn window(&mut self) -> Volume {
        Volume::from_bytes(MaxNet2006::law().limit(&mut self.state, &self.tcp).window as f64)
    }
    /// Returns the average, ξ, the start rate and τ.
    fn shown(&self) -> (u64, i64, u64, u64) {
        let [average, xi, start_rate, tau] = MaxNet2006::law().source_signals(&self.state);
        (average, xi as i64, start_rate, tau)
    }
}

/// Draws a base RTT from 1 µs to 16.8 s, any price with 16 more bits, α, η and T.
fn source_state(random: &mut impl FnMut(u64) -> u64) -> (u32, u64, u32, u32, u32) {
    let base_rtt = spread(random, 1.0, f64::from(1 << 24)) as u32;
    let q = (random(u64::from(CODE_MAX)) << 16) | random(1 << 16);
    let (alpha, eta, t) = (1 + random(1571), 1 + random(1000), spread(random, 1.0, 1e5));
    (base_rtt, q, alpha as u32, eta as u32, t as u32)
}

/// `[tcp-maxnet-2006:eq10]` The example of §4.1 gives 181000 · 300/28 − 1000 · 181000/50 = −1680714.3. The thesis
/// truncates it to −1680715.
#[test]
fn eq10_worked_example() {
    let xi = waterfill_maxnet2006_xi_rest(181_000 << 16, 300, 28_000, 50);
    assert_eq!(xi >> 16, -1_680_715);
    near(signed_value(xi), -1_680_714.285_714_3 / 262_144.0, 1.0, "ξ");
}

#[test]
fn eq10_eq12_eq8_over_the_range() {
    let mut random = numbers(2);
    for _ in 0..50_000 {
        let (base_rtt, q, alpha, _, t) = source_state(&mut random);
        let (tau, a) = (f64::from(base_rtt) * 1e-6, f64::from(alpha) * 1e-3);
        let rest = waterfill_maxnet2006_xi_rest(q, alpha, base_rtt, t);
        near(signed_value(rest), xi_equilibrium(value(q), a / tau, f64::from(t) * 1e-3), 1.0, "ξ*");

        let (other, ..) = source_state(&mut random);
        let xi = waterfill_maxnet2006_compensated(rest, q, alpha, base_rtt, other);
        let law = compensated(signed_value(rest), value(q), a, tau, f64::from(other) * 1e-6);
        let size = value(q) * a * 1e6 / f64::from(base_rtt.min(other));
        near(signed_value(xi), law, 1.0 + size * 1e-14 * MEMORY_SCALE, "ξ of eq. 12");

        let slower = random(1 << 34) as i64 * 30;
        let gain = value(q) * a / tau;
        // The exponent's rounding, and the precision of αq/τ − ξ in doubles where both are large.
        let tolerance = 1.1e-6 + 2.0 / MEMORY_SCALE + gain.max(signed_value(rest).abs()) * 4e-16;
        let xi = rest - slower;
        let x = waterfill_maxnet2006_rate(X_MAX, xi, q, alpha, base_rtt) as f64;
        let law = rate(Rate::from_bps(X_MAX as f64), signed_value(xi), value(q), a / tau).as_bps();
        assert!((x - law).abs() <= law * tolerance + 1.0, "x: {x} is not {law}");
    }
}

#[test]
fn eq9_over_the_range() {
    let mut random = numbers(3);
    for _ in 0..50_000 {
        let (base_rtt, q, alpha, eta, t) = source_state(&mut random);
        let dt = spread(&mut random, 1.0, 1e6);
        let (tau, a, t_s) = (f64::from(base_rtt) * 1e-6, f64::from(alpha) * 1e-3, f64::from(t) * 1e-3);
        let rest = waterfill_maxnet2006_xi_rest(q, alpha, base_rtt, t);
        let xi = rest + random(1 << 36) as i64 - (1 << 35); // up to 2 away: a factor of 7.4 in the rate
        let next = waterfill_maxnet2006_xi_step(xi, q, dt, base_rtt, alpha, eta, t);
        let law = clipped(
            signed_value(xi),
            xi_next(signed_value(xi), value(q), dt as f64 * 1e-6, tau, a, f64::from(eta) * 1e-3, t_s),
            signed_value(rest),
        );
        // Truncations of the fraction: one unit at the end, and one before its second division.
        let fraction_off = (65_536.0 / f64::from(base_rtt) + 1.0) / 4_294_967_296.0;
        let gap = (signed_value(rest) - signed_value(xi)).abs();
        // In doubles eq. 9 is a small difference of large terms.
        let step = f64::from(eta) * 1e-3 * dt as f64 * 1e-6 / (tau * tau);
        let terms = step.min(1.0 / t_s) * t_s * (signed_value(rest).abs() + value(q) * (a / tau + 1.0 / t_s));
        near(signed_value(next), law, 2.0 + (gap * fraction_off + terms * 1e-14) * MEMORY_SCALE, "ξ");
    }
}

#[test]
fn averages_windows_and_rtts_over_the_range() {
    let mut random = numbers(4);
    for _ in 0..50_000 {
        let (base_rtt, q, ..) = source_state(&mut random);
        let (_, price, ..) = source_state(&mut random);
        let dt = spread(&mut random, 1.0, 1e7);
        let average = value(waterfill_maxnet2006_averaged(q, price, dt, base_rtt));
        let law = averaged(value(q), value(price), dt as f64 / f64::from(base_rtt));
        near(average, law, 1.0 + value(q.abs_diff(price)) * 4.0, "q"); // a weight's unit is 2⁻³²

        let x = spread(&mut random, 32.0, RATE_MAX_BPS as f64);
        let rtt = Duration::from_micros(u64::from(base_rtt));
        let law = window(Rate::from_bps(x as f64), rtt).as_bytes();
        let got = waterfill_maxnet2006_window(x, base_rtt) as f64;
        assert!((got - law).abs() <= 1.125 + law * 1e-14, "W: {got} is not {law}");

        let unit = spread(&mut random, 1.0, 1e6) as u32;
        let rounded = waterfill_maxnet2006_base_rtt(u64::from(base_rtt), unit);
        assert_eq!(rounded % unit, 0);
        assert!(
            rounded > 0
                && (rounded == unit || rounded.abs_diff(base_rtt) <= unit.div_ceil(2) || base_rtt > (1 << 24) - unit)
        );
    }
    assert_eq!(waterfill_maxnet2006_base_rtt(28_012, 1000), 28_000);
    assert_eq!(waterfill_maxnet2006_base_rtt(3, 1000), 1000);
    assert_eq!(waterfill_maxnet2006_base_rtt(u64::MAX, 1000), 16_777_000);
}

/// `[tcp-maxnet-2006:fig5.4]` Real and kernel arithmetic agree on whether a price rises slowly, except where a double
/// rounds to the other side.
#[test]
fn fig5_4_over_the_range() {
    let mut random = numbers(5);
    for _ in 0..50_000 {
        let (base_rtt, ..) = source_state(&mut random);
        let (q, last) = (random(1 << 23) as u32, random(1 << 23) as u32);
        let threshold = random(1 << 30) as u32;
        let tau = f64::from(base_rtt) * 1e-6;
        let got = waterfill_maxnet2006_rises_slowly(q, last, base_rtt, threshold) == 1;
        let law = rises_slowly(real(q), real(last), tau, threshold);
        assert!(got == law || ((real(q) - real(last)) / tau - real(threshold)).abs() < 1e-6);
    }
    for (q, last) in [(0, 0), (0, 9), (8, 9)] {
        assert_eq!(waterfill_maxnet2006_rises_slowly(q, last, 28_000, 0), 1);
    }
    assert_eq!(waterfill_maxnet2006_rises_slowly(9, 9, 28_000, 0), 0);
}

/// `[tcp-maxnet-2006:eq7, eq11, 3.1.2, 3.3]` One second of random load gives the same prices and start rates in real
/// and in kernel arithmetic, on links of every speed.
#[test]
fn the_fixed_point_router_follows_the_law() {
    let mut random = numbers(6);
    for decade in 0..25 {
        let capacity = Rate::from_bps((1e5 * 10f64.powf(f64::from(decade) * 0.4)).round());
        let params = Params::default();
        let (mut real_law, mut fixed) = (law::Router::new(&params, &view(capacity)), fixed_router(&params, capacity));
        let p_min = demand_inverse(capacity, params.x_max, 0.05);
        // T times one code of the logarithm and 1 bit/s of the capacity.
        assert!((price_of(&fixed) - p_min).abs() < 0.05 * (1.0 / 262_144.0 + 1.0 / capacity.as_bps()));
        let start = price_of(&fixed) - real_law.price;
        for tick in 1..=1000_u32 {
            // 0 to 2 C, in whole bytes.
            let bytes = (capacity.as_bps() / 8e3 * random(2000) as f64 / 1e3).round();
            real_law.tick(Volume::from_bytes(bytes));
            end_interval(&mut fixed, Volume::from_bytes(bytes), capacity);
            // Per interval 2⁻³⁴ for μ·dt and 2⁻³⁴ for y/C, with opposite signs.
            let bound = f64::from(tick) / MEMORY_SCALE + 1e-14;
            let off = price_of(&fixed) - real_law.price;
            assert!((off - start).abs() <= bound + start.abs(), "tick {tick}: {off}");
            let prices = (mark(&mut fixed, Code::default()), real_law.mark(Code::default()));
            if let (Code::Price(a), Code::Price(b)) = prices {
                assert!(a.abs_diff(b) <= 1 && a > 0);
            }
            let (a, b) = (mark(&mut fixed, Code::StartRate(0)), real_law.mark(Code::StartRate(0)));
            if let (Code::StartRate(a), Code::StartRate(b)) = (a, b) {
                let (a, b) = (start_rate(real(a), params.x_max), start_rate(real(b), params.x_max));
                // Whole bit/s of μC, y/dt and C/128; two codes; the precision of μC − y/dt when both are close.
                let bound = b.as_bps() * 1.1e-5 + 3.0 + capacity.as_bps() * 1e-12;
                assert!((a - b).as_bps().abs() <= bound, "{a:?} is not {b:?}");
            }
        }
    }
    let params = Params::default();
    let mut fixed = fixed_router(&params, Rate::from_bps(1e9));
    assert_eq!(mark(&mut fixed, Code::default()), Code::Price(181_083)); // §4.2
    // One step by hand: 125 kB take 1 ms at 1 Gbit/s.
    let before = price_of(&fixed);
    end_interval(&mut fixed, Volume::from_bytes(125e3), Rate::from_bps(1e9));
    near(
        price_of(&fixed),
        price_next(
            before,
            Volume::from_bytes(125e3),
            Rate::from_bps(1e9),
            0.94,
            1e-3,
            PriceRange { min: 0.0, max: 2.0 },
        ),
        2.0,
        "p",
    );
}

/// p_max = 0.05·ln(10¹⁵/32) = 1.5537 s bounds the price of an overloaded and of a restored link, and a source's price.
#[test]
fn p_max_bounds_every_price() {
    let params = Params::default();
    let mut router = fixed_router(&params, Rate::from_bps(1e9));
    for _ in 0..2000 {
        end_interval(&mut router, Volume::from_bytes(250e3), Rate::from_bps(1e9)); // twice the capacity
    }
    let p_max = 0.05 * (1e15_f64 / 32.0).ln();
    let highest = price_of(&router);
    assert!((highest - p_max).abs() < 0.05 / 262_144.0, "{highest}");
    end_interval(&mut router, Volume::from_bytes(250e3), Rate::from_bps(1e9));
    assert_eq!(price_of(&router), highest);
    let law = MaxNet2006::law();
    let (mut link, words) = (law.link(), law.params(&MaxNet2006::numbers(&params, 1.0)));
    law.link_set(&mut link, &words, 1_000_000_000, 940_000);
    law.link_restore(&mut link, u64::MAX);
    assert_eq!(law.link_signals(&link)[0] as f64 / MEMORY_SCALE, highest);
    let mut source = Fixed::new(&params, &connection());
    source.ack(Instant::ZERO + Duration::from_millis(9), Duration::from_millis(28), Code::Price(CODE_MAX));
    assert_eq!(law.source_signals(&source.state)[0], u64::from(quantise(highest)) << 16);
}

/// At half the capacity, p starts from the new p_min = T·ln(x_max/C), and 125 kB take 2 ms.
#[test]
fn another_capacity_by_hand() {
    let (params, rate) = (Params::default(), Rate::from_bps);
    let (mut law, mut fixed) = (law::Router::new(&params, &view(rate(1e9))), fixed_router(&params, rate(1e9)));
    law.set_capacity(&view(rate(5e8)));
    law.tick(Volume::from_bytes(125e3));
    end_interval(&mut fixed, Volume::from_bytes(125e3), rate(5e8));
    let expected = 0.05 * 2e6_f64.ln() + 2e-3 - 0.94e-3;
    assert!((law.price - expected).abs() < 1e-12, "{}", law.price);
    assert!((price_of(&fixed) - expected).abs() < 0.05 / 262_144.0, "{}", price_of(&fixed));
}

/// Without QuickStart, the real and the fixed-point source have nearly the same windows for the same prices.
#[test]
fn the_fixed_point_source_follows_the_law() {
    let params = Params { quickstart: false, ..Params::default() };
    let connection = connection();
    let mut random = numbers(7);
    for rtt_ms in [1_u64, 2, 5, 28, 56, 150, 1000] {
        let (mut law, mut fixed) = (law::Source::new(&params, &connection), Fixed::new(&params, &connection));
        let (mut now_us, mut rtt) = (1_000_000, Duration::from_millis(rtt_ms + 3));
        let (mut price, mut worst) = (181_894.0_f64, 0.0_f64);
        for step in 0..50_000 {
            now_us += 1 + random(400);
            // A drifting price close to that of 0.94 Gbit/s.
            price = (price + random(101) as f64 - 50.0).clamp(181_083.0, 195_000.0);
            if step % 15_000 == 14_999 {
                rtt = rtt - Duration::from_millis(1);
            }
            let now = Instant::ZERO + Duration::from_micros(now_us);
            let field = Code::Price(price as u32);
            law.on_ack(&Ack::new(now, Echo { echo: field }, rtt));
            fixed.ack(now, rtt, field);
            worst = worst.max((fixed.window() / law.window - 1.0).abs() - 2.0 / law.window.as_bytes());
        }
        // The exponential's 1.1·10⁻⁶, and the average's 2⁻³⁴/weight times α/τ: 1.7·10⁻⁵/α.
        assert!(worst < 6e-5, "{rtt_ms} ms: {worst}");
        let (average, xi, ..) = fixed.shown();
        let (average, xi) = (value(average), signed_value(xi));
        let state = law.price_state.unwrap();
        assert!((average - state.average).abs() < 1e-5 && (xi - state.xi).abs() < 2e-5 * (1.0 + xi.abs()));
    }
}

/// During QuickStart, the real and the fixed-point source have the same window while the rate is granted, raised, held
/// by a rising price, and ended.
#[test]
fn the_fixed_point_quickstart_follows_the_law() {
    let params = Params::default();
    let connection = connection();
    let (mut law, mut fixed) = (law::Source::new(&params, &connection), Fixed::new(&params, &connection));
    let rtt = Duration::from_millis(28);
    let grant = Code::StartRate(quantise((1e15_f64 / (1e9 / 128.0)).ln()));
    let mut price = 181_894;
    for ms in 28..2000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        // From 0.3 s to 0.5 s it rises by 20 codes per ms, 20000 per s: more than mindeltaq.
        price += if (300..500).contains(&ms) { 20 } else { 0 };
        let field = if ms < 56 { grant } else { Code::Price(price) };
        law.on_ack(&Ack::new(now, Echo { echo: field }, rtt));
        fixed.ack(now, rtt, field);
        let (a, b) = (fixed.window().as_bytes(), law.window.as_bytes());
        assert!((a - b).abs() <= 4.0 + b * 2e-5, "{ms} ms: {a} is not {b}");
    }
    assert!(matches!(law.mode, Mode::Priced), "QuickStart ended");
}

/// Any valid parameters and any calls keep every number in its range.
#[test]
fn no_calls_leave_the_ranges() {
    let mut random = numbers(8);
    for _ in 0..2000 {
        let seconds = |us: u64| Duration::from_micros(us);
        let params = Params {
            arithmetic: Words::Kernel,
            x_max: Rate::from_bps(spread(&mut random, 32.0, 1e15) as f64),
            t: seconds(spread(&mut random, 1e3, 1e8)),
            alpha: 0.001 + random(1570) as f64 * 1e-3,
            eta: spread(&mut random, 1.0, 65e3) as f64 * 1e-3,
            dt_source: seconds(random(2) * spread(&mut random, 1.0, 1e6)),
            wnd_update_freq: 1 + random(3) as u32,
            max_wnd: spread(&mut random, 1.0, 6.7e7) as u32,
            rateinc: 1.001 + random(14_999) as f64 * 1e-3,
            mindeltaq: spread(&mut random, 1.0, 4e9) as u32,
            average: random(2) == 0,
            compensate: random(2) == 0,
            mu: 0.01 + random(100) as f64 * 0.0099,
            epsilon: random(101) as f64 * 0.01,
            qs_min_divisor: spread(&mut random, 1.0, 4e9) as u32,
            dt: seconds(spread(&mut random, 1.0, 1e6)),
            rtt_unit: seconds(spread(&mut random, 1.0, 1e6)),
            quickstart: true,
            mark_every: 1,
            ..Params::default()
        };
        crate::params::Params::validate(&params).unwrap();
        let capacity = Rate::from_bps(spread(&mut random, 1.0, 1e16) as f64);
        let mut link = fixed_router(&params, capacity);
        let packet = 1.0 + random(9000) as f64;
        let connection = Connection {
            weight: spread(&mut random, 1.0, 1e4) as f64 * 0.01,
            packet: Volume::from_bytes(packet),
            initial_window: Volume::from_bytes(packet * 10.0),
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: crate::protocol::Validation::Off,
            seed: 0,
        };
        let mut source = Fixed::new(&params, &connection);
        let (mut now, mut base_rtt) = (Duration::ZERO, seconds(spread(&mut random, 1.0, 1e8)));
        for _ in 0..200 {
            now += seconds(spread(&mut random, 1.0, 1e7));
            let load = capacity * params.dt * (random(300) as f64 * 0.01);
            end_interval(&mut link, if random(50) == 0 { Volume::from_bytes(1e18) } else { load }, capacity);
            if random(4) == 0 {
                base_rtt = seconds(spread(&mut random, 1.0, 1e8)); // even up, which no host does
            }
            let asked = if random(10) == 0 { Code::StartRate(0) } else { Code::Price(0) };
            let any = Code::from_bits(random(1 << 24) as u32);
            let echo = if random(3) == 0 { any } else { mark(&mut link, asked) };
            source.ack(Instant::ZERO + now, base_rtt, echo);
            let window = source.window().as_bytes();
            assert!(window <= (f64::from(params.max_wnd) * packet).max(packet * 10.0), "{window}");
            let (average, xi, start_rate, _) = source.shown();
            assert!(start_rate <= RATE_MAX_BPS && xi.unsigned_abs() <= 1 << 61);
            assert!(average >> 16 <= u64::from(CODE_MAX) && price_of(&link) < value(1 << 61));
        }
    }
}
