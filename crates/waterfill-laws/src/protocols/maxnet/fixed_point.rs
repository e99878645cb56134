//! Fixed-point version of MaxNet, implemented in `kernel/maxnet.h`, which documents the scales. This module converts
//! the law's signals from these scales to real numbers.

use super::{Average, MaxNet, Order, Params, real};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;

/// Scale 2³⁴ of a link's price and of ξ in memory.
const MEMORY_SCALE: f64 = (1u64 << 34) as f64;

impl RunsInKernel for MaxNet {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_maxnet)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        params.arithmetic
    }

    const WEIGHT_IN_PARAMS: bool = true;
    const PACKET_PER_RTT: bool = true;
    const COUNTS_PACKETS: bool = false;

    fn recorded() -> Vec<Params> {
        let other = Params {
            average: Average::Off,
            compensate: false,
            order: Order::RateFirst,
            promise: true,
            ..Params::default()
        };
        vec![Params::default(), other]
    }

    fn observe_link(&[price, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("price", price as f64 / MEMORY_SCALE);
    }

    fn observe_source(&[price, xi, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if price > 0 {
            probe.record("price", real(price as u32));
            probe.record("xi", xi as i64 as f64 / MEMORY_SCALE);
        }
    }
}

#[cfg(test)]
mod tests;
