//! CHOKe queue discipline, as in Figure 1 of its paper. Source: R. Pan, B. Prabhakar, K. Psounis, *CHOKe, A Stateless
//! Active Queue Management Scheme for Approximating Fair Bandwidth Allocation*, IEEE INFOCOM 2000.
//!
//! While RED's average is above the lower threshold, an arriving packet is compared with a waiting one drawn at random.
//! If both belong to one flow, both are dropped; if not, RED decides. A flow with more packets in the queue loses more
//! of them.
//!
//! Reading: the packet in service is not drawn, since it no longer waits.

use waterfill_laws::units::Instant;
use waterfill_network::RedSpec;
use waterfill_network::random::below;

use super::discipline::{Arrival, Backlog, Fifo, QueueContext, QueueOutcome, Scheduler, Verdict, Waiting, flow_id};
use super::red::Red;

/// CHOKe queue of one link direction.
#[derive(Debug)]
pub(super) struct Choke {
    red: Red,
    fifo: Fifo,
}

impl Choke {
    pub(super) fn new(spec: &RedSpec, context: QueueContext) -> Self {
        Self { red: Red::new(spec, context), fifo: Fifo::default() }
    }

    /// Draws a waiting packet and drops it if it belongs to the flow of the arriving packet. Returns true if it was
    /// dropped.
    fn drop_match(&mut self, waiting: &Waiting, outcome: &mut QueueOutcome) -> bool {
        if self.fifo.packets.is_empty() {
            return false;
        }
        let drawn = below(self.red.rng(), self.fifo.packets.len());
        let same = flow_id(&self.fifo.packets[drawn].packet) == flow_id(&waiting.packet);
        if same {
            if let Some(matched) = self.fifo.remove(drawn) {
                outcome.drop(&matched);
            }
        }
        same
    }
}

impl Scheduler for Choke {
    fn enqueue(&mut self, mut waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        let mut verdict = Verdict::Accept;
        if self.red.is_above_threshold(arrival) {
            let matched = self.drop_match(&waiting, outcome);
            verdict = if matched { Verdict::Drop } else { self.red.decide(arrival.markable) };
        }
        if verdict == Verdict::Drop || !arrival.fits(waiting.packet.bytes) {
            outcome.drop(&waiting);
            return;
        }
        if verdict == Verdict::Mark {
            outcome.mark(&mut waiting);
        }
        self.fifo.push(waiting);
    }

    fn dequeue(&mut self, _now: Instant, _outcome: &mut QueueOutcome) -> Option<Waiting> {
        self.fifo.pop()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn heap_bytes(&self) -> usize {
        self.fifo.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{arrival, queue_context, waiting};
    use waterfill_network::Level;

    /// Returns a queue of these flows' packets. Its average is above the lower threshold, and RED drops almost nothing.
    fn choke(flows: &[u32]) -> Choke {
        let spec = RedSpec {
            min_threshold: Level::Packets(0.0),
            max_threshold: Level::Packets(1e9),
            max_p: 1e-12,
            weight: 1.0,
            gentle: true,
            ecn: true,
        };
        let mut choke = Choke::new(&spec, queue_context());
        for &flow in flows {
            choke.fifo.push(waiting(flow, Instant::ZERO));
        }
        choke
    }

    /// Enqueues a packet of a flow. Returns the number of packets dropped.
    fn enqueue(choke: &mut Choke, flow: u32) -> usize {
        let mut outcome = QueueOutcome::default();
        let arrival = arrival(choke.backlog(), u64::MAX);
        choke.enqueue(waiting(flow, Instant::ZERO), &arrival, &mut outcome);
        outcome.dropped.len()
    }

    #[test]
    fn a_match_drops_both_packets() {
        let mut alone = choke(&[7, 7, 7]);
        assert_eq!(enqueue(&mut alone, 7), 2);
        assert_eq!(alone.backlog().packets, 2);
        assert_eq!(enqueue(&mut alone, 8), 0);
        assert_eq!(alone.backlog().packets, 3);
        assert_eq!(enqueue(&mut choke(&[]), 7), 0, "nothing to draw from");
    }

    #[test]
    fn the_drop_probability_is_the_flows_share_of_the_queue() {
        // Flow 1 has three packets of ten: 30 % of its arrivals match.
        let mut hits = 0;
        let mut one = choke(&[1, 2, 2, 1, 2, 2, 2, 1, 2, 2]);
        let n = 10_000;
        for _ in 0..n {
            let before: Vec<Waiting> = one.fifo.packets.iter().copied().collect();
            hits += usize::from(enqueue(&mut one, 1) == 2);
            one.fifo = Fifo::default();
            for packet in before {
                one.fifo.push(packet);
            }
        }
        let sigma = (f64::from(n) * 0.3 * 0.7).sqrt();
        assert!((hits as f64 - f64::from(n) * 0.3).abs() < 5.0 * sigma, "{hits}");
    }

    #[test]
    fn no_packet_is_drawn_below_the_threshold() {
        let mut quiet = choke(&[1; 9]);
        quiet.red = Red::new(
            &RedSpec {
                min_threshold: Level::Packets(10.0),
                max_threshold: Level::Packets(30.0),
                max_p: 0.1,
                weight: 1.0,
                gentle: true,
                ecn: true,
            },
            queue_context(),
        );
        assert_eq!(enqueue(&mut quiet, 1), 0); // 9 packets wait
        assert!(enqueue(&mut quiet, 1) > 0); // 10 packets wait
    }
}
