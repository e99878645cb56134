//! BIC: a window that searches for the window of the last loss in halving steps.
//!
//! # Law
//! - `[bic-2004:search]` below w_max: half the distance to it per RTT, but from S_min to S_max packets
//! - `[bic-2004:probe]` from w_max on: 1, 2, 4 … packets per RTT, up to S_max
//! - `[bic-2004:decrease]` `cwnd ← β cwnd` after a loss
//! - `[bic-2004:convergence]` `w_max ← cwnd (1 + β)/2` if cwnd < w_max, otherwise cwnd
//! - Reno's `[rfc5681:eq3]`, `[rfc5681:eq4]` while cwnd ≤ low_window
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | cwnd | [`Window`] | packets |
//! | max_win | `w_max` | packets |
//! | low_window, S_max, S_min | `low_window`, `s_max`, `s_min` | packets |
//! | β (there the share given up) | `beta`, the share left | |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Bic`].
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - The paper's text was not available. The law above follows the literature. `curve = "linux"` is that of Linux's
//!   net/ipv4/tcp_bic.c, with `s_max = 16`: a quarter of the distance instead of half, a fifth of a packet per RTT within 4
//!   packets around w_max (`smooth_part`), and a third of the excess beyond.
//! - β is 0.8, as in the authors' later implementations and in Linux (819/1024). The paper has 0.875.
//! - The paper's doubling steps beyond w_max are the line 1 + (cwnd − w_max), which passes through their corners
//!   1, 2, 4, 8 at excesses 0, 1, 3, 7.
//! - Not done: Linux's first slow start ended at 100 packets (`initial_ssthresh`, dropped later), and its window grew by 5 %
//!   per RTT before the first loss.
//! - Packets are counted, not acknowledgements. Linux estimates their number.
//!
//! [Other readings](../../validation/tcp-readings.md#bic)
//!
//! # Validation
//! Tests below by hand; the simulator's tests of filling and sharing.
//!
//! # References
//! Xu, Harfoush, Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks", INFOCOM 2004. Linux,
//! net/ipv4/tcp_bic.c.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Event, LawSignal, Probe};
use crate::protocols::tcp::{SIGNALS, TcpLaw, Window, cubic, reno};
use crate::units::Instant;

crate::choice! {
    /// Rule for the increase of the window per RTT.
    pub enum Curve {
        /// Steps of half the distance below the maximum, and doubling steps above it.
        Paper = "paper",
        /// Curve of Linux's implementation.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of BIC.
    pub struct Params {
        /// Window, in packets, up to which BIC behaves as Reno.
        low_window: f64 = 14.0, "Xu et al. 2004; Linux";
        /// Maximum growth of the window per RTT, in packets.
        s_max: f64 = 32.0, "Xu et al. 2004; Linux has 16";
        /// Minimum growth of the window per RTT, in packets, with `curve = "paper"`.
        s_min: f64 = 0.01, "Xu et al. 2004";
        /// Fraction of the window that remains after a loss.
        beta: f64 = 0.8, "Linux, 819/1024; Xu et al. 2004 have 0.875";
        /// Reduce the window further for a flow whose windows shrink (fast convergence).
        fast_convergence: bool = true, "Xu et al. 2004";
        /// Rule for the increase of the window per RTT.
        curve: Curve = Curve::Paper, "Xu et al. 2004";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require((0.0..=1e9).contains(&self.low_window), "low_window", "a number of packets from 0 to 1e9")?;
        require((1.0..=1e6).contains(&self.s_max), "s_max", "a number of packets from 1 to 1e6")?;
        require(self.s_min > 0.0 && self.s_min <= 1.0, "s_min", "a number of packets above 0, up to 1")?;
        require(self.beta > 0.0 && self.beta < 1.0, "beta", "a number between 0 and 1")
    }
}

/// `[bic-2004:search]` Returns the growth of the window per RTT below the maximum, in packets.
#[must_use]
pub fn search(distance: f64, s_min: f64, s_max: f64) -> f64 {
    (distance / 2.0).clamp(s_min, s_max)
}

/// `[bic-2004:probe]` Returns the growth of the window per RTT from the maximum on, in packets.
#[must_use]
pub fn probe(excess: f64, s_max: f64) -> f64 {
    (1.0 + excess).min(s_max)
}

/// Returns the growth of the window per RTT in Linux's implementation, in packets.
#[must_use]
pub fn linux(cwnd: f64, w_max: f64, s_max: f64) -> f64 {
    const B: f64 = 4.0; // BICTCP_B
    const SMOOTH_PART: f64 = 20.0;
    let step = if cwnd < w_max {
        (w_max - cwnd) / B
    } else if cwnd < w_max + B {
        0.0
    } else {
        (cwnd - w_max) / (B - 1.0)
    };
    if step <= 1.0 { B / SMOOTH_PART } else { step.min(s_max) }
}

/// Law of BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    params: Params,
    /// Window w_max that BIC searches for, in packets; zero before the first loss.
    w_max: f64,
}

impl TcpLaw for Bic {
    const NAME: &'static str = "bic";
    const SUMMARY: &'static str = "BIC: binary search for the window of the last loss (Xu, Harfoush, Rhee 2004)";
    const SIGNALS: &'static [LawSignal] = &[
        SIGNALS[0],
        SIGNALS[1],
        LawSignal { name: "w_max", unit: "packets", doc: "window that is searched for; none before the first loss" },
    ];
    type Params = Params;

    fn new(params: &Params, _: &Connection) -> Self {
        Self { params: params.clone(), w_max: 0.0 }
    }

    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        let Params { low_window, s_max, s_min, curve, .. } = self.params;
        let distance = self.w_max - window.cwnd;
        let step = if window.cwnd <= low_window {
            1.0
        } else if curve == Curve::Linux {
            linux(window.cwnd, self.w_max, s_max)
        } else if distance > 0.0 {
            search(distance, s_min, s_max)
        } else {
            probe(-distance, s_max)
        };
        window.cwnd = reno::increased(window.cwnd, step, acked);
    }

    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        let Params { low_window, beta, fast_convergence, .. } = self.params;
        self.w_max = cubic::next_w_max(window.cwnd, self.w_max, beta, fast_convergence); // [bic-2004:convergence]
        reno::threshold(window.cwnd, if window.cwnd <= low_window { 0.5 } else { beta }) // [bic-2004:decrease]
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if self.w_max > 0.0 {
            probe.record("w_max", self.w_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::Tcp;
    use crate::protocols::tcp::testing::tcp;
    use crate::units::{Duration, Volume};

    /// Acknowledges a whole window at once, as one RTT; returns the growth of the window.
    fn round(bic: &mut Tcp<Bic>) -> f64 {
        let before = bic.window().cwnd;
        let acked = before * Volume::from_bytes(1500.0);
        bic.on_ack(&Ack { acked, ..Ack::new(Instant::ZERO, (), Duration::from_millis(100)) });
        bic.window().cwnd - before
    }

    fn after_a_loss(params: &Params, cwnd: f64) -> Tcp<Bic> {
        let mut bic = tcp::<Bic>(params);
        *bic.window() = Window { cwnd, ssthresh: cwnd, initial: 10.0 };
        bic.on_event(Instant::ZERO, Event::Loss);
        bic
    }

    /// BIC has no maximum window to show before the first loss.
    #[test]
    fn the_maximum_window_is_shown_after_a_loss() {
        let shown = |bic: &mut Tcp<Bic>| crate::testing::Signals::of(|probe| bic.law().observe(probe)).find("w_max");
        assert_eq!(shown(&mut tcp::<Bic>(&Params::default())), None);
        assert_eq!(shown(&mut after_a_loss(&Params::default(), 1000.0)), Some(1000.0));
    }

    /// `[bic-2004:search]` The window grows by 32 packets per RTT, then by half of the distance, and at last by S_min.
    #[test]
    fn bic_2004_search_by_hand() {
        // After a loss at 1000: 800, then 32 per RTT while more than 64 away, then half of what is left.
        let mut bic = after_a_loss(&Params::default(), 1000.0);
        assert_eq!(bic.window().cwnd, 800.0);
        let steps: Vec<f64> = (0..8).map(|_| round(&mut bic)).collect();
        // 800 832 864 896 928 960, 40 away: 20, 10, 5
        assert_eq!(steps, [32.0, 32.0, 32.0, 32.0, 32.0, 20.0, 10.0, 5.0]);
        // … and at last S_min per RTT, not asymptotically: 5 halves to below 0.02 in 8 RTTs, then 0.01 each.
        for _ in 0..8 {
            round(&mut bic);
        }
        assert!((round(&mut bic) - 0.01).abs() < 1e-9);
        assert!((round(&mut bic) - 0.01).abs() < 1e-9);
        assert!(bic.window().cwnd > 999.98, "{:?}", bic.window());
    }

    /// `[bic-2004:probe]` Beyond the maximum the steps double, from one packet up to S_max.
    #[test]
    fn bic_2004_probe_doubles_its_steps_up_to_s_max() {
        let mut bic = after_a_loss(&Params::default(), 1000.0);
        bic.window().cwnd = 1000.0;
        let steps: Vec<f64> = (0..7).map(|_| round(&mut bic)).collect();
        assert_eq!(steps, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0]);
    }

    /// `[bic-2004:convergence, decrease]` A loss below the last maximum also lowers the next maximum. Up to 14 packets,
    /// BIC behaves as Reno.
    #[test]
    fn bic_2004_convergence_and_decrease_by_hand() {
        let mut bic = after_a_loss(&Params::default(), 1000.0);
        bic.window().cwnd = 900.0;
        bic.on_event(Instant::ZERO, Event::Loss);
        // below the last maximum: 900 · 1.8/2
        assert!((bic.law().w_max - 810.0).abs() < 1e-9);
        assert!((bic.window().cwnd - 720.0).abs() < 1e-9);
        // Reno up to 14
        let mut bic = after_a_loss(&Params::default(), 14.0);
        assert_eq!(bic.window().cwnd, 7.0);
        assert!((round(&mut bic) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn linux_curve_by_hand() {
        // tcp_bic.c with max_increment 16: capped; a quarter; a fifth of a packet around the maximum; a third beyond.
        for (cwnd, step) in
            [(900.0, 16.0), (960.0, 10.0), (997.0, 0.2), (1003.0, 0.2), (1012.0, 4.0), (1048.0, 16.0), (1100.0, 16.0)]
        {
            assert_eq!(linux(cwnd, 1000.0, 16.0), step, "at {cwnd}");
        }
        let mut bic = after_a_loss(&Params { curve: Curve::Linux, s_max: 16.0, ..Params::default() }, 1000.0);
        assert_eq!(round(&mut bic), 16.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |params: Params| params.validate().expect_err("out of range").0;
        assert!(refused(Params { low_window: -1.0, ..Params::default() }).starts_with("low_window: must be"));
        assert!(refused(Params { s_max: 0.5, ..Params::default() }).starts_with("s_max: must be"));
        assert!(refused(Params { s_min: 0.0, ..Params::default() }).starts_with("s_min: must be"));
        assert!(refused(Params { beta: 1.0, ..Params::default() }).starts_with("beta: must be"));
    }
}
