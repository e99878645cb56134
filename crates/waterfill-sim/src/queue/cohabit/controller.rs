//! Controllers of the probability p_drop with which TCP packets are dropped: the rule of xcp-tcp-2008, and an improved
//! rule based on TCP's rate.
//!
//! **Paper** (§4.3–4.4). Once per control interval p_drop grows by the factor I_drop while the explicit class has less
//! than its share, and shrinks by D_drop while it has more. The module acts only while both classes send and the input
//! exceeds γ times the usable capacity; otherwise p_drop starts over. With factors of 1.0001 and 0.9999 a factor e
//! takes 10⁴ intervals: 200 s at 20 ms. So `update` may apply the factor for each packet, or once per period of time,
//! until the next interval decides on another factor.
//!
//! **Improved.** The controlled quantity is the TCP class's own rate x. Its reference r is a little below the class's
//! share: the explicit law gives its own class what TCP does not take.
//!
//! ```text
//!   ln p ← ln p + K_i Δt max(e, f) + K_p (ē − ē_before),   e = x/r − 1 in [−1, 1],   ē an average of e
//! ```
//!
//! This is the paper's multiplication with a factor that depends on the error. In ln p the loop's gain does not depend
//! on the operating point: a TCP's rate is proportional to p^(−b), with b = ½ for Reno, ¾ for CUBIC, about 1 for
//! Scalable and DCTCP. So d ln x/d ln p = −b whatever the rate and the RTT. The integral drives the mean rate to r for
//! any TCP; the proportional part adds the phase that the TCP's own lag, W/2 RTTs, takes.
//!
//! The paper asks whether both classes sent within a control interval. That is too short here: an explicit flow that
//! TCP has driven to its law's smallest rate sends seldom, and would not be protected. A class counts as present for
//! two seconds.
//!
//! Signals are spread: the gap between two is drawn uniformly from ½/p to 3/2p packets. With one flow, two losses in
//! one window would cause a timeout in Reno, and carry no more information than one.
//!
//! A probability takes seconds to act. Faster bursts (slow start, a probe), and a TCP that ignores losses, are stopped
//! by a **limit**: the excess of the class over its share, as a volume that drains at that share. At its depth every
//! packet is dropped. So in any time t the class gets at most its share × (t + depth). From half of the depth single
//! packets are dropped **early**. The next early drop needs two control intervals, in which a flow learns of the loss
//! and recovers, and a rise of the excess by half of what was left to the depth; both are divided by the number of
//! flows. A drop probability that rises with the excess would instead cause several losses per window, and so a timeout
//! in Reno.
//!
//! The limit hides the error from the probability: x cannot exceed the share. So where ē is not negative and the limit
//! drops a share k of the packets larger than p, the error is f = k/p − 1, at most 1. Then p takes over, and its losses
//! are spread.
//!
//! Explicit flows may want less than their share: their application has no more to send, or another link limits them.
//! While on average less than [`LEND_BELOW`] of the usable capacity is in use, a growing part of the explicit class's
//! share is **lent** to the TCP class. It is reclaimed, faster than any explicit law rises, once the link is full and
//! the explicit class is below its share.

use rand_pcg::Pcg64;
use waterfill_laws::math;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::random::uniform;
use waterfill_network::{ControllerSpec, PacketClass, UpdateSpec};

use super::Class;

/// Measurements of a control interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) lasted: Duration,
    /// Input rate of the explicit class.
    pub(super) explicit: Rate,
    /// Admitted input rate of the TCP class.
    pub(super) tcp: Rate,
    /// Admitted input rate of all traffic.
    pub(super) total: Rate,
    /// Capacity that all flows may use together.
    pub(super) usable: Rate,
    /// Estimated number of flows in the TCP class.
    pub(super) tcp_flows: f64,
    /// Fair share of the explicit class (eq. 3). `tcp_share` is the fair share of the TCP class (eq. 4).
    pub(super) explicit_share: Rate,
    pub(super) tcp_share: Rate,
    /// True if both classes sent packets in the interval.
    pub(super) both: bool,
    /// True if both classes count as present.
    pub(super) present: bool,
}

/// Controller that sets p_drop.
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
            ControllerSpec::Paper { initial, decrease, increase, threshold, update } => Self::Paper(Paper {
                initial,
                decrease,
                increase,
                threshold,
                update: Update::new(update),
                factor: 1.0,
                probability: initial,
                active: false,
            }),
            ControllerSpec::Improved { aim, integral, proportional, depth_s } => {
                let tuning = Tuning { aim, integral, proportional };
                Self::Improved(Improved::new(tuning, Duration::from_secs(depth_s), interval))
            }
        }
    }

    /// Updates p_drop at the end of a control interval.
    pub(super) fn update(&mut self, measured: &Measured) {
        match self {
            Self::Off => {}
            Self::Paper(paper) => paper.update(measured),
            Self::Improved(improved) => improved.update(measured),
        }
    }

    /// Sets the length of the control interval.
    pub(super) fn set_interval(&mut self, interval: Duration) {
        if let Self::Improved(improved) = self {
            improved.interval = interval;
        }
    }

    /// Counts an arriving packet. The class is `None` for traffic without congestion control.
    pub(super) fn on_packet(&mut self, now: Instant, class: Option<Class>) {
        if let Self::Paper(paper) = self {
            paper.on_packet(now, class);
        }
    }

    /// Decides on an arriving TCP packet.
    pub(super) fn decide(&mut self, now: Instant, bytes: u16, rng: &mut Pcg64) -> Decision {
        match self {
            Self::Paper(paper) if paper.active && uniform(rng) < paper.probability => Decision::Signal,
            Self::Off | Self::Paper(_) => Decision::Admit,
            Self::Improved(improved) => improved.decide(now, bytes, rng),
        }
    }

    /// Counts an admitted TCP packet.
    pub(super) fn on_admitted(&mut self, bytes: u16) {
        if let Self::Improved(improved) = self {
            improved.excess += Volume::from_bytes(f64::from(bytes));
        }
    }

    pub(super) const fn is_improved(&self) -> bool {
        matches!(self, Self::Improved(_))
    }

    /// Returns p_drop, or zero while the controller is inactive.
    pub(super) const fn probability(&self) -> f64 {
        match self {
            Self::Paper(Paper { active: true, probability, .. })
            | Self::Improved(Improved { active: true, probability, .. }) => *probability,
            _ => 0.0,
        }
    }
}

/// A decision on a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Admit,
    /// Mark the packet if it is ECN-capable, otherwise drop it.
    Signal,
    /// Drop the packet, even if it is ECN-capable.
    Drop,
}

/// Controller with the rule of xcp-tcp-2008.
#[derive(Debug)]
pub(super) struct Paper {
    initial: f64,
    decrease: f64,
    increase: f64,
    threshold: f64,
    update: Update,
    /// Factor that applies until the next interval ends.
    factor: f64,
    probability: f64,
    active: bool,
}

/// Schedule on which the factor is applied.
#[derive(Debug)]
enum Update {
    Interval,
    Packet(PacketClass),
    Period {
        length: Duration,
        /// End of the current period.
        ends: Instant,
    },
}

impl Update {
    fn new(spec: UpdateSpec) -> Self {
        match spec {
            UpdateSpec::Interval => Self::Interval,
            UpdateSpec::Packet { packets } => Self::Packet(packets),
            UpdateSpec::Period { period_s } => {
                let length = Duration::from_secs(period_s).max(Duration::from_ps(1));
                Self::Period { length, ends: Instant::ZERO + length }
            }
        }
    }

    /// Returns the number of times the factor applies when a packet of this class arrives.
    fn times(&mut self, now: Instant, class: Option<Class>) -> f64 {
        match self {
            Self::Interval => 0.0,
            Self::Packet(PacketClass::All) => 1.0,
            Self::Packet(PacketClass::Explicit) => f64::from(u8::from(class == Some(Class::Explicit))),
            Self::Packet(PacketClass::Tcp) => f64::from(u8::from(class == Some(Class::Tcp))),
            Self::Period { ends, .. } if now < *ends => 0.0,
            Self::Period { length, ends } => {
                let late = now.since(*ends).as_ps();
                *ends = now + Duration::from_ps(length.as_ps() - late % length.as_ps());
                (1 + late / length.as_ps()) as f64
            }
        }
    }
}

/// `[xcp-tcp-2008:§4.3]` Returns the factor on p_drop after an interval with this input of the explicit class.
fn factor(explicit: Rate, share: Rate, (decrease, increase): (f64, f64)) -> f64 {
    if explicit > share {
        decrease
    } else if explicit < share {
        increase
    } else {
        1.0
    }
}

impl Paper {
    fn update(&mut self, m: &Measured) {
        // [xcp-tcp-2008:§4.4]
        if m.total < m.usable * self.threshold {
            self.probability = self.initial;
            self.active = false;
            return;
        }
        self.active = m.both;
        self.factor = factor(m.explicit, m.explicit_share, (self.decrease, self.increase));
        if self.active && matches!(self.update, Update::Interval) {
            self.apply(1.0);
        }
    }

    /// Applies the factor `times` times.
    fn apply(&mut self, times: f64) {
        let factor = if times == 1.0 { self.factor } else { math::pow(self.factor, times) };
        self.probability = (self.probability * factor).min(1.0);
    }

    fn on_packet(&mut self, now: Instant, class: Option<Class>) {
        let times = self.update.times(now, class);
        if self.active && times > 0.0 {
            self.apply(times);
        }
    }
}

/// Minimum probability of the improved controller. From this value to 10⁻² are seven units of ln p.
const MIN_PROBABILITY: f64 = 1e-5;
/// Initial probability of the improved controller (§4.3).
const INITIAL_PROBABILITY: f64 = 1e-3;
/// Maximum probability of the improved controller. Above this value, the limit on the excess acts anyway.
const MAX_PROBABILITY: f64 = 0.5;
/// Averaging time of the error in the proportional term, in seconds.
const ERROR_AVERAGE_S: f64 = 0.5;

/// Utilization, as a share of the usable capacity, below which the TCP class is lent more.
const LEND_BELOW: f64 = 0.9;
/// Averaging time of the utilization, in seconds. After a signal, TCP leaves a gap that the explicit law is about to
/// fill.
const USE_AVERAGE_S: f64 = 5.0;
/// Ratio of the reclaiming rate to the lending rate.
const RECLAIM_FACTOR: f64 = 2.0;

/// Excess above which packets are dropped early, as a share of the depth.
const EARLY_FILL: f64 = 0.5;
/// Number of control intervals that one flow takes to react: one RTT to learn of the loss, another to recover.
const REACTION_INTERVALS: f64 = 2.0;

/// Parameters of the improved controller.
#[derive(Clone, Copy, Debug)]
struct Tuning {
    /// Ratio of the TCP class's reference rate to its share.
    aim: f64,
    /// Integral gain K_i, in 1/s.
    integral: f64,
    /// Proportional gain K_p.
    proportional: f64,
}

/// Improved controller, which follows the error of the TCP class's rate.
#[derive(Debug)]
pub(super) struct Improved {
    tuning: Tuning,
    depth: Duration,
    interval: Duration,
    probability: f64,
    error: f64,
    active: bool,
    /// Average share of the usable capacity in use.
    used: f64,
    /// Rate lent to the TCP class, as a share of the usable capacity.
    lent: f64,
    /// Rate at which the excess drains: the TCP class's share plus the rate lent to it.
    share: Rate,
    /// Volume that the TCP class has sent beyond its share.
    excess: Volume,
    drained: Instant,
    /// Estimated number of TCP flows, at least one.
    flows: f64,
    /// Time at which the flows have reacted to the limit's last drop.
    reacted: Instant,
    /// Excess at which the next packet is dropped early, as a share of the depth.
    early: f64,
    /// Sum of the packets' drop probabilities since the last signal.
    pressure: f64,
    /// Value of `pressure` at which the next signal is due.
    next_signal: f64,
    /// Number of packets that arrived in this interval.
    arrived: u32,
    /// Number of packets that the limit dropped in this interval.
    limited: u32,
    /// Average share of packets that the limit drops.
    limited_share: f64,
}

/// Returns the relative error of the TCP class's rate, at most 1. Slow start doubles the rate, so larger errors carry
/// no information.
fn rate_error(rate: Rate, reference: Rate) -> f64 {
    if reference <= Rate::ZERO { 0.0 } else { (rate / reference - 1.0).clamp(-1.0, 1.0) }
}

/// Returns the share lent to the TCP class after one more interval.
fn lent(before: f64, used: f64, m: &Measured) -> f64 {
    let dt = m.lasted.as_secs();
    let explicit = m.explicit_share / m.usable;
    let idle = LEND_BELOW - used;
    let change = if idle > 0.0 {
        idle
    } else if m.explicit < m.explicit_share {
        RECLAIM_FACTOR * idle
    } else {
        0.0
    };
    (before + change * dt).clamp(0.0, explicit)
}

/// Returns the relative error of the probability when the limit drops this share of the packets.
fn limit_error(limited_share: f64, probability: f64) -> f64 {
    (limited_share / probability - 1.0).clamp(-1.0, 1.0)
}

/// Returns the probability after one more interval, given the change of its logarithm.
fn next_probability(before: f64, change: f64) -> f64 {
    (before * math::exp(change)).clamp(MIN_PROBABILITY, MAX_PROBABILITY)
}

/// Returns the excess at which the next packet is dropped early, as a share of the depth.
///
/// It lies halfway from `fill` to the depth with one flow, and closer with more flows, each of which needs a signal.
fn next_early(fill: f64, flows: f64) -> f64 {
    (fill + (1.0 - fill.max(EARLY_FILL)) / 2.0 / flows).max(EARLY_FILL)
}

impl Improved {
    fn new(tuning: Tuning, depth: Duration, interval: Duration) -> Self {
        Self {
            tuning,
            depth,
            interval,
            probability: INITIAL_PROBABILITY,
            error: 0.0,
            active: false,
            used: 1.0,
            lent: 0.0,
            share: Rate::ZERO,
            excess: Volume::ZERO,
            drained: Instant::ZERO,
            flows: 1.0,
            reacted: Instant::ZERO,
            early: EARLY_FILL,
            pressure: 0.0,
            next_signal: 1.0,
            arrived: 0,
            limited: 0,
            limited_share: 0.0,
        }
    }

    fn update(&mut self, m: &Measured) {
        let dt = m.lasted.as_secs();
        self.active = m.present;
        self.used += (m.total / m.usable - self.used) * (1.0 - math::exp(-dt / USE_AVERAGE_S));
        self.lent = if m.present { lent(self.lent, self.used, m) } else { 0.0 };
        self.share = m.tcp_share + m.usable * self.lent;
        self.flows = m.tcp_flows.max(1.0);
        let error = rate_error(m.tcp, self.share * self.tuning.aim);
        let (before, new) = (self.error, 1.0 - math::exp(-dt / ERROR_AVERAGE_S));
        self.error += (error - before) * new;
        let limited_share = f64::from(self.limited) / f64::from(self.arrived.max(1));
        self.limited_share += (limited_share - self.limited_share) * new;
        (self.arrived, self.limited) = (0, 0);
        if self.active {
            let proportional = self.tuning.proportional * (self.error - before);
            // Below its reference the class does not depend on the limit: what was dropped was a burst.
            let limited = self.error >= 0.0;
            let error = if limited { error.max(limit_error(self.limited_share, self.probability)) } else { error };
            self.probability = next_probability(self.probability, self.tuning.integral * dt * error + proportional);
        } else {
            self.probability = INITIAL_PROBABILITY;
            self.excess = Volume::ZERO;
        }
    }

    /// Returns true if a packet that brings the excess to `fill`, a share of the depth, is to be dropped early.
    fn is_early(&mut self, now: Instant, fill: f64) -> bool {
        let reacting = now < self.reacted;
        // The rise counts from the smallest excess since the reaction.
        let next = next_early(fill, self.flows);
        self.early = if reacting { next } else { self.early.min(next) };
        !reacting && fill >= self.early
    }

    fn decide(&mut self, now: Instant, bytes: u16, rng: &mut Pcg64) -> Decision {
        if !self.active {
            return Decision::Admit;
        }
        self.excess = (self.excess - self.share * now.since(self.drained)).max(Volume::ZERO);
        self.drained = now;
        self.arrived += 1;
        let fill = (self.excess + Volume::from_bytes(f64::from(bytes))) / (self.share * self.depth);
        if fill >= 1.0 || self.is_early(now, fill) {
            self.reacted = now + Duration::from_secs(REACTION_INTERVALS * self.interval.as_secs() / self.flows);
            self.early = next_early(fill, self.flows);
            self.limited += 1;
            return Decision::Drop;
        }
        self.pressure += self.probability;
        if self.pressure < self.next_signal {
            return Decision::Admit;
        }
        self.pressure = 0.0;
        self.next_signal = 0.5 + uniform(rng);
        Decision::Signal
    }
}

#[cfg(test)]
mod fixed_point;

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
        paper_updated(UpdateSpec::Interval)
    }

    fn paper_updated(update: UpdateSpec) -> Controller {
        Controller::new(
            &ControllerSpec::Paper { initial: 0.001, decrease: 0.9999, increase: 1.0001, threshold: 0.97, update },
            INTERVAL,
        )
    }

    /// Returns the ratio of p_drop to its initial value after one packet per millisecond: one TCP packet, then two
    /// explicit packets, in turn.
    fn after_packets(update: UpdateSpec, packets: u64, m: &Measured) -> f64 {
        let mut controller = paper_updated(update);
        controller.update(m);
        for i in 0..packets {
            let class = if i % 3 == 0 { Class::Tcp } else { Class::Explicit };
            controller.on_packet(Instant::ZERO + Duration::from_millis(i + 1), Some(class));
        }
        controller.probability() / 0.001
    }

    #[test]
    fn the_factor_may_apply_for_each_packet() {
        for (packets, times) in [(PacketClass::All, 300), (PacketClass::Explicit, 200), (PacketClass::Tcp, 100)] {
            let update = UpdateSpec::Packet { packets };
            assert!((after_packets(update, 300, &M(50.0, 50.0)) / 1.0001_f64.powi(times) - 1.0).abs() < 1e-12);
            assert!((after_packets(update, 300, &M(70.0, 30.0)) / 0.9999_f64.powi(times) - 1.0).abs() < 1e-12);
            assert_eq!(after_packets(update, 300, &M(60.0, 40.0)), 1.0, "unchanged at its share");
            assert_eq!(after_packets(update, 300, &M(50.0, 46.0)), 0.0, "inactive below the threshold");
        }
        // Traffic without congestion control is a packet too.
        let mut controller = paper_updated(UpdateSpec::Packet { packets: PacketClass::All });
        controller.update(&M(50.0, 50.0));
        controller.on_packet(Instant::ZERO, None);
        assert!((controller.probability() - 0.001_000_1).abs() < 1e-15);
    }

    #[test]
    fn the_factor_may_apply_per_period_of_time() {
        // 300 ms are 120 periods of 2.5 ms; between packets whole periods count, also several.
        let update = UpdateSpec::Period { period_s: 0.0025 };
        assert!((after_packets(update, 300, &M(50.0, 50.0)) / 1.0001_f64.powi(120) - 1.0).abs() < 1e-12);
        let update = UpdateSpec::Period { period_s: 0.0001 };
        assert!((after_packets(update, 300, &M(70.0, 30.0)) / 0.9999_f64.powi(3000) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn p_drop_by_hand() {
        let mut controller = paper();
        assert_eq!(controller.probability(), 0.0, "inactive before its first interval");
        controller.update(&M(50.0, 50.0));
        assert!((controller.probability() - 0.001_000_1).abs() < 1e-15);
        controller.update(&M(60.0, 40.0));
        assert!((controller.probability() - 0.001_000_1).abs() < 1e-15, "unchanged at its share");
        controller.update(&M(70.0, 30.0));
        assert!((controller.probability() - 0.001_000_1 * 0.9999).abs() < 1e-15);
    }

    #[test]
    fn the_paper_controller_needs_both_classes_and_input_above_the_threshold() {
        let mut controller = paper();
        (0..10).for_each(|_| controller.update(&M(50.0, 50.0)));
        let grown = controller.probability();
        controller.update(&Measured { both: false, ..M(100.0, 0.0) });
        assert_eq!(controller.probability(), 0.0);
        controller.update(&M(60.0, 40.0));
        assert_eq!(controller.probability(), grown, "keeps its value while inactive");
        controller.update(&M(50.0, 46.0));
        controller.update(&M(60.0, 40.0));
        assert_eq!(controller.probability(), 0.001, "starts over below the threshold");
    }

    #[test]
    fn the_paper_probability_grows_by_e_in_ten_thousand_intervals() {
        let mut controller = paper();
        (0..10_000).for_each(|_| controller.update(&M(50.0, 50.0)));
        assert!((controller.probability() / 0.001 - std::f64::consts::E).abs() < 1e-3);
    }

    fn improved() -> Controller {
        let depth_s = 0.5;
        Controller::new(&ControllerSpec::Improved { aim: 1.0, integral: 1.0, proportional: 0.0, depth_s }, INTERVAL)
    }

    #[test]
    fn the_improved_probability_follows_the_error() {
        let mut controller = improved();
        // Double the reference for a second: a factor e.
        (0..50).for_each(|_| controller.update(&M(20.0, 80.0)));
        assert!((controller.probability() / INITIAL_PROBABILITY - std::f64::consts::E).abs() < 1e-9);
        // A tenth below the reference for ten seconds: back to the initial value.
        (0..500).for_each(|_| controller.update(&M(60.0, 36.0)));
        assert!((controller.probability() / INITIAL_PROBABILITY - 1.0).abs() < 1e-9);
        (0..500).for_each(|_| controller.update(&M(100.0, 0.0)));
        assert_eq!(controller.probability(), MIN_PROBABILITY);
    }

    #[test]
    fn the_limit_bounds_the_admitted_volume() {
        let mut controller = improved();
        controller.update(&Measured { tcp_share: Rate::from_bps(12e5), ..M(0.0, 0.0) }); // 100 packets a second
        let (mut now, mut admitted, mut rng) = (Instant::ZERO, 0, Pcg64::new(1, 1));
        for _ in 0..10_000 {
            now += Duration::from_millis(1); // ten times the share
            if controller.decide(now, 1500, &mut rng) == Decision::Admit {
                controller.on_admitted(1500);
                admitted += 1;
            }
        }
        // 10 s at 100 per second and the depth of 50, less ten signals.
        assert!((990..=1050).contains(&admitted), "{admitted}");
    }

    #[test]
    fn unused_capacity_is_lent_and_reclaimed() {
        // 20 explicit and 40 TCP of 100: 0.9 − 0.6 of it is idle.
        let one_second = |m| Measured { lasted: Duration::from_millis(1000), ..m };
        assert!((lent(0.0, 0.6, &one_second(M(20.0, 40.0))) - 0.3).abs() < 1e-12);
        assert!((lent(0.3, 1.0, &one_second(M(20.0, 80.0))) - 0.1).abs() < 1e-12, "the link is full");
        assert_eq!(lent(0.3, 1.0, &one_second(M(60.0, 40.0))), 0.3, "the explicit class has its share");
        assert_eq!(lent(0.55, 0.45, &one_second(M(5.0, 40.0))), 0.6, "no more than the explicit share");
    }

    #[test]
    fn limit_error_by_hand() {
        assert_eq!([0.0, 0.01, 0.015, 1.0].map(|share| limit_error(share, 0.01)), [-1.0, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn gaps_between_signals_are_uniform() {
        let mut controller = improved();
        controller.update(&Measured { tcp_share: Rate::from_bps(12e9), ..M(0.0, 0.0) });
        let (mut rng, mut gaps, mut gap) = (Pcg64::new(1, 1), Vec::new(), 0u32);
        for i in 0..2_000_000 {
            gap += 1;
            if controller.decide(Instant::ZERO + Duration::from_micros(i), 1500, &mut rng) == Decision::Signal {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        // p is 0.001 e^(-0.02) after the update: 1020 packets per signal.
        let mean = gaps.iter().map(|&gap| f64::from(gap)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1020.0).abs() < 50.0, "{mean}");
        assert!(gaps[1..].iter().all(|gap| (510..=1531).contains(gap)));
    }

    /// Sends a packet every `gap_ms` milliseconds and returns the excess, in packets, at each drop by the limit. The
    /// share is 100 packets per second, the depth 50 packets.
    fn limit_drops(controller: &mut Controller, now: &mut Instant, packets: u32, gap_ms: u64) -> Vec<f64> {
        let (mut rng, mut at) = (Pcg64::new(1, 1), Vec::new());
        for _ in 0..packets {
            *now += Duration::from_millis(gap_ms);
            let decision = controller.decide(*now, 1500, &mut rng);
            let Controller::Improved(Improved { excess, .. }) = controller else { unreachable!() };
            match decision {
                Decision::Drop => at.push((*excess / Volume::from_bytes(1500.0)).round()),
                _ => controller.on_admitted(1500),
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
    fn early_drops_are_single_below_the_depth() {
        let (mut controller, mut now) = (limited(2.0), Instant::ZERO);
        // Twice the share: the excess grows by half a packet at a time. A packet at an excess of 24 is dropped: with
        // itself it is half the depth. 15 ms later, still reacting, one finds 24.5: with two flows the next drop is due
        // at 25.5 + (50 − 25.5)/4 = 31.625 with itself, so at an excess of 31. Then 32.5 + 17.5/4 = 36.875, and so on.
        let at = limit_drops(&mut controller, &mut now, 200, 5);
        assert_eq!(at[..6], [24.0, 31.0, 36.0, 40.0, 43.0, 45.0]);
        assert!(at.len() > 20, "at the depth, every second packet: {at:?}");
    }

    #[test]
    fn early_drops_wait_for_the_reaction() {
        let (mut controller, mut now) = (limited(1.0), Instant::ZERO);
        // A burst of 60 packets exceeds the depth before a flow can react.
        let at = limit_drops(&mut controller, &mut now, 60, 0);
        assert_eq!(at[0], 24.0);
        assert!(at[1..].iter().all(|&excess| excess >= 49.0), "{at:?}");
    }

    #[test]
    fn early_drops_restart_at_half_the_depth_after_draining() {
        let (mut controller, mut now) = (limited(1.0), Instant::ZERO);
        assert_eq!(limit_drops(&mut controller, &mut now, 60, 5), [24.0]);
        now += Duration::from_millis(200); // drains 20 packets
        assert_eq!(limit_drops(&mut controller, &mut now, 45, 5), [24.0]);
    }
}
