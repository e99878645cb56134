//! Faults of a packet's protocol header: it is removed, damaged, or replaced by a false one.
//!
//! They work on the bytes of the wire format, as a router or an attacker does, and know no law: only where a protocol's
//! congestion signal is among these bytes, and which codes of it grant the least and the most. Bytes that are no valid
//! value afterwards count as none.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::kernel::option::{OPTION_MAX, VALUE_AT};
use waterfill_laws::registry::{AnyEcho, AnyHeader, ProtocolId};
use waterfill_network::fault::FalseSignal;
use waterfill_network::random::{below, uniform};

use crate::packet::{Cargo, Flags, Packet};

/// Maximum length of a protocol's header or echo in bytes, in real or kernel arithmetic.
const MAX_BYTES: usize = {
    let (mut longest, mut i) = (OPTION_MAX, 0);
    while i < ProtocolId::ALL.len() {
        let (header, echo) = (ProtocolId::ALL[i].header_bytes(), ProtocolId::ALL[i].echo_bytes());
        longest = if header > longest { header } else { longest };
        longest = if echo > longest { echo } else { longest };
        i += 1;
    }
    longest
};

/// Removes a packet's header and its ECN bits.
pub(super) fn strip(packet: &mut Packet) {
    packet.cargo = match packet.cargo {
        Cargo::Header(header) if header.wire_bytes() > 0 => Cargo::Header(AnyHeader::None),
        Cargo::Echo(echo) if echo.wire_bytes() > 0 => Cargo::Echo(AnyEcho::None),
        other => other,
    };
    packet.flags.clear_ecn();
}

/// Inverts one bit of a packet's header, or the mark of a packet that has only ECN bits.
pub(super) fn corrupt(packet: &mut Packet, rng: &mut Pcg64) {
    let rewritten = rewrite(&mut packet.cargo, |_, bytes| {
        let bit = below(rng, bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    });
    if !rewritten && packet.flags.has(Flags::MARKABLE) {
        let marked = packet.flags.has(Flags::MARKED);
        set_mark(&mut packet.flags, !marked);
    }
}

/// Replaces a packet's congestion signal by a false value, or the mark of a packet that has only ECN bits.
pub(super) fn lie(packet: &mut Packet, value: FalseSignal, rng: &mut Pcg64) {
    let rewritten = rewrite(&mut packet.cargo, |signal, bytes| {
        if let Some(signal) = signal {
            signal.write(value, bytes, rng);
        }
    });
    if !rewritten && packet.flags.has(Flags::MARKABLE) {
        let marked = match value {
            FalseSignal::Zero => true,
            FalseSignal::Max => false,
            FalseSignal::Random => uniform(rng) < 0.5,
        };
        set_mark(&mut packet.flags, marked);
    }
}

/// Returns an echo with the signal that grants the most. An echo without a signal is returned unchanged.
pub(super) fn best(echo: AnyEcho) -> AnyEcho {
    let mut cargo = Cargo::Echo(echo);
    rewrite(&mut cargo, |signal, bytes| {
        if let Some(signal) = signal {
            signal.set(bytes, signal.max);
        }
    });
    match cargo {
        Cargo::Echo(echo) => echo,
        Cargo::Header(_) => AnyEcho::None,
    }
}

const fn set_mark(flags: &mut Flags, on: bool) {
    if on { flags.set(Flags::MARKED) } else { flags.clear(Flags::MARKED) }
}

/// Changes the bytes of a packet's header or echo. Returns false if the packet has neither.
fn rewrite(cargo: &mut Cargo, change: impl FnOnce(Option<SignalField>, &mut [u8])) -> bool {
    let mut bytes = [0; MAX_BYTES];
    match cargo {
        Cargo::Header(header) => {
            let bytes = &mut bytes[..header.wire_bytes()];
            let Some(id) = header.protocol().filter(|_| !bytes.is_empty()) else { return false };
            header.encode_into(bytes);
            let in_kernel = matches!(header, AnyHeader::Kernel(_));
            change(if in_kernel { SignalField::of_value(id) } else { SignalField::of_header(id, bytes) }, bytes);
            *header = header.decode_alike(bytes).unwrap_or(AnyHeader::None);
        }
        Cargo::Echo(echo) => {
            let bytes = &mut bytes[..echo.wire_bytes()];
            let Some(id) = echo.protocol().filter(|_| !bytes.is_empty()) else { return false };
            echo.encode_into(bytes);
            let in_kernel = matches!(echo, AnyEcho::Kernel(_));
            change(if in_kernel { SignalField::of_value(id) } else { SignalField::of_echo(id, bytes) }, bytes);
            *echo = echo.decode_alike(bytes).unwrap_or(AnyEcho::None);
        }
    }
    true
}

/// Position of a congestion signal in a header's or an echo's bytes, as a big-endian number.
#[derive(Clone, Copy, Debug)]
struct SignalField {
    at: usize,
    bytes: usize,
    /// Mask of the bits that belong to the signal.
    mask: u32,
    /// Code that grants nothing. `max` is the code that grants the most.
    zero: u32,
    max: u32,
}

/// First byte of a CSIG tag.
const CSIG_TPID: u8 = 0x88;

/// Largest window change that a fault writes as XCP's feedback, in bytes. No real window reaches it.
const FEEDBACK_MAX: f32 = 1e30;

impl SignalField {
    fn of_header(id: ProtocolId, bytes: &[u8]) -> Option<Self> {
        match id {
            ProtocolId::MaxNet if bytes[0] == CSIG_TPID => Some(Self::tag(bytes.len())),
            ProtocolId::MaxNet | ProtocolId::MaxNet2006 => Some(Self::price(5)),
            ProtocolId::Rcp | ProtocolId::AlphaRcp => Some(Self::rate(0)),
            ProtocolId::JetMax => Some(Self::target(12)),
            ProtocolId::Xcp | ProtocolId::IXcp | ProtocolId::PXcp => Self::feedback(12, bytes),
            _ => Self::of_both(id),
        }
    }

    fn of_echo(id: ProtocolId, bytes: &[u8]) -> Option<Self> {
        match id {
            ProtocolId::MaxNet | ProtocolId::MaxNet2006 => Some(Self::price(2)),
            ProtocolId::Rcp | ProtocolId::AlphaRcp => Some(Self::rate(4)),
            ProtocolId::JetMax => Some(Self::target(8)),
            ProtocolId::Xcp | ProtocolId::IXcp | ProtocolId::PXcp => Self::feedback(16, bytes),
            _ => Self::of_both(id),
        }
    }

    /// Returns the signal's position in an option's value, for a law in kernel arithmetic. Returns `None` for laws
    /// whose false signals require real arithmetic.
    fn of_value(id: ProtocolId) -> Option<Self> {
        let at = VALUE_AT;
        match id {
            ProtocolId::MaxNet | ProtocolId::MaxNet2006 => Some(Self::price(at)),
            // 65,535 less the factor's code.
            ProtocolId::Aecp => Some(Self { at, bytes: 3, mask: 0xffff, zero: 0xffff, max: 1 }),
            // 1 low, 3 overload.
            ProtocolId::Vcp => Some(Self { at, bytes: 3, mask: 3, zero: 3, max: 1 }),
            _ => None,
        }
    }

    /// Returns the signal's position for a protocol whose header and echo hold the signal at the same place. Returns
    /// `None` for other protocols.
    fn of_both(id: ProtocolId) -> Option<Self> {
        match id {
            ProtocolId::Aecp => Some(Self { at: 1, bytes: 2, mask: 0xffff, zero: 0, max: 0xfffe }),
            // 01 low, 11 overload.
            ProtocolId::Vcp => Some(Self { at: 0, bytes: 1, mask: 3, zero: 3, max: 1 }),
            // 01 accelerate, 10 brake.
            ProtocolId::Abc => Some(Self { at: 0, bytes: 1, mask: 3, zero: 2, max: 1 }),
            // A price that leaves a source its minimum rate, and one that no link has.
            ProtocolId::Mkc => {
                Some(Self { at: 4, bytes: 4, mask: u32::MAX, zero: 1e6_f32.to_bits(), max: (-1e6_f32).to_bits() })
            }
            ProtocolId::Rocc => Some(Self::rate(0)),
            // The flow's allocation at one link.
            ProtocolId::Sperc => Some(Self::rate(4)),
            // The largest delay on the path: a million seconds, and none.
            ProtocolId::Poseidon => Some(Self { at: 0, bytes: 4, mask: u32::MAX, zero: 1e6_f32.to_bits(), max: 0 }),
            _ => None,
        }
    }

    /// Returns MaxNet's 24-bit field at byte `at`: 23 bits of a price or a start rate, where higher codes grant less.
    /// Code 0 means "not written".
    const fn price(at: usize) -> Self {
        let code = (1 << 23) - 1;
        Self { at, bytes: 3, mask: code, zero: code, max: 1 }
    }

    /// Returns the code of a CSIG tag of so many bytes, which is MaxNet's price or start rate.
    const fn tag(length: usize) -> Self {
        let (at, bytes, mask, lowest) =
            if length == 4 { (2, 2, 31 << 7, 1 << 7) } else { (4, 4, 0xf_ffff << 8, 1 << 8) };
        Self { at, bytes, mask, zero: mask, max: lowest }
    }

    /// Returns XCP's feedback field. The frame's third byte selects the format of katabi-2002 or draft-falk; any other
    /// value gives `None`.
    fn feedback(at: usize, bytes: &[u8]) -> Option<Self> {
        let field = |zero, max| Some(Self { at, bytes: 4, mask: u32::MAX, zero, max });
        match bytes[2] & 0x0f {
            1 => field(i32::MIN as u32, (i32::MAX - 1) as u32),
            14 | 15 => field((-FEEDBACK_MAX).to_bits(), FEEDBACK_MAX.to_bits()),
            _ => None,
        }
    }

    /// Returns RCP's rate field at byte `at`.
    const fn rate(at: usize) -> Self {
        Self { at, bytes: 4, mask: u32::MAX, zero: 0, max: f32::MAX.to_bits() }
    }

    /// Returns JetMax's fair-rate field at byte `at`. Code 0 means that there is no rate, so the minimum is 1 bit/s.
    const fn target(at: usize) -> Self {
        Self { at, bytes: 4, mask: u32::MAX, zero: 1.0_f32.to_bits(), max: f32::MAX.to_bits() }
    }

    fn write(&self, value: FalseSignal, bytes: &mut [u8], rng: &mut Pcg64) {
        let code = match value {
            FalseSignal::Zero => self.zero,
            FalseSignal::Max => self.max,
            FalseSignal::Random => rng.next_u64() as u32,
        };
        self.set(bytes, code);
    }

    fn set(&self, bytes: &mut [u8], code: u32) {
        let field = &mut bytes[self.at..self.at + self.bytes];
        let mut word = [0; 4];
        let low = &mut word[4 - self.bytes..];
        low.copy_from_slice(field);
        let kept = u32::from_be_bytes(word) & !self.mask;
        field.copy_from_slice(&(kept | (code & self.mask)).to_be_bytes()[4 - self.bytes..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A false value must not leave a law's signal as it is, without a word. False signals of the others are refused
    /// (`network/resolve.py`).
    #[test]
    fn every_law_with_a_header_has_a_signal() {
        for id in ProtocolId::ALL.iter().copied().filter(|id| id.header_bytes() > 0) {
            let bytes = &[0, 0, 14];
            let known =
                [SignalField::of_header(id, bytes), SignalField::of_echo(id, bytes)].map(|found| found.is_some());
            let refused =
                matches!(id, ProtocolId::Hpcc | ProtocolId::PowerTcp | ProtocolId::Scone | ProtocolId::Own { .. });
            assert_eq!(known, [!refused, !refused], "{id:?}");
        }
    }
}
