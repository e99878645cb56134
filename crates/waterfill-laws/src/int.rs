//! Header, router and source of laws with in-band network telemetry: each link writes a record into the packets that leave
//! it.

mod window;

#[cfg(test)]
pub(crate) use window::fullest;
pub use window::{Form, IntLaw, IntParams, IntSource, State};

use crate::protocol::{EchoLast, LinkView, Passing, Protocol, Router, Wire};
use crate::state::StateFields;
use crate::telemetry::{Hop, STACK_BYTES};
use crate::units::{Instant, Rate};

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
    use crate::units::{Duration, Volume};

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
}
