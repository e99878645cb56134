//! Laws that a program provides at run time, for example a user's own laws written in Python.
//!
//! # Law
//! That of the program. [`Provider`] makes its three ends, with the calls of the traits in [`crate::protocol`]. Each call
//! leaves this crate, where all other laws are inlined, so a law that is to stay is written in Rust.
//!
//! # Table
//! A run has one table of such laws, [`Laws`], by name. A flow's protocol is
//! [`ProtocolId::Own`](crate::registry::ProtocolId::Own) with the law's place in this table. Headers carry the place, so that a law's router treats the
//! packets of all other laws as foreign. Names, parameters and their checks are the program's: a provider has its values.
//!
//! # Symbols
//! | program | here | unit |
//! |---|---|---|
//! | fields of the header | [`Fields`] | the program's |
//!
//! # Header
//! Four numbers of single precision, 16 bytes, in data and in acknowledgements. The program names them. A law without
//! fields and without a router has no header.
//!
//! # Router
//! [`Router`]: the program's, or none.
//!
//! # Source
//! [`Source`]: the program's; without a program the host's initial window, which never changes. With each
//! acknowledgement the program gets what a host measures ([`Measured`]): delivery-rate samples as
//! [BBR's](crate::protocols::tcp::delivery), rounds, and newly lost data.
//!
//! # Parameters
//! [`Params`]: none; the program has its own.
//!
//! # Readings and deviations
//! None: there is no paper. A host finds the state at a packet's departure by the time that the acknowledgement echoes, as
//! with TCP timestamps: packets that leave at one instant share the state of the first.
//!
//! # Validation
//! `examples/own_law.py` is RCP again; a test compares its rates with those of the Rust law. `examples/own_cubic.py` is CUBIC
//! again; a test compares its series with those of the Rust law, byte by byte.
//!
//! # References
//! None.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::params::{ParamError, ParamInfo, Value};
use crate::protocol::{
    self, Ack, BaseRtt, Connection, Event, Host, Info, LinkView, PacketKind, Passing, Probe, Protocol, ProtocolKind,
    Received, SendLimit, Sending, Wire,
};
use crate::protocols::tcp::delivery::{Estimator, Note, Times};
use crate::units::{Instant, Rate, Volume};

/// Number of fields in a header.
pub const FIELDS: usize = 4;
/// Maximum number of laws in a run's table.
pub const MAX_LAWS: usize = u8::MAX as usize;

/// Fields of a header of a program's law: numbers whose meaning the program defines.
pub type Fields = [f32; FIELDS];

/// Header of a program's law.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnFields {
    /// Numbers whose meaning the program defines.
    pub fields: Fields,
    /// Place of the law in the run's table, which is not part of the bytes on the wire.
    pub(crate) law: u8,
    /// True if the law has a header on the wire.
    on_wire: bool,
}

impl Wire for OwnFields {
    const BYTES: usize = 4 * FIELDS;
    fn encode(&self, out: &mut [u8]) {
        for (place, number) in out[..self.bytes()].chunks_exact_mut(4).zip(self.fields) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut found = Self { on_wire: true, ..Self::default() };
        for (i, number) in found.fields.iter_mut().enumerate() {
            *number = f32::from_be_bytes(*bytes.get(4 * i..)?.first_chunk()?);
        }
        found.fields.iter().all(|number| !number.is_nan()).then_some(found)
    }
    fn bytes(&self) -> usize {
        if self.on_wire { Self::BYTES } else { 0 }
    }
    fn decode_alike(&self, bytes: &[u8]) -> Option<Self> {
        let decoded = if self.on_wire { Self::decode(bytes)? } else { Self::default() };
        Some(Self { law: self.law, ..decoded })
    }
}

impl OwnFields {
    /// Returns the header with other fields. A law without a header on the wire carries none.
    fn carrying(self, fields: Fields) -> Self {
        if self.on_wire { Self { fields, ..self } } else { self }
    }
}

/// Program that provides a law.
pub trait Provider: Send + Sync {
    /// Returns the target utilization of a link, in (0, 1].
    fn target(&self) -> f64;
    /// Returns true if packets are paced unless the scenario says otherwise.
    fn paced(&self) -> bool;
    /// Returns the duties of the host that runs the law.
    fn host(&self) -> Host {
        Host::EXPLICIT
    }
    /// Returns true if packets carry the law's fields.
    fn has_header(&self) -> bool {
        true
    }
    /// Returns the names of the series that the law's router and source record.
    fn signals(&self) -> &[String] {
        &[]
    }
    /// Creates the router law of one link direction; `None` if routers do nothing.
    fn router(&self, link: &LinkView) -> Option<Box<dyn RouterLaw>>;
    /// Creates the receiver law of one connection; `None` copies the last header into the echo.
    fn receiver(&self) -> Option<Box<dyn ReceiverLaw>>;
    /// Creates the source law of one connection.
    fn source(&self, connection: &Connection) -> Box<dyn SourceLaw>;
}

/// Laws that programs provide in one run, by name. A law's index is its place in the table.
#[derive(Clone, Default)]
pub struct Laws(Vec<(String, Arc<dyn Provider>)>);

impl Laws {
    /// Adds a law to the table.
    ///
    /// # Errors
    /// The table is full.
    pub fn add(&mut self, name: String, provider: Arc<dyn Provider>) -> Result<(), ParamError> {
        if self.0.len() >= MAX_LAWS {
            return Err(ParamError(format!("laws: must be at most {MAX_LAWS}")));
        }
        self.0.push((name, provider));
        Ok(())
    }
    /// Returns the place of the law with this name, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u8> {
        self.0.iter().position(|(known, _)| known == name).map(|place| place as u8)
    }
    /// Returns the name of the law at this place; `None` if there is no such law.
    #[must_use]
    pub fn name(&self, law: u8) -> Option<&str> {
        self.0.get(usize::from(law)).map(|(name, _)| name.as_str())
    }
    /// Returns the parameters through which the simulator calls the law at this place.
    #[must_use]
    pub fn params(&self, law: u8) -> Params {
        let provider = self.0.get(usize::from(law)).map(|(_, provider)| Arc::clone(provider));
        Params { provider, law }
    }
    /// Returns the names of the series that the law at this place records.
    #[must_use]
    pub fn signals(&self, law: u8) -> &[String] {
        self.0.get(usize::from(law)).map_or(&[], |(_, provider)| provider.signals())
    }
}

impl std::fmt::Debug for Laws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Router law defined by a program, with the methods of [`protocol::Router`].
pub trait RouterLaw: Send + Sync {
    /// Handles a packet on arrival; see [`protocol::Router::on_arrival`].
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, Fields>);
    /// Returns the time of the next timer; see [`protocol::Router::poll_at`].
    fn poll_at(&self) -> Instant;
    /// Runs the timer; see [`protocol::Router::on_timer`].
    fn on_timer(&mut self, link: &LinkView, now: Instant);
    /// Records the router's signals; see [`protocol::Router::observe`].
    fn observe(&self, _probe: &mut dyn Probe) {}
    /// Copies the law with its state.
    fn boxed(&self) -> Box<dyn RouterLaw>;
}

/// Receiver law defined by a program, with the methods of [`protocol::Receiver`].
pub trait ReceiverLaw: Send + Sync {
    /// Handles an arriving SYN or data packet; see [`protocol::Receiver::on_data`].
    fn on_data(&mut self, received: &Received<Fields>);
    /// Returns the echo of an acknowledgement; see [`protocol::Receiver::echo`].
    fn echo(&mut self, now: Instant) -> Fields;
    /// Copies the law with its state.
    fn boxed(&self) -> Box<dyn ReceiverLaw>;
}

/// Source law defined by a program, with the methods of [`protocol::Source`].
pub trait SourceLaw: Send + Sync {
    /// Returns the header of a packet to send; see [`protocol::Source::stamp`].
    fn stamp(&mut self, sending: &Sending) -> Fields;
    /// Handles an arriving acknowledgement; see [`protocol::Source::on_ack`].
    fn on_ack(&mut self, ack: &Ack<Fields>, measured: &Measured);
    /// Handles the loss of one packet; see [`protocol::Source::on_lost`].
    fn on_lost(&mut self, _now: Instant, _sent: Instant) {}
    /// Handles an event such as a loss; see [`protocol::Source::on_event`].
    fn on_event(&mut self, now: Instant, event: Event);
    /// Handles the first packet after a pause of the application, before its [`SourceLaw::stamp`]. After a pause longer
    /// than the timeout the host then reads the window; after a shorter one, at the next acknowledgement.
    fn on_idle_restart(&mut self, _now: Instant) {}
    /// Returns the current window and pacing rate; see [`protocol::Source::limit`].
    fn limit(&self) -> SendLimit;
    /// Records the source's signals; see [`protocol::Source::observe`].
    fn observe(&self, _probe: &mut dyn Probe) {}
    /// Copies the law with its state.
    fn boxed(&self) -> Box<dyn SourceLaw>;
}

/// Host's measurements that accompany an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Data newly found to be lost since the previous acknowledgement: what the host reports, or inferred from the data
    /// in flight if its recovery keeps no sending times.
    pub lost: Volume,
    /// Data delivered so far.
    pub delivered: Volume,
    /// Delivery-rate sample; `None` without newly acknowledged data, or if the sample's interval is below the minimum
    /// RTT.
    pub rate: Option<Rate>,
    /// True if the application limited the sample.
    pub app_limited: bool,
    /// Number of rounds so far. A round ends when a packet that left in it is acknowledged.
    pub round: u64,
    /// State of the host when the newest acknowledged packet left; `None` if the host no longer has it.
    pub sent: Option<Sent>,
}

/// State of the host at a packet's departure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Time of departure.
    pub at: Instant,
    /// Data in flight before the packet.
    pub in_flight: Volume,
    /// Data delivered by then.
    pub delivered: Volume,
    /// Data found to be lost by then.
    pub lost: Volume,
    /// True if the application limited the packet's rate sample.
    pub app_limited: bool,
}

/// Host's record of departures, from which it measures delivery rates, rounds and losses.
#[derive(Clone, Debug, Default)]
struct Record {
    packet: Volume,
    estimator: Estimator,
    /// State at each instant at which data left, oldest first.
    departures: VecDeque<(Sent, Note)>,
    in_flight: f64,
    /// Packets lost since the last acknowledgement, and by then.
    lost: f64,
    lost_before: f64,
    /// True once the host has reported a loss, because it then reports all.
    losses_are_dated: bool,
    round: u64,
    next_round_delivered: f64,
    /// True from the host's report of a pause until the next packet.
    paused: bool,
}

impl Record {
    /// Returns true if a packet is the first after a pause of the application.
    fn restarts(&self, sending: &Sending) -> bool {
        sending.in_flight <= Volume::ZERO && self.estimator.is_app_limited()
    }

    /// Records the departure of a data packet. `window` is the law's window where the application has nothing more to
    /// send.
    fn on_send(&mut self, sending: &Sending, window: Option<Volume>) {
        let note = self.estimator.on_send(sending);
        if self.departures.back().is_none_or(|(sent, _)| sent.at < sending.now) {
            let delivered = self.estimator.delivered() * self.packet;
            let app_limited = self.estimator.is_app_limited();
            let lost = (self.lost_before + self.lost) * self.packet;
            let sent = Sent { at: sending.now, in_flight: sending.in_flight, delivered, lost, app_limited };
            self.departures.push_back((sent, note));
        }
        self.in_flight = sending.in_flight / self.packet + 1.0;
        if sending.app_limited && window.is_none_or(|window| self.in_flight < window / self.packet) {
            self.estimator.limit_by_application(self.in_flight);
        }
    }

    fn on_ack<E>(&mut self, ack: &Ack<E>) -> Measured {
        let (acked, in_flight) = (ack.acked / self.packet, ack.in_flight / self.packet);
        let rtt = ack.rtt.unwrap_or(ack.smoothed_rtt);
        let (sent, note) = self.departure(ack.now.before(rtt)).unzip();
        let times = Times { now: ack.now, rtt, base_rtt: ack.base_rtt };
        let sample = self.estimator.on_ack(acked, &note.unwrap_or_default(), times);
        if let Some(sent) = sent {
            // What left an RTT before the newest delivered packet is lost by now, or was reordered by more than an RTT.
            while self.departures.front().is_some_and(|(oldest, _)| oldest.at + ack.smoothed_rtt < sent.at) {
                self.departures.pop_front();
            }
        }
        if sample.is_some_and(|sample| sample.prior_delivered as f64 >= self.next_round_delivered) {
            self.next_round_delivered = self.estimator.delivered();
            self.round += 1;
        }
        let inferred = if self.losses_are_dated { 0.0 } else { (self.in_flight - acked - in_flight).max(0.0) };
        let lost = self.lost + inferred;
        (self.in_flight, self.lost) = (in_flight, 0.0);
        self.lost_before += lost;
        Measured {
            lost: lost * self.packet,
            delivered: self.estimator.delivered() * self.packet,
            rate: sample.and_then(|sample| sample.rate).map(|rate| Rate::from_bps(rate * self.packet.as_bits())),
            app_limited: sample.is_some_and(|sample| sample.app_limited),
            round: self.round,
            sent,
        }
    }

    /// Returns the record of the packets that left at this instant.
    fn departure(&self, at: Instant) -> Option<(Sent, Note)> {
        let place = self.departures.binary_search_by(|(sent, _)| sent.at.cmp(&at)).ok()?;
        self.departures.get(place).copied()
    }

    /// Counts a packet that the host reports as lost.
    fn on_lost(&mut self) {
        self.losses_are_dated = true;
        self.lost += 1.0;
    }

    /// Counts all data in flight as lost after a timeout.
    fn on_timeout(&mut self) {
        self.lost += std::mem::take(&mut self.in_flight);
    }
}

/// Parameters of `own`: the program that provides the law, if there is one.
#[derive(Clone, Default)]
pub struct Params {
    provider: Option<Arc<dyn Provider>>,
    /// Place of the law in the run's table.
    pub(crate) law: u8,
}

impl Params {
    /// Creates the parameters of a law that a program provides.
    #[must_use]
    pub fn of(provider: Arc<dyn Provider>) -> Self {
        Self { provider: Some(provider), law: 0 }
    }
    fn header(&self, fields: Fields) -> OwnFields {
        OwnFields {
            fields,
            law: self.law,
            on_wire: self.provider.as_ref().is_none_or(|provider| provider.has_header()),
        }
    }
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Params").field("provided", &self.provider.is_some()).field("law", &self.law).finish()
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        match (&self.provider, &other.provider) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs) && self.law == other.law,
            (None, None) => true,
            _ => false,
        }
    }
}

impl crate::params::Params for Params {
    fn list() -> Vec<ParamInfo> {
        Vec::new()
    }
    fn set(&mut self, name: &str, _: &Value) -> Result<(), ParamError> {
        Err(ParamError(format!("{name}: unknown parameter")))
    }
    fn values(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
    fn validate(&self) -> Result<(), ParamError> {
        let target = Own::target(self);
        crate::params::require(target > 0.0 && target <= 1.0, "target", "above 0 and at most 1")
    }
}

/// The protocol `own`.
#[derive(Debug)]
pub struct Own;

impl Protocol for Own {
    const INFO: Info = Info {
        name: "own",
        summary: "a law of the user's own, which a program provides",
        kind: ProtocolKind::Explicit,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::FullQueues), ..Host::EXPLICIT },
        signals: &[],
    };
    type Params = Params;
    type Header = OwnFields;
    type Echo = OwnFields;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn info(params: &Params) -> Info {
        let Some(provider) = &params.provider else { return Self::INFO };
        let kind = if provider.has_header() { ProtocolKind::Explicit } else { ProtocolKind::EndToEnd };
        Info {
            kind,
            paced: provider.paced(),
            host: Host { base_rtt: Self::INFO.host.base_rtt, ..provider.host() },
            ..Self::INFO
        }
    }
    fn wire_bytes(params: &Params) -> (usize, usize) {
        let bytes = params.header(Fields::default()).bytes();
        (bytes, bytes)
    }
    fn target(params: &Params) -> f64 {
        params.provider.as_ref().map_or(1.0, |provider| provider.target())
    }
    fn paced(params: &Params) -> bool {
        params.provider.as_ref().is_none_or(|provider| provider.paced())
    }
}

// Calls per packet are cold: the paths of the other laws stay as they are without this one.

/// Router that calls a provider's law, or does nothing.
pub struct Router {
    law: Option<Box<dyn RouterLaw>>,
    place: u8,
}

impl protocol::Router<Own> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        Self { law: params.provider.as_ref().and_then(|provider| provider.router(link)), place: params.law }
    }
    #[cold]
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, OwnFields>) {
        if let Some(law) = &mut self.law {
            let place = self.place;
            let own = |header: &mut OwnFields| header.law == place;
            let is_own = passing.header.as_deref_mut().is_some_and(own);
            law.on_arrival(link, &mut passing.with_header(|header| is_own.then_some(&mut header.fields)));
        }
    }
    fn poll_at(&self) -> Instant {
        self.law.as_ref().map_or(Instant::NEVER, |law| law.poll_at())
    }
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if let Some(law) = &mut self.law {
            law.on_timer(link, now);
        }
    }
    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(law) = &self.law {
            law.observe(probe);
        }
    }
}

/// Receiver that calls a provider's law, or copies the last header.
pub struct Receiver {
    law: Option<Box<dyn ReceiverLaw>>,
    /// Last header, or the header of the law's echoes.
    last: OwnFields,
}

impl protocol::Receiver<Own> for Receiver {
    fn new(params: &Params) -> Self {
        let law = params.provider.as_ref().and_then(|provider| provider.receiver());
        Self { law, last: params.header(Fields::default()) }
    }
    #[cold]
    fn on_data(&mut self, received: &Received<OwnFields>) {
        match &mut self.law {
            Some(law) => law.on_data(&received.with_header(received.header.fields)),
            None => self.last = received.header,
        }
    }
    #[cold]
    fn echo(&mut self, now: Instant) -> OwnFields {
        match &mut self.law {
            Some(law) => self.last.carrying(law.echo(now)),
            None => self.last,
        }
    }
}

/// Source that calls a provider's law, or keeps a fixed window.
pub struct Source {
    law: Option<Box<dyn SourceLaw>>,
    window: Volume,
    /// Header of the law's packets.
    header: OwnFields,
    /// On the heap, because every flow's place is as large as the largest source.
    record: Box<Record>,
}

impl protocol::Source<Own> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let law = params.provider.as_ref().map(|provider| provider.source(connection));
        let record = Box::new(Record { packet: connection.packet, ..Record::default() });
        Self { law, window: connection.initial_window, header: params.header(Fields::default()), record }
    }
    #[cold]
    fn stamp(&mut self, sending: &Sending) -> OwnFields {
        let Some(law) = &mut self.law else { return self.header };
        if sending.kind == PacketKind::Data {
            // After a pause longer than the timeout the law knows already, and the host has read its window.
            if !std::mem::take(&mut self.record.paused) && self.record.restarts(sending) {
                law.on_idle_restart(sending.now);
            }
            let window = sending.app_limited.then(|| law.limit().window).flatten();
            self.record.on_send(sending, window);
        }
        self.header.carrying(law.stamp(sending))
    }
    #[cold]
    fn on_ack(&mut self, ack: &Ack<OwnFields>) {
        if let Some(law) = &mut self.law {
            let measured = match ack.kind {
                PacketKind::Syn => Measured::default(),
                _ => self.record.on_ack(ack),
            };
            law.on_ack(&ack.with_echo(ack.echo.fields), &measured);
        }
    }
    fn on_lost(&mut self, now: Instant, sent: Instant) {
        self.record.on_lost();
        if let Some(law) = &mut self.law {
            law.on_lost(now, sent);
        }
    }
    fn on_event(&mut self, now: Instant, event: Event) {
        if event == Event::Timeout {
            self.record.on_timeout();
        }
        // The host reports a pause once for each timeout that it lasts.
        let known = event == Event::Idle && std::mem::replace(&mut self.record.paused, true);
        match &mut self.law {
            Some(_) if known => {}
            Some(law) if event == Event::Idle => law.on_idle_restart(now),
            Some(law) => law.on_event(now, event),
            None if event == Event::SynsLost => self.window = self.record.packet,
            None => {}
        }
    }
    #[cold]
    fn limit(&self) -> SendLimit {
        self.law.as_ref().map_or(SendLimit { window: Some(self.window), pacing: None }, |law| law.limit())
    }
    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(law) = &self.law {
            law.observe(probe);
        }
    }
}

/// Implements `Clone` and `Debug` for a type that may hold a boxed law.
macro_rules! boxed {
    ($end:ident { $($field:ident)* }) => {
        impl Clone for $end {
            fn clone(&self) -> Self {
                Self { law: self.law.as_ref().map(|law| law.boxed()), $($field: self.$field.clone(),)* }
            }
        }
        impl std::fmt::Debug for $end {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($end)).field("provided", &self.law.is_some()).finish()
            }
        }
    };
}
boxed!(Router { place });
boxed!(Receiver { last });
boxed!(Source { window header record });
