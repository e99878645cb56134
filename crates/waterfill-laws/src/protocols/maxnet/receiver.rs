//! Receiver law of MaxNet in real numbers (§VI).

use super::scale::fraction_bits;
use super::{Average, CODE_MAX, Echo, Field, Header, MaxNet, Params, PriceUnit};
use crate::protocol::Received;
use crate::state::StateFields;
use crate::units::{Duration, Instant};

/// Receiver that averages prices over one RTT and echoes the average (§VI).
#[derive(Clone, Debug)]
pub struct Receiver {
    average_prices: bool,
    unit: PriceUnit,
    /// Number of fractional bits that an echo adds to the code of a tag; 0 if prices are in the option.
    tag_fraction: u8,
    pub(super) rtt: Option<Duration>,
    pub(super) average: Option<f64>,
    pub(super) last: Instant,
    start_rate: Option<u32>,
    /// Prices of the last RTT (only with `average = "sliding"`).
    sliding: Option<Box<Sliding>>,
}

impl crate::protocol::Receiver<MaxNet> for Receiver {
    fn new(params: &Params) -> Self {
        Self {
            average_prices: params.average != Average::Off,
            unit: PriceUnit::of(params.price_unit),
            tag_fraction: params.tag().map_or(0, fraction_bits),
            rtt: None,
            average: None,
            last: Instant::ZERO,
            start_rate: None,
            sliding: (params.average == Average::Sliding).then(Box::default),
        }
    }

    fn on_data(&mut self, received: &Received<Header>) {
        if let Some(sample) = received.rtt {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        match received.header.price {
            Field::StartRate(code) => self.start_rate = Some(code),
            Field::Price(0) => (self.start_rate, self.average) = (None, None), // no router on the path any more
            Field::Price(code) => {
                self.start_rate = None;
                let weight = match (self.average_prices, self.rtt) {
                    (true, Some(rtt)) if !rtt.is_zero() => received.now.since(self.last) / rtt,
                    _ => 1.0,
                };
                let price = self.price(code);
                let next = match &mut self.sliding {
                    None => self.average.map_or(price, |average| averaged(average, price, weight)),
                    // The first price counts for a whole RTT, as in the exponential average.
                    Some(sliding) => sliding.next(price, self.average.map_or(1.0, |_| weight)),
                };
                self.average = Some(next);
                self.last = received.now;
            }
        }
    }

    fn echo(&mut self, _now: Instant) -> Echo {
        let price = || Field::Price(self.average.map_or(0, |average| self.code(average)));
        Echo { echo: self.start_rate.map_or_else(price, Field::StartRate) }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: rtt, average, last, start_rate);
    }
}

impl Receiver {
    /// Returns the price of a code in the unit of averages: seconds, or codes of a tag, whose bands a receiver need not
    /// know.
    fn price(&self, code: u32) -> f64 {
        if self.tag_fraction == 0 { self.unit.price(code) } else { f64::from(code) }
    }

    /// Returns the 23-bit code of an average for acknowledgements.
    fn code(&self, average: f64) -> u32 {
        if self.tag_fraction == 0 {
            return self.unit.code(average);
        }
        ((average * f64::from(1_u32 << self.tag_fraction) + 0.5) as u32).min(CODE_MAX)
    }
}

/// `[maxnet-2007:VI]` Returns the average after a new price with the weight dt/τ, which is limited to 1.
pub(in crate::protocols) fn averaged(average: f64, price: f64, weight: f64) -> f64 {
    average + weight.min(1.0) * (price - average)
}

/// Number of parts that a sliding mean distinguishes in one RTT.
const PARTS: usize = 64;
/// Number of slots: the full parts of one RTT, the oldest slot (partly outside the RTT), and the newest slot (not yet
/// full).
const SLOTS: usize = PARTS + 2;

/// `[maxnet-2007:VI]` Mean of the prices of the last RTT, each weighted by the time since the previous price.
///
/// A ring of fixed size: packets that come within 1/64 RTT share a slot. Of the oldest slot, the part that is inside the
/// RTT counts. Times are fractions of the RTT.
#[derive(Clone, Debug)]
pub(super) struct Sliding {
    slots: [Slot; SLOTS],
    oldest: usize,
    len: usize,
}

/// Time that the prices of a slot cover, and Σ price · time.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    time: f64,
    price_time: f64,
}

impl Default for Sliding {
    fn default() -> Self {
        Self { slots: [Slot::default(); SLOTS], oldest: 0, len: 0 }
    }
}

impl Sliding {
    /// Adds a price with its weight dt/τ; returns the mean of the last RTT.
    pub(super) fn next(&mut self, price: f64, weight: f64) -> f64 {
        if weight >= 1.0 {
            (self.oldest, self.len) = (0, 1);
            self.slots[0] = Slot { time: weight, price_time: price * weight };
            return price;
        }
        let newest = (self.oldest + self.len - 1) % SLOTS;
        let slot = if self.slots[newest].time < 1.0 / PARTS as f64 {
            newest
        } else {
            self.len += 1;
            let next = (newest + 1) % SLOTS;
            self.slots[next] = Slot::default();
            next
        };
        self.slots[slot].time += weight;
        self.slots[slot].price_time += price * weight;
        self.mean()
    }

    /// Drops slots that are outside the last RTT, and returns the mean of the rest.
    fn mean(&mut self) -> f64 {
        // Summed again for each packet: running sums would drift.
        let (mut time, mut price_time) = (0.0, 0.0);
        for k in (0..self.len).rev() {
            let slot = self.slots[(self.oldest + k) % SLOTS];
            if time + slot.time >= 1.0 {
                (self.oldest, self.len) = ((self.oldest + k) % SLOTS, self.len - k);
                return price_time + slot.price_time * ((1.0 - time) / slot.time);
            }
            time += slot.time;
            price_time += slot.price_time;
        }
        price_time / time
    }
}
