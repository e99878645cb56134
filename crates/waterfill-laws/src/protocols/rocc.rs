//! RoCC: each link has a PI controller that computes the fair rate of its flows from its queue.
//!
//! # Law
//! A link lowers the rate F that it allows each flow while its queue is above a reference or grows. It needs no number of
//! flows: at rest F = C/N. The gains fall with F, so that N flows do not multiply them.
//!
//! - `pi`    F ← F − (α·(Q − Q_ref) + β·(Q − Q_old))/(T·s), every T, within [F_min, F_max]
//! - `tune`  s = the largest power of two, up to 32, with F·s < F_max
//! - `half`  F ← F/2 instead, if Q − Q_old ≥ Q_mid
//! - `floor` F ← F_min instead, if Q ≥ Q_max
//! - `path`  a source sends at the smallest F of its path
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | F, F_min, F_max | `rate`, `f_min`, link's rate | bit/s |
//! | Q, Q_old | `LinkView::queue`, `queue` | bytes |
//! | Q_ref, Q_mid, Q_max | `q_ref`, `q_mid`, `q_max` at the link's rate | s |
//! | α, β | `alpha`, `beta` | 1 |
//! | s | [`scale`] | 1 |
//! | T | `interval` | s |
//!
//! # Header
//! 4 bytes in data and in acknowledgements: [`WireRate`], the smallest F so far in bit/s, single precision.
//!
//! # Router
//! [`Router`]: a comparison for each packet of the law, an update of F every T.
//!
//! # Source
//! [`Source`]: paced at the echoed rate times the weight, without a window.
//!
//! # Parameters
//! [`Params`]. Unverified: the paper counts rates in ΔF = 10 Mbit/s and queues in ΔQ = 600 B, with T = 40 µs, α̃ = 0.3 and
//! β̃ = 1.5. Then α = α̃·ΔF·T/ΔQ = 0.025 and β = 0.125 on any link. For 40 Gbit/s, Q_ref, Q_mid and Q_max are 150, 300 and
//! 360 kB, which are 30, 60 and 72 µs.
//!
//! # Stability
//! Our own analysis, for N equal flows and a feedback that is D intervals old, with n = N/s. The deviations follow
//! (z − 1)²·z^D + n·(α·z + β·(z − 1)) = 0, and the law is stable if all roots are inside the unit circle. With D = 0 that is
//! n·(α + 2β) < 4, so n < 14. With the tuning 1 < n ≤ 2 for up to 64 flows, and D may be up to 3. Without it n = N.
//!
//! # Readings and deviations
//! The paper's text was not available (secondary source): its abstract, and the equations as later work gives them.
//!
//! - The paper's switch sends F to the sources of the flows in its queue, in packets of its own. Here F travels in the
//!   header of data and returns in acknowledgements, one RTT later than it was written.
//! - So each acknowledgement has a rate, and a source needs no timer to recover when no feedback arrives. A link whose queue
//!   stays empty raises F by at most α·Q_ref/(T·s) per T: from 1/4000 of the link to a half in about 120 T.
//! - Rates and queues are not rounded to ΔF and ΔQ. Thresholds are times, so that one set fits links of all rates.
//! - F starts at F_max, as each flow does that meets no congestion.
//! - The defaults are for RTTs of up to 100 ms and our own, except α and β.
//!
//! # Validation
//! Equation tests below. In packets and in the fluid model (`tests/python/runs/test_rocc.py`): the queue at its reference,
//! the max-min rates of a parking lot, and both sides of the condition. [Results](../../validation/router-laws.md).
//!
//! # References
//! `rocc-2020`: Taheri, Menikkumbura, Vanini, Fahmy, Eugster, Edsall, "RoCC: Robust Congestion Control for RDMA", CoNEXT
//! 2020.

use crate::params::{ParamError, require};
use crate::protocol::{
    Ack, Connection, EchoLast, Event, Host, Info, LawSignal, LinkView, Passing, Probe, Protocol, ProtocolKind,
    SendLimit, Sending, Source as SourceLaw,
};
use crate::protocols::rcp::WireRate;
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

crate::params! {
    /// Parameters of RoCC.
    pub struct Params {
        /// Gain α of the queue's distance from its reference.
        alpha: f64 = 0.025, "rocc-2020, unverified: α̃·ΔF·T/ΔQ";
        /// Gain β of the queue's growth.
        beta: f64 = 0.125, "rocc-2020, unverified: β̃·ΔF·T/ΔQ";
        /// True if the gains fall with the rate F.
        self_tuning: bool = true, "rocc-2020 abstract: the PI parameters are self-tuning";
        /// Time T between two updates of F.
        interval: Duration = Duration::from_millis(50), "ours: half of a long RTT";
        /// Reference Q_ref of the queue, as a delay at the link's rate.
        q_ref: Duration = Duration::from_micros(37_500), "0.75 T, as rocc-2020, unverified";
        /// Growth Q_mid in one T that halves F, as a delay at the link's rate.
        q_mid: Duration = Duration::from_millis(75), "1.5 T, as rocc-2020, unverified";
        /// Queue Q_max at which F is F_min, as a delay at the link's rate.
        q_max: Duration = Duration::from_millis(90), "1.8 T, as rocc-2020, unverified";
        /// Minimum rate F_min.
        f_min: Rate = Rate::from_bps(24e3), "as rcp";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require((0.0..=100.0).contains(&self.alpha), "alpha", "a number from 0 to 100")?;
        require((0.0..=100.0).contains(&self.beta), "beta", "a number from 0 to 100")?;
        require(!self.interval.is_zero(), "interval", "a time above zero")?;
        require(!self.q_mid.is_zero(), "q_mid", "a time above zero")?;
        require(self.q_max > self.q_ref, "q_max", "a time above q_ref")?;
        require((1.0..=1e18).contains(&self.f_min.as_bps()), "f_min", "a rate from 1 bit/s to 1e18 bit/s")
    }
}

/// The protocol `rocc`.
#[derive(Debug)]
pub struct Rocc;

impl Protocol for Rocc {
    const INFO: Info = Info {
        name: "rocc",
        summary: "a PI controller per link computes the fair rate from its queue; max-min fair (2020)",
        kind: ProtocolKind::Explicit,
        needs_packets: false,
        paced: true,
        host: Host::EXPLICIT,
        signals: &[LawSignal { name: "rate", unit: "bit/s", doc: "the link's rate F, or the one the source follows" }],
    };
    type Params = Params;
    type Header = WireRate;
    type Echo = WireRate;
    type Router = Router;
    type Receiver = EchoLast<WireRate>;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

/// The router of one link direction.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    /// Rate F that the link allows each flow.
    rate: Rate,
    /// Queue Q_old at the last update.
    queue: Volume,
    next_update: Instant,
}

impl crate::protocol::Router<Rocc> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let next_update = Instant::ZERO + params.interval;
        Self { params: params.clone(), rate: link.usable(), queue: Volume::ZERO, next_update }
    }

    /// `[rocc-2020:path]` A packet keeps the smallest F.
    fn on_arrival(&mut self, _: &LinkView, passing: &mut Passing<'_, WireRate>) {
        if let Some(header) = passing.header.as_deref_mut() {
            *header = header.min(WireRate::of(self.rate));
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    /// `[rocc-2020:half]` `[rocc-2020:floor]` Computes F, at once for a queue that is long or grows fast.
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        let params = &self.params;
        let next = if link.queue >= link.capacity * params.q_max {
            params.f_min
        } else if link.queue - self.queue >= link.capacity * params.q_mid {
            0.5 * self.rate
        } else {
            let reference = link.capacity * params.q_ref;
            let scale = if params.self_tuning { scale(self.rate, link.usable()) } else { 1.0 };
            pi(self.rate, link.queue, self.queue, reference, params, scale)
        };
        self.rate = next.max(params.f_min).min(link.usable());
        self.queue = link.queue;
        self.next_update = now + params.interval;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("rate", self.rate.as_bps());
    }

    fn state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: rate, queue, next_update);
    }
}

/// `[rocc-2020:pi]` Returns the next rate, F − (α·(Q − Q_ref) + β·(Q − Q_old))/(T·s).
fn pi(rate: Rate, queue: Volume, old: Volume, reference: Volume, params: &Params, scale: f64) -> Rate {
    let excess = params.alpha * (queue - reference) + params.beta * (queue - old);
    rate - excess / params.interval * (1.0 / scale)
}

/// `[rocc-2020:tune]` Returns s, the largest power of two up to 32 with F·s < F_max, or 1.
fn scale(rate: Rate, f_max: Rate) -> f64 {
    let mut scale = 1.0;
    while scale < 32.0 && rate * (2.0 * scale) < f_max {
        scale *= 2.0;
    }
    scale
}

/// Source that sends at the rate that the last acknowledgement returned.
#[derive(Clone, Debug)]
pub struct Source {
    weight: f64,
    packet: Volume,
    initial_window: Volume,
    rate: Option<Rate>,
}

impl SourceLaw<Rocc> for Source {
    fn new(_: &Params, connection: &Connection) -> Self {
        let &Connection { weight, packet, initial_window, .. } = connection;
        Self { weight, packet, initial_window, rate: None }
    }

    fn stamp(&mut self, _: &Sending) -> WireRate {
        WireRate::UNLIMITED
    }

    fn on_ack(&mut self, ack: &Ack<WireRate>) {
        self.rate = ack.echo.rate().or(self.rate);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if event == Event::SynsLost {
            self.initial_window = self.packet;
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

    fn fabric() -> Params {
        let us = Duration::from_micros;
        let f_min = Rate::from_bps(40e6);
        Params { interval: us(40), q_ref: us(30), q_mid: us(60), q_max: us(72), f_min, ..Params::default() }
    }

    fn gbps(rate: f64) -> Rate {
        Rate::from_bps(rate * 1e9)
    }

    fn kilobytes(volume: f64) -> Volume {
        Volume::from_bytes(volume * 1e3)
    }

    /// `[rocc-2020:pi]` A queue of 210 kB is 100 of the paper's 600 B above Q_ref, and has grown by 50 of them. So F falls by
    /// 0.3·100 + 1.5·50 = 105 units of 10 Mbit/s, and by a quarter of that at a scale of 4.
    #[test]
    fn rocc_2020_pi_controller() {
        let after = |scale| pi(gbps(20.0), kilobytes(210.0), kilobytes(180.0), kilobytes(150.0), &fabric(), scale);
        close(after(1.0).as_bps(), 20e9 - 1.05e9, 1e-12);
        close(after(4.0).as_bps(), 20e9 - 0.2625e9, 1e-12);
    }

    /// `[rocc-2020:tune]` With F_max = 40 Gbit/s the gains are whole from 20 Gbit/s, halved from 10, and at least 1/32.
    #[test]
    fn rocc_2020_gains_fall_with_the_rate() {
        for (rate, wanted) in
            [(40.0, 1.0), (20.0, 1.0), (19.9, 2.0), (10.0, 2.0), (9.9, 4.0), (1.3, 16.0), (0.01, 32.0)]
        {
            close(scale(gbps(rate), gbps(40.0)), wanted, 1e-12);
        }
    }

    fn tick(router: &mut Router, queue: f64) -> f64 {
        crate::protocol::Router::on_timer(router, &link(40e9, 1e3 * queue), Instant::ZERO);
        router.rate.as_bps() / 1e9
    }

    /// `[rocc-2020:half]` `[rocc-2020:floor]` A growth by 300 kB halves F, a queue of 360 kB sets F_min. F stays within F_min
    /// and the link's rate.
    #[test]
    fn rocc_2020_fast_growth_halves_and_a_long_queue_stops() {
        let mut router: Router = crate::protocol::Router::new(&fabric(), &link(40e9, 0.0));
        close(tick(&mut router, 0.0), 40.0, 1e-12);
        close(tick(&mut router, 300.0), 20.0, 1e-12);
        close(tick(&mut router, 310.0), 20.0 - (0.3 * 160.0 + 1.5 * 10.0) / 60.0, 1e-12);
        close(tick(&mut router, 360.0), 0.04, 1e-12);
        close(tick(&mut router, 0.0), 0.04 + (0.3 * 150.0 + 1.5 * 360.0) / 60.0 / 32.0, 1e-12);
        assert!((0..9000).all(|_| tick(&mut router, 0.0) <= 40.0));
        close(router.rate.as_bps(), 40e9, 1e-12);
    }

    /// `[rocc-2020:path]` A packet keeps the smallest rate, at which its source sends times its weight.
    #[test]
    fn a_source_sends_at_the_smallest_rate() {
        let mut router: Router = crate::protocol::Router::new(&fabric(), &link(40e9, 0.0));
        router.rate = gbps(5.0);
        let once = pass::<Rocc>(&mut router, &link(40e9, 0.0), WireRate::UNLIMITED, 1500.0);
        router.rate = gbps(7.0);
        let twice = pass::<Rocc>(&mut router, &link(40e9, 0.0), once, 1500.0);
        let mut source: Source = SourceLaw::new(&fabric(), &Connection { weight: 2.0, ..connection() });
        assert_eq!(source.limit().window, Some(connection().initial_window));
        source.on_ack(&Ack::new(Instant::ZERO, twice, Duration::from_micros(10)));
        assert_eq!(source.limit(), SendLimit { window: None, pacing: Some(gbps(10.0)) });
    }

    #[test]
    fn parameters_without_a_meaning_are_refused() {
        Params { interval: Duration::ZERO, ..Params::default() }.validate().expect_err("a division by zero");
        Params { q_ref: Duration::from_millis(90), ..Params::default() }.validate().expect_err("never reached");
        Params { beta: 2.0, ..Params::default() }.validate().expect("unstable, and worth a run");
    }
}
