//! What goes wrong on a wire: packets are lost, arrive late, or arrive twice. Each has its own random stream.

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
    late: Option<(f64, Pcg64)>,
    twice: Option<(f64, Pcg64)>,
    lateness: Duration,
    /// Packets that have left the order of the wire, by time of arrival.
    strays: VecDeque<(Instant, Packet)>,
}

impl Faults {
    /// None where nothing can go wrong.
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
            strays: VecDeque::new(),
        };
        let any = faults.loss.is_some() || faults.late.is_some() || faults.twice.is_some();
        any.then(|| Box::new(faults))
    }

    /// Decides what happens to a packet on the wire that it starts on; whether it is lost.
    pub(crate) fn strike(&mut self, packet: &mut Packet) -> bool {
        if let Some((loss, rng)) = &mut self.loss {
            if loss.is_lost(|| matches!(packet.role, Role::Data | Role::Traffic), rng) {
                packet.flags.set(Flags::LOST);
                return true;
            }
        }
        for (fault, flag) in [(&mut self.late, Flags::LATE), (&mut self.twice, Flags::TWICE)] {
            if let Some((share, rng)) = fault {
                if uniform(rng) < *share {
                    packet.flags.set(flag);
                }
            }
        }
        false
    }

    pub(crate) const fn lateness(&self) -> Duration {
        self.lateness
    }

    pub(crate) fn add_stray(&mut self, arrives: Instant, packet: Packet) {
        let place = self.strays.partition_point(|&(at, _)| at <= arrives);
        self.strays.insert(place, (arrives, packet));
    }

    /// The first to arrive.
    pub(crate) fn deliver_stray(&mut self) -> Option<Packet> {
        self.strays.pop_front().map(|(_, packet)| packet)
    }

    pub(crate) fn strays(&self) -> usize {
        self.strays.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Cargo, SackId};
    use waterfill_laws::registry::AnyHeader;

    fn packet(role: Role) -> Packet {
        Packet {
            flow: 0,
            bytes: 1500,
            incarnation: 0,
            hop: 0,
            role,
            flags: Flags::default(),
            sack: SackId::NONE,
            number: 0,
            sent: Instant::ZERO,
            echoed: Instant::ZERO,
            cargo: Cargo::Header(AnyHeader::None),
        }
    }

    #[test]
    fn periodic_losses_are_of_data_only() {
        let mut faults = Faults::new(1, 0, Some(LossSpec::Periodic { every: 1 }), None, 0.0).unwrap();
        for role in [Role::Syn, Role::SynAck, Role::Ack] {
            assert!(!faults.strike(&mut packet(role)), "{role:?}");
        }
        assert!(faults.strike(&mut packet(Role::Traffic)));
        assert!(faults.strike(&mut packet(Role::Data)));
    }

    #[test]
    fn each_fault_has_its_own_chance() {
        let late = ReorderSpec { share: 0.2, delay_s: 0.001 };
        let strike = |loss| {
            let mut faults = Faults::new(1, 0, loss, Some(late), 0.1).unwrap();
            let mut count = [0u32; 3];
            for _ in 0..100_000 {
                let mut p = packet(Role::Data);
                faults.strike(&mut p);
                for (n, flag) in count.iter_mut().zip([Flags::LOST, Flags::LATE, Flags::TWICE]) {
                    *n += u32::from(p.flags.has(flag));
                }
            }
            count
        };
        let [lost, late_ones, twice] = strike(None);
        assert_eq!(lost, 0);
        assert!((f64::from(late_ones) - 20_000.0).abs() < 5.0 * 126.5, "{late_ones}"); // √(n · 0.16)
        assert!((f64::from(twice) - 10_000.0).abs() < 5.0 * 94.9, "{twice}"); // √(n · 0.09)
        let half = strike(Some(LossSpec::Independent { p: 0.5 }));
        assert!((f64::from(half[1]) - 10_000.0).abs() < 5.0 * 94.9, "a lost packet is nothing else: {half:?}");
        assert!(Faults::new(1, 0, None, None, 0.0).is_none());
    }
}
