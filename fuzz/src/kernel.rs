//! Target `kernel`: the C that a kernel runs, called on the host with any values, and the options that carry its values.

use arbitrary::Unstructured;
use waterfill_laws::csig::{Format, Tag};
use waterfill_laws::kernel::option::{Carries, OPTION_MAX};
use waterfill_laws::kernel::{KernelLaw, Packet, Tcp, VALUE_MAX, Value, Words};
use waterfill_laws::registry::kernel_protocols;
use waterfill_laws::scone;

use crate::input::{below, byte, decades};

/// Laws whose routers replace a value by a worse one: a second time changes nothing. AECP carries its rounding over.
const REPLACING: [&str; 4] = ["maxnet", "maxnet2006", "rcp", "vcp"];

/// Calls a law's functions in the order that the bytes give, or decodes the rest of them as a wire format.
///
/// # Panics
/// C writes beyond a value, a router replaces its own value, or C and Rust disagree about bytes.
pub fn kernel(data: &[u8]) {
    let mut u = Unstructured::new(data);
    match byte(&mut u) {
        0..=31 => scone_packet(u.take_rest()),
        32..=63 => csig_tag(&mut u),
        64..=127 => values(&mut u),
        _ => calls(&mut u),
    }
}

/// The decoder in Rust and the kernel's in C find the same signal, or refuse a datagram for the same reason.
fn scone_packet(datagram: &[u8]) {
    let decoded = scone::Packet::decode(datagram).map(|packet| packet.signal);
    let mut lowered = datagram.to_vec();
    assert_eq!(scone::lower(&mut lowered, 0), decoded);
    if let Ok(packet) = scone::Packet::decode(datagram) {
        let bytes = packet.encode();
        assert_eq!(bytes, datagram[..bytes.len()]);
        let zero = scone::Packet { signal: 0, ..packet };
        assert_eq!(scone::Packet::decode(&lowered), Ok(zero));
    } else {
        assert_eq!(lowered, datagram, "changes what it refuses");
    }
}

/// Any bytes after the TPID are a tag; writing it gives bytes that read as the same tag.
fn csig_tag(u: &mut Unstructured<'_>) {
    let format = [Format::Compact, Format::Wide][below(u, 2)];
    let bytes: [u8; 8] = u.arbitrary().unwrap_or_default();
    let mut tag = Tag::read(format, &bytes);
    let written = tag.write(format, u16::from_be_bytes([bytes[0], bytes[1]]));
    assert_eq!(Tag::read(format, &written), tag);
    assert_eq!(written[..2], bytes[..2]);
    let (signal, code, locator) = (u32::from(byte(u)) % 8, u.arbitrary().unwrap_or(0), u.arbitrary().unwrap_or(0));
    let (before, most) = (tag, (1_u32 << format.bits()) - 1);
    if !tag.update(signal, code & most, locator) {
        assert_eq!(tag, before, "changes a tag without saying so");
    }
}

/// A law's value survives the option that carries it in the simulator, and any other bytes are refused or come back.
fn values(u: &mut Unstructured<'_>) {
    let value: Value = u.arbitrary().unwrap_or_default();
    for (name, form) in kernel_protocols() {
        let law = form.law();
        for (carries, length) in [(Carries::Forward, law.forward_bytes()), (Carries::Echo, law.echo_bytes())] {
            let mut own = value;
            own[length..].fill(0);
            let mut bytes = [0; OPTION_MAX];
            carries.write(law, &own, &mut bytes);
            assert_eq!(carries.read(law, &bytes), Some(own), "{name}");
            bytes[usize::from(value[0]) % carries.segment_bytes(law)] ^= value[1];
            if let Some(read) = carries.read(law, &bytes) {
                let mut again = bytes;
                carries.write(law, &read, &mut again);
                assert_eq!(again, bytes, "{name}");
            }
        }
    }
}

/// A link and a connection of one law.
struct State {
    name: &'static str,
    law: &'static KernelLaw,
    params: Words,
    link: Words,
    cpu: Words,
    sums: Words,
    source: Words,
    receiver: Words,
    tcp: Tcp,
}

fn calls(u: &mut Unstructured<'_>) {
    let laws = kernel_protocols();
    let (name, form) = laws[below(u, laws.len())];
    let (law, sets) = (form.law(), form.recorded());
    let params = law.params(&sets[below(u, sets.len())]);
    let packet = u.int_in_range(64..=9000).unwrap_or(1500);
    let mut s = State {
        name,
        law,
        link: law.link(),
        cpu: law.cpu(),
        sums: law.sums(),
        source: law.source(),
        receiver: law.receiver(),
        tcp: Tcp { packet, payload: packet - 52, max_segments: 1, unlimited: 1, ..Tcp::default() },
        params,
    };
    s.set_link(u);
    s.law.source_init(&s.params, &mut s.source, packet, u64::from(packet) * (1 + u64::from(byte(u))));
    while !u.is_empty() {
        s.step(u);
    }
}

impl State {
    fn set_link(&mut self, u: &mut Unstructured<'_>) {
        let target = if byte(u) & 1 == 0 { 0 } else { u.int_in_range(1..=1_000_000).unwrap_or(1) };
        self.law.link_set(&mut self.link, &self.params, decades(u, 1.0, 1e15) as u64, target);
        assert!(self.law.interval(&self.link) > 0, "{}: an interval of nothing", self.name);
    }

    fn step(&mut self, u: &mut Unstructured<'_>) {
        match byte(u) % 16 {
            0..=3 => self.mark(u),
            4 | 5 => {
                for word in 0..self.sums.words().len() {
                    self.sums.set(word, decades(u, 1.0, 1e12) as u64 - 1);
                }
                self.law.tick(&mut self.link, &self.sums, decades(u, 1.0, 1e12) as u64 - 1);
                assert!(self.law.interval(&self.link) > 0, "{}: an interval of nothing", self.name);
            }
            6 => self.law.idle(&mut self.link, decades(u, 1.0, 1e9) as u64, decades(u, 1.0, 1e12) as u64 - 1),
            7 => self.set_link(u),
            8 => self.law.link_restore(&mut self.link, u.arbitrary::<u64>().unwrap_or(0) >> (byte(u) % 64)),
            9..=12 => self.acknowledge(u),
            13 => self.law.reduce(&mut self.source, 1 + u32::from(byte(u)) % 8),
            14 if byte(u) & 1 == 0 => self.law.loss(&self.params, &mut self.source),
            14 => self.law.timeout(&self.params, &mut self.source),
            _ => {
                let (evidence, us) = (self.law.evidence(&self.source), decades(u, 1.0, 1e9) as u64);
                assert!(!self.law.tightens(&self.source, evidence, us) || us > 0);
            }
        }
    }

    /// A packet with the source's value, or any, from the source over the router to the receiver.
    fn mark(&mut self, u: &mut Unstructured<'_>) {
        let flags = byte(u);
        let syn = u32::from(flags & 15 == 0);
        let mut value = if flags & 0x10 == 0x10 {
            let mut any: Value = u.arbitrary().unwrap_or_default();
            any[self.law.forward_bytes()..].fill(0);
            any
        } else if syn == 1 {
            self.law.request(&self.params)
        } else {
            self.law.forward(&self.params, &mut self.source)
        };
        let segments = if flags & 0x20 == 0 { 1 } else { u.int_in_range(1..=44).unwrap_or(1) };
        let packet = Packet { bytes: u64::from(segments) * u64::from(self.tcp.packet), segments, syn };
        self.law.mark(&mut self.link, &mut self.cpu, &packet, &mut value);
        self.fits(&value, self.law.forward_bytes());
        if syn == 0 && REPLACING.contains(&self.name) {
            let once = value;
            let again = self.law.mark(&mut self.link, &mut self.cpu, &packet, &mut value);
            assert!(!again && value == once, "{}: {once:02x?} becomes {value:02x?} at the same link", self.name);
        }
        let rtt_us = if flags & 0x40 == 0 { decades(u, 1.0, 1e7) as u32 } else { 0 };
        self.tcp.now_us += decades(u, 1.0, 1e7) as u64 - 1;
        self.law.receive(&self.params, &mut self.receiver, self.tcp.now_us, rtt_us, &value, segments);
    }

    /// An acknowledgement with the receiver's echo, or any, or none.
    fn acknowledge(&mut self, u: &mut Unstructured<'_>) {
        let flags = byte(u);
        let mut echo = self.law.echo(&mut self.receiver);
        self.fits(&echo, self.law.echo_bytes());
        if flags & 3 == 3 {
            echo = u.arbitrary().unwrap_or_default();
        }
        let base_rtt = decades(u, 1.0, 1e7) as u32;
        self.tcp.now_us += decades(u, 1.0, 1e7) as u64 - 1;
        self.tcp.base_rtt_us = base_rtt;
        self.tcp.srtt_us = base_rtt.saturating_mul(8);
        self.tcp.acked = u32::from(byte(u));
        self.tcp.delivered = self.tcp.delivered.wrapping_add(self.tcp.acked);
        self.tcp.in_flight = self.tcp.acked + u32::from(byte(u));
        self.tcp.recovering = u32::from(flags & 16 == 16);
        self.tcp.app_limited = u32::from(flags & 32 == 32);
        self.tcp.window_limited = u32::from(flags & 64 == 64);
        self.law.ack(&self.params, &mut self.source, &self.tcp, (flags & 12 != 12).then_some(&echo));
        let limit = self.law.limit(&mut self.source, &self.tcp);
        assert!(limit.heard <= 1 && limit.steady <= 1 && limit.reserved == 0, "{}: {limit:?}", self.name);
        assert!(limit.rate < 1 << 63 && limit.window < 1 << 63, "{}: {limit:?}", self.name);
    }

    fn fits(&self, value: &Value, bytes: usize) {
        assert_eq!(value[bytes..], [0; VALUE_MAX][bytes..], "{}: writes beyond {bytes} bytes", self.name);
    }
}
