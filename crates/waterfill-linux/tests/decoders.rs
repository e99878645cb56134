//! Tests that three decoders agree on each law's TCP option and on whole frames.
//!
//! They are a parser in Rust, the kernel programs' C code compiled for the host, and the programs in the running
//! kernel. The last one needs root, is skipped without it, and decodes a quarter of the frames. DECODER_FRAMES sets the
//! number of frames for each law, which is 4,000,000 in `make validate STUDY=decoders`.

#![cfg(feature = "daemon")]

#[path = "decoders/check.rs"]
mod check;
#[path = "decoders/frames.rs"]
mod frames;
#[path = "common/generated.rs"]
mod generated;
#[path = "decoders/host.rs"]
mod host;
#[path = "decoders/kernel.rs"]
mod kernel;
#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "router/packet.rs"]
mod packet;
#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "common/replay.rs"]
mod replay;
#[path = "common/requirements.rs"]
mod requirements;

use check::{Decoder, assert_changed_in_place, check_frame, check_option, decoders, verdict};
use frames::{Frames, MAX_BYTES};
use generated::generated;
use kernel::{Gso, Kernel, objects};
use packet::Found;
use waterfill_laws::kernel::{KernelLaw, KernelProtocol, Packet, Value, Words};
use waterfill_laws::registry::kernel_protocols;

generated!(interface, "interface.skel.rs");
generated!(scone, "scone.skel.rs"); // for the context of a packet

/// Returns the number of frames to decode for each law.
fn frames_per_law() -> u64 {
    std::env::var("DECODER_FRAMES").map_or(4_000, |text| text.parse().unwrap())
}

/// Returns the index of a verdict in an array of counts.
fn kind(found: Found) -> usize {
    match found {
        Found::Value { .. } => 0,
        Found::OtherOption => 1,
        Found::NoOption => 2,
        Found::Fragment => 3,
        Found::Malformed => 4,
        Found::Signed => 5,
        Found::NotTcp => 6,
    }
}

#[test]
fn rust_and_c_have_one_verdict_on_every_frame_and_write_in_place() {
    for (n, decoder) in decoders().iter().enumerate() {
        let mut frames = Frames::new(1 + n as u128);
        let mut counts = [0; 7];
        for _ in 0..frames_per_law() {
            let frame = frames.next(&decoder.layout);
            let linear = frames.below(frame.len() as u64 + 1) as usize;
            counts[kind(check_frame(decoder, &frame, linear))] += 1;
        }
        let few = frames_per_law() / 500;
        assert!(counts.iter().all(|&count| count > few), "{}: every verdict is there: {counts:?}", decoder.host.law);
    }
}

/// Returns the kinds of option that a law's host can use. Only MaxNet also uses kind 42, the kind in its papers.
fn kinds(decoder: &Decoder) -> &'static [u32] {
    if decoder.layout.law == 0 { &[253, 42] } else { &[253] }
}

#[test]
fn rust_and_c_read_the_same_from_every_options() {
    for (n, decoder) in decoders().iter().enumerate() {
        let mut frames = Frames::new(100 + n as u128);
        let mut counts = [0; 4];
        for _ in 0..frames_per_law() {
            let options = frames.options(&decoder.layout);
            for kind in kinds(decoder) {
                counts[check_option(decoder, &options, *kind).values as usize] += 1;
            }
        }
        assert!(counts.iter().all(|&count| count > frames_per_law() / 100), "{}: {counts:?}", decoder.host.law);
    }
}

/// Host copy of a law's link, computed by the C code in step with the kernel's link.
struct Link {
    law: &'static KernelLaw,
    state: Words,
    cpu: Words,
}

impl Link {
    fn new(law: &'static KernelLaw, params: &Words, capacity: u64, signal: u64) -> Self {
        let (mut state, cpu) = (law.link(), law.cpu());
        law.link_set(&mut state, params, capacity, 0);
        law.link_restore(&mut state, signal);
        Self { law, state, cpu }
    }

    /// Counts a packet as load. Returns the value that the law writes, or `None` if the packet has no value.
    fn mark(&mut self, bytes: u64, segments: u32, value: Option<(&[u8], bool)>) -> Option<Vec<u8>> {
        let sum = self.cpu.words()[0].wrapping_add(bytes);
        self.cpu.set(0, sum);
        let (bytes_there, syn) = value?;
        let mut value = Value::default();
        value[..bytes_there.len()].copy_from_slice(bytes_there);
        let packet = Packet { bytes, segments, syn: syn.into() };
        self.law.mark(&mut self.state, &mut self.cpu, &packet, &mut value);
        Some(value.to_vec())
    }
}

/// Returns the offset of the IP header, from which the router counts a packet's bytes.
fn ip_at(frame: &[u8]) -> usize {
    let mut at = 14;
    for _ in 0..2 {
        let tagged = matches!(frame.get(at - 2..at), Some([0x81, 0] | [0x88, 0xa8]));
        if !tagged || frame.len() < at + 4 {
            break;
        }
        at += 4;
    }
    at
}

/// Sends frames through a law's kernel programs and compares the verdicts with Rust's.
///
/// The router must write the same value as the law's C code on the host, with a valid checksum. It must count every
/// frame by its verdict.
fn route_frames(decoder: &Decoder, kernel: &Kernel, form: &KernelProtocol, n: u64, seed: u128) {
    let mut frames = Frames::new(seed);
    let (law, sets) = (form.law(), form.recorded());
    let (mut out, mut written) = (Vec::new(), 0);
    let (mut counts, mut packets, mut link) = ([0_u64; 7], 0, None);
    for i in 0..n {
        if i % 512 == 0 {
            let params = &law.params(&sets[(i / 512) as usize % sets.len()]);
            let capacity = 10_u64.pow(5 + frames.below(6) as u32) * (1 + frames.below(9));
            let signal = frames.below(1 << 40);
            assert_counts(kernel, &counts, packets);
            kernel.set_link(params, capacity, signal);
            let host = Link::new(law, params, capacity, signal);
            assert_eq!(kernel.link(law), host.state.words(), "{}: the new link", decoder.host.law);
            (counts, packets, link) = ([0; 7], 0, Some(host));
        }
        let link = link.as_mut().expect("made with the first frame");
        let frame = frames.next(&decoder.layout);
        let found = packet::find_option(&frame, &decoder.layout);
        let Some(decoded) = kernel.frame(&frame) else { continue };
        assert_eq!(decoded, verdict(found), "{}: {found:?} in {frame:02x?}", decoder.host.law);
        let gso = (frames.below(4) == 0).then(|| Gso { segments: 2 + frames.below(43) as u32, segment_bytes: 1448 });
        kernel.route(&frame, gso, &mut out);
        let segments = gso.map_or(1, |gso| gso.segments);
        counts[kind(found)] += 1;
        packets += 1;
        // `wire_len` is the frame's length in a test-run; each segment lacks the link header.
        let bytes = (frame.len() as i64 - i64::from(segments) * ip_at(&frame) as i64).max(0) as u64;
        let Found::Value { tcp, value: at, syn } = found else {
            link.mark(bytes, segments, None);
            assert_eq!(out, frame, "{}: written without a value", decoder.host.law);
            continue;
        };
        let value = at..at + decoder.layout.forward;
        let expected = link.mark(bytes, segments, Some((&frame[value.clone()], syn))).expect("a value");
        assert_eq!(out[value.clone()], expected[..decoder.layout.forward], "{}: the value", decoder.host.law);
        assert_changed_in_place(&frame, &out, tcp, value.clone());
        written += u64::from(out[value.clone()] != frame[value]);
        if i % 512 == 511 {
            assert_eq!(kernel.link(law), link.state.words(), "{}: the link", decoder.host.law);
        }
    }
    assert_counts(kernel, &counts, packets);
    assert!(written > n / 100, "{}: {written} of {n} values were changed", decoder.host.law);
}

/// Checks the kernel's counters of a link, by verdict and in total.
fn assert_counts(kernel: &Kernel, counts: &[u64; 7], packets: u64) {
    if packets == 0 {
        return; // there is no link yet
    }
    let (seen, all) = kernel.counts();
    let [value, other, none, fragment, malformed, signed, _] = *counts;
    assert_eq!([seen[0], seen[3], seen[4], seen[5], seen[6]], [value + other, none, fragment, malformed, signed]);
    assert_eq!((seen[7], all), (0, packets), "without memory; all");
}

/// Returns a random option and its decoded values, as a record of `bpf/test/decode.bpf.c`.
fn record(decoder: &Decoder, frames: &mut Frames) -> Vec<u8> {
    let options = frames.options(&decoder.layout);
    let kinds = kinds(decoder);
    let kind = kinds[frames.below(kinds.len() as u64) as usize];
    let read = check_option(decoder, &options, kind);
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend(read.length.to_ne_bytes());
    record.extend(read.raw);
    record.extend(read.values.to_ne_bytes());
    record.extend(read.forward);
    record.extend(read.echo);
    record.extend([0; 4]);
    record
}

#[test]
fn the_kernel_has_the_same_verdict_and_writes_what_the_law_computes() {
    if let Err(why) = requirements::can_load_programs() {
        eprintln!("skipped: {why}");
        return;
    }
    pin_to_one_cpu();
    let forms = kernel_protocols();
    let objects = objects();
    for (n, decoder) in decoders().iter().enumerate() {
        let name = decoder.host.law;
        let (_, path) = objects.iter().find(|(law, _)| *law == name).expect("an object for every law");
        let (_, form) = forms.iter().find(|(law, _)| *law == name).expect("a law");
        let kernel = Kernel::load(path);
        route_frames(decoder, &kernel, form, frames_per_law() / 4, 1000 + n as u128);
        let mut frames = Frames::new(2000 + n as u128);
        let records: Vec<u8> = (0..frames_per_law()).flat_map(|_| record(decoder, &mut frames)).collect();
        assert_replays(&kernel, &records, name);
    }
}

/// Length of a record in bytes.
const RECORD_BYTES: usize = 76;

/// Replays records in the kernel and checks that every decoded value is the same. Each replay fills the program's map.
fn assert_replays(kernel: &Kernel, records: &[u8], name: &str) {
    for part in records.chunks(replay::RECORDS * RECORD_BYTES) {
        let n = (part.len() / RECORD_BYTES) as u64;
        assert_eq!(replay::play_some(kernel.object(), part, RECORD_BYTES), [n, 0, 0], "{name}: played, wrong, first");
        let mut spoilt = part.to_vec();
        spoilt[RECORD_BYTES - 5] ^= 1; // of the first one's echo
        assert_eq!(replay::play_some(kernel.object(), &spoilt, RECORD_BYTES), [n, 1, 1], "{name}: with a wrong record");
    }
}

/// Pins this thread to one CPU. Laws keep sums for each CPU, but the host's copy of a link has only one.
#[expect(unsafe_code, reason = "the affinity of threads has no safe wrapper here")]
fn pin_to_one_cpu() {
    // SAFETY: a set of CPUs is bits, of which zeros are a valid value, and the calls read and write only the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let cpu = libc::sched_getcpu().max(0) as usize;
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
}

#[test]
fn frames_fit_a_test_run() {
    let decoder = decoders()[0];
    let mut frames = Frames::new(5);
    let lengths: Vec<usize> = (0..2000).map(|_| frames.next(&decoder.layout).len()).collect();
    assert!(lengths.iter().all(|length| (14..=MAX_BYTES).contains(length)));
}
