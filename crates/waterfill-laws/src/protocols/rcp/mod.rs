//! RCP: every link offers one rate to all flows that cross it, and sources send at the smallest rate on their path.
//!
//! # Law
//! A link's rate R rises with spare capacity and falls with its queue, both counted over the average
//! RTT d̂ of its traffic. If N flows take R each, R settles at C/N without knowing N.
//!
//! - `R`    R ← R·(1 + (T/d̂)·(α(C − y) − βq/d̂)/C), every T ≤ d̂, within [R_min, C]
//! - `eq16` of maxnet-2007: the same with β = 0 and T = dt
//! - `path` a source sends at min R over the links of its path
//! - `d`    d̂ is a running mean over traffic of the RTTs that packets carry
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | R, R_min | `rate`, `r_min` | bit/s |
//! | C | `capacity` | bit/s |
//! | y | `load` | bit/s |
//! | q | `LinkView::queue` | bytes |
//! | α, β | `alpha`, `beta` | 1 |
//! | T | `interval` | s |
//! | d̂ (d₀ in the first papers) | `mean_rtt` | s |
//!
//! # Header
//! 12 bytes in data and in acknowledgements: the forward rate and the reverse rate (IEEE 754 singles, bit/s), and the
//! source's RTT (32 bits, in units of `rtt_unit`, 1 µs; 0 is "not known yet"). A source asks for infinity, "as much as there is". The fields are
//! Dukkipati and McKeown's, their sizes are chosen here: any rate to 6·10⁻⁸, RTTs to a unit.
//!
//! # Router
//! [`Router`]: two additions, a multiplication and a comparison a packet; an update of R every T.
//!
//! # Source
//! [`Source`]: no arithmetic; paced, without a window. The SYN carries the request and the RTT 0; its
//! answer sets the first rate.
//!
//! # Parameters
//! [`Params`]: maxnet-2007 §IX's α and β; the others from the authors' ns-2 model, except for two that the readings
//! name.
//!
//! # Readings and deviations
//! - `average = "traffic"`: in each T the RTTs of all own packets are averaged by their bytes, and d̂ follows as a
//!   first-order lag with time constant d̂ (weight T/d̂). `average = "reluctant"` is the authors' ns-2 model: a smaller
//!   sample gets only (R/C)·(sample/d̂) of that weight, so that d̂ rises at once and falls late. On maxnet-2007's Fig.
//!   12 that hides the instability at N = 49, which the default shows.
//! - `writes = "arrival"`: a packet receives the rate of its arrival. The ns-2 model writes when the transmission starts,
//!   `writes = "departure"`. No paper says which. It matters where T exceeds half of the interval between a flow's
//!   packets: flows then gather in phase, at arrival more than at departure (docs/validation/ns2-peers.md).
//! - The ns-2 model goes down to 0.01 packets of 1000 B in d̂. While that is less than a packet per RTT, its sources
//!   send 40-byte probes once per RTT, at least twice a second. Here a source receives a rate only when it sends data,
//!   so R_min is a rate: one packet of 1500 B in half a second (at most C).
//! - No headroom: C is the link's capacity, or a link's own target's share of it.
//! - In the ns-2 model a router's first T is random, so that routers are not in step. A packet whose bytes fill the end
//!   of T counts partly in the next. Here T starts at 0 s everywhere, and a packet counts when it arrives.
//!
//! [Other readings](../../validation/law-readings.md#rcp)
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/rcp.h`. Rates on the wire are logarithms of 3 bytes, RTTs of 2, and a source
//! states its smoothed RTT. In the simulator both keep the header's size.
//!
//! # Validation
//! Equation tests below; the simulator's `rcp` tests: maxnet-2007 §IX's Fig. 12 with N = 1 (stable after an
//! overshoot), 9 (oscillates) and 49 (switches between nothing and the whole link), and a parking lot, where every
//! share is right. Against the authors' ns-2 model: docs/validation/ns2-peers.md.
//!
//! # References
//! Dukkipati, McKeown, "Why Flow-Completion Time is the Right Metric for Congestion Control", CCR 36(1), 2006
//! (`rcp-2006`); its authors' ns-2 model. `maxnet-2007`: Andrew, Jacobsson, Low, Suchara, Witt, Wydrowski, "MaxNet:
//! Theory and Implementation".

mod fixed_point;
mod params;
mod router;
mod source;

pub use params::{Average, Params, Writes};
pub use router::Router;
pub(super) use router::mean_rtt_next;
pub use source::Source;

use crate::protocol::{EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Wire};
use crate::units::Rate;

/// The protocol `rcp`.
#[derive(Debug)]
pub struct Rcp;

impl Protocol for Rcp {
    const INFO: Info = Info {
        name: "rcp",
        summary: "links offer one rate to all, sources send at the smallest; max-min fair, empty queues (2006)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host::EXPLICIT_WITH_RTT,
        signals: &[
            LawSignal { name: "rate", unit: "bit/s", doc: "the link's rate, or the one the source follows" },
            LawSignal { name: "mean_rtt", unit: "s", doc: "the link's average RTT d̂" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = EchoLast<Echo>;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

/// Rate on the wire, a single-precision number of bit/s, never negative. Infinity means no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireRate(f32);

impl WireRate {
    /// Absence of a limit, which a source requests.
    pub const UNLIMITED: Self = Self(f32::INFINITY);

    /// Returns the wire rate nearest to a rate.
    pub(super) fn of(rate: Rate) -> Self {
        Self(rate.as_bps() as f32)
    }

    /// `[rcp-2006:path]` Returns the smaller of two rates.
    pub(super) fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Returns the rate, or `None` if there is no limit.
    #[must_use]
    pub fn rate(self) -> Option<Rate> {
        self.0.is_finite().then(|| Rate::from_bps(f64::from(self.0)))
    }

    fn from_bits(bits: [u8; 4]) -> Option<Self> {
        let value = f32::from_be_bytes(bits);
        (value.is_sign_positive() && !value.is_nan()).then_some(Self(value))
    }
}

impl Default for WireRate {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// A rate alone is the header and the echo of [`rocc`](super::rocc).
impl Wire for WireRate {
    const BYTES: usize = 4;
    fn encode(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&self.0.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::from_bits(*bytes.first_chunk()?)
    }
}

const HEADER_BYTES: usize = 12;

fn encode_header(out_rate: WireRate, back_rate: WireRate, rtt: u32, out: &mut [u8]) {
    out[0..4].copy_from_slice(&out_rate.0.to_be_bytes());
    out[4..8].copy_from_slice(&back_rate.0.to_be_bytes());
    out[8..12].copy_from_slice(&rtt.to_be_bytes());
}

fn decode_header(bytes: &[u8]) -> Option<(WireRate, WireRate, u32)> {
    let [a, b, c, d, e, f, g, h, rtt @ ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
    Some((WireRate::from_bits([a, b, c, d])?, WireRate::from_bits([e, f, g, h])?, u32::from_be_bytes(rtt)))
}

/// Header of data packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// Requested rate, which routers lower.
    pub rate: WireRate,
    /// RTT of the source in units of `rtt_unit`; 0 if not known yet.
    pub rtt: u32,
}

impl Wire for Header {
    const BYTES: usize = HEADER_BYTES;
    fn encode(&self, out: &mut [u8]) {
        encode_header(self.rate, WireRate::UNLIMITED, self.rtt, out);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_header(bytes).map(|(rate, _, rtt)| Self { rate, rtt })
    }
}

/// Header of acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// Rate with which the data packet arrived.
    pub rate: WireRate,
}

impl From<Header> for Echo {
    fn from(header: Header) -> Self {
        Self { rate: header.rate }
    }
}

impl Wire for Echo {
    const BYTES: usize = HEADER_BYTES;
    fn encode(&self, out: &mut [u8]) {
        encode_header(WireRate::UNLIMITED, self.rate, 0, out);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_header(bytes).map(|(_, rate, _)| Self { rate })
    }
}

#[cfg(test)]
mod tests;
