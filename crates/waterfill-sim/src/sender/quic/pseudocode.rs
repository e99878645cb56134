//! The pseudo-code of RFC 9002 (appendices A and B) and the receiver of RFC 9000 §13.2, for comparison.
//!
//! Written from the RFCs, with their names and without any code of this crate's recovery. Times are in microseconds and
//! windows in packets. Three choices that the RFCs leave open are ours: two probes per timeout, data of lost packets
//! before new data, and new data before the oldest data in flight as a probe.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

const K_PACKET_THRESHOLD: u64 = 3;
const K_GRANULARITY: f64 = 1_000.0;
const MAX_ACK_DELAY: f64 = 25_000.0;
const K_MINIMUM_WINDOW: f64 = 2.0;
const PROBES: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Sent {
    time_sent: f64,
    data: u64,
}

/// An ACK frame.
#[derive(Clone, Debug)]
pub(super) struct Ack {
    numbers: BTreeSet<u64>,
    ack_delay: f64,
}

/// Sender of appendix A, with the congestion control of appendix B.
#[derive(Debug)]
pub(super) struct Sender {
    sent_packets: BTreeMap<u64, Sent>,
    next_number: u64,
    largest_acked_packet: Option<u64>,
    latest_rtt: f64,
    smoothed_rtt: f64,
    rttvar: f64,
    min_rtt: f64,
    loss_time: Option<f64>,
    time_of_last_ack_eliciting_packet: f64,
    pto_count: i32,
    pub(super) loss_detection_timer: Option<f64>,
    congestion_window: f64,
    ssthresh: f64,
    congestion_recovery_start_time: f64,
    /// Packets that may be sent whatever the window.
    extra: u32,
    /// Data: how much there is, the next new number, what is lost, what has arrived, and what probes repeat.
    total: u64,
    new_data: u64,
    lost_data: VecDeque<u64>,
    acked_data: BTreeSet<u64>,
    declared_lost: BTreeMap<u64, u64>,
    repeated: BTreeSet<u64>,
    limited: bool,
}

impl Sender {
    /// Returns a sender of `total` packets whose handshake took `rtt`.
    pub(super) fn new(total: u64, rtt: f64) -> Self {
        Self {
            sent_packets: BTreeMap::new(),
            next_number: 0,
            largest_acked_packet: None,
            latest_rtt: rtt,
            smoothed_rtt: rtt,
            rttvar: rtt / 2.0,
            min_rtt: rtt,
            loss_time: None,
            time_of_last_ack_eliciting_packet: 0.0,
            pto_count: 0,
            loss_detection_timer: None,
            congestion_window: 10.0,
            ssthresh: f64::INFINITY,
            congestion_recovery_start_time: -1.0,
            extra: 0,
            total,
            new_data: 0,
            lost_data: VecDeque::new(),
            acked_data: BTreeSet::new(),
            declared_lost: BTreeMap::new(),
            repeated: BTreeSet::new(),
            limited: false,
        }
    }

    /// Sends a packet if the window allows it. Returns its number and that of its data.
    pub(super) fn send(&mut self, now: f64) -> Option<(u64, u64)> {
        let window = self.congestion_window.floor().max(K_MINIMUM_WINDOW);
        if self.sent_packets.len() as f64 >= window && self.extra == 0 {
            return None;
        }
        while self.lost_data.front().is_some_and(|data| self.acked_data.contains(data)) {
            self.lost_data.pop_front();
        }
        let data = match self.lost_data.pop_front() {
            Some(data) => data,
            None if self.new_data < self.total => {
                self.new_data += 1;
                self.new_data - 1
            }
            None => {
                self.limited = true;
                return None;
            }
        };
        self.extra = self.extra.saturating_sub(1);
        self.on_packet_sent(now, data);
        Some((self.next_number - 1, data))
    }

    fn on_packet_sent(&mut self, now: f64, data: u64) {
        self.sent_packets.insert(self.next_number, Sent { time_sent: now, data });
        self.next_number += 1;
        self.time_of_last_ack_eliciting_packet = now;
        self.set_loss_detection_timer();
    }

    pub(super) fn on_ack_received(&mut self, now: f64, ack: &Ack) {
        let Some(&largest) = ack.numbers.last() else { return };
        self.largest_acked_packet = self.largest_acked_packet.max(Some(largest));
        let newly: Vec<(u64, Sent)> =
            ack.numbers.iter().filter_map(|number| Some((*number, self.sent_packets.remove(number)?))).collect();
        // RFC 9000 §13.3: data of a packet that was declared lost and has arrived need not be sent again.
        let late = ack.numbers.iter().filter_map(|number| self.declared_lost.remove(number));
        self.acked_data.extend(late.chain(newly.iter().map(|(_, sent)| sent.data)));
        let Some(&(newest, Sent { time_sent, .. })) = newly.last() else { return };
        self.extra = 0;
        if newest == largest {
            self.latest_rtt = now - time_sent;
            self.update_rtt(ack.ack_delay);
        }
        let lost = self.detect_and_remove_lost_packets(now);
        if !lost.is_empty() {
            self.on_packets_lost(now, &lost);
        }
        for (_, sent) in newly {
            self.on_packet_acked(sent.time_sent);
        }
        self.limited = false;
        self.pto_count = 0;
        self.set_loss_detection_timer();
    }

    fn update_rtt(&mut self, ack_delay: f64) {
        self.min_rtt = self.min_rtt.min(self.latest_rtt);
        let ack_delay = ack_delay.min(MAX_ACK_DELAY);
        let mut adjusted_rtt = self.latest_rtt;
        if self.latest_rtt >= self.min_rtt + ack_delay {
            adjusted_rtt = self.latest_rtt - ack_delay;
        }
        self.rttvar = 0.75 * self.rttvar + 0.25 * (self.smoothed_rtt - adjusted_rtt).abs();
        self.smoothed_rtt = 0.875 * self.smoothed_rtt + 0.125 * adjusted_rtt;
    }

    fn pto(&self) -> f64 {
        self.smoothed_rtt + (4.0 * self.rttvar).max(K_GRANULARITY) + MAX_ACK_DELAY
    }

    fn set_loss_detection_timer(&mut self) {
        self.loss_detection_timer = if self.loss_time.is_some() {
            self.loss_time
        } else if self.sent_packets.is_empty() {
            None
        } else {
            Some(self.time_of_last_ack_eliciting_packet + self.pto() * 2f64.powi(self.pto_count))
        };
    }

    pub(super) fn on_loss_detection_timeout(&mut self, now: f64) {
        if self.loss_time.is_some() {
            let lost = self.detect_and_remove_lost_packets(now);
            self.on_packets_lost(now, &lost);
        } else {
            self.send_one_or_two_ack_eliciting_packets();
            self.pto_count += 1;
        }
        self.set_loss_detection_timer();
    }

    fn send_one_or_two_ack_eliciting_packets(&mut self) {
        self.extra = PROBES;
        let ready = self.lost_data.len() as u64 + (self.total - self.new_data);
        let mut wanted = u64::from(PROBES).saturating_sub(ready);
        for (number, sent) in &self.sent_packets {
            if wanted > 0 && self.repeated.insert(*number) {
                wanted -= 1;
                self.lost_data.push_back(sent.data);
            }
        }
    }

    fn detect_and_remove_lost_packets(&mut self, now: f64) -> Vec<Sent> {
        self.loss_time = None;
        let Some(largest) = self.largest_acked_packet else { return Vec::new() };
        let loss_delay = (9.0 / 8.0 * self.latest_rtt.max(self.smoothed_rtt)).max(K_GRANULARITY);
        let mut lost = Vec::new();
        let unacked: Vec<(u64, Sent)> = self.sent_packets.range(..=largest).map(|(n, sent)| (*n, *sent)).collect();
        for (number, sent) in unacked {
            // Half a microsecond: this clock's times are rounded.
            if sent.time_sent <= now - loss_delay + 0.5 || largest >= number + K_PACKET_THRESHOLD {
                self.sent_packets.remove(&number);
                self.declared_lost.insert(number, sent.data);
                lost.push(sent);
                if !self.repeated.contains(&number) && !self.acked_data.contains(&sent.data) {
                    self.lost_data.push_back(sent.data);
                }
            } else {
                let time = sent.time_sent + loss_delay;
                self.loss_time = Some(self.loss_time.map_or(time, |known| known.min(time)));
            }
        }
        lost
    }

    fn in_congestion_recovery(&self, sent_time: f64) -> bool {
        sent_time <= self.congestion_recovery_start_time
    }

    fn on_packet_acked(&mut self, time_sent: f64) {
        if self.limited || self.in_congestion_recovery(time_sent) {
            return;
        }
        self.congestion_window +=
            if self.congestion_window < self.ssthresh { 1.0 } else { 1.0 / self.congestion_window };
    }

    fn on_congestion_event(&mut self, now: f64, sent_time: f64) {
        if !self.in_congestion_recovery(sent_time) {
            self.congestion_recovery_start_time = now;
            self.ssthresh = self.congestion_window * 0.5;
            self.congestion_window = self.ssthresh.max(K_MINIMUM_WINDOW);
            self.ssthresh = self.congestion_window;
            self.extra = 1; // MaybeSendOnePacket
        }
    }

    fn on_packets_lost(&mut self, now: f64, lost: &[Sent]) {
        let [Some(first), Some(last)] = [lost.first(), lost.last()] else { return };
        self.on_congestion_event(now, last.time_sent);
        // Packets leave this list only by arriving or being lost, so all between the two are lost unless one between
        // them has arrived: the caller's patterns lose whole outages.
        if last.time_sent - first.time_sent > 3.0 * self.pto() {
            self.congestion_window = K_MINIMUM_WINDOW;
            self.congestion_recovery_start_time = -1.0;
            self.min_rtt = self.latest_rtt;
        }
    }
}

/// Receiver that acknowledges every second packet.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    numbers: BTreeSet<u64>,
    largest_at: f64,
    since_ack: u32,
    pub(super) timer: Option<f64>,
}

impl Receiver {
    pub(super) fn on_packet(&mut self, now: f64, number: u64, last: bool) -> Option<Ack> {
        let largest = self.numbers.last().copied();
        if largest.is_none_or(|largest| number > largest) {
            self.largest_at = now;
        }
        let expected = largest.map_or(0, |largest| largest + 1);
        self.numbers.insert(number);
        self.since_ack += 1;
        if number != expected || self.since_ack == 2 || last {
            return Some(self.ack(now));
        }
        self.timer.get_or_insert(now + MAX_ACK_DELAY);
        None
    }

    pub(super) fn ack(&mut self, now: f64) -> Ack {
        (self.since_ack, self.timer) = (0, None);
        Ack { numbers: self.numbers.clone(), ack_delay: now - self.largest_at }
    }
}
