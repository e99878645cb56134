//! Sets of packet numbers as sorted, disjoint, half-open ranges.
//!
//! A queue, not a tree: there is one range per gap, most insertions extend the last range, and gaps are filled from the
//! front, where removal must not move the others. After slow start there can be thousands.

use std::collections::VecDeque;

/// A set of packet numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
    count: u64,
}

impl Ranges {
    /// Returns the number of elements in the set.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the ranges in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// Returns the largest number in the set, if any.
    pub(crate) fn last(&self) -> Option<u64> {
        self.ranges.back().map(|&(_, end)| end - 1)
    }

    /// Returns the range that contains `number`, if any.
    pub(crate) fn range_of(&self, number: u64) -> Option<(u64, u64)> {
        let i = self.ranges.partition_point(|&(_, end)| end <= number);
        self.ranges.get(i).copied().filter(|&(start, _)| start <= number)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.range_of(number).is_some()
    }

    /// Adds `start..end` to the set. Returns the number of elements that were new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // The ranges that touch or overlap start..end are first..past.
        let first = self.ranges.partition_point(|&(_, e)| e < start);
        let past = self.ranges.partition_point(|&(s, _)| s <= end);
        let mut merged = (start, end);
        let mut known = 0;
        for &(s, e) in self.ranges.range(first..past) {
            known += e - s;
            merged = (merged.0.min(s), merged.1.max(e));
        }
        let added = (merged.1 - merged.0) - known;
        if first == past {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..past);
        }
        self.count += added;
        added
    }

    /// Removes all but the `count` highest ranges.
    pub(crate) fn keep_last(&mut self, count: usize) {
        if let Some(extra) = self.ranges.len().checked_sub(count) {
            for (start, end) in self.ranges.drain(..extra) {
                self.count -= end - start;
            }
        }
    }

    /// Removes every number below `floor`.
    pub(crate) fn remove_below(&mut self, floor: u64) {
        let gone = self.ranges.partition_point(|&(_, end)| end <= floor);
        for (start, end) in self.ranges.drain(..gone) {
            self.count -= end - start;
        }
        if let Some(first) = self.ranges.front_mut() {
            if first.0 < floor {
                self.count -= floor - first.0;
                first.0 = floor;
            }
        }
    }

    /// Returns the number of elements of the set within `start..end`.
    pub(crate) fn count_within(&self, start: u64, end: u64) -> u64 {
        let first = self.ranges.partition_point(|&(_, e)| e <= start);
        self.ranges.range(first..).take_while(|&&(s, _)| s < end).map(|&(s, e)| e.min(end) - s.max(start)).sum()
    }

    /// Returns the smallest number at or above `from` that is not in the set.
    pub(crate) fn first_missing(&self, from: u64) -> u64 {
        self.range_of(from).map_or(from, |(_, end)| end)
    }

    /// Returns the `k`-th largest number in the set, counted from 1.
    pub(crate) fn kth_last(&self, mut k: u64) -> Option<u64> {
        for &(start, end) in self.ranges.iter().rev() {
            if end - start >= k {
                return Some(end - k);
            }
            k -= end - start;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The set agrees with a plain set of numbers under any sequence of insertions and removals.
        #[test]
        fn agrees_with_a_plain_set(steps in prop::collection::vec((0u64..60, 0u64..12, prop::bool::weighted(0.15)), 1..60)) {
            let mut ranges = Ranges::default();
            let mut plain = BTreeSet::new();
            for (start, length, remove) in steps {
                if remove {
                    ranges.remove_below(start);
                    plain = plain.split_off(&start);
                } else {
                    let before = plain.len() as u64;
                    plain.extend(start..start + length);
                    prop_assert_eq!(ranges.insert(start, start + length), plain.len() as u64 - before);
                }
                prop_assert_eq!(ranges.count(), plain.len() as u64);
                prop_assert_eq!(ranges.last(), plain.last().copied());
                prop_assert!(ranges.ranges.make_contiguous().windows(2).all(|w| w[0].1 < w[1].0), "disjoint and merged");
                for n in 0..75 {
                    prop_assert_eq!(ranges.contains(n), plain.contains(&n));
                    prop_assert_eq!(ranges.count_within(n, n + 9), plain.range(n..n + 9).count() as u64);
                    prop_assert_eq!(ranges.first_missing(n), (n..100).find(|m| !plain.contains(m)).unwrap());
                }
                for k in 1..5 {
                    prop_assert_eq!(ranges.kth_last(k), plain.iter().rev().nth(k as usize - 1).copied());
                }
            }
        }
    }
}
