//! Router variant that averages the load for MaxStart (`load_average`).

use super::Params;
use crate::units::Rate;

/// Load y that MaxStart subtracts: the load of the last dt_p, or its exponential average over `load_average`.
#[derive(Clone, Debug)]
pub(super) struct AveragedLoad {
    rate: Rate,
    /// Weight of one dt_p in the average; 1 without an average.
    weight: f64,
}

impl AveragedLoad {
    pub(super) fn new(params: &Params) -> Self {
        let averages = params.load_average > params.dt_p;
        Self { rate: Rate::ZERO, weight: if averages { params.dt_p / params.load_average } else { 1.0 } }
    }

    /// Adds the load of one dt_p to the average.
    pub(super) fn add(&mut self, load: Rate) {
        self.rate = if self.weight < 1.0 { self.rate + (load - self.rate) * self.weight } else { load };
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }
}
