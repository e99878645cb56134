//! Packet-level simulator of explicit congestion control.
//!
//! It runs a [`waterfill_network::Network`]. Reading order: `packet`; `ring`, `link` (a transmitter and a wire), `shaper` (its
//! token bucket), `queue` (its queue disciplines), `fault` (loss, reordering, duplication), `delay_line`, `access`;
//! `recovery`, `sender`, `limits`, `receiver`, `application`, `ack_frame` (QUIC), `flow` and `hosts` (hosts); `traffic` (load without congestion control, and finite flows);
//! `engine` (event loop, samples, summary) and `meter`; `capture` (packets as pcapng) and `qlog`.

// Results must not depend on the host: see waterfill_laws::math.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod access;
mod ack_frame;
mod application;
mod binding;
mod capture;
mod delay_line;
mod engine;
mod estimate;
mod fault;
mod flow;
mod hosts;
mod limits;
mod link;
mod meter;
mod packet;
mod prefetch;
mod qlog;
mod queue;
mod random;
mod ranges;
mod receiver;
mod recovery;
mod ring;
mod sender;
mod shaper;
#[cfg(test)]
mod testing;
mod traffic;
mod window;

pub use capture::{CaptureOptions, CaptureReport};
pub use engine::{EndpointPair, Ledger, Simulation, Turns};
pub use estimate::estimate;
pub use hosts::{Acknowledgement, HostPair};
pub use qlog::{QlogFile, QlogReport};
pub use queue::ModuleBench;
