//! The fixed-point version against the law in real numbers, by 10⁵ calls of both with the same inputs.

use super::*;
use crate::arithmetic::Arithmetic;
use crate::params::Params as _;
use crate::protocol::{Ack, LinkView, PacketKind, Passing, Protocol, Router as _, Source as _};
use crate::testing::{close, connection, echo_after, numbers, spread};
use crate::units::Duration;
use crate::units::{Instant, Rate, Volume};

/// One recorded signal.
struct Signal(&'static str, Option<f64>);

impl Probe for Signal {
    fn record(&mut self, signal: &'static str, value: f64) {
        if signal == self.0 {
            self.1 = Some(value);
        }
    }
}

fn real_and_fixed(params: &Params) -> [Params; 2] {
    let both = [Arithmetic::Real, Arithmetic::Kernel].map(|arithmetic| Params { arithmetic, ..params.clone() });
    for params in &both {
        params.validate().unwrap();
    }
    both
}

fn router_r(router: &<Aecp as Protocol>::Router) -> f64 {
    let mut r = Signal("r", None);
    router.observe(&mut r);
    r.1.expect("a router shows r")
}

/// `[aecp-2010:eq49, eq2, eq4]` r within what the scales allow, codes within one of those in real numbers.
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
        let [mut real, mut fixed] =
            real_and_fixed(&params).map(|params| <Aecp as Protocol>::Router::new(&params, &link));
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
                let mut header = Header { factor: sent };
                let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes as f64));
                let header_seen = (kind != PacketKind::Other).then_some(&mut header);
                let mut passing = Passing { now, volume, packets: packets as f64, kind, header: header_seen };
                router.on_arrival(&link, &mut passing);
                i32::from(header.factor.0)
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

/// Codes carried from packet to packet have the mean of those in real numbers: a residue is half a code at most.
#[test]
fn carried_codes_agree_in_their_mean() {
    let params = Params { r_0: First::Capacity, ..Params::default() };
    let link = crate::testing::link(3.3e7, 0.0);
    let [real, fixed] = real_and_fixed(&params).map(|params| {
        let mut router = <Aecp as Protocol>::Router::new(&params, &link);
        let code = |_| f64::from(crate::testing::pass::<Aecp>(&mut router, &link, Header::default(), 1500.0).factor.0);
        (0..1000).map(code).sum::<f64>() / 1000.0
    });
    // The place itself is within 1.7·10⁻⁶ octaves, 0.0018 codes.
    assert!((real - fixed).abs() < 1.0 / 1000.0 + 0.0018, "{real} and {fixed}");
}

/// `[aecp-2010:eq46, eq48, eq3]` A rate within 2·10⁻⁶ and a bit/s. A weight αT₁ is in 2⁻³² and, by eq. 3, within 2·10⁻⁵ of
/// itself: ln x is off by that part of the way it has gone.
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
        let [mut real, mut fixed] =
            real_and_fixed(&params).map(|params| <Aecp as Protocol>::Source::new(&params, &connection()));
        let tau = Duration::from_micros(spread(&mut random, 50.0, 1e6));
        let (mut now, mut code) = (1, 10_000_u64);
        let (mut off, mut before, mut updated) = (0.0, 10.0 * 12_000.0_f64, 0);
        for _ in 0..1000 {
            now += random(tau.as_ps() / 1_000_000 / 4 + 2);
            code = (code + random(2001)).saturating_sub(1000).min(0xfffe);
            let header = Header { factor: if random(50) == 0 { Factor::UNWRITTEN } else { Factor(code as u16) } };
            let ack = Ack::new(Instant::ZERO + Duration::from_micros(now), header, tau);
            for source in [&mut real, &mut fixed] {
                source.on_ack(&ack);
            }
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

/// The wire value of each code is the code's complement, so that routers keep the largest.
#[test]
fn values_are_complements_of_codes() {
    for code in [0, 1, 0x1234, 0xfffe, 0xffff] {
        let header = Header { factor: Factor(code) };
        let value = Aecp::value_of(&header).unwrap();
        assert_eq!(value[..3], (0xffff - u32::from(code)).to_be_bytes()[1..]);
        assert_eq!(Aecp::header_of(&value), header);
    }
    assert!(!Law::aecp().heard(&Aecp::value_of(&Header::default()).unwrap()));
}

/// A receiver copies the last header; a source that no router answers keeps its first window.
#[test]
fn a_path_without_routers() {
    let [_, params] = real_and_fixed(&Params::default());
    let header = Header { factor: Factor(77) };
    assert_eq!(echo_after::<Aecp>(&params, &[]), Header::default());
    assert_eq!(echo_after::<Aecp>(&params, &[header]), header);
    assert_eq!(echo_after::<Aecp>(&params, &[header, Header::default()]), Header::default());
    let mut source = <Aecp as Protocol>::Source::new(&params, &connection());
    source.on_ack(&Ack::new(Instant::from_secs(1.0), Header::default(), Duration::from_millis(10)));
    assert_eq!(source.limit().window, Some(connection().initial_window));
    assert_eq!(source.limit().pacing, None);
}
