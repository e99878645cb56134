//! Fluid model that steps the laws of `waterfill-laws` in time, with exact delays and classes of identical flows.
//!
//! Reading order: `plan` (classes of flows, the step, the order of tasks in a step), `wiring` (which stream feeds which),
//! `pipe` (fluid in transit, with its delay), `course` (links that change), `link` (queue and routers), `class` (sources and receivers), [`engine`] (the
//! steps), `meter` and [`report`] (results).
//!
//! # Model
//! Time advances in equal steps of h. In each step every source sends a parcel, a volume with one header. Every link takes
//! the parcels that reach it in that step, queues them, and forwards a parcel of its own. A parcel that waits leaves later
//! and over a longer time. It is cut at the boundary of the next step, so delays need not be multiples of h and volume is
//! conserved: see `pipe`. Volumes are therefore exact to first order; a header is that of the parcel in the middle of a step.
//!
//! The law objects are the registry's own. A router is called with the volume and the packets of all flows of a class at
//! once; a source and a receiver are those of one flow. A router's timers are exact to the picosecond: a step is cut at them.

// Results must not depend on the host: see waterfill_laws::math.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod class;
mod course;
pub mod engine;
mod estimate;
mod link;
mod meter;
mod pipe;
mod plan;
pub mod report;
mod wiring;

pub use engine::Fluid;
pub use estimate::estimate;
