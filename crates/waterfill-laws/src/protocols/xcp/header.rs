//! Congestion headers of data packets and acknowledgements, in the forms of katabi-2002 and draft-falk.

use super::Form;
use crate::protocol::Wire;
use crate::units::{Rate, Volume};

/// Congestion header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Header {
    /// Fields of katabi-2002.
    Katabi {
        /// RTT in seconds; 0 if not known yet.
        rtt: f32,
        /// Window in bytes, divided by the flow's weight.
        cwnd: f32,
        /// Change of the window, in bytes.
        feedback: f32,
    },
    /// Fields of draft-falk.
    Falk {
        /// RTT in 2⁻²⁸ s; 0 if not known yet.
        rtt: u32,
        /// Time between two packets in 2⁻²⁸ s.
        x: u32,
        /// Change of the throughput, in byte/s.
        delta_throughput: i32,
    },
}

const FRAME_BYTES: usize = 20;
/// Value of the protocol field: TCP follows.
const PROTOCOL: u8 = 6;
/// Version 2, in the upper four bits of its byte.
const VERSION: u8 = 2 << 4;
/// Number of draft-falk's standard format. Numbers 14 and 15 are our own formats.
const FORMAT_FALK: u8 = 1;
const FORMAT_KATABI: u8 = 14;
const FORMAT_TOTAL: u8 = 15;
/// Clock ticks per second: draft-falk's times have 28 bits after the binary point.
const TICKS_PER_S: f64 = (1 << 28) as f64;
/// Feedback that a sender writes as a request; routers never write it.
const ASK_KATABI: f32 = f32::MAX;
const ASK_FALK: i32 = i32::MAX;
/// Limit of sums of feedback, in bytes. No window reaches this limit, and sums below it stay finite.
pub(super) const FEEDBACK_MAX: f64 = 1e30;

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

/// Reads a floating-point number; `None` unless it is finite and at least `min`.
fn real(bytes: [u8; 4], min: f32) -> Option<f32> {
    Some(f32::from_be_bytes(bytes)).filter(|x| x.is_finite() && *x >= min)
}

/// Returns a feedback in bytes as a number on the wire, below [`ASK_KATABI`].
pub(super) fn quantise(bytes: f64) -> f32 {
    bytes.clamp(-FEEDBACK_MAX, FEEDBACK_MAX) as f32
}

impl Header {
    /// Creates the header that a sender writes.
    pub(super) fn stamped(form: Form, rtt: Option<f64>, cwnd: Volume, packet: Volume) -> Self {
        let rtt_s = rtt.unwrap_or(0.0);
        match form {
            Form::Katabi => Self::Katabi { rtt: rtt_s as f32, cwnd: cwnd.as_bytes() as f32, feedback: ASK_KATABI },
            Form::Falk => {
                // A known RTT is at least one tick; `as` saturates at 16 s.
                let ticks = |s: f64| ((s * TICKS_PER_S + 0.5) as u32).max(u32::from(rtt.is_some()));
                let x = ticks(inter_packet_time(rtt_s, packet, cwnd));
                Self::Falk { rtt: ticks(rtt_s), x, delta_throughput: ASK_FALK }
            }
        }
    }

    /// Returns the sender's RTT in seconds, or `None` if the sender does not know it.
    pub(super) fn rtt(&self) -> Option<f64> {
        let s = match *self {
            Self::Katabi { rtt, .. } => f64::from(rtt),
            Self::Falk { rtt, .. } => f64::from(rtt) / TICKS_PER_S,
        };
        (s > 0.0).then_some(s)
    }

    /// Returns the time X between packets in seconds, summed over `packets`.
    pub(super) fn x(&self, volume: Volume, packets: f64) -> f64 {
        match *self {
            Self::Katabi { rtt, cwnd, .. } => {
                inter_packet_time(f64::from(rtt), volume, Volume::from_bytes(f64::from(cwnd)))
            }
            Self::Falk { x, .. } => packets * f64::from(x) / TICKS_PER_S,
        }
    }

    /// Returns the change of throughput so far, or `None` before the first router.
    pub(super) fn feedback(&self, rtt: f64) -> Option<Rate> {
        match *self {
            Self::Katabi { feedback, .. } => {
                (feedback < ASK_KATABI).then(|| Rate::from_bps(f64::from(feedback) * 8.0 / rtt))
            }
            Self::Falk { delta_throughput, .. } => {
                (delta_throughput < ASK_FALK).then(|| Rate::from_bps(f64::from(delta_throughput) * 8.0))
            }
        }
    }

    pub(super) fn set_feedback(&mut self, change: Rate, rtt_s: f64) {
        let per_s = change.as_bps() / 8.0;
        match self {
            Self::Katabi { feedback, .. } => *feedback = quantise(per_s * rtt_s),
            // `as` saturates: a change of more than 17 Gbit/s takes several packets.
            Self::Falk { delta_throughput, .. } => *delta_throughput = (per_s.round() as i32).min(ASK_FALK - 1),
        }
    }

    /// Encodes the header into a frame whose length field says `length` bytes.
    pub(in crate::protocols) fn write(&self, out: &mut [u8], length: usize) {
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

    /// Decodes a header written by [`Header::write`]. Returns `None` for other bytes.
    pub(in crate::protocols) fn read(bytes: &[u8], length: usize) -> Option<Self> {
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

/// Reverse_Feedback field of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Echo {
    /// Change of the window since the last acknowledgement, in bytes.
    Window(f32),
    /// Change of the throughput since the last acknowledgement, in byte/s.
    Throughput(i32),
    /// Sum of all changes of the window since the start of the connection, in bytes (XCP-r).
    Total(f32),
}

impl Echo {
    /// Encodes the echo into a frame whose length field says `length` bytes.
    pub(in crate::protocols) fn write(self, out: &mut [u8], length: usize) {
        let last = |field| [[0; 4], [0; 4], [0; 4], field];
        let (format, fields) = match self {
            Self::Window(bytes) => (FORMAT_KATABI, last(bytes.to_be_bytes())),
            Self::Throughput(change) => (FORMAT_FALK, last(change.to_be_bytes())),
            Self::Total(bytes) => (FORMAT_TOTAL, last(bytes.to_be_bytes())),
        };
        write_frame(format, fields, out, length);
    }

    /// Decodes an echo written by [`Echo::write`]. Returns `None` for other bytes.
    pub(in crate::protocols) fn read(bytes: &[u8], length: usize) -> Option<Self> {
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

/// `[draft-falk:x]` Returns the time between packets, X = rtt·s/cwnd; 0 without a window.
pub(super) fn inter_packet_time(rtt: f64, volume: Volume, cwnd: Volume) -> f64 {
    if cwnd > Volume::ZERO { rtt * (volume / cwnd) } else { 0.0 }
}
