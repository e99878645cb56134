//! The event loop and a packet's path through links, delay lines and hosts.

use waterfill_endpoint::Side;
use waterfill_laws::units::{Duration, Instant};

use super::endpoint::flow_and_side;
use super::event::{Event, Slice};
use super::pfc::NO_INPUT;
use super::record::Record;
use super::{Part, Simulation, path};
use crate::capture::CapturePoint;
use crate::flow::{HostAccess, Owner, ReceivingHost};
use crate::link::{Enqueued, Link, NO_SWITCH};
use crate::packet::{Blocks, Cargo, Flags, Opening, Packet, Role, SackId, Sacks};
use crate::prefetch::prefetch;

/// Number of links or flows that fit into a second-level cache.
const CACHED: usize = 1000;

/// Number of packets that hosts send between two polls of the watch, even within one burst.
const PACKETS_PER_POLL: u64 = 1 << 14;

impl Simulation {
    /// Simulates up to and including `until`, or to the end of the run if that is earlier.
    pub fn advance(&mut self, until: Instant) {
        let _ = self.advance_slice(until, u64::MAX);
    }

    /// Simulates like [`Simulation::advance`], but stops after `events` events if the run has one thread. Returns true
    /// if more events are due up to `until`. Dividing a run into slices does not change its results.
    pub fn advance_slice(&mut self, until: Instant, events: u64) -> bool {
        if self.watch.is_stopped() {
            return true;
        }
        self.watch.ask_here();
        let until = until.min(self.end);
        let more = if let [part] = &mut self.parts[..] {
            run_alone(part, &mut self.record, until, events)
        } else {
            self.run_divided(until);
            false
        };
        self.now = self.parts.iter().map(|part| part.now).fold(self.now, Instant::max);
        if more || self.watch.is_stopped() {
            return true;
        }
        self.now = self.now.max(until);
        if self.now == self.end {
            self.record.take_last_sample(&mut self.parts.iter_mut().collect::<Vec<_>>(), self.end);
        }
        false
    }
}

/// Simulates the whole network up to and including `until`, but stops after `events` events. Returns true if more events
/// are due up to `until`.
fn run_alone(part: &mut Part, record: &mut Record, until: Instant, events: u64) -> bool {
    let watch = part.watch.clone();
    let mut slice = Slice::new(until + Duration::from_ps(1), events, &watch);
    loop {
        let due = record.due();
        part.run(&mut slice, due);
        if due >= slice.end {
            return part.agenda.next_time().min(due) <= until;
        }
        record.observe(&mut [part]);
        slice.count();
    }
}

/// Returns a packet of a flow for a capture, which knows both hosts by the sender's index.
#[cold]
fn named_by_sender(packet: Packet, receivers: &[ReceivingHost]) -> Packet {
    match packet.role {
        Role::Open => {
            let to = Opening::decode(&packet).sender;
            Packet { role: Role::Syn, to, number: 0, echoed: Instant::ZERO, ..packet }
        }
        Role::First | Role::Early if packet.echoed != Instant::ZERO => {
            Opening::data(&packet, Opening::decode(&packet).sender)
        }
        Role::Syn | Role::Data | Role::First | Role::Early | Role::Datagram => {
            Packet { to: receivers[packet.to as usize].receiver.spec.to, ..packet }
        }
        Role::SynAck | Role::Ack | Role::AckFrame | Role::Traffic | Role::Endpoint => packet,
    }
}

/// Moves the record that a link has written into a packet to the packet's telemetry.
#[inline(never)] // keeps the path of other laws short
fn take_hop(link: &Link, packet: &mut Packet, sacks: &mut Sacks) {
    if let Cargo::Header(header) = &mut packet.cargo {
        if let Some(hop) = header.take_hop(link.view()) {
            packet.sack = sacks.push_hop(packet.sack, hop);
        }
    }
}

impl Part {
    /// Handles the events of a slice that come before `until`, in their order.
    pub(super) fn run(&mut self, slice: &mut Slice<'_>, until: Instant) {
        loop {
            let due = self.agenda.changes_at().min(until);
            self.handle_events(slice, due);
            if due >= slice.end.min(until) {
                break;
            }
            match self.agenda.pop_change() {
                Some((time, path::ROUTES)) => self.change_routes(time),
                Some((time, l)) => self.change_link(time, l),
                None => {}
            }
            slice.count();
        }
    }

    /// Handles the events of a slice that come before the change that is due next.
    fn handle_events(&mut self, slice: &mut Slice<'_>, due: Instant) {
        let large = self.links.len() > CACHED || self.senders.len() > CACHED;
        let mut end = slice.end.min(due);
        while let Some((time, event)) = self.agenda.peek() {
            if time >= end {
                break;
            }
            debug_assert!(time >= self.now, "time runs backwards");
            self.now = time;
            self.events += 1;
            match event {
                // One arm for both, so that the rest of the path is inlined once.
                Event::Link(l) | Event::Reordered(l) => {
                    let link = &mut self.links[l as usize];
                    // Before the packet leaves the link: a reference to it would keep it from registers.
                    if let Some(capture) = &mut self.capture {
                        let reordered = matches!(event, Event::Reordered(_));
                        if let Some(packet) = link.next_delivered(time, reordered) {
                            let switched = self.switches.as_ref().and_then(|all| all.hop(&self.paths, packet.place, l));
                            let hop = switched.unwrap_or_else(|| path::hop(&self.paths, packet.place));
                            let packet = named_by_sender(packet, &self.receivers);
                            let at = CapturePoint { now: time, link: l, hop };
                            capture.record(at, &packet, &self.senders, &self.network, &self.sacks);
                        }
                    }
                    let packet = if matches!(event, Event::Link(_)) {
                        let mut packet = link.deliver(time);
                        if self.telemetry {
                            take_hop(link, &mut packet, &mut self.sacks);
                        }
                        self.agenda.replace_next(event, link.head());
                        self.packet_hops += 1;
                        packet
                    } else {
                        self.agenda.pop_timer();
                        link.deliver_reordered()
                    };
                    if link.has_discarded() {
                        self.count_drops(l);
                    }
                    if large {
                        self.look_ahead(l);
                    }
                    if packet.flags.has(Flags::OF_A_WIRE) {
                        self.apply_faults(l, packet);
                    } else {
                        self.forward(l, packet);
                    }
                }
                Event::DelayLine(d) => {
                    let line = &mut self.delay_lines[d as usize];
                    let packet = line.deliver();
                    self.agenda.replace_next(event, line.head());
                    self.leave_delay_line(packet);
                }
                Event::Access(a) => {
                    let access = &mut self.access_links[a as usize].wire;
                    let packet = access.deliver();
                    self.agenda.replace_next(event, access.head());
                    self.enqueue(self.first_link(&packet), packet);
                }
                Event::Sender(f) => {
                    self.agenda.pop_timer();
                    self.run_sender(f);
                }
                Event::Receiver(f) => {
                    self.agenda.pop_timer();
                    self.run_receiver(f);
                }
                Event::Traffic(t) => {
                    self.agenda.pop_timer();
                    self.run_traffic(t);
                }
                Event::Endpoint(e) => {
                    self.agenda.pop_timer();
                    self.run_endpoint(e);
                }
                Event::Nic(_) | Event::Pause(_) | Event::Resume(_) | Event::Departure(_) => {
                    self.agenda.pop_timer();
                    self.run_fabric(event);
                }
            }
            if slice.count() {
                end = slice.end.min(due);
            }
        }
    }

    /// Handles an event of a host that pulls, or of a switch that drops nothing.
    #[inline(never)] // keeps the path of other networks short
    fn run_fabric(&mut self, event: Event) {
        match event {
            Event::Nic(n) => self.run_nic(n),
            Event::Pause(l) => self.run_pause(l),
            Event::Resume(l) => self.run_resume(l),
            Event::Departure(l) => self.run_departure(l),
            _ => {}
        }
    }

    /// Prefetches data for a large network's next events: the next event's link, or the addressee of link `l`'s next packet.
    #[inline(never)] // keeps the path of smaller networks short
    fn look_ahead(&self, l: u32) {
        if self.links.len() > CACHED {
            if let Some(next) = self.agenda.next_link().and_then(|next| self.links.get(next)) {
                prefetch(next);
            }
        } else if let Some((to, role)) = self.links[l as usize].next_addressee() {
            match role {
                Role::SynAck | Role::Ack | Role::AckFrame => self.senders.get(to as usize).map_or((), prefetch),
                Role::Syn | Role::Data | Role::Datagram => self.receivers.get(to as usize).map_or((), prefetch),
                Role::Open | Role::First | Role::Early | Role::Traffic | Role::Endpoint => {}
            }
        }
    }

    /// Applies the change that is due on a link, and schedules its next change.
    fn change_link(&mut self, now: Instant, l: u32) {
        self.now = now;
        self.events += 1;
        let link = &mut self.links[l as usize];
        let change = link.vary(self.now);
        if change.restart {
            let network = &self.network;
            // Parameters that passed the network's checks pass again.
            link.restart_routers(self.now, |id| network.params_of(id).ok());
            if let Some(log) = &self.steps {
                link.log_steps(l, log); // the new laws' steps too
            }
        }
        if let Some(step_s) = change.clock_step_s {
            link.step_clock(self.now, step_s);
        }
        if !link.is_exported() {
            self.agenda.replace_next(Event::Link(l), link.head());
        }
        if let Some(next) = link.varies_at() {
            self.agenda.add_change(next, l);
        }
        if link.has_discarded() {
            self.count_drops(l);
        }
    }

    /// Runs a sender's timer, unless the event is stale.
    fn run_sender(&mut self, f: u32) {
        if self.senders[f as usize].due == self.now {
            self.continue_connection(f);
            let host = &mut self.senders[f as usize];
            host.due = Instant::NEVER;
            host.sender.on_timer(self.now);
            if let Some(qlog) = &mut self.qlog {
                qlog.timer(self.now, f, &host.sender);
            }
            self.transmit_unasked(f);
        }
    }

    /// Runs a receiver's timer, unless the event is stale.
    fn run_receiver(&mut self, f: u32) {
        let host = &mut self.receivers[f as usize];
        if host.due == self.now {
            host.due = Instant::NEVER;
            if let Some(ack) = &host.receiver.on_timer(self.now, &mut self.sacks) {
                self.send_ack(ack);
            }
            self.schedule_receiver(f);
        }
    }

    // ------------------------------------------------------------------ a packet's path

    /// Applies the faults that the wire drew for a packet. The packet and its copy arrive at their own times, if at
    /// all.
    #[cold]
    fn apply_faults(&mut self, l: u32, mut packet: Packet) {
        let flags = packet.flags;
        packet.flags.leave_wire();
        if flags.has(Flags::LOST) {
            self.ledger.lost += 1;
            self.sacks.take(packet.sack);
            return;
        }
        if flags.has(Flags::ALTERED) {
            self.links[l as usize].alter(self.now, &mut packet);
            if !flags.has(Flags::LATE) && !flags.has(Flags::TWICE) {
                self.forward(l, packet);
                return;
            }
        }
        let lateness = if flags.has(Flags::LATE) { self.links[l as usize].lateness() } else { Duration::ZERO };
        self.schedule_reordered(l, lateness, packet);
        if flags.has(Flags::TWICE) {
            self.ledger.duplicated += 1;
            let sack = self.sacks.copy(packet.sack);
            self.schedule_reordered(l, Duration::ZERO, Packet { sack, ..packet });
        }
    }

    /// Schedules a packet's arrival out of the order of its link.
    fn schedule_reordered(&mut self, l: u32, delay: Duration, packet: Packet) {
        let time = self.now + delay;
        let link = &mut self.links[l as usize];
        link.add_reordered(time, packet);
        self.agenda.add_timer(time, Event::Reordered(l), u64::from(link.view().id));
    }

    /// Counts packets that a queue dropped after accepting them.
    #[cold]
    pub(super) fn count_drops(&mut self, l: u32) {
        for sack in self.links[l as usize].take_discarded() {
            self.ledger.dropped += 1;
            self.sacks.take(sack);
            if let Some(capture) = &mut self.capture {
                capture.count_drop(l);
            }
        }
    }

    /// Forwards a packet that has crossed a link to the next link or to the end of its path.
    fn forward(&mut self, l: u32, mut packet: Packet) {
        packet.place += 1;
        let next = self.paths[packet.place as usize];
        if next < path::SWITCHED {
            self.enqueue_from(l, next, &packet);
        } else if next == path::END {
            self.arrive(&packet);
        } else if next < path::DELAY_LINE {
            self.forward_switched(l, next & !path::SWITCHED, packet);
        } else {
            self.enqueue_delay_line(next & !path::DELAY_LINE, packet);
        }
    }

    /// Forwards a packet that has crossed link `l` to the link that the switch there chooses, or to the end of its path.
    #[inline(never)] // keeps the path of packets without a choice short
    fn forward_switched(&mut self, l: u32, destination: u32, mut packet: Packet) {
        packet.place -= 1; // see `switching`
        let Some(switches) = &mut self.switches else { return };
        let next = switches.next(self.now, l, destination, &packet);
        if next < path::SWITCHED {
            self.enqueue_from(l, next, &packet);
        } else if next == path::END {
            self.arrive(&packet);
        } else {
            self.enqueue_delay_line(next & !path::DELAY_LINE, packet);
        }
    }

    /// Hands a packet to its addressee.
    fn arrive(&mut self, packet: &Packet) {
        match packet.role {
            Role::Data => self.receive(packet),
            Role::Ack => self.receive_ack(packet),
            _ => self.arrive_other(packet),
        }
    }

    /// Hands a packet to its addressee. Apart from the two usual roles: a jump table of all would cost each packet more.
    #[inline(never)]
    fn arrive_other(&mut self, packet: &Packet) {
        match packet.role {
            Role::Traffic => {
                self.ledger.delivered += 1;
                self.traffic[packet.to as usize].receive(self.now, packet.bytes);
            }
            Role::Syn | Role::Data => self.receive(packet),
            Role::First if packet.echoed == Instant::ZERO => {
                self.ledger.delivered += 1;
                self.receive_first_flight(packet, None);
            }
            Role::Open | Role::First | Role::Early => self.open_flow(packet),
            Role::Endpoint => self.receive_at_endpoint(packet),
            Role::SynAck | Role::Ack => self.receive_ack(packet),
            Role::Datagram => self.receive_datagram(packet),
            Role::AckFrame => self.receive_ack_frame(packet),
        }
    }

    /// Returns the first link of a packet's path.
    pub(super) fn first_link(&self, packet: &Packet) -> u32 {
        self.paths[packet.place as usize]
    }

    /// Enqueues a packet at a link.
    #[inline(never)] // one copy for all but the two below
    pub(super) fn enqueue(&mut self, l: u32, packet: Packet) {
        self.enqueue_new(l, &packet, NO_INPUT);
    }

    /// Enqueues a packet that another link has brought.
    #[inline(never)] // one copy for both
    fn enqueue_from(&mut self, from: u32, l: u32, packet: &Packet) {
        self.enqueue_new(l, packet, from);
    }

    /// Enqueues a packet that was just built. See [`Link::enqueue`](crate::link::Link::enqueue).
    #[expect(clippy::inline_always, reason = "the reason is there")]
    #[inline(always)]
    fn enqueue_new(&mut self, l: u32, packet: &Packet, from: u32) {
        let link = &mut self.links[l as usize];
        if link.switch() != NO_SWITCH {
            return self.enqueue_shared(l, packet, from);
        }
        let enqueued = link.enqueue(self.now, packet);
        let discarded = link.has_discarded();
        match enqueued {
            Enqueued::Head(time) => self.agenda.schedule(time, Event::Link(l)),
            Enqueued::Behind => {}
            Enqueued::Dropped => self.drop_arrival(l, packet.sack),
        }
        if discarded {
            self.count_drops(l);
        }
    }

    /// Counts a packet that a link did not accept.
    #[cold]
    pub(super) fn drop_arrival(&mut self, l: u32, sack: SackId) {
        self.ledger.dropped += 1;
        if let Some(capture) = &mut self.capture {
            capture.count_drop(l);
        }
        self.sacks.take(sack);
    }

    pub(super) fn enqueue_delay_line(&mut self, d: u32, packet: Packet) {
        if let Some(time) = self.delay_lines[d as usize].enqueue(self.now, packet) {
            self.agenda.schedule(time, Event::DelayLine(d));
        }
    }

    fn leave_delay_line(&mut self, packet: Packet) {
        match packet.role {
            Role::SynAck | Role::Ack => self.receive_ack(&packet),
            Role::AckFrame => self.receive_ack_frame(&packet),
            // At the end of the line that returns acknowledgements.
            Role::Endpoint if flow_and_side(packet.to).1 == Side::Client => self.receive_at_endpoint(&packet),
            _ => self.enqueue(self.first_link(&packet), packet),
        }
    }

    /// Hands a packet to its host's access link.
    pub(super) fn enqueue_access(&mut self, a: u32, packet: Packet) {
        if let Some(time) = self.access_links[a as usize].enqueue(self.now, packet) {
            self.agenda.schedule(time, Event::Access(a));
        }
    }

    // ------------------------------------------------------------------ hosts

    /// Hands a SYN or data packet to its receiver.
    fn receive(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        let host = &mut self.receivers[packet.to as usize];
        if packet.incarnation != host.incarnation {
            self.sacks.take(packet.sack);
            return; // of a closed connection
        }
        if let (Owner::Traffic(t), Role::Data) = (host.owner, packet.role) {
            self.traffic[t as usize].receive(self.now, packet.bytes);
        }
        let answer = host.receiver.on_packet(self.now, packet, &mut self.sacks);
        if host.is_awaited || host.receiver.poll_timer() != Instant::NEVER {
            self.follow_up(packet.to);
        }
        if packet.sack != SackId::NONE {
            self.answer_with_stack(packet.sack, answer);
        } else if let Some(ack) = &answer {
            self.send_ack(ack);
        }
    }

    /// Hands a packet of the first flight of a flow without a handshake to its receiver. `names` is the receiver's index
    /// if the answer tells it.
    pub(super) fn receive_first_flight(&mut self, packet: &Packet, names: Option<u32>) {
        let host = &mut self.receivers[packet.to as usize];
        if packet.incarnation != host.incarnation {
            self.sacks.take(packet.sack);
            return; // of a closed connection
        }
        if let Owner::Traffic(t) = host.owner {
            self.traffic[t as usize].receive(self.now, packet.bytes);
        }
        let answer = host.receiver.on_first_flight(self.now, packet, names, &mut self.sacks);
        self.follow_up(packet.to);
        if let Some(ack) = answer {
            self.ledger.sent += 1;
            let sack = self.sacks.echo_stack(packet.sack, ack.sack);
            self.enqueue(self.first_link(&ack), Packet { sack, ..ack });
        } else {
            self.sacks.take(packet.sack);
        }
    }

    /// Sends the acknowledgement of a packet with telemetry in the slot `from`. A packet that is not acknowledged at once
    /// loses its telemetry.
    #[inline(never)] // keeps the path of other laws short
    fn answer_with_stack(&mut self, from: SackId, answer: Option<Packet>) {
        match answer {
            Some(ack) => {
                let sack = self.sacks.echo_stack(from, ack.sack);
                self.send_ack(&Packet { sack, ..ack });
            }
            None => _ = self.sacks.take(from),
        }
    }

    /// Starts the flows that have waited for a receiver's flow if it has completed, and schedules the receiver's timer.
    #[inline(never)] // keeps the usual path short
    pub(super) fn follow_up(&mut self, f: u32) {
        let host = &self.receivers[f as usize];
        if host.is_awaited && host.receiver.completed().is_some() {
            self.start_followers(f);
        }
        self.schedule_receiver(f);
    }

    #[expect(clippy::inline_always, reason = "as for `enqueue_new`")]
    #[inline(always)]
    fn send_ack(&mut self, ack: &Packet) {
        self.ledger.sent += 1;
        self.enqueue_new(self.first_link(ack), ack, NO_INPUT);
    }

    /// Hands an acknowledgement to its sender.
    #[inline(never)]
    fn receive_ack(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        if packet.sack != SackId::NONE {
            self.pass_stack(packet);
        }
        // A slot for telemetry alone has empty blocks.
        let blocks = self.sacks.take(packet.sack).filter(|blocks| *blocks != Blocks::default());
        let host = &mut self.senders[packet.to as usize];
        let sender = &mut host.sender;
        if packet.incarnation != sender.spec.incarnation {
            return; // of a closed connection
        }
        if packet.role == Role::SynAck {
            sender.on_syn_ack(self.now, packet, blocks.as_ref());
        } else {
            sender.on_ack(self.now, packet, blocks.as_ref());
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.received(self.now, packet.to, packet, blocks.as_ref(), sender);
        }
        if let Owner::Traffic(t) = host.owner {
            if sender.is_done() {
                self.finish_flow(packet.to, t);
                return;
            }
        }
        self.transmit(packet.to);
    }

    /// Passes the telemetry of an acknowledgement to its sender's law.
    #[inline(never)] // keeps the path of other laws short
    pub(super) fn pass_stack(&mut self, packet: &Packet) {
        let sender = &mut self.senders[packet.to as usize].sender;
        if let Some(stack) = self.sacks.stack(packet.sack).filter(|_| packet.incarnation == sender.spec.incarnation) {
            sender.on_stack(stack);
        }
    }

    /// Sends all packets that a sender may send now, when no acknowledgement has arrived.
    #[inline(never)] // one copy for all but acknowledgements
    pub(super) fn transmit_unasked(&mut self, f: u32) {
        self.transmit(f);
    }

    /// Sends all packets that a sender may send now.
    #[expect(clippy::inline_always, reason = "one caller on the packet path")]
    #[inline(always)]
    fn transmit(&mut self, f: u32) {
        if !self.nics.is_empty() && self.take_turn(f) {
            return;
        }
        let ready = loop {
            match &self.senders[f as usize].sender.poll_transmit(self.now) {
                Ok(packet) if self.send(f, packet) => {}
                Ok(_) => return,
                Err(ready) => break *ready,
            }
        };
        self.schedule_sender(f, ready);
    }

    /// Sends a packet of a sender. Returns false if the run is over.
    #[expect(clippy::inline_always, reason = "as for `enqueue_new`")]
    #[inline(always)]
    pub(super) fn send(&mut self, f: u32, packet: &Packet) -> bool {
        self.ledger.sent += 1;
        let host = &self.senders[f as usize];
        if let Some(qlog) = &mut self.qlog {
            qlog.sent(self.now, f, packet, &host.sender);
        }
        match host.entry {
            HostAccess::Ideal => self.enqueue_new(self.first_link(packet), packet, NO_INPUT),
            HostAccess::DelayLine(out) => self.enqueue_delay_line(out, *packet),
            HostAccess::Access(access) => self.enqueue_access(access, *packet),
        }
        let over = self.ledger.sent % PACKETS_PER_POLL == 0 && self.watch.poll();
        if over {
            self.agenda.clear(); // or each event until the next poll would send a burst of its own
        }
        !over
    }

    /// Schedules a sender's next timer, at the latest at `ready`, unless an event at or before that time is already
    /// scheduled.
    ///
    /// That event then finds nothing to do and schedules again, so postponing a timer costs nothing.
    #[expect(clippy::inline_always, reason = "a comparison for each acknowledgement")]
    #[inline(always)]
    pub(super) fn schedule_sender(&mut self, f: u32, ready: Instant) {
        let host = &mut self.senders[f as usize];
        let time = host.sender.poll_timer().min(ready);
        if time < host.due {
            host.due = time;
            let number = u64::from(host.sender.spec.flow);
            self.schedule_timer(time, Event::Sender(f), number);
        }
    }

    #[inline(never)] // keeps the usual path short
    fn schedule_timer(&mut self, time: Instant, event: Event, number: u64) {
        self.agenda.add_timer(time, event, number);
    }

    fn schedule_receiver(&mut self, f: u32) {
        let host = &mut self.receivers[f as usize];
        let time = host.receiver.poll_timer();
        if time < host.due {
            host.due = time;
            self.agenda.add_timer(time, Event::Receiver(f), u64::from(host.receiver.spec.flow));
        }
    }
}
