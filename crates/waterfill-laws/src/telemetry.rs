//! In-band network telemetry (INT): each link that a packet crosses appends a record, and the receiver echoes the stack.
//!
//! A header holds the record of one link only, so packets stay small. The simulator moves it to the packet's [`Stack`]
//! when the packet leaves the link, and passes the echoed stack to the source by
//! [`Source::on_stack`](crate::protocol::Source::on_stack).

use crate::protocol::{EchoLast, LinkView, Passing, Protocol, Router, Wire};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// Maximum number of records in a stack: five routers, and the sender's own link.
pub const HOPS_MAX: usize = 6;

/// Bytes of the stack on the wire: two for the number of records and the path, and eight for each of five routers.
///
/// A host knows its own link, whose record takes no bytes.
pub const STACK_BYTES: usize = 42;

/// Record of one link: what its transmitter had sent and what waited when the packet's transmission started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hop {
    /// Time of the departure on the link's clock.
    pub time: Instant,
    /// Number of bytes that the link has sent, this packet included.
    pub sent: u64,
    /// Number of bytes that wait in the queue, without this packet.
    pub queue: u32,
    /// Identifier of the link.
    pub link: u32,
    /// Rate of the link at that time.
    pub rate: Rate,
}

impl Hop {
    /// Returns the time since an earlier record of the same link. Returns `None` if `last` is of another link, is not
    /// earlier, or is of a counter that has restarted.
    #[must_use]
    pub fn since(&self, last: &Self) -> Option<Duration> {
        let fits = self.link == last.link && self.time > last.time && self.sent >= last.sent;
        fits.then(|| self.time.since(last.time))
    }

    /// Returns the rate at which the link has sent during the time `lasted` since an earlier record.
    #[must_use]
    pub fn sent_rate(&self, last: &Self, lasted: Duration) -> Rate {
        Volume::from_bytes((self.sent - last.sent) as f64) / lasted
    }

    /// Returns the queue.
    #[must_use]
    pub fn queued(&self) -> Volume {
        Volume::from_bytes(f64::from(self.queue))
    }
}

/// Records of the links that a packet has crossed, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stack {
    hops: [Hop; HOPS_MAX],
    count: u8,
}

impl Stack {
    /// Appends a record. A full stack stays as it is.
    pub fn push(&mut self, hop: Hop) {
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            *place = hop;
            self.count += 1;
        }
    }

    /// Returns the records.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.count)]
    }

    /// Removes all records.
    pub const fn clear(&mut self) {
        self.count = 0;
    }
}

/// Header or echo of a law with telemetry: the record of the link that the packet is leaving, if it has written one.
///
/// The fields are the time (56 bits, ps), the number of bytes sent (40 bits), the queue (32 bits, bytes) and the rate (single
/// precision, bit/s). A stack of 64-bit words with clocks of 24 bits, as in hardware, would lose precision. It is not
/// simulated; only its size is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Int([u32; WORDS]);

const WORDS: usize = 5;
/// Place of the words in the bytes of a header.
const PLACE: std::ops::Range<usize> = 2..2 + 4 * WORDS;

impl Int {
    fn new(time: Instant, sent: u64, queue: u32, rate: Rate) -> Self {
        let ps = time.as_ps();
        let middle = (ps << 8) as u32 | (sent >> 32) as u32 & 0xff;
        Self([(ps >> 24) as u32, middle, sent as u32, queue, (rate.as_bps() as f32).to_bits()])
    }

    /// Removes and returns the record of a link. Returns `None` if there is none.
    fn take(&mut self, link: u32) -> Option<Hop> {
        let Self([high, middle, low, queue, rate]) = std::mem::take(self);
        let sent = u64::from(middle & 0xff) << 32 | u64::from(low);
        let rate_bps = f64::from(f32::from_bits(rate));
        // The packet itself counts. A damaged header can have any rate.
        let valid = sent > 0 && rate_bps > 0.0 && rate_bps.is_finite();
        let time = Instant::from_ps(u64::from(high) << 24 | u64::from(middle >> 8));
        valid.then(|| Hop { time, sent, queue, link, rate: Rate::from_bps(rate_bps) })
    }
}

impl Wire for Int {
    const BYTES: usize = STACK_BYTES;
    const TELEMETRY: bool = true;

    fn encode(&self, out: &mut [u8]) {
        out[..STACK_BYTES].fill(0);
        for (bytes, word) in out[PLACE].chunks_exact_mut(4).zip(self.0) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let words = bytes.get(..STACK_BYTES)?[PLACE].chunks_exact(4);
        let mut int = Self::default();
        for (word, bytes) in int.0.iter_mut().zip(words) {
            *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
        }
        Some(int)
    }

    #[inline]
    fn take_hop(&mut self, link: &LinkView) -> Option<Hop> {
        self.take(link.id)
    }
}

/// Router of a law with telemetry, which counts what the link sends and writes a record into each departing packet.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    sent: u64,
}

impl<P: Protocol<Header = Int>> Router<P> for Telemetry {
    fn new(_params: &P::Params, _link: &LinkView) -> Self {
        Self::default()
    }

    fn on_arrival(&mut self, _link: &LinkView, _passing: &mut Passing<'_, Int>) {}

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, Int>) {
        self.sent += passing.volume.as_bytes() as u64;
        if let Some(int) = &mut passing.header {
            **int = Int::new(passing.now, self.sent, link.queue.as_bytes() as u32, link.capacity);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: sent);
    }
}

/// Receiver of a law with telemetry. The simulator echoes the stack.
pub type EchoStack = EchoLast<Int>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PacketKind;
    use crate::protocols::hpcc::Hpcc;
    use crate::testing::link;

    fn depart(router: &mut Telemetry, view: &LinkView, us: u64, header: Option<&mut Int>) {
        let (now, volume) = (Instant::ZERO + Duration::from_micros(us), Volume::from_bytes(1000.0));
        let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Data, header };
        Router::<Hpcc>::on_departure(router, view, &mut passing);
    }

    /// A record counts the packets of other laws, and is taken once.
    #[test]
    fn a_link_writes_its_record_at_departure() {
        let (mut router, view) = (Telemetry::default(), link(1e9, 3000.0));
        let mut int = Int::default();
        depart(&mut router, &view, 1, None);
        depart(&mut router, &view, 9, Some(&mut int));
        let mut bytes = [0xff; STACK_BYTES];
        int.encode(&mut bytes);
        assert_eq!(Int::decode(&bytes), Some(int));
        assert_eq!(Int::decode(&bytes[..41]), None);
        let hop = int.take_hop(&view).expect("a record");
        let time = Instant::ZERO + Duration::from_micros(9);
        assert_eq!(hop, Hop { time, sent: 2000, queue: 3000, link: 0, rate: Rate::from_bps(1e9) });
        assert_eq!(int.take_hop(&view), None);
    }

    /// Only an earlier record of the same link and the same counter is compared.
    #[test]
    fn records_of_other_links_are_not_compared() {
        let at = |us, sent, link| Hop { time: Instant::ZERO + Duration::from_micros(us), sent, link, ..Hop::default() };
        let last = at(5, 1000, 1);
        assert_eq!(at(9, 2500, 1).since(&last), Some(Duration::from_micros(4)));
        let rate = at(9, 2500, 1).sent_rate(&last, Duration::from_micros(4));
        assert!((rate.as_bps() / 3e9 - 1.0).abs() < 1e-12, "1500 bytes in 4 us are 3 Gbit/s, not {rate:?}");
        for other in [at(9, 2500, 2), at(5, 1000, 1), at(4, 2500, 1), at(9, 10, 1)] {
            assert_eq!(other.since(&last), None, "{other:?}");
        }
    }

    #[test]
    fn a_full_stack_keeps_its_first_records() {
        let mut stack = Stack::default();
        (0..9).for_each(|sent| stack.push(Hop { sent, ..Hop::default() }));
        assert_eq!(stack.hops().iter().map(|hop| hop.sent).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        stack.clear();
        assert!(stack.hops().is_empty());
    }
}
