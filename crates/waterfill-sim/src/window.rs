//! A law's window in whole packets.

use waterfill_laws::units::Volume;

/// Converts windows to whole packets, rounded down.
///
/// A division takes longer than anything else that a sender computes for an acknowledgement, and nearly all windows are
/// as many packets as the one before. So the windows of that number are remembered. The result is that of the division,
/// since its rounding never reaches a whole number that the exact quotient does not reach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WholePackets {
    packets: u64,
    /// Range of windows, in bytes, that contain `packets` whole packets: from the first bound to below the second.
    bytes: (f64, f64),
}

impl WholePackets {
    /// Returns the number of packets of `packet_bytes`, which must always be the same size, in a window. The number
    /// saturates at `u64::MAX`, and a negative window gives zero.
    #[inline]
    pub(crate) fn count(&mut self, window: Volume, packet_bytes: u16) -> u64 {
        let bytes = window.as_bytes();
        if self.bytes.0 <= bytes && bytes < self.bytes.1 {
            return self.packets;
        }
        self.divide(bytes, f64::from(packet_bytes))
    }

    fn divide(&mut self, bytes: f64, packet: f64) -> u64 {
        self.packets = (bytes / packet) as u64;
        // Products up to 2⁵³ are exact; larger windows are divided each time.
        let from = self.packets as f64 * packet;
        self.bytes = if from < 9e15 { (from, from + packet) } else { (0.0, 0.0) };
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result agrees with a division, for windows near whole packets and any others, in any sequence.
        #[test]
        fn agrees_with_a_division(
            packet in 1u16..9001,
            windows in prop::collection::vec((0u64..1 << 40, -3i64..4, prop::bool::ANY), 1..50),
        ) {
            let mut whole = WholePackets::default();
            for (number, ulps, near) in windows {
                let number = if near { number % 5 } else { number };
                let exact = number as f64 * f64::from(packet);
                let bytes = f64::from_bits((exact.to_bits() as i64 + ulps).max(0) as u64);
                let expected = (bytes / f64::from(packet)) as u64;
                prop_assert_eq!(whole.count(Volume::from_bytes(bytes), packet), expected);
            }
        }
    }

    #[test]
    fn extreme_windows_saturate() {
        let mut whole = WholePackets::default();
        for (bytes, packets) in [(-1.0, 0), (f64::NAN, 0), (f64::INFINITY, u64::MAX), (1e300, u64::MAX), (2999.9, 1)] {
            assert_eq!(whole.count(Volume::from_bytes(bytes), 1500), packets, "{bytes}");
        }
    }
}
