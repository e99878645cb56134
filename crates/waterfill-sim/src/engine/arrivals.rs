//! Traffic sources: packets without congestion control, and finite flows that start and finish during the run.

use waterfill_laws::registry::AnyHeader;
use waterfill_laws::units::Instant;

use super::build::add_access;
use super::event::Event;
use super::{Part, Simulation};
use crate::flow::{FlowSetup, HostAccess, Owner, ReceivingHost, SendingHost, receiving_host, sending_host};
use crate::packet::{Cargo, Flags, Opening, Packet, Role, SackId};
use crate::sender::{FlowIndex, SenderSpec, UNMEASURED};
use crate::traffic::{CompletionTimes, FlowTotals, Traffic};

impl Part {
    /// Handles a traffic source's event: sends a packet or starts flows, then schedules the source's next event.
    pub(super) fn run_traffic(&mut self, t: u32) {
        let traffic = &mut self.traffic[t as usize];
        self.events -= u64::from(traffic.is_copy); // another part counts it
        if !traffic.is_on() {
            return;
        }
        traffic.step();
        let next = traffic.next;
        if let Some(web) = &traffic.web {
            let count = web.fan_in;
            let group = traffic.draw_group();
            for number in 0..count {
                let route = self.traffic[t as usize].draw_route(&group, number);
                self.start_flow(t, route);
                if number % 256 == 255 && self.watch.poll() {
                    break;
                }
            }
        } else {
            self.send_traffic_packet(t);
        }
        self.agenda.add_timer(next, Event::Traffic(t), u64::from(t));
    }

    fn send_traffic_packet(&mut self, t: u32) {
        let traffic = &mut self.traffic[t as usize];
        traffic.sent += 1;
        let packet = Packet {
            flow: t,
            to: t,
            place: traffic.path,
            bytes: traffic.packet_bytes,
            incarnation: 0,
            role: Role::Traffic,
            flags: Flags::default(),
            sack: SackId::NONE,
            number: 0,
            sent: self.now,
            echoed: Instant::ZERO,
            cargo: Cargo::Header(AnyHeader::None),
        };
        self.ledger.sent += 1;
        match traffic.access {
            None => self.enqueue(self.paths[packet.place as usize], packet),
            Some(access) => self.enqueue_access(access, packet),
        }
    }

    /// Starts a flow of a traffic source on the given route, if the route begins in this part. The flow takes the slot of
    /// a finished flow or a new slot.
    fn start_flow(&mut self, t: u32, route: u32) {
        let traffic = &mut self.traffic[t as usize];
        let size_bytes = traffic.draw_size();
        let counted = traffic.counted;
        let Some(web) = &mut traffic.web else { return };
        let index = web.started as u32;
        web.started += 1;
        let Some(begin) = web.routes.begin(route) else { return };
        web.open += 1;
        web.flow.size_bytes = Some(size_bytes);
        let f = begin.free.pop().unwrap_or(self.senders.len() as u32);
        let before = self.senders.get(f as usize);
        // A slot is two hosts: its next flow has the same ranks, and sends over the same access link.
        let mut route = begin.route;
        let first = web.numbers.0 + route.number;
        let number = before.map_or_else(
            || {
                // Unique as long as there are fewer than 2³² hosts for each slot of each route.
                let number = first.wrapping_add(web.numbers.1.wrapping_mul(begin.slots));
                begin.slots += 1;
                number
            },
            |host| host.sender.spec.flow,
        );
        if let HostAccess::Access(access) = &mut route.entry {
            if let Some(HostAccess::Access(known)) = before.map(|host| host.entry) {
                *access = known;
            } else {
                *access = add_access(&mut self.access_links, &web.flow, 0, number);
                self.agenda.add_station(Event::Access(*access), u64::from(number));
            }
        }
        let mut sender = SenderSpec::new(&self.network, &web.flow, &web.law, FlowIndex { flow: number, index });
        (sender.to, sender.opens_from) = (first, f);
        (sender.base_rtt, sender.start) = (begin.base_rtt, self.now);
        sender.measure = UNMEASURED;
        sender.incarnation = before.map_or(0, |host| host.sender.spec.incarnation);
        if let Some(switches) = &self.switches {
            route.forward = switches.leave_host(&self.paths, route.forward, (number, sender.incarnation));
        }
        let owner = Owner::Traffic(t);
        let setup = FlowSetup { owner, law: &web.law, spec: &web.flow, sender, from: f, counted, route };
        let mut sending = sending_host(&self.network, &setup);
        sending.sender.add_rare(&setup, None, self.network.seed);
        if let Some(host) = self.senders.get_mut(f as usize) {
            sending.due = host.due; // the timer of the slot's previous flow serves this one
            *host = sending;
        } else {
            self.senders.push(sending);
        }
        self.transmit_unasked(f);
    }

    /// Handles the first packet of a traffic source's flow, or one of its first flight: prepares the receiver of the flow's
    /// slot, and answers with its index.
    #[cold]
    pub(super) fn open_flow(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        let Some(to) = self.prepare_receiver(packet) else {
            self.sacks.take(packet.sack);
            return;
        };
        if packet.role != Role::Open {
            self.receive_first_flight(&Opening::data(packet, to), Some(to));
            return;
        }
        let host = &mut self.receivers[to as usize];
        let syn = Packet { role: Role::Syn, echoed: Instant::ZERO, ..*packet };
        let answer = host.receiver.on_packet(self.now, &syn, &mut self.sacks);
        if let Some(ack) = answer {
            self.ledger.sent += 1;
            let sack = self.sacks.echo_stack(packet.sack, ack.sack);
            self.enqueue(self.first_link(&ack), Packet { number: u64::from(to), sack, ..ack });
        }
    }

    /// Returns the receiver of a flow whose first packet arrives. If the packet is older than the receiver's flow, returns
    /// `None`.
    fn prepare_receiver(&mut self, packet: &Packet) -> Option<u32> {
        let opening = Opening::decode(packet);
        let web = |traffic: &Traffic| traffic.web.as_ref().is_some_and(|web| web.numbers.0 <= opening.route);
        // Sources without routes in this part are between those with some.
        let t = self.traffic.iter().rposition(web)?;
        let traffic = &mut self.traffic[t];
        let counted = traffic.counted;
        let web = traffic.web.as_mut()?;
        let end = web.routes.end(opening.route - web.numbers.0)?;
        let slot = (packet.flow.wrapping_sub(opening.route) / web.numbers.1) as usize;
        let known = end.receivers.get(slot).copied().flatten();
        let before = known.map(|to| &self.receivers[to as usize]);
        match before.map(|host| packet.incarnation.wrapping_sub(host.incarnation)) {
            Some(0) => return known,
            Some(newer) if newer > u16::MAX / 2 => return None,
            _ => {}
        }
        let place = FlowIndex { flow: packet.flow, index: opening.index };
        let mut sender = SenderSpec::new(&self.network, &web.flow, &web.law, place);
        sender.incarnation = packet.incarnation;
        let owner = Owner::Traffic(t as u32);
        let (law, spec, mut route) = (&web.law, &web.flow, end.route);
        if let Some(switches) = &self.switches {
            route.reverse = switches.leave_host(&self.paths, route.reverse, (packet.flow, packet.incarnation));
        }
        let setup = FlowSetup { owner, law, spec, sender, from: opening.sender, counted, route };
        let mut receiving = receiving_host(&self.network, &setup);
        receiving.receiver.spec.packets = opening.packets;
        if let Some(to) = known {
            let host = &mut self.receivers[to as usize];
            web.finished.add_receiver(&host.receiver);
            self.completed.extend(Completed::of(host));
            receiving.due = host.due; // the timer of the slot's previous flow serves this one
            *host = receiving;
            return known;
        }
        let to = self.receivers.len() as u32;
        self.receivers.push(receiving);
        if end.receivers.len() <= slot {
            end.receivers.resize(slot + 1, None);
        }
        end.receivers[slot] = Some(to);
        Some(to)
    }

    /// Finishes a traffic source's flow whose last acknowledgement has arrived, and frees its slot. Packets of the flow
    /// that are still in transit carry an incarnation number that no longer matches.
    pub(super) fn finish_flow(&mut self, f: u32, t: u32) {
        let from = &mut self.senders[f as usize];
        let Some(web) = &mut self.traffic[t as usize].web else { return };
        web.finished.add_sender(&from.sender, self.now);
        self.finished.push(Started::of(from, t, self.now));
        web.open -= 1;
        if let Some(begin) = web.routes.begin(from.route) {
            begin.free.push(f);
        }
        from.owner = Owner::Nobody;
        from.sender.spec.incarnation = from.sender.spec.incarnation.wrapping_add(1);
    }
}

/// A flow that a traffic source has started, as its sender's part knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    source: u32,
    index: u32,
    route: u32,
    start: Instant,
    size_bytes: u64,
    /// Time at which the sender had all acknowledgements; `NEVER` if it has not.
    finished: Instant,
}

/// Time at which a traffic source's flow was complete, as its receiver's part knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    source: u32,
    index: u32,
    at: Instant,
}

/// A flow that a traffic source has started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    started: Started,
    /// Time at which its receiver had all data; `NEVER` if it has not.
    completed: Instant,
}

impl Started {
    fn of(from: &SendingHost, source: u32, finished: Instant) -> Self {
        let spec = &from.sender.spec;
        let size_bytes = spec.sizes.packets.map_or(0, |(count, _)| spec.sizes.payload_before(count));
        Self { source, index: spec.index, route: from.route, start: spec.start, size_bytes, finished }
    }
}

impl Completed {
    /// Returns the completion of a receiver's flow, if the flow is a traffic source's and complete.
    fn of(to: &ReceivingHost) -> Option<Self> {
        let Owner::Traffic(source) = to.owner else { return None };
        to.receiver.completed().map(|at| Self { source, index: to.index, at })
    }
}

impl Arrival {
    /// Returns the flow as a row of [`ARRIVAL_COLUMNS`](waterfill_network::series::ARRIVAL_COLUMNS).
    pub(super) fn row(&self) -> [f64; 6] {
        let Started { source, index, route, start, size_bytes, .. } = self.started;
        let completed_s = if self.completed == Instant::NEVER { f64::NAN } else { self.completed.as_secs() };
        let [source, index, route] = [source, index, route].map(f64::from);
        [source, index, route, start.as_secs(), size_bytes as f64, completed_s]
    }
}

impl Simulation {
    /// Returns all flows that traffic sources have started: complete flows in order of completion, then the others by
    /// source and index.
    pub(super) fn all_arrivals(&self) -> Vec<Arrival> {
        let mut completed: Vec<Vec<Instant>> = vec![Vec::new(); self.network.traffic.len()];
        let receivers = self.parts.iter().flat_map(|part| &part.receivers).filter_map(Completed::of);
        for Completed { source, index, at } in
            self.parts.iter().flat_map(|part| &part.completed).copied().chain(receivers)
        {
            let (times, index) = (&mut completed[source as usize], index as usize);
            times.resize(times.len().max(index + 1), Instant::NEVER);
            times[index] = at;
        }
        let open = self.parts.iter().flat_map(|part| &part.senders).filter_map(|from| match from.owner {
            Owner::Traffic(t) => Some(Started::of(from, t, Instant::NEVER)),
            Owner::Group(_) | Owner::Nobody => None,
        });
        let started = self.parts.iter().flat_map(|part| &part.finished).copied().chain(open);
        let mut all: Vec<Arrival> = started
            .map(|started| {
                let at = completed[started.source as usize].get(started.index as usize);
                Arrival { started, completed: at.copied().unwrap_or(Instant::NEVER) }
            })
            .collect();
        all.sort_by_key(|arrival| (arrival.completed, arrival.started.source, arrival.started.index));
        all
    }

    /// Returns the totals of each traffic source's flows until now, both finished and open.
    pub(super) fn flow_totals(&self, now: Instant) -> Vec<FlowTotals> {
        let mut totals = vec![FlowTotals::default(); self.network.traffic.len()];
        for part in &self.parts {
            for (total, traffic) in totals.iter_mut().zip(&part.traffic) {
                traffic.web.iter().for_each(|web| total.add(&web.finished));
            }
            for from in &part.senders {
                if let Owner::Traffic(t) = from.owner {
                    totals[t as usize].add_sender(&from.sender, now);
                }
            }
            for to in &part.receivers {
                if let Owner::Traffic(t) = to.owner {
                    totals[t as usize].add_receiver(&to.receiver);
                }
            }
        }
        totals
    }
}

/// Returns the completion times, from SYN to last byte, of a source's flows that started in its window.
pub(super) fn completion_times(arrivals: &[Arrival], t: usize, window: (Instant, Instant)) -> CompletionTimes {
    let mut times = CompletionTimes::default();
    for Arrival { started, completed } in arrivals.iter().filter(|arrival| arrival.started.source as usize == t) {
        if *completed != Instant::NEVER && window.0 <= started.start && started.start <= window.1 {
            times.add(completed.since(started.start));
        }
    }
    times
}

/// Returns the largest number of a source's flows that were open at once. A flow that finishes at the time at which another
/// starts is not counted with it.
pub(super) fn open_max(arrivals: &[Arrival], t: usize) -> u64 {
    let own = arrivals.iter().map(|arrival| &arrival.started).filter(|started| started.source as usize == t);
    let mut changes: Vec<(Instant, bool)> = own.flat_map(|flow| [(flow.start, true), (flow.finished, false)]).collect();
    changes.sort_unstable(); // false, the end of a flow, is first
    let (mut open, mut most) = (0_u64, 0);
    for (_, starts) in changes {
        open = if starts { open + 1 } else { open.saturating_sub(1) };
        most = most.max(open);
    }
    most
}
