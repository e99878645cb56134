//! A class: flows that are alike in everything, stepped as one flow whose volume counts many times.
//!
//! The source's law hears what has come back by the end of a step, and then says what is sent in it. Amounts here are
//! those of one flow; only pipes carry the whole class.

use std::collections::VecDeque;

use waterfill_laws::protocol::{Ack, Connection, Event, PacketKind, Probe, Received, Sending};
use waterfill_laws::registry::{AnyEcho, AnyHeader, AnyParams, AnyReceiver, AnySource, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::histogram::Histogram;

use crate::pipe::{Inbox, Parcel, Plain, Step};

/// What the flows of a class share.
#[derive(Clone, Debug)]
pub(crate) struct ClassSpec {
    pub(crate) protocol: ProtocolId,
    pub(crate) count: f64,
    /// When it begins and ends to send, at the entrance of its first link: later by the padding.
    pub(crate) start: Instant,
    pub(crate) stop: Instant,
    /// Padding of a round trip, all of it on the way back.
    ///
    /// A source behind a delay p on both ways is one without it that acts p later and hears 2p later.
    pub(crate) pad: Duration,
    pub(crate) packet_bytes: f64,
    /// Bytes of acknowledgement for a byte of data.
    pub(crate) ack_share: f64,
    /// Bytes on the wire, headers included; infinite without end.
    pub(crate) wire_bytes: f64,
    /// Payload in a byte on the wire.
    pub(crate) payload_share: f64,
    /// Rate at which the application writes.
    pub(crate) demand: Option<Rate>,
    pub(crate) paced: bool,
    pub(crate) base_rtt: Duration,
    /// The summary's window, and the part of it in which the class lives.
    pub(crate) measure: (Instant, Instant),
    pub(crate) counted: (Instant, Instant),
}

/// Where a class is joined to the network: the places of the inbox that it writes and reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joints {
    pub(crate) data_out: usize,
    pub(crate) data_in: usize,
    pub(crate) acks_out: usize,
    pub(crate) acks_in: usize,
}

/// What a receiver answered in one step.
#[derive(Clone, Copy, Debug)]
struct Answer {
    step: u64,
    echo: AnyEcho,
    /// Received up to its end, bytes.
    received: f64,
    /// Age of the data that it answers, s.
    age_s: f64,
    /// Whether the source's law has heard it.
    heard: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Opening,
    Open,
}

/// Flows that are alike.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) spec: ClassSpec,
    pub(crate) joints: Joints,
    source: AnySource,
    receiver: AnyReceiver,
    phase: Phase,
    opened: Instant,
    pub(crate) sent: f64,
    acked: f64,
    /// Received before the oldest answer that is not acknowledged whole.
    answer_start: f64,
    /// Of `acked`, what the law has been told of.
    told: f64,
    /// Known lost.
    pub(crate) lost: f64,
    /// When the source finds losses: three duplicate acknowledgements later, a round trip in a fluid.
    losses: VecDeque<(Instant, f64)>,
    /// Lost since the last recovery, and what had been sent when the present one began.
    loss_debt: f64,
    recovery: Option<f64>,
    base_rtt: Duration,
    latest_rtt: Duration,
    smoothed_rtt: Duration,
    answers: VecDeque<Answer>,
    /// How long the acknowledgements of a step had been under way when the padding began; NaN for none. One a step, the
    /// latest round.
    ack_ages: Box<[f64]>,
    /// The padding in steps.
    pad_steps: f64,
    /// When the newest acknowledgement had been sent, by step of sending data.
    echoed: VecDeque<(u64, Instant)>,
    newest_echo: Instant,
    pub(crate) received: f64,
    /// Of it in the summary's window.
    pub(crate) counted: f64,
    sampled: f64,
    pub(crate) completed: Option<Instant>,
    pub(crate) rtt: RttSamples,
}

/// Round trips in the summary's window, weighted by what was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct RttSamples {
    sum: f64,
    weight: f64,
    /// Above the base round trip, in ticks of 2¹⁶ ps.
    above_base: Histogram,
}

/// A tick of the histogram of round trips is 2¹⁶ ps, as in the packet simulator.
const RTT_TICK_BITS: u32 = 16;
/// Linux's tcp_pacing_ca_ratio: a paced law that names no rate sends its window in a little less than a round trip.
const PACING_GAIN: f64 = 1.2;
/// RFC 6298's weight of the newest round trip.
const RTT_GAIN: f64 = 1.0 / 8.0;
/// What rounding may leave of a transfer.
const COMPLETE: f64 = 1.0 - 1e-9;

impl Class {
    pub(crate) fn new(
        spec: ClassSpec,
        joints: Joints,
        params: &AnyParams,
        connection: &Connection,
        step: Duration,
    ) -> Self {
        let pad_steps = spec.pad / step;
        Self {
            ack_ages: vec![f64::NAN; (pad_steps as usize + 2).next_power_of_two()].into(),
            pad_steps,
            source: params.source(connection),
            receiver: params.receiver(),
            phase: Phase::Closed,
            opened: Instant::NEVER,
            sent: 0.0,
            acked: 0.0,
            answer_start: 0.0,
            told: 0.0,
            lost: 0.0,
            losses: VecDeque::new(),
            loss_debt: 0.0,
            recovery: None,
            base_rtt: Duration::MAX,
            latest_rtt: Duration::ZERO,
            smoothed_rtt: Duration::ZERO,
            answers: VecDeque::new(),
            echoed: VecDeque::new(),
            newest_echo: Instant::ZERO,
            received: 0.0,
            counted: 0.0,
            sampled: 0.0,
            completed: None,
            rtt: RttSamples::default(),
            spec,
            joints,
        }
    }

    // ------------------------------------------------------------------ the handshake

    /// The header of the SYN, a packet of so many bytes, when the class starts.
    pub(crate) fn open(&mut self, now: Instant, bytes: f64) -> AnyHeader {
        self.phase = Phase::Opening;
        self.source.stamp(&Sending::new(now, PacketKind::Syn, Volume::from_bytes(bytes)))
    }

    /// Whether it starts before `until`.
    pub(crate) fn starts(&self, until: Instant) -> bool {
        self.phase == Phase::Closed && self.spec.start < until
    }

    /// The SYN is at the receiver; its answer.
    pub(crate) fn answer_syn(&mut self, now: Instant, header: &AnyHeader) -> AnyEcho {
        self.receiver.on_data(&Received { now, kind: PacketKind::Syn, header, rtt: None });
        self.receiver.echo(now)
    }

    /// The answer, sent at `sent`, is at the source.
    pub(crate) fn opened(&mut self, now: Instant, sent: Instant, echo: &AnyEcho) {
        self.phase = Phase::Open;
        self.opened = now;
        self.newest_echo = sent;
        self.hear(now, PacketKind::Syn, now.since(self.spec.start), 0.0, echo);
    }

    fn sending(&self, now: Instant) -> Sending {
        // A header is that of one packet, however much fluid goes under it.
        let packet = Volume::from_bytes(self.spec.packet_bytes);
        Sending { in_flight: self.in_flight(), ..Sending::new(now, PacketKind::Data, packet) }
    }

    // ------------------------------------------------------------------ the source

    /// What the source hears and sends in a step.
    pub(crate) fn send(&mut self, step: &Step, inbox: &mut Inbox) {
        let out = &mut inbox.data[self.joints.data_out];
        out.bytes = 0.0;
        if self.phase != Phase::Open {
            return;
        }
        if let Some(age_s) = self.padded(step, inbox.plain[self.joints.acks_in]) {
            self.hear_answers(step, age_s);
        }
        self.find_losses(step.to);
        let bytes = self.may_send(step);
        if bytes > 0.0 {
            let header = self.source.stamp(&self.sending(step.middle));
            self.sent += bytes;
            *out = Parcel { bytes: bytes * self.spec.count, age_s: 0.0, header };
            self.echoed.push_back((step.index, self.newest_echo));
        }
    }

    /// The age of the acknowledgements that come out of the padding in the middle of a step, when these went into it.
    fn padded(&mut self, step: &Step, acks: Plain) -> Option<f64> {
        let mask = self.ack_ages.len() - 1;
        self.ack_ages[step.index as usize & mask] = if acks.bytes > 0.0 { acks.age_s } else { f64::NAN };
        // Between the middles of two steps.
        let place = step.index as f64 - self.pad_steps;
        if place < 0.0 {
            return None;
        }
        let (row, share) = (place as usize, place.fract());
        let (before, after) = (self.ack_ages[row & mask], self.ack_ages[(row + 1) & mask]);
        let age_s = if share == 0.0 || after.is_nan() {
            before
        } else if before.is_nan() {
            after
        } else {
            before + share * (after - before)
        };
        (!age_s.is_nan()).then(|| age_s + self.spec.pad.as_secs())
    }

    /// The acknowledgements that come in a step.
    fn hear_answers(&mut self, step: &Step, age_s: f64) {
        // Where in the receiver's steps the acknowledgements at the middle and the end of this one were sent.
        let middle = (step.middle.as_secs() - age_s) / step.length_s;
        let end = middle + 0.5;
        self.newest_echo = step.middle.before(Duration::from_secs(age_s));
        while let Some(&answer) = self.answers.front() {
            let begun = answer.step as f64;
            if end <= begun {
                break;
            }
            let before = self.acked;
            let part = end - begun;
            // A row that the end is past by less than rounding has come whole.
            let whole = part > 1.0 - 1e-9;
            let acked =
                if whole { answer.received } else { self.answer_start + part * (answer.received - self.answer_start) };
            self.acked = acked.max(before);
            if !answer.heard && middle >= begun {
                self.answers[0].heard = true;
                let rtt = Duration::from_secs(age_s + answer.age_s);
                let told = std::mem::replace(&mut self.told, self.acked);
                self.hear(step.middle, PacketKind::Ack, rtt, self.acked - told, &answer.echo);
                self.rtt.add(step, self.spec.measure, rtt, self.acked - told, self.spec.base_rtt);
            }
            if !whole {
                break;
            }
            self.answer_start = answer.received;
            self.answers.pop_front();
        }
        if self.recovery.is_some_and(|sent| self.acked + self.lost >= sent) {
            (self.recovery, self.loss_debt) = (None, 0.0);
            self.source.on_event(step.middle, Event::Recovered);
        }
    }

    /// Tells the law.
    fn hear(&mut self, now: Instant, kind: PacketKind, rtt: Duration, acked: f64, echo: &AnyEcho) {
        let rtt = rtt.max(Duration::from_ps(1)); // laws divide by it
        self.latest_rtt = rtt;
        self.base_rtt = self.base_rtt.min(rtt);
        self.smoothed_rtt = if kind == PacketKind::Syn {
            rtt
        } else {
            // As many steps of RFC 6298 as packets are acknowledged.
            let kept = (1.0 - RTT_GAIN).powf(acked / self.spec.packet_bytes);
            Duration::from_secs(rtt.as_secs() + kept * (self.smoothed_rtt.as_secs() - rtt.as_secs()))
        };
        self.source.on_ack(&Ack {
            now,
            echo,
            kind,
            acked: Volume::from_bytes(acked),
            marked: Volume::ZERO,
            rtt: Some(rtt),
            smoothed_rtt: self.smoothed_rtt,
            base_rtt: self.base_rtt,
            in_flight: self.in_flight(),
            recovering: self.recovery.is_some(),
            window_limited: true,
        });
    }

    /// A loss of the whole class, found at `at`.
    pub(crate) fn lose(&mut self, at: Instant, class_bytes: f64) {
        self.losses.push_back((at, class_bytes / self.spec.count));
    }

    fn find_losses(&mut self, until: Instant) {
        while let Some(&(at, bytes)) = self.losses.front() {
            if at >= until {
                break;
            }
            self.losses.pop_front();
            self.lost += bytes;
            self.loss_debt += bytes;
        }
        // Each flow of the class has lost a packet: before that, most have not.
        if self.loss_debt >= self.spec.packet_bytes && self.recovery.is_none() {
            self.recovery = Some(self.sent);
            self.source.on_event(until, Event::Loss);
        }
    }

    /// Bytes that one flow sends in a step.
    fn may_send(&self, step: &Step) -> f64 {
        let share = step.overlap((self.opened, self.spec.stop));
        if share <= 0.0 {
            return 0.0;
        }
        let limit = self.source.limit();
        let mut bytes = f64::INFINITY;
        if let Some(window) = limit.window {
            // A host may always have one packet out, or it would never hear again.
            bytes = window.as_bytes().max(self.spec.packet_bytes) - self.in_flight().as_bytes();
        }
        if self.spec.paced || limit.window.is_none() {
            let rate = self.pacing_rate().unwrap_or(Rate::ZERO);
            bytes = bytes.min((rate * step.length).as_bytes() * share);
        }
        if let Some(demand) = self.spec.demand {
            let written = demand * step.to.min(self.spec.stop).since(self.opened);
            bytes = bytes.min(written.as_bytes() - (self.sent - self.lost));
        }
        bytes.min(self.spec.wire_bytes + self.lost - self.sent).max(0.0)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let limit = self.source.limit();
        limit.pacing.or_else(|| limit.window.map(|window| window / self.smoothed_rtt * PACING_GAIN))
    }

    // ------------------------------------------------------------------ the receiver

    /// What the receiver hears and answers in a step.
    pub(crate) fn receive(&mut self, step: &Step, inbox: &mut Inbox) {
        let Parcel { bytes: class_bytes, age_s, header } = inbox.data[self.joints.data_in];
        inbox.plain[self.joints.acks_out] = Plain { bytes: class_bytes * self.spec.ack_share, age_s: 0.0 };
        if class_bytes <= 0.0 {
            return;
        }
        let bytes = class_bytes / self.spec.count;
        let now = step.middle;
        let sent = ((now.as_secs() - age_s) / step.length_s).max(0.0) as u64;
        while self.echoed.get(1).is_some_and(|&(at, _)| at <= sent) {
            self.echoed.pop_front();
        }
        let rtt = self.echoed.front().map(|&(_, echoed)| now.since(echoed));
        let header = if header.is_extensive() { header.part(1.0 / self.spec.count) } else { header };
        self.receiver.on_data(&Received { now, kind: PacketKind::Data, header: &header, rtt });
        let echo = self.receiver.echo(now);
        let before = self.received;
        self.received += bytes;
        if self.completed.is_none() && self.received >= self.spec.wire_bytes * COMPLETE {
            let part = ((self.spec.wire_bytes - before) / bytes).clamp(0.0, 1.0);
            self.completed = Some(step.from + Duration::from_secs(step.length_s * part));
        }
        self.counted += bytes * step.overlap(self.spec.counted);
        self.answers.push_back(Answer { step: step.index, echo, received: self.received, age_s, heard: false });
    }

    // ------------------------------------------------------------------ looking

    /// Sent and neither acknowledged nor known lost.
    pub(crate) fn in_flight(&self) -> Volume {
        Volume::from_bytes((self.sent - self.acked - self.lost).max(0.0))
    }

    /// Whether it has started and has, or may get, something to do.
    pub(crate) fn is_live(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Closed => false,
            Phase::Opening => true,
            Phase::Open => {
                let unfinished = now < self.spec.stop && self.completed.is_none();
                unfinished || self.in_flight().as_bytes() > self.spec.packet_bytes * 1e-6
            }
        }
    }

    /// Bytes received since the last [`Class::sampled`].
    pub(crate) fn fresh_bytes(&self) -> f64 {
        self.received - self.sampled
    }

    pub(crate) fn sampled(&mut self) {
        self.sampled = self.received;
    }

    pub(crate) fn window(&self) -> Option<Volume> {
        (self.phase == Phase::Open).then(|| self.source.limit().window).flatten()
    }

    pub(crate) fn pacing(&self) -> Option<Rate> {
        let spaced = self.spec.paced || self.source.limit().window.is_none();
        (self.phase == Phase::Open && spaced).then(|| self.pacing_rate()).flatten()
    }

    pub(crate) fn latest_rtt(&self) -> Option<Duration> {
        (self.phase == Phase::Open).then_some(self.latest_rtt)
    }

    pub(crate) fn observe(&self, probe: &mut dyn Probe) {
        self.source.observe(probe);
    }
}

impl RttSamples {
    fn add(&mut self, step: &Step, measure: (Instant, Instant), rtt: Duration, acked: f64, base: Duration) {
        let weight = acked * step.overlap(measure);
        if weight > 0.0 {
            self.sum += weight * rtt.as_secs();
            self.weight += weight;
            self.above_base.add((rtt - base).as_ps() >> RTT_TICK_BITS, weight.ceil() as u64);
        }
    }

    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    /// A quantile in seconds above the base round trip.
    pub(crate) fn quantile_above_base_s(&self, q: f64) -> Option<f64> {
        self.above_base.quantile(q).map(|ticks| Duration::from_ps((ticks as u64) << RTT_TICK_BITS).as_secs())
    }
}
