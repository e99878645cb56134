//! Recognises frames that carry data, which the periodic loss model counts.

const ETHERNET: usize = 14;
const IPV6_HEADER: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;

/// Returns true if an Ethernet frame is a UDP datagram, or a TCP segment with payload and without SYN.
///
/// The testbed sends neither extension headers nor fragments.
pub(super) fn carries_data(frame: &[u8]) -> bool {
    let Some((head, packet)) = frame.split_at_checked(ETHERNET) else { return false };
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    let (protocol, header, length) = match (head[12], head[13]) {
        (0x08, 0x00) => (packet.get(9), packet.first().map(|b| usize::from(b & 15) * 4), word(2)),
        (0x86, 0xdd) => (packet.get(6), Some(IPV6_HEADER), word(4).map(|payload| payload + IPV6_HEADER)),
        _ => return false,
    };
    let (Some(&protocol), Some(header), Some(length)) = (protocol, header, length) else { return false };
    match (protocol, packet.get(header + 12), packet.get(header + 13)) {
        (UDP, ..) => true,
        (TCP, Some(offset), Some(flags)) => flags & SYN == 0 && length > header + usize::from(offset >> 4) * 4,
        _ => false,
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
