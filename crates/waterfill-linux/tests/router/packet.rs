//! Builders and parsers of packets that are independent of the kernel program, for comparison with its changes.

/// Flag that marks a value as a start rate.
pub(crate) const START_RATE: u32 = 1 << 23;

/// Returns a MaxNet option with a forward value.
pub(crate) fn forward(value: u32) -> Vec<u8> {
    [&[253, 8, 0x57, 0x46, 1][..], &value.to_be_bytes()[1..]].concat()
}

/// Returns a MaxNet option with an echo only.
pub(crate) fn echo(value: u32) -> Vec<u8> {
    [&[253, 8, 0x57, 0x46, 2][..], &value.to_be_bytes()[1..]].concat()
}

/// Returns a MaxNet option with a forward value and an echo.
pub(crate) fn both(value: u32, echo: u32) -> Vec<u8> {
    [&[253, 12, 0x57, 0x46, 3][..], &value.to_be_bytes()[1..], &echo.to_be_bytes()[1..], &[0]].concat()
}

/// Returns MaxNet's option of kind 42, the form in the MaxNet papers.
pub(crate) fn paper(value: u32, echo: u32) -> Vec<u8> {
    [&[42, 8][..], &echo.to_be_bytes()[1..], &value.to_be_bytes()[1..]].concat()
}

/// Returns TCP's timestamp option behind two NOPs.
pub(crate) fn timestamps() -> Vec<u8> {
    vec![1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]
}

/// Returns a TCP segment with checksum 0. NOPs pad its options to whole words.
pub(crate) fn tcp(flags: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
    let words = options.len().div_ceil(4);
    let mut out =
        vec![0x30, 0x39, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, ((5 + words) as u8) << 4, flags, 0xff, 0xff, 0, 0, 0, 0];
    out.extend(options);
    out.resize(20 + 4 * words, 1);
    out.extend(data);
    out
}

/// Returns an Ethernet frame with VLAN tags.
pub(crate) fn ethernet(tags: &[u16], protocol: u16, inside: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tag in tags {
        out.extend(tag.to_be_bytes());
        out.extend([0, 5]);
    }
    out.extend(protocol.to_be_bytes());
    out.extend(inside);
    out
}

/// Returns an IPv4 packet. `fragment` is the header word with flags and offset.
pub(crate) fn ipv4(options: &[u8], fragment: u16, protocol: u8, inside: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let header = 20 + options.len();
    let length = ((header + inside.len()) as u16).to_be_bytes();
    let fragment = fragment.to_be_bytes();
    let mut out =
        vec![0x40 | (header / 4) as u8, 0, length[0], length[1], 0, 7, fragment[0], fragment[1], 64, protocol, 0, 0];
    out.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    out.extend(options);
    let sum = !folded(sum(&out));
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(inside);
    out
}

/// Returns an IPv6 packet. Each extension header is given as its kind and its bytes, and its first byte is replaced by
/// the next kind.
pub(crate) fn ipv6(extensions: &[(u8, Vec<u8>)], protocol: u8, inside: &[u8]) -> Vec<u8> {
    let kinds: Vec<u8> = extensions.iter().map(|e| e.0).chain([protocol]).collect();
    let mut body = Vec::new();
    for ((_, header), next) in extensions.iter().zip(&kinds[1..]) {
        body.push(*next);
        body.extend(&header[1..]);
    }
    body.extend(inside);
    let length = (body.len() as u16).to_be_bytes();
    let mut out = vec![0x60, 0, 0, 0, length[0], length[1], kinds[0], 64];
    out.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    out.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    out.extend(body);
    out
}

/// Sets the checksum of the TCP segment that reaches from `at` to the end of the packet. `addresses` is the range of
/// the IP addresses.
pub(crate) fn set_checksum(packet: &mut [u8], at: usize, addresses: std::ops::Range<usize>) {
    packet[at + 16..at + 18].fill(0);
    let sum = !folded(segment_sum(packet, at, addresses));
    packet[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
}

/// Returns true if the checksum of the TCP segment at `at` is valid.
pub(crate) fn has_valid_checksum(packet: &[u8], at: usize, addresses: std::ops::Range<usize>) -> bool {
    folded(segment_sum(packet, at, addresses)) == 0xffff
}

fn segment_sum(packet: &[u8], at: usize, addresses: std::ops::Range<usize>) -> u64 {
    sum(&packet[addresses]) + 6 + (packet.len() - at) as u64 + sum(&packet[at..])
}

/// Returns the sum of all 16-bit words.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Result of a router's search for an option in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A forward value at offset `value`, in the TCP segment at offset `tcp`.
    Value {
        tcp: usize,
        value: usize,
        syn: bool,
    },
    /// A MaxNet option without a forward value.
    OtherOption,
    NoOption,
    Fragment,
    Malformed,
    /// A MaxNet option that a signature covers.
    Signed,
    NotTcp,
}

/// Layout of a law's option: the law's number, and the lengths of its two values in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) law: u8,
    pub(crate) forward: usize,
    pub(crate) echo: usize,
}

/// Layout of MaxNet's option of kind 253. The option also has a form of kind 42.
pub(crate) const MAXNET: Layout = Layout { law: 0, forward: 3, echo: 3 };

impl Layout {
    /// Returns the length in bytes of an option with these values.
    pub(crate) fn option_bytes(&self, values: u8) -> usize {
        match values {
            2 => 5 + self.echo,
            3 => (5 + self.forward + self.echo).next_multiple_of(4),
            _ => 5 + self.forward,
        }
    }
}

/// Finds MaxNet's option in a frame according to RFCs 791, 8200 and 9293 and wire.h.
pub(crate) fn find(frame: &[u8]) -> Found {
    find_option(frame, &MAXNET)
}

/// Finds a law's option in a frame.
pub(crate) fn find_option(frame: &[u8], layout: &Layout) -> Found {
    let word = |at: usize| frame.get(at..at + 2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    let mut at = 14;
    let Some(mut protocol) = word(12) else { return Found::NotTcp };
    for _ in 0..2 {
        if matches!(protocol, 0x8100 | 0x88a8) {
            let Some(inner) = word(at + 2) else { return Found::NotTcp };
            protocol = inner;
            at += 4;
        }
    }
    match protocol {
        0x0800 => find_ipv4(frame, at, layout),
        0x86dd => find_ipv6(frame, at, layout),
        _ => Found::NotTcp,
    }
}

fn find_ipv4(frame: &[u8], at: usize, layout: &Layout) -> Found {
    let Some(ip) = frame.get(at..at + 10) else { return Found::Malformed };
    let header = usize::from(ip[0] & 15) * 4;
    if ip[9] != 6 {
        return Found::NotTcp;
    }
    if ip[0] >> 4 != 4 || header < 20 {
        return Found::Malformed;
    }
    if u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0 {
        return Found::Fragment;
    }
    let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    find_tcp(frame, at + header, if length == 0 { usize::MAX } else { at + length }, layout)
}

fn find_ipv6(frame: &[u8], mut at: usize, layout: &Layout) -> Found {
    let Some(ip) = frame.get(at..at + 8) else {
        return Found::Malformed;
    };
    if ip[0] >> 4 != 6 {
        return Found::Malformed;
    }
    let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let end = if length == 0 { usize::MAX } else { at + 40 + length };
    let mut next = ip[6];
    at += 40;
    for _ in 0..8 {
        if !matches!(next, 0 | 43 | 44 | 60) {
            break;
        }
        let Some(header) = frame.get(at..at + 4) else { return Found::Malformed };
        if next == 44 {
            if u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0 {
                return Found::Fragment;
            }
            at += 8;
        } else {
            at += usize::from(header[1]) * 8 + 8;
        }
        next = header[0];
    }
    if next == 6 { find_tcp(frame, at, end, layout) } else { Found::NotTcp }
}

fn find_tcp(frame: &[u8], tcp: usize, end: usize, layout: &Layout) -> Found {
    let Some(header) = frame.get(tcp..tcp + 20) else { return Found::Malformed };
    let Some(length) = (usize::from(header[12] >> 4) * 4).checked_sub(20) else { return Found::Malformed };
    if tcp + 20 + length > end {
        return Found::Malformed;
    }
    if length < layout.option_bytes(1).min(layout.option_bytes(2)) {
        return Found::NoOption;
    }
    let Some(mut options) = frame.get(tcp + 20..tcp + 20 + length) else { return Found::Malformed };
    let (mut value, mut seen, mut signed) = (None, false, false);
    loop {
        let at = tcp + 20 + length - options.len();
        match options {
            [] | [0, ..] => break,
            [1, rest @ ..] => options = rest,
            [kind, size, ..] if *size >= 2 && usize::from(*size) <= options.len() => {
                let option = &options[..usize::from(*size)];
                let forward = match (kind, option) {
                    (19 | 29, _) => {
                        signed = true;
                        None
                    }
                    (253, [_, _, 0x57, 0x46, types, ..]) if types / 4 == layout.law => {
                        if option.len() != layout.option_bytes(types % 4) {
                            return Found::Malformed;
                        }
                        Some(types % 2 == 1)
                    }
                    (42, _) if option.len() == 8 && layout.law == 0 => Some(true),
                    _ => None,
                };
                seen |= forward.is_some();
                if forward == Some(true) {
                    value.get_or_insert(at + 5);
                }
                options = &options[usize::from(*size)..];
            }
            _ => return Found::Malformed,
        }
    }
    match (seen, signed, value) {
        (false, ..) => Found::NoOption,
        (_, true, _) => Found::Signed,
        (_, _, Some(value)) => Found::Value { tcp, value, syn: header[13] & 2 != 0 },
        _ => Found::OtherOption,
    }
}
