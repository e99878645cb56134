//! Flow queueing (RFC 8290): one queue with a law of its own per flow, deficit round robin by bytes, new flows first.
//!
//! Flows are hashed to queues; flows with one hash share a queue. A queue that becomes active is *new* and is served
//! before the *old* ones until it has used its first quantum. When the buffer overflows, the queue with most bytes
//! loses packets. FQ-CoDel uses [`Codel`](super::codel::Codel) as the law, FQ-PIE uses [`Pie`](super::pie::Pie).
//!
//! Reading: a law's rule that the last packets stay applies to each queue, as in RFC 8289's pseudo-code; Linux applies
//! CoDel's to all queues together.

use std::collections::VecDeque;
use std::fmt::Debug;

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::units::Instant;

use super::discipline::{Arrival, Backlog, Fifo, QueueContext, QueueOutcome, Scheduler, Verdict, Waiting, flow_id};
use crate::random::mix;

/// Maximum number of packets dropped per overflow, up to half of the longest queue's bytes (RFC 8290 §4.1).
const DROP_BATCH: usize = 64;

/// Law of one flow's queue.
pub(super) trait FlowLaw: Clone + Debug + Send + Sync {
    /// Decides on a packet that arrives at the queue, before it is stored.
    fn on_arrival(&mut self, now: Instant, backlog: Backlog, markable: bool, rng: &mut Pcg64) -> Verdict;
    /// Removes and returns the next packet to send; may drop or mark packets.
    fn dequeue(&mut self, now: Instant, fifo: &mut Fifo, outcome: &mut QueueOutcome) -> Option<Waiting>;
}

#[derive(Debug)]
struct FlowQueue<L> {
    fifo: Fifo,
    law: L,
    /// Bytes that the queue may still send in this round.
    credit: i64,
    /// True if the queue is on the list of new or of old queues.
    active: bool,
}

/// Flow queues of one link direction.
#[derive(Debug)]
pub(super) struct FlowQueues<L> {
    queues: Box<[FlowQueue<L>]>,
    quantum: i64,
    /// Seed of the hash, so that collisions differ between runs with different seeds.
    salt: u64,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
    /// Random stream of all laws.
    rng: Pcg64,
}

impl<L: FlowLaw> FlowQueues<L> {
    /// Builds `flows` queues with copies of `law`. A queue may send `quantum_bytes` in one turn.
    pub(super) fn new(law: &L, quantum_bytes: u32, flows: u32, mut context: QueueContext) -> Self {
        let queue = |_| FlowQueue { fifo: Fifo::default(), law: law.clone(), credit: 0, active: false };
        Self {
            queues: (0..flows).map(queue).collect(),
            quantum: i64::from(quantum_bytes),
            salt: context.rng.next_u64(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
            rng: context.rng,
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

impl<L: FlowLaw> Scheduler for FlowQueues<L> {
    fn enqueue(&mut self, mut waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        let index = (mix(flow_id(&waiting.packet), self.salt) % self.queues.len() as u64) as u32;
        let queue = &mut self.queues[index as usize];
        match queue.law.on_arrival(waiting.since, queue.fifo.backlog(), arrival.markable, &mut self.rng) {
            Verdict::Accept => {}
            Verdict::Mark => outcome.mark(&mut waiting),
            Verdict::Drop => return outcome.drop(&waiting),
        }
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
        own + self.queues.len() * size_of::<FlowQueue<L>>() + (self.new.capacity() + self.old.capacity()) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::codel::Codel;
    use super::super::discipline::BufferLimit;
    use super::*;
    use crate::testing::{arrival, queue_context, waiting};
    use waterfill_network::CodelSpec;

    fn fq(quantum_bytes: u32) -> FlowQueues<Codel> {
        let codel = CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true };
        FlowQueues::new(&Codel::new(&codel, 1500), quantum_bytes, 1024, queue_context())
    }

    /// Enqueues a packet. Returns the number of packets dropped.
    fn enqueue(fq: &mut FlowQueues<Codel>, flow: u32, bytes: u16, limit: u64) -> usize {
        let mut outcome = QueueOutcome::default();
        let mut waiting = waiting(flow, Instant::ZERO);
        waiting.packet.bytes = bytes;
        let arrival = arrival(fq.backlog(), limit);
        fq.enqueue(waiting, &arrival, &mut outcome);
        outcome.dropped.len()
    }

    /// Dequeues all packets. Returns their flow numbers.
    fn served(fq: &mut FlowQueues<Codel>) -> Vec<u32> {
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
