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
    /// Last RTT in units of `rtt_per_s`, as packets carry it; 0 if not known yet.
    rtt: u32,
    /// Units of the RTT in a second.
    rtt_per_s: f64,
    claimed_rtt: Option<Duration>,
}

impl crate::protocol::Source<Rcp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            initial_window: connection.initial_window,
            rate: None,
            rtt: 0,
            rtt_per_s: per_s(params.rtt_unit),
            claimed_rtt: connection.claimed_rtt,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header { rate: WireRate::UNLIMITED, rtt: self.rtt }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(rtt) = ack.rtt {
            let stated = self.claimed_rtt.unwrap_or(rtt);
            // An RTT below half a unit is still one.
            self.rtt = ((stated.as_secs() * self.rtt_per_s + 0.5) as u32).max(1);
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
        crate::state_of!(fields, self: weight, packet, initial_window, rate, rtt, claimed_rtt);
    }
}

/// Returns the number of units in a second.
fn per_s(unit: Duration) -> f64 {
    1e12 / unit.as_ps() as f64
}
