//! Forged options: changes that a path can make to a packet's option.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use Forgery::{
    AfterEnd, AllSpace, CutAfterKind, CutInValue, Length0, Length1, Length255, Max, Min, Noise, OtherExperiment,
    OtherKind, OtherKindBefore, Random, Removed, Repeated, SecondAfter, SecondBefore, StartRate, TooLong, TooShort,
    UnknownType, Zero,
};

use crate::packet::{START_RATE, set_checksum, sum};

/// Maximum length of a TCP header's options, in bytes.
const MAX_OPTION_BYTES: usize = 40;
const EXID: [u8; 2] = [0x57, 0x46];

/// A change to a packet's law option. Other options are kept and placed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgery {
    // Well-formed, with another value.
    Zero,
    /// The minimum price, which permits all of x_max.
    Min,
    Max,
    Random,
    /// A start rate in place of a price, even long after the handshake, or a price on a SYN.
    StartRate,
    // More than one option.
    /// A second option with another value, after the true option.
    SecondAfter,
    /// A second option with another value, before the true option.
    SecondBefore,
    /// The true option, repeated as often as it fits.
    Repeated,
    /// An option of the other kind, before the true option.
    OtherKindBefore,
    // Malformed, or of another experiment.
    Length0,
    Length1,
    Length255,
    /// An option whose length byte is 2 to 7.
    TooShort,
    /// An option that is too long: 9 to 11 bytes, or 13 to 16.
    TooLong,
    /// An option that fills all the remaining space.
    AllSpace,
    UnknownType,
    OtherExperiment,
    /// An option of the other kind, in place of the true option.
    OtherKind,
    /// A header that ends after the byte with the option's kind.
    CutAfterKind,
    /// A header that ends inside the option.
    CutInValue,
    /// An option after the end of the list of options.
    AfterEnd,
    /// Random bytes under an unknown option kind.
    Noise,
    Removed,
}

/// All forgeries.
pub(crate) const FORGERIES: [Forgery; 23] = [
    Zero,
    Min,
    Max,
    Random,
    StartRate,
    SecondAfter,
    SecondBefore,
    Repeated,
    OtherKindBefore,
    Length0,
    Length1,
    Length255,
    TooShort,
    TooLong,
    AllSpace,
    UnknownType,
    OtherExperiment,
    OtherKind,
    CutAfterKind,
    CutInValue,
    AfterEnd,
    Noise,
    Removed,
];
/// Forgeries that can raise the price far above the true price and make a sender wait.
pub(crate) const RAISED: [Forgery; 3] = [Max, Random, SecondBefore];
/// Forgeries that leave an option that a host can read.
pub(crate) const WELL_FORMED: [Forgery; 6] = [Zero, Min, StartRate, SecondAfter, Repeated, OtherKindBefore];
/// Forgeries that leave no readable option.
pub(crate) const UNREADABLE: [Forgery; 14] = [
    Length0,
    Length1,
    Length255,
    TooShort,
    TooLong,
    AllSpace,
    UnknownType,
    OtherExperiment,
    OtherKind,
    CutAfterKind,
    CutInValue,
    AfterEnd,
    Noise,
    Removed,
];

impl Forgery {
    /// Returns the forgery's index in [`FORGERIES`].
    pub(crate) fn index(self) -> usize {
        FORGERIES.iter().position(|forgery| *forgery == self).unwrap()
    }
}

/// Splits a TCP header's options and leaves out padding. Returns `None` if they are malformed.
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

/// Returns the offsets of the values in a MaxNet option.
fn fields(option: &[u8]) -> Vec<usize> {
    match option {
        [42, 8, ..] => vec![2, 5],
        [253, 12, ..] => vec![5, 8],
        _ => vec![5],
    }
}

fn is_maxnet(option: &[u8], kind: u8) -> bool {
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

/// Random generator of forged options.
#[derive(Debug)]
pub(crate) struct Forger(pub(crate) Pcg64Mcg);

impl Forger {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    pub(crate) fn one_of(&mut self, forgeries: &[Forgery]) -> Forgery {
        forgeries[self.below(forgeries.len())]
    }

    fn field(&mut self) -> u32 {
        self.below(1 << 24) as u32
    }

    /// Forges an option in up to `space` bytes. Returns the forged option, and true if the header must end with it.
    fn forged_option(&mut self, forgery: Forgery, original: &[u8], space: usize) -> (Vec<u8>, bool) {
        let length = |n: u8| [&original[..1], &[n], &original[2..]].concat();
        let price = |forger: &mut Self| forger.below(START_RATE as usize) as u32;
        let out = match forgery {
            Zero => with(original, || 0),
            Min => with(original, || 1),
            Max => with(original, || START_RATE - 1),
            Random => with(original, || price(self)),
            StartRate => {
                let flag = if fields(original).iter().any(|at| original[*at] & 0x80 != 0) { 0 } else { START_RATE };
                with(original, || flag | price(self))
            }
            SecondAfter => [original, &with(original, || self.field())].concat(),
            SecondBefore => [&with(original, || price(self))[..], original].concat(),
            Repeated => original.repeat(space / original.len()),
            OtherKindBefore => [&self.of_other_kind(original)[..], original].concat(),
            Length0 => length(0),
            Length1 => length(1),
            Length255 => length(255),
            TooShort => length(2 + self.below(6) as u8),
            TooLong => {
                let more = if original.len() == 8 { 1 + self.below(3) } else { 1 + self.below(4) };
                [&length((original.len() + more) as u8)[..], &vec![7; more]].concat()
            }
            AllSpace => {
                let mut out = length(space as u8);
                out.resize(space, 7);
                out
            }
            UnknownType if original[0] == 253 => {
                let mut out = original.to_vec();
                // The type of the other length, or an unknown one.
                out[4] = [0, 4, 255, if original.len() == 8 { 3 } else { 1 }][self.below(4)];
                out
            }
            OtherExperiment if original[0] == 253 => {
                let mut out = original.to_vec();
                out[2 + self.below(2)] ^= 1 << self.below(8);
                out
            }
            UnknownType | OtherExperiment => length(9), // the papers' option has neither type nor ExID
            OtherKind => self.of_other_kind(original),
            CutAfterKind | CutInValue => {
                // The header has whole words, so NOPs come first.
                let keep = if forgery == CutAfterKind { 1 } else { 2 + self.below(original.len() - 2) };
                let cut = &original[..keep];
                let before = (4 - keep % 4) % 4;
                return ([&vec![1; before][..], cut].concat(), true);
            }
            AfterEnd => [&[0][..], original].concat(),
            Noise => {
                let mut out = vec![0; original.len()];
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
            Removed => Vec::new(),
        };
        (out, false)
    }

    fn of_other_kind(&mut self, original: &[u8]) -> Vec<u8> {
        let value = self.field().to_be_bytes();
        let kind: &[u8] = if original[0] == 42 { &[253, 8, EXID[0], EXID[1], 2] } else { &[42, 8, 0, 0, 9] };
        [kind, &value[1..]].concat()
    }

    /// Forges the option in a frame. Returns `None` if the frame has no option, or if the forgery does not fit.
    pub(crate) fn forge(&mut self, forgery: Forgery, frame: &[u8], segment: &Segment, kind: u8) -> Option<Vec<u8>> {
        let pieces = split(&frame[segment.tcp + 20..segment.data])?;
        let original = *pieces.iter().find(|option| is_maxnet(option, kind))?;
        let mut options: Vec<u8> = Vec::with_capacity(MAX_OPTION_BYTES);
        for other in pieces.iter().filter(|option| !is_maxnet(option, kind)) {
            options.extend(*other);
        }
        // Timestamps have ten bytes; a MaxNet option starts at a whole word, as hosts send it.
        options.resize(options.len().next_multiple_of(4), 1);
        let (forged, is_end) = self.forged_option(forgery, original, MAX_OPTION_BYTES - options.len());
        options.extend(forged);
        if options.len() > MAX_OPTION_BYTES {
            return None;
        }
        if !is_end {
            options.resize(options.len().next_multiple_of(4), 1);
        }
        Some(segment.with_options(frame, &options))
    }
}

/// Position of a TCP segment in a frame without VLAN tags, extension headers or fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) tcp: usize,
    /// Offset of the segment's data in the frame.
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

    /// Returns a frame with other options, whose lengths and checksums are valid.
    fn with_options(&self, frame: &[u8], options: &[u8]) -> Vec<u8> {
        let mut out = [&frame[..self.tcp + 20], options, &frame[self.data..]].concat();
        out[self.tcp + 12] = ((20 + options.len()) as u8 / 4) << 4 | (out[self.tcp + 12] & 15);
        if self.v4 {
            let length = (out.len() - 14) as u16;
            out[16..18].copy_from_slice(&length.to_be_bytes());
            out[24..26].fill(0);
            let sum = sum(&out[14..34]);
            // The sum of ten words carries up to nine, and then another one.
            let once = (sum & 0xffff) + (sum >> 16);
            let folded = (once & 0xffff) + (once >> 16);
            out[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            set_checksum(&mut out, self.tcp, 26..34);
        } else {
            let length = (out.len() - 54) as u16;
            out[18..20].copy_from_slice(&length.to_be_bytes());
            set_checksum(&mut out, self.tcp, 22..54);
        }
        out
    }
}
