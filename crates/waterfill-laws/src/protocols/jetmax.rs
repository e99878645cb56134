//! JetMax: a router shares what its own flows may have among as many as they are.
//!
//! # Law
//! Every flow belongs to one router of its path, its bottleneck, and says so in its packets. A router counts
//! the flows that belong to it, measures what all others send, and divides the rest of its target. The sum of
//! the flows' own rates is not part of the loop, so no delay can make a link with fixed members oscillate.
//!
//! - `fair-rate`  g_l = (γ_l·C_l − W_l)/N_l, the rate for every flow that belongs to router l
//! - `membership` N_l = Σδ/Δ over the packets of these flows in an interval Δ: in that time each sends
//!   Δ/δ packets with its interval δ to the next packet
//! - `W`          W_l = volume/Δ of everything else: flows that belong elsewhere, other protocols, acknowledgements
//! - `source`     x(n) = x(n−D) − τ·(x(n−D) − g_l(n−D←)), x(n−D) the rate one round trip earlier
//! - `loss`       p_l = 1 − s_l/x, the share of its rate that a flow would lose if it belonged to router l; s_l is
//!   g_l for a flow that does, (γC − W + x)/(N + 1) for one that does not
//! - `switching`  a flow belongs to the router of the largest p on its path
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | x_i | `rate` | bit/s |
//! | δ_i | `interval` in the header | s, times the connection's weight |
//! | γ_l, C_l | `gamma`, `LinkView::capacity` | 1, bit/s |
//! | N_l | `flows` | flows, real |
//! | W_l | `unresponsive` | bit/s |
//! | g_l | `target` | bit/s |
//! | p_l | `loss` | 1, negative where the flow could have more |
//! | τ | `tau` | 1 |
//! | Δ | `interval` of the parameters | s |
//! | R_T, R_S, R_N | `hops`, `bottleneck`, `next` | hops from the source, 0 for none |
//!
//! # Header
//! 19 bytes (maxnet-2007 §IX: four fields of 32 bits, three of 8): rate x, interval δ, loss p and target g as
//! IEEE 754 single precision in network order, then R_T (routers passed), R_S (the flow's bottleneck), R_N (the router
//! of the largest loss so far). A router is known by its distance from the source, so it needs no name.
//! Acknowledgements carry back x, p, g, R_S, R_N: 14 bytes.
//!
//! # Router
//! [`Router`]: for each packet one addition (δ or volume), a hop count and, for JetMax's own, a loss; a
//! division every Δ.
//!
//! # Source
//! [`Source`]: paced at x. A flow joins the router that the handshake found and spreads the host's initial
//! window over the time until that router has counted it; then it goes to g by the law. After a switch it keeps
//! its rate for as long.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! The paper's text was not at hand: its abstracts, maxnet-2007 §IX and what is commonly known of its law were. So
//! tags name quantities, not equation numbers, and each of these is ours:
//! - The order and format of the header's fields, and hops as router numbers (255 at most: further routers
//!   share the last).
//! - `loss` and `switching`: the paper's "proposed loss" is known by name only. This one makes every resting
//!   point max-min: x ≤ s_l is the same as x ≤ g_l for a flow that does not belong to l, and is defined where
//!   nobody does. A router without flows of its own that others overload asks each for the same fraction, s_l =
//!   x·γC/W.
//! - When to switch. A difference below `epsilon` is none: whole packets make N and W noisy, and links may be
//!   alike; it bounds the distance from max-min, and γ's head-room holds it. A flow that would have to slow
//!   down by more than `urgent` joins when it has heard so for an interval. Else it waits four times as long as
//!   it takes to be counted, since others may be on the move as well, and does not rise past s_l meanwhile.
//!   Without that wait two flows on links that are alike can chase each other from router to router for ever.
//! - A flow obeys a new router one round trip and two intervals after it joined: before that, no full interval has
//!   counted it. Acknowledgements of packets that still belonged to the old router are not obeyed.
//! - γ, Δ, x_min and the start are not known. τ follows from the abstract: 1 % after six intervals but not after
//!   five needs (1 − τ)⁶ ≤ 0.01 < (1 − τ)⁵, 0.536 ≤ τ < 0.602.
//! - δ is packet size over x, the time to the next packet of a source that has enough to send. One that has
//!   less counts as the fraction of a flow that it is, and the others get what it leaves. g is at most γC, else
//!   a lone such flow's x would grow for ever.
//! - An interval without packets of its own flows leaves g as it is: a flow slower than a packet per Δ is not gone.
//! - A connection's weight w multiplies δ, and its target is w·g: routers share by weight.
//! - There is no queue term: (1 − γ)·C drains what a transient left. Losses do not move the rate.
//! - The window, two round trips at rate x and a packet, only stops a source whose acknowledgements stay away;
//!   a host told not to pace goes by it, and then counts, and is held, as two flows.
//! - Without a router on the path (R_N = 0) the source keeps its first rate.
//! - A router that does not speak JetMax has no hop number and is not obeyed: its queue is the flow's risk.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/jetmax.rs`): every flow within 0.5 % of max-min on a five-hop
//! parking lot with round trips of 20 to 220 ms; within 1 % while the long flow's bottleneck moves and returns,
//! without a drop; 1 % after six round trips from 10 Mbit/s to 1 Gbit/s without overshoot; random networks of
//! up to six links. Limits, tested as well: a share of a packet an interval is off by more than 5 %;
//! flows of unequal round trips overshoot together while the slower ones still send at their old rates.
//!
//! # References
//! `jetmax-2006`: Zhang, Leonard, Loguinov, "JetMax: Scalable Max-Min Congestion Control for High-Speed Heterogeneous
//! Networks", INFOCOM 2006; Computer Networks 52 (2008). `maxnet-2007` §IX.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Host, Info, Kind, Limit, LinkView, PacketKind, Passing, Probe, Protocol, Sending,
    Signal, Wire,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `jetmax`.
#[derive(Debug)]
pub struct JetMax;

impl Protocol for JetMax {
    const INFO: Info = Info {
        name: "jetmax",
        summary: "a router divides what its own flows may have by their number; max-min fair (2006)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: true,
        host: Host::EXPLICIT,
        signals: &[
            Signal {
                name: "target",
                unit: "bit/s",
                doc: "the link's fair rate g, or the one that the source last obeyed",
            },
            Signal { name: "flows", unit: "1", doc: "flows N that belong to the link" },
            Signal { name: "unresponsive", unit: "bit/s", doc: "rate W of everything else on the link" },
            Signal { name: "bottleneck", unit: "hops", doc: "the router R_S that the source belongs to" },
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

// ---------------------------------------------------------------------------------- header

/// What a data packet carries. Its numbers are what the wire holds: single precision, finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// x: the source's rate, bit/s.
    pub rate: f32,
    /// δ: time to the source's next packet at this rate, times its weight, s.
    pub interval: f32,
    /// p: the largest loss that a router proposed so far.
    pub loss: f32,
    /// g: the fair rate of the router R_S, bit/s; 0 for none.
    pub target: f32,
    /// R_T: routers passed.
    pub hops: u8,
    /// R_S: the router that the flow belongs to; 0 for none.
    pub bottleneck: u8,
    /// R_N: the router that proposed `loss`; 0 for none.
    pub next: u8,
}

/// What an acknowledgement carries: the header less what only routers need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// x, as the data packet left its source.
    pub rate: f32,
    /// The largest loss on the path.
    pub loss: f32,
    /// g of the router R_S; 0 for none.
    pub target: f32,
    /// R_S, as the data packet left its source.
    pub bottleneck: u8,
    /// R_N; 0 for no router on the path.
    pub next: u8,
}

/// A real as the wire holds it: to the nearest single, saturating. Laws hand in finite numbers.
fn single(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

fn read_single(bytes: &[u8]) -> Option<f32> {
    let value = f32::from_be_bytes(*bytes.first_chunk()?);
    value.is_finite().then_some(value)
}

fn read_not_negative(bytes: &[u8]) -> Option<f32> {
    read_single(bytes).filter(|&value| value >= 0.0)
}

impl Wire for Header {
    const BYTES: usize = 19;
    fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&self.rate.to_be_bytes());
        out[4..8].copy_from_slice(&self.interval.to_be_bytes());
        out[8..12].copy_from_slice(&self.loss.to_be_bytes());
        out[12..16].copy_from_slice(&self.target.to_be_bytes());
        out[16..19].copy_from_slice(&[self.hops, self.bottleneck, self.next]);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 19] = bytes.first_chunk()?;
        Some(Self {
            rate: read_not_negative(&bytes[0..])?,
            interval: read_not_negative(&bytes[4..])?,
            loss: read_single(&bytes[8..])?,
            target: read_not_negative(&bytes[12..])?,
            hops: bytes[16],
            bottleneck: bytes[17],
            next: bytes[18],
        })
    }
}

impl From<Header> for Echo {
    fn from(Header { rate, loss, target, bottleneck, next, .. }: Header) -> Self {
        Self { rate, loss, target, bottleneck, next }
    }
}

impl Wire for Echo {
    const BYTES: usize = 14;
    fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&self.rate.to_be_bytes());
        out[4..8].copy_from_slice(&self.loss.to_be_bytes());
        out[8..12].copy_from_slice(&self.target.to_be_bytes());
        out[12..14].copy_from_slice(&[self.bottleneck, self.next]);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 14] = bytes.first_chunk()?;
        Some(Self {
            rate: read_not_negative(&bytes[0..])?,
            loss: read_single(&bytes[4..])?,
            target: read_not_negative(&bytes[8..])?,
            bottleneck: bytes[12],
            next: bytes[13],
        })
    }
}

// ---------------------------------------------------------------------------------- router

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    gamma: f64,
    /// γC.
    goal: Rate,
    interval: Duration,
    /// Σδ of its own flows' packets since the last update, s.
    membership: f64,
    /// Volume of everything else since the last update.
    others: Volume,
    /// N of the last interval.
    flows: f64,
    /// W of the last interval.
    unresponsive: Rate,
    /// g; none before it ever had a flow.
    target: Option<Rate>,
    next_update: Instant,
}

/// The least rate that a router names, so that 0 stays "none" on the wire.
const LEAST: Rate = Rate::from_bps(1.0);

impl Router {
    /// A rate within what this router ever names.
    fn within_goal(&self, rate: Rate) -> Rate {
        rate.max(LEAST).min(self.goal)
    }
}

impl crate::protocol::Router<JetMax> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let gamma = link.target.unwrap_or(params.gamma);
        Self {
            gamma,
            goal: goal(link.capacity, gamma),
            interval: params.interval,
            membership: 0.0,
            others: Volume::ZERO,
            flows: 0.0,
            unresponsive: Rate::ZERO,
            target: None,
            next_update: Instant::ZERO + params.interval,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        let Some(header) = passing.header.as_deref_mut() else {
            self.others += passing.volume;
            return;
        };
        header.hops = header.hops.saturating_add(1);
        let rate = Rate::from_bps(f64::from(header.rate));
        // The weight is what δ is of the packet's own duration at x; a fluid step may be a fraction of a packet.
        let weight = passing.packets * f64::from(header.interval) / (passing.volume / rate);
        let weight = if weight.is_finite() { weight } else { 1.0 };
        let share = if header.bottleneck == header.hops {
            self.membership += f64::from(header.interval) * passing.packets;
            header.target = self.target.map_or(0.0, |g| single(g.as_bps()));
            self.target.unwrap_or(self.goal)
        } else {
            self.others += passing.volume;
            self.within_goal(share_if_joined(self.goal, self.unresponsive, self.flows, rate, weight))
        };
        let loss = single(loss(share * weight, rate.max(LEAST)));
        if header.next == 0 || loss > header.loss {
            (header.loss, header.next) = (loss, header.hops);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.goal = goal(link.capacity, self.gamma);
        self.flows = flows(self.membership, self.interval.as_secs());
        self.unresponsive = self.others / self.interval;
        if self.flows > 0.0 {
            self.target = Some(self.within_goal(fair_rate(self.goal, self.unresponsive, self.flows)));
        }
        (self.membership, self.others) = (0.0, Volume::ZERO);
        self.next_update = now + self.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(target) = self.target {
            probe.record("target", target.as_bps());
        }
        probe.record("flows", self.flows);
        probe.record("unresponsive", self.unresponsive.as_bps());
    }
}

/// γC, more than nothing.
fn goal(capacity: Rate, gamma: f64) -> Rate {
    (capacity * gamma).max(LEAST)
}

/// `[jetmax-2006:fair-rate]` (γC − W)/N; negative when the others alone are past γC.
fn fair_rate(goal: Rate, unresponsive: Rate, flows: f64) -> Rate {
    (goal - unresponsive) / flows
}

/// `[jetmax-2006:membership]` Σδ/Δ.
fn flows(membership: f64, interval: f64) -> f64 {
    membership / interval
}

/// `[jetmax-2006:loss]` What a unit of weight would get once a flow of rate x and weight w had moved from W to N:
/// (γC − W + x)/(N + w). Alone against an overload it would not take all of that on itself: x·γC/W.
fn share_if_joined(goal: Rate, unresponsive: Rate, flows: f64, rate: Rate, weight: f64) -> Rate {
    if flows <= 0.0 && unresponsive > goal {
        return rate * (goal / unresponsive) / weight;
    }
    (goal - unresponsive + rate) / (flows + weight)
}

/// `[jetmax-2006:loss]` 1 − s/x.
fn loss(share: Rate, rate: Rate) -> f64 {
    1.0 - share / rate
}

// ---------------------------------------------------------------------------------- source

/// The source: goes to its router's fair rate, and to another router when that has less for it.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    initial_window: Volume,
    tau: f64,
    epsilon: f64,
    urgent: f64,
    interval: Duration,
    x_min: Rate,
    /// x; none before the handshake.
    rate: Option<Rate>,
    /// R_S.
    bottleneck: u8,
    /// g as last obeyed.
    target: Option<Rate>,
    /// Since when every acknowledgement has named a router with less.
    doubted_since: Option<Instant>,
    /// When it joined its router, and how long a router needs until it has counted a flow in full.
    joined: Instant,
    counted_after: Duration,
    /// Smoothed as in RFC 6298.
    rtt: Option<Duration>,
}

impl Source {
    /// Whether to join the router that an acknowledgement proposes: soon if the flow sends clearly more than it
    /// would get there, else when some router has had less for long (meanwhile [`capped`] keeps the flow from
    /// rising past it).
    fn leaves(&mut self, before: Rate, proposed: Rate, now: Instant) -> bool {
        let doubted = now.since(*self.doubted_since.get_or_insert(now));
        let patience =
            if is_less(proposed, before, self.urgent) { self.interval } else { self.counted_after * PATIENCE };
        doubted >= patience
    }

    fn join(&mut self, router: u8, now: Instant, rtt: Duration) {
        self.bottleneck = router;
        self.joined = now;
        self.counted_after = until_counted(rtt, self.interval);
        self.doubted_since = None;
    }
}

impl crate::protocol::Source<JetMax> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            initial_window: connection.initial_window,
            tau: params.tau,
            epsilon: params.epsilon,
            urgent: params.urgent,
            interval: params.interval,
            x_min: params.x_min,
            rate: None,
            bottleneck: 0,
            target: None,
            doubted_since: None,
            joined: Instant::ZERO,
            counted_after: Duration::ZERO,
            rtt: None,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        let rate = self.rate.unwrap_or(self.x_min);
        Header {
            rate: single(rate.as_bps()),
            interval: single(self.weight * (sending.volume / rate)),
            bottleneck: self.bottleneck,
            ..Header::default()
        }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(sample) = ack.rtt {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        let rtt = self.rtt.unwrap_or(ack.base_rtt);
        let echo = ack.echo;
        if self.rate.is_none() {
            self.join(echo.next, ack.now, rtt);
            self.rate = Some((self.initial_window / self.counted_after).max(self.x_min));
            return;
        }
        let counted = ack.now.since(self.joined) >= self.counted_after;
        if ack.kind == PacketKind::Syn || echo.next == 0 || echo.bottleneck != self.bottleneck || !counted {
            return;
        }
        let before = Rate::from_bps(f64::from(echo.rate));
        let target = self.weight * Rate::from_bps(f64::from(echo.target));
        let proposed = Rate::from_bps(share(f64::from(echo.loss), f64::from(echo.rate)));
        let doubts = echo.next != echo.bottleneck && is_less(proposed, target, self.epsilon);
        if !doubts {
            self.doubted_since = None;
        } else if target <= Rate::ZERO || self.leaves(before, proposed, ack.now) {
            self.join(echo.next, ack.now, rtt);
            return;
        }
        if target > Rate::ZERO {
            let next = rate_next(before, target, self.tau);
            self.target = Some(target);
            self.rate = Some(if doubts { capped(next, before, proposed) } else { next }.max(self.x_min));
        }
    }

    fn limit(&self) -> Limit {
        match (self.rate, self.rtt) {
            (Some(rate), Some(rtt)) => Limit { window: Some(rate * (rtt * 2) + self.packet), pacing: Some(rate) },
            (rate, _) => Limit { window: Some(self.initial_window), pacing: rate },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(target) = self.target {
            probe.record("target", target.as_bps());
        }
        probe.record("bottleneck", f64::from(self.bottleneck));
    }
}

/// `[jetmax-2006:source]` x − τ·(x − g).
fn rate_next(before: Rate, target: Rate, tau: f64) -> Rate {
    before - tau * (before - target)
}

/// Until the first target that counts a flow in full: the rest of an interval, one whole, and a round trip.
fn until_counted(rtt: Duration, interval: Duration) -> Duration {
    rtt + interval * 2
}

/// `[jetmax-2006:loss]` The share s = (1 − p)·x that a proposed loss stands for.
fn share(loss: f64, rate: f64) -> f64 {
    (1.0 - loss) * rate
}

/// `[jetmax-2006:switching]` Whether another router's share is less than the target by more than a factor. A flow whose
/// router is gone from its path hears no target: any other has less.
fn is_less(proposed: Rate, target: Rate, factor: f64) -> bool {
    target <= Rate::ZERO || proposed < (1.0 - factor) * target
}

/// `[jetmax-2006:switching]` The next rate, but no rise past what another router would have for it.
fn capped(next: Rate, before: Rate, proposed: Rate) -> Rate {
    next.min(proposed.max(before))
}

/// For how many times `counted_after` a flow watches a router that has less for it, before it joins.
const PATIENCE: u64 = 4;

// ---------------------------------------------------------------------------------- parameters

crate::params! {
    /// Parameters of JetMax.
    pub struct Params {
        /// Target utilisation γ of a link.
        gamma: f64 = 0.95, "ours: head-room of 5 % drains a queue of one RTT in 20";
        /// Gain τ of the source.
        tau: f64 = 0.6, "jetmax-2006 abstract: within 1 % in six control intervals";
        /// Interval Δ of a router's measurements.
        interval: Duration = Duration::from_millis(100), "ours: at least 8 packets of 1500 B at 1 Mbit/s";
        /// How much less than a flow's own router another must have before the flow joins it.
        epsilon: f64 = 0.02, "ours: below 1 - gamma, which then holds what the flow sends too much";
        /// How much less than a flow sends another router must have for the flow to join it within an interval.
        urgent: f64 = 0.1, "ours: above the noise of 20 packets in an interval";
        /// Least rate of a source.
        x_min: Rate = Rate::from_bps(1e4), "ours: a flow told nothing hears of room within about a second";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(self.tau > 0.0 && self.tau < 2.0, "tau", "a number in (0, 2), outside which eq. source diverges")?;
        require(!self.interval.is_zero(), "interval", "a time above zero")?;
        require((0.0..1.0).contains(&self.epsilon), "epsilon", "a number in [0, 1)")?;
        require(self.epsilon <= self.urgent && self.urgent < 1.0, "clear", "a number in [epsilon, 1)")?;
        require(self.x_min.as_bps() >= 1.0, "x_min", "a rate of at least 1 bit/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Router as _, Source as _};
    use crate::testing::{close, echo_after};

    const fn mbps(rate: f64) -> Rate {
        Rate::from_bps(rate * 1e6)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// `[jetmax-2006:fair-rate]` (95 − 20)/3 = 25.
    #[test]
    fn fair_rate_divides_what_the_others_leave() {
        close(fair_rate(mbps(95.0), mbps(20.0), 3.0).as_bps(), 25e6, 1e-12);
    }

    /// `[jetmax-2006:membership]` in 100 ms, 25 packets 4 ms apart and 50 packets 2 ms apart are two flows.
    #[test]
    fn membership_counts_each_flow_once_whatever_its_rate() {
        close(flows(25.0 * 0.004 + 50.0 * 0.002, 0.1), 2.0, 1e-12);
    }

    /// `[jetmax-2006:source]` from 100 to 40 with τ = 0.6: 100 − 0.6·60 = 64; the abstract's 1 % after six steps.
    #[test]
    fn source_step_and_the_abstracts_six_intervals() {
        close(rate_next(mbps(100.0), mbps(40.0), 0.6).as_bps(), 64e6, 1e-12);
        let tau = Params::default().tau;
        let distance = |steps| {
            let mut rate = Rate::ZERO;
            for _ in 0..steps {
                rate = rate_next(rate, mbps(1.0), tau);
            }
            1.0 - rate / mbps(1.0)
        };
        close(distance(5), 0.010_24, 1e-9); // 0.4⁵
        close(distance(6), 0.004_096, 1e-9);
    }

    /// `[jetmax-2006:loss]` 57 Mbit/s at a full link of 95 that has two flows of its own: their share would become
    /// (95 − 95 + 57)/3 = 19, a loss of 1 − 19/57 = 2/3.
    #[test]
    fn loss_of_a_flow_that_would_join() {
        let share_there = share_if_joined(mbps(95.0), mbps(95.0), 2.0, mbps(57.0), 1.0);
        close(share_there.as_bps(), 19e6, 1e-12);
        close(loss(share_there, mbps(57.0)), 2.0 / 3.0, 1e-12);
        close(share(2.0 / 3.0, 57e6), 19e6, 1e-12);
        // Nobody belongs to it and 190 Mbit/s come: each gives up half.
        close(share_if_joined(mbps(95.0), mbps(190.0), 0.0, mbps(57.0), 1.0).as_bps(), 28.5e6, 1e-12);
    }

    /// `[jetmax-2006:switching]` to less than 98 % of the target only.
    #[test]
    fn switching_needs_a_share_less_by_epsilon() {
        assert!(!is_less(mbps(98.1), mbps(100.0), 0.02));
        assert!(is_less(mbps(97.9), mbps(100.0), 0.02));
        assert!(is_less(mbps(500.0), Rate::ZERO, 0.02), "no target: the router is gone");
        assert_eq!(capped(mbps(80.0), mbps(50.0), mbps(60.0)), mbps(60.0));
        assert_eq!(capped(mbps(80.0), mbps(50.0), mbps(40.0)), mbps(50.0));
        assert_eq!(capped(mbps(30.0), mbps(50.0), mbps(40.0)), mbps(30.0));
    }

    /// Byte for byte, and what is no header.
    #[test]
    fn header_on_the_wire() {
        let header = Header { rate: 1.0, interval: 2.0, loss: -1.0, target: 0.5, hops: 3, bottleneck: 4, next: 5 };
        let mut out = [0; 19];
        header.encode(&mut out);
        assert_eq!(out, [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0, 0xbf, 0x80, 0, 0, 0x3f, 0, 0, 0, 3, 4, 5]);
        assert_eq!(Header::decode(&out), Some(header));
        let echo = Echo { rate: 1.0, loss: -1.0, target: 0.5, bottleneck: 4, next: 5 };
        let mut short = [0; 14];
        echo.encode(&mut short);
        assert_eq!(short, [0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0, 0x3f, 0, 0, 0, 4, 5]);
        assert_eq!(Echo::decode(&short), Some(echo));
        assert_eq!(Header::decode(&out[..18]), None);
        for (field, bits) in [(0, f32::NAN), (4, f32::INFINITY), (8, f32::NAN), (12, -1.0), (0, -1.0)] {
            let mut wrong = out;
            wrong[field..field + 4].copy_from_slice(&bits.to_be_bytes());
            assert_eq!(Header::decode(&wrong), None, "{bits} at {field}");
        }
        assert_eq!(single(f64::INFINITY), f32::MAX);
    }

    fn link(rate: Rate) -> LinkView {
        LinkView { id: 0, capacity: rate, target: None, queue: Volume::ZERO }
    }

    /// A packet of 1500 bytes of a flow through a router.
    fn pass(router: &mut Router, header: Option<Header>) -> Option<Header> {
        let mut header = header;
        router.on_arrival(
            &link(mbps(100.0)),
            &mut Passing {
                now: Instant::ZERO,
                volume: Volume::from_bytes(1500.0),
                packets: 1.0,
                kind: PacketKind::Data,
                header: header.as_mut(),
            },
        );
        header
    }

    fn of_flow(rate_mbps: f64, bottleneck: u8, hops: u8) -> Header {
        let interval = single(0.012 / rate_mbps); // 12 kbit
        Header { rate: single(rate_mbps * 1e6), interval, bottleneck, hops, ..Header::default() }
    }

    #[test]
    fn a_router_counts_its_own_and_measures_the_rest() {
        let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
        // In 100 ms: 100 packets at 12 Mbit/s of its own, 200 packets (24 Mbit/s) bottlenecked at hop 1 and
        // 100 packets (12 Mbit/s) of somebody else's. This is hop 2.
        for _ in 0..100 {
            pass(&mut router, Some(of_flow(12.0, 2, 1)));
            pass(&mut router, Some(of_flow(24.0, 1, 1)));
            pass(&mut router, Some(of_flow(24.0, 1, 1)));
            pass(&mut router, None);
        }
        router.on_timer(&link(mbps(100.0)), at(100));
        close(router.flows, 1.0, 1e-6);
        close(router.unresponsive.as_bps(), 36e6, 1e-9);
        close(router.target.unwrap().as_bps(), 59e6, 1e-6); // 95 − 36
        // Its own hear the target, the others do not.
        let own = pass(&mut router, Some(of_flow(12.0, 2, 1))).unwrap();
        assert_eq!((own.hops, own.bottleneck, own.next), (2, 2, 2));
        close(f64::from(own.target), 59e6, 1e-6);
        close(f64::from(own.loss), 1.0 - 59.0 / 12.0, 1e-6);
        let other = pass(&mut router, Some(of_flow(24.0, 1, 1))).unwrap();
        assert_eq!(other.target, 0.0);
        close(f64::from(other.loss), 1.0 - 41.5 / 24.0, 1e-6); // (95 − 36 + 24)/2 = 41.5
        // A larger loss from an earlier hop stays.
        let earlier = Header { loss: 0.5, next: 1, ..of_flow(24.0, 1, 1) };
        assert_eq!(pass(&mut router, Some(earlier)).unwrap().next, 1);
    }

    #[test]
    fn an_interval_without_its_own_keeps_the_target() {
        let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
        for _ in 0..200 {
            pass(&mut router, Some(of_flow(12.0, 1, 0)));
        }
        router.on_timer(&link(mbps(100.0)), at(100));
        router.on_timer(&link(mbps(100.0)), at(200));
        assert_eq!(router.flows, 0.0);
        close(router.target.unwrap().as_bps(), 47.5e6, 1e-6);
    }

    #[test]
    fn targets_stay_within_the_goal() {
        let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
        pass(&mut router, Some(of_flow(12.0, 1, 0)));
        router.on_timer(&link(mbps(100.0)), at(100));
        assert_eq!(router.target.map(Rate::as_bps), Some(95e6), "a hundredth of a flow");
        for _ in 0..1000 {
            pass(&mut router, None); // 120 Mbit/s
        }
        pass(&mut router, Some(of_flow(12.0, 1, 0)));
        router.on_timer(&link(mbps(100.0)), at(200));
        assert_eq!(router.target, Some(LEAST));
    }

    #[test]
    fn a_scenario_may_set_its_own_target() {
        let view = LinkView { target: Some(0.8), ..link(mbps(100.0)) };
        close(Router::new(&Params::default(), &view).goal.as_bps(), 80e6, 1e-12);
    }

    fn ack(ms: u64, kind: PacketKind, echo: Echo) -> Ack<Echo> {
        let rtt = Duration::from_millis(50);
        Ack {
            now: at(ms),
            echo,
            kind,
            acked: Volume::from_bytes(1500.0),
            rtt: Some(rtt),
            base_rtt: rtt,
            in_flight: Volume::ZERO,
            marked: Volume::ZERO,
            smoothed_rtt: rtt,
            recovering: false,
            window_limited: true,
        }
    }

    fn source(weight: f64) -> Source {
        let packet = Volume::from_bytes(1500.0);
        Source::new(&Params::default(), &Connection { weight, packet, initial_window: 10.0 * packet, seed: 0 })
    }

    /// A handshake at 50 ms that found `share` at hop 2.
    fn opened(weight: f64, share_mbps: f64) -> Source {
        let mut source = source(weight);
        let syn = source.stamp(&Sending::new(Instant::ZERO, PacketKind::Syn, Volume::from_bytes(40.0)));
        let loss = single(loss(mbps(share_mbps), Rate::from_bps(f64::from(syn.rate))));
        source.on_ack(&ack(50, PacketKind::Syn, Echo { rate: syn.rate, loss, target: 0.0, bottleneck: 0, next: 2 }));
        source
    }

    fn pacing(source: &Source) -> f64 {
        source.limit().pacing.expect("a rate").as_bps()
    }

    /// 15,000 bytes over 50 ms and two intervals: 480 kbit/s.
    #[test]
    fn a_start_spreads_the_initial_window() {
        close(pacing(&opened(1.0, 50.0)), 480e3, 1e-9);
        let mut alone = source(1.0);
        alone.on_ack(&ack(50, PacketKind::Syn, Echo::default()));
        alone.on_ack(&ack(500, PacketKind::Ack, Echo::default()));
        close(pacing(&alone), 480e3, 1e-9); // no router on the path
    }

    #[test]
    fn a_source_waits_until_it_is_counted_and_then_obeys() {
        let mut source = opened(1.0, 50.0);
        let echo = Echo { rate: 480e3, loss: 0.0, target: 40e6, bottleneck: 2, next: 2 };
        source.on_ack(&ack(299, PacketKind::Ack, echo));
        close(pacing(&source), 480e3, 1e-9);
        source.on_ack(&ack(300, PacketKind::Ack, Echo { bottleneck: 1, ..echo }));
        close(pacing(&source), 480e3, 1e-9); // of a packet that belonged elsewhere
        source.on_ack(&ack(300, PacketKind::Ack, echo));
        close(pacing(&source), 0.4 * 480e3 + 0.6 * 40e6, 1e-9);
    }

    /// A router that has a third less than the flow sends: an interval later its packets belong there; the rate follows
    /// when that router has counted them.
    #[test]
    fn a_source_switches_and_waits_again() {
        let mut source = opened(1.0, 50.0);
        let elsewhere = Echo { rate: 30e6, loss: 1.0 - 20.0 / 30.0, target: 40e6, bottleneck: 2, next: 1 };
        let packet = Volume::from_bytes(1500.0);
        let mut stamped = |ms: u64, echo: Echo| {
            source.on_ack(&ack(ms, PacketKind::Ack, echo));
            let header = source.stamp(&Sending::new(at(ms), PacketKind::Data, packet));
            (header.bottleneck, f64::from(header.rate))
        };
        for ms in [300, 399] {
            assert_eq!(stamped(ms, elsewhere), (2, 30e6), "no rise past 20, and no switch yet");
        }
        assert_eq!(stamped(400, elsewhere), (1, 30e6));
        let counted = Echo { target: 20e6, bottleneck: 1, ..elsewhere };
        assert_eq!(stamped(649, counted), (1, 30e6));
        assert_eq!(stamped(650, counted), (1, 24e6));
    }

    /// A router that has less than the target but not less than the flow sends: watched for 1 s, four times 250 ms.
    #[test]
    fn a_source_takes_its_time_where_nothing_is_urgent() {
        let mut source = opened(1.0, 50.0);
        let less = Echo { rate: 20e6, loss: -0.5, target: 40e6, bottleneck: 2, next: 1 };
        for ms in (300..1300).step_by(50) {
            source.on_ack(&ack(ms, PacketKind::Ack, less));
            assert_eq!(source.bottleneck, 2, "at {ms} ms");
            close(pacing(&source), 30e6, 1e-6); // what router 1 has: 1.5 · 20
        }
        source.on_ack(&ack(1300, PacketKind::Ack, less));
        assert_eq!(source.bottleneck, 1);
        // A single better word starts the watch anew.
        let mut again = opened(1.0, 50.0);
        for ms in (300..2950).step_by(50) {
            let fine = Echo { loss: -1.0, next: 2, ..less };
            again.on_ack(&ack(ms, PacketKind::Ack, if ms == 1000 || ms == 1950 { fine } else { less }));
        }
        assert_eq!((again.bottleneck, again.joined), (2, at(50)));
    }

    /// A weight of 2 counts as two flows, and gets two targets.
    #[test]
    fn a_weight_is_a_number_of_flows() {
        let mut source = opened(2.0, 50.0);
        let packet = Volume::from_bytes(1500.0);
        let stamped = source.stamp(&Sending::new(at(60), PacketKind::Data, packet));
        close(f64::from(stamped.interval), 2.0 * 12_000.0 / 480e3, 1e-6);
        let mut router = Router::new(&Params::default(), &link(mbps(100.0)));
        let joining = pass(&mut router, Some(Header { bottleneck: 0, ..stamped })).unwrap();
        close(share(f64::from(joining.loss), f64::from(joining.rate)), 95e6 + 480e3, 0.01); // 2/(0 + 2) of the link
        source.on_ack(&ack(
            300,
            PacketKind::Ack,
            Echo { rate: 480e3, loss: 0.0, target: 40e6, bottleneck: 2, next: 2 },
        ));
        close(pacing(&source), 0.4 * 480e3 + 0.6 * 80e6, 1e-9);
    }

    #[test]
    fn the_receiver_echoes_what_came_last() {
        let header = Header { rate: 1.0, interval: 2.0, loss: 3.0, target: 4.0, hops: 5, bottleneck: 6, next: 7 };
        let echo = echo_after::<JetMax>(&Params::default(), &[Header::default(), header]);
        assert_eq!(echo, Echo { rate: 1.0, loss: 3.0, target: 4.0, bottleneck: 6, next: 7 });
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let good = Params::default();
        assert_eq!(good.check(), Ok(()));
        let refused = |params: Params| params.check().is_err();
        assert!(refused(Params { gamma: 1.01, ..good.clone() }));
        assert!(refused(Params { tau: 2.0, ..good.clone() }));
        assert!(refused(Params { interval: Duration::ZERO, ..good.clone() }));
        assert!(refused(Params { epsilon: 1.0, ..good.clone() }));
        assert!(refused(Params { urgent: 0.01, ..good.clone() }));
        assert!(refused(Params { x_min: Rate::ZERO, ..good }));
    }
}
