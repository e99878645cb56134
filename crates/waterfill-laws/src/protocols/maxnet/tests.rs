//! Tests of MaxNet: equations checked by hand, then router, receiver and source.

use super::receiver::{Sliding, averaged};
use super::router::{PriceRange, price_next, spare_capacity, with_queue};
use super::source::{Start, clipped, compensated, rate, start_rise, xi_equilibrium, xi_next};
use super::*;
use crate::params::{ParamType as _, Value};
use crate::protocol::{Ack, Connection, PacketKind, Received, Receiver as _, Router as _, Source as _};
use crate::testing::{self, close, connection};
use crate::units::{Duration, Instant, Volume};

fn link(bps: f64) -> LinkView {
    LinkView { id: 0, capacity: Rate::from_bps(bps), target: None, queue: Volume::ZERO }
}

/// `[maxnet-2007:eq8]` With the thesis's T = 0.05 s, the p_min of 1 Gbit/s is 181083/2¹⁸ (§4.2).
#[test]
fn eq8_p_min_of_one_gigabit() {
    let p_min = demand_inverse(Rate::from_bps(1e9), Rate::from_bps(1e15), 0.05);
    close(p_min, 0.690_775_527_9, 1e-9); // 0.05 · ln 10⁶
    assert_eq!(quantise(p_min), 181_083);
    close(demand(p_min, Rate::from_bps(1e15), 0.05).as_bps(), 1e9, 1e-12);
}

/// `[maxnet-2007:eq7]` At q = 4 s and T = 0.4 s the demand is e⁻¹⁰ times 10¹⁵ bit/s.
#[test]
fn eq7_demand() {
    close(demand(4.0, Rate::from_bps(1e15), 0.4).as_bps(), 4.539_992_976e10, 1e-9);
    assert_eq!(demand(0.0, Rate::from_bps(1e15), 0.4), Rate::from_bps(1e15));
}

/// `[maxnet-2007:V]` Codes represent 32 bit/s to 1 Pbit/s with a relative precision of 10⁻⁵ at T = 0.4 s.
#[test]
fn v_ranges_and_precision() {
    let x_max = Rate::from_bps(1e15);
    assert_eq!(quantise(demand_inverse(x_max, x_max, 0.4)), 0);
    let slowest = demand_inverse(Rate::from_bps(32.0), x_max, 0.4);
    close(slowest, 12.429_216, 1e-6); // 0.4 · ln(10¹⁵/32): 4 integer bits
    assert!(slowest < 16.0);
    let code = quantise(slowest);
    let step = demand(real(code), x_max, 0.4) / demand(real(code + 1), x_max, 0.4) - 1.0;
    close(step, 9.536_789e-6, 1e-5); // e^(2⁻¹⁸/0.4) − 1
    assert!(step < 1e-5);
}

/// `[maxnet-2007:V]` On the fast path, before ξ follows, one code changes the rate's exponent by (α/τ)·2⁻¹⁸. That is
/// 0.25 % at 1 ms and 29 % at 10 µs (25 % to first order).
#[test]
fn v_steps_on_the_fast_path() {
    for (tau, step) in [(1e-3, 0.002_520_8), (1e-5, 0.286_28)] {
        let [low, high] = [0, 1].map(|code| rate(Rate::from_bps(1e15), -1.0, real(code), 0.66 / tau));
        close(low / high - 1.0, step, 1e-3);
    }
}

#[test]
fn v_codes_saturate() {
    assert_eq!(quantise(-1.0), 0);
    assert_eq!(quantise(f64::NAN), 0);
    assert_eq!(quantise(1e9), CODE_MAX);
    assert_eq!(quantise(f64::INFINITY), CODE_MAX);
    // A link without spare capacity still grants a rate that a source can compute with.
    let slowest =
        start_rate(real(quantise(start_rate_code(Rate::from_bps(-1.0), Rate::from_bps(1e15)))), Rate::from_bps(1e15));
    close(slowest.as_bps(), 12.664, 1e-3); // 10¹⁵ · e⁻³²
}

/// `[maxnet-2007:fig4]` The option is encoded byte for byte, and decoding any field returns the encoded value.
#[test]
fn fig4_option_on_the_wire() {
    let mut out = [0; 8];
    Header::from(Field::StartRate(0x01_02_03)).encode(&mut out);
    assert_eq!(out, [42, 8, 0, 0, 0, 0x81, 0x02, 0x03]);
    Echo { echo: Field::Price(181_083) }.encode(&mut out);
    assert_eq!(out, [42, 8, 0x02, 0xc3, 0x5b, 0, 0, 0]);
    assert_eq!(Header::decode(&[42, 6, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(Header::decode(&[42, 8, 0]), None);
    for bits in 0..=(FLAG | CODE_MAX) {
        assert_eq!(Field::from_bits(bits).bits(), bits);
    }
}

/// `[maxnet-2007:eq3]` At 1 Gbit/s, 125 kB in 1 ms raise the price by 1 ms less μ·1 ms.
#[test]
fn eq3_price_step() {
    let c = Rate::from_bps(1e9);
    let next = |volume, min, max| price_next(5.5, Volume::from_bytes(volume), c, 0.9, 1e-3, PriceRange { min, max });
    close(next(125e3, 0.0, 12.0), 5.500_1, 1e-12);
    assert_eq!(next(0.0, 5.4999, 12.0), 5.4999);
    assert_eq!(next(125e3, 0.0, 5.500_05), 5.500_05);
}

/// `[maxnet-2007:fig3]` A queue of 130 kB over T₀ = 130 ms counts as 1 kB per ms.
#[test]
fn fig3_queue_term() {
    close(with_queue(Volume::ZERO, Volume::from_bytes(130e3), 1e-3, 0.130).as_bytes(), 1000.0, 1e-12);
}

/// `[maxnet-2007:eq6a]` The rate is e^(60 − 0.66·5.6/0.05) = e^−13.92 times x_max, and never above x_max.
#[test]
fn eq6a_rate() {
    let x_max = Rate::from_bps(1e15);
    close(rate(x_max, 60.0, 5.6, 0.66 / 0.05).as_bps(), 9.007_84e8, 1e-5);
    assert_eq!(rate(x_max, 100.0, 5.6, 0.66 / 0.05), x_max);
}

/// `[maxnet-2007:eq10]` A step of ξ by hand is 15.84 · 10⁻³ · (4.28·5.6 − 0.4·110) = −0.317 306 88.
#[test]
fn eq10_xi_step() {
    close(xi_next(110.0, 5.6, 1e-3, 0.66 / 0.05, 0.06 / 0.05, 0.4), 109.682_693_12, 1e-12);
}

/// `[maxnet-2007:eq10]` At 1 Gbit/s and 29 ms, ξ converges to αq/τ − q/T = 125.768 78 − 13.815 51.
#[test]
fn eq10_xi_equilibrium() {
    let q = demand_inverse(Rate::from_bps(1e9), Rate::from_bps(1e15), 0.4);
    let gain = 0.66 / 0.029;
    let rest = xi_equilibrium(q, gain, 0.4);
    close(rest, 111.953_27, 1e-6);
    close(xi_next(rest, q, 0.01, gain, 0.06 / 0.029, 0.4), rest, 1e-12);
    // There the rate is the demand, for every RTT.
    close(rate(Rate::from_bps(1e15), rest, q, gain).as_bps(), 1e9, 1e-9);
}

/// `[maxnet-2007:VI]` A step of ξ that would pass ξ* stops there, from both sides.
#[test]
fn vi_xi_is_clipped() {
    assert_eq!(clipped(1.0, 3.0, 2.0), 2.0);
    assert_eq!(clipped(3.0, 1.0, 2.0), 2.0);
    assert_eq!(clipped(1.0, 1.5, 2.0), 1.5);
    assert_eq!(clipped(3.0, 2.5, 2.0), 2.5);
}

/// `[maxnet-2007:IV.B]` The spare capacity is 0.925 C − y, and one sixteenth of an RTT raises the rate by Δ/32.
#[test]
fn iv_b_maxstart() {
    let c = Rate::from_bps(1e9);
    close(spare_capacity(0.9, c, Rate::from_bps(5e8)).as_bps(), 4.25e8, 1e-12);
    let rtt = Duration::from_millis(160);
    close(start_rise(c, rtt / 16, rtt).as_bps(), 1e9 / 32.0, 1e-12);
    assert_eq!(quantise(start_rate_code(c, Rate::from_bps(1e15))), 3_621_653); // 2¹⁸ · ln 10⁶
}

/// MaxStart subtracts the load of the last dt_p or its average over `load_average` (§IV.B, "current transmission
/// rate"). 1 Mbit in 1 ms of 100 leaves 0.925 Gbit/s less 10 Mbit/s; the last dt_p alone would leave nothing.
#[test]
fn iv_b_load_is_of_the_last_interval_or_averaged() {
    let grants = |load_average| {
        let params = Params { load_average, ..Params::default() };
        let mut router = Router::new(&params, &link(1e9));
        pass(&mut router, 125_000.0, Field::Price(0));
        router.on_timer(&link(1e9), Instant::ZERO);
        pass(&mut router, 0.0, Field::StartRate(0))
    };
    assert_eq!(grants(Duration::ZERO), Field::StartRate(CODE_MAX));
    let spare = quantise(-(0.915e9_f64 / 1e15).ln());
    assert_eq!(grants(Duration::from_millis(100)), Field::StartRate(spare));
}

/// `[maxnet-2007:VI]` A new price has the weight dt/τ in the average, at most 1.
#[test]
fn vi_average_over_one_rtt() {
    close(averaged(5.0, 6.0, 0.25), 5.25, 1e-12);
    assert_eq!(averaged(5.0, 6.0, 7.0), 6.0);
    let mut receiver = Receiver::new(&Params::default());
    let mut at = |ms, price, rtt_ms: Option<u64>| {
        receiver.on_data(&Received {
            now: Instant::ZERO + Duration::from_millis(ms),
            kind: PacketKind::Data,
            header: Header::from(price),
            rtt: rtt_ms.map(Duration::from_millis),
        });
        receiver.echo(Instant::ZERO).echo
    };
    assert_eq!(at(0, Field::StartRate(7), None), Field::StartRate(7));
    assert_eq!(at(100, Field::Price(quantise(5.0)), Some(100)), Field::Price(quantise(5.0)));
    assert_eq!(at(125, Field::Price(quantise(6.0)), None), Field::Price(quantise(5.25)));
}

/// The parameter `average` is read as a word or as a flag. Results keep the flag, because the parameter had only two
/// values at first.
#[test]
fn average_is_a_word_or_a_flag() {
    let word = |word: &str| Value::Word(word.to_owned());
    for (value, average) in [
        (Value::Flag(true), Average::Exponential),
        (word("exponential"), Average::Exponential),
        (word("sliding"), Average::Sliding),
        (Value::Flag(false), Average::Off),
        (word("off"), Average::Off),
    ] {
        assert_eq!(Average::from_value(&value), Some(average));
        assert_eq!(Average::from_value(&average.to_value()), Some(average));
    }
    assert_eq!(Average::Off.to_value(), Value::Flag(false));
    assert_eq!((Average::from_value(&word("on")), Average::from_value(&Value::Number(1.0))), (None, None));
}

/// `[maxnet-2007:VI]` After a price has risen by one, the sliding mean rises linearly and reaches the price after one
/// RTT. The exponential average would be at 5.25, 5.4375 and 5.68 instead.
#[test]
fn vi_sliding_mean_over_one_rtt() {
    let mut receiver = Receiver::new(&Params { average: Average::Sliding, ..Params::default() });
    let mut at = |ms, price: f64| {
        receiver.on_data(&Received {
            now: Instant::ZERO + Duration::from_millis(ms),
            kind: PacketKind::Data,
            header: Header::from(Field::Price(quantise(price))),
            rtt: Some(Duration::from_millis(100)),
        });
        receiver.echo(Instant::ZERO).echo
    };
    let expected = [(1000, 5.0), (1025, 5.25), (1050, 5.5), (1100, 6.0), (1125, 6.0)];
    for (ms, mean) in expected {
        assert_eq!(at(ms, if ms == 1000 { 5.0 } else { 6.0 }), Field::Price(quantise(mean)), "at {ms} ms");
    }
    // A price that is alone in its RTT is the mean.
    assert_eq!(at(1300, 7.0), Field::Price(quantise(7.0)));
}

/// The ring of 66 slots has the same mean as all prices of the last RTT, for packets 1/1000 to half an RTT apart.
/// Prices differ only within the oldest slot, which covers at most 1/64 RTT more than one price.
#[test]
fn a_sliding_mean_is_that_of_all_prices() {
    let mut state = 7_u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from((state >> 8) % below)
    };
    for most in [1e-3, 1e-2, 0.1, 0.5] {
        let mut sliding = Sliding::default();
        sliding.next(5.0, 1.0);
        let mut all = vec![(5.0, 1.0)];
        let mut now = 0.0_f64;
        for k in 0..5000 {
            let weight = most * (1.0 + random(1000)) / 1000.0;
            now += weight;
            let price = 5.0 + (3.0 * now).sin();
            all.push((price, weight));
            let (mut time, mut sum) = (0.0, 0.0);
            for (price, weight) in all.iter().rev() {
                let inside = f64::min(*weight, 1.0 - time);
                (time, sum) = (time + inside, sum + price * inside);
                if time >= 1.0 {
                    break;
                }
            }
            let mean = sliding.next(price, weight);
            let bound = 3.0 * (1.0 / 64.0 + most) / 64.0;
            assert!((mean - sum).abs() < bound, "{most}, price {k}: {mean} against {sum}");
        }
    }
}

/// `[maxnet-2007:eq2]` A router raises prices and lowers start rates.
#[test]
fn a_router_raises_prices_and_lowers_start_rates() {
    let mut router = Router::new(&Params::default(), &link(1e9));
    let pass = |router: &mut Router, price| pass(router, 1500.0, price);
    let p_min = quantise(0.4 * 1e6_f64.ln());
    assert_eq!(pass(&mut router, Field::Price(0)), Field::Price(p_min));
    assert_eq!(pass(&mut router, Field::Price(p_min + 1)), Field::Price(p_min + 1));
    // Idle: 0.925 Gbit/s may start; a lower rate of an earlier link stays.
    let spare = quantise(-(0.925e9_f64 / 1e15).ln());
    assert_eq!(pass(&mut router, Field::StartRate(0)), Field::StartRate(spare));
    assert_eq!(pass(&mut router, Field::StartRate(CODE_MAX)), Field::StartRate(CODE_MAX));
    assert_eq!(pass(&mut router, Field::StartRate(0)), Field::StartRate(spare), "no promise is kept by default");
}

#[test]
fn a_router_that_promises_grants_the_spare_capacity_once() {
    let params = Params { promise: true, ..Params::default() };
    let mut router = Router::new(&params, &link(1e9));
    let first = router.start_code();
    assert_eq!(first, quantise(-(0.925e9_f64 / 1e15).ln()));
    assert_eq!(router.start_code(), CODE_MAX);
    for _ in 0..1000 {
        router.on_timer(&link(1e9), Instant::ZERO); // 1 s, 7.7 T₀
    }
    assert!(start_rate(real(router.start_code()), params.x_max).as_bps() > 0.92e9);
}

fn pass(router: &mut Router, bytes: f64, price: Field) -> Field {
    testing::pass::<MaxNet>(router, &link(1e9), Header::from(price), bytes).price
}

/// Two intervals with a queue and the link's own target give the price of Fig. 3, and then the start rate.
#[test]
fn fig3_price_over_two_intervals() {
    let view = LinkView { target: Some(0.8), queue: Volume::from_bytes(130e3), ..link(1e9) };
    let mut router = Router::new(&Params::default(), &view);
    let p_min = 0.4 * 1e6_f64.ln();
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    assert_eq!(router.poll_at(), at(1));
    pass(&mut router, 150e3, Field::Price(0));
    router.on_timer(&view, at(1));
    // 150 kB and 1 kB of the queue are 1.208 ms of the link, less 0.8 ms.
    close(router.price - p_min, 0.000_408, 1e-9);
    pass(&mut router, 75e3, Field::Price(0));
    router.on_timer(&view, at(2));
    // 76 kB are 0.608 ms: the price falls by 0.192 ms. Nothing of the first interval counts again.
    close(router.price - p_min, 0.000_216, 1e-9);
    assert_eq!(router.poll_at(), at(3));
    assert_eq!(pass(&mut router, 1500.0, Field::Price(0)), Field::Price(quantise(p_min + 0.000_216)));
    // 75 kB a millisecond are 600 Mbit/s; (0.8 + 0.2/4) · 1 Gbit/s less that are 250 Mbit/s.
    let spare = quantise(-(0.25e9_f64 / 1e15).ln());
    assert_eq!(pass(&mut router, 40.0, Field::StartRate(0)), Field::StartRate(spare));
}

/// `[maxnet-2007:V]` Twice the capacity for 20 s raises the price to p_max = 0.4·ln(10¹⁵/32) = 12.4297 s and no further.
/// It is back at p_min after (12.4297 − 5.5262)/0.9 = 7.671 s without load; the integral of the overload would take 24 s.
#[test]
fn an_overload_raises_the_price_to_p_max() {
    let mut router = Router::new(&Params::default(), &link(1e9));
    let p_min = router.price;
    let mut tick = |bytes| {
        pass(&mut router, bytes, Field::Price(0));
        router.on_timer(&link(1e9), Instant::ZERO);
        router.price
    };
    let highest = (0..20_000).map(|_| tick(250e3)).last().unwrap();
    close(highest, 0.4 * (1e15_f64 / 32.0).ln(), 1e-12);
    let intervals = (1..10_000).find(|_| tick(0.0) == p_min).unwrap();
    assert_eq!(intervals, 7671);
}

/// A link whose capacity falls below x_min has the price p_max, and one that is faster again keeps it.
#[test]
fn a_link_slower_than_x_min_has_one_price() {
    let params = Params { x_min: Rate::from_bps(1e6), ..Params::default() };
    let mut router = Router::new(&params, &link(1e9));
    let p_max = 0.4 * 1e9_f64.ln();
    for (capacity, expected) in [(1e5, p_max), (1e9, p_max - 0.9e-3)] {
        router.on_timer(&link(capacity), Instant::ZERO);
        close(router.price, expected, 1e-12);
    }
}

/// A source applies prices up to p_max: a field of 32 s leaves the same ξ and rate as one of p_max.
#[test]
fn a_source_applies_prices_up_to_p_max() {
    let params = Params { x_min: Rate::from_bps(1e6), ..Params::default() };
    let after = |code| {
        let mut source = Source::new(&params, &connection());
        source.on_ack(&ack(160, PacketKind::Data, Field::Price(quantise(5.6))));
        source.on_ack(&ack(170, PacketKind::Data, Field::Price(code)));
        (source.price, source.xi, source.price_rate)
    };
    let (price, xi, rate) = after(CODE_MAX);
    close(price, 0.4 * 1e9_f64.ln(), 1e-12);
    let (_, other_xi, other_rate) = after(quantise(price));
    close(xi, other_xi, 1e-6);
    close(rate / other_rate, 1.0, 1e-4);
    assert_ne!(after(quantise(8.2)).1, xi, "below p_max the price counts as it is");
}

/// ξ starts at ξ* with the first acknowledgement and follows eq. 10 until the second acknowledgement (Fig. 2).
#[test]
fn fig2_xi_over_two_acknowledgements() {
    let mut source = Source::new(&Params::default(), &connection());
    let [q1, q2] = [real(quantise(5.6)), real(quantise(5.7))];
    source.on_ack(&ack(160, PacketKind::Data, Field::Price(quantise(5.6))));
    let gain = 0.66 / 0.16;
    close(source.xi, gain * q1 - q1 / 0.4, 1e-12);
    let before = source.xi;
    source.on_ack(&ack(170, PacketKind::Data, Field::Price(quantise(5.7))));
    // 0.66 · 0.06 / 0.16² · 10 ms · ((0.4 · 0.66 / 0.16 − 1) · q − 0.4 ξ)
    let after = before + 1.546_875 * 0.01 * (0.65 * q2 - 0.4 * before);
    close(source.xi, after, 1e-12);
    assert!((source.xi - before).abs() > 1e-6);
    close(source.price_rate.as_bps(), 1e15 * (after - gain * q2).exp(), 1e-9);
}

/// Links that the field cannot represent are refused: rates above x_max, and prices above 32 s.
#[test]
fn links_out_of_range_are_refused() {
    let refused = |x_max, t_ms, c: f64| {
        let params = Params { x_max: Rate::from_bps(x_max), t: Duration::from_millis(t_ms), ..Params::default() };
        MaxNet::check_link(&params, &link(c)).err().map(|e| e.0[..2].to_string())
    };
    assert_eq!(refused(1e15, 400, 1e11), None);
    assert_eq!(refused(1e6, 400, 1e7), Some("x_".into()));
    assert_eq!(refused(1e15, 3000, 1e7), Some("t:".into())); // 3 · ln 10¹¹ = 76 s
    assert_eq!(refused(1e15, 400, 31.0), Some("x_".into())); // below x_min
}

fn ack(now_ms: u64, kind: PacketKind, echo: Field) -> Ack<Echo> {
    let rtt = Duration::from_millis(160);
    Ack {
        kind,
        acked: Volume::from_bytes(1500.0),
        ..Ack::new(Instant::ZERO + Duration::from_millis(now_ms), Echo { echo }, rtt)
    }
}

/// `[maxnet-2007:IV.B]` MaxStart begins at the granted rate and reaches the price's rate two RTTs later.
#[test]
fn maxstart_rises_for_two_rtts() {
    let mut source = Source::new(&Params::default(), &connection());
    let rate_of = |s: &Source| (s.limit().window.unwrap() / Duration::from_millis(160)).as_bps();
    source.on_ack(&ack(160, PacketKind::Syn, Field::StartRate(quantise(-(1e8_f64 / 1e15).ln()))));
    close(rate_of(&source), 1e8, 1e-5);
    let price = Field::Price(quantise(demand_inverse(Rate::from_bps(9e8), Rate::from_bps(1e15), 0.4)));
    source.on_ack(&ack(320, PacketKind::Data, price)); // the clock starts
    close(rate_of(&source), 1e8, 1e-4);
    for step in 1..32 {
        source.on_ack(&ack(320 + 10 * step, PacketKind::Data, price));
        source.on_ack(&ack(325 + 10 * step, PacketKind::Data, price)); // too early: no rise
    }
    close(rate_of(&source), 8.75e8, 1e-4); // 1e8 + 8e8 · 31/32
    source.on_ack(&ack(650, PacketKind::Data, price));
    assert_eq!(source.start, Start::Over);
    close(rate_of(&source), 9e8, 1e-4);
}

/// `[maxnet-2007:IV.B]` MaxStart ends "as soon as the MaxStart rate exceeds the price rate", also when the price's rate
/// falls below MaxStart's. It also ends five RTTs after the last update, when Δ·dt/(2τ) would be far below zero.
#[test]
fn maxstart_ends_where_the_price_rate_falls_below_it() {
    let mut source = Source::new(&Params::default(), &connection());
    let rate_of = |s: &Source| (s.limit().window.unwrap() / Duration::from_millis(160)).as_bps();
    let price = |bps| Field::Price(quantise(demand_inverse(Rate::from_bps(bps), Rate::from_bps(1e15), 0.4)));
    source.on_ack(&ack(160, PacketKind::Syn, Field::StartRate(quantise(-(2e8_f64 / 1e15).ln()))));
    source.on_ack(&ack(320, PacketKind::Data, price(2.4e8)));
    close(rate_of(&source), 2e8, 1e-4);
    source.on_ack(&ack(1120, PacketKind::Data, price(1e8)));
    assert_eq!(source.start, Start::Over);
    assert_eq!(rate_of(&source), source.price_rate.as_bps());
}

#[test]
fn a_weight_scales_the_rate() {
    let mut double = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    let mut single = Source::new(&Params::default(), &connection());
    let price = Field::Price(quantise(5.6));
    for source in [&mut single, &mut double] {
        source.on_ack(&ack(160, PacketKind::Data, price));
    }
    close(double.price_rate.as_bps(), 2.0 * single.price_rate.as_bps(), 1e-12);
}

#[test]
fn without_a_router_the_window_stays() {
    let mut source = Source::new(&Params::default(), &connection());
    let before = source.limit();
    source.on_ack(&ack(160, PacketKind::Syn, Field::StartRate(0)));
    source.on_ack(&ack(320, PacketKind::Data, Field::Price(0)));
    assert_eq!(source.limit(), before);
}

/// `[tcp-maxnet-2006:eq12]` When the RTT at 1 Gbit/s falls from 29 to 28 ms, ξ rises by 4.491 742 and the rate stays
/// the same. The rise is 0.66 · 5.526204 · (1/0.028 − 1/0.029).
#[test]
fn eq12_compensation() {
    close(compensated(0.0, 5.526_204, 0.66 / 0.028, 0.66 / 0.029), 4.491_742, 1e-6);
    let q = Field::Price(quantise(demand_inverse(Rate::from_bps(1e9), Rate::from_bps(1e15), 0.4)));
    for (compensate, rest) in [(true, 1.0), (false, (-4.491_742_f64).exp())] {
        let mut source =
            Source::new(&Params { compensate, dt_min: Duration::ZERO, ..Params::default() }, &connection());
        let at =
            |ms: u64| Ack::new(Instant::ZERO + Duration::from_millis(100), Echo { echo: q }, Duration::from_millis(ms));
        source.on_ack(&at(29));
        close(source.price_rate.as_bps(), 1e9, 1e-5);
        source.on_ack(&at(28)); // at the same time: eq. 10 does not move ξ
        close(source.price_rate.as_bps(), 1e9 * rest, 3e-5);
    }
}

/// Data without a price end the average, because the path has no router any more. Otherwise the average would fall
/// until the source sends at x_max.
#[test]
fn data_without_a_price_ends_the_average() {
    let mut receiver = Receiver::new(&Params::default());
    let mut at = |ms, code| {
        receiver.on_data(&Received {
            now: Instant::ZERO + Duration::from_millis(ms),
            kind: PacketKind::Data,
            header: Header::from(Field::Price(code)),
            rtt: Some(Duration::from_millis(100)),
        });
        receiver.echo(Instant::ZERO).echo
    };
    assert_eq!([at(0, 5000), at(10, 0), at(20, 9000)], [5000, 0, 9000].map(Field::Price));
}

/// A source ignores a start rate after a price, because MaxStart is then over.
#[test]
fn a_start_rate_after_a_price_is_ignored() {
    let mut source = Source::new(&Params::default(), &connection());
    source.on_ack(&ack(160, PacketKind::Data, Field::Price(quantise(5.6))));
    let before = source.limit();
    source.on_ack(&ack(320, PacketKind::Data, Field::StartRate(1)));
    assert_eq!(source.limit(), before);
}
