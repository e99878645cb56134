//! Rounds of one RTT, counted by acknowledgements as in the observation window of RFC 8257.

/// Detector of the end of a round. A round ends when the data outstanding at its start, and a packet sent since, have
/// arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Number of packets of the round that have not arrived.
    left: f64,
}

impl Round {
    /// Returns true if this acknowledgement is the first of a new round. Packets are real numbers.
    ///
    /// `[rfc8257:§3.3]` A round ends with the first acknowledgement beyond what had been sent when it began. Without
    /// numbers that is more than was in flight then; a lost packet counts when it arrives after all.
    pub fn ends(&mut self, acked_packets: f64, in_flight_packets: f64) -> bool {
        self.left -= acked_packets;
        let ends = self.left < 0.0;
        if ends {
            self.left = in_flight_packets;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[rfc8257:§3.3]` With a window of four packets, every fourth acknowledgement ends a round.
    #[test]
    fn a_window_of_four_is_a_round_of_four() {
        let mut round = Round::default();
        // Each acknowledgement leaves three in flight, and its sender sends the fourth.
        let ends: Vec<bool> = (0..9).map(|_| round.ends(1.0, 3.0)).collect();
        assert_eq!(ends, [true, false, false, false, true, false, false, false, true]);
        let mut alone = Round::default();
        assert!(alone.ends(1.0, 0.0) && alone.ends(1.0, 0.0), "one packet in flight is a round each");
        assert!(!alone.ends(0.0, 0.0), "nothing new has arrived");
    }
}
