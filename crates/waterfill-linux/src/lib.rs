//! The testbed's delay line and the daemon `waterfilld` for Linux. The delay line ([`delay`]) holds frames in user
//! space for an exact time. With the feature `daemon`, `waterfilld` loads laws into the kernel.

#![cfg(target_os = "linux")]

#[cfg(feature = "daemon")]
pub mod daemon;
pub mod delay;
