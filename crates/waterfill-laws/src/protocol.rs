//! What a protocol is: a router law, a receiver law, a source law and the header between them.
//!
//! Every call takes one struct that names its facts; the time is always given. A law never
//! learns which backend runs it. One protocol is one file under [`crate::protocols`].

use crate::params::{ParamError, Params};
use crate::units::{Duration, Instant, Rate, Volume};

/// What a protocol is called and what it costs on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line for listings.
    pub summary: &'static str,
    /// Who sets the rate.
    pub kind: Kind,
    /// Backends that run it.
    pub backends: &'static [&'static str],
    /// Whether the law asks for paced packets unless the scenario says otherwise.
    pub paced: bool,
    /// What it asks of the host's machinery for losses and marks.
    pub host: Host,
    /// The state its router and source show to probes.
    pub signals: &'static [Signal],
}

/// A named series that a law can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Column name, after the protocol's.
    pub name: &'static str,
    /// Unit as printed.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// Families of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Routers tell the source in a header field.
    Explicit,
    /// The source infers congestion by itself.
    EndToEnd,
}

/// What a law leaves to the host it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// How losses are found and mended.
    pub retransmission: Retransmission,
    /// How the data in flight comes down to the window after a loss or a mark.
    pub reduction: Reduction,
    /// What is made of packets that a router marked.
    pub ecn: Ecn,
    /// The header is the host's own note on a packet, which a real host keeps beside its copy of the data: it comes
    /// back with the acknowledgement and takes no bytes on the wire.
    pub notes: bool,
}

impl Host {
    /// A law that is told by routers: losses are mended and do not move the window.
    pub const EXPLICIT: Self =
        Self { retransmission: Retransmission::Sack, reduction: Reduction::Law, ecn: Ecn::Off, notes: false };
    /// A TCP of today: selective acknowledgements, proportional rate reduction, marks as RFC 3168 has them.
    pub const TCP: Self = Self {
        retransmission: Retransmission::Sack,
        reduction: Reduction::Proportional,
        ecn: Ecn::Classic,
        notes: false,
    };
}

/// How a host finds and mends losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retransmission {
    /// Three duplicate acknowledgements mean one loss; the next new acknowledgement ends recovery (RFC 5681).
    Reno,
    /// The same, and a partial acknowledgement means the next loss (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 6675).
    Sack,
}

/// How the data in flight comes down after a loss or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The law's window bounds the data in flight at all times.
    Law,
    /// Proportional rate reduction (RFC 6937) spreads the way down to the law's window over the recovery.
    Proportional,
}

/// What a host makes of marks, where the scenario turns them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Packets do not say that they may be marked.
    Off,
    /// RFC 3168: the receiver repeats a mark until it hears of a reduction.
    Classic,
    /// RFC 8257: the receiver says of every packet whether it was marked; on unless the scenario turns it off.
    Accurate,
}

/// A congestion-control protocol: its parameters, its wire format and its three laws.
pub trait Protocol: Sized {
    /// Its names and costs.
    const INFO: Info;
    /// Its parameters.
    type Params: Params;
    /// What data packets carry and routers write.
    type Header: Wire;
    /// What acknowledgements carry back.
    type Echo: Wire;
    /// The law at the head of each link direction.
    type Router: Router<Self>;
    /// The law at the receiving host.
    type Receiver: Receiver<Self>;
    /// The law at the sending host.
    type Source: Source<Self>;

    /// Checks that these parameters can control a link like this one.
    ///
    /// # Errors
    /// The parameter that cannot, and what it would have to be.
    fn check_link(_params: &Self::Params, _link: &LinkView) -> Result<(), ParamError> {
        Ok(())
    }
    /// Share of a link's capacity these parameters aim at, in (0, 1].
    fn target(params: &Self::Params) -> f64;
}

/// A header or echo as bytes. What is simulated is what would be on the wire.
pub trait Wire: Copy + Default + std::fmt::Debug + PartialEq {
    /// Bytes it takes in a packet.
    const BYTES: usize;
    /// Writes it into the first [`Wire::BYTES`] bytes of `out`.
    fn encode(&self, out: &mut [u8]);
    /// Reads it back; `None` if these bytes are not one.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Whether some field is a sum over packets (XCP's feedback), so that a parcel of fluid carries the sum of its own. All
    /// others (a price, a rate) are the same in every part of a parcel.
    const EXTENSIVE: bool = false;
    /// What a part of a parcel carries, `share` of its volume.
    #[must_use]
    fn part(&self, _share: f64) -> Self {
        *self
    }
    /// What this parcel and the next one carry together: sums of the extensive fields, the rest is the next one's.
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

/// What a router law may know of its link direction.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Unique among the link directions of a run.
    pub id: u32,
    /// What the laws share out: the physical capacity, or what is theirs of it at this time. A law that keeps it asks again
    /// at least once an interval of its own.
    pub capacity: Rate,
    /// The scenario's own utilisation target, in place of the protocol's.
    pub target: Option<f64>,
    /// Data waiting, the packet in service excluded.
    pub queue: Volume,
}

/// What kind of packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Opens a connection and asks for a start.
    Syn,
    /// Carries data.
    Data,
    /// Acknowledges only.
    Ack,
    /// Not congestion controlled.
    Other,
}

/// A packet, or a step of fluid, that passes a router.
#[derive(Debug)]
pub struct Passing<'a, H> {
    /// Now.
    pub now: Instant,
    /// Its size.
    pub volume: Volume,
    /// How many packets it is (a fluid step may be a fraction of one).
    pub packets: f64,
    /// What it is.
    pub kind: PacketKind,
    /// This protocol's header; `None` for a packet of another protocol, which is load all the same.
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
    /// Whether [`Router::on_departure`] does anything: most laws are done at arrival, and a call less
    /// for each packet is worth a line.
    const DEPARTURES: bool = false;
    /// When it leaves the queue for the wire; called if [`Router::DEPARTURES`] says so.
    fn on_departure(&mut self, _link: &LinkView, _passing: &mut Passing<'_, P::Header>) {}
    /// When the law next wants [`Router::on_timer`].
    fn poll_at(&self) -> Instant {
        Instant::NEVER
    }
    /// Called at [`Router::poll_at`]'s time, in order with arrivals and departures.
    fn on_timer(&mut self, _link: &LinkView, _now: Instant) {}
    /// Shows its state.
    fn observe(&self, _probe: &mut dyn Probe) {}
}

/// No router: the path only carries the packets.
impl<P: Protocol> Router<P> for () {
    fn new(_params: &P::Params, _link: &LinkView) -> Self {}
    fn on_arrival(&mut self, _link: &LinkView, _passing: &mut Passing<'_, P::Header>) {}
}

/// A data packet at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Received<H> {
    /// Now.
    pub now: Instant,
    /// SYN or data.
    pub kind: PacketKind,
    /// Its header as the last router left it.
    pub header: H,
    /// The host's sample of the round trip: from sending an echo to data clocked by it.
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
    /// Returns what the next acknowledgement carries.
    fn echo(&mut self, now: Instant) -> P::Echo;
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
}

/// What a source law knows of its connection from the start.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Share in weighted fairness; 1 is everybody's.
    pub weight: f64,
    /// A full packet on the wire, headers included.
    pub packet: Volume,
    /// The window a host may use before it knows anything.
    pub initial_window: Volume,
    /// Chance of its own, for a law that draws: from the run's seed and the connection's identity.
    pub seed: u64,
}

/// A packet about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Now.
    pub now: Instant,
    /// SYN or data.
    pub kind: PacketKind,
    /// Its size.
    pub volume: Volume,
    /// In flight before it.
    pub in_flight: Volume,
    /// The application has nothing more to send after it for now.
    pub app_limited: bool,
}

/// An acknowledgement at its source.
#[derive(Clone, Copy, Debug)]
pub struct Ack<E> {
    /// Now.
    pub now: Instant,
    /// What the receiver echoed.
    pub echo: E,
    /// SYN: the handshake's answer.
    pub kind: PacketKind,
    /// Newly acknowledged data.
    pub acked: Volume,
    /// How much of `acked` the receiver says was marked.
    pub marked: Volume,
    /// This acknowledgement's round trip, where it can be told.
    pub rtt: Option<Duration>,
    /// The round trip smoothed as RFC 6298 has it, this sample included.
    pub smoothed_rtt: Duration,
    /// The smallest round trip of the connection; never zero.
    pub base_rtt: Duration,
    /// Sent and neither acknowledged nor known lost.
    pub in_flight: Volume,
    /// In recovery from a loss, or coming down after a mark: a window that grows would undo the reduction. Not so
    /// after a time-out, where the window starts over at once.
    pub recovering: bool,
    /// The window was what held the sender back since the acknowledgement before: a window not used must not grow
    /// (RFC 5681 §4.1 by RFC 7661's reasoning).
    pub window_limited: bool,
}

impl<E> Ack<E> {
    /// An acknowledgement of nothing, whose round trip was also the smallest so far: for others to be made from.
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
    /// A packet of a sender that has more and has nothing in flight: for others to be made from.
    #[must_use]
    pub const fn new(now: Instant, kind: PacketKind, volume: Volume) -> Self {
        Self { now, kind, volume, in_flight: Volume::ZERO, app_limited: false }
    }
}

/// What the host found out about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A loss was found by acknowledgements: recovery begins.
    Loss,
    /// The retransmission timer fired.
    Timeout,
    /// The receiver reported a mark: once for each window of data (RFC 3168).
    Marked,
    /// All that was outstanding when the loss was found, or the mark heard, has arrived.
    Recovered,
}

/// How much a host may send. Both bounds hold.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Limit {
    /// Data in flight.
    pub window: Option<Volume>,
    /// Rate at which packets leave, where pacing is on.
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
    /// The host found a loss, or its end.
    fn on_event(&mut self, _now: Instant, _event: Event) {}
    /// What may be sent now.
    fn limit(&self) -> Limit;
    /// Shows its state.
    fn observe(&self, _probe: &mut dyn Probe) {}
}

/// Somewhere to show a law's state; called at samples only, never per packet.
pub trait Probe {
    /// Records one of [`Info::signals`].
    fn record(&mut self, signal: &'static str, value: f64);
}
