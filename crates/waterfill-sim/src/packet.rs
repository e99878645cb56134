//! What travels: packets by value in the queues' rings, selective acknowledgements in an arena.

use waterfill_laws::protocol::PacketKind;
use waterfill_laws::registry::{AnyEcho, AnyHeader};
use waterfill_laws::units::Instant;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opens a connection.
    Syn,
    /// Answers a SYN.
    SynAck,
    /// Carries data.
    Data,
    /// Acknowledges data.
    Ack,
    /// Belongs to a traffic source.
    Traffic,
}

impl Role {
    /// What a law is told.
    pub(crate) const fn kind(self) -> PacketKind {
        match self {
            Self::Syn => PacketKind::Syn,
            Self::Data => PacketKind::Data,
            Self::SynAck | Self::Ack => PacketKind::Ack,
            Self::Traffic => PacketKind::Other,
        }
    }
}

/// A protocol's own part of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cargo {
    /// On the way out.
    Header(AnyHeader),
    /// On the way back.
    Echo(AnyEcho),
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Index of its flow, or of its traffic source.
    pub(crate) flow: u32,
    /// Size on the wire.
    pub(crate) bytes: u32,
    /// Links of its path already crossed.
    pub(crate) hop: u16,
    pub(crate) role: Role,
    /// Lost on the wire it is on.
    pub(crate) lost: bool,
    /// Blocks of an acknowledgement.
    pub(crate) sack: SackId,
    /// Data: its number. Acknowledgement: the next number expected.
    pub(crate) number: u64,
    /// When the data was sent, carried back by its acknowledgement (RFC 7323's timestamps).
    pub(crate) sent: Instant,
    /// When the other side sent the last packet seen by this one's sender; ZERO is none.
    pub(crate) echoed: Instant,
    pub(crate) cargo: Cargo,
}

/// A slot of [`Sacks`]; most acknowledgements need none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SackId(u32);

impl SackId {
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Up to three blocks of received packet numbers (RFC 2018, beside timestamps).
pub(crate) type Blocks = [(u64, u64); 3];

/// The arena of selective acknowledgements: in use only while something is missing.
#[derive(Debug, Default)]
pub(crate) struct Sacks {
    blocks: Vec<Blocks>,
    free: Vec<u32>,
}

impl Sacks {
    pub(crate) fn store(&mut self, blocks: Blocks) -> SackId {
        if let Some(slot) = self.free.pop() {
            self.blocks[slot as usize] = blocks;
            SackId(slot)
        } else {
            self.blocks.push(blocks);
            SackId((self.blocks.len() - 1) as u32)
        }
    }

    /// Takes the blocks out; none for [`SackId::NONE`].
    pub(crate) fn take(&mut self, id: SackId) -> Option<Blocks> {
        (id != SackId::NONE).then(|| {
            self.free.push(id.0);
            self.blocks[id.0 as usize]
        })
    }

    /// Slots in use.
    pub(crate) fn in_use(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}
