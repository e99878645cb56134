//! A fixed piece of CPU work, to which every figure is a ratio.
//!
//! A host's speed changes with its clock rate and with what else runs on it. Work that never changes, measured before
//! and after every case, changes with it, so that ratios of different days and hosts can be compared. Change `VERSION`
//! with anything here: ratios of different versions cannot.

use std::hint::black_box;

use crate::clock::{self, Seconds};

/// Version of the work; a history compares only ratios of one version.
pub(crate) const VERSION: u32 = 1;

/// Steps of the loop.
pub(crate) const STEPS: f64 = 8_388_608.0;

/// Entries of the table, 256 kB: like a busy simulator's state it fits the second level of a cache, not the first.
const ENTRIES: usize = 1 << 15;

/// Runs the loop; returns the seconds of CPU time that it took.
pub(crate) fn cpu_s() -> f64 {
    let mut table: Vec<u64> = (0..ENTRIES as u64).collect();
    let ((), Seconds { cpu, .. }) = clock::measure(|| {
        black_box(work(&mut table));
    });
    cpu
}

/// Mixes random entries of the table: each step loads, branches, multiplies and stores, and depends on the one before.
fn work(table: &mut [u64]) -> u64 {
    let mut state = 1_u64;
    for _ in 0..STEPS as u32 {
        let entry = &mut table[(state >> 49) as usize];
        if *entry & 1 == 0 {
            *entry = entry.rotate_left(23) ^ state;
        } else {
            *entry = entry.wrapping_add(state);
        }
        state = (state ^ *entry).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_the_same_each_time() {
        let run = || work(&mut (0..ENTRIES as u64).collect::<Vec<_>>());
        assert_eq!(run(), run());
    }
}
