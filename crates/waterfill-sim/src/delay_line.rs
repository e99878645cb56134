//! A wire without a transmitter: it delays every packet by the same time.

use waterfill_laws::units::{Duration, Instant};

use crate::packet::Packet;
use crate::ring::Ring;

/// Packets on a wire of constant delay, in order.
#[derive(Debug)]
pub(crate) struct DelayLine {
    /// Number of the line, from which the rank of its events follows.
    pub(crate) number: u64,
    delay: Duration,
    packets: Ring<(Instant, Packet)>,
}

impl DelayLine {
    pub(crate) const fn new(number: u64, delay: Duration) -> Self {
        Self { number, delay, packets: Ring::new() }
    }

    pub(crate) const fn delay(&self) -> Duration {
        self.delay
    }

    /// Adds a packet. Returns its arrival time if the packet is now at the head.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet) -> Option<Instant> {
        let arrives = now + self.delay;
        self.packets.push((arrives, packet));
        (self.packets.len() == 1).then_some(arrives)
    }

    /// Removes and returns the packet at the head when it arrives.
    pub(crate) fn deliver(&mut self) -> Packet {
        self.packets.pop().expect("an event stands for a packet").1
    }

    /// Returns the arrival time of the packet at the head.
    pub(crate) fn head(&self) -> Option<Instant> {
        self.packets.front().map(|&(arrives, _)| arrives)
    }

    pub(crate) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.packets.heap_bytes()
    }
}
