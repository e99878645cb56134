//! What goes wrong on a wire: packets are lost, arrive late, or arrive twice. Each has its own random stream.

use std::collections::VecDeque;

use rand_pcg::Pcg64;
use serde::Deserialize;
use waterfill_laws::units::{Duration, Instant};

use crate::packet::{Flags, Packet, Role};
use crate::random::{Part, stream, uniform};

/// Which packets are lost.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSpec {
    /// Each by itself.
    Independent {
        /// Probability.
        p: f64,
    },
    /// In bursts: a chain of two states, good at first, that takes a step after each packet (E. N. Gilbert, *Capacity
    /// of a Burst-Noise Channel*, 1960; E. O. Elliott, *Estimates of Error Rates for Codes on Burst-Noise Channels*, 1963).
    GilbertElliott {
        /// Probability of a step from good to bad.
        p: f64,
        /// Probability of a step from bad to good.
        r: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Every so many data packets exactly one, the last of them. Handshakes and acknowledgements are neither counted nor lost.
    Periodic {
        /// Packets for each loss.
        every: u64,
    },
}

/// Packets that arrive late, so that others overtake them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// Share of packets.
    pub share: f64,
    /// How much later than in order.
    pub delay_s: f64,
}

impl LossSpec {
    pub(crate) fn check(&self) -> Result<(), String> {
        let at = |name: &str, x: f64| {
            let good = (0.0..=1.0).contains(&x);
            good.then_some(()).ok_or_else(|| format!("loss_model.{name}: expected 0 to 1, got {x}"))
        };
        match *self {
            Self::Independent { p } => at("p", p),
            Self::GilbertElliott { p, r, loss_good, loss_bad } => {
                at("p", p)?;
                at("r", r)?;
                at("loss_good", loss_good)?;
                at("loss_bad", loss_bad)
            }
            Self::Periodic { every: 0 } => Err("loss_model.every: expected a whole number above zero".into()),
            Self::Periodic { .. } => Ok(()),
        }
    }
}

/// A loss model at work.
#[derive(Debug)]
enum Loss {
    Independent { p: f64 },
    GilbertElliott { p: f64, r: f64, loss: [f64; 2], bad: bool },
    Periodic { every: u64, left: u64 },
}

impl Loss {
    const fn new(spec: LossSpec) -> Self {
        match spec {
            LossSpec::Independent { p } => Self::Independent { p },
            LossSpec::GilbertElliott { p, r, loss_good, loss_bad } => {
                Self::GilbertElliott { p, r, loss: [loss_good, loss_bad], bad: false }
            }
            LossSpec::Periodic { every } => Self::Periodic { every, left: every },
        }
    }

    fn takes(&mut self, packet: &Packet, rng: &mut Pcg64) -> bool {
        match self {
            Self::Independent { p } => uniform(rng) < *p,
            Self::GilbertElliott { p, r, loss, bad } => {
                let lost = uniform(rng) < loss[usize::from(*bad)];
                *bad ^= uniform(rng) < if *bad { *r } else { *p };
                lost
            }
            Self::Periodic { every, left } => {
                if !matches!(packet.role, Role::Data | Role::Traffic) {
                    return false;
                }
                *left -= 1;
                let lost = *left == 0;
                if lost {
                    *left = *every;
                }
                lost
            }
        }
    }
}

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
            if loss.takes(packet, rng) {
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

    /// Which of `n` data packets are lost.
    fn losses(spec: LossSpec, n: usize) -> Vec<bool> {
        let mut faults = Faults::new(3, 0, Some(spec), None, 0.0).unwrap();
        (0..n).map(|_| faults.strike(&mut packet(Role::Data))).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|&&lost| lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn gilbert_elliott_loses_p_over_p_plus_r_in_bursts_of_one_over_r() {
        let (p, r) = (0.01, 0.25);
        let n = 1_000_000;
        let losses = losses(LossSpec::GilbertElliott { p, r, loss_good: 0.0, loss_bad: 1.0 }, n);
        let bursts = losses.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let lost = share(&losses) * n as f64;
        // Bursts come at rate π_good p, and last geometrically: mean 1/r, variance (1 − r)/r².
        let expected = n as f64 * p * r / (p + r);
        assert!((bursts - expected).abs() < 5.0 * expected.sqrt(), "{bursts} bursts");
        let (mean, sigma) = (1.0 / r, (1.0 - r).sqrt() / r / bursts.sqrt());
        assert!((lost / bursts - mean).abs() < 5.0 * sigma, "mean burst {}", lost / bursts);
        // The count's standard deviation, correlation by runs included: √(n π_b π_g (1 + λ)/(1 − λ)), λ = 1 − p − r.
        let (bad, good, lambda) = (p / (p + r), r / (p + r), 1.0 - p - r);
        let sigma = (bad * good * (1.0 + lambda) / (1.0 - lambda) / n as f64).sqrt();
        assert!((share(&losses) - bad).abs() < 5.0 * sigma, "share {}", share(&losses));
    }

    #[test]
    fn gilbert_elliott_with_losses_in_both_states() {
        let spec = LossSpec::GilbertElliott { p: 0.02, r: 0.06, loss_good: 0.01, loss_bad: 0.5 };
        // π_bad = 0.25: 0.75 · 0.01 + 0.25 · 0.5 = 0.1325.
        let lost = share(&losses(spec, 1_000_000));
        assert!((lost - 0.1325).abs() < 0.005, "{lost}"); // five standard deviations by the formula above: 0.0049
    }

    #[test]
    fn independent_losses_do_not_cluster() {
        let n = 1_000_000;
        let losses = losses(LossSpec::Independent { p: 0.1 }, n);
        assert!((share(&losses) - 0.1).abs() < 5.0 * (0.09 / n as f64).sqrt());
        let pairs = losses.windows(2).filter(|w| w[0] && w[1]).count() as f64 / n as f64;
        assert!((pairs - 0.01).abs() < 5.0 * (0.01f64 * 1.2 / n as f64).sqrt(), "{pairs}");
    }

    #[test]
    fn periodic_losses_are_exact_and_of_data_alone() {
        let at: Vec<usize> = losses(LossSpec::Periodic { every: 7 }, 30)
            .iter()
            .enumerate()
            .filter_map(|(i, &lost)| lost.then_some(i + 1))
            .collect();
        assert_eq!(at, [7, 14, 21, 28]);
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
