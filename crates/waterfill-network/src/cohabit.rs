//! Parameters of the cohabitation module, in SI units, without defaults.

use serde::Deserialize;

/// The module's parameters.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CohabitSpec {
    /// Controller of the drop probability.
    pub controller: ControllerSpec,
    /// Estimator of the number of flows.
    pub estimator: EstimatorSpec,
    /// Fraction of the packets that the estimator inspects, in (0, 1].
    pub inspect: f64,
    /// Length of a control interval.
    pub interval_s: f64,
    /// Weight of an explicit flow; that of a TCP flow is 1.
    pub explicit_weight: f64,
    /// Whether TCP packets that can be marked are marked instead of dropped.
    pub ecn: bool,
}

/// A controller of the drop probability.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControllerSpec {
    /// No control: flows are counted and nothing is dropped.
    Off,
    /// The paper's controller: two fixed factors.
    Paper {
        /// Probability at the start and after a reset.
        initial: f64,
        /// Factor D_drop where the explicit class has more than its share.
        decrease: f64,
        /// Factor I_drop where it has less.
        increase: f64,
        /// Fraction γ of the usable capacity above which the module acts.
        threshold: f64,
    },
    /// The improved controller: a factor that follows the error, and a limit on bursts.
    Improved {
        /// Target, as a fraction of the TCP class's fair share.
        aim: f64,
        /// Integral gain, 1/s.
        integral: f64,
        /// Proportional gain.
        proportional: f64,
        /// Largest excess of the TCP class over its share, as a time at that share.
        depth_s: f64,
    },
    /// One queue per class, served in proportion to the classes' shares; nothing is dropped at random.
    Separate,
}

/// A counter of active flows.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EstimatorSpec {
    /// Remembers every flow.
    Exact {
        /// Length of a measurement interval.
        period_s: f64,
    },
    /// SRED's zombie list.
    Sred {
        /// Entries of a table.
        size: u32,
        /// Probability that a packet that misses takes the entry's place.
        replace: f64,
        /// Whether both classes share one table, a possible reading of the paper.
        shared: bool,
    },
    /// NRED's Bloom filter.
    Nred {
        /// Number of levels L, each with its own hash function.
        levels: u32,
        /// Number of bins P per level.
        bins: u32,
        /// Length of a measurement interval.
        period_s: f64,
    },
}

/// Maximum number of entries or bins: 64 MiB of zombies.
const MAX_SIZE: u32 = 1 << 23;
const MAX_LEVELS: u32 = 64;

impl CohabitSpec {
    /// Checks every parameter's range.
    ///
    /// # Errors
    /// `queue_params.NAME: expected …`.
    pub fn check(&self) -> Result<(), String> {
        let at = |name: &str, good: bool, expected: &str, got: f64| {
            good.then_some(()).ok_or_else(|| format!("queue_params.{name}: expected {expected}, got {got}"))
        };
        let time = |name: &str, s: f64| at(name, s > 0.0 && s <= 1e6, "a time above zero", s);
        let above = |name: &str, x: f64| at(name, x > 0.0 && x.is_finite(), "a number above zero", x);
        let share = |name: &str, x: f64| at(name, x > 0.0 && x <= 1.0, "a number in (0, 1]", x);
        share("inspect", self.inspect)?;
        time("interval", self.interval_s)?;
        above("explicit_weight", self.explicit_weight)?;
        match self.controller {
            ControllerSpec::Off | ControllerSpec::Separate => {}
            ControllerSpec::Paper { initial, decrease, increase, threshold } => {
                share("initial", initial)?;
                at("decrease", decrease > 0.0 && decrease < 1.0, "a number in (0, 1)", decrease)?;
                at("increase", increase > 1.0 && increase.is_finite(), "a number above 1", increase)?;
                share("threshold", threshold)?;
            }
            ControllerSpec::Improved { aim, integral, proportional, depth_s } => {
                share("aim", aim)?;
                above("integral", integral)?;
                let good = proportional >= 0.0 && proportional.is_finite();
                at("proportional", good, "a number not below zero", proportional)?;
                time("depth", depth_s)?;
            }
        }
        let whole =
            |name: &str, n: u32, most: u32| at(name, (1..=most).contains(&n), &format!("1 to {most}"), f64::from(n));
        match self.estimator {
            EstimatorSpec::Exact { period_s } => time("period", period_s),
            EstimatorSpec::Sred { size, replace, .. } => {
                whole("size", size, MAX_SIZE)?;
                share("replace", replace)
            }
            EstimatorSpec::Nred { levels, bins, period_s } => {
                whole("levels", levels, MAX_LEVELS)?;
                whole("bins", bins, MAX_SIZE)?;
                time("period", period_s)
            }
        }
    }
}
