//! JetMax: every router divides its free capacity equally among the flows that belong to it.
//!
//! # Law
//! Every flow belongs to one router of its path, its bottleneck, and says so in its packets. A router counts
//! the flows that belong to it, measures what all others send, and divides the rest of its target. The sum of
//! the flows' own rates is not part of the loop, so no delay can make a link with fixed members oscillate.
//!
//! - `fair-rate`  g_l = (γ_l·C_l − W_l)/N_l, the rate for every flow that belongs to router l
//! - `membership` N_l = Σδ/Δ over the packets of these flows in an interval Δ: in that time each sends
//!   Δ/δ packets with its interval δ to the next packet
//! - `W`          W_l = volume/Δ of everything else: flows that belong elsewhere, other protocols, acknowledgements
//! - `source`     x(n) = x(n−D) − τ·(x(n−D) − g_l(n−D←)), x(n−D) the rate one RTT earlier
//! - `loss`       p_l = 1 − s_l/x, the share of its rate that a flow would lose if it belonged to router l. s_l is g_l
//!   for a flow that does, and (γC − W + x)/(N + 1) for one that does not
//! - `switching`  a flow belongs to the router of the largest p on its path
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | x_i | `rate` | bit/s |
//! | δ_i | `interval` in the header | s, times the connection's weight |
//! | γ_l, C_l | `gamma`, `LinkView::capacity` | 1, bit/s |
//! | N_l | `flows` | flows, real |
//! | W_l | `unresponsive` | bit/s |
//! | g_l | `target` | bit/s |
//! | p_l | `loss` | 1, negative where the flow could have more |
//! | τ | `tau` | 1 |
//! | Δ | `interval` of the parameters | s |
//! | R_T, R_S, R_N | `hops`, `bottleneck`, `next` | hops from the source, 0 for none |
//!
//! # Header
//! 19 bytes (maxnet-2007 §IX: four fields of 32 bits, three of 8). Rate x, interval δ, loss p and target g are in IEEE
//! 754 single precision in network order. R_T (routers passed), R_S (the flow's bottleneck) and R_N (the router of the
//! largest loss so far) follow. A router is known by its distance from the source, so it needs no name.
//! Acknowledgements carry back x, p, g, R_S, R_N: 14 bytes.
//!
//! # Router
//! [`Router`]: for each packet one addition (δ or volume), a hop count and, for JetMax's own, a loss; a
//! division every Δ.
//!
//! # Source
//! [`Source`]: paced at x. A flow joins the router that the handshake found. It spreads the host's initial window over
//! the time until that router has counted it, and then follows g by the law. After a switch it keeps its rate for as
//! long.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! The paper's text was not available, and no code of its authors was found. The sources are its abstracts, maxnet-2007 §IX
//! and what is commonly known of its law. Tags therefore name quantities, not equation numbers, and each of these is our own:
//! - `loss` and `switching`: the paper's "proposed loss" is known by name only. This one makes every equilibrium
//!   max-min. For a flow that does not belong to l, x ≤ s_l is the same as x ≤ g_l, and is also defined where no flow
//!   belongs. A router without flows of its own that others overload asks each for the same fraction, s_l = x·γC/W.
//! - When to switch: a difference below `epsilon` is ignored, because whole packets make N and W noisy and links may be
//!   equal. It bounds the distance from max-min, and γ's headroom absorbs it. A flow that would have to slow down by more
//!   than `urgent` joins after an interval of such values. Any other flow waits four times as long as it takes to be counted,
//!   because others may be switching as well, and does not rise past s_l meanwhile. Without that wait two flows on equal
//!   links can chase each other from router to router for ever.
//! - A flow follows a new router one RTT and two intervals after it joined, when a full interval has counted it.
//!   Acknowledgements of packets that still belonged to the old router are ignored.
//! - γ, Δ, x_min and the start are not known. τ follows from the abstract: 1 % after six intervals but not after
//!   five needs (1 − τ)⁶ ≤ 0.01 < (1 − τ)⁵, 0.536 ≤ τ < 0.602.
//! - δ is packet size over x, the time to the next packet of a source that always has data. A source with less to send counts
//!   as the fraction of a flow that it is, and the others get the rest. g is at most γC; otherwise the x of such a flow
//!   alone on a link would grow for ever.
//!
//! [Other readings](../../validation/law-readings.md#jetmax)
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/jetmax.h`, whose value of 12 bytes carries the share s·w instead of p and the weight
//! instead of δ (here `Header::loss` and `interval` hold them), and whose echo has 11. It differs in this:
//! - Rates on the wire are within 2⁻²⁰. A weight has 5 bits; 1 to 31 are exact.
//! - A source that no router has answered keeps the host's first window, unpaced. The RTT is the host's smoothed one.
//! - 31 routers of a path have numbers of their own.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/jetmax.rs`): every flow is within 0.5 % of max-min on a five-hop
//! parking lot with RTTs of 20 to 220 ms. It is within 1 % while the long flow's bottleneck moves and returns, without
//! a drop, and after six RTTs from 10 Mbit/s to 1 Gbit/s, without overshoot. Random networks have up to six links.
//! Limits are tested as well. A share of a packet an interval is off by more than 5 %. Flows of unequal RTTs overshoot
//! together while the slower ones still send at their old rates.
//!
//! # References
//! `jetmax-2006`: Zhang, Leonard, Loguinov, "JetMax: Scalable Max-Min Congestion Control for High-Speed Heterogeneous
//! Networks", INFOCOM 2006; Computer Networks 52 (2008). `maxnet-2007` §IX.

mod fixed_point;
mod params;
mod router;
mod source;

pub use params::Params;
pub use router::Router;
pub use source::Source;

use crate::protocol::{EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Wire};

/// The protocol `jetmax`.
#[derive(Debug)]
pub struct JetMax;

impl Protocol for JetMax {
    const INFO: Info = Info {
        name: "jetmax",
        summary: "a router divides what its own flows may have by their number; max-min fair (2006)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host::EXPLICIT,
        signals: &[
            LawSignal {
                name: "target",
                unit: "bit/s",
                doc: "the link's fair rate g, or the one that the source last applied",
            },
            LawSignal { name: "flows", unit: "1", doc: "flows N that belong to the link" },
            LawSignal { name: "unresponsive", unit: "bit/s", doc: "rate W of everything else on the link" },
            LawSignal { name: "bottleneck", unit: "hops", doc: "the router R_S that the source belongs to" },
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
    /// Time δ to the source's next packet at this rate, times the source's weight, in seconds.
    pub interval: f32,
    /// Largest loss p that a router has proposed so far.
    pub loss: f32,
    /// Fair rate g of the router R_S, in bit/s; 0 for none.
    pub target: f32,
    /// Number R_T of routers passed.
    pub hops: u8,
    /// Router R_S that the flow belongs to; 0 for none.
    pub bottleneck: u8,
    /// Router R_N that proposed `loss`; 0 for none.
    pub next: u8,
}

/// Header of acknowledgements: the data header without the fields that only routers need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// Rate x with which the data packet left its source, in bit/s.
    pub rate: f32,
    /// Largest loss on the path.
    pub loss: f32,
    /// Fair rate g of the router R_S, in bit/s; 0 for none.
    pub target: f32,
    /// Router R_S that the data packet named when it left its source.
    pub bottleneck: u8,
    /// Router R_N that proposed `loss`; 0 without routers on the path.
    pub next: u8,
}

/// Returns the nearest single-precision number, saturating. The laws pass only finite numbers.
fn single(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

fn read_single(bytes: &[u8]) -> Option<f32> {
    let value = f32::from_be_bytes(*bytes.first_chunk()?);
    value.is_finite().then_some(value)
}

fn read_not_negative(bytes: &[u8]) -> Option<f32> {
    read_single(bytes).filter(|&value| value >= 0.0)
}

impl Wire for Header {
    const BYTES: usize = 19;
    fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&self.rate.to_be_bytes());
        out[4..8].copy_from_slice(&self.interval.to_be_bytes());
        out[8..12].copy_from_slice(&self.loss.to_be_bytes());
        out[12..16].copy_from_slice(&self.target.to_be_bytes());
        out[16..19].copy_from_slice(&[self.hops, self.bottleneck, self.next]);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 19] = bytes.first_chunk()?;
        Some(Self {
            rate: read_not_negative(&bytes[0..])?,
            interval: read_not_negative(&bytes[4..])?,
            loss: read_single(&bytes[8..])?,
            target: read_not_negative(&bytes[12..])?,
            hops: bytes[16],
            bottleneck: bytes[17],
            next: bytes[18],
        })
    }
}

impl From<Header> for Echo {
    fn from(Header { rate, loss, target, bottleneck, next, .. }: Header) -> Self {
        Self { rate, loss, target, bottleneck, next }
    }
}

impl Wire for Echo {
    const BYTES: usize = 14;
    fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&self.rate.to_be_bytes());
        out[4..8].copy_from_slice(&self.loss.to_be_bytes());
        out[8..12].copy_from_slice(&self.target.to_be_bytes());
        out[12..14].copy_from_slice(&[self.bottleneck, self.next]);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 14] = bytes.first_chunk()?;
        Some(Self {
            rate: read_not_negative(&bytes[0..])?,
            loss: read_single(&bytes[4..])?,
            target: read_not_negative(&bytes[8..])?,
            bottleneck: bytes[12],
            next: bytes[13],
        })
    }
}

#[cfg(test)]
mod tests;
