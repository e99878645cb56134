//! Flow queueing with controlled delay (RFC 8290): one CoDel per flow, deficit round robin by bytes, new flows first.
//!
//! Flows are hashed to queues; flows with one hash share a queue. A queue that becomes active is *new* and is served
//! before the *old* ones until it has used its first quantum. When the buffer overflows, the queue with most bytes
//! loses packets.
//!
//! Reading: CoDel's rule that the last full packet stays applies to each queue, as in RFC 8289's pseudo-code; Linux
//! applies it to all queues together.

use std::collections::VecDeque;

use rand_core::Rng as _;
use waterfill_laws::units::Instant;
use waterfill_network::FqCodelSpec;

use super::codel::Codel;
use super::discipline::{Arrival, Backlog, Fifo, QueueContext, QueueOutcome, Scheduler, Waiting, flow_id};
use crate::random::mix;

/// Maximum number of packets dropped per overflow, up to half of the longest queue's bytes (RFC 8290 §4.1).
const DROP_BATCH: usize = 64;

#[derive(Debug)]
struct FlowQueue {
    fifo: Fifo,
    law: Codel,
    /// Bytes that the queue may still send in this round.
    credit: i64,
    /// True if the queue is on the list of new or of old queues.
    active: bool,
}

/// FQ-CoDel queue of one link direction.
#[derive(Debug)]
pub(super) struct FqCodel {
    queues: Box<[FlowQueue]>,
    quantum: i64,
    /// Seed of the hash, so that collisions differ between runs with different seeds.
    salt: u64,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
}

impl FqCodel {
    pub(super) fn new(spec: &FqCodelSpec, mut context: QueueContext) -> Self {
        let law = Codel::new(&spec.codel, context.packet_bytes);
        let queue = |_| FlowQueue { fifo: Fifo::default(), law: law.clone(), credit: 0, active: false };
        Self {
            queues: (0..spec.flows).map(queue).collect(),
            quantum: i64::from(spec.quantum_bytes),
            salt: context.rng.next_u64(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// Drops packets at the head of the longest queue.
    fn drop_from_longest(&mut self, outcome: &mut QueueOutcome) {
        let Some(longest) = self.queues.iter_mut().max_by_key(|queue| queue.fifo.bytes) else { return };
        let before = longest.fifo.backlog();
        for _ in 0..DROP_BATCH {
            let Some(head) = longest.fifo.pop() else { break };
            outcome.drop(&head);
            if longest.fifo.bytes * 2 <= before.bytes {
                break;
            }
        }
        let after = longest.fifo.backlog();
        self.backlog.bytes -= before.bytes - after.bytes;
        self.backlog.packets -= before.packets - after.packets;
    }
}

impl Scheduler for FqCodel {
    fn enqueue(&mut self, waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        let index = (mix(flow_id(&waiting.packet), self.salt) % self.queues.len() as u64) as u32;
        let queue = &mut self.queues[index as usize];
        if !queue.active {
            queue.active = true;
            queue.credit = self.quantum;
            self.new.push_back(index);
        }
        self.backlog.bytes += u64::from(waiting.packet.bytes);
        self.backlog.packets += 1;
        queue.fifo.push(waiting);
        while arrival.idle.is_none() && !arrival.limit.holds(self.backlog) {
            self.drop_from_longest(outcome);
        }
    }

    fn dequeue(&mut self, now: Instant, outcome: &mut QueueOutcome) -> Option<Waiting> {
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
            let head = queue.law.dequeue(now, &mut queue.fifo, outcome);
            let after = queue.fifo.backlog();
            self.backlog.bytes -= before.bytes - after.bytes;
            self.backlog.packets -= before.packets - after.packets;
            if let Some(head) = head {
                queue.credit -= i64::from(head.packet.bytes);
                return Some(head);
            }
            list.pop_front();
            if is_new {
                // It passes through the old queues once: otherwise a flow of single packets would always be new.
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
    use super::super::discipline::BufferLimit;
    use super::*;
    use crate::testing::{arrival, queue_context, waiting};
    use waterfill_network::CodelSpec;

    fn fq(quantum_bytes: u32) -> FqCodel {
        let codel = CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true };
        FqCodel::new(&FqCodelSpec { codel, quantum_bytes, flows: 1024 }, queue_context())
    }

    /// Enqueues a packet. Returns the number of packets dropped.
    fn enqueue(fq: &mut FqCodel, flow: u32, bytes: u16, limit: u64) -> usize {
        let mut outcome = QueueOutcome::default();
        let mut waiting = waiting(flow, Instant::ZERO);
        waiting.packet.bytes = bytes;
        let arrival = arrival(fq.backlog(), limit);
        fq.enqueue(waiting, &arrival, &mut outcome);
        outcome.dropped.len()
    }

    /// Dequeues all packets. Returns their flow numbers.
    fn served(fq: &mut FqCodel) -> Vec<u32> {
        let mut outcome = QueueOutcome::default();
        std::iter::from_fn(|| fq.dequeue(Instant::ZERO, &mut outcome).map(|w| w.packet.flow)).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut fq = fq(1500);
        for (flow, bytes) in [(1, 1500), (1, 1500), (1, 1500), (2, 750), (2, 750), (2, 750), (2, 750)] {
            enqueue(&mut fq, flow, bytes, 100);
        }
        assert_eq!(fq.backlog(), Backlog { bytes: 7500, packets: 7 });
        assert_eq!(served(&mut fq), [1, 2, 2, 1, 2, 2, 1]);
        assert_eq!(fq.backlog(), Backlog::default());
        assert!(fq.queues.iter().all(|queue| !queue.active));
    }

    #[test]
    fn a_new_flow_is_served_first() {
        let mut fq = fq(1500);
        for _ in 0..4 {
            enqueue(&mut fq, 1, 1500, 100);
            enqueue(&mut fq, 2, 1500, 100);
        }
        let mut outcome = QueueOutcome::default();
        for _ in 0..3 {
            fq.dequeue(Instant::ZERO, &mut outcome);
        }
        enqueue(&mut fq, 3, 100, 100);
        assert_eq!(fq.dequeue(Instant::ZERO, &mut outcome).unwrap().packet.flow, 3);
    }

    #[test]
    fn an_overflow_halves_the_longest_queue() {
        let mut fq = fq(1500);
        for _ in 0..10 {
            enqueue(&mut fq, 1, 1500, 13);
        }
        for _ in 0..3 {
            enqueue(&mut fq, 2, 1500, 13);
        }
        // The fourteenth packet, of flow 2: flow 1 loses half of its ten.
        assert_eq!(enqueue(&mut fq, 2, 1500, 13), 5);
        let served = served(&mut fq);
        assert_eq!(served.iter().filter(|&&f| f == 1).count(), 5);
        assert_eq!(served.iter().filter(|&&f| f == 2).count(), 4);
    }

    #[test]
    fn a_packet_larger_than_the_quantum_takes_several_rounds() {
        let mut fq = fq(500);
        for _ in 0..2 {
            enqueue(&mut fq, 1, 1500, 100);
        }
        for _ in 0..6 {
            enqueue(&mut fq, 2, 500, 100);
        }
        let served = served(&mut fq);
        assert_eq!(served.len(), 8);
        // One packet of flow 1 for every three of flow 2.
        let second = served.iter().rposition(|&f| f == 1).unwrap();
        let between = served[..second].iter().filter(|&&f| f == 2).count();
        assert!((2..=4).contains(&between), "{served:?}");
    }

    #[test]
    fn an_empty_buffer_limit_drops_every_packet() {
        let mut fq = fq(1500);
        let mut outcome = QueueOutcome::default();
        let full = Arrival { limit: BufferLimit { bytes: 0, packets: 0 }, ..arrival(Backlog::default(), 0) };
        fq.enqueue(waiting(1, Instant::ZERO), &full, &mut outcome);
        assert_eq!((outcome.dropped.len(), fq.backlog()), (1, Backlog::default()));
        assert!(fq.dequeue(Instant::ZERO, &mut outcome).is_none());
    }
}
