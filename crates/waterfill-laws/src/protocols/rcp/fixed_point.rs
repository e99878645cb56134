//! Fixed-point version of RCP, implemented in `kernel/rcp.h`, which documents the scales. This module converts the
//! law's signals from these scales to real numbers.

use super::params::Average;
use super::{Params, Rcp};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;

/// Scale of R; `RTT_SCALE_S` is the scale of the mean RTT.
const RATE_SCALE: f64 = 1024.0;
const RTT_SCALE_S: f64 = 65536.0 * 1e6;

impl RunsInKernel for Rcp {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_rcp)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        params.arithmetic
    }

    fn recorded() -> Vec<Params> {
        vec![Params::default(), Params { average: Average::Reluctant, beta: 0.0, ..Params::default() }]
    }

    fn observe_link(&[rate, mean_rtt, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("rate", rate as f64 / RATE_SCALE);
        probe.record("mean_rtt", mean_rtt as f64 / RTT_SCALE_S);
    }

    fn observe_source(&[_, rate, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if rate > 0 {
            probe.record("rate", rate as f64);
        }
    }
}

#[cfg(test)]
mod tests;
