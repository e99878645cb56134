//! SRED's zombie list (T. J. Ott, T. V. Lakshman, L. H. Wong, *SRED: Stabilized RED*, IEEE INFOCOM 1999), as the paper
//! uses it (§4.2, §6).
//!
//! A packet is compared with one drawn from a table of packets seen before. If both are of one flow it is a hit; if not,
//! it takes the other's place with a probability. The inverse of the hits' frequency estimates the number of flows.
//!
//! Reading: one table a class. A flow that has the share s of its class's packets hits with probability s, so the
//! frequency is Σ s² and its inverse the number of flows only where all have one rate; where they do not it is smaller.
//! With one table for both classes (`shared`), an explicit packet hits with the flow's share of *all* packets: the
//! estimate is the number of explicit flows over the explicit share of the packets, and the fair share that
//! follows from it is wrong as long as the class does not have it. A test shows both.
//!
//! Reading: the average starts with the plain mean of the first hits, 1/δ of them, rather than with a guess.

use super::{Class, PerClass};

/// State of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Hits {
    /// P(t).
    probability: f64,
    /// Comparisons so far.
    count: u64,
}

/// `[xcp-tcp-2008:eq5]` P(t) = (1 − δ) P(t − 1) + δ Hit(t).
fn hit_probability(before: f64, delta: f64, hit: bool) -> f64 {
    (1.0 - delta) * before + delta * f64::from(u8::from(hit))
}

/// A zombie list for each class, or one for both.
#[derive(Debug)]
pub(super) struct Sred {
    tables: PerClass<Vec<u64>>,
    hits: PerClass<Hits>,
    size: u32,
    /// Of 2¹⁶: probability that a miss replaces.
    replace: u64,
    /// The weight of a comparison: `replace` over `size` (§4.2).
    delta: f64,
    shared: bool,
}

impl Sred {
    pub(super) fn new(size: u32, replace: f64, shared: bool) -> Self {
        Self {
            tables: PerClass::default(),
            hits: PerClass::default(),
            size,
            replace: (replace * f64::from(1 << 16)).round() as u64,
            delta: replace / f64::from(size),
            shared,
        }
    }

    /// Operations and writes that the packet took; `chance` is 64 random bits.
    pub(super) fn sees(&mut self, chance: u64, class: Class, flow: u64) -> (u64, u64) {
        let table = &mut self.tables[if self.shared { Class::Explicit } else { class }];
        if table.len() < self.size as usize {
            table.push(flow); // the first packets fill it
            return (1, 1);
        }
        // The upper 32 bits draw the entry, 16 of the others decide on replacing it: the paper's two random numbers.
        let drawn = ((chance >> 32) * u64::from(self.size)) >> 32;
        let zombie = &mut table[drawn as usize];
        let hit = *zombie == flow;
        let replaced = !hit && (chance & 0xffff) < self.replace;
        if replaced {
            *zombie = flow;
        }
        let hits = &mut self.hits[class];
        hits.count += 1;
        let delta = self.delta.max(1.0 / hits.count as f64);
        hits.probability = hit_probability(hits.probability, delta, hit);
        (4, u64::from(replaced))
    }

    pub(super) fn flows(&self) -> PerClass<f64> {
        PerClass::from_fn(|class| {
            let Hits { probability, count } = self.hits[class];
            if count == 0 {
                0.0
            } else {
                // No more flows than comparisons: before the first hit that is all that is known.
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
    use super::super::estimate::testing::estimate;
    use super::*;
    use waterfill_network::EstimatorSpec;

    const OWN: EstimatorSpec = EstimatorSpec::Sred { size: 1000, replace: 0.25, shared: false };
    const SHARED: EstimatorSpec = EstimatorSpec::Sred { size: 1000, replace: 0.25, shared: true };

    fn flows(explicit: (usize, f64), tcp: (usize, f64)) -> Vec<(Class, f64)> {
        let of = |class, (count, rate)| std::iter::repeat_n((class, rate), count);
        of(Class::Explicit, explicit).chain(of(Class::Tcp, tcp)).collect()
    }

    #[test]
    fn eq5_by_hand() {
        assert!((hit_probability(0.1, 0.25 / 1000.0, true) - 0.100_225).abs() < 1e-12);
        assert!((hit_probability(0.1, 0.25 / 1000.0, false) - 0.099_975).abs() < 1e-12);
    }

    #[test]
    fn flows_of_one_rate_are_counted() {
        // A standard deviation of P is √(P (1 − P) δ/2), 3.4 % of it for ten flows; five of them.
        let found = estimate(&OWN, 1.0, &flows((10, 1.0), (3, 1.0)), 200_000).0;
        assert!((found[Class::Explicit] - 10.0).abs() < 1.7, "{found:?}");
        assert!((found[Class::Tcp] - 3.0).abs() < 0.3, "{found:?}");
    }

    /// 3 TCP flows that send ten times what 10 explicit flows do: tables of their own do not mind.
    #[test]
    fn classes_of_unequal_rates_need_tables_of_their_own() {
        let rates = flows((10, 1.0), (3, 10.0));
        let own = estimate(&OWN, 1.0, &rates, 400_000).0;
        assert!((own[Class::Explicit] - 10.0).abs() < 1.7, "{own:?}");
        assert!((own[Class::Tcp] - 3.0).abs() < 0.3, "{own:?}");
        // One table: 10/(10/40) = 40 explicit flows, and 3/(30/40) = 4 TCP flows.
        let shared = estimate(&SHARED, 1.0, &rates, 400_000).0;
        assert!((shared[Class::Explicit] - 40.0).abs() < 12.0, "{shared:?}");
        assert!((shared[Class::Tcp] - 4.0).abs() < 0.4, "{shared:?}");
    }

    /// Within a class the estimate is 1/Σ s²: (1 + 2 + 3 + 4)²/(1 + 4 + 9 + 16) = 3.33 of four flows.
    #[test]
    fn flows_of_unequal_rates_count_less() {
        let mut rates = flows((10, 1.0), (0, 0.0));
        rates.extend([1.0, 2.0, 3.0, 4.0].map(|rate| (Class::Tcp, rate)));
        let found = estimate(&OWN, 1.0, &rates, 200_000).0;
        assert!((found[Class::Tcp] - 100.0 / 30.0).abs() < 0.3, "{found:?}");
    }

    #[test]
    fn nothing_is_known_before_the_table_is_full() {
        assert_eq!(estimate(&OWN, 1.0, &flows((1, 1.0), (0, 0.0)), 1000).0[Class::Explicit], 0.0);
        assert_eq!(estimate(&OWN, 1.0, &flows((1, 1.0), (0, 0.0)), 1001).0[Class::Explicit], 1.0);
    }
}
