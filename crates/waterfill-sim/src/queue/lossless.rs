//! Queue of a switch that drops nothing: first in, first out, with the input by which each packet came.
//!
//! The packets wait here, not in the link's ring, because a pause decides when they leave. Each departure is reported with
//! its input, whose share of the switch's buffer it frees.

use std::collections::VecDeque;

use waterfill_laws::units::Instant;

use super::Admission;
use super::discipline::{Arrival, Backlog, QueueOutcome, Scheduler, Verdict, Waiting};

/// Queue of a link that pause frames stop.
#[derive(Debug)]
pub(super) struct Lossless {
    /// Marks packets; drops none.
    marking: Admission,
    /// Waiting packets, with their inputs.
    packets: VecDeque<(Waiting, u32)>,
    bytes: u64,
}

impl Lossless {
    pub(super) const fn new(marking: Admission) -> Self {
        Self { marking, packets: VecDeque::new(), bytes: 0 }
    }
}

impl Scheduler for Lossless {
    fn enqueue(&mut self, mut waiting: Waiting, arrival: &Arrival, outcome: &mut QueueOutcome) {
        if self.marking.on_arrival(arrival) == Verdict::Mark {
            outcome.mark(&mut waiting);
        }
        self.bytes += u64::from(waiting.packet.bytes);
        self.packets.push_back((waiting, arrival.input));
    }

    fn dequeue(&mut self, _now: Instant, outcome: &mut QueueOutcome) -> Option<Waiting> {
        let (waiting, input) = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.packet.bytes);
        outcome.departed.push((input, waiting.packet.bytes));
        Some(waiting)
    }

    fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.packets.len() as u64 }
    }

    fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<(Waiting, u32)>()
    }

    fn add_by_input(&self, sums: &mut [u64]) {
        for (waiting, input) in &self.packets {
            if let Some(sum) = sums.get_mut(*input as usize) {
                *sum += u64::from(waiting.packet.bytes);
            }
        }
    }
}
