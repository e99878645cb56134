//! Changes of a link direction during the run: rate, delay, outages, and faults of its router.

use serde::Deserialize;

use crate::check::time;
use crate::fault::clock_step;

/// Timed change of a link. Properties that are not set keep their values.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// Time of the change.
    pub at_s: f64,
    /// Rate after the change; `None` to keep the rate. At a rate of zero the queue is held.
    pub rate_bps: Option<f64>,
    /// Propagation delay of packets whose transmission ends after the change; `None` to keep the delay.
    pub delay_s: Option<f64>,
    /// New state: true if the link comes up, false if it goes down; `None` to keep the state.
    ///
    /// A link that is down drops its queue and all arrivals.
    pub up: Option<bool>,
    /// True to restart the router at the link's head. The router's laws lose their state, and packets still pass.
    #[serde(default)]
    pub restart: bool,
    /// Size of a clock jump of the router at the link's head, in seconds; `None` for no jump. The jump may be negative.
    #[serde(default)]
    pub clock_step_s: Option<f64>,
}

/// Checks a link's changes: values must be in range, and times in order and within the run.
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
