//! Changes of a link over time: its rate, delay and up or down state at given times, and restarts of its router.
//!
//! The rules, in the order in which [`Link::vary`] applies them:
//!
//! - **Rate.** What is left of the packet in transmission is sent at the new rate. So a busy link sends the integral of
//!   its rate, whatever the packets' boundaries. At a rate of zero the queue waits, and router laws, whose equations divide
//!   by the capacity, see the last one above zero.
//! - **Delay.** It holds for packets whose transmission ends later. The wire keeps their order: where the delay falls, a
//!   packet arrives no earlier than one transmission time after the one before it.
//! - **Down.** As Linux does when a device loses its carrier: the packets that wait or are in transmission are dropped,
//!   and so is what arrives until the link is up. Packets on the wire arrive. Router laws see an idle link.
//!
//! A change is one event. Between changes the packet path is that of any other link; only one whose delay or state
//! changes leaves the path of plain links.

use waterfill_laws::registry::{AnyParams, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{ChangeSpec, LinkSpec};

use super::{Link, Queued};
use crate::fault::picoseconds;
use crate::packet::Flags;
use crate::queue::{Backlog, Queue};

/// Substitute rate while the transmitter's rate is zero. A packet of any size then takes longer than a run, but its
/// time is finite, so that the part already sent is not forgotten.
const HELD: Rate = Rate::from_bps(0.1);

/// Changes of a link direction, with its current state.
#[derive(Debug)]
pub(super) struct Variation {
    changes: Box<[ChangeSpec]>,
    /// Index of the next change.
    next: usize,
    up: bool,
    /// Current rate, also while the link is down.
    rate: Rate,
    /// Arrival time of the newest packet on the wire.
    last_arrives: Instant,
    /// Lead of the routers' clock, in picoseconds.
    clock_ahead_ps: i64,
}

impl Variation {
    /// Builds the variation of a link, or returns `None` if the link never changes.
    pub(super) fn new(spec: &LinkSpec) -> Option<Box<Self>> {
        (!spec.changes.is_empty()).then(|| {
            Box::new(Self {
                changes: spec.changes.clone().into(),
                next: 0,
                up: true,
                rate: Rate::from_bps(spec.rate_bps),
                last_arrives: Instant::ZERO,
                clock_ahead_ps: 0,
            })
        })
    }

    /// Returns true if a change affects more than the rate.
    pub(super) fn affects_packets(&self) -> bool {
        let affects = |change: &ChangeSpec| {
            change.delay_s.is_some() || change.up.is_some() || change.restart || change.clock_step_s.is_some()
        };
        self.changes.iter().any(affects)
    }

    /// Returns the lead of the routers' clock, in picoseconds.
    pub(super) const fn clock_ahead_ps(&self) -> i64 {
        self.clock_ahead_ps
    }

    /// Returns true if packets that arrive now are dropped.
    pub(super) const fn is_down(&self) -> bool {
        !self.up
    }

    /// Returns the arrival time of a packet that would arrive at `arrives` if it were alone. Packets must be passed in
    /// order.
    pub(super) fn keep_order(&mut self, arrives: Instant, transmission: Duration) -> Instant {
        self.last_arrives = arrives.max(self.last_arrives + transmission);
        self.last_arrives
    }
}

impl Link {
    /// Returns the time of the link's next change.
    pub(crate) fn varies_at(&self) -> Option<Instant> {
        let variation = self.variation.as_ref()?;
        variation.changes.get(variation.next).map(|change| Instant::from_secs(change.at_s))
    }

    /// Returns true if the link changes during the run.
    pub(crate) fn varies(&self) -> bool {
        self.variation.is_some()
    }

    /// Applies the change that is due now and returns it. The caller then reschedules the link's head, takes dropped
    /// packets with [`Link::take_discarded`] and applies the change's router settings.
    pub(crate) fn vary(&mut self, now: Instant) -> ChangeSpec {
        self.advance(now);
        self.meter.integrate_queue(now, self.backlog);
        let none = ChangeSpec::default();
        let Some(variation) = &mut self.variation else { return none };
        let Some(&change) = variation.changes.get(variation.next) else { return none };
        variation.next += 1;
        variation.rate = change.rate_bps.map_or(variation.rate, Rate::from_bps);
        variation.up = change.up.unwrap_or(variation.up);
        let (rate, up) = (variation.rate, variation.up);
        self.delay = change.delay_s.map_or(self.delay, Duration::from_secs);

        let before = std::mem::replace(&mut self.line, rate.max(HELD));
        self.transmission = (0, Duration::ZERO);
        let left = self.transmission_left(now);
        let left = Duration::from_secs(left.as_secs() * (before / self.line));
        if rate > Rate::ZERO {
            self.capacity = rate;
            self.view.capacity = rate;
            self.queue.notify_capacity(rate);
        }
        if up {
            self.reschedule(now, left);
            self.meter.change_capacity(now, rate, self.line, now + left);
        } else {
            let unsent = self.line * left;
            self.drop_all(now, !left.is_zero());
            self.meter.change_capacity(now, Rate::ZERO, self.line, now);
            self.meter.abandon(unsent);
        }
        self.update_from_scheduler(now);
        self.next_change = self.next_timer.min(self.next_start());
        change
    }

    /// Restarts the router laws as after a reboot: their clock begins at zero, and their state is lost.
    pub(crate) fn restart_routers(&mut self, now: Instant, params: impl Fn(ProtocolId) -> Option<AnyParams>) {
        for (id, router) in &mut self.routers {
            if let Some(params) = params(*id) {
                router.restart(&self.view, params.router(&self.view));
            }
        }
        self.set_clock(now, -(now.as_ps() as i64));
    }

    /// Moves the routers' clock forward or back.
    pub(crate) fn step_clock(&mut self, now: Instant, step_s: f64) {
        self.set_clock(now, self.clock_ahead_ps() + picoseconds(step_s));
    }

    /// Sets the lead of the routers' clock. A timer that the clock has jumped over is due at once, and only once.
    fn set_clock(&mut self, now: Instant, ahead_ps: i64) {
        if let Some(variation) = &mut self.variation {
            variation.clock_ahead_ps = ahead_ps;
        }
        self.next_timer = self.polled_at().max(now);
        self.next_change = self.next_timer.min(self.next_start());
    }

    /// Returns the time left in the current transmission, at the rate at which it was scheduled.
    fn transmission_left(&self, now: Instant) -> Duration {
        let ends = match &self.queue {
            Queue::Fifo(_) => self.ring.get(self.started()).map_or(self.free_at, |waiting| waiting.starts),
            Queue::Scheduler(_) => self.free_at,
        };
        ends.since(now)
    }

    /// Reschedules the packet in transmission, which has `left` to go, and the packets that wait in the ring.
    fn reschedule(&mut self, now: Instant, left: Duration) {
        if left.is_zero() {
            return; // nothing waits
        }
        let first = self.started() - 1;
        let on_wire = first.checked_sub(1).and_then(|last| self.ring.get(last));
        let mut last_arrives = on_wire.map_or(Instant::ZERO, |queued| queued.arrives);
        if let Some(faults) = &mut self.faults {
            faults.release_again_from(last_arrives);
        }
        let mut ends = now + left;
        for index in first..self.ring.len() {
            let Some(&Queued { bytes, role, .. }) = self.ring.get(index) else { break };
            let (starts, mut apart) = (ends, Duration::ZERO);
            if index > first {
                apart = self.transmission_time(bytes);
                ends = starts + apart;
            }
            last_arrives = (ends + self.delay).max(last_arrives + apart);
            let released = self.release(last_arrives, role);
            let Some(queued) = self.ring.get_mut(index) else { break };
            queued.arrives = released;
            if index > first {
                queued.starts = starts;
            }
        }
        self.free_at = ends;
        if let Some(variation) = &mut self.variation {
            variation.last_arrives = last_arrives;
        }
    }

    /// Drops all waiting packets, and the packet in transmission if `transmitting` is true.
    fn drop_all(&mut self, now: Instant, transmitting: bool) {
        let started = self.started();
        let kept = started - usize::from(transmitting);
        while self.ring.len() > kept {
            let cargo = self.cargo.as_mut().and_then(|cargo| cargo.pop_newest());
            let Some(queued) = self.ring.pop_newest() else { break };
            if self.ring.len() >= started {
                self.queue.on_dequeue(&queued.packet(cargo.as_ref()));
            }
            if queued.flags.has(Flags::LOST) {
                self.meter.uncount_loss();
            }
            self.outcome.dropped.push(queued.sack);
            self.outcome.drops += 1;
        }
        if let Some(faults) = &mut self.faults {
            let last = self.ring.newest_mut().map_or(Instant::ZERO, |queued| queued.arrives);
            faults.release_again_from(last);
            if let Some(thinning) = faults.thinning() {
                thinning.forget();
            }
        }
        if let Queue::Scheduler(scheduler) = &mut self.queue {
            // At time zero no packet has waited, so a discipline that drops by waiting time drops none of them itself.
            while let Some(waiting) = scheduler.dequeue(Instant::ZERO, &mut self.outcome) {
                self.outcome.drop(&waiting);
            }
        }
        self.meter.change_queue(now, self.backlog, Backlog::default());
        self.backlog = Backlog::default();
        self.free_at = self.free_at.min(now);
        self.meter.count_drops(std::mem::take(&mut self.outcome.drops));
        self.update_view();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::full_packet;
    use waterfill_laws::units::Volume;
    use waterfill_network::{Network, Watch};

    /// A faster rate and a shorter delay bring a packet in transmission forward, but not before the bound that another
    /// part of the network relies on.
    #[test]
    fn no_change_makes_a_packet_arrive_before_the_bound() {
        let ms = Duration::from_millis;
        // A full packet takes 1 ms.
        let [mut spec, _] = LinkSpec::duplex("l", Rate::from_bps(12e6), ms(20), Volume::from_bytes(1e5));
        let (rate_bps, delay_s) = (Some(12e9), Some(0.005));
        spec.changes = vec![ChangeSpec { at_s: 0.0005, rate_bps, delay_s, ..ChangeSpec::default() }];
        let network = Network::builder(ms(1000)).with(|network| network.links = vec![spec.clone()]).unchecked();
        let mut link = Link::new(0, &spec, &network, &Watch::default());
        let _ = link.enqueue(Instant::ZERO, &full_packet(1, Instant::ZERO));
        let (change, bound) = (Instant::from_secs(0.0005), Instant::from_secs(0.0055));
        assert_eq!((link.settled_head(change), link.earliest_arrival(ms(5))), (None, bound));
        link.vary(change);
        // Half of the packet is left: 0.5 µs at the new rate.
        assert_eq!(link.settled_head(change), Some(bound + Duration::from_ps(500_000)));
    }
}
