//! One direction of a link: a fluid queue, its routers, and the pipe behind it.
//!
//! Within a step fluid arrives at a constant rate, so the queue is piecewise linear, with a corner where it becomes empty or
//! full. The step is cut at the routers' timers and where the rate changes; a router sees the load and the queue of each part
//! separately.

use std::ops::Range;

use waterfill_laws::protocol::{LinkView, PacketKind, Passing};
use waterfill_laws::registry::{AnyHeader, AnyRouter, ProtocolId};
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::Watch;

use crate::course::Course;
use crate::meter::{Meter, StepRecord};
use crate::pipe::{Inbox, Parcel, Pipe, Plain, TimeStep};

/// Number of router-law timers within a step between two polls of the watch.
const TIMERS_PER_POLL: u32 = 1024;

/// Data of one class that was dropped at a full buffer or on a link that is down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped {
    pub(crate) class: u32,
    pub(crate) bytes: f64,
}

/// Kind and size of the packets in a headerless stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainKind {
    pub(crate) kind: PacketKind,
    pub(crate) packet_bytes: f64,
}

/// Streams that cross a link: their inbox indices and their classes.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) data: Range<usize>,
    pub(crate) classes: Vec<u32>,
    /// Inbox indices of acknowledgements and uncontrolled traffic.
    pub(crate) plain: Range<usize>,
    pub(crate) kinds: Vec<PlainKind>,
}

/// Fluid state of one link direction.
#[derive(Debug)]
pub(crate) struct Link {
    view: LinkView,
    delay: Duration,
    buffer_bytes: f64,
    packet_bytes: f64,
    pub(crate) streams: Streams,
    pub(crate) pipe: Pipe,
    routers: Vec<(ProtocolId, AnyRouter)>,
    departures: bool,
    next_timer: Instant,
    changing: Option<Changing>,
    /// Volume that arrived and was not dropped, in packets.
    pub(crate) packets_passed: f64,
    pub(crate) meter: Meter,
    watch: Watch,
}

/// Course and current state of a link that changes.
#[derive(Debug)]
struct Changing {
    course: Course,
    /// Rate at which the link currently sends.
    rate: Rate,
    up: bool,
    next: Instant,
}

impl Changing {
    fn new(course: Course) -> Self {
        let now = *course.at(Instant::ZERO);
        Self { rate: now.rate, up: now.up, next: next_change(&course, Instant::ZERO), course }
    }
}

fn next_change(course: &Course, now: Instant) -> Instant {
    course.after(now).first().map_or(Instant::NEVER, |piece| piece.from)
}

/// Constructor arguments of a [`Link`].
#[derive(Debug)]
pub(crate) struct LinkParts {
    pub(crate) view: LinkView,
    pub(crate) delay: Duration,
    pub(crate) buffer_bytes: f64,
    pub(crate) packet_bytes: f64,
    pub(crate) streams: Streams,
    pub(crate) pipe: Pipe,
    pub(crate) routers: Vec<(ProtocolId, AnyRouter)>,
    pub(crate) meter: Meter,
    pub(crate) course: Option<Course>,
    pub(crate) watch: Watch,
}

impl Link {
    pub(crate) fn new(parts: LinkParts) -> Self {
        let LinkParts { view, delay, buffer_bytes, packet_bytes, streams, pipe, routers, meter, course, watch } = parts;
        Self {
            departures: routers.iter().any(|(_, router)| router.sees_departures()),
            next_timer: next_timer(&routers),
            view,
            delay,
            buffer_bytes,
            packet_bytes,
            streams,
            pipe,
            routers,
            packets_passed: 0.0,
            meter,
            changing: course.map(Changing::new),
            watch,
        }
    }

    pub(crate) fn routers(&self) -> &[(ProtocolId, AnyRouter)] {
        &self.routers
    }

    /// Logs the steps of the link's router laws.
    pub(crate) fn log_steps(&mut self, l: u32, log: &StepLog) {
        for (id, router) in &mut self.routers {
            log.router(*id, l, &self.view, router);
        }
    }

    /// Returns true if any stream crosses the link.
    pub(crate) fn is_used(&self) -> bool {
        !self.streams.data.is_empty() || !self.streams.plain.is_empty()
    }

    /// Returns the number of bytes waiting in the queue.
    fn queue_bytes(&self) -> f64 {
        self.view.queue.as_bytes()
    }

    /// Returns the departure time of an arrival at `now` that finds the current queue.
    fn leaves(&self, now: Instant) -> Instant {
        match &self.changing {
            None => now + self.wait(),
            Some(changing) => changing.course.leaves(now, self.queue_bytes()),
        }
    }

    /// Returns the queueing delay of an arrival now, on a link without changes.
    fn wait(&self) -> Duration {
        if self.view.queue > Volume::ZERO {
            Duration::from_secs(self.view.queue / self.view.capacity)
        } else {
            Duration::ZERO
        }
    }

    /// Forwards the SYN or SYN-ACK of each of `count` flows. Returns the arrival time at the far end, or `None` if the
    /// link is down.
    pub(crate) fn forward_syn(
        &mut self,
        now: Instant,
        bytes: f64,
        count: f64,
        mut header: Option<&mut AnyHeader>,
    ) -> Option<Instant> {
        if self.changing.as_ref().is_some_and(|changing| !changing.course.at(now).up) {
            return None;
        }
        let kind = if header.is_some() { PacketKind::Syn } else { PacketKind::Ack };
        for (_, router) in &mut self.routers {
            let volume = Volume::from_bytes(bytes * count);
            let mut passing = Passing { now, volume, packets: count, kind, header: header.as_deref_mut() };
            router.on_arrival(&self.view, &mut passing);
            if self.departures {
                router.on_departure(&self.view, &mut passing);
            }
        }
        let latency = match &self.changing {
            None => Duration::from_secs(bytes * 8.0 / self.view.capacity.as_bps()) + self.delay,
            Some(changing) => changing.course.latency(now, bytes),
        };
        Some(self.leaves(now) + latency)
    }

    /// Returns the latency to the far end without queueing, of data or of headerless streams.
    pub(crate) fn latency(&self, now: Instant, data: bool) -> Duration {
        let (of_data, of_all_else) = self.pipe.latencies();
        let shortest = if data { of_data } else { of_all_else };
        self.changing.as_ref().map_or(shortest, |changing| shortest + self.pipe.beyond_min(&changing.course, now, data))
    }

    /// Applies the changes up to the beginning of a step. If the link goes down, the waiting packets are dropped.
    fn change(&mut self, now: Instant, dropped: &mut Vec<Dropped>) {
        let Some(changing) = &mut self.changing else { return };
        let piece = *changing.course.at(now);
        if changing.up && !piece.up {
            let classes = &self.streams.classes;
            let take = |stream: usize, bytes| dropped.push(Dropped { class: classes[stream], bytes });
            let bytes = self.pipe.drop_waiting(now, take);
            self.meter.add_dropped(now, bytes / self.packet_bytes);
            self.view.queue = Volume::ZERO;
        }
        changing.up = piece.up;
        self.change_rate(now);
    }

    /// Applies the rate change that is due.
    fn change_rate(&mut self, now: Instant) {
        let Some(changing) = &mut self.changing else { return };
        let piece = changing.course.at(now);
        (changing.rate, self.view.capacity) = (piece.rate, piece.capacity);
        changing.next = next_change(&changing.course, now);
    }

    /// Queues the arrivals of a step and forwards them to the pipe.
    pub(crate) fn step(&mut self, step: &TimeStep, inbox: &mut Inbox, dropped: &mut Vec<Dropped>) {
        let data = &mut inbox.data[self.streams.data.clone()];
        let plain = &inbox.plain[self.streams.plain.clone()];
        let data_bytes: f64 = data.iter().map(|parcel| parcel.bytes).sum();
        let others = self.others(plain);
        let arrived = data_bytes + others.bytes();

        if self.changing.as_ref().is_some_and(|changing| changing.next <= step.from) {
            self.change(step.from, dropped);
        }
        let queue_before = self.queue_bytes();
        let overflow = self.fill(step, arrived, data, &others);
        let mut kept = 1.0;
        if overflow > 0.0 {
            let is_down = self.changing.as_ref().is_some_and(|changing| !changing.up);
            kept = if is_down { 0.0 } else { 1.0 - overflow / arrived };
            let dropping = data.iter().zip(&self.streams.classes).filter(|(parcel, _)| parcel.bytes > 0.0);
            dropped.extend(dropping.map(|(p, &class)| Dropped { class, bytes: p.bytes - p.bytes * kept }));
        }
        let end = self.leaves(step.to);
        self.pipe.write(data, plain, kept, end);
        let mut offered_bits = None;
        if let Some(Changing { course, .. }) = &self.changing {
            self.pipe.schedule(course);
            offered_bits = Some(course.bits(step.to) - course.bits(step.from));
        }

        let queue = self.queue_bytes();
        let served_bytes = (queue_before + arrived - overflow - queue).max(0.0);
        let dropped_packets = overflow / self.packet_bytes;
        self.packets_passed += data_bytes / self.packet_bytes + others.acks.1 + others.other.1 - dropped_packets;
        self.meter.add(step, &StepRecord { queue: (queue_before, queue), served_bytes, dropped_packets, offered_bits });
    }

    /// Returns the sums of a step's headerless arrivals.
    fn others(&self, plain: &[Plain]) -> Others {
        let mut others = Others::default();
        for (parcel, of) in plain.iter().zip(&self.streams.kinds) {
            let sum = if of.kind == PacketKind::Ack { &mut others.acks } else { &mut others.other };
            sum.0 += parcel.bytes;
            sum.1 += parcel.bytes / of.packet_bytes;
        }
        others
    }

    /// Advances the queue and the routers over a step with `arrived` bytes. Returns the dropped bytes: the excess over
    /// the buffer, or all arrivals while the link is down.
    fn fill(&mut self, step: &TimeStep, arrived: f64, data: &mut [Parcel], others: &Others) -> f64 {
        let is_up = self.changing.as_ref().is_none_or(|changing| changing.up);
        let mut served = self.served(step);
        let (mut at, mut overflow, mut written, mut timers) = (step.from, 0.0, false, 0u32);
        loop {
            let change = self.changing.as_ref().map_or(Instant::NEVER, |changing| changing.next);
            let until = self.next_timer.min(change).min(step.to);
            if until > at {
                let share = if until == step.to && at == step.from { 1.0 } else { until.since(at) / step.length };
                // A header is written once, by the router as it is in the middle of the step.
                let writes = !written && step.middle < until;
                if arrived > 0.0 && is_up {
                    self.arrive(at, share, writes, data, others);
                }
                let queue = self.queue_bytes() + share * (arrived - served);
                if is_up {
                    overflow += (queue - self.buffer_bytes).max(0.0);
                    self.view.queue = Volume::from_bytes(queue.clamp(0.0, self.buffer_bytes));
                } else {
                    overflow += share * arrived;
                }
                if writes {
                    written = true;
                    if self.departures {
                        self.depart(step, data);
                    }
                }
                at = until;
            }
            if change < step.to && change <= self.next_timer {
                self.change_rate(change);
                served = self.served(step);
                continue;
            }
            if self.next_timer > step.to {
                return overflow;
            }
            self.run_timers();
            timers += 1;
            if timers % TIMERS_PER_POLL == 0 && self.watch.poll() {
                self.next_timer = Instant::NEVER; // the run ends: its laws stand still
            }
        }
    }

    /// Returns the bytes that the link sends in a step at the current rate.
    fn served(&self, step: &TimeStep) -> f64 {
        let rate = self.changing.as_ref().map_or(self.view.capacity, |changing| changing.rate);
        rate.as_bps() / 8.0 * step.length_s
    }

    /// Passes a fraction of a step's arrivals to the routers. If `writes` is true, the routers may change headers.
    fn arrive(&mut self, now: Instant, share: f64, writes: bool, data: &mut [Parcel], others: &Others) {
        for (_, router) in &mut self.routers {
            for parcel in data.iter_mut() {
                if parcel.bytes > 0.0 {
                    let bytes = parcel.bytes * share;
                    let (volume, packets) = (Volume::from_bytes(bytes), bytes / self.packet_bytes);
                    let mut copy = parcel.header;
                    let header = Some(if writes { &mut parcel.header } else { &mut copy });
                    let mut passing = Passing { now, volume, packets, kind: PacketKind::Data, header };
                    router.on_arrival(&self.view, &mut passing);
                }
            }
            for ((bytes, packets), kind) in [(others.acks, PacketKind::Ack), (others.other, PacketKind::Other)] {
                if bytes > 0.0 {
                    let (volume, packets) = (Volume::from_bytes(bytes * share), packets * share);
                    router.on_arrival(&self.view, &mut Passing { now, volume, packets, kind, header: None });
                }
            }
        }
    }

    /// Passes the fluid of every step to the routers once, when the first byte of this fluid leaves.
    fn depart(&mut self, step: &TimeStep, data: &mut [Parcel]) {
        let (view, packet_bytes, now) = (&self.view, self.packet_bytes, step.middle);
        let leave = |router: &mut AnyRouter, bytes: f64, header: &mut AnyHeader| {
            if bytes > 0.0 {
                let (volume, packets) = (Volume::from_bytes(bytes), bytes / packet_bytes);
                let mut passing = Passing { now, volume, packets, kind: PacketKind::Data, header: Some(header) };
                router.on_departure(view, &mut passing);
            }
        };
        while let Some(row) = self.pipe.leaving(step.to) {
            let (volumes, headers) = self.pipe.row(row);
            for (_, router) in &mut self.routers {
                for (&bytes, header) in volumes.iter().zip(headers.iter_mut()) {
                    leave(router, bytes, header);
                }
            }
        }
        if self.pipe.leaves_at_once(step.to) {
            for (_, router) in &mut self.routers {
                for parcel in data.iter_mut() {
                    leave(router, parcel.bytes, &mut parcel.header);
                }
            }
        }
    }

    fn run_timers(&mut self) {
        let due = self.next_timer;
        for (_, router) in &mut self.routers {
            if router.poll_at() <= due {
                router.on_timer(&self.view, due);
            }
        }
        self.next_timer = next_timer(&self.routers);
    }
}

fn next_timer(routers: &[(ProtocolId, AnyRouter)]) -> Instant {
    routers.iter().map(|(_, router)| router.poll_at()).min().unwrap_or(Instant::NEVER)
}

/// Bytes and packets of a step's headerless arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    acks: (f64, f64),
    other: (f64, f64),
}

impl Others {
    fn bytes(&self) -> f64 {
        self.acks.0 + self.other.0
    }
}
