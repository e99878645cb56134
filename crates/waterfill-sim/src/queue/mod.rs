//! Queue disciplines, which decide the packets that a link drops, marks or sends next.
//!
//! A discipline that decides at arrival and then serves first in, first out is an [`Admission`]: a packet's departure
//! time is known once it is admitted. A discipline that decides at departure, or removes packets from the middle, is a
//! [`Scheduler`]: it stores the waiting packets, and the link asks it each time the transmitter becomes free.

use waterfill_laws::protocol::Probe;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{ControllerSpec, Level, QueueSpec};

use crate::packet::Packet;

mod choke;
mod codel;
mod cohabit;
mod discipline;
mod dualpi2;
mod flow_queues;
mod lossless;
#[cfg(test)]
mod peer;
mod pie;
mod ramp;
mod red;

pub use cohabit::ModuleBench;
pub(crate) use discipline::{
    Arrival, Backlog, BufferLimit, LinkShare, QueueContext, QueueOutcome, Scheduler, Verdict, Waiting,
};

use choke::Choke;
use codel::{Codel, CodelQueue};
use cohabit::{Cohabit, PerClassQueue};
use dualpi2::DualPi2;
use flow_queues::FlowQueues;
use lossless::Lossless;
use pie::{Pie, PieQueue};
use ramp::Ramp;
use red::Red;

/// Queue of a link direction.
#[derive(Debug)]
pub(crate) enum Queue {
    /// First-in-first-out queue, stored in the link's own ring.
    Fifo(Admission),
    /// Scheduler that stores the waiting packets itself.
    Scheduler(Box<dyn Scheduler>),
}

/// Decision on an arriving packet before the router laws see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screening {
    /// The router laws see the packet.
    Visible,
    /// The router laws see the packet, and it is marked if the buffer takes it.
    Mark,
    /// The packet passes without being seen by the router laws.
    Hidden,
    /// The packet is dropped unseen.
    Drop,
    /// The packet is dropped after the router laws have seen it.
    DropVisible,
}

impl Queue {
    pub(crate) fn new(spec: &QueueSpec, context: QueueContext) -> Self {
        match spec {
            QueueSpec::Droptail { mark_at: None, .. } => Self::Fifo(Admission::DropTail),
            QueueSpec::Droptail { mark_at: Some(level), ramp: None } => Self::Fifo(Admission::MarkAbove(*level)),
            QueueSpec::Droptail { mark_at: Some(level), ramp: Some(ramp) } => {
                Self::Fifo(Admission::MarkRamp(Box::new(Ramp::new(*level, ramp, context.rng))))
            }
            QueueSpec::Red(spec) => Self::Fifo(Admission::Red(Box::new(Red::new(spec, context)))),
            QueueSpec::Codel(spec) => {
                Self::Scheduler(Box::new(CodelQueue::new(Codel::new(spec, context.packet_bytes))))
            }
            QueueSpec::FqCodel(spec) => {
                let law = Codel::new(&spec.codel, context.packet_bytes);
                Self::Scheduler(Box::new(FlowQueues::new(&law, spec.quantum_bytes, spec.flows, context)))
            }
            QueueSpec::Pie(spec) => Self::Scheduler(Box::new(PieQueue::new(spec, context))),
            QueueSpec::FqPie(spec) => {
                let law = Pie::new(&spec.pie, context.packet_bytes);
                Self::Scheduler(Box::new(FlowQueues::new(&law, spec.quantum_bytes, spec.flows, context)))
            }
            QueueSpec::DualPi2(spec) => Self::Scheduler(Box::new(DualPi2::new(spec))),
            QueueSpec::Choke(spec) => Self::Scheduler(Box::new(Choke::new(spec, context))),
            QueueSpec::Cohabit(spec) if spec.controller == ControllerSpec::Separate => {
                Self::Scheduler(Box::new(PerClassQueue::new(spec, context)))
            }
            QueueSpec::Cohabit(spec) => Self::Fifo(Admission::Cohabit(Box::new(Cohabit::new(spec, context)))),
        }
    }

    /// Replaces a drop-tail queue by one that stores its packets until they leave, and drops none.
    pub(crate) fn make_lossless(&mut self) {
        if let Self::Fifo(marking) = std::mem::replace(self, Self::Fifo(Admission::DropTail)) {
            *self = Self::Scheduler(Box::new(Lossless::new(marking)));
        }
    }

    /// Returns true if the discipline only drops packets that exceed the buffer.
    pub(crate) const fn is_drop_tail(&self) -> bool {
        matches!(self, Self::Fifo(Admission::DropTail))
    }

    /// Returns true if [`Queue::screen`] must be called for every arrival.
    pub(crate) const fn screens_arrivals(&self) -> bool {
        matches!(self, Self::Fifo(Admission::Cohabit(_)) | Self::Scheduler(_))
    }

    /// Decides on a packet before the router laws see it, so that they do not yield to packets dropped here.
    pub(crate) fn screen(&mut self, now: Instant, packet: &Packet) -> Screening {
        match self {
            Self::Fifo(Admission::Cohabit(module)) => match module.on_arrival(now, packet) {
                Verdict::Accept => Screening::Visible,
                Verdict::Mark => Screening::Mark,
                Verdict::Drop if module.shows_drops() => Screening::DropVisible,
                Verdict::Drop => Screening::Drop,
            },
            Self::Fifo(_) => Screening::Visible,
            Self::Scheduler(scheduler) => {
                scheduler.on_arrival(now, packet);
                if scheduler.is_visible(packet) { Screening::Visible } else { Screening::Hidden }
            }
        }
    }

    /// Returns true if the router laws see this packet.
    #[inline]
    pub(crate) fn is_visible(&self, packet: &Packet) -> bool {
        match self {
            Self::Fifo(_) => true,
            Self::Scheduler(scheduler) => scheduler.is_visible(packet),
        }
    }

    /// Notifies a FIFO's discipline of a packet that has to wait in the link's ring.
    #[inline]
    pub(crate) fn on_enqueue(&mut self, packet: &Packet) {
        if let Self::Fifo(Admission::Cohabit(module)) = self {
            module.on_enqueue(packet);
        }
    }

    /// Notifies a FIFO's discipline of a waiting packet whose transmission starts.
    #[inline]
    pub(crate) fn on_dequeue(&mut self, packet: &Packet) {
        if let Self::Fifo(Admission::Cohabit(module)) = self {
            module.on_dequeue(packet);
        }
    }

    /// Returns the part of a FIFO's backlog that router laws see, in bytes.
    #[inline]
    pub(crate) const fn visible_bytes(&self, backlog: Backlog) -> u64 {
        match self {
            Self::Fifo(Admission::Cohabit(module)) => module.visible_bytes(backlog.bytes),
            _ => backlog.bytes,
        }
    }

    /// Returns the number of packets that a scheduler stores; zero for a FIFO, whose packets are in the link's ring.
    pub(crate) fn stored_packets(&self) -> u64 {
        match self {
            Self::Fifo(_) => 0,
            Self::Scheduler(scheduler) => scheduler.backlog().packets,
        }
    }

    /// Notifies the discipline of the share of the capacity that the link's router laws target.
    pub(crate) fn notify_target(&mut self, target: f64) {
        // Schedulers divide the whole capacity, whatever the laws aim at in their part of it.
        if let Self::Fifo(Admission::Cohabit(module)) = self {
            module.notify_target(target);
        }
    }

    /// Notifies the discipline of the capacity of its link.
    pub(crate) fn notify_capacity(&mut self, capacity: Rate) {
        match self {
            Self::Fifo(Admission::DropTail | Admission::MarkAbove(_) | Admission::MarkRamp(_)) => {}
            Self::Fifo(Admission::Red(red)) => red.notify_capacity(capacity),
            Self::Fifo(Admission::Cohabit(module)) => module.notify_capacity(capacity),
            Self::Scheduler(scheduler) => scheduler.notify_capacity(capacity),
        }
    }

    /// Notifies the discipline of the control interval of one of the link's router laws.
    pub(crate) fn notify_interval(&mut self, interval: Duration) {
        match self {
            Self::Fifo(Admission::Cohabit(module)) => module.notify_interval(interval),
            Self::Fifo(_) => {}
            Self::Scheduler(scheduler) => scheduler.notify_interval(interval),
        }
    }

    /// Returns the names of the columns that the discipline adds to its link's time series.
    pub(crate) fn columns(&self) -> &'static [&'static str] {
        match self {
            Self::Fifo(Admission::Cohabit(_)) => Cohabit::columns(),
            Self::Fifo(_) => &[],
            Self::Scheduler(scheduler) => scheduler.columns(),
        }
    }

    /// Records a value for each column in [`Queue::columns`].
    pub(crate) fn observe(&self, probe: &mut dyn Probe) {
        match self {
            Self::Fifo(Admission::Cohabit(module)) => module.observe(probe),
            Self::Fifo(_) => {}
            Self::Scheduler(scheduler) => scheduler.observe(probe),
        }
    }

    /// Returns the heap memory in use, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Fifo(Admission::Cohabit(module)) => module.heap_bytes(),
            Self::Fifo(_) => 0,
            Self::Scheduler(scheduler) => scheduler.heap_bytes(),
        }
    }
}

/// Disciplines of first-in-first-out queues, which decide when a packet arrives.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Drops packets that do not fit into the buffer.
    DropTail,
    /// Marks an ECN-capable packet that finds a backlog above this level (RFC 8257 §3.1).
    MarkAbove(Level),
    /// Marks with a probability that grows with the backlog.
    MarkRamp(Box<Ramp>),
    Red(Box<Red>),
    /// Protects explicit flows from TCP. Decisions are made in [`Queue::screen`].
    Cohabit(Box<Cohabit>),
}

impl Admission {
    /// Decides on a packet after the router laws have seen it, before the buffer limit is checked.
    pub(crate) fn on_arrival(&mut self, arrival: &Arrival) -> Verdict {
        match self {
            Self::MarkAbove(level) if arrival.markable && arrival.backlog.in_unit_of(*level) > level.amount() => {
                Verdict::Mark
            }
            Self::DropTail | Self::MarkAbove(_) | Self::Cohabit(_) => Verdict::Accept,
            Self::Red(red) => red.on_arrival(arrival),
            Self::MarkRamp(ramp) => ramp.on_arrival(arrival),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn marks_only_ecn_capable_packets_and_only_above_the_level() {
        let found = |packets, markable| Arrival {
            markable,
            ..testing::arrival(Backlog { bytes: packets * 1500, packets }, u64::MAX)
        };
        for level in [Level::Packets(65.0), Level::Bytes(65.0 * 1500.0)] {
            let mut admission = Admission::MarkAbove(level);
            assert_eq!(admission.on_arrival(&found(65, true)), Verdict::Accept);
            assert_eq!(admission.on_arrival(&found(66, true)), Verdict::Mark);
            assert_eq!(admission.on_arrival(&found(66, false)), Verdict::Accept, "not ECN-capable");
        }
    }
}
