//! The source law.

use crate::protocol::{Ack, Connection, PacketKind, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

use super::params::Params;
use super::{Echo, Header, JetMax, single};

/// The source: goes to its router's fair rate, and to another router when that has less for it.
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
    /// x; none before the handshake.
    rate: Option<Rate>,
    /// R_S.
    pub(super) bottleneck: u8,
    /// g as last applied.
    pub(super) target: Option<Rate>,
    /// Time since which every acknowledgement has named a router with a smaller rate.
    doubted_since: Option<Instant>,
    /// Time at which it joined its router, and time that a router needs until it has counted a flow in full.
    pub(super) joined: Instant,
    counted_after: Duration,
    /// Smoothed as in RFC 6298.
    rtt: Option<Duration>,
}

impl Source {
    /// Returns true if the flow should join the router that an acknowledgement proposes. It joins soon if it sends
    /// clearly more than it would get there, and otherwise when some router has had less for long. Meanwhile [`capped`]
    /// keeps the flow from rising past that.
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

/// `[jetmax-2006:source]` x − τ·(x − g).
pub(super) fn rate_next(before: Rate, target: Rate, tau: f64) -> Rate {
    before - tau * (before - target)
}

/// Until the first target that counts a flow in full: the rest of an interval, one whole, and an RTT.
pub(super) fn until_counted(rtt: Duration, interval: Duration) -> Duration {
    rtt + interval * 2
}

/// `[jetmax-2006:loss]` The share s = (1 − p)·x that a proposed loss stands for.
pub(super) fn share(loss: f64, rate: f64) -> f64 {
    (1.0 - loss) * rate
}

/// `[jetmax-2006:switching]` True if another router's share is below the target by more than a factor. A flow whose
/// router has left its path receives no target, and then any other has less.
pub(super) fn is_less(proposed: Rate, target: Rate, factor: f64) -> bool {
    target <= Rate::ZERO || proposed < (1.0 - factor) * target
}

/// `[jetmax-2006:switching]` The next rate, but no rise past what another router would have for it.
pub(super) fn capped(next: Rate, before: Rate, proposed: Rate) -> Rate {
    next.min(proposed.max(before))
}

/// For how many times `counted_after` a flow watches a router that has less for it, before it joins.
pub(super) const PATIENCE: u64 = 4;
