//! Tests of the interface, for every law that has a kernel version.

use super::{Field, Law};
use crate::testing::{close, numbers, spread};

/// Every law's parameters are the fields of C's `struct law_params`, in their order and without padding.
#[test]
fn parameters_are_those_of_each_law() {
    for (name, law) in Law::all() {
        for set in Law::parameter_sets(name) {
            let mut end = 0;
            let mirror = set.iter().map(|field| {
                let (name, size) = match *field {
                    Field::U32(name, _) => (name, 4),
                    Field::U64(name, _) => (name, 8),
                };
                end += size;
                (name.to_owned(), end - size, size)
            });
            assert_eq!(law.params_fields(), mirror.collect::<Vec<_>>(), "{name}");
        }
        assert!(!Law::parameter_sets(name).is_empty(), "{name}");
    }
}

/// Values fit the option, and numbers on the wire are each law's own.
#[test]
fn laws_have_numbers_and_sizes() {
    let laws = Law::all();
    for (i, (name, law)) in laws.iter().enumerate() {
        assert!((3..=15).contains(&law.forward_bytes()) && (3..=15).contains(&law.echo_bytes()), "{name}");
        assert!(laws[..i].iter().all(|(_, other)| other.number() != law.number()), "{name}");
    }
}

/// A target of 0 is the law's own: its default, its parameter gamma, or the whole rate.
#[test]
fn a_target_of_0_is_the_laws_own() {
    for (name, law) in Law::all() {
        for set in Law::parameter_sets(name) {
            let gamma = set.iter().find_map(|field| match *field {
                Field::U32("gamma", value) => Some(value),
                _ => None,
            });
            let own = match name {
                "maxnet" => 900_000,
                "maxnet2006" => 940_000,
                "vcp" | "jetmax" => gamma.expect("a parameter of this law"),
                _ => 1_000_000,
            };
            let [zero, same, other] = [0, own, own / 2].map(|target| {
                let mut link = law.link();
                law.link_set(&mut link, &law.params(&set), 100_000_000, target);
                link
            });
            assert_eq!(zero, same, "{name}");
            assert_ne!(zero, other, "{name}");
        }
    }
}

#[allow(unsafe_code, reason = "pure functions of integers")]
mod fixed {
    unsafe extern "C" {
        pub(super) safe fn waterfill_fixed_log2(n: u64) -> u64;
        pub(super) safe fn waterfill_float_code(v: u64) -> u32;
        pub(super) safe fn waterfill_float_number(code: u32) -> u64;
        pub(super) safe fn waterfill_fixed_exp2_up(e: u64, bits: u32) -> u64;
        pub(super) safe fn waterfill_fixed_one_less_exp(u: u64) -> u64;
        pub(super) safe fn waterfill_fixed_exp_less_one(u: u64) -> u64;
        pub(super) safe fn waterfill_fixed_log_one_plus(f: u64) -> u64;
        pub(super) safe fn waterfill_fixed_power(f: u64, n: u32) -> u64;
    }
}

const fn two_to(bits: i32) -> f64 {
    (1u64 << bits) as f64
}

/// Logarithms and powers of two within the 1.7·10⁻⁶ and 1.2·10⁻⁶ that `kernel/fixed.h` states.
#[test]
fn logarithms_and_powers_of_two() {
    let mut random = numbers(1);
    let exact = (0..=61).flat_map(|bits| [1 << bits, (1 << bits) - 1]).filter(|&n| n > 0);
    for n in exact.chain((0..100_000).map(|_| spread(&mut random, 1.0, two_to(61)))).filter(|&n| n <= 1 << 61) {
        let log = fixed::waterfill_fixed_log2(n) as f64 / two_to(24);
        assert!((log - (n as f64).log2()).abs() < 1.7e-6, "log2 {n} is {log}");
    }
    for _ in 0..100_000 {
        let (e, bits) = (random(28 << 24), 32);
        let power = fixed::waterfill_fixed_exp2_up(e, bits) as f64;
        close(power, two_to(32) * (e as f64 / two_to(24)).exp2(), 1.2e-6);
    }
}

/// e^u − 1, 1 − e^−u, ln(1 + f) and fⁿ within what `kernel/fixed.h` states.
#[test]
fn small_exponents_keep_their_digits() {
    let mut random = numbers(2);
    for _ in 0..100_000 {
        let word = spread(&mut random, 16.0, two_to(37) - 1.0);
        let u = word as f64 / two_to(34);
        let (stated, unit) = (if u < 1.0 / 16.0 { 3e-7 } else { 4e-5 }, 4.0 / two_to(32));
        let [less, more] = [fixed::waterfill_fixed_one_less_exp(word), fixed::waterfill_fixed_exp_less_one(word)]
            .map(|result| result as f64 / two_to(32));
        let expected = [-(-u).exp_m1(), u.exp_m1()];
        assert!((less - expected[0]).abs() < stated / 2.0 * expected[0] + unit, "1 - e^-{u} is {less}");
        assert!((more - expected[1]).abs() < stated * expected[1] + unit, "e^{u} - 1 is {more}");

        let word = spread(&mut random, 1.0, two_to(32));
        let f = word as f64 / two_to(32);
        let log = fixed::waterfill_fixed_log_one_plus(word) as f64 / two_to(34);
        let stated = if f < 0.125 { 1e-9 } else { 2e-5 };
        assert!((log - f.ln_1p()).abs() < stated * f.ln_1p() + unit, "ln(1 + {f}) is {log}");

        let n = random(100) as u32;
        let power = fixed::waterfill_fixed_power(word, n) as f64 / two_to(32);
        // Each of the 32 squarings and products is truncated; a square's error is doubled by the next.
        assert!((power - f.powi(n as i32)).abs() < 3.0 * f64::from(n + 32) / two_to(32), "{f}^{n} is {power}");
    }
    assert_eq!(fixed::waterfill_fixed_power(1 << 32, u32::MAX), 1 << 32);
}

/// All 2²⁴ codes: each stands for more than the one before and comes back, and a number gets the nearest code.
#[test]
fn every_code_of_a_number_comes_back() {
    let mut before = 0;
    for code in 0..1_u32 << 24 {
        let number = fixed::waterfill_float_number(code);
        assert!(code == 0 || number > before, "{code}");
        assert_eq!(fixed::waterfill_float_code(number), code);
        // Half-way from the code before, rounded down and up: a tie takes the larger code.
        let middle = before + (number - before) / 2;
        if number - before > 1 {
            assert_eq!(fixed::waterfill_float_code(middle), code, "{middle}");
            assert_eq!(fixed::waterfill_float_code(middle - 1), code - 1, "{middle}");
        }
        before = number;
    }
    assert_eq!(fixed::waterfill_float_code(u64::MAX), (1 << 24) - 1);
}
