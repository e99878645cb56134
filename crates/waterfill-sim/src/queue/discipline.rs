//! Components shared by queue disciplines: buffer limits, verdicts, stored packets, and the [`Scheduler`] trait.

use std::collections::VecDeque;
use std::fmt::Debug;

use rand_pcg::Pcg64;
use waterfill_laws::protocol::Probe;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{BufferSpec, Level};

use crate::packet::{Flags, Packet, Role, SackId};

/// Properties of the link direction for which a queue is built.
#[derive(Clone, Debug)]
pub(crate) struct QueueContext {
    pub(crate) capacity: Rate,
    /// Size of a full packet, in bytes.
    pub(crate) packet_bytes: u16,
    /// The queue's own random stream.
    pub(crate) rng: Pcg64,
}

/// Waiting bytes and packets, without the packet in service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

impl Backlog {
    /// Returns the backlog in the unit of `level`.
    pub(super) const fn in_unit_of(self, level: Level) -> f64 {
        match level {
            Level::Bytes(_) => self.bytes as f64,
            Level::Packets(_) => self.packets as f64,
        }
    }
}

/// Maximum backlog that a link's buffer holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferLimit {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

impl From<BufferSpec> for BufferLimit {
    fn from(spec: BufferSpec) -> Self {
        match spec {
            BufferSpec::Bytes(bytes) => Self { bytes, packets: u64::MAX },
            BufferSpec::Packets(packets) => Self { bytes: u64::MAX, packets },
        }
    }
}

impl BufferLimit {
    /// Returns true if a packet of this size fits on top of a backlog.
    pub(crate) const fn admits(self, backlog: Backlog, bytes: u64) -> bool {
        backlog.bytes + bytes <= self.bytes && backlog.packets < self.packets
    }

    /// Returns true if a backlog is within the limit.
    pub(super) const fn holds(self, backlog: Backlog) -> bool {
        backlog.bytes <= self.bytes && backlog.packets <= self.packets
    }
}

/// State of a link when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Backlog without the arriving packet.
    pub(crate) backlog: Backlog,
    pub(crate) limit: BufferLimit,
    /// Time for which the transmitter has been idle; `None` while it is busy.
    pub(crate) idle: Option<Duration>,
    /// True if the packet is ECN-capable.
    pub(crate) markable: bool,
    /// Input of a switch that drops nothing, by which the packet came.
    pub(crate) input: u32,
}

impl Arrival {
    /// Returns true if the buffer takes the packet. A packet that finds the transmitter idle never waits.
    pub(crate) const fn fits(&self, bytes: u16) -> bool {
        self.idle.is_some() || self.limit.admits(self.backlog, bytes as u64)
    }
}

/// A discipline's decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Mark,
    Drop,
}

/// A packet stored by a scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: Packet,
    /// Time at which the packet was enqueued.
    pub(crate) since: Instant,
}

/// Packets that a scheduler dropped or marked after it had accepted them.
#[derive(Debug, Default)]
pub(crate) struct QueueOutcome {
    /// SACK slot of each dropped packet, until the engine frees it.
    pub(crate) dropped: Vec<SackId>,
    /// Number of drops since the link last counted them.
    pub(crate) drops: u64,
    /// Number of marks since the link last counted them.
    pub(crate) marks: u64,
    /// Inputs and sizes of the packets that have left a lossless queue, until the switch counts them.
    pub(crate) departed: Vec<(u32, u16)>,
}

impl QueueOutcome {
    pub(crate) fn drop(&mut self, waiting: &Waiting) {
        self.dropped.push(waiting.packet.sack);
        self.drops += 1;
    }

    pub(super) fn mark(&mut self, waiting: &mut Waiting) {
        waiting.packet.flags.set(Flags::MARKED);
        self.marks += 1;
    }
}

/// A discipline that stores the waiting packets itself and chooses the next packet to send.
///
/// A packet that finds the transmitter idle is enqueued and dequeued at the same time.
pub(crate) trait Scheduler: Debug + Send + Sync {
    /// Stores a packet. The packet, or others in its place, may be dropped.
    fn enqueue(&mut self, waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome);
    /// Returns the packet to send when the transmitter becomes free; `None` only if no packet is left.
    fn dequeue(&mut self, now: Instant, outcome: &mut QueueOutcome) -> Option<Waiting>;
    /// Returns the stored bytes and packets.
    fn backlog(&self) -> Backlog;
    /// Returns the heap memory in use, in bytes.
    fn heap_bytes(&self) -> usize;

    /// Adds the bytes of the stored packets to the sums of their inputs, where the discipline knows them.
    fn add_by_input(&self, _sums: &mut [u64]) {}
    /// Notifies the discipline of an arrival before the link's router laws see the packet.
    fn on_arrival(&mut self, _now: Instant, _packet: &Packet) {}
    /// Notifies the discipline of a new capacity of its link.
    fn notify_capacity(&mut self, _capacity: Rate) {}
    /// Notifies the discipline of the control interval of one of the link's router laws.
    fn notify_interval(&mut self, _interval: Duration) {}
    /// Returns true if router laws see this packet. They do not see a class with a separate queue.
    fn is_visible(&self, _packet: &Packet) -> bool {
        true
    }
    /// Returns the share of the link that its router laws control; `None` for the whole link.
    fn share(&self) -> Option<LinkShare> {
        None
    }
    /// Returns the names of the columns that the discipline adds to its link's time series.
    fn columns(&self) -> &'static [&'static str] {
        &[]
    }
    /// Records a value for each column in [`Scheduler::columns`], at samples only.
    fn observe(&self, _probe: &mut dyn Probe) {}
}

/// Share of a link that its router laws control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkShare {
    pub(crate) capacity: Rate,
    /// Backlog of the packets that the router laws control, in bytes.
    pub(crate) bytes: u64,
}

/// First-in-first-out queue of waiting packets.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    pub(super) packets: VecDeque<Waiting>,
    pub(super) bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.bytes);
        self.packets.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.remove(0)
    }

    pub(super) fn pop_last(&mut self) -> Option<Waiting> {
        self.remove(self.packets.len().checked_sub(1)?)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Waiting> {
        let waiting = self.packets.remove(index)?;
        self.bytes -= u64::from(waiting.packet.bytes);
        Some(waiting)
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.packets.len() as u64 }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Waiting>()
    }
}

/// Returns an identifier of a packet's flow, like addresses and ports on a real network.
///
/// Data and acknowledgements of a connection are two flows. So are two connections that use the same slot one after the
/// other.
pub(super) fn flow_id(packet: &Packet) -> u64 {
    let direction: u64 = match packet.role {
        Role::Syn | Role::Open | Role::Data | Role::First | Role::Early | Role::Datagram => 0,
        Role::SynAck | Role::Ack | Role::AckFrame => 1,
        Role::Traffic => 2,
        // The two directions of a connection, by the addressee.
        Role::Endpoint => 1 - u64::from(packet.to % 2),
    };
    u64::from(packet.flow) | u64::from(packet.incarnation) << 32 | direction << 48
}

/// Returns an identifier of a flow's source and destination address. Connections that use the same slot one after the
/// other are between the same two hosts.
pub(super) const fn address_pair(flow_id: u64) -> u64 {
    flow_id & !(0xffff << 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::full_packet;

    #[test]
    fn flow_ids_separate_directions_traffic_and_successive_connections() {
        let data = full_packet(7, Instant::ZERO);
        let ack = Packet { role: Role::Ack, ..data };
        let traffic = Packet { role: Role::Traffic, ..data };
        let next = Packet { incarnation: 1, ..data };
        let other = Packet { flow: 8, ..data };
        let mut flows = [data, ack, traffic, next, other].map(|p| flow_id(&p)).to_vec();
        flows.sort_unstable();
        flows.dedup();
        assert_eq!(flows.len(), 5);
        assert_eq!(flow_id(&data), flow_id(&Packet { role: Role::Syn, number: 3, ..data }));
        let mut pairs = [data, ack, traffic, next, other].map(|p| address_pair(flow_id(&p))).to_vec();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 4);
        assert_eq!(address_pair(flow_id(&data)), address_pair(flow_id(&next)));
    }
}
