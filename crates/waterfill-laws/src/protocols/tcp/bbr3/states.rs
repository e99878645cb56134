//! State machine: Startup, Drain, the four states of ProbeBW, and ProbeRTT (bbr-06 §5.3, §5.4).

use crate::protocols::tcp::bbr::drawn;
use crate::units::{Duration, Instant};

use super::source::{AckPhase, MIN_PIPE_CWND, Sample, Source, State};

/// Relative growth of the bandwidth below which a pipe counts as full (bbr-06 §5.3.1.2).
const FULL_GROWTH: f64 = 1.25;
/// Number of rounds without that growth after which a pipe counts as full.
const FULL_ROUNDS: u32 = 3;
/// Number of places in which a round must lose packets to end Startup (BBRStartupFullLossCnt).
const FULL_LOSSES: u32 = 6;
/// Number of rounds after which Drain ends whatever is in flight (bbr-06 §5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Maximum number of rounds between two probes (bbr-06 §5.3.3.8.3).
const RENO_ROUNDS: f64 = 63.0;
/// Minimum time between two probes if rounds do not decide; up to a second more is drawn (bbr-06 §5.3.3.8.3).
const PROBE_WAIT: Duration = Duration::from_millis(2000);

/// `[bbr-06:§5.6.1]` Returns the gains of pacing and window; Startup's pacing gain is a parameter.
const fn gains(state: State, startup: f64) -> (f64, f64) {
    match state {
        State::Startup => (startup, 2.0),
        State::Drain => (0.5, 2.0),
        State::Down => (0.9, 2.0),
        State::Cruise | State::Refill => (1.0, 2.0),
        State::Up => (1.25, 2.25),
        State::ProbeRtt => (1.0, 0.5),
    }
}

impl Source {
    /// Enters a state with its gains. EnterStartup is only this.
    pub(super) const fn enter(&mut self, state: State) {
        self.state = state;
        (self.pacing_gain, self.cwnd_gain) = gains(state, self.params.startup_pacing_gain);
    }

    // ------------------------------------------------------------------ Startup

    /// `[bbr-06:§5.3.1.2]` ResetFullBW.
    pub(super) const fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// `[bbr-06:§5.3.1.2]` CheckFullBWReached.
    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        if self.full_bw_now || !self.round_start || rs.app_limited {
            return;
        }
        if rs.delivery_rate >= self.full_bw * FULL_GROWTH {
            self.reset_full_bw();
            self.full_bw = rs.delivery_rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// `[bbr-06:§5.3.1.1]` CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_bw_reached {
            self.enter(State::Drain);
            self.drain_start_round = self.round_count;
        }
    }

    /// `[bbr-06:§5.3.1.3]` CheckStartupHighLoss: a round of recovery with too many losses fills the pipe.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        if !self.loss_round_start {
            return;
        }
        let losses = std::mem::take(&mut self.loss_events);
        let high = self.recovering && losses >= FULL_LOSSES && self.is_inflight_too_high(rs.lost, rs.tx_in_flight);
        if high && !self.full_bw_reached {
            self.undo.state = Some(State::Startup);
            (self.full_bw_reached, self.full_bw_now) = (true, true);
            self.inflight_longterm = self.bdp().max(self.inflight_latest);
        }
    }

    // ------------------------------------------------------------------ Drain

    /// `[bbr-06:§5.3.2]` CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, now: Instant) {
        let late = self.round_count > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (self.in_flight <= self.inflight(1.0) || late) {
            self.start_probe_bw_down(now);
        }
    }

    // ------------------------------------------------------------------ ProbeBW

    /// `[bbr-06:§5.3.3.9]` StartProbeBW_DOWN.
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.enter(State::Down);
    }

    /// `[bbr-06:§5.3.3.9]` StartProbeBW_REFILL.
    pub(super) const fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.enter(State::Refill);
    }

    /// `[bbr-06:§5.3.3.9]` StartProbeBW_UP.
    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rs.delivery_rate;
        self.enter(State::Up);
        self.raise_inflight_longterm_slope();
    }

    /// `[bbr-06:§5.3.3.9]` UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &Sample) {
        if !self.full_bw_reached || self.adapt_long_term_model(rs) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe_bw(rs.now) => self.start_probe_bw_refill(),
            State::Down if self.is_time_to_cruise() => self.enter(State::Cruise),
            State::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_probe_bw_up(rs);
            }
            State::Up if self.is_time_to_go_down(rs) => {
                self.prev_probe_too_high = false;
                self.start_probe_bw_down(rs.now);
            }
            _ => {}
        }
    }

    /// `[bbr-06:§5.3.3.8.3]` IsTimeToProbeBW, with HasElapsedInPhase and IsRenoCoexistenceProbeTime.
    pub(super) fn is_time_to_probe_bw(&self, now: Instant) -> bool {
        let rounds = self.target_inflight().min(RENO_ROUNDS);
        now > self.cycle_stamp + self.bw_probe_wait || self.rounds_since_probe_up as f64 >= rounds
    }

    /// `[bbr-06:§5.3.3.8.3]` PickProbeWait.
    pub(super) fn pick_probe_wait(&mut self) {
        let random = drawn(self.seed, self.waits);
        self.waits += 1;
        self.rounds_since_probe_up = random & 1;
        // The upper 32 bits as a fraction of a second.
        self.bw_probe_wait = PROBE_WAIT + Duration::from_secs((random >> 32) as f64 / 4_294_967_296.0);
    }

    /// `[bbr-06:§5.3.3.9]` IsTimeToCruise.
    fn is_time_to_cruise(&self) -> bool {
        let bdp = self.quantization_budget(self.max_bw.max() * self.min_rtt.as_secs());
        self.in_flight <= self.inflight_with_headroom() && self.in_flight <= bdp
    }

    /// `[bbr-06:§5.3.3.9]` IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        if self.prev_probe_too_high && self.in_flight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
            self.reset_full_bw(); // inflight_longterm limits the bandwidth
            self.full_bw = rs.delivery_rate;
            return false;
        }
        self.full_bw_now
    }

    /// `[bbr-06:§5.3.3.9]` InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let headroom = (self.params.headroom * self.inflight_longterm).max(1.0);
        if self.inflight_longterm.is_finite() {
            (self.inflight_longterm - headroom).max(MIN_PIPE_CWND)
        } else {
            f64::INFINITY
        }
    }

    /// `[bbr-06:§5.3.3.9]` RaiseInflightLongtermSlope: twice as fast in each round.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(1.0);
    }

    /// `[bbr-06:§5.3.3.9]` ProbeInflightLongtermUpward.
    pub(super) fn probe_inflight_longterm_upward(&mut self, rs: &Sample) {
        if !self.is_cwnd_limited() || self.cwnd < self.inflight_longterm {
            return; // the bound is not fully used
        }
        self.bw_probe_up_acked += rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `[bbr-06:§5.3.3.9]` AdaptLongTermModel. Returns true if it has changed the state.
    fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !rs.app_limited {
                self.max_bw.advance();
            }
            if self.state.is_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.inflight_longterm.is_finite() && !self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    // ------------------------------------------------------------------ ProbeRTT

    /// `[bbr-06:§5.3.4.3]` CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.enter(State::ProbeRtt);
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(rs.now);
        }
        if rs.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    /// `[bbr-06:§5.3.4.3]` HandleProbeRTT.
    fn handle_probe_rtt(&mut self, now: Instant) {
        // So little in flight says nothing of the bandwidth.
        self.estimator.limit_by_application(self.in_flight);
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(now);
            }
        } else if self.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(now + self.params.probe_rtt_duration);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    /// `[bbr-06:§5.3.4.3]` CheckProbeRTTDone.
    fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_stamp.is_some_and(|done| now > done) {
            self.probe_rtt_min_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// `[bbr-06:§5.3.4.4]` ExitProbeRTT.
    fn exit_probe_rtt(&mut self, now: Instant) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now);
            self.enter(State::Cruise);
        } else {
            self.enter(State::Startup);
        }
    }

    // ------------------------------------------------------------------ idle

    /// `[bbr-06:§5.4.1]` HandleRestartFromIdle.
    pub(super) fn handle_restart_from_idle(&mut self, now: Instant, in_flight: f64) {
        if in_flight > 0.0 || !self.estimator.is_app_limited() {
            return;
        }
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
