//! AccECN at a sender: the number of marked packets from the three bits of each acknowledgement (RFC 9768).
//!
//! The AccECN option, which counts bytes, is not sent. An acknowledgement of eight packets or more leaves open how often the
//! field has wrapped around; it is read in the safe way of Appendix A.2.1.

use waterfill_laws::units::Instant;

use super::Sender;
use crate::packet::{Blocks, Cargo, Packet};
use waterfill_laws::protocol::PacketKind;

/// `[rfc9768:§3.2.1]` Initial value of both ends' counters of marked packets.
pub(crate) const ACE_INITIAL: u8 = 5;
/// Number of values of the ACE field, DIVACE in Appendix A.
const ACE_VALUES: u64 = 8;

/// `[rfc9768:A.2.1]` Returns the number of packets newly reported as marked, from the field before and now and the number
/// of newly acknowledged packets.
const fn newly_marked(before: u8, ace: u8, newly_acked: u64) -> u64 {
    let change = ace.wrapping_sub(before) as u64 % ACE_VALUES;
    if newly_acked < ACE_VALUES { change } else { newly_acked - (newly_acked - change) % ACE_VALUES }
}

/// Sender's view of the receiver's counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkCounter {
    ace: u8,
    /// Time at which the newest acknowledgement was sent.
    newest: Instant,
    /// Marked packets that are not yet known to have arrived, so that no acknowledgement reports more marks than packets.
    pending: u64,
}

impl MarkCounter {
    pub(super) const fn new() -> Self {
        Self { ace: ACE_INITIAL, newest: Instant::ZERO, pending: 0 }
    }

    /// Reads an acknowledgement that was sent at `sent`. Returns true if it reports a new mark, and the number of marked
    /// packets among the newly acknowledged ones.
    fn read(&mut self, sent: Instant, ace: u8, newly_acked: u64) -> (bool, u64) {
        let mut change = 0;
        // An acknowledgement that others have overtaken has an old counter.
        if sent >= self.newest {
            change = newly_marked(self.ace, ace, newly_acked);
            (self.ace, self.newest) = (ace, sent);
        }
        self.pending += change;
        let counted = self.pending.min(newly_acked);
        self.pending -= counted;
        (change > 0, counted)
    }
}

impl Sender {
    /// Handles an acknowledgement that counts marks.
    #[inline(never)] // keeps the path of the other acknowledgements short
    pub(super) fn on_counted_ack(&mut self, now: Instant, packet: &Packet, blocks: Option<&Blocks>) {
        let mut progress = self.recovery.on_ack(packet.number, blocks, &self.ack_times(now, packet.sent));
        let recovering = self.undo_if_spurious(now, &mut progress);
        let Some(marks) = &mut self.marks else { return };
        let (marked, counted) = marks.read(packet.echoed, packet.flags.ace(), progress.newly_arrived);
        if let Cargo::Echo(echo) = &packet.cargo {
            if self.faults.is_none() || !self.ignores(now, PacketKind::Ack) {
                let volumes = [progress.newly_arrived, counted].map(|packets| self.volume(packets));
                self.pass_to_law(now, echo, PacketKind::Ack, volumes, recovering);
            }
        }
        if progress.event.is_some() || marked || self.reduction.is_some() {
            self.react(now, progress, marked);
        }
        self.finish_ack(now, progress.advanced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ps(ms * 1_000_000_000)
    }

    #[test]
    fn rfc9768_a21_by_hand() {
        assert_eq!(newly_marked(5, 5, 1), 0);
        assert_eq!(newly_marked(5, 6, 1), 1);
        assert_eq!(newly_marked(7, 1, 3), 2, "the field wraps around");
        // Ten packets and a change of one: one or nine marks, and nine is the safe reading.
        assert_eq!(newly_marked(5, 6, 10), 9);
        assert_eq!(newly_marked(5, 5, 7), 0);
        assert_eq!(newly_marked(5, 5, 8), 8);
        assert_eq!(newly_marked(5, 4, 15), 15);
    }

    #[test]
    fn overtaken_acknowledgements_do_not_count() {
        let mut marks = MarkCounter::new();
        assert_eq!(marks.read(at(1), 6, 1), (true, 1));
        assert_eq!(
            marks.read(at(3), 0, 1),
            (true, 1),
            "8 is two more than 6, one of them for a packet not yet reported"
        );
        assert_eq!(marks.read(at(2), 7, 1), (false, 1), "sent before, and the pending mark is counted");
        assert_eq!(marks.read(at(4), 0, 1), (false, 0));
    }
}
