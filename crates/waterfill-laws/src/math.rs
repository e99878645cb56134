//! Transcendental functions that give the same bits on every target.
//!
//! The standard functions call the host's C library, which selects code by CPU features, so last digits differ between
//! hosts. The compiler may also replace a call with the value that its own host computes. The functions of this module use
//! only operations that IEEE 754 defines exactly: +, −, ×, ÷ and √. Rust neither reorders these nor contracts a·b + c into a
//! fused operation. clippy forbids the standard functions in the crates that compute results.
//!
//! A packet may need `exp`, `ln` or `pow`, so these are our own: a table, then a short polynomial. Their errors stay below
//! 0.52 units in the last place (ulp). They are not inlined, because a law's functions would grow and no longer be inlined
//! themselves. `libm` supplies the others, with errors below 1 ulp.

mod double;
mod tables;
#[cfg(test)]
mod tests;

pub use libm::{asin, cbrt, cos, expm1 as exp_m1, sin};

use tables::{EXP, EXP_INTERVALS, EXP_STEP, LN, LN_2, LN_START, LN_STEP_BITS, Split};

/// Adding this to a number below 2⁵¹ in size leaves the nearest integer in the low bits.
const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5·2⁵²
const FRACTION_BITS: u32 = 52;
const INFINITY_BITS: u64 = 0x7ff0_0000_0000_0000;

/// e^x.
#[inline(never)]
#[must_use]
pub fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// 2^x.
#[inline]
#[must_use]
pub fn exp2(x: f64) -> f64 {
    if x.abs() < 1021.0 {
        let n = EXP_INTERVALS as f64;
        let shifted = x * n + SHIFT;
        let rest = x - (shifted - SHIFT) / n; // exact
        let power = Power { scale: scale_bits(shifted), more: above_one(shifted, rest * std::f64::consts::LN_2) };
        return power.value();
    }
    libm::exp2(x)
}

/// Natural logarithm; NaN of a negative number.
#[inline(never)]
#[must_use]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    if is_normal_positive(bits) { ln_of_bits(bits, 0.0) } else { ln_of_rare(x) }
}

/// ln(1 + x) without loss near 0.
#[must_use]
pub fn ln_1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    if !is_normal_positive(sum.to_bits()) || x.abs() < f64::EPSILON / 4.0 {
        return libm::log1p(x);
    }
    let lost = if x < 1.0 { x - (sum - 1.0) } else { 1.0 - (sum - x) };
    let (high, low) = ln_in_two(sum.to_bits());
    high + (low + lost / sum)
}

/// Logarithm to base 2; exact for powers of 2.
#[must_use]
pub fn log2(x: f64) -> f64 {
    log_to(x, tables::PER_LN_2, libm::log2)
}

/// Logarithm to base 10; exact for powers of 10.
#[must_use]
pub fn log10(x: f64) -> f64 {
    log_to(x, tables::PER_LN_10, libm::log10)
}

/// x^y.
#[inline(never)]
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    let bits = x.to_bits();
    // Products with a much larger y could overflow.
    let ordinary = is_normal_positive(bits) && y.abs() < two_to(64);
    if !ordinary {
        return libm::pow(x, y);
    }
    let (high, low) = ln_in_two(bits);
    let (y_head, high_head) = (head(y), head(high));
    exp_of_sum(y_head * high_head, (y - y_head) * high_head + y * ((high - high_head) + low))
}

/// 2^n for an integer of −1022 to 1023; exact.
///
/// # Panics
/// Of any other n.
#[must_use]
pub const fn two_to(n: i32) -> f64 {
    assert!(n >= -1022 && n <= 1023, "not a normal number");
    f64::from_bits(((n + 1023) as u64) << FRACTION_BITS)
}

/// 10^n for an integer of −22 to 22, rounded correctly; exact if n is not negative.
///
/// # Panics
/// Of any other n.
#[must_use]
pub const fn ten_to(n: i32) -> f64 {
    assert!(n >= -22 && n <= 22, "not one correctly rounded quotient");
    let (mut power, mut i) = (1.0, 0);
    while i < n.abs() {
        power *= 10.0;
        i += 1;
    }
    if n < 0 { 1.0 / power } else { power }
}

// ------------------------------------------------------------------------------------------ exponential function

/// scale·(1 + more), with the bits of the scale, whose exponent may be out of range.
#[derive(Clone, Copy)]
struct Power {
    scale: u64,
    more: f64,
}

impl Power {
    #[inline]
    fn value(self) -> f64 {
        let scale = f64::from_bits(self.scale);
        scale + scale * self.more
    }

    /// Returns a value that is too large or too small for `value`: 2^−by times it, then times 2^by.
    fn value_out_of_range(self, by: i32) -> f64 {
        let scale = self.scale.wrapping_sub((i64::from(by) << FRACTION_BITS) as u64);
        Self { scale, ..self }.value() * two_to(by)
    }
}

/// e^(x + low) for a `low` much smaller than 1.
#[inline]
fn exp_of_sum(x: f64, low: f64) -> f64 {
    if x.abs() < 708.0 { power_of_e(x, low).value() } else { exp_of_rare(x, low) }
}

/// e^(x + low) when it is too large or too small for a normal number, or nearly.
#[cold]
#[inline(never)]
fn exp_of_rare(x: f64, low: f64) -> f64 {
    if x > 710.0 {
        f64::INFINITY
    } else if x < -746.0 {
        0.0
    } else if x.is_nan() {
        x
    } else {
        power_of_e(x, low).value_out_of_range(if x > 0.0 { 64 } else { -128 })
    }
}

/// x = k·ln 2/128 + rest, so e^x = 2^(k/128)·e^rest, with |rest| below 0.0028.
#[inline]
fn power_of_e(x: f64, low: f64) -> Power {
    let shifted = x * (EXP_INTERVALS as f64 * std::f64::consts::LOG2_E) + SHIFT;
    let k = shifted - SHIFT;
    let rest = (x - k * EXP_STEP.head) - (k * EXP_STEP.tail - low); // the first difference is exact
    Power { scale: scale_bits(shifted), more: above_one(shifted, rest) }
}

/// Bits of 2^(k/128), rounded; k is in the low bits of `shifted`.
#[inline]
fn scale_bits(shifted: f64) -> u64 {
    let k = shifted.to_bits();
    let interval = k as usize % EXP_INTERVALS;
    EXP[interval].bits.wrapping_add(k << (FRACTION_BITS - EXP_INTERVALS.trailing_zeros()))
}

/// e^rest − 1, plus the rounding error of `scale_bits`.
#[inline]
fn above_one(shifted: f64, rest: f64) -> f64 {
    let tail = EXP[shifted.to_bits() as usize % EXP_INTERVALS].tail;
    let square = rest * rest;
    tail + rest + square * (0.5 + rest * (1.0 / 6.0)) + square * square * (1.0 / 24.0 + rest * (1.0 / 120.0))
}

// ---------------------------------------------------------------------------------------------------- logarithm

#[inline]
fn is_normal_positive(bits: u64) -> bool {
    let smallest = f64::MIN_POSITIVE.to_bits();
    bits.wrapping_sub(smallest) < INFINITY_BITS - smallest
}

/// x = 2^k·z, and ln z = ln(1 + rest) − ln(inverse), with rest = z·inverse − 1 below 2⁻⁸ in size.
struct Reduced {
    k: f64,
    rest: f64,
    minus_ln_inverse: Split,
}

#[inline]
fn reduced(bits: u64) -> Reduced {
    let above = bits.wrapping_sub(LN_START);
    let k = (above as i64 >> FRACTION_BITS) as f64;
    let z = f64::from_bits(bits.wrapping_sub(above & (0xfff << FRACTION_BITS)));
    let entry = &LN[(above >> LN_STEP_BITS) as usize % LN.len()];
    // Both products are exact because the inverse has few bits, and the sum fits in 53.
    let z_head = head(z);
    let rest = (z_head * entry.inverse - 1.0) + (z - z_head) * entry.inverse;
    Reduced { k, rest, minus_ln_inverse: entry.minus_ln }
}

/// ln of a normal positive number, plus an integer times ln 2.
#[inline]
fn ln_of_bits(bits: u64, more_k: f64) -> f64 {
    let Reduced { k, rest: r, minus_ln_inverse } = reduced(bits);
    let k = k + more_k;
    let coarse = k * LN_2.head + minus_ln_inverse.head; // exact
    let high = coarse + r;
    let low = (coarse - high + r) + (k * LN_2.tail + minus_ln_inverse.tail);
    let square = r * r;
    let series = (-0.5 + r * (1.0 / 3.0)) + square * ((-0.25 + r * 0.2) + square * (-1.0 / 6.0 + r * (1.0 / 7.0)));
    high + (low + square * series)
}

#[cold]
#[inline(never)]
fn ln_of_rare(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x < 0.0 {
        f64::NAN
    } else if x < f64::MIN_POSITIVE {
        ln_of_bits((x * two_to(54)).to_bits(), -54.0)
    } else {
        x // infinite, or not a number
    }
}

/// ln of a normal positive number as a sum of two numbers, with a relative error below 2⁻⁶⁷.
#[inline]
fn ln_in_two(bits: u64) -> (f64, f64) {
    let Reduced { k, rest: r, minus_ln_inverse } = reduced(bits);
    let coarse = k * LN_2.head + minus_ln_inverse.head; // exact
    let first = coarse + r;
    let first_low = coarse - first + r;
    // −r²/2 in two parts; the first is exact.
    let r_head = head(r);
    let half_square = -0.5 * r_head * r_head;
    let half_square_low = -0.5 * (r + r_head) * (r - r_head);
    let second = first + half_square;
    let second_low = first - second + half_square;
    let square = r * r;
    let series = (1.0 / 3.0 - r * 0.25)
        + square * ((0.2 - r * (1.0 / 6.0)) + square * ((1.0 / 7.0 - r * 0.125) + square * (1.0 / 9.0)));
    let small = (k * LN_2.tail + minus_ln_inverse.tail) + first_low + second_low;
    let low = small + half_square_low + r * square * series;
    let high = second + low;
    (high, second - high + low)
}

/// A logarithm to another base: ln x times 1/ln(base).
fn log_to(x: f64, per_ln: Split, rare: fn(f64) -> f64) -> f64 {
    if !is_normal_positive(x.to_bits()) {
        return rare(x);
    }
    let (high, low) = ln_in_two(x.to_bits());
    let high_head = head(high);
    high_head * per_ln.head + (((high - high_head) + low) * per_ln.head + (high + low) * per_ln.tail)
}

/// The upper 26 bits of a number's 53: products of two heads are exact.
#[inline]
const fn head(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & (u64::MAX << 27))
}
