//! Base RTT as a host estimates it: the smallest RTT sample, of the whole connection or of a time window.
//!
//! A path can become longer. A host that keeps the smallest RTT of the connection then sends `rate × old RTT` per new
//! RTT for good. With a window, the old RTT expires. Kathleen Nichols' filter, which Linux and the draft of BBR use
//! (draft-cardwell-iccrg-bbr-congestion-control, 4.1.2), needs three samples for this: the smallest of the window, and
//! two later ones that replace it when it expires.
//!
//! `kernel/base_rtt.h` has the same filter for the kernel's hosts.
//!
//! The base RTT then rises by at most an eighth of the time that passes. A window of rate × base RTT that rose at once
//! would be a burst, and overflow a buffer that was sized for the old RTT.

use crate::units::{Duration, Instant};

/// RTT sample and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    at: Instant,
    rtt: Duration,
}

/// Time per rise of the base RTT: a window of rate × base RTT sends at most 1 + 1/8 times the rate while it rises.
const RISE: u64 = 8;

/// Minimum of the RTT samples of a time window, to which it rises slowly.
#[derive(Clone, Debug)]
pub struct WindowedMin {
    window: Duration,
    /// Smallest sample of the window, the smallest of those after it, and the smallest of those after that one. Times
    /// and RTTs do not decrease; equal entries are one sample.
    samples: [Sample; 3],
    /// Last value returned, at the time of the last sample.
    base: Sample,
}

impl WindowedMin {
    /// Creates a filter without samples.
    #[must_use]
    pub const fn new(window: Duration) -> Self {
        let none = Sample { at: Instant::ZERO, rtt: Duration::MAX };
        Self { window, samples: [none; 3], base: none }
    }

    /// Adds a sample and returns the base RTT.
    pub fn add(&mut self, at: Instant, rtt: Duration) -> Duration {
        let risen = if self.base.rtt == Duration::MAX { rtt } else { self.base.rtt + at.since(self.base.at) / RISE };
        self.base = Sample { at, rtt: self.minimum(at, rtt).min(risen) };
        self.base.rtt
    }

    /// Adds a sample and returns the minimum. A sample lives for at least three quarters of the window, unless a
    /// smaller one follows, and for at most the window if samples keep arriving.
    fn minimum(&mut self, at: Instant, rtt: Duration) -> Duration {
        let sample = Sample { at, rtt };
        // All that are larger, or older than the window, even the newest.
        let stale = at.since(self.samples[2].at) > self.window;
        let replaced = self.samples.iter().position(|kept| stale || rtt <= kept.rtt).unwrap_or(self.samples.len());
        self.samples[replaced..].fill(sample);
        let [first, second, third] = &mut self.samples;
        let age = at.since(first.at);
        if age > self.window {
            (*first, *second, *third) = (*second, *third, sample);
            if at.since(first.at) > self.window {
                (*first, *second) = (*second, *third);
            }
        } else if second.at == first.at && age > self.window / 4 {
            (*second, *third) = (sample, sample);
        } else if third.at == second.at && age > self.window / 2 {
            *third = sample;
        }
        self.samples[0].rtt
    }

    /// Forgets all samples.
    pub const fn clear(&mut self) {
        *self = Self::new(self.window);
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the kernel's filter is C code")]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Returns the minima of a filter of 10 s after samples at these seconds, of these RTTs in ms.
    fn minima(samples: impl IntoIterator<Item = (f64, u64)>) -> Vec<Duration> {
        let mut filter = WindowedMin::new(ms(10_000));
        samples.into_iter().map(|(at_s, rtt)| filter.minimum(Instant::from_secs(at_s), ms(rtt))).collect()
    }

    #[test]
    fn a_smaller_sample_counts_at_once() {
        assert_eq!(minima([(0.0, 40), (1.0, 30), (2.0, 50)]), [ms(40), ms(30), ms(30)]);
    }

    /// The path becomes longer at 3 s: the last sample before, at 2 s, is as small as the first.
    #[test]
    fn an_old_sample_expires_after_the_window() {
        let found = minima((0..20).map(|s| (f64::from(s), if s < 3 { 40 } else { 200 })));
        assert_eq!(found[12], ms(40));
        assert_eq!(found[13], ms(200));
    }

    /// After a gap of more than a window, nothing old is left.
    #[test]
    fn a_gap_of_a_window_leaves_only_the_new_sample() {
        assert_eq!(minima([(0.0, 40), (4.0, 50), (8.0, 60), (30.0, 200)])[3], ms(200));
    }

    /// With samples in order of size, the minimum is never older than the window, and never above a sample of the last
    /// quarter.
    #[test]
    fn the_minimum_is_of_the_window() {
        let rtts: Vec<u64> = (0..400u64).map(|i| 40 + i * 7919 % 61).collect();
        let found = minima(rtts.iter().enumerate().map(|(i, &rtt)| (i as f64 / 4.0, rtt)));
        for (i, &found) in found.iter().enumerate() {
            let [window, part] = [40, 10].map(|n| rtts[i.saturating_sub(n)..=i].iter().min().copied());
            assert!(found >= ms(window.unwrap()) && found <= ms(part.unwrap()), "{i}");
        }
    }

    /// From 40 ms at 13 s to 200 ms: a base RTT of 16 ms more after 128 ms, and 200 ms after 1.28 s.
    #[test]
    fn the_base_rtt_rises_by_an_eighth_of_the_time() {
        let mut filter = WindowedMin::new(ms(10_000));
        (0..3).for_each(|s| assert_eq!(filter.add(Instant::from_secs(f64::from(s)), ms(40)), ms(40)));
        let later: Vec<Duration> =
            (0..100).map(|i| filter.add(Instant::from_secs(12.0 + f64::from(i) * 0.128), ms(200))).collect();
        assert_eq!(later[1..4], [ms(56), ms(72), ms(88)]);
        assert_eq!((later[9], later[10], later[99]), (ms(184), ms(200), ms(200)));
        assert_eq!(filter.add(Instant::from_secs(30.0), ms(50)), ms(50), "a smaller sample counts at once");
    }

    #[test]
    fn a_cleared_filter_starts_again() {
        let mut filter = WindowedMin::new(ms(10_000));
        filter.add(Instant::ZERO, ms(40));
        filter.clear();
        assert_eq!(filter.add(Instant::from_secs(1.0), ms(41)), ms(41));
    }

    mod c {
        unsafe extern "C" {
            pub(super) safe fn waterfill_base_rtt_size() -> u64;
            pub(super) fn waterfill_base_rtt_add(filter: *mut u64, window_us: u64, now_us: u64, rtt_us: u32) -> u32;
        }
    }

    proptest::proptest! {
        /// Gaps range from a few ACKs per RTT to several windows; the RTT has steps, a queue and noise.
        #[test]
        fn the_kernels_filter_is_the_same(
            window_ms in 10_u64..20_000,
            samples in proptest::collection::vec((0_u32..5, 0_u64..4000, 0_u32..3, 0_u32..200), 1..400),
        ) {
            let mut filter = WindowedMin::new(ms(window_ms));
            let mut kernels = [0_u64; 8];
            proptest::prop_assert_eq!(c::waterfill_base_rtt_size(), 64);
            let mut now_us = 0;
            for (scale, gap, step, noise) in samples {
                now_us += gap * [1, 1, 20, 300, 10_000][scale as usize];
                let rtt_us = [20_000, 40_000, 200_000][step as usize] + 37 * noise;
                let rtt = Duration::from_ps(u64::from(rtt_us) * 1_000_000);
                let base = filter.add(Instant::from_ps(now_us * 1_000_000), rtt);
                // SAFETY: the filter has as many words as C's structure.
                let kernel_us =
                    unsafe { c::waterfill_base_rtt_add(kernels.as_mut_ptr(), window_ms * 1000, now_us, rtt_us) };
                proptest::prop_assert_eq!(u64::from(kernel_us), base.as_ps() / 1_000_000, "at {} us", now_us);
            }
        }
    }
}
