//! Random early detection (RED), as in Figure 2 of its paper. Source: S. Floyd, V. Jacobson, *Random Early Detection
//! Gateways for Congestion Avoidance*, IEEE/ACM Transactions on Networking 1(4), 1993. The "gentle" variant is S.
//! Floyd's recommendation of 2000.
//!
//! Readings: the averaged queue excludes the packet in service, as everywhere in this crate. The transmission time on
//! an idle link (the paper's s) is that of a full packet. Thresholds in bytes average bytes; the probability never
//! depends on the packet's size (RFC 7141). Where the probability is 1, packets are dropped even if ECN-capable (RFC
//! 3168 §7).

use rand_pcg::Pcg64;
use waterfill_laws::math;
use waterfill_laws::units::{Duration, Rate};
use waterfill_network::random::uniform;
use waterfill_network::{Level, RedSpec};

use super::discipline::{Arrival, Backlog, QueueContext, Verdict};

/// Moving average of a queue's length.
#[derive(Debug)]
pub(super) struct Average {
    unit: Level,
    weight: f64,
    /// Transmission time of a full packet.
    packet_time: Duration,
    packet_bytes: u16,
    value: f64,
}

impl Average {
    fn new(spec: &RedSpec, context: &QueueContext) -> Self {
        Self {
            unit: spec.min_threshold,
            weight: spec.weight,
            packet_time: packet_time(context.capacity, context.packet_bytes),
            packet_bytes: context.packet_bytes,
            value: 0.0,
        }
    }

    /// Updates the average at an arrival, with this backlog or after this idle time. Returns the new average.
    fn update(&mut self, backlog: Backlog, idle: Option<Duration>) -> f64 {
        self.value = match idle {
            Some(idle) => decayed(self.value, self.weight, idle / self.packet_time),
            None => averaged(self.value, self.weight, backlog.in_unit_of(self.unit)),
        };
        self.value
    }
}

/// Returns the transmission time of a full packet, which is never zero.
fn packet_time(capacity: Rate, packet_bytes: u16) -> Duration {
    capacity.time_for(u32::from(packet_bytes)).max(Duration::from_ps(1))
}

/// `[red-1993:avg]` Returns the average after an arrival: avg ← (1 − w) avg + w q.
fn averaged(avg: f64, weight: f64, queue: f64) -> f64 {
    (1.0 - weight) * avg + weight * queue
}

/// `[red-1993:idle]` Returns the average after an idle time that m packets would have filled: avg ← (1 − w)^m avg.
fn decayed(avg: f64, weight: f64, packets: f64) -> f64 {
    math::pow(1.0 - weight, packets) * avg
}

/// `[red-1993:pb]` Returns the drop probability for an average: 0 below the lower threshold, `max_p` at the upper
/// threshold.
fn base_probability(avg: f64, (min, max): (f64, f64), max_p: f64, gentle: bool) -> f64 {
    if avg < min {
        0.0
    } else if avg < max {
        max_p * (avg - min) / (max - min)
    } else if gentle && avg < 2.0 * max {
        max_p + (1.0 - max_p) * (avg - max) / max
    } else {
        1.0
    }
}

/// `[red-1993:pa]` Returns p_a = p_b / (1 − count p_b), which spreads drops evenly, with at least one in 1/p_b packets.
fn spread_probability(base: f64, count: u64) -> f64 {
    let left = 1.0 - count as f64 * base;
    if left > base { base / left } else { 1.0 }
}

/// RED law of one queue.
#[derive(Debug)]
pub(crate) struct Red {
    thresholds: (f64, f64),
    max_p: f64,
    gentle: bool,
    ecn: bool,
    average: Average,
    /// Number of packets since the last drop or mark, or since the average rose above the lower threshold; `None` while
    /// it is below.
    count: Option<u64>,
    rng: Pcg64,
}

impl Red {
    pub(super) fn new(spec: &RedSpec, context: QueueContext) -> Self {
        Self {
            thresholds: (spec.min_threshold.amount(), spec.max_threshold.amount()),
            max_p: spec.max_p,
            gentle: spec.gentle,
            ecn: spec.ecn,
            average: Average::new(spec, &context),
            count: None,
            rng: context.rng,
        }
    }

    /// Sets the capacity of the link, which converts idle time to packets.
    pub(super) fn notify_capacity(&mut self, capacity: Rate) {
        self.average.packet_time = packet_time(capacity, self.average.packet_bytes);
    }

    /// Updates the average at an arrival. Returns true if the average is not below the lower threshold.
    pub(super) fn is_above_threshold(&mut self, arrival: &Arrival) -> bool {
        let above = self.average.update(arrival.backlog, arrival.idle) >= self.thresholds.0;
        if !above {
            self.count = None;
        }
        above
    }

    pub(super) fn rng(&mut self) -> &mut Pcg64 {
        &mut self.rng
    }

    /// Decides on the last arrival, given that the average is above the lower threshold.
    pub(super) fn decide(&mut self, markable: bool) -> Verdict {
        let base = base_probability(self.average.value, self.thresholds, self.max_p, self.gentle);
        if base >= 1.0 {
            self.count = Some(0);
            return Verdict::Drop;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        if uniform(&mut self.rng) >= spread_probability(base, count) {
            return Verdict::Accept;
        }
        self.count = Some(0);
        if self.ecn && markable { Verdict::Mark } else { Verdict::Drop }
    }

    pub(super) fn on_arrival(&mut self, arrival: &Arrival) -> Verdict {
        if self.is_above_threshold(arrival) { self.decide(arrival.markable) } else { Verdict::Accept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{arrival, queue_context};

    fn spec() -> RedSpec {
        RedSpec {
            min_threshold: Level::Packets(5.0),
            max_threshold: Level::Packets(15.0),
            max_p: 0.1,
            weight: 0.25,
            gentle: true,
            ecn: true,
        }
    }

    fn queue(packets: u64) -> Arrival {
        arrival(Backlog { bytes: packets * 1500, packets }, u64::MAX)
    }

    #[test]
    fn red_1993_avg_by_hand() {
        let mut average = Average::new(&spec(), &queue_context());
        let backlog = |packets| Backlog { bytes: 1000 * packets, packets };
        assert_eq!(average.update(backlog(8), None), 2.0); // 3/4 · 0 + 1/4 · 8
        assert_eq!(average.update(backlog(10), None), 4.0); // 3/4 · 2 + 1/4 · 10
        // Idle for two packet times (1 ms each): 4 · (3/4)²; the backlog does not count.
        assert_eq!(average.update(backlog(0), Some(Duration::from_millis(2))), 2.25);
        let mut bytes = Average::new(&RedSpec { min_threshold: Level::Bytes(5e3), ..spec() }, &queue_context());
        assert_eq!(bytes.update(backlog(8), None), 2000.0);
    }

    #[test]
    fn red_1993_pb_by_hand() {
        let p = |avg, gentle| base_probability(avg, (5.0, 15.0), 0.1, gentle);
        assert_eq!(p(4.999, true), 0.0);
        assert_eq!(p(5.0, true), 0.0);
        assert_eq!(p(10.0, true), 0.05);
        assert_eq!(p(15.0, true), 0.1);
        assert_eq!(p(22.5, true), 0.55); // half of the way from 0.1 to 1
        assert_eq!(p(30.0, true), 1.0);
        assert_eq!(p(15.0, false), 1.0);
    }

    #[test]
    fn red_1993_pa_by_hand() {
        assert_eq!(spread_probability(0.1, 0), 0.1);
        assert!((spread_probability(0.1, 5) - 0.2).abs() < 1e-15); // 0.1 / 0.5
        assert!((spread_probability(0.1, 8) - 0.5).abs() < 1e-15);
        assert_eq!(spread_probability(0.1, 9), 1.0);
        assert_eq!(spread_probability(0.1, 90), 1.0);
        assert_eq!(spread_probability(0.0, 1_000_000), 0.0);
    }

    /// Gaps between drops at a constant average are uniform on 1 … 1/p_b (the second method of the RED paper).
    #[test]
    fn drops_are_spread_evenly() {
        let mut red = Red::new(&spec(), queue_context());
        red.average.value = 10.0; // p_b = 0.05: 1 … 20
        let (mut gap, mut gaps) = (0, [0u32; 21]);
        while gaps.iter().sum::<u32>() < 20_000 {
            gap += 1;
            assert!(red.is_above_threshold(&queue(10)));
            if red.decide(false) == Verdict::Drop {
                gaps[gap] += 1; // the assertion is also that gap ≤ 20
                gap = 0;
            }
        }
        // After a drop the count starts at 1, so one of the twenty gaps never occurs: 19 gaps of about 1053.
        let expected = 20_000.0 / 19.0;
        for (gap, &n) in gaps.iter().enumerate().take(20).skip(1) {
            assert!((f64::from(n) - expected).abs() < 5.0 * expected.sqrt(), "gap {gap}: {n} times");
        }
    }

    #[test]
    fn marks_ecn_capable_packets_unless_the_probability_is_one() {
        let mut red = Red::new(&spec(), queue_context());
        red.average.value = 29.0;
        red.average.weight = 1e-9;
        let marked = (0..100).filter(|_| red.on_arrival(&Arrival { markable: true, ..queue(29) }) == Verdict::Mark);
        assert!(marked.count() > 50);
        red.average.value = 31.0;
        assert_eq!(red.on_arrival(&Arrival { markable: true, ..queue(31) }), Verdict::Drop);
        red.average.value = 4.0;
        assert_eq!(red.on_arrival(&queue(1)), Verdict::Accept);
        assert_eq!(red.count, None);
    }
}
