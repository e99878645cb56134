//! The fluid model: builds a network and advances it in steps.

use std::sync::Arc;

use waterfill_laws::kernel::Arithmetic;
use waterfill_laws::protocol::{Connection, LinkView, PathView, ProtocolKind, Validation};
use waterfill_laws::registry::{AnyEcho, AnyHeader, AnyParams, AnyRouter, ProtocolId};
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::series::{CAPACITY_COLUMN, FLOW_COLUMNS, LINK_COLUMNS, Series, TRAFFIC_COLUMNS};
use waterfill_network::{
    DemandCourse, FlowSpec, LinkSpec, Network, QueueSpec, TCP_IP_BYTES, TrafficKind, TrafficSpec, Watch,
};

use crate::class::{Class, ClassSpec};
use crate::course::Course;
use crate::link::{Dropped, Link, LinkParts, Streams};
use crate::meter::Meter;
use crate::pipe::{Inbox, Parcel, Pipe, Plain, TimeStep};
use crate::plan::{self, ClassPlan, Edge, Member};
use crate::wiring::{Destinations, Wiring};

/// Number of parcels between two polls of the watch, about one millisecond of work.
const EVENTS_PER_POLL: u64 = 1 << 12;

/// Task of a step: a source, a receiver or a link.
#[derive(Clone, Copy, Debug)]
enum Task {
    Source(u32),
    Receiver(u32),
    Link(u32),
}

/// Links of a class's path, used for the class's SYN and for the time until a loss is detected.
#[derive(Debug)]
struct Path {
    forward: Box<[u32]>,
    reverse: Box<[u32]>,
}

/// A handshake in transit.
#[derive(Clone, Copy, Debug)]
struct Syn {
    class: u32,
    /// Number of links already crossed in the current direction.
    hop: usize,
    at: Instant,
    /// Time of the last SYN, and the number of SYNs before it.
    sent: Instant,
    retries: u32,
    cargo: SynCargo,
}

#[derive(Clone, Copy, Debug)]
enum SynCargo {
    Out(AnyHeader),
    Back { echo: AnyEcho, sent: Instant },
}

/// A source without congestion control.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) spec: TrafficSpec,
    rate_bps: f64,
    life: (Instant, Instant),
    pub(crate) counted: (Instant, Instant),
    /// Inbox indices that the source writes and reads.
    places: (usize, usize),
    pub(crate) sent_bytes: f64,
    pub(crate) received_bytes: f64,
    pub(crate) counted_bytes: f64,
    sampled_bytes: f64,
}

/// A fluid run of a resolved scenario.
#[derive(Debug)]
pub struct Fluid {
    pub(crate) network: Network,
    step: Duration,
    next: u64,
    pub(crate) end: Instant,
    pub(crate) measure: (Instant, Instant),
    pub(crate) links: Vec<Link>,
    pub(crate) classes: Vec<Class>,
    pub(crate) members: Vec<Member>,
    pub(crate) traffic: Vec<Traffic>,
    paths: Vec<Path>,
    inbox: Inbox,
    tasks: Vec<Task>,
    /// Links on which data takes at least one step to arrive, and links on which headerless streams do.
    delayed: (Vec<u32>, Vec<u32>),
    syns: Vec<Syn>,
    dropped: Vec<Dropped>,
    dropped_bytes: f64,
    delay_added: Duration,
    sample: Duration,
    /// Indexes of the links with a series.
    sampled_links: Vec<u32>,
    next_sample: Instant,
    sampled: Instant,
    flow_series: Series,
    link_series: Series,
    traffic_series: Series,
    events: u64,
    events_per_step: u64,
    /// Log of the laws' steps, if [`Fluid::log_steps`] was called.
    steps: Option<StepLog>,
    /// Callback through which the caller can stop the run.
    watch: Watch,
}

/// Destinations of all bytes. `sent` always equals the sum of the other fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Bytes sent by sources.
    pub sent: f64,
    /// Bytes delivered to receivers.
    pub delivered: f64,
    /// Bytes dropped at full buffers.
    pub dropped: f64,
    /// Bytes in queues and on wires.
    pub in_transit: f64,
}

impl Fluid {
    /// Builds the model of a network. `step_s` is the step in seconds; with `None`, the model chooses a step that fits
    /// the network.
    ///
    /// # Errors
    /// One sentence: what is out of range, or what the fluid model does not have.
    pub fn new(network: Network, step_s: Option<f64>) -> Result<Self, String> {
        Self::watched(network, step_s, Watch::default())
    }

    /// Builds the model with a `watch` that can stop the run. A stopped run keeps its state.
    ///
    /// # Errors
    /// As for [`Fluid::new`].
    pub fn watched(network: Network, step_s: Option<f64>, watch: Watch) -> Result<Self, String> {
        check(&network)?;
        let step = plan::step(&network, step_s)?;
        let measure = (Instant::from_secs(network.measure_s[0]), Instant::from_secs(network.measure_s[1]));
        let sample = Duration::from_secs(network.sample_s);
        let mut fluid = Self {
            step,
            next: 0,
            end: Instant::from_secs(network.duration_s),
            measure,
            links: Vec::new(),
            classes: Vec::new(),
            members: Vec::new(),
            traffic: Vec::new(),
            paths: Vec::new(),
            inbox: Inbox::default(),
            tasks: Vec::new(),
            delayed: (Vec::new(), Vec::new()),
            syns: Vec::new(),
            dropped: Vec::new(),
            dropped_bytes: 0.0,
            delay_added: Duration::ZERO,
            sample,
            sampled_links: network.sampled_links(),
            next_sample: Instant::ZERO + sample,
            sampled: Instant::ZERO,
            flow_series: Series::default(),
            link_series: Series::default(),
            traffic_series: Series::default(),
            events: 0,
            events_per_step: 0,
            steps: None,
            watch,
            network,
        };
        fluid.build()?;
        Ok(fluid)
    }

    // ------------------------------------------------------------------ building

    fn build(&mut self) -> Result<(), String> {
        let network = self.network.clone();
        let (plans, members) = plan::classes(&network);
        self.members = members;
        let mut wiring = Wiring::new(&network, plans.len());
        let mut protocols = Vec::new();
        let mut routers: Vec<Vec<(ProtocolId, AnyRouter)>> = network.links.iter().map(|_| Vec::new()).collect();
        for (c, plan) in (0u32..).zip(&plans) {
            let flow = &network.flows[plan.group as usize];
            let id = network.protocol_of(&flow.name, flow)?;
            if !protocols.contains(&id) {
                protocols.push(id);
            }
            add_routers(&network, flow, id, &mut routers)?;
            wiring.add_class(c, flow, f64::from(network.ack_bytes));
        }
        for traffic in &network.traffic {
            wiring.add_traffic(&traffic.path, f64::from(traffic.packet_bytes));
        }
        let wired = wiring.finish();
        self.inbox.data.resize(wired.data, Parcel::default());
        self.inbox.plain.resize(wired.plain, Plain::default());
        for (plan, places) in plans.iter().zip(wired.classes) {
            if self.watch.poll() {
                return Err("run: stopped while it was built".into());
            }
            let flow = &network.flows[plan.group as usize];
            let id = network.protocol_of(&flow.name, flow)?;
            let params = network.params_of(id)?;
            let packet = Volume::from_bytes(f64::from(network.packet_bytes));
            let connection = Connection {
                weight: flow.weight,
                packet,
                initial_window: flow.initial_window_packets * packet,
                claimed_rtt: flow.claimed_rtt_s.map(Duration::from_secs),
                path: PathView::UNKNOWN,
                validation: Validation::Off,
                seed: network.seed,
            };
            let spec = self.class_spec(flow, &params, plan);
            self.classes.push(Class::new(spec, places, &params, &connection, self.step));
            self.paths.push(Path { forward: flow.forward.clone().into(), reverse: flow.reverse.clone().into() });
        }
        for (spec, places) in network.traffic.iter().zip(wired.traffic) {
            self.traffic.push(Traffic::new(spec.clone(), places, self.measure));
        }
        for (i, ((streams, destinations), routers)) in wired.links.into_iter().zip(routers).enumerate() {
            self.links.push(Link::new(self.link_parts(i as u32, streams, destinations, routers)));
        }
        self.order_tasks(wired.edges);
        self.flow_series = Series::with_signals(&FLOW_COLUMNS, &network, &protocols);
        let varies = network.links.iter().any(|link| !link.changes.is_empty());
        let capacity: &[&str] = if varies { &[CAPACITY_COLUMN] } else { &[] };
        self.link_series = Series::with_signals(&[&LINK_COLUMNS, capacity].concat(), &network, &protocols);
        self.traffic_series = Series::new(&TRAFFIC_COLUMNS);
        Ok(())
    }

    fn link_parts(
        &self,
        i: u32,
        streams: Streams,
        destinations: Destinations,
        routers: Vec<(ProtocolId, AnyRouter)>,
    ) -> LinkParts {
        let spec = &self.network.links[i as usize];
        let (packet_bytes, ack_bytes) = (f64::from(self.network.packet_bytes), f64::from(self.network.ack_bytes));
        let capacity = Rate::from_bps(spec.rate_bps);
        let delay = Duration::from_secs(spec.delay_s);
        let course = Course::new(spec, self.step);
        // A packet is forwarded after its last bit has arrived; a fluid has to add that time.
        let latency = |bytes: f64| match &course {
            None => delay + Duration::from_secs(bytes * 8.0 / spec.rate_bps),
            Some(course) => course.latency_min(bytes),
        };
        let mut pipe =
            Pipe::new(self.step, (latency(packet_bytes), latency(ack_bytes)), destinations.data, destinations.plain);
        if course.is_some() {
            pipe.vary((packet_bytes, ack_bytes));
        }
        LinkParts {
            view: view(i, spec),
            delay,
            buffer_bytes: spec.buffer.as_bytes(packet_bytes),
            packet_bytes,
            pipe,
            streams,
            routers,
            meter: Meter::new(capacity, course.is_some(), self.measure),
            course,
            watch: self.watch.clone(),
        }
    }

    fn class_spec(&self, flow: &FlowSpec, params: &AnyParams, plan: &ClassPlan) -> ClassSpec {
        let packet_bytes = f64::from(self.network.packet_bytes);
        let headers = f64::from(TCP_IP_BYTES) + params.header_bytes() as f64;
        let payload = packet_bytes - headers;
        let wire_bytes = flow.size_bytes.map_or(f64::INFINITY, |size| {
            let size = size as f64;
            size + (size / payload).ceil() * headers
        });
        let payload_share = flow.size_bytes.map_or(payload / packet_bytes, |size| size as f64 / wire_bytes);
        let (start, stop) = (Instant::from_secs(plan.start_s), Instant::from_secs(flow.stop_s));
        let pad = Duration::from_secs(flow.pad_of_s(plan.index));
        ClassSpec {
            protocol: params.protocol(),
            count: f64::from(plan.count),
            start: start + pad,
            stop: stop + pad,
            pad: pad * 2,
            packet_bytes,
            ack_share: f64::from(self.network.ack_bytes) / packet_bytes / flow.packets_per_ack(),
            wire_bytes,
            payload_share,
            demand: flow.demand_bps.filter(|_| flow.demands.is_empty()).map(Rate::from_bps),
            course: DemandCourse::of(&flow.demands).map(Arc::new),
            paced: flow.pacing.unwrap_or_else(|| params.paced()),
            base_rtt: Duration::from_secs(flow.base_rtt_of_s(plan.index)),
            rtt_min: self.rtt_min(flow, plan.index),
            base_rtt_window: flow.base_rtt_window_s.map(Duration::from_secs),
            rto_min: self.timers().then(|| Duration::from_secs(self.network.rto_min_s)),
            syn_rto: Duration::from_secs(self.network.syn_rto_s),
            measure: self.measure,
            counted: (self.measure.0.max(start), self.measure.1.min(stop)),
        }
    }

    /// Returns a flow's base RTT with the shortest delay that each link of its path ever has.
    fn rtt_min(&self, flow: &FlowSpec, index: u32) -> Duration {
        let shorter_s = flow.forward.iter().chain(&flow.reverse).map(|&l| {
            let link = &self.network.links[l as usize];
            let shortest_s = link.changes.iter().filter_map(|change| change.delay_s).fold(link.delay_s, f64::min);
            link.delay_s - shortest_s
        });
        Duration::from_secs((flow.base_rtt_of_s(index) - shorter_s.sum::<f64>()).max(0.0))
    }

    /// Returns true if sources need a retransmission timer, because some link may stop sending.
    fn timers(&self) -> bool {
        let stands = |change: &waterfill_network::ChangeSpec| change.up == Some(false) || change.rate_bps == Some(0.0);
        self.network.links.iter().any(|link| link.changes.iter().any(stands))
    }

    /// Orders the tasks so that every inbox entry is written before it is read.
    fn order_tasks(&mut self, mut edges: Vec<Edge>) {
        let latency = |pipe: Option<u32>| {
            pipe.map_or(Duration::ZERO, |lane| {
                let (data, plain) = self.links[lane as usize / 2].pipe.latencies();
                if lane % 2 == 0 { data } else { plain }
            })
        };
        edges.retain(|edge| latency(edge.pipe) < self.step);
        let (classes, links) = (self.classes.len() as u32, self.links.len() as u32);
        let (order, late) = plan::order((2 * classes + links) as usize, edges, |pipe| latency(Some(pipe)));
        for lane in late {
            self.delay_added = self.delay_added.max(self.links[lane as usize / 2].pipe.delay_by_a_step(lane % 2 == 0));
        }
        let task = |node: u32| {
            if node < classes {
                Task::Source(node)
            } else if node < 2 * classes {
                Task::Receiver(node - classes)
            } else {
                Task::Link(node - 2 * classes)
            }
        };
        let used = |task: &Task| !matches!(task, Task::Link(l) if !self.links[*l as usize].is_used());
        self.tasks = order.into_iter().map(task).filter(used).collect();
        for (l, link) in (0u32..).zip(&self.links) {
            let (data, plain) = link.pipe.latencies();
            if data >= self.step {
                self.delayed.0.push(l);
            }
            if plain >= self.step {
                self.delayed.1.push(l);
            }
        }
        let streams = self.links.iter().map(|link| link.streams.data.len() + link.streams.plain.len());
        self.events_per_step = (streams.sum::<usize>() + 2 * self.classes.len()) as u64;
    }

    /// Logs up to `limit` steps of one law or of all laws from now on.
    pub fn log_steps(&mut self, limit: usize, only: Option<ProtocolId>) {
        let log = StepLog::new(limit, only);
        let now = self.now();
        for (l, link) in (0u32..).zip(&mut self.links) {
            link.log_steps(l, &log);
        }
        for (c, class) in (0u32..).zip(&mut self.classes) {
            class.log_steps(c, now, &log);
        }
        self.steps = Some(log);
    }

    /// Returns the log of steps, if logging is enabled.
    #[must_use]
    pub const fn step_log(&self) -> Option<&StepLog> {
        self.steps.as_ref()
    }

    // ------------------------------------------------------------------ time

    /// Advances to `until`, or to the end of the run if that is earlier.
    pub fn advance(&mut self, until: Instant) {
        let _ = self.advance_slice(until, u64::MAX);
    }

    /// Advances as [`Fluid::advance`] does, but stops after the step in which `events` is reached. Returns true if more
    /// work is due before `until`. Slicing a run does not change its results.
    pub fn advance_slice(&mut self, until: Instant, events: u64) -> bool {
        self.watch.ask_here();
        let until = until.min(self.end);
        let (last, mut polled) = (self.events.saturating_add(events), self.events);
        while self.events < last {
            let step = TimeStep::at(self.next, self.step);
            // The last step may end after the run.
            if step.from >= self.end || (step.to > until && until < self.end) {
                return false;
            }
            if self.watch.is_stopped() {
                return true;
            }
            self.run_step(&step);
            self.next += 1;
            if self.events - polled >= EVENTS_PER_POLL {
                polled = self.events;
                let _ = self.watch.poll(); // the next turn sees the answer
            }
            let over = step.to >= self.end;
            if step.to >= self.next_sample || over {
                self.take_sample(step.to.min(self.end));
                // The first multiple of the interval after the step.
                let passed = step.to.since(self.next_sample).as_ps() / self.sample.as_ps();
                self.next_sample += self.sample * (passed + 1);
            }
        }
        true
    }

    fn run_step(&mut self, step: &TimeStep) {
        for &l in &self.delayed.0 {
            self.links[l as usize].pipe.push_data(step, &mut self.inbox.data);
        }
        for &l in &self.delayed.1 {
            self.links[l as usize].pipe.push_plain(step, &mut self.inbox.plain);
        }
        self.send_traffic(step);
        self.advance_handshakes(step);
        for i in 0..self.tasks.len() {
            match self.tasks[i] {
                Task::Source(c) => self.classes[c as usize].send(step, &mut self.inbox),
                Task::Receiver(c) => self.classes[c as usize].receive(step, &mut self.inbox),
                Task::Link(l) => self.step_link(l, step),
            }
        }
        self.receive_traffic(step);
        self.events += self.events_per_step;
    }

    fn step_link(&mut self, l: u32, step: &TimeStep) {
        let link = &mut self.links[l as usize];
        link.step(step, &mut self.inbox, &mut self.dropped);
        let (data, plain) = link.pipe.latencies();
        if data < self.step {
            link.pipe.push_data(step, &mut self.inbox.data);
        }
        if plain < self.step {
            link.pipe.push_plain(step, &mut self.inbox.plain);
        }
        while let Some(Dropped { class, bytes }) = self.dropped.pop() {
            self.dropped_bytes += bytes;
            let detected = step.middle + self.remaining_rtt(class, l, step.middle);
            self.classes[class as usize].add_loss(detected, bytes);
        }
    }

    /// Returns the time from a link of a class's path over the rest of the path and back to the source, without
    /// queueing.
    fn remaining_rtt(&self, class: u32, from: u32, now: Instant) -> Duration {
        let path = &self.paths[class as usize];
        let crossed = path.forward.iter().position(|&l| l == from).unwrap_or(0);
        let out = path.forward[crossed..].iter().map(|&l| self.links[l as usize].latency(now, true));
        let back = path.reverse.iter().map(|&l| self.links[l as usize].latency(now, false));
        out.chain(back).fold(self.classes[class as usize].spec.pad, |sum, latency| sum + latency)
    }

    // ------------------------------------------------------------------ handshakes

    /// Starts flows and advances handshakes. A handshake is a single packet with exact times.
    fn advance_handshakes(&mut self, step: &TimeStep) {
        for (c, class) in (0u32..).zip(&mut self.classes) {
            if class.starts(step.to) {
                let at = class.spec.start;
                let cargo = SynCargo::Out(class.open(at, f64::from(self.network.ack_bytes)));
                self.syns.push(Syn { class: c, hop: 0, at, sent: at, retries: 0, cargo });
            }
        }
        let mut i = 0;
        while i < self.syns.len() {
            if self.advance_handshake(i, step.to) {
                self.syns.swap_remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Advances a handshake up to `until`. Returns true if the handshake is complete.
    fn advance_handshake(&mut self, i: usize, until: Instant) -> bool {
        let syn = &mut self.syns[i];
        let class = &mut self.classes[syn.class as usize];
        let path = &self.paths[syn.class as usize];
        let (bytes, count) = (f64::from(self.network.ack_bytes), class.spec.count);
        // A link that is down drops the handshake, and the SYN is sent again.
        let again = |class: &mut Class, syn: &mut Syn| {
            syn.at = (syn.sent + class.rto(syn.retries)).max(syn.at);
            (syn.sent, syn.hop, syn.retries) = (syn.at, 0, syn.retries + 1);
            class.on_lost_syn(syn.at, syn.retries);
            syn.cargo = SynCargo::Out(class.open(syn.at, bytes));
        };
        while syn.at < until {
            match &mut syn.cargo {
                SynCargo::Out(header) => {
                    if let Some(&l) = path.forward.get(syn.hop) {
                        let Some(at) = self.links[l as usize].forward_syn(syn.at, bytes, count, Some(header)) else {
                            again(class, syn);
                            continue;
                        };
                        syn.at = at;
                        syn.hop += 1;
                    } else {
                        let echo = class.on_syn(syn.at, header);
                        syn.cargo = SynCargo::Back { echo, sent: syn.at };
                        syn.hop = 0;
                    }
                }
                SynCargo::Back { echo, sent } => {
                    if let Some(&l) = path.reverse.get(syn.hop) {
                        let Some(at) = self.links[l as usize].forward_syn(syn.at, bytes, count, None) else {
                            again(class, syn);
                            continue;
                        };
                        syn.at = at;
                        syn.hop += 1;
                        if syn.hop == path.reverse.len() {
                            syn.at += class.spec.pad;
                        }
                    } else {
                        class.on_syn_ack(syn.at, *sent, echo);
                        return true;
                    }
                }
            }
        }
        false
    }

    // ------------------------------------------------------------------ uncontrolled traffic

    fn send_traffic(&mut self, step: &TimeStep) {
        for traffic in &mut self.traffic {
            let bytes = traffic.rate_bps / 8.0 * step.length.as_secs() * step.overlap(traffic.life);
            traffic.sent_bytes += bytes;
            self.inbox.plain[traffic.places.0] = Plain { bytes, age_s: 0.0 };
        }
    }

    fn receive_traffic(&mut self, step: &TimeStep) {
        for traffic in &mut self.traffic {
            let bytes = self.inbox.plain[traffic.places.1].bytes;
            traffic.received_bytes += bytes;
            traffic.counted_bytes += bytes * step.overlap(traffic.counted);
        }
    }

    // ------------------------------------------------------------------ observation

    fn take_sample(&mut self, now: Instant) {
        let (time, lasted) = (now.as_secs(), now.since(self.sampled).as_secs());
        self.sampled = now;
        if lasted <= 0.0 {
            return;
        }
        let expanded = self.is_expanded();
        let varies = self.network.links.iter().any(|link| !link.changes.is_empty());
        let mut flow = 0;
        for member in &self.members {
            let class = &self.classes[member.class as usize];
            let rows = if expanded { member.count } else { 1 };
            let first = flow;
            flow += rows;
            let fresh = class.fresh_bytes();
            if fresh <= 0.0 && !class.is_live(now) {
                continue;
            }
            let rate_bps = fresh * 8.0 / lasted;
            for i in first..first + rows {
                self.flow_series.push(&[
                    time,
                    f64::from(i),
                    rate_bps,
                    class.window().map_or(f64::NAN, Volume::as_bytes),
                    class.pacing().map_or(f64::NAN, Rate::as_bps),
                    class.latest_rtt().map_or(f64::NAN, Duration::as_secs),
                    class.in_flight().as_bytes(),
                ]);
                class.observe(&mut self.flow_series.newest(class.spec.protocol));
            }
        }
        self.classes.iter_mut().for_each(Class::sampled);
        for &l in &self.sampled_links {
            let link = &mut self.links[l as usize];
            let (span, queue_max) = link.meter.sample();
            let (i, drops) = (f64::from(l), span.dropped_packets.round());
            let row = [time, i, span.utilization, span.queue_bytes, queue_max, drops, 0.0, 0.0];
            let capacity: &[f64] = if varies { &[span.capacity.as_bps()] } else { &[] };
            self.link_series.push(&[&row[..], capacity].concat());
            for (id, router) in link.routers() {
                router.observe(&mut self.link_series.newest(*id));
            }
        }
        for (i, traffic) in self.traffic.iter_mut().enumerate() {
            let before = std::mem::replace(&mut traffic.sampled_bytes, traffic.received_bytes);
            let rate_bps = (traffic.received_bytes - before) * 8.0 / lasted;
            self.traffic_series.push(&[time, i as f64, rate_bps]);
        }
    }

    /// Returns the simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        (Instant::ZERO + self.step * self.next).min(self.end)
    }

    /// Returns the end of the run.
    #[must_use]
    pub const fn end(&self) -> Instant {
        self.end
    }

    /// Returns the length of a step.
    #[must_use]
    pub const fn step(&self) -> Duration {
        self.step
    }

    /// Returns the number of steps taken so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.next
    }

    /// Returns the number of flow classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Returns the largest delay added to a link whose own delay is shorter than a step; zero if all delays are exact.
    #[must_use]
    pub const fn delay_added(&self) -> Duration {
        self.delay_added
    }

    /// Returns the number of parcels handled so far. Each step has one parcel per class at its source, its receiver and
    /// every link of its path.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Returns the volume that links have accepted so far, in packets. Bytes dropped on arrival are not counted.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|link| link.packets_passed).sum::<f64>() as u64
    }

    /// Returns the series of flows, links and traffic, with one row per sample and entity.
    #[must_use]
    pub const fn series(&self) -> [&Series; 3] {
        [&self.flow_series, &self.link_series, &self.traffic_series]
    }

    /// Returns the data bytes sent, delivered, dropped and in transit.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let sum = |of: fn(&Class) -> f64| self.classes.iter().map(|class| of(class) * class.spec.count).sum();
        let mut in_transit = 0.0;
        for (c, path) in (0u32..).zip(&self.paths) {
            for &l in &path.forward {
                let link = &self.links[l as usize];
                let stream = link.streams.classes.iter().position(|&class| class == c).unwrap_or(0);
                in_transit += link.pipe.data_bytes(stream);
            }
        }
        Ledger { sent: sum(|c| c.sent), delivered: sum(|c| c.received), dropped: self.dropped_bytes, in_transit }
    }

    /// Returns the heap memory of the fluid in transit, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.links.iter().map(|link| link.pipe.heap_bytes()).sum()
    }
}

impl Traffic {
    fn new(spec: TrafficSpec, places: (usize, usize), measure: (Instant, Instant)) -> Self {
        let life = (Instant::from_secs(spec.start_s), Instant::from_secs(spec.stop_s));
        Self {
            rate_bps: spec.rate_bps.unwrap_or(0.0),
            life,
            counted: (measure.0.max(life.0), measure.1.min(life.1)),
            places,
            sent_bytes: 0.0,
            received_bytes: 0.0,
            counted_bytes: 0.0,
            sampled_bytes: 0.0,
            spec,
        }
    }
}

fn view(i: u32, spec: &LinkSpec) -> LinkView {
    LinkView { id: i, capacity: Rate::from_bps(spec.rate_bps), target: spec.target, queue: Volume::ZERO }
}

/// Adds a protocol's routers to the links that its data crosses.
fn add_routers(
    network: &Network,
    flow: &FlowSpec,
    id: ProtocolId,
    routers: &mut [Vec<(ProtocolId, AnyRouter)>],
) -> Result<(), String> {
    if id.info().kind != ProtocolKind::Explicit {
        return Ok(());
    }
    let name = id.info().name;
    for &l in &flow.forward {
        let (spec, routers) = (&network.links[l as usize], &mut routers[l as usize]);
        let runs = spec.routers.as_ref().is_none_or(|names| names.iter().any(|n| n == name));
        if runs && !routers.iter().any(|&(known, _)| known == id) {
            let (params, view) = (network.params_of(id)?, view(l, spec));
            params.check_link(&view).map_err(|e| format!("params.{name}.{e} (for link {})", spec.name))?;
            routers.push((id, params.router(&view)));
        }
    }
    Ok(())
}

/// Checks that a network has no features that the fluid model lacks.
pub(crate) fn check(network: &Network) -> Result<(), String> {
    if network.samples_of_links() > 1 {
        return Err("series.step: not supported by the fluid model".into());
    }
    for flow in &network.flows {
        let id = network.protocol_of(&flow.name, flow)?;
        if id.info().needs_packets {
            return Err(format!("flow.{}.protocol: {} does not run on fluid", flow.name, flow.protocol));
        }
        if flow.access_bps.is_some() {
            return Err(format!(
                "flow.{}.access_rate: not supported by the fluid model, where no burst waits at a host; use demand to cap a rate",
                flow.name
            ));
        }
        if flow.application.is_some() {
            return Err(format!(
                "flow.{}.application: not supported by the fluid model; use demand_trace for a rate that changes",
                flow.name
            ));
        }
        if !flow.after.is_empty() {
            return Err(format!("flow.{}.after: not supported by the fluid model", flow.name));
        }
        if !flow.routes.is_empty() {
            return Err(format!("flow.{}.route: not supported by the fluid model", flow.name));
        }
        if !flow.faults.is_empty() {
            return Err(format!("flow.{}.fault: not supported by the fluid model", flow.name));
        }
        if network.params_of(id)?.needs_packets() {
            let kernel = id.kernel().is_some_and(|form| !form.needs_packets(Arithmetic::Kernel));
            return Err(format!(
                "params.{}.arithmetic: must be {} on fluid, which has no packets to count or to pace",
                flow.protocol,
                if kernel { "real or kernel" } else { "real" }
            ));
        }
    }
    for link in &network.links {
        let refused = |key: &str, why: &str| Err(format!("link.{}.{key}: {why}", link.name));
        if link.loss > 0.0 || link.loss_model.is_some() {
            return refused("loss", "not supported: the fluid model has no random loss");
        }
        if link.reorder.is_some() || link.duplicate > 0.0 {
            return refused("reorder", "not supported: the fluid model has no packets");
        }
        if link.shaper.is_some() {
            return refused(
                "shaper",
                "not supported: the fluid model has no bursts; set the link's rate to the shaper's",
            );
        }
        if link.policer.is_some() {
            return refused("policer", "not supported: the fluid model has no packets");
        }
        if !link.faults.is_empty() || link.changes.iter().any(|c| c.restart || c.clock_step_s.is_some()) {
            return refused("fault", "not supported: the fluid model has no packets or routers to damage");
        }
        if link.queue != (QueueSpec::Droptail { mark_at: None, ramp: None }) {
            return refused("queue", "must be droptail without marks");
        }
    }
    if let Some(traffic) = network.traffic.iter().find(|traffic| traffic.access_bps.is_some()) {
        return Err(format!(
            "traffic.{}.access_rate: not supported by the fluid model, where no packet waits at a host",
            traffic.name
        ));
    }
    if let Some(traffic) = network.traffic.iter().find(|traffic| traffic.kind != TrafficKind::Cbr) {
        return Err(format!("traffic.{}.kind: must be cbr, got {}", traffic.name, traffic.kind.name()));
    }
    Ok(())
}
