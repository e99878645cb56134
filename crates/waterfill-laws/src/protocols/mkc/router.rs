//! Router law of MKC.

use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::{Header, LEAST, Mkc, Params, single};

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    gamma: f64,
    /// Target rate γC of the link.
    goal: Rate,
    interval: Duration,
    /// Volume that arrived since the last update.
    arrived: Volume,
    /// Load y of the last interval; `None` in the first one.
    load: Option<Rate>,
    /// Number of the last interval.
    sequence: u16,
    next_update: Instant,
}

impl crate::protocol::Router<Mkc> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let gamma = link.target.unwrap_or(params.gamma);
        Self {
            gamma,
            goal: link.capacity * gamma,
            interval: params.interval,
            arrived: Volume::ZERO,
            load: None,
            sequence: 0,
            next_update: Instant::ZERO + params.interval,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        let (Some(header), Some(load)) = (passing.header.as_deref_mut(), self.load) else { return };
        header.hops = header.hops.saturating_add(1);
        let loss = single(price(self.goal, load_with(load, Rate::from_bps(f64::from(header.rate)))));
        if header.router == 0 || loss > header.loss {
            (header.loss, header.router, header.sequence) = (loss, header.hops, self.sequence); // [mkc-2004:path]
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.goal = link.capacity * self.gamma;
        self.load = Some(self.arrived / self.interval);
        self.sequence = self.sequence.wrapping_add(1);
        self.arrived = Volume::ZERO;
        self.next_update = now + self.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(load) = self.load {
            probe.record("load", load.as_bps());
            probe.record("loss", price(self.goal, load.max(LEAST)));
        }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: gamma, goal, arrived, load, next_update);
        fields.put("sequence", &u32::from(self.sequence));
    }
}

/// `[mkc-2004:price]` Returns the overload as a fraction of the load, (y − γC)/y, which is negative below the target.
pub(super) fn price(goal: Rate, load: Rate) -> f64 {
    1.0 - goal / load
}

/// Returns the load that a packet of a flow with rate x shows: the measured one, or x/2 if that is larger.
fn load_with(load: Rate, rate: Rate) -> Rate {
    load.max(0.5 * rate).max(LEAST)
}
