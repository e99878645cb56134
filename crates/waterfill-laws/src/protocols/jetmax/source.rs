//! Source law of JetMax.

use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::{Echo, Header, JetMax, single};

/// Source that approaches its router's fair rate, and joins another router that offers less.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    initial_window: Volume,
    tau: f64,
    epsilon: f64,
    urgent: f64,
    interval: Duration,
    x_min: Rate,
    /// Rate x; `None` before the handshake.
    rate: Option<Rate>,
    /// Router R_S that the flow belongs to.
    pub(super) bottleneck: u8,
    /// Fair rate g that the source last applied, times its weight.
    pub(super) target: Option<Rate>,
    /// Time since which every acknowledgement has named a router that offers less than the target.
    doubted_since: Option<Instant>,
    /// Time at which the flow joined its router; `counted_after` is the time until the router has fully counted the
    /// flow.
    pub(super) joined: Instant,
    counted_after: Duration,
    /// Smoothed RTT, as in RFC 6298.
    rtt: Option<Duration>,
}

impl Source {
    /// Returns true if the flow should join the router that an acknowledgement proposes. A flow joins soon if its rate
    /// is clearly above the proposed one, and otherwise after a longer time of lower proposals. Meanwhile [`capped`]
    /// keeps the flow's rate from rising above the proposals.
    fn leaves(&mut self, before: Rate, proposed: Rate, now: Instant) -> bool {
        let doubted = now.since(*self.doubted_since.get_or_insert(now));
        let patience =
            if is_less(proposed, before, self.urgent) { self.interval } else { self.counted_after * PATIENCE };
        doubted >= patience
    }

    fn join(&mut self, router: u8, now: Instant, rtt: Duration) {
        self.bottleneck = router;
        self.joined = now;
        self.counted_after = until_counted(rtt, self.interval);
        self.doubted_since = None;
    }
}

impl crate::protocol::Source<JetMax> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            initial_window: connection.initial_window,
            tau: params.tau,
            epsilon: params.epsilon,
            urgent: params.urgent,
            interval: params.interval,
            x_min: params.x_min,
            rate: None,
            bottleneck: 0,
            target: None,
            doubted_since: None,
            joined: Instant::ZERO,
            counted_after: Duration::ZERO,
            rtt: None,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        let rate = self.rate.unwrap_or(self.x_min);
        Header {
            rate: single(rate.as_bps()),
            interval: single(self.weight * (sending.volume / rate)),
            bottleneck: self.bottleneck,
            ..Header::default()
        }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(sample) = ack.rtt {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        let rtt = self.rtt.unwrap_or(ack.base_rtt);
        let echo = ack.echo;
        if self.rate.is_none() {
            self.join(echo.next, ack.now, rtt);
            self.rate = Some((self.initial_window / self.counted_after).max(self.x_min));
            return;
        }
        let counted = ack.now.since(self.joined) >= self.counted_after;
        if ack.kind == PacketKind::Syn || echo.next == 0 || echo.bottleneck != self.bottleneck || !counted {
            return;
        }
        let before = Rate::from_bps(f64::from(echo.rate));
        let target = self.weight * Rate::from_bps(f64::from(echo.target));
        let proposed = Rate::from_bps(share(f64::from(echo.loss), f64::from(echo.rate)));
        let doubts = echo.next != echo.bottleneck && is_less(proposed, target, self.epsilon);
        if !doubts {
            self.doubted_since = None;
        } else if target <= Rate::ZERO || self.leaves(before, proposed, ack.now) {
            self.join(echo.next, ack.now, rtt);
            return;
        }
        if target > Rate::ZERO {
            let next = rate_next(before, target, self.tau);
            self.target = Some(target);
            self.rate = Some(if doubts { capped(next, before, proposed) } else { next }.max(self.x_min));
        }
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
        if let Some(target) = self.target {
            probe.record("target", target.as_bps());
        }
        probe.record("bottleneck", f64::from(self.bottleneck));
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, initial_window, rate, target, doubted_since, joined, counted_after, rtt);
        fields.put("bottleneck", &u32::from(self.bottleneck));
    }
}

/// `[jetmax-2006:source]` Returns the next rate, x − τ·(x − g).
pub(super) fn rate_next(before: Rate, target: Rate, tau: f64) -> Rate {
    before - tau * (before - target)
}

/// Returns an upper bound of the time until a router's target fully counts the flow: an RTT and two intervals.
pub(super) fn until_counted(rtt: Duration, interval: Duration) -> Duration {
    rtt + interval * 2
}

/// `[jetmax-2006:loss]` Returns the fair share s = (1 − p)·x for a proposed loss p.
pub(super) fn share(loss: f64, rate: f64) -> f64 {
    (1.0 - loss) * rate
}

/// `[jetmax-2006:switching]` Returns true if another router's share is below the target by more than the fraction
/// `factor`. Also returns true for a flow without a target, whose router has left the path.
pub(super) fn is_less(proposed: Rate, target: Rate, factor: f64) -> bool {
    target <= Rate::ZERO || proposed < (1.0 - factor) * target
}

/// `[jetmax-2006:switching]` Returns the next rate, but without a rise above the share that another router proposes.
pub(super) fn capped(next: Rate, before: Rate, proposed: Rate) -> Rate {
    next.min(proposed.max(before))
}

/// Number of `counted_after` times for which a flow watches a router that offers less, before the flow joins that
/// router.
pub(super) const PATIENCE: u64 = 4;
