//! Source law of VCP.

use crate::math;
use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Volume};

use super::params::{Freeze, Params};
use super::{Load, Vcp};

/// Source that applies MI, AI or MD, depending on the path's load.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    pub(super) packet: Volume,
    xi: f64,
    alpha: f64,
    beta: f64,
    t_rho: f64,
    t_d: f64,
    /// RTTs (s) between which AI is scaled with the square of the RTT.
    ai_rtts: (f64, f64),
    freeze: Freeze,
    /// Window cwnd in packets, at least 1.
    pub(super) window: f64,
    load: Load,
    /// Two times set by the last MD. The window is frozen until the first time, and AI answers overload until the
    /// second time.
    decreased: Option<(Instant, Instant)>,
    /// Smoothed RTT, as in RFC 6298.
    rtt: Option<Duration>,
}

/// Reaction of the source to an acknowledged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Multiply,
    Add,
    Decrease,
    Freeze,
}

impl Source {
    /// `[vcp-2005:MD]` Returns the action for the current load. After one MD, the window is frozen for t_ρ, and AI then
    /// answers overload for an RTT.
    fn action(&self, now: Instant) -> Action {
        match (self.load, self.decreased) {
            (load, Some((frozen_until, _)))
                if now < frozen_until && (load == Load::Over || self.freeze == Freeze::Always) =>
            {
                Action::Freeze
            }
            (Load::Over, Some((_, adding_until))) if now < adding_until => Action::Add,
            (Load::Over, _) => Action::Decrease,
            (Load::High, _) => Action::Add,
            (Load::Low, _) => Action::Multiply,
        }
    }
}

impl crate::protocol::Source<Vcp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            xi: params.xi,
            alpha: params.alpha,
            beta: params.beta,
            t_rho: params.t_rho.as_secs(),
            t_d: params.t_d.as_secs(),
            ai_rtts: (params.ai_rtt_min.as_secs(), params.ai_rtt_max.as_secs()),
            freeze: params.freeze,
            window: (connection.initial_window / connection.packet).max(1.0),
            load: Load::Low,
            decreased: None,
            rtt: None,
        }
    }

    fn stamp(&mut self, _sending: &Sending) -> Load {
        Load::Low
    }

    fn on_ack(&mut self, ack: &Ack<Load>) {
        if let Some(sample) = ack.rtt {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        let packets = ack.acked / self.packet;
        if ack.kind == PacketKind::Syn || packets <= 0.0 {
            return;
        }
        self.load = ack.echo;
        let smoothed = self.rtt.unwrap_or(ack.base_rtt);
        let rtt = smoothed.as_secs();
        match self.action(ack.now) {
            Action::Freeze => {}
            // [vcp-2005:MI]
            Action::Multiply => self.window += packets * xi_scaled(self.xi, rtt, self.t_rho),
            // [vcp-2005:AI]
            Action::Add => {
                let alpha = alpha_scaled(self.weight * self.alpha, rtt, self.t_d, self.ai_rtts);
                self.window += packets / self.window * alpha;
            }
            Action::Decrease => {
                self.window = decreased(self.window, self.beta);
                let frozen_until = ack.now + Duration::from_secs(self.t_rho);
                self.decreased = Some((frozen_until, frozen_until + smoothed));
            }
        }
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        match event {
            Event::Loss => self.window = decreased(self.window, 0.5),
            Event::Timeout | Event::SynsLost => self.window = 1.0,
            Event::Marked | Event::Recovered | Event::Spurious | Event::Idle => {}
        }
    }

    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.window * self.packet), pacing: None }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("load", f64::from(self.load as u8));
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, window, rtt);
        fields.put("load", &u32::from(self.load as u8));
        fields.put("frozen_until", &self.decreased.map(|(frozen, _)| frozen));
        fields.put("adding_until", &self.decreased.map(|(_, adding)| adding));
    }
}

/// `[vcp-2005:MI-scaling]` Returns ξ_s = (1 + ξ)^(rtt/t_ρ) − 1, with the exponent at most 2.5.
pub(super) fn xi_scaled(xi: f64, rtt: f64, t_rho: f64) -> f64 {
    math::pow(1.0 + xi, (rtt / t_rho).min(MI_TIMES_T_RHO)) - 1.0
}

/// `[vcp-2005:AI-scaling]` Returns α_rate = α·(rtt/t_d)², which is linear in the RTT outside 20 to 500 ms.
pub(super) fn alpha_scaled(alpha: f64, rtt: f64, t_d: f64, (rtt_min, rtt_max): (f64, f64)) -> f64 {
    let (short, long) = (rtt_min / t_d, rtt_max / t_d);
    let x = rtt / t_d;
    let squared = if x <= short {
        x * short
    } else if x <= long {
        x * x
    } else {
        x - long + long * long
    };
    alpha * squared
}

/// `[vcp-2005:MD]` Returns the window after MD, β·w, but at least one packet.
pub(super) fn decreased(window: f64, beta: f64) -> f64 {
    (beta * window).max(1.0)
}

/// Maximum exponent of MI: an RTT of 500 ms over a t_ρ of 200 ms (from the authors' ns-2 code).
pub(super) const MI_TIMES_T_RHO: f64 = 2.5;
