//! MKC: links state their overload as a fraction of the load, and a source slows down by the largest one on its path.
//!
//! # Law
//! Max-min Kelly control. The step is linear in the total rate of a link's flows, and the matrix of the linearized loop is
//! symmetric. Small disturbances therefore die out for 0 < β < 2, whatever the RTTs and the number of flows.
//!
//! - `price`      p = (y − γC)/y over the last Δ, negative while the link has spare capacity
//! - `path`       a packet carries the largest p of its path
//! - `source`     x(n) = x(n − D) + α − β·p(n − D←)·x(n − D): both x are of the time in which p was measured
//!
//! At rest x = γC/N + α/β: N flows exceed the target by N·α/β for ever.
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | x | `rate` | bit/s |
//! | y | `load` | bit/s |
//! | C, γ | `LinkView::capacity`, `gamma` | bit/s, 1 |
//! | p | `loss` | 1 |
//! | α, β | `alpha`, `beta` | bit/s, 1 |
//! | Δ | `interval` | s |
//! | D, D← | an RTT and one or two Δ; from the router to the source | s |
//!
//! # Header
//! 12 bytes: the source's rate x and the price p (IEEE 754 singles, network order), the routers passed, the router of the
//! largest p by its distance from the source (0 for none), and the number of its Δ (16 bits). Acknowledgements carry x, p,
//! router and number: 11 bytes.
//!
//! # Router
//! [`Router`]: an addition, a division and a comparison for each packet; a division every Δ.
//!
//! # Source
//! [`Source`]: one step for each Δ of its router, paced. It averages the rates of the packets that passed the router in
//! that Δ, and takes the step from this average. The first window is spread over the RTT and two Δ, until a router has
//! counted the flow for a whole Δ.
//!
//! # Parameters
//! [`Params`].
//!
//! # Stability
//! Our own proof, as the paper's was not at hand. Near the equilibrium the next rates of a link's N flows follow from the
//! present ones by the matrix J = (1 − βp)·I − (β/N)·(γC/y)·E, with E all ones. Its eigenvalues are 1 − β, for the load, and
//! 1 − βp, for differences of rates. Delays put each rate through a filter H that averages past rates: x = J·H(z)·x, with
//! H diagonal and |H| ≤ 1 for |z| ≥ 1. J is symmetric, so for 0 < β < 2 its norm is below 1, that of J·H as well, and no
//! solution grows. For one flow that returns after exactly D, z^D = 1 − β: the bound is sharp.
//!
//! # Readings and deviations
//! The paper's text was not available (secondary source): its abstract and what later work says of its law. So tags name
//! quantities, and all of these are our own:
//! - The paper's step is per RTT, with a price for each Δ. Here a price counts once, together with the rates that it
//!   measured. The delays then form the loop of the theorem exactly, also where the RTT is far below Δ.
//! - A packet's price is that of a load of at least x/2. A router has not yet counted a flow that sends twice its load;
//!   the flow gets 2β·γC at most, instead of an unlimited rate.
//! - The theorem is local. For β > 1 a step may end at x_min, where packets are rarer than Δ, and the next step overshoots:
//!   at β = 1.8 one flow with an RTT of 200 ms does not leave that cycle. β ≤ 1 has none.
//! - α is the same for all flows, times the flow's weight. Unequal rates approach each other by βp an RTT, so a large α is
//!   fair soon and overloads more.
//!
//! [Other readings](../../validation/law-readings.md#mkc)
//!
//! # Validation
//! Equation tests below. In packets (`tests/python/runs/test_router_laws.py`): one set of constants at RTTs from 10 µs to
//! 10 s, β on both sides of 2, and the overload of up to 64 flows. [Results](../../validation/router-laws.md).
//!
//! # References
//! `mkc-2004`: Zhang, Kang, Loguinov, "Delayed Stability and Performance of Distributed Congestion Control", SIGCOMM 2004;
//! "Delay-Independent Stability and Performance of Distributed Congestion Control", ToN 15(4), 2007.

mod router;
mod source;

pub use router::Router;
pub use source::Source;

use crate::params::{ParamError, require};
use crate::protocol::{EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Wire};
use crate::units::{Duration, Rate};

crate::params! {
    /// Parameters of MKC.
    pub struct Params {
        /// Target utilization γ of a link without flows.
        gamma: f64 = 0.95, "ours: 25 flows fill the rest of 100 Mbit/s by their N·α/β";
        /// Additive increase α of a source in each step.
        alpha: Rate = Rate::from_bps(1e5), "ours: ten flows are equal on 100 Mbit/s after some 200 RTTs";
        /// Gain β of the price.
        beta: f64 = 0.5, "ours: a quarter of the limit, half of the way to a filled link in each step";
        /// Interval Δ of a router's measurements.
        interval: Duration = Duration::from_millis(20), "ours: 16 packets of 1500 B at 10 Mbit/s";
        /// Minimum rate of a source.
        x_min: Rate = Rate::from_bps(1e4), "ours: a packet of 1500 B in 1.2 s still asks for more";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let rate = |rate: Rate| (1.0..=1e18).contains(&rate.as_bps());
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(rate(self.alpha), "alpha", "a rate from 1 bit/s to 1e18 bit/s")?;
        require(self.beta > 0.0 && self.beta <= 1e3, "beta", "a number in (0, 1000]")?;
        require(!self.interval.is_zero(), "interval", "a time above zero")?;
        require(rate(self.x_min), "x_min", "a rate from 1 bit/s to 1e18 bit/s")
    }
}

/// The protocol `mkc`.
#[derive(Debug)]
pub struct Mkc;

impl Protocol for Mkc {
    const INFO: Info = Info {
        name: "mkc",
        summary: "sources follow the largest overload on their path; stable at any delay, overloads by N·α/β (2004)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host::EXPLICIT,
        signals: &[
            LawSignal { name: "loss", unit: "1", doc: "the link's price p, or the one that the source last applied" },
            LawSignal { name: "load", unit: "bit/s", doc: "the link's load y in the last interval" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = EchoLast<Echo>;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.gamma
    }
}

/// Header of data packets. Its numbers are finite and in single precision, as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// Rate x of the source, in bit/s.
    pub rate: f32,
    /// Largest price p so far.
    pub loss: f32,
    /// Number of routers passed.
    pub hops: u8,
    /// Router of the largest price; 0 for none.
    pub router: u8,
    /// Number of the interval in which that router measured its price.
    pub sequence: u16,
}

/// Header of acknowledgements: the data header without the routers passed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// Rate x with which the data packet left its source, in bit/s.
    pub rate: f32,
    /// Largest price on the path.
    pub loss: f32,
    /// Router of the largest price; 0 for none.
    pub router: u8,
    /// Number of the interval in which that router measured its price.
    pub sequence: u16,
}

/// Returns the nearest single-precision number, saturating. The laws pass only finite numbers.
fn single(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

fn read_single(bytes: &[u8]) -> Option<f32> {
    let value = f32::from_be_bytes(*bytes.first_chunk()?);
    value.is_finite().then_some(value)
}

impl Wire for Header {
    const BYTES: usize = 12;
    fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&self.rate.to_be_bytes());
        out[4..8].copy_from_slice(&self.loss.to_be_bytes());
        out[8..10].copy_from_slice(&[self.hops, self.router]);
        out[10..12].copy_from_slice(&self.sequence.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 12] = bytes.first_chunk()?;
        Some(Self {
            rate: read_single(bytes).filter(|&rate| rate >= 0.0)?,
            loss: read_single(&bytes[4..])?,
            hops: bytes[8],
            router: bytes[9],
            sequence: u16::from_be_bytes([bytes[10], bytes[11]]),
        })
    }
}

impl From<Header> for Echo {
    fn from(Header { rate, loss, router, sequence, .. }: Header) -> Self {
        Self { rate, loss, router, sequence }
    }
}

impl Wire for Echo {
    const BYTES: usize = 11;
    fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&self.rate.to_be_bytes());
        out[4..8].copy_from_slice(&self.loss.to_be_bytes());
        out[8] = self.router;
        out[9..11].copy_from_slice(&self.sequence.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 11] = bytes.first_chunk()?;
        Some(Self {
            rate: read_single(bytes).filter(|&rate| rate >= 0.0)?,
            loss: read_single(&bytes[4..])?,
            router: bytes[8],
            sequence: u16::from_be_bytes([bytes[9], bytes[10]]),
        })
    }
}

/// Smallest rate that divides a rate, because a link may be idle or a source's rate 0.
const LEAST: Rate = Rate::from_bps(1.0);

#[cfg(test)]
mod tests;
