//! XCP: routers write the change of the sender's window into every packet.
//!
//! # Law
//! Once per control interval, the mean RTT d of its traffic, a router decides how much its input is to change
//! (efficiency). It divides the change among packets so that flows become equal (fairness): gains are equal for every
//! flow, losses are in proportion to its rate. While the change is small, it also takes γ of the traffic from all flows
//! and gives it back to all ("shuffling").
//!
//! - `eq1`  φ = α·d·(c − y) − β·b, a volume; here φ/d = α·(c − y) − β·b/d, a rate
//! - `eq2`  h = max{0, γ·y − |φ|}
//! - `cp`   C_p = (h + max{φ, 0}) / ΣX: a packet gains C_p·X, and the packets that a flow sends in d
//!   gain C_p·d, whatever its rate
//! - `cn`   C_n = (h + max{−φ, 0}) / Σs: a packet of s bytes loses C_n·s
//! - `d`    d = Σ(rtt·X) / ΣX, the mean over flows
//! - `x`    X = rtt·s/cwnd, the time between two packets of a flow
//! - `residue` a packet gets min(C_p·X, gains left) − min(C_n·s, losses left). If an earlier router gave less, that stays,
//!   and the difference counts as an allocated loss (draft-falk; not with `residues = false`)
//! - `cwnd` cwnd ← max{cwnd + feedback, s} with every acknowledgement
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | c, y, b | `capacity`, `input`, `queue` | bit/s, bit/s, bytes |
//! | φ/d, h/d | `spare`, `shuffled` | bit/s |
//! | d | `interval` | s |
//! | X, ΣX | `x`, `arrived.x` | s |
//! | Σs | `arrived.volume` | bytes |
//! | C_p, C_n | `gain`, `loss` | bit/s per s, bit/s per byte |
//! | gains and losses left | `residue_gain`, `residue_loss` | bit/s |
//! | cwnd, rtt, H_feedback | `Header::Katabi` | bytes, s, bytes |
//! | RTT, X, Delta_Throughput | `Header::Falk` | 2⁻²⁸ s, 2⁻²⁸ s, byte/s |
//!
//! # Header
//! Twenty bytes in data and in acknowledgements, in the draft's frame: next protocol, length, version and format, an
//! unused byte, and four fields of 32 bits. The last field is Reverse_Feedback. Under `header = "katabi"` the fields
//! are rtt, cwnd and feedback as 32-bit floats.
//!
//! # Router
//! [`Router`]: three sums at a packet's arrival, one feedback at its departure; C_p and C_n once per d, the persistent
//! queue once per (d − queue/c)/2.
//!
//! # Source
//! [`Source`]: adds the feedback to its window.
//!
//! # Parameters
//! [`Params`]: α, β, γ as in ixcp-2007 §2.1; intervals as in the authors' simulator.
//!
//! # Readings and deviations
//! - Katabi's fields are the default. The arithmetic is the draft's, with changes of throughput, under both headers. With
//!   Δcwnd = Δthroughput·rtt what a packet is due is the same: katabi-2002's p_i = ξ_p·rtt²·s/cwnd is C_p·X·rtt, and its
//!   n_i = ξ_n·rtt·s is C_n·s·rtt.
//!   What it gets is not: the draft and ns-2's module limit an interval's gains and losses to residues (`residues = true`,
//!   the default), katabi-2002 and ixcp-2007 do not. On aecp-2010's Fig. 10 the flow behind the narrow link has 366 Mbit/s with
//!   residues and 338 without.
//! - The persistent queue is the smallest of the last (d − queue/c)/2, the draft's interval, at least `min_queue_interval`, 2 ms as in the
//!   authors' simulator. The packet in service does not count.
//! - In eq. 1 d is the control interval: the mean RTT, limited to `min_interval` and `max_interval`. Over an interval longer
//!   than d, β·b/d would drain the queue several times over.
//! - `counts = "own"`: packets of other protocols, and acknowledgements, are not load. ns-2's module has a queue of its own
//!   for XCP, for TCP and for the rest, which it serves in turn. Its XCP router sees its own packets and the whole
//!   capacity. Here all share one queue.
//! - A loss halves the window and a timeout reduces it to one packet, as in TCP: katabi-2002 leaves TCP's reaction in place.
//!
//! [Other readings](../../validation/law-readings.md#xcp)
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/xcp.h`, which has a wire format of its own: RTT, time per byte and change of throughput
//! in 11 bytes, and a sum in 6. It differs in this:
//! - A packet is counted and written in one call, at its arrival. The persistent queue is the smallest at ticks, every 1 to
//!   2 ms, not at each departure. `tests/xcp_kernel.rs` of the simulator finds no harm: on one bottleneck with RTTs from 2 ms
//!   and on ixcp-2007's Fig. 1, mean rates agree within 2 % and mean queues within a packet.
//! - The receiver always sums (`feedback_at`). A packet without an RTT leaves with a change of zero, not unwritten.
//! - Rounding is carried from packet to packet, and residues are split among CPUs; the simulator's router has one.
//! - A source cannot claim another RTT than its own.
//!
//! # Validation
//! Equation tests below. The simulator's `xcp` tests: one bottleneck with both headers, weights and lost acknowledgements.
//! On ixcp-2007's Fig. 1 the short flow's rate agrees with the equilibrium x = (y/N)·γy/(γy − α(c − y)) of eq. 1 and 2 there,
//! within 2 % for 4 to 256 long flows and for 1024, whose windows of one packet cannot shrink. On aecp-2010's Fig. 9 and 10
//! the flow before the narrow link has 338 Mbit/s (within 1 %). Behind it there are 366 where the paper has 365, because
//! the residues let local flows keep what an earlier router took from the others.
//!
//! # References
//! `katabi-2002`: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product
//! Networks", SIGCOMM 2002. `draft-falk`: Falk, Pryadkin, Katabi, draft-falk-xcp-spec-03, 2007.
//! `ixcp-2007`: Zan, Yang, "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation".
//! López Pacheco, Pham, "Robust Transport Protocol for Dynamic High-Speed Networks: Enhancing the
//! XCP Approach", MICC-ICON 2005.

mod family;
pub(super) mod fixed_point;
mod header;
mod params;
mod receiver;
mod router;
mod source;

pub(in crate::protocols) use family::as_xcp;
pub use family::{Draft, Family, Rule};
pub use header::{Echo, Header};
pub(super) use params::xcp_params;
pub use params::{Counts, FeedbackAt, Form, Params};
pub use receiver::Receiver;
pub use router::Router;
pub use source::Source;

use crate::protocol::{Host, Info, LawSignal, Protocol, ProtocolKind};

/// The protocol `xcp`.
#[derive(Debug)]
pub struct Xcp;

/// Signals of XCP and of the protocols based on it.
pub(super) const SIGNALS: &[LawSignal] = &[
    LawSignal { name: "spare", unit: "bit/s", doc: "the change φ/d of its input that the router requests" },
    LawSignal { name: "shuffled", unit: "bit/s", doc: "the traffic h/d that the router shuffles" },
    LawSignal { name: "interval", unit: "s", doc: "the router's control interval d" },
];

impl Protocol for Xcp {
    const INFO: Info = Info {
        name: "xcp",
        summary: "routers write each packet's change of window; AIMD in the routers (2002)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: false,
        host: Host::EXPLICIT_WITH_RTT,
        signals: SIGNALS,
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

impl Family for Xcp {
    type Rule = Draft;
}

#[cfg(test)]
mod tests;
