//! α-fair RCP: every link has a rate, and a source sends at a power mean of the rates on its path.
//!
//! # Law
//! With α = 1 rates are proportionally fair, with a large α max-min fair. A link changes its rate by its spare capacity only.
//! Its queue may be added (b > 0), at the price of stability.
//!
//! - `rate`    R ← R·(1 + (T/d̂)·a·(γC − y − b·C·q)/C), every T ≤ d̂, within [R_min, R_max]
//! - `path`    x = w·(Σ_j R_j^−α)^(−1/α) over the links j of the path
//! - `step`    R ← R·y/(y + R) for a new flow, whose share the others then have left (`step`)
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | R, C | `rate`, `capacity` | bit/s |
//! | a, b, α | `gain`, `queue_gain`, `fairness` | 1 |
//! | γ | `gamma` | 1 |
//! | y | `load` | bit/s |
//! | q | mean queue that arrivals find, over T | packets of their mean size |
//! | T̄ (d̂ here, as in [`rcp`]) | `mean_rtt` | s |
//! | T | `interval` | s |
//! | w | `weight` | 1 |
//!
//! # Header
//! [`rcp`]'s 12 bytes. The rate is that of the path so far, so that a router needs no other links' rates: it combines the
//! rate in the packet with its own R by `path`.
//!
//! # Router
//! [`Router`]: a power for each packet of the law, which is 1 without a limit so far; an update of R every T.
//!
//! # Source
//! [`rcp`]'s: paced at the rate that the last acknowledgement returned, times the weight.
//!
//! # Parameters
//! [`Params`].
//!
//! # Stability
//! Our own proof, as the paper's was not at hand. With R_j = (1 + ρ_j)·R_j* a flow's relative change is Σ_k φ_rk·ρ_k, where
//! φ_rk = (x_r/(w_r·R_k))^α and Σ_k φ_rk = 1. The loop from ρ to ρ is L_jk = a/(C_j·d̂_j)·Σ_r x_r·φ_rk·e^(−sT_r)/s. It is
//! similar to Q(−s)ᵀ·diag(e^(−sT_r)/(sT_r))·Q(s), whose eigenvalues lie in the spectral radius of QᵀQ times the convex hull
//! of 0 and the curve e^(−jθ)/(jθ), which meets the real axis first at −2/π. A row of QᵀQ sums to
//! a·Σ_r x_r·T_r/(C_j·d̂_j) = a·y_j/C_j. So a·y_j/C_j < π/2 at all links is enough, whatever the RTTs and paths. With one
//! link and one RTT it is also necessary. With a queue of mean p(y) the row is multiplied by 1 + b·C·p′(y): if p is
//! y/(C − y) times a constant, this is 1 + C/y at the equilibrium, so a must stay below about π/4.
//!
//! # Readings and deviations
//! The paper's text was not available (secondary source): its abstract, and what later work says of its law. So tags name
//! quantities, and each of these is our own:
//! - γ: without the queue term something has to keep the load below C. With b > 0 set γ = 1.
//! - R_max: a link that limits nobody has a growing R. It may offer up to R_max, so that a flow alone on four links fills
//!   them at α = 1. A packet is never given more than γC.
//! - q counts in packets, and is the mean that arrivals find. The paper's is a function of the load.
//! - `step` acts once for each SYN, of a flow of weight 1.
//! - d̂, T, R_min and the start are [`rcp`]'s.
//!
//! # Validation
//! Equation tests below. In packets and in the fluid model (`tests/python/runs/test_router_laws.py`): the rates of our own
//! solver, both sides of the bound, the queue term, and a new flow with and without `step`.
//! [Results](../../validation/router-laws.md).
//!
//! # References
//! `alpha-rcp-2008`: Kelly, Raina, Voice, "Stability and Fairness of Explicit Congestion Control with Small Buffers",
//! CCR 38(3), 2008.

use crate::math::pow;
use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Event, Host, Info, LawSignal, LinkView, PacketKind, Passing, Probe, Protocol,
    ProtocolKind, SendLimit, Sending, Source as SourceLaw,
};
use crate::protocols::rcp::{self, Echo, Header, Rcp, WireRate};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

crate::params! {
    /// Parameters of α-fair RCP.
    pub struct Params {
        /// Fairness α: 1 is proportional, a large number nearly max-min.
        fairness: f64 = 1.0, "alpha-rcp-2008 abstract: proportional fairness";
        /// Gain a of the spare capacity.
        gain: f64 = 0.5, "ours: a third of π/2";
        /// Gain b of the queue, per packet.
        queue_gain: f64 = 0.0, "alpha-rcp-2008 abstract: the queue may then be controlled less accurately";
        /// Target utilization γ of a link.
        gamma: f64 = 0.95, "ours, as jetmax: headroom drains a queue";
        /// True if a link lowers its rate at once for each new flow.
        step: bool = false, "ours: a SYN may not become a flow that lasts";
        /// Initial rate of a link, as a fraction of its capacity.
        first_rate: f64 = 0.05, "as rcp";
        /// Maximum rate of a link, as a multiple of its capacity.
        r_max: f64 = 4.0, "ours: a flow alone on four links fills them at α = 1";
        /// Minimum rate of a link, R_min.
        r_min: Rate = Rate::from_bps(24e3), "as rcp";
        /// Maximum time T between two updates of a rate.
        max_interval: Duration = Duration::from_millis(10), "as rcp";
        /// Initial average RTT, until packets have reported one.
        first_rtt: Duration = Duration::from_millis(200), "as rcp";
        /// Unit of the RTT in a packet's header.
        rtt_unit: Duration = Duration::from_micros(1), "as rcp";
        /// Minimum of a link's average RTT.
        min_rtt: Duration = Duration::from_micros(10), "as rcp";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require((0.1..=100.0).contains(&self.fairness), "fairness", "a number from 0.1 to 100")?;
        require(self.gain > 0.0 && self.gain <= 100.0, "gain", "a number in (0, 100]")?;
        require((0.0..=1e6).contains(&self.queue_gain), "queue_gain", "a number from 0 to 1e6")?;
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(self.first_rate > 0.0 && self.first_rate <= 1.0, "first_rate", "a share of capacity in (0, 1]")?;
        require((1.0..=1e6).contains(&self.r_max), "r_max", "a number from 1 to 1e6")?;
        require((1.0..=1e18).contains(&self.r_min.as_bps()), "r_min", "a rate from 1 bit/s to 1e18 bit/s")?;
        require(!self.max_interval.is_zero(), "max_interval", "a time above zero")?;
        require(!self.first_rtt.is_zero(), "first_rtt", "a time above zero")?;
        require(!self.rtt_unit.is_zero(), "rtt_unit", "a time above zero")?;
        require(!self.min_rtt.is_zero(), "min_rtt", "a time above zero")
    }
}

/// The protocol `alpha_rcp`.
#[derive(Debug)]
pub struct AlphaRcp;

impl Protocol for AlphaRcp {
    const INFO: Info = Info {
        name: "alpha_rcp",
        summary: "RCP with α-fair rates: a source sends at a power mean of its links' rates (2008)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host::EXPLICIT_WITH_RTT,
        signals: &[
            LawSignal { name: "rate", unit: "bit/s", doc: "the link's rate, or the one the source follows" },
            LawSignal { name: "mean_rtt", unit: "s", doc: "the link's average RTT d̂" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = EchoLast<Echo>;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.gamma
    }
}

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    capacity: Rate,
    /// Target rate γC.
    goal: Rate,
    /// Rate R that the link offers.
    rate: Rate,
    /// Average RTT d̂ of the traffic, in seconds; `measured` is true once it has a sample.
    mean_rtt: f64,
    measured: bool,
    /// Volume that arrived in the current T, and y of the last one.
    arrived: Volume,
    load: Rate,
    /// Volume of the arrivals that carried an RTT, and the sum of these RTTs weighted by bytes.
    timed: (Volume, f64),
    /// Sum of the queues that arriving packets found, in bytes.
    queued: f64,
    interval: Duration,
    next_update: Instant,
}

impl Router {
    fn within(&self, rate: Rate) -> Rate {
        rate.min(self.capacity * self.params.r_max).max(self.params.r_min)
    }

    /// Updates d̂ with the RTTs that packets carried in this interval.
    fn average_rtt(&mut self) {
        let sample = self.timed.1 / self.timed.0.as_bytes();
        if sample.is_finite() {
            let gain = if self.measured { self.interval.as_secs() / self.mean_rtt } else { 1.0 };
            self.mean_rtt = rcp::mean_rtt_next(self.mean_rtt, sample, gain).max(self.params.min_rtt.as_secs());
            self.measured = true;
        }
    }
}

impl crate::protocol::Router<AlphaRcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mean_rtt = params.first_rtt.max(params.min_rtt);
        let interval = mean_rtt.min(params.max_interval);
        Self {
            params: params.clone(),
            capacity: link.capacity,
            goal: link.capacity * link.target.unwrap_or(params.gamma),
            rate: (link.capacity * params.first_rate).max(params.r_min),
            mean_rtt: mean_rtt.as_secs(),
            measured: false,
            arrived: Volume::ZERO,
            load: Rate::ZERO,
            timed: (Volume::ZERO, 0.0),
            queued: 0.0,
            interval,
            next_update: Instant::ZERO + interval,
        }
    }

    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if self.params.queue_gain > 0.0 {
            self.queued += link.queue.as_bytes() * passing.packets;
        }
        let Some(header) = passing.header.as_deref_mut() else { return };
        if header.rtt > 0 {
            let rtt = f64::from(header.rtt) * self.params.rtt_unit.as_secs();
            self.timed.0 += passing.volume;
            self.timed.1 += rtt * passing.volume.as_bytes();
        }
        if self.params.step && passing.kind == PacketKind::Syn {
            self.rate = self.within(after_step(self.rate, self.load));
        }
        let path = path_rate(header.rate.rate(), self.rate, self.params.fairness);
        header.rate = WireRate::of(path.min(self.goal));
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.capacity = link.capacity;
        self.goal = link.capacity * link.target.unwrap_or(self.params.gamma);
        self.average_rtt();
        self.load = self.arrived / self.interval;
        let queue = self.queued / self.arrived.as_bytes();
        let queue = if queue.is_finite() { queue } else { 0.0 };
        let excess = spare(self.goal, self.load, self.capacity, self.params.queue_gain * queue);
        let gain = self.params.gain * self.interval.as_secs() / self.mean_rtt;
        self.rate = self.within(rate_next(self.rate, excess, gain));
        (self.arrived, self.timed, self.queued) = (Volume::ZERO, (Volume::ZERO, 0.0), 0.0);
        self.interval = Duration::from_secs(self.mean_rtt).min(self.params.max_interval);
        self.next_update = now + self.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("rate", self.rate.as_bps());
        probe.record("mean_rtt", self.mean_rtt);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: capacity, goal, rate, mean_rtt, measured, arrived, load, queued, interval, next_update);
        fields.put("timed", &self.timed.0);
        fields.put("rtt_bytes", &self.timed.1);
    }
}

/// `[alpha-rcp-2008:path]` Returns the rate of a path with one more link, (x^−α + R^−α)^(−1/α), or R for the first link.
fn path_rate(path: Option<Rate>, rate: Rate, fairness: f64) -> Rate {
    let Some(path) = path else { return rate };
    let (low, high) = (path.min(rate), path.max(rate));
    low * pow(1.0 + pow(low / high, fairness), -1.0 / fairness)
}

/// `[alpha-rcp-2008:rate]` Returns the spare capacity as a fraction of the link, (γC − y)/C − b·q.
fn spare(goal: Rate, load: Rate, capacity: Rate, queue_term: f64) -> f64 {
    (goal - load) / capacity - queue_term
}

/// `[alpha-rcp-2008:rate]` Returns the next rate, R·(1 + (T/d̂)·a·spare), but at least R/2: T may be a whole d̂.
fn rate_next(rate: Rate, spare: f64, gain: f64) -> Rate {
    rate * (1.0 + gain * spare).max(0.5)
}

/// `[alpha-rcp-2008:step]` Returns the rate after a new flow has joined, R·y/(y + R).
fn after_step(rate: Rate, load: Rate) -> Rate {
    rate * (load / (load + rate))
}

/// Source that sends at the rate that the last acknowledgement returned.
#[derive(Clone, Debug)]
pub struct Source(rcp::Source);

impl SourceLaw<AlphaRcp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let params = rcp::Params { rtt_unit: params.rtt_unit, ..rcp::Params::default() };
        Self(SourceLaw::<Rcp>::new(&params, connection))
    }
    fn stamp(&mut self, sending: &Sending) -> Header {
        SourceLaw::<Rcp>::stamp(&mut self.0, sending)
    }
    fn on_ack(&mut self, ack: &Ack<Echo>) {
        SourceLaw::<Rcp>::on_ack(&mut self.0, ack);
    }
    fn on_event(&mut self, now: Instant, event: Event) {
        SourceLaw::<Rcp>::on_event(&mut self.0, now, event);
    }
    fn limit(&self) -> SendLimit {
        SourceLaw::<Rcp>::limit(&self.0)
    }
    fn observe(&self, probe: &mut dyn Probe) {
        SourceLaw::<Rcp>::observe(&self.0, probe);
    }
    fn state(&self, fields: &mut StateFields) {
        SourceLaw::<Rcp>::state(&self.0, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::testing::{self, close, connection, echo_after, link};

    fn mbps(rate: f64) -> Rate {
        Rate::from_bps(rate * 1e6)
    }

    /// `[alpha-rcp-2008:rate]` At 60 of 95 Mbit/s on a 100 Mbit/s link, and b·q = 0.05, 30 % of the link is to spare. A tenth
    /// of d̂ at a = 0.5 raises R by 1.5 %.
    #[test]
    fn rate_step() {
        let spare = spare(mbps(95.0), mbps(60.0), mbps(100.0), 0.05);
        close(spare, 0.3, 1e-12);
        close(rate_next(mbps(20.0), spare, 0.5 * 0.1).as_bps(), 20.3e6, 1e-12);
        close(rate_next(mbps(20.0), -9.0, 0.5).as_bps(), 10e6, 1e-12);
    }

    /// `[alpha-rcp-2008:path]` Links of 20 and 30 Mbit/s give 12 at α = 1, since 1/20 + 1/30 = 1/12. Links of 30 and 40 give
    /// 24 at α = 2, and links of 20 and 30 nearly 20 at α = 100.
    #[test]
    fn path_of_two_links() {
        let path = |a, b, fairness| path_rate(Some(mbps(a)), mbps(b), fairness).as_bps();
        close(path(20.0, 30.0, 1.0), 12e6, 1e-12);
        close(path(40.0, 30.0, 2.0), 24e6, 1e-12);
        close(path(20.0, 30.0, 100.0), 20e6, 1e-9);
        assert_eq!(path_rate(None, mbps(7.0), 1.0), mbps(7.0));
    }

    /// `[alpha-rcp-2008:step]` Three flows of 30 Mbit/s are joined by a fourth: 22.5 each.
    #[test]
    fn step_for_a_new_flow() {
        close(after_step(mbps(30.0), mbps(90.0)).as_bps(), 22.5e6, 1e-12);
        assert_eq!(after_step(mbps(30.0), Rate::ZERO), Rate::ZERO);
    }

    fn router(params: &Params) -> Router {
        crate::protocol::Router::new(params, &link(1e8, 0.0))
    }

    fn pass(router: &mut Router, header: Header, kind: PacketKind, queue: f64) -> Header {
        let (mut header, now) = (header, Instant::ZERO);
        let mut passing =
            Passing { now, volume: Volume::from_bytes(1500.0), packets: 1.0, kind, header: Some(&mut header) };
        crate::protocol::Router::on_arrival(router, &link(1e8, queue), &mut passing);
        header
    }

    fn tick(router: &mut Router) {
        crate::protocol::Router::on_timer(router, &link(1e8, 0.0), Instant::ZERO);
    }

    /// Two routers at their first rates of 5 Mbit/s give 2.5. A packet never carries more than γC.
    #[test]
    fn routers_combine_their_rates() {
        let mut first = router(&Params::default());
        let once = pass(&mut first, Header::default(), PacketKind::Data, 0.0);
        assert_eq!(once.rate.rate(), Some(mbps(5.0)));
        close(pass(&mut first, once, PacketKind::Data, 0.0).rate.rate().unwrap().as_bps(), 2.5e6, 1e-6);
        first.rate = mbps(400.0);
        close(pass(&mut first, Header::default(), PacketKind::Data, 0.0).rate.rate().unwrap().as_bps(), 95e6, 1e-6);
    }

    /// 1500 B in 10 ms are 1.2 Mbit/s, and d̂ becomes the packet's 50 ms. Without a queue term the spare capacity is 0.938 of
    /// the link and R rises by a·(10/50)·0.938. With b = 1/4 the two packets that the arrival found take 0.5 of it.
    #[test]
    fn a_queue_counts_only_with_its_gain() {
        for (queue_gain, spare) in [(0.0, 0.938), (0.25, 0.438)] {
            let mut router = router(&Params { queue_gain, ..Params::default() });
            pass(&mut router, Header { rtt: 50_000, ..Header::default() }, PacketKind::Data, 3000.0);
            tick(&mut router);
            close(router.mean_rtt, 0.05, 1e-12);
            close(router.rate.as_bps(), 5e6 * (1.0 + 0.5 * 0.2 * spare), 1e-9);
        }
    }

    /// An idle link offers up to four times its capacity, and an overloaded one at least R_min.
    #[test]
    fn a_rate_stays_between_r_min_and_r_max() {
        let mut router = router(&Params::default());
        (0..10_000).for_each(|_| tick(&mut router));
        assert_eq!(router.rate, mbps(400.0));
        for _ in 0..1000 {
            router.arrived = Volume::from_bytes(1e9);
            tick(&mut router);
        }
        assert_eq!(router.rate, Rate::from_bps(24e3));
    }

    /// With `step` a SYN lowers R from 5 Mbit/s to 5·1.2/(1.2 + 5) at a load of 1.2. Data and other links' SYNs do not.
    #[test]
    fn a_syn_takes_its_share_at_once() {
        for step in [false, true] {
            let mut router = router(&Params { step, ..Params::default() });
            pass(&mut router, Header::default(), PacketKind::Data, 0.0);
            tick(&mut router);
            let before = router.rate;
            pass(&mut router, Header::default(), PacketKind::Data, 0.0);
            assert_eq!(router.rate, before);
            pass(&mut router, Header::default(), PacketKind::Syn, 0.0);
            let wanted = if step { before * (1.2 / (1.2 + before.as_bps() / 1e6)) } else { before };
            close(router.rate.as_bps(), wanted.as_bps(), 1e-9);
        }
    }

    /// A source sends at the rate that it receives, times its weight.
    #[test]
    fn a_source_sends_at_the_rate_it_receives() {
        let params = Params::default();
        let mut source: Source = SourceLaw::new(&params, &Connection { weight: 2.0, ..connection() });
        assert_eq!(source.limit().window, Some(connection().initial_window));
        let header = testing::pass::<AlphaRcp>(&mut router(&params), &link(1e8, 0.0), Header::default(), 40.0);
        let echo = echo_after::<AlphaRcp>(&params, &[header]);
        source.on_ack(&Ack::new(Instant::ZERO, echo, Duration::from_millis(40)));
        assert_eq!(source.limit().pacing, Some(mbps(10.0)));
        let sending = Sending::new(Instant::ZERO, PacketKind::Data, connection().packet);
        assert_eq!(source.stamp(&sending).rtt, 40_000);
    }

    #[test]
    fn parameters_without_a_meaning_are_refused() {
        Params { fairness: 0.0, ..Params::default() }.validate().expect_err("no power mean");
        Params { r_max: 0.5, ..Params::default() }.validate().expect_err("the link could not be filled");
        Params { gain: 2.0, ..Params::default() }.validate().expect("unstable, and worth a run");
    }
}
