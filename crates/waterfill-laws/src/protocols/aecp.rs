//! AECP: routers announce one rate to all, sources approach it on a logarithmic scale.
//!
//! # Law
//! Every link holds a pre-allocation rate factor r that grows while its load, and the queue beyond q₀ spread over T,
//! leave capacity over, and falls when they exceed it. Packets carry the smallest r of their path; a source moves its
//! rate x towards it. In equilibrium x = r = C/N and the queue is q₀: full links with a short queue.
//!
//! - `eq2`  ṙ = βr·(1 − (Σx + (q − q₀)/T)/C)
//! - `eq3`  ẋ = αx·(ln r − ln x)
//! - `eq4`  r = min r_l over the links of the path
//! - `eq43` β = α/2, T = 4/α
//! - `eq46` x ← x^(1−αT₁)·r^(αT₁), the source's form of eq. 3 (eq. 48 with α = 2, T₁ = τ)
//! - `eq49` r ← r·exp(βT₂·(1 − (Σx + (q − q₀)/T)/C)), the router's form of eq. 2 (eq. 46, 47)
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | x, x_0 | `x`, `x_0` | packets/s |
//! | r, r(0) | `r`, `r_0` | packets/s |
//! | C | `capacity` | packets/s |
//! | Σx | `load` | packets/s |
//! | q, q₀ | `queue`, `q_0` | packets |
//! | α, β | `alpha`, `beta` | 1/s |
//! | T | `t` | s |
//! | T₁ | `t_1` | s: τ, see the readings |
//! | T₂ | `t_2` | s |
//! | τ | `Ack::rtt` | s |
//!
//! # Header
//! Fig. 4: Next Header (1 byte, 6 for TCP) and the factor (2 bytes), in data and in acknowledgements. The factor's
//! code c stands for 2^(c/1024 − 2) packets/s: from 1/4 to 2^61.998 (4.6·10¹⁸), in steps of 0.068 %, at most 0.034 %
//! off. 0xffff, which is −1, is "no router wrote" (§5.2), and as the largest code it needs no exception in the
//! minimum.
//!
//! # Router
//! [`Router`]: one addition, one rounding and one comparison a packet; one exponential and one logarithm every T₂.
//!
//! # Source
//! [`Source`]: two powers a round trip; paced, without a window.
//!
//! # Parameters
//! [`Params`]: §4.3's α, β, T, §5's T₂ and q₀.
//!
//! # Readings and deviations
//! - A router is told bytes, the law counts packets. A packet is the mean size of AECP's own data packets in the last
//!   T₂ that had any (1500 B before), and all volumes, other traffic's too, are divided by it: a 40-byte
//!   acknowledgement takes 1/37 of a packet's time on the wire, and counting it as a packet would hide capacity.
//! - Eq. 47 is applied once a round trip (T₁ = τ), not per acknowledgement as §5.2 can be read: at the first one that
//!   comes τ or more after the last update (`step = "acknowledgement"` is the other reading). T₁ is the time since then; where acknowledgements come less often than once
//!   a round trip it is longer than τ, as eq. 44 has it.
//! - Eq. 47 to 48 print 2τ and 1 − 2τ for αT₁ and 1 − αT₁: weights only while τ < 0.5 s. `form = "printed"` keeps
//!   that form and stops the weight at 1, where x becomes r; `form = "exact"` is eq. 3's own solution, 1 − e^(−αT₁).
//! - Theorem 1 leaves the delay out of its proof. With T₁ = τ and T₂ = 0.1 s the simulator's loop is stable up to a
//!   round trip of about 0.65 s in the printed form, 0.55 s in the exact one (the printed form beyond a weight of 1
//!   would reach 0.85 s).
//! - r(0) and x_0 are not given. Both are 10 packets/s here; `r_0 = "capacity"` starts at C.
//! - r is clipped above at `ceiling`: on an idle link it would grow as e^(βt). `ceiling = "capacity"` is C. Then one
//!   flow alone can never fill the queue to q₀, for r = C is both its rest and the end of the range; so the default is
//!   C + q₀/T, where eq. 2's bracket itself is zero with an empty queue (0.08 % above C in §6).
//! - r is clipped below at the smallest code, 1/4 packet/s. A source hears only when it sends: after a long overload
//!   the routers' r grows e-fold a second while sources wait for their next packet, and had they to wait longer than a
//!   few seconds, all would come back at once with an r that has grown past C/N.
//! - `rounding = "carried"`: what a code leaves of r is added to the next packet's, so that their mean is r. With
//!   `nearest` all flows step by 0.068 % together (42 packets/s at §6's 500 Mbit/s), and the queue wanders about q₀ a
//!   little more.
//! - Routers write data headers only: §5.3's "all passing packets" would let the way back lower the factor of
//!   acknowledgements.
//! - With a link's own target below 1, capacity is that share of it and q₀ is 0: no queue can stand on a link that is
//!   not full.
//! - A connection's weight scales its rate. A path without routers leaves a source at x_0. Losses do not move x.
//! - Eq. 20 prints ẋ = r where its text says x = r. Theorem 3's closed form (eq. 29) does not follow from its own
//!   eq. 31, by which ln g falls as e^(−αt). `waterfill theory convergence aecp` prints both.
//! - Theorem 2's bounds do not hold for eq. 6 itself: r overshoots while x lags, and x arrives before the lower bound.
//!
//! # Validation
//! Equation tests below, by hand from the paper; the simulator's `aecp` tests: queue and shares of §6.1's round trips,
//! time to efficiency, a parking lot. Theorems 2 and 3 are computed and tested in `waterfill.theory.aecp`.
//!
//! Seconds to θ-efficiency at 500 Mbit/s and 1000-byte packets, x_0 = 10 packets/s, for θ = 0.5 / 0.9 / 0.99; the
//! simulator at an RTT of 50 ms, eq. 6 without delay and unclipped. Theorem 2's bounds do not hold for its own eq. 6:
//!
//! | N, r(0) | simulator | eq. 6 | Theorem 2's bounds |
//! |---|---|---|---|
//! | 1, x_0 | 9.01 / 10.26 / 11.36 | 8.97 / 10.32 / 10.90 | 8.74–10.01 / 10.94–13.15 / 13.34–16.72 |
//! | 1, C | 1.30 / 2.15 / 3.25 | 0.99 / 1.21 / 1.26 | the same |
//! | 10, x_0 | 6.71 / 7.96 / 8.41 | 6.67 / 8.02 / 8.60 | 6.44–7.55 / 8.63–10.69 / 11.03–14.26 |
//! | 10, C | 0.60 / 0.70 / 0.70 | 0.51 / 0.60 / 0.62 | the same |
//!
//! # References
//! `aecp-2010`: Huang, Wu, Yang, Zheng, Jiang, "Distributed bandwidth allocation based on alternating evolution
//! algorithm".

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Host, Info, Kind, Limit, LinkView, PacketKind, Passing, Probe, Protocol, Sending,
    Signal, Wire,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `aecp`.
#[derive(Debug)]
pub struct Aecp;

impl Protocol for Aecp {
    const INFO: Info = Info {
        name: "aecp",
        summary: "routers announce a rate, sources approach it by its logarithm; max-min fair, queues of q_0 (2010)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: true,
        host: Host::EXPLICIT,
        signals: &[
            Signal {
                name: "r",
                unit: "packets/s",
                doc: "the link's pre-allocation rate factor, or the one last heard",
            },
            Signal { name: "x", unit: "packets/s", doc: "the source's rate, before its weight" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Header;
    type Router = Router;
    type Receiver = EchoLast<Header>;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

// ---------------------------------------------------------------------------------- header

/// The 16-bit pre-allocation rate factor, a logarithm of packets/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u16);

/// Codes for a doubling of the rate.
const STEPS_PER_OCTAVE: f64 = 1024.0;
/// The rate that code 0 stands for, in packets/s.
const SLOWEST: f64 = 0.25;

impl Factor {
    /// −1: no router wrote (§5.2).
    pub const UNWRITTEN: Self = Self(0xffff);
    /// The largest rate: 2^61.998 packets/s.
    pub const LARGEST: Self = Self(0xfffe);

    /// The nearest code to a place on the scale, and what it leaves of it.
    fn nearest(place: f64) -> (Self, f64) {
        // `as` truncates, saturates below at 0 and maps NaN to 0; above, `min` saturates.
        let factor = Self((place + 0.5) as u16).min(Self::LARGEST);
        (factor, place - f64::from(factor.0))
    }

    /// The rate it stands for, in packets/s; none if no router wrote.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self != Self::UNWRITTEN).then(|| rate_at(f64::from(self.0)))
    }
}

/// `[aecp-2010:fig4]` A rate's place on the factor's scale, in codes.
fn place_of(rate: f64) -> f64 {
    (rate / SLOWEST).log2() * STEPS_PER_OCTAVE
}

/// The rate of the largest code.
fn fastest() -> f64 {
    rate_at(f64::from(Factor::LARGEST.0))
}

/// `[aecp-2010:fig4]` The rate at a place on the factor's scale.
fn rate_at(place: f64) -> f64 {
    SLOWEST * (place / STEPS_PER_OCTAVE).exp2()
}

/// The AECP header of Fig. 4, of data and of acknowledgements alike (§5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The smallest factor so far.
    pub factor: Factor,
}

impl Default for Header {
    fn default() -> Self {
        Self { factor: Factor::UNWRITTEN }
    }
}

/// Next Header of Fig. 4: TCP follows.
const NEXT_HEADER_TCP: u8 = 6;

impl Wire for Header {
    const BYTES: usize = 3;
    fn encode(&self, out: &mut [u8]) {
        out[0] = NEXT_HEADER_TCP;
        out[1..3].copy_from_slice(&self.factor.0.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes.first_chunk::<3>()? {
            [NEXT_HEADER_TCP, high, low] => Some(Self { factor: Factor(u16::from_be_bytes([high, low])) }),
            _ => None,
        }
    }
}

// ---------------------------------------------------------------------------------- router

/// The size of a packet until data has been seen: an Ethernet frame's.
const FIRST_PACKET: Volume = Volume::from_bytes(1500.0);

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    capacity: Rate,
    beta: f64,
    q_0: f64,
    t: f64,
    t_2: Duration,
    ceiling: Ceiling,
    rounding: Rounding,
    /// r, real, in packets/s.
    r: f64,
    /// Its place on the factor's scale.
    place: f64,
    /// What the codes written so far have left of it.
    residue: f64,
    /// A packet's size.
    packet: Volume,
    /// All that arrived in this T₂.
    arrived: Volume,
    /// Own data in this T₂: volume and packets.
    data: (Volume, f64),
    next_update: Instant,
}

impl Router {
    fn set(&mut self, r: f64) {
        let capacity = packets_per_second(self.capacity, self.packet);
        let ceiling = match self.ceiling {
            Ceiling::Capacity => capacity,
            Ceiling::EmptyQueue => resting_load(0.0, capacity, self.q_0, self.t),
        };
        self.r = clipped(r, ceiling);
        self.place = place_of(self.r);
    }

    /// The code for the next packet.
    fn factor(&mut self) -> Factor {
        match self.rounding {
            Rounding::Nearest => Factor::nearest(self.place).0,
            Rounding::Carried => {
                let (factor, left) = Factor::nearest(self.place + self.residue);
                self.residue = left.clamp(-0.5, 0.5); // beyond the scale's ends nothing can be made good
                factor
            }
        }
    }
}

impl crate::protocol::Router<Aecp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mut router = Self {
            capacity: usable(link),
            beta: params.beta,
            q_0: if link.target.is_some_and(|target| target < 1.0) { 0.0 } else { params.q_0 },
            t: params.t.as_secs(),
            t_2: params.t_2,
            ceiling: params.ceiling,
            rounding: params.rounding,
            r: 0.0,
            place: 0.0,
            residue: 0.0,
            packet: FIRST_PACKET,
            arrived: Volume::ZERO,
            data: (Volume::ZERO, 0.0),
            next_update: Instant::ZERO + params.t_2,
        };
        router.set(match params.r_0 {
            First::SourceRate => params.x_0,
            First::Capacity => packets_per_second(router.capacity, router.packet),
        });
        router
    }

    /// §5.3, between sampling points.
    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(header) = passing.header.as_deref_mut() {
            if passing.kind == PacketKind::Data {
                self.data.0 += passing.volume;
                self.data.1 += passing.packets;
            }
            header.factor = smaller(header.factor, self.factor());
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    /// §5.3, at a sampling point.
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.capacity = usable(link);
        let (volume, packets) = self.data;
        if volume.as_bytes() > 0.0 && packets > 0.0 {
            self.packet = volume / packets;
        }
        let capacity = packets_per_second(self.capacity, self.packet);
        let load = packets_per_second(self.arrived / self.t_2, self.packet);
        let queue = link.queue / self.packet;
        let used = load + queue_as_load(queue, self.q_0, self.t);
        self.set(r_next(self.r, used, capacity, self.beta, self.t_2.as_secs()));
        self.arrived = Volume::ZERO;
        self.data = (Volume::ZERO, 0.0);
        self.next_update = now + self.t_2;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("r", self.r);
    }
}

/// C: a link's own target's share of its capacity.
fn usable(link: &LinkView) -> Rate {
    link.capacity * link.target.unwrap_or(1.0)
}

/// A rate as packets of a size.
fn packets_per_second(rate: Rate, packet: Volume) -> f64 {
    rate.as_bps() / packet.as_bits()
}

/// `[aecp-2010:eq4]` The smaller of two factors.
fn smaller(factor: Factor, own: Factor) -> Factor {
    factor.min(own)
}

/// `[aecp-2010:eq2]` (q − q₀)/T: the queue's excess as if it were load.
fn queue_as_load(queue: f64, q_0: f64, t: f64) -> f64 {
    (queue - q_0) / t
}

/// `[aecp-2010:eq2]` The load at which r rests while the queue is what it is.
fn resting_load(queue: f64, capacity: f64, q_0: f64, t: f64) -> f64 {
    capacity - queue_as_load(queue, q_0, t)
}

/// `[aecp-2010:eq49]` r·exp(βT₂·(1 − used/C)), where used is Σx + (q − q₀)/T.
fn r_next(r: f64, used: f64, capacity: f64, beta: f64, t_2: f64) -> f64 {
    r * (beta * t_2 * (1.0 - used / capacity)).exp()
}

/// r between the smallest code and the ceiling; a ceiling below the smallest code gives way.
fn clipped(r: f64, ceiling: f64) -> f64 {
    r.min(ceiling).min(fastest()).max(SLOWEST)
}

// ---------------------------------------------------------------------------------- source

/// The source: its rate moves towards the factor once a round trip.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    alpha: f64,
    form: Form,
    step: SourceStep,
    /// x, in packets/s.
    x: f64,
    /// The factor last heard.
    r: Option<f64>,
    /// When x was last updated; none before the first factor.
    updated: Option<Instant>,
}

impl crate::protocol::Source<Aecp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            alpha: params.alpha,
            form: params.form,
            step: params.step,
            x: params.x_0,
            r: None,
            updated: None,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header { factor: Factor::UNWRITTEN }
    }

    /// §5.2.
    fn on_ack(&mut self, ack: &Ack<Header>) {
        let Some(r) = ack.echo.factor.rate() else { return };
        self.r = Some(r);
        let t_1 = ack.now.since(*self.updated.get_or_insert(ack.now));
        if self.step == SourceStep::RoundTrip && t_1 < ack.rtt.unwrap_or(ack.base_rtt) {
            return;
        }
        let weight = match self.form {
            Form::Printed => weight_printed(self.alpha, t_1.as_secs()),
            Form::Exact => weight_exact(self.alpha, t_1.as_secs()),
        };
        self.x = x_next(self.x, r, weight);
        self.updated = Some(ack.now);
    }

    fn limit(&self) -> Limit {
        Limit { window: None, pacing: Some(Rate::from_bps(self.weight * self.x * self.packet.as_bits())) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(r) = self.r {
            probe.record("r", r);
            probe.record("x", self.x);
        }
    }
}

/// `[aecp-2010:eq46]` x^(1−w)·r^w.
fn x_next(x: f64, r: f64, weight: f64) -> f64 {
    x.powf(1.0 - weight) * r.powf(weight)
}

/// `[aecp-2010:eq46]` αT₁, eq. 48's 2τ; at most 1.
fn weight_printed(alpha: f64, t_1: f64) -> f64 {
    (alpha * t_1).min(1.0)
}

/// `[aecp-2010:eq3]` 1 − e^(−αT₁): eq. 3 solved for a constant r.
fn weight_exact(alpha: f64, t_1: f64) -> f64 {
    -(-alpha * t_1).exp_m1()
}

// ---------------------------------------------------------------------------------- parameters

crate::choice! {
    /// The weight of r in a source's step.
    pub enum Form {
        /// αT₁, as eq. 47 to 48 print it.
        Printed = "printed",
        /// 1 − e^(−αT₁), the solution of eq. 3.
        Exact = "exact",
    }
}

crate::choice! {
    /// How often a source steps.
    pub enum SourceStep {
        /// Once a round trip.
        RoundTrip = "round-trip",
        /// With every acknowledgement: in the exact form eq. 3 without sampling.
        Acknowledgement = "acknowledgement",
    }
}

crate::choice! {
    /// Where a link's factor starts.
    pub enum First {
        /// At x_0.
        SourceRate = "x_0",
        /// At C.
        Capacity = "capacity",
    }
}

crate::choice! {
    /// The largest factor of a link.
    pub enum Ceiling {
        /// C + q₀/T, where eq. 2 rests with an empty queue.
        EmptyQueue = "empty-queue",
        /// C.
        Capacity = "capacity",
    }
}

crate::choice! {
    /// How a factor becomes a code.
    pub enum Rounding {
        /// To the nearest, what is left carried to the next packet.
        Carried = "carried",
        /// To the nearest.
        Nearest = "nearest",
    }
}

crate::params! {
    /// Parameters of §4.3 and §5.
    pub struct Params {
        /// How fast sources approach the factor: α, per second.
        alpha: f64 = 2.0, "aecp-2010 §4.3";
        /// How fast the factor grows on an idle link: β, per second.
        beta: f64 = 1.0, "aecp-2010 §4.3";
        /// Time T over which a queue beyond q_0 counts as load.
        t: Duration = Duration::from_millis(2000), "aecp-2010 §4.3";
        /// Sampling time T_2 of a router.
        t_2: Duration = Duration::from_millis(100), "aecp-2010 §5";
        /// Queue aimed at, in packets.
        q_0: f64 = 100.0, "aecp-2010 §5";
        /// Rate of a source before it knows any, in packets/s.
        x_0: f64 = 10.0, "not given; chosen here";
        /// First factor of a link.
        r_0: First = First::SourceRate, "not given; aecp-2010 Theorem 2's first case";
        /// Form of the source's step.
        form: Form = Form::Printed, "aecp-2010 eq. 48";
        /// When a source steps.
        step: SourceStep = SourceStep::RoundTrip, "aecp-2010 §5.2, T_1 = τ";
        /// Largest factor of a link.
        ceiling: Ceiling = Ceiling::EmptyQueue, "not given; aecp-2010 eq. 2 at rest";
        /// Rounding of the factor.
        rounding: Rounding = Rounding::Carried, "not given; chosen here";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.alpha > 0.0, "alpha", "a number above zero")?;
        require(self.beta > 0.0, "beta", "a number above zero")?;
        require(!self.t.is_zero(), "t", "a time above zero")?;
        require(!self.t_2.is_zero(), "t_2", "a time above zero")?;
        require(self.q_0 >= 0.0, "q_0", "a number of packets, at least 0")?;
        require(
            (SLOWEST..=fastest()).contains(&self.x_0),
            "x_0",
            "packets/s that the header can carry, from 0.25 to 4.6e18",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::{Router as _, Source as _};
    use crate::testing::{close, connection, echo_after, link};

    /// `[aecp-2010:fig4]` every code's rate has that code again, and a rate is at most half a step off.
    #[test]
    fn fig4_codes_are_logarithms() {
        for code in 0..=Factor::LARGEST.0 {
            let rate = Factor(code).rate().expect("written");
            assert_eq!(Factor::nearest(place_of(rate)).0, Factor(code));
        }
        assert_eq!(Factor(0).rate(), Some(0.25));
        assert_eq!(Factor(2048).rate(), Some(1.0));
        assert_eq!(Factor::UNWRITTEN.rate(), None);
        close(Factor::LARGEST.rate().unwrap(), 4.605_447e18, 1e-4); // 2^(65534/1024 − 2)
        close(Factor(2049).rate().unwrap(), 1.000_677_131, 1e-8); // 2^(1/1024)
        for rate in [0.26, 10.0, 62_500.0, 1e12] {
            close(Factor::nearest(place_of(rate)).0.rate().unwrap(), rate, 3.4e-4);
        }
        assert_eq!(Factor::nearest(-1.0).0, Factor(0));
        assert_eq!(Factor::nearest(f64::NAN).0, Factor(0));
        assert_eq!(Factor::nearest(1e9).0, Factor::LARGEST);
    }

    /// `[aecp-2010:fig4]` Next Header and factor, byte for byte; −1 is what a sender writes (§5.2).
    #[test]
    fn fig4_header_on_the_wire() {
        let mut out = [0; 3];
        Header::default().encode(&mut out);
        assert_eq!(out, [6, 0xff, 0xff]);
        Header { factor: Factor(0x1234) }.encode(&mut out);
        assert_eq!(out, [6, 0x12, 0x34]);
        for code in 0..=u16::MAX {
            let header = Header { factor: Factor(code) };
            header.encode(&mut out);
            assert_eq!(Header::decode(&out), Some(header));
        }
        assert_eq!(Header::decode(&[17, 0, 0]), None);
        assert_eq!(Header::decode(&[6, 0]), None);
    }

    /// `[aecp-2010:eq49]` an empty link of 62500 packets/s: e^(0.1·(1 + 50/62500)); a full one with q = q₀ rests.
    #[test]
    fn eq49_router_step() {
        let used = queue_as_load(0.0, 100.0, 2.0);
        assert_eq!(used, -50.0);
        close(r_next(10.0, used, 62_500.0, 1.0, 0.1), 11.052_593, 1e-7);
        assert_eq!(r_next(10.0, 62_500.0 + queue_as_load(100.0, 100.0, 2.0), 62_500.0, 1.0, 0.1), 10.0);
        // Twice the capacity and 100 packets beyond q₀: e^(0.1·(1 − 2 − 0.0008)).
        close(r_next(10.0, 125_000.0 + queue_as_load(200.0, 100.0, 2.0), 62_500.0, 1.0, 0.1), 9.047_650, 1e-6);
        assert_eq!(resting_load(0.0, 62_500.0, 100.0, 2.0), 62_550.0);
    }

    /// `[aecp-2010:eq48]` at τ = 0.1 s: x^0.8·r^0.2, from 10 to 1000 by a fifth of two decades.
    #[test]
    fn eq48_source_step() {
        close(weight_printed(2.0, 0.1), 0.2, 1e-12);
        close(x_next(10.0, 1000.0, weight_printed(2.0, 0.1)), 25.118_864, 1e-7); // 10^1.4
        close(x_next(1000.0, 10.0, 0.2), 398.107_17, 1e-7); // 10^2.6
        assert_eq!(weight_printed(2.0, 0.5), 1.0);
        assert_eq!(weight_printed(2.0, 0.8), 1.0, "beyond 0.5 s eq. 48 is no mean any more");
        close(x_next(10.0, 1000.0, 1.0), 1000.0, 1e-12);
    }

    /// `[aecp-2010:eq3]` 1 − e^(−0.2); two steps of half the time are one.
    #[test]
    fn eq3_exact_step() {
        close(weight_exact(2.0, 0.1), 0.181_269_247, 1e-8);
        let once = x_next(10.0, 1000.0, weight_exact(2.0, 0.4));
        let half = x_next(10.0, 1000.0, weight_exact(2.0, 0.2));
        close(x_next(half, 1000.0, weight_exact(2.0, 0.2)), once, 1e-12);
        assert!(weight_exact(2.0, 1e6) <= 1.0);
    }

    /// `[aecp-2010:eq43]` the defaults are what it makes of α = 2.
    #[test]
    fn eq43_parameters() {
        let params = Params::default();
        assert_eq!(params.beta, params.alpha / 2.0);
        assert_eq!(params.t.as_secs(), 4.0 / params.alpha);
        Params { x_0: 0.2, ..params }.validate().expect_err("slower than the smallest code");
    }

    fn arrive(router: &mut Router, factor: Factor, kind: PacketKind, bytes: f64) -> Factor {
        let mut header = Header { factor };
        let (now, volume) = (Instant::ZERO, Volume::from_bytes(bytes));
        let mut passing = Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) };
        router.on_arrival(&link(1e8, 0.0), &mut passing);
        header.factor
    }

    /// `[aecp-2010:eq4]` a router lowers a factor and never raises it.
    #[test]
    fn eq4_the_smallest_factor_of_the_path() {
        let mut router = Router::new(&Params { rounding: Rounding::Nearest, ..Params::default() }, &link(1e8, 0.0));
        let ten = Factor::nearest(place_of(10.0)).0;
        assert_eq!(arrive(&mut router, Factor::UNWRITTEN, PacketKind::Syn, 40.0), ten);
        assert_eq!(arrive(&mut router, Factor(ten.0 + 1), PacketKind::Data, 1500.0), ten);
        assert_eq!(arrive(&mut router, Factor(ten.0 - 1), PacketKind::Data, 1500.0), Factor(ten.0 - 1));
    }

    #[test]
    fn carried_rounding_means_r() {
        let mut router = Router::new(&Params::default(), &link(1e8, 0.0));
        let sum: f64 =
            (0..1000).map(|_| f64::from(arrive(&mut router, Factor::UNWRITTEN, PacketKind::Data, 1500.0).0)).sum();
        assert!((sum / 1000.0 - place_of(10.0)).abs() < 1e-3);
    }

    /// A packet is what AECP's data is, and volumes of all sizes are load by their bytes.
    #[test]
    fn packets_are_those_of_the_data() {
        let params = Params { r_0: First::Capacity, ceiling: Ceiling::Capacity, ..Params::default() };
        let mut router = Router::new(&params, &link(8e6, 0.0));
        close(router.r, 8e6 / 12_000.0, 1e-12); // 1500 B until data is seen
        arrive(&mut router, Factor::UNWRITTEN, PacketKind::Syn, 40.0);
        for _ in 0..200 {
            arrive(&mut router, Factor::UNWRITTEN, PacketKind::Data, 1000.0);
        }
        // 200 kB and a SYN in 0.1 s of 8 Mbit/s are twice its capacity; 150 packets wait, 50 beyond q₀: 25 a second.
        router.on_timer(&link(8e6, 150_000.0), Instant::ZERO);
        close(router.r, 666.666_67 * (0.1 * (1.0 - 2.000_4 - 0.025_f64)).exp(), 1e-7);
        // Nothing more comes, and r climbs to the ceiling, C in packets of 1000 B.
        for _ in 0..100 {
            router.on_timer(&link(8e6, 0.0), Instant::ZERO);
        }
        assert_eq!(router.r, 1000.0);
    }

    #[test]
    fn a_ceiling_lets_one_flow_fill_the_queue() {
        let idle = |ceiling| {
            let mut router = Router::new(&Params { ceiling, ..Params::default() }, &link(1.2e7, 0.0));
            (0..200).for_each(|_| router.on_timer(&link(1.2e7, 0.0), Instant::ZERO));
            router.r
        };
        assert_eq!(idle(Ceiling::Capacity), 1000.0);
        assert_eq!(idle(Ceiling::EmptyQueue), 1050.0); // C + q₀/T
        let half = LinkView { target: Some(0.5), ..link(1.2e7, 0.0) };
        let mut router = Router::new(&Params::default(), &half);
        (0..200).for_each(|_| router.on_timer(&half, Instant::ZERO));
        assert_eq!(router.r, 500.0, "no queue to fill on a link that shall not be full");
    }

    /// §5.2 with T₁ = τ: one step a round trip, however many acknowledgements come.
    #[test]
    fn a_source_steps_once_a_round_trip() {
        let mut source = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
        let factor = Factor::nearest(place_of(1000.0)).0;
        let r = factor.rate().unwrap();
        let mut ack = |ms, factor| {
            source.on_ack(&Ack {
                base_rtt: Duration::from_millis(50),
                ..Ack::new(Instant::ZERO + Duration::from_millis(ms), Header { factor }, Duration::from_millis(100))
            });
            source.limit().pacing.unwrap().as_bps() / 24_000.0 // weight 2, 12000 bit a packet
        };
        assert_eq!(ack(0, Factor::UNWRITTEN), 10.0, "no router on the path");
        assert_eq!(ack(100, factor), 10.0, "the clock starts");
        assert_eq!(ack(199, factor), 10.0);
        close(ack(200, factor), 10.0_f64.powf(0.8) * r.powf(0.2), 1e-12);
        close(ack(299, factor), 10.0_f64.powf(0.8) * r.powf(0.2), 1e-12);
        close(ack(1300, factor), r, 1e-12); // silent for 1.1 s: αT₁ is past 1
    }

    #[test]
    fn a_receiver_copies_the_last_header() {
        let after = |headers: &[Header]| echo_after::<Aecp>(&Params::default(), headers);
        assert_eq!(after(&[]).factor, Factor::UNWRITTEN);
        assert_eq!(after(&[Header { factor: Factor(5) }, Header { factor: Factor(77) }]).factor, Factor(77));
    }
}
