//! Draws from a random stream. The engine decides which component owns which stream.

use rand_core::Rng as _;
use rand_pcg::Pcg64;

/// Draws a real number uniformly from [0, 1).
#[inline]
pub fn uniform(rng: &mut Pcg64) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws an integer uniformly from 0 to `n` − 1.
#[inline]
pub fn below(rng: &mut Pcg64, n: usize) -> usize {
    // The bias is below n / 2⁶⁴.
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_reaches_every_value_equally_often() {
        let mut rng = Pcg64::new(1, 0);
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[below(&mut rng, 7)] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn uniform_fills_the_unit_interval() {
        let mut rng = Pcg64::new(1, 0);
        let draws: Vec<f64> = (0..10_000).map(|_| uniform(&mut rng)).collect();
        assert!(draws.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = draws.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0f64 / 10_000.0).sqrt(), "{mean}");
    }
}
