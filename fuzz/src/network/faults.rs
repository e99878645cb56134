//! Faults of routers and hosts.

use arbitrary::Unstructured;
use waterfill_network::{Effect, FalseSignal, FaultSpec, HostEffect, HostFaultSpec};

use crate::input::{below, byte, decades};

/// Returns up to two faults of a link direction.
pub(super) fn of_link(u: &mut Unstructured<'_>, duration_s: f64) -> Vec<FaultSpec> {
    let fault = |u: &mut Unstructured<'_>| {
        let (from_s, until_s) = period(u, duration_s);
        let effect = match byte(u) % 6 {
            0 => Effect::Strip {},
            1 => Effect::Corrupt {},
            2 => Effect::Hold { every_s: decades(u, duration_s / 1e4, duration_s) },
            _ => Effect::Lie { value: [FalseSignal::Zero, FalseSignal::Max, FalseSignal::Random][below(u, 3)] },
        };
        FaultSpec { from_s, until_s, share: f64::from(byte(u)) / 255.0, effect }
    };
    (0..byte(u) % 3).map(|_| fault(u)).collect()
}

/// Returns up to two faults of a flow's hosts.
pub(super) fn of_hosts(u: &mut Unstructured<'_>, duration_s: f64) -> Vec<HostFaultSpec> {
    let fault = |u: &mut Unstructured<'_>| {
        let (from_s, until_s) = period(u, duration_s);
        let effect = match byte(u) % 3 {
            0 => HostEffect::Lie {},
            1 => HostEffect::Ignore {},
            _ => HostEffect::Clock { step_s: step(u, from_s) },
        };
        HostFaultSpec { from_s, until_s, effect }
    };
    (0..byte(u) % 3).map(|_| fault(u)).collect()
}

/// Returns a step that a clock can make at this time.
pub(super) fn step(u: &mut Unstructured<'_>, at_s: f64) -> f64 {
    if byte(u) & 1 == 1 { decades(u, 1e-6, 3600.0) } else { -at_s.min(3600.0) * f64::from(byte(u)) / 255.0 }
}

fn period(u: &mut Unstructured<'_>, duration_s: f64) -> (f64, f64) {
    let from_s = duration_s * f64::from(byte(u)) / 256.0;
    (from_s, from_s + decades(u, duration_s / 1e3, duration_s))
}
