//! Model of the path: bandwidth, RTT, aggregation, and the bounds that losses set (bbr-06 §5.5).

use crate::units::{Duration, Instant};

use super::filters::Departure;
use super::source::{Sample, Source, State, Undo};

impl Source {
    /// `[bbr-06:§5.5.1]` UpdateRound.
    fn update_round(&mut self, rs: &Sample) {
        self.round_start = rs.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered);
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.cwnd_limited = [false, self.cwnd_limited[0]];
        }
    }

    /// `[bbr-06:§5.5.1]` StartRound.
    pub(super) const fn start_round(&mut self) {
        self.next_round_delivered = self.estimator.delivered();
    }

    /// C.is_cwnd_limited (bbr-06 §2.2).
    pub(super) const fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }

    /// `[bbr-06:§5.5.5]` UpdateMaxBw.
    fn update_max_bw(&mut self, rs: &Sample) {
        self.update_round(rs);
        if rs.delivery_rate > 0.0 && (rs.delivery_rate >= self.max_bw.max() || !rs.app_limited) {
            self.max_bw.update(rs.delivery_rate);
        }
    }

    /// `[bbr-06:§5.5.9]` UpdateACKAggregation.
    pub(super) fn update_ack_aggregation(&mut self, rs: &Sample) {
        let interval = rs.now.since(self.extra_acked_interval_start);
        let mut expected = self.bw * interval.as_secs();
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = rs.now;
            expected = 0.0;
        }
        self.extra_acked_delivered += rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        self.extra_acked_filter.update(self.round_count as u32, extra);
        self.extra_acked =
            if self.full_bw_reached { self.extra_acked_filter.max } else { self.extra_acked_filter.newest() };
    }

    /// `[bbr-06:§5.3.4.3]` UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, rs: &Sample) {
        self.probe_rtt_expired = rs.now > self.probe_rtt_min_stamp + self.params.probe_rtt_interval;
        if let Some(rtt) = rs.rtt.filter(|&rtt| rtt < self.probe_rtt_min_delay || self.probe_rtt_expired) {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (rtt, rs.now);
        }
        let min_rtt_expired = rs.now > self.min_rtt_stamp + self.params.min_rtt_window;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
    }

    // ------------------------------------------------------------------ losses while probing

    /// `[bbr-06:§5.5.10.2]` IsInflightTooHigh: more than the threshold of a round was lost.
    pub(super) fn is_inflight_too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * self.params.loss_thresh
    }

    /// `[bbr-06:§5.5.10.2]` HandleLostPacket.
    pub(super) fn handle_lost_packet(&mut self, now: Instant, packet: &Departure) {
        self.note_loss();
        if !self.is_bw_probe_sample {
            return; // not sent while probing for bandwidth
        }
        let lost = self.lost - packet.lost;
        if self.is_inflight_too_high(lost, packet.in_flight) {
            let tx_in_flight = inflight_at_loss(packet.in_flight, lost, self.params.loss_thresh);
            self.handle_inflight_too_high(now, tx_in_flight, packet.app_limited);
        }
    }

    /// `[bbr-06:§5.5.10.2]` HandleInflightTooHigh.
    fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: f64, app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false; // one response per probe
        if !app_limited {
            self.inflight_longterm = tx_in_flight.max(self.target_inflight() * self.params.beta);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_probe_bw_down(now);
        }
    }

    // ------------------------------------------------------------------ losses in other states

    /// `[bbr-06:§5.5.10.3]` UpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        self.bw_latest = self.bw_latest.max(rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        self.loss_round_start = rs.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered);
        if self.loss_round_start {
            self.loss_round_delivered = self.estimator.delivered();
        }
    }

    /// `[bbr-06:§5.5.10.3]` AdvanceLatestDeliverySignals.
    pub(super) const fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.loss_round_start {
            self.bw_latest = rs.delivery_rate;
            self.inflight_latest = rs.delivered;
        }
    }

    /// `[bbr-06:§5.5.10.3]` ResetCongestionSignals.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// `[bbr-06:§5.5.10.3]` UpdateCongestionSignals, with AdaptLowerBoundsFromCongestion.
    pub(super) fn update_congestion_signals(&mut self, rs: &Sample) {
        self.update_max_bw(rs);
        if !self.loss_round_start {
            return;
        }
        if self.is_loss_in_round && !self.state.is_probing() {
            self.init_lower_bounds();
            self.loss_lower_bounds();
        }
        self.is_loss_in_round = false;
    }

    /// `[bbr-06:§5.5.10.3]` InitLowerBounds.
    const fn init_lower_bounds(&mut self) {
        if self.bw_shortterm == f64::INFINITY {
            self.bw_shortterm = self.max_bw.max();
        }
        if self.inflight_shortterm == f64::INFINITY {
            self.inflight_shortterm = self.cwnd;
        }
    }

    /// `[bbr-06:§5.5.10.3]` LossLowerBounds.
    pub(super) fn loss_lower_bounds(&mut self) {
        let beta = self.params.beta;
        self.bw_shortterm = self.bw_latest.max(beta * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(beta * self.inflight_shortterm);
    }

    /// `[bbr-06:§5.5.10.3]` ResetShortTermModel.
    pub(super) const fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    // ------------------------------------------------------------------ spurious losses

    /// `[bbr-06:§5.5.11.1]` SaveStateUponLoss, once per recovery: the first loss comes before any response.
    pub(super) const fn save_state_upon_loss(&mut self) {
        if self.undo_saved {
            return;
        }
        self.undo_saved = true;
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// `[bbr-06:§5.5.11.2]` HandleSpuriousLossDetection.
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.enter(State::Startup);
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }

    // ------------------------------------------------------------------ volumes

    /// BBR.bdp in packets: `bw·min_rtt`.
    pub(super) fn bdp(&self) -> f64 {
        if self.min_rtt == Duration::MAX { self.initial_cwnd } else { self.bw * self.min_rtt.as_secs() }
    }

    /// `[bbr-06:§5.3.3.8.3]` TargetInflight.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp().min(self.cwnd)
    }
}

/// `[bbr-06:§5.5.10.2]` InflightAtLoss: packets in flight at which losses passed the threshold, for a packet that left
/// with `tx_in_flight` packets in flight, after `lost` were lost, itself included in both.
pub(super) fn inflight_at_loss(tx_in_flight: f64, lost: f64, loss_thresh: f64) -> f64 {
    let (inflight_prev, lost_prev) = (tx_in_flight - 1.0, lost - 1.0);
    inflight_prev + (loss_thresh * inflight_prev - lost_prev) / (1.0 - loss_thresh)
}
