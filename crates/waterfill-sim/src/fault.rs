//! Faults of a wire: packets are lost, arrive late or twice, are held and released together, or arrive with other
//! contents. Each fault has its own random stream.
//!
//! Loss, lateness and copies are drawn when a packet is put on the wire. What it carries changes when it arrives, behind
//! every law that writes into it. So only links that have faults pay for them: no other packet meets a test of its own.

use std::collections::VecDeque;

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::LinkSpec;
use waterfill_network::fault::{Effect, FaultSpec};
use waterfill_network::loss::{Loss, LossSpec};
use waterfill_network::random::uniform;

use crate::packet::{Flags, Packet, Role};
use crate::random::{LinkStream, stream};

mod acks;
mod header;
mod host;

pub(crate) use acks::OnWire;
use acks::Thinning;

pub(crate) use host::{ReceiverFaults, SourceFaults, damages, picoseconds, stepped};

/// Start and end of a fault.
#[derive(Clone, Copy, Debug)]
struct Period {
    from: Instant,
    until: Instant,
}

impl Period {
    fn new(from_s: f64, until_s: f64) -> Self {
        Self { from: Instant::from_secs(from_s), until: Instant::from_secs(until_s) }
    }

    fn contains(self, now: Instant) -> bool {
        self.from <= now && now < self.until
    }
}

/// Faults that change the contents of packets, and their random stream.
#[derive(Debug)]
struct Altering {
    faults: Box<[(Period, FaultSpec)]>,
    rng: Pcg64,
}

/// The faults of one link direction.
#[derive(Debug)]
pub(crate) struct Faults {
    loss: Option<(Loss, Pcg64)>,
    /// Probability that a packet arrives late, and the random stream for drawing it.
    late: Option<(f64, Pcg64)>,
    /// Probability that a packet arrives twice, and the random stream for drawing it.
    twice: Option<(f64, Pcg64)>,
    lateness: Duration,
    /// Packets that arrive out of the order of the wire, by arrival time.
    reordered: VecDeque<(Instant, Packet)>,
    /// Faults that change the contents of packets, and their random stream.
    altering: Option<Altering>,
    /// Periods in which packets, or only acknowledgements, are held until the next release.
    holds: Box<[Hold]>,
    /// Time before which no later packet is released. Packets behind held acknowledgements keep their order.
    released: Instant,
    /// Thinning of the acknowledgements that are released together.
    thinning: Option<Thinning>,
}

/// Period in which packets are held.
#[derive(Clone, Copy, Debug)]
struct Hold {
    period: Period,
    /// Time between two releases.
    every: Duration,
    acks_only: bool,
}

impl Hold {
    /// Returns the hold of a fault; `None` if the fault holds nothing.
    fn new(fault: &FaultSpec) -> Option<Self> {
        let (every_s, acks_only) = match fault.effect {
            Effect::Hold { every_s } => (every_s, false),
            Effect::Acks { every_s, .. } => (every_s, true),
            Effect::Strip {} | Effect::Corrupt {} | Effect::Lie { .. } => return None,
        };
        Some(Self { period: Period::new(fault.from_s, fault.until_s), every: Duration::from_secs(every_s), acks_only })
    }

    /// Returns true if the hold concerns a packet that reaches the end of the wire at `arrives`.
    fn holds(&self, arrives: Instant, role: Role) -> bool {
        self.period.contains(arrives) && (!self.acks_only || role.acknowledges())
    }
}

impl Faults {
    /// Builds the faults of a link direction; `None` if it has none.
    pub(crate) fn new(seed: u64, link: u32, spec: &LinkSpec) -> Option<Box<Self>> {
        let loss = spec.loss_model.or_else(|| (spec.loss > 0.0).then_some(LossSpec::Independent { p: spec.loss }));
        let (reorder, duplicate) = (spec.reorder, spec.duplicate);
        let holds: Box<[_]> = spec.faults.iter().filter_map(Hold::new).collect();
        let altering: Box<[_]> = (spec.faults.iter())
            .filter(|fault| !fault.effect.holds())
            .map(|&fault| (Period::new(fault.from_s, fault.until_s), fault))
            .collect();
        let faults = Self {
            loss: loss.map(|spec| (Loss::new(spec), stream(seed, link, LinkStream::Loss))),
            late: reorder.map(|spec| (spec.share, stream(seed, link, LinkStream::Reorder))),
            twice: (duplicate > 0.0).then(|| (duplicate, stream(seed, link, LinkStream::Duplicate))),
            lateness: reorder.map_or(Duration::ZERO, |spec| Duration::from_secs(spec.delay_s)),
            reordered: VecDeque::new(),
            altering: (!altering.is_empty())
                .then(|| Altering { faults: altering, rng: stream(seed, link, LinkStream::Contents) }),
            holds,
            released: Instant::ZERO,
            thinning: Thinning::new(&spec.faults),
        };
        let drawn = faults.loss.is_some() || faults.late.is_some() || faults.twice.is_some();
        let any = drawn || faults.altering.is_some() || !faults.holds.is_empty();
        any.then(|| Box::new(faults))
    }

    /// Draws the faults of a packet that starts its transmission. Returns true if the packet is lost.
    pub(crate) fn impair(&mut self, role: Role, flags: &mut Flags) -> bool {
        if let Some((loss, rng)) = &mut self.loss {
            if loss.is_lost(|| role.has_data() || matches!(role, Role::Traffic | Role::Endpoint), rng) {
                flags.set(Flags::LOST);
                return true;
            }
        }
        if self.altering.is_some() {
            flags.set(Flags::ALTERED);
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

    /// Applies the faults that change contents to an arriving packet.
    pub(crate) fn alter(&mut self, now: Instant, packet: &mut Packet) {
        let Some(Altering { faults, rng }) = &mut self.altering else { return };
        for (_, fault) in faults.iter().filter(|(period, _)| period.contains(now)) {
            if uniform(rng) >= fault.share {
                continue;
            }
            match fault.effect {
                Effect::Strip {} => header::strip(packet),
                Effect::Corrupt {} => header::corrupt(packet, rng),
                Effect::Lie { value } => header::lie(packet, value, rng),
                Effect::Hold { .. } | Effect::Acks { .. } => {}
            }
        }
    }

    /// Returns the time at which the wire releases a packet that reaches its end at `arrives`. Later packets are not
    /// released earlier.
    pub(crate) fn release(&mut self, arrives: Instant, role: Role) -> Instant {
        let holds = self.holds.iter().filter(|hold| hold.holds(arrives, role));
        let released = holds.fold(arrives.max(self.released), |last, &Hold { period, every, .. }| {
            let waits = arrives.since(period.from).as_ps();
            let releases = waits.div_ceil(every.as_ps().max(1));
            last.max((period.from + every * releases).min(period.until))
        });
        if !self.holds.is_empty() {
            self.released = released;
        }
        released
    }

    /// Forgets the releases after `time`, because the packets behind are scheduled again.
    pub(crate) fn release_again_from(&mut self, time: Instant) {
        self.released = time;
    }

    /// Returns the state of a link that thins acknowledgements.
    pub(crate) const fn thinning(&mut self) -> Option<&mut Thinning> {
        self.thinning.as_mut()
    }

    /// Returns true if a packet that arrives at `arrives` may still be lost, because a later acknowledgement takes its place.
    /// No packet reaches the end of the wire before `next` any more.
    pub(crate) fn may_thin(&self, arrives: Instant, next: Instant) -> bool {
        self.thinning.is_some() && next <= arrives
    }

    /// Returns the extra delay of a packet that arrives late.
    pub(crate) const fn lateness(&self) -> Duration {
        self.lateness
    }

    /// Stores a packet that arrives out of the order of the wire.
    pub(crate) fn add_reordered(&mut self, arrives: Instant, packet: Packet) {
        let place = self.reordered.partition_point(|&(at, _)| at <= arrives);
        self.reordered.insert(place, (arrives, packet));
    }

    /// Returns the reordered packet that arrives first.
    pub(crate) fn first_reordered(&self) -> Option<Packet> {
        self.reordered.front().map(|&(_, packet)| packet)
    }

    /// Removes and returns the reordered packet that arrives first.
    pub(crate) fn deliver_reordered(&mut self) -> Option<Packet> {
        self.reordered.pop_front().map(|(_, packet)| packet)
    }

    /// Returns the number of reordered packets in transit.
    pub(crate) fn reordered_packets(&self) -> usize {
        self.reordered.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waterfill_laws::units::{Rate, Volume};
    use waterfill_network::ReorderSpec;

    /// Returns the faults of a link whose specification is adjusted by `change`.
    fn with(change: impl FnOnce(&mut LinkSpec)) -> Option<Box<Faults>> {
        let mut spec = LinkSpec::new("l", Rate::from_bps(1e6), Duration::ZERO, Volume::ZERO);
        change(&mut spec);
        Faults::new(1, 0, &spec)
    }

    #[test]
    fn periodic_losses_are_of_data_only() {
        let mut faults = with(|spec| spec.loss_model = Some(LossSpec::Periodic { every: 1 })).unwrap();
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
            let mut faults = with(|spec| {
                (spec.loss_model, spec.reorder, spec.duplicate) = (loss, Some(late), 0.1);
            })
            .unwrap();
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
        assert!(with(|_| {}).is_none());
    }
}
