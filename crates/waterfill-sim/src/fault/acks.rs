//! Thinning of acknowledgements: of those that a wire releases together, only some of each flow are delivered.
//!
//! A later acknowledgement says what an earlier one says, so the last one of a release always arrives. Acknowledgements
//! that report a gap or a mark are delivered: duplicates, and those with selective blocks or ECE (RFC 3449 §5.2.1). QUIC's
//! are encrypted and delivered too, and so are those with telemetry.

use waterfill_laws::units::Instant;
use waterfill_network::fault::{Effect, FaultSpec};

use crate::packet::{Flags, Role, SackId, expects};

/// Thinning of a link's acknowledgements.
#[derive(Debug)]
pub(crate) struct Thinning {
    /// Number of successive acknowledgements of a flow of which only the last is delivered.
    of: u32,
    /// Number of packets that the wire has accepted.
    accepted: u64,
    /// Time of the current release.
    release: Instant,
    /// Flows with an acknowledgement in the current release, in order of their numbers.
    newest: Vec<Newest>,
}

/// Newest acknowledgement of a flow in the current release.
#[derive(Clone, Copy, Debug)]
struct Newest {
    flow: u32,
    /// Number of the packet among those that the wire has accepted.
    number: u64,
    /// Number of successive acknowledgements for which it stands.
    stands_for: u32,
    /// Next packet that the acknowledgement expects.
    expects: u64,
}

/// A packet of which the wire knows when it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnWire {
    pub(crate) flow: u32,
    pub(crate) number: u64,
    pub(crate) role: Role,
    pub(crate) flags: Flags,
    pub(crate) sack: SackId,
    pub(crate) arrives: Instant,
}

impl OnWire {
    /// Returns true for an acknowledgement that a later one may replace.
    pub(crate) fn is_replaceable(&self) -> bool {
        let reports = self.sack != SackId::NONE || self.flags.has(Flags::REPORTS_MARK);
        self.role == Role::Ack && !reports && !self.flags.has(Flags::LOST)
    }
}

impl Thinning {
    /// Returns the thinning of a link with these faults; `None` if it delivers all acknowledgements.
    pub(super) fn new(faults: &[FaultSpec]) -> Option<Self> {
        faults.iter().find_map(|fault| match fault.effect {
            Effect::Acks { thinning, .. } if thinning > 1 => {
                Some(Self { of: thinning, accepted: 0, release: Instant::ZERO, newest: Vec::new() })
            }
            _ => None,
        })
    }

    /// Accepts a packet. Returns how many packets ago the wire accepted the acknowledgement that this one replaces.
    pub(crate) fn accept(&mut self, packet: &OnWire) -> Option<usize> {
        self.accepted += 1;
        if !packet.is_replaceable() {
            return None;
        }
        if self.release != packet.arrives {
            self.release = packet.arrives;
            self.newest.clear();
        }
        let newest =
            Newest { flow: packet.flow, number: self.accepted, stands_for: 1, expects: expects(packet.number) };
        match self.newest.binary_search_by_key(&packet.flow, |known| known.flow) {
            Err(place) => {
                self.newest.insert(place, newest);
                None
            }
            Ok(place) => {
                let before = std::mem::replace(&mut self.newest[place], newest);
                if before.stands_for >= self.of || newest.expects <= before.expects {
                    return None;
                }
                self.newest[place].stands_for = before.stands_for + 1;
                Some((self.accepted - before.number) as usize)
            }
        }
    }

    /// Forgets all acknowledgements that wait, because the wire has dropped packets.
    pub(crate) fn forget(&mut self) {
        self.newest.clear();
    }
}
