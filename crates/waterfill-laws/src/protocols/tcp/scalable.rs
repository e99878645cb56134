//! Scalable TCP: a window that grows and shrinks by fixed fractions and therefore recovers in the same number of RTTs
//! at any rate.
//!
//! # Law
//! - `[kelly-2003:increase]` `cwnd ← cwnd + a` for each packet acknowledged, a = 0.01
//! - `[kelly-2003:decrease]` `cwnd ← cwnd − b cwnd` after a loss, b = 1/8
//! - Reno's `[rfc5681:eq3]`, `[rfc5681:eq4]` while cwnd ≤ lwnd
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | cwnd | [`Window`] | packets |
//! | a | `increase` | packets |
//! | 1 − b | `decrease` | |
//! | lwnd | `low_window` | packets |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Scalable`]. A loss at window w is made good after log(1 − b)/log(1 + a) = 13.4 RTTs, whatever w is.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - The paper adds a for each acknowledgement. Here it is added for each packet acknowledged, so that delayed
//!   acknowledgements do not halve the growth. RFC 3649 §8 assumes the halved growth.
//! - Linux adds a packet for every 50 (once 100) acknowledged, or for every window that is smaller: `increase = 0.02`.
//!
//! # Validation
//! Tests below by hand; the simulator's tests of sharing, which is slow: multiplicative increase and decrease keep the
//! ratio of two windows that lose together.
//!
//! # References
//! Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", CCR 33(2), 2003. RFC 3649 §8, §9.2.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Event};
use crate::protocols::tcp::{TcpLaw, Window, reno};
use crate::units::Instant;

crate::params! {
    /// Parameters of Scalable TCP.
    pub struct Params {
        /// Growth of the window per acknowledged packet, in packets.
        increase: f64 = 0.01, "Kelly 2003, a";
        /// Fraction of the window that remains after a loss.
        decrease: f64 = 0.875, "Kelly 2003, 1 − b";
        /// Window, in packets, up to which Scalable TCP behaves as Reno.
        low_window: f64 = 16.0, "Kelly 2003, lwnd";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.increase > 0.0 && self.increase < 1.0, "increase", "a number between 0 and 1")?;
        require(self.decrease > 0.0 && self.decrease < 1.0, "decrease", "a number between 0 and 1")?;
        require((0.0..=1e9).contains(&self.low_window), "low_window", "a number of packets from 0 to 1e9")
    }
}

/// `[kelly-2003:increase]` Returns the window after another `acked` packets.
#[must_use]
pub fn increased(cwnd: f64, increase: f64, acked: f64) -> f64 {
    cwnd + increase * acked
}

/// Law of Scalable TCP.
#[derive(Clone, Debug)]
pub struct Scalable(Params);

impl TcpLaw for Scalable {
    const NAME: &'static str = "scalable";
    const SUMMARY: &'static str = "Scalable TCP: multiplicative increase and decrease (Kelly 2003)";
    type Params = Params;

    fn new(params: &Params, _: &Connection) -> Self {
        Self(params.clone())
    }

    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        window.cwnd = if window.cwnd <= self.0.low_window {
            reno::increased(window.cwnd, 1.0, acked)
        } else {
            increased(window.cwnd, self.0.increase, acked)
        };
    }

    /// `[kelly-2003:decrease]` Returns the threshold after a loss.
    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        let left = if window.cwnd <= self.0.low_window { 0.5 } else { self.0.decrease };
        reno::threshold(window.cwnd, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::testing::{acknowledge, tcp};
    use crate::units::Duration;

    const RTT: Duration = Duration::from_millis(200);

    /// `[kelly-2003:increase, decrease]` A loss at 1000 packets leaves 875, and 100 acknowledged packets then add one.
    #[test]
    fn kelly_2003_increase_and_decrease_by_hand() {
        let mut scalable = tcp::<Scalable>(&Params::default());
        *scalable.window() = Window { cwnd: 1000.0, ssthresh: 800.0, initial: 10.0 };
        scalable.on_event(Instant::ZERO, Event::Loss);
        assert_eq!((scalable.window().cwnd, scalable.window().ssthresh), (875.0, 875.0));
        acknowledge(&mut scalable, 100, Instant::ZERO, RTT);
        assert!((scalable.window().cwnd - 876.0).abs() < 1e-9);
    }

    #[test]
    fn kelly_2003_up_to_16_packets_it_is_reno() {
        let mut scalable = tcp::<Scalable>(&Params::default());
        *scalable.window() = Window { cwnd: 16.0, ssthresh: 8.0, initial: 10.0 };
        acknowledge(&mut scalable, 1, Instant::ZERO, RTT);
        assert_eq!(scalable.window().cwnd, 16.0 + 1.0 / 16.0);
        scalable.window().cwnd = 16.0;
        scalable.on_event(Instant::ZERO, Event::Loss);
        assert_eq!(scalable.window().cwnd, 8.0);
    }

    #[test]
    fn kelly_2003_recovery_takes_13_round_trips_at_any_window() {
        // ln(1/0.875)/ln(1.01) = 13.42 RTTs
        for cwnd in [100.0, 10_000.0] {
            let mut scalable = tcp::<Scalable>(&Params::default());
            *scalable.window() = Window { cwnd, ssthresh: cwnd, initial: 10.0 };
            scalable.on_event(Instant::ZERO, Event::Loss);
            let mut rounds = 0;
            while scalable.window().cwnd < cwnd {
                let packets = scalable.window().cwnd as u32;
                acknowledge(&mut scalable, packets, Instant::ZERO, RTT);
                rounds += 1;
            }
            assert_eq!(rounds, 14, "the first whole one after 13.42, at {cwnd}");
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |params: Params| params.validate().expect_err("out of range").0;
        assert!(refused(Params { increase: 0.0, ..Params::default() }).starts_with("increase: must be"));
        assert!(refused(Params { decrease: 1.0, ..Params::default() }).starts_with("decrease: must be"));
        assert!(refused(Params { low_window: -1.0, ..Params::default() }).starts_with("low_window: must be"));
    }
}
