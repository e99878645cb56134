//! Tests of the SCONE element in the running kernel: packets in test runs, and datagrams of sockets with the daemon.
//! Without root, they are skipped.

#![cfg(feature = "daemon")]

mod common;
#[path = "common/generated.rs"]
mod generated;
#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "router/packet.rs"]
mod packet;
#[path = "scone/sockets.rs"]
mod sockets;

use std::collections::BTreeMap;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Range;

use generated::generated;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder, ProgramInput};
use packet::{ethernet, ipv4, ipv6, sum};
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use waterfill_laws::scone::{Advice, NotScone, Packet, Rule, UNKNOWN, lower};

generated!(skeleton, "scone.skel.rs");

use skeleton::types::{
    __sk_buff as Context, scone_advice as RawAdvice, scone_link as Link, waterfill_device as Device,
};
use skeleton::{SconeSkel, SconeSkelBuilder};

/// Index of the loopback device, which BPF_PROG_TEST_RUN uses by default.
const LOOPBACK: u32 = 1;
/// Number of price units in a second: prices are in 2⁻³⁴ s.
const SECOND: f64 = (1_u64 << 34) as f64;
/// Value of MaxNet's x_max in bit/s.
const X_MAX: f64 = 1e15;
const T: f64 = 0.4;

#[expect(unsafe_code, reason = "structures cross to the kernel and back as bytes")]
fn bytes_of<T>(of: &mut T) -> &mut [u8] {
    // SAFETY: the callers' types have integers without padding, for which any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(of).cast(), size_of::<T>()) }
}

/// The loaded SCONE programs, with a link on the loopback device.
struct Element {
    skeleton: Box<SconeSkel<'static>>,
    advice: Advice,
    /// Signal of the law on the link.
    price: u64,
}

impl Element {
    fn load() -> Option<Self> {
        common::requirements::can_load_programs().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = SconeSkelBuilder::default().open(storage).unwrap();
        let mut element = Self { skeleton: Box::new(open.load().unwrap()), advice: Advice::default(), price: 0 };
        element.set(Advice { x_max: X_MAX as u64, t: 400, rule: Rule::Demand as u32, ..Advice::default() });
        element.price(1e8);
        Some(element)
    }

    fn set(&mut self, advice: Advice) {
        self.advice = advice;
        let mut link = Link {
            advice: RawAdvice { x_max: advice.x_max, t: advice.t, rule: advice.rule, shift: advice.shift, reserved: 0 },
            ..Link::default()
        };
        let links = &self.skeleton.maps.scone_links;
        links.update(&LOOPBACK.to_ne_bytes(), bytes_of(&mut link), MapFlags::ANY).unwrap();
    }

    /// Sets the link's MaxNet price to the price for a flow of rate `bps`.
    fn price(&mut self, bps: f64) {
        self.signal((-T * (bps / X_MAX).ln() * SECOND) as u64);
    }

    fn signal(&mut self, signal: u64) {
        self.price = signal;
        let mut device = Device::default();
        device.attachment.price = signal;
        let links = &self.skeleton.maps.links;
        links.update(&LOOPBACK.to_ne_bytes(), bytes_of(&mut device), MapFlags::ANY).unwrap();
    }

    /// Returns the SCONE signal that the link writes.
    fn own(&self) -> u8 {
        self.advice.signal(self.price)
    }

    fn counts(&self) -> Link {
        let value = self.skeleton.maps.scone_links.lookup(&LOOPBACK.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let mut link = Link::default();
        bytes_of(&mut link).copy_from_slice(&value);
        link
    }

    /// Sends a packet through the program, and stores the resulting packet in `out`. For a super-packet,
    /// `segment_bytes` is the length of its datagrams; otherwise it is 0.
    fn send(&self, packet: &[u8], segment_bytes: u32, out: &mut Vec<u8>) {
        let mut context = [0_u8; size_of::<Context>()];
        let mut put = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(offset_of!(Context, ifindex), LOOPBACK);
        if segment_bytes > 0 {
            put(offset_of!(Context, gso_size), segment_bytes);
            put(offset_of!(Context, gso_segs), (packet.len() as u32).div_ceil(segment_bytes));
        }
        out.resize(packet.len() + 256, 0);
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(packet),
            data_out: Some(out),
            ..ProgramInput::default()
        };
        let answer = self.skeleton.progs.waterfill_scone.test_run(input).unwrap();
        assert_eq!(answer.return_value as i32, -1, "every packet continues");
        let length = answer.data.map_or(0, |data| data.len());
        out.truncate(length);
    }

    fn sent(&self, packet: &[u8], segment_bytes: u32) -> Vec<u8> {
        let mut out = Vec::new();
        self.send(packet, segment_bytes, &mut out);
        out
    }
}

// ------------------------------------------------------------------ frames

/// Kind of a frame's UDP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checksum {
    Valid,
    /// No checksum, which IPv4 permits.
    Zero,
}

fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns a UDP datagram with checksum 0.
fn udp(ports: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    [&ports[..], &length.to_be_bytes(), &[0, 0], payload].concat()
}

/// Returns the correct UDP checksum of the datagram at `at`. `addresses` is the range of the IP addresses.
fn checksum(frame: &[u8], at: usize, addresses: Range<usize>) -> u16 {
    let length = frame.len() - at;
    let without = sum(&frame[at..]) - sum(&frame[at + 6..at + 8]);
    match !folded(sum(&frame[addresses]) + 17 + length as u64 + without) {
        0 => 0xffff,
        other => other,
    }
}

/// A frame with a UDP datagram, and the offsets of the datagram and the IP addresses.
#[derive(Clone, Debug)]
struct Frame {
    bytes: Vec<u8>,
    udp: usize,
    addresses: Range<usize>,
}

impl Frame {
    /// Builds a frame around a datagram, with `tags` VLAN tags and optional IP options or extension headers.
    fn new(v6: bool, tags: usize, extensions: bool, datagram: &[u8]) -> Self {
        let link = 14 + 4 * tags;
        let (ip, header, addresses) = match (v6, extensions) {
            (false, false) => (ipv4(&[], 0, 17, datagram), 20, 12..20),
            (false, true) => (ipv4(&[7, 7, 4, 0, 0, 0, 0, 0], 0, 17, datagram), 28, 12..20),
            (true, false) => (ipv6(&[], 17, datagram), 40, 8..40),
            (true, true) => (
                ipv6(&[(0, vec![0; 8]), (60, vec![0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])], 17, datagram),
                64,
                8..40,
            ),
        };
        let protocol = if v6 { 0x86dd } else { 0x0800 };
        let bytes = ethernet(&[0x88a8, 0x8100][2 - tags..], protocol, &ip);
        Self { bytes, udp: link + header, addresses: link + addresses.start..link + addresses.end }
    }

    fn finish(&mut self, kind: Checksum) {
        if kind == Checksum::Valid {
            let value = checksum(&self.bytes, self.udp, self.addresses.clone());
            self.bytes[self.udp + 6..self.udp + 8].copy_from_slice(&value.to_be_bytes());
        }
    }

    fn payload(&self) -> usize {
        self.udp + 8
    }
}

/// Returns the number of packets for [`every_kind_of_packet`], which is a million in `make validate STUDY=scone`.
fn packets() -> u64 {
    std::env::var("SCONE_PACKETS").map_or(100_000, |text| text.parse().unwrap())
}

/// For random packets of both families, the program writes the same bytes as the host's codec. The test recomputes each
/// checksum from all bytes. Most packets contain a SCONE packet.
#[test]
fn every_kind_of_packet() {
    let Some(mut element) = Element::load() else { return };
    let mut random = Pcg64Mcg::new(7);
    let mut below = move |n: u64| random.next_u64() % n;
    let mut out = Vec::new();
    let mut did: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut raised, mut wrong, mut other_bytes) = (0, 0, 0);
    for n in 0..packets() {
        if n % 64 == 0 {
            element.price(10_f64.powf(4.5 + 7.0 * below(1000) as f64 / 1000.0));
        }
        let (v6, tags, extensions) = (below(2) == 1, below(8).saturating_sub(5) as usize, below(8) == 0);
        let mut id = || vec![below(256) as u8; [0, 8, 4, 20, below(256)][below(5) as usize] as usize];
        let scone = Packet { destination: id(), source: id(), signal: 0, reserved: false };
        let signal = if below(2) == 0 { UNKNOWN } else { below(128) as u8 };
        let scone = Packet { signal, reserved: below(2) == 1, ..scone };
        let mut payload = scone.encode();
        payload.push(0x40);
        payload.extend(&scone.destination);
        payload.resize(payload.len() + below(40) as usize, 0x5a);
        match below(16) {
            0 => payload.truncate(below(payload.len() as u64) as usize), // malformed, or too short for anything
            1 => payload[below(5) as usize] ^= 1 << below(8),            // another version, a short header
            _ => {}
        }
        let ports = [below(256) as u8, below(256) as u8, below(256) as u8, below(256) as u8];
        let mut frame = Frame::new(v6, tags, extensions, &udp(ports, &payload));
        let kind = if !v6 && below(8) == 0 { Checksum::Zero } else { Checksum::Valid };
        let mut expected = frame.clone();
        let at = frame.payload();
        let lowered = lower(&mut expected.bytes[at..], element.own());
        let end = frame.bytes.len();
        if kind == Checksum::Valid && below(8) == 0 && payload.len() > 30 && payload.len() % 2 == 0 && lowered.is_ok() {
            // The last word such that the new checksum is 0, which is sent as 0xffff.
            expected.bytes[end - 2..].fill(0);
            let word = checksum(&expected.bytes, expected.udp, expected.addresses.clone());
            frame.bytes[end - 2..].copy_from_slice(&word.to_be_bytes());
            expected.bytes[end - 2..].copy_from_slice(&word.to_be_bytes());
        }
        frame.finish(kind);
        expected.finish(kind);
        element.send(&frame.bytes, 0, &mut out);
        let (before, after) = (Packet::decode(&frame.bytes[at..]), Packet::decode(&out[at..]));
        raised += u64::from(matches!((&before, &after), (Ok(a), Ok(b)) if b.signal > a.signal));
        let (own, computed) = (&out[frame.udp + 6..frame.udp + 8], checksum(&out, frame.udp, frame.addresses.clone()));
        wrong += u64::from(own != if kind == Checksum::Zero { [0, 0] } else { computed.to_be_bytes() });
        other_bytes += u64::from(out != expected.bytes);
        let what = match (lowered, kind) {
            (Ok(before), _) if before <= element.own() => "kept",
            (Ok(_), Checksum::Zero) => "lowered without checksum",
            (Ok(_), _) if computed == 0xffff => "lowered to checksum 0xffff",
            (Ok(_), _) if v6 => "lowered in IPv6",
            (Ok(_), _) => "lowered in IPv4",
            (Err(NotScone::Malformed), _) => "malformed",
            (Err(NotScone::Other), _) => "other",
        };
        *did.entry(what).or_default() += 1;
    }
    eprintln!("{} packets: {raised} raised, {wrong} wrong checksums; {did:?}", packets());
    assert_eq!((raised, wrong, other_bytes), (0, 0, 0));
    assert!(did.len() == 7 && did.values().all(|n| *n > packets() / 1000), "{did:?}");
    let counts = element.counts();
    let of = |what: &str| did[what];
    let lowered: u64 = did.iter().filter(|(what, _)| what.starts_with("lowered")).map(|(_, n)| n).sum();
    assert_eq!((counts.lowered, counts.held, counts.no_memory), (lowered, 0, 0));
    assert_eq!((counts.seen, counts.malformed), (lowered + of("kept"), of("malformed")));
}

/// Returns a datagram with a SCONE packet and a short header behind it.
fn datagram(signal: u8, bytes: usize) -> Vec<u8> {
    let scone = Packet { signal, reserved: true, destination: vec![9; 8], source: Vec::new() };
    let mut datagram = scone.encode();
    datagram.push(0x41);
    datagram.extend([9; 8]);
    datagram.resize(bytes, 0x77);
    datagram
}

fn signal_at(frame: &[u8], at: usize) -> Result<u8, NotScone> {
    Packet::decode(&frame[at..]).map(|packet| packet.signal)
}

#[test]
fn a_flow_is_lowered_a_few_times_and_at_every_lower_advice() {
    let Some(mut element) = Element::load() else { return };
    let mut frame = Frame::new(true, 0, false, &udp([1, 2, 3, 4], &datagram(UNKNOWN, 100)));
    frame.finish(Checksum::Valid);
    let send = |element: &Element| signal_at(&element.sent(&frame.bytes, 0), frame.payload()).unwrap();
    let first: Vec<u8> = (0..6).map(|_| send(&element)).collect();
    assert_eq!(first, [60, 60, 60, 60, UNKNOWN, UNKNOWN]);
    element.price(5e7);
    assert_eq!([send(&element), send(&element)], [54, UNKNOWN]);
    element.price(1e8);
    assert_eq!(send(&element), UNKNOWN, "a rise is not news: endpoints follow the lowest of a period");
    let counts = element.counts();
    assert_eq!((counts.seen, counts.lowered, counts.held), (9, 5, 4));
    // Another flow is counted for itself.
    let mut other = Frame::new(true, 0, false, &udp([1, 2, 3, 5], &datagram(UNKNOWN, 100)));
    other.finish(Checksum::Valid);
    assert_eq!(signal_at(&element.sent(&other.bytes, 0), other.payload()), Ok(60));
}

#[test]
fn a_rate_of_a_law_is_its_advice_and_no_rate_is_none() {
    let Some(mut element) = Element::load() else { return };
    element.set(Advice { rule: Rule::Rate as u32, shift: 10, ..Advice::default() });
    for (port, (rate, expected)) in [(1_000_000_u64, 20), (112_201_845, 61), (0, UNKNOWN)].into_iter().enumerate() {
        element.signal(rate << 10);
        let mut frame = Frame::new(false, 0, false, &udp([0, port as u8, 1, 1], &datagram(UNKNOWN, 60)));
        frame.finish(Checksum::Valid);
        let out = element.sent(&frame.bytes, 0);
        assert_eq!(signal_at(&out, frame.payload()), Ok(expected));
    }
}

/// The program examines the start of every datagram in a super-packet, and does not read the bytes between.
#[test]
fn every_datagram_of_a_super_packet_is_looked_at() {
    let Some(element) = Element::load() else { return };
    let segment_bytes = 200;
    let mut payload = Vec::new();
    for n in 0..15 {
        let mut one = if n % 3 == 1 { vec![0x42; 200] } else { datagram(UNKNOWN, 200) };
        one[100..113].copy_from_slice(&datagram(UNKNOWN, 13)); // not at a datagram's start
        payload.extend(one);
    }
    payload.extend(datagram(UNKNOWN, 24)); // the last is shorter: just long enough
    for v6 in [false, true] {
        let frame = Frame::new(v6, 0, false, &udp([7; 4], &payload));
        let out = element.sent(&frame.bytes, segment_bytes);
        let mut left = 4; // as one flow
        let mut expected = frame.bytes.clone();
        for at in (frame.payload()..out.len()).step_by(segment_bytes as usize) {
            if left > 0 && lower(&mut expected[at..], element.own()).is_ok() {
                left -= 1;
            }
        }
        expected[frame.udp + 6..frame.udp + 8].copy_from_slice(&out[frame.udp + 6..frame.udp + 8]);
        assert_eq!(left, 0);
        assert_eq!(out, expected);
    }
    let counts = element.counts();
    assert_eq!((counts.seen, counts.lowered, counts.malformed), (22, 8, 0));
}

/// Fragments, other protocols, truncated headers and wrong lengths pass unchanged.
#[test]
fn what_is_no_whole_datagram_passes_unchanged() {
    let Some(element) = Element::load() else { return };
    let datagram = udp([5; 4], &datagram(UNKNOWN, 64));
    let whole = ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &datagram));
    let mut lies = whole.clone();
    lies[14 + 20 + 4..14 + 20 + 6].copy_from_slice(&500_u16.to_be_bytes());
    let mut short = whole.clone();
    short[14 + 20 + 4..14 + 20 + 6].copy_from_slice(&7_u16.to_be_bytes());
    let fragment = |offset: u16| ethernet(&[], 0x0800, &ipv4(&[], offset, 17, &datagram));
    let header = |offset: u16| [0, 0, (offset >> 8) as u8, offset as u8, 0, 0, 0, 7].to_vec();
    let v6 = |offset: u16| ethernet(&[], 0x86dd, &ipv6(&[(44, header(offset))], 17, &datagram));
    let other = ethernet(&[], 0x0800, &ipv4(&[], 0, 136, &datagram));
    let arp = ethernet(&[], 0x0806, &datagram);
    for frame in [lies, short, fragment(8), fragment(0x2001), v6(0x0009), v6(0x0008), other, arp] {
        assert_eq!(element.sent(&frame, 0), frame);
    }
    let counts = element.counts();
    assert_eq!((counts.seen, counts.malformed), (0, 0));
    for length in 34..whole.len() {
        let frame = &whole[..length];
        assert_eq!(element.sent(frame, 0), frame, "{length}");
    }
    assert_ne!(element.sent(&whole, 0), whole);
    // An atomic fragment is whole, and so is a datagram behind a fragment header without offset.
    assert_ne!(element.sent(&v6(0), 0), v6(0));
}

/// Number of runs in a measurement. The minimum over [`ROUNDS`] measurements counts.
const REPEAT: u32 = 20_000;
const ROUNDS: usize = 101;

/// The element adds little cost to UDP without SCONE packets. The cost is the element's minimum time minus the minimum
/// time of an empty program. The test is ignored by default, because other load on the host would distort it.
#[test]
#[ignore = "a measurement of 10 s"]
fn other_udp_costs_little() {
    let Some(element) = Element::load() else { return };
    let empty = ObjectBuilder::default().open_file(env!("COST_OBJECT")).unwrap().load().unwrap();
    let empty = empty.progs_mut().find(|program| program.name() == "cost_empty").unwrap();
    for (name, v6) in [("IPv4", false), ("IPv6", true)] {
        let mut frame = Frame::new(v6, 0, false, &udp([5; 4], &[0x43; 1200]));
        frame.finish(Checksum::Valid);
        let time = |run: &dyn Fn(ProgramInput<'_>) -> libbpf_rs::Result<u128>| {
            let mut out = vec![0; frame.bytes.len() + 256];
            let input = ProgramInput {
                data_in: Some(&frame.bytes),
                data_out: Some(&mut out),
                repeat: REPEAT,
                ..ProgramInput::default()
            };
            run(input).unwrap()
        };
        let (mut least, mut floor) = (u128::MAX, u128::MAX);
        for _ in 0..ROUNDS {
            floor = floor.min(time(&|input| Ok(empty.test_run(input)?.duration.as_nanos())));
            least = least
                .min(time(&|input| Ok(element.skeleton.progs.waterfill_scone.test_run(input)?.duration.as_nanos())));
        }
        eprintln!("{name}: {least} ns, of which {floor} ns are an empty program's");
        assert!(least - floor.min(least) <= 60, "{name}: {least} - {floor}");
    }
}
