//! Buffers of switches, which the queues of their links share by dynamic thresholds (Choudhury and Hahne, 1998).
//!
//! A link's state is brought up to date when the link is used, so the sum of the backlogs here may be out of date. It is
//! then too large, never too small, because only departures are missing. A packet that is admitted with the known sum is
//! admitted with the exact one too; only for others all links of the switch are brought up to date.

use waterfill_laws::units::Instant;
use waterfill_network::{Network, SwitchSpec};

use super::Part;
use super::event::Event;
use super::pfc::Inputs;
use crate::link::{Enqueued, Link};
use crate::packet::Packet;

/// Buffer of a switch. Packets in transmission are not in it.
#[derive(Debug)]
pub(super) struct SharedBuffer {
    /// Index among the network's switches.
    pub(super) number: u32,
    bytes: u64,
    pub(super) alpha: f64,
    /// Links that leave the switch, by their indices in the part.
    pub(super) outputs: Vec<u32>,
    /// Sum of the links' backlogs when they were counted last.
    used: u64,
    /// Maximum of the exact sum in the measurement window so far.
    max: u64,
    /// Maximum in the measurement window, once it has closed.
    result: Option<u64>,
    /// Inputs of a switch that drops nothing.
    pub(super) inputs: Option<Box<Inputs>>,
}

impl SharedBuffer {
    fn new(number: u32, spec: &SwitchSpec, packet_bytes: u16) -> Self {
        let (bytes, alpha, outputs) = (spec.buffer_bytes, spec.alpha, spec.outputs.clone());
        let inputs = spec.pfc.as_ref().map(|pfc| Box::new(Inputs::new(pfc, bytes, packet_bytes)));
        Self { number, bytes, alpha, outputs, used: 0, max: 0, result: None, inputs }
    }

    /// Returns true if a packet may wait at a link, which is up to date.
    fn admits(&mut self, links: &mut [Link], l: u32, (now, bytes): (Instant, u16)) -> bool {
        self.count(&mut links[l as usize]);
        let queue = links[l as usize].backlog_bytes();
        if self.has_space(queue, bytes) {
            return true;
        }
        self.count_all(links, now);
        self.has_space(queue, bytes)
    }

    fn has_space(&self, queue: u64, bytes: u16) -> bool {
        let free = self.bytes - self.used;
        u64::from(bytes) <= free && (queue as f64) < self.alpha * free as f64
    }

    /// Returns true if the known sum is above the maximum so far.
    pub(super) const fn is_above_max(&self) -> bool {
        self.used > self.max
    }

    /// Records the sum, which is exact.
    pub(super) fn record_max(&mut self) {
        self.max = self.max.max(self.used);
    }

    pub(super) fn count(&mut self, link: &mut Link) {
        let (before, after) = link.count();
        self.used = self.used - before + after;
    }

    /// Brings the links and the sum of their backlogs up to date.
    fn count_all(&mut self, links: &mut [Link], now: Instant) {
        let mut used = 0;
        for &l in &self.outputs {
            let link = &mut links[l as usize];
            link.advance(now);
            used += link.count().1;
        }
        self.used = used;
    }

    /// Counts a packet that has joined a link.
    fn count_arrival(&mut self, links: &mut [Link], l: u32, now: Instant) {
        self.count(&mut links[l as usize]);
        if self.is_above_max() {
            self.count_all(links, now);
            self.record_max();
        }
    }

    /// Opens the summary's measurement window.
    pub(super) fn open_window(&mut self, links: &mut [Link], now: Instant) {
        self.count_all(links, now);
        self.max = self.used;
    }

    /// Closes the summary's measurement window.
    pub(super) fn close_window(&mut self) {
        self.result = Some(self.max);
    }

    /// Returns the maximum in the measurement window, up to now if the window is still open.
    pub(super) fn max(&self) -> u64 {
        self.result.unwrap_or(self.max)
    }
}

impl Part {
    /// Builds the buffers of a network's switches.
    pub(super) fn build_buffers(&mut self, network: &Network) {
        self.buffers = (0u32..)
            .zip(&network.switches)
            .map(|(number, spec)| SharedBuffer::new(number, spec, network.packet_bytes))
            .collect();
        for (s, buffer) in (0u32..).zip(&self.buffers) {
            buffer.outputs.iter().for_each(|&l| self.links[l as usize].share(s));
        }
    }

    /// Enqueues a packet at a link that shares the buffer of a switch.
    #[inline(never)] // keeps the path of links with a buffer of their own short
    pub(super) fn enqueue_shared(&mut self, l: u32, packet: &Packet, from: u32) {
        let now = self.now;
        let link = &mut self.links[l as usize];
        let Some(buffer) = self.buffers.get_mut(link.switch() as usize) else { return };
        if buffer.inputs.is_some() {
            return self.enqueue_lossless(l, packet, from);
        }
        link.advance(now);
        let admitted = buffer.admits(&mut self.links, l, (now, packet.bytes));
        let link = &mut self.links[l as usize];
        link.set_buffer(if admitted { u64::MAX } else { 0 });
        match link.enqueue(now, packet) {
            Enqueued::Head(time) => self.agenda.schedule(time, Event::Link(l)),
            Enqueued::Behind => {}
            Enqueued::Dropped => return self.drop_arrival(l, packet.sack),
        }
        buffer.count_arrival(&mut self.links, l, now);
    }
}
