//! The fixed-point version: `kernel/aecp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::params::{Ceiling, First, Form, Rounding, SourceStep};
use super::{Aecp, Factor, Header, Params, rate_at};
use crate::kernel::{KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::protocol::Probe;

/// Places of a code: a place is in 2⁻³² octaves.
pub(super) const PLACES_PER_CODE: f64 = (1u64 << 22) as f64;
/// `AECP_VALUE_MAX`: the value of code 0.
const VALUE_OF_SLOWEST: u32 = 0xffff;

impl KernelLaw for Aecp {
    fn law() -> &'static Law {
        Law::aecp()
    }

    fn value_of(header: &Header) -> Option<Value> {
        let [.., a, b, c] = (VALUE_OF_SLOWEST - u32::from(header.factor.0)).to_be_bytes();
        let mut value = [0; VALUE_MAX];
        value[..3].copy_from_slice(&[a, b, c]);
        Some(value)
    }

    fn header_of(value: &Value) -> Header {
        let code = VALUE_OF_SLOWEST.saturating_sub(u32::from_be_bytes([0, value[0], value[1], value[2]]));
        Header { factor: Factor(code as u16) }
    }

    fn value_of_echo(echo: &Header) -> Option<Value> {
        Self::value_of(echo)
    }

    fn echo_of(value: &Value) -> Header {
        Self::header_of(value)
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
