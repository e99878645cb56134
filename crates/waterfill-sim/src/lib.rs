//! Packet-level simulator of explicit congestion control.
//!
//! Reading order: `packet`, `link` (a transmitter and a wire), [`queue`] (what waits
//! before it), `fault` (loss, reordering, duplication), `recovery`, `sender` and `receiver` (hosts), `traffic` (load beside the flows), [`engine`] (the event loop), `meter`
//! and `summary` (what is measured and reported). The network that is simulated is [`waterfill_network::Network`].

mod delay_line;
pub mod engine;
mod fault;
mod link;
mod meter;
mod packet;
mod prr;
pub mod queue;
mod random;
mod ranges;
mod receiver;
mod recovery;
mod sender;
mod summary;
#[cfg(test)]
mod testing;
mod traffic;

pub use engine::Simulation;
