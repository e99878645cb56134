//! Helpers shared by the crate's unit tests.

use rand_pcg::Pcg64;
use waterfill_laws::registry::AnyHeader;
use waterfill_laws::units::{Instant, Rate};

use crate::packet::{Cargo, Flags, Packet, Role, SackId};
use crate::queue::{Arrival, Backlog, BufferLimit, QueueContext, Waiting};

/// Asserts that `a` equals `b` within a relative tolerance.
pub(crate) fn assert_close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b} within {relative}");
}

/// Returns a data packet of 1500 bytes without a law's header, sent at `sent`.
pub(crate) fn full_packet(flow: u32, sent: Instant) -> Packet {
    Packet {
        flow,
        to: flow,
        place: 0,
        bytes: 1500,
        incarnation: 0,
        role: Role::Data,
        flags: Flags::default(),
        sack: SackId::NONE,
        number: 0,
        sent,
        echoed: Instant::ZERO,
        cargo: Cargo::Header(AnyHeader::None),
    }
}

/// Returns a full packet that was enqueued at `since`.
pub(crate) fn waiting(flow: u32, since: Instant) -> Waiting {
    Waiting { packet: full_packet(flow, since), since }
}

/// Returns the queue context of a link of 12 Mbit/s, where a full packet takes 1 ms.
pub(crate) fn queue_context() -> QueueContext {
    QueueContext { capacity: Rate::from_bps(12e6), packet_bytes: 1500, rng: Pcg64::new(1, 1) }
}

/// Returns an arrival at a busy link whose buffer holds `limit_packets` packets.
pub(crate) fn arrival(backlog: Backlog, limit_packets: u64) -> Arrival {
    let limit = BufferLimit { bytes: u64::MAX, packets: limit_packets };
    Arrival { backlog, limit, idle: None, markable: false, input: 0 }
}
