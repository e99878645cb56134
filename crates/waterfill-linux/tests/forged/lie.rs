//! What a path may do to the option of a packet, and what a host has to make of it.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use Lie::{
    Any, Before, Behind, Beside, Cut, CutBare, Ended, Experiment, Full, Gone, Kind, Least, Long, Most, Noise, Nought,
    One, Oversized, Past, Short, Start, Type, Zero,
};

use crate::packet::{FLAG, seal, sum};

/// Options of a TCP header at most, bytes.
const ROOM: usize = 40;
const EXID: [u8; 2] = [0x57, 0x46];

/// One thing that is done to a packet's option. Whatever else is in the header stays, before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    // Well-formed, another value.
    Zero,
    /// The least price that there is: all of x_max.
    Least,
    Most,
    Any,
    /// A start rate, also long after the handshake; a price on a SYN.
    Start,
    // More than one.
    /// Another value in a second option, behind.
    Behind,
    /// … before.
    Before,
    /// Again and again, as many as there is room for; the first is as it was.
    Full,
    /// Of the other kind beside it.
    Beside,
    // Malformed, or somebody else's.
    /// Length 0.
    Nought,
    /// Length 1.
    One,
    /// Length 255.
    Past,
    /// A length of 2 to 7 bytes.
    Short,
    /// Nine to eleven bytes, or 13 to 16, which are there.
    Long,
    /// All the room that is left.
    Oversized,
    /// A type that there is not.
    Type,
    Experiment,
    /// Of the other kind instead.
    Kind,
    /// The header ends behind the kind's byte.
    CutBare,
    /// … somewhere in the value.
    Cut,
    /// Behind the end of options.
    Ended,
    /// Bytes at random, of kinds that nobody knows.
    Noise,
    Gone,
}

pub(crate) const LIES: [Lie; 23] = [
    Zero, Least, Most, Any, Start, Behind, Before, Full, Beside, Nought, One, Past, Short, Long, Oversized, Type,
    Experiment, Kind, CutBare, Cut, Ended, Noise, Gone,
];
/// Those after which a sender may have to wait: the price may be far above what is true.
pub(crate) const SLOW: [Lie; 3] = [Most, Any, Before];
/// Those after which the option is still one.
pub(crate) const VALID: [Lie; 6] = [Zero, Least, Start, Behind, Full, Beside];
/// Those that leave nothing to be heard.
pub(crate) const NOTHING: [Lie; 14] =
    [Nought, One, Past, Short, Long, Oversized, Type, Experiment, Kind, CutBare, Cut, Ended, Noise, Gone];

/// The options of a TCP header, each by itself, without padding; `None` if they are not well-formed.
fn split(mut options: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    loop {
        match options {
            [] | [0, ..] => return Some(found),
            [1, rest @ ..] => options = rest,
            [_, size, ..] if *size >= 2 && usize::from(*size) <= options.len() => {
                let (one, rest) = options.split_at(usize::from(*size));
                found.push(one);
                options = rest;
            }
            _ => return None,
        }
    }
}

/// Where an option of ours has its values: (forward, echo).
fn fields(option: &[u8]) -> Vec<usize> {
    match option {
        [42, 8, ..] => vec![2, 5],
        [253, 12, ..] => vec![5, 8],
        _ => vec![5],
    }
}

fn is_ours(option: &[u8], kind: u8) -> bool {
    match option {
        [42, 8, ..] => kind == 42,
        [253, 8 | 12, a, b, 1..=3, ..] => kind == 253 && [*a, *b] == EXID,
        _ => false,
    }
}

fn with(option: &[u8], mut value: impl FnMut() -> u32) -> Vec<u8> {
    let mut out = option.to_vec();
    for at in fields(option) {
        out[at..at + 3].copy_from_slice(&value().to_be_bytes()[1..]);
    }
    out
}

/// The liar's dice.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) Pcg64Mcg);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    pub(crate) fn one_of(&mut self, lies: &[Lie]) -> Lie {
        lies[self.below(lies.len())]
    }

    fn field(&mut self) -> u32 {
        self.below(1 << 24) as u32
    }

    /// The option as the lie has it, in at most `room` bytes, and whether the header ends with it.
    fn told(&mut self, lie: Lie, ours: &[u8], room: usize) -> (Vec<u8>, bool) {
        let length = |n: u8| [&ours[..1], &[n], &ours[2..]].concat();
        let price = |dice: &mut Self| dice.below(FLAG as usize) as u32;
        let out = match lie {
            Zero => with(ours, || 0),
            Least => with(ours, || 1),
            Most => with(ours, || FLAG - 1),
            Any => with(ours, || price(self)),
            Start => {
                let flag = if fields(ours).iter().any(|at| ours[*at] & 0x80 != 0) { 0 } else { FLAG };
                with(ours, || flag | price(self))
            }
            Behind => [ours, &with(ours, || self.field())].concat(),
            Before => [&with(ours, || price(self))[..], ours].concat(),
            Full => ours.repeat(room / ours.len()),
            Beside => [&self.of_other_kind(ours)[..], ours].concat(),
            Nought => length(0),
            One => length(1),
            Past => length(255),
            Short => length(2 + self.below(6) as u8),
            Long => {
                let more = if ours.len() == 8 { 1 + self.below(3) } else { 1 + self.below(4) };
                [&length((ours.len() + more) as u8)[..], &vec![7; more]].concat()
            }
            Oversized => {
                let mut out = length(room as u8);
                out.resize(room, 7);
                out
            }
            Type if ours[0] == 253 => {
                let mut out = ours.to_vec();
                // That of another length, or none at all.
                out[4] = [0, 4, 255, if ours.len() == 8 { 3 } else { 1 }][self.below(4)];
                out
            }
            Experiment if ours[0] == 253 => {
                let mut out = ours.to_vec();
                out[2 + self.below(2)] ^= 1 << self.below(8);
                out
            }
            Type | Experiment => length(9), // the papers' option has neither
            Kind => self.of_other_kind(ours),
            CutBare | Cut => {
                // The header has whole words: NOPs come first.
                let keep = if lie == CutBare { 1 } else { 2 + self.below(ours.len() - 2) };
                let cut = &ours[..keep];
                let before = (4 - keep % 4) % 4;
                return ([&vec![1; before][..], cut].concat(), true);
            }
            Ended => [&[0][..], ours].concat(),
            Noise => {
                let mut out = vec![0; ours.len()];
                for byte in &mut out {
                    *byte = self.below(256) as u8;
                }
                out[0] = 64 + self.below(180) as u8;
                if out[1] >= 2 && usize::from(out[1]) < out.len() {
                    let rest = usize::from(out[1]);
                    out[rest..].fill(1);
                }
                out
            }
            Gone => Vec::new(),
        };
        (out, false)
    }

    fn of_other_kind(&mut self, ours: &[u8]) -> Vec<u8> {
        let value = self.field().to_be_bytes();
        let kind: &[u8] = if ours[0] == 42 { &[253, 8, EXID[0], EXID[1], 2] } else { &[42, 8, 0, 0, 9] };
        [kind, &value[1..]].concat()
    }

    /// A frame whose option this is done to; `None` if it has none, or there is no room for the lie.
    pub(crate) fn tell(&mut self, lie: Lie, frame: &[u8], segment: &Segment, kind: u8) -> Option<Vec<u8>> {
        let pieces = split(&frame[segment.tcp + 20..segment.data])?;
        let ours = *pieces.iter().find(|option| is_ours(option, kind))?;
        let mut options: Vec<u8> = Vec::with_capacity(ROOM);
        for other in pieces.iter().filter(|option| !is_ours(option, kind)) {
            options.extend(*other);
        }
        // Timestamps are ten bytes: what is ours begins at a whole word, as hosts send it.
        options.resize(options.len().next_multiple_of(4), 1);
        let (told, is_end) = self.told(lie, ours, ROOM - options.len());
        options.extend(told);
        if options.len() > ROOM {
            return None;
        }
        if !is_end {
            options.resize(options.len().next_multiple_of(4), 1);
        }
        Some(segment.with_options(frame, &options))
    }
}

/// Where a TCP segment is in a frame without VLAN tags, extension headers or fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) tcp: usize,
    /// Where its data begin.
    pub(crate) data: usize,
    pub(crate) syn: bool,
    v4: bool,
}

impl Segment {
    pub(crate) fn find(frame: &[u8]) -> Option<Self> {
        let v4 = match frame.get(12..14)? {
            [8, 0] => true,
            [0x86, 0xdd] => false,
            _ => return None,
        };
        let (protocol, tcp) = if v4 { (frame.get(23)?, 34) } else { (frame.get(20)?, 54) };
        let data = tcp + usize::from(frame.get(tcp + 12)? >> 4) * 4;
        (*protocol == 6 && data <= frame.len()).then(|| Self { tcp, data, syn: frame[tcp + 13] & 2 != 0, v4 })
    }

    /// The same segment with other options: lengths and checksums are right.
    fn with_options(&self, frame: &[u8], options: &[u8]) -> Vec<u8> {
        let mut out = [&frame[..self.tcp + 20], options, &frame[self.data..]].concat();
        out[self.tcp + 12] = ((20 + options.len()) as u8 / 4) << 4 | (out[self.tcp + 12] & 15);
        if self.v4 {
            let length = (out.len() - 14) as u16;
            out[16..18].copy_from_slice(&length.to_be_bytes());
            out[24..26].fill(0);
            let sum = sum(&out[14..34]);
            // Ten words carry nine at most, and once more.
            let once = (sum & 0xffff) + (sum >> 16);
            let folded = (once & 0xffff) + (once >> 16);
            out[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            seal(&mut out, self.tcp, 26..34);
        } else {
            let length = (out.len() - 54) as u16;
            out[18..20].copy_from_slice(&length.to_be_bytes());
            seal(&mut out, self.tcp, 22..54);
        }
        out
    }
}
