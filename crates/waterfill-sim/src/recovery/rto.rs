//! Retransmission timeout (RFC 6298), with a minimum of the variance term.

use waterfill_laws::units::Duration;

/// Maximum retransmission timeout (`[rfc6298:2.5]`).
const MAX_RTO: Duration = Duration::from_millis(60_000);
/// Minimum retransmission timeout of the first data after a SYN was sent again, in timeouts of the SYN: 3 s and 1 s in
/// `[rfc6298:5.7]`.
const AFTER_SYN_TIMEOUT: u64 = 3;

/// Smoothed RTT and its variation; `None` before the first sample.
pub(crate) type Smoothed = Option<(Duration, Duration)>;

/// Limits of the retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RtoLimits {
    pub(crate) rto_min: Duration,
    /// Retransmission timeout before the first RTT sample (`[rfc6298:2.1]`).
    pub(crate) syn_rto: Duration,
    /// Minimum of the variance term. Without it, the timer would fire just before the acknowledgement wherever the RTT is
    /// constant and above `rto_min`.
    pub(crate) rttvar_min: Duration,
}

impl RtoLimits {
    /// `[rfc6298:5.7]` Returns the limits until data is acknowledged, if a SYN was sent again.
    pub(crate) fn after_repeated_syn(self) -> Self {
        Self { rto_min: self.rto_min.max(self.syn_rto * AFTER_SYN_TIMEOUT), ..self }
    }

    /// `[rfc6298:2.3, 2.4]` Returns the timeout when no timeout has come before.
    #[inline]
    pub(crate) fn first_timeout(self, smoothed: Smoothed) -> Duration {
        smoothed.map_or(self.syn_rto, |(srtt, rttvar)| (srtt + (rttvar * 4).max(self.rttvar_min)).max(self.rto_min))
    }

    /// `[rfc6298:2.5, 5.5]` Returns the timeout after `backoff` timeouts in a row.
    #[inline]
    pub(crate) fn timeout(self, smoothed: Smoothed, backoff: u32) -> Duration {
        let rto = self.first_timeout(smoothed);
        // A path with an RTT above the limit still gets its own RTT.
        (rto * (1 << backoff.min(16))).min(MAX_RTO.max(rto))
    }
}

/// `[rfc6298:2.2, 2.3]` Returns the smoothed RTT and its variation after one more sample.
///
/// As 8 · SRTT' = 8 · SRTT + (R' − SRTT): shifts of a difference, rounded down as the quotient of the sums would be.
pub(crate) fn smoothed(before: Smoothed, rtt: Duration) -> (Duration, Duration) {
    match before {
        None => (rtt, rtt / 2),
        Some((srtt, rttvar)) => {
            let [srtt, rttvar, rtt] = [srtt, rttvar, rtt].map(|time| time.as_ps() as i64);
            let after = [srtt + ((rtt - srtt) >> 3), rttvar + (((rtt - srtt).abs() - rttvar) >> 2)];
            let [srtt, rttvar] = after.map(|ps| Duration::from_ps(ps as u64));
            (srtt, rttvar)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_6298_by_hand() {
        let ms = Duration::from_millis;
        let first = smoothed(None, ms(100));
        assert_eq!(first, (ms(100), ms(50)));
        // 7/8 · 100 + 1/8 · 180 = 110; 3/4 · 50 + 1/4 · 80 = 57.5
        assert_eq!(smoothed(Some(first), ms(180)), (ms(110), Duration::from_micros(57_500)));
    }

    /// `[rfc6298:2.3, 2.4]` With a constant RTT the variance term is its minimum, and the result is at least `rto_min`.
    #[test]
    fn rfc_6298_the_variance_term_has_a_minimum() {
        let ms = Duration::from_millis;
        let limits = RtoLimits { rto_min: ms(1000), syn_rto: ms(1000), rttvar_min: ms(200) };
        assert_eq!(limits.timeout(None, 0), ms(1000));
        assert_eq!(limits.timeout(Some((ms(100), ms(0))), 0), ms(1000));
        assert_eq!(limits.timeout(Some((ms(1200), ms(0))), 0), ms(1400));
        assert_eq!(limits.timeout(Some((ms(1200), ms(100))), 0), ms(1600));
        assert_eq!(limits.timeout(Some((ms(1200), ms(0))), 2), ms(5600));
    }
}
