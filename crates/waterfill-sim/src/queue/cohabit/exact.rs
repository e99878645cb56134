//! The exact number of flows seen in a measurement interval: the oracle, whose state grows with the flows.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use waterfill_laws::units::{Duration, Instant};

use super::estimate::Periods;
use super::{Class, PerClass};
use crate::queue::fq_codel::mixed;

/// Names of flows are numbers: one mixing of their bits is enough, and it is the same in every run.
#[derive(Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mixed(self.0 ^ u64::from(byte), 0);
        }
    }

    fn write_u64(&mut self, x: u64) {
        self.0 = mixed(x, 0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
pub(super) struct Exact {
    periods: Periods,
    known: PerClass<HashSet<u64, BuildHasherDefault<Mix>>>,
}

impl Exact {
    pub(super) fn new(period: Duration) -> Self {
        Self { periods: Periods::new(period), known: PerClass::default() }
    }

    fn turn(&mut self, now: Instant) {
        if self.periods.turn(now) {
            for class in Class::BOTH {
                self.known[class].clear();
            }
        }
    }

    /// Operations and writes that the packet took.
    pub(super) fn sees(&mut self, now: Instant, class: Class, flow: u64) -> (u64, u64) {
        self.turn(now);
        let new = self.known[class].insert(flow);
        self.periods.running[class] += u32::from(new);
        (1, u64::from(new))
    }

    pub(super) fn flows(&mut self, now: Instant) -> PerClass<f64> {
        self.turn(now);
        self.periods.flows()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // A set's table has a byte of control beside each of its places.
        Class::BOTH.iter().map(|&class| self.known[class].capacity() * (size_of::<u64>() + 1)).sum()
    }
}
