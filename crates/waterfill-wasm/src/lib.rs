//! Waterfill's engines for a browser: a resolved network goes in as JSON, the series and the summary come out.
//!
//! The module is built for `wasm32-unknown-unknown` as a `cdylib`. A page calls `waterfill_input` with the request's length, writes the
//! [`Request`] as JSON into the buffer returned, calls `waterfill_run`, and reads `waterfill_output_len` bytes at `waterfill_output` ([`exports`]): a
//! sentence if `waterfill_run` returned 0, otherwise what [`Finished::encode`] describes.
//!
//! There is no wasm-bindgen here: one buffer crosses in each direction, which takes four functions of numbers. Its generator
//! would have to be installed in exactly the version of the crate, in every place that builds the module.
//!
//! [`finish`] is the same function on every target, so that `examples/hashes.rs` and `examples/hashes.mjs` can compare targets.

// What arrives here is a user's: nothing in this crate may panic on it. Exceptions state why they cannot.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable)
)]

pub mod exports;
mod run;

pub use run::{Backend, Finished, Request, finish};
