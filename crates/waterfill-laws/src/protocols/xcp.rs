//! XCP: routers tell every packet by how much its sender's window shall change.
//!
//! # Law
//! Once a control interval, the mean round trip d of its traffic, a router decides how much its
//! input shall change (efficiency), and parts this among packets so that flows become equal
//! (fairness): gains are equal for every flow, losses are in proportion to its rate. As long as
//! there is little to change it also moves γ of the traffic from all to all ("shuffling").
//!
//! - `eq1`  φ = α·d·(c − y) − β·b, a volume; here φ/d = α·(c − y) − β·b/d, a rate
//! - `eq2`  h = max{0, γ·y − |φ|}
//! - `cp`   C_p = (h + max{φ, 0}) / ΣX: a packet gains C_p·X, and the packets that a flow sends in d
//!   gain C_p·d, whatever its rate
//! - `cn`   C_n = (h + max{−φ, 0}) / Σs: a packet of s bytes loses C_n·s
//! - `d`    d = Σ(rtt·X) / ΣX, the mean over flows
//! - `x`    X = rtt·s/cwnd, the time between two packets of a flow
//! - `residue` a packet gets min(C_p·X, what is left of the gains) − min(C_n·s, what is left of the
//!   losses). If an earlier router gave less, that stays, and the difference counts as a loss dealt out
//! - `cwnd` cwnd ← max{cwnd + feedback, s} with every acknowledgement
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | c, y, b | `capacity`, `input`, `queue` | bit/s, bit/s, bytes |
//! | φ/d, h/d | `spare`, `shuffled` | bit/s |
//! | d | `interval` | s |
//! | X, ΣX | `x`, `arrived.x` | s |
//! | Σs | `arrived.volume` | bytes |
//! | C_p, C_n | `gain`, `loss` | bit/s per s, bit/s per byte |
//! | what is left | `residue_gain`, `residue_loss` | bit/s |
//! | cwnd, rtt, H_feedback | `Header::Katabi` | bytes, s, bytes |
//! | RTT, X, Delta_Throughput | `Header::Falk` | 2⁻²⁸ s, 2⁻²⁸ s, byte/s |
//!
//! # Header
//! Twenty bytes in data and as many in acknowledgements: the draft's frame (next protocol, length,
//! version and format, an unused byte, then four fields of 32 bits, the last of which is
//! Reverse_Feedback). Under `header = "katabi"` the fields are rtt, cwnd and feedback as 32-bit floats.
//!
//! # Router
//! [`Router`]: three sums at a packet's arrival, one feedback at its departure; C_p and C_n once
//! every d, the persistent queue once every (d − queue/c)/2.
//!
//! # Source
//! [`Source`]: adds the feedback to its window.
//!
//! # Parameters
//! [`Params`]: α, β, γ as in ixcp-2007 §2.1; intervals as in the authors' simulator.
//!
//! # Readings and deviations
//! - Katabi's fields by default; the arithmetic is the draft's, with changes of throughput and
//!   residues, under both headers. Δcwnd = Δthroughput·rtt makes them one: katabi-2002's
//!   p_i = ξ_p·rtt²·s/cwnd is C_p·X·rtt, its n_i = ξ_n·rtt·s is C_n·s·rtt.
//! - katabi-2002 gives its fields no widths. 32-bit floats keep a window to 6·10⁻⁸; whole bytes
//!   of feedback could not tell less than 0.1 % of a packet, and X no 100 Gbit/s in 2⁻²⁸ s.
//! - The frame's first word is checked for length, version and format, not for the protocol it names.
//! - In eq. 1 d is the control interval: the mean round trip, kept within `min_interval` and
//!   `max_interval`. Over a longer interval than d, β·b/d would drain the queue several times over.
//! - An interval without a single round trip in its packets starts the next with `first_interval`.
//! - The persistent queue is the smallest of the last (d − queue/c)/2, the draft's interval, at
//!   least 2 ms as in the authors' simulator; the packet in service does not count.
//! - A packet without a round trip (a SYN) is load and is not written to. Somebody else's packet is
//!   load as well, and acknowledgements are load of the way back.
//! - Every sender wants as much as it can get: it asks for the largest number of the field. Where
//!   that number comes back no router wrote, and the window stays.
//! - A gain is not taken up while less than half of the window is in use (RFC 7661's concern; the
//!   draft's sender would ask for no more than it needs).
//! - No paper gives the first window: it is the smallest, one packet.
//! - On a loss the window is halved and on a time-out it falls to one packet, as TCP's would:
//!   katabi-2002 leaves TCP's answer in place.
//! - Weights as in katabi-2002 §6: the sender states cwnd/weight, and so gains `weight` times as much.
//! - `feedback_at = "receiver"` is XCP-r (López Pacheco and Pham 2005): the receiver sums up all
//!   feedback, and every acknowledgement carries the sum: the window, less where it began and
//!   what the sender itself cut off. A lost acknowledgement loses nothing.
//! - A router that does not speak XCP on the path is not seen: its queue fills until packets are lost.
//!
//! # Validation
//! Equation tests below. The simulator's `xcp` tests: one bottleneck with both headers, weights and
//! lost acknowledgements; on ixcp-2007's Fig. 1 the short flow's rate against the equilibrium
//! x = (y/N)·γy/(γy − α(c − y)) that eq. 1 and 2 have there (within 2 % for 4 to 256 long flows and
//! for 1024, whose windows of one packet cannot shrink); on aecp-2010's Fig. 9 and 10 the 338 Mbit/s of
//! the flow before the narrow link (within 1 %), and 369 where the paper has 365 behind it, for
//! the residues let local flows keep what an earlier router took from the others.
//!
//! # References
//! `katabi-2002`: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product
//! Networks", SIGCOMM 2002. `draft-falk`: Falk, Pryadkin, Katabi, draft-falk-xcp-spec-03, 2007.
//! `ixcp-2007`: Zan, Yang, "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation".
//! López Pacheco, Pham, "Robust Transport Protocol for Dynamic High-Speed Networks: Enhancing the
//! XCP Approach", MICC-ICON 2005.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, Event, Host, Info, Kind, Limit, PacketKind, Protocol, Received, Sending, Signal, Wire,
};
use crate::units::{Instant, Rate, Volume};

mod router;
pub use router::{Router, Rule};

/// The protocol `xcp`.
#[derive(Debug)]
pub struct Xcp;

/// What XCP's routers, and those of its descendants, show.
pub(super) const SIGNALS: &[Signal] = &[
    Signal { name: "spare", unit: "bit/s", doc: "the change φ/d of its input that the router asks for" },
    Signal { name: "shuffled", unit: "bit/s", doc: "the traffic h/d that the router moves from all to all" },
    Signal { name: "interval", unit: "s", doc: "the router's control interval d" },
];

impl Protocol for Xcp {
    const INFO: Info = Info {
        name: "xcp",
        summary: "routers tell each packet how its window shall change; AIMD in the routers (2002)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: false,
        host: Host::EXPLICIT,
        signals: SIGNALS,
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

/// XCP, and the protocols that use its header, hosts and router as they are.
pub trait Family: Protocol<Params = Params, Header = Header, Echo = Echo> {
    /// How a router of this protocol allocates.
    const RULE: Rule;
}

impl Family for Xcp {
    const RULE: Rule = Rule::Draft;
}

// ---------------------------------------------------------------------------------- header

/// The congestion header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Header {
    /// The fields of katabi-2002.
    Katabi {
        /// Round trip in seconds; 0 is not known yet.
        rtt: f32,
        /// Window in bytes (over the flow's weight).
        cwnd: f32,
        /// How much the window shall change, in bytes.
        feedback: f32,
    },
    /// The fields of draft-falk.
    Falk {
        /// Round trip in 2⁻²⁸ s; 0 is not known yet.
        rtt: u32,
        /// Time between two packets in 2⁻²⁸ s.
        x: u32,
        /// How much the throughput shall change, in byte/s.
        delta_throughput: i32,
    },
}

const FRAME_BYTES: usize = 20;
/// Next protocol: TCP.
const PROTOCOL: u8 = 6;
/// Version 2, in the upper four bits.
const VERSION: u8 = 2 << 4;
/// draft-falk's standard format, and two that are not the draft's.
const FORMAT_FALK: u8 = 1;
const FORMAT_KATABI: u8 = 14;
const FORMAT_TOTAL: u8 = 15;
/// draft-falk: 28 bits after the binary point.
const TICKS_PER_S: f64 = (1 << 28) as f64;
/// What a sender asks for, and no router writes.
const ASK_KATABI: f32 = f32::MAX;
const ASK_FALK: i32 = i32::MAX;
/// Bounds sums of feedback: no window reaches it, and its sums stay far from infinity.
const FEEDBACK_MAX: f64 = 1e30;

fn write_frame(format: u8, fields: [[u8; 4]; 4], out: &mut [u8], length: usize) {
    out[..4].copy_from_slice(&[PROTOCOL, length as u8, VERSION | format, 0]);
    out[4..FRAME_BYTES].copy_from_slice(fields.as_flattened());
}

fn read_frame(bytes: &[u8], length: usize) -> Option<(u8, [[u8; 4]; 4])> {
    let frame = bytes.get(..length)?;
    let word = |i: usize| [frame[i], frame[i + 1], frame[i + 2], frame[i + 3]];
    let known = usize::from(frame[1]) == length && frame[2] & 0xf0 == VERSION;
    known.then(|| (frame[2] & 0x0f, [word(4), word(8), word(12), word(16)]))
}

/// A float of the wire that is a finite number of at least `least`.
fn real(bytes: [u8; 4], least: f32) -> Option<f32> {
    Some(f32::from_be_bytes(bytes)).filter(|x| x.is_finite() && *x >= least)
}

/// A volume of feedback as the wire carries it, short of [`ASK_KATABI`].
fn quantise(bytes: f64) -> f32 {
    bytes.clamp(-FEEDBACK_MAX, FEEDBACK_MAX) as f32
}

impl Header {
    /// What a sender writes.
    fn stamped(form: Form, rtt: Option<f64>, cwnd: Volume, packet: Volume) -> Self {
        let rtt_s = rtt.unwrap_or(0.0);
        match form {
            Form::Katabi => Self::Katabi { rtt: rtt_s as f32, cwnd: cwnd.as_bytes() as f32, feedback: ASK_KATABI },
            Form::Falk => {
                // A round trip that is known is at least one tick; `as` saturates at 16 s.
                let ticks = |s: f64| ((s * TICKS_PER_S + 0.5) as u32).max(u32::from(rtt.is_some()));
                let x = ticks(inter_packet_time(rtt_s, packet, cwnd));
                Self::Falk { rtt: ticks(rtt_s), x, delta_throughput: ASK_FALK }
            }
        }
    }

    /// The sender's round trip in seconds; none if it does not know.
    fn rtt(&self) -> Option<f64> {
        let s = match *self {
            Self::Katabi { rtt, .. } => f64::from(rtt),
            Self::Falk { rtt, .. } => f64::from(rtt) / TICKS_PER_S,
        };
        (s > 0.0).then_some(s)
    }

    /// X in seconds, summed over `packets`.
    fn x(&self, volume: Volume, packets: f64) -> f64 {
        match *self {
            Self::Katabi { rtt, cwnd, .. } => {
                inter_packet_time(f64::from(rtt), volume, Volume::from_bytes(f64::from(cwnd)))
            }
            Self::Falk { x, .. } => packets * f64::from(x) / TICKS_PER_S,
        }
    }

    /// The change of throughput so far; none before the first router.
    fn feedback(&self, rtt: f64) -> Option<Rate> {
        match *self {
            Self::Katabi { feedback, .. } => {
                (feedback < ASK_KATABI).then(|| Rate::from_bps(f64::from(feedback) * 8.0 / rtt))
            }
            Self::Falk { delta_throughput, .. } => {
                (delta_throughput < ASK_FALK).then(|| Rate::from_bps(f64::from(delta_throughput) * 8.0))
            }
        }
    }

    fn set_feedback(&mut self, change: Rate, rtt_s: f64) {
        let per_s = change.as_bps() / 8.0;
        match self {
            Self::Katabi { feedback, .. } => *feedback = quantise(per_s * rtt_s),
            // `as` saturates: a change of more than 17 Gbit/s takes several packets.
            Self::Falk { delta_throughput, .. } => *delta_throughput = (per_s.round() as i32).min(ASK_FALK - 1),
        }
    }

    /// The header as the frame of a header of `length` bytes.
    pub(super) fn write(&self, out: &mut [u8], length: usize) {
        let zero = [0; 4];
        match self {
            Self::Katabi { rtt, cwnd, feedback } => {
                let fields = [rtt.to_be_bytes(), cwnd.to_be_bytes(), feedback.to_be_bytes(), zero];
                write_frame(FORMAT_KATABI, fields, out, length);
            }
            Self::Falk { rtt, x, delta_throughput } => {
                let fields = [rtt.to_be_bytes(), x.to_be_bytes(), delta_throughput.to_be_bytes(), zero];
                write_frame(FORMAT_FALK, fields, out, length);
            }
        }
    }

    /// Reads what [`Header::write`] wrote.
    pub(super) fn read(bytes: &[u8], length: usize) -> Option<Self> {
        match read_frame(bytes, length)? {
            (FORMAT_KATABI, [rtt, cwnd, feedback, _]) => {
                Some(Self::Katabi { rtt: real(rtt, 0.0)?, cwnd: real(cwnd, 0.0)?, feedback: real(feedback, f32::MIN)? })
            }
            (FORMAT_FALK, [rtt, x, delta, _]) => Some(Self::Falk {
                rtt: u32::from_be_bytes(rtt),
                x: u32::from_be_bytes(x),
                delta_throughput: i32::from_be_bytes(delta),
            }),
            _ => None,
        }
    }
}

impl Default for Header {
    fn default() -> Self {
        Self::Katabi { rtt: 0.0, cwnd: 0.0, feedback: ASK_KATABI }
    }
}

impl Wire for Header {
    const EXTENSIVE: bool = true;
    fn part(&self, share: f64) -> Self {
        match *self {
            Self::Katabi { rtt, cwnd, feedback } if feedback < ASK_KATABI => {
                Self::Katabi { rtt, cwnd, feedback: quantise(f64::from(feedback) * share) }
            }
            Self::Falk { rtt, x, delta_throughput } if delta_throughput < ASK_FALK => {
                Self::Falk { rtt, x, delta_throughput: (f64::from(delta_throughput) * share).round() as i32 }
            }
            asked => asked,
        }
    }
    fn joined(&self, next: &Self) -> Self {
        match (*self, *next) {
            (Self::Katabi { feedback: before, .. }, Self::Katabi { rtt, cwnd, feedback })
                if before < ASK_KATABI && feedback < ASK_KATABI =>
            {
                Self::Katabi { rtt, cwnd, feedback: quantise(f64::from(before) + f64::from(feedback)) }
            }
            (Self::Falk { delta_throughput: before, .. }, Self::Falk { rtt, x, delta_throughput })
                if before < ASK_FALK && delta_throughput < ASK_FALK =>
            {
                let sum = before.saturating_add(delta_throughput).min(ASK_FALK - 1);
                Self::Falk { rtt, x, delta_throughput: sum }
            }
            _ => *next,
        }
    }
    const BYTES: usize = FRAME_BYTES;
    fn encode(&self, out: &mut [u8]) {
        self.write(out, Self::BYTES);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, Self::BYTES)
    }
}

/// What an acknowledgement carries in the field Reverse_Feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Echo {
    /// How much the window shall change, in bytes, since the last acknowledgement.
    Window(f32),
    /// How much the throughput shall change, in byte/s, since the last acknowledgement.
    Throughput(i32),
    /// XCP-r: all changes of the window since the connection began, in bytes.
    Total(f32),
}

impl Echo {
    /// The echo as the frame of an echo of `length` bytes.
    pub(super) fn write(self, out: &mut [u8], length: usize) {
        let (format, field) = match self {
            Self::Window(bytes) => (FORMAT_KATABI, bytes.to_be_bytes()),
            Self::Throughput(change) => (FORMAT_FALK, change.to_be_bytes()),
            Self::Total(bytes) => (FORMAT_TOTAL, bytes.to_be_bytes()),
        };
        write_frame(format, [[0; 4], [0; 4], [0; 4], field], out, length);
    }

    /// Reads what [`Echo::write`] wrote.
    pub(super) fn read(bytes: &[u8], length: usize) -> Option<Self> {
        match read_frame(bytes, length)? {
            (FORMAT_KATABI, [.., field]) => real(field, f32::MIN).map(Self::Window),
            (FORMAT_FALK, [.., field]) => Some(Self::Throughput(i32::from_be_bytes(field))),
            (FORMAT_TOTAL, [.., field]) => real(field, f32::MIN).map(Self::Total),
            _ => None,
        }
    }
}

impl Default for Echo {
    fn default() -> Self {
        Self::Window(0.0)
    }
}

impl Wire for Echo {
    const BYTES: usize = FRAME_BYTES;
    fn encode(&self, out: &mut [u8]) {
        self.write(out, Self::BYTES);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, Self::BYTES)
    }
}

/// `[draft-falk:x]` X = rtt·s/cwnd; 0 without a window.
fn inter_packet_time(rtt: f64, volume: Volume, cwnd: Volume) -> f64 {
    if cwnd > Volume::ZERO { rtt * (volume / cwnd) } else { 0.0 }
}

// ---------------------------------------------------------------------------------- receiver

/// The receiver: sends feedback back, summed over the packets that it acknowledges at once.
#[derive(Clone, Debug)]
pub struct Receiver {
    form: Form,
    apply: FeedbackAt,
    /// Feedback since the last acknowledgement: bytes, or byte/s with draft-falk's header.
    fresh: f64,
    /// All changes of the window in bytes (XCP-r).
    total: f64,
}

impl Receiver {
    pub(super) const fn new(params: &Params) -> Self {
        Self { form: params.header, apply: params.feedback_at, fresh: 0.0, total: 0.0 }
    }

    pub(super) fn on_data(&mut self, received: &Received<Header>) {
        let header = &received.header;
        let Some(rtt) = header.rtt() else { return };
        if header.feedback(rtt).is_none() {
            return; // no router on the path
        }
        let (change, bytes) = match *header {
            Header::Katabi { feedback, .. } => (f64::from(feedback), f64::from(feedback)),
            Header::Falk { delta_throughput, .. } => (f64::from(delta_throughput), f64::from(delta_throughput) * rtt),
        };
        self.fresh = (self.fresh + change).clamp(-FEEDBACK_MAX, FEEDBACK_MAX);
        self.total = (self.total + bytes).clamp(-FEEDBACK_MAX, FEEDBACK_MAX);
    }

    pub(super) fn echo(&mut self, _now: Instant) -> Echo {
        let fresh = std::mem::take(&mut self.fresh);
        match (self.apply, self.form) {
            (FeedbackAt::Receiver, _) => Echo::Total(quantise(self.total)),
            (FeedbackAt::Source, Form::Katabi) => Echo::Window(quantise(fresh)),
            (FeedbackAt::Source, Form::Falk) => Echo::Throughput(fresh.round() as i32),
        }
    }
}

impl<P: Family> crate::protocol::Receiver<P> for Receiver {
    fn new(params: &Params) -> Self {
        Self::new(params)
    }

    fn on_data(&mut self, received: &Received<Header>) {
        self.on_data(received);
    }

    fn echo(&mut self, now: Instant) -> Echo {
        self.echo(now)
    }
}

// ---------------------------------------------------------------------------------- source

/// The source: its window changes by what comes back.
#[derive(Clone, Debug)]
pub struct Source {
    form: Form,
    halve_on_loss: bool,
    weight: f64,
    packet: Volume,
    cwnd: Volume,
    /// Smoothed round trip in seconds.
    srtt: Option<f64>,
    /// XCP-r: the sum in the newest acknowledgement.
    total: f64,
}

/// No window is larger: 10¹⁵ bytes are a second at 8 Pbit/s.
const WINDOW_MAX: Volume = Volume::from_bytes(1e15);
/// RFC 6298's weight of a new round trip.
const RTT_GAIN: f64 = 1.0 / 8.0;

impl Source {
    pub(super) fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            form: params.header,
            halve_on_loss: params.halve_on_loss,
            weight: connection.weight,
            packet: connection.packet,
            cwnd: params.first_window * connection.packet,
            srtt: None,
            total: 0.0,
        }
    }

    pub(super) fn stamp(&self, sending: &Sending) -> Header {
        // A SYN states no round trip: it asks for nothing that a router would have to keep.
        let rtt = self.srtt.filter(|_| sending.kind != PacketKind::Syn);
        Header::stamped(self.form, rtt, self.cwnd / self.weight, sending.volume)
    }

    pub(super) fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_secs();
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt + RTT_GAIN * (rtt - srtt)));
        }
        let change = match ack.echo {
            Echo::Window(bytes) => f64::from(bytes),
            Echo::Throughput(change) => f64::from(change) * self.srtt.unwrap_or(0.0),
            Echo::Total(bytes) => {
                let total = f64::from(bytes);
                total - std::mem::replace(&mut self.total, total)
            }
        };
        let used = ack.in_flight + ack.acked;
        if change <= 0.0 || 2.0 * used >= self.cwnd {
            self.cwnd = cwnd_next(self.cwnd, Volume::from_bytes(change), self.packet);
        }
    }

    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Loss if self.halve_on_loss => self.cwnd = (self.cwnd / 2.0).max(self.packet),
            Event::Timeout if self.halve_on_loss => self.cwnd = self.packet,
            _ => {}
        }
    }

    pub(super) const fn limit(&self) -> Limit {
        Limit { window: Some(self.cwnd), pacing: None }
    }
}

impl<P: Family> crate::protocol::Source<P> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self::new(params, connection)
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        Self::stamp(self, sending)
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        self.on_ack(ack);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        self.on_event(event);
    }

    fn limit(&self) -> Limit {
        self.limit()
    }
}

/// `[katabi-2002:cwnd]` max{cwnd + feedback, s}.
fn cwnd_next(cwnd: Volume, feedback: Volume, packet: Volume) -> Volume {
    let next = (cwnd + feedback).max(packet);
    if next > WINDOW_MAX { WINDOW_MAX } else { next }
}

// ---------------------------------------------------------------------------------- parameters

crate::choice! {
    /// Which congestion header.
    pub enum Form {
        /// Window, round trip and feedback in bytes.
        Katabi = "katabi",
        /// Round trip, time between packets and change of throughput.
        Falk = "falk",
    }
}

crate::choice! {
    /// Which end adds up the feedback.
    pub enum FeedbackAt {
        /// The sender, from each acknowledgement.
        Source = "source",
        /// The receiver (XCP-r): acknowledgements carry the sum.
        Receiver = "receiver",
    }
}

/// The parameters of XCP, followed by those of a descendant.
macro_rules! xcp_params {
    ($(#[$meta:meta])* { $($more:tt)* }) => {
        $crate::params! {
            $(#[$meta])*
            pub struct Params {
                /// Gain α on unused capacity.
                alpha: f64 = 0.4, "ixcp-2007 §2.1";
                /// Gain β on the persistent queue.
                beta: f64 = 0.226, "ixcp-2007 §2.1";
                /// Share γ of the traffic that is shuffled.
                gamma: f64 = 0.1, "ixcp-2007 §2.1";
                /// Which congestion header.
                header: $crate::protocols::xcp::Form = $crate::protocols::xcp::Form::Katabi,
                    "katabi-2002; falk: draft-falk-xcp-spec-03";
                /// Which end adds up the feedback; the receiver is XCP-r.
                feedback_at: $crate::protocols::xcp::FeedbackAt = $crate::protocols::xcp::FeedbackAt::Source,
                    "katabi-2002; receiver: López Pacheco and Pham 2005";
                /// The window before any feedback, in packets.
                first_window: f64 = 1.0, "reading: the smallest window";
                /// Whether a loss halves the window, and a time-out makes it one packet.
                halve_on_loss: bool = true, "katabi-2002: as TCP";
                /// The shortest control interval.
                min_interval: $crate::units::Duration = $crate::units::Duration::from_millis(1), "the authors' ns-2 module";
                /// The longest control interval.
                max_interval: $crate::units::Duration = $crate::units::Duration::from_millis(1000), "the authors' ns-2 module";
                /// The control interval before any round trip is known.
                first_interval: $crate::units::Duration = $crate::units::Duration::from_millis(50), "the authors' ns-2 module";
                $($more)*
            }
        }
    };
}
pub(super) use xcp_params;

xcp_params! {
    /// Parameters of XCP and P-XCP.
    {}
}

impl Params {
    pub(super) fn check(&self) -> Result<(), ParamError> {
        let unit = |x: f64| x > 0.0 && x < 1.0;
        require(unit(self.alpha), "alpha", "a number in (0, 1)")?;
        require((0.0..1.0).contains(&self.beta), "beta", "a number in [0, 1)")?;
        require((0.0..1.0).contains(&self.gamma), "gamma", "a number in [0, 1)")?;
        require((1.0..=1e6).contains(&self.first_window), "first_window", "1 to 1e6 packets")?;
        require(!self.min_interval.is_zero(), "min_interval", "a time above zero")?;
        require(self.max_interval >= self.min_interval, "max_interval", "at least min_interval")?;
        let bounds = self.min_interval..=self.max_interval;
        require(bounds.contains(&self.first_interval), "first_interval", "a time from min_interval to max_interval")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    use crate::units::Duration;

    pub(super) fn bps(bps: f64) -> Rate {
        Rate::from_bps(bps)
    }

    pub(super) fn bytes(bytes: f64) -> Volume {
        Volume::from_bytes(bytes)
    }

    pub(super) fn packet_of(form: Form, rtt: f64, cwnd: f64) -> Header {
        Header::stamped(form, Some(rtt), bytes(cwnd), bytes(1000.0))
    }

    pub(super) fn feedback(header: &Header) -> f64 {
        match *header {
            Header::Katabi { feedback, .. } => f64::from(feedback),
            Header::Falk { delta_throughput, .. } => f64::from(delta_throughput),
        }
    }

    fn roundtrip(header: Header) -> [u8; 20] {
        let mut out = [0; 20];
        header.encode(&mut out);
        assert_eq!(Header::decode(&out), Some(header));
        out
    }

    #[test]
    fn headers_on_the_wire() {
        // 80 ms are 21474836 ticks of 2⁻²⁸ s; X = 80 ms · 1000/100000 is 0.8 ms, 214748 ticks.
        let mut falk = packet_of(Form::Falk, 0.08, 1e5);
        falk.set_feedback(bps(-8.0 * 258.0), 0.08);
        let out = roundtrip(falk);
        assert_eq!(out[..4], [6, 20, 0x21, 0]);
        assert_eq!(out[4..8], 21_474_836_u32.to_be_bytes());
        assert_eq!(out[8..12], 214_748_u32.to_be_bytes());
        assert_eq!(out[12..], [0xff, 0xff, 0xfe, 0xfe, 0, 0, 0, 0]);
        let out = roundtrip(packet_of(Form::Katabi, 0.5, 1024.0));
        assert_eq!(out, [6, 20, 0x2e, 0, 0x3f, 0, 0, 0, 0x44, 0x80, 0, 0, 0x7f, 0x7f, 0xff, 0xff, 0, 0, 0, 0]);
        assert_eq!(Header::decode(&out[..19]), None);
        let not_a_number = [6, 20, 0x2e, 0, 0x7f, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Header::decode(&not_a_number), None);
        for echo in [Echo::Window(-1.5), Echo::Throughput(i32::MIN), Echo::Total(1e9)] {
            let mut out = [0; 20];
            echo.encode(&mut out);
            assert_eq!(Echo::decode(&out), Some(echo));
        }
    }

    #[test]
    fn what_no_router_wrote_can_be_told_from_all_that_one_writes() {
        for form in [Form::Katabi, Form::Falk] {
            let mut header = packet_of(form, 0.08, 1e5);
            assert_eq!(header.feedback(0.08), None);
            header.set_feedback(bps(1e40), 0.08);
            assert!(header.feedback(0.08).is_some());
        }
    }

    fn ack(echo: Echo) -> Ack<Echo> {
        let rtt = Duration::from_millis(100);
        Ack {
            now: Instant::ZERO,
            echo,
            kind: PacketKind::Ack,
            acked: bytes(1000.0),
            rtt: Some(rtt),
            base_rtt: rtt,
            in_flight: bytes(1e6),
            marked: Volume::ZERO,
            smoothed_rtt: rtt,
            recovering: false,
            window_limited: true,
        }
    }

    fn source(params: &Params) -> Source {
        let packet = bytes(1000.0);
        Source::new(params, &Connection { weight: 1.0, packet, initial_window: 10.0 * packet, seed: 0 })
    }

    /// `[katabi-2002:cwnd]` the window moves by the feedback, not below one packet.
    #[test]
    fn cwnd_follows_feedback() {
        let mut source = source(&Params::default());
        assert_eq!(source.cwnd, bytes(1000.0));
        source.on_ack(&ack(Echo::Window(2500.0)));
        assert_eq!(source.cwnd, bytes(3500.0));
        source.on_ack(&ack(Echo::Window(-500.0)));
        assert_eq!(source.cwnd, bytes(3000.0));
        source.on_ack(&ack(Echo::Throughput(10_000))); // 10 kB/s · 100 ms
        assert_eq!(source.cwnd, bytes(4000.0));
        source.on_ack(&ack(Echo::Window(-1e9)));
        assert_eq!(source.cwnd, bytes(1000.0));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut source = source(&Params { first_window: 100.0, ..Params::default() });
        source.on_ack(&Ack { in_flight: bytes(48e3), ..ack(Echo::Window(1000.0)) });
        assert_eq!(source.cwnd, bytes(100e3));
        source.on_ack(&Ack { in_flight: bytes(49e3), ..ack(Echo::Window(1000.0)) });
        assert_eq!(source.cwnd, bytes(101e3));
    }

    #[test]
    fn losses_cut_the_window_as_tcp_would() {
        let mut cut = source(&Params { first_window: 100.0, ..Params::default() });
        cut.on_event(Event::Loss);
        assert_eq!(cut.cwnd, bytes(50e3));
        cut.on_event(Event::Timeout);
        assert_eq!(cut.cwnd, bytes(1e3));
        let mut whole = source(&Params { first_window: 100.0, halve_on_loss: false, ..Params::default() });
        whole.on_event(Event::Loss);
        assert_eq!(whole.cwnd, bytes(100e3));
    }

    /// A sender of weight 2 states half its window, so X and the gain are twice as large.
    #[test]
    fn a_weight_scales_the_gain() {
        let packet = bytes(1000.0);
        let connection = Connection { weight: 2.0, packet, initial_window: packet, seed: 0 };
        let mut double = Source::new(&Params { first_window: 100.0, ..Params::default() }, &connection);
        double.on_ack(&ack(Echo::Window(0.0)));
        let header = double.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, packet));
        close(header.x(packet, 1.0), 2.0 * 0.1 * 1000.0 / 100e3, 1e-6);
    }

    fn received(form: Form, change: Option<f64>) -> Received<Header> {
        let mut header = packet_of(form, 0.1, 1e5);
        if let Some(bytes_per_s) = change {
            header.set_feedback(bps(8.0 * bytes_per_s), 0.1);
        }
        Received { now: Instant::ZERO, kind: PacketKind::Data, header, rtt: None }
    }

    #[test]
    fn an_acknowledgement_sums_what_it_answers() {
        for (form, sum) in [(Form::Katabi, Echo::Window(300.0)), (Form::Falk, Echo::Throughput(3000))] {
            let mut receiver = Receiver::new(&Params { header: form, ..Params::default() });
            receiver.on_data(&received(form, Some(1000.0)));
            receiver.on_data(&received(form, Some(2000.0)));
            receiver.on_data(&received(form, None)); // no router wrote
            assert_eq!(receiver.echo(Instant::ZERO), sum);
            assert_eq!(feedback_of(receiver.echo(Instant::ZERO)), 0.0);
        }
    }

    fn feedback_of(echo: Echo) -> f64 {
        match echo {
            Echo::Window(x) | Echo::Total(x) => f64::from(x),
            Echo::Throughput(x) => f64::from(x),
        }
    }

    /// XCP-r: whichever acknowledgements are lost, the last one tells all.
    #[test]
    fn the_receivers_sum_outlives_lost_acknowledgements() {
        let cwnd_after = |feedback_at, delivered: [bool; 4]| {
            let params = Params { feedback_at, ..Params::default() };
            let (mut receiver, mut source) = (Receiver::new(&params), source(&params));
            for arrives in delivered {
                receiver.on_data(&received(Form::Katabi, Some(5000.0)));
                let echo = receiver.echo(Instant::ZERO);
                if arrives {
                    source.on_ack(&ack(echo));
                }
            }
            source.cwnd.as_bytes()
        };
        let (all, last) = ([true; 4], [false, false, false, true]);
        assert_eq!(cwnd_after(FeedbackAt::Receiver, all), 3000.0);
        assert_eq!(cwnd_after(FeedbackAt::Receiver, last), 3000.0);
        assert_eq!(cwnd_after(FeedbackAt::Source, all), 3000.0);
        assert_eq!(cwnd_after(FeedbackAt::Source, last), 1500.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |params: Params| params.check().is_err();
        assert!(refused(Params { alpha: 0.0, ..Params::default() }));
        assert!(refused(Params { gamma: 1.0, ..Params::default() }));
        assert!(refused(Params { first_window: 0.5, ..Params::default() }));
        assert!(refused(Params { min_interval: Duration::from_millis(2000), ..Params::default() }));
        assert!(Params::default().check().is_ok());
    }
}
