//! DCQCN: a sender of RoCE cuts its rate when marked packets arrive, and raises it by timers and by bytes sent.
//!
//! # Law
//! A link marks packets with a probability that grows with its queue. The receiver answers marks with a congestion
//! notification packet (CNP), at most one per interval N. The sender has a rate R_C, a target R_T and an estimate α of marking.
//!
//! - `eq1`  on a CNP: R_T ← R_C, then R_C ← R_C·(1 − α/2), then α ← (1 − g)·α + g
//! - `eq2`  without a CNP for a time K, and again after each further K: α ← (1 − g)·α
//! - `stages`  a timer of T and a counter of B bytes both start again at a CNP. Each expiry is a step, counted for each of
//!   the two
//! - `eq3`  fast recovery, while both counts are at most F: R_C ← (R_T + R_C)/2
//! - `eq4`  additive increase, once a count is above F: R_T ← R_T + R_AI, then as `eq3`
//! - `hyper`  hyper increase, once both counts are above F: R_T ← R_T + R_HAI, then as `eq3`
//!
//! A flow starts at the rate of its host's link and has no window.
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | R_C, R_T, α | [`ReactionPoint`]: `rate`, `target`, `alpha` | bit/s, bit/s, 1 |
//! | N, K, T, B | `cnp_interval`, `alpha_timer`, `rate_timer`, `byte_counter` | s, s, s, bytes |
//! | g, F | `g`, `fast_recovery` | 1, 1 |
//! | R_AI, R_HAI | `r_ai`, `r_hai` | bit/s |
//!
//! # Header
//! None, but ECN's two bits. An acknowledgement carries [`Echo`], one byte: whether it is a CNP.
//!
//! # Router
//! None of its own: the queue marks with a probability that grows from 0 at a link's `mark_at` to `mark_max` at `mark_to`.
//!
//! # Receiver
//! [`NotificationPoint`]: the first mark, and then the first mark at least N after the last CNP, makes the next
//! acknowledgement a CNP.
//!
//! # Source
//! [`Source`]: paced at R_C. A law has no timers of its own. The host asks for the rate when a packet leaves, and `advance`
//! then runs the expiries since the last call, in order of time. A rate that rises between two packets does not shorten the
//! wait that has begun.
//!
//! # Parameters
//! [`Params`]: the paper's, for links of 40 Gbit/s. `profile = "datacenter"` scales times with the RTT and rates with the
//! link. `window` bounds the data in flight, as HPCC's authors do for their DCQCN+win.
//!
//! # Readings and deviations
//! The paper's text was not at hand: its equations and constants are from a secondary source, which is memory and public code.
//!
//! - A CNP is a bit of an acknowledgement. The paper's is a packet of its own, with a priority of its own, so here a CNP
//!   waits in the queues of acknowledgements, and adds no load.
//! - Step F itself is still fast recovery, so there are F halvings. Hyper increase adds R_HAI in each step.
//! - The target is set at each CNP, also at two CNPs without a step between. The public code of HPCC's authors keeps it then
//!   (`CLAMP_TARGET_RATE 0`). That code also has no byte counter and no additive step but one, `FAST_RECOVERY_TIMES 1`,
//!   notifies with every marked packet's acknowledgement, and reacts at most once per 4 or 50 us.
//! - Losses change no rate. Recovery is the simulator's; NICs of 2015 go back N.
//! - The weight of a flow has no effect.
//!
//! # Validation
//! Equation tests below. `tests/python/runs/test_dcqcn.py` has the algorithm a second time, with timers as events: incasts of
//! 1 to 8 flows at a threshold complete within a millionth, with the same largest queue. On a link whose marking grows by the
//! paper's slope, 2 and 8 flows have equal rates and the probability of marks at which a cut and the steps until the next
//! CNP balance, within 10 %. The authors' fluid model (`ecn-or-delay-2016`, secondary source) gives a quarter less, because
//! there the next CNP can follow at once.
//!
//! # References
//! `dcqcn-2015`: Zhu, Eran, Firestone, Guo, Lipshteyn, Liron, Padhye, Raindel, Yahia, Zhang, "Congestion Control for
//! Large-Scale RDMA Deployments", SIGCOMM 2015. `ecn-or-delay-2016`: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons
//! Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016. Code: alibaba-edu/High-Precision-Congestion-Control.

use crate::math;
use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, BaseRtt, Connection, Ecn, Host, Info, LawSignal, PacketKind, Probe, Protocol, ProtocolKind, Received,
    Receiver, SendLimit, Sending, Wire,
};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// The protocol `dcqcn`.
#[derive(Debug)]
pub struct Dcqcn;

impl Protocol for Dcqcn {
    const INFO: Info = Info {
        name: "dcqcn",
        summary: "DCQCN: marks cut a rate, timers and bytes raise it, as in RoCE NICs (2015)",
        kind: ProtocolKind::EndToEnd,
        needs_packets: true,
        paced: true,
        host: Host { ecn: Ecn::Accurate, base_rtt: Some(BaseRtt::FullQueues), ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "rate", unit: "bit/s", doc: "the rate R_C" },
            LawSignal { name: "target", unit: "bit/s", doc: "the target R_T" },
            LawSignal {
                name: "alpha",
                unit: "1",
                doc: "estimate α of marking after the last CNP; none before the first",
            },
        ],
    };
    type Params = Params;
    type Header = ();
    type Echo = Echo;
    type Router = ();
    type Receiver = NotificationPoint;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

crate::choice! {
    /// Bound of the data in flight.
    pub enum Bound {
        /// No bound, as in the paper.
        Off = "off",
        /// The rate of the host's link times the base RTT.
        Fixed = "fixed",
        /// The present rate R_C times the base RTT, as `VAR_WIN` of HPCC's authors.
        Rate = "rate",
    }
}

crate::params! {
    /// Parameters of DCQCN.
    pub struct Params {
        /// Weight g of a CNP in α.
        g: f64 = 1.0 / 256.0, "dcqcn-2015, from a secondary source";
        /// Minimum time N between two CNPs of a flow.
        cnp_interval: Duration = Duration::from_micros(50), "dcqcn-2015, from a secondary source";
        /// Time K without a CNP after which α falls.
        alpha_timer: Duration = Duration::from_micros(55), "dcqcn-2015, from a secondary source";
        /// Timer T of rate increases.
        rate_timer: Duration = Duration::from_micros(55), "dcqcn-2015, from a secondary source";
        /// Bytes B between two rate increases.
        byte_counter: Volume = Volume::from_bytes(10e6), "dcqcn-2015, from a secondary source";
        /// Number F of steps of fast recovery.
        fast_recovery: u32 = 5, "dcqcn-2015, from a secondary source";
        /// Step R_AI of additive increase.
        r_ai: Rate = Rate::from_bps(40e6), "dcqcn-2015, from a secondary source";
        /// Step R_HAI of hyper increase.
        r_hai: Rate = Rate::from_bps(400e6), "ten times r_ai, as in the code of HPCC's authors";
        /// Minimum rate.
        r_min: Rate = Rate::from_bps(100e6), "default of the code of HPCC's authors";
        /// Bound of the data in flight: none, the link's rate or the present rate times the base RTT.
        window: Bound = Bound::Off, "dcqcn-2015; HPCC's DCQCN+win has one";
        /// Base RTT of the window. 0 is the smallest RTT of the connection.
        base_rtt: Duration = Duration::ZERO, "as hpcc";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.g > 0.0 && self.g <= 1.0, "g", "a number in (0, 1]")?;
        require(!self.alpha_timer.is_zero(), "alpha_timer", "a time above zero")?;
        require(!self.rate_timer.is_zero(), "rate_timer", "a time above zero")?;
        require(self.byte_counter > Volume::ZERO, "byte_counter", "a volume above zero")?;
        require(self.r_ai > Rate::ZERO, "r_ai", "a rate above zero")?;
        require(self.r_hai > Rate::ZERO, "r_hai", "a rate above zero")?;
        require(self.r_min > Rate::ZERO, "r_min", "a rate above zero")
    }
}

// ---------------------------------------------------------------------------------- receiver

/// Notification in an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// True if the acknowledgement is a CNP.
    pub cnp: bool,
}

impl Wire for Echo {
    const BYTES: usize = 1;
    fn encode(&self, out: &mut [u8]) {
        out[0] = u8::from(self.cnp);
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.first().filter(|&&byte| byte <= 1).map(|&byte| Self { cnp: byte == 1 })
    }
}

/// Receiver that answers marks with at most one CNP per interval.
#[derive(Clone, Debug)]
pub struct NotificationPoint {
    interval: Duration,
    /// Time from which a mark causes a CNP.
    open: Instant,
    /// True if the next acknowledgement is a CNP.
    pending: bool,
}

impl Receiver<Dcqcn> for NotificationPoint {
    fn new(params: &Params) -> Self {
        Self { interval: params.cnp_interval, open: Instant::ZERO, pending: false }
    }

    fn on_data(&mut self, _: &Received<()>) {}

    /// `[dcqcn-2015:np]` Sends a CNP if none was sent in the last interval.
    fn on_mark(&mut self, now: Instant) {
        if now >= self.open {
            (self.open, self.pending) = (now + self.interval, true);
        }
    }

    fn echo(&mut self, _: Instant) -> Echo {
        Echo { cnp: std::mem::take(&mut self.pending) }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: open, pending);
    }
}

// ---------------------------------------------------------------------------------- source

/// `[dcqcn-2015:eq1]` Returns target, rate and α after a CNP.
#[must_use]
pub fn cut(rate: Rate, alpha: f64, g: f64) -> (Rate, Rate, f64) {
    (rate, (1.0 - alpha / 2.0) * rate, (1.0 - g) * alpha + g)
}

/// `[dcqcn-2015:eq2]` Returns α after a number of times K without a CNP.
#[must_use]
pub fn decayed(alpha: f64, g: f64, times: u64) -> f64 {
    alpha * math::pow(1.0 - g, times as f64)
}

/// `[dcqcn-2015:eq3]` Returns the rate after a step towards the target.
#[must_use]
pub fn recovered(rate: Rate, target: Rate) -> Rate {
    0.5 * (target + rate)
}

/// Increase of the target in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// None: fast recovery.
    Recovery,
    /// R_AI.
    Additive,
    /// R_HAI.
    Hyper,
}

/// `[dcqcn-2015:stages]` Returns the increase of a step, with the counts of timer and bytes that include it.
#[must_use]
pub fn increase(timer: u32, bytes: u32, fast_recovery: u32) -> Increase {
    if timer.min(bytes) > fast_recovery {
        Increase::Hyper
    } else if timer.max(bytes) > fast_recovery {
        Increase::Additive
    } else {
        Increase::Recovery
    }
}

/// Number of equal steps after which R_T − R_C is their increase, to the precision of a rate.
const SETTLED: u64 = 64;
/// Places of the counts of steps by the timer and by bytes.
const TIMER: usize = 0;
const BYTES: usize = 1;

/// State of a sender since its first CNP.
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    rate: Rate,
    target: Rate,
    alpha: f64,
    /// Time of the last CNP, from which α falls.
    notified: Instant,
    /// Time at which the timer of rate increases started last.
    timer: Instant,
    /// Volume sent since the counter of bytes started.
    sent: Volume,
    /// Number of steps by the timer, and by bytes, since the last CNP.
    steps: [u32; 2],
}

impl ReactionPoint {
    fn new(line: Rate, now: Instant) -> Self {
        Self { rate: line, target: line, alpha: 1.0, notified: now, timer: now, sent: Volume::ZERO, steps: [0; 2] }
    }

    /// Returns α at a time.
    fn alpha_at(&self, params: &Params, now: Instant) -> f64 {
        let times = now.since(self.notified).as_ps() / params.alpha_timer.as_ps();
        decayed(self.alpha, params.g, times)
    }

    fn on_cnp(&mut self, params: &Params, now: Instant) {
        let alpha = self.alpha_at(params, now);
        (self.target, self.rate, self.alpha) = cut(self.rate, alpha, params.g);
        self.rate = self.rate.max(params.r_min);
        (self.notified, self.timer, self.sent, self.steps) = (now, now, Volume::ZERO, [0; 2]);
    }

    /// `[dcqcn-2015:eq4]` `[dcqcn-2015:hyper]` Returns the increase of R_T in a step with the present counts.
    fn increment(&self, params: &Params) -> Rate {
        let [timer, bytes] = self.steps;
        match increase(timer, bytes, params.fast_recovery) {
            Increase::Recovery => Rate::ZERO,
            Increase::Additive => params.r_ai,
            Increase::Hyper => params.r_hai,
        }
    }

    /// Runs one step, by the timer or by bytes.
    fn step(&mut self, params: &Params, line: Rate, by: usize) {
        self.steps[by] = self.steps[by].saturating_add(1);
        self.target = (self.target + self.increment(params)).min(line);
        self.rate = recovered(self.rate, self.target);
    }

    /// Runs the timer's expiries until `now`.
    fn advance(&mut self, params: &Params, line: Rate, now: Instant) {
        let steps = now.since(self.timer).as_ps() / params.rate_timer.as_ps();
        self.timer += params.rate_timer * steps;
        self.run_steps(params, line, TIMER, steps);
    }

    /// Runs steps by the timer, or by bytes.
    fn run_steps(&mut self, params: &Params, line: Rate, by: usize, mut left: u64) {
        while left > 0 {
            let recovery = u64::from(params.fast_recovery.saturating_sub(self.steps[by]));
            let alike = if recovery > 0 { left.min(recovery) } else { left };
            self.equal_steps(params, line, by, alike);
            left -= alike;
        }
    }

    /// Runs steps with the same increase r. After a few of them R_T − R_C is r, so those in the middle of a long
    /// pause need not run one by one.
    fn equal_steps(&mut self, params: &Params, line: Rate, by: usize, count: u64) {
        let first = count.min(SETTLED);
        let last = (count - first).min(SETTLED);
        self.single_steps(params, line, by, first);
        let middle = count - first - last;
        self.count(by, middle);
        if middle > 0 && self.rate < line {
            let increment = self.increment(params);
            self.target = (self.target + middle as f64 * increment).min(line);
            self.rate = self.rate.max(self.target - increment);
        }
        self.single_steps(params, line, by, last);
    }

    /// Runs steps one by one. At the link's rate they change only their count.
    fn single_steps(&mut self, params: &Params, line: Rate, by: usize, count: u64) {
        for done in 0..count {
            if self.rate >= (1.0 - 1e-12) * line {
                self.count(by, count - done);
                return;
            }
            self.step(params, line, by);
        }
    }

    /// Counts steps.
    fn count(&mut self, by: usize, steps: u64) {
        self.steps[by] = self.steps[by].saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
    }

    /// Counts sent bytes.
    fn on_sent(&mut self, params: &Params, line: Rate, volume: Volume) {
        self.sent += volume;
        if self.sent >= params.byte_counter {
            let steps = (self.sent / params.byte_counter).floor();
            self.sent -= steps * params.byte_counter;
            self.run_steps(params, line, BYTES, steps as u64);
        }
    }
}

/// Source paced at the rate R_C.
#[derive(Clone, Debug)]
pub struct Source {
    params: Params,
    /// Rate of the host's link, at which a flow starts and which it never exceeds.
    line: Rate,
    initial_window: Volume,
    base_rtt: Option<Duration>,
    /// State since the first CNP; boxed to keep the sources of all protocols small.
    reaction: Option<Box<ReactionPoint>>,
}

impl Source {
    fn rate(&self) -> Rate {
        self.reaction.as_ref().map_or(self.line, |reaction| reaction.rate)
    }
}

impl crate::protocol::Source<Dcqcn> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            params: params.clone(),
            line: connection.path.host_rate,
            initial_window: connection.initial_window,
            base_rtt: Some(params.base_rtt).filter(|rtt| !rtt.is_zero()),
            reaction: None,
        }
    }

    fn stamp(&mut self, sending: &Sending) {
        if sending.kind == PacketKind::Data
            && let Some(reaction) = &mut self.reaction
        {
            reaction.on_sent(&self.params, self.line, sending.volume);
        }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if self.params.base_rtt.is_zero() {
            self.base_rtt = Some(ack.base_rtt);
        }
        crate::protocol::Source::<Dcqcn>::advance(self, ack.now);
        if ack.echo.cnp {
            let line = self.line;
            let reaction = self.reaction.get_or_insert_with(|| Box::new(ReactionPoint::new(line, ack.now)));
            reaction.on_cnp(&self.params, ack.now);
        }
    }

    fn advance(&mut self, now: Instant) {
        if let Some(reaction) = &mut self.reaction {
            reaction.advance(&self.params, self.line, now);
        }
    }

    fn limit(&self) -> SendLimit {
        let rate = self.rate();
        let of = |rate: Rate| self.base_rtt.map_or(self.initial_window, |rtt| rate * rtt);
        let window = match self.params.window {
            Bound::Off => None,
            Bound::Fixed => Some(of(self.line)),
            Bound::Rate => Some(of(rate)),
        };
        SendLimit { window, pacing: Some(rate) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("rate", self.rate().as_bps());
        if let Some(reaction) = &self.reaction {
            probe.record("target", reaction.target.as_bps());
            probe.record("alpha", reaction.alpha);
        }
    }

    fn state(&self, fields: &mut StateFields) {
        let reaction = self.reaction.as_deref();
        fields.put("rate", &self.rate());
        fields.put("target", &reaction.map(|reaction| reaction.target));
        fields.put("alpha", &reaction.map(|reaction| reaction.alpha));
        fields.put("timer", &reaction.map(|reaction| reaction.timer));
        fields.put("sent", &reaction.map(|reaction| reaction.sent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{PathView, Source as _};
    use crate::testing::{close, connection};

    const LINE: Rate = Rate::from_bps(40e9);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn source(params: &Params) -> Source {
        let path = PathView { host_rate: LINE, hops: 2 };
        Source::new(params, &Connection { path, ..connection() })
    }

    fn ack(source: &mut Source, us: u64, cnp: bool) {
        source.on_ack(&Ack::new(at(us), Echo { cnp }, Duration::from_micros(10)));
    }

    /// Returns the pacing rate in Gbit/s.
    fn gbps(source: &Source) -> f64 {
        source.limit().pacing.expect("a rate").as_bps() / 1e9
    }

    /// `[dcqcn-2015:eq1]` `[dcqcn-2015:eq2]` The first CNP halves the rate. 110 us later α has fallen twice by 1/256, and the
    /// next CNP cuts by half of it.
    #[test]
    fn dcqcn_2015_a_cnp_cuts_by_half_of_alpha() {
        let mut source = source(&Params { rate_timer: Duration::from_millis(1000), ..Params::default() });
        assert_eq!(gbps(&source), 40.0);
        ack(&mut source, 0, false);
        assert_eq!(gbps(&source), 40.0);
        ack(&mut source, 100, true);
        assert_eq!(gbps(&source), 20.0);
        ack(&mut source, 100 + 164, true);
        let alpha = (255.0 / 256.0) * (255.0 / 256.0);
        close(gbps(&source), 20.0 * (1.0 - alpha / 2.0), 1e-12);
        let reaction = source.reaction.as_ref().expect("a reaction");
        close(reaction.target.as_bps(), 20e9, 1e-12);
        close(reaction.alpha, alpha * 255.0 / 256.0 + 1.0 / 256.0, 1e-12);
        assert_eq!(cut(LINE, 0.5, 0.25), (LINE, Rate::from_bps(30e9), 0.625));
    }

    /// `[dcqcn-2015:stages]` `[dcqcn-2015:eq3]` `[dcqcn-2015:eq4]` Five steps of the timer halve the distance to the target.
    /// Then each raises the target by R_AI, without bytes by no more.
    #[test]
    fn dcqcn_2015_recovers_then_adds() {
        let mut source = source(&Params::default());
        ack(&mut source, 0, true);
        ack(&mut source, 50, true); // R_T is 20, R_C is 10 Gbit/s
        let mut distance = 10.0;
        for step in 1..=5 {
            source.advance(at(50 + 55 * step - 1));
            close(gbps(&source), 20.0 - distance, 1e-12);
            source.advance(at(50 + 55 * step));
            distance /= 2.0;
            close(gbps(&source), 20.0 - distance, 1e-12);
        }
        source.advance(at(50 + 55 * 6));
        close(gbps(&source), (20.04 + 20.0 - distance) / 2.0, 1e-12);
        source.advance(at(50 + 55 * 7));
        close(source.reaction.as_ref().expect("a reaction").target.as_bps(), 20.08e9, 1e-12);
    }

    /// A pause is the same in one call and in many, also one of 10^10 steps, which no loop would end soon.
    #[test]
    fn a_long_pause_is_skipped() {
        let params = Params { r_ai: Rate::from_bps(1e5), ..Params::default() };
        for steps in [3, 64, 65, 128, 129, 200, 5_000] {
            let (mut once, mut often) = (source(&params), source(&params));
            for source in [&mut once, &mut often] {
                ack(source, 0, true);
                ack(source, 50, true);
            }
            (1..=steps).for_each(|step| often.advance(at(50 + 55 * step)));
            once.advance(at(50 + 55 * steps));
            close(gbps(&once), gbps(&often), 1e-12);
            let counts = |source: &Source| source.reaction.as_ref().map(|reaction| (reaction.steps, reaction.timer));
            assert_eq!(counts(&once), counts(&often));
        }
        let mut source = source(&params);
        ack(&mut source, 0, true);
        source.advance(at(1_000_000_000_000));
        close(gbps(&source), 40.0, 1e-12);
    }

    /// `[dcqcn-2015:stages]` `[dcqcn-2015:hyper]` Bytes are steps of their own. With six of both, the target grows by R_HAI.
    /// A CNP starts both counts again.
    #[test]
    fn dcqcn_2015_both_counts_give_hyper_increase() {
        assert_eq!(increase(5, 5, 5), Increase::Recovery);
        assert_eq!([increase(6, 5, 5), increase(5, 6, 5)], [Increase::Additive; 2]);
        assert_eq!(increase(6, 6, 5), Increase::Hyper);
        let mut source = source(&Params { byte_counter: Volume::from_bytes(1500.0), ..Params::default() });
        ack(&mut source, 0, true);
        ack(&mut source, 50, true);
        let sending = |us| Sending::new(at(us), PacketKind::Data, Volume::from_bytes(1500.0));
        (0..6).for_each(|_| source.stamp(&sending(60)));
        let target = |source: &Source| source.reaction.as_ref().expect("a reaction").target.as_bps();
        close(target(&source), 20.04e9, 1e-12);
        source.advance(at(50 + 6 * 55));
        close(target(&source), 20.04e9 + 5.0 * 40e6 + 400e6, 1e-12);
        ack(&mut source, 500, true);
        assert_eq!(source.reaction.as_ref().expect("a reaction").steps, [0, 0]);
    }

    /// The rate stays between R_min and the rate of the host's link, and a pause of a day takes no time.
    #[test]
    fn the_rate_is_bounded() {
        let mut source = source(&Params::default());
        (0..100).for_each(|i| ack(&mut source, 50 * i, true));
        assert_eq!(gbps(&source), 0.1);
        source.advance(at(86_400_000_000));
        close(gbps(&source), 40.0, 1e-9);
        assert!(gbps(&source) <= 40.0);
    }

    /// `[dcqcn-2015:np]` Marks within 50 us of a CNP cause none. The acknowledgement after the mark carries it.
    #[test]
    fn dcqcn_2015_one_cnp_per_interval() {
        let mut receiver = <NotificationPoint as Receiver<Dcqcn>>::new(&Params::default());
        let mut cnp = |us: u64, marked: bool| {
            if marked {
                receiver.on_mark(at(us));
            }
            receiver.echo(at(us)).cnp
        };
        let marks = [(0, false), (1, true), (2, true), (2, false), (50, true), (51, true), (100, true), (120, true)];
        let cnps = marks.map(|(us, marked)| cnp(us, marked));
        assert_eq!(cnps, [false, true, false, false, false, true, false, true]);
    }

    /// The window is none, B·τ or R_C·τ.
    #[test]
    fn a_window_follows_the_link_or_the_rate() {
        let bytes = |source: &Source| source.limit().window.map(|window| window.as_bytes().round());
        for (window, before, after) in
            [(Bound::Off, None, None), (Bound::Fixed, Some(50e3), Some(50e3)), (Bound::Rate, Some(50e3), Some(25e3))]
        {
            let mut source = source(&Params { window, ..Params::default() });
            ack(&mut source, 0, false);
            assert_eq!(bytes(&source), before);
            ack(&mut source, 10, true);
            assert_eq!(bytes(&source), after);
        }
    }
}
