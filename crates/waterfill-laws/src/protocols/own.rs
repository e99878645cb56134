//! Law that another program provides at run time, for example a user's own law written in Python.
//!
//! # Law
//! That of the program. [`Provider`] makes its three ends, with the calls of the traits in [`crate::protocol`]. It is meant
//! for teaching and for first trials: each call leaves this crate, where all other laws are inlined. A law that is to stay
//! is written in Rust.
//!
//! # Symbols
//! | program | here | unit |
//! |---|---|---|
//! | fields of the header | [`OwnFields`] | the program's |
//!
//! # Header
//! Four numbers of single precision, 16 bytes, in data and in acknowledgements. The program names them.
//!
//! # Router
//! [`Router`]: the program's, or none.
//!
//! # Source
//! [`Source`]: the program's; without a program the host's initial window, which never changes.
//!
//! # Parameters
//! [`Params`]: none; the program has its own.
//!
//! # Readings and deviations
//! None: there is no paper.
//!
//! # Validation
//! `examples/own_law.py` is RCP again; a test compares its rates with those of the Rust law.
//!
//! # References
//! None.

use std::sync::Arc;

use crate::params::{ParamError, ParamInfo, Value};
use crate::protocol::{
    self, Ack, Connection, Event, Host, Info, LinkView, Passing, Protocol, ProtocolKind, Received, SendLimit, Sending,
    Wire,
};
use crate::units::{Instant, Volume};

/// Number of fields in a header.
pub const FIELDS: usize = 4;

/// Header of a law defined by a program: numbers whose meaning the program defines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnFields(pub [f32; FIELDS]);

impl Wire for OwnFields {
    const BYTES: usize = 4 * FIELDS;
    fn encode(&self, out: &mut [u8]) {
        for (place, number) in out.chunks_exact_mut(4).zip(self.0) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut found = Self::default();
        for (i, number) in found.0.iter_mut().enumerate() {
            *number = f32::from_be_bytes(*bytes.get(4 * i..)?.first_chunk()?);
        }
        found.0.iter().all(|number| !number.is_nan()).then_some(found)
    }
}

/// Program that provides a law.
pub trait Provider: Send + Sync {
    /// Returns the target utilization of a link, in (0, 1].
    fn target(&self) -> f64;
    /// Returns true if packets are paced unless the scenario says otherwise.
    fn paced(&self) -> bool;
    /// Creates the router law of one link direction; `None` if routers do nothing.
    fn router(&self, link: &LinkView) -> Option<Box<dyn RouterLaw>>;
    /// Creates the receiver law of one connection; `None` copies the last header into the echo.
    fn receiver(&self) -> Option<Box<dyn ReceiverLaw>>;
    /// Creates the source law of one connection.
    fn source(&self, connection: &Connection) -> Box<dyn SourceLaw>;
}

/// Router law defined by a program, with the methods of [`protocol::Router`].
pub trait RouterLaw: Send + Sync {
    /// Handles a packet on arrival; see [`protocol::Router::on_arrival`].
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, OwnFields>);
    /// Returns the time of the next timer; see [`protocol::Router::poll_at`].
    fn poll_at(&self) -> Instant;
    /// Runs the timer; see [`protocol::Router::on_timer`].
    fn on_timer(&mut self, link: &LinkView, now: Instant);
    /// Copies the law with its state.
    fn boxed(&self) -> Box<dyn RouterLaw>;
}

/// Receiver law defined by a program, with the methods of [`protocol::Receiver`].
pub trait ReceiverLaw: Send + Sync {
    /// Handles an arriving SYN or data packet; see [`protocol::Receiver::on_data`].
    fn on_data(&mut self, received: &Received<OwnFields>);
    /// Returns the echo of an acknowledgement; see [`protocol::Receiver::echo`].
    fn echo(&mut self, now: Instant) -> OwnFields;
    /// Copies the law with its state.
    fn boxed(&self) -> Box<dyn ReceiverLaw>;
}

/// Source law defined by a program, with the methods of [`protocol::Source`].
pub trait SourceLaw: Send + Sync {
    /// Returns the header of a packet to send; see [`protocol::Source::stamp`].
    fn stamp(&mut self, sending: &Sending) -> OwnFields;
    /// Handles an arriving acknowledgement; see [`protocol::Source::on_ack`].
    fn on_ack(&mut self, ack: &Ack<OwnFields>);
    /// Handles an event such as a loss; see [`protocol::Source::on_event`].
    fn on_event(&mut self, now: Instant, event: Event);
    /// Returns the current window and pacing rate; see [`protocol::Source::limit`].
    fn limit(&self) -> SendLimit;
    /// Copies the law with its state.
    fn boxed(&self) -> Box<dyn SourceLaw>;
}

/// Parameters of `own`: the program that provides the run's law, if there is one.
#[derive(Clone, Default)]
pub struct Params {
    provider: Option<Arc<dyn Provider>>,
}

impl Params {
    /// Creates the parameters of a law that a program provides.
    #[must_use]
    pub fn of(provider: Arc<dyn Provider>) -> Self {
        Self { provider: Some(provider) }
    }
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Params").field("provided", &self.provider.is_some()).finish()
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        match (&self.provider, &other.provider) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
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
        host: Host::EXPLICIT,
        signals: &[],
    };
    type Params = Params;
    type Header = OwnFields;
    type Echo = OwnFields;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.provider.as_ref().map_or(1.0, |provider| provider.target())
    }
    fn paced(params: &Params) -> bool {
        params.provider.as_ref().is_none_or(|provider| provider.paced())
    }
}

// Calls per packet are cold: the paths of the other laws stay as they are without this one.

/// Router that calls a provider's law, or does nothing.
pub struct Router(Option<Box<dyn RouterLaw>>);

impl protocol::Router<Own> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        Self(params.provider.as_ref().and_then(|provider| provider.router(link)))
    }
    #[cold]
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, OwnFields>) {
        if let Some(law) = &mut self.0 {
            law.on_arrival(link, passing);
        }
    }
    fn poll_at(&self) -> Instant {
        self.0.as_ref().map_or(Instant::NEVER, |law| law.poll_at())
    }
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if let Some(law) = &mut self.0 {
            law.on_timer(link, now);
        }
    }
}

/// Receiver that calls a provider's law, or copies the last header.
pub struct Receiver {
    law: Option<Box<dyn ReceiverLaw>>,
    last: OwnFields,
}

impl protocol::Receiver<Own> for Receiver {
    fn new(params: &Params) -> Self {
        Self { law: params.provider.as_ref().and_then(|provider| provider.receiver()), last: OwnFields::default() }
    }
    #[cold]
    fn on_data(&mut self, received: &Received<OwnFields>) {
        match &mut self.law {
            Some(law) => law.on_data(received),
            None => self.last = received.header,
        }
    }
    #[cold]
    fn echo(&mut self, now: Instant) -> OwnFields {
        self.law.as_mut().map_or(self.last, |law| law.echo(now))
    }
}

/// Source that calls a provider's law, or keeps a fixed window.
pub struct Source {
    law: Option<Box<dyn SourceLaw>>,
    packet: Volume,
    window: Volume,
}

impl protocol::Source<Own> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let law = params.provider.as_ref().map(|provider| provider.source(connection));
        Self { law, packet: connection.packet, window: connection.initial_window }
    }
    #[cold]
    fn stamp(&mut self, sending: &Sending) -> OwnFields {
        self.law.as_mut().map_or_else(OwnFields::default, |law| law.stamp(sending))
    }
    #[cold]
    fn on_ack(&mut self, ack: &Ack<OwnFields>) {
        if let Some(law) = &mut self.law {
            law.on_ack(ack);
        }
    }
    fn on_event(&mut self, now: Instant, event: Event) {
        match &mut self.law {
            Some(law) => law.on_event(now, event),
            None if event == Event::SynsLost => self.window = self.packet,
            None => {}
        }
    }
    #[cold]
    fn limit(&self) -> SendLimit {
        self.law.as_ref().map_or(SendLimit { window: Some(self.window), pacing: None }, |law| law.limit())
    }
}

/// Implements `Clone` and `Debug` for a type that may hold a boxed law.
macro_rules! boxed {
    ($end:ident { $($law:tt)+ } $copy:expr) => {
        impl Clone for $end {
            fn clone(&self) -> Self {
                $copy(self)
            }
        }
        impl std::fmt::Debug for $end {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($end)).field("provided", &self.$($law)+.is_some()).finish()
            }
        }
    };
}
boxed!(Router { 0 } |own: &Self| Self(own.0.as_ref().map(|law| law.boxed())));
boxed!(Receiver { law } |own: &Self| Self { law: own.law.as_ref().map(|law| law.boxed()), last: own.last });
boxed!(Source { law } |own: &Self| {
    Self { law: own.law.as_ref().map(|law| law.boxed()), packet: own.packet, window: own.window }
});
