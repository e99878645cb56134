//! Types for quantities: time, duration, volume and rate.
//!
//! Time is integer picoseconds: a 1500-byte packet at 1 Pbit/s takes 12 ps, so events at that rate are still ordered, and
//! 63 bits last 106 days. Volumes and rates inside laws are real numbers, so that a fluid step is an arrival like any
//! other; packets on links are whole bytes.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Number of picoseconds in a second.
const PS_PER_S: f64 = 1e12;
/// Longest time in picoseconds.
///
/// It has 63 bits, because converting a signed integer to a real number takes one instruction, and an unsigned one
/// eight. This conversion happens several times per packet.
const MAX_PS: u64 = i64::MAX as u64;

/// Adds two times, saturating at the longest time. Both times are below 2⁶³, so the sum cannot wrap.
const fn saturating(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum < MAX_PS { sum } else { MAX_PS }
}

/// Point in time, in picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// Span of time in picoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

/// Amount of data as a real number of bytes, for use inside laws.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Volume(f64);

/// Data rate in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Instant {
    /// Start of the run.
    pub const ZERO: Self = Self(0);
    /// Time later than any event.
    pub const NEVER: Self = Self(MAX_PS);

    /// Creates a time from integer picoseconds since the start of the run.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(if ps < MAX_PS { ps } else { MAX_PS })
    }

    /// Creates a time from seconds since the start of the run.
    ///
    /// The result saturates at [`Instant::NEVER`]. Negative values and NaN give zero.
    #[must_use]
    pub fn from_secs(s: f64) -> Self {
        Self(Duration::from_secs(s).0)
    }

    /// Returns the integer picoseconds since the start of the run.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start of the run.
    #[must_use]
    pub fn as_secs(self) -> f64 {
        Duration(self.0).as_secs()
    }

    /// Returns the time that is `d` earlier, but not before the start of the run.
    #[must_use]
    pub const fn before(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.0))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Duration of zero.
    pub const ZERO: Self = Self(0);
    /// Duration longer than any run.
    pub const MAX: Self = Self(MAX_PS);

    /// Creates a duration from integer picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(if ps < MAX_PS { ps } else { MAX_PS })
    }

    /// Creates a duration from milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self::from_ps(ms * 1_000_000_000)
    }

    /// Creates a duration from microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self::from_ps(us * 1_000_000)
    }

    /// Creates a duration from seconds, rounded to the nearest picosecond.
    ///
    /// The result saturates. Negative values and NaN give zero.
    #[must_use]
    pub fn from_secs(s: f64) -> Self {
        // `as` truncates, saturates at both ends and maps NaN to 0: exactly what is documented.
        Self(((s * PS_PER_S + 0.5) as i64).max(0) as u64)
    }

    /// Returns the duration in integer picoseconds.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the duration in seconds.
    #[must_use]
    pub fn as_secs(self) -> f64 {
        self.0 as i64 as f64 / PS_PER_S
    }

    /// Returns true if the duration is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Volume {
    /// Volume of zero bytes.
    pub const ZERO: Self = Self(0.0);

    /// Creates a volume from a real number of bytes.
    #[must_use]
    pub const fn from_bytes(bytes: f64) -> Self {
        Self(bytes)
    }

    /// Returns the volume in bytes, as a real number.
    #[must_use]
    pub const fn as_bytes(self) -> f64 {
        self.0
    }

    /// Returns the volume in bits, as a real number.
    #[must_use]
    pub fn as_bits(self) -> f64 {
        self.0 * 8.0
    }

    /// Returns the larger of two volumes.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl Rate {
    /// Rate of zero.
    pub const ZERO: Self = Self(0.0);
    /// Infinite rate, at which a transmission takes no time.
    pub const UNLIMITED: Self = Self(f64::INFINITY);

    /// Creates a rate from bit/s.
    #[must_use]
    pub const fn from_bps(bps: f64) -> Self {
        Self(bps)
    }

    /// Returns the rate in bit/s.
    #[must_use]
    pub const fn as_bps(self) -> f64 {
        self.0
    }

    /// Returns the larger of two rates.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Returns the smaller of two rates.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Returns the transmission time of `bytes` bytes at this rate, to the nearest picosecond. The time saturates at a
    /// rate of zero.
    #[must_use]
    pub fn time_for(self, bytes: u32) -> Duration {
        Duration::from_secs(f64::from(bytes) * 8.0 / self.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(saturating(self.0, d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(saturating(self.0, other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self::from_ps(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

/// Returns the ratio of two durations as a real number.
impl Div for Duration {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.0 as i64 as f64 / other.0 as i64 as f64
    }
}

/// Implements real-number arithmetic for a quantity stored as one `f64`.
macro_rules! linear {
    ($t:ident) => {
        impl Add for $t {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $t {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $t {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl SubAssign for $t {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
        impl Mul<f64> for $t {
            type Output = Self;
            fn mul(self, k: f64) -> Self {
                Self(self.0 * k)
            }
        }
        impl Mul<$t> for f64 {
            type Output = $t;
            fn mul(self, q: $t) -> $t {
                $t(self * q.0)
            }
        }
        impl Div<f64> for $t {
            type Output = Self;
            fn div(self, k: f64) -> Self {
                Self(self.0 / k)
            }
        }
        impl Div for $t {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }
        impl Sum for $t {
            fn sum<I: Iterator<Item = Self>>(it: I) -> Self {
                Self(it.map(|q| q.0).sum())
            }
        }
    };
}
linear!(Volume);
linear!(Rate);

impl Mul<Duration> for Rate {
    type Output = Volume;
    fn mul(self, d: Duration) -> Volume {
        Volume(self.0 * d.as_secs() / 8.0)
    }
}

impl Div<Duration> for Volume {
    type Output = Rate;
    fn div(self, d: Duration) -> Rate {
        Rate(self.as_bits() / d.as_secs())
    }
}

/// Returns the transmission time of a volume at a rate, in seconds.
impl Div<Rate> for Volume {
    type Output = f64;
    fn div(self, r: Rate) -> f64 {
        self.as_bits() / r.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algebra_by_hand() {
        // 1 Gbit/s for 50 ms is 6.25 MB.
        let v = Rate::from_bps(1e9) * Duration::from_millis(50);
        assert_eq!(v.as_bytes(), 6.25e6);
        assert_eq!((v / Duration::from_millis(50)).as_bps(), 1e9);
        assert_eq!(v / Rate::from_bps(1e9), 0.05);
        // 1500 bytes at 1 Gbit/s last 12 µs.
        assert_eq!(Rate::from_bps(1e9).time_for(1500), Duration::from_micros(12));
        assert_eq!(Duration::from_millis(3) / Duration::from_millis(2), 1.5);
    }

    #[test]
    fn time_saturates_and_never_wraps() {
        assert_eq!(Instant::NEVER + Duration::from_millis(1), Instant::NEVER);
        assert_eq!(Instant::ZERO.since(Instant::from_secs(1.0)), Duration::ZERO);
        assert_eq!(Duration::from_secs(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_secs(-1.0), Duration::ZERO);
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
        // The range reaches beyond a hundred days of simulated time.
        assert!(Instant::from_secs(106.0 * 86_400.0) < Instant::NEVER);
    }
}
