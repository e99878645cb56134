//! The receiving host: reorders packets, counts them, sends acknowledgements.

use waterfill_laws::protocol::{Ecn, PacketKind, Received, Retransmission};
use waterfill_laws::registry::{AnyEcho, AnyReceiver};
use waterfill_laws::units::{Duration, Instant};

use crate::flow::Law;
use crate::packet::{Blocks, Cargo, Flags, Packet, Role, SackId, Sacks};
use crate::ranges::Ranges;

/// Delay of an acknowledgement: Linux's; RFC 5681 allows up to 500 ms.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// What a receiver is built from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverSpec {
    pub(crate) flow: u32,
    pub(crate) incarnation: u16,
    pub(crate) ack_bytes: u16,
    /// Acknowledge every second packet.
    pub(crate) delayed_ack: bool,
    pub(crate) retransmission: Retransmission,
    pub(crate) ecn: Ecn,
    /// Packets that the sender will send; `u64::MAX` is unlimited.
    pub(crate) packets: u64,
    /// The summary's window, cut to the flow's lifetime.
    pub(crate) counted: (Instant, Instant),
}

/// A receiving host's end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) spec: ReceiverSpec,
    /// The law, unless its packets carry nothing: then there is nothing to read or write here.
    law: Option<AnyReceiver>,
    /// The next packet expected.
    next: u64,
    /// Packets received above a gap.
    above: Ranges,
    /// The newest packet of each of the three latest ranges, newest first (RFC 2018).
    latest: [u64; 3],
    /// Timestamp of the packet whose acknowledgement is delayed, and when to send that at the latest.
    delayed: Option<(Instant, Instant)>,
    /// Acknowledgements report a mark (ECE).
    reports_mark: bool,
    /// Bytes received.
    pub(crate) bytes_total: u64,
    /// Bytes received in the window.
    pub(crate) bytes_counted: u64,
    /// In-order payload received in the window.
    pub(crate) payload_counted: u64,
    /// When the last packet was received.
    pub(crate) completed: Option<Instant>,
}

/// When a data packet is acknowledged.
enum Answer {
    /// At once, with the timestamp and the selective blocks.
    Now(Instant, SackId),
    /// Its own acknowledgement waits; the one that waited, with this timestamp, is sent.
    BeforeChange(Instant),
    /// With the next packet, or when the timer fires.
    Later,
}

impl Receiver {
    pub(crate) fn new(spec: ReceiverSpec, law: &Law) -> Self {
        Self {
            law: law.protocol.has_fields().then(|| law.params.receiver()),
            next: 0,
            above: Ranges::default(),
            latest: [0; 3],
            delayed: None,
            reports_mark: false,
            bytes_total: 0,
            bytes_counted: 0,
            payload_counted: 0,
            completed: None,
            spec,
        }
    }

    /// Handles a SYN or data packet; returns an acknowledgement unless that is delayed. `payload` gives a packet's
    /// payload.
    ///
    /// Inlined down to the link that takes the acknowledgement: see [`Link::enqueue`](crate::link::Link::enqueue).
    #[expect(clippy::inline_always, reason = "see above")]
    #[inline(always)]
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        packet: &Packet,
        payload: impl Fn(u64) -> u32,
        sacks: &mut Sacks,
    ) -> Option<Packet> {
        let kind = packet.role.kind();
        if let (Some(law), Cargo::Header(header)) = (&mut self.law, &packet.cargo) {
            // Data echoes the timestamp of an acknowledgement: an RTT sample of the receiver.
            let rtt = (packet.echoed > Instant::ZERO).then(|| now.since(packet.echoed));
            law.on_data(&Received { now, kind, header, rtt });
        }
        let (role, sent, sack) = if kind == PacketKind::Syn {
            (Role::SynAck, packet.sent, SackId::NONE)
        } else {
            match self.on_data(now, packet, payload, sacks) {
                Answer::Now(sent, sack) => (Role::Ack, sent, sack),
                Answer::BeforeChange(sent) => return Some(self.ack_before_change(now, sent)),
                Answer::Later => return None,
            }
        };
        Some(self.ack(now, role, sent, sack))
    }

    /// Orders and counts a data packet.
    #[inline]
    fn on_data(&mut self, now: Instant, packet: &Packet, payload: impl Fn(u64) -> u32, sacks: &mut Sacks) -> Answer {
        let changed = self.record_mark(packet.flags);
        let counts = self.completed.is_none() && self.spec.counted.0 <= now && now <= self.spec.counted.1;
        self.bytes_total += u64::from(packet.bytes);
        if counts {
            self.bytes_counted += u64::from(packet.bytes);
        }
        let in_order = packet.number == self.next && self.above.is_empty();
        let before = self.next;
        if in_order {
            self.next += 1;
        } else if packet.number >= self.next {
            self.store(packet.number);
        }
        if counts {
            self.payload_counted += (before..self.next).map(|n| u64::from(payload(n))).sum::<u64>();
        }
        if self.completed.is_none() && self.spec.packets == self.next {
            self.completed = Some(now);
        }
        let delay = self.spec.delayed_ack && in_order && self.completed.is_none();
        if delay && (changed || self.delayed.is_none()) {
            let before = self.delayed.replace((packet.sent, now + DELAYED_ACK));
            return before.map_or(Answer::Later, |(sent, _)| Answer::BeforeChange(sent));
        }
        // RFC 7323: echo the timestamp of the oldest packet not yet acknowledged.
        let sent = self.delayed.take().map_or(packet.sent, |(sent, _)| sent);
        let selective = self.spec.retransmission == Retransmission::Sack && !self.above.is_empty();
        let sack = if selective { sacks.store(self.blocks()) } else { SackId::NONE };
        Answer::Now(sent, sack)
    }

    /// Records whether a packet was marked; returns whether the state of [`Ecn::Accurate`] changed.
    const fn record_mark(&mut self, flags: Flags) -> bool {
        let marked = flags.has(Flags::MARKED);
        match self.spec.ecn {
            Ecn::Off => false,
            // RFC 3168 §6.1.3: repeated until the sender says that it has reduced its window.
            Ecn::Classic => {
                self.reports_mark = marked || (self.reports_mark && !flags.has(Flags::REDUCED));
                false
            }
            // RFC 8257 §3.2.
            Ecn::Accurate => {
                let changed = marked != self.reports_mark;
                self.reports_mark = marked;
                changed
            }
        }
    }

    /// Acknowledges the delayed packet with the previous mark state (RFC 8257 §3.2: at once when the state changes).
    #[cold]
    fn ack_before_change(&mut self, now: Instant, sent: Instant) -> Packet {
        let mut ack = self.ack(now, Role::Ack, sent, SackId::NONE);
        ack.number = self.next - 1; // the acknowledgement of the newest packet is delayed now
        ack.flags = Flags::default().with(Flags::REPORTS_MARK, !self.reports_mark);
        ack
    }

    /// Stores a packet above a gap, or one that fills a gap.
    fn store(&mut self, number: u64) {
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
    }

    /// Selective acknowledgement of the latest ranges.
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

    /// When [`Receiver::on_timer`] has something to do.
    pub(crate) fn poll_timer(&self) -> Instant {
        self.delayed.map_or(Instant::NEVER, |(_, at)| at)
    }

    /// Returns the delayed acknowledgement if it is due.
    pub(crate) fn on_timer(&mut self, now: Instant) -> Option<Packet> {
        let (sent, at) = self.delayed?;
        (at <= now).then(|| {
            self.delayed = None;
            self.ack(now, Role::Ack, sent, SackId::NONE)
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
        Packet {
            flow: self.spec.flow,
            bytes: self.spec.ack_bytes,
            incarnation: self.spec.incarnation,
            hop: 0,
            role,
            flags: Flags::default().with(Flags::REPORTS_MARK, self.reports_mark),
            sack,
            number: self.next,
            sent,
            echoed: now,
            cargo: Cargo::Echo(echo),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waterfill_laws::registry::{AnyHeader, ProtocolId};

    fn receiver(delayed_ack: bool) -> Receiver {
        let spec = ReceiverSpec {
            flow: 0,
            incarnation: 0,
            ack_bytes: 40,
            delayed_ack,
            retransmission: Retransmission::Sack,
            ecn: Ecn::Accurate,
            packets: 10,
            counted: (Instant::ZERO, Instant::NEVER),
        };
        Receiver::new(spec, &Law { protocol: ProtocolId::Window, params: ProtocolId::Window.params() })
    }

    fn data(number: u64) -> Packet {
        Packet {
            flow: 0,
            bytes: 1500,
            incarnation: 0,
            hop: 0,
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
            let ack = r.on_packet(Instant::from_ps(1), &data(n), |_| 1460, &mut sacks).expect("an acknowledgement");
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

    #[test]
    fn every_second_packet_is_acknowledged_and_every_gap_at_once() {
        let (mut r, mut sacks) = (receiver(true), Sacks::default());
        let mut at = |n| r.on_packet(Instant::from_ps(1), &data(n), |_| 1460, &mut sacks).map(|a| (a.number, a.sent));
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some((2, Instant::from_ps(0))), "the older timestamp");
        assert_eq!(at(3), Some((2, Instant::from_ps(3))));
        assert_eq!(at(2), Some((4, Instant::from_ps(2))));
        assert_eq!(at(4), None);
        assert_eq!(r.on_timer(Instant::from_ps(2)).map(|a| a.number), None);
        assert_eq!(r.on_timer(r.poll_timer()).map(|a| a.number), Some(5));
    }

    #[test]
    fn a_mark_is_repeated_until_the_window_is_reduced() {
        let (mut r, mut sacks) = (receiver(false), Sacks::default());
        r.spec.ecn = Ecn::Classic;
        let mut at = |n, flags| {
            let ack = r.on_packet(Instant::from_ps(1), &Packet { flags, ..data(n) }, |_| 1460, &mut sacks);
            ack.expect("an acknowledgement").flags.has(Flags::REPORTS_MARK)
        };
        let none = Flags::default();
        assert!(!at(0, none));
        assert!(at(1, Flags::MARKED));
        assert!(at(2, none));
        assert!(!at(3, Flags::REDUCED));
        assert!(at(4, Flags::REDUCED.with(Flags::MARKED, true)), "marked again");
    }

    #[test]
    fn delayed_acknowledgements_report_accurate_marks_per_packet() {
        let (mut r, mut sacks) = (receiver(true), Sacks::default());
        let mut at = |n, marked| {
            let packet = Packet { flags: Flags::default().with(Flags::MARKED, marked), ..data(n) };
            let ack = r.on_packet(Instant::from_ps(1), &packet, |_| 1460, &mut sacks);
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
