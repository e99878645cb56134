//! Sender's scoreboard of packets in flight, lost packets and retransmissions, by packet number instead of byte.
//!
//! With selective acknowledgements (RFC 6675) a packet is lost when three selectively acknowledged packets lie above it
//! (IsLost). A retransmission is lost when three packets first sent after it are acknowledged. Its loss is a further
//! signal of congestion (RFC 5681 §4.3), once for all packets sent before that signal. Without selective
//! acknowledgements (RFC 5681, RFC 6582) the third duplicate means that the requested packet is lost, and so does a
//! partial acknowledgement for NewReno; each duplicate means that some packet has left the network. With both, all
//! outstanding packets are lost when the timer fires. The number in flight is not a counter: it follows from the sets.

use std::collections::VecDeque;

use waterfill_laws::protocol::{Event, Retransmission};

use crate::packet::Blocks;
use crate::ranges::Ranges;

/// Number of duplicate acknowledgements that indicate a loss (RFC 5681).
const DUP_THRESH: u64 = 3;

/// Cause of the sender's recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Loss,
    Mark,
    Timeout,
}

/// Scoreboard of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    mode: Retransmission,
    /// Packet number below which all packets have arrived.
    una: u64,
    /// Number of the next new packet.
    next: u64,
    /// Packet number below which packets that have not arrived are lost.
    lost_edge: u64,
    /// Packet number below which lost packets have been sent again.
    resend_next: u64,
    /// Scoreboard beyond `una`; `None` while it is empty, which is the usual state.
    gaps: Option<Box<Gaps>>,
    /// True while no packet beyond `una` is known to have arrived or to be lost. All packets sent are then in flight,
    /// which is the usual state. The field is updated on each change, because it is read for every packet.
    intact: bool,
    /// Value of `next` when the loss or mark was found, with its cause. Recovery ends when `una` reaches this value.
    recovered_at: Option<(u64, Cause)>,
    /// Number of duplicate acknowledgements, each for a packet above `una` (without selective acknowledgements).
    duplicates: u64,
    /// Packet number up to which duplicates may stem from a finished recovery (RFC 6582's `recover` plus one packet).
    ignore_duplicates_to: Option<u64>,
    /// True if `una` is sent again whatever the window: as a fast retransmit, or after a partial acknowledgement.
    fast_retransmit: bool,
}

/// Arrivals, losses and retransmissions beyond the cumulative acknowledgement.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// Packet numbers that arrived out of order.
    sacked: Ranges,
    /// Numbers of retransmitted packets in order, each with the value of `next` at that time.
    resent: VecDeque<(u64, u64)>,
    /// Number of entries at the front of `resent` that were sent before the last signal of congestion. That signal
    /// covers their loss.
    signalled: usize,
    /// Numbers of packets whose retransmission was lost.
    lost_again: VecDeque<u64>,
}

impl Gaps {
    fn is_empty(&self) -> bool {
        self.sacked.is_empty() && self.resent.is_empty() && self.lost_again.is_empty()
    }

    /// Removes retransmissions that have arrived, and finds retransmissions that are lost.
    fn review_resent(&mut self, una: u64, progress: &mut Progress) {
        let newest = self.sacked.last();
        while let Some(&(number, next_then)) = self.resent.front() {
            let arrived = number < una || self.sacked.contains(number);
            if !arrived {
                // Lost again if three packets first sent after it have arrived.
                let after = newest.is_some_and(|n| n >= next_then)
                    && self.sacked.count_within(next_then, u64::MAX) >= DUP_THRESH;
                if !after {
                    break;
                }
                self.lost_again.push_back(number);
                progress.newly_lost += 1;
                progress.lost_again |= self.signalled == 0;
            }
            self.resent.pop_front();
            self.signalled = self.signalled.saturating_sub(1);
        }
    }
}

/// Changes caused by an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of packets that this acknowledgement is the first to report as arrived. A window may grow by this number.
    pub(crate) newly_arrived: u64,
    /// True if `una` has increased.
    pub(crate) advanced: bool,
    /// Number of packets, retransmissions included, that this acknowledgement is the first to show as lost.
    pub(crate) newly_lost: u64,
    /// True if one of them is a retransmission sent after the last signal of congestion.
    pub(crate) lost_again: bool,
    pub(crate) event: Option<Event>,
}

impl Recovery {
    pub(crate) fn new(mode: Retransmission) -> Self {
        Self {
            mode,
            una: 0,
            next: 0,
            lost_edge: 0,
            resend_next: 0,
            gaps: None,
            intact: true,
            recovered_at: None,
            duplicates: 0,
            ignore_duplicates_to: None,
            fast_retransmit: false,
        }
    }

    /// Returns the number of packets that are neither known to have arrived nor known to be lost.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        if self.intact { self.unacknowledged() } else { self.outstanding() - self.pending() }
    }

    /// Returns true if the next retransmission ignores the window (RFC 5681 and RFC 6582, §3.2 step 3).
    pub(crate) fn must_resend(&self) -> bool {
        self.fast_retransmit && self.to_resend().is_some()
    }

    /// Returns the number of packets sent that are not known to have arrived.
    pub(crate) fn outstanding(&self) -> u64 {
        let sacked = self.gaps.as_ref().map_or(0, |gaps| gaps.sacked.count());
        self.next - self.una - sacked - self.duplicates
    }

    /// Returns the number of packets sent that are not acknowledged cumulatively.
    pub(crate) const fn unacknowledged(&self) -> u64 {
        self.next - self.una
    }

    /// Returns true during fast recovery and during a window reduction after a mark, but not after a timeout.
    pub(crate) const fn is_recovering(&self) -> bool {
        matches!(self.recovered_at, Some((_, Cause::Loss | Cause::Mark)))
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of lost packets that have not been sent again.
    fn pending(&self) -> u64 {
        let from = self.resend_next.max(self.una);
        let edge = self.lost_edge.max(from);
        edge - from + self.gaps.as_ref().map_or(0, |gaps| gaps.lost_again.len() as u64)
            - self.gaps.as_ref().map_or(0, |gaps| gaps.sacked.count_within(from, edge))
    }

    /// Returns the number of the next packet to send again, if one is lost.
    #[inline]
    pub(crate) fn to_resend(&self) -> Option<u64> {
        if self.intact { None } else { self.first_lost() }
    }

    fn first_lost(&self) -> Option<u64> {
        let from = self.resend_next.max(self.una);
        let missing = match &self.gaps {
            None => from,
            Some(gaps) => {
                if let Some(&again) = gaps.lost_again.front() {
                    return Some(again);
                }
                gaps.sacked.first_missing(from)
            }
        };
        (missing < self.lost_edge).then_some(missing)
    }

    /// Records the retransmission of the packet given by [`Recovery::to_resend`].
    pub(crate) fn on_resent(&mut self, number: u64) {
        self.fast_retransmit = false;
        if self.mode != Retransmission::Sack {
            self.resend_next = number + 1;
            return;
        }
        let gaps = self.gaps.get_or_insert_default();
        if gaps.lost_again.front() == Some(&number) {
            gaps.lost_again.pop_front();
        } else {
            self.resend_next = number + 1;
        }
        gaps.resent.push_back((number, self.next));
    }

    /// Records the transmission of a new packet.
    pub(crate) fn on_sent(&mut self) {
        self.next += 1;
    }

    /// Records the arrival of all packets below `una` and of the packets in `blocks`.
    #[inline]
    pub(crate) fn on_ack(&mut self, una: u64, blocks: Option<&Blocks>) -> Progress {
        if self.intact && una > self.una && blocks.is_none() && self.recovered_at.is_none() {
            let newly_arrived = una - self.una;
            self.una = una;
            return Progress { newly_arrived, advanced: true, ..Progress::default() };
        }
        let progress = self.on_any_ack(una, blocks);
        self.intact = self.gaps.is_none() && self.duplicates == 0 && self.lost_edge <= self.una;
        progress
    }

    /// Handles an acknowledgement outside the usual case of [`Recovery::on_ack`].
    #[inline(never)] // keeps the usual path short
    fn on_any_ack(&mut self, una: u64, blocks: Option<&Blocks>) -> Progress {
        let mut progress = Progress::default();
        if self.mode == Retransmission::Sack {
            self.on_selective_ack(una, blocks, &mut progress);
        } else {
            self.on_plain_ack(una, &mut progress);
        }
        progress.event = match self.recovered_at {
            Some((point, _)) if self.una >= point => self.recover(),
            // Reno ends recovery at the first new acknowledgement, whatever else was lost.
            Some((_, Cause::Loss)) if self.mode == Retransmission::Reno && progress.advanced => self.recover(),
            None if self.pending() > 0 => self.signal_loss(),
            Some(_) if progress.lost_again => self.signal_loss(),
            // The window was already reduced for the mark: the loss is only repaired.
            Some((_, Cause::Mark)) if self.pending() > 0 => {
                self.recovered_at = Some((self.next, Cause::Loss));
                None
            }
            _ => None,
        };
        progress
    }

    /// Begins a recovery of all packets sent so far. Within a recovery it is a further signal (RFC 5681 §4.3).
    fn signal_loss(&mut self) -> Option<Event> {
        self.recovered_at = Some((self.next, Cause::Loss));
        if let Some(gaps) = &mut self.gaps {
            gaps.signalled = gaps.resent.len();
        }
        Some(Event::Loss)
    }

    fn recover(&mut self) -> Option<Event> {
        let (point, _) = self.recovered_at.take()?;
        self.ignore_duplicates_to = Some(point);
        self.duplicates = 0;
        Some(Event::Recovered)
    }

    fn on_selective_ack(&mut self, una: u64, blocks: Option<&Blocks>, progress: &mut Progress) {
        if self.gaps.is_some() || blocks.is_some() {
            self.fill_gaps(una, blocks, progress);
        } else if una > self.una {
            progress.newly_arrived = una - self.una;
            progress.advanced = true;
            self.una = una;
        }
    }

    /// Handles an acknowledgement while packets are missing.
    fn fill_gaps(&mut self, una: u64, blocks: Option<&Blocks>, progress: &mut Progress) {
        let gaps = self.gaps.get_or_insert_default();
        if una > self.una {
            let had = gaps.sacked.count_within(self.una, una);
            progress.newly_arrived = una - self.una - had;
            progress.advanced = true;
            self.una = una;
            gaps.sacked.remove_below(una);
        }
        if let Some(blocks) = blocks {
            for &(start, end) in blocks {
                progress.newly_arrived += gaps.sacked.insert(start.max(self.una), end);
            }
            if let Some(edge) = gaps.sacked.kth_last(DUP_THRESH).filter(|&edge| edge > self.lost_edge) {
                let from = self.lost_edge.max(self.una).min(edge);
                progress.newly_lost = edge - from - gaps.sacked.count_within(from, edge);
                self.lost_edge = edge;
            }
        }
        gaps.review_resent(self.una, progress);
        let sacked = &gaps.sacked;
        gaps.lost_again.retain(|&n| n >= self.una && !sacked.contains(n));
        if gaps.is_empty() {
            self.gaps = None;
        }
    }

    /// Handles an acknowledgement without selective blocks (RFC 5681 §3.2 and RFC 6582 §3.2). Each duplicate reduces
    /// the number in flight by one instead of inflating the window by one: the same packets are sent at the same times.
    fn on_plain_ack(&mut self, una: u64, progress: &mut Progress) {
        if una > self.una {
            let covered = una - self.una;
            self.fast_retransmit = false;
            // All but the requested packet may be those that the duplicates stood for.
            let had = self.duplicates.min(covered - 1);
            self.duplicates -= had;
            self.duplicates = self.duplicates.min(self.next - una);
            progress.newly_arrived = covered - had;
            progress.advanced = true;
            self.una = una;
            match self.recovered_at {
                Some((point, Cause::Loss)) if una < point => {
                    self.lost_edge = self.lost_edge.max(una + 1);
                    self.fast_retransmit = true;
                }
                Some(_) => {}
                None => self.duplicates = 0,
            }
            if self.mode == Retransmission::Reno && self.is_recovering() {
                self.lost_edge = self.lost_edge.min(una); // Reno does not detect a second loss
            }
        } else if una == self.una && self.outstanding() > self.pending() {
            // A duplicate: a packet has left the network. Duplicates beyond the packets in flight do not count.
            self.duplicates += 1;
            progress.newly_arrived = 1;
            let known = self.recovered_at.is_some() && !matches!(self.recovered_at, Some((_, Cause::Mark)));
            let ignored =
                self.mode == Retransmission::NewReno && self.ignore_duplicates_to.is_some_and(|to| self.una <= to);
            if !known && !ignored && self.duplicates >= DUP_THRESH {
                self.lost_edge = self.lost_edge.max(self.una + 1);
                self.resend_next = self.una;
                self.fast_retransmit = true;
            }
        }
        // After a timeout everything is sent again, and most packets acknowledged then had arrived before. So the
        // window grows by up to one packet per acknowledgement (RFC 3465 §2.3), and not for a duplicate (RFC 5681 §3.1:
        // new data only).
        if matches!(self.recovered_at, Some((_, Cause::Timeout))) {
            progress.newly_arrived = u64::from(progress.advanced);
        }
        // A duplicate never stands for a packet known lost: after a timeout it may stem from one that was only late.
        self.duplicates = self.duplicates.min(self.next - self.una - self.pending());
    }

    /// Handles a reported mark. Returns an event unless a recovery or a reduction is already in progress.
    pub(crate) fn on_mark(&mut self) -> Option<Event> {
        if self.recovered_at.is_some() {
            return None;
        }
        self.recovered_at = Some((self.next, Cause::Mark));
        Some(Event::Marked)
    }

    /// Handles the retransmission timer: every packet that has not arrived counts as lost.
    pub(crate) fn on_timeout(&mut self) {
        self.lost_edge = self.next;
        self.intact = false;
        self.resend_next = self.una;
        if let Some(gaps) = &mut self.gaps {
            gaps.resent.clear();
            gaps.signalled = 0;
            gaps.lost_again.clear();
        }
        self.duplicates = 0;
        self.fast_retransmit = false;
        self.recovered_at = Some((self.next, Cause::Timeout));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: (u64, u64) = (0, 0);

    /// Returns a scoreboard after `n` packets were sent.
    fn sent(mode: Retransmission, n: u64) -> Recovery {
        let mut r = Recovery::new(mode);
        for _ in 0..n {
            r.on_sent();
        }
        r
    }

    /// After a timeout that declared ten packets lost, duplicates for nine late packets do not count. Only the first
    /// packet was lost and is sent again.
    #[test]
    fn duplicates_after_a_timeout_do_not_count_packets_declared_lost() {
        for mode in [Retransmission::Reno, Retransmission::NewReno] {
            let mut r = sent(mode, 10);
            r.on_timeout();
            r.on_resent(0);
            for _ in 0..9 {
                r.on_ack(0, None);
                assert!(r.in_flight() <= 1, "nine wait to be sent again");
            }
            r.on_ack(1, None);
            assert_eq!(r.in_flight(), 0);
            assert_eq!(r.to_resend(), Some(1));
        }
    }

    #[test]
    fn three_packets_above_a_gap_mean_a_loss() {
        let mut r = sent(Retransmission::Sack, 10);
        assert_eq!(r.on_ack(2, Some(&[(3, 5), NONE, NONE])).event, None); // two above 2
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 6); // 10 − 2 acknowledged − 2 selectively acknowledged
        let progress = r.on_ack(2, Some(&[(3, 6), NONE, NONE]));
        let expected = Progress { newly_arrived: 1, newly_lost: 1, event: Some(Event::Loss), ..Progress::default() };
        assert_eq!(progress, expected);
        assert_eq!(r.to_resend(), Some(2));
        assert_eq!(r.in_flight(), 4);
        r.on_resent(2);
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 5);
        assert_eq!(r.on_ack(10, None).event, Some(Event::Recovered));
        assert_eq!((r.in_flight(), r.outstanding()), (0, 0));
    }

    #[test]
    fn a_lost_retransmission_is_detected() {
        let mut r = sent(Retransmission::Sack, 10);
        r.on_ack(2, Some(&[(3, 6), NONE, NONE]));
        r.on_resent(2);
        for _ in 0..5 {
            r.on_sent(); // 10 … 14, after the retransmission
        }
        r.on_ack(2, Some(&[(3, 12), NONE, NONE]));
        assert_eq!(r.to_resend(), None, "two packets sent after it are not enough");
        r.on_ack(2, Some(&[(3, 13), NONE, NONE]));
        assert_eq!(r.to_resend(), Some(2));
        r.on_resent(2);
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 3); // 2, 13, 14
    }

    /// `[rfc5681:§4.3]` The loss of a retransmission is a second signal of congestion. Retransmissions sent before that
    /// signal do not signal again; one sent after it does.
    #[test]
    fn rfc5681_4_3_a_lost_retransmission_signals_once_for_all_sent_before() {
        let mut r = sent(Retransmission::Sack, 10);
        assert_eq!(r.on_ack(0, Some(&[(2, 5), NONE, NONE])).event, Some(Event::Loss));
        r.on_resent(0);
        (0..3).for_each(|_| r.on_sent()); // 10, 11, 12
        r.on_resent(1);
        (0..3).for_each(|_| r.on_sent()); // 13, 14, 15
        let first = r.on_ack(0, Some(&[(2, 13), NONE, NONE]));
        assert_eq!((first.event, first.newly_lost), (Some(Event::Loss), 1), "the retransmission of 0");
        r.on_resent(0);
        (0..3).for_each(|_| r.on_sent()); // 16, 17, 18
        let second = r.on_ack(0, Some(&[(2, 16), NONE, NONE]));
        assert_eq!((second.event, second.newly_lost), (None, 1), "that of 1 was sent before the second signal");
        r.on_resent(1);
        let third = r.on_ack(0, Some(&[(2, 19), NONE, NONE]));
        assert_eq!((third.event, third.newly_lost), (Some(Event::Loss), 1), "that of 0 was sent after it");
        r.on_resent(0);
        assert_eq!(r.on_ack(10, None).event, None, "the end of the first recovery");
        assert_eq!(r.on_ack(19, None).event, Some(Event::Recovered));
    }

    /// `[rfc5681:§4.3]` A retransmission lost during the slow start after a timeout is a signal of congestion.
    #[test]
    fn rfc5681_4_3_a_retransmission_lost_after_a_timeout_is_a_signal() {
        let mut r = sent(Retransmission::Sack, 8);
        r.on_timeout();
        r.on_resent(0);
        r.on_ack(1, None);
        r.on_resent(1);
        r.on_resent(2);
        (3..8).for_each(|n| r.on_resent(n));
        (0..3).for_each(|_| r.on_sent()); // 8, 9, 10
        assert!(!r.is_recovering());
        assert_eq!(r.on_ack(1, Some(&[(2, 10), NONE, NONE])).event, None);
        assert_eq!(r.on_ack(1, Some(&[(2, 11), NONE, NONE])).event, Some(Event::Loss));
        assert!(r.is_recovering());
    }

    #[test]
    fn a_fast_retransmit_ignores_the_window() {
        let mut r = sent(Retransmission::NewReno, 100);
        r.on_ack(2, None);
        for _ in 0..3 {
            assert!(!r.must_resend());
            r.on_ack(2, None);
        }
        assert!(r.must_resend());
        assert_eq!(r.to_resend(), Some(2));
        r.on_resent(2);
        assert!(!r.must_resend());
        r.on_ack(50, None); // a partial acknowledgement: the next gap
        assert!(r.must_resend());
        assert_eq!(r.to_resend(), Some(50));
        r.on_resent(50);
        assert_eq!(r.on_ack(100, None).event, Some(Event::Recovered));
        assert!(!r.must_resend());
    }

    #[test]
    fn duplicates_of_retransmitted_packets_are_not_a_loss() {
        // Packet 0 is lost and detected by the timer. All ten are sent again, and the receiver already has nine of
        // them.
        let mut r = sent(Retransmission::NewReno, 10);
        r.on_timeout();
        while let Some(n) = r.to_resend() {
            r.on_resent(n);
        }
        assert_eq!(r.on_ack(10, None).event, Some(Event::Recovered));
        for _ in 0..5 {
            r.on_sent();
        }
        // RFC 6582 §3.2 step 2: duplicates count only after an acknowledgement of more than `recover`.
        for _ in 0..4 {
            assert_eq!(r.on_ack(10, None).event, None);
        }
        assert_eq!(r.to_resend(), None);
        r.on_ack(11, None);
        assert_eq!((1..=3).map(|_| r.on_ack(11, None).event).collect::<Vec<_>>(), [None, None, Some(Event::Loss)]);
    }

    /// After a timeout without selective acknowledgements, an acknowledgement reports at most one new arrival until the
    /// recovery ends.
    #[test]
    fn after_a_timeout_a_window_grows_by_one_packet_per_acknowledgement() {
        for mode in [Retransmission::Reno, Retransmission::NewReno] {
            let mut r = sent(mode, 10);
            r.on_timeout();
            r.on_resent(0);
            r.on_resent(1);
            assert_eq!(r.on_ack(0, None).newly_arrived, 0, "a duplicate from before the timeout");
            assert_eq!(r.on_ack(4, None).newly_arrived, 1);
            assert_eq!(r.on_ack(10, None).newly_arrived, 1, "the end of the recovery");
            (0..4).for_each(|_| r.on_sent());
            assert_eq!(r.on_ack(14, None).newly_arrived, 4, "as usual");
        }
    }

    #[test]
    fn a_timeout_declares_all_outstanding_packets_lost() {
        let mut r = sent(Retransmission::Sack, 5);
        r.on_ack(0, Some(&[(2, 3), NONE, NONE]));
        r.on_timeout();
        assert_eq!(r.in_flight(), 0);
        let mut again = vec![];
        while let Some(n) = r.to_resend() {
            again.push(n);
            r.on_resent(n);
        }
        assert_eq!(again, [0, 1, 3, 4]);
        assert_eq!(r.in_flight(), 4);
    }
}
