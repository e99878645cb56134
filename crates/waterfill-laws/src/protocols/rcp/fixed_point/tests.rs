//! The fixed-point version against the law in real numbers, by 10⁵ calls of both with the same inputs.

use super::*;
use crate::arithmetic::Arithmetic;
use crate::params::Params as _;
use crate::protocol::{Ack, Connection, LinkView, PacketKind, Passing, Protocol, Router as _, Sending, Source as _};
use crate::testing::{close, connection, echo_after, numbers, spread};
use crate::units::Duration;
use crate::units::{Instant, Rate, Volume};

/// Records the signals of a router: R and d̂.
#[derive(Default)]
struct Signals(f64, f64);

impl Probe for Signals {
    fn record(&mut self, signal: &'static str, value: f64) {
        *if signal == "rate" { &mut self.0 } else { &mut self.1 } = value;
    }
}

fn signals(router: &<Rcp as Protocol>::Router) -> Signals {
    let mut signals = Signals::default();
    router.observe(&mut signals);
    signals
}

fn real_and_fixed(params: &Params) -> [Params; 2] {
    let both = [Arithmetic::Real, Arithmetic::Kernel].map(|arithmetic| Params { arithmetic, ..params.clone() });
    for params in &both {
        params.validate().unwrap();
    }
    both
}

/// The RTT of a code, in µs.
fn rtt_of(code: u32) -> u64 {
    ((2048 + u64::from(code & 2047)) << (code >> 11)) >> 11
}

/// What a source of the kernel states for an RTT.
fn stated(rtt: Duration) -> u32 {
    let [_, params] = real_and_fixed(&Params::default());
    let mut source = <Rcp as Protocol>::Source::new(&params, &connection());
    source.on_ack(&Ack::new(Instant::ZERO, Rcp::echo_of(&value(0, 0)), rtt));
    source.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, Volume::from_bytes(1500.0))).rtt_us
}

/// Within half of a step of 2⁻¹¹, from 2 µs to 8.4 s.
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

/// `[rcp-2006:R, d, path]` d̂ within 2·10⁻⁶; R by its steps; codes within the code's 3.8·10⁻⁶ of R.
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
        let [mut real, mut fixed] =
            real_and_fixed(&params).map(|params| <Rcp as Protocol>::Router::new(&params, &link));
        let t = params.max_interval.as_secs();
        let volume = capacity * t / 8.0;
        let mut off = 1e-6 + 1.0 / 1024.0 / signals(&real).0;
        for _ in 0..1000 {
            let rtt_code = (14 << 11) + random(5 << 11) as u32; // 16 to 520 ms, longer than T
            let rtt_us = if random(5) == 0 { 0 } else { rtt_of(rtt_code) as u32 };
            let kind = [PacketKind::Data, PacketKind::Data, PacketKind::Other][random(3) as usize];
            let bytes = (volume * random(100) as f64 / 100.0).round();
            let asked = [1e30, capacity * (1 + random(2000)) as f64 / 1e3][random(2) as usize];
            let rates = [&mut real, &mut fixed].map(|router| {
                let is_real = matches!(router, crate::arithmetic::RealOrFixed::Real(_));
                let mut header = if is_real {
                    Header { rate: WireRate::of(Rate::from_bps(asked)), rtt_us }
                } else {
                    let code = (-(asked / 1e15).ln() * f64::from(1 << 18)).floor().max(0.0) as u32;
                    Rcp::header_of(&value(code, if rtt_us == 0 { 0 } else { rtt_code }))
                };
                let header_seen = (kind == PacketKind::Data).then_some(&mut header);
                let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes));
                router.on_arrival(&link, &mut Passing { now, volume, packets: 1.0, kind, header: header_seen });
                header
                    .rate
                    .code()
                    .map_or(f64::from(header.rate.0), |code| 1e15 * (-f64::from(code) / f64::from(1 << 18)).exp())
            });
            if kind == PacketKind::Data {
                close(rates[1], rates[0], off + 6e-6);
            }
            if random(3) == 0 {
                link.queue = Volume::from_bytes((random(3) * random(1 + volume as u64)) as f64);
                let before = signals(&real).0;
                for router in [&mut real, &mut fixed] {
                    router.on_timer(&link, Instant::ZERO);
                }
                let [real, fixed] = [&real, &fixed].map(signals);
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

/// A source sends at the rate of the code within 1.1·10⁻⁶ and a bit/s, and keeps it if no router wrote.
#[test]
fn a_source_sends_at_the_codes_rate() {
    let [_, params] = real_and_fixed(&Params::default());
    let mut source = <Rcp as Protocol>::Source::new(&params, &Connection { weight: 2.0, ..connection() });
    assert_eq!(source.limit().window, Some(connection().initial_window));
    let mut answer = |code| {
        source.on_ack(&Ack::new(Instant::ZERO, Rcp::echo_of(&value(code, 0)), Duration::from_millis(40)));
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

/// Values of both directions through header and echo; a rate in real numbers is no value.
#[test]
fn values_travel_in_headers() {
    for (code, rtt) in [(0, 0), (1, 2048), (0xff_ffff, 0xffff)] {
        assert_eq!(Rcp::value_of(&Rcp::header_of(&value(code, rtt))), Some(value(code, rtt)));
        assert_eq!(Rcp::value_of_echo(&Rcp::echo_of(&value(code, 0))), Some(value(code, 0)));
        assert_eq!(Rcp::header_of(&value(code, rtt)).rate.rate(), None);
    }
    assert_eq!(Rcp::value_of(&Header::default()), None);
    assert_eq!(Rcp::value_of_echo(&Echo::default()), None);
    let [_, params] = real_and_fixed(&Params::default());
    let echo = echo_after::<Rcp>(&params, &[Rcp::header_of(&value(5, 7)), Rcp::header_of(&value(9, 7))]);
    assert_eq!(Rcp::value_of_echo(&echo), Some(value(9, 0)));
}
