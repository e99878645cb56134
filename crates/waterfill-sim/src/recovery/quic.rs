//! Recovery of QUIC (RFC 9002).
//!
//! Each transmission has a new packet number, so an acknowledgement always says which one has arrived. Data has a number
//! of its own, which stands for an offset in the stream: the data of a lost packet waits here and leaves in a new packet.
//!
//! - `[rfc9002:§6.1]` A packet is lost when one sent later has arrived, and either three more packets were sent up to that
//!   one, or 9/8 of the RTT have passed since it was sent.
//! - `[rfc9002:§6.2]` When nothing arrives for a probe timeout (PTO), two packets are sent whatever the window: new data or
//!   lost data if there is any, otherwise the oldest data in flight. A PTO neither declares losses nor changes the window.
//! - `[rfc9002:§7.3.2]` A loss begins a recovery period unless the packet was sent before the current one began. The
//!   window is reduced at once, and one packet may leave whatever the window. The period ends when a packet that was sent
//!   in it has arrived.
//! - `[rfc9002:§7.6]` When all packets sent within three PTOs are lost, congestion is persistent: the law sees a timeout.
//! - The RFC leaves the response to a spurious loss to implementations (`[rfc9002:§6.1.1]`, `[rfc9002:§A.1]`). Here the law
//!   restores its window when all packets whose loss began or joined a period arrive after all, as for RFC 4015. The
//!   thresholds stay.

use std::collections::VecDeque;

use waterfill_laws::units::{Duration, Instant};

use crate::ack_frame::AckFrame;
use crate::ranges::Ranges;

/// `[rfc9002:§6.1.1]` kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;
/// `[rfc9002:§6.1.2]` kGranularity.
const GRANULARITY: Duration = Duration::from_millis(1);
/// `[rfc9000:§18.2]` Longest delay of an acknowledgement, max_ack_delay.
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// `[rfc9002:§7.6.1]` kPersistentCongestionThreshold.
const PERSISTENT_PTOS: u64 = 3;
/// `[rfc9002:§6.2.4]` Number of packets sent at a PTO. Two are more likely to survive than one.
const PROBES: u8 = 2;
/// Maximum number of doublings of the PTO.
const MAX_BACKOFF: u32 = 16;

/// RTT of a path as the sender knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRtt {
    pub(crate) latest: Duration,
    pub(crate) smoothed: Duration,
    pub(crate) variation: Duration,
    /// Longest delay of the receiver's acknowledgements.
    pub(crate) max_ack_delay: Duration,
}

impl PathRtt {
    /// `[rfc9002:§6.2.1]` Returns the probe timeout without backoff.
    fn pto(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + self.max_ack_delay
    }

    /// `[rfc9002:§6.1.2]` Returns the time after which a packet is lost that a later one has overtaken.
    fn loss_delay(&self) -> Duration {
        (self.latest.max(self.smoothed) * 9 / 8).max(GRANULARITY)
    }
}

/// A packet that is in flight or has arrived.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    data: u64,
    at: Instant,
    arrived: bool,
    /// True if a probe has sent the same data again, which then recovers it if both are lost.
    copied: bool,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
struct LostPacket {
    number: u64,
    data: u64,
    at: Instant,
    /// Number of the recovery period that its loss began or joined.
    period: u32,
}

/// Packets of a QUIC connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quic {
    /// Longest delay of an acknowledgement that the sender has asked for; `None` for [`MAX_ACK_DELAY`].
    pub(crate) asked_delay: Option<Duration>,
    /// Packets `base..base + sent.len()`, of which the first is in flight.
    sent: VecDeque<SentPacket>,
    base: u64,
    in_flight: u64,
    /// Largest packet number that has arrived, plus one.
    arrived_to: u64,
    /// Send time of the newest packet.
    last_sent: Instant,
    pto_count: u32,
    /// Time at which the next packet is lost if it has not arrived (loss_time).
    loss_time: Option<Instant>,
    /// Time at which [`Quic::is_due`] is true.
    timer: Option<Instant>,
    /// Number of packets that may leave whatever the window.
    unlimited: u8,
    /// Number of probes that have not left since the last PTO.
    probes: u8,
    /// Start of the newest recovery period (congestion_recovery_start_time).
    recovery_start: Option<Instant>,
    recovering: bool,
    /// Number of recovery periods so far.
    period: u32,
    /// Sending times of the packets newly found lost, until the law is notified.
    pub(super) newly_lost: VecDeque<Instant>,
    /// Lost packets that may still arrive, in the order of their numbers.
    lost: VecDeque<LostPacket>,
    /// Number of packets of the newest recovery period that are lost and have not arrived since; `None` if the law's
    /// response cannot be undone.
    unrepaired: Option<u64>,
    /// Send time of the first packet of the run of lost packets that ends just below `base`.
    run_start: Option<Instant>,
    /// Data that waits to be sent again.
    waiting: VecDeque<u64>,
    /// Data number below which all data has arrived, and the data that has arrived above it.
    complete: u64,
    above: Ranges,
    /// Largest number of marked packets that an acknowledgement has reported.
    marked: u64,
}

/// What an acknowledgement or the timer shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Number of packets that have arrived.
    pub(crate) newly_arrived: u64,
    /// Number of those that were sent after the recovery period began.
    pub(crate) after_recovery: u64,
    /// Send time of the largest packet number, if it is the first time that this acknowledgement reports it.
    pub(crate) sampled: Option<Instant>,
    /// Number of packets newly reported as marked.
    pub(crate) newly_marked: u64,
    pub(crate) signal: Option<Signal>,
}

/// Signal of congestion, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// A loss begins a recovery period.
    Loss,
    /// A mark begins a recovery period.
    Mark,
    /// All packets of a long time are lost.
    PersistentCongestion,
    /// The recovery period has ended.
    Recovered,
    /// All losses of the recovery period were spurious.
    Spurious,
}

impl Quic {
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) const fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Returns the data number below which all data has arrived.
    pub(crate) const fn complete(&self) -> u64 {
        self.complete
    }

    /// Returns the packet number below which every packet has arrived or is lost.
    pub(crate) const fn decided_to(&self) -> u64 {
        self.base
    }

    /// Returns true if a packet may leave whatever the window.
    pub(crate) const fn may_exceed_window(&self) -> bool {
        self.unlimited > 0
    }

    /// Returns the number of data packets that wait to be sent again.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the data to send again next.
    pub(crate) fn to_resend(&self) -> Option<u64> {
        self.waiting.front().copied()
    }

    /// Records that data given by [`Quic::to_resend`] is sent again.
    pub(crate) fn on_resent(&mut self) {
        self.waiting.pop_front();
        self.drop_arrived();
    }

    /// `[rfc9002:§A.5]` Records the transmission of a packet and returns its number.
    pub(crate) fn on_sent(&mut self, data: u64, now: Instant, rtt: &PathRtt) -> u64 {
        self.sent.push_back(SentPacket { data, at: now, arrived: false, copied: false });
        self.in_flight += 1;
        self.last_sent = now;
        self.unlimited = self.unlimited.saturating_sub(1);
        self.set_timer(now, rtt);
        self.base + self.sent.len() as u64 - 1
    }

    /// Returns the time at which [`Quic::on_timer`] must be called, or `NEVER`.
    pub(crate) fn due(&self) -> Instant {
        self.timer.unwrap_or(Instant::NEVER)
    }

    /// `[rfc9002:§A.7]` Marks the packets that have arrived. The caller then takes the RTT sample and calls
    /// [`Quic::after_ack`].
    pub(crate) fn on_ack(&mut self, now: Instant, frame: &AckFrame) -> Outcome {
        let mut outcome = Outcome::default();
        (self.unlimited, self.probes) = (0, 0);
        let end = self.base + self.sent.len() as u64;
        self.arrived_to = self.arrived_to.max((frame.largest + 1).min(end));
        for (from, to) in frame.ranges() {
            for number in from.max(self.base)..to.min(end) {
                let packet = &mut self.sent[(number - self.base) as usize];
                if std::mem::replace(&mut packet.arrived, true) {
                    continue;
                }
                let SentPacket { data, at, .. } = *packet;
                self.in_flight -= 1;
                outcome.newly_arrived += 1;
                outcome.after_recovery += u64::from(self.recovery_start.is_none_or(|start| at > start));
                if number == frame.largest {
                    outcome.sampled = Some(at);
                }
                self.deliver(data);
            }
            if !self.lost.is_empty() {
                self.find_spurious(from, to, &mut outcome);
            }
        }
        self.drop_arrived();
        outcome.newly_marked = frame.marked.saturating_sub(self.marked);
        self.marked += outcome.newly_marked;
        if outcome.newly_marked > 0 {
            let newest = outcome.sampled.is_some_and(|at| self.recovery_start.is_none_or(|start| at > start));
            outcome.signal = newest.then(|| self.begin(now, Signal::Mark));
        }
        outcome
    }

    /// `[rfc9002:§A.7]` Finds losses after an acknowledgement that has shown `outcome`, and starts the timer.
    pub(crate) fn after_ack(&mut self, now: Instant, rtt: &PathRtt, outcome: &mut Outcome) {
        if outcome.newly_arrived == 0 {
            return;
        }
        let loss = self.detect_losses(now, rtt);
        self.forget_lost(now, rtt);
        outcome.signal = loss.or(outcome.signal);
        if self.recovery_start.is_none() {
            outcome.after_recovery = outcome.newly_arrived;
        }
        if outcome.signal.is_none() && self.recovering && outcome.after_recovery > 0 {
            self.recovering = false;
            outcome.signal = Some(Signal::Recovered);
        }
        self.pto_count = 0;
        self.set_timer(now, rtt);
    }

    /// `[rfc9002:§A.9]` Handles the timer. Returns a signal, and true if probes are due, to be chosen by
    /// [`Quic::probe`].
    pub(crate) fn on_timer(&mut self, now: Instant, rtt: &PathRtt) -> (Option<Signal>, bool) {
        let mut found = (None, false);
        if self.loss_time.is_some() {
            found.0 = self.detect_losses(now, rtt);
        } else if self.in_flight > 0 {
            self.pto_count = (self.pto_count + 1).min(MAX_BACKOFF);
            (self.unlimited, self.probes) = (PROBES, PROBES);
            found.1 = true;
        }
        self.set_timer(now, rtt);
        found
    }

    /// `[ack-frequency:§7]` Returns true if the packet that is being sent asks for an acknowledgement at once: a probe of
    /// a sender that has asked for fewer acknowledgements.
    pub(crate) fn asks_at_once(&mut self) -> bool {
        let probe = self.probes > 0;
        self.probes = self.probes.saturating_sub(1);
        probe && self.asked_delay.is_some()
    }

    /// Fills up the probes with the oldest data in flight if the sender has only `fresh` packets to send.
    pub(crate) fn probe(&mut self, fresh: u64) {
        let wanted = u64::from(PROBES).saturating_sub(fresh) as usize;
        let oldest = self.sent.iter_mut().filter(|packet| !packet.arrived && !packet.copied);
        for packet in oldest.take(wanted) {
            packet.copied = true;
            if packet.data >= self.complete && !self.above.contains(packet.data) {
                self.waiting.push_back(packet.data);
            }
        }
    }

    /// Records the arrival of data.
    fn deliver(&mut self, data: u64) {
        if data >= self.complete {
            self.above.insert(data, data + 1);
            self.complete = self.above.first_missing(self.complete);
            self.above.remove_below(self.complete);
        }
    }

    fn has_arrived(&self, data: u64) -> bool {
        data < self.complete || self.above.contains(data)
    }

    /// Removes data from the head of the queue that has arrived after all.
    fn drop_arrived(&mut self) {
        while self.waiting.front().is_some_and(|&data| self.has_arrived(data)) {
            self.waiting.pop_front();
        }
    }

    /// Finds lost packets that have arrived after all.
    fn find_spurious(&mut self, from: u64, to: u64, outcome: &mut Outcome) {
        let first = self.lost.partition_point(|packet| packet.number < from);
        let past = self.lost.partition_point(|packet| packet.number < to);
        if first == past {
            return;
        }
        self.run_start = None;
        for _ in first..past {
            let Some(packet) = self.lost.remove(first) else { return };
            self.deliver(packet.data);
            let Some(unrepaired) = self.unrepaired.as_mut().filter(|_| packet.period == self.period) else { continue };
            *unrepaired -= 1;
            if *unrepaired == 0 {
                (self.recovery_start, self.unrepaired) = (None, None);
                self.recovering = false;
                outcome.signal = Some(Signal::Spurious);
            }
        }
    }

    /// Begins a recovery period.
    fn begin(&mut self, now: Instant, signal: Signal) -> Signal {
        self.recovery_start = Some(now);
        self.recovering = true;
        self.period = self.period.wrapping_add(1);
        self.unlimited = self.unlimited.max(1);
        self.unrepaired = (signal == Signal::Loss).then_some(0);
        signal
    }

    /// `[rfc9002:§A.10]` Declares packets lost and finds the time at which the next one is.
    fn detect_losses(&mut self, now: Instant, rtt: &PathRtt) -> Option<Signal> {
        self.loss_time = None;
        let delay = rtt.loss_delay();
        let (mut newest, mut span) = (None, Duration::ZERO);
        let known = self.lost.len();
        while let Some(&packet) = self.sent.front() {
            let number = self.base;
            if packet.arrived {
                self.run_start = None;
            } else {
                if number >= self.arrived_to {
                    break;
                }
                if number + PACKET_THRESHOLD >= self.arrived_to && packet.at + delay > now {
                    self.loss_time = Some(packet.at + delay);
                    break;
                }
                newest = Some(packet.at);
                span = span.max(packet.at.since(*self.run_start.get_or_insert(packet.at)));
                self.lose(number, packet);
            }
            self.sent.pop_front();
            self.base += 1;
        }
        let newest = newest?;
        let begins = self.recovery_start.is_none_or(|start| newest > start).then(|| self.begin(now, Signal::Loss));
        let lost = self.lost.range_mut(known..);
        if let Some(unrepaired) = &mut self.unrepaired {
            *unrepaired += lost.len() as u64;
        }
        lost.for_each(|packet| packet.period = self.period);
        if span > rtt.pto() * PERSISTENT_PTOS {
            (self.run_start, self.recovery_start, self.unrepaired) = (None, None, None);
            self.recovering = false;
            return Some(Signal::PersistentCongestion);
        }
        begins
    }

    /// Declares a packet lost.
    fn lose(&mut self, number: u64, packet: SentPacket) {
        let SentPacket { data, at, copied, .. } = packet;
        self.in_flight -= 1;
        self.newly_lost.push_back(at);
        self.lost.push_back(LostPacket { number, data, at, period: self.period });
        if !copied && !self.has_arrived(data) {
            self.waiting.push_back(data);
        }
    }

    /// Forgets lost packets that are not expected any more: those sent three PTOs ago.
    fn forget_lost(&mut self, now: Instant, rtt: &PathRtt) {
        let keep = rtt.pto() * PERSISTENT_PTOS;
        while self.lost.front().is_some_and(|packet| packet.at + keep < now) {
            self.lost.pop_front();
        }
    }

    /// `[rfc9002:§A.8]` Sets the timer.
    fn set_timer(&mut self, now: Instant, rtt: &PathRtt) {
        let pto = || self.last_sent + rtt.pto() * (1 << self.pto_count);
        let timer = self.loss_time.or_else(|| (self.in_flight > 0).then(pto));
        self.timer = timer.map(|time| time.max(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// `[ack-frequency:§7]` Both probes of a PTO ask for an acknowledgement at once, if the sender asks for fewer.
    #[test]
    fn ack_frequency_7_probes_ask_at_once() {
        let of = |asked_delay| {
            let mut quic = Quic { asked_delay, ..Quic::default() };
            quic.on_sent(0, ms(0), &rtt());
            let before = quic.asks_at_once();
            assert!(quic.on_timer(ms(126), &rtt()).1, "a PTO");
            [before, quic.asks_at_once(), quic.asks_at_once(), quic.asks_at_once()]
        };
        assert_eq!(of(Some(Duration::from_millis(50))), [false, true, true, false]);
        assert_eq!(of(None), [false; 4]);
    }

    /// An RTT of 100 ms without variation: a PTO of 126 ms, and 112.5 ms until an overtaken packet is lost.
    fn rtt() -> PathRtt {
        let rtt = Duration::from_millis(100);
        PathRtt { latest: rtt, smoothed: rtt, variation: Duration::ZERO, max_ack_delay: MAX_ACK_DELAY }
    }

    /// Returns the packets of a sender that has sent `n`, one per millisecond from 0 ms.
    fn sent(n: u64) -> Quic {
        let mut quic = Quic::default();
        (0..n).for_each(|i| _ = quic.on_sent(i, ms(i), &rtt()));
        quic
    }

    /// Acknowledges the packets `numbers` at `now` ms.
    fn acknowledge(quic: &mut Quic, now: u64, numbers: &[u64]) -> Outcome {
        let mut received = Ranges::default();
        for &n in numbers {
            received.insert(n, n + 1);
        }
        let frame = AckFrame::decode(&AckFrame::encode(&received, Duration::ZERO, 0));
        let mut outcome = quic.on_ack(ms(now), &frame);
        quic.after_ack(ms(now), &rtt(), &mut outcome);
        outcome
    }

    /// `[rfc9002:§6.1]` The third packet after a gap, or 9/8 of the RTT, makes a packet lost.
    #[test]
    fn rfc9002_6_1_both_thresholds() {
        let mut quic = sent(4);
        assert_eq!(acknowledge(&mut quic, 103, &[2]).signal, None);
        assert_eq!(quic.due(), ms(0) + Duration::from_micros(112_500), "the time threshold of packet 0");
        assert_eq!(acknowledge(&mut quic, 104, &[3]).signal, Some(Signal::Loss), "3 = 0 + kPacketThreshold");
        assert_eq!((quic.to_resend(), quic.in_flight()), (Some(0), 1), "packet 1 is not lost yet");
        assert_eq!(quic.on_timer(quic.due(), &rtt()), (None, false), "the same recovery period");
        assert_eq!((quic.waiting(), quic.in_flight()), (2, 0));
    }

    /// `[rfc9002:§6.2]` A probe timeout neither declares losses nor signals congestion, and doubles.
    #[test]
    fn rfc9002_6_2_a_probe_timeout_declares_nothing_lost() {
        let mut quic = sent(5);
        assert_eq!(quic.due(), ms(4 + 126));
        assert_eq!(quic.on_timer(quic.due(), &rtt()), (None, true));
        quic.probe(1);
        assert!(quic.may_exceed_window());
        assert_eq!((quic.in_flight(), quic.to_resend(), quic.waiting()), (5, Some(0), 1), "one packet is new data");
        quic.on_resent();
        assert_eq!(quic.on_sent(0, ms(130), &rtt()), 5, "a new packet number");
        assert_eq!(quic.due(), ms(130 + 2 * 126));
        quic.on_timer(quic.due(), &rtt());
        quic.probe(0);
        assert_eq!(quic.waiting.make_contiguous(), [1, 2], "packet 0 has been repeated");
        acknowledge(&mut quic, 400, &[1]);
        assert_eq!(quic.to_resend(), Some(2), "data that has arrived is not sent again");
    }

    /// `[rfc9002:§7.3.2]` A loss begins a period unless its packet was sent before the current one began.
    #[test]
    fn rfc9002_7_3_2_periods_begin_by_the_time_of_sending() {
        let mut quic = sent(10);
        assert_eq!(acknowledge(&mut quic, 105, &[3]).signal, Some(Signal::Loss));
        assert_eq!(acknowledge(&mut quic, 106, &[5]).signal, None, "packet 2 was sent before");
        (10..15).for_each(|i| _ = quic.on_sent(i, ms(100 + i), &rtt()));
        let ended = acknowledge(&mut quic, 215, &[6, 7, 8, 9, 10]);
        assert_eq!((ended.signal, ended.newly_arrived, ended.after_recovery), (Some(Signal::Recovered), 5, 1));
        assert_eq!(acknowledge(&mut quic, 220, &[14]).signal, Some(Signal::Loss), "packet 11 was sent after");
    }

    /// `[rfc9002:§7.6]` Losses over more than three PTOs with nothing received in between are persistent congestion.
    #[test]
    fn rfc9002_7_6_persistent_congestion() {
        for (between, expected) in [(None, Signal::PersistentCongestion), (Some(1), Signal::Loss)] {
            let mut quic = Quic::default();
            for (number, at) in [0, 150, 379, 500, 501, 502].into_iter().enumerate() {
                quic.on_sent(number as u64, ms(at), &rtt());
            }
            if let Some(number) = between {
                acknowledge(&mut quic, 300, &[number]);
            }
            assert_eq!(acknowledge(&mut quic, 602, &[5]).signal, Some(expected), "379 ms are more than 3 × 126 ms");
        }
    }

    /// The law restores its window when all lost packets of a period arrive, in any acknowledgement.
    #[test]
    fn a_period_is_spurious_when_all_its_packets_arrive() {
        let mut quic = sent(10);
        assert_eq!(acknowledge(&mut quic, 106, &[4]).signal, Some(Signal::Loss), "packets 0 and 1");
        assert_eq!(acknowledge(&mut quic, 107, &[0]).signal, None);
        assert_eq!(quic.to_resend(), Some(1), "packet 0 need not be repeated");
        let last = acknowledge(&mut quic, 108, &[1]);
        assert_eq!((last.signal, last.newly_arrived, quic.to_resend()), (Some(Signal::Spurious), 0, None));
        assert_eq!(quic.complete(), 2);
    }
}
