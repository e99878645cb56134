//! Source law of AECP.

use crate::math;
use crate::protocol::{Ack, Connection, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::{Form, Params, SourceKind, SourceStep, WindowRtt};
use super::{Aecp, Factor, Header};

/// Source that moves its rate towards the factor, once per RTT or once per acknowledgement.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    alpha: f64,
    form: Form,
    step: SourceStep,
    kind: SourceKind,
    window_rtt: WindowRtt,
    /// Rate x in packets/s.
    x: f64,
    /// RTT τ that the window uses, set together with x; zero before the first RTT.
    tau: Duration,
    /// Factor last received, in packets/s.
    pub(super) r: Option<f64>,
    /// Time of the last update of x; `None` before the first factor.
    updated: Option<Instant>,
}

impl crate::protocol::Source<Aecp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            alpha: params.alpha,
            form: params.form,
            step: params.step,
            kind: params.source,
            window_rtt: params.window_rtt,
            x: params.x_0,
            tau: Duration::ZERO,
            r: None,
            updated: None,
        }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header { factor: Factor::UNWRITTEN }
    }

    /// Moves x towards the received factor (§5.2).
    fn on_ack(&mut self, ack: &Ack<Header>) {
        let tau = ack.rtt.unwrap_or(ack.base_rtt);
        let of_window = if self.window_rtt == WindowRtt::Base { ack.base_rtt } else { tau };
        if self.tau.is_zero() {
            self.tau = of_window;
        }
        let Some(r) = ack.echo.factor.rate() else { return };
        self.r = Some(r);
        let t_1 = ack.now.since(*self.updated.get_or_insert(ack.now));
        if self.step == SourceStep::RoundTrip && t_1 < tau {
            return;
        }
        let weight = match self.form {
            Form::Printed => weight_printed(self.alpha, t_1.as_secs()),
            Form::Exact => weight_exact(self.alpha, t_1.as_secs()),
        };
        self.x = x_next(self.x, r, weight);
        self.tau = of_window;
        self.updated = Some(ack.now);
    }

    fn limit(&self) -> SendLimit {
        let rate = Rate::from_bps(self.weight * self.x * self.packet.as_bits());
        match self.kind {
            SourceKind::Rate => SendLimit { window: None, pacing: Some(rate) },
            SourceKind::Window => SendLimit { window: Some(rate * self.tau), pacing: Some(rate) },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(r) = self.r {
            probe.record("r", r);
            probe.record("x", self.x);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, x, tau, r, updated);
    }
}

/// `[aecp-2010:eq46]` Returns the next rate, x^(1−w)·r^w.
pub(super) fn x_next(x: f64, r: f64, weight: f64) -> f64 {
    math::pow(x, 1.0 - weight) * math::pow(r, weight)
}

/// `[aecp-2010:eq46, eq48]` Returns the weight αT₁ (2τ in eq. 48), at most 1.
pub(super) fn weight_printed(alpha: f64, t_1: f64) -> f64 {
    (alpha * t_1).min(1.0)
}

/// `[aecp-2010:eq3]` Returns the weight 1 − e^(−αT₁), which solves eq. 3 for a constant r.
pub(super) fn weight_exact(alpha: f64, t_1: f64) -> f64 {
    -math::exp_m1(-alpha * t_1)
}
