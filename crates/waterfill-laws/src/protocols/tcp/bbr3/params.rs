//! Parameters of BBRv3.

use crate::params::{ParamError, require};
use crate::units::Duration;

crate::params! {
    /// Parameters of BBRv3.
    pub struct Params {
        /// BBR.StartupPacingGain: pacing gain of Startup, 4·ln 2 rounded.
        startup_pacing_gain: f64 = 2.77, "bbr-06 §2.5";
        /// BBR.LossThresh: loss rate of a round above which the data in flight is too much.
        loss_thresh: f64 = 0.02, "bbr-06 §2.8";
        /// BBR.Beta: factor by which a round with losses lowers the short-term bounds at most.
        beta: f64 = 0.7, "bbr-06 §2.8";
        /// BBR.Headroom: fraction of inflight_longterm that is left to others while cruising.
        headroom: f64 = 0.15, "bbr-06 §2.8";
        /// BBR.PacingMarginPercent, as a fraction: part of the bandwidth that pacing leaves unused.
        pacing_margin: f64 = 0.01, "bbr-06 §2.5";
        /// BBR.MinRTTFilterLen: time for which a minimum RTT is valid.
        min_rtt_window: Duration = Duration::from_millis(10_000), "bbr-06 §2.16.1";
        /// BBR.ProbeRTTInterval: time without a lower RTT after which ProbeRTT begins.
        probe_rtt_interval: Duration = Duration::from_millis(5000), "bbr-06 §2.16.2";
        /// BBR.ProbeRTTDuration: minimum time that ProbeRTT lasts with little in flight.
        probe_rtt_duration: Duration = Duration::from_millis(200), "bbr-06 §2.16.2";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let gain = self.startup_pacing_gain;
        require(gain > 1.0 && gain <= 100.0, "startup_pacing_gain", "a number above 1, up to 100")?;
        require((0.0..1.0).contains(&self.loss_thresh), "loss_thresh", "a number in [0, 1)")?;
        require((0.0..=1.0).contains(&self.beta), "beta", "a number from 0 to 1")?;
        require((0.0..1.0).contains(&self.headroom), "headroom", "a number in [0, 1)")?;
        require((0.0..1.0).contains(&self.pacing_margin), "pacing_margin", "a number in [0, 1)")?;
        require(!self.min_rtt_window.is_zero(), "min_rtt_window", "a time above zero")?;
        require(!self.probe_rtt_interval.is_zero(), "probe_rtt_interval", "a time above zero")
    }
}
