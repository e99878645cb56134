//! AECP: routers announce one rate to all flows, and sources approach it on a logarithmic scale.
//!
//! # Law
//! Every link holds a pre-allocation rate factor r. It grows while the load, with the queue beyond q₀ spread over T, is
//! below the capacity, and falls when it is above. Packets carry the smallest r of their path; a source moves its rate
//! x towards it. In equilibrium x = r = C/N and the queue is q₀: full links with a short queue.
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
//! [`Source`]: two powers per RTT. Paced and without a window, or with `source = "window"` a window that no pacing
//! spreads.
//!
//! # Parameters
//! [`Params`]: §4.3's α, β, T, §5's T₂ and q₀.
//!
//! # Readings and deviations
//! - §5.2 adjusts "the sending rate" of a sender that replaces TCP's. `source = "rate"` paces packets at x, whatever is
//!   in flight. `source = "window"` bounds the data in flight by W = x·τ, as a TCP sender of ns-2 would. W is set with x,
//!   from that acknowledgement's RTT, or with `window_rtt = "base"` from the smallest. Packets leave when
//!   acknowledgements arrive, so a queue that grows slows the source before r does: within an RTT, with the base RTT as
//!   long as it stands. The host always allows one packet: W cannot hold x below 1/τ. Such a source is not paced unless
//!   the flow says `pacing = true`.
//! - r(0) and x_0 are not given. Both are 10 packets/s here; `r_0 = "capacity"` starts at C.
//! - Eq. 47 is applied once per RTT (T₁ = τ): at the first acknowledgement that arrives τ or more after the last update.
//!   T₁ is the time since then. It exceeds τ where acknowledgements arrive less often than once per RTT, as in eq. 44.
//!   §5.2 can also be read as once per acknowledgement (`step = "acknowledgement"`).
//! - Eq. 47 to 48 print 2τ and 1 − 2τ for αT₁ and 1 − αT₁: weights only while τ < 0.5 s. `form = "printed"` keeps
//!   that form and stops the weight at 1, where x becomes r; `form = "exact"` is eq. 3's own solution, 1 − e^(−αT₁).
//! - r is clipped above at `ceiling`, because on an idle link it would grow as e^(βt). With `ceiling = "capacity"`, C, a
//!   flow alone can never fill the queue to q₀: r = C is both its equilibrium and the end of the range. The default is
//!   C + q₀/T, where eq. 2's bracket itself is zero with an empty queue (0.08 % above C in §6).
//!
//! [Other readings](../../validation/law-readings.md#aecp)
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/aecp.h`, which has r and x as logarithms, on the header's own scale. It differs in
//! this: τ is the smoothed RTT, and a source that no router has answered keeps the host's initial window.
//!
//! # Validation
//! Equation tests below, by hand from the paper; the simulator's `aecp` tests: queue and shares of §6.1's RTTs,
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

mod fixed_point;
mod params;
mod router;
mod source;

pub use params::{Ceiling, First, Form, Params, Rounding, SourceKind, SourceStep, WindowRtt};
pub use router::Router;
pub use source::Source;

use crate::math;
use crate::protocol::{BaseRtt, EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Wire};

/// The protocol `aecp`.
#[derive(Debug)]
pub struct Aecp;

impl Protocol for Aecp {
    const INFO: Info = Info {
        name: "aecp",
        summary: "routers announce a rate, sources approach it by its logarithm; max-min fair, queues of q_0 (2010)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::EmptyQueues), ..Host::EXPLICIT },
        signals: &[
            LawSignal {
                name: "r",
                unit: "packets/s",
                doc: "the link's pre-allocation rate factor, or the one last heard",
            },
            LawSignal { name: "x", unit: "packets/s", doc: "the source's rate, before its weight" },
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

    fn paced(params: &Params) -> bool {
        params.source == SourceKind::Rate
    }
}

/// The 16-bit pre-allocation rate factor, a logarithm of packets/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u16);

/// Number of codes per doubling of the rate.
const STEPS_PER_OCTAVE: f64 = 1024.0;
/// Rate of code 0, in packets/s.
const SLOWEST: f64 = 0.25;

impl Factor {
    /// Code −1: no router has written a factor (§5.2).
    pub const UNWRITTEN: Self = Self(0xffff);
    /// Factor of the largest rate, 2^61.998 packets/s.
    pub const LARGEST: Self = Self(0xfffe);

    /// Returns the nearest code to a position on the factor's logarithmic scale, and the rounding remainder in codes.
    fn nearest(place: f64) -> (Self, f64) {
        // `as` truncates, saturates below at 0 and maps NaN to 0; above, `min` saturates.
        let factor = Self((place + 0.5) as u16).min(Self::LARGEST);
        (factor, place - f64::from(factor.0))
    }

    /// Returns the factor's code on the wire.
    pub(crate) const fn code(self) -> u16 {
        self.0
    }

    /// Returns the factor's rate in packets/s, or `None` if no router wrote the factor.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self != Self::UNWRITTEN).then(|| rate_at(f64::from(self.0)))
    }
}

/// `[aecp-2010:fig4]` Returns the position of a rate on the factor's logarithmic scale, in codes.
fn place_of(rate: f64) -> f64 {
    math::log2(rate / SLOWEST) * STEPS_PER_OCTAVE
}

/// Returns the rate of the largest code, in packets/s.
fn fastest() -> f64 {
    rate_at(f64::from(Factor::LARGEST.0))
}

/// `[aecp-2010:fig4]` Returns the rate at a position on the factor's logarithmic scale, in packets/s.
fn rate_at(place: f64) -> f64 {
    SLOWEST * math::exp2(place / STEPS_PER_OCTAVE)
}

/// AECP header of Fig. 4, used in data packets and in acknowledgements (§5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Smallest factor on the path so far.
    pub factor: Factor,
}

impl Default for Header {
    fn default() -> Self {
        Self { factor: Factor::UNWRITTEN }
    }
}

/// Value of the Next Header field of Fig. 4 if TCP follows.
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

#[cfg(test)]
mod tests;
