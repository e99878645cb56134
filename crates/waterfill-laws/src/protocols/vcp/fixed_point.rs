//! The fixed-point version: `kernel/vcp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::params::Freeze;
use super::{Load, Params, Vcp};
use crate::arithmetic::Arithmetic;
use crate::kernel::{Field, KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::params::{ParamError, require};
use crate::protocol::{Limit, Probe};
use crate::units::Duration;

/// Scale of a load factor.
const LOAD_FACTOR_SCALE: f64 = (1u64 << 24) as f64;

/// Checks that the parameters fit the scales (the table in `kernel/vcp.h`).
pub(super) fn check(params: &Params) -> Result<(), ParamError> {
    if params.arithmetic == Arithmetic::Real {
        return Ok(());
    }
    let (us, s) = (Duration::from_micros(1), Duration::from_millis(1000));
    let (t_rho, t_q) = (params.t_rho.as_ps(), params.t_q.as_ps());
    require(params.t_q >= us * 100, "t_q", "at least 100 µs in kernel arithmetic")?;
    require(params.t_rho <= s * 10, "t_rho", "at most 10 s in kernel arithmetic")?;
    require(t_rho % t_q == 0 && t_rho / t_q <= 1 << 16, "t_rho", "up to 65536 times t_q in kernel arithmetic")?;
    require(params.kappa_q <= 65.0, "kappa_q", "at most 65 in kernel arithmetic")?;
    require(params.gamma >= 1e-3, "gamma", "at least 0.001 in kernel arithmetic")?;
    require(params.queue_weight >= 1e-3, "queue_weight", "at least 0.001 in kernel arithmetic")?;
    require(params.xi >= 1e-3, "xi", "at least 0.001 in kernel arithmetic")?;
    require((1e-3..=1e3).contains(&params.alpha), "alpha", "0.001 to 1000 packets in kernel arithmetic")?;
    require(params.t_d >= us * 1000 && params.t_d <= s * 10, "t_d", "1 ms to 10 s in kernel arithmetic")
}

impl KernelLaw for Vcp {
    fn law() -> &'static Law {
        Law::vcp()
    }

    fn params(params: &Params, weight: f64) -> Vec<Field> {
        vec![
            Field::span("t_rho", params.t_rho),
            Field::span("t_q", params.t_q),
            Field::scaled("kappa_q", params.kappa_q, 1e3),
            Field::scaled("gamma", params.gamma, 1e6),
            Field::scaled("queue_weight", params.queue_weight, 1e6),
            Field::scaled("xi", params.xi, 1e6),
            Field::scaled("alpha", weight * params.alpha, 1e3),
            Field::scaled("beta", params.beta, 1e6),
            Field::flag("freeze", params.freeze == Freeze::Overload),
            Field::flag("whole_percent", params.whole_percent),
            Field::span("t_d", params.t_d),
            Field::U32("reserved", 0),
        ]
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
