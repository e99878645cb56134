//! Router law of JetMax.

use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::{Header, JetMax, single};

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    gamma: f64,
    /// Target rate γC of the link.
    pub(super) goal: Rate,
    interval: Duration,
    /// Sum of δ over the packets of the router's own flows since the last update, in seconds.
    membership: f64,
    /// Volume of all other traffic since the last update.
    others: Volume,
    /// Number N of flows in the last interval.
    pub(super) flows: f64,
    /// Rate W of all other traffic in the last interval.
    pub(super) unresponsive: Rate,
    /// Fair rate g; `None` until the router has had a flow.
    pub(super) target: Option<Rate>,
    next_update: Instant,
}

/// Smallest rate that a router signals, because 0 means "none" on the wire.
pub(super) const LEAST: Rate = Rate::from_bps(1.0);

impl Router {
    /// Limits a rate to the range that this router signals.
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
        self.unresponsive = self.others / self.interval; // [jetmax-2006:W]
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

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: gamma, goal, membership, others, flows, unresponsive, target, next_update);
    }
}

/// Returns γC, but at least the smallest rate that a router signals.
pub(super) fn goal(capacity: Rate, gamma: f64) -> Rate {
    (capacity * gamma).max(LEAST)
}

/// `[jetmax-2006:fair-rate]` Returns (γC − W)/N, which is negative if the other traffic alone exceeds γC.
pub(super) fn fair_rate(goal: Rate, unresponsive: Rate, flows: f64) -> Rate {
    (goal - unresponsive) / flows
}

/// `[jetmax-2006:membership]` Returns the number of flows, Σδ/Δ.
pub(super) fn flows(membership: f64, interval: f64) -> f64 {
    membership / interval
}

/// `[jetmax-2006:loss]` Returns the share per unit of weight after a flow of rate x and weight w joins:
/// (γC − W + x)/(N + w). An overloaded router without flows returns x·γC/W per unit of weight. One flow then does not
/// absorb the whole overload.
pub(super) fn share_if_joined(goal: Rate, unresponsive: Rate, flows: f64, rate: Rate, weight: f64) -> Rate {
    if flows <= 0.0 && unresponsive > goal {
        return rate * (goal / unresponsive) / weight;
    }
    (goal - unresponsive + rate) / (flows + weight)
}

/// `[jetmax-2006:loss]` Returns the loss 1 − s/x.
pub(super) fn loss(share: Rate, rate: Rate) -> f64 {
    1.0 - share / rate
}
