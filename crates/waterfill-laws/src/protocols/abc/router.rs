//! Router law of ABC.

use crate::protocol::{LinkView, PacketKind, Passing, Probe};
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::sliding::Sliding;
use super::{Abc, Mark};

/// Router law of one link direction, which writes "accelerate" or "brake" into departing packets.
#[derive(Clone, Debug)]
pub struct Router {
    eta: f64,
    delta: Duration,
    delay_threshold: Duration,
    /// Volume that the link could have sent in the last T; its rate is μ.
    capacity: Sliding,
    /// Volume that the link has sent in the last T; its rate is cr.
    departed: Sliding,
    /// Time of the last measurement of both volumes; `sending` is the unsent rest of the current packet.
    measured: Instant,
    sending: Volume,
    token: f64,
    token_limit: f64,
    /// Target rate tr at the last departure.
    pub(super) target_rate: Rate,
    /// Fraction f of the packets to accelerate, at the last departure.
    pub(super) accelerate: f64,
}

impl Router {
    /// Counts the bits sent since the last measurement. Whole packets would be too coarse, because T holds only a few
    /// packets. A link that has a queue and sends nothing counts as having no capacity.
    fn measure(&mut self, link: &LinkView, now: Instant) {
        let able = link.capacity * now.since(self.measured);
        let sent = if self.sending < able { self.sending } else { able };
        self.capacity.add(if link.queue > Volume::ZERO { sent } else { able });
        self.departed.add(sent);
        self.sending -= sent;
        self.measured = now;
    }
}

impl crate::protocol::Router<Abc> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let eta = link.target.unwrap_or(params.eta);
        Self {
            eta,
            delta: params.delta,
            delay_threshold: params.delay_threshold,
            capacity: Sliding::new(params.window, link.capacity),
            departed: Sliding::new(params.window, Rate::ZERO),
            measured: Instant::ZERO,
            sending: Volume::ZERO,
            token: 0.0,
            token_limit: params.token_limit,
            target_rate: eta * link.capacity,
            accelerate: 1.0,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, _passing: &mut Passing<'_, Mark>) {}

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, Mark>) {
        self.measure(link, passing.now);
        let rest = std::mem::replace(&mut self.sending, passing.volume); // of a link that was faster than its capacity
        self.capacity.add(rest);
        self.departed.add(rest);
        let Some(mark) = passing.header.as_deref_mut().filter(|_| passing.kind == PacketKind::Data) else { return };
        let (mu, cr) = (self.capacity.rate(passing.now), self.departed.rate(passing.now));
        self.target_rate = target_rate(self.eta, mu, link.queue, self.delay_threshold, self.delta);
        self.accelerate = accelerate(self.target_rate, cr);
        *mark = marked(*mark, &mut self.token, self.accelerate, self.token_limit);
    }

    fn poll_at(&self) -> Instant {
        self.capacity.ends()
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.measure(link, now);
        self.capacity.advance();
        self.departed.advance();
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("target_rate", self.target_rate.as_bps());
        probe.record("accelerate", self.accelerate);
    }
}

/// `[abc-2020:eq1]` Returns the target rate tr = η·μ − (q − μ·d_t)⁺/δ, at least 0. With x = q/μ this is the paper's η·μ
/// − (μ/δ)·(x − d_t)⁺.
pub(super) fn target_rate(eta: f64, mu: Rate, queue: Volume, delay_threshold: Duration, delta: Duration) -> Rate {
    let excess = (queue - mu * delay_threshold).max(Volume::ZERO);
    (eta * mu - excess / delta).max(Rate::ZERO)
}

/// `[abc-2020:eq2]` Returns the fraction f = min(½·tr/cr, 1) of the packets to accelerate.
pub(super) fn accelerate(target_rate: Rate, dequeue_rate: Rate) -> f64 {
    if 0.5 * target_rate >= dequeue_rate { 1.0 } else { 0.5 * (target_rate / dequeue_rate) }
}

/// `[abc-2020:alg1]` Returns a packet's new mark. At most a fraction f of the packets keep "accelerate"; a brake stays
/// a brake.
pub(super) fn marked(mark: Mark, token: &mut f64, accelerate: f64, token_limit: f64) -> Mark {
    *token = (*token + accelerate).min(token_limit);
    if mark == Mark::Accelerate && *token > 1.0 {
        *token -= 1.0;
        return Mark::Accelerate;
    }
    Mark::Brake
}
