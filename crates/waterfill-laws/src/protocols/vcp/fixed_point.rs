//! Fixed-point version of VCP, implemented in `kernel/vcp.h`, which documents the scales. This module converts the
//! law's signals from these scales to real numbers.

use super::params::Freeze;
use super::{Params, Vcp};
use crate::kernel::{self, Arithmetic, KernelLaw, Numbers, RunsInKernel, SIGNALS};
use crate::params::Params as _;
use crate::protocol::Probe;

/// Scale 2²⁴ of a load factor.
const LOAD_FACTOR_SCALE: f64 = (1u64 << 24) as f64;

impl RunsInKernel for Vcp {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_vcp)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        params.arithmetic
    }

    const WEIGHT_IN_PARAMS: bool = true;

    /// Returns the numbers for the C code, with the connection's weight included in α.
    fn numbers(params: &Params, weight: f64) -> Numbers {
        Params { alpha: weight * params.alpha, ..params.clone() }.kernel_numbers()
    }

    fn recorded() -> Vec<Params> {
        let other = Params { freeze: Freeze::Overload, whole_percent: true, ..Params::default() };
        vec![Params::default(), other]
    }

    fn observe_link(&[_, load_factor, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("load_factor", load_factor as f64 / LOAD_FACTOR_SCALE);
    }

    fn observe_source(&[load, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("load", load as f64);
    }
}

#[cfg(test)]
mod tests;
