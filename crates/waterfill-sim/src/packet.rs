//! Packets, stored by value in the links' rings, and selective acknowledgements, stored in an arena.

use waterfill_laws::protocol::PacketKind;
use waterfill_laws::registry::{AnyEcho, AnyHeader};
use waterfill_laws::telemetry::{Hop, Stack};
use waterfill_laws::units::Instant;

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Packet that opens a connection.
    Syn,
    /// Packet that opens a connection of a traffic source, whose receiver is prepared when it arrives. Its fields are
    /// those of an [`Opening`].
    Open,
    /// Packet that answers a SYN, or a packet of the first flight of a flow without a handshake.
    SynAck,
    /// Packet that carries data.
    Data,
    /// First data packet of a flow without a handshake, which asks routers for a start rate as a SYN does. If its flow is
    /// a traffic source's, its fields are those of an [`Opening`]; otherwise `echoed` is zero.
    First,
    /// Data packet of a traffic source's flow without a handshake, sent before any answer. Its fields are those of an
    /// [`Opening`].
    Early,
    /// Packet that acknowledges data.
    Ack,
    /// Packet of a traffic source.
    Traffic,
    /// QUIC packet that carries data.
    Datagram,
    /// QUIC packet that acknowledges data.
    AckFrame,
    /// Datagram of an endpoint, whose payload is in the slot `sack`.
    Endpoint,
}

impl Role {
    /// Returns true for a packet that carries data of the simulator's own hosts.
    pub(crate) const fn has_data(self) -> bool {
        matches!(self, Self::Data | Self::First | Self::Early | Self::Datagram)
    }

    /// Returns true for a packet that acknowledges data and carries none.
    pub(crate) const fn acknowledges(self) -> bool {
        matches!(self, Self::Ack | Self::AckFrame)
    }

    /// Returns the kind of packet that a law sees.
    pub(crate) const fn kind(self) -> PacketKind {
        match self {
            Self::Syn | Self::Open | Self::First => PacketKind::Syn,
            Self::Data | Self::Early | Self::Datagram | Self::Endpoint => PacketKind::Data,
            Self::SynAck | Self::Ack | Self::AckFrame => PacketKind::Ack,
            Self::Traffic => PacketKind::Other,
        }
    }
}

/// Header or echo of a protocol in a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cargo {
    /// Header on the forward path.
    Header(AnyHeader),
    /// Echo on the reverse path.
    Echo(AnyEcho),
}

impl Cargo {
    /// Returns true unless it is the header of a protocol without fields in packets.
    pub(crate) fn has_fields(&self) -> bool {
        *self != Self::Header(AnyHeader::None)
    }

    /// Returns the cargo of a packet whose protocol has no header or echo.
    #[inline]
    pub(crate) const fn empty(role: Role) -> &'static Self {
        match role {
            Role::SynAck | Role::Ack | Role::AckFrame => &Self::Echo(AnyEcho::None),
            _ => &Self::Header(AnyHeader::None),
        }
    }
}

/// Properties of a packet, one bit each.
///
/// Bits 4 to 6 have one meaning in data and another in acknowledgements: nine bits, or a second byte, would make a run 2 to
/// 4 % slower, because each hop copies a packet field by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// Flag of a packet that is lost on its current wire.
    pub(crate) const LOST: Self = Self(1);
    /// Flag of a packet that arrives late at the end of its current wire, so that others overtake it.
    pub(crate) const LATE: Self = Self(1 << 1);
    /// Flag of a packet that arrives twice at the end of its current wire.
    pub(crate) const TWICE: Self = Self(1 << 2);
    /// Flag of an ECN-capable packet (RFC 3168's ECT), never of an acknowledgement.
    pub(crate) const MARKABLE: Self = Self(1 << 3);
    /// Flag of an ECN-capable packet that a router has marked (CE).
    pub(crate) const MARKED: Self = Self(1 << 4);
    /// Flag of an ECN-capable packet whose field is ECT(1) until it is marked, which stands for L4S (RFC 9331).
    const ECT1: Self = Self(1 << 5);
    /// The ECN field ECT(1).
    pub(crate) const L4S: Self = Self(Self::MARKABLE.0 | Self::ECT1.0);
    /// Flag of data that reports a reduction of the sender's window (CWR).
    pub(crate) const REDUCED: Self = Self(1 << 6);
    /// Flag of a QUIC packet that asks for an acknowledgement at once (IMMEDIATE_ACK).
    pub(crate) const IMMEDIATE_ACK: Self = Self(1 << 6);
    /// Flag of an acknowledgement that reports a mark (ECE), unless it has an ACE field.
    pub(crate) const REPORTS_MARK: Self = Self(1 << 4);
    /// Position of an acknowledgement's ACE field, the low three bits of AccECN's counter of marked packets (RFC 9768).
    const ACE_AT: u32 = 4;
    /// Flag of a packet that arrives with other contents at the end of its current wire.
    pub(crate) const ALTERED: Self = Self(1 << 7);
    /// Flags of the faults of the current wire.
    pub(crate) const OF_A_WIRE: Self = Self(0b1000_0111);

    /// Returns true if any of these flags is set.
    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) const fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    pub(crate) const fn clear(&mut self, flag: Self) {
        self.0 &= !flag.0;
    }

    /// Returns an acknowledgement's ACE field.
    pub(crate) const fn ace(self) -> u8 {
        (self.0 >> Self::ACE_AT) & 7
    }

    /// Returns the flags of an acknowledgement with the low three bits of `count` as its ACE field.
    pub(crate) const fn of_ace(count: u8) -> Self {
        Self((count & 7) << Self::ACE_AT)
    }

    /// Returns true if the packet's ECN field was ECT(1) before it was marked.
    pub(crate) fn is_l4s(self) -> bool {
        self.0 & Self::L4S.0 == Self::L4S.0
    }

    /// Clears the ECN field.
    pub(crate) fn clear_ecn(&mut self) {
        if self.has(Self::MARKABLE) {
            self.0 &= !(Self::L4S.0 | Self::MARKED.0);
        }
    }

    /// Clears the flags of the current wire's faults, because the next wire draws its own.
    pub(crate) const fn leave_wire(&mut self) {
        self.0 &= !Self::OF_A_WIRE.0;
    }

    /// Returns the flags with `flag` added if `on` is true.
    pub(crate) const fn with(self, flag: Self, on: bool) -> Self {
        if on { Self(self.0 | flag.0) } else { self }
    }
}

/// A packet in transit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Number of the packet's flow or traffic source, from which queues tell flows apart.
    pub(crate) flow: u32,
    /// Index of the addressee among the senders, receivers or traffic sources of its part.
    pub(crate) to: u32,
    /// Place of the next entry of the packet's path in the list of all paths: of the link that it crosses or waits for.
    pub(crate) place: u32,
    /// Size on the wire, in bytes.
    pub(crate) bytes: u16,
    /// Number of the packet's connection among those that have used the flow's slot.
    pub(crate) incarnation: u16,
    pub(crate) role: Role,
    pub(crate) flags: Flags,
    /// Slot of the acknowledgement's selective blocks, and of the packet's telemetry.
    pub(crate) sack: SackId,
    /// Packet number of data, or the next number expected in an acknowledgement with [`marked_bytes`] above it. For QUIC's
    /// data: [`Numbers`](crate::ack_frame::Numbers).
    pub(crate) number: u64,
    /// Sending time of the data, carried back by its acknowledgement (RFC 7323's timestamps).
    pub(crate) sent: Instant,
    /// Sending time of the last packet that this packet's sender received; ZERO if there is none.
    pub(crate) echoed: Instant,
    pub(crate) cargo: Cargo,
}

/// Bits of the next number expected in an acknowledgement's `number`. The other 24 bits are AccECN's counter of marked
/// bytes, as long as in its option.
pub(crate) const EXPECTS_BITS: u32 = 40;

/// Returns the next number expected, from an acknowledgement's `number`.
pub(crate) const fn expects(number: u64) -> u64 {
    number & ((1 << EXPECTS_BITS) - 1)
}

/// `[rfc9768:§3.2.3]` Returns the number of marked payload bytes, modulo 2²⁴ (r.ceb), from an acknowledgement's `number`.
/// It is zero without the AccECN option.
pub(crate) const fn marked_bytes(number: u64) -> u32 {
    (number >> EXPECTS_BITS) as u32
}

/// What the first packet of a traffic source's flow tells the part of its receiver, which may be another thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Number of the first slot of the flow's route. The packet's `to` holds it.
    pub(crate) route: u32,
    /// Index of the sender among those of its part, and of the flow among those of its source. Both are in the packet's
    /// `number`.
    pub(crate) sender: u32,
    pub(crate) index: u32,
    /// Number of packets that the sender will send. The packet's `echoed` holds it, because there is nothing to echo. The
    /// high half of that field is the number of a packet with data, so that its flow has less than 2³² packets.
    pub(crate) packets: u64,
}

impl Opening {
    /// Returns the packet's `number`.
    pub(crate) const fn number(self) -> u64 {
        (self.index as u64) << 32 | self.sender as u64
    }

    /// Returns the packet's `echoed`.
    pub(crate) const fn echoed(self) -> Instant {
        Instant::from_ps(self.packets)
    }

    /// Returns the `echoed` of the data packet with this number.
    pub(crate) const fn echoed_with(self, number: u64) -> Instant {
        let packets = if self.packets < LOW_HALF { self.packets } else { LOW_HALF };
        Instant::from_ps(number << 32 | packets)
    }

    /// Reads the fields of a packet.
    pub(crate) const fn decode(packet: &Packet) -> Self {
        let (sender, index) = (packet.number as u32, (packet.number >> 32) as u32);
        let packets = packet.echoed.as_ps();
        let packets = if packet.role.has_data() { packets & LOW_HALF } else { packets };
        Self { route: packet.to, sender, index, packets }
    }

    /// Returns the data packet that stands in these fields, for the receiver with the index `to`.
    pub(crate) const fn data(packet: &Packet, to: u32) -> Packet {
        Packet { to, number: packet.echoed.as_ps() >> 32, echoed: Instant::ZERO, ..*packet }
    }
}

const LOW_HALF: u64 = u32::MAX as u64;

/// End of the block with which the answer to a traffic source's first flight names its receiver. No range of numbers ends
/// there.
const NAMES_RECEIVER: u64 = u64::MAX;

/// Returns the blocks of an answer to a first flight, the last of which names the receiver.
pub(crate) const fn naming(receiver: u32, [first, second, _]: Blocks) -> Blocks {
    [first, second, (receiver as u64, NAMES_RECEIVER)]
}

/// Returns the receiver that an answer to a first flight names, if it does, and its other blocks, if there are some.
pub(crate) fn named(blocks: Option<&Blocks>) -> (Option<u32>, Option<Blocks>) {
    match blocks {
        Some(&[first, second, (receiver, NAMES_RECEIVER)]) => {
            (Some(receiver as u32), (first != (0, 0)).then_some([first, second, (0, 0)]))
        }
        others => (None, others.copied()),
    }
}

/// Slot in [`Sacks`]. Most acknowledgements use no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SackId(u32);

impl SackId {
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Up to three blocks of received packet numbers, the limit with timestamps (RFC 2018).
pub(crate) type Blocks = [(u64, u64); 3];

/// Arena of selective acknowledgements and of stacks of telemetry. Slots are used only while packets are missing, or by
/// packets of laws with telemetry.
#[derive(Debug, Default)]
pub(crate) struct Sacks {
    blocks: Vec<Blocks>,
    free: Vec<u32>,
    /// Payloads of endpoints' datagrams, by slot; empty in a run without endpoints.
    payloads: Vec<Vec<u8>>,
    /// Telemetry, by slot; empty in a run without laws that use it.
    stacks: Vec<Stack>,
}

impl Sacks {
    /// Appends a record to the telemetry of a slot. [`SackId::NONE`] gets a slot without blocks.
    pub(crate) fn push_hop(&mut self, id: SackId, hop: Hop) -> SackId {
        let id = if id == SackId::NONE { self.store(Blocks::default()) } else { id };
        self.stack_mut(id).push(hop);
        id
    }

    /// Returns the telemetry of a slot, which may be empty.
    fn stack_mut(&mut self, id: SackId) -> &mut Stack {
        let slot = id.0 as usize;
        if self.stacks.len() <= slot {
            self.stacks.resize_with(slot + 1, Stack::default);
        }
        &mut self.stacks[slot]
    }

    /// Returns the telemetry of a slot, if it has any.
    pub(crate) fn stack(&self, id: SackId) -> Option<&Stack> {
        if id == SackId::NONE {
            return None;
        }
        self.stacks.get(id.0 as usize).filter(|stack| !stack.hops().is_empty())
    }

    /// Stores a copy of a stack in the slot `id`, or in a new slot without blocks if `id` is [`SackId::NONE`].
    pub(crate) fn store_stack(&mut self, id: SackId, stack: Stack) -> SackId {
        let id = if id == SackId::NONE { self.store(Blocks::default()) } else { id };
        *self.stack_mut(id) = stack;
        id
    }

    /// Moves the telemetry of the slot `from` to the slot of its acknowledgement, which is `to`, and frees `from`.
    pub(crate) fn echo_stack(&mut self, from: SackId, to: SackId) -> SackId {
        if to == SackId::NONE {
            return from;
        }
        if let Some(stack) = self.stack(from).copied() {
            self.store_stack(to, stack);
        }
        self.take(from);
        to
    }

    pub(crate) fn store(&mut self, blocks: Blocks) -> SackId {
        if let Some(slot) = self.free.pop() {
            self.blocks[slot as usize] = blocks;
            SackId(slot)
        } else {
            self.blocks.push(blocks);
            SackId((self.blocks.len() - 1) as u32)
        }
    }

    /// Stores the payload of an endpoint's datagram.
    #[cold]
    pub(crate) fn store_payload(&mut self, payload: &[u8]) -> SackId {
        let id = self.store(Blocks::default());
        let slot = id.0 as usize;
        if self.payloads.len() <= slot {
            self.payloads.resize_with(slot + 1, Vec::new);
        }
        // What a dropped datagram has left there is replaced.
        self.payloads[slot].clear();
        self.payloads[slot].extend_from_slice(payload);
        id
    }

    /// Removes and returns the payload of a slot, and frees the slot.
    #[cold]
    pub(crate) fn take_payload(&mut self, id: SackId) -> Vec<u8> {
        self.take(id);
        self.payloads.get_mut(id.0 as usize).map(std::mem::take).unwrap_or_default()
    }

    /// Removes and returns the blocks of a slot, and frees the slot; `None` for [`SackId::NONE`].
    pub(crate) fn take(&mut self, id: SackId) -> Option<Blocks> {
        (id != SackId::NONE).then(|| {
            self.free.push(id.0);
            if let Some(stack) = self.stacks.get_mut(id.0 as usize) {
                stack.clear();
            }
            self.blocks[id.0 as usize]
        })
    }

    /// Returns the blocks of a slot; `None` for [`SackId::NONE`].
    pub(crate) fn get(&self, id: SackId) -> Option<&Blocks> {
        (id != SackId::NONE).then(|| &self.blocks[id.0 as usize])
    }

    /// Copies the blocks of a slot to another slot, for the copy of a packet.
    pub(crate) fn copy(&mut self, id: SackId) -> SackId {
        match self.payloads.get(id.0 as usize) {
            _ if id == SackId::NONE => id,
            Some(payload) if !payload.is_empty() => {
                let payload = payload.clone();
                self.store_payload(&payload)
            }
            _ => {
                let stack = self.stack(id).copied();
                let copy = self.store(self.blocks[id.0 as usize]);
                stack.map_or(copy, |stack| self.store_stack(copy, stack))
            }
        }
    }

    /// Returns the number of slots in use.
    pub(crate) fn in_use(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A duplicate has its own telemetry, a reused slot has none, and an acknowledgement has it next to its blocks.
    #[test]
    fn telemetry_is_copied_echoed_and_cleared() {
        let hop = |sent| Hop { sent, ..Hop::default() };
        let count = |sacks: &Sacks, id| sacks.stack(id).map_or(0, |stack| stack.hops().len());
        let mut sacks = Sacks::default();
        let data = sacks.push_hop(SackId::NONE, hop(1));
        let copy = sacks.copy(data);
        assert_eq!(sacks.push_hop(copy, hop(2)), copy);
        assert_eq!((count(&sacks, data), count(&sacks, copy)), (1, 2));
        let ack = sacks.store([(3, 4), (0, 0), (0, 0)]);
        assert_eq!(sacks.echo_stack(copy, ack), ack);
        assert_eq!((count(&sacks, ack), sacks.take(ack)), (2, Some([(3, 4), (0, 0), (0, 0)])));
        assert_eq!(sacks.echo_stack(data, SackId::NONE), data);
        assert_eq!(sacks.take(data), Some(Blocks::default()));
        let reused = sacks.store([(5, 6), (0, 0), (0, 0)]);
        assert_eq!((count(&sacks, reused), sacks.take(reused).is_some(), sacks.in_use()), (0, true, 0));
    }

    /// A duplicate has its own payload, and a slot that a dropped datagram has left holds nothing of it.
    #[test]
    fn payloads_are_copied_and_replaced() {
        let mut sacks = Sacks::default();
        let first = sacks.store_payload(&[1, 2, 3]);
        let second = sacks.copy(first);
        assert_eq!((sacks.take_payload(first), sacks.take_payload(second)), (vec![1, 2, 3], vec![1, 2, 3]));
        let dropped = sacks.store_payload(&[4, 5]);
        assert!(sacks.take(dropped).is_some());
        let next = sacks.store_payload(&[6]);
        assert_eq!((sacks.take_payload(next), sacks.in_use()), (vec![6], 0));
    }
}
