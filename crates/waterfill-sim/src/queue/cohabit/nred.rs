//! NRED's Bloom filter, as the cohabitation paper describes it (§4.2). Source: J.-S. Li, Y.-S. Su, *Random Early
//! Detection With Flow Number Estimation and Queue Length Feedback Control*, Journal of Systems Architecture 52(6),
//! 2006.
//!
//! L levels of P bins of one bit. A packet's flow is hashed to one bin per level. If any of them is empty the flow is
//! new in this measurement interval, and N_act grows. A new flow whose L bins were all set by others is missed: a
//! misclassification. A flow counts once whatever its rate, unlike in a zombie list.

use waterfill_laws::units::{Duration, Instant};

use waterfill_network::HashKey;

use super::periods::Periods;
use super::{Class, PerClass};
use crate::queue::discipline::address_pair;
use crate::random::mix;

/// Bloom filters that estimate the number of flows in each class.
#[derive(Debug)]
pub(super) struct Nred {
    periods: Periods,
    /// Salts of the hash functions, one per level.
    salts: Box<[u64]>,
    bins: u32,
    hash: HashKey,
    /// Bits of each class's filter, level by level.
    filled: PerClass<Box<[u64]>>,
}

impl Nred {
    pub(super) fn new(salts: Box<[u64]>, bins: u32, period: Duration, hash: HashKey) -> Self {
        let words = (salts.len() * bins as usize).div_ceil(64);
        let filled = PerClass::from_fn(|_| vec![0; words].into_boxed_slice());
        Self { periods: Periods::new(period), salts, bins, hash, filled }
    }

    fn advance(&mut self, now: Instant) {
        if self.periods.advance(now) {
            for class in Class::BOTH {
                self.filled[class].fill(0);
            }
        }
    }

    /// Counts a packet's flow. Returns the operations (one hash and one access per level) and the writes that this
    /// took.
    pub(super) fn on_packet(&mut self, now: Instant, class: Class, flow: u64) -> (u64, u64) {
        self.advance(now);
        let flow = match self.hash {
            HashKey::Flow => flow,
            HashKey::Pair => address_pair(flow),
        };
        let filled = &mut self.filled[class];
        let mut set = 0;
        for (level, &salt) in self.salts.iter().enumerate() {
            let bin = level * self.bins as usize + (mix(flow, salt) % u64::from(self.bins)) as usize;
            let (word, bit) = (bin / 64, 1 << (bin % 64));
            set += u64::from(filled[word] & bit == 0);
            filled[word] |= bit;
        }
        self.periods.current[class] += u32::from(set > 0);
        (2 * self.salts.len() as u64, set)
    }

    pub(super) fn flows(&mut self, now: Instant) -> PerClass<f64> {
        self.advance(now);
        self.periods.flows()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        Class::BOTH.iter().map(|&class| self.filled[class].len() * size_of::<u64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(flows: u32, levels: u64, bins: u32) -> f64 {
        let salts = (1..=levels).map(|level| mix(level, 9)).collect();
        let mut nred = Nred::new(salts, bins, Duration::from_millis(1000), HashKey::Flow);
        for _ in 0..2 {
            for flow in 0..flows {
                nred.on_packet(Instant::ZERO, Class::Tcp, u64::from(flow));
            }
        }
        nred.flows(Instant::ZERO)[Class::Tcp]
    }

    /// Returns the expected count of `flows` flows. A flow is missed if all its bins were set by earlier flows.
    fn expected_count(flows: u32, levels: u64, bins: u32) -> f64 {
        let empty = 1.0 - 1.0 / f64::from(bins);
        (0..flows).map(|before| 1.0 - (1.0 - empty.powf(f64::from(before))).powf(levels as f64)).sum()
    }

    #[test]
    fn each_flow_counts_once_whatever_it_sends() {
        assert_eq!(counted(13, 4, 4096), 13.0);
        assert_eq!(counted(1, 1, 1), 1.0);
    }

    #[test]
    fn misclassifications_agree_with_the_expected_count() {
        for (flows, levels, bins) in [(1000, 1, 1024), (1000, 2, 1024), (1000, 4, 1024), (10_000, 4, 4096)] {
            let (found, expected) = (counted(flows, levels, bins), expected_count(flows, levels, bins));
            assert!((found - expected).abs() < 0.05 * f64::from(flows), "{flows} {levels} {bins}: {found} {expected}");
            assert!(found < f64::from(flows));
        }
    }

    #[test]
    fn more_levels_misclassify_fewer_flows() {
        let errors = [1, 2, 4, 8].map(|levels| 500.0 - counted(500, levels, 1024));
        assert!(errors.is_sorted_by(|a, b| a > b), "{errors:?}");
    }
}
