//! Classes of identical flows. Each class is stepped as one flow, and the volume of this flow counts once per member.
//!
//! The source's law first receives the feedback that arrives by the end of a step, and then decides what is sent in it.
//! Amounts here are those of one flow; only pipes carry the volume of the whole class.

use std::collections::VecDeque;
use std::sync::Arc;

use waterfill_laws::base_rtt::WindowedMin;
use waterfill_laws::math;
use waterfill_laws::protocol::{Ack, Connection, Event, PacketKind, Probe, Received, Sending};
use waterfill_laws::registry::{AnyEcho, AnyHeader, AnyParams, AnyReceiver, AnySource, ProtocolId};
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::DemandCourse;
use waterfill_network::histogram::RttHistogram;

use crate::pipe::{Inbox, Parcel, Plain, TimeStep};

/// Properties shared by the flows of a class.
#[derive(Clone, Debug)]
pub(crate) struct ClassSpec {
    pub(crate) protocol: ProtocolId,
    pub(crate) count: f64,
    /// Start and stop times of the class, as seen at the entrance of its first link, after the padding.
    pub(crate) start: Instant,
    pub(crate) stop: Instant,
    /// Padding of the RTT, all of it on the reverse path.
    ///
    /// A source with a delay p in each direction equals one that acts p later and receives its feedback 2p later.
    pub(crate) pad: Duration,
    pub(crate) packet_bytes: f64,
    /// Bytes of acknowledgements per byte of data.
    pub(crate) ack_share: f64,
    /// Size of the transfer in bytes on the wire, headers included; infinite for an unlimited flow.
    pub(crate) wire_bytes: f64,
    /// Payload bytes per byte on the wire.
    pub(crate) payload_share: f64,
    /// Rate at which the application writes data; `None` for no limit.
    pub(crate) demand: Option<Rate>,
    /// Demand over time instead of `demand`, as the application writes; `None` if it is constant.
    pub(crate) course: Option<Arc<DemandCourse>>,
    pub(crate) paced: bool,
    pub(crate) base_rtt: Duration,
    /// Base RTT with the shortest delay that each link ever has.
    pub(crate) rtt_min: Duration,
    /// Time after which a host forgets an RTT as its smallest; `None` for never.
    pub(crate) base_rtt_window: Option<Duration>,
    /// Minimum retransmission timeout; `None` if no timer can fire.
    pub(crate) rto_min: Option<Duration>,
    /// Retransmission timeout before the first RTT sample.
    pub(crate) syn_rto: Duration,
    /// The measurement window, and its overlap with the lifetime of the class.
    pub(crate) measure: (Instant, Instant),
    pub(crate) counted: (Instant, Instant),
}

/// Inbox indices that a class writes and reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) data_out: usize,
    pub(crate) data_in: usize,
    pub(crate) acks_out: usize,
    pub(crate) acks_in: usize,
}

/// Feedback that a receiver sends in one step.
#[derive(Clone, Copy, Debug)]
struct Feedback {
    step: u64,
    echo: AnyEcho,
    /// Bytes received by the end of the step.
    received: f64,
    /// Age of the acknowledged data in seconds.
    age_s: f64,
    /// True once the source's law has processed this feedback.
    processed: bool,
}

/// Bytes of memory for one step's feedback in transit, including the echo of the step's data.
pub(crate) const FEEDBACK_BYTES: usize = size_of::<Feedback>() + size_of::<(u64, Instant)>();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Opening,
    Open,
}

/// State of a class of flows.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) spec: ClassSpec,
    pub(crate) places: Places,
    connection: Connection,
    source: AnySource,
    receiver: AnyReceiver,
    phase: Phase,
    /// Time at which the newest SYN was sent.
    opening: Instant,
    opened: Instant,
    /// Start of the retransmission timer, number of timeouts since the last acknowledgement, and time of that
    /// acknowledgement.
    timed_from: Instant,
    timeouts_in_row: u32,
    /// True if a SYN was lost and no data has been acknowledged since.
    syn_lost: bool,
    /// Remainder of RFC 5681's loss window in bytes: one packet after a timeout, until the next acknowledgement.
    loss_window: f64,
    last_ack: Instant,
    /// Number of retransmission timeouts.
    pub(crate) timeouts: u64,
    pub(crate) sent: f64,
    acked: f64,
    /// Bytes received before the oldest feedback that is not yet fully acknowledged.
    feedback_start: f64,
    /// Acknowledged bytes that the law has already received.
    reported: f64,
    /// Bytes that the source knows to be lost.
    pub(crate) lost: f64,
    /// Losses that the source will detect: detection time and bytes. Three duplicate acknowledgements take one RTT in
    /// the fluid model.
    losses: VecDeque<(Instant, f64)>,
    /// Bytes lost since the last recovery, and bytes sent when the current recovery began.
    loss_debt: f64,
    recovery: Option<f64>,
    base_rtt: Duration,
    /// Filter of the base RTT; `None` if RTTs never expire.
    recent_rtts: Option<WindowedMin>,
    latest_rtt: Duration,
    smoothed_rtt: Duration,
    feedback: VecDeque<Feedback>,
    /// Ring buffer of the age of each step's acknowledgements when they enter the padding; NaN if there are none.
    ack_ages: Box<[f64]>,
    /// Padding of the RTT, in steps.
    pad_steps: f64,
    /// For each step of sent data, the time at which the newest acknowledgement had been sent.
    echoed: VecDeque<(u64, Instant)>,
    newest_echo: Instant,
    pub(crate) received: f64,
    /// Bytes received in the measurement window.
    pub(crate) counted: f64,
    sampled: f64,
    pub(crate) completed: Option<Instant>,
    pub(crate) rtt: RttSamples,
}

/// RTT samples in the measurement window, weighted by acknowledged bytes.
#[derive(Debug, Default)]
pub(crate) struct RttSamples {
    sum: f64,
    weight: f64,
    above_base: RttHistogram,
}

/// Ratio of the pacing rate to the window per RTT: Linux's tcp_pacing_ca_ratio.
///
/// A paced law that sets no rate sends its window in slightly less than one RTT.
const PACING_GAIN: f64 = 1.2;
/// ln(7/8), because RFC 6298 gives a new RTT sample a weight of 1/8.
const LN_RTT_KEPT: f64 = -0.133_531_392_624_522_63;
/// Maximum retransmission timeout, the same as in the packet simulator.
const MAX_RTO: Duration = Duration::from_millis(60_000);
/// Minimum retransmission timeout of the first data after a SYN was sent again, in timeouts of the SYN (RFC 6298, 5.7).
const AFTER_SYN_TIMEOUT: u64 = 3;
/// Number of SYNs that may be lost, or their answers, without a smaller initial window (RFC 6928, 2).
const LOST_SYNS_MAX: u32 = 1;
/// Fraction of a transfer that counts as complete, because rounding may leave a small remainder.
const COMPLETE: f64 = 1.0 - 1e-9;

impl Class {
    pub(crate) fn new(
        spec: ClassSpec,
        places: Places,
        params: &AnyParams,
        connection: &Connection,
        step: Duration,
    ) -> Self {
        let pad_steps = spec.pad / step;
        Self {
            ack_ages: vec![f64::NAN; (pad_steps as usize + 2).next_power_of_two()].into(),
            pad_steps,
            source: params.source(connection),
            connection: *connection,
            receiver: params.receiver(),
            phase: Phase::Closed,
            opening: spec.start,
            opened: Instant::NEVER,
            timed_from: Instant::ZERO,
            timeouts_in_row: 0,
            syn_lost: false,
            loss_window: 0.0,
            last_ack: Instant::ZERO,
            timeouts: 0,
            sent: 0.0,
            acked: 0.0,
            feedback_start: 0.0,
            reported: 0.0,
            lost: 0.0,
            losses: VecDeque::new(),
            loss_debt: 0.0,
            recovery: None,
            base_rtt: Duration::MAX,
            recent_rtts: spec.base_rtt_window.map(WindowedMin::new),
            latest_rtt: Duration::ZERO,
            smoothed_rtt: Duration::ZERO,
            feedback: VecDeque::new(),
            echoed: VecDeque::new(),
            newest_echo: Instant::ZERO,
            received: 0.0,
            counted: 0.0,
            sampled: 0.0,
            completed: None,
            rtt: RttSamples::default(),
            spec,
            places,
        }
    }

    /// Logs the steps of the class's laws, if the laws have fields that routers write or read.
    pub(crate) fn log_steps(&mut self, c: u32, now: Instant, log: &StepLog) {
        let id = self.spec.protocol;
        if id.has_fields() {
            log.source(id, c, now, &self.connection, &mut self.source);
            log.receiver(id, c, now, &mut self.receiver);
        }
    }

    // ------------------------------------------------------------------ the handshake

    /// Starts the class. Returns the header of its SYN, a packet of `bytes` bytes.
    pub(crate) fn open(&mut self, now: Instant, bytes: f64) -> AnyHeader {
        self.phase = Phase::Opening;
        self.opening = now;
        self.source.stamp(&Sending::new(now, PacketKind::Syn, Volume::from_bytes(bytes)))
    }

    /// Returns true if the class has not started yet and starts before `until`.
    pub(crate) fn starts(&self, until: Instant) -> bool {
        self.phase == Phase::Closed && self.spec.start < until
    }

    /// Handles the SYN at the receiver. Returns the echo for the SYN-ACK.
    pub(crate) fn on_syn(&mut self, now: Instant, header: &AnyHeader) -> AnyEcho {
        self.receiver.on_data(&Received { now, kind: PacketKind::Syn, header, rtt: None });
        self.receiver.echo(now)
    }

    /// Handles the loss of a SYN, or of its answer: the `lost`th of the class.
    pub(crate) fn on_lost_syn(&mut self, now: Instant, lost: u32) {
        self.timeouts += 1;
        self.syn_lost = true;
        if lost == LOST_SYNS_MAX + 1 {
            self.source.on_event(now, Event::SynsLost);
        }
    }

    /// Handles at the source a SYN-ACK that was sent at `sent`.
    pub(crate) fn on_syn_ack(&mut self, now: Instant, sent: Instant, echo: &AnyEcho) {
        self.phase = Phase::Open;
        self.opened = now;
        self.newest_echo = sent;
        self.on_feedback(now, PacketKind::Syn, now.since(self.opening), 0.0, echo);
    }

    fn sending(&self, now: Instant) -> Sending {
        // A header is that of one packet, however large the parcel.
        let packet = Volume::from_bytes(self.spec.packet_bytes);
        Sending { in_flight: self.in_flight(), ..Sending::new(now, PacketKind::Data, packet) }
    }

    // ------------------------------------------------------------------ the source

    /// Steps the source: it receives feedback, detects losses and sends data.
    pub(crate) fn send(&mut self, step: &TimeStep, inbox: &mut Inbox) {
        let out = &mut inbox.data[self.places.data_out];
        out.bytes = 0.0;
        if self.phase != Phase::Open {
            return;
        }
        if let Some(age_s) = self.padded_age(step, inbox.plain[self.places.acks_in]) {
            self.receive_acks(step, age_s);
        }
        self.run_timer(step.to);
        self.detect_losses(step.to);
        let bytes = self.bytes_to_send(step);
        if bytes > 0.0 {
            let header = self.source.stamp(&self.sending(step.middle));
            self.sent += bytes;
            self.loss_window -= bytes;
            *out = Parcel { bytes: bytes * self.spec.count, age_s: 0.0, header };
            self.echoed.push_back((step.index, self.newest_echo));
        }
    }

    /// Puts a step's acknowledgements into the padding. Returns the age of the acknowledgements that leave the padding
    /// in the middle of the step, or `None` if there are none.
    fn padded_age(&mut self, step: &TimeStep, acks: Plain) -> Option<f64> {
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

    /// Processes the acknowledgements that arrive in a step.
    fn receive_acks(&mut self, step: &TimeStep, age_s: f64) {
        // The receiver's steps in which the acknowledgements at the middle and the end of this step were sent.
        let middle = (step.middle.as_secs() - age_s) / step.length_s;
        let end = middle + 0.5;
        self.newest_echo = step.middle.before(Duration::from_secs(age_s));
        // After a gap, a link that was down may have dropped what the receiver sent earlier.
        let resumes = self.spec.rto_min.is_some() && self.last_ack < step.from;
        (self.last_ack, self.timed_from, self.timeouts_in_row) = (step.to, step.to, 0);
        self.syn_lost = false;
        while let Some(&oldest) = self.feedback.front() {
            let start = oldest.step as f64;
            if end <= start {
                break;
            }
            let before = self.acked;
            let part = end - start;
            // Within rounding, a row has arrived completely.
            let whole = part > 1.0 - 1e-9;
            let acked = if whole {
                oldest.received
            } else {
                self.feedback_start + part * (oldest.received - self.feedback_start)
            };
            self.acked = acked.max(before);
            let lost = resumes && whole && start + 1.5 < middle;
            if !oldest.processed && middle >= start && !lost {
                self.feedback[0].processed = true;
                let rtt = Duration::from_secs(age_s + oldest.age_s);
                let reported = std::mem::replace(&mut self.reported, self.acked);
                self.on_feedback(step.middle, PacketKind::Ack, rtt, self.acked - reported, &oldest.echo);
                self.rtt.add(step, self.spec.measure, rtt, self.acked - reported, self.spec.base_rtt);
            }
            if !whole {
                break;
            }
            self.feedback_start = oldest.received;
            self.feedback.pop_front();
        }
        if self.recovery.is_some_and(|sent| self.acked + self.lost >= sent) {
            (self.recovery, self.loss_debt) = (None, 0.0);
            self.source.on_event(step.middle, Event::Recovered);
        }
    }

    /// Passes an acknowledgement to the law.
    fn on_feedback(&mut self, now: Instant, kind: PacketKind, rtt: Duration, acked: f64, echo: &AnyEcho) {
        // When a flow starts, the age of a part of a step is up to half a step too small. No path is faster than itself.
        let rtt = rtt.max(self.spec.rtt_min).max(Duration::from_ps(1)); // laws divide by it
        self.latest_rtt = rtt;
        self.base_rtt = match &mut self.recent_rtts {
            None => self.base_rtt.min(rtt),
            Some(recent) => recent.add(now, rtt),
        };
        self.smoothed_rtt = if kind == PacketKind::Syn {
            rtt
        } else {
            // One step of RFC 6298 per acknowledged packet.
            let kept = math::exp(LN_RTT_KEPT * acked / self.spec.packet_bytes);
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

    /// Records a loss of the whole class, which the source detects at `at`.
    pub(crate) fn add_loss(&mut self, at: Instant, class_bytes: f64) {
        self.losses.push_back((at, class_bytes / self.spec.count));
    }

    /// Returns the retransmission timeout after `retries` timeouts in a row (RFC 6298).
    pub(crate) fn rto(&self, retries: u32) -> Duration {
        let rto = match self.spec.rto_min {
            Some(rto_min) if self.phase == Phase::Open => self.smoothed_rtt.max(rto_min),
            _ => self.spec.syn_rto,
        };
        let rto = if self.phase == Phase::Open && self.syn_lost {
            rto.max(self.spec.syn_rto * AFTER_SYN_TIMEOUT)
        } else {
            rto
        };
        (rto * (1 << retries.min(16))).min(MAX_RTO.max(rto))
    }

    /// Runs the retransmission timer. When the timer fires, the source detects all losses.
    fn run_timer(&mut self, until: Instant) {
        if self.spec.rto_min.is_none() {
            return;
        }
        if self.in_flight().as_bytes() <= 0.0 {
            self.timed_from = until;
        } else if until.since(self.timed_from) >= self.rto(self.timeouts_in_row) {
            self.timeouts_in_row += 1;
            self.loss_window = self.spec.packet_bytes;
            self.timeouts += 1;
            self.timed_from = until;
            self.lost += self.losses.drain(..).map(|(_, bytes)| bytes).sum::<f64>();
            (self.recovery, self.loss_debt) = (Some(self.sent), 0.0);
            self.source.on_event(until, Event::Timeout);
        }
    }

    fn detect_losses(&mut self, until: Instant) {
        while let Some(&(at, bytes)) = self.losses.front() {
            // Only an acknowledgement of something later shows a loss.
            if at >= until || self.spec.rto_min.is_some() && self.last_ack < at {
                break;
            }
            self.losses.pop_front();
            self.lost += bytes;
            self.loss_debt += bytes;
        }
        // Signals one loss event per recovery, after each flow of the class has lost a packet.
        if self.loss_debt >= self.spec.packet_bytes && self.recovery.is_none() {
            self.recovery = Some(self.sent);
            self.source.on_event(until, Event::Loss);
        }
    }

    /// Returns the bytes that one flow sends in a step.
    fn bytes_to_send(&self, step: &TimeStep) -> f64 {
        let share = step.overlap((self.opened, self.spec.stop));
        if share <= 0.0 {
            return 0.0;
        }
        let limit = self.source.limit();
        let mut bytes = f64::INFINITY;
        if let Some(window) = limit.window {
            // A host may always have one packet in flight, or it would never receive feedback again.
            bytes = window.as_bytes().max(self.spec.packet_bytes) - self.in_flight().as_bytes();
        }
        if self.timeouts_in_row > 0 {
            // What has arrived may count as in flight, because its acknowledgements were lost.
            bytes = self.loss_window;
        }
        if self.spec.paced || limit.window.is_none() {
            let rate = self.pacing_rate().unwrap_or(Rate::ZERO);
            bytes = bytes.min((rate * step.length).as_bytes() * share);
        }
        if let Some(demand) = self.spec.demand {
            let written = demand * step.to.min(self.spec.stop).since(self.opened);
            bytes = bytes.min(written.as_bytes() - (self.sent - self.lost));
        }
        if let Some(course) = &self.spec.course {
            bytes = bytes.min(self.written(course, step.to) - (self.sent - self.lost));
        }
        bytes.min(self.spec.wire_bytes + self.lost - self.sent).max(0.0)
    }

    /// Returns the bytes that the application has written by a time. Times of the class are those after the padding.
    fn written(&self, course: &DemandCourse, until: Instant) -> f64 {
        let access = self.spec.pad / 2;
        let until = course.written(until.min(self.spec.stop).before(access));
        (until - course.written(self.opened.before(access))).as_bytes()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let limit = self.source.limit();
        limit.pacing.or_else(|| limit.window.map(|window| window / self.smoothed_rtt * PACING_GAIN))
    }

    // ------------------------------------------------------------------ the receiver

    /// Steps the receiver: it receives data and sends acknowledgements.
    pub(crate) fn receive(&mut self, step: &TimeStep, inbox: &mut Inbox) {
        let Parcel { bytes: class_bytes, age_s, header } = inbox.data[self.places.data_in];
        inbox.plain[self.places.acks_out] = Plain { bytes: class_bytes * self.spec.ack_share, age_s: 0.0 };
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
        self.feedback.push_back(Feedback { step: step.index, echo, received: self.received, age_s, processed: false });
    }

    // ------------------------------------------------------------------ observation

    /// Returns the bytes sent that are neither acknowledged nor detected as lost.
    pub(crate) fn in_flight(&self) -> Volume {
        Volume::from_bytes((self.sent - self.acked - self.lost).max(0.0))
    }

    /// Returns true if the class has started and is not finished.
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

    /// Returns the bytes received since the last call of [`Class::sampled`].
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
        let paced = self.spec.paced || self.source.limit().window.is_none();
        (self.phase == Phase::Open && paced).then(|| self.pacing_rate()).flatten()
    }

    pub(crate) fn latest_rtt(&self) -> Option<Duration> {
        (self.phase == Phase::Open).then_some(self.latest_rtt)
    }

    pub(crate) fn observe(&self, probe: &mut dyn Probe) {
        self.source.observe(probe);
    }
}

impl RttSamples {
    fn add(&mut self, step: &TimeStep, measure: (Instant, Instant), rtt: Duration, acked: f64, base: Duration) {
        let weight = acked * step.overlap(measure);
        if weight > 0.0 {
            self.sum += weight * rtt.as_secs();
            self.weight += weight;
            self.above_base.add(rtt - base, weight.ceil() as u64);
        }
    }

    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    /// Returns a quantile of the RTT above the base RTT, in seconds.
    pub(crate) fn quantile_above_base_s(&self, q: f64) -> Option<f64> {
        self.above_base.quantile_s(q)
    }

    /// Returns the 99th percentile of the RTT above the base RTT, in seconds.
    pub(crate) fn p99_above_base_s(&self, base_rtt: Duration) -> Option<f64> {
        self.above_base.p99_s(self.mean_s()? - base_rtt.as_secs())
    }
}
