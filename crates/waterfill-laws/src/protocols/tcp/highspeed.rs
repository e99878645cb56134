//! HighSpeed TCP: the increase rises and the decrease falls with the window (RFC 3649).
//!
//! # Law
//! - `[rfc3649:increase]` `w ← w + a(w)/w` for each packet acknowledged
//! - `[rfc3649:decrease]` `w ← (1 − b(w)) w` after a loss
//! - `[rfc3649:b]` `b(w) = (High_Decrease − 0.5)(log w − log Low_Window)/(log High_Window − log Low_Window) + 0.5`
//! - `[rfc3649:p]` `p(w) = Low_P (w/Low_Window)^(1/S)`, `S = (log High_Window − log Low_Window)/(log High_P − log Low_P)`
//! - `[rfc3649:a]` `a(w) = w² p(w) 2 b(w)/(2 − b(w))`
//! - up to Low_Window a = 1 and b = 1/2: Reno
//!
//! # Symbols
//! | RFC 3649 | here | unit |
//! |---|---|---|
//! | w | [`Window`] | packets |
//! | Low_Window, High_Window | `low_window`, `high_window` | packets |
//! | Low_P | `LOW_P` | |
//! | High_P, High_Decrease | `high_p`, `high_decrease` | |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`HighSpeed`].
//!
//! # Parameters
//! [`Params`]: RFC 3649 §5 and §7, for 10 Gbit/s at 100 ms under one loss in 10⁷ packets.
//!
//! # Readings and deviations
//! - p(w) is the line on the log-log scale through (Low_Window, Low_P) and (High_Window, High_P), so that it follows the
//!   parameters. RFC 3649 rounds it to 0.078/w^1.2, and the program behind its tables to 1/(12.8 w^1.2): a(w) there
//!   is up to 2.5 % smaller at the high end.
//! - a(w) is not below 1, as in the program of Appendix C. Beyond High_Window the line of b(w) continues, down to 0.01.
//! - a and b change where the window passes a whole packet; RFC 3649 §7 expects a table with far larger steps.
//! - Limited slow start, which §10.1 suggests for large windows, is a document of its own (RFC 3742) and not done.
//!
//! # Validation
//! RFC 3649's Tables 3, 6 and 12 (below).
//!
//! # References
//! RFC 3649, "HighSpeed TCP for Large Congestion Windows", 2003.

use crate::math;
use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Event, LawSignal, Probe};
use crate::protocols::tcp::{SIGNALS, TcpLaw, Window, reno};
use crate::units::Instant;

/// Loss rate at Low_Window, where HighSpeed TCP equals standard TCP (RFC 3649 §5).
const LOW_P: f64 = 1e-3;
/// Minimum decrease, which applies far beyond High_Window.
const DECREASE_MIN: f64 = 0.01;

crate::params! {
    /// Parameters of HighSpeed TCP.
    pub struct Params {
        /// Window, in packets, up to which HighSpeed TCP behaves as Reno.
        low_window: f64 = 38.0, "RFC 3649 §5";
        /// Window, in packets, for which `high_p` and `high_decrease` are given.
        high_window: f64 = 83_000.0, "RFC 3649 §5";
        /// Loss rate for a mean window of `high_window`.
        high_p: f64 = 1e-7, "RFC 3649 §5";
        /// Fraction of the window that a loss takes away at `high_window`.
        high_decrease: f64 = 0.1, "RFC 3649 §7";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require((2.0..=1e6).contains(&self.low_window), "low_window", "a number of packets from 2 to 1e6")?;
        require(
            self.high_window >= 2.0 * self.low_window && self.high_window <= 1e9,
            "high_window",
            "a number of packets, at least twice low_window, up to 1e9",
        )?;
        require(self.high_p > 0.0 && self.high_p < LOW_P, "high_p", "a loss rate above 0 and below 1e-3")?;
        require((0.01..=0.5).contains(&self.high_decrease), "high_decrease", "a share from 0.01 to 0.5")
    }

    /// Returns the position of a window between Low_Window (0) and High_Window (1), on a logarithmic scale.
    fn way(&self, w: f64) -> f64 {
        math::ln(w / self.low_window) / math::ln(self.high_window / self.low_window)
    }

    /// `[rfc3649:b]` Returns the fraction of the window that a loss takes away.
    #[must_use]
    pub fn b(&self, w: f64) -> f64 {
        if w <= self.low_window { 0.5 } else { ((self.high_decrease - 0.5) * self.way(w) + 0.5).max(DECREASE_MIN) }
    }

    /// `[rfc3649:p]` Returns the loss rate for a mean window of `w`, above Low_Window.
    #[must_use]
    pub fn p(&self, w: f64) -> f64 {
        LOW_P * math::pow(self.high_p / LOW_P, self.way(w))
    }

    /// `[rfc3649:a]` Returns the growth of the window per RTT, in packets.
    #[must_use]
    pub fn a(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        let b = self.b(w);
        (w * w * self.p(w) * 2.0 * b / (2.0 - b)).max(1.0)
    }

    /// `[rfc3649:eq1]` Returns the mean window, in packets, at a loss rate. Down to 10⁻³ the window is standard TCP's
    /// 1.2/√p. Below 10⁻³ the window is a line on logarithmic scales.
    #[must_use]
    pub fn mean_window(&self, loss: f64) -> f64 {
        if loss >= LOW_P {
            return 1.2 / loss.sqrt();
        }
        let way = math::ln(loss / LOW_P) / math::ln(self.high_p / LOW_P);
        self.low_window * math::pow(self.high_window / self.low_window, way)
    }
}

/// Law of HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    params: Params,
    /// Window, in whole packets, for which `a` was computed.
    at: f64,
    a: f64,
}

impl TcpLaw for HighSpeed {
    const NAME: &'static str = "highspeed";
    const SUMMARY: &'static str =
        "HighSpeed TCP: the larger the window, the more increase and the less decrease (RFC 3649)";
    const SIGNALS: &'static [LawSignal] =
        &[SIGNALS[0], SIGNALS[1], LawSignal { name: "a", unit: "packets", doc: "increase per RTT" }];
    type Params = Params;

    fn new(params: &Params, _: &Connection) -> Self {
        Self { params: params.clone(), at: 0.0, a: 1.0 }
    }

    /// `[rfc3649:increase]` Increases the window by a(w)/w per acknowledged packet.
    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        let at = window.cwnd.floor();
        if at != self.at {
            (self.at, self.a) = (at, self.params.a(at)); // two logarithms and a power: not for every packet
        }
        window.cwnd = reno::increased(window.cwnd, self.a, acked);
    }

    /// `[rfc3649:decrease]` Returns (1 − b(w))·w, the threshold after a loss.
    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        reno::threshold(window.cwnd, 1.0 - self.params.b(window.cwnd))
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("a", self.a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::testing::{acknowledge, tcp};
    use crate::units::{Duration, Volume};

    const RTT: Duration = Duration::from_millis(100);

    /// `[rfc3649:a, b]` At 83,000 packets, b is 0.1 and a is 72.5. Just above Low_Window, a stays at Reno's 1.
    #[test]
    fn rfc3649_eq2_by_hand() {
        // §7: b(83000) = 0.1 and a(83000) = 83000² · 10⁻⁷ · 0.2/1.9 = 72.5, which the text cuts to 72.
        let params = Params::default();
        assert!((params.b(83_000.0) - 0.1).abs() < 1e-12);
        assert!((params.a(83_000.0) - 72.515_789).abs() < 1e-5, "{}", params.a(83_000.0));
        // With b = 1/2 it would be 459.
        let half = Params { high_decrease: 0.5, ..params.clone() };
        assert!((half.a(83_000.0) - 459.3).abs() < 0.1, "{}", half.a(83_000.0));
        // Just above Low_Window the line gives 39² · 0.97·10⁻³ · 0.66 = 0.98: Reno's 1 stays (Appendix C).
        assert_eq!(params.a(39.0), 1.0);
    }

    #[test]
    fn rfc3649_a_and_b_give_table_12() {
        // Appendix B: the first w at which a(w) passes the next whole number, and b(w). The table's program has the
        // rounded p(w), up to 2.5 % smaller.
        let params = Params::default();
        for (w, a, b) in [
            (38.0, 1.0, 0.50),
            (118.0, 2.0, 0.44),
            (221.0, 3.0, 0.41),
            (347.0, 4.0, 0.38),
            (495.0, 5.0, 0.37),
            (1058.0, 8.0, 0.33),
            (5036.0, 20.0, 0.25),
            (10_661.0, 30.0, 0.21),
            (30_975.0, 50.0, 0.15),
            (84_035.0, 71.0, 0.10),
        ] {
            assert!((params.a(w) / a - 1.0).abs() < 0.03, "a({w}) = {} for {a}", params.a(w));
            assert!((params.b(w) - b).abs() <= 0.006, "b({w}) = {} for {b}", params.b(w));
        }
    }

    /// `[rfc3649:eq1, p]` The mean windows agree with Table 3 of RFC 3649 within 1.5 %.
    #[test]
    fn rfc3649_eq1_gives_table_3() {
        // Table 3 is made with the rounded W = 0.12/p^0.835: 83981 instead of 83000 at 10⁻⁷.
        for (loss, w) in [(1e-2, 12.0), (1e-3, 38.0), (1e-4, 263.0), (1e-5, 1795.0), (1e-6, 12279.0), (1e-7, 83981.0)] {
            let mean = Params::default().mean_window(loss);
            assert!((mean / w - 1.0).abs() < 0.015, "{loss}: {mean} for {w}");
        }
        // and back
        assert!((Params::default().p(Params::default().mean_window(1e-5)) / 1e-5 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rfc3649_growth_gives_table_6() {
        // Windows after so many RTTs from one packet. 2.5 % in a(w) ~ w^0.6 are up to 6 % in w.
        let mut highspeed = tcp::<HighSpeed>(&Params::default());
        *highspeed.window() = Window { cwnd: 1.0, ssthresh: 1.0, initial: 10.0 };
        let mut now = 1;
        for (round, expected) in [(100, 131.0), (200, 475.0), (500, 3601.0), (1000, 17_409.0)] {
            while now < round {
                let acked = highspeed.window().cwnd * Volume::from_bytes(1500.0);
                highspeed.on_ack(&Ack { acked, ..Ack::new(Instant::ZERO, (), RTT) });
                now += 1;
            }
            let cwnd = highspeed.window().cwnd;
            assert!((cwnd / expected - 1.0).abs() < 0.06, "RTT {round}: {cwnd} for {expected}");
        }
    }

    /// `[rfc3649:increase, decrease]` At 83,000 packets a loss reduces the window by 10 %; up to 38 packets the law is
    /// Reno's.
    #[test]
    fn rfc3649_increase_and_decrease_by_hand() {
        let mut highspeed = tcp::<HighSpeed>(&Params::default());
        *highspeed.window() = Window { cwnd: 83_000.0, ssthresh: 100.0, initial: 10.0 };
        acknowledge(&mut highspeed, 1, Instant::ZERO, RTT);
        assert!((highspeed.window().cwnd - 83_000.0 - 72.515_789 / 83_000.0).abs() < 1e-8);
        highspeed.on_event(Instant::ZERO, Event::Loss);
        assert!((highspeed.window().cwnd - 74_700.0).abs() < 0.1);
        // up to 38 packets Reno
        *highspeed.window() = Window { cwnd: 38.0, ssthresh: 2.0, initial: 10.0 };
        acknowledge(&mut highspeed, 1, Instant::ZERO, RTT);
        assert_eq!(highspeed.window().cwnd, 38.0 + 1.0 / 38.0);
        highspeed.window().cwnd = 38.0;
        highspeed.on_event(Instant::ZERO, Event::Loss);
        assert_eq!(highspeed.window().cwnd, 19.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |params: Params| params.validate().expect_err("out of range").0;
        assert!(refused(Params { low_window: 1.0, ..Params::default() }).starts_with("low_window: must be"));
        assert!(refused(Params { high_window: 50.0, ..Params::default() }).starts_with("high_window: must be"));
        assert!(refused(Params { high_p: 0.01, ..Params::default() }).starts_with("high_p: must be"));
        assert!(refused(Params { high_decrease: 0.6, ..Params::default() }).starts_with("high_decrease: must be"));
    }
}
