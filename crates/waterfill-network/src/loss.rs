//! Packet loss on a wire: loss models and their parameters.

use rand_pcg::Pcg64;
use serde::Deserialize;

use crate::check::probability;
use crate::random::uniform;

/// Parameters of a loss model.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSpec {
    /// Independent loss of each packet.
    Independent {
        /// Loss probability.
        p: f64,
    },
    /// Loss in bursts, by a Markov chain of two states. The chain starts in the good state and takes a step after each
    /// packet.
    ///
    /// Sources: E. N. Gilbert, *Capacity of a Burst-Noise Channel*, 1960; E. O. Elliott, *Estimates of Error Rates for
    /// Codes on Burst-Noise Channels*, 1963.
    GilbertElliott {
        /// Probability of a step from the good to the bad state.
        p: f64,
        /// Probability of a step from the bad to the good state.
        r: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Loss of every n-th data packet. Handshakes and acknowledgements are neither counted nor lost.
    Periodic {
        /// Number of data packets per loss.
        every: u64,
    },
}

impl LossSpec {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// `PARAMETER: must be …`.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Self::Independent { p } => probability("p", p),
            Self::GilbertElliott { p, r, loss_good, loss_bad } => {
                probability("p", p)?;
                probability("r", r)?;
                probability("loss_good", loss_good)?;
                probability("loss_bad", loss_bad)
            }
            Self::Periodic { every: 0 } => Err("every: must be a whole number above zero, got 0".into()),
            Self::Periodic { .. } => Ok(()),
        }
    }
}

/// Loss model with its state.
#[derive(Clone, Copy, Debug)]
pub struct Loss(State);

#[derive(Clone, Copy, Debug)]
enum State {
    Independent { p: f64 },
    GilbertElliott { p: f64, r: f64, loss: [f64; 2], bad: bool },
    Periodic { every: u64, left: u64 },
}

impl Loss {
    /// Creates a loss model in its initial state.
    #[must_use]
    pub const fn new(spec: LossSpec) -> Self {
        Self(match spec {
            LossSpec::Independent { p } => State::Independent { p },
            LossSpec::GilbertElliott { p, r, loss_good, loss_bad } => {
                State::GilbertElliott { p, r, loss: [loss_good, loss_bad], bad: false }
            }
            LossSpec::Periodic { every } => State::Periodic { every, left: every },
        })
    }

    /// Returns true if the next packet is lost. Only a model that needs to know the kind of packet calls `is_data`.
    #[allow(clippy::indexing_slicing, reason = "two states, by a flag")]
    #[inline]
    pub fn is_lost(&mut self, is_data: impl FnOnce() -> bool, rng: &mut Pcg64) -> bool {
        match &mut self.0 {
            State::Independent { p } => uniform(rng) < *p,
            State::GilbertElliott { p, r, loss, bad } => {
                let lost = uniform(rng) < loss[usize::from(*bad)];
                *bad ^= uniform(rng) < if *bad { *r } else { *p };
                lost
            }
            State::Periodic { every, left } => {
                if !is_data() {
                    return false;
                }
                *left -= 1;
                let lost = *left == 0;
                if lost {
                    *left = *every;
                }
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `n` data packets and returns a flag for each that is true if the packet is lost.
    fn losses(spec: LossSpec, n: usize) -> Vec<bool> {
        let (mut loss, mut rng) = (Loss::new(spec), Pcg64::new(3, 0));
        (0..n).map(|_| loss.is_lost(|| true, &mut rng)).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|&&lost| lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn gilbert_elliott_loses_p_over_p_plus_r_in_bursts_of_one_over_r() {
        let (p, r) = (0.01, 0.25);
        let n = 1_000_000;
        let losses = losses(LossSpec::GilbertElliott { p, r, loss_good: 0.0, loss_bad: 1.0 }, n);
        let bursts = losses.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let lost = share(&losses) * n as f64;
        // Bursts come at rate π_good p, and last geometrically: mean 1/r, variance (1 − r)/r².
        let expected = n as f64 * p * r / (p + r);
        assert!((bursts - expected).abs() < 5.0 * expected.sqrt(), "{bursts} bursts");
        let (mean, sigma) = (1.0 / r, (1.0 - r).sqrt() / r / bursts.sqrt());
        assert!((lost / bursts - mean).abs() < 5.0 * sigma, "mean burst {}", lost / bursts);
        // The count's standard deviation, correlation by runs included: √(n π_b π_g (1 + λ)/(1 − λ)), λ = 1 − p − r.
        let (bad, good, lambda) = (p / (p + r), r / (p + r), 1.0 - p - r);
        let sigma = (bad * good * (1.0 + lambda) / (1.0 - lambda) / n as f64).sqrt();
        assert!((share(&losses) - bad).abs() < 5.0 * sigma, "share {}", share(&losses));
    }

    #[test]
    fn gilbert_elliott_with_losses_in_both_states() {
        let spec = LossSpec::GilbertElliott { p: 0.02, r: 0.06, loss_good: 0.01, loss_bad: 0.5 };
        // π_bad = 0.25: 0.75 · 0.01 + 0.25 · 0.5 = 0.1325.
        let lost = share(&losses(spec, 1_000_000));
        assert!((lost - 0.1325).abs() < 0.005, "{lost}"); // five standard deviations by the formula above: 0.0049
    }

    #[test]
    fn independent_losses_do_not_cluster() {
        let n = 1_000_000;
        let losses = losses(LossSpec::Independent { p: 0.1 }, n);
        assert!((share(&losses) - 0.1).abs() < 5.0 * (0.09 / n as f64).sqrt());
        let pairs = losses.windows(2).filter(|w| w[0] && w[1]).count() as f64 / n as f64;
        assert!((pairs - 0.01).abs() < 5.0 * (0.01f64 * 1.2 / n as f64).sqrt(), "{pairs}");
    }

    #[test]
    fn periodic_losses_are_exact_and_count_data_only() {
        let (mut loss, mut rng) = (Loss::new(LossSpec::Periodic { every: 3 }), Pcg64::new(3, 0));
        let data = [true, false, true, false, false, true, true, true, false, true];
        let lost = data.map(|is_data| loss.is_lost(|| is_data, &mut rng));
        assert_eq!(lost, [false, false, false, false, false, true, false, false, false, true]);
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let wrong = LossSpec::GilbertElliott { p: 0.1, r: 1.5, loss_good: 0.0, loss_bad: 1.0 };
        assert_eq!(wrong.check().unwrap_err(), "r: must be in [0, 1], got 1.5");
        let never = LossSpec::Periodic { every: 0 };
        assert_eq!(never.check().unwrap_err(), "every: must be a whole number above zero, got 0");
        assert_eq!(LossSpec::Periodic { every: 1 }.check(), Ok(()));
    }
}
