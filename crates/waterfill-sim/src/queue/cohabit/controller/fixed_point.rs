//! Tests of the controllers against their fixed-point version, `kernel/cohabit.h`. Each function gets 10⁵ calls, with
//! this module's state before the call. The tolerances follow from the scales in that file.

use rand_core::SeedableRng as _;
use waterfill_laws::cohabit::{self as fixed, Link, Verdict};

use super::*;

const CALLS: u32 = 100_000;
/// Fixed-point scale of fractions, 2³². `LOG` is 2³⁴ and `TIME` is 2²⁴.
const FRACTION: f64 = 4_294_967_296.0;
const LOG: f64 = 17_179_869_184.0;
const TIME: f64 = 16_777_216.0;
/// Relative error of an exponential. `UNIT` is the rounding of a fraction.
const EXP: f64 = 1.1e-6;
const UNIT: f64 = 1.0 / FRACTION;

/// Draws a number from a range that may span orders of magnitude.
fn log_uniform(rng: &mut Pcg64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(uniform(rng))
}

fn params(tuning: Tuning, depth: Duration, interval: Duration) -> fixed::Params {
    fixed::Params {
        capacity: 1_000_000_000,
        target: 1_000_000,
        interval: (interval.as_ps() / 1_000_000) as u32,
        period: 2_000_000,
        controller: fixed::IMPROVED,
        weight: 1000,
        aim: (tuning.aim * 1e6).round() as u32,
        integral: (tuning.integral * 1e3).round() as u32,
        proportional: (tuning.proportional * 1e3).round() as u32,
        depth: (depth.as_ps() / 1_000_000) as u32,
        ..fixed::Params::default()
    }
}

fn signed(x: f64, scale: f64) -> i64 {
    (x * scale).round() as i64
}

fn unsigned(x: f64, scale: f64) -> u64 {
    (x * scale).round() as u64
}

/// Returns the same random measurements of an interval for both versions. Rates are whole bit/s, and the share is a
/// multiple of 2⁻³².
fn measured(rng: &mut Pcg64) -> (Measured, fixed::Measured) {
    let us = 1000 * (1 + (log_uniform(rng, 1.0, 1000.0)) as u64);
    let usable = log_uniform(rng, 1e6, 1e11).round();
    let part = unsigned(0.02 + 0.96 * uniform(rng), FRACTION);
    let explicit_share = (usable * part as f64 / FRACTION).floor();
    let mut rate = |of: f64| (of * log_uniform(rng, 0.1, 3.0)).round();
    let (explicit, tcp) = (rate(explicit_share), rate(usable - explicit_share));
    let other = if uniform(rng) < 0.5 { 0.0 } else { (usable * 0.1 * uniform(rng)).round() };
    let tcp_flows = log_uniform(rng, 1.0, 1e4) as u32;
    let present = uniform(rng) < 0.95;
    let bps = Rate::from_bps;
    let real = Measured {
        lasted: Duration::from_micros(us),
        explicit: bps(explicit),
        tcp: bps(tcp),
        total: bps(explicit + tcp + other),
        usable: bps(usable),
        tcp_flows: f64::from(tcp_flows),
        explicit_share: bps(explicit_share),
        tcp_share: bps(usable - explicit_share),
        both: present,
        present,
    };
    let integer = fixed::Measured {
        us,
        rates: [explicit as u64, tcp as u64, other as u64],
        packets: [0; 3],
        usable: usable as u64,
        explicit_part: part,
        explicit_share: explicit_share as u64,
        tcp_flows,
        both: present.into(),
        present: present.into(),
    };
    (real, integer)
}

#[test]
fn the_improved_update_agrees_with_its_fixed_point_version() {
    let mut rng = Pcg64::seed_from_u64(1);
    let (mut skipped, mut limited, mut lending, mut largest) = (0, 0, 0, 0.0_f64);
    for _ in 0..CALLS {
        let tuning = Tuning {
            aim: ((0.5 + 0.5 * uniform(&mut rng)) * 1e6).round() / 1e6,
            integral: (log_uniform(&mut rng, 0.05, 5.0) * 1e3).round() / 1e3,
            proportional: (3e3 * uniform(&mut rng)).round() / 1e3,
        };
        let (depth, interval) = (Duration::from_millis(300), Duration::from_millis(28));
        let params = params(tuning, depth, interval);
        let (m, integer) = measured(&mut rng);
        let mut real = Improved::new(tuning, depth, interval);
        real.active = true;
        real.probability = unsigned(log_uniform(&mut rng, 2e-5, 0.4), FRACTION) as f64 / FRACTION;
        real.error = signed(2.0 * uniform(&mut rng) - 1.0, FRACTION) as f64 / FRACTION;
        real.used = unsigned(log_uniform(&mut rng, 0.3, 2.0), FRACTION) as f64 / FRACTION;
        let part = integer.explicit_part as f64 / FRACTION;
        real.lent =
            if uniform(&mut rng) < 0.5 { 0.0 } else { (part * uniform(&mut rng) * FRACTION).round() / FRACTION };
        real.limited_share = (uniform(&mut rng) * 0.1 * FRACTION).round() / FRACTION;
        (real.arrived, real.limited) = (1 + (1e4 * uniform(&mut rng)) as u32, 0);
        real.limited = (f64::from(real.arrived) * 0.2 * uniform(&mut rng)) as u32;
        let mut link = Link {
            active: 1,
            probability: unsigned(real.probability, FRACTION),
            log: unsigned(-real.probability.ln(), LOG),
            error: signed(real.error, FRACTION),
            used: unsigned(real.used, FRACTION),
            lent: unsigned(real.lent, FRACTION),
            limited_share: unsigned(real.limited_share, FRACTION),
            arrived: real.arrived.into(),
            limited: real.limited.into(),
            ..Link::new(&params, 0)
        };
        let (before, limited_before) = (real.used, real.limited_share);
        let limited_now = f64::from(real.limited) / f64::from(real.arrived);
        let p = real.probability;
        real.update(&m);
        link.update(&params, &integer, 0);

        assert_eq!(link.active != 0, real.active);
        let used = m.total / m.usable;
        let used_tolerance = (used - before).abs() * EXP + 4.0 * UNIT;
        assert!((link.used as f64 / FRACTION - real.used).abs() <= used_tolerance, "{real:?} {link:?}");
        // Twice the use's error for as long as the interval, and the share is a whole number of 2^-32 in C.
        let dt = m.lasted.as_secs();
        let lent_tolerance = 2.0 * dt * used_tolerance + 1.0 / m.usable.as_bps() + 4.0 * UNIT;
        assert!((link.lent as f64 / FRACTION - real.lent).abs() <= lent_tolerance, "{real:?} {link:?}");
        let share_tolerance = m.usable.as_bps() * lent_tolerance + 2.0;
        assert!((link.share as f64 - real.share.as_bps()).abs() <= share_tolerance, "{real:?} {link:?}");
        // x/r <= 2 where it is not clamped; r is a whole number of bit/s.
        let reference = real.share.as_bps() * tuning.aim;
        let error_tolerance = 2.0 * (share_tolerance + 1.0) / reference + 2.0 * UNIT;
        let average_tolerance = error_tolerance + 2.0 * EXP + 2.0 * UNIT;
        let error = link.error as f64 / FRACTION;
        assert!((error - real.error).abs() <= average_tolerance, "{real:?} {link:?}");
        let limited_tolerance = (limited_now - limited_before).abs() * EXP + 4.0 * UNIT;
        assert!((link.limited_share as f64 / FRACTION - real.limited_share).abs() <= limited_tolerance);
        lending += u32::from(real.lent > 0.0);
        if m.present && real.error.abs() <= average_tolerance {
            skipped += 1; // on the edge of two rules
            continue;
        }
        // The limit's error is a quotient of two numbers, below 2 where it is not clamped; p is the same in both.
        let limit_tolerance = limited_tolerance / p + 2.0 * UNIT;
        let change = tuning.integral * dt * error_tolerance.max(limit_tolerance)
            + tuning.proportional * 2.0 * average_tolerance
            + 16.0 * UNIT;
        let relative = (link.probability as f64 / FRACTION / real.probability - 1.0).abs();
        if m.present {
            assert!(relative <= change + EXP + UNIT / real.probability, "{relative} {change} {real:?} {link:?}");
            largest = largest.max(relative);
            limited += u32::from(real.error > 0.0 && real.limited_share > real.probability);
        } else {
            assert_eq!(link.probability, 0);
        }
    }
    eprintln!("largest relative difference of p: {largest:.2e}; {limited} by the limit, {lending} lending");
    assert!(skipped < CALLS / 1000, "{skipped} on an edge");
    assert!(limited > CALLS / 20 && lending > CALLS / 20, "{limited} {lending}");
}

#[test]
fn decisions_agree_with_the_fixed_point_version() {
    let mut rng = Pcg64::seed_from_u64(2);
    let (mut counts, mut edges) = ([0; 3], 0);
    for _ in 0..CALLS {
        let tuning = Tuning { aim: 0.9, integral: 0.5, proportional: 1.0 };
        let depth = Duration::from_millis(1 + (999.0 * uniform(&mut rng)) as u64);
        let interval = Duration::from_millis(1 + (199.0 * uniform(&mut rng)) as u64);
        let (params, flows) = (params(tuning, depth, interval), log_uniform(&mut rng, 1.0, 1e3).floor());
        let share = log_uniform(&mut rng, 1e5, 1e11).round();
        let depth_bytes = share / 8.0 * depth.as_secs();
        let now = Instant::from_secs(100.0);
        let elapsed = Duration::from_ps(1000 * (log_uniform(&mut rng, 1.0, 1e9) as u64));
        let reacts = 1000 * (2e6 * uniform(&mut rng)) as u64;
        let early = EARLY_FILL + 0.5 * uniform(&mut rng);
        let mut real = Improved {
            active: true,
            probability: unsigned(log_uniform(&mut rng, 1e-5, 0.5), FRACTION) as f64 / FRACTION,
            share: Rate::from_bps(share),
            excess: Volume::from_bytes((1.3 * depth_bytes * uniform(&mut rng)).round()),
            drained: now.before(elapsed),
            flows,
            reacted: Instant::from_ps(now.as_ps() - 1_000_000_000 + reacts),
            early,
            pressure: unsigned(1.2 * uniform(&mut rng), FRACTION) as f64 / FRACTION,
            next_signal: 0.5 + unsigned(uniform(&mut rng), FRACTION) as f64 / FRACTION,
            ..Improved::new(tuning, depth, interval)
        };
        let start = Link::new(&params, 0);
        let per_byte = unsigned(8e9 / share, TIME).max(1);
        let mut link = Link {
            active: 1,
            probability: unsigned(real.probability, FRACTION),
            share: share as u64,
            per_byte,
            per_flow: (FRACTION / (2.0 * flows)) as u64,
            reaction: (2.0 * interval.as_secs() * 1e9 / flows) as u64,
            excess: unsigned(real.excess.as_bytes(), 8e9 / share * TIME),
            drained: real.drained.as_ps() / 1000,
            reacted: real.reacted.as_ps() / 1000,
            early: unsigned(early, start.depth as f64),
            pressure: unsigned(real.pressure, FRACTION),
            next_signal: unsigned(real.next_signal, FRACTION),
            ..start
        };
        let bytes = 40 + (1460.0 * uniform(&mut rng)) as u16;
        let random = (uniform(&mut rng.clone()) * FRACTION) as u32;
        let old = real.excess;
        let fill =
            ((old - real.share * elapsed).max(Volume::ZERO) + Volume::from_bytes(bytes.into())) / (real.share * depth);
        let decision = real.decide(now, bytes, &mut rng);
        let markable = uniform(&mut rng) < 0.5;
        let params = fixed::Params { ecn: 1, ..params };
        let verdict = link.decide(&params, now.as_ps() / 1000, bytes.into(), 1, markable, random);
        // The time per byte is a whole number of 2^-24 ns; a time, one of ns in C.
        let tolerance = 0.6 / per_byte as f64 + 1e-9 / depth.as_secs() + 1e-9;
        let at_edge = (fill - 1.0).abs() < tolerance
            || (fill - real.early).abs() < 2.0 * tolerance
            || (fill - early).abs() < 2.0 * tolerance;
        let expected = match decision {
            Decision::Admit => Verdict::Admit,
            Decision::Signal if markable => Verdict::Mark,
            Decision::Signal | Decision::Drop => Verdict::Drop,
        };
        if at_edge && verdict != expected {
            edges += 1;
            continue;
        }
        assert_eq!(verdict, expected, "{fill} {real:?} {link:?}");
        counts[expected as usize] += 1;
        let excess = link.excess as f64 / per_byte as f64;
        let wanted = (old - real.share * elapsed).max(Volume::ZERO).as_bytes()
            + if expected == Verdict::Drop { 0.0 } else { f64::from(bytes) };
        assert!((excess - wanted).abs() <= wanted * tolerance + share * 1e-9 + 1.0, "{excess} {wanted} {real:?}");
        let early = link.early as f64 / start.depth as f64;
        assert!((early - real.early).abs() <= 2.0 * tolerance + 4.0 * UNIT, "{early} {fill} {real:?} {link:?}");
        assert_eq!((link.pressure == 0, link.limited), (real.pressure == 0.0, real.limited.into()));
        assert!((link.next_signal as f64 / FRACTION - real.next_signal).abs() <= UNIT);
    }
    assert!(edges < CALLS / 1000, "{edges} on an edge");
    assert!(counts.iter().all(|&n| n > CALLS / 100), "{counts:?}");
}

#[test]
fn the_papers_controller_agrees_with_its_fixed_point_version() {
    let factors = (0.9999, 1.0001);
    let log = |x: f64| unsigned(x.ln().abs(), LOG);
    for update in [UpdateSpec::Interval, UpdateSpec::Packet { packets: PacketClass::All }] {
        let mut rng = Pcg64::seed_from_u64(3);
        let mut params = params(
            Tuning { aim: 1.0, integral: 1.0, proportional: 1.0 },
            Duration::from_millis(300),
            Duration::from_millis(28),
        );
        params.controller = fixed::PAPER;
        (params.initial_log, params.decrease_log, params.increase_log) = (log(0.001), log(factors.0), log(factors.1));
        (params.threshold, params.update) = (970_000, u32::from(update != UpdateSpec::Interval));
        let mut real = Paper {
            initial: 0.001,
            decrease: factors.0,
            increase: factors.1,
            threshold: 0.97,
            update: Update::new(update),
            factor: 1.0,
            probability: 0.001,
            active: false,
        };
        let (mut link, mut applied, mut resets) = (Link::new(&params, 0), 0_u64, 0);
        for _ in 0..CALLS {
            let (mut m, mut integer) = measured(&mut rng);
            // Below the threshold now and then; random whole packets in the interval.
            let idle = uniform(&mut rng) < 1e-3;
            if !idle {
                let total = m.usable.as_bps().max(m.total.as_bps()).ceil();
                integer.rates[2] += (total - m.total.as_bps()) as u64;
                m.total = Rate::from_bps(integer.rates.iter().sum::<u64>() as f64);
            }
            let edge = (m.total.as_bps() - 0.97 * m.usable.as_bps()).abs() < 2.0;
            if edge {
                continue;
            }
            let packets = (20.0 * uniform(&mut rng)) as u64;
            integer.packets[0] = packets;
            for _ in 0..packets {
                real.on_packet(Instant::ZERO, Some(Class::Explicit));
            }
            real.update(&m);
            link.update(&params, &integer, 0);
            assert_eq!(link.active != 0, real.active);
            applied = if real.probability == 0.001 { 0 } else { applied + packets + 1 };
            resets += u32::from(applied == 0);
            if !real.active || real.probability < 1e-8 {
                continue;
            }
            // ln D_drop and ln I_drop are rounded to 2^-34 / 2, and a float's product to 2^-53, each time.
            let tolerance = applied as f64 * (0.5 / LOG + 2e-16) + EXP + UNIT / real.probability;
            let relative = (link.probability as f64 / FRACTION / real.probability - 1.0).abs();
            assert!(relative <= tolerance, "{relative} {tolerance} {applied} {real:?} {link:?}");
        }
        assert!(resets > 10, "{resets}");
    }
}
