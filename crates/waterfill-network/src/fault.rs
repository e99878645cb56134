//! Faults of routers and hosts, which affect the values in a protocol's packets, and clocks.
//!
//! A fault acts from one time to another. Faults of a wire (loss, reordering, duplication) are fields of
//! [`LinkSpec`](crate::LinkSpec); a restart and a step of a router's clock happen at one time, so they are
//! [`ChangeSpec`](crate::ChangeSpec)s.

use serde::Deserialize;

use crate::check::{positive, probability, time};

/// The largest step of a clock, in seconds: an hour.
const MAX_STEP_S: f64 = 3600.0;

/// A fault of one link direction.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Start: the first arrival at the end of the link that the fault may affect.
    pub from_s: f64,
    /// End of the fault.
    pub until_s: f64,
    /// Probability that it befalls a packet.
    pub share: f64,
    /// Effect of the fault.
    pub effect: Effect,
}

/// Effect of a fault on a packet that arrives at the end of its link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Removes the packet's header of its protocol, and its ECN bits.
    Strip {},
    /// Inverts one random bit of it, or the mark of an ECN-capable packet. A value that is not valid then is lost.
    Corrupt {},
    /// Replaces the congestion signal.
    Lie {
        /// The false signal.
        value: FalseSignal,
    },
    /// Holds packets on the wire, and releases them together at every multiple of this time from `from_s` on.
    Hold {
        /// Time between two releases.
        every_s: f64,
    },
}

/// Signal of a router that misreports.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FalseSignal {
    /// Grants nothing: rate zero, the highest price, full load.
    Zero,
    /// Grants the most that the field can express.
    Max,
    /// Any code of the field, drawn for each packet.
    Random,
}

/// A fault of one of a flow's hosts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HostFaultSpec {
    /// Start of the fault.
    pub from_s: f64,
    /// End of the fault.
    pub until_s: f64,
    /// Effect of the fault.
    pub effect: HostEffect,
}

/// Effect of a fault of a host.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostEffect {
    /// The receiver reports the best that its protocol can express: no congestion, no mark, no loss.
    Lie {},
    /// The source keeps its rate and window, whatever acknowledgements and losses say.
    Ignore {},
    /// The source's clock jumps by this time, forward or back, once.
    Clock {
        /// Size of the jump, in seconds.
        step_s: f64,
    },
}

impl FaultSpec {
    /// Checks every value's range, in a run of this length.
    ///
    /// # Errors
    /// `KEY: must be …`.
    pub fn check(&self, duration_s: f64) -> Result<(), String> {
        period(self.from_s, self.until_s, duration_s)?;
        probability("share", self.share)?;
        match self.effect {
            Effect::Hold { every_s } => positive("every", every_s).and_then(|()| time("every", every_s)),
            Effect::Strip {} | Effect::Corrupt {} | Effect::Lie { .. } => Ok(()),
        }
    }
}

impl HostFaultSpec {
    /// Checks every value's range; the error begins with the key.
    pub(crate) fn check(&self, duration_s: f64) -> Result<(), String> {
        period(self.from_s, self.until_s, duration_s)?;
        match self.effect {
            HostEffect::Clock { step_s } => clock_step(step_s, self.from_s),
            HostEffect::Lie {} | HostEffect::Ignore {} => Ok(()),
        }
    }
}

/// Checks when a fault begins and ends.
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

/// Checks a step of a clock that has run since time zero, and never shows a time before it.
pub(crate) fn clock_step(step_s: f64, at_s: f64) -> Result<(), String> {
    if !(-MAX_STEP_S..=MAX_STEP_S).contains(&step_s) {
        return Err(format!("step: must be -{MAX_STEP_S} to {MAX_STEP_S} s, got {step_s}"));
    }
    if at_s + step_s < 0.0 {
        return Err(format!("step: must not exceed the {at_s} s that the clock has run, got {step_s}"));
    }
    Ok(())
}
