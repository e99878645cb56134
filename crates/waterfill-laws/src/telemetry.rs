//! In-band network telemetry (INT): each link that a packet crosses appends a record, and the receiver echoes the stack.
//!
//! A header ([`Int`](crate::int::Int)) holds the record of one link only, so packets stay small. The simulator moves it to
//! the packet's [`Stack`] when the packet leaves the link, and passes the echoed stack to the source by
//! [`Source::on_stack`](crate::protocol::Source::on_stack).

use crate::units::{Duration, Instant, Rate, Volume};

/// Maximum number of records in a stack: five routers, and the sender's own link.
pub const HOPS_MAX: usize = 6;

/// Bytes of the stack on the wire: two for the number of records and the path, and eight for each of five routers.
///
/// A host knows its own link, whose record takes no bytes.
pub const STACK_BYTES: usize = 42;

/// Record of one link: what its transmitter had sent and what waited when the packet's transmission started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hop {
    /// Time of the departure on the link's clock.
    pub time: Instant,
    /// Number of bytes that the link has sent, this packet included.
    pub sent: u64,
    /// Number of bytes that wait in the queue, without this packet.
    pub queue: u32,
    /// Identifier of the link.
    pub link: u32,
    /// Rate of the link at that time.
    pub rate: Rate,
}

impl Hop {
    /// Returns the time since an earlier record of the same link. Returns `None` if `last` is of another link, is not
    /// earlier, or is of a counter that has restarted.
    #[must_use]
    pub fn since(&self, last: &Self) -> Option<Duration> {
        let fits = self.link == last.link && self.time > last.time && self.sent >= last.sent;
        fits.then(|| self.time.since(last.time))
    }

    /// Returns the rate at which the link has sent during the time `lasted` since an earlier record.
    #[must_use]
    pub fn sent_rate(&self, last: &Self, lasted: Duration) -> Rate {
        Volume::from_bytes((self.sent - last.sent) as f64) / lasted
    }

    /// Returns the queue.
    #[must_use]
    pub fn queued(&self) -> Volume {
        Volume::from_bytes(f64::from(self.queue))
    }
}

/// Records of the links that a packet has crossed, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stack {
    hops: [Hop; HOPS_MAX],
    count: u8,
}

impl Stack {
    /// Appends a record. A full stack stays as it is.
    pub fn push(&mut self, hop: Hop) {
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            *place = hop;
            self.count += 1;
        }
    }

    /// Returns the records.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.count)]
    }

    /// Returns records of the same links at time zero, when they had sent nothing.
    #[must_use]
    pub fn zeros(&self) -> Self {
        let hops = self.hops.map(|hop| Hop { time: Instant::ZERO, sent: 0, queue: 0, ..hop });
        Self { hops, count: self.count }
    }

    /// Removes all records.
    pub const fn clear(&mut self) {
        self.count = 0;
    }
}

/// `[hpcc-2019:alg1.9]` `[powertcp-2022:alg1.24]` Returns the level of a link smoothed over the base RTT:
/// (1 − Δt/T)·level + (Δt/T)·new, with the time Δt ≤ T over which the new level was measured.
#[must_use]
pub fn smoothed(level: f64, new: f64, lasted: Duration, base_rtt: Duration) -> f64 {
    let weight = if lasted < base_rtt { lasted / base_rtt } else { 1.0 };
    (1.0 - weight) * level + weight * new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    /// `[hpcc-2019:alg1.9]` `[powertcp-2022:alg1.24]` A level over 4 of 10 µs weighs 0.4, one over 20 µs all.
    #[test]
    fn a_level_is_smoothed_over_the_base_rtt() {
        let of = |us| smoothed(1.0, 0.5, Duration::from_micros(us), Duration::from_micros(10));
        close(of(4), 0.8, 1e-12);
        close(of(20), 0.5, 1e-12);
    }

    /// Only an earlier record of the same link and the same counter is compared.
    #[test]
    fn records_of_other_links_are_not_compared() {
        let at = |us, sent, link| Hop { time: Instant::ZERO + Duration::from_micros(us), sent, link, ..Hop::default() };
        let last = at(5, 1000, 1);
        assert_eq!(at(9, 2500, 1).since(&last), Some(Duration::from_micros(4)));
        let rate = at(9, 2500, 1).sent_rate(&last, Duration::from_micros(4));
        assert!((rate.as_bps() / 3e9 - 1.0).abs() < 1e-12, "1500 bytes in 4 us are 3 Gbit/s, not {rate:?}");
        for other in [at(9, 2500, 2), at(5, 1000, 1), at(4, 2500, 1), at(9, 10, 1)] {
            assert_eq!(other.since(&last), None, "{other:?}");
        }
    }

    #[test]
    fn a_full_stack_keeps_its_first_records() {
        let mut stack = Stack::default();
        (0..9).for_each(|sent| stack.push(Hop { sent, ..Hop::default() }));
        assert_eq!(stack.hops().iter().map(|hop| hop.sent).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        stack.clear();
        assert!(stack.hops().is_empty());
    }
}
