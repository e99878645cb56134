//! Router law of RCP.

use crate::carriage::Carriage;
use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Average, Params, Writes};
use super::{Header, Rcp, WireRate};

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    pub(super) capacity: Rate,
    alpha: f64,
    beta: f64,
    max_interval: Duration,
    /// Unit of the RTTs in packets, and the minimum of d̂, in seconds.
    rtt_unit: f64,
    min_rtt: f64,
    rate_min: Rate,
    average: Average,
    writes: Writes,
    /// Rate R that the link offers.
    pub(super) rate: Rate,
    /// Rate R as written into packets.
    written: WireRate,
    carriage: Carriage,
    /// Average RTT d̂ of the traffic, in seconds.
    pub(super) mean_rtt: f64,
    /// True once d̂ has a sample.
    measured: bool,
    /// Volume that arrived in the current T.
    arrived: Volume,
    /// Volume of the arrivals that carried an RTT, and the sum of these RTTs weighted by bytes.
    timed: (Volume, f64),
    /// Time T between the last update and the next.
    interval: Duration,
    next_update: Instant,
}

impl Router {
    /// Updates d̂ with the RTTs that packets carried in this interval.
    fn average_rtt(&mut self) {
        let (volume, rtt_bytes) = self.timed;
        if volume.as_bytes() <= 0.0 {
            return;
        }
        let sample = rtt_bytes / volume.as_bytes();
        let mean = if self.measured {
            let gain = self.interval.as_secs() / self.mean_rtt;
            let gain = match self.average {
                Average::Reluctant if sample < self.mean_rtt => {
                    gain * (self.rate / self.capacity) * (sample / self.mean_rtt)
                }
                _ => gain,
            };
            mean_rtt_next(self.mean_rtt, sample, gain)
        } else {
            sample
        };
        self.mean_rtt = mean.max(self.min_rtt);
        self.measured = true;
    }
}

impl crate::protocol::Router<Rcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let capacity = link.usable();
        let mean_rtt = params.first_rtt.max(params.min_rtt).as_secs();
        let interval = interval(mean_rtt, params.max_interval);
        let rate = capacity * params.first_rate;
        let mut carriage = params.carriage();
        Self {
            capacity,
            alpha: params.alpha,
            beta: params.beta,
            max_interval: params.max_interval,
            rtt_unit: params.rtt_unit.as_secs(),
            min_rtt: params.min_rtt.as_secs(),
            rate_min: params.r_min.min(capacity),
            average: params.average,
            writes: params.writes,
            rate,
            written: carried(rate, &mut carriage),
            carriage,
            mean_rtt,
            measured: false,
            arrived: Volume::ZERO,
            timed: (Volume::ZERO, 0.0),
            interval,
            next_update: Instant::ZERO + interval,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(header) = passing.header.as_deref_mut() {
            if header.rtt > 0 {
                self.timed.0 += passing.volume;
                self.timed.1 += f64::from(header.rtt) * self.rtt_unit * passing.volume.as_bytes();
            }
            if self.writes == Writes::Arrival {
                header.rate = header.rate.min(self.written);
            }
        }
    }

    fn sees_departures(&self) -> bool {
        self.writes == Writes::Departure
    }

    fn on_departure(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        if let Some(header) = passing.header.as_deref_mut().filter(|_| self.writes == Writes::Departure) {
            header.rate = header.rate.min(self.written);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.capacity = link.usable();
        self.average_rtt();
        let spare =
            spare(self.capacity, self.arrived / self.interval, link.queue, self.alpha, self.beta, self.mean_rtt);
        let t = self.interval.as_secs();
        self.rate = rate_next(self.rate, spare, self.capacity, t, self.mean_rtt).min(self.capacity).max(self.rate_min);
        self.written = carried(self.rate, &mut self.carriage);
        self.arrived = Volume::ZERO;
        self.timed = (Volume::ZERO, 0.0);
        self.interval = interval(self.mean_rtt, self.max_interval);
        self.next_update = now + self.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("rate", self.rate.as_bps());
        probe.record("mean_rtt", self.mean_rtt);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: capacity, rate_min, rate, mean_rtt, measured, arrived, interval, next_update);
        fields.put("written", &self.written.rate());
        fields.put("timed", &self.timed.0);
        fields.put("rtt_bytes", &self.timed.1);
    }
}

/// Returns R as written into packets.
fn carried(rate: Rate, carriage: &mut Carriage) -> WireRate {
    WireRate::of(carriage.carry(rate, |rate| rate, |rate| rate))
}

/// Returns the interval T, which is the average RTT or `max_interval`, whichever is shorter.
pub(super) fn interval(mean_rtt: f64, max_interval: Duration) -> Duration {
    Duration::from_secs(mean_rtt).min(max_interval)
}

/// `[rcp-2006:d]` Returns d̂ moved towards a sample by `gain`, at most 1.
pub(in crate::protocols) fn mean_rtt_next(mean_rtt: f64, sample: f64, gain: f64) -> f64 {
    mean_rtt + gain.min(1.0) * (sample - mean_rtt)
}

/// `[rcp-2006:R]` Returns α(C − y) − βq/d̂, the desired change of all flows' rates together in one d̂.
pub(super) fn spare(capacity: Rate, load: Rate, queue: Volume, alpha: f64, beta: f64, mean_rtt: f64) -> Rate {
    alpha * (capacity - load) - beta * Rate::from_bps(queue.as_bits() / mean_rtt)
}

/// `[rcp-2006:R]` Returns the next rate, R·(1 + (T/d̂)·spare/C), where C/R estimates the number of flows. With β = 0
/// this is `[maxnet-2007:eq16]`.
pub(super) fn rate_next(rate: Rate, spare: Rate, capacity: Rate, t: f64, mean_rtt: f64) -> Rate {
    rate * (1.0 + t / mean_rtt * (spare / capacity))
}
