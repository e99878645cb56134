//! Statistics of a link direction: time-weighted queue length, bits serialised, drops.
//!
//! Integrals run from the start and are read as differences, so samples and the summary's window do not disturb each
//! other. Between its changes a queue costs nothing: the integral of n up to t is n·t less the sum of each change times
//! its time, exactly, since all are integers. Only the histograms for quantiles are filled in the window alone, and only
//! when the queue leaves a bucket.

use std::ops::Range;

use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::histogram::{Histogram, bucket_of};
use waterfill_network::summary::QueueSummary;

use crate::queue::Backlog;

/// Totals of a link direction at one time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    at: Instant,
    /// Queue integrals: bytes and packets, each times picoseconds. 10⁹ bytes for 10⁶ s are 10²⁷, beyond u64.
    area: (u128, u128),
    serialised_bits: f64,
    drops: u64,
    marks: u64,
    lost: u64,
    /// Time in pauses, and their number.
    pauses: (Duration, u64),
    capacity: Capacity,
}

/// A capacity that changes in steps, and its integral.
#[derive(Clone, Copy, Debug, Default)]
struct Capacity {
    rate: Rate,
    /// Time of the capacity's last change.
    since: Instant,
    /// Integral of the capacity up to `since`, in bits.
    bits_before: f64,
}

impl Capacity {
    /// Returns the number of bits that the link could have sent between two readings.
    fn bits_between(from: &Reading, to: &Reading) -> f64 {
        let lasted = to.at.since(from.at);
        if from.capacity.since == to.capacity.since {
            return to.capacity.rate.as_bps() * lasted.as_secs();
        }
        to.capacity.bits_at(to.at) - from.capacity.bits_at(from.at)
    }

    fn bits_at(&self, at: Instant) -> f64 {
        self.bits_before + self.rate.as_bps() * at.since(self.since).as_secs()
    }
}

/// Difference between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) utilization: f64,
    /// Mean capacity.
    pub(crate) capacity: Rate,
    pub(crate) queue_bytes: f64,
    pub(crate) queue_packets: f64,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
    pub(crate) lost: u64,
    /// Time in pauses, and their number.
    pub(crate) pauses: (Duration, u64),
    pub(crate) lasted: Duration,
}

/// Meter of one link direction.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Rate of the transmitter.
    line: Rate,
    /// Totals at the last reading, stored separately because packets change little of them.
    now: Box<Reading>,
    /// Finish time of the latest transmission.
    service_ends: Instant,
    started_bytes: u64,
    /// Sum of all changes of the queue, each multiplied by the time of the change: bytes and packets times picoseconds.
    moments: (i128, i128),
    /// Ranges of backlogs, in bytes and packets, in the same histogram buckets as the current backlog. Without a
    /// window, any backlog is in range.
    bucket: (Range<u64>, Range<u64>),
    /// Maximum backlog since the last [`Meter::settle_max`].
    max: Backlog,
    /// Unsent bits of packets that were dropped in transmission.
    abandoned_bits: f64,
    sample_max_bytes: u64,
    window: Option<Box<Window>>,
    result: Option<Box<LinkResult>>,
}

/// Statistics collected in the summary's measurement window.
#[derive(Debug)]
struct Window {
    from: Reading,
    bytes: Histogram,
    packets: Histogram,
    /// Times up to which the histograms of bytes and packets are filled.
    filled: (Instant, Instant),
    max: Backlog,
}

/// Range of all backlogs.
const ANY: Range<u64> = 0..u64::MAX;

/// Statistics of the summary's measurement window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkResult {
    pub(crate) utilization: f64,
    pub(crate) queue_bytes: QueueSummary,
    pub(crate) queue_packets: QueueSummary,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
    pub(crate) lost: u64,
    /// Time in pauses, and their number.
    pub(crate) pauses: (Duration, u64),
}

impl Meter {
    /// Creates a meter for a link with this `capacity` and a transmitter of rate `line`.
    pub(crate) fn new(capacity: Rate, line: Rate) -> Self {
        Self {
            line,
            now: Box::new(Reading {
                capacity: Capacity { rate: capacity, ..Capacity::default() },
                ..Reading::default()
            }),
            service_ends: Instant::ZERO,
            started_bytes: 0,
            moments: (0, 0),
            bucket: (ANY, ANY),
            max: Backlog::default(),
            abandoned_bits: 0.0,
            sample_max_bytes: 0,
            window: None,
            result: None,
        }
    }

    /// Records a change of the backlog.
    #[inline]
    pub(crate) fn change_queue(&mut self, at: Instant, before: Backlog, after: Backlog) {
        let moment = |before: u64, after: u64| i128::from(after as i64 - before as i64) * i128::from(at.as_ps() as i64);
        self.moments.0 += moment(before.bytes, after.bytes);
        self.moments.1 += moment(before.packets, after.packets);
        if !self.bucket.0.contains(&after.bytes) || !self.bucket.1.contains(&after.packets) {
            self.change_bucket(at, after);
        }
    }

    /// Updates the maximum backlog after the backlog has grown.
    #[inline]
    pub(crate) fn record_queue_max(&mut self, Backlog { bytes, packets }: Backlog) {
        self.max = Backlog { bytes: self.max.bytes.max(bytes), packets: self.max.packets.max(packets) };
    }

    /// Adds the time in the current buckets to the window's histograms when the backlog leaves them.
    #[inline(never)] // keeps the usual path short
    fn change_bucket(&mut self, at: Instant, after: Backlog) {
        let Some(window) = &mut self.window else { return };
        let fill = |histogram: &mut Histogram, bucket: &mut Range<u64>, filled: &mut Instant, after: u64| {
            if !bucket.contains(&after) {
                histogram.add(bucket.start, at.since(std::mem::replace(filled, at)).as_ps());
                *bucket = bucket_of(after);
            }
        };
        fill(&mut window.bytes, &mut self.bucket.0, &mut window.filled.0, after.bytes);
        fill(&mut window.packets, &mut self.bucket.1, &mut window.filled.1, after.packets);
    }

    /// Updates the integrals and histograms up to `at`.
    pub(crate) fn integrate_queue(&mut self, at: Instant, Backlog { bytes, packets }: Backlog) {
        let area = |n: u64, moment: i128| (i128::from(n) * i128::from(at.as_ps()) - moment) as u128;
        self.now.at = at;
        self.now.area = (area(bytes, self.moments.0), area(packets, self.moments.1));
        if let Some(window) = &mut self.window {
            window.bytes.add(bytes, at.since(window.filled.0).as_ps());
            window.packets.add(packets, at.since(window.filled.1).as_ps());
            window.filled = (at, at);
        }
    }

    /// Adds the largest backlog so far to the maxima of the sample and of the window.
    fn settle_max(&mut self) {
        let Backlog { bytes, packets } = std::mem::take(&mut self.max);
        self.sample_max_bytes = self.sample_max_bytes.max(bytes);
        if let Some(window) = &mut self.window {
            window.max = Backlog { bytes: window.max.bytes.max(bytes), packets: window.max.packets.max(packets) };
        }
    }

    /// Counts a packet whose transmission ends at `service_ends`.
    #[inline]
    pub(crate) fn start_transmission(&mut self, bytes: u16, service_ends: Instant) {
        self.started_bytes += u64::from(bytes);
        self.service_ends = service_ends;
    }

    /// Returns the finish time of the latest transmission.
    pub(crate) const fn service_ends(&self) -> Instant {
        self.service_ends
    }

    pub(crate) fn count_drops(&mut self, packets: u64) {
        self.now.drops += packets;
    }

    pub(crate) fn count_marks(&mut self, packets: u64) {
        self.now.marks += packets;
    }

    pub(crate) fn count_loss(&mut self) {
        self.now.lost += 1;
    }

    /// Sets the time in pauses so far, and their number.
    pub(crate) fn set_pauses(&mut self, pauses: (Duration, u64)) {
        self.now.pauses = pauses;
    }

    /// Corrects [`Meter::count_loss`] for a packet that never reached the wire.
    pub(crate) fn uncount_loss(&mut self) {
        self.now.lost -= 1;
    }

    /// Sets the capacity and the transmitter's rate. A transmission in progress now finishes at `service_ends`.
    pub(crate) fn change_capacity(&mut self, now: Instant, capacity: Rate, line: Rate, service_ends: Instant) {
        let before = self.now.capacity;
        self.now.capacity = Capacity { rate: capacity, since: now, bits_before: before.bits_at(now) };
        (self.line, self.service_ends) = (line, service_ends);
    }

    /// Records the unsent part of a packet that was dropped in transmission.
    pub(crate) fn abandon(&mut self, unsent: Volume) {
        self.abandoned_bits += unsent.as_bits();
    }

    /// Returns the totals up to the last [`Meter::integrate_queue`].
    pub(crate) fn read(&mut self) -> Reading {
        let remaining = self.line * self.service_ends.since(self.now.at);
        self.now.serialised_bits = self.started_bytes as f64 * 8.0 - remaining.as_bits() - self.abandoned_bits;
        *self.now
    }

    /// Returns the difference between two readings.
    pub(crate) fn span(from: &Reading, to: &Reading) -> Span {
        let lasted = to.at.since(from.at);
        if lasted == Duration::ZERO {
            return Span::default();
        }
        let mean = |a: u128, b: u128| (b - a) as f64 / lasted.as_ps() as f64;
        let possible_bits = Capacity::bits_between(from, to);
        let sent_bits = to.serialised_bits - from.serialised_bits;
        Span {
            utilization: if possible_bits > 0.0 { sent_bits / possible_bits } else { 0.0 },
            capacity: Rate::from_bps(possible_bits / lasted.as_secs()),
            queue_bytes: mean(from.area.0, to.area.0),
            queue_packets: mean(from.area.1, to.area.1),
            drops: to.drops - from.drops,
            marks: to.marks - from.marks,
            lost: to.lost.saturating_sub(from.lost), // see `uncount_loss`
            pauses: (to.pauses.0 - from.pauses.0, to.pauses.1 - from.pauses.1),
            lasted,
        }
    }

    /// Returns the maximum queue since the last call, in bytes, and restarts the maximum at `waiting_bytes`.
    pub(crate) fn take_sample_max(&mut self, waiting_bytes: u64) -> u64 {
        self.settle_max();
        std::mem::replace(&mut self.sample_max_bytes, waiting_bytes)
    }

    /// Opens the summary's measurement window with this backlog.
    pub(crate) fn open_window(&mut self, max: Backlog) {
        self.settle_max();
        let from = self.read();
        let (bytes, packets) = (Histogram::default(), Histogram::default());
        self.bucket = (bucket_of(max.bytes), bucket_of(max.packets));
        self.window = Some(Box::new(Window { from, bytes, packets, filled: (from.at, from.at), max }));
    }

    /// Closes the summary's measurement window.
    pub(crate) fn close_window(&mut self) {
        self.result = Some(Box::new(self.window_so_far()));
        self.window = None;
        self.bucket = (ANY, ANY);
    }

    /// Returns the statistics of the closed window, or of an open window so far, or zeros before the window.
    pub(crate) fn result(&mut self) -> LinkResult {
        self.result.as_deref().copied().unwrap_or_else(|| self.window_so_far())
    }

    fn window_so_far(&mut self) -> LinkResult {
        self.settle_max();
        let to = self.read();
        let Some(window) = &self.window else { return LinkResult::default() };
        let span = Self::span(&window.from, &to);
        // A bucket's middle may lie above the largest value in it.
        let queue = |mean, histogram: &Histogram, max: u64| QueueSummary {
            mean,
            p99: histogram.quantile_above_mean(0.99, mean).unwrap_or(0.0).min(max as f64),
            max: max as f64,
        };
        LinkResult {
            utilization: span.utilization,
            queue_bytes: queue(span.queue_bytes, &window.bytes, window.max.bytes),
            queue_packets: queue(span.queue_packets, &window.packets, window.max.packets),
            drops: span.drops,
            marks: span.marks,
            lost: span.lost,
            pauses: span.pauses,
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.window.as_ref().map_or(0, |w| w.bytes.heap_bytes() + w.packets.heap_bytes())
    }
}
