//! A host's own link to its first router: a transmitter behind a first-in-first-out queue, then a wire.
//!
//! The queue is unlimited: a host holds back what its link cannot take yet, it does not drop it. So the queue needs no
//! events of its own. A packet's arrival is known when the host hands it over, from the time until which the
//! transmitter is busy.

use std::collections::VecDeque;

use waterfill_laws::units::{Duration, Instant, Rate};

use crate::packet::Packet;

/// Packets in a host's queue and on its wire, in order.
#[derive(Debug)]
pub(crate) struct AccessLink {
    rate: Rate,
    /// Delay of the wire: the padding of the flow's RTT.
    delay: Duration,
    /// When the transmitter has sent all that it was given.
    free: Instant,
    packets: VecDeque<(Instant, u64, Packet)>,
}

impl AccessLink {
    pub(crate) const fn new(rate: Rate, delay: Duration) -> Self {
        Self { rate, delay, free: Instant::ZERO, packets: VecDeque::new() }
    }

    /// Takes a packet from the host; returns when it arrives if it is now the head.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet, order: u64) -> Option<Instant> {
        self.free = self.free.max(now) + self.rate.time_for(u32::from(packet.bytes));
        let arrives = self.free + self.delay;
        self.packets.push_back((arrives, order, packet));
        (self.packets.len() == 1).then_some(arrives)
    }

    /// Takes the head out, at the time it arrives.
    pub(crate) fn deliver(&mut self) -> Packet {
        self.packets.pop_front().expect("an event stands for a packet").2
    }

    /// When the head arrives, and its sequence number.
    pub(crate) fn head(&self) -> Option<(Instant, u64)> {
        self.packets.front().map(|&(arrives, order, _)| (arrives, order))
    }

    pub(crate) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<(Instant, u64, Packet)>()
    }
}
