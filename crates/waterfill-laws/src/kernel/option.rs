//! TCP option that a kernel's host would write for a packet of the simulator (`waterfill-linux/bpf/wire.h`).
//!
//! In kernel arithmetic a simulated packet carries this option with one value, filled up to four bytes as TCP does: data the
//! forward value, acknowledgements the echo. A segment that needs both, or TCP's own options, is longer; the simulator's
//! connections send data one way.

use super::{KernelLaw, VALUE_MAX, Value};

/// Kind of the TCP option: RFC 6994's shared experiment.
pub const KIND: u8 = 253;
/// Identifier of our experiment (RFC 6994's ExID).
pub const EXID: u16 = 0x5746;
/// Length of the longest option in bytes: 27 bytes of iXCP with both values, padded.
pub const OPTION_MAX: usize = 28;
/// Maximum length in bytes of a SYN-ACK's option with both values. A longer option contains only the request.
const SYN_ACK_MAX: usize = 20;
/// Offset of the first value in bytes, after kind, length, identifier and type.
pub const VALUE_AT: usize = 5;

const FORWARD: u8 = 1;
const ECHO: u8 = 2;
const BOTH: u8 = 3;

/// Bytes of a TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption {
    bytes: [u8; OPTION_MAX],
    length: usize,
}

impl TcpOption {
    /// Returns the option's bytes from its kind on, without TCP's padding after the option.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Returns a law's option with a forward value, an echo or both, or `None` if neither is given.
#[must_use]
pub fn encode(law: &KernelLaw, forward: Option<&Value>, echo: Option<&Value>) -> Option<TcpOption> {
    let mut bytes = [0; OPTION_MAX];
    let role = match (forward, echo) {
        (Some(_), None) => FORWARD,
        (None, Some(_)) => ECHO,
        (Some(_), Some(_)) => BOTH,
        (None, None) => return None,
    };
    let mut at = VALUE_AT;
    for (value, length) in [(forward, law.forward_bytes()), (echo, law.echo_bytes())] {
        let Some(value) = value else { continue };
        bytes[at..at + length].copy_from_slice(&value[..length]);
        at += length;
    }
    let length = if role == BOTH { at.next_multiple_of(4) } else { at };
    let [high, low] = EXID.to_be_bytes();
    bytes[..VALUE_AT].copy_from_slice(&[KIND, length as u8, high, low, 4 * law.number() as u8 + role]);
    Some(TcpOption { bytes, length })
}

/// Returns the option of a SYN-ACK: request and answer if both fit, otherwise only the request.
#[must_use]
pub fn encode_syn_ack(law: &KernelLaw, request: &Value, answer: &Value) -> Option<TcpOption> {
    let both = (VALUE_AT + law.forward_bytes() + law.echo_bytes()).next_multiple_of(4);
    encode(law, Some(request), (both <= SYN_ACK_MAX).then_some(answer))
}

/// Padding byte between TCP options.
const NOP: u8 = 1;

/// Type of the packets that carry a law's value: data packets or acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Value carried by data packets.
    Forward,
    /// Value carried by acknowledgements.
    Echo,
}

impl Carries {
    const fn value_bytes(self, law: &KernelLaw) -> usize {
        match self {
            Self::Forward => law.forward_bytes(),
            Self::Echo => law.echo_bytes(),
        }
    }

    /// Returns the number of bytes that the value's option adds to a segment.
    #[must_use]
    pub const fn segment_bytes(self, law: &KernelLaw) -> usize {
        (VALUE_AT + self.value_bytes(law)).next_multiple_of(4)
    }

    /// Writes the option as it appears in a segment into the first [`Carries::segment_bytes`] bytes of `out`.
    pub fn write(self, law: &KernelLaw, value: &Value, out: &mut [u8]) {
        let option = match self {
            Self::Forward => encode(law, Some(value), None),
            Self::Echo => encode(law, None, Some(value)),
        };
        out[..self.segment_bytes(law)].fill(NOP);
        if let Some(option) = &option {
            out[..option.length].copy_from_slice(option.as_bytes());
        }
    }

    /// Reads an option written by [`Carries::write`]. Returns `None` for another option, or if bytes are missing.
    #[must_use]
    pub fn read(self, law: &KernelLaw, bytes: &[u8]) -> Option<Value> {
        let mut value = [0; VALUE_MAX];
        let length = self.value_bytes(law);
        value[..length].copy_from_slice(bytes.get(VALUE_AT..VALUE_AT + length)?);
        let mut expected = [0; OPTION_MAX];
        self.write(law, &value, &mut expected);
        let length = self.segment_bytes(law);
        (bytes.get(..length)? == &expected[..length]).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(name: &str) -> &'static KernelLaw {
        crate::registry::ProtocolId::by_name(name)
            .and_then(crate::registry::ProtocolId::law)
            .expect("a law with a kernel form")
    }

    fn bytes(option: Option<TcpOption>) -> Vec<u8> {
        option.unwrap().as_bytes().to_vec()
    }

    #[test]
    fn options_have_the_lengths_of_the_reference() {
        // docs/reference/daemon.md: bytes with data and with an echo.
        let lengths = [
            ("maxnet", 8, 8),
            ("maxnet2006", 8, 8),
            ("aecp", 8, 8),
            ("rcp", 10, 8),
            ("vcp", 8, 8),
            ("xcp", 16, 11),
            ("pxcp", 16, 11),
            ("ixcp", 20, 13),
            ("jetmax", 17, 16),
        ];
        let value = [1; VALUE_MAX];
        let listed = crate::registry::kernel_protocols().len();
        assert_eq!(lengths.len(), listed, "a law is missing here and in docs/reference/daemon.md (table of options)");
        for (name, forward, echo) in lengths {
            let law = law(name);
            let data = bytes(encode(law, Some(&value), None));
            assert_eq!((data.len(), data[1] as usize), (forward, forward), "{name}");
            assert_eq!(data[..5], [253, forward as u8, 0x57, 0x46, 4 * law.number() as u8 + 1], "{name}");
            assert_eq!(bytes(encode(law, None, Some(&value))).len(), echo, "{name}");
            let both = bytes(encode(law, Some(&value), Some(&value)));
            assert_eq!(both.len(), (forward + echo - 5).next_multiple_of(4), "{name}");
            let ends = forward + echo - 5;
            assert!(both[5..ends].iter().all(|&b| b == 1) && both[ends..].iter().all(|&b| b == 0), "{name}");
        }
        assert_eq!(encode(law("maxnet"), None, None), None);
    }

    #[test]
    fn a_syn_ack_has_both_values_where_they_fit() {
        let value = [0; VALUE_MAX];
        assert_eq!(bytes(encode_syn_ack(law("maxnet"), &value, &value))[4], 3);
        assert_eq!(bytes(encode_syn_ack(law("xcp"), &value, &value))[4], 4 * 5 + 1);
    }
}
