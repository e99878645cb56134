//! Marking of SYNs and of every n-th other packet (§6).

use crate::protocol::Passing;

use super::{Field, Header};

/// Counter of packets up to the next packet that a router marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marking {
    every: u32,
    /// Packets since the last mark; a step of the fluid model may be a fraction of a packet.
    since: f64,
}

impl Marking {
    pub(super) fn new(every: u32) -> Self {
        Self { every, since: 0.0 }
    }

    /// `[tcp-maxnet-2006:6]` Returns the field to mark if the packet is a SYN or the n-th since the last mark. Returns
    /// `None` for all other packets.
    #[expect(clippy::inline_always, reason = "one test per packet where every packet is marked")]
    #[inline(always)]
    pub(super) fn field<'a>(&mut self, passing: &'a mut Passing<'_, Header>) -> Option<&'a mut Field> {
        let packets = passing.packets;
        let field = passing.header.as_deref_mut().map(|header| &mut header.price)?;
        (self.every == 1 || matches!(field, Field::StartRate(_)) || self.is_due(packets)).then_some(field)
    }

    /// Returns the number of packets since the last mark.
    pub(super) const fn since(&self) -> f64 {
        self.since
    }

    fn is_due(&mut self, packets: f64) -> bool {
        self.since += packets;
        let due = self.since >= f64::from(self.every);
        if due {
            self.since = 0.0;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PacketKind;
    use crate::units::{Instant, Volume};

    /// Returns the indices of the packets that are marked. Each packet is given as its size in packets and its field.
    fn marked(every: u32, given: &[(f64, Field)]) -> Vec<usize> {
        let mut marking = Marking::new(every);
        let mut found = Vec::new();
        for (i, &(packets, price)) in given.iter().enumerate() {
            let mut header = Header::from(price);
            let (now, volume, kind) = (Instant::ZERO, Volume::from_bytes(1500.0), PacketKind::Data);
            let mut passing = Passing { now, volume, packets, kind, header: Some(&mut header) };
            found.extend(marking.field(&mut passing).map(|_| i));
        }
        found
    }

    /// `[tcp-maxnet-2006:6]` A router marks one packet in n, and the SYN of every connection.
    #[test]
    fn every_nth_packet_is_marked_and_every_syn() {
        let price = (1.0, Field::Price(0));
        assert_eq!(marked(1, &[price; 3]), [0, 1, 2]);
        assert_eq!(marked(3, &[price; 7]), [2, 5]);
        assert_eq!(marked(3, &[price, (1.0, Field::StartRate(0)), price, price]), [1, 3], "a SYN does not count");
        // A fluid's parcels: of four packets one in each is marked, of half a packet every sixth.
        assert_eq!(marked(3, &[(4.0, Field::Price(0)); 2]), [0, 1]);
        assert_eq!(marked(3, &[(0.5, Field::Price(0)); 12]), [5, 11]);
    }

    #[test]
    fn logs_show_the_packets_since_the_last_mark() {
        let mut marking = Marking::new(3);
        let counts = [1.0, 1.0, 1.0, 0.5].map(|packets| {
            marking.is_due(packets);
            marking.since()
        });
        assert_eq!(counts, [1.0, 2.0, 0.0, 0.5]);
    }
}
