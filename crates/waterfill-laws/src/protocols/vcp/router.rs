//! Router law of VCP.

use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::{Load, Vcp};

/// Router of one link direction, which measures the load once per t_ρ.
#[derive(Clone, Debug)]
pub struct Router {
    capacity: Rate,
    gamma: f64,
    kappa_q: f64,
    queue_weight: f64,
    whole_percent: bool,
    t_rho: Duration,
    t_q: Duration,
    /// Volume λ that arrived since the last measurement.
    arrived: Volume,
    /// Sum and number of the queue samples since the last measurement.
    samples: (Volume, u32),
    /// Persistent queue q̃.
    queue: Volume,
    /// Load factor ρ of the last t_ρ.
    pub(super) load_factor: f64,
    load: Load,
    next_sample: Instant,
    next_measurement: Instant,
}

impl Router {
    fn measure(&mut self) {
        let (sum, count) = self.samples;
        if count > 0 {
            self.queue = persistent_queue(self.queue, sum / f64::from(count), self.queue_weight);
        }
        let capacity = (self.gamma * self.capacity) * self.t_rho;
        self.load_factor = load_factor(self.arrived, self.queue, self.kappa_q, capacity);
        if self.whole_percent {
            self.load_factor = next_percent(self.load_factor);
        }
        self.load = code(self.load_factor);
        (self.arrived, self.samples) = (Volume::ZERO, (Volume::ZERO, 0));
    }
}

impl crate::protocol::Router<Vcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        Self {
            capacity: link.capacity,
            gamma: link.target.unwrap_or(params.gamma),
            kappa_q: params.kappa_q,
            queue_weight: params.queue_weight,
            whole_percent: params.whole_percent,
            t_rho: params.t_rho,
            t_q: params.t_q,
            arrived: Volume::ZERO,
            samples: (Volume::ZERO, 0),
            queue: Volume::ZERO,
            load_factor: 0.0,
            load: Load::Low,
            next_sample: Instant::ZERO + params.t_q,
            next_measurement: Instant::ZERO + params.t_rho,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Load>) {
        self.arrived += passing.volume;
    }

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, _link: &LinkView, passing: &mut Passing<'_, Load>) {
        if let Some(header) = passing.header.as_deref_mut() {
            *header = highest(*header, self.load);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_sample.min(self.next_measurement)
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if self.next_sample <= now {
            self.samples = (self.samples.0 + link.queue, self.samples.1 + 1);
            self.next_sample = now + self.t_q;
        }
        if self.next_measurement <= now {
            self.capacity = link.capacity;
            self.measure();
            self.next_measurement = now + self.t_rho;
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("load_factor", self.load_factor);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: capacity, gamma, arrived, queue, load_factor, next_sample, next_measurement);
        fields.put("samples", &self.samples.0);
        fields.put("sample_count", &self.samples.1);
        fields.put("load", &u32::from(self.load as u8));
    }
}

/// `[vcp-2005:load-factor]` Returns q̃ moved towards the mean queue of the last interval.
pub(super) fn persistent_queue(queue: Volume, mean: Volume, weight: f64) -> Volume {
    queue + (mean - queue) * weight
}

/// `[vcp-2005:load-factor]` Returns the load factor (λ + κ_q·q̃)/(γ·C·t_ρ).
pub(super) fn load_factor(arrived: Volume, queue: Volume, kappa_q: f64, capacity: Volume) -> f64 {
    (arrived + kappa_q * queue) / capacity
}

/// Returns the next whole per cent above a load factor, for example 0.99 for 0.9842 and 0.8 for 0.79.
pub(super) fn next_percent(load_factor: f64) -> f64 {
    ((100.0 * load_factor).floor() + 1.0) / 100.0
}

/// `[vcp-2005:code]` Returns the code of a load factor, with levels at 80 and 100 %.
pub(super) fn code(load_factor: f64) -> Load {
    if load_factor < 0.8 {
        Load::Low
    } else if load_factor < 1.0 {
        Load::High
    } else {
        Load::Over
    }
}

/// `[vcp-2005:code]` Returns the more congested of two codes.
pub(super) fn highest(header: Load, own: Load) -> Load {
    header.max(own)
}
