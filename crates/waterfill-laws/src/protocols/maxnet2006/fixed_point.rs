//! Fixed-point version of the 2006 thesis's law, implemented in `kernel/maxnet2006.h`, which documents the scales. This
//! module converts the law's signals from these scales to real numbers.

use super::params::Arithmetic as Words;
use super::{MaxNet2006, Params};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;

/// Scale 2³⁴ of prices, averages and ξ in memory.
const MEMORY_SCALE: f64 = (1u64 << 34) as f64;

impl RunsInKernel for MaxNet2006 {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_maxnet2006)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        match params.arithmetic {
            Words::Real | Words::Printed => Arithmetic::Real,
            Words::Kernel => Arithmetic::Kernel,
            Words::KernelHost => Arithmetic::KernelHost,
        }
    }

    const WEIGHT_IN_PARAMS: bool = true;
    const COUNTS_PACKETS: bool = false;

    fn recorded() -> Vec<Params> {
        let other = Params {
            wnd_update_freq: 4,
            average: false,
            compensate: false,
            epsilon: 0.02,
            quickstart: false,
            ..Params::default()
        };
        vec![Params::default(), other]
    }

    fn observe_link(&[price, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("price", price as f64 / MEMORY_SCALE);
    }

    fn observe_source(&[average, xi, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if average > 0 {
            probe.record("price", average as f64 / MEMORY_SCALE);
            probe.record("xi", xi as i64 as f64 / MEMORY_SCALE);
        }
    }
}

#[cfg(test)]
mod tests;
