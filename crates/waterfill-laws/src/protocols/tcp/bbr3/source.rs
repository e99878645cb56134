//! Source law of BBRv3: its state, and the calls by the host.

use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::protocols::tcp::bbr::MaxFilter;
use crate::protocols::tcp::delivery::{Estimator, Note, Times};
use crate::units::{Duration, Instant, Volume};

use super::Bbr3;
use super::filters::{Departure, Departures, MaxBandwidth};
use super::params::Params;

/// BBR.MinPipeCwnd in packets: fewer would stall a sender whose receiver delays acknowledgements.
pub(super) const MIN_PIPE_CWND: f64 = 4.0;
/// Minimum send quantum in packets.
pub(super) const QUANTUM_MIN: f64 = 2.0;
/// RTT assumed for the first pacing rate, before any RTT is measured (bbr-06 §5.6.2).
const RTT_NOMINAL: Duration = Duration::from_millis(1);

/// BBR.state, with the numbers of the signal `state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// `[bbr-06:§5.3.3.9]` IsInAProbeBWState.
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `[bbr-06:§5.3.3.9]` IsProbingBW.
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// BBR.ack_phase: what acknowledgements say about the last probe for bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Rate sample of an acknowledgement (RS.* in the draft), in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) now: Instant,
    pub(super) rtt: Option<Duration>,
    pub(super) newly_acked: f64,
    /// RS.prior_delivered; `None` without newly delivered data.
    pub(super) prior_delivered: Option<f64>,
    pub(super) delivered: f64,
    /// Packets/s; 0 if there is no reliable rate.
    pub(super) delivery_rate: f64,
    pub(super) app_limited: bool,
    pub(super) tx_in_flight: f64,
    pub(super) lost: f64,
}

/// State saved at the start of a recovery, in case it is spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// State that the recovery has ended.
    pub(super) state: Option<State>,
    pub(super) bw_shortterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) inflight_longterm: f64,
}

/// Source of BBRv3.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the draft's own flags, each with a life of its own")]
pub struct Source {
    pub(super) params: Params,
    pub(super) packet: Volume,
    pub(super) seed: u64,
    pub(super) initial_cwnd: f64,

    // C.*
    pub(super) estimator: Estimator,
    pub(super) departures: Departures,
    pub(super) in_flight: f64,
    /// C.lost; `reported` are those since the last acknowledgement.
    pub(super) lost: f64,
    reported: f64,
    /// True once the host has reported a loss, because it then reports all.
    losses_are_dated: bool,
    pub(super) cwnd: f64,
    pub(super) pacing_rate: f64,
    pub(super) send_quantum: f64,
    pub(super) prior_cwnd: f64,
    pub(super) recovering: bool,
    /// True if the application had nothing more to send after the last packet.
    no_unsent_data: bool,
    /// True if the window was fully used, in this round and in the one before.
    pub(super) cwnd_limited: [bool; 2],

    pub(super) state: State,
    pub(super) pacing_gain: f64,
    pub(super) cwnd_gain: f64,
    pub(super) round_count: u64,
    pub(super) round_start: bool,
    pub(super) next_round_delivered: f64,
    pub(super) idle_restart: bool,
    pub(super) drain_start_round: u64,

    // The model.
    pub(super) max_bw: MaxBandwidth,
    pub(super) bw: f64,
    pub(super) bw_shortterm: f64,
    pub(super) bw_latest: f64,
    pub(super) inflight_longterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) inflight_latest: f64,
    pub(super) min_rtt: Duration,
    pub(super) min_rtt_stamp: Instant,
    pub(super) extra_acked_interval_start: Instant,
    pub(super) extra_acked_delivered: f64,
    pub(super) extra_acked_filter: MaxFilter,
    pub(super) extra_acked: f64,

    // Losses.
    pub(super) loss_round_delivered: f64,
    pub(super) loss_round_start: bool,
    pub(super) is_loss_in_round: bool,
    /// True if the round of a loss begins with the next acknowledgement.
    loss_round_pending: bool,
    /// Number of acknowledgements in this round that report losses.
    pub(super) loss_events: u32,
    pub(super) undo: Undo,
    /// True if `undo` is of a loss whose recovery has not ended.
    pub(super) undo_saved: bool,

    // Startup and probes.
    pub(super) full_bw_reached: bool,
    pub(super) full_bw_now: bool,
    pub(super) full_bw: f64,
    pub(super) full_bw_count: u32,
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) bw_probe_up_acked: f64,
    pub(super) probe_up_acked_per_inc: f64,
    pub(super) bw_probe_up_rounds: u32,
    pub(super) rounds_since_probe_up: u64,
    pub(super) bw_probe_wait: Duration,
    /// Number of waits drawn.
    pub(super) waits: u64,
    pub(super) cycle_stamp: Instant,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,

    // ProbeRTT.
    pub(super) probe_rtt_min_delay: Duration,
    pub(super) probe_rtt_min_stamp: Instant,
    pub(super) probe_rtt_expired: bool,
    /// BBR.probe_rtt_done_stamp; `None` until little enough is in flight.
    pub(super) probe_rtt_done_stamp: Option<Instant>,
    pub(super) probe_rtt_round_done: bool,
}

impl Source {
    /// `[bbr-06:§5.2.1]` OnInit. RTTs are set by the answer to the SYN.
    pub(super) fn new(params: &Params, connection: &Connection) -> Self {
        let initial_cwnd = connection.initial_window / connection.packet;
        let mut source = Self {
            params: params.clone(),
            packet: connection.packet,
            seed: connection.seed,
            initial_cwnd,
            cwnd: initial_cwnd,
            send_quantum: QUANTUM_MIN,
            bw_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            min_rtt: Duration::MAX,
            probe_rtt_min_delay: Duration::MAX,
            probe_up_acked_per_inc: f64::INFINITY,
            ..Self::default()
        };
        source.init_pacing_rate(RTT_NOMINAL);
        source.enter(State::Startup);
        source
    }

    /// Starts the clocks when the SYN's answer gives the first RTT.
    fn on_syn_ack(&mut self, ack: &Ack<Note>) {
        if self.min_rtt != Duration::MAX {
            return;
        }
        (self.min_rtt, self.min_rtt_stamp) = (ack.smoothed_rtt, ack.now);
        (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (ack.smoothed_rtt, ack.now);
        self.extra_acked_interval_start = ack.now;
        self.init_pacing_rate(ack.smoothed_rtt);
    }

    /// `[bbr-06:§5.6.2]` InitPacingRate.
    fn init_pacing_rate(&mut self, rtt: Duration) {
        self.pacing_rate = self.params.startup_pacing_gain * self.initial_cwnd / rtt.as_secs();
    }

    /// `[bbr-06:§4.1.2.3]` GenerateRateSample, with the state at the departure of the newest acknowledged packet.
    pub(super) fn generate_rate_sample(&mut self, ack: &Ack<Note>) -> Sample {
        let newly_acked = ack.acked / self.packet;
        let rtt = ack.rtt.unwrap_or(ack.smoothed_rtt);
        let times = Times { now: ack.now, rtt, base_rtt: ack.base_rtt };
        let sample = self.estimator.on_ack(newly_acked, &ack.echo, times);
        let sent_at = ack.now.before(rtt);
        let unknown = Departure { at: sent_at, in_flight: self.in_flight, lost: self.lost, app_limited: false };
        let sent = self.departures.at(sent_at).unwrap_or(unknown);
        self.departures.forget(sent_at, ack.smoothed_rtt);
        self.find_undated_losses(ack, newly_acked, &sent);
        let delivered_since = |prior: u64| self.estimator.delivered() - prior as f64;
        Sample {
            now: ack.now,
            rtt: ack.rtt,
            newly_acked,
            prior_delivered: sample.map(|sample| sample.prior_delivered as f64),
            delivered: sample.map_or(0.0, |sample| delivered_since(sample.prior_delivered)),
            delivery_rate: sample.and_then(|sample| sample.rate).unwrap_or(0.0),
            app_limited: sample.is_some_and(|sample| sample.app_limited),
            tx_in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
        }
    }

    /// Handles losses that the host has not reported one by one, because it keeps no sending times. They show in the
    /// data in flight.
    fn find_undated_losses(&mut self, ack: &Ack<Note>, newly_acked: f64, sent: &Departure) {
        let in_flight = ack.in_flight / self.packet;
        let undated = self.in_flight - newly_acked - in_flight;
        self.in_flight = in_flight;
        let undated = if self.losses_are_dated { 0.0 } else { undated };
        if undated > 0.0 {
            self.lose(ack.now, undated, sent);
        }
        let events = self.reported > 0.0 || undated > 0.0;
        self.loss_events = self.loss_events.saturating_add(u32::from(events));
        self.reported = 0.0;
    }

    /// `[bbr-06:§4.1.2.4]` CheckIfApplicationLimited, when a packet follows after there was nothing to send.
    fn check_if_application_limited(&mut self, in_flight: f64) {
        if self.no_unsent_data && in_flight + 1.0 <= self.cwnd {
            self.estimator.limit_by_application(in_flight);
        }
    }

    /// `[bbr-06:§5.2.3]` UpdateOnACK.
    fn update_on_ack(&mut self, ack: &Ack<Note>) {
        let rs = self.generate_rate_sample(ack);
        if std::mem::take(&mut self.loss_round_pending) {
            self.loss_round_delivered = self.estimator.delivered();
        }
        self.update_model_and_state(&rs);
        self.set_pacing_rate(self.pacing_gain);
        self.set_send_quantum();
        self.set_cwnd(&rs);
    }

    /// `[bbr-06:§5.2.3]` UpdateModelAndState.
    fn update_model_and_state(&mut self, rs: &Sample) {
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(rs.now);
        self.update_probe_bw_cycle_phase(rs);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs);
        self.advance_latest_delivery_signals(rs);
        self.bw = self.max_bw.max().min(self.bw_shortterm);
    }

    /// `[bbr-06:§5.5.10.2]` NoteLoss.
    pub(super) fn note_loss(&mut self) {
        self.loss_round_pending |= !self.is_loss_in_round;
        self.save_state_upon_loss();
        self.is_loss_in_round = true;
    }

    /// Handles the loss of several packets with one departure, one by one while that may end a probe.
    fn lose(&mut self, now: Instant, packets: f64, departure: &Departure) {
        let mut left = packets;
        while left > 0.0 && self.is_bw_probe_sample {
            self.lost += left.min(1.0);
            left -= 1.0;
            self.handle_lost_packet(now, departure);
        }
        self.lost += left.max(0.0);
        self.note_loss();
    }

    /// `[bbr-06:§5.6.4.4]` OnEnterRTO. All packets in flight are lost; the host does not report them one by one.
    fn on_timeout(&mut self, now: Instant) {
        self.save_cwnd();
        let in_flight = std::mem::take(&mut self.in_flight);
        self.lose(now, in_flight, &self.departures.oldest().unwrap_or_default());
        self.recovering = true;
        self.cwnd = self.in_flight + 1.0;
    }
}

impl crate::protocol::Source<Bbr3> for Box<Source> {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self::new(Source::new(params, connection))
    }

    fn stamp(&mut self, sending: &Sending) -> Note {
        if sending.kind == PacketKind::Syn {
            return Note::default();
        }
        let before = sending.in_flight / self.packet;
        self.check_if_application_limited(before);
        self.no_unsent_data = sending.app_limited;
        self.handle_restart_from_idle(sending.now, before);
        let app_limited = self.estimator.is_app_limited();
        let note = self.estimator.on_send(sending);
        self.in_flight = before + 1.0;
        let (in_flight, lost) = (self.in_flight, self.lost);
        self.departures.push(Departure { at: sending.now, in_flight, lost, app_limited });
        self.cwnd_limited[0] |= self.in_flight + 1.0 > self.cwnd;
        note
    }

    fn on_ack(&mut self, ack: &Ack<Note>) {
        match ack.kind {
            PacketKind::Syn => self.on_syn_ack(ack),
            _ => self.update_on_ack(ack),
        }
    }

    fn on_lost(&mut self, now: Instant, sent: Instant) {
        self.losses_are_dated = true;
        self.lost += 1.0;
        self.reported += 1.0;
        if let Some(departure) = self.departures.at(sent) {
            self.handle_lost_packet(now, &departure);
        } else {
            self.note_loss();
        }
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Loss => {
                self.save_cwnd();
                self.save_state_upon_loss();
                self.recovering = true;
            }
            Event::Timeout => self.on_timeout(now),
            Event::Recovered => {
                (self.recovering, self.undo_saved) = (false, false);
                self.restore_cwnd();
            }
            Event::Spurious => {
                (self.recovering, self.undo_saved) = (false, false);
                self.handle_spurious_loss_detection();
            }
            Event::Marked | Event::Idle => {} // not asked for; `stamp` sees pauses
            Event::SynsLost => {
                (self.cwnd, self.initial_cwnd) = (1.0, 1.0);
                self.init_pacing_rate(RTT_NOMINAL);
            }
        }
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
        probe.record("state", f64::from(self.state as u8));
        probe.record("round_count", self.round_count as f64);
        probe.record("bw", self.bw);
        probe.record("max_bw", self.max_bw.max());
        if self.min_rtt != Duration::MAX {
            probe.record("min_rtt", self.min_rtt.as_secs());
        }
        for (name, bound) in [
            ("bw_shortterm", self.bw_shortterm),
            ("inflight_longterm", self.inflight_longterm),
            ("inflight_shortterm", self.inflight_shortterm),
        ] {
            if bound.is_finite() {
                probe.record(name, bound);
            }
        }
        probe.record("extra_acked", self.extra_acked);
        probe.record("pacing_gain", self.pacing_gain);
    }
}
