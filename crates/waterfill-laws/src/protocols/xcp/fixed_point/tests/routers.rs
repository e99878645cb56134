//! Comparison of the real and the fixed-point routers, with 10⁵ packets of each law and the sums that an interval
//! allocates.

use super::*;
use crate::kernel::Numbers;
use crate::protocol::{LinkView, PacketKind, Passing};
use crate::protocols::ixcp::{self, IXcp};
use crate::registry::AnyRouter;
use crate::testing::{header_of, spread};
use crate::units::Rate;

/// Identifier of the link.
const HERE: u32 = 5;

/// RTT and time per byte of a flow's packets, as codes that headers of both arithmetics state.
#[derive(Clone, Copy)]
struct Flow {
    rtt_code: u32,
    time_code: u32,
    /// Identifier of the link that iXCP's packets name.
    bottleneck: u32,
}

impl Flow {
    fn rtt(&self) -> f64 {
        number(self.rtt_code) * RTT_UNIT
    }
    fn time(&self) -> f64 {
        number(self.time_code) * TIME_UNIT
    }
    fn real(&self, given: Option<f64>) -> Header {
        let feedback = given.map_or(f32::MAX, |bps| (bps / 8.0 * self.rtt()) as f32);
        Header::Katabi { rtt: self.rtt() as f32, cwnd: (self.rtt() / self.time()) as f32, feedback }
    }
    fn fixed(&self, given: Option<f64>) -> Value {
        let mut value = value(self.rtt_code, self.time_code, given);
        value[11..13].copy_from_slice(&(self.bottleneck as u16).to_be_bytes());
        value
    }
    /// Returns the feedback in a header, in bit/s.
    fn feedback<P: Member>(&self, header: &AnyHeader) -> f64 {
        match header {
            AnyHeader::Kernel(header) => feedback_codes(&header.value).unwrap() as f64 * CODE_BPS,
            real => P::inner(real).feedback(self.rtt()).expect("written").as_bps(),
        }
    }
}

/// Returns the link that a header of iXCP names; 0 for other headers.
fn named(header: &AnyHeader) -> u32 {
    match header {
        AnyHeader::Kernel(header) => u32::from(u16::from_be_bytes([header.value[13], header.value[14]])),
        AnyHeader::IXcp(header) => header.next_bottleneck,
        _ => 0,
    }
}

/// Protocol of XCP's family, and the construction of its header from XCP's.
trait Member: RunsInKernel {
    /// True if the router counts packets whose feedback it lowers.
    const COUNTS_LOWERED: bool = false;
    /// True if packets name the links that limit them.
    const NAMES: bool = false;
    fn params_of(params: &Params) -> AnyParams;
    fn wrap(header: Header, flow: &Flow) -> AnyHeader;
    fn inner(header: &AnyHeader) -> Header;
}

macro_rules! plain_member {
    ($protocol:ident, $counts:expr) => {
        impl Member for $protocol {
            const COUNTS_LOWERED: bool = $counts;
            fn params_of(params: &Params) -> AnyParams {
                AnyParams::$protocol(params.clone())
            }
            fn wrap(header: Header, _flow: &Flow) -> AnyHeader {
                AnyHeader::$protocol(header)
            }
            fn inner(header: &AnyHeader) -> Header {
                let AnyHeader::$protocol(header) = header else { unreachable!("a real law's") };
                *header
            }
        }
    };
}
plain_member!(Xcp, false);
plain_member!(PXcp, true);

impl Member for IXcp {
    const NAMES: bool = true;
    fn params_of(params: &Params) -> AnyParams {
        let Params { alpha, beta, gamma, first_interval, arithmetic, .. } = *params;
        AnyParams::IXcp(ixcp::Params { alpha, beta, gamma, first_interval, arithmetic, ..ixcp::Params::default() })
    }
    fn wrap(congestion: Header, flow: &Flow) -> AnyHeader {
        AnyHeader::IXcp(ixcp::Header { congestion, bottleneck: flow.bottleneck, next_bottleneck: 0 })
    }
    fn inner(header: &AnyHeader) -> Header {
        let AnyHeader::IXcp(header) = header else { unreachable!("a real law's") };
        header.congestion
    }
}

/// Signals recorded from a router.
#[derive(Default)]
struct Shown {
    spare: f64,
    shuffled: f64,
    interval: f64,
}

impl Probe for Shown {
    fn record(&mut self, signal: &str, value: f64) {
        match signal {
            "spare" => self.spare = value,
            "shuffled" => self.shuffled = value,
            _ => self.interval = value,
        }
    }
}

/// Router and the end of its control interval.
struct Under {
    router: AnyRouter,
    control_at: Instant,
}

impl Under {
    fn pass(&mut self, link: &LinkView, mut header: AnyHeader, bytes: f64) -> AnyHeader {
        let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes));
        let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Data, header: Some(&mut header) };
        self.router.on_arrival(link, &mut passing);
        if self.router.sees_departures() {
            self.router.on_departure(link, &mut passing);
        }
        header
    }
    /// Runs the timers up to the end of the control interval.
    fn end_interval(&mut self, link: &LinkView) -> Shown {
        while self.router.poll_at() <= self.control_at {
            let now = self.router.poll_at();
            self.router.on_timer(link, now);
        }
        self.control_at += self.router.interval().expect("XCP's routers have one");
        let mut shown = Shown::default();
        self.router.observe(&mut shown);
        shown
    }
}

/// Sums over an interval: ΣX and Σs of all packets, ΣX and Σs of the packets in shuffling, and ΣX of lowered packets.
#[derive(Clone, Copy, Default)]
struct Sums {
    all: [f64; 2],
    local: [f64; 2],
    lowered: f64,
}

impl Sums {
    fn add(&mut self, packet: [f64; 2], local: bool, lowered: bool) {
        for (i, part) in packet.into_iter().enumerate() {
            self.all[i] += part;
            self.local[i] += if local { part } else { 0.0 };
        }
        self.lowered += if lowered { packet[0] } else { 0.0 };
    }
    /// Returns a packet's fraction of the sum allocated to all packets, and of the sum allocated by shuffling.
    fn parts(&self, packet: [f64; 2], local: bool) -> [f64; 2] {
        let part = |sums: [f64; 2]| packet[0] / sums[0] + packet[1] / sums[1];
        [part(self.all), if local { part(self.local) } else { 0.0 }]
    }
}

/// Asserts that each packet's feedback and each interval's results agree within the precision of the scales. d is
/// truncated to a microsecond and its RTTs to 2⁻²⁰ s, which gives y the same relative error. Factors and codes are
/// within 10⁻⁶ each. The packet at which a residue ends may differ by the errors of all packets before it.
fn routers_agree<P: Member>(seed: u64) {
    let mut random = numbers(seed);
    let (mut compared, mut ends) = (0, 0);
    for episode in 0..100 {
        let capacity = spread(&mut random, 1e6, 1e11) as f64;
        let first_interval = Duration::from_micros(2000 + random(100_000));
        let params = Params { first_interval, ..Params::default() };
        let queue = Volume::from_bytes(((random(2) * random(20)) as f64 * capacity * 1e-4).round());
        let link = LinkView { id: HERE - 1, capacity: Rate::from_bps(capacity), target: None, queue };
        let [mut real, mut fixed] = real_and_fixed(&params).map(|params| Under {
            router: P::params_of(&params).router(&link),
            control_at: Instant::ZERO + first_interval,
        });
        let rtt = (4000 + random(200_000)) as f64 * 1e-6;
        let flows: Vec<Flow> = (0..10)
            .map(|_| Flow {
                rtt_code: code(rtt * (1 + random(3)) as f64 / RTT_UNIT),
                time_code: code(800.0 / capacity / (1 + random(20)) as f64 / TIME_UNIT),
                bottleneck: [0, HERE, HERE, 9][random(4) as usize],
            })
            .collect();
        // Of the interval before: its sums and results, and how much φ and h may be off.
        let (mut last, mut shown, mut off) = (Sums::default(), Shown::default(), [0.0; 2]);
        for interval in 0..10 {
            // One of ten intervals sees half of the packets, one twice as many.
            let packets = [100, 100, 100, 100, 100, 100, 100, 100, 50, 200][random(10) as usize];
            let volume = capacity / 8.0 * shown.interval.max(1e-3) * (8 + random(5)) as f64 / 10.0;
            let (mut sums, mut totals, mut bounds) = (Sums::default(), [0.0; 2], 0.0);
            for _ in 0..packets {
                let flow = flows[random(10) as usize];
                let bytes = (volume / 100.0 * (50 + random(100)) as f64 / 100.0).clamp(40.0, 1e6).round();
                let packet = [flow.time() * bytes, bytes];
                let local = !P::NAMES || flow.bottleneck == HERE;
                let parts = last.parts(packet, local);
                let due = shown.spare.abs() * parts[0] + shown.shuffled * parts[1];
                // An earlier router's: near to what this one gives, or, where the number of lowered packets matters, below.
                let near = (random(200) as f64 - 100.0) / 200.0;
                let given = (random(3) == 0).then_some(due * if P::COUNTS_LOWERED { -2.0 } else { near });
                let given = given.filter(|bps| bps.is_finite() && *bps < 0.0 || !P::COUNTS_LOWERED && bps.is_finite());
                let a = real.pass(&link, P::wrap(flow.real(given), &flow), bytes);
                let b = fixed.pass(&link, header_of::<P>(flow.fixed(given)), bytes);
                let fed = [&a, &b].map(|header| flow.feedback::<P>(header));
                totals = [totals[0] + fed[0], totals[1] + fed[1]];
                let bound = 1e-5 * due + off[0] * parts[0] + off[1] * parts[1] + 2.0 * CODE_BPS;
                bounds += bound;
                if interval > 3 {
                    let error = (fed[0] - fed[1]).abs();
                    assert!(error < 2.0 * bounds, "episode {episode}: {fed:?} of {due}, bounds {bounds}");
                    ends += u32::from(error > bound);
                    compared += 1;
                    if (fed[0] - given.unwrap_or(f64::MAX)).abs() > 2.0 * bounds {
                        assert_eq!(named(&a), named(&b), "the same link is named");
                    }
                }
                sums.add(packet, local, given.is_none());
            }
            if interval > 3 {
                assert!((totals[0] - totals[1]).abs() < 2.0 * bounds, "episode {episode}: {totals:?}, {bounds}");
            }
            let lasted = shown.interval.max(1e-6);
            let [r, f] = [&mut real, &mut fixed].map(|router| router.end_interval(&link));
            let d = (r.interval - f.interval).abs();
            assert!(d < 2e-6 + 4e-6 * r.interval, "d {} and {}", r.interval, f.interval);
            if interval > 0 {
                let scale = if P::COUNTS_LOWERED { (sums.all[0] / sums.lowered.max(lasted)).max(1.0) } else { 1.0 };
                let relative = 2e-6 / lasted.min(r.interval) + 4e-6;
                let (y, drain) = (sums.all[1] * 8.0 / lasted, queue.as_bytes() * 8.0 / r.interval);
                let spare_off = (params.alpha * y + params.beta * drain) * relative + capacity * 1e-8 + 1.0;
                let shuffled_off = spare_off + params.gamma * y * relative;
                if interval > 3 {
                    assert!((r.spare - f.spare).abs() < spare_off, "spare {} and {}", r.spare, f.spare);
                    assert!(
                        (r.shuffled - f.shuffled).abs() < shuffled_off,
                        "shuffled {} and {}",
                        r.shuffled,
                        f.shuffled
                    );
                }
                off = [scale * (spare_off + relative * r.spare.abs()), shuffled_off];
            }
            (last, shown) = (sums, r);
            if P::COUNTS_LOWERED && shown.spare > 0.0 {
                shown.spare *= (sums.all[0] / sums.lowered.max(lasted)).max(1.0);
            }
        }
    }
    assert!(compared > 50_000 && ends * 20 < compared, "{ends} of {compared}");
}

/// `[draft-falk:cp, cn, residue]` The real and the fixed-point router of XCP give the same feedback.
#[test]
fn routers_of_xcp_agree() {
    routers_agree::<Xcp>(11);
}

/// `[ixcp-2007:5]` The real and the fixed-point router of P-XCP give the same feedback.
#[test]
fn routers_of_pxcp_agree() {
    routers_agree::<PXcp>(12);
}

/// `[ixcp-2007:eq3, 3, 2.1]` The real and the fixed-point router of iXCP give the same feedback and name the same
/// links.
#[test]
fn routers_of_ixcp_agree() {
    routers_agree::<IXcp>(13);
}

/// Link of 100 Mbit/s with `cpus` CPUs, whose timers the test runs.
struct Driven {
    law: &'static KernelLaw,
    link: Words,
    cpus: Vec<Words>,
    counted: Vec<u64>,
}

impl Driven {
    fn new(law: &'static KernelLaw, numbers: &Numbers, cpus: usize) -> Self {
        let mut link = law.link();
        law.link_set(&mut link, &law.params(numbers), 100_000_000, 0);
        Self { law, link, cpus: vec![law.cpu(); cpus], counted: vec![0; law.sums().words().len()] }
    }
    /// Lets a CPU write a packet's feedback; returns the feedback over all segments, in codes.
    fn mark(&mut self, cpu: usize, segments: u32, mut value: Value) -> i64 {
        let bytes = 1000 * u64::from(segments);
        let counted = self.cpus[cpu].words()[0] + bytes;
        self.cpus[cpu].set(0, counted);
        self.law.mark(&mut self.link, &mut self.cpus[cpu], &Packet { bytes, segments, syn: 0 }, &mut value);
        feedback_codes(&value).unwrap() * i64::from(segments)
    }
    /// Ticks until the control interval ends, without a queue; returns φ/d and h/d in bit/s.
    fn end_interval(&mut self) -> [f64; 2] {
        let epoch = self.link.words()[0];
        while self.link.words()[0] == epoch {
            let mut sums = self.law.sums();
            for (word, before) in self.counted.iter_mut().enumerate() {
                let now = self.cpus.iter().map(|cpu| cpu.words()[word]).sum::<u64>();
                sums.set(word, now - *before);
                *before = now;
            }
            self.law.tick(&mut self.link, &sums, 0);
        }
        let signals = self.law.link_signals(&self.link);
        [signals[1] as i64 as f64, signals[2] as f64]
    }
}

/// `[draft-falk:residue]` All packets of an interval together gain and lose the allocated sum φ/d. This holds with one
/// or more CPUs, with super-packets, and if more packets arrive than in the previous interval. A CPU keeps less than a
/// code of each segment, and the factors keep 2⁻²² of the feedback.
#[test]
fn an_interval_gives_what_it_allocated() {
    for (law, link) in [(Xcp::law(), None), (PXcp::law(), None), (IXcp::law(), Some(HERE))] {
        for (cpus, more) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)] {
            let mut random = numbers(21);
            let params = Params { first_interval: Duration::from_millis(100), ..Params::default() };
            let mut numbers = params.kernel_numbers();
            if let Some(link) = link {
                numbers.extend([("link", u64::from(link)), ("shuffle_draft", 1)]);
            }
            let mut driven = Driven::new(law, &numbers, cpus);
            // Flows of seven rates, each on one CPU, in super-packets of one to ten segments: 88 % of the capacity.
            let packets: Vec<(usize, u32, Value)> = (0..200)
                .map(|i| {
                    let time_code = code(1e-7 * f64::from(1 + i % 7) / TIME_UNIT);
                    let mut value = value(code(0.1 / RTT_UNIT), time_code, None);
                    value[12] = link.map_or(0, |link| if i % 3 == 0 { 9 } else { link as u8 });
                    (i as usize % 7 % cpus, 1 + random(10) as u32, value)
                })
                .collect();
            let mut allocated = [0.0, 0.0];
            for interval in 0..30 {
                let copies = if interval % 5 == 4 { more } else { 1 };
                let mut given = 0;
                for _ in 0..copies {
                    given +=
                        packets.iter().map(|&(cpu, segments, value)| driven.mark(cpu, segments, value)).sum::<i64>();
                }
                // After twice as many packets, the same number is too few to use it all up.
                if interval > 1 && (interval % 5 != 0 || more == 1) {
                    let error = given as f64 * CODE_BPS - allocated[0];
                    let bound = 11.0 * cpus as f64 * CODE_BPS + 1e-6 * (allocated[0].abs() + allocated[1]);
                    assert!(error.abs() < bound, "{cpus} CPUs, interval {interval}: {error} of {allocated:?}");
                }
                allocated = driven.end_interval();
            }
        }
    }
}

/// Idle intervals within the control interval change nothing. After more than two control intervals, the link gives no
/// feedback.
#[test]
fn idle_intervals_bring_a_link_to_rest() {
    let params = Params { first_interval: Duration::from_millis(100), ..Params::default() };
    for law in [Xcp::law(), PXcp::law()] {
        let mut driven = Driven::new(law, &params.kernel_numbers(), 1);
        let packet = value(code(0.05 / RTT_UNIT), code(1e-6 / TIME_UNIT), None);
        driven.mark(0, 10, packet);
        driven.end_interval();
        let busy = law.link_signals(&driven.link);
        assert!(busy[0].abs_diff(50_000) <= 2 && driven.mark(0, 10, packet) > 0);
        law.idle(&mut driven.link, 20, 0);
        assert_eq!(law.link_signals(&driven.link), busy);
        law.idle(&mut driven.link, 1 << 40, 7000);
        assert_eq!(law.link_signals(&driven.link), [100_000, 0, 0, 7000]);
        assert_eq!(driven.mark(0, 10, packet), 0);
        assert!((1..=100_000).contains(&law.interval(&driven.link)));
    }
}

/// A link restored after an upgrade keeps its control interval, limited to the minimum and maximum interval.
#[test]
fn a_link_starts_with_an_older_interval() {
    let mut driven = Driven::new(Xcp::law(), &Params::default().kernel_numbers(), 1);
    for (signal, interval) in [(80_000, 80_000), (1 << 40, 1_000_000), (1, 1000), (0, 1000)] {
        Xcp::law().link_restore(&mut driven.link, signal);
        assert_eq!(Xcp::law().link_signals(&driven.link)[0], interval);
    }
}
