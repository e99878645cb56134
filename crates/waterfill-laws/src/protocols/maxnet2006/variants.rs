//! Choice between the law in real numbers and the law in the integers that the thesis prints.

use super::params::Arithmetic;
use super::{Echo, Header, MaxNet2006, Params};
use crate::protocol::{Ack, Connection, Event, LinkView, Passing, Probe, Router, SendLimit, Sending, Source};
use crate::state::StateFields;
use crate::units::Instant;

/// Law of the 2006 thesis, in real numbers or in the thesis's integers.
#[derive(Clone, Debug)]
pub enum Printable<R, P> {
    /// The law in real numbers.
    Real(R),
    /// The law in the integers as printed.
    Printed(P),
}

/// Builds the version that the parameters select.
macro_rules! selected {
    ($params:expr, $real:expr, $printed:expr) => {
        if $params.arithmetic == Arithmetic::Printed { Self::Printed($printed) } else { Self::Real($real) }
    };
}

/// Calls a method of the real or the printed version, whichever is in use.
macro_rules! either {
    ($which:expr, $law:ident => $call:expr) => {
        match $which {
            Printable::Real($law) => $call,
            Printable::Printed($law) => $call,
        }
    };
}

impl<R: Router<MaxNet2006>, P: Router<MaxNet2006>> Router<MaxNet2006> for Printable<R, P> {
    fn new(params: &Params, link: &LinkView) -> Self {
        selected!(params, R::new(params, link), P::new(params, link))
    }
    #[inline]
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        either!(self, law => law.on_arrival(link, passing));
    }
    fn poll_at(&self) -> Instant {
        either!(self, law => law.poll_at())
    }
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        either!(self, law => law.on_timer(link, now));
    }
    fn observe(&self, probe: &mut dyn Probe) {
        either!(self, law => law.observe(probe));
    }
    fn state(&self, fields: &mut StateFields) {
        either!(self, law => law.state(fields));
    }
}

impl<R: Source<MaxNet2006>, P: Source<MaxNet2006>> Source<MaxNet2006> for Printable<R, P> {
    fn new(params: &Params, connection: &Connection) -> Self {
        selected!(params, R::new(params, connection), P::new(params, connection))
    }
    #[inline]
    fn stamp(&mut self, sending: &Sending) -> Header {
        either!(self, law => law.stamp(sending))
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack<Echo>) {
        either!(self, law => law.on_ack(ack));
    }
    fn on_event(&mut self, now: Instant, event: Event) {
        either!(self, law => law.on_event(now, event));
    }
    #[inline]
    fn limit(&self) -> SendLimit {
        either!(self, law => law.limit())
    }
    fn observe(&self, probe: &mut dyn Probe) {
        either!(self, law => law.observe(probe));
    }
    fn state(&self, fields: &mut StateFields) {
        either!(self, law => law.state(fields));
    }
}
