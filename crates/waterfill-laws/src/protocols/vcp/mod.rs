//! VCP: two bits in each packet report the path's load and select one of three window laws.
//!
//! # Law
//! Every t_ρ a router compares what arrived with what it could have served. A source grows its window
//! multiplicatively while the path is little loaded, additively while it is well loaded, and shrinks it
//! once when it is overloaded.
//!
//! - `load-factor` ρ = (λ + κ_q·q̃)/(γ·C·t_ρ), λ the volume that arrived in t_ρ, q̃ the persistent queue
//! - `code`        low below 80 %, high below 100 %, else overload; along the path the highest stays
//! - `MI`          w(t + t_ρ) = w(t)·(1 + ξ) at low load
//! - `AI`          w(t + t_ρ) = w(t) + α at high load
//! - `MD`          w ← β·w at overload, then nothing for t_ρ, then AI for one RTT
//! - `MI-scaling`  ξ_s = (1 + ξ)^(rtt/t_ρ) − 1 for each RTT
//! - `AI-scaling`  α_rate = α·(rtt/t_ρ)² for each RTT: one factor for the clock, one so that rates, not windows,
//!   become equal
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | λ_l | `arrived` | bytes |
//! | q̃_l | `queue` | bytes |
//! | κ_q, γ_l | `kappa_q`, `gamma` | 1 |
//! | C_l | `LinkView::capacity` | bit/s |
//! | t_ρ, t_q | `t_rho`, `t_q` | s |
//! | ρ_l | `load_factor` | 1 |
//! | cwnd | `window` | packets |
//! | ξ, β | `xi`, `beta` | 1 |
//! | α | `alpha` | packets |
//! | rtt | `rtt` | s |
//!
//! # Header
//! The two ECN bits of the IP header: 01 low, 10 high, 11 overload; 00 is no VCP packet. Here they are written as the
//! one byte that holds them (traffic class, its upper six bits zero). They are counted as that byte, although they cost
//! none: a 1500-byte packet carries 1459 bytes of payload here and 1460 in truth. The same holds for acknowledgements.
//!
//! # Router
//! [`Router`]: one addition a packet, one comparison at its departure, a sample of the queue every t_q, a
//! division every t_ρ.
//!
//! # Source
//! [`Source`]: a window. There is no slow start: MI takes its place.
//!
//! # Parameters
//! [`Params`]: the paper's.
//!
//! # Readings and deviations
//! The paper's text was not available. Its constants are in aecp-2010 and maxnet-2007, and its authors' ns-2 code is public. A †
//! marks readings from that code.
//! - α_rate refers to t_ρ (`t_d`). † The code refers to 100 ms, which makes AI four times as quick: `t_d = "100 ms"`.
//!   MD and the RTT of AI after it balance at α_rate/(1 − β) packets. More than C·(1 − β)·t_d²/(α·rtt) flows, C in
//!   packets per second, overload a link for ever: 781 on 100 Mbit/s at 80 ms, 195 with 100 ms.
//! - In the t_ρ after MD nothing moves the window. In the authors' code a level below overload ends the freeze:
//!   `freeze = "overload"`. In the RTT after that, overload is answered by AI †, and other codes as usual.
//! - The code's target utilization is 0.95. A later version chooses one by capacity (0.975 at 100 Mbit/s) but does not use
//!   it. Here γ is the paper's.
//! - The code rounds ρ up to whole per cent first, which moves both levels down by up to 1 %: `whole_percent = true`.
//! - † Scaling is bounded: rtt/t_ρ ≤ 2.5 in MI, and AI is linear in the RTT below 20 ms and above 500 ms.
//!
//! [Other readings](../../validation/law-readings.md#vcp)
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/vcp.h`. It writes when a packet arrives, as a kernel does before its queue, and a
//! window that the application does not fill does not grow.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/vcp.rs`): one bottleneck is 90 to 98 % full with less than a packet
//! in its queue (aecp-2010 Table 1: 93.06 %, 0.5). The start takes as long as MI. Flows of equal RTTs become equal, the
//! later the larger their shares. RTTs up to t_ρ change little about that. An RTT above t_ρ starves short ones, which
//! answer the same overload several times. Over several bottlenecks the long flow gets about two thirds of its max-min
//! share or less (aecp-2010 Fig. 10: 67 of 122.5 Mbit/s; 69.4 here at full rates). Against the author's ns-2 code:
//! docs/validation/ns2-peers.md.
//!
//! # References
//! `vcp-2005`: Xia, Subramanian, Stoica, Kalyanaraman, "One More Bit Is Enough", SIGCOMM 2005; IEEE/ACM
//! Transactions on Networking 16 (2008). `aecp-2010` §6 compares with it.

mod fixed_point;
mod params;
mod router;
mod source;

pub use params::{Freeze, Params};
pub use router::Router;
pub use source::Source;

use crate::protocol::{EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Wire};

/// The protocol `vcp`.
#[derive(Debug)]
pub struct Vcp;

impl Protocol for Vcp {
    const INFO: Info = Info {
        name: "vcp",
        summary: "two bits of load choose between MI, AI and MD of the window (2005)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: false,
        host: Host::EXPLICIT,
        signals: &[
            LawSignal { name: "load_factor", unit: "1", doc: "the link's load factor ρ" },
            LawSignal {
                name: "load",
                unit: "1",
                doc: "the code that the source heard last: 1 low, 2 high, 3 overload",
            },
        ],
    };
    type Params = Params;
    type Header = Load;
    type Echo = Load;
    type Router = Router;
    type Receiver = EchoLast<Load>;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.gamma
    }
}

/// Load level of a path, as its ECN bits encode it. Sources send the lowest level, routers raise it, and
/// acknowledgements return it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// Bits 01: load below 80 %, or no router has written a level.
    #[default]
    Low = 1,
    /// Bits 10: load from 80 to 100 %.
    High = 2,
    /// Bits 11: load of 100 % or more.
    Over = 3,
}

impl Wire for Load {
    const BYTES: usize = 1;
    fn encode(&self, out: &mut [u8]) {
        out[0] = *self as u8;
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes.first()? {
            1 => Some(Self::Low),
            2 => Some(Self::High),
            3 => Some(Self::Over),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
