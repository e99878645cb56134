//! Copa: a window that moves towards a target rate, which falls with the measured queueing delay.
//!
//! A Copa flow keeps about 1/δ packets in the queue. Next to flows that fill buffers it raises 1/δ as Reno raises its window.
//!
//! # Law
//! On each acknowledgement:
//! - `[copa-2018:delay]` `d_q = RTTstanding − RTTmin`: the smallest RTT of the last srtt/2, and that of the last 10 s
//! - `[copa-2018:target]` `λ_t = 1/(δ·d_q)`, `λ = cwnd/RTTstanding`
//! - `[copa-2018:window]` `cwnd ± v/(δ·cwnd)` for each packet: plus if `λ ≤ λ_t`, minus otherwise
//! - `[copa-2018:slow-start]` until λ first exceeds λ_t, one packet for each packet
//! - `[copa-2018:pacing]` packets leave at `2·cwnd/RTTstanding`
//!
//! Once per window:
//! - `[copa-2018:velocity]` v doubles if cwnd has moved in one direction for three RTTs, and is 1 after a change of
//!   direction
//! - `[copa-2018:mode]` default mode if `d_q < 0.1·(RTTmax − RTTmin)` in the last five RTTs, with RTTmax of the last four;
//!   otherwise competitive mode
//! - `[copa-2018:delta]` in competitive mode 1/δ grows by 1 per RTT and halves at a loss; in default mode δ is 0.5
//!
//! # Symbols
//! | Arun and Balakrishnan | here | unit |
//! |---|---|---|
//! | cwnd, v | `cwnd`, `velocity` | packets, 1 |
//! | 1/δ | `depth`: the flow's packets in the queue | packets |
//! | λ, λ_t | `rate`, [`target_rate`] | packets/s |
//! | RTTstanding, RTTmax | `standing`, `peak` | s |
//! | RTTmin | the host's [`Ack::base_rtt`] | s |
//! | srtt | [`Ack::smoothed_rtt`] | s |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Source`]: paced; the law's window holds at all times (no rate reduction by the host). In default mode a loss changes
//! nothing. After a timeout slow start begins again with one packet.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - A window ends when a packet that was sent after its start is acknowledged. Its direction counts as kept for three RTTs when
//!   the fourth window in succession has it.
//! - A velocity above 1 ends as soon as the step changes its sign, as in mvfst, not at the end of the window: otherwise the
//!   window swings between 10 and 200 packets on 50 Mbit/s and 40 ms, and a lone flow uses 32 % of the link.
//! - v is at most δ·cwnd, so a window at most doubles in an RTT, and cwnd is at least two packets, both as in the authors'
//!   program. Without the limit the window could fall below zero in one RTT.
//! - The queue is also nearly empty if it holds less than one of the flow's packets, `λ·d_q < 1`. A queue of a few packets is
//!   empty or a tenth of its range only by chance; without this rule flows alone took each other for buffer-fillers, and four of
//!   them kept 150 instead of 10 packets.
//! - A loss halves 1/δ once per recovery. Nothing is said of timeouts: they are answered as in other TCPs.
//!
//! [Other readings](../../validation/tcp-readings.md#copa)
//!
//! # Validation
//! On 50 Mbit/s and 40 ms 1, 2, 4, 8 and 16 flows keep 2.4, 4.9, 9.8, 18.5 and 35.3 packets in the queue: 2.2 to 2.5 for each,
//! where 1/δ is 2. Next to one flow of CUBIC a flow gets 44 to 61 % of the link with buffers up to 2 BDP, 14 to 25 % with 4 BDP,
//! and 2 % without the competitive mode at 2 BDP (`copa` of the simulator has such runs).
//!
//! # References
//! `copa-2018`: Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018.
//! Implementations: venkatarun95/genericCC (markoviancc.cc), facebook/mvfst (Copa.cpp), both read in November 2026.

use std::collections::VecDeque;

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, BaseRtt, Connection, EchoLast, Event, Host, Info, LawSignal, PacketKind, Probe, Protocol, ProtocolKind,
    Retransmission, SendLimit, Sending,
};
use crate::protocols::tcp::round::Round;
use crate::protocols::tcp::{LOSS_WINDOW, WINDOW_MAX};
use crate::units::{Duration, Instant, Volume};

/// Minimum window in packets after the first decrease.
const WINDOW_MIN: f64 = 2.0;
/// Share of the RTT's recent range below which the queue counts as nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// Number of RTTs over which the largest RTT counts.
const PEAK_RTTS: u64 = 4;
/// Number of RTTs without a nearly empty queue after which another flow must fill the buffer.
const EMPTY_RTTS: u64 = 5;
/// Number of windows in one direction, after the first, from which on the velocity doubles.
const STEADY_WINDOWS: u32 = 3;
/// Pacing rate over cwnd/RTTstanding.
const PACING_GAIN: f64 = 2.0;

crate::params! {
    /// Parameters of Copa.
    pub struct Params {
        /// Inverse of the number of a flow's packets in the queue in default mode.
        delta: f64 = 0.5, "copa-2018 §2.2";
        /// Change to the competitive mode next to flows that fill the buffer.
        competitive: bool = true, "copa-2018 §2.2";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.delta >= 1e-6 && self.delta <= 1.0, "delta", "a number from 1e-6 to 1")
    }
}

/// The protocol `copa`.
#[derive(Debug)]
pub struct Copa;

impl Protocol for Copa {
    const INFO: Info = Info {
        name: "copa",
        summary: "Copa: a target rate that falls with the queueing delay, and a competitive mode next to full buffers",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::EmptiedQueue), ..Host::EXPLICIT }.recovering_by(Retransmission::Rack),
        signals: &[
            LawSignal { name: "cwnd", unit: "packets", doc: "congestion window" },
            LawSignal { name: "delta", unit: "1/packets", doc: "inverse of the flow's packets in the queue" },
            LawSignal { name: "velocity", unit: "1", doc: "factor of the window's steps" },
            LawSignal { name: "queueing", unit: "s", doc: "queueing delay, as measured" },
            LawSignal { name: "competitive", unit: "1", doc: "1 in competitive mode, 0 in default mode" },
        ],
    };
    type Params = Params;
    type Header = ();
    type Echo = ();
    type Router = ();
    type Receiver = EchoLast<()>;
    // On the heap: every flow's place is as large as the largest source.
    type Source = Box<Source>;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

/// `[copa-2018:target]` Returns the target rate in packets/s, infinite without a queue. `depth` is 1/δ.
#[must_use]
pub fn target_rate(depth: f64, queueing: Duration) -> f64 {
    if queueing.is_zero() { f64::INFINITY } else { depth / queueing.as_secs() }
}

/// RTT samples of a time window, of which each is an extreme of those after it.
#[derive(Clone, Debug, Default)]
struct Extremes(VecDeque<(Instant, Duration)>);

impl Extremes {
    /// Adds a sample and returns the extreme of the last `window`. `outdoes` is true if its first argument replaces its
    /// second.
    fn add(
        &mut self,
        now: Instant,
        rtt: Duration,
        window: Duration,
        outdoes: fn(Duration, Duration) -> bool,
    ) -> Duration {
        while self.0.back().is_some_and(|&(_, older)| outdoes(rtt, older)) {
            self.0.pop_back();
        }
        self.0.push_back((now, rtt));
        while self.0.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.0.pop_front();
        }
        self.0.front().map_or(rtt, |&(_, extreme)| extreme)
    }
}

/// `[copa-2018:velocity]` Velocity, and the direction in which the window has moved.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    v: f64,
    /// True if the window grew in the last round.
    up: bool,
    /// Number of rounds in this direction, after the first.
    kept: u32,
    /// Window at the start of the round.
    from: f64,
}

impl Velocity {
    /// Handles the end of a round with this window.
    fn end_round(&mut self, cwnd: f64) {
        let up = cwnd > self.from || self.up && cwnd >= self.from;
        self.from = cwnd;
        if up != self.up {
            self.turn(up, cwnd);
            return;
        }
        self.kept = self.kept.saturating_add(1);
        if self.kept >= STEADY_WINDOWS {
            self.v = (2.0 * self.v).min(WINDOW_MAX);
        }
    }

    /// Starts again in another direction.
    const fn turn(&mut self, up: bool, cwnd: f64) {
        *self = Self { v: 1.0, up, kept: 0, from: cwnd };
    }
}

/// Source of Copa.
#[derive(Clone, Debug)]
pub struct Source {
    params: Params,
    packet: Volume,
    cwnd: f64,
    slow_start: bool,
    round: Round,
    velocity: Velocity,
    /// 1/δ: number of this flow's packets in the queue.
    depth: f64,
    competitive: bool,
    /// True if a loss has halved 1/δ in this round.
    halved: bool,
    least: Extremes,
    largest: Extremes,
    /// RTTstanding, and the queueing delay that follows from it; zero before the first sample.
    standing: Duration,
    queueing: Duration,
    /// Last time at which the queue was nearly empty; `None` before the first sample.
    empty_at: Option<Instant>,
    /// Window and 1/δ before the last loss or timeout, which return if that was spurious.
    before: (f64, f64),
}

impl Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let cwnd = connection.initial_window / connection.packet;
        Self {
            params: params.clone(),
            packet: connection.packet,
            cwnd,
            slow_start: true,
            round: Round::default(),
            velocity: Velocity { v: 1.0, up: true, kept: 0, from: cwnd },
            depth: 1.0 / params.delta,
            competitive: false,
            halved: false,
            least: Extremes::default(),
            largest: Extremes::default(),
            standing: Duration::ZERO,
            queueing: Duration::ZERO,
            empty_at: None,
            before: (cwnd, 1.0 / params.delta),
        }
    }

    /// `[copa-2018:delay, mode]` Measures RTTstanding and the queueing delay, and chooses the mode.
    fn measure(&mut self, now: Instant, rtt: Duration, ack: &Ack<()>) {
        let srtt = ack.smoothed_rtt;
        self.standing = self.least.add(now, rtt, srtt / 2, |new, old| new <= old);
        let peak = self.largest.add(now, rtt, srtt * PEAK_RTTS, |new, old| new >= old);
        self.queueing = self.standing - ack.base_rtt.min(self.standing);
        let range = peak - ack.base_rtt.min(peak);
        // RTTs resolve whole packets only.
        let own_packet_s = self.standing.as_secs() / self.cwnd;
        let nearly_empty = self.queueing.as_secs() < (NEARLY_EMPTY * range.as_secs()).max(own_packet_s);
        let empty_at = self.empty_at.filter(|_| !nearly_empty).unwrap_or(now);
        self.empty_at = Some(empty_at);
        let full = self.params.competitive && now.since(empty_at) > srtt * EMPTY_RTTS;
        if self.competitive && !full {
            self.depth = 1.0 / self.params.delta;
        }
        self.competitive = full;
    }

    /// `[copa-2018:delta]` Raises 1/δ at the end of a round without a loss.
    fn end_round(&mut self) {
        if !self.slow_start {
            self.velocity.end_round(self.cwnd);
        }
        if self.competitive && !self.halved {
            self.depth = (self.depth + 1.0).min(WINDOW_MAX);
        }
        self.halved = false;
    }

    /// `[copa-2018:window, slow-start]` Moves the window towards the target rate, by the packets acknowledged.
    fn step(&mut self, acked: f64, may_grow: bool) {
        let rate = self.cwnd / self.standing.as_secs();
        let below = rate <= target_rate(self.depth, self.queueing);
        if self.slow_start && below {
            self.cwnd += if may_grow { acked } else { 0.0 };
        } else {
            let turns = self.velocity.v > 1.0 && self.velocity.up != below;
            if self.slow_start || turns {
                self.slow_start = false;
                self.velocity.turn(below, self.cwnd);
            }
            self.velocity.v = self.velocity.v.min(self.cwnd / self.depth).max(1.0);
            let step = self.velocity.v * self.depth * acked / self.cwnd;
            self.cwnd = match (below, may_grow) {
                (true, true) => self.cwnd + step,
                (true, false) => self.cwnd,
                (false, _) => (self.cwnd - step).max(WINDOW_MIN),
            };
        }
        self.cwnd = self.cwnd.min(WINDOW_MAX);
    }
}

impl crate::protocol::Source<Copa> for Box<Source> {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self::new(Source::new(params, connection))
    }

    fn stamp(&mut self, _: &Sending) {}

    fn on_ack(&mut self, ack: &Ack<()>) {
        if ack.kind == PacketKind::Syn {
            return;
        }
        if let Some(rtt) = ack.rtt {
            self.measure(ack.now, rtt, ack);
        }
        let acked = ack.acked / self.packet;
        if acked <= 0.0 || self.standing.is_zero() {
            return;
        }
        if self.round.ends(acked, ack.in_flight / self.packet) {
            self.end_round();
        }
        self.step(acked, ack.window_limited);
    }

    fn on_event(&mut self, _: Instant, event: Event) {
        match event {
            Event::Loss => {
                self.before = (self.cwnd, self.depth);
                if self.competitive {
                    // δ stays at most that of the default mode.
                    self.depth = (self.depth / 2.0).max(1.0 / self.params.delta);
                    self.halved = true;
                }
            }
            Event::Timeout => {
                self.before = (self.cwnd.max(self.before.0), self.depth);
                self.cwnd = LOSS_WINDOW;
                self.slow_start = true;
            }
            Event::Spurious => {
                self.cwnd = self.cwnd.max(self.before.0);
                self.depth = self.depth.max(self.before.1);
            }
            Event::SynsLost => self.cwnd = LOSS_WINDOW,
            Event::Recovered => self.before = (0.0, 0.0),
            Event::Marked | Event::Idle => {} // not asked for
        }
    }

    fn limit(&self) -> SendLimit {
        let window = self.cwnd * self.packet;
        // [copa-2018:pacing]
        let pacing = (!self.standing.is_zero()).then(|| PACING_GAIN * window / self.standing);
        SendLimit { window: Some(window), pacing }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("cwnd", self.cwnd);
        probe.record("delta", 1.0 / self.depth);
        probe.record("velocity", self.velocity.v);
        probe.record("queueing", self.queueing.as_secs());
        probe.record("competitive", f64::from(u8::from(self.competitive)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::testing::connection;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Source of a connection over a path of 100 ms, and the time of its last acknowledgement.
    struct Sender {
        copa: Box<Source>,
        now: Instant,
    }

    impl Sender {
        fn new(params: &Params) -> Self {
            Self {
                copa: <Box<Source> as crate::protocol::Source<Copa>>::new(params, &connection()),
                now: Instant::ZERO,
            }
        }

        /// Acknowledges a window's packets in the course of an RTT with this RTT; returns the window.
        fn round(&mut self, rtt: Duration) -> f64 {
            let packets = self.copa.cwnd.floor() as u64;
            for _ in 0..packets {
                self.now += rtt / packets;
                self.acknowledge(rtt, (packets - 1) as f64);
            }
            self.copa.cwnd
        }

        fn acknowledge(&mut self, rtt: Duration, in_flight: f64) {
            let packet = connection().packet;
            let (acked, in_flight) = (packet, in_flight * packet);
            self.copa.on_ack(&Ack { acked, base_rtt: ms(100), in_flight, ..Ack::new(self.now, (), rtt) });
        }
    }

    /// `[copa-2018:target]` Two packets in the queue, and 10 ms of delay: 200 packets/s. An empty queue has no limit.
    #[test]
    fn copa_2018_target_by_hand() {
        assert!((target_rate(2.0, ms(10)) - 200.0).abs() < 1e-9);
        assert_eq!(target_rate(2.0, Duration::ZERO), f64::INFINITY);
    }

    /// `[copa-2018:slow-start, window, pacing]` The window doubles per RTT while the queue is empty. At 40 packets, 110 ms
    /// and 10 ms of queue, λ = 364 packets/s is above λ_t = 200, so a packet takes 2/40 of a packet away.
    #[test]
    fn copa_2018_slow_start_ends_above_the_target() {
        let mut sender = Sender::new(&Params::default());
        assert_eq!([0, 1].map(|_| sender.round(ms(100))), [20.0, 40.0]);
        let limit = sender.copa.limit();
        let per_s = limit.pacing.unwrap() * ms(1000) / connection().packet;
        assert!((per_s - 2.0 * 40.0 / 0.1).abs() < 1e-6, "{per_s}");
        sender.now += ms(110);
        sender.acknowledge(ms(110), 39.0);
        assert!(!sender.copa.slow_start);
        assert!((sender.copa.cwnd - (40.0 - 2.0 / 40.0)).abs() < 1e-9, "{}", sender.copa.cwnd);
    }

    /// `[copa-2018:delay]` RTTstanding is the smallest RTT of srtt/2: the RTT of 150 ms is forgotten after 100 ms of the
    /// smoothed 200 ms, not before.
    #[test]
    fn copa_2018_standing_rtt_is_of_half_a_smoothed_rtt() {
        let mut sender = Sender::new(&Params::default());
        let mut at = |time, rtt| {
            let packet = connection().packet;
            let ack = Ack { acked: packet, base_rtt: ms(100), smoothed_rtt: ms(200), ..Ack::new(time, (), rtt) };
            sender.copa.on_ack(&ack);
            (sender.copa.standing, sender.copa.queueing)
        };
        let start = Instant::ZERO + ms(1000);
        assert_eq!(at(start, ms(150)), (ms(150), ms(50)));
        assert_eq!(at(start + ms(50), ms(180)), (ms(150), ms(50)));
        assert_eq!(at(start + ms(100), ms(170)), (ms(150), ms(50)));
        assert_eq!(at(start + ms(101), ms(175)), (ms(170), ms(70)));
    }

    /// `[copa-2018:velocity]` The first window sets the direction, and the velocity doubles from the third one on that
    /// keeps it. A change of direction resets it.
    #[test]
    fn copa_2018_velocity_doubles_after_three_windows() {
        let mut velocity = Velocity { v: 1.0, up: false, kept: 0, from: 10.0 };
        let mut after = |cwnd| {
            velocity.end_round(cwnd);
            velocity.v
        };
        assert_eq!([11.0, 12.0, 13.0, 14.0, 15.0].map(&mut after), [1.0, 1.0, 1.0, 2.0, 4.0]);
        assert_eq!([14.0, 13.0, 12.0, 11.0, 10.0].map(&mut after), [1.0, 1.0, 1.0, 2.0, 4.0]);
    }

    /// A velocity moves the window by v/δ packets in an RTT, and at most doubles it.
    #[test]
    fn copa_2018_velocity_moves_the_window_by_v_over_delta() {
        let mut sender = Sender::new(&Params::default());
        (sender.copa.slow_start, sender.copa.cwnd) = (false, 100.0);
        sender.copa.velocity = Velocity { v: 8.0, up: true, kept: 0, from: 99.0 };
        // 100 packets at 16/cwnd each: √(100² + 2·16·100) − 100 = 14.9 packets.
        let grown = sender.round(ms(100)) - 100.0;
        assert!((grown - 14.9).abs() < 0.2, "{grown}");
        sender.copa.velocity.v = 1e6;
        let before = sender.copa.cwnd;
        sender.acknowledge(ms(100), 0.0);
        assert!((sender.copa.cwnd - before - 1.0).abs() < 1e-9, "as in slow start");
    }

    /// `[copa-2018:mode, delta]` Five RTTs of a standing queue start the competitive mode, in which 1/δ grows by one per
    /// RTT and halves at a loss, down to the default mode's 2. An empty queue ends it.
    #[test]
    fn copa_2018_standing_queue_starts_the_competitive_mode() {
        let mut sender = Sender::new(&Params::default());
        sender.round(ms(100));
        let modes: Vec<bool> = (0..7).map(|_| (sender.round(ms(150)), sender.copa.competitive).1).collect();
        assert_eq!(modes, [false, false, false, false, false, true, true]);
        let depth = sender.copa.depth;
        sender.round(ms(150));
        assert!((sender.copa.depth - depth - 1.0).abs() < 1e-9);
        for _ in 0..10 {
            sender.round(ms(150));
        }
        let depth = sender.copa.depth;
        assert!(depth > 10.0, "{depth}");
        let cwnd = sender.copa.cwnd;
        sender.copa.on_event(sender.now, Event::Loss);
        assert_eq!((sender.copa.depth, sender.copa.cwnd), (depth / 2.0, cwnd));
        for _ in 0..5 {
            sender.copa.on_event(sender.now, Event::Loss);
        }
        assert_eq!(sender.copa.depth, 2.0);
        sender.copa.depth = 20.0;
        sender.round(ms(100));
        assert_eq!((sender.copa.competitive, sender.copa.depth), (false, 2.0));
    }

    /// Less than one of ten packets in the queue, 5 of 105 ms, is no standing queue, however long it lasts.
    #[test]
    fn less_than_one_packet_in_the_queue_counts_as_none() {
        let mut sender = Sender::new(&Params::default());
        sender.round(ms(100));
        for _ in 0..20 {
            (sender.copa.cwnd, sender.copa.slow_start) = (10.0, false);
            sender.round(ms(105));
        }
        assert!(!sender.copa.competitive);
        for _ in 0..20 {
            (sender.copa.cwnd, sender.copa.slow_start) = (40.0, false);
            sender.round(ms(105));
        }
        assert!(sender.copa.competitive, "two of 40 packets");
    }

    /// In default mode, and without the competitive one, a loss changes nothing.
    #[test]
    fn without_the_competitive_mode_delta_stays() {
        let mut sender = Sender::new(&Params { competitive: false, ..Params::default() });
        for _ in 0..12 {
            sender.round(ms(150));
        }
        let before = (sender.copa.depth, sender.copa.cwnd);
        sender.copa.on_event(sender.now, Event::Loss);
        assert_eq!((sender.copa.depth, sender.copa.cwnd), before);
        assert!(!sender.copa.competitive && before.0 == 2.0);
    }

    /// A timeout restarts slow start with one packet, and a spurious one is undone (RFC 4015).
    #[test]
    fn a_timeout_restarts_and_a_spurious_one_is_undone() {
        let mut sender = Sender::new(&Params::default());
        let cwnd = sender.round(ms(100));
        sender.copa.on_event(sender.now, Event::Timeout);
        assert_eq!((sender.copa.cwnd, sender.copa.slow_start), (1.0, true));
        sender.copa.on_event(sender.now, Event::Spurious);
        assert_eq!(sender.copa.cwnd, cwnd);
    }

    /// A window that the application does not use does not grow; it still shrinks.
    #[test]
    fn an_unused_window_does_not_grow() {
        let mut sender = Sender::new(&Params::default());
        let packet = connection().packet;
        let idle =
            |rtt| Ack { acked: packet, base_rtt: ms(100), window_limited: false, ..Ack::new(Instant::ZERO, (), rtt) };
        sender.copa.on_ack(&idle(ms(100)));
        assert_eq!(sender.copa.cwnd, 10.0);
        sender.copa.on_ack(&Ack { now: Instant::from_secs(1.0), ..idle(ms(150)) });
        assert!(sender.copa.cwnd < 10.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for delta in [0.0, 1.5, f64::NAN] {
            assert!(Params { delta, ..Params::default() }.validate().unwrap_err().0.starts_with("delta: must be"));
        }
    }
}
