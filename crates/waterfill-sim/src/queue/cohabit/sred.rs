//! SRED's zombie list, as the cohabitation paper uses it (§4.2, §6). Source: T. J. Ott, T. V. Lakshman, L. H. Wong,
//! *SRED: Stabilized RED*, IEEE INFOCOM 1999.
//!
//! A packet is compared with an entry drawn from a table of earlier packets. If both belong to one flow it is a hit; if
//! not, the packet replaces the entry with a given probability. The inverse of the hit frequency estimates the number
//! of flows.
//!
//! Reading: one table per class. A flow with the share s of its class's packets hits with probability s. So the
//! frequency is Σ s², and its inverse is the number of flows if all have one rate, otherwise less. With one table for
//! both classes (`shared`), an explicit packet hits with the flow's share of *all* packets: the estimate is the number
//! of explicit flows over their share of the packets. The fair share computed from it is wrong until the class has it.
//! A test shows both.
//!
//! Reading: P(t) of a class is an average over the packets of that class. With `trials = all` it is one over all
//! packets, of which only the class's can hit: the estimate is then larger by the inverse of the class's share of the
//! packets.
//!
//! Reading: the average starts as the plain mean of the first 1/δ comparisons, not as a guess.

use waterfill_network::Trials;

use super::{Class, PerClass};

/// Hit statistics of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Hits {
    /// Estimated hit probability P(t).
    probability: f64,
    /// Number of comparisons so far.
    count: u64,
}

/// `[xcp-tcp-2008:eq5]` Returns the updated hit probability, P(t) = (1 − δ) P(t − 1) + δ Hit(t).
fn hit_probability(before: f64, delta: f64, hit: bool) -> f64 {
    (1.0 - delta) * before + delta * f64::from(u8::from(hit))
}

impl Hits {
    fn count_trial(&mut self, delta: f64, hit: bool) {
        self.count += 1;
        self.probability = hit_probability(self.probability, delta.max(1.0 / self.count as f64), hit);
    }
}

/// Zombie lists that estimate the number of flows, one per class or one for both.
#[derive(Debug)]
pub(super) struct Sred {
    tables: PerClass<Vec<u64>>,
    hits: PerClass<Hits>,
    size: u32,
    /// Probability that a miss replaces the table entry, times 2¹⁶.
    replace: u64,
    /// Weight δ of one comparison in the hit probability.
    delta: f64,
    shared: bool,
    trials: Trials,
}

impl Sred {
    pub(super) fn new(size: u32, replace: f64, delta: f64, shared: bool, trials: Trials) -> Self {
        Self {
            tables: PerClass::default(),
            hits: PerClass::default(),
            size,
            replace: (replace * f64::from(1 << 16)).round() as u64,
            delta,
            shared,
            trials,
        }
    }

    /// Compares a packet with a random table entry, or adds the packet while the table fills. Returns the operations
    /// and writes that this took.
    pub(super) fn on_packet(&mut self, random: u64, class: Class, flow: u64) -> (u64, u64) {
        let table = &mut self.tables[if self.shared { Class::Explicit } else { class }];
        if table.len() < self.size as usize {
            table.push(flow); // the first packets fill the table
            return (1, 1);
        }
        // The paper's two random numbers: the upper 32 bits draw the entry, 16 of the others decide on replacing it.
        let drawn = ((random >> 32) * u64::from(self.size)) >> 32;
        let zombie = &mut table[drawn as usize];
        let hit = *zombie == flow;
        let replaced = !hit && (random & 0xffff) < self.replace;
        if replaced {
            *zombie = flow;
        }
        for counted in Class::BOTH {
            if counted == class || self.trials == Trials::All {
                self.hits[counted].count_trial(self.delta, hit && counted == class);
            }
        }
        (4, u64::from(replaced))
    }

    pub(super) fn flows(&self) -> PerClass<f64> {
        PerClass::from_fn(|class| {
            let Hits { probability, count } = self.hits[class];
            if count == 0 {
                0.0
            } else {
                // There are no more flows than comparisons; before the first hit nothing else is known.
                1.0 / probability.max(1.0 / count as f64)
            }
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        Class::BOTH.iter().map(|&class| self.tables[class].capacity() * size_of::<u64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eq5_by_hand() {
        assert!((hit_probability(0.1, 0.25 / 1000.0, true) - 0.100_225).abs() < 1e-12);
        assert!((hit_probability(0.1, 0.25 / 1000.0, false) - 0.099_975).abs() < 1e-12);
    }
}
