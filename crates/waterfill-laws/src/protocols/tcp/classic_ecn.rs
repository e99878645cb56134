//! Fall-back of Prague where a queue marks as RFC 3168 says: detection from the RTT's variation, and the answer to a mark.
//!
//! A classic queue marks late and for a whole episode, so the RTT of a path with one varies by milliseconds. Behind an L4S
//! queue it varies by less than one. A score counts the evidence, round by round.
//!
//! # Equations (Linux, tcp_prague; Briscoe and Ahmed, version 2)
//! - `[classic:gain]` g = 2^−(⌊lg W⌋ + ⌊lg W⌋/2 + 1), W the slow-start threshold at the last mark; g ≥ 2⁻¹⁸, its initial value
//! - `[classic:mean]` `R ← R + g·(rtt − R)`; `v ← v + g/2·(|rtt − R| − v)`, v = 1 µs at the start, for each RTT sample
//! - `[classic:score]` `c ← c + ½·lg(v/750 µs) + ½·max(0, lg(d/2 ms))`, d = R − `rtt_min`, limited to [0, 17], when α is measured
//! - `[classic:answer]` `α ← max(α, ⅝·min(c − 8, 1))` for a reduction while c > 8: at c ≥ 9 a mark lowers the window to 0.69

use crate::math::log2;
use crate::units::Duration;

crate::choice! {
    /// What Prague does about a queue that marks as RFC 3168 says.
    pub enum Fallback {
        /// Detects it and lowers the window as a classic TCP does.
        On = "on",
        /// Treats each mark as one of an L4S queue.
        Off = "off",
    }
}

/// Score above which Prague begins to fall back (Linux, `L_STICKY`).
const TRANSITION: f64 = 8.0;
/// Maximum score (Linux, `C_STICKY`): the transition of width 1, and again 8.
const SCORE_MAX: f64 = 17.0;
/// Mean deviation of the RTT that moves the score neither way.
const DEVIATION: Duration = Duration::from_micros(750);
/// Mean queueing delay from which the score grows.
const DELAY: Duration = Duration::from_micros(2000);
/// Share of marks that a reduction assumes behind a classic queue.
const CLASSIC_ALPHA: f64 = 0.625;
/// Smallest time that is distinguished, in seconds: 1 µs, as in Linux.
const RESOLUTION_S: f64 = 1e-6;
const GAIN_SHIFT_MAX: u32 = 18;

/// Detector of a classic queue on a flow's path.
#[derive(Clone, Debug)]
pub struct ClassicEcn {
    /// g: weight of an RTT sample in the mean.
    gain: f64,
    /// R: mean RTT, in seconds; none before the first sample.
    mean_s: Option<f64>,
    /// v: mean deviation of the RTT, in seconds.
    deviation_s: f64,
    score: f64,
}

impl Default for ClassicEcn {
    fn default() -> Self {
        Self { gain: gain(f64::INFINITY), mean_s: None, deviation_s: RESOLUTION_S, score: 0.0 }
    }
}

/// `[classic:gain]` Returns the weight of an RTT sample, for a slow-start threshold in packets.
#[must_use]
pub fn gain(ssthresh: f64) -> f64 {
    // Saturates at u32::MAX, far above the threshold of the smallest gain.
    let lg = (ssthresh as u32).max(1).ilog2();
    1.0 / f64::from(1_u32 << (lg + lg / 2 + 1).min(GAIN_SHIFT_MAX))
}

impl ClassicEcn {
    /// `[classic:mean]` Measures an RTT sample.
    pub fn on_rtt(&mut self, rtt: Duration) {
        let sample_s = rtt.as_secs();
        let mean_s = self.mean_s.get_or_insert(sample_s);
        let error_s = sample_s - *mean_s;
        *mean_s += self.gain * error_s;
        self.deviation_s += 0.5 * self.gain * (error_s.abs() - self.deviation_s);
    }

    /// `[classic:gain]` Adapts the weight at a mark, to the slow-start threshold before it.
    pub fn on_mark(&mut self, ssthresh: f64) {
        self.gain = gain(ssthresh);
    }

    /// `[classic:score]` Counts the evidence of a round.
    pub fn on_round(&mut self, rtt_min: Duration) {
        let Some(mean_s) = self.mean_s else { return };
        self.score += 0.5 * log2(self.deviation_s.max(RESOLUTION_S) / DEVIATION.as_secs());
        let delay_s = mean_s - rtt_min.as_secs();
        if delay_s > DELAY.as_secs() {
            self.score += 0.5 * log2(delay_s / DELAY.as_secs());
        }
        self.score = self.score.clamp(0.0, SCORE_MAX);
    }

    /// `[classic:answer]` Returns the share of marks that a reduction assumes, given the measured one.
    #[must_use]
    pub fn alpha(&self, measured: f64) -> f64 {
        measured.max(CLASSIC_ALPHA * (self.score - TRANSITION).clamp(0.0, 1.0))
    }

    /// Returns the score: below 8 the queue passes for L4S, above 9 for classic.
    #[must_use]
    pub const fn score(&self) -> f64 {
        self.score
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    impl ClassicEcn {
        /// Returns a detector with this score.
        pub(crate) fn with_score(score: f64) -> Self {
            Self { score, ..Self::default() }
        }
    }

    const US: fn(u64) -> Duration = Duration::from_micros;

    /// `[classic:gain]` lg 100 is 6.6 and counts as 6; half of 7 counts as 3.
    #[test]
    fn gain_by_hand() {
        assert_eq!(gain(2.0), 1.0 / 4.0);
        assert_eq!(gain(100.0), 1.0 / 1024.0);
        assert_eq!(gain(128.0), 1.0 / 2048.0);
        assert_eq!([gain(4096.0), gain(f64::INFINITY)], [0.5_f64.powi(18); 2]);
    }

    /// `[classic:mean]` With W = 2: R = 20 + 8/4 = 22 ms, v = 0.001 + (8 − 0.001)/8 ms, then R = 22 − 2/4.
    #[test]
    fn mean_and_deviation_by_hand() {
        let mut classic = ClassicEcn::default();
        classic.on_mark(2.0);
        classic.on_rtt(US(20_000));
        assert_eq!((classic.mean_s, classic.deviation_s), (Some(0.02), 0.875e-6));
        classic.deviation_s = 1e-6;
        classic.on_rtt(US(28_000));
        assert_eq!((classic.mean_s.unwrap() * 1e9).round(), 22e6);
        assert_eq!((classic.deviation_s * 1e9).round(), 1000.0 + 999_875.0);
        classic.on_rtt(US(20_000));
        assert_eq!((classic.mean_s.unwrap() * 1e9).round(), 21.5e6);
    }

    /// Returns a detector with this mean deviation and mean RTT.
    fn measured(deviation: Duration, mean: Duration) -> ClassicEcn {
        ClassicEcn { mean_s: Some(mean.as_secs()), deviation_s: deviation.as_secs(), ..ClassicEcn::default() }
    }

    /// `[classic:score]` Twice each reference adds a half; the queue's delay can only raise the score.
    #[test]
    fn score_by_hand() {
        let after = |deviation: u64, delay: u64, score: f64| {
            let mut classic = ClassicEcn { score, ..measured(US(deviation), US(20_000 + delay)) };
            classic.on_round(US(20_000));
            (classic.score() * 1e9).round() / 1e9
        };
        assert_eq!([after(750, 2000, 1.0), after(1500, 2000, 1.0), after(750, 4000, 1.0)], [1.0, 1.5, 1.5]);
        assert_eq!([after(3000, 8000, 1.0), after(375, 500, 1.0)], [3.0, 0.5]);
        assert_eq!([after(375, 4000, 1.0), after(1, 0, 1.0), after(96_000, 64_000, 16.0)], [1.0, 0.0, 17.0]);
        let mut unmeasured = ClassicEcn::with_score(5.0);
        unmeasured.on_round(US(20_000));
        assert_eq!(unmeasured.score(), 5.0);
    }

    /// `[classic:answer]`
    #[test]
    fn answer_by_hand() {
        let assumed = |score, measured| ClassicEcn::with_score(score).alpha(measured);
        assert_eq!([assumed(0.0, 0.1), assumed(8.0, 0.1), assumed(8.5, 0.1)], [0.1, 0.1, 0.3125]);
        assert_eq!([assumed(9.0, 0.1), assumed(17.0, 0.1), assumed(17.0, 0.8)], [0.625, 0.625, 0.8]);
    }
}
