//! BBR's model of the path: filters over rounds, and the limits that follow from them.

use crate::units::{Duration, Instant};

/// Number of rounds for which a maximum rate is valid (BtlBwFilterLen, bbr-00 §4.1.1.2).
pub(super) const ROUNDS: usize = 10;
/// Time that a send_quantum covers; `QUANTUM_MAX` is the largest send_quantum in bytes (bbr-00 §4.2.2).
pub(super) const QUANTUM: Duration = Duration::from_millis(1);
pub(super) const QUANTUM_MAX: f64 = 65_535.0;
/// Rate, in bit/s, below which a send_quantum may be a single packet. At higher rates, a send_quantum has at least two
/// packets (bbr-00 §4.2.2).
pub(super) const QUANTUM_OF_ONE: f64 = 1.2e6;

/// Maximum of a value, here the delivery rate, over the last [`ROUNDS`] rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocols::tcp) struct MaxFilter {
    of_rounds: [f64; ROUNDS],
    newest: u32,
    pub(in crate::protocols::tcp) max: f64,
}

impl MaxFilter {
    /// `[bbr-00:BtlBw]` Adds a rate sample of a round to the filter.
    pub(in crate::protocols::tcp) fn update(&mut self, round: u32, rate: f64) {
        for gone in (self.newest..round).take(ROUNDS) {
            self.of_rounds[(gone as usize + 1) % ROUNDS] = 0.0;
        }
        self.newest = round;
        let of_round = &mut self.of_rounds[round as usize % ROUNDS];
        *of_round = of_round.max(rate);
        self.max = self.of_rounds.iter().copied().fold(0.0, f64::max);
    }

    /// Returns the maximum of the newest round.
    pub(in crate::protocols::tcp) const fn newest(&self) -> f64 {
        self.of_rounds[self.newest as usize % ROUNDS]
    }
}

/// Largest burst of acknowledgements beyond the bandwidth in the last 5 to 10 rounds (tcp_bbr.c:
/// bbr_update_ack_aggregation). Without an allowance for these bursts, the sender would be silent between bursts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// Largest excess in packets, in the current window of rounds and in the previous window.
    extra: [f64; 2],
    rounds: u32,
    /// Time since which acknowledgements have arrived faster than the bandwidth; `acked` counts the packets
    /// acknowledged since then.
    began: Option<Instant>,
    acked: f64,
}

impl Aggregation {
    /// Number of rounds in a window (bbr_extra_acked_win_rtts).
    const ROUNDS: u32 = 5;
    /// Limit of the allowance: the packets that arrive in this time (bbr_extra_acked_max_us).
    const TIME_MAX: Duration = Duration::from_millis(100);
    /// Number of acknowledged packets after which an epoch restarts (bbr_ack_epoch_acked_reset_thresh).
    const ACKED_MAX: f64 = 1_048_576.0;

    pub(super) fn update(&mut self, now: Instant, acked: f64, round_start: bool, bandwidth: f64, cwnd: f64) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= Self::ROUNDS {
                self.rounds = 0;
                self.extra = [0.0, self.extra[0]];
            }
        }
        let mut expected = self.began.map_or(0.0, |began| bandwidth * now.since(began).as_secs());
        if self.began.is_none() || self.acked <= expected || self.acked + acked >= Self::ACKED_MAX {
            *self = Self { began: Some(now), acked: 0.0, ..*self };
            expected = 0.0;
        }
        self.acked += acked;
        self.extra[0] = self.extra[0].max((self.acked - expected).min(cwnd));
    }

    /// Returns the allowance for aggregated acknowledgements, in packets.
    pub(super) fn allowance(&self, bandwidth: f64) -> f64 {
        self.extra[0].max(self.extra[1]).min(bandwidth * Self::TIME_MAX.as_secs())
    }
}

/// `[bbr-00:Inflight]` Returns the packets in flight for a gain: `gain` times the bandwidth-delay product, plus an
/// allowance for packets that hosts hold back.
#[must_use]
pub fn inflight(gain: f64, bandwidth: f64, rtprop: Duration, send_quantum: f64) -> f64 {
    gain * bandwidth * rtprop.as_secs() + 3.0 * send_quantum
}

/// `[bbr-00:send_quantum]` Returns the number of whole packets, of `packet` bytes each, that leave in a millisecond at
/// a pacing rate in packets/s. The minimum is one packet at low rates and otherwise two.
#[must_use]
pub fn send_quantum(pacing_rate: f64, packet: f64) -> f64 {
    let minimum = if pacing_rate * packet * 8.0 < QUANTUM_OF_ONE { 1.0 } else { 2.0 };
    ((pacing_rate * packet * QUANTUM.as_secs()).min(QUANTUM_MAX) / packet).floor().max(minimum)
}
