//! Parameters of BBR.

use crate::params::{ParamError, require};
use crate::units::Duration;

crate::params! {
    /// Parameters of BBR.
    pub struct Params {
        /// BBRHighGain: pacing and window gain of Startup. Its inverse is the pacing gain of Drain.
        high_gain: f64 = 2.0 / std::f64::consts::LN_2, "bbr-00 §4.3.2.1";
        /// Window gain of ProbeBW.
        cwnd_gain: f64 = 2.0, "bbr-00 §4.3.4";
        /// RTpropFilterLen: time for which a minimum RTT is valid.
        rtprop_window: Duration = Duration::from_millis(10_000), "bbr-00 §4.1.2.2";
        /// ProbeRTTDuration: minimum time for which ProbeRTT keeps 4 packets in flight.
        probe_rtt: Duration = Duration::from_millis(200), "bbr-00 §4.3.5";
        /// Follow Linux's tcp_bbr.c where it differs from the draft. The differences are send_quantum, even windows, a
        /// margin of 1 %, and an allowance for aggregated acknowledgements.
        linux: bool = true, "Linux";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.high_gain > 1.0 && self.high_gain <= 100.0, "high_gain", "a number above 1, up to 100")?;
        require(self.cwnd_gain >= 1.0 && self.cwnd_gain <= 100.0, "cwnd_gain", "a number from 1 to 100")?;
        require(!self.rtprop_window.is_zero(), "rtprop_window", "a time above zero")
    }
}
