//! Tests of captures: the file's content and counters, and unchanged results.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{build, cbr, flow, link, network, run};
use waterfill_network::{Level, LossSpec, Network, QueueSpec, ReorderSpec};
use waterfill_sim::{CaptureOptions, CaptureReport, Simulation};

/// A file that is removed at the end of a test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("waterfill-{}-{name}.pcapng", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const ALL: CaptureOptions = CaptureOptions { snaplen: 96, limit_bytes: 1 << 30, links: Vec::new() };

/// Runs a network with a capture. Returns the simulation, the report and the file's bytes.
fn capture(n: &Network, options: &CaptureOptions, name: &str) -> (Simulation, CaptureReport, Vec<u8>) {
    let file = Temporary::new(name);
    let mut sim = build(n);
    sim.start_capture(&file.0, options).expect("a file");
    sim.advance(sim.end());
    let report = sim.finish_capture().expect("no error").expect("a capture");
    let bytes = fs::read(&file.0).expect("the file");
    (sim, report, bytes)
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"))
}

/// A packet of a capture.
struct Packet {
    interface: u32,
    time_ns: u64,
    bytes: Vec<u8>,
    length: u32,
    lost: bool,
}

/// Packet counts of an interface.
#[derive(Debug, PartialEq)]
struct Counts {
    received: u64,
    dropped: u64,
}

/// Reads a capture file. Returns the interfaces' names, the packets, and the counts.
fn read(mut file: &[u8]) -> (Vec<String>, Vec<Packet>, Vec<Counts>) {
    let (mut names, mut packets, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    while !file.is_empty() {
        let (kind, length) = (word(file), word(&file[4..]) as usize);
        let body = &file[8..length - 4];
        match kind {
            1 => names.push(String::from_utf8(option(&body[8..], 2).expect("a name").into()).expect("UTF-8")),
            5 => {
                let count =
                    |code| u64::from_le_bytes(option(&body[12..], code).expect("a count").try_into().expect("8"));
                counts.push(Counts { received: count(4), dropped: count(5) });
            }
            6 => {
                let captured = word(&body[12..]) as usize;
                let options = &body[20 + captured.next_multiple_of(4)..];
                packets.push(Packet {
                    interface: word(body),
                    time_ns: u64::from(word(&body[4..])) << 32 | u64::from(word(&body[8..])),
                    bytes: body[20..20 + captured].into(),
                    length: word(&body[16..]),
                    lost: option(options, 1) == Some(b"lost on the wire"),
                });
            }
            _ => {}
        }
        file = &file[length..];
    }
    (names, packets, counts)
}

/// Returns the value of a pcapng option, if it is present.
fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    while options.len() >= 4 {
        let field = |i: usize| u16::from_le_bytes([options[i], options[i + 1]]);
        let (code, length) = (field(0), usize::from(field(2)));
        if code == wanted {
            return Some(&options[4..4 + length]);
        }
        options = &options[4 + length.next_multiple_of(4)..];
    }
    None
}

/// Returns the Internet checksum of words (RFC 1071), which is zero over a whole header or segment.
fn checksum(words: &[u8], start: u32) -> u16 {
    let mut sum = start + words.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Checks lengths and checksums of a packet whose payload is zeros.
fn check(packet: &Packet) {
    let ip = &packet.bytes[..20];
    assert_eq!((ip[0], checksum(ip, 0)), (0x45, 0));
    let length = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    assert_eq!(length, packet.length);
    let pseudo = [&ip[12..20], &[0, ip[9]], &((length - 20) as u16).to_be_bytes()].concat();
    let rest = packet.bytes[20..].iter().copied().chain([0]).collect::<Vec<_>>();
    assert_eq!(checksum(&rest[..rest.len() / 2 * 2], u32::from(!checksum(&pseudo, 0))), 0, "of protocol {}", ip[9]);
}

/// Returns a network with every kind of packet: options, selective blocks, marks, losses, datagrams.
fn everything() -> Network {
    let links = [link("a", 1e7, 0.005, 30_000), link("b", 1e7, 0.005, 30_000)].concat();
    let flows = ["maxnet", "sack", "dctcp", "newreno"].map(|name| flow(name, name, &[0, 2], 2.0));
    let mut n = network(2.0, links, flows.into());
    n.links[0].queue = QueueSpec::Droptail { mark_at: Some(Level::Packets(5.0)), ramp: None };
    n.links[2].loss_model = Some(LossSpec::Periodic { every: 100 });
    n.links[2].duplicate = 0.01;
    n.links[2].reorder = Some(ReorderSpec { share: 0.01, delay_s: 0.004 });
    n.traffic.push(cbr("t", &[0], 1e6, [0.0, 2.0], 500));
    n
}

#[test]
fn every_packet_is_valid_and_in_order() {
    let (_, report, file) = capture(&everything(), &ALL, "valid");
    let (names, packets, _) = read(&file);
    assert_eq!(names, ["a", "a:rev", "b", "b:rev"]);
    assert_eq!((report.packets, report.bytes, report.full_at_s), (packets.len() as u64, file.len() as u64, None));
    packets.iter().for_each(check);
    for interface in 0..4 {
        let times: Vec<u64> = packets.iter().filter(|p| p.interface == interface).map(|p| p.time_ns).collect();
        assert!(times.is_sorted() && times.len() > 100, "{interface}: {}", times.len());
    }
    let has = |what: &dyn Fn(&Packet) -> bool| packets.iter().any(what);
    let tcp_option = |packet: &Packet, kind: u8| {
        let end = 20 + usize::from(packet.bytes[32] >> 4) * 4;
        packet.bytes[9] == 6 && packet.bytes[40..end].windows(2).any(|pair| pair[0] == kind && pair[1] >= 4)
    };
    assert!(has(&|p| p.bytes[9] == 17 && p.length == 500), "datagrams of the source");
    assert!(has(&|p| p.lost) && has(&|p| p.bytes[1] == 3), "losses and marks");
    assert!(has(&|p| p.bytes[33] & 0x40 != 0), "echoes of marks");
    assert!(has(&|p| tcp_option(p, 5)), "selective acknowledgements");
    assert!(has(&|p| p.bytes[33] & 0x12 == 0x12), "the answers to a SYN");
}

/// Option number of each explicit law, and its bytes with data and with an echo, as in `docs/reference/daemon.md`.
const OPTIONS: [(&str, u8, usize, usize); 9] = [
    ("maxnet", 0, 8, 8),
    ("maxnet2006", 1, 8, 8),
    ("aecp", 2, 8, 8),
    ("rcp", 3, 10, 8),
    ("vcp", 4, 8, 8),
    ("xcp", 5, 16, 11),
    ("pxcp", 6, 16, 11),
    ("ixcp", 7, 20, 13),
    ("jetmax", 8, 17, 16),
];

/// Returns the type and value of the option of an explicit law in a segment, if it is present.
fn law_option(packet: &Packet) -> Option<(u8, &[u8])> {
    let end = 20 + usize::from(packet.bytes[32] >> 4) * 4;
    let mut options = &packet.bytes[40..end];
    loop {
        match *options {
            [1, ..] => options = &options[1..],
            [253, length, 0x57, 0x46, kind, ..] => return Some((kind, &options[5..usize::from(length)])),
            [_, length, ..] => options = &options[usize::from(length)..],
            _ => return None,
        }
    }
}

/// Data segments carry the law's forward value and acknowledgements its echo, in real numbers and in kernel arithmetic.
/// The values that routers write change from packet to packet.
#[test]
fn every_segment_of_an_explicit_flow_has_its_law_s_option() {
    let listed = waterfill_laws::registry::kernel_protocols().len();
    assert_eq!(OPTIONS.len(), listed, "a law is missing in OPTIONS of this file");
    for (law, number, forward, echo) in OPTIONS {
        for arithmetic in ["real", "kernel"] {
            let mut n = network(0.5, link("l", 1e7, 0.005, 50_000).into(), vec![flow("f", law, &[0], 0.5)]);
            n.set_param(law, "arithmetic", arithmetic);
            let (_, _, file) = capture(&n, &ALL, &format!("{law}-{arithmetic}"));
            let (_, packets, _) = read(&file);
            let mut values = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
            for packet in packets.iter().filter(|packet| packet.bytes[33] & 2 == 0) {
                let answers = packet.interface == 1;
                let (kind, value) = law_option(packet).unwrap_or_else(|| panic!("{law} {arithmetic}: no option"));
                assert_eq!(kind, 4 * number + if answers { 2 } else { 1 }, "{law} {arithmetic}");
                assert_eq!(value.len() + 5, if answers { echo } else { forward }, "{law} {arithmetic}");
                values[usize::from(answers)].insert(value.to_vec());
            }
            assert!(values[1].len() > 1, "{law} {arithmetic}: {values:?}");
        }
    }
}

#[test]
fn counters_agree_with_the_run() {
    let (sim, _, file) = capture(&everything(), &ALL, "counters");
    let (_, packets, counts) = read(&file);
    let ledger = sim.ledger();
    let sum = |of: fn(&Counts) -> u64| counts.iter().map(of).sum::<u64>();
    assert_eq!(sum(|c| c.dropped), ledger.dropped + ledger.lost);
    assert_eq!(packets.iter().filter(|p| p.lost).count() as u64, ledger.lost);
    // What a queue dropped is counted and not in the file.
    assert_eq!(sum(|c| c.received), packets.len() as u64 + ledger.dropped);
}

#[test]
fn a_capture_changes_nothing() {
    let n = everything();
    let (mut sim, ..) = capture(&n, &ALL, "same");
    assert_eq!(sim.summary(), run(&n).1);
    assert_eq!(sim.finish_capture(), Ok(None), "it has ended");
}

#[test]
fn only_the_links_that_were_asked_for() {
    let (_, report, file) = capture(&everything(), &CaptureOptions { links: vec![3], ..ALL }, "links");
    let (names, packets, counts) = read(&file);
    assert_eq!((names.as_slice(), counts.len()), (&["b:rev".to_string()][..], 1));
    assert!(report.packets > 100 && packets.iter().all(|p| p.interface == 0 && p.length < 100));
}

#[test]
fn a_short_snaplen_cuts_packets() {
    let (_, _, file) = capture(&everything(), &CaptureOptions { snaplen: 24, ..ALL }, "snaplen");
    let (_, packets, _) = read(&file);
    assert!(packets.iter().all(|p| p.bytes.len() == 24 && p.length > 24));
}

/// A full capture ends while the run continues, and its counters cover the whole run.
#[test]
fn a_full_capture_says_when() {
    let limit_bytes = 100_000;
    let (_, report, file) = capture(&everything(), &CaptureOptions { limit_bytes, ..ALL }, "full");
    let (_, packets, counts) = read(&file);
    let last_s = packets.last().expect("packets").time_ns as f64 * 1e-9;
    let full_s = report.full_at_s.expect("full");
    assert!(last_s <= full_s && full_s < 2.0);
    assert!((90_000..100_000 + 1_000).contains(&file.len()), "{}", file.len());
    let (_, _, all) = capture(&everything(), &ALL, "all");
    assert_eq!(counts, read(&all).2);
}

#[test]
fn a_file_that_cannot_be_written_is_one_sentence() {
    let mut sim = build(&everything());
    let folder = std::env::temp_dir();
    let error = sim.start_capture(&folder, &ALL).expect_err("a folder");
    assert!(error.starts_with(&format!("{}: cannot write a capture: ", folder.display())), "{error}");
    if Path::new("/dev/full").exists() {
        sim.start_capture(Path::new("/dev/full"), &ALL).expect("it opens");
        sim.advance(sim.end());
        let error = sim.finish_capture().expect_err("no space");
        assert!(error.starts_with("the capture could not be written: "), "{error}");
    }
}
