//! Source law of MKC.

use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::{Echo, Header, LEAST, Mkc, Params, single};

/// Source that takes one step for each interval of the router with the largest price.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    initial_window: Volume,
    alpha: Rate,
    beta: f64,
    interval: Duration,
    x_min: Rate,
    /// Rate x; `None` before the handshake.
    rate: Option<Rate>,
    /// Router and number of the interval of the last step.
    applied: Option<(u8, u16)>,
    /// True if that interval counted the flow from its start to its end.
    whole: bool,
    /// Time of the last step.
    updated: Instant,
    /// Volume acknowledged since the last step, and the time in seconds that it took to send.
    passed: (Volume, f64),
    /// Price of the last step.
    loss: Option<f64>,
    /// Smoothed RTT, as in RFC 6298.
    rtt: Option<Duration>,
}

impl Source {
    /// Returns true if an acknowledgement has the price of a new interval.
    fn is_new(&self, echo: &Echo, now: Instant) -> bool {
        self.applied.is_none_or(|(router, sequence)| {
            if router == echo.router { sequence != echo.sequence } else { now.since(self.updated) >= self.interval }
        })
    }

    /// Returns the mean rate of the packets acknowledged since the last step, or `rate` without data.
    fn mean_rate(&self, rate: Rate) -> Rate {
        let (volume, time) = self.passed;
        let mean = volume.as_bits() / time;
        if mean.is_finite() { Rate::from_bps(mean) } else { rate }
    }
}

impl crate::protocol::Source<Mkc> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            initial_window: connection.initial_window,
            alpha: params.alpha,
            beta: params.beta,
            interval: params.interval,
            x_min: params.x_min,
            rate: None,
            applied: None,
            whole: false,
            updated: Instant::ZERO,
            passed: (Volume::ZERO, 0.0),
            loss: None,
            rtt: None,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header { rate: single(self.rate.unwrap_or(self.x_min).as_bps()), ..Header::default() }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(sample) = ack.rtt {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        if self.rate.is_none() {
            let rtt = self.rtt.unwrap_or(ack.base_rtt);
            self.rate = Some((self.initial_window / (rtt + self.interval * 2)).max(self.x_min));
            return;
        }
        let echo = ack.echo;
        if ack.kind == PacketKind::Syn || echo.router == 0 {
            return;
        }
        let rate = Rate::from_bps(f64::from(echo.rate)).max(LEAST);
        if self.is_new(&echo, ack.now) {
            if self.whole {
                let loss = f64::from(echo.loss);
                let next = rate_next(self.mean_rate(rate), self.weight * self.alpha, self.beta, loss);
                self.rate = Some(next.max(self.x_min));
                self.loss = Some(loss);
            }
            self.whole = self.applied.is_some();
            (self.applied, self.updated) = (Some((echo.router, echo.sequence)), ack.now);
            self.passed = (Volume::ZERO, 0.0);
        }
        self.passed.0 += ack.acked;
        self.passed.1 += ack.acked / rate;
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost {
            self.initial_window = self.packet;
        }
    }

    fn limit(&self) -> SendLimit {
        match (self.rate, self.rtt) {
            (Some(rate), Some(rtt)) => SendLimit { window: Some(rate * (rtt * 2) + self.packet), pacing: Some(rate) },
            (rate, _) => SendLimit { window: Some(self.initial_window), pacing: rate },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(loss) = self.loss {
            probe.record("loss", loss);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, initial_window, rate, whole, updated, loss, rtt);
        let (router, sequence) = self.applied.unwrap_or_default();
        fields.put("router", &u32::from(router));
        fields.put("sequence", &u32::from(sequence));
        fields.put("passed", &self.passed.0);
        fields.put("passed_in", &self.passed.1);
    }
}

/// `[mkc-2004:source]` Returns the next rate, x + α − β·p·x.
pub(super) fn rate_next(before: Rate, alpha: Rate, beta: f64, loss: f64) -> Rate {
    before + alpha - (beta * loss) * before
}
