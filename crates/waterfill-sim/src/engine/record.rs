//! Record of a run: the time series, and the times at which all parts of the network are read together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use waterfill_laws::protocol::Probe;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::Series;
use waterfill_network::series::{CAPACITY_COLUMN, FLOW_COLUMNS, LINK_COLUMNS, PAUSED_COLUMN, TRAFFIC_COLUMNS};

use super::Part;
use super::buffers::SharedBuffer;
use crate::link::Link;
use crate::meter::Reading;

/// A reading of the whole network. Those of one time are handled in the order of this list, before all events of that
/// time: what is read is the state before anything else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Observation {
    /// The summary's measurement window opens.
    WindowOpens,
    /// The summary's measurement window closes.
    WindowCloses,
    /// A sample of the time series is due.
    Sample,
}

/// Where a link or host is: its part, and its index there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) part: u32,
    pub(super) index: u32,
}

/// Places of the network's links and of its flows' hosts. Lists are empty while one part has them all in order.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) links: Vec<Place>,
    pub(super) senders: Vec<Place>,
    pub(super) receivers: Vec<Place>,
}

/// Returns the part and the index there of the `i`-th of these entities.
pub(super) fn place(places: &[Place], i: usize) -> (usize, usize) {
    places.get(i).map_or((0, i), |place| (place.part as usize, place.index as usize))
}

/// Time series of a run, and what is due to be read.
#[derive(Debug)]
pub(super) struct Record {
    due: BinaryHeap<Reverse<(Instant, Observation)>>,
    pub(super) events: u64,
    pub(super) places: Places,
    /// Interval between samples of links.
    sample: Duration,
    /// Number of samples of links per sample of flows and traffic sources, and of those since the last one.
    per_sample: u32,
    since_sample: u32,
    /// Time of the last sample of links, and of flows and traffic sources.
    pub(super) sampled: Instant,
    flows_sampled: Instant,
    /// Indexes of the links with a series, and the statistics of each at its last sample.
    sampled_links: Vec<u32>,
    link_readings: Vec<Reading>,
    /// Bytes received by each flow, and from each traffic source, up to the last sample.
    flow_bytes: Vec<u64>,
    traffic_bytes: Vec<u64>,
    /// Columns that queue disciplines add to the series of links.
    queue_columns: Vec<&'static str>,
    /// True if the capacity of some link changes.
    varies: bool,
    /// True if some link can be paused.
    pauses: bool,
    flow_series: Series,
    link_series: Series,
    traffic_series: Series,
}

/// Columns of a link's row that the queue discipline fills in.
struct QueueCells<'a> {
    names: &'a [&'static str],
    values: &'a mut [f64],
}

impl Probe for QueueCells<'_> {
    fn record(&mut self, signal: &str, value: f64) {
        let column = self.names.iter().position(|&name| name == signal);
        debug_assert!(column.is_some(), "{signal} is not a column of a queue discipline");
        if let Some(column) = column {
            self.values[column] = value;
        }
    }
}

/// Returns the mean rate since the last sample in bit/s, and stores the total for the next sample.
fn rate_since(sampled: &mut u64, total: u64, lasted_s: f64) -> f64 {
    let bytes = total - std::mem::replace(sampled, total);
    bytes as f64 * 8.0 / lasted_s
}

impl Record {
    /// Prepares the record of a network that has not begun.
    pub(super) fn new(whole: &Part) -> Self {
        let of_flows = distinct(whole.senders.iter().map(|host| host.protocol));
        let of_web = whole.traffic.iter().filter_map(|traffic| traffic.web.as_ref()).map(|web| web.law.protocol);
        let all = distinct(of_flows.iter().copied().chain(of_web));
        let queue_columns = distinct(whole.links.iter().flat_map(|link| link.queue_columns().iter().copied()));
        let varies = whole.links.iter().any(Link::varies);
        let pauses = whole.links.iter().any(Link::can_pause);
        let capacity: &[&str] = if varies { &[CAPACITY_COLUMN] } else { &[] };
        let paused: &[&str] = if pauses { &[PAUSED_COLUMN] } else { &[] };
        let link_columns = [&LINK_COLUMNS[..], capacity, paused, &queue_columns].concat();
        let per_sample = whole.network.samples_of_links();
        let sample = Duration::from_secs(whole.network.sample_s / f64::from(per_sample));
        let sampled_links = whole.network.sampled_links();
        let due = [
            (whole.measure.0, Observation::WindowOpens),
            (whole.measure.1, Observation::WindowCloses),
            (Instant::ZERO + sample, Observation::Sample),
        ];
        Self {
            due: due.into_iter().map(Reverse).collect(),
            events: 0,
            places: Places::default(),
            sample,
            per_sample,
            since_sample: 0,
            sampled: Instant::ZERO,
            flows_sampled: Instant::ZERO,
            link_readings: vec![Reading::default(); sampled_links.len()],
            sampled_links,
            flow_bytes: vec![0; whole.senders.len()],
            traffic_bytes: vec![0; whole.traffic.len()],
            flow_series: Series::with_signals(&FLOW_COLUMNS, &whole.network, &of_flows),
            link_series: Series::with_signals(&link_columns, &whole.network, &all),
            traffic_series: Series::new(&TRAFFIC_COLUMNS),
            queue_columns,
            varies,
            pauses,
        }
    }

    /// Returns the time at which the network is read next; `NEVER` if it is not.
    pub(super) fn due(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((time, _))| *time)
    }

    /// Returns the number of the network's flows.
    pub(super) fn flows(&self) -> usize {
        self.flow_bytes.len()
    }

    pub(super) fn pending(&self) -> usize {
        self.due.len()
    }

    pub(super) const fn series(&self) -> [&Series; 3] {
        [&self.flow_series, &self.link_series, &self.traffic_series]
    }

    /// Reads the network for the next observation. All earlier events of all parts have been handled.
    pub(super) fn observe(&mut self, parts: &mut [&mut Part]) {
        let Some(Reverse((now, observation))) = self.due.pop() else { return };
        self.events += 1;
        for part in parts.iter_mut() {
            part.now = now;
        }
        match observation {
            Observation::WindowOpens => parts.iter_mut().for_each(|part| part.open_window(now)),
            Observation::WindowCloses => parts.iter_mut().for_each(|part| part.close_window(now)),
            Observation::Sample => {
                self.take_sample(parts, now);
                self.due.push(Reverse((now + self.sample, observation)));
            }
        }
        for part in parts.iter_mut() {
            part.schedule_lossless();
        }
    }

    /// Appends one row per link, and at the end of the flows' interval one per flow and traffic source, to the time series.
    fn take_sample(&mut self, parts: &mut [&mut Part], now: Instant) {
        for part in parts.iter_mut() {
            part.find_deadlock(now);
        }
        self.sampled = now;
        self.sample_links(parts, now);
        self.since_sample += 1;
        if self.since_sample == self.per_sample {
            self.sample_senders(parts, now);
        }
    }

    /// Takes the samples of the rest of the last intervals.
    pub(super) fn take_last_sample(&mut self, parts: &mut [&mut Part], end: Instant) {
        if self.sampled < end {
            for part in parts.iter_mut() {
                part.find_deadlock(end);
            }
            self.sampled = end;
            self.sample_links(parts, end);
        }
        if self.flows_sampled < end {
            self.sample_senders(parts, end);
        }
    }

    fn sample_senders(&mut self, parts: &[&mut Part], now: Instant) {
        let lasted_s = now.since(self.flows_sampled).as_secs();
        (self.flows_sampled, self.since_sample) = (now, 0);
        self.sample_flows(parts, now, lasted_s);
        self.sample_traffic(parts, now, lasted_s);
    }

    /// Appends a row for each flow of the network. Flows of traffic sources are reported with their source.
    fn sample_flows(&mut self, parts: &[&mut Part], now: Instant, lasted_s: f64) {
        for (i, sampled) in self.flow_bytes.iter_mut().enumerate() {
            let (part, from) = place(&self.places.senders, i);
            let live = parts[part].senders[from].sender.is_live(now);
            let (there, to) = place(&self.places.receivers, i);
            let total = parts[there].receivers[to].receiver.bytes_total;
            if total == *sampled && !live {
                continue; // not started, or finished
            }
            let host = &parts[part].senders[from];
            let sender = &host.sender;
            self.flow_series.push(&[
                now.as_secs(),
                i as f64,
                rate_since(sampled, total, lasted_s),
                sender.window().map_or(f64::NAN, Volume::as_bytes),
                sender.pacing().map_or(f64::NAN, Rate::as_bps),
                sender.latest_rtt().map_or(f64::NAN, Duration::as_secs),
                sender.in_flight().as_bytes(),
            ]);
            sender.observe(&mut self.flow_series.newest(host.protocol));
        }
    }

    fn sample_links(&mut self, parts: &mut [&mut Part], now: Instant) {
        for (&i, reading) in self.sampled_links.iter().zip(&mut self.link_readings) {
            let (part, l) = place(&self.places.links, i as usize);
            let link = &mut parts[part].links[l];
            let (span, queue_max) = link.sample(now, reading);
            let row = [
                now.as_secs(),
                f64::from(i),
                span.utilization,
                span.queue_bytes,
                queue_max as f64,
                span.drops as f64,
                span.marks as f64,
                span.lost as f64,
            ];
            let mut of_queue = vec![f64::NAN; self.queue_columns.len()];
            link.observe_queue(&mut QueueCells { names: &self.queue_columns, values: &mut of_queue });
            let capacity: &[f64] = if self.varies { &[span.capacity.as_bps()] } else { &[] };
            let paused_s = if link.can_pause() { span.pauses.0.as_secs() } else { f64::NAN };
            let paused: &[f64] = if self.pauses { &[paused_s / span.lasted.as_secs()] } else { &[] };
            self.link_series.push(&[&row[..], capacity, paused, &of_queue].concat());
            for (id, router) in link.routers() {
                router.observe(&mut self.link_series.newest(*id));
            }
        }
    }

    fn sample_traffic(&mut self, parts: &[&mut Part], now: Instant, lasted_s: f64) {
        for (t, sampled) in self.traffic_bytes.iter_mut().enumerate() {
            let total = parts.iter().map(|part| part.traffic[t].bytes_total).sum();
            let of_parts = parts.iter().filter_map(|part| part.traffic[t].web.as_ref());
            let open = of_parts.map(|web| web.open as f64).reduce(|a, b| a + b).unwrap_or(f64::NAN);
            self.traffic_series.push(&[now.as_secs(), t as f64, rate_since(sampled, total, lasted_s), open]);
        }
    }
}

impl Part {
    fn open_window(&mut self, now: Instant) {
        self.buffers.iter_mut().for_each(|buffer| buffer.open_window(&mut self.links, now));
        self.links.iter_mut().for_each(|link| link.open_window(now));
    }

    fn close_window(&mut self, now: Instant) {
        self.buffers.iter_mut().for_each(SharedBuffer::close_window);
        self.links.iter_mut().for_each(|link| link.close_window(now));
    }
}

/// Returns the distinct items in order of first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if found.last() != Some(&item) && !found.contains(&item) {
            found.push(item);
        }
    }
    found
}
