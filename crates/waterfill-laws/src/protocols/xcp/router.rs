//! Router law of XCP. iXCP and P-XCP change it through their [`Rule`].

use super::family::{Draft, Family, Rule};
use super::{Counts, Header};
use crate::protocol::{LinkView, Passing, Probe};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// Router of one link direction. A packet takes part in shuffling if it is *local*: if it has a header, and in iXCP
/// also names this link.
#[derive(Clone, Debug)]
pub struct Router<R = Draft> {
    capacity: Rate,
    alpha: f64,
    beta: f64,
    gamma: f64,
    bounds: (Duration, Duration),
    first_interval: Duration,
    /// Minimum time over which the smallest queue is measured.
    min_queue_interval: Duration,
    residues: bool,
    rule: R,
    counts: Counts,
    /// Current control interval d.
    interval: Duration,
    arrived: Sums,
    arrived_local: Sums,
    /// Sum Σ(rtt·X) over the current interval, in s².
    sum_rtt_x: f64,
    /// Spare bandwidth φ/d of the last interval. The fields up to `residue_loss` are other results of that interval.
    spare: Rate,
    shuffled: Rate,
    gain: Factors,
    loss: Factors,
    residue_gain: Rate,
    residue_loss: Rate,
    /// Persistent queue; `queue_min` is the smallest queue since the persistent queue was measured.
    queue: Volume,
    queue_min: Volume,
    next_control: Instant,
    next_queue: Instant,
}

/// Bytes and ΣX (in seconds) of the packets that arrived in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    volume: Volume,
    x: f64,
}

/// C_p or C_n, per unit of X or s: one part from spare bandwidth, for every packet, and one part from shuffling.
#[derive(Clone, Copy, Debug, Default)]
struct Factors {
    spare: Rate,
    shuffled: Rate,
}

impl Factors {
    fn of(self, local: bool) -> Rate {
        self.with(f64::from(u8::from(local)))
    }

    /// Returns the factor of a packet that participates in shuffling to the degree `part`.
    fn with(self, part: f64) -> Rate {
        self.spare + part * self.shuffled
    }
}

/// Gains and losses left in an interval when nothing limits them: finite, so that step logs can hold it.
const NO_LIMIT: Rate = Rate::from_bps(f64::MAX);

impl<R: Rule> Router<R> {
    fn with(all: &R::Params, link: &LinkView) -> Self {
        let params = R::xcp(all);
        Self {
            capacity: link.usable(),
            alpha: params.alpha,
            beta: params.beta,
            gamma: params.gamma,
            bounds: (params.min_interval, params.max_interval),
            first_interval: params.first_interval,
            min_queue_interval: params.min_queue_interval,
            residues: params.residues,
            rule: R::new(all, link),
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

    /// Counts an arriving packet as load, and adds its header's RTT and X to the sums.
    fn count_arrival(&mut self, volume: Volume, packets: f64, header: Option<&Header>, local: bool) {
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

    /// `[draft-falk:residue]` Writes a packet's feedback at its departure; returns true if the feedback was lowered.
    /// An equal feedback of an earlier router stays.
    fn write_feedback(&mut self, volume: Volume, packets: f64, header: &mut Header, local: bool) -> bool {
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

    /// Returns true if there is no spare bandwidth, because all capacity is in use.
    fn is_full(&self) -> bool {
        self.spare <= Rate::ZERO
    }

    fn tick(&mut self, queue: Volume, now: Instant) {
        if self.next_queue <= now {
            self.queue = self.queue_min;
            self.queue_min = queue;
            let draining = Duration::from_secs(queue / self.capacity);
            self.next_queue = now + ((self.interval - draining) / 2).max(self.min_queue_interval);
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
            // Without residues the packet path is the same, and no packet can reach the limits.
            let limits = (self.shuffled + gain, self.shuffled + loss);
            (self.residue_gain, self.residue_loss) = if self.residues { limits } else { (NO_LIMIT, NO_LIMIT) };
        } else {
            (self.residue_gain, self.residue_loss) = (Rate::ZERO, Rate::ZERO);
        }
        (self.arrived, self.arrived_local, self.sum_rtt_x) = (Sums::default(), Sums::default(), 0.0);
    }
}

impl<P: Family> crate::protocol::Router<P> for Router<P::Rule> {
    fn new(params: &P::Params, link: &LinkView) -> Self {
        Self::with(params, link)
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, P::Header>) {
        if self.counts == Counts::Own && passing.header.is_none() {
            return;
        }
        let header = passing.header.as_deref();
        let local = header.is_some_and(|header| self.rule.is_local(header));
        self.count_arrival(passing.volume, passing.packets, header.map(P::Rule::congestion), local);
    }

    const DEPARTURES: bool = true;

    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, P::Header>) {
        if link.queue < self.queue_min {
            self.queue_min = link.queue;
        }
        if let Some(header) = passing.header.as_deref_mut() {
            let local = self.rule.is_local(header);
            if self.write_feedback(passing.volume, passing.packets, P::Rule::congestion_mut(header), local) {
                self.rule.mark_lowered(header, self.is_full());
            }
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_control.min(self.next_queue)
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.capacity = link.usable();
        self.tick(link.queue, now);
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("spare", self.spare.as_bps());
        probe.record("shuffled", self.shuffled.as_bps());
        probe.record("interval", self.interval.as_secs());
    }

    fn state(&self, fields: &mut StateFields) {
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
}

/// `[ixcp-2007:eq1]` Returns φ/d = α·(c − y) − β·b/d.
fn spare(alpha: f64, beta: f64, capacity: Rate, input: Rate, queue: Volume, interval: Duration) -> Rate {
    alpha * (capacity - input) - beta * (queue / interval)
}

/// `[ixcp-2007:eq2]` Returns h/d = max{0, γ·y − |φ/d|}, where y is the rate of the local packets.
fn shuffled(gamma: f64, input: Rate, spare: Rate) -> Rate {
    (gamma * input - spare.max(-1.0 * spare)).max(Rate::ZERO)
}

/// `[draft-falk:cp]` Returns an allocated change divided by the sum to which it is proportional, or zero if the sum is
/// zero.
fn over(change: Rate, sum: f64) -> Rate {
    if sum > 0.0 { change / sum } else { Rate::ZERO }
}

/// `[katabi-2002:d]` Returns the mean RTT Σ(rtt·X)/ΣX.
fn mean_rtt(sum_rtt_x: f64, sum_x: f64) -> f64 {
    sum_rtt_x / sum_x
}

#[cfg(test)]
mod tests;
