//! CHOKe: R. Pan, B. Prabhakar, K. Psounis, *CHOKe, A Stateless Active Queue Management Scheme for Approximating Fair
//! Bandwidth Allocation*, IEEE INFOCOM 2000, its Figure 1.
//!
//! While RED's average is above the lower threshold, a packet that comes is compared with one drawn at random from those
//! that wait. If both are of one flow, both are dropped; if not, RED decides. A flow that has more packets in the queue
//! loses more of them.
//!
//! Reading: the packet in service is not drawn; it does not wait any more.

use waterfill_laws::units::Instant;

use super::red::Red;
use waterfill_network::RedSpec;
use waterfill_network::random::below;

use super::{Arriving, Backlog, Discipline, Fates, Fifo, Setting, Verdict, Waiting, flow_of};

/// CHOKe on one link direction.
#[derive(Debug)]
pub(super) struct Choke {
    red: Red,
    fifo: Fifo,
}

impl Choke {
    pub(super) fn new(spec: &RedSpec, setting: Setting) -> Self {
        Self { red: Red::new(spec, setting), fifo: Fifo::default() }
    }

    /// Draws a packet, and drops it if it is of this one's flow.
    fn meets_its_own(&mut self, waiting: &Waiting, fates: &mut Fates) -> bool {
        if self.fifo.packets.is_empty() {
            return false;
        }
        let drawn = below(self.red.rng(), self.fifo.packets.len());
        let same = flow_of(&self.fifo.packets[drawn].packet) == flow_of(&waiting.packet);
        if same {
            if let Some(victim) = self.fifo.remove(drawn) {
                fates.dropped(&victim);
            }
        }
        same
    }
}

impl Discipline for Choke {
    fn enqueue(&mut self, mut waiting: Waiting, arriving: &Arriving, fates: &mut Fates) {
        let mut verdict = Verdict::Accept;
        if self.red.observe(arriving) {
            verdict =
                if self.meets_its_own(&waiting, fates) { Verdict::Drop } else { self.red.decide(arriving.markable) };
        }
        if verdict == Verdict::Drop || !arriving.fits(waiting.packet.bytes) {
            fates.dropped(&waiting);
            return;
        }
        if verdict == Verdict::Mark {
            fates.marked(&mut waiting);
        }
        self.fifo.push(waiting);
    }

    fn dequeue(&mut self, _now: Instant, _fates: &mut Fates) -> Option<Waiting> {
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
    use super::super::Level;
    use super::super::testing::{finds, packet, setting};
    use super::*;

    /// A queue of these flows' packets whose average is far above the lower threshold and takes nothing in by chance.
    fn choke(flows: &[u32]) -> Choke {
        let spec = RedSpec {
            min_threshold: Level::Packets(0.0),
            max_threshold: Level::Packets(1e9),
            max_p: 1e-12,
            weight: 1.0,
            gentle: true,
            ecn: true,
        };
        let mut choke = Choke::new(&spec, setting());
        for &flow in flows {
            choke.fifo.push(packet(flow, Instant::ZERO));
        }
        choke
    }

    fn comes(choke: &mut Choke, flow: u32) -> usize {
        let mut fates = Fates::default();
        let found = finds(choke.backlog(), u64::MAX);
        choke.enqueue(packet(flow, Instant::ZERO), &found, &mut fates);
        fates.dropped.len()
    }

    #[test]
    fn both_go_if_they_are_of_one_flow() {
        let mut alone = choke(&[7, 7, 7]);
        assert_eq!(comes(&mut alone, 7), 2);
        assert_eq!(alone.backlog().packets, 2);
        assert_eq!(comes(&mut alone, 8), 0);
        assert_eq!(alone.backlog().packets, 3);
        assert_eq!(comes(&mut choke(&[]), 7), 0, "nothing to draw from");
    }

    #[test]
    fn the_chance_is_the_share_of_the_queue() {
        // Flow 1 has three packets of ten: 30 % of its arrivals meet their own.
        let mut hits = 0;
        let mut one = choke(&[1, 2, 2, 1, 2, 2, 2, 1, 2, 2]);
        let n = 10_000;
        for _ in 0..n {
            let before: Vec<Waiting> = one.fifo.packets.iter().copied().collect();
            hits += usize::from(comes(&mut one, 1) == 2);
            one.fifo = Fifo::default();
            for waiting in before {
                one.fifo.push(waiting);
            }
        }
        let sigma = (f64::from(n) * 0.3 * 0.7).sqrt();
        assert!((hits as f64 - f64::from(n) * 0.3).abs() < 5.0 * sigma, "{hits}");
    }

    #[test]
    fn below_the_threshold_nothing_is_drawn() {
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
            setting(),
        );
        assert_eq!(comes(&mut quiet, 1), 0); // finds 9
        assert!(comes(&mut quiet, 1) > 0); // finds 10
    }
}
