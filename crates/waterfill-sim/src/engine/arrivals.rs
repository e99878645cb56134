//! Traffic sources: packets without congestion control, and finite flows that start and finish during the run.

use waterfill_laws::registry::AnyHeader;
use waterfill_laws::units::Instant;

use std::cmp::Ordering;

use super::Part;
use super::build::add_access;
use super::event::Event;
use crate::flow::{FlowSetup, HostAccess, Owner, ReceivingHost, SendingHost, connect};
use crate::packet::{Cargo, Flags, Packet, Role, SackId};
use crate::sender::{FlowIndex, SenderSpec};

impl Part {
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
        let f = web.free[route].pop().unwrap_or(self.senders.len() as u32);
        let before = self.senders.get(f as usize);
        // A slot is two hosts: its next flow has the same ranks, and sends over the same access link.
        let (mut route, base_rtt) = web.routes[route];
        let (number, to) = before.map_or_else(
            || {
                let slot = &mut web.slots[route.number as usize];
                // Unique as long as there are fewer than 2³² hosts for each slot of each route.
                let number = (web.numbers.0 + route.number).wrapping_add(web.numbers.1.wrapping_mul(*slot));
                *slot += 1;
                (number, self.receivers.len() as u32)
            },
            |host| (host.sender.spec.flow, host.sender.spec.to),
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
        (sender.to, sender.base_rtt, sender.start) = (to, base_rtt, self.now);
        sender.measure = (Instant::NEVER, Instant::ZERO); // nobody reads their RTTs
        sender.incarnation = before.map_or(0, |host| host.sender.spec.incarnation);
        let owner = Owner::Traffic(t);
        let setup = FlowSetup { owner, law: &web.law, spec: &web.flow, sender, from: f, counted, route };
        let (mut sending, mut receiving) = connect(&self.network, setup);
        if let (Some(host), Some(there)) = (self.senders.get_mut(f as usize), self.receivers.get_mut(to as usize)) {
            // The timers of the slot's previous flow serve this one.
            (sending.due, receiving.due) = (host.due, there.due);
            (*host, *there) = (sending, receiving);
        } else {
            self.senders.push(sending);
            self.receivers.push(receiving);
        }
        self.transmit_unasked(f);
    }

    /// Finishes a traffic source's flow whose last acknowledgement has arrived, and frees its slot. Packets of the flow
    /// that are still in transit carry an incarnation number that no longer matches.
    pub(super) fn finish_flow(&mut self, f: u32, t: u32) {
        let from = &mut self.senders[f as usize];
        let to = &mut self.receivers[from.sender.spec.to as usize];
        let traffic = &mut self.traffic[t as usize];
        let Some(web) = &mut traffic.web else { return };
        web.finished.add(from, to, traffic.counted);
        self.finished.push(&arrival_row(from, to, t));
        web.open -= 1;
        web.free[from.route as usize].push(f);
        from.owner = Owner::Nobody;
        let incarnation = from.sender.spec.incarnation.wrapping_add(1);
        (from.sender.spec.incarnation, to.incarnation) = (incarnation, incarnation);
    }
}

/// Returns a flow of a traffic source as a row of [`ARRIVAL_COLUMNS`](waterfill_network::series::ARRIVAL_COLUMNS).
pub(super) fn arrival_row(from: &SendingHost, to: &ReceivingHost, source: u32) -> [f64; 6] {
    let spec = &from.sender.spec;
    let size_bytes = spec.sizes.packets.map_or(f64::NAN, |(count, _)| spec.sizes.payload_before(count) as f64);
    let completed_s = to.receiver.completed().map_or(f64::NAN, Instant::as_secs);
    let (index, route) = (f64::from(spec.index), f64::from(from.route));
    [f64::from(source), index, route, spec.start.as_secs(), size_bytes, completed_s]
}

/// Orders two rows by time of completion, open flows last, then by source and index.
pub(super) fn completed_before(a: &[f64; 6], b: &[f64; 6]) -> Ordering {
    let ([source_a, index_a, .., completed_a], [source_b, index_b, .., completed_b]) = (a, b);
    let by_time = completed_a.total_cmp(completed_b); // NaN is last
    by_time.then(source_a.total_cmp(source_b)).then(index_a.total_cmp(index_b))
}
