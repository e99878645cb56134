//! Bursts of a paced sender.

use waterfill_laws::units::Duration;

/// Number of packets that leave at once when pacing allows one, as `send_quantum` of BBR and the bursts of Linux's TCP. The
/// mean rate is that of single packets.
#[derive(Clone, Debug)]
pub(super) struct PacingQuantum {
    packets: u32,
    /// Number of packets of the current burst that have left.
    left: u32,
    /// Time that these packets take at the pacing rate.
    owed: Duration,
}

impl PacingQuantum {
    /// Returns the state for bursts of `packets`, or `None` for single packets.
    pub(super) fn new(packets: u32) -> Option<Self> {
        (packets > 1).then_some(Self { packets, left: 0, owed: Duration::ZERO })
    }

    /// Returns the wait after a packet that takes `spacing` at the pacing rate.
    pub(super) fn wait(&mut self, spacing: Duration) -> Duration {
        self.left += 1;
        self.owed += spacing;
        if self.left < self.packets {
            return Duration::ZERO;
        }
        self.left = 0;
        std::mem::take(&mut self.owed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_waits_for_all_of_its_packets() {
        let us = Duration::from_micros;
        let mut quantum = PacingQuantum::new(3).expect("bursts");
        let waits = [100, 200, 300, 100, 100, 100].map(|spacing| quantum.wait(us(spacing)));
        assert_eq!(waits, [0, 0, 600, 0, 0, 300].map(us));
        assert!(PacingQuantum::new(1).is_none());
    }
}
