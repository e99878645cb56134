//! Parameters of the queue disciplines, in SI units, without defaults.

use serde::Deserialize;

use crate::check::{MIN_TIME_S, probability};
use crate::cohabit::{CohabitSpec, ControllerSpec};

/// Queue length in the unit that the scenario uses.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Queue length in bytes.
    Bytes(f64),
    /// Queue length in packets.
    Packets(f64),
}

impl Level {
    /// Returns the number of bytes or packets, without its unit.
    #[must_use]
    pub const fn amount(self) -> f64 {
        match self {
            Self::Bytes(x) | Self::Packets(x) => x,
        }
    }
}

/// Queue discipline and its parameters.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// Drop-tail queue: first in, first out. A packet that finds the buffer full is dropped.
    Droptail {
        /// Backlog above which an arriving packet is marked, if the packet can be marked; `None` to mark no packets.
        mark_at: Option<Level>,
        /// Marks with a probability that grows above `mark_at`; `None` to mark all packets there.
        #[serde(default)]
        ramp: Option<RampSpec>,
    },
    /// Random early detection (RED).
    Red(RedSpec),
    /// Controlled delay (CoDel).
    Codel(CodelSpec),
    /// Controlled delay per flow (FQ-CoDel), which serves flows in turn.
    FqCodel(FqCodelSpec),
    /// Proportional integral controller enhanced (PIE).
    Pie(PieSpec),
    /// PIE per flow (FQ-PIE), which serves flows in turn.
    FqPie(FqPieSpec),
    /// Dual-queue coupled AQM for classic and L4S packets (DualPI2).
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2Spec),
    /// Random early detection that also drops pairs of packets of one flow (CHOKe).
    Choke(RedSpec),
    /// First-in, first-out queue that protects explicit flows from TCP.
    Cohabit(CohabitSpec),
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::Droptail { mark_at: None, ramp: None }
    }
}

/// End of the queue lengths between which the probability of a mark grows, from 0 at `mark_at`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RampSpec {
    /// Backlog above which every packet is marked, in the unit of `mark_at`.
    pub to: Level,
    /// Probability at that backlog.
    pub max_p: f64,
}

/// Parameters of RED and CHOKe.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RedSpec {
    /// Average queue above which packets are dropped or marked.
    pub min_threshold: Level,
    /// Average queue at which the probability is `max_p`, in the same unit as `min_threshold`.
    pub max_threshold: Level,
    /// Drop or mark probability at `max_threshold`.
    pub max_p: f64,
    /// Weight of a new sample in the average queue.
    pub weight: f64,
    /// True if the probability grows linearly from `max_p` to 1 between `max_threshold` and twice `max_threshold`,
    /// instead of jumping.
    pub gentle: bool,
    /// True to mark packets instead of dropping them, if they can be marked.
    pub ecn: bool,
}

/// Parameters of CoDel.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CodelSpec {
    /// Acceptable standing sojourn time in seconds.
    pub target_s: f64,
    /// Time for which the target must be exceeded, in seconds, of the order of the largest usual RTT.
    pub interval_s: f64,
    /// True to mark packets instead of dropping them, if they can be marked.
    pub ecn: bool,
}

/// Parameters of FQ-CoDel.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FqCodelSpec {
    /// CoDel parameters of each queue.
    pub codel: CodelSpec,
    /// Bytes that a flow may send in one turn.
    pub quantum_bytes: u32,
    /// Number of queues to which flows are hashed.
    pub flows: u32,
}

/// Parameters of PIE.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PieSpec {
    /// Queueing delay that the controller aims at, in seconds.
    pub target_s: f64,
    /// Time between two updates of the drop probability, in seconds.
    pub update_s: f64,
    /// Integral gain in Hz: weight of the distance from the target.
    pub alpha_hz: f64,
    /// Proportional gain in Hz: weight of the change of the delay.
    pub beta_hz: f64,
    /// Time for which a burst after an idle time is not dropped, in seconds.
    pub max_burst_s: f64,
    /// True to mark packets instead of dropping them, if they can be marked.
    pub ecn: bool,
    /// Drop probability from which packets are dropped even if they can be marked.
    pub mark_below: f64,
}

/// Parameters of FQ-PIE.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FqPieSpec {
    /// PIE parameters of each queue.
    pub pie: PieSpec,
    /// Bytes that a flow may send in one turn.
    pub quantum_bytes: u32,
    /// Number of queues to which flows are hashed.
    pub flows: u32,
}

/// Parameters of DualPI2.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DualPi2Spec {
    /// Queueing delay of classic packets that the controller aims at, in seconds.
    pub target_s: f64,
    /// Largest RTT for which the controller is stable, in seconds. Its gains and its update interval follow from it.
    pub rtt_max_s: f64,
    /// Ratio of the L4S probability to the base probability, k.
    pub coupling: f64,
    /// Queueing delay of an L4S packet above which it may be marked, in seconds.
    pub ramp_start_s: f64,
    /// Delay in seconds over which the probability of such a mark rises from 0 to 1; zero for a step.
    pub ramp_range_s: f64,
    /// Number of L4S packets that may wait behind a packet without such a mark.
    pub ramp_packets: u64,
    /// Share of the link of the classic queue while both queues hold packets.
    pub classic_share: f64,
}

/// Shortest time between two updates of a controller. Each update is computed.
const MIN_UPDATE_S: f64 = 1e-6;

/// Maximum number of queues of FQ-CoDel and FQ-PIE, the same as in `tc-fq_codel`.
const MAX_QUEUES: u32 = 65_536;

impl QueueSpec {
    /// Returns true if packets leave in the order of their arrival and no accepted packet is lost.
    #[must_use]
    pub fn serves_in_order(&self) -> bool {
        match self {
            Self::Droptail { .. } | Self::Red(_) => true,
            Self::Codel(_) | Self::FqCodel(_) | Self::Pie(_) | Self::FqPie(_) | Self::DualPi2(_) | Self::Choke(_) => {
                false
            }
            Self::Cohabit(spec) => spec.controller != ControllerSpec::Separate,
        }
    }

    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// `queue_params.NAME: must be …`.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Droptail { mark_at, ramp } => {
                if mark_at.is_some_and(|level| level.amount() < 0.0) {
                    return Err("mark_at: must not be negative".into());
                }
                ramp.map_or(Ok(()), |ramp| check_ramp(*mark_at, &ramp))
            }
            Self::Red(spec) | Self::Choke(spec) => spec.check(),
            Self::Codel(spec) => spec.check(),
            Self::Cohabit(spec) => spec.check(),
            Self::Pie(spec) => spec.check(),
            Self::DualPi2(spec) => spec.check(),
            Self::FqCodel(spec) => {
                spec.codel.check()?;
                check_flow_queues(spec.quantum_bytes, spec.flows)
            }
            Self::FqPie(spec) => {
                spec.pie.check()?;
                check_flow_queues(spec.quantum_bytes, spec.flows)
            }
        }
    }
}

fn check_flow_queues(quantum_bytes: u32, flows: u32) -> Result<(), String> {
    if quantum_bytes == 0 {
        return Err("queue_params.quantum: must be above zero".into());
    }
    if !(1..=MAX_QUEUES).contains(&flows) {
        return Err(format!("queue_params.flows: must be 1 to {MAX_QUEUES}, got {flows}"));
    }
    Ok(())
}

/// Checks the time between two updates of a controller.
fn check_update(update_s: f64) -> Result<(), String> {
    let good = (MIN_UPDATE_S..=1e6).contains(&update_s);
    good.then_some(()).ok_or_else(|| format!("queue_params.update: must be at least 1 us, got {update_s} s"))
}

/// Checks the gains of a controller.
fn check_gains(alpha_hz: f64, beta_hz: f64) -> Result<(), String> {
    for (name, hz) in [("alpha", alpha_hz), ("beta", beta_hz)] {
        if !(0.0..=1e9).contains(&hz) {
            return Err(format!("queue_params.{name}: must be from 0 to 1e9 Hz, got {hz}"));
        }
    }
    Ok(())
}

impl DualPi2Spec {
    fn check(&self) -> Result<(), String> {
        for (name, s, min_s) in [
            ("target", self.target_s, MIN_UPDATE_S),
            ("rtt_max", self.rtt_max_s, 3.0 * MIN_UPDATE_S),
            ("ramp_start", self.ramp_start_s, 0.0),
            ("ramp_range", self.ramp_range_s, 0.0),
        ] {
            if !(min_s..=1e6).contains(&s) {
                return Err(format!("queue_params.{name}: must be at least {:.0} us, got {s} s", min_s * 1e6));
            }
        }
        if !(0.01..=1e3).contains(&self.coupling) {
            return Err(format!("queue_params.coupling: must be from 0.01 to 1000, got {}", self.coupling));
        }
        let share = self.classic_share;
        let good = share > 0.0 && share < 1.0;
        good.then_some(()).ok_or_else(|| format!("queue_params.classic_share: must be between 0 and 1, got {share}"))
    }
}

impl PieSpec {
    fn check(&self) -> Result<(), String> {
        check_update(self.update_s)?;
        check_gains(self.alpha_hz, self.beta_hz)?;
        if !(MIN_TIME_S..=1e6).contains(&self.target_s) {
            return Err(format!("queue_params.target: must be at least 1 ps, got {} s", self.target_s));
        }
        if !(0.0..=1e6).contains(&self.max_burst_s) {
            return Err(format!("queue_params.max_burst: must not be negative, got {} s", self.max_burst_s));
        }
        if !(0.0..=1.0).contains(&self.mark_below) {
            return Err(format!("queue_params.mark_below: must be in [0, 1], got {}", self.mark_below));
        }
        Ok(())
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

fn check_ramp(from: Option<Level>, ramp: &RampSpec) -> Result<(), String> {
    let above = match (from, ramp.to) {
        (Some(Level::Bytes(from)), Level::Bytes(to)) | (Some(Level::Packets(from)), Level::Packets(to)) => to > from,
        _ => false,
    };
    if !above {
        return Err("mark_to: must be above mark_at, in the same unit".into());
    }
    probability("mark_max", ramp.max_p)
}
