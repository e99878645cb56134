//! Measurements of a link direction: the queue over time, bytes served and packets dropped.

use waterfill_laws::units::{Instant, Rate};
use waterfill_network::histogram::Histogram;
use waterfill_network::summary::QueueSummary;

use crate::pipe::TimeStep;

/// Sums since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    seconds: f64,
    /// Integral of the queue over time, in byte-seconds.
    queue: f64,
    served_bytes: f64,
    dropped_packets: f64,
    /// Bits that a changing link could have sent.
    offered_bits: f64,
}

/// Record of a link's step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRecord {
    /// Bytes waiting at the beginning and at the end of the step.
    pub(crate) queue: (f64, f64),
    pub(crate) served_bytes: f64,
    pub(crate) dropped_packets: f64,
    /// Bits that the link could have sent; `None` if its capacity does not change.
    pub(crate) offered_bits: Option<f64>,
}

/// Mean values over a span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) utilization: f64,
    pub(crate) capacity: Rate,
    pub(crate) queue_bytes: f64,
    pub(crate) dropped_packets: f64,
}

/// Meter of one link direction.
#[derive(Debug)]
pub(crate) struct Meter {
    capacity: Rate,
    /// True if the link's capacity changes.
    varies: bool,
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
    pub(crate) fn new(capacity: Rate, varies: bool, measure: (Instant, Instant)) -> Self {
        Self {
            capacity,
            varies,
            all: Sums::default(),
            sampled: Sums::default(),
            sample_max_bytes: 0.0,
            measure,
            window: Sums::default(),
            window_max_bytes: 0.0,
            histogram: Histogram::default(),
        }
    }

    pub(crate) fn add(&mut self, step: &TimeStep, done: &StepRecord) {
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

    /// Counts packets that were dropped from the queue at time `now`.
    pub(crate) fn add_dropped(&mut self, now: Instant, packets: f64) {
        self.all.dropped_packets += packets;
        if self.measure.0 <= now && now < self.measure.1 {
            self.window.dropped_packets += packets;
        }
    }

    /// Returns the means and the largest queue since the last sample.
    pub(crate) fn sample(&mut self) -> (Span, f64) {
        let before = std::mem::replace(&mut self.sampled, self.all);
        let now = &self.all;
        let since = Sums {
            seconds: now.seconds - before.seconds,
            queue: now.queue - before.queue,
            served_bytes: now.served_bytes - before.served_bytes,
            dropped_packets: now.dropped_packets - before.dropped_packets,
            offered_bits: now.offered_bits - before.offered_bits,
        };
        (self.span(&since), std::mem::take(&mut self.sample_max_bytes))
    }

    /// Returns the means over the measurement window so far, and statistics of the queue in bytes.
    pub(crate) fn result(&self) -> (Span, QueueSummary) {
        let span = self.span(&self.window);
        let p99 = self.histogram.quantile_above_mean(0.99, span.queue_bytes).unwrap_or(0.0).min(self.window_max_bytes);
        (span, QueueSummary { mean: span.queue_bytes, p99, max: self.window_max_bytes })
    }

    fn span(&self, sums: &Sums) -> Span {
        if sums.seconds <= 0.0 {
            return Span::default();
        }
        let possible_bits = if self.varies { sums.offered_bits } else { self.capacity.as_bps() * sums.seconds };
        Span {
            utilization: if possible_bits > 0.0 { sums.served_bytes * 8.0 / possible_bits } else { 0.0 },
            capacity: Rate::from_bps(possible_bits / sums.seconds),
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
        self.offered_bits += share * done.offered_bits.unwrap_or(0.0);
    }
}
