//! Validation of a congestion window that the application does not use.
//!
//! # Law
//! - `[rfc5681:§4.1]` after a pause longer than the timeout: cwnd ← min(cwnd, IW)
//! - `[rfc2861:idle]` for each timeout that a pause lasts: ssthresh ← max(ssthresh, 3/4 cwnd), cwnd ← max(cwnd/2, min(cwnd, IW))
//! - `[rfc7661:§4.2]` pipeACK: the most that arrived within an RTT, over the last max(3 RTT, 1 s)
//! - `[rfc7661:§4.3]` the window is validated while pipeACK is undefined or at least cwnd/2
//! - `[rfc7661:§4.4]` a window that is not validated keeps its size, unless it limits the sender
//! - `[rfc7661:§4.4.1]` after a congestion signal in that phase, cwnd follows from max(pipeACK, LossFlightSize) instead of cwnd;
//!   at the end of the recovery, lost packets are subtracted, and pipeACK is undefined
//! - `[rfc7661:§4.4.3]` for each five minutes in that phase: ssthresh ← max(ssthresh, 3/4 cwnd), cwnd ← max(cwnd/2, IW)
//!
//! # Symbols
//! | RFC 7661 | here | unit |
//! |---|---|---|
//! | pipeACK | [`PipeAck::value`] | packets |
//! | LossFlightSize | `Unvalidated::loss_flight` | packets |
//! | NVP | [`NVP`] | s |
//! | IW | [`Window::initial`] | packets |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! A piece of [`Tcp`](super::Tcp), chosen by a flow's `window_validation`. The host reports pauses as [`Event::Idle`].
//!
//! # Parameters
//! Constants of the RFCs, below.
//!
//! # Readings and deviations
//! - RFC 7661 halves; a law with a reduction of its own applies it to the safe window, so CUBIC keeps 0.7 of it.
//! - RFC 2861 also lowers a window that a busy application does not use. Only its rule for pauses is here, as in Linux's
//!   `tcp_cwnd_restart`.
//! - Lost packets are counted where the host reports each one (`rack` and `quic`); elsewhere none are subtracted.
//! - A sample covers a round, as counted by [`Round`], and one that a pause has stretched beyond two RTTs is not taken.
//! - Bursts after a pause are not limited (RFC 7661 §4.4.2); `pacing = true` spreads them.
//!
//! # Validation
//! Tests below by hand; applications in the simulator (docs/reference/applications.md).
//!
//! # References
//! RFC 5681 §4.1, 2009. RFC 2861, "TCP Congestion Window Validation", 2000 (historic). RFC 7661, "Updating TCP to Support
//! Rate-Limited Traffic", 2015.

use crate::protocol::{Ack, Event};
use crate::protocols::tcp::Window;
use crate::protocols::tcp::round::Round;
use crate::units::{Duration, Instant};

/// Time after which a window that is not validated is reduced (RFC 7661 §4.4.3).
pub const NVP: Duration = Duration::from_millis(300_000);
/// Minimum of the sampling period (RFC 7661 §4.2).
const PERIOD_MIN: Duration = Duration::from_millis(1000);
/// Sampling period in RTTs (RFC 7661 §4.2).
const PERIOD_RTTS: u64 = 3;
/// Number of maxima that are kept of a sampling period (RFC 7661 §4.5.1's example).
const BUCKETS: usize = 5;

/// `[rfc5681:§4.1]` Returns the window after a pause longer than the timeout.
#[must_use]
pub const fn restarted(window: &Window) -> f64 {
    window.cwnd.min(window.initial)
}

/// `[rfc2861:idle]` Returns the window after another timeout of a pause.
#[must_use]
pub fn decayed(window: &Window) -> Window {
    let ssthresh = window.ssthresh.max(0.75 * window.cwnd);
    Window { cwnd: (window.cwnd / 2.0).max(restarted(window)), ssthresh, ..*window }
}

/// `[rfc7661:§4.4.3]` Returns the window after another five minutes in the non-validated phase.
#[must_use]
pub fn expired(window: &Window) -> Window {
    let ssthresh = window.ssthresh.max(0.75 * window.cwnd);
    Window { cwnd: (window.cwnd / 2.0).max(window.initial), ssthresh, ..*window }
}

/// `[rfc7661:§4.3]` Returns true if the flow has used enough of its window.
#[must_use]
pub fn is_validated(pipe_ack: Option<f64>, cwnd: f64) -> bool {
    pipe_ack.is_none_or(|pipe_ack| pipe_ack >= cwnd / 2.0)
}

/// `[rfc7661:§4.2]` pipeACK, in packets.
#[derive(Clone, Debug, Default)]
pub struct PipeAck {
    round: Round,
    /// Start of the sample in progress, and the packets that have arrived since; `None` after all have.
    sample: Option<(Instant, f64)>,
    /// Starts and largest samples of parts of the sampling period, newest last; unused ones are `None`.
    buckets: [Option<(Instant, f64)>; BUCKETS],
}

impl PipeAck {
    fn period(rtt: Duration) -> Duration {
        (rtt * PERIOD_RTTS).max(PERIOD_MIN)
    }

    /// Counts packets that have arrived, of which `in_flight` were still in flight afterwards.
    pub fn count(&mut self, now: Instant, acked: f64, in_flight: f64, rtt: Duration) {
        if self.sample.is_none() {
            self.round = Round::default();
        }
        let ends = self.round.ends(acked, in_flight) && self.sample.is_some();
        let (start, before) = self.sample.unwrap_or((now, 0.0));
        let arrived = before + acked;
        let all_arrived = in_flight <= 0.0;
        self.sample = Some((start, arrived));
        if ends || all_arrived {
            if now.since(start) <= rtt * 2 {
                self.push(now, arrived, rtt);
            }
            self.sample = (!all_arrived).then_some((now, 0.0));
        }
    }

    fn push(&mut self, now: Instant, sample: f64, rtt: Duration) {
        if let Some((start, largest)) = &mut self.buckets[BUCKETS - 1] {
            if now.since(*start) < Self::period(rtt) / BUCKETS as u64 {
                *largest = largest.max(sample);
                return;
            }
        }
        self.buckets.rotate_left(1);
        self.buckets[BUCKETS - 1] = Some((now, sample));
    }

    /// Returns pipeACK; `None` while it is undefined, which it is before the first sample. Zero after a pause of a sampling
    /// period.
    #[must_use]
    pub fn value(&self, now: Instant, rtt: Duration) -> Option<f64> {
        self.buckets[BUCKETS - 1]?;
        let recent = self.buckets.iter().flatten().filter(|(start, _)| now.since(*start) < Self::period(rtt));
        Some(recent.map(|&(_, largest)| largest).fold(0.0, f64::max))
    }
}

/// State of RFC 7661 for one connection.
#[derive(Clone, Debug, Default)]
pub struct Unvalidated {
    pipe_ack: PipeAck,
    /// Time at which the window was last validated, moved on by each reduction since; `None` before the first
    /// acknowledgement.
    validated_at: Option<Instant>,
    smoothed_rtt: Duration,
    in_flight: f64,
    /// LossFlightSize or pipeACK at a congestion signal in the non-validated phase, and the packets lost since.
    loss: Option<(f64, f64)>,
}

impl Unvalidated {
    /// Measures an acknowledgement. Returns true if the window may grow by it.
    pub fn may_grow(&mut self, window: &mut Window, ack: &Ack<()>, acked: f64, in_flight: f64) -> bool {
        (self.smoothed_rtt, self.in_flight) = (ack.smoothed_rtt, in_flight);
        if self.loss.is_some() || ack.recovering {
            return true; // the recovery decides
        }
        self.pipe_ack.count(ack.now, acked, in_flight, ack.smoothed_rtt);
        let pipe_ack = self.pipe_ack.value(ack.now, ack.smoothed_rtt);
        if is_validated(pipe_ack, window.cwnd) {
            self.validated_at = Some(ack.now);
            return true;
        }
        self.expire(window, ack.now);
        ack.window_limited
    }

    /// Reduces the window for each five minutes that have passed since it was validated.
    pub fn expire(&mut self, window: &mut Window, now: Instant) {
        let validated_at = self.validated_at.get_or_insert(now);
        while now.since(*validated_at) >= NVP {
            *window = expired(window);
            *validated_at += NVP;
        }
    }

    /// `[rfc7661:§4.4.1]` Returns the window to reduce at a congestion signal.
    pub fn used(&mut self, window: &Window, now: Instant, event: Event) -> f64 {
        let pipe_ack = self.pipe_ack.value(now, self.smoothed_rtt);
        if is_validated(pipe_ack, window.cwnd) {
            return window.cwnd;
        }
        let safe = pipe_ack.unwrap_or_default().max(self.in_flight).min(window.cwnd);
        if event == Event::Timeout {
            self.reset();
        } else {
            self.loss = Some((safe, 0.0));
        }
        safe
    }

    /// Counts a lost packet.
    pub fn on_lost(&mut self) {
        if let Some((_, lost)) = &mut self.loss {
            *lost += 1.0;
        }
    }

    /// `[rfc7661:§4.4.1]` Returns the share of the reduced window that remains at the end of a recovery, if that began in the
    /// non-validated phase. pipeACK is then undefined.
    pub fn recovered(&mut self) -> Option<f64> {
        let (safe, lost) = self.loss?;
        self.reset();
        Some((safe - lost).max(0.0) / safe.max(1.0))
    }

    fn reset(&mut self) {
        (self.pipe_ack, self.loss) = (PipeAck::default(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Connection, Source as _, Validation};
    use crate::protocols::tcp::Tcp;
    use crate::protocols::tcp::cubic::{self, Cubic};
    use crate::protocols::tcp::reno;
    use crate::protocols::tcp::sack::Sack;
    use crate::testing::connection;
    use crate::units::Volume;

    const RTT: Duration = Duration::from_millis(100);
    const PACKET: Volume = Volume::from_bytes(1500.0);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn sack(validation: Validation, cwnd: f64) -> Tcp<Sack> {
        let mut tcp = Tcp::<Sack>::new(&reno::Params::default(), &Connection { validation, ..connection() });
        *tcp.window() = Window { cwnd, ssthresh: 50.0, initial: 10.0 };
        tcp
    }

    /// Acknowledges a burst of `packets` one by one, after which nothing is in flight.
    fn burst(tcp: &mut Tcp<Sack>, now: Instant, packets: u32, window_limited: bool) {
        for left in (0..packets).rev() {
            let in_flight = f64::from(left) * PACKET;
            tcp.on_ack(&Ack { acked: PACKET, in_flight, window_limited, ..Ack::new(now, (), RTT) });
        }
    }

    /// `[rfc5681:§4.1]` A pause restarts from the initial window, however long it is.
    #[test]
    fn rfc5681_4_1_restart_by_hand() {
        for (cwnd, restarted) in [(80.0, 10.0), (4.0, 4.0)] {
            let mut tcp = sack(Validation::Rfc5681, cwnd);
            for ms in [1000, 2000] {
                tcp.on_event(at(ms), Event::Idle);
            }
            assert_eq!((tcp.window().cwnd, tcp.window().ssthresh), (restarted, 50.0));
        }
    }

    /// `[rfc2861:idle]` 80 packets become 40, 20, 10 and stay there; three quarters of the largest are the threshold.
    #[test]
    fn rfc2861_decay_by_hand() {
        let mut tcp = sack(Validation::Rfc2861, 80.0);
        let windows = [1000, 2000, 3000, 4000].map(|ms| {
            tcp.on_event(at(ms), Event::Idle);
            tcp.window().cwnd
        });
        assert_eq!((windows, tcp.window().ssthresh), ([40.0, 20.0, 10.0, 10.0], 60.0));
        let mut small = sack(Validation::Rfc2861, 4.0);
        small.on_event(at(1000), Event::Idle);
        assert_eq!(small.window().cwnd, 4.0, "below the initial window nothing decays");
    }

    #[test]
    fn without_a_rule_the_window_survives_a_pause_and_grows_only_in_use() {
        let mut tcp = sack(Validation::Off, 80.0);
        tcp.on_event(at(1000), Event::Idle);
        burst(&mut tcp, at(1000), 20, false);
        assert_eq!(tcp.window().cwnd, 80.0);
    }

    /// `[rfc7661:§4.2]` The largest sample counts for a second, or three RTTs if that is longer.
    #[test]
    fn rfc7661_4_2_sampling_period_by_hand() {
        for (rtt_ms, kept_ms) in [(100, 1000), (500, 1500)] {
            let rtt = Duration::from_millis(rtt_ms);
            let mut pipe_ack = PipeAck::default();
            assert_eq!(pipe_ack.value(at(0), rtt), None, "undefined before a sample");
            pipe_ack.count(at(0), 30.0, 0.0, rtt);
            assert_eq!(pipe_ack.value(at(kept_ms - 1), rtt), Some(30.0));
            assert_eq!(pipe_ack.value(at(kept_ms), rtt), Some(0.0));
        }
        let mut pipe_ack = PipeAck::default();
        pipe_ack.count(at(0), 1.0, 5.0, RTT);
        pipe_ack.count(at(300), 6.0, 5.0, RTT);
        assert_eq!(pipe_ack.value(at(300), RTT), None, "a sample over three RTTs measures a pause");
        pipe_ack.count(at(350), 6.0, 5.0, RTT);
        assert_eq!(pipe_ack.value(at(350), RTT), Some(6.0));
    }

    /// `[rfc7661:§4.3, §4.4]` A window of 40 grows while 20 are used, and keeps its size while 19 are.
    #[test]
    fn rfc7661_4_3_half_of_the_window_validates_it() {
        assert!(is_validated(Some(20.0), 40.0) && is_validated(None, 40.0) && !is_validated(Some(19.9), 40.0));
        for (packets, grows) in [(20, true), (19, false)] {
            let mut tcp = sack(Validation::Rfc7661, 40.0);
            burst(&mut tcp, at(1000), packets, false);
            tcp.window().cwnd = 40.0; // it has grown before the first sample
            burst(&mut tcp, at(1100), packets, false);
            assert_eq!(tcp.window().cwnd > 40.0, grows, "{packets}");
            tcp.on_event(at(9000), Event::Idle);
            assert!(tcp.window().cwnd >= 40.0, "a pause keeps it");
        }
        let mut limited = sack(Validation::Rfc7661, 40.0);
        burst(&mut limited, at(1000), 5, false);
        let before = limited.window().cwnd;
        burst(&mut limited, at(1100), 5, true);
        assert!(limited.window().cwnd > before, "a window that limits the sender grows in any phase");
    }

    /// `[rfc7661:§4.4.1]` 12 of 40 packets in use are halved to 6; of the 12, 4 were lost, so 4 remain.
    #[test]
    fn rfc7661_4_4_1_a_loss_counts_what_was_used() {
        let mut tcp = sack(Validation::Rfc7661, 40.0);
        burst(&mut tcp, at(1000), 12, false);
        tcp.window().cwnd = 40.0;
        tcp.on_event(at(1200), Event::Loss);
        assert_eq!((tcp.window().cwnd, tcp.window().ssthresh), (6.0, 6.0));
        for _ in 0..4 {
            tcp.on_lost(at(1200), at(1100));
        }
        tcp.on_event(at(1300), Event::Recovered);
        assert_eq!((tcp.window().cwnd, tcp.window().ssthresh), (4.0, 4.0));
        burst(&mut tcp, at(1400), 2, false);
        assert!(tcp.window().cwnd > 4.0, "pipeACK is undefined again");
        let mut busy = sack(Validation::Rfc7661, 40.0);
        burst(&mut busy, at(1000), 30, true);
        let cwnd = busy.window().cwnd;
        busy.on_event(at(1200), Event::Loss);
        assert_eq!(busy.window().cwnd, cwnd / 2.0, "a validated window is halved");
    }

    #[test]
    fn a_law_reduces_the_safe_window_by_its_own_factor() {
        let validation = Validation::Rfc7661;
        let mut cubic = Tcp::<Cubic>::new(&cubic::Params::default(), &Connection { validation, ..connection() });
        *cubic.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        for left in (0..20).rev() {
            let in_flight = f64::from(left) * PACKET;
            let ack = Ack { acked: PACKET, in_flight, window_limited: false, ..Ack::new(at(1000), (), RTT) };
            cubic.on_ack(&ack);
        }
        cubic.window().cwnd = 100.0;
        cubic.on_event(at(1200), Event::Loss);
        assert_eq!(cubic.window().cwnd, 14.0, "0.7 of 20");
    }

    /// `[rfc7661:§4.4.3]` Each five minutes of it halve the window, to the initial one at least.
    #[test]
    fn rfc7661_4_4_3_five_minutes_by_hand() {
        let mut tcp = sack(Validation::Rfc7661, 80.0);
        burst(&mut tcp, at(1000), 1, false);
        tcp.window().cwnd = 80.0;
        burst(&mut tcp, at(300_000), 1, false);
        assert_eq!(tcp.window().cwnd, 80.0, "299 s");
        tcp.on_event(at(301_000), Event::Idle);
        assert_eq!((tcp.window().cwnd, tcp.window().ssthresh), (40.0, 60.0));
        burst(&mut tcp, at(1_200_000), 1, false);
        assert_eq!(tcp.window().cwnd, 10.0, "two more");
    }
}
