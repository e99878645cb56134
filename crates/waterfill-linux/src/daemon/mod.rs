//! The daemon `waterfilld`: loads the kernel programs of `bpf/`, keeps them pinned, and shows what they do.
//!
//! Reading order: [`cli`] what is asked for, [`probe`] whether this kernel has it, [`pins`] where it is kept,
//! [`router`] and [`host`] the two roles, [`serve`] what a process does beside them, [`status`] and [`metrics`]
//! what is shown. The data path is in the kernel alone: with nobody here, packets are priced and windows move.

mod cli;
mod failure;
mod hook;
mod host;
mod metrics;
mod pins;
mod probe;
mod quantity;
mod router;
mod serve;
mod shaper;
mod status;

/// The router's program, as libbpf-cargo made it from `bpf/router.bpf.c`.
#[allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    unreachable_pub,
    unused_imports,
    unused_qualifications,
    missing_debug_implementations,
    reason = "generated"
)]
mod router_skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}

/// The host's programs, as libbpf-cargo made them from `bpf/host.bpf.c`.
#[allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    unreachable_pub,
    unused_imports,
    unused_qualifications,
    missing_debug_implementations,
    reason = "generated"
)]
mod host_skeleton {
    include!(concat!(env!("OUT_DIR"), "/host.skel.rs"));
}

use std::process::ExitCode;

/// The command line: 0 done, 1 the kernel refused, 2 the input is wrong or this machine lacks something.
#[must_use]
pub fn main() -> ExitCode {
    match cli::parse() {
        Ok(command) => serve::run(command).map_or_else(|e| failure::report(&e), |()| ExitCode::SUCCESS),
        Err(code) => code,
    }
}
