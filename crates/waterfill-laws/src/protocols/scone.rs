//! SCONE: a QUIC-like sender that slowly follows throughput advice, on top of CUBIC.
//!
//! # Law
//! Congestion control is CUBIC's ([`cubic`]). Advice limits its rate, on a much longer time scale.
//!
//! - `packet`  a sender puts a SCONE packet with signal 127, "unknown", in front of a few first datagrams and then of one
//!   every `interval`; the signal n stands for 100 kbit/s·10^(n/20)
//! - `apply`   an element replaces the signal only by a lower one
//! - `follow`  the receiver reports the lowest signal of the last monitoring period of 67 s; without one the advice has
//!   expired, and the sender is limited by CUBIC alone
//! - `eq7`     the element's advice is MaxNet's demand D(p) = x_max·exp(−p/T) at the link's price p
//!
//! # Symbols
//! | draft | here | unit |
//! |---|---|---|
//! | rate signal | `signal` | 1 |
//! | monitoring period | `period` | s |
//! | x_max, T, μ, dt_p, T₀ | as in [`maxnet`] | |
//!
//! # Header
//! The SCONE packet with a destination ID of 8 bytes and no source ID, 15 bytes. It is counted in every packet, also where
//! none is sent. An acknowledgement carries the reported signal, one byte: the draft leaves the way back to applications.
//!
//! # Router
//! [`Router`]: MaxNet's price, computed from all traffic, and its demand for the few packets that ask.
//!
//! # Source
//! [`Source`]: CUBIC's window; paced at the advised rate while there is advice.
//!
//! # Parameters
//! [`Params`]: MaxNet's for the router; `interval` as picoquic's. `element_until` ends the routers' advice in the middle
//! of a run, as if the element had vanished from the path.
//!
//! # Readings and deviations
//! - draft-ietf-scone-protocol of August 2026. "The lowest throughput advice received during any monitoring period" is
//!   the lowest of the last 67 s at any time. So lower advice counts at once, and higher advice after 67 s.
//! - A sender may exceed the advice for less than 67 s. This one is paced at it all the time.
//! - The element rounds to the nearest signal, within 5.9 % (`crate::scone`). The draft does not say how to round.
//! - The TCP form (draft-eddy-tcpm-scone-01) prints another formula ([errata](../../validation/errata.md)).
//! - The integer version of codec and advice (`kernel/scone.h`) runs in `waterfilld router --scone`, not in simulations.
//!
//! [Other readings](../../validation/law-readings.md#scone)
//!
//! # Validation
//! Tests below, and the simulator's `tests/scone.rs`: next to MaxNet flows the advice is within half a step of the
//! max-min share. An element that vanishes is forgotten within 67 s. Where most of the load follows advice, the price
//! has no equilibrium, because it moves a second per second and advice takes up to 67 s. Advice should go to links on
//! which flows of the law carry most of the traffic.
//!
//! # References
//! Thomson, Huitema, Oku, Joras, Ihlar, "Standard Communication with Network Elements (SCONE) Protocol",
//! draft-ietf-scone-protocol. `maxnet-2007`: Andrew, Jacobsson, Low, Suchara, Witt, Wydrowski, "MaxNet: Theory and
//! Implementation".

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, BaseRtt, Connection, Event, Host, Info, LawSignal, LinkView, PacketKind, Passing, Probe, Protocol,
    ProtocolKind, Received, SendLimit, Sending, Wire,
};
use crate::protocols::maxnet::{self, MaxNet, demand};
use crate::protocols::tcp::{Tcp, cubic};
use crate::scone::{Packet, UNKNOWN, rate, signal};
use crate::units::{Duration, Instant, Rate};

crate::params! {
    /// Parameters of a sender that follows throughput advice, and of the routers that give the advice.
    pub struct Params {
        /// Time between two SCONE packets of a flow.
        interval: Duration = Duration::from_millis(20_000), "draft-ietf-scone-protocol: 20 to 30 s";
        /// Monitoring period, after which advice expires.
        period: Duration = Duration::from_millis(67_000), "draft-ietf-scone-protocol, Monitoring Period";
        /// Time from the start of the run after which routers give no advice. With 0, routers always give advice.
        element_until: Duration = Duration::ZERO, "none: for experiments";
        /// Maximum supported rate x_max of the routers' demand function.
        x_max: Rate = maxnet::Params::default().x_max, "maxnet-2007 §VI";
        /// Speed of convergence T of the routers' demand function.
        t: Duration = maxnet::Params::default().t, "maxnet-2007 §VI";
        /// Target utilization μ of a link.
        mu: f64 = maxnet::Params::default().mu, "maxnet-2007 §VII.A";
        /// Interval dt_p between two price updates of a router.
        dt_p: Duration = maxnet::Params::default().dt_p, "maxnet-2007 §VI";
        /// Time scale T_0 over which a queue counts as load.
        t_0: Duration = maxnet::Params::default().t_0, "maxnet-2007 §VI";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(!self.interval.is_zero(), "interval", "a time above zero")?;
        require(self.interval <= self.period, "interval", "a time up to the period")?;
        crate::params::Params::validate(&self.router())
    }

    /// Returns the parameters of the MaxNet router that gives the advice.
    fn router(&self) -> maxnet::Params {
        let Self { x_max, t, mu, dt_p, t_0, .. } = *self;
        maxnet::Params { x_max, t, mu, dt_p, t_0, ..maxnet::Params::default() }
    }
}

/// Number of data packets at the start of a flow that carry a SCONE packet.
const FIRST_PACKETS: u32 = 4;

/// The protocol `scone`.
#[derive(Debug)]
pub struct Scone;

impl Protocol for Scone {
    const INFO: Info = Info {
        name: "scone",
        summary: "CUBIC below the throughput advice of MaxNet's routers, with a monitoring period of 67 s (2026)",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::FullQueues), ..Host::TCP },
        signals: &[
            LawSignal { name: "price", unit: "s", doc: "the link's price" },
            LawSignal { name: "advice", unit: "bit/s", doc: "the link's advice, or the rate that the source follows" },
            LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
            LawSignal { name: "ssthresh", unit: "packets", doc: "threshold of slow start; none before the first loss" },
            LawSignal { name: "w_max", unit: "packets", doc: "window of the plateau; none before the first" },
            LawSignal { name: "w_est", unit: "packets", doc: "Reno's window; none outside congestion avoidance" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn check_link(params: &Params, link: &LinkView) -> Result<(), ParamError> {
        MaxNet::check_link(&params.router(), link)
    }
    fn target(params: &Params) -> f64 {
        params.mu
    }
}

// ---------------------------------------------------------------------------------- header

/// SCONE packet in front of a data packet, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Rate signal, 0 to 127; `None` without a SCONE packet.
    pub signal: Option<u8>,
}

impl Wire for Header {
    const BYTES: usize = 15;
    fn encode(&self, out: &mut [u8]) {
        out[..Self::BYTES].fill(0);
        if let Some(signal) = self.signal {
            let packet = Packet { signal, reserved: true, destination: vec![0; 8], source: Vec::new() };
            out[..Self::BYTES].copy_from_slice(&packet.encode());
        }
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<15>()?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Some(Self::default());
        }
        // The packet that follows is not part of the header: a byte and the destination ID.
        let datagram = [&bytes[..], &[0; 9]].concat();
        let packet = Packet::decode(&datagram).ok().filter(|packet| packet.encode().len() == Self::BYTES)?;
        Some(Self { signal: Some(packet.signal) })
    }
}

/// Rate signal that a receiver reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Lowest signal of the last period; 127 means none.
    pub signal: u8,
}

impl Default for Echo {
    fn default() -> Self {
        Self { signal: UNKNOWN }
    }
}

impl Wire for Echo {
    const BYTES: usize = 1;
    fn encode(&self, out: &mut [u8]) {
        out[0] = self.signal;
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.first().filter(|signal| **signal <= UNKNOWN).map(|signal| Self { signal: *signal })
    }
}

// ---------------------------------------------------------------------------------- router

/// Network element of one link direction: a MaxNet router that advises the rate at its price.
#[derive(Clone, Debug)]
pub struct Router {
    maxnet: maxnet::Router,
    x_max: Rate,
    t: f64,
    until: Instant,
}

impl Router {
    /// Returns the signal of the demand at a price. `[maxnet-2007:eq7]`
    fn advice(&self, price: f64) -> u8 {
        signal(demand(price, self.x_max, self.t))
    }
}

impl crate::protocol::Router<Scone> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let until = if params.element_until.is_zero() { Instant::NEVER } else { Instant::ZERO + params.element_until };
        let maxnet = crate::protocol::Router::<MaxNet>::new(&params.router(), link);
        Self { maxnet, x_max: params.x_max, t: params.t.as_secs(), until }
    }

    /// `[scone:apply]` Replaces the packet's signal if the router's own is lower.
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        let now = passing.now;
        let mut price = maxnet::Header::default();
        let asked =
            passing.header.as_deref_mut().and_then(|header| header.signal.as_mut()).filter(|_| now < self.until);
        // A packet that asks gets the price's code, as one of MaxNet's would.
        let header = asked.is_some().then_some(&mut price);
        let mut of_maxnet =
            Passing { now, volume: passing.volume, packets: passing.packets, kind: passing.kind, header };
        self.maxnet.on_arrival(link, &mut of_maxnet);
        if let (Some(asked), maxnet::Field::Price(code)) = (asked, price.price) {
            *asked = self.advice(maxnet::real(code)).min(*asked);
        }
    }

    fn poll_at(&self) -> Instant {
        crate::protocol::Router::<MaxNet>::poll_at(&self.maxnet)
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        crate::protocol::Router::<MaxNet>::on_timer(&mut self.maxnet, link, now);
    }

    fn observe(&self, probe: &mut dyn Probe) {
        let mut price = Price(0.0);
        crate::protocol::Router::<MaxNet>::observe(&self.maxnet, &mut price);
        probe.record("price", price.0);
        if let Some(advice) = rate(self.advice(price.0)) {
            probe.record("advice", advice.as_bps());
        }
    }
}

/// Probe that records the price of the MaxNet router.
struct Price(f64);

impl Probe for Price {
    fn record(&mut self, signal: &str, value: f64) {
        if signal == "price" {
            self.0 = value;
        }
    }
}

// ---------------------------------------------------------------------------------- receiver

/// Receiver that reports the lowest signal of the last period.
#[derive(Clone, Debug)]
pub struct Receiver {
    period: Duration,
    /// Time of the last arrival of each signal; `None` if the signal has not arrived.
    last: Box<[Option<Instant>; UNKNOWN as usize]>,
    lowest: u8,
}

impl crate::protocol::Receiver<Scone> for Receiver {
    fn new(params: &Params) -> Self {
        Self { period: params.period, last: Box::new([None; UNKNOWN as usize]), lowest: UNKNOWN }
    }

    fn on_data(&mut self, received: &Received<Header>) {
        // 127 is unknown: no advice.
        let Some(signal) = received.header.signal.filter(|signal| *signal < UNKNOWN) else { return };
        self.last[usize::from(signal)] = Some(received.now);
        self.lowest = self.lowest.min(signal);
    }

    /// `[scone:follow]` Returns the lowest signal of the last period.
    fn echo(&mut self, now: Instant) -> Echo {
        let valid = |last: &Option<Instant>| last.is_some_and(|last| now < last + self.period);
        if self.last.get(usize::from(self.lowest)).is_some_and(|last| !valid(last)) {
            self.lowest = self.last.iter().position(valid).map_or(UNKNOWN, |lowest| lowest as u8);
        }
        Echo { signal: self.lowest }
    }
}

// ---------------------------------------------------------------------------------- source

/// Source that runs CUBIC and is paced at most at the advised rate.
#[derive(Clone, Debug)]
pub struct Source {
    cubic: Tcp<cubic::Cubic>,
    interval: Duration,
    sent: u32,
    next: Instant,
    advice: Option<Rate>,
}

impl crate::protocol::Source<Scone> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let cubic = crate::protocol::Source::<Tcp<cubic::Cubic>>::new(&cubic::Params::default(), connection);
        Self { cubic, interval: params.interval, sent: 0, next: Instant::ZERO, advice: None }
    }

    /// `[scone:packet]` Returns a header with a SCONE packet without advice if one is due, and otherwise an empty
    /// header.
    fn stamp(&mut self, sending: &Sending) -> Header {
        crate::protocol::Source::<Tcp<cubic::Cubic>>::stamp(&mut self.cubic, sending);
        // A QUIC handshake must be over: SCONE packets are negotiated.
        if sending.kind != PacketKind::Data || (self.sent >= FIRST_PACKETS && sending.now < self.next) {
            return Header::default();
        }
        self.sent = self.sent.saturating_add(1);
        self.next = sending.now + self.interval;
        Header { signal: Some(UNKNOWN) }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if ack.kind != PacketKind::Syn {
            self.advice = rate(ack.echo.signal);
        }
        self.cubic.on_ack(&ack.with_echo(()));
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        self.cubic.on_event(now, event);
    }

    fn limit(&self) -> SendLimit {
        SendLimit { pacing: self.advice, ..self.cubic.limit() }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(advice) = self.advice {
            probe.record("advice", advice.as_bps());
        }
        self.cubic.observe(probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Receiver as _, Router as _, Source as _};
    use crate::testing::connection;
    use crate::units::Volume;

    const LINK: LinkView = LinkView { id: 0, capacity: Rate::from_bps(1e8), target: None, queue: Volume::ZERO };

    fn pass(router: &mut Router, now: Instant, signal: Option<u8>) -> Option<u8> {
        let mut header = Header { signal };
        let volume = Volume::from_bytes(1500.0);
        let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Data, header: Some(&mut header) };
        router.on_arrival(&LINK, &mut passing);
        header.signal
    }

    /// `[scone:apply]` A link at its lowest price advises its capacity, and keeps a lower signal.
    #[test]
    fn a_link_at_its_lowest_price_advises_its_rate_until_it_vanishes() {
        let params = Params { element_until: Duration::from_millis(10_000), ..Params::default() };
        let mut router = Router::new(&params, &LINK);
        let at = |s: f64| Instant::from_secs(s);
        assert_eq!(pass(&mut router, at(1.0), None), None);
        // 100 Mbit/s is signal 60; a lower one stays.
        for (before, after) in [(UNKNOWN, 60), (60, 60), (61, 60), (59, 59), (0, 0)] {
            assert_eq!(pass(&mut router, at(1.0), Some(before)), Some(after));
        }
        assert_eq!(pass(&mut router, at(10.0), Some(UNKNOWN)), Some(UNKNOWN), "the element is gone");
    }

    /// `[maxnet-2007:eq7]` Twice the link's rate for 100 ms raises the price by (2 − 0.9)·0.1 s. This lowers the demand
    /// by a factor of e^(0.11/0.4).
    #[test]
    fn advice_follows_the_price() {
        let mut router = Router::new(&Params::default(), &LINK);
        for ms in 0..100 {
            let now = Instant::from_secs(0.001 * f64::from(ms));
            let volume = Volume::from_bytes(25_000.0);
            let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Other, header: None };
            router.on_arrival(&LINK, &mut passing);
            router.on_timer(&LINK, router.poll_at());
        }
        let expected = signal(Rate::from_bps(1e8 * (-0.11_f64 / 0.4).exp()));
        assert_eq!((pass(&mut router, Instant::from_secs(0.1), Some(UNKNOWN)), expected), (Some(58), 58));
    }

    /// The router's price has the parameters of the advice.
    #[test]
    fn the_price_has_the_parameters_of_the_advice() {
        let params = Params { x_max: Rate::from_bps(2e8), mu: 0.5, ..Params::default() };
        let router = params.router();
        assert_eq!((router.x_max, router.mu), (params.x_max, 0.5));
        assert_eq!((router.t, router.dt_p, router.t_0), (params.t, params.dt_p, params.t_0));
    }

    /// `[scone:follow]` A receiver reports the lowest signal of the last period.
    #[test]
    fn a_receiver_reports_the_lowest_signal_of_a_period() {
        let mut receiver = Receiver::new(&Params::default());
        let at = |s: f64| Instant::from_secs(s);
        let receive = |receiver: &mut Receiver, s: f64, signal: u8| {
            let header = Header { signal: Some(signal) };
            receiver.on_data(&Received { now: at(s), kind: PacketKind::Data, header, rtt: None });
        };
        assert_eq!(receiver.echo(at(0.0)).signal, UNKNOWN);
        for (s, signal) in [(1.0, 60), (20.0, 50), (40.0, 55), (60.0, UNKNOWN), (80.0, 56)] {
            receive(&mut receiver, s, signal);
        }
        for (s, expected) in [(80.0, 50), (86.9, 50), (87.1, 55), (106.9, 55), (107.1, 56), (146.9, 56), (147.1, 127)] {
            assert_eq!(receiver.echo(at(s)).signal, expected, "{s}");
        }
        receive(&mut receiver, 150.0, 70);
        assert_eq!(receiver.echo(at(150.0)).signal, 70);
    }

    /// `[scone:packet]` A source sends SCONE packets at its start and once per interval, and is paced at the advised
    /// rate.
    #[test]
    fn a_source_asks_at_its_start_and_every_interval_and_is_paced_at_the_advice() {
        let mut source = Source::new(&Params::default(), &connection());
        let mut stamp = |s: f64, kind| {
            let sending = Sending::new(Instant::from_secs(s), kind, Volume::from_bytes(1500.0));
            source.stamp(&sending).signal.is_some()
        };
        assert!(!stamp(0.0, PacketKind::Syn));
        let asked: Vec<bool> = (0..6).map(|n| stamp(0.1 + 0.001 * f64::from(n), PacketKind::Data)).collect();
        assert_eq!(asked, [true, true, true, true, false, false]);
        assert_eq!(
            [20.0, 20.2, 20.3, 40.1, 40.3].map(|s| stamp(s, PacketKind::Data)),
            [false, true, false, false, true]
        );
        let rtt = Duration::from_millis(10);
        for (signal, expected) in [(UNKNOWN, None), (40, Some(1e7)), (60, Some(1e8)), (UNKNOWN, None)] {
            source.on_ack(&Ack::new(Instant::from_secs(41.0), Echo { signal }, rtt));
            assert_eq!(source.limit().pacing.map(|rate| rate.as_bps().round()), expected);
        }
        assert!(source.limit().window.is_some(), "CUBIC's");
    }

    #[test]
    fn headers_have_the_drafts_bytes() {
        let mut bytes = [0xff; 15];
        Header { signal: Some(61) }.encode(&mut bytes);
        assert_eq!(bytes[..6], [0xde, 0xef, 0x7d, 0xc0, 0xfd, 8]);
        assert_eq!(Header::decode(&bytes), Some(Header { signal: Some(61) }));
        Header::default().encode(&mut bytes);
        assert_eq!((bytes, Header::decode(&bytes)), ([0; 15], Some(Header::default())));
        assert_eq!((Echo::decode(&[128]), Echo::decode(&[])), (None, None));
    }
}
