//! TCP MaxNet of the 2006 thesis: sources start at a rate the routers grant, then obey the highest price.
//!
//! # Law
//! Every link computes a price, packets carry the largest on their path, and a source's rate falls
//! exponentially with it. A new source starts at the rate that the path has to spare and raises it
//! each round trip until the price answers.
//!
//! - `eq7`   p ← p + (y − μC·dt)/C every dt, y the volume that came
//! - `eq11`  p ≥ p_min = −T·ln(C/x_max)
//! - `3.1.2` QSrate = (μ + ε)·C − y/dt, at least QSminrate = C/128; the least of the path
//! - `eq8`   x = x_max · exp(ξ − qα/τ), PriceWnd = τ·x
//! - `eq9`   ξ ← ξ + (η·dt/τ²)·((Tα/τ − 1)·q − Tξ), never past
//! - `eq10`  ξ* = q·(α/τ − 1/T), where ξ also starts
//! - `fig5.3` in QuickStart the window is QSWnd = τ·QSrate; it ends when QSWnd > PriceWnd
//! - `fig5.4` every τ: unless q rose by mindeltaq·τ, QSrate ← QSrate·rateinc
//! - `4.5`   q is the average over one round trip of the prices that come back
//! - `eq12`  when τ changes, ξ ← ξ + qα·(1/τ_new − 1/τ_old), so that x does not jump
//! - `3.3`   a price is 23 bits, 18 of them fractional; a start rate travels as −ln(rate/x_max)
//!
//! # Symbols
//! | thesis | here | unit |
//! |---|---|---|
//! | p, q | `price`, `average` | s (a price is a time) |
//! | y | `arrived` | bytes |
//! | C | `LinkView::capacity` | bit/s |
//! | μ, ε, dt | `mu`, `epsilon`, `dt` | 1, 1, s |
//! | x_max | `x_max` | bit/s |
//! | ξ | `xi` | 1 |
//! | α, η, T | `alpha`, `eta`, `t` | 1, 1, s |
//! | baseRTT | `base_rtt` / `tau` | s |
//! | QSrate, QSWnd, PriceWnd | `QuickStart::rate`, windows | bit/s, bytes |
//! | mindeltaq, rateinc | `mindeltaq`, `rateinc` | 2⁻¹⁸ per second, 1 |
//!
//! # Header
//! MaxNet's option (Fig. 6): kind 42, length, echo (3 bytes), price (3 bytes).
//!
//! # Router
//! [`Router`]: one addition and one comparison a packet; a price update every dt; a logarithm a SYN.
//!
//! # Source
//! [`Source`]: the average at each acknowledgement; ξ, an exponential and the window every dt.
//! The receiver only copies.
//!
//! # Parameters
//! [`Params`]: §4.2 and §4.3. `arithmetic = "kernel"` runs router and source in the integers of
//! `kernel/maxnet2006.h`, whose head tells scales and errors.
//!
//! # Readings and deviations
//! - Eq. 7 prints μC where a volume is needed: μC·dt. Fig. 4 is lost; §3.1.1 names no queue term,
//!   so there is none: μ < 1 alone empties queues, and a price rises by at most 1 − μ a second while
//!   acknowledgements hold the load at C. So what 470 Mbit/s of UDP push into the queue stands 0.6 s.
//! - ε is a share of C (§3.1.2: C(μ + ε)).
//! - Step 4 prints `QSWnd < cwnd`, which step 3 (cwnd ← QSWnd) never leaves true. Taken as QSWnd ≤
//!   cwnd: the start rate is not raised while `max_wnd` holds the window below it.
//! - No value of `rateinc` is given. On Fig. 11's link a second, paced flow has its half, and the queue its
//!   peak, after 1.4 s and 0.18 MB (1.125), 0.84 s and 0.6 MB (1.25), 0.6 s and 0.84 MB (1.5), 0.45 s
//!   and 1.8 MB (2). 1.25 is the slowest that takes "a fraction of a second" (§7).
//! - "lastq" starts at the first price, and step 4's clock with it.
//! - Step 3's dt has the router's value. With an update for every acknowledgement (`dt_source = 0`,
//!   as `wnd_update_freq` = 1 alone would have it) rates differ by less than half a per cent.
//! - ξ is updated before the window, as Fig. 5 prints: its time constant is τ²/(ηT) = τ²/7 ms, and below
//!   τ ≈ 2.6 ms it reaches ξ* at every update. Simulated without trouble from 20 µs at 10 Gbit/s, where
//!   the pipe is 17 packets and whole packets are what is left of fairness, to 400 ms.
//! - The average over one round trip is exponential with weight dt/τ, at most 1, as the 2007 paper
//!   has it. How "the algorithm was modified to take into account the additional feedback delay"
//!   (§4.5) is not told, and nothing is.
//! - A window is at most `max_wnd` packets and at least one, as any TCP's; a rate at most x_max.
//! - A field that no router wrote (code 0) is no price: the source keeps its window. So step 4's
//!   "q = 0" never holds, because p_min > 0 where C < x_max. A connection's weight scales eq. 8.
//! - Losses do not move the window (§4.3).
//! - With QuickStart off the SYN carries a price.
//! - Kernel arithmetic: the thesis rounds τ to milliseconds (§4.1, `rtt_unit`); the exponential has
//!   257 entries and interpolation in place of 64,000 without; prices, averages and ξ keep 16 more bits
//!   in memory than on the wire, for steps smaller than 2⁻¹⁸ would be lost.
//!
//! # Validation
//! Equation tests below, by hand from the thesis: p_min (§4.2), ξ's worked example (§4.1), Fig. 10's
//! equilibrium. The integers against the law, equation by equation over their range and whole, in
//! `kernel`. In the simulator (`tests/maxnet2006.rs`): Fig. 7, 8, 10, 11, 12, 13 and 14; both
//! arithmetics side by side, whose rates differ by 0.15 % at most where round trips are whole
//! milliseconds. Fig. 7's instability without averaging does not show: there is no token bucket here; under
//! bursts of 8 ms every 20 ms averaging makes the window's ripple 0.3 % where it is 4.1 % without.
//! Unpaced, flows differ by up to 1 % (each keeps its place in the bursts); paced, by 0.2 %.
//!
//! # References
//! `tcp-maxnet-2006`: Suchara, "TCP MaxNet: Background, Algorithms, Implementation and Experiments",
//! thesis, California Institute of Technology. `maxnet-2007` where both agree: [`super::maxnet`].

mod kernel;

pub use super::maxnet::{Echo, Field, Header};
use super::maxnet::{
    averaged, check_range, clipped, demand_inverse, highest, price_next, quantise, rate, real, start_rate,
    start_rate_code, window, xi_equilibrium,
};
use crate::arithmetic::{Arithmetic, ChoosesArithmetic, RealOrFixed};
use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Host, Info, Kind, Limit, LinkView, PacketKind, Passing, Probe, Protocol, Sending, Signal,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `maxnet2006`.
#[derive(Debug)]
pub struct MaxNet2006;

impl Protocol for MaxNet2006 {
    const INFO: Info = Info {
        name: "maxnet2006",
        summary: "the thesis's TCP MaxNet: QuickStart, averaging at the sender, real or integer arithmetic",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: false,
        host: Host::EXPLICIT,
        signals: &[
            Signal { name: "price", unit: "s", doc: "the link's price, or the averaged price the source obeys" },
            Signal { name: "xi", unit: "1", doc: "the source's slow state ξ" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = RealOrFixed<Router, kernel::Router>;
    type Receiver = EchoLast<Echo>;
    type Source = RealOrFixed<Source, kernel::Source>;

    fn check_link(params: &Params, link: &LinkView) -> Result<(), ParamError> {
        check_range(params.x_max, params.t, link.capacity)
    }
    fn target(params: &Params) -> f64 {
        params.mu
    }
}

// ---------------------------------------------------------------------------------- router

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    dt: Duration,
    capacity: Rate,
    x_max: Rate,
    t: f64,
    mu: f64,
    start_share: f64,
    /// QSminrate is the capacity over this.
    start_min_divisor: f64,
    price_min: f64,
    price: f64,
    /// y: volume since the last update.
    arrived: Volume,
    /// y/dt of the last full interval.
    arrival_rate: Rate,
    next_update: Instant,
}

impl Router {
    /// The link's capacity may have changed.
    fn follow(&mut self, link: &LinkView) {
        if self.capacity != link.capacity {
            self.capacity = link.capacity;
            self.price_min = demand_inverse(link.capacity, self.x_max, self.t);
            self.price = self.price.max(self.price_min);
        }
    }

    fn tick(&mut self, arrived: Volume) {
        self.arrival_rate = arrived / self.dt;
        self.price = price_next(self.price, arrived, self.capacity, self.mu, self.dt.as_secs(), self.price_min);
    }

    fn mark(&self, field: Field) -> Field {
        match field {
            Field::Price(code) => Field::Price(highest(code, quantise(self.price))),
            Field::StartRate(code) => {
                let start_min = self.capacity / self.start_min_divisor;
                let spare = granted(self.capacity, self.start_share, self.arrival_rate, start_min);
                Field::StartRate(highest(code, quantise(start_rate_code(spare, self.x_max))))
            }
        }
    }
}

impl crate::protocol::Router<MaxNet2006> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mu = link.target.unwrap_or(params.mu);
        let price_min = demand_inverse(link.capacity, params.x_max, params.t.as_secs());
        Self {
            dt: params.dt,
            capacity: link.capacity,
            x_max: params.x_max,
            t: params.t.as_secs(),
            mu,
            start_share: mu + params.epsilon,
            start_min_divisor: f64::from(params.qs_min_divisor),
            price_min,
            price: price_min,
            arrived: Volume::ZERO,
            arrival_rate: Rate::ZERO,
            next_update: Instant::ZERO + params.dt,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(Header { price }) = passing.header.as_deref_mut() {
            *price = self.mark(*price);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.follow(link);
        self.tick(self.arrived);
        self.arrived = Volume::ZERO;
        self.next_update = now + self.dt;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", self.price);
    }
}

/// `[tcp-maxnet-2006:3.1.2]` (μ + ε)·C − y/dt, at least QSminrate.
fn granted(capacity: Rate, start_share: f64, arrival_rate: Rate, start_min: Rate) -> Rate {
    (capacity * start_share - arrival_rate).max(start_min)
}

// ---------------------------------------------------------------------------------- source

/// The source: QuickStart, then the window from the averaged price, fair by ξ.
#[derive(Clone, Debug)]
pub struct Source {
    params: Params,
    weight: f64,
    packet: Volume,
    mode: Mode,
    /// None before the first price.
    signal: Option<Signalled>,
    window: Volume,
    /// Window over base round trip; none before a router was heard.
    pacing: Option<Rate>,
}

/// Where QuickStart stands (Fig. 5).
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// No start rate has come.
    Asking,
    /// `QSfinished = false`: sending at this rate.
    QuickStart(Rate),
    /// The price rules.
    Priced,
}

/// What a source keeps of the prices that came.
#[derive(Clone, Copy, Debug)]
struct Signalled {
    /// q, averaged.
    average: f64,
    xi: f64,
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
    /// Fig. 5, step 1.
    fn start(&mut self, code: u32, base_rtt: Duration) {
        if code == 0 {
            self.mode = Mode::Priced; // no router on the path
            return;
        }
        let rate = start_rate(real(code), self.params.x_max);
        self.mode = Mode::QuickStart(rate);
        self.set_window(rate, base_rtt);
    }

    /// Fig. 5, step 2 at the first price, ξ of step 3 later.
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

    /// Fig. 5, the window of step 3, and step 4.
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

/// A SYN asks for a start rate, everything else for a price.
fn stamped(quickstart: bool, sending: &Sending) -> Header {
    let asks = quickstart && sending.kind == PacketKind::Syn;
    Header { price: if asks { Field::StartRate(0) } else { Field::Price(0) } }
}

/// `[tcp-maxnet-2006:eq9]` ξ + (η·dt/τ²)·((Tα/τ − 1)·q − Tξ).
fn xi_next(xi: f64, q: f64, dt: f64, tau: f64, alpha: f64, eta: f64, t: f64) -> f64 {
    xi + eta / (tau * tau) * dt * ((t * (alpha / tau) - 1.0) * q - t * xi)
}

/// `[tcp-maxnet-2006:eq12]` ξ + qα·(1/τ_new − 1/τ_old): eq. 8 gives the rate it gave.
fn compensated(xi: f64, q: f64, alpha: f64, tau_new: f64, tau_old: f64) -> f64 {
    xi + q * alpha * (1.0 / tau_new - 1.0 / tau_old)
}

/// `[tcp-maxnet-2006:fig5.4]` q = 0 or (q − lastq)/τ < mindeltaq, the latter in 2⁻¹⁸ per second.
fn rises_slowly(q: f64, last: f64, tau: f64, mindeltaq: u32) -> bool {
    q == 0.0 || (q - last) / tau < real(mindeltaq)
}

// ---------------------------------------------------------------------------------- parameters

crate::params! {
    /// Parameters of §4.2 and §4.3.
    pub struct Params {
        /// Maximal supported rate x_max.
        x_max: Rate = Rate::from_bps(1e15), "tcp-maxnet-2006 §3.3";
        /// Speed of convergence T of the demand function.
        t: Duration = Duration::from_millis(50), "tcp-maxnet-2006 §4.3, tcp_maxnet_T";
        /// Convergence parameter α.
        alpha: f64 = 0.3, "tcp-maxnet-2006 §4.3, tcp_maxnet_alpha";
        /// Convergence parameter η.
        eta: f64 = 0.14, "tcp-maxnet-2006 §4.3, tcp_maxnet_eta";
        /// Least time between two updates of ξ and the window.
        dt_source: Duration = Duration::from_millis(1), "the dt of tcp-maxnet-2006 §4.2, taken for Fig. 5's too";
        /// Acknowledgements between two updates of ξ and the window.
        wnd_update_freq: u32 = 1, "tcp-maxnet-2006 §4.3, tcp_maxnet_wnd_update_freq";
        /// Largest window in packets.
        max_wnd: u32 = 65_535, "tcp-maxnet-2006 §4.3, tcp_maxnet_max_wnd";
        /// Whether a connection starts at a rate the routers grant.
        quickstart: bool = true, "tcp-maxnet-2006 §4.3, tcp_maxnet_QS_enabled";
        /// Factor by which the start rate rises each round trip.
        rateinc: f64 = 1.25, "our choice: the thesis gives no value";
        /// Rise of the price, in 2⁻¹⁸ per second, that keeps the start rate from rising.
        mindeltaq: u32 = 16_000, "tcp-maxnet-2006 §4.3, tcp_maxnet_dpdt_threshold";
        /// Whether the source averages prices over one round trip.
        average: bool = true, "tcp-maxnet-2006 §4.5";
        /// Whether ξ is corrected when the base round trip changes (eq. 12).
        compensate: bool = true, "tcp-maxnet-2006 §4.5";
        /// Target utilisation μ of a link.
        mu: f64 = 0.94, "tcp-maxnet-2006 §4.2";
        /// Share ε of a link above its target that start rates are granted from.
        epsilon: f64 = 0.0, "tcp-maxnet-2006 §4.2";
        /// A start rate is at least the link's capacity over this.
        qs_min_divisor: u32 = 128, "tcp-maxnet-2006 §4.2: QSminrate = C/128";
        /// Interval dt between two price updates of a router.
        dt: Duration = Duration::from_millis(1), "tcp-maxnet-2006 §4.2";
        /// Real numbers, or the kernel's integers.
        arithmetic: Arithmetic = Arithmetic::Real, "tcp-maxnet-2006 §4.1 for the integers";
        /// What the kernel arithmetic rounds a base round trip to.
        rtt_unit: Duration = Duration::from_millis(1), "tcp-maxnet-2006 §4.1: baseRTT × 1000";
    }
}

impl ChoosesArithmetic for Params {
    fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.x_max.as_bps() > 0.0, "x_max", "a rate above zero")?;
        require(!self.t.is_zero(), "t", "a time above zero")?;
        require(
            self.alpha > 0.0 && self.alpha < std::f64::consts::FRAC_PI_2,
            "alpha",
            "a number in (0, π/2), by maxnet-2007 eq. 4",
        )?;
        require(self.eta > 0.0, "eta", "a number above zero")?;
        require(self.wnd_update_freq > 0, "wnd_update_freq", "at least 1")?;
        require(self.max_wnd > 0, "max_wnd", "at least 1")?;
        // One that does not grow never ends QuickStart; sixteenfold is past any use and keeps integers in range.
        require(self.rateinc > 1.0 && self.rateinc <= 16.0, "rateinc", "a number in (1, 16]")?;
        require(self.mu > 0.0 && self.mu <= 1.0, "mu", "a number in (0, 1]")?;
        require((0.0..=1.0).contains(&self.epsilon), "epsilon", "a number in [0, 1]")?;
        require(self.qs_min_divisor > 0, "qs_min_divisor", "at least 1")?;
        require(!self.dt.is_zero(), "dt", "a time above zero")?;
        kernel::check(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Router as _, Source as _};
    use crate::testing::{close, connection, echo_after};

    const GIGABIT: Rate = Rate::from_bps(1e9);
    const X_MAX: Rate = Rate::from_bps(1e15);

    /// `[tcp-maxnet-2006:eq11]` 0.05 · ln 10⁶ = 0.690 776 = 181083/2¹⁸, §4.2's value.
    #[test]
    fn eq11_p_min_of_one_gigabit() {
        let link = LinkView { id: 0, capacity: GIGABIT, target: None, queue: Volume::ZERO };
        for arithmetic in [Arithmetic::Real, Arithmetic::Kernel] {
            let params = Params { arithmetic, ..Params::default() };
            let mut router = Router::new(&params, &link);
            let mut header = Header::default();
            let mut passing = Passing {
                now: Instant::ZERO,
                volume: Volume::from_bytes(1500.0),
                packets: 1.0,
                kind: PacketKind::Data,
                header: Some(&mut header),
            };
            router.on_arrival(&link, &mut passing);
            assert_eq!(header.price, Field::Price(181_083));
        }
    }

    /// Fig. 10: at 0.94 Gbit/s and 28 ms, q = 0.05 · ln(10¹⁵/0.94·10⁹) and ξ = q · (0.3/0.028 − 20).
    #[test]
    fn eq10_equilibrium_of_figure_10() {
        let q = demand_inverse(Rate::from_bps(0.94e9), X_MAX, 0.05);
        close(q, 0.693_869_298, 1e-9); // 0.05 · (13.815 510 56 + 0.061 875 40)
        assert_eq!(quantise(q), 181_894);
        let xi = xi_equilibrium(q, 0.3 / 0.028, 0.05);
        close(xi, -6.443_072_05, 1e-8); // 0.693 869 298 · −9.285 714 29
        close(rate(X_MAX, xi, q, 0.3 / 0.028).as_bps(), 0.94e9, 1e-12);
        close(xi_next(xi, q, 1e-3, 0.028, 0.3, 0.14, 0.05), xi, 1e-14);
    }

    /// `[tcp-maxnet-2006:eq9]` without α: 0.14·10⁻³/0.028² · (−13/28 · 0.69 + 0.05 · 6) = −0.003 635 204.
    #[test]
    fn eq9_xi_step() {
        close(xi_next(-6.0, 0.69, 1e-3, 0.028, 0.3, 0.14, 0.05), -6.003_635_204_08, 1e-11);
    }

    /// `[tcp-maxnet-2006:eq12]` 28 to 27 ms: 0.69 · 0.3 · (1/0.027 − 1/0.028) = 0.273 809 5, and x stays.
    #[test]
    fn eq12_compensation() {
        let xi = compensated(-6.0, 0.69, 0.3, 0.027, 0.028);
        close(xi, -5.726_190_476, 1e-9);
        let before = rate(X_MAX, -6.0, 0.69, 0.3 / 0.028);
        close(rate(X_MAX, xi, 0.69, 0.3 / 0.027).as_bps(), before.as_bps(), 1e-12);
        // Without it the rate falls to e^−0.274 = 76 % (Fig. 8a).
        close(rate(X_MAX, -6.0, 0.69, 0.3 / 0.027) / before, 0.760_476, 1e-5);
    }

    /// `[tcp-maxnet-2006:3.1.2]` 0.94 − 0.5 Gbit/s; on a full link C/128.
    #[test]
    fn eq_3_1_2_start_rates() {
        let min = GIGABIT / 128.0;
        close(granted(GIGABIT, 0.94, Rate::from_bps(5e8), min).as_bps(), 4.4e8, 1e-12);
        assert_eq!(granted(GIGABIT, 0.94, Rate::from_bps(9.4e8), min).as_bps(), 7_812_500.0);
        assert_eq!(granted(GIGABIT, 0.94, Rate::from_bps(2e9), min).as_bps(), 7_812_500.0);
    }

    /// `[tcp-maxnet-2006:fig5.4]` 16000 · 2⁻¹⁸ · 28 ms is a rise of 448 codes.
    #[test]
    fn fig5_4_rises_slowly() {
        let last = real(181_000);
        assert!(rises_slowly(real(181_447), last, 0.028, 16_000));
        assert!(!rises_slowly(real(181_449), last, 0.028, 16_000));
        assert!(rises_slowly(real(180_000), last, 0.028, 16_000), "it falls");
        assert!(rises_slowly(0.0, 0.0, 0.028, 0), "q = 0");
    }

    type Router = <MaxNet2006 as Protocol>::Router;
    type Source = <MaxNet2006 as Protocol>::Source;

    fn ack(at_ms: f64, echo: Field, base_ms: u64) -> Ack<Echo> {
        let rtt = Duration::from_millis(base_ms);
        Ack { acked: Volume::from_bytes(1500.0), ..Ack::new(Instant::from_secs(at_ms * 1e-3), Echo { echo }, rtt) }
    }

    fn signals(source: &Source) -> (f64, f64) {
        #[derive(Default)]
        struct Seen([f64; 2]);
        impl Probe for Seen {
            fn record(&mut self, signal: &'static str, value: f64) {
                self.0[usize::from(signal == "xi")] = value;
            }
        }
        let mut seen = Seen::default();
        source.observe(&mut seen);
        (seen.0[0], seen.0[1])
    }

    fn window_of(source: &Source) -> Volume {
        source.limit().window.unwrap()
    }

    fn both(params: &Params) -> [Source; 2] {
        [Arithmetic::Real, Arithmetic::Kernel]
            .map(|arithmetic| Source::new(&Params { arithmetic, ..params.clone() }, &connection()))
    }

    /// Fig. 5, steps 1 to 4, on a link whose price says 100 Mbit/s.
    #[test]
    fn quickstart_rises_each_round_trip_and_ends_at_the_price() {
        let price = Field::Price(quantise(demand_inverse(Rate::from_bps(1e8), X_MAX, 0.05)));
        for mut source in both(&Params::default()) {
            let rate_of = |source: &Source| (window_of(source) / Duration::from_millis(28)).as_bps();
            source.on_ack(&ack(28.0, Field::StartRate(quantise(-(5e7_f64 / 1e15).ln())), 28));
            close(rate_of(&source), 5e7, 2e-5);
            source.on_ack(&ack(56.0, price, 28)); // the second: ξ = ξ*
            let (q, xi) = signals(&source);
            close(xi, q * (0.3 / 0.028 - 20.0), 1e-9);
            close(rate_of(&source), 5e7, 2e-5);
            for (ms, mbps) in
                [(70.0, 50.0), (84.0, 50.0), (86.0, 62.5), (112.0, 62.5), (114.0, 78.125), (141.0, 78.125)]
            {
                // Raised at 84, 112 and 140 ms, in force from the next update on.
                source.on_ack(&ack(ms, price, 28));
                close(rate_of(&source), mbps * 1e6, 3e-5);
            }
            source.on_ack(&ack(169.0, price, 28)); // 97.7 Mbit/s, and raised to 122
            source.on_ack(&ack(170.0, price, 28)); // more than the price's 100: the last of QuickStart
            close(rate_of(&source), 122.07e6, 1e-4);
            source.on_ack(&ack(171.0, price, 28));
            close(rate_of(&source), 1e8, 1e-4);
        }
    }

    /// `[tcp-maxnet-2006:fig5.4]` a price that rises by 449 codes a round trip keeps the start rate.
    #[test]
    fn a_rising_price_holds_the_start_rate() {
        for (rise, held) in [(447, false), (449, true)] {
            for mut source in both(&Params { average: false, ..Params::default() }) {
                source.on_ack(&ack(28.0, Field::StartRate(quantise(-(5e6_f64 / 1e15).ln())), 28));
                let start = window_of(&source);
                for round in 0..4 {
                    source.on_ack(&ack(f64::from(56 + 28 * round), Field::Price(181_083 + rise * round as u32), 28));
                }
                assert_eq!(window_of(&source) == start, held, "{rise} codes a round trip");
            }
        }
    }

    /// `[tcp-maxnet-2006:4.5]` a quarter of a round trip moves the average by a quarter; off, all the way.
    #[test]
    fn the_source_averages_over_a_round_trip() {
        for (average, then) in [(true, 0.75), (false, 0.9)] {
            for mut source in both(&Params { average, ..Params::default() }) {
                source.on_ack(&ack(28.0, Field::Price(quantise(0.7)), 28));
                source.on_ack(&ack(35.0, Field::Price(quantise(0.9)), 28));
                close(signals(&source).0, then, 1e-5);
                source.on_ack(&ack(63.0, Field::Price(quantise(0.9)), 28));
                close(signals(&source).0, 0.9, 1e-5);
            }
        }
    }

    /// Fig. 8: 1 ms less leaves the rate with eq. 12, and takes 24 % of it without.
    #[test]
    fn a_shorter_round_trip_keeps_the_rate_if_compensated() {
        let price = Field::Price(181_894);
        for (compensate, kept, xi_moves) in [(true, 1.0, 0.275_345), (false, 0.7593, 0.0)] {
            for mut source in both(&Params { compensate, dt_source: Duration::ZERO, ..Params::default() }) {
                source.on_ack(&ack(28.0, price, 28));
                let (rate, xi) = (window_of(&source) / Duration::from_millis(28), signals(&source).1);
                source.on_ack(&ack(28.001, price, 27));
                close(window_of(&source) / Duration::from_millis(27) / rate, kept, 2e-4);
                assert!((signals(&source).1 - xi - xi_moves).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn without_a_router_the_window_stays() {
        for mut source in both(&Params::default()) {
            let before = source.limit();
            source.on_ack(&ack(28.0, Field::StartRate(0), 28));
            source.on_ack(&ack(56.0, Field::Price(0), 28));
            assert_eq!(source.limit(), before);
        }
    }

    #[test]
    fn max_wnd_bounds_the_window_and_the_start_rate() {
        for mut source in both(&Params { max_wnd: 100, ..Params::default() }) {
            source.on_ack(&ack(28.0, Field::StartRate(quantise(-(1e9_f64 / 1e15).ln())), 28));
            assert_eq!(window_of(&source).as_bytes(), 150_000.0);
            for ms in 0..500_u32 {
                // A price of 100 Gbit/s never ends QuickStart, and the start rate does not run away.
                source.on_ack(&ack(56.0 + f64::from(ms), Field::Price(quantise(0.05 * 1e4_f64.ln())), 28));
            }
            assert_eq!(window_of(&source).as_bytes(), 150_000.0);
            for ms in 0..500_u32 {
                source.on_ack(&ack(600.0 + f64::from(ms), Field::Price(quantise(0.05 * 5e6_f64.ln())), 28));
            }
            let rate = window_of(&source).as_bits() / 0.028;
            assert!(rate < 43e6, "at once down to what the price says: {rate}");
        }
    }

    /// 10 kbit/s at 28 ms are 35 bytes: a packet, whoever says so.
    #[test]
    fn the_smallest_windows() {
        for mut source in both(&Params::default()) {
            source.on_ack(&ack(28.0, Field::StartRate(quantise(-(1e4_f64 / 1e15).ln())), 28));
            assert_eq!(window_of(&source).as_bytes(), 1500.0);
        }
        for mut source in both(&Params { quickstart: false, ..Params::default() }) {
            for (ms, price) in [(28.0, 0.05 * 1e11_f64.ln()), (2000.0, 5.0)] {
                source.on_ack(&ack(ms, Field::Price(quantise(price)), 28));
                assert_eq!(window_of(&source).as_bytes(), 1500.0);
                close(source.limit().pacing.unwrap().as_bps(), 12_000.0 / 0.028, 1e-5);
            }
        }
    }

    #[test]
    fn the_window_waits_for_its_acknowledgements() {
        for mut source in both(&Params { wnd_update_freq: 3, average: false, ..Params::default() }) {
            source.on_ack(&ack(28.0, Field::Price(181_894), 28));
            let before = window_of(&source);
            for (ms, moved) in [(30.0, false), (32.0, false), (34.0, true)] {
                source.on_ack(&ack(ms, Field::Price(185_000), 28));
                assert_eq!(window_of(&source) != before, moved, "{ms} ms");
            }
            let before = window_of(&source);
            for (ms, moved) in [(34.1, false), (34.2, false), (34.9, false), (35.0, true)] {
                source.on_ack(&ack(ms, Field::Price(181_894), 28));
                assert_eq!(window_of(&source) != before, moved, "{ms} ms: not before dt_source");
            }
        }
    }

    #[test]
    fn with_quickstart_off_the_syn_asks_for_a_price() {
        let syn = Sending::new(Instant::ZERO, PacketKind::Syn, Volume::from_bytes(40.0));
        let [mut on, _] = both(&Params::default());
        let [mut off, _] = both(&Params { quickstart: false, ..Params::default() });
        assert_eq!(on.stamp(&syn).price, Field::StartRate(0));
        assert_eq!(off.stamp(&syn).price, Field::Price(0));
        assert_eq!(on.stamp(&Sending { kind: PacketKind::Data, ..syn }).price, Field::Price(0));
    }

    #[test]
    fn a_receiver_copies_the_last_field() {
        for price in [Field::StartRate(7), Field::Price(9), Field::Price(4)] {
            let echo = echo_after::<MaxNet2006>(&Params::default(), &[Header::default(), Header { price }]);
            assert_eq!(echo, Echo { echo: price });
        }
    }
}
