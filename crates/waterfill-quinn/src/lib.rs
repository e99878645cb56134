//! quinn-proto as an endpoint on Waterfill's links.
//!
//! The library is loaded by `waterfill run --endpoint FLOW=libwaterfill_quinn.so:controller=newreno,crypto=none`. Everything in a
//! connection is quinn's: packets, loss detection, pacing, timers and controllers. This crate gives it a clock, random numbers
//! by seed, and an application that sends bytes of zero on one stream. The same seed gives the same datagrams at the same times.
//!
//! [`options::Options`] lists the options. [`laws`] has the reverse: Waterfill's laws as quinn's controllers.

pub mod endpoint;
pub mod laws;
mod null;
pub mod options;
mod random;
mod tls;

waterfill_endpoint::export_endpoint!("quinn", endpoint::QuinnEndpoint::new);
