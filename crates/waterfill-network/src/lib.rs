//! Typed data that the front end and the engines exchange: networks, time series and summaries.
//!
//! In: the resolved [`Network`] (units in SI, names as indexes) with its [`link`]s, their [`change`]s, [`queue`]s, [`loss`] models, [`fault`]s, [`flow`]s and
//! [`traffic`]. Out: time [`series`] and the [`summary`] document. The packet simulator, the fluid model and the Linux delay
//! line share these types; none of them depends on another.

// Results must not depend on the host: see waterfill_laws::math.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// What arrives here is a user's: nothing in this crate may panic on it. Exceptions state why they cannot.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable)
)]

pub mod application;
mod builder;
pub mod change;
mod check;
pub mod cohabit;
pub mod demand;
mod digest;
pub mod distribution;
pub mod estimate;
pub mod fault;
pub mod flow;
pub mod histogram;
pub mod link;
pub mod loss;
mod network;
pub mod queue;
pub mod random;
pub mod sampling;
pub mod series;
pub mod summary;
pub mod switch;
pub mod switching;
pub mod traffic;
mod validate;
pub mod watch;

pub use application::ApplicationSpec;
pub use builder::NetworkBuilder;
pub use change::ChangeSpec;
pub use cohabit::{CohabitSpec, ControllerSpec, CountDrops, EstimatorSpec, HashKey, PacketClass, Trials, UpdateSpec};
pub use demand::{DemandCourse, DemandSpec};
pub use digest::digest;
pub use distribution::Distribution;
pub use estimate::Estimate;
pub use fault::{Effect, FalseSignal, FaultSpec, HostEffect, HostFaultSpec};
pub use flow::{AckFrequencySpec, FlowSpec, RouteChangeSpec};
pub use link::{BufferSpec, LinkSpec, ReorderSpec, ShaperSpec};
pub use loss::LossSpec;
pub use network::{MAX_FLOWS, Network, ParamValue, Params, TCP_IP_BYTES, params_from};
pub use queue::{CodelSpec, DualPi2Spec, FqCodelSpec, FqPieSpec, Level, PieSpec, QueueSpec, RampSpec, RedSpec};
pub use sampling::SeriesSpec;
pub use series::{ColumnType, Series};
pub use summary::Summary;
pub use switch::{InputSpec, PfcSpec, SwitchSpec};
pub use switching::{PathChoice, SwitchingSpec};
pub use traffic::{ArrivalSpec, PeriodSpec, RouteSpec, TrafficKind, TrafficSpec};
pub use watch::Watch;
