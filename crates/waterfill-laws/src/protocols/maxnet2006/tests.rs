//! Tests of the 2006 thesis's law: equations checked by hand, then router and source, in real and fixed-point
//! arithmetic.

use super::params::Arithmetic;
use super::router::granted;
use super::source::{compensated, rises_slowly, xi_next};
use super::*;
use crate::protocol::{Ack, Router as _, Source as _};
use crate::protocols::maxnet::{demand_inverse, quantise, rate, real, xi_equilibrium};
use crate::testing::{Signals, close, connection, echo_after, pass};
use crate::units::{Duration, Instant, Rate, Volume};

const GIGABIT: Rate = Rate::from_bps(1e9);
const X_MAX: Rate = Rate::from_bps(1e15);

/// `[tcp-maxnet-2006:eq11]` The price p_min of 1 Gbit/s is 0.05 · ln 10⁶ = 0.690 776 = 181083/2¹⁸, the value of §4.2.
#[test]
fn eq11_p_min_of_one_gigabit() {
    let link = LinkView { id: 0, capacity: GIGABIT, target: None, queue: Volume::ZERO };
    for arithmetic in [Arithmetic::Real, Arithmetic::Kernel] {
        let params = Params { arithmetic, ..Params::default() };
        let mut router = Router::new(&params, &link);
        let header = pass::<MaxNet2006>(&mut router, &link, Header::default(), 1500.0);
        assert_eq!(header.price, Field::Price(181_083));
    }
}

/// `[tcp-maxnet-2006:eq8, eq10]` At 0.94 Gbit/s and 28 ms (Fig. 10), q = 0.05 · ln(10¹⁵/0.94·10⁹) and ξ = q ·
/// (0.3/0.028 − 20) are an equilibrium.
#[test]
fn eq10_equilibrium_of_figure_10() {
    let q = demand_inverse(Rate::from_bps(0.94e9), X_MAX, 0.05);
    close(q, 0.693_869_298, 1e-9); // 0.05 · (13.815 510 56 + 0.061 875 40)
    assert_eq!(quantise(q), 181_894);
    let xi = xi_equilibrium(q, 0.3 / 0.028, 0.05);
    close(xi, -6.443_072_05, 1e-8); // 0.693 869 298 · −9.285 714 29
    close(rate(X_MAX, xi, q, 0.3 / 0.028).as_bps(), 0.94e9, 1e-12);
    close(xi_next(xi, q, 1e-3, 0.028, 0.3, 0.14, 0.05), xi, 1e-14);
}

/// `[tcp-maxnet-2006:3.3]` Twice the capacity for 2 s raises the price to p_max = 0.05·ln(10¹⁵/32) = 1.5537 s and no
/// further. A source applies no higher price either.
#[test]
fn p_max_bounds_the_price() {
    let link = LinkView { id: 0, capacity: GIGABIT, target: None, queue: Volume::ZERO };
    let mut router = router::Router::new(&Params::default(), &link);
    for _ in 0..2000 {
        router.tick(Volume::from_bytes(250e3));
    }
    let p_max = demand_inverse(Rate::from_bps(32.0), X_MAX, 0.05);
    assert_eq!(router.mark(Field::Price(0)), Field::Price(quantise(p_max)));
    let mut source = Source::new(&Params::default(), &connection());
    source.on_ack(&ack(1.0, Field::Price(1 << 22), 28));
    close(signals(&source).0, p_max, 1e-12);
}

/// `[tcp-maxnet-2006:eq9]` Without α, a step of ξ is 0.14·10⁻³/0.028² · (−13/28 · 0.69 + 0.05 · 6) = −0.003 635 204.
#[test]
fn eq9_xi_step() {
    close(xi_next(-6.0, 0.69, 1e-3, 0.028, 0.3, 0.14, 0.05), -6.003_635_204_08, 1e-11);
}

/// `[tcp-maxnet-2006:eq12]` When the RTT falls from 28 to 27 ms, ξ rises by 0.273 809 5 and the rate x stays the same.
/// The rise is 0.69 · 0.3 · (1/0.027 − 1/0.028).
#[test]
fn eq12_compensation() {
    let xi = compensated(-6.0, 0.69, 0.3, 0.027, 0.028);
    close(xi, -5.726_190_476, 1e-9);
    let before = rate(X_MAX, -6.0, 0.69, 0.3 / 0.028);
    close(rate(X_MAX, xi, 0.69, 0.3 / 0.027).as_bps(), before.as_bps(), 1e-12);
    // Without it the rate falls to e^−0.274 = 76 % (Fig. 8a).
    close(rate(X_MAX, -6.0, 0.69, 0.3 / 0.027) / before, 0.760_476, 1e-5);
}

/// `[tcp-maxnet-2006:3.1.2]` The start rate is 0.94 − 0.5 Gbit/s at half load, and C/128 on a full link.
#[test]
fn eq_3_1_2_start_rates() {
    let min = GIGABIT / 128.0;
    close(granted(GIGABIT, 0.94, Rate::from_bps(5e8), min).as_bps(), 4.4e8, 1e-12);
    assert_eq!(granted(GIGABIT, 0.94, Rate::from_bps(9.4e8), min).as_bps(), 7_812_500.0);
    assert_eq!(granted(GIGABIT, 0.94, Rate::from_bps(2e9), min).as_bps(), 7_812_500.0);
}

/// `[tcp-maxnet-2006:fig5.4]` A price rises slowly if it rises by less than 16000 · 2⁻¹⁸ · 28 ms, which is 448 codes.
#[test]
fn fig5_4_rises_slowly() {
    let last = real(181_000);
    assert!(rises_slowly(real(181_447), last, 0.028, 16_000));
    assert!(!rises_slowly(real(181_449), last, 0.028, 16_000));
    assert!(rises_slowly(real(180_000), last, 0.028, 16_000), "it falls");
    assert!(rises_slowly(0.0, 0.0, 0.028, 0), "q = 0");
}

type Router = <MaxNet2006 as Protocol>::Router;
type Source = <MaxNet2006 as Protocol>::Source;

fn ack(at_ms: f64, echo: Field, base_ms: u64) -> Ack<Echo> {
    let rtt = Duration::from_millis(base_ms);
    Ack { acked: Volume::from_bytes(1500.0), ..Ack::new(Instant::from_secs(at_ms * 1e-3), Echo { echo }, rtt) }
}

fn signals(source: &Source) -> (f64, f64) {
    let signals = Signals::of(|probe| source.observe(probe));
    (signals.get("price"), signals.get("xi"))
}

fn window_of(source: &Source) -> Volume {
    source.limit().window.unwrap()
}

fn both(params: &Params) -> [Source; 2] {
    [Arithmetic::Real, Arithmetic::Kernel]
        .map(|arithmetic| Source::new(&Params { arithmetic, ..params.clone() }, &connection()))
}

/// `[tcp-maxnet-2006:fig5.1, fig5.2, fig5.3, fig5.4]` Steps 1 to 4 of Fig. 5 give the printed rates on a link with the
/// price of 100 Mbit/s.
#[test]
fn quickstart_rises_every_rtt_and_ends_at_the_price() {
    let price = Field::Price(quantise(demand_inverse(Rate::from_bps(1e8), X_MAX, 0.05)));
    for mut source in both(&Params::default()) {
        let rate_of = |source: &Source| (window_of(source) / Duration::from_millis(28)).as_bps();
        source.on_ack(&ack(28.0, Field::StartRate(quantise(-(5e7_f64 / 1e15).ln())), 28));
        close(rate_of(&source), 5e7, 2e-5);
        source.on_ack(&ack(56.0, price, 28)); // the second: ξ = ξ*
        let (q, xi) = signals(&source);
        close(xi, q * (0.3 / 0.028 - 20.0), 1e-9);
        close(rate_of(&source), 5e7, 2e-5);
        for (ms, mbps) in [(70.0, 50.0), (84.0, 50.0), (86.0, 62.5), (112.0, 62.5), (114.0, 78.125), (141.0, 78.125)] {
            // Raised at 84, 112 and 140 ms, effective from the next update.
            source.on_ack(&ack(ms, price, 28));
            close(rate_of(&source), mbps * 1e6, 3e-5);
        }
        source.on_ack(&ack(169.0, price, 28)); // 97.7 Mbit/s, and raised to 122
        source.on_ack(&ack(170.0, price, 28)); // more than the price's 100: the last of QuickStart
        close(rate_of(&source), 122.07e6, 1e-4);
        source.on_ack(&ack(171.0, price, 28));
        close(rate_of(&source), 1e8, 1e-4);
    }
}

/// `[tcp-maxnet-2006:fig5.4]` A price that rises by 449 codes per RTT keeps the start rate constant.
#[test]
fn a_rising_price_holds_the_start_rate() {
    for (rise, held) in [(447, false), (449, true)] {
        for mut source in both(&Params { average: false, ..Params::default() }) {
            source.on_ack(&ack(28.0, Field::StartRate(quantise(-(5e6_f64 / 1e15).ln())), 28));
            let start = window_of(&source);
            for round in 0..4 {
                source.on_ack(&ack(f64::from(56 + 28 * round), Field::Price(181_083 + rise * round as u32), 28));
            }
            assert_eq!(window_of(&source) == start, held, "{rise} codes per RTT");
        }
    }
}

/// `[tcp-maxnet-2006:4.5]` After a quarter of an RTT the average moves by a quarter of the change. Without averaging it
/// moves by the whole change.
#[test]
fn the_source_averages_over_an_rtt() {
    for (average, then) in [(true, 0.75), (false, 0.9)] {
        for mut source in both(&Params { average, ..Params::default() }) {
            source.on_ack(&ack(28.0, Field::Price(quantise(0.7)), 28));
            source.on_ack(&ack(35.0, Field::Price(quantise(0.9)), 28));
            close(signals(&source).0, then, 1e-5);
            source.on_ack(&ack(63.0, Field::Price(quantise(0.9)), 28));
            close(signals(&source).0, 0.9, 1e-5);
        }
    }
}

/// An RTT that is 1 ms shorter keeps the rate with eq. 12, and lowers it by 24 % without eq. 12 (Fig. 8).
#[test]
fn a_shorter_rtt_keeps_the_rate_if_compensated() {
    let price = Field::Price(181_894);
    for (compensate, kept, xi_moves) in [(true, 1.0, 0.275_345), (false, 0.7593, 0.0)] {
        for mut source in both(&Params { compensate, dt_source: Duration::ZERO, ..Params::default() }) {
            source.on_ack(&ack(28.0, price, 28));
            let (rate, xi) = (window_of(&source) / Duration::from_millis(28), signals(&source).1);
            source.on_ack(&ack(28.001, price, 27));
            close(window_of(&source) / Duration::from_millis(27) / rate, kept, 2e-4);
            assert!((signals(&source).1 - xi - xi_moves).abs() < 1e-4);
        }
    }
}

#[test]
fn without_a_router_the_window_stays() {
    for mut source in both(&Params::default()) {
        let before = source.limit();
        source.on_ack(&ack(28.0, Field::StartRate(0), 28));
        source.on_ack(&ack(56.0, Field::Price(0), 28));
        assert_eq!(source.limit(), before);
    }
}

#[test]
fn max_wnd_bounds_the_window_and_the_start_rate() {
    for mut source in both(&Params { max_wnd: 100, ..Params::default() }) {
        source.on_ack(&ack(28.0, Field::StartRate(quantise(-(1e9_f64 / 1e15).ln())), 28));
        assert_eq!(window_of(&source).as_bytes(), 150_000.0);
        for ms in 0..500_u32 {
            // A price of 100 Gbit/s never ends QuickStart, and the start rate stays bounded.
            source.on_ack(&ack(56.0 + f64::from(ms), Field::Price(quantise(0.05 * 1e4_f64.ln())), 28));
        }
        assert_eq!(window_of(&source).as_bytes(), 150_000.0);
        for ms in 0..500_u32 {
            source.on_ack(&ack(600.0 + f64::from(ms), Field::Price(quantise(0.05 * 5e6_f64.ln())), 28));
        }
        let rate = window_of(&source).as_bits() / 0.028;
        assert!(rate < 43e6, "at once down to the price's rate: {rate}");
    }
}

/// The window is at least one packet, for a start rate and for a price. A rate of 10 kbit/s at 28 ms would be 35 bytes.
#[test]
fn the_smallest_windows() {
    for mut source in both(&Params::default()) {
        source.on_ack(&ack(28.0, Field::StartRate(quantise(-(1e4_f64 / 1e15).ln())), 28));
        assert_eq!(window_of(&source).as_bytes(), 1500.0);
    }
    for mut source in both(&Params { quickstart: false, ..Params::default() }) {
        for (ms, price) in [(28.0, 0.05 * 1e11_f64.ln()), (2000.0, 5.0)] {
            source.on_ack(&ack(ms, Field::Price(quantise(price)), 28));
            assert_eq!(window_of(&source).as_bytes(), 1500.0);
            close(source.limit().pacing.unwrap().as_bps(), 12_000.0 / 0.028, 1e-5);
        }
    }
}

#[test]
fn the_window_waits_for_its_acknowledgements() {
    for mut source in both(&Params { wnd_update_freq: 3, average: false, ..Params::default() }) {
        source.on_ack(&ack(28.0, Field::Price(181_894), 28));
        let before = window_of(&source);
        for (ms, moved) in [(30.0, false), (32.0, false), (34.0, true)] {
            source.on_ack(&ack(ms, Field::Price(185_000), 28));
            assert_eq!(window_of(&source) != before, moved, "{ms} ms");
        }
        let before = window_of(&source);
        for (ms, moved) in [(34.1, false), (34.2, false), (34.9, false), (35.0, true)] {
            source.on_ack(&ack(ms, Field::Price(181_894), 28));
            assert_eq!(window_of(&source) != before, moved, "{ms} ms: not before dt_source");
        }
    }
}

#[test]
fn with_quickstart_off_the_syn_asks_for_a_price() {
    let syn = Sending::new(Instant::ZERO, PacketKind::Syn, Volume::from_bytes(40.0));
    let [mut on, _] = both(&Params::default());
    let [mut off, _] = both(&Params { quickstart: false, ..Params::default() });
    assert_eq!(on.stamp(&syn).price, Field::StartRate(0));
    assert_eq!(off.stamp(&syn).price, Field::Price(0));
    assert_eq!(on.stamp(&Sending { kind: PacketKind::Data, ..syn }).price, Field::Price(0));
}

#[test]
fn a_receiver_copies_the_last_field() {
    for price in [Field::StartRate(7), Field::Price(9), Field::Price(4)] {
        let echo = echo_after::<MaxNet2006>(&Params::default(), &[Header::default(), Header::from(price)]);
        assert_eq!(echo, Echo { echo: price });
    }
}

/// `[tcp-maxnet-2006:3.1.2]` Start rates may use ε of the capacity above the target: (0.94 + 0.05) C on an idle link.
#[test]
fn start_rates_may_use_epsilon_above_the_target() {
    let link = LinkView { id: 0, capacity: GIGABIT, target: None, queue: Volume::ZERO };
    for arithmetic in [Arithmetic::Real, Arithmetic::Kernel, Arithmetic::Printed] {
        let params = Params { arithmetic, epsilon: 0.05, ..Params::default() };
        let mut router = Router::new(&params, &link);
        let Field::StartRate(code) =
            pass::<MaxNet2006>(&mut router, &link, Header::from(Field::StartRate(0)), 40.0).price
        else {
            panic!("a start rate is asked for")
        };
        close(real(code), (1e15 / 0.99e9_f64).ln(), 1e-5);
    }
}
