//! Machinery of window-based TCPs: slow start and the answer to losses, without any one law.
//!
//! A TCP of this folder is a [`TcpLaw`]: the growth of its window in congestion avoidance, and its reductions. [`Tcp`]
//! makes a protocol of it. On every backend the host finds and repairs losses, and notifies the law of an [`Event`] once
//! per loss episode. Windows are in packets, as in their papers, and are real numbers. The host sends whole packets.

use crate::params::Params;
use crate::protocol::{
    Ack, Connection, EchoLast, Event, Host, Info, LawSignal, PacketKind, Probe, Protocol, ProtocolKind, SendLimit,
    Sending, Source,
};
use crate::units::{Instant, Rate, Volume};

pub mod bbr;
pub mod bic;
pub mod cubic;
pub mod dctcp;
pub mod delivery;
pub mod fast;
pub mod highspeed;
pub mod htcp;
pub mod hystart;
pub mod newreno;
pub mod reno;
pub mod round;
pub mod sack;
pub mod scalable;
pub mod vegas;
pub mod westwood;

/// Least threshold of slow start (RFC 5681, eq. 4).
pub const SSTHRESH_MIN: f64 = 2.0;
/// The window after a time-out (RFC 5681 §3.1, "loss window").
pub const LOSS_WINDOW: f64 = 1.0;
/// Upper bound of windows, so that no law can overflow: 10⁹ packets are 100 Tbit/s at 0.1 s.
pub const WINDOW_MAX: f64 = 1e9;

/// The congestion window of RFC 5681, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Most packets in flight.
    pub cwnd: f64,
    /// Below it the window grows by slow start; infinite before the first loss.
    pub ssthresh: f64,
    /// The first window.
    pub initial: f64,
}

/// The law of one TCP.
pub trait TcpLaw: Clone + std::fmt::Debug + Sized {
    /// Name in scenarios.
    const NAME: &'static str;
    /// One line for listings.
    const SUMMARY: &'static str;
    /// Requirements on the host.
    const HOST: Host = Host::TCP;
    /// True if its packets are paced unless the scenario says otherwise.
    const PACED: bool = false;
    /// Its signals, with [`SIGNALS`] first in the list.
    const SIGNALS: &'static [LawSignal] = SIGNALS;
    /// Its parameters.
    type Params: Params;

    /// The law at the start of a connection.
    fn new(params: &Self::Params, connection: &Connection) -> Self;

    /// Sees every acknowledgement of data before the window moves, in recovery too: for what a law measures.
    fn measure(&mut self, _window: &Window, _ack: &Ack<()>, _acked_packets: f64) {}

    /// Slow start: one packet for each acknowledged (RFC 3465 with no limit L, as Linux has it). Returns the packets
    /// acknowledged beyond `ssthresh`, which count in congestion avoidance.
    fn slow_start(&mut self, window: &mut Window, _ack: &Ack<()>, acked_packets: f64) -> f64 {
        slow_start(window, acked_packets)
    }

    /// Congestion avoidance: the window after `acked_packets` more. Called when the window was used and no loss is
    /// being recovered from.
    fn avoid(&mut self, window: &mut Window, ack: &Ack<()>, acked_packets: f64);

    /// The threshold after a loss, a mark or a time-out; not below [`SSTHRESH_MIN`] afterwards.
    fn reduced(&mut self, window: &Window, now: Instant, event: Event) -> f64;

    /// Called when all data outstanding at the reduction has arrived.
    fn recovered(&mut self, _window: &mut Window, _now: Instant) {}

    /// The rate that paced packets leave at, if the law names one.
    fn pacing(&self, _window: &Window) -> Option<Rate> {
        None
    }

    /// Shows its own state.
    fn observe(&self, _probe: &mut dyn Probe) {}
}

/// `cwnd += acked`, up to the threshold; what is left over.
#[must_use]
pub fn slow_start(window: &mut Window, acked_packets: f64) -> f64 {
    let grown = (window.cwnd + acked_packets).min(window.ssthresh.max(window.cwnd));
    let left = acked_packets - (grown - window.cwnd);
    window.cwnd = grown;
    left
}

/// Signals of every TCP.
pub const SIGNALS: &[LawSignal] = &[
    LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
    LawSignal { name: "ssthresh", unit: "packets", doc: "threshold of slow start; none before the first loss" },
];

/// A TCP: a [`TcpLaw`] with the machinery that all share. It is both the protocol and its source.
#[derive(Clone, Debug)]
pub struct Tcp<L: TcpLaw> {
    law: L,
    window: Window,
    packet: Volume,
    /// Time-outs since data was last acknowledged: a threshold is set by the first only (RFC 5681, eq. 4's text).
    timeouts: u32,
}

impl<L: TcpLaw> Tcp<L> {
    /// The congestion window in packets, for a protocol that keeps a TCP's window next to its own.
    pub(crate) const fn cwnd(&self) -> f64 {
        self.window.cwnd
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
        if ack.recovering || !ack.window_limited {
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

    fn on_event(&mut self, now: Instant, event: Event) {
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
            Event::Recovered => self.law.recovered(&mut self.window, now),
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

/// A law under test and the acknowledgements it receives.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::testing::connection;
    use crate::units::Duration;

    pub(crate) fn tcp<L: TcpLaw>(params: &L::Params) -> Tcp<L> {
        Tcp::new(params, &connection())
    }

    /// Acknowledges whole packets, one acknowledgement each, at one time.
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
