//! Sending host: a reliable sender within the window and rate of its law.
//!
//! Sans-I/O like the laws: the engine passes in acknowledgements and times, and takes packets out with
//! [`Sender::poll_transmit`].

mod connection;
pub(crate) mod ecn;
mod first_flight;
#[cfg(test)]
mod linux_order;
#[cfg(test)]
mod patterns;
mod quantum;
mod quic;
pub(crate) mod rare;
mod snapshot;
mod spec;

use waterfill_laws::base_rtt::WindowedMin;
use waterfill_laws::protocol::{
    Ack, BaseRtt, Connection, Event, PacketKind, PathView, Probe, Reduction, Retransmission, SendLimit, Sending,
};
use waterfill_laws::registry::{AnyEcho, AnyParams, AnySource, ProtocolId};
use waterfill_laws::steps::StepLog;
use waterfill_laws::telemetry::Stack;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::FlowSpec;
use waterfill_network::histogram::RttHistogram;
use waterfill_network::summary::LimitedBy;

use crate::fault::SourceFaults;
use crate::limits::{Limit, LimitSums, LimitTimes, LongestRecovery};
use crate::packet::{Blocks, Cargo, Flags, Opening, Packet, Role, SackId};
use crate::recovery::prr::ProportionalReduction;
use crate::recovery::rto::smoothed;
use crate::recovery::{AckTimes, Progress, Recovery};
use crate::window::WholePackets;
use rare::Rare;
pub(crate) use snapshot::Snapshot;
use spec::NO_OPENING;
pub(crate) use spec::{FlowIndex, PacketSizes, SenderSpec, UNMEASURED};

/// Number of SYNs that may be lost, or their answers, without a smaller initial window (RFC 6928, 2).
const LOST_SYNS_MAX: u32 = 1;
/// Maximum number of packets in flight, whatever the law says: 100 Gbit/s for two seconds. It bounds the memory that a
/// faulty law can use.
const MAX_IN_FLIGHT: u64 = 1 << 24;
/// Pacing rate of a window-based law without a rate, relative to window / RTT. The gain keeps the window the limit, as
/// Linux's tcp_pacing_ca_ratio does.
const PACING_GAIN: f64 = 1.2;

/// Maximum time between two packets of a paced source. A rate of zero must not stop the source, because only feedback
/// on packets raises the rate. Linux's fq takes 1 s; JetMax's slowest source sends 1500 B every 1.2 s.
const MAX_SPACING: Duration = Duration::from_millis(2000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// State before the SYN, or while waiting to send it again.
    Closed,
    /// State after the SYN.
    Opening,
    /// State after the first data of a flow without a handshake, until the first answer.
    Unanswered,
    Open,
}

/// RTT samples of a sender in the summary's measurement window.
#[derive(Clone, Debug, Default)]
pub(crate) struct RttSamples {
    sum_ps: u128,
    above_base: RttHistogram<u32>,
}

/// Sending side of a connection.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(crate) struct Sender {
    pub(crate) spec: SenderSpec,
    law: AnySource,
    /// Faults of the host, if any.
    faults: Option<Box<SourceFaults>>,
    /// Parts that few senders have.
    rare: Option<Box<Rare>>,
    /// The law's window in whole packets, read again after each possible change.
    window_packets: u64,
    /// False while acknowledgements alone make packets ready: there is no pacing, no demand, and has always been a window.
    /// One field, because it is read several times for every packet.
    timed: bool,
    whole_packets: WholePackets,
    recovery: Recovery,
    /// Reduction to the law's window that is spread over a recovery, if one is in progress.
    reduction: Option<Box<ProportionalReduction>>,
    /// Counter of marked packets, if acknowledgements carry one.
    marks: Option<Box<ecn::MarkCounter>>,
    /// True if the next new packet carries CWR, which notifies the receiver of the window's reduction.
    cwr_pending: bool,
    /// True if, since the last acknowledgement, the window allowed a packet but there was no data.
    app_limited: bool,
    phase: Phase,
    /// Time at which pacing allows the next packet.
    next_send: Instant,
    /// Time of the first SYN; after its answer, the time at which the application started writing.
    opened: Instant,
    /// Smoothed RTT and its variation; `None` before the first sample (RFC 6298).
    smoothed: Option<(Duration, Duration)>,
    base_rtt: Duration,
    /// Filter of the base RTT; `None` if RTTs never expire.
    recent_rtts: Option<Box<WindowedMin>>,
    latest_rtt: Duration,
    rto_backoff: u32,
    /// True if a SYN was sent again and no data has been acknowledged since.
    syn_repeated: bool,
    rto_deadline: Instant,
    /// True if `rto_deadline` is that of a probe.
    probing: bool,
    /// Timestamp of the newest acknowledgement, which data packets echo (RFC 7323).
    echoed: Instant,
    pub(crate) rtt: RttSamples,
    limits: LimitTimes,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
}

impl Sender {
    pub(crate) fn new(spec: SenderSpec, params: &AnyParams, (flow, path): (&FlowSpec, PathView), seed: u64) -> Self {
        Self {
            law: params.source(&spec.connection(flow, path, seed)),
            faults: SourceFaults::new(flow),
            rare: None,
            window_packets: 0,
            timed: spec.demand != Rate::UNLIMITED || spec.paced,
            whole_packets: WholePackets::default(),
            recovery: quic::recovery(&spec, flow),
            reduction: None,
            marks: ecn::MarkCounter::new(&spec).map(Box::new),
            cwr_pending: false,
            app_limited: false,
            phase: Phase::Closed,
            next_send: Instant::ZERO,
            opened: Instant::ZERO,
            smoothed: None,
            base_rtt: Duration::MAX,
            recent_rtts: flow.base_rtt_window_s.map(|s| Box::new(WindowedMin::new(Duration::from_secs(s)))),
            latest_rtt: Duration::ZERO,
            rto_backoff: 0,
            syn_repeated: false,
            rto_deadline: spec.start,
            probing: false,
            echoed: spec.opening().map_or(Instant::ZERO, Opening::echoed),
            rtt: RttSamples::default(),
            limits: LimitTimes::new(),
            retransmissions: 0,
            timeouts: 0,
            spec,
        }
    }

    /// Sets the start of a flow that has waited for others.
    pub(crate) fn start_at(&mut self, start: Instant) {
        (self.spec.start, self.rto_deadline) = (start, start);
    }

    /// Starts logging the steps of the sender's law for this connection.
    pub(crate) fn log_steps(&mut self, id: ProtocolId, f: u32, now: Instant, connection: &Connection, log: &StepLog) {
        log.source(id, f, now, connection, &mut self.law);
    }

    /// Returns true if the sender has started and has data outstanding or left to send.
    pub(crate) fn is_live(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Closed => false,
            Phase::Opening => true,
            Phase::Unanswered | Phase::Open => {
                self.recovery.unacknowledged() > 0 || (now < self.spec.stop && !self.all_sent())
            }
        }
    }

    /// Returns true if all data of a finite flow has been acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Open && self.all_sent() && self.recovery.unacknowledged() == 0
    }

    fn all_sent(&self) -> bool {
        self.spec.sizes.packets.is_some_and(|(count, _)| self.recovery.next() >= count)
    }

    // ------------------------------------------------------------------ input

    /// Passes the telemetry of the acknowledgement that follows to the law.
    pub(crate) fn on_stack(&mut self, stack: &Stack) {
        self.law.on_stack(stack);
    }

    /// Handles the acknowledgement of the SYN, or of a packet of the first flight of a flow without a handshake.
    #[inline(never)]
    pub(crate) fn on_syn_ack(&mut self, now: Instant, packet: &Packet, blocks: Option<&Blocks>) {
        if !self.spec.has_handshake() {
            self.on_first_flight_ack(now, packet, blocks);
            return;
        }
        if self.phase != Phase::Opening {
            return;
        }
        self.phase = Phase::Open;
        self.limit_by(now, Limit::Window);
        if self.spec.opens_from != NO_OPENING {
            self.spec.to = packet.number as u32;
        }
        if self.rto_backoff > 0 {
            self.on_late_syn_ack(now, packet.sent);
        }
        self.opened = now;
        self.open_application(now);
        self.rto_backoff = 0;
        self.next_send = now;
        self.sample_rtt(now, packet);
        self.notify_law(now, packet, PacketKind::Syn, 0, false);
        if self.spec.host.base_rtt.is_some_and(BaseRtt::data_only) {
            self.base_rtt = Duration::MAX;
            self.recent_rtts.iter_mut().for_each(|recent| recent.clear());
        }
        self.rto_deadline = Instant::NEVER;
    }

    /// Handles the answer to a SYN, sent at `answered`, after the timer has sent SYNs again. An answer to the first SYN
    /// shows, by its timestamp, that none was lost (RFC 3522).
    #[cold]
    fn on_late_syn_ack(&mut self, now: Instant, answered: Instant) {
        self.syn_repeated = true;
        if self.rto_backoff > LOST_SYNS_MAX && answered != self.opened {
            self.law.on_event(self.clock(now), Event::SynsLost);
        }
    }

    /// Handles an acknowledgement with its selective blocks.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, packet: &Packet, blocks: Option<&Blocks>) {
        if self.phase != Phase::Open && !self.end_first_flight(now) {
            return;
        }
        self.sample_rtt(now, packet);
        if self.marks.is_some() {
            self.on_counted_ack(now, packet, blocks);
            return;
        }
        let marked = packet.flags.has(Flags::REPORTS_MARK);
        let Some(newly_arrived) = self.recovery.on_usual_ack(packet.number, blocks) else {
            self.on_any_ack(now, packet, blocks, marked);
            return;
        };
        self.notify_law(now, packet, PacketKind::Ack, newly_arrived, self.recovery.is_recovering());
        if marked || self.reduction.is_some() {
            self.react(now, Progress { newly_arrived, advanced: true, ..Progress::default() }, marked);
        }
        self.finish_ack(now, true);
    }

    /// Handles an acknowledgement outside the usual case.
    #[inline(never)] // keeps the usual path short
    fn on_any_ack(&mut self, now: Instant, packet: &Packet, blocks: Option<&Blocks>, marked: bool) {
        let mut progress = self.recovery.on_any_ack(packet.number, blocks, &self.ack_times(now, packet.sent));
        let recovering = self.undo_if_spurious(now, &mut progress);
        self.report_losses(now);
        self.notify_law(now, packet, PacketKind::Ack, progress.newly_arrived, recovering);
        if progress.event.is_some() || marked || self.reduction.is_some() {
            self.react(now, progress, marked);
        }
        self.finish_ack(now, progress.advanced);
    }

    /// Restores the law's window if an acknowledgement shows that a recovery was spurious. Returns true if the window must
    /// not grow by the acknowledgement.
    fn undo_if_spurious(&mut self, now: Instant, progress: &mut Progress) -> bool {
        if progress.event == Some(Event::Spurious) {
            // Before the law sees the acknowledgement, by which the restored window grows.
            self.on_event(now, Event::Spurious, progress.newly_arrived);
            progress.event = None;
        }
        // [rfc3042:§2] The window does not grow by packets beyond a gap, which may be a loss.
        let beyond_gap = !progress.advanced && self.recovery.method() == Retransmission::Rack;
        self.recovery.is_recovering() || beyond_gap
    }

    /// Restarts the timer after an acknowledgement.
    #[expect(clippy::inline_always, reason = "once per acknowledgement, and a call costs as much")]
    #[inline(always)]
    fn finish_ack(&mut self, now: Instant, advanced: bool) {
        self.app_limited = false;
        if advanced {
            self.rto_backoff = 0;
            self.syn_repeated = false;
            if self.timed {
                self.on_message_acked(now, Duration::ZERO);
            }
        }
        if self.recovery.unacknowledged() == 0 {
            self.start_pause(now);
        } else if advanced {
            self.restart_timer(now);
        }
    }

    /// Returns the times that recovery needs at an acknowledgement which echoes `echo`.
    #[inline]
    fn ack_times(&self, now: Instant, echo: Instant) -> AckTimes {
        let smoothed_rtt = self.smoothed_rtt();
        AckTimes { now, echo, base_rtt: self.base_rtt, smoothed_rtt }
    }

    /// Returns the smoothed RTT, before the first sample the latest RTT.
    #[expect(clippy::inline_always, reason = "a read on the packet path")]
    #[inline(always)]
    fn smoothed_rtt(&self) -> Duration {
        self.smoothed.map_or(self.latest_rtt, |(rtt, _)| rtt)
    }

    /// `[rfc6298:5.3]` Restarts the timer after progress. A probe within `rto_min` comes first in any case.
    #[expect(clippy::inline_always, reason = "once per acknowledgement, and a call costs as much")]
    #[inline(always)]
    fn restart_timer(&mut self, now: Instant) {
        let smoothed_rtt = self.smoothed_rtt();
        let probe = self.recovery.probe_timeout(smoothed_rtt);
        if probe < self.spec.rto.rto_min {
            (self.probing, self.rto_deadline) = (true, now + probe);
        } else {
            self.start_timer(now, self.spec.rto.first_timeout(self.smoothed));
        }
    }

    /// Starts the timer of the retransmission, or of a probe that comes before it.
    #[inline]
    fn start_timer(&mut self, now: Instant, timeout: Duration) {
        let smoothed_rtt = self.smoothed_rtt();
        let probe = self.recovery.probe_timeout(smoothed_rtt);
        self.probing = probe < timeout;
        self.rto_deadline = now + probe.min(timeout);
    }

    /// Handles an acknowledgement's event and mark, then updates the window.
    #[inline(never)] // keeps the usual path short
    fn react(&mut self, now: Instant, progress: Progress, marked: bool) {
        if let Some(event) = progress.event {
            self.on_event(now, event, progress.newly_arrived);
        }
        // The acknowledgement that ends a recovery is for a packet sent before the reduction: its mark has had its
        // response.
        let handled = progress.event == Some(Event::Recovered);
        if let Some(event) = (marked && !handled).then(|| self.recovery.on_mark()).flatten() {
            self.cwr_pending = true;
            self.on_event(now, event, progress.newly_arrived);
        }
        self.window_packets = match &mut self.reduction {
            Some(reduction) => reduction.on_ack(&progress, self.recovery.in_flight()),
            None => self.law_window(),
        };
    }

    /// Reports each packet newly found lost to the law.
    fn report_losses(&mut self, now: Instant) {
        while let Some(sent) = self.recovery.pop_lost() {
            self.law.on_lost(self.clock(now), self.clock(sent));
        }
    }

    /// Notifies the law of a loss, mark, timeout or end of a recovery, then starts a window reduction if needed.
    ///
    /// `newly_arrived` is that of the acknowledgement.
    fn on_event(&mut self, now: Instant, event: Event, newly_arrived: u64) {
        self.measure_recovery(now, event);
        if self.faults.is_some() && self.ignores(now, PacketKind::Ack) {
            return;
        }
        self.law.on_event(self.clock(now), event);
        let reduces = matches!(event, Event::Loss | Event::Marked);
        self.reduction = (reduces && self.spec.host.reduction == Reduction::Proportional)
            .then(|| ProportionalReduction::new(self.law_window(), &self.recovery, newly_arrived).into());
    }

    /// Records the time that recoveries take, and that they limit the sender.
    fn measure_recovery(&mut self, now: Instant, event: Event) {
        let rtt = self.smoothed_rtt();
        match event {
            Event::Loss => self.limits.start_recovery(now, rtt),
            // The wait for the timer is not counted: one would be many RTTs.
            Event::Timeout => self.limits.end_recovery(self.echoed, rtt),
            Event::Recovered | Event::Spurious => self.limits.end_recovery(now, rtt),
            _ => {}
        }
        match event {
            Event::Loss if self.limits.current() == Limit::Window => self.limit_by(now, Limit::Recovery),
            // Nothing has arrived since `echoed`.
            Event::Timeout => self.limit_by(self.echoed, Limit::Recovery),
            _ => {}
        }
    }

    /// Records what limits the sender from now on.
    fn limit_by(&mut self, now: Instant, limit: Limit) {
        let span = self.limited_span();
        self.limits.change(now, limit, span);
    }

    /// Records that the window limits the sender, or the recovery that sets it.
    #[cold]
    fn limit_by_window(&mut self, now: Instant) {
        let limit = if self.recovery.is_repairing() { Limit::Recovery } else { Limit::Window };
        self.limit_by(now, limit);
    }

    /// Returns the part of the measurement window, or of the run if nobody reads RTTs, in which the sender may send.
    fn limited_span(&self) -> (Instant, Instant) {
        let (from, to) =
            if self.spec.measure == UNMEASURED { (Instant::ZERO, Instant::NEVER) } else { self.spec.measure };
        (from.max(self.spec.start), to.min(self.spec.stop))
    }

    /// Takes an RTT sample.
    #[expect(clippy::inline_always, reason = "as for `notify_law`")]
    #[inline(always)]
    fn sample_rtt(&mut self, now: Instant, packet: &Packet) {
        let rtt = now.since(packet.sent).max(Duration::from_ps(1)); // laws divide by it
        self.echoed = packet.echoed;
        if self.faults.is_none() {
            self.update_rtt(now, rtt);
        } else {
            self.measure_rtt(now, packet.sent);
        }
        self.record_rtt(now, rtt);
    }

    /// Counts an RTT sample for the summary.
    #[expect(clippy::inline_always, reason = "as for `notify_law`")]
    #[inline(always)]
    fn record_rtt(&mut self, now: Instant, rtt: Duration) {
        if self.spec.measure.0 <= now && now <= self.spec.measure.1 {
            self.rtt.sum_ps += u128::from(rtt.as_ps());
            self.rtt.above_base.add(rtt - self.spec.base_rtt, 1);
        }
    }

    #[inline]
    fn update_rtt(&mut self, now: Instant, rtt: Duration) {
        self.latest_rtt = rtt;
        self.base_rtt = match &mut self.recent_rtts {
            None => self.base_rtt.min(rtt),
            Some(recent) => recent.add(now, rtt),
        };
        self.smoothed = Some(smoothed(self.smoothed, rtt));
    }

    /// Takes an RTT sample with the host's clock. Samples that are not positive are ignored, as in Linux, except the
    /// first.
    #[cold]
    fn measure_rtt(&mut self, now: Instant, sent: Instant) {
        let measured = self.faults.as_ref().and_then(|faults| faults.rtt(sent, now));
        let first = self.smoothed.is_none().then_some(Duration::from_ps(1));
        if let Some(rtt) = measured.or(first) {
            self.update_rtt(now, rtt);
        }
    }

    /// Returns the time of the host's clock, which its law sees.
    #[inline]
    fn clock(&self, now: Instant) -> Instant {
        match &self.faults {
            None => now,
            Some(faults) => faults.clock(now),
        }
    }

    /// Returns true if the host ignores this acknowledgement or loss. The answer to its SYN is never ignored. If a
    /// timeout has changed the window, the law's window applies again.
    #[cold]
    fn ignores(&mut self, now: Instant, kind: PacketKind) -> bool {
        let ignores = kind != PacketKind::Syn && self.faults.as_ref().is_some_and(|faults| faults.ignores(now));
        if ignores {
            self.window_packets = self.law_window();
        }
        ignores
    }

    /// Passes an acknowledgement to the law and reads the law's window.
    #[expect(clippy::inline_always, reason = "of its two callers, only that of a SYN's answer is rare")]
    #[inline(always)]
    fn notify_law(&mut self, now: Instant, packet: &Packet, kind: PacketKind, newly_arrived: u64, recovering: bool) {
        let Cargo::Echo(echo) = &packet.cargo else { return };
        if self.faults.is_some() && self.ignores(now, kind) {
            return;
        }
        let acked = self.volume(newly_arrived);
        let marked = if packet.flags.has(Flags::REPORTS_MARK) { acked } else { Volume::ZERO };
        self.pass_to_law(now, echo, kind, [acked, marked], recovering);
    }

    /// Passes an acknowledgement with its volumes, acknowledged and marked, to the law and reads the law's window.
    #[expect(clippy::inline_always, reason = "as for `notify_law`")]
    #[inline(always)]
    fn pass_to_law(&mut self, now: Instant, echo: &AnyEcho, kind: PacketKind, volumes: [Volume; 2], recovering: bool) {
        let [acked, marked] = volumes;
        let limit = self.law.on_ack(&Ack {
            now: self.clock(now),
            echo,
            kind,
            acked,
            marked,
            rtt: Some(self.latest_rtt),
            smoothed_rtt: self.smoothed_rtt(),
            base_rtt: self.base_rtt,
            in_flight: self.volume(self.recovery.in_flight()),
            recovering,
            window_limited: !self.app_limited,
        });
        self.window_packets = self.in_whole_packets(limit);
    }

    /// Returns the law's window in whole packets.
    fn law_window(&mut self) -> u64 {
        self.in_whole_packets(self.law.limit())
    }

    /// Returns the window of `limit` in whole packets, or `u64::MAX` if there is no window.
    #[inline]
    fn in_whole_packets(&mut self, limit: SendLimit) -> u64 {
        let Some(window) = limit.window else {
            self.timed = true;
            return u64::MAX;
        };
        self.whole_packets.count(window, self.spec.sizes.packet_bytes())
    }

    #[inline]
    fn volume(&self, packets: u64) -> Volume {
        // Below 2⁶³: a signed integer takes one instruction to convert, an unsigned one eight.
        packets as i64 as f64 * Volume::from_bytes(f64::from(self.spec.sizes.packet_bytes()))
    }

    /// Handles the timer requested by [`Sender::poll_timer`].
    pub(crate) fn on_timer(&mut self, now: Instant) {
        if now >= self.recovery.due() {
            if self.recovery.quic().is_some() {
                self.on_quic_timer(now);
                return;
            }
            let progress = self.recovery.on_due(&self.ack_times(now, Instant::ZERO));
            self.report_losses(now);
            self.react(now, progress, false);
        }
        if now < self.rto_deadline {
            return; // a pacing timer: poll_transmit handles it
        }
        if self.probing && self.phase == Phase::Open {
            let smoothed_rtt = self.smoothed_rtt();
            if let Some([probe, timeout]) = self.recovery.postponed_probe(now, smoothed_rtt, self.rto()) {
                (self.probing, self.rto_deadline) = (probe < timeout, probe.min(timeout));
                return;
            }
            self.probing = false;
            if self.recovery.to_resend().is_some() {
                // [rfc8985:§7.2] No probe in a recovery, which can begin while its retransmissions wait for pacing.
                self.rto_deadline = now + self.rto();
                return;
            }
            // [rfc8985:§7.3] New data, if some can leave now. Its sending starts the timer.
            let with_new_data = self.ready_at(self.data_at(now)) <= now;
            self.rto_deadline = if with_new_data { Instant::NEVER } else { now + self.rto() };
            self.recovery.probe(with_new_data);
            return;
        }
        match self.phase {
            Phase::Closed => self.rto_deadline = Instant::NEVER, // poll_transmit sends the SYN
            Phase::Opening | Phase::Unanswered | Phase::Open => {
                self.rto_backoff += 1;
                self.timeouts += 1;
                self.rto_deadline = Instant::NEVER; // restarted by the retransmission
                if self.phase == Phase::Opening {
                    self.phase = Phase::Closed; // the SYN is sent again
                } else {
                    if self.phase == Phase::Unanswered {
                        self.echoed = self.opened; // nothing has arrived since
                    }
                    self.recovery.on_timeout();
                    self.on_event(now, Event::Timeout, 0);
                    // RFC 5681's loss window: one packet until the next acknowledgement, when the law's window applies
                    // again.
                    self.window_packets = 1;
                }
            }
        }
    }

    // ------------------------------------------------------------------ output

    /// Returns the time at which [`Sender::on_timer`] must be called next if no acknowledgement arrives.
    #[expect(clippy::inline_always, reason = "a comparison for each acknowledgement")]
    #[inline(always)]
    pub(crate) fn poll_timer(&self) -> Instant {
        self.rto_deadline.min(self.recovery.due())
    }

    /// Returns true if packets are paced. A law without a window is always paced, because nothing else limits it.
    const fn is_paced(&self) -> bool {
        self.timed && (self.spec.paced || self.window_packets == u64::MAX)
    }

    /// Returns the time at which the next packet exists; `NEVER` if there is none.
    #[expect(clippy::inline_always, reason = "twice per packet, and a call costs as much")]
    #[inline(always)]
    fn data_at(&self, now: Instant) -> Instant {
        if self.recovery.to_resend().is_some() {
            now
        } else if self.all_sent() || now >= self.spec.stop {
            Instant::NEVER
        } else {
            self.written_at(self.recovery.next())
        }
    }

    /// Returns the time at which pacing allows the next packet, which exists at `data_at`.
    #[inline]
    fn ready_at(&self, data_at: Instant) -> Instant {
        if self.is_paced() { data_at.max(self.next_send) } else { data_at }
    }

    /// Returns true if the window allows a packet. One packet is always allowed, because otherwise no acknowledgement
    /// would ever arrive.
    #[inline]
    fn window_allows(&self, in_flight: u64) -> bool {
        in_flight < self.window_packets.clamp(1, MAX_IN_FLIGHT) || self.recovery.must_send()
    }

    /// Returns the time at which the application has written a packet.
    #[expect(clippy::inline_always, reason = "as for `data_at`")]
    #[inline(always)]
    fn written_at(&self, number: u64) -> Instant {
        if self.timed { self.written_over_time(number) } else { Instant::ZERO }
    }

    #[inline(never)] // keeps the usual path short
    fn written_over_time(&self, number: u64) -> Instant {
        if let Some(at) = self.rare.as_ref().and_then(|rare| rare.written_at(self.opened, number, self.volume(number)))
        {
            return at;
        }
        if self.spec.demand == Rate::UNLIMITED {
            return Instant::ZERO;
        }
        self.opened + Duration::from_secs(self.volume(number) / self.spec.demand)
    }

    /// Returns the rate at which packets are paced, or `None` if the law has neither a rate nor a window.
    fn pacing_rate(&self) -> Option<Rate> {
        let limit = self.law.limit();
        limit.pacing.or_else(|| {
            let window = limit.window?;
            Some(window / self.smoothed.map_or(self.base_rtt, |(rtt, _)| rtt) * PACING_GAIN)
        })
    }

    /// Returns the next packet if one may be sent now. Otherwise returns the time at which one may be sent without another
    /// acknowledgement, `NEVER` if none may; [`Sender::poll_timer`] may be earlier.
    ///
    /// Inlined down to the link that takes the packet: see [`Link::enqueue`](crate::link::Link::enqueue).
    #[expect(clippy::inline_always, reason = "see above")]
    #[inline(always)]
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Result<Packet, Instant> {
        let in_flight = self.recovery.in_flight();
        let (role, number, bytes, flags) =
            if self.phase == Phase::Open { self.next_data(now, in_flight)? } else { self.open(now)? };
        let sending = Sending {
            now: self.clock(now),
            kind: role.kind(),
            volume: Volume::from_bytes(f64::from(bytes)),
            in_flight: self.volume(in_flight),
            app_limited: self.data_at(now) > now,
        };
        Ok(Packet {
            flow: self.spec.flow,
            to: self.spec.to,
            place: self.spec.path,
            bytes,
            incarnation: self.spec.incarnation,
            role,
            flags,
            sack: SackId::NONE,
            number,
            sent: now,
            echoed: self.echoed,
            cargo: Cargo::Header(self.law.stamp(&sending)),
        })
    }

    /// Opens the connection if its time has come. Returns the first packet's role, number, size and flags.
    #[cold]
    fn open(&mut self, now: Instant) -> Result<(Role, u64, u16, Flags), Instant> {
        let Some(syn_bytes) = self.spec.syn_bytes else { return self.next_of_first_flight(now) };
        if self.phase == Phase::Opening || now < self.spec.start || self.spec.stop <= now {
            return Err(Instant::NEVER);
        }
        self.phase = Phase::Opening;
        self.rto_deadline = now + self.rto();
        if self.rto_backoff == 0 {
            self.opened = now;
        }
        let (role, number) = self.spec.opening().map_or((Role::Syn, 0), |opening| (Role::Open, opening.number()));
        Ok((role, number, syn_bytes.get(), Flags::default()))
    }

    /// Takes the next data packet if one may be sent now, and returns its role, number, size and flags; otherwise the
    /// time as [`Sender::poll_transmit`] does. `in_flight` counts the packets before it.
    #[expect(clippy::inline_always, reason = "as for `poll_transmit`")]
    #[inline(always)]
    fn next_data(&mut self, now: Instant, in_flight: u64) -> Result<(Role, u64, u16, Flags), Instant> {
        if !self.window_allows(in_flight) {
            if self.limits.current() != Limit::Window {
                self.limit_by_window(now);
            }
            return Err(Instant::NEVER);
        }
        let data_at = self.data_at(now);
        let ready = self.ready_at(data_at);
        if ready > now {
            let has_data = data_at <= now;
            self.app_limited |= !has_data;
            let limit = if has_data { Limit::Pacing } else { Limit::Application };
            if self.limits.current() != limit {
                self.limit_by(now, limit);
            }
            return Err(ready);
        }
        let (number, resent) = match self.recovery.to_resend() {
            Some(number) => (number, true),
            None => (self.recovery.next(), false),
        };
        let bytes = if self.timed && self.rare.is_some() {
            self.on_message_sent(number, resent)
        } else {
            self.spec.sizes.bytes_of(number)
        };
        // RFC 3168 §6.1.5: a retransmission is not ECN-capable, so congestion drops it.
        let mut flags = if resent { Flags::default() } else { self.spec.ect };
        if resent {
            self.recovery.on_resent(number, now);
            self.retransmissions += 1;
            self.limits.count_resent(bytes);
            if self.recovery.restarts_timer(number) {
                self.start_timer(now, self.rto());
            }
        } else {
            self.recovery.on_sent(now);
            flags = flags.with(Flags::REDUCED, std::mem::take(&mut self.cwr_pending));
        }
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent();
        }
        if self.is_paced() {
            self.law.advance(self.clock(now));
            let spacing = self.pacing_rate().map_or(Duration::ZERO, |rate| rate.time_for(u32::from(bytes)));
            let spacing = spacing.min(MAX_SPACING);
            let wait = if self.rare.is_some() { self.wait_for_burst(spacing, bytes) } else { spacing };
            self.next_send = self.next_send.max(now) + wait;
        }
        if self.rto_deadline == Instant::NEVER {
            return Ok(self.on_untimed_sent(now, number, bytes, flags));
        }
        Ok((Role::Data, number, bytes, flags))
    }

    /// Starts the timer for a data packet. QUIC has a timer of its own, so all its packets pass here.
    #[inline(never)] // keeps the usual path short
    fn on_untimed_sent(&mut self, now: Instant, number: u64, bytes: u16, flags: Flags) -> (Role, u64, u16, Flags) {
        if self.recovery.quic().is_some() {
            let (number, flags) = self.on_datagram_sent(now, number);
            return (Role::Datagram, number, bytes, flags);
        }
        if self.recovery.unacknowledged() == 1 {
            self.report_pause(now);
        }
        self.recovery.on_probe_sent(now);
        self.start_timer(now, self.rto());
        (Role::Data, number, bytes, flags)
    }

    /// Returns the retransmission timeout (RFC 6298: 2.3 to 2.5, 5.5, 5.7), with a minimum of the variance term.
    #[inline]
    fn rto(&self) -> Duration {
        let limits = if self.syn_repeated { self.spec.rto.after_repeated_syn() } else { self.spec.rto };
        limits.timeout(self.smoothed, self.rto_backoff)
    }

    // ------------------------------------------------------------------ state

    pub(crate) fn window(&self) -> Option<Volume> {
        (self.phase == Phase::Open).then(|| self.law.limit().window).flatten()
    }

    pub(crate) fn pacing(&self) -> Option<Rate> {
        let rate = (self.phase == Phase::Open && self.is_paced()).then(|| self.pacing_rate()).flatten();
        rate.filter(|&rate| rate != Rate::UNLIMITED)
    }

    pub(crate) fn latest_rtt(&self) -> Option<Duration> {
        (self.phase == Phase::Open).then_some(self.latest_rtt)
    }

    /// Returns the number of data packets sent, including retransmissions.
    pub(crate) const fn packets_sent(&self) -> u64 {
        self.recovery.next() + self.retransmissions
    }

    /// Returns what has limited the sender in the measurement window until `end`.
    pub(crate) fn limited_by(&self, end: Instant) -> Option<LimitedBy> {
        self.limit_times(end).shares()
    }

    /// Returns the time in the measurement window, until `end`, that each limit has applied.
    pub(crate) fn limit_times(&self, end: Instant) -> LimitSums {
        let (from, to) = self.limited_span();
        self.limits.spent((from, to.min(end)))
    }

    /// Returns the bytes of all retransmissions.
    pub(crate) fn resent_bytes(&self) -> u64 {
        self.limits.resent_bytes()
    }

    /// Returns the longest recovery until `now`.
    pub(crate) fn longest_recovery(&self, now: Instant) -> LongestRecovery {
        self.limits.longest_recovery(now, self.smoothed_rtt())
    }

    pub(crate) fn in_flight(&self) -> Volume {
        self.volume(self.recovery.in_flight())
    }

    pub(crate) fn observe(&self, probe: &mut dyn Probe) {
        self.law.observe(probe);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.rtt.above_base.heap_bytes()
            + self.limits.heap_bytes()
            + self.rare.as_ref().map_or(0, |rare| rare.heap_bytes())
    }
}

impl RttSamples {
    pub(crate) fn mean_s(&self) -> Option<f64> {
        let count = self.above_base.total();
        (count > 0).then(|| self.sum_ps as f64 * 1e-12 / count as f64)
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
