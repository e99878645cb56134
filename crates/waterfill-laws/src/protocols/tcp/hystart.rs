//! HyStart ends the first slow start when the delay grows, before packets are lost.
//!
//! # Law
//! - `[rfc9406:thresh]` RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms))
//! - `[rfc9406:exit]` from slow start to conservative slow start (CSS) when currentRoundMinRTT ≥ lastRoundMinRTT + RttThresh
//! - `[rfc9406:resume]` back when currentRoundMinRTT falls below what it was at the exit
//! - `[rfc9406:growth]` cwnd grows by min(N, 8) packets for N acknowledged, in CSS by a quarter of that
//! - `[rfc9406:end]` after five rounds of CSS: ssthresh ← cwnd
//!
//! # Symbols
//! Those of RFC 9406 §4; a round lasts until the first packet sent after its beginning is acknowledged.
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`HyStart`], a piece for laws that want it: [`HyStart::measure`] sees every acknowledgement, [`HyStart::grow`] is the
//! law's slow start.
//!
//! # Parameters
//! [`Variant`]. The constants are RFC 9406 §4.3's, and Linux's for `classic`.
//!
//! # Readings and deviations
//! - A law knows no sequence numbers; rounds are counted ([`Round`]). That is exact as long as nothing is lost, and a loss
//!   ends HyStart++.
//! - L is 8, the value for packets that are not paced; with pacing RFC 9406 has no limit, but then more than eight packets
//!   in one acknowledgement are as rare.
//! - Only the first slow start (RFC 9406 §4.3). `classic` is what Linux's CUBIC does, in every slow start: it leaves at
//!   once when acknowledgements at most 2 ms apart span half the base RTT. It also leaves when the smallest delay of a
//!   round's first eight samples is an eighth of the base RTT (4 to 16 ms) above it. Linux waits for the whole base RTT
//!   when it paces; a law does not know, and this one takes the half.
//!
//! # Validation
//! Tests below; CUBIC's start in the simulator. There a window that doubles in trains is detected late. The smallest
//! delay of a round is its first packets', which meet a queue only if the window was above the bandwidth-delay product
//! when they left. By the time they are acknowledged it is up to four times that, so that a buffer of one
//! bandwidth-delay product overflows first (2,237 packets lost instead of 2,422 at 100 Mbit/s and 80 ms; with a buffer
//! of four, 899 instead of 6,086; `classic`, which sees the train, loses none).
//!
//! # References
//! RFC 9406, "HyStart++: Modified Slow Start for TCP", 2023. Ha, Rhee, "Taming the elephants: New TCP slow start", Computer
//! Networks 55(9), 2011; Linux, net/ipv4/tcp_cubic.c.

use crate::protocol::Ack;
use crate::protocols::tcp::round::Round;
use crate::protocols::tcp::{Window, slow_start};
use crate::units::{Duration, Instant, Volume};

crate::choice! {
    /// Rule that ends the first slow start before a loss.
    pub enum Variant {
        /// HyStart++ of RFC 9406.
        PlusPlus = "plus-plus",
        /// Hybrid slow start of Linux.
        Classic = "classic",
        /// No rule: only a loss ends slow start.
        Off = "off",
    }
}

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
const L: f64 = 8.0;
/// Minimum window, in packets, for Linux's variant (`hystart_low_window`).
const CLASSIC_LOW_WINDOW: f64 = 16.0;
/// Maximum gap between acknowledgements of one train, in Linux's variant (`hystart_ack_delta_us`).
const CLASSIC_ACK_DELTA: Duration = Duration::from_millis(2);

/// `[rfc9406:thresh]` Returns the increase of the delay over the previous round that indicates a growing queue.
#[must_use]
pub fn rtt_thresh(last_round_min: Duration) -> Duration {
    (last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

/// State of conservative slow start, which grows more slowly until the growth of the delay is confirmed.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Minimum RTT at the start of the conservative phase (cssBaselineMinRtt).
    baseline: Duration,
    /// Number of rounds that have ended in this phase, including its first round.
    rounds: u32,
}

/// Slow start that watches the delay.
#[derive(Clone, Debug)]
pub struct HyStart {
    variant: Variant,
    packet: Volume,
    round: Round,
    last_round_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
    /// Start of the round; `train` is the time of the last acknowledgement in the train (both for `classic`).
    round_start: Instant,
    train: Instant,
    /// True if slow start must end.
    leave: bool,
}

impl HyStart {
    /// Creates the state at the start of a connection.
    #[must_use]
    pub fn new(variant: Variant, packet: Volume) -> Self {
        Self {
            variant,
            packet,
            round: Round::default(),
            last_round_min: None,
            round_min: None,
            samples: 0,
            conservative: None,
            round_start: Instant::ZERO,
            train: Instant::ZERO,
            leave: false,
        }
    }

    /// Returns true in conservative slow start, which grows more slowly and waits for more samples of the delay.
    #[must_use]
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Measures the delay from an acknowledgement of data, before the window grows.
    pub fn measure(&mut self, window: &Window, ack: &Ack<()>, acked_packets: f64) {
        let over = match self.variant {
            Variant::Off => true,
            Variant::PlusPlus => window.ssthresh.is_finite(),
            Variant::Classic => false,
        };
        if over {
            return;
        }
        if self.round.ends(acked_packets, ack.in_flight / self.packet) {
            self.begin_round(ack.now);
        }
        if self.variant == Variant::PlusPlus {
            self.watch(ack);
        } else if window.cwnd < window.ssthresh && window.cwnd >= CLASSIC_LOW_WINDOW {
            self.watch_classic(ack);
        }
    }

    fn begin_round(&mut self, now: Instant) {
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
            self.leave |= conservative.rounds >= CSS_ROUNDS; // [rfc9406:end]
        }
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        (self.round_start, self.train) = (now, now);
    }

    fn watch(&mut self, ack: &Ack<()>) {
        let Some(rtt) = ack.rtt else { return };
        let current = self.round_min.map_or(rtt, |smallest| smallest.min(rtt));
        self.round_min = Some(current);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match (self.conservative, self.last_round_min) {
            // [rfc9406:resume]
            (Some(conservative), _) if current < conservative.baseline => self.conservative = None,
            // [rfc9406:exit]
            (None, Some(last)) if current >= last + rtt_thresh(last) => {
                self.conservative = Some(Conservative { baseline: current, rounds: 0 });
            }
            _ => {}
        }
    }

    fn watch_classic(&mut self, ack: &Ack<()>) {
        if ack.now.since(self.train) <= CLASSIC_ACK_DELTA {
            self.train = ack.now;
            self.leave |= ack.now.since(self.round_start) > ack.base_rtt / 2;
        }
        let Some(rtt) = ack.rtt else { return };
        let current = self.round_min.map_or(rtt, |smallest| smallest.min(rtt));
        self.round_min = Some(current);
        if self.samples < N_RTT_SAMPLE {
            self.samples += 1;
        } else {
            self.leave |= current > ack.base_rtt + rtt_thresh(ack.base_rtt);
        }
    }

    /// Grows the window in slow start and returns the packets left over, like
    /// [`crate::protocols::tcp::TcpLaw::slow_start`].
    pub fn grow(&mut self, window: &mut Window, acked_packets: f64) -> f64 {
        if std::mem::take(&mut self.leave) {
            self.conservative = None;
            window.ssthresh = window.cwnd;
            return acked_packets;
        }
        if self.variant == Variant::PlusPlus && window.ssthresh.is_infinite() {
            let share = if self.is_conservative() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 };
            window.cwnd += share * acked_packets.min(L); // [rfc9406:growth]
            return 0.0;
        }
        slow_start(window, acked_packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Volume = Volume::from_bytes(1500.0);

    fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn start(variant: Variant, cwnd: f64) -> (HyStart, Window) {
        (HyStart::new(variant, PACKET), Window { cwnd, ssthresh: f64::INFINITY, initial: cwnd })
    }

    /// Runs a round of `packets` acknowledgements, 100 µs apart, all with the same RTT.
    fn round(hystart: &mut HyStart, window: &mut Window, now: Instant, rtt: Duration, packets: u32) {
        for i in 0..packets {
            let now = now + Duration::from_micros(100) * u64::from(i);
            let in_flight = f64::from(packets - 1) * PACKET;
            let ack = Ack { in_flight, base_rtt: millis(100), ..Ack::new(now, (), rtt) };
            hystart.measure(window, &ack, 1.0);
            if window.cwnd < window.ssthresh {
                hystart.grow(window, 1.0);
            }
        }
    }

    /// `[rfc9406:thresh]` The threshold is an eighth of the RTT, limited to 4 to 16 ms.
    #[test]
    fn rfc9406_thresh_by_hand() {
        // an eighth of 80 ms is 10 ms, of 10 ms less than 4, of 1 s more than 16
        assert_eq!(rtt_thresh(millis(80)), millis(10));
        assert_eq!(rtt_thresh(millis(10)), millis(4));
        assert_eq!(rtt_thresh(millis(1000)), millis(16));
    }

    /// `[rfc9406:exit, end]` A growing delay first slows the growth to a quarter, and after five such rounds ends slow
    /// start.
    #[test]
    fn rfc9406_delay_leads_to_conservative_growth_and_then_out() {
        let (mut hystart, mut window) = start(Variant::PlusPlus, 10.0);
        round(&mut hystart, &mut window, Instant::ZERO, millis(100), 10);
        assert_eq!(window.cwnd, 20.0);
        // 100 ms / 8 = 12.5 ms: 112 ms is not more, 113 ms is, from the eighth sample on.
        round(&mut hystart, &mut window, Instant::from_secs(0.1), millis(112), 10);
        assert!(!hystart.is_conservative());
        assert_eq!(window.cwnd, 30.0);
        // 112 + 14 = 126: seven packets at full pace, and with the eighth three at a quarter
        round(&mut hystart, &mut window, Instant::from_secs(0.2), millis(126), 10);
        assert!(hystart.is_conservative());
        assert_eq!(window.cwnd, 30.0 + 7.0 + 0.75);
        // Four rounds more at a quarter's pace; then the sixth beginning ends it.
        for i in 3..7 {
            round(&mut hystart, &mut window, Instant::from_secs(0.1 * f64::from(i)), millis(130), 10);
        }
        assert_eq!(window.cwnd, 37.75 + 4.0 * 2.5);
        assert!(window.ssthresh.is_infinite());
        round(&mut hystart, &mut window, Instant::from_secs(0.7), millis(130), 1);
        assert_eq!(window.ssthresh, window.cwnd);
    }

    /// `[rfc9406:resume]` Slow start resumes at full speed if the delay falls again.
    #[test]
    fn rfc9406_a_delay_that_passes_resumes_slow_start() {
        let (mut hystart, mut window) = start(Variant::PlusPlus, 10.0);
        round(&mut hystart, &mut window, Instant::ZERO, millis(100), 10);
        round(&mut hystart, &mut window, Instant::from_secs(0.1), millis(120), 10);
        assert!(hystart.is_conservative());
        round(&mut hystart, &mut window, Instant::from_secs(0.2), millis(119), 10);
        assert!(!hystart.is_conservative());
        assert!(window.ssthresh.is_infinite());
    }

    /// `[rfc9406:growth]` HyStart++ applies only to the first slow start, and grows by at most eight packets per
    /// acknowledgement.
    #[test]
    fn rfc9406_only_the_first_slow_start_and_at_most_eight_packets_at_once() {
        let (mut hystart, mut window) = start(Variant::PlusPlus, 10.0);
        assert_eq!(hystart.grow(&mut window, 20.0), 0.0);
        assert_eq!(window.cwnd, 18.0);
        window.ssthresh = 1000.0;
        round(&mut hystart, &mut window, Instant::ZERO, millis(100), 10);
        round(&mut hystart, &mut window, Instant::from_secs(0.1), millis(200), 10);
        assert!(!hystart.is_conservative());
        assert_eq!(hystart.grow(&mut window, 20.0), 0.0);
        assert_eq!(window.cwnd, 18.0 + 20.0 + 20.0);
    }

    #[test]
    fn classic_leaves_at_a_long_train_or_at_delay() {
        // 600 acknowledgements, 100 µs apart: past 50 ms, half of 100 ms, at the 502nd.
        let (mut hystart, mut window) = start(Variant::Classic, 100.0);
        round(&mut hystart, &mut window, Instant::ZERO, millis(100), 600);
        assert_eq!(window.ssthresh, 100.0 + 501.0);
        // 12.5 ms above the base: after eight samples, at the ninth
        let (mut hystart, mut window) = start(Variant::Classic, 20.0);
        round(&mut hystart, &mut window, Instant::ZERO, millis(112), 20);
        assert!(window.ssthresh.is_infinite());
        round(&mut hystart, &mut window, Instant::from_secs(0.1), millis(113), 20);
        assert_eq!(window.ssthresh, 40.0 + 8.0);
        // and not at all below 16 packets
        let (mut hystart, mut window) = start(Variant::Classic, 2.0);
        round(&mut hystart, &mut window, Instant::ZERO, millis(150), 13);
        assert!(window.ssthresh.is_infinite());
    }

    #[test]
    fn off_is_slow_start() {
        let (mut hystart, mut window) = start(Variant::Off, 10.0);
        round(&mut hystart, &mut window, Instant::ZERO, millis(100), 10);
        round(&mut hystart, &mut window, Instant::from_secs(0.1), millis(500), 20);
        assert_eq!(window.cwnd, 40.0);
        assert!(window.ssthresh.is_infinite());
    }
}
