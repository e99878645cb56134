//! Proportional integral controller enhanced (PIE, RFC 8033): drops arriving packets with a probability that a controller
//! updates from the queueing delay.
//!
//! ```text
//!   p ← p + s (α (d − target) + β (d − d_old))    every `update`, s a scale that falls with p
//! ```
//!
//! The options of RFC 8033 §5 that act here are ECN (§5.1), derandomization (§5.4) and the cap on a step (§5.5). The law
//! is always on (§5.3 would turn it off below a third of the buffer).
//!
//! Readings: the delay d is the sojourn time of the last packet that has left, zero once the queue is empty (§4.3 and
//! §5.2: direct measurement by timestamps, as Linux does). It excludes the packet in service, as everywhere in this crate.
//! The mean packet size is the scenario's full packet.

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::PieSpec;
use waterfill_network::random::uniform;

use super::discipline::{Arrival, Backlog, Fifo, QueueContext, QueueOutcome, Scheduler, Verdict, Waiting};
use super::flow_queues::FlowLaw;

/// Drop probability below which a short delay lets every packet pass (`[rfc8033:§4.1]`).
const CALM_PROBABILITY: f64 = 0.2;
/// Backlog that is never dropped, in full packets (`[rfc8033:§4.1]`).
const CALM_PACKETS: u64 = 2;
/// Probabilities below which the controller's step is divided (`[rfc8033:§4.2]`).
const SCALES: [(f64, f64); 6] = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// Factor of the probability in an update that finds the queue empty again (`[rfc8033:§4.2]`).
const DECAY: f64 = 0.98;
/// Maximum step of the probability once it is [`CAPPED_FROM`] (`[rfc8033:§5.5]`).
const STEP_MAX: f64 = 0.02;
const CAPPED_FROM: f64 = 0.1;
/// Accumulated probability below which no packet is dropped, and from which the next one is (`[rfc8033:§5.4]`).
const SPREAD: (f64, f64) = (0.85, 8.5);

/// `[rfc8033:§4.2]` Returns the change of the drop probability for a delay and the delay one update ago.
fn step(spec: &PieSpec, drop_probability: f64, delay_s: f64, delay_before_s: f64) -> f64 {
    let step = spec.alpha_hz * (delay_s - spec.target_s) + spec.beta_hz * (delay_s - delay_before_s);
    let scale = SCALES.iter().find(|&&(below, _)| drop_probability < below).map_or(1.0, |&(_, scale)| scale);
    let step = step / scale;
    if drop_probability >= CAPPED_FROM { step.min(STEP_MAX) } else { step }
}

/// PIE law of one first-in-first-out queue.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    spec: PieSpec,
    target: Duration,
    update: Duration,
    max_burst: Duration,
    packet_bytes: u64,
    drop_probability: f64,
    /// Sum of the probabilities with which packets have been considered since the last drop.
    accumulated: f64,
    /// Time for which nothing is dropped.
    burst_allowance: Duration,
    /// Sojourn time of the last packet that has left; zero if the queue is empty.
    delay: Duration,
    /// Value of `delay` at the last update.
    delay_before: Duration,
    next_update: Instant,
}

impl Pie {
    pub(super) fn new(spec: &PieSpec, packet_bytes: u16) -> Self {
        let update = Duration::from_secs(spec.update_s);
        Self {
            target: Duration::from_secs(spec.target_s),
            update,
            max_burst: Duration::from_secs(spec.max_burst_s),
            packet_bytes: u64::from(packet_bytes),
            drop_probability: 0.0,
            accumulated: 0.0,
            burst_allowance: Duration::ZERO,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            next_update: Instant::ZERO + update,
            spec: spec.clone(),
        }
    }

    /// Runs the updates that were due until now.
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            let before = (self.drop_probability, self.burst_allowance, self.delay_before);
            self.run_update();
            self.next_update += self.update;
            if before == (self.drop_probability, self.burst_allowance, self.delay_before) && self.next_update <= now {
                // Nothing changes any more until a packet comes or leaves.
                let missed = now.since(self.next_update).as_ps() / self.update.as_ps() + 1;
                self.next_update += self.update * missed;
            }
        }
    }

    /// `[rfc8033:§4.2]` Updates the drop probability, and the burst allowance (`[rfc8033:§4.4]`).
    fn run_update(&mut self) {
        let (delay_s, before_s) = (self.delay.as_secs(), self.delay_before.as_secs());
        self.drop_probability += step(&self.spec, self.drop_probability, delay_s, before_s);
        if self.delay.is_zero() && self.delay_before.is_zero() {
            self.drop_probability *= DECAY;
        }
        self.drop_probability = self.drop_probability.clamp(0.0, 1.0);
        self.delay_before = self.delay;
        self.burst_allowance = self.burst_allowance - self.update;
    }

    /// Returns true if this delay is below half of the target.
    fn is_short(&self, delay: Duration) -> bool {
        delay * 2 < self.target
    }

    /// `[rfc8033:§4.1, §5.4]` Returns true if the law drops a packet that finds this backlog.
    fn drops_early(&mut self, backlog: Backlog, rng: &mut Pcg64) -> bool {
        let calm = self.is_short(self.delay_before) && self.drop_probability < CALM_PROBABILITY;
        if calm || backlog.bytes <= CALM_PACKETS * self.packet_bytes {
            return false;
        }
        if self.drop_probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.drop_probability;
        self.accumulated >= SPREAD.0 && (self.accumulated >= SPREAD.1 || uniform(rng) < self.drop_probability)
    }

    /// Notes that a packet did not fit into the buffer.
    fn on_overflow(&mut self, now: Instant) {
        self.catch_up(now);
        self.accumulated = 0.0;
    }
}

impl FlowLaw for Pie {
    fn on_arrival(&mut self, now: Instant, backlog: Backlog, markable: bool, rng: &mut Pcg64) -> Verdict {
        self.catch_up(now);
        let verdict = if self.burst_allowance.is_zero() && self.drops_early(backlog, rng) {
            self.accumulated = 0.0;
            // `[rfc8033:§5.1]` Above the threshold congestion is too heavy for marks alone.
            let marks = self.spec.ecn && markable && self.drop_probability < self.spec.mark_below;
            if marks { Verdict::Mark } else { Verdict::Drop }
        } else {
            Verdict::Accept
        };
        // `[rfc8033:§4.4]`
        if self.drop_probability == 0.0 && self.is_short(self.delay) && self.is_short(self.delay_before) {
            self.burst_allowance = self.max_burst;
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant, fifo: &mut Fifo, _outcome: &mut QueueOutcome) -> Option<Waiting> {
        self.catch_up(now);
        let head = fifo.pop()?;
        self.delay = if fifo.bytes == 0 { Duration::ZERO } else { now.since(head.since) };
        Some(head)
    }
}

/// PIE as the only queue of a link. Packets that exceed the buffer limit are dropped.
#[derive(Debug)]
pub(super) struct PieQueue {
    law: Pie,
    fifo: Fifo,
    rng: Pcg64,
}

impl PieQueue {
    pub(super) fn new(spec: &PieSpec, context: QueueContext) -> Self {
        Self { law: Pie::new(spec, context.packet_bytes), fifo: Fifo::default(), rng: context.rng }
    }
}

impl Scheduler for PieQueue {
    fn enqueue(&mut self, mut waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        if !arrival.fits(waiting.packet.bytes) {
            self.law.on_overflow(waiting.since);
            return outcome.drop(&waiting);
        }
        match self.law.on_arrival(waiting.since, self.fifo.backlog(), arrival.markable, &mut self.rng) {
            Verdict::Accept => {}
            Verdict::Mark => outcome.mark(&mut waiting),
            Verdict::Drop => return outcome.drop(&waiting),
        }
        self.fifo.push(waiting);
    }

    fn dequeue(&mut self, now: Instant, outcome: &mut QueueOutcome) -> Option<Waiting> {
        self.law.dequeue(now, &mut self.fifo, outcome)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn heap_bytes(&self) -> usize {
        self.fifo.heap_bytes()
    }
}

#[cfg(test)]
mod tests;
