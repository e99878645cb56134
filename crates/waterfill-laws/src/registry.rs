//! The list of all protocols, and what is generated from it: dispatch by `match` on the packet path (no allocation, no
//! virtual call, always inlined) and the lists that the command line prints.
//!
//! To add a protocol, add its file, its line in `protocols/mod.rs` and its line at the end of this file;
//! `make new-protocol` writes all three.

use crate::params::{ParamError, ParamInfo, Params as _, Value};
use crate::protocol::{
    Ack, Connection, Event, Info, Limit, LinkView, Passing, Probe, Protocol, Received, Receiver, Router, Sending,
    Source, Wire,
};
#[allow(clippy::wildcard_imports, reason = "a new protocol needs its line in the list below and no import")]
use crate::protocols::*;
use crate::state::StateFields;
use crate::steps::Logged;
use crate::units::{Duration, Instant};

macro_rules! registry {
    ($($variant:ident : $protocol:ty,)*) => {
        /// Which protocol.
        #[expect(missing_docs, reason = "one variant per protocol; its Info describes it")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProtocolId { $($variant,)* }

        impl ProtocolId {
            /// All protocols, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns name, kind, backends and signals.
            #[must_use]
            pub const fn info(self) -> &'static Info {
                match self { $(Self::$variant => &<$protocol as Protocol>::INFO,)* }
            }
            /// Returns the bytes of header in a data packet.
            #[must_use]
            pub const fn header_bytes(self) -> usize {
                if self.info().host.notes {
                    return 0;
                }
                match self { $(Self::$variant => <<$protocol as Protocol>::Header as Wire>::BYTES,)* }
            }
            /// Returns the bytes of header in an acknowledgement.
            #[must_use]
            pub const fn echo_bytes(self) -> usize {
                if self.info().host.notes {
                    return 0;
                }
                match self { $(Self::$variant => <<$protocol as Protocol>::Echo as Wire>::BYTES,)* }
            }
            /// Whether its packets carry anything, on the wire or beside it ([`Host::notes`](crate::protocol::Host::notes)).
            #[must_use]
            pub const fn has_fields(self) -> bool {
                match self { $(Self::$variant => {
                    size_of::<<$protocol as Protocol>::Header>() + size_of::<<$protocol as Protocol>::Echo>() > 0
                })* }
            }
            /// Returns the parameters with their defaults.
            #[must_use]
            pub fn params_list(self) -> Vec<ParamInfo> {
                match self { $(Self::$variant => <$protocol as Protocol>::Params::list(),)* }
            }
            /// Creates the default parameters.
            #[must_use]
            pub fn params(self) -> AnyParams {
                match self { $(Self::$variant => AnyParams::$variant(Default::default()),)* }
            }
            /// Decodes a header of this protocol; `None` if the bytes are not valid.
            #[must_use]
            pub fn decode_header(self, bytes: &[u8]) -> Option<AnyHeader> {
                match self { $(Self::$variant => {
                    let header = <<$protocol as Protocol>::Header as Wire>::decode(bytes)?;
                    Some(if size_of_val(&header) == 0 { AnyHeader::None } else { AnyHeader::$variant(header) })
                })* }
            }
            /// Decodes an echo of this protocol; `None` if the bytes are not valid.
            #[must_use]
            pub fn decode_echo(self, bytes: &[u8]) -> Option<AnyEcho> {
                match self { $(Self::$variant => {
                    let echo = <<$protocol as Protocol>::Echo as Wire>::decode(bytes)?;
                    Some(if size_of_val(&echo) == 0 { AnyEcho::None } else { AnyEcho::$variant(echo) })
                })* }
            }
        }

        /// Any protocol's parameters.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyParams { $($variant(<$protocol as Protocol>::Params),)* }

        impl AnyParams {
            /// Sets a parameter by name.
            ///
            /// # Errors
            /// The name is unknown, or the value has the wrong type.
            pub fn set(&mut self, name: &str, value: &Value) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => p.set(name, value),)* }
            }
            /// Checks ranges and combinations.
            ///
            /// # Errors
            /// Names the first parameter that is out of range.
            pub fn validate(&self) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => p.validate(),)* }
            }
            /// Returns all values by name.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self { $(Self::$variant(p) => p.values(),)* }
            }
            /// Returns the members of the law's `struct law_params` with their numbers; none without C code.
            #[must_use]
            pub fn kernel_numbers(&self) -> Vec<(&'static str, u64)> {
                match self { $(Self::$variant(p) => p.kernel_numbers(),)* }
            }
            /// Returns the target utilization of a link, in (0, 1].
            #[must_use]
            pub fn target(&self) -> f64 {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::target(p),)* }
            }
            /// Returns whether packets are paced unless the scenario says otherwise.
            #[must_use]
            pub fn paced(&self) -> bool {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::paced(p),)* }
            }
            /// Checks that a backend can run these parameters.
            ///
            /// # Errors
            /// Names the first parameter that it cannot run, and what was expected.
            pub fn check_backend(&self, backend: &str) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::check_backend(p, backend),)* }
            }
            /// Checks that these parameters can control this link.
            ///
            /// # Errors
            /// Names the first parameter that cannot, and what was expected.
            pub fn check_link(&self, link: &LinkView) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::check_link(p, link),)* }
            }
            /// Creates the router law of one link direction.
            #[must_use]
            pub fn router(&self, link: &LinkView) -> AnyRouter {
                match self { $(Self::$variant(p) => AnyRouter::$variant(Router::<$protocol>::new(p, link)),)* }
            }
            /// Creates the receiving end of one connection.
            #[must_use]
            pub fn receiver(&self) -> AnyReceiver {
                match self { $(Self::$variant(p) => AnyReceiver::$variant(Receiver::<$protocol>::new(p)),)* }
            }
            /// Creates the sending end of one connection.
            #[must_use]
            pub fn source(&self, connection: &Connection) -> AnySource {
                match self { $(Self::$variant(p) => AnySource::$variant(Source::<$protocol>::new(p, connection)),)* }
            }
        }

        /// Any protocol's header; none also stands for the header of a protocol that has no fields in it.
        #[derive(Clone, Copy, Debug, PartialEq, Default)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyHeader { #[default] None, $($variant(<$protocol as Protocol>::Header),)* }

        impl AnyHeader {
            /// Whether a field is a sum over packets: [`Wire::EXTENSIVE`].
            #[must_use]
            pub const fn is_extensive(&self) -> bool {
                match self { Self::None => false, $(Self::$variant(_) => <<$protocol as Protocol>::Header as Wire>::EXTENSIVE,)* }
            }
            /// Returns the header of a part of a parcel: [`Wire::part`].
            #[must_use]
            pub fn part(&self, share: f64) -> Self {
                match self { Self::None => Self::None, $(Self::$variant(h) => Self::$variant(h.part(share)),)* }
            }
            /// Returns the header of two parcels together: [`Wire::joined`]; of two protocols, the next parcel's.
            #[must_use]
            pub fn joined(&self, next: &Self) -> Self {
                match (self, next) { $((Self::$variant(h), Self::$variant(n)) => Self::$variant(h.joined(n)),)* _ => *next }
            }
            /// Returns its protocol.
            #[must_use]
            pub const fn protocol(&self) -> Option<ProtocolId> {
                match self { Self::None => None, $(Self::$variant(_) => Some(ProtocolId::$variant),)* }
            }
            /// Encodes it as on the wire.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self { Self::None => Vec::new(), $(Self::$variant(h) => bytes_of(h),)* }
            }
            /// Encodes it into the first bytes of `out`, which has at least as many as its protocol's header.
            pub fn encode_into(&self, out: &mut [u8]) {
                match self { Self::None => {}, $(Self::$variant(h) => h.encode(out),)* }
            }
        }

        /// Any protocol's echo; none also stands for the echo of a protocol that has no fields in it.
        #[derive(Clone, Copy, Debug, PartialEq, Default)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyEcho { #[default] None, $($variant(<$protocol as Protocol>::Echo),)* }

        impl AnyEcho {
            /// Returns its protocol.
            #[must_use]
            pub const fn protocol(&self) -> Option<ProtocolId> {
                match self { Self::None => None, $(Self::$variant(_) => Some(ProtocolId::$variant),)* }
            }
            /// Encodes it as on the wire.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self { Self::None => Vec::new(), $(Self::$variant(e) => bytes_of(e),)* }
            }
            /// Encodes it into the first bytes of `out`, which has at least as many as its protocol's echo.
            pub fn encode_into(&self, out: &mut [u8]) {
                match self { Self::None => {}, $(Self::$variant(e) => e.encode(out),)* }
            }
        }

        /// Any protocol's router law.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyRouter {
            $($variant(<$protocol as Protocol>::Router),)*
            /// One whose calls are logged; last, so that no other variant's place changes. It gets copies of what a call
            /// gets: a reference to that, even on a path never taken, would keep it out of registers (4 to 8 % of a run).
            Logged(Box<Logged<Self>>),
        }

        impl AnyRouter {
            /// See [`Router::on_arrival`]. A packet of another protocol counts as load; its header is not changed.
            #[inline(always)]
            pub fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
                match self { $(Self::$variant(r) => {
                    let own = |header| match header { &mut AnyHeader::$variant(ref mut h) => Some(h), _ => None };
                    Router::<$protocol>::on_arrival(r, link, &mut passing.with_header(own));
                })* Self::Logged(r) => {
                    let mut header = passing.header.as_deref().copied();
                    r.on_arrival(link, &mut passing.with_header(|_| header.as_mut()));
                    if let (Some(own), Some(header)) = (passing.header.as_deref_mut(), header) {
                        *own = header;
                    }
                } }
            }
            /// See [`Router::sees_departures`].
            #[must_use]
            pub fn sees_departures(&self) -> bool {
                match self { $(Self::$variant(r) => Router::<$protocol>::sees_departures(r),)* Self::Logged(r) => r.law().sees_departures() }
            }
            /// See [`Router::on_departure`].
            #[inline(always)]
            pub fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
                match self { $(Self::$variant(r) => {
                    let own = |header| match header { &mut AnyHeader::$variant(ref mut h) => Some(h), _ => None };
                    Router::<$protocol>::on_departure(r, link, &mut passing.with_header(own));
                })* Self::Logged(r) => {
                    let mut header = passing.header.as_deref().copied();
                    r.on_departure(link, &mut passing.with_header(|_| header.as_mut()));
                    if let (Some(own), Some(header)) = (passing.header.as_deref_mut(), header) {
                        *own = header;
                    }
                } }
            }
            /// See [`Router::poll_at`].
            #[must_use]
            pub fn poll_at(&self) -> Instant {
                match self { $(Self::$variant(r) => Router::<$protocol>::poll_at(r),)* Self::Logged(r) => r.law().poll_at() }
            }
            /// See [`Router::on_timer`].
            pub fn on_timer(&mut self, link: &LinkView, now: Instant) {
                match self { $(Self::$variant(r) => Router::<$protocol>::on_timer(r, link, now),)* Self::Logged(r) => r.on_timer(link, now) }
            }
            /// See [`Router::interval`].
            #[must_use]
            pub fn interval(&self) -> Option<Duration> {
                match self { $(Self::$variant(r) => Router::<$protocol>::interval(r),)* Self::Logged(r) => r.law().interval() }
            }
            /// See [`Router::observe`].
            pub fn observe(&self, probe: &mut dyn Probe) {
                match self { $(Self::$variant(r) => Router::<$protocol>::observe(r, probe),)* Self::Logged(r) => r.law().observe(probe) }
            }
            /// Replaces it by a new one, as after a reboot; a log of its calls goes on.
            pub fn restart(&mut self, link: &LinkView, law: Self) {
                match self { Self::Logged(r) => r.restart(link, law), _ => *self = law }
            }
            /// See [`Router::state`].
            pub fn state(&self, fields: &mut StateFields) {
                match self { $(Self::$variant(r) => Router::<$protocol>::state(r, fields),)* Self::Logged(_) => {} }
            }
        }

        /// Any protocol's receiver law.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyReceiver {
            $($variant(<$protocol as Protocol>::Receiver),)*
            /// One whose calls are logged; last, so that no other variant's place changes.
            Logged(Box<Logged<Self>>),
        }

        impl AnyReceiver {
            /// See [`Receiver::on_data`]. A header of another protocol is ignored.
            #[inline(always)]
            pub fn on_data(&mut self, received: &Received<&AnyHeader>) {
                match self { $(Self::$variant(r) => {
                    let header = match received.header {
                        AnyHeader::$variant(h) => *h,
                        AnyHeader::None if size_of::<<$protocol as Protocol>::Header>() == 0 => Default::default(),
                        _ => return,
                    };
                    Receiver::<$protocol>::on_data(r, &received.with_header(header));
                })* Self::Logged(r) => {
                    let header = *received.header;
                    r.on_data(&received.with_header(&header));
                } }
            }
            /// See [`Receiver::echo`].
            #[inline(always)]
            pub fn echo(&mut self, now: Instant) -> AnyEcho {
                match self { $(Self::$variant(r) => {
                    let echo = Receiver::<$protocol>::echo(r, now);
                    if size_of::<<$protocol as Protocol>::Echo>() == 0 { AnyEcho::None } else { AnyEcho::$variant(echo) }
                })* Self::Logged(r) => r.echo(now) }
            }
            /// See [`Receiver::state`].
            pub fn state(&self, fields: &mut StateFields) {
                match self { $(Self::$variant(r) => Receiver::<$protocol>::state(r, fields),)* Self::Logged(_) => {} }
            }
        }

        /// Any protocol's source law.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnySource {
            $($variant(<$protocol as Protocol>::Source),)*
            /// One whose calls are logged; last, so that no other variant's place changes.
            Logged(Box<Logged<Self>>),
        }

        impl AnySource {
            /// See [`Source::stamp`].
            #[inline(always)]
            pub fn stamp(&mut self, sending: &Sending) -> AnyHeader {
                match self { $(Self::$variant(s) => {
                    let header = Source::<$protocol>::stamp(s, sending);
                    if size_of::<<$protocol as Protocol>::Header>() == 0 { AnyHeader::None } else { AnyHeader::$variant(header) }
                })* Self::Logged(s) => s.stamp(&{ *sending }) }
            }
            /// See [`Source::on_ack`]; returns the [`Source::limit`] after it. An echo of another protocol is ignored.
            #[inline(always)]
            pub fn on_ack(&mut self, ack: &Ack<&AnyEcho>) -> Limit {
                match self { $(Self::$variant(s) => {
                    let echo = match ack.echo {
                        AnyEcho::$variant(e) => Some(*e),
                        AnyEcho::None if size_of::<<$protocol as Protocol>::Echo>() == 0 => Some(Default::default()),
                        _ => None,
                    };
                    if let Some(echo) = echo {
                        Source::<$protocol>::on_ack(s, &ack.with_echo(echo));
                    }
                    Source::<$protocol>::limit(s)
                })* Self::Logged(s) => {
                    let echo = *ack.echo;
                    s.on_ack(&ack.with_echo(&echo))
                } }
            }
            /// See [`Source::on_event`].
            pub fn on_event(&mut self, now: Instant, event: Event) {
                match self { $(Self::$variant(s) => Source::<$protocol>::on_event(s, now, event),)* Self::Logged(s) => s.on_event(now, event) }
            }
            /// See [`Source::limit`].
            #[must_use]
            #[inline(always)]
            pub fn limit(&self) -> Limit {
                match self { $(Self::$variant(s) => Source::<$protocol>::limit(s),)* Self::Logged(s) => s.limit() }
            }
            /// See [`Source::observe`].
            pub fn observe(&self, probe: &mut dyn Probe) {
                match self { $(Self::$variant(s) => Source::<$protocol>::observe(s, probe),)* Self::Logged(s) => s.observe(probe) }
            }
            /// See [`Source::state`].
            pub fn state(&self, fields: &mut StateFields) {
                match self { $(Self::$variant(s) => Source::<$protocol>::state(s, fields),)* Self::Logged(_) => {} }
            }
        }
    };
}

fn bytes_of<W: Wire>(wire: &W) -> Vec<u8> {
    let mut out = vec![0; W::BYTES];
    wire.encode(&mut out);
    out
}

impl ProtocolId {
    /// Returns the protocol of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.info().name == name)
    }
}

registry! {
    MaxNet: maxnet::MaxNet,
    MaxNet2006: maxnet2006::MaxNet2006,
    Xcp: xcp::Xcp,
    IXcp: ixcp::IXcp,
    PXcp: pxcp::PXcp,
    Aecp: aecp::Aecp,
    Rcp: rcp::Rcp,
    JetMax: jetmax::JetMax,
    Vcp: vcp::Vcp,
    Abc: abc::Abc,
    Reno: tcp::Tcp<tcp::reno::Reno>,
    NewReno: tcp::Tcp<tcp::newreno::NewReno>,
    Sack: tcp::Tcp<tcp::sack::Sack>,
    Cubic: tcp::Tcp<tcp::cubic::Cubic>,
    Bic: tcp::Tcp<tcp::bic::Bic>,
    HighSpeed: tcp::Tcp<tcp::highspeed::HighSpeed>,
    Scalable: tcp::Tcp<tcp::scalable::Scalable>,
    Htcp: tcp::Tcp<tcp::htcp::Htcp>,
    Westwood: tcp::Tcp<tcp::westwood::Westwood>,
    Vegas: tcp::Tcp<tcp::vegas::Vegas>,
    Fast: tcp::Tcp<tcp::fast::Fast>,
    Dctcp: tcp::Tcp<tcp::dctcp::Dctcp>,
    Bbr: tcp::bbr::Bbr,
    Scone: scone::Scone,
    Window: window::Window,
    Own: own::Own,
}
