//! Windowed maxima, and the record of departures.

use std::collections::VecDeque;

use crate::units::{Duration, Instant};

/// Maximum delivery rate of the current and the previous cycle of ProbeBW (BBR.max_bw_filter, bbr-06 §5.5.5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: f64,
    current: f64,
}

impl MaxBandwidth {
    /// `[bbr-06:§5.5.5]` Adds a delivery rate in packets/s; returns the maximum.
    pub(super) fn update(&mut self, rate: f64) -> f64 {
        self.current = self.current.max(rate);
        self.max()
    }

    /// `[bbr-06:§5.5.6]` Begins the next cycle. A cycle without samples goes on, as in Linux.
    pub(super) fn advance(&mut self) {
        if self.current > 0.0 {
            *self = Self { previous: self.current, current: 0.0 };
        }
    }

    /// Returns the maximum in packets/s; 0 before the first sample.
    pub(super) const fn max(&self) -> f64 {
        self.previous.max(self.current)
    }
}

/// State of the connection when a packet left (P.* in the draft, bbr-06 §4.1.2.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Departure {
    pub(super) at: Instant,
    /// P.tx_in_flight: packets in flight, this one included.
    pub(super) in_flight: f64,
    /// P.lost: packets lost so far.
    pub(super) lost: f64,
    pub(super) app_limited: bool,
}

/// Departures of the packets that may still be lost, oldest first. Packets that leave at one instant share the first's.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures(VecDeque<Departure>);

impl Departures {
    pub(super) fn push(&mut self, departure: Departure) {
        if self.0.back().is_none_or(|newest| newest.at < departure.at) {
            self.0.push_back(departure);
        }
    }

    /// Returns the departure at this instant, if it is recorded.
    pub(super) fn at(&self, at: Instant) -> Option<Departure> {
        let place = self.0.binary_search_by(|departure| departure.at.cmp(&at)).ok()?;
        self.0.get(place).copied()
    }

    /// Returns the oldest departure.
    pub(super) fn oldest(&self) -> Option<Departure> {
        self.0.front().copied()
    }

    /// Removes the departures more than `rtt` before that of a packet that has arrived. Those packets have arrived or
    /// are known to be lost: recovery waits for at most one RTT.
    pub(super) fn forget(&mut self, arrived: Instant, rtt: Duration) {
        while self.0.front().is_some_and(|oldest| oldest.at + rtt < arrived) {
            self.0.pop_front();
        }
    }
}
