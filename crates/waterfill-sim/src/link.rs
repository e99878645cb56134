//! One direction of a link: a first-in-first-out queue, a transmitter, a wire.
//!
//! A packet's departure is known when it joins, so the only event a packet needs is its arrival at
//! the far end, and only the head of each link needs that. Everything that happens in
//! between (service starts, `on_departure`, router timers, queue statistics) is caught up with
//! by [`Link::advance`], in time order, before anything looks.

use std::collections::VecDeque;

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::protocol::LinkView;
use waterfill_laws::registry::{AnyPassing, AnyRouter, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

use crate::meter::{LinkResult, Meter, Reading, Span};
use crate::network::LinkSpec;
use crate::packet::{Cargo, Flags, Packet};

/// A packet that has joined a link.
#[derive(Debug)]
struct Joined {
    packet: Packet,
    /// When its transmission starts.
    starts: Instant,
    /// When it is at the far end.
    arrives: Instant,
    /// Sequence number of its joining: breaks ties between events of the same time.
    order: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Link {
    view: LinkView,
    delay: Duration,
    buffer_bytes: u64,
    buffer_packets: u64,
    loss: f64,
    rng: Pcg64,
    routers: Vec<(ProtocolId, AnyRouter)>,
    /// Whether one of them wants to see departures.
    departures: bool,
    joined: VecDeque<Joined>,
    /// How many of `joined` have started their transmission.
    started: usize,
    waiting_bytes: u64,
    /// When the transmitter has sent all that has joined.
    free_at: Instant,
    /// The earliest of the routers' timers.
    next_timer: Instant,
    /// The earliest of `next_timer` and the next start of a transmission.
    next_change: Instant,
    /// Size and transmission time of the packet before: most packets are of one size.
    transmission: (u16, Duration),
    meter: Meter,
}

/// What became of a packet that came to a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// The buffer is full.
    Dropped,
    /// It is the head: an event is needed at this time.
    Head(Instant),
    /// It is behind others: their event will see to it.
    Behind,
}

impl Link {
    pub(crate) fn new(id: u32, spec: &LinkSpec, rng: Pcg64) -> Self {
        let view = LinkView { id, capacity: Rate::from_bps(spec.rate_bps), target: spec.target, queue: Volume::ZERO };
        Self {
            view,
            delay: Duration::from_secs(spec.delay_s),
            buffer_bytes: spec.buffer_bytes.unwrap_or(u64::MAX),
            buffer_packets: spec.buffer_packets.unwrap_or(u64::MAX),
            loss: spec.loss,
            rng,
            routers: Vec::new(),
            departures: false,
            joined: VecDeque::new(),
            started: 0,
            waiting_bytes: 0,
            free_at: Instant::ZERO,
            next_timer: Instant::NEVER,
            next_change: Instant::NEVER,
            transmission: (0, Duration::ZERO),
            meter: Meter::new(view.capacity),
        }
    }

    pub(crate) const fn view(&self) -> &LinkView {
        &self.view
    }

    pub(crate) fn add_router(&mut self, id: ProtocolId, router: AnyRouter) {
        self.next_timer = self.next_timer.min(router.poll_at());
        self.next_change = self.next_change.min(self.next_timer);
        self.departures |= router.sees_departures();
        self.routers.push((id, router));
    }

    pub(crate) fn has_router(&self, id: ProtocolId) -> bool {
        self.routers.iter().any(|&(known, _)| known == id)
    }

    pub(crate) fn routers(&self) -> &[(ProtocolId, AnyRouter)] {
        &self.routers
    }

    /// Packets queued, in transmission and on the wire.
    pub(crate) fn packets(&self) -> usize {
        self.joined.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.joined.capacity() * size_of::<Joined>() + self.meter.heap_bytes()
    }

    fn waiting_packets(&self) -> u64 {
        (self.joined.len() - self.started) as u64
    }

    /// Catches up with all that has happened up to and including `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.next_change <= now {
            if self.next_change < self.next_timer {
                self.start_waiting();
            } else {
                self.run_timers();
            }
            self.next_change = self.next_timer.min(self.next_start());
        }
    }

    fn next_start(&self) -> Instant {
        self.joined.get(self.started).map_or(Instant::NEVER, |j| j.starts)
    }

    /// The packet at the head of the queue starts its transmission.
    fn start_waiting(&mut self) {
        let queue_before = (self.waiting_bytes, self.waiting_packets());
        let joined = &self.joined[self.started];
        let (bytes, starts) = (joined.packet.bytes, joined.starts);
        self.meter.queue_was(starts, queue_before);
        self.waiting_bytes -= u64::from(bytes);
        self.view.queue = Volume::from_bytes(self.waiting_bytes as f64);
        self.start(starts);
    }

    /// The first packet that has not started does.
    fn start(&mut self, now: Instant) {
        let joined = &mut self.joined[self.started];
        self.started += 1;
        // Its transmission ends one propagation delay before it arrives.
        self.meter.started(joined.packet.bytes, joined.arrives.before(self.delay));
        if !self.departures {
            return;
        }
        for (_, router) in &mut self.routers {
            router.on_departure(&self.view, &mut passing(now, &mut joined.packet));
        }
    }

    fn run_timers(&mut self) {
        let due = self.next_timer;
        for (_, router) in &mut self.routers {
            if router.poll_at() <= due {
                router.on_timer(&self.view, due);
            }
        }
        self.next_timer = self.routers.iter().map(|(_, router)| router.poll_at()).min().unwrap_or(Instant::NEVER);
    }

    /// A packet comes to the link.
    pub(crate) fn join(&mut self, now: Instant, mut packet: Packet, order: u64) -> Join {
        self.advance(now);
        for (_, router) in &mut self.routers {
            router.on_arrival(&self.view, &mut passing(now, &mut packet));
        }
        let idle = self.free_at <= now;
        let bytes = u64::from(packet.bytes);
        let fits = self.waiting_bytes + bytes <= self.buffer_bytes && self.waiting_packets() < self.buffer_packets;
        if !idle && !fits {
            self.meter.dropped();
            return Join::Dropped;
        }
        if self.loss > 0.0 && uniform(&mut self.rng) < self.loss {
            packet.flags.set(Flags::LOST);
            self.meter.lost();
        }
        let starts = self.free_at.max(now);
        let queue_before = (self.waiting_bytes, self.waiting_packets());
        self.free_at = starts + self.transmission_time(packet.bytes);
        let arrives = self.free_at + self.delay;
        self.joined.push_back(Joined { packet, starts, arrives, order });
        if idle {
            self.start(now);
        } else {
            self.meter.queue_was(now, queue_before);
            self.waiting_bytes += bytes;
            self.meter.queue_grew(self.waiting_bytes, self.waiting_packets());
            self.view.queue = Volume::from_bytes(self.waiting_bytes as f64);
            self.next_change = self.next_change.min(self.next_start());
        }
        if self.joined.len() == 1 { Join::Head(arrives) } else { Join::Behind }
    }

    /// The head arrives at the far end. Call it at the time it was due.
    pub(crate) fn deliver(&mut self, now: Instant) -> Packet {
        self.advance(now);
        self.started -= 1;
        self.joined.pop_front().expect("an event stands for a packet").packet
    }

    /// When the head arrives, and the order it joined in.
    pub(crate) fn head(&self) -> Option<(Instant, u64)> {
        self.joined.front().map(|j| (j.arrives, j.order))
    }

    /// Brings statistics up to `now`.
    fn settle(&mut self, now: Instant) {
        self.advance(now);
        self.meter.queue_was(now, (self.waiting_bytes, self.waiting_packets()));
    }

    /// What has been since the reading `before`, which becomes now's, and the largest queue.
    pub(crate) fn sample(&mut self, now: Instant, before: &mut Reading) -> (Span, u64) {
        self.settle(now);
        let reading = self.meter.read();
        let span = self.meter.span(before, &reading);
        *before = reading;
        (span, self.meter.take_sample_max(self.waiting_bytes))
    }

    /// The summary's window begins.
    pub(crate) fn open_window(&mut self, now: Instant) {
        self.settle(now);
        self.meter.open_window((self.waiting_bytes, self.waiting_packets()));
    }

    /// The summary's window ends.
    pub(crate) fn close_window(&mut self, now: Instant) {
        self.settle(now);
        self.meter.close_window();
    }

    /// The figures of the window, up to now if it is still open.
    pub(crate) fn result(&mut self, now: Instant) -> LinkResult {
        self.settle(now);
        self.meter.result()
    }

    fn transmission_time(&mut self, bytes: u16) -> Duration {
        if self.transmission.0 != bytes {
            self.transmission = (bytes, self.view.capacity.time_for(u32::from(bytes)));
        }
        self.transmission.1
    }
}

/// A packet as a router sees it. An echo passes as load: no router writes on the way back.
fn passing(now: Instant, packet: &mut Packet) -> AnyPassing<'_> {
    let (volume, kind) = (Volume::from_bytes(f64::from(packet.bytes)), packet.role.kind());
    let header = match &mut packet.cargo {
        Cargo::Header(header) => Some(header),
        Cargo::Echo(_) => None,
    };
    AnyPassing { now, volume, packets: 1.0, kind, header }
}

/// A real number in [0, 1) from a random stream.
pub(crate) fn uniform(rng: &mut Pcg64) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A wire without a transmitter: every packet is delayed by the same time.
#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: Duration,
    packets: VecDeque<(Instant, u64, Packet)>,
}

impl DelayLine {
    pub(crate) const fn new(delay: Duration) -> Self {
        Self { delay, packets: VecDeque::new() }
    }

    pub(crate) const fn delay(&self) -> Duration {
        self.delay
    }

    pub(crate) fn join(&mut self, now: Instant, packet: Packet, order: u64) -> Join {
        let arrives = now + self.delay;
        self.packets.push_back((arrives, order, packet));
        if self.packets.len() == 1 { Join::Head(arrives) } else { Join::Behind }
    }

    pub(crate) fn deliver(&mut self) -> Packet {
        self.packets.pop_front().expect("an event stands for a packet").2
    }

    pub(crate) fn head(&self) -> Option<(Instant, u64)> {
        self.packets.front().map(|&(arrives, order, _)| (arrives, order))
    }

    pub(crate) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<(Instant, u64, Packet)>()
    }
}
