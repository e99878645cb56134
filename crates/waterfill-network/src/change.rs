//! Changes of a link direction during the run: rate, delay, outages, and faults of its router.

use serde::Deserialize;

use crate::check::time;
use crate::fault::clock_step;

/// A timed change of a link; properties that are not set keep their values.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// Time of the change.
    pub at_s: f64,
    /// The rate from then on; at zero the queue is held.
    pub rate_bps: Option<f64>,
    /// The delay of packets whose transmission ends later.
    pub delay_s: Option<f64>,
    /// True for a link that comes up. A link that goes down drops its queue, and all arrivals until
    /// it is up.
    pub up: Option<bool>,
    /// A restart of the router at its head: its laws lose their state. Packets pass on.
    #[serde(default)]
    pub restart: bool,
    /// The clock of the router at its head jumps by this time, forward or back.
    #[serde(default)]
    pub clock_step_s: Option<f64>,
}

/// Checks a link's changes: values in their ranges, times in order and within the run.
pub(crate) fn check(changes: &[ChangeSpec], duration_s: f64) -> Result<(), String> {
    for (i, change) in changes.iter().enumerate() {
        time("at", change.at_s)?;
        if change.at_s >= duration_s {
            return Err(format!("at: must be before the end of the run at {duration_s} s, got {}", change.at_s));
        }
        let before = i.checked_sub(1).and_then(|before| changes.get(before)).map(|before| before.at_s);
        if let Some(before) = before.filter(|&before| change.at_s <= before) {
            return Err(format!("at: must be after the event before, at {before} s, got {}", change.at_s));
        }
        if let Some(rate) = change.rate_bps.filter(|rate| !(rate.is_finite() && *rate >= 0.0)) {
            return Err(format!("rate: must not be negative, got {rate}"));
        }
        change.delay_s.map_or(Ok(()), |delay| time("delay", delay))?;
        change.clock_step_s.map_or(Ok(()), |step| clock_step(step, change.at_s))?;
    }
    Ok(())
}
