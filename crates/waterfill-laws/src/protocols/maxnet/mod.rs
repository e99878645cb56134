//! MaxNet: a source's rate follows the highest price on its path.
//!
//! # Law
//! Every link computes a price, packets carry the highest price on their path, and a source's rate falls exponentially
//! with it. The slow state ξ turns this fast, always stable response into fair rates.
//!
//! - `eq2`  q = max p over the links of the path
//! - `eq3`  ṗ = (y − μC)/C, in Fig. 3 once every dt_p from the volume y_dt that arrived, plus Q·dt_p/T₀
//! - `eq6a` x = x_max · exp(ξ − αq/τ)
//! - `eq7`  D(q) = x_max · exp(−q/T), the demand that all sources share in equilibrium
//! - `eq10` ξ ← ξ + (αη/τ²)·dt·((Tα/τ − 1)·q − Tξ), then W = τ·x; the equilibrium is ξ* = αq/τ − q/T
//! - `IV.B` MaxStart: begin at the smallest spare capacity (μ + (1 − μ)/4)·C − y of the path, then
//!   rise by Δ·dt/(2τ) about sixteen times per RTT until the price's rate is reached
//! - `V`    a price is 24 bits: a flag, 5 integer and 18 fractional bits
//! - `V`    p ≤ p_max = D⁻¹(x_min), our reading of the range of rates
//! - `VI`   p ≥ p_min = D⁻¹(C); ξ never passes ξ*; the receiver averages prices over one RTT
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
//! | x_max, x_min | `x_max`, `x_min` | bit/s |
//! | ξ | `xi` | 1 |
//! | α, η | `alpha`, `eta` | 1 |
//! | T, τ, dt | `t`, `base_rtt` / `tau`, `dt` | s |
//! | W | `window` | bytes |
//! | Δ | `delta` | bit/s |
//!
//! # Header
//! The TCP option of Fig. 4: kind 42, length, echo (3 bytes), price (3 bytes): 8 bytes in data
//! and in acknowledgements. The top bit of a field is 0 for a price, 1 for a start rate.
//!
//! With `carriage = "csig"` data has a CSIG tag instead: 8 bytes with a code of 20 bits, or 4 bytes with 5 (`code_bits = 5`).
//! The code divides the rates from `code_max` to `code_min` into bands of one width in ln(rate), so the unit of prices is
//! T·ln(code_max/code_min)/2^bits: 5.6 µs by default, 0.34 ns under `profile = "datacenter"` at 12 µs. Prices have type 7 and
//! start rates type 6, which CSIG does not assign. Code 0 means that no router wrote it. Receivers average codes and return
//! them in the option, with 3 or 18 fractional bits. A link beyond `code_max` is refused, and captures omit the tag.
//!
//! # Router
//! [`Router`]: one addition, one comparison and one assignment per packet; a price update every dt_p.
//!
//! # Source
//! [`Source`]: one exponential per acknowledgement.
//!
//! # Parameters
//! [`Params`]: §VI's values by default, μ = 0.9 as in §VII.A, and the thesis's eq. 12. The simulator, the fluid model, the
//! testbed and the daemon `waterfilld` have the same defaults. `arithmetic = "kernel"` runs `kernel/maxnet.h` at hosts and
//! routers. `"kernel-host"` also runs what the kernel's program adds at hosts (`kernel/host.h`), and paces.
//!
//! # Readings and deviations
//! - "Averaged … over one RTT", "weighted by the interval since the previous price signal" (§VI) has two readings. By
//!   default the average is exponential with weight dt/τ, at most 1. With `average = "sliding"` it is the mean of the
//!   last τ, each price with weight dt. That mean leaves more gain: §VI's α is certified for mixtures of RTTs with the
//!   exponential average only (theory.md).
//! - Fig. 3 adds `Q/T0` to a volume, so its T₀ counts intervals dt_p. `t_0` is a time: the term is Q·dt_p/T₀, the same law.
//! - ξ is updated before the window, in the order that Fig. 2 prints (`order`). Below τ ≈ αηT it then reaches ξ* within
//!   one update, and the loop is a plain integrator.
//! - "The current transmission rate" of §IV.B is the volume of the last full dt_p over dt_p (y/dt of thesis §3.1.2).
//!   Windows travel as bursts, so 1 ms of a full link can be idle. `load_average` averages the rate exponentially.
//! - `compensate` is the thesis's eq. 12, which the 2007 paper does not have: when τ changes, ξ changes by
//!   qα·(1/τ_new − 1/τ_old), so that the rate stays the same. It is on by default: on a real path the smallest RTT falls
//!   for a long time, and τ of the kernel's host changes in factors of two. The paper's experiments turn it off.
//!
//! W = τ·x counts whole packets, and is at least one. With `paced = true` the host sends at x instead, from a packet in ten
//! RTTs, and W is rounded up ([measured](../../validation/fabric-laws.md#rates-below-a-packet-per-rtt)).
//!
//! [Other readings](../../validation/law-readings.md#maxnet)
//!
//! # Fixed point
//! `kernel/maxnet.h` documents every scale and every difference. `kernel-host` adds:
//! - a minimum τ of 1 ms, and for slow flows a τ of twice the time of two packets
//! - ξ* again when τ has doubled
//! - at least a packet per 200 ms instead of per RTT, and windows in whole packets with a margin of three
//! - acknowledgements as the clock of fast flows, and a pacing boost
//! - slow start before a router answers, and a restart after a timeout
//!
//! Its TCP has no super-packets and no late timers. Every acknowledgement has an echo, and it never falls back to another
//! law.
//!
//! # Validation
//! Equation tests below, by hand from the paper; tags byte by byte (`scale.rs`, and [in a
//! fabric](../../validation/fabric-laws.md#maxnets-price-in-a-csig-tag)); §V's ranges; the thesis's p_min of 1 Gbit/s; experiments
//! `maxnet-2007/two-hop` and `maxnet-2007/cross-traffic`.
//!
//! The simulator was run with one set of parameters and paced packets, from 100 kbit/s at 6 s to 100 Gbit/s at 1.2 µs,
//! the smallest RTT tried. Utilization stays within 1.5 % of μ. The limit is the window: it needs at least ten packets,
//! or fifty where an RTT is above 12 ms, because whole packets round it down. With `order = "rate-first"` the loop
//! fails at 1.2 µs and is 2 % low at 1.2 ms. On a five-hop parking lot every flow is within 3 % of its max-min share;
//! without a router at the bottleneck the queue fills (`tests/explicit.rs` of the simulator).
//!
//! The fixed-point version is compared with the law in `fixed_point`: each equation over its range, and router, receiver
//! and source as a whole. Side by side in the simulator (`tests/maxnet_kernel.rs`: a dumbbell, two RTTs, a parking lot) mean
//! rates differ by at most 0.09 % and utilizations by 0.004 %. `examples/law_record.rs` writes the answers of every law, which
//! a test compares with those of the loaded kernel program.
//!
//! # References
//! `maxnet-2007`: Andrew, Jacobsson, Low, Suchara, Witt, Wydrowski, "MaxNet: Theory and
//! Implementation". `tcp-maxnet-2006`: Suchara, "TCP MaxNet", thesis.

mod fixed_point;
mod params;
mod receiver;
mod router;
mod scale;
mod source;
mod variants;

pub use params::{Average, Order, Params};
pub use receiver::Receiver;
pub use router::Router;
pub use scale::Carrier;
pub use source::Source;

pub(super) use params::{check_range, check_x_min};
pub(super) use receiver::averaged;
pub(super) use router::{PriceRange, highest, price_max, price_next};
pub(super) use source::{clipped, rate, window, xi_equilibrium};

use crate::carriage::Carriage;
use crate::csig::Format;
use crate::math;
use crate::params::ParamError;
use crate::protocol::{BaseRtt, Host, Info, LawSignal, LinkView, Protocol, ProtocolKind, Wire};
use crate::units::{Duration, Rate};

/// The protocol `maxnet`.
#[derive(Debug)]
pub struct MaxNet;

impl Protocol for MaxNet {
    const INFO: Info = Info {
        name: "maxnet",
        summary: "sources follow the highest price on their path; max-min fair, empty queues (2007)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: false,
        host: Host { base_rtt: Some(BaseRtt::EmptyQueues), ..Host::EXPLICIT },
        signals: &[
            LawSignal {
                name: "price",
                unit: "s",
                doc: "the link's price, or the averaged price that the source follows",
            },
            LawSignal { name: "xi", unit: "1", doc: "the source's slow state ξ" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn wire_bytes(params: &Params) -> (usize, usize) {
        (params.tag().map_or(OPTION_BYTES, Format::bytes), OPTION_BYTES)
    }
    fn check_link(params: &Params, link: &LinkView) -> Result<(), ParamError> {
        if params.tag().is_some() {
            return params.check_tag(link.capacity);
        }
        check_range(params.x_max, params.x_min, params.t, PriceUnit::of(params.price_unit), link.capacity)
    }
    fn target(params: &Params) -> f64 {
        params.mu
    }
    fn paced(params: &Params) -> bool {
        params.paced
    }
}

// ---------------------------------------------------------------------------------- header

/// Content of the 24-bit field of a packet: a price, or a start rate (§V).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A price in units of `price_unit`, 2⁻¹⁸ s; 0 means that no router wrote it.
    Price(u32),
    /// Start rate as −ln(rate/x_max) in units of 2⁻¹⁸; 0 means that no router wrote it.
    StartRate(u32),
}

/// Fractional bits of the 23-bit value (§V: 18 give a relative precision of 10⁻⁵ at T = 0.4 s).
pub const FRACTION_BITS: u32 = 18;
/// Largest 23-bit code, with 5 integer bits (§V needs 4, the field has 5).
pub const CODE_MAX: u32 = (1 << 23) - 1;
const FLAG: u32 = 1 << 23;
const SCALE: f64 = (1 << FRACTION_BITS) as f64;

/// `[maxnet-2007:V]` Returns the nearest 23-bit code of a non-negative number, saturating.
#[must_use]
pub fn quantise(value: f64) -> u32 {
    // `as` truncates, saturates below at 0 and maps NaN to 0; above, `min` saturates.
    ((value * SCALE + 0.5) as u32).min(CODE_MAX)
}

/// `[maxnet-2007:V]` Returns the number that a 23-bit code represents.
#[must_use]
pub fn real(code: u32) -> f64 {
    f64::from(code) / SCALE
}

/// Unit of the prices in packets, in picoseconds; 0 stands for the paper's 2⁻¹⁸ s, which is no whole number of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PriceUnit(u32);

impl PriceUnit {
    /// Largest unit.
    pub(super) const MAX: Duration = Duration::from_millis(4);

    /// Returns the unit that a parameter gives.
    pub(super) const fn of(unit: Duration) -> Self {
        Self(unit.as_ps() as u32)
    }

    /// `[maxnet-2007:V]` Returns the number of units in a second.
    fn per_s(self) -> f64 {
        if self.0 == 0 { SCALE } else { 1e12 / f64::from(self.0) }
    }

    /// Returns the nearest 23-bit code of a price, saturating.
    pub(super) fn code(self, price: f64) -> u32 {
        ((price * self.per_s() + 0.5) as u32).min(CODE_MAX)
    }

    /// Returns the price of a 23-bit code in seconds.
    pub(super) fn price(self, code: u32) -> f64 {
        f64::from(code) / self.per_s()
    }

    /// Returns the time below which all prices have a code, in seconds.
    fn longest(self) -> f64 {
        f64::from(CODE_MAX + 1) / self.per_s()
    }

    /// Returns the code of a price for packets. A code of few bits (`code_bits`) first rounds the price.
    pub(super) fn carried(self, price: f64, x_max: Rate, t: f64, carriage: &mut Carriage) -> u32 {
        self.code(carriage.carry(price, |price| demand(price, x_max, t), |rate| demand_inverse(rate, x_max, t)))
    }
}

impl Field {
    pub(crate) fn bits(self) -> u32 {
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

/// Kind of the TCP option (Fig. 4). The number is for research only; IANA has not assigned it.
const OPTION_KIND: u8 = 42;
const OPTION_BYTES: usize = 8;

/// `[maxnet-2007:fig4]` Encodes the option: kind, length, echo and price.
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

/// Header of a data packet: the price field of Fig. 4 or a CSIG tag, which routers raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Highest price, or smallest start rate, on the path so far.
    pub price: Field,
    /// Format of the tag that has the price; `None` if the option has it.
    pub tag: Option<Format>,
}

impl From<Field> for Header {
    fn from(price: Field) -> Self {
        Self { price, tag: None }
    }
}

impl Wire for Header {
    const BYTES: usize = OPTION_BYTES;
    fn encode(&self, out: &mut [u8]) {
        match self.tag {
            None => encode_option(Field::default(), self.price, out),
            Some(format) => scale::encode_tag(format, self.price, out),
        }
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_option(bytes).map(|(_, price)| price.into())
    }
    fn bytes(&self) -> usize {
        self.tag.map_or(OPTION_BYTES, Format::bytes)
    }
    fn decode_alike(&self, bytes: &[u8]) -> Option<Self> {
        let Some(format) = self.tag else { return Self::decode(bytes) };
        scale::decode_tag(format, bytes).map(|price| Self { price, ..*self })
    }
}

/// Header of an acknowledgement: the echo field of Fig. 4, which no router changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// Averaged price, or granted start rate.
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

// ---------------------------------------------------------------------------------- shared equations

/// `[maxnet-2007:eq7]` Returns the demand D(q) = x_max·exp(−q/T) at a price q.
#[must_use]
pub fn demand(q: f64, x_max: Rate, t: f64) -> Rate {
    x_max * math::exp(-q / t)
}

/// `[maxnet-2007:eq8]` Returns the price D⁻¹(x) = −T·ln(x/x_max) for the demand x.
#[must_use]
pub fn demand_inverse(x: Rate, x_max: Rate, t: f64) -> f64 {
    -t * math::ln(x / x_max)
}

/// `[tcp-maxnet-2006:3.3]` Returns the start-rate code −ln(rate/x_max). Without spare capacity, the result quantises to
/// the largest code.
pub(crate) fn start_rate_code(rate: Rate, x_max: Rate) -> f64 {
    // The ln of a negative is NaN, which would quantise to 0, "no router wrote it": hence the lower limit.
    -math::ln((rate / x_max).max(f64::MIN_POSITIVE))
}

/// `[tcp-maxnet-2006:3.3]` Returns the rate of a start-rate code.
pub(super) fn start_rate(code: f64, x_max: Rate) -> Rate {
    x_max * math::exp(-code)
}

#[cfg(test)]
mod tests;
