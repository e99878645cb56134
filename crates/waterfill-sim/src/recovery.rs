//! Which packets are in flight, which are lost, which to send again, with the numbers of whole packets in place of bytes.
//!
//! With selective acknowledgements (RFC 6675) a packet is lost when three selectively acknowledged ones lie above it
//! (IsLost), and a retransmission is lost again when three packets first sent after it are acknowledged. Without them
//! (RFC 5681, RFC 6582) the third duplicate means that the packet it asks for is lost, and so does a partial
//! acknowledgement for NewReno; each duplicate says that some packet has left the network. Either way all is
//! lost when the timer fires. What is in flight is never counted by hand: it follows from the sets.

use std::collections::VecDeque;

use waterfill_laws::protocol::{Event, Retransmission};

use crate::packet::Blocks;
use crate::ranges::Ranges;

/// Duplicate acknowledgements that mean a loss (RFC 5681).
const DUP_THRESH: u64 = 3;

/// Why the sender is on the way to `recovered_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Loss,
    Mark,
    Timeout,
}

/// The sender's scoreboard.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    mode: Retransmission,
    /// All below have arrived.
    una: u64,
    /// The next new packet.
    next: u64,
    /// Arrived out of order.
    sacked: Ranges,
    /// What has not arrived below this is lost.
    lost_edge: u64,
    /// Lost packets below this have been sent again.
    resend_next: u64,
    /// Retransmissions in order, each with `next` as it was then.
    resent: VecDeque<(u64, u64)>,
    /// Retransmissions that are lost in their turn.
    lost_again: VecDeque<u64>,
    /// `next` when the loss or the mark was found; recovery ends when `una` reaches it.
    recovered_at: Option<(u64, Cause)>,
    /// Duplicate acknowledgements that stand for packets above `una` (without selective acknowledgements).
    duplicates: u64,
    /// Up to this, duplicates may stem from a recovery that is over (RFC 6582's `recover`, one packet on).
    careful_to: Option<u64>,
    /// `una` goes again whatever the window: the fast retransmit, or its like after a partial acknowledgement.
    at_once: bool,
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Packets that were not known to have arrived before, and that a window may grow by.
    pub(crate) newly_arrived: u64,
    /// Whether `una` moved.
    pub(crate) advanced: bool,
    pub(crate) event: Option<Event>,
}

impl Recovery {
    pub(crate) fn new(mode: Retransmission) -> Self {
        Self {
            mode,
            una: 0,
            next: 0,
            sacked: Ranges::default(),
            lost_edge: 0,
            resend_next: 0,
            resent: VecDeque::new(),
            lost_again: VecDeque::new(),
            recovered_at: None,
            duplicates: 0,
            careful_to: None,
            at_once: false,
        }
    }

    /// Packets sent and neither arrived nor known lost.
    pub(crate) fn in_flight(&self) -> u64 {
        self.outstanding() - self.pending()
    }

    /// Whether the packet to send again is not held back by the window (RFC 5681 and RFC 6582, §3.2 step 3).
    pub(crate) fn must_resend(&self) -> bool {
        self.at_once && self.to_resend().is_some()
    }

    /// Packets sent and not known to have arrived.
    pub(crate) fn outstanding(&self) -> u64 {
        self.next - self.una - self.sacked.count() - self.duplicates
    }

    /// Sent and not acknowledged in order.
    pub(crate) const fn unacknowledged(&self) -> u64 {
        self.next - self.una
    }

    /// In fast recovery, or coming down after a mark; not so after a time-out.
    pub(crate) const fn is_recovering(&self) -> bool {
        matches!(self.recovered_at, Some((_, Cause::Loss | Cause::Mark)))
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Lost packets that wait to be sent again.
    fn pending(&self) -> u64 {
        let from = self.resend_next.max(self.una);
        if from >= self.lost_edge && self.lost_again.is_empty() {
            return 0; // nearly always
        }
        let edge = self.lost_edge.max(from);
        edge - from - self.sacked.count_within(from, edge) + self.lost_again.len() as u64
    }

    /// The packet to send again next, if one is lost.
    pub(crate) fn to_resend(&self) -> Option<u64> {
        if let Some(&again) = self.lost_again.front() {
            return Some(again);
        }
        let hole = self.sacked.first_missing(self.resend_next.max(self.una));
        (hole < self.lost_edge).then_some(hole)
    }

    /// [`Recovery::to_resend`] was sent.
    pub(crate) fn on_resent(&mut self, number: u64) {
        if self.lost_again.front() == Some(&number) {
            self.lost_again.pop_front();
        } else {
            self.resend_next = number + 1;
        }
        self.at_once = false;
        self.resent.push_back((number, self.next));
    }

    /// A new packet was sent.
    pub(crate) fn on_sent(&mut self) {
        self.next += 1;
    }

    /// All below `una` have arrived, and what is in `blocks`.
    pub(crate) fn on_ack(&mut self, una: u64, blocks: Option<&Blocks>) -> Progress {
        let mut progress = Progress::default();
        if self.mode == Retransmission::Sack {
            self.on_selective_ack(una, blocks, &mut progress);
        } else {
            self.on_plain_ack(una, &mut progress);
        }
        progress.event = match self.recovered_at {
            Some((point, _)) if self.una >= point => self.recover(),
            // Reno leaves at the first new acknowledgement, whatever else was lost.
            Some((_, Cause::Loss)) if self.mode == Retransmission::Reno && progress.advanced => self.recover(),
            None if self.pending() > 0 => {
                self.recovered_at = Some((self.next, Cause::Loss));
                Some(Event::Loss)
            }
            // The window came down for the mark already: the loss is only mended.
            Some((_, Cause::Mark)) if self.pending() > 0 => {
                self.recovered_at = Some((self.next, Cause::Loss));
                None
            }
            _ => None,
        };
        progress
    }

    fn recover(&mut self) -> Option<Event> {
        let (point, _) = self.recovered_at.take()?;
        self.careful_to = Some(point);
        self.duplicates = 0;
        Some(Event::Recovered)
    }

    fn on_selective_ack(&mut self, una: u64, blocks: Option<&Blocks>, progress: &mut Progress) {
        if una > self.una {
            let had = self.sacked.count_within(self.una, una);
            progress.newly_arrived = una - self.una - had;
            progress.advanced = true;
            self.una = una;
            if !self.sacked.is_empty() {
                self.sacked.remove_below(una);
            }
        }
        if let Some(blocks) = blocks {
            for &(start, end) in blocks {
                progress.newly_arrived += self.sacked.insert(start.max(self.una), end);
            }
            if let Some(edge) = self.sacked.kth_last(DUP_THRESH) {
                self.lost_edge = self.lost_edge.max(edge);
            }
        }
        if !self.resent.is_empty() {
            self.review_resent();
        }
        if !self.lost_again.is_empty() {
            let (una, sacked) = (self.una, &self.sacked);
            self.lost_again.retain(|&n| n >= una && !sacked.contains(n));
        }
    }

    /// RFC 5681 §3.2 and RFC 6582 §3.2, with what is in flight less a packet for each duplicate in place of a
    /// window inflated by one: the same sends at the same times.
    fn on_plain_ack(&mut self, una: u64, progress: &mut Progress) {
        if una > self.una {
            let covered = una - self.una;
            self.at_once = false;
            // All but the packet asked for may be those that the duplicates stood for.
            let had = self.duplicates.min(covered - 1);
            self.duplicates -= had;
            self.duplicates = self.duplicates.min(self.next - una);
            progress.newly_arrived = covered - had;
            progress.advanced = true;
            self.una = una;
            match self.recovered_at {
                Some((point, Cause::Loss)) if una < point => {
                    self.lost_edge = self.lost_edge.max(una + 1);
                    self.at_once = true;
                }
                Some(_) => {}
                None => self.duplicates = 0,
            }
            if self.mode == Retransmission::Reno && self.is_recovering() {
                self.lost_edge = self.lost_edge.min(una); // it does not know of a second loss
            }
        } else if una == self.una && self.outstanding() > self.pending() {
            // A duplicate: a packet has left the network. More of them than packets in flight stand for none.
            self.duplicates += 1;
            progress.newly_arrived = 1;
            let known = self.recovered_at.is_some() && !matches!(self.recovered_at, Some((_, Cause::Mark)));
            let careful = self.mode == Retransmission::NewReno && self.careful_to.is_some_and(|to| self.una <= to);
            if !known && !careful && self.duplicates >= DUP_THRESH {
                self.lost_edge = self.lost_edge.max(self.una + 1);
                self.resend_next = self.una;
                self.at_once = true;
            }
        }
        // After a time-out all goes again, and what is acknowledged is mostly what had arrived before: RFC 3465 §2.3 has the window
        // grow by a packet an acknowledgement at most, and not for a duplicate (RFC 5681 §3.1: new data only).
        if matches!(self.recovered_at, Some((_, Cause::Timeout))) {
            progress.newly_arrived = u64::from(progress.advanced);
        }
        // A duplicate stands for none of the packets known lost: after a time-out it may be one given up that came late.
        self.duplicates = self.duplicates.min(self.next - self.una - self.pending());
    }

    /// The receiver reported a mark: an event unless the window has just come down.
    pub(crate) fn on_mark(&mut self) -> Option<Event> {
        if self.recovered_at.is_some() {
            return None;
        }
        self.recovered_at = Some((self.next, Cause::Mark));
        Some(Event::Marked)
    }

    /// Forgets retransmissions that arrived; finds those that are lost again.
    fn review_resent(&mut self) {
        let newest = self.sacked.last();
        while let Some(&(number, next_then)) = self.resent.front() {
            let arrived = number < self.una || self.sacked.contains(number);
            if !arrived {
                // Lost again if three packets first sent after it have arrived.
                let after = newest.is_some_and(|n| n >= next_then)
                    && self.sacked.count_within(next_then, u64::MAX) >= DUP_THRESH;
                if !after {
                    break;
                }
                self.lost_again.push_back(number);
            }
            self.resent.pop_front();
        }
    }

    /// The timer fired: everything that has not arrived is lost.
    pub(crate) fn on_timeout(&mut self) {
        self.lost_edge = self.next;
        self.resend_next = self.una;
        self.resent.clear();
        self.lost_again.clear();
        self.duplicates = 0;
        self.at_once = false;
        self.recovered_at = Some((self.next, Cause::Timeout));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: (u64, u64) = (0, 0);

    fn sent(n: u64) -> Recovery {
        let mut r = Recovery::new(Retransmission::Sack);
        for _ in 0..n {
            r.on_sent();
        }
        r
    }

    /// All ten are given up; the first goes again, and a duplicate comes for each of the others, which were only late.
    #[test]
    fn duplicates_after_a_time_out_stand_for_no_packet_given_up() {
        for mode in [Retransmission::Reno, Retransmission::NewReno] {
            let mut r = Recovery::new(mode);
            (0..10).for_each(|_| r.on_sent());
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
    fn three_above_make_a_loss() {
        let mut r = sent(10);
        assert_eq!(r.on_ack(2, Some(&[(3, 5), NONE, NONE])).event, None); // two above 2
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 6); // 10 − 2 arrived − 2 selectively
        let progress = r.on_ack(2, Some(&[(3, 6), NONE, NONE]));
        assert_eq!(progress, Progress { newly_arrived: 1, advanced: false, event: Some(Event::Loss) });
        assert_eq!(r.to_resend(), Some(2));
        assert_eq!(r.in_flight(), 4);
        r.on_resent(2);
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 5);
        assert_eq!(r.on_ack(10, None).event, Some(Event::Recovered));
        assert_eq!((r.in_flight(), r.outstanding()), (0, 0));
    }

    #[test]
    fn a_lost_retransmission_is_found() {
        let mut r = sent(10);
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

    fn newreno(n: u64) -> Recovery {
        let mut r = Recovery::new(Retransmission::NewReno);
        for _ in 0..n {
            r.on_sent();
        }
        r
    }

    #[test]
    fn a_fast_retransmit_is_not_held_back_by_the_window() {
        let mut r = newreno(100);
        r.on_ack(2, None);
        for _ in 0..3 {
            assert!(!r.must_resend());
            r.on_ack(2, None);
        }
        assert!(r.must_resend());
        assert_eq!(r.to_resend(), Some(2));
        r.on_resent(2);
        assert!(!r.must_resend());
        r.on_ack(50, None); // a partial acknowledgement: the next hole
        assert!(r.must_resend());
        assert_eq!(r.to_resend(), Some(50));
        r.on_resent(50);
        assert_eq!(r.on_ack(100, None).event, Some(Event::Recovered));
        assert!(!r.must_resend());
    }

    #[test]
    fn duplicates_of_what_was_sent_twice_are_no_loss() {
        // Packet 0 is lost and found by the timer; all ten go again, and the receiver has nine of them.
        let mut r = newreno(10);
        r.on_timeout();
        while let Some(n) = r.to_resend() {
            r.on_resent(n);
        }
        assert_eq!(r.on_ack(10, None).event, Some(Event::Recovered));
        for _ in 0..5 {
            r.on_sent();
        }
        // RFC 6582 §3.2 step 2: only an acknowledgement of more than `recover` makes its duplicates count.
        for _ in 0..4 {
            assert_eq!(r.on_ack(10, None).event, None);
        }
        assert_eq!(r.to_resend(), None);
        r.on_ack(11, None);
        assert_eq!((1..=3).map(|_| r.on_ack(11, None).event).collect::<Vec<_>>(), [None, None, Some(Event::Loss)]);
    }

    /// Packet 0 of ten is lost, found by the timer, and sent again: the answer acknowledges all ten.
    #[test]
    fn after_a_time_out_a_window_grows_by_a_packet_an_acknowledgement() {
        for mode in [Retransmission::Reno, Retransmission::NewReno] {
            let mut r = Recovery::new(mode);
            (0..10).for_each(|_| r.on_sent());
            r.on_timeout();
            r.on_resent(0);
            r.on_resent(1);
            assert_eq!(r.on_ack(0, None).newly_arrived, 0, "a duplicate of before");
            assert_eq!(r.on_ack(4, None).newly_arrived, 1);
            assert_eq!(r.on_ack(10, None).newly_arrived, 1, "the last of them");
            (0..4).for_each(|_| r.on_sent());
            assert_eq!(r.on_ack(14, None).newly_arrived, 4, "as ever");
        }
    }

    #[test]
    fn a_timeout_loses_all_that_has_not_arrived() {
        let mut r = sent(5);
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
