//! θ-PowerTCP: PowerTCP with the RTT and its slope in place of telemetry.
//!
//! # Law
//! The RTT θ is a link's queue and pipe over its rate, and the slope of θ is the growth of that queue. So power follows from
//! RTTs alone, if the link is full.
//!
//! - `alg2.10`  Γ' = (dθ/dt + 1)·θ/τ
//! - `alg2.13`  Γ ← (Γ·(τ − Δt) + Γ'·Δt)/τ, Δt ≤ τ the time between two acknowledgements
//! - `alg2.17`  once per RTT: w ← γ·(w/Γ + β) + (1 − γ)·w
//! - `alg2.5`   w/τ paces the packets
//!
//! A link that is not full has θ = τ and Γ = 1: the window then grows by γ·β per RTT only, which is slower than PowerTCP.
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | w, Γ | `window`, `power` | bytes, 1 |
//! | τ | `base_rtt` | s |
//! | γ, β | `gamma`, B·τ/`flows` | 1, bytes |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Source`]: starts with B·τ of the host's link, which it never exceeds.
//!
//! # Parameters
//! [`Params`], as [`powertcp`](super::powertcp).
//!
//! # Readings and deviations
//! The algorithm's lines are from a secondary source, which is memory and the authors' code.
//!
//! - The power is smoothed with each acknowledgement, and the window changes once per RTT. The old window, of the time when
//!   the acknowledged packet was sent, is then the present one.
//! - dθ/dt + 1, the arrivals at a full link over its rate, is at least zero.
//! - The window counts as whole packets, rounded up, as in [`powertcp`](super::powertcp).
//! - The authors' ns-3 code has γ = 0.7, 1.05 times the base RTT, β = 150 Mbit/s · τ, and steers a rate.
//! - A loss changes no window.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/python/runs/test_delay_laws.py`) n flows rest with n/N of B·τ queued.
//!
//! # References
//! `powertcp-2022`: Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022,
//! Algorithm 2.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, BaseRtt, Connection, EchoLast, Event, Host, Info, LawSignal, PacketKind, Probe, Protocol, ProtocolKind,
    SendLimit, Sending,
};
use crate::protocols::tcp::round::Round;
use crate::state::StateFields;
use crate::telemetry::smoothed;
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `theta_powertcp`.
#[derive(Debug)]
pub struct ThetaPowerTcp;

impl Protocol for ThetaPowerTcp {
    const INFO: Info = Info {
        name: "theta_powertcp",
        summary: "θ-PowerTCP: RTTs and their slope give the power of a full link (2022)",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::OwnQueue), ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "window", unit: "bytes", doc: "the window w" },
            LawSignal { name: "power", unit: "1", doc: "the smoothed power Γ" },
        ],
    };
    type Params = Params;
    type Header = ();
    type Echo = ();
    type Router = ();
    type Receiver = EchoLast<()>;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

crate::params! {
    /// Parameters of θ-PowerTCP.
    pub struct Params {
        /// Weight γ of the new window.
        gamma: f64 = 0.9, "powertcp-2022, §3.3";
        /// Number N of flows in the additive increase β = B·τ/N.
        flows: f64 = 100.0, "as hpcc; the paper names none";
        /// Base RTT τ of the network. 0 is the smallest RTT of the connection.
        base_rtt: Duration = Duration::ZERO, "the paper's τ is a constant of the network";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(self.flows >= 1.0 && self.flows <= 1e9, "flows", "a number from 1 to 1e9")
    }
}

/// `[powertcp-2022:alg2.10]` Returns the power of an RTT that has changed from `before` within a time. No link has arrivals
/// below zero, which the first RTT after a pause would give.
#[must_use]
pub fn power(rtt: Duration, before: Duration, lasted: Duration, base_rtt: Duration) -> f64 {
    let slope = (rtt.as_secs() - before.as_secs()) / lasted.as_secs();
    (slope + 1.0).max(0.0) * (rtt / base_rtt)
}

/// `[powertcp-2022:alg2.17]` Returns the next window, which is infinite without any power.
#[must_use]
pub fn next_window(window: Volume, power: f64, increase: Volume, gamma: f64) -> Volume {
    gamma * (window / power + increase) + (1.0 - gamma) * window
}

/// Source of θ-PowerTCP.
#[derive(Clone, Debug)]
pub struct Source {
    packet: Volume,
    /// Rate B of the host's link.
    line: Rate,
    gamma: f64,
    /// Share of B·τ by which a window grows.
    share: f64,
    /// Base RTT of the network, if it is given.
    network_rtt: Option<Duration>,
    base_rtt: Option<Duration>,
    window: Volume,
    power: f64,
    /// Time and RTT of the last acknowledgement.
    last: Option<(Instant, Duration)>,
    round: Round,
}

impl crate::protocol::Source<ThetaPowerTcp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            packet: connection.packet,
            line: connection.path.host_rate,
            gamma: params.gamma,
            share: connection.weight / params.flows,
            network_rtt: Some(params.base_rtt).filter(|rtt| !rtt.is_zero()),
            base_rtt: None,
            window: connection.initial_window,
            power: 1.0,
            last: None,
            round: Round::default(),
        }
    }

    fn stamp(&mut self, _: &Sending) {}

    /// `[powertcp-2022:alg2.13]` Smooths the power, and changes the window once per RTT.
    fn on_ack(&mut self, ack: &Ack<()>) {
        let (PacketKind::Ack, Some(rtt)) = (ack.kind, ack.rtt) else { return };
        let base_rtt = self.network_rtt.unwrap_or(ack.base_rtt);
        self.base_rtt = Some(base_rtt);
        let ends = self.round.ends(ack.acked / self.packet, ack.in_flight / self.packet);
        let Some((before, last)) = self.last else {
            self.last = Some((ack.now, rtt));
            return;
        };
        let lasted = ack.now.since(before);
        if lasted.is_zero() {
            return;
        }
        self.last = Some((ack.now, rtt));
        self.power = smoothed(self.power, power(rtt, last, lasted, base_rtt), lasted, base_rtt);
        // Without a known B nothing bounds a window, so it stays.
        if ends && self.line != Rate::UNLIMITED {
            let limit = self.line * base_rtt;
            let window = next_window(self.window, self.power, self.share * limit, self.gamma);
            self.window = if window < limit { window } else { limit };
        }
    }

    fn on_event(&mut self, _: Instant, event: Event) {
        if event == Event::SynsLost {
            self.window = self.packet;
        }
    }

    /// `[powertcp-2022:alg2.5]` Paces a window per base RTT.
    fn limit(&self) -> SendLimit {
        let whole = (self.window / self.packet).ceil() * self.packet;
        SendLimit { window: Some(whole), pacing: self.base_rtt.map(|rtt| self.window / rtt) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("window", self.window.as_bytes());
        probe.record("power", self.power);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: window, power);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{PathView, Source as _};
    use crate::testing::{close, connection};

    const T: Duration = Duration::from_micros(10);

    /// `[powertcp-2022:alg2.10]` An RTT of 1.5 τ has the power 1.5, twice of it while the RTT grows by a microsecond each
    /// microsecond, and none while it falls as fast.
    #[test]
    fn powertcp_2022_power_from_rtts() {
        let us = Duration::from_micros;
        close(power(us(15), us(15), us(1), T), 1.5, 1e-12);
        close(power(us(15), us(14), us(1), T), 3.0, 1e-9);
        assert!(power(us(15), us(16), us(1), T).abs() < 1e-9);
        assert_eq!(power(us(15), us(18), us(1), T), 0.0);
    }

    /// `[powertcp-2022:alg2.13]` `[powertcp-2022:alg2.17]` `[powertcp-2022:alg2.5]` The window changes once per RTT, by the
    /// power that all acknowledgements have smoothed.
    #[test]
    fn powertcp_2022_the_window_is_divided_once_per_rtt() {
        let path = PathView { host_rate: Rate::from_bps(100e9), hops: 2 };
        let params = Params { base_rtt: T, ..Params::default() };
        let initial_window = Volume::from_bytes(125_000.0);
        let mut source = Source::new(&params, &Connection { initial_window, path, ..connection() });
        let mut ack = |us: u64, rtt_us: u64| {
            let (packet, now) = (connection().packet, Instant::ZERO + Duration::from_micros(us));
            let ack = Ack::new(now, (), Duration::from_micros(rtt_us));
            source.on_ack(&Ack { acked: packet, in_flight: 2.0 * packet, ..ack });
            (source.window.as_bytes(), source.power, source.limit().pacing.expect("a rate").as_bps())
        };
        assert_eq!(ack(0, 20).0, 125_000.0);
        let (window, first, _) = ack(4, 20);
        assert_eq!(window, 125_000.0);
        close(first, 0.6 + 0.4 * 2.0, 1e-9);
        ack(8, 20);
        let (window, power, rate) = ack(12, 20);
        close(power, 2.0 - 0.6_f64 * 0.6 * 0.6, 1e-9);
        close(window, 0.9 * (125_000.0 / power + 1250.0) + 0.1 * 125_000.0, 1e-9);
        close(rate, window * 8.0 / 10e-6, 1e-9);
        assert_eq!(next_window(Volume::from_bytes(1.0), 0.0, Volume::ZERO, 0.9).as_bytes(), f64::INFINITY);
    }
}
