//! Faults of a flow's hosts: a receiver that misreports, a source that ignores feedback, a clock that jumps.

use waterfill_laws::protocol::ProtocolKind;
use waterfill_laws::registry::AnyEcho;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::fault::{HostEffect, HostFaultSpec};
use waterfill_network::{FlowSpec, Network};

use super::Period;
use super::header::best;

/// Faults of a sending host.
#[derive(Clone, Debug)]
pub(crate) struct SourceFaults {
    ignores: Box<[Period]>,
    /// Steps of the host's clock, in picoseconds, in order of time.
    steps: Box<[(Instant, i64)]>,
}

impl SourceFaults {
    /// Returns the faults of a flow's source; `None` if it has none.
    pub(crate) fn new(flow: &FlowSpec) -> Option<Box<Self>> {
        let mut steps: Vec<_> = (flow.faults.iter())
            .filter_map(|fault| match fault.effect {
                HostEffect::Clock { step_s } => Some((Instant::from_secs(fault.from_s), picoseconds(step_s))),
                HostEffect::Lie {} | HostEffect::Ignore {} => None,
            })
            .collect();
        steps.sort_by_key(|&(at, _)| at);
        let ignores = periods(flow, HostEffect::Ignore {});
        let any = !steps.is_empty() || !ignores.is_empty();
        any.then(|| Box::new(Self { ignores, steps: steps.into() }))
    }

    /// Returns true if the source ignores feedback at this time.
    pub(crate) fn ignores(&self, now: Instant) -> bool {
        self.ignores.iter().any(|period| period.contains(now))
    }

    /// Returns the reading of the host's clock at this simulated time.
    #[cold]
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        let steps = self.steps.iter().take_while(|(at, _)| *at <= now).map(|(_, step)| step);
        stepped(now, steps.sum())
    }

    /// Returns the RTT between two times as measured by the host's clock, or `None` if it is not positive.
    pub(crate) fn rtt(&self, sent: Instant, now: Instant) -> Option<Duration> {
        let rtt = self.clock(now).since(self.clock(sent));
        (!rtt.is_zero()).then_some(rtt)
    }
}

/// Faults of a receiving host, and of the path to it.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverFaults {
    lies: Box<[Period]>,
    /// True if the protocol infers congestion from losses, so that a misreporting receiver hides
    /// them too.
    hides_losses: bool,
    /// True if the last packet arrived without a header. The next acknowledgement then has nothing to echo.
    empty: bool,
}

impl ReceiverFaults {
    /// Returns the faults that concern a flow's receiver; `None` if there are none. `damages` is true if a link of the
    /// path damages packets.
    pub(crate) fn new(flow: &FlowSpec, damages: bool, kind: ProtocolKind) -> Option<Box<Self>> {
        let lies = periods(flow, HostEffect::Lie {});
        let any = !lies.is_empty() || damages;
        let hides_losses = kind == ProtocolKind::EndToEnd;
        any.then(|| Box::new(Self { lies, hides_losses, empty: false }))
    }

    /// Records the presence or absence of a header in an arriving packet.
    pub(crate) const fn on_packet(&mut self, carries: bool) {
        self.empty = !carries;
    }

    /// Returns true if the receiver reports a gap in the data as received.
    pub(crate) fn hides_loss(&self, now: Instant) -> bool {
        self.hides_losses && self.misreports(now)
    }

    /// Returns true if the receiver misreports at this time.
    pub(crate) fn misreports(&self, now: Instant) -> bool {
        self.lies.iter().any(|period| period.contains(now))
    }

    /// Returns the echo that the next acknowledgement carries in place of `echo`.
    pub(crate) fn echo(&self, now: Instant, echo: AnyEcho) -> AnyEcho {
        if self.misreports(now) {
            best(echo)
        } else if self.empty {
            AnyEcho::None
        } else {
            echo
        }
    }
}

/// Returns true if a link of this path damages packets.
pub(crate) fn damages(network: &Network, path: &[u32]) -> bool {
    path.iter()
        .filter_map(|&l| network.links.get(l as usize))
        .any(|link| link.faults.iter().any(|fault| !fault.effect.holds()))
}

/// Returns the periods of a flow's faults of one kind.
fn periods(flow: &FlowSpec, effect: HostEffect) -> Box<[Period]> {
    let of_kind = |fault: &&HostFaultSpec| fault.effect == effect;
    flow.faults.iter().filter(of_kind).map(|fault| Period::new(fault.from_s, fault.until_s)).collect()
}

/// Returns a clock step in picoseconds. Steps of an hour fit.
pub(crate) fn picoseconds(step_s: f64) -> i64 {
    (step_s * 1e12).round() as i64
}

/// Returns the reading of a clock that is ahead by `ahead_ps` picoseconds. The reading is never below zero.
pub(crate) fn stepped(time: Instant, ahead_ps: i64) -> Instant {
    if time == Instant::NEVER { time } else { Instant::from_ps(time.as_ps().saturating_add_signed(ahead_ps)) }
}
