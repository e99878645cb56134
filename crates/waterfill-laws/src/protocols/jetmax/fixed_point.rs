//! Fixed-point version of JetMax, implemented in `kernel/jetmax.h`, which documents the scales. This module converts
//! the law's signals from these scales to real numbers.

use super::{JetMax, Params};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;

/// Value of one flow in the scale of N.
const FLOW: f64 = (1 << 20) as f64;

impl RunsInKernel for JetMax {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_jetmax)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        params.arithmetic
    }

    const WEIGHT_IN_PARAMS: bool = true;

    fn observe_link(&[target, flows, unresponsive, _]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if target > 0 {
            probe.record("target", target as f64);
        }
        probe.record("flows", flows as f64 / FLOW);
        probe.record("unresponsive", unresponsive as f64);
    }

    fn observe_source(&[target, bottleneck, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if target > 0 {
            probe.record("target", target as f64);
        }
        probe.record("bottleneck", bottleneck as f64);
    }
}

#[cfg(test)]
mod tests;
