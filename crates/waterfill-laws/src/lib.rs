//! Control laws and wire formats of explicit congestion control.
//!
//! Sans-I/O: a law has no clock, no randomness and no logging; all it knows is passed in, so the
//! packet simulator, the fluid model and the kernel's twin are held against one and the same text.
//!
//! Reading order: [`units`], [`mod@params`], [`protocol`] (the traits), then any file of
//! [`protocols`] beside its paper, and last [`registry`], the one list of them all.

pub mod arithmetic;
pub mod params;
pub mod protocol;
pub mod protocols;
pub mod registry;
#[cfg(test)]
mod testing;
pub mod units;
