//! The router's program in the running kernel: what it does to packets, its price against the law compiled for this host,
//! and `waterfilld router` on real devices in namespaces of their own. Needs root and skips without.

#![cfg(feature = "daemon")]

#[path = "router/packet.rs"]
mod packet;
#[path = "router/support.rs"]
mod support;

use std::ops::Range;
use std::process::Command;

use packet::{FLAG, Found, both, echo, ethernet, find, forward, ipv4, ipv6, is_sealed, paper, seal, tcp, timestamps};
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use support::{
    ARRIVE, FRAGMENTS, Gso, LOOPBACK, MALFORMED, MARKED, PLAIN, Request, Router, SEALED, SEEN, STARTS, quiet,
};
use waterfill_laws as _; // brings the law as compiled for this host

const SYN: u8 = 2;
const ACK: u8 = 16;

/// Puts a segment into a frame.
type Make = Box<dyn Fn(&[u8]) -> Frame>;
type Plain = fn(&[u8]) -> Frame;

/// A router on the loopback device and its price's code; `None`, said, where there can be none.
fn router() -> Option<(Router, u32)> {
    if let Some(why) = support::missing() {
        eprintln!("skipped: {why}");
        return None;
    }
    let router = Router::load();
    let price = router.set(quiet(LOOPBACK)).price_code;
    assert!(price > 1000 && price < FLAG, "{price}");
    Some((router, price))
}

/// A frame with a segment whose checksum is right, and where the segment and the addresses are.
struct Frame {
    bytes: Vec<u8>,
    tcp: usize,
    addresses: Range<usize>,
}

fn frame_v4(tags: &[u16], ip_options: &[u8], fragment: u16, segment: &[u8]) -> Frame {
    let mut bytes = ethernet(tags, 0x0800, &ipv4(ip_options, fragment, 6, segment));
    let (ip, tcp) = (14 + 4 * tags.len(), bytes.len() - segment.len());
    seal(&mut bytes, tcp, ip + 12..ip + 20);
    Frame { bytes, tcp, addresses: ip + 12..ip + 20 }
}

fn frame_v6(tags: &[u16], extensions: &[(u8, Vec<u8>)], segment: &[u8]) -> Frame {
    let mut bytes = ethernet(tags, 0x86dd, &ipv6(extensions, 6, segment));
    let (ip, tcp) = (14 + 4 * tags.len(), bytes.len() - segment.len());
    seal(&mut bytes, tcp, ip + 8..ip + 40);
    Frame { bytes, tcp, addresses: ip + 8..ip + 40 }
}

/// Sends a frame and says what became of its bytes from `value` on; all other bytes but the checksum are as they were, and that is right.
fn marked(router: &Router, frame: &Frame, value: usize) -> u32 {
    let (out, _) = router.send(&frame.bytes, None, 1).unwrap();
    assert_eq!(out.len(), frame.bytes.len());
    for at in (0..out.len()).filter(|at| !(value..value + 3).contains(at)) {
        let checksum = frame.tcp + 16..frame.tcp + 18;
        assert!(out[at] == frame.bytes[at] || checksum.contains(&at), "byte {at} changed");
    }
    assert!(is_sealed(&out, frame.tcp, frame.addresses.clone()), "the checksum is wrong");
    u32::from_be_bytes([0, out[value], out[value + 1], out[value + 2]])
}

fn unchanged(router: &Router, frame: &[u8]) {
    let (out, _) = router.send(frame, None, 1).unwrap();
    assert_eq!(out, frame);
}

#[test]
fn values_are_raised_wherever_the_option_is() {
    let Some((router, price)) = router() else { return };
    let extension =
        |kind: u8, words: usize| (kind, vec![0, words as u8].into_iter().chain(vec![0; 6 + 8 * words]).collect());
    let first_fragment = (44, vec![0, 0, 0, 1, 0, 0, 0, 9]);
    let plain: [(&str, Plain); 8] = [
        ("IPv4", |s| frame_v4(&[], &[], 0x4000, s)),
        ("IPv4 with options", |s| frame_v4(&[], &[148, 4, 0, 0, 1, 1, 1, 0], 0, s)),
        ("IPv4 with 40 bytes of options", |s| frame_v4(&[], &[1; 40], 0, s)),
        ("a first fragment", |s| frame_v4(&[], &[], 0x2000, s)),
        ("IPv4 behind a VLAN tag", |s| frame_v4(&[0x8100], &[], 0, s)),
        ("IPv4 behind two", |s| frame_v4(&[0x88a8, 0x8100], &[], 0, s)),
        ("IPv6", |s| frame_v6(&[], &[], s)),
        ("IPv6 behind two VLAN tags", |s| frame_v6(&[0x8100, 0x8100], &[], s)),
    ];
    let mut frames: Vec<(String, Make)> = Vec::new();
    for (name, make) in plain {
        frames.push((name.to_owned(), Box::new(make)));
    }
    for (name, chain) in [
        ("hop-by-hop", vec![extension(0, 0)]),
        ("routing", vec![extension(43, 2)]),
        ("destination options of 256 bytes", vec![extension(60, 31)]),
        ("a first fragment", vec![first_fragment.clone()]),
        ("all of them", vec![extension(0, 1), extension(60, 0), extension(43, 0), first_fragment, extension(60, 2)]),
        ("eight", (0..8).map(|_| extension(60, 0)).collect()),
    ] {
        frames.push((format!("IPv6 with {name}"), Box::new(move |s| frame_v6(&[], &chain, s))));
    }
    for (name, frame) in &frames {
        for data in [&[][..], b"odd", b"even"] {
            // Behind 0 to 4 NOPs, so that the value begins at even and odd places.
            for nops in 0..5 {
                for (option, at, in_option) in
                    [(forward(7), 5, "forward"), (both(7, price + 5), 5, "both"), (paper(7, price + 5), 5, "paper")]
                {
                    for before in [vec![], timestamps()] {
                        let options = [&before[..], &vec![1; nops], &option].concat();
                        let frame = frame(&tcp(ACK, &options, data));
                        let value = frame.tcp + 20 + before.len() + nops + at;
                        let got = marked(&router, &frame, value);
                        assert_eq!(got, price, "{name}, {in_option}, {nops} NOPs, {} bytes", data.len());
                        assert_eq!(find(&frame.bytes), Found::Value { tcp: frame.tcp, value, syn: false }, "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn only_lower_prices_change() {
    let Some((router, price)) = router() else { return };
    for (before, after) in
        [(0, price), (price - 1, price), (price, price), (price + 1, price + 1), (FLAG - 1, FLAG - 1)]
    {
        let frame = frame_v4(&[], &[], 0, &tcp(ACK, &forward(before), b"data"));
        assert_eq!(marked(&router, &frame, frame.tcp + 25), after);
    }
    let link = router.show(LOOPBACK);
    assert_eq!((link.counts[SEEN], link.counts[MARKED]), (5, 2));
}

#[test]
fn a_start_rate_is_given_on_a_syn_alone() {
    let Some((router, _)) = router() else { return };
    let ask = |flags| frame_v4(&[], &[], 0, &tcp(flags, &forward(FLAG), b""));
    let value = |frame: &Frame| marked(&router, frame, frame.tcp + 25);
    // No load: all of mu + (1 - mu)/4 of C is free.
    let code = (-(0.94 + 0.06 / 4.0_f64).ln() + (1000_f64).ln()) * f64::from(1 << 18);
    for syn in [ask(SYN), ask(SYN | ACK)] {
        let answer = value(&syn);
        assert!(answer & FLAG != 0 && (f64::from(answer & !FLAG) - code).abs() < 2.0, "{answer:x} {code}");
    }
    assert_eq!(value(&ask(ACK)), FLAG, "a start rate's field on data is nobody's");
    assert_eq!(router.show(LOOPBACK).counts[STARTS], 2);
    // With promises, what one was given the next one is not.
    router.set(Request { promise: 1, ..quiet(LOOPBACK) });
    let first = value(&ask(SYN));
    assert!((f64::from(first & !FLAG) - code).abs() < 2.0, "{first:x}");
    let second = value(&ask(SYN));
    assert!(second > first + (1 << 18), "{second:x} after {first:x}"); // less than 1/e of it
    // A lower one than the link's stays.
    let low = frame_v4(&[], &[], 0, &tcp(SYN, &forward(FLAG | 0x7f_ffff), b""));
    assert_eq!(marked(&router, &low, low.tcp + 25), FLAG | 0x7f_ffff);
}

#[test]
fn everything_else_goes_on_as_it_came() {
    let Some((router, price)) = router() else { return };
    let segment = |options: &[u8]| tcp(ACK, options, b"data");
    let v4 = |options: &[u8]| frame_v4(&[], &[], 0, &segment(options)).bytes;
    let ours = segment(&forward(1));
    let authentication = [&[29, 4, 1, 1][..], &forward(1)].concat();
    let md5 = [&forward(1)[..], &[19, 18], &[0; 16]].concat();
    let doff = |words: u8| {
        let mut frame = v4(&forward(1));
        frame[14 + 20 + 12] = words << 4;
        frame
    };
    let nine_headers: Vec<_> = (0..9).map(|_| (60, vec![0; 8])).collect();
    let mut short_ip = v4(&forward(1));
    short_ip[17] = 45; // the options would be behind the packet's end, in Ethernet's padding
    let cases: Vec<(&str, Vec<u8>, Option<usize>)> = vec![
        ("an echo", v4(&echo(1)), Some(SEEN)),
        ("an echo of a later type", v4(&[253, 8, 0x57, 0x46, 9, 0, 0, 1]), Some(SEEN)),
        ("TCP-AO before", v4(&authentication), Some(SEALED)),
        ("MD5 behind", v4(&md5), Some(SEALED)),
        ("no option", v4(&[]), Some(PLAIN)),
        ("timestamps", v4(&timestamps()), Some(PLAIN)),
        ("somebody's experiment", v4(&[253, 8, 0x57, 0x47, 1, 0, 0, 1]), Some(PLAIN)),
        ("an experiment without ExID", v4(&[253, 4, 0x57, 0x46, 1, 1, 1, 1]), Some(PLAIN)),
        ("kind 42 of another length", v4(&[42, 7, 0, 0, 0, 0, 0, 1]), Some(PLAIN)),
        ("behind the end of options", v4(&[&[0][..], &forward(1)].concat()), Some(PLAIN)),
        ("ours, too long", v4(&[253, 9, 0x57, 0x46, 1, 0, 0, 1, 0]), Some(MALFORMED)),
        ("ours, too short", v4(&[253, 7, 0x57, 0x46, 1, 0, 0, 1]), Some(MALFORMED)),
        ("both, too short", v4(&[253, 8, 0x57, 0x46, 3, 0, 0, 1]), Some(MALFORMED)),
        ("forward, as long as both", v4(&[253, 12, 0x57, 0x46, 1, 0, 0, 1, 0, 0, 1, 0]), Some(MALFORMED)),
        ("cut off by the header's end", v4(&[1, 1, 1, 1, 253, 8, 0x57, 0x46]), Some(MALFORMED)),
        ("an option of length 0", v4(&[&[8, 0][..], &forward(1)].concat()), Some(MALFORMED)),
        ("an option of length 1 behind", v4(&[&forward(1)[..], &[8, 1]].concat()), Some(MALFORMED)),
        ("an option past the end behind", v4(&[&forward(1)[..], &[8, 10]].concat()), Some(MALFORMED)),
        ("a length byte that is missing", v4(&[&forward(1)[..], &[1, 1, 1, 8]].concat()), Some(MALFORMED)),
        ("a header of 16 bytes", doff(4), Some(MALFORMED)),
        ("a header past the packet's end", doff(15), Some(MALFORMED)),
        ("options in the padding", short_ip, Some(MALFORMED)),
        ("a later fragment", ethernet(&[], 0x0800, &ipv4(&[], 0x2001, 6, &ours)), Some(FRAGMENTS)),
        ("a last fragment", ethernet(&[], 0x0800, &ipv4(&[], 0x00b9, 6, &ours)), Some(FRAGMENTS)),
        (
            "a later fragment of IPv6",
            ethernet(&[], 0x86dd, &ipv6(&[(44, vec![0, 0, 0, 8, 0, 0, 0, 9])], 6, &ours)),
            Some(FRAGMENTS),
        ),
        ("UDP", ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &ours)), None),
        ("UDP over IPv6", ethernet(&[], 0x86dd, &ipv6(&[], 17, &ours)), None),
        ("a tunnel of IPv4", ethernet(&[], 0x0800, &ipv4(&[], 0, 4, &ipv4(&[], 0, 6, &ours))), None),
        ("GRE", ethernet(&[], 0x0800, &ipv4(&[], 0, 47, &ours)), None),
        ("ESP", ethernet(&[], 0x86dd, &ipv6(&[], 50, &ours)), None),
        ("behind AH", ethernet(&[], 0x86dd, &ipv6(&[(51, vec![0; 24])], 6, &ours)), None),
        ("behind nine extension headers", ethernet(&[], 0x86dd, &ipv6(&nine_headers, 6, &ours)), None),
        ("behind three VLAN tags", frame_v4(&[0x88a8, 0x8100, 0x8100], &[], 0, &ours).bytes, None),
        ("ARP", ethernet(&[], 0x0806, &[0; 28]), None),
        ("IPv6 called IPv4", ethernet(&[], 0x0800, &ipv6(&[], 6, &ours)), None),
    ];
    for (name, frame, reason) in cases {
        let before = router.show(LOOPBACK).counts;
        unchanged(&router, &frame);
        let after = router.show(LOOPBACK).counts;
        let changed: Vec<usize> = (0..after.len()).filter(|i| after[*i] != before[*i]).collect();
        assert_eq!(changed, reason.into_iter().collect::<Vec<_>>(), "{name}");
        assert!(!matches!(find(&frame), Found::Value { .. }), "{name}");
    }
    // Of two of ours the first one counts, as receivers have it.
    let two = frame_v4(&[], &[], 0, &segment(&[forward(1), forward(2)].concat()));
    assert_eq!(marked(&router, &two, two.tcp + 25), price);
}

/// A truncated frame is never written to, nor one whose headers promise more than there is.
#[test]
fn frames_may_end_anywhere() {
    let Some((router, price)) = router() else { return };
    for frame in [
        frame_v4(&[0x8100], &[1; 8], 0, &tcp(ACK, &[timestamps(), forward(1)].concat(), b"")).bytes,
        frame_v6(&[], &[(60, vec![0; 8])], &tcp(ACK, &forward(1), b"")).bytes,
    ] {
        for length in 14..frame.len() {
            if let Ok((out, _)) = router.send(&frame[..length], None, 1) {
                assert_eq!(out, frame[..length], "{length} bytes");
            }
        }
        let (out, _) = router.send(&frame, None, 1).unwrap();
        assert_ne!(out, frame);
        assert!(price > 1);
    }
}

#[test]
fn a_super_packet_counts_as_its_segments() {
    let Some((router, price)) = router() else { return };
    let frame = frame_v4(&[0x8100], &[], 0, &tcp(ACK, &[timestamps(), forward(1)].concat(), &[7; 3000]));
    let headers = 14 + 4 + 20 + 40;
    let gso = Gso { wire_length: 3 * headers + 3000, segments: 3, segment_bytes: 1000 };
    router.send(&frame.bytes, Some(gso), 1).unwrap();
    unchanged(&router, &ethernet(&[], 0x0806, &[0; 28]));
    let link = router.show(LOOPBACK);
    assert_eq!((link.packets, link.segments), (2, 4));
    // IP bytes, and 14 for each segment.
    assert_eq!(link.bytes, u64::from(3 * (20 + 40 + 14) + 3000_u32) + 28 + 14);
    assert_eq!(link.counts[MARKED], 1);
    // Another overhead, down to less than nothing for an empty packet.
    router.set(Request { overhead: -40, ..quiet(LOOPBACK) });
    unchanged(&router, &ethernet(&[], 0x0806, &[0; 28]));
    assert_eq!(router.show(LOOPBACK).bytes, link.bytes);
    assert!(price > 0);
}

#[test]
fn processors_may_send_at_once() {
    let Some((router, price)) = router() else { return };
    // The price may move every microsecond, so that all of them try to move it.
    router.set(Request { dt_p: 1, t_0: 1000, promise: 1, ..quiet(LOOPBACK) });
    let frame = frame_v4(&[], &[], 0, &tcp(SYN, &forward(FLAG), b""));
    let (threads, packets) = (4, 20_000);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| router.send(&frame.bytes, None, packets).unwrap());
        }
    });
    let link = router.show(LOOPBACK);
    let sent = u64::from(threads * packets);
    assert_eq!((link.packets, link.segments, link.counts[STARTS]), (sent, sent, sent));
    assert_eq!(link.bytes, sent * (frame.bytes.len() as u64));
    assert!(link.price_code >= price);
    // Nobody holds the link now.
    assert_eq!(router.set(quiet(LOOPBACK)).packets, sent);
}

/// The law as compiled for this host.
#[expect(unsafe_code, reason = "C, on a structure that is opaque here")]
mod law {
    #[repr(C)]
    pub(super) struct Link([u64; 13]);

    unsafe extern "C" {
        fn waterfill_maxnet_link_init(
            link: *mut Link,
            capacity: u64,
            x_max: u64,
            t: u32,
            mu: u32,
            dt_p: u32,
            t_0: u32,
            promise: u32,
        );
        fn waterfill_maxnet_link_set(link: *mut Link, capacity: u64, mu: u32);
        fn waterfill_maxnet_tick(link: *mut Link, bytes: u64, queue: u64);
    }

    impl Link {
        pub(super) fn new(r: &super::Request) -> Self {
            let mut link = Self([0; 13]);
            // SAFETY: the structure has 104 bytes (kernel/maxnet.c asserts it) and is changed for the call only.
            unsafe { waterfill_maxnet_link_init(&raw mut link, r.rate, r.x_max, r.t, r.mu, r.dt_p, r.t_0, r.promise) };
            link
        }

        pub(super) fn set(&mut self, capacity: u64, mu: u32) {
            // SAFETY: as above.
            unsafe { waterfill_maxnet_link_set(self, capacity, mu) };
        }

        pub(super) fn tick(&mut self, bytes: u64, queue: u64) {
            // SAFETY: as above.
            unsafe { waterfill_maxnet_tick(self, bytes, queue) };
        }

        /// The fourth word, in 2^-34 s.
        pub(super) fn price(&self) -> u64 {
            self.0[3]
        }
    }
}

/// A link that no packet comes to, at 100 Mbit/s with dt_p = 1 ms: 12,500 bytes an interval.
fn replayed(router: &Router) -> (Request, law::Link) {
    const START_NS: u64 = 1_000_000_000_000;
    let request =
        Request { ifindex: 1_000_000, now: START_NS, rate: 100_000_000, dt_p: 1000, t_0: 130_000, ..quiet(LOOPBACK) };
    router.set(request);
    (request, law::Link::new(&request))
}

#[test]
fn the_price_is_the_laws() {
    let Some((router, _)) = router() else { return };
    let (request, mut law) = replayed(&router);
    let arrive = |now, bytes_now| router.ask(Request { what: ARRIVE, now, bytes_now, ..request });
    let mut random = Pcg64Mcg::new(1);
    let mut highest = 0;
    // Interval by interval for the law; the program sees packets, and no packet in most of the idle ones.
    let mut interval_end = request.now + 1_000_000;
    let mut rate = request.rate;
    for round in 0..20_000_u64 {
        if round % 5000 == 4999 {
            rate = 50_000_000 + 10_000 * round;
            let mu = 900_000 + round as u32;
            router.set(Request { rate, mu, now: interval_end - 1_000_000, ..request });
            law.set(rate, mu);
        }
        // At most what the link carries, so that nothing waits: then every step is exact.
        let room = rate / 8000;
        let packets = random.next_u64() % 12;
        let mut bytes = 0;
        for i in 0..packets {
            let volume = (random.next_u64() % 3000).min(room - bytes);
            bytes += volume;
            let found = arrive(interval_end - 900_000 + i * 50_000, volume);
            assert_eq!(found.place.price, law.price(), "round {round}");
        }
        // Busy for thousands of intervals: the price rises well above its least.
        if round % 3000 > 600 && packets > 0 {
            arrive(interval_end - 1, room - bytes);
            bytes = room;
        }
        law.tick(bytes, 0);
        let idle = if random.next_u64() % 8 == 0 { random.next_u64() % 40 } else { 0 };
        for _ in 0..idle {
            law.tick(0, 0);
        }
        interval_end += (idle + 1) * 1_000_000;
        // An interval's end is looked at by the first packet behind it, or not until much later.
        if packets % 2 == 0 {
            highest = highest.max(arrive(interval_end - 1_000_000, 0).place.price);
        }
    }
    let least = router.show(request.ifindex).price_min;
    assert!(highest > least + least / 100, "{highest} and {least}");
}

#[test]
fn a_virtual_queue_stands_in_for_one_that_cannot_be_read() {
    let Some((router, _)) = router() else { return };
    let (request, mut law) = replayed(&router);
    let arrive = |now, bytes_now| router.ask(Request { what: ARRIVE, now, bytes_now, ..request });
    let per_interval = request.rate / 8000;
    let mut queue = 0_u64;
    let mut now = request.now;
    for (bytes, idle) in [(3 * per_interval, 0), (20 * per_interval, 5), (0, 0), (7 * per_interval + 11, 300), (1, 2)] {
        now += 1;
        arrive(now, bytes);
        queue = (queue + bytes).saturating_sub(per_interval);
        law.tick(bytes, queue);
        for _ in 0..idle {
            queue = queue.saturating_sub(per_interval);
            law.tick(0, queue);
        }
        now += (idle + 1) * 1_000_000 - 1;
        let found = arrive(now, 0);
        assert_eq!(found.queue, queue);
        // A run of idle intervals takes the mean of what waits at their ends in whole bytes, which is up to a byte off in
        // each: dt_p/T_0 of a byte's time at C, in 2^-34 s, and a unit of rounding.
        let byte = 8.0 / 1e8 / 130.0 * 2_f64.powi(34);
        let off = found.place.price.abs_diff(law.price());
        assert!(off as f64 <= (idle + 1) as f64 * (byte + 1.0), "off by {off} after {idle}");
    }
}

#[test]
fn a_running_link_keeps_its_price() {
    let Some((router, _)) = router() else { return };
    let (request, _) = replayed(&router);
    let arrive = |now, bytes_now| router.ask(Request { what: ARRIVE, now, bytes_now, ..request });
    arrive(request.now, 10_000_000);
    let before = arrive(request.now + 1_500_000, 0).place.price;
    assert!(before > request.place.price);
    for change in [
        Request { rate: 200_000_000, ..request },
        Request { mu: 500_000, ..request },
        Request { dt_p: 10_000, ..request }, // what the law has no change for
    ] {
        assert_eq!(router.set(change).place.price, before);
    }
    // As far as the new least price lets it.
    let slow = router.set(Request { rate: 1000, ..request });
    assert_eq!(slow.place.price, slow.price_min.max(before));
    assert!(slow.price_min > before);
}

/// Frames that nobody would build, and those that somebody would, with a few bytes changed.
fn fuzz(frames: u64) {
    let Some((router, price)) = router() else { return };
    let mut random = Pcg64Mcg::new(1);
    let mut below = move |n: usize| (random.next_u64() % n as u64) as usize;
    let (mut raised, mut refused) = (0, 0);
    for _ in 0..frames {
        let mut options = Vec::new();
        for _ in 0..below(5) {
            let value = (below(1 << 24) >> below(24)) as u32;
            match below(12) {
                0 => options.extend(timestamps()),
                1 => options.extend(echo(value)),
                2..=4 => options.extend(forward(value)),
                5 => options.extend(both(value, value)),
                6 => options.extend(paper(value, value)),
                7 => options.extend([5, 10, 1, 2, 3, 4, 5, 6, 7, 8]),
                8 => options.extend((0..below(9)).map(|_| below(256) as u8)),
                9 => options.extend([29, 4, 0, 0]),
                _ => options.extend([1].repeat(below(4))),
            }
        }
        options.truncate(40);
        let data = vec![0x5a; below(64)];
        let segment = tcp(if below(8) == 0 { SYN } else { ACK }, &options, &data);
        let tags = &[0x8100, 0x88a8, 0x8100][..[0, 0, 0, 1, 2, 3][below(6)]];
        let mut frame = if below(2) == 0 {
            let fragment = if below(8) == 0 { below(1 << 16) as u16 } else { 0 };
            frame_v4(tags, &[1].repeat(4 * below(11) * (below(4) / 3)), fragment, &segment).bytes
        } else {
            let chain: Vec<_> = (0..below(4) * (below(4) / 3))
                .map(|_| ([0, 43, 44, 60, 51][below(5)], vec![0, 0, 0, below(2) as u8, 0, 0, 0, 0]))
                .collect();
            frame_v6(tags, &chain, &segment).bytes
        };
        if below(2) == 0 {
            for _ in 0..=below(4) {
                let at = 12 + below(frame.len() - 12);
                frame[at] = below(256) as u8;
            }
        }
        if below(16) == 0 {
            frame.truncate(14 + below(frame.len() - 13));
        }
        let Ok((out, _)) = router.send(&frame, None, 1) else {
            refused += 1; // the kernel takes no such frame from anybody
            continue;
        };
        assert_eq!(out.len(), frame.len());
        let Found::Value { tcp, value, syn } = find(&frame) else {
            assert_eq!(out, frame, "{:?}", find(&frame));
            continue;
        };
        let read = |bytes: &[u8]| u32::from_be_bytes([0, bytes[value], bytes[value + 1], bytes[value + 2]]);
        let (before, after) = (read(&frame), read(&out));
        if before & FLAG == 0 || !syn {
            assert_eq!(after, before.max(price), "{frame:02x?}");
        } else {
            assert!(after >= before, "{frame:02x?}");
        }
        for at in 0..frame.len() {
            let may = (value..value + 3).contains(&at) || (tcp + 16..tcp + 18).contains(&at);
            assert!(may || out[at] == frame[at], "byte {at} of {frame:02x?}");
        }
        // Right or wrong, the sum is as it was: a receiver judges the same.
        assert_eq!(packet::sum(&out[tcp..]) % 0xffff, packet::sum(&frame[tcp..]) % 0xffff, "{frame:02x?}");
        raised += u64::from(after != before);
    }
    assert!(raised > frames / 20, "{raised} of {frames} were raised");
    assert!(refused < frames / 10, "{refused} of {frames} were refused");
    eprintln!("{frames} frames, {raised} raised, {refused} refused by the kernel");
}

#[test]
fn frames_at_random() {
    fuzz(20_000);
}

#[test]
#[ignore = "ten seconds: cargo test --features daemon --test router -- --ignored"]
fn a_million_frames_at_random() {
    fuzz(1_000_000);
}

/// Runs a script in namespaces of its own, with a BPF file system at $FS and a device `wf0` to a peer's `wf1`; what it printed.
fn in_namespaces(script: &str) -> Option<String> {
    if let Some(why) = support::missing() {
        eprintln!("skipped: {why}");
        return None;
    }
    let folder =
        std::env::temp_dir().join(format!("waterfill-router-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir(&folder).unwrap();
    let setup = r#"
set -e
mount -t bpf none "$FS"
unshare -n sleep 50 &
peer=$!
trap 'kill $peer' EXIT
while [ "$(readlink /proc/$peer/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
there() { nsenter -t $peer -n "$@"; }
ip link set lo up
ip link add wf0 type veth peer name wf1 netns $peer
ip address add 10.0.0.1/24 dev wf0
ip link set wf0 up
there ip address add 10.0.0.2/24 dev wf1
there ip link set wf1 up
there ip link set lo up
state() { tc qdisc show; tc filter show dev wf0 egress; tc filter show dev wf0 ingress; find "$FS" -mindepth 1 | sort; }
wf() { command=$1; shift; "$WATERFILLD" $command --pins "$FS/wf" "$@" 2>"$FS.err" || { code=$?; cat "$FS.err"; echo "exit $code"; }; }
"#;
    let output = Command::new("timeout")
        .args(["50", "unshare", "-mn", "sh", "-c", &format!("{setup}{script}")])
        .env("FS", &folder)
        .env("WATERFILLD", env!("CARGO_BIN_EXE_waterfilld"))
        .output()
        .unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let _ = std::fs::remove_file(folder.with_extension("err"));
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{wrong}");
    Some(said.into_owned())
}

#[test]
fn unloading_leaves_what_was_found() {
    let Some(said) = in_namespaces(
        r#"
before=$(state)
wf router --dev wf0 --rate 100mbit --shape --overhead 0 --once
tc qdisc show dev wf0
echo --- again, without the shaper
wf router --dev wf0 --rate 200mbit --once
tc qdisc show dev wf0
wf status --json
wf unload
[ "$before" = "$(state)" ] && echo as found
"#,
    ) else {
        return;
    };
    assert!(said.contains("qdisc tbf 5746: root") && said.contains("rate 100Mbit"), "{said}");
    let (_, again) = said.split_once("--- again").unwrap();
    assert!(again.contains("qdisc noqueue") && !again.contains("tbf"), "{said}");
    assert!(again.contains(r#""rate_bps":200000000"#), "{said}");
    assert!(said.ends_with("as found\n"), "{said}");
}

#[test]
fn a_root_qdisc_of_somebody_is_refused_and_kept() {
    let Some(said) = in_namespaces(
        r#"
tc qdisc add dev wf0 root handle 7: pfifo limit 50
before=$(state)
wf router --dev wf0 --rate 100mbit --shape --once
[ "$before" = "$(state)" ] && echo as found
"#,
    ) else {
        return;
    };
    assert!(said.contains("device wf0 has a root qdisc of its own, pfifo (7:)") && said.contains("exit 2"), "{said}");
    assert!(said.ends_with("as found\n"), "{said}");
}

#[test]
fn ordinary_tcp_passes_undisturbed_and_the_queue_is_read() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        eprintln!("skipped: needs iperf3");
        return;
    }
    let Some(said) = in_namespaces(
        r"
wf router --dev wf0 --rate 200mbit --shape --once
there iperf3 -s -1 >/dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; there ss -ltn | grep -q 5201 && break; done
iperf3 -c 10.0.0.2 -t 2 -J >/dev/null
wf status --json
there cat /proc/net/snmp
",
    ) else {
        return;
    };
    let status = said.lines().find(|l| l.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    let status: serde_json::Value = serde_json::from_str(status).unwrap();
    let link = &status["links"][0];
    // 2 s at 200 Mbit/s, give or take what starting takes; super-packets are some of them.
    assert!(link["bytes"].as_u64().unwrap() > 25_000_000, "{status}");
    assert!(link["segments"].as_u64() > link["packets"].as_u64(), "{status}");
    assert_eq!(link["marked"], 0);
    assert!(link["queue_bytes"].is_u64(), "{status}");
    // Tcp: … InErrs … InCsumErrors
    let tcp: Vec<Vec<&str>> =
        said.lines().filter(|l| l.starts_with("Tcp:")).map(|l| l.split_whitespace().collect()).collect();
    let wrong = tcp[0].iter().position(|name| *name == "InCsumErrors").unwrap();
    assert_eq!(tcp[1][wrong], "0");
}
