//! Rate over a sliding time window.

use crate::units::{Duration, Instant, Rate, Volume};

/// Number of parts of the window. This number limits the precision of the window's length.
const PARTS: usize = 20;

/// Volume that passed in the last T, counted in 20 parts of T/20 each.
#[derive(Clone, Debug)]
pub(super) struct Sliding {
    /// Volume of each part, as a ring buffer.
    parts: Box<[Volume; PARTS]>,
    /// Sum over all parts.
    sum: Volume,
    present: usize,
    length: Duration,
    began: Instant,
}

impl Sliding {
    /// Creates a window of length `window`, as if data had passed at `rate` before the start of the run.
    pub(super) fn new(window: Duration, rate: Rate) -> Self {
        let length = window / PARTS as u64;
        let mut parts = Box::new([rate * length; PARTS]);
        parts[0] = Volume::ZERO;
        Self { parts, sum: (PARTS - 1) as f64 * (rate * length), present: 0, length, began: Instant::ZERO }
    }

    pub(super) fn add(&mut self, volume: Volume) {
        self.parts[self.present] += volume;
        self.sum += volume;
    }

    /// Returns the end of the current part.
    pub(super) fn ends(&self) -> Instant {
        self.began + self.length
    }

    /// Ends the current part and drops the oldest part from the window.
    pub(super) fn advance(&mut self) {
        self.began = self.ends();
        self.present = (self.present + 1) % PARTS;
        self.parts[self.present] = Volume::ZERO;
        self.sum = self.parts.iter().fold(Volume::ZERO, |sum, &part| sum + part); // anew: rounding must not add up
    }

    /// Returns the mean rate over the window up to `now`, a time within the current part.
    pub(super) fn rate(&self, now: Instant) -> Rate {
        self.sum / (self.length * (PARTS - 1) as u64 + now.since(self.began))
    }
}
