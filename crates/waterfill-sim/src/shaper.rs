//! Token bucket in front of a transmitter, modelled on Linux's tbf.
//!
//! A packet starts its transmission when the bucket holds tokens for all of it. Tokens are kept as the time in which
//! they arrive at the bucket's rate: what a packet costs, the depth and the level are picoseconds, and exact.

use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::link::ShaperSpec;

/// Token bucket of a link direction, full at time 0.
#[derive(Debug)]
pub(crate) struct Shaper {
    rate: Rate,
    depth: Duration,
    /// Interval at which tokens are added; zero if they are added continuously.
    timer: Duration,
    /// Token level at `updated`, as time at the bucket's rate.
    tokens: Duration,
    updated: Instant,
}

impl Shaper {
    pub(crate) fn new(spec: &ShaperSpec, rate: Rate) -> Self {
        let depth = Duration::from_secs(Volume::from_bytes(spec.depth_bytes) / rate);
        let timer = Duration::from_secs(spec.timer_s);
        Self { rate, depth, timer, tokens: depth, updated: Instant::ZERO }
    }

    /// Returns the time at which a packet that could start at `ready` has its tokens. `ready` must not be before the
    /// last packet's start.
    pub(crate) fn earliest(&self, ready: Instant, bytes: u16) -> Instant {
        let missing = self.cost(bytes) - self.level(ready);
        if missing.is_zero() {
            return ready;
        }
        if self.timer.is_zero() {
            return ready + missing;
        }
        let ticks = missing.as_ps().div_ceil(self.timer.as_ps());
        Instant::ZERO + self.timer * (self.ticks(ready) + ticks)
    }

    /// Takes a packet's tokens at the time returned by [`Shaper::earliest`].
    pub(crate) fn take(&mut self, starts: Instant, bytes: u16) {
        self.tokens = self.level(starts) - self.cost(bytes);
        self.updated = starts;
    }

    /// Returns the token level at a time.
    fn level(&self, at: Instant) -> Duration {
        let added = if self.timer.is_zero() {
            at.since(self.updated)
        } else {
            self.timer * (self.ticks(at) - self.ticks(self.updated))
        };
        (self.tokens + added).min(self.depth)
    }

    /// Returns the number of timer ticks up to and including a time.
    const fn ticks(&self, at: Instant) -> u64 {
        at.as_ps() / self.timer.as_ps()
    }

    fn cost(&self, bytes: u16) -> Duration {
        self.rate.time_for(u32::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a bucket of 12 Mbit/s, in which a packet of 1500 bytes costs 1 ms.
    fn bucket(packets: f64, timer_ms: f64) -> Shaper {
        let spec = ShaperSpec { line_bps: 1.2e8, depth_bytes: 1500.0 * packets, timer_s: timer_ms * 1e-3 };
        Shaper::new(&spec, Rate::from_bps(1.2e7))
    }

    /// Returns the departure times (ms) of full packets that are ready at these times (ms), or when the previous packet
    /// has left.
    fn departures(mut bucket: Shaper, ready_ms: &[f64]) -> Vec<f64> {
        let transmission = Duration::from_micros(100); // at ten times the bucket's rate
        let mut free = Instant::ZERO;
        let mut found = Vec::new();
        for &ms in ready_ms {
            let starts = bucket.earliest(free.max(Instant::from_secs(ms * 1e-3)), 1500);
            bucket.take(starts, 1500);
            free = starts + transmission;
            // One division of whole numbers rounds as the literals below do.
            found.push(starts.as_ps() as f64 / 1e9);
        }
        found
    }

    /// Three packets leave at the line's rate. At 0.2 ms the bucket holds 0.2 ms of tokens, and the fourth packet needs
    /// 1 ms.
    #[test]
    fn a_full_bucket_is_a_burst_and_then_tokens_come_continuously() {
        assert_eq!(departures(bucket(3.0, 0.0), &[0.0; 6]), [0.0, 0.1, 0.2, 1.0, 2.0, 3.0]);
        // At 2.5 ms there are 2.5 ms of tokens: the burst is of two packets, and half of one is left.
        assert_eq!(departures(bucket(3.0, 0.0), &[0.0, 0.0, 0.0, 2.5, 2.5, 2.5]), [0.0, 0.1, 0.2, 2.5, 2.6, 3.0]);
    }

    /// With a timer of 4 ms, four packets leave as one burst every 4 ms.
    #[test]
    fn with_a_timer_tokens_come_in_portions() {
        let found = departures(bucket(5.0, 4.0), &[0.0; 11]);
        assert_eq!(found, [0.0, 0.1, 0.2, 0.3, 0.4, 4.0, 4.1, 4.2, 4.3, 8.0, 8.1]);
        // A packet that comes in between finds no tokens of this interval: it waits for 4 ms.
        assert_eq!(departures(bucket(1.0, 4.0), &[0.0, 3.9]), [0.0, 4.0]);
        assert_eq!(departures(bucket(1.0, 4.0), &[0.0, 4.0]), [0.0, 4.0], "a tick's tokens are there at the tick");
    }

    /// A bucket of two packets loses half of each interval's four tokens, so its rate is depth/timer.
    #[test]
    fn a_bucket_smaller_than_a_portion_is_slower_than_its_rate() {
        assert_eq!(departures(bucket(2.0, 4.0), &[0.0; 6]), [0.0, 0.1, 4.0, 4.1, 8.0, 8.1]);
    }

    #[test]
    fn small_packets_cost_little_and_several_ticks_add_up() {
        let mut shaper = bucket(1.0, 0.3);
        shaper.take(Instant::ZERO, 1500);
        // 40 bytes cost 26.7 µs, and a tick brings 300; a full packet needs four ticks.
        assert_eq!(shaper.earliest(Instant::ZERO, 40).as_ps(), 300_000_000);
        assert_eq!(shaper.earliest(Instant::ZERO, 1500).as_ps(), 1_200_000_000);
    }
}
