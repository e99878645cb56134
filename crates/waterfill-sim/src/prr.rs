//! Proportional rate reduction (RFC 6937): spreads the reduction to a new window over the recovery.

/// State of one recovery, in packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProportionalReduction {
    /// Window to reach by the end of the recovery (RFC 6937's ssthresh), in packets.
    target: u64,
    /// Packets that were unacknowledged when the recovery began (RecoverFS).
    flight: u64,
    /// Packets that have arrived since the recovery began (prr_delivered).
    arrived: u64,
    /// Packets sent since the recovery began (prr_out).
    sent: u64,
}

impl ProportionalReduction {
    pub(crate) const fn new(target: u64, flight: u64) -> Self {
        Self { target, flight: if flight == 0 { 1 } else { flight }, arrived: 0, sent: 0 }
    }

    /// `[rfc6937:§3]` Returns the number of packets allowed in flight after `newly_arrived` more have arrived.
    pub(crate) fn on_ack(&mut self, newly_arrived: u64, in_flight: u64) -> u64 {
        self.arrived += newly_arrived;
        let allowed = if in_flight > self.target {
            (self.arrived * self.target).div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            // PRR-SSRB: up to what slow start would send.
            let limit = self.arrived.saturating_sub(self.sent).max(newly_arrived) + 1;
            limit.min(self.target - in_flight)
        };
        // The fast retransmit itself is always allowed.
        in_flight + allowed.max(u64::from(self.sent == 0))
    }

    pub(crate) const fn on_sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loss_of_a_hundred_halves_the_window_over_one_rtt() {
        // RFC 6937 §3: 100 in flight, one lost, three known to have arrived; the target is 50.
        let mut prr = ProportionalReduction::new(50, 100);
        let (mut in_flight, mut sent) = (96, 0);
        for ack in 1..=96 {
            if ack > 1 {
                in_flight -= 1;
            }
            let window = prr.on_ack(1, in_flight);
            while in_flight < window {
                in_flight += 1;
                sent += 1;
                prr.on_sent();
            }
        }
        // 96 are in flight, 95 of them arrive and 49 are sent: 50 remain.
        assert_eq!((in_flight, sent), (50, 49));
    }

    #[test]
    fn heavy_loss_sends_as_slow_start_would() {
        // 100 in flight, 80 lost at once: 19 remain, far below the target.
        let mut prr = ProportionalReduction::new(50, 100);
        assert_eq!(prr.on_ack(1, 19), 21); // the packet that arrived, and one more
        prr.on_sent();
        prr.on_sent();
        assert_eq!(prr.on_ack(1, 20), 22);
    }
}
