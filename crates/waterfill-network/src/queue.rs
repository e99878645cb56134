//! Parameters of the queue disciplines, in SI units, without defaults.

use serde::Deserialize;

use crate::check::MIN_TIME_S;
use crate::cohabit::{CohabitSpec, ControllerSpec};

/// A queue length, in the unit that the scenario gives it in.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Waiting bytes.
    Bytes(f64),
    /// Waiting packets.
    Packets(f64),
}

impl Level {
    /// Returns the number without its unit.
    #[must_use]
    pub const fn amount(self) -> f64 {
        match self {
            Self::Bytes(x) | Self::Packets(x) => x,
        }
    }
}

/// A queue discipline and its parameters.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// First in, first out; a packet that finds the buffer full is dropped.
    Droptail {
        /// Backlog above which an arriving packet is marked, if it can be.
        mark_at: Option<Level>,
    },
    /// Random early detection.
    Red(RedSpec),
    /// Controlled delay.
    Codel(CodelSpec),
    /// Controlled delay per flow, flows served in turn.
    FqCodel(FqCodelSpec),
    /// Random early detection that also drops pairs of packets of one flow.
    Choke(RedSpec),
    /// First in, first out, with explicit flows protected from TCP.
    Cohabit(CohabitSpec),
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::Droptail { mark_at: None }
    }
}

/// Parameters of RED, and of CHOKe.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RedSpec {
    /// Average queue above which packets are dropped or marked.
    pub min_threshold: Level,
    /// Average queue at which the probability is `max_p`; in the unit of `min_threshold`.
    pub max_threshold: Level,
    /// Probability at `max_threshold`.
    pub max_p: f64,
    /// Weight of a new sample in the average queue.
    pub weight: f64,
    /// True if the probability grows from `max_p` to 1 between `max_threshold` and twice that, instead of jumping.
    pub gentle: bool,
    /// True to mark packets instead of dropping them, where they can be marked.
    pub ecn: bool,
}

/// Parameters of CoDel.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CodelSpec {
    /// Acceptable standing sojourn time.
    pub target_s: f64,
    /// Time for which it must be exceeded, in the order of the largest usual RTT.
    pub interval_s: f64,
    /// True to mark packets instead of dropping them, where they can be marked.
    pub ecn: bool,
}

/// Parameters of FQ-CoDel.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FqCodelSpec {
    /// Parameters of each queue.
    pub codel: CodelSpec,
    /// Bytes that a flow may send per turn.
    pub quantum_bytes: u32,
    /// Number of queues that flows are hashed to.
    pub flows: u32,
}

/// Maximum number of queues (as `tc-fq_codel`).
const MAX_QUEUES: u32 = 65_536;

impl QueueSpec {
    /// Returns whether packets leave in the order of their arrival and no accepted packet is lost.
    #[must_use]
    pub fn serves_in_order(&self) -> bool {
        match self {
            Self::Droptail { .. } | Self::Red(_) => true,
            Self::Codel(_) | Self::FqCodel(_) | Self::Choke(_) => false,
            Self::Cohabit(spec) => spec.controller != ControllerSpec::Separate,
        }
    }

    /// Checks every parameter's range.
    ///
    /// # Errors
    /// `queue_params.NAME: must be …`.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Droptail { mark_at } => {
                let good = mark_at.is_none_or(|level| level.amount() >= 0.0);
                good.then_some(()).ok_or_else(|| "mark_at: must not be negative".into())
            }
            Self::Red(spec) | Self::Choke(spec) => spec.check(),
            Self::Codel(spec) => spec.check(),
            Self::Cohabit(spec) => spec.check(),
            Self::FqCodel(spec) => {
                spec.codel.check()?;
                if spec.quantum_bytes == 0 {
                    return Err("queue_params.quantum: must be above zero".into());
                }
                if !(1..=MAX_QUEUES).contains(&spec.flows) {
                    return Err(format!("queue_params.flows: must be 1 to {MAX_QUEUES}, got {}", spec.flows));
                }
                Ok(())
            }
        }
    }
}

impl RedSpec {
    fn check(&self) -> Result<(), String> {
        let share = |name: &str, x: f64| {
            let good = x > 0.0 && x <= 1.0;
            good.then_some(()).ok_or_else(|| format!("queue_params.{name}: must be in (0, 1], got {x}"))
        };
        share("max_p", self.max_p)?;
        share("weight", self.weight)?;
        let same = matches!(
            (self.min_threshold, self.max_threshold),
            (Level::Bytes(_), Level::Bytes(_)) | (Level::Packets(_), Level::Packets(_))
        );
        let (min, max) = (self.min_threshold.amount(), self.max_threshold.amount());
        if !(same && 0.0 <= min && min < max && max.is_finite()) {
            return Err("queue_params.max_threshold: must be above min_threshold, in the same unit".into());
        }
        Ok(())
    }
}

impl CodelSpec {
    fn check(&self) -> Result<(), String> {
        for (name, s) in [("target", self.target_s), ("interval", self.interval_s)] {
            if !(MIN_TIME_S..=1e6).contains(&s) {
                return Err(format!("queue_params.{name}: must be at least 1 ps, got {s} s"));
            }
        }
        if self.target_s >= self.interval_s {
            return Err("queue_params.target: must be below interval".into());
        }
        Ok(())
    }
}
