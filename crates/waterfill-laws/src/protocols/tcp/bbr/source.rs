//! Source law of BBR.

use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::protocols::tcp::WINDOW_MAX;
use crate::protocols::tcp::delivery::{Estimator, Note, RateSample, Times};
use crate::units::{Duration, Instant, Volume};

use super::Bbr;
use super::model::{Aggregation, MaxFilter, inflight, send_quantum};
use super::params::Params;

/// Minimum window, in packets. In a smaller window, delayed acknowledgements could stall the sender (BBRMinPipeCwnd,
/// bbr-00 §4.2.3.3).
pub(super) const WINDOW_MIN: f64 = 4.0;
/// Pacing gains of ProbeBW's phases (bbr-00 §4.3.4).
pub(super) const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Relative growth of the bandwidth below which a pipe counts as full (bbr-00 §4.3.2.2).
pub(super) const FULL_GROWTH: f64 = 1.25;
/// Number of rounds without `FULL_GROWTH` after which a pipe counts as full.
pub(super) const FULL_ROUNDS: u32 = 3;
/// RTT assumed for the first pacing rate, before any RTT is measured (bbr-00 §4.2.1).
pub(super) const RTT_NOMINAL: Duration = Duration::from_millis(1);
/// Fraction of the bandwidth that Linux's pacing rate leaves unused (tcp_bbr.c: bbr_pacing_margin_percent).
pub(super) const LINUX_MARGIN: f64 = 0.01;

/// Returns a pseudorandom number from a connection's seed and a count (the finaliser of MurmurHash3 in Steele's
/// SplitMix64).
pub(in crate::protocols::tcp) fn drawn(seed: u64, count: u64) -> u64 {
    let mut z = seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// Time of an acknowledgement, and the packet counts that it reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Instant,
    pub(super) acked: f64,
    pub(super) lost: f64,
    pub(super) in_flight: f64,
    pub(super) prior_in_flight: f64,
}

/// Source of BBR.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the draft's own flags, each with a life of its own")]
pub struct Source {
    params: Params,
    packet: Volume,
    seed: u64,
    initial: f64,
    estimator: Estimator,
    /// Packets in flight after the last packet sent or acknowledgement received.
    in_flight: f64,
    /// Packets delivered by the last acknowledgement.
    acked: f64,

    pub(super) bandwidth: MaxFilter,
    aggregation: Aggregation,
    /// Minimum RTT, and the time when it was last seen; `None` before the first RTT.
    pub(super) rtprop: Option<(Duration, Instant)>,
    round: u32,
    pub(super) round_start: bool,
    next_round_delivered: f64,

    pub(super) state: State,
    pub(super) pacing_gain: f64,
    pub(super) cwnd_gain: f64,
    /// Pacing rate in packets/s.
    pub(super) pacing_rate: f64,
    pub(super) cwnd: f64,
    pub(super) prior_cwnd: f64,

    pub(super) filled_pipe: bool,
    pub(super) full_bandwidth: f64,
    pub(super) full_count: u32,

    pub(super) phase: usize,
    pub(super) phase_began: Instant,
    /// Number of entries into ProbeBW. Each entry draws a new starting phase.
    entered: u32,

    /// Earliest end of ProbeRTT; `None` until few enough packets are in flight.
    pub(super) probe_rtt_until: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,

    recovering: bool,
    pub(super) packet_conservation: bool,
}

impl Source {
    pub(super) fn new(params: &Params, connection: &Connection) -> Self {
        let initial = connection.initial_window / connection.packet;
        Self {
            params: params.clone(),
            packet: connection.packet,
            seed: connection.seed,
            initial,
            estimator: Estimator::default(),
            in_flight: 0.0,
            acked: 0.0,
            bandwidth: MaxFilter::default(),
            aggregation: Aggregation::default(),
            rtprop: None,
            round: 0,
            round_start: false,
            next_round_delivered: 0.0,
            state: State::Startup,
            pacing_gain: params.high_gain,
            cwnd_gain: params.high_gain,
            pacing_rate: params.high_gain * initial / RTT_NOMINAL.as_secs(),
            cwnd: initial,
            prior_cwnd: 0.0,
            filled_pipe: false,
            full_bandwidth: 0.0,
            full_count: 0,
            phase: 0,
            phase_began: Instant::ZERO,
            entered: 0,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            recovering: false,
            packet_conservation: false,
        }
    }

    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.inflight_and(gain, 0.0)
    }

    /// Returns the number of packets in flight for a gain, plus `more`. Before the first RTT, returns the initial
    /// window.
    fn inflight_and(&self, gain: f64, more: f64) -> f64 {
        let Some((rtprop, _)) = self.rtprop else { return self.initial };
        let packets = inflight(gain, self.bandwidth.max, rtprop, self.quantum()) + more;
        if !self.params.linux {
            return packets;
        }
        let probing = self.state == State::ProbeBandwidth && self.phase == 0;
        2.0 * (packets / 2.0).ceil() + if probing { 2.0 } else { 0.0 }
    }

    fn quantum(&self) -> f64 {
        if self.params.linux { send_quantum(self.pacing_rate, self.packet.as_bytes()) } else { 1.0 }
    }

    // ------------------------------------------------------------------ the model

    fn update_bandwidth(&mut self, sample: Option<&RateSample>) {
        self.round_start = false;
        let Some(sample) = sample else { return };
        if sample.prior_delivered as f64 >= self.next_round_delivered {
            self.next_round_delivered = self.estimator.delivered();
            self.round = self.round.saturating_add(1);
            self.round_start = true;
            self.packet_conservation = false;
        }
        if let Some(rate) = sample.rate.filter(|&rate| rate >= self.bandwidth.max || !sample.app_limited) {
            self.bandwidth.update(self.round, rate);
        }
    }

    /// `[bbr-00:RTprop]` Updates the minimum RTT; returns true if the old minimum had expired.
    pub(super) fn update_rtprop(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.rtprop.is_some_and(|(_, seen)| now > seen + self.params.rtprop_window);
        if let Some(rtt) = rtt {
            let renews = |rtprop| rtt < rtprop || rtt == rtprop && !self.params.linux;
            if expired || self.rtprop.is_none_or(|(rtprop, _)| renews(rtprop)) {
                self.rtprop = Some((rtt, now));
            }
        }
        expired
    }

    /// `[bbr-00:full_pipe]` Sets `filled_pipe` after three rounds in which the bandwidth grew by less than a quarter.
    pub(super) fn check_full_pipe(&mut self, app_limited: bool) {
        if self.filled_pipe || !self.round_start || app_limited {
            return;
        }
        if self.bandwidth.max >= FULL_GROWTH * self.full_bandwidth {
            self.full_bandwidth = self.bandwidth.max;
            self.full_count = 0;
            return;
        }
        self.full_count += 1;
        self.filled_pipe = self.full_count >= FULL_ROUNDS;
    }

    // ------------------------------------------------------------------ the state machine

    fn enter_startup(&mut self) {
        self.state = State::Startup;
        self.pacing_gain = self.params.high_gain;
        self.cwnd_gain = self.params.high_gain;
    }

    fn check_drain(&mut self, seen: &Seen) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / self.params.high_gain;
            self.cwnd_gain = self.params.high_gain;
        }
        if self.state == State::Drain && seen.in_flight <= self.inflight(1.0) {
            self.enter_probe_bandwidth(seen.now);
        }
    }

    pub(super) fn enter_probe_bandwidth(&mut self, now: Instant) {
        self.state = State::ProbeBandwidth;
        self.cwnd_gain = self.params.cwnd_gain;
        self.entered = self.entered.wrapping_add(1);
        // Anywhere but in the phase that drains: there is nothing to drain.
        self.phase = GAINS.len() - 1 - (drawn(self.seed, u64::from(self.entered)) % 7) as usize;
        self.next_phase(now);
    }

    fn next_phase(&mut self, now: Instant) {
        self.phase_began = now;
        self.phase = (self.phase + 1) % GAINS.len();
        self.pacing_gain = GAINS[self.phase];
    }

    fn check_phase(&mut self, seen: &Seen) {
        if self.state == State::ProbeBandwidth && self.is_phase_over(seen) {
            self.next_phase(seen.now);
        }
    }

    pub(super) fn is_phase_over(&self, seen: &Seen) -> bool {
        let full_length = self.rtprop.is_some_and(|(rtprop, _)| seen.now.since(self.phase_began) > rtprop);
        if self.pacing_gain > 1.0 {
            let next = if self.params.linux { self.quantum() } else { 0.0 }; // Linux counts what leaves next
            full_length && (seen.lost > 0.0 || seen.prior_in_flight + next >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            full_length || seen.prior_in_flight <= self.inflight(1.0)
        } else {
            full_length
        }
    }

    fn check_probe_rtt(&mut self, seen: &Seen, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.prior_cwnd = self.saved_cwnd();
            self.state = State::ProbeRtt;
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.probe_rtt_until = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(seen);
        }
        self.idle_restart = false;
    }

    fn handle_probe_rtt(&mut self, seen: &Seen) {
        // So little in flight says nothing of the bandwidth.
        self.estimator.limit_by_application(seen.in_flight);
        match self.probe_rtt_until {
            None if seen.in_flight <= WINDOW_MIN => {
                self.probe_rtt_until = Some(seen.now + self.params.probe_rtt);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = self.estimator.delivered();
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && seen.now > until {
                    self.rtprop = self.rtprop.map(|(rtprop, _)| (rtprop, seen.now));
                    self.cwnd = self.cwnd.max(self.prior_cwnd);
                    if self.filled_pipe {
                        self.enter_probe_bandwidth(seen.now);
                    } else {
                        self.enter_startup();
                    }
                }
            }
        }
    }

    // ------------------------------------------------------------------ what follows

    /// `[bbr-00:pacing_rate]` Sets the pacing rate to a gain times the bandwidth. Until the pipe is full, the rate only
    /// rises.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let margin = if self.params.linux { LINUX_MARGIN } else { 0.0 };
        let rate = gain * self.bandwidth.max * (1.0 - margin);
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `[bbr-00:cwnd]` Moves the window towards the gain's packets in flight, by the packets acknowledged.
    pub(super) fn set_cwnd(&mut self, seen: &Seen) {
        // Without `linux` nothing is noted, and there is none.
        let allowance = if self.filled_pipe { self.aggregation.allowance(self.bandwidth.max) } else { 0.0 };
        let target = self.inflight_and(self.cwnd_gain, allowance);
        if self.recovering {
            self.cwnd = (self.cwnd - seen.lost).max(1.0);
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(seen.in_flight + seen.acked);
        } else {
            if self.filled_pipe {
                self.cwnd = (self.cwnd + seen.acked).min(target);
            } else if self.cwnd < target || self.estimator.delivered() < self.initial {
                self.cwnd += seen.acked;
            }
            self.cwnd = self.cwnd.max(WINDOW_MIN);
        }
        self.bound_cwnd();
    }

    fn bound_cwnd(&mut self) {
        let most = if self.state == State::ProbeRtt { WINDOW_MIN } else { WINDOW_MAX };
        self.cwnd = self.cwnd.min(most);
    }

    /// Returns the window to restore after recovery or ProbeRTT (BBRSaveCwnd).
    fn saved_cwnd(&self) -> f64 {
        if self.recovering || self.state == State::ProbeRtt { self.prior_cwnd.max(self.cwnd) } else { self.cwnd }
    }
}

impl crate::protocol::Source<Bbr> for Box<Source> {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self::new(Source::new(params, connection))
    }

    fn stamp(&mut self, sending: &Sending) -> Note {
        if sending.kind == PacketKind::Syn {
            return Note::default();
        }
        let before = sending.in_flight / self.packet;
        if before <= 0.0 && self.estimator.is_app_limited() {
            self.idle_restart = true;
            if self.state == State::ProbeBandwidth {
                self.set_pacing_rate(1.0);
            }
        }
        let note = self.estimator.on_send(sending);
        self.in_flight = before + 1.0;
        if sending.app_limited && self.in_flight < self.cwnd {
            self.estimator.limit_by_application(self.in_flight);
        }
        note
    }

    fn on_ack(&mut self, ack: &Ack<Note>) {
        if ack.kind == PacketKind::Syn {
            if self.rtprop.is_none() {
                self.update_rtprop(ack.now, ack.rtt);
                // [bbr-00:init] The first window in the first RTT.
                self.pacing_rate = self.params.high_gain * self.initial / ack.smoothed_rtt.as_secs();
            }
            return;
        }
        let (acked, in_flight) = (ack.acked / self.packet, ack.in_flight / self.packet);
        let times = Times { now: ack.now, rtt: ack.rtt.unwrap_or(ack.smoothed_rtt), base_rtt: ack.base_rtt };
        let sample = self.estimator.on_ack(acked, &ack.echo, times);
        let seen = Seen {
            now: ack.now,
            acked,
            lost: (self.in_flight - acked - in_flight).max(0.0),
            in_flight,
            prior_in_flight: self.in_flight,
        };
        self.in_flight = in_flight;
        self.acked = acked;

        self.update_bandwidth(sample.as_ref());
        if self.params.linux && sample.is_some() && acked > 0.0 {
            self.aggregation.update(ack.now, acked, self.round_start, self.bandwidth.max, self.cwnd);
        }
        self.check_phase(&seen);
        self.check_full_pipe(sample.is_some_and(|sample| sample.app_limited));
        self.check_drain(&seen);
        let expired = self.update_rtprop(ack.now, ack.rtt);
        self.check_probe_rtt(&seen, expired);

        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(&seen);
    }

    fn on_event(&mut self, _: Instant, event: Event) {
        match event {
            Event::Loss => {
                self.prior_cwnd = self.saved_cwnd();
                self.recovering = true;
                // What just arrived may be replaced; the rest of the window waits for an RTT.
                self.cwnd = self.in_flight + self.acked.max(1.0);
                self.packet_conservation = true;
                self.next_round_delivered = self.estimator.delivered();
            }
            Event::Timeout => {
                self.prior_cwnd = self.saved_cwnd();
                self.recovering = true;
                self.packet_conservation = false;
                self.cwnd = 1.0;
                self.in_flight = 0.0;
            }
            Event::Recovered | Event::Spurious => {
                self.recovering = false;
                self.packet_conservation = false;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
            }
            Event::Marked | Event::Idle => {} // not asked for; `stamp` sees pauses
            Event::SynsLost => {
                (self.cwnd, self.initial) = (1.0, 1.0);
                self.pacing_rate = self.params.high_gain / RTT_NOMINAL.as_secs();
            }
        }
        self.bound_cwnd();
    }

    fn limit(&self) -> SendLimit {
        let packet = self.packet;
        SendLimit {
            window: Some(self.cwnd * packet),
            pacing: Some(self.pacing_rate * packet / Duration::from_millis(1000)),
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("cwnd", self.cwnd);
        probe.record("btlbw", self.bandwidth.max);
        if let Some((rtprop, _)) = self.rtprop {
            probe.record("rtprop", rtprop.as_secs());
        }
        probe.record("pacing_gain", self.pacing_gain);
    }
}
