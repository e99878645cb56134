//! TCP Reno without selective acknowledgements: slow start, congestion avoidance, fast retransmit and fast recovery (RFC 5681).
//!
//! # Law
//! - `[rfc5681:eq3]` `cwnd ← cwnd + 1/cwnd` for each packet acknowledged: one packet per RTT
//! - `[rfc5681:eq4]` `ssthresh ← max(cwnd/2, 2)` after a loss
//!
//! # Symbols
//! | RFC 5681 | here | unit |
//! |---|---|---|
//! | cwnd, ssthresh | [`Window`] | packets |
//! | SMSS | a packet | bytes |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Reno`]. Without selective acknowledgements: three duplicates mean a loss, and the next new acknowledgement ends
//! the recovery whether or not more packets of that window were lost. Every further loss then costs a halving of
//! its own, or a time-out: the case NewReno and SACK repair. Hosts of today acknowledge selectively: compare with `sack`,
//! not with `reno`.
//!
//! # Parameters
//! [`Params`]: additive increase and multiplicative decrease can be set, for AIMD(a, b).
//!
//! # Readings and deviations
//! Equation 4 takes the flight size. A window that is not used does not grow here, so cwnd stands for it. Bytes are counted,
//! not acknowledgements (RFC 5681 §3.1 allows both), so that delayed acknowledgements do not slow the growth.
//!
//! # Validation
//! Mathis's `√(3/2)/√p` under periodic loss (`waterfill response`); tests below by hand.
//!
//! # References
//! RFC 5681, "TCP Congestion Control", 2009. Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion
//! Avoidance Algorithm", CCR 27(3), 1997.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Event, Host, Reduction, Retransmission};
use crate::protocols::tcp::{TcpLaw, Window};
use crate::units::Instant;

crate::params! {
    /// Parameters of additive increase and multiplicative decrease.
    pub struct Params {
        /// Growth of the window per RTT, in packets.
        increase: f64 = 1.0, "RFC 5681 eq. 3";
        /// Fraction of the window that remains after a loss.
        decrease: f64 = 0.5, "RFC 5681 eq. 4";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.increase > 0.0 && self.increase <= 1e6, "increase", "a number above 0, up to 1e6")?;
        require(self.decrease > 0.0 && self.decrease < 1.0, "decrease", "a number between 0 and 1")
    }
}

/// `[rfc5681:eq3]` Returns the window after another `acked` packets.
#[must_use]
pub fn increased(cwnd: f64, increase: f64, acked: f64) -> f64 {
    cwnd + increase * acked / cwnd
}

/// `[rfc5681:eq4]` Returns the threshold after a loss.
#[must_use]
pub fn threshold(cwnd: f64, decrease: f64) -> f64 {
    decrease * cwnd
}

/// Additive increase and multiplicative decrease of Reno, NewReno and SACK.
#[derive(Clone, Debug)]
pub struct Aimd {
    params: Params,
}

impl Aimd {
    /// Creates the rule with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self { params: params.clone() }
    }
    /// Grows the window in congestion avoidance.
    pub fn avoid(&self, window: &mut Window, acked: f64) {
        window.cwnd = increased(window.cwnd, self.params.increase, acked);
    }
    /// Returns the threshold after a loss.
    #[must_use]
    pub fn reduced(&self, window: &Window) -> f64 {
        threshold(window.cwnd, self.params.decrease)
    }
}

/// Law of TCP Reno.
#[derive(Clone, Debug)]
pub struct Reno(Aimd);

impl TcpLaw for Reno {
    const NAME: &'static str = "reno";
    const SUMMARY: &'static str = "Reno without selective acknowledgements (RFC 5681); hosts of today have them: sack";
    const HOST: Host = Host { retransmission: Retransmission::Reno, reduction: Reduction::Law, ..Host::TCP };
    type Params = Params;

    fn new(params: &Params, _: &Connection) -> Self {
        Self(Aimd::new(params))
    }
    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        self.0.avoid(window, acked);
    }
    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        self.0.reduced(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::newreno::NewReno;
    use crate::protocols::tcp::sack::Sack;
    use crate::protocols::tcp::testing::{acknowledge, tcp};
    use crate::units::Duration;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn slow_start_doubles_and_stops_at_the_threshold() {
        let mut reno = tcp::<Reno>(&Params::default());
        acknowledge(&mut reno, 10, Instant::ZERO, RTT);
        assert_eq!(reno.window().cwnd, 20.0);
        reno.window().ssthresh = 25.0;
        acknowledge(&mut reno, 6, Instant::ZERO, RTT);
        assert_eq!(reno.window().cwnd, 25.0 + 1.0 / 25.0);
    }

    /// `[rfc5681:eq3]` An RTT of congestion avoidance adds one packet to the window.
    #[test]
    fn a_round_trip_of_avoidance_adds_a_packet() {
        let mut reno = tcp::<Reno>(&Params::default());
        *reno.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        acknowledge(&mut reno, 100, Instant::ZERO, RTT);
        // 100 steps of 1/w from 100: √(100² + 2·100) − 100 = 0.995
        assert!((reno.window().cwnd - 100.995).abs() < 1e-3, "{:?}", reno.window());
    }

    /// `[rfc5681:eq4]` A loss halves the window, and a timeout reduces it to one packet.
    #[test]
    fn losses_halve_and_time_outs_start_over() {
        let mut reno = tcp::<Reno>(&Params::default());
        *reno.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        reno.on_event(Instant::ZERO, Event::Loss);
        assert_eq!((reno.window().cwnd, reno.window().ssthresh), (50.0, 50.0));
        reno.on_event(Instant::ZERO, Event::Timeout);
        assert_eq!((reno.window().cwnd, reno.window().ssthresh), (1.0, 25.0));
        reno.on_event(Instant::ZERO, Event::Timeout);
        assert_eq!((reno.window().cwnd, reno.window().ssthresh), (1.0, 25.0), "the first of a row sets it");
        reno.on_event(Instant::ZERO, Event::Loss);
        assert_eq!((reno.window().cwnd, reno.window().ssthresh), (2.0, 2.0));
    }

    /// `[rfc5681:eq4]` NewReno and SACK have Reno's reaction to a loss.
    #[test]
    fn newreno_and_sack_halve_as_reno() {
        fn after_a_loss<L: TcpLaw<Params = Params>>() -> f64 {
            let mut tcp = tcp::<L>(&Params::default());
            tcp.window().cwnd = 100.0;
            tcp.on_event(Instant::ZERO, Event::Loss);
            tcp.window().ssthresh
        }
        assert_eq!([after_a_loss::<Reno>(), after_a_loss::<NewReno>(), after_a_loss::<Sack>()], [50.0; 3]);
    }

    /// `[rfc4015:§3.2]` After a spurious loss or timeout the window and the threshold return.
    #[test]
    fn rfc4015_a_spurious_loss_or_timeout_is_undone() {
        for event in [Event::Loss, Event::Timeout] {
            let mut reno = tcp::<Reno>(&Params::default());
            let before = Window { cwnd: 100.0, ssthresh: 80.0, initial: 10.0 };
            *reno.window() = before;
            reno.on_event(Instant::ZERO, event);
            assert!(reno.window().cwnd < 100.0);
            reno.on_event(Instant::ZERO, Event::Spurious);
            assert_eq!(*reno.window(), before);
            reno.on_event(Instant::ZERO, Event::Spurious);
            assert_eq!(*reno.window(), before, "nothing more to undo");
        }
    }

    #[test]
    fn a_window_in_recovery_or_not_used_stands_still() {
        let mut reno = tcp::<Reno>(&Params::default());
        let ack = Ack { acked: crate::units::Volume::from_bytes(1500.0), ..Ack::new(Instant::ZERO, (), RTT) };
        reno.on_ack(&Ack { recovering: true, ..ack });
        reno.on_ack(&Ack { window_limited: false, ..ack });
        assert_eq!(reno.window().cwnd, 10.0);
    }
}
