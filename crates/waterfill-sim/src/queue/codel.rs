//! Controlled delay (RFC 8289): drops packets at the head if the smallest sojourn time in an interval was above the
//! target.
//!
//! ```text
//!            sojourn ≥ target for an interval: drop one
//!   waiting ───────────────────────────────────────────▶ dropping: the n-th drop interval/√n after the previous one
//!      ▲                                                     │
//!      └─────────────────────────────────────────────────────┘
//!        sojourn < target, or at most one packet is left
//! ```
//!
//! Readings: `maxpacket`, the backlog that never causes a drop, is the scenario's full packet. An ECN-capable packet is
//! marked and sent instead of dropped; the mark counts as a drop, as in RFC 8290.

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::CodelSpec;

use super::discipline::{Arrival, Backlog, Fifo, QueueOutcome, Scheduler, Verdict, Waiting};
use super::flow_queues::FlowLaw;
use crate::packet::Flags;

/// Maximum number of intervals after which a new dropping state resumes the last drop rate (RFC 8289 §5).
const RESUME_INTERVALS: u64 = 16;

/// CoDel law of one first-in-first-out queue.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    ecn: bool,
    /// Backlog up to which nothing is dropped, in bytes.
    packet_bytes: u64,
    /// Time at which the sojourn time will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Number of drops since the dropping state was entered.
    count: u32,
    /// Value of `count` when the dropping state was entered.
    last_count: u32,
}

/// `[rfc8289:control-law]` Returns the time of the next drop, `interval / √count` after this one.
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

    /// Enters the dropping state. Resumes the last drop rate if the previous dropping state ended recently.
    fn start_dropping(&mut self, now: Instant) {
        self.dropping = true;
        let before = self.count - self.last_count;
        let recent = now.since(self.drop_next) < self.interval * RESUME_INTERVALS;
        self.count = if before > 1 && recent { before } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, self.interval, self.count);
    }

    /// Marks a packet if the law uses ECN and the packet is ECN-capable. Returns true if the packet was marked.
    fn mark(&self, head: &mut Waiting, outcome: &mut QueueOutcome) -> bool {
        let markable = self.ecn && head.packet.flags.has(Flags::MARKABLE);
        if markable {
            outcome.mark(head);
        }
        markable
    }

    /// Removes and returns the packet at the head. The flag is true if the packet may be dropped, because all sojourn
    /// times of an interval were above the target.
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

impl FlowLaw for Codel {
    fn on_arrival(&mut self, _now: Instant, _backlog: Backlog, _markable: bool, _rng: &mut Pcg64) -> Verdict {
        Verdict::Accept
    }

    fn dequeue(&mut self, now: Instant, fifo: &mut Fifo, outcome: &mut QueueOutcome) -> Option<Waiting> {
        let (mut head, too_long) = self.take(now, fifo)?;
        if self.dropping {
            self.dropping = too_long;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let next = control_law(self.drop_next, self.interval, self.count);
                if self.mark(&mut head, outcome) {
                    self.drop_next = next;
                    break;
                }
                outcome.drop(&head);
                (head, self.dropping) = self.take(now, fifo)?;
                if self.dropping {
                    self.drop_next = next;
                }
            }
        } else if too_long {
            self.start_dropping(now);
            if !self.mark(&mut head, outcome) {
                outcome.drop(&head);
                (head, _) = self.take(now, fifo)?;
            }
        }
        Some(head)
    }
}

/// CoDel as the only queue of a link. Packets that exceed the buffer limit are dropped.
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

impl Scheduler for CodelQueue {
    fn enqueue(&mut self, waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        if arrival.fits(waiting.packet.bytes) {
            self.fifo.push(waiting);
        } else {
            outcome.drop(&waiting);
        }
    }

    fn dequeue(&mut self, now: Instant, outcome: &mut QueueOutcome) -> Option<Waiting> {
        self.law.dequeue(now, &mut self.fifo, outcome)
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
    use super::*;
    use crate::testing;

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

    /// Sends one packet per millisecond with this sojourn time. Returns the milliseconds at which packets are dropped.
    fn drops(law: &mut Codel, ms_range: std::ops::Range<u64>, sojourn_ms: f64) -> Vec<u64> {
        let mut outcome = QueueOutcome::default();
        let mut at = Vec::new();
        for now in ms_range {
            let mut fifo = Fifo::default();
            for _ in 0..5 {
                let mut waiting = testing::waiting(0, ms(now as f64 - sojourn_ms));
                waiting.packet.flags = Flags::default();
                fifo.push(waiting);
            }
            let before = outcome.dropped.len();
            assert!(law.dequeue(ms(now as f64), &mut fifo, &mut outcome).is_some());
            at.extend(std::iter::repeat_n(now, outcome.dropped.len() - before));
        }
        at
    }

    #[test]
    fn drops_start_after_an_interval_and_then_speed_up() {
        let mut law = codel();
        // Above target from 50 ms on: the first drop at 150; then after 100/√1, 100/√2 = 70.7, 100/√3 = 57.7,
        // 100/√4 = 50, 44.7, 40.8 ms, each after the previous one's due time, seen at whole milliseconds.
        assert_eq!(drops(&mut law, 50..530, 20.0), [150, 250, 321, 379, 429, 474, 514]);
        // Below target: the dropping state ends at once.
        assert!(drops(&mut law, 530..600, 4.0).is_empty());
        assert!(!law.dropping);
        // Above again within 16 intervals: count was 7, 1 at entry, so it resumes at 6 drops: 100/√6 = 40.8 ms, 100/√7
        // = 37.8 ms.
        assert_eq!(drops(&mut law, 600..790, 20.0), [700, 741, 779]);
        // Much later it starts from one again.
        assert!(drops(&mut law, 790..800, 4.0).is_empty());
        assert_eq!(drops(&mut law, 10_000..10_201, 20.0), [10_100, 10_200]);
    }

    #[test]
    fn a_burst_shorter_than_an_interval_passes() {
        let mut law = codel();
        drops(&mut law, 50..149, 90.0);
        assert!(drops(&mut law, 149..150, 4.9).is_empty());
        assert!(drops(&mut law, 150..249, 90.0).is_empty());
    }

    #[test]
    fn the_last_full_packet_is_never_dropped() {
        let (mut law, mut outcome) = (codel(), QueueOutcome::default());
        for now in 0..1000 {
            let mut fifo = Fifo::default();
            fifo.push(testing::waiting(0, Instant::ZERO));
            fifo.push(testing::waiting(0, Instant::ZERO)); // one full packet is left behind the head
            assert!(law.dequeue(ms(f64::from(now)), &mut fifo, &mut outcome).is_some());
        }
        assert!(outcome.dropped.is_empty());
    }

    #[test]
    fn marks_count_as_drops() {
        let (mut law, mut outcome) = (codel(), QueueOutcome::default());
        let mut marked = Vec::new();
        for now in 50..530 {
            let mut fifo = Fifo::default();
            for _ in 0..5 {
                let mut waiting = testing::waiting(0, ms(f64::from(now) - 20.0));
                waiting.packet.flags.set(Flags::MARKABLE);
                fifo.push(waiting);
            }
            let sent = law.dequeue(ms(f64::from(now)), &mut fifo, &mut outcome).unwrap();
            if sent.packet.flags.has(Flags::MARKED) {
                marked.push(now);
            }
        }
        assert_eq!(marked, [150, 250, 321, 379, 429, 474, 514]);
        assert_eq!((outcome.marks, outcome.dropped.len()), (7, 0));
    }
}
