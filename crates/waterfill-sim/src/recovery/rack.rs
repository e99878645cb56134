//! Recovery by send times (RFC 8985, RACK), with a probe of the tail, and undo of spurious recoveries.
//!
//! - `[rfc8985:§6.2]` A packet is lost when a packet sent after it has arrived, and an RTT and a reordering window have
//!   passed since it was sent. New packets are sent in the order of their numbers, and retransmissions wait in the order
//!   of their sending. So the lost ones are a prefix of each, and the scoreboard is RFC 6675's.
//! - `[rfc8985:§6.2.4]` The reordering window is zero until reordering is seen, then a quarter of the smallest RTT, and
//!   a quarter more for each round with a DSACK.
//! - `[rfc8985:§7]` If nothing arrives for two RTTs, a probe is sent whatever the window: new data if there is some,
//!   otherwise the last packet again.
//! - A recovery is spurious if an acknowledgement of retransmitted data echoes a time before the first retransmission
//!   (`[rfc3522:§3.2]`, Eifel), or if a DSACK reports every retransmission as unneeded (`[rfc3708:§3]`). The law then
//!   restores its window (`[rfc4015:§3.2]`). A timeout is spurious, too, if data that was not sent again is acknowledged
//!   next (`[rfc5682:§3.1]`, F-RTO, as Linux reads it): acknowledgements were lost, and no data.

use std::collections::VecDeque;

use waterfill_laws::units::{Duration, Instant};

use super::{Cause, DUP_THRESH, Finding, Gaps, Progress, Recovery, Resent};
use crate::packet::Blocks;

/// Number of recoveries after which the reordering window is a quarter of the smallest RTT again.
const PERSIST: u32 = 16;
/// Longest delay of an acknowledgement that the probe's timer allows for (TLP.max_ack_delay): as in Linux, its `rto_min`.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

/// Times at an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTimes {
    pub(crate) now: Instant,
    /// Sending time that the acknowledgement echoes.
    pub(crate) echo: Instant,
    pub(crate) base_rtt: Duration,
    pub(crate) smoothed_rtt: Duration,
}

/// State of RACK-TLP.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// First sending times of the packets `una..next`: that of packet n is at n modulo the length, a power of two.
    sent: Vec<Instant>,
    /// Newest sending time of a packet that has arrived (RACK.xmit_ts).
    newest: Instant,
    /// RTT of that packet (RACK.rtt).
    rtt: Duration,
    /// True if a packet that was sent once has arrived after one sent later.
    reordered: bool,
    /// Size of the reordering window in quarters of the smallest RTT.
    quarters: u32,
    /// Number of recoveries after which `quarters` is one again.
    persist: u32,
    /// Packet number up to which a further DSACK does not enlarge the window.
    dsack_round: u64,
    /// Time at which the next packet counts as lost if it has not arrived.
    due: Instant,
    /// Episode that the law can undo; `None` after a signal that is certain.
    undo: Option<Undo>,
    /// Probe in progress.
    probe: Option<TailProbe>,
    /// Times of the last probe that was postponed, and of the timeout that it does not postpone.
    postponed: [Instant; 2],
    /// Sending times of the packets newly found lost, until the law is notified.
    pub(super) lost: VecDeque<Instant>,
}

/// `[rfc8985:§7.3]` Probe of the tail.
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// Value of `next` once the probe is sent (TLP.end_seq).
    end: u64,
    /// Time of sending.
    sent: Option<Instant>,
    /// True if the probe is new data (not TLP.is_retrans).
    is_new: bool,
}

/// Retransmissions since the last signal.
#[derive(Clone, Copy, Debug)]
struct Undo {
    first: Instant,
    /// Number of retransmissions that are not known to be unneeded.
    needed: u64,
}

impl Rack {
    pub(super) fn new() -> Self {
        Self {
            sent: Vec::new(),
            newest: Instant::ZERO,
            rtt: Duration::ZERO,
            reordered: false,
            quarters: 1,
            persist: 0,
            dsack_round: 0,
            due: Instant::NEVER,
            undo: None,
            probe: None,
            postponed: [Instant::NEVER; 2],
            lost: VecDeque::new(),
        }
    }

    /// Records the first transmission of packet `number`, while all below `una` have arrived.
    #[inline]
    pub(super) fn on_sent(&mut self, number: u64, una: u64, now: Instant) {
        if number - una >= self.sent.len() as u64 {
            self.grow(una, number);
        }
        let place = self.place(number);
        self.sent[place] = now;
    }

    fn place(&self, number: u64) -> usize {
        number as usize & (self.sent.len() - 1)
    }

    #[cold]
    fn grow(&mut self, una: u64, next: u64) {
        let larger = vec![Instant::ZERO; (self.sent.len() * 2).max(16)];
        let before = std::mem::replace(&mut self.sent, larger);
        for number in una..next {
            let place = self.place(number);
            self.sent[place] = before[number as usize & (before.len() - 1)];
        }
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Records a retransmission.
    pub(super) fn on_resent(&mut self, now: Instant) {
        if self.mark_probe_sent(now) {
            return;
        }
        if let Some(undo) = &mut self.undo {
            undo.first = undo.first.min(now);
            undo.needed += 1;
        }
    }

    /// Records that the probe leaves, if one waits. Returns true if so.
    fn mark_probe_sent(&mut self, now: Instant) -> bool {
        let Some(TailProbe { sent: sent @ None, .. }) = &mut self.probe else { return false };
        *sent = Some(now);
        true
    }

    /// Returns true while a probe is in progress.
    pub(super) const fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// Returns true if a probe of new data waits to be sent.
    pub(super) const fn probes_with_new_data(&self) -> bool {
        matches!(self.probe, Some(TailProbe { is_new: true, sent: None, .. }))
    }

    /// Begins an episode at a signal of congestion. Only the first of a recovery can be undone.
    pub(super) fn on_signal(&mut self, undoable: bool) {
        self.undo = undoable.then_some(Undo { first: Instant::NEVER, needed: 0 });
        self.probe = None;
    }

    /// Begins an episode at a timeout, unless it continues that of the timeout before.
    pub(super) fn on_timeout(&mut self, again: bool) {
        self.due = Instant::NEVER;
        if !again {
            self.on_signal(true);
        }
    }

    /// Counts a finished recovery.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// `[rfc8985:§6.2.4]` Returns the reordering window.
    fn window(&self, board: &Recovery, times: &AckTimes) -> Duration {
        let sacked = board.gaps.as_ref().map_or(0, |gaps| gaps.sacked.count());
        if !self.reordered && (board.recovered_at.is_some() || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        (times.base_rtt / 4 * u64::from(self.quarters)).min(times.smoothed_rtt)
    }

    /// `[rfc8985:§6.2.5]` Finds the packets that are lost by now, and the time at which the next one is.
    fn detect(&mut self, board: &mut Recovery, times: &AckTimes, progress: &mut Progress) {
        self.due = Instant::NEVER;
        let patience = self.rtt + self.window(board, times);
        let Some(gaps) = &mut board.gaps else { return };
        let end = gaps.sacked.last().map_or(board.una, |last| last + 1);
        let mut number = gaps.sacked.first_missing(board.lost_edge.max(board.una));
        while number < end {
            let sent = self.sent[self.place(number)];
            if sent > self.newest || sent + patience > times.now {
                self.due = if sent > self.newest { Instant::NEVER } else { sent + patience };
                break;
            }
            board.lost_edge = number + 1;
            progress.newly_lost += 1;
            self.lost.push_back(sent);
            number = gaps.sacked.first_missing(number + 1);
        }
        while let Some(resent) = gaps.resent.front() {
            let arrived = resent.number < board.una || gaps.sacked.contains(resent.number);
            if !arrived {
                if !gaps.is_overtaken(resent, self.newest, end) {
                    break;
                }
                if resent.at + patience > times.now {
                    self.due = self.due.min(resent.at + patience);
                    break;
                }
            }
            if !arrived {
                self.lost.push_back(resent.at);
            }
            gaps.pop_resent(!arrived, progress);
        }
        gaps.tidy(board.una, board.resend_next..board.lost_edge);
    }
}

impl Recovery {
    /// Handles an acknowledgement by RACK-TLP.
    pub(super) fn on_rack_ack(&mut self, una: u64, blocks: Option<&Blocks>, times: &AckTimes, progress: &mut Progress) {
        let Some(mut rack) = self.rack.take() else { return };
        let head_resent = self.una < self.resend_next;
        let original = self.acknowledges_original(una);
        let (dsack, blocks) = split_dsack(una, blocks);
        rack.drop_unsent_probe(self);
        rack.reordered |= self.arrives_late(una, blocks.as_ref());
        self.store(una, blocks.as_ref(), progress);
        if progress.newly_arrived > 0 && times.echo >= rack.newest {
            rack.newest = times.echo;
            rack.rtt = times.now.since(times.echo);
        }
        progress.newly_arrived += u64::from(dsack); // as in Linux, the duplicate counts as delivered
        if dsack && self.una >= rack.dsack_round {
            rack.dsack_round = self.next;
            rack.quarters += 1;
            rack.persist = PERSIST;
        }
        rack.detect(self, times, progress);
        let mut spurious = progress.advanced
            && head_resent
            && rack.undo.is_some_and(|undo| undo.needed > 0 && times.echo < undo.first);
        // A packet that was overtaken by others and by its own retransmission.
        rack.reordered |= spurious && self.is_recovering();
        spurious |= original;
        if let Some(undo) = rack.undo.as_mut().filter(|undo| dsack && undo.needed > 0) {
            undo.needed -= 1;
            spurious |= undo.needed == 0;
        }
        if let Some(TailProbe { sent: Some(at), is_new, .. }) = rack.probe.filter(|probe| una >= probe.end) {
            rack.probe = None;
            // [rfc8985:§7.4] Only a probe that repeats data can have repaired a loss.
            if !is_new && times.echo >= at && !dsack {
                progress.finding = Finding::TailLost;
            }
        }
        if spurious {
            rack.undo = None;
            progress.finding = Finding::Spurious;
        }
        self.rack = Some(rack);
        if self.gaps.as_ref().is_some_and(|gaps| gaps.is_empty()) {
            self.gaps = None;
        }
    }

    /// Returns true if this acknowledgement is the first to report a packet that was sent once, and an acknowledgement
    /// before reported one sent later.
    fn arrives_late(&self, una: u64, blocks: Option<&Blocks>) -> bool {
        let Some(gaps) = &self.gaps else { return false };
        let Some(last) = gaps.sacked.last() else { return false };
        let once = self.resend_next.max(self.una);
        let new = |start: u64, end: u64| {
            let (start, end) = (start.max(once), end.min(last));
            start < end && gaps.sacked.count_within(start, end) < end - start
        };
        new(self.una, una) || blocks.is_some_and(|blocks| blocks.iter().any(|&(start, end)| new(start, end)))
    }

    /// `[rfc5682:§3.1]` Returns true if this acknowledgement after a timeout is for data that was not sent again and had
    /// not been reported.
    fn acknowledges_original(&self, una: u64) -> bool {
        let from = self.resend_next.max(self.una);
        let timed_out = matches!(self.recovered_at, Some((point, Cause::Timeout)) if self.una < point);
        let known = |gaps: &Gaps| gaps.sacked.count_within(from, una);
        timed_out && from < una && self.gaps.as_deref().map_or(0, known) < una - from
    }

    /// Finds losses when [`Recovery::due`] is reached.
    pub(crate) fn on_due(&mut self, times: &AckTimes) -> Progress {
        let mut progress = Progress::default();
        if let Some(mut rack) = self.rack.take() {
            rack.detect(self, times, &mut progress);
            self.rack = Some(rack);
        }
        progress.event = self.event(&progress);
        self.review();
        progress
    }

    /// Returns the time at which [`Recovery::on_due`] must be called, or `NEVER`.
    #[inline]
    pub(crate) fn due(&self) -> Instant {
        match (&self.rack, &self.quic) {
            _ if self.intact => Instant::NEVER,
            (Some(rack), _) => rack.due(),
            (None, Some(quic)) => quic.due(),
            (None, None) => Instant::NEVER,
        }
    }

    /// Returns the time after which [`Recovery::probe`] is called if nothing arrives, or [`Duration::MAX`] if it is not.
    #[inline]
    pub(crate) fn probe_timeout(&self, smoothed_rtt: Duration) -> Duration {
        let probes = self.rack.is_some() && self.intact && self.recovered_at.is_none();
        if probes { smoothed_rtt + smoothed_rtt } else { Duration::MAX }
    }

    /// `[rfc8985:§7.2]` Returns the times of the probe and of the timeout if the probe's timer, which runs from the last
    /// acknowledgement, has expired too early: the probe waits from the last new packet, and longer for a single one.
    pub(crate) fn postponed_probe(
        &mut self,
        now: Instant,
        smoothed_rtt: Duration,
        rto: Duration,
    ) -> Option<[Instant; 2]> {
        let delay = if self.unacknowledged() == 1 { MAX_ACK_DELAY } else { Duration::ZERO };
        let last = self.next.checked_sub(1)?;
        let rack = self.rack.as_mut()?;
        let [probe, timeout] = rack.postponed;
        let timeout = if probe == now { timeout } else { now + (rto - smoothed_rtt * 2) };
        let probe = rack.sent[rack.place(last)] + smoothed_rtt * 2 + delay;
        (probe > now).then(|| {
            rack.postponed = [probe, timeout];
            rack.postponed
        })
    }

    /// Starts a probe, which is sent whatever the window: new data, or the last packet again.
    pub(crate) fn probe(&mut self, with_new_data: bool) {
        let Some(rack) = &mut self.rack else { return };
        rack.probe = Some(TailProbe { end: self.next + u64::from(with_new_data), sent: None, is_new: with_new_data });
        if !with_new_data {
            self.gaps.get_or_insert_default().lost_again.push_back(self.next - 1);
            self.pending += 1;
        }
        self.intact = false;
        self.fast_retransmit = true;
    }

    /// Records that a probe of new data has left, if one waits.
    pub(crate) fn on_probe_sent(&mut self, now: Instant) {
        if let Some(rack) = self.rack.as_mut().filter(|rack| rack.probes_with_new_data()) {
            rack.mark_probe_sent(now);
            self.fast_retransmit = false;
        }
    }
}

impl Gaps {
    /// Returns true if a packet that was sent after the oldest retransmission, `resent`, has arrived. `newest` is the
    /// newest sending time of those that have, and `end` follows the largest number.
    fn is_overtaken(&self, resent: &Resent, newest: Instant, end: u64) -> bool {
        let sent_with = || self.resent.iter().skip(1).take_while(|later| later.at == resent.at);
        resent.at < newest
            || (resent.at == newest
                && (end > resent.next || sent_with().any(|later| self.sacked.contains(later.number))))
    }
}

impl Rack {
    /// Gives up a probe that pacing has delayed until the next acknowledgement.
    fn drop_unsent_probe(&mut self, board: &mut Recovery) {
        if let (Some(TailProbe { end, sent: None, .. }), Some(gaps)) = (self.probe, &mut board.gaps) {
            gaps.lost_again.retain(|&number| number + 1 != end);
            board.fast_retransmit = false;
            self.probe = None;
        }
    }
}

/// `[rfc2883:§4]` Returns true if the first block reports a packet that had arrived before, and the other blocks.
fn split_dsack(una: u64, blocks: Option<&Blocks>) -> (bool, Option<Blocks>) {
    let Some(&[first, second, third]) = blocks else { return (false, None) };
    let within = second.0 <= first.0 && first.1 <= second.1;
    // A receiver whose newest ranges are filled sends empty blocks, which report nothing.
    if first.0 < first.1 && (first.0 < una || within) {
        let others = [second, third, (0, 0)];
        return (true, (second.1 > 0).then_some(others));
    }
    (false, Some([first, second, third]))
}

#[cfg(test)]
mod tests {
    use waterfill_laws::protocol::{Event, Retransmission};

    use super::super::testing::NONE;
    use super::*;

    /// `[rfc2883:§4]` A block below the acknowledgement or within the second one reports a duplicate; empty blocks do not.
    #[test]
    fn rfc2883_4_duplicates_and_empty_blocks() {
        let is_duplicate = |blocks| split_dsack(10, Some(&blocks)).0;
        assert!(is_duplicate([(4, 5), NONE, NONE]));
        assert!(is_duplicate([(12, 13), (11, 20), NONE]));
        assert!(!is_duplicate([(12, 13), (14, 20), NONE]));
        assert!(!is_duplicate([NONE; 3]), "the newest ranges are filled, and older ones are not");
    }

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// Returns a scoreboard after ten packets, one per millisecond from 0 ms.
    fn ten() -> Recovery {
        let mut r = Recovery::new(Retransmission::Rack);
        (0..10).for_each(|n| r.on_sent(ms(n)));
        r
    }

    /// Times of an acknowledgement at `now` for a packet sent at `echo`, with RTTs of 100 ms.
    fn times(now: u64, echo: u64) -> AckTimes {
        let rtt = Duration::from_millis(100);
        AckTimes { now: ms(now), echo: ms(echo), base_rtt: rtt, smoothed_rtt: rtt }
    }

    /// `[rfc8985:§6.2.4]` Before three packets above it have arrived, a packet is lost a quarter of the RTT later.
    #[test]
    fn rfc8985_6_2_4_a_gap_waits_for_a_quarter_of_the_rtt() {
        let mut r = ten();
        assert_eq!(r.on_ack(2, Some(&[(3, 4), NONE, NONE]), &times(103, 3)).event, None);
        assert_eq!((r.to_resend(), r.due()), (None, ms(2 + 100 + 25)));
        assert_eq!(r.on_due(&times(127, 0)).event, Some(Event::Loss));
        assert_eq!((r.to_resend(), r.due()), (Some(2), Instant::NEVER));
    }

    /// `[rfc8985:§6.2.4]` Without reordering, three packets above it show the loss at once.
    #[test]
    fn rfc8985_6_2_4_three_packets_above_a_gap_are_a_loss() {
        let mut r = ten();
        r.on_ack(2, Some(&[(3, 5), NONE, NONE]), &times(104, 4));
        let progress = r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &times(105, 5));
        assert_eq!((progress.event, progress.newly_lost, r.to_resend()), (Some(Event::Loss), 1, Some(2)));
    }

    /// `[rfc3522:§3.2, rfc4015:§3.2]` The late packet arrives after its retransmission was sent: the recovery is undone,
    /// and the next gap waits.
    #[test]
    fn rfc4015_a_late_packet_undoes_the_recovery() {
        let mut r = ten();
        r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &times(105, 5));
        r.on_resent(2, ms(105));
        assert_eq!(r.on_ack(6, None, &times(108, 2)).event, Some(Event::Spurious));
        assert!(!r.is_recovering());
        (0..5).for_each(|n| r.on_sent(ms(110 + n))); // 10 … 14
        assert_eq!(r.on_ack(10, Some(&[(11, 15), NONE, NONE]), &times(214, 114)).event, None);
        assert_eq!(r.due(), ms(110 + 100 + 25));
    }

    /// `[rfc3708:§3]` A DSACK for the only retransmission undoes a recovery that has ended.
    #[test]
    fn rfc3708_a_dsack_for_every_retransmission_undoes_the_recovery() {
        let mut r = ten();
        r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &times(105, 5));
        r.on_resent(2, ms(105));
        assert_eq!(r.on_ack(10, None, &times(206, 105)).event, Some(Event::Recovered));
        assert_eq!(r.on_ack(10, Some(&[(2, 3), NONE, NONE]), &times(207, 105)).event, Some(Event::Spurious));
        assert_eq!(r.on_ack(10, Some(&[(2, 3), NONE, NONE]), &times(208, 105)).event, None, "once");
    }

    /// `[rfc8985:§6.2.5, rfc5681:§4.3]` A retransmission is lost when a packet sent after it has arrived.
    #[test]
    fn rfc8985_6_2_5_a_lost_retransmission_is_found_by_time_and_signals() {
        let mut r = ten();
        r.on_ack(2, Some(&[(3, 6), NONE, NONE]), &times(105, 5));
        r.on_resent(2, ms(105));
        r.on_sent(ms(106));
        assert_eq!(r.on_ack(2, Some(&[(3, 10), NONE, NONE]), &times(109, 9)).event, None);
        let progress = r.on_ack(2, Some(&[(3, 11), NONE, NONE]), &times(206, 106));
        assert_eq!((progress.event, r.to_resend()), (Some(Event::Loss), Some(2)));
    }

    /// `[rfc8985:§7.4]` A probe that repairs a loss is a signal of congestion, and one for a late packet is not.
    #[test]
    fn rfc8985_7_4_a_probe_signals_only_if_it_repairs_a_loss() {
        for (echo, event) in [(200, Some(Event::Loss)), (9, None)] {
            let mut r = ten();
            assert_eq!(r.probe_timeout(Duration::from_millis(100)), Duration::from_millis(200));
            r.probe(false);
            assert!(r.must_send());
            assert_eq!(r.to_resend(), Some(9));
            r.on_resent(9, ms(200));
            assert_eq!(r.probe_timeout(Duration::from_millis(100)), Duration::MAX, "one probe at a time");
            assert_eq!((r.to_resend(), r.in_flight()), (None, 10));
            assert_eq!(r.on_ack(10, None, &times(300, echo)).event, event);
        }
    }

    /// `[rfc8985:§7.3]` A probe of new data passes the window once, and its arrival is no signal of congestion.
    #[test]
    fn rfc8985_7_3_a_probe_of_new_data_passes_the_window_once() {
        let mut r = ten();
        r.probe(true);
        assert_eq!((r.must_send(), r.to_resend(), r.in_flight()), (true, None, 10));
        r.on_sent(ms(200));
        r.on_probe_sent(ms(200));
        assert!(!r.must_send());
        assert_eq!(r.probe_timeout(Duration::from_millis(100)), Duration::MAX, "one probe at a time");
        assert_eq!(r.on_ack(10, None, &times(250, 9)).event, None);
        assert_eq!(r.probe_timeout(Duration::from_millis(100)), Duration::MAX, "it has not arrived");
        assert_eq!(r.on_ack(11, None, &times(300, 200)).event, None);
        assert_eq!(r.probe_timeout(Duration::from_millis(100)), Duration::from_millis(200));
    }

    /// `[rfc8985:§7.2]` The probe waits for two RTTs from the last packet, and longer for a single one; the timeout that
    /// ran when its timer was started stays.
    #[test]
    fn rfc8985_7_2_a_probe_waits_from_the_last_packet() {
        let (srtt, rto) = (Duration::from_millis(100), Duration::from_millis(300));
        let mut r = Recovery::new(Retransmission::Rack);
        r.on_sent(ms(0));
        assert_eq!(
            r.postponed_probe(ms(200), srtt, rto),
            Some([ms(400), ms(300)]),
            "200 ms more, and the timeout first"
        );
        r.on_sent(ms(150));
        assert_eq!(r.postponed_probe(ms(200), srtt, rto), Some([ms(350), ms(300)]));
        r.on_sent(ms(340));
        assert_eq!(r.postponed_probe(ms(350), srtt, rto), Some([ms(540), ms(300)]), "not postponed with the probe");
        assert_eq!(r.postponed_probe(ms(540), srtt, rto), None);
    }

    /// `[rfc8985:§6.2]` Of two retransmissions of one time, the arrival of the first does not show that the second is
    /// lost.
    #[test]
    fn rfc8985_6_2_packets_of_one_time_are_ordered_by_number() {
        let mut r = ten();
        r.on_ack(2, Some(&[(4, 7), NONE, NONE]), &times(106, 6));
        r.on_resent(2, ms(106));
        r.on_resent(3, ms(106));
        assert_eq!(r.on_ack(3, Some(&[(4, 7), NONE, NONE]), &times(206, 106)).newly_lost, 0);
        assert_eq!(r.to_resend(), None);
        r.on_sent(ms(106));
        assert_eq!(r.on_ack(3, Some(&[(4, 7), (10, 11), NONE]), &times(207, 106)).newly_lost, 4, "3, and 7 to 9");
        assert_eq!(r.to_resend(), Some(3));
    }

    /// `[rfc5682:§3.1]` After two timeouts, data that was not sent again is acknowledged.
    #[test]
    fn rfc5682_3_1_data_that_was_not_sent_again_undoes_a_timeout() {
        let mut r = ten();
        for at in [1000, 3000] {
            r.on_timeout();
            r.on_resent(0, ms(at));
        }
        assert_eq!(r.clone().on_ack(1, None, &times(3100, 3000)).event, None, "only what was sent again");
        assert_eq!(r.on_ack(10, None, &times(3100, 3000)).event, Some(Event::Spurious));
    }

    /// `[rfc8985:§7.4]` A tail and its probe that are both lost are one packet to send again.
    #[test]
    fn rfc8985_7_4_a_lost_packet_and_its_lost_probe_count_once() {
        let mut r = ten();
        r.probe(false);
        r.on_resent(9, ms(200));
        (0..3).for_each(|n| r.on_sent(ms(201 + n))); // 10, 11, 12
        let progress = r.on_ack(9, Some(&[(10, 13), NONE, NONE]), &times(303, 203));
        assert_eq!((progress.event, r.to_resend(), r.in_flight()), (Some(Event::Loss), Some(9), 0));
        r.on_resent(9, ms(303));
        assert_eq!((r.to_resend(), r.in_flight()), (None, 1));
    }

    /// `[rfc3522:§3.2]` A timeout is spurious if the first acknowledgement after it is for the original packet.
    #[test]
    fn rfc4015_a_spurious_timeout_is_undone_and_nothing_more_is_resent() {
        let mut r = ten();
        r.on_timeout();
        r.on_resent(0, ms(1000));
        assert_eq!(r.on_ack(1, None, &times(1001, 0)).event, Some(Event::Spurious));
        assert_eq!((r.to_resend(), r.in_flight()), (None, 9));
    }
}
