//! Faults of routers and hosts, which alter the values in a protocol's packets, and faults of clocks.
//!
//! A fault acts from one time to another. Faults of a wire (loss, reordering, duplication) are fields of
//! [`LinkSpec`](crate::LinkSpec); a restart and a step of a router's clock happen at one time, so they are
//! [`ChangeSpec`](crate::ChangeSpec)s.

use serde::Deserialize;

use crate::check::{positive, probability, time};

/// Maximum step of a clock in seconds: one hour.
const MAX_STEP_S: f64 = 3600.0;

/// Fault of one link direction.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Start time in seconds. The fault affects packets that arrive at the end of the link from then on.
    pub from_s: f64,
    /// End time of the fault in seconds.
    pub until_s: f64,
    /// Probability that the fault affects a packet.
    pub share: f64,
    /// Effect of the fault.
    pub effect: Effect,
}

/// Effect of a fault on a packet that arrives at the end of its link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Removes the protocol's header and the ECN bits from the packet.
    Strip {},
    /// Inverts one random bit of the header, or the mark of an ECN-capable packet. A header that becomes invalid is
    /// lost.
    Corrupt {},
    /// Replaces the packet's congestion signal.
    Lie {
        /// False signal to write.
        value: FalseSignal,
    },
    /// Holds packets on the wire, and releases them together at fixed times from `from_s` on.
    Hold {
        /// Time between two releases in seconds.
        every_s: f64,
    },
    /// Holds acknowledgements on the wire, and releases them together at fixed times from `from_s` on. Packets behind them
    /// keep their order.
    Acks {
        /// Time between two releases in seconds.
        every_s: f64,
        /// Number of successive acknowledgements of a flow, released together, of which only the last is delivered; 1
        /// delivers all.
        thinning: u32,
    },
}

impl Effect {
    /// Returns true if the effect is on the time of packets, not on their contents.
    #[must_use]
    pub const fn holds(self) -> bool {
        matches!(self, Self::Hold { .. } | Self::Acks { .. })
    }
}

/// Congestion signal of a router that misreports.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FalseSignal {
    /// Signal that grants nothing: rate zero, the highest price or full load.
    Zero,
    /// Signal that grants the maximum that the field can express.
    Max,
    /// Random code of the signal's field, drawn for each packet.
    Random,
}

/// Fault of one of a flow's hosts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HostFaultSpec {
    /// Start time of the fault in seconds.
    pub from_s: f64,
    /// End time of the fault in seconds.
    pub until_s: f64,
    /// Effect of the fault on the host.
    pub effect: HostEffect,
}

/// Effect of a fault on a host.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostEffect {
    /// The receiver reports the best that its protocol can express: no congestion, no mark and no loss.
    Lie {},
    /// The source keeps its rate and window, and ignores acknowledgements and losses.
    Ignore {},
    /// The source's clock jumps once, forward or back.
    Clock {
        /// Size of the jump in seconds; may be negative.
        step_s: f64,
    },
}

impl FaultSpec {
    /// Checks the ranges of all values in a run of this length.
    ///
    /// # Errors
    /// `KEY: must be …`.
    pub fn check(&self, duration_s: f64) -> Result<(), String> {
        period(self.from_s, self.until_s, duration_s)?;
        probability("share", self.share)?;
        match self.effect {
            Effect::Acks { thinning: 0, .. } => Err("thinning: must be at least 1, got 0".into()),
            Effect::Hold { every_s } | Effect::Acks { every_s, .. } => period_of_releases(every_s),
            Effect::Strip {} | Effect::Corrupt {} | Effect::Lie { .. } => Ok(()),
        }
    }
}

impl HostFaultSpec {
    /// Checks the ranges of all values. The error begins with the key.
    pub(crate) fn check(&self, duration_s: f64) -> Result<(), String> {
        period(self.from_s, self.until_s, duration_s)?;
        match self.effect {
            HostEffect::Clock { step_s } => clock_step(step_s, self.from_s),
            HostEffect::Lie {} | HostEffect::Ignore {} => Ok(()),
        }
    }
}

/// Checks the time between two releases of held packets.
fn period_of_releases(every_s: f64) -> Result<(), String> {
    positive("every", every_s).and_then(|()| time("every", every_s))
}

/// Checks the start and end times of a fault.
fn period(from_s: f64, until_s: f64, duration_s: f64) -> Result<(), String> {
    time("at", from_s)?;
    time("until", until_s)?;
    if from_s >= duration_s {
        return Err(format!("at: must be before the end of the run at {duration_s} s, got {from_s}"));
    }
    if until_s <= from_s {
        return Err(format!("until: must be after at, {from_s} s, got {until_s}"));
    }
    Ok(())
}

/// Checks a clock's step.
///
/// The clock starts at time zero, and must not show a time before zero.
pub(crate) fn clock_step(step_s: f64, at_s: f64) -> Result<(), String> {
    if !(-MAX_STEP_S..=MAX_STEP_S).contains(&step_s) {
        return Err(format!("step: must be -{MAX_STEP_S} to {MAX_STEP_S} s, got {step_s}"));
    }
    if at_s + step_s < 0.0 {
        return Err(format!("step: must not exceed the {at_s} s that the clock has run, got {step_s}"));
    }
    Ok(())
}
