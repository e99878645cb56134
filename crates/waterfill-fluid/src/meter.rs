//! Measures a link direction: the queue over time, bytes served, packets dropped.

use waterfill_laws::units::{Instant, Rate};
use waterfill_network::histogram::Histogram;
use waterfill_network::summary::QueueSummary;

use crate::pipe::Step;

/// Sums since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    seconds: f64,
    /// Bytes × seconds.
    queue: f64,
    served_bytes: f64,
    dropped_packets: f64,
}

/// What a link did in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRecord {
    /// Waiting bytes at the beginning and the end of the step.
    pub(crate) queue: (f64, f64),
    pub(crate) served_bytes: f64,
    pub(crate) dropped_packets: f64,
}

/// Means over a span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) utilization: f64,
    pub(crate) queue_bytes: f64,
    pub(crate) dropped_packets: f64,
}

/// The meter of one link direction.
#[derive(Debug)]
pub(crate) struct Meter {
    capacity: Rate,
    all: Sums,
    sampled: Sums,
    sample_max_bytes: f64,
    /// The measurement window and the sums over it.
    measure: (Instant, Instant),
    window: Sums,
    window_max_bytes: f64,
    histogram: Histogram,
}

impl Meter {
    pub(crate) fn new(capacity: Rate, measure: (Instant, Instant)) -> Self {
        Self {
            capacity,
            all: Sums::default(),
            sampled: Sums::default(),
            sample_max_bytes: 0.0,
            measure,
            window: Sums::default(),
            window_max_bytes: 0.0,
            histogram: Histogram::default(),
        }
    }

    pub(crate) fn add(&mut self, step: &Step, done: &StepRecord) {
        let seconds = step.length.as_secs();
        let queue = 0.5 * (done.queue.0 + done.queue.1);
        let largest = done.queue.0.max(done.queue.1);
        self.all.add(done, queue, seconds, 1.0);
        self.sample_max_bytes = self.sample_max_bytes.max(largest);
        let share = step.overlap(self.measure);
        if share > 0.0 {
            self.window.add(done, queue, seconds, share);
            self.window_max_bytes = self.window_max_bytes.max(largest);
            self.histogram.add((queue + 0.5) as u64, (share * step.length.as_ps() as f64) as u64);
        }
    }

    /// Returns the means since the last sample, and the largest queue.
    pub(crate) fn sample(&mut self) -> (Span, f64) {
        let before = std::mem::replace(&mut self.sampled, self.all);
        let now = &self.all;
        let since = Sums {
            seconds: now.seconds - before.seconds,
            queue: now.queue - before.queue,
            served_bytes: now.served_bytes - before.served_bytes,
            dropped_packets: now.dropped_packets - before.dropped_packets,
        };
        (self.span(&since), std::mem::take(&mut self.sample_max_bytes))
    }

    /// Returns the means over the measurement window so far, and the queue in bytes.
    pub(crate) fn result(&self) -> (Span, QueueSummary) {
        let span = self.span(&self.window);
        let p99 = self.histogram.quantile(0.99).unwrap_or(0.0).min(self.window_max_bytes);
        (span, QueueSummary { mean: span.queue_bytes, p99, max: self.window_max_bytes })
    }

    fn span(&self, sums: &Sums) -> Span {
        if sums.seconds <= 0.0 {
            return Span::default();
        }
        Span {
            utilization: sums.served_bytes * 8.0 / (self.capacity.as_bps() * sums.seconds),
            queue_bytes: sums.queue / sums.seconds,
            dropped_packets: sums.dropped_packets,
        }
    }
}

impl Sums {
    fn add(&mut self, done: &StepRecord, queue: f64, seconds: f64, share: f64) {
        self.seconds += share * seconds;
        self.queue += share * queue * seconds;
        self.served_bytes += share * done.served_bytes;
        self.dropped_packets += share * done.dropped_packets;
    }
}
