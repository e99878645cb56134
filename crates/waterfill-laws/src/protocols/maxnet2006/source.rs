//! The source's law in real numbers (Fig. 5).

use super::{Echo, Field, Header, MaxNet2006, Params, stamped};
use crate::protocol::{Ack, Connection, Limit, Probe, Sending};
use crate::protocols::maxnet::{averaged, clipped, rate, real, start_rate, window, xi_equilibrium};
use crate::units::{Duration, Instant, Rate, Volume};

/// The source: QuickStart, then the window from the averaged price, fair by ξ.
#[derive(Clone, Debug)]
pub struct Source {
    params: Params,
    weight: f64,
    packet: Volume,
    pub(super) mode: Mode,
    /// None before the first price.
    pub(super) signal: Option<Signalled>,
    pub(super) window: Volume,
    /// Window over base round trip; none before a router was heard.
    pacing: Option<Rate>,
}

/// Where QuickStart stands (Fig. 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// No start rate has come.
    Asking,
    /// `QSfinished = false`: sending at this rate.
    QuickStart(Rate),
    /// The price rules.
    Priced,
}

/// What a source keeps of the prices that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signalled {
    /// q, averaged.
    pub(super) average: f64,
    pub(super) xi: f64,
    /// baseRTT that ξ belongs to.
    base_rtt: Duration,
    /// When the last price came.
    heard: Instant,
    /// When step 3 was last done, and acknowledgements since.
    updated: Instant,
    acks: u32,
    /// When step 4 was last done, and the price then ("lastq").
    raised: Instant,
    last_price: f64,
}

impl Source {
    /// `[tcp-maxnet-2006:fig5.1]` A start rate has come.
    fn start(&mut self, code: u32, base_rtt: Duration) {
        if code == 0 {
            self.mode = Mode::Priced; // no router on the path
            return;
        }
        let rate = start_rate(real(code), self.params.x_max);
        self.mode = Mode::QuickStart(rate);
        self.set_window(rate, base_rtt);
    }

    /// `[tcp-maxnet-2006:fig5.2]` at the first price; ξ of step 3 later.
    fn hear(&mut self, price: f64, now: Instant, base_rtt: Duration) {
        let Params { alpha, eta, t, .. } = self.params;
        let (t, tau) = (t.as_secs(), base_rtt.as_secs());
        let signal = if let Some(mut signal) = self.signal {
            if base_rtt != signal.base_rtt {
                if self.params.compensate {
                    signal.xi = compensated(signal.xi, signal.average, alpha, tau, signal.base_rtt.as_secs());
                }
                signal.base_rtt = base_rtt;
            }
            let weight = if self.params.average { now.since(signal.heard) / base_rtt } else { 1.0 };
            signal.average = averaged(signal.average, price, weight);
            signal.heard = now;
            signal.acks = signal.acks.saturating_add(1);
            let dt = now.since(signal.updated);
            if signal.acks < self.params.wnd_update_freq || dt < self.params.dt_source {
                self.signal = Some(signal);
                return;
            }
            let rest = xi_equilibrium(signal.average, alpha / tau, t);
            let next = xi_next(signal.xi, signal.average, dt.as_secs(), tau, alpha, eta, t);
            signal.xi = clipped(signal.xi, next, rest);
            Signalled { updated: now, acks: 0, ..signal }
        } else {
            if self.mode == Mode::Asking {
                self.mode = Mode::Priced;
            }
            Signalled {
                average: price,
                xi: xi_equilibrium(price, alpha / tau, t),
                base_rtt,
                heard: now,
                updated: now,
                acks: 0,
                raised: now,
                last_price: price,
            }
        };
        self.signal = Some(self.obey(signal, now));
    }

    /// `[tcp-maxnet-2006:fig5.3, fig5.4]` The window, and whether QuickStart goes on.
    fn obey(&mut self, signal: Signalled, now: Instant) -> Signalled {
        let Signalled { average, xi, base_rtt, .. } = signal;
        let Params { x_max, alpha, rateinc, mindeltaq, .. } = self.params;
        let price_rate = self.weight * rate(x_max, xi, average, alpha / base_rtt.as_secs());
        let Mode::QuickStart(start) = self.mode else {
            self.set_window(price_rate, base_rtt);
            return signal;
        };
        self.set_window(start, base_rtt);
        if start > price_rate {
            self.mode = Mode::Priced; // from the next update on
            return signal;
        }
        if now.since(signal.raised) < base_rtt {
            return signal;
        }
        if window(start, base_rtt) > self.window_max() {
            return Signalled { raised: now, ..signal };
        }
        if rises_slowly(average, signal.last_price, base_rtt.as_secs(), mindeltaq) {
            self.mode = Mode::QuickStart(start * rateinc);
        }
        Signalled { raised: now, last_price: average, ..signal }
    }

    fn set_window(&mut self, rate: Rate, base_rtt: Duration) {
        // With less than a packet a round trip it would hear too late that the price has fallen.
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
            params: params.clone(),
            weight: connection.weight,
            packet: connection.packet,
            mode: Mode::Asking,
            signal: None,
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
            // A second start rate; a path without router, or where none has written yet.
            Field::StartRate(_) | Field::Price(0) => {}
            Field::Price(code) => self.hear(real(code), ack.now, ack.base_rtt),
        }
    }

    fn limit(&self) -> Limit {
        Limit { window: Some(self.window), pacing: self.pacing }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(Signalled { average, xi, .. }) = self.signal {
            probe.record("price", average);
            probe.record("xi", xi);
        }
    }
}

/// `[tcp-maxnet-2006:eq9]` ξ + (η·dt/τ²)·((Tα/τ − 1)·q − Tξ).
pub(super) fn xi_next(xi: f64, q: f64, dt: f64, tau: f64, alpha: f64, eta: f64, t: f64) -> f64 {
    xi + eta / (tau * tau) * dt * ((t * (alpha / tau) - 1.0) * q - t * xi)
}

/// `[tcp-maxnet-2006:eq12]` ξ + qα·(1/τ_new − 1/τ_old): eq. 8 gives the rate it gave.
pub(super) fn compensated(xi: f64, q: f64, alpha: f64, tau_new: f64, tau_old: f64) -> f64 {
    xi + q * alpha * (1.0 / tau_new - 1.0 / tau_old)
}

/// `[tcp-maxnet-2006:fig5.4]` q = 0 or (q − lastq)/τ < mindeltaq, the latter in 2⁻¹⁸ per second.
pub(super) fn rises_slowly(q: f64, last: f64, tau: f64, mindeltaq: u32) -> bool {
    q == 0.0 || (q - last) / tau < real(mindeltaq)
}
