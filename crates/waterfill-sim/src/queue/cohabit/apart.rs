//! A queue of its own for each class: explicit flows on one side, TCP and the rest on the other.
//!
//! The suggestion is the 2006 thesis's (M. Suchara, *TCP MaxNet*, §6): separate the explicit queue, where the explicit flows keep
//! their low delay, and move what its law aims at with its fair share. Nothing is dropped but for want of room, so a TCP is what it
//! is on any drop-tail queue, one that listens to delay finds no delay but its own, and one that listens to nothing takes no more
//! than its part.
//!
//! **Served** is the class whose packet would start first if each class had a wire of its part of the capacity: start-time fair
//! queueing (P. Goyal, H. M. Vin, H. Cheng, 1996). It conserves work, for a class alone has all of the link, and an explicit packet of a
//! class within its part waits for the packet in service and no other. The parts are eq. 3–4's, of the
//! capacity less constant-rate traffic, which counts with the rest. While only one class has flows there are no parts, and
//! packets (acknowledgements of the other, constant-rate traffic) are served in the order they came.
//!
//! **Shown** to the explicit laws are their own packets, their own queue, and as capacity what the rest leaves them: its need, averaged,
//! is what it sends, or all of its part in a control interval throughout which it had something waiting. So they take what TCP
//! does not, and TCP, whose packets have the right of way up to their part, can have it back at any time. An explicit law's head-room
//! is that of its own capacity, and TCP fills it.
//!
//! **Room** is shared. When it runs out, the class that has most of it for its part loses its newest packet.

use waterfill_laws::units::{Instant, Rate};
use waterfill_network::CohabitSpec;

use super::controller::Measured;
use super::{Class, Cohabit, PerClass};
use crate::packet::Packet;
use crate::queue::{Arriving, Backlog, Discipline, Fates, Fifo, LinkPart, Setting, Waiting};

/// Time over which what the rest needs is averaged: as long as the improved controller's error.
const AVERAGE: f64 = 0.5;
/// Neither class's part is smaller: laws divide by it, and a class without any would never be heard of again.
const LEAST: f64 = 0.01;

/// Two queues on one link direction.
#[derive(Debug)]
pub(in crate::queue) struct Apart {
    /// Counts the flows, and measures what comes.
    module: Cohabit,
    capacity: Rate,
    queues: PerClass<Fifo>,
    /// When each class's next packet would start on a wire of its own, in bytes of the whole link.
    starts: PerClass<f64>,
    /// That of the packet in service.
    clock: f64,
    /// The explicit class's part of the capacity, while both classes have flows.
    part: Option<f64>,
    /// What the rest needs.
    need: Rate,
    /// Whether the rest has had something waiting ever since the control interval began.
    wanting: bool,
    /// What the explicit laws are told.
    explicit_capacity: Rate,
}

fn class_of(packet: &Packet) -> Class {
    Class::of(packet).unwrap_or(Class::Tcp)
}

/// What the rest is to have, of this share, for what it sent in an interval.
fn needed(wanting: bool, sent: Rate, share: Rate) -> Rate {
    if wanting { share } else { sent.min(share) }
}

impl Apart {
    pub(in crate::queue) fn new(spec: &CohabitSpec, setting: Setting) -> Self {
        let capacity = setting.capacity;
        Self {
            module: Cohabit::new(spec, setting),
            capacity,
            queues: PerClass::default(),
            starts: PerClass::default(),
            clock: 0.0,
            part: None,
            need: Rate::ZERO,
            wanting: false,
            explicit_capacity: capacity,
        }
    }

    /// A control interval has ended.
    fn share_out(&mut self, m: &Measured) {
        let sent = m.total - m.explicit;
        let (explicit_share, rest_share) =
            if m.present { (m.explicit_share, self.capacity - m.explicit_share) } else { (Rate::ZERO, self.capacity) };
        let need = needed(self.wanting && m.present, sent, rest_share);
        self.need += (need - self.need) * (1.0 - (-m.lasted.as_secs() / AVERAGE).exp());
        self.explicit_capacity = (self.capacity - self.need).max(explicit_share).max(self.capacity * LEAST);
        self.part = m.present.then(|| (explicit_share / self.capacity).clamp(LEAST, 1.0 - LEAST));
        self.wanting = self.queues[Class::Tcp].bytes > 0;
    }

    fn parts(&self) -> Option<PerClass<f64>> {
        self.part.map(|part| PerClass([part, 1.0 - part]))
    }

    /// Whose packet is next.
    fn next(&self) -> Option<Class> {
        let [explicit, rest] = Class::BOTH.map(|class| self.queues[class].packets.front());
        match (explicit, rest) {
            (None, None) => None,
            (Some(_), None) => Some(Class::Explicit),
            (None, Some(_)) => Some(Class::Tcp),
            (Some(explicit), Some(rest)) => {
                let explicit_first = match self.part {
                    None => explicit.order < rest.order,
                    Some(_) => self.starts[Class::Explicit] <= self.starts[Class::Tcp],
                };
                Some(if explicit_first { Class::Explicit } else { Class::Tcp })
            }
        }
    }

    /// Which class loses a packet where `coming` finds no room.
    fn loses(&self, coming: Class) -> Class {
        let Some(parts) = self.parts() else { return coming };
        let [explicit, rest] = Class::BOTH.map(|class| self.queues[class].bytes as f64 / parts[class]);
        if explicit > rest { Class::Explicit } else { Class::Tcp }
    }
}

impl Discipline for Apart {
    fn enqueue(&mut self, waiting: Waiting, arriving: &Arriving, fates: &mut Fates) {
        let class = class_of(&waiting.packet);
        if self.queues[class].packets.is_empty() {
            // It begins now: what a class did not use before is not kept for it.
            self.starts[class] = self.starts[class].max(self.clock);
        }
        self.queues[class].push(waiting);
        while arriving.idle.is_none() && !arriving.room.holds(self.backlog()) {
            let loser = self.loses(class);
            let Some(last) = self.queues[loser].pop_last() else { break };
            fates.dropped(&last);
        }
    }

    fn dequeue(&mut self, _now: Instant, _fates: &mut Fates) -> Option<Waiting> {
        let class = self.next()?;
        let head = self.queues[class].pop()?;
        self.wanting &= self.queues[Class::Tcp].bytes > 0;
        match self.parts() {
            Some(parts) if self.backlog().packets > 0 => {
                self.clock = self.starts[class];
                self.starts[class] += f64::from(head.packet.bytes) / parts[class];
            }
            _ => (self.starts, self.clock) = (PerClass::default(), 0.0),
        }
        Some(head)
    }

    fn backlog(&self) -> Backlog {
        let [explicit, rest] = Class::BOTH.map(|class| self.queues[class].backlog());
        Backlog { bytes: explicit.bytes + rest.bytes, packets: explicit.packets + rest.packets }
    }

    fn heap_bytes(&self) -> usize {
        self.module.heap_bytes() + Class::BOTH.iter().map(|&class| self.queues[class].heap_bytes()).sum::<usize>()
    }

    fn comes(&mut self, now: Instant, packet: &Packet) {
        self.module.on_arrival(now, packet);
        if let Some(measured) = self.module.take_measured() {
            self.share_out(&measured);
        }
    }

    fn is_shown(&self, packet: &Packet) -> bool {
        class_of(packet) == Class::Explicit
    }

    fn part(&self) -> Option<LinkPart> {
        Some(LinkPart { capacity: self.explicit_capacity, bytes: self.queues[Class::Explicit].bytes })
    }

    fn cohabit(&self) -> Option<&Cohabit> {
        Some(&self.module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Cargo, Role};
    use crate::queue::testing::{finds, packet, setting};
    use waterfill_laws::registry::ProtocolId;
    use waterfill_laws::units::Duration;
    use waterfill_network::{ControllerSpec, EstimatorSpec};

    /// 12 Mbit/s.
    fn apart(part: Option<f64>) -> Apart {
        let spec = CohabitSpec {
            controller: ControllerSpec::Separate,
            estimator: EstimatorSpec::Exact { period_s: 2.0 },
            inspect: 1.0,
            interval_s: 0.1,
            explicit_weight: 1.0,
            ecn: false,
        };
        Apart { part, ..Apart::new(&spec, setting()) }
    }

    fn of(class: Class, number: u32) -> Waiting {
        let protocol = if class == Class::Explicit { ProtocolId::Rcp } else { ProtocolId::Reno };
        let header = protocol.decode_header(&[0; 64]).expect("a header of zeros");
        let mut waiting = packet(number, Instant::ZERO);
        waiting.packet.cargo = Cargo::Header(header);
        waiting.order = u64::from(number);
        waiting
    }

    fn comes(queue: &mut Apart, class: Class, number: u32, room: u64) -> u64 {
        let mut fates = Fates::default();
        let arriving = finds(queue.backlog(), room);
        queue.enqueue(of(class, number), &arriving, &mut fates);
        fates.drops
    }

    /// Flow numbers, for the explicit class below 100, in the order of service.
    fn served(queue: &mut Apart, count: usize) -> Vec<u32> {
        let next = || queue.dequeue(Instant::ZERO, &mut Fates::default()).map(|waiting| waiting.packet.flow);
        std::iter::from_fn(next).take(count).collect()
    }

    fn explicit(served: &[u32]) -> usize {
        served.iter().filter(|&&flow| flow < 100).count()
    }

    fn fill(queue: &mut Apart, explicit: u32, rest: u32) {
        (0..explicit).for_each(|i| assert_eq!(comes(queue, Class::Explicit, i, 1000), 0));
        (0..rest).for_each(|i| assert_eq!(comes(queue, Class::Tcp, 100 + i, 1000), 0));
    }

    #[test]
    fn classes_that_wait_are_served_by_their_parts() {
        let mut queue = apart(Some(0.25));
        fill(&mut queue, 90, 90);
        assert_eq!(explicit(&served(&mut queue, 100)), 25);
        let rest = served(&mut queue, 80);
        assert_eq!(rest.len(), 80, "work is conserved");
        assert!(rest[20..].iter().all(|&flow| flow < 100), "a class alone has all");
    }

    #[test]
    fn what_a_class_did_not_use_is_not_kept_for_it() {
        let mut queue = apart(Some(0.5));
        fill(&mut queue, 0, 90);
        served(&mut queue, 50);
        fill(&mut queue, 40, 0);
        // Its first starts with the last that was served, its second with the next of the other: then in turns.
        assert_eq!(served(&mut queue, 6), [0, 1, 150, 2, 151, 3]);
    }

    #[test]
    fn without_parts_packets_go_in_the_order_they_came() {
        let mut queue = apart(None);
        for (class, number) in [(Class::Tcp, 100), (Class::Explicit, 1), (Class::Explicit, 2), (Class::Tcp, 103)] {
            comes(&mut queue, class, number, 10);
        }
        // Their numbers are their order, but for TCP's 100.
        let mut first = of(Class::Tcp, 100);
        first.order = 0;
        queue.queues[Class::Tcp].packets[0] = first;
        assert_eq!(served(&mut queue, 9), [100, 1, 2, 103]);
    }

    #[test]
    fn who_has_most_for_its_part_makes_room() {
        let mut queue = apart(Some(0.5));
        fill(&mut queue, 2, 8);
        assert_eq!(comes(&mut queue, Class::Explicit, 9, 10), 1);
        assert_eq!((queue.queues[Class::Explicit].packets.len(), queue.queues[Class::Tcp].packets.len()), (3, 7));
        assert_eq!(queue.queues[Class::Tcp].packets.back().map(|w| w.packet.flow), Some(106), "the newest has gone");
        assert_eq!(comes(&mut queue, Class::Tcp, 110, 10), 1, "a TCP packet goes for its own");
        assert_eq!(queue.queues[Class::Tcp].packets.back().map(|w| w.packet.flow), Some(106));
        let mut alone = apart(None);
        fill(&mut alone, 8, 2);
        assert_eq!(comes(&mut alone, Class::Tcp, 110, 10), 1);
        assert_eq!(alone.queues[Class::Tcp].packets.len(), 2, "without parts, who comes");
    }

    #[test]
    fn laws_see_their_own_class() {
        let mut queue = apart(Some(0.5));
        fill(&mut queue, 3, 5);
        assert_eq!(queue.part().map(|part| part.bytes), Some(4500));
        assert!(queue.is_shown(&of(Class::Explicit, 1).packet) && !queue.is_shown(&of(Class::Tcp, 1).packet));
        let traffic = Packet { role: Role::Traffic, ..of(Class::Explicit, 1).packet };
        assert!(!queue.is_shown(&traffic), "constant-rate traffic is of the rest");
    }

    /// Of 12 Mbit/s 9 are the explicit class's. `tcp` is what came of the other in a second.
    fn told(queue: &mut Apart, tcp: f64, present: bool) -> (f64, Option<f64>) {
        let rate = |mbps: f64| Rate::from_bps(mbps * 1e6);
        queue.share_out(&Measured {
            lasted: Duration::from_secs(1e3), // far longer than the average
            explicit: rate(1.0),
            tcp: rate(tcp),
            total: rate(1.0 + tcp),
            usable: rate(12.0),
            tcp_flows: 1.0,
            explicit_share: rate(9.0),
            tcp_share: rate(3.0),
            both: present,
            present,
        });
        let capacity = queue.part().expect("always a part").capacity;
        ((capacity / rate(1.0) * 1e6).round() / 1e6, queue.part)
    }

    #[test]
    fn explicit_laws_are_told_what_the_rest_leaves() {
        let mut queue = apart(None);
        assert_eq!(told(&mut queue, 2.0, true), (10.0, Some(0.75)), "it needs no more than 2");
        assert_eq!(told(&mut queue, 8.0, true), (9.0, Some(0.75)), "nor gets more than its part");
        comes(&mut queue, Class::Tcp, 100, 10);
        told(&mut queue, 2.0, true); // the interval that follows begins with a packet waiting
        assert_eq!(told(&mut queue, 2.0, true), (9.0, Some(0.75)), "it had something waiting throughout");
        served(&mut queue, 1);
        assert_eq!(told(&mut queue, 2.0, true), (10.0, Some(0.75)), "it had not");
        assert_eq!(told(&mut queue, 5.0, false), (7.0, None), "no flows of its own: acknowledgements");
        assert_eq!(told(&mut queue, 15.0, false).0, 0.12, "a law divides by it");
    }

    #[test]
    fn an_average_settles_in_half_a_second() {
        let mut queue = apart(None);
        let rate = Rate::from_bps;
        let m = Measured {
            lasted: Duration::from_millis(500),
            explicit: Rate::ZERO,
            tcp: rate(4e6),
            total: rate(4e6),
            usable: rate(12e6),
            tcp_flows: 1.0,
            explicit_share: rate(6e6),
            tcp_share: rate(6e6),
            both: true,
            present: true,
        };
        queue.share_out(&m);
        let expected = 12e6 - 4e6 * (1.0 - (-1f64).exp());
        assert!((queue.explicit_capacity.as_bps() / expected - 1.0).abs() < 1e-12);
    }
}
