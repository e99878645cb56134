//! SCONE, throughput advice in QUIC packets: a codec in real numbers, and the C codec of `kernel/scone.h`, compiled
//! unchanged.
//!
//! That header documents the format (draft-ietf-scone-protocol) and how rates are rounded. A signal n from 0 to 126
//! stands for 100 kbit/s·10^(n/20), and 127 for "unknown". Tests compare both versions for every signal.

#![allow(
    unsafe_code,
    reason = "the codec is C. Its functions take plain integers and structs of them by reference, keep no pointer, \
              allocate nothing and have no state, so every call is safe"
)]

use crate::math;
use crate::mirror::mirror;
use crate::units::Rate;

/// Rate signal for "no advice", which endpoints send.
pub const UNKNOWN: u8 = 127;
/// Period in seconds after which endpoints forget advice.
pub const PERIOD_S: f64 = 67.0;
/// Version of a SCONE packet. The first bit of the version field belongs to the rate signal.
pub const VERSION: u32 = 0x6f7d_c0fd;
/// Half a step of the rate scale as a ratio, 10^(1/40), which is the largest error of advice.
pub const HALF_STEP: f64 = 1.059_253_725_177_289;

/// Returns the rate of a signal; `None` for 127.
#[must_use]
pub fn rate(signal: u8) -> Option<Rate> {
    (signal < UNKNOWN).then(|| Rate::from_bps(1e5 * math::pow(10.0, f64::from(signal) / 20.0)))
}

/// Returns the signal nearest to a rate: 0 below the range, 127 above the range.
#[must_use]
pub fn signal(rate: Rate) -> u8 {
    // `as` saturates below at 0 and above at 255, and maps NaN to 0.
    ((20.0 * math::log10(rate.as_bps() / 1e5)).round() as u8).min(UNKNOWN)
}

/// Rule that derives the fair rate of a law's flows from the law's first signal: C's `enum scone_rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Rule for signals that are prices in units of 2⁻³⁴ s: MaxNet's demand function.
    Demand = 1,
    /// Rule for signals that are rates in units of 2^−`shift` bit/s.
    Rate = 2,
}

mirror! {
    /// Parameters of the advice that a link's law gives: C's `struct scone_advice`.
    #[expect(missing_docs, reason = "kernel/scone.h documents the fields")]
    pub struct Advice = waterfill_scone_advice_fields {
        x_max: u64,
        t: u32,
        rule: u32,
        shift: u32,
        reserved: u32,
    }
}

mirror! {
    /// Flow of datagrams at a network element: C's `struct scone_flow`.
    #[expect(missing_docs, reason = "kernel/scone.h documents the fields")]
    pub struct Flow = waterfill_scone_flow_fields {
        start: u64,
        last: u64,
        writes: u32,
        lowest: u32,
    }
}

mod c {
    use super::{Advice, Flow};

    unsafe extern "C" {
        pub(super) safe fn waterfill_scone_rate(code: u32) -> u64;
        pub(super) safe fn waterfill_scone_code(rate: u64) -> u32;
        pub(super) safe fn waterfill_scone_fair_rate(advice: &Advice, signal: u64) -> u64;
        pub(super) safe fn waterfill_scone_advise(advice: &Advice, signal: u64) -> u32;
        pub(super) safe fn waterfill_scone_is_packet(head: &[u8; 5]) -> u32;
        pub(super) safe fn waterfill_scone_read(head: &[u8; 5]) -> u32;
        pub(super) safe fn waterfill_scone_write(head: &mut [u8; 5], code: u32);
        pub(super) safe fn waterfill_scone_fits(destination: u32, source: u32, length: u32) -> u32;
        pub(super) safe fn waterfill_scone_may_write(flow: &mut Flow, now: u64, code: u32) -> u32;
    }
}

impl Advice {
    /// Returns the fair rate for a link's signal in bit/s, or 0 if there is none.
    #[must_use]
    pub fn fair_rate(&self, signal: u64) -> u64 {
        c::waterfill_scone_fair_rate(self, signal)
    }

    /// Returns the advice for a link's signal, or 127 if there is none.
    #[must_use]
    pub fn signal(&self, signal: u64) -> u8 {
        c::waterfill_scone_advise(self, signal) as u8
    }
}

impl Flow {
    /// Returns true if the flow's signal may be lowered at `now`, in ns. A permitted write is counted.
    pub fn may_write(&mut self, now: u64, signal: u8) -> bool {
        c::waterfill_scone_may_write(self, now, signal.into()) != 0
    }
}

/// Returns the rate of a signal in fixed-point arithmetic, in whole bit/s; 0 for signal 127.
#[must_use]
pub fn fixed_rate(signal: u8) -> u64 {
    c::waterfill_scone_rate(signal.into())
}

/// Returns the signal of a rate in bit/s in fixed-point arithmetic.
#[must_use]
pub fn fixed_signal(rate_bps: u64) -> u8 {
    c::waterfill_scone_code(rate_bps) as u8
}

/// SCONE packet at the start of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Rate signal of the packet.
    pub signal: u8,
    /// Reserved bit, which senders may set to any value.
    pub reserved: bool,
    /// Destination connection ID of the packet.
    pub destination: Vec<u8>,
    /// Source connection ID of the packet.
    pub source: Vec<u8>,
}

/// Reason why a datagram has no SCONE packet to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotScone {
    /// The datagram does not start with a SCONE packet.
    Other,
    /// The datagram starts like a SCONE packet, but its IDs do not fit or no other packet follows.
    Malformed,
}

impl Packet {
    /// Returns the bytes of the packet. Another QUIC packet must follow in the datagram.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0x80 | u8::from(self.reserved) << 6 | (self.signal & 0x7f) >> 1];
        bytes.extend((VERSION | u32::from(self.signal & 1) << 31).to_be_bytes());
        for id in [&self.destination, &self.source] {
            bytes.push(id.len() as u8);
            bytes.extend(id.iter().take(255));
        }
        bytes
    }

    /// Decodes the packet at the start of a datagram's payload.
    ///
    /// # Errors
    /// Why there is none.
    pub fn decode(datagram: &[u8]) -> Result<Self, NotScone> {
        let Some(([first, version @ ..], rest)) = datagram.split_first_chunk::<5>() else {
            return Err(NotScone::Other);
        };
        let version = u32::from_be_bytes(*version);
        if first & 0x80 == 0 || version & !(1 << 31) != VERSION {
            return Err(NotScone::Other);
        }
        let id = |bytes: &[u8]| -> Option<(Vec<u8>, usize)> {
            let length = usize::from(*bytes.first()?);
            Some((bytes.get(1..1 + length)?.to_vec(), 1 + length))
        };
        let (destination, taken) = id(rest).ok_or(NotScone::Malformed)?;
        let (source, more) = id(&rest[taken..]).ok_or(NotScone::Malformed)?;
        // The next packet starts with a byte and the same destination ID, in every version of QUIC.
        if rest.len() < taken + more + 1 + destination.len() {
            return Err(NotScone::Malformed);
        }
        let signal = (first & 0x3f) << 1 | (version >> 31) as u8;
        Ok(Self { signal, reserved: first & 0x40 != 0, destination, source })
    }
}

/// Lowers the signal of a datagram in fixed-point arithmetic, as the kernel's program does. Returns the previous
/// signal. A signal is never raised.
///
/// # Errors
/// Why there is nothing to change.
pub fn lower(datagram: &mut [u8], advice: u8) -> Result<u8, NotScone> {
    let length = datagram.len() as u32;
    let destination = datagram.get(5).copied();
    let source = destination.and_then(|bytes| datagram.get(6 + usize::from(bytes)).copied());
    let Some(head) = datagram.first_chunk_mut::<5>().filter(|head| c::waterfill_scone_is_packet(head) != 0) else {
        return Err(NotScone::Other);
    };
    let fits = |(a, b): (u8, u8)| c::waterfill_scone_fits(a.into(), b.into(), length) != 0;
    if !destination.zip(source).is_some_and(fits) {
        return Err(NotScone::Malformed);
    }
    let before = c::waterfill_scone_read(head) as u8;
    if advice < before {
        c::waterfill_scone_write(head, advice.into());
    }
    Ok(before)
}

#[cfg(test)]
mod tests;
