//! Flow counts in consecutive measurement intervals.

use waterfill_laws::units::{Duration, Instant};

use super::PerClass;

/// Flow counts per interval. The estimate is the count of the last interval, or of the current one if that is larger.
#[derive(Debug)]
pub(super) struct Periods {
    length: Duration,
    ends: Instant,
    /// Flow counts of the last complete interval.
    last: PerClass<u32>,
    /// Flow counts of the current interval so far.
    pub(super) current: PerClass<u32>,
}

impl Periods {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, ends: Instant::ZERO + length, last: PerClass::default(), current: PerClass::default() }
    }

    /// Starts the interval that contains `now`, skipping intervals without packets. Returns true if the interval is
    /// new.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        if now < self.ends {
            return false;
        }
        let late = now.since(self.ends);
        self.last = if late < self.length { self.current } else { PerClass::default() };
        self.current = PerClass::default();
        // Interval boundaries stay at multiples of the length.
        self.ends = now + (self.length - Duration::from_ps(late.as_ps() % self.length.as_ps()));
        true
    }

    pub(super) fn flows(&self) -> PerClass<f64> {
        PerClass::from_fn(|class| f64::from(self.last[class].max(self.current[class])))
    }
}
