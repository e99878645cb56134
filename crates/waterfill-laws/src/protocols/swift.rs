//! Swift: a window that keeps the delay at a target, with windows below one packet by pacing.
//!
//! # Law
//! A sender compares each packet's delay with a target, which is longer on paths of more links and for smaller windows.
//!
//! - `target`  t = base + hops·ħ + max(0, min(a/√w + b, range)), with a = range/(1/√w_min − 1/√w_max) and b = −a/√w_max
//! - `increase`  delay < t: w ← w + ai·n/w for n acknowledged packets, w ← w + ai·n below one packet
//! - `decrease`  otherwise, at most once per RTT: w ← w·max(1 − β·(delay − t)/delay, 1 − mdf)
//! - `loss`  a loss, or a timeout: w ← (1 − mdf)·w, at most once per RTT; the fifth timeout in a row: w ← the smallest window
//! - `pacing`  a window below one packet is one packet per RTT/w
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | fcwnd | `window` | packets |
//! | base target, ħ, fs_range | `base_target`, `hop_target`, `flow_range` | s |
//! | fs_min_cwnd, fs_max_cwnd | `flow_min`, `flow_max` | packets |
//! | ai, β, max_mdf | `ai`, `beta`, `max_mdf` | packets, 1, 1 |
//!
//! # Header
//! None. The paper counts hops by the IP TTL. Here the host knows the number of links of its path.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Source`]: a window above one packet leaves at the rate of the host's link. The host counts whole packets, rounded down, and at least one.
//!
//! # Parameters
//! [`Params`]: times as `bolt_cc_ns3`, a public code of one of the authors' coworkers; `profile = "datacenter"` scales them
//! with the RTT. Gains are those of csg-htsim, which calls them guesses. The paper's are not at hand.
//!
//! # Readings and deviations
//! The paper's text was not at hand: the law is from secondary sources, which are public codes.
//!
//! - The delay is the RTT of the acknowledged packet. Hosts here have no delay of their own, so Swift's second window, by the
//!   delay in end hosts, is not here.
//! - The target's window is that before the acknowledgement.
//! - A window grows only if the sender uses it.
//! - If the wait for a packet has begun and its rate rises, the wait is shortened.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/python/runs/test_delay_laws.py`) the mean RTT of 2 to 64 flows is the
//! target of their windows within 5 %, and 300 flows of 0.3 packets each use 0.98 of a link.
//!
//! # References
//! `swift-2020`: Kumar, Dukkipati, Jang, Wassel, Wu, Montazeri, Wang, Springborn, Alfeld, Ryan, Wetherall, Vahdat, "Swift:
//! Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020. Codes: Broadcom/csg-htsim,
//! serhatarslan-hub/bolt_cc_ns3.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, BaseRtt, Connection, EchoLast, Event, Host, Info, LawSignal, PacketKind, Probe, Protocol, ProtocolKind,
    SendLimit, Sending,
};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `swift`.
#[derive(Debug)]
pub struct Swift;

impl Protocol for Swift {
    const INFO: Info = Info {
        name: "swift",
        summary: "Swift: a window by the delay's distance from a target (2020)",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::OwnQueue), ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
            LawSignal { name: "target", unit: "s", doc: "target of the delay at this window" },
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
    /// Parameters of Swift.
    pub struct Params {
        /// Target of the delay of a large window on a path without links.
        base_target: Duration = Duration::from_micros(25), "bolt_cc_ns3";
        /// Addition ħ to the target for each link of the path.
        hop_target: Duration = Duration::from_micros(1), "bolt_cc_ns3";
        /// Largest addition to the target for a small window.
        flow_range: Duration = Duration::from_micros(100), "bolt_cc_ns3";
        /// Window of the largest addition, in packets.
        flow_min: f64 = 0.1, "csg-htsim, bolt_cc_ns3";
        /// Window without an addition, in packets.
        flow_max: f64 = 100.0, "csg-htsim";
        /// Additive increase per RTT, in packets.
        ai: f64 = 1.0, "csg-htsim, \"a guess\"";
        /// Gain β of the decrease.
        beta: f64 = 0.8, "csg-htsim, \"a guess\"";
        /// Largest share of a window that a decrease takes.
        max_mdf: f64 = 0.5, "csg-htsim, \"a guess\"";
        /// Smallest window, in packets.
        min_window: f64 = 0.001, "swift-2020, from a secondary source";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(!self.base_target.is_zero(), "base_target", "a time above zero")?;
        require(
            self.flow_min > 0.0 && self.flow_min < self.flow_max,
            "flow_min",
            "a number above zero, below flow_max",
        )?;
        require(self.flow_max <= 1e6, "flow_max", "a number above flow_min, up to 1e6")?;
        require(self.ai > 0.0 && self.ai <= 1e6, "ai", "a number above zero, up to 1e6")?;
        require(self.beta > 0.0 && self.beta <= 1e6, "beta", "a number above zero, up to 1e6")?;
        require(self.max_mdf > 0.0 && self.max_mdf < 1.0, "max_mdf", "a number between 0 and 1")?;
        require((1e-6..=1.0).contains(&self.min_window), "min_window", "a number from 1e-6 to 1")
    }
}

/// Number of timeouts in a row after which the window is the smallest.
const TIMEOUTS_MAX: u32 = 5;

/// Target of the delay as a function of the window, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Base target, with the addition for the path's links.
    path: f64,
    range: f64,
    /// Factor a of the addition for flows.
    a: f64,
    /// Offset b of the addition for flows.
    b: f64,
}

impl Target {
    /// Returns the target of a path with a number of links.
    #[must_use]
    pub fn new(params: &Params, hops: u32) -> Self {
        let range = params.flow_range.as_secs();
        let root = params.flow_max.sqrt();
        let a = range / (1.0 / params.flow_min.sqrt() - 1.0 / root);
        let path = params.base_target.as_secs() + f64::from(hops) * params.hop_target.as_secs();
        Self { path, range, a, b: -a / root }
    }

    /// `[swift-2020:target]` Returns the target for a window, in seconds.
    #[must_use]
    pub fn of(&self, window: f64) -> f64 {
        self.path + (self.a / window.sqrt() + self.b).clamp(0.0, self.range)
    }
}

/// `[swift-2020:increase]` Returns the window after the acknowledgement of a number of packets below the target.
#[must_use]
pub fn increased(window: f64, acked: f64, ai: f64) -> f64 {
    window + ai * acked / window.max(1.0)
}

/// `[swift-2020:decrease]` Returns the window after a delay above the target.
#[must_use]
pub fn decreased(window: f64, delay: f64, target: f64, beta: f64, max_mdf: f64) -> f64 {
    window * (1.0 - beta * (delay - target) / delay).max(1.0 - max_mdf)
}

/// Source of Swift.
#[derive(Clone, Debug)]
pub struct Source {
    packet: Volume,
    /// Rate of the host's link.
    line: Rate,
    ai: f64,
    beta: f64,
    max_mdf: f64,
    min_window: f64,
    target: Target,
    window: f64,
    /// RTT of the last acknowledgement; zero before one.
    rtt: Duration,
    /// Time of the last decrease.
    decreased: Option<Instant>,
    /// Number of timeouts since the last acknowledgement.
    timeouts: u32,
}

impl Source {
    /// Decreases the window unless it has been decreased within an RTT.
    fn decrease(&mut self, now: Instant, to: f64) {
        if self.decreased.is_none_or(|before| now.since(before) >= self.rtt) {
            self.decreased = Some(now);
            self.window = to.max(self.min_window);
        }
    }
}

impl crate::protocol::Source<Swift> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            packet: connection.packet,
            line: connection.path.host_rate,
            ai: params.ai * connection.weight,
            beta: params.beta,
            max_mdf: params.max_mdf,
            min_window: params.min_window,
            target: Target::new(params, connection.path.hops),
            window: connection.initial_window / connection.packet,
            rtt: Duration::ZERO,
            decreased: None,
            timeouts: 0,
        }
    }

    fn stamp(&mut self, _: &Sending) {}

    fn on_ack(&mut self, ack: &Ack<()>) {
        let (PacketKind::Ack, Some(rtt)) = (ack.kind, ack.rtt) else { return };
        (self.rtt, self.timeouts) = (rtt, 0);
        let (delay, target) = (rtt.as_secs(), self.target.of(self.window));
        if delay >= target {
            let to = decreased(self.window, delay, target, self.beta, self.max_mdf);
            self.decrease(ack.now, to);
        } else if ack.window_limited {
            self.window = increased(self.window, ack.acked / self.packet, self.ai);
        }
    }

    /// `[swift-2020:loss]` Decreases the window by the largest share.
    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::SynsLost => self.window = 1.0,
            Event::Timeout if self.timeouts + 1 >= TIMEOUTS_MAX => self.window = self.min_window,
            Event::Timeout | Event::Loss => {
                self.timeouts += u32::from(event == Event::Timeout);
                self.decrease(now, (1.0 - self.max_mdf) * self.window);
            }
            Event::Marked | Event::Recovered | Event::Spurious | Event::Idle => {}
        }
    }

    /// `[swift-2020:pacing]` Paces a window below one packet. A larger one leaves at the rate of the host's link.
    fn limit(&self) -> SendLimit {
        let window = self.window * self.packet;
        let pacing = if self.window < 1.0 && !self.rtt.is_zero() { window / self.rtt } else { self.line };
        SendLimit { window: Some(window), pacing: Some(pacing).filter(|&rate| rate != Rate::UNLIMITED) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("cwnd", self.window);
        probe.record("target", self.target.of(self.window));
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: window, rtt, decreased, timeouts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{PathView, Source as _};
    use crate::testing::{close, connection};

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn source() -> Source {
        let path = PathView { host_rate: Rate::from_bps(100e9), hops: 4 };
        Source::new(&Params::default(), &Connection { path, ..connection() })
    }

    fn ack(source: &mut Source, us: u64, rtt_us: u64) -> f64 {
        let rtt = Duration::from_micros(rtt_us);
        source.on_ack(&Ack { acked: connection().packet, ..Ack::new(at(us), (), rtt) });
        source.window
    }

    /// `[swift-2020:target]` Four links give 29 us. A window of 100 packets adds nothing, 0.1 packets add 100 us, and one
    /// packet (1 − 0.1)/(√10 − 0.1) of it.
    #[test]
    fn swift_2020_the_target_grows_with_links_and_for_small_windows() {
        let target = Target::new(&Params::default(), 4);
        close(target.of(100.0), 29e-6, 1e-12);
        close(target.of(1000.0), 29e-6, 1e-12);
        close(target.of(0.1), 129e-6, 1e-12);
        close(target.of(0.01), 129e-6, 1e-12);
        close(target.of(1.0), 29e-6 + 100e-6 * 0.9 / (10.0_f64.sqrt() - 0.1), 1e-12);
    }

    /// `[swift-2020:increase]` `[swift-2020:decrease]` A window of ten grows by a tenth per packet. At a delay of twice the
    /// target it falls by β/2, at ten times by the largest share, and once per RTT.
    #[test]
    fn swift_2020_additive_increase_and_one_decrease_per_rtt() {
        let mut source = source();
        close(ack(&mut source, 100, 20), 10.1, 1e-12);
        assert_eq!(increased(0.5, 1.0, 1.0), 1.5);
        close(decreased(10.0, 60e-6, 30e-6, 0.8, 0.5), 6.0, 1e-12);
        assert_eq!(decreased(10.0, 1.0, 30e-6, 0.8, 0.5), 5.0);
        let target = source.target.of(10.1);
        close(ack(&mut source, 1000, 100), 10.1 * (1.0 - 0.8 * (1.0 - target / 100e-6)).max(0.5), 1e-12);
        let after = source.window;
        assert_eq!(ack(&mut source, 1099, 100), after);
        assert!(ack(&mut source, 1100, 100) < after);
    }

    /// `[swift-2020:loss]` A loss halves the window, once per RTT. The fifth timeout in a row leaves the smallest window.
    #[test]
    fn swift_2020_losses_and_timeouts() {
        let mut source = source();
        ack(&mut source, 0, 20);
        source.window = 8.0;
        source.on_event(at(10), Event::Loss);
        source.on_event(at(29), Event::Loss);
        assert_eq!(source.window, 4.0);
        for (i, window) in (1..).zip([2.0, 1.0, 0.5, 0.25, 0.001]) {
            source.on_event(at(1000 * i), Event::Timeout);
            assert_eq!(source.window, window);
        }
        ack(&mut source, 9000, 20);
        assert_eq!(source.timeouts, 0);
    }

    /// `[swift-2020:pacing]` A quarter of a packet is a packet in four RTTs. A larger window leaves at the link's rate.
    #[test]
    fn swift_2020_a_window_below_a_packet_is_paced() {
        let mut source = source();
        ack(&mut source, 0, 20);
        source.window = 0.25;
        let SendLimit { window, pacing } = source.limit();
        close(pacing.expect("a rate").time_for(1500).as_secs(), 80e-6, 1e-9);
        assert_eq!(window, Some(0.25 * connection().packet));
        source.window = 1.0;
        assert_eq!(source.limit().pacing, Some(Rate::from_bps(100e9)));
    }
}
