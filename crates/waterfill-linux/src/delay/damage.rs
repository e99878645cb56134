//! Faults of frames: removing or damaging the option of an explicit law, or replacing its signal.
//!
//! As in the simulator, they act on frames behind the router that writes into them. Checksums are kept valid, as a router
//! would: the receiver's kernel would drop the frame otherwise.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_network::fault::{Effect, FalseSignal, FaultSpec};
use waterfill_network::random::{below, uniform};

use super::frame::acknowledges;

const ETHERNET: usize = 14;
const IPV6_HEADER: usize = 40;
const TCP: u8 = 6;
const TCP_HEADER: usize = 20;
/// Offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;
/// TCP option that ends the list of options. [`NOTHING`] fills unused bytes of the list.
const END: u8 = 0;
const NOTHING: u8 = 1;
/// Experimental kind of the laws' option, used with [`EXID`]. [`PAPER`] is the option's kind in the MaxNet papers
/// (bpf/wire.h).
const EXPERIMENT: u8 = 253;
const EXID: [u8; 2] = [0x57, 0x46];
const PAPER: u8 = 42;
/// Number of bytes before the values in an experimental option.
const HEAD: usize = 5;
/// Offset of the forward value in the option of the MaxNet papers.
const PAPER_FORWARD: usize = 5;

/// Applies the faults that are active `at_s` seconds after the start of the run to a frame, each with its probability.
/// Faults that hold frames are skipped: [`released_ns`] has them.
pub(super) fn alter(faults: &[FaultSpec], at_s: f64, frame: &mut [u8], rng: &mut Pcg64) {
    for fault in faults.iter().filter(|fault| fault.from_s <= at_s && at_s < fault.until_s) {
        if fault.effect.holds() || uniform(rng) >= fault.share {
            continue;
        }
        let Some(option) = LawOption::of(frame) else { continue };
        match fault.effect {
            Effect::Strip {} => option.write(frame, option.at, &[NOTHING; 40][..option.length]),
            Effect::Corrupt {} => option.corrupt(frame, rng),
            Effect::Lie { value } => option.lie(frame, value, rng),
            Effect::Hold { .. } | Effect::Acks { .. } => {}
        }
    }
}

/// Returns the release time of a frame that is due at `due_ns`. Both times are in nanoseconds since the start of the
/// run. The line keeps the order of frames, so those behind a held one wait too.
pub(super) fn released_ns(faults: &[FaultSpec], due_ns: u64, frame: &[u8]) -> u64 {
    faults.iter().fold(due_ns, |last, fault| {
        let every_s = match fault.effect {
            Effect::Hold { every_s } => every_s,
            Effect::Acks { every_s, .. } if acknowledges(frame) => every_s,
            _ => return last,
        };
        let [from, until, every] = [fault.from_s, fault.until_s, every_s].map(nanoseconds);
        if !(from..until).contains(&due_ns) {
            return last;
        }
        last.max((from + (due_ns - from).div_ceil(every.max(1)) * every.max(1)).min(until))
    })
}

fn nanoseconds(s: f64) -> u64 {
    (s * 1e9).round() as u64
}

/// Positions of a frame's TCP header and of the laws' option.
#[derive(Clone, Copy, Debug)]
struct LawOption {
    tcp: usize,
    at: usize,
    length: usize,
}

impl LawOption {
    /// Finds the laws' option in a frame. Returns `None` if the frame has none.
    fn of(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(ETHERNET..)?;
        let (protocol, header) = match (frame[12], frame[13]) {
            (0x08, 0x00) => (*packet.get(9)?, usize::from(packet[0] & 15) * 4),
            (0x86, 0xdd) => (*packet.get(6)?, IPV6_HEADER),
            _ => return None,
        };
        let tcp = ETHERNET + header;
        let end = tcp + usize::from(*frame.get(tcp + 12)? >> 4) * 4;
        if protocol != TCP || frame.len() < end {
            return None;
        }
        let mut at = tcp + TCP_HEADER;
        while at + 1 < end {
            let length = match frame[at] {
                END => return None,
                NOTHING => 1,
                _ => usize::from(frame[at + 1]).max(2),
            };
            let own = match frame[at] {
                EXPERIMENT => length > HEAD && frame.get(at + 2..at + 4) == Some(&EXID[..]),
                PAPER => length == 8,
                _ => false,
            };
            if own && at + length <= end {
                return Some(Self { tcp, at, length });
            }
            at += length;
        }
        None
    }

    /// Inverts a random bit of the option's values.
    fn corrupt(&self, frame: &mut [u8], rng: &mut Pcg64) {
        let head = if frame[self.at] == PAPER { 2 } else { HEAD };
        let bit = below(rng, (self.length - head) * 8);
        let at = self.at + head + bit / 8;
        let byte = frame[at] ^ (1 << (bit % 8));
        self.write(frame, at, &[byte]);
    }

    /// Replaces the signal in the forward value, if the law's option contains a known signal.
    fn lie(&self, frame: &mut [u8], value: FalseSignal, rng: &mut Pcg64) {
        let Some(signal) = self.signal(frame) else { return };
        let code = match value {
            FalseSignal::Zero => signal.zero,
            FalseSignal::Max => signal.max,
            FalseSignal::Random => rng.next_u64() as u32 & signal.mask,
        };
        let Some(&[a, b, c]) = frame.get(signal.at..signal.at + 3) else { return };
        let kept = u32::from_be_bytes([0, a, b, c]) & !signal.mask;
        self.write(frame, signal.at, &(kept | code).to_be_bytes()[1..]);
    }

    /// Finds the signal of up to 24 bits in the forward value. Returns `None` if the option contains no known signal.
    fn signal(&self, frame: &[u8]) -> Option<WireSignal> {
        /// Mask, code of a zero rate and code of the maximum rate, for a price or the logarithm of a rate. A higher
        /// code grants less.
        const PRICE: (u32, u32, u32) = (0x7f_ffff, 0x7f_ffff, 1);
        let (at, law) = if frame[self.at] == PAPER {
            (self.at + PAPER_FORWARD, 0)
        } else if (frame[self.at + 4] % 4) & 1 == 1 {
            (self.at + HEAD, frame[self.at + 4] / 4)
        } else {
            return None; // an echo alone
        };
        let (offset, (mask, zero, max)) = match law {
            0 | 1 | 3 => (0, PRICE),
            // AECP: steps below the largest factor. 0 is not written.
            2 => (0, (0xffff, 0xffff, 1)),
            // JetMax: rates as codes of float.h, smaller ones have smaller codes.
            8 => (6, (0xff_ffff, 1, 0xff_ffff)),
            // VCP: 1 low, 3 overload.
            4 => (0, (3, 3, 1)),
            _ => return None,
        };
        (at + offset + 3 <= self.at + self.length).then_some(WireSignal { at: at + offset, mask, zero, max })
    }

    /// Writes bytes into a frame and updates TCP's checksum incrementally (RFC 1624).
    fn write(&self, frame: &mut [u8], at: usize, bytes: &[u8]) {
        let first = (at - self.tcp) & !1;
        let last = at - self.tcp + bytes.len();
        let words = |frame: &[u8]| -> u32 {
            let covered = &frame[self.tcp + first..self.tcp + last];
            covered.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0))).sum()
        };
        let before = words(frame);
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        let checksum = self.tcp + TCP_CHECKSUM;
        let known = u32::from(u16::from_be_bytes([frame[checksum], frame[checksum + 1]]));
        // One's complement: adding 0xffff for each word keeps the difference above zero.
        let mut sum = (!known & 0xffff) + words(frame) + 0xffff * 64 - before;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        frame[checksum..checksum + 2].copy_from_slice(&(!sum as u16).to_be_bytes());
    }
}

/// Position in a frame of a signal of up to 24 bits, with its codes for zero and maximum rate.
#[derive(Clone, Copy, Debug)]
struct WireSignal {
    at: usize,
    mask: u32,
    zero: u32,
    max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame with a TCP segment over IPv4 that has timestamps, a law's option and a valid TCP checksum.
    fn segment(option: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + 20 + TCP_HEADER];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[23] = TCP;
        frame.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
        frame.extend(option);
        while (frame.len() - ETHERNET) % 4 != 0 {
            frame.push(END);
        }
        let tcp = ETHERNET + 20;
        frame[tcp + 12] = (((frame.len() - tcp) / 4) as u8) << 4;
        frame.extend(*b"some payload");
        let sum = !sum(&frame);
        frame[tcp + TCP_CHECKSUM..tcp + TCP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// Returns a frame with a TCP segment over IPv4 that only acknowledges.
    fn acknowledgement() -> Vec<u8> {
        let mut frame = segment(&[]);
        frame.truncate(frame.len() - b"some payload".len());
        let length = (frame.len() - ETHERNET) as u16;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame
    }

    /// Returns the one's complement sum of the TCP segment, which is 0xffff if the checksum is valid.
    fn sum(frame: &[u8]) -> u16 {
        let words = frame[ETHERNET + 20..].chunks(2);
        let mut sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn fault(effect: Effect) -> [FaultSpec; 1] {
        [FaultSpec { from_s: 1.0, until_s: 2.0, share: 1.0, effect }]
    }

    /// Option with MaxNet's price 0x123456 and its echo, at an odd offset.
    const BOTH: [u8; 12] = [1, EXPERIMENT, 11, 0x57, 0x46, 3, 0x12, 0x34, 0x56, 0x65, 0x43, 0x21];

    #[test]
    fn a_stripped_option_is_filled_and_the_checksum_stays_valid() {
        let mut rng = Pcg64::new(1, 0);
        for option in [&BOTH[..], &BOTH[1..], &[PAPER, 8, 1, 2, 3, 4, 5, 6]] {
            let mut frame = segment(option);
            assert_eq!(sum(&frame), 0xffff);
            let whole = frame.clone();
            alter(&fault(Effect::Strip {}), 0.9, &mut frame, &mut rng);
            assert_eq!(frame, whole, "before it begins");
            alter(&fault(Effect::Strip {}), 1.0, &mut frame, &mut rng);
            assert!(LawOption::of(&frame).is_none());
            assert_eq!(sum(&frame), 0xffff);
            assert_eq!(frame.len(), whole.len());
            assert_eq!(&frame[frame.len() - 12..], b"some payload");
        }
    }

    #[test]
    fn corruption_inverts_one_bit_of_the_values() {
        let mut rng = Pcg64::new(1, 0);
        let whole = segment(&BOTH);
        let values = ETHERNET + 20 + TCP_HEADER + 12 + 6;
        for _ in 0..200 {
            let mut frame = whole.clone();
            alter(&fault(Effect::Corrupt {}), 1.5, &mut frame, &mut rng);
            assert_eq!(sum(&frame), 0xffff);
            let changed: Vec<usize> = (values - 6..frame.len()).filter(|&i| frame[i] != whole[i]).collect();
            assert!(changed.len() == 1 && (values..values + 6).contains(&changed[0]), "{changed:?}");
            assert_eq!((frame[changed[0]] ^ whole[changed[0]]).count_ones(), 1);
        }
    }

    #[test]
    fn a_lie_replaces_the_price_and_keeps_flag_and_echo() {
        let mut rng = Pcg64::new(1, 0);
        for (value, price) in [(FalseSignal::Zero, [0x7f, 0xff, 0xff]), (FalseSignal::Max, [0, 0, 1])] {
            let mut frame = segment(&BOTH);
            alter(&fault(Effect::Lie { value }), 1.5, &mut frame, &mut rng);
            let option = LawOption::of(&frame).unwrap();
            assert_eq!(frame[option.at + 5..option.at + 8], price);
            assert_eq!(frame[option.at + 8..option.at + 11], [0x65, 0x43, 0x21]);
            assert_eq!(sum(&frame), 0xffff);
        }
        // RCP's rate is a logarithm too; the source's RTT behind it stays.
        let rate = [EXPERIMENT, 10, 0x57, 0x46, 13, 0x12, 0x34, 0x56, 0x65, 0x43, 1, 1];
        for (value, code) in
            [(FalseSignal::Zero, [0x7f, 0xff, 0xff, 0x65, 0x43]), (FalseSignal::Max, [0, 0, 1, 0x65, 0x43])]
        {
            let mut frame = segment(&rate);
            alter(&fault(Effect::Lie { value }), 1.5, &mut frame, &mut rng);
            let option = LawOption::of(&frame).unwrap();
            assert_eq!(frame[option.at + 5..option.at + 10], code);
        }
        let echo = [EXPERIMENT, 8, 0x57, 0x46, 2, 0x12, 0x34, 0x56];
        let (mut frame, whole) = (segment(&echo), segment(&echo));
        alter(&fault(Effect::Lie { value: FalseSignal::Max }), 1.5, &mut frame, &mut rng);
        assert_eq!(frame, whole, "an echo is no router's");
    }

    #[test]
    fn held_frames_are_released_at_multiples() {
        let ms = 1_000_000;
        let mut data = segment(&BOTH);
        let length = (data.len() - ETHERNET) as u16;
        data[16..18].copy_from_slice(&length.to_be_bytes());
        let released = |effect, frame: &[u8]| {
            let times = [999, 1000, 1001, 1299, 1301, 1950, 2000];
            times.map(|at| released_ns(&fault(effect), at * ms, frame) / ms)
        };
        let held = [999, 1000, 1300, 1300, 1600, 2000, 2000];
        assert_eq!(released(Effect::Hold { every_s: 0.3 }, &data), held);
        let acks = Effect::Acks { every_s: 0.3, thinning: 1 };
        assert_eq!(released(acks, &acknowledgement()), held);
        assert_eq!(released(acks, &data), [999, 1000, 1001, 1299, 1301, 1950, 2000]);
    }

    #[test]
    fn frames_without_a_law_and_short_ones_are_left_alone() {
        let mut rng = Pcg64::new(1, 0);
        let whole = segment(&[2, 4, 5, 0xb4]);
        for length in 0..whole.len() {
            let mut frame = whole[..length].to_vec();
            alter(&fault(Effect::Strip {}), 1.5, &mut frame, &mut rng);
            assert_eq!(frame, whole[..length]);
        }
        for length in 0..BOTH.len() + 66 {
            let mut frame = segment(&BOTH);
            frame.truncate(length);
            alter(&fault(Effect::Corrupt {}), 1.5, &mut frame, &mut rng);
            assert_eq!(frame.len(), length);
        }
    }
}
