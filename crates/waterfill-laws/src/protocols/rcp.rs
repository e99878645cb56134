//! RCP: every link offers one rate to all that cross it; sources send at the smallest on their path.
//!
//! # Law
//! A link's rate R rises with spare capacity and falls with its queue, both counted over the average
//! round trip d̂ of its traffic. If N flows take R each, R settles at C/N without knowing N.
//!
//! - `R`    R ← R·(1 + (T/d̂)·(α(C − y) − βq/d̂)/C), every T ≤ d̂, within [R_min, C]
//! - `eq16` of maxnet-2007: the same with β = 0 and T = dt
//! - `path` a source sends at min R over the links of its path
//! - `d`    d̂ is a running mean over traffic of the round trips that packets carry
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | R, R_min | `rate`, `r_min` | bit/s |
//! | C | `capacity` | bit/s |
//! | y | `load` | bit/s |
//! | q | `LinkView::queue` | bytes |
//! | α, β | `alpha`, `beta` | 1 |
//! | T | `interval` | s |
//! | d̂ (d₀ in the first papers) | `mean_rtt` | s |
//!
//! # Header
//! 12 bytes in data and in acknowledgements: the rate on the way out (an IEEE 754 single, bit/s; infinity is "as much
//! as there is", which is what a source asks for), the rate on the way back (likewise), the source's round trip (32
//! bits, µs; 0 is "not known yet"). The fields are Dukkipati and McKeown's, their sizes are chosen here: any rate to
//! 6·10⁻⁸, round trips to 1 µs.
//!
//! # Router
//! [`Router`]: two additions, a multiplication and a comparison a packet; an update of R every T.
//!
//! # Source
//! [`Source`]: no arithmetic; paced, without a window. The SYN carries the request and the round trip 0; its
//! answer sets the first rate.
//!
//! # Parameters
//! [`Params`]: maxnet-2007 §IX's α and β; the rest from the authors' ns-2 model, but for the two that the readings
//! name.
//!
//! # Readings and deviations
//! - No head-room: C is the link's capacity, or a link's own target's share of it.
//! - `average = "traffic"`: in each T the round trips of all own packets are averaged by their bytes, and d̂ follows as
//!   a first-order lag with time constant d̂ (weight T/d̂). `average = "reluctant"` is the authors' ns-2 model: a
//!   smaller sample gets only (R/C)·(sample/d̂) of that weight, so that d̂ rises at once and falls late. On
//!   maxnet-2007's Fig. 12 that hides the instability at N = 49; the default shows it.
//! - The first sample is taken for d̂ as it is; until then it is `first_rtt`.
//! - d̂ is at least 10 µs, so that a round trip of 0 does not stop the clock.
//! - A source puts its newest round trip into the header, queueing included (as the ns-2 model does).
//! - The ns-2 model goes down to 0.01 packets of 1000 B in d̂, and its sources send 40-byte probes once a round trip,
//!   at least twice a second, while that is less than a packet a round trip. Here a source hears only when it sends
//!   data, so R_min is a rate: one packet of 1500 B in half a second (at most C).
//! - The rate is written on arrival; the ns-2 model writes at departure.
//! - A source without a rate (no router on its path) keeps the host's initial window. A weight scales the rate.
//! - Losses do not change the rate.
//!
//! # Validation
//! Equation tests below; the simulator's `rcp` tests: maxnet-2007 §IX's Fig. 12 with N = 1 (stable after an
//! overshoot), 9 (oscillates) and 49 (switches between nothing and the whole link), and a parking lot, where every
//! share is right.
//!
//! # References
//! Dukkipati, McKeown, "Why Flow-Completion Time is the Right Metric for Congestion Control", CCR 36(1), 2006
//! (`rcp-2006`); its authors' ns-2 model. `maxnet-2007`: Andrew, Jacobsson, Low, Suchara, Witt, Wydrowski, "MaxNet:
//! Theory and Implementation".

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Host, Info, Kind, Limit, LinkView, Passing, Probe, Protocol, Sending, Signal, Wire,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `rcp`.
#[derive(Debug)]
pub struct Rcp;

impl Protocol for Rcp {
    const INFO: Info = Info {
        name: "rcp",
        summary: "links offer one rate to all, sources send at the smallest; max-min fair, empty queues (2006)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: true,
        host: Host::EXPLICIT,
        signals: &[
            Signal { name: "rate", unit: "bit/s", doc: "the link's rate, or the one the source obeys" },
            Signal { name: "mean_rtt", unit: "s", doc: "the link's average round trip d̂" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Echo;
    type Router = Router;
    type Receiver = EchoLast<Echo>;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

// ---------------------------------------------------------------------------------- header

/// A rate on the wire: bit/s as a single-precision number, never negative; infinity is no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireRate(f32);

impl WireRate {
    /// As much as there is.
    pub const UNLIMITED: Self = Self(f32::INFINITY);

    /// The nearest to a rate.
    fn of(rate: Rate) -> Self {
        Self(rate.as_bps() as f32)
    }

    /// The smaller of two rates.
    fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The rate; none if it is no limit.
    #[must_use]
    pub fn rate(self) -> Option<Rate> {
        self.0.is_finite().then(|| Rate::from_bps(f64::from(self.0)))
    }

    fn from_bits(bits: [u8; 4]) -> Option<Self> {
        let value = f32::from_be_bytes(bits);
        (value.is_sign_positive() && !value.is_nan()).then_some(Self(value))
    }
}

impl Default for WireRate {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

const HEADER_BYTES: usize = 12;

fn encode_header(out_rate: WireRate, back_rate: WireRate, rtt_us: u32, out: &mut [u8]) {
    out[0..4].copy_from_slice(&out_rate.0.to_be_bytes());
    out[4..8].copy_from_slice(&back_rate.0.to_be_bytes());
    out[8..12].copy_from_slice(&rtt_us.to_be_bytes());
}

fn decode_header(bytes: &[u8]) -> Option<(WireRate, WireRate, u32)> {
    let [a, b, c, d, e, f, g, h, rtt @ ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
    Some((WireRate::from_bits([a, b, c, d])?, WireRate::from_bits([e, f, g, h])?, u32::from_be_bytes(rtt)))
}

/// What data packets carry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// The rate asked for, which routers lower.
    pub rate: WireRate,
    /// The source's round trip in µs; 0 is not known.
    pub rtt_us: u32,
}

impl Wire for Header {
    const BYTES: usize = HEADER_BYTES;
    fn encode(&self, out: &mut [u8]) {
        encode_header(self.rate, WireRate::UNLIMITED, self.rtt_us, out);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_header(bytes).map(|(rate, _, rtt_us)| Self { rate, rtt_us })
    }
}

/// What acknowledgements carry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// The rate that arrived.
    pub rate: WireRate,
}

impl From<Header> for Echo {
    fn from(header: Header) -> Self {
        Self { rate: header.rate }
    }
}

impl Wire for Echo {
    const BYTES: usize = HEADER_BYTES;
    fn encode(&self, out: &mut [u8]) {
        encode_header(WireRate::UNLIMITED, self.rate, 0, out);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        decode_header(bytes).map(|(_, rate, _)| Self { rate })
    }
}

// ---------------------------------------------------------------------------------- router

/// The least average round trip.
const MIN_RTT_S: f64 = 1e-5;

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    capacity: Rate,
    alpha: f64,
    beta: f64,
    max_interval: Duration,
    rate_min: Rate,
    average: Average,
    /// R.
    rate: Rate,
    /// d̂ in seconds.
    mean_rtt: f64,
    /// Whether d̂ is more than a guess.
    measured: bool,
    /// All that arrived in this T.
    arrived: Volume,
    /// Of it what carried a round trip, and those round trips times their bytes.
    timed: (Volume, f64),
    /// T, between the last update and the next.
    interval: Duration,
    next_update: Instant,
}

impl Router {
    /// d̂ with what this interval's packets said.
    fn average_rtt(&mut self) {
        let (volume, rtt_bytes) = self.timed;
        if volume.as_bytes() <= 0.0 {
            return;
        }
        let sample = rtt_bytes / volume.as_bytes();
        let mean = if self.measured {
            let gain = self.interval.as_secs() / self.mean_rtt;
            let gain = match self.average {
                Average::Reluctant if sample < self.mean_rtt => {
                    gain * (self.rate / self.capacity) * (sample / self.mean_rtt)
                }
                _ => gain,
            };
            mean_rtt_next(self.mean_rtt, sample, gain)
        } else {
            sample
        };
        self.mean_rtt = mean.max(MIN_RTT_S);
        self.measured = true;
    }
}

impl crate::protocol::Router<Rcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let capacity = usable(link);
        let mean_rtt = params.first_rtt.as_secs().max(MIN_RTT_S);
        let interval = interval(mean_rtt, params.max_interval);
        Self {
            capacity,
            alpha: params.alpha,
            beta: params.beta,
            max_interval: params.max_interval,
            rate_min: params.r_min.min(capacity),
            average: params.average,
            rate: capacity * params.first_rate,
            mean_rtt,
            measured: false,
            arrived: Volume::ZERO,
            timed: (Volume::ZERO, 0.0),
            interval,
            next_update: Instant::ZERO + interval,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(header) = passing.header.as_deref_mut() {
            if header.rtt_us > 0 {
                self.timed.0 += passing.volume;
                self.timed.1 += f64::from(header.rtt_us) * 1e-6 * passing.volume.as_bytes();
            }
            header.rate = header.rate.min(WireRate::of(self.rate));
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.capacity = usable(link);
        self.average_rtt();
        let spare =
            spare(self.capacity, self.arrived / self.interval, link.queue, self.alpha, self.beta, self.mean_rtt);
        let t = self.interval.as_secs();
        self.rate = rate_next(self.rate, spare, self.capacity, t, self.mean_rtt).min(self.capacity).max(self.rate_min);
        self.arrived = Volume::ZERO;
        self.timed = (Volume::ZERO, 0.0);
        self.interval = interval(self.mean_rtt, self.max_interval);
        self.next_update = now + self.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("rate", self.rate.as_bps());
        probe.record("mean_rtt", self.mean_rtt);
    }
}

/// C: a link's own target's share of its capacity.
fn usable(link: &LinkView) -> Rate {
    link.capacity * link.target.unwrap_or(1.0)
}

/// T: the average round trip, or less.
fn interval(mean_rtt: f64, max_interval: Duration) -> Duration {
    Duration::from_secs(mean_rtt).min(max_interval)
}

/// `[rcp-2006:d]` d̂ moved towards a sample.
fn mean_rtt_next(mean_rtt: f64, sample: f64, gain: f64) -> f64 {
    mean_rtt + gain.min(1.0) * (sample - mean_rtt)
}

/// `[rcp-2006:R]` α(C − y) − βq/d̂: what R is to be raised by in one d̂, times the number of flows.
fn spare(capacity: Rate, load: Rate, queue: Volume, alpha: f64, beta: f64, mean_rtt: f64) -> Rate {
    alpha * (capacity - load) - beta * Rate::from_bps(queue.as_bits() / mean_rtt)
}

/// `[rcp-2006:R]` R·(1 + (T/d̂)·spare/C), where C/R stands for the number of flows.
fn rate_next(rate: Rate, spare: Rate, capacity: Rate, t: f64, mean_rtt: f64) -> Rate {
    rate * (1.0 + t / mean_rtt * (spare / capacity))
}

// ---------------------------------------------------------------------------------- source

/// The source: sends at the rate it hears.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    initial_window: Volume,
    rate: Option<Rate>,
    rtt_us: u32,
}

impl crate::protocol::Source<Rcp> for Source {
    fn new(_params: &Params, connection: &Connection) -> Self {
        Self { weight: connection.weight, initial_window: connection.initial_window, rate: None, rtt_us: 0 }
    }

    fn stamp(&mut self, _: &Sending) -> Header {
        Header { rate: WireRate::UNLIMITED, rtt_us: self.rtt_us }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(rtt) = ack.rtt {
            // A round trip below half a microsecond is still one.
            self.rtt_us = ((rtt.as_secs() * 1e6 + 0.5) as u32).max(1);
        }
        self.rate = ack.echo.rate.rate().or(self.rate);
    }

    fn limit(&self) -> Limit {
        match self.rate {
            Some(rate) => Limit { window: None, pacing: Some(self.weight * rate) },
            None => Limit { window: Some(self.initial_window), pacing: None },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(rate) = self.rate {
            probe.record("rate", rate.as_bps());
        }
    }
}

// ---------------------------------------------------------------------------------- parameters

crate::choice! {
    /// How d̂ follows the round trips of the traffic.
    pub enum Average {
        /// As fast up as down.
        Traffic = "traffic",
        /// Slower down, by (R/C)·(sample/d̂).
        Reluctant = "reluctant",
    }
}

crate::params! {
    /// Parameters of a router.
    pub struct Params {
        /// Gain α of spare capacity.
        alpha: f64 = 0.4, "maxnet-2007 §IX";
        /// Gain β of the queue.
        beta: f64 = 1.0, "maxnet-2007 §IX";
        /// First rate of a link, as a share of its capacity.
        first_rate: f64 = 0.05, "the authors' ns-2 model";
        /// Longest time T between two updates of a rate.
        max_interval: Duration = Duration::from_millis(10), "the authors' ns-2 model";
        /// Average round trip of a link that has seen none.
        first_rtt: Duration = Duration::from_millis(200), "the authors' ns-2 model";
        /// Least rate of a link, R_min.
        r_min: Rate = Rate::from_bps(24e3), "1500 B in 0.5 s, the ns-2 model's longest time without asking";
        /// How the average round trip is formed.
        average: Average = Average::Traffic, "maxnet-2007 §IX: traffic-weighted";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.alpha > 0.0, "alpha", "a number above zero")?;
        require(self.beta >= 0.0, "beta", "a number, at least 0")?;
        require(self.first_rate > 0.0 && self.first_rate <= 1.0, "first_rate", "a share of capacity in (0, 1]")?;
        require(!self.max_interval.is_zero(), "max_interval", "a time above zero")?;
        require(!self.first_rtt.is_zero(), "first_rtt", "a time above zero")?;
        require(self.r_min.as_bps() > 0.0, "r_min", "a rate above zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::{PacketKind, Router as _, Source as _};
    use crate::testing::{close, connection, echo_after};

    fn bps(rate: f64) -> Rate {
        Rate::from_bps(rate)
    }

    fn link(queue_bytes: f64) -> LinkView {
        LinkView { id: 0, capacity: bps(1e8), target: None, queue: Volume::from_bytes(queue_bytes) }
    }

    /// `[rcp-2006:R]` 100 Mbit/s with 60 offered and 62.5 kB waiting, d̂ = 0.1 s: 0.4·40 − 5 = 11 Mbit/s, of which a
    /// tenth in T = 10 ms.
    #[test]
    fn r_step() {
        let spare = spare(bps(1e8), bps(6e7), Volume::from_bytes(62_500.0), 0.4, 1.0, 0.1);
        close(spare.as_bps(), 1.1e7, 1e-12);
        close(rate_next(bps(2e7), spare, bps(1e8), 0.01, 0.1).as_bps(), 2e7 * 1.011, 1e-12);
    }

    /// `[maxnet-2007:eq16]` without a queue, R·(1 + dt·α(C − y)/(τC)).
    #[test]
    fn eq16_of_maxnet_is_r_without_beta() {
        let (c, y, tau, dt, alpha) = (1e8, 4e7, 0.05, 0.001, 0.4);
        let spare = spare(bps(c), bps(y), Volume::from_bytes(1e6), alpha, 0.0, tau);
        close(
            rate_next(bps(3e7), spare, bps(c), dt, tau).as_bps(),
            3e7 * (1.0 + dt * alpha * (c - y) / (tau * c)),
            1e-12,
        );
    }

    /// `[rcp-2006:d]` and T ≤ d̂.
    #[test]
    fn d_mean_and_interval() {
        close(mean_rtt_next(0.1, 0.2, 0.25), 0.125, 1e-12);
        assert_eq!(mean_rtt_next(0.1, 0.2, 3.0), 0.2);
        assert_eq!(interval(0.1, Duration::from_millis(10)), Duration::from_millis(10));
        assert_eq!(interval(0.004, Duration::from_millis(10)), Duration::from_millis(4));
    }

    #[test]
    fn header_on_the_wire() {
        let mut out = [0; HEADER_BYTES];
        Header { rate: WireRate::of(bps(1e6)), rtt_us: 0x0102_0304 }.encode(&mut out);
        assert_eq!(out, [0x49, 0x74, 0x24, 0, 0x7f, 0x80, 0, 0, 1, 2, 3, 4]); // 10⁶ = 1.9073486·2¹⁹
        assert_eq!(Header::decode(&out), Some(Header { rate: WireRate(1e6), rtt_us: 0x0102_0304 }));
        Echo { rate: WireRate::of(bps(1e6)) }.encode(&mut out);
        assert_eq!(out, [0x7f, 0x80, 0, 0, 0x49, 0x74, 0x24, 0, 0, 0, 0, 0]);
        assert_eq!(Echo::decode(&out), Some(Echo { rate: WireRate(1e6) }));
        assert_eq!(Header::decode(&out[..11]), None);
        out[0..4].copy_from_slice(&(-1.0_f32).to_be_bytes());
        assert_eq!(Header::decode(&out), None, "no negative rates");
        out[0..4].copy_from_slice(&f32::NAN.to_be_bytes());
        assert_eq!(Header::decode(&out), None);
    }

    fn pass(router: &mut Router, rate: WireRate, rtt_us: u32, bytes: f64) -> WireRate {
        let mut header = Header { rate, rtt_us };
        router.on_arrival(
            &link(0.0),
            &mut Passing {
                now: Instant::ZERO,
                volume: Volume::from_bytes(bytes),
                packets: 1.0,
                kind: PacketKind::Data,
                header: Some(&mut header),
            },
        );
        header.rate
    }

    #[test]
    fn a_router_lowers_requests_to_its_first_rate() {
        let mut router = Router::new(&Params::default(), &link(0.0));
        assert_eq!(pass(&mut router, WireRate::UNLIMITED, 0, 40.0).rate(), Some(bps(5e6)));
        assert_eq!(pass(&mut router, WireRate::of(bps(4e6)), 0, 40.0).rate(), Some(bps(4e6)));
    }

    /// Two bytes at 20 ms for each at 80 ms: 40 ms, taken at once; then a lag of T/d̂.
    #[test]
    fn round_trips_are_weighted_by_traffic() {
        let average = |average| {
            let mut router = Router::new(&Params { average, ..Params::default() }, &link(0.0));
            pass(&mut router, WireRate::UNLIMITED, 0, 1e6); // a SYN's round trip is not known
            pass(&mut router, WireRate::UNLIMITED, 20_000, 2000.0);
            pass(&mut router, WireRate::UNLIMITED, 80_000, 1000.0);
            router.on_timer(&link(0.0), Instant::ZERO);
            close(router.mean_rtt, 0.04, 1e-12);
            pass(&mut router, WireRate::UNLIMITED, 20_000, 1500.0);
            let share = router.rate / router.capacity;
            router.on_timer(&link(0.0), Instant::ZERO);
            (router.mean_rtt, share)
        };
        close(average(Average::Traffic).0, 0.035, 1e-12); // 40 − ¼·20 ms
        let (mean, share) = average(Average::Reluctant);
        close(mean, 0.04 - 0.25 * share * 0.5 * 0.02, 1e-12);
    }

    #[test]
    fn a_rate_stays_between_r_min_and_capacity() {
        let mut router = Router::new(&Params::default(), &link(0.0));
        for _ in 0..10_000 {
            router.on_timer(&link(0.0), Instant::ZERO);
        }
        assert_eq!(router.rate, bps(1e8));
        for _ in 0..10_000 {
            router.on_timer(&link(1e9), Instant::ZERO);
        }
        assert_eq!(router.rate, bps(24e3));
        Params { r_min: Rate::ZERO, ..Params::default() }
            .validate()
            .expect_err("a source that may not send never hears");
    }

    /// The SYN asks with no round trip; its answer sets the rate, later ones change it.
    #[test]
    fn a_source_sends_at_the_rate_it_hears() {
        let packet = Volume::from_bytes(1500.0);
        let mut source = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
        let sending = |kind| Sending::new(Instant::ZERO, kind, packet);
        assert_eq!(source.stamp(&sending(PacketKind::Syn)), Header { rate: WireRate::UNLIMITED, rtt_us: 0 });
        assert_eq!(source.limit().window, Some(10.0 * packet));
        let answer = |source: &mut Source, kind, rate, rtt_ms| {
            let echo = echo_after::<Rcp>(&Params::default(), &[Header { rate, rtt_us: 0 }]);
            source.on_ack(&Ack {
                now: Instant::ZERO,
                echo,
                kind,
                acked: Volume::ZERO,
                rtt: Some(Duration::from_millis(rtt_ms)),
                base_rtt: Duration::from_millis(rtt_ms),
                in_flight: Volume::ZERO,
                marked: Volume::ZERO,
                smoothed_rtt: Duration::from_millis(rtt_ms),
                recovering: false,
                window_limited: true,
            });
        };
        answer(&mut source, PacketKind::Syn, WireRate::of(bps(5e6)), 40);
        assert_eq!(source.limit(), Limit { window: None, pacing: Some(bps(1e7)) });
        assert_eq!(source.stamp(&sending(PacketKind::Data)).rtt_us, 40_000);
        answer(&mut source, PacketKind::Ack, WireRate::of(bps(6e6)), 41);
        assert_eq!(source.limit().pacing, Some(bps(1.2e7)));
        answer(&mut source, PacketKind::Ack, WireRate::UNLIMITED, 41);
        assert_eq!(source.limit().pacing, Some(bps(1.2e7)), "an answer without a rate changes nothing");
    }
}
