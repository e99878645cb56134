//! Random streams: one for each thing that needs chance, so that adding another leaves its draws as they were.

use rand_pcg::Pcg64;

/// What of a link direction a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Which packets are lost at random.
    Loss,
    Queue,
    Reorder,
    Duplicate,
}

/// Keeps the parts' states far apart; odd, otherwise of no meaning (⌊2¹²⁸/φ⌋).
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The stream of one part of one link direction: the seed picks the sequence, the entity the stream.
pub(crate) fn stream(seed: u64, link: u32, part: Part) -> Pcg64 {
    Pcg64::new(u128::from(seed) ^ SPREAD.wrapping_mul(part as u128), u128::from(link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng as _;
    use waterfill_network::random::uniform;

    #[test]
    fn streams_differ_by_seed_link_and_part() {
        let first = |mut rng: Pcg64| rng.next_u64();
        let mut seen = Vec::new();
        for seed in 0..3 {
            for link in 0..3 {
                for part in [Part::Loss, Part::Queue, Part::Reorder, Part::Duplicate] {
                    seen.push(first(stream(seed, link, part)));
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 36);
    }

    /// Two parts of one link decide as if they knew nothing of each other.
    #[test]
    fn parts_are_independent() {
        let (mut a, mut b) = (stream(1, 0, Part::Reorder), stream(1, 0, Part::Duplicate));
        let n = 100_000;
        let both = (0..n).filter(|_| (uniform(&mut a) < 0.5) & (uniform(&mut b) < 0.5)).count() as f64;
        // n/4 with a standard deviation of √(n · 3/16) = 137.
        assert!((both - 25_000.0).abs() < 5.0 * 137.0, "{both}");
    }
}
