//! Router law of MaxNet in real numbers (Fig. 3).

use super::scale::Scale;
use super::variants::AveragedLoad;
use super::{Field, Header, MaxNet, Params, demand_inverse};
use crate::carriage::Carriage;
use crate::math;
use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// The router of one link direction: a virtual queue that fills when more than μC arrives.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    capacity: Rate,
    /// Price p in real numbers; packets carry its code.
    pub(super) price: f64,
    range: PriceRange,
    price_code: u32,
    scale: Scale,
    carriage: Carriage,
    /// Volume y_dt that arrived since the last update.
    pub(super) arrived: Volume,
    /// Arrival rate y over the last full dt_p, or its average over `load_average`.
    arrival_rate: AveragedLoad,
    /// Sum of the promised start rates, which decays over T₀ (only with `promise`).
    promised: Rate,
    next_update: Instant,
}

impl crate::protocol::Router<MaxNet> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let params = Params { mu: link.target.unwrap_or(params.mu), ..params.clone() };
        let range = PriceRange::new(link.capacity, params.x_max, params.x_min, params.t);
        let price = range.min;
        let (mut scale, mut carriage) = (Scale::new(&params), params.carriage());
        Self {
            capacity: link.capacity,
            price,
            range,
            price_code: scale.carried(price, &params, &mut carriage),
            scale,
            carriage,
            arrived: Volume::ZERO,
            arrival_rate: AveragedLoad::new(&params),
            promised: Rate::ZERO,
            next_update: Instant::ZERO + params.dt_p,
            params,
        }
    }

    /// Counts the packet, and raises its price or lowers its start rate (Fig. 3, step 2).
    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        match passing.header.as_deref_mut() {
            Some(Header { price: Field::Price(code), .. }) => *code = highest(*code, self.price_code),
            Some(Header { price: Field::StartRate(code), .. }) => *code = highest(*code, self.start_code()),
            None => {}
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    /// Updates the price (Fig. 3, step 1).
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.set_capacity(link);
        let Params { mu, dt_p, t_0, promise, .. } = self.params;
        let (dt, t_0) = (dt_p.as_secs(), t_0.as_secs());
        self.arrival_rate.add(self.arrived / dt_p);
        let arrived = with_queue(self.arrived, link.queue, dt, t_0);
        self.price = price_next(self.price, arrived, self.capacity, mu, dt, self.range);
        self.price_code = self.scale.carried(self.price, &self.params, &mut self.carriage);
        self.arrived = Volume::ZERO;
        if promise {
            // A promise decays over T₀, the router's estimate of an RTT: by then it arrives as load.
            self.promised = self.promised * math::exp(-dt / t_0);
        }
        self.next_update = now + dt_p;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", self.price);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: capacity);
        fields.put("price_min", &self.range.min);
        fields.put("price_max", &self.range.max);
        crate::state_of!(fields, self: price, price_code, arrived);
        fields.put("arrival_rate", &self.arrival_rate.rate());
        crate::state_of!(fields, self: promised, next_update);
    }
}

impl Router {
    /// Sets the link's capacity, which may have changed.
    fn set_capacity(&mut self, link: &LinkView) {
        if self.capacity != link.capacity {
            self.capacity = link.capacity;
            self.range = PriceRange::new(link.capacity, self.params.x_max, self.params.x_min, self.params.t);
            self.price = self.range.clip(self.price);
        }
    }

    /// Returns the code of the spare capacity and, with `promise`, counts this capacity as promised.
    pub(super) fn start_code(&mut self) -> u32 {
        let spare = spare_capacity(self.params.mu, self.capacity, self.arrival_rate.rate() + self.promised);
        if self.params.promise {
            self.promised += spare.max(Rate::ZERO);
        }
        self.scale.start_code(spare, self.params.x_max)
    }
}

/// `[maxnet-2007:eq2]` Returns the higher of two codes: a price rises along the path, and a start rate falls.
pub(in crate::protocols) fn highest(code: u32, own: u32) -> u32 {
    code.max(own)
}

/// `[maxnet-2007:fig3]` Returns y_dt + Q·dt_p/T₀, which counts part of the queue as new arrivals.
pub(super) fn with_queue(arrived: Volume, queue: Volume, dt_p: f64, t_0: f64) -> Volume {
    arrived + queue * (dt_p / t_0)
}

/// Range of a link's price, from p_min = D⁻¹(C) (§VI) to p_max = D⁻¹(x_min) (§V, our reading).
///
/// Without p_max, traffic that ignores prices would raise the price for as long as it overloads the link, and the price
/// would take as long to fall.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocols) struct PriceRange {
    pub(in crate::protocols) min: f64,
    pub(in crate::protocols) max: f64,
}

impl PriceRange {
    pub(in crate::protocols) fn new(capacity: Rate, x_max: Rate, x_min: Rate, t: Duration) -> Self {
        let max = price_max(x_max, x_min, t);
        // A link that became slower than x_min has only one price.
        Self { min: demand_inverse(capacity, x_max, t.as_secs()).min(max), max }
    }

    /// Returns the nearest price in the range.
    pub(in crate::protocols) fn clip(self, price: f64) -> f64 {
        price.max(self.min).min(self.max)
    }
}

/// `[maxnet-2007:V]` Returns p_max = T·ln(x_max/x_min), above which no rate of the range has a price.
pub(in crate::protocols) fn price_max(x_max: Rate, x_min: Rate, t: Duration) -> f64 {
    demand_inverse(x_min, x_max, t.as_secs())
}

/// `[maxnet-2007:eq3]` Returns the next price, p + y_dt/C − μ·dt_p, within its range.
pub(in crate::protocols) fn price_next(
    price: f64,
    arrived: Volume,
    capacity: Rate,
    mu: f64,
    dt_p: f64,
    range: PriceRange,
) -> f64 {
    range.clip(price + arrived / capacity - mu * dt_p)
}

/// `[maxnet-2007:IV.B]` Returns the spare capacity (μ + (1 − μ)/4)·C − y, which is negative if y is above the first
/// term.
pub(super) fn spare_capacity(mu: f64, capacity: Rate, arrival_rate: Rate) -> Rate {
    capacity * (mu + (1.0 - mu) / 4.0) - arrival_rate
}
