//! Common part of window-based TCPs: slow start and the answer to losses, without the law of any one TCP.
//!
//! A TCP of this folder is a [`TcpLaw`]: the growth of its window in congestion avoidance, and its reductions. [`Tcp`]
//! makes a protocol of it. On every backend the host finds and repairs losses, and notifies the law of an [`Event`] once
//! per loss episode. Windows are in packets, as in their papers, and are real numbers. The host sends whole packets.

use crate::params::Params;
use crate::protocol::{
    Ack, Connection, EchoLast, Event, Host, Info, LawSignal, PacketKind, Probe, Protocol, ProtocolKind, SendLimit,
    Sending, Source, Validation,
};
use crate::protocols::tcp::validation::Unvalidated;
use crate::units::{Instant, Rate, Volume};

pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod classic_ecn;
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod delivery;
pub mod fast;
pub mod highspeed;
pub mod htcp;
pub mod hystart;
pub mod newreno;
pub mod prague;
pub mod reno;
pub mod round;
pub mod sack;
pub mod scalable;
pub mod validation;
pub mod vegas;
pub mod westwood;

/// Minimum of the slow-start threshold, in packets (RFC 5681, eq. 4).
pub const SSTHRESH_MIN: f64 = 2.0;
/// Window after a timeout, in packets (RFC 5681 §3.1, "loss window").
pub const LOSS_WINDOW: f64 = 1.0;
/// Maximum window in packets, which prevents overflow in any law. 10⁹ packets are 100 Tbit/s at an RTT of 0.1 s.
pub const WINDOW_MAX: f64 = 1e9;

/// Congestion window of RFC 5681, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Maximum number of packets in flight.
    pub cwnd: f64,
    /// Threshold below which the window grows by slow start; infinite until a loss or the law first sets it.
    pub ssthresh: f64,
    /// Initial window.
    pub initial: f64,
}

/// Law of one TCP.
pub trait TcpLaw: Clone + std::fmt::Debug + Sized {
    /// Name of the TCP in scenarios.
    const NAME: &'static str;
    /// One-line summary for listings.
    const SUMMARY: &'static str;
    /// Requirements of the TCP on the host.
    const HOST: Host = Host::TCP;
    /// True if packets are paced unless the scenario says otherwise.
    const PACED: bool = false;
    /// True if the window also grows while it is reduced after a mark; it never grows while a loss is repaired.
    const GROWS_WHILE_REDUCED: bool = false;
    /// Signals of the TCP, which begin with [`SIGNALS`].
    const SIGNALS: &'static [LawSignal] = SIGNALS;
    /// Parameters of the TCP.
    type Params: Params;

    /// Creates the law at the start of a connection.
    fn new(params: &Self::Params, connection: &Connection) -> Self;

    /// Measures each acknowledgement of data before the window moves, also during recovery.
    fn measure(&mut self, _window: &Window, _ack: &Ack<()>, _acked_packets: f64) {}

    /// Grows the window in slow start, by one packet for each acknowledged packet (RFC 3465 without a limit L, as in
    /// Linux). Returns the packets acknowledged beyond `ssthresh`, which count in congestion avoidance.
    fn slow_start(&mut self, window: &mut Window, _ack: &Ack<()>, acked_packets: f64) -> f64 {
        slow_start(window, acked_packets)
    }

    /// Grows the window in congestion avoidance, after another `acked_packets`. It is called only if the window was in
    /// use and no loss is being repaired.
    fn avoid(&mut self, window: &mut Window, ack: &Ack<()>, acked_packets: f64);

    /// Returns the threshold after a loss, a mark or a timeout. The caller raises it to at least [`SSTHRESH_MIN`].
    fn reduced(&mut self, window: &Window, now: Instant, event: Event) -> f64;

    /// Handles the end of a recovery: all data that was outstanding at the reduction has arrived.
    fn recovered(&mut self, _window: &mut Window, _now: Instant) {}

    /// Returns the pacing rate, if the law sets one.
    fn pacing(&self, _window: &Window) -> Option<Rate> {
        None
    }

    /// Records the law's own signals.
    fn observe(&self, _probe: &mut dyn Probe) {}
}

/// Adds the acknowledged packets to the window, up to the threshold; returns the packets left over.
#[must_use]
pub fn slow_start(window: &mut Window, acked_packets: f64) -> f64 {
    let grown = (window.cwnd + acked_packets).min(window.ssthresh.max(window.cwnd));
    let left = acked_packets - (grown - window.cwnd);
    window.cwnd = grown;
    left
}

/// Signals that every TCP has.
pub const SIGNALS: &[LawSignal] = &[
    LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
    LawSignal { name: "ssthresh", unit: "packets", doc: "threshold of slow start; none before the first loss" },
];

/// TCP made of a [`TcpLaw`] and the code that all TCPs share. It is both the protocol and its source.
#[derive(Clone, Debug)]
pub struct Tcp<L: TcpLaw> {
    law: L,
    window: Window,
    packet: Volume,
    /// Number of timeouts since data was last acknowledged. Only the first timeout sets the threshold (RFC 5681, text
    /// of eq. 4).
    timeouts: u32,
    /// True while a loss is being repaired.
    repairing: bool,
    /// Rule for a window that the application does not use.
    validation: Validation,
    /// Parts that a connection has after a loss, or by RFC 7661. One box, because an idle flow has little space.
    rare: Option<Box<Rare<L>>>,
}

/// Parts of a [`Tcp`] that it does not always have.
#[derive(Clone, Debug)]
struct Rare<L> {
    /// State before the last loss or timeout, which returns if that was spurious (RFC 4015).
    before: Option<(L, Window)>,
    /// State of RFC 7661.
    unvalidated: Unvalidated,
}

impl<L> Default for Rare<L> {
    fn default() -> Self {
        Self { before: None, unvalidated: Unvalidated::default() }
    }
}

impl<L: TcpLaw> Tcp<L> {
    /// Returns the congestion window in packets, for a protocol that keeps a TCP's window next to its own.
    pub(crate) const fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// Returns the state of RFC 7661, if that is the rule.
    fn unvalidated(&mut self) -> Option<&mut Unvalidated> {
        (self.validation == Validation::Rfc7661).then(|| &mut self.rare.get_or_insert_default().unvalidated)
    }

    /// `[rfc7661:§4.4]` Returns true if the window may grow by an acknowledgement.
    #[inline(never)] // keeps the usual path short
    fn may_grow(&mut self, ack: &Ack<()>, acked_packets: f64) -> bool {
        let (mut window, in_flight) = (self.window, ack.in_flight / self.packet);
        let grows = self.unvalidated().is_none_or(|state| state.may_grow(&mut window, ack, acked_packets, in_flight));
        self.window = window;
        grows
    }

    /// `[rfc7661:§4.4.1]` Lowers the window at a congestion signal to what the flow has used, if it has not validated it.
    fn use_safe_window(&mut self, now: Instant, event: Event) {
        let window = self.window;
        if let Some(state) = self.unvalidated() {
            self.window.cwnd = state.used(&window, now, event).max(LOSS_WINDOW);
        }
    }

    /// Handles a timeout of a pause.
    fn on_idle(&mut self, now: Instant) {
        let mut window = self.window;
        match self.validation {
            Validation::Off => {}
            Validation::Rfc5681 => window.cwnd = validation::restarted(&window),
            Validation::Rfc2861 => window = validation::decayed(&window),
            Validation::Rfc7661 => self.unvalidated().into_iter().for_each(|state| state.expire(&mut window, now)),
        }
        self.window = window;
    }

    /// Lowers the window to `packets` if it is larger.
    pub(crate) const fn cap(&mut self, packets: f64) {
        self.window.cwnd = self.window.cwnd.min(packets);
    }
}

impl<L: TcpLaw> Protocol for Tcp<L> {
    const INFO: Info = Info {
        name: L::NAME,
        summary: L::SUMMARY,
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: L::PACED,
        host: L::HOST,
        signals: L::SIGNALS,
    };
    type Params = L::Params;
    type Header = ();
    type Echo = ();
    type Router = ();
    type Receiver = EchoLast<()>;
    type Source = Self;

    fn target(_: &L::Params) -> f64 {
        1.0
    }
}

impl<L: TcpLaw> Source<Self> for Tcp<L> {
    fn new(params: &L::Params, connection: &Connection) -> Self {
        let initial = connection.initial_window / connection.packet;
        Self {
            law: L::new(params, connection),
            window: Window { cwnd: initial, ssthresh: f64::INFINITY, initial },
            packet: connection.packet,
            timeouts: 0,
            repairing: false,
            validation: connection.validation,
            rare: None,
        }
    }

    fn stamp(&mut self, _: &Sending) {}

    fn on_ack(&mut self, ack: &Ack<()>) {
        if ack.kind == PacketKind::Syn {
            return; // nothing but the handshake: the first window stands
        }
        let acked_packets = ack.acked / self.packet;
        self.law.measure(&self.window, ack, acked_packets);
        if acked_packets > 0.0 {
            self.timeouts = 0;
        }
        let may_grow = match self.validation {
            Validation::Rfc7661 => self.may_grow(ack, acked_packets),
            _ => ack.window_limited,
        };
        let reducing = ack.recovering && (!L::GROWS_WHILE_REDUCED || self.repairing);
        if reducing || !may_grow {
            return;
        }
        let mut left = acked_packets;
        if self.window.cwnd < self.window.ssthresh {
            left = self.law.slow_start(&mut self.window, ack, acked_packets);
        }
        if left > 0.0 {
            self.law.avoid(&mut self.window, ack, left);
        }
        self.window.cwnd = self.window.cwnd.clamp(LOSS_WINDOW, WINDOW_MAX);
    }

    fn on_lost(&mut self, _: Instant, _: Instant) {
        if let Some(state) = self.unvalidated() {
            state.on_lost();
        }
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        if event == Event::Loss || (event == Event::Timeout && self.timeouts == 0) {
            self.rare.get_or_insert_default().before = Some((self.law.clone(), self.window));
        }
        match event {
            Event::Loss => self.repairing = true,
            Event::Recovered | Event::Spurious | Event::Timeout => self.repairing = false,
            Event::Marked | Event::SynsLost | Event::Idle => {}
        }
        if matches!(event, Event::Loss | Event::Marked) || (event == Event::Timeout && self.timeouts == 0) {
            self.use_safe_window(now, event);
        }
        match event {
            Event::Loss | Event::Marked => {
                self.window.ssthresh = self.law.reduced(&self.window, now, event).max(SSTHRESH_MIN);
                // A law may aim above its window; a loss does not raise it there.
                self.window.cwnd = self.window.ssthresh.min(self.window.cwnd.max(SSTHRESH_MIN));
            }
            Event::Timeout => {
                if self.timeouts == 0 {
                    self.window.ssthresh = self.law.reduced(&self.window, now, event).max(SSTHRESH_MIN);
                }
                self.timeouts += 1;
                self.window.cwnd = LOSS_WINDOW;
            }
            Event::Recovered => {
                self.law.recovered(&mut self.window, now);
                if let Some(share) = self.unvalidated().and_then(Unvalidated::recovered) {
                    self.window.cwnd = (share * self.window.cwnd).max(LOSS_WINDOW);
                    self.window.ssthresh = self.window.cwnd.max(SSTHRESH_MIN);
                }
            }
            Event::Idle => self.on_idle(now),
            Event::SynsLost => (self.window.cwnd, self.window.initial) = (LOSS_WINDOW, LOSS_WINDOW),
            Event::Spurious => {
                // [rfc4015:§3.2] The window does not fall below what it has grown to since (so RFC 9438 §4.9, too).
                if let Some((law, window)) = self.rare.as_mut().and_then(|rare| rare.before.take()) {
                    self.law = law;
                    self.window = Window { cwnd: window.cwnd.max(self.window.cwnd), ..window };
                }
                self.timeouts = 0;
            }
        }
    }

    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.window.cwnd * self.packet), pacing: self.law.pacing(&self.window) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("cwnd", self.window.cwnd);
        if self.window.ssthresh.is_finite() {
            probe.record("ssthresh", self.window.ssthresh);
        }
        self.law.observe(probe);
    }
}

/// Helpers that create the law under test and acknowledge its packets.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::testing::connection;
    use crate::units::Duration;

    pub(crate) fn tcp<L: TcpLaw>(params: &L::Params) -> Tcp<L> {
        Tcp::new(params, &connection())
    }

    /// Acknowledges `packets` packets at one time, one packet per acknowledgement.
    pub(crate) fn acknowledge<L: TcpLaw>(tcp: &mut Tcp<L>, packets: u32, now: Instant, rtt: Duration) {
        for _ in 0..packets {
            tcp.on_ack(&Ack { acked: tcp.packet, ..Ack::new(now, (), rtt) });
        }
    }

    impl<L: TcpLaw> Tcp<L> {
        pub(crate) const fn window(&mut self) -> &mut Window {
            &mut self.window
        }
        pub(crate) const fn law(&mut self) -> &mut L {
            &mut self.law
        }
    }
}
