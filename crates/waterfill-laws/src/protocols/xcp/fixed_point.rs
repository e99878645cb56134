//! The fixed-point version: `kernel/xcp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::header::{KERNEL_BYTES, KERNEL_ECHO_BYTES};
use super::{Echo, Header, Xcp};
use crate::kernel::{KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::protocol::{Limit, Probe};
use crate::protocols::pxcp::PXcp;
use crate::units::Duration;

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
