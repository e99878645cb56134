//! Router law of AECP.

use crate::carriage::Carriage;
use crate::math;
use crate::protocol::{LinkView, PacketKind, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Ceiling, First, Params, Rounding};
use super::{Aecp, Factor, Header, SLOWEST, fastest, place_of};

/// Packet size that is assumed until the router has seen data: a full Ethernet frame.
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
    /// Factor r, a real number in packets/s.
    pub(super) r: f64,
    /// Position of r on the factor's logarithmic scale, in codes, as written into packets.
    place: f64,
    carriage: Carriage,
    /// Remainder, in codes, that rounding has left out of the codes written so far.
    residue: f64,
    /// Mean size of a data packet.
    packet: Volume,
    /// Volume that arrived in the current T₂.
    arrived: Volume,
    /// Volume and number of AECP's data packets in the current T₂.
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

    /// Returns the code for the next packet.
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

    /// Counts the packet, and lowers its factor to the link's if that is smaller (§5.3, between sampling points).
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

    /// Updates r (§5.3, at a sampling point).
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

/// Returns a rate in packets/s for a packet size.
pub(super) fn packets_per_second(rate: Rate, packet: Volume) -> f64 {
    rate.as_bps() / packet.as_bits()
}

/// `[aecp-2010:eq4]` Returns the smaller of two factors.
pub(super) fn smaller(factor: Factor, own: Factor) -> Factor {
    factor.min(own)
}

/// `[aecp-2010:eq2]` Returns (q − q₀)/T, the load that corresponds to the queue's excess.
pub(super) fn queue_as_load(queue: f64, q_0: f64, t: f64) -> f64 {
    (queue - q_0) / t
}

/// `[aecp-2010:eq2]` Returns the equilibrium load for a queue length.
pub(super) fn resting_load(queue: f64, capacity: f64, q_0: f64, t: f64) -> f64 {
    capacity - queue_as_load(queue, q_0, t)
}

/// `[aecp-2010:eq49]` Returns the next r, r·exp(βT₂·(1 − used/C)), where used is Σx + (q − q₀)/T.
pub(super) fn r_next(r: f64, used: f64, capacity: f64, beta: f64, t_2: f64) -> f64 {
    r * math::exp(beta * t_2 * (1.0 - used / capacity))
}

/// Returns r limited to the ceiling, but at least the rate of the smallest code.
pub(super) fn clipped(r: f64, ceiling: f64) -> f64 {
    r.min(ceiling).min(fastest()).max(SLOWEST)
}
