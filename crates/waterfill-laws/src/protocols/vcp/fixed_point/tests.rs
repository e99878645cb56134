//! Comparison of the fixed-point version of VCP with the law in real numbers, in 10⁵ calls with the same inputs.

use super::*;
use crate::kernel::{Tcp, VALUE_MAX, Value};
use crate::protocol::{Ack, Connection, Event, LinkView, PacketKind, Passing, Sending};
use crate::protocols::vcp::Load;
use crate::protocols::vcp::source::{alpha_scaled, xi_scaled};
use crate::registry::{AnyEcho, AnyHeader, AnyParams};
use crate::testing::{self, Signals, answer_to, close, connection, echo_of, header_of, numbers, spread, value_of};
use crate::units::{Duration, Instant, Rate, Volume};

fn real_and_fixed(params: &Params) -> [AnyParams; 2] {
    testing::real_and_fixed(|arithmetic| AnyParams::Vcp(Params { arithmetic, ..params.clone() }))
}

/// Returns the wire value of a load code; 0 means that no router wrote it.
fn value(code: u8) -> Value {
    let mut value = [0; VALUE_MAX];
    value[2] = code;
    value
}

fn some_params(random: &mut impl FnMut(u64) -> u64) -> Params {
    let t_q_ms = 1 + random(20);
    Params {
        t_q: Duration::from_millis(t_q_ms),
        t_rho: Duration::from_millis(t_q_ms * (1 + random(20))),
        kappa_q: random(3000) as f64 / 1e3,
        gamma: (800_000 + random(200_001)) as f64 / 1e6,
        queue_weight: (50_000 + random(950_001)) as f64 / 1e6,
        xi: (10_000 + random(500_000)) as f64 / 1e6,
        alpha: (100 + random(5000)) as f64 / 1e3,
        beta: (500_000 + random(450_000)) as f64 / 1e6,
        freeze: [Freeze::Always, Freeze::Overload][random(2) as usize],
        whole_percent: random(2) == 0,
        t_d: Duration::from_millis(50 + random(300)),
        ..Params::default()
    }
}

/// `[vcp-2005:load-factor, code]` The real and the fixed-point router agree on load factors within the scale of their
/// volumes, and on codes except next to a level.
#[test]
fn routers_agree() {
    let mut random = numbers(1);
    let (mut codes, mut others) = ([0; 4], 0);
    for _ in 0..100 {
        let params = some_params(&mut random);
        let capacity = spread(&mut random, 1e6, 1e12) as f64;
        let target = (random(4) == 0).then_some(0.9);
        let mut link = LinkView { id: 0, capacity: Rate::from_bps(capacity), target, queue: Volume::ZERO };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| params.router(&link));
        let volume = capacity * params.t_rho.as_secs() / 8.0;
        // Volumes are truncated to 2⁻⁸ B, the mean queue to a byte, κ times it again; per cent to 2⁻⁷ of 2⁻⁸ B.
        let bound = (4.0 + params.kappa_q) / volume + 1.0 / f64::from(1 << 24);
        let load_of_step = random(200) as f64 / 100.0;
        let mut now = Instant::ZERO;
        for _ in 0..1000 {
            let high = random(2) == 1;
            let mut seen = AnyHeader::Vcp(if high { Load::High } else { Load::Low });
            let mut written = header_of::<Vcp>(value(if high { Load::High as u8 } else { 0 }));
            let kind = PacketKind::Data;
            let bytes = (volume * load_of_step * random(100) as f64 / 1000.0).round();
            for departs in [false, true] {
                let volume = Volume::from_bytes(if departs { 0.0 } else { bytes });
                let mut passing = Passing { now, volume, packets: 1.0, kind, header: Some(&mut seen) };
                if departs {
                    real.on_departure(&link, &mut passing);
                } else {
                    real.on_arrival(&link, &mut passing);
                    fixed.on_arrival(&link, &mut Passing { header: Some(&mut written), ..passing });
                }
            }
            let AnyHeader::Vcp(seen) = seen else { unreachable!("a real law's") };
            let (seen, written) = (seen as u8, value_of(&written)[2]);
            codes[usize::from(written)] += 1;
            let [expected, factor] =
                [&real, &fixed].map(|router| Signals::of(|p| router.observe(p)).get("load_factor"));
            let bound = bound * (1.0 + expected);
            let off = (factor - expected).abs();
            // Whole per cent of a load factor next to one may be the next; that is rare.
            let next_per_cent = params.whole_percent && off > bound;
            assert!(off <= bound || next_per_cent && off <= 0.01 + bound, "{factor} and {expected}");
            others += u32::from(next_per_cent);
            let near_level = [0.8, 1.0].iter().any(|level| (expected - level).abs() <= bound);
            assert!(written == seen || near_level || next_per_cent, "{written:?} and {seen:?} at {expected}");
            now += Duration::from_micros(random(params.t_rho.as_ps() / 5_000_000));
            link.queue = Volume::from_bytes((random(3) * random(1 + volume as u64 / 2)) as f64);
            for router in [&mut real, &mut fixed] {
                while router.poll_at() <= now {
                    let due = router.poll_at();
                    router.on_timer(&link, due);
                }
            }
        }
    }
    assert!(codes[1..].iter().all(|&count| count > 1000), "{codes:?}");
    assert!(others < 100, "{others} of 100,000");
}

/// `[vcp-2005:MI, AI, MD]` The real and the fixed-point source agree on windows within the precision of ξ_s and α_rate,
/// also after losses, timeouts and freezes.
#[test]
fn sources_agree() {
    let mut random = numbers(2);
    for _ in 0..100 {
        let params = some_params(&mut random);
        let weight = [1.0, 2.0][random(2) as usize];
        let connection = Connection { weight, ..connection() };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| params.source(&connection));
        let rtt = Duration::from_micros(spread(&mut random, 100.0, 1e6));
        let (mut now_us, mut off, mut before) = (1, 1e-9, 10.0);
        for _ in 0..1000 {
            now_us += random(params.t_rho.as_ps() / 20_000_000 + 2);
            let now = Instant::ZERO + Duration::from_micros(now_us);
            let load = [Load::Low, Load::High, Load::High, Load::Over][random(4) as usize];
            let (event, kind) = (random(300), PacketKind::Ack);
            let acked = Volume::from_bytes(if random(20) == 0 { 0.0 } else { 1500.0 });
            let echoes = [AnyEcho::Vcp(load), echo_of::<Vcp>(value(load as u8))];
            for (source, echo) in [&mut real, &mut fixed].into_iter().zip(&echoes) {
                match event {
                    0 => source.on_event(now, Event::Loss),
                    1 => source.on_event(now, Event::Timeout),
                    _ => drop(source.on_ack(&Ack { kind, acked, ..Ack::new(now, echo, rtt) })),
                }
            }
            let [expected, window] = [&real, &fixed].map(|source| source.limit().window.unwrap().as_bytes() / 1500.0);
            off += 5e-5 * (expected - before).abs() / expected + 1e-9;
            before = expected;
            // A window in bytes is truncated, and before that to 2⁻¹⁶ packets.
            assert!((window - expected).abs() < off * expected + 1.03 / 1500.0, "{window} and {expected}, {off}");
        }
    }
}

/// `[vcp-2005:MI-scaling, AI-scaling]` Single acknowledgements of a large window show the scaled ξ and α of the law in
/// real numbers.
#[test]
fn scaling_agrees() {
    let mut random = numbers(5);
    for _ in 0..10_000 {
        let params = Params { arithmetic: Arithmetic::Kernel, ..some_params(&mut random) };
        let law = Vcp::law();
        let words = law.params(&Vcp::numbers(&params, 1.0));
        let rtt_us = spread(&mut random, 100.0, 4e6) as u32;
        let gained = |load: u8| {
            let mut source = law.source();
            law.source_init(&words, &mut source, 1500, 1500 << 10);
            let before = source.words()[0];
            let tcp = Tcp { now_us: 1, srtt_us: 8 * rtt_us, acked: 1, ..Tcp::default() };
            law.ack(&words, &mut source, &tcp, Some(&value(load)));
            (source.words()[0] - before) as f64 / (1u64 << 32) as f64
        };
        let rtt = f64::from(rtt_us) * 1e-6;
        let [xi, alpha] = [
            xi_scaled(params.xi, rtt, params.t_rho.as_secs()),
            alpha_scaled(params.alpha, rtt, params.t_d.as_secs(), (0.02, 0.5)).min(1024.0),
        ];
        close(gained(1), xi, 4e-5 + 4e-10 / xi);
        close(gained(2) * 1024.0, alpha, 1e-6 + 1e-6 / alpha);
    }
}

/// `[vcp-2005:AI]` Many acknowledgements at once have the same effect as single acknowledgements, within a hundredth.
#[test]
fn acknowledgements_together_count_as_one_by_one() {
    let law = Vcp::law();
    let words = law.params(&Vcp::numbers(&Params::default(), 1.0));
    for (window, n, load) in [(16, 1, 2), (16, 8, 2), (100, 50, 2), (1000, 1000, 2), (100, 50, 1), (10, 10, 3)] {
        let gained = |calls: u32, acked: u32| {
            let mut source = law.source();
            law.source_init(&words, &mut source, 1500, 1500 * window);
            let before = source.words()[0];
            for call in 0..calls {
                let tcp = Tcp { now_us: u64::from(1 + call), srtt_us: 8 * 200_000, acked, ..Tcp::default() };
                law.ack(&words, &mut source, &tcp, Some(&value(load)));
            }
            source.words()[0] as f64 - before as f64
        };
        close(gained(1, n), gained(n, 1), 0.01);
    }
}

/// A window does not grow if the application does not fill it, or if there is no echo. An unused window still decreases
/// at overload.
#[test]
fn an_unused_window_does_not_grow() {
    let law = Vcp::law();
    let words = law.params(&Vcp::numbers(&Params::default(), 1.0));
    let window = |app_limited, echo: Option<u8>| {
        let mut source = law.source();
        law.source_init(&words, &mut source, 1500, 15_000);
        let tcp = Tcp { now_us: 1, srtt_us: 8000, acked: 1, app_limited, ..Tcp::default() };
        let echo = echo.map(value);
        law.ack(&words, &mut source, &tcp, echo.as_ref());
        source.words()[0] >> 32
    };
    assert_eq!([window(1, Some(1)), window(1, Some(2)), window(0, None)], [10; 3]);
    assert_eq!(window(1, Some(3)), 8);
}

/// A receiver echoes the last value, and a source sends the value for "no router wrote".
#[test]
fn the_last_value_is_echoed() {
    let [_, params] = real_and_fixed(&Params::default());
    for code in 0..4 {
        assert_eq!(answer_to::<Vcp>(&params, &[value(3), value(code)]), value(code));
    }
    assert_eq!(answer_to::<Vcp>(&params, &[]), value(0));
    let mut source = params.source(&connection());
    let sending = Sending::new(Instant::ZERO, PacketKind::Syn, Volume::from_bytes(60.0));
    assert_eq!(source.stamp(&sending), header_of::<Vcp>(value(0)));
}
