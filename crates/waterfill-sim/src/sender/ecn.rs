//! AccECN at a sender: the number of marked packets from each acknowledgement (RFC 9768).
//!
//! The ACE field has three bits, so an acknowledgement of eight packets or more leaves open how often it has wrapped around.
//! The AccECN option counts marked bytes, from which follows how many packets they are at least. Without the option the
//! field is read in the safe way of Appendix A.2.1.

use std::num::NonZeroU64;

use waterfill_laws::protocol::{Ecn, PacketKind};
use waterfill_laws::units::Instant;

use super::{Sender, SenderSpec};
use crate::packet::{Blocks, Cargo, EXPECTS_BITS, Packet, expects, marked_bytes};

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

/// Returns the number of packets newly reported as marked, from the change of the ACE field and of the counter of marked
/// bytes: the smallest number that fits both, if no packet has more than `payload` bytes. Exact unless eight packets more
/// were marked than such bytes fill. Appendix A.2.2 has a rule of thumb for senders that do not count packets.
const fn newly_marked_by_bytes(change: u8, bytes: u64, payload: u64) -> u64 {
    let least = bytes.div_ceil(payload);
    least + (change as u64).wrapping_sub(least) % ACE_VALUES
}

/// Sender's view of the receiver's counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkCounter {
    ace: u8,
    bytes: u32,
    /// Maximum payload of a packet, in bytes; `None` without the AccECN option.
    payload: Option<NonZeroU64>,
    /// Time at which the newest acknowledgement was sent.
    newest: Instant,
    /// Marked packets that are not yet known to have arrived, so that no acknowledgement reports more marks than packets.
    pending: u64,
}

impl MarkCounter {
    /// Returns the state of a new sender; `None` if its acknowledgements do not count marks.
    pub(super) fn new(spec: &SenderSpec) -> Option<Self> {
        let payload = NonZeroU64::new(spec.sizes.payload_before(1)).filter(|_| spec.host.ecn == Ecn::Counted);
        spec.host.ecn.counts().then(|| Self::with_payload(payload))
    }

    const fn with_payload(payload: Option<NonZeroU64>) -> Self {
        Self { ace: ACE_INITIAL, bytes: 0, payload, newest: Instant::ZERO, pending: 0 }
    }

    /// Reads the counters of an acknowledgement that was sent at `sent`. Returns true if it reports a new mark, and the
    /// number of marked packets among the newly acknowledged ones.
    fn read(&mut self, sent: Instant, [ace, bytes]: [u32; 2], newly_acked: u64) -> (bool, u64) {
        let ace = ace as u8;
        let mut change = 0;
        // An acknowledgement that others have overtaken has an old counter.
        if sent >= self.newest {
            change = match self.payload {
                None => newly_marked(self.ace, ace, newly_acked),
                Some(payload) => {
                    let newly = bytes.wrapping_sub(self.bytes) & (u32::MAX >> (EXPECTS_BITS - u32::BITS));
                    newly_marked_by_bytes(ace.wrapping_sub(self.ace) % 8, u64::from(newly), payload.get())
                }
            };
            (self.ace, self.bytes, self.newest) = (ace, bytes, sent);
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
        let mut progress = self.recovery.on_ack(expects(packet.number), blocks, &self.ack_times(now, packet.sent));
        let recovering = self.undo_if_spurious(now, &mut progress);
        let Some(marks) = &mut self.marks else { return };
        let counters = [u32::from(packet.flags.ace()), marked_bytes(packet.number)];
        let (marked, counted) = marks.read(packet.echoed, counters, progress.newly_arrived);
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
        let mut marks = MarkCounter::with_payload(None);
        assert_eq!(marks.read(at(1), [6, 0], 1), (true, 1));
        assert_eq!(
            marks.read(at(3), [0, 0], 1),
            (true, 1),
            "8 is two more than 6, one of them for a packet not yet reported"
        );
        assert_eq!(marks.read(at(2), [7, 0], 1), (false, 1), "sent before, and the pending mark is counted");
        assert_eq!(marks.read(at(4), [0, 0], 1), (false, 0));
    }

    /// The option tells no mark from eight, nine from one, and survives the wrap of its counter at 2²⁴ bytes.
    #[test]
    fn rfc9768_3_2_3_bytes_say_how_often_the_field_wrapped() {
        let mut marks = MarkCounter::with_payload(NonZeroU64::new(1000));
        assert_eq!(marks.read(at(1), [5, 0], 10), (false, 0));
        assert_eq!(marks.read(at(2), [6, 9000], 10), (true, 9));
        assert_eq!(marks.read(at(3), [7, 9100], 10), (true, 1), "a small packet");
        assert_eq!(marks.read(at(4), [2, 9400], 10), (true, 3), "three small packets");
        assert_eq!(marks.read(at(5), [2, 17_400], 16), (true, 8));
        let full = (1 << 24) - 100;
        let packets = u64::from(full - 17_400).div_ceil(1000);
        let ace = (2 + packets % 8) as u32 % 8;
        assert_eq!(marks.read(at(6), [ace, full], packets), (true, packets));
        assert_eq!(marks.read(at(7), [(ace + 1) % 8, 900], 1), (true, 1));
    }
}
