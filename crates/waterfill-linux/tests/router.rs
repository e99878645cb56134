//! Tests of the router programs in the running kernel. They check effects on packets, prices against the law compiled
//! for this host, and `waterfilld router` in network namespaces. Without root, they are skipped.

#![cfg(feature = "daemon")]

mod common;
#[path = "router/law.rs"]
mod law;
#[path = "router/namespaces.rs"]
mod namespaces;
#[path = "router/packet.rs"]
mod packet;
#[path = "router/support.rs"]
mod support;

use std::ops::Range;

use law::HostLaw;
use packet::{
    Found, START_RATE, both, echo, ethernet, find, forward, has_valid_checksum, ipv4, ipv6, paper, set_checksum, tcp,
    timestamps,
};
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use support::{Command, Count, Gso, LOOPBACK, Request, Router, count, idle_link};

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A function that builds a frame around a TCP segment.
type Make = Box<dyn Fn(&[u8]) -> Frame>;
type Plain = fn(&[u8]) -> Frame;

/// Loads a router with a link on the loopback device. Returns the router and the code of the link's price. If loading
/// is not possible, prints the reason and returns `None`.
fn router() -> Option<(Router, u32)> {
    common::requirements::can_load_programs().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
    let router = Router::load();
    let price = router.set(idle_link(LOOPBACK)).price_code;
    assert!(price > 1000 && price < START_RATE, "{price}");
    Some((router, price))
}

/// A frame with a TCP segment of valid checksum, and the offsets of the segment and the IP addresses.
struct Frame {
    bytes: Vec<u8>,
    tcp: usize,
    addresses: Range<usize>,
}

fn frame_v4(tags: &[u16], ip_options: &[u8], fragment: u16, segment: &[u8]) -> Frame {
    let mut bytes = ethernet(tags, 0x0800, &ipv4(ip_options, fragment, 6, segment));
    let (ip, tcp) = (14 + 4 * tags.len(), bytes.len() - segment.len());
    set_checksum(&mut bytes, tcp, ip + 12..ip + 20);
    Frame { bytes, tcp, addresses: ip + 12..ip + 20 }
}

fn frame_v6(tags: &[u16], extensions: &[(u8, Vec<u8>)], segment: &[u8]) -> Frame {
    let mut bytes = ethernet(tags, 0x86dd, &ipv6(extensions, 6, segment));
    let (ip, tcp) = (14 + 4 * tags.len(), bytes.len() - segment.len());
    set_checksum(&mut bytes, tcp, ip + 8..ip + 40);
    Frame { bytes, tcp, addresses: ip + 8..ip + 40 }
}

/// Sends a frame through the router and returns the value at offset `value`. Checks that only this value and the
/// checksum have changed, and that the checksum is valid.
fn marked(router: &Router, frame: &Frame, value: usize) -> u32 {
    let (out, _) = router.send(&frame.bytes, None, 1).unwrap();
    assert_eq!(out.len(), frame.bytes.len());
    for at in (0..out.len()).filter(|at| !(value..value + 3).contains(at)) {
        let checksum = frame.tcp + 16..frame.tcp + 18;
        assert!(out[at] == frame.bytes[at] || checksum.contains(&at), "byte {at} changed");
    }
    assert!(has_valid_checksum(&out, frame.tcp, frame.addresses.clone()), "the checksum is invalid");
    u32::from_be_bytes([0, out[value], out[value + 1], out[value + 2]])
}

fn unchanged(router: &Router, frame: &[u8]) {
    let (out, _) = router.send(frame, None, 1).unwrap();
    assert_eq!(out, frame);
}

#[test]
fn values_are_raised_at_any_position_of_the_option() {
    let Some((router, price)) = router() else { return };
    let extension =
        |kind: u8, words: usize| (kind, vec![0, words as u8].into_iter().chain(vec![0; 6 + 8 * words]).collect());
    let first_fragment = (44, vec![0, 0, 0, 1, 0, 0, 0, 9]);
    let plain: [(&str, Plain); 8] = [
        ("IPv4", |s| frame_v4(&[], &[], 0x4000, s)),
        ("IPv4 with options", |s| frame_v4(&[], &[148, 4, 0, 0, 1, 1, 1, 0], 0, s)),
        ("IPv4 with 40 bytes of options", |s| frame_v4(&[], &[1; 40], 0, s)),
        ("a first fragment", |s| frame_v4(&[], &[], 0x2000, s)),
        ("IPv4 after a VLAN tag", |s| frame_v4(&[0x8100], &[], 0, s)),
        ("IPv4 after two", |s| frame_v4(&[0x88a8, 0x8100], &[], 0, s)),
        ("IPv6", |s| frame_v6(&[], &[], s)),
        ("IPv6 after two VLAN tags", |s| frame_v6(&[0x8100, 0x8100], &[], s)),
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
            // After 0 to 4 NOPs, so that the value starts at even and odd offsets.
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
        [(0, price), (price - 1, price), (price, price), (price + 1, price + 1), (START_RATE - 1, START_RATE - 1)]
    {
        let frame = frame_v4(&[], &[], 0, &tcp(ACK, &forward(before), b"data"));
        assert_eq!(marked(&router, &frame, frame.tcp + 25), after);
    }
    let link = router.show(LOOPBACK);
    assert_eq!((count(&link, Count::WATERFILL_COUNT_OPTION), count(&link, Count::WATERFILL_COUNT_MARKED)), (5, 2));
}

#[test]
fn a_start_rate_is_granted_on_a_syn_only() {
    let Some((router, _)) = router() else { return };
    let ask = |flags| frame_v4(&[], &[], 0, &tcp(flags, &forward(START_RATE), b""));
    let value = |frame: &Frame| marked(&router, frame, frame.tcp + 25);
    // No load: all of mu + (1 - mu)/4 of C is free.
    let code = (-(0.94 + 0.06 / 4.0_f64).ln() + (1000_f64).ln()) * f64::from(1 << 18);
    for syn in [ask(SYN), ask(SYN | ACK)] {
        let answer = value(&syn);
        assert!(answer & START_RATE != 0 && (f64::from(answer & !START_RATE) - code).abs() < 2.0, "{answer:x} {code}");
    }
    assert_eq!(value(&ask(ACK)), START_RATE, "a start rate's field on data stays unchanged");
    assert_eq!(count(&router.show(LOOPBACK), Count::WATERFILL_COUNT_START_RATE), 2);
    // With reservations, capacity that one SYN got is not granted again.
    router.set(Request { promise: 1, ..idle_link(LOOPBACK) });
    let first = value(&ask(SYN));
    assert!((f64::from(first & !START_RATE) - code).abs() < 2.0, "{first:x}");
    let second = value(&ask(SYN));
    assert!(second > first + (1 << 18), "{second:x} after {first:x}"); // less than 1/e of it
    // A start rate below the link's stays.
    let low = frame_v4(&[], &[], 0, &tcp(SYN, &forward(START_RATE | 0x7f_ffff), b""));
    assert_eq!(marked(&router, &low, low.tcp + 25), START_RATE | 0x7f_ffff);
}

/// The program writes the law's start rate into each SYN, although it computes this rate only once per interval.
#[test]
fn every_syn_gets_the_laws_start_rate() {
    let Some((router, _)) = router() else { return };
    for promise in [0, 1] {
        let request = Request { promise, ..idle_link(LOOPBACK) };
        router.set(request);
        let mut law = HostLaw::new(&request);
        for code in [0, 0, 5, 0x7f_fffe, 0x7f_ffff, 0] {
            let syn = frame_v4(&[], &[], 0, &tcp(SYN, &forward(START_RATE | code), b""));
            assert_eq!(marked(&router, &syn, syn.tcp + 25), law.mark(START_RATE | code), "{code:x}");
        }
    }
}

/// A request that only reads a link leaves the ends of intervals to the timer. If the request held the lock when
/// preempted, the price would stay unchanged until the request runs again.
#[test]
fn showing_a_link_leaves_its_intervals_to_the_timer() {
    let Some((router, _)) = router() else { return };
    let request = Request { dt_p: 10_000, t_0: 1_300_000, ..idle_link(LOOPBACK) };
    router.set(request);
    let frame = ethernet(&[], 0x0806, &[0; 28]);
    let mut raw = Request { ifindex: LOOPBACK, ..Request::default() }.raw(Command::WATERFILL_SHOW);
    while raw.signals[2] == 0 {
        router.send(&frame, None, 1000).unwrap();
        router.ask(&mut raw);
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!router.ask(&mut raw), "the request has closed intervals itself");
    while !router.ask(&mut raw) {}
    assert_eq!(raw.signals[2], 0, "the last intervals had no arrivals");
}

#[test]
fn other_packets_pass_unchanged() {
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
    short_ip[17] = 45; // puts the options after the IP packet's end, into Ethernet's padding
    let cases: Vec<(&str, Vec<u8>, Option<Count>)> = vec![
        ("an echo", v4(&echo(1)), Some(Count::WATERFILL_COUNT_OPTION)),
        ("of a later type", v4(&[253, 8, 0x57, 0x46, 0, 0, 0, 1]), Some(Count::WATERFILL_COUNT_OPTION)),
        ("another law's", v4(&[253, 8, 0x57, 0x46, 9, 0, 0, 1]), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        (
            "another law's of another length",
            v4(&[253, 10, 0x57, 0x46, 13, 0, 0, 1, 0, 1]),
            Some(Count::WATERFILL_COUNT_NO_OPTION),
        ),
        ("TCP-AO before it", v4(&authentication), Some(Count::WATERFILL_COUNT_SIGNED)),
        ("MD5 after it", v4(&md5), Some(Count::WATERFILL_COUNT_SIGNED)),
        ("no option", v4(&[]), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        ("timestamps", v4(&timestamps()), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        ("another experiment", v4(&[253, 8, 0x57, 0x47, 1, 0, 0, 1]), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        ("an experiment without ExID", v4(&[253, 4, 0x57, 0x46, 1, 1, 1, 1]), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        ("kind 42 of another length", v4(&[42, 7, 0, 0, 0, 0, 0, 1]), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        ("after the end of options", v4(&[&[0][..], &forward(1)].concat()), Some(Count::WATERFILL_COUNT_NO_OPTION)),
        ("ours, too long", v4(&[253, 9, 0x57, 0x46, 1, 0, 0, 1, 0]), Some(Count::WATERFILL_COUNT_MALFORMED)),
        ("ours, too short", v4(&[253, 7, 0x57, 0x46, 1, 0, 0, 1]), Some(Count::WATERFILL_COUNT_MALFORMED)),
        ("both, too short", v4(&[253, 8, 0x57, 0x46, 3, 0, 0, 1]), Some(Count::WATERFILL_COUNT_MALFORMED)),
        (
            "forward, as long as both",
            v4(&[253, 12, 0x57, 0x46, 1, 0, 0, 1, 0, 0, 1, 0]),
            Some(Count::WATERFILL_COUNT_MALFORMED),
        ),
        ("cut off by the header's end", v4(&[1, 1, 1, 1, 253, 8, 0x57, 0x46]), Some(Count::WATERFILL_COUNT_MALFORMED)),
        ("an option of length 0", v4(&[&[8, 0][..], &forward(1)].concat()), Some(Count::WATERFILL_COUNT_MALFORMED)),
        (
            "an option of length 1 after it",
            v4(&[&forward(1)[..], &[8, 1]].concat()),
            Some(Count::WATERFILL_COUNT_MALFORMED),
        ),
        (
            "an option past the end after it",
            v4(&[&forward(1)[..], &[8, 10]].concat()),
            Some(Count::WATERFILL_COUNT_MALFORMED),
        ),
        (
            "a missing length byte",
            v4(&[&forward(1)[..], &[1, 1, 1, 8]].concat()),
            Some(Count::WATERFILL_COUNT_MALFORMED),
        ),
        ("a header of 16 bytes", doff(4), Some(Count::WATERFILL_COUNT_MALFORMED)),
        ("a header past the packet's end", doff(15), Some(Count::WATERFILL_COUNT_MALFORMED)),
        ("options in the padding", short_ip, Some(Count::WATERFILL_COUNT_MALFORMED)),
        (
            "a later fragment",
            ethernet(&[], 0x0800, &ipv4(&[], 0x2001, 6, &ours)),
            Some(Count::WATERFILL_COUNT_FRAGMENT),
        ),
        ("a last fragment", ethernet(&[], 0x0800, &ipv4(&[], 0x00b9, 6, &ours)), Some(Count::WATERFILL_COUNT_FRAGMENT)),
        (
            "a later fragment of IPv6",
            ethernet(&[], 0x86dd, &ipv6(&[(44, vec![0, 0, 0, 8, 0, 0, 0, 9])], 6, &ours)),
            Some(Count::WATERFILL_COUNT_FRAGMENT),
        ),
        ("UDP", ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &ours)), None),
        ("UDP over IPv6", ethernet(&[], 0x86dd, &ipv6(&[], 17, &ours)), None),
        ("a tunnel of IPv4", ethernet(&[], 0x0800, &ipv4(&[], 0, 4, &ipv4(&[], 0, 6, &ours))), None),
        ("GRE", ethernet(&[], 0x0800, &ipv4(&[], 0, 47, &ours)), None),
        ("ESP", ethernet(&[], 0x86dd, &ipv6(&[], 50, &ours)), None),
        ("after AH", ethernet(&[], 0x86dd, &ipv6(&[(51, vec![0; 24])], 6, &ours)), None),
        ("after nine extension headers", ethernet(&[], 0x86dd, &ipv6(&nine_headers, 6, &ours)), None),
        ("after three VLAN tags", frame_v4(&[0x88a8, 0x8100, 0x8100], &[], 0, &ours).bytes, None),
        ("ARP", ethernet(&[], 0x0806, &[0; 28]), None),
        ("IPv6 with the EtherType of IPv4", ethernet(&[], 0x0800, &ipv6(&[], 6, &ours)), None),
    ];
    for (name, frame, reason) in cases {
        let before = router.show(LOOPBACK).counts;
        unchanged(&router, &frame);
        let after = router.show(LOOPBACK).counts;
        let changed: Vec<usize> = (0..after.len()).filter(|i| after[*i] != before[*i]).collect();
        assert_eq!(changed, reason.map(|count| count.0 as usize).into_iter().collect::<Vec<_>>(), "{name}");
        assert!(!matches!(find(&frame), Found::Value { .. }), "{name}");
    }
    // Of two MaxNet options the first counts, as for receivers.
    let two = frame_v4(&[], &[], 0, &segment(&[forward(1), forward(2)].concat()));
    assert_eq!(marked(&router, &two, two.tcp + 25), price);
}

/// The router survives frames that it may not write to: truncated frames, and frames whose headers claim more bytes
/// than exist.
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
    assert_eq!(count(&link, Count::WATERFILL_COUNT_MARKED), 1);
    // A guest's super-packet does not say how many segments it has.
    for (data, segments) in [(2000, 2), (2001, 3)] {
        let before = router.show(LOOPBACK);
        let frame = frame_v4(&[], &[], 0, &tcp(ACK, &timestamps(), &vec![7; data as usize]));
        let gso = Gso { wire_length: segments * (14 + 20 + 32) + data, segments: 0, segment_bytes: 1000 };
        router.send(&frame.bytes, Some(gso), 1).unwrap();
        let after = router.show(LOOPBACK);
        assert_eq!(after.segments - before.segments, u64::from(segments), "{data} bytes");
        assert_eq!(after.bytes - before.bytes, u64::from(segments * (14 + 20 + 32) + data));
    }
    let link = router.show(LOOPBACK);
    // A negative overhead, which makes an empty packet count as 0.
    router.set(Request { overhead_bytes: -40, ..idle_link(LOOPBACK) });
    unchanged(&router, &ethernet(&[], 0x0806, &[0; 28]));
    assert_eq!(router.show(LOOPBACK).bytes, link.bytes);
    assert!(price > 0);
}

#[test]
fn several_cpus_may_send_at_once() {
    let Some((router, price)) = router() else { return };
    // The price may change every microsecond, so that all CPUs try to change it.
    router.set(Request { dt_p: 1, t_0: 1000, promise: 1, ..idle_link(LOOPBACK) });
    let frame = frame_v4(&[], &[], 0, &tcp(SYN, &forward(START_RATE), b""));
    let (threads, packets) = (4, 20_000);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| router.send(&frame.bytes, None, packets).unwrap());
        }
    });
    let link = router.show(LOOPBACK);
    let sent = u64::from(threads * packets);
    assert_eq!((link.packets, link.segments, count(&link, Count::WATERFILL_COUNT_START_RATE)), (sent, sent, sent));
    assert_eq!(link.bytes, sent * (frame.bytes.len() as u64));
    assert!(link.price_code >= price);
    // The lock is free now.
    assert_eq!(router.set(idle_link(LOOPBACK)).packets, sent);
}

/// Sends random frames: valid frames, and frames with some changed bytes.
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
            refused += 1; // the kernel accepts no such frame
            continue;
        };
        assert_eq!(out.len(), frame.len());
        let Found::Value { tcp, value, syn } = find(&frame) else {
            assert_eq!(out, frame, "{:?}", find(&frame));
            continue;
        };
        let read = |bytes: &[u8]| u32::from_be_bytes([0, bytes[value], bytes[value + 1], bytes[value + 2]]);
        let (before, after) = (read(&frame), read(&out));
        if before & START_RATE == 0 || !syn {
            assert_eq!(after, before.max(price), "{frame:02x?}");
        } else {
            assert!(after >= before, "{frame:02x?}");
        }
        for at in 0..frame.len() {
            let may = (value..value + 3).contains(&at) || (tcp + 16..tcp + 18).contains(&at);
            assert!(may || out[at] == frame[at], "byte {at} of {frame:02x?}");
        }
        // Valid or not, the checksum is as before, so a receiver reaches the same verdict.
        assert_eq!(packet::sum(&out[tcp..]) % 0xffff, packet::sum(&frame[tcp..]) % 0xffff, "{frame:02x?}");
        raised += u64::from(after != before);
    }
    assert!(raised > frames / 20, "{raised} of {frames} were raised");
    assert!(refused < frames / 10, "{refused} of {frames} were refused");
    eprintln!("{frames} frames, {raised} raised, {refused} refused by the kernel");
}

#[test]
fn random_frames() {
    fuzz(20_000);
}

#[test]
#[ignore = "ten seconds: cargo test --features daemon --test router -- --ignored"]
fn a_million_random_frames() {
    fuzz(1_000_000);
}
