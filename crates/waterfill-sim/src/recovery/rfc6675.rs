//! Recovery by selective acknowledgements (RFC 6675).
//!
//! A packet is lost when three selectively acknowledged packets lie above it (`[rfc6675:§4]`, IsLost). A retransmission is
//! lost when three packets first sent after it have arrived, which RFC 6675 leaves to the timer. Its loss is a further
//! signal of congestion (`[rfc5681:§4.3]`), once for all packets sent before that signal. RFC 3517 differs here in that
//! alone: a lost retransmission is repaired without a signal, as in the results of the papers' time.

use std::collections::VecDeque;
use std::ops::Range;

use waterfill_laws::units::Instant;

use super::{DUP_THRESH, Finding, Progress, Recovery};
use crate::packet::Blocks;
use crate::ranges::Ranges;

/// Arrivals, losses and retransmissions beyond the cumulative acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Packet numbers that arrived out of order.
    pub(super) sacked: Ranges,
    /// Retransmissions in the order of their sending.
    pub(super) resent: VecDeque<Resent>,
    /// Number of entries at the front of `resent` that were sent before the last signal of congestion. That signal
    /// covers their loss.
    pub(super) signalled: usize,
    /// Numbers of packets whose retransmission was lost.
    pub(super) lost_again: VecDeque<u64>,
}

/// A retransmission on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    pub(super) number: u64,
    /// Value of `next` when it was sent.
    pub(super) next: u64,
    pub(super) at: Instant,
}

impl Gaps {
    pub(super) fn is_empty(&self) -> bool {
        self.sacked.is_empty() && self.resent.is_empty() && self.lost_again.is_empty()
    }

    /// Removes retransmissions that have arrived, and finds retransmissions that are lost.
    fn review_resent(&mut self, una: u64, progress: &mut Progress) {
        let newest = self.sacked.last();
        while let Some(&Resent { number, next, .. }) = self.resent.front() {
            let arrived = number < una || self.sacked.contains(number);
            if !arrived {
                // Lost again if three packets first sent after it have arrived.
                let after = newest.is_some_and(|n| n >= next) && self.sacked.count_within(next, u64::MAX) >= DUP_THRESH;
                if !after {
                    break;
                }
            }
            self.pop_resent(!arrived, progress);
        }
    }

    /// Removes the oldest retransmission, which has arrived or is lost.
    pub(super) fn pop_resent(&mut self, lost: bool, progress: &mut Progress) {
        let Some(Resent { number, .. }) = self.resent.pop_front() else { return };
        if lost {
            self.lost_again.push_back(number);
            progress.newly_lost += 1;
            if self.signalled == 0 {
                progress.finding = Finding::LostAgain;
            }
        }
        self.signalled = self.signalled.saturating_sub(1);
    }

    /// Removes lost packets that have arrived after all, and those in `waiting`, which are sent again anyway. A probe of
    /// the tail can be lost as well as the packet it repeats.
    pub(super) fn tidy(&mut self, una: u64, waiting: Range<u64>) {
        let sacked = &self.sacked;
        self.lost_again.retain(|&n| n >= una && !waiting.contains(&n) && !sacked.contains(n));
    }
}

impl Recovery {
    pub(super) fn on_selective_ack(&mut self, una: u64, blocks: Option<&Blocks>, progress: &mut Progress) {
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
        self.store(una, blocks, progress);
        let Some(gaps) = &mut self.gaps else { return };
        if let Some(edge) = gaps.sacked.kth_last(DUP_THRESH).filter(|&edge| blocks.is_some() && edge > self.lost_edge) {
            let from = self.lost_edge.max(self.una).min(edge);
            progress.newly_lost = edge - from - gaps.sacked.count_within(from, edge);
            self.lost_edge = edge;
        }
        gaps.review_resent(self.una, progress);
        gaps.tidy(self.una, self.resend_next..self.lost_edge);
        if gaps.is_empty() {
            self.gaps = None;
        }
    }

    /// Stores what has arrived.
    pub(super) fn store(&mut self, una: u64, blocks: Option<&Blocks>, progress: &mut Progress) {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use waterfill_laws::protocol::{Event, Retransmission};

    use super::super::testing::{NONE, TIMELESS, sent};
    use super::*;

    #[test]
    fn three_packets_above_a_gap_mean_a_loss() {
        let mut r = sent(Retransmission::Rfc6675, 10);
        assert_eq!(r.on_ack(2, Some(&[(3, 5), NONE, NONE]), &TIMELESS).event, None); // two above 2
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 6); // 10 − 2 acknowledged − 2 selectively acknowledged
        let progress = r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &TIMELESS);
        let expected = Progress { newly_arrived: 1, newly_lost: 1, event: Some(Event::Loss), ..Progress::default() };
        assert_eq!(progress, expected);
        assert_eq!(r.to_resend(), Some(2));
        assert_eq!(r.in_flight(), 4);
        r.on_resent(2, Instant::ZERO);
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 5);
        assert_eq!(r.on_ack(10, None, &TIMELESS).event, Some(Event::Recovered));
        assert_eq!((r.in_flight(), r.outstanding()), (0, 0));
    }

    #[test]
    fn a_lost_retransmission_is_detected() {
        let mut r = sent(Retransmission::Rfc6675, 10);
        r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &TIMELESS);
        r.on_resent(2, Instant::ZERO);
        for _ in 0..5 {
            r.on_sent(Instant::ZERO); // 10 … 14, after the retransmission
        }
        r.on_ack(2, Some(&[(3, 12), NONE, NONE]), &TIMELESS);
        assert_eq!(r.to_resend(), None, "two packets sent after it are not enough");
        r.on_ack(2, Some(&[(3, 13), NONE, NONE]), &TIMELESS);
        assert_eq!(r.to_resend(), Some(2));
        r.on_resent(2, Instant::ZERO);
        assert_eq!(r.to_resend(), None);
        assert_eq!(r.in_flight(), 3); // 2, 13, 14
    }

    /// `[rfc5681:§4.3]` The loss of a retransmission is a second signal of congestion. Retransmissions sent before that
    /// signal do not signal again; one sent after it does.
    #[test]
    fn rfc5681_4_3_a_lost_retransmission_signals_once_for_all_sent_before() {
        let mut r = sent(Retransmission::Rfc6675, 10);
        assert_eq!(r.on_ack(0, Some(&[(2, 5), NONE, NONE]), &TIMELESS).event, Some(Event::Loss));
        r.on_resent(0, Instant::ZERO);
        (0..3).for_each(|_| r.on_sent(Instant::ZERO)); // 10, 11, 12
        r.on_resent(1, Instant::ZERO);
        (0..3).for_each(|_| r.on_sent(Instant::ZERO)); // 13, 14, 15
        let first = r.on_ack(0, Some(&[(2, 13), NONE, NONE]), &TIMELESS);
        assert_eq!((first.event, first.newly_lost), (Some(Event::Loss), 1), "the retransmission of 0");
        r.on_resent(0, Instant::ZERO);
        (0..3).for_each(|_| r.on_sent(Instant::ZERO)); // 16, 17, 18
        let second = r.on_ack(0, Some(&[(2, 16), NONE, NONE]), &TIMELESS);
        assert_eq!((second.event, second.newly_lost), (None, 1), "that of 1 was sent before the second signal");
        r.on_resent(1, Instant::ZERO);
        let third = r.on_ack(0, Some(&[(2, 19), NONE, NONE]), &TIMELESS);
        assert_eq!((third.event, third.newly_lost), (Some(Event::Loss), 1), "that of 0 was sent after it");
        r.on_resent(0, Instant::ZERO);
        assert_eq!(r.on_ack(10, None, &TIMELESS).event, None, "the end of the first recovery");
        assert_eq!(r.on_ack(19, None, &TIMELESS).event, Some(Event::Recovered));
    }

    /// `[rfc5681:§4.3]` A retransmission lost during the slow start after a timeout is a signal of congestion.
    #[test]
    fn rfc5681_4_3_a_retransmission_lost_after_a_timeout_is_a_signal() {
        let mut r = sent(Retransmission::Rfc6675, 8);
        r.on_timeout();
        r.on_resent(0, Instant::ZERO);
        r.on_ack(1, None, &TIMELESS);
        r.on_resent(1, Instant::ZERO);
        r.on_resent(2, Instant::ZERO);
        (3..8).for_each(|n| r.on_resent(n, Instant::ZERO));
        (0..3).for_each(|_| r.on_sent(Instant::ZERO)); // 8, 9, 10
        assert!(!r.is_recovering());
        assert_eq!(r.on_ack(1, Some(&[(2, 10), NONE, NONE]), &TIMELESS).event, None);
        assert_eq!(r.on_ack(1, Some(&[(2, 11), NONE, NONE]), &TIMELESS).event, Some(Event::Loss));
        assert!(r.is_recovering());
    }

    #[test]
    fn a_timeout_declares_all_outstanding_packets_lost() {
        let mut r = sent(Retransmission::Rfc6675, 5);
        r.on_ack(0, Some(&[(2, 3), NONE, NONE]), &TIMELESS);
        r.on_timeout();
        assert_eq!(r.in_flight(), 0);
        let mut again = vec![];
        while let Some(n) = r.to_resend() {
            again.push(n);
            r.on_resent(n, Instant::ZERO);
        }
        assert_eq!(again, [0, 1, 3, 4]);
        assert_eq!(r.in_flight(), 4);
    }

    /// `[rfc3517]` A lost retransmission is sent again without a signal.
    #[test]
    fn rfc3517_a_lost_retransmission_is_no_signal() {
        let mut r = sent(Retransmission::Rfc3517, 10);
        assert_eq!(r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &TIMELESS).event, Some(Event::Loss));
        r.on_resent(2, Instant::ZERO);
        (0..3).for_each(|_| r.on_sent(Instant::ZERO));
        let progress = r.on_ack(2, Some(&[(3, 13), NONE, NONE]), &TIMELESS);
        assert_eq!((progress.event, progress.newly_lost, r.to_resend()), (None, 1, Some(2)));
    }
}
