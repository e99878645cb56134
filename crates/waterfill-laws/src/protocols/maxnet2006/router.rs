//! Router law of the 2006 thesis in real numbers.

use super::thinned::Marking;
use super::{Field, Header, MaxNet2006, Params};
use crate::carriage::Carriage;
use crate::protocol::{LinkView, Passing, Probe};
use crate::protocols::maxnet::{PriceRange, PriceUnit, highest, price_next, quantise, start_rate_code};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    dt: Duration,
    capacity: Rate,
    x_max: Rate,
    x_min: Rate,
    t: Duration,
    mu: f64,
    start_share: f64,
    /// Divisor of the capacity that gives QSminrate.
    start_min_divisor: f64,
    range: PriceRange,
    pub(super) price: f64,
    /// Code of the price for packets.
    price_code: u32,
    unit: PriceUnit,
    carriage: Carriage,
    /// Volume y that arrived since the last update.
    arrived: Volume,
    /// Arrival rate y/dt of the last full interval.
    arrival_rate: Rate,
    next_update: Instant,
    marking: Marking,
}

impl Router {
    /// Sets the link's capacity, which may have changed.
    pub(super) fn set_capacity(&mut self, link: &LinkView) {
        if self.capacity != link.capacity {
            self.capacity = link.capacity;
            self.range = PriceRange::new(link.capacity, self.x_max, self.x_min, self.t);
            self.price = self.range.clip(self.price);
        }
    }

    pub(super) fn tick(&mut self, arrived: Volume) {
        self.arrival_rate = arrived / self.dt;
        self.price = price_next(self.price, arrived, self.capacity, self.mu, self.dt.as_secs(), self.range);
        self.price_code = self.unit.carried(self.price, self.x_max, self.t.as_secs(), &mut self.carriage);
    }

    pub(super) fn mark(&self, field: Field) -> Field {
        match field {
            Field::Price(code) => Field::Price(highest(code, self.price_code)),
            Field::StartRate(code) => {
                let start_min = self.capacity / self.start_min_divisor;
                let spare = granted(self.capacity, self.start_share, self.arrival_rate, start_min);
                Field::StartRate(highest(code, quantise(start_rate_code(spare, self.x_max))))
            }
        }
    }
}

impl crate::protocol::Router<MaxNet2006> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mu = link.target.unwrap_or(params.mu);
        let Params { x_max, x_min, t, .. } = *params;
        let range = PriceRange::new(link.capacity, x_max, x_min, t);
        let (unit, mut carriage) = (PriceUnit::of(params.price_unit), params.carriage());
        Self {
            dt: params.dt,
            capacity: link.capacity,
            x_max,
            x_min,
            t,
            mu,
            start_share: mu + params.epsilon,
            start_min_divisor: f64::from(params.qs_min_divisor),
            range,
            price: range.min,
            price_code: unit.carried(range.min, x_max, t.as_secs(), &mut carriage),
            unit,
            carriage,
            arrived: Volume::ZERO,
            arrival_rate: Rate::ZERO,
            next_update: Instant::ZERO + params.dt,
            marking: Marking::new(params.mark_every),
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(price) = self.marking.field(passing) {
            *price = self.mark(*price);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.set_capacity(link);
        self.tick(self.arrived);
        self.arrived = Volume::ZERO;
        self.next_update = now + self.dt;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", self.price);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: capacity, mu, start_share);
        fields.put("price_min", &self.range.min);
        fields.put("price_max", &self.range.max);
        crate::state_of!(fields, self: price, price_code, arrived, arrival_rate, next_update);
        fields.put("since_mark", &self.marking.since());
    }
}

/// `[tcp-maxnet-2006:3.1.2]` Returns the granted start rate, (μ + ε)·C − y/dt, at least QSminrate.
pub(super) fn granted(capacity: Rate, start_share: f64, arrival_rate: Rate, start_min: Rate) -> Rate {
    (capacity * start_share - arrival_rate).max(start_min)
}
