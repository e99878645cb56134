//! Scheduled changes of a link direction over time.
//!
//! All changes are known from the start. So fluid that enters a queue knows its departure and arrival times, as on a
//! link without changes.
//!
//! Rates change at their exact times. A change of the delay or of the state takes effect at the step's boundary that is
//! nearest to it.

use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::LinkSpec;

/// State of a link direction from a given time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) from: Instant,
    /// Rate at which the link sends; zero while the link is held or down.
    pub(crate) rate: Rate,
    /// Capacity as router laws see it: the last rate above zero.
    pub(crate) capacity: Rate,
    pub(crate) up: bool,
    delay: Duration,
    /// Bits that the link could have sent before this piece begins.
    bits: f64,
}

/// States of a link direction over a run, in order of time and without gaps. The first state begins at zero.
#[derive(Debug)]
pub(crate) struct Course(Box<[Piece]>);

impl Course {
    /// Creates the course of a link, or returns `None` for a link without changes. `step` is the length of a step.
    pub(crate) fn new(spec: &LinkSpec, step: Duration) -> Option<Self> {
        if spec.changes.is_empty() {
            return None;
        }
        let capacity = Rate::from_bps(spec.rate_bps);
        let delay = Duration::from_secs(spec.delay_s);
        let mut now = Piece { from: Instant::ZERO, rate: capacity, capacity, up: true, delay, bits: 0.0 };
        let mut rate = capacity;
        let mut pieces = vec![now];
        for change in &spec.changes {
            let mut from = Instant::from_secs(change.at_s);
            if change.delay_s.is_some() || change.up.is_some() {
                from = Instant::ZERO + step * (from.since(Instant::ZERO) / step).round() as u64;
            }
            let from = from.max(now.from);
            now.bits += now.rate.as_bps() * from.since(now.from).as_secs();
            rate = change.rate_bps.map_or(rate, Rate::from_bps);
            let up = change.up.unwrap_or(now.up);
            now = Piece {
                from,
                rate: if up { rate } else { Rate::ZERO },
                capacity: if rate > Rate::ZERO { rate } else { now.capacity },
                up,
                delay: change.delay_s.map_or(now.delay, Duration::from_secs),
                bits: now.bits,
            };
            pieces.push(now);
        }
        Some(Self(pieces.into()))
    }

    /// Returns the states that begin after a time.
    pub(crate) fn after(&self, time: Instant) -> &[Piece] {
        &self.0[self.0.partition_point(|piece| piece.from <= time)..]
    }

    /// Returns the state in effect at a time.
    pub(crate) fn at(&self, time: Instant) -> &Piece {
        &self.0[self.0.partition_point(|piece| piece.from <= time).max(1) - 1]
    }

    /// Returns the number of bits that the link can send up to a time.
    pub(crate) fn bits(&self, time: Instant) -> f64 {
        let piece = self.at(time);
        piece.bits + piece.rate.as_bps() * time.since(piece.from).as_secs()
    }

    /// Returns the departure time of a byte that arrives at `time` and finds `queue_bytes` bytes in the queue.
    pub(crate) fn leaves(&self, time: Instant, queue_bytes: f64) -> Instant {
        if queue_bytes <= 0.0 {
            return time;
        }
        let bits = self.bits(time) + queue_bytes * 8.0;
        // The last piece that begins before that; of two at the same place, the link sends in the second.
        let piece = &self.0[self.0.partition_point(|piece| piece.bits <= bits).max(1) - 1];
        if piece.rate <= Rate::ZERO {
            return Instant::NEVER; // only the last piece has no end
        }
        time.max(piece.from + Duration::from_secs((bits - piece.bits) / piece.rate.as_bps()))
    }

    /// Returns the departure interval of one step's fluid, which would leave between `from` and `to` if no period
    /// without a rate interrupted it.
    ///
    /// If a period without a rate interrupts the row, the whole row leaves on the side of its larger part.
    pub(crate) fn leaving(&self, from: Instant, to: Instant) -> (Instant, Instant) {
        let (mut from, mut to) = (from, to);
        let first = self.0.partition_point(|piece| piece.from <= from).max(1) - 1;
        for (i, piece) in self.0.iter().enumerate().skip(first) {
            if piece.from >= to {
                break;
            }
            if piece.rate > Rate::ZERO {
                continue;
            }
            let ends = self.0.get(i + 1).map_or(Instant::NEVER, |next| next.from);
            let before = piece.bits - self.bits(from);
            if from < piece.from && (ends >= to || before >= self.bits(to) - piece.bits) {
                to = piece.from;
            } else {
                from = ends;
                to = to.max(ends);
            }
        }
        (from, to)
    }

    /// Returns the time to the far end for a packet whose transmission begins at `time`.
    pub(crate) fn latency(&self, time: Instant, packet_bytes: f64) -> Duration {
        let piece = self.at(time);
        piece.delay + sending(packet_bytes, piece.capacity)
    }

    /// Returns the shortest latency over the whole course.
    pub(crate) fn latency_min(&self, packet_bytes: f64) -> Duration {
        self.0.iter().map(|piece| piece.delay + sending(packet_bytes, piece.capacity)).min().unwrap_or(Duration::ZERO)
    }
}

fn sending(packet_bytes: f64, rate: Rate) -> Duration {
    Duration::from_secs(packet_bytes * 8.0 / rate.as_bps())
}

#[cfg(test)]
mod tests {
    use waterfill_laws::units::Volume;
    use waterfill_network::ChangeSpec;

    use super::*;

    fn link() -> LinkSpec {
        LinkSpec::new("l", Rate::from_bps(8e6), Duration::from_millis(10), Volume::from_bytes(1e6))
    }

    fn secs(s: f64) -> Instant {
        Instant::from_secs(s)
    }

    /// Returns a course of 8 Mbit/s for 1 s, 4 Mbit/s for 1 s, no rate for 1 s and then 16 Mbit/s.
    fn course() -> Course {
        let mut spec = link();
        let rate = |at_s, rate_bps| ChangeSpec { at_s, rate_bps: Some(rate_bps), ..ChangeSpec::default() };
        spec.changes = vec![rate(1.0, 4e6), rate(2.0, 0.0), rate(3.0, 16e6)];
        Course::new(&spec, Duration::from_millis(1)).unwrap()
    }

    #[test]
    fn bytes_leave_by_the_integral_of_the_rate() {
        let course = course();
        assert_eq!(course.leaves(secs(0.5), 0.0), secs(0.5));
        assert_eq!(course.leaves(secs(0.5), 400e3), secs(0.9));
        assert_eq!(course.leaves(secs(0.5), 750e3), secs(1.5));
        assert_eq!(course.leaves(secs(0.5), 1200e3), secs(3.1));
        // What finds the link held leaves when it sends again.
        assert_eq!(course.leaves(secs(2.5), 200e3), secs(3.1));
    }

    #[test]
    fn an_interrupted_row_leaves_on_the_side_of_its_larger_part() {
        let course = course();
        assert_eq!(course.leaving(secs(0.5), secs(1.5)), (secs(0.5), secs(1.5)));
        assert_eq!(course.leaving(secs(1.9), secs(3.01)), (secs(1.9), secs(2.0)));
        assert_eq!(course.leaving(secs(1.99), secs(3.1)), (secs(3.0), secs(3.1)));
        assert_eq!(course.leaving(secs(2.2), secs(3.1)), (secs(3.0), secs(3.1)));
    }

    #[test]
    fn delays_and_states_begin_with_a_step() {
        let mut spec = link();
        spec.changes = vec![
            ChangeSpec { at_s: 1.0004, delay_s: Some(0.02), ..ChangeSpec::default() },
            ChangeSpec { at_s: 2.0006, up: Some(false), ..ChangeSpec::default() },
        ];
        let course = Course::new(&spec, Duration::from_millis(1)).unwrap();
        let ms = Duration::from_millis;
        assert_eq!(course.latency(secs(0.9999), 1000.0), ms(11));
        assert_eq!(course.latency(secs(1.0), 1000.0), ms(21));
        assert_eq!(course.latency_min(1000.0), ms(11));
        assert_eq!(course.after(secs(1.0)).len(), 1);
        let down = course.at(secs(2.001));
        assert!(!down.up && down.rate == Rate::ZERO && down.capacity == Rate::from_bps(8e6));
        assert_eq!(course.leaves(secs(2.1), 1.0), Instant::NEVER);
    }
}
