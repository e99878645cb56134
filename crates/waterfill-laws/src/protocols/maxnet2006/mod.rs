//! TCP MaxNet of the 2006 thesis: sources start at a rate the routers grant, then obey the highest price.
//!
//! # Law
//! Every link computes a price, packets carry the largest on their path, and a source's rate falls
//! exponentially with it. A new source starts at the rate that the path has to spare and raises it
//! each round trip until the price answers.
//!
//! - `eq7`   p ← p + (y − μC·dt)/C every dt, y the volume that came
//! - `eq11`  p ≥ p_min = −T·ln(C/x_max)
//! - `3.1.2` QSrate = (μ + ε)·C − y/dt, at least QSminrate = C/128; the least of the path
//! - `eq8`   x = x_max · exp(ξ − qα/τ), PriceWnd = τ·x
//! - `eq9`   ξ ← ξ + (η·dt/τ²)·((Tα/τ − 1)·q − Tξ), never past
//! - `eq10`  ξ* = q·(α/τ − 1/T), where ξ also starts
//! - `fig5.3` in QuickStart the window is QSWnd = τ·QSrate; it ends when QSWnd > PriceWnd
//! - `fig5.4` every τ: unless q rose by mindeltaq·τ, QSrate ← QSrate·rateinc
//! - `4.5`   q is the average over one round trip of the prices that come back
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
//! | x_max | `x_max` | bit/s |
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
//! [`Router`]: one addition and one comparison a packet; a price update every dt; a logarithm a SYN.
//!
//! # Source
//! [`Source`]: the average at each acknowledgement; ξ, an exponential and the window every dt.
//! The receiver only copies.
//!
//! # Parameters
//! [`Params`]: §4.2 and §4.3. `arithmetic = "kernel"` runs router and source in the integers of
//! `kernel/maxnet2006.h`, whose head tells scales and errors.
//!
//! # Readings and deviations
//! - Eq. 7 prints μC where a volume is needed: μC·dt. Fig. 4 is lost; §3.1.1 names no queue term,
//!   so there is none: μ < 1 alone empties queues, and a price rises by at most 1 − μ a second while
//!   acknowledgements hold the load at C. So what 470 Mbit/s of UDP push into the queue stands 0.6 s.
//! - ε is a share of C (§3.1.2: C(μ + ε)).
//! - Step 4 prints `QSWnd < cwnd`, which step 3 (cwnd ← QSWnd) never leaves true. Taken as QSWnd ≤
//!   cwnd: the start rate is not raised while `max_wnd` holds the window below it.
//! - No value of `rateinc` is given. On Fig. 11's link a second, paced flow has its half, and the queue its
//!   peak, after 1.4 s and 0.18 MB (1.125), 0.84 s and 0.6 MB (1.25), 0.6 s and 0.84 MB (1.5), 0.45 s
//!   and 1.8 MB (2). 1.25 is the slowest that takes "a fraction of a second" (§7).
//! - "lastq" starts at the first price, and step 4's clock with it.
//! - Step 3's dt has the router's value. With an update for every acknowledgement (`dt_source = 0`,
//!   as `wnd_update_freq` = 1 alone would have it) rates differ by less than half a per cent.
//! - ξ is updated before the window, as Fig. 5 prints: its time constant is τ²/(ηT) = τ²/7 ms, and below
//!   τ ≈ 2.6 ms it reaches ξ* at every update. Simulated without trouble from 20 µs at 10 Gbit/s, where
//!   the pipe is 17 packets and whole packets are what is left of fairness, to 400 ms.
//! - The average over one round trip is exponential with weight dt/τ, at most 1, as the 2007 paper
//!   has it. How "the algorithm was modified to take into account the additional feedback delay"
//!   (§4.5) is not told, and nothing is.
//! - A window is at most `max_wnd` packets and at least one, as any TCP's; a rate at most x_max.
//! - A field that no router wrote (code 0) is no price: the source keeps its window. So step 4's
//!   "q = 0" never holds, because p_min > 0 where C < x_max. A connection's weight scales eq. 8.
//! - Losses do not move the window (§4.3).
//! - With QuickStart off the SYN carries a price.
//! - Kernel arithmetic: the thesis rounds τ to milliseconds (§4.1, `rtt_unit`); the exponential has
//!   257 entries and interpolation in place of 64,000 without; prices, averages and ξ keep 16 more bits
//!   in memory than on the wire, for steps smaller than 2⁻¹⁸ would be lost.
//!
//! # Validation
//! Equation tests below, by hand from the thesis: p_min (§4.2), ξ's worked example (§4.1), Fig. 10's
//! equilibrium. The integers against the law, equation by equation over their range and whole, in
//! `kernel`. In the simulator (`tests/maxnet2006.rs`): Fig. 7, 8, 10, 11, 12, 13 and 14; both
//! arithmetics side by side, whose rates differ by 0.15 % at most where round trips are whole
//! milliseconds. Fig. 7's instability without averaging does not show: there is no token bucket here; under
//! bursts of 8 ms every 20 ms averaging makes the window's ripple 0.3 % where it is 4.1 % without.
//! Unpaced, flows differ by up to 1 % (each keeps its place in the bursts); paced, by 0.2 %.
//!
//! # References
//! `tcp-maxnet-2006`: Suchara, "TCP MaxNet: Background, Algorithms, Implementation and Experiments",
//! thesis, California Institute of Technology. `maxnet-2007` where both agree: [`super::maxnet`].

mod fixed_point;
mod params;
mod router;
mod source;

pub use params::Params;
pub use router::Router;
pub use source::Source;

use super::maxnet::check_range;
pub use super::maxnet::{Echo, Field, Header};
use crate::arithmetic::RealOrFixed;
use crate::params::ParamError;
use crate::protocol::{EchoLast, Host, Info, Kind, LinkView, PacketKind, Protocol, Sending, Signal};

/// The protocol `maxnet2006`.
#[derive(Debug)]
pub struct MaxNet2006;

impl Protocol for MaxNet2006 {
    const INFO: Info = Info {
        name: "maxnet2006",
        summary: "the thesis's TCP MaxNet: QuickStart, averaging at the sender, real or integer arithmetic",
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
    type Receiver = EchoLast<Echo>;
    type Source = RealOrFixed<Source, fixed_point::Source>;

    fn check_link(params: &Params, link: &LinkView) -> Result<(), ParamError> {
        check_range(params.x_max, params.t, link.capacity)
    }
    fn target(params: &Params) -> f64 {
        params.mu
    }
}

/// A SYN asks for a start rate, everything else for a price.
fn stamped(quickstart: bool, sending: &Sending) -> Header {
    let asks = quickstart && sending.kind == PacketKind::Syn;
    Header { price: if asks { Field::StartRate(0) } else { Field::Price(0) } }
}

#[cfg(test)]
mod tests;
