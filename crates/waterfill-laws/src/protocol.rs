//! Traits of a protocol: a router law, a receiver law, a source law and the header that they exchange.
//!
//! Every call takes one struct with named fields, and the current time is always one of them. A law never learns which
//! backend runs it. One protocol is one file, or one folder, under [`crate::protocols`].

use crate::params::{ParamError, Params};
use crate::state::{StateFields, Word, WordKind};
use crate::telemetry::{Hop, Stack};
use crate::units::{Duration, Instant, Rate, Volume};

/// Static description of a protocol: its name, the way it runs and the signals that it shows.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Name of the protocol in scenarios.
    pub name: &'static str,
    /// One-line summary of the protocol for listings.
    pub summary: &'static str,
    /// Family of the protocol: explicit or end-to-end.
    pub kind: ProtocolKind,
    /// True if the law needs packets, which a fluid model does not have.
    pub needs_packets: bool,
    /// True if packets are paced unless the scenario says otherwise.
    pub paced: bool,
    /// Duties of the host after losses and marks.
    pub host: Host,
    /// Series that the protocol's router and source record.
    pub signals: &'static [LawSignal],
}

/// Series that a law records while it runs.
#[derive(Clone, Copy, Debug)]
pub struct LawSignal {
    /// Column name of the series, without the protocol's name and dot in front.
    pub name: &'static str,
    /// Unit of the series as printed.
    pub unit: &'static str,
    /// One-line description of the series for listings.
    pub doc: &'static str,
}

/// Families of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolKind {
    /// Explicit protocols, whose routers signal congestion in a header field.
    Explicit,
    /// End-to-end protocols, whose sources infer congestion from losses, delays or marks.
    EndToEnd,
}

/// Duties that a law leaves to the host that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Method of detecting and repairing losses.
    pub retransmission: Retransmission,
    /// Reduction of the data in flight to the window after a loss or a mark.
    pub reduction: Reduction,
    /// Use of ECN marks.
    pub ecn: Ecn,
    /// True if ECN-capable packets carry ECT(1), which asks for the queue of L4S (RFC 9331), instead of ECT(0).
    pub l4s: bool,
    /// True if the header is the host's own record of a sent packet.
    ///
    /// A real host keeps this record with its copy of the data. The record returns with the acknowledgement and takes
    /// no bytes on the wire.
    pub notes: bool,
    /// True if the header states the source's RTT, which routers rely on. A source may then state a false RTT.
    pub states_rtt: bool,
    /// Use of the smallest RTT, [`Ack::base_rtt`]; `None` if the law does not use it.
    pub base_rtt: Option<BaseRtt>,
    /// Rule for a window that the application does not use; `None` for laws other than the window-based TCPs.
    pub validation: Option<Validation>,
}

/// Rules for a window that the application does not use ([`tcp::validation`](crate::protocols::tcp::validation)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The window keeps its size.
    Off,
    /// A pause longer than the retransmission timeout restarts from the initial window (RFC 5681 §4.1).
    Rfc5681,
    /// The window is halved for each timeout that a pause lasts, as in Linux (RFC 2861).
    Rfc2861,
    /// The window is kept for five minutes, and a loss meanwhile counts what was in use (RFC 7661).
    Rfc7661,
}

impl Validation {
    /// All rules with their names in scenarios.
    pub const NAMES: [(Self, &'static str); 4] =
        [(Self::Off, "off"), (Self::Rfc5681, "rfc5681"), (Self::Rfc2861, "rfc2861"), (Self::Rfc7661, "rfc7661")];

    /// Returns the rule with this name in scenarios.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|&(_, known)| known == name).map(|(rule, _)| rule)
    }

    /// Returns the name of the rule in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|&(rule, _)| rule == self).map_or("", |(_, name)| name)
    }
}

/// Use of the smallest RTT by a law, which decides how its host measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseRtt {
    /// Use by a law that keeps queues empty: the smallest RTT of a window is the path's.
    EmptyQueues,
    /// Use by a law that steers by its own queue, which a window would take for the path.
    OwnQueue,
    /// Use by a law that steers by its own queue and empties it now and then, within a window.
    EmptiedQueue,
    /// Use by a law that fills queues, which a window would take for the path.
    FullQueues,
}

impl BaseRtt {
    /// Returns the time after which a host forgets an RTT unless the scenario says otherwise; `None` for never.
    #[must_use]
    pub const fn window(self) -> Option<Duration> {
        match self {
            Self::EmptyQueues | Self::EmptiedQueue => Some(Duration::from_millis(10_000)),
            Self::OwnQueue | Self::FullQueues => None,
        }
    }

    /// Returns true if a smallest RTT below the path's limits the rate.
    #[must_use]
    pub const fn limits_rate(self) -> bool {
        matches!(self, Self::EmptyQueues | Self::OwnQueue | Self::EmptiedQueue)
    }

    /// Returns true if the samples of SYNs do not count, which lack the transmission of a full packet at each hop.
    #[must_use]
    pub const fn data_only(self) -> bool {
        matches!(self, Self::OwnQueue | Self::EmptiedQueue)
    }
}

impl Host {
    /// Returns the duties with another method of recovery. The reduction is the one that belongs to the method.
    #[must_use]
    pub const fn recovering_by(self, method: Retransmission) -> Self {
        let reduction = match (self.retransmission.is_selective(), method.is_selective()) {
            (_, false) => Reduction::Law,
            (false, true) => Reduction::Proportional,
            (true, true) => self.reduction,
        };
        Self { retransmission: method, reduction, ..self }
    }

    /// Host duties of a law with explicit feedback: losses are repaired and do not change the window.
    pub const EXPLICIT: Self = Self {
        retransmission: Retransmission::Rfc6675,
        reduction: Reduction::Law,
        ecn: Ecn::Off,
        l4s: false,
        notes: false,
        states_rtt: false,
        base_rtt: None,
        validation: None,
    };
    /// Host duties of a law with explicit feedback whose header states the source's RTT.
    pub const EXPLICIT_WITH_RTT: Self = Self { states_rtt: true, ..Self::EXPLICIT };
    /// Host duties of a TCP of today: [`Self::TCP`] with recovery by RACK-TLP, and Linux's restart after a pause.
    pub const TCP_TODAY: Self = Self {
        retransmission: Retransmission::Rack,
        reduction: Reduction::Proportional,
        ecn: Ecn::Classic,
        l4s: false,
        notes: false,
        states_rtt: false,
        base_rtt: None,
        validation: Some(Validation::Rfc2861),
    };
    /// Host duties of a TCP: selective acknowledgements, proportional rate reduction and ECN by RFC 3168.
    pub const TCP: Self = Self {
        retransmission: Retransmission::Rfc6675,
        reduction: Reduction::Proportional,
        ecn: Ecn::Classic,
        l4s: false,
        notes: false,
        states_rtt: false,
        base_rtt: None,
        validation: Some(Validation::Off),
    };
}

/// Methods by which a host detects and repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retransmission {
    /// Reno's loss recovery: three duplicate acknowledgements signal a loss, and the next new acknowledgement ends
    /// recovery (RFC 5681).
    Reno,
    /// NewReno's loss recovery: Reno's rules, but a partial acknowledgement signals the next loss (RFC 6582).
    NewReno,
    /// Loss recovery by selective acknowledgements of the papers' time (RFC 3517, RFC 6937). A lost retransmission is
    /// repaired without another signal.
    Rfc3517,
    /// Loss recovery by selective acknowledgements (RFC 6675, RFC 9937). A lost retransmission is a signal.
    Rfc6675,
    /// Loss recovery by sending times, with a probe of the tail and undo of spurious recoveries (RFC 8985, RFC 4015).
    Rack,
    /// QUIC's loss recovery: a new packet number for each transmission, and probes instead of timeouts (RFC 9002).
    Quic,
}

impl Retransmission {
    /// All methods with their names in scenarios.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::Reno, "reno"),
        (Self::NewReno, "newreno"),
        (Self::Rfc3517, "rfc3517"),
        (Self::Rfc6675, "rfc6675"),
        (Self::Rack, "rack"),
        (Self::Quic, "quic"),
    ];

    /// Returns the method with this name in scenarios.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|&(_, known)| known == name).map(|(method, _)| method)
    }

    /// Returns the name of the method in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|&(method, _)| method == self).map_or("", |(_, name)| name)
    }

    /// Returns true if the receiver sends TCP's selective acknowledgements.
    #[must_use]
    pub const fn is_selective(self) -> bool {
        !matches!(self, Self::Reno | Self::NewReno | Self::Quic)
    }
}

/// Methods of reducing the data in flight after a loss or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The law's window bounds the data in flight at all times.
    Law,
    /// Proportional rate reduction (RFC 9937): the reduction to the law's window is spread over the recovery.
    Proportional,
}

/// Uses of ECN by a host in a scenario that enables ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// No ECN: packets are not marked.
    Off,
    /// Classic ECN of RFC 3168: the receiver repeats a mark until the sender reports a reduction.
    Classic,
    /// DCTCP's ECN feedback (RFC 8257): the receiver reports the mark of each packet. This mode is on unless the
    /// scenario disables it.
    Accurate,
    /// AccECN (RFC 9768): each acknowledgement carries the low three bits of the number of marked packets, and the number
    /// of marked bytes in the AccECN option. This mode is on unless the scenario disables it.
    Counted,
    /// AccECN without its option.
    CountedInHeader,
}

impl Ecn {
    /// Ways of reporting marks to the sender, with their names in scenarios.
    pub const FEEDBACK: [(Self, &'static str); 4] = [
        (Self::Classic, "classic"),
        (Self::Accurate, "dctcp"),
        (Self::Counted, "accecn"),
        (Self::CountedInHeader, "accecn-ace"),
    ];

    /// Returns the way of reporting marks with this name in scenarios.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::FEEDBACK.into_iter().find(|&(_, known)| known == name).map(|(ecn, _)| ecn)
    }

    /// Returns true if a law with this use of ECN depends on the mark of each packet. It then uses ECN by default.
    #[must_use]
    pub const fn is_per_packet(self) -> bool {
        matches!(self, Self::Accurate) || self.counts()
    }

    /// Returns true if acknowledgements count marked packets.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Counted | Self::CountedInHeader)
    }
}

/// Congestion-control protocol: its parameters, its wire format and its three laws.
pub trait Protocol: Sized {
    /// Name, family, needs and signals of the protocol.
    const INFO: Info;
    /// Parameters of the protocol.
    type Params: Params;
    /// Header of data packets, which routers write.
    type Header: Wire;
    /// Header of acknowledgements.
    type Echo: Wire;
    /// Law at the head of each link direction.
    type Router: Router<Self>;
    /// Law at the receiving host.
    type Receiver: Receiver<Self>;
    /// Law at the sending host.
    type Source: Source<Self>;

    /// Returns the description of the protocol with these parameters.
    ///
    /// Only a law that a program provides differs from [`Protocol::INFO`].
    fn info(_params: &Self::Params) -> Info {
        Self::INFO
    }
    /// Returns the number of bytes of the header and of the echo with these parameters.
    fn wire_bytes(_params: &Self::Params) -> (usize, usize) {
        if Self::INFO.host.notes { (0, 0) } else { (Self::Header::BYTES, Self::Echo::BYTES) }
    }
    /// Checks that a law with these parameters can control this link.
    ///
    /// # Errors
    /// Names the first parameter that cannot, and what was expected.
    fn check_link(_params: &Self::Params, _link: &LinkView) -> Result<(), ParamError> {
        Ok(())
    }
    /// Returns the target utilization of a link, in (0, 1].
    fn target(params: &Self::Params) -> f64;
    /// Returns true if packets are paced with these parameters, unless the scenario says otherwise.
    fn paced(_params: &Self::Params) -> bool {
        Self::INFO.paced
    }
}

/// Header or echo that is encoded into its bytes on the wire and decoded from them.
pub trait Wire: Copy + Default + std::fmt::Debug + PartialEq {
    /// Size of the header in bytes.
    const BYTES: usize;
    /// Encodes the header into the first [`Wire::bytes`] bytes of `out`.
    fn encode(&self, out: &mut [u8]);
    /// Decodes a header. Returns `None` if the bytes are invalid: too few, NaN or a negative rate.
    fn decode(bytes: &[u8]) -> Option<Self>;
    /// Returns the number of bytes that this header takes on the wire.
    fn bytes(&self) -> usize {
        Self::BYTES
    }
    /// Decodes a header of the same law as this header.
    fn decode_alike(&self, bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes)
    }

    /// True if links write telemetry into the header: each link's record goes to the packet's stack.
    const TELEMETRY: bool = false;
    /// Removes and returns the record that `link` has written into the header, if [`Wire::TELEMETRY`] is true.
    fn take_hop(&mut self, _link: &LinkView) -> Option<Hop> {
        None
    }

    /// True if a field is summed over the packets of a fluid's parcel, as XCP's feedback is.
    ///
    /// Any other field (a price, a rate) is the same in every part of a parcel.
    const EXTENSIVE: bool = false;
    /// Returns the header of a fraction `share` of a parcel's volume.
    #[must_use]
    fn part(&self, _share: f64) -> Self {
        *self
    }
    /// Returns the combined header of this parcel and the next parcel.
    ///
    /// Extensive fields are summed. All other fields are the next parcel's.
    #[must_use]
    fn joined(&self, next: &Self) -> Self {
        *next
    }
}

/// Empty header that takes no bytes on the wire.
impl Wire for () {
    const BYTES: usize = 0;
    fn encode(&self, _out: &mut [u8]) {}
    fn decode(_bytes: &[u8]) -> Option<Self> {
        Some(())
    }
}

/// Properties of a link direction, as its router law sees them.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Identifier of the link direction, unique within a run.
    pub id: u32,
    /// Capacity that the laws may allocate: the link's capacity, or the part currently assigned to the laws.
    ///
    /// A law that stores the capacity reads it again at least once per control interval.
    pub capacity: Rate,
    /// Utilization target of the scenario, which replaces the protocol's target.
    pub target: Option<f64>,
    /// Data waiting in the queue, without the packet in service.
    pub queue: Volume,
}

impl LinkView {
    /// Returns the usable capacity: the capacity times the scenario's utilization target, or times 1 without a target.
    #[must_use]
    pub fn usable(&self) -> Rate {
        self.capacity * self.target.unwrap_or(1.0)
    }
}

/// Kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// SYN that opens a connection.
    Syn,
    /// Packet that carries data.
    Data,
    /// Acknowledgement without data.
    Ack,
    /// Packet without congestion control.
    Other,
}

impl Word for PacketKind {
    const KIND: WordKind = WordKind::Count;
    fn word(&self) -> u64 {
        *self as u64
    }
}

/// Packet, or one step of fluid, that passes a router.
#[derive(Debug)]
pub struct Passing<'a, H> {
    /// Current time.
    pub now: Instant,
    /// Size of the packet or step of fluid.
    pub volume: Volume,
    /// Number of packets that the packet or step of fluid represents. A step may represent a fraction of one packet.
    pub packets: f64,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Header of this protocol; `None` for a packet of another protocol, which still counts as load.
    pub header: Option<&'a mut H>,
}

impl<H> Passing<'_, H> {
    /// Returns the packet with only the part of its header that `part` selects.
    #[inline]
    pub fn with_header<'b, T>(&'b mut self, part: impl FnOnce(&'b mut H) -> Option<&'b mut T>) -> Passing<'b, T> {
        let header = self.header.as_deref_mut().and_then(part);
        Passing { now: self.now, volume: self.volume, packets: self.packets, kind: self.kind, header }
    }
}

/// Law of one link direction, for the protocol `P`.
pub trait Router<P: Protocol> {
    /// Creates the law of one link direction.
    fn new(params: &P::Params, link: &LinkView) -> Self;
    /// Handles a packet on arrival, before it joins the queue.
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, P::Header>);
    /// True if [`Router::on_departure`] does anything.
    ///
    /// Most laws need only arrivals, and one call less per packet is measurable.
    const DEPARTURES: bool = false;
    /// Returns true if this instance must be called at departures.
    ///
    /// A law that writes at departures only for some parameters overrides this method.
    fn sees_departures(&self) -> bool {
        Self::DEPARTURES
    }
    /// Handles a packet when its transmission starts, if [`Router::sees_departures`] is true.
    fn on_departure(&mut self, _link: &LinkView, _passing: &mut Passing<'_, P::Header>) {}
    /// Returns the time at which [`Router::on_timer`] must be called next.
    fn poll_at(&self) -> Instant {
        Instant::NEVER
    }
    /// Runs the timer that is due at [`Router::poll_at`]. Calls are in order with arrivals and departures.
    fn on_timer(&mut self, _link: &LinkView, _now: Instant) {}
    /// Returns the law's control interval, if the interval follows the RTTs that packets state.
    fn interval(&self) -> Option<Duration> {
        None
    }
    /// Records the router's signals that [`Info::signals`] lists.
    fn observe(&self, _probe: &mut dyn Probe) {}
    /// Lists the router's state for step logs.
    fn state(&self, _fields: &mut StateFields) {}
}

/// Router without a law, for protocols whose links only carry packets.
impl<P: Protocol> Router<P> for () {
    fn new(_params: &P::Params, _link: &LinkView) -> Self {}
    fn on_arrival(&mut self, _link: &LinkView, _passing: &mut Passing<'_, P::Header>) {}
}

/// SYN or data packet at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Received<H> {
    /// Current time.
    pub now: Instant,
    /// Kind of the packet: SYN or data.
    pub kind: PacketKind,
    /// Header of the packet, as the last router wrote it.
    pub header: H,
    /// RTT sample of the receiver: from sending an acknowledgement to receiving the data that this acknowledgement
    /// released.
    pub rtt: Option<Duration>,
}

impl<H> Received<H> {
    /// Returns the packet with another header.
    #[inline]
    pub fn with_header<T>(&self, header: T) -> Received<T> {
        Received { now: self.now, kind: self.kind, header, rtt: self.rtt }
    }
}

/// Law at the receiving host, for the protocol `P`.
pub trait Receiver<P: Protocol> {
    /// Creates the receiver law of one connection.
    fn new(params: &P::Params) -> Self;
    /// Handles an arriving packet.
    fn on_data(&mut self, received: &Received<P::Header>);
    /// Handles the mark of the data packet whose [`Receiver::on_data`] follows.
    fn on_mark(&mut self, _now: Instant) {}
    /// Returns the echo of the next acknowledgement.
    fn echo(&mut self, now: Instant) -> P::Echo;
    /// Lists the receiver's state for step logs.
    fn state(&self, _fields: &mut StateFields) {}
}

/// Default receiver law, which copies the last header into the echo.
#[derive(Clone, Debug, Default)]
pub struct EchoLast<E> {
    last: E,
}

impl<P: Protocol> Receiver<P> for EchoLast<P::Echo>
where
    P::Echo: From<P::Header>,
{
    fn new(_params: &P::Params) -> Self {
        Self::default()
    }
    fn on_data(&mut self, received: &Received<P::Header>) {
        self.last = received.header.into();
    }
    fn echo(&mut self, _now: Instant) -> P::Echo {
        self.last
    }
    fn state(&self, fields: &mut StateFields) {
        let mut bytes = [0; 64];
        self.last.encode(&mut bytes[..P::Echo::BYTES]);
        fields.put_wire("last", &bytes, P::Echo::BYTES);
    }
}

/// Properties of a path that a host of a fabric is configured with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Rate of the sender's own link; [`Rate::UNLIMITED`] if it is not known.
    pub host_rate: Rate,
    /// Number of links that the data crosses; 0 if it is not known.
    pub hops: u32,
}

impl PathView {
    /// Path of which nothing is known.
    pub const UNKNOWN: Self = Self { host_rate: Rate::UNLIMITED, hops: 0 };
}

/// Properties of a connection at its start, as its source law receives them.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Weight in weighted fairness; 1 by default.
    pub weight: f64,
    /// Size of a full packet on the wire, headers included.
    pub packet: Volume,
    /// Window before any feedback has arrived.
    pub initial_window: Volume,
    /// RTT that the source states instead of the measured RTT, if the protocol's header states an RTT
    /// ([`Host::states_rtt`]).
    pub claimed_rtt: Option<Duration>,
    /// Properties of the path that a host knows without feedback.
    pub path: PathView,
    /// Rule for a window that the application does not use.
    pub validation: Validation,
    /// Seed for a law that draws random numbers, derived from the run's seed and the connection's identity.
    pub seed: u64,
}

/// Packet about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Current time.
    pub now: Instant,
    /// Kind of the packet: SYN or data.
    pub kind: PacketKind,
    /// Size of the packet.
    pub volume: Volume,
    /// Data in flight before the packet.
    pub in_flight: Volume,
    /// True if the application currently has nothing more to send after the packet.
    pub app_limited: bool,
}

/// Acknowledgement at its source.
#[derive(Clone, Copy, Debug)]
pub struct Ack<E> {
    /// Current time.
    pub now: Instant,
    /// Echo that the receiver wrote.
    pub echo: E,
    /// Kind of the acknowledgement: `Syn` for a SYN's acknowledgement, otherwise `Ack`.
    pub kind: PacketKind,
    /// Data that is newly acknowledged.
    pub acked: Volume,
    /// Volume of newly acknowledged data that the receiver reports as marked.
    pub marked: Volume,
    /// RTT sample of this acknowledgement, if there is one.
    pub rtt: Option<Duration>,
    /// Smoothed RTT of RFC 6298, including this sample.
    pub smoothed_rtt: Duration,
    /// Smallest RTT of the connection, or of the host's window ([`Host::base_rtt`]); never zero.
    pub base_rtt: Duration,
    /// Data sent that is neither acknowledged nor known to be lost.
    pub in_flight: Volume,
    /// True during recovery from a loss, or reduction after a mark. With RACK also for packets beyond a gap (RFC 3042).
    ///
    /// A growing window would undo the reduction. The flag is false after a timeout, when the window restarts at once.
    pub recovering: bool,
    /// True if the window limited the sender since the previous acknowledgement.
    ///
    /// An unused window must not grow (RFC 5681 §4.1, with RFC 7661's reason).
    pub window_limited: bool,
}

impl<E> Ack<E> {
    /// Creates an acknowledgement of no data, whose RTT is also the smallest so far. The result is a base for struct
    /// updates.
    #[must_use]
    pub const fn new(now: Instant, echo: E, rtt: Duration) -> Self {
        Self {
            now,
            echo,
            kind: PacketKind::Ack,
            acked: Volume::ZERO,
            marked: Volume::ZERO,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            base_rtt: rtt,
            in_flight: Volume::ZERO,
            recovering: false,
            window_limited: true,
        }
    }
}

impl<E> Ack<E> {
    /// Returns the acknowledgement with another echo.
    #[inline]
    pub fn with_echo<T>(&self, echo: T) -> Ack<T> {
        Ack {
            now: self.now,
            echo,
            kind: self.kind,
            acked: self.acked,
            marked: self.marked,
            rtt: self.rtt,
            smoothed_rtt: self.smoothed_rtt,
            base_rtt: self.base_rtt,
            in_flight: self.in_flight,
            recovering: self.recovering,
            window_limited: self.window_limited,
        }
    }
}

impl Sending {
    /// Creates a packet of a sender with more to send and nothing in flight. The result is a base for struct updates.
    #[must_use]
    pub const fn new(now: Instant, kind: PacketKind, volume: Volume) -> Self {
        Self { now, kind, volume, in_flight: Volume::ZERO, app_limited: false }
    }
}

/// Events of loss and marking that a host reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Loss shown by acknowledgements, which begins recovery.
    Loss,
    /// Timeout of the retransmission timer.
    Timeout,
    /// Mark reported by the receiver, at most once per window of data (RFC 3168).
    Marked,
    /// End of recovery: all data outstanding at the loss or the mark has arrived.
    Recovered,
    /// Loss of more than one SYN or of their answers, reported just before the answer that arrives. The initial window
    /// is then one packet (RFC 5681 §3.1, RFC 6928 §2).
    SynsLost,
    /// Proof that the last loss or timeout was spurious: its packets were late, not lost (RFC 4015). A law restores its
    /// window, and the recovery is over.
    Spurious,
    /// Pause of a retransmission timeout without data to send. It is reported when the next packet leaves: once for each
    /// timeout that the pause lasted, at most [`Event::IDLE_MAX`] times.
    Idle,
}

impl Event {
    /// Maximum number of [`Event::Idle`] for one pause. No window survives so many halvings.
    pub const IDLE_MAX: u64 = 32;

    /// All events, in the order of their numbers in step logs.
    pub const ALL: [Self; 7] =
        [Self::Loss, Self::Timeout, Self::Marked, Self::Recovered, Self::SynsLost, Self::Spurious, Self::Idle];
}

impl Word for Event {
    const KIND: WordKind = WordKind::Count;
    fn word(&self) -> u64 {
        *self as u64
    }
}

/// Limits on sending by a host. Both limits apply.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SendLimit {
    /// Limit on the data in flight.
    pub window: Option<Volume>,
    /// Rate at which packets leave, if the source is paced.
    pub pacing: Option<Rate>,
}

/// Law at the sending host, for the protocol `P`.
pub trait Source<P: Protocol> {
    /// Creates the source law of one connection.
    fn new(params: &P::Params, connection: &Connection) -> Self;
    /// Returns the header of a packet about to be sent.
    fn stamp(&mut self, sending: &Sending) -> P::Header;
    /// Takes the stack of telemetry of the acknowledgement whose [`Source::on_ack`] follows, if the receiver echoes one.
    fn on_stack(&mut self, _stack: &Stack) {}
    /// Handles an arriving acknowledgement.
    fn on_ack(&mut self, ack: &Ack<P::Echo>);
    /// Handles the loss of one packet, which was sent at `sent`.
    ///
    /// The host reports each loss before the acknowledgement or event that shows it. Only recoveries that keep sending
    /// times report losses (`rack` and `quic`), and the losses of a timeout are the event's alone.
    fn on_lost(&mut self, _now: Instant, _sent: Instant) {}
    /// Handles an event: the host found a loss or a mark, or has recovered.
    fn on_event(&mut self, _now: Instant, _event: Event) {}
    /// Brings a rate that changes without feedback up to date, before it paces a packet.
    fn advance(&mut self, _now: Instant) {}
    /// Returns the current send limits.
    fn limit(&self) -> SendLimit;
    /// Records the source's signals that [`Info::signals`] lists.
    fn observe(&self, _probe: &mut dyn Probe) {}
    /// Lists the source's state for step logs.
    fn state(&self, _fields: &mut StateFields) {}
}

/// Recorder of a law's signals. It is called at samples only, never per packet.
pub trait Probe {
    /// Records the value of one of [`Info::signals`].
    fn record(&mut self, signal: &str, value: f64);
}
