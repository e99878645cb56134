//! iXCP: XCP that shuffles bandwidth only among the flows that are bottlenecked at the router.
//!
//! # Law
//! XCP takes γ of every flow's rate and gives it back in equal parts, also to flows that cannot use it because another
//! link limits them: then the link stays partly unused. In iXCP a packet names the link that is its flow's bottleneck, and
//! only packets that name this link are shuffled.
//!
//! - `eq1`  φ = α·d·(c − y) − β·b, over all packets, as in [`xcp`]
//! - `eq3`  h = max{0, γ·(y − y₀) − |φ|}, y₀ the traffic that names another link
//! - `3`    a packet that names this link gets its share of φ and of h, any other packet of φ only. If the feedback written
//!   is smaller than the one in the header, this link becomes the next bottleneck. The receiver echoes it, and the sender
//!   names it in its packets
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | y, y₀ | sums over all arrivals, and over those that are not *local* | bytes |
//! | bottleneckId | `Header::bottleneck` | link |
//! | nextBottleneckId | `Header::next_bottleneck`, `Echo::next_bottleneck` | link |
//! | φ, h, c, d, α, β, γ | as in [`xcp`] | |
//!
//! # Header
//! XCP's and eight bytes, XCP's acknowledgement and four (§3): 28 and 24.
//!
//! # Router
//! [`Router`]: XCP's, with separate sums for packets that name this link.
//!
//! # Source
//! [`Source`]: XCP's; it names the link that the last acknowledgement named.
//!
//! # Parameters
//! [`Params`]: XCP's with all its variants, and when a router names its link.
//!
//! # Readings and deviations
//! - The paper's pseudo-code is in a technical report that was not available. This follows §3: the sums for h are over
//!   packets that name this link, those for φ over all.
//! - The draft's residues limit what φ and h give together, and what they take. Shuffling "simultaneously allocates and
//!   deallocates" (§2.1), so a packet's part in it ends with whichever residue ends first. XCP's residues end one at a
//!   time: a packet then gets the gains of shuffling without the losses, as if this link were not its bottleneck.
//! - `claim = "full-link"` (default): a router whose φ is positive lowers feedback but names no link. It writes 0, and a
//!   sender that receives 0 keeps the link it named. §1 speaks of flows bottlenecked at a link, and a link with spare
//!   bandwidth is no bottleneck.
//! - `claim = "least-feedback"` is §3 to the letter: the smaller feedback names the link, for any φ. In Fig. 1 the long
//!   flows' second link offers more than the first can spare whenever their whole-packet windows step down together (by a
//!   quarter, at windows of four packets). For an RTT they then name the first link, take part in its shuffling and cannot
//!   use the gains. Of its 55 Mbit/s the short flow gets 54, 52, 45 and 42 with 4, 16, 64 and 256 long flows (the link at
//!   99, 98, 93 and 91 %), where the paper has over 90 % (97 %); naming only full links gives 54, 53, 53, 52.
//! - A sender that waits until a link has been named for several RTTs would do as well on Fig. 1, but would leave a flow over
//!   several full links at a fraction of its share.
//! - A link's identifier is its number in the run plus one, where the paper draws 32 random bits. 0 is the sender's access,
//!   which every connection names first; no link has 0.
//! - A packet without an RTT (a SYN) gets no feedback, and so names no link.
//! - The receiver acknowledges several packets at once with the last nextBottleneckId.
//! - For everything else see [`xcp`].
//!
//! # Validation
//! Tests below and the simulator's `xcp` tests. Fig. 1 with 4 to 256 long flows: the 155 Mbit/s link at 97 % or more, the
//! short flow at 93 % of its share or more, no drops. One of N flows gets a fraction 1/N of φ per d, so the short flow's
//! deficit shrinks by a factor e in N·d/α: 51 s at 256 long flows, 210 s at 1024, whose windows of one packet cannot shrink
//! and so keep their own link full. §4.3's rates within 3 %. §4.2 on an instance of Fig. 4 (80 flows, five links): links
//! at 96 % or more, mean rates at 93 % of the share or more; with §3 to the letter 98 and 96 %.
//!
//! # References
//! `ixcp-2007`: Zan, Yang, "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation".

use crate::params::ParamError;
use crate::protocol::{
    Ack, Connection, Event, Host, Info, Kind, Limit, LinkView, Passing, Probe, Protocol, Received, Sending, Wire,
};
use crate::protocols::xcp;
use crate::units::{Duration, Instant};

/// The protocol `ixcp`.
#[derive(Debug)]
pub struct IXcp;

impl Protocol for IXcp {
    const INFO: Info = Info {
        name: "ixcp",
        summary: "XCP that shuffles only among flows bottlenecked at the router; max-min fair (2007)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: false,
        host: Host::EXPLICIT,
        signals: xcp::SIGNALS,
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

// ---------------------------------------------------------------------------------- header

/// The identifier of the sender's own access.
const ACCESS: u32 = 0;

/// A link's identifier on the wire.
const fn identifier(link: &LinkView) -> u32 {
    // The last of 2³² links shares the identifier of the one before it, which is better than the access's.
    link.id.saturating_add(1)
}

/// XCP's header with the links that limit the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// XCP's header.
    pub congestion: xcp::Header,
    /// bottleneckId: the link that limits the flow, as far as its sender knows.
    pub bottleneck: u32,
    /// nextBottleneckId: the link that gave this packet the smallest feedback.
    pub next_bottleneck: u32,
}

impl Wire for Header {
    const EXTENSIVE: bool = true;
    fn part(&self, share: f64) -> Self {
        Self { congestion: self.congestion.part(share), ..*self }
    }
    fn joined(&self, next: &Self) -> Self {
        Self { congestion: self.congestion.joined(&next.congestion), ..*next }
    }
    const BYTES: usize = xcp::Header::BYTES + 8;
    fn encode(&self, out: &mut [u8]) {
        self.congestion.write(out, Self::BYTES);
        out[Self::BYTES - 8..Self::BYTES - 4].copy_from_slice(&self.bottleneck.to_be_bytes());
        out[Self::BYTES - 4..Self::BYTES].copy_from_slice(&self.next_bottleneck.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let congestion = xcp::Header::read(bytes, Self::BYTES)?;
        let (bottleneck, rest) = bytes[xcp::Header::BYTES..].split_first_chunk()?;
        let (next_bottleneck, _) = rest.split_first_chunk()?;
        Some(Self {
            congestion,
            bottleneck: u32::from_be_bytes(*bottleneck),
            next_bottleneck: u32::from_be_bytes(*next_bottleneck),
        })
    }
}

/// XCP's echo with the link that gave the smallest feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// XCP's echo.
    pub congestion: xcp::Echo,
    /// nextBottleneckId of the last packet.
    pub next_bottleneck: u32,
}

impl Wire for Echo {
    const BYTES: usize = xcp::Echo::BYTES + 4;
    fn encode(&self, out: &mut [u8]) {
        self.congestion.write(out, Self::BYTES);
        out[Self::BYTES - 4..Self::BYTES].copy_from_slice(&self.next_bottleneck.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let congestion = xcp::Echo::read(bytes, Self::BYTES)?;
        let (next_bottleneck, _) = bytes[xcp::Echo::BYTES..].split_first_chunk()?;
        Some(Self { congestion, next_bottleneck: u32::from_be_bytes(*next_bottleneck) })
    }
}

// ---------------------------------------------------------------------------------- router

/// XCP's router, which shuffles among the packets that name it.
#[derive(Clone, Debug)]
pub struct Router {
    id: u32,
    claim: Claim,
    inner: xcp::Router,
}

impl Router {
    /// `[ixcp-2007:3]` Returns the link that a packet names after this router has lowered its feedback.
    fn named(&self) -> u32 {
        if self.claim == Claim::LeastFeedback || self.inner.is_full() { self.id } else { ACCESS }
    }
}

impl crate::protocol::Router<IXcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let inner = xcp::Router::with_rule(&params.xcp(), link, xcp::Rule::Paired);
        Self { id: identifier(link), claim: params.claim, inner }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        let header = passing.header.as_deref();
        let local = header.is_some_and(|h| h.bottleneck == self.id);
        self.inner.count_arrival(passing.volume, passing.packets, header.map(|h| &h.congestion), local);
    }

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.inner.sample_queue(link.queue);
        if let Some(header) = passing.header.as_deref_mut() {
            let local = header.bottleneck == self.id;
            if self.inner.write_feedback(passing.volume, passing.packets, &mut header.congestion, local) {
                header.next_bottleneck = self.named();
            }
        }
    }

    fn poll_at(&self) -> Instant {
        self.inner.next_timer_at()
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.inner.set_capacity(link);
        self.inner.tick(link.queue, now);
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.inner.control_interval())
    }

    fn observe(&self, probe: &mut dyn Probe) {
        self.inner.record_signals(probe);
    }
}

// ---------------------------------------------------------------------------------- hosts

/// XCP's receiver, which also echoes the bottleneck.
#[derive(Clone, Debug)]
pub struct Receiver {
    next_bottleneck: u32,
    inner: xcp::Receiver,
}

impl crate::protocol::Receiver<IXcp> for Receiver {
    fn new(params: &Params) -> Self {
        Self { next_bottleneck: ACCESS, inner: xcp::Receiver::new(&params.xcp()) }
    }

    fn on_data(&mut self, received: &Received<Header>) {
        self.next_bottleneck = received.header.next_bottleneck;
        self.inner.on_data(&received.with_header(received.header.congestion));
    }

    fn echo(&mut self, now: Instant) -> Echo {
        Echo { congestion: self.inner.echo(now), next_bottleneck: self.next_bottleneck }
    }
}

/// XCP's source, which names its bottleneck.
#[derive(Clone, Debug)]
pub struct Source {
    bottleneck: u32,
    inner: xcp::Source,
}

impl crate::protocol::Source<IXcp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self { bottleneck: ACCESS, inner: xcp::Source::new(&params.xcp(), connection) }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        Header { congestion: self.inner.stamp(sending), bottleneck: self.bottleneck, next_bottleneck: ACCESS }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if ack.echo.next_bottleneck != ACCESS {
            self.bottleneck = ack.echo.next_bottleneck;
        }
        self.inner.on_ack(&ack.with_echo(ack.echo.congestion));
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        self.inner.on_event(event);
    }

    fn limit(&self) -> Limit {
        self.inner.limit()
    }
}

// ---------------------------------------------------------------------------------- parameters

crate::choice! {
    /// When a router names its link as a flow's next bottleneck.
    pub enum Claim {
        /// It gives the smallest feedback so far and has no spare bandwidth.
        FullLink = "full-link",
        /// It gives the smallest feedback so far: ixcp-2007 §3 to the letter.
        LeastFeedback = "least-feedback",
    }
}

xcp::xcp_params! {
    /// Parameters of iXCP: XCP's and one more.
    {
        /// When a router names its link as a flow's next bottleneck.
        claim: Claim = Claim::FullLink, "reading of ixcp-2007 §1: a bottleneck is full; least-feedback: §3 to the letter";
    }
}

impl Params {
    /// Returns XCP's part of them.
    const fn xcp(&self) -> xcp::Params {
        xcp::Params {
            alpha: self.alpha,
            beta: self.beta,
            gamma: self.gamma,
            header: self.header,
            feedback_at: self.feedback_at,
            first_window: self.first_window,
            halve_on_loss: self.halve_on_loss,
            min_interval: self.min_interval,
            max_interval: self.max_interval,
            first_interval: self.first_interval,
        }
    }

    fn check(&self) -> Result<(), ParamError> {
        self.xcp().check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{PacketKind, Router as _, Source as _};
    use crate::units::{Duration, Rate, Volume};

    const HERE: u32 = 3;

    fn link() -> LinkView {
        LinkView { id: HERE - 1, capacity: Rate::from_bps(96e6), target: None, queue: Volume::ZERO }
    }

    fn packet_of(cwnd: f32, bottleneck: u32) -> Header {
        let congestion = xcp::Header::Katabi { rtt: 0.1, cwnd, feedback: f32::MAX };
        Header { congestion, bottleneck, next_bottleneck: ACCESS }
    }

    fn passing(header: &mut Header) -> Passing<'_, Header> {
        let volume = Volume::from_bytes(1000.0);
        Passing { now: Instant::ZERO, volume, packets: 1.0, kind: PacketKind::Data, header: Some(header) }
    }

    /// Returns the feedback, in bytes, and the header of a packet that leaves.
    fn leave(router: &mut Router, mut header: Header) -> (f64, Header) {
        router.on_departure(&link(), &mut passing(&mut header));
        match header.congestion {
            xcp::Header::Katabi { feedback, .. } => (f64::from(feedback), header),
            xcp::Header::Falk { .. } => unreachable!("the packets here are Katabi's"),
        }
    }

    /// A router after 100 ms of two flows with an RTT of 100 ms and `bytes` in all, three quarters of them by a flow that is
    /// bottlenecked here.
    fn router_after(bytes: f32, claim: Claim) -> Router {
        let params = Params { claim, first_interval: Duration::from_millis(100), ..Params::default() };
        let mut router = Router::new(&params, &link());
        for (cwnd, bottleneck) in [(0.75 * bytes, HERE), (0.25 * bytes, 7)] {
            for _ in 0..(cwnd / 1000.0) as u32 {
                router.on_arrival(&link(), &mut passing(&mut packet_of(cwnd, bottleneck)));
            }
        }
        router.on_timer(&link(), Instant::from_secs(0.1));
        router
    }

    #[test]
    fn eight_bytes_more_out_and_four_back() {
        assert_eq!((Header::BYTES, Echo::BYTES), (xcp::Header::BYTES + 8, xcp::Echo::BYTES + 4));
        let mut out = [0; 28];
        let header = Header { next_bottleneck: 0x0102_0304, ..packet_of(1e5, HERE) };
        header.encode(&mut out);
        assert_eq!((out[1], &out[20..]), (28, &[0, 0, 0, 3, 1, 2, 3, 4][..]));
        assert_eq!(Header::decode(&out), Some(header));
        assert_eq!(xcp::Header::decode(&out), None, "no XCP header");
        let mut out = [0; 24];
        let echo = Echo { congestion: xcp::Echo::Window(-3.0), next_bottleneck: 9 };
        echo.encode(&mut out);
        assert_eq!((Echo::decode(&out), Echo::decode(&out[..23])), (Some(echo), None));
    }

    /// `[ixcp-2007:eq1, eq3]` 96 Mbit/s of all packets fill the link, so φ = 0 and h = γ·72: the local flow gains and loses
    /// all of it, the other flow neither.
    #[test]
    fn eq3_shuffles_local_flows_only() {
        let mut router = router_after(1200e3, Claim::FullLink);
        for (cwnd, bottleneck) in [(900e3, HERE), (300e3, 7)] {
            let (feedback, header) = leave(&mut router, packet_of(cwnd, bottleneck));
            assert!(feedback.abs() < 1.0, "{feedback}");
            assert_eq!(header.next_bottleneck, HERE);
        }
        // A small flow that names this link gains from it: C_p·X, X = 0.1 s/4, of 7.2 Mbit/s per 0.1 s of X,
        // times 0.1 s, less γ of its packet.
        let (feedback, _) = leave(&mut router, packet_of(4e3, HERE));
        let expected = 7.2e6 / 0.1 * 0.025 / 8.0 * 0.1 - 100.0;
        assert!((feedback / expected - 1.0).abs() < 0.01, "{feedback} is not {expected}");
        // XCP would divide the same sum between both flows; the flow that names another link gets none.
        let (feedback, _) = leave(&mut router, packet_of(4e3, 7));
        assert!(feedback.abs() < 1.0, "{feedback}");
    }

    /// `[ixcp-2007:3]` the smaller feedback names the bottleneck; by default a full link's only.
    #[test]
    fn the_smaller_feedback_names_the_bottleneck() {
        for (bytes, claim, named) in [
            (1200e3, Claim::FullLink, HERE),
            (1000e3, Claim::FullLink, ACCESS),
            (1200e3, Claim::LeastFeedback, HERE),
            (1000e3, Claim::LeastFeedback, HERE),
        ] {
            let mut router = router_after(bytes, claim);
            // An earlier link that gave more, and one that gave less.
            for (given, named) in [(1e6, named), (-1e6, 5)] {
                let mut header = Header { next_bottleneck: 5, ..packet_of(1e5, 7) };
                header.congestion = xcp::Header::Katabi { rtt: 0.1, cwnd: 1e5, feedback: given };
                let (_, header) = leave(&mut router, header);
                assert_eq!(header.next_bottleneck, named, "{claim:?} with {bytes} B in 100 ms");
            }
        }
    }

    #[test]
    fn a_source_names_what_the_acknowledgement_names() {
        let packet = Volume::from_bytes(1000.0);
        let mut source =
            Source::new(&Params::default(), &Connection { weight: 1.0, packet, initial_window: packet, seed: 0 });
        let mut named_after = |next_bottleneck| {
            let rtt = Duration::from_millis(100);
            source.on_ack(&Ack {
                acked: packet,
                in_flight: packet,
                ..Ack::new(Instant::ZERO, Echo { congestion: xcp::Echo::Window(0.0), next_bottleneck }, rtt)
            });
            let sent = source.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, packet));
            (sent.bottleneck, sent.next_bottleneck)
        };
        assert_eq!(named_after(ACCESS), (ACCESS, ACCESS));
        assert_eq!(named_after(4), (4, ACCESS));
        assert_eq!(named_after(ACCESS), (4, ACCESS), "no link named: it stays");
        assert_eq!(named_after(2), (2, ACCESS));
    }
}
