//! CSIG tags and bands: `kernel/csig.h`, compiled unchanged for the host.
//!
//! That file documents the formats and their source. [`crate::carriage`] uses the same bands for the signals of laws.

#![allow(
    unsafe_code,
    reason = "the codec is C. Its functions take plain integers and structs of them by reference, keep no pointer and \
              have no state, so every call is safe"
)]

use crate::mirror::mirror;

mirror! {
    /// Fields of a CSIG tag: C's `struct csig_tag`.
    #[derive(Eq)]
    pub struct Tag = waterfill_csig_tag_fields {
        /// Type of the signal, a value of C's `enum csig_type`.
        signal: u32,
        /// Code of the signal's value: 5 bits in the compact tag, 20 in the wide tag.
        code: u32,
        /// Identity of the last writer: 6 bits in the compact tag, 15 in the wide tag.
        locator: u32,
        /// Trim flag: 1 if the packet was trimmed. Hops leave the tag of a trimmed packet unchanged.
        trimmed: u32,
    }
}

mirror! {
    /// Mapping from values to codes: C's `struct csig_bands`.
    #[derive(Eq)]
    pub struct Bands = waterfill_csig_bands_fields {
        /// Smallest value of each band of the compact tag, in rising order.
        lower: [u64; 32],
        /// Largest value of the compact tag's last band.
        end: u64,
        /// Smallest value of the wide tag's first band: 0 or a power of two.
        base: u64,
        /// Number of bands of the compact tag.
        count: u32,
        /// Binary logarithm of the wide tag's band width.
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

/// Type number of MaxNet's price, for which CSIG assigns no type.
pub const PRICE: u32 = 7;

/// Type number of MaxNet's start rate, for which CSIG assigns no type. Only the simulator writes it.
pub const START_RATE: u32 = 6;

/// Format of a CSIG tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Format {
    /// Tag of 4 bytes with a code of 5 bits.
    Compact = 1,
    /// Tag of 8 bytes with a code of 20 bits.
    Wide = 2,
}

impl Format {
    /// Returns the number of bits in a code.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Compact => 5,
            Self::Wide => 20,
        }
    }

    /// Returns the length of a tag in bytes, including its TPID.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Compact => 4,
            Self::Wide => 8,
        }
    }

    /// Returns the initial code of a tag of this type, before any hop has written to it.
    #[must_use]
    pub fn first(self, signal: u32) -> u32 {
        c::waterfill_csig_first(self as u32, signal)
    }
}

impl Tag {
    /// Writes the tag with its TPID. A compact tag fills the first four of the returned bytes.
    #[must_use]
    pub fn write(&self, format: Format, tpid: u16) -> [u8; 8] {
        let mut bytes = [0; 8];
        let length = c::waterfill_csig_write(format as u32, tpid.into(), self, &mut bytes);
        debug_assert_eq!(length as usize, format.bytes());
        bytes
    }

    /// Reads a tag from bytes that begin with its TPID.
    #[must_use]
    pub fn read(format: Format, bytes: &[u8; 8]) -> Self {
        let mut tag = Self::default();
        c::waterfill_csig_read(format as u32, bytes, &mut tag);
        tag
    }

    /// Updates the tag as a hop with this code does, by compare-and-replace. Returns true if the tag changed.
    pub fn update(&mut self, signal: u32, code: u32, locator: u32) -> bool {
        c::waterfill_csig_update(self, signal, code, locator) != 0
    }
}

impl Bands {
    /// Creates the compact tag's 32 bands, which divide `from..to` into widths that differ by at most one unit.
    #[must_use]
    pub fn compact(from: u64, to: u64) -> Self {
        let width = to.saturating_sub(from);
        let limit = |i: u32| from + (u128::from(width) * u128::from(i) / 32) as u64;
        Self { lower: std::array::from_fn(|i| limit(i as u32)), end: to, count: 32, ..Self::default() }
    }

    /// Creates the wide tag's 2²⁰ bands of width `2^step_log`, starting at `base`.
    #[must_use]
    pub fn wide(base: u64, step_log: u32) -> Self {
        Self { base, step_log, ..Self::default() }
    }

    /// Returns the code of a value.
    #[must_use]
    pub fn code(&self, format: Format, value: u64) -> u32 {
        c::waterfill_csig_code(format as u32, self, value)
    }

    /// Returns the value in the middle of a code's band.
    #[must_use]
    pub fn value(&self, format: Format, code: u32) -> u64 {
        c::waterfill_csig_value(format as u32, self, code)
    }
}

#[cfg(test)]
mod tests;
