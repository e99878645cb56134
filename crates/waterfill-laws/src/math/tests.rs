//! Errors against values of twice the precision, computed by other means than tables, at 10⁶ arguments a function.

use std::f64::consts::{E, LN_2, LN_10, PI};

use super::double::{self, Double};
use super::*;

const ARGUMENTS: u32 = 1_000_000;

const LN_2_DOUBLE: Double = double::ln(2.0);

/// 1/n, for series.
const PER: [Double; 40] = {
    let mut table = [Double::new(0.0); 40];
    let mut n = 1;
    while n < table.len() {
        table[n] = Double::new(1.0).over(Double::new(n as f64));
        n += 1;
    }
    table
};

/// Whole numbers of 64 bits (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 / two_to(53))
    }

    /// Evenly in the logarithm, of either sign.
    fn of_any_size(&mut self, smallest: f64, largest: f64) -> f64 {
        let size = smallest * (largest / smallest).powf(self.between(0.0, 1.0));
        if self.bits() & 1 == 0 { size } else { -size }
    }

    /// Any positive normal number.
    fn positive(&mut self) -> f64 {
        f64::from_bits(f64::MIN_POSITIVE.to_bits() + self.bits() % (INFINITY_BITS - f64::MIN_POSITIVE.to_bits()))
    }
}

/// e^x: (e^(x/512))^512, from the series.
fn reference_exp(x: Double) -> Double {
    let k = (x.high / LN_2).round();
    let rest = x.plus(LN_2_DOUBLE.times(Double::new(-k))).times(Double::new(two_to(-9)));
    let mut power = Double::new(1.0);
    for n in (1..=9).rev() {
        power = power.times(rest).times(PER[n]).plus(Double::new(1.0));
    }
    for _ in 0..9 {
        power = power.times(power);
    }
    let (first, second) = (two_to(k as i32 / 2), two_to(k as i32 - k as i32 / 2));
    Double { high: power.high * first * second, low: power.low * first * second }
}

/// e^x − 1, from the series where e^x is near 1.
fn reference_exp_m1(x: f64) -> Double {
    if x.abs() > 0.25 {
        return reference_exp(Double::new(x)).plus(Double::new(-1.0));
    }
    let mut sum = Double::new(1.0);
    for n in (2..=24).rev() {
        sum = sum.times(Double::new(x)).times(PER[n]).plus(Double::new(1.0));
    }
    sum.times(Double::new(x))
}

/// ln x: the standard one, corrected by one step of Newton's method; near 1 the series.
fn reference_ln(x: Double) -> Double {
    let above = x.plus(Double::new(-1.0));
    if above.high.abs() < 0.03 {
        let t = above.over(x.plus(Double::new(1.0)));
        let square = t.times(t);
        let sum = (0..10).rev().fold(Double::new(0.0), |sum, n| sum.times(square).plus(PER[2 * n + 1]));
        return sum.times(t).times(Double::new(2.0));
    }
    // Products of very large or very small numbers would lose their second parts.
    for (out_of_range, by) in [(x.high > 1e200, 600), (x.high < 1e-200, -600)] {
        if out_of_range {
            let scaled = Double { high: x.high * two_to(-by), low: x.low * two_to(-by) };
            return reference_ln(scaled).plus(LN_2_DOUBLE.times(Double::new(f64::from(by))));
        }
    }
    let near = x.high.ln();
    let off = reference_exp(Double::new(-near)).times(x).plus(Double::new(-1.0));
    Double::new(near).plus(off).plus(Double::new(-off.high * off.high / 2.0))
}

/// Distance of a result from the exact value, in units of the last place of the exact value.
fn ulps(result: f64, exact: Double) -> f64 {
    let size = exact.high.abs().max(f64::MIN_POSITIVE);
    let exponent = (size.to_bits() >> FRACTION_BITS) as i32 - 1023;
    ((result - exact.high) - exact.low).abs() / two_to(-52) / two_to(exponent)
}

/// Asserts the largest error of a function over its arguments.
fn assert_errors<A: Copy + std::fmt::Debug>(
    name: &str,
    limit: f64,
    arguments: impl Fn(&mut Random) -> A,
    function: impl Fn(A) -> f64,
    exact: impl Fn(A) -> Double,
) {
    let mut random = Random(1);
    let mut worst = (0.0, arguments(&mut random));
    for _ in 0..ARGUMENTS {
        let argument = arguments(&mut random);
        let error = ulps(function(argument), exact(argument));
        assert!(error < f64::INFINITY, "{name} of {argument:?} has error {error}");
        if error > worst.0 {
            worst = (error, argument);
        }
    }
    println!("{name}: at most {:.4} ulp, at {:?}", worst.0, worst.1);
    assert!(worst.0 < limit, "{name} of {:?} has an error of {} ulp", worst.1, worst.0);
}

/// Of either range, at even odds.
fn either(random: &mut Random, one: impl Fn(&mut Random) -> f64, other: impl Fn(&mut Random) -> f64) -> f64 {
    if random.bits() & 1 == 0 { one(random) } else { other(random) }
}

#[test]
fn exp_is_within_its_error() {
    let arguments = |r: &mut Random| either(r, |r| r.between(-640.0, 709.7), |r| r.of_any_size(1e-12, 20.0));
    assert_errors("exp", 0.52, arguments, exp, |x| reference_exp(Double::new(x)));
}

#[test]
fn exp2_is_within_its_error() {
    let arguments = |r: &mut Random| either(r, |r| r.between(-920.0, 1023.9), |r| r.of_any_size(1e-12, 20.0));
    assert_errors("exp2", 0.52, arguments, exp2, |x| reference_exp(LN_2_DOUBLE.times(Double::new(x))));
}

#[test]
fn exp_m1_is_within_its_error() {
    let arguments = |r: &mut Random| either(r, |r| r.between(-40.0, 700.0), |r| r.of_any_size(1e-12, 20.0));
    assert_errors("exp_m1", 1.0, arguments, exp_m1, reference_exp_m1);
}

#[test]
fn logarithms_are_within_their_errors() {
    let near_1 = |r: &mut Random| 1.0 + r.of_any_size(1e-15, 0.6);
    let arguments = |r: &mut Random| either(r, Random::positive, near_1);
    assert_errors("ln", 0.52, arguments, ln, |x| reference_ln(Double::new(x)));
    let log_to = |x: f64, base: Double| reference_ln(Double::new(x)).over(base);
    assert_errors("log2", 0.52, arguments, log2, |x| log_to(x, LN_2_DOUBLE));
    let ln_10 = reference_ln(Double::new(10.0));
    assert_errors("log10", 0.52, arguments, log10, |x| log_to(x, ln_10));
}

#[test]
fn ln_1p_is_within_its_error() {
    let arguments = |r: &mut Random| either(r, |r| r.of_any_size(1e-20, 0.99), |r| r.of_any_size(0.1, 1e300).abs());
    let exact = |x: f64| {
        let t = Double::new(x).over(Double::new(2.0).plus(Double::new(x)));
        let series = Double::new(2.0).times(t);
        if x.abs() < 1e-12 {
            // t³/3 and more is below twice a double's precision
            return series.plus(t.times(t).times(t).times(Double::new(2.0 / 3.0)));
        }
        reference_ln(Double::new(1.0).plus(Double::new(x)))
    };
    assert_errors("ln_1p", 0.8, arguments, ln_1p, exact);
}

#[test]
fn pow_is_within_its_error() {
    let arguments = |r: &mut Random| {
        let x = either(r, Random::positive, |r| r.between(0.5, 2.0));
        let log = if x == 1.0 { 1.0 } else { x.ln() };
        (x, either(r, |r| r.between(-640.0, 708.0) / log, |r| r.between(-0.9, 0.9)))
    };
    let exact = |(x, y): (f64, f64)| reference_exp(reference_ln(Double::new(x)).times(Double::new(y)));
    assert_errors("pow", 0.53, arguments, |(x, y)| pow(x, y), exact);
}

#[test]
fn cbrt_is_within_its_error() {
    let exact = |x: f64| {
        let near = Double::new(x.cbrt());
        let off = Double::new(x).over(near.times(near)).plus(near.negated());
        near.plus(off.over(Double::new(3.0)))
    };
    assert_errors("cbrt", 1.0, |r| r.of_any_size(1e-100, 1e100), cbrt, exact);
}

/// sin x and cos x for |x| up to 4.
fn reference_circle(x: f64) -> (Double, Double) {
    let square = Double::new(x).times(Double::new(-x));
    let series = |first: usize| {
        let terms = (0..18).rev().map(|n| PER[2 * n + first + 1].times(PER[2 * n + first + 2]));
        terms.fold(Double::new(1.0), |sum, by| sum.times(square).times(by).plus(Double::new(1.0)))
    };
    (series(1).times(Double::new(x)), series(0))
}

#[test]
fn circular_functions_are_within_their_errors() {
    let arguments = |r: &mut Random| r.between(-PI, PI);
    assert_errors("sin", 1.0, arguments, sin, |x| reference_circle(x).0);
    assert_errors("cos", 1.0, arguments, cos, |x| reference_circle(x).1);
    let exact_asin = |x: f64| {
        let near = x.asin();
        let (sine, cosine) = reference_circle(near);
        let off = Double::new(x).plus(sine.negated()).over(cosine);
        let bend = off.times(off).times(Double::new(near.tan() / 2.0));
        Double::new(near).plus(off).plus(bend)
    };
    assert_errors("asin", 1.0, |r| r.between(-0.999, 0.999), asin, exact_asin);
}

#[test]
fn the_reference_agrees_with_printed_constants() {
    // OEIS A001113, A002162, A002392: two doubles each, their sum right to 29 digits.
    let constants = [
        (reference_exp(Double::new(1.0)), E, 1.445_646_891_729_250_2e-16),
        (LN_2_DOUBLE, LN_2, 2.319_046_813_846_299_6e-17),
        (reference_ln(Double::new(2.0)), LN_2, 2.319_046_813_846_299_6e-17),
        (reference_ln(Double::new(10.0)), LN_10, -2.170_756_223_382_249_4e-16),
    ];
    for (found, high, low) in constants {
        assert_eq!(found.high, high);
        assert!((found.low - low).abs() < 1e-29, "{high}: {:e} and {low:e}", found.low);
    }
}

#[test]
fn special_values_are_as_ieee_754_says() {
    let (inf, nan, tiny) = (f64::INFINITY, f64::NAN, f64::from_bits(1));
    let same = |found: f64, expected: f64| {
        assert!(
            found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()),
            "{found} for {expected}"
        );
    };
    for (x, power) in [(0.0, 1.0), (-0.0, 1.0), (tiny, 1.0), (inf, inf), (-inf, 0.0), (710.0, inf), (-746.0, 0.0)] {
        same(exp(x), power);
    }
    same(exp(1e308), inf);
    same(exp(-745.1), tiny);
    same(exp(nan), nan);
    for (x, log) in [(1.0, 0.0), (0.0, -inf), (-0.0, -inf), (inf, inf), (-1.0, nan), (-inf, nan), (nan, nan)] {
        same(ln(x), log);
        same(log2(x), log);
        same(log10(x), log);
        same(ln_1p(x - 1.0), log);
    }
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, tiny, 1e300, -1e300, inf, -inf, nan];
    for x in values {
        for y in values {
            same(pow(x, y), x.powf(y));
        }
    }
    for n in -1022..=1023 {
        same(exp2(f64::from(n)), two_to(n));
        same(log2(two_to(n)), f64::from(n));
    }
    for n in -22..=22 {
        same(log10(ten_to(n)), f64::from(n));
        same(ten_to(n), format!("1e{n}").parse().unwrap());
        if n >= 0 {
            same(pow(10.0, f64::from(n)), ten_to(n));
        }
    }
}

#[test]
fn results_without_full_precision_are_rounded_once_more_at_most() {
    let unit = f64::from_bits(1);
    let mut random = Random(2);
    for _ in 0..100_000 {
        let x = random.between(-745.0, -640.0);
        let exact = reference_exp(Double::new(x + 64.0)); // e^64 times too large
        let units = (exp(x) / unit) * (E.powi(64)) / (exact.high / unit);
        assert!((units - 1.0).abs() < (0.76 * unit / exp(x)).max(1e-14) * 1.01, "{x}: {units}");
        let small = random.between(1.0, two_to(52)).floor() * unit;
        assert!((ln(small) - small.ln()).abs() < 3e-13, "{small:e}");
    }
}

#[test]
fn functions_keep_the_order_of_their_arguments() {
    let mut random = Random(3);
    for _ in 0..ARGUMENTS {
        let x = random.positive();
        let next = f64::from_bits(x.to_bits() + 1);
        assert!(ln(x) <= ln(next), "ln at {x:e}");
        let x = random.of_any_size(1e-9, 700.0);
        let next = if x > 0.0 { f64::from_bits(x.to_bits() + 1) } else { f64::from_bits(x.to_bits() - 1) };
        assert!(exp(x) <= exp(next), "exp at {x:e}");
    }
}

#[test]
fn a_logarithm_leads_back_to_its_number() {
    let mut random = Random(4);
    for _ in 0..ARGUMENTS {
        let x = random.positive();
        let log = ln(x);
        // Half a unit of ln x, and one of e^x.
        let off = (exp(log) / x - 1.0).abs();
        assert!(off < 0.52 * f64::EPSILON * log.abs() + f64::EPSILON, "{x:e}: {off:e}");
    }
}

#[test]
fn bits_are_the_same_on_every_target() {
    // Arguments, function, and the hash of its results.
    type Function = (fn(&mut Random) -> f64, fn(f64) -> f64, u64);
    let functions: [Function; 13] = [
        (|r| r.between(-740.0, 700.0), exp, 0xa6e6_c9fe_0d6c_810a),
        (|r| r.between(-1000.0, 1000.0), exp2, 0x6a45_26c2_80b7_6b94),
        (|r| r.between(-30.0, 30.0), exp_m1, 0x12e7_cf48_332c_266e),
        (Random::positive, ln, 0x7644_18e1_2f26_7918),
        (|r| r.between(0.9, 1.1), ln, 0x2cca_7623_a500_f99a),
        (|r| r.between(-0.9, 2.0), ln_1p, 0x99fc_35fe_b8a5_a7d2),
        (Random::positive, log2, 0xaa94_b99a_3a49_9d54),
        (Random::positive, log10, 0x88d4_981c_3658_d934),
        (|r| r.between(0.0, 1e6), |x| pow(x, 0.72), 0x9726_f9f4_1eca_bbac),
        (Random::positive, cbrt, 0xd39d_7b33_3bb3_d919),
        (|r| r.between(-100.0, 100.0), sin, 0xc4ed_cc72_b5f4_558e),
        (|r| r.between(-100.0, 100.0), cos, 0x7d72_65fb_def8_33d6),
        (|r| r.between(-1.0, 1.0), asin, 0x1bdc_e55f_e8f8_8484),
    ];
    let mut random = Random(5);
    for (i, (argument, function, expected)) in functions.into_iter().enumerate() {
        // FNV-1a, one word at a time.
        let hash = (0..100_000).fold(0xcbf2_9ce4_8422_2325_u64, |hash, _| {
            (hash ^ function(argument(&mut random)).to_bits()).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!(hash, expected, "function {i}: {hash:#018x}");
    }
}
