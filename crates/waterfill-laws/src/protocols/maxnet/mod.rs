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

mod fixed_point;
mod params;
mod receiver;
mod router;
mod source;

pub use params::{Order, Params};
pub use receiver::Receiver;
pub use router::Router;
pub use source::Source;

pub(super) use params::check_range;
pub(super) use receiver::averaged;
pub(super) use router::{highest, price_next};
pub(super) use source::{clipped, rate, window, xi_equilibrium};

use crate::arithmetic::RealOrFixed;
use crate::params::ParamError;
use crate::protocol::{Host, Info, Kind, LinkView, Protocol, Signal, Wire};
use crate::units::Rate;

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
    type Router = RealOrFixed<Router, fixed_point::Router>;
    type Receiver = RealOrFixed<Receiver, fixed_point::Receiver>;
    type Source = RealOrFixed<Source, fixed_point::Source>;

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
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Price(code) => code,
            Self::StartRate(code) => code | FLAG,
        }
    }

    pub(super) fn from_bits(bits: u32) -> Self {
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

/// `[maxnet-2007:fig4]` The option: kind, length, echo, price.
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

// ---------------------------------------------------------------------------------- equations of both ends

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

/// `[tcp-maxnet-2006:3.3]` −ln(rate/x_max); no spare capacity is the largest code.
pub(super) fn start_rate_code(rate: Rate, x_max: Rate) -> f64 {
    // ln of a negative is NaN, which would quantise to 0, "no router wrote": so the floor.
    -(rate / x_max).max(f64::MIN_POSITIVE).ln()
}

/// `[tcp-maxnet-2006:3.3]` The rate that such a code stands for.
pub(super) fn start_rate(code: f64, x_max: Rate) -> Rate {
    x_max * (-code).exp()
}

#[cfg(test)]
mod tests;
