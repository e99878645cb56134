//! Fuzz targets: each is a function that any bytes may be passed to, and that panics where a check fails.
//!
//! A target takes bytes as calls and their arguments, makes the calls, and checks what must hold after each of them.
//! Its corpus, `corpus/<target>.txt`, has one input per line with bytes escaped as in a byte string. `cargo test` replays
//! the corpora and some mutations of them; `make fuzz TARGET=name SECONDS=60` runs libFuzzer, which needs no nightly
//! compiler. To add a target: its module, its line in [`TARGETS`], and its corpus.

#![allow(
    clippy::verbose_bit_mask,
    clippy::decimal_bitwise_operands,
    reason = "a byte's bits and values choose what to do"
)]

pub mod corpus;
#[cfg(feature = "daemon")]
pub mod daemon;
mod input;
pub mod kernel;
pub mod laws;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod network;
pub mod recovery;
pub mod wire;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target and of its corpus.
    pub name: &'static str,
    /// Purpose of the target, in one line.
    pub checks: &'static str,
    /// The check: panics if it fails.
    pub run: fn(&[u8]),
    /// Longest input, in bytes.
    pub max_bytes: usize,
    /// Executions of `make fuzz TARGET=all`.
    pub executions: u64,
    /// Mutated inputs that the test runs after the corpus: fewer where one input is a whole run.
    pub mutations: u32,
}

/// List of all targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "kernel",
        checks: "the kernel's C with any calls and values; SCONE, CSIG and values of laws as Rust decodes them",
        run: kernel::kernel,
        max_bytes: 400,
        executions: 20_000_000,
        mutations: 20_000,
    },
    Target {
        name: "laws",
        checks: "any calls of any law with any valid parameters: windows, rates and signals stay finite and not negative",
        run: laws::laws,
        max_bytes: 400,
        executions: 20_000_000,
        mutations: 20_000,
    },
    Target {
        name: "network",
        checks: "runs of the packet simulator on small networks: packets conserved, figures in bounds, a second run the same",
        run: network::network,
        max_bytes: 600,
        executions: 50_000,
        mutations: 100,
    },
    Target {
        name: "recovery",
        checks: "loss recovery under any losses, copies and orders: nothing counted twice, everything arrives in the end",
        run: recovery::recovery,
        max_bytes: 300,
        executions: 20_000_000,
        mutations: 5_000,
    },
    Target {
        name: "wire",
        checks: "headers and echoes of all protocols: canonical bytes decode to what encodes to them; bad bytes are refused",
        run: wire::wire,
        max_bytes: 80,
        executions: 100_000_000,
        mutations: 20_000,
    },
    #[cfg(target_os = "linux")]
    Target {
        name: "frame",
        checks: "a router's reading of a frame, in Rust and in the kernel program's C: one verdict, and written in place",
        run: linux::frame,
        max_bytes: 200,
        executions: 20_000_000,
        mutations: 20_000,
    },
    #[cfg(target_os = "linux")]
    Target {
        name: "option",
        checks: "a host's reading of a TCP header's options, in Rust and in the kernel program's C",
        run: linux::option,
        max_bytes: 42,
        executions: 20_000_000,
        mutations: 20_000,
    },
    #[cfg(target_os = "linux")]
    Target {
        name: "delay",
        checks: "the delay line's configuration: refused in a sentence, or lines that lose no frame",
        run: linux::delay,
        max_bytes: 2_000,
        executions: 2_000_000,
        mutations: 5_000,
    },
    #[cfg(feature = "daemon")]
    Target {
        name: "daemon-config",
        checks: "the daemon's file: described, or refused in one sentence",
        run: daemon::config,
        max_bytes: 1_000,
        executions: 2_000_000,
        mutations: 2_000,
    },
    #[cfg(feature = "daemon")]
    Target {
        name: "daemon-arguments",
        checks: "the daemon's command line: accepted, or refused in one sentence with exit code 2",
        run: daemon::arguments,
        max_bytes: 300,
        executions: 1_000_000,
        mutations: 300,
    },
    #[cfg(feature = "daemon")]
    Target {
        name: "daemon-control",
        checks: "bytes at the control socket and the metrics: one line of an answer, or closed",
        run: daemon::control,
        max_bytes: 600,
        executions: 2_000_000,
        mutations: 5_000,
    },
    #[cfg(feature = "daemon")]
    Target {
        name: "daemon-state",
        checks: "contents of maps as tables, JSON and metrics: shown, or refused in a sentence",
        run: daemon::state,
        max_bytes: 4_000,
        executions: 1_000_000,
        mutations: 500,
    },
];

/// Returns the target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
