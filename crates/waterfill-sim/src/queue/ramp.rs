//! Marks whose probability grows with the queue, as switches of data centers set them for DCQCN (RED without an average).

use rand_pcg::Pcg64;
use waterfill_network::random::uniform;
use waterfill_network::{Level, RampSpec};

use super::{Arrival, Verdict};

/// Marks by the queue that a packet finds: none up to `from`, all above `to`, and between with a probability that grows
/// linearly from 0 to `max_p`.
#[derive(Debug)]
pub(crate) struct Ramp {
    from: Level,
    to: f64,
    max_p: f64,
    rng: Pcg64,
}

impl Ramp {
    /// Both levels have the same unit.
    pub(super) const fn new(from: Level, spec: &RampSpec, rng: Pcg64) -> Self {
        Self { from, to: spec.to.amount(), max_p: spec.max_p, rng }
    }

    pub(super) fn on_arrival(&mut self, arrival: &Arrival) -> Verdict {
        let (queue, from) = (arrival.backlog.in_unit_of(self.from), self.from.amount());
        if !arrival.markable || queue <= from {
            return Verdict::Accept;
        }
        let probability = if queue > self.to { 1.0 } else { self.max_p * (queue - from) / (self.to - from) };
        if uniform(&mut self.rng) < probability { Verdict::Mark } else { Verdict::Accept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Backlog;
    use crate::testing;

    /// At 150 of 100 to 300 packets and at most 0.4, a quarter of the way: 0.1. 20,000 arrivals have a standard deviation
    /// of √(20000 · 0.1 · 0.9) = 42 marks.
    #[test]
    fn the_probability_grows_with_the_queue() {
        for unit in [1u64, 1500] {
            let level = |packets: f64| if unit == 1 { Level::Packets(packets) } else { Level::Bytes(1500.0 * packets) };
            let spec = RampSpec { to: level(300.0), max_p: 0.4 };
            let mut ramp = Ramp::new(level(100.0), &spec, Pcg64::new(1, 2));
            let mut marks = |packets, markable, n| {
                let backlog = Backlog { bytes: 1500 * packets, packets };
                let found = Arrival { markable, ..testing::arrival(backlog, u64::MAX) };
                (0..n).filter(|_| ramp.on_arrival(&found) == Verdict::Mark).count()
            };
            assert_eq!((marks(100, true, 1000), marks(301, true, 1000)), (0, 1000));
            assert_eq!(marks(301, false, 1000), 0, "not ECN-capable");
            for (packets, share, deviation) in [(150, 0.1, 42.0), (200, 0.2, 57.0), (300, 0.4, 69.0)] {
                let found = marks(packets, true, 20_000) as f64;
                assert!((found - 20_000.0 * share).abs() < 4.0 * deviation, "{packets}: {found}");
            }
        }
    }
}
