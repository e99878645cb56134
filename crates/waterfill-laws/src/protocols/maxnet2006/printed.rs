//! MaxNet's law in the integers that the 2006 thesis prints (§4.1, §4.3). Prices have units of 2⁻¹⁸ s, parameters are
//! in thousandths, times in milliseconds, and windows in whole packets. The table has no interpolation.
//!
//! Every division truncates towards zero, after all multiplications, as §4.1's example has it. The kernel version
//! ([`super::fixed_point`]) keeps 16 more bits of prices and ξ, and interpolates.

use super::router::granted;
use super::thinned::Marking;
use super::{Echo, Field, Header, MaxNet2006, Params, stamped};
use crate::math;
use crate::protocol::{Ack, Connection, Event, LinkView, Passing, Probe, SendLimit, Sending};
use crate::protocols::maxnet::{PriceRange, highest, price_max, quantise, real, start_rate_code};
use crate::units::{Duration, Instant, Rate, Volume};

/// Number of records in the table of the exponential (§4.3: "approximately 64,000").
const RECORDS: u32 = 64_000;
/// Divisor that turns an exponent in 2⁻¹⁸ into a record's index. Steps of 2⁻¹¹ cover 31.25, and ln(10¹⁵/32) is 31.07.
const RECORD_STEP: i64 = 1 << 7;
/// Maximum RTT in milliseconds. Longer RTTs are clamped, which keeps products within 63 bits.
const RTT_MAX_MS: i64 = 1 << 24;

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    link: Scales,
    /// Price p in 2⁻¹⁸ s.
    pub(super) price: i64,
    arrived: Volume,
    arrival_rate: Rate,
    next_update: Instant,
    marking: Marking,
}

/// Numbers that depend only on a link's capacity.
#[derive(Clone, Copy, Debug)]
struct Scales {
    capacity: Rate,
    /// Capacity of the link, in bit/s.
    capacity_bps: i64,
    /// Target volume μ·C·dt of an interval, in bits.
    target_bits: i64,
    price_min: i64,
    price_max: i64,
    start_share: f64,
}

impl Scales {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mu = link.target.unwrap_or(params.mu);
        let range = PriceRange::new(link.capacity, params.x_max, params.x_min, params.t);
        Self {
            capacity: link.capacity,
            capacity_bps: (link.capacity.as_bps() as i64).max(1),
            target_bits: (mu * link.capacity.as_bps() * params.dt.as_secs()) as i64,
            price_min: i64::from(quantise(range.min)),
            price_max: largest_price(range.max),
            start_share: mu + params.epsilon,
        }
    }
}

impl Router {
    /// `[tcp-maxnet-2006:eq7]` Adds (y − μC·dt)/C to the price p in 2⁻¹⁸ s, and drops fractions of a unit.
    pub(super) fn tick(&mut self, arrived: Volume) {
        self.arrival_rate = arrived / self.params.dt;
        let over = (arrived.as_bits() as i64).min(1 << 44) - self.link.target_bits;
        let change = (over << 18) / self.link.capacity_bps;
        self.price = (self.price + change).max(self.link.price_min).min(self.link.price_max);
    }

    pub(super) fn mark(&self, field: Field) -> Field {
        match field {
            Field::Price(code) => Field::Price(highest(code, code_of(self.price))),
            Field::StartRate(code) => {
                let start_min = self.link.capacity / f64::from(self.params.qs_min_divisor);
                let spare = granted(self.link.capacity, self.link.start_share, self.arrival_rate, start_min);
                Field::StartRate(highest(code, quantise(start_rate_code(spare, self.params.x_max))))
            }
        }
    }
}

/// Returns p_max in whole 2⁻¹⁸ s, at most 2²² s.
fn largest_price(price_max: f64) -> i64 {
    (price_max / real(1)).min((1_u64 << 40) as f64) as i64
}

/// Returns the 23-bit code of a price on the wire.
fn code_of(price: i64) -> u32 {
    price.clamp(0, i64::from(crate::protocols::maxnet::CODE_MAX)) as u32
}

impl crate::protocol::Router<MaxNet2006> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let scales = Scales::new(params, link);
        Self {
            params: params.clone(),
            link: scales,
            price: scales.price_min,
            arrived: Volume::ZERO,
            arrival_rate: Rate::ZERO,
            next_update: Instant::ZERO + params.dt,
            marking: Marking::new(params.mark_every),
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(price) = self.marking.field(passing) {
            *price = self.mark(*price);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if self.link.capacity != link.capacity {
            self.link = Scales::new(&self.params, link);
            self.price = self.price.max(self.link.price_min).min(self.link.price_max);
        }
        self.tick(self.arrived);
        self.arrived = Volume::ZERO;
        self.next_update = now + self.params.dt;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", signed_real(self.price));
    }
}

/// Source of the 2006 thesis's law, in integers.
#[derive(Clone, Debug)]
pub struct Source {
    numbers: Numbers,
    params: Box<Params>,
    /// Highest price p_max that the source applies, in 2⁻¹⁸ s.
    price_max: i64,
    /// Rate x_max times the weight, in bit/s.
    scale: f64,
    packet: Volume,
    mode: Mode,
    prices: Option<Prices>,
    /// Window in packets.
    pub(super) window: u32,
    base_rtt: Duration,
}

/// Parameters in thousandths and milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) alpha: i64,
    pub(super) eta: i64,
    pub(super) t: i64,
    pub(super) rateinc: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Asking,
    /// QuickStart at this rate, in bit/s.
    QuickStart(f64),
    Priced,
}

/// State from the prices so far: prices and ξ in 2⁻¹⁸, times in whole milliseconds.
#[derive(Clone, Copy, Debug)]
struct Prices {
    average: i64,
    xi: i64,
    base_rtt: i64,
    last_price_at: i64,
    updated: i64,
    acks: u32,
    raised: i64,
    last_price: i64,
}

impl Source {
    fn on_price(&mut self, price: i64, now: i64, base_rtt: i64) {
        let Numbers { alpha, .. } = self.numbers;
        let Some(mut state) = self.prices else {
            if self.mode == Mode::Asking {
                self.mode = Mode::Priced;
            }
            let state = Prices {
                average: price,
                xi: xi_rest(price, &self.numbers, base_rtt),
                base_rtt,
                last_price_at: now,
                updated: now,
                acks: 0,
                raised: now,
                last_price: price,
            };
            self.prices = Some(self.update_window(state, now));
            return;
        };
        if base_rtt != state.base_rtt {
            if self.params.compensate {
                state.xi += state.average * alpha / base_rtt - state.average * alpha / state.base_rtt;
            }
            state.base_rtt = base_rtt;
        }
        if self.params.average {
            let dt = (now - state.last_price_at).min(base_rtt);
            state.average += (price - state.average) * dt / base_rtt;
        } else {
            state.average = price;
        }
        state.last_price_at = now;
        state.acks = state.acks.saturating_add(1);
        let dt = now - state.updated;
        if state.acks < self.params.wnd_update_freq || dt < millis(self.params.dt_source) {
            self.prices = Some(state);
            return;
        }
        state.xi = xi_next(state.xi, state.average, dt, base_rtt, &self.numbers);
        let state = Prices { updated: now, acks: 0, ..state };
        self.prices = Some(self.update_window(state, now));
    }

    /// `[tcp-maxnet-2006:fig5.3, fig5.4]` Updates the window and the state of QuickStart.
    fn update_window(&mut self, state: Prices, now: i64) -> Prices {
        let gain = state.average * self.numbers.alpha / state.base_rtt;
        let price_rate = tabulated(self.scale, gain - state.xi);
        let Mode::QuickStart(start) = self.mode else {
            self.set_window(price_rate, state.base_rtt);
            return state;
        };
        self.set_window(start, state.base_rtt);
        if start > price_rate {
            self.mode = Mode::Priced;
            return state;
        }
        if now - state.raised < state.base_rtt {
            return state;
        }
        let rise = (state.average - state.last_price) * 1000 / state.base_rtt;
        if state.average == 0 || rise < i64::from(self.params.mindeltaq) {
            self.mode = Mode::QuickStart((start * self.numbers.rateinc / 1000.0).floor());
        }
        Prices { raised: now, last_price: state.average, ..state }
    }

    /// `[tcp-maxnet-2006:4.3]` Sets the window snd_cwnd to baseRTT times the rate, in whole packets.
    fn set_window(&mut self, rate: f64, base_rtt: i64) {
        let packets = rate * base_rtt as f64 / 1000.0 / self.packet.as_bits();
        self.window = (packets as u32).clamp(1, self.params.max_wnd);
        self.base_rtt = Duration::from_millis(base_rtt as u64);
    }
}

impl crate::protocol::Source<MaxNet2006> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let thousandths = |x: f64| (x * 1e3).round() as i64;
        let initial = connection.initial_window.as_bytes() / connection.packet.as_bytes();
        Self {
            numbers: Numbers {
                alpha: thousandths(params.alpha),
                eta: thousandths(params.eta),
                t: millis(params.t),
                rateinc: (params.rateinc * 1e3).round(),
            },
            params: Box::new(params.clone()),
            price_max: largest_price(price_max(params.x_max, params.x_min, params.t)),
            scale: (params.x_max * connection.weight).as_bps(),
            packet: connection.packet,
            mode: Mode::Asking,
            prices: None,
            window: (initial as u32).max(1),
            base_rtt: Duration::ZERO,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        stamped(self.params.quickstart, sending)
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        let base_rtt = millis(ack.base_rtt).clamp(1, RTT_MAX_MS);
        match ack.echo.echo {
            Field::StartRate(0) if self.mode == Mode::Asking => self.mode = Mode::Priced,
            Field::StartRate(code) if self.mode == Mode::Asking => {
                let start = tabulated(self.params.x_max.as_bps(), i64::from(code));
                self.mode = Mode::QuickStart(start);
                self.set_window(start, base_rtt);
            }
            Field::StartRate(_) | Field::Price(0) => {}
            Field::Price(code) => {
                self.on_price(i64::from(code).min(self.price_max), millis(ack.now.since(Instant::ZERO)), base_rtt);
            }
        }
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost {
            self.window = 1;
        }
    }

    fn limit(&self) -> SendLimit {
        let window = self.packet * f64::from(self.window);
        let pacing = (!self.base_rtt.is_zero()).then(|| window / self.base_rtt);
        SendLimit { window: Some(window), pacing }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(Prices { average, xi, .. }) = self.prices {
            probe.record("price", signed_real(average));
            probe.record("xi", signed_real(xi));
        }
    }
}

fn millis(d: Duration) -> i64 {
    (d.as_ps() / 1_000_000_000) as i64
}

fn signed_real(code: i64) -> f64 {
    code as f64 * real(1)
}

/// `[tcp-maxnet-2006:4.1]` Returns ξ* = q·α/baseRTT − q/T, as §4.1 prints the calculation.
pub(super) fn xi_rest(q: i64, numbers: &Numbers, base_rtt: i64) -> i64 {
    q * numbers.alpha / base_rtt - 1000 * q / numbers.t
}

/// `[tcp-maxnet-2006:eq9]` Returns ξ after one step in integers, never past ξ* of eq. 10.
pub(super) fn xi_next(xi: i64, q: i64, dt: i64, base_rtt: i64, numbers: &Numbers) -> i64 {
    let Numbers { alpha, eta, t, .. } = *numbers;
    let dt = dt.min(1000);
    let pull = t * alpha * q / base_rtt - 1000 * q - t * xi; // thousandths of 2⁻¹⁸ s
    let wide = i128::from(eta * dt) * i128::from(pull) / (1000 * i128::from(base_rtt) * i128::from(base_rtt));
    let next = xi + wide.clamp(-(1 << 50), 1 << 50) as i64;
    let rest = xi_rest(q, numbers, base_rtt);
    let crossed = (xi < rest && rest < next) || (next < rest && rest < xi);
    if crossed { rest } else { next }
}

/// `[tcp-maxnet-2006:4.3]` Returns scale·e^(−exponent) from the table, in whole bit/s. The table's record is at or just
/// below the exponent.
pub(super) fn tabulated(scale: f64, exponent: i64) -> f64 {
    let record = (exponent.max(0) / RECORD_STEP).min(i64::from(RECORDS - 1));
    (scale * math::exp(-(record as f64) / 2048.0)).floor()
}

#[cfg(test)]
mod tests;
