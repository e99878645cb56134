//! Control parameters: pacing rate, send quantum and window (bbr-06 §5.6).

use crate::protocols::tcp::WINDOW_MAX;
use crate::units::Duration;

use super::source::{MIN_PIPE_CWND, QUANTUM_MIN, Sample, Source, State};

/// Time that a send quantum covers, and its maximum in bytes (bbr-06 §5.6.3).
const QUANTUM: Duration = Duration::from_millis(1);
const QUANTUM_MAX_BYTES: f64 = 64e3;
/// Number of send quanta in the offload budget of a TCP (bbr-06 §5.5.8.1).
const OFFLOADS: f64 = 3.0;
/// Packets added to the window while probing for bandwidth (bbr-06 §5.6.4.2).
const PROBE_PACKETS: f64 = 2.0;

impl Source {
    /// `[bbr-06:§5.6.2]` SetPacingRateWithGain. Until the pipe is full, the rate only rises.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - self.params.pacing_margin);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `[bbr-06:§5.6.3]` SetSendQuantum, in packets.
    pub(super) fn set_send_quantum(&mut self) {
        let quantum_max = QUANTUM_MAX_BYTES / self.packet.as_bytes();
        self.send_quantum = (self.pacing_rate * QUANTUM.as_secs()).min(quantum_max).max(QUANTUM_MIN);
    }

    /// `[bbr-06:§5.6.4.2]` QuantizationBudget.
    pub(super) fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let cap = inflight_cap.max(OFFLOADS * self.send_quantum).max(MIN_PIPE_CWND);
        if self.state == State::Up { cap + PROBE_PACKETS } else { cap }
    }

    /// `[bbr-06:§5.6.4.2]` Inflight.
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.quantization_budget(gain * self.bdp())
    }

    /// `[bbr-06:§5.6.4.2]` UpdateMaxInflight.
    pub(super) fn max_inflight(&self) -> f64 {
        self.quantization_budget(self.cwnd_gain * self.bdp() + self.extra_acked)
    }

    /// `[bbr-06:§5.6.4.4]` SaveCwnd.
    pub(super) const fn save_cwnd(&mut self) {
        let modulated = self.recovering || matches!(self.state, State::ProbeRtt);
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// `[bbr-06:§5.6.4.4]` RestoreCwnd.
    pub(super) const fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// `[bbr-06:§5.6.4.5]` ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        (self.bdp() * 0.5).max(MIN_PIPE_CWND)
    }

    /// `[bbr-06:§5.6.4.6]` SetCwnd.
    pub(super) fn set_cwnd(&mut self, rs: &Sample) {
        let max_inflight = self.max_inflight();
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.estimator.delivered() < self.initial_cwnd {
            self.cwnd += rs.newly_acked;
        }
        self.cwnd = self.cwnd.clamp(MIN_PIPE_CWND, WINDOW_MAX);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `[bbr-06:§5.6.4.7]` BoundCwndForModel.
    pub(super) fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        self.cwnd = self.cwnd.min(cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND));
    }
}
