//! Bursts of a paced sender.

use waterfill_laws::units::Duration;
use waterfill_network::FlowSpec;

/// Minimum number of packets in a burst of a given time, as Linux's `tcp_min_tso_segs`.
const MIN_PACKETS: u64 = 2;
/// Maximum size of a burst of a given time, in bytes, as Linux's `GSO_MAX_SIZE`.
const MAX_BYTES: u64 = 65_536;

/// Size of a burst.
#[derive(Clone, Copy, Debug)]
enum Burst {
    /// A number of packets.
    Packets(u32),
    /// The packets of this time at the pacing rate, as Linux's `tcp_tso_autosize` chooses them.
    Time(Duration),
}

/// Packets that leave at once when pacing allows one, as `send_quantum` of BBR and the bursts of Linux's TCP. The mean rate
/// is that of single packets.
#[derive(Clone, Debug)]
pub(super) struct PacingQuantum {
    burst: Burst,
    /// Number of packets of the current burst that have left.
    left: u32,
    /// Time that these packets take at the pacing rate.
    owed: Duration,
}

impl PacingQuantum {
    /// Returns the state for the bursts of a flow, or `None` for single packets.
    pub(super) fn new(flow: &FlowSpec) -> Option<Self> {
        let burst = match flow.pacing_quantum_s {
            Some(time_s) => Burst::Time(Duration::from_secs(time_s)),
            None => Burst::Packets(flow.pacing_quantum_packets),
        };
        let single = matches!(burst, Burst::Packets(0 | 1));
        (!single).then_some(Self { burst, left: 0, owed: Duration::ZERO })
    }

    /// Returns the wait after a packet of `bytes` that takes `spacing` at the pacing rate.
    pub(super) fn wait(&mut self, spacing: Duration, bytes: u16) -> Duration {
        self.left += 1;
        self.owed += spacing;
        let packets = match self.burst {
            Burst::Packets(packets) => u64::from(packets),
            Burst::Time(time) => {
                let whole = time.as_ps().checked_div(spacing.as_ps()).unwrap_or(u64::MAX);
                whole.min(MAX_BYTES / u64::from(bytes)).max(MIN_PACKETS)
            }
        };
        if u64::from(self.left) < packets {
            return Duration::ZERO;
        }
        self.left = 0;
        std::mem::take(&mut self.owed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the waits in microseconds after packets that take these times.
    fn waits(burst: Burst, spacings_us: &[u64]) -> Vec<Duration> {
        let mut quantum = PacingQuantum { burst, left: 0, owed: Duration::ZERO };
        spacings_us.iter().map(|&us| quantum.wait(Duration::from_micros(us), 1500)).collect()
    }

    fn us(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|&us| Duration::from_micros(us)).collect()
    }

    #[test]
    fn a_burst_waits_for_all_of_its_packets() {
        assert_eq!(waits(Burst::Packets(3), &[100, 200, 300, 100, 100, 100]), us(&[0, 0, 600, 0, 0, 300]));
    }

    /// Linux's rule: the whole packets of 1 ms, at least two, and at most 64 kB, 43 packets.
    #[test]
    fn a_burst_of_a_time_follows_the_rate() {
        let of = |spacings: &[u64]| waits(Burst::Time(Duration::from_millis(1)), spacings);
        assert_eq!(of(&[300; 4]), us(&[0, 0, 900, 0]));
        assert_eq!(of(&[5000; 4]), us(&[0, 10_000, 0, 10_000]));
        assert_eq!(of(&[300, 300, 100, 100, 100]), us(&[0, 0, 0, 0, 0]));
        let fast = of(&[1; 90]);
        let ends: Vec<usize> = (0..90).filter(|&i| fast[i] > Duration::ZERO).collect();
        assert_eq!(ends, [42, 85]);
    }
}
