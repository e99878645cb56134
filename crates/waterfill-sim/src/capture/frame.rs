//! IPv4, TCP and UDP headers of simulated packets, with correct lengths and checksums. The payload is all zeros.

/// Maximum length of the IPv4 and TCP headers, in bytes.
pub(super) const HEADERS_MAX: usize = 20 + 60;
/// Maximum length of the TCP options, in bytes.
const OPTIONS_MAX: usize = 40;

const TCP: u8 = 6;
const UDP: u8 = 17;

pub(super) const SYN: u16 = 0x02;
pub(super) const ACK: u16 = 0x10;
pub(super) const ECE: u16 = 0x40;
pub(super) const CWR: u16 = 0x80;
pub(super) const AE: u16 = 0x100;

const NOP: u8 = 1;
const SACK: u8 = 5;
/// `[rfc9768:§3.2.3]` Kinds of the AccECN option, by the codepoint that its first counter is of.
const ACCECN_ECT0: u8 = 172;
const ACCECN_ECT1: u8 = 174;

/// A packet's IPv4 fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) id: u16,
    pub(super) ttl: u8,
    /// The two ECN bits of RFC 3168.
    pub(super) ecn: u8,
}

/// A segment's TCP fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp {
    pub(super) ports: [u16; 2],
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u16,
}

/// TCP options of a segment, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    bytes: [u8; OPTIONS_MAX],
    length: usize,
}

impl Options {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; OPTIONS_MAX], length: 0 }
    }

    /// Adds an option if it fits, padded to a multiple of four bytes as in Linux.
    pub(super) fn push(&mut self, option: &[u8]) {
        let end = (self.length + option.len()).next_multiple_of(4);
        if end > OPTIONS_MAX {
            return;
        }
        self.bytes[self.length..self.length + option.len()].copy_from_slice(option);
        self.bytes[self.length + option.len()..end].fill(NOP);
        self.length = end;
    }

    /// Adds the options of a handshake: maximum segment size, SACK permitted and a window scale of 2¹⁴.
    pub(super) fn push_handshake(&mut self, segment: u16) {
        let [high, low] = segment.to_be_bytes();
        self.push(&[2, 4, high, low, NOP, NOP, 4, 2, NOP, 3, 3, 14]);
    }

    /// Adds an AccECN option with the counter of marked bytes. The counter before it is of the codepoint that the flow does
    /// not send, so it has its initial value.
    pub(super) fn push_accecn(&mut self, l4s: bool, marked_bytes: u32) {
        let [_, high, middle, low] = marked_bytes.to_be_bytes();
        let kind = if l4s { ACCECN_ECT0 } else { ACCECN_ECT1 };
        self.push(&[kind, 8, 0, 0, 1, high, middle, low]);
    }

    /// Adds a SACK option with up to three blocks of sequence numbers; adds nothing if there are no blocks.
    pub(super) fn push_sack(&mut self, blocks: impl Iterator<Item = (u32, u32)>) {
        let mut option = [NOP; 28];
        let mut length = 4;
        for (from, to) in blocks.take(3) {
            option[length..length + 4].copy_from_slice(&from.to_be_bytes());
            option[length + 4..length + 8].copy_from_slice(&to.to_be_bytes());
            length += 8;
        }
        option[2..4].copy_from_slice(&[SACK, length as u8 - 2]);
        if length > 4 {
            self.push(&option[..length]);
        }
    }
}

/// Headers of a packet, with the length of its payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    bytes: [u8; HEADERS_MAX],
    headers: usize,
    payload: usize,
}

impl Frame {
    /// Returns the bytes of the headers.
    pub(super) fn headers(&self) -> &[u8] {
        &self.bytes[..self.headers]
    }

    /// Returns the packet's length on the wire, in bytes.
    pub(super) const fn length(&self) -> usize {
        self.headers + self.payload
    }

    /// Builds the headers of a TCP segment that carries `payload` bytes.
    pub(super) fn tcp(ip: &Ip, tcp: &Tcp, options: &Options, payload: usize) -> Self {
        let mut frame = Self { bytes: [0; HEADERS_MAX], headers: 40 + options.length, payload };
        let segment = &mut frame.bytes[20..40 + options.length];
        segment[..2].copy_from_slice(&tcp.ports[0].to_be_bytes());
        segment[2..4].copy_from_slice(&tcp.ports[1].to_be_bytes());
        segment[4..8].copy_from_slice(&tcp.sequence.to_be_bytes());
        segment[8..12].copy_from_slice(&tcp.acknowledgement.to_be_bytes());
        segment[12] = ((20 + options.length) as u8 / 4) << 4;
        segment[12] |= (tcp.flags >> 8) as u8; // AE (RFC 9768)
        segment[13] = tcp.flags as u8;
        segment[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        segment[20..].copy_from_slice(&options.bytes[..options.length]);
        frame.finish(ip, TCP, 36);
        frame
    }

    /// Builds the headers of a UDP datagram that carries `payload` bytes.
    pub(super) fn udp(ip: &Ip, ports: [u16; 2], payload: usize) -> Self {
        let mut frame = Self { bytes: [0; HEADERS_MAX], headers: 28, payload };
        frame.bytes[20..22].copy_from_slice(&ports[0].to_be_bytes());
        frame.bytes[22..24].copy_from_slice(&ports[1].to_be_bytes());
        frame.bytes[24..26].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
        frame.finish(ip, UDP, 26);
        frame
    }

    /// Writes the IPv4 header and both checksums. The transport header's checksum is written at offset `at`.
    fn finish(&mut self, ip: &Ip, protocol: u8, at: usize) {
        let length = self.length() as u16;
        let transport = length - 20;
        self.bytes[..2].copy_from_slice(&[0x45, ip.ecn]);
        self.bytes[2..4].copy_from_slice(&length.to_be_bytes());
        self.bytes[4..6].copy_from_slice(&ip.id.to_be_bytes());
        self.bytes[6..10].copy_from_slice(&[0x40, 0, ip.ttl, protocol]);
        self.bytes[12..16].copy_from_slice(&ip.source.to_be_bytes());
        self.bytes[16..20].copy_from_slice(&ip.destination.to_be_bytes());
        let checksum = folded(sum(&self.bytes[..20]));
        self.bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        // Zeros of the payload add nothing.
        let pseudo = sum(&self.bytes[12..20]) + u32::from(protocol) + u32::from(transport);
        let mut checksum = folded(pseudo + sum(&self.bytes[20..self.headers]));
        if protocol == UDP && checksum == 0 {
            checksum = u16::MAX; // 0 says that there is none
        }
        self.bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Returns the sum of the 16-bit words in `bytes`. Headers consist of whole words.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_add_up_to_zero() {
        let ip = Ip { source: 0x0a00_0001, destination: 0x0a00_0002, id: 7, ttl: 64, ecn: 2 };
        let mut options = Options::new();
        options.push_handshake(1460);
        options.push(&[253, 8, 0x57, 0x46, 1, 0x80, 0, 0]);
        let tcp = Tcp { ports: [1, 2], sequence: 3, acknowledgement: 4, flags: SYN };
        for frame in [Frame::tcp(&ip, &tcp, &options, 1401), Frame::udp(&ip, [5, 6], 1472)] {
            let bytes = frame.headers();
            assert_eq!(folded(sum(&bytes[..20])), 0);
            let transport = u32::from(bytes[9]) + frame.length() as u32 - 20;
            assert_eq!(folded(sum(&bytes[12..]) + transport), 0);
            assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), frame.length());
        }
        assert_eq!(Frame::tcp(&ip, &tcp, &options, 1401).headers().len(), 60);
    }

    /// `[rfc9768:§3.2.3]` The counter of marked bytes is the second of both kinds, and fits next to three SACK blocks.
    #[test]
    fn rfc9768_3_2_3_the_option_counts_marked_bytes() {
        for (l4s, kind) in [(true, ACCECN_ECT0), (false, ACCECN_ECT1)] {
            let mut options = Options::new();
            options.push_sack([(1, 2), (3, 4), (5, 6)].into_iter());
            options.push_accecn(l4s, 0x01_02_03);
            assert_eq!((options.length, &options.bytes[28..36]), (36, &[kind, 8, 0, 0, 1, 1, 2, 3][..]));
        }
    }

    #[test]
    fn options_that_do_not_fit_are_left_out() {
        let mut options = Options::new();
        options.push_sack([(1, 2), (3, 4), (5, 6)].into_iter());
        assert_eq!((options.length, &options.bytes[..4]), (28, &[NOP, NOP, SACK, 26][..]));
        options.push(&[253; 13]);
        assert_eq!(options.length, 28, "13 bytes need 16 of 12");
        options.push(&[253; 11]);
        assert_eq!((options.length, options.bytes[39]), (40, NOP));
    }
}
