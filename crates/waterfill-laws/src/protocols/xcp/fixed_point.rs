//! The fixed-point version: `kernel/xcp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::header::{KERNEL_BYTES, KERNEL_ECHO_BYTES};
use super::{Counts, Echo, Form, Header, Params, Xcp};
use crate::arithmetic::Arithmetic;
use crate::kernel::{Field, KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::params::{ParamError, require};
use crate::protocol::{Limit, Probe};
use crate::protocols::pxcp::PXcp;
use crate::units::Duration;

/// Checks that the parameters fit the scales (the table in `kernel/xcp.h`).
pub(super) fn check(params: &Params) -> Result<(), ParamError> {
    if params.arithmetic == Arithmetic::Real {
        return Ok(());
    }
    require(params.header == Form::Katabi, "header", "\"katabi\" in kernel arithmetic, which has its own wire format")?;
    require(params.min_interval >= Duration::from_micros(1), "min_interval", "at least 1 µs in kernel arithmetic")?;
    require(params.max_interval <= Duration::from_millis(4000), "max_interval", "at most 4 s in kernel arithmetic")
}

/// Returns the fields of `struct law_params` that XCP, P-XCP and iXCP have.
pub(in crate::protocols) fn fields(params: &Params, weight: f64) -> Vec<Field> {
    vec![
        Field::scaled("alpha", params.alpha, 1e6),
        Field::scaled("beta", params.beta, 1e6),
        Field::scaled("gamma", params.gamma, 1e6),
        Field::span("min_interval", params.min_interval),
        Field::span("max_interval", params.max_interval),
        Field::span("first_interval", params.first_interval),
        Field::scaled("first_window", params.first_window, 1e3),
        Field::flag("halve_on_loss", params.halve_on_loss),
        Field::scaled("weight", weight, 1e3),
        Field::flag("count_own", params.counts == Counts::Own),
    ]
}

/// Returns the header's part of a value.
pub(in crate::protocols) fn header_of(value: &Value) -> Header {
    Header::Kernel(*value.first_chunk().expect("a value is longer"))
}

/// Returns the value of a header; `None` in real numbers.
pub(in crate::protocols) fn value_of(header: &Header) -> Option<Value> {
    let Header::Kernel(bytes) = header else { return None };
    let mut value = [0; VALUE_MAX];
    value[..KERNEL_BYTES].copy_from_slice(bytes);
    Some(value)
}

/// Returns the echo's part of a value.
pub(in crate::protocols) fn echo_of(value: &Value) -> Echo {
    Echo::Kernel(*value.first_chunk().expect("a value is longer"))
}

/// Returns the value of an echo; `None` in real numbers.
pub(in crate::protocols) fn value_of_echo(echo: Echo) -> Option<Value> {
    let Echo::Kernel(bytes) = echo else { return None };
    let mut value = [0; VALUE_MAX];
    value[..KERNEL_ECHO_BYTES].copy_from_slice(&bytes);
    Some(value)
}

/// Records what a link shows: d, φ/d and h/d.
pub(in crate::protocols) fn observe_link(signals: &[u64; SIGNALS], probe: &mut dyn Probe) {
    probe.record("spare", signals[1] as i64 as f64);
    probe.record("shuffled", signals[2] as f64);
    probe.record("interval", control_interval(signals).as_secs());
}

/// Returns d.
pub(in crate::protocols) fn control_interval(signals: &[u64; SIGNALS]) -> Duration {
    Duration::from_micros(signals[0])
}

/// Implements [`KernelLaw`] for a protocol with XCP's header and hosts.
macro_rules! kernel_law {
    ($protocol:ty, $law:ident) => {
        impl KernelLaw for $protocol {
            fn law() -> &'static Law {
                Law::$law()
            }
            fn params(params: &Params, weight: f64) -> Vec<Field> {
                fields(params, weight)
            }
            fn value_of(header: &Header) -> Option<Value> {
                value_of(header)
            }
            fn header_of(value: &Value) -> Header {
                header_of(value)
            }
            fn value_of_echo(echo: &Echo) -> Option<Value> {
                value_of_echo(*echo)
            }
            fn echo_of(value: &Value) -> Echo {
                echo_of(value)
            }
            fn weighted(limit: Limit, _weight: f64) -> Limit {
                limit // the weight is in what packets state
            }
            fn control_interval(signals: &[u64; SIGNALS]) -> Option<Duration> {
                Some(control_interval(signals))
            }
            fn observe_link(signals: &[u64; SIGNALS], probe: &mut dyn Probe) {
                observe_link(signals, probe);
            }
        }
    };
}
kernel_law!(Xcp, xcp);
kernel_law!(PXcp, pxcp);

#[cfg(test)]
mod tests;
