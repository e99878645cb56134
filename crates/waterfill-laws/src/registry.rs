//! Registry of all protocols, with the dispatch and the lists generated from it.
//!
//! Dispatch on the packet path is by `match`: no allocation, no virtual call, always inlined. The command line prints
//! the lists.
//!
//! To add a protocol, add its file, its line in `protocols/mod.rs` and its line at the end of this file;
//! `make new-protocol` writes all three. A law that also runs in a kernel says so there: in its arithmetic each end is the
//! variant `Kernel`.

use crate::kernel::option::Carries;
use crate::kernel::{self, Arithmetic, KernelLaw, KernelProtocol};
use crate::params::{ParamError, ParamInfo, Params as _, Value};
use crate::protocol::{
    Ack, Connection, Event, Info, LinkView, Passing, Probe, Protocol, Received, Receiver, Router, SendLimit, Sending,
    Source, Wire,
};
#[allow(clippy::wildcard_imports, reason = "a new protocol needs its line in the list below and no import")]
use crate::protocols::*;
use crate::state::StateFields;
use crate::telemetry::{Hop, Stack};
use crate::units::{Duration, Instant};

/// Declares an enum for the header or the echo of any protocol.
macro_rules! any_wire {
    ($(#[$doc:meta])* $any:ident = $wire:ident, $way:ident, $bytes:ident, $decode:ident;
        $($variant:ident $({ $law:ident })? : $protocol:ty;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Default)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum $any {
            #[default]
            None,
            $($variant(<$protocol as Protocol>::$wire),)*
            /// Value of a law in kernel arithmetic.
            Kernel(KernelValue),
        }

        impl ProtocolId {
            /// Returns the size of the header or echo on the wire in real arithmetic, in bytes.
            #[must_use]
            pub const fn $bytes(self) -> usize {
                if self.info().host.notes {
                    return 0;
                }
                match self { $(Self::$variant $({ $law: _ })? => <<$protocol as Protocol>::$wire as Wire>::BYTES,)* }
            }
            /// Decodes this protocol's header or echo in real arithmetic. Returns `None` if the bytes are invalid.
            #[must_use]
            pub fn $decode(self, bytes: &[u8]) -> Option<$any> {
                match self { $(Self::$variant $({ $law: _ })? => {
                    let decoded = <<$protocol as Protocol>::$wire as Wire>::decode(bytes)?;
                    Some(if size_of_val(&decoded) == 0 { $any::None } else { $any::$variant(decoded) })
                })* }
            }
        }

        impl $any {
            /// Returns the protocol of the header or echo, or `None` for an empty header or echo.
            #[must_use]
            pub const fn protocol(&self) -> Option<ProtocolId> {
                match self {
                    Self::None => None,
                    Self::Kernel(v) => Some(v.protocol),
                    $(Self::$variant(_wire) => Some(ProtocolId::$variant $({ $law: _wire.$law })?),)*
                }
            }
            /// Returns the kernel value if its law belongs to protocol `id`, and otherwise `None`.
            fn value_of(&self, id: ProtocolId) -> Option<kernel::Value> {
                match self {
                    Self::Kernel(KernelValue { protocol, value }) if *protocol == id => Some(*value),
                    _ => None,
                }
            }
            /// Returns the number of bytes that the header or echo takes on the wire.
            #[must_use]
            pub fn wire_bytes(&self) -> usize {
                match self {
                    Self::None => 0,
                    Self::Kernel(v) => v.protocol.law().map_or(0, |law| Carries::$way.segment_bytes(law)),
                    $(Self::$variant(_) if <$protocol as Protocol>::INFO.host.notes => 0,
                      Self::$variant(wire) => wire.bytes(),)*
                }
            }
            /// Encodes the header or echo as on the wire.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    Self::None => Vec::new(),
                    $(Self::$variant(wire) => bytes_of(wire),)*
                    Self::Kernel(_) => {
                        let mut out = vec![0; self.wire_bytes()];
                        self.encode_into(&mut out);
                        out
                    }
                }
            }
            /// Encodes the header or echo into `out`, which must have at least [`Self::wire_bytes`] bytes.
            pub fn encode_into(&self, out: &mut [u8]) {
                match self {
                    Self::None => {}
                    $(Self::$variant(wire) => wire.encode(out),)*
                    Self::Kernel(v) => {
                        if let Some(law) = v.protocol.law() {
                            Carries::$way.write(law, &v.value, out);
                        }
                    }
                }
            }
            /// Decodes bytes of the same protocol and arithmetic as this value. Returns `None` if the bytes are
            /// invalid.
            #[must_use]
            pub fn decode_alike(&self, bytes: &[u8]) -> Option<Self> {
                match self {
                    Self::None => Some(Self::None),
                    Self::Kernel(KernelValue { protocol, .. }) => {
                        let value = Carries::$way.read(protocol.law()?, bytes)?;
                        Some(Self::Kernel(KernelValue { protocol: *protocol, value }))
                    }
                    $(Self::$variant(wire) => {
                        let decoded = wire.decode_alike(bytes)?;
                        Some(if size_of_val(&decoded) == 0 { Self::None } else { Self::$variant(decoded) })
                    })*
                }
            }
        }
    };
}

macro_rules! registry {
    ($($variant:ident $({ $law:ident })? : $protocol:ty $(, in $kernel:ident)?;)*) => {
        /// Identity of a protocol.
        #[expect(missing_docs, reason = "one variant per protocol; its Info describes it")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProtocolId { $($variant $({
            /// Place of the law in the run's table of laws that programs provide.
            $law: u8,
        })?,)* }

        impl ProtocolId {
            /// All protocols, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$variant $({ $law: 0 })?,)*];

            /// Returns the protocol's name, family, needs and signals.
            #[must_use]
            pub const fn info(self) -> &'static Info {
                match self { $(Self::$variant $({ $law: _ })? => &<$protocol as Protocol>::INFO,)* }
            }
            /// Returns the kernel form of the protocol's law, if there is one.
            #[must_use]
            pub const fn kernel(self) -> Option<&'static KernelProtocol> {
                match self {
                    $($(Self::$variant => Some($kernel::KernelProtocol::of::<$protocol>()),)?)*
                    #[allow(unreachable_patterns, reason = "where every law runs in a kernel")]
                    _ => None,
                }
            }
            /// Returns true if the protocol's packets carry any fields, on the wire or in
            /// [`Host::notes`](crate::protocol::Host::notes).
            #[must_use]
            pub const fn has_fields(self) -> bool {
                match self { $(Self::$variant $({ $law: _ })? => {
                    size_of::<<$protocol as Protocol>::Header>() + size_of::<<$protocol as Protocol>::Echo>() > 0
                })* }
            }
            /// Returns true if links write telemetry into the protocol's packets.
            #[must_use]
            pub const fn has_telemetry(self) -> bool {
                match self { $(Self::$variant $({ $law: _ })? => <<$protocol as Protocol>::Header as Wire>::TELEMETRY,)* }
            }
            /// Returns the list of the protocol's parameters with their defaults.
            #[must_use]
            pub fn params_list(self) -> Vec<ParamInfo> {
                match self { $(Self::$variant $({ $law: _ })? => <$protocol as Protocol>::Params::list(),)* }
            }
            /// Returns the protocol's default parameters.
            #[must_use]
            pub fn params(self) -> AnyParams {
                match self { $(Self::$variant $({ $law: _ })? => AnyParams::$variant(Default::default()),)* }
            }
        }

        /// Parameters of any protocol.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyParams { $($variant(<$protocol as Protocol>::Params),)* }

        impl AnyParams {
            /// Returns the protocol of these parameters.
            #[must_use]
            pub const fn protocol(&self) -> ProtocolId {
                match self { $(Self::$variant(_params) => ProtocolId::$variant $({ $law: _params.$law })?,)* }
            }
            /// Returns the protocol's description with these parameters.
            #[must_use]
            pub fn info(&self) -> Info {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::info(p),)* }
            }
            /// Returns the size of the header and of the echo in real arithmetic, in bytes.
            #[must_use]
            fn real_bytes(&self) -> (usize, usize) {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::wire_bytes(p),)* }
            }
            /// Returns the arithmetic in which the law computes.
            #[must_use]
            pub fn arithmetic(&self) -> Arithmetic {
                match self {
                    $($(Self::$variant(p) => <$protocol as $kernel::RunsInKernel>::arithmetic(p),)?)*
                    #[allow(unreachable_patterns, reason = "where every law runs in a kernel")]
                    _ => Arithmetic::Real,
                }
            }
            /// Sets a parameter by name.
            ///
            /// # Errors
            /// The name is unknown, or the value has the wrong type.
            pub fn set(&mut self, name: &str, value: &Value) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => p.set(name, value),)* }
            }
            /// Checks the ranges and combinations of all parameters.
            ///
            /// # Errors
            /// Names the first parameter that is out of range.
            pub fn validate(&self) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => p.validate(),)* }
            }
            /// Returns the values of all parameters with their names.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self { $(Self::$variant(p) => p.values(),)* }
            }
            /// Returns the members of the law's `struct law_params` with their numbers. The list is empty for a law
            /// without C code.
            #[must_use]
            pub fn kernel_numbers(&self) -> Vec<(&'static str, u64)> {
                match self { $(Self::$variant(p) => p.kernel_numbers(),)* }
            }
            /// Returns the target utilization of a link, in (0, 1].
            #[must_use]
            pub fn target(&self) -> f64 {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::target(p),)* }
            }
            /// Returns true if packets are paced unless the scenario says otherwise.
            #[must_use]
            pub fn paced(&self) -> bool {
                match self.host() {
                    Some(law) => law.paced(),
                    None => match self { $(Self::$variant(p) => <$protocol as Protocol>::paced(p),)* },
                }
            }
            /// Checks that a law with these parameters can control this link.
            ///
            /// # Errors
            /// Names the first parameter that cannot, and what was expected.
            pub fn check_link(&self, link: &LinkView) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::check_link(p, link),)* }
            }
            /// Creates the router law of one link direction.
            #[must_use]
            pub fn router(&self, link: &LinkView) -> AnyRouter {
                match self { $(Self::$variant(p) => {
                    $(if self.arithmetic() != Arithmetic::Real {
                        return AnyRouter::Kernel(ProtocolId::$variant, $kernel::Router::new::<$protocol>(p, link));
                    })?
                    AnyRouter::$variant(Router::<$protocol>::new(p, link))
                })* }
            }
            /// Creates the receiver law of one connection.
            #[must_use]
            pub fn receiver(&self) -> AnyReceiver {
                match self { $(Self::$variant(p) => {
                    $(if self.arithmetic() != Arithmetic::Real {
                        return AnyReceiver::Kernel(ProtocolId::$variant, $kernel::Receiver::new::<$protocol>(p));
                    })?
                    AnyReceiver::$variant(Receiver::<$protocol>::new(p))
                })* }
            }
            /// Creates the source law of one connection.
            #[must_use]
            pub fn source(&self, connection: &Connection) -> AnySource {
                match self { $(Self::$variant(p) => {
                    $(if self.arithmetic() != Arithmetic::Real {
                        return AnySource::Kernel(ProtocolId::$variant, $kernel::Source::new::<$protocol>(p, connection));
                    })?
                    AnySource::$variant(Source::<$protocol>::new(p, connection))
                })* }
            }
        }

        any_wire! {
            /// Header of any protocol. `None` also represents the header of a protocol without header fields.
            AnyHeader = Header, Forward, header_bytes, decode_header; $($variant $({ $law })?: $protocol;)*
        }
        any_wire! {
            /// Echo of any protocol. `None` also represents the echo of a protocol without echo fields.
            AnyEcho = Echo, Echo, echo_bytes, decode_echo; $($variant $({ $law })?: $protocol;)*
        }

        impl AnyHeader {
            /// Returns true if a field of the header is a sum over packets: [`Wire::EXTENSIVE`].
            #[must_use]
            pub const fn is_extensive(&self) -> bool {
                match self {
                    Self::None | Self::Kernel(_) => false,
                    $(Self::$variant(_) => <<$protocol as Protocol>::Header as Wire>::EXTENSIVE,)*
                }
            }
            /// Removes and returns the record that `link` has written: [`Wire::take_hop`].
            pub fn take_hop(&mut self, link: &LinkView) -> Option<Hop> {
                match self {
                    Self::None | Self::Kernel(_) => None,
                    $(Self::$variant(h) => h.take_hop(link),)*
                }
            }
            /// Returns the header of a part of a parcel: [`Wire::part`].
            #[must_use]
            pub fn part(&self, share: f64) -> Self {
                match self {
                    Self::None | Self::Kernel(_) => *self,
                    $(Self::$variant(h) => Self::$variant(h.part(share)),)*
                }
            }
            /// Returns the combined header of two parcels: [`Wire::joined`]. For two different protocols, this is the
            /// next parcel's header.
            #[must_use]
            pub fn joined(&self, next: &Self) -> Self {
                match (self, next) { $((Self::$variant(h), Self::$variant(n)) => Self::$variant(h.joined(n)),)* _ => *next }
            }
        }

        /// Router law of any protocol.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyRouter {
            $($variant(<$protocol as Protocol>::Router),)*
            /// Router law in kernel arithmetic.
            ///
            /// This variant and the next receive copies of a call's arguments. A reference to an argument, even on a
            /// path never taken, would keep it out of registers (4 to 8 % of a run).
            Kernel(ProtocolId, kernel::Router),
            /// Router law whose calls are logged.
            Logged(Box<dyn LoggedRouter>),
        }

        impl AnyRouter {
            /// Calls the law's [`Router::on_arrival`]. A packet of another protocol counts as load, and its header does
            /// not change.
            #[inline(always)]
            pub fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
                match self { $(Self::$variant(r) => {
                    let own = |header| match header { &mut AnyHeader::$variant(ref mut h) => Some(h), _ => None };
                    Router::<$protocol>::on_arrival(r, link, &mut passing.with_header(own));
                })* Self::Kernel(id, r) => {
                    let mut value = passing.header.as_deref().and_then(|header| header.value_of(*id));
                    r.on_arrival(&mut passing.with_header(|_| value.as_mut()));
                    if let (Some(own), Some(value)) = (passing.header.as_deref_mut(), value) {
                        *own = AnyHeader::Kernel(KernelValue { protocol: *id, value });
                    }
                } Self::Logged(r) => {
                    let mut header = passing.header.as_deref().copied();
                    r.on_arrival(link, &mut passing.with_header(|_| header.as_mut()));
                    if let (Some(own), Some(header)) = (passing.header.as_deref_mut(), header) {
                        *own = header;
                    }
                } }
            }
            /// Calls the law's [`Router::sees_departures`].
            #[must_use]
            pub fn sees_departures(&self) -> bool {
                match self { $(Self::$variant(r) => Router::<$protocol>::sees_departures(r),)* Self::Kernel(_, _) => false, Self::Logged(r) => r.law().sees_departures() }
            }
            /// Calls the law's [`Router::on_departure`].
            #[inline(always)]
            pub fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
                match self { $(Self::$variant(r) => {
                    let own = |header| match header { &mut AnyHeader::$variant(ref mut h) => Some(h), _ => None };
                    Router::<$protocol>::on_departure(r, link, &mut passing.with_header(own));
                })* Self::Kernel(..) => {} Self::Logged(r) => {
                    let mut header = passing.header.as_deref().copied();
                    r.on_departure(link, &mut passing.with_header(|_| header.as_mut()));
                    if let (Some(own), Some(header)) = (passing.header.as_deref_mut(), header) {
                        *own = header;
                    }
                } }
            }
            /// Calls the law's [`Router::poll_at`].
            #[must_use]
            pub fn poll_at(&self) -> Instant {
                match self { $(Self::$variant(r) => Router::<$protocol>::poll_at(r),)* Self::Kernel(_, r) => r.poll_at(), Self::Logged(r) => r.law().poll_at() }
            }
            /// Calls the law's [`Router::on_timer`].
            pub fn on_timer(&mut self, link: &LinkView, now: Instant) {
                match self { $(Self::$variant(r) => Router::<$protocol>::on_timer(r, link, now),)* Self::Kernel(_, r) => r.on_timer(link, now), Self::Logged(r) => r.on_timer(link, now) }
            }
            /// Calls the law's [`Router::interval`].
            #[must_use]
            pub fn interval(&self) -> Option<Duration> {
                match self { $(Self::$variant(r) => Router::<$protocol>::interval(r),)* Self::Kernel(_, r) => r.interval(), Self::Logged(r) => r.law().interval() }
            }
            /// Calls the law's [`Router::observe`].
            pub fn observe(&self, probe: &mut dyn Probe) {
                match self { $(Self::$variant(r) => Router::<$protocol>::observe(r, probe),)* Self::Kernel(_, r) => r.observe(probe), Self::Logged(r) => r.law().observe(probe) }
            }
            /// Replaces the law by a new law, as after a reboot. A log of the law's calls continues.
            pub fn restart(&mut self, link: &LinkView, law: Self) {
                match self { Self::Logged(r) => r.restart(link, law), _ => *self = law }
            }
            /// Calls the law's [`Router::state`].
            pub fn state(&self, fields: &mut StateFields) {
                match self { $(Self::$variant(r) => Router::<$protocol>::state(r, fields),)* Self::Kernel(_, r) => r.state(fields), Self::Logged(_) => {} }
            }
        }

        /// Receiver law of any protocol.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnyReceiver {
            $($variant(<$protocol as Protocol>::Receiver),)*
            /// Receiver law in kernel arithmetic.
            Kernel(ProtocolId, kernel::Receiver),
            /// Receiver law whose calls are logged.
            Logged(Box<dyn LoggedReceiver>),
        }

        impl AnyReceiver {
            /// Calls the law's [`Receiver::on_data`]. A header of another protocol is ignored.
            #[inline(always)]
            pub fn on_data(&mut self, received: &Received<&AnyHeader>) {
                match self { $(Self::$variant(r) => {
                    let header = match received.header {
                        AnyHeader::$variant(h) => *h,
                        AnyHeader::None if size_of::<<$protocol as Protocol>::Header>() == 0 => Default::default(),
                        _ => return,
                    };
                    Receiver::<$protocol>::on_data(r, &received.with_header(header));
                })* Self::Kernel(id, r) => {
                    if let Some(value) = received.header.value_of(*id) {
                        r.on_data(&received.with_header(value));
                    }
                } Self::Logged(r) => {
                    let header = *received.header;
                    r.on_data(&received.with_header(&header));
                } }
            }
            /// Calls the law's [`Receiver::on_mark`].
            #[inline]
            pub fn on_mark(&mut self, now: Instant) {
                match self { $(Self::$variant(r) => Receiver::<$protocol>::on_mark(r, now),)* Self::Kernel(..) => {} Self::Logged(r) => r.on_mark(now) }
            }
            /// Calls the law's [`Receiver::echo`].
            #[inline(always)]
            pub fn echo(&mut self, now: Instant) -> AnyEcho {
                match self { $(Self::$variant(r) => {
                    let echo = Receiver::<$protocol>::echo(r, now);
                    if size_of::<<$protocol as Protocol>::Echo>() == 0 { AnyEcho::None } else { AnyEcho::$variant(echo) }
                })*
                    Self::Kernel(id, r) => AnyEcho::Kernel(KernelValue { protocol: *id, value: r.echo() }),
                    Self::Logged(r) => r.echo(now),
                }
            }
            /// Calls the law's [`Receiver::state`].
            pub fn state(&self, fields: &mut StateFields) {
                match self { $(Self::$variant(r) => Receiver::<$protocol>::state(r, fields),)* Self::Kernel(_, r) => r.state(fields), Self::Logged(_) => {} }
            }
        }

        /// Source law of any protocol.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant per protocol")]
        pub enum AnySource {
            $($variant(<$protocol as Protocol>::Source),)*
            /// Source law in kernel arithmetic.
            Kernel(ProtocolId, kernel::Source),
            /// Source law whose calls are logged.
            Logged(Box<dyn LoggedSource>),
        }

        impl AnySource {
            /// Calls the law's [`Source::stamp`].
            #[inline(always)]
            pub fn stamp(&mut self, sending: &Sending) -> AnyHeader {
                match self { $(Self::$variant(s) => {
                    let header = Source::<$protocol>::stamp(s, sending);
                    if size_of::<<$protocol as Protocol>::Header>() == 0 { AnyHeader::None } else { AnyHeader::$variant(header) }
                })*
                    Self::Kernel(id, s) => AnyHeader::Kernel(KernelValue { protocol: *id, value: s.stamp(&{ *sending }) }),
                    Self::Logged(s) => s.stamp(&{ *sending }),
                }
            }
            /// Calls the law's [`Source::on_ack`] and returns its [`Source::limit`]. An echo of another protocol is
            /// ignored.
            #[inline(always)]
            pub fn on_ack(&mut self, ack: &Ack<&AnyEcho>) -> SendLimit {
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
                })* Self::Kernel(id, s) => {
                    if let Some(value) = ack.echo.value_of(*id) {
                        s.on_ack(&ack.with_echo(value));
                    }
                    s.limit()
                } Self::Logged(s) => {
                    let echo = *ack.echo;
                    s.on_ack(&ack.with_echo(&echo))
                } }
            }
            /// Calls the law's [`Source::on_stack`].
            pub fn on_stack(&mut self, stack: &Stack) {
                match self { $(Self::$variant(s) => Source::<$protocol>::on_stack(s, stack),)* Self::Kernel(..) => {} Self::Logged(s) => s.on_stack(stack) }
            }
            /// Calls the law's [`Source::on_lost`].
            pub fn on_lost(&mut self, now: Instant, sent: Instant) {
                match self { $(Self::$variant(s) => Source::<$protocol>::on_lost(s, now, sent),)* Self::Kernel(..) => {} Self::Logged(s) => s.on_lost(now, sent) }
            }
            /// Calls the law's [`Source::on_event`].
            pub fn on_event(&mut self, now: Instant, event: Event) {
                match self { $(Self::$variant(s) => Source::<$protocol>::on_event(s, now, event),)* Self::Kernel(_, s) => s.on_event(event), Self::Logged(s) => s.on_event(now, event) }
            }
            /// Calls the law's [`Source::advance`].
            #[inline(always)]
            pub fn advance(&mut self, now: Instant) {
                match self { $(Self::$variant(s) => Source::<$protocol>::advance(s, now),)* Self::Kernel(..) => {} Self::Logged(s) => s.advance(now) }
            }
            /// Calls the law's [`Source::limit`].
            #[must_use]
            #[inline(always)]
            pub fn limit(&self) -> SendLimit {
                match self { $(Self::$variant(s) => Source::<$protocol>::limit(s),)* Self::Kernel(_, s) => s.limit(), Self::Logged(s) => s.law().limit() }
            }
            /// Calls the law's [`Source::observe`].
            pub fn observe(&self, probe: &mut dyn Probe) {
                match self { $(Self::$variant(s) => Source::<$protocol>::observe(s, probe),)* Self::Kernel(_, s) => s.observe(probe), Self::Logged(s) => s.law().observe(probe) }
            }
            /// Calls the law's [`Source::state`].
            pub fn state(&self, fields: &mut StateFields) {
                match self { $(Self::$variant(s) => Source::<$protocol>::state(s, fields),)* Self::Kernel(_, s) => s.state(fields), Self::Logged(_) => {} }
            }
        }
    };
}

fn bytes_of<W: Wire>(wire: &W) -> Vec<u8> {
    let mut out = vec![0; wire.bytes()];
    wire.encode(&mut out);
    out
}

/// Value of a law in kernel arithmetic, as the TCP option of a kernel's host carries it ([`kernel::option`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelValue {
    /// Protocol of the law.
    pub protocol: ProtocolId,
    /// Bytes of the value, padded with zeros.
    pub value: kernel::Value,
}

impl AnyParams {
    /// Returns the law in kernel arithmetic; `None` in real numbers.
    fn law(&self) -> Option<&'static KernelLaw> {
        if self.arithmetic() == Arithmetic::Real { None } else { self.protocol().law() }
    }
    /// Returns the law in kernel-host arithmetic; `None` in any other arithmetic.
    fn host(&self) -> Option<&'static KernelLaw> {
        self.law().filter(|_| self.arithmetic() == Arithmetic::KernelHost)
    }
    /// Returns the header bytes of a data packet.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        self.law().map_or_else(|| self.real_bytes().0, |law| Carries::Forward.segment_bytes(law))
    }
    /// Returns the header bytes of an acknowledgement.
    #[must_use]
    pub fn echo_bytes(&self) -> usize {
        self.law().map_or_else(|| self.real_bytes().1, |law| Carries::Echo.segment_bytes(law))
    }
    /// Returns true if a run needs packets, because the law counts them or its host paces them.
    #[must_use]
    pub fn needs_packets(&self) -> bool {
        let in_kernel = || self.protocol().kernel().is_some_and(|form| form.needs_packets(self.arithmetic()));
        self.protocol().info().needs_packets || in_kernel()
    }
}

/// Interface of a router law whose calls are logged.
pub trait LoggedRouter: std::fmt::Debug + Send + Sync {
    /// Calls the law's [`Router::on_arrival`] and logs the call.
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>);
    /// Calls the law's [`Router::on_departure`] and logs the call.
    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>);
    /// Calls the law's [`Router::on_timer`] and logs the call.
    fn on_timer(&mut self, link: &LinkView, now: Instant);
    /// Replaces the law by a new law and logs the new law's first state.
    fn restart(&mut self, link: &LinkView, law: AnyRouter);
    /// Returns the logged law.
    fn law(&self) -> &AnyRouter;
    /// Copies the law with its state. Both copies write to the same log.
    fn boxed(&self) -> Box<dyn LoggedRouter>;
}

/// Interface of a receiver law whose calls are logged.
pub trait LoggedReceiver: std::fmt::Debug + Send + Sync {
    /// Calls the law's [`Receiver::on_data`] and logs the call.
    fn on_data(&mut self, received: &Received<&AnyHeader>);
    /// Calls the law's [`Receiver::on_mark`], which the next call's row shows in the state before it.
    fn on_mark(&mut self, now: Instant);
    /// Calls the law's [`Receiver::echo`] and logs the call.
    fn echo(&mut self, now: Instant) -> AnyEcho;
    /// Copies the law with its state. Both copies write to the same log.
    fn boxed(&self) -> Box<dyn LoggedReceiver>;
}

/// Interface of a source law whose calls are logged.
pub trait LoggedSource: std::fmt::Debug + Send + Sync {
    /// Calls the law's [`Source::stamp`] and logs the call.
    fn stamp(&mut self, sending: &Sending) -> AnyHeader;
    /// Calls the law's [`Source::on_stack`], which the next call's row shows in the state before it.
    fn on_stack(&mut self, stack: &Stack);
    /// Calls the law's [`AnySource::on_ack`] and logs the call.
    fn on_ack(&mut self, ack: &Ack<&AnyEcho>) -> SendLimit;
    /// Calls the law's [`Source::on_lost`] and logs the call.
    fn on_lost(&mut self, now: Instant, sent: Instant);
    /// Calls the law's [`Source::on_event`] and logs the call.
    fn on_event(&mut self, now: Instant, event: Event);
    /// Calls the law's [`Source::advance`], which the next call's row shows in the state before it.
    fn advance(&mut self, now: Instant);
    /// Returns the logged law.
    fn law(&self) -> &AnySource;
    /// Copies the law with its state. Both copies write to the same log.
    fn boxed(&self) -> Box<dyn LoggedSource>;
}

impl Clone for Box<dyn LoggedRouter> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl Clone for Box<dyn LoggedReceiver> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl Clone for Box<dyn LoggedSource> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl ProtocolId {
    /// Returns the C functions of the protocol's law, if it has a kernel form.
    #[must_use]
    pub fn law(self) -> Option<&'static KernelLaw> {
        self.kernel().map(KernelProtocol::law)
    }
    /// Returns the protocol with this name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.info().name == name)
    }
}

/// Returns all laws with a kernel form, sorted by name.
#[must_use]
pub fn kernel_protocols() -> Vec<(&'static str, &'static KernelProtocol)> {
    let mut forms: Vec<_> =
        ProtocolId::ALL.iter().filter_map(|id| id.kernel().map(|form| (id.info().name, form))).collect();
    forms.sort_by_key(|&(name, _)| name);
    forms
}

// A packet of a run in real numbers is no longer for the kernel's values.
const _: () = assert!(size_of::<AnyHeader>() == 24 && size_of::<AnyEcho>() == 24);

registry! {
    MaxNet: maxnet::MaxNet, in kernel;
    MaxNet2006: maxnet2006::MaxNet2006, in kernel;
    Xcp: xcp::Xcp, in kernel;
    IXcp: ixcp::IXcp, in kernel;
    PXcp: pxcp::PXcp, in kernel;
    Aecp: aecp::Aecp, in kernel;
    Rcp: rcp::Rcp, in kernel;
    JetMax: jetmax::JetMax, in kernel;
    Vcp: vcp::Vcp, in kernel;
    Abc: abc::Abc;
    Mkc: mkc::Mkc;
    AlphaRcp: alpha_rcp::AlphaRcp;
    Reno: tcp::Tcp<tcp::reno::Reno>;
    NewReno: tcp::Tcp<tcp::newreno::NewReno>;
    Sack: tcp::Tcp<tcp::sack::Sack>;
    Cubic: tcp::Tcp<tcp::cubic::Cubic>;
    Bic: tcp::Tcp<tcp::bic::Bic>;
    HighSpeed: tcp::Tcp<tcp::highspeed::HighSpeed>;
    Scalable: tcp::Tcp<tcp::scalable::Scalable>;
    Htcp: tcp::Tcp<tcp::htcp::Htcp>;
    Westwood: tcp::Tcp<tcp::westwood::Westwood>;
    Vegas: tcp::Tcp<tcp::vegas::Vegas>;
    Fast: tcp::Tcp<tcp::fast::Fast>;
    Dctcp: tcp::Tcp<tcp::dctcp::Dctcp>;
    Prague: tcp::Tcp<tcp::prague::Prague>;
    Bbr: tcp::bbr::Bbr;
    Bbr3: tcp::bbr3::Bbr3;
    Copa: tcp::copa::Copa;
    Hpcc: hpcc::Hpcc;
    PowerTcp: powertcp::PowerTcp;
    Poseidon: poseidon::Poseidon;
    Rocc: rocc::Rocc;
    Sperc: sperc::Sperc;
    Dcqcn: dcqcn::Dcqcn;
    Swift: swift::Swift;
    ThetaPowerTcp: theta_powertcp::ThetaPowerTcp;
    Scone: scone::Scone;
    Window: window::Window;
    Own { law }: own::Own;
}
