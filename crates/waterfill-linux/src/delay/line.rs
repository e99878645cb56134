//! Treatment of frames between two interfaces: loss, duplication, delay and reordering, without I/O.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_pcg::Pcg64;
use serde::Serialize;
use waterfill_network::FaultSpec;
use waterfill_network::loss::Loss;
use waterfill_network::random::uniform;

use super::config::{DelayChange, LineConfig};
use super::damage;
use super::frame::carries_data;
use super::lateness::Lateness;
use super::store::Store;
use super::sys::Nanos;

/// A line: one direction of one link.
#[derive(Debug)]
pub struct Line {
    schedule: Schedule,
    reorder_extra_ns: u64,
    loss: Option<Loss>,
    reorder: f64,
    duplicate: f64,
    rng: Pcg64,
    /// Faults of frames and of the wire, which have their own random stream.
    faults: Box<[FaultSpec]>,
    faults_rng: Pcg64,
    /// Buffer for a frame whose contents a fault changes.
    altered: Vec<u8>,
    /// Frames held for the delay, in the order of arrival.
    waiting: Store,
    /// Frames held longer, ordered by the time at which they are due and then by arrival.
    late: BinaryHeap<Reverse<(Nanos, u64, Vec<u8>)>>,
    late_bytes_free: usize,
    /// Frame counts of the line.
    pub counts: Counts,
    /// Timing errors of the line.
    pub lateness: Lateness,
}

/// Frame counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames that arrived.
    pub received: u64,
    /// Frames lost at random, as configured.
    pub lost: u64,
    /// Frames held longer at random, as configured.
    pub reordered: u64,
    /// Frames duplicated at random, as configured.
    pub duplicated: u64,
    /// Frames that did not fit into the line, which is a fault of the testbed.
    pub overflow: u64,
    /// Frames sent.
    pub sent: u64,
}

impl Line {
    /// Creates the `index`-th line of a run with this seed.
    #[must_use]
    pub fn new(config: &LineConfig, seed: u64, index: usize) -> Self {
        Self {
            schedule: Schedule::new(config),
            reorder_extra_ns: config.reorder_extra_ns,
            loss: config.losses().map(Loss::new),
            reorder: config.reorder,
            duplicate: config.duplicate,
            rng: Pcg64::new(u128::from(seed), index as u128),
            faults: config.faults.clone().into(),
            faults_rng: Pcg64::new(!u128::from(seed), index as u128),
            altered: Vec::new(),
            waiting: Store::new(config.hold_bytes),
            late: BinaryHeap::new(),
            late_bytes_free: config.hold_bytes,
            counts: Counts::default(),
            lateness: Lateness::default(),
        }
    }

    /// Sets the start of the run, from which the times of changes count.
    pub fn start(&mut self, at: Nanos) {
        self.schedule.start = Some(at);
    }

    /// Returns the number of delay changes that have taken effect for arriving frames.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.schedule.next
    }

    /// Accepts a frame that the kernel received at `arrived`.
    pub fn accept(&mut self, arrived: Nanos, frame: &[u8]) {
        self.counts.received += 1;
        if self.loss.as_mut().is_some_and(|loss| loss.is_lost(|| carries_data(frame), &mut self.rng)) {
            self.counts.lost += 1;
            return;
        }
        if happens(self.duplicate, &mut self.rng) {
            self.counts.duplicated += 1;
            self.hold(arrived, frame);
        }
        self.hold(arrived, frame);
    }

    fn hold(&mut self, arrived: Nanos, frame: &[u8]) {
        let due = self.schedule.due(arrived, frame.len());
        if let (Some(start), false) = (self.schedule.start, self.faults.is_empty()) {
            self.hold_faulty(start, due, frame);
            return;
        }
        self.hold_until(due, frame);
    }

    /// Holds a frame on a line with faults. Faults act at the time at which the frame is due.
    fn hold_faulty(&mut self, start: Nanos, due: Nanos, frame: &[u8]) {
        let mut altered = std::mem::take(&mut self.altered);
        altered.clear();
        altered.extend_from_slice(frame);
        let since_ns = due.since(start).max(0) as u64;
        damage::alter(&self.faults, since_ns as f64 * 1e-9, &mut altered, &mut self.faults_rng);
        let late_ns = damage::released_ns(&self.faults, since_ns, frame) - since_ns;
        self.hold_until(due.after(late_ns), &altered);
        self.altered = altered;
    }

    fn hold_until(&mut self, due: Nanos, frame: &[u8]) {
        let held = if happens(self.reorder, &mut self.rng) {
            self.counts.reordered += 1;
            self.hold_longer(due.after(self.reorder_extra_ns), frame)
        } else {
            self.waiting.push(due, frame)
        };
        self.counts.overflow += u64::from(!held);
    }

    fn hold_longer(&mut self, due: Nanos, frame: &[u8]) -> bool {
        let Some(free) = self.late_bytes_free.checked_sub(frame.len()) else { return false };
        self.late_bytes_free = free;
        self.late.push(Reverse((due, self.counts.received, frame.to_vec())));
        true
    }

    /// Appends to `into` up to `max` frames that are due by `by`, oldest first. A frame that is held longer is appended
    /// only if no other frame is due. The caller reports the number of sent frames with [`Line::sent`].
    pub fn due<'a>(&'a self, by: Nanos, max: usize, into: &mut Vec<&'a [u8]>) {
        let ready = (0..max).map_while(|i| self.waiting.get(i)).take_while(|(due, _)| *due <= by);
        into.extend(ready.map(|(_, frame)| frame));
        if let (true, Some(Reverse((due, _, frame)))) = (into.is_empty(), self.late.peek()) {
            if *due <= by {
                into.push(frame);
            }
        }
    }

    /// Records that the first `count` frames of the last [`Line::due`] were sent between `began` and `ended`.
    pub fn sent(&mut self, count: usize, by: Nanos, began: Nanos, ended: Nanos) {
        let step = ended.since(began) / count.max(1) as i64;
        for i in 0..count {
            let left = began.as_ns() as i64 + step * (i as i64 + 1);
            let due = match self.waiting.get(0) {
                Some((due, _)) if due <= by => {
                    self.waiting.pop();
                    due
                }
                _ => {
                    let Some(Reverse((due, _, frame))) = self.late.pop() else { return };
                    self.late_bytes_free += frame.len();
                    due
                }
            };
            self.lateness.add(left - due.as_ns() as i64);
            self.counts.sent += 1;
        }
    }

    /// Returns the time at which the next frame is due, or `None` if no frame waits.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        let waiting = self.waiting.get(0).map(|(due, _)| due);
        let late = self.late.peek().map(|Reverse((due, _, _))| *due);
        waiting.into_iter().chain(late).min()
    }

    /// Returns the number of waiting frames.
    #[must_use]
    pub fn held(&self) -> usize {
        self.waiting.len() + self.late.len()
    }
}

/// Computes the times at which frames are due. A frame's delay depends on its arrival time.
#[derive(Debug)]
struct Schedule {
    delay_ns: u64,
    changes: Box<[DelayChange]>,
    /// Index of the next change.
    next: usize,
    start: Option<Nanos>,
    last_due: Nanos,
    /// Rate of the link in bit/s while frames catch up after a fall of the delay, and `None` otherwise.
    catching_up: Option<f64>,
}

/// Length of an Ethernet header in bytes. A link's rate does not count these bytes.
const HEADER_BYTES: usize = 14;

impl Schedule {
    fn new(config: &LineConfig) -> Self {
        Self {
            delay_ns: config.delay_ns,
            changes: config.changes.clone().into(),
            next: 0,
            start: None,
            last_due: Nanos::new(0),
            catching_up: None,
        }
    }

    /// Returns the time at which a frame is due. After a fall of the delay, frames keep their order and leave at the
    /// link's rate, like frames already on the wire.
    fn due(&mut self, arrived: Nanos, frame_bytes: usize) -> Nanos {
        while let (Some(change), Some(start)) = (self.changes.get(self.next), self.start) {
            if arrived < start.after(change.at_ns) {
                break;
            }
            if change.delay_ns < self.delay_ns || self.catching_up.is_some() {
                self.catching_up = Some(change.rate_bps);
            }
            self.delay_ns = change.delay_ns;
            self.next += 1;
        }
        let mut due = arrived.after(self.delay_ns);
        if let Some(rate_bps) = self.catching_up {
            let bits = 8 * frame_bytes.saturating_sub(HEADER_BYTES);
            let in_order = self.last_due.after((bits as f64 / rate_bps * 1e9).round() as u64);
            if in_order > due {
                due = in_order;
            } else {
                self.catching_up = None;
            }
        }
        self.last_due = due;
        due
    }
}

/// Draws an event of probability `p`. An impossible event draws no random number.
fn happens(p: f64, rng: &mut Pcg64) -> bool {
    p > 0.0 && uniform(rng) < p
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(loss: f64, reorder: f64, duplicate: f64) -> Line {
        let config = LineConfig {
            name: "l".into(),
            from: "a".into(),
            to: "b".into(),
            delay_ns: 1000,
            changes: Vec::new(),
            loss,
            loss_model: None,
            reorder,
            reorder_extra_ns: 350,
            duplicate,
            faults: Vec::new(),
            hold_bytes: 1 << 20,
        };
        Line::new(&config, 7, 0)
    }

    /// Returns the first byte of each frame that leaves by `by`.
    fn drain(line: &mut Line, by: u64) -> Vec<u8> {
        let by = Nanos::new(by);
        let mut left = Vec::new();
        loop {
            let mut frames = Vec::new();
            line.due(by, 3, &mut frames);
            if frames.is_empty() {
                return left;
            }
            left.extend(frames.iter().map(|f| f[0]));
            let count = frames.len();
            line.sent(count, by, by, by);
        }
    }

    #[test]
    fn a_frame_leaves_after_the_delay_and_in_order() {
        let mut line = line(0.0, 0.0, 0.0);
        for n in 0..10 {
            line.accept(Nanos::new(100 * u64::from(n)), &[n; 60]);
        }
        assert_eq!(line.next_due(), Some(Nanos::new(1000)));
        assert!(drain(&mut line, 999).is_empty());
        assert_eq!(drain(&mut line, 1000), [0]);
        assert_eq!(drain(&mut line, 1450), [1, 2, 3, 4]);
        assert_eq!(drain(&mut line, 5000), [5, 6, 7, 8, 9]);
        assert_eq!((line.held(), line.counts.sent, line.counts.overflow), (0, 10, 0));
        // Due at 1900, sent at 5000; buckets are microseconds, extremes exact.
        assert_eq!(line.lateness.spread().unwrap().max, 5000 - 1500);
    }

    #[test]
    fn loss_has_the_configured_probability_and_depends_on_the_seed_only() {
        let counts = |p| {
            let mut line = line(p, 0.0, 0.0);
            for n in 0..100_000u64 {
                line.accept(Nanos::new(n), &[0; 60]);
                drain(&mut line, n + 2000);
            }
            line.counts
        };
        let few = counts(0.01);
        // Binomial: standard deviation √(100000 × 0.01 × 0.99) = 31.5; five of them.
        assert!(few.lost.abs_diff(1000) < 158, "{few:?}");
        assert_eq!(few.received, few.lost + few.sent);
        assert_eq!(counts(0.01), few);
        assert_eq!(counts(1.0).sent, 0);
        assert_eq!(counts(0.0).lost, 0);
    }

    #[test]
    fn a_reordered_frame_is_overtaken_by_those_of_its_extra_time() {
        let mut line = line(0.0, 1.0, 0.0);
        line.accept(Nanos::new(0), &[0; 60]);
        line.reorder = 0.0;
        for n in 1..=5 {
            line.accept(Nanos::new(100 * u64::from(n)), &[n; 60]);
        }
        let mut left = Vec::new();
        for t in 0..200 {
            left.extend(drain(&mut line, t * 10));
        }
        assert_eq!(left, [1, 2, 3, 0, 4, 5]); // 0 is due at 1350
        assert_eq!(line.counts.reordered, 1);
    }

    /// Frames keep their order when the delay changes. When the delay rises, the wire is silent for the difference.
    /// When the delay falls, frames leave at the link's rate until they have caught up.
    #[test]
    fn frames_follow_the_delay_in_order() {
        let mut line = line(0.0, 0.0, 0.0);
        let change = |at_ns, delay_ns| DelayChange { at_ns, delay_ns, rate_bps: 8e9 }; // a byte per ns
        line.schedule.changes = [change(1000, 1500), change(2000, 500)].into();
        line.start(Nanos::new(10_000));
        let mut due = |at: u64| {
            line.accept(Nanos::new(at), &[0; 114]);
            let due = line.next_due().unwrap();
            assert_eq!(drain(&mut line, due.as_ns()), [0]);
            due.as_ns()
        };
        assert_eq!([10_800, 10_999].map(&mut due), [11_800, 11_999]);
        assert_eq!([11_000, 11_200, 11_999].map(&mut due), [12_500, 12_700, 13_499]);
        // A busy link keeps the old delay; each gap of it shortens that.
        assert_eq!([12_099, 12_199, 12_599].map(&mut due), [13_599, 13_699, 13_799]);
        assert_eq!([13_400, 13_410].map(&mut due), [13_900, 13_910]);
        assert_eq!(line.changes(), 2);
    }

    #[test]
    fn a_duplicate_follows_its_original() {
        let mut line = line(0.0, 0.0, 1.0);
        line.accept(Nanos::new(0), &[9; 60]);
        assert_eq!(drain(&mut line, 2000), [9, 9]);
        assert_eq!((line.counts.duplicated, line.counts.sent), (1, 2));
    }

    #[test]
    fn a_frame_without_space_is_an_overflow() {
        let mut line = line(0.0, 0.0, 0.0);
        for _ in 0..1000 {
            line.accept(Nanos::new(0), &[0; 1514]);
        }
        assert_eq!(line.counts.overflow, 1000 - (1 << 20) / 1514);
        assert_eq!(line.held() as u64 + line.counts.overflow, 1000);
    }
}
