//! Endpoints that are not Waterfill's: a client and a server in the place of a flow's hosts.
//!
//! Their datagrams cross the flow's links as packets of their real size, with losses, queues and ECN as for any packet. The
//! payload waits in the slot that other packets use for selective acknowledgements ([`Sacks`](crate::packet::Sacks)), so that
//! what drops or duplicates a packet needs no case for endpoints. A run with endpoints has one thread.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use waterfill_endpoint::{Datagram, Ecn, Endpoint, HEADER_BYTES, MAX_PAYLOAD, Side, Time};
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::FlowSpec;

use super::event::Event;
use super::{Part, Simulation};
use crate::flow::{HostAccess, Owner};
use crate::packet::{Cargo, Flags, Packet, Role};

const PS_PER_NS: u64 = 1000;

/// Both endpoints of a flow, with its name for results.
pub struct EndpointPair {
    /// Name of the implementation.
    pub name: String,
    /// Endpoint that sends.
    pub client: Box<dyn Endpoint>,
    /// Endpoint that receives.
    pub server: Box<dyn Endpoint>,
}

impl fmt::Debug for EndpointPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointPair").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A flow whose hosts are endpoints.
#[derive(Debug)]
pub(super) struct EndpointFlow {
    pub(super) flow: u32,
    pub(super) name: String,
    /// Client and server. Nothing locks them: a simulation must be `Sync`, which an endpoint need not be.
    sides: [Mutex<Box<dyn Endpoint>>; 2],
    /// Time of each side's valid event. Events at other times are stale.
    due: [Instant; 2],
    started: bool,
    /// Number of datagrams that the client has sent.
    pub(super) sent: u64,
    /// Number of the client's datagrams that have arrived, and one above the highest number among them.
    arrived: u64,
    arrived_to: u64,
    /// Payload that the server's application has read, and the payload of the flow; `u64::MAX` without end.
    read: u64,
    size: u64,
}

impl EndpointFlow {
    /// Returns the number of the client's datagrams that were lost before the last one that arrived. The copies that a link
    /// makes count as arrivals.
    pub(super) const fn lost(&self) -> u64 {
        self.arrived_to.saturating_sub(self.arrived)
    }

    fn side(&mut self, side: Side) -> &mut dyn Endpoint {
        &mut **self.sides[side as usize].get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the index of an endpoint among all, from the flow's among those with endpoints.
const fn index(e: usize, side: Side) -> u32 {
    2 * e as u32 + side as u32
}

/// Returns the flow and the side of an endpoint's index.
pub(super) const fn flow_and_side(index: u32) -> (usize, Side) {
    (index as usize / 2, if index % 2 == 0 { Side::Client } else { Side::Server })
}

impl Simulation {
    /// Puts endpoints in the place of a flow's hosts. The run then stays on one thread.
    ///
    /// # Errors
    /// One sentence: the run has begun, or there is no flow with this index.
    pub fn attach_endpoints(&mut self, flow: u32, pair: EndpointPair) -> Result<(), String> {
        if self.events() > 0 || self.parts.len() > 1 {
            return Err("endpoints must be attached before the run begins".into());
        }
        let part = &mut self.parts[0];
        if part.capture.is_some() {
            return Err("a run with endpoints cannot be captured".into());
        }
        let Some(host) = part.senders.get_mut(flow as usize) else {
            return Err(format!("there is no flow {flow}"));
        };
        let Owner::Group(group) = host.owner else { return Err(format!("flow {flow} has no group")) };
        if let Some(key) = refused(&self.network.flows[group as usize]) {
            return Err(format!("the flow of an endpoint cannot have `{key}`; remove it"));
        }
        let start = host.sender.spec.start;
        host.sender.start_at(Instant::NEVER);
        let size = self.network.flows[group as usize].size_bytes.unwrap_or(u64::MAX);
        let e = part.endpoints.len();
        part.endpoints.push(EndpointFlow {
            flow,
            name: pair.name,
            sides: [Mutex::new(pair.client), Mutex::new(pair.server)],
            due: [start, Instant::NEVER],
            started: false,
            sent: 0,
            arrived: 0,
            arrived_to: 0,
            read: 0,
            size,
        });
        let client = index(e, Side::Client);
        part.agenda.add_timer(start, Event::Endpoint(client), u64::from(client));
        Ok(())
    }
}

/// Returns the first key of a flow that its own hosts would apply, and an endpoint cannot.
fn refused(flow: &FlowSpec) -> Option<&'static str> {
    let keys = [
        ("after", !flow.after.is_empty()),
        ("application", flow.application.is_some()),
        ("demand", flow.demand_bps.is_some()),
        ("demand_trace", !flow.demands.is_empty()),
        ("fault", !flow.faults.is_empty()),
    ];
    keys.into_iter().find(|&(_, is_set)| is_set).map(|(key, _)| key)
}

/// Returns the time for an endpoint, rounded down.
const fn time(now: Instant) -> Time {
    Time(now.as_ps() / PS_PER_NS)
}

impl Part {
    /// Runs an endpoint's timer, unless the event is stale.
    #[cold]
    pub(super) fn run_endpoint(&mut self, index: u32) {
        let (e, side) = flow_and_side(index);
        let (now, at) = (self.now, time(self.now));
        let flow = &mut self.endpoints[e];
        if flow.due[side as usize] != now {
            return;
        }
        flow.due[side as usize] = Instant::NEVER;
        if !flow.started {
            flow.started = true;
            flow.side(Side::Server).start(at);
            flow.side(Side::Client).start(at);
            let size = flow.size;
            flow.side(Side::Client).write(at, size);
            self.drive(e, Side::Server);
        }
        self.drive(e, side);
    }

    /// Hands a datagram to its endpoint.
    #[cold]
    pub(super) fn receive_at_endpoint(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        let payload = self.sacks.take_payload(packet.sack);
        let (e, side) = flow_and_side(packet.to);
        let ecn = match packet.flags {
            flags if !flags.has(Flags::MARKABLE) => Ecn::NotEct,
            flags if flags.has(Flags::MARKED) => Ecn::Ce,
            flags if flags.is_l4s() => Ecn::Ect1,
            _ => Ecn::Ect0,
        };
        let at = time(self.now);
        let flow = &mut self.endpoints[e];
        if side == Side::Client
            && let Some(qlog) = &mut self.qlog
        {
            qlog.datagram(self.now, flow.flow, packet, false);
        }
        flow.side(side).handle(at, &Datagram { ecn, payload });
        if side == Side::Server {
            flow.arrived += 1;
            flow.arrived_to = flow.arrived_to.max(packet.number + 1);
            let read = flow.side(side).read(at).min(flow.size - flow.read);
            flow.read += read;
            let done = flow.read == flow.size;
            let receiver = &mut self.receivers[flow.flow as usize].receiver;
            receiver.count_datagram(self.now, packet.bytes, read, done);
            let f = flow.flow;
            self.follow_up(f);
        }
        self.drive(e, side);
    }

    /// Sends all datagrams that may leave an endpoint now, and schedules its timer.
    fn drive(&mut self, e: usize, side: Side) {
        let at = time(self.now);
        let stop = self.senders[self.endpoints[e].flow as usize].sender.spec.stop;
        if side == Side::Client && self.now >= stop {
            return;
        }
        while let Some(datagram) = self.endpoints[e].side(side).poll_transmit(at) {
            if datagram.payload.len() <= MAX_PAYLOAD {
                self.send_datagram(e, side, &datagram);
            }
            if self.watch.is_stopped() {
                return;
            }
        }
        let flow = &mut self.endpoints[e];
        let Some(timer) = flow.side(side).next_timer() else { return };
        // An endpoint whose timer stays due is polled again, but the time goes on.
        let next = self.now + Duration::from_ps(PS_PER_NS);
        let due = Instant::from_ps(timer.0.saturating_mul(PS_PER_NS)).max(next);
        if due < flow.due[side as usize] || flow.due[side as usize] <= self.now {
            flow.due[side as usize] = due;
            let index = index(e, side);
            self.agenda.add_timer(due, Event::Endpoint(index), u64::from(index));
        }
    }

    /// Puts a datagram on its first link.
    fn send_datagram(&mut self, e: usize, side: Side, datagram: &Datagram) {
        let flow = &mut self.endpoints[e];
        let (f, other) = (flow.flow as usize, if side == Side::Client { Side::Server } else { Side::Client });
        let (sender, receiver) = (&self.senders[f], &self.receivers[f].receiver.spec);
        let place = if side == Side::Client { sender.sender.spec.path } else { receiver.path };
        let flags = match datagram.ecn {
            Ecn::NotEct => Flags::default(),
            Ecn::Ect0 => Flags::MARKABLE,
            Ecn::Ect1 => Flags::L4S,
            Ecn::Ce => Flags::MARKABLE.with(Flags::MARKED, true),
        };
        let packet = Packet {
            flow: sender.sender.spec.flow,
            to: index(e, other),
            place,
            bytes: (datagram.payload.len() + HEADER_BYTES) as u16,
            incarnation: 0,
            role: Role::Endpoint,
            flags,
            sack: self.sacks.store_payload(&datagram.payload),
            number: flow.sent, // a client's datagrams have numbers; those of the server repeat its last one
            sent: self.now,
            echoed: Instant::ZERO,
            cargo: *Cargo::empty(Role::Endpoint),
        };
        self.ledger.sent += 1;
        if side == Side::Server {
            self.enqueue(self.first_link(&packet), packet);
            return;
        }
        flow.sent += 1;
        if let Some(qlog) = &mut self.qlog {
            qlog.datagram(self.now, flow.flow, &packet, true);
        }
        match sender.entry {
            HostAccess::Ideal => self.enqueue(self.first_link(&packet), packet),
            HostAccess::DelayLine(out) => self.enqueue_delay_line(out, packet),
            HostAccess::Access(access) => self.enqueue_access(access, packet),
        }
    }
}
