//! Checks that the parser in Rust and the kernel programs' C code, compiled for the host, reach one verdict on a frame.

use waterfill_laws::registry::kernel_protocols;

use super::host::{self, HOSTS, Host};
use super::packet::{Found, Layout, find_option};

/// Host decoders of a law, with the layout of its option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder {
    pub(crate) host: Host,
    pub(crate) layout: Layout,
}

/// Returns the decoders of all laws.
pub(crate) fn decoders() -> Vec<Decoder> {
    let laws = kernel_protocols();
    let decoder = |host: &Host| {
        let (_, form) = laws.iter().find(|(name, _)| *name == host.law).expect("a law behind kernel/law.h");
        let law = form.law();
        let layout = Layout { law: law.number() as u8, forward: law.forward_bytes(), echo: law.echo_bytes() };
        Decoder { host: *host, layout }
    };
    assert_eq!(laws.len(), HOSTS.len(), "a decoder for every law");
    HOSTS.iter().map(decoder).collect()
}

/// Returns the number of a verdict (`bpf/test/decode.h`).
pub(crate) fn verdict(found: Found) -> u32 {
    match found {
        Found::Value { tcp, value, syn } => {
            u32::from(syn) << 4 | ((value - tcp) as u32) << 5 | (tcp as u32 & 0xffff) << 11
        }
        Found::OtherOption => 0,
        Found::NoOption => 3,
        Found::Fragment => 4,
        Found::Malformed => 5,
        Found::Signed => 6,
        Found::NotTcp => 8,
    }
}

/// Decodes a frame and replaces its value, in Rust and in C, and compares all results.
///
/// # Panics
/// Rust and C differ, or C writes a byte that is neither the value's nor the checksum's, or another checksum.
pub(crate) fn check_frame(decoder: &Decoder, frame: &[u8], linear: usize) -> Found {
    let Decoder { host, layout } = decoder;
    let found = find_option(frame, layout);
    assert_eq!(host.frame(frame, frame.len()), verdict(found), "{}: {found:?} in {frame:02x?}", host.law);
    assert_eq!(host.frame(frame, linear), verdict(found), "{}, {linear} bytes in one piece: {frame:02x?}", host.law);
    let mut written = frame.to_vec();
    let value: [u8; 16] = std::array::from_fn(|i| frame.get(i * 7).copied().unwrap_or(0xa5) ^ 0x3c);
    let old = host.write(&mut written, &value);
    let Found::Value { tcp, value: at, .. } = found else {
        assert_eq!((old, &written[..]), (None, frame), "{}: written without a value", host.law);
        return found;
    };
    assert_eq!(old.map(|old| old[..layout.forward].to_vec()), Some(frame[at..at + layout.forward].to_vec()));
    assert_eq!(written[at..at + layout.forward], value[..layout.forward], "{}: the value", host.law);
    assert_changed_in_place(frame, &written, tcp, at..at + layout.forward);
    found
}

/// Checks that only a value and TCP's checksum have changed, and that the sum over the segment is the same as before.
///
/// # Panics
/// It is not so.
pub(crate) fn assert_changed_in_place(before: &[u8], after: &[u8], tcp: usize, value: std::ops::Range<usize>) {
    assert_eq!(before.len(), after.len());
    let checksum = tcp + 16..tcp + 18;
    for at in (0..before.len()).filter(|at| !value.contains(at) && !checksum.contains(at)) {
        assert_eq!(before[at], after[at], "byte {at} changed");
    }
    let sum = |frame: &[u8]| {
        let mut sum = super::packet::sum(&frame[tcp..]);
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum % 0xffff // both zeros of the ones' complement
    };
    assert_eq!(sum(before), sum(after), "the checksum does not follow the value");
}

/// Decodes an option of this kind from the options of a TCP header, in Rust and in C.
///
/// # Panics
/// They differ.
pub(crate) fn check_option(decoder: &Decoder, options: &[u8], kind: u32) -> host::Option {
    let Decoder { host, layout } = decoder;
    let read = host.option(options, kind);
    let expected = read_option(layout, options, kind);
    assert_eq!((read.values, read.forward, read.echo), expected, "{}: kind {kind} in {options:02x?}", host.law);
    read
}

/// Decodes the first option of this kind in Rust. An experimental option must also have the right identifier.
fn read_option(layout: &Layout, mut options: &[u8], kind: u32) -> (u32, [u8; 16], [u8; 16]) {
    let none = (0, [0; 16], [0; 16]);
    let option = loop {
        match options {
            [] | [0, ..] => return none,
            [1, rest @ ..] => options = rest,
            [of, size, ..] if *size >= 2 && usize::from(*size) <= options.len() => {
                let (option, rest) = options.split_at(usize::from(*size));
                if u32::from(*of) == kind && (kind != 253 || matches!(option, [_, _, 0x57, 0x46, ..])) {
                    break option;
                }
                options = rest;
            }
            _ => return none,
        }
    };
    let value = |at: usize, length: usize| {
        let mut value = [0; 16];
        value[..length].copy_from_slice(&option[at..at + length]);
        value
    };
    if kind == 42 {
        let is_paper = layout.law == 0 && option.len() == 8;
        return if is_paper { (3, value(5, 3), value(2, 3)) } else { none };
    }
    let Some(types) = option.get(4).filter(|types| *types / 4 == layout.law) else { return none };
    match (types % 4, option.len() == layout.option_bytes(types % 4)) {
        (1, true) => (1, value(5, layout.forward), [0; 16]),
        (2, true) => (2, [0; 16], value(5, layout.echo)),
        (3, true) => (3, value(5, layout.forward), value(5 + layout.forward, layout.echo)),
        _ => none,
    }
}
