//! A law's router in the simulator.

use super::{KernelLaw, Law, Packet, Words, scaled, whole_bytes};
use crate::protocol::{LinkView, PacketKind, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Volume};

/// The router of a law, with one CPU. It writes at arrival, as a kernel does.
#[derive(Clone, Debug)]
pub struct Router {
    law: &'static Law,
    params: Words,
    link: Words,
    cpu: Words,
    /// The CPU's sums at the last tick, and what has arrived since.
    counted: Words,
    sums: Words,
    capacity_bps: u64,
    /// 10⁻⁶; 0: the law's own.
    target: u32,
    /// A fluid's fractions of a byte and of a packet, carried to the next parcel.
    bytes: Volume,
    packets: f64,
    next_tick: Instant,
}

fn capacity_bps(link: &LinkView) -> u64 {
    (link.capacity.as_bps() as u64).max(1)
}

impl Router {
    fn set_link(&mut self, link: &LinkView) {
        self.capacity_bps = capacity_bps(link);
        self.law.link_set(&mut self.link, &self.params, self.capacity_bps, self.target);
    }

    fn tick_interval(&self) -> Duration {
        Duration::from_micros(u64::from(self.law.interval(&self.link)))
    }
}

impl<P: KernelLaw> crate::protocol::Router<P> for Router {
    fn new(params: &P::Params, link: &LinkView) -> Self {
        let law = P::law();
        let mut router = Self {
            law,
            params: law.params(&P::link_numbers(params, link)),
            link: law.link(),
            cpu: law.cpu(),
            counted: law.sums(),
            sums: law.sums(),
            capacity_bps: 0,
            target: link.target.map_or(0, |target| scaled(target, 1e6).max(1)),
            bytes: Volume::ZERO,
            packets: 0.0,
            next_tick: Instant::ZERO,
        };
        router.set_link(link);
        router.next_tick = Instant::ZERO + router.tick_interval();
        router
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, P::Header>) {
        self.bytes += passing.volume;
        let bytes = self.bytes.as_bytes() as u64;
        self.bytes -= Volume::from_bytes(bytes as f64);
        self.cpu.set(0, self.cpu.words()[0].wrapping_add(bytes));
        let Some(header) = passing.header.as_deref_mut() else { return };
        let Some(mut value) = P::value_of(header) else { return };
        self.packets += passing.packets;
        let segments = self.packets.round();
        self.packets -= segments;
        let syn = u32::from(passing.kind == PacketKind::Syn);
        let packet = Packet { bytes, segments: segments as u32, syn };
        if self.law.mark(&mut self.link, &mut self.cpu, &packet, &mut value) {
            *header = P::header_of(&value);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_tick
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
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

    fn interval(&self) -> Option<Duration> {
        P::control_interval(&self.law.link_signals(&self.link))
    }

    fn observe(&self, probe: &mut dyn Probe) {
        P::observe_link(&self.law.link_signals(&self.link), probe);
    }

    fn state(&self, fields: &mut StateFields) {
        fields.put_words("params", self.params.words());
        fields.put_words("link", self.link.words());
        fields.put_words("cpu", self.cpu.words());
        fields.put_words("counted", self.counted.words());
        crate::state_of!(fields, self: capacity_bps, target, bytes, packets, next_tick);
    }
}
