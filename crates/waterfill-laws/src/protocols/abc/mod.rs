//! ABC: one bit in each packet says "accelerate" or "brake", which brings the link to its target rate an RTT later.
//!
//! # Law
//! Each acknowledgement lets a source send two packets (accelerate) or none (brake). So the rate of arrivals one RTT
//! from now is the present rate of departures, times twice the share of packets that are to accelerate. A router
//! therefore compares its target with its *departures*, not with its arrivals.
//!
//! - `eq1`     tr = η·μ − (μ/δ)·(x − d_t)⁺
//! - `eq2`     f = min(½·tr/cr, 1)
//! - `alg1`    token ← min(token + f, limit); a packet stays "accelerate" if token > 1, which costs one, else it brakes
//! - `eq3`     w ← w ± 1 + 1/w for each packet acknowledged, + if it accelerates: MIMD by the bit, and AI for fairness
//! - `window`  min(w, w_nonabc): w_nonabc is CUBIC's and answers losses and ECN marks, for bottlenecks without ABC
//! - `cap`     both windows stay below twice the packets in flight, so that the one not in use does not run away
//!
//! Theorem 3.1: N flows on one link are globally asymptotically stable if δ > ⅔·τ, τ the largest RTT without queues
//! (`waterfill theory stability abc`, python/waterfill/theory/accel_brake.py).
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | μ(t), link capacity | `capacity`, over `window` | bit/s |
//! | cr(t), dequeue rate | `departed`, over `window` | bit/s |
//! | x(t), queuing delay | `queue`/μ | s |
//! | η, δ, d_t | `eta`, `delta`, `delay_threshold` | 1, s, s |
//! | T | `window` | s |
//! | tr(t), f(t) | `target_rate`, `accelerate` | bit/s, 1 |
//! | token, tokenLimit | `token`, `token_limit` | packets |
//! | w_abc, w_nonabc | [`Source`] | packets |
//!
//! # Header
//! The two ECN bits of the IP header: 01 accelerate, 10 brake. 00 is a packet without ECN and 11 the mark of a queue that
//! does not implement ABC (`ecn`), which the host reports to w_nonabc. A source sends accelerates; a router changes them
//! to brakes, never back: so a path has the smallest share of its links. They are written here as the one byte that holds
//! them (traffic class, its upper six bits zero), and so counted, though they cost no packet a byte. An acknowledgement
//! returns the bit, in the paper in TCP's NS flag, and is counted in the same way.
//!
//! # Router
//! [`Router`]: works at departures, on every packet; T is divided into 20 parts, so that a sliding window needs
//! no list of packets. Its timer measures μ once in each part.
//!
//! # Source
//! [`Source`]: two windows. There is no slow start in w_abc: with every packet accelerating a window doubles in an RTT.
//!
//! # Parameters
//! [`Params`]: those of the authors' public code, where the paper leaves a choice.
//!
//! # Readings and deviations
//! The paper's full text was not available. The sources are its abstract and equations, and its authors' public code (router and
//! both senders). A † marks readings from that code.
//! - † T = 20 ms, tokenLimit = 5, η = 0.98, δ = 133 ms. d_t = 50 ms is the authors' value for cellular traces, where batches
//!   of packets wait that long without congestion. A wired link needs less.
//! - † w_nonabc is CUBIC (RFC 9438, `cubic`) in slow start until its first loss, without HyStart, which the authors' module
//!   does not call. `fallback = "none"` is their simpler sender: w_abc alone, which answers no loss.
//! - A loss or a mark does not change w_abc †. A timeout restarts it from one packet.
//! - μ is what the link sent while it had a queue, and its capacity otherwise. An outage therefore counts as a rate.
//! - The authors' router has η·cr in place of η·μ, and adds η/2 tokens for each packet that the link could have sent but did
//!   not. The shares are the same on average; a burst of up to tokenLimit accelerates replaces f > η/2.
//!
//! [Other readings](../../validation/law-readings.md#abc)
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/abc.rs`): a link carries η and N packets per RTT without a queue.
//! Where that is more than the link, the queue settles within 2 ms of the equations' balance. At RTTs of 100 ms it is
//! steady with δ = 80 ms and swings with 50 ms (Theorem 3.1: 67 ms). Windows become equal, so rates go as 1/RTT. The
//! slower of two links holds. A link that doubles is full two RTTs later; one that halves has its queue below d_t after
//! four. A buffer too small for ABC's queue, or a link that does not speak it, is answered by CUBIC. Fairness takes
//! 1/(1 − 2f) = w RTTs: two flows on 12 Mbit/s (w = 50) are within 10 % 15 s after the second's start. On 48 Mbit/s (w
//! = 200) shares keep drifting, to 0.16 and 0.83 within 200 s. Which flow gets one brake more is chance, and one packet
//! per RTT corrects it slowly. On cellular traces, against CUBIC with CoDel and the other laws: docs/validation/abc.md.
//!
//! # References
//! `abc-2020`: Goyal, Agarwal, Netravali, Alizadeh, Balakrishnan, "ABC: A Simple Explicit Congestion Controller for
//! Wireless Networks", NSDI 2020. Before it: Goyal, Alizadeh, Balakrishnan, "Rethinking Congestion Control for Cellular
//! Networks", HotNets 2017.

mod params;
mod receiver;
mod router;
mod sliding;
mod source;

pub use params::{Fallback, Params};
pub use receiver::Receiver;
pub use router::Router;
pub use source::Source;

use crate::protocol::{Ecn, Host, Info, LawSignal, Protocol, ProtocolKind, Wire};

/// The protocol `abc`.
#[derive(Debug)]
pub struct Abc;

impl Protocol for Abc {
    const INFO: Info = Info {
        name: "abc",
        summary: "one bit per packet accelerates or brakes its sender (2020)",
        kind: ProtocolKind::Explicit,
        needs_packets: true,
        paced: false,
        host: Host { ecn: Ecn::Classic, ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "target_rate", unit: "bit/s", doc: "the link's target rate tr" },
            LawSignal { name: "accelerate", unit: "1", doc: "share f of packets that are to accelerate" },
            LawSignal { name: "w_abc", unit: "packets", doc: "the window that the bits move" },
            LawSignal { name: "w_nonabc", unit: "packets", doc: "CUBIC's window; none without the fallback" },
        ],
    };
    type Params = Params;
    type Header = Mark;
    type Echo = Mark;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.eta
    }
}

/// Feedback carried by a packet: the two ECN bits of a data packet, or one bit of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Bits 01: the source may send two packets.
    #[default]
    Accelerate = 1,
    /// Bits 10: the source may send no packet.
    Brake = 2,
}

impl Wire for Mark {
    const BYTES: usize = 1;
    fn encode(&self, out: &mut [u8]) {
        out[0] = *self as u8;
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes.first()? {
            1 => Some(Self::Accelerate),
            2 => Some(Self::Brake),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
