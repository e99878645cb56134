//! One queue per class: one for explicit flows, the other for TCP and all other traffic.
//!
//! The suggestion is the 2006 thesis's (M. Suchara, *TCP MaxNet*, §6): separate the explicit queue, where the explicit
//! flows keep their low delay, and let its law aim at its fair share. Packets are dropped only when the buffer is full.
//! So a TCP behaves as on any drop-tail queue: one that reacts to delay sees only its own, and one that reacts to
//! nothing takes only its part.
//!
//! **Service** is start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, 1996): next is the packet that would start
//! first if each class had a wire with its part of the capacity. It conserves work: a class alone has all of the link.
//! An explicit packet of a class within its part waits only for the packet in service. The parts are those of eq. 3–4,
//! of the capacity less constant-rate traffic, which counts with TCP. While only one class has flows there are no
//! parts, and packets (acknowledgements of the other class, constant-rate traffic) are served in order of arrival.
//!
//! **Visible** to the explicit laws are their own packets, their own queue, and as capacity what the other class leaves
//! them. The other class's need is what it sends, or all of its part in a control interval in which it always had
//! something waiting; this is averaged. So explicit flows take what TCP leaves, and TCP, whose packets have priority up
//! to their part, can reclaim it at any time. An explicit law's headroom is a share of its own capacity, and TCP fills
//! it.
//!
//! **The buffer** is shared. When it is full, the class with the largest backlog relative to its part loses its newest
//! packet.

use std::collections::VecDeque;

use waterfill_laws::math;
use waterfill_laws::protocol::Probe;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::CohabitSpec;

use super::controller::Measured;
use super::{Class, Cohabit, PerClass};
use crate::packet::Packet;
use crate::queue::discipline::{Arrival, Backlog, Fifo, LinkShare, QueueContext, QueueOutcome, Scheduler, Waiting};

/// Averaging time of the non-explicit class's need, in seconds, as for the improved controller's error.
const AVERAGE_S: f64 = 0.5;
/// Minimum part of the capacity for a class. Laws divide by this part, and a class with no capacity could never send
/// again.
const MIN_PART: f64 = 0.01;

/// Queues of both classes on one link direction.
#[derive(Debug)]
pub(in crate::queue) struct PerClassQueue {
    /// Cohabitation module that estimates the flows and measures the input.
    module: Cohabit,
    capacity: Rate,
    queues: PerClass<Fifo>,
    /// Number of each waiting packet among all arrivals.
    numbers: PerClass<VecDeque<u64>>,
    arrivals: u64,
    /// Virtual start time of each class's next packet, in bytes of the whole link.
    starts: PerClass<f64>,
    /// Virtual start time of the packet in service.
    clock: f64,
    /// Explicit class's part of the capacity, while both classes have flows.
    part: Option<f64>,
    /// Average rate that the non-explicit class needs.
    need: Rate,
    /// True if the non-explicit class has had packets waiting since the control interval began.
    wanting: bool,
    /// Capacity that the explicit laws see.
    explicit_capacity: Rate,
}

/// Returns the class in whose queue a packet waits. Traffic without congestion control shares TCP's queue.
fn class_of(packet: &Packet) -> Class {
    Class::of(packet).unwrap_or(Class::Tcp)
}

/// Returns the rate that the non-explicit class needs: its share if it always had packets waiting, otherwise its
/// sending rate.
fn needed(wanting: bool, sent: Rate, share: Rate) -> Rate {
    if wanting { share } else { sent.min(share) }
}

impl PerClassQueue {
    pub(in crate::queue) fn new(spec: &CohabitSpec, context: QueueContext) -> Self {
        let capacity = context.capacity;
        Self {
            module: Cohabit::new(spec, context),
            capacity,
            queues: PerClass::default(),
            numbers: PerClass::default(),
            arrivals: 0,
            starts: PerClass::default(),
            clock: 0.0,
            part: None,
            need: Rate::ZERO,
            wanting: false,
            explicit_capacity: capacity,
        }
    }

    /// Divides the link according to the measurements of a control interval.
    fn update(&mut self, m: &Measured) {
        let sent = m.total - m.explicit;
        let (explicit_share, other_share) =
            if m.present { (m.explicit_share, self.capacity - m.explicit_share) } else { (Rate::ZERO, self.capacity) };
        let need = needed(self.wanting && m.present, sent, other_share);
        self.need += (need - self.need) * (1.0 - math::exp(-m.lasted.as_secs() / AVERAGE_S));
        self.explicit_capacity = (self.capacity - self.need).max(explicit_share).max(self.capacity * MIN_PART);
        self.part = m.present.then(|| (explicit_share / self.capacity).clamp(MIN_PART, 1.0 - MIN_PART));
        self.wanting = self.queues[Class::Tcp].bytes > 0;
    }

    fn parts(&self) -> Option<PerClass<f64>> {
        self.part.map(|part| PerClass([part, 1.0 - part]))
    }

    /// Returns the class that is served next, or `None` if both queues are empty.
    fn next_class(&self) -> Option<Class> {
        let [explicit, other] = Class::BOTH.map(|class| self.numbers[class].front());
        match (explicit, other) {
            (None, None) => None,
            (Some(_), None) => Some(Class::Explicit),
            (None, Some(_)) => Some(Class::Tcp),
            (Some(explicit), Some(other)) => {
                let explicit_first = match self.part {
                    None => explicit < other,
                    Some(_) => self.starts[Class::Explicit] <= self.starts[Class::Tcp],
                };
                Some(if explicit_first { Class::Explicit } else { Class::Tcp })
            }
        }
    }

    /// Returns the class that loses a packet when a packet of class `arriving` overflows the buffer.
    fn class_to_drop(&self, arriving: Class) -> Class {
        let Some(parts) = self.parts() else { return arriving };
        let [explicit, other] = Class::BOTH.map(|class| self.queues[class].bytes as f64 / parts[class]);
        if explicit > other { Class::Explicit } else { Class::Tcp }
    }
}

impl Scheduler for PerClassQueue {
    fn enqueue(&mut self, waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        let class = class_of(&waiting.packet);
        if self.queues[class].packets.is_empty() {
            // A class starts now: it gets no credit for the time when it sent nothing.
            self.starts[class] = self.starts[class].max(self.clock);
        }
        self.queues[class].push(waiting);
        self.arrivals += 1;
        self.numbers[class].push_back(self.arrivals);
        while arrival.idle.is_none() && !arrival.limit.holds(self.backlog()) {
            let loser = self.class_to_drop(class);
            let Some(last) = self.queues[loser].pop_last() else { break };
            self.numbers[loser].pop_back();
            outcome.drop(&last);
        }
    }

    fn dequeue(&mut self, _now: Instant, _outcome: &mut QueueOutcome) -> Option<Waiting> {
        let class = self.next_class()?;
        let head = self.queues[class].pop()?;
        self.numbers[class].pop_front();
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
        let [explicit, other] = Class::BOTH.map(|class| self.queues[class].backlog());
        Backlog { bytes: explicit.bytes + other.bytes, packets: explicit.packets + other.packets }
    }

    fn heap_bytes(&self) -> usize {
        let numbers = |class: Class| self.numbers[class].capacity() * size_of::<u64>();
        let queues = Class::BOTH.iter().map(|&class| self.queues[class].heap_bytes() + numbers(class));
        self.module.heap_bytes() + queues.sum::<usize>()
    }

    fn notify_capacity(&mut self, capacity: Rate) {
        self.module.notify_capacity(capacity);
        // What the other class needs of the capacity is measured again within a control interval.
        self.explicit_capacity = self.explicit_capacity * (capacity / self.capacity);
        self.capacity = capacity;
    }

    fn notify_interval(&mut self, interval: Duration) {
        self.module.notify_interval(interval);
    }

    fn on_arrival(&mut self, now: Instant, packet: &Packet) {
        self.module.on_arrival(now, packet);
        if let Some(measured) = self.module.take_measured() {
            self.update(&measured);
        }
    }

    fn is_visible(&self, packet: &Packet) -> bool {
        class_of(packet) == Class::Explicit
    }

    fn share(&self) -> Option<LinkShare> {
        Some(LinkShare { capacity: self.explicit_capacity, bytes: self.queues[Class::Explicit].bytes })
    }

    fn columns(&self) -> &'static [&'static str] {
        Cohabit::columns()
    }

    fn observe(&self, probe: &mut dyn Probe) {
        self.module.observe(probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Cargo, Role};
    use crate::testing;
    use waterfill_laws::registry::ProtocolId;
    use waterfill_network::{ControllerSpec, CountDrops, EstimatorSpec};

    /// Returns a queue on a link of 12 Mbit/s.
    fn new_queue(part: Option<f64>) -> PerClassQueue {
        let spec = CohabitSpec {
            controller: ControllerSpec::Separate,
            estimator: EstimatorSpec::Exact { period_s: 2.0 },
            inspect: 1.0,
            interval_s: 0.1,
            interval_of_law: false,
            count_drops: CountDrops::Never,
            explicit_weight: 1.0,
            ecn: false,
        };
        PerClassQueue { part, ..PerClassQueue::new(&spec, testing::queue_context()) }
    }

    fn waiting(class: Class, number: u32) -> Waiting {
        let protocol = if class == Class::Explicit { ProtocolId::Rcp } else { ProtocolId::Reno };
        let header = protocol.decode_header(&[0; 64]).expect("a header of zeros");
        let mut waiting = testing::waiting(number, Instant::ZERO);
        waiting.packet.cargo = Cargo::Header(header);
        waiting
    }

    /// Enqueues a packet. Returns the number of packets dropped.
    fn enqueue(queue: &mut PerClassQueue, class: Class, number: u32, limit: u64) -> u64 {
        let mut outcome = QueueOutcome::default();
        let arrival = testing::arrival(queue.backlog(), limit);
        queue.enqueue(waiting(class, number), &arrival, &mut outcome);
        outcome.drops
    }

    /// Returns flow numbers in order of service. Numbers of the explicit class are below 100.
    fn served(queue: &mut PerClassQueue, count: usize) -> Vec<u32> {
        let next = || queue.dequeue(Instant::ZERO, &mut QueueOutcome::default()).map(|waiting| waiting.packet.flow);
        std::iter::from_fn(next).take(count).collect()
    }

    fn explicit(served: &[u32]) -> usize {
        served.iter().filter(|&&flow| flow < 100).count()
    }

    fn fill(queue: &mut PerClassQueue, explicit: u32, other: u32) {
        (0..explicit).for_each(|i| assert_eq!(enqueue(queue, Class::Explicit, i, 1000), 0));
        (0..other).for_each(|i| assert_eq!(enqueue(queue, Class::Tcp, 100 + i, 1000), 0));
    }

    #[test]
    fn backlogged_classes_are_served_in_proportion_to_their_parts() {
        let mut queue = new_queue(Some(0.25));
        fill(&mut queue, 90, 90);
        assert_eq!(explicit(&served(&mut queue, 100)), 25);
        let others = served(&mut queue, 80);
        assert_eq!(others.len(), 80, "work is conserved");
        assert!(others[20..].iter().all(|&flow| flow < 100), "a class alone has all of the link");
    }

    #[test]
    fn a_class_gets_no_credit_for_unused_capacity() {
        let mut queue = new_queue(Some(0.5));
        fill(&mut queue, 0, 90);
        served(&mut queue, 50);
        fill(&mut queue, 40, 0);
        // Its first packet starts with the last one served, its second with the other class's next: then they
        // alternate.
        assert_eq!(served(&mut queue, 6), [0, 1, 150, 2, 151, 3]);
    }

    #[test]
    fn without_parts_packets_are_served_in_order_of_arrival() {
        let mut queue = new_queue(None);
        for (class, number) in [(Class::Tcp, 100), (Class::Explicit, 1), (Class::Explicit, 2), (Class::Tcp, 103)] {
            enqueue(&mut queue, class, number, 10);
        }
        assert_eq!(served(&mut queue, 9), [100, 1, 2, 103]);
    }

    #[test]
    fn overflow_drops_from_the_largest_backlog_relative_to_its_part() {
        let mut queue = new_queue(Some(0.5));
        fill(&mut queue, 2, 8);
        assert_eq!(enqueue(&mut queue, Class::Explicit, 9, 10), 1);
        assert_eq!((queue.queues[Class::Explicit].packets.len(), queue.queues[Class::Tcp].packets.len()), (3, 7));
        assert_eq!(queue.queues[Class::Tcp].packets.back().map(|w| w.packet.flow), Some(106), "the newest was dropped");
        assert_eq!(enqueue(&mut queue, Class::Tcp, 110, 10), 1, "a TCP packet is dropped for one of its own class");
        assert_eq!(queue.queues[Class::Tcp].packets.back().map(|w| w.packet.flow), Some(106));
        let mut alone = new_queue(None);
        fill(&mut alone, 8, 2);
        assert_eq!(enqueue(&mut alone, Class::Tcp, 110, 10), 1);
        assert_eq!(alone.queues[Class::Tcp].packets.len(), 2, "without parts, the arriving packet is dropped");
    }

    #[test]
    fn router_laws_see_only_the_explicit_class() {
        let mut queue = new_queue(Some(0.5));
        fill(&mut queue, 3, 5);
        assert_eq!(queue.share().map(|share| share.bytes), Some(4500));
        assert!(
            queue.is_visible(&waiting(Class::Explicit, 1).packet) && !queue.is_visible(&waiting(Class::Tcp, 1).packet)
        );
        let traffic = Packet { role: Role::Traffic, ..waiting(Class::Explicit, 1).packet };
        assert!(!queue.is_visible(&traffic), "constant-rate traffic counts with TCP");
    }

    /// Returns the explicit capacity (Mbit/s) and part after an interval in which TCP sent `tcp` Mbit/s. The explicit
    /// share is 9 of 12 Mbit/s.
    fn capacity_after(queue: &mut PerClassQueue, tcp: f64, present: bool) -> (f64, Option<f64>) {
        let rate = |mbps: f64| Rate::from_bps(mbps * 1e6);
        queue.update(&Measured {
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
        let capacity = queue.share().expect("always a share").capacity;
        ((capacity / rate(1.0) * 1e6).round() / 1e6, queue.part)
    }

    #[test]
    fn explicit_laws_see_the_capacity_that_tcp_leaves() {
        let mut queue = new_queue(None);
        assert_eq!(capacity_after(&mut queue, 2.0, true), (10.0, Some(0.75)), "TCP needs no more than 2");
        assert_eq!(capacity_after(&mut queue, 8.0, true), (9.0, Some(0.75)), "TCP gets no more than its part");
        enqueue(&mut queue, Class::Tcp, 100, 10);
        capacity_after(&mut queue, 2.0, true); // the next interval starts with a packet waiting
        assert_eq!(capacity_after(&mut queue, 2.0, true), (9.0, Some(0.75)), "TCP always had a packet waiting");
        served(&mut queue, 1);
        assert_eq!(
            capacity_after(&mut queue, 2.0, true),
            (10.0, Some(0.75)),
            "TCP did not always have a packet waiting"
        );
        assert_eq!(capacity_after(&mut queue, 5.0, false), (7.0, None), "TCP has no flows, only acknowledgements");
        assert_eq!(capacity_after(&mut queue, 15.0, false).0, 0.12, "never zero: laws divide by it");
    }

    #[test]
    fn the_need_is_averaged_over_half_a_second() {
        let mut queue = new_queue(None);
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
        queue.update(&m);
        let expected = 12e6 - 4e6 * (1.0 - (-1f64).exp());
        assert!((queue.explicit_capacity.as_bps() / expected - 1.0).abs() < 1e-12);
    }
}
