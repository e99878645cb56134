//! Delivery rate of a connection, sampled at each acknowledgement.
//!
//! A packet leaves with a [`Note`] of how much had been delivered by then and when. When it is acknowledged, what has been
//! delivered since, over the time that took, is a sample; the time that sending took bounds it, lest
//! acknowledgements that come compressed look like a fast path. Source: draft-cheng-iccrg-delivery-rate-estimation-00.
//! Amounts are in packets.

use crate::protocol::{Sending, Wire};
use crate::units::{Duration, Instant};

/// The host's record of a packet in flight (P.* in the draft).
///
/// Kept in 32-bit words, of which there are no more than the largest header has: so the packets of other
/// protocols do not grow. The packet's own time of sending is not among them: the acknowledgement's RTT gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// P.delivered: lowest 32 bits of the number of packets delivered, which wraps like a sequence number.
    delivered: u32,
    /// P.delivered_time, as its high and low words.
    delivered_time: [u32; 2],
    /// P.sent_time − P.first_sent_time, as its high and low words. The topmost bit is P.is_app_limited.
    send_elapsed: [u32; 2],
}

const APP_LIMITED: u64 = 1 << 63;

const fn split(x: u64) -> [u32; 2] {
    [(x >> 32) as u32, x as u32]
}

fn joined([high, low]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl Note {
    fn new(delivered: u64, delivered_time: Instant, send_elapsed: Duration, app_limited: bool) -> Self {
        let limited = if app_limited { APP_LIMITED } else { 0 };
        Self {
            delivered: delivered as u32,
            delivered_time: split(delivered_time.as_ps()),
            send_elapsed: split(send_elapsed.as_ps() | limited),
        }
    }
    fn delivered_time(&self) -> Instant {
        Instant::from_ps(joined(self.delivered_time))
    }
    fn send_elapsed(&self) -> Duration {
        Duration::from_ps(joined(self.send_elapsed) & !APP_LIMITED)
    }
    fn app_limited(&self) -> bool {
        joined(self.send_elapsed) & APP_LIMITED != 0
    }
    /// Returns P.delivered, restored from its lowest bits for a connection with `delivered` packets delivered by now.
    fn delivered(&self, delivered: u64) -> u64 {
        delivered.saturating_sub(u64::from((delivered as u32).wrapping_sub(self.delivered)))
    }
}

/// Encoding of the words in network byte order.
impl Wire for Note {
    const BYTES: usize = 20;
    fn encode(&self, out: &mut [u8]) {
        let ([a, b], [c, d]) = (self.delivered_time, self.send_elapsed);
        for (bytes, word) in out.chunks_exact_mut(4).zip([self.delivered, a, b, c, d]) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let word = |i: usize| u32::from_be_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        Some(Self { delivered: word(0), delivered_time: [word(1), word(2)], send_elapsed: [word(3), word(4)] })
    }
}

/// Rate sample of one acknowledgement (rs.* in the draft).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Number of packets that had been delivered when the acknowledged packet left (rs.prior_delivered).
    pub prior_delivered: u64,
    /// Delivery rate in packets/s; `None` if the interval is shorter than the minimum RTT.
    pub rate: Option<f64>,
    /// True if the application limited the sample (rs.is_app_limited).
    pub app_limited: bool,
}

/// Rate estimator of one connection (C.* in the draft).
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimator {
    /// C.delivered: number of packets delivered.
    delivered: f64,
    /// C.delivered_time: time of the last delivery.
    delivered_time: Instant,
    /// C.first_sent_time: departure time of the first packet of the sample.
    first_sent_time: Instant,
    /// C.app_limited: number of delivered packets up to which samples are limited by the application; 0 for none.
    app_limited_until: f64,
}

impl Estimator {
    /// Returns the number of packets delivered so far.
    #[must_use]
    pub const fn delivered(&self) -> f64 {
        self.delivered
    }

    /// Returns true if the next packet would be recorded as limited by the application.
    #[must_use]
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0.0
    }

    /// `[delivery-rate:send]` Records the departure of a packet; returns the note to send with it.
    pub fn on_send(&mut self, sending: &Sending) -> Note {
        if sending.in_flight.as_bytes() <= 0.0 {
            self.first_sent_time = sending.now;
            self.delivered_time = sending.now;
        }
        let send_elapsed = sending.now.since(self.first_sent_time);
        Note::new(self.delivered as u64, self.delivered_time, send_elapsed, self.is_app_limited())
    }

    /// `[delivery-rate:app-limited]` Counts samples as limited by the application until all packets now in flight are
    /// delivered.
    pub fn limit_by_application(&mut self, in_flight: f64) {
        self.app_limited_until = (self.delivered + in_flight).max(1.0);
    }

    /// `[delivery-rate:ack]` Records the arrival of another `acked` packets. Returns a rate sample, or `None` without
    /// new packets or without the sender's note. `note` belongs to the newest of these packets.
    pub fn on_ack(&mut self, acked: f64, note: &Note, times: Times) -> Option<RateSample> {
        if acked <= 0.0 {
            return None;
        }
        self.delivered += acked;
        self.delivered_time = times.now;
        if self.app_limited_until > 0.0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0.0;
        }
        if note.delivered_time() == Instant::ZERO {
            return None; // nothing was noted
        }
        self.first_sent_time = self.first_sent_time.max(times.now.before(times.rtt));
        let prior_delivered = note.delivered(self.delivered as u64);
        let interval = note.send_elapsed().max(times.now.since(note.delivered_time()));
        let rate = (interval >= times.base_rtt && !interval.is_zero())
            .then(|| rate(self.delivered - prior_delivered as f64, interval));
        Some(RateSample { prior_delivered, rate, app_limited: note.app_limited() })
    }
}

/// Time of an acknowledgement, and the RTTs known then.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Time of the acknowledgement.
    pub now: Instant,
    /// RTT of the newest acknowledged packet.
    pub rtt: Duration,
    /// Minimum RTT of the connection.
    pub base_rtt: Duration,
}

/// `[delivery-rate:rate]` Returns the delivery rate in packets/s: `delivered / max(send_elapsed, ack_elapsed)`.
fn rate(delivered: f64, interval: Duration) -> f64 {
    delivered / interval.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PacketKind;
    use crate::units::Volume;

    const RTT: Duration = Duration::from_millis(100);

    fn ms(t: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(t)
    }
    fn send(estimator: &mut Estimator, at: u64, in_flight: f64) -> Note {
        let packet = Volume::from_bytes(1500.0);
        estimator.on_send(&Sending { in_flight: in_flight * packet, ..Sending::new(ms(at), PacketKind::Data, packet) })
    }
    fn receive(estimator: &mut Estimator, at: u64, rtt: u64, note: &Note) -> RateSample {
        let times = Times { now: ms(at), rtt: Duration::from_millis(rtt), base_rtt: RTT };
        estimator.on_ack(1.0, note, times).expect("it was noted")
    }

    /// `[delivery-rate:rate, ack]` A rate is the number of packets delivered between a packet's departure and its
    /// acknowledgement, divided by the time between them.
    #[test]
    fn a_rate_is_what_was_delivered_over_the_time_it_took() {
        let mut e = Estimator::default();
        // Four packets leave 10 ms apart from 1 s on and arrive as they left.
        let notes: Vec<Note> = (0..4).map(|i| send(&mut e, 1000 + 10 * i, i as f64)).collect();
        let rates: Vec<f64> =
            notes.iter().zip(0..).map(|(note, i)| receive(&mut e, 1100 + 10 * i, 100, note).rate.unwrap()).collect();
        // Each left with nothing delivered: 1 packet in 100 ms, 2 in 110, 3 in 120, 4 in 130.
        for (rate, wanted) in rates.iter().zip([1.0 / 0.1, 2.0 / 0.11, 3.0 / 0.12, 4.0 / 0.13]) {
            assert!((rate - wanted).abs() < 1e-9, "{rates:?}");
        }
        // A packet sent at 1.1 s, after one had been delivered: by 1.21 s four more.
        let mut e = Estimator::default();
        let notes: Vec<Note> = (0..4).map(|i| send(&mut e, 1000 + 10 * i, i as f64)).collect();
        receive(&mut e, 1100, 100, &notes[0]);
        let next = send(&mut e, 1100, 3.0);
        for i in 1..4 {
            receive(&mut e, 1100 + 10 * i, 100, &notes[i as usize]);
        }
        let sample = receive(&mut e, 1200, 100, &next);
        assert_eq!(sample.prior_delivered, 1);
        assert!((sample.rate.unwrap() - 4.0 / 0.1).abs() < 1e-9);
    }

    /// `[delivery-rate:send]` Compressed acknowledgements do not raise the rate, because the rate counts at least the
    /// time that sending took.
    #[test]
    fn compressed_acknowledgements_do_not_look_fast() {
        let mut e = Estimator::default();
        // Ten packets leave over 900 ms, and then their acknowledgements all come within 2 ms.
        let notes: Vec<Note> = (0..10).map(|i| send(&mut e, 1000 + 100 * i, i as f64)).collect();
        receive(&mut e, 2000, 1000, &notes[0]);
        let next = send(&mut e, 2000, 9.0);
        for i in 1..10 {
            receive(&mut e, 2001, 1001 - 100 * i, &notes[i as usize]);
        }
        // Ten in the 100 ms since the first of them; but what left with them had taken a second to send.
        let sample = receive(&mut e, 2100, 100, &next);
        assert!((sample.rate.unwrap() - 10.0 / 1.0).abs() < 1e-9, "{sample:?}");
    }

    #[test]
    fn an_interval_below_any_round_trip_is_no_sample() {
        let mut e = Estimator::default();
        let note = send(&mut e, 1000, 0.0);
        assert_eq!(receive(&mut e, 1050, 50, &note).rate, None);
        let times = Times { now: ms(1200), rtt: RTT, base_rtt: RTT };
        assert_eq!(e.on_ack(0.0, &note, times), None, "nothing has arrived");
        assert_eq!(e.on_ack(1.0, &Note::default(), times), None, "nothing was noted");
    }

    /// `[delivery-rate:app-limited]` Packets sent after the application paused are marked as limited by the
    /// application.
    #[test]
    fn what_was_sent_after_the_application_paused_says_so() {
        let mut e = Estimator::default();
        let first = send(&mut e, 1000, 0.0);
        e.limit_by_application(1.0);
        let second = send(&mut e, 1050, 1.0);
        assert!(!receive(&mut e, 1100, 100, &first).app_limited);
        assert!(receive(&mut e, 1150, 100, &second).app_limited);
        assert!(!e.is_app_limited(), "all that was limited has arrived");
    }

    #[test]
    fn counts_wrap_as_sequence_numbers_do() {
        let note = Note::new((1 << 32) - 2, ms(1), RTT, true);
        assert_eq!(note.delivered((1 << 32) + 5), (1 << 32) - 2);
        assert_eq!((note.delivered_time(), note.send_elapsed(), note.app_limited()), (ms(1), RTT, true));
        assert_eq!(size_of::<Note>(), Note::BYTES);
    }
}
