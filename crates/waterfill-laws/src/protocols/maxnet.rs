//! MaxNet: sources obey the highest price on their path.
//!
//! # Law
//! Every link computes a price, packets carry the largest on their path, and a source's rate falls
//! exponentially with it. A slow state ξ turns the fast, always stable response into fair rates.
//!
//! - `eq2`  q = max p over the links of the path
//! - `eq3`  ṗ = (y − μC)/C, in Fig. 3 once every dt_p from the volume y_dt that arrived, plus Q·dt_p/T₀
//! - `eq6a` x = x_max · exp(ξ − αq/τ)
//! - `eq7`  D(q) = x_max · exp(−q/T), the demand that all sources share in equilibrium
//! - `eq10` ξ ← ξ + (αη/τ²)·dt·((Tα/τ − 1)·q − Tξ), then W = τ·x; ξ rests at ξ* = αq/τ − q/T
//! - `IV.B` MaxStart: begin at the least spare capacity (μ + (1 − μ)/4)·C − y of the path, then
//!   rise by Δ·dt/(2τ) about sixteen times a round trip until the price's rate is reached
//! - `V`    a price is 24 bits: a flag, 5 integer and 18 fractional bits
//! - `VI`   p ≥ p_min = D⁻¹(C); ξ never passes ξ*; the receiver averages prices over one round trip
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | p, q | `price` | s (a price is a time: D divides it by T) |
//! | y_dt | `arrived` | bytes |
//! | Q | `LinkView::queue` | bytes |
//! | C_l | `LinkView::capacity` | bit/s |
//! | μ | `mu` | 1 |
//! | dt_p, T₀ | `dt_p`, `t_0` | s |
//! | x_max | `x_max` | bit/s |
//! | ξ | `xi` | 1 |
//! | α, η | `alpha`, `eta` | 1 |
//! | T, τ, dt | `t`, `base_rtt` / `tau`, `dt` | s |
//! | W | `window` | bytes |
//! | Δ | `delta` | bit/s |
//!
//! # Header
//! The TCP option of Fig. 4: kind 42, length, echo (3 bytes), price (3 bytes): 8 bytes in data
//! and in acknowledgements. The field's top bit says price (0) or start rate (1).
//!
//! # Router
//! [`Router`]: one addition, one comparison and one assignment a packet; a price update every dt_p.
//!
//! # Source
//! [`Source`]: an exponential for each acknowledgement, none in between.
//!
//! # Parameters
//! [`Params`]: §VI's values by default; μ = 0.9 as in §VII.A.
//!
//! # Readings and deviations
//! - Fig. 3 adds `Q/T0` to a volume; the term is a rate, so it is taken as Q·dt_p/T₀.
//! - Prices are clipped at p_min (§VI), not at 0 (Fig. 3).
//! - Fig. 4's option length 6 does not count kind and length as TCP does: it is 8.
//! - The start rate travels as −ln(rate/x_max) (thesis §3.3), without T: down to 12.7 bit/s.
//! - "The current transmission rate" of §IV.B is what arrived in the last full dt_p, over dt_p
//!   (thesis §3.1.2's y/dt).
//! - ξ is updated before the window, in the order Fig. 2 prints (`order`): below τ ≈ αηT it then
//!   reaches ξ* within one update, and the loop is a plain integrator.
//! - ξ starts at ξ* of the first price (thesis Fig. 5, step 2), so that "the advertised rate" to
//!   which MaxStart rises is D(q).
//! - MaxStart's clock starts with the first price: counted from the handshake, the first rise would
//!   be Δ/2 in one step where §IV.B says "approximately 1/32".
//! - The average over one round trip is exponential with weight dt/τ, at most 1; the receiver takes
//!   for τ its smallest own sample (the handshake first, then echo to data clocked by it).
//! - x never exceeds x_max ("maximal supported transmission rate"): a price that falls faster
//!   than ξ follows would otherwise ask for more than any link has.
//! - A field that no router wrote (code 0) is no price: the source keeps its window. A
//!   connection's weight scales eq. 6a.
//! - A source sends at least a packet a round trip, as any TCP does: with less it would not hear
//!   that the price has fallen. So a link holds its target for up to μCτ/packet flows.
//! - Losses do not move the window: §VI overwrites what the rest of TCP makes of them, at the next
//!   acknowledgement; so after a time-out one packet goes, as in any TCP, and W follows its echo.
//! - `promise` is §IV.B's "further enhancement" (remember what was promised to earlier starters, with weight
//!   e^(−age/T₀)); off by default, as in the paper's implementation.
//! - `compensate` is the thesis's eq. 12, which the 2007 paper does not have: when τ changes, ξ changes by
//!   qα·(1/τ_new − 1/τ_old), so that the rate stays. Off by default.
//! - Where data arrives without a price (code 0: its last router is gone) the average ends, and an echo of
//!   code 0 says so: an average that fell towards 0 would be an order to send at x_max.
//! - A price that comes before any start rate ends MaxStart: a start rate after it is not heard.
//! - Kernel arithmetic: `kernel/maxnet.h` tells every scale, and every difference.
//!
//! # Validation
//! Equation tests below, by hand from the paper; §V's ranges; the thesis's p_min of 1 Gbit/s;
//! experiments `maxnet-2007/two-hop` and `maxnet-2007/cross-traffic`. In the simulator, with one set of parameters and
//! paced packets, utilisation stays within 1.5 % of μ from 100 kbit/s at 6 s to 100 Gbit/s at 1.2 µs, the smallest RTT tried:
//! what bounds it is the window, of at least ten packets, or fifty where an RTT is above 12 ms (whole packets round it down).
//! With `order = "rate-first"` the loop fails at 1.2 µs and is 2 % low at 1.2 ms. On a five-hop parking lot every flow is within 3 % of its
//! max-min share, and short of a router at the bottleneck the queue fills: `tests/explicit.rs` of the simulator.
//! The integers are held against the law equation by equation over their range, and whole, in `kernel`; side by side in the
//! simulator (`tests/maxnet_kernel.rs`: a dumbbell, two round trips, a parking lot) mean rates differ by 0.09 % at most and
//! utilisations by 0.004 %. `examples/maxnet_record.rs` writes their answers for a loaded kernel program to be held against.
//!
//! # References
//! `maxnet-2007`: Andrew, Jacobsson, Low, Suchara, Witt, Wydrowski, "MaxNet: Theory and
//! Implementation". `tcp-maxnet-2006`: Suchara, "TCP MaxNet", thesis.

mod kernel;

use crate::arithmetic::{Arithmetic, ChoosesArithmetic, RealOrFixed};
use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, Host, Info, Kind, Limit, LinkView, PacketKind, Passing, Probe, Protocol, Received, Sending,
    Signal, Wire,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `maxnet`.
#[derive(Debug)]
pub struct MaxNet;

impl Protocol for MaxNet {
    const INFO: Info = Info {
        name: "maxnet",
        summary: "sources obey the highest price on their path; max-min fair, empty queues (2007)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: false,
        host: Host::EXPLICIT,
        signals: &[
            Signal { name: "price", unit: "s", doc: "the link's price, or the averaged price the source obeys" },
            Signal { name: "xi", unit: "1", doc: "the source's slow state ξ" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = RealOrFixed<Router, kernel::Router>;
    type Receiver = RealOrFixed<Receiver, kernel::Receiver>;
    type Source = RealOrFixed<Source, kernel::Source>;

    fn check_link(params: &Params, link: &LinkView) -> Result<(), ParamError> {
        check_range(params.x_max, params.t, link.capacity)
    }
    fn target(params: &Params) -> f64 {
        params.mu
    }
}

// ---------------------------------------------------------------------------------- header

/// The 24-bit field of a packet: a price, or a start rate (§V).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A price in units of 2⁻¹⁸ s; 0 is "no router wrote".
    Price(u32),
    /// −ln(rate/x_max) in units of 2⁻¹⁸; 0 is "no router wrote".
    StartRate(u32),
}

/// Fractional bits of the 23-bit value (§V: 18 give a relative precision of 10⁻⁵ at T = 0.4 s).
pub const FRACTION_BITS: u32 = 18;
/// The largest 23-bit code: 5 integer bits (readings: §V needs 4, the field has 5).
pub const CODE_MAX: u32 = (1 << 23) - 1;
const FLAG: u32 = 1 << 23;
const SCALE: f64 = (1 << FRACTION_BITS) as f64;

/// `[maxnet-2007:V]` A non-negative real as a 23-bit code, to the nearest, saturating.
#[must_use]
pub fn quantise(value: f64) -> u32 {
    // `as` truncates, saturates below at 0 and maps NaN to 0; above, `min` saturates.
    ((value * SCALE + 0.5) as u32).min(CODE_MAX)
}

/// `[maxnet-2007:V]` The real that a 23-bit code stands for.
#[must_use]
pub fn real(code: u32) -> f64 {
    f64::from(code) / SCALE
}

impl Field {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Price(code) => code,
            Self::StartRate(code) => code | FLAG,
        }
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        if bits & FLAG == 0 { Self::Price(bits & CODE_MAX) } else { Self::StartRate(bits & CODE_MAX) }
    }
}

impl Default for Field {
    fn default() -> Self {
        Self::Price(0)
    }
}

/// Kind of the TCP option on the paper's wire (Fig. 4). Not IANA's assignment: research use only.
const OPTION_KIND: u8 = 42;
const OPTION_BYTES: usize = 8;

/// Fig. 4's option: kind, length, echo, price.
fn encode_option(echo: Field, price: Field, out: &mut [u8]) {
    out[0] = OPTION_KIND;
    out[1] = OPTION_BYTES as u8;
    out[2..5].copy_from_slice(&echo.bits().to_be_bytes()[1..]);
    out[5..8].copy_from_slice(&price.bits().to_be_bytes()[1..]);
}

fn decode_option(bytes: &[u8]) -> Option<(Field, Field)> {
    match *bytes.first_chunk::<OPTION_BYTES>()? {
        [OPTION_KIND, 8, e0, e1, e2, p0, p1, p2] => {
            let field = |a, b, c| Field::from_bits(u32::from_be_bytes([0, a, b, c]));
            Some((field(e0, e1, e2), field(p0, p1, p2)))
        }
        _ => None,
    }
}

/// What a data packet carries: the price field of Fig. 4, which routers raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The highest price, or least start rate, so far.
    pub price: Field,
}

impl Wire for Header {
    const BYTES: usize = OPTION_BYTES;
    fn encode(&self, out: &mut [u8]) {
        encode_option(Field::default(), self.price, out);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_option(bytes).map(|(_, price)| Self { price })
    }
}

/// What an acknowledgement carries: the echo field of Fig. 4, which no router touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// The averaged price, or the start rate asked for.
    pub echo: Field,
}

impl From<Header> for Echo {
    fn from(header: Header) -> Self {
        Self { echo: header.price }
    }
}

impl Wire for Echo {
    const BYTES: usize = OPTION_BYTES;
    fn encode(&self, out: &mut [u8]) {
        encode_option(self.echo, Field::default(), out);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_option(bytes).map(|(echo, _)| Self { echo })
    }
}

// ---------------------------------------------------------------------------------- router

/// The router of one link direction: a virtual queue that fills when more than μC arrives.
#[derive(Clone, Debug)]
pub struct Router {
    capacity: Rate,
    mu: f64,
    dt_p: Duration,
    t: f64,
    t_0: f64,
    x_max: Rate,
    price_min: f64,
    promise: bool,
    /// p, real; its code is what packets get.
    price: f64,
    price_code: u32,
    /// y_dt: volume since the last update.
    arrived: Volume,
    /// y: rate over the last full dt_p.
    arrival_rate: Rate,
    /// Start rates promised and not yet seen to arrive (only with `promise`).
    promised: Rate,
    next_update: Instant,
}

impl Router {
    /// The link's capacity may have changed.
    fn follow(&mut self, link: &LinkView) {
        if self.capacity != link.capacity {
            self.capacity = link.capacity;
            self.price_min = demand_inverse(link.capacity, self.x_max, self.t);
            self.price = self.price.max(self.price_min);
        }
    }

    /// The spare capacity as code, and its promise remembered.
    fn start_code(&mut self) -> u32 {
        let spare = spare_capacity(self.mu, self.capacity, self.arrival_rate + self.promised);
        if self.promise {
            self.promised += spare.max(Rate::ZERO);
        }
        quantise(start_rate_code(spare, self.x_max))
    }
}

impl crate::protocol::Router<MaxNet> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let price_min = demand_inverse(link.capacity, params.x_max, params.t.as_secs());
        Self {
            capacity: link.capacity,
            mu: link.target.unwrap_or(params.mu),
            dt_p: params.dt_p,
            t: params.t.as_secs(),
            t_0: params.t_0.as_secs(),
            x_max: params.x_max,
            price_min,
            promise: params.promise,
            price: price_min,
            price_code: quantise(price_min),
            arrived: Volume::ZERO,
            arrival_rate: Rate::ZERO,
            promised: Rate::ZERO,
            next_update: Instant::ZERO + params.dt_p,
        }
    }

    /// Fig. 3, step 2.
    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        match passing.header.as_deref_mut() {
            Some(Header { price: Field::Price(code) }) => *code = highest(*code, self.price_code),
            Some(Header { price: Field::StartRate(code) }) => *code = highest(*code, self.start_code()),
            None => {}
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    /// Fig. 3, step 1.
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.follow(link);
        let dt_p = self.dt_p.as_secs();
        self.arrival_rate = self.arrived / self.dt_p;
        let arrived = with_queue(self.arrived, link.queue, dt_p, self.t_0);
        self.price = price_next(self.price, arrived, self.capacity, self.mu, dt_p, self.price_min);
        self.price_code = quantise(self.price);
        self.arrived = Volume::ZERO;
        if self.promise {
            // A promise is kept for T₀, the router's guess at a round trip: by then it arrives as load.
            self.promised = self.promised * (-dt_p / self.t_0).exp();
        }
        self.next_update = now + self.dt_p;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", self.price);
    }
}

/// `[maxnet-2007:eq2]` The higher of two codes: a price rises along the path, a start rate falls.
pub(crate) fn highest(code: u32, own: u32) -> u32 {
    code.max(own)
}

/// `[maxnet-2007:fig3]` y_dt + Q·dt_p/T₀: with what stands in the queue, as if it had been sent again.
fn with_queue(arrived: Volume, queue: Volume, dt_p: f64, t_0: f64) -> Volume {
    arrived + queue * (dt_p / t_0)
}

/// `[maxnet-2007:eq3]` p + y_dt/C − μ·dt_p, not below p_min.
pub(crate) fn price_next(price: f64, arrived: Volume, capacity: Rate, mu: f64, dt_p: f64, price_min: f64) -> f64 {
    (price + arrived / capacity - mu * dt_p).max(price_min)
}

/// `[maxnet-2007:IV.B]` (μ + (1 − μ)/4)·C − y; negative when the link is past it.
fn spare_capacity(mu: f64, capacity: Rate, arrival_rate: Rate) -> Rate {
    capacity * (mu + (1.0 - mu) / 4.0) - arrival_rate
}

/// `[tcp-maxnet-2006:3.3]` −ln(rate/x_max); no spare capacity is the largest code.
pub(crate) fn start_rate_code(rate: Rate, x_max: Rate) -> f64 {
    // ln of a negative is NaN, which would quantise to 0, "no router wrote": so the floor.
    -(rate / x_max).max(f64::MIN_POSITIVE).ln()
}

/// `[tcp-maxnet-2006:3.3]` The rate that such a code stands for.
pub(crate) fn start_rate(code: f64, x_max: Rate) -> Rate {
    x_max * (-code).exp()
}

// ---------------------------------------------------------------------------------- receiver

/// The receiver: averages prices over one round trip and echoes the average (§VI).
#[derive(Clone, Debug)]
pub struct Receiver {
    average_prices: bool,
    rtt: Option<Duration>,
    average: Option<f64>,
    last: Instant,
    start_rate: Option<u32>,
}

impl crate::protocol::Receiver<MaxNet> for Receiver {
    fn new(params: &Params) -> Self {
        Self { average_prices: params.average, rtt: None, average: None, last: Instant::ZERO, start_rate: None }
    }

    fn on_data(&mut self, received: &Received<Header>) {
        if let Some(sample) = received.rtt {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        match received.header.price {
            Field::StartRate(code) => self.start_rate = Some(code),
            Field::Price(0) => (self.start_rate, self.average) = (None, None), // its last router is gone
            Field::Price(code) => {
                self.start_rate = None;
                let weight = match (self.average_prices, self.rtt) {
                    (true, Some(rtt)) if !rtt.is_zero() => received.now.since(self.last) / rtt,
                    _ => 1.0,
                };
                self.average = Some(self.average.map_or(real(code), |average| averaged(average, real(code), weight)));
                self.last = received.now;
            }
        }
    }

    fn echo(&mut self, _now: Instant) -> Echo {
        let price = || Field::Price(quantise(self.average.unwrap_or(0.0)));
        Echo { echo: self.start_rate.map_or_else(price, Field::StartRate) }
    }
}

/// `[maxnet-2007:VI]` The average moved towards a price by weight dt/τ, at most all the way.
pub(crate) fn averaged(average: f64, price: f64, weight: f64) -> f64 {
    average + weight.min(1.0) * (price - average)
}

// ---------------------------------------------------------------------------------- source

/// The source: window from price, fair by ξ.
#[derive(Clone, Debug)]
pub struct Source {
    x_max: Rate,
    weight: f64,
    packet: Volume,
    alpha: f64,
    eta: f64,
    t: f64,
    dt_min: Duration,
    order: Order,
    compensate: bool,
    path: Path,
    /// The averaged price last obeyed.
    price: f64,
    xi: f64,
    /// When ξ was last updated; none before the first price.
    updated: Option<Instant>,
    start: Start,
    /// The advertised rate x.
    price_rate: Rate,
    window: Volume,
    pacing: Option<Rate>,
}

/// What follows from the base round trip alone: worked out when that changes, not for each
/// acknowledgement, whose cost divisions would double.
#[derive(Clone, Copy, Debug)]
struct Path {
    base_rtt: Duration,
    /// α/τ.
    gain: f64,
    /// η/τ, the zero of the lead-lag compensator.
    zero: f64,
    /// A packet a round trip: with less it would hear too late that the price has fallen.
    rate_min: Rate,
}

/// Where MaxStart stands (§IV.B).
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    /// No start rate has come.
    Asking,
    /// Rising from `initial`; now at `rate`, last raised at `raised` (none before the first price).
    Rising { initial: Rate, rate: Rate, raised: Option<Instant> },
    /// The price's rate was reached, or no router answered.
    Over,
}

impl Source {
    fn set_rate(&mut self, rate: Rate) {
        let rate = rate.max(self.path.rate_min);
        self.window = window(rate, self.path.base_rtt);
        self.pacing = Some(rate);
    }

    fn set_base_rtt(&mut self, base_rtt: Duration) {
        if base_rtt != self.path.base_rtt {
            let tau = base_rtt.as_secs();
            let gain = self.alpha / tau;
            if self.compensate && self.updated.is_some() {
                self.xi = compensated(self.xi, self.price, gain, self.path.gain);
            }
            self.path = Path { base_rtt, gain, zero: self.eta / tau, rate_min: self.packet / base_rtt };
        }
    }

    /// Fig. 2 for the price `q`.
    fn obey(&mut self, q: f64, now: Instant) {
        let Path { gain, zero, .. } = self.path;
        self.price = q;
        let xi_rest = xi_equilibrium(q, gain, self.t);
        let xi = match self.updated {
            None => {
                if self.start == Start::Asking {
                    self.start = Start::Over;
                }
                xi_rest
            }
            Some(before) => {
                let dt = now.since(before).as_secs();
                clipped(self.xi, xi_next(self.xi, q, dt, gain, zero, self.t), xi_rest)
            }
        };
        let xi_in_rate = match self.order {
            Order::XiFirst => xi,
            Order::RateFirst => self.updated.map_or(xi, |_| self.xi),
        };
        self.xi = xi;
        self.updated = Some(now);
        self.price_rate = self.weight * rate(self.x_max, xi_in_rate, q, gain);
    }

    /// The rate to use: MaxStart's while it is below the price's.
    fn start_or_price_rate(&mut self, now: Instant) -> Rate {
        let base_rtt = self.path.base_rtt;
        if let Start::Rising { initial, rate, raised } = &mut self.start {
            let dt = now.since(*raised.get_or_insert(now));
            // First whether it is over: from a price's rate below the initial one Δ would be negative, and never end.
            if *rate < self.price_rate && dt >= base_rtt / STEPS_PER_RTT {
                *rate += start_rise(self.price_rate - *initial, dt, base_rtt);
                *raised = Some(now);
            }
            if *rate < self.price_rate {
                return *rate;
            }
            self.start = Start::Over;
        }
        self.price_rate
    }
}

/// §IV.B: MaxStart's rate rises "approximately 16 times per RTT".
const STEPS_PER_RTT: u64 = 16;

impl crate::protocol::Source<MaxNet> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            x_max: params.x_max,
            weight: connection.weight,
            packet: connection.packet,
            alpha: params.alpha,
            eta: params.eta,
            t: params.t.as_secs(),
            dt_min: params.dt_min,
            order: params.order,
            compensate: params.compensate,
            path: Path { base_rtt: Duration::ZERO, gain: 0.0, zero: 0.0, rate_min: Rate::ZERO },
            price: 0.0,
            xi: 0.0,
            updated: None,
            start: Start::Asking,
            price_rate: Rate::ZERO,
            window: connection.initial_window,
            pacing: None,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        Header { price: if sending.kind == PacketKind::Syn { Field::StartRate(0) } else { Field::Price(0) } }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        self.set_base_rtt(ack.base_rtt);
        match ack.echo.echo {
            Field::StartRate(code) => {
                if self.start == Start::Asking {
                    if code == 0 {
                        self.start = Start::Over; // no router on the path
                        return;
                    }
                    let initial = start_rate(real(code), self.x_max);
                    self.start = Start::Rising { initial, rate: initial, raised: None };
                    self.set_rate(initial);
                }
            }
            Field::Price(0) => {} // no router on the path, or no price has come
            Field::Price(code) => {
                if self.updated.is_none_or(|before| ack.now.since(before) >= self.dt_min) {
                    self.obey(real(code), ack.now);
                    let rate = self.start_or_price_rate(ack.now);
                    self.set_rate(rate);
                }
            }
        }
    }

    fn limit(&self) -> Limit {
        Limit { window: Some(self.window), pacing: self.pacing }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if self.updated.is_some() {
            probe.record("price", self.price);
            probe.record("xi", self.xi);
        }
    }
}

/// `[maxnet-2007:eq7]` D(q) = x_max·exp(−q/T).
#[must_use]
pub fn demand(q: f64, x_max: Rate, t: f64) -> Rate {
    x_max * (-q / t).exp()
}

/// `[maxnet-2007:eq8]` D⁻¹(x) = −T·ln(x/x_max).
#[must_use]
pub fn demand_inverse(x: Rate, x_max: Rate, t: f64) -> f64 {
    -t * (x / x_max).ln()
}

/// Whether the 23-bit field holds the prices of a link: of all of its capacity, and of a thousandth of it for one flow.
pub(crate) fn check_range(x_max: Rate, t: Duration, capacity: Rate) -> Result<(), ParamError> {
    let expected = format!("more than the link's {:e} bit/s", capacity.as_bps());
    require(x_max > capacity, "x_max", &expected)?;
    let highest = demand_inverse(capacity / 1000.0, x_max, t.as_secs());
    let expected =
        format!("a time whose prices stay below 32 s, but a thousandth of the link would have {highest:.1} s");
    require(highest < real(CODE_MAX), "t", &expected)
}

/// `[maxnet-2007:eq6a]` x = x_max·exp(ξ − αq/τ) with `gain` = α/τ, not above x_max.
pub(crate) fn rate(x_max: Rate, xi: f64, q: f64, gain: f64) -> Rate {
    x_max * (xi - gain * q).min(0.0).exp()
}

/// `[maxnet-2007:eq10]` ξ + (αη/τ²)·dt·((Tα/τ − 1)·q − Tξ) with `gain` = α/τ and `zero` = η/τ.
fn xi_next(xi: f64, q: f64, dt: f64, gain: f64, zero: f64, t: f64) -> f64 {
    xi + gain * zero * dt * ((t * gain - 1.0) * q - t * xi)
}

/// `[maxnet-2007:VI]` ξ* = αq/τ − q/T with `gain` = α/τ, where eq. 10 rests.
pub(crate) fn xi_equilibrium(q: f64, gain: f64, t: f64) -> f64 {
    gain * q - q / t
}

/// `[tcp-maxnet-2006:eq12]` ξ + q·(α/τ_new − α/τ_old): eq. 6a gives the rate it gave.
fn compensated(xi: f64, q: f64, gain_new: f64, gain_old: f64) -> f64 {
    xi + q * (gain_new - gain_old)
}

/// `[maxnet-2007:VI]` The step from `xi` to `next`, stopped at `rest` if it would pass it.
pub(crate) fn clipped(xi: f64, next: f64, rest: f64) -> f64 {
    if (xi <= rest) == (next <= rest) { next } else { rest }
}

/// `[maxnet-2007:eq10]` W = τ·x.
pub(crate) fn window(rate: Rate, base_rtt: Duration) -> Volume {
    rate * base_rtt
}

/// `[maxnet-2007:IV.B]` Δ·dt/(2τ).
fn start_rise(delta: Rate, dt: Duration, base_rtt: Duration) -> Rate {
    delta * (dt / base_rtt / 2.0)
}

// ---------------------------------------------------------------------------------- parameters

crate::choice! {
    /// Whether ξ or the rate is updated first in eq. 10.
    pub enum Order {
        /// As Fig. 2 prints it.
        XiFirst = "xi-first",
        /// The rate from the old ξ.
        RateFirst = "rate-first",
    }
}

crate::params! {
    /// Parameters of §VI.
    pub struct Params {
        /// Maximal supported rate x_max.
        x_max: Rate = Rate::from_bps(1e15), "maxnet-2007 §VI";
        /// Speed of convergence T of the demand function.
        t: Duration = Duration::from_millis(400), "maxnet-2007 §VI";
        /// Overall loop gain α.
        alpha: f64 = 0.66, "maxnet-2007 §VI";
        /// Zero η/τ of the lead-lag compensator.
        eta: f64 = 0.06, "maxnet-2007 §VI";
        /// Least time between two updates of ξ and W.
        dt_min: Duration = Duration::from_micros(1), "maxnet-2007 §VI";
        /// Target utilisation μ of a link.
        mu: f64 = 0.9, "maxnet-2007 §VII.A (0.94 in §VII.B)";
        /// Interval dt_p between two price updates of a router.
        dt_p: Duration = Duration::from_millis(1), "maxnet-2007 §VI";
        /// Time scale T_0 on which a standing queue counts as load.
        t_0: Duration = Duration::from_millis(130), "maxnet-2007 §VI";
        /// Whether the receiver averages prices over one round trip.
        average: bool = true, "maxnet-2007 §VI";
        /// Order of the two steps of eq. 10.
        order: Order = Order::XiFirst, "maxnet-2007 Fig. 2";
        /// Whether a router remembers start rates it has promised, for T_0.
        promise: bool = false, "maxnet-2007 §IV.B, further enhancements";
        /// Whether ξ is corrected when the base round trip changes.
        compensate: bool = false, "tcp-maxnet-2006 eq. 12; not in maxnet-2007";
        /// Real numbers, or the kernel's integers.
        arithmetic: Arithmetic = Arithmetic::Real, "maxnet-2007 §VI: fixed-point arithmetic";
    }
}

impl ChoosesArithmetic for Params {
    fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.x_max.as_bps() > 0.0, "x_max", "a rate above zero")?;
        require(!self.t.is_zero(), "t", "a time above zero")?;
        require(
            self.alpha > 0.0 && self.alpha < std::f64::consts::FRAC_PI_2,
            "alpha",
            "a number in (0, π/2), by eq. 4",
        )?;
        require(self.eta > 0.0, "eta", "a number above zero")?;
        require(self.mu > 0.0 && self.mu <= 1.0, "mu", "a number in (0, 1]")?;
        require(self.dt_p >= Duration::from_micros(1), "dt_p", "a time of at least 1 µs")?;
        require(self.t_0 > self.dt_p, "t_0", "a time longer than dt_p")?;
        kernel::check(self)
    }
}

#[cfg(test)]
mod tests;
