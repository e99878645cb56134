//! Controlled delay (RFC 8289): drops at the head, when even the smallest sojourn time of an interval was above target.
//!
//! ```text
//!            sojourn ≥ target for an interval: drop one
//!   waiting ───────────────────────────────────────────▶ dropping: the n-th drop interval/√n after the one before
//!      ▲                                                     │
//!      └─────────────────────────────────────────────────────┘
//!        sojourn < target, or no more than a packet is left
//! ```
//!
//! Readings: the full packet that may stay whatever its sojourn (`maxpacket`) is the scenario's packet. A packet that may
//! be marked is marked and sent in place of a drop, and counts as one, as in RFC 8290.

use waterfill_laws::units::{Duration, Instant};

use waterfill_network::CodelSpec;

use super::{Arriving, Backlog, Discipline, Fates, Fifo, Waiting};
use crate::packet::Flags;

/// RFC 8289 §5: a dropping state entered within so many intervals of the last one takes up its rate.
const RESUME_INTERVALS: u64 = 16;

/// The law, for one first-in-first-out queue.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    ecn: bool,
    /// With no more than this left, nothing is dropped.
    packet_bytes: u64,
    /// When the sojourn time will have been above target for an interval; none while below.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when it was entered.
    last_count: u32,
}

/// `[rfc8289:control-law]` The next drop, `interval / √count` after this one.
fn control_law(now: Instant, interval: Duration, count: u32) -> Instant {
    now + Duration::from_secs(interval.as_secs() / f64::from(count).sqrt())
}

impl Codel {
    pub(super) fn new(spec: &CodelSpec, packet_bytes: u16) -> Self {
        Self {
            target: Duration::from_secs(spec.target_s),
            interval: Duration::from_secs(spec.interval_s),
            ecn: spec.ecn,
            packet_bytes: u64::from(packet_bytes),
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// The packet to send, after those that are dropped.
    pub(super) fn dequeue(&mut self, now: Instant, fifo: &mut Fifo, fates: &mut Fates) -> Option<Waiting> {
        let (mut head, too_long) = self.take(now, fifo)?;
        if self.dropping {
            self.dropping = too_long;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let next = control_law(self.drop_next, self.interval, self.count);
                if self.mark(&mut head, fates) {
                    self.drop_next = next;
                    break;
                }
                fates.dropped(&head);
                (head, self.dropping) = self.take(now, fifo)?;
                if self.dropping {
                    self.drop_next = next;
                }
            }
        } else if too_long {
            self.enter(now);
            if !self.mark(&mut head, fates) {
                fates.dropped(&head);
                (head, _) = self.take(now, fifo)?;
            }
        }
        Some(head)
    }

    /// Enters the dropping state, at the rate it had if that is not long ago.
    fn enter(&mut self, now: Instant) {
        self.dropping = true;
        let before = self.count - self.last_count;
        let recent = now.since(self.drop_next) < self.interval * RESUME_INTERVALS;
        self.count = if before > 1 && recent { before } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, self.interval, self.count);
    }

    fn mark(&self, head: &mut Waiting, fates: &mut Fates) -> bool {
        let may = self.ecn && head.packet.flags.has(Flags::MARKABLE);
        if may {
            fates.marked(head);
        }
        may
    }

    /// Takes out the head, and says whether it may be dropped: the sojourn times have all been too long for an interval.
    fn take(&mut self, now: Instant, fifo: &mut Fifo) -> Option<(Waiting, bool)> {
        let Some(head) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(head.since) < self.target || fifo.bytes <= self.packet_bytes {
            self.first_above = None;
            return Some((head, false));
        }
        let from = *self.first_above.get_or_insert(now + self.interval);
        Some((head, now >= from))
    }
}

/// CoDel as the only queue of a link; what finds no room is dropped.
#[derive(Debug)]
pub(super) struct CodelQueue {
    law: Codel,
    fifo: Fifo,
}

impl CodelQueue {
    pub(super) fn new(law: Codel) -> Self {
        Self { law, fifo: Fifo::default() }
    }
}

impl Discipline for CodelQueue {
    fn enqueue(&mut self, waiting: Waiting, arriving: &Arriving, fates: &mut Fates) {
        if arriving.fits(waiting.packet.bytes) {
            self.fifo.push(waiting);
        } else {
            fates.dropped(&waiting);
        }
    }

    fn dequeue(&mut self, now: Instant, fates: &mut Fates) -> Option<Waiting> {
        self.law.dequeue(now, &mut self.fifo, fates)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn heap_bytes(&self) -> usize {
        self.fifo.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packet;
    use super::*;

    fn codel() -> Codel {
        Codel::new(&CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true }, 1500)
    }

    fn ms(ms: f64) -> Instant {
        Instant::from_secs(ms * 1e-3)
    }

    #[test]
    fn rfc8289_control_law_by_hand() {
        let interval = Duration::from_millis(100);
        assert_eq!(control_law(ms(7.0), interval, 1), ms(107.0));
        assert_eq!(control_law(ms(7.0), interval, 4), ms(57.0)); // 100 / √4
        let ninth = control_law(ms(0.0), interval, 9).since(ms(0.0)).as_secs();
        assert!((ninth - 0.1 / 3.0).abs() < 1e-12);
    }

    /// A packet a millisecond, each of which has waited 20 ms: when drops come, by hand.
    fn drops(law: &mut Codel, fates: &mut Fates, from: u64, to: u64, sojourn: f64) -> Vec<u64> {
        let mut at = Vec::new();
        for now in from..to {
            let mut fifo = Fifo::default();
            for _ in 0..5 {
                let mut waiting = packet(0, ms(now as f64 - sojourn));
                waiting.packet.flags = Flags::default();
                fifo.push(waiting);
            }
            let before = fates.dropped.len();
            assert!(law.dequeue(ms(now as f64), &mut fifo, fates).is_some());
            at.extend(std::iter::repeat_n(now, fates.dropped.len() - before));
        }
        at
    }

    #[test]
    fn drops_come_an_interval_late_and_then_faster() {
        let (mut law, mut fates) = (codel(), Fates::default());
        // Above target from 50 ms on: the first drop at 150; then after 100/√1, 100/√2 = 70.7, 100/√3 = 57.7,
        // 100/√4 = 50, 44.7, 40.8 ms, each after the time the one before was due, seen at whole milliseconds.
        assert_eq!(drops(&mut law, &mut fates, 50, 530, 20.0), [150, 250, 321, 379, 429, 474, 514]);
        // Below target: the dropping state is left at once.
        assert!(drops(&mut law, &mut fates, 530, 600, 4.0).is_empty());
        assert!(!law.dropping);
        // Above again within 16 intervals: count was 7, 1 at entry; the rate of 6 drops is taken up: 100/√6 = 40.8 ms,
        // 100/√7 = 37.8 ms.
        assert_eq!(drops(&mut law, &mut fates, 600, 790, 20.0), [700, 741, 779]);
        // And a long time after, from one again.
        assert!(drops(&mut law, &mut fates, 790, 800, 4.0).is_empty());
        assert_eq!(drops(&mut law, &mut fates, 10_000, 10_201, 20.0), [10_100, 10_200]);
    }

    #[test]
    fn a_short_burst_is_let_pass() {
        let (mut law, mut fates) = (codel(), Fates::default());
        drops(&mut law, &mut fates, 50, 149, 90.0);
        assert!(drops(&mut law, &mut fates, 149, 150, 4.9).is_empty());
        assert!(drops(&mut law, &mut fates, 150, 249, 90.0).is_empty());
    }

    #[test]
    fn the_last_packet_stays() {
        let (mut law, mut fates) = (codel(), Fates::default());
        for now in 0..1000 {
            let mut fifo = Fifo::default();
            fifo.push(packet(0, Instant::ZERO));
            fifo.push(packet(0, Instant::ZERO)); // one full packet is left behind the head
            assert!(law.dequeue(ms(f64::from(now)), &mut fifo, &mut fates).is_some());
        }
        assert!(fates.dropped.is_empty());
    }

    #[test]
    fn marks_count_as_drops() {
        let (mut law, mut fates) = (codel(), Fates::default());
        let mut marked = Vec::new();
        for now in 50..530 {
            let mut fifo = Fifo::default();
            for _ in 0..5 {
                let mut waiting = packet(0, ms(f64::from(now) - 20.0));
                waiting.packet.flags.set(Flags::MARKABLE);
                fifo.push(waiting);
            }
            let sent = law.dequeue(ms(f64::from(now)), &mut fifo, &mut fates).unwrap();
            if sent.packet.flags.has(Flags::MARKED) {
                marked.push(now);
            }
        }
        assert_eq!(marked, [150, 250, 321, 379, 429, 474, 514]);
        assert_eq!((fates.marks, fates.dropped.len()), (7, 0));
    }
}
