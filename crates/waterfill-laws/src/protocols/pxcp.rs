//! P-XCP: XCP that gives more spare bandwidth to the flows that can use it.
//!
//! # Law
//! - `eq1`  φ = α·d·(c − y) − β·b, as in [`xcp`]
//! - `5`    of all N flows only the N_b that are bottlenecked here can use their part of φ, so φ·N/N_b is allocated
//!
//! A router sees what earlier routers wrote, so it knows which flows are bottlenecked upstream. It cannot see the routers
//! behind it: it counts flows that are bottlenecked downstream as its own, N_b is N, and nothing changes (ixcp-2007 §5).
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | N | `Scaled::left_x` over the interval | 1 |
//! | N_b | `Scaled::lowered_x` over the interval | 1 |
//! | φ, c, d, α, β, γ | as in [`xcp`] | |
//!
//! # Header
//! XCP's, twenty bytes both ways.
//!
//! # Router
//! [`xcp::Router`] with one factor. A flow is bottlenecked here if this router lowered the feedback of its packets in the
//! last interval; ΣX over those packets, divided by the interval, is N_b.
//!
//! # Source
//! XCP's.
//!
//! # Parameters
//! [`xcp::Params`]: XCP's, with all its variants.
//!
//! # Readings and deviations
//! - Zhou, Yeung and Li's paper was not available. This follows what ixcp-2007 §5 says about it: the factor N/N_b, that it
//!   acts only where the other flows' bottleneck is upstream, and that it over-allocates.
//! - Only a positive φ is scaled: "allocates more bandwidth". A negative φ is taken from all packets, also from those
//!   bottlenecked elsewhere, and eq. 2 uses the φ of eq. 1.
//! - N_b is at least one, also where no flow is bottlenecked here, so the factor is at most N.
//! - For everything else see [`xcp`].
//!
//! # Fixed point
//! `arithmetic = "kernel"` runs `kernel/pxcp.h`: [`xcp`]'s header and its differences. N and N_b are counted at arrival.
//!
//! # Validation
//! Tests below and the simulator's `xcp` tests: on ixcp-2007's Fig. 1 the short flow gets what XCP
//! gives it (43.0 to 24.6 of 55 Mbit/s for 4 to 256 long flows). With the two links exchanged it gets 94 % or more, where
//! XCP gives 87 to 51 %, but queues reach a hundred packets.
//!
//! # References
//! Zhou, Yeung, Li, "P-XCP: A Transport Layer Protocol for Satellite IP Networks", GLOBECOM 2004.
//! `ixcp-2007`: Zan, Yang, "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation".

use crate::protocol::{Host, Info, Protocol, ProtocolKind};
use crate::protocols::xcp;
use crate::state::StateFields;

/// The protocol `pxcp`.
#[derive(Debug)]
pub struct PXcp;

impl Protocol for PXcp {
    const INFO: Info = Info {
        name: "pxcp",
        summary: "XCP that scales spare bandwidth by all flows over those bottlenecked at the router (2004)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: false,
        host: Host::EXPLICIT_WITH_RTT,
        signals: xcp::SIGNALS,
    };
    type Params = xcp::Params;
    type Header = xcp::Header;
    type Echo = xcp::Echo;
    type Router = xcp::Router<Scaled>;
    type Receiver = xcp::Receiver;
    type Source = xcp::Source;

    fn target(_: &xcp::Params) -> f64 {
        1.0
    }
}

impl xcp::Family for PXcp {
    type Rule = Scaled;
}

/// Rule that multiplies spare bandwidth by the ratio of all flows to the flows that are bottlenecked here.
#[derive(Clone, Debug, Default)]
pub struct Scaled {
    /// Sum of X over all packets that left. `lowered_x` is the sum over the packets whose feedback this router lowered.
    left_x: f64,
    lowered_x: f64,
}

impl xcp::Rule for Scaled {
    xcp::as_xcp!();

    fn count_departure(&mut self, x: f64, lowered: bool) {
        self.left_x += x;
        if lowered {
            self.lowered_x += x;
        }
    }

    fn end_interval(&mut self, lasted: f64) -> f64 {
        let Self { left_x, lowered_x } = std::mem::take(self);
        spare_scale(left_x, lowered_x, lasted)
    }

    fn list_state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: left_x, lowered_x);
    }
}

/// `[ixcp-2007:5]` Returns the factor N/N_b, at least 1. N is ΣX/d, and N_b is the same sum over packets lowered here,
/// at least 1.
fn spare_scale(left_x: f64, lowered_x: f64, interval: f64) -> f64 {
    (left_x / lowered_x.max(interval)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LinkView, PacketKind, Passing, Router};
    use crate::units::{Duration, Instant, Rate, Volume};

    /// Returns the feedback of one packet in the third interval of 100 ms. Ten flows of 8 Mbit/s share a link of 100
    /// Mbit/s, so φ/d is 0.4 · 20 Mbit/s. All flows but `here` arrive with −1 byte of feedback.
    fn feedback<P: xcp::Family<Router = xcp::Router<R>, Params = xcp::Params, Header = xcp::Header>, R: xcp::Rule>(
        here: u32,
    ) -> f64
    where
        xcp::Router<R>: Router<P>,
    {
        let params = xcp::Params { first_interval: Duration::from_millis(100), ..xcp::Params::default() };
        let link = LinkView { id: 0, capacity: Rate::from_bps(100e6), target: None, queue: Volume::ZERO };
        let mut router = P::Router::new(&params, &link);
        let packet = |given| xcp::Header::Katabi { rtt: 0.1, cwnd: 100e3, feedback: given };
        let pass = |router: &mut P::Router, given| {
            let mut header = packet(given);
            for departs in [false, true] {
                let (now, volume) = (Instant::ZERO, Volume::from_bytes(1000.0));
                let mut passing =
                    Passing { now, volume, packets: 1.0, kind: PacketKind::Data, header: Some(&mut header) };
                if departs {
                    Router::<P>::on_departure(router, &link, &mut passing);
                } else {
                    Router::<P>::on_arrival(router, &link, &mut passing);
                }
            }
            header
        };
        for interval in 1..=2 {
            for flow in 0..10 {
                for _ in 0..100 {
                    pass(&mut router, if flow < here { f32::MAX } else { -1.0 });
                }
            }
            Router::<P>::on_timer(&mut router, &link, Instant::from_secs(0.101 * f64::from(interval)));
        }
        match pass(&mut router, f32::MAX) {
            xcp::Header::Katabi { feedback, .. } => f64::from(feedback),
            xcp::Header::Falk { .. } => unreachable!("the packets here are Katabi's"),
        }
    }

    /// `[ixcp-2007:eq1, 5]` Spare bandwidth is scaled by N/N_b if the other flows are bottlenecked upstream. It is not
    /// scaled if they seem to be bottlenecked here. Unscaled, 8 Mbit/s over ten flows of 100 packets are 8 kbit/s each,
    /// or 100 bytes in 100 ms.
    #[test]
    fn spare_bandwidth_is_scaled() {
        for (here, scaled, bytes) in [(10, false, 100.0), (2, false, 100.0), (10, true, 100.0), (2, true, 500.0)] {
            let got = if scaled { feedback::<PXcp, _>(here) } else { feedback::<xcp::Xcp, _>(here) };
            assert!((got / bytes - 1.0).abs() < 1e-3, "{got} is not {bytes} with {here} of 10, scaled {scaled}");
        }
    }

    /// `[ixcp-2007:5]` With 10 flows the factor is 5 if two flows are bottlenecked here, and 10 if no flow is.
    #[test]
    fn scale_of_pxcp() {
        let close = |got: f64, expected: f64| crate::testing::close(got, expected, 1e-12);
        close(spare_scale(1.0, 0.2, 0.1), 5.0);
        close(spare_scale(1.0, 0.0, 0.1), 10.0);
        close(spare_scale(0.05, 0.0, 0.1), 1.0);
    }
}
