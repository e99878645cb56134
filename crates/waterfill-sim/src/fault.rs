//! Faults of a wire: packets are lost, arrive late, or arrive twice. Each fault has its own random stream.

use std::collections::VecDeque;

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::link::ReorderSpec;
use waterfill_network::loss::{Loss, LossSpec};
use waterfill_network::random::uniform;

use crate::packet::{Flags, Packet, Role};
use crate::random::{Part, stream};

/// The faults of one link direction.
#[derive(Debug)]
pub(crate) struct Faults {
    loss: Option<(Loss, Pcg64)>,
    /// Probability that a packet arrives late, and its stream.
    late: Option<(f64, Pcg64)>,
    /// Probability that a packet arrives twice, and its stream.
    twice: Option<(f64, Pcg64)>,
    lateness: Duration,
    /// Packets that arrive out of the order of the wire, by arrival time.
    reordered: VecDeque<(Instant, Packet)>,
}

impl Faults {
    /// Builds the faults of a link direction; `None` if it has none.
    pub(crate) fn new(
        seed: u64,
        link: u32,
        loss: Option<LossSpec>,
        reorder: Option<ReorderSpec>,
        duplicate: f64,
    ) -> Option<Box<Self>> {
        let faults = Self {
            loss: loss.map(|spec| (Loss::new(spec), stream(seed, link, Part::Loss))),
            late: reorder.map(|spec| (spec.share, stream(seed, link, Part::Reorder))),
            twice: (duplicate > 0.0).then(|| (duplicate, stream(seed, link, Part::Duplicate))),
            lateness: reorder.map_or(Duration::ZERO, |spec| Duration::from_secs(spec.delay_s)),
            reordered: VecDeque::new(),
        };
        let any = faults.loss.is_some() || faults.late.is_some() || faults.twice.is_some();
        any.then(|| Box::new(faults))
    }

    /// Draws the faults of a packet that starts its transmission; returns whether it is lost.
    pub(crate) fn impair(&mut self, role: Role, flags: &mut Flags) -> bool {
        if let Some((loss, rng)) = &mut self.loss {
            if loss.is_lost(|| matches!(role, Role::Data | Role::Traffic), rng) {
                flags.set(Flags::LOST);
                return true;
            }
        }
        for (fault, flag) in [(&mut self.late, Flags::LATE), (&mut self.twice, Flags::TWICE)] {
            if let Some((share, rng)) = fault {
                if uniform(rng) < *share {
                    flags.set(flag);
                }
            }
        }
        false
    }

    /// How much later than in order a late packet arrives.
    pub(crate) const fn lateness(&self) -> Duration {
        self.lateness
    }

    /// Stores a packet that arrives at its own time.
    pub(crate) fn add_reordered(&mut self, arrives: Instant, packet: Packet) {
        let place = self.reordered.partition_point(|&(at, _)| at <= arrives);
        self.reordered.insert(place, (arrives, packet));
    }

    /// Returns the reordered packet that arrives first.
    pub(crate) fn first_reordered(&self) -> Option<Packet> {
        self.reordered.front().map(|&(_, packet)| packet)
    }

    /// Takes out the reordered packet that arrives first.
    pub(crate) fn deliver_reordered(&mut self) -> Option<Packet> {
        self.reordered.pop_front().map(|(_, packet)| packet)
    }

    /// Reordered packets on their way.
    pub(crate) fn reordered_packets(&self) -> usize {
        self.reordered.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_losses_are_of_data_only() {
        let mut faults = Faults::new(1, 0, Some(LossSpec::Periodic { every: 1 }), None, 0.0).unwrap();
        for role in [Role::Syn, Role::SynAck, Role::Ack] {
            assert!(!faults.impair(role, &mut Flags::default()), "{role:?}");
        }
        assert!(faults.impair(Role::Traffic, &mut Flags::default()));
        assert!(faults.impair(Role::Data, &mut Flags::default()));
    }

    #[test]
    fn each_fault_has_its_own_probability() {
        let late = ReorderSpec { share: 0.2, delay_s: 0.001 };
        let count = |loss| {
            let mut faults = Faults::new(1, 0, loss, Some(late), 0.1).unwrap();
            let mut count = [0u32; 3];
            for _ in 0..100_000 {
                let mut flags = Flags::default();
                faults.impair(Role::Data, &mut flags);
                for (n, flag) in count.iter_mut().zip([Flags::LOST, Flags::LATE, Flags::TWICE]) {
                    *n += u32::from(flags.has(flag));
                }
            }
            count
        };
        let [lost, late_ones, twice] = count(None);
        assert_eq!(lost, 0);
        assert!((f64::from(late_ones) - 20_000.0).abs() < 5.0 * 126.5, "{late_ones}"); // √(n · 0.16)
        assert!((f64::from(twice) - 10_000.0).abs() < 5.0 * 94.9, "{twice}"); // √(n · 0.09)
        let half = count(Some(LossSpec::Independent { p: 0.5 }));
        assert!((f64::from(half[1]) - 10_000.0).abs() < 5.0 * 94.9, "a lost packet has no other fault: {half:?}");
        assert!(Faults::new(1, 0, None, None, 0.0).is_none());
    }
}
