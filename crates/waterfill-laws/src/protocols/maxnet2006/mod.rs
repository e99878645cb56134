//! TCP MaxNet of the 2006 thesis: sources start at a rate that routers grant, and then follow the highest price.
//!
//! # Law
//! Every link computes a price, packets carry the highest price on their path, and a source's rate falls exponentially
//! with it. A new source starts at the spare rate of its path and raises it every RTT until the price rises.
//!
//! - `eq7`   p ← p + (y − μC·dt)/C every dt, y the volume that arrived
//! - `eq11`  p ≥ p_min = −T·ln(C/x_max)
//! - `3.3`   p ≤ p_max = T·ln(x_max/x_min), our reading of the range of rates
//! - `3.1.2` QSrate = (μ + ε)·C − y/dt, at least QSminrate = C/128; the smallest on the path
//! - `eq8`   x = x_max · exp(ξ − qα/τ), PriceWnd = τ·x
//! - `eq9`   ξ ← ξ + (η·dt/τ²)·((Tα/τ − 1)·q − Tξ), never past ξ*
//! - `eq10`  ξ* = q·(α/τ − 1/T), which is also ξ's first value
//! - `fig5.3` in QuickStart the window is QSWnd = τ·QSrate; it ends when QSWnd > PriceWnd
//! - `fig5.4` every τ: unless q rose by mindeltaq·τ, QSrate ← QSrate·rateinc
//! - `4.5`   q is the average over one RTT of the echoed prices
//! - `eq12`  when τ changes, ξ ← ξ + qα·(1/τ_new − 1/τ_old), so that x does not jump
//! - `3.3`   a price is 23 bits, 18 of them fractional; a start rate travels as −ln(rate/x_max)
//!
//! # Symbols
//! | thesis | here | unit |
//! |---|---|---|
//! | p, q | `price`, `average` | s (a price is a time) |
//! | y | `arrived` | bytes |
//! | C | `LinkView::capacity` | bit/s |
//! | μ, ε, dt | `mu`, `epsilon`, `dt` | 1, 1, s |
//! | x_max, x_min | `x_max`, `x_min` | bit/s |
//! | ξ | `xi` | 1 |
//! | α, η, T | `alpha`, `eta`, `t` | 1, 1, s |
//! | baseRTT | `base_rtt` / `tau` | s |
//! | QSrate, QSWnd, PriceWnd | `QuickStart::rate`, windows | bit/s, bytes |
//! | mindeltaq, rateinc | `mindeltaq`, `rateinc` | 2⁻¹⁸ per second, 1 |
//!
//! # Header
//! MaxNet's option (Fig. 6): kind 42, length, echo (3 bytes), price (3 bytes).
//!
//! # Router
//! [`Router`]: one addition and one comparison per packet; a price update every dt; a logarithm per SYN.
//!
//! # Source
//! [`Source`]: the average at each acknowledgement; ξ, an exponential and the window every dt. The receiver copies the
//! last field.
//!
//! # Parameters
//! [`Params`]: §4.2 and §4.3. `arithmetic = "kernel"` runs the fixed-point router and source of `kernel/maxnet2006.h`,
//! which documents scales and errors. `arithmetic = "printed"` is the thesis's own: prices and ξ in 2⁻¹⁸, parameters in
//! thousandths, times in whole milliseconds, 64,000 records without interpolation, windows of whole packets.
//! `mark_every` is §6's proposal: a router marks every n-th packet, and every SYN.
//!
//! # Readings and deviations
//! - Eq. 7 prints μC where a volume is needed: μC·dt. Fig. 4 is missing, and §3.1.1 names no queue term, so there is none.
//!   Only μ < 1 empties queues, and a price rises by at most 1 − μ per second while acknowledgements hold the load at C.
//!   The queue that 470 Mbit/s of UDP builds stays for 0.6 s.
//! - No value of `rateinc` is given. On Fig. 11's link a second, paced flow reaches its half after 1.4 s (1.125), 0.84
//!   s (1.25), 0.6 s (1.5) or 0.45 s (2). The queue peaks at 0.18, 0.6, 0.84 or 1.8 MB. 1.25 is the slowest that takes
//!   "a fraction of a second" (§7).
//! - The average over one RTT is exponential with weight dt/τ, at most 1, as in the 2007 paper. The thesis does not say how
//!   "the algorithm was modified to take into account the additional feedback delay" (§4.5); it is not modified here.
//! - ξ is updated before the window, as Fig. 5 prints. Its time constant is τ²/(ηT) = τ²/7 ms, and below τ ≈ 2.6 ms it
//!   reaches ξ* at every update. Simulations are stable from 400 ms down to 20 µs at 10 Gbit/s, where the path holds 17
//!   packets and whole packets limit fairness.
//! - Step 4 prints `QSWnd < cwnd`, which is never true after step 3 (cwnd ← QSWnd). It is read as QSWnd ≤ cwnd: the start
//!   rate is not raised while `max_wnd` limits the window.
//!
//! [Other readings](../../validation/law-readings.md#maxnet2006)
//!
//! # Validation
//! Equation tests below, by hand from the thesis: p_min (§4.2), ξ's worked example (§4.1), Fig. 10's equilibrium. The
//! fixed-point version is compared with the law in `fixed_point`: each equation over its range, and router and source as a
//! whole.
//!
//! In the simulator (`tests/maxnet2006.rs`): Fig. 7, 8, 10, 11, 12, 13 and 14, and both arithmetics side by side, whose
//! rates differ by at most 0.15 % where RTTs are whole milliseconds. Fig. 7's instability without averaging does not
//! appear, not even behind a token bucket (`tcp-maxnet-2006/averaging`). Under bursts of 8 ms every 20 ms the window's
//! ripple is 0.3 % with averaging and 4.1 % without. Unpaced flows differ by up to 1 % (each keeps its place in the
//! bursts), paced ones by 0.2 %.
//!
//! # References
//! `tcp-maxnet-2006`: Suchara, "TCP MaxNet: Background, Algorithms, Implementation and Experiments",
//! thesis, California Institute of Technology. `maxnet-2007` where both agree: [`super::maxnet`].

mod fixed_point;
mod params;
mod printed;
mod router;
mod source;
mod thinned;
mod variants;

pub use params::{Arithmetic, Params};
pub use router::Router;
pub use source::Source;
pub use variants::Printable;

pub use super::maxnet::{Echo, Field, Header};
use super::maxnet::{PriceUnit, check_range};
use crate::params::ParamError;
use crate::protocol::{
    BaseRtt, EchoLast, Host, Info, LawSignal, LinkView, PacketKind, Protocol, ProtocolKind, Sending,
};

/// The protocol `maxnet2006`.
#[derive(Debug)]
pub struct MaxNet2006;

impl Protocol for MaxNet2006 {
    const INFO: Info = Info {
        name: "maxnet2006",
        summary: "the thesis's TCP MaxNet: QuickStart, averaging at the sender, real or fixed-point arithmetic",
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
    type Router = Printable<Router, printed::Router>;
    type Receiver = EchoLast<Echo>;
    type Source = Printable<Source, printed::Source>;

    fn check_link(params: &Params, link: &LinkView) -> Result<(), ParamError> {
        check_range(params.x_max, params.x_min, params.t, PriceUnit::of(params.price_unit), link.capacity)
    }
    fn target(params: &Params) -> f64 {
        params.mu
    }
}

/// Creates the header of a packet: a SYN asks for a start rate, all other packets ask for a price.
fn stamped(quickstart: bool, sending: &Sending) -> Header {
    let asks = quickstart && sending.kind == PacketKind::Syn;
    Header::from(if asks { Field::StartRate(0) } else { Field::Price(0) })
}

#[cfg(test)]
mod tests;
