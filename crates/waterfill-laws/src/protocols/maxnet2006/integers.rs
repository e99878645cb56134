//! The two versions in integers: the kernel's here, and the thesis's as printed.

use super::params::Arithmetic;
use super::{Echo, Header, MaxNet2006, Params, fixed_point, printed};
use crate::protocol::{Ack, Connection, Limit, LinkView, Passing, Probe, Router, Sending, Source};
use crate::units::Instant;

/// A law in the kernel version's integers or in the thesis's.
#[derive(Clone, Debug)]
pub enum Integers<K, P> {
    /// `kernel/maxnet2006.h`.
    Kernel(K),
    /// The thesis's.
    Printed(P),
}

/// Calls the version that is there.
macro_rules! either {
    ($which:expr, $law:ident => $call:expr) => {
        match $which {
            Integers::Kernel($law) => $call,
            Integers::Printed($law) => $call,
        }
    };
}

impl Router<MaxNet2006> for Integers<fixed_point::Router, printed::Router> {
    fn new(params: &Params, link: &LinkView) -> Self {
        match params.arithmetic {
            Arithmetic::Printed => Self::Printed(printed::Router::new(params, link)),
            Arithmetic::Real | Arithmetic::Kernel => Self::Kernel(fixed_point::Router::new(params, link)),
        }
    }
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
}

impl Source<MaxNet2006> for Integers<fixed_point::Source, printed::Source> {
    fn new(params: &Params, connection: &Connection) -> Self {
        match params.arithmetic {
            Arithmetic::Printed => Self::Printed(printed::Source::new(params, connection)),
            Arithmetic::Real | Arithmetic::Kernel => Self::Kernel(fixed_point::Source::new(params, connection)),
        }
    }
    fn stamp(&mut self, sending: &Sending) -> Header {
        either!(self, law => law.stamp(sending))
    }
    fn on_ack(&mut self, ack: &Ack<Echo>) {
        either!(self, law => law.on_ack(ack));
    }
    fn limit(&self) -> Limit {
        either!(self, law => law.limit())
    }
    fn observe(&self, probe: &mut dyn Probe) {
        either!(self, law => law.observe(probe));
    }
}
