//! The fixed-point version: `kernel/aecp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::params::{Ceiling, First, Form, Rounding, SourceKind, SourceStep};
use super::{Aecp, Factor, Header, Params, rate_at};
use crate::arithmetic::Arithmetic;
use crate::kernel::{Field, KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::params::{ParamError, require};
use crate::protocol::Probe;
use crate::units::Duration;

/// Places of a code: a place is in 2⁻³² octaves.
pub(super) const PLACES_PER_CODE: f64 = (1u64 << 22) as f64;
/// `AECP_VALUE_MAX`: the value of code 0.
const VALUE_OF_SLOWEST: u32 = 0xffff;

/// Checks that the parameters fit the scales (the table in `kernel/aecp.h`).
pub(super) fn check(params: &Params) -> Result<(), ParamError> {
    if params.arithmetic == Arithmetic::Real {
        return Ok(());
    }
    let (ms, s) = (Duration::from_millis(1), Duration::from_millis(1000));
    let growth = params.beta * params.t_2.as_secs();
    require((1e-3..=1e3).contains(&params.alpha), "alpha", "0.001 to 1000 in kernel arithmetic")?;
    require((1e-3..=1e3).contains(&params.beta), "beta", "0.001 to 1000 in kernel arithmetic")?;
    require(params.t_2 >= ms && params.t_2 <= s, "t_2", "1 ms to 1 s in kernel arithmetic")?;
    require(growth <= 0.69, "beta", "at most 0.69/t_2 in kernel arithmetic, which doubles r in t_2")?;
    require(params.t >= params.t_2 && params.t <= s * 1000, "t", "t_2 to 1000 s in kernel arithmetic")?;
    require(params.q_0 <= 4e6, "q_0", "at most 4e6 packets in kernel arithmetic")?;
    require(params.x_0 <= 4e6, "x_0", "at most 4e6 packets/s in kernel arithmetic")?;
    require(params.source == SourceKind::Rate, "source", "\"rate\" in kernel arithmetic: the host adds the window")
}

impl KernelLaw for Aecp {
    fn law() -> &'static Law {
        Law::aecp()
    }

    fn params(params: &Params, _weight: f64) -> Vec<Field> {
        vec![
            Field::scaled("alpha", params.alpha, 1e3),
            Field::scaled("beta", params.beta, 1e3),
            Field::span("t", params.t),
            Field::span("t_2", params.t_2),
            Field::scaled("q_0", params.q_0, 1e3),
            Field::scaled("x_0", params.x_0, 1e3),
            Field::flag("r_0", params.r_0 == First::Capacity),
            Field::flag("form", params.form == Form::Exact),
            Field::flag("step", params.step == SourceStep::Acknowledgement),
            Field::flag("ceiling", params.ceiling == Ceiling::Capacity),
            Field::flag("rounding", params.rounding == Rounding::Nearest),
            Field::U32("reserved", 0),
        ]
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
