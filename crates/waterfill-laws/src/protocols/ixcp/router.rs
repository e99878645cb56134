//! The router law.

use crate::protocol::{LinkView, Passing, Probe};
use crate::protocols::xcp;
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate};

use super::header::{ACCESS, identifier};
use super::params::{Claim, Shuffle};
use super::{Header, IXcp, Params};

/// XCP's router, which shuffles among the packets that name it.
#[derive(Clone, Debug)]
pub struct Router {
    id: u32,
    claim: Claim,
    inner: xcp::Router<Shuffle>,
}

impl xcp::Rule for Shuffle {
    /// `[ixcp-2007:2.1]` In pairs, a packet takes part by what is left of the gains or of the losses, whichever is less.
    fn part(&self, gain: (Rate, Rate), loss: (Rate, Rate)) -> f64 {
        match self {
            Self::Paired => part_left(gain).min(part_left(loss)),
            Self::Draft => 1.0,
        }
    }
}

/// The share of a packet's due that is still left to allocate.
fn part_left((given, due): (Rate, Rate)) -> f64 {
    if due > Rate::ZERO { given / due } else { 1.0 }
}

impl Router {
    /// `[ixcp-2007:3]` Returns the link that a packet names after this router has lowered its feedback.
    fn named(&self) -> u32 {
        if self.claim == Claim::LeastFeedback || self.inner.is_full() { self.id } else { ACCESS }
    }
}

impl crate::protocol::Router<IXcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let inner = xcp::Router::with_rule(&params.xcp(), link, params.shuffle);
        Self { id: identifier(link), claim: params.claim, inner }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        let header = passing.header.as_deref();
        let local = header.is_some_and(|h| h.bottleneck == self.id);
        self.inner.count_arrival(passing.volume, passing.packets, header.map(|h| &h.congestion), local);
    }

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.inner.sample_queue(link.queue);
        if let Some(header) = passing.header.as_deref_mut() {
            let local = header.bottleneck == self.id;
            if self.inner.write_feedback(passing.volume, passing.packets, &mut header.congestion, local) {
                header.next_bottleneck = self.named();
            }
        }
    }

    fn poll_at(&self) -> Instant {
        self.inner.next_timer_at()
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.inner.set_capacity(link);
        self.inner.tick(link.queue, now);
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.inner.control_interval())
    }

    fn observe(&self, probe: &mut dyn Probe) {
        self.inner.record_signals(probe);
    }

    fn state(&self, fields: &mut StateFields) {
        fields.put("id", &self.id);
        self.inner.list_state(fields);
    }
}
