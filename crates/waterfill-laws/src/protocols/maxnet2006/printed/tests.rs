//! Tests of the integer version: equations checked by hand, then source and router.

use super::*;
use crate::protocol::{PacketKind, Router as _, Source as _};
use crate::protocols::maxnet::demand_inverse;
use crate::testing::{Signals, close, connection};

const THESIS: Numbers = Numbers { alpha: 300, eta: 140, t: 50, rateinc: 1250.0 };

/// `[tcp-maxnet-2006:4.1]` The thesis's example gives 181,000 · 300/28 = 1,939,285 and 181,000,000/50 = 3,620,000.
#[test]
fn xi_of_the_printed_example() {
    assert_eq!(xi_rest(181_000, &THESIS, 28), 1_939_285 - 3_620_000);
}

/// `[tcp-maxnet-2006:eq9]` One step of ξ by hand is 140 · 964,285/784,000 = 172.19. The pull is 50·300·181,000/28 −
/// 181,000,000 + 50·1,700,000 = 96,964,285 − 181,000,000 + 85,000,000 = 964,285, and 784,000 is 1000·28².
#[test]
fn one_step_of_eq9_by_hand() {
    assert_eq!(xi_next(-1_700_000, 181_000, 1, 28, &THESIS), -1_700_000 + 172);
    // Above ξ* the pull is negative: 96,964,285 − 181,000,000 + 50·1,661,430 = −964,215 gives −172.18.
    assert_eq!(xi_next(-1_661_430, 181_000, 1, 28, &THESIS), -1_661_430 - 172);
    // Within 112 units a step is less than one unit of 2⁻¹⁸, and is lost.
    let rest = xi_rest(181_000, &THESIS, 28);
    assert_eq!(xi_next(rest - 100, 181_000, 1, 28, &THESIS), rest - 100);
    // A step of a second would pass ξ*, and stops there.
    assert_eq!(xi_next(-1_700_000, 181_000, 1000, 28, &THESIS), rest);
}

/// `[tcp-maxnet-2006:4.3]` The table has steps of 2⁻¹¹: e^(−1/2048) is 0.0488 % below 1, and all exponents within a
/// step give the same result.
#[test]
fn the_table_has_steps_of_a_twentieth_of_a_per_cent() {
    assert_eq!(tabulated(1e15, 0), 1e15);
    assert_eq!(tabulated(1e15, 127), 1e15);
    assert!((tabulated(1e15, 128) / 1e15 - 0.999_511_84).abs() < 1e-8);
    assert_eq!(tabulated(1e15, -5), 1e15, "ξ above αq/τ");
    // The last of 64,000 records: 10¹⁵·e^(−63,999/2048) is below 32 bit/s.
    assert_eq!(tabulated(1e15, i64::MAX), tabulated(1e15, 63_999 * 128));
    assert!(tabulated(1e15, i64::MAX) < 32.0);
    close(tabulated(1e18, i64::MAX), 1e18 * (-63_999.0_f64 / 2048.0).exp(), 1e-4); // a record is 4.9·10⁻⁴
}

/// `[tcp-maxnet-2006:eq7]` At 1 Gbit/s and 1 ms, the target is 940,000 bits, and 3815 bits are one unit of 2⁻¹⁸ s.
#[test]
fn a_price_moves_in_whole_units() {
    let link = LinkView { id: 0, capacity: Rate::from_bps(1e9), target: None, queue: Volume::ZERO };
    let mut router = Router::new(&Params::default(), &link);
    assert_eq!(router.price, 181_083);
    router.tick(Volume::from_bytes((940_000.0 + 3814.0) / 8.0));
    assert_eq!(router.price, 181_083, "0.38 % above the target is lost");
    router.tick(Volume::from_bytes(1_000_000.0 / 8.0));
    assert_eq!(router.price, 181_083 + 15); // 60,000 bits/3814.7
    router.tick(Volume::ZERO);
    assert_eq!(router.price, 181_083, "p_min");
    // A price of 0.05·ln(10¹⁵/32) s is 407 280.6 units.
    for _ in 0..2 {
        router.tick(Volume::from_bytes(1e9));
        assert_eq!(router.price, 407_280, "p_max");
    }
}

fn link(bps: f64) -> LinkView {
    LinkView { id: 0, capacity: Rate::from_bps(bps), target: None, queue: Volume::ZERO }
}

/// Returns the code of a rate's price at T = 50 ms.
fn price_of(bps: f64) -> Field {
    Field::Price(quantise(demand_inverse(Rate::from_bps(bps), Rate::from_bps(1e15), 0.05)))
}

fn start_of(bps: f64) -> Field {
    Field::StartRate(quantise(-(bps / 1e15).ln()))
}

fn source(params: &Params) -> Source {
    Source::new(params, &connection())
}

fn ack(source: &mut Source, at_ms: u64, echo: Field, base_ms: u64) {
    let now = Instant::ZERO + Duration::from_millis(at_ms);
    source.on_ack(&Ack::new(now, Echo { echo }, Duration::from_millis(base_ms)));
}

/// Returns the window divided by an RTT, in bit/s.
fn rate_of(source: &Source, base_ms: u64) -> f64 {
    (source.limit().window.unwrap() / Duration::from_millis(base_ms)).as_bps()
}

fn shown(source: &Source) -> [f64; 2] {
    let signals = Signals::of(|probe| source.observe(probe));
    ["price", "xi"].map(|name| signals.get(name))
}

/// `[tcp-maxnet-2006:fig5.1, fig5.2, fig5.3, fig5.4]` On a link priced for 10 Gbit/s, the integer code of Fig. 5 gives
/// the same rates as real arithmetic. Only the table's steps and whole packets cause differences.
#[test]
fn quickstart_rises_every_rtt_and_ends_at_the_price() {
    let mut source = source(&Params::default());
    assert_eq!(source.limit(), SendLimit { window: Some(connection().initial_window), pacing: None });
    ack(&mut source, 28, start_of(5e9), 28);
    close(rate_of(&source, 28), 5e9, 1e-3);
    ack(&mut source, 56, price_of(1e10), 28);
    let [q, xi] = shown(&source);
    close(q, 0.05 * 1e5_f64.ln(), 1e-5);
    close(xi, q * (0.3 / 0.028 - 20.0), 1e-5); // eq. 10
    for (ms, gbps) in [(70, 5.0), (84, 5.0), (86, 6.25), (112, 6.25), (114, 7.8125), (141, 7.8125), (169, 9.766)] {
        ack(&mut source, ms, price_of(1e10), 28);
        close(rate_of(&source, 28), gbps * 1e9, 1e-3);
    }
    ack(&mut source, 170, price_of(1e10), 28);
    close(rate_of(&source, 28), 12.207e9, 1e-3);
    ack(&mut source, 171, start_of(5e9), 28); // a second start rate changes nothing
    close(rate_of(&source, 28), 12.207e9, 1e-3);
    ack(&mut source, 171, price_of(1e10), 28);
    close(rate_of(&source, 28), 1e10, 1e-3);
    close(source.limit().pacing.unwrap().as_bps(), 1e10, 1e-3);
}

/// `[tcp-maxnet-2006:fig5.4]` A price that rises by 449 codes in 28 ms holds the start rate; a rise by 447 codes does
/// not. 16,000 · 2⁻¹⁸ per second are 448 codes in 28 ms.
#[test]
fn a_rising_price_holds_the_start_rate() {
    for (rise, held) in [(447, false), (449, true)] {
        let mut source = source(&Params { average: false, ..Params::default() });
        ack(&mut source, 28, start_of(5e8), 28);
        let start = source.window;
        for rtt in 0..4 {
            ack(&mut source, 56 + 28 * rtt, Field::Price(181_083 + rise * rtt as u32), 28);
        }
        assert_eq!(source.window == start, held, "{rise} codes per RTT");
    }
}

/// `[tcp-maxnet-2006:4.5]` After a quarter of an RTT the average has moved by a quarter of the change. After a whole
/// RTT it has moved by the whole change.
#[test]
fn the_source_averages_over_an_rtt() {
    for (average, then) in [(true, 0.75), (false, 0.9)] {
        let mut source = source(&Params { average, ..Params::default() });
        for (ms, price, expected) in [(28, 0.7, 0.7), (35, 0.9, then), (73, 0.9, 0.9)] {
            ack(&mut source, ms, Field::Price(quantise(price)), 28);
            close(shown(&source)[0], expected, 1e-5);
        }
    }
}

/// `[tcp-maxnet-2006:eq12]` An RTT that is 1 ms shorter keeps the rate. Without eq. 12, the rate falls by the factor
/// e^−(qα(1/27 − 1/28)).
#[test]
fn a_shorter_rtt_keeps_the_rate_if_compensated() {
    let moved = 0.05 * 1e5_f64.ln() * 0.3 * (1.0 / 0.027 - 1.0 / 0.028);
    for (compensate, kept) in [(true, 1.0), (false, (-moved).exp())] {
        let mut source = source(&Params { compensate, dt_source: Duration::ZERO, ..Params::default() });
        ack(&mut source, 28, price_of(1e10), 28);
        let before = rate_of(&source, 28);
        close(before, 1e10, 1e-3);
        ack(&mut source, 28, price_of(1e10), 27);
        close(rate_of(&source, 27) / before, kept, 1e-3);
    }
}

/// `[tcp-maxnet-2006:eq9]` A source moves ξ by `xi_next` with the time since the last step.
#[test]
fn a_source_steps_by_eq9() {
    let mut source = source(&Params { average: false, ..Params::default() });
    ack(&mut source, 28, Field::Price(181_000), 28);
    ack(&mut source, 31, Field::Price(185_000), 28);
    let expected = xi_next(xi_rest(181_000, &THESIS, 28), 185_000, 3, 28, &THESIS);
    assert_eq!(shown(&source), [signed_real(185_000), signed_real(expected)]);
    close(signed_real(1), 3.814_697e-6, 1e-6); // 2⁻¹⁸
}

#[test]
fn without_a_router_the_window_stays() {
    let mut source = source(&Params::default());
    let before = source.limit();
    for field in [Field::StartRate(0), Field::Price(0), start_of(1e9)] {
        ack(&mut source, 28, field, 28);
        assert_eq!(source.limit(), before, "{field:?}");
    }
    ack(&mut source, 56, price_of(1e10), 28);
    close(rate_of(&source, 28), 1e10, 1e-3);
}

#[test]
fn windows_are_one_packet_to_max_wnd() {
    let mut source = source(&Params { max_wnd: 100, ..Params::default() });
    for (rate, packets) in [(1e9, 100), (1e4, 1)] {
        ack(&mut source, 28, start_of(rate), 28);
        assert_eq!(source.window, packets);
        source.mode = Mode::Asking;
    }
    // A weight of 2 doubles the rate of a price.
    let mut double = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
    ack(&mut double, 28, price_of(1e9), 28);
    close(rate_of(&double, 28), 2e9, 1e-3);
}

#[test]
fn the_window_waits_for_its_acknowledgements() {
    let mut source = source(&Params { wnd_update_freq: 3, average: false, ..Params::default() });
    ack(&mut source, 28, Field::Price(181_894), 28);
    let steps = [(30, 185_000, false), (32, 185_000, false), (34, 185_000, true)];
    let within_a_millisecond = [(34, 181_894, false), (34, 181_894, false), (34, 181_894, false), (35, 181_894, true)];
    for (ms, price, moves) in steps.into_iter().chain(within_a_millisecond) {
        let before = source.window;
        ack(&mut source, ms, Field::Price(price), 28);
        assert_eq!(source.window != before, moves, "{ms} ms");
    }
}

#[test]
fn a_syn_asks_for_a_start_rate() {
    let syn = Sending::new(Instant::ZERO, PacketKind::Syn, Volume::from_bytes(40.0));
    assert_eq!(source(&Params::default()).stamp(&syn).price, Field::StartRate(0));
    let off = Params { quickstart: false, ..Params::default() };
    assert_eq!(source(&off).stamp(&syn).price, Field::Price(0));
}

/// `[tcp-maxnet-2006:3.1.2, eq7]` A router counts the packets of an interval as its load. The next start rate is 0.96 C
/// less that load, and the price rises by the load above 0.94 C.
#[test]
fn a_router_counts_its_packets() {
    let (params, link) = (Params { epsilon: 0.02, ..Params::default() }, link(1e9));
    let mut router = Router::new(&params, &link);
    let pass = |router: &mut Router, price, bytes| {
        let (mut header, volume) = (Header::from(price), Volume::from_bytes(bytes));
        let (now, kind) = (Instant::ZERO, PacketKind::Data);
        router.on_arrival(&link, &mut Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) });
        header.price
    };
    assert_eq!(router.poll_at(), Instant::ZERO + params.dt);
    assert_eq!(pass(&mut router, Field::Price(0), 60_000.0), Field::Price(181_083));
    assert_eq!(pass(&mut router, Field::Price(200_000), 0.0), Field::Price(200_000));
    let at = router.poll_at();
    router.on_timer(&link, at);
    assert_eq!(router.poll_at(), at + params.dt);
    assert_eq!(pass(&mut router, Field::StartRate(0), 0.0), start_of(4.8e8)); // 0.96 − 0.48 Gbit/s
    pass(&mut router, Field::Price(0), 125_000.0);
    router.on_timer(&link, at);
    assert_eq!(router.price, 181_083 + 15); // 60,000 bits above the target
    assert_eq!(pass(&mut router, Field::StartRate(0), 0.0), start_of(1e9 / 128.0)); // QSminrate
    // A slower link has a higher smallest price.
    router.on_timer(&LinkView { capacity: Rate::from_bps(1e8), ..link }, at);
    assert_eq!(Field::Price(router.price as u32), price_of(1e8));
    assert_eq!((code_of(-1), code_of(1 << 40)), (0, (1 << 23) - 1));
}
