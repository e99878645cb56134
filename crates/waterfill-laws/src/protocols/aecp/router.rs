//! The router law.

use crate::carriage::Carriage;
use crate::protocol::{LinkView, PacketKind, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Ceiling, First, Params, Rounding};
use super::{Aecp, Factor, Header, SLOWEST, fastest, place_of};

/// The size of a packet until data has been seen: an Ethernet frame's.
pub(super) const FIRST_PACKET: Volume = Volume::from_bytes(1500.0);

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    capacity: Rate,
    beta: f64,
    q_0: f64,
    t: f64,
    t_2: Duration,
    ceiling: Ceiling,
    rounding: Rounding,
    /// r, real, in packets/s.
    pub(super) r: f64,
    /// Its place on the factor's scale, as packets get it.
    place: f64,
    carriage: Carriage,
    /// Part of r that the codes written so far have left out.
    residue: f64,
    /// A packet's size.
    packet: Volume,
    /// Volume that arrived in this T₂.
    arrived: Volume,
    /// Own data in this T₂: volume and packets.
    data: (Volume, f64),
    next_update: Instant,
}

impl Router {
    fn set(&mut self, r: f64) {
        let capacity = packets_per_second(self.capacity, self.packet);
        let ceiling = match self.ceiling {
            Ceiling::Capacity => capacity,
            Ceiling::EmptyQueue => resting_load(0.0, capacity, self.q_0, self.t),
        };
        self.r = clipped(r, ceiling);
        let packet = self.packet;
        self.place = place_of(self.carriage.carry(
            self.r,
            |r| Rate::from_bps(r * packet.as_bits()),
            |rate| clipped(packets_per_second(rate, packet), fastest()),
        ));
    }

    /// The code for the next packet.
    fn factor(&mut self) -> Factor {
        match self.rounding {
            Rounding::Nearest => Factor::nearest(self.place).0,
            Rounding::Carried => {
                let (factor, left) = Factor::nearest(self.place + self.residue);
                self.residue = left.clamp(-0.5, 0.5); // beyond the scale's ends nothing can be made good
                factor
            }
        }
    }
}

impl crate::protocol::Router<Aecp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mut router = Self {
            capacity: link.usable(),
            beta: params.beta,
            q_0: if link.target.is_some_and(|target| target < 1.0) { 0.0 } else { params.q_0 },
            t: params.t.as_secs(),
            t_2: params.t_2,
            ceiling: params.ceiling,
            rounding: params.rounding,
            r: 0.0,
            place: 0.0,
            carriage: params.carriage(),
            residue: 0.0,
            packet: FIRST_PACKET,
            arrived: Volume::ZERO,
            data: (Volume::ZERO, 0.0),
            next_update: Instant::ZERO + params.t_2,
        };
        router.set(match params.r_0 {
            First::SourceRate => params.x_0,
            First::Capacity => packets_per_second(router.capacity, router.packet),
        });
        router
    }

    /// §5.3, between sampling points.
    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(header) = passing.header.as_deref_mut() {
            if passing.kind == PacketKind::Data {
                self.data.0 += passing.volume;
                self.data.1 += passing.packets;
            }
            header.factor = smaller(header.factor, self.factor());
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    /// §5.3, at a sampling point.
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.capacity = link.usable();
        let (volume, packets) = self.data;
        if volume.as_bytes() > 0.0 && packets > 0.0 {
            self.packet = volume / packets;
        }
        let capacity = packets_per_second(self.capacity, self.packet);
        let load = packets_per_second(self.arrived / self.t_2, self.packet);
        let queue = link.queue / self.packet;
        let used = load + queue_as_load(queue, self.q_0, self.t);
        self.set(r_next(self.r, used, capacity, self.beta, self.t_2.as_secs()));
        self.arrived = Volume::ZERO;
        self.data = (Volume::ZERO, 0.0);
        self.next_update = now + self.t_2;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("r", self.r);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: capacity, q_0, r, place, residue, packet, arrived, next_update);
        fields.put("data_volume", &self.data.0);
        fields.put("data_packets", &self.data.1);
    }
}

/// A rate as packets of a size.
pub(super) fn packets_per_second(rate: Rate, packet: Volume) -> f64 {
    rate.as_bps() / packet.as_bits()
}

/// `[aecp-2010:eq4]` The smaller of two factors.
pub(super) fn smaller(factor: Factor, own: Factor) -> Factor {
    factor.min(own)
}

/// `[aecp-2010:eq2]` (q − q₀)/T: the queue's excess as if it were load.
pub(super) fn queue_as_load(queue: f64, q_0: f64, t: f64) -> f64 {
    (queue - q_0) / t
}

/// `[aecp-2010:eq2]` Equilibrium load for the current queue length.
pub(super) fn resting_load(queue: f64, capacity: f64, q_0: f64, t: f64) -> f64 {
    capacity - queue_as_load(queue, q_0, t)
}

/// `[aecp-2010:eq49]` r·exp(βT₂·(1 − used/C)), where used is Σx + (q − q₀)/T.
pub(super) fn r_next(r: f64, used: f64, capacity: f64, beta: f64, t_2: f64) -> f64 {
    r * (beta * t_2 * (1.0 - used / capacity)).exp()
}

/// r between the smallest code and the ceiling; a ceiling below the smallest code gives way.
pub(super) fn clipped(r: f64, ceiling: f64) -> f64 {
    r.min(ceiling).min(fastest()).max(SLOWEST)
}
