//! Waterfill on Linux: the testbed's delay line ([`delay`]), which holds frames in user space for an exact time, and with the
//! feature `daemon` the daemon `waterfilld`, which loads MaxNet into the kernel.

#![cfg(target_os = "linux")]

#[cfg(feature = "daemon")]
pub mod daemon;
pub mod delay;
