//! The fixed-point version: `kernel/rcp.h`, which documents the scales. Only this module converts between them and real
//! numbers.

use super::params::Average;
use super::{Echo, Header, Params, Rcp, WireRate};
use crate::kernel::{KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::protocol::Probe;

/// Scales of R and of the mean RTT.
const RATE_SCALE: f64 = 1024.0;
const RTT_SCALE_S: f64 = 65536.0 * 1e6;

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
