//! Tests of the Wireshark dissector in `packaging/wireshark`, with tshark. They decode every law's option from the
//! laws' own code, malformed options, and a capture of the daemon's connections.

#![cfg(feature = "daemon")]

mod common;
#[path = "dissector/tshark.rs"]
mod tshark;

use tshark::Capture;
use waterfill_laws::kernel::option::{encode, encode_syn_ack};
use waterfill_laws::kernel::{KernelLaw, Packet, Tcp, VALUE_MAX, Value};
use waterfill_laws::registry::{ProtocolId, kernel_protocols};

const CAPACITY: u64 = 1_000_000_000;
const PACKET: u32 = 1500;
const RTT_US: u32 = 40_000;

/// State of a law's own code after 200 ticks of a nearly full link, with the last values on the path.
struct Path {
    forward: Value,
    echo: Value,
    link: [u64; 4],
    source: [u64; 4],
    receiver: u64,
    /// Amount that the last packet added to the receiver's signal, in the law's unit.
    gained: i64,
}

fn path(law: &KernelLaw, params: &[(&str, u64)]) -> Path {
    let params = law.params(params);
    let (mut link, mut cpu, mut source, mut receiver) = (law.link(), law.cpu(), law.source(), law.receiver());
    law.link_set(&mut link, &params, CAPACITY, 0);
    law.source_init(&params, &mut source, PACKET, 10 * u64::from(PACKET));
    let mut tcp = Tcp {
        srtt_us: 8 * RTT_US,
        base_rtt_us: RTT_US,
        packet: PACKET,
        payload: PACKET,
        max_segments: 1,
        unlimited: 1,
        in_flight: 1000,
        acked: 1,
        window_limited: 1,
        ..Tcp::default()
    };
    law.ack(&params, &mut source, &tcp, None);
    let (mut forward, mut echo, mut gained) = ([0; VALUE_MAX], [0; VALUE_MAX], 0);
    let mut counted = law.sums();
    for _ in 0..200 {
        let interval_us = u64::from(law.interval(&link));
        tcp.now_us += interval_us;
        cpu.set(0, cpu.words()[0] + CAPACITY / 8 * interval_us / 1_000_000);
        let mut sums = law.sums();
        for word in 0..sums.words().len() {
            sums.set(word, cpu.words()[word] - counted.words()[word]);
            counted.set(word, cpu.words()[word]);
        }
        law.tick(&mut link, &sums, 0);
        forward = law.forward(&params, &mut source);
        let packet = Packet { bytes: u64::from(PACKET), segments: 1, syn: 0 };
        law.mark(&mut link, &mut cpu, &packet, &mut forward);
        let before = law.receiver_signal(&receiver);
        law.receive(&params, &mut receiver, tcp.now_us, RTT_US, &forward, 1);
        gained = law.receiver_signal(&receiver) as i64 - before as i64;
        echo = law.echo(&mut receiver);
        law.ack(&params, &mut source, &tcp, Some(&echo));
    }
    let (link, source) = (law.link_signals(&link), law.source_signals(&source));
    Path { forward, echo, link, source, receiver: law.receiver_signal(&receiver), gained }
}

/// Returns the dissector fields expected for a path's last values, from the state of router, receiver and source.
fn meaning(name: &str, path: &Path) -> Vec<(&'static str, f64)> {
    let two = |exponent: i32| 2_f64.powi(exponent);
    let link = path.link.map(|n| n as f64);
    let rtt_s = f64::from(RTT_US) / 1e6;
    match name {
        "maxnet" => {
            let [price, average] = [link[3] / two(18), path.receiver as f64 / two(58)];
            let demand = |price: f64| 1e15 * (-price / 0.4).exp();
            vec![
                ("waterfill.price", price),
                ("waterfill.demand", demand(price)),
                ("waterfill.echo.price", average),
                ("waterfill.echo.demand", demand(average)),
            ]
        }
        "maxnet2006" => vec![("waterfill.price", link[0] / two(34)), ("waterfill.echo.price", link[0] / two(34))],
        "aecp" => {
            let rate = 0.25 * (path.source[0] as f64).mul_add(-two(-10), 65535.0 / 1024.0).exp2();
            vec![("waterfill.packet_rate", rate), ("waterfill.echo.packet_rate", rate)]
        }
        "rcp" => {
            let rate = link[0] / two(10);
            vec![("waterfill.rate", rate), ("waterfill.rtt", rtt_s), ("waterfill.echo.rate", rate)]
        }
        "vcp" => vec![("waterfill.load", link[0]), ("waterfill.echo.load", link[0])],
        "jetmax" => vec![
            ("waterfill.target", link[0]),
            ("waterfill.echo.target", link[0]),
            ("waterfill.weight", 1.0),
            ("waterfill.hops", 1.0),
            ("waterfill.bottleneck", path.source[1] as f64),
            ("waterfill.next_bottleneck", 1.0),
        ],
        // The receiver adds feedback times RTT, in 2^-8 bytes; the source reads the sum.
        _ => vec![
            ("waterfill.rtt", rtt_s),
            ("waterfill.feedback", path.gained as f64 / 256.0 / rtt_s * 8.0),
            ("waterfill.echo.total", path.source[2] as i64 as f64 / 256.0),
        ],
    }
}

/// Returns the maximum error of a field: half a step of its code, or the rounding of tshark's 15 digits.
fn tolerance(field: &str) -> f64 {
    match field {
        "waterfill.rtt" => 3e-4,                              // RCP's has 11 bits
        "waterfill.demand" | "waterfill.echo.demand" => 1e-5, // half of 2^-18 s over T
        "waterfill.feedback" => 0.02,                         // the receiver's sum is rounded to 2^-8 bytes
        _ => 4e-6,
    }
}

#[test]
fn values_of_every_law_are_those_of_its_own_code() {
    let mut capture = Capture::default();
    let mut expected = Vec::new();
    for (name, form) in kernel_protocols() {
        let law = form.law();
        let path = path(law, &form.recorded()[0]);
        assert!(law.heard(&path.echo), "{name}: the link has written");
        capture.add(encode(law, Some(&path.forward), None).unwrap().as_bytes());
        capture.add(encode(law, None, Some(&path.echo)).unwrap().as_bytes());
        capture.add(encode(law, Some(&path.forward), Some(&path.echo)).unwrap().as_bytes());
        expected.push((name, meaning(name, &path)));
    }
    let Some(decoded) = capture.decoded() else { return };
    for ((name, meaning), packets) in expected.iter().zip(decoded.chunks(3)) {
        for (role, packet) in ["forward", "echo", "both"].iter().zip(packets) {
            assert_eq!(packet.word("_ws.expert.message"), None, "{name} {role}");
            assert!(packet.contains("waterfill.law", name) && packet.contains("waterfill.role", role), "{packet:?}");
            for &(field, value) in meaning {
                let is_echo = field.starts_with("waterfill.echo.");
                let present = *role == "both" || (*role == "echo") == is_echo;
                let found = packet.number(field);
                assert_eq!(found.is_some(), present, "{name} {role}: {field}");
                let Some(found) = found else { continue };
                let error = (found - value).abs() / value.abs().max(1e-9);
                assert!(error < tolerance(field), "{name} {role}: {field} is {found}, not {value}");
            }
        }
    }
}

#[test]
fn start_rates_are_shown_on_syns() {
    let form = ProtocolId::MaxNet.kernel().unwrap();
    let law = form.law();
    let params = law.params(&form.recorded()[0]);
    let (mut link, mut cpu, mut receiver) = (law.link(), law.cpu(), law.receiver());
    law.link_set(&mut link, &params, CAPACITY, 900_000);
    let asked = law.request(&params);
    let mut granted = asked;
    law.mark(&mut link, &mut cpu, &Packet { bytes: 60, segments: 1, syn: 1 }, &mut granted);
    law.receive(&params, &mut receiver, 0, 0, &granted, 1);
    let answer = law.echo(&mut receiver);
    let mut capture = Capture::default();
    capture.add_syn(encode(law, Some(&asked), None).unwrap().as_bytes());
    capture.add_syn(encode(law, Some(&granted), None).unwrap().as_bytes());
    capture.add_syn(encode_syn_ack(law, &asked, &answer).unwrap().as_bytes());
    let Some(decoded) = capture.decoded() else { return };
    // An idle link grants what it aims at: (mu + (1 - mu) / 4) C (maxnet.h, start_share).
    let share = 0.925 * CAPACITY as f64;
    assert_eq!(decoded[0].number("waterfill.start_rate"), None);
    assert_eq!(decoded[0].number("waterfill.written"), Some(0.0));
    for (packet, field) in [(1, "waterfill.start_rate"), (2, "waterfill.echo.start_rate")] {
        let found = decoded[packet].number(field).unwrap();
        assert!((found / share - 1.0).abs() < 1e-5, "{field}: {found}");
    }
    assert_eq!(decoded[2].number("waterfill.start_rate"), None, "the server's own request");
}

#[test]
fn malformed_options_are_reported_and_others_left_alone() {
    let mut capture = Capture::default();
    let option =
        |law: u8, role: u8, value: &[u8]| [&[253, 5 + value.len() as u8, 0x57, 0x46, 4 * law + role], value].concat();
    let cases = [
        (option(0, 1, &[0; 2]), Some("7 bytes; MaxNet has 8 for forward")),
        (option(7, 2, &[0; 11]), Some("16 bytes; iXCP has 13 for echo")),
        (vec![253, 4, 0x57, 0x46], Some("The option ends before its type")),
        (option(0, 0, &[0; 3]), Some("A type without a value")),
        (option(63, 1, &[0; 3]), Some("A law of an unknown number")),
        (option(0, 3, &[0, 0, 0, 0, 0, 0, 1]), Some("Padding that is not zero")),
        (option(2, 1, &[1, 0, 0]), Some("A value beyond the law's range")),
        (option(4, 1, &[0, 0, 4]), Some("A value beyond the law's range")),
        (vec![42, 9, 0, 0, 1, 0, 0, 2, 0], Some("9 bytes; the papers' form has 8")),
        // The papers' form, two options in one packet after padding, and experiments of others: TCP Fast Open.
        (vec![42, 8, 0, 0, 1, 0, 0, 2], None),
        ([&[1, 1][..], &option(0, 1, &[0, 0, 3]), &option(3, 2, &[0, 0, 1])].concat(), None),
        (vec![253, 12, 0xf9, 0x89, 1, 2, 3, 4, 5, 6, 7, 8], None),
        (vec![254, 8, 0x57, 0x46, 1, 0, 0, 1], None),
    ];
    for (option, _) in &cases {
        capture.add(option);
    }
    let Some(decoded) = capture.decoded() else { return };
    for ((option, report), packet) in cases.iter().zip(&decoded) {
        assert_eq!(packet.word("_ws.expert.message"), *report, "{option:?}: {packet:?}");
    }
    let step = 2_f64.powi(-18);
    assert_eq!(decoded[9].number("waterfill.price"), Some(2.0 * step));
    assert_eq!(decoded[9].number("waterfill.echo.price"), Some(step));
    assert_eq!(decoded[10].number("waterfill.price"), Some(3.0 * step));
    assert!(decoded[10].number("waterfill.echo.rate").is_some());
    for other in &decoded[11..] {
        assert!(other.word("waterfill.law").is_none(), "{other:?}");
    }
}
