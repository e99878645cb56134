//! XCP: routers tell every packet by how much its sender's window shall change.
//!
//! # Law
//! Once a control interval, the mean round trip d of its traffic, a router decides how much its
//! input shall change (efficiency), and parts this among packets so that flows become equal
//! (fairness): gains are equal for every flow, losses are in proportion to its rate. As long as
//! there is little to change it also moves γ of the traffic from all to all ("shuffling").
//!
//! - `eq1`  φ = α·d·(c − y) − β·b, a volume; here φ/d = α·(c − y) − β·b/d, a rate
//! - `eq2`  h = max{0, γ·y − |φ|}
//! - `cp`   C_p = (h + max{φ, 0}) / ΣX: a packet gains C_p·X, and the packets that a flow sends in d
//!   gain C_p·d, whatever its rate
//! - `cn`   C_n = (h + max{−φ, 0}) / Σs: a packet of s bytes loses C_n·s
//! - `d`    d = Σ(rtt·X) / ΣX, the mean over flows
//! - `x`    X = rtt·s/cwnd, the time between two packets of a flow
//! - `residue` a packet gets min(C_p·X, what is left of the gains) − min(C_n·s, what is left of the
//!   losses). If an earlier router gave less, that stays, and the difference counts as a loss dealt out
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
//! | what is left | `residue_gain`, `residue_loss` | bit/s |
//! | cwnd, rtt, H_feedback | `Header::Katabi` | bytes, s, bytes |
//! | RTT, X, Delta_Throughput | `Header::Falk` | 2⁻²⁸ s, 2⁻²⁸ s, byte/s |
//!
//! # Header
//! Twenty bytes in data and as many in acknowledgements: the draft's frame (next protocol, length,
//! version and format, an unused byte, then four fields of 32 bits, the last of which is
//! Reverse_Feedback). Under `header = "katabi"` the fields are rtt, cwnd and feedback as 32-bit floats.
//!
//! # Router
//! [`Router`]: three sums at a packet's arrival, one feedback at its departure; C_p and C_n once
//! every d, the persistent queue once every (d − queue/c)/2.
//!
//! # Source
//! [`Source`]: adds the feedback to its window.
//!
//! # Parameters
//! [`Params`]: α, β, γ as in ixcp-2007 §2.1; intervals as in the authors' simulator.
//!
//! # Readings and deviations
//! - Katabi's fields by default; the arithmetic is the draft's, with changes of throughput and
//!   residues, under both headers. Δcwnd = Δthroughput·rtt makes them one: katabi-2002's
//!   p_i = ξ_p·rtt²·s/cwnd is C_p·X·rtt, its n_i = ξ_n·rtt·s is C_n·s·rtt.
//! - katabi-2002 gives its fields no widths. 32-bit floats keep a window to 6·10⁻⁸; whole bytes
//!   of feedback could not tell less than 0.1 % of a packet, and X no 100 Gbit/s in 2⁻²⁸ s.
//! - The frame's first word is checked for length, version and format, not for the protocol it names.
//! - In eq. 1 d is the control interval: the mean round trip, kept within `min_interval` and
//!   `max_interval`. Over a longer interval than d, β·b/d would drain the queue several times over.
//! - An interval without a single round trip in its packets starts the next with `first_interval`.
//! - The persistent queue is the smallest of the last (d − queue/c)/2, the draft's interval, at
//!   least 2 ms as in the authors' simulator; the packet in service does not count.
//! - A packet without a round trip (a SYN) is load and is not written to. Somebody else's packet is
//!   load as well, and acknowledgements are load of the way back.
//! - Every sender wants as much as it can get: it asks for the largest number of the field. Where
//!   that number comes back no router wrote, and the window stays.
//! - A gain is not taken up while less than half of the window is in use (RFC 7661's concern; the
//!   draft's sender would ask for no more than it needs).
//! - No paper gives the first window: it is the smallest, one packet.
//! - On a loss the window is halved and on a time-out it falls to one packet, as TCP's would:
//!   katabi-2002 leaves TCP's answer in place.
//! - Weights as in katabi-2002 §6: the sender states cwnd/weight, and so gains `weight` times as much.
//! - `feedback_at = "receiver"` is XCP-r (López Pacheco and Pham 2005): the receiver sums up all
//!   feedback, and every acknowledgement carries the sum: the window, less where it began and
//!   what the sender itself cut off. A lost acknowledgement loses nothing.
//! - A router that does not speak XCP on the path is not seen: its queue fills until packets are lost.
//!
//! # Validation
//! Equation tests below. The simulator's `xcp` tests: one bottleneck with both headers, weights and
//! lost acknowledgements; on ixcp-2007's Fig. 1 the short flow's rate against the equilibrium
//! x = (y/N)·γy/(γy − α(c − y)) that eq. 1 and 2 have there (within 2 % for 4 to 256 long flows and
//! for 1024, whose windows of one packet cannot shrink); on aecp-2010's Fig. 9 and 10 the 338 Mbit/s of
//! the flow before the narrow link (within 1 %), and 369 where the paper has 365 behind it, for
//! the residues let local flows keep what an earlier router took from the others.
//!
//! # References
//! `katabi-2002`: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product
//! Networks", SIGCOMM 2002. `draft-falk`: Falk, Pryadkin, Katabi, draft-falk-xcp-spec-03, 2007.
//! `ixcp-2007`: Zan, Yang, "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation".
//! López Pacheco, Pham, "Robust Transport Protocol for Dynamic High-Speed Networks: Enhancing the
//! XCP Approach", MICC-ICON 2005.

mod header;
mod params;
mod receiver;
mod router;
mod source;

pub use header::{Echo, Header};
pub(super) use params::xcp_params;
pub use params::{FeedbackAt, Form, Params};
pub use receiver::Receiver;
pub use router::{Router, Rule};
pub use source::Source;

use crate::protocol::{Host, Info, Kind, Protocol, Signal};

/// The protocol `xcp`.
#[derive(Debug)]
pub struct Xcp;

/// What XCP's routers, and those of its descendants, show.
pub(super) const SIGNALS: &[Signal] = &[
    Signal { name: "spare", unit: "bit/s", doc: "the change φ/d of its input that the router asks for" },
    Signal { name: "shuffled", unit: "bit/s", doc: "the traffic h/d that the router moves from all to all" },
    Signal { name: "interval", unit: "s", doc: "the router's control interval d" },
];

impl Protocol for Xcp {
    const INFO: Info = Info {
        name: "xcp",
        summary: "routers tell each packet how its window shall change; AIMD in the routers (2002)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: false,
        host: Host::EXPLICIT,
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

/// XCP, and the protocols that use its header, hosts and router as they are.
pub trait Family: Protocol<Params = Params, Header = Header, Echo = Echo> {
    /// How a router of this protocol allocates.
    const RULE: Rule;
}

impl Family for Xcp {
    const RULE: Rule = Rule::Draft;
}

#[cfg(test)]
mod tests;
