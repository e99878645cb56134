//! Source law of XCP.

use super::{Echo, Form, Header, Params};
use crate::protocol::{Ack, Connection, Event, PacketKind, Protocol, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Volume};

/// Source that adds the feedback to its window.
#[derive(Clone, Debug)]
pub struct Source {
    form: Form,
    halve_on_loss: bool,
    weight: f64,
    packet: Volume,
    pub(super) cwnd: Volume,
    /// Smoothed RTT in seconds.
    srtt: Option<f64>,
    /// Claimed RTT in seconds that packets state instead of the true RTT, together with a window that gives the true
    /// rate.
    claimed_rtt: Option<f64>,
    /// Feedback sum in the last acknowledgement, in bytes (XCP-r).
    total: f64,
}

/// Maximum window. 10¹⁵ bytes are one second at 8 Pbit/s.
const WINDOW_MAX: Volume = Volume::from_bytes(1e15);
/// Weight of a new RTT sample in RFC 6298.
const RTT_GAIN: f64 = 1.0 / 8.0;

impl Source {
    pub(in crate::protocols) fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            form: params.header,
            halve_on_loss: params.halve_on_loss,
            weight: connection.weight,
            packet: connection.packet,
            cwnd: params.first_window * connection.packet,
            srtt: None,
            claimed_rtt: connection.claimed_rtt.map(Duration::as_secs),
            total: 0.0,
        }
    }

    pub(in crate::protocols) fn stamp(&self, sending: &Sending) -> Header {
        // A SYN states no RTT, so that routers give it no feedback.
        let rtt = self.srtt.filter(|_| sending.kind != PacketKind::Syn);
        let cwnd = self.cwnd / self.weight;
        match (rtt, self.claimed_rtt) {
            // The window is stated to match, so that the rate is the true one.
            (Some(own), Some(claimed)) => {
                Header::stamped(self.form, Some(claimed), cwnd * (claimed / own), sending.volume)
            }
            _ => Header::stamped(self.form, rtt, cwnd, sending.volume),
        }
    }

    pub(in crate::protocols) fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_secs();
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt + RTT_GAIN * (rtt - srtt)));
        }
        let change = match ack.echo {
            Echo::Window(bytes) => self.of_own_rtt(f64::from(bytes)),
            Echo::Throughput(change) => f64::from(change) * self.srtt.unwrap_or(0.0),
            Echo::Total(bytes) => {
                let total = f64::from(bytes);
                let change = total - std::mem::replace(&mut self.total, total);
                self.of_own_rtt(change)
            }
        };
        let used = ack.in_flight + ack.acked;
        if change <= 0.0 || 2.0 * used >= self.cwnd {
            self.cwnd = cwnd_next(self.cwnd, Volume::from_bytes(change), self.packet);
        }
    }

    /// Converts a change of the stated window to a change of the source's own window.
    fn of_own_rtt(&self, bytes: f64) -> f64 {
        match (self.srtt, self.claimed_rtt) {
            (Some(own), Some(claimed)) => bytes * (own / claimed),
            _ => bytes,
        }
    }

    pub(in crate::protocols) fn on_event(&mut self, event: Event) {
        match event {
            Event::Loss if self.halve_on_loss => self.cwnd = (self.cwnd / 2.0).max(self.packet),
            Event::Timeout if self.halve_on_loss => self.cwnd = self.packet,
            Event::SynsLost => self.cwnd = self.packet,
            _ => {}
        }
    }

    pub(in crate::protocols) fn list_state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, cwnd, srtt, claimed_rtt, total);
    }

    pub(in crate::protocols) const fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.cwnd), pacing: None }
    }
}

impl<P: Protocol<Params = Params, Header = Header, Echo = Echo>> crate::protocol::Source<P> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self::new(params, connection)
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        Self::stamp(self, sending)
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        self.on_ack(ack);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        self.on_event(event);
    }

    fn limit(&self) -> SendLimit {
        self.limit()
    }

    fn state(&self, fields: &mut StateFields) {
        self.list_state(fields);
    }
}

/// `[katabi-2002:cwnd]` Returns the next window, max{cwnd + feedback, s}.
fn cwnd_next(cwnd: Volume, feedback: Volume, packet: Volume) -> Volume {
    let next = (cwnd + feedback).max(packet);
    if next > WINDOW_MAX { WINDOW_MAX } else { next }
}
