//! The fixed-point version: `kernel/vcp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::params::Freeze;
use super::{Load, Params, Vcp};
use crate::kernel::{KernelLaw, Law, Numbers, SIGNALS, VALUE_MAX, Value};
use crate::params::Params as _;
use crate::protocol::{Limit, Probe};

/// Scale of a load factor.
const LOAD_FACTOR_SCALE: f64 = (1u64 << 24) as f64;

impl KernelLaw for Vcp {
    fn law() -> &'static Law {
        Law::vcp()
    }

    /// A weight is in α.
    fn numbers(params: &Params, weight: f64) -> Numbers {
        Params { alpha: weight * params.alpha, ..params.clone() }.kernel_numbers()
    }

    fn value_of(header: &Load) -> Option<Value> {
        let mut value = [0; VALUE_MAX];
        value[2] = *header as u8;
        Some(value)
    }

    fn header_of(value: &Value) -> Load {
        match value[..3] {
            [0, 0, 0] => Load::Unwritten,
            [0, 0, 1] => Load::Low,
            [0, 0, 2] => Load::High,
            _ => Load::Over,
        }
    }

    fn value_of_echo(echo: &Load) -> Option<Value> {
        Self::value_of(echo)
    }

    fn echo_of(value: &Value) -> Load {
        Self::header_of(value)
    }

    /// A weight is in α.
    fn weighted(limit: Limit, _weight: f64) -> Limit {
        limit
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
