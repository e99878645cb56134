//! TCP Prague: DCTCP for the Internet, whose packets ask for the low-latency queue of L4S.
//!
//! # Law
//! - `[prague:alpha]` `α ← (1 − g)·α + g·M`, M the share of marked packets, once per virtual RTT, from the first mark on
//! - `[prague:cwnd]` `cwnd ← cwnd·(1 − α/2)` after a mark, at most once per virtual RTT
//! - `[prague:virtual]` `RTT_virt = max(RTT, 25 ms)`: flows of short paths behave as if their RTT were this
//! - `[prague:increase]` `cwnd ← cwnd + (RTT/RTT_virt)²/cwnd` for each packet that arrives without a mark, also during a
//!   reduction: 1/RTT_virt packets per RTT_virt, as a flow of that RTT has
//! - `[prague:classic]` with `classic_fallback = "on"`, a score c counts evidence of marks as RFC 3168 says, whenever α is
//!   measured: `c ← c + ½·lg(v/750 µs) + ½·max(0, lg(d/2 ms))`, in [0, 17], with v the RTT's mean deviation and d the
//!   mean queueing delay. While c > 8, a reduction assumes `max(α, ⅝·min(c − 8, 1))` (`classic_ecn`)
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
//! - The fall-back to classic ECN is Linux's, off by default as there. Linux rounds logarithms down to integers and carries
//!   the rest to the next round; ours are real. We know the report (Briscoe and Ahmed, 2019) only by its abstract. Off,
//!   Prague takes less notice of the marks of RFC 3168 than its neighbors, and a run [warns](../results.md#warnings) of it.
//!
//! # Validation
//! Against CUBIC in a `dualpi2` queue, over RTTs and rates, and in classic queues with and without the fall-back:
//! [queues](../../validation/queues.md).
//!
//! # References
//! De Schepper, Tilmans, Briscoe, Goel, "Prague Congestion Control", draft-briscoe-iccrg-prague-congestion-control. RFC
//! 9330 to 9332 (L4S), 2023. Briscoe, Ahmed, "TCP Prague Fall-back on Detection of a Classic ECN AQM", arXiv 1911.00710.
//! L4STeam/linux, net/ipv4/tcp_prague.c, for the readings and the fall-back.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, Ecn, Event, Host, LawSignal, Probe, Reduction};
use crate::protocols::tcp::classic_ecn::{ClassicEcn, Fallback};
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
        /// Whether Prague detects a queue that marks as RFC 3168 says, and then answers a mark as a classic TCP does.
        classic_fallback: Fallback = Fallback::Off, "Linux, prague_ecn_fallback";
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
    /// Detector of a classic queue, if the fall-back is on.
    classic: Option<Box<ClassicEcn>>,
}

impl Prague {
    /// `[prague:virtual]` Returns the virtual RTT: the path's own until the flow is old enough.
    fn virtual_rtt(&self) -> Duration {
        let grown = self.rounds >= self.params.rtt_transition;
        if grown { self.smoothed_rtt.max(self.params.virtual_rtt) } else { self.smoothed_rtt }
    }

    /// `[prague:cwnd, classic]` Returns the window after a mark, which has to wait if the last reduction is less than a
    /// virtual RTT ago. The host reports one mark per RTT and so sees to paths that are not shorter than the virtual RTT.
    fn after_mark(&mut self, cwnd: f64, now: Instant) -> f64 {
        let virtual_rtt = self.virtual_rtt();
        let waits = virtual_rtt > self.smoothed_rtt;
        self.is_due = waits && self.reduced_at.is_some_and(|at| now.since(at) < virtual_rtt);
        if self.is_due {
            return cwnd;
        }
        self.reduced_at = Some(now);
        reduced(cwnd, self.classic.as_ref().map_or(self.alpha, |classic| classic.alpha(self.alpha)))
    }
}

impl TcpLaw for Prague {
    const NAME: &'static str = "prague";
    const SUMMARY: &'static str = "Prague: DCTCP for L4S queues, as if every RTT were at least 25 ms";
    const HOST: Host = Host { reduction: Reduction::Law, ecn: Ecn::Counted, l4s: true, ..Host::TCP_TODAY };
    const PACED: bool = true;
    const GROWS_WHILE_REDUCED: bool = true;
    const SIGNALS: &'static [LawSignal] = &[
        SIGNALS[0],
        SIGNALS[1],
        LawSignal { name: "alpha", unit: "1", doc: "estimated share of marked packets" },
        LawSignal {
            name: "classic_ecn",
            unit: "1",
            doc: "evidence of classic marks, 0 to 17; from 9 on Prague falls back; none with the fall-back off",
        },
    ];
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
            classic: (params.classic_fallback == Fallback::On).then(Box::default),
        }
    }

    /// `[prague:alpha]` Measures a round.
    fn measure(&mut self, window: &Window, ack: &Ack<()>, acked: f64) {
        self.smoothed_rtt = ack.smoothed_rtt;
        self.acked += acked;
        self.marked += ack.marked / self.packet;
        self.saw_mark |= ack.marked > Volume::ZERO;
        if let (Some(classic), Some(rtt)) = (&mut self.classic, ack.rtt) {
            classic.on_rtt(rtt);
        }
        if !self.round.ends(acked, ack.in_flight / self.packet) {
            return;
        }
        if window.cwnd >= window.ssthresh {
            self.rounds += 1;
        }
        let due = ack.now.since(self.alpha_updated) >= self.virtual_rtt() || self.rounds < self.params.rtt_transition;
        if due && self.acked > 0.0 {
            if self.saw_mark {
                if let Some(classic) = &mut self.classic {
                    classic.on_round(ack.base_rtt);
                }
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
        if let Some(classic) = &mut self.classic {
            classic.on_mark(window.ssthresh);
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
        if let Some(classic) = &self.classic {
            probe.record("classic_ecn", classic.score());
        }
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

    /// Returns Prague in congestion avoidance with the fall-back on, this score, and α = 0.1.
    fn falling_back(score: f64) -> Tcp<Prague> {
        let mut prague = tcp::<Prague>(&Params { classic_fallback: Fallback::On, ..Params::default() });
        *prague.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        let law = prague.law();
        (law.rounds, law.alpha, law.classic) = (500, 0.1, Some(Box::new(ClassicEcn::with_score(score))));
        prague
    }

    /// `[prague:classic]` A mark takes 0.625/2 of the window behind a classic queue, and α/2 behind an L4S queue.
    #[test]
    fn a_mark_of_a_classic_queue_counts_as_a_classic_one() {
        let after_mark = |mut prague: Tcp<Prague>| {
            prague.on_event(Instant::from_secs(1.0), Event::Marked);
            prague.window().cwnd
        };
        assert_eq!([after_mark(falling_back(7.0)), after_mark(falling_back(17.0))], [95.0, 68.75]);
        let mut off = grown();
        off.law().alpha = 0.1;
        assert_eq!((after_mark(off.clone()), off.law().classic.is_none()), (95.0, true));
    }

    /// `[prague:classic]` From the first mark on the score moves once per round of 100 packets. RTTs of 30 and 90 ms in turn
    /// are a classic queue, which raises the score once the deviation is measured.
    #[test]
    fn the_score_moves_from_the_first_mark_on() {
        let scores = |marks: bool| {
            let mut prague = falling_back(1.0);
            prague.on_event(Instant::from_secs(1.0), Event::Marked);
            let score_after = |i: u64| {
                let rtt = Duration::from_millis(if i.is_multiple_of(2) { 30 } else { 90 });
                let now = Instant::from_secs(1.0) + Duration::from_millis(i);
                let marked = if marks && i == 0 { PACKET } else { Volume::ZERO };
                let ack = Ack { acked: PACKET, marked, in_flight: 99.0 * PACKET, ..Ack::new(now, (), rtt) };
                prague.on_ack(&Ack { base_rtt: Duration::from_millis(30), ..ack });
                prague.law().classic.as_ref().unwrap().score()
            };
            let mut scores: Vec<f64> = (0..400).map(score_after).collect();
            scores.dedup();
            scores
        };
        assert_eq!(scores(false), [1.0]);
        let found = scores(true);
        assert!(found.len() == 4 && found[0] == 0.0 && found.is_sorted() && found[3] > 9.0, "{found:?}");
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
