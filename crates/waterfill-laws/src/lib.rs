//! Control laws and wire formats of explicit congestion control.
//!
//! Sans-I/O: a law has no clock, no randomness and no logging. It learns only what its caller passes in, so the packet
//! simulator, the fluid model and the tests of the fixed-point version all run the same code.
//!
//! Reading order: [`units`], [`mod@params`], [`protocol`] (the traits), then any file of [`protocols`] beside its paper,
//! and last [`registry`], the list of all protocols.

// Results must not depend on the host: see waterfill_laws::math.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod base_rtt;
pub mod capture;
pub mod carriage;
pub mod cohabit;
#[cfg(test)]
mod contract;
pub mod csig;
#[cfg(test)]
mod evidence;
pub mod int;
pub mod kernel;
pub mod math;
mod mirror;
pub mod params;
pub mod protocol;
pub mod protocols;
pub mod registry;
pub mod scone;
pub mod state;
pub mod steps;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod units;
