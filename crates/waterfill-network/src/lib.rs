//! The contract between the front end and the engines, typed once.
//!
//! In: the resolved [`Network`] (units in SI, names as indexes) with its [`link`]s, their [`change`]s, [`queue`]s, [`loss`] models, [`flow`]s and
//! [`traffic`]. Out: time [`series`] and the [`summary`] document. The packet simulator, the fluid model and the Linux delay
//! line share these types; none of them depends on another.

mod builder;
pub mod change;
mod check;
pub mod cohabit;
pub mod distribution;
pub mod flow;
pub mod histogram;
pub mod link;
pub mod loss;
mod network;
pub mod queue;
pub mod random;
pub mod series;
pub mod summary;
pub mod traffic;
mod validate;

pub use builder::NetworkBuilder;
pub use change::ChangeSpec;
pub use cohabit::{CohabitSpec, ControllerSpec, CountDrops, EstimatorSpec, HashKey, PacketClass, Trials, UpdateSpec};
pub use distribution::Distribution;
pub use flow::FlowSpec;
pub use link::{LinkSpec, ReorderSpec, ShaperSpec};
pub use loss::LossSpec;
pub use network::{MAX_FLOWS, Network, ParamValue, Params, TCP_IP_BYTES, params_from};
pub use queue::{CodelSpec, FqCodelSpec, Level, QueueSpec, RedSpec};
pub use series::Series;
pub use summary::Summary;
pub use traffic::{ArrivalSpec, PeriodSpec, RouteSpec, TrafficKind, TrafficSpec};
