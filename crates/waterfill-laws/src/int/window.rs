//! Source of laws with telemetry: a window that follows the fullest link of the path.
//!
//! An [`IntLaw`] gives the level of one link and the next window. [`IntSource`] keeps the records, finds the path's highest
//! level, smooths it over the base RTT, and paces a window per base RTT.

use std::fmt::Debug;

use super::Int;
use crate::protocol::{Ack, Connection, Event, Probe, Protocol, SendLimit, Sending, Source};
use crate::protocols::tcp::round::Round;
use crate::state::StateFields;
use crate::telemetry::{Hop, Stack, smoothed};
use crate::units::{Duration, Instant, Volume};

/// Parameters of a law with telemetry.
pub type IntParams<L> = <<L as IntLaw>::Protocol as Protocol>::Params;

/// Law of a window that follows the telemetry of its path; the value holds the law's own state.
pub trait IntLaw: Clone + Debug {
    /// Protocol of the law.
    type Protocol: Protocol<Header = Int, Echo = Int, Params: Debug>;

    /// Returns the base RTT of the network, or zero for the connection's smallest RTT.
    fn base_rtt(params: &IntParams<Self>) -> Duration;
    /// Creates the state of a law whose first window is `limit`.
    fn new(limit: Volume) -> Self;
    /// Returns the level of a link from its record and an earlier one, `lasted` before. A full link without a queue has 1.
    fn level(hop: &Hop, last: &Hop, lasted: Duration, base_rtt: Duration) -> f64;
    /// Computes the window from the smoothed level. `ends` is true once per RTT, and `weight` is the connection's.
    fn react(state: &mut State<Self>, params: &IntParams<Self>, weight: f64, ends: bool);
    /// Returns true for csg-htsim's code: it rounds no window up, divides times in integers, and compares with the first
    /// records.
    fn as_htsim(_params: &IntParams<Self>) -> bool {
        false
    }
    /// Records the signals of the law.
    fn observe(state: &State<Self>, probe: &mut dyn Probe);
    /// Lists the state for step logs.
    fn state(state: Option<&State<Self>>, fields: &mut StateFields);
}

/// Source of a law with telemetry.
#[derive(Clone, Debug)]
pub struct IntSource<L: IntLaw> {
    packet: Volume,
    initial_window: Volume,
    weight: f64,
    params: IntParams<L>,
    /// State since the first stack; boxed to keep the sources of all protocols small.
    pub(crate) state: Option<Box<State<L>>>,
    /// Stack of the acknowledgement that follows.
    arrived: Option<Box<Stack>>,
}

/// State of a source that has received a stack.
#[derive(Clone, Debug)]
pub struct State<L> {
    /// Records with which the next ones are compared.
    pub(crate) last: Stack,
    base_rtt: Duration,
    /// Largest window: the rate of the sender's own link times the base RTT.
    pub(crate) limit: Volume,
    pub(crate) window: Volume,
    /// Smoothed level of the fullest link.
    pub(crate) level: f64,
    round: Round,
    pub(crate) law: L,
}

impl<L: IntLaw> State<L> {
    fn new(stack: &Stack, base_rtt: Duration) -> Option<Self> {
        let limit = stack.hops().first()?.rate * base_rtt;
        let (last, level, round) = (*stack, 1.0, Round::default());
        Some(Self { last, base_rtt, limit, window: limit, level, round, law: L::new(limit) })
    }

    /// Sets the window to at most the limit. A level of zero, after a pause, gives an infinite window.
    pub(crate) fn set_window(&mut self, window: Volume) {
        self.window = if window < self.limit { window } else { self.limit };
    }
}

/// Returns the highest level of all links, and the time between that link's records.
///
/// Returns `None` if no link has an earlier record.
pub(crate) fn fullest<L: IntLaw>(hops: &[Hop], last: &[Hop], base_rtt: Duration) -> Option<(f64, Duration)> {
    let mut highest: Option<(f64, Duration)> = None;
    for (hop, last) in hops.iter().zip(last) {
        let Some(lasted) = hop.since(last) else { continue };
        let level = L::level(hop, last, lasted, base_rtt);
        if highest.is_none_or(|(found, _)| level > found) {
            highest = Some((level, lasted));
        }
    }
    highest
}

/// Returns a window in whole packets, rounded up.
fn whole_packets(window: Volume, packet: Volume) -> Volume {
    (window / packet).ceil() * packet
}

impl<L: IntLaw> Source<L::Protocol> for IntSource<L> {
    fn new(params: &IntParams<L>, connection: &Connection) -> Self {
        Self {
            packet: connection.packet,
            initial_window: connection.initial_window,
            weight: connection.weight,
            params: params.clone(),
            state: None,
            arrived: None,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Int {
        Int::default()
    }

    fn on_stack(&mut self, stack: &Stack) {
        **self.arrived.get_or_insert_default() = *stack;
    }

    fn on_ack(&mut self, ack: &Ack<Int>) {
        let Some(stack) = self.arrived.as_deref_mut().filter(|stack| !stack.hops().is_empty()) else { return };
        let base_rtt = L::base_rtt(&self.params);
        let base_rtt = if base_rtt.is_zero() { ack.base_rtt } else { base_rtt };
        let (acked, in_flight) = (ack.acked / self.packet, ack.in_flight / self.packet);
        if let Some(state) = self.state.as_deref_mut() {
            state.base_rtt = base_rtt;
            state.limit = stack.hops()[0].rate * base_rtt;
            let as_htsim = L::as_htsim(&self.params);
            let ends = state.round.ends(acked, in_flight);
            let measured = fullest::<L>(stack.hops(), state.last.hops(), base_rtt);
            if let Some((level, lasted)) = measured {
                let lasted = if as_htsim && lasted < base_rtt { Duration::ZERO } else { lasted };
                state.level = smoothed(state.level, level, lasted, base_rtt);
                L::react(state, &self.params, self.weight, ends);
            }
            if !as_htsim || measured.is_none() {
                state.last = *stack;
            }
        } else {
            self.state = State::new(stack, base_rtt).map(Box::new);
            if let Some(state) = &mut self.state {
                state.round.ends(acked, in_flight);
            }
        }
        stack.clear();
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost {
            self.initial_window = self.packet;
        }
    }

    /// `[hpcc-2019:alg1.27]` `[powertcp-2022:alg1.6]` Paces a window per base RTT.
    fn limit(&self) -> SendLimit {
        match &self.state {
            Some(state) => {
                let window =
                    if L::as_htsim(&self.params) { state.window } else { whole_packets(state.window, self.packet) };
                SendLimit { window: Some(window), pacing: Some(state.window / state.base_rtt) }
            }
            None => SendLimit { window: Some(self.initial_window), pacing: None },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(state) = &self.state {
            probe.record("window", state.window.as_bytes());
            L::observe(state, probe);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        let state = self.state.as_deref();
        fields.put("window", &state.map(|state| state.window));
        L::state(state, fields);
    }
}
