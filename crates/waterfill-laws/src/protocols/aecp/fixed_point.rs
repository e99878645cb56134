//! Fixed-point version of AECP, implemented in `kernel/aecp.h`, which documents the scales. This module converts the
//! law's signals from these scales to real numbers.

use super::params::{Ceiling, First, Form, Rounding, SourceStep};
use super::{Aecp, Params, rate_at};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;

/// Number of fixed-point steps per code of the rate factor. A code is 2⁻¹⁰ octaves and a step is 2⁻³² octaves.
pub(super) const PLACES_PER_CODE: f64 = (1u64 << 22) as f64;
/// Wire value of code 0 (`AECP_VALUE_MAX`).
const VALUE_OF_SLOWEST: u32 = 0xffff;

impl RunsInKernel for Aecp {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_aecp)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        params.arithmetic
    }

    fn recorded() -> Vec<Params> {
        let other = Params {
            r_0: First::Capacity,
            form: Form::Exact,
            step: SourceStep::Acknowledgement,
            ceiling: Ceiling::Capacity,
            rounding: Rounding::Nearest,
            ..Params::default()
        };
        vec![Params::default(), other]
    }

    fn observe_link(&[place, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("r", rate_at(place as f64 / PLACES_PER_CODE));
    }

    fn observe_source(&[value, place, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if value > 0 {
            probe.record("r", rate_at(f64::from(VALUE_OF_SLOWEST) - value as f64));
            probe.record("x", rate_at(place as f64 / PLACES_PER_CODE));
        }
    }
}

#[cfg(test)]
mod tests;
