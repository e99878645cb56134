//! Weighted histograms with logarithmic buckets: quantiles in bounded memory.
//!
//! Values below 64 are kept exactly, larger ones in 32 buckets per octave: a quantile is off by up
//! to 1/64 of its value.

/// Sub-buckets per octave, as a power of two.
const SUB_BITS: u32 = 5;
const EXACT: u64 = 1 << (SUB_BITS + 1);

/// A histogram of non-negative integers with integer weights.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    weights: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Adds `weight` at `value`.
    pub fn add(&mut self, value: u64, weight: u64) {
        let i = bucket(value);
        if i >= self.weights.len() {
            self.weights.resize(i + 1, 0);
        }
        self.weights[i] += weight;
        self.total += weight;
    }

    /// Returns the smallest value with at least the fraction `q` of the weight at or below it; `None` if empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = q * self.total as f64;
        let mut sum = 0u64;
        if self.total == 0 {
            return None;
        }
        self.weights.iter().enumerate().find_map(|(i, &weight)| {
            sum += weight;
            (weight > 0 && sum as f64 >= wanted).then(|| middle(i))
        })
    }

    /// Returns the bytes of heap memory that it holds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.weights.capacity() * size_of::<u64>()
    }
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
    let i = bucket as u64;
    if i < EXACT {
        return i as f64;
    }
    let octave = (i - EXACT) >> SUB_BITS;
    let sub = (i - EXACT) & ((1 << SUB_BITS) - 1);
    let width = (1u64 << (octave + 1)) as f64;
    ((1 << SUB_BITS) + sub) as f64 * width + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(0.5), None);
        for v in 1..=4 {
            h.add(v, 10);
        }
        assert_eq!(h.quantile(0.5), Some(2.0));
        assert_eq!(h.quantile(0.99), Some(4.0));
        assert_eq!(h.quantile(0.0), Some(1.0));
    }

    proptest! {
        #[test]
        fn a_bucket_is_within_one_in_64(value in 0u64..1 << 62) {
            let mid = middle(bucket(value));
            prop_assert!((mid - value as f64).abs() <= value as f64 / 64.0, "{value} became {mid}");
        }

        #[test]
        fn buckets_keep_order(a in 0u64..1 << 40, b in 0u64..1 << 40) {
            prop_assert_eq!(bucket(a.min(b)) <= bucket(a.max(b)), true);
        }
    }
}
