//! Source law of the 2006 thesis in real numbers (Fig. 5).

use super::{Echo, Field, Header, MaxNet2006, Params, stamped};
use crate::protocol::{Ack, Connection, Event, Probe, SendLimit, Sending};
use crate::protocols::maxnet::{
    PriceUnit, averaged, clipped, price_max, rate, real, start_rate, window, xi_equilibrium,
};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// Source that starts with QuickStart and then computes its window from the averaged price and the slow state ξ.
#[derive(Clone, Debug)]
pub struct Source {
    params: Box<Params>,
    /// Highest price p_max that the source applies. It bounds ξ, which follows ξ*(q).
    price_max: f64,
    weight: f64,
    packet: Volume,
    pub(super) mode: Mode,
    /// State from the prices so far; `None` before the first price.
    pub(super) price_state: Option<PriceState>,
    pub(super) window: Volume,
    /// Pacing rate: the window divided by the base RTT; `None` before a router's first field.
    pacing: Option<Rate>,
}

/// State of QuickStart (Fig. 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// Waiting for a start rate.
    Asking,
    /// Sending at this start rate (`QSfinished = false`).
    QuickStart(Rate),
    /// QuickStart is over, and the price sets the window.
    Priced,
}

/// State that a source derives from the received prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriceState {
    /// Averaged price q.
    pub(super) average: f64,
    pub(super) xi: f64,
    /// Base RTT for which ξ was computed.
    base_rtt: Duration,
    /// Time of the last price.
    last_price_at: Instant,
    /// Time of the last step 3 of Fig. 5; `acks` counts the acknowledgements since then.
    updated: Instant,
    acks: u32,
    /// Time of the last step 4 of Fig. 5; `last_price` is the price at that time ("lastq").
    raised: Instant,
    last_price: f64,
}

impl Source {
    /// `[tcp-maxnet-2006:fig5.1]` Starts QuickStart at a granted rate.
    fn start(&mut self, code: u32, base_rtt: Duration) {
        if code == 0 {
            self.mode = Mode::Priced; // no router on the path
            return;
        }
        let rate = start_rate(real(code), self.params.x_max);
        self.mode = Mode::QuickStart(rate);
        self.set_window(rate, base_rtt);
    }

    /// Updates ξ and the window for a price. The first price is step 2 of Fig. 5 (`[tcp-maxnet-2006:fig5.2]`), and
    /// later prices are step 3.
    fn on_price(&mut self, price: f64, now: Instant, base_rtt: Duration) {
        let Params { alpha, eta, t, .. } = *self.params;
        let (t, tau) = (t.as_secs(), base_rtt.as_secs());
        let price_state = if let Some(mut price_state) = self.price_state {
            if base_rtt != price_state.base_rtt {
                if self.params.compensate {
                    price_state.xi =
                        compensated(price_state.xi, price_state.average, alpha, tau, price_state.base_rtt.as_secs());
                }
                price_state.base_rtt = base_rtt;
            }
            let weight = if self.params.average { now.since(price_state.last_price_at) / base_rtt } else { 1.0 };
            price_state.average = averaged(price_state.average, price, weight);
            price_state.last_price_at = now;
            price_state.acks = price_state.acks.saturating_add(1);
            let dt = now.since(price_state.updated);
            if price_state.acks < self.params.wnd_update_freq || dt < self.params.dt_source {
                self.price_state = Some(price_state);
                return;
            }
            let rest = xi_equilibrium(price_state.average, alpha / tau, t);
            let next = xi_next(price_state.xi, price_state.average, dt.as_secs(), tau, alpha, eta, t);
            price_state.xi = clipped(price_state.xi, next, rest);
            PriceState { updated: now, acks: 0, ..price_state }
        } else {
            if self.mode == Mode::Asking {
                self.mode = Mode::Priced;
            }
            PriceState {
                average: price,
                xi: xi_equilibrium(price, alpha / tau, t),
                base_rtt,
                last_price_at: now,
                updated: now,
                acks: 0,
                raised: now,
                last_price: price,
            }
        };
        self.price_state = Some(self.update_window(price_state, now));
    }

    /// `[tcp-maxnet-2006:fig5.3, fig5.4]` Updates the window and the state of QuickStart.
    fn update_window(&mut self, price_state: PriceState, now: Instant) -> PriceState {
        let PriceState { average, xi, base_rtt, .. } = price_state;
        let Params { x_max, alpha, rateinc, mindeltaq, .. } = *self.params;
        let price_rate = self.weight * rate(x_max, xi, average, alpha / base_rtt.as_secs());
        let Mode::QuickStart(start) = self.mode else {
            self.set_window(price_rate, base_rtt);
            return price_state;
        };
        self.set_window(start, base_rtt);
        if start > price_rate {
            self.mode = Mode::Priced; // from the next update on
            return price_state;
        }
        if now.since(price_state.raised) < base_rtt {
            return price_state;
        }
        if window(start, base_rtt) > self.window_max() {
            return PriceState { raised: now, ..price_state };
        }
        if rises_slowly(average, price_state.last_price, base_rtt.as_secs(), mindeltaq) {
            self.mode = Mode::QuickStart(start * rateinc);
        }
        PriceState { raised: now, last_price: average, ..price_state }
    }

    fn set_window(&mut self, rate: Rate, base_rtt: Duration) {
        // With less than a packet per RTT, the source would learn too late that the price has fallen.
        let window = window(rate, base_rtt).max(self.packet);
        self.window = if window > self.window_max() { self.window_max() } else { window };
        self.pacing = Some(self.window / base_rtt);
    }

    fn window_max(&self) -> Volume {
        self.packet * f64::from(self.params.max_wnd)
    }
}

impl crate::protocol::Source<MaxNet2006> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            params: Box::new(params.clone()),
            price_max: price_max(params.x_max, params.x_min, params.t),
            weight: connection.weight,
            packet: connection.packet,
            mode: Mode::Asking,
            price_state: None,
            window: connection.initial_window,
            pacing: None,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        stamped(self.params.quickstart, sending)
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        match ack.echo.echo {
            Field::StartRate(code) if self.mode == Mode::Asking => self.start(code, ack.base_rtt),
            // A second start rate; or no router on the path, or no price yet.
            Field::StartRate(_) | Field::Price(0) => {}
            Field::Price(code) => self.on_price(
                PriceUnit::of(self.params.price_unit).price(code).min(self.price_max),
                ack.now,
                ack.base_rtt,
            ),
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
        if let Some(PriceState { average, xi, .. }) = self.price_state {
            probe.record("price", average);
            probe.record("xi", xi);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        let (mode, start_rate) = match self.mode {
            Mode::Asking => (0u32, None),
            Mode::QuickStart(rate) => (1, Some(rate)),
            Mode::Priced => (2, None),
        };
        let prices = self.price_state.as_ref();
        crate::state_of!(fields, self: weight, packet, window, pacing);
        fields.put("mode", &mode);
        fields.put("start_rate", &start_rate);
        fields.put("average", &prices.map(|p| p.average));
        fields.put("xi", &prices.map(|p| p.xi));
        fields.put("base_rtt", &prices.map(|p| p.base_rtt));
        fields.put("last_price_at", &prices.map(|p| p.last_price_at));
        fields.put("updated", &prices.map(|p| p.updated));
        fields.put("acks", &prices.map(|p| p.acks));
        fields.put("raised", &prices.map(|p| p.raised));
        fields.put("last_price", &prices.map(|p| p.last_price));
    }
}

/// `[tcp-maxnet-2006:eq9]` Returns the next ξ, ξ + (η·dt/τ²)·((Tα/τ − 1)·q − Tξ).
pub(super) fn xi_next(xi: f64, q: f64, dt: f64, tau: f64, alpha: f64, eta: f64, t: f64) -> f64 {
    xi + eta / (tau * tau) * dt * ((t * (alpha / tau) - 1.0) * q - t * xi)
}

/// `[tcp-maxnet-2006:eq12]` Returns ξ + qα·(1/τ_new − 1/τ_old), with which eq. 8 gives the same rate as before.
pub(super) fn compensated(xi: f64, q: f64, alpha: f64, tau_new: f64, tau_old: f64) -> f64 {
    xi + q * alpha * (1.0 / tau_new - 1.0 / tau_old)
}

/// `[tcp-maxnet-2006:fig5.4]` Returns true if q = 0 or (q − lastq)/τ < mindeltaq; `mindeltaq` is in 2⁻¹⁸ per second.
pub(super) fn rises_slowly(q: f64, last: f64, tau: f64, mindeltaq: u32) -> bool {
    q == 0.0 || (q - last) / tau < real(mindeltaq)
}
