//! Weighted histograms with logarithmic buckets: quantiles in bounded memory.
//!
//! Values below 64 are kept exactly, larger ones in 32 buckets per octave: a quantile is off by up
//! to 1/64 of its value.

use std::ops::Range;

use waterfill_laws::units::Duration;

/// Binary logarithm of the number of buckets per octave.
const SUB_BITS: u32 = 5;
const EXACT: u64 = 1 << (SUB_BITS + 1);

/// Histogram of non-negative integers with integer weights: `u64`, or `u32` for counts of samples.
///
/// It holds the buckets from the smallest to the largest value so far, in whole octaves, so a histogram of few values
/// is small.
#[derive(Clone, Debug, Default)]
pub struct Histogram<W = u64> {
    /// Index of the bucket that the first weight belongs to.
    first: usize,
    weights: Vec<W>,
    total: u64,
}

/// Integer weight of a histogram bucket.
pub trait Weight: Copy + Default + Into<u64> {
    /// Returns the sum of two weights, saturating at the largest value of the type.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Weight for u32 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Weight for u64 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl<W: Weight> Histogram<W> {
    /// Adds `weight` to the bucket of `value`.
    #[allow(clippy::indexing_slicing, reason = "the bucket is there: `grow` has added it")]
    #[inline]
    pub fn add(&mut self, value: u64, weight: W) {
        let bucket = bucket(value);
        // Below `first` the index wraps to a large one.
        if bucket.wrapping_sub(self.first) >= self.weights.len() {
            self.grow(bucket);
        }
        let cell = &mut self.weights[bucket - self.first];
        *cell = cell.plus(weight);
        self.total += weight.into();
    }

    /// Returns the sum of all weights.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Extends the histogram to the octave of a bucket.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        let octave = 1 << SUB_BITS;
        let below = bucket / octave * octave;
        let end = self.first + self.weights.len();
        let (first, end) = match self.weights.len() {
            0 => (below, below + octave),
            _ => (below.min(self.first), end.max(below + octave)),
        };
        let mut weights = Vec::with_capacity(end - first);
        weights.resize(self.first.max(first) - first, W::default());
        weights.extend_from_slice(&self.weights);
        weights.resize(end - first, W::default());
        (self.first, self.weights) = (first, weights);
    }

    /// Returns the middle of the first bucket at which the cumulative weight reaches the fraction `q` of the total;
    /// `None` for an empty histogram.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.bucket_at(q).map(middle)
    }

    /// Returns a high quantile that is not below the `mean` of the values if both lie in one bucket, as for a constant
    /// value; `None` for an empty histogram.
    #[must_use]
    pub fn quantile_above_mean(&self, q: f64, mean: f64) -> Option<f64> {
        self.bucket_at(q).map(|at| if is_within(at, mean) { middle(at).max(mean) } else { middle(at) })
    }

    /// Returns the first bucket at which the cumulative weight reaches the fraction `q` of the total.
    fn bucket_at(&self, q: f64) -> Option<usize> {
        let wanted = q * self.total as f64;
        let mut sum = 0u64;
        if self.total == 0 {
            return None;
        }
        self.weights.iter().enumerate().find_map(|(i, &weight)| {
            let weight: u64 = weight.into();
            sum += weight;
            (weight > 0 && sum as f64 >= wanted).then_some(self.first + i)
        })
    }

    /// Returns the heap memory of the histogram in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.weights.capacity() * size_of::<W>()
    }
}

/// Histogram of a flow's RTTs above its base RTT, in ticks of 2¹⁶ ps: fine enough, with few empty buckets per flow.
#[derive(Clone, Debug, Default)]
pub struct RttHistogram<W = u64>(Histogram<W>);

/// Binary logarithm of a tick, in picoseconds.
const TICK_BITS: u32 = 16;

impl<W: Weight> RttHistogram<W> {
    /// Adds an RTT above the base RTT with a weight.
    #[inline]
    pub fn add(&mut self, above_base: Duration, weight: W) {
        self.0.add(above_base.as_ps() >> TICK_BITS, weight);
    }

    /// Returns the sum of all weights.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.0.total()
    }

    /// Returns a quantile of the RTT above the base RTT, in seconds; `None` for an empty histogram.
    #[must_use]
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        self.0.quantile(q).map(seconds)
    }

    /// Returns the 99th percentile of the RTT above the base RTT, in seconds. `mean_s` is the mean above the base RTT.
    #[must_use]
    pub fn p99_s(&self, mean_s: f64) -> Option<f64> {
        self.0.quantile_above_mean(0.99, mean_s * 1e12 / f64::from(1 << TICK_BITS)).map(seconds)
    }

    /// Returns the heap memory of the histogram in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// Returns ticks in seconds.
fn seconds(ticks: f64) -> f64 {
    Duration::from_ps((ticks as u64) << TICK_BITS).as_secs()
}

/// Returns the range of values that share a bucket with `value` in any histogram.
#[must_use]
pub fn bucket_of(value: u64) -> Range<u64> {
    if value < EXACT {
        return value..value + 1;
    }
    let shift = value.ilog2() - SUB_BITS;
    let start = value >> shift << shift;
    start..start.saturating_add(1 << shift)
}

fn bucket(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let exponent = value.ilog2();
    let sub = (value >> (exponent - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    (EXACT + (u64::from(exponent - SUB_BITS - 1) << SUB_BITS) + sub) as usize
}

fn middle(bucket: usize) -> f64 {
    let (start, width) = start_and_width(bucket);
    start + (width - 1.0) / 2.0
}

/// Returns true if a value lies between the smallest and the largest integer of a bucket.
fn is_within(bucket: usize, value: f64) -> bool {
    let (start, width) = start_and_width(bucket);
    start <= value && value <= start + (width - 1.0)
}

/// Returns the smallest value of a bucket and the number of its values.
fn start_and_width(bucket: usize) -> (f64, f64) {
    let i = bucket as u64;
    if i < EXACT {
        return (i as f64, 1.0);
    }
    let octave = (i - EXACT) >> SUB_BITS;
    let sub = (i - EXACT) & ((1 << SUB_BITS) - 1);
    let width = (1u64 << (octave + 1)) as f64;
    (((1 << SUB_BITS) + sub) as f64 * width, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::<u64>::default();
        assert_eq!(h.quantile(0.5), None);
        assert_eq!(h.heap_bytes(), 0);
        for v in 1..=4 {
            h.add(v, 10);
        }
        assert_eq!(h.quantile(0.5), Some(2.0));
        assert_eq!(h.quantile(0.99), Some(4.0));
        assert_eq!(h.quantile(0.0), Some(1.0));
    }

    /// Values added in rising or falling order give the same quantiles, and need memory only for the octaves in use.
    #[test]
    fn memory_is_that_of_the_octaves_in_use() {
        let (mut up, mut down) = (Histogram::<u32>::default(), Histogram::<u32>::default());
        for value in 1_000_000..1_010_000 {
            up.add(value, 1);
            down.add(2_009_999 - value, 1);
        }
        for q in [0.0, 0.1, 0.5, 0.99, 1.0] {
            assert_eq!(up.quantile(q), down.quantile(q), "{q}");
        }
        assert_eq!((up.heap_bytes(), down.heap_bytes()), (128, 128), "one octave of 32 counts");
        down.add(0, 1);
        assert_eq!(down.quantile(0.0), Some(0.0));
        assert_eq!(down.quantile(1.0), up.quantile(1.0));
    }

    #[test]
    fn a_mean_in_another_bucket_does_not_change_a_quantile() {
        let mut h = Histogram::<u64>::default();
        h.add(3, 99);
        h.add(1000, 1);
        assert_eq!(h.quantile_above_mean(0.99, 12.97), Some(3.0), "the mean is above most values");
        h.add(1001, 9999);
        assert_eq!(h.quantile_above_mean(0.99, 991.0), h.quantile(0.99), "the mean is below the middle");
    }

    proptest! {
        #[test]
        fn a_constant_has_its_mean_as_quantile(value in 0u64..1 << 40, weight in 1u64..1 << 20) {
            let mut h = Histogram::<u64>::default();
            h.add(value, weight);
            let found = h.quantile_above_mean(0.99, value as f64).unwrap().min(value as f64);
            prop_assert_eq!(found, value as f64);
        }

        #[test]
        fn quantiles_keep_order(values in proptest::collection::vec((1u64..1 << 30, 1u64..1000), 1..40)) {
            let mut h = Histogram::<u64>::default();
            for &(value, weight) in &values {
                h.add(value, weight);
            }
            let weights: u64 = values.iter().map(|v| v.1).sum();
            let mean = values.iter().map(|v| (v.0 * v.1) as f64).sum::<f64>() / weights as f64;
            let (min, max) = (values.iter().map(|v| v.0).min().unwrap(), values.iter().map(|v| v.0).max().unwrap());
            let (p50, p99) = (h.quantile(0.5).unwrap().min(max as f64), h.quantile_above_mean(0.99, mean).unwrap().min(max as f64));
            let lowest = bucket_of(min).start as f64;
            prop_assert!(lowest <= p50 && p50 <= p99 && p99 <= max as f64, "{lowest} {p50} {p99} {max}");
            if bucket(p99 as u64) == bucket(mean as u64) {
                prop_assert!(p99 >= mean.floor(), "{p99} is below the mean {mean}");
            }
        }

        #[test]
        fn a_bucket_is_within_one_in_64(value in 0u64..1 << 62) {
            let mid = middle(bucket(value));
            prop_assert!((mid - value as f64).abs() <= value as f64 / 64.0, "{value} became {mid}");
        }

        #[test]
        fn a_bucket_holds_its_values_and_no_others(value in 0u64..1 << 62) {
            let values = bucket_of(value);
            prop_assert!(values.contains(&value));
            prop_assert_eq!(bucket(values.start), bucket(values.end - 1));
            prop_assert!(bucket(values.end) > bucket(value));
            prop_assert!(values.start == 0 || bucket(values.start - 1) < bucket(value));
        }

        #[test]
        fn buckets_keep_order(a in 0u64..1 << 40, b in 0u64..1 << 40) {
            prop_assert_eq!(bucket(a.min(b)) <= bucket(a.max(b)), true);
        }
    }
}
