//! A law in real numbers, or its fixed-point version: the one that a deployed kernel runs.
//!
//! A protocol with a fixed-point version has a parameter `arithmetic` and wraps each of its laws in [`RealOrFixed`].

use crate::params::Params;
use crate::protocol::{
    Ack, Connection, Event, Limit, LinkView, Passing, Probe, Protocol, Received, Receiver, Router, Sending, Source,
};
use crate::state::StateFields;
use crate::units::{Duration, Instant};

crate::choice! {
    /// Which numbers a law computes with.
    pub enum Arithmetic {
        /// Real numbers.
        Real = "real",
        /// Fixed-point numbers, computed by the C code that a kernel runs (`kernel/<law>.h`).
        Kernel = "kernel",
    }
}

/// Parameters that select the arithmetic.
pub trait ChoosesArithmetic: Params {
    /// The arithmetic selected.
    fn arithmetic(&self) -> Arithmetic;
}

/// A law in real numbers, or its fixed-point version.
#[derive(Clone, Debug)]
pub enum RealOrFixed<R, F> {
    /// Real numbers.
    Real(R),
    /// Fixed-point numbers.
    Fixed(F),
}

/// Builds the version that the parameters select.
macro_rules! selected {
    ($params:expr, $real:expr, $fixed:expr) => {
        match $params.arithmetic() {
            Arithmetic::Real => Self::Real($real),
            Arithmetic::Kernel => Self::Fixed($fixed),
        }
    };
}

/// Calls the version that is there.
macro_rules! either {
    ($which:expr, $law:ident => $call:expr) => {
        match $which {
            RealOrFixed::Real($law) => $call,
            RealOrFixed::Fixed($law) => $call,
        }
    };
}

impl<P: Protocol, R: Router<P>, F: Router<P>> Router<P> for RealOrFixed<R, F>
where
    P::Params: ChoosesArithmetic,
{
    fn new(params: &P::Params, link: &LinkView) -> Self {
        selected!(params, R::new(params, link), F::new(params, link))
    }
    #[inline]
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, P::Header>) {
        either!(self, law => law.on_arrival(link, passing));
    }
    fn sees_departures(&self) -> bool {
        either!(self, law => law.sees_departures())
    }
    #[inline]
    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, P::Header>) {
        either!(self, law => law.on_departure(link, passing));
    }
    fn poll_at(&self) -> Instant {
        either!(self, law => law.poll_at())
    }
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        either!(self, law => law.on_timer(link, now));
    }
    fn interval(&self) -> Option<Duration> {
        either!(self, law => law.interval())
    }
    fn observe(&self, probe: &mut dyn Probe) {
        either!(self, law => law.observe(probe));
    }
    fn state(&self, fields: &mut StateFields) {
        either!(self, law => law.state(fields));
    }
}

impl<P: Protocol, R: Receiver<P>, F: Receiver<P>> Receiver<P> for RealOrFixed<R, F>
where
    P::Params: ChoosesArithmetic,
{
    fn new(params: &P::Params) -> Self {
        selected!(params, R::new(params), F::new(params))
    }
    #[inline]
    fn on_data(&mut self, received: &Received<P::Header>) {
        either!(self, law => law.on_data(received));
    }
    #[inline]
    fn echo(&mut self, now: Instant) -> P::Echo {
        either!(self, law => law.echo(now))
    }
    fn state(&self, fields: &mut StateFields) {
        either!(self, law => law.state(fields));
    }
}

impl<P: Protocol, R: Source<P>, F: Source<P>> Source<P> for RealOrFixed<R, F>
where
    P::Params: ChoosesArithmetic,
{
    fn new(params: &P::Params, connection: &Connection) -> Self {
        selected!(params, R::new(params, connection), F::new(params, connection))
    }
    #[inline]
    fn stamp(&mut self, sending: &Sending) -> P::Header {
        either!(self, law => law.stamp(sending))
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack<P::Echo>) {
        either!(self, law => law.on_ack(ack));
    }
    fn on_event(&mut self, now: Instant, event: Event) {
        either!(self, law => law.on_event(now, event));
    }
    #[inline]
    fn limit(&self) -> Limit {
        either!(self, law => law.limit())
    }
    fn observe(&self, probe: &mut dyn Probe) {
        either!(self, law => law.observe(probe));
    }
    fn state(&self, fields: &mut StateFields) {
        either!(self, law => law.state(fields));
    }
}
