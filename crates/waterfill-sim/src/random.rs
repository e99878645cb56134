//! Random streams, one per entity, so that adding an entity does not change the draws of the others.

use rand_pcg::Pcg64;

/// Random streams of a link direction, one per purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkStream {
    Loss,
    Queue,
    Reorder,
    Duplicate,
    Contents,
}

/// Multiplier that keeps the streams' initial states far apart: the odd number ⌊2¹²⁸/φ⌋.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// Returns the random stream for one purpose of a link direction. The seed and the purpose set the stream's state; the
/// link selects its sequence.
pub(crate) fn stream(seed: u64, link: u32, part: LinkStream) -> Pcg64 {
    Pcg64::new(u128::from(seed) ^ SPREAD.wrapping_mul(part as u128), u128::from(link))
}

/// Hashes a value with a salt (the finaliser of SplitMix64).
pub(crate) const fn mix(value: u64, salt: u64) -> u64 {
    let mut x = value ^ salt;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
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
                for part in [
                    LinkStream::Loss,
                    LinkStream::Queue,
                    LinkStream::Reorder,
                    LinkStream::Duplicate,
                    LinkStream::Contents,
                ] {
                    seen.push(first(stream(seed, link, part)));
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 45);
    }

    /// The draws of two streams of one link are uncorrelated.
    #[test]
    fn parts_are_independent() {
        let (mut a, mut b) = (stream(1, 0, LinkStream::Reorder), stream(1, 0, LinkStream::Duplicate));
        let n = 100_000;
        let both = (0..n).filter(|_| (uniform(&mut a) < 0.5) & (uniform(&mut b) < 0.5)).count() as f64;
        // n/4 with a standard deviation of √(n · 3/16) = 137.
        assert!((both - 25_000.0).abs() < 5.0 * 137.0, "{both}");
    }
}
