//! Poseidon: a source steers the largest queueing delay of its path to a target that falls with its own rate.
//!
//! # Law
//! Links keep the largest delay of a packet's path, as MaxNet's links keep the largest price. Each source has a target for
//! it, which is low at a high rate. Flows that share a bottleneck receive the same delay, so they rest at the same rate.
//!
//! - `path` MPD ← max(MPD, queueing delay of the link)
//! - `eq3`  T(r) = k + p·a/ln(r_max/r_min), with a = ln(r_max/r)
//! - `eq4`  U = e^((T(r) − MPD)·a·m/p)
//! - `up`   w ← w + (U − 1)·(data acknowledged), if MPD ≤ T(r)
//! - `down` w ← w·U otherwise, once per RTT
//!
//! With r_T the rate whose target is MPD, U is (r_T/r)^(m·a/ln(r_max/r_min)). So a source goes a part of the way to r_T on a
//! logarithmic scale, a small part at high rates.
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | MPD | `delay` | s |
//! | k, p | `k`, `p` | s |
//! | m | `m` | 1 |
//! | r_max, r_min | `max_rate`, `min_rate` | bit/s |
//! | r, w | w/RTT, `window` | bit/s, bytes |
//! | a | ln(`max_rate`/r), or `range` | 1 |
//!
//! # Header
//! 4 bytes in data and in acknowledgements: MPD as a single-precision number of seconds.
//!
//! # Router
//! [`Router`]: a division and a comparison for each packet of the law. It keeps no state.
//!
//! # Source
//! [`Source`]: a window, paced at w/RTT. Weights divide r, so a flow of weight 2 rests at twice the rate.
//!
//! # Parameters
//! [`Params`]. The public code has k = 2 µs, p = 40 µs and m = 0.25, which `profile = "datacenter"` scales with the RTT.
//!
//! # Stability
//! Our own analysis, for n equal flows and their RTT without queues τ. At a full link Σw = C·(τ + d). If all windows change
//! by the fraction ε, d changes by (τ + d)·ε and the mean rate stays. So U changes by −g·ε, with g = m·a·(τ + d)/p. The
//! feedback is one RTT old: ε ← ε − g·ε'. This is stable for g < 1. A difference between flows shrinks by the factor
//! 1 − m·a/ln(r_max/r_min) per RTT.
//!
//! # Readings and deviations
//! The paper's text was not available (secondary source): its abstract, and a public ns-3 model (NASA-NJU/OSCAR).
//!
//! - The model has a = ln(r_max/r) in both equations. So U is 1 at r_max, whatever the delay, and a source slows down only
//!   once its RTT has grown. `exponent = "range"` has the constant ln(r_max/r_min) in `eq4`: U is then (r_T/r)^m at any rate,
//!   and g is larger at high rates.
//! - A link writes the delay of the queue that a packet finds on arrival. In a first-in-first-out queue this is the
//!   delay at departure without the packet in service. A pause of the link does not count.
//! - r_max and r_min are those of the network, not of a host's link: targets must be equal at equal rates.
//! - w is at least r_min·RTT and at most r_max times the base RTT. |ln U| is at most ln(r_max/r_min). The model rounds
//!   delays to microseconds and windows up to bytes. A loss changes no window.
//! - The source says nothing about long paths. The defaults, for RTTs of up to 100 ms, are our own.
//!
//! # Validation
//! Equation tests below. In packets and in the fluid model (`tests/python/runs/test_poseidon.py`): equal rates with unequal
//! RTTs, the max-min rates of a parking lot, the target at rest, and both sides of g.
//! [Results](../../validation/router-laws.md).
//!
//! # References
//! `poseidon-2023`: Wang, Moshref, Li, Kumar, Ng, Cardwell, Dukkipati, "Poseidon: Efficient, Robust, and Practical
//! Datacenter CC via Deployable INT", NSDI 2023.

use crate::math::{exp, ln};
use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, BaseRtt, Connection, EchoLast, Event, Host, Info, LawSignal, LinkView, Passing, Probe, Protocol, ProtocolKind,
    SendLimit, Sending, Source as SourceLaw, Wire,
};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

crate::choice! {
    /// Factor a in the exponent of U.
    pub enum Exponent {
        /// ln(r_max/r), as in the public model.
        Rate = "rate",
        /// ln(r_max/r_min), the same at all rates.
        Range = "range",
    }
}

crate::params! {
    /// Parameters of Poseidon.
    pub struct Params {
        /// Smallest target k, that of a flow at r_max.
        k: Duration = Duration::from_millis(5), "ours: a twentieth of a long RTT";
        /// Difference p between the targets at r_min and at r_max.
        p: Duration = Duration::from_millis(100), "ours: a long RTT";
        /// Step m of a window on a logarithmic scale.
        m: f64 = 0.05, "ours: g is below 0.8 for rates from 1 Mbit/s and RTTs up to 100 ms";
        /// Largest rate r_max of the network.
        max_rate: Rate = Rate::from_bps(10e9), "ours: a long path";
        /// Smallest rate r_min of the network.
        min_rate: Rate = Rate::from_bps(10e3), "ours: a packet of 1500 B in 1.2 s";
        /// Factor a in the exponent of U.
        exponent: Exponent = Exponent::Rate, "the public model";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(!self.p.is_zero(), "p", "a time above zero")?;
        require(self.m > 0.0 && self.m <= 1.0, "m", "a number in (0, 1]")?;
        require((1.0..=1e18).contains(&self.min_rate.as_bps()), "min_rate", "a rate from 1 bit/s to 1e18 bit/s")?;
        let above = self.max_rate > self.min_rate && self.max_rate.as_bps() <= 1e18;
        require(above, "max_rate", "a rate above min_rate, up to 1e18 bit/s")
    }
}

/// The protocol `poseidon`.
#[derive(Debug)]
pub struct Poseidon;

impl Protocol for Poseidon {
    const INFO: Info = Info {
        name: "poseidon",
        summary: "sources steer the path's largest queueing delay to a target by their rate (2023)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::OwnQueue), ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "window", unit: "bytes", doc: "the window w" },
            LawSignal { name: "delay", unit: "s", doc: "the path's largest queueing delay MPD" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Header;
    type Router = Router;
    type Receiver = EchoLast<Header>;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

/// Header and echo: the largest queueing delay so far, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    delay: f32,
}

impl Wire for Header {
    const BYTES: usize = 4;
    fn encode(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&self.delay.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let delay = f32::from_be_bytes(*bytes.first_chunk()?);
        (delay.is_finite() && delay.is_sign_positive()).then_some(Self { delay })
    }
}

/// Router, which keeps no state.
#[derive(Clone, Copy, Debug)]
pub struct Router;

impl crate::protocol::Router<Poseidon> for Router {
    fn new(_: &Params, _: &LinkView) -> Self {
        Self
    }

    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        if let Some(header) = passing.header.as_deref_mut() {
            header.delay = path_delay(header.delay, link);
        }
    }
}

/// `[poseidon-2023:path]` Returns the larger of the path's delay so far and the delay of this link's queue.
fn path_delay(so_far: f32, link: &LinkView) -> f32 {
    let delay = link.queue.as_bits() / link.capacity.as_bps();
    if delay.is_finite() { so_far.max(delay as f32) } else { so_far }
}

/// `[poseidon-2023:eq3]` Returns the target delay at a rate in seconds, k + p·ln(r_max/r)/ln(r_max/r_min).
fn target(params: &Params, rate: Rate) -> f64 {
    let below = ln(params.max_rate / rate) / ln(params.max_rate / params.min_rate);
    params.k.as_secs() + params.p.as_secs() * below
}

/// `[poseidon-2023:eq4]` Returns the factor U for a rate and a path's largest delay in seconds.
fn factor(params: &Params, rate: Rate, delay: f64) -> f64 {
    let range = ln(params.max_rate / params.min_rate);
    let a = match params.exponent {
        Exponent::Rate => ln(params.max_rate / rate),
        Exponent::Range => range,
    };
    let exponent = (target(params, rate) - delay) * a * params.m / params.p.as_secs();
    exp(exponent.clamp(-range, range))
}

/// Source that steers the delay by a window.
#[derive(Clone, Debug)]
pub struct Source {
    params: Params,
    weight: f64,
    packet: Volume,
    window: Volume,
    /// Last RTT; `None` before the first acknowledgement.
    rtt: Option<Duration>,
    /// Time from which the window may fall again.
    falls_at: Instant,
    /// Last echoed delay in seconds.
    delay: f64,
}

impl Source {
    /// Returns the rate w/RTT of one unit of weight, within the network's rates.
    fn rate(&self, rtt: Duration) -> Rate {
        (self.window / rtt * (1.0 / self.weight)).max(self.params.min_rate).min(self.params.max_rate)
    }
}

impl SourceLaw<Poseidon> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            params: params.clone(),
            weight: connection.weight,
            packet: connection.packet,
            window: connection.initial_window,
            rtt: None,
            falls_at: Instant::ZERO,
            delay: 0.0,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header::default()
    }

    /// `[poseidon-2023:up]` `[poseidon-2023:down]` Changes the window by U: with each acknowledgement, or once per RTT.
    fn on_ack(&mut self, ack: &Ack<Header>) {
        let Some(rtt) = ack.rtt.or(self.rtt).filter(|rtt| !rtt.is_zero()) else { return };
        (self.rtt, self.delay) = (Some(rtt), f64::from(ack.echo.delay));
        let factor = factor(&self.params, self.rate(rtt), self.delay);
        if factor >= 1.0 {
            let acked = if ack.acked < self.window { ack.acked } else { self.window };
            self.window += (factor - 1.0) * acked;
        } else if ack.now >= self.falls_at {
            self.window = factor * self.window;
            self.falls_at = ack.now + rtt;
        }
        let most = self.weight * (self.params.max_rate * ack.base_rtt);
        let least = self.weight * (self.params.min_rate * rtt);
        let bounded = if self.window < most { self.window } else { most };
        self.window = bounded.max(least);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost && self.rtt.is_none() {
            self.window = self.packet;
        }
    }

    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.window.max(self.packet)), pacing: self.rtt.map(|rtt| self.window / rtt) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("window", self.window.as_bytes());
        probe.record("delay", self.delay);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, window, rtt, falls_at, delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::testing::{close, connection, link, pass};

    /// Returns parameters of a fabric: a range of 1000, k = 2 µs, p = 40 µs, m = 1/4.
    fn fabric() -> Params {
        let (k, p) = (Duration::from_micros(2), Duration::from_micros(40));
        let (max_rate, min_rate) = (gbps(100.0), gbps(0.1));
        Params { k, p, m: 0.25, max_rate, min_rate, ..Params::default() }
    }

    fn gbps(rate: f64) -> Rate {
        Rate::from_bps(rate * 1e9)
    }

    /// `[poseidon-2023:eq3]` Two thirds down the range of 1000 the target is 2 + 40·2/3 µs; it is 2 µs at the top.
    #[test]
    fn poseidon_2023_eq3_the_target_falls_with_the_rate() {
        close(target(&fabric(), gbps(1.0)), (2.0 + 80.0 / 3.0) * 1e-6, 1e-12);
        close(target(&fabric(), gbps(100.0)), 2e-6, 1e-12);
        close(target(&fabric(), gbps(0.1)), 42e-6, 1e-12);
    }

    /// `[poseidon-2023:eq4]` The delay 2 + 40/3 µs is the target at 10 Gbit/s. A source at 1 Gbit/s grows by 100^(1/12), one
    /// at 100 Gbit/s ignores any delay. With the constant exponent both go a quarter of the way, by 10^±0.25.
    #[test]
    fn poseidon_2023_eq4_the_factor_leads_to_the_rate_of_the_delay() {
        let delay = (2.0 + 40.0 / 3.0) * 1e-6;
        close(factor(&fabric(), gbps(1.0), delay), 1.467_799_268, 1e-9);
        close(factor(&fabric(), gbps(10.0), delay), 1.0, 1e-12);
        assert_eq!(factor(&fabric(), gbps(100.0), 1.0).to_bits(), 1f64.to_bits());
        let range = Params { exponent: Exponent::Range, ..fabric() };
        close(factor(&range, gbps(1.0), delay), 1.778_279_410, 1e-9);
        close(factor(&range, gbps(100.0), delay), 0.562_341_325, 1e-9);
    }

    /// `[poseidon-2023:path]` A packet keeps the larger of two delays: 12,500 B at 10 Gbit/s are 10 µs.
    #[test]
    fn a_packet_keeps_the_largest_delay() {
        let delay = |header, bytes| f64::from(pass::<Poseidon>(&mut Router, &link(1e10, bytes), header, 1500.0).delay);
        close(delay(Header::default(), 12_500.0), 10e-6, 1e-6);
        close(delay(Header { delay: 30e-6 }, 12_500.0), 30e-6, 1e-6);
        assert_eq!(Header::decode(&f32::NAN.to_be_bytes()), None);
        assert_eq!(Header::decode(&(-1f32).to_be_bytes()), None);
    }

    /// Returns a source of 12,500 bytes per 10 µs, which is a tenth of r_max.
    fn source() -> Source {
        let initial_window = Volume::from_bytes(12_500.0);
        SourceLaw::new(&fabric(), &Connection { initial_window, ..connection() })
    }

    fn ack(source: &mut Source, us: u64, delay_us: f32, acked: f64) -> f64 {
        let echo = Header { delay: delay_us * 1e-6 };
        let now = Instant::ZERO + Duration::from_micros(us);
        let acked = Volume::from_bytes(acked);
        source.on_ack(&Ack { acked, ..Ack::new(now, echo, Duration::from_micros(10)) });
        source.window.as_bytes()
    }

    /// `[poseidon-2023:up]` `[poseidon-2023:down]` At 10 Gbit/s a is ln 10, and a delay of 42 µs is 2/3 of p above the
    /// target: the window falls by 10^(−1/6), once per RTT. It rises in proportion to the acknowledged data.
    #[test]
    fn a_window_falls_once_per_rtt_and_rises_with_each_acknowledgement() {
        let mut source = source();
        let fallen = ack(&mut source, 20, 42.0, 1500.0);
        close(fallen, 12_500.0 * 0.681_292_069, 1e-6);
        close(ack(&mut source, 29, 42.0, 1500.0), fallen, 1e-12);
        let rate = source.window / Duration::from_micros(10);
        close(source.limit().pacing.expect("a rate").as_bps(), rate.as_bps(), 1e-12);
        let a = 10f64.ln() * 7.0 / 6.0;
        let up = ((0.05 + a / 1000f64.ln()) * a * 0.25).exp();
        close(ack(&mut source, 30, 0.0, 1500.0), fallen + (up - 1.0) * 1500.0, 1e-6);
        assert!(ack(&mut source, 31, 42.0, 1500.0) < fallen);
    }

    /// The window stays within r_min·RTT and r_max times the base RTT.
    #[test]
    fn a_window_stays_within_the_networks_rates() {
        let mut source = source();
        (1..4000).for_each(|i| assert!(ack(&mut source, 10 * i, 0.0, 125_000.0) <= 125_000.0));
        close(source.window.as_bytes(), 125_000.0, 1e-3);
        source.window = Volume::from_bytes(62_500.0);
        (4000..4040).for_each(|i| assert!(ack(&mut source, 10 * i, 1e6, 1500.0) >= 125.0));
        close(source.window.as_bytes(), 125.0, 1e-12);
        assert_eq!(source.limit().window, Some(connection().packet));
    }

    #[test]
    fn parameters_without_a_meaning_are_refused() {
        Params { p: Duration::ZERO, ..Params::default() }.validate().expect_err("a division by zero");
        Params { min_rate: gbps(10.0), ..Params::default() }.validate().expect_err("an empty range");
        Params { m: 2.0, ..Params::default() }.validate().expect_err("a step beyond the wanted rate");
    }
}
