//! The delay line: holds frames in user space for an exact time, with loss and reordering.
//!
//! One process serves all links of a run. A line takes the frames that arrive at one interface, holds each for the line's
//! delay, counted from the kernel's receive timestamp, and sends it by another interface. The process uses only the
//! interfaces that its configuration names.
//!
//! Reading order: [`config`], [`mod@line`] (what happens to a frame; no I/O), [`frame`] (which frames carry data),
//! `damage` (faults of what they carry),
//! [`store`] (waiting frames), [`packet`] (interfaces), [`run`] (the loop), [`lateness`] (its accuracy), [`probe`] (an
//! independent measurement), [`sys`] (system calls).

pub mod config;
mod damage;
pub mod frame;
pub mod lateness;
pub mod line;
pub mod packet;
pub mod probe;
pub mod run;
pub mod store;
pub mod sys;
pub mod tap;
pub mod xdp;
