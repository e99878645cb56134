//! The laws of `waterfill-laws` stepped in time: rates as fluids, exact delays, flows in classes.
//!
//! Reading order: `plan` (classes of flows, the step, who comes before whom in it), `joining` (who is joined to whom),
//! `pipe` (what is under way, with its delay), `link` (queue and routers), `class` (sources and receivers), [`engine`] (the
//! steps), `meter` and [`report`] (what is seen).
//!
//! # Model
//! Time goes in equal steps of h. In a step every source sends a parcel, a volume with one header; every link takes what
//! reaches it in that step, queues it, and passes it on as a parcel of its own. A parcel that waits leaves later and
//! over a longer time; it is cut where the next step begins, so delays need not be multiples of h and nothing is lost or
//! made: see `pipe`. Volumes are therefore first-order exact, headers are those of the parcel in the middle of a step.
//!
//! The law objects are the registry's own. A router is called with the volume and the packets of all flows of a class at
//! once, a source and a receiver are those of one flow. A router's timers are kept to the picosecond: a step is cut at them.

mod class;
pub mod engine;
mod joining;
mod link;
mod meter;
mod pipe;
mod plan;
pub mod report;

pub use engine::Fluid;
