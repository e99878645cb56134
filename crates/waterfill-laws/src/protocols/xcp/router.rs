//! The router law. iXCP and P-XCP change it by their [`Rule`].

use super::{Counts, Family, Header, Params};
use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// Changes that a protocol based on XCP makes to its router; by default none.
pub trait Rule: Clone + std::fmt::Debug {
    /// Returns the part in shuffling that a packet has, given what it gets and what is due to it, as gains and as losses.
    fn part(&self, _gain: (Rate, Rate), _loss: (Rate, Rate)) -> f64 {
        1.0
    }
    /// Counts a packet of this X that left, and whether this router lowered its feedback.
    fn count_departure(&mut self, _x: f64, _lowered: bool) {}
    /// Ends an interval of this length in seconds; returns the factor of positive spare bandwidth.
    fn end_interval(&mut self, _lasted: f64) -> f64 {
        1.0
    }
    /// Lists the rule's state for step logs.
    fn list_state(&self, _fields: &mut StateFields) {}
}

/// XCP as in the draft.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draft;

impl Rule for Draft {}

/// The router of one link direction. A packet takes part in shuffling if it is *local*: if it has a header, and in iXCP
/// also names this link.
#[derive(Clone, Debug)]
pub struct Router<R = Draft> {
    capacity: Rate,
    alpha: f64,
    beta: f64,
    gamma: f64,
    bounds: (Duration, Duration),
    first_interval: Duration,
    rule: R,
    counts: Counts,
    /// The current interval and its sums.
    interval: Duration,
    arrived: Sums,
    arrived_local: Sums,
    /// Σ(rtt·X) in s².
    sum_rtt_x: f64,
    /// Results of the last interval.
    spare: Rate,
    shuffled: Rate,
    gain: Factors,
    loss: Factors,
    residue_gain: Rate,
    residue_loss: Rate,
    /// The persistent queue, and the smallest queue since it was measured.
    queue: Volume,
    queue_min: Volume,
    next_control: Instant,
    next_queue: Instant,
}

/// Bytes and ΣX (in seconds) of an interval's arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    volume: Volume,
    x: f64,
}

/// C_p or C_n, per unit of X or s: the parts from spare bandwidth, for every packet, and from shuffling.
#[derive(Clone, Copy, Debug, Default)]
struct Factors {
    spare: Rate,
    shuffled: Rate,
}

impl Factors {
    fn of(self, local: bool) -> Rate {
        self.with(f64::from(u8::from(local)))
    }

    /// Returns the factor of a packet with this part in shuffling.
    fn with(self, part: f64) -> Rate {
        self.spare + part * self.shuffled
    }
}

/// The minimum time over which the smallest queue is measured (2 ms in the authors' simulator).
const QUEUE_INTERVAL_MIN: Duration = Duration::from_millis(2);

impl<R: Rule> Router<R> {
    pub(in crate::protocols) fn with_rule(params: &Params, link: &LinkView, rule: R) -> Self {
        Self {
            capacity: usable(link),
            alpha: params.alpha,
            beta: params.beta,
            gamma: params.gamma,
            bounds: (params.min_interval, params.max_interval),
            first_interval: params.first_interval,
            rule,
            counts: params.counts,
            interval: params.first_interval,
            arrived: Sums::default(),
            arrived_local: Sums::default(),
            sum_rtt_x: 0.0,
            spare: Rate::ZERO,
            shuffled: Rate::ZERO,
            gain: Factors::default(),
            loss: Factors::default(),
            residue_gain: Rate::ZERO,
            residue_loss: Rate::ZERO,
            queue: Volume::ZERO,
            queue_min: Volume::ZERO,
            next_control: Instant::ZERO + params.first_interval,
            next_queue: Instant::ZERO + params.first_interval,
        }
    }

    /// Counts an arriving packet as load, and what its header says about its flow.
    pub(in crate::protocols) fn count_arrival(
        &mut self,
        volume: Volume,
        packets: f64,
        header: Option<&Header>,
        local: bool,
    ) {
        self.arrived.volume += volume;
        let Some(header) = header else { return };
        if local {
            self.arrived_local.volume += volume;
        }
        if let Some(rtt) = header.rtt() {
            let x = header.x(volume, packets);
            self.arrived.x += x;
            if local {
                self.arrived_local.x += x;
            }
            self.sum_rtt_x += rtt.min(self.bounds.1.as_secs()) * x;
        }
    }

    /// Samples the queue when a packet leaves it.
    pub(in crate::protocols) fn sample_queue(&mut self, queue: Volume) {
        if queue < self.queue_min {
            self.queue_min = queue;
        }
    }

    /// `[draft-falk:residue]` Writes a packet's feedback at its departure; returns whether it was lowered.
    pub(in crate::protocols) fn write_feedback(
        &mut self,
        volume: Volume,
        packets: f64,
        header: &mut Header,
        local: bool,
    ) -> bool {
        let Some(rtt) = header.rtt() else { return false };
        let x = header.x(volume, packets);
        let (gain_due, loss_due) = (self.gain.of(local) * x, self.loss.of(local) * volume.as_bytes());
        let (mut gain, mut loss) = (gain_due.min(self.residue_gain), loss_due.min(self.residue_loss));
        if local {
            let part = self.rule.part((gain, gain_due), (loss, loss_due));
            gain = gain.min(self.gain.with(part) * x);
            loss = loss.min(self.loss.with(part) * volume.as_bytes());
        }
        let own = gain - loss;
        let lowered = match header.feedback(rtt) {
            Some(given) if given <= own => {
                // An earlier router gave less: the difference counts as a loss that this router has allocated.
                loss = (loss + (own - given)).min(self.residue_loss);
                gain = given + loss;
                false
            }
            _ => {
                header.set_feedback(own, rtt);
                true
            }
        };
        self.residue_gain = (self.residue_gain - gain).max(Rate::ZERO);
        self.residue_loss = (self.residue_loss - loss).max(Rate::ZERO);
        self.rule.count_departure(x, lowered);
        lowered
    }

    /// Returns true if all capacity is in use: no spare bandwidth, or too much load.
    pub(in crate::protocols) fn is_full(&self) -> bool {
        self.spare <= Rate::ZERO
    }

    pub(in crate::protocols) fn next_timer_at(&self) -> Instant {
        self.next_control.min(self.next_queue)
    }

    /// Takes the link's capacity, which may have changed.
    pub(in crate::protocols) fn set_capacity(&mut self, link: &LinkView) {
        self.capacity = usable(link);
    }

    pub(in crate::protocols) fn tick(&mut self, queue: Volume, now: Instant) {
        if self.next_queue <= now {
            self.queue = self.queue_min;
            self.queue_min = queue;
            let draining = Duration::from_secs(queue / self.capacity);
            self.next_queue = now + ((self.interval - draining) / 2).max(QUEUE_INTERVAL_MIN);
        }
        if self.next_control <= now {
            self.control();
            self.next_control = now + self.interval;
        }
    }

    /// Ends a control interval.
    fn control(&mut self) {
        let heard = self.arrived.x > 0.0 && self.arrived.volume > Volume::ZERO;
        let scale = self.rule.end_interval(self.interval.as_secs());
        let input = self.arrived.volume / self.interval;
        let input_local = self.arrived_local.volume / self.interval;
        self.interval = if heard {
            Duration::from_secs(mean_rtt(self.sum_rtt_x, self.arrived.x)).clamp(self.bounds.0, self.bounds.1)
        } else {
            self.first_interval
        };
        (self.spare, self.shuffled) = (Rate::ZERO, Rate::ZERO);
        (self.gain, self.loss) = (Factors::default(), Factors::default());
        if heard {
            self.spare = spare(self.alpha, self.beta, self.capacity, input, self.queue, self.interval);
            self.shuffled = shuffled(self.gamma, input_local, self.spare);
            let gain = self.spare.max(Rate::ZERO) * scale;
            let loss = (-1.0 * self.spare).max(Rate::ZERO);
            self.gain = Factors { spare: gain / self.arrived.x, shuffled: over(self.shuffled, self.arrived_local.x) };
            self.loss = Factors {
                spare: loss / self.arrived.volume.as_bytes(),
                shuffled: over(self.shuffled, self.arrived_local.volume.as_bytes()),
            };
            self.residue_gain = self.shuffled + gain;
            self.residue_loss = self.shuffled + loss;
        } else {
            (self.residue_gain, self.residue_loss) = (Rate::ZERO, Rate::ZERO);
        }
        (self.arrived, self.arrived_local, self.sum_rtt_x) = (Sums::default(), Sums::default(), 0.0);
    }

    /// The control interval d, of which the last one ended at the last timer.
    pub(in crate::protocols) const fn control_interval(&self) -> Duration {
        self.interval
    }

    pub(in crate::protocols) fn list_state(&self, fields: &mut StateFields) {
        let (arrived, arrived_local, gain, loss) = (&self.arrived, &self.arrived_local, &self.gain, &self.loss);
        crate::state_of!(fields, self: capacity, interval, sum_rtt_x, spare, shuffled);
        crate::state_of!(fields, self: residue_gain, residue_loss, queue, queue_min, next_control, next_queue);
        crate::state_of!(fields, arrived: volume, x);
        fields.put("local_volume", &arrived_local.volume);
        fields.put("local_x", &arrived_local.x);
        fields.put("gain_all", &gain.spare);
        fields.put("gain_local", &gain.shuffled);
        fields.put("loss_all", &loss.spare);
        fields.put("loss_local", &loss.shuffled);
        self.rule.list_state(fields);
    }

    pub(in crate::protocols) fn record_signals(&self, probe: &mut dyn Probe) {
        probe.record("spare", self.spare.as_bps());
        probe.record("shuffled", self.shuffled.as_bps());
        probe.record("interval", self.interval.as_secs());
    }
}

impl<P: Family> crate::protocol::Router<P> for Router<P::Rule> {
    fn new(params: &Params, link: &LinkView) -> Self {
        Self::with_rule(params, link, P::Rule::default())
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        if self.counts == Counts::Own && passing.header.is_none() {
            return;
        }
        self.count_arrival(passing.volume, passing.packets, passing.header.as_deref(), true);
    }

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.sample_queue(link.queue);
        if let Some(header) = passing.header.as_deref_mut() {
            self.write_feedback(passing.volume, passing.packets, header, true);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_timer_at()
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.set_capacity(link);
        self.tick(link.queue, now);
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.control_interval())
    }

    fn observe(&self, probe: &mut dyn Probe) {
        self.record_signals(probe);
    }

    fn state(&self, fields: &mut StateFields) {
        self.list_state(fields);
    }
}

/// c: the capacity times the link's own target.
fn usable(link: &LinkView) -> Rate {
    link.target.unwrap_or(1.0) * link.capacity
}

/// `[ixcp-2007:eq1]` φ/d = α·(c − y) − β·b/d.
fn spare(alpha: f64, beta: f64, capacity: Rate, input: Rate, queue: Volume, interval: Duration) -> Rate {
    alpha * (capacity - input) - beta * (queue / interval)
}

/// `[ixcp-2007:eq2]` `[ixcp-2007:eq3]` h/d = max{0, γ·y − |φ/d|}, y of the local packets.
fn shuffled(gamma: f64, input: Rate, spare: Rate) -> Rate {
    (gamma * input - spare.max(-1.0 * spare)).max(Rate::ZERO)
}

/// `[draft-falk:cp]` `[draft-falk:cn]` Allocated change over the sum to which it is proportional.
fn over(change: Rate, sum: f64) -> Rate {
    if sum > 0.0 { change / sum } else { Rate::ZERO }
}

/// `[katabi-2002:d]` Σ(rtt·X)/ΣX.
fn mean_rtt(sum_rtt_x: f64, sum_x: f64) -> f64 {
    sum_rtt_x / sum_x
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bps, bytes, feedback, packet_of};
    use super::super::{Form, Xcp};
    use super::*;
    use crate::protocol::PacketKind;
    use crate::testing::close;

    const MBPS: f64 = 1e6;

    fn link() -> LinkView {
        LinkView { id: 0, capacity: bps(100.0 * MBPS), target: None, queue: Volume::ZERO }
    }

    /// `[ixcp-2007:eq1]` 0.4 · 31 Mbit/s is 12.4; 10 kB in 80 ms are 1 Mbit/s, of which 0.226.
    #[test]
    fn eq1_spare() {
        let d = Duration::from_millis(80);
        let (c, y) = (bps(155.0 * MBPS), bps(124.0 * MBPS));
        close(spare(0.4, 0.226, c, y, Volume::ZERO, d).as_bps(), 12.4 * MBPS, 1e-12);
        close(spare(0.4, 0.226, c, c, bytes(10e3), d).as_bps(), -0.226 * MBPS, 1e-12);
    }

    /// `[ixcp-2007:eq2]` γ·150 − 2 either way; at 124 of 155 Mbit/s (80 %) nothing is shuffled.
    #[test]
    fn eq2_shuffled() {
        close(shuffled(0.1, bps(150.0 * MBPS), bps(2.0 * MBPS)).as_bps(), 13.0 * MBPS, 1e-12);
        close(shuffled(0.1, bps(150.0 * MBPS), bps(-2.0 * MBPS)).as_bps(), 13.0 * MBPS, 1e-12);
        assert_eq!(shuffled(0.1, bps(100.0 * MBPS), bps(12.4 * MBPS)), Rate::ZERO);
    }

    /// `[katabi-2002:d]` flows of 40 and 80 ms count once each: 60 ms, for any windows.
    #[test]
    fn d_is_the_mean_over_flows() {
        let mut router = Router::with_rule(&Params::default(), &link(), Draft);
        for (rtt, cwnd) in [(0.04, 10e3), (0.08, 80e3)] {
            // In 160 ms a flow sends 0.16/rtt windows.
            for _ in 0..(0.16 / rtt * cwnd / 1000.0_f64).round() as u32 {
                router.count_arrival(bytes(1000.0), 1.0, Some(&packet_of(Form::Katabi, rtt, cwnd)), true);
            }
        }
        router.tick(Volume::ZERO, Instant::from_secs(0.05));
        close(router.interval.as_secs(), 0.06, 1e-6);
    }

    /// A packet without a header is load, or with `counts = "own"` not.
    #[test]
    fn packets_of_others_count_or_not() {
        for (counts, arrived) in [(Counts::All, 1500.0), (Counts::Own, 1000.0)] {
            let mut router = Router::with_rule(&Params { counts, ..Params::default() }, &link(), Draft);
            let mut header = packet_of(Form::Katabi, 0.1, 1e4);
            for (bytes_of, header) in [(500.0, None), (1000.0, Some(&mut header))] {
                let (now, volume) = (Instant::ZERO, bytes(bytes_of));
                let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Other, header };
                crate::protocol::Router::<Xcp>::on_arrival(&mut router, &link(), &mut passing);
            }
            close(router.arrived.volume.as_bytes(), arrived, 1e-12);
        }
    }

    /// A router after a 100 ms interval with two flows of 100 ms: 1000 kB (80 Mbit/s) in all.
    fn after_one_interval(form: Form) -> Router {
        let params = Params { header: form, first_interval: Duration::from_millis(100), ..Params::default() };
        let mut router = Router::with_rule(&params, &link(), Draft);
        for cwnd in [800e3, 200e3] {
            for _ in 0..(cwnd / 1000.0) as u32 {
                router.count_arrival(bytes(1000.0), 1.0, Some(&packet_of(form, 0.1, cwnd)), true);
            }
        }
        router.tick(Volume::ZERO, Instant::from_secs(0.1));
        router
    }

    /// `[draft-falk:cp]` `[draft-falk:cn]` φ = 0.4 · 20 = 8 = γ·y, so h = 0 and each flow gains 4 Mbit/s. Over 800 and
    /// 200 packets that is 5 and 20 kbit/s each.
    #[test]
    fn cp_gives_every_flow_the_same() {
        for form in [Form::Katabi, Form::Falk] {
            let mut router = after_one_interval(form);
            for (cwnd, gain) in [(800e3, 5e3), (200e3, 20e3)] {
                let mut header = packet_of(form, 0.1, cwnd);
                assert!(router.write_feedback(bytes(1000.0), 1.0, &mut header, true));
                // Katabi's feedback is the change of the window: the throughput's times 100 ms.
                let per_s = if form == Form::Katabi { 10.0 } else { 1.0 };
                close(feedback(&header) * per_s * 8.0, gain, 1e-4);
            }
            assert!(!router.is_full());
        }
    }

    /// `[draft-falk:cn]` 50 kB in the queue: φ = 8 − 0.226 · 4 and h = 0.904 Mbit/s. The flows gain (8 − 0.904 +
    /// 0.904)/2 each and lose 0.904 in proportion to their rates.
    #[test]
    fn cn_takes_from_every_flow_in_proportion() {
        let mut router = after_one_interval(Form::Katabi);
        (router.queue, router.interval) = (bytes(50e3), Duration::from_millis(100));
        for cwnd in [800e3, 200e3] {
            for _ in 0..(cwnd / 1000.0) as u32 {
                router.count_arrival(bytes(1000.0), 1.0, Some(&packet_of(Form::Katabi, 0.1, cwnd)), true);
            }
        }
        router.control();
        close(router.spare.as_bps(), 7.096 * MBPS, 1e-6);
        close(router.shuffled.as_bps(), 0.904 * MBPS, 1e-6);
        for (cwnd, change) in [(800e3, 4.0 - 0.904 * 0.8), (200e3, 4.0 - 0.904 * 0.2)] {
            let mut header = packet_of(Form::Katabi, 0.1, cwnd);
            router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
            close(feedback(&header) * 8.0 / 0.1 * (cwnd / 1000.0), change * MBPS, 1e-5);
        }
    }

    /// `[draft-falk:residue]` an interval allocates all of the gains, and no more.
    #[test]
    fn residues_limit_what_is_allocated() {
        let mut router = after_one_interval(Form::Katabi);
        let mut given = 0.0;
        for _ in 0..3000 {
            let mut header = packet_of(Form::Katabi, 0.1, 800e3);
            router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
            given += feedback(&header) * 8.0 / 0.1;
        }
        close(given, 8.0 * MBPS, 1e-5);
    }

    /// `[draft-falk:residue]` a smaller feedback of an earlier router stays, and uses up only that much.
    #[test]
    fn an_earlier_router_that_gave_less_prevails() {
        let mut router = after_one_interval(Form::Falk);
        let mut header = packet_of(Form::Falk, 0.1, 200e3); // would get 20 kbit/s
        header.set_feedback(bps(8e3), 0.1);
        assert!(!router.write_feedback(bytes(1000.0), 1.0, &mut header, true));
        assert_eq!(header.feedback(0.1), Some(bps(8e3)));
        close(router.residue_gain.as_bps(), 8.0 * MBPS - 8e3, 1e-9);
        // With losses to allocate, the difference is one of them: 20 − 8 kbit/s, so the gain is 20.
        router.residue_loss = bps(1.0 * MBPS);
        let before = router.residue_gain;
        router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
        close(router.residue_loss.as_bps(), 1.0 * MBPS - 12e3, 1e-4);
        close((before - router.residue_gain).as_bps(), 20e3, 1e-4);
    }

    /// The smallest queue of an interval counts, not the longest.
    #[test]
    fn the_persistent_queue_is_the_smallest() {
        let mut router = Router::with_rule(&Params::default(), &link(), Draft);
        router.tick(bytes(9e3), Instant::from_secs(0.05));
        for queue in [8e3, 5e3, 9e3] {
            let view = LinkView { queue: bytes(queue), ..link() };
            let (now, volume) = (Instant::from_secs(0.06), bytes(1000.0));
            let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Other, header: None };
            crate::protocol::Router::<Xcp>::on_departure(&mut router, &view, &mut passing);
        }
        // (50 ms − 9 kB/100 Mbit/s)/2 later.
        assert_eq!(router.next_queue, Instant::from_secs(0.05 + 0.02464));
        router.tick(bytes(9e3), router.next_queue);
        assert_eq!(router.queue, bytes(5e3));
    }

    #[test]
    fn a_syn_is_load_and_nothing_else() {
        let mut router = after_one_interval(Form::Katabi);
        let mut header = Header::stamped(Form::Katabi, None, bytes(1000.0), bytes(40.0));
        router.count_arrival(bytes(40.0), 1.0, Some(&header), true);
        assert!(!router.write_feedback(bytes(40.0), 1.0, &mut header, true));
        assert_eq!((header.feedback(0.1), router.arrived.x), (None, 0.0));
        assert_eq!(router.arrived.volume, bytes(40.0));
    }
}
