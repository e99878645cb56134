//! The receiver's law in real numbers (§VI).

use super::{Echo, Field, Header, MaxNet, Params, quantise, real};
use crate::protocol::Received;
use crate::units::{Duration, Instant};

/// The receiver: averages prices over one RTT and echoes the average (§VI).
#[derive(Clone, Debug)]
pub struct Receiver {
    average_prices: bool,
    pub(super) rtt: Option<Duration>,
    pub(super) average: Option<f64>,
    pub(super) last: Instant,
    start_rate: Option<u32>,
}

impl crate::protocol::Receiver<MaxNet> for Receiver {
    fn new(params: &Params) -> Self {
        Self { average_prices: params.average, rtt: None, average: None, last: Instant::ZERO, start_rate: None }
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
                self.average = Some(self.average.map_or(real(code), |average| averaged(average, real(code), weight)));
                self.last = received.now;
            }
        }
    }

    fn echo(&mut self, _now: Instant) -> Echo {
        let price = || Field::Price(quantise(self.average.unwrap_or(0.0)));
        Echo { echo: self.start_rate.map_or_else(price, Field::StartRate) }
    }
}

/// `[maxnet-2007:VI]` The average moved towards a price by dt/τ of the difference, at most by all of it.
pub(in crate::protocols) fn averaged(average: f64, price: f64, weight: f64) -> f64 {
    average + weight.min(1.0) * (price - average)
}
