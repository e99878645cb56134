//! Comparison of the fixed-point version of JetMax with the law in real numbers, in 10⁵ calls with the same inputs.

use super::*;
use crate::kernel::{VALUE_MAX, Value};
use crate::protocol::{Ack, LinkView, PacketKind, Passing, SendLimit};
use crate::protocols::jetmax::{Echo, Header, single};
use crate::registry::{AnyEcho, AnyHeader, AnyParams};
use crate::testing::{self, Signals, connection, echo_of, header_of, numbers, spread, value_of};
use crate::units::{Duration, Instant, Rate, Volume};

fn real_and_fixed(params: &Params) -> [AnyParams; 2] {
    testing::real_and_fixed(|arithmetic| AnyParams::JetMax(Params { arithmetic, ..params.clone() }))
}

/// Number of fraction bits of a 24-bit code (`FLOAT_FRACTION_BITS`).
const FRACTION_BITS: u32 = 19;

/// Returns the number that a 24-bit code at a byte offset of a value encodes (`kernel/float.h`).
fn number_at(value: &Value, at: usize) -> f64 {
    let code = u32::from_be_bytes([0, value[at], value[at + 1], value[at + 2]]);
    let (exponent, fraction) = (code >> FRACTION_BITS, code % (1 << FRACTION_BITS));
    match exponent {
        0 => f64::from(fraction),
        _ => f64::from(fraction + (1 << FRACTION_BITS)) * 2_f64.powi(exponent as i32 - 1),
    }
}

/// Writes the 24-bit code of a number that [`coded`] returned.
fn write_number(value: &mut Value, at: usize, number: f64) {
    let whole = number as u64;
    let shift = (u64::BITS - whole.leading_zeros()).saturating_sub(FRACTION_BITS + 1);
    let code = (whole >> shift) as u32 + (shift << FRACTION_BITS);
    value[at..at + 3].copy_from_slice(&code.to_be_bytes()[1..]);
}

/// Returns the weight that a byte encodes. [`weight_byte`] is the inverse.
fn weight_of(byte: u8) -> f64 {
    f64::from(16 + byte % 16) * 2_f64.powi(i32::from(byte / 16) - 8)
}

fn weight_byte(weight: f64) -> u8 {
    let whole = (weight * 256.0) as u32;
    let shift = (u32::BITS - whole.leading_zeros()).saturating_sub(5);
    ((shift << 4) + (whole >> shift)).saturating_sub(16) as u8
}

/// Packs R_T, R_S and R_N into two bytes, with 5 bits each.
fn routers(numbers: [u8; 3]) -> [u8; 2] {
    let [here, own, next] = numbers.map(u16::from);
    (here << 10 | own << 5 | next).to_be_bytes()
}

/// Returns the nearest rate that a 24-bit code can represent.
fn coded(rate: f64) -> f64 {
    let unit = 2_f64.powi((rate.log2().floor() as i32 - FRACTION_BITS as i32).max(0));
    (rate / unit).round() * unit
}

/// Packet of a flow, with headers for real and for kernel arithmetic.
#[derive(Clone, Copy)]
struct Packet {
    rate: f64,
    weight: f64,
    bytes: f64,
    bottleneck: u8,
    /// Share per unit of weight that an earlier router has written; `next` is the number of that router.
    share: f64,
    next: u8,
    hops: u8,
}

impl Packet {
    fn headers(&self) -> [AnyHeader; 2] {
        let &Self { rate, weight, bytes, bottleneck, share, next, hops } = self;
        let (interval, loss) = (single(weight * bytes * 8.0 / rate), single(1.0 - share * weight / rate));
        let loss = if next == 0 { 0.0 } else { loss };
        let mut value = [0; VALUE_MAX];
        write_number(&mut value, 0, rate);
        write_number(&mut value, 3, if next == 0 { 0.0 } else { share });
        value[9] = weight_byte(weight);
        value[10..12].copy_from_slice(&routers([hops, bottleneck, next]));
        let (rate, target) = (rate as f32, 0.0);
        [AnyHeader::JetMax(Header { rate, interval, loss, target, hops, bottleneck, next }), header_of::<JetMax>(value)]
    }
}

/// `[jetmax-2006:fair-rate, membership, W, loss]` The real and the fixed-point router agree on N, W, g and shares
/// within the precision of their numbers.
#[test]
fn routers_agree() {
    let mut random = numbers(31);
    for episode in 0..100 {
        let capacity = spread(&mut random, 1e6, 1e12) as f64;
        let interval = Duration::from_millis([10, 100, 1000][random(3) as usize]);
        let target = (random(4) == 0).then_some(0.9);
        let link = LinkView { id: 0, capacity: Rate::from_bps(capacity), target, queue: Volume::ZERO };
        let [mut real, mut fixed] =
            real_and_fixed(&Params { interval, ..Params::default() }).map(|params| params.router(&link));
        let volume = capacity * interval.as_secs() / 8.0;
        let own = random(3) > 0;
        let mut flows = 0.0;
        for _ in 0..10 {
            for _ in 0..100 {
                let hops = random(3) as u8;
                let rate = coded(capacity * (1 + random(1000)) as f64 / 1000.0);
                let packet = Packet {
                    rate,
                    weight: [1.0, 1.0, 0.5, 2.0][random(4) as usize],
                    bytes: (volume / 100.0 * (1 + random(200)) as f64 / 100.0).clamp(40.0, 1e6).round(),
                    bottleneck: if own { hops + random(2) as u8 } else { 0 },
                    share: coded(capacity * (1 + random(1000)) as f64 / 2000.0),
                    next: [0, hops][random(2) as usize],
                    hops,
                };
                let [mut a, mut b] = packet.headers();
                for (router, header) in [(&mut real, &mut a), (&mut fixed, &mut b)] {
                    let volume = Volume::from_bytes(packet.bytes);
                    let (now, kind, header) = (Instant::ZERO, PacketKind::Data, Some(header));
                    router.on_arrival(&link, &mut Passing { now, volume, packets: 1.0, kind, header });
                }
                let AnyHeader::JetMax(a) = a else { unreachable!("a real law's") };
                let b = value_of(&b);
                let [share, target] = [3, 6].map(|at| number_at(&b, at));
                let [hops, next] = [b[10] >> 2, b[11] & 31];
                assert_eq!(a.hops, hops);
                let close = |a: f64, b: f64| (a - b).abs() <= 4e-6 * a + 1.0 + 2e-6 * capacity / (flows + 0.5);
                assert!(close(a.target.into(), target), "episode {episode}: g {} and {target}", a.target);
                let shares = [(1.0 - f64::from(a.loss)) * rate / packet.weight, share];
                // The real law's loss is a single.
                let bound = 1e-7 * (rate + shares[0]) / packet.weight;
                assert!(close(shares[0], shares[1]) || (shares[0] - shares[1]).abs() < bound, "{episode}: {shares:?}");
                if packet.next == 0 || (shares[0] / packet.share - 1.0).abs() > 1e-3 {
                    assert_eq!(a.next, next);
                }
            }
            for router in [&mut real, &mut fixed] {
                router.on_timer(&link, Instant::ZERO);
            }
            let shown = [&real, &fixed].map(|router| Signals::of(|probe| router.observe(probe)));
            let [[n, n_fixed], [w, w_fixed], [g, g_fixed]] = ["flows", "unresponsive", "target"]
                .map(|name| shown.each_ref().map(|signals| signals.find(name).unwrap_or_default()));
            assert!((n - n_fixed).abs() <= 4e-6 * n + 2e-6, "N {n} and {n_fixed}");
            assert!((w - w_fixed).abs() <= 1.0, "W {w} and {w_fixed}");
            let off = 4e-6 * g + 2.0 + (1.0 + 2e-6 * g) / (n + 1e-6);
            assert!((g - g_fixed).abs() <= off, "g {g} and {g_fixed}");
            flows = n;
        }
    }
}

/// Encodes an echo with a rate, a share, a target, R_S and R_N.
fn echo_value(numbers: [f64; 3], [own, next]: [u8; 2]) -> Value {
    let mut value = [0; VALUE_MAX];
    for (at, number) in [0, 3, 6].into_iter().zip(numbers) {
        write_number(&mut value, at, number);
    }
    value[9..11].copy_from_slice(&routers([0, own, next]));
    value
}

/// `[jetmax-2006:source, switching]` The real and the fixed-point source choose the same router at the same time. Their
/// rates agree within 10⁻⁶ and 2 bit/s.
#[test]
fn sources_agree() {
    let mut random = numbers(32);
    let mut switches = 0;
    for _ in 0..100 {
        let params = Params {
            tau: (1 + random(15)) as f64 / 10.0,
            interval: Duration::from_millis(10 + random(100)),
            ..Params::default()
        };
        let weight = [1.0, 0.5, 3.0][random(3) as usize];
        let connection = crate::protocol::Connection { weight, ..connection() };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| params.source(&connection));
        let rtt = Duration::from_micros(100 + random(200_000));
        let (mut now, mut bottleneck, mut level) = (Instant::ZERO, 0, 1e8);
        for step in 0..1000 {
            now += rtt / 4;
            level = coded((level * (1.0 + (random(201) as f64 - 100.0) / 1000.0)).clamp(1e5, 1e10));
            let rate = coded(level * (50 + random(100)) as f64 / 100.0);
            // Not at the edges of ε and of `urgent`, where rounding decides.
            let share = coded(level * (90.37 + random(30) as f64) / 100.0);
            let target = if random(20) == 0 { 0.0 } else { level };
            // Sometimes a packet that still belonged to another router.
            let own = if random(10) == 0 { 1 + random(3) as u8 } else { bottleneck };
            let next = if step == 0 { 1 } else { random(4) as u8 };
            let loss = single(1.0 - share * weight / rate);
            let fixed_echo = echo_of::<JetMax>(echo_value([rate, share, target], [own, next]));
            let (rate, target) = (rate as f32, target as f32);
            let real_echo = AnyEcho::JetMax(Echo { rate, loss, target, bottleneck: own, next });
            for (source, echo) in [(&mut real, &real_echo), (&mut fixed, &fixed_echo)] {
                source.on_ack(&Ack::new(now, echo, rtt));
            }
            let [r, f] = [&real, &fixed].map(|source| {
                let bottleneck = Signals::of(|probe| source.observe(probe)).get("bottleneck");
                (bottleneck, source.limit().pacing.expect("it has started").as_bps())
            });
            assert!(r.0.to_bits() == f.0.to_bits(), "router {} and {} at step {step}", r.0, f.0);
            assert!((r.1 - f.1).abs() < 1e-6 * r.1 + 2.0, "rate {} and {} at step {step}", r.1, f.1);
            switches += u32::from(r.0.to_bits() != f64::from(bottleneck).to_bits());
            bottleneck = r.0 as u8;
        }
    }
    assert!(switches > 300, "{switches}");
}

#[test]
fn bytes_of_weights() {
    assert_eq!([0x40, 0x50, 0x30, 0x48].map(weight_of), [1.0, 2.0, 0.5, 1.5]);
    assert_eq!([1.0, 2.0, 0.5, 1.5].map(weight_byte), [0x40, 0x50, 0x30, 0x48]);
}

/// The C code rounds a weight to the nearest value that a byte can encode.
#[test]
fn weights_are_rounded_to_the_nearest() {
    let stated = |weight: f64| {
        let law = JetMax::law();
        let params = law.params(&JetMax::numbers(&Params::default(), weight));
        weight_of(law.request(&params)[9])
    };
    for weight in [1.0, 2.0, 3.0, 31.0, 0.5, 0.25, 0.0625] {
        assert!((stated(weight) - weight).abs() < 1e-9, "{weight}");
    }
    for weight in (1..1000).map(|w| 0.0625 + f64::from(w * w) / 300.0) {
        // Half of a fifth bit, and the thousandths and 2⁻⁸ in which C gets it.
        let off = (stated(weight) - weight).abs();
        assert!(off <= weight / 32.0 + 0.005 || weight > 3968.0, "{weight} is {}", stated(weight));
    }
}

/// Without routers on the path, a source keeps the host's window and is not paced. The first router's answer spreads
/// that window over two intervals and an RTT, until the router has counted the flow.
#[test]
fn the_first_answer_starts_a_source() {
    let [_, params] = real_and_fixed(&Params::default());
    let mut source = params.source(&connection());
    let mut answer = |next| {
        let echo = echo_of::<JetMax>(echo_value([1e4, 1e6, 0.0], [0, next]));
        source.on_ack(&Ack::new(Instant::from_secs(1.0), &echo, Duration::from_millis(50)))
    };
    assert_eq!(answer(0), SendLimit { window: Some(connection().initial_window), pacing: None });
    let limit = answer(2);
    let rate = 15_000.0 * 8.0 / 0.25;
    testing::close(limit.pacing.unwrap().as_bps(), rate, 1e-5);
    testing::close(limit.window.unwrap().as_bytes(), rate / 8.0 * 0.1 + 1500.0, 1e-3);
}
