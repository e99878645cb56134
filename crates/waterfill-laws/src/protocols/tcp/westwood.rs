//! TCP Westwood+: a loss sets the window to the measured capacity of the path instead of half the window.
//!
//! # Law
//! - `[westwood-2004:b_k]` `b_k = d_k/Δ_k`: the data acknowledged in the last RTT over its length
//! - `[westwood-2004:filter]` `b̂_k = α·b̂_{k−1} + (1 − α)·b_k`
//! - `[westwood-2004:ssthresh]` `ssthresh ← max(b̂·RTT_min, 2)` after a loss or a time-out
//! - growth is Reno's: `[rfc5681:eq3]` in [`reno`]
//!
//! # Symbols
//! | Grieco and Mascolo | here | unit |
//! |---|---|---|
//! | d_k, Δ_k | `arrived`, time since `began` | packets, s |
//! | b̂ (BWE) | `bandwidth` | packets/s |
//! | RTT_min | `base_rtt` | s |
//! | α | `filter` | – |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Westwood`]: the host's `Host::TCP`. The estimate is taken in recovery too, from duplicates as from others.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - The plus: one sample per RTT. The first Westwood (2001) took one for each acknowledgement and overestimated
//!   where acknowledgements come compressed.
//! - An RTT is the smoothed one of RFC 6298. Linux takes at least 50 ms, because its clock is coarse.
//! - The filter starts with its first sample, as Linux's does; from zero it would need ten RTTs.
//! - A window below `b̂·RTT_min` is not raised by a loss (2001, §3.1: `if (cwin > ssthresh) cwin = ssthresh`).
//!
//! # Validation
//! Tests below by hand; under random loss it keeps more than Reno does (`tcp_delay_based` of the simulator).
//!
//! # References
//! `westwood-2004`: Grieco, Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno and Vegas TCP
//! Congestion Control", CCR 34(2), 2004. Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood: Bandwidth Estimation
//! for Enhanced Transport over Wireless Links", MobiCom 2001.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, BaseRtt, Connection, Event, Host, LawSignal, Probe};
use crate::protocols::tcp::{SIGNALS, TcpLaw, Window, reno};
use crate::units::{Duration, Instant};

crate::params! {
    /// Parameters of Westwood+.
    pub struct Params {
        /// Weight α of the old estimate after a new sample.
        filter: f64 = 0.9, "westwood-2004 §2.1";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.filter >= 0.0 && self.filter < 1.0, "filter", "a number in [0, 1)")
    }
}

/// `[westwood-2004:b_k]` Returns a bandwidth sample in packets/s.
#[must_use]
pub fn sample(packets: f64, interval: Duration) -> f64 {
    packets / interval.as_secs()
}

/// `[westwood-2004:filter]` Returns the bandwidth estimate after a sample.
#[must_use]
pub fn filtered(before: f64, sample: f64, filter: f64) -> f64 {
    filter * before + (1.0 - filter) * sample
}

/// `[westwood-2004:ssthresh]` Returns the number of packets that the path holds without a queue.
#[must_use]
pub fn threshold(bandwidth: f64, base_rtt: Duration) -> f64 {
    bandwidth * base_rtt.as_secs()
}

/// Law of TCP Westwood+.
#[derive(Clone, Debug)]
pub struct Westwood {
    filter: f64,
    /// Estimated bandwidth in packets/s; `None` before the first RTT.
    bandwidth: Option<f64>,
    /// Start of the current sample; `None` before the first acknowledgement.
    began: Option<Instant>,
    arrived: f64,
    base_rtt: Duration,
}

impl TcpLaw for Westwood {
    const NAME: &'static str = "westwood";
    const SUMMARY: &'static str = "Westwood+: the window after a loss is measured bandwidth times the smallest RTT";
    const SIGNALS: &'static [LawSignal] = &[
        SIGNALS[0],
        SIGNALS[1],
        LawSignal { name: "bandwidth", unit: "packets/s", doc: "filtered estimate of the bandwidth" },
    ];
    const HOST: Host = Host { base_rtt: Some(BaseRtt::FullQueues), ..Host::TCP };
    type Params = Params;

    fn new(params: &Params, _: &Connection) -> Self {
        Self { filter: params.filter, bandwidth: None, began: None, arrived: 0.0, base_rtt: Duration::ZERO }
    }

    fn measure(&mut self, _: &Window, ack: &Ack<()>, acked: f64) {
        self.base_rtt = ack.base_rtt;
        let Some(began) = self.began else {
            self.began = Some(ack.now); // what this one acknowledges was not sent within the sample
            return;
        };
        self.arrived += acked;
        let interval = ack.now.since(began);
        if interval < ack.smoothed_rtt || interval.is_zero() {
            return;
        }
        let new = sample(self.arrived, interval);
        self.bandwidth = Some(self.bandwidth.map_or(new, |before| filtered(before, new, self.filter)));
        self.began = Some(ack.now);
        self.arrived = 0.0;
    }

    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        window.cwnd = reno::increased(window.cwnd, 1.0, acked);
    }

    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        // Before the first estimate there is only Reno's answer.
        self.bandwidth.map_or_else(|| reno::threshold(window.cwnd, 0.5), |b| threshold(b, self.base_rtt))
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(bandwidth) = self.bandwidth {
            probe.record("bandwidth", bandwidth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::testing::{acknowledge, tcp};

    const RTT: Duration = Duration::from_millis(100);

    /// Sends twenty acknowledgements, `step_ms` apart. At 5 ms they are one sample of 200 packets/s.
    fn round(tcp: &mut crate::protocols::tcp::Tcp<Westwood>, from_ms: u64, step_ms: u64) {
        for i in 1..=20 {
            acknowledge(tcp, 1, Instant::ZERO + Duration::from_millis(from_ms + i * step_ms), RTT);
        }
    }

    /// `[westwood-2004:b_k, filter, ssthresh]` Twenty packets in 100 ms are a sample of 200 packets/s, and a sample of
    /// 100 lowers the estimate from 200 to 190.
    #[test]
    fn westwood_2004_filter_by_hand() {
        assert_eq!(sample(20.0, RTT), 200.0);
        assert!((filtered(200.0, 100.0, 0.9) - 190.0).abs() < 1e-9);
        assert_eq!(threshold(200.0, RTT), 20.0);
    }

    #[test]
    fn a_loss_leaves_bandwidth_times_the_smallest_round_trip() {
        let mut w = tcp::<Westwood>(&Params::default());
        acknowledge(&mut w, 1, Instant::ZERO, RTT);
        *w.window() = Window { cwnd: 60.0, ssthresh: 30.0, initial: 10.0 };
        round(&mut w, 0, 5);
        assert_eq!(w.law().bandwidth, Some(200.0));
        w.on_event(Instant::ZERO, Event::Loss);
        assert!((w.window().cwnd - 20.0).abs() < 1e-9, "{:?}", w.window()); // 200 packets/s × 0.1 s
        // An RTT at half the rate moves the estimate by a tenth of the difference.
        round(&mut w, 100, 10);
        assert!((w.law().bandwidth.unwrap() - (0.9 * (0.9 * 200.0 + 0.1 * 100.0) + 0.1 * 100.0)).abs() < 1e-9);
        w.on_event(Instant::ZERO, Event::Timeout);
        assert_eq!(w.window().cwnd, 1.0);
        assert!((w.window().ssthresh - 18.1).abs() < 1e-9);
    }

    #[test]
    fn a_loss_never_raises_the_window() {
        let mut w = tcp::<Westwood>(&Params::default());
        acknowledge(&mut w, 1, Instant::ZERO, RTT);
        round(&mut w, 0, 5);
        *w.window() = Window { cwnd: 8.0, ssthresh: 30.0, initial: 10.0 };
        w.on_event(Instant::ZERO, Event::Loss);
        assert_eq!(w.window().cwnd, 8.0);
        assert!((w.window().ssthresh - 20.0).abs() < 1e-9, "from where slow start goes on");
    }

    #[test]
    fn before_the_first_round_trip_a_loss_halves() {
        let mut w = tcp::<Westwood>(&Params::default());
        w.on_event(Instant::ZERO, Event::Loss);
        assert_eq!(w.window().cwnd, 5.0);
    }
}
