//! DCTCP: a window that shrinks in proportion to the fraction of marked packets.
//!
//! # Law
//! - `[rfc8257:M]` `M = BytesMarked / BytesAcked` over a window of data
//! - `[rfc8257:alpha]` `α ← (1 − g)·α + g·M`, once a window of data (`[dctcp-2010:eq1]`)
//! - `[rfc8257:cwnd]` `cwnd ← cwnd·(1 − α/2)` after a mark, once a window of data (`[dctcp-2010:eq2]`)
//! - growth, losses and time-outs are Reno's: `[rfc5681:eq3]`, `[rfc5681:eq4]` in [`reno`]
//!
//! # Symbols
//! | RFC 8257 | here | unit |
//! |---|---|---|
//! | DCTCP.BytesAcked, DCTCP.BytesMarked | `acked`, `marked` | packets |
//! | DCTCP.WindowEnd | `round` | packets |
//! | DCTCP.Alpha | `alpha` | – |
//! | g | `gain` | – |
//!
//! # Header
//! None: ECN's two bits in the IP header and two in TCP's.
//!
//! # Router
//! None of its own: the queue marks what arrives while more than K packets wait (a link's `mark_at`).
//!
//! # Source
//! [`Dctcp`]: the host's `Ecn::Accurate`, on unless the scenario turns it off, and no rate reduction by the host.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - The window shrinks at a window's first mark, by the α of the window before, as in Linux. RFC 8257 §3.3 prints the
//!   reduction after the estimate, in one list, without saying at which of the two times.
//! - The window holds at once (`Reduction::Law`). Spread over an RTT as in RFC 6937, the reduction would leave the
//!   queue above K for half of one. The packets sent meanwhile would be marked too, and the window would shrink twice
//!   for one overshoot.
//! - From a mark until all that was sent before the answer has arrived the window does not grow (RFC 3168 §6.1.2).
//! - Whether a mark fell on new data or on a retransmission makes no difference.
//!
//! # Validation
//! With N flows the queue stays below K + N packets, swings by ½·√(2N·(C·RTT + K)) (`[dctcp-2010:eq8]`), and the link is
//! busy if K > C·RTT/7: `tcp_delay_based` of the simulator.
//!
//! # References
//! RFC 8257, "Data Center TCP (DCTCP): TCP Congestion Control for Data Centers", 2017. `dctcp-2010`: Alizadeh, Greenberg,
//! Maltz, Padhye, Patel, Prabhakar, Sengupta, Sridharan, "Data Center TCP (DCTCP)", SIGCOMM 2010.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Ecn, Event, Host, LawSignal, Probe, Reduction};
use crate::protocols::tcp::round::Round;
use crate::protocols::tcp::{SIGNALS, TcpLaw, Window, reno};
use crate::units::{Instant, Volume};

crate::params! {
    /// Parameters of DCTCP.
    pub struct Params {
        /// g: weight of a window's fraction of marks in the estimate.
        gain: f64 = 1.0 / 16.0, "RFC 8257 §4";
        /// Initial α; with 1, the first mark halves the window.
        alpha_initial: f64 = 1.0, "RFC 8257 §3.3";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.gain > 0.0 && self.gain < 1.0, "gain", "a number between 0 and 1")?;
        require((0.0..=1.0).contains(&self.alpha_initial), "alpha_initial", "a number in [0, 1]")
    }
}

/// `[rfc8257:M]` Returns the fraction of the acknowledged packets that was marked.
#[must_use]
pub fn marked_share(marked: f64, acked: f64) -> f64 {
    marked / acked
}

/// `[rfc8257:alpha]` Returns the estimate α after a window of data.
#[must_use]
pub fn alpha(before: f64, share: f64, gain: f64) -> f64 {
    (1.0 - gain) * before + gain * share
}

/// `[rfc8257:cwnd]` Returns the window after a mark.
#[must_use]
pub fn reduced(cwnd: f64, alpha: f64) -> f64 {
    cwnd * (1.0 - alpha / 2.0)
}

/// Law of DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    gain: f64,
    alpha: f64,
    packet: Volume,
    round: Round,
    acked: f64,
    marked: f64,
}

impl TcpLaw for Dctcp {
    const NAME: &'static str = "dctcp";
    const SUMMARY: &'static str = "DCTCP: comes down in proportion to the share of marked packets (RFC 8257)";
    const HOST: Host = Host { reduction: Reduction::Law, ecn: Ecn::Accurate, ..Host::TCP_TODAY };
    const SIGNALS: &'static [LawSignal] =
        &[SIGNALS[0], SIGNALS[1], LawSignal { name: "alpha", unit: "1", doc: "estimated share of marked packets" }];
    type Params = Params;

    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            gain: params.gain,
            alpha: params.alpha_initial,
            packet: connection.packet,
            round: Round::default(),
            acked: 0.0,
            marked: 0.0,
        }
    }

    fn measure(&mut self, _: &Window, ack: &Ack<()>, acked: f64) {
        self.acked += acked;
        self.marked += ack.marked / self.packet;
        if self.round.ends(acked, ack.in_flight / self.packet) && self.acked > 0.0 {
            self.alpha = alpha(self.alpha, marked_share(self.marked, self.acked), self.gain);
            self.acked = 0.0;
            self.marked = 0.0;
        }
    }

    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        window.cwnd = reno::increased(window.cwnd, 1.0, acked);
    }

    fn reduced(&mut self, window: &Window, _: Instant, event: Event) -> f64 {
        if event == Event::Marked { reduced(window.cwnd, self.alpha) } else { reno::threshold(window.cwnd, 0.5) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::testing::tcp;
    use crate::units::Duration;

    /// `[rfc8257:M, alpha, cwnd]` With a quarter of the packets marked, α falls from 1 to 0.953125. A mark reduces the
    /// window by the fraction α/2.
    #[test]
    fn rfc8257_by_hand() {
        assert_eq!(marked_share(3.0, 12.0), 0.25);
        assert_eq!(alpha(1.0, 0.25, 1.0 / 16.0), 0.953125); // 15/16 + 1/64
        assert_eq!(reduced(100.0, 1.0), 50.0);
        assert_eq!(reduced(100.0, 0.1), 95.0);
    }

    #[test]
    fn alpha_moves_once_a_window_of_data() {
        let mut dctcp = tcp::<Dctcp>(&Params::default());
        let packet = Volume::from_bytes(1500.0);
        let mut receive = |marked: bool| {
            let marked = if marked { packet } else { Volume::ZERO };
            let ack = Ack {
                acked: packet,
                marked,
                in_flight: 7.0 * packet,
                ..Ack::new(Instant::ZERO, (), Duration::from_millis(1))
            };
            dctcp.on_ack(&ack);
            dctcp.law().alpha
        };
        // The first acknowledgement ends a window of its own; then eight packets a window, two of them marked.
        let first = receive(false);
        assert_eq!(first, 15.0 / 16.0);
        let seen: Vec<f64> = (0..8).map(|i| receive(i < 2)).collect();
        assert!(seen[..7].iter().all(|&a| a == first), "{seen:?}");
        assert_eq!(seen[7], first * 15.0 / 16.0 + 0.25 / 16.0);
    }

    #[test]
    fn a_mark_takes_half_of_alpha_and_a_loss_half() {
        let mut dctcp = tcp::<Dctcp>(&Params::default());
        dctcp.law().alpha = 0.2;
        *dctcp.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        dctcp.on_event(Instant::ZERO, Event::Marked);
        assert_eq!((dctcp.window().cwnd, dctcp.window().ssthresh), (90.0, 90.0));
        dctcp.on_event(Instant::ZERO, Event::Loss);
        assert_eq!(dctcp.window().cwnd, 45.0);
    }
}
