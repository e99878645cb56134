//! Loss recovery: the sender's scoreboard, and one file for each method of finding and reporting losses.
//!
//! A flow chooses its method by `recovery`; each protocol has a default ([`Host::retransmission`]). All methods share
//! this scoreboard, by packet number instead of byte: `una` (all below have arrived), `next` (not sent yet),
//! `lost_edge` (all below that have not arrived are lost) and `resend_next` (all lost below are sent again). The number
//! in flight is not a counter: it follows from the sets. A method decides four things:
//!
//! - **What is lost**: it raises `lost_edge`, or adds to the retransmissions that were lost.
//! - **When congestion is signalled**: [`Recovery::on_any_ack`] gives the law at most one [`Event::Loss`] per recovery,
//!   and a further one if the method says that a retransmission was lost ([`Finding::LostAgain`]).
//! - **What was spurious**: it reports [`Finding::Spurious`], and the law restores its window.
//! - **When the recovery ends**: when all that was sent before the signal has arrived; for Reno at the first new
//!   acknowledgement.
//!
//! | file | method | references |
//! |---|---|---|
//! | [`reno`] | duplicate acknowledgements: `reno`, `newreno` | RFC 5681, RFC 6582 |
//! | [`rfc6675`] | selective acknowledgements: `rfc6675`, and `rfc3517` as in the papers' time | RFC 6675, RFC 5681 §4.3 |
//! | [`rack`] | sending times, probe of the tail, undo: `rack` | RFC 8985, RFC 4015, RFC 2883 |
//! | [`quic`] | packet numbers of their own, probes, persistent congestion: `quic` | RFC 9002 |
//! | [`prr`] | reduction to the law's window over a recovery | RFC 9937, RFC 6937 |
//! | [`rto`] | retransmission timeout | RFC 6298 |
//!
//! The method is a field, and a match outside the usual case of [`Recovery::on_ack`] dispatches to it. So it costs
//! nothing while no packet is missing. When the timer fires, every method counts all outstanding packets as lost.
//!
//! [`Host::retransmission`]: waterfill_laws::protocol::Host::retransmission

pub(crate) mod prr;
pub(crate) mod quic;
mod rack;
mod reno;
mod rfc6675;
pub(crate) mod rto;

use waterfill_laws::protocol::{Event, Retransmission};
use waterfill_laws::units::{Duration, Instant};

use crate::packet::Blocks;

use self::quic::Quic;
pub(crate) use self::rack::AckTimes;
use self::rack::Rack;
use self::rfc6675::{Gaps, Resent};

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
    /// Number of lost packets that have not been sent again. Stored, because it is read several times per packet. It is
    /// below the sender's limit of packets in flight.
    pending: u32,
    /// Scoreboard beyond `una`; `None` while it is empty, which is the usual state.
    gaps: Option<Box<Gaps>>,
    /// True while no packet beyond `una` is known to have arrived or to be lost, and no probe is in progress. All packets
    /// sent are then in flight, which is the usual state. The field is updated on each change, because it is read for every packet.
    intact: bool,
    /// Value of `next` when the loss or mark was found, with its cause. Recovery ends when `una` reaches this value.
    recovered_at: Option<(u64, Cause)>,
    /// Number of duplicate acknowledgements, each for a packet above `una` (without selective acknowledgements).
    duplicates: u64,
    /// Packet number below which duplicates may stem from a finished recovery (RFC 6582's `recover` plus one packet).
    ignore_duplicates_below: u64,
    /// True if `una` is sent again whatever the window: as a fast retransmit, or after a partial acknowledgement. Always
    /// true for `quic`, whose state decides.
    fast_retransmit: bool,
    /// State of the method `rack`; `None` for any other.
    rack: Option<Box<Rack>>,
    /// State of the method `quic`; `None` for any other. It replaces the scoreboard, where only `una` and `next` count
    /// data, and `intact` stays false.
    quic: Option<Box<Quic>>,
}

/// What an acknowledgement shows about the recovery, besides new losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finding {
    #[default]
    Nothing,
    /// A probe has repaired the loss of the last packet.
    TailLost,
    /// A retransmission is lost that was sent after the last signal of congestion.
    LostAgain,
    /// The last loss or timeout was spurious.
    Spurious,
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
    pub(crate) finding: Finding,
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
            pending: 0,
            gaps: None,
            intact: mode != Retransmission::Quic,
            recovered_at: None,
            duplicates: 0,
            ignore_duplicates_below: 0,
            fast_retransmit: mode == Retransmission::Quic,
            rack: (mode == Retransmission::Rack).then(|| Box::new(Rack::new())),
            quic: (mode == Retransmission::Quic).then(Box::default),
        }
    }

    /// Returns the state of the method `quic`.
    pub(crate) fn quic(&mut self) -> Option<&mut Quic> {
        self.quic.as_deref_mut()
    }

    /// Returns the longest delay of an acknowledgement of the method `quic`.
    pub(crate) fn max_ack_delay(&self) -> Duration {
        self.quic.as_ref().and_then(|quic| quic.asked_delay).unwrap_or(quic::MAX_ACK_DELAY)
    }

    /// Returns the sending time of the next packet that is newly found lost, oldest first, if the method keeps times.
    #[inline]
    pub(crate) fn pop_lost(&mut self) -> Option<Instant> {
        match (&mut self.rack, &mut self.quic) {
            (Some(rack), _) => rack.lost.pop_front(),
            (None, Some(quic)) => quic.newly_lost.pop_front(),
            (None, None) => None,
        }
    }

    /// Records that all data below `complete` has arrived, and the state of QUIC's recovery period.
    pub(crate) fn follow_quic(&mut self) {
        if let Some(quic) = &self.quic {
            self.una = quic.complete();
            self.recovered_at = quic.is_recovering().then_some((self.next, Cause::Loss));
        }
    }

    pub(crate) const fn method(&self) -> Retransmission {
        self.mode
    }

    /// Returns true if the method is `quic`, whose packets have numbers of their own.
    pub(crate) const fn is_quic(&self) -> bool {
        self.quic.is_some()
    }

    /// Returns true while all packets sent are in flight. Always false for `quic`.
    pub(crate) const fn is_intact(&self) -> bool {
        self.intact
    }

    /// Returns true if the last transmission of a data packet is lost, or for `quic` a packet that has not arrived.
    pub(crate) fn is_lost(&self, number: u64) -> bool {
        if let Some(quic) = &self.quic {
            return number < quic.decided_to();
        }
        let sacked = |gaps: &Gaps| gaps.sacked.contains(number);
        let waits =
            number >= self.resend_next || self.gaps.as_ref().is_some_and(|gaps| gaps.lost_again.contains(&number));
        (self.una..self.lost_edge).contains(&number) && waits && !self.gaps.as_deref().is_some_and(sacked)
    }

    /// Returns the number of packets that are neither known to have arrived nor known to be lost.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        match &self.quic {
            _ if self.intact => self.unacknowledged(),
            None => self.outstanding() - u64::from(self.pending),
            Some(quic) => quic.in_flight(),
        }
    }

    /// Returns true if the next packet ignores the window: a retransmission (RFC 5681 and RFC 6582, §3.2 step 3), or a
    /// probe.
    pub(crate) fn must_send(&self) -> bool {
        self.fast_retransmit && self.may_exceed_window()
    }

    #[cold]
    fn may_exceed_window(&self) -> bool {
        match (&self.quic, &self.rack) {
            (Some(quic), _) => quic.may_exceed_window(),
            (None, Some(rack)) if rack.probes_with_new_data() => true,
            _ => self.to_resend().is_some(),
        }
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

    /// Returns true while losses are repaired, also after a timeout.
    pub(crate) const fn is_repairing(&self) -> bool {
        matches!(self.recovered_at, Some((_, Cause::Loss | Cause::Timeout)))
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Counts the lost packets that have not been sent again.
    fn count_pending(&self) -> u64 {
        let from = self.resend_next.max(self.una);
        let edge = self.lost_edge.max(from);
        let Some(gaps) = &self.gaps else { return edge - from };
        edge - from + gaps.lost_again.len() as u64 - gaps.sacked.count_within(from, edge)
    }

    /// Returns the number of the next packet to send again, if one is lost.
    #[inline]
    pub(crate) fn to_resend(&self) -> Option<u64> {
        if self.intact { None } else { self.first_lost() }
    }

    fn first_lost(&self) -> Option<u64> {
        if let Some(quic) = &self.quic {
            return quic.to_resend();
        }
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

    /// Returns true if the retransmission of packet `number` restarts the timer: with `rack` that of the oldest packet, as in
    /// Linux (`tcp_xmit_retransmit_queue`). RFC 6675 §6 allows both. From the last progress, the timer would fire just
    /// before the acknowledgement of the retransmission wherever the RTT is long and constant.
    pub(crate) fn restarts_timer(&self, number: u64) -> bool {
        self.mode == Retransmission::Rack && number == self.una
    }

    /// Records the retransmission of the packet given by [`Recovery::to_resend`].
    pub(crate) fn on_resent(&mut self, number: u64, now: Instant) {
        if let Some(quic) = &mut self.quic {
            quic.on_resent();
            return;
        }
        self.fast_retransmit = false;
        self.pending -= 1;
        if !self.mode.is_selective() {
            self.resend_next = number + 1;
            return;
        }
        let gaps = self.gaps.get_or_insert_default();
        if gaps.lost_again.front() == Some(&number) {
            gaps.lost_again.pop_front();
        } else {
            self.resend_next = number + 1;
        }
        gaps.resent.push_back(Resent { number, next: self.next, at: now });
        if let Some(rack) = &mut self.rack {
            rack.on_resent(now);
        }
    }

    /// Records the transmission of a new packet.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant) {
        if let Some(rack) = &mut self.rack {
            rack.on_sent(self.next, self.una, now);
        }
        self.next += 1;
    }

    /// Records the arrival of all packets below `una` if that is all that an acknowledgement reports, and none is
    /// missing: the usual case. Returns their number, or `None` if [`Recovery::on_any_ack`] must handle it.
    #[inline]
    pub(crate) fn on_usual_ack(&mut self, una: u64, blocks: Option<&Blocks>) -> Option<u64> {
        if self.intact && una > self.una && blocks.is_none() && self.recovered_at.is_none() {
            let newly_arrived = una - self.una;
            self.una = una;
            return Some(newly_arrived);
        }
        None
    }

    /// Records the arrival of all packets below `una` and of the packets in `blocks`.
    pub(crate) fn on_ack(&mut self, una: u64, blocks: Option<&Blocks>, times: &AckTimes) -> Progress {
        match self.on_usual_ack(una, blocks) {
            Some(newly_arrived) => Progress { newly_arrived, advanced: true, ..Progress::default() },
            None => self.on_any_ack(una, blocks, times),
        }
    }

    /// Updates `intact` after a change.
    fn review(&mut self) {
        let probing = self.rack.as_ref().is_some_and(|rack| rack.is_probing());
        self.intact = self.gaps.is_none() && self.duplicates == 0 && self.lost_edge <= self.una && !probing;
    }

    /// Handles an acknowledgement outside the usual case of [`Recovery::on_usual_ack`].
    #[inline(never)] // keeps the usual path short
    pub(crate) fn on_any_ack(&mut self, una: u64, blocks: Option<&Blocks>, times: &AckTimes) -> Progress {
        let mut progress = Progress::default();
        match self.mode {
            Retransmission::Reno | Retransmission::NewReno => self.on_plain_ack(una, &mut progress),
            Retransmission::Rfc3517 | Retransmission::Rfc6675 => self.on_selective_ack(una, blocks, &mut progress),
            Retransmission::Rack => self.on_rack_ack(una, blocks, times, &mut progress),
            Retransmission::Quic => {} // `Sender::on_ack_frame` handles its acknowledgements
        }
        progress.event = self.event(&progress);
        self.review();
        progress
    }

    /// Returns the event that the law learns.
    fn event(&mut self, progress: &Progress) -> Option<Event> {
        self.pending = self.count_pending() as u32;
        match self.recovered_at {
            _ if progress.finding == Finding::Spurious => Some(self.undo()),
            Some((point, _)) if self.una >= point => self.recover(),
            // Reno ends recovery at the first new acknowledgement, whatever else was lost.
            Some((_, Cause::Loss)) if self.mode == Retransmission::Reno && progress.advanced => self.recover(),
            None if self.pending > 0 => Some(self.signal_loss()),
            Some(_) if progress.finding == Finding::LostAgain && self.mode != Retransmission::Rfc3517 => {
                Some(self.signal_loss())
            }
            // The window was already reduced for the mark: the loss is only repaired.
            Some((_, Cause::Mark)) if self.pending > 0 => {
                self.recovered_at = Some((self.next, Cause::Loss));
                None
            }
            None if progress.finding == Finding::TailLost => Some(self.signal_loss()),
            _ => None,
        }
    }

    /// Ends a spurious recovery. Packets that wait to be sent again count as in flight.
    fn undo(&mut self) -> Event {
        self.recovered_at = None;
        self.lost_edge = self.lost_edge.min(self.resend_next.max(self.una));
        if let Some(gaps) = &mut self.gaps {
            gaps.lost_again.clear();
        }
        self.pending = self.count_pending() as u32;
        Event::Spurious
    }

    /// Begins a recovery of all packets sent so far. Within a recovery it is a further signal (RFC 5681 §4.3).
    fn signal_loss(&mut self) -> Event {
        if let Some(rack) = &mut self.rack {
            rack.on_signal(self.recovered_at.is_none());
        }
        self.recovered_at = Some((self.next, Cause::Loss));
        if let Some(gaps) = &mut self.gaps {
            gaps.signalled = gaps.resent.len();
        }
        Event::Loss
    }

    fn recover(&mut self) -> Option<Event> {
        let (point, _) = self.recovered_at.take()?;
        if let Some(rack) = &mut self.rack {
            rack.on_recovered();
        }
        self.ignore_duplicates_below = point + 1;
        self.duplicates = 0;
        Some(Event::Recovered)
    }

    /// Handles a reported mark. Returns an event unless a recovery or a reduction is already in progress.
    pub(crate) fn on_mark(&mut self) -> Option<Event> {
        if self.recovered_at.is_some() {
            return None;
        }
        self.recovered_at = Some((self.next, Cause::Mark));
        if let Some(rack) = &mut self.rack {
            rack.on_signal(false);
        }
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
        self.pending = self.count_pending() as u32;
        self.duplicates = 0;
        self.fast_retransmit = false;
        if let Some(rack) = &mut self.rack {
            // The first of several timeouts in a row is the one that can be undone.
            rack.on_timeout(matches!(self.recovered_at, Some((_, Cause::Timeout))));
        }
        self.recovered_at = Some((self.next, Cause::Timeout));
    }
}

/// Scoreboards for tests.
#[cfg(test)]
mod testing {
    use waterfill_laws::units::Duration;

    use super::*;

    pub(super) const NONE: (u64, u64) = (0, 0);

    /// Times of an acknowledgement, for the methods that take none.
    pub(super) const TIMELESS: AckTimes =
        AckTimes { now: Instant::ZERO, echo: Instant::ZERO, base_rtt: Duration::ZERO, smoothed_rtt: Duration::ZERO };

    /// Returns a scoreboard after `n` packets were sent.
    pub(super) fn sent(mode: Retransmission, n: u64) -> Recovery {
        let mut r = Recovery::new(mode);
        for _ in 0..n {
            r.on_sent(Instant::ZERO);
        }
        r
    }
}
