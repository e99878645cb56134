//! Source of laws with telemetry: a window that follows the fullest link of the path.
//!
//! An [`IntLaw`] gives the level of one link and the next window. [`IntSource`] keeps the records, finds the path's highest
//! level, smooths it over the base RTT, and paces a window per base RTT.

use std::fmt::Debug;

use super::Int;
use crate::protocol::{Ack, Connection, Event, Probe, Protocol, SendLimit, Sending, Source};
use crate::protocols::tcp::round::Round;
use crate::state::StateFields;
use crate::telemetry::{Hop, STACK_BYTES, Stack, smoothed};
use crate::units::{Duration, Instant, Rate, Volume};

/// Bytes of a data packet that are not payload: TCP and IP, and the stack.
const HEADERS: Volume = Volume::from_bytes((40 + STACK_BYTES) as f64);
/// Lowest rate of a source in the PowerTCP authors' ns-3.
const NS3_MIN_RATE: Rate = Rate::from_bps(100e6);

/// Form of a law: as in its paper, or as in a public program, which departs from the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The algorithm of the paper.
    Paper,
    /// The program csg-htsim: it rounds no window up, divides times in integers, and compares with the first records.
    Htsim,
    /// The ns-3 of PowerTCP's authors: hosts write no record, windows count payload, and no rate is below 100 Mbit/s.
    Ns3,
}

/// Parameters of a law with telemetry.
pub type IntParams<L> = <<L as IntLaw>::Protocol as Protocol>::Params;

/// Law of a window that follows the telemetry of its path; the value holds the law's own state.
pub trait IntLaw: Clone + Debug {
    /// Protocol of the law.
    type Protocol: Protocol<Header = Int, Echo = Int, Params: Debug>;

    /// Returns the base RTT of the network, or zero for the connection's smallest RTT.
    fn base_rtt(params: &IntParams<Self>) -> Duration;
    /// Returns the form of the law.
    fn form(params: &IntParams<Self>) -> Form;
    /// True if the authors' ns-3 compares the first records with zeros, so that the first acknowledgement changes the window.
    const FROM_ZEROS: bool = false;
    /// Creates the state of a law whose first window is `limit`.
    fn new(limit: Volume) -> Self;
    /// Returns the level of a link from its record and an earlier one, `lasted` before. A full link without a queue has 1.
    fn level(form: Form, hop: &Hop, last: &Hop, lasted: Duration, base_rtt: Duration) -> f64;
    /// Computes the window from the smoothed level. `ends` is true once per RTT, and `weight` is the connection's.
    fn react(state: &mut State<Self>, params: &IntParams<Self>, weight: f64, ends: bool);
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
    pub(crate) form: Form,
    pub(crate) law: L,
}

impl<L: IntLaw> State<L> {
    fn new(stack: &Stack, base_rtt: Duration, form: Form) -> Self {
        let limit = stack.hops()[0].rate * base_rtt;
        let last = if L::FROM_ZEROS && form == Form::Ns3 { stack.zeros() } else { *stack };
        let (level, round) = (1.0, Round::default());
        Self { last, base_rtt, limit, window: limit, level, round, form, law: L::new(limit) }
    }

    /// Sets the window to at most the limit. A level of zero, after a pause, gives an infinite window.
    pub(crate) fn set_window(&mut self, window: Volume) {
        self.window = if window < self.limit { window } else { self.limit };
        if self.form == Form::Ns3 {
            self.window = self.window.max(NS3_MIN_RATE * self.base_rtt);
        }
    }
}

/// Returns the highest level of all links, and the time between that link's records.
///
/// Returns `None` if no link has an earlier record.
pub(crate) fn fullest<L: IntLaw>(
    form: Form,
    hops: &[Hop],
    last: &[Hop],
    base_rtt: Duration,
) -> Option<(f64, Duration)> {
    let mut highest: Option<(f64, Duration)> = None;
    // The first record is that of the host's own link.
    for (hop, last) in hops.iter().zip(last).skip(usize::from(form == Form::Ns3)) {
        let Some(lasted) = hop.since(last) else { continue };
        let level = L::level(form, hop, last, lasted, base_rtt);
        if highest.is_none_or(|(found, _)| level > found) {
            highest = Some((level, lasted));
        }
    }
    highest
}

/// Returns a window in whole packets, rounded up. `counted` bytes of a packet count.
fn whole_packets(window: Volume, counted: Volume, packet: Volume) -> Volume {
    (window / counted).ceil() * packet
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
        let form = L::form(&self.params);
        let state = self.state.get_or_insert_with(|| Box::new(State::new(stack, base_rtt, form)));
        state.base_rtt = base_rtt;
        state.limit = stack.hops()[0].rate * base_rtt;
        let ends = state.round.ends(ack.acked / self.packet, ack.in_flight / self.packet);
        let measured = fullest::<L>(form, stack.hops(), state.last.hops(), base_rtt);
        if let Some((level, lasted)) = measured {
            let lasted = if form == Form::Htsim && lasted < base_rtt { Duration::ZERO } else { lasted };
            state.level = smoothed(state.level, level, lasted, base_rtt);
            L::react(state, &self.params, self.weight, ends);
        }
        if form != Form::Htsim || measured.is_none() {
            state.last = *stack;
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
                let window = match state.form {
                    Form::Htsim => state.window,
                    Form::Paper => whole_packets(state.window, self.packet, self.packet),
                    Form::Ns3 => whole_packets(state.window, self.packet - HEADERS, self.packet),
                };
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
