//! The delay line: frames held in user space for an exact time, with loss and reordering.
//!
//! One process serves all links of a run. A line takes the frames that arrive at one interface, holds each
//! for the line's delay counted from the kernel's receive timestamp, and sends it out of another interface.
//! The process never touches an interface that its configuration does not name.
//!
//! Reading order: [`config`] (what is asked), [`mod@line`] (what happens to a frame; no I/O), [`loss`] (which are
//! lost), [`store`] (where it waits), [`packet`] (the interfaces), [`run`] (the loop), [`lateness`] (how exact it
//! was), [`probe`] (an independent measurement of all that), [`sys`] (every unsafe call).

pub mod config;
pub mod lateness;
pub mod line;
pub mod loss;
pub mod packet;
pub mod probe;
pub mod run;
pub mod store;
pub mod sys;
pub mod tap;
pub mod xdp;
