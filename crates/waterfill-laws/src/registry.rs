//! The one list of protocols, and what follows from it: dispatch by `match` on the packet path
//! (no allocation, no virtual call; always inlined), and the lists that the command line prints.
//!
//! Adding a protocol is adding its file and one line at the end of this one.

use crate::params::{ParamError, ParamInfo, Params as _, Value};
use crate::protocol::{
    Ack, Connection, Event, Info, Limit, LinkView, PacketKind, Passing, Probe, Protocol, Received, Receiver, Router,
    Sending, Source, Wire,
};
use crate::units::{Duration, Instant, Volume};

/// A packet that passes a router which may or may not speak its protocol.
#[derive(Debug)]
pub struct AnyPassing<'a> {
    /// Now.
    pub now: Instant,
    /// Its size.
    pub volume: Volume,
    /// How many packets it is.
    pub packets: f64,
    /// What it is.
    pub kind: PacketKind,
    /// Its header, whatever the protocol; none on the way back.
    pub header: Option<&'a mut AnyHeader>,
}

/// An acknowledgement at its source, less the echo.
#[derive(Clone, Copy, Debug)]
pub struct AckFacts {
    /// Now.
    pub now: Instant,
    /// SYN: the handshake's answer.
    pub kind: PacketKind,
    /// Newly acknowledged data.
    pub acked: Volume,
    /// How much of `acked` was marked.
    pub marked: Volume,
    /// This acknowledgement's round trip.
    pub rtt: Option<Duration>,
    /// The round trip smoothed.
    pub smoothed_rtt: Duration,
    /// The smallest round trip of the connection.
    pub base_rtt: Duration,
    /// Sent and neither acknowledged nor known lost.
    pub in_flight: Volume,
    /// In recovery from a loss or coming down after a mark.
    pub recovering: bool,
    /// The window held the sender back.
    pub window_limited: bool,
}

macro_rules! registry {
    ($($(#[$meta:meta])* $variant:ident : $protocol:ty,)*) => {
        /// Which protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProtocolId { $($(#[$meta])* $variant,)* }

        impl ProtocolId {
            /// All protocols, in the registry's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Names and costs.
            #[must_use]
            pub const fn info(self) -> &'static Info {
                match self { $(Self::$variant => &<$protocol as Protocol>::INFO,)* }
            }
            /// Bytes of header that a data packet carries on the wire.
            #[must_use]
            pub const fn header_bytes(self) -> usize {
                if self.info().host.notes {
                    return 0;
                }
                match self { $(Self::$variant => <<$protocol as Protocol>::Header as Wire>::BYTES,)* }
            }
            /// Bytes of header that an acknowledgement carries.
            #[must_use]
            pub const fn echo_bytes(self) -> usize {
                if self.info().host.notes {
                    return 0;
                }
                match self { $(Self::$variant => <<$protocol as Protocol>::Echo as Wire>::BYTES,)* }
            }
            /// The parameter list with defaults.
            #[must_use]
            pub fn params_list(self) -> Vec<ParamInfo> {
                match self { $(Self::$variant => <$protocol as Protocol>::Params::list(),)* }
            }
            /// Default parameters.
            #[must_use]
            pub fn params(self) -> AnyParams {
                match self { $(Self::$variant => AnyParams::$variant(Default::default()),)* }
            }
            /// Reads a header of this protocol; `None` if the bytes are none.
            #[must_use]
            pub fn decode_header(self, bytes: &[u8]) -> Option<AnyHeader> {
                match self { $(Self::$variant => <<$protocol as Protocol>::Header as Wire>::decode(bytes).map(AnyHeader::$variant),)* }
            }
            /// Reads an echo of this protocol; `None` if the bytes are none.
            #[must_use]
            pub fn decode_echo(self, bytes: &[u8]) -> Option<AnyEcho> {
                match self { $(Self::$variant => <<$protocol as Protocol>::Echo as Wire>::decode(bytes).map(AnyEcho::$variant),)* }
            }
        }

        /// Any protocol's parameters.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "one variant a protocol")]
        pub enum AnyParams { $($variant(<$protocol as Protocol>::Params),)* }

        impl AnyParams {
            /// Sets one by name.
            ///
            /// # Errors
            /// The name is unknown or the value is of another kind.
            pub fn set(&mut self, name: &str, value: &Value) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => p.set(name, value),)* }
            }
            /// Checks ranges and combinations.
            ///
            /// # Errors
            /// The first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => p.validate(),)* }
            }
            /// All values by name.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self { $(Self::$variant(p) => p.values(),)* }
            }
            /// Share of a link's capacity aimed at.
            #[must_use]
            pub fn target(&self) -> f64 {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::target(p),)* }
            }
            /// Checks that these parameters can control a link like this one.
            ///
            /// # Errors
            /// The parameter that cannot, and what it would have to be.
            pub fn check_link(&self, link: &LinkView) -> Result<(), ParamError> {
                match self { $(Self::$variant(p) => <$protocol as Protocol>::check_link(p, link),)* }
            }
            /// A router for one link direction.
            #[must_use]
            pub fn router(&self, link: &LinkView) -> AnyRouter {
                match self { $(Self::$variant(p) => AnyRouter::$variant(<$protocol as Protocol>::router(p, link)),)* }
            }
            /// The receiving end of a connection.
            #[must_use]
            pub fn receiver(&self) -> AnyReceiver {
                match self { $(Self::$variant(p) => AnyReceiver::$variant(<$protocol as Protocol>::receiver(p)),)* }
            }
            /// The sending end of a connection.
            #[must_use]
            pub fn source(&self, connection: &Connection) -> AnySource {
                match self { $(Self::$variant(p) => AnySource::$variant(<$protocol as Protocol>::source(p, connection)),)* }
            }
        }

        /// Any protocol's header, or none.
        #[derive(Clone, Copy, Debug, PartialEq, Default)]
        #[expect(missing_docs, reason = "one variant a protocol")]
        pub enum AnyHeader { #[default] None, $($variant(<$protocol as Protocol>::Header),)* }

        impl AnyHeader {
            /// Whether some field is a sum over packets.
            #[must_use]
            pub const fn is_extensive(&self) -> bool {
                match self { Self::None => false, $(Self::$variant(_) => <<$protocol as Protocol>::Header as Wire>::EXTENSIVE,)* }
            }
            /// What a part of a parcel carries.
            #[must_use]
            pub fn part(&self, share: f64) -> Self {
                match self { Self::None => Self::None, $(Self::$variant(h) => Self::$variant(h.part(share)),)* }
            }
            /// What this parcel and the next one carry together; of two protocols, the next one's.
            #[must_use]
            pub fn joined(&self, next: &Self) -> Self {
                match (self, next) { $((Self::$variant(h), Self::$variant(n)) => Self::$variant(h.joined(n)),)* _ => *next }
            }
            /// Whose it is.
            #[must_use]
            pub const fn protocol(&self) -> Option<ProtocolId> {
                match self { Self::None => None, $(Self::$variant(_) => Some(ProtocolId::$variant),)* }
            }
            /// Its bytes on the wire.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self { Self::None => Vec::new(), $(Self::$variant(h) => bytes_of(h),)* }
            }
        }

        /// Any protocol's echo, or none.
        #[derive(Clone, Copy, Debug, PartialEq, Default)]
        #[expect(missing_docs, reason = "one variant a protocol")]
        pub enum AnyEcho { #[default] None, $($variant(<$protocol as Protocol>::Echo),)* }

        impl AnyEcho {
            /// Whose it is.
            #[must_use]
            pub const fn protocol(&self) -> Option<ProtocolId> {
                match self { Self::None => None, $(Self::$variant(_) => Some(ProtocolId::$variant),)* }
            }
            /// Its bytes on the wire.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self { Self::None => Vec::new(), $(Self::$variant(e) => bytes_of(e),)* }
            }
        }

        /// Any protocol's router law.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant a protocol")]
        pub enum AnyRouter { $($variant(<$protocol as Protocol>::Router),)* }

        impl AnyRouter {
            /// Before the queue. A packet of another protocol is load, and its header is not touched.
            #[inline(always)]
            pub fn on_arrival(&mut self, link: &LinkView, passing: &mut AnyPassing<'_>) {
                match self { $(Self::$variant(r) => {
                    let header = match passing.header.as_deref_mut() { Some(AnyHeader::$variant(h)) => Some(h), _ => None };
                    r.on_arrival(link, &mut Passing {
                        now: passing.now, volume: passing.volume, packets: passing.packets, kind: passing.kind, header });
                })* }
            }
            /// Whether the law wants to see departures.
            #[must_use]
            pub const fn sees_departures(&self) -> bool {
                match self { $(Self::$variant(_) =>
                    <<$protocol as Protocol>::Router as Router<<$protocol as Protocol>::Header>>::DEPARTURES,)* }
            }
            /// When it leaves the queue for the wire.
            pub fn on_departure(&mut self, link: &LinkView, passing: &mut AnyPassing<'_>) {
                match self { $(Self::$variant(r) => {
                    let header = match passing.header.as_deref_mut() { Some(AnyHeader::$variant(h)) => Some(h), _ => None };
                    r.on_departure(link, &mut Passing {
                        now: passing.now, volume: passing.volume, packets: passing.packets, kind: passing.kind, header });
                })* }
            }
            /// When the law next wants its timer.
            #[must_use]
            pub fn poll_at(&self) -> Instant {
                match self { $(Self::$variant(r) => Router::<<$protocol as Protocol>::Header>::poll_at(r),)* }
            }
            /// The law's timer.
            pub fn on_timer(&mut self, link: &LinkView, now: Instant) {
                match self { $(Self::$variant(r) => Router::<<$protocol as Protocol>::Header>::on_timer(r, link, now),)* }
            }
            /// Shows its state.
            pub fn observe(&self, probe: &mut dyn Probe) {
                match self { $(Self::$variant(r) => Router::<<$protocol as Protocol>::Header>::observe(r, probe),)* }
            }
        }

        /// Any protocol's receiver law.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant a protocol")]
        pub enum AnyReceiver { $($variant(<$protocol as Protocol>::Receiver),)* }

        impl AnyReceiver {
            /// A packet arrived. A header of another protocol is ignored.
            #[inline(always)]
            pub fn on_data(&mut self, now: Instant, kind: PacketKind, header: &AnyHeader, rtt: Option<Duration>) {
                match (self, header) {
                    $((Self::$variant(r), AnyHeader::$variant(h)) => r.on_data(&Received { now, kind, header: *h, rtt }),)*
                    _ => {}
                }
            }
            /// What the next acknowledgement carries.
            #[inline(always)]
            pub fn echo(&mut self, now: Instant) -> AnyEcho {
                match self { $(Self::$variant(r) => AnyEcho::$variant(r.echo(now)),)* }
            }
        }

        /// Any protocol's source law.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "one variant a protocol")]
        pub enum AnySource { $($variant(<$protocol as Protocol>::Source),)* }

        impl AnySource {
            /// Fills in a packet's header.
            #[inline(always)]
            pub fn stamp(&mut self, sending: &Sending) -> AnyHeader {
                match self { $(Self::$variant(s) => AnyHeader::$variant(s.stamp(sending)),)* }
            }
            /// An acknowledgement arrived. An echo of another protocol is ignored.
            #[inline(always)]
            pub fn on_ack(&mut self, facts: &AckFacts, echo: &AnyEcho) {
                match (self, echo) {
                    $((Self::$variant(s), AnyEcho::$variant(e)) => s.on_ack(&Ack {
                        now: facts.now, echo: *e, kind: facts.kind, acked: facts.acked, marked: facts.marked,
                        rtt: facts.rtt, smoothed_rtt: facts.smoothed_rtt, base_rtt: facts.base_rtt,
                        in_flight: facts.in_flight, recovering: facts.recovering,
                        window_limited: facts.window_limited }),)*
                    _ => {}
                }
            }
            /// The host found a loss, or its end.
            pub fn on_event(&mut self, now: Instant, event: Event) {
                match self { $(Self::$variant(s) => s.on_event(now, event),)* }
            }
            /// What may be sent now.
            #[must_use]
            #[inline(always)]
            pub fn limit(&self) -> Limit {
                match self { $(Self::$variant(s) => s.limit(),)* }
            }
            /// Shows its state.
            pub fn observe(&self, probe: &mut dyn Probe) {
                match self { $(Self::$variant(s) => s.observe(probe),)* }
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
    /// By its name in scenarios.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.info().name == name)
    }
}

registry! {
    /// MaxNet of the 2007 paper.
    MaxNet: crate::protocols::maxnet::MaxNet,
    /// TCP MaxNet of the 2006 thesis.
    MaxNet2006: crate::protocols::maxnet2006::MaxNet2006,
    /// XCP of Katabi, Handley and Rohrs.
    Xcp: crate::protocols::xcp::Xcp,
    /// iXCP of Zan and Yang.
    IXcp: crate::protocols::ixcp::IXcp,
    /// P-XCP of Zhou, Yeung and Li.
    PXcp: crate::protocols::pxcp::PXcp,
    /// AECP of the 2010 paper.
    Aecp: crate::protocols::aecp::Aecp,
    /// RCP of Dukkipati and McKeown.
    Rcp: crate::protocols::rcp::Rcp,
    /// JetMax of Zhang, Leonard and Loguinov.
    JetMax: crate::protocols::jetmax::JetMax,
    /// VCP of Xia, Subramanian, Stoica and Kalyanaraman.
    Vcp: crate::protocols::vcp::Vcp,
    /// Reno of RFC 5681.
    Reno: crate::protocols::tcp::Tcp<crate::protocols::tcp::reno::Reno>,
    /// NewReno of RFC 6582.
    NewReno: crate::protocols::tcp::Tcp<crate::protocols::tcp::newreno::NewReno>,
    /// SACK of RFC 6675.
    Sack: crate::protocols::tcp::Tcp<crate::protocols::tcp::sack::Sack>,
    /// CUBIC of RFC 9438.
    Cubic: crate::protocols::tcp::Tcp<crate::protocols::tcp::cubic::Cubic>,
    /// BIC of Xu, Harfoush and Rhee.
    Bic: crate::protocols::tcp::Tcp<crate::protocols::tcp::bic::Bic>,
    /// HighSpeed TCP of RFC 3649.
    HighSpeed: crate::protocols::tcp::Tcp<crate::protocols::tcp::highspeed::HighSpeed>,
    /// Scalable TCP of Kelly.
    Scalable: crate::protocols::tcp::Tcp<crate::protocols::tcp::scalable::Scalable>,
    /// H-TCP of Leith and Shorten.
    Htcp: crate::protocols::tcp::Tcp<crate::protocols::tcp::htcp::Htcp>,
    /// Westwood+ of Grieco and Mascolo.
    Westwood: crate::protocols::tcp::Tcp<crate::protocols::tcp::westwood::Westwood>,
    /// Vegas of Brakmo, O'Malley and Peterson.
    Vegas: crate::protocols::tcp::Tcp<crate::protocols::tcp::vegas::Vegas>,
    /// FAST of Wei, Jin, Low and Hegde.
    Fast: crate::protocols::tcp::Tcp<crate::protocols::tcp::fast::Fast>,
    /// DCTCP of RFC 8257.
    Dctcp: crate::protocols::tcp::Tcp<crate::protocols::tcp::dctcp::Dctcp>,
    /// BBR, version 1.
    Bbr: crate::protocols::tcp::bbr::Bbr,
    /// A fixed window and no law.
    Window: crate::protocols::window::Window,
}
