//! Waterfill on Linux: the testbed's delay line and the daemon. The delay line ([`delay`]) holds frames in user space
//! for an exact time. With the feature `daemon`, `waterfilld` loads MaxNet into the kernel.

#![cfg(target_os = "linux")]

#[cfg(feature = "daemon")]
pub mod daemon;
pub mod delay;
