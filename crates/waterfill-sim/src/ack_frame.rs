//! QUIC's ACK frames (`[rfc9000:§19.3]`), and the numbers of QUIC's packets.
//!
//! A frame is stored in a slot of [`Sacks`](crate::packet::Sacks), where TCP stores three SACK blocks. Its 48 bytes are
//! variable-length integers, as on the wire. They hold ten to twenty ranges, the newest first; older ranges are left out,
//! as in a QUIC packet that is full.

use waterfill_laws::units::Duration;

use crate::packet::Blocks;
use crate::ranges::Ranges;

/// Size of a frame, in bytes.
const FRAME_BYTES: usize = size_of::<Blocks>();
/// Unit of an acknowledgement's delay: 2³ µs, the default of `[rfc9000:§18.2]`.
const DELAY_UNIT: Duration = Duration::from_micros(8);

/// Fields of an ACK frame besides its ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckFrame {
    /// Largest packet number that has arrived.
    pub(crate) largest: u64,
    /// Time from the arrival of that packet to the acknowledgement, in whole units of 8 µs.
    pub(crate) delay: Duration,
    /// Number of packets that arrived with a mark (ECN-CE).
    pub(crate) marked: u64,
    bytes: [u8; FRAME_BYTES],
    /// Position of the number of ranges in `bytes`.
    at: usize,
}

impl AckFrame {
    /// Encodes the acknowledgement of `received`, which is not empty.
    pub(crate) fn encode(received: &Ranges, delay: Duration, marked: u64) -> Blocks {
        let mut writer = Writer { bytes: [0; FRAME_BYTES], at: 0 };
        let largest = received.last().unwrap_or(0);
        for field in [largest, delay.as_ps() / DELAY_UNIT.as_ps(), marked] {
            writer.put(field);
        }
        let count_at = writer.at;
        writer.at += 1;
        let mut below = largest + 1;
        for (start, end) in received.iter().rev() {
            // The gap to the range above, which the newest range does not have, and the length of the range.
            let fields = [below - end, end - start];
            if writer.at + fields.map(size).iter().sum::<usize>() > FRAME_BYTES {
                break;
            }
            for field in fields {
                writer.put(field);
            }
            writer.bytes[count_at] += 1;
            below = start;
        }
        words(writer.bytes)
    }

    /// Decodes a frame.
    pub(crate) fn decode(blocks: &Blocks) -> Self {
        let bytes = bytes(blocks);
        let mut reader = Reader { bytes: &bytes, at: 0 };
        let [largest, delay, marked] = [reader.take(), reader.take(), reader.take()];
        let at = reader.at;
        Self { largest, delay: DELAY_UNIT * delay, marked, bytes, at }
    }

    /// Returns the ranges of packet numbers that have arrived, the newest first.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut reader = Reader { bytes: &self.bytes, at: self.at + 1 };
        let mut below = self.largest + 1;
        (0..self.bytes[self.at]).map(move |_| {
            let end = below - reader.take();
            below = end - reader.take();
            (below, end)
        })
    }
}

fn bytes(words: &Blocks) -> [u8; FRAME_BYTES] {
    let mut bytes = [0; FRAME_BYTES];
    let words = words.iter().flat_map(|&(a, b)| [a, b]);
    bytes.chunks_exact_mut(8).zip(words).for_each(|(chunk, word)| chunk.copy_from_slice(&word.to_le_bytes()));
    bytes
}

fn words(bytes: [u8; FRAME_BYTES]) -> Blocks {
    let word = |i: usize| bytes[8 * i..8 * i + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    [(word(0), word(1)), (word(2), word(3)), (word(4), word(5))]
}

/// Returns the number of bytes of a variable-length integer (`[rfc9000:§16]`).
const fn size(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Writer of variable-length integers.
struct Writer {
    bytes: [u8; FRAME_BYTES],
    at: usize,
}

impl Writer {
    fn put(&mut self, value: u64) {
        let size = size(value);
        let coded = value | u64::from(size.trailing_zeros()) << (8 * size - 2);
        self.bytes[self.at..self.at + size].copy_from_slice(&coded.to_be_bytes()[8 - size..]);
        self.at += size;
    }
}

/// Reader of variable-length integers.
struct Reader<'a> {
    bytes: &'a [u8; FRAME_BYTES],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self) -> u64 {
        let size = 1 << (self.bytes[self.at] >> 6);
        let coded = self.bytes[self.at..self.at + size].iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        self.at += size;
        coded & (u64::MAX >> (66 - 8 * size))
    }
}

/// Bits of a data number in the number of a packet on the wire.
const DATA_BITS: u32 = 38;
/// Bits of a packet number there. Half their range is more than a sender may have in flight, as `[rfc9000:§17.1]` requires.
const NUMBER_BITS: u32 = u64::BITS - DATA_BITS;

/// Numbers of a QUIC packet. Each transmission has a new packet number; data that is sent again keeps its data number,
/// which stands for an offset in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) packet: u64,
    pub(crate) data: u64,
}

impl Numbers {
    /// Encodes both numbers in one, with a truncated packet number (`[rfc9000:§17.1]`).
    pub(crate) const fn encode(self) -> u64 {
        debug_assert!(self.data < 1 << DATA_BITS);
        self.packet << DATA_BITS | self.data
    }

    /// Decodes the numbers of a packet. The packet number is the one closest to `expected` (`[rfc9000:§A.3]`).
    pub(crate) const fn decode(number: u64, expected: u64) -> Self {
        let (window, half) = (1 << NUMBER_BITS, 1 << (NUMBER_BITS - 1));
        let candidate = expected & !(window - 1) | number >> DATA_BITS;
        let packet = if candidate + half <= expected {
            candidate + window
        } else if candidate > expected + half && candidate >= window {
            candidate - window
        } else {
            candidate
        };
        Self { packet, data: number & ((1 << DATA_BITS) - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every range that fits is decoded as it was encoded; only the oldest are left out.
        #[test]
        fn ranges_survive(
            parts in prop::collection::vec((1u64..100_000, 1u64..100_000), 1..30),
            floor in 0u64..1 << 40,
            delay_us in 0u64..100_000,
            marked in 0u64..1 << 30,
        ) {
            let mut received = Ranges::default();
            let mut at = floor;
            for &(gap, length) in &parts {
                received.insert(at + gap, at + gap + length);
                at += gap + length;
            }
            let frame = AckFrame::decode(&AckFrame::encode(&received, Duration::from_micros(delay_us), marked));
            prop_assert_eq!(frame.largest, at - 1);
            prop_assert_eq!(frame.delay, Duration::from_micros(delay_us / 8 * 8));
            prop_assert_eq!(frame.marked, marked);
            let decoded: Vec<_> = frame.ranges().collect();
            let newest: Vec<_> = received.iter().rev().take(decoded.len()).collect();
            prop_assert!(decoded.len() >= parts.len().min(3), "more than three fit even with large gaps");
            prop_assert_eq!(decoded, newest);
        }

        #[test]
        fn numbers_survive_reordering(expected in 0u64..1 << 50, back in 0u64..1 << 24, data in 0u64..1 << 38) {
            for packet in [expected.saturating_sub(back), expected + back] {
                let numbers = Numbers { packet, data };
                prop_assert_eq!(Numbers::decode(numbers.encode(), expected), numbers);
            }
        }
    }

    /// With small gaps, as random losses leave them, a frame holds more ranges than a TCP acknowledgement.
    #[test]
    fn a_frame_holds_many_small_ranges() {
        let mut received = Ranges::default();
        (0..40u64).for_each(|i| _ = received.insert(100 * i, 100 * i + 99));
        let frame = AckFrame::decode(&AckFrame::encode(&received, Duration::from_millis(25), 1000));
        assert_eq!(frame.ranges().count(), 13);
    }
}
