//! Router of a law in kernel arithmetic, for the simulator.

use super::{KernelLaw, KernelProtocol, Packet, RunsInKernel, Value, Words, scaled, whole_bytes};
use crate::protocol::{LinkView, PacketKind, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Volume};

/// Router of a law in kernel arithmetic, with one CPU. The router writes headers at arrival, as a kernel does.
#[derive(Clone, Debug)]
pub struct Router {
    form: &'static KernelProtocol,
    law: &'static KernelLaw,
    params: Words,
    link: Words,
    cpu: Words,
    /// Sums of the CPU at the last tick. `sums` counts the arrivals of the interval that ended at that tick.
    counted: Words,
    sums: Words,
    capacity_bps: u64,
    /// Target utilization in units of 10⁻⁶.
    target: u32,
    /// Fractions of a byte and of a packet that a fluid carries over to its next parcel. They are negative after
    /// rounding up.
    bytes: Volume,
    packets: f64,
    next_tick: Instant,
}

fn capacity_bps(link: &LinkView) -> u64 {
    (link.capacity.as_bps() as u64).max(1)
}

impl Router {
    /// Creates the router of one link direction.
    #[must_use]
    pub fn new<P: RunsInKernel>(params: &P::Params, link: &LinkView) -> Self {
        let law = P::law();
        let mut router = Self {
            form: KernelProtocol::of::<P>(),
            law,
            params: law.params(&P::link_numbers(params, link)),
            link: law.link(),
            cpu: law.cpu(),
            counted: law.sums(),
            sums: law.sums(),
            capacity_bps: 0,
            target: scaled(link.target.unwrap_or_else(|| P::target(params)), 1e6).max(1),
            bytes: Volume::ZERO,
            packets: 0.0,
            next_tick: Instant::ZERO,
        };
        router.set_link(link);
        router.next_tick = Instant::ZERO + router.tick_interval();
        router
    }

    /// Returns the law's C functions.
    #[must_use]
    pub const fn law(&self) -> &'static KernelLaw {
        self.law
    }

    fn set_link(&mut self, link: &LinkView) {
        self.capacity_bps = capacity_bps(link);
        self.law.link_set(&mut self.link, &self.params, self.capacity_bps, self.target);
    }

    #[cfg(test)]
    pub(super) fn counted_bytes(&self) -> u64 {
        self.cpu.words()[0]
    }

    fn tick_interval(&self) -> Duration {
        Duration::from_micros(u64::from(self.law.interval(&self.link)))
    }

    /// Counts a packet and lets the law write the packet's header, as
    /// [`Router::on_arrival`](crate::protocol::Router::on_arrival) requires.
    pub fn on_arrival(&mut self, passing: &mut Passing<'_, Value>) {
        self.bytes += passing.volume;
        let bytes = whole_bytes(self.bytes);
        self.bytes -= Volume::from_bytes(bytes as f64);
        self.cpu.set(0, self.cpu.words()[0].wrapping_add(bytes));
        let Some(value) = passing.header.as_deref_mut() else { return };
        self.packets += passing.packets;
        let segments = self.packets.round();
        self.packets -= segments;
        let syn = u32::from(passing.kind == PacketKind::Syn);
        let packet = Packet { bytes, segments: segments as u32, syn };
        self.law.mark(&mut self.link, &mut self.cpu, &packet, value);
    }

    /// Returns the time at which the control interval ends.
    #[must_use]
    pub const fn poll_at(&self) -> Instant {
        self.next_tick
    }

    /// Ends a control interval.
    pub fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if self.capacity_bps != capacity_bps(link) {
            self.set_link(link);
        }
        for word in 0..self.sums.words().len() {
            let count = self.cpu.words()[word];
            self.sums.set(word, count.wrapping_sub(self.counted.words()[word]));
            self.counted.set(word, count);
        }
        self.law.tick(&mut self.link, &self.sums, whole_bytes(link.queue));
        self.next_tick = now + self.tick_interval();
    }

    /// Returns the control interval, if the interval follows the RTTs that packets state.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        (self.form.control_interval)(&self.law.link_signals(&self.link))
    }

    /// Records the link's signals.
    pub fn observe(&self, probe: &mut dyn Probe) {
        (self.form.observe_link)(&self.law.link_signals(&self.link), probe);
    }

    /// Lists the router's state for step logs.
    pub fn state(&self, fields: &mut StateFields) {
        fields.put_words("params", self.params.words());
        fields.put_words("link", self.link.words());
        fields.put_words("cpu", self.cpu.words());
        fields.put_words("counted", self.counted.words());
        crate::state_of!(fields, self: capacity_bps, target, bytes, packets, next_tick);
    }
}
