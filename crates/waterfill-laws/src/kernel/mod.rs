//! Laws in kernel arithmetic: the C code that a kernel runs (`kernel/<law>.h`), behind the interface of `kernel/law.h`.
//!
//! [`KernelLaw`] calls a law. [`Router`], [`Receiver`] and [`Source`] run it in the simulator for a protocol that implements
//! [`RunsInKernel`]. The kernel's programs include the same header, so what is simulated is what is deployed.
//!
//! To add a law to the kernel:
//! 1. write `kernel/<law>.h`, and `kernel/<law>.c` with its three `#define`s (`kernel/aecp.c` is an example);
//! 2. implement [`RunsInKernel`] in `src/protocols/<law>/fixed_point.rs`, give the law's parameters their forms in the kernel,
//!    and add `in kernel` to its line in `src/registry.rs`;
//! 3. for the daemon, add its name to `LAWS` in `waterfill-linux/build.rs` and its signals to `src/daemon/kernel/laws.rs` there.
//!
//! The battery of random calls and the test `replay_laws` then find it by themselves.

mod ends;
mod host;
mod law;
pub mod option;
mod router;

pub use ends::{Receiver, Source};
pub(crate) use law::exported;
pub use law::{KernelLaw, KernelLimit, Numbers, Packet, Record, SIGNALS, Tcp, VALUE_MAX, Value, Words};
pub use router::Router;

use crate::params::Params as _;
use crate::protocol::{LinkView, Probe, Protocol};
use crate::units::{Duration, Instant, Volume};

crate::choice! {
    /// Number system in which a law computes.
    pub enum Arithmetic {
        /// Real numbers, computed in Rust.
        Real = "real",
        /// Fixed-point numbers, computed by the C code that a kernel runs (`kernel/<law>.h`).
        Kernel = "kernel",
        /// Fixed-point numbers as in `kernel`, with the additions of the kernel's program at hosts (`kernel/host.h`).
        KernelHost = "kernel-host",
    }
}

/// Protocol whose law also runs in a kernel.
pub trait RunsInKernel: Protocol {
    /// Returns the law's C functions.
    fn law() -> &'static KernelLaw;
    /// Returns the arithmetic that the parameters select.
    fn arithmetic(params: &Self::Params) -> Arithmetic;
    /// Returns the members of `struct law_params` for a connection of this weight.
    ///
    /// The default adds the weight if the law has a member for it. It also adds a flag `bare` that is set if the law
    /// runs without the additions of hosts.
    fn numbers(params: &Self::Params, weight: f64) -> Numbers {
        let mut numbers = params.kernel_numbers();
        if Self::law().has_param("weight") {
            numbers.push(("weight", u64::from(scaled(weight, 1e3).max(1))));
        }
        if Self::law().has_param("bare") {
            numbers.push(("bare", u64::from(Self::arithmetic(params) == Arithmetic::Kernel)));
        }
        numbers
    }
    /// Returns the members of `struct law_params` for a link's router.
    ///
    /// The default adds the link's name if the law has a member for it. The name is the link's number in the run plus
    /// one. With more than 65,535 links, some links share a name.
    fn link_numbers(params: &Self::Params, link: &LinkView) -> Numbers {
        let mut numbers = Self::numbers(params, 1.0);
        if Self::law().has_param("link") {
            numbers.push(("link", u64::from(link.id % u32::from(u16::MAX) + 1)));
        }
        numbers
    }
    /// True if `struct law_params` contains the connection's weight. Otherwise the weight scales the law's rate and
    /// window.
    const WEIGHT_IN_PARAMS: bool = false;
    /// True if a source without the host's program sends at least one packet per RTT, as the law in real numbers does.
    const PACKET_PER_RTT: bool = false;
    /// True if the law counts packets, which the fluid model does not have.
    const COUNTS_PACKETS: bool = true;
    /// Returns the control interval in a link's signals, if the interval follows the RTTs that packets state.
    fn control_interval(_signals: &[u64; SIGNALS]) -> Option<Duration> {
        None
    }
    /// Returns sets of parameters for tests that record the law's calls. Each set selects different code.
    fn recorded() -> Vec<Self::Params> {
        vec![Self::Params::default()]
    }
    /// Records a link's signals.
    fn observe_link(_signals: &[u64; SIGNALS], _probe: &mut dyn Probe) {}
    /// Records a source's signals.
    fn observe_source(_signals: &[u64; SIGNALS], _probe: &mut dyn Probe) {}
}

/// Kernel form of a protocol: its law's C functions, and the meaning of their numbers.
#[derive(Debug)]
pub struct KernelProtocol {
    law: fn() -> &'static KernelLaw,
    weight_in_params: bool,
    packet_per_rtt: bool,
    counts_packets: bool,
    control_interval: fn(&[u64; SIGNALS]) -> Option<Duration>,
    observe_link: fn(&[u64; SIGNALS], &mut dyn Probe),
    observe_source: fn(&[u64; SIGNALS], &mut dyn Probe),
    recorded: fn() -> Vec<Numbers>,
}

impl KernelProtocol {
    /// Returns the kernel form of a protocol.
    #[must_use]
    pub const fn of<P: RunsInKernel>() -> &'static Self {
        const {
            &Self {
                law: P::law,
                weight_in_params: P::WEIGHT_IN_PARAMS,
                packet_per_rtt: P::PACKET_PER_RTT,
                counts_packets: P::COUNTS_PACKETS,
                control_interval: P::control_interval,
                observe_link: P::observe_link,
                observe_source: P::observe_source,
                recorded: || P::recorded().iter().map(|params| P::numbers(params, 1.0)).collect(),
            }
        }
    }
    /// Returns the law's C functions.
    #[must_use]
    pub fn law(&self) -> &'static KernelLaw {
        (self.law)()
    }
    /// Returns true if a run in this arithmetic needs packets, because the law counts them or the host's program paces
    /// them.
    #[must_use]
    pub const fn needs_packets(&self, arithmetic: Arithmetic) -> bool {
        match arithmetic {
            Arithmetic::Real => false,
            Arithmetic::Kernel => self.counts_packets,
            Arithmetic::KernelHost => true,
        }
    }
    /// Returns the parameter sets for tests that record the law's calls.
    #[must_use]
    pub fn recorded(&self) -> Vec<Numbers> {
        (self.recorded)()
    }
}

/// Returns a value times `scale`, rounded to the nearest integer. The result saturates.
pub(crate) fn scaled(value: f64, scale: f64) -> u32 {
    (value * scale).round() as u32
}

/// Returns a time in whole microseconds, rounded down.
fn clock_us(now: Instant) -> u64 {
    now.as_ps() / 1_000_000
}

/// Returns a duration in microseconds, rounded to the nearest integer and at least 1.
fn span_us(span: Duration) -> u32 {
    u32::try_from((span.as_ps() + 500_000) / 1_000_000).unwrap_or(u32::MAX).max(1)
}

/// Returns a volume rounded to a whole number of bytes.
fn whole_bytes(volume: Volume) -> u64 {
    volume.as_bytes().round() as u64
}

#[cfg(test)]
mod tests;
