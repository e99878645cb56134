//! H-TCP: the increase rises with the time since the last loss, and the decrease empties the queue.
//!
//! # Law
//! - `[htcp:alpha]` `α(Δ) = 1` up to Δ_L, then `1 + 10 (Δ − Δ_L) + ((Δ − Δ_L)/2)²`, Δ the time since the last loss
//! - `[htcp:scaling]` α is multiplied by RTT/100 ms, between 0.1 and 2
//! - `[htcp:friendly]` `α ← 2 (1 − β) α`
//! - `[htcp:increase]` `cwnd ← cwnd + α/cwnd` for each packet acknowledged
//! - `[htcp:beta]` `β = RTT_min/RTT_max` in [0.5, 0.8], but 0.5 if the throughput changed by more than a fifth since the loss before
//! - `[htcp:decrease]` `cwnd ← β cwnd` after a loss
//!
//! # Symbols
//! | draft | here | unit |
//! |---|---|---|
//! | Δ, Δ_L | `since`, `delta_l` | s |
//! | α, β | `alpha`, `beta` | packets, 1 |
//! | RTT_min, RTT_max | `Ack::base_rtt`, `rtt_max` | s |
//! | B(k) | `throughput` | packets/s |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Htcp`].
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! The draft's text was not available. The equations are those of FreeBSD's cc_htcp.c and Linux's tcp_htcp.c, which both name it.
//! - B(k) is the largest throughput since the loss, measured over windows and smoothed with weight 1/4 for the newest. The
//!   first window after a loss starts it afresh. Linux takes the last of the three smallest RTTs after the loss.
//! - RTT in the scaling is the smoothed one (FreeBSD). Linux takes the smallest. Both have the switches that are here: on in
//!   Linux, off in FreeBSD.
//! - RTT_max is the largest sample outside recovery, and 5 % of its distance to RTT_min fades at each loss (both). Not done
//!   here: Linux lets it rise by at most 20 ms at a time, and takes β = 0.5 where RTT_min is below 10 ms, because its clock
//!   is coarse.
//! - α is not below 1 per RTT, whatever the scaling (FreeBSD).
//! - The first loss halves the window, because there is no earlier throughput to compare with.
//!
//! [Other readings](../../validation/tcp-readings.md#htcp)
//!
//! # Validation
//! Tests below by hand; the simulator's tests of filling and sharing.
//!
//! # References
//! Leith, Shorten, "H-TCP: TCP Congestion Control for High Bandwidth-Delay Product Paths", draft-leith-tcp-htcp-06, 2008.
//! Shorten, Leith, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, BaseRtt, Connection, Event, Host, LawSignal, Probe};
use crate::protocols::tcp::{SIGNALS, TcpLaw, Window, reno};
use crate::units::{Duration, Instant};

/// Minimum and maximum of β.
const BETA: (f64, f64) = (0.5, 0.8);
/// RTT for which α is not scaled; `SCALE` is the range of the factor.
const RTT_REF: Duration = Duration::from_millis(100);
const SCALE: (f64, f64) = (0.1, 2.0);
/// Relative change of the throughput between losses above which a loss halves the window.
const CHANGE: f64 = 0.2;
/// Fraction of RTT_max − RTT_min that remains after a loss.
const FADE: f64 = 0.95;

crate::params! {
    /// Parameters of H-TCP.
    pub struct Params {
        /// Time after a loss for which the window grows as Reno's.
        delta_l: Duration = Duration::from_millis(1000), "draft-leith-tcp-htcp-06; FreeBSD, Linux";
        /// Scale the increase by the RTT, so that windows do not depend on the RTT.
        rtt_scaling: bool = true, "Linux, use_rtt_scaling";
        /// Reduce the window by the queue that the flow built; if false, halve the window.
        adaptive_backoff: bool = true, "draft-leith-tcp-htcp-06";
        /// Reduce the window to half when the throughput has changed.
        bandwidth_switch: bool = true, "Linux, use_bandwidth_switch";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.delta_l.as_secs() <= 1e3, "delta_l", "a time up to 1000 s")
    }
}

/// `[htcp:alpha]` Returns the growth of the window per RTT in packets, at the time `since` the last loss.
#[must_use]
pub fn alpha(since: Duration, delta_l: Duration) -> f64 {
    let beyond = (since - delta_l).as_secs();
    1.0 + 10.0 * beyond + beyond * beyond / 4.0
}

/// `[htcp:scaling]` Returns the scale factor of α for an RTT.
#[must_use]
pub fn scale(rtt: Duration) -> f64 {
    (rtt / RTT_REF).clamp(SCALE.0, SCALE.1)
}

/// `[htcp:friendly]` Returns the increase that makes a window with decrease factor `beta` on average as large as a
/// window that a loss halves.
#[must_use]
pub fn friendly(alpha: f64, beta: f64) -> f64 {
    2.0 * (1.0 - beta) * alpha
}

/// `[htcp:beta]` Returns the fraction of the window that remains after a loss, if the throughput has not changed.
#[must_use]
pub fn backoff(rtt_min: Duration, rtt_max: Duration) -> f64 {
    (rtt_min / rtt_max).clamp(BETA.0, BETA.1)
}

/// Returns true if the throughput changed by more than a fifth.
#[must_use]
pub fn changed(before: f64, now: f64) -> bool {
    (now - before).abs() > CHANGE * before
}

/// Law of H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    params: Params,
    beta: f64,
    last_loss: Instant,
    rtt_min: Duration,
    rtt_max: Duration,
    /// Packets acknowledged since `counted_from`.
    counted: f64,
    counted_from: Instant,
    /// Smoothed throughput in packets/s. `largest` is the maximum since the last loss, and `before` is the maximum
    /// between the last two losses.
    throughput: f64,
    largest: f64,
    before: f64,
}

impl Htcp {
    fn count(&mut self, window: &Window, ack: &Ack<()>, acked: f64) {
        if ack.recovering {
            (self.counted, self.counted_from) = (0.0, ack.now);
            return;
        }
        self.counted += acked;
        let span = ack.now.since(self.counted_from);
        if self.counted < window.cwnd - 1.0 || span < ack.base_rtt {
            return;
        }
        let throughput = self.counted / span.as_secs();
        self.throughput =
            if self.largest == 0.0 { throughput } else { self.throughput + (throughput - self.throughput) / 4.0 };
        self.largest = self.largest.max(self.throughput);
        (self.counted, self.counted_from) = (0.0, ack.now);
    }

    fn alpha(&self, now: Instant, rtt: Duration) -> f64 {
        let alpha = alpha(now.since(self.last_loss), self.params.delta_l);
        let scaled = if self.params.rtt_scaling { alpha * scale(rtt) } else { alpha };
        friendly(scaled, self.beta).max(1.0)
    }
}

impl TcpLaw for Htcp {
    const NAME: &'static str = "htcp";
    const SUMMARY: &'static str = "H-TCP: increase by the time since the last loss, adaptive backoff (Leith, Shorten)";
    const SIGNALS: &'static [LawSignal] = &[
        SIGNALS[0],
        SIGNALS[1],
        LawSignal { name: "beta", unit: "share", doc: "share of the window that the last loss left" },
    ];
    const HOST: Host = Host { base_rtt: Some(BaseRtt::FullQueues), ..Host::TCP };
    type Params = Params;

    fn new(params: &Params, _: &Connection) -> Self {
        Self {
            params: params.clone(),
            beta: BETA.0,
            last_loss: Instant::ZERO,
            rtt_min: Duration::MAX,
            rtt_max: Duration::ZERO,
            counted: 0.0,
            counted_from: Instant::ZERO,
            throughput: 0.0,
            largest: 0.0,
            before: 0.0,
        }
    }

    fn measure(&mut self, window: &Window, ack: &Ack<()>, acked: f64) {
        self.rtt_min = ack.base_rtt;
        if let (Some(rtt), false) = (ack.rtt, ack.recovering) {
            self.rtt_max = self.rtt_max.max(rtt);
        }
        if self.params.bandwidth_switch {
            self.count(window, ack, acked);
        }
    }

    /// `[htcp:increase]` Increases the window by α/w per acknowledged packet.
    fn avoid(&mut self, window: &mut Window, ack: &Ack<()>, acked: f64) {
        window.cwnd = reno::increased(window.cwnd, self.alpha(ack.now, ack.smoothed_rtt), acked);
    }

    /// `[htcp:decrease]` Returns β·w, the threshold after a loss, and updates β.
    fn reduced(&mut self, window: &Window, now: Instant, _: Event) -> f64 {
        let unlike = self.before == 0.0 || changed(self.before, self.largest);
        let switched = self.params.bandwidth_switch && unlike;
        self.beta = if self.params.adaptive_backoff && !switched && self.rtt_max > Duration::ZERO {
            backoff(self.rtt_min, self.rtt_max)
        } else {
            BETA.0
        };
        (self.before, self.largest) = (self.largest, 0.0);
        self.last_loss = now;
        if self.rtt_max > self.rtt_min {
            let held = (self.rtt_max - self.rtt_min).as_secs();
            self.rtt_max = self.rtt_min + Duration::from_secs(FADE * held);
        }
        reno::threshold(window.cwnd, self.beta)
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("beta", self.beta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::Tcp;
    use crate::protocols::tcp::testing::tcp;
    use crate::units::Volume;

    fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Acknowledges a whole window at once, with a given RTT and a minimum RTT of 100 ms; returns the growth of the
    /// window.
    fn round(htcp: &mut Tcp<Htcp>, now_s: f64, rtt_ms: u64) -> f64 {
        let before = htcp.window().cwnd;
        let acked = before * Volume::from_bytes(1500.0);
        let ack = Ack::new(Instant::from_secs(now_s), (), millis(rtt_ms));
        htcp.on_ack(&Ack { acked, base_rtt: millis(100), smoothed_rtt: millis(100), ..ack });
        htcp.window().cwnd - before
    }

    fn in_avoidance(params: &Params, cwnd: f64) -> Tcp<Htcp> {
        let mut htcp = tcp::<Htcp>(params);
        *htcp.window() = Window { cwnd, ssthresh: cwnd, initial: 10.0 };
        htcp
    }

    /// `[htcp:alpha]` The increase is 1 up to a second after a loss, 22 after 3 s and 126 after 11 s.
    #[test]
    fn htcp_alpha_by_hand() {
        // 1 up to a second; 3 s: 1 + 20 + 1; 11 s: 1 + 100 + 25.
        let delta_l = Duration::from_millis(1000);
        for (ms, expected) in [(0, 1.0), (1000, 1.0), (3000, 22.0), (11_000, 126.0)] {
            assert!((alpha(millis(ms), delta_l) - expected).abs() < 1e-9, "{ms} ms");
        }
    }

    /// `[htcp:scaling, friendly]` The RTT scales α by 0.1 to 2, and a β of 0.8 reduces α to 40 %.
    #[test]
    fn htcp_scaling_and_friendliness_by_hand() {
        assert_eq!([5, 50, 100, 400].map(|ms| scale(millis(ms))), [0.1, 0.5, 1.0, 2.0]);
        assert_eq!(friendly(22.0, 0.5), 22.0);
        assert!((friendly(22.0, 0.8) - 8.8).abs() < 1e-12);
    }

    /// `[htcp:beta]` The remaining fraction is RTT_min/RTT_max, limited to 0.5 to 0.8.
    #[test]
    fn htcp_beta_by_hand() {
        assert_eq!(backoff(millis(100), millis(250)), 0.5);
        assert_eq!(backoff(millis(100), millis(160)), 0.625);
        assert_eq!(backoff(millis(100), millis(110)), 0.8);
        assert!(!changed(100.0, 119.0) && changed(100.0, 121.0) && !changed(100.0, 81.0) && changed(100.0, 79.0));
        assert!(changed(0.0, 1.0), "nothing to compare with");
    }

    /// `[htcp:increase, decrease]` A loss leaves RTT_min/RTT_max of the window, and the increase 3 s later is 22 · 0.75
    /// packets.
    #[test]
    fn htcp_increase_and_decrease_by_hand() {
        let params = Params { bandwidth_switch: false, ..Params::default() };
        let mut htcp = in_avoidance(&params, 1000.0);
        round(&mut htcp, 0.1, 160);
        htcp.window().cwnd = 1000.0;
        htcp.on_event(Instant::from_secs(1.0), Event::Loss);
        // RTT_min/RTT_max = 100/160
        assert!((htcp.window().cwnd - 625.0).abs() < 1e-9);
        // 3 s later: 22 packets by 2 · 0.375, and Reno's one within the first second
        assert!((round(&mut htcp, 4.0, 100) - 22.0 * 0.75).abs() < 1e-9);
        assert_eq!(round(&mut htcp, 1.5, 100), 1.0);
        // RTT_max has faded to 100 + 0.95 · 60 = 157 ms
        htcp.window().cwnd = 1570.0;
        htcp.on_event(Instant::from_secs(10.0), Event::Loss);
        assert!((htcp.window().cwnd - 1000.0).abs() < 1e-6, "{:?}", htcp.window());
    }

    #[test]
    fn htcp_a_change_of_throughput_means_half() {
        // A queue that would leave 0.8. The first loss has nothing to compare with; the second finds 10 % more, the
        // third 100 % more, the fourth and fifth 30 % and 10 % less.
        let mut htcp = in_avoidance(&Params::default(), 1000.0);
        let epochs = [(1000.0, 0.5), (1100.0, 0.8), (2200.0, 0.5), (1540.0, 0.5), (1390.0, 0.8)];
        for (epoch, (packets, expected)) in epochs.into_iter().enumerate() {
            for i in 1..40 {
                htcp.window().cwnd = packets; // held, so that the throughput is packets/0.1 s
                round(&mut htcp, 10.0 * epoch as f64 + 0.1 * f64::from(i), 110);
            }
            htcp.window().cwnd = packets;
            htcp.on_event(Instant::from_secs(10.0 * epoch as f64 + 4.0), Event::Loss);
            assert!((htcp.window().cwnd / packets - expected).abs() < 1e-9, "{epoch}: {:?}", htcp.window());
        }
    }

    #[test]
    fn htcp_a_loss_before_a_window_was_measured_halves() {
        let mut htcp = in_avoidance(&Params::default(), 1000.0);
        let ack = Ack { acked: Volume::from_bytes(1500.0), ..Ack::new(Instant::from_secs(0.1), (), millis(110)) };
        htcp.on_ack(&Ack { base_rtt: millis(100), ..ack });
        htcp.window().cwnd = 1000.0;
        htcp.on_event(Instant::from_secs(0.2), Event::Loss);
        assert_eq!(htcp.window().cwnd, 500.0);
    }

    #[test]
    fn htcp_switches() {
        let params = Params { adaptive_backoff: false, rtt_scaling: false, ..Params::default() };
        let mut htcp = in_avoidance(&params, 1000.0);
        round(&mut htcp, 0.1, 110);
        htcp.window().cwnd = 1000.0;
        htcp.on_event(Instant::from_secs(1.0), Event::Loss);
        assert_eq!(htcp.window().cwnd, 500.0);
        let ack =
            Ack { acked: 500.0 * Volume::from_bytes(1500.0), ..Ack::new(Instant::from_secs(4.0), (), millis(10)) };
        htcp.on_ack(&ack);
        assert!((htcp.window().cwnd - 522.0).abs() < 1e-9, "{:?}", htcp.window());
        let scaled = Params { adaptive_backoff: false, ..Params::default() };
        let mut htcp = in_avoidance(&scaled, 1000.0);
        htcp.on_event(Instant::from_secs(1.0), Event::Loss);
        htcp.on_ack(&ack);
        assert!((htcp.window().cwnd - 502.2).abs() < 1e-9, "{:?}", htcp.window());
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let params = Params { delta_l: Duration::from_secs(1e4), ..Params::default() };
        assert!(params.validate().expect_err("out of range").0.starts_with("delta_l: must be"));
    }
}
