//! Exact number of flows in a measurement interval: the reference method, whose state grows with the number of flows.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use waterfill_laws::units::{Duration, Instant};

use super::periods::Periods;
use super::{Class, PerClass};
use crate::random::mix;

/// Hasher of integer flow identifiers. Mixing their bits once is enough, and gives the same hashes in every run.
#[derive(Debug, Default)]
pub(super) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte), 0);
        }
    }

    fn write_u64(&mut self, x: u64) {
        self.0 = mix(x, 0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
pub(super) struct Exact {
    periods: Periods,
    known: PerClass<HashSet<u64, BuildHasherDefault<MixHasher>>>,
}

impl Exact {
    pub(super) fn new(period: Duration) -> Self {
        Self { periods: Periods::new(period), known: PerClass::default() }
    }

    fn advance(&mut self, now: Instant) {
        if self.periods.advance(now) {
            for class in Class::BOTH {
                self.known[class].clear();
            }
        }
    }

    /// Counts a packet's flow. Returns the numbers of operations and writes that this took.
    pub(super) fn on_packet(&mut self, now: Instant, class: Class, flow: u64) -> (u64, u64) {
        self.advance(now);
        let new = self.known[class].insert(flow);
        self.periods.current[class] += u32::from(new);
        (1, u64::from(new))
    }

    pub(super) fn flows(&mut self, now: Instant) -> PerClass<f64> {
        self.advance(now);
        self.periods.flows()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // The set's table has one control byte per slot.
        Class::BOTH.iter().map(|&class| self.known[class].capacity() * (size_of::<u64>() + 1)).sum()
    }
}
