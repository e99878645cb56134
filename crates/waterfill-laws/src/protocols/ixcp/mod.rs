//! iXCP: XCP that shuffles bandwidth only among the flows that are bottlenecked at the router.
//!
//! # Law
//! XCP takes γ of every flow's rate and gives it back in equal parts, also to flows that another link limits. They
//! cannot use it, and the link stays partly unused. In iXCP a packet names the link that is its flow's bottleneck, and
//! only packets that name this link are shuffled.
//!
//! - `eq1`  φ = α·d·(c − y) − β·b, over all packets, as in [`xcp`]
//! - `eq3`  h = max{0, γ·(y − y₀) − |φ|}, y₀ the traffic that names another link
//! - `3`    a packet that names this link gets its share of φ and of h, any other packet of φ only. If the feedback written
//!   is smaller than the one in the header, this link becomes the next bottleneck. The receiver echoes it, and the sender
//!   names it in its packets
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | y, y₀ | sums over all arrivals, and over those that are not *local* | bytes |
//! | bottleneckId | `Header::bottleneck` | link |
//! | nextBottleneckId | `Header::next_bottleneck`, `Echo::next_bottleneck` | link |
//! | φ, h, c, d, α, β, γ | as in [`xcp`] | |
//!
//! # Header
//! XCP's and eight bytes, XCP's acknowledgement and four (§3): 28 and 24.
//!
//! # Router
//! [`Router`]: XCP's, with separate sums for packets that name this link.
//!
//! # Source
//! [`Source`]: XCP's; it names the link that the last acknowledgement named.
//!
//! # Parameters
//! [`Params`]: XCP's with all its variants, when a router names its link, and how it deals out what it shuffles.
//!
//! # Readings and deviations
//! - `claim = "full-link"` (default): a router whose φ is positive lowers feedback but names no link. It writes 0, and a
//!   sender that receives 0 keeps the link it named. §1 speaks of flows bottlenecked at a link, and a link with spare
//!   bandwidth is no bottleneck.
//! - The draft's residues limit what φ and h give together, and what they take. With `shuffle = "draft"` they end one at a
//!   time, so a packet can have only the losses, or only the gains, of shuffling. With `shuffle = "paired"` (default)
//!   shuffling "simultaneously allocates and deallocates" (§2.1), so a packet's part in it ends with whichever residue ends
//!   first. With `residues = false` nothing ends, and both are the same.
//! - `claim = "least-feedback"` and `residues = false` are the literal reading, which the paper's experiments use: the smaller
//!   feedback names the link (§3), and XCP is Katabi's (§2.1). In rates it is max-min (Theorem 1). In packets Fig. 1's first
//!   link, which divides among one flow more, is often named although it is not the bottleneck. The short flow has 98, 96,
//!   90 and 78 % of its share with 4, 16, 64 and 256 long flows, where the paper has over 90 %. With residues, 80 % at 64.
//!   `full-link` gives 99, 98, 96 and 97 % there, but is not max-min on Fig. 4: flows of the second link get 10 % less.
//! - The paper's pseudo-code is in a technical report that was not available. This follows §3: the sums for h are over
//!   packets that name this link, those for φ over all.
//! - A sender that waits until a link has been named for several RTTs would do as well on Fig. 1, but would leave a flow over
//!   several full links at a fraction of its share.
//!
//! For everything else see [`xcp`]. [Other readings](../../validation/law-readings.md#ixcp)
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/ixcp.h`: [`xcp`]'s header with two names of 16 bits, and its differences. A link's
//! name is its number in the run plus one, modulo 65,535. The daemon draws random ones.
//!
//! # Validation
//! Tests below and the simulator's `xcp` tests. Fig. 1 with 4 to 256 long flows: the 155 Mbit/s link at 97 % or more,
//! the short flow at 93 % of its share or more, no drops. One of N flows gets a fraction 1/N of φ per d, so the short
//! flow's deficit shrinks by a factor e in N·d/α. That is 51 s at 256 long flows and 210 s at 1024, whose windows of
//! one packet cannot shrink and keep their own link full. §4.3's rates within 3 %. §4.2 on an instance of Fig. 4 (80
//! flows, five links): links at 96 % or more, mean rates at 93 % of the share or more. The literal reading gives
//! 98.7 and 98 %.
//!
//! # References
//! `ixcp-2007`: Zan, Yang, "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation".

mod fixed_point;
mod header;
mod params;
mod receiver;
mod router;
mod source;

pub use header::{Echo, Header};
pub use params::{Claim, Params, Shuffle};
pub use receiver::Receiver;
pub use router::Router;
pub use source::Source;

use crate::protocol::{Host, Info, Protocol, ProtocolKind};
use crate::protocols::xcp;

/// The protocol `ixcp`.
#[derive(Debug)]
pub struct IXcp;

impl Protocol for IXcp {
    const INFO: Info = Info {
        name: "ixcp",
        summary: "XCP that shuffles only among flows bottlenecked at the router; max-min fair (2007)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: false,
        host: Host::EXPLICIT_WITH_RTT,
        signals: xcp::SIGNALS,
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

#[cfg(test)]
mod tests;
