//! Parameters of the cohabitation module, in SI units, without defaults.

use serde::Deserialize;

use crate::check::MIN_TIME_S;

/// Parameters of the cohabitation module.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CohabitSpec {
    /// Controller of the drop probability.
    pub controller: ControllerSpec,
    /// Estimator of the number of flows.
    pub estimator: EstimatorSpec,
    /// Fraction of packets that the estimator inspects, in (0, 1].
    pub inspect: f64,
    /// Length of a control interval in seconds.
    pub interval_s: f64,
    /// True if the module's control interval follows the control interval of an explicit law on the link.
    pub interval_of_law: bool,
    /// Components that count the packets dropped by the module as input.
    pub count_drops: CountDrops,
    /// Weight of an explicit flow relative to a TCP flow.
    pub explicit_weight: f64,
    /// True to mark TCP packets instead of dropping them, if they can be marked.
    pub ecn: bool,
}

/// Controller of the module's drop probability.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControllerSpec {
    /// No control: the module counts flows and drops nothing.
    Off,
    /// Controller of xcp-tcp-2008, with two fixed factors.
    Paper {
        /// Drop probability at the start and after a reset.
        initial: f64,
        /// Factor D_drop, applied if the explicit class has more than its share of the capacity.
        decrease: f64,
        /// Factor I_drop, applied if the explicit class has less than its share of the capacity.
        increase: f64,
        /// Fraction γ of the usable capacity above which the module acts.
        threshold: f64,
        /// Occasions on which the controller applies its factor.
        update: UpdateSpec,
    },
    /// Improved controller, with a factor that follows the error and a limit on bursts.
    Improved {
        /// Target rate, as a fraction of the TCP class's fair share.
        aim: f64,
        /// Integral gain in 1/s.
        integral: f64,
        /// Proportional gain, without a unit.
        proportional: f64,
        /// Maximum excess of the TCP class over its fair share, in seconds at that rate.
        depth_s: f64,
    },
    /// Two queues, one per class, served in proportion to the classes' shares of the capacity. Nothing is dropped at
    /// random.
    Separate,
}

/// Occasions on which the controller of xcp-tcp-2008 applies its factor. The choice between the factors is made once
/// per control interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum UpdateSpec {
    /// Update once per control interval, at its end.
    Interval,
    /// Update for each packet that arrives.
    Packet {
        /// Packets that trigger the update.
        packets: PacketClass,
    },
    /// Update once per period of time.
    Period {
        /// Length of a period in seconds.
        period_s: f64,
    },
}

/// Class of packets that a rule counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PacketClass {
    /// All packets, including traffic without congestion control.
    All,
    /// Packets of explicit flows.
    Explicit,
    /// Packets of TCP flows.
    Tcp,
}

/// Components that count the packets dropped by the module as input.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CountDrops {
    /// No component counts dropped packets.
    Never,
    /// The module counts dropped packets.
    Module,
    /// The module and the explicit laws of the link count dropped packets.
    Router,
}

/// Packets over which SRED averages the hit probability of a class.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Trials {
    /// Packets of the class only.
    Class,
    /// Packets of both classes. A packet of the other class counts as a miss.
    All,
}

/// Packet fields that a Bloom filter hashes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HashKey {
    /// Addresses and ports: each connection counts.
    Flow,
    /// Source and destination addresses: connections between the same two hosts count once.
    Pair,
}

/// Estimator of the number of active flows.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EstimatorSpec {
    /// Exact estimator, which remembers every flow.
    Exact {
        /// Length of a measurement interval in seconds.
        period_s: f64,
    },
    /// SRED's estimator, a zombie list.
    Sred {
        /// Number of entries in a table.
        size: u32,
        /// Probability that a packet that differs from a drawn entry replaces this entry.
        replace: f64,
        /// Weight δ of a new comparison in the average.
        delta: f64,
        /// True if both classes share one table, a possible reading of xcp-tcp-2008.
        shared: bool,
        /// Packets over which a class's hit probability is averaged.
        trials: Trials,
    },
    /// NRED's estimator, a Bloom filter.
    Nred {
        /// Number of levels L, each with its own hash function.
        levels: u32,
        /// Number of bins P per level.
        bins: u32,
        /// Length of a measurement interval in seconds.
        period_s: f64,
        /// Packet fields that are hashed.
        hash: HashKey,
    },
}

/// Maximum number of entries or bins. It limits the memory of SRED's zombie list to 64 MiB.
const MAX_SIZE: u32 = 1 << 23;
const MAX_LEVELS: u32 = 64;

impl CohabitSpec {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// `queue_params.NAME: must be …`.
    pub fn check(&self) -> Result<(), String> {
        let at = |name: &str, good: bool, expected: &str, got: f64| {
            good.then_some(()).ok_or_else(|| format!("queue_params.{name}: must be {expected}, got {got}"))
        };
        let time = |name: &str, s: f64| at(name, (MIN_TIME_S..=1e6).contains(&s), "at least 1 ps", s);
        let above = |name: &str, x: f64| at(name, x > 0.0 && x.is_finite(), "above zero", x);
        let share = |name: &str, x: f64| at(name, x > 0.0 && x <= 1.0, "in (0, 1]", x);
        share("inspect", self.inspect)?;
        time("interval", self.interval_s)?;
        above("explicit_weight", self.explicit_weight)?;
        match self.controller {
            ControllerSpec::Off | ControllerSpec::Separate => {}
            ControllerSpec::Paper { initial, decrease, increase, threshold, update } => {
                share("initial", initial)?;
                at("decrease", decrease > 0.0 && decrease < 1.0, "in (0, 1)", decrease)?;
                at("increase", increase > 1.0 && increase.is_finite(), "above 1", increase)?;
                share("threshold", threshold)?;
                if let UpdateSpec::Period { period_s } = update {
                    time("update", period_s)?;
                }
            }
            ControllerSpec::Improved { aim, integral, proportional, depth_s } => {
                share("aim", aim)?;
                above("integral", integral)?;
                let good = proportional >= 0.0 && proportional.is_finite();
                at("proportional", good, "at least zero", proportional)?;
                time("depth", depth_s)?;
            }
        }
        let whole =
            |name: &str, n: u32, most: u32| at(name, (1..=most).contains(&n), &format!("1 to {most}"), f64::from(n));
        match self.estimator {
            EstimatorSpec::Exact { period_s } => time("period", period_s),
            EstimatorSpec::Sred { size, replace, delta, .. } => {
                whole("size", size, MAX_SIZE)?;
                share("replace", replace)?;
                share("delta", delta)
            }
            EstimatorSpec::Nred { levels, bins, period_s, .. } => {
                whole("levels", levels, MAX_LEVELS)?;
                whole("bins", bins, MAX_SIZE)?;
                time("period", period_s)
            }
        }
    }
}
