//! Source law of RCP.

use crate::protocol::{Ack, Connection, Event, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::{Echo, Header, Rcp, WireRate};

/// Source that sends at the rate that the last acknowledgement returned.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    initial_window: Volume,
    pub(super) rate: Option<Rate>,
    rtt_us: u32,
    claimed_rtt: Option<Duration>,
}

impl crate::protocol::Source<Rcp> for Source {
    fn new(_params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            initial_window: connection.initial_window,
            rate: None,
            rtt_us: 0,
            claimed_rtt: connection.claimed_rtt,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header { rate: WireRate::UNLIMITED, rtt_us: self.rtt_us }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(rtt) = ack.rtt {
            let stated = self.claimed_rtt.unwrap_or(rtt);
            // An RTT below half a microsecond is still one.
            self.rtt_us = ((stated.as_secs() * 1e6 + 0.5) as u32).max(1);
        }
        self.rate = ack.echo.rate.rate().or(self.rate);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost {
            self.initial_window = self.packet;
        }
    }

    fn limit(&self) -> SendLimit {
        match self.rate {
            Some(rate) => SendLimit { window: None, pacing: Some(self.weight * rate) },
            None => SendLimit { window: Some(self.initial_window), pacing: None },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(rate) = self.rate {
            probe.record("rate", rate.as_bps());
        }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, initial_window, rate, rtt_us, claimed_rtt);
    }
}
