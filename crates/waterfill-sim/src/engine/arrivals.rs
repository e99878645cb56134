//! Traffic sources: packets without congestion control, and finite flows that start and finish during the run.

use waterfill_laws::registry::AnyHeader;
use waterfill_laws::units::Instant;

use super::Simulation;
use super::build::add_access;
use super::event::{Event, slot_number};
use crate::flow::{Flow, FlowSetup, Owner};
use crate::packet::{Cargo, Flags, Packet, Role, SackId};
use crate::sender::{FlowIndex, SenderSpec};

impl Simulation {
    /// Handles a traffic source's event: sends a packet or starts flows, then schedules the source's next event.
    pub(super) fn run_traffic(&mut self, t: u32) {
        let traffic = &mut self.traffic[t as usize];
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
        match traffic.access {
            None => self.enqueue(first, packet),
            Some(access) => self.enqueue_access(access, packet),
        }
    }

    /// Starts a flow of a traffic source on the given route. The flow takes the slot of a finished flow or a new slot.
    fn start_flow(&mut self, t: u32, route: usize) {
        let traffic = &mut self.traffic[t as usize];
        let size_bytes = traffic.draw_size();
        let counted = traffic.counted;
        let Some(web) = &mut traffic.web else { return };
        let index = web.started as u32;
        web.started += 1;
        web.open += 1;
        web.open_max = web.open_max.max(web.open);
        web.flow.size_bytes = Some(size_bytes);
        let f = web.free[route].pop().unwrap_or(self.flows.len() as u32);
        let before = self.flows.get(f as usize);
        // A slot is a host: its next flow has the same ranks, and sends over the same access link.
        let (number, access) = before.map_or_else(
            || {
                web.slots[route] += 1;
                let number = slot_number(t, route as u32, web.slots[route]);
                let access = add_access(&mut self.access_links, &web.flow, 0);
                if web.flow.access_bps.is_some() {
                    self.agenda.add_station(Event::Access(access), number);
                }
                (number, access)
            },
            |flow| (flow.number, flow.access),
        );
        let mut sender = SenderSpec::new(&self.network, &web.flow, &web.law, FlowIndex { flow: f, index: 0 });
        let (route, base_rtt) = &web.routes[route];
        (sender.index, sender.base_rtt) = (index, *base_rtt);
        sender.start = self.now;
        sender.measure = (Instant::NEVER, Instant::ZERO); // nobody reads their RTTs
        sender.incarnation = before.map_or(0, |flow| flow.sender.spec.incarnation);
        // The timers of the slot's previous flow serve this one.
        let due = before.map_or((Instant::NEVER, Instant::NEVER), |flow| (flow.sender_due, flow.receiver_due));
        let owner = Owner::Traffic(t);
        let setup = FlowSetup { owner, number, law: &web.law, spec: &web.flow, sender, counted, route, access };
        let mut flow = Flow::new(&self.network, setup);
        (flow.sender_due, flow.receiver_due) = due;
        if (f as usize) < self.flows.len() {
            self.flows[f as usize] = flow;
        } else {
            self.flows.push(flow);
        }
        self.transmit_unasked(f);
    }

    /// Finishes a traffic source's flow whose last acknowledgement has arrived, and frees its slot. Packets of the flow
    /// that are still in transit carry an incarnation number that no longer matches.
    pub(super) fn finish_flow(&mut self, f: u32, t: u32) {
        let flow = &mut self.flows[f as usize];
        let traffic = &mut self.traffic[t as usize];
        let Some(web) = &mut traffic.web else { return };
        web.finished.add(flow, traffic.counted);
        self.finished.push(&arrival_row(flow, t));
        web.open -= 1;
        web.free[flow.route.number as usize].push(f);
        flow.owner = Owner::Nobody;
        flow.sender.spec.incarnation = flow.sender.spec.incarnation.wrapping_add(1);
    }
}

/// Returns a flow of a traffic source as a row of [`ARRIVAL_COLUMNS`](waterfill_network::series::ARRIVAL_COLUMNS).
pub(super) fn arrival_row(flow: &Flow, source: u32) -> [f64; 6] {
    let spec = &flow.sender.spec;
    let size_bytes = spec.packets.map_or(f64::NAN, |(count, _)| spec.payload_before(count) as f64);
    let completed_s = flow.receiver.completed.map_or(f64::NAN, Instant::as_secs);
    let (index, route) = (f64::from(spec.index), f64::from(flow.route.number));
    [f64::from(source), index, route, spec.start.as_secs(), size_bytes, completed_s]
}
