//! Packet-level simulator of explicit congestion control.
//!
//! Reading order: [`network`] (what is simulated), `packet`, `link` (queues and wires), `recovery`,
//! `sender` and `receiver` (hosts), [`distribution`] and `traffic` (load beside the flows), [`engine`] (the event loop), `meter` and [`probe`] (what is
//! seen), [`summary`] (what is reported).

pub mod distribution;
pub mod engine;
mod histogram;
mod link;
mod meter;
pub mod network;
mod packet;
pub mod probe;
mod prr;
mod ranges;
mod receiver;
mod recovery;
mod sender;
pub mod summary;
mod traffic;

pub use engine::Simulation;
pub use network::Network;
