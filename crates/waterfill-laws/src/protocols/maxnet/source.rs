//! Source law of MaxNet in real numbers (Fig. 2, §IV.B).

use super::scale::Scale;
use super::{Echo, Field, Header, MaxNet, Order, Params, price_max};
use crate::math;
use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// Source that computes its window from the price. The slow state ξ equalizes the rates of all flows.
#[derive(Clone, Debug)]
pub struct Source {
    x_max: Rate,
    weight: f64,
    packet: Volume,
    alpha: f64,
    eta: f64,
    t: f64,
    /// Highest price p_max that the source applies. It bounds ξ, which follows ξ*(q).
    price_max: f64,
    scale: Scale,
    dt_min: Duration,
    order: Order,
    compensate: bool,
    path: Path,
    /// Averaged price at the last update.
    pub(super) price: f64,
    pub(super) xi: f64,
    /// Time of the last update of ξ; `None` before the first price.
    pub(super) updated: Option<Instant>,
    pub(super) start: Start,
    /// Rate x that the price gives.
    pub(super) price_rate: Rate,
    pub(super) window: Volume,
    pacing: Option<Rate>,
    /// True if the host sends at the rate, and the window only bounds the data in flight.
    paced: bool,
}

/// Numbers that depend only on the base RTT. They are computed when the base RTT changes, because the divisions would
/// double the cost of an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Path {
    base_rtt: Duration,
    /// Gain α/τ.
    gain: f64,
    /// Zero η/τ of the lead-lag compensator.
    zero: f64,
    /// Minimum rate: one packet per RTT, or in ten RTTs if paced. At a lower rate, the source would learn too late that the
    /// price has fallen.
    rate_min: Rate,
}

/// State of MaxStart (§IV.B).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Start {
    /// Waiting for a start rate.
    Asking,
    /// Rising from `initial`, currently at `rate`, and last raised at `raised` (`None` before the first price).
    Rising { initial: Rate, rate: Rate, raised: Option<Instant> },
    /// MaxStart is over: its rate has reached the price's rate, or the source received no start rate.
    Over,
}

impl Start {
    /// Returns the state as 0 (asking), 1 (rising) or 2 (over), and the fields of a rising start.
    const fn parts(self) -> (u32, Option<Rate>, Option<Rate>, Option<Instant>) {
        match self {
            Self::Asking => (0, None, None, None),
            Self::Rising { initial, rate, raised } => (1, Some(initial), Some(rate), raised),
            Self::Over => (2, None, None, None),
        }
    }
}

impl Source {
    fn set_rate(&mut self, rate: Rate) {
        let rate = rate.max(self.path.rate_min);
        let window = window(rate, self.path.base_rtt);
        self.window = if self.paced { (window / self.packet).ceil() * self.packet } else { window };
        self.pacing = Some(rate);
    }

    fn set_base_rtt(&mut self, base_rtt: Duration) {
        if base_rtt != self.path.base_rtt {
            let tau = base_rtt.as_secs();
            let gain = self.alpha / tau;
            if self.compensate && self.updated.is_some() {
                self.xi = compensated(self.xi, self.price, gain, self.path.gain);
            }
            let rtts = if self.paced { 10 } else { 1 };
            self.path = Path { base_rtt, gain, zero: self.eta / tau, rate_min: self.packet / (base_rtt * rtts) };
        }
    }

    /// Updates ξ and the price's rate for the price `q` (Fig. 2).
    fn apply_price(&mut self, q: f64, now: Instant) {
        let Path { gain, zero, .. } = self.path;
        self.price = q;
        let xi_rest = xi_equilibrium(q, gain, self.t);
        let xi = match self.updated {
            None => {
                if self.start == Start::Asking {
                    self.start = Start::Over;
                }
                xi_rest
            }
            Some(before) => {
                let dt = now.since(before).as_secs();
                clipped(self.xi, xi_next(self.xi, q, dt, gain, zero, self.t), xi_rest)
            }
        };
        let xi_in_rate = match self.order {
            Order::XiFirst => xi,
            Order::RateFirst => self.updated.map_or(xi, |_| self.xi),
        };
        self.xi = xi;
        self.updated = Some(now);
        self.price_rate = self.weight * rate(self.x_max, xi_in_rate, q, gain);
    }

    /// Returns the rate to use: MaxStart's rate while it is below the price's rate, and the price's rate afterwards.
    fn start_or_price_rate(&mut self, now: Instant) -> Rate {
        let base_rtt = self.path.base_rtt;
        if let Start::Rising { initial, rate, raised } = &mut self.start {
            let dt = now.since(*raised.get_or_insert(now));
            // Check the end first: if the price's rate is below the initial one, Δ is negative and MaxStart would not end.
            if *rate < self.price_rate && dt >= base_rtt / STEPS_PER_RTT {
                *rate += start_rise(self.price_rate - *initial, dt, base_rtt);
                *raised = Some(now);
            }
            if *rate < self.price_rate {
                return *rate;
            }
            self.start = Start::Over;
        }
        self.price_rate
    }
}

/// Number of rises per RTT: MaxStart's rate rises "approximately 16 times per RTT" (§IV.B).
const STEPS_PER_RTT: u64 = 16;

impl crate::protocol::Source<MaxNet> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            x_max: params.x_max,
            weight: connection.weight,
            packet: connection.packet,
            alpha: params.alpha,
            eta: params.eta,
            t: params.t.as_secs(),
            price_max: price_max(params.x_max, params.x_min, params.t),
            scale: Scale::new(params),
            dt_min: params.dt_min,
            order: params.order,
            compensate: params.compensate,
            path: Path { base_rtt: Duration::ZERO, gain: 0.0, zero: 0.0, rate_min: Rate::ZERO },
            price: 0.0,
            xi: 0.0,
            updated: None,
            start: Start::Asking,
            price_rate: Rate::ZERO,
            window: connection.initial_window,
            pacing: None,
            paced: params.paced,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        let price = if sending.kind == PacketKind::Syn { Field::StartRate(0) } else { Field::Price(0) };
        Header { price, tag: self.scale.tag() }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        self.set_base_rtt(ack.base_rtt);
        match ack.echo.echo {
            Field::StartRate(code) => {
                if self.start == Start::Asking {
                    if code == 0 {
                        self.start = Start::Over; // no router on the path
                        return;
                    }
                    let initial = self.scale.start_rate(code, self.x_max);
                    self.start = Start::Rising { initial, rate: initial, raised: None };
                    self.set_rate(initial);
                }
            }
            Field::Price(0) => {} // no router on the path, or no price yet
            Field::Price(code) => {
                if self.updated.is_none_or(|before| ack.now.since(before) >= self.dt_min) {
                    self.apply_price(self.scale.price(code).min(self.price_max), ack.now);
                    let rate = self.start_or_price_rate(ack.now);
                    self.set_rate(rate);
                }
            }
        }
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost {
            self.window = self.packet;
        }
    }

    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.window), pacing: self.pacing }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if self.updated.is_some() {
            probe.record("price", self.price);
            probe.record("xi", self.xi);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        let (path, (mode, initial, rate, raised)) = (&self.path, self.start.parts());
        crate::state_of!(fields, path: base_rtt, gain, zero, rate_min);
        crate::state_of!(fields, self: weight, packet, price, xi, updated, price_rate, window, pacing);
        fields.put("start", &mode);
        fields.put("start_initial", &initial);
        fields.put("start_rate", &rate);
        fields.put("start_raised", &raised);
    }
}

/// `[maxnet-2007:eq6a]` Returns the rate x = x_max·exp(ξ − αq/τ), at most x_max; `gain` is α/τ.
pub(in crate::protocols) fn rate(x_max: Rate, xi: f64, q: f64, gain: f64) -> Rate {
    x_max * math::exp((xi - gain * q).min(0.0))
}

/// `[maxnet-2007:eq10]` Returns the next ξ, ξ + (αη/τ²)·dt·((Tα/τ − 1)·q − Tξ); `gain` is α/τ and `zero` is η/τ.
pub(super) fn xi_next(xi: f64, q: f64, dt: f64, gain: f64, zero: f64, t: f64) -> f64 {
    xi + gain * zero * dt * ((t * gain - 1.0) * q - t * xi)
}

/// `[maxnet-2007:VI]` Returns ξ* = αq/τ − q/T, the equilibrium of eq. 10; `gain` is α/τ.
pub(in crate::protocols) fn xi_equilibrium(q: f64, gain: f64, t: f64) -> f64 {
    gain * q - q / t
}

/// `[tcp-maxnet-2006:eq12]` Returns ξ + q·(α/τ_new − α/τ_old), with which eq. 6a gives the same rate as before.
pub(super) fn compensated(xi: f64, q: f64, gain_new: f64, gain_old: f64) -> f64 {
    xi + q * (gain_new - gain_old)
}

/// `[maxnet-2007:VI]` Returns `next`, or `rest` if the step from `xi` to `next` would pass `rest`.
pub(in crate::protocols) fn clipped(xi: f64, next: f64, rest: f64) -> f64 {
    if (xi <= rest) == (next <= rest) { next } else { rest }
}

/// `[maxnet-2007:eq10]` Returns the window W = τ·x.
pub(in crate::protocols) fn window(rate: Rate, base_rtt: Duration) -> Volume {
    rate * base_rtt
}

/// `[maxnet-2007:IV.B]` Returns the rise Δ·dt/(2τ) of MaxStart's rate.
pub(super) fn start_rise(delta: Rate, dt: Duration, base_rtt: Duration) -> Rate {
    delta * (dt / base_rtt / 2.0)
}
