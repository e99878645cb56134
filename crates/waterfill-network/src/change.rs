//! Changes of a link direction during the run: its rate, its delay, and whether it is up.

use serde::Deserialize;

use crate::check::time;

/// Sets what it names at a time; everything else stays.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// When.
    pub at_s: f64,
    /// The rate from then on; at zero the queue is held.
    pub rate_bps: Option<f64>,
    /// The delay of packets whose transmission ends later.
    pub delay_s: Option<f64>,
    /// Whether the link is up; one that goes down drops its queue, and what arrives until it is up.
    pub up: Option<bool>,
}

/// Checks a link's changes: values in their ranges, times in order and within the run.
pub(crate) fn check(changes: &[ChangeSpec], duration_s: f64) -> Result<(), String> {
    for (i, change) in changes.iter().enumerate() {
        time("at", change.at_s)?;
        if change.at_s >= duration_s {
            return Err(format!("at: expected a time before the end at {duration_s} s, got {}", change.at_s));
        }
        if i > 0 && change.at_s <= changes[i - 1].at_s {
            let before = changes[i - 1].at_s;
            return Err(format!("at: expected more than the {before} s of the event before, got {}", change.at_s));
        }
        if let Some(rate) = change.rate_bps.filter(|rate| !(rate.is_finite() && *rate >= 0.0)) {
            return Err(format!("rate: expected zero or more, got {rate}"));
        }
        change.delay_s.map_or(Ok(()), |delay| time("delay", delay))?;
    }
    Ok(())
}
