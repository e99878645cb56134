//! Recognises frames that carry data, which the periodic loss model counts, and acknowledgements.

const ETHERNET: usize = 14;
const IPV6_HEADER: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

/// What a frame carries, as far as faults distinguish frames.
enum Content {
    Datagram,
    /// Segment of TCP.
    Segment {
        flags: u8,
        payload: bool,
    },
}

/// Returns true if an Ethernet frame is a UDP datagram, or a TCP segment with payload and without SYN.
pub(super) fn carries_data(frame: &[u8]) -> bool {
    match content(frame) {
        Some(Content::Datagram) => true,
        Some(Content::Segment { flags, payload }) => flags & SYN == 0 && payload,
        None => false,
    }
}

/// Returns true if an Ethernet frame is a TCP segment that only acknowledges.
pub(super) fn acknowledges(frame: &[u8]) -> bool {
    matches!(content(frame), Some(Content::Segment { flags, payload: false }) if flags & (SYN | FIN | RST) == 0)
}

/// Returns the content of an Ethernet frame; `None` for other protocols and for frames that are too short.
///
/// The testbed sends neither extension headers nor fragments.
fn content(frame: &[u8]) -> Option<Content> {
    let (head, packet) = frame.split_at_checked(ETHERNET)?;
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    let (protocol, header, length) = match (head[12], head[13]) {
        (0x08, 0x00) => (*packet.get(9)?, usize::from(packet.first()? & 15) * 4, word(2)?),
        (0x86, 0xdd) => (*packet.get(6)?, IPV6_HEADER, word(4)? + IPV6_HEADER),
        _ => return None,
    };
    match protocol {
        UDP => Some(Content::Datagram),
        TCP => {
            let (offset, flags) = (packet.get(header + 12)?, *packet.get(header + 13)?);
            Some(Content::Segment { flags, payload: length > header + usize::from(offset >> 4) * 4 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame with a TCP segment over IPv4 that has 12 bytes of options.
    fn segment(flags: u8, payload: u16) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + 20 + 32 + usize::from(payload)];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(52 + payload).to_be_bytes());
        frame[23] = TCP;
        frame[46] = 8 << 4;
        frame[47] = flags;
        frame
    }

    #[test]
    fn a_segment_carries_data_if_it_has_payload_and_is_no_syn() {
        let frames = [
            segment(SYN, 0),
            segment(0x10, 100),
            segment(0x10, 0),
            segment(0x10, 100),
            segment(SYN, 100),
            segment(0x18, 1),
            segment(0x10, 0),
            segment(0x10, 100),
        ];
        let data: Vec<bool> = frames.iter().map(|frame| carries_data(frame)).collect();
        assert_eq!(data, [false, true, false, true, false, true, false, true]);
        let acks: Vec<bool> = frames.iter().map(|frame| acknowledges(frame)).collect();
        assert_eq!(acks, [false, false, true, false, false, false, true, false]);
        assert!(!acknowledges(&segment(0x11, 0)) && !acknowledges(&segment(0x14, 0)), "FIN and RST");
    }

    #[test]
    fn data_is_recognised_in_ipv6_too_and_short_frames_carry_none() {
        let mut udp = vec![0; ETHERNET + IPV6_HEADER + 8];
        udp[12..14].copy_from_slice(&[0x86, 0xdd]);
        udp[20] = UDP;
        // The bytes of a TCP header's flags must exist, also for UDP.
        udp.extend([0; 8]);
        assert!(carries_data(&udp));
        let mut tcp = vec![0; ETHERNET + IPV6_HEADER + 20 + 4];
        tcp[12..14].copy_from_slice(&[0x86, 0xdd]);
        tcp[20] = TCP;
        tcp[66] = 5 << 4;
        tcp[19] = 24;
        assert!(carries_data(&tcp));
        tcp[19] = 20;
        assert!(!carries_data(&tcp));
        let whole = segment(0x10, 100);
        assert!((0..48).all(|length| !carries_data(&whole[..length])));
        assert!(!carries_data(&[0; 60]));
    }
}
