//! Cohabitation: explicit flows get their fair share of a link that also carries ordinary TCP.
//!
//! D. M. López Pacheco, L. Lefèvre, C. Pham, *Lightweight Fairness Solutions for XCP and TCP Cohabitation*, 2008. An
//! explicit law yields to load that ignores its headers; TCP reacts to losses (and marks) only. So the module estimates
//! the number of flows of both classes ([`estimator`]), computes the classes' fair shares (eq. 3–4), measures what they
//! send, and drops TCP packets with a probability that a [`controller`] sets. It knows nothing of the explicit law but
//! its target.
//!
//! The module decides before the explicit laws of its link: they neither see nor yield to what it drops. With the
//! improved controller they see only the explicit class's part of the queue: the rest is TCP's burst, which they cannot
//! drain, and a law such as RCP's would leave capacity idle for as long as it lasts. With one queue per class
//! ([`per_class`]) nothing is dropped here: the explicit laws see only their part of the capacity.
//!
//! Readings:
//! - The output capacity O of eq. 3 is what all flows may use together: the link's target × capacity, less load that
//!   reacts neither to routers nor to losses (constant-rate traffic).
//! - The control interval is a parameter. It may follow the interval of a law on the link, such as XCP's mean RTT.
//! - A flow is what sends data or opens a connection. Only data packets of the TCP class are dropped or marked: a SYN
//!   belongs to no flow yet, and a lost acknowledgement slows nobody. All packets of a class count as its input.
//! - In each interval the module acts on the measurements of the interval before.

use std::ops::{Index, IndexMut};

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::math;
use waterfill_laws::protocol::{Probe, ProtocolKind};
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::series::COHABIT_COLUMNS;
use waterfill_network::{CohabitSpec, CountDrops};

use super::discipline::{QueueContext, Verdict, flow_id};
use crate::packet::{Cargo, Flags, Packet, Role};

mod bench;
mod controller;
mod estimator;
mod exact;
mod nred;
mod per_class;
mod periods;
mod sred;

pub use bench::ModuleBench;
pub(super) use per_class::PerClassQueue;

use controller::{Controller, Decision, Measured};
use estimator::Estimator;

/// Class of a flow, by the signal that changes its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Flows controlled by headers that routers write.
    Explicit,
    /// Flows controlled by losses, marks and delays.
    Tcp,
}

impl Class {
    const BOTH: [Self; 2] = [Self::Explicit, Self::Tcp];

    /// Returns the class of a packet, or `None` for traffic without congestion control.
    fn of(packet: &Packet) -> Option<Self> {
        if packet.role == Role::Traffic {
            return None;
        }
        let protocol: Option<ProtocolId> = match &packet.cargo {
            Cargo::Header(header) => header.protocol(),
            Cargo::Echo(echo) => echo.protocol(),
        };
        let explicit = protocol.is_some_and(|id| id.info().kind == ProtocolKind::Explicit);
        Some(if explicit { Self::Explicit } else { Self::Tcp })
    }
}

/// A pair of values, one per class.
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

/// `[xcp-tcp-2008:eq3]` Returns the explicit class's fair share, BW_XCP = O N/(N + M), where an explicit flow has
/// `weight` shares.
fn explicit_share(usable: Rate, flows: PerClass<f64>, weight: f64) -> Rate {
    let shares = weight * flows[Class::Explicit];
    usable * (shares / (shares + flows[Class::Tcp]))
}

/// `[xcp-tcp-2008:eq4]` Returns the TCP class's fair share, BW_TCP = O − BW_XCP.
fn tcp_share(usable: Rate, explicit_share: Rate) -> Rate {
    usable - explicit_share
}

/// Time for which a class counts as present after its last packet. A flow at its smallest rate rarely sends.
const PRESENCE: Duration = Duration::from_millis(2000);

/// Averaging time of load without congestion control, in seconds.
const OTHER_AVERAGE_S: f64 = 1.0;

/// Cohabitation module of one link direction.
#[derive(Debug)]
pub(crate) struct Cohabit {
    capacity: Rate,
    /// Share of the capacity that may be used.
    target: f64,
    interval: Duration,
    /// Length of the next control interval.
    next_interval: Duration,
    /// True if the control interval follows a law on the link.
    follows_law: bool,
    count_drops: CountDrops,
    /// Start of the current control interval.
    since: Instant,
    input: PerClass<Volume>,
    /// Time of each class's last packet.
    seen: PerClass<Option<Instant>>,
    /// Input volume of traffic without congestion control.
    other: Volume,
    /// Average rate of traffic without congestion control.
    other_rate: Rate,
    flows: PerClass<f64>,
    weight: f64,
    estimator: Estimator,
    controller: Controller,
    ecn: bool,
    rng: Pcg64,
    /// Number of TCP packets dropped so far.
    drops: u64,
    /// Waiting bytes of the explicit class.
    explicit_backlog: u64,
    /// Measurements of the last complete interval, until they are taken.
    measured: Option<Measured>,
}

impl Cohabit {
    pub(super) fn new(spec: &CohabitSpec, context: QueueContext) -> Self {
        let mut rng = context.rng;
        // A stream of its own: the choice of inspected packets does not change which packets are dropped.
        let inspection = Pcg64::new(u128::from(rng.next_u64()), 1);
        let interval = Duration::from_secs(spec.interval_s).max(Duration::from_ps(1));
        Self {
            capacity: context.capacity,
            target: 1.0,
            interval,
            next_interval: interval,
            follows_law: spec.interval_of_law,
            count_drops: spec.count_drops,
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

    /// Sets the share of the capacity that the link's laws target.
    pub(super) const fn notify_target(&mut self, target: f64) {
        self.target = target;
    }

    /// Sets the capacity of the link from the current interval on.
    pub(super) const fn notify_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity;
    }

    /// Sets the control interval of an explicit law on the link. The value applies from the next interval on.
    pub(super) fn notify_interval(&mut self, interval: Duration) {
        if self.follows_law {
            self.next_interval = interval.max(Duration::from_ps(1));
        }
    }

    /// Returns true if the explicit laws of the link see packets that the module drops.
    pub(super) fn shows_drops(&self) -> bool {
        self.count_drops == CountDrops::Router
    }

    /// Measures an arriving packet and decides on it.
    pub(super) fn on_arrival(&mut self, now: Instant, packet: &Packet) -> Verdict {
        self.advance(now);
        let volume = Volume::from_bytes(f64::from(packet.bytes));
        let class = Class::of(packet);
        self.controller.on_packet(now, class);
        let Some(class) = class else {
            self.other += volume;
            return Verdict::Accept;
        };
        if packet.role.has_data() || matches!(packet.role, Role::Syn | Role::Open) {
            self.estimator.on_packet(now, class, flow_id(packet));
            self.seen[class] = Some(now);
        }
        let mut verdict = Verdict::Accept;
        if class == Class::Tcp && packet.role.has_data() {
            verdict = self.decide(now, packet);
            if verdict == Verdict::Drop {
                self.drops += 1;
                if self.count_drops != CountDrops::Never {
                    self.input[class] += volume;
                }
                return verdict;
            }
            self.controller.on_admitted(packet.bytes);
        }
        self.input[class] += volume;
        verdict
    }

    /// Counts a packet that has to wait.
    pub(super) fn on_enqueue(&mut self, packet: &Packet) {
        if Class::of(packet) == Some(Class::Explicit) {
            self.explicit_backlog += u64::from(packet.bytes);
        }
    }

    /// Counts a waiting packet whose transmission starts.
    pub(super) fn on_dequeue(&mut self, packet: &Packet) {
        if Class::of(packet) == Some(Class::Explicit) {
            self.explicit_backlog -= u64::from(packet.bytes);
        }
    }

    /// Returns the part of a backlog that explicit laws see, in bytes.
    pub(super) const fn visible_bytes(&self, backlog_bytes: u64) -> u64 {
        if self.controller.is_improved() { self.explicit_backlog } else { backlog_bytes }
    }

    fn decide(&mut self, now: Instant, packet: &Packet) -> Verdict {
        match self.controller.decide(now, packet.bytes, &mut self.rng) {
            Decision::Admit => Verdict::Accept,
            Decision::Signal if self.ecn && packet.flags.has(Flags::MARKABLE) => Verdict::Mark,
            Decision::Signal | Decision::Drop => Verdict::Drop,
        }
    }

    /// Completes the control intervals that are over. Only arrivals change the measurements, so this runs at arrivals
    /// only.
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
        self.other_rate += (other - self.other_rate) * (1.0 - math::exp(-lasted.as_secs() / OTHER_AVERAGE_S));
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
        if self.next_interval != self.interval {
            self.interval = self.next_interval;
            self.controller.set_interval(self.interval);
        }
    }

    /// Takes the measurements of the last interval, if they have not been taken yet.
    fn take_measured(&mut self) -> Option<Measured> {
        self.measured.take()
    }

    /// Returns the names of the module's columns.
    pub(super) const fn columns() -> &'static [&'static str] {
        &COHABIT_COLUMNS
    }

    /// Records a value for each column of the module.
    pub(super) fn observe(&self, probe: &mut dyn Probe) {
        let work = self.estimator.work();
        let values = [
            self.controller.probability(),
            self.flows[Class::Explicit],
            self.flows[Class::Tcp],
            self.drops as f64,
            work.inspected as f64,
            work.operations as f64,
        ];
        for (column, value) in COHABIT_COLUMNS.into_iter().zip(values) {
            probe.record(column, value);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.estimator.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: f64) -> Rate {
        Rate::from_bps(bps)
    }

    /// Checks eq. 3 and 4 with the example of §5: O = 1024 Mbit/s, 10 XCP flows and 1, 2 or 3 TCP flows.
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
