//! Random frames to decode: well-formed frames of every kind, and frames with changed lengths, kinds or other bytes.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use super::packet::{Layout, ethernet, ipv4, ipv6, tcp};

/// Maximum length in bytes of a frame in a test run.
pub(crate) const MAX_BYTES: usize = 1600;

/// Generator of random frames. The same seed gives the same frames.
pub(crate) struct Frames {
    random: Pcg64Mcg,
}

impl Frames {
    pub(crate) fn new(seed: u128) -> Self {
        Self { random: Pcg64Mcg::new(seed) }
    }

    /// Returns a random number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.random.next_u64() as u8).collect()
    }

    /// Returns an option of the law, sometimes with an error.
    fn own_option(&mut self, layout: &Layout) -> Vec<u8> {
        let values = self.one(&[1, 1, 1, 2, 3, 3, 0]);
        let length = layout.option_bytes(values);
        let mut option = vec![253, length as u8, 0x57, 0x46, 4 * layout.law + values];
        option.extend(match self.below(4) {
            0 => vec![0; length - 5],
            1 => vec![0xff; length - 5],
            _ => self.bytes(length - 5),
        });
        match self.below(24) {
            0 => option[1] = self.random.next_u64() as u8,
            1 => option[4] = self.random.next_u64() as u8,
            2 => option[2 + self.below(2) as usize] ^= 1,
            3 => option.truncate(self.below(length as u64) as usize),
            _ => {}
        }
        option
    }

    /// Returns random options of a TCP header, up to 40 bytes long.
    pub(crate) fn options(&mut self, layout: &Layout) -> Vec<u8> {
        let mut options = Vec::new();
        for _ in 0..self.below(4) {
            match self.below(12) {
                0 => options.extend(vec![1; self.below(5) as usize]),
                1 | 2 => options.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]),
                3 => options.extend([2, 4, 5, 0xb4, 4, 2, 3, 3, 7]),
                4 => {
                    let kind = self.one(&[19, 29]);
                    let length = self.below(18);
                    options.extend([kind, 2 + length as u8]);
                    options.extend(self.bytes(length as usize));
                }
                5 => {
                    let value = self.bytes(6);
                    options.extend([42, 8]);
                    options.extend(value);
                }
                6 => {
                    let other = Layout { law: self.below(64) as u8, ..*layout };
                    options.extend(self.own_option(&other));
                }
                7 => {
                    let length = self.below(12) as usize;
                    options.extend(self.bytes(length));
                }
                8 => options.push(0),
                _ => options.extend(self.own_option(layout)),
            }
        }
        if self.below(4) > 0 {
            options.extend(self.own_option(layout));
        }
        options.truncate(40);
        options
    }

    /// Returns random extension headers of IPv6.
    fn extensions(&mut self) -> Vec<(u8, Vec<u8>)> {
        let n = self.one(&[0, 0, 0, 1, 2, 8, 9]);
        let mut extensions = Vec::new();
        for _ in 0..n {
            let kind = self.one(&[0, 43, 60, 60, 44, 51]);
            let words = if kind == 44 { 0 } else { self.one(&[0, 0, 1, 5]) };
            let mut header = vec![0, words as u8, 0, 0];
            if kind == 44 && self.below(4) == 0 {
                header[2..].copy_from_slice(&(self.below(1 << 16) as u16).to_be_bytes());
            }
            header.resize(8 + 8 * words, 1);
            extensions.push((kind, header));
        }
        extensions
    }

    /// Returns a random frame for a law.
    pub(crate) fn next(&mut self, layout: &Layout) -> Vec<u8> {
        let options = self.options(layout);
        let data = self.one(&[0, 0, 1, 7, 100, 1000]);
        let mut segment = tcp(self.one(&[2, 16, 16, 16, 18]), &options, &vec![0x5a; data]);
        let checksum = self.random.next_u64() as u16;
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        let protocol = if self.below(32) == 0 { self.random.next_u64() as u8 } else { 6 };
        let v6 = self.below(3) == 0;
        let inside = if v6 {
            let extensions = self.extensions();
            ipv6(&extensions, protocol, &segment)
        } else {
            let words = self.one(&[0, 0, 0, 0, 1, 3, 10]);
            let fragment = self.one(&[0, 0x4000, 0x4000, 0x2000, 0, 0x1000]);
            ipv4(&vec![1; 4 * words], fragment, protocol, &segment)
        };
        let tags = self.one(&[&[][..], &[], &[], &[0x8100], &[0x88a8, 0x8100], &[0x8100, 0x8100, 0x8100]]);
        let ether_type = if v6 { 0x86dd } else { 0x0800 };
        let ether_type = if self.below(64) == 0 { self.random.next_u64() as u16 } else { ether_type };
        let mut frame = ethernet(tags, ether_type, &inside);
        self.damage(&mut frame);
        frame.resize(frame.len().clamp(14, MAX_BYTES), 0);
        frame
    }

    /// Changes random bytes in two of three frames, usually in their headers, and truncates some frames.
    fn damage(&mut self, frame: &mut Vec<u8>) {
        let changes = self.one(&[0, 1, 3]);
        for _ in 0..changes {
            let at = self.below(frame.len().min(140) as u64) as usize;
            match self.below(8) {
                0 => frame[at] = self.random.next_u64() as u8,
                1 | 2 => frame[at] ^= 1 << self.below(8),
                3 => frame[at] = self.one(&[0, 1, 0xff, 0x45, 0x60, 6, 253]),
                4 => frame.insert(at, 0),
                5 => drop(frame.remove(at)),
                // IPv4's length field of 0, or any.
                6 if frame.len() > 18 => {
                    let length = self.one(&[0, 20, 40, 0xffff]);
                    frame[16..18].copy_from_slice(&u16::to_be_bytes(length));
                }
                _ => {}
            }
        }
        if self.below(8) == 0 {
            frame.truncate(self.below(frame.len() as u64 + 1) as usize);
        }
    }
}
