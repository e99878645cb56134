//! Dual-queue coupled AQM with PI2 (DualPI2, RFC 9332 Appendix A).
//!
//! ```text
//!              ECT(1), CE ┌─────────┐ p_L = max(ramp, k p′): mark
//!            ┌───────────▶│ L queue │──────────┐
//!   packets ─┤            └─────────┘          ├─▶ weighted: L first, C gets its share
//!            └───────────▶│ C queue │──────────┘
//!        Not-ECT, ECT(0)  └─────────┘ p_C = p′²: drop, or mark ECT(0)
//! ```
//!
//! A controller raises the base probability p′ while the longer of both delays is above the target. Squared, p′ suits
//! classic laws, whose rate is inverse to √p; scaled by the coupling factor k, it suits scalable ones, whose rate is inverse
//! to p. Overload, when k p′ reaches 1, is that of Appendix A.2: L packets are dropped with p_C, and ECN saves none.
//!
//! Readings: the queue lengths and delays exclude the packet in service, as everywhere in this crate. The ramp acts while
//! more than `ramp_packets` wait behind the packet (Th_len). The scheduler, which the RFC leaves open, is weighted round
//! robin by bytes that counts only while both queues hold packets. It starts with L.

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::DualPi2Spec;

use super::discipline::{Arrival, Backlog, Fifo, QueueOutcome, Scheduler, Waiting};
use crate::packet::{Flags, Packet};

/// Maximum L4S probability, p_Lmax (`[rfc9332:A.1]`).
const P_L_MAX: f64 = 1.0;

/// `[rfc9332:A.1]` Returns the sampling interval Tupdate.
fn update_interval_s(target_s: f64, rtt_max_s: f64) -> f64 {
    target_s.min(rtt_max_s / 3.0)
}

/// `[rfc9332:A.1]` Returns the integral gain in Hz.
fn alpha_hz(update_s: f64, rtt_max_s: f64) -> f64 {
    0.1 * update_s / (rtt_max_s * rtt_max_s)
}

/// `[rfc9332:A.1]` Returns the proportional gain in Hz.
fn beta_hz(rtt_max_s: f64) -> f64 {
    0.3 / rtt_max_s
}

/// `[rfc9332:A.1]` Returns the classic probability from which ECN is turned off.
fn p_c_max(coupling: f64) -> f64 {
    (1.0 / (coupling * coupling)).min(1.0)
}

/// Base PI controller of both queues.
#[derive(Clone, Debug)]
struct BaseController {
    target_s: f64,
    alpha_hz: f64,
    beta_hz: f64,
    /// Base probability p′, in [0, 1].
    probability: f64,
    delay_before_s: f64,
}

impl BaseController {
    /// `[rfc9332:A.1]` Updates p′ from the longer of both queues' delays (dualpi2_update).
    fn update(&mut self, delay_s: f64) {
        let step = self.alpha_hz * (delay_s - self.target_s) + self.beta_hz * (delay_s - self.delay_before_s);
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        self.delay_before_s = delay_s;
    }

    /// `[rfc9332:A.1]` Returns the classic probability p_C = p′².
    fn classic(&self) -> f64 {
        self.probability * self.probability
    }
}

/// `[rfc9332:A.1]` Decides with a given likelihood, evenly spread instead of randomly (recur).
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn is_due(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let due = self.0 > 1.0;
        if due {
            self.0 -= 1.0;
        }
        due
    }
}

/// Fate of a packet at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Send,
    Mark,
    Drop,
}

/// DualPI2 queue of one link direction.
#[derive(Debug)]
pub(super) struct DualPi2 {
    spec: DualPi2Spec,
    controller: BaseController,
    update: Duration,
    next_update: Instant,
    low_latency: Fifo,
    classic: Fifo,
    low_latency_recurrence: Recurrence,
    classic_recurrence: Recurrence,
    /// Bytes that the classic queue may send before the L queue, weighted; negative while L is owed.
    credit: f64,
}

impl DualPi2 {
    pub(super) fn new(spec: &DualPi2Spec) -> Self {
        let update_s = update_interval_s(spec.target_s, spec.rtt_max_s);
        let update = Duration::from_secs(update_s);
        Self {
            controller: BaseController {
                target_s: spec.target_s,
                alpha_hz: alpha_hz(update_s, spec.rtt_max_s),
                beta_hz: beta_hz(spec.rtt_max_s),
                probability: 0.0,
                delay_before_s: 0.0,
            },
            update,
            next_update: Instant::ZERO + update,
            low_latency: Fifo::default(),
            classic: Fifo::default(),
            low_latency_recurrence: Recurrence::default(),
            classic_recurrence: Recurrence::default(),
            credit: 0.0,
            spec: spec.clone(),
        }
    }

    /// Runs the updates that were due until now.
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            let before = (self.controller.probability, self.controller.delay_before_s);
            self.controller.update(self.delay_s(self.next_update));
            self.next_update += self.update;
            let rests = before == (self.controller.probability, self.controller.delay_before_s);
            if rests && self.backlog() == Backlog::default() && self.next_update <= now {
                // Nothing changes any more until a packet comes.
                let missed = now.since(self.next_update).as_ps() / self.update.as_ps() + 1;
                self.next_update += self.update * missed;
            }
        }
    }

    /// Returns the longer of both queues' delays, each the time for which the head has waited.
    fn delay_s(&self, now: Instant) -> f64 {
        let wait = |fifo: &Fifo| fifo.packets.front().map_or(Duration::ZERO, |head| now.since(head.since));
        wait(&self.classic).max(wait(&self.low_latency)).as_secs()
    }

    /// `[rfc9332:A.1]` Returns the coupled L4S probability p_CL = k p′.
    fn coupled(&self) -> f64 {
        self.spec.coupling * self.controller.probability
    }

    /// `[rfc9332:A.1]` Returns the native probability of the L queue (laqm): a ramp, or a step if its range is zero.
    fn native(&self, delay_s: f64) -> f64 {
        let above_s = delay_s - self.spec.ramp_start_s;
        if self.low_latency.packets.len() as u64 <= self.spec.ramp_packets || above_s < 0.0 {
            0.0
        } else if above_s >= self.spec.ramp_range_s {
            P_L_MAX
        } else {
            above_s / self.spec.ramp_range_s
        }
    }

    /// Returns true if the next packet comes from the L queue, and counts the turn if both queues hold packets.
    fn serves_low_latency(&mut self) -> bool {
        let (Some(low), Some(classic)) = (self.low_latency.packets.front(), self.classic.packets.front()) else {
            self.credit = 0.0;
            return self.classic.packets.is_empty();
        };
        let low_next = self.credit <= 0.0;
        let (next, weight) =
            if low_next { (low, self.spec.classic_share) } else { (classic, self.spec.classic_share - 1.0) };
        self.credit += weight * f64::from(next.packet.bytes);
        low_next
    }

    /// `[rfc9332:A.2]` Decides on a packet that has left the L queue after this time.
    fn decide_low_latency(&mut self, delay_s: f64) -> Fate {
        let coupled = self.coupled();
        if coupled < P_L_MAX {
            let marks = self.low_latency_recurrence.is_due(self.native(delay_s).max(coupled));
            return if marks { Fate::Mark } else { Fate::Send };
        }
        if self.low_latency_recurrence.is_due(self.controller.classic()) {
            Fate::Drop
        } else if self.low_latency_recurrence.is_due(P_L_MAX) {
            Fate::Mark
        } else {
            Fate::Send
        }
    }

    /// `[rfc9332:A.2]` Decides on a packet that has left the classic queue.
    fn decide_classic(&mut self, packet: &Packet) -> Fate {
        let probability = self.controller.classic();
        if !self.classic_recurrence.is_due(probability) {
            Fate::Send
        } else if packet.flags.has(Flags::MARKABLE) && probability < p_c_max(self.spec.coupling) {
            Fate::Mark
        } else {
            Fate::Drop
        }
    }
}

/// `[rfc9332:A.1]` Returns true if a packet belongs to the L queue: its ECN field is ECT(1) or CE.
fn is_low_latency(packet: &Packet) -> bool {
    packet.flags.is_l4s() || (packet.flags.has(Flags::MARKABLE) && packet.flags.has(Flags::MARKED))
}

impl Scheduler for DualPi2 {
    fn enqueue(&mut self, waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        self.catch_up(waiting.since);
        if !arrival.fits(waiting.packet.bytes) {
            outcome.drop(&waiting);
        } else if is_low_latency(&waiting.packet) {
            self.low_latency.push(waiting);
        } else {
            self.classic.push(waiting);
        }
    }

    fn dequeue(&mut self, now: Instant, outcome: &mut QueueOutcome) -> Option<Waiting> {
        self.catch_up(now);
        loop {
            let (mut head, fate) = if self.serves_low_latency() {
                let head = self.low_latency.pop()?;
                (head, self.decide_low_latency(now.since(head.since).as_secs()))
            } else {
                let head = self.classic.pop()?;
                (head, self.decide_classic(&head.packet))
            };
            match fate {
                Fate::Send => return Some(head),
                Fate::Mark => {
                    outcome.mark(&mut head);
                    return Some(head);
                }
                Fate::Drop => outcome.drop(&head),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        let (low, classic) = (self.low_latency.backlog(), self.classic.backlog());
        Backlog { bytes: low.bytes + classic.bytes, packets: low.packets + classic.packets }
    }

    fn heap_bytes(&self) -> usize {
        self.low_latency.heap_bytes() + self.classic.heap_bytes()
    }
}

#[cfg(test)]
mod tests;
