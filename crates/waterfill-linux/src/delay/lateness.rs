//! Accuracy of a line: departure times minus due times, in buckets of one microsecond.

use serde::Serialize;

/// Lower edge of the first bucket in µs. Values outside the buckets count in the nearest bucket. The minimum and
/// maximum are exact.
const EARLIEST_US: i64 = -2_000;
const LATEST_US: i64 = 20_000;

/// Histogram of differences in nanoseconds, which may be negative.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    min_ns: i64,
    max_ns: i64,
}

/// Summary of differences in nanoseconds, which are negative for early frames. Quantiles are exact to a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Number of frames counted.
    pub count: u64,
    /// Minimum difference, of the earliest frame.
    pub min: i64,
    /// 1st percentile of the differences.
    pub p01: i64,
    /// Median of the differences.
    pub p50: i64,
    /// 99th percentile of the differences.
    pub p99: i64,
    /// 99.9th percentile of the differences.
    pub p999: i64,
    /// Maximum difference, of the latest frame.
    pub max: i64,
    /// 99th percentile of the absolute difference.
    pub abs_p99: i64,
}

impl Default for Lateness {
    fn default() -> Self {
        let buckets = vec![0; (LATEST_US - EARLIEST_US) as usize];
        Self { buckets, count: 0, min_ns: i64::MAX, max_ns: i64::MIN }
    }
}

impl Lateness {
    /// Counts the departure of a frame.
    pub fn add(&mut self, late_ns: i64) {
        let us = late_ns.div_euclid(1000).clamp(EARLIEST_US, LATEST_US - 1);
        self.buckets[(us - EARLIEST_US) as usize] += 1;
        self.count += 1;
        self.min_ns = self.min_ns.min(late_ns);
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Returns the summary, or `None` without departures.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        (self.count > 0).then(|| Spread {
            count: self.count,
            min: self.min_ns,
            p01: self.quantile(0.01),
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.max_ns,
            abs_p99: self.distance_quantile(0.99),
        })
    }

    /// Returns the upper edge of a quantile's bucket, limited to the minimum and maximum.
    fn quantile(&self, q: f64) -> i64 {
        let edges = (EARLIEST_US + 1..).map(|us| us * 1000);
        let found = reaches(self.buckets.iter().copied().zip(edges), q * self.count as f64);
        found.unwrap_or(self.max_ns).clamp(self.min_ns, self.max_ns)
    }

    fn distance_quantile(&self, q: f64) -> i64 {
        let zero = -EARLIEST_US as usize;
        let at = |i: usize| self.buckets.get(i).copied().unwrap_or(0);
        let both = (0..self.buckets.len()).map(|d| {
            let early = if d < zero { at(zero - 1 - d) } else { 0 };
            (at(zero + d) + early, (d as i64 + 1) * 1000)
        });
        let max = self.max_ns.abs().max(self.min_ns.abs());
        reaches(both, q * self.count as f64).unwrap_or(max).min(max)
    }
}

/// Returns the edge of the first nonempty bucket at which the cumulative count reaches `wanted`, or `None`.
fn reaches(buckets: impl Iterator<Item = (u64, i64)>, wanted: f64) -> Option<i64> {
    let mut sum = 0;
    buckets.into_iter().find_map(|(count, edge)| {
        sum += count;
        (count > 0 && sum as f64 >= wanted).then_some(edge)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_microsecond() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.spread(), None);
        for us in -50..50 {
            lateness.add(us * 1000 + 500);
        }
        let spread = lateness.spread().unwrap();
        assert_eq!((spread.count, spread.min, spread.max), (100, -49_500, 49_500));
        assert!(spread.p50.abs() <= 1000, "{spread:?}");
        assert!((spread.p99 - 48_500).abs() <= 1000, "{spread:?}");
        assert!((spread.abs_p99 - 49_500).abs() <= 1000, "{spread:?}");
    }

    #[test]
    fn values_beyond_the_buckets_count_and_extremes_are_exact() {
        let mut lateness = Lateness::default();
        lateness.add(-90_000_000);
        lateness.add(90_000_000);
        let spread = lateness.spread().unwrap();
        assert_eq!((spread.min, spread.max, spread.count), (-90_000_000, 90_000_000, 2));
        assert_eq!(spread.abs_p99, 20_000_000); // the last bucket's edge: "at least"
    }
}
