//! Waterfill on Linux: what the testbed needs beside the kernel.
//!
//! [`delay`] is the delay line: frames held in user space for an exact time.

#![cfg(target_os = "linux")]

#[cfg(feature = "daemon")]
pub mod daemon;
pub mod delay;
