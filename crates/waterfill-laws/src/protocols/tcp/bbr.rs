//! BBR, version 1: sends at the bottleneck's bandwidth, with no more in flight than the path holds twice.
//!
//! # Law
//! The model of the path:
//! - `[bbr-00:BtlBw]` the largest delivery rate of the last ten round trips, samples that the application limited left
//!   out unless they are larger
//! - `[bbr-00:RTprop]` the smallest round trip of the last ten seconds
//!
//! What follows from it:
//! - `[bbr-00:pacing_rate]` `pacing_rate = pacing_gain·BtlBw`; before the pipe is full it only grows
//! - `[bbr-00:send_quantum]` what the host sends at a time: a packet, or with `linux` a millisecond's worth
//! - `[bbr-00:Inflight]` `Inflight(gain) = gain·BtlBw·RTprop + 3·send_quantum`
//! - `[bbr-00:cwnd]` `cwnd ← min(cwnd + acked, Inflight(cwnd_gain))`, at least 4 packets
//!
//! The state machine:
//! - **Startup**: both gains 2/ln 2, so that the rate doubles in a round trip; over when BtlBw has not grown by a quarter
//!   in three round trips (`[bbr-00:full_pipe]`)
//! - **Drain**: pacing gain ln 2/2, until no more than Inflight(1) is in flight
//! - **ProbeBW**: eight phases of an RTprop with pacing gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, begun at random
//!   anywhere but the second; cwnd_gain 2
//! - **ProbeRTT**: where RTprop has not been seen for ten seconds, 4 packets in flight for 200 ms and a round trip
//!
//! # Symbols
//! | draft | here | unit |
//! |---|---|---|
//! | BBR.BtlBw, BBR.RTprop | `bandwidth`, `rtprop` | packets/s, s |
//! | cwnd, BBR.prior_cwnd | `cwnd`, `prior_cwnd` | packets |
//! | BBR.round_count, next_round_delivered | `round`, `next_round_delivered` | –, packets |
//! | BBR.full_bw, full_bw_count, filled_pipe | `full_bandwidth`, `full_count`, `filled_pipe` | packets/s |
//! | BBR.cycle_index, cycle_stamp | `phase`, `phase_began` | –, s |
//! | rs, P, C | [`delivery`](super::delivery) | packets, s |
//!
//! # Header
//! [`Note`]: the host's own note on a packet, nothing on the wire.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Source`]: paced; the law's window holds at all times (no rate reduction by the host). A loss does not change the
//! model. In the first round trip of a recovery packets are conserved, one sent for one delivered; then the window grows
//! again, and at the end of the recovery it is what it was before. After a time-out it starts at one packet.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - send_quantum is one packet, as the host spaces out single ones; §4.2.2 counts a millisecond's worth.
//! - Packets lost are told from what was in flight before an acknowledgement and is after it.
//! - The filter of BtlBw is exact: the largest of each of the last ten rounds is kept, and rounds end only with a sample.
//! - Linux's tcp_bbr.c is not the draft. The parameter `linux` takes from it what moves a lone flow's queue: send_quantum
//!   counts a millisecond's worth also where packets leave one by one (at 100 Mbit/s 8 packets, so 24 more in flight, and
//!   after each probe up to 2.9 ms of queue remain); whole windows are rounded up to even, with 2 packets more while
//!   probing, which ends a send_quantum early; pacing stays 1 % below BtlBw; a round trip as small as RTprop does not renew
//!   it; and once the pipe is full the window has room for what acknowledgements bring at a time beyond BtlBw
//!   ([`Aggregation`]). Not here is the estimator of policers.
//! - ECN is not answered, so it is not asked for.
//!
//! # Validation
//! One flow fills its link with less than a BDP of queue and knows its RTT; 1 % of random loss leaves at least 90 %
//! (`tcp_delay_based` of the simulator).
//!
//! # References
//! `bbr-00`: Cardwell, Cheng, Hassas Yeganeh, Jacobson, draft-cardwell-iccrg-bbr-congestion-control-00, 2017. Cheng,
//! Cardwell, Hassas Yeganeh, Jacobson, draft-cheng-iccrg-delivery-rate-estimation-00, 2017.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Ecn, Event, Host, Info, Kind, Limit, PacketKind, Probe, Protocol, Reduction,
    Retransmission, Sending, Signal,
};
use crate::protocols::tcp::WINDOW_MAX;
use crate::protocols::tcp::delivery::{Estimator, Note, RateSample, Times};
use crate::units::{Duration, Instant, Volume};

crate::params! {
    /// Parameters of BBR.
    pub struct Params {
        /// BBRHighGain: pacing and window gain of Startup, and one over the pacing gain of Drain.
        high_gain: f64 = 2.0 / std::f64::consts::LN_2, "bbr-00 §4.3.2.1";
        /// Window gain of ProbeBW.
        cwnd_gain: f64 = 2.0, "bbr-00 §4.3.4";
        /// RTpropFilterLen: how long a smallest round trip is believed.
        rtprop_window: Duration = Duration::from_millis(10_000), "bbr-00 §4.1.2.2";
        /// ProbeRTTDuration: how long ProbeRTT keeps 4 packets in flight, at least.
        probe_rtt: Duration = Duration::from_millis(200), "bbr-00 §4.3.5";
        /// Whether to do as Linux's tcp_bbr.c where it differs from the draft: send_quantum, even windows, 1 % of margin,
        /// room for aggregated acknowledgements.
        linux: bool = false, "bbr-00";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.high_gain > 1.0 && self.high_gain <= 100.0, "high_gain", "a number above 1, up to 100")?;
        require(self.cwnd_gain >= 1.0 && self.cwnd_gain <= 100.0, "cwnd_gain", "a number from 1 to 100")?;
        require(!self.rtprop_window.is_zero(), "rtprop_window", "a time above zero")
    }
}

/// BtlBwFilterLen: rounds that a largest rate is believed (bbr-00 §4.1.1.2).
const ROUNDS: usize = 10;
/// BBRMinPipeCwnd (bbr-00 §4.2.3.3): enough for delayed acknowledgements not to stall it.
const WINDOW_MIN: f64 = 4.0;
/// The pacing gains of ProbeBW's phases (bbr-00 §4.3.4).
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// A pipe is full when the bandwidth has grown by less than this (bbr-00 §4.3.2.2) …
const FULL_GROWTH: f64 = 1.25;
/// … in so many rounds.
const FULL_ROUNDS: u32 = 3;
/// The round trip that the first pacing rate assumes where none is known (bbr-00 §4.2.1).
const RTT_NOMINAL: Duration = Duration::from_millis(1);
/// send_quantum's time, and its largest size in bytes (bbr-00 §4.2.2).
const QUANTUM: Duration = Duration::from_millis(1);
const QUANTUM_MAX: f64 = 65_535.0;
/// Below this rate, in bit/s, a send_quantum may be a single packet; above it is two at least (bbr-00 §4.2.2).
const QUANTUM_OF_ONE: f64 = 1.2e6;
/// The share by which Linux's pacing stays below the bandwidth (tcp_bbr.c: bbr_pacing_margin_percent).
const LINUX_MARGIN: f64 = 0.01;

/// The largest rate of each of the last [`ROUNDS`] rounds that had one.
#[derive(Clone, Copy, Debug, Default)]
struct MaxFilter {
    of_rounds: [f64; ROUNDS],
    newest: u32,
    max: f64,
}

impl MaxFilter {
    /// `[bbr-00:BtlBw]` The filter after a sample in a round.
    fn update(&mut self, round: u32, rate: f64) {
        for gone in (self.newest..round).take(ROUNDS) {
            self.of_rounds[(gone as usize + 1) % ROUNDS] = 0.0;
        }
        self.newest = round;
        let of_round = &mut self.of_rounds[round as usize % ROUNDS];
        *of_round = of_round.max(rate);
        self.max = self.of_rounds.iter().copied().fold(0.0, f64::max);
    }
}

/// How much more acknowledgements brought at a time than the bandwidth lets through, at most, in the last 5 to 10 rounds
/// (tcp_bbr.c: bbr_update_ack_aggregation). Where more comes at a time the sender would else be silent in between.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Packets: the most of this window of rounds, and of the last.
    extra: [f64; 2],
    rounds: u32,
    /// Since when acknowledgements came faster than the bandwidth, and how many packets they brought.
    began: Option<Instant>,
    acked: f64,
}

impl Aggregation {
    /// bbr_extra_acked_win_rtts.
    const ROUNDS: u32 = 5;
    /// bbr_extra_acked_max_us: no more room than for what comes in this time.
    const TIME_MAX: Duration = Duration::from_millis(100);
    /// bbr_ack_epoch_acked_reset_thresh, packets.
    const ACKED_MAX: f64 = 1_048_576.0;

    fn update(&mut self, now: Instant, acked: f64, round_start: bool, bandwidth: f64, cwnd: f64) {
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

    /// Packets.
    fn room(&self, bandwidth: f64) -> f64 {
        self.extra[0].max(self.extra[1]).min(bandwidth * Self::TIME_MAX.as_secs())
    }
}

/// `[bbr-00:Inflight]` Packets in flight that `gain` times the path holds, and room for what hosts hold back.
#[must_use]
pub fn inflight(gain: f64, bandwidth: f64, rtprop: Duration, send_quantum: f64) -> f64 {
    gain * bandwidth * rtprop.as_secs() + 3.0 * send_quantum
}

/// `[bbr-00:send_quantum]` Whole packets of so many bytes that leave in a millisecond at a pacing rate in packets/s.
#[must_use]
pub fn send_quantum(pacing_rate: f64, packet: f64) -> f64 {
    let least = if pacing_rate * packet * 8.0 < QUANTUM_OF_ONE { 1.0 } else { 2.0 };
    ((pacing_rate * packet * QUANTUM.as_secs()).min(QUANTUM_MAX) / packet).floor().max(least)
}

/// A number that looks random, of a connection's seed and a count (the finaliser of MurmurHash3 in Steele's SplitMix64).
fn drawn(seed: u64, count: u64) -> u64 {
    let mut z = seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// The protocol `bbr`.
#[derive(Debug)]
pub struct Bbr;

impl Protocol for Bbr {
    const INFO: Info = Info {
        name: "bbr",
        summary: "BBR v1: paced at the measured bandwidth of the bottleneck (draft-cardwell-iccrg-bbr-00)",
        kind: Kind::EndToEnd,
        backends: &["sim"],
        paced: true,
        host: Host { retransmission: Retransmission::Sack, reduction: Reduction::Law, ecn: Ecn::Off, notes: true },
        signals: &[
            Signal { name: "cwnd", unit: "packets", doc: "congestion window" },
            Signal { name: "btlbw", unit: "packets/s", doc: "bandwidth of the bottleneck, as measured" },
            Signal { name: "rtprop", unit: "s", doc: "round trip without a queue, as measured" },
            Signal { name: "pacing_gain", unit: "1", doc: "pacing rate over btlbw" },
        ],
    };
    type Params = Params;
    type Header = Note;
    type Echo = Note;
    type Router = ();
    type Receiver = EchoLast<Note>;
    // On the heap: it is larger than any other law's, and every flow's place is as large as the largest.
    type Source = Box<Source>;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

/// What an acknowledgement changed, in packets.
#[derive(Clone, Copy, Debug)]
struct Seen {
    now: Instant,
    acked: f64,
    lost: f64,
    in_flight: f64,
    prior_in_flight: f64,
}

/// The source of `bbr`.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the draft's own flags, each with a life of its own")]
pub struct Source {
    params: Params,
    packet: Volume,
    seed: u64,
    initial: f64,
    estimator: Estimator,
    /// In flight after the last packet sent, or acknowledgement.
    in_flight: f64,
    /// What the last acknowledgement said had arrived.
    acked: f64,

    bandwidth: MaxFilter,
    aggregation: Aggregation,
    /// The smallest round trip, and when it was last seen; none before the first.
    rtprop: Option<(Duration, Instant)>,
    round: u32,
    round_start: bool,
    next_round_delivered: f64,

    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Packets/s.
    pacing_rate: f64,
    cwnd: f64,
    prior_cwnd: f64,

    filled_pipe: bool,
    full_bandwidth: f64,
    full_count: u32,

    phase: usize,
    phase_began: Instant,
    /// How often ProbeBW was entered: each time draws anew.
    entered: u32,

    /// When ProbeRTT may end; none before there is little enough in flight.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,

    recovering: bool,
    packet_conservation: bool,
}

impl Source {
    fn new(params: &Params, connection: &Connection) -> Self {
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

    fn inflight(&self, gain: f64) -> f64 {
        self.inflight_and(gain, 0.0)
    }

    /// And so many packets more.
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

    /// `[bbr-00:RTprop]`; whether it had expired.
    fn update_rtprop(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.rtprop.is_some_and(|(_, seen)| now > seen + self.params.rtprop_window);
        if let Some(rtt) = rtt {
            let renews = |rtprop| rtt < rtprop || rtt == rtprop && !self.params.linux;
            if expired || self.rtprop.is_none_or(|(rtprop, _)| renews(rtprop)) {
                self.rtprop = Some((rtt, now));
            }
        }
        expired
    }

    /// `[bbr-00:full_pipe]`
    fn check_full_pipe(&mut self, app_limited: bool) {
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

    fn enter_probe_bandwidth(&mut self, now: Instant) {
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

    fn is_phase_over(&self, seen: &Seen) -> bool {
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

    /// `[bbr-00:pacing_rate]`
    fn set_pacing_rate(&mut self, gain: f64) {
        let margin = if self.params.linux { LINUX_MARGIN } else { 0.0 };
        let rate = gain * self.bandwidth.max * (1.0 - margin);
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `[bbr-00:cwnd]`
    fn set_cwnd(&mut self, seen: &Seen) {
        // Without `linux` nothing is noted, and there is none.
        let room = if self.filled_pipe { self.aggregation.room(self.bandwidth.max) } else { 0.0 };
        let target = self.inflight_and(self.cwnd_gain, room);
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

    /// BBRSaveCwnd: the window to come back to.
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
                // [bbr-00:init] The first window in the first round trip.
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
                // What just arrived may be replaced; the rest of the window waits for a round trip.
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
            Event::Recovered => {
                self.recovering = false;
                self.packet_conservation = false;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
            }
            Event::Marked => {} // not asked for
        }
        self.bound_cwnd();
    }

    fn limit(&self) -> Limit {
        let packet = self.packet;
        Limit {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::testing::connection;

    const PACKET: f64 = 1500.0;

    fn source(params: &Params, connection: &Connection) -> Box<Source> {
        Box::new(Source::new(params, connection))
    }

    fn packets(n: f64) -> Volume {
        Volume::from_bytes(n * PACKET)
    }

    /// A source, and a pipe of 1000 packets/s and 100 ms that delivers what it sends and queues the rest.
    struct Path {
        bbr: Box<Source>,
        now: Duration,
        sent: VecDeque<(Note, Duration)>,
        base_rtt: Duration,
    }

    impl Path {
        fn new() -> Self {
            let mut bbr = source(&Params::default(), &connection());
            let base_rtt = Duration::from_millis(100);
            let now = Duration::from_millis(1000);
            bbr.on_ack(&Ack { kind: PacketKind::Syn, ..Ack::new(Instant::ZERO + now, Note::default(), base_rtt) });
            let mut path = Self { bbr, now, sent: VecDeque::new(), base_rtt };
            path.fill(true);
            path
        }

        /// Sends what the window allows, at once: of the pacing only what it says is looked at.
        fn fill(&mut self, more: bool) {
            let window = self.bbr.cwnd as usize;
            while more && self.sent.len() < window {
                let now = Instant::ZERO + self.now;
                let in_flight = packets(self.sent.len() as f64);
                let note = self.bbr.stamp(&Sending { in_flight, ..Sending::new(now, PacketKind::Data, packets(1.0)) });
                self.sent.push_back((note, self.now));
            }
        }

        /// The next packet arrives: a millisecond after the one before, and not before its round trip is over.
        fn step(&mut self) {
            let (note, sent) = self.sent.pop_front().expect("something is in flight");
            self.now = (self.now + Duration::from_millis(1)).max(sent + self.base_rtt);
            self.hear(note, sent, 0.0);
            self.fill(true);
        }

        fn hear(&mut self, note: Note, sent: Duration, lost: f64) {
            let in_flight = packets(self.sent.len() as f64 - lost);
            let ack = Ack {
                acked: packets(1.0),
                in_flight,
                base_rtt: self.base_rtt,
                ..Ack::new(Instant::ZERO + self.now, note, self.now - sent)
            };
            self.bbr.on_ack(&ack);
        }

        fn steps_until(&mut self, most: u32, what: impl Fn(&Source) -> bool) -> u32 {
            (0..most)
                .find(|_| {
                    self.step();
                    what(&self.bbr)
                })
                .unwrap_or(most)
        }
    }

    #[test]
    fn bbr_00_btlbw_is_the_largest_of_ten_rounds() {
        let mut filter = MaxFilter::default();
        filter.update(1, 100.0);
        filter.update(2, 80.0);
        filter.update(2, 90.0);
        filter.update(10, 50.0);
        assert_eq!(filter.max, 100.0);
        filter.update(11, 40.0);
        assert_eq!(filter.max, 90.0, "round 1 is ten back");
        filter.update(30, 10.0);
        assert_eq!(filter.max, 10.0);
    }

    #[test]
    fn bbr_00_inflight_by_hand() {
        // 1000 packets/s × 100 ms twice, and three packets.
        assert!((inflight(2.0, 1000.0, Duration::from_millis(100), 1.0) - 203.0).abs() < 1e-9);
        assert_eq!(source(&Params::default(), &connection()).inflight(2.0), 10.0, "the first window");
    }

    #[test]
    fn bbr_00_send_quantum_by_hand() {
        assert_eq!(send_quantum(8333.0, 1500.0), 8.0, "100 Mbit/s: 8.3");
        assert_eq!(send_quantum(90.0, 1500.0), 1.0, "1.1 Mbit/s");
        assert_eq!(send_quantum(833.0, 1500.0), 2.0, "10 Mbit/s: 0.8, and two at least");
        assert_eq!(send_quantum(833_333.0, 1500.0), 43.0, "10 Gbit/s: 64 kB");
    }

    #[test]
    fn aggregation_is_what_comes_beyond_the_bandwidth() {
        let mut aggregation = Aggregation::default();
        let mut at = |ms: f64, acked: f64, round_start: bool| {
            aggregation.update(Instant::from_secs(ms / 1e3), acked, round_start, 1000.0, 50.0);
            aggregation.room(1000.0)
        };
        // A packet a millisecond, as the bandwidth says: the acknowledgement itself.
        assert_eq!((0..5).map(|n| at(f64::from(n), 1.0, false)).fold(0.0, f64::max), 1.0);
        // Silence, then six at a time, and four half a millisecond later: ten, less a half.
        at(10.0, 6.0, false);
        assert!((at(10.5, 4.0, false) - 9.5).abs() < 1e-9);
        // It is believed for five rounds at least, ten at most.
        for n in 0..9 {
            assert!((at(20.0 + f64::from(n), 1.0, true) - 9.5).abs() < 1e-9, "round {n}");
        }
        assert!(at(40.0, 1.0, true) < 2.0);
        // No more than the window, nor than comes in 100 ms.
        assert_eq!(at(50.0, 80.0, false), 50.0);
        assert_eq!(aggregation.room(100.0), 10.0);
    }

    #[test]
    fn linux_paces_below_the_bandwidth_and_keeps_more_in_flight() {
        let params = Params { linux: true, ..Params::default() };
        let mut bbr = source(&params, &connection());
        bbr.bandwidth.update(1, 10_000.0);
        bbr.rtprop = Some((Duration::from_millis(10), Instant::ZERO));
        bbr.filled_pipe = true;
        bbr.set_pacing_rate(1.0);
        assert!((bbr.pacing_rate - 9900.0).abs() < 1e-6);
        // 120 Mbit/s: 9.9 packets in a millisecond. 100 + 3·9, rounded up to even.
        assert_eq!(bbr.inflight(1.0), 128.0);
        bbr.state = State::ProbeBandwidth;
        bbr.phase = 0;
        bbr.pacing_gain = 1.25;
        // 125 + 27, and 2 while probing; 9 are about to leave.
        assert_eq!(bbr.inflight(1.25), 154.0);
        let now = Instant::from_secs(5.0);
        let seen = Seen { now, acked: 1.0, lost: 0.0, in_flight: 140.0, prior_in_flight: 145.0 };
        assert!(bbr.is_phase_over(&seen));
        assert!(!bbr.is_phase_over(&Seen { prior_in_flight: 144.0, ..seen }));
    }

    #[test]
    fn the_first_rate_is_the_first_window_in_a_round_trip() {
        let path = Path::new();
        assert!((path.bbr.pacing_rate - 2.0 / std::f64::consts::LN_2 * 10.0 / 0.1).abs() < 1e-6);
        let limit = path.bbr.limit();
        assert_eq!(limit.window, Some(packets(10.0)));
        assert!((limit.pacing.unwrap().as_bps() - path.bbr.pacing_rate * 12_000.0).abs() < 1e-3);
    }

    #[test]
    fn startup_finds_the_bandwidth_then_drains_and_probes() {
        let mut path = Path::new();
        path.steps_until(10_000, |bbr| bbr.state != State::Startup);
        assert_eq!((path.bbr.state, path.bbr.filled_pipe), (State::Drain, true));
        assert!((path.bbr.bandwidth.max - 1000.0).abs() < 20.0, "{}", path.bbr.bandwidth.max);
        assert!((path.bbr.pacing_gain - std::f64::consts::LN_2 / 2.0).abs() < 1e-12);
        // A window that fills at once cannot drain; here the application falls silent.
        while path.bbr.state == State::Drain {
            let (note, sent) = path.sent.pop_front().unwrap();
            path.now += Duration::from_millis(1);
            path.hear(note, sent, 0.0);
        }
        assert_eq!(path.bbr.state, State::ProbeBandwidth);
        assert!(path.sent.len() as f64 <= path.bbr.inflight(1.0) && path.sent.len() > 95);
        assert_eq!(path.bbr.cwnd_gain, 2.0);
        assert_ne!(path.bbr.phase, 1, "never begun in the phase that drains");
    }

    #[test]
    fn a_cycle_is_eight_phases_of_a_round_trip() {
        let mut path = Path::new();
        path.steps_until(10_000, |bbr| bbr.state == State::Drain);
        path.bbr.enter_probe_bandwidth(Instant::ZERO + path.now);
        path.steps_until(1000, |bbr| bbr.phase == 0);
        let mut gains = Vec::new();
        for _ in 0..8 {
            gains.push(path.bbr.pacing_gain);
            let phase = path.bbr.phase;
            let took = path.steps_until(1000, |bbr| bbr.phase != phase);
            assert!((99..=102).contains(&took), "a phase of {took} ms");
        }
        assert_eq!(gains, GAINS);
    }

    #[test]
    fn probing_goes_on_until_more_is_in_flight_or_lost() {
        let mut bbr = Path::new().bbr;
        bbr.bandwidth.update(1, 1000.0);
        bbr.pacing_gain = 1.25;
        let now = Instant::from_secs(5.0);
        let seen = Seen { now, acked: 1.0, lost: 0.0, in_flight: 100.0, prior_in_flight: 101.0 };
        assert!(!bbr.is_phase_over(&seen), "Inflight(1.25) is 128 packets");
        assert!(bbr.is_phase_over(&Seen { prior_in_flight: 128.0, ..seen }));
        assert!(bbr.is_phase_over(&Seen { lost: 1.0, ..seen }));
        bbr.pacing_gain = 0.75;
        bbr.phase_began = now;
        assert!(bbr.is_phase_over(&seen), "it has drained");
        assert!(!bbr.is_phase_over(&Seen { prior_in_flight: 104.0, ..seen }));
    }

    #[test]
    fn random_phases_differ_by_seed_and_are_none_the_second() {
        let mut seen = [0; 8];
        for seed in 0..700 {
            let mut bbr = source(&Params::default(), &Connection { seed, ..connection() });
            bbr.enter_probe_bandwidth(Instant::ZERO);
            seen[bbr.phase] += 1;
        }
        assert_eq!(seen[1], 0);
        // 700 draws of seven: 100 each, and five standard deviations of √(700·6/49) = 9.3.
        assert!(seen.iter().enumerate().all(|(i, &n)| i == 1 || (54..146).contains(&n)), "{seen:?}");
    }

    #[test]
    fn after_ten_seconds_four_packets_for_200_ms_and_a_round_trip() {
        let mut path = Path::new();
        path.steps_until(10_000, |bbr| bbr.state == State::Drain);
        path.bbr.enter_probe_bandwidth(Instant::ZERO + path.now);
        path.base_rtt = Duration::from_millis(110); // 100 ms is not seen again
        let seen = path.bbr.rtprop.unwrap().1;
        path.steps_until(20_000, |bbr| bbr.state == State::ProbeRtt);
        let unseen = (Instant::ZERO + path.now).since(seen);
        assert!((10_001..=10_002).contains(&(unseen.as_ps() / 1_000_000_000)), "{unseen:?}"); // a step is a millisecond
        let (before, entered) = (path.bbr.prior_cwnd, path.now);
        assert!(before > 190.0);
        path.steps_until(1000, |bbr| bbr.cwnd == 4.0 && bbr.probe_rtt_until.is_some());
        assert!(path.sent.len() <= 5);
        path.steps_until(1000, |bbr| bbr.state != State::ProbeRtt);
        assert_eq!(path.bbr.state, State::ProbeBandwidth);
        assert!(path.now - entered >= Duration::from_millis(200 + 110));
        assert_eq!(path.bbr.rtprop.map(|(rtprop, _)| rtprop), Some(path.base_rtt));
        assert!(path.bbr.cwnd >= before.min(path.bbr.inflight(2.0)) - 1.0, "the window is back: {}", path.bbr.cwnd);
        assert!((path.bbr.bandwidth.max - 1000.0).abs() < 20.0, "four packets in flight say nothing of the bandwidth");
    }

    #[test]
    fn recovery_conserves_packets_for_a_round_and_comes_back() {
        let mut path = Path::new();
        path.steps_until(10_000, |bbr| bbr.state == State::Drain);
        path.bbr.enter_probe_bandwidth(Instant::ZERO + path.now);
        path.steps_until(1000, |bbr| bbr.phase == 2);
        let (before, rate) = (path.bbr.cwnd, path.bbr.pacing_rate);
        let (note, sent) = path.sent.pop_front().unwrap();
        path.now += Duration::from_millis(1);
        path.sent.pop_back(); // lost
        path.hear(note, sent, 0.0);
        path.bbr.on_event(Instant::ZERO + path.now, Event::Loss);
        assert_eq!(path.bbr.cwnd, path.sent.len() as f64 + 1.0, "one for one");
        assert_eq!(path.bbr.pacing_rate, rate, "a loss does not change the model");
        path.fill(true);
        path.step();
        assert!(path.bbr.packet_conservation);
        path.steps_until(1000, |bbr| !bbr.packet_conservation);
        path.bbr.on_event(Instant::ZERO + path.now, Event::Recovered);
        assert!(path.bbr.cwnd >= before - 1.0, "{} of {before}", path.bbr.cwnd);
        path.bbr.on_event(Instant::ZERO + path.now, Event::Timeout);
        assert_eq!(path.bbr.cwnd, 1.0);
        path.bbr.on_event(Instant::ZERO + path.now, Event::Recovered);
        assert!(path.bbr.cwnd >= before - 1.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let params = Params { cwnd_gain: 0.5, ..Params::default() };
        assert_eq!(params.validate().unwrap_err().0, "cwnd_gain: expected a number from 1 to 100");
    }
}
