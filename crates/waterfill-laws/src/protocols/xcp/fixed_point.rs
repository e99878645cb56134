//! Fixed-point version of XCP, implemented in `kernel/xcp.h`, which documents the scales. This module converts the
//! law's signals from these scales to real numbers.

use super::{Counts, Params, Xcp};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;
use crate::protocols::pxcp::PXcp;
use crate::units::Duration;

/// Records a link's signals: φ/d, h/d and the control interval d.
pub(in crate::protocols) fn observe_link(signals: &[u64; SIGNALS], probe: &mut dyn Probe) {
    probe.record("spare", signals[1] as i64 as f64);
    probe.record("shuffled", signals[2] as f64);
    probe.record("interval", control_interval(signals).as_secs());
}

/// Returns the control interval d.
pub(in crate::protocols) fn control_interval(signals: &[u64; SIGNALS]) -> Duration {
    Duration::from_micros(signals[0])
}

/// Implements [`RunsInKernel`] for a protocol with XCP's parameters.
macro_rules! runs_in_kernel {
    ($protocol:ty, $law:ident) => {
        impl RunsInKernel for $protocol {
            fn law() -> &'static KernelLaw {
                kernel::exported!($law)
            }
            fn arithmetic(params: &Params) -> Arithmetic {
                params.arithmetic
            }
            const WEIGHT_IN_PARAMS: bool = true;
            fn control_interval(signals: &[u64; SIGNALS]) -> Option<Duration> {
                Some(control_interval(signals))
            }
            fn recorded() -> Vec<Params> {
                let other = Params { halve_on_loss: false, counts: Counts::Own, ..Params::default() };
                vec![Params::default(), other]
            }
            fn observe_link(signals: &[u64; SIGNALS], probe: &mut dyn Probe) {
                observe_link(signals, probe);
            }
        }
    };
}
runs_in_kernel!(Xcp, waterfill_law_xcp);
runs_in_kernel!(PXcp, waterfill_law_pxcp);

#[cfg(test)]
mod tests;
