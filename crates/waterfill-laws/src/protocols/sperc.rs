//! s-PERC: links and packets run a distributed algorithm for max-min fair rates, without measuring load or queues.
//!
//! # Law
//! A flow tells each link of its path the smallest rate that its other links give it. The link knows the sum of the rates of
//! the flows that are limited elsewhere (state E) and the number of the others (state B), and divides what is left among
//! these. It keeps no list of flows: each flow carries what the link has last decided about it.
//!
//! - `rate`   b = (γC − SumE)/NumB, as if the flow were limited here
//! - `limit`  e = min of b_j over the flow's other links j that do not ask to be ignored
//! - `state`  E with x = e if e < b; otherwise B with x = b
//! - `ignore` the other links ignore b if b < MaxE, the largest x of flows in state E in this round and the last
//! - `send`   a source sends at min x over its links
//! - `round`  every T, SumE and NumB become those of the flows that were counted in that round
//!
//! The theorem: in rounds in which each link sees each flow once, rates are exact within 6·N rounds. N is the number of
//! iterations of 2-Waterfilling ([check](../../validation/router-laws.md#s-perc-on-real-networks)).
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | C, γ | `capacity`, `gamma` | bit/s, 1 |
//! | SumE, NumB, MaxE | [`Sums`], `max_elsewhere` | bit/s, flows, bit/s |
//! | b, x, s, i | [`Slot`] | bit/s, bit/s, –, – |
//! | e | `Header::rate` of a request | bit/s |
//! | round | `interval` | s |
//!
//! # Header
//! 16 bytes in data and in acknowledgements, for one link at a time: the number of routers passed and the router in question
//! (8 bits each), state and ignore bit (8), the round in which that link counted the flow last (8), x, then e on the way there
//! and b afterwards, and the flow's weight (single precision).
//!
//! # Router
//! [`Router`]: a counter for each packet of the law. The router in question recomputes the flow's slot.
//!
//! # Receiver
//! [`Receiver`] returns each slot once.
//!
//! # Source
//! [`Source`]: its path's slots. It asks each link once per RTT, in every second packet at most, and is paced at its rate once
//! all links have answered. A weight of w counts as w flows.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! The paper's text was not available (secondary source): its abstract, and its authors' simulators (lavanyaj/
//! numerical-simulations).
//!
//! - The paper has control packets of their own, which carry the slots of all links, on their way back too. Here data carry
//!   one slot, so e is made of values that are up to an RTT old, and a slow flow updates its links slowly.
//! - A flow must update each link at least once per T, with two packets per link of its path. A link forgets a slower flow in
//!   between and gives its share away.
//! - A flow's end is not announced: its share is free when T has ended twice. In the paper a last control packet frees it.
//! - A lost slot or a changed route makes SumE wrong for up to two rounds, as in the authors' robust form.
//! - The paper keeps queues short by headroom. γ is our own.
//!
//! # Validation
//! Equation tests below. The algorithm in rounds, on 229 networks: `make validate STUDY=sperc`. In packets
//! (`tests/python/runs/test_sperc.py`): the max-min rates of a parking lot, and a T that is too short.
//! [Results](../../validation/router-laws.md).
//!
//! # References
//! `sperc-2019`: Jose, Ibanez, Alizadeh, McKeown, "A Distributed Algorithm to Calculate Max-Min Fair Rates Without Per-Flow
//! State", Proc. ACM Meas. Anal. Comput. Syst. 3(2), 2019 (SIGMETRICS).

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, Event, Host, Info, LawSignal, LinkView, PacketKind, Passing, Probe, Protocol, ProtocolKind,
    Received, SendLimit, Sending, Source as SourceLaw, Wire,
};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

crate::params! {
    /// Parameters of s-PERC.
    pub struct Params {
        /// Target utilization γ of a link.
        gamma: f64 = 0.95, "ours, as jetmax: headroom drains a queue";
        /// Time T of a round, after which a link forgets flows that it has not seen.
        interval: Duration = Duration::from_millis(500), "ours: five long RTTs";
        /// Minimum rate of a flow on a link.
        r_min: Rate = Rate::from_bps(24e3), "as rcp";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(!self.interval.is_zero(), "interval", "a time above zero")?;
        require((1.0..=1e18).contains(&self.r_min.as_bps()), "r_min", "a rate from 1 bit/s to 1e18 bit/s")
    }
}

/// The protocol `sperc`.
#[derive(Debug)]
pub struct Sperc;

impl Protocol for Sperc {
    const INFO: Info = Info {
        name: "sperc",
        summary: "packets carry what links decided on their flow; exact max-min in bounded rounds (2019)",
        kind: ProtocolKind::Explicit,
        needs_packets: true,
        paced: true,
        host: Host::EXPLICIT,
        signals: &[
            LawSignal { name: "rate", unit: "bit/s", doc: "the link's rate b for the last flow, or the source's rate" },
            LawSignal { name: "flows", unit: "flows", doc: "the number NumB of flows that the link limits" },
        ],
    };
    type Params = Params;
    type Header = Header;
    type Echo = Header;
    type Router = Router;
    type Receiver = Receiver;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.gamma
    }
}

/// Bit of state E.
const ELSEWHERE: u8 = 1;
/// Bit of a rate that other links ignore.
const IGNORED: u8 = 2;

/// Header and echo: the slot of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// Number of routers passed.
    hops: u8,
    /// Router to which the slot belongs, from 1; 0 without a slot.
    router: u8,
    bits: u8,
    /// Round in which the router counted the flow last; 0 for never.
    round: u8,
    /// Allocation x in bit/s.
    allocation: f32,
    /// Limit e on the way to the router, then its rate b, in bit/s. Infinity means no limit.
    rate: f32,
    weight: f32,
}

impl Header {
    /// Returns true if the router in question has updated the slot.
    const fn is_answered(&self) -> bool {
        self.router > 0 && self.hops >= self.router
    }
}

impl Wire for Header {
    const BYTES: usize = 16;
    fn encode(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&[self.hops, self.router, self.bits, self.round]);
        out[4..8].copy_from_slice(&self.allocation.to_be_bytes());
        out[8..12].copy_from_slice(&self.rate.to_be_bytes());
        out[12..16].copy_from_slice(&self.weight.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let [hops, router, bits, round, a, b, c, d, e, f, g, h, weight @ ..] = *bytes.first_chunk::<16>()?;
        let allocation = f32::from_be_bytes([a, b, c, d]);
        let rate = f32::from_be_bytes([e, f, g, h]);
        let weight = f32::from_be_bytes(weight);
        let valid = rate >= 0.0 && [allocation, weight].iter().all(|x| x.is_finite() && *x >= 0.0);
        valid.then_some(Self { hops, router, bits, round, allocation, rate, weight })
    }
}

/// SumE in bit/s and NumB of a set of flows, each counted by its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    elsewhere: f64,
    here: f64,
}

impl Sums {
    fn add(&mut self, bits: u8, allocation: f32, weight: f64) {
        if bits & ELSEWHERE == 0 {
            self.here += weight;
        } else {
            self.elsewhere += weight * f64::from(allocation);
        }
    }

    /// Removes a flow. Rounding, or a slot that was lost, must not leave a negative sum.
    fn remove(&mut self, bits: u8, allocation: f32, weight: f64) {
        self.add(bits, allocation, -weight);
        self.here = self.here.max(0.0);
        self.elsewhere = self.elsewhere.max(0.0);
    }
}

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    /// Target rate γC.
    goal: Rate,
    /// Sums of the flows counted in this round or the last, and of those counted in this round.
    sums: Sums,
    next_sums: Sums,
    /// MaxE of this round and the last, and of this round, in bit/s.
    max_elsewhere: f32,
    next_max: f32,
    /// Number of the round, from 1 to 255.
    round: u8,
    /// Rate b of the last flow.
    rate: Rate,
    next_update: Instant,
}

impl Router {
    /// `[sperc-2019:rate, state, ignore]` Recomputes a flow's slot.
    fn update(&mut self, header: &mut Header) {
        let (weight, old) = (f64::from(header.weight), *header);
        let last_round = if self.round == 1 { 255 } else { self.round - 1 };
        if old.round == self.round || (old.round == last_round && old.round > 0) {
            self.sums.remove(old.bits, old.allocation, weight);
        }
        if old.round == self.round {
            self.next_sums.remove(old.bits, old.allocation, weight);
        }
        let left = self.goal.as_bps() - self.sums.elsewhere;
        let rate = (left / (self.sums.here + weight)).min(self.goal.as_bps()).max(self.params.r_min.as_bps());
        self.rate = Rate::from_bps(rate);
        let (rate, limit) = (rate as f32, old.rate);
        let elsewhere = if is_below(limit, rate) { ELSEWHERE } else { 0 };
        let ignored = if is_below(rate, self.max_elsewhere) { IGNORED } else { 0 };
        header.bits = elsewhere | ignored;
        header.allocation = if header.bits & ELSEWHERE == 0 { rate } else { limit };
        header.rate = rate;
        header.round = self.round;
        self.sums.add(header.bits, header.allocation, weight);
        self.next_sums.add(header.bits, header.allocation, weight);
        if header.bits & ELSEWHERE != 0 {
            self.max_elsewhere = self.max_elsewhere.max(limit);
            self.next_max = self.next_max.max(limit);
        }
    }
}

/// Returns true if a rate is below another by more than rounding.
fn is_below(a: f32, b: f32) -> bool {
    a < b * (1.0 - 1e-6)
}

impl crate::protocol::Router<Sperc> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let goal = link.capacity * link.target.unwrap_or(params.gamma);
        Self {
            params: params.clone(),
            goal,
            sums: Sums::default(),
            next_sums: Sums::default(),
            max_elsewhere: 0.0,
            next_max: 0.0,
            round: 1,
            rate: goal,
            next_update: Instant::ZERO + params.interval,
        }
    }

    fn on_arrival(&mut self, _: &LinkView, passing: &mut Passing<'_, Header>) {
        let Some(header) = passing.header.as_deref_mut() else { return };
        header.hops = header.hops.saturating_add(1);
        if header.hops == header.router && header.weight > 0.0 {
            self.update(header);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    /// `[sperc-2019:round]` Keeps the flows that were counted in the round.
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.goal = link.capacity * link.target.unwrap_or(self.params.gamma);
        (self.sums, self.next_sums) = (self.next_sums, Sums::default());
        (self.max_elsewhere, self.next_max) = (self.next_max, 0.0);
        self.round = if self.round == 255 { 1 } else { self.round + 1 };
        self.next_update = now + self.params.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("rate", self.rate.as_bps());
        probe.record("flows", self.sums.here);
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: goal, rate, next_update);
        fields.put("sum_elsewhere", &self.sums.elsewhere);
        fields.put("here", &self.sums.here);
        fields.put("max_elsewhere", &f64::from(self.max_elsewhere));
    }
}

/// Receiver that returns each slot once.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    last: Header,
}

impl crate::protocol::Receiver<Sperc> for Receiver {
    fn new(_: &Params) -> Self {
        Self::default()
    }
    fn on_data(&mut self, received: &Received<Header>) {
        if received.header.router > 0 || self.last.router == 0 {
            self.last = received.header;
        }
    }
    fn echo(&mut self, _: Instant) -> Header {
        let echo = self.last;
        self.last.router = 0;
        echo
    }
}

/// Maximum number of links of a path. Further links are not asked.
const LINKS_MAX: usize = 32;

/// State of one link of a path at the source.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Rate b and allocation x in bit/s, as the link last answered; `None` before.
    answer: Option<(f32, f32)>,
    bits: u8,
    round: u8,
    /// Time of a request that has not been answered.
    asked: Option<Instant>,
}

const NO_SLOT: Slot = Slot { answer: None, bits: ELSEWHERE, round: 0, asked: None };

/// Source that asks the links of its path in turn, and sends at the smallest allocation.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    initial_window: Volume,
    /// Slots of the path's links; boxed to keep the sources of all protocols small.
    slots: Box<[Slot; LINKS_MAX]>,
    /// Number of links of the path; 1 until a packet has returned.
    links: usize,
    /// Link that is next in turn.
    turn: usize,
    /// True if the last packet carried a slot.
    rests: bool,
    /// Time after which a request counts as lost; `None` before the first RTT.
    patience: Option<Duration>,
    rate: Option<Rate>,
}

impl Source {
    /// `[sperc-2019:limit]` Returns the smallest rate of the other links that do not ask to be ignored.
    fn limit_of(&self, link: usize) -> f32 {
        let others =
            self.slots[..self.links].iter().enumerate().filter(|&(i, slot)| i != link && slot.bits & IGNORED == 0);
        others.filter_map(|(_, slot)| slot.answer).fold(f32::INFINITY, |least, (rate, _)| least.min(rate))
    }

    /// Returns the next link in turn that may be asked.
    fn next_link(&self, now: Instant) -> Option<usize> {
        let waits = |asked: Instant| self.patience.is_none_or(|patience| now < asked + patience);
        (0..self.links).map(|i| (self.turn + i) % self.links).find(|&i| !self.slots[i].asked.is_some_and(waits))
    }

    /// `[sperc-2019:send]` Returns the smallest allocation, or `None` until all links have answered.
    fn smallest(&self) -> Option<f32> {
        let of = |least: f32, slot: &Slot| slot.answer.map(|(_, allocation)| least.min(allocation));
        self.slots[..self.links].iter().try_fold(f32::INFINITY, of)
    }
}

impl SourceLaw<Sperc> for Source {
    fn new(_: &Params, connection: &Connection) -> Self {
        Self {
            weight: connection.weight,
            packet: connection.packet,
            initial_window: connection.initial_window,
            slots: Box::new([NO_SLOT; LINKS_MAX]),
            links: 1,
            turn: 0,
            rests: false,
            patience: None,
            rate: None,
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        if sending.kind == PacketKind::Syn {
            self.slots[0].asked = None;
        }
        self.rests = !self.rests;
        let next = if self.rests { self.next_link(sending.now) } else { None };
        let Some(link) = next else { return Header::default() };
        let rate = self.limit_of(link);
        self.turn = (link + 1) % self.links;
        let slot = &mut self.slots[link];
        slot.asked = Some(sending.now);
        let allocation = slot.answer.map_or(0.0, |(_, allocation)| allocation);
        let (router, weight) = (link as u8 + 1, self.weight as f32);
        Header { hops: 0, router, bits: slot.bits, round: slot.round, allocation, rate, weight }
    }

    fn on_ack(&mut self, ack: &Ack<Header>) {
        let echo = ack.echo;
        self.patience = Some(ack.smoothed_rtt * 4);
        if echo.hops > 0 {
            self.links = usize::from(echo.hops).min(LINKS_MAX);
        }
        let slot = &mut self.slots[usize::from(echo.router.max(1) - 1) % LINKS_MAX];
        if echo.is_answered() && slot.asked.take().is_some() && echo.rate.is_finite() {
            slot.answer = Some((echo.rate, echo.allocation));
            (slot.bits, slot.round) = (echo.bits, echo.round);
        }
        self.rate = self.smallest().map(|rate| Rate::from_bps(f64::from(rate))).or(self.rate);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        match event {
            Event::SynsLost => self.initial_window = self.packet,
            Event::Timeout => self.slots.iter_mut().for_each(|slot| slot.asked = None),
            _ => {}
        }
    }

    fn limit(&self) -> SendLimit {
        match self.rate {
            Some(rate) => SendLimit { window: None, pacing: Some(self.weight * rate) },
            None => SendLimit { window: Some(self.initial_window), pacing: None },
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(rate) = self.rate {
            probe.record("rate", rate.as_bps());
        }
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: weight, packet, initial_window, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::testing::{close, connection, link, pass};

    fn params() -> Params {
        Params { gamma: 1.0, ..Params::default() }
    }

    fn router(mbps: f64) -> Router {
        crate::protocol::Router::new(&params(), &link(1e6 * mbps, 0.0))
    }

    /// Returns a request to the first router of a flow that other links limit to a rate in Mbit/s.
    fn request(limit_mbps: f32) -> Header {
        Header { router: 1, bits: ELSEWHERE, rate: 1e6 * limit_mbps, weight: 1.0, ..Header::default() }
    }

    /// Passes a slot through its router once more, with a limit in Mbit/s.
    fn again(router: &mut Router, slot: &mut Header, limit_mbps: f32) -> f64 {
        let asked = Header { hops: 0, rate: 1e6 * limit_mbps, ..*slot };
        *slot = pass::<Sperc>(router, &link(1e7, 0.0), asked, 1500.0);
        f64::from(slot.allocation) / 1e6
    }

    fn tick(router: &mut Router) {
        crate::protocol::Router::on_timer(router, &link(1e7, 0.0), Instant::ZERO);
    }

    /// `[sperc-2019:rate]` Flows that nothing else limits get 10, 5 and 10/3 of 10 Mbit/s, and the first then 10/3 too.
    #[test]
    fn sperc_2019_rate_is_divided_among_the_flows_limited_here() {
        let mut router = router(10.0);
        let mut slots = [request(f32::INFINITY); 3];
        for (slot, wanted) in slots.iter_mut().zip([10.0, 5.0, 10.0 / 3.0]) {
            close(again(&mut router, slot, f32::INFINITY), wanted, 1e-6);
            assert_eq!(slot.bits, 0);
        }
        close(again(&mut router, &mut slots[0], f32::INFINITY), 10.0 / 3.0, 1e-6);
        close(router.sums.here, 3.0, 1e-12);
    }

    /// `[sperc-2019:state]` A flow limited to 2 of 10 Mbit/s leaves 8 to the other. Limited to 9 it is again one of two.
    #[test]
    fn sperc_2019_state_depends_on_the_limit() {
        let mut router = router(10.0);
        let (mut limited, mut free) = (request(2.0), request(f32::INFINITY));
        again(&mut router, &mut free, f32::INFINITY);
        close(again(&mut router, &mut limited, 2.0), 2.0, 1e-6);
        assert_eq!(limited.bits, ELSEWHERE);
        close(f64::from(limited.rate), 5e6, 1e-6);
        close(again(&mut router, &mut free, f32::INFINITY), 8.0, 1e-6);
        close(again(&mut router, &mut limited, 9.0), 5.0, 1e-6);
        assert_eq!(limited.bits, 0);
    }

    /// `[sperc-2019:ignore]` MaxE is 4 Mbit/s, so a rate of 10/3 is to be ignored. MaxE falls when two rounds have ended.
    #[test]
    fn sperc_2019_a_rate_below_maxe_is_ignored() {
        let mut router = router(10.0);
        let mut slots = [request(4.0), request(f32::INFINITY), request(f32::INFINITY)];
        again(&mut router, &mut slots[0], 4.0);
        let bits = |router: &mut Router, slot: &mut Header| {
            again(router, slot, f32::INFINITY);
            slot.bits
        };
        for (i, wanted) in [(1, 0), (2, IGNORED), (0, IGNORED), (1, IGNORED)] {
            assert_eq!(bits(&mut router, &mut slots[i]), wanted, "{i}");
        }
        tick(&mut router);
        assert_eq!(bits(&mut router, &mut slots[1]), IGNORED);
        tick(&mut router);
        assert_eq!(bits(&mut router, &mut slots[1]), 0);
    }

    /// `[sperc-2019:round]` A flow that is not seen for a whole round is forgotten, one that is seen counts once.
    #[test]
    fn sperc_2019_a_link_forgets_flows_that_it_does_not_see() {
        let mut router = router(10.0);
        let (mut gone, mut stays) = (request(2.0), request(f32::INFINITY));
        again(&mut router, &mut gone, 2.0);
        close(again(&mut router, &mut stays, f32::INFINITY), 8.0, 1e-6);
        for wanted in [8.0, 10.0, 10.0] {
            tick(&mut router);
            close(again(&mut router, &mut stays, f32::INFINITY), wanted, 1e-6);
            close(again(&mut router, &mut stays, f32::INFINITY), wanted, 1e-6);
        }
        close(again(&mut router, &mut gone, 2.0), 2.0, 1e-6);
        close(again(&mut router, &mut stays, f32::INFINITY), 8.0, 1e-6);
    }

    /// Sends a packet along links, and returns its answer to its source.
    fn travel(source: &mut Source, path: &mut [&mut Router], ms: u64) {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let mut header = source.stamp(&Sending::new(now, PacketKind::Data, connection().packet));
        for router in path {
            header = pass::<Sperc>(*router, &link(1e7, 0.0), header, 1500.0);
        }
        source.on_ack(&Ack::new(now, header, Duration::from_millis(10)));
    }

    /// `[sperc-2019:limit, send]` Links of 10 and 4 Mbit/s, one flow on each and one on both: 8, 2 and 2 Mbit/s. A flow of
    /// weight 3 in place of the last gets three quarters of its link.
    #[test]
    fn sperc_2019_two_links_reach_max_min() {
        for (weight, wanted) in [(1.0, [8.0, 2.0, 2.0]), (3.0, [9.0, 1.0, 3.0])] {
            let (mut first, mut second) = (router(10.0), router(4.0));
            let new = |weight| SourceLaw::new(&params(), &Connection { weight, ..connection() });
            let mut sources: [Source; 3] = [new(1.0), new(1.0), new(weight)];
            assert_eq!(sources[0].limit().window, Some(connection().initial_window));
            for ms in 0..40 {
                travel(&mut sources[0], &mut [&mut first], ms);
                travel(&mut sources[1], &mut [&mut first, &mut second], ms);
                travel(&mut sources[2], &mut [&mut second], ms);
            }
            for (source, wanted) in sources.iter().zip(wanted) {
                close(source.limit().pacing.expect("a rate").as_bps(), 1e6 * wanted, 1e-5);
            }
            assert_eq!(sources[1].links, 2);
        }
    }

    /// A link is asked again when its answer is late by four RTTs, and an answer counts once.
    #[test]
    fn a_request_is_repeated_when_it_is_lost() {
        let mut source: Source = SourceLaw::new(&params(), &connection());
        let mut router = router(10.0);
        let at = |ms| Sending::new(Instant::ZERO + Duration::from_millis(ms), PacketKind::Data, connection().packet);
        travel(&mut source, &mut [&mut router], 0);
        assert_eq!(source.stamp(&at(1)).router, 0, "every second packet at most");
        assert_eq!(source.stamp(&at(2)).router, 1);
        let none = [3, 4, 41].map(|ms| source.stamp(&at(ms)).router);
        assert_eq!((none, source.stamp(&at(42)).router), ([0; 3], 1));
        let echo = Header { hops: 1, router: 1, rate: 5e6, allocation: 5e6, round: 1, ..Header::default() };
        source.on_ack(&Ack::new(Instant::ZERO, echo, Duration::from_millis(10)));
        source.on_ack(&Ack::new(Instant::ZERO, Header { allocation: 1e6, ..echo }, Duration::from_millis(10)));
        assert_eq!(source.limit().pacing, Some(Rate::from_bps(5e6)));
    }

    /// The receiver returns a slot once, also if a packet without one follows.
    #[test]
    fn a_receiver_returns_each_slot_once() {
        let mut receiver: Receiver = crate::protocol::Receiver::new(&params());
        for header in [request(3.0), Header { hops: 2, ..Header::default() }] {
            let (now, kind) = (Instant::ZERO, PacketKind::Data);
            crate::protocol::Receiver::on_data(&mut receiver, &Received { now, kind, header, rtt: None });
        }
        let mut echo = || crate::protocol::Receiver::echo(&mut receiver, Instant::ZERO).router;
        assert_eq!((echo(), echo()), (1, 0));
    }

    #[test]
    fn parameters_without_a_meaning_are_refused() {
        Params { gamma: 0.0, ..Params::default() }.validate().expect_err("nothing to share");
        Params { interval: Duration::ZERO, ..Params::default() }.validate().expect_err("rounds without end");
    }
}
