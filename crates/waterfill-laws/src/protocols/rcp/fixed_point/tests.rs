//! Comparison of the fixed-point version of RCP with the law in real numbers, in 10⁵ calls with the same inputs.

use super::*;
use crate::kernel::Value;
use crate::protocol::{Ack, Connection, LinkView, PacketKind, Passing, Sending};
use crate::protocols::rcp::{Header, WireRate};
use crate::registry::{AnyHeader, AnyParams, AnyRouter};
use crate::testing::{
    self, Signals, answer_to, close, connection, echo_of, header_of, numbers, spread, value_of, value_with,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// Returns a router's rate R and mean RTT d̂.
fn shown(router: &AnyRouter) -> (f64, f64) {
    let signals = Signals::of(|probe| router.observe(probe));
    (signals.get("rate"), signals.get("mean_rtt"))
}

fn real_and_fixed(params: &Params) -> [AnyParams; 2] {
    testing::real_and_fixed(|arithmetic| AnyParams::Rcp(Params { arithmetic, ..params.clone() }))
}

/// Returns the wire value with the given codes of a rate and of an RTT.
fn value(code: u32, rtt_code: u32) -> Value {
    let mut value = value_with(code);
    value[3..5].copy_from_slice(&rtt_code.to_be_bytes()[2..]);
    value
}

/// Returns the rate in a header, in bit/s.
fn rate_of(header: &AnyHeader) -> f64 {
    match header {
        AnyHeader::Rcp(header) => f64::from(header.rate.0),
        kernel => {
            let [a, b, c, ..] = value_of(kernel);
            1e15 * (-f64::from(u32::from_be_bytes([0, a, b, c])) / f64::from(1 << 18)).exp()
        }
    }
}

/// Returns the RTT that a code represents, in µs.
fn rtt_of(code: u32) -> u64 {
    ((2048 + u64::from(code & 2047)) << (code >> 11)) >> 11
}

/// Returns the RTT code that a source of the kernel writes into its packets.
fn stated(rtt: Duration) -> u32 {
    let [_, params] = real_and_fixed(&Params::default());
    let mut source = params.source(&connection());
    source.on_ack(&Ack::new(Instant::ZERO, &echo_of::<Rcp>(value(0, 0)), rtt));
    let header = source.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, Volume::from_bytes(1500.0)));
    let [.., a, b] = *value_of(&header).first_chunk::<5>().expect("a value is longer");
    u32::from_be_bytes([0, 0, a, b])
}

/// Codes of RTTs are exact to half a step of 2⁻¹¹, from 2 µs to 8.4 s.
#[test]
fn codes_of_rtts() {
    assert_eq!(stated(Duration::from_micros(1)), stated(Duration::from_micros(2)));
    assert_eq!(rtt_of(stated(Duration::from_micros(3))), 3);
    let mut random = numbers(3);
    for _ in 0..10_000 {
        let rtt = spread(&mut random, 2.0, 8.3e6);
        let code = stated(Duration::from_micros(rtt));
        // A decoder truncates to a whole microsecond.
        close(rtt_of(code) as f64, rtt as f64, 0.5 / 2048.0 + if rtt > 2048 { 1.0 / rtt as f64 } else { 0.0 });
    }
    assert_eq!(rtt_of(stated(Duration::from_millis(60_000))), 1 << 23);
}

/// `[rcp-2006:R, d, path]` The real and the fixed-point router agree on d̂ within 2·10⁻⁶, and on R and its codes within
/// the precision of their steps.
#[test]
fn routers_agree() {
    let mut random = numbers(1);
    for _ in 0..100 {
        let t_us = 1000 * (1 + random(10));
        let params = Params {
            alpha: spread(&mut random, 100.0, 1000.0) as f64 / 1e3,
            beta: random(2000) as f64 / 1e3,
            max_interval: Duration::from_micros(t_us),
            first_rtt: Duration::from_micros(200_000),
            average: [Average::Traffic, Average::Reluctant][random(2) as usize],
            ..Params::default()
        };
        let capacity = spread(&mut random, 1e7, 1e12) as f64;
        let target = (random(4) == 0).then_some(0.9);
        let mut link = LinkView { id: 0, capacity: Rate::from_bps(capacity), target, queue: Volume::ZERO };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| params.router(&link));
        let t = params.max_interval.as_secs();
        let volume = capacity * t / 8.0;
        let mut off = 1e-6 + 1.0 / 1024.0 / shown(&real).0;
        for _ in 0..1000 {
            let rtt_code = (14 << 11) + random(5 << 11) as u32; // 16 to 520 ms, longer than T
            let rtt_us = if random(5) == 0 { 0 } else { rtt_of(rtt_code) as u32 };
            let kind = [PacketKind::Data, PacketKind::Data, PacketKind::Other][random(3) as usize];
            let bytes = (volume * random(100) as f64 / 100.0).round();
            let asked = [1e30, capacity * (1 + random(2000)) as f64 / 1e3][random(2) as usize];
            let rates = [&mut real, &mut fixed].map(|router| {
                let mut header = if matches!(router, AnyRouter::Rcp(_)) {
                    AnyHeader::Rcp(Header { rate: WireRate::of(Rate::from_bps(asked)), rtt: rtt_us })
                } else {
                    let code = (-(asked / 1e15).ln() * f64::from(1 << 18)).floor().max(0.0) as u32;
                    header_of::<Rcp>(value(code, if rtt_us == 0 { 0 } else { rtt_code }))
                };
                let header_seen = (kind == PacketKind::Data).then_some(&mut header);
                let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes));
                router.on_arrival(&link, &mut Passing { now, volume, packets: 1.0, kind, header: header_seen });
                rate_of(&header)
            });
            if kind == PacketKind::Data {
                close(rates[1], rates[0], off + 6e-6);
            }
            if random(3) == 0 {
                link.queue = Volume::from_bytes((random(3) * random(1 + volume as u64)) as f64);
                let before = shown(&real).0;
                for router in [&mut real, &mut fixed] {
                    router.on_timer(&link, Instant::ZERO);
                }
                let [real, fixed] = [&real, &fixed].map(shown);
                close(fixed.1, real.1, 2e-6);
                let ratio = real.0 / before;
                // Three volumes in 2⁻⁸ B, growth in 2⁻³², R in 2⁻¹⁰ bit/s, and d̂ twice.
                let step = 3.0 / 256.0 / (capacity * real.1 / 8.0) + 2.4e-10 + 1.0 / 1024.0 / before;
                let growth = 4e-6 * (1.0 + params.beta) * t / real.1 * (1.0 + link.queue.as_bytes() / volume);
                off += (step + growth) / ratio.min(1.0);
                close(fixed.0, real.0, off);
                off = if real.0 == capacity * target.unwrap_or(1.0) { 1e-6 } else { off };
            }
        }
    }
}

/// A source sends at the rate of the code within 1.2·10⁻⁶ and 1 bit/s, and keeps its rate if no router wrote one.
#[test]
fn a_source_sends_at_the_codes_rate() {
    let [_, params] = real_and_fixed(&Params::default());
    let mut source = params.source(&Connection { weight: 2.0, ..connection() });
    assert_eq!(source.limit().window, Some(connection().initial_window));
    let mut answer = |code| {
        source.on_ack(&Ack::new(Instant::ZERO, &echo_of::<Rcp>(value(code, 0)), Duration::from_millis(40)));
        source.limit()
    };
    assert_eq!(answer(0).window, Some(connection().initial_window));
    let mut random = numbers(4);
    for _ in 0..10_000 {
        let code = 1 + random((1 << 23) - 1) as u32;
        let rate = answer(code).pacing.unwrap().as_bps() / 2.0;
        let exact = 1e15 * (-f64::from(code) / f64::from(1 << 18)).exp();
        assert!((rate - exact).abs() < 1.0 + 1.2e-6 * exact, "{rate} and {exact}");
    }
    let last = answer(1000);
    assert_eq!(answer(0), last);
}

/// The receiver echoes the last rate it received.
#[test]
fn the_last_value_is_echoed() {
    let [_, params] = real_and_fixed(&Params::default());
    assert_eq!(answer_to::<Rcp>(&params, &[value(5, 7), value(9, 7)]), value(9, 0));
}
