//! Tests of the kernel interface for every law that has a kernel version.

use crate::kernel::{Numbers, Record};
use crate::params::kernel_form::{
    at_least, default_only, form_of, link_target, micros, millis, scaled, whole, word, words,
};
use crate::params::{KernelForm, Unit};
use crate::protocol::{PacketKind, Passing};
use crate::protocols::maxnet::{self, CODE_MAX, quantise, real, start_rate_code};
use crate::registry::{ProtocolId, kernel_protocols};
use crate::testing::{close, numbers, spread};
use crate::units::{Duration, Instant, Rate, Volume};

/// Every member of a law's `struct law_params` is a parameter of the law, set by a connection or a link, or unused. A
/// member is wide enough for the largest number of its parameter.
#[test]
fn parameters_are_the_members_of_each_law() {
    for (name, form) in kernel_protocols() {
        let law = form.law();
        let mut params = ProtocolId::by_name(name).expect("a protocol of its name").params_list();
        for (member, _, size) in law.params_fields() {
            let inner = member.rsplit('.').next().unwrap_or_default();
            let of = |name: &str| {
                params.iter().position(|info| info.kernel.and_then(|form| form.member_of(info.name)) == Some(name))
            };
            if let Some(at) = of(member).or_else(|| of(inner)) {
                let info = params.remove(at);
                let form = info.kernel.expect("it has a member");
                let bits = if size == 4 { 32 } else { 64 };
                assert!(form.max == f64::INFINITY || form.max * form.scale < 2_f64.powi(bits), "{name} {member}");
            } else {
                // XCP's `counts`, which iXCP does not have, is 0 there.
                let unused = ["reserved", "count_own"].contains(&inner);
                assert!(unused || ["weight", "link", "bare"].contains(&inner), "{name}: {member} is of no parameter");
            }
        }
        let left = params.iter().filter_map(|info| info.kernel?.member_of(info.name));
        assert_eq!(left.collect::<Vec<_>>(), [""; 0], "{name}: C has no such members");
        assert!(!form.recorded().is_empty(), "{name}");
    }
}

/// Numbers of parameters are rounded to the nearest unit of their members. Words become their index in a list.
#[test]
fn values_become_numbers_of_the_kernel() {
    let us = micros(0.0..=1.0);
    assert_eq!(us.number_of("t", &Duration::from_millis(130)), Some(("t", 130_000)));
    assert_eq!(us.number_of("t", &Duration::from_secs(4.5e-6)), Some(("t", 5)));
    let of = |form: KernelForm, value: f64| form.number_of("x", &value);
    assert_eq!(of(scaled(1e3, 0.0..=1.0), 0.6604), Some(("x", 660)));
    assert_eq!(of(scaled(1e3, 0.0..=1.0).member("y"), 0.6605), Some(("y", 661)));
    assert_eq!(of(default_only(), 1.0), None);
    assert_eq!(of(link_target(0.0..=1.0), 1.0), None);
    assert_eq!(word().number_of("x", &true), Some(("x", 1)));
    let order = words(&["rate-first", "xi-first"]);
    assert_eq!(order.number_of("order", &maxnet::Order::XiFirst), Some(("order", 1)));
    assert_eq!(word().number_of("order", &maxnet::Order::XiFirst), Some(("order", 0)));
}

/// Each constructor sets the scale of the member and the range that the C code supports.
#[test]
fn constructors_set_scale_and_range() {
    for (form, scale, range) in [
        (scaled(8.0, 1.0..=2.0), 8.0, (1.0, 2.0)),
        (micros(1e-6..=3.0), 1e6, (1e-6, 3.0)),
        (millis(1e-3..=3.0), 1e3, (1e-3, 3.0)),
        (whole(1.0..=255.0), 1.0, (1.0, 255.0)),
        (at_least(2.0), 1.0, (2.0, f64::INFINITY)),
        (link_target(0.5..=1.0), 1e6, (0.5, 1.0)),
    ] {
        assert_eq!((form.scale, (form.min, form.max)), (scale, range));
        assert_eq!(form_of(&[form]), Some(form));
    }
    assert_eq!(form_of(&[]), None);
}

/// A record's hash covers all state, so that it also shows an earlier call of another part of the law.
#[test]
fn hashes_of_records_cover_all_state() {
    // `enum replay_call` of kernel/replay.h: LINK_SET with a rate and a target, SOURCE_INIT with two sizes in bytes.
    let link_set = [2, 1_000_000_000, 900_000, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let source_init = |bytes: u64| [8, bytes, 10 * bytes, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (name, form) in kernel_protocols() {
        let law = form.law();
        let last_hash = |records: &[Record]| {
            let mut state = law.replay();
            records.iter().map(|record| law.replay_step(&mut state, record)).last()
        };
        let expected = last_hash(&[source_init(1500), link_set]);
        assert_eq!(last_hash(&[source_init(1500), link_set]), expected, "{name}: the same calls");
        assert_ne!(last_hash(&[source_init(1200), link_set]), expected, "{name}: another size of packets");
    }
}

/// The recorded sets of a law's parameters give each flag and each choice of the C code more than one value.
#[test]
fn recorded_parameters_select_different_code() {
    for (name, form) in kernel_protocols() {
        let sets = form.recorded();
        let varies = |member: &str| {
            let number = |set: &Numbers| set.iter().find(|(known, _)| *known == member).map(|&(_, number)| number);
            sets.iter().any(|set| number(set) != number(&sets[0]))
        };
        let words: Vec<&str> = (ProtocolId::by_name(name).expect("a protocol").params_list().iter())
            .filter(|info| matches!(info.unit, Unit::Flag | Unit::Choice(_)))
            .filter_map(|info| info.kernel?.member_of(info.name))
            .collect();
        assert!(words.iter().all(|member| varies(member)), "{name}: {words:?}");
    }
}

/// Values fit into the option, and each law has a unique number on the wire.
#[test]
fn laws_have_numbers_and_sizes() {
    let laws = kernel_protocols();
    for (i, (name, form)) in laws.iter().enumerate() {
        let law = form.law();
        assert!((3..=15).contains(&law.forward_bytes()) && (3..=15).contains(&law.echo_bytes()), "{name}");
        assert!(laws[..i].iter().all(|(_, other)| other.law().number() != law.number()), "{name}");
    }
}

/// A target of 0 selects the law's own target: the target in its parameters, or the full rate.
#[test]
fn a_target_of_0_is_the_laws_own() {
    for (name, form) in kernel_protocols() {
        let law = form.law();
        for set in form.recorded() {
            let target = ProtocolId::by_name(name).expect("a protocol").params().target();
            let own = (target * 1e6).round() as u32;
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
        pub(super) safe fn waterfill_fixed_exp(scale: u64, u: u64) -> u64;
        pub(super) safe fn waterfill_fixed_rate_code(rate: u64, x_max: u64) -> u32;
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

const X_MAX: u64 = 1_000_000_000_000_000;

#[test]
fn the_exponential_is_within_its_stated_error() {
    let mut worst = 0.0_f64;
    for scale in [X_MAX, 32, 1_000_000, 1 << 57] {
        // Up to 44 in steps of a little less than 2⁻¹¹, so that every place between two entries is tested.
        for i in 0..=91_000_u64 {
            let u = i * 8_388_593;
            let exact = scale as f64 * (-(u as f64) / two_to(34)).exp();
            let off = (fixed::waterfill_fixed_exp(scale, u) as f64 - exact).abs();
            // Truncation to whole bit/s costs up to 1 bit/s.
            worst = worst.max((off - 1.0) / exact);
        }
    }
    assert!(worst < 1.1e-6, "{worst}");
    assert!(worst > 0.8e-6, "the stated bound is not tight: {worst}");
    assert_eq!(fixed::waterfill_fixed_exp(X_MAX, 0), X_MAX);
    assert_eq!(fixed::waterfill_fixed_exp(X_MAX, u64::MAX), 0);
}

/// Every entry of the exponential's table is correct. Nothing is interpolated there, so errors of 2⁻²⁶ of u and 2⁻²⁴ of
/// its logarithm remain.
#[test]
fn every_entry_of_the_table_is_right() {
    let scale = 1u64 << 61;
    for i in 0..=256 {
        let exact = (-f64::from(i) / 256.0).exp2();
        let u = (f64::from(i) / 256.0 * std::f64::consts::LN_2 * two_to(34)).round() as u64;
        let off = fixed::waterfill_fixed_exp(scale, u) as f64 / scale as f64 / exact - 1.0;
        assert!(off.abs() < 7e-8, "entry {i}: {off}");
    }
}

/// The exponential of every MaxNet code is within the stated error plus the truncation to whole bit/s, and never rises.
#[test]
fn the_exponential_over_every_code() {
    let (mut before, mut worst) = (u64::MAX, 0.0_f64);
    for code in 0..=CODE_MAX {
        let rate = fixed::waterfill_fixed_exp(X_MAX, u64::from(code) << 16);
        assert!(rate <= before, "at code {code}");
        before = rate;
        let exact = X_MAX as f64 * (-real(code)).exp();
        worst = worst.max(((rate as f64 - exact).abs() - 1.0) / exact);
    }
    assert!(worst < 1.1e-6, "{worst}");
    assert_eq!(before, 12); // 10¹⁵ · e⁻³²
}

/// `[tcp-maxnet-2006:3.3]` Codes of start rates differ from the law's codes by at most one. The next code represents a
/// slower rate.
#[test]
fn start_rates_in_codes() {
    let x_max = Rate::from_bps(X_MAX as f64);
    let mut random = numbers(1);
    for _ in 0..20_000 {
        let rate = spread(&mut random, 13.0, 1e15);
        let code = fixed::waterfill_fixed_rate_code(rate, X_MAX);
        assert!(fixed::waterfill_fixed_exp(X_MAX, u64::from(code) << 16) >= rate);
        assert!(fixed::waterfill_fixed_exp(X_MAX, u64::from(code + 1) << 16) < rate);
        let law = quantise(start_rate_code(Rate::from_bps(rate as f64), x_max));
        // 1 bit/s is one code at 262 kbit/s.
        assert!(f64::from(code.abs_diff(law)) <= 1.0 + 262_144.0 / rate as f64, "{rate}: {code}, {law}");
    }
    assert_eq!(fixed::waterfill_fixed_rate_code(0, X_MAX), CODE_MAX);
    assert_eq!(fixed::waterfill_fixed_rate_code(X_MAX + 1, X_MAX), 0);
}

/// Logarithms and powers of two are within the error bounds of 1.7·10⁻⁶ and 1.2·10⁻⁶ in `kernel/fixed.h`.
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

/// The functions e^u − 1, 1 − e^−u, ln(1 + f) and fⁿ are within the error bounds in `kernel/fixed.h`.
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

/// Each of the 2²⁴ codes represents a larger number than the previous code, and encoding that number gives the same
/// code. Other numbers are encoded to the nearest code.
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

/// Parcels of fluid have fractions of bytes. After each parcel, the sum is counted to the nearest byte.
#[test]
fn fractions_of_bytes_are_counted_to_the_nearest() {
    let link = crate::testing::link(1e8, 0.0);
    let mut router = super::Router::new::<maxnet::MaxNet>(&maxnet::Params::default(), &link);
    let now = Instant::ZERO;
    for (total, counted) in [(0.6, 1), (1.2, 1), (1.8, 2), (2.4, 2)] {
        let volume = Volume::from_bytes(0.6);
        router.on_arrival(&mut Passing { now, volume, packets: 0.0, kind: PacketKind::Data, header: None });
        assert_eq!(router.counted_bytes(), counted, "{total} bytes");
    }
}
