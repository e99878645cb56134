//! The fixed-point version: `kernel/jetmax.h`, which documents the scales. Only this module converts between them and real
//! numbers.
//!
//! A [`Header`] holds what the value does: its single-precision fields hold every code exactly. `loss` holds the share and
//! `interval` the weight.

use super::{Echo, Header, JetMax};
use crate::kernel::{KernelLaw, Law, SIGNALS, VALUE_MAX, Value};
use crate::protocol::{Limit, Probe};

/// `FLOAT_FRACTION_BITS`.
const FRACTION_BITS: u32 = 19;
/// A flow, in the scale of N.
const FLOW: f64 = (1 << 20) as f64;
/// The last router's number.
const HOPS_MAX: u16 = 31;

/// Returns the number of a 24-bit code (`kernel/float.h`).
fn number(code: u32) -> f32 {
    let (exponent, fraction) = (code >> FRACTION_BITS, code % (1 << FRACTION_BITS));
    match exponent {
        0 => fraction as f32,
        _ => (fraction + (1 << FRACTION_BITS)) as f32 * 2_f32.powi(exponent as i32 - 1),
    }
}

/// Returns the code of a number that [`number`] returned.
fn code(number: f32) -> u32 {
    let whole = number as u64;
    let shift = (u64::BITS - whole.leading_zeros()).saturating_sub(FRACTION_BITS + 1);
    (whole >> shift) as u32 + (shift << FRACTION_BITS)
}

/// Returns the weight of a byte.
fn weight(byte: u8) -> f32 {
    f32::from(16 + byte % 16) * 2_f32.powi(i32::from(byte / 16) - 8)
}

/// Returns the byte of a weight that [`weight`] returned.
fn weight_byte(weight: f32) -> u8 {
    let whole = (weight * 256.0) as u32;
    let shift = (u32::BITS - whole.leading_zeros()).saturating_sub(5);
    ((shift << 4) + (whole >> shift)).saturating_sub(16) as u8
}

fn write_code(value: &mut Value, at: usize, number: f32) {
    value[at..at + 3].copy_from_slice(&code(number).to_be_bytes()[1..]);
}

fn read_code(value: &Value, at: usize) -> f32 {
    number(u32::from_be_bytes([0, value[at], value[at + 1], value[at + 2]]))
}

fn hops(of: [u8; 3]) -> [u8; 2] {
    let [here, own, next] = of.map(|hop| u16::from(hop).min(HOPS_MAX));
    (here << 10 | own << 5 | next).to_be_bytes()
}

fn read_hops(bytes: [u8; 2]) -> [u8; 3] {
    let word = u16::from_be_bytes(bytes);
    [word >> 10, word >> 5, word].map(|hop| (hop & HOPS_MAX) as u8)
}

impl KernelLaw for JetMax {
    fn law() -> &'static Law {
        Law::jetmax()
    }

    fn value_of(header: &Header) -> Option<Value> {
        let mut value = [0; VALUE_MAX];
        write_code(&mut value, 0, header.rate);
        write_code(&mut value, 3, header.loss);
        write_code(&mut value, 6, header.target);
        value[9] = weight_byte(header.interval);
        value[10..12].copy_from_slice(&hops([header.hops, header.bottleneck, header.next]));
        Some(value)
    }

    fn header_of(value: &Value) -> Header {
        let [hops, bottleneck, next] = read_hops([value[10], value[11]]);
        let [rate, loss, target] = [0, 3, 6].map(|at| read_code(value, at));
        Header { rate, interval: weight(value[9]), loss, target, hops, bottleneck, next }
    }

    fn value_of_echo(echo: &Echo) -> Option<Value> {
        let mut value = [0; VALUE_MAX];
        write_code(&mut value, 0, echo.rate);
        write_code(&mut value, 3, echo.loss);
        write_code(&mut value, 6, echo.target);
        value[9..11].copy_from_slice(&hops([0, echo.bottleneck, echo.next]));
        Some(value)
    }

    fn echo_of(value: &Value) -> Echo {
        let [_, bottleneck, next] = read_hops([value[9], value[10]]);
        let [rate, loss, target] = [0, 3, 6].map(|at| read_code(value, at));
        Echo { rate, loss, target, bottleneck, next }
    }

    fn weighted(limit: Limit, _weight: f64) -> Limit {
        limit // the weight is in what packets state and in the source's target
    }

    fn observe_link(&[target, flows, unresponsive, _]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if target > 0 {
            probe.record("target", target as f64);
        }
        probe.record("flows", flows as f64 / FLOW);
        probe.record("unresponsive", unresponsive as f64);
    }

    fn observe_source(&[target, bottleneck, ..]: &[u64; SIGNALS], probe: &mut dyn Probe) {
        if target > 0 {
            probe.record("target", target as f64);
        }
        probe.record("bottleneck", bottleneck as f64);
    }
}

#[cfg(test)]
mod tests;
