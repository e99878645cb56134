//! The traits of a protocol: a router law, a receiver law, a source law and the header between them.
//!
//! Every call takes one struct with named fields, and the current time is always one of them. A law never learns which
//! backend runs it. One protocol is one file, or one folder, under [`crate::protocols`].

use crate::params::{ParamError, Params};
use crate::state::{StateFields, Word, WordKind};
use crate::units::{Duration, Instant, Rate, Volume};

/// A protocol's name, how it is run and what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line for listings.
    pub summary: &'static str,
    /// Setter of the rate: the routers, or the ends alone.
    pub kind: ProtocolKind,
    /// True if the law needs packets, which a fluid model does not have.
    pub needs_packets: bool,
    /// True if packets are paced unless the scenario says otherwise.
    pub paced: bool,
    /// Requirements on the host for losses and marks.
    pub host: Host,
    /// The series that its router and source record.
    pub signals: &'static [LawSignal],
}

/// A series that a law records while it runs.
#[derive(Clone, Copy, Debug)]
pub struct LawSignal {
    /// Column name, after the protocol's name and a dot.
    pub name: &'static str,
    /// Unit as printed.
    pub unit: &'static str,
    /// One line for listings.
    pub doc: &'static str,
}

/// Families of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolKind {
    /// Routers signal congestion in a header field.
    Explicit,
    /// The source infers congestion from losses, delays or marks.
    EndToEnd,
}

/// Duties that a law leaves to the host that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Method of finding and repairing losses.
    pub retransmission: Retransmission,
    /// Reduction of the data in flight to the window after a loss or a mark.
    pub reduction: Reduction,
    /// Use of ECN marks.
    pub ecn: Ecn,
    /// True if the header is the host's own record of a sent packet. A real host keeps it with its copy of the data. It
    /// comes back with the acknowledgement and takes no bytes on the wire.
    pub notes: bool,
    /// The header states the source's RTT, which routers rely on; so a source may state a false one.
    pub states_rtt: bool,
}

impl Host {
    /// For a law with explicit feedback: losses are repaired and do not change the window.
    pub const EXPLICIT: Self = Self {
        retransmission: Retransmission::Sack,
        reduction: Reduction::Law,
        ecn: Ecn::Off,
        notes: false,
        states_rtt: false,
    };
    /// The same with the source's RTT in the header.
    pub const EXPLICIT_WITH_RTT: Self = Self { states_rtt: true, ..Self::EXPLICIT };
    /// For a current TCP: selective acknowledgements, proportional rate reduction, ECN by RFC 3168.
    pub const TCP: Self = Self {
        retransmission: Retransmission::Sack,
        reduction: Reduction::Proportional,
        ecn: Ecn::Classic,
        notes: false,
        states_rtt: false,
    };
}

/// Methods by which a host finds and repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retransmission {
    /// Three duplicate acknowledgements signal a loss; the next new acknowledgement ends recovery (RFC 5681).
    Reno,
    /// Reno's rules, and a partial acknowledgement signals the next loss (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 6675).
    Sack,
}

/// Ways in which the data in flight is reduced after a loss or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The law's window bounds the data in flight at all times.
    Law,
    /// Proportional rate reduction (RFC 6937): the reduction to the law's window is spread over the recovery.
    Proportional,
}

/// Uses of ECN by a host, where the scenario turns it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Packets are not marked.
    Off,
    /// RFC 3168: the receiver repeats a mark until the sender reports a reduction.
    Classic,
    /// RFC 8257: the receiver reports for every packet whether it was marked; on unless the scenario turns it off.
    Accurate,
}

/// A congestion-control protocol: its parameters, its wire format and its three laws.
pub trait Protocol: Sized {
    /// Name, kind, needs and signals.
    const INFO: Info;
    /// Its parameters.
    type Params: Params;
    /// The header of data packets, which routers write.
    type Header: Wire;
    /// The header of acknowledgements.
    type Echo: Wire;
    /// The law at the head of each link direction.
    type Router: Router<Self>;
    /// The law at the receiving host.
    type Receiver: Receiver<Self>;
    /// The law at the sending host.
    type Source: Source<Self>;

    /// Checks that these parameters can control this link.
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

/// A header or echo and its bytes on the wire: what is simulated is what would be sent.
pub trait Wire: Copy + Default + std::fmt::Debug + PartialEq {
    /// Its size in bytes.
    const BYTES: usize;
    /// Encodes it into the first [`Wire::BYTES`] bytes of `out`.
    fn encode(&self, out: &mut [u8]);
    /// Decodes it; `None` if these bytes are not valid: too few, NaN, or a negative rate.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// True if a field is a sum over packets (XCP's feedback), so that a parcel of fluid carries the sum over its
    /// packets. Any other field (a price, a rate) is the same in every part of a parcel.
    const EXTENSIVE: bool = false;
    /// Returns the header of a part of a parcel, `share` of its volume.
    #[must_use]
    fn part(&self, _share: f64) -> Self {
        *self
    }
    /// Returns the header of this parcel and the next one together: extensive fields are summed, the others are the
    /// next parcel's.
    #[must_use]
    fn joined(&self, next: &Self) -> Self {
        *next
    }
}

/// Nothing on the wire.
impl Wire for () {
    const BYTES: usize = 0;
    fn encode(&self, _out: &mut [u8]) {}
    fn decode(_bytes: &[u8]) -> Option<Self> {
        Some(())
    }
}

/// A router law's view of its link direction.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Unique among the link directions of a run.
    pub id: u32,
    /// The capacity that the laws allocate: the link's, or the part of it that is theirs at this time. A law that stores
    /// it reads it again at least once per control interval.
    pub capacity: Rate,
    /// The scenario's utilization target, which replaces the protocol's.
    pub target: Option<f64>,
    /// Data waiting, without the packet in service.
    pub queue: Volume,
}

impl LinkView {
    /// Returns the usable capacity: the scenario's utilization target, or 1 without one, times the capacity.
    #[must_use]
    pub fn usable(&self) -> Rate {
        self.capacity * self.target.unwrap_or(1.0)
    }
}

/// Kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Opens a connection.
    Syn,
    /// Carries data.
    Data,
    /// Acknowledges only.
    Ack,
    /// Not congestion controlled.
    Other,
}

impl Word for PacketKind {
    const KIND: WordKind = WordKind::Count;
    fn word(&self) -> u64 {
        *self as u64
    }
}

/// A packet, or one step of fluid, that passes a router.
#[derive(Debug)]
pub struct Passing<'a, H> {
    /// The current time.
    pub now: Instant,
    /// Its size.
    pub volume: Volume,
    /// Number of packets that it stands for (a fluid step may be a fraction of one).
    pub packets: f64,
    /// Its kind.
    pub kind: PacketKind,
    /// This protocol's header; `None` for a packet of another protocol, which still counts as load.
    pub header: Option<&'a mut H>,
}

impl<H> Passing<'_, H> {
    /// The same packet with the part of its header that `part` selects.
    #[inline]
    pub fn with_header<'b, T>(&'b mut self, part: impl FnOnce(&'b mut H) -> Option<&'b mut T>) -> Passing<'b, T> {
        let header = self.header.as_deref_mut().and_then(part);
        Passing { now: self.now, volume: self.volume, packets: self.packets, kind: self.kind, header }
    }
}

/// The law of one link direction, for the protocol `P`.
pub trait Router<P: Protocol> {
    /// Creates the law of one link direction.
    fn new(params: &P::Params, link: &LinkView) -> Self;
    /// Called for each packet before it joins the queue.
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, P::Header>);
    /// True if [`Router::on_departure`] does anything. Most laws need arrivals only, and one call less per packet is
    /// measurable.
    const DEPARTURES: bool = false;
    /// Returns true if this instance is to be called at departures. A law that writes there by a parameter only
    /// overrides it.
    fn sees_departures(&self) -> bool {
        Self::DEPARTURES
    }
    /// Called for each packet when its transmission starts, if [`Router::sees_departures`] is true.
    fn on_departure(&mut self, _link: &LinkView, _passing: &mut Passing<'_, P::Header>) {}
    /// Returns when [`Router::on_timer`] is to be called next.
    fn poll_at(&self) -> Instant {
        Instant::NEVER
    }
    /// Called at the time of [`Router::poll_at`], in order with arrivals and departures.
    fn on_timer(&mut self, _link: &LinkView, _now: Instant) {}
    /// Returns the law's control interval, if it follows the RTTs that packets state.
    fn interval(&self) -> Option<Duration> {
        None
    }
    /// Records the state that [`Info::signals`] lists.
    fn observe(&self, _probe: &mut dyn Probe) {}
    /// Lists the router's state for step logs.
    fn state(&self, _fields: &mut StateFields) {}
}

/// No router law: links only carry the packets.
impl<P: Protocol> Router<P> for () {
    fn new(_params: &P::Params, _link: &LinkView) -> Self {}
    fn on_arrival(&mut self, _link: &LinkView, _passing: &mut Passing<'_, P::Header>) {}
}

/// A SYN or data packet at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Received<H> {
    /// The current time.
    pub now: Instant,
    /// SYN or data.
    pub kind: PacketKind,
    /// Its header, as the last router wrote it.
    pub header: H,
    /// The receiver's own RTT sample: from sending an acknowledgement to the data that it released.
    pub rtt: Option<Duration>,
}

impl<H> Received<H> {
    /// The same packet with another header.
    #[inline]
    pub fn with_header<T>(&self, header: T) -> Received<T> {
        Received { now: self.now, kind: self.kind, header, rtt: self.rtt }
    }
}

/// The law at the receiving host, for the protocol `P`.
pub trait Receiver<P: Protocol> {
    /// Creates the receiving end of one connection.
    fn new(params: &P::Params) -> Self;
    /// Called for each packet that arrives.
    fn on_data(&mut self, received: &Received<P::Header>);
    /// Returns the echo of the next acknowledgement.
    fn echo(&mut self, now: Instant) -> P::Echo;
    /// Lists the receiver's state for step logs.
    fn state(&self, _fields: &mut StateFields) {}
}

/// The default receiver: copies the last header into the echo.
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

/// A source law's view of its connection at the start.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Weight in weighted fairness; 1 by default.
    pub weight: f64,
    /// Size of a full packet on the wire, headers included.
    pub packet: Volume,
    /// The window before any feedback.
    pub initial_window: Volume,
    /// RTT that the source states instead of its own, if its header has one ([`Host::states_rtt`]).
    pub claimed_rtt: Option<Duration>,
    /// Seed for a law that draws random numbers, from the run's seed and the connection's identity.
    pub seed: u64,
}

/// A packet about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The current time.
    pub now: Instant,
    /// SYN or data.
    pub kind: PacketKind,
    /// Its size.
    pub volume: Volume,
    /// Data in flight before it.
    pub in_flight: Volume,
    /// The application has nothing more to send after it, for now.
    pub app_limited: bool,
}

/// An acknowledgement at its source.
#[derive(Clone, Copy, Debug)]
pub struct Ack<E> {
    /// The current time.
    pub now: Instant,
    /// The header that the receiver wrote.
    pub echo: E,
    /// `Syn` for the acknowledgement of the SYN, otherwise `Ack`.
    pub kind: PacketKind,
    /// Newly acknowledged data.
    pub acked: Volume,
    /// The part of `acked` that the receiver reports as marked.
    pub marked: Volume,
    /// This acknowledgement's RTT sample, if there is one.
    pub rtt: Option<Duration>,
    /// The RTT smoothed by RFC 6298, this sample included.
    pub smoothed_rtt: Duration,
    /// The smallest RTT of the connection; never zero.
    pub base_rtt: Duration,
    /// Data sent that is neither acknowledged nor known to be lost.
    pub in_flight: Volume,
    /// In recovery from a loss, or reducing after a mark: a window that grows would undo the reduction. False after a
    /// timeout, where the window starts again at once.
    pub recovering: bool,
    /// The window limited the sender since the previous acknowledgement. An unused window must not grow (RFC 5681 §4.1,
    /// with RFC 7661's reason).
    pub window_limited: bool,
}

impl<E> Ack<E> {
    /// Creates an acknowledgement of no data, whose RTT is also the smallest so far; a base for struct updates.
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
    /// The same acknowledgement with another echo.
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
    /// Creates a packet of a sender with more to send and nothing in flight; a base for struct updates.
    #[must_use]
    pub const fn new(now: Instant, kind: PacketKind, volume: Volume) -> Self {
        Self { now, kind, volume, in_flight: Volume::ZERO, app_limited: false }
    }
}

/// Events of loss and marking that a host reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Acknowledgements showed a loss: recovery begins.
    Loss,
    /// The retransmission timer fired.
    Timeout,
    /// The receiver reported a mark; once per window of data (RFC 3168).
    Marked,
    /// All data that was outstanding at the loss or the mark has arrived.
    Recovered,
}

impl Word for Event {
    const KIND: WordKind = WordKind::Count;
    fn word(&self) -> u64 {
        *self as u64
    }
}

/// Limits of what a host may send. Both apply.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SendLimit {
    /// Limit of the data in flight.
    pub window: Option<Volume>,
    /// Rate at which packets leave, if they are paced.
    pub pacing: Option<Rate>,
}

/// The law at the sending host, for the protocol `P`.
pub trait Source<P: Protocol> {
    /// Creates the sending end of one connection.
    fn new(params: &P::Params, connection: &Connection) -> Self;
    /// Returns the header of a packet about to be sent.
    fn stamp(&mut self, sending: &Sending) -> P::Header;
    /// Called for each acknowledgement that arrives.
    fn on_ack(&mut self, ack: &Ack<P::Echo>);
    /// Called when the host finds a loss or a mark, and when it has recovered.
    fn on_event(&mut self, _now: Instant, _event: Event) {}
    /// Returns the current limits of what may be sent.
    fn limit(&self) -> SendLimit;
    /// Records the state that [`Info::signals`] lists.
    fn observe(&self, _probe: &mut dyn Probe) {}
    /// Lists the source's state for step logs.
    fn state(&self, _fields: &mut StateFields) {}
}

/// Takes a law's state; called at samples only, never per packet.
pub trait Probe {
    /// Records one of [`Info::signals`].
    fn record(&mut self, signal: &'static str, value: f64);
}
