//! Who sets the probability p_drop with which TCP packets are dropped: the paper's rule, and one that follows the error.
//!
//! **Paper** (§4.3–4.4). Once a control interval p_drop grows by the factor I_drop while the explicit class has less than
//! its share, and shrinks by D_drop while it has more; the module acts only while both classes are there and the input
//! exceeds γ of what may be used, and p_drop starts over when it does not. With factors of 1.0001 and 0.9999 a factor e
//! takes 10⁴ intervals: 200 s at 20 ms.
//!
//! **Improved.** The quantity controlled is the TCP class's own rate x against a reference r, a little below its share:
//! what TCP does not take, the explicit law gives to its class anyway.
//!
//! ```text
//!   ln p ← ln p + K_i Δt max(e, f) + K_p (ē − ē_before),   e = x/r − 1 in [−1, 1],   ē an average of e
//! ```
//!
//! It is the paper's multiplication with a factor that knows how wrong p is. In ln p the loop's gain does not depend on the
//! operating point: a TCP's rate goes as p^(−b), with b = ½ for Reno, ¾ for CUBIC, about 1 for Scalable and DCTCP, so
//! that d ln x/d ln p = −b whatever the rate and the round trip. The integral drives the mean rate to r, whoever the TCP is; the
//! proportional part adds the phase that the TCP's own lag, W/2 round trips, takes.
//!
//! The paper asks whether both classes sent within a control interval. That is too short a time here: an explicit flow that TCP
//! has driven to its law's smallest rate sends seldom, and would not be protected. A class is present for two seconds.
//!
//! Signals are spread: between two of them pass ½/p to 3/2p packets, drawn evenly. With one flow, two losses in one window would be a
//! time-out to Reno, and say no more than one.
//!
//! A probability needs seconds. What comes faster (a slow start, a probe), and a TCP that does not listen, meets a **limit**: the
//! excess of the class over its share, as a volume that drains at that share. At its depth every packet is refused, so in any time t
//! the class gets at most its share × (t + depth). From half of the depth on single packets are refused **early**: the next one
//! only when two control intervals have passed, in which a flow hears of the loss and recovers, and the excess has risen since by half
//! of what was left to the depth; both divided by the number of flows. To refuse with a probability that rises with the excess
//! means several losses in a window, which to Reno are a time-out.
//! The limit hides the error that the probability is there to find: x cannot exceed the share. So where ē is not negative and the limit
//! refuses a share k of the packets that is larger than p, f = k/p − 1, at most 1, is the error: p takes over, whose losses are spread
//! and not bursts.
//!
//! Explicit flows may want less than their share: their application has no more to send, or another link holds them. As long as
//! on average less than [`LENDING`] of what may be used is in use, a part of the explicit class's share that grows is **lent** to the TCP
//! class; it is taken back, faster than any explicit law rises, once the link is full and the explicit class is below its share.

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::ControllerSpec;
use waterfill_network::random::uniform;

/// What was measured over a control interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) lasted: Duration,
    /// Input of the explicit class.
    pub(super) explicit: Rate,
    /// Input of the TCP class that was let in.
    pub(super) tcp: Rate,
    /// Everything that was let in.
    pub(super) total: Rate,
    /// What all may use together.
    pub(super) usable: Rate,
    /// Estimated flows of the TCP class.
    pub(super) tcp_flows: f64,
    /// Fair shares of the classes (eq. 3–4).
    pub(super) explicit_share: Rate,
    pub(super) tcp_share: Rate,
    /// Whether both classes sent in the interval.
    pub(super) both: bool,
    /// Whether both were seen of late.
    pub(super) present: bool,
}

/// The law that sets p_drop.
#[derive(Debug)]
pub(super) enum Controller {
    Off,
    Paper(Paper),
    Improved(Improved),
}

impl Controller {
    pub(super) fn new(spec: &ControllerSpec, interval: Duration) -> Self {
        match *spec {
            ControllerSpec::Off | ControllerSpec::Separate => Self::Off,
            ControllerSpec::Paper { initial, decrease, increase, threshold } => {
                Self::Paper(Paper { initial, decrease, increase, threshold, probability: initial, acts: false })
            }
            ControllerSpec::Improved { aim, integral, proportional, depth_s } => {
                Self::Improved(Improved::new(aim, (integral, proportional), Duration::from_secs(depth_s), interval))
            }
        }
    }

    /// A control interval has ended.
    pub(super) fn update(&mut self, measured: &Measured) {
        match self {
            Self::Off => {}
            Self::Paper(paper) => paper.update(measured),
            Self::Improved(improved) => improved.update(measured),
        }
    }

    /// What is to be done with the TCP packet that comes.
    pub(super) fn judge(&mut self, now: Instant, bytes: u16, rng: &mut Pcg64) -> Fate {
        match self {
            Self::Paper(paper) if paper.acts && uniform(rng) < paper.probability => Fate::Signal,
            Self::Off | Self::Paper(_) => Fate::LetIn,
            Self::Improved(improved) => improved.judge(now, bytes, rng),
        }
    }

    /// The TCP packet judged last was let in.
    pub(super) fn let_in(&mut self, bytes: u16) {
        if let Self::Improved(improved) = self {
            improved.excess += Volume::from_bytes(f64::from(bytes));
        }
    }

    pub(super) const fn is_improved(&self) -> bool {
        matches!(self, Self::Improved(_))
    }

    /// p_drop, zero while the module does not act.
    pub(super) const fn probability(&self) -> f64 {
        match self {
            Self::Paper(Paper { acts: true, probability, .. })
            | Self::Improved(Improved { acts: true, probability, .. }) => *probability,
            _ => 0.0,
        }
    }
}

/// What is done with a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    LetIn,
    /// It is marked, or dropped where it may not be marked.
    Signal,
    /// It is dropped, marked or not.
    Refuse,
}

/// The paper's rule.
#[derive(Debug)]
pub(super) struct Paper {
    initial: f64,
    decrease: f64,
    increase: f64,
    threshold: f64,
    probability: f64,
    acts: bool,
}

/// `[xcp-tcp-2008:§4.3]` p_drop after an interval in which the explicit class had this input.
fn p_drop(before: f64, explicit: Rate, share: Rate, (decrease, increase): (f64, f64)) -> f64 {
    if explicit > share {
        before * decrease
    } else if explicit < share {
        (before * increase).min(1.0)
    } else {
        before
    }
}

impl Paper {
    fn update(&mut self, m: &Measured) {
        // [xcp-tcp-2008:§4.4]
        if m.total < m.usable * self.threshold {
            self.probability = self.initial;
            self.acts = false;
            return;
        }
        self.acts = m.both;
        if self.acts {
            self.probability = p_drop(self.probability, m.explicit, m.explicit_share, (self.decrease, self.increase));
        }
    }
}

/// Smallest probability that the improved controller remembers: from here to 10⁻² are seven units of ln p.
const LEAST: f64 = 1e-5;
/// Where it starts (§4.3).
const FIRST: f64 = 1e-3;
/// Largest: beyond, the limit on the excess is at work anyway.
const MOST: f64 = 0.5;
/// Time over which the error is averaged before its change counts.
const AVERAGE: f64 = 0.5;

/// Share of what may be used below which the TCP class is lent more.
const LENDING: f64 = 0.9;
/// Time over which it is averaged: a TCP that has just been signalled to leaves a gap that the explicit law is about to fill.
const USE_AVERAGE: f64 = 5.0;
/// How much faster it is taken back than lent.
const TAKING_BACK: f64 = 2.0;

/// Excess, as a share of the depth, from which packets are refused early.
const EARLY: f64 = 0.5;
/// Control intervals that must have passed, for one flow: a round trip until it hears of the loss, another until it has recovered.
const REACTION: f64 = 2.0;

/// Ours.
#[derive(Debug)]
pub(super) struct Improved {
    aim: f64,
    integral: f64,
    proportional: f64,
    depth: Duration,
    interval: Duration,
    probability: f64,
    error: f64,
    acts: bool,
    /// Average share of what may be used that is in use.
    used: f64,
    /// What is lent to the TCP class, as a share of what may be used.
    lent: f64,
    /// The TCP class's share and what is lent to it; drains the excess.
    share: Rate,
    /// What the class has had beyond its share.
    excess: Volume,
    drained: Instant,
    /// TCP flows, one at least.
    flows: f64,
    /// When flows have reacted to the last refusal, and the excess, as a share of the depth, from which the next is early.
    reacted: Instant,
    early: f64,
    /// Sum of the probabilities of the packets since the last signal, and that at which the next is due.
    pressure: f64,
    next_signal: f64,
    /// Packets of this interval that came, and that the limit refused.
    came: u32,
    refused: u32,
    /// Average of the share refused.
    refusals: f64,
}

/// Relative error of the TCP class's rate, bounded: doubling is as bad as it gets, for a slow start multiplies.
fn rate_error(rate: Rate, reference: Rate) -> f64 {
    if reference <= Rate::ZERO { 0.0 } else { (rate / reference - 1.0).clamp(-1.0, 1.0) }
}

/// What is lent one interval later.
fn lent(before: f64, used: f64, m: &Measured) -> f64 {
    let dt = m.lasted.as_secs();
    let explicit = m.explicit_share / m.usable;
    let idle = LENDING - used;
    let change = if idle > 0.0 {
        idle
    } else if m.explicit < m.explicit_share {
        TAKING_BACK * idle
    } else {
        0.0
    };
    (before + change * dt).clamp(0.0, explicit)
}

/// Relative error of a probability where the limit refuses this share of the packets.
fn refusal_error(refused: f64, probability: f64) -> f64 {
    (refused / probability - 1.0).clamp(-1.0, 1.0)
}

/// The probability one interval later.
fn stepped(before: f64, integral: f64, proportional: f64) -> f64 {
    (before * (integral + proportional).exp()).clamp(LEAST, MOST)
}

/// The excess at which the next packet is refused early, seen from here: halfway to the depth, or less far where other flows need a
/// signal too.
fn next_early(fill: f64, flows: f64) -> f64 {
    (fill + (1.0 - fill.max(EARLY)) / 2.0 / flows).max(EARLY)
}

impl Improved {
    fn new(aim: f64, (integral, proportional): (f64, f64), depth: Duration, interval: Duration) -> Self {
        Self {
            aim,
            integral,
            proportional,
            depth,
            interval,
            probability: FIRST,
            error: 0.0,
            acts: false,
            used: 1.0,
            lent: 0.0,
            share: Rate::ZERO,
            excess: Volume::ZERO,
            drained: Instant::ZERO,
            flows: 1.0,
            reacted: Instant::ZERO,
            early: EARLY,
            pressure: 0.0,
            next_signal: 1.0,
            came: 0,
            refused: 0,
            refusals: 0.0,
        }
    }

    fn update(&mut self, m: &Measured) {
        let dt = m.lasted.as_secs();
        self.acts = m.present;
        self.used += (m.total / m.usable - self.used) * (1.0 - (-dt / USE_AVERAGE).exp());
        self.lent = if m.present { lent(self.lent, self.used, m) } else { 0.0 };
        self.share = m.tcp_share + m.usable * self.lent;
        self.flows = m.tcp_flows.max(1.0);
        let error = rate_error(m.tcp, self.share * self.aim);
        let (before, new) = (self.error, 1.0 - (-dt / AVERAGE).exp());
        self.error += (error - before) * new;
        let refused = f64::from(self.refused) / f64::from(self.came.max(1));
        self.refusals += (refused - self.refusals) * new;
        (self.came, self.refused) = (0, 0);
        if self.acts {
            let proportional = self.proportional * (self.error - before);
            // Below its reference the class does not lean on the limit: what was refused was a burst.
            let leans = self.error >= 0.0;
            let error = if leans { error.max(refusal_error(self.refusals, self.probability)) } else { error };
            self.probability = stepped(self.probability, self.integral * dt * error, proportional);
        } else {
            self.probability = FIRST;
            self.excess = Volume::ZERO;
        }
    }

    /// Whether a packet that finds the excess at this share of the depth is refused early.
    fn is_early(&mut self, now: Instant, fill: f64) -> bool {
        let reacting = now < self.reacted;
        // It is the rise from the least after the reaction that counts.
        let next = next_early(fill, self.flows);
        self.early = if reacting { next } else { self.early.min(next) };
        !reacting && fill >= self.early
    }

    fn judge(&mut self, now: Instant, bytes: u16, rng: &mut Pcg64) -> Fate {
        if !self.acts {
            return Fate::LetIn;
        }
        self.excess = (self.excess - self.share * now.since(self.drained)).max(Volume::ZERO);
        self.drained = now;
        self.came += 1;
        let fill = (self.excess + Volume::from_bytes(f64::from(bytes))) / (self.share * self.depth);
        if fill >= 1.0 || self.is_early(now, fill) {
            self.reacted = now + Duration::from_secs(REACTION * self.interval.as_secs() / self.flows);
            self.early = next_early(fill, self.flows);
            self.refused += 1;
            return Fate::Refuse;
        }
        self.pressure += self.probability;
        if self.pressure < self.next_signal {
            return Fate::LetIn;
        }
        self.pressure = 0.0;
        self.next_signal = 0.5 + uniform(rng);
        Fate::Signal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);

    const M: fn(f64, f64) -> Measured = |explicit, tcp| Measured {
        lasted: Duration::from_millis(20),
        explicit: Rate::from_bps(explicit),
        tcp: Rate::from_bps(tcp),
        total: Rate::from_bps(explicit + tcp),
        usable: Rate::from_bps(100.0),
        tcp_flows: 2.0,
        explicit_share: Rate::from_bps(60.0),
        tcp_share: Rate::from_bps(40.0),
        both: true,
        present: true,
    };

    fn paper() -> Controller {
        Controller::new(
            &ControllerSpec::Paper { initial: 0.001, decrease: 0.9999, increase: 1.0001, threshold: 0.97 },
            INTERVAL,
        )
    }

    #[test]
    fn p_drop_by_hand() {
        let mut controller = paper();
        assert_eq!(controller.probability(), 0.0, "does not act before its first interval");
        controller.update(&M(50.0, 50.0));
        assert!((controller.probability() - 0.001_000_1).abs() < 1e-15);
        controller.update(&M(60.0, 40.0));
        assert!((controller.probability() - 0.001_000_1).abs() < 1e-15, "its last value");
        controller.update(&M(70.0, 30.0));
        assert!((controller.probability() - 0.001_000_1 * 0.9999).abs() < 1e-15);
    }

    #[test]
    fn acts_above_the_threshold_with_both_classes_only() {
        let mut controller = paper();
        (0..10).for_each(|_| controller.update(&M(50.0, 50.0)));
        let grown = controller.probability();
        controller.update(&Measured { both: false, ..M(100.0, 0.0) });
        assert_eq!(controller.probability(), 0.0);
        controller.update(&M(60.0, 40.0));
        assert_eq!(controller.probability(), grown, "was only suspended");
        controller.update(&M(50.0, 46.0));
        controller.update(&M(60.0, 40.0));
        assert_eq!(controller.probability(), 0.001, "started over");
    }

    #[test]
    fn ten_thousand_intervals_are_a_factor_e() {
        let mut controller = paper();
        (0..10_000).for_each(|_| controller.update(&M(50.0, 50.0)));
        assert!((controller.probability() / 0.001 - std::f64::consts::E).abs() < 1e-3);
    }

    fn improved() -> Controller {
        let depth_s = 0.5;
        Controller::new(&ControllerSpec::Improved { aim: 1.0, integral: 1.0, proportional: 0.0, depth_s }, INTERVAL)
    }

    #[test]
    fn the_improved_factor_follows_the_error() {
        let mut controller = improved();
        // Double the reference for a second: e.
        (0..50).for_each(|_| controller.update(&M(20.0, 80.0)));
        assert!((controller.probability() / FIRST - std::f64::consts::E).abs() < 1e-9);
        // A tenth too little for ten seconds: back again.
        (0..500).for_each(|_| controller.update(&M(60.0, 36.0)));
        assert!((controller.probability() / FIRST - 1.0).abs() < 1e-9);
        (0..500).for_each(|_| controller.update(&M(100.0, 0.0)));
        assert_eq!(controller.probability(), LEAST);
    }

    #[test]
    fn the_excess_is_bounded_in_any_time() {
        let mut controller = improved();
        controller.update(&Measured { tcp_share: Rate::from_bps(12e5), ..M(0.0, 0.0) }); // 100 packets a second
        let (mut now, mut taken, mut rng) = (Instant::ZERO, 0, Pcg64::new(1, 1));
        for _ in 0..10_000 {
            now += Duration::from_millis(1); // ten times the share
            if controller.judge(now, 1500, &mut rng) == Fate::LetIn {
                controller.let_in(1500);
                taken += 1;
            }
        }
        // 10 s at 100 a second and the depth of 50, less ten signals.
        assert!((990..=1050).contains(&taken), "{taken}");
    }

    #[test]
    fn what_is_not_wanted_is_lent_and_taken_back() {
        // 20 explicit and 40 TCP of 100: a third of what may be used is idle.
        let one_second = |m| Measured { lasted: Duration::from_millis(1000), ..m };
        assert!((lent(0.0, 0.6, &one_second(M(20.0, 40.0))) - 0.3).abs() < 1e-12);
        assert!((lent(0.3, 1.0, &one_second(M(20.0, 80.0))) - 0.1).abs() < 1e-12, "the link is full");
        assert_eq!(lent(0.3, 1.0, &one_second(M(60.0, 40.0))), 0.3, "it has its share");
        assert_eq!(lent(0.55, 0.45, &one_second(M(5.0, 40.0))), 0.6, "no more than there is");
    }

    #[test]
    fn the_probability_takes_over_from_the_limit() {
        assert_eq!([0.0, 0.01, 0.015, 1.0].map(|refused| refusal_error(refused, 0.01)), [-1.0, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn signals_are_spread() {
        let mut controller = improved();
        controller.update(&Measured { tcp_share: Rate::from_bps(12e9), ..M(0.0, 0.0) });
        let (mut rng, mut gaps, mut gap) = (Pcg64::new(1, 1), Vec::new(), 0u32);
        for i in 0..2_000_000 {
            gap += 1;
            if controller.judge(Instant::ZERO + Duration::from_micros(i), 1500, &mut rng) == Fate::Signal {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        // p is 0.001 e^(-0.02) after the update: 1020 packets a signal.
        let mean = gaps.iter().map(|&gap| f64::from(gap)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1020.0).abs() < 50.0, "{mean}");
        assert!(gaps[1..].iter().all(|gap| (510..=1531).contains(gap)));
    }

    /// The share is 100 packets a second, the depth 50 packets; a packet comes every `every` milliseconds. Refusals, as packets of excess.
    fn refusals(controller: &mut Controller, now: &mut Instant, packets: u32, every: u64) -> Vec<f64> {
        let (mut rng, mut at) = (Pcg64::new(1, 1), Vec::new());
        for _ in 0..packets {
            *now += Duration::from_millis(every);
            let fate = controller.judge(*now, 1500, &mut rng);
            let Controller::Improved(Improved { excess, .. }) = controller else { unreachable!() };
            match fate {
                Fate::Refuse => at.push((*excess / Volume::from_bytes(1500.0)).round()),
                _ => controller.let_in(1500),
            }
        }
        at
    }

    fn limited(tcp_flows: f64) -> Controller {
        let mut controller = improved();
        controller.update(&Measured { tcp_share: Rate::from_bps(12e5), tcp_flows, ..M(0.0, 0.0) });
        controller
    }

    #[test]
    fn early_refusals_are_single_until_the_depth() {
        let (mut controller, mut now) = (limited(2.0), Instant::ZERO);
        // Twice the share: the excess grows by half a packet at a time. A packet that finds 24 is refused, for with itself it would be
        // half the depth. 15 ms later, still reacting, one finds 24.5: with two flows the next is due at 25.5 + (50 − 25.5)/4 = 31.625
        // with itself, which one that finds 31 has. Then 32.5 + 17.5/4 = 36.875, and so on.
        let at = refusals(&mut controller, &mut now, 200, 5);
        assert_eq!(at[..6], [24.0, 31.0, 36.0, 40.0, 43.0, 45.0]);
        assert!(at.len() > 20, "at the depth, every second: {at:?}");
    }

    #[test]
    fn early_refusals_wait_for_the_reaction() {
        let (mut controller, mut now) = (limited(1.0), Instant::ZERO);
        // A burst: 60 packets in 6 ms are over the depth before one flow could have heard.
        let at = refusals(&mut controller, &mut now, 60, 0);
        assert_eq!(at[0], 24.0);
        assert!(at[1..].iter().all(|&excess| excess >= 49.0), "{at:?}");
    }

    #[test]
    fn after_the_excess_has_drained_refusals_begin_at_a_half_again() {
        let (mut controller, mut now) = (limited(1.0), Instant::ZERO);
        assert_eq!(refusals(&mut controller, &mut now, 60, 5), [24.0]);
        now += Duration::from_millis(200); // 20 packets less
        assert_eq!(refusals(&mut controller, &mut now, 45, 5), [24.0]);
    }
}
