//! A receiver of QUIC's packets: when it acknowledges (`[rfc9000:§13.2]`), and which packets.

use waterfill_laws::protocol::Received;
use waterfill_laws::units::{Duration, Instant};

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
    numbers: Ranges,
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
            numbers: Ranges::default(),
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
        marked || number != expected || self.unreported >= self.packets_per_ack
    }

    /// Forgets the numbers that the sender knows, if it has received an acknowledgement that was sent at `echoed`.
    fn forget_known(&mut self, echoed: Instant) {
        if let Some((_, largest)) = self.checkpoint.filter(|&(at, _)| at <= echoed) {
            self.checkpoint = None;
            if self.numbers.last().is_some_and(|last| last > largest) {
                self.numbers.remove_below(largest + 1);
            }
        }
    }

    /// Encodes an acknowledgement that is sent now.
    fn report(&mut self, now: Instant, sacks: &mut Sacks) -> SackId {
        self.unreported = 0;
        if self.checkpoint.is_none() {
            self.checkpoint = self.numbers.last().map(|largest| (now, largest));
        }
        let delay: Duration = now.since(self.largest_at);
        sacks.store(AckFrame::encode(&self.numbers, delay, self.marked))
    }
}

impl Receiver {
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
        if let (Some(law), Cargo::Header(header)) = (&mut self.law, &packet.cargo) {
            let rtt = (packet.echoed > Instant::ZERO).then(|| now.since(packet.echoed));
            law.on_data(&Received { now, kind: packet.role.kind(), header, rtt });
        }
        let done = self.completed().is_some();
        self.on_data(now, &data, sacks);
        let arrivals = self.quic.as_mut()?;
        arrivals.forget_known(packet.echoed);
        let at_once = arrivals.record(now, numbers.packet, packet.flags.has(Flags::MARKED));
        // The end of the data is acknowledged at once, as on a TCP connection that closes.
        if !at_once && self.completed().is_some() == done {
            if self.delayed.due == Instant::NEVER {
                self.delayed = Delayed { sent: packet.sent, due: now + MAX_ACK_DELAY };
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
