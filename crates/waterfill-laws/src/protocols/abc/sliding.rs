//! A rate over a sliding window of time.

use crate::units::{Duration, Instant, Rate, Volume};

/// Parts of the window: its length is exact to one of them.
const PARTS: usize = 20;

/// Volume that passed in the last T, in parts of T/20: the present part and the 19 before it.
#[derive(Clone, Debug)]
pub(super) struct Sliding {
    /// By part, in a circle.
    parts: Box<[Volume; PARTS]>,
    /// The sum over all parts.
    sum: Volume,
    present: usize,
    length: Duration,
    began: Instant,
}

impl Sliding {
    /// A window of `window` in which `rate` passed until now, the start of the run.
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

    /// End of the present part.
    pub(super) fn ends(&self) -> Instant {
        self.began + self.length
    }

    /// Ends the present part; the oldest one leaves the window.
    pub(super) fn advance(&mut self) {
        self.began = self.ends();
        self.present = (self.present + 1) % PARTS;
        self.parts[self.present] = Volume::ZERO;
        self.sum = self.parts.iter().fold(Volume::ZERO, |sum, &part| sum + part); // anew: rounding must not add up
    }

    /// The mean rate over the window up to `now`, which lies in the present part.
    pub(super) fn rate(&self, now: Instant) -> Rate {
        self.sum / (self.length * (PARTS - 1) as u64 + now.since(self.began))
    }
}
