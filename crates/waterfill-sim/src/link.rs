//! One direction of a link: a queue, a transmitter, a wire.
//!
//! Behind a first-in-first-out queue a packet's departure time is known when it is enqueued. So the only event that a
//! packet needs is its arrival at the far end, and only the head of each link needs that event. Everything in between
//! (transmission starts, `on_departure`, router timers, queue statistics) is caught up in time order by
//! [`Link::advance`], before anything reads the link's state.
//!
//! A discipline that decides at departure stores the waiting packets itself ([`Scheduler`](crate::queue::Scheduler)).
//! Then the ring holds only packets in transmission and on the wire, and [`Link::advance`] asks the scheduler for the
//! next packet at the time the transmitter becomes free. No further event is needed: the packet in transmission arrives
//! no earlier than the transmitter becomes free, and its arrival calls [`Link::advance`] first.

use waterfill_laws::protocol::{LinkView, Passing, Probe};
use waterfill_laws::registry::{AnyHeader, AnyRouter, ProtocolId};
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::link::ShaperSpec;
use waterfill_network::{LinkSpec, Network, Watch};

use crate::fault::{Faults, OnWire, stepped};
use crate::meter::{LinkResult, Meter, Reading, Span};
use crate::packet::{Cargo, Flags, Packet, Role, SackId};
use crate::queue::{
    Arrival, Backlog, BufferLimit, LinkShare, Queue, QueueContext, QueueOutcome, Screening, Verdict, Waiting,
};
use crate::random::{LinkStream, stream};
use crate::ring::Ring;
use crate::shaper::Shaper;

mod pause;
mod variation;

use pause::Pauses;
use variation::Variation;

/// Number of router-law timers that are caught up between two polls of the watch.
const TIMERS_PER_POLL: u32 = 4096;

/// Switch of a link with a buffer of its own.
pub(crate) const NO_SWITCH: u32 = u32::MAX;

/// A packet in the link's ring: in a FIFO queue, in transmission, or on the wire. It fills one cache line, so its
/// protocol fields are kept in a separate ring.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Queued {
    flow: u32,
    to: u32,
    place: u32,
    bytes: u16,
    incarnation: u16,
    role: Role,
    flags: Flags,
    sack: SackId,
    number: u64,
    sent: Instant,
    echoed: Instant,
    /// Start of the packet's transmission.
    starts: Instant,
    /// Arrival time at the far end.
    arrives: Instant,
}

/// Size of a packet in a link's ring, in bytes.
pub(crate) const QUEUED_BYTES: usize = size_of::<Queued>();
const _: () = assert!(QUEUED_BYTES == 64);

impl Queued {
    #[inline]
    const fn new(packet: &Packet, starts: Instant, arrives: Instant) -> Self {
        let &Packet { flow, to, place, bytes, incarnation, role, flags, sack, number, sent, echoed, cargo: _ } = packet;
        Self { flow, to, place, bytes, incarnation, role, flags, sack, number, sent, echoed, starts, arrives }
    }

    /// Returns the packet with `cargo`, or with empty protocol fields if there is none.
    #[inline]
    fn packet(&self, cargo: Option<&Cargo>) -> Packet {
        let &Self { flow, to, place, bytes, incarnation, role, flags, sack, number, sent, echoed, .. } = self;
        let cargo = *cargo.unwrap_or(Cargo::empty(role));
        Packet { flow, to, place, bytes, incarnation, role, flags, sack, number, sent, echoed, cargo }
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Link {
    /// Link as its router laws see it; a shaped link's capacity is the shaper's rate.
    view: LinkView,
    /// Capacity of the whole link. Router laws may see only part of it.
    capacity: Rate,
    /// Rate of the transmitter, above the capacity only if there is a shaper.
    line: Rate,
    shaper: Option<Box<Shaper>>,
    /// Token bucket in front of the queue. Packets that find too few tokens are dropped.
    policer: Option<Box<Shaper>>,
    /// True if the link only drops packets beyond its buffer: no discipline, token bucket, fault, outage or change of delay.
    plain: bool,
    delay: Duration,
    limit: BufferLimit,
    /// Index of the switch whose buffer the link shares, or [`NO_SWITCH`].
    switch: u32,
    /// Bytes of the backlog that the switch has counted.
    counted: u64,
    queue: Queue,
    /// Packets that a scheduler dropped after accepting them, until the engine counts them.
    outcome: QueueOutcome,
    faults: Option<Box<Faults>>,
    routers: Vec<(ProtocolId, AnyRouter)>,
    /// Smallest share of the capacity that a router law targets.
    target: f64,
    /// True if a router law handles departures.
    departures: bool,
    /// True if another thread's part of the network takes the packets over. The head then has no event of its own.
    exported: bool,
    ring: Ring<Queued>,
    /// Headers and echoes of the packets in the ring; `None` if no protocol uses them.
    cargo: Option<Box<Ring<Cargo>>>,
    backlog: Backlog,
    /// Time at which the transmitter becomes free.
    free_at: Instant,
    /// Due time of the routers' earliest timer.
    next_timer: Instant,
    /// Earlier of `next_timer` and the next start of a transmission.
    next_change: Instant,
    /// Size and transmission time of the previous packet, kept because most packets have the same size.
    transmission: (u16, Duration),
    meter: Meter,
    /// Pauses by the switch at the far end, if it drops nothing.
    pauses: Option<Box<Pauses>>,
    /// Changes of the link over time, if there are any.
    variation: Option<Box<Variation>>,
    watch: Watch,
}

/// The result of enqueueing a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// The queue dropped the packet.
    Dropped,
    /// The packet is the head of the link and needs an event at its arrival time.
    Head(Instant),
    /// The packet is behind others and needs no event until it becomes the head.
    Behind,
}

impl Link {
    pub(crate) fn new(id: u32, spec: &LinkSpec, network: &Network, watch: &Watch) -> Self {
        let view = LinkView { id, capacity: Rate::from_bps(spec.rate_bps), target: spec.target, queue: Volume::ZERO };
        let rng = stream(network.seed, id, LinkStream::Queue);
        let context = QueueContext { capacity: view.capacity, packet_bytes: network.packet_bytes, rng };
        let line = spec.bucket().map_or(view.capacity, |bucket| Rate::from_bps(bucket.line_bps));
        let bucket = |bucket: &ShaperSpec| Box::new(Shaper::new(bucket, view.capacity));
        let queue = Queue::new(&spec.queue, context);
        let faults = Faults::new(network.seed, id, spec);
        let variation = Variation::new(spec);
        let varies = variation.as_ref().is_some_and(|variation| variation.affects_packets());
        Self {
            view,
            capacity: view.capacity,
            line,
            shaper: spec.shaper.as_ref().map(bucket),
            policer: spec.policer.as_ref().map(bucket),
            plain: queue.is_drop_tail() && spec.bucket().is_none() && faults.is_none() && !varies,
            delay: Duration::from_secs(spec.delay_s),
            limit: spec.buffer.into(),
            switch: NO_SWITCH,
            counted: 0,
            queue,
            outcome: QueueOutcome::default(),
            faults,
            routers: Vec::new(),
            target: 1.0,
            departures: false,
            exported: false,
            ring: Ring::new(),
            cargo: None,
            backlog: Backlog::default(),
            free_at: Instant::ZERO,
            next_timer: Instant::NEVER,
            next_change: Instant::NEVER,
            transmission: (0, Duration::ZERO),
            meter: Meter::new(view.capacity, line),
            pauses: None,
            variation,
            watch: watch.clone(),
        }
    }

    pub(crate) const fn view(&self) -> &LinkView {
        &self.view
    }

    /// Adds a router law with this target share of the capacity.
    pub(crate) fn add_router(&mut self, id: ProtocolId, router: AnyRouter, target: f64) {
        self.target = self.target.min(target);
        self.queue.notify_target(self.view.target.unwrap_or(self.target));
        self.next_timer = self.next_timer.min(router.poll_at());
        self.next_change = self.next_change.min(self.next_timer);
        self.departures |= router.sees_departures();
        self.routers.push((id, router));
    }

    /// Lets the link share the buffer of a switch.
    pub(crate) fn share(&mut self, switch: u32) {
        self.switch = switch;
    }

    /// Returns the index of the switch whose buffer the link shares, or [`NO_SWITCH`].
    #[inline]
    pub(crate) const fn switch(&self) -> u32 {
        self.switch
    }

    /// Sets the size of the buffer for the next packet.
    pub(crate) fn set_buffer(&mut self, bytes: u64) {
        self.limit = BufferLimit { bytes, packets: u64::MAX };
    }

    /// Returns the time at which the transmitter is free, or may be; `NEVER` during a pause.
    pub(crate) fn free_at(&mut self, now: Instant) -> Instant {
        self.advance(now);
        if self.is_paused() { Instant::NEVER } else { self.free_at }
    }

    /// Counts a packet that a switch has dropped in front of the link.
    #[cold]
    pub(crate) fn count_drop(&mut self) {
        self.meter.count_drops(1);
    }

    pub(crate) const fn backlog_bytes(&self) -> u64 {
        self.backlog.bytes
    }

    /// Returns the bytes of the backlog, with those at the last call.
    pub(crate) fn count(&mut self) -> (u64, u64) {
        let before = std::mem::replace(&mut self.counted, self.backlog.bytes);
        (before, self.backlog.bytes)
    }

    /// Starts logging the steps of the link's router laws.
    pub(crate) fn log_steps(&mut self, l: u32, log: &StepLog) {
        for (id, router) in &mut self.routers {
            log.router(*id, l, &self.view, router);
        }
    }

    /// Prepares the link, before its first packet, for packets of protocols with a header or an echo.
    pub(crate) fn carry_fields(&mut self) {
        self.cargo.get_or_insert_with(|| Box::new(Ring::new()));
    }

    /// Returns the far end of a cut link for another thread's part of the network, where it takes in packets before they
    /// arrive.
    pub(crate) fn far_end(&self, network: &Network) -> Self {
        let id = self.view.id;
        let mut link = Self::new(id, &network.links[id as usize], network, &self.watch);
        link.variation = None; // it changes where it begins
        if self.cargo.is_some() {
            link.carry_fields();
        }
        link
    }

    pub(crate) fn has_router(&self, id: ProtocolId) -> bool {
        self.routers.iter().any(|&(known, _)| known == id)
    }

    pub(crate) fn routers(&self) -> &[(ProtocolId, AnyRouter)] {
        &self.routers
    }

    /// Returns the names of the columns that the queue discipline adds to the link's time series.
    pub(crate) fn queue_columns(&self) -> &'static [&'static str] {
        self.queue.columns()
    }

    /// Records a value for each column in [`Link::queue_columns`].
    pub(crate) fn observe_queue(&self, probe: &mut dyn Probe) {
        self.queue.observe(probe);
    }

    /// Returns the number of packets queued, in transmission and on the wire.
    pub(crate) fn packets(&self) -> usize {
        let reordered = self.faults.as_ref().map_or(0, |faults| faults.reordered_packets());
        self.queue.stored_packets() as usize + self.ring.len() + reordered
    }

    /// Applies the faults that change contents to a packet at the end of the wire.
    pub(crate) fn alter(&mut self, now: Instant, packet: &mut Packet) {
        if let Some(faults) = &mut self.faults {
            faults.alter(now, packet);
        }
    }

    /// Returns the extra delay of a packet that arrives late.
    pub(crate) fn lateness(&self) -> Duration {
        self.faults.as_ref().map_or(Duration::ZERO, |faults| faults.lateness())
    }

    /// Stores a packet that arrives out of the order of the wire.
    pub(crate) fn add_reordered(&mut self, arrives: Instant, packet: Packet) {
        if let Some(faults) = &mut self.faults {
            faults.add_reordered(arrives, packet);
        }
    }

    /// Removes and returns the reordered packet that is due.
    #[cold]
    pub(crate) fn deliver_reordered(&mut self) -> Packet {
        self.faults.as_mut().and_then(|faults| faults.deliver_reordered()).expect("an event stands for a packet")
    }

    /// Returns the SACK slots of packets that the queue dropped after accepting them, until the engine takes them.
    pub(crate) fn discarded(&self) -> &[SackId] {
        &self.outcome.dropped
    }

    pub(crate) fn has_discarded(&self) -> bool {
        !self.outcome.dropped.is_empty()
    }

    pub(crate) fn take_discarded(&mut self) -> impl Iterator<Item = SackId> {
        self.outcome.dropped.drain(..)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let cargo = self.cargo.as_ref().map_or(0, |cargo| cargo.heap_bytes());
        self.queue.heap_bytes() + self.ring.heap_bytes() + cargo + self.meter.heap_bytes()
    }

    /// Updates the link's state up to and including `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        if self.next_change <= now {
            self.catch_up(now);
        }
    }

    #[inline(never)] // keeps the path of a packet that finds an idle link short
    fn catch_up(&mut self, now: Instant) {
        let mut timers = 0u32;
        while self.next_change <= now {
            if self.next_change < self.next_timer {
                self.start_waiting();
            } else {
                self.run_timers();
                timers += 1;
                if timers % TIMERS_PER_POLL == 0 && self.watch.poll() {
                    self.next_timer = Instant::NEVER; // the run ends: transmissions are caught up, laws are not
                }
            }
            self.next_change = self.next_timer.min(self.next_start());
        }
    }

    /// Returns the time at which the next waiting packet starts its transmission.
    fn next_start(&self) -> Instant {
        if self.backlog.packets == 0 {
            return Instant::NEVER;
        }
        match &self.queue {
            Queue::Fifo(_) if self.plain => self.meter.service_ends(),
            Queue::Fifo(_) => self.ring.get(self.started()).map_or(Instant::NEVER, |queued| queued.starts),
            Queue::Scheduler(_) if self.is_paused() => Instant::NEVER,
            Queue::Scheduler(_) => self.free_at,
        }
    }

    /// Returns the number of packets in the ring whose transmission has started.
    fn started(&self) -> usize {
        match &self.queue {
            Queue::Fifo(_) => self.ring.len() - self.backlog.packets as usize,
            Queue::Scheduler(_) => self.ring.len(),
        }
    }

    /// Starts the transmission of the packet at the head of the queue.
    fn start_waiting(&mut self) {
        if matches!(self.queue, Queue::Scheduler(_)) {
            self.dequeue(self.free_at);
            return;
        }
        let started = self.started();
        let queued = self.ring.get(started).expect("a waiting packet is in the ring");
        let &Queued { bytes, role, starts, .. } = queued;
        if !self.plain {
            self.queue.on_dequeue(&queued.packet(self.cargo.as_ref().and_then(|cargo| cargo.get(started))));
        }
        let Backlog { bytes: waiting, packets } = self.backlog;
        self.change_backlog(starts, Backlog { bytes: waiting - u64::from(bytes), packets: packets - 1 });
        let transmission = self.transmission_time(bytes);
        self.start(starts, bytes, role, starts + transmission);
    }

    /// Changes the backlog of a FIFO queue, and the queue length that router laws see.
    #[inline]
    fn change_backlog(&mut self, at: Instant, after: Backlog) {
        self.meter.change_queue(at, self.backlog, after);
        self.backlog = after;
        self.update_view();
    }

    /// Updates the queue length that router laws see.
    #[inline]
    fn update_view(&mut self) {
        if !self.routers.is_empty() {
            // Below 2⁶³: a signed integer takes one instruction to convert.
            self.view.queue = Volume::from_bytes(self.queue.visible_bytes(self.backlog) as i64 as f64);
        }
    }

    /// Starts the transmission of the last packet in the ring that does not wait. The transmission finishes at `ends`.
    #[inline]
    fn start(&mut self, now: Instant, bytes: u16, role: Role, ends: Instant) {
        self.meter.start_transmission(bytes, ends);
        if self.departures {
            self.show_departure(now, bytes, role);
        }
    }

    /// Shows a packet to the router laws when its transmission starts.
    #[inline(never)] // keeps the path of laws that do not ask for it short
    fn show_departure(&mut self, now: Instant, bytes: u16, role: Role) {
        let index = self.started() - 1;
        let Some(cargo) = self.cargo.as_mut().and_then(|cargo| cargo.get_mut(index)) else { return };
        let ring = &self.ring;
        let visible = || ring.get(index).is_some_and(|queued| self.queue.is_visible(&queued.packet(Some(cargo))));
        if self.plain || visible() {
            let now = stepped(now, self.variation.as_ref().map_or(0, |variation| variation.clock_ahead_ps()));
            for (_, router) in &mut self.routers {
                router.on_departure(&self.view, &mut passing(now, bytes, role, cargo));
            }
        }
    }

    fn run_timers(&mut self) {
        let due = stepped(self.next_timer, self.clock_ahead_ps());
        for (_, router) in &mut self.routers {
            if router.poll_at() <= due {
                router.on_timer(&self.view, due);
                if let Some(interval) = router.interval() {
                    self.queue.notify_interval(interval);
                }
            }
        }
        self.next_timer = self.polled_at();
    }

    /// Returns the lead of the routers' clock, in picoseconds.
    fn clock_ahead_ps(&self) -> i64 {
        self.variation.as_ref().map_or(0, |variation| variation.clock_ahead_ps())
    }

    /// Returns the due time of the routers' earliest timer.
    fn polled_at(&self) -> Instant {
        let due = self.routers.iter().map(|(_, router)| router.poll_at()).min().unwrap_or(Instant::NEVER);
        stepped(due, -self.clock_ahead_ps())
    }

    /// Enqueues a packet that arrives at the link.
    ///
    /// By reference and inlined, so that a new packet is written field by field into the ring. A copy of the whole reads
    /// it before the writes of its fields are done, and the processor waits for them.
    #[expect(clippy::inline_always, reason = "see above")]
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: Instant, packet: &Packet) -> Enqueued {
        self.advance(now);
        if !self.plain {
            return self.enqueue_screened(now, *packet);
        }
        let starts = self.free_at.max(now);
        if self.is_full(now, starts, packet.bytes) {
            return self.refuse(now, *packet);
        }
        let first = self.ring.is_empty();
        let arrives = self.put_on_wire(packet, starts);
        if !self.routers.is_empty() {
            self.show_arrival(now, packet.bytes, packet.role);
        }
        self.wait_or_start(now, starts, packet.bytes, packet.role);
        if first && !self.exported { Enqueued::Head(arrives) } else { Enqueued::Behind }
    }

    /// Shows router laws the packet that has just been put into the ring.
    #[inline]
    fn show_arrival(&mut self, now: Instant, bytes: u16, role: Role) {
        let mut none = *Cargo::empty(role);
        let cargo = self.cargo.as_mut().and_then(|cargo| cargo.newest_mut()).unwrap_or(&mut none);
        for (_, router) in &mut self.routers {
            router.on_arrival(&self.view, &mut passing(now, bytes, role, cargo));
        }
    }

    /// Drops a packet that does not fit into the buffer, after showing it to the router laws.
    #[cold]
    fn refuse(&mut self, now: Instant, mut packet: Packet) -> Enqueued {
        for (_, router) in &mut self.routers {
            router.on_arrival(&self.view, &mut passing(now, packet.bytes, packet.role, &mut packet.cargo));
        }
        self.meter.count_drops(1);
        Enqueued::Dropped
    }

    /// Returns true if a packet whose transmission could start at `starts` has to wait but does not fit into the
    /// buffer.
    #[inline]
    fn is_full(&self, now: Instant, starts: Instant, bytes: u16) -> bool {
        starts > now && !self.limit.admits(self.backlog, u64::from(bytes))
    }

    /// Starts the transmission of the newest packet in the ring, or counts it as waiting.
    #[expect(clippy::inline_always, reason = "as for `enqueue`")]
    #[inline(always)]
    fn wait_or_start(&mut self, now: Instant, starts: Instant, bytes: u16, role: Role) {
        if starts <= now {
            self.start(now, bytes, role, self.free_at);
        } else {
            self.wait(now, starts, bytes);
        }
    }

    /// Counts the newest packet in the ring as waiting until `starts`.
    fn wait(&mut self, now: Instant, starts: Instant, bytes: u16) {
        let Backlog { bytes: waiting, packets } = self.backlog;
        self.change_backlog(now, Backlog { bytes: waiting + u64::from(bytes), packets: packets + 1 });
        self.meter.record_queue_max(self.backlog);
        self.next_change = self.next_change.min(starts); // those before it start earlier
    }

    /// Enqueues a packet at a link with a discipline, a token bucket, faults, outages or changes of delay.
    #[inline(never)] // keeps the drop-tail path short
    fn enqueue_screened(&mut self, now: Instant, mut packet: Packet) -> Enqueued {
        if self.variation.as_ref().is_some_and(|variation| variation.is_down()) {
            self.meter.count_drops(1);
            return Enqueued::Dropped;
        }
        if !self.conforms(now, packet.bytes) {
            self.meter.count_drops(1);
            return Enqueued::Dropped;
        }
        let mut visible = true;
        if self.queue.screens_arrivals() {
            let Some(shown) = self.screen(now, &mut packet) else { return Enqueued::Dropped };
            visible = shown;
        }
        if visible {
            self.show_screened(now, &mut packet);
        }
        if let Some(settled) = self.decide(now, &mut packet) {
            return settled;
        }
        let starts = self.free_at.max(now);
        self.admit(now, packet, starts)
    }

    /// Takes a packet's tokens from the policer. Returns false if there are too few, and the packet is dropped.
    fn conforms(&mut self, now: Instant, bytes: u16) -> bool {
        let Some(policer) = &mut self.policer else { return true };
        let conforms = policer.earliest(now, bytes) <= now;
        if conforms {
            policer.take(now, bytes);
        }
        conforms
    }

    /// Shows router laws a packet before the queue decides on it.
    fn show_screened(&mut self, now: Instant, packet: &mut Packet) {
        let now = stepped(now, self.clock_ahead_ps());
        for (_, router) in &mut self.routers {
            router.on_arrival(&self.view, &mut passing(now, packet.bytes, packet.role, &mut packet.cargo));
        }
    }

    /// Enqueues a packet whose transmission could start at `starts`, unless the buffer is full.
    fn admit(&mut self, now: Instant, packet: Packet, starts: Instant) -> Enqueued {
        if self.is_full(now, starts, packet.bytes) {
            self.meter.count_drops(1);
            return Enqueued::Dropped;
        }
        let first = self.ring.is_empty();
        let arrives = self.put_on_wire(&packet, starts);
        if starts > now {
            self.queue.on_enqueue(&packet);
        }
        self.wait_or_start(now, starts, packet.bytes, packet.role);
        if first && !self.exported { Enqueued::Head(arrives) } else { Enqueued::Behind }
    }

    /// Asks the queue discipline about a packet before router laws see it. Returns true if they may see it, or `None`
    /// if the packet is dropped.
    fn screen(&mut self, now: Instant, packet: &mut Packet) -> Option<bool> {
        match self.queue.screen(now, packet) {
            Screening::Drop => {
                self.meter.count_drops(1);
                None
            }
            Screening::DropVisible => {
                self.show_screened(now, packet);
                self.meter.count_drops(1);
                None
            }
            Screening::Mark => {
                if self.earliest_start(now, packet.bytes) <= now
                    || self.limit.admits(self.backlog, u64::from(packet.bytes))
                {
                    packet.flags.set(Flags::MARKED);
                    self.meter.count_marks(1);
                }
                Some(true)
            }
            Screening::Visible => Some(true),
            Screening::Hidden => Some(false),
        }
    }

    /// Puts a packet with a known transmission start into the ring. Returns its arrival time.
    #[expect(clippy::inline_always, reason = "as for `enqueue`")]
    #[inline(always)]
    fn put_on_wire(&mut self, packet: &Packet, starts: Instant) -> Instant {
        self.free_at = starts + self.transmission_time(packet.bytes);
        let mut arrives = self.free_at + self.delay;
        if !self.plain {
            arrives = self.keep_order(arrives, packet.role);
        }
        self.ring.push(Queued::new(packet, starts, arrives));
        if let Some(cargo) = &mut self.cargo {
            cargo.push(packet.cargo);
        }
        if !self.plain {
            self.draw_faults();
        }
        arrives
    }

    /// Returns a packet's arrival time, moved behind all earlier packets if needed.
    fn keep_order(&mut self, arrives: Instant, role: Role) -> Instant {
        let arrives = match &mut self.variation {
            Some(variation) => variation.keep_order(arrives, self.transmission.1),
            None => arrives,
        };
        self.release(arrives, role)
    }

    /// Returns the time at which the wire releases a packet that reaches its end at `arrives`.
    fn release(&mut self, arrives: Instant, role: Role) -> Instant {
        self.faults.as_mut().map_or(arrives, |faults| faults.release(arrives, role))
    }

    /// Draws the faults of the newest packet in the ring.
    fn draw_faults(&mut self) {
        if let (Some(faults), Some(queued)) = (&mut self.faults, self.ring.newest_mut()) {
            if faults.impair(queued.role, &mut queued.flags) {
                self.meter.count_loss();
            }
            let &mut Queued { flow, number, role, flags, sack, arrives, .. } = queued;
            let packet = OnWire { flow, number, role, flags, sack, arrives };
            if let Some(ago) = faults.thinning().and_then(|thinning| thinning.accept(&packet)) {
                self.lose_replaced(ago, &packet);
            }
        }
    }

    /// Loses the acknowledgement that the newest packet in the ring replaces, unless a change of the link has moved it.
    fn lose_replaced(&mut self, ago: usize, by: &OnWire) {
        let index = (self.ring.len() - 1).checked_sub(ago);
        let Some(queued) = index.and_then(|index| self.ring.get_mut(index)) else { return };
        let &mut Queued { flow, number, role, flags, sack, arrives, .. } = queued;
        let replaced = OnWire { flow, number, role, flags, sack, arrives };
        if replaced.is_replaceable() && (flow, arrives) == (by.flow, by.arrives) {
            queued.flags.set(Flags::LOST);
            self.meter.count_loss();
        }
    }

    /// Asks the queue discipline, then the shaper. Returns `None` if the packet is neither enqueued nor dropped yet.
    fn decide(&mut self, now: Instant, packet: &mut Packet) -> Option<Enqueued> {
        let arrival = Arrival {
            backlog: self.backlog,
            limit: self.limit,
            idle: (self.earliest_start(now, packet.bytes) <= now).then(|| now.since(self.free_at)),
            markable: packet.flags.has(Flags::MARKABLE),
            input: self.pauses.as_ref().map_or(0, |pauses| pauses.input),
        };
        match &mut self.queue {
            Queue::Fifo(admission) => match admission.on_arrival(&arrival) {
                Verdict::Drop => {
                    self.meter.count_drops(1);
                    return Some(Enqueued::Dropped);
                }
                Verdict::Mark if arrival.fits(packet.bytes) => {
                    packet.flags.set(Flags::MARKED);
                    self.meter.count_marks(1);
                }
                Verdict::Mark | Verdict::Accept => {}
            },
            Queue::Scheduler(_) => return Some(self.schedule(now, *packet, &arrival)),
        }
        self.shape(now, packet)
    }

    /// Enqueues a packet at the shaper, or returns `None` if the link has none.
    fn shape(&mut self, now: Instant, packet: &Packet) -> Option<Enqueued> {
        let starts = self.shaper.as_ref()?.earliest(self.free_at.max(now), packet.bytes);
        let enqueued = self.admit(now, *packet, starts);
        if enqueued != Enqueued::Dropped {
            if let Some(shaper) = &mut self.shaper {
                shaper.take(starts, packet.bytes);
            }
        }
        Some(enqueued)
    }

    /// Returns the earliest transmission start of a packet that arrives now.
    fn earliest_start(&self, now: Instant, bytes: u16) -> Instant {
        if self.is_paused() {
            return Instant::NEVER;
        }
        let ready = self.free_at.max(now);
        self.shaper.as_ref().map_or(ready, |shaper| shaper.earliest(ready, bytes))
    }

    /// Enqueues a packet at the scheduler, and dequeues at once if the transmitter is idle.
    fn schedule(&mut self, now: Instant, packet: Packet, arrival: &Arrival) -> Enqueued {
        if let Queue::Scheduler(scheduler) = &mut self.queue {
            scheduler.enqueue(Waiting { packet, since: now }, arrival, &mut self.outcome);
        }
        if arrival.idle.is_some() {
            let empty = self.ring.is_empty();
            self.dequeue(now);
            return match self.ring.front() {
                Some(head) if empty && !self.exported => Enqueued::Head(head.arrives),
                _ => Enqueued::Behind,
            };
        }
        self.update_from_scheduler(now);
        self.meter.record_queue_max(self.backlog);
        self.next_change = self.next_change.min(self.next_start());
        Enqueued::Behind
    }

    /// Transmits the scheduler's next packet.
    #[inline(never)]
    fn dequeue(&mut self, now: Instant) {
        let next = match &mut self.queue {
            Queue::Scheduler(scheduler) => scheduler.dequeue(now, &mut self.outcome),
            Queue::Fifo(_) => None,
        };
        self.update_from_scheduler(now);
        if let Some(Waiting { packet, .. }) = next {
            self.put_on_wire(&packet, now);
            self.start(now, packet.bytes, packet.role, self.free_at);
        }
    }

    /// Copies the scheduler's backlog and link share, and counts its drops and marks.
    fn update_from_scheduler(&mut self, now: Instant) {
        if let Queue::Scheduler(scheduler) = &self.queue {
            self.meter.change_queue(now, self.backlog, scheduler.backlog());
            self.backlog = scheduler.backlog();
            let all = LinkShare { capacity: self.capacity, bytes: self.backlog.bytes };
            let share = scheduler.share().unwrap_or(all);
            self.view.capacity = share.capacity;
            self.view.queue = Volume::from_bytes(share.bytes as f64);
        }
        self.meter.count_marks(std::mem::take(&mut self.outcome.marks));
        self.meter.count_drops(std::mem::take(&mut self.outcome.drops));
    }

    /// Removes and returns the packet at the head when it arrives at the far end.
    #[expect(clippy::inline_always, reason = "one caller on the packet path")]
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Instant) -> Packet {
        self.advance(now);
        // Read in place: popped as a value, each item would be copied once more.
        let cargo = self.cargo.as_ref().and_then(|cargo| cargo.front());
        let packet = self.ring.front().expect("an event stands for a packet").packet(cargo);
        self.ring.drop_front();
        if let Some(cargo) = &mut self.cargo {
            cargo.drop_front();
        }
        packet
    }

    /// Returns a copy of the next packet that [`Link::deliver`] or [`Link::deliver_reordered`] returns.
    #[cold]
    pub(crate) fn next_delivered(&mut self, now: Instant, reordered: bool) -> Option<Packet> {
        self.advance(now);
        if reordered {
            return self.faults.as_ref()?.first_reordered();
        }
        let cargo = self.cargo.as_ref().and_then(|cargo| cargo.front());
        self.ring.front().map(|queued| queued.packet(cargo))
    }

    /// Returns the arrival time of the packet at the head.
    pub(crate) fn head(&self) -> Option<Instant> {
        self.ring.front().map(|queued| queued.arrives)
    }

    /// Returns the arrival time of the packet at the head if nothing can change that packet any more. Its transmission
    /// has started, it arrives before the link changes, and no later acknowledgement can take its place. All events up
    /// to `now` have been handled.
    pub(crate) fn settled_head(&self, now: Instant) -> Option<Instant> {
        let arrives = self.head().filter(|_| self.started() > 0)?;
        if self.faults.as_ref().is_some_and(|faults| faults.may_thin(arrives, now + self.delay)) {
            return None;
        }
        self.varies_at().is_none_or(|change| arrives <= change).then_some(arrives)
    }

    /// Returns the time before which no packet of this link arrives that is still here, whatever changes, or `NEVER` if
    /// there is none. `min_delay` is the shortest delay that the link ever has.
    pub(crate) fn earliest_arrival(&self, min_delay: Duration) -> Instant {
        let next = match self.ring.front() {
            Some(head) => head.arrives,
            None if self.backlog.packets > 0 => self.free_at + self.delay,
            None => return Instant::NEVER,
        };
        // A packet whose transmission a change has moved ends it after the change.
        self.varies_at().map_or(next, |change| next.min(change + min_delay))
    }

    /// Returns the addressee and role of the packet at the head. Returns `None` for an empty ring or a traffic source's
    /// packet.
    #[inline]
    pub(crate) fn next_addressee(&self) -> Option<(u32, Role)> {
        self.ring
            .front()
            .map(|queued| (queued.to, queued.role))
            .filter(|&(_, role)| !matches!(role, Role::Traffic | Role::Endpoint))
    }

    /// Marks the link as exported. The caller takes packets with [`Link::deliver`] before they arrive, and no events
    /// are scheduled for them here.
    pub(crate) fn export(&mut self) {
        self.exported = true;
    }

    /// Returns true if [`Link::export`] was called.
    pub(crate) const fn is_exported(&self) -> bool {
        self.exported
    }

    /// Imports a packet from the exported copy of this link. Returns true if the packet is now at the head.
    pub(crate) fn import(&mut self, packet: Packet, arrives: Instant) -> bool {
        self.ring.push(Queued::new(&packet, arrives, arrives));
        if let Some(cargo) = &mut self.cargo {
            cargo.push(packet.cargo);
        }
        self.ring.len() == 1
    }

    /// Updates the statistics up to `now`.
    fn update_statistics(&mut self, now: Instant) {
        self.advance(now);
        self.meter.integrate_queue(now, self.backlog);
        if let Some(pauses) = &self.pauses {
            self.meter.set_pauses(pauses.until(now));
        }
    }

    /// Returns the statistics since the reading `before`, and the largest queue since the last call, in bytes. The
    /// current reading replaces `before`.
    pub(crate) fn sample(&mut self, now: Instant, before: &mut Reading) -> (Span, u64) {
        self.update_statistics(now);
        let reading = self.meter.read();
        let span = Meter::span(before, &reading);
        *before = reading;
        (span, self.meter.take_sample_max(self.backlog.bytes))
    }

    /// Opens the summary's measurement window.
    pub(crate) fn open_window(&mut self, now: Instant) {
        self.update_statistics(now);
        self.meter.open_window(self.backlog);
    }

    /// Closes the summary's measurement window.
    pub(crate) fn close_window(&mut self, now: Instant) {
        self.update_statistics(now);
        self.meter.close_window();
    }

    /// Returns the statistics of the measurement window, up to `now` if the window is still open.
    pub(crate) fn result(&mut self, now: Instant) -> LinkResult {
        self.update_statistics(now);
        self.meter.result()
    }

    fn transmission_time(&mut self, bytes: u16) -> Duration {
        if self.transmission.0 != bytes {
            self.transmission = (bytes, self.line.time_for(u32::from(bytes)));
        }
        self.transmission.1
    }
}

/// Returns a packet as router laws see it. An echo only counts as load, because no router writes on the reverse path.
fn passing(now: Instant, bytes: u16, role: Role, cargo: &mut Cargo) -> Passing<'_, AnyHeader> {
    let header = match cargo {
        Cargo::Header(header) => Some(header),
        Cargo::Echo(_) => None,
    };
    Passing { now, volume: Volume::from_bytes(f64::from(bytes)), packets: 1.0, kind: role.kind(), header }
}
