//! A receiver of QUIC's packets: when it acknowledges (`[rfc9000:§13.2]`), and which packets.
//!
//! A sender may ask for fewer acknowledgements by draft-ietf-quic-ack-frequency, whose sections the tags `[ack-frequency:§]`
//! name.

use waterfill_laws::protocol::Received;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::AckFrequencySpec;

use super::{Delayed, Receiver};
use crate::ack_frame::{AckFrame, Numbers};
use crate::packet::{Cargo, Flags, Packet, Role, SackId, Sacks};
use crate::ranges::Ranges;
use crate::recovery::quic::MAX_ACK_DELAY;

/// Maximum number of ranges that a receiver keeps. The oldest are forgotten (`[rfc9000:§13.2.3]`).
const RANGES_MAX: usize = 32;

/// Packets that a receiver acknowledges.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Number of packets for which there is one acknowledgement.
    packets_per_ack: u32,
    max_delay: Duration,
    /// Reordering in packets at which an acknowledgement is sent at once; 0 for never.
    reordering: u64,
    numbers: Ranges,
    /// Largest number in an acknowledgement (Largest Acked).
    reported_to: Option<u64>,
    /// True if the packet before arrived with a mark.
    last_marked: bool,
    /// Arrival time of the largest packet number.
    largest_at: Instant,
    /// Number of packets since the last acknowledgement.
    unreported: u32,
    /// Number of packets that arrived with a mark.
    marked: u64,
    /// Sending time of an acknowledgement and the largest number in it. When the sender has it, the numbers up to that
    /// one are not reported again (`[rfc9000:§13.2.4]`).
    checkpoint: Option<(Instant, u64)>,
}

impl Arrivals {
    pub(super) fn new(delayed_ack: bool) -> Self {
        Self {
            packets_per_ack: if delayed_ack { 2 } else { 1 },
            max_delay: MAX_ACK_DELAY,
            reordering: 1,
            numbers: Ranges::default(),
            reported_to: None,
            last_marked: false,
            largest_at: Instant::ZERO,
            unreported: 0,
            marked: 0,
            checkpoint: None,
        }
    }

    /// Records a packet. Returns true if it must be acknowledged at once: after enough packets, out of order, after a
    /// gap, or with a mark (`[rfc9000:§13.2.1]`).
    fn record(&mut self, now: Instant, number: u64, marked: bool) -> bool {
        let expected = self.numbers.last().map_or(0, |largest| largest + 1);
        if number >= expected {
            self.largest_at = now;
        }
        self.numbers.insert(number, number + 1);
        self.numbers.keep_last(RANGES_MAX);
        self.unreported += 1;
        self.marked += u64::from(marked);
        // [ack-frequency:§6.3] Of consecutive marks only the first is urgent if more than two packets share an
        // acknowledgement.
        let urgent = marked && (self.packets_per_ack <= 2 || !self.last_marked);
        self.last_marked = marked;
        urgent || self.is_out_of_order(number, expected) || self.unreported >= self.packets_per_ack
    }

    /// `[ack-frequency:§6.2]` Returns true if the arrival of a packet must be acknowledged at once because packets are out
    /// of order.
    fn is_out_of_order(&self, number: u64, expected: u64) -> bool {
        if self.reordering <= 1 {
            return self.reordering == 1 && number != expected;
        }
        // Packets up to this number can already be declared lost (Largest Reported Missing).
        let known_lost = self.reported_to.and_then(|largest| largest.checked_sub(self.reordering));
        if known_lost.is_some_and(|lost| number <= lost) {
            return true;
        }
        let largest = self.numbers.last().unwrap_or(0);
        let missing = self.numbers.first_missing(known_lost.map_or(0, |lost| lost + 1));
        missing + self.reordering <= largest
    }

    /// Forgets the numbers that the sender knows, if it has received an acknowledgement that was sent at `echoed`.
    fn forget_known(&mut self, echoed: Instant) {
        if let Some((_, largest)) = self.checkpoint.filter(|&(at, _)| at <= echoed) {
            self.checkpoint = None;
            if self.numbers.last().is_some_and(|last| last > largest) {
                // The numbers within a reordering threshold above 1 still decide on acknowledgements.
                let kept = if self.reordering > 1 { self.reordering } else { 0 };
                self.numbers.remove_below((largest + 1).saturating_sub(kept));
            }
        }
    }

    /// Encodes an acknowledgement that is sent now.
    fn report(&mut self, now: Instant, sacks: &mut Sacks) -> SackId {
        self.unreported = 0;
        if self.checkpoint.is_none() {
            self.checkpoint = self.numbers.last().map(|largest| (now, largest));
        }
        self.reported_to = self.numbers.last();
        let delay: Duration = now.since(self.largest_at);
        sacks.store(AckFrame::encode(&self.numbers, delay, self.marked))
    }
}

impl Receiver {
    /// `[ack-frequency:§4]` Applies the sender's request to a receiver of QUIC's packets.
    pub(crate) fn set_ack_frequency(&mut self, asked: &AckFrequencySpec) {
        if let Some(arrivals) = &mut self.quic {
            arrivals.packets_per_ack = asked.threshold.saturating_add(1);
            arrivals.max_delay = Duration::from_secs(asked.max_delay_s);
            arrivals.reordering = u64::from(asked.reordering);
        }
    }

    /// Handles a QUIC packet that carries data. Returns an acknowledgement unless it is delayed.
    #[inline(never)]
    pub(crate) fn on_datagram(&mut self, now: Instant, packet: &Packet, sacks: &mut Sacks) -> Option<Packet> {
        let arrivals = self.quic.as_mut()?;
        let expected = arrivals.numbers.last().map_or(0, |largest| largest + 1);
        let numbers = Numbers::decode(packet.number, expected);
        let data = Packet { number: numbers.data, ..*packet };
        if let Some(faults) = &mut self.faults {
            faults.on_packet(packet.cargo.has_fields());
            if numbers.packet > expected && faults.hides_loss(now) {
                arrivals.numbers.insert(expected, numbers.packet);
                self.skip_to(numbers.data);
            }
        }
        self.notify_of_mark(now, packet);
        if let (Some(law), Cargo::Header(header)) = (&mut self.law, &packet.cargo) {
            let rtt = (packet.echoed > Instant::ZERO).then(|| now.since(packet.echoed));
            law.on_data(&Received { now, kind: packet.role.kind(), header, rtt });
        }
        let done = self.completed().is_some();
        self.on_data(now, &data, sacks);
        let arrivals = self.quic.as_mut()?;
        arrivals.forget_known(packet.echoed);
        let at_once = arrivals.record(now, numbers.packet, packet.flags.has(Flags::MARKED))
            || packet.flags.has(Flags::IMMEDIATE_ACK); // [ack-frequency:§5]
        let due = now + arrivals.max_delay;
        // The end of the data is acknowledged at once, as on a TCP connection that closes.
        if !at_once && self.completed().is_some() == done {
            if self.delayed.due == Instant::NEVER {
                self.delayed = Delayed { sent: packet.sent, due };
            }
            return None;
        }
        Some(self.ack_frame(now, packet.sent, sacks))
    }

    /// Builds an acknowledgement of all packets.
    pub(super) fn ack_frame(&mut self, now: Instant, sent: Instant, sacks: &mut Sacks) -> Packet {
        self.delayed = Delayed::NONE;
        let frame = self.quic.as_mut().map_or(SackId::NONE, |arrivals| arrivals.report(now, sacks));
        let ack = self.ack(now, Role::AckFrame, sent, frame);
        Packet { flags: Flags::default(), ..ack }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::tests::{data, receiver_by};
    use waterfill_laws::protocol::Retransmission;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// Delivers a packet whose data has the packet's number, from a sender that has received acknowledgements up to
    /// `echoed` ms. Returns the ranges acknowledged, or `None`.
    fn deliver(r: &mut Receiver, now: u64, number: u64, echoed: u64) -> Option<Vec<(u64, u64)>> {
        let mut sacks = Sacks::default();
        let packet = Packet {
            number: Numbers { packet: number, data: number }.encode(),
            echoed: ms(echoed),
            role: Role::Datagram,
            ..data(number)
        };
        let ack = r.on_datagram(ms(now), &packet, &mut sacks)?;
        let frame = sacks.take(ack.sack).map(|blocks| AckFrame::decode(&blocks));
        Some(frame.expect("a frame").ranges().collect())
    }

    /// `[rfc9000:§13.2.1, 13.2.2]` Every second packet, after 25 ms, and at once out of order or after a gap.
    #[test]
    fn rfc9000_13_2_times_of_acknowledgements() {
        let mut r = receiver_by(Retransmission::Quic, true);
        assert_eq!(deliver(&mut r, 0, 0, 0), None);
        assert_eq!(r.poll_timer(), ms(25));
        assert_eq!(deliver(&mut r, 1, 1, 0), Some(vec![(0, 2)]));
        assert_eq!(r.poll_timer(), Instant::NEVER);
        assert_eq!(deliver(&mut r, 2, 3, 0), Some(vec![(3, 4), (0, 2)]), "after a gap");
        assert_eq!(deliver(&mut r, 3, 4, 0), None, "the gap is known");
        assert_eq!(deliver(&mut r, 4, 2, 0), Some(vec![(0, 5)]), "out of order");
        assert_eq!(deliver(&mut r, 5, 5, 0), None);
        let mut sacks = Sacks::default();
        let ack = r.on_timer(ms(30), &mut sacks).expect("the delayed acknowledgement");
        let frame = AckFrame::decode(&sacks.take(ack.sack).expect("a frame"));
        assert_eq!((frame.largest, frame.delay), (5, Duration::from_millis(25)));
    }

    /// `[rfc9000:§13.2.4]` Numbers that the sender knows are not reported again.
    #[test]
    fn rfc9000_13_2_4_known_numbers_are_forgotten() {
        let mut r = receiver_by(Retransmission::Quic, false);
        assert_eq!(deliver(&mut r, 10, 0, 0), Some(vec![(0, 1)]));
        assert_eq!(deliver(&mut r, 11, 2, 9), Some(vec![(2, 3), (0, 1)]), "not received yet");
        assert_eq!(deliver(&mut r, 12, 3, 10), Some(vec![(2, 4)]), "the first one is");
        assert_eq!(deliver(&mut r, 13, 1, 10), Some(vec![(1, 4)]), "a late packet is reported");
    }

    /// Returns a receiver of a sender that has asked for these acknowledgements.
    fn asked(threshold: u32, reordering: u32) -> Receiver {
        let mut r = receiver_by(Retransmission::Quic, true);
        r.set_ack_frequency(&AckFrequencySpec { threshold, max_delay_s: 0.1, reordering });
        r
    }

    /// `[ack-frequency:§4]` One acknowledgement for threshold + 1 packets, or after the requested delay.
    #[test]
    fn ack_frequency_4_threshold_and_delay() {
        let mut r = asked(3, 1);
        assert_eq!([0, 1, 2].map(|n| deliver(&mut r, n, n, 0)), [None, None, None]);
        assert_eq!(deliver(&mut r, 3, 3, 0), Some(vec![(0, 4)]), "the fourth is more than three");
        assert_eq!(deliver(&mut r, 10, 4, 0), None);
        assert_eq!(r.poll_timer(), ms(110));
        assert_eq!(deliver(&mut r, 11, 6, 0), Some(vec![(6, 7), (0, 5)]), "threshold 1: at once after a gap");
    }

    /// `[ack-frequency:§6.2.1]` Both examples, and none with a threshold of zero.
    #[test]
    fn ack_frequency_6_2_1_examples_of_reordering() {
        let of = |reordering, numbers: &[u64]| {
            let mut r = asked(100, reordering);
            r.spec.packets = 100;
            let sent = |&number: &u64| deliver(&mut r, number, number, 0).is_some().then_some(number);
            numbers.iter().filter_map(sent).collect::<Vec<_>>()
        };
        assert_eq!(of(3, &[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
        assert_eq!(of(5, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
        assert_eq!(of(0, &[0, 1, 3, 4, 5, 8, 9, 10]), [0_u64; 0]);
        assert_eq!(of(3, &[0, 1, 3, 4, 5, 2]), [5, 2], "2 has been declared lost at 5");
        assert_eq!(of(3, &[0, 1, 3, 4, 5, 6]), [5], "5 has reported 2");
    }

    /// Numbers that the sender knows still count as received within the reordering threshold.
    #[test]
    fn known_numbers_are_not_missing() {
        let mut r = asked(1, 3);
        assert_eq!(deliver(&mut r, 10, 0, 0), None);
        assert_eq!(deliver(&mut r, 11, 1, 0), Some(vec![(0, 2)]));
        assert_eq!(deliver(&mut r, 12, 2, 11), None, "the sender knows 0 and 1");
        assert_eq!(deliver(&mut r, 13, 3, 11), Some(vec![(0, 4)]));
        assert_eq!(deliver(&mut r, 14, 4, 14), None);
    }

    /// `[ack-frequency:§6.3]` With a threshold above one, only the first of consecutive marks is urgent.
    #[test]
    fn ack_frequency_6_3_the_first_mark_is_urgent() {
        let of = |threshold| {
            let (mut r, mut sacks) = (asked(threshold, 1), Sacks::default());
            [false, true, true, false, true].map(|marked| {
                let number = r.quic.as_ref().and_then(|a| a.numbers.last()).map_or(0, |last| last + 1);
                let flags = Flags::default().with(Flags::MARKED, marked);
                let packet =
                    Packet { number: Numbers { packet: number, data: number }.encode(), flags, ..data(number) };
                r.on_datagram(ms(number), &Packet { role: Role::Datagram, ..packet }, &mut sacks).is_some()
            })
        };
        assert_eq!(of(9), [false, true, false, false, true]);
        assert_eq!(of(1), [false, true, true, false, true], "as RFC 9000: each mark");
    }

    /// `[ack-frequency:§5]` A packet with an IMMEDIATE_ACK frame is acknowledged at once.
    #[test]
    fn ack_frequency_5_immediate_ack() {
        let (mut r, mut sacks) = (asked(9, 1), Sacks::default());
        let mut at = |number, flags| {
            let packet = Packet { number: Numbers { packet: number, data: number }.encode(), flags, ..data(number) };
            r.on_datagram(ms(number), &Packet { role: Role::Datagram, ..packet }, &mut sacks).is_some()
        };
        assert!(!at(0, Flags::default()));
        assert!(at(1, Flags::IMMEDIATE_ACK));
        assert!(!at(2, Flags::default()));
    }

    /// Marks are counted, so a lost acknowledgement loses none.
    #[test]
    fn a_frame_counts_all_marks() {
        let (mut r, mut sacks) = (receiver_by(Retransmission::Quic, true), Sacks::default());
        let counts = [0, 1, 2].map(|number| {
            let marked = Packet { flags: Flags::MARKED, role: Role::Datagram, ..data(number) };
            let packet = Packet { number: Numbers { packet: number, data: number }.encode(), ..marked };
            let ack = r.on_datagram(ms(number), &packet, &mut sacks).expect("at once");
            AckFrame::decode(&sacks.take(ack.sack).expect("a frame")).marked
        });
        assert_eq!(counts, [1, 2, 3]);
    }
}
