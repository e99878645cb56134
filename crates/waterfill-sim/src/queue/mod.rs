//! What waits at a link, and who decides which packet is dropped, marked or sent next.
//!
//! Disciplines that decide when a packet comes, and then serve first in, first out, are an [`Admission`]: a packet's
//! departure is known as soon as it is let in, and the link needs no more than that. Disciplines that decide when a
//! packet leaves, or take packets out of the middle, are a [`Discipline`]: they keep the waiting packets themselves and
//! the link asks them each time its transmitter is free.

use std::collections::VecDeque;
use std::fmt::Debug;

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{ControllerSpec, Level, QueueSpec};

use crate::packet::{Flags, Packet, Role, SackId};

mod choke;
mod codel;
pub(crate) mod cohabit;
mod fq_codel;
mod red;

pub use cohabit::Exercise;

use choke::Choke;
use codel::{Codel, CodelQueue};
use cohabit::{Apart, Cohabit};
use fq_codel::FqCodel;
use red::Red;

/// The queue of a link direction.
#[derive(Debug)]
pub(crate) enum Queue {
    /// First in, first out, in the link's own ring.
    Fifo(Admission),
    /// The discipline keeps what waits.
    Own(Box<dyn Discipline>),
}

/// What a queue is told when it is made.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) capacity: Rate,
    /// A full packet.
    pub(crate) packet_bytes: u16,
    /// The queue's own random stream.
    pub(crate) rng: Pcg64,
}

impl Queue {
    pub(crate) fn new(spec: &QueueSpec, setting: Setting) -> Self {
        match spec {
            QueueSpec::Droptail { mark_at: None } => Self::Fifo(Admission::Open),
            QueueSpec::Droptail { mark_at: Some(level) } => Self::Fifo(Admission::MarkAbove(*level)),
            QueueSpec::Red(spec) => Self::Fifo(Admission::Red(Box::new(Red::new(spec, setting)))),
            QueueSpec::Codel(spec) => Self::Own(Box::new(CodelQueue::new(Codel::new(spec, setting.packet_bytes)))),
            QueueSpec::FqCodel(spec) => Self::Own(Box::new(FqCodel::new(spec, setting))),
            QueueSpec::Choke(spec) => Self::Own(Box::new(Choke::new(spec, setting))),
            QueueSpec::Cohabit(spec) if spec.controller == ControllerSpec::Separate => {
                Self::Own(Box::new(Apart::new(spec, setting)))
            }
            QueueSpec::Cohabit(spec) => Self::Fifo(Admission::Cohabit(Box::new(Cohabit::new(spec, setting)))),
        }
    }
}

/// Bytes and packets that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

impl Backlog {
    /// The length in the unit of `level`.
    const fn in_unit_of(self, level: Level) -> f64 {
        match level {
            Level::Bytes(_) => self.bytes as f64,
            Level::Packets(_) => self.packets as f64,
        }
    }
}

/// Most that may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

impl Room {
    /// Whether a packet of this size may still join.
    pub(crate) const fn has(self, backlog: Backlog, bytes: u64) -> bool {
        backlog.bytes + bytes <= self.bytes && backlog.packets < self.packets
    }

    /// Whether this much may wait.
    const fn holds(self, backlog: Backlog) -> bool {
        backlog.bytes <= self.bytes && backlog.packets <= self.packets
    }
}

/// A packet that comes, and what it finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving {
    /// What waits, this packet excluded.
    pub(crate) backlog: Backlog,
    pub(crate) room: Room,
    /// How long the transmitter has been idle; none if it is not.
    pub(crate) idle: Option<Duration>,
    /// Whether the packet may be marked.
    pub(crate) markable: bool,
}

impl Arriving {
    /// Whether the packet can be let in: a packet for an idle transmitter never waits.
    pub(crate) const fn fits(&self, bytes: u16) -> bool {
        self.idle.is_some() || self.room.has(self.backlog, bytes as u64)
    }
}

/// What is done with a packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Mark,
    Drop,
}

/// Who has a say when a packet comes to a first-in-first-out queue, before its room is looked at.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Nobody.
    Open,
    /// A packet that finds more waiting than this is marked, if it may be (RFC 8257 §3.1).
    MarkAbove(Level),
    Red(Box<Red>),
    /// Explicit flows are protected from TCP; asked by the link before its routers see the packet.
    Cohabit(Box<Cohabit>),
}

impl Admission {
    pub(crate) fn on_arrival(&mut self, arriving: &Arriving) -> Verdict {
        match self {
            Self::MarkAbove(level) if arriving.markable && arriving.backlog.in_unit_of(*level) > level.amount() => {
                Verdict::Mark
            }
            Self::Open | Self::MarkAbove(_) | Self::Cohabit(_) => Verdict::Accept,
            Self::Red(red) => red.on_arrival(arriving),
        }
    }
}

/// A packet that waits in a discipline's own store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: Packet,
    pub(crate) since: Instant,
    /// Sequence number of its coming.
    pub(crate) order: u64,
}

/// What became of packets while a discipline was at work.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    /// Blocks of those that were dropped, one entry each, until the engine takes them.
    pub(crate) dropped: Vec<SackId>,
    /// How many were dropped since the link last took note.
    pub(crate) drops: u64,
    /// How many were marked since then.
    pub(crate) marks: u64,
}

impl Fates {
    fn dropped(&mut self, waiting: &Waiting) {
        self.dropped.push(waiting.packet.sack);
        self.drops += 1;
    }

    fn marked(&mut self, waiting: &mut Waiting) {
        waiting.packet.flags.set(Flags::MARKED);
        self.marks += 1;
    }
}

/// A discipline that keeps the waiting packets.
///
/// A packet that comes while the transmitter is idle is handed in and asked back at once.
pub(crate) trait Discipline: Debug + Send + Sync {
    /// A packet comes. It, or others in its place, may be dropped.
    fn enqueue(&mut self, waiting: Waiting, arriving: &Arriving, fates: &mut Fates);
    /// The transmitter is free: the packet to send. None only if none is left.
    fn dequeue(&mut self, now: Instant, fates: &mut Fates) -> Option<Waiting>;
    /// What waits.
    fn backlog(&self) -> Backlog;
    fn heap_bytes(&self) -> usize;

    /// A packet comes, and the link's laws are about to see it.
    fn comes(&mut self, _now: Instant, _packet: &Packet) {}
    /// Whether they do: a class that has a queue of its own is none of their business.
    fn is_shown(&self, _packet: &Packet) -> bool {
        true
    }
    /// What of the link the laws are shown, if it is not all of it.
    fn part(&self) -> Option<LinkPart> {
        None
    }
    /// What counts flows here.
    fn cohabit(&self) -> Option<&Cohabit> {
        None
    }
}

/// What of a link its laws are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkPart {
    pub(crate) capacity: Rate,
    /// What waits of theirs.
    pub(crate) bytes: u64,
}

/// Packets in the order they came.
#[derive(Debug, Default)]
struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.bytes);
        self.packets.push_back(waiting);
    }

    fn pop(&mut self) -> Option<Waiting> {
        self.remove(0)
    }

    fn pop_last(&mut self) -> Option<Waiting> {
        self.remove(self.packets.len().checked_sub(1)?)
    }

    fn remove(&mut self, place: usize) -> Option<Waiting> {
        let waiting = self.packets.remove(place)?;
        self.bytes -= u64::from(waiting.packet.bytes);
        Some(waiting)
    }

    fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.packets.len() as u64 }
    }

    fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Waiting>()
    }
}

/// What tells flows apart, as addresses and ports do on a real network: data and acknowledgements of a connection
/// are two flows, and so are two connections that have the same place one after the other.
fn flow_of(packet: &Packet) -> u64 {
    let direction: u64 = match packet.role {
        Role::Syn | Role::Data => 0,
        Role::SynAck | Role::Ack => 1,
        Role::Traffic => 2,
    };
    u64::from(packet.flow) | u64::from(packet.incarnation) << 32 | direction << 48
}

#[cfg(test)]
mod testing {
    use super::*;
    use waterfill_laws::registry::AnyHeader;

    use crate::packet::Cargo;

    pub(super) fn setting() -> Setting {
        Setting { capacity: Rate::from_bps(12e6), packet_bytes: 1500, rng: Pcg64::new(1, 1) } // 1 ms a packet
    }

    /// A full packet of a flow that comes at a time.
    pub(super) fn packet(flow: u32, since: Instant) -> Waiting {
        let packet = Packet {
            flow,
            bytes: 1500,
            incarnation: 0,
            hop: 0,
            role: Role::Data,
            flags: Flags::default(),
            sack: SackId::NONE,
            number: 0,
            sent: since,
            echoed: Instant::ZERO,
            cargo: Cargo::Header(AnyHeader::None),
        };
        Waiting { packet, since, order: 0 }
    }

    /// What it finds at a busy link with room for this many packets.
    pub(super) fn finds(backlog: Backlog, packets: u64) -> Arriving {
        Arriving { backlog, room: Room { bytes: u64::MAX, packets }, idle: None, markable: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_begin_above_the_level() {
        let found = |packets, markable| Arriving {
            markable,
            ..testing::finds(Backlog { bytes: packets * 1500, packets }, u64::MAX)
        };
        for level in [Level::Packets(65.0), Level::Bytes(65.0 * 1500.0)] {
            let mut admission = Admission::MarkAbove(level);
            assert_eq!(admission.on_arrival(&found(65, true)), Verdict::Accept);
            assert_eq!(admission.on_arrival(&found(66, true)), Verdict::Mark);
            assert_eq!(admission.on_arrival(&found(66, false)), Verdict::Accept, "passes on unmarked");
        }
    }

    #[test]
    fn flows_are_told_apart() {
        let data = testing::packet(7, Instant::ZERO).packet;
        let ack = Packet { role: Role::Ack, ..data };
        let traffic = Packet { role: Role::Traffic, ..data };
        let next = Packet { incarnation: 1, ..data };
        let other = Packet { flow: 8, ..data };
        let mut flows = [data, ack, traffic, next, other].map(|p| flow_of(&p)).to_vec();
        flows.sort_unstable();
        flows.dedup();
        assert_eq!(flows.len(), 5);
        assert_eq!(flow_of(&data), flow_of(&Packet { role: Role::Syn, number: 3, ..data }));
    }
}
