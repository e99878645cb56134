//! BBR version 1, of 2017: a source that sends at the bottleneck's bandwidth, with at most twice the bandwidth-delay product
//! in flight.
//!
//! This is draft-cardwell-iccrg-bbr-00, not version 2 or 3, with the main differences of Linux's `bbr`. The parameter
//! `linux = false` leaves the draft alone.
//!
//! # Law
//! The model of the path:
//! - `[bbr-00:BtlBw]` the largest delivery rate of the last ten RTTs, samples that the application limited left
//!   out unless they are larger
//! - `[bbr-00:RTprop]` the smallest RTT of the last ten seconds
//!
//! What follows from it:
//! - `[bbr-00:pacing_rate]` `pacing_rate = pacing_gain·BtlBw`; before the pipe is full it only grows
//! - `[bbr-00:send_quantum]` what the host sends at a time: a millisecond's worth, or a packet without `linux`
//! - `[bbr-00:Inflight]` `Inflight(gain) = gain·BtlBw·RTprop + 3·send_quantum`
//! - `[bbr-00:cwnd]` `cwnd ← min(cwnd + acked, Inflight(cwnd_gain))`, at least 4 packets
//!
//! The state machine:
//! - **Startup**: both gains 2/ln 2, so that the rate doubles in an RTT; over when BtlBw has not grown by a quarter
//!   in three RTTs (`[bbr-00:full_pipe]`)
//! - **Drain**: pacing gain ln 2/2, until no more than Inflight(1) is in flight
//! - **ProbeBW**: eight phases of an RTprop with pacing gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, begun at random
//!   anywhere but the second; cwnd_gain 2
//! - **ProbeRTT**: where RTprop has not been seen for ten seconds, 4 packets in flight for 200 ms and an RTT
//!
//! # Symbols
//! | draft | here | unit |
//! |---|---|---|
//! | BBR.BtlBw, BBR.RTprop | `bandwidth`, `rtprop` | packets/s, s |
//! | cwnd, BBR.prior_cwnd | `cwnd`, `prior_cwnd` | packets |
//! | BBR.round_count, next_round_delivered | `round`, `next_round_delivered` | –, packets |
//! | BBR.full_bw, full_bw_count, filled_pipe | `full_bandwidth`, `full_count`, `filled_pipe` | packets/s |
//! | BBR.cycle_index, cycle_stamp | `phase`, `phase_began` | –, s |
//! | rs, P, C | [`delivery`](super::delivery) | packets, s |
//!
//! # Header
//! [`Note`]: the host's own note on a packet, nothing on the wire.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Source`]: paced; the law's window holds at all times (no rate reduction by the host). A loss does not change the
//! model. In the first RTT of a recovery packets are conserved, one sent for one delivered. Then the window grows
//! again, and at the end of the recovery it has its former size. After a time-out it starts at one packet.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - Without `linux` send_quantum is one packet, as the host spaces out single ones; §4.2.2 counts a millisecond's worth.
//! - Losses are inferred from what was in flight before and after an acknowledgement.
//! - The filter of BtlBw is exact: the largest of each of the last ten rounds is kept, and rounds end only with a sample.
//! - Linux's tcp_bbr.c is not the draft. The parameter `linux` takes from it what moves a lone flow's queue: send_quantum
//!   counts a millisecond's worth also where packets leave one by one (at 100 Mbit/s 8 packets, so 24 more in flight, and
//!   after each probe up to 2.9 ms of queue remain); whole windows are rounded up to even, with 2 packets more while
//!   probing, which ends a send_quantum early; pacing stays 1 % below BtlBw; an RTT as small as RTprop does not renew
//!   it; and once the pipe is full the window has an allowance for what aggregated acknowledgements bring beyond BtlBw
//!   ([`Aggregation`](model::Aggregation)). Not here is the estimator of policers.
//! - ECN is not answered, so it is not asked for.
//!
//! # Validation
//! One flow fills its link with less than a BDP of queue and knows its RTT; 1 % of random loss leaves at least 90 %
//! (`tcp_delay_based` of the simulator).
//!
//! # References
//! `bbr-00`: Cardwell, Cheng, Hassas Yeganeh, Jacobson, draft-cardwell-iccrg-bbr-congestion-control-00, 2017. Cheng,
//! Cardwell, Hassas Yeganeh, Jacobson, draft-cheng-iccrg-delivery-rate-estimation-00, 2017.

mod model;
mod params;
mod source;

pub(super) use model::MaxFilter;
pub use model::{inflight, send_quantum};
pub use params::Params;
pub use source::Source;
pub(super) use source::drawn;

use crate::protocol::{EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Retransmission};
use crate::protocols::tcp::delivery::Note;

/// The protocol `bbr`.
#[derive(Debug)]
pub struct Bbr;

impl Protocol for Bbr {
    const INFO: Info = Info {
        name: "bbr",
        summary: "BBR version 1 of 2017, as in Linux: paced at the bottleneck's measured bandwidth",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { notes: true, ..Host::EXPLICIT }.recovering_by(Retransmission::Rack),
        signals: &[
            LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
            LawSignal { name: "btlbw", unit: "packets/s", doc: "bandwidth of the bottleneck, as measured" },
            LawSignal { name: "rtprop", unit: "s", doc: "RTT without a queue, as measured" },
            LawSignal { name: "pacing_gain", unit: "1", doc: "pacing rate over btlbw" },
        ],
    };
    type Params = Params;
    type Header = Note;
    type Echo = Note;
    type Router = ();
    type Receiver = EchoLast<Note>;
    // On the heap: it is larger than any other law's, and every flow's place is as large as the largest.
    type Source = Box<Source>;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests;
