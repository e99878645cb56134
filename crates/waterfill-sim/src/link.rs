//! One direction of a link: a queue, a transmitter, a wire.
//!
//! Behind a first-in-first-out queue a packet's departure is known when it joins, so the only event a packet needs is its
//! arrival at the far end, and only the head of each link needs that. Everything that happens in
//! between (service starts, `on_departure`, router timers, queue statistics) is caught up with
//! by [`Link::advance`], in time order, before anything looks.
//!
//! A discipline that decides at departure keeps the waiting packets itself ([`Discipline`](crate::queue::Discipline)).
//! Then the ring holds what is in transmission and on the wire alone, and [`Link::advance`] also asks the discipline for
//! the next packet, at the time the transmitter became free. No further event is needed: the packet in transmission
//! arrives no earlier than the transmitter becomes free, and its arrival catches up first, so the one behind it is on its
//! way before anybody asks for the head.

use std::collections::VecDeque;

use waterfill_laws::protocol::LinkView;
use waterfill_laws::registry::{AnyPassing, AnyRouter, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::{LinkSpec, LossSpec, Network};

use crate::fault::Faults;
use crate::meter::{LinkResult, Meter, Reading, Span};
use crate::packet::{Cargo, Flags, Packet, SackId};
use crate::queue::cohabit::Cohabit;
use crate::queue::{Admission, Arriving, Backlog, Fates, LinkPart, Queue, Room, Setting, Verdict, Waiting};
use crate::random::{Part, stream};

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
    /// What its laws are shown.
    view: LinkView,
    /// Of the transmitter.
    capacity: Rate,
    delay: Duration,
    room: Room,
    queue: Queue,
    /// What the queue did to packets that had been taken in; the engine counts the dropped.
    fates: Fates,
    faults: Option<Box<Faults>>,
    routers: Vec<(ProtocolId, AnyRouter)>,
    /// The smallest share of the capacity that one of them aims at.
    target: f64,
    /// Whether one of them wants to see departures.
    departures: bool,
    joined: VecDeque<Joined>,
    /// How many of `joined` have started their transmission.
    started: usize,
    backlog: Backlog,
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
    pub(crate) fn new(id: u32, spec: &LinkSpec, network: &Network) -> Self {
        let view = LinkView { id, capacity: Rate::from_bps(spec.rate_bps), target: spec.target, queue: Volume::ZERO };
        let rng = stream(network.seed, id, Part::Queue);
        let setting = Setting { capacity: view.capacity, packet_bytes: network.packet_bytes, rng };
        let loss = spec.loss_model.or_else(|| (spec.loss > 0.0).then_some(LossSpec::Independent { p: spec.loss }));
        Self {
            view,
            capacity: view.capacity,
            delay: Duration::from_secs(spec.delay_s),
            room: Room {
                bytes: spec.buffer_bytes.unwrap_or(u64::MAX),
                packets: spec.buffer_packets.unwrap_or(u64::MAX),
            },
            queue: Queue::new(&spec.queue, setting),
            fates: Fates::default(),
            faults: Faults::new(network.seed, id, loss, spec.reorder, spec.duplicate),
            routers: Vec::new(),
            target: 1.0,
            departures: false,
            joined: VecDeque::new(),
            started: 0,
            backlog: Backlog::default(),
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

    /// Adds a router law that aims at this share of the capacity.
    pub(crate) fn add_router(&mut self, id: ProtocolId, router: AnyRouter, target: f64) {
        self.target = self.target.min(target);
        if let Queue::Fifo(Admission::Cohabit(guard)) = &mut self.queue {
            guard.aim_at(self.view.target.unwrap_or(self.target));
        }
        self.next_timer = self.next_timer.min(router.poll_at());
        self.next_change = self.next_change.min(self.next_timer);
        self.departures |= router.sees_departures();
        self.routers.push((id, router));
    }

    pub(crate) fn has_router(&self, id: ProtocolId) -> bool {
        self.routers.iter().any(|&(known, _)| known == id)
    }

    /// What protects explicit flows here, if anything does.
    pub(crate) fn cohabit(&self) -> Option<&Cohabit> {
        match &self.queue {
            Queue::Fifo(Admission::Cohabit(guard)) => Some(guard),
            Queue::Fifo(_) => None,
            Queue::Own(own) => own.cohabit(),
        }
    }

    pub(crate) fn routers(&self) -> &[(ProtocolId, AnyRouter)] {
        &self.routers
    }

    /// Packets queued, in transmission and on the wire.
    pub(crate) fn packets(&self) -> usize {
        let own = match &self.queue {
            Queue::Fifo(_) => 0,
            Queue::Own(own) => own.backlog().packets as usize,
        };
        own + self.joined.len() + self.faults.as_ref().map_or(0, |faults| faults.strays())
    }

    /// How much later than in order a late packet arrives.
    pub(crate) fn lateness(&self) -> Duration {
        self.faults.as_ref().map_or(Duration::ZERO, |faults| faults.lateness())
    }

    /// A packet that has left the order of the wire is to arrive at this time.
    pub(crate) fn add_stray(&mut self, arrives: Instant, packet: Packet) {
        if let Some(faults) = &mut self.faults {
            faults.add_stray(arrives, packet);
        }
    }

    /// The packet out of order that is due.
    #[cold]
    pub(crate) fn deliver_stray(&mut self) -> Packet {
        self.faults.as_mut().and_then(|faults| faults.deliver_stray()).expect("an event stands for a packet")
    }

    /// Packets that were dropped after they had been taken in: the slots of their blocks, until the engine takes them.
    pub(crate) fn discarded(&self) -> &[SackId] {
        &self.fates.dropped
    }

    pub(crate) fn has_discarded(&self) -> bool {
        !self.fates.dropped.is_empty()
    }

    pub(crate) fn take_discarded(&mut self) -> impl Iterator<Item = SackId> {
        self.fates.dropped.drain(..)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let own = match &self.queue {
            Queue::Fifo(Admission::Cohabit(guard)) => guard.heap_bytes(),
            Queue::Fifo(_) => 0,
            Queue::Own(own) => own.heap_bytes(),
        };
        own + self.joined.capacity() * size_of::<Joined>() + self.meter.heap_bytes()
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
        match &self.queue {
            Queue::Fifo(_) => self.joined.get(self.started).map_or(Instant::NEVER, |j| j.starts),
            Queue::Own(_) if self.backlog.packets > 0 => self.free_at,
            Queue::Own(_) => Instant::NEVER,
        }
    }

    /// The packet at the head of the queue starts its transmission.
    fn start_waiting(&mut self) {
        if matches!(self.queue, Queue::Own(_)) {
            self.serve(self.free_at);
            return;
        }
        let joined = &self.joined[self.started];
        let (bytes, starts) = (joined.packet.bytes, joined.starts);
        if let Queue::Fifo(Admission::Cohabit(guard)) = &mut self.queue {
            guard.starts(&joined.packet);
        }
        self.meter.queue_was(starts, self.backlog);
        self.backlog.bytes -= u64::from(bytes);
        self.backlog.packets -= 1;
        self.show_queue();
        self.start(starts);
    }

    /// The laws' view of the queue.
    fn show_queue(&mut self) {
        let bytes = match &self.queue {
            Queue::Fifo(Admission::Cohabit(guard)) => guard.queue_shown(self.backlog.bytes),
            _ => self.backlog.bytes,
        };
        self.view.queue = Volume::from_bytes(bytes as f64);
    }

    /// The first packet that has not started does.
    fn start(&mut self, now: Instant) {
        let joined = &mut self.joined[self.started];
        self.started += 1;
        // Its transmission ends one propagation delay before it arrives.
        self.meter.started(joined.packet.bytes, joined.arrives.before(self.delay));
        if !self.departures || matches!(&self.queue, Queue::Own(own) if !own.is_shown(&joined.packet)) {
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
        // Before the routers: they must not give way to packets that are turned away.
        if matches!(self.queue, Queue::Fifo(Admission::Cohabit(_))) && !self.guard(now, &mut packet) {
            return Join::Dropped;
        }
        if !matches!(self.queue, Queue::Own(_)) || self.announce(now, &packet) {
            for (_, router) in &mut self.routers {
                router.on_arrival(&self.view, &mut passing(now, &mut packet));
            }
        }
        if !matches!(self.queue, Queue::Fifo(Admission::Open)) {
            if let Some(done) = self.decide(now, &mut packet, order) {
                return done;
            }
        }
        let idle = self.free_at <= now;
        let bytes = u64::from(packet.bytes);
        if !(idle || self.room.has(self.backlog, bytes)) {
            self.meter.dropped(1);
            return Join::Dropped;
        }
        let starts = self.free_at.max(now);
        let arrives = self.put_on_wire(packet, starts, order);
        if idle {
            self.start(now);
        } else {
            self.meter.queue_was(now, self.backlog);
            self.backlog.bytes += bytes;
            self.backlog.packets += 1;
            self.meter.queue_grew(self.backlog);
            if let Queue::Fifo(Admission::Cohabit(guard)) = &mut self.queue {
                guard.waits(&packet);
            }
            self.show_queue();
            self.next_change = self.next_change.min(self.next_start());
        }
        if self.joined.len() == 1 { Join::Head(arrives) } else { Join::Behind }
    }

    /// Whether what protects explicit flows lets a packet on; it may mark it.
    #[inline(never)] // out of the way of tail drop
    fn guard(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Queue::Fifo(Admission::Cohabit(guard)) = &mut self.queue else { return true };
        match guard.on_arrival(now, packet) {
            Verdict::Drop => {
                self.meter.dropped(1);
                return false;
            }
            Verdict::Mark if self.free_at <= now || self.room.has(self.backlog, u64::from(packet.bytes)) => {
                packet.flags.set(Flags::MARKED);
                self.meter.marked(1);
            }
            Verdict::Mark | Verdict::Accept => {}
        }
        true
    }

    /// Tells a discipline of a packet that comes; whether the laws are to see it.
    #[inline(never)] // out of the way of tail drop
    fn announce(&mut self, now: Instant, packet: &Packet) -> bool {
        let Queue::Own(own) = &mut self.queue else { return true };
        own.comes(now, packet);
        own.is_shown(packet)
    }

    /// Puts a packet that starts its transmission at a known time into the ring; when it arrives.
    #[expect(clippy::inline_always, reason = "or each packet would be moved once more")]
    #[inline(always)]
    fn put_on_wire(&mut self, mut packet: Packet, starts: Instant, order: u64) -> Instant {
        if let Some(faults) = &mut self.faults {
            if faults.strike(&mut packet) {
                self.meter.lost();
            }
        }
        self.free_at = starts + self.transmission_time(packet.bytes);
        let arrives = self.free_at + self.delay;
        self.joined.push_back(Joined { packet, starts, arrives, order });
        arrives
    }

    /// More than the room decides on a packet; if that is all, what became of it.
    #[inline(never)] // out of the way of tail drop
    fn decide(&mut self, now: Instant, packet: &mut Packet, order: u64) -> Option<Join> {
        let arriving = Arriving {
            backlog: self.backlog,
            room: self.room,
            idle: (self.free_at <= now).then(|| now.since(self.free_at)),
            markable: packet.flags.has(Flags::MARKABLE),
        };
        match &mut self.queue {
            Queue::Fifo(admission) => match admission.on_arrival(&arriving) {
                Verdict::Drop => {
                    self.meter.dropped(1);
                    return Some(Join::Dropped);
                }
                Verdict::Mark if arriving.fits(packet.bytes) => {
                    packet.flags.set(Flags::MARKED);
                    self.meter.marked(1);
                }
                Verdict::Mark | Verdict::Accept => {}
            },
            Queue::Own(_) => return Some(self.hand_in(now, *packet, order, &arriving)),
        }
        None
    }

    /// A packet comes to a discipline that keeps what waits, and is asked back at once if the transmitter is idle.
    fn hand_in(&mut self, now: Instant, packet: Packet, order: u64, arriving: &Arriving) -> Join {
        self.meter.queue_was(now, self.backlog);
        if let Queue::Own(own) = &mut self.queue {
            own.enqueue(Waiting { packet, since: now, order }, arriving, &mut self.fates);
        }
        if arriving.idle.is_some() {
            let empty = self.joined.is_empty();
            self.serve(now);
            return match self.joined.front() {
                Some(head) if empty => Join::Head(head.arrives),
                _ => Join::Behind,
            };
        }
        self.tally();
        self.meter.queue_grew(self.backlog);
        self.next_change = self.next_change.min(self.next_start());
        Join::Behind
    }

    /// The transmitter is free: the discipline gives it its next packet.
    #[inline(never)]
    fn serve(&mut self, now: Instant) {
        self.meter.queue_was(now, self.backlog);
        let next = match &mut self.queue {
            Queue::Own(own) => own.dequeue(now, &mut self.fates),
            Queue::Fifo(_) => None,
        };
        self.tally();
        if let Some(Waiting { packet, order, .. }) = next {
            self.put_on_wire(packet, now, order);
            self.start(now);
        }
    }

    /// Takes note of what a discipline has done.
    fn tally(&mut self) {
        if let Queue::Own(own) = &self.queue {
            self.backlog = own.backlog();
            let part = own.part().unwrap_or(LinkPart { capacity: self.capacity, bytes: self.backlog.bytes });
            self.view.capacity = part.capacity;
            self.view.queue = Volume::from_bytes(part.bytes as f64);
        }
        self.meter.marked(std::mem::take(&mut self.fates.marks));
        self.meter.dropped(std::mem::take(&mut self.fates.drops));
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
        self.meter.queue_was(now, self.backlog);
    }

    /// What has been since the reading `before`, which becomes now's, and the largest queue.
    pub(crate) fn sample(&mut self, now: Instant, before: &mut Reading) -> (Span, u64) {
        self.settle(now);
        let reading = self.meter.read();
        let span = self.meter.span(before, &reading);
        *before = reading;
        (span, self.meter.take_sample_max(self.backlog.bytes))
    }

    /// The summary's window begins.
    pub(crate) fn open_window(&mut self, now: Instant) {
        self.settle(now);
        self.meter.open_window(self.backlog);
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
            self.transmission = (bytes, self.capacity.time_for(u32::from(bytes)));
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
