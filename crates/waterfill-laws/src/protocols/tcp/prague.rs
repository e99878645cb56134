//! TCP Prague: DCTCP for the Internet, whose packets ask for the low-latency queue of L4S.
//!
//! # Law
//! - `[prague:alpha]` `α ← (1 − g)·α + g·M`, M the share of marked packets, once per virtual RTT, from the first mark on
//! - `[prague:cwnd]` `cwnd ← cwnd·(1 − α/2)` after a mark, at most once per virtual RTT
//! - `[prague:virtual]` `RTT_virt = max(RTT, 25 ms)`: flows of short paths behave as if their RTT were this
//! - `[prague:increase]` `cwnd ← cwnd + (RTT/RTT_virt)²/cwnd` for each packet that arrives without a mark, also during a
//!   reduction: 1/RTT_virt packets per RTT_virt, as a flow of that RTT has
//! - losses and time-outs are Reno's: `[rfc5681:eq4]` in [`reno`]
//!
//! # Symbols
//! | draft | here | unit |
//! |---|---|---|
//! | alpha | `alpha` | – |
//! | g | `gain` | – |
//! | RTT_virt | `virtual_rtt` | s |
//! | D | `rtt_transition` | RTTs |
//!
//! # Header
//! None: ECT(1) in the IP header, AccECN's counters in TCP's.
//!
//! # Router
//! None of its own: a `dualpi2` queue, or one that marks early.
//!
//! # Source
//! [`Prague`]: the host's `Ecn::Counted` with ECT(1), on unless the scenario turns it off, no rate reduction by the host, and
//! packets paced at cwnd/RTT, or twice that in slow start.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - The window shrinks at the first mark of a virtual RTT, by the α before, as in Linux.
//! - Independence of the RTT begins `rtt_transition` RTTs after slow start, as in Linux: short flows start fast.
//! - α stays at its initial value until the first mark, as in Linux: the first mark halves the window.
//! - The fall-back to classic ECN, when a queue marks as RFC 3168 does, is not built. We have read neither the report that
//!   defines it (Briscoe and Ahmed, 2019) nor Linux's version. Prague then takes less notice of a mark than its
//!   neighbours. A run [warns](../results.md#warnings) of it.
//!
//! # Validation
//! Against CUBIC in a `dualpi2` queue, over RTTs and rates: `l4s` of the simulator, and
//! [queues](../../validation/queues.md).
//!
//! # References
//! De Schepper, Tilmans, Briscoe, Goel, "Prague Congestion Control", draft-briscoe-iccrg-prague-congestion-control. RFC
//! 9330 to 9332 (L4S), 2023. Linux's tcp_prague, for the readings.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Ecn, Event, Host, LawSignal, Probe, Reduction};
use crate::protocols::tcp::dctcp::{alpha, marked_share, reduced};
use crate::protocols::tcp::round::Round;
use crate::protocols::tcp::{SIGNALS, SSTHRESH_MIN, TcpLaw, Window, reno};
use crate::units::{Duration, Instant, Rate, Volume};

crate::params! {
    /// Parameters of Prague.
    pub struct Params {
        /// g: weight of a virtual RTT's share of marks in the estimate.
        gain: f64 = 1.0 / 16.0, "draft §2.3.2; Linux";
        /// Initial α; with 1, the first mark halves the window.
        alpha_initial: f64 = 1.0, "Linux";
        /// Smallest virtual RTT.
        virtual_rtt: Duration = Duration::from_millis(25), "draft §2.4.4; Linux";
        /// Number of RTTs after slow start from which the virtual RTT counts.
        rtt_transition: u32 = 500, "draft §2.4.4; Linux";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.gain > 0.0 && self.gain < 1.0, "gain", "a number between 0 and 1")?;
        require((0.0..=1.0).contains(&self.alpha_initial), "alpha_initial", "a number in [0, 1]")?;
        require(self.virtual_rtt <= Duration::from_millis(1000), "virtual_rtt", "a time up to 1 s")
    }
}

/// `[prague:increase]` Returns the factor of the window's increase: the square of the RTT's ratio to the virtual RTT.
#[must_use]
pub fn increase(rtt: Duration, virtual_rtt: Duration) -> f64 {
    if rtt >= virtual_rtt { 1.0 } else { (rtt / virtual_rtt) * (rtt / virtual_rtt) }
}

/// Law of Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    params: Params,
    alpha: f64,
    packet: Volume,
    round: Round,
    acked: f64,
    marked: f64,
    /// True once a mark has arrived.
    saw_mark: bool,
    /// Number of RTTs since slow start.
    rounds: u32,
    smoothed_rtt: Duration,
    alpha_updated: Instant,
    /// Time of the last reduction after a mark.
    reduced_at: Option<Instant>,
    /// True if a mark waits for the end of the virtual RTT of the last reduction.
    is_due: bool,
}

impl Prague {
    /// `[prague:virtual]` Returns the virtual RTT: the path's own until the flow is old enough.
    fn virtual_rtt(&self) -> Duration {
        let grown = self.rounds >= self.params.rtt_transition;
        if grown { self.smoothed_rtt.max(self.params.virtual_rtt) } else { self.smoothed_rtt }
    }

    /// `[prague:cwnd]` Returns the window after a mark, which has to wait if the last reduction is less than a virtual RTT
    /// ago. The host reports one mark per RTT and so sees to paths that are not shorter than the virtual RTT.
    fn after_mark(&mut self, cwnd: f64, now: Instant) -> f64 {
        let virtual_rtt = self.virtual_rtt();
        let waits = virtual_rtt > self.smoothed_rtt;
        self.is_due = waits && self.reduced_at.is_some_and(|at| now.since(at) < virtual_rtt);
        if self.is_due {
            return cwnd;
        }
        self.reduced_at = Some(now);
        reduced(cwnd, self.alpha)
    }
}

impl TcpLaw for Prague {
    const NAME: &'static str = "prague";
    const SUMMARY: &'static str = "Prague: DCTCP for L4S queues, as if every RTT were at least 25 ms";
    const HOST: Host = Host { reduction: Reduction::Law, ecn: Ecn::Counted, l4s: true, ..Host::TCP_TODAY };
    const PACED: bool = true;
    const GROWS_WHILE_REDUCED: bool = true;
    const SIGNALS: &'static [LawSignal] =
        &[SIGNALS[0], SIGNALS[1], LawSignal { name: "alpha", unit: "1", doc: "estimated share of marked packets" }];
    type Params = Params;

    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            params: params.clone(),
            alpha: params.alpha_initial,
            packet: connection.packet,
            round: Round::default(),
            acked: 0.0,
            marked: 0.0,
            saw_mark: false,
            rounds: 0,
            smoothed_rtt: Duration::ZERO,
            alpha_updated: Instant::ZERO,
            reduced_at: None,
            is_due: false,
        }
    }

    /// `[prague:alpha]` Measures a round.
    fn measure(&mut self, window: &Window, ack: &Ack<()>, acked: f64) {
        self.smoothed_rtt = ack.smoothed_rtt;
        self.acked += acked;
        self.marked += ack.marked / self.packet;
        self.saw_mark |= ack.marked > Volume::ZERO;
        if !self.round.ends(acked, ack.in_flight / self.packet) {
            return;
        }
        if window.cwnd >= window.ssthresh {
            self.rounds += 1;
        }
        let due = ack.now.since(self.alpha_updated) >= self.virtual_rtt() || self.rounds < self.params.rtt_transition;
        if due && self.acked > 0.0 {
            if self.saw_mark {
                self.alpha = alpha(self.alpha, marked_share(self.marked, self.acked), self.params.gain);
            }
            self.alpha_updated = ack.now;
            self.acked = 0.0;
            self.marked = 0.0;
        }
    }

    fn avoid(&mut self, window: &mut Window, ack: &Ack<()>, acked: f64) {
        if self.is_due {
            window.cwnd = self.after_mark(window.cwnd, ack.now).max(SSTHRESH_MIN);
            window.ssthresh = window.cwnd;
        }
        let unmarked = (acked - ack.marked / self.packet).max(0.0);
        window.cwnd = reno::increased(window.cwnd, increase(self.smoothed_rtt, self.virtual_rtt()), unmarked);
    }

    fn reduced(&mut self, window: &Window, now: Instant, event: Event) -> f64 {
        if event != Event::Marked {
            self.is_due = false;
            return reno::threshold(window.cwnd, 0.5);
        }
        self.after_mark(window.cwnd, now)
    }

    fn pacing(&self, window: &Window) -> Option<Rate> {
        // Slow start sends two packets for each that arrives.
        let gain = if window.cwnd < window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        (!self.smoothed_rtt.is_zero()).then(|| gain * window.cwnd * self.packet / self.smoothed_rtt)
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::Tcp;
    use crate::protocols::tcp::testing::tcp;

    const PACKET: Volume = Volume::from_bytes(1500.0);

    /// Returns Prague in congestion avoidance with a window of 100 packets, after its transition.
    fn grown() -> Tcp<Prague> {
        let mut prague = tcp::<Prague>(&Params::default());
        *prague.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        prague.law().rounds = 500;
        prague
    }

    fn acknowledge(prague: &mut Tcp<Prague>, ms: u64, rtt_ms: u64, marked: bool, recovering: bool) {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let marked = if marked { PACKET } else { Volume::ZERO };
        let rtt = Duration::from_millis(rtt_ms);
        prague.on_ack(&Ack { acked: PACKET, marked, recovering, in_flight: 99.0 * PACKET, ..Ack::new(now, (), rtt) });
    }

    /// `[prague:increase]`
    #[test]
    fn prague_increase_by_hand() {
        let ms = Duration::from_millis;
        assert_eq!(increase(ms(5), ms(25)), 0.2 * 0.2);
        assert_eq!(increase(ms(25), ms(25)), 1.0);
        assert_eq!(increase(ms(80), ms(80)), 1.0);
    }

    #[test]
    fn unmarked_packets_grow_the_window_also_during_a_reduction() {
        let mut prague = grown();
        acknowledge(&mut prague, 1000, 50, false, true);
        assert_eq!(prague.window().cwnd, 100.0 + 1.0 / 100.0);
        acknowledge(&mut prague, 1000, 50, true, true);
        assert_eq!(prague.window().cwnd, 100.0 + 1.0 / 100.0, "a marked one does not");
        prague.on_event(Instant::from_secs(1.0), Event::Loss);
        assert_eq!(prague.window().cwnd, 50.005);
        acknowledge(&mut prague, 1001, 50, false, true);
        assert_eq!(prague.window().cwnd, 50.005, "nor does any during a repair");
        prague.on_event(Instant::from_secs(1.0), Event::Recovered);
        acknowledge(&mut prague, 1002, 50, false, false);
        assert!(prague.window().cwnd > 50.005);
    }

    /// `[prague:virtual, cwnd]` At an RTT of 5 ms a grown flow grows by (5/25)² and reduces its window once in 25 ms.
    #[test]
    fn a_grown_flow_behaves_as_at_the_virtual_rtt() {
        let mut prague = grown();
        acknowledge(&mut prague, 1000, 5, false, false);
        assert_eq!(prague.window().cwnd, 100.0 + 0.2 * 0.2 / 100.0);
        prague.law().alpha = 0.2;
        prague.window().cwnd = 100.0;
        let mut mark = |ms| {
            prague.on_event(Instant::ZERO + Duration::from_millis(ms), Event::Marked);
            prague.window().cwnd
        };
        assert_eq!([mark(1000), mark(1005), mark(1024)], [90.0; 3]);
        acknowledge(&mut prague, 1024, 5, false, true);
        assert!(prague.window().cwnd > 90.0, "the mark waits");
        acknowledge(&mut prague, 1025, 5, false, true);
        assert!((80.9..81.1).contains(&prague.window().cwnd), "until the virtual RTT is over");
        prague.law().rounds = 0;
        acknowledge(&mut prague, 1026, 5, false, false);
        let before = prague.window().cwnd;
        prague.on_event(Instant::from_secs(1.03), Event::Marked);
        assert!(prague.window().cwnd < 0.95 * before, "a young flow reduces each RTT");
    }

    /// `[prague:alpha]` The estimate waits for the first mark, then moves once per virtual RTT.
    #[test]
    fn alpha_moves_once_a_virtual_rtt_from_the_first_mark_on() {
        let mut prague = grown();
        (0..300).for_each(|i| acknowledge(&mut prague, 1000 + i, 5, false, false));
        assert_eq!(prague.law().alpha, 1.0, "no mark yet");
        acknowledge(&mut prague, 1300, 5, true, false);
        (0..300).for_each(|i| acknowledge(&mut prague, 1301 + i / 100, 5, false, false));
        let moved = prague.law().alpha;
        assert!((0.93..1.0).contains(&moved), "three rounds within a virtual RTT move it once: {moved}");
    }
}
