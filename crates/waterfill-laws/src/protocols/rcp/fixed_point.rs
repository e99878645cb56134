//! The fixed-point version: `kernel/rcp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::params::{Average, Writes};
use super::{Echo, Header, Params, Rcp, WireRate};
use crate::arithmetic::Arithmetic;
use crate::kernel::{Field, KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::params::{ParamError, require};
use crate::protocol::Probe;
use crate::units::Duration;

/// Scales of R and of the mean RTT.
const RATE_SCALE: f64 = 1024.0;
const RTT_SCALE_S: f64 = 65536.0 * 1e6;

/// Checks that the parameters fit the scales (the table in `kernel/rcp.h`).
pub(super) fn check(params: &Params) -> Result<(), ParamError> {
    if params.arithmetic == Arithmetic::Real {
        return Ok(());
    }
    let (us, s) = (Duration::from_micros(1), Duration::from_millis(1000));
    let within = |d: Duration, max: Duration| us * 10 <= d && d <= max;
    require((1e-3..=1.0).contains(&params.alpha), "alpha", "0.001 to 1 in kernel arithmetic")?;
    require(params.beta <= 65.0, "beta", "at most 65 in kernel arithmetic")?;
    require(params.first_rate >= 1e-6, "first_rate", "at least 10⁻⁶ in kernel arithmetic")?;
    require(within(params.max_interval, s), "max_interval", "10 µs to 1 s in kernel arithmetic")?;
    require(within(params.first_rtt, s * 8), "first_rtt", "10 µs to 8 s in kernel arithmetic")?;
    require((13.0..=4e9).contains(&params.r_min.as_bps()), "r_min", "13 bit/s to 4 Gbit/s in kernel arithmetic")?;
    require(params.writes == Writes::Arrival, "writes", "\"arrival\" in kernel arithmetic, as a kernel writes")
}

/// The value that has this code of a rate and of an RTT.
fn value(code: u32, rtt_code: u32) -> Value {
    let mut value = [0; VALUE_MAX];
    value[..3].copy_from_slice(&code.to_be_bytes()[1..]);
    value[3..5].copy_from_slice(&rtt_code.to_be_bytes()[2..]);
    value
}

fn rate_code(value: &Value) -> WireRate {
    WireRate::of_code(u32::from_be_bytes([0, value[0], value[1], value[2]]))
}

impl KernelLaw for Rcp {
    fn law() -> &'static Law {
        Law::rcp()
    }

    fn params(params: &Params, _weight: f64) -> Vec<Field> {
        vec![
            Field::scaled("alpha", params.alpha, 1e3),
            Field::scaled("beta", params.beta, 1e3),
            Field::scaled("first_rate", params.first_rate, 1e6),
            Field::span("max_interval", params.max_interval),
            Field::span("first_rtt", params.first_rtt),
            Field::scaled("r_min", params.r_min.as_bps(), 1.0),
            Field::flag("average", params.average == Average::Reluctant),
            Field::U32("reserved", 0),
        ]
    }

    fn value_of(header: &Header) -> Option<Value> {
        header.rate.code().map(|code| value(code, header.rtt_us))
    }

    fn header_of(value: &Value) -> Header {
        Header { rate: rate_code(value), rtt_us: u32::from_be_bytes([0, 0, value[3], value[4]]) }
    }

    fn value_of_echo(echo: &Echo) -> Option<Value> {
        echo.rate.code().map(|code| value(code, 0))
    }

    fn echo_of(value: &Value) -> Echo {
        Echo { rate: rate_code(value) }
    }

    fn recorded() -> Vec<Params> {
        vec![Params::default(), Params { average: Average::Reluctant, beta: 0.0, ..Params::default() }]
    }

    fn observe_link(&[rate, mean_rtt, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        probe.record("rate", rate as f64 / RATE_SCALE);
        probe.record("mean_rtt", mean_rtt as f64 / RTT_SCALE_S);
    }

    fn observe_source(&[_, rate, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if rate > 0 {
            probe.record("rate", rate as f64);
        }
    }
}

#[cfg(test)]
mod tests;
