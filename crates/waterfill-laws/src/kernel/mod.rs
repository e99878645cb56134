//! Laws as the C code that a kernel runs (`kernel/<law>.h`), behind the interface of `kernel/law.h`.
//!
//! [`Law`] calls a law; [`Router`], [`Receiver`] and [`Source`] run it in the simulator for a protocol that implements
//! [`KernelLaw`]. The kernel's programs include the same header, so what is simulated is what is deployed.
//!
//! To add a law to the kernel:
//! 1. write `kernel/<law>.h`, and `kernel/<law>.c` with its three `#define`s (`kernel/aecp.c` is an example);
//! 2. add its name to `LAWS` in `build.rs` and to `laws!` at the end of `src/kernel/law.rs`;
//! 3. implement [`KernelLaw`] for its protocol, in `src/protocols/<law>/fixed_point.rs`;
//! 4. give its parameters `arithmetic` and [`ChoosesArithmetic`], and refuse in
//!    `check` what the header cannot compute;
//! 5. wrap its laws in [`RealOrFixed`](crate::arithmetic::RealOrFixed);
//! 6. for the daemon, add its programs and its name to `LAWS` in `waterfill-linux/build.rs`. The test `replay_laws` finds
//!    it there, and the battery of random calls by its parameter.

mod ends;
mod law;
mod maxnets;
pub mod option;
mod router;

pub use ends::{Receiver, Source};
pub use law::{Law, Limit, Numbers, Packet, Record, SIGNALS, Tcp, VALUE_MAX, Value, Words};
pub use router::Router;

use crate::arithmetic::{Arithmetic, ChoosesArithmetic};
use crate::params::{ParamError, Params as _, require};
use crate::protocol::{Limit as SourceLimit, LinkView, Probe, Protocol};
use crate::units::{Duration, Instant, Volume};

/// A protocol whose law also runs in a kernel.
pub trait KernelLaw: Protocol {
    /// Returns the law.
    fn law() -> &'static Law;
    /// Returns the members of `struct law_params` for a connection of this weight. The default adds the weight where the
    /// law has a member for it.
    fn numbers(params: &Self::Params, weight: f64) -> Numbers {
        let mut numbers = params.kernel_numbers();
        if Self::law().has_param("weight") {
            numbers.push(("weight", u64::from(scaled(weight, 1e3))));
        }
        numbers
    }
    /// Returns the members of `struct law_params` for a link's router. The default adds the link's name where the law has
    /// a member for it: its number in the run plus one. Of more than 65,535 links, some share theirs.
    fn link_numbers(params: &Self::Params, link: &LinkView) -> Numbers {
        let mut numbers = Self::numbers(params, 1.0);
        if Self::law().has_param("link") {
            numbers.push(("link", u64::from(link.id % u32::from(u16::MAX) + 1)));
        }
        numbers
    }
    /// Returns the value that a header carries; `None` for a header of the law in real numbers.
    fn value_of(header: &Self::Header) -> Option<Value>;
    /// Returns the header that carries a value.
    fn header_of(value: &Value) -> Self::Header;
    /// Returns the value that an echo carries; `None` for an echo of the law in real numbers.
    fn value_of_echo(echo: &Self::Echo) -> Option<Value>;
    /// Returns the echo that carries a value.
    fn echo_of(value: &Value) -> Self::Echo;
    /// Returns the limit of a connection of this weight. The default scales rate and window.
    fn weighted(limit: SourceLimit, weight: f64) -> SourceLimit {
        SourceLimit { window: limit.window.map(|w| weight * w), pacing: limit.pacing.map(|r| weight * r) }
    }
    /// Returns the control interval that a link shows, if it follows the RTTs that packets state.
    fn control_interval(_signals: &[u64; SIGNALS]) -> Option<Duration> {
        None
    }
    /// Returns parameters for tests that record the law's calls: those that select other code.
    fn recorded() -> Vec<Self::Params> {
        vec![Self::Params::default()]
    }
    /// Records what a link shows.
    fn observe_link(_signals: &[u64; SIGNALS], _probe: &mut dyn Probe) {}
    /// Records what a source shows.
    fn observe_source(_signals: &[u64; SIGNALS], _probe: &mut dyn Probe) {}
}

/// Checks that a backend can run a law's arithmetic: a fluid has no packets whose segments a kernel could count.
///
/// # Errors
/// `arithmetic = "kernel"` in the fluid model.
pub fn check_backend(params: &impl ChoosesArithmetic, backend: &str) -> Result<(), ParamError> {
    let runs = backend != "fluid" || params.arithmetic() == Arithmetic::Real;
    require(runs, "arithmetic", "real on fluid, which has no packets to count")
}

/// Returns a value times `scale`, rounded to nearest; saturates.
pub(crate) fn scaled(value: f64, scale: f64) -> u32 {
    (value * scale).round() as u32
}

/// Returns the time in whole microseconds.
fn clock_us(now: Instant) -> u64 {
    now.as_ps() / 1_000_000
}

/// Returns a span in microseconds, rounded to nearest, at least 1.
fn span_us(span: Duration) -> u32 {
    u32::try_from((span.as_ps() + 500_000) / 1_000_000).unwrap_or(u32::MAX).max(1)
}

/// Returns a volume rounded to whole bytes.
fn whole_bytes(volume: Volume) -> u64 {
    volume.as_bytes().round() as u64
}

#[cfg(test)]
mod tests;
