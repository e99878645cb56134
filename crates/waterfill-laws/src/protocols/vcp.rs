//! VCP: two bits say how loaded the path is, and pick one of three window laws.
//!
//! # Law
//! Every t_ρ a router compares what arrived with what it could have served. A source grows its window
//! multiplicatively while the path is little loaded, additively while it is well loaded, and shrinks it
//! once when it is overloaded.
//!
//! - `load-factor` ρ = (λ + κ_q·q̃)/(γ·C·t_ρ), λ the volume that arrived in t_ρ, q̃ the persistent queue
//! - `code`        low below 80 %, high below 100 %, else overload; along the path the highest stays
//! - `MI`          w(t + t_ρ) = w(t)·(1 + ξ) at low load
//! - `AI`          w(t + t_ρ) = w(t) + α at high load
//! - `MD`          w ← β·w at overload, then nothing for t_ρ, then AI for one round trip
//! - `MI-scaling`  ξ_s = (1 + ξ)^(rtt/t_ρ) − 1 for each round trip
//! - `AI-scaling`  α_rate = α·(rtt/t_ρ)² for each round trip: one factor for the clock, one so that rates, not windows,
//!   become equal
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | λ_l | `arrived` | bytes |
//! | q̃_l | `queue` | bytes |
//! | κ_q, γ_l | `kappa_q`, `gamma` | 1 |
//! | C_l | `LinkView::capacity` | bit/s |
//! | t_ρ, t_q | `t_rho`, `t_q` | s |
//! | ρ_l | `load_factor` | 1 |
//! | cwnd | `window` | packets |
//! | ξ, β | `xi`, `beta` | 1 |
//! | α | `alpha` | packets |
//! | rtt | `rtt` | s |
//!
//! # Header
//! The two ECN bits of the IP header: 01 low, 10 high, 11 overload; 00 is no VCP packet. They are written here as the
//! one byte that holds them (traffic class, its upper six bits zero), and so counted, though they cost no
//! packet a byte: a 1500-byte packet carries 1459 bytes of payload here and 1460 in truth. Acknowledgements likewise.
//!
//! # Router
//! [`Router`]: one addition a packet, one comparison at its departure, a sample of the queue every t_q, a
//! division every t_ρ.
//!
//! # Source
//! [`Source`]: a window. There is no slow start: MI takes its place.
//!
//! # Parameters
//! [`Params`]: the paper's.
//!
//! # Readings and deviations
//! The paper's text was not at hand. Its constants were (aecp-2010 and maxnet-2007 cite it; the authors' ns-2 code is
//! public), and from that code come the readings marked †.
//! - † q̃ is the mean of t_ρ's samples, smoothed over intervals with weight 1/4 for the newest
//!   (`queue_weight`): the code's comment says so, though its shifts compute another thing by C's precedence.
//! - † A router writes when a packet leaves the queue.
//! - The code rounds ρ up to whole per cent first, which moves both levels down by up to 1 %: not done here.
//! - † A round trip's increase is spread over its acknowledgements: ξ_s for each packet acknowledged, α_rate/w
//!   likewise.
//! - α_rate refers to t_ρ (`t_d`); † the code refers to 100 ms, which makes AI four times as quick: `t_d = "100 ms"`.
//! - † Scaling is bounded: rtt/t_ρ ≤ 2.5 in MI; AI goes linearly with the round trip below 20 ms and above 500 ms.
//! - In the t_ρ after MD nothing moves the window; the code lets a code below overload end the freeze. In the
//!   round trip after that, overload is answered by AI †, other codes as always.
//! - † Losses are answered as by TCP Reno: half the window, after a time-out one packet (from which MI goes
//!   on). The window is never below one packet.
//! - † A weight multiplies α.
//! - The first window is the host's. The code's spacing of small windows over round trips above 100 ms is left out.
//! - A path without VCP routers is low load for ever: MI up to a loss. A router that does not speak it likewise
//!   counts as low load.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/vcp.rs`): one bottleneck 90 to 98 % full with less than a
//! packet in its queue (aecp-2010 Table 1: 93.06 %, 0.5); the start takes as long as MI takes; flows of equal
//! round trips become equal, the later the larger their shares; round trips up to t_ρ change little about that;
//! one above t_ρ starves short ones, which answer the same overload several times. Over several bottlenecks the
//! long flow gets about two thirds of its max-min share or less (aecp-2010 Fig. 10: 67 of 122.5 Mbit/s; 69.4 here at
//! full rates).
//!
//! # References
//! `vcp-2005`: Xia, Subramanian, Stoica, Kalyanaraman, "One More Bit Is Enough", SIGCOMM 2005; IEEE/ACM
//! Transactions on Networking 16 (2008). `aecp-2010` §6 compares with it.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Event, Host, Info, Kind, Limit, LinkView, PacketKind, Passing, Probe, Protocol, Sending,
    Signal, Wire,
};
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `vcp`.
#[derive(Debug)]
pub struct Vcp;

impl Protocol for Vcp {
    const INFO: Info = Info {
        name: "vcp",
        summary: "two bits of load choose between MI, AI and MD of the window (2005)",
        kind: Kind::Explicit,
        backends: &["sim", "fluid"],
        paced: false,
        host: Host::EXPLICIT,
        signals: &[
            Signal { name: "load_factor", unit: "1", doc: "the link's load factor ρ" },
            Signal { name: "load", unit: "1", doc: "the code that the source heard last: 1 low, 2 high, 3 overload" },
        ],
    };
    type Params = Params;
    type Header = Load;
    type Echo = Load;
    type Router = Router;
    type Receiver = EchoLast<Load>;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.gamma
    }
}

// ---------------------------------------------------------------------------------- header

/// How loaded a path is, as its ECN bits say it. What a source sends, and what comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// 01: below 80 %, or no router has written.
    #[default]
    Low = 1,
    /// 10: from 80 to 100 %.
    High = 2,
    /// 11: 100 % and more.
    Over = 3,
}

impl Wire for Load {
    const BYTES: usize = 1;
    fn encode(&self, out: &mut [u8]) {
        out[0] = *self as u8;
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? {
            1 => Some(Self::Low),
            2 => Some(Self::High),
            3 => Some(Self::Over),
            _ => None,
        }
    }
}

// ---------------------------------------------------------------------------------- router

/// The router of one link direction: measures the load of every t_ρ.
#[derive(Clone, Debug)]
pub struct Router {
    capacity: Rate,
    gamma: f64,
    kappa_q: f64,
    queue_weight: f64,
    t_rho: Duration,
    t_q: Duration,
    /// λ: since the last measurement.
    arrived: Volume,
    /// Samples of the queue since the last measurement: their sum and number.
    samples: (Volume, u32),
    /// q̃.
    queue: Volume,
    /// ρ of the last t_ρ.
    load_factor: f64,
    load: Load,
    next_sample: Instant,
    next_measurement: Instant,
}

impl Router {
    fn measure(&mut self) {
        let (sum, count) = self.samples;
        if count > 0 {
            self.queue = persistent_queue(self.queue, sum / f64::from(count), self.queue_weight);
        }
        let room = (self.gamma * self.capacity) * self.t_rho;
        self.load_factor = load_factor(self.arrived, self.queue, self.kappa_q, room);
        self.load = code(self.load_factor);
        (self.arrived, self.samples) = (Volume::ZERO, (Volume::ZERO, 0));
    }
}

impl crate::protocol::Router<Vcp> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        Self {
            capacity: link.capacity,
            gamma: link.target.unwrap_or(params.gamma),
            kappa_q: params.kappa_q,
            queue_weight: params.queue_weight,
            t_rho: params.t_rho,
            t_q: params.t_q,
            arrived: Volume::ZERO,
            samples: (Volume::ZERO, 0),
            queue: Volume::ZERO,
            load_factor: 0.0,
            load: Load::Low,
            next_sample: Instant::ZERO + params.t_q,
            next_measurement: Instant::ZERO + params.t_rho,
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Load>) {
        self.arrived += passing.volume;
    }

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, _link: &LinkView, passing: &mut Passing<'_, Load>) {
        if let Some(header) = passing.header.as_deref_mut() {
            *header = highest(*header, self.load);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_sample.min(self.next_measurement)
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if self.next_sample <= now {
            self.samples = (self.samples.0 + link.queue, self.samples.1 + 1);
            self.next_sample = now + self.t_q;
        }
        if self.next_measurement <= now {
            self.capacity = link.capacity;
            self.measure();
            self.next_measurement = now + self.t_rho;
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("load_factor", self.load_factor);
    }
}

/// `[vcp-2005:load-factor]` q̃ moved towards the last interval's mean.
fn persistent_queue(queue: Volume, mean: Volume, weight: f64) -> Volume {
    queue + (mean - queue) * weight
}

/// `[vcp-2005:load-factor]` (λ + κ_q·q̃)/(γ·C·t_ρ).
fn load_factor(arrived: Volume, queue: Volume, kappa_q: f64, room: Volume) -> f64 {
    (arrived + kappa_q * queue) / room
}

/// `[vcp-2005:code]` Levels of 80 and 100 %.
fn code(load_factor: f64) -> Load {
    if load_factor < 0.8 {
        Load::Low
    } else if load_factor < 1.0 {
        Load::High
    } else {
        Load::Over
    }
}

/// `[vcp-2005:code]` The more congested of two.
fn highest(header: Load, own: Load) -> Load {
    header.max(own)
}

// ---------------------------------------------------------------------------------- source

/// The source: MI, AI or MD as the path's load says.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    xi: f64,
    alpha: f64,
    beta: f64,
    t_rho: f64,
    t_d: f64,
    /// cwnd in packets, at least 1.
    window: f64,
    load: Load,
    /// The last MD: nothing moves the window until the first time, overload is answered by AI until the second.
    decreased: Option<(Instant, Instant)>,
    /// Smoothed as in RFC 6298.
    rtt: Option<Duration>,
}

/// What the source does with an acknowledged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Multiply,
    Add,
    Decrease,
    Freeze,
}

impl Source {
    /// `[vcp-2005:MD]` Once, then a freeze of t_ρ, then AI in answer to overload for a round trip.
    fn action(&self, now: Instant) -> Action {
        match (self.load, self.decreased) {
            (_, Some((frozen_until, _))) if now < frozen_until => Action::Freeze,
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
            Action::Multiply => self.window += packets * xi_scaled(self.xi, rtt, self.t_rho),
            Action::Add => self.window += packets / self.window * alpha_scaled(self.weight * self.alpha, rtt, self.t_d),
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
            Event::Timeout => self.window = 1.0,
            Event::Marked | Event::Recovered => {}
        }
    }

    fn limit(&self) -> Limit {
        Limit { window: Some(self.window * self.packet), pacing: None }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("load", f64::from(self.load as u8));
    }
}

/// `[vcp-2005:MI-scaling]` (1 + ξ)^(rtt/t_ρ) − 1, the exponent at most 2.5.
fn xi_scaled(xi: f64, rtt: f64, t_rho: f64) -> f64 {
    (1.0 + xi).powf((rtt / t_rho).min(MI_TIMES_T_RHO)) - 1.0
}

/// `[vcp-2005:AI-scaling]` α·(rtt/t_d)², but linear in the round trip outside 20 to 500 ms.
fn alpha_scaled(alpha: f64, rtt: f64, t_d: f64) -> f64 {
    let (short, long) = (AI_RTT_SHORT / t_d, AI_RTT_LONG / t_d);
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

/// `[vcp-2005:MD]` β·w, not below a packet.
fn decreased(window: f64, beta: f64) -> f64 {
    (beta * window).max(1.0)
}

/// The authors' ns-2 code: 500 ms of round trip over a t_ρ of 200 ms.
const MI_TIMES_T_RHO: f64 = 2.5;
/// The authors' ns-2 code, seconds.
const AI_RTT_SHORT: f64 = 0.020;
const AI_RTT_LONG: f64 = 0.500;

// ---------------------------------------------------------------------------------- parameters

crate::params! {
    /// Parameters of VCP.
    pub struct Params {
        /// Interval t_ρ of a load measurement.
        t_rho: Duration = Duration::from_millis(200), "vcp-2005";
        /// Interval t_q of queue samples.
        t_q: Duration = Duration::from_millis(10), "vcp-2005";
        /// Weight κ_q of the persistent queue in the load.
        kappa_q: f64 = 0.5, "vcp-2005";
        /// Target utilisation γ of a link.
        gamma: f64 = 0.98, "vcp-2005";
        /// Weight of the newest interval in the persistent queue.
        queue_weight: f64 = 0.25, "the authors' ns-2 code";
        /// MI parameter ξ.
        xi: f64 = 0.0625, "vcp-2005";
        /// AI parameter α in packets.
        alpha: f64 = 1.0, "vcp-2005";
        /// MD parameter β.
        beta: f64 = 0.875, "vcp-2005";
        /// Round trip for which AI needs no scaling.
        t_d: Duration = Duration::from_millis(200), "vcp-2005: t_rho (100 ms in the authors' ns-2 code)";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(!self.t_rho.is_zero(), "t_rho", "a time above zero")?;
        require(!self.t_q.is_zero() && self.t_q <= self.t_rho, "t_q", "a time above zero, at most t_rho")?;
        require(self.kappa_q >= 0.0, "kappa_q", "a number of at least 0")?;
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(self.queue_weight > 0.0 && self.queue_weight <= 1.0, "queue_weight", "a number in (0, 1]")?;
        require(self.xi > 0.0 && self.xi <= 1.0, "xi", "a number in (0, 1]: doubling in t_rho is slow start's pace")?;
        require(self.alpha > 0.0, "alpha", "a number above 0")?;
        require(self.beta > 0.0 && self.beta < 1.0, "beta", "a number in (0, 1)")?;
        require(!self.t_d.is_zero(), "t_d", "a time above zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Router as _, Source as _};
    use crate::testing::{close, connection, echo_after};

    const fn bytes(bytes: f64) -> Volume {
        Volume::from_bytes(bytes)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// `[vcp-2005:load-factor]` 50 Mbit/s for 200 ms at 98 % is 1.225 MB; 1.2 MB and half of 100 kB are 1.25 MB.
    #[test]
    fn load_factor_by_hand() {
        close(load_factor(bytes(1.2e6), bytes(1e5), 0.5, bytes(1.225e6)), 1.25 / 1.225, 1e-12);
        close(persistent_queue(bytes(1000.0), bytes(5000.0), 0.25).as_bytes(), 2000.0, 1e-12);
    }

    /// `[vcp-2005:code]`
    #[test]
    fn code_levels() {
        assert_eq!([0.0, 0.7999, 0.8, 0.9999, 1.0, 9.0].map(code), {
            use Load::{High, Low, Over};
            [Low, Low, High, High, Over, Over]
        });
        assert_eq!(highest(Load::Over, Load::Low), Load::Over);
        assert_eq!(highest(Load::Low, Load::High), Load::High);
    }

    /// `[vcp-2005:MI-scaling]` 6.25 % in t_ρ = 200 ms; √1.0625 − 1 in half of it; 1.0625^2.5 − 1 from 500 ms on.
    #[test]
    fn mi_scaling() {
        close(xi_scaled(0.0625, 0.2, 0.2), 0.0625, 1e-12);
        close(xi_scaled(0.0625, 0.1, 0.2), 0.030_776_406_4, 1e-9);
        close(xi_scaled(0.0625, 0.5, 0.2), 0.163_649_93, 1e-7);
        assert_eq!(xi_scaled(0.0625, 3.0, 0.2), xi_scaled(0.0625, 0.5, 0.2));
    }

    /// `[vcp-2005:AI-scaling]` a quarter at half the reference, four times at twice; linear outside 20 to 500 ms.
    #[test]
    fn ai_scaling() {
        close(alpha_scaled(1.0, 0.2, 0.2), 1.0, 1e-12);
        close(alpha_scaled(1.0, 0.1, 0.2), 0.25, 1e-12);
        close(alpha_scaled(3.0, 0.4, 0.2), 12.0, 1e-12);
        close(alpha_scaled(1.0, 0.01, 0.2), 0.05 * 0.1, 1e-12);
        close(alpha_scaled(1.0, 1.0, 0.2), 6.25 + 2.5, 1e-12);
        // Rates of different round trips grow alike: α_rate/rtt² is one number.
        close(alpha_scaled(1.0, 0.04, 0.2) / 0.04_f64.powi(2), alpha_scaled(1.0, 0.3, 0.2) / 0.3_f64.powi(2), 1e-12);
    }

    /// `[vcp-2005:MD]`
    #[test]
    fn md_by_hand() {
        assert_eq!(decreased(100.0, 0.875), 87.5);
        assert_eq!(decreased(1.0, 0.875), 1.0);
    }

    #[test]
    fn bits_on_the_wire() {
        for load in [Load::Low, Load::High, Load::Over] {
            let mut out = [0xff];
            load.encode(&mut out);
            assert_eq!(Load::decode(&out), Some(load));
        }
        assert_eq!(Load::decode(&[0]), None, "not ECN capable");
        assert_eq!(Load::decode(&[4]), None);
        assert_eq!(Load::decode(&[]), None);
    }

    fn link(queue: f64) -> LinkView {
        LinkView { id: 0, capacity: Rate::from_bps(5e7), target: None, queue: bytes(queue) }
    }

    /// What a packet of `volume` leaves with.
    fn pass(router: &mut Router, volume: f64, header: Load) -> Load {
        let mut header = header;
        for departs in [false, true] {
            let mut passing = Passing {
                now: Instant::ZERO,
                volume: bytes(volume),
                packets: 1.0,
                kind: PacketKind::Data,
                header: Some(&mut header),
            };
            if departs {
                router.on_departure(&link(0.0), &mut passing);
            } else {
                router.on_arrival(&link(0.0), &mut passing);
            }
        }
        header
    }

    /// Runs the router's timers up to a time, with a standing queue.
    fn run_timers(router: &mut Router, until: Instant, queue: f64) {
        while router.poll_at() <= until {
            let due = router.poll_at();
            router.on_timer(&link(queue), due);
        }
    }

    #[test]
    fn a_router_measures_every_200_ms() {
        let mut router = Router::new(&Params::default(), &link(0.0));
        assert_eq!(router.poll_at(), at(10));
        assert_eq!(pass(&mut router, 1.3e6, Load::Low), Load::Low, "not before the first measurement");
        run_timers(&mut router, at(199), 0.0);
        assert_eq!(pass(&mut router, 0.0, Load::Low), Load::Low);
        run_timers(&mut router, at(200), 0.0);
        close(router.load_factor, 1.3 / 1.225, 1e-12);
        assert_eq!(pass(&mut router, 1.1e6, Load::Low), Load::Over);
        run_timers(&mut router, at(400), 0.0);
        assert_eq!(pass(&mut router, 0.0, Load::Low), Load::High);
        assert_eq!(pass(&mut router, 0.0, Load::Over), Load::Over, "a router before was worse");
        // A standing queue of 1 MB alone: 0.5 · 250 kB in the first interval.
        run_timers(&mut router, at(600), 1e6);
        close(router.load_factor, 0.125 / 1.225, 1e-12);
    }

    fn source() -> Source {
        Source::new(&Params::default(), &connection())
    }

    fn hear(source: &mut Source, ms: u64, load: Load) -> f64 {
        let rtt = Duration::from_millis(200);
        source.on_ack(&Ack {
            now: at(ms),
            echo: load,
            kind: PacketKind::Ack,
            acked: bytes(1500.0),
            rtt: Some(rtt),
            base_rtt: rtt,
            in_flight: Volume::ZERO,
            marked: Volume::ZERO,
            smoothed_rtt: rtt,
            recovering: false,
            window_limited: true,
        });
        source.limit().window.unwrap() / source.packet
    }

    /// One round trip of 200 ms: ten acknowledgements multiply by 1.0625, ten more add about a packet.
    #[test]
    fn a_round_trip_of_each_law() {
        let mut source = source();
        let low = (0..10).map(|_| hear(&mut source, 200, Load::Low)).last().unwrap();
        close(low, 10.625, 1e-12);
        let high = (0..10).map(|_| hear(&mut source, 400, Load::High)).last().unwrap();
        close(high, 11.525, 2e-3); // 10 of the 10.6 acknowledgements that make a whole packet
    }

    /// `[vcp-2005:MD]` once, frozen for 200 ms, AI for a round trip of 200 ms, then MD again.
    #[test]
    fn one_decrease_then_a_freeze_then_a_round_trip_of_ai() {
        let mut source = source();
        assert_eq!(hear(&mut source, 1000, Load::Over), 8.75);
        for load in [Load::Over, Load::High, Load::Low] {
            assert_eq!(hear(&mut source, 1199, load), 8.75);
        }
        close(hear(&mut source, 1200, Load::Over), 8.75 + 1.0 / 8.75, 1e-12);
        let grown = hear(&mut source, 1399, Load::Over);
        assert!(grown > 8.86);
        assert_eq!(hear(&mut source, 1400, Load::Over), 0.875 * grown);
    }

    #[test]
    fn losses_are_answered_as_by_reno() {
        let mut source = source();
        source.on_event(at(1), Event::Loss);
        assert_eq!(source.window, 5.0);
        source.on_event(at(2), Event::Recovered);
        assert_eq!(source.window, 5.0);
        source.on_event(at(3), Event::Timeout);
        assert_eq!(source.window, 1.0);
    }

    #[test]
    fn a_weight_scales_ai() {
        let mut double = Source::new(&Params::default(), &Connection { weight: 2.0, ..connection() });
        close(hear(&mut double, 200, Load::High) - 10.0, 0.2, 1e-9);
        close(hear(&mut source(), 200, Load::High) - 10.0, 0.1, 1e-9);
    }

    #[test]
    fn the_receiver_echoes_what_came_last() {
        let after = |headers: &[Load]| echo_after::<Vcp>(&Params::default(), headers);
        assert_eq!(after(&[]), Load::Low);
        assert_eq!(after(&[Load::High, Load::Over]), Load::Over);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let good = Params::default();
        assert_eq!(good.check(), Ok(()));
        let refused = |params: Params| params.check().is_err();
        assert!(refused(Params { t_rho: Duration::ZERO, ..good.clone() }));
        assert!(refused(Params { t_q: Duration::from_millis(201), ..good.clone() }));
        assert!(refused(Params { beta: 1.0, ..good.clone() }));
        assert!(refused(Params { gamma: 0.0, ..good.clone() }));
        assert!(refused(Params { xi: 0.0, ..good }));
    }
}
