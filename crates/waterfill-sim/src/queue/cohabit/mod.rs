//! Cohabitation: explicit flows get their fair share of a link on which ordinary TCP is too.
//!
//! D. M. López Pacheco, L. Lefèvre, C. Pham, *Lightweight Fairness Solutions for XCP and TCP Cohabitation*, 2008. An explicit
//! law gives way to load that does not listen to it; TCP listens to losses (and marks) only. So the module counts the
//! flows of both classes ([`estimate`]), works out the classes' fair shares (eq. 3–4), measures what they send, and drops
//! TCP packets with a probability that a [`controller`] sets. It knows nothing of the explicit law but its target.
//!
//! It stands before the explicit laws of its link: they do not see, and so do not give way to, what it turns away. With the
//! improved controller they are shown the explicit class's own part of the queue: what TCP's bursts leave in it is not theirs to
//! drain, and a law such as RCP's would leave capacity idle for as long as they come. With a queue of its own for each class
//! ([`apart`]) nothing is dropped here: the explicit laws are told which part of the capacity is theirs.
//!
//! Readings:
//! - The output capacity O of eq. 3 is what all may use together: the link's target × capacity, less load that neither
//!   listens to routers nor to losses (constant-rate traffic).
//! - The control interval is a parameter: the module reads no protocol's header, and so not XCP's mean RTT.
//! - A flow is what sends data or opens a connection. Only data of the TCP class is ever dropped or marked: without a
//!   SYN there is no flow yet, and a lost acknowledgement slows nobody. All packets of a class count in its input.
//! - The module acts in an interval on what it measured in the one before.

use std::ops::{Index, IndexMut};

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::protocol::Kind;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::CohabitSpec;

use super::{Setting, Verdict, flow_of};
use crate::packet::{Cargo, Flags, Packet, Role};

mod apart;
mod controller;
mod cost;
mod estimate;
mod exact;
mod nred;
mod sred;

pub(super) use apart::Apart;
pub use cost::Exercise;

use controller::{Controller, Fate, Measured};
use estimate::Estimator;

/// Whom a packet listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// To routers.
    Explicit,
    /// To losses, marks and delays.
    Tcp,
}

impl Class {
    const BOTH: [Self; 2] = [Self::Explicit, Self::Tcp];

    /// None for traffic that listens to nobody.
    fn of(packet: &Packet) -> Option<Self> {
        if packet.role == Role::Traffic {
            return None;
        }
        let protocol: Option<ProtocolId> = match &packet.cargo {
            Cargo::Header(header) => header.protocol(),
            Cargo::Echo(echo) => echo.protocol(),
        };
        let explicit = protocol.is_some_and(|id| id.info().kind == Kind::Explicit);
        Some(if explicit { Self::Explicit } else { Self::Tcp })
    }
}

/// Something of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PerClass<T>([T; 2]);

impl<T> PerClass<T> {
    fn from_fn(f: impl FnMut(Class) -> T) -> Self {
        Self(Class::BOTH.map(f))
    }
}

impl<T> Index<Class> for PerClass<T> {
    type Output = T;
    fn index(&self, class: Class) -> &T {
        &self.0[class as usize]
    }
}

impl<T> IndexMut<Class> for PerClass<T> {
    fn index_mut(&mut self, class: Class) -> &mut T {
        &mut self.0[class as usize]
    }
}

/// `[xcp-tcp-2008:eq3]` BW_XCP = O N/(N + M), an explicit flow having `weight` shares.
fn explicit_share(usable: Rate, flows: PerClass<f64>, weight: f64) -> Rate {
    let shares = weight * flows[Class::Explicit];
    usable * (shares / (shares + flows[Class::Tcp]))
}

/// `[xcp-tcp-2008:eq4]` BW_TCP = O − BW_XCP.
fn tcp_share(usable: Rate, explicit_share: Rate) -> Rate {
    usable - explicit_share
}

/// What a module shows at samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// p_drop; zero while the module does not act.
    pub(crate) probability: f64,
    /// Estimated active flows.
    pub(crate) explicit_flows: f64,
    pub(crate) tcp_flows: f64,
    /// TCP packets dropped so far.
    pub(crate) drops: u64,
    /// Packets that the estimator inspected so far, and its operations.
    pub(crate) inspected: u64,
    pub(crate) operations: u64,
}

impl Shown {
    /// In the order of [`waterfill_network::series::COHABIT_COLUMNS`].
    pub(crate) const fn values(&self) -> [f64; 6] {
        [
            self.probability,
            self.explicit_flows,
            self.tcp_flows,
            self.drops as f64,
            self.inspected as f64,
            self.operations as f64,
        ]
    }
}

/// A class is there for so long after its last packet: a flow that has been driven to its smallest rate sends seldom.
const PRESENCE: Duration = Duration::from_millis(2000);

/// Time over which load that listens to nobody is averaged.
const OTHER_AVERAGE: f64 = 1.0;

/// The module on one link direction.
#[derive(Debug)]
pub(crate) struct Cohabit {
    capacity: Rate,
    /// Share of the capacity that may be used.
    target: f64,
    interval: Duration,
    /// Start of the control interval.
    since: Instant,
    input: PerClass<Volume>,
    /// When each class was last seen.
    seen: PerClass<Option<Instant>>,
    other: Volume,
    /// Average of `other`.
    other_rate: Rate,
    flows: PerClass<f64>,
    weight: f64,
    estimator: Estimator,
    controller: Controller,
    ecn: bool,
    rng: Pcg64,
    drops: u64,
    /// What waits of the explicit class.
    explicit_backlog: u64,
    /// What the interval that ended last measured, until somebody takes it.
    measured: Option<Measured>,
}

impl Cohabit {
    pub(super) fn new(spec: &CohabitSpec, setting: Setting) -> Self {
        let mut rng = setting.rng;
        // A stream of its own: what is inspected does not change what is dropped.
        let inspection = Pcg64::new(u128::from(rng.next_u64()), 1);
        Self {
            capacity: setting.capacity,
            target: 1.0,
            interval: Duration::from_secs(spec.interval_s).max(Duration::from_ps(1)),
            since: Instant::ZERO,
            input: PerClass::default(),
            seen: PerClass::default(),
            other: Volume::ZERO,
            other_rate: Rate::ZERO,
            flows: PerClass::default(),
            weight: spec.explicit_weight,
            estimator: Estimator::new(&spec.estimator, spec.inspect, inspection),
            controller: Controller::new(&spec.controller, Duration::from_secs(spec.interval_s)),
            ecn: spec.ecn,
            rng,
            drops: 0,
            explicit_backlog: 0,
            measured: None,
        }
    }

    /// The share of the capacity that the laws on this link aim at.
    pub(crate) const fn aim_at(&mut self, target: f64) {
        self.target = target;
    }

    /// A packet comes.
    pub(crate) fn on_arrival(&mut self, now: Instant, packet: &Packet) -> Verdict {
        self.advance(now);
        let volume = Volume::from_bytes(f64::from(packet.bytes));
        let Some(class) = Class::of(packet) else {
            self.other += volume;
            return Verdict::Accept;
        };
        if matches!(packet.role, Role::Data | Role::Syn) {
            self.estimator.sees(now, class, flow_of(packet));
            self.seen[class] = Some(now);
        }
        let mut verdict = Verdict::Accept;
        if class == Class::Tcp && packet.role == Role::Data {
            verdict = self.decide(now, packet);
            if verdict == Verdict::Drop {
                self.drops += 1;
                return verdict;
            }
            self.controller.let_in(packet.bytes);
        }
        self.input[class] += volume;
        verdict
    }

    /// A packet has joined the queue.
    pub(crate) fn waits(&mut self, packet: &Packet) {
        if Class::of(packet) == Some(Class::Explicit) {
            self.explicit_backlog += u64::from(packet.bytes);
        }
    }

    /// A packet that waited has started its transmission.
    pub(crate) fn starts(&mut self, packet: &Packet) {
        if Class::of(packet) == Some(Class::Explicit) {
            self.explicit_backlog -= u64::from(packet.bytes);
        }
    }

    /// The queue that explicit laws are shown, of this much in all.
    pub(crate) const fn queue_shown(&self, all_bytes: u64) -> u64 {
        if self.controller.is_improved() { self.explicit_backlog } else { all_bytes }
    }

    fn decide(&mut self, now: Instant, packet: &Packet) -> Verdict {
        match self.controller.judge(now, packet.bytes, &mut self.rng) {
            Fate::LetIn => Verdict::Accept,
            Fate::Signal if self.ecn && packet.flags.has(Flags::MARKABLE) => Verdict::Mark,
            Fate::Signal | Fate::Refuse => Verdict::Drop,
        }
    }

    /// Ends the control intervals that are over. Only arrivals change what they measure, so it is enough to do so then.
    fn advance(&mut self, now: Instant) {
        let ends = self.since + self.interval;
        if now < ends {
            return;
        }
        self.end_interval(ends, self.interval);
        let idle = now.since(ends);
        if idle >= self.interval {
            let whole = Duration::from_ps(idle.as_ps() - idle.as_ps() % self.interval.as_ps());
            self.end_interval(ends + whole, whole);
        }
    }

    fn end_interval(&mut self, now: Instant, lasted: Duration) {
        self.since = now;
        let input = std::mem::take(&mut self.input);
        let [explicit, tcp] = Class::BOTH.map(|class| input[class] / lasted);
        let other = std::mem::take(&mut self.other) / lasted;
        self.other_rate += (other - self.other_rate) * (1.0 - (-lasted.as_secs() / OTHER_AVERAGE).exp());
        self.flows = self.estimator.flows(now);
        let usable = (self.capacity * self.target - self.other_rate).max(Rate::ZERO);
        let known = Class::BOTH.iter().all(|&class| self.flows[class] > 0.0);
        let explicit_share = if known { explicit_share(usable, self.flows, self.weight) } else { usable };
        let measured = Measured {
            lasted,
            explicit,
            tcp,
            total: explicit + tcp + other,
            usable,
            tcp_flows: self.flows[Class::Tcp],
            explicit_share,
            tcp_share: tcp_share(usable, explicit_share),
            both: known && Class::BOTH.iter().all(|&class| input[class] > Volume::ZERO),
            present: known
                && Class::BOTH.iter().all(|&class| self.seen[class].is_some_and(|at| now.since(at) < PRESENCE)),
        };
        self.controller.update(&measured);
        self.measured = Some(measured);
    }

    /// What the last interval measured, once.
    fn take_measured(&mut self) -> Option<Measured> {
        self.measured.take()
    }

    pub(crate) fn shown(&self) -> Shown {
        let work = self.estimator.work();
        Shown {
            probability: self.controller.probability(),
            explicit_flows: self.flows[Class::Explicit],
            tcp_flows: self.flows[Class::Tcp],
            drops: self.drops,
            inspected: work.inspected,
            operations: work.operations,
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.estimator.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: f64) -> Rate {
        Rate::from_bps(bps)
    }

    /// §5: O = 1024 Mbit/s, 10 XCP flows and 1, 2, 3 TCP flows.
    #[test]
    fn eq3_and_eq4_by_hand() {
        let o = rate(1024e6);
        for (tcp, bw_xcp, bw_tcp) in [(1.0, 931e6, 93e6), (2.0, 853.33e6, 170.67e6), (3.0, 787.7e6, 236.3e6)] {
            let explicit = explicit_share(o, PerClass([10.0, tcp]), 1.0);
            assert!((explicit / rate(bw_xcp) - 1.0).abs() < 1e-3);
            assert!((tcp_share(o, explicit) / rate(bw_tcp) - 1.0).abs() < 2e-3);
        }
    }

    #[test]
    fn weighted_shares() {
        assert_eq!(explicit_share(rate(100.0), PerClass([2.0, 6.0]), 3.0), rate(50.0));
    }
}
