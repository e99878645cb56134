//! Tests of the cohabitation program in the running kernel. They check the program's arithmetic against the same C code
//! on this host, and its effects on packets. Without root, they are skipped.

#![cfg(feature = "daemon")]

mod common;
#[path = "common/generated.rs"]
mod generated;
#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "router/packet.rs"]
mod packet;

use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

use generated::generated;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder, ProgramInput};
use packet::{both, echo, ethernet, forward, has_valid_checksum, ipv4, ipv6, paper, set_checksum, tcp, timestamps};
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use waterfill_laws::cohabit::{EXPLICIT, Filters, IMPROVED, Link, PAPER, Params, Sums, TCP, mix};

generated!(skeleton, "cohabit.skel.rs");

use skeleton::types::{__sk_buff as Context, cohabit_setup as Setup, cohabit_state as State};
use skeleton::{CohabitSkel, CohabitSkelBuilder};

const OTHER: usize = 2;
const ONE: u64 = 1 << 32;
/// Offset of the module's state in a map value.
const STATE: usize = 8;
/// Index of the loopback device, which BPF_PROG_TEST_RUN uses by default.
const LOOPBACK: [u8; 4] = 1_u32.to_ne_bytes();
const ACK: u8 = 16;
const SYN: u8 = 2;
const CONTINUE: i32 = -1;
const DROP: i32 = 2;

#[expect(unsafe_code, reason = "structures cross to the kernel and back as bytes")]
fn bytes_of<T>(of: &mut T) -> &mut [u8] {
    // SAFETY: the callers' types have integers without padding, for which any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(of).cast(), size_of::<T>()) }
}

// ------------------------------------------------------------------ arithmetic

/// Mirror of `struct call` in `bpf/test/cohabit_replay.bpf.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Call {
    what: u32,
    segments: u32,
    markable: u32,
    random: u32,
    now: u64,
    bytes: u64,
    result: u64,
    params: Params,
    total: Sums,
    link: Link,
}

const ADVANCE: u32 = 0;
const DECIDE: u32 = 1;

fn parameters(controller: u32) -> Params {
    let log = |x: f64| (x.ln().abs() * (1_u64 << 34) as f64) as u64;
    Params {
        capacity: 100_000_000,
        initial_log: log(0.02),
        decrease_log: log(0.9999),
        increase_log: log(1.0001),
        target: 900_000,
        interval: 10_000,
        period: 2_000_000,
        controller,
        weight: 1000,
        ecn: 1,
        update: 1,
        threshold: 970_000,
        aim: 900_000,
        integral: 500,
        proportional: 1000,
        depth: 300_000,
    }
}

/// For random traffic of both classes with idle times, the kernel and the host compute the same results. This holds for
/// both controllers.
#[test]
fn the_kernel_and_the_host_compute_the_same() {
    if let Err(why) = common::requirements::can_load_programs() {
        eprintln!("skipped: {why}");
        return;
    }
    let object = ObjectBuilder::default().open_file(env!("COHABIT_REPLAY_OBJECT")).unwrap().load().unwrap();
    let calls = object.maps().find(|map| map.name() == "calls").unwrap();
    let program = object.progs_mut().find(|program| program.name() == "waterfill_call").unwrap();
    let mut random = Pcg64Mcg::new(1);
    let mut below = move |n: u64| random.next_u64() % n;
    let (mut verdicts, mut ends, mut wide) = ([0; 3], 0, 0);
    for controller in [IMPROVED, PAPER] {
        let params = parameters(controller);
        let (mut now, mut total) = (1_000_000_000, Sums::default());
        let mut link = Link::new(&params, now);
        for step in 0..50_000 {
            // Far above the class's share, at it, and below; sometimes seconds without a packet.
            let gap = [150_000, 1_200_000, 2_000_000][step / 1000 % 3];
            now += if below(2000) == 0 { below(5_000_000_000) } else { below(gap) };
            let mut call = Call { now, params, total, link, ..Call::default() };
            let mut filters = Filters::default();
            if now >= link.interval_end {
                call.what = ADVANCE;
                call.result = u64::from(link.advance(&params, &mut filters, &total, now));
                ends += 1;
            } else {
                call.what = DECIDE;
                (call.segments, call.markable, call.random) = (1 + below(4) as u32, below(2) as u32, below(ONE) as u32);
                call.bytes = u64::from(call.segments) * (40 + below(1461));
                let markable = call.markable != 0;
                let verdict = link.decide(&params, now, call.bytes, call.segments, markable, call.random);
                call.result = verdict as u64;
                verdicts[verdict as usize] += 1;
                for (class, bytes) in [(EXPLICIT, below(6000)), (TCP, call.bytes), (OTHER, below(100))] {
                    total.count(class, 1, true, now);
                    total.bytes[class] += bytes;
                }
                link.flows_now = [1 + below(20) as u32, 1 + below(5) as u32];
                call.link.flows_now = link.flows_now;
            }
            wide += u32::from(link.error != 0 || link.factor != 0);
            let expected = Call { link, ..call };
            let mut sent = Call { result: 99, ..call };
            calls.update(&0_u32.to_ne_bytes(), bytes_of(&mut sent), MapFlags::ANY).unwrap();
            program.test_run(ProgramInput { data_in: Some(&[0; 64]), ..ProgramInput::default() }).unwrap();
            let mut got = Call::default();
            bytes_of(&mut got)
                .copy_from_slice(&calls.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap()[..]);
            assert_eq!(got, expected, "{call:?}");
        }
    }
    assert!(verdicts.iter().all(|&n| n > 100) && ends > 3000 && wide > 90_000, "{verdicts:?} {ends} {wide}");
}

// ------------------------------------------------------------------ packets

struct Module {
    skeleton: Box<CohabitSkel<'static>>,
}

impl Module {
    /// Loads the program for the loopback device, with a controller that drops or marks with probability `p` in units
    /// of 2⁻³². The control interval never ends. If loading is not possible, prints the reason and returns `None`.
    fn load(p: u64) -> Option<Self> {
        common::requirements::can_load_programs().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let module = Self { skeleton: Box::new(CohabitSkelBuilder::default().open(storage).unwrap().load().unwrap()) };
        let setup = Setup { salt: 7, header_bytes: 14, ..Setup::default() };
        let mut state = State { setup, ..State::default() };
        bytes_of(&mut state.setup.params).copy_from_slice(bytes_of(&mut parameters(PAPER)));
        (state.link.interval_end, state.link.active, state.link.probability) = (u64::MAX, 1, p);
        let maps = &module.skeleton.maps;
        let mut value = vec![0; maps.cohabit_modules.value_size() as usize];
        value[STATE..STATE + size_of::<State>()].copy_from_slice(bytes_of(&mut state));
        maps.cohabit_modules.update(&LOOPBACK, &value, MapFlags::ANY).unwrap();
        let sums = vec![vec![0; maps.cohabit_cpus.value_size() as usize]; libbpf_rs::num_possible_cpus().unwrap()];
        maps.cohabit_cpus.update_percpu(&LOOPBACK, &sums, MapFlags::ANY).unwrap();
        Some(module)
    }

    /// Sends a packet through the program. Returns the resulting packet and the verdict.
    fn send(&self, packet: &[u8], segments: u32) -> libbpf_rs::Result<(Vec<u8>, i32)> {
        self.send_again(packet, segments, 1).map(|(out, verdict, _)| (out, verdict))
    }

    /// Sends a packet through the program several times. Returns the resulting packet, the verdict and the mean time of
    /// a run.
    fn send_again(&self, packet: &[u8], segments: u32, times: u32) -> libbpf_rs::Result<(Vec<u8>, i32, Duration)> {
        let mut context = [0_u8; size_of::<Context>()];
        let mut put = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(offset_of!(Context, ifindex), 1);
        if segments > 1 {
            let headers = 14 + 20 + 20;
            put(offset_of!(Context, wire_len), packet.len() as u32 + (segments - 1) * headers);
            put(offset_of!(Context, gso_segs), segments);
            put(offset_of!(Context, gso_size), (packet.len() as u32 - headers).div_ceil(segments));
        }
        let mut out = vec![0; packet.len() + 256];
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(packet),
            data_out: Some(&mut out),
            repeat: times,
            ..ProgramInput::default()
        };
        let answer = self.skeleton.progs.waterfill_cohabit.test_run(input)?;
        let (verdict, length) = (answer.return_value as i32, answer.data.map_or(0, |data| data.len()));
        let took = answer.duration;
        out.truncate(length);
        Ok((out, verdict, took))
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let maps = &self.skeleton.maps;
        let mut value = maps.cohabit_modules.lookup(&LOOPBACK, MapFlags::ANY).unwrap().unwrap();
        let mut state = self.state();
        change(&mut state);
        value[STATE..STATE + size_of::<State>()].copy_from_slice(bytes_of(&mut state));
        maps.cohabit_modules.update(&LOOPBACK, &value, MapFlags::ANY).unwrap();
    }

    /// Returns the sums over all CPUs.
    fn sums(&self) -> Sums {
        let cpus = self.skeleton.maps.cohabit_cpus.lookup_percpu(&LOOPBACK, MapFlags::ANY).unwrap().unwrap();
        let mut total = Sums::default();
        for cpu in &cpus {
            let mut sums = Sums::default();
            bytes_of(&mut sums).copy_from_slice(&cpu[..size_of::<Sums>()]);
            for class in 0..3 {
                total.bytes[class] += sums.bytes[class];
                total.packets[class] += sums.packets[class];
            }
            (total.dropped, total.marked) = (total.dropped + sums.dropped, total.marked + sums.marked);
        }
        total
    }

    fn state(&self) -> State {
        let value = self.skeleton.maps.cohabit_modules.lookup(&LOOPBACK, MapFlags::ANY).unwrap().unwrap();
        let mut state = State::default();
        bytes_of(&mut state).copy_from_slice(&value[STATE..STATE + size_of::<State>()]);
        state
    }
}

/// Returns a frame with a TCP segment from source port `port`.
fn frame(port: u16, flags: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
    let mut segment = tcp(flags, options, data);
    segment[..2].copy_from_slice(&port.to_be_bytes());
    let mut frame = ethernet(&[], 0x0800, &ipv4(&[], 0, 6, &segment));
    set_checksum(&mut frame, 34, 26..34);
    frame
}

#[test]
fn with_probability_0_everything_passes_unchanged() {
    let Some(module) = Module::load(0) else { return };
    for frame in [frame(1, ACK, &[], b"data"), frame(2, ACK, &forward(1), b"data"), frame(3, SYN, &[], b"")] {
        assert_eq!(module.send(&frame, 1).unwrap(), (frame, CONTINUE));
    }
    let sums = module.sums();
    assert_eq!((sums.packets, sums.dropped, sums.marked), ([1, 2, 0], 0, 0));
    assert_eq!(sums.bytes, [20 + 28 + 4, 20 + 20 + 4 + 20 + 20, 0], "IP bytes");
}

#[test]
fn with_probability_1_only_tcps_data_are_dropped() {
    let Some(module) = Module::load(ONE) else { return };
    let data = |options: &[u8]| frame(1, ACK, options, b"data");
    let v6 = |options: &[u8]| ethernet(&[], 0x86dd, &ipv6(&[], 6, &tcp(ACK, options, b"data")));
    let tagged = ethernet(&[0x8100], 0x0800, &ipv4(&[], 0, 6, &tcp(ACK, &[], b"data")));
    for frame in [data(&[]), data(&timestamps()), data(&[253, 8, 0x57, 0x47, 1, 0, 0, 1]), v6(&[]), tagged] {
        assert_eq!(module.send(&frame, 1).unwrap().1, DROP, "{frame:02x?}");
    }
    assert_eq!((module.sums().dropped, module.sums().bytes), (5, [0, 0, 0]), "what is dropped is no input");
    // Explicit: options of any law.
    let xcp = [&[253, 20, 0x57, 0x46, 4 * 5 + 1][..], &[0; 15]].concat();
    let explicit = [forward(1), both(1, 2), paper(1, 2), xcp, [timestamps(), forward(1)].concat()];
    for (port, option) in (2..).zip(&explicit) {
        for frame in [frame(port, ACK, option, b"data"), v6(option)] {
            assert_eq!(module.send(&frame, 1).unwrap(), (frame, CONTINUE), "{option:02x?}");
        }
    }
    let udp = ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &[0; 30]));
    let fragment = ethernet(&[], 0x0800, &ipv4(&[], 0x2001, 6, &tcp(ACK, &[], b"data")));
    let arp = ethernet(&[], 0x0806, &[0; 28]);
    for frame in [frame(99, SYN, &[], b""), frame(99, ACK, &[], b""), frame(99, 17, &[], b""), udp, fragment, arp] {
        assert_eq!(module.send(&frame, 1).unwrap(), (frame, CONTINUE));
    }
    assert_eq!(module.sums().packets, [10, 5 + 3, 3]);
    assert_eq!(module.sums().dropped, 5);
}

#[test]
fn a_packet_that_may_be_marked_is_marked_and_not_dropped() {
    let Some(module) = Module::load(ONE) else { return };
    for before in 1..=3 {
        let mut frame = frame(1, ACK, &timestamps(), b"data");
        frame[15] = 0xb8 | before; // a traffic class, and ECN
        let set_ip_checksum = |frame: &mut Vec<u8>| {
            frame[24..26].fill(0);
            let sum = packet::sum(&frame[14..34]);
            let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[24..26].copy_from_slice(&folded.to_be_bytes());
        };
        set_ip_checksum(&mut frame);
        let mut marked = frame.clone();
        marked[15] |= 3;
        set_ip_checksum(&mut marked);
        assert_eq!(module.send(&frame, 1).unwrap(), (marked.clone(), CONTINUE), "ECN field {before}");
        assert!(has_valid_checksum(&marked, 34, 26..34));
    }
    let mut v6 = ethernet(&[], 0x86dd, &ipv6(&[], 6, &tcp(ACK, &[], b"data")));
    v6[15] = 0x20; // ECT(0): the traffic class is in bits 4 to 11
    let (out, verdict) = module.send(&v6, 1).unwrap();
    assert_eq!((out[15], verdict), (0x30, CONTINUE));
    v6[15] = 0x30;
    assert_eq!(out, v6, "nothing else changed");
    assert_eq!((module.sums().marked, module.sums().dropped), (4, 0));
    assert_eq!(module.sums().packets, [0, 4, 0]);
}

#[test]
fn flows_are_counted_by_class_and_explicit_ones_remembered() {
    let Some(module) = Module::load(ONE) else { return };
    let send = |frame: &[u8]| module.send(frame, 1).unwrap().1;
    for _ in 0..3 {
        (0..10).for_each(|port| assert_eq!(send(&frame(port, ACK, &forward(1), b"data")), CONTINUE));
        (100..103).for_each(|port| assert_eq!(send(&frame(port, ACK, &[], b"data")), DROP));
        // Neither connections that only open nor pure ACKs are flows.
        (200..300).for_each(|port| assert_eq!(send(&frame(port, SYN, &forward(1), b"")), CONTINUE));
        (300..400).for_each(|port| assert_eq!(send(&frame(port, ACK, &echo(1), b"")), CONTINUE));
    }
    assert_eq!(module.state().link.flows_now, [10, 3]);
    // Data without the option: explicit if the flow has sent data with it.
    assert_eq!((send(&frame(4, ACK, &timestamps(), b"data")), send(&frame(200, ACK, &[], b"data"))), (CONTINUE, DROP));
    assert_eq!(module.state().link.flows_now, [10, 4]);
    assert_ne!(mix(1, 7), mix(1, 8));
}

/// A flow is explicit only while its data ask routers. An echo alone does not make it explicit, and the effect of one
/// option ends.
#[test]
fn a_flow_is_explicit_while_its_data_ask_routers() {
    let Some(module) = Module::load(ONE) else { return };
    let send = |options: &[u8]| module.send(&frame(1, ACK, options, b"data"), 1).unwrap().1;
    let next_interval = || module.change(|state| state.link.filter += 1);
    assert_eq!(send(&echo(1)), DROP);
    assert_eq!((send(&forward(1)), send(&echo(1)), send(&[])), (CONTINUE, CONTINUE, CONTINUE));
    next_interval();
    assert_eq!(send(&[]), CONTINUE, "in the last interval it asked");
    next_interval();
    assert_eq!((send(&[]), send(&echo(1))), (DROP, DROP));
}

#[test]
fn a_super_packet_counts_as_its_segments() {
    let Some(module) = Module::load(ONE) else { return };
    assert_eq!(module.send(&frame(1, ACK, &[], &[7; 3000]), 3).unwrap().1, DROP);
    let explicit = [frame(2, ACK, &forward(1), &[7; 3000])];
    assert_eq!(module.send(&explicit[0], 3).unwrap().1, CONTINUE);
    let sums = module.sums();
    assert_eq!((sums.dropped, sums.packets), (3, [3, 3, 0]));
    assert_eq!(sums.bytes[0], 3 * 40 + 8 + 3000, "the headers of three segments, and one option of 8 bytes");
}

/// The program survives frames that it may not write to: truncated frames, and frames whose headers claim more bytes
/// than exist.
#[test]
fn frames_may_end_anywhere() {
    let Some(module) = Module::load(ONE) else { return };
    let mut frame = frame(1, ACK, &[timestamps(), forward(1)].concat(), b"");
    frame[15] = 1;
    for length in 14..frame.len() {
        if let Ok((out, verdict)) = module.send(&frame[..length], 1) {
            assert!(out == frame[..length] || verdict == DROP || out[15] == 3, "{length} bytes: {out:02x?}");
        }
    }
    assert!(module.sums().packets.iter().sum::<u64>() > 20);
}

/// Prints the median run time for each kind of packet, from five measurements of a million runs each.
#[test]
#[ignore = "a measurement: cargo test --features daemon --test cohabit -- --ignored --nocapture"]
fn cost() {
    let Some(module) = Module::load(0) else { return };
    module.change(|state| {
        state.setup.params.controller = IMPROVED;
        // An excess that drains faster than packets come.
        (state.link.per_byte, state.link.depth, state.link.next_signal) = (1, 1 << 60, u64::MAX);
    });
    let options = [timestamps(), forward(1)].concat();
    for (name, frame) in [
        ("not TCP", ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &[0; 100]))),
        ("explicit data", frame(1, ACK, &options, &[7; 1000])),
        ("explicit ACK", frame(1, ACK, &options, b"")),
        ("TCP data", frame(2, ACK, &timestamps(), &[7; 1000])),
        ("TCP ACK", frame(2, ACK, &timestamps(), b"")),
    ] {
        let mut took: Vec<u128> =
            (0..5).map(|_| module.send_again(&frame, 1, 1_000_000).unwrap().2.as_nanos()).collect();
        took.sort_unstable();
        eprintln!("{name}: {} ns", took[2]);
    }
}
