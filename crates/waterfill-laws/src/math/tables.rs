//! Tables and constants of the functions, computed by the compiler.

use super::double::{self, Double};

/// A number as a head of few bits, so that its products are exact, and the rest.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) head: f64,
    pub(super) tail: f64,
}

/// Splits after a multiple of 2^−`bits`.
const fn split_at(x: Double, bits: i32) -> Split {
    let shift = 1.5 * super::two_to(52 - bits);
    let head = (x.high + shift) - shift;
    Split { head, tail: Double::new(-head).plus(x).high }
}

/// Splits after the number's upper 26 bits.
const fn split_half(x: Double) -> Split {
    let head = super::head(x.high);
    Split { head, tail: Double::new(-head).plus(x).high }
}

const LN_2_DOUBLE: Double = double::ln(2.0);

/// Heads of logarithms are multiples of 2⁻⁴², so k·ln 2 − ln(inverse) is exact for |k| < 2¹¹.
const LN_HEAD_BITS: i32 = 42;
pub(super) const LN_2: Split = split_at(LN_2_DOUBLE, LN_HEAD_BITS);

/// ln 2 divided by the number of intervals of `exp`. Its head has 35 bits, so multiples up to 2¹⁸ are exact.
pub(super) const EXP_STEP: Split = {
    let Split { head, tail } = split_at(LN_2_DOUBLE, 35);
    Split { head: head / EXP_INTERVALS as f64, tail: tail / EXP_INTERVALS as f64 }
};

pub(super) const PER_LN_2: Split = split_half(Double::new(1.0).over(LN_2_DOUBLE));
pub(super) const PER_LN_10: Split = {
    // ln 10 = 3·ln 2 + ln(10/8)
    let ln_10 = LN_2_DOUBLE.times(Double::new(3.0)).plus(double::ln(1.25));
    split_half(Double::new(1.0).over(ln_10))
};

/// Number of intervals into which `exp` divides an octave.
pub(super) const EXP_INTERVALS: usize = 128;

/// 2^(i/128), with i subtracted from its exponent field, and its relative rounding error.
#[derive(Clone, Copy)]
pub(super) struct ExpEntry {
    pub(super) bits: u64,
    pub(super) tail: f64,
}

pub(super) static EXP: [ExpEntry; EXP_INTERVALS] = {
    let mut table = [ExpEntry { bits: 0, tail: 0.0 }; EXP_INTERVALS];
    let mut i = 0;
    while i < EXP_INTERVALS {
        let power = double::exp(LN_2_DOUBLE.times(Double::new(i as f64 / EXP_INTERVALS as f64)));
        let taken = (i as u64) << (52 - EXP_INTERVALS.trailing_zeros());
        table[i] = ExpEntry { bits: power.high.to_bits().wrapping_sub(taken), tail: power.low / power.high };
        i += 1;
    }
    table
};

/// Bits of 0.6875; z lies between it and its double.
pub(super) const LN_START: u64 = 0x3fe6_0000_0000_0000;
/// Number of low bits of z that do not select an entry; the others select one of 256.
pub(super) const LN_STEP_BITS: u32 = 44;

/// 1/z near the middle of an interval: a multiple of 2⁻⁸, or of 2⁻⁹ if below 1.
#[derive(Clone, Copy)]
pub(super) struct LnEntry {
    pub(super) inverse: f64,
    pub(super) minus_ln: Split,
}

pub(super) static LN: [LnEntry; 1 << (52 - LN_STEP_BITS)] = {
    let mut table = [LnEntry { inverse: 0.0, minus_ln: Split { head: 0.0, tail: 0.0 } }; 1 << (52 - LN_STEP_BITS)];
    let mut i = 0;
    while i < table.len() {
        let start = LN_START + ((i as u64) << LN_STEP_BITS);
        let middle = f64::from_bits(start + (1 << (LN_STEP_BITS - 1)));
        let units = if middle < 1.0 { 256.0 } else { 512.0 };
        let nearest = ((units / middle) + 0.5) as u32 as f64 / units;
        // Exactly 1 on both sides of 1, where ln z is as small as the rest.
        let inverse = if start == 1.0_f64.to_bits() { 1.0 } else { nearest };
        let minus_ln = split_at(double::ln(inverse).negated(), LN_HEAD_BITS);
        table[i] = LnEntry { inverse, minus_ln };
        i += 1;
    }
    table
};
