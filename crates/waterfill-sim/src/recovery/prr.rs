//! Proportional rate reduction (RFC 9937): spreads the reduction to a new window over the recovery.

use waterfill_laws::protocol::Retransmission;

use super::{Progress, Recovery};

/// State of one recovery, in packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProportionalReduction {
    /// Window to reach by the end of the recovery (RFC 9937's ssthresh), in packets.
    target: u64,
    /// Packets sent that had not arrived before the acknowledgement that began the recovery (RecoverFS).
    flight: u64,
    /// Packets that have arrived since the recovery began (prr_delivered).
    arrived: u64,
    /// Packets sent since the recovery began (prr_out).
    sent: u64,
    /// Packets allowed in flight after the last acknowledgement.
    limit: u64,
    /// True for RFC 6937, which counts what had arrived as in flight, and has no SafeACK.
    rfc6937: bool,
}

impl ProportionalReduction {
    /// Begins the reduction to `target` packets at an acknowledgement of `newly_arrived` packets.
    pub(crate) fn new(target: u64, recovery: &Recovery, newly_arrived: u64) -> Self {
        let rfc6937 = recovery.method() == Retransmission::Rfc3517;
        let flight = if rfc6937 { recovery.unacknowledged() } else { recovery.outstanding() + newly_arrived };
        Self { target, flight: flight.max(1), arrived: 0, sent: 0, limit: 0, rfc6937 }
    }

    /// `[rfc9937:§6.2]` Returns the number of packets allowed in flight after an acknowledgement. If no packet has
    /// arrived, the limit stays.
    pub(crate) fn on_ack(&mut self, progress: &Progress, in_flight: u64) -> u64 {
        let newly_arrived = progress.newly_arrived;
        if newly_arrived == 0 && self.arrived > 0 && !self.rfc6937 {
            return self.limit;
        }
        self.arrived += newly_arrived;
        let allowed = if in_flight > self.target {
            (self.arrived * self.target).div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            // SafeACK: as in slow start while the repair succeeds; one packet for each that arrived while losses go on.
            let safe = self.rfc6937 || (progress.advanced && progress.newly_lost == 0);
            let limit = self.arrived.saturating_sub(self.sent).max(newly_arrived) + u64::from(safe);
            limit.min(self.target - in_flight)
        };
        // The fast retransmit itself is always allowed.
        self.limit = in_flight + allowed.max(u64::from(self.sent == 0));
        self.limit
    }

    pub(crate) const fn on_sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sent;
    use super::*;

    /// Progress by one packet, with `advanced` and `newly_lost`.
    fn one(advanced: bool, newly_lost: u64) -> Progress {
        Progress { newly_arrived: 1, advanced, newly_lost, ..Progress::default() }
    }

    #[test]
    fn one_loss_of_a_hundred_halves_the_window_over_one_rtt() {
        // RFC 9937 §6.2: 100 in flight, one lost, three known to have arrived; the target is 50.
        let mut prr = ProportionalReduction::new(50, &sent(Retransmission::Rfc6675, 100), 0);
        let (mut in_flight, mut sent) = (96, 0);
        for ack in 1..=96 {
            if ack > 1 {
                in_flight -= 1;
            }
            let window = prr.on_ack(&one(false, 0), in_flight);
            while in_flight < window {
                in_flight += 1;
                sent += 1;
                prr.on_sent();
            }
        }
        // 96 are in flight, 95 of them arrive and 49 are sent: 50 remain.
        assert_eq!((in_flight, sent), (50, 49));
    }

    /// `[rfc9937:§6.2]` Far below the target, an acknowledgement of repaired data allows two packets, and any other one.
    #[test]
    fn rfc9937_after_a_heavy_loss_the_window_grows_only_by_safe_acks() {
        // 100 in flight, 80 lost at once: 19 remain, far below the target.
        let mut prr = ProportionalReduction::new(50, &sent(Retransmission::Rfc6675, 100), 0);
        assert_eq!(prr.on_ack(&one(false, 80), 19), 20, "a loss: one for the packet that arrived");
        prr.on_sent();
        assert_eq!(prr.on_ack(&one(true, 0), 19), 21, "repair goes on: one more");
        prr.on_sent();
        prr.on_sent();
        assert_eq!(prr.on_ack(&one(true, 1), 20), 21, "a further loss");
        assert_eq!(prr.on_ack(&Progress::default(), 25), 21, "nothing has arrived");
    }
}
