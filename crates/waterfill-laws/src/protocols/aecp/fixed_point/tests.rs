//! Comparison of the fixed-point version of AECP with the law in real numbers, in 10⁵ calls with the same inputs.

use super::*;
use crate::kernel::Value;
use crate::protocol::{Ack, LinkView, PacketKind, Passing};
use crate::protocols::aecp::{Factor, Header};
use crate::registry::{AnyEcho, AnyHeader, AnyParams, AnyRouter};
use crate::testing::{
    self, Signals, answer_to, close, connection, echo_of, header_of, numbers, spread, value_of, value_with,
};
use crate::units::{Duration, Instant, Rate, Volume};

fn real_and_fixed(params: &Params) -> [AnyParams; 2] {
    testing::real_and_fixed(|arithmetic| AnyParams::Aecp(Params { arithmetic, ..params.clone() }))
}

/// Returns the wire value of a factor: the complement of the factor's code, because routers keep the largest value.
fn value(factor: Factor) -> Value {
    value_with(0xffff - u32::from(factor.0))
}

/// Returns the factor code in a header.
fn code_of(header: &AnyHeader) -> u16 {
    match header {
        AnyHeader::Aecp(header) => header.factor.0,
        kernel => 0xffff - u16::from_be_bytes([value_of(kernel)[1], value_of(kernel)[2]]),
    }
}

/// Creates a header with a factor, in the router's arithmetic.
fn header_for(router: &AnyRouter, factor: Factor) -> AnyHeader {
    if matches!(router, AnyRouter::Aecp(_)) {
        AnyHeader::Aecp(Header { factor })
    } else {
        header_of::<Aecp>(value(factor))
    }
}

fn router_r(router: &AnyRouter) -> f64 {
    Signals::of(|probe| router.observe(probe)).get("r")
}

/// `[aecp-2010:eq49, eq2, eq4]` The real and the fixed-point router compute the same r within the precision of the
/// scales, and the same codes within one.
#[test]
fn routers_agree() {
    let mut random = numbers(1);
    for episode in 0..100 {
        let t_2 = [10, 50, 100][random(3) as usize];
        let params = Params {
            beta: spread(&mut random, 500.0, 5000.0) as f64 / 1e3,
            t_2: Duration::from_millis(t_2),
            q_0: random(1000) as f64,
            r_0: [First::SourceRate, First::Capacity][random(2) as usize],
            ceiling: [Ceiling::EmptyQueue, Ceiling::Capacity][random(2) as usize],
            rounding: Rounding::Nearest,
            ..Params::default()
        };
        let capacity = spread(&mut random, 1e6, 1e12) as f64;
        let target = (random(4) == 0).then_some(0.9);
        let mut link = LinkView { id: 0, capacity: Rate::from_bps(capacity), target, queue: Volume::ZERO };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| params.router(&link));
        let growth = params.beta * params.t_2.as_secs();
        // The volume of T₂ and two others are truncated to 2⁻⁸ B, and the place to 2⁻³² octaves.
        let volume = target.unwrap_or(1.0) * capacity * params.t_2.as_secs() / 8.0;
        let step = growth * 3.0 / 256.0 / volume + 0.7 / f64::from(u32::MAX);
        // A packet's size is truncated to 2⁻⁸ B, and the ceiling's logarithm is within 1.7·10⁻⁶.
        let ceiling = 1.0 / 256.0 / 500.0 + 1e-6;
        let mut steps = 0.0;
        for _ in 0..1000 {
            let kind = [PacketKind::Data, PacketKind::Data, PacketKind::Syn, PacketKind::Other][random(4) as usize];
            let packets = 1 + (volume / 1500.0) as u64 * random(20) / 10;
            let bytes = packets * (500 + random(8500));
            let sent = Factor([0xffff, random(0x10000)][random(2) as usize] as u16);
            let codes = [&mut real, &mut fixed].map(|router| {
                let mut header = header_for(router, sent);
                let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes as f64));
                let header_seen = (kind != PacketKind::Other).then_some(&mut header);
                let mut passing = Passing { now, volume, packets: packets as f64, kind, header: header_seen };
                router.on_arrival(&link, &mut passing);
                i32::from(code_of(&header))
            });
            assert!((codes[0] - codes[1]).abs() <= 1, "episode {episode}: {codes:?}");
            if random(3) == 0 {
                link.queue = Volume::from_bytes((random(3) * random(1 + volume as u64)) as f64);
                for router in [&mut real, &mut fixed] {
                    router.on_timer(&link, Instant::ZERO);
                }
                steps += 1.0;
                close(router_r(&fixed), router_r(&real), ceiling + steps * step);
            }
        }
    }
}

/// Carried codes have the same mean in real and in kernel arithmetic, because the residue is at most half a code.
#[test]
fn carried_codes_agree_in_their_mean() {
    let params = Params { r_0: First::Capacity, ..Params::default() };
    let link = testing::link(3.3e7, 0.0);
    let [real, fixed] = real_and_fixed(&params).map(|params| {
        let mut router = params.router(&link);
        let code = |_| {
            let mut header = header_for(&router, Factor::UNWRITTEN);
            let (now, volume, kind) = (Instant::ZERO, Volume::from_bytes(1500.0), PacketKind::Data);
            router.on_arrival(&link, &mut Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) });
            f64::from(code_of(&header))
        };
        (0..1000).map(code).sum::<f64>() / 1000.0
    });
    // The place itself is within 1.7·10⁻⁶ octaves, 0.0018 codes.
    assert!((real - fixed).abs() < 1.0 / 1000.0 + 0.0018, "{real} and {fixed}");
}

/// `[aecp-2010:eq46, eq48, eq3]` The real and the fixed-point source compute the same rate within 2·10⁻⁶ and 1 bit/s,
/// plus the error of the weight. αT₁ has an error of 2⁻³², and eq. 3 has a relative error of 2·10⁻⁵; both multiply the
/// change of ln x.
#[test]
fn sources_agree() {
    let mut random = numbers(2);
    for _ in 0..100 {
        let params = Params {
            alpha: spread(&mut random, 100.0, 20_000.0) as f64 / 1e3,
            form: [Form::Printed, Form::Exact][random(2) as usize],
            step: [SourceStep::RoundTrip, SourceStep::Acknowledgement][random(2) as usize],
            ..Params::default()
        };
        let alpha = params.alpha;
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| params.source(&connection()));
        let tau = Duration::from_micros(spread(&mut random, 50.0, 1e6));
        let (mut now, mut code) = (1, 10_000_u64);
        let (mut off, mut before, mut updated) = (0.0, 10.0 * 12_000.0_f64, 0);
        for _ in 0..1000 {
            now += random(tau.as_ps() / 1_000_000 / 4 + 2);
            code = (code + random(2001)).saturating_sub(1000).min(0xfffe);
            let factor = if random(50) == 0 { Factor::UNWRITTEN } else { Factor(code as u16) };
            let now_at = Instant::ZERO + Duration::from_micros(now);
            real.on_ack(&Ack::new(now_at, &AnyEcho::Aecp(Header { factor }), tau));
            fixed.on_ack(&Ack::new(now_at, &echo_of::<Aecp>(value(factor)), tau));
            let Some(rate) = fixed.limit().pacing else { continue };
            let expected = real.limit().pacing.expect("a rate from the start").as_bps();
            if expected.to_bits() != before.to_bits() {
                let weight = alpha * (now - updated) as f64 * 1e-6;
                off += (2e-5 + 1.0 / f64::from(u32::MAX) / weight) * (expected / before).ln().abs();
                (before, updated) = (expected, now);
            }
            let bound = 1.0 + (2e-6 + off) * expected;
            assert!(expected > 2.6e16 || (rate.as_bps() - expected).abs() < bound, "{rate:?} and {expected}");
        }
    }
}

/// A receiver copies the last header, and a source without routers on its path keeps its initial window.
#[test]
fn a_path_without_routers() {
    let [_, params] = real_and_fixed(&Params::default());
    let [none, seven] = [Factor::UNWRITTEN, Factor(77)].map(value);
    assert!(!Aecp::law().heard(&none) && Aecp::law().heard(&seven));
    assert_eq!(answer_to::<Aecp>(&params, &[]), none);
    assert_eq!(answer_to::<Aecp>(&params, &[seven]), seven);
    assert_eq!(answer_to::<Aecp>(&params, &[seven, none]), none);
    let mut source = params.source(&connection());
    source.on_ack(&Ack::new(Instant::from_secs(1.0), &echo_of::<Aecp>(none), Duration::from_millis(10)));
    assert_eq!(source.limit().window, Some(connection().initial_window));
    assert_eq!(source.limit().pacing, None);
}
