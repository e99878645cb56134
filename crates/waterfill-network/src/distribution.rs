//! Distributions of sizes and times, each with a quantile function that turns one uniform number into one draw.
//!
//! Every kind uses one draw, so that the rest of a random stream does not depend on the kind.

use serde::Deserialize;
use waterfill_laws::math;

/// Distribution of numbers above zero, in the unit of the described quantity.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum Distribution {
    /// Constant: every draw has the same value.
    Constant {
        /// Value of every draw.
        mean: f64,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean of the distribution.
        mean: f64,
    },
    /// Pareto distribution, P(X > x) = (min / x)^shape. The minimum follows from the mean.
    Pareto {
        /// Mean of the distribution, including the effect of the bound.
        mean: f64,
        /// Tail index. Without a bound, the variance is infinite for an index of at most 2, and the mean for at most 1.
        shape: f64,
        /// Upper bound. The distribution is conditioned on values that do not exceed the bound.
        max: Option<f64>,
    },
    /// Empirical cumulative distribution, linear between points.
    Empirical {
        /// Points (value, cumulative probability), in which neither number ever falls and the last probability is 1.
        ///
        /// Two points with the same value give that value a probability of its own.
        points: Vec<[f64; 2]>,
    },
}

/// Quantile function of a [`Distribution`], with its constants computed once.
#[derive(Clone, Debug)]
pub struct Sampler(Quantile);

#[derive(Clone, Debug)]
enum Quantile {
    Constant(f64),
    Exponential {
        mean: f64,
    },
    /// Pareto distribution. `below_max` is P(X ≤ max) of the distribution without the bound.
    Pareto {
        min: f64,
        shape: f64,
        below_max: f64,
        max: f64,
    },
    Empirical(Box<[[f64; 2]]>),
}

impl Distribution {
    /// Checks the parameters of the distribution.
    ///
    /// # Errors
    /// One clause: the problem with the value.
    pub fn check(&self) -> Result<(), String> {
        let positive = |name: &str, x: f64| {
            if x.is_finite() && x > 0.0 { Ok(()) } else { Err(format!("{name} must be above zero, got {x}")) }
        };
        match self {
            Self::Constant { mean } | Self::Exponential { mean } => positive("mean", *mean),
            Self::Pareto { mean, shape, max } => {
                positive("mean", *mean)?;
                positive("shape", *shape)?;
                match max {
                    Some(max) if *mean < *max && max.is_finite() => Ok(()),
                    Some(max) => Err(format!("max must be above the mean of {mean}, got {max}")),
                    None if *shape > 1.0 => Ok(()),
                    None => Err(format!("shape must be above 1 for a finite mean, or needs a max, got {shape}")),
                }
            }
            Self::Empirical { points } => check_points(points),
        }
    }

    /// Returns the mean of the distribution.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant { mean } | Self::Exponential { mean } | Self::Pareto { mean, .. } => *mean,
            Self::Empirical { points } => {
                let first = points.first().map_or(0.0, |[value, share]| value * share);
                let pieces = points.iter().zip(points.iter().skip(1));
                first + pieces.map(|([a, from], [b, to])| f64::midpoint(*a, *b) * (to - from)).sum::<f64>()
            }
        }
    }

    /// Returns the sampler of the distribution.
    #[must_use]
    pub fn sampler(&self) -> Sampler {
        Sampler(match self {
            Self::Constant { mean } => Quantile::Constant(*mean),
            Self::Exponential { mean } => Quantile::Exponential { mean: *mean },
            Self::Pareto { mean, shape, max } => {
                let min = pareto_min(*mean, *shape, *max);
                let below_max = max.map_or(1.0, |max| 1.0 - math::pow(min / max, *shape));
                Quantile::Pareto { min, shape: *shape, below_max, max: max.unwrap_or(f64::INFINITY) }
            }
            Self::Empirical { points } => Quantile::Empirical(points.clone().into()),
        })
    }
}

fn check_points(points: &[[f64; 2]]) -> Result<(), String> {
    let Some(&[min, _]) = points.first() else { return Err("no points".into()) };
    if !(min > 0.0 && points.iter().all(|[value, share]| value.is_finite() && (0.0..=1.0).contains(share))) {
        return Err("values must be above zero, and shares from 0 to 1".into());
    }
    if points.iter().zip(points.iter().skip(1)).any(|([a, from], [b, to])| b < a || to < from) {
        return Err("values and shares must not decrease from point to point".into());
    }
    match points.last() {
        Some(&[_, 1.0]) => Ok(()),
        last => Err(format!("the last share must be 1, got {}", last.map_or(0.0, |l| l[1]))),
    }
}

impl Sampler {
    /// Returns the quantile for probability `u`, in [0, 1).
    #[must_use]
    pub fn quantile(&self, u: f64) -> f64 {
        match &self.0 {
            Quantile::Constant(value) => *value,
            Quantile::Exponential { mean } => exponential(*mean, u),
            // Rounding must not exceed the bound.
            Quantile::Pareto { min, shape, below_max, max } => {
                (min * math::pow(1.0 - u * below_max, -1.0 / shape)).min(*max)
            }
            Quantile::Empirical(points) => interpolated(points, u),
        }
    }
}

/// Returns the quantile of an exponential distribution: the inverse of F(x) = 1 − exp(−x / mean).
#[must_use]
pub fn exponential(mean: f64, u: f64) -> f64 {
    -mean * math::ln_1p(-u)
}

/// Returns the minimum of a Pareto distribution with this mean.
///
/// Without a bound the mean is least · a / (a − 1). With one it is, with r = least / max,
/// least · a / (a − 1) · (1 − r^(a − 1)) / (1 − r^a), or least · ln(1 / r) / (1 − r) for a = 1; it grows with the least
/// value from 0 to the bound, so halving finds it.
fn pareto_min(mean: f64, shape: f64, max: Option<f64>) -> f64 {
    let Some(max) = max else { return mean * (shape - 1.0) / shape };
    let (mut low, mut high) = (0.0, mean);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if bounded_pareto_mean(middle, shape, max) < mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn bounded_pareto_mean(min: f64, shape: f64, max: f64) -> f64 {
    let ln_r = math::ln(min / max);
    let above = shape - 1.0;
    // (1 − r^b) / b, which is −ln r at b = 0.
    let part = if above.abs() < 1e-12 { -ln_r } else { -math::exp_m1(above * ln_r) / above };
    min * shape * part / -math::exp_m1(shape * ln_r)
}

/// Interpolates linearly between the two points around probability `u`.
fn interpolated(points: &[[f64; 2]], u: f64) -> f64 {
    let above = points.partition_point(|&[_, share]| share <= u);
    let Some(&[value, share]) = points.get(above).or(points.last()) else { return 0.0 };
    match above.checked_sub(1).and_then(|i| points.get(i)) {
        Some(&[before, from]) if share > from => before + (value - before) * (u - from) / (share - from),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b} within {relative}");
    }

    /// Returns the mean as the integral of the quantile function, with more points where the function is steep.
    fn mean_by_quantiles(sampler: &Sampler) -> f64 {
        // u = 1 − e^(−s): s up to 34 leaves 2·10⁻¹⁵ of the draws.
        let n = 400_000;
        let step = 34.0 / f64::from(n);
        (0..n).map(|i| (f64::from(i) + 0.5) * step).map(|s| sampler.quantile(-(-s).exp_m1()) * (-s).exp() * step).sum()
    }

    #[test]
    fn quantiles_by_hand() {
        let exponential = Distribution::Exponential { mean: 2.0 }.sampler();
        close(exponential.quantile(0.5), 2.0 * 2f64.ln(), 1e-14);
        assert_eq!(exponential.quantile(0.0), 0.0);
        // Mean 30, shape 1.5: the least is 10, and an eighth of the draws is above four times that.
        let pareto = Distribution::Pareto { mean: 30.0, shape: 1.5, max: None }.sampler();
        close(pareto.quantile(0.0), 10.0, 1e-14);
        close(pareto.quantile(0.875), 40.0, 1e-14);
        assert_eq!(Distribution::Constant { mean: 7.0 }.sampler().quantile(0.3), 7.0);
    }

    #[test]
    fn a_pareto_distribution_has_its_mean_whatever_the_bound() {
        for shape in [0.6, 0.9, 1.0, 1.1, 1.35, 2.5] {
            for max in [2.5, 10.0, 1e3, 1e7] {
                let distribution = Distribution::Pareto { mean: 2.0, shape, max: Some(max) };
                assert_eq!(distribution.check(), Ok(()));
                let sampler = distribution.sampler();
                close(mean_by_quantiles(&sampler), 2.0, 1e-6);
                close(sampler.quantile(1.0), max, 1e-6);
                assert!(sampler.quantile(1.0) <= max);
            }
        }
        // The tail beyond the integral's end: (2·10⁻¹⁵)^(1 − 1/shape).
        close(mean_by_quantiles(&Distribution::Pareto { mean: 2.0, shape: 2.5, max: None }.sampler()), 2.0, 1e-6);
    }

    #[test]
    fn points_are_joined_by_straight_lines() {
        let lines = Distribution::Empirical { points: vec![[1.0, 0.2], [3.0, 0.6], [13.0, 1.0]] };
        assert_eq!(lines.check(), Ok(()));
        let sampler = lines.sampler();
        for (u, value) in [(0.0, 1.0), (0.1, 1.0), (0.2, 1.0), (0.4, 2.0), (0.6, 3.0), (0.8, 8.0), (0.9, 10.5)] {
            close(sampler.quantile(u), value, 1e-12);
        }
        close(lines.mean(), 0.2 * 1.0 + 0.4 * 2.0 + 0.4 * 8.0, 1e-14);
        close(mean_by_quantiles(&sampler), lines.mean(), 1e-4);
    }

    #[test]
    fn steps_are_values_with_probabilities() {
        let steps = Distribution::Empirical { points: vec![[1.0, 0.0], [1.0, 0.9], [5.0, 0.9], [5.0, 1.0]] };
        assert_eq!(steps.check(), Ok(()));
        let sampler = steps.sampler();
        assert_eq!([0.0, 0.5, 0.899, 0.9, 0.95, 0.999].map(|u| sampler.quantile(u)), [1.0, 1.0, 1.0, 5.0, 5.0, 5.0]);
        close(steps.mean(), 1.4, 1e-14);
        assert_eq!(Distribution::Empirical { points: vec![[4.0, 1.0]] }.sampler().quantile(0.5), 4.0);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let pareto = |shape, max| Distribution::Pareto { mean: 2.0, shape, max }.check().unwrap_err();
        assert_eq!(pareto(1.0, None), "shape must be above 1 for a finite mean, or needs a max, got 1");
        assert_eq!(pareto(1.5, Some(2.0)), "max must be above the mean of 2, got 2");
        assert_eq!(Distribution::Constant { mean: 0.0 }.check().unwrap_err(), "mean must be above zero, got 0");
        let points = |points: &[[f64; 2]]| Distribution::Empirical { points: points.to_vec() }.check().unwrap_err();
        assert_eq!(points(&[]), "no points");
        assert_eq!(points(&[[1.0, 0.5]]), "the last share must be 1, got 0.5");
        assert_eq!(points(&[[0.0, 0.5], [1.0, 1.0]]), "values must be above zero, and shares from 0 to 1");
        let falls = "values and shares must not decrease from point to point";
        assert_eq!(points(&[[2.0, 0.5], [1.0, 1.0]]), falls);
        assert_eq!(points(&[[1.0, 1.0], [2.0, 0.5], [3.0, 1.0]]), falls);
    }
}
