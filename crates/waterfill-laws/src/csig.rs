//! CSIG's tags and bands: `kernel/csig.h`, compiled for the host and called unchanged.
//!
//! That file documents the formats and their source. [`crate::carriage`] uses the same bands for the signals of laws.

#![allow(
    unsafe_code,
    reason = "the codec is C. Its functions take plain integers and structs of them by reference, keep no pointer and \
              have no state, so every call is safe"
)]

use crate::mirror::mirror;

mirror! {
    /// A tag's fields: `struct csig_tag`.
    #[derive(Eq)]
    pub struct Tag = waterfill_csig_tag_fields {
        /// The signal's type, `enum csig_type`.
        signal: u32,
        /// The signal's code: 5 bits, or 20.
        code: u32,
        /// Identity of the last writer: 6 bits, or 15.
        locator: u32,
        /// 1: the packet was trimmed, so no hop updates the tag.
        trimmed: u32,
    }
}

mirror! {
    /// Mapping from values to codes: `struct csig_bands`.
    #[derive(Eq)]
    pub struct Bands = waterfill_csig_bands_fields {
        /// Smallest value of each band of the compact tag, in rising order.
        lower: [u64; 32],
        /// Largest value of the compact tag's last band.
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

/// Format of a tag.
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
    /// Divides `from..to` into the compact tag's 32 bands of equal width, within one unit.
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

#[cfg(test)]
mod tests;
