//! CSIG's tags and bands: `kernel/csig.h`, compiled for the host and called unchanged.
//!
//! That file documents the formats and their source. [`SignalCode`] is for simulations: the same bands, for the signals
//! of laws, with as many bits as a header has.

#![allow(
    unsafe_code,
    reason = "the codec is C. Its functions take plain integers and structs of them by reference, keep no pointer and \
              have no state, so every call is safe"
)]

use crate::mirror::mirror;
use crate::params::{ParamError, require};
use crate::units::Rate;

mirror! {
    /// A tag's fields: `struct csig_tag`.
    #[derive(Eq)]
    pub struct Tag = waterfill_csig_tag_fields {
        /// The signal's type, `enum csig_type`.
        signal: u32,
        /// The signal's code: 5 bits, or 20.
        code: u32,
        /// Who wrote last: 6 bits, or 15.
        locator: u32,
        /// 1: the packet was trimmed, so no hop updates the tag.
        trimmed: u32,
    }
}

mirror! {
    /// How values become codes: `struct csig_bands`.
    #[derive(Eq)]
    pub struct Bands = waterfill_csig_bands_fields {
        /// Compact: each band's smallest value, rising.
        lower: [u64; 32],
        /// Compact: the last band's largest value.
        end: u64,
        /// Wide: 0 or a power of two.
        base: u64,
        /// Compact: the number of bands.
        count: u32,
        /// Wide: log₂ of a band's width.
        step_log: u32,
    }
}

mod c {
    use super::{Bands, Tag};

    unsafe extern "C" {
        pub(super) safe fn waterfill_csig_write(format: u32, tpid: u32, tag: &Tag, bytes: &mut [u8; 8]) -> u32;
        pub(super) safe fn waterfill_csig_read(format: u32, bytes: &[u8; 8], tag: &mut Tag);
        pub(super) safe fn waterfill_csig_code(format: u32, bands: &Bands, value: u64) -> u32;
        pub(super) safe fn waterfill_csig_value(format: u32, bands: &Bands, code: u32) -> u64;
        pub(super) safe fn waterfill_csig_first(format: u32, signal: u32) -> u32;
        pub(super) safe fn waterfill_csig_update(tag: &mut Tag, signal: u32, code: u32, locator: u32) -> i32;
    }
}

/// The type of MaxNet's price, which has no assigned one.
pub const PRICE: u32 = 7;

/// Which tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Format {
    /// 4 bytes, 5 bits of code.
    Compact = 1,
    /// 8 bytes, 20 bits of code.
    Wide = 2,
}

impl Format {
    /// Returns the bits of a code.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Compact => 5,
            Self::Wide => 20,
        }
    }

    /// Returns a tag's length in bytes, with its TPID.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Compact => 4,
            Self::Wide => 8,
        }
    }

    /// Returns the code of a tag of this type that no hop has written.
    #[must_use]
    pub fn first(self, signal: u32) -> u32 {
        c::waterfill_csig_first(self as u32, signal)
    }
}

impl Tag {
    /// Writes the tag with its TPID; returns the bytes, of which the compact tag uses four.
    #[must_use]
    pub fn write(&self, format: Format, tpid: u16) -> [u8; 8] {
        let mut bytes = [0; 8];
        let length = c::waterfill_csig_write(format as u32, tpid.into(), self, &mut bytes);
        debug_assert_eq!(length as usize, format.bytes());
        bytes
    }

    /// Reads a tag from its TPID on.
    #[must_use]
    pub fn read(format: Format, bytes: &[u8; 8]) -> Self {
        let mut tag = Self::default();
        c::waterfill_csig_read(format as u32, bytes, &mut tag);
        tag
    }

    /// Compares and replaces, as a hop with this code does; returns whether the tag changed.
    pub fn update(&mut self, signal: u32, code: u32, locator: u32) -> bool {
        c::waterfill_csig_update(self, signal, code, locator) != 0
    }
}

impl Bands {
    /// Divides `from..to` into the compact tag's 32 bands of one width, to a unit.
    #[must_use]
    pub fn compact(from: u64, to: u64) -> Self {
        let width = to.saturating_sub(from);
        let limit = |i: u32| from + (u128::from(width) * u128::from(i) / 32) as u64;
        Self { lower: std::array::from_fn(|i| limit(i as u32)), end: to, count: 32, ..Self::default() }
    }

    /// The wide tag's 2²⁰ bands of `2^step_log`, from `base` on.
    #[must_use]
    pub fn wide(base: u64, step_log: u32) -> Self {
        Self { base, step_log, ..Self::default() }
    }

    /// Returns a value's code.
    #[must_use]
    pub fn code(&self, format: Format, value: u64) -> u32 {
        c::waterfill_csig_code(format as u32, self, value)
    }

    /// Returns the middle of a code's band.
    #[must_use]
    pub fn value(&self, format: Format, code: u32) -> u64 {
        c::waterfill_csig_value(format as u32, self, code)
    }
}

// ---------------------------------------------------------------------------------- signals of simulated laws

crate::choice! {
    /// What becomes of the part of a signal that its code leaves out.
    pub enum CodeRounding {
        /// It is lost.
        Nearest = "nearest",
        /// It is added to the link's next signal, so that their mean is exact.
        Carried = "carried",
    }
}

/// A code of few bits for a law's signal, which stands for a rate: bands of one width in the logarithm of the rate.
///
/// Five bits are the compact tag's and 20 the wide one's, by the functions that the kernel runs. Seven bits in the
/// default range have the steps of SCONE's rate codes, 10^(1/20).
#[derive(Clone, Debug)]
pub struct SignalCode {
    max: Rate,
    /// Bands in all.
    count: f64,
    /// Width of a band, in ln(rate).
    width: f64,
    format: Option<(Format, Bands)>,
    rounding: CodeRounding,
    /// What the last code left of its signal, in bands.
    residue: f64,
}

/// The default range: 128 of SCONE's steps from its slowest rate, 100 kbit/s.
pub(crate) const CODE_MIN: Rate = Rate::from_bps(1e5);
pub(crate) const CODE_MAX: Rate = Rate::from_bps(251_188_643_150.958);
/// Units of a compact band in the C code's integers.
const UNITS_LOG: u32 = 20;

impl SignalCode {
    /// Checks a law's parameters: 0 bits is the law's own encoding.
    pub(crate) fn check(bits: u32, min: Rate, max: Rate) -> Result<(), ParamError> {
        require(bits == 0 || (2..=32).contains(&bits), "code_bits", "0, or 2 to 32")?;
        require(min > Rate::ZERO, "code_min", "a rate above zero")?;
        require(max > min, "code_max", "a rate above code_min")
    }

    /// Returns the code of so many bits; `None` with 0. In a box, as routers without one should stay small.
    pub(crate) fn new(bits: u32, min: Rate, max: Rate, rounding: CodeRounding) -> Option<Box<Self>> {
        let count = 2_f64.powi(bits as i32);
        let format = match bits {
            0 => return None,
            5 => Some((Format::Compact, Bands::compact(0, 32 << UNITS_LOG))),
            20 => Some((Format::Wide, Bands::wide(0, UNITS_LOG))),
            _ => None,
        };
        Some(Box::new(Self { max, count, width: (max / min).ln() / count, format, rounding, residue: 0.0 }))
    }

    /// Returns the rate that this rate's code stands for.
    pub(crate) fn rate(&mut self, rate: Rate) -> Rate {
        let place = (self.max / rate).ln() / self.width + self.residue;
        // Rates out of range are NaN or infinite here only if they are zero: `max` and `min` handle both.
        let place = place.max(0.0).min(self.count);
        let middle = match &self.format {
            Some((format, bands)) => {
                let unit = f64::from(1_u32 << UNITS_LOG);
                bands.value(*format, bands.code(*format, (place * unit) as u64)) as f64 / unit
            }
            None => place.floor().min(self.count - 1.0) + 0.5,
        };
        if self.rounding == CodeRounding::Carried {
            // Beyond the scale's ends nothing can be carried.
            self.residue = (place - middle).clamp(-0.5, 0.5);
        }
        self.max * (-middle * self.width).exp()
    }
}

#[cfg(test)]
mod tests;
