//! Flow queueing with controlled delay (RFC 8290): a CoDel for each flow, flows served in turn by bytes, new ones first.
//!
//! Flows are hashed to queues; two that meet in one share it. A queue that becomes active is *new* and is served before
//! the *old* ones until it has used its first quantum. When the buffer overflows, the queue with most bytes pays.
//!
//! Reading: CoDel's rule that the last full packet stays looks at its own queue, as RFC 8289's pseudo-code does; Linux
//! looks at all queues together.

use std::collections::VecDeque;

use rand_core::Rng as _;
use waterfill_laws::units::Instant;

use super::codel::Codel;
use waterfill_network::FqCodelSpec;

use super::{Arriving, Backlog, Discipline, Fates, Fifo, Setting, Waiting, flow_of};

/// RFC 8290 §4.1: packets that go at most at one overflow, of at most half of the longest queue's bytes.
const DROP_BATCH: usize = 64;

#[derive(Debug)]
struct FlowQueue {
    fifo: Fifo,
    law: Codel,
    /// Bytes it may still send in this turn.
    credit: i64,
    /// Whether it is among the new or old ones.
    active: bool,
}

/// FQ-CoDel on one link direction.
#[derive(Debug)]
pub(super) struct FqCodel {
    queues: Box<[FlowQueue]>,
    quantum: i64,
    /// Which flows meet in a queue depends on the seed.
    salt: u64,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
}

/// Mixes a flow's name into a number that looks random (the finaliser of SplitMix64).
pub(super) const fn mixed(flow: u64, salt: u64) -> u64 {
    let mut x = flow ^ salt;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl FqCodel {
    pub(super) fn new(spec: &FqCodelSpec, mut setting: Setting) -> Self {
        let law = Codel::new(&spec.codel, setting.packet_bytes);
        let queue = |_| FlowQueue { fifo: Fifo::default(), law: law.clone(), credit: 0, active: false };
        Self {
            queues: (0..spec.flows).map(queue).collect(),
            quantum: i64::from(spec.quantum_bytes),
            salt: setting.rng.next_u64(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// The longest queue loses packets at its head.
    fn shorten_longest(&mut self, fates: &mut Fates) {
        let Some(longest) = self.queues.iter_mut().max_by_key(|queue| queue.fifo.bytes) else { return };
        let before = longest.fifo.backlog();
        for _ in 0..DROP_BATCH {
            let Some(head) = longest.fifo.pop() else { break };
            fates.dropped(&head);
            if longest.fifo.bytes * 2 <= before.bytes {
                break;
            }
        }
        let after = longest.fifo.backlog();
        self.backlog.bytes -= before.bytes - after.bytes;
        self.backlog.packets -= before.packets - after.packets;
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, waiting: Waiting, arriving: &Arriving, fates: &mut Fates) {
        let index = (mixed(flow_of(&waiting.packet), self.salt) % self.queues.len() as u64) as u32;
        let queue = &mut self.queues[index as usize];
        if !queue.active {
            queue.active = true;
            queue.credit = self.quantum;
            self.new.push_back(index);
        }
        self.backlog.bytes += u64::from(waiting.packet.bytes);
        self.backlog.packets += 1;
        queue.fifo.push(waiting);
        while arriving.idle.is_none() && !arriving.room.holds(self.backlog) {
            self.shorten_longest(fates);
        }
    }

    fn dequeue(&mut self, now: Instant, fates: &mut Fates) -> Option<Waiting> {
        loop {
            let (index, is_new) = match (self.new.front(), self.old.front()) {
                (Some(&index), _) => (index, true),
                (None, Some(&index)) => (index, false),
                (None, None) => return None,
            };
            let list = if is_new { &mut self.new } else { &mut self.old };
            let queue = &mut self.queues[index as usize];
            if queue.credit <= 0 {
                queue.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = queue.fifo.backlog();
            let head = queue.law.dequeue(now, &mut queue.fifo, fates);
            let after = queue.fifo.backlog();
            self.backlog.bytes -= before.bytes - after.bytes;
            self.backlog.packets -= before.packets - after.packets;
            if let Some(head) = head {
                queue.credit -= i64::from(head.packet.bytes);
                return Some(head);
            }
            list.pop_front();
            if is_new {
                // Once around the old ones, or a flow of one packet at a time would always be new.
                self.old.push_back(index);
            } else {
                queue.active = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn heap_bytes(&self) -> usize {
        let own: usize = self.queues.iter().map(|queue| queue.fifo.heap_bytes()).sum();
        own + self.queues.len() * size_of::<FlowQueue>() + (self.new.capacity() + self.old.capacity()) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::Room;
    use super::super::testing::{finds, packet, setting};
    use super::*;
    use waterfill_network::CodelSpec;

    fn fq(quantum_bytes: u32) -> FqCodel {
        let codel = CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true };
        FqCodel::new(&FqCodelSpec { codel, quantum_bytes, flows: 1024 }, setting())
    }

    fn put(fq: &mut FqCodel, flow: u32, bytes: u16, room: u64) -> Vec<u32> {
        let mut fates = Fates::default();
        let mut waiting = packet(flow, Instant::ZERO);
        waiting.packet.bytes = bytes;
        let found = finds(fq.backlog(), room);
        fq.enqueue(waiting, &found, &mut fates);
        vec![flow; fates.dropped.len()]
    }

    fn order(fq: &mut FqCodel) -> Vec<u32> {
        let mut fates = Fates::default();
        std::iter::from_fn(|| fq.dequeue(Instant::ZERO, &mut fates).map(|w| w.packet.flow)).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut fq = fq(1500);
        for (flow, bytes) in [(1, 1500), (1, 1500), (1, 1500), (2, 750), (2, 750), (2, 750), (2, 750)] {
            put(&mut fq, flow, bytes, 100);
        }
        assert_eq!(fq.backlog(), Backlog { bytes: 7500, packets: 7 });
        assert_eq!(order(&mut fq), [1, 2, 2, 1, 2, 2, 1]);
        assert_eq!(fq.backlog(), Backlog::default());
        assert!(fq.queues.iter().all(|queue| !queue.active));
    }

    #[test]
    fn a_new_flow_goes_first() {
        let mut fq = fq(1500);
        for _ in 0..4 {
            put(&mut fq, 1, 1500, 100);
            put(&mut fq, 2, 1500, 100);
        }
        let mut fates = Fates::default();
        for _ in 0..3 {
            fq.dequeue(Instant::ZERO, &mut fates);
        }
        put(&mut fq, 3, 100, 100);
        assert_eq!(fq.dequeue(Instant::ZERO, &mut fates).unwrap().packet.flow, 3);
    }

    #[test]
    fn the_longest_queue_pays_half() {
        let mut fq = fq(1500);
        for _ in 0..10 {
            put(&mut fq, 1, 1500, 13);
        }
        for _ in 0..3 {
            put(&mut fq, 2, 1500, 13);
        }
        // The fourteenth packet, of flow 2: flow 1 loses half of its ten.
        assert_eq!(put(&mut fq, 2, 1500, 13).len(), 5);
        let served = order(&mut fq);
        assert_eq!(served.iter().filter(|&&f| f == 1).count(), 5);
        assert_eq!(served.iter().filter(|&&f| f == 2).count(), 4);
    }

    #[test]
    fn a_packet_larger_than_the_quantum_is_paid_off() {
        let mut fq = fq(500);
        for _ in 0..2 {
            put(&mut fq, 1, 1500, 100);
        }
        for _ in 0..6 {
            put(&mut fq, 2, 500, 100);
        }
        let served = order(&mut fq);
        assert_eq!(served.len(), 8);
        // A packet of flow 1 for each three of flow 2.
        let second = served.iter().rposition(|&f| f == 1).unwrap();
        let between = served[..second].iter().filter(|&&f| f == 2).count();
        assert!((2..=4).contains(&between), "{served:?}");
    }

    #[test]
    fn no_room_at_all_drops_what_comes() {
        let mut fq = fq(1500);
        let mut fates = Fates::default();
        let found = Arriving { room: Room { bytes: 0, packets: 0 }, ..finds(Backlog::default(), 0) };
        fq.enqueue(packet(1, Instant::ZERO), &found, &mut fates);
        assert_eq!((fates.dropped.len(), fq.backlog()), (1, Backlog::default()));
        assert!(fq.dequeue(Instant::ZERO, &mut fates).is_none());
    }
}
