//! BBR version 3: paced at the bottleneck's bandwidth, with bounds on rate and data in flight that follow from losses.
//!
//! This is draft-ietf-ccwg-bbr in its text of 3 August 2026, after version 06. [`bbr`](super::bbr) is version 1.
//!
//! # Law
//! The model of the path, in three parts:
//! - `[bbr-06:§5.5.5]` `max_bw`: the largest delivery rate of this cycle of ProbeBW and the one before
//! - `[bbr-06:§5.3.4.3]` `min_rtt`: the smallest RTT of the last ten seconds
//! - `[bbr-06:§5.5.9]` `extra_acked`: the largest excess of acknowledgements in ten rounds; in Startup in one
//!
//! Bounds by losses:
//! - `[bbr-06:§5.5.10.2]` `inflight_longterm` (before 2024 inflight_hi): what was in flight when a probe lost more than 2 %
//!   of a round, at least `0.7·min(bdp, cwnd)`
//! - `[bbr-06:§5.5.10.3]` `bw_shortterm ← max(bw_latest, 0.7·bw_shortterm)`, once per round with losses outside probes, and
//!   `inflight_shortterm` by the same rule (before 2024 bw_lo, inflight_lo)
//!
//! What follows from it:
//! - `[bbr-06:§5.2.3]` `bw = min(max_bw, bw_shortterm)`
//! - `[bbr-06:§5.6.2]` `pacing_rate = 0.99·pacing_gain·bw`; before the pipe is full it only grows
//! - `[bbr-06:§5.6.4.2]` `max_inflight = max(cwnd_gain·bw·min_rtt + extra_acked, 3·send_quantum, 4)`
//! - `[bbr-06:§5.6.4.6]` `cwnd ← min(cwnd + acked, max_inflight)`, below the bounds of its state
//!
//! The state machine, with the gains of pacing and window:
//! - **Startup** (2.77, 2): over after three rounds without a quarter more bandwidth (`[bbr-06:§5.3.1.2]`), or after a round
//!   of recovery with more than 2 % lost in six or more places (`[bbr-06:§5.3.1.3]`)
//! - **Drain** (0.5, 2): until a BDP is in flight, three rounds at most
//! - **ProbeBW_DOWN** (0.9, 2), **CRUISE** (1, 2), **REFILL** (1, 2), **UP** (1.25, 2.25): a probe every 2 to 3 s, or as many
//!   rounds as the BDP has packets, 63 at most
//! - **ProbeRTT** (1, 0.5): 200 ms and a round with half a BDP in flight, when no lower RTT was seen for 5 s
//!
//! # Symbols
//! | draft | here | unit |
//! |---|---|---|
//! | BBR.max_bw, BBR.bw, BBR.bw_shortterm | `max_bw`, `bw`, `bw_shortterm` | packets/s |
//! | BBR.min_rtt, BBR.probe_rtt_min_delay | `min_rtt`, `probe_rtt_min_delay` | s |
//! | BBR.inflight_longterm, BBR.inflight_shortterm | `inflight_longterm`, `inflight_shortterm` | packets |
//! | C.cwnd, C.pacing_rate, C.send_quantum | `cwnd`, `pacing_rate`, `send_quantum` | packets, packets/s, packets |
//! | C.delivered, C.lost | [`delivery`](super::delivery), `lost` | packets |
//! | P.tx_in_flight, P.lost | `Departure` | packets |
//! | RS.* | `Sample` | packets |
//!
//! Other variables have the draft's names. The signal `state` is 0 in Startup, 1 in Drain, 2 to 5 in ProbeBW's DOWN, CRUISE,
//! REFILL and UP, and 6 in ProbeRTT.
//!
//! # Header
//! [`Note`]: the host's own note on a packet, nothing on the wire.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Source`]: paced; the law's window holds at all times (no rate reduction by the host). The host reports each lost
//! packet by its time of sending. After a time-out the window restarts at one packet.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - ECN: the draft defines no response, so ECN is not asked for. Linux's version 3 has one for RTTs below 5 ms.
//! - §5.3.2 says "after 3 round trips", its pseudo-code `>` and so four starts of a round. The pseudo-code holds.
//! - send_quantum bounds the window, but the host sends single packets.
//! - State is saved for an undo once per recovery. The pseudo-code saves it with each loss that begins a round, and
//!   StartProbeBW_DOWN begins one in the middle of a burst of losses (ResetCongestionSignals): undo_state would be lost.
//! - With a `recovery` that keeps no sending times, lost packets count as sent with the newest that has arrived.
//!   §5.5.10.2 has a rule for hosts without selective acknowledgements; it applies to none, because a law is not notified.
//!
//! [Other readings](../../validation/tcp-readings.md#bbr3)
//!
//! # Validation
//! The draft's 22 test cases at 25 pairs of RTT and rate: [study `bbr3`](../../validation/bbr3.md). Tests below by hand.
//!
//! # References
//! `bbr-06`: Cardwell, Swett, Beshay, draft-ietf-ccwg-bbr, text of 3 August 2026 (after version 06 of 6 July 2026). Linux:
//! google/bbr, branch v3, net/ipv4/tcp_bbr.c.

mod control;
mod filters;
mod model;
mod params;
mod source;
mod states;

pub use params::Params;
pub use source::Source;

use crate::protocol::{EchoLast, Host, Info, LawSignal, Protocol, ProtocolKind, Retransmission};
use crate::protocols::tcp::delivery::Note;

/// The protocol `bbr3`.
#[derive(Debug)]
pub struct Bbr3;

impl Protocol for Bbr3 {
    const INFO: Info = Info {
        name: "bbr3",
        summary: "BBR version 3, as in the draft of 2026: paced at the measured bandwidth, bounded by losses",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { notes: true, ..Host::EXPLICIT }.recovering_by(Retransmission::Rack),
        signals: &[
            LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
            LawSignal {
                name: "state",
                unit: "1",
                doc: "Startup 0, Drain 1, DOWN 2, CRUISE 3, REFILL 4, UP 5, ProbeRTT 6",
            },
            LawSignal { name: "round_count", unit: "1", doc: "number of rounds" },
            LawSignal { name: "bw", unit: "packets/s", doc: "bandwidth that is safe to send at" },
            LawSignal { name: "max_bw", unit: "packets/s", doc: "bandwidth of the bottleneck, as measured" },
            LawSignal { name: "bw_shortterm", unit: "packets/s", doc: "bound by losses outside probes; none if unset" },
            LawSignal { name: "min_rtt", unit: "s", doc: "RTT without a queue, as measured" },
            LawSignal { name: "inflight_longterm", unit: "packets", doc: "bound by losses in probes; none if unset" },
            LawSignal {
                name: "inflight_shortterm",
                unit: "packets",
                doc: "bound by losses outside probes; none if unset",
            },
            LawSignal { name: "extra_acked", unit: "packets", doc: "excess of aggregated acknowledgements" },
            LawSignal { name: "pacing_gain", unit: "1", doc: "pacing rate over bw, without the margin" },
        ],
    };
    type Params = Params;
    type Header = Note;
    type Echo = Note;
    type Router = ();
    type Receiver = EchoLast<Note>;
    // On the heap: every flow's place is as large as the largest source.
    type Source = Box<Source>;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests;
