//! The fixed-point version: `kernel/ixcp.h`.

use super::{Echo, Header, IXcp};
use crate::kernel::{KernelLaw, Law, SIGNALS, Value};
use crate::protocol::{Limit, Probe};
use crate::protocols::xcp::fixed_point as xcp;
use crate::units::Duration;

/// Where the links' names stand in a value of data, and in an echo.
const BOTTLENECK: usize = 11;
const NEXT_BOTTLENECK: usize = 13;
const ECHOED_BOTTLENECK: usize = 6;

fn name_at(value: &Value, at: usize) -> u32 {
    u32::from(u16::from_be_bytes([value[at], value[at + 1]]))
}

fn write_name(value: &mut Value, at: usize, name: u32) {
    value[at..at + 2].copy_from_slice(&(name as u16).to_be_bytes());
}

impl KernelLaw for IXcp {
    fn law() -> &'static Law {
        Law::ixcp()
    }

    fn value_of(header: &Header) -> Option<Value> {
        let mut value = xcp::value_of(&header.congestion)?;
        write_name(&mut value, BOTTLENECK, header.bottleneck);
        write_name(&mut value, NEXT_BOTTLENECK, header.next_bottleneck);
        Some(value)
    }

    fn header_of(value: &Value) -> Header {
        Header {
            congestion: xcp::header_of(value),
            bottleneck: name_at(value, BOTTLENECK),
            next_bottleneck: name_at(value, NEXT_BOTTLENECK),
        }
    }

    fn value_of_echo(echo: &Echo) -> Option<Value> {
        let mut value = xcp::value_of_echo(echo.congestion)?;
        write_name(&mut value, ECHOED_BOTTLENECK, echo.next_bottleneck);
        Some(value)
    }

    fn echo_of(value: &Value) -> Echo {
        Echo { congestion: xcp::echo_of(value), next_bottleneck: name_at(value, ECHOED_BOTTLENECK) }
    }

    fn weighted(limit: Limit, _weight: f64) -> Limit {
        limit // the weight is in what packets state
    }

    fn control_interval(signals: &[u64; SIGNALS]) -> Option<Duration> {
        Some(xcp::control_interval(signals))
    }

    fn observe_link(signals: &[u64; SIGNALS], probe: &mut dyn Probe) {
        xcp::observe_link(signals, probe);
    }
}
