//! Fixed-point version of iXCP, implemented in `kernel/ixcp.h`.

use super::{Claim, IXcp, Params, Shuffle};
use crate::kernel::{self, Arithmetic, KernelLaw, RunsInKernel, SIGNALS};
use crate::protocol::Probe;
use crate::protocols::xcp::fixed_point as xcp;
use crate::units::Duration;

impl RunsInKernel for IXcp {
    fn law() -> &'static KernelLaw {
        kernel::exported!(waterfill_law_ixcp)
    }

    fn arithmetic(params: &Params) -> Arithmetic {
        params.arithmetic
    }

    const WEIGHT_IN_PARAMS: bool = true;

    fn control_interval(signals: &[u64; SIGNALS]) -> Option<Duration> {
        Some(xcp::control_interval(signals))
    }

    fn recorded() -> Vec<Params> {
        let other =
            Params { claim: Claim::LeastFeedback, shuffle: Shuffle::Draft, halve_on_loss: false, ..Params::default() };
        vec![Params::default(), other]
    }

    fn observe_link(signals: &[u64; SIGNALS], probe: &mut dyn Probe) {
        xcp::observe_link(signals, probe);
    }
}
