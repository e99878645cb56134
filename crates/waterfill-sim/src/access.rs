//! A host's own link to its first router: a transmitter behind a first-in-first-out queue, then a wire.
//!
//! The queue is unlimited: a host holds back what its link cannot take yet, it does not drop it. So the queue needs no
//! events of its own. A packet's arrival is known when the host hands it over, from the time until which the
//! transmitter is busy.

use waterfill_laws::units::{Duration, Instant, Rate};

use crate::delay_line::DelayLine;
use crate::packet::Packet;

/// A host's transmitter, and the packets in its queue and on its wire.
#[derive(Debug)]
pub(crate) struct AccessLink {
    rate: Rate,
    /// Time at which the transmitter finishes all packets queued so far.
    free: Instant,
    /// Wire whose delay is the padding of the flow's RTT. It also holds the packets still in the queue.
    pub(crate) wire: DelayLine,
}

impl AccessLink {
    pub(crate) const fn new(number: u64, rate: Rate, delay: Duration) -> Self {
        Self { rate, free: Instant::ZERO, wire: DelayLine::new(number, delay) }
    }

    /// Queues a packet from the host. Returns its arrival time if the packet is now at the head.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet) -> Option<Instant> {
        self.free = self.free.max(now) + self.rate.time_for(u32::from(packet.bytes));
        self.wire.enqueue(self.free, packet)
    }
}
