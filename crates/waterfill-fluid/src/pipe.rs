//! Fluid in transit behind a queue.
//!
//! Each step writes one row of parcels, which is read after the queueing delay and the link's latency.
//!
//! Row n holds, stream by stream, what entered the queue in step n. It leaves the queue between two times, `starts[n]` and
//! `starts[n + 1]`, the same for all streams, because the queue is first-in-first-out. It arrives a fixed latency later. So
//! the cuts of the rows by a step of the reader are computed once per step, not per stream.

use waterfill_laws::registry::AnyHeader;
use waterfill_laws::units::{Duration, Instant};

use crate::course::Course;

/// A step of time, the half-open interval [from, to).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeStep {
    pub(crate) index: u64,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Middle of the step, at which headers and ages are taken.
    pub(crate) middle: Instant,
    pub(crate) length: Duration,
    pub(crate) length_s: f64,
}

impl TimeStep {
    /// Returns the step with this index on a grid of steps of `length`.
    pub(crate) fn at(index: u64, length: Duration) -> Self {
        let from = Instant::ZERO + length * index;
        Self { index, from, to: from + length, middle: from + length / 2, length, length_s: length.as_secs() }
    }

    /// Returns the fraction of the step that overlaps [from, to).
    pub(crate) fn overlap(&self, (from, to): (Instant, Instant)) -> f64 {
        if from <= self.from && self.to <= to {
            return 1.0;
        }
        self.to.min(to).since(self.from.max(from)) / self.length
    }
}

/// Fluid of one class, with a header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) bytes: f64,
    /// Time from sending to the middle of the step.
    pub(crate) age_s: f64,
    pub(crate) header: AnyHeader,
}

/// Fluid without a header, for example acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plain {
    pub(crate) bytes: f64,
    pub(crate) age_s: f64,
}

/// Arrivals of a step. Each stream's writer fills in an entry, even with zero, before the reader reads it.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) data: Vec<Parcel>,
    pub(crate) plain: Vec<Plain>,
}

/// Piece of a row, the fluid of one step, that arrives in the reader's step.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Index of the piece's row in the columns.
    base: usize,
    /// Fraction of the row that the piece contains.
    share: f64,
    /// Time from entering the queue to the middle of the reader's step, in seconds.
    age_s: f64,
}

/// Representative parcel of a stream in a step: an index into the columns, and an age in the middle of the step.
#[derive(Clone, Copy, Debug)]
struct Out {
    place: usize,
    age_s: f64,
}

/// Streams of one latency, with their rows and a read position.
#[derive(Debug, Default)]
struct Lane {
    latency: Duration,
    /// Inbox index to which each stream is delivered.
    to: Vec<u32>,
    volumes: Vec<f64>,
    ages: Vec<f64>,
    /// First row that is not completely read, and the fraction of that row already read.
    read: u64,
    consumed: f64,
    pieces: Vec<Piece>,
    /// Index of the piece that arrives in the middle of the reader's step.
    middle: usize,
    /// Packet size in bytes; 0 on links that do not change.
    packet_bytes: f64,
    /// Start and end of each row's arrival, without the latency; empty on links that do not change.
    windows: Vec<(Instant, Instant)>,
    /// End time of the newest arrival window.
    arrived: Instant,
}

/// Fluid in transit behind one queue, in one row per step. One lane is for data with headers, the other for headerless
/// streams.
#[derive(Debug)]
pub(crate) struct Pipe {
    step: Duration,
    /// Capacity of the columns in rows, a power of two.
    slots: usize,
    starts: Vec<Instant>,
    data: Lane,
    headers: Vec<AnyHeader>,
    plain: Lane,
    /// Number of the row being written.
    written: u64,
    /// Number of the next row that has not left the queue.
    left: u64,
}

/// Initial capacity of the columns in rows.
const SLOTS: usize = 4;

impl Pipe {
    /// Creates a pipe with the latencies of data and of headerless streams, and each stream's inbox index. On a link
    /// that changes, the latencies are the shortest of the run.
    pub(crate) fn new(step: Duration, latencies: (Duration, Duration), data: Vec<u32>, plain: Vec<u32>) -> Self {
        let slots = SLOTS;
        Self {
            step,
            slots,
            starts: vec![Instant::ZERO; slots],
            headers: vec![AnyHeader::None; slots * data.len()],
            data: Lane::new(latencies.0, data, slots),
            plain: Lane::new(latencies.1, plain, slots),
            written: 0,
            left: 0,
        }
    }

    /// Prepares the pipe for a link that changes, given the packet sizes in bytes of data and of headerless streams.
    pub(crate) fn vary(&mut self, packet_bytes: (f64, f64)) {
        for (lane, bytes) in [(&mut self.data, packet_bytes.0), (&mut self.plain, packet_bytes.1)] {
            lane.packet_bytes = bytes;
            lane.windows = vec![(Instant::ZERO, Instant::ZERO); self.slots];
        }
    }

    /// Returns the latencies of data and of headerless streams.
    pub(crate) const fn latencies(&self) -> (Duration, Duration) {
        (self.data.latency, self.plain.latency)
    }

    /// Raises the latency of one lane to one step, for a reader that runs before the writer. Returns the increase.
    pub(crate) fn delay_by_a_step(&mut self, data: bool) -> Duration {
        let lane = if data { &mut self.data } else { &mut self.plain };
        let grew = self.step - lane.latency;
        lane.latency = lane.latency.max(self.step);
        grew
    }

    fn slot(&self, row: u64) -> usize {
        row as usize & (self.slots - 1)
    }

    fn start(&self, row: u64) -> Instant {
        self.starts[self.slot(row)]
    }

    /// Writes the row of this step: the fraction `kept` of the arrivals, whose last byte leaves at `end`.
    pub(crate) fn write(&mut self, data: &[Parcel], plain: &[Plain], kept: f64, end: Instant) {
        let base = self.slot(self.written) * data.len();
        let columns = self.data.volumes[base..].iter_mut().zip(&mut self.data.ages[base..]);
        for (((volume, age), header), parcel) in columns.zip(&mut self.headers[base..]).zip(data) {
            (*volume, *age, *header) = (parcel.bytes * kept, parcel.age_s, parcel.header);
        }
        let base = self.slot(self.written) * plain.len();
        let columns = self.plain.volumes[base..].iter_mut().zip(&mut self.plain.ages[base..]);
        for ((volume, age), parcel) in columns.zip(plain) {
            (*volume, *age) = (parcel.bytes * kept, parcel.age_s);
        }
        self.written += 1;
        if self.written - self.oldest() >= self.slots as u64 {
            self.grow();
        }
        let slot = self.slot(self.written);
        self.starts[slot] = end;
    }

    /// Returns the latency above the minimum, for traffic that leaves at `time`.
    pub(crate) fn beyond_min(&self, course: &Course, time: Instant, data: bool) -> Duration {
        let lane = if data { &self.data } else { &self.plain };
        lane.beyond_min(course, time)
    }

    /// Sets the arrival window of the newest row, on a link that changes.
    pub(crate) fn schedule(&mut self, course: &Course) {
        let row = self.written - 1;
        let (slot, next) = (self.slot(row), self.slot(self.written));
        let sum = |lane: &Lane| -> f64 {
            let base = slot * lane.to.len();
            lane.volumes[base..base + lane.to.len()].iter().sum()
        };
        let bytes = sum(&self.data) + sum(&self.plain);
        let (mut from, mut to) = (self.starts[slot], self.starts[next]);
        if bytes > 0.0 {
            (from, to) = course.leaving(from, to);
            self.starts[slot] = from;
        }
        let sending = Duration::from_secs(bytes * 8.0 / course.at(from).capacity.as_bps());
        for lane in [&mut self.data, &mut self.plain] {
            let latency = lane.beyond_min(course, from);
            // In order, and where the latency falls no faster than the link sends.
            let begins = lane.arrived.max(from + latency);
            lane.arrived = (to + latency).max(begins + sending);
            lane.windows[slot] = (begins, lane.arrived);
        }
    }

    /// Removes the bytes that are still in the queue at `now`. Passes each data stream's bytes to `take`, and returns
    /// the bytes of all streams.
    pub(crate) fn drop_waiting(&mut self, now: Instant, mut take: impl FnMut(usize, f64)) -> f64 {
        let mut dropped = 0.0;
        let mut first = self.written;
        while first > self.oldest() && self.start(first - 1) >= now {
            first -= 1;
            let slot = self.slot(first);
            self.starts[slot] = now;
            for (is_data, lane) in [(true, &mut self.data), (false, &mut self.plain)] {
                let base = slot * lane.to.len();
                for (stream, volume) in lane.volumes[base..base + lane.to.len()].iter_mut().enumerate() {
                    let bytes = std::mem::take(volume);
                    dropped += bytes;
                    if is_data && bytes > 0.0 {
                        take(stream, bytes);
                    }
                }
            }
        }
        let next = self.slot(self.written);
        self.starts[next] = self.starts[next].min(now);
        let mask = self.slots - 1;
        let before = first.checked_sub(1).map(|row| self.slot(row));
        for lane in [&mut self.data, &mut self.plain] {
            lane.arrived = before.map_or(Instant::ZERO, |slot| lane.windows[slot].1);
            for row in first..self.written {
                lane.windows[row as usize & mask] = (lane.arrived, lane.arrived);
            }
        }
        self.left = self.left.max(self.written);
        dropped
    }

    /// Returns the number of the next completely written row whose first byte leaves the queue before `until`, or
    /// `None`. Each row is returned once.
    pub(crate) fn leaving(&mut self, until: Instant) -> Option<u64> {
        let leaves = self.left < self.written && self.start(self.left) < until;
        leaves.then(|| {
            self.left += 1;
            self.left - 1
        })
    }

    /// Returns true if the first byte of the row being written leaves before `until`. The row then counts as departed.
    pub(crate) fn leaves_at_once(&mut self, until: Instant) -> bool {
        let leaves = self.left == self.written && self.start(self.left) < until;
        self.left += u64::from(leaves);
        leaves
    }

    /// Returns the volumes and headers of a data row.
    pub(crate) fn row(&mut self, row: u64) -> (&[f64], &mut [AnyHeader]) {
        let streams = self.data.to.len();
        let base = self.slot(row) * streams;
        (&self.data.volumes[base..base + streams], &mut self.headers[base..base + streams])
    }

    /// Returns the number of the oldest row that is not completely read. A lane without streams is ignored.
    fn oldest(&self) -> u64 {
        let lanes = [&self.data, &self.plain].into_iter().filter(|lane| !lane.to.is_empty());
        lanes.map(|lane| lane.read).min().unwrap_or(self.written)
    }

    /// Doubles the capacity of the columns. This happens only while queues grow to their largest length.
    fn grow(&mut self) {
        let (before, after) = (self.slots, self.slots * 2);
        let rows = self.oldest()..self.written;
        let old = std::mem::replace(&mut self.starts, vec![Instant::ZERO; after]);
        for row in rows.clone() {
            self.starts[row as usize & (after - 1)] = old[row as usize & (before - 1)];
        }
        let streams = self.data.to.len();
        self.headers = resized(&self.headers, streams, rows.clone(), after);
        for lane in [&mut self.data, &mut self.plain] {
            lane.volumes = resized(&lane.volumes, lane.to.len(), rows.clone(), after);
            lane.ages = resized(&lane.ages, lane.to.len(), rows.clone(), after);
            if !lane.windows.is_empty() {
                lane.windows = resized(&lane.windows, 1, rows.clone(), after);
            }
        }
        self.slots = after;
    }

    /// Delivers the data that arrives in a step. The function must run once per step.
    pub(crate) fn push_data(&mut self, step: &TimeStep, inbox: &mut [Parcel]) {
        if self.data.to.is_empty() {
            return;
        }
        self.data.cut(step, &self.starts, self.written, self.step);
        let (lane, headers) = (&self.data, &self.headers);
        lane.for_each(|stream, to, bytes, out| {
            let parcel = &mut inbox[to];
            parcel.bytes = bytes;
            if let Some(out) = out {
                parcel.age_s = out.age_s;
                parcel.header = headers[out.place];
                if parcel.header.is_extensive() {
                    parcel.header = lane.merged(stream, headers);
                }
            }
        });
    }

    /// Delivers the headerless traffic that arrives in a step. The function must run once per step.
    pub(crate) fn push_plain(&mut self, step: &TimeStep, inbox: &mut [Plain]) {
        if self.plain.to.is_empty() {
            return;
        }
        self.plain.cut(step, &self.starts, self.written, self.step);
        self.plain.for_each(|_, to, bytes, out| {
            let parcel = &mut inbox[to];
            parcel.bytes = bytes;
            if let Some(out) = out {
                parcel.age_s = out.age_s;
            }
        });
    }

    /// Returns the bytes of a data stream in transit.
    pub(crate) fn data_bytes(&self, stream: usize) -> f64 {
        let lane = &self.data;
        (lane.read..self.written)
            .map(|row| {
                let left = if row == lane.read { 1.0 - lane.consumed } else { 1.0 };
                left * lane.volumes[self.slot(row) * lane.to.len() + stream]
            })
            .sum()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let lane = |lane: &Lane| (lane.volumes.capacity() + lane.ages.capacity()) * size_of::<f64>();
        lane(&self.data) + lane(&self.plain) + self.headers.capacity() * size_of::<AnyHeader>()
    }
}

/// Copies columns with `streams` entries per row into new columns of `slots` rows.
fn resized<T: Copy + Default>(old: &[T], streams: usize, rows: std::ops::Range<u64>, slots: usize) -> Vec<T> {
    let mut new = vec![T::default(); slots * streams];
    let before = slots / 2;
    for row in rows {
        let (from, to) = ((row as usize & (before - 1)) * streams, (row as usize & (slots - 1)) * streams);
        new[to..to + streams].copy_from_slice(&old[from..from + streams]);
    }
    new
}

impl Lane {
    fn new(latency: Duration, to: Vec<u32>, slots: usize) -> Self {
        let places = slots * to.len();
        Self {
            latency,
            volumes: vec![0.0; places],
            ages: vec![0.0; places],
            to,
            read: 0,
            consumed: 0.0,
            pieces: Vec::with_capacity(4),
            middle: 0,
            packet_bytes: 0.0,
            windows: Vec::new(),
            arrived: Instant::ZERO,
        }
    }

    fn beyond_min(&self, course: &Course, time: Instant) -> Duration {
        course.latency(time, self.packet_bytes) - course.latency_min(self.packet_bytes)
    }

    /// Computes the pieces of rows that arrive in a step.
    fn cut(&mut self, step: &TimeStep, starts: &[Instant], written: u64, row_length: Duration) {
        let slot = |row: u64| row as usize & (starts.len() - 1);
        if self.windows.is_empty() {
            self.cut_rows(step, |row| (starts[slot(row)], starts[slot(row + 1)]), slot, written, row_length);
        } else {
            let windows = std::mem::take(&mut self.windows);
            self.cut_rows(step, |row| windows[slot(row)], slot, written, row_length);
            self.windows = windows;
        }
    }

    /// Cuts rows into the pieces that arrive in a step.
    ///
    /// `window` gives a row's arrival window without the latency, and `slot` the row's index in the columns.
    #[inline]
    fn cut_rows(
        &mut self,
        step: &TimeStep,
        window: impl Fn(u64) -> (Instant, Instant),
        slot: impl Fn(u64) -> usize,
        written: u64,
        row_length: Duration,
    ) {
        self.pieces.clear();
        self.middle = 0;
        let until = step.to.before(self.latency);
        let middle = step.middle.before(self.latency);
        while self.read < written {
            let (start, end) = window(self.read);
            if start >= until {
                break;
            }
            let whole = end <= until;
            let upto = if whole { 1.0 } else { until.since(start) / end.since(start) };
            let share = upto - self.consumed;
            if share > 0.0 || whole {
                // When the fluid in the middle of the step entered the queue; for another row, that in the piece's own middle.
                let in_middle = start <= middle && middle < end;
                let place =
                    if in_middle { middle.since(start) / end.since(start) } else { self.consumed + share / 2.0 };
                let entered = Instant::ZERO + row_length * self.read;
                let age_s = step.middle.since(entered).as_secs() - place * step.length_s;
                if in_middle {
                    self.middle = self.pieces.len();
                }
                self.pieces.push(Piece { base: slot(self.read) * self.to.len(), share, age_s });
            }
            if !whole {
                self.consumed = upto;
                break;
            }
            self.consumed = 0.0;
            self.read += 1;
        }
    }

    /// Visits every stream with its index, its inbox index, the arriving bytes and their representative parcel. A
    /// stream without arriving bytes has no representative.
    #[inline]
    fn for_each(&self, mut visit: impl FnMut(usize, usize, f64, Option<Out>)) {
        let streams = self.to.len();
        // Nearly always these are the end of one row and the beginning of the next.
        let (one, two) = match self.pieces.as_slice() {
            &[one] => (one, Piece { share: 0.0, ..one }),
            &[one, two] => (one, two),
            pieces => {
                for (stream, &to) in self.to.iter().enumerate() {
                    let bytes = pieces.iter().map(|p| self.amount(p, stream)).sum();
                    visit(stream, to as usize, bytes, (bytes > 0.0).then(|| self.largest(stream)));
                }
                return;
            }
        };
        let middle = &self.pieces[self.middle];
        let volumes = |piece: &Piece| &self.volumes[piece.base..piece.base + streams];
        let columns = volumes(&one).iter().zip(volumes(&two)).zip(volumes(middle));
        for (stream, (&to, ((&first, &second), &typical))) in self.to.iter().zip(columns).enumerate() {
            let bytes = one.share * first + two.share * second;
            let out = (bytes > 0.0).then(|| {
                if typical > 0.0 && middle.share > 0.0 {
                    let place = middle.base + stream;
                    Out { place, age_s: middle.age_s + self.ages[place] }
                } else {
                    self.largest(stream)
                }
            });
            visit(stream, to as usize, bytes, out);
        }
    }

    fn amount(&self, piece: &Piece, stream: usize) -> f64 {
        piece.share * self.volumes[piece.base + stream]
    }

    /// Returns the representative of a stream that begins or ends within the step: the stream's largest piece.
    #[cold]
    fn largest(&self, stream: usize) -> Out {
        let amounts = self.pieces.iter().max_by(|a, b| self.amount(a, stream).total_cmp(&self.amount(b, stream)));
        let piece = amounts.unwrap_or(&self.pieces[self.middle]);
        let place = piece.base + stream;
        Out { place, age_s: piece.age_s + self.ages[place] }
    }

    /// Returns the combined header of a stream's arrivals, for headers that are sums over packets.
    fn merged(&self, stream: usize, headers: &[AnyHeader]) -> AnyHeader {
        let places = self.pieces.iter().map(|p| (p.share, p.base + stream));
        let parts = places.filter(|&(_, place)| self.volumes[place] > 0.0);
        let parts = parts.map(|(share, place)| headers[place].part(share));
        parts.reduce(|sum, part| sum.joined(&part)).unwrap_or_default()
    }
}
