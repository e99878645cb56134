//! The event loop: links, hosts and timers in the order of time.
//!
//! The heap holds at most one entry a link direction, a delay line, a flow's timer and a traffic
//! source, never one a packet in flight (but for those that a faulty wire delivers out of order). Entries of one time are ordered by the sequence number they
//! were given, so a run is the same every time. Nothing allocates per packet: rings and arenas grow
//! to what the network holds and stay.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use waterfill_laws::protocol::{Kind, Probe};
use waterfill_laws::registry::{AnyHeader, AnyParams, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::series::{FLOW_COLUMNS, LINK_COLUMNS, Series, TRAFFIC_COLUMNS};
use waterfill_network::{FlowSpec, Network};

use crate::delay_line::DelayLine;
use crate::link::{Enqueued, Link};
use crate::meter::Reading;
use crate::packet::{Cargo, Flags, Packet, Role, SackId, Sacks};
use crate::receiver::{Receiver, ReceiverSpec};
use crate::sender::{Sender, SenderSpec};
use crate::traffic::{Traffic, Web};

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The head of a link is at its far end.
    Link(u32),
    /// A packet that comes late or for the second time is at the far end of its link.
    Stray(u32),
    /// The head of a delay line is at its end.
    DelayLine(u32),
    /// A sender asked for this time.
    Sender(u32),
    /// A receiver asked for this time.
    Receiver(u32),
    /// A traffic source sends a packet or begins a flow.
    Traffic(u32),
    /// Time to sample.
    Sample,
    /// The summary's window begins.
    WindowOpens,
    /// The summary's window ends.
    WindowCloses,
}

/// An event in the heap, which gives its largest first: the earliest, and of one time the first made.
#[derive(Clone, Copy, Debug)]
struct Timed {
    time: Instant,
    order: u64,
    event: Event,
}

impl Timed {
    /// One comparison in place of two.
    fn key(&self) -> u128 {
        (u128::from(self.time.as_ps()) << 64) | u128::from(self.order)
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Links out and back, and the padding at the source's access.
#[derive(Debug)]
pub(crate) struct Route {
    forward: Box<[u32]>,
    reverse: Box<[u32]>,
    /// Delay lines out and back.
    pad: Option<(u32, u32)>,
}

/// Whose a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A group of the network's flows, by its index.
    Group(u32),
    /// A traffic source that begins flows, by its index.
    Traffic(u32),
    /// It is over; its place waits for its source's next.
    Nobody,
}

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) owner: Owner,
    pub(crate) protocol: ProtocolId,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    route: Arc<Route>,
    /// When the heap's live entry for the sender is due; entries of other times are stale.
    sender_due: Instant,
    receiver_due: Instant,
    /// Received bytes at the last sample.
    sampled_bytes: u64,
}

/// A packet-level simulation.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) network: Network,
    now: Instant,
    pub(crate) end: Instant,
    pub(crate) measure: (Instant, Instant),
    heap: BinaryHeap<Timed>,
    order: u64,
    pub(crate) links: Vec<Link>,
    delay_lines: Vec<DelayLine>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) traffic: Vec<Traffic>,
    sacks: Sacks,
    sample: Duration,
    sampled: Instant,
    link_readings: Vec<Reading>,
    /// Columns that queue disciplines add to the series of links.
    queue_columns: Vec<&'static str>,
    flow_series: Series,
    link_series: Series,
    traffic_series: Series,
    events: u64,
    packet_hops: u64,
    ledger: Ledger,
}

/// Where every packet went: `sent` and `duplicated` together are the sum of the others at all times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Put into the network by hosts and traffic sources.
    pub sent: u64,
    /// Made of one packet on a wire that delivers some twice.
    pub duplicated: u64,
    /// Taken out at the end of their path.
    pub delivered: u64,
    /// By queues.
    pub dropped: u64,
    /// Lost on a wire.
    pub lost: u64,
    /// In queues and on wires.
    pub in_transit: u64,
}

impl Flow {
    /// A connection at its start; `counted` is the summary's window, cut to its life.
    fn new(
        network: &Network,
        owner: Owner,
        sender: SenderSpec,
        (protocol, params): (ProtocolId, &AnyParams),
        spec: &FlowSpec,
        counted: (Instant, Instant),
        route: &Arc<Route>,
    ) -> Self {
        let receiver = ReceiverSpec {
            flow: sender.flow,
            incarnation: sender.incarnation,
            ack_bytes: network.ack_bytes,
            delayed_ack: spec.delayed_ack,
            retransmission: sender.host.retransmission,
            ecn: sender.host.ecn,
            packets: sender.packets.map(|(count, _)| count),
            counted,
        };
        Self {
            owner,
            protocol,
            sender: Sender::new(sender, params, spec, network.seed),
            receiver: Receiver::new(receiver, params),
            route: Arc::clone(route),
            sender_due: Instant::NEVER,
            receiver_due: Instant::NEVER,
            sampled_bytes: 0,
        }
    }
}

impl Simulation {
    /// Builds the network.
    ///
    /// # Errors
    /// One sentence: what of the network is missing or out of range.
    pub fn new(network: Network) -> Result<Self, String> {
        let measure = (Instant::from_secs(network.measure_s[0]), Instant::from_secs(network.measure_s[1]));
        let links: Vec<Link> = (0u32..).zip(&network.links).map(|(i, spec)| Link::new(i, spec, &network)).collect();
        let mut sim = Self {
            now: Instant::ZERO,
            end: Instant::from_secs(network.duration_s),
            measure,
            heap: BinaryHeap::new(),
            order: 0,
            link_readings: vec![Reading::default(); links.len()],
            links,
            delay_lines: Vec::new(),
            flows: Vec::new(),
            traffic: Vec::new(),
            sacks: Sacks::default(),
            sample: Duration::from_secs(network.sample_s),
            sampled: Instant::ZERO,
            queue_columns: Vec::new(),
            flow_series: Series::default(),
            link_series: Series::default(),
            traffic_series: Series::default(),
            events: 0,
            packet_hops: 0,
            ledger: Ledger::default(),
            network,
        };
        sim.build_flows()?;
        sim.build_traffic()?;
        sim.build_series();
        sim.at(measure.0, Event::WindowOpens);
        sim.at(measure.1, Event::WindowCloses);
        sim.at(Instant::ZERO + sim.sample, Event::Sample);
        Ok(sim)
    }

    fn build_flows(&mut self) -> Result<(), String> {
        let network = self.network.clone();
        for (group, spec) in (0u32..).zip(&network.flows) {
            let (id, params) = self.build_law(&format!("flow.{}", spec.name), spec)?;
            let route = self.build_route(spec);
            for i in 0..spec.count {
                let index = self.flows.len() as u32;
                let sender = SenderSpec::new(&network, spec, id, (index, i));
                let counted = (self.measure.0.max(sender.start), self.measure.1.min(sender.stop));
                let flow = Flow::new(&network, Owner::Group(group), sender, (id, &params), spec, counted, &route);
                self.flows.push(flow);
                self.arm_sender(index);
            }
        }
        Ok(())
    }

    /// The protocol of a flow, with its router law on each link direction that its data crosses.
    fn build_law(&mut self, at: &str, spec: &FlowSpec) -> Result<(ProtocolId, AnyParams), String> {
        let id = Network::protocol_of(at, spec)?;
        let params = self.network.params_of(id)?;
        for &l in &spec.forward {
            let (link, link_spec) = (&mut self.links[l as usize], &self.network.links[l as usize]);
            let speaks = link_spec.routers.as_ref();
            let speaks = speaks.is_none_or(|names| names.iter().any(|name| name == id.info().name));
            if speaks && id.info().kind == Kind::Explicit && !link.has_router(id) {
                let at = |e| format!("params.{}.{e} (for link {})", id.info().name, link_spec.name);
                params.check_link(link.view()).map_err(at)?;
                link.add_router(id, params.router(link.view()), params.target());
            }
        }
        Ok((id, params))
    }

    fn build_route(&mut self, spec: &FlowSpec) -> Arc<Route> {
        let pad = Duration::from_secs(spec.pad_s);
        let pad = (!pad.is_zero()).then(|| (self.delay_line(pad, 0), self.delay_line(pad, 1)));
        Arc::new(Route { forward: spec.forward.clone().into(), reverse: spec.reverse.clone().into(), pad })
    }

    fn build_series(&mut self) {
        let of_flows = distinct(self.flows.iter().map(|flow| flow.protocol));
        let of_web = self.traffic.iter().filter_map(|traffic| traffic.web.as_ref()).map(|web| web.protocol);
        let all = distinct(of_flows.iter().copied().chain(of_web));
        self.flow_series = Series::new(&FLOW_COLUMNS, &of_flows);
        self.queue_columns = distinct(self.links.iter().flat_map(|link| link.queue_columns().iter().copied()));
        self.link_series = Series::new(&[&LINK_COLUMNS[..], &self.queue_columns].concat(), &all);
        self.traffic_series = Series::new(&TRAFFIC_COLUMNS, &[]);
    }

    /// The delay line of this delay and side; flows of one delay share it, for it keeps their order.
    fn delay_line(&mut self, delay: Duration, side: usize) -> u32 {
        let known = self.delay_lines.iter().enumerate().find(|(i, line)| i % 2 == side && line.delay() == delay);
        if let Some((i, _)) = known {
            return i as u32;
        }
        if side == 0 {
            self.delay_lines.push(DelayLine::new(delay));
            self.delay_lines.push(DelayLine::new(delay));
        }
        self.delay_lines.len() as u32 - 2 + side as u32
    }

    fn build_traffic(&mut self) -> Result<(), String> {
        for (i, spec) in (0u32..).zip(self.network.traffic.clone()) {
            let mut traffic = Traffic::new(spec, i, self.network.seed, self.measure);
            if let Some(spec) = &traffic.spec.flows {
                let law = self.build_law(&format!("traffic.{}", traffic.spec.name), &spec.flow)?;
                traffic.web = Some(Box::new(Web::new(spec, law, self.build_route(&spec.flow), self.end)));
            }
            self.at(traffic.next, Event::Traffic(i));
            self.traffic.push(traffic);
        }
        Ok(())
    }

    // ------------------------------------------------------------------ time

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn at(&mut self, time: Instant, event: Event) {
        let order = self.next_order();
        self.heap.push(Timed { time, order, event });
    }

    /// Simulates up to and including `until`, or to the end of the run if that is earlier.
    pub fn advance(&mut self, until: Instant) {
        let until = until.min(self.end);
        loop {
            let Some(top) = self.heap.peek_mut() else { break };
            let Timed { time, event, .. } = *top;
            if time > until {
                break;
            }
            debug_assert!(time >= self.now, "time runs backwards");
            self.now = time;
            self.events += 1;
            match event {
                Event::Link(l) | Event::Stray(l) => {
                    let link = &mut self.links[l as usize];
                    let packet = if matches!(event, Event::Link(_)) {
                        let packet = link.deliver(time);
                        replace(top, event, link.head());
                        self.packet_hops += 1;
                        packet
                    } else {
                        PeekMut::pop(top);
                        link.deliver_reordered()
                    };
                    if link.has_discarded() {
                        self.reap(l);
                    }
                    if packet.flags.has(Flags::OF_A_WIRE) {
                        self.suffer(l, packet);
                    } else {
                        self.hop(packet);
                    }
                }
                Event::DelayLine(d) => {
                    let line = &mut self.delay_lines[d as usize];
                    let packet = line.deliver();
                    replace(top, event, line.head());
                    self.leave_delay_line(packet);
                }
                Event::Sender(f) => {
                    PeekMut::pop(top);
                    let flow = &mut self.flows[f as usize];
                    if flow.sender_due == time {
                        flow.sender_due = Instant::NEVER;
                        flow.sender.on_timer(time);
                        self.send(f);
                    }
                }
                Event::Receiver(f) => {
                    PeekMut::pop(top);
                    let flow = &mut self.flows[f as usize];
                    if flow.receiver_due == time {
                        flow.receiver_due = Instant::NEVER;
                        if let Some(ack) = flow.receiver.on_timer(time) {
                            self.answer(ack);
                        }
                        self.arm_receiver(f);
                    }
                }
                Event::Traffic(t) => {
                    PeekMut::pop(top);
                    self.send_traffic(t);
                }
                Event::Sample => {
                    PeekMut::pop(top);
                    self.take_sample();
                    self.at(time + self.sample, Event::Sample);
                }
                Event::WindowOpens => {
                    PeekMut::pop(top);
                    self.links.iter_mut().for_each(|l| l.open_window(time));
                }
                Event::WindowCloses => {
                    PeekMut::pop(top);
                    self.links.iter_mut().for_each(|l| l.close_window(time));
                }
            }
        }
        self.now = self.now.max(until);
        if self.now == self.end && self.sampled < self.end {
            self.take_sample(); // the part of an interval that is left
        }
    }

    // ------------------------------------------------------------------ a packet's life

    /// Something went wrong with a packet on its wire: it and its twin arrive by themselves, if at all.
    #[cold]
    fn suffer(&mut self, l: u32, mut packet: Packet) {
        let flags = packet.flags;
        packet.flags.leave_wire();
        if flags.has(Flags::LOST) {
            self.ledger.lost += 1;
            self.sacks.take(packet.sack);
            return;
        }
        let lateness = if flags.has(Flags::LATE) { self.links[l as usize].lateness() } else { Duration::ZERO };
        self.stray(l, lateness, packet);
        if flags.has(Flags::TWICE) {
            self.ledger.duplicated += 1;
            let sack = self.sacks.copy(packet.sack);
            self.stray(l, Duration::ZERO, Packet { sack, ..packet });
        }
    }

    /// Sends a packet off the order of its link.
    fn stray(&mut self, l: u32, delay: Duration, packet: Packet) {
        let (time, order) = (self.now + delay, self.next_order());
        self.links[l as usize].add_reordered(time, packet);
        self.heap.push(Timed { time, order, event: Event::Stray(l) });
    }

    /// Takes note of packets that a queue has dropped after it had taken them in.
    #[cold]
    fn reap(&mut self, l: u32) {
        for sack in self.links[l as usize].take_discarded() {
            self.ledger.dropped += 1;
            self.sacks.take(sack);
        }
    }

    /// A packet that has crossed a link goes on to the next, or is at the end of its path.
    fn hop(&mut self, mut packet: Packet) {
        packet.hop += 1;
        let hop = usize::from(packet.hop);
        match packet.role {
            Role::Traffic => {
                let traffic = &mut self.traffic[packet.flow as usize];
                if let Some(&l) = traffic.path.get(hop) {
                    self.join(l, packet);
                } else {
                    self.ledger.delivered += 1;
                    traffic.receive(self.now, packet.bytes);
                }
            }
            Role::Syn | Role::Data => match self.flows[packet.flow as usize].route.forward.get(hop) {
                Some(&l) => self.join(l, packet),
                None => self.receive(&packet),
            },
            Role::SynAck | Role::Ack => {
                let route = &self.flows[packet.flow as usize].route;
                match (route.reverse.get(hop), route.pad) {
                    (Some(&l), _) => self.join(l, packet),
                    (None, Some((_, back))) => self.join_delay_line(back, packet),
                    (None, None) => self.acknowledge(&packet),
                }
            }
        }
    }

    fn join(&mut self, l: u32, packet: Packet) {
        let order = self.next_order();
        match self.links[l as usize].enqueue(self.now, packet, order) {
            Enqueued::Head(time) => self.heap.push(Timed { time, order, event: Event::Link(l) }),
            Enqueued::Behind => {}
            Enqueued::Dropped => {
                self.ledger.dropped += 1;
                self.sacks.take(packet.sack);
            }
        }
        if self.links[l as usize].has_discarded() {
            self.reap(l);
        }
    }

    fn join_delay_line(&mut self, d: u32, packet: Packet) {
        let order = self.next_order();
        if let Some(time) = self.delay_lines[d as usize].enqueue(self.now, packet, order) {
            self.heap.push(Timed { time, order, event: Event::DelayLine(d) });
        }
    }

    fn leave_delay_line(&mut self, packet: Packet) {
        match packet.role {
            Role::SynAck | Role::Ack => self.acknowledge(&packet),
            Role::Syn | Role::Data | Role::Traffic => {
                let first = self.flows[packet.flow as usize].route.forward[0];
                self.join(first, packet);
            }
        }
    }

    /// Data has reached its receiver.
    fn receive(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        let flow = &mut self.flows[packet.flow as usize];
        let spec = &flow.sender.spec;
        if packet.incarnation != spec.incarnation {
            return; // of a connection that is closed
        }
        if let (Owner::Traffic(t), Role::Data) = (flow.owner, packet.role) {
            self.traffic[t as usize].receive(self.now, packet.bytes);
        }
        let full = u32::from(spec.payload(self.network.packet_bytes));
        let last = spec.packets.map(|(count, bytes)| (count - 1, u32::from(spec.payload(bytes))));
        let payload = |number| last.filter(|&(n, _)| n == number).map_or(full, |(_, bytes)| bytes);
        let answer = flow.receiver.on_packet(self.now, packet, payload, &mut self.sacks);
        if flow.receiver.poll_timer() != Instant::NEVER {
            self.arm_receiver(packet.flow);
        }
        if let Some(ack) = answer {
            self.answer(ack);
        }
    }

    fn answer(&mut self, ack: Packet) {
        self.ledger.sent += 1;
        let first = self.flows[ack.flow as usize].route.reverse[0];
        self.join(first, ack);
    }

    /// An acknowledgement has reached its sender.
    fn acknowledge(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        let blocks = self.sacks.take(packet.sack);
        let flow = &mut self.flows[packet.flow as usize];
        let sender = &mut flow.sender;
        if packet.incarnation != sender.spec.incarnation {
            return; // of a connection that is closed
        }
        if packet.role == Role::SynAck {
            sender.on_syn_ack(self.now, packet);
        } else {
            sender.on_ack(self.now, packet, blocks.as_ref());
        }
        if let Owner::Traffic(t) = flow.owner {
            if flow.receiver.completed.is_some() && !flow.sender.is_live(self.now) {
                self.end_flow(packet.flow, t);
                return;
            }
        }
        self.send(packet.flow);
    }

    /// Takes out of a sender what it may send now.
    fn send(&mut self, f: u32) {
        while let Some(packet) = self.flows[f as usize].sender.poll_transmit(self.now) {
            self.ledger.sent += 1;
            let route = &self.flows[f as usize].route;
            if let Some((out, _)) = route.pad {
                self.join_delay_line(out, packet);
            } else {
                let first = route.forward[0];
                self.join(first, packet);
            }
        }
        self.arm_sender(f);
    }

    /// Puts a sender's next time into the heap, unless an entry will come before it: that one then
    /// finds nothing to do and asks again. So a timer that is only put off costs nothing.
    fn arm_sender(&mut self, f: u32) {
        let flow = &mut self.flows[f as usize];
        let time = flow.sender.poll_timer(self.now);
        if time < flow.sender_due {
            flow.sender_due = time;
            self.at(time, Event::Sender(f));
        }
    }

    fn arm_receiver(&mut self, f: u32) {
        let flow = &mut self.flows[f as usize];
        let time = flow.receiver.poll_timer();
        if time < flow.receiver_due {
            flow.receiver_due = time;
            self.at(time, Event::Receiver(f));
        }
    }

    /// A traffic source's time has come.
    fn send_traffic(&mut self, t: u32) {
        let traffic = &mut self.traffic[t as usize];
        if !traffic.is_on() {
            return;
        }
        traffic.step();
        let next = traffic.next;
        if traffic.web.is_some() {
            self.begin_flow(t);
        } else {
            self.send_loose(t);
        }
        self.at(next, Event::Traffic(t));
    }

    /// A packet that no flow sends.
    fn send_loose(&mut self, t: u32) {
        let traffic = &mut self.traffic[t as usize];
        traffic.sent += 1;
        let first = traffic.path[0];
        let packet = Packet {
            flow: t,
            bytes: traffic.spec.packet_bytes,
            incarnation: 0,
            hop: 0,
            role: Role::Traffic,
            flags: Flags::default(),
            sack: SackId::NONE,
            number: 0,
            sent: self.now,
            echoed: Instant::ZERO,
            cargo: Cargo::Header(AnyHeader::None),
        };
        self.ledger.sent += 1;
        self.join(first, packet);
    }

    /// A flow of a traffic source begins, in the place of one that is over, or in a new one.
    fn begin_flow(&mut self, t: u32) {
        let traffic = &mut self.traffic[t as usize];
        let size_bytes = traffic.draw_size();
        let counted = traffic.counted;
        let Some(web) = &mut traffic.web else { return };
        web.started += 1;
        web.open += 1;
        web.open_max = web.open_max.max(web.open);
        web.flow.size_bytes = Some(size_bytes);
        let f = web.free.pop().unwrap_or(self.flows.len() as u32);
        let mut sender = SenderSpec::new(&self.network, &web.flow, web.protocol, (f, 0));
        sender.start = self.now;
        sender.measure = (Instant::NEVER, Instant::ZERO); // nobody asks for their round trips
        let before = self.flows.get(f as usize);
        sender.incarnation = before.map_or(0, |flow| flow.sender.spec.incarnation);
        // What waits in the heap for the flow before serves this one.
        let due = before.map_or((Instant::NEVER, Instant::NEVER), |flow| (flow.sender_due, flow.receiver_due));
        let law = (web.protocol, &web.params);
        let mut flow = Flow::new(&self.network, Owner::Traffic(t), sender, law, &web.flow, counted, &web.route);
        (flow.sender_due, flow.receiver_due) = due;
        if (f as usize) < self.flows.len() {
            self.flows[f as usize] = flow;
        } else {
            self.flows.push(flow);
        }
        self.send(f);
    }

    /// A flow of a traffic source has had its last acknowledgement: its place is free. Packets of it that are
    /// still on their way belong to a connection that no longer is.
    fn end_flow(&mut self, f: u32, t: u32) {
        let flow = &mut self.flows[f as usize];
        let traffic = &mut self.traffic[t as usize];
        let Some(web) = &mut traffic.web else { return };
        web.over.add(flow, traffic.counted);
        web.open -= 1;
        web.free.push(f);
        flow.owner = Owner::Nobody;
        flow.sender.spec.incarnation = flow.sender.spec.incarnation.wrapping_add(1);
    }

    // ------------------------------------------------------------------ looking

    fn take_sample(&mut self) {
        let (now, lasted) = (self.now, self.now.since(self.sampled).as_secs());
        self.sampled = now;
        let time = now.as_secs();
        let rate = |total: u64, before: &mut u64| {
            let bytes = total - std::mem::replace(before, total);
            bytes as f64 * 8.0 / lasted
        };
        for (i, flow) in self.flows.iter_mut().enumerate() {
            if !matches!(flow.owner, Owner::Group(_)) {
                continue; // reported by its source
            }
            let fresh = flow.receiver.bytes_total != flow.sampled_bytes;
            if !fresh && !flow.sender.is_live(now) {
                continue; // before its start, or over
            }
            let sender = &flow.sender;
            self.flow_series.push(&[
                time,
                i as f64,
                rate(flow.receiver.bytes_total, &mut flow.sampled_bytes),
                sender.window().map_or(f64::NAN, Volume::as_bytes),
                sender.pacing().map_or(f64::NAN, Rate::as_bps),
                sender.latest_rtt().map_or(f64::NAN, Duration::as_secs),
                sender.in_flight().as_bytes(),
            ]);
            sender.observe(&mut self.flow_series.newest(flow.protocol));
        }
        for (i, (link, before)) in self.links.iter_mut().zip(&mut self.link_readings).enumerate() {
            let (span, queue_max) = link.sample(now, before);
            let (drops, marks, lost) = (span.drops as f64, span.marks as f64, span.lost as f64);
            let row = [time, i as f64, span.utilization, span.queue_bytes, queue_max as f64, drops, marks, lost];
            let mut of_queue = vec![f64::NAN; self.queue_columns.len()];
            link.observe_queue(&mut Cells { names: &self.queue_columns, values: &mut of_queue });
            self.link_series.push(&[&row[..], &of_queue].concat());
            for (id, router) in link.routers() {
                router.observe(&mut self.link_series.newest(*id));
            }
        }
        for (i, traffic) in self.traffic.iter_mut().enumerate() {
            let rate = rate(traffic.bytes_total, &mut traffic.sampled_bytes);
            let open = traffic.web.as_ref().map_or(f64::NAN, |web| web.open as f64);
            self.traffic_series.push(&[time, i as f64, rate, open]);
        }
    }

    /// Simulated time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Length of the run.
    #[must_use]
    pub const fn end(&self) -> Instant {
        self.end
    }

    /// Heap entries handled so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Packets that have crossed a link so far.
    #[must_use]
    pub const fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// Series of flows, links and traffic, one row a sample and entity.
    #[must_use]
    pub const fn series(&self) -> [&Series; 3] {
        [&self.flow_series, &self.link_series, &self.traffic_series]
    }

    /// Where every packet went so far.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let links = self.links.iter().map(Link::packets);
        let lines = self.delay_lines.iter().map(DelayLine::packets);
        let discarded: usize = self.links.iter().map(|link| link.discarded().len()).sum();
        Ledger {
            dropped: self.ledger.dropped + discarded as u64,
            in_transit: links.chain(lines).sum::<usize>() as u64,
            ..self.ledger
        }
    }

    /// Selective acknowledgements on their way: never more than packets in transit.
    #[must_use]
    pub fn sacks_in_use(&self) -> usize {
        let discarded = self.links.iter().flat_map(Link::discarded).filter(|&&sack| sack != SackId::NONE);
        self.sacks.in_use() - discarded.count()
    }

    /// Entries that wait in the heap.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.heap.len()
    }

    /// Heap memory held by flows, and by queues and wires, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> (usize, usize) {
        let flows = self.flows.capacity() * size_of::<Flow>();
        let hosts: usize = self.flows.iter().map(|f| f.sender.heap_bytes()).sum();
        let links: usize = self.links.iter().map(Link::heap_bytes).sum();
        let lines: usize = self.delay_lines.iter().map(DelayLine::heap_bytes).sum();
        (flows + hosts, links + lines)
    }
}

/// The heap's top entry becomes the next of its kind, in place: cheaper than pop and push.
fn replace(mut top: PeekMut<'_, Timed>, event: Event, next: Option<(Instant, u64)>) {
    match next {
        Some((time, order)) => *top = Timed { time, order, event },
        None => {
            PeekMut::pop(top);
        }
    }
}

/// Each item once, in order of first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if found.last() != Some(&item) && !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// Part of a row, with the columns' names.
struct Cells<'a> {
    names: &'a [&'static str],
    values: &'a mut [f64],
}

impl Probe for Cells<'_> {
    fn record(&mut self, signal: &'static str, value: f64) {
        let column = self.names.iter().position(|&name| name == signal);
        debug_assert!(column.is_some(), "{signal} is not among the columns of a queue discipline");
        if let Some(column) = column {
            self.values[column] = value;
        }
    }
}
