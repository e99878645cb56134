//! Receiving host, which reorders and counts packets and sends acknowledgements.

mod quic;

use waterfill_laws::protocol::{Ecn, PacketKind, Received, Retransmission};
use waterfill_laws::registry::{AnyEcho, AnyReceiver, ProtocolId};
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::{Duration, Instant};

use crate::binding::FlowProtocol;
use crate::fault::ReceiverFaults;
use crate::packet::{Blocks, Cargo, EXPECTS_BITS, Flags, Packet, Role, SackId, Sacks, naming};
use crate::ranges::Ranges;
use crate::sender::ecn::ACE_INITIAL;

/// Delay of a delayed acknowledgement, as in Linux. RFC 5681 allows up to 500 ms.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// Parameters of a new receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverSpec {
    pub(crate) flow: u32,
    /// Index of the sender among those of its part.
    pub(crate) to: u32,
    /// Start of the reverse path in the list of all paths.
    pub(crate) path: u32,
    pub(crate) incarnation: u16,
    pub(crate) ack_bytes: u16,
    /// True if only every second packet is acknowledged.
    pub(crate) delayed_ack: bool,
    pub(crate) retransmission: Retransmission,
    pub(crate) ecn: Ecn,
    /// Number of packets that the sender will send; `u64::MAX` if unlimited.
    pub(crate) packets: u64,
    /// Size of all headers of a data packet, in bytes.
    pub(crate) header_bytes: u16,
    /// Measurement window of the summary, limited to the flow's lifetime.
    pub(crate) counted: (Instant, Instant),
}

/// Receiving side of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) spec: ReceiverSpec,
    /// Receiver's part of the law; `None` if the law's packets carry no fields.
    law: Option<AnyReceiver>,
    /// Faults of the receiver and of its path, if any.
    faults: Option<Box<ReceiverFaults>>,
    /// Packets to acknowledge, for a sender that recovers by QUIC's rules.
    quic: Option<Box<quic::Arrivals>>,
    /// Number of the next packet expected.
    next: u64,
    /// Numbers of the packets received above a gap.
    above: Ranges,
    /// Number of the newest packet of each of the three latest ranges, newest first (RFC 2018).
    latest: [u64; 3],
    delayed: Delayed,
    /// What acknowledgements report of marks: a mark (ECE), or AccECN's counter of marked packets.
    reports: Flags,
    /// Number of marked payload bytes for AccECN's option; 0 without the option.
    marked_bytes: u32,
    /// True if the last packet was marked, with AccECN.
    last_marked: bool,
    /// Number of bytes received.
    pub(crate) bytes_total: u64,
    /// Number of bytes received in the measurement window.
    pub(crate) bytes_counted: u64,
    /// Payload bytes that arrived for the first time in the measurement window, in order or not. They never exceed
    /// `bytes_counted`.
    pub(crate) payload_counted: u64,
    /// Number of packets that had arrived before.
    pub(crate) duplicates: u64,
    /// Time at which the last packet was received, or `NEVER`.
    completed: Instant,
}

/// A delayed acknowledgement. If it is never due, no acknowledgement is delayed.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    /// Timestamp of the packet that is acknowledged.
    sent: Instant,
    /// Latest time at which the acknowledgement is sent.
    due: Instant,
}

impl Delayed {
    const NONE: Self = Self { sent: Instant::ZERO, due: Instant::NEVER };

    /// Returns the timestamp that the delayed acknowledgement echoes, or `None` if none is delayed.
    fn sent(&self) -> Option<Instant> {
        (self.due != Instant::NEVER).then_some(self.sent)
    }
}

/// Timing of the acknowledgement of a data packet.
enum Answer {
    /// Immediate acknowledgement, with its timestamp and selective blocks.
    Now(Instant, SackId),
    /// Immediate acknowledgement of the waiting packet with this timestamp and what it reports. The new packet then
    /// waits.
    BeforeChange(Instant, Flags),
    /// Acknowledgement with the next packet, or when the timer fires.
    Later,
}

/// Effect of a packet's mark on the timing of its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// None.
    Usual,
    /// The state of [`Ecn::Accurate`] has changed: the delayed acknowledgement is sent with the state before.
    Changed,
    /// The acknowledgement is not delayed.
    Urgent,
}

impl Receiver {
    pub(crate) fn new(spec: ReceiverSpec, law: &FlowProtocol, faults: Option<Box<ReceiverFaults>>) -> Self {
        Self {
            faults,
            quic: (spec.retransmission == Retransmission::Quic)
                .then(|| Box::new(quic::Arrivals::new(spec.delayed_ack))),
            law: law.protocol.has_fields().then(|| law.params.receiver()),
            next: 0,
            above: Ranges::default(),
            latest: [0; 3],
            delayed: Delayed::NONE,
            marked_bytes: 0,
            reports: if spec.ecn.counts() { Flags::of_ace(ACE_INITIAL) } else { Flags::default() },
            last_marked: false,
            bytes_total: 0,
            bytes_counted: 0,
            payload_counted: 0,
            duplicates: 0,
            completed: Instant::NEVER,
            spec: ReceiverSpec { delayed_ack: spec.delayed_ack && spec.retransmission != Retransmission::Quic, ..spec },
        }
    }

    /// Starts logging the steps of the receiver's law.
    pub(crate) fn log_steps(&mut self, id: ProtocolId, f: u32, now: Instant, log: &StepLog) {
        if let Some(law) = &mut self.law {
            log.receiver(id, f, now, law);
        }
    }

    /// Handles a SYN or data packet. Returns an acknowledgement unless it is delayed.
    ///
    /// Inlined down to the link that takes the acknowledgement: see [`Link::enqueue`](crate::link::Link::enqueue).
    #[expect(clippy::inline_always, reason = "see above")]
    #[inline(always)]
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, sacks: &mut Sacks) -> Option<Packet> {
        let kind = packet.role.kind();
        if self.faults.is_some() {
            self.meet_faults(now, packet);
        }
        self.notify_of_mark(now, packet);
        if let (Some(law), Cargo::Header(header)) = (&mut self.law, &packet.cargo) {
            // Data echoes the timestamp of an acknowledgement: an RTT sample of the receiver.
            let rtt = (packet.echoed > Instant::ZERO).then(|| now.since(packet.echoed));
            law.on_data(&Received { now, kind, header, rtt });
        }
        let (role, sent, sack) = if kind == PacketKind::Syn {
            (Role::SynAck, packet.sent, SackId::NONE)
        } else {
            match self.on_data(now, packet, sacks) {
                Answer::Now(sent, sack) => (Role::Ack, sent, sack),
                Answer::BeforeChange(sent, reports) => return Some(self.ack_before_change(now, sent, reports)),
                Answer::Later => return None,
            }
        };
        Some(self.ack(now, role, sent, sack))
    }

    /// Handles a data packet of the first flight of a flow without a handshake. Acknowledges it at once, and names the
    /// receiver to a traffic source's flow.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_first_flight(
        &mut self,
        now: Instant,
        packet: &Packet,
        receiver: Option<u32>,
        sacks: &mut Sacks,
    ) -> Option<Packet> {
        if self.faults.is_some() {
            self.meet_faults(now, packet);
        }
        self.notify_of_mark(now, packet);
        if let (Some(law), Cargo::Header(header)) = (&mut self.law, &packet.cargo) {
            law.on_data(&Received { now, kind: packet.role.kind(), header, rtt: None });
        }
        let delayed_ack = std::mem::replace(&mut self.spec.delayed_ack, false);
        let answer = self.on_data(now, packet, sacks);
        self.spec.delayed_ack = delayed_ack;
        let Answer::Now(sent, sack) = answer else { return None };
        let Some(receiver) = receiver else { return Some(self.ack(now, Role::SynAck, sent, sack)) };
        let blocks = naming(receiver, sacks.take(sack).unwrap_or_default());
        Some(self.ack(now, Role::SynAck, sent, sacks.store(blocks)))
    }

    /// Records an arrival for the faults of the next acknowledgement. Skips a gap in the data if the faults hide
    /// losses.
    #[cold]
    fn meet_faults(&mut self, now: Instant, packet: &Packet) {
        let Some(faults) = &mut self.faults else { return };
        faults.on_packet(packet.cargo.has_fields());
        if matches!(packet.role, Role::Data | Role::First | Role::Early)
            && packet.number > self.next
            && faults.hides_loss(now)
        {
            self.skip_to(packet.number);
        }
    }

    /// Takes all data below `number` as received.
    fn skip_to(&mut self, number: u64) {
        if number > self.next {
            self.next = number;
            self.above = Ranges::default();
        }
    }

    /// Returns an acknowledgement's echo, and what it reports of marks, with the faults applied. A counter of marks has
    /// left out what it does not report.
    #[cold]
    fn falsified(&self, now: Instant, echo: AnyEcho) -> (AnyEcho, Flags) {
        let Some(faults) = &self.faults else { return (echo, self.reports) };
        let mut reports = self.reports;
        if !self.spec.ecn.counts() && faults.misreports(now) {
            reports.clear(Flags::REPORTS_MARK);
        }
        (faults.echo(now, echo), reports)
    }

    /// Orders and counts a data packet. Returns the timing of its acknowledgement.
    #[expect(clippy::inline_always, reason = "as for `on_packet`")]
    #[inline(always)]
    fn on_data(&mut self, now: Instant, packet: &Packet, sacks: &mut Sacks) -> Answer {
        let (before, mark) = (self.reports, self.record_mark(now, packet));
        let counts = self.completed().is_none() && self.spec.counted.0 <= now && now <= self.spec.counted.1;
        self.bytes_total += u64::from(packet.bytes);
        if counts {
            self.bytes_counted += u64::from(packet.bytes);
        }
        let in_order = packet.number == self.next && self.above.is_empty();
        if counts && (in_order || (packet.number >= self.next && !self.above.contains(packet.number))) {
            self.payload_counted += u64::from(packet.bytes - self.spec.header_bytes);
        }
        let again = if in_order {
            self.next += 1;
            false
        } else {
            self.store(packet.number)
        };
        if self.completed().is_none() && self.spec.packets == self.next {
            self.completed = now;
        }
        let delay = self.spec.delayed_ack && in_order && self.completed().is_none() && mark != Mark::Urgent;
        if delay && (mark == Mark::Changed || self.delayed.sent().is_none()) {
            let next = Delayed { sent: packet.sent, due: now + DELAYED_ACK };
            let waiting = std::mem::replace(&mut self.delayed, next);
            return waiting.sent().map_or(Answer::Later, |sent| Answer::BeforeChange(sent, before));
        }
        // RFC 7323: echo the timestamp of the oldest packet not yet acknowledged.
        let sent = std::mem::replace(&mut self.delayed, Delayed::NONE).sent().unwrap_or(packet.sent);
        let selective = self.spec.retransmission.is_selective() && !self.above.is_empty();
        // The latest ranges can be filled while older ones remain.
        let blocks = if selective { self.blocks() } else { [(0, 0); 3] };
        let sack = if again && self.spec.retransmission == Retransmission::Rack {
            // RFC 2883 §4: the first block reports the packet that has arrived again.
            let [first, second, _] = blocks;
            sacks.store([(packet.number, packet.number + 1), first, second])
        } else if blocks[0] != (0, 0) {
            sacks.store(blocks)
        } else {
            SackId::NONE
        };
        Answer::Now(sent, sack)
    }

    /// Passes a packet's mark to the law, unless the receiver misreports marks.
    #[inline]
    fn notify_of_mark(&mut self, now: Instant, packet: &Packet) {
        if packet.flags.has(Flags::MARKED)
            && let Some(law) = &mut self.law
            && !self.faults.as_ref().is_some_and(|faults| faults.misreports(now))
        {
            law.on_mark(now);
        }
    }

    /// Records the mark of a packet.
    #[inline]
    fn record_mark(&mut self, now: Instant, packet: &Packet) -> Mark {
        if self.spec.ecn == Ecn::Off { Mark::Usual } else { self.report_mark(now, packet) }
    }

    /// Records the mark of a packet as the flow's feedback wants it.
    #[inline(never)] // keeps the path without ECN short
    fn report_mark(&mut self, now: Instant, packet: &Packet) -> Mark {
        let flags = packet.flags;
        let marked = flags.has(Flags::MARKED);
        let reported = self.reports.has(Flags::REPORTS_MARK);
        let report = |on: bool| Flags::default().with(Flags::REPORTS_MARK, on);
        match self.spec.ecn {
            Ecn::Off => Mark::Usual,
            // RFC 3168 §6.1.3: repeated until the sender says that it has reduced its window.
            Ecn::Classic => {
                self.reports = report(marked || (reported && !flags.has(Flags::REDUCED)));
                Mark::Usual
            }
            // RFC 8257 §3.2.
            Ecn::Accurate => {
                self.reports = report(marked);
                if marked == reported { Mark::Usual } else { Mark::Changed }
            }
            Ecn::Counted | Ecn::CountedInHeader => {
                let first = marked && !std::mem::replace(&mut self.last_marked, marked);
                if marked && !self.faults.as_ref().is_some_and(|faults| faults.misreports(now)) {
                    self.reports = Flags::of_ace(self.reports.ace() + 1); // [rfc9768:§3.2.1] r.cep
                    if self.spec.ecn == Ecn::Counted {
                        let payload = u32::from(packet.bytes - self.spec.header_bytes);
                        self.marked_bytes = self.marked_bytes.wrapping_add(payload);
                    }
                }
                // [rfc9768:§3.2.2.5.1] The first mark after a packet without one is acknowledged at once.
                if first { Mark::Urgent } else { Mark::Usual }
            }
        }
    }

    /// Acknowledges the delayed packet at once with the previous mark state, because the state has changed (RFC 8257
    /// §3.2).
    #[cold]
    fn ack_before_change(&mut self, now: Instant, sent: Instant, reports: Flags) -> Packet {
        let mut ack = self.ack(now, Role::Ack, sent, SackId::NONE);
        ack.number = self.next - 1; // the acknowledgement of the newest packet is delayed now
        ack.flags = reports;
        ack
    }

    /// Stores a packet that is above a gap or fills a gap. Returns true if it has arrived before.
    fn store(&mut self, number: u64) -> bool {
        let again = number < self.next || self.above.contains(number);
        if again {
            self.duplicates += 1;
        }
        if number < self.next {
            return true;
        }
        self.above.insert(number, number + 1);
        if let Some((start, end)) = self.above.range_of(self.next) {
            debug_assert_eq!(start, self.next);
            self.next = end;
            self.above.remove_below(end);
        }
        // One entry per range, the newest range first.
        if let Some((start, end)) = self.above.range_of(number) {
            let known = self.latest.iter().position(|&n| start <= n && n < end);
            self.latest[..=known.unwrap_or(2)].rotate_right(1);
            self.latest[0] = number;
        }
        again
    }

    /// Counts an endpoint's datagram, after which its application has read `payload` bytes and, if `done`, all.
    #[cold]
    pub(crate) fn count_datagram(&mut self, now: Instant, bytes: u16, payload: u64, done: bool) {
        self.bytes_total += u64::from(bytes);
        if self.completed().is_none() && self.spec.counted.0 <= now && now <= self.spec.counted.1 {
            self.bytes_counted += u64::from(bytes);
            self.payload_counted += payload;
        }
        if done && self.completed().is_none() {
            self.completed = now;
        }
    }

    /// Returns the time at which the last packet was received.
    pub(crate) fn completed(&self) -> Option<Instant> {
        (self.completed != Instant::NEVER).then_some(self.completed)
    }

    /// Returns the selective acknowledgement of the latest ranges.
    fn blocks(&self) -> Blocks {
        let mut blocks = [(0, 0); 3];
        let mut used = 0;
        for &number in &self.latest {
            if let Some(range) = self.above.range_of(number).filter(|range| !blocks[..used].contains(range)) {
                blocks[used] = range;
                used += 1;
            }
        }
        blocks
    }

    /// Returns the time at which [`Receiver::on_timer`] must be called, or `NEVER` if no acknowledgement is delayed.
    pub(crate) fn poll_timer(&self) -> Instant {
        self.delayed.due
    }

    /// Returns the delayed acknowledgement if it is due.
    pub(crate) fn on_timer(&mut self, now: Instant, sacks: &mut Sacks) -> Option<Packet> {
        let Delayed { due, .. } = self.delayed;
        let sent = self.delayed.sent()?;
        (due <= now).then(|| {
            self.delayed = Delayed::NONE;
            if self.quic.is_some() {
                self.ack_frame(now, sent, sacks)
            } else {
                self.ack(now, Role::Ack, sent, SackId::NONE)
            }
        })
    }

    /// Builds an acknowledgement that echoes the timestamp `sent`.
    #[expect(clippy::inline_always, reason = "as for `on_packet`")]
    #[inline(always)]
    fn ack(&mut self, now: Instant, role: Role, sent: Instant, sack: SackId) -> Packet {
        let echo = match &mut self.law {
            Some(law) => law.echo(now),
            None => AnyEcho::None,
        };
        let (echo, flags) = if self.faults.is_some() { self.falsified(now, echo) } else { (echo, self.reports) };
        Packet {
            flow: self.spec.flow,
            to: self.spec.to,
            place: self.spec.path,
            bytes: self.spec.ack_bytes,
            incarnation: self.spec.incarnation,
            role,
            flags,
            sack,
            number: self.next | u64::from(self.marked_bytes) << EXPECTS_BITS,
            sent,
            echoed: now,
            cargo: Cargo::Echo(echo),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{expects, marked_bytes};
    use waterfill_laws::registry::{AnyHeader, ProtocolId};

    fn receiver(delayed_ack: bool) -> Receiver {
        receiver_by(Retransmission::Rfc6675, delayed_ack)
    }

    pub(super) fn receiver_by(retransmission: Retransmission, delayed_ack: bool) -> Receiver {
        let spec = ReceiverSpec {
            flow: 0,
            to: 0,
            path: 0,
            incarnation: 0,
            ack_bytes: 40,
            delayed_ack,
            retransmission,
            ecn: Ecn::Accurate,
            packets: 10,
            header_bytes: 40,
            counted: (Instant::ZERO, Instant::NEVER),
        };
        Receiver::new(spec, &FlowProtocol { protocol: ProtocolId::Window, params: ProtocolId::Window.params() }, None)
    }

    pub(super) fn data(number: u64) -> Packet {
        Packet {
            flow: 0,
            to: 0,
            place: 0,
            bytes: 1500,
            incarnation: 0,
            role: Role::Data,
            flags: Flags::default(),
            sack: SackId::NONE,
            number,
            sent: Instant::from_ps(number),
            echoed: Instant::ZERO,
            cargo: Cargo::Header(AnyHeader::None),
        }
    }

    #[test]
    fn blocks_start_with_the_newest_range() {
        let (mut r, mut sacks) = (receiver(false), Sacks::default());
        let mut at = |n| {
            let ack = r.on_packet(Instant::from_ps(1), &data(n), &mut sacks).expect("an acknowledgement");
            (ack.number, sacks.take(ack.sack))
        };
        assert_eq!(at(0), (1, None));
        assert_eq!(at(2), (1, Some([(2, 3), (0, 0), (0, 0)])));
        assert_eq!(at(4), (1, Some([(4, 5), (2, 3), (0, 0)])));
        assert_eq!(at(6), (1, Some([(6, 7), (4, 5), (2, 3)])));
        assert_eq!(at(3), (1, Some([(2, 5), (6, 7), (0, 0)])));
        assert_eq!(at(1), (5, Some([(6, 7), (0, 0), (0, 0)])));
        assert_eq!(at(5), (7, None));
        assert_eq!(at(5), (7, None), "a duplicate is acknowledged and changes nothing");
        assert_eq!(sacks.in_use(), 0);
    }

    /// RFC 2018 §4: a block reports a range above a gap. Older ranges than the latest three are forgotten, as in Linux.
    #[test]
    fn filled_ranges_leave_no_empty_blocks() {
        let (mut r, mut sacks) = (receiver(false), Sacks::default());
        r.spec.packets = 20;
        let mut at = |n| {
            let ack = r.on_packet(Instant::from_ps(1), &data(n), &mut sacks).expect("an acknowledgement");
            (ack.number, sacks.take(ack.sack))
        };
        for n in [0, 8, 2, 4, 6, 1, 3] {
            at(n);
        }
        assert_eq!(at(5), (7, None), "8 is still above a gap, but no range of the latest three");
        assert_eq!(at(10), (7, Some([(10, 11), (0, 0), (0, 0)])));
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_every_gap_at_once() {
        let (mut r, mut sacks) = (receiver(true), Sacks::default());
        let mut at = |n| r.on_packet(Instant::from_ps(1), &data(n), &mut sacks).map(|a| (a.number, a.sent));
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some((2, Instant::from_ps(0))), "the older timestamp");
        assert_eq!(at(3), Some((2, Instant::from_ps(3))));
        assert_eq!(at(2), Some((4, Instant::from_ps(2))));
        assert_eq!(at(4), None);
        assert_eq!(r.on_timer(Instant::from_ps(2), &mut Sacks::default()).map(|a| a.number), None);
        assert_eq!(r.on_timer(r.poll_timer(), &mut Sacks::default()).map(|a| a.number), Some(5));
    }

    #[test]
    fn a_mark_is_repeated_until_the_window_is_reduced() {
        let (mut r, mut sacks) = (receiver(false), Sacks::default());
        r.spec.ecn = Ecn::Classic;
        let mut at = |n, flags| {
            let ack = r.on_packet(Instant::from_ps(1), &Packet { flags, ..data(n) }, &mut sacks);
            ack.expect("an acknowledgement").flags.has(Flags::REPORTS_MARK)
        };
        let none = Flags::default();
        assert!(!at(0, none));
        assert!(at(1, Flags::MARKED));
        assert!(at(2, none));
        assert!(!at(3, Flags::REDUCED));
        assert!(at(4, Flags::REDUCED.with(Flags::MARKED, true)), "marked again");
    }

    /// `[rfc9768:§3.2.2.5.1]` Each acknowledgement carries the count, and the first mark is acknowledged at once.
    #[test]
    fn rfc9768_acknowledgements_count_marks() {
        let (mut r, mut sacks) = (receiver(true), Sacks::default());
        (r.spec.ecn, r.reports) = (Ecn::Counted, Flags::of_ace(ACE_INITIAL));
        let mut at = |n, marked| {
            let packet = Packet { flags: Flags::default().with(Flags::MARKED, marked), ..data(n) };
            r.on_packet(Instant::from_ps(1), &packet, &mut sacks).map(|a| (expects(a.number), a.flags.ace()))
        };
        assert_eq!(at(0, false), None);
        assert_eq!(at(1, false), Some((2, 5)));
        assert_eq!(at(2, true), Some((3, 6)), "at once");
        assert_eq!(at(3, true), None, "the second of a row is delayed");
        assert_eq!(at(4, true), Some((5, 0)), "8 modulo 8");
        assert_eq!(at(5, false), None);
    }

    /// `[rfc9768:§3.2.3]` The option counts the payload of marked packets. It leaves the next number expected as it is.
    #[test]
    fn rfc9768_3_2_3_acknowledgements_count_marked_bytes() {
        let of = |ecn| {
            let (mut r, mut sacks) = (receiver(false), Sacks::default());
            r.spec.ecn = ecn;
            [true, false, true].map(|marked| {
                let packet = Packet { flags: Flags::default().with(Flags::MARKED, marked), ..data(r.next) };
                let ack = r.on_packet(Instant::from_ps(1), &packet, &mut sacks).expect("an acknowledgement");
                (expects(ack.number), marked_bytes(ack.number))
            })
        };
        assert_eq!(of(Ecn::Counted), [(1, 1460), (2, 1460), (3, 2920)]);
        assert_eq!(of(Ecn::CountedInHeader), [(1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn delayed_acknowledgements_report_accurate_marks_per_packet() {
        let (mut r, mut sacks) = (receiver(true), Sacks::default());
        let mut at = |n, marked| {
            let packet = Packet { flags: Flags::default().with(Flags::MARKED, marked), ..data(n) };
            let ack = r.on_packet(Instant::from_ps(1), &packet, &mut sacks);
            ack.map(|a| (a.number, a.flags.has(Flags::REPORTS_MARK)))
        };
        assert_eq!(at(0, false), None);
        assert_eq!(at(1, true), Some((1, false)), "packet 0 was not marked");
        assert_eq!(at(2, true), Some((3, true)), "1 and 2 were");
        assert_eq!(at(3, true), None);
        assert_eq!(at(4, false), Some((4, true)));
        assert_eq!(at(5, false), Some((6, false)));
    }
}
