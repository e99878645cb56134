//! Comparison of the fixed-point versions of XCP, P-XCP and iXCP with the laws in real numbers.

mod routers;

use super::*;
use crate::kernel::{Packet, Tcp, VALUE_MAX, Value, Words};
use crate::params::Params as _;
use crate::protocol::{Ack, Connection, Event};
use crate::protocols::xcp::{Echo, Header};
use crate::registry::{AnyEcho, AnyHeader, AnyParams};
use crate::testing::{echo_of, numbers, value_of};
use crate::units::{Duration, Instant, Volume};

/// Unit of an RTT code in seconds; `TIME_UNIT` is the unit of a time per byte.
const RTT_UNIT: f64 = 1.0 / (1 << 24) as f64;
const TIME_UNIT: f64 = 1.0 / (1_u64 << 52) as f64;
/// Code of zero feedback; `CODE_BPS` is one code in bit/s.
const ZERO: i64 = 1 << 39;
const CODE_BPS: f64 = 8.0 / 256.0;

/// Returns the nearest 24-bit code of a number (`kernel/float.h`). [`number`] is the inverse.
fn code(number: f64) -> u32 {
    let shift = (number.log2().floor() as i32 - 19).max(0);
    ((number / 2_f64.powi(shift)).round() as u32 + ((shift as u32) << 19)).min((1 << 24) - 1)
}

fn number(code: u32) -> f64 {
    let (exponent, fraction) = (code >> 19, code % (1 << 19));
    if exponent == 0 { f64::from(fraction) } else { f64::from(fraction + (1 << 19)) * 2_f64.powi(exponent as i32 - 1) }
}

/// Returns the wire value of a data packet, from codes of its RTT and time per byte, and a feedback in bit/s.
fn value(rtt_code: u32, time_code: u32, given: Option<f64>) -> Value {
    let feedback = given.map_or(0, |bps| ZERO + (bps / CODE_BPS).round() as i64);
    let mut value = [0; VALUE_MAX];
    value[..3].copy_from_slice(&rtt_code.to_be_bytes()[1..]);
    value[3..6].copy_from_slice(&time_code.to_be_bytes()[1..]);
    value[6..11].copy_from_slice(&feedback.to_be_bytes()[3..]);
    value
}

/// Returns the feedback in a value, in codes; `None` if no router wrote it.
fn feedback_codes(value: &Value) -> Option<i64> {
    let code = value[6..11].iter().fold(0, |code, &byte| code << 8 | i64::from(byte));
    (code != 0).then_some(code - ZERO)
}

#[test]
fn codes_are_within_their_precision() {
    let mut random = numbers(1);
    for _ in 0..10_000 {
        let x = crate::testing::spread(&mut random, 1.0, 1e15) as f64;
        assert!((number(code(x)) / x - 1.0).abs() <= 1.0 / f64::from(1 << 20), "{x}");
    }
}

fn real_and_fixed(params: &Params) -> [Params; 2] {
    [Arithmetic::Real, Arithmetic::Kernel].map(|arithmetic| Params { arithmetic, ..params.clone() })
}

/// Returns the wire value of an echo with a total in 2⁻⁸ bytes.
fn total_of(total: i64) -> Value {
    let bits: u64 = 1 << 47 | (total as u64 & ((1 << 47) - 1));
    let mut value = [0; VALUE_MAX];
    value[..6].copy_from_slice(&bits.to_be_bytes()[2..]);
    value
}

/// `[katabi-2002:cwnd]` The real and the fixed-point source have the same window in 2⁻⁸ bytes, except for half a unit
/// per halving. The X that packets state agrees within the precision of the codes, 2⁻¹⁹.
#[test]
fn sources_agree() {
    let mut random = numbers(2);
    for _ in 0..100 {
        let packet = Volume::from_bytes((500 + random(8000)) as f64);
        let weight = [0.5, 1.0, 2.0][random(3) as usize];
        let connection = Connection {
            weight,
            packet,
            initial_window: 10.0 * packet,
            claimed_rtt: None,
            path: crate::protocol::PathView::UNKNOWN,
            validation: crate::protocol::Validation::Off,
            seed: 0,
        };
        let params = Params { first_window: (1 + random(100)) as f64, ..Params::default() };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| AnyParams::Xcp(params).source(&connection));
        let rtt = Duration::from_micros(20 + random(500_000));
        let (mut total, mut halvings) = (0, 0.0);
        for _ in 0..1000 {
            match random(200) {
                0 => [&mut real, &mut fixed].map(|s| s.on_event(Instant::ZERO, Event::Timeout)),
                1 | 2 => {
                    halvings += 1.0;
                    [&mut real, &mut fixed].map(|s| s.on_event(Instant::ZERO, Event::Loss))
                }
                _ => [(), ()],
            };
            let change = (random(1 << 22) as i64 - (1 << 21)) * i64::from(random(4) > 0);
            total += change;
            let in_flight = packet * (random(100) as f64);
            let echoes = [AnyEcho::Xcp(Echo::Window(change as f32 / 256.0)), echo_of::<Xcp>(total_of(total))];
            for (source, echo) in [&mut real, &mut fixed].into_iter().zip(&echoes) {
                source.on_ack(&Ack { in_flight, acked: packet, ..Ack::new(Instant::ZERO, echo, rtt) });
            }
            let [a, b] = [&real, &fixed].map(|source| source.limit().window.unwrap().as_bytes());
            assert!((a - b).abs() <= 1.0 + halvings / 512.0, "{a} and {b} after a change of {change}");
            let sending = crate::protocol::Sending::new(Instant::ZERO, crate::protocol::PacketKind::Data, packet);
            let [stated, code] = [&mut real, &mut fixed].map(|source| source.stamp(&sending));
            let AnyHeader::Xcp(stated) = stated else { unreachable!("a real law's") };
            let bytes = value_of(&code);
            let time = number(u32::from_be_bytes([0, bytes[3], bytes[4], bytes[5]])) * TIME_UNIT;
            let (x, stated_x) = (time * packet.as_bytes(), stated.x(packet, 1.0));
            // Half a unit of the RTT and one of the time, and windows that differ as above; whole bytes are shown.
            let bound = 2e-6 + 0.5 * RTT_UNIT / rtt.as_secs() + TIME_UNIT / time + 2.0 * (a - b).abs() / a;
            assert!((x / stated_x - 1.0).abs() < bound, "{x} and {stated_x}");
        }
    }
}

/// The receiver's total is the sum of feedback times RTT, over all segments of merged packets. Each packet's part is
/// rounded to the nearest 2⁻¹⁶ bytes, and an echo shows whole 2⁻⁸ bytes.
#[test]
fn receivers_sum_all_feedback() {
    let mut random = numbers(3);
    let law = Xcp::law();
    let params = law.params(&Params::default().kernel_numbers());
    for _ in 0..100 {
        let mut receiver = law.receiver();
        let (mut sum, mut parts) = (0.0, 0.0);
        for _ in 0..1000 {
            let rtt_code = code(((1 << 10) + random(1 << 24)) as f64);
            let bps = (random(1 << 31) as f64 - 2_f64.powi(30)) * CODE_BPS / 2_f64.powi(random(30) as i32);
            let segments = 1 + random(2) * random(40);
            let packet = value(rtt_code, code(1e6), Some(bps));
            let codes = feedback_codes(&packet).unwrap();
            law.receive(&params, &mut receiver, 0, 0, &packet, segments as u32);
            sum += codes as f64 / 256.0 * number(rtt_code) * RTT_UNIT * segments as f64;
            parts += segments as f64;
        }
        let echo = law.echo(&mut receiver);
        let total = echo[..6].iter().fold(0, |total, &byte| total << 8 | i64::from(byte));
        assert_eq!(total >> 47, 1, "heard");
        let total = ((total << 17 >> 17) as f64) / 256.0; // 47 bits with a sign
        assert!((total - sum).abs() < 1.0 / 256.0 + parts / f64::from(1 << 17), "{total} and {sum}");
    }
}

/// A receiver ignores a value that no router wrote, and keeps its total. A SYN's value states no RTT, but an echo shows
/// that a router wrote the value.
#[test]
fn a_written_zero_differs_from_unwritten() {
    let law = Xcp::law();
    let params = law.params(&Params::default().kernel_numbers());
    let mut receiver = law.receiver();
    law.receive(&params, &mut receiver, 0, 0, &law.request(&params), 1);
    assert_eq!(law.echo(&mut receiver), [0; VALUE_MAX]);
    let (mut link, mut cpu, mut syn) = (law.link(), law.cpu(), law.request(&params));
    law.link_set(&mut link, &params, 1_000_000, 0);
    assert!(law.mark(&mut link, &mut cpu, &Packet { bytes: 60, segments: 1, syn: 1 }, &mut syn));
    assert_eq!(feedback_codes(&syn), Some(0));
    law.receive(&params, &mut receiver, 0, 0, &syn, 1);
    let echo = law.echo(&mut receiver);
    assert!(law.heard(&echo) && echo[1..] == [0; VALUE_MAX - 1]);
    // A second router leaves the zero.
    assert!(!law.mark(&mut link, &mut cpu, &Packet { bytes: 60, segments: 1, syn: 1 }, &mut syn));
}

/// Returns a source in a steady state with this window and RTT.
fn steady(window: u64, rtt_us: u32) -> (Words, Words, Tcp) {
    let law = Xcp::law();
    let params = law.params(&Params { first_window: 1.0, ..Params::default() }.kernel_numbers());
    let mut source = law.source();
    law.source_init(&params, &mut source, 1000, 0);
    let tcp = Tcp { srtt_us: rtt_us * 8, packet: 1000, in_flight: 1 << 30, ..Tcp::default() };
    law.ack(&params, &mut source, &tcp, Some(&total_of((window as i64 - 1000) << 8)));
    assert_eq!(law.limit(&mut source, &tcp).window, window);
    (params, source, tcp)
}

/// Totals wrap at 2⁴⁷, which is 2³⁹ bytes, and the window keeps following them.
#[test]
fn totals_wrap() {
    let law = Xcp::law();
    let (params, mut source, tcp) = steady(1 << 20, 100_000);
    for total in [1_i64 << 45, 1 << 46, 3 << 45, (1 << 47) - 1, (1 << 47) + 255] {
        law.ack(&params, &mut source, &tcp, Some(&total_of(total)));
        assert_eq!(law.limit(&mut source, &tcp).window, 1000 + (total >> 8) as u64);
    }
}

/// Feedback of −5 % per RTT is evidence of a standing queue. Zero feedback, a small loss and a gain are no evidence.
#[test]
fn a_falling_total_is_evidence() {
    let law = Xcp::law();
    for (change, tightens) in [(-0.05, true), (0.0, false), (0.05, false), (-0.002, false)] {
        let (params, mut source, tcp) = steady(1 << 20, 100_000);
        let mark = law.evidence(&source);
        let total = (((1 << 20) - 1000) << 8) + (4.0 * change * 2_f64.powi(28)) as i64;
        law.ack(&params, &mut source, &tcp, Some(&total_of(total)));
        assert_eq!(law.tightens(&source, mark, 400_000), tightens, "{change}");
    }
}

#[test]
fn a_reduction_is_of_the_window() {
    let (_, mut source, tcp) = steady(1 << 20, 100_000);
    Xcp::law().reduce(&mut source, 4);
    assert_eq!(Xcp::law().limit(&mut source, &tcp).window, 15 << 16);
    // Window over RTT.
    let rate = Xcp::law().limit(&mut source, &tcp).rate as f64;
    crate::testing::close(rate, f64::from(15 << 16) * 80.0, 1e-5);
}
