//! Packet-level simulator of explicit congestion control.
//!
//! Reading order: [`network`] (what is simulated), `packet`, `link` (a transmitter and a wire), [`queue`] (what waits
//! before it), [`fault`] (what goes wrong on the wire), `recovery`, `sender` and `receiver` (hosts), [`distribution`] and
//! `traffic` (load beside the flows), [`engine`] (the event loop), `meter` and [`probe`] (what is
//! seen), [`summary`] (what is reported).

pub mod distribution;
pub mod engine;
pub mod fault;
pub mod histogram;
mod link;
mod meter;
pub mod network;
mod packet;
pub mod probe;
mod prr;
pub mod queue;
mod random;
mod ranges;
mod receiver;
mod recovery;
mod sender;
pub mod summary;
mod traffic;

pub use engine::Simulation;
pub use network::Network;
