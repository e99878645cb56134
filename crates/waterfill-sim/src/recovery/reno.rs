//! Recovery by duplicate acknowledgements: Reno (RFC 5681) and NewReno (RFC 6582), those of the papers' time.
//!
//! The third duplicate means that the requested packet is lost (`[rfc5681:§3.2]`), and so does a partial acknowledgement
//! for NewReno (`[rfc6582:§3.2]`). Each duplicate means that some packet has left the network.

use waterfill_laws::protocol::Retransmission;

use super::{Cause, DUP_THRESH, Progress, Recovery};

impl Recovery {
    /// Handles an acknowledgement without selective blocks (RFC 5681 §3.2 and RFC 6582 §3.2). Each duplicate reduces
    /// the number in flight by one instead of inflating the window by one: the same packets are sent at the same times.
    pub(super) fn on_plain_ack(&mut self, una: u64, progress: &mut Progress) {
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
                    progress.newly_lost = u64::from(self.lost_edge <= una);
                    self.lost_edge = self.lost_edge.max(una + 1);
                    self.fast_retransmit = true;
                }
                Some(_) => {}
                None => self.duplicates = 0,
            }
            if self.mode == Retransmission::Reno && self.is_recovering() {
                self.lost_edge = self.lost_edge.min(una); // Reno does not detect a second loss
            }
        } else if una == self.una && self.outstanding() > self.count_pending() {
            // A duplicate: a packet has left the network. Duplicates beyond the packets in flight do not count.
            self.duplicates += 1;
            progress.newly_arrived = 1;
            let known = self.recovered_at.is_some() && !matches!(self.recovered_at, Some((_, Cause::Mark)));
            let ignored = self.mode == Retransmission::NewReno && self.una < self.ignore_duplicates_below;
            if !known && !ignored && self.duplicates >= DUP_THRESH {
                progress.newly_lost = u64::from(self.lost_edge <= self.una);
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
        self.duplicates = self.duplicates.min(self.next - self.una - self.count_pending());
    }
}

#[cfg(test)]
mod tests {
    use waterfill_laws::protocol::Event;
    use waterfill_laws::units::Instant;

    use super::super::testing::{TIMELESS, sent};
    use super::*;

    /// After a timeout that declared ten packets lost, duplicates for nine late packets do not count. Only the first
    /// packet was lost and is sent again.
    #[test]
    fn duplicates_after_a_timeout_do_not_count_packets_declared_lost() {
        for mode in [Retransmission::Reno, Retransmission::NewReno] {
            let mut r = sent(mode, 10);
            r.on_timeout();
            r.on_resent(0, Instant::ZERO);
            for _ in 0..9 {
                r.on_ack(0, None, &TIMELESS);
                assert!(r.in_flight() <= 1, "nine wait to be sent again");
            }
            r.on_ack(1, None, &TIMELESS);
            assert_eq!(r.in_flight(), 0);
            assert_eq!(r.to_resend(), Some(1));
        }
    }

    #[test]
    fn a_fast_retransmit_ignores_the_window() {
        let mut r = sent(Retransmission::NewReno, 100);
        r.on_ack(2, None, &TIMELESS);
        for _ in 0..3 {
            assert!(!r.must_send());
            r.on_ack(2, None, &TIMELESS);
        }
        assert!(r.must_send());
        assert_eq!(r.to_resend(), Some(2));
        r.on_resent(2, Instant::ZERO);
        assert!(!r.must_send());
        r.on_ack(50, None, &TIMELESS); // a partial acknowledgement: the next gap
        assert!(r.must_send());
        assert_eq!(r.to_resend(), Some(50));
        r.on_resent(50, Instant::ZERO);
        assert_eq!(r.on_ack(100, None, &TIMELESS).event, Some(Event::Recovered));
        assert!(!r.must_send());
    }

    #[test]
    fn duplicates_of_retransmitted_packets_are_not_a_loss() {
        // Packet 0 is lost and detected by the timer. All ten are sent again, and the receiver already has nine of
        // them.
        let mut r = sent(Retransmission::NewReno, 10);
        r.on_timeout();
        while let Some(n) = r.to_resend() {
            r.on_resent(n, Instant::ZERO);
        }
        assert_eq!(r.on_ack(10, None, &TIMELESS).event, Some(Event::Recovered));
        for _ in 0..5 {
            r.on_sent(Instant::ZERO);
        }
        // RFC 6582 §3.2 step 2: duplicates count only after an acknowledgement of more than `recover`.
        for _ in 0..4 {
            assert_eq!(r.on_ack(10, None, &TIMELESS).event, None);
        }
        assert_eq!(r.to_resend(), None);
        r.on_ack(11, None, &TIMELESS);
        assert_eq!(
            (1..=3).map(|_| r.on_ack(11, None, &TIMELESS).event).collect::<Vec<_>>(),
            [None, None, Some(Event::Loss)]
        );
    }

    /// After a timeout without selective acknowledgements, an acknowledgement reports at most one new arrival until the
    /// recovery ends.
    #[test]
    fn after_a_timeout_a_window_grows_by_one_packet_per_acknowledgement() {
        for mode in [Retransmission::Reno, Retransmission::NewReno] {
            let mut r = sent(mode, 10);
            r.on_timeout();
            r.on_resent(0, Instant::ZERO);
            r.on_resent(1, Instant::ZERO);
            assert_eq!(r.on_ack(0, None, &TIMELESS).newly_arrived, 0, "a duplicate from before the timeout");
            assert_eq!(r.on_ack(4, None, &TIMELESS).newly_arrived, 1);
            assert_eq!(r.on_ack(10, None, &TIMELESS).newly_arrived, 1, "the end of the recovery");
            (0..4).for_each(|_| r.on_sent(Instant::ZERO));
            assert_eq!(r.on_ack(14, None, &TIMELESS).newly_arrived, 4, "as usual");
        }
    }
}
