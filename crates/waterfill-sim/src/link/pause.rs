//! Pauses of a link by the switch at its far end (priority flow control, IEEE 802.1Qbb, with one priority).
//!
//! A pause frame keeps the transmitter from starting another packet; the one in transmission is sent to its end. The pause
//! lasts until the switch sends a frame that ends it: what real switches repeat before a timer expires is one pause here.

use waterfill_laws::units::{Duration, Instant};

use super::Link;
use crate::queue::Queue;

/// Size of a pause frame on the wire, in bytes.
const FRAME_BYTES: u16 = 64;

/// Pauses of a link so far.
#[derive(Debug)]
pub(super) struct Pauses {
    pub(super) is_paused: bool,
    /// Time from which the current pause has kept the transmitter idle.
    since: Instant,
    /// Time in earlier pauses.
    total: Duration,
    /// Number of frames that began a pause.
    frames: u64,
    /// Index of the next packet's input among those of its switch.
    pub(super) input: u32,
    /// Time of the link's valid departure event. Events at other times are stale.
    due: Instant,
}

impl Pauses {
    /// Returns the time in pauses up to `now`, and their number.
    pub(super) fn until(&self, now: Instant) -> (Duration, u64) {
        let current = if self.is_paused { now.since(self.since) } else { Duration::ZERO };
        (self.total + current, self.frames)
    }
}

impl Link {
    /// Makes a link with a drop-tail queue one that pauses and drops nothing. It has no packets yet.
    pub(crate) fn make_lossless(&mut self) {
        self.queue.make_lossless();
        self.plain = false;
        self.pauses = Some(Box::new(Pauses {
            is_paused: false,
            since: Instant::ZERO,
            total: Duration::ZERO,
            frames: 0,
            input: 0,
            due: Instant::NEVER,
        }));
    }

    /// Returns true if the link can be paused.
    pub(crate) const fn can_pause(&self) -> bool {
        self.pauses.is_some()
    }

    /// Returns true if a pause keeps the transmitter from starting a packet.
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.as_ref().is_some_and(|pauses| pauses.is_paused)
    }

    /// Sets the input of the next packet at its switch.
    pub(crate) fn set_input(&mut self, input: u32) {
        if let Some(pauses) = &mut self.pauses {
            pauses.input = input;
        }
    }

    /// Returns true if a packet that arrives now has to wait.
    pub(crate) fn has_to_wait(&self, now: Instant) -> bool {
        self.is_paused() || self.free_at > now
    }

    /// Begins a pause when its frame arrives.
    pub(crate) fn pause(&mut self, now: Instant) {
        self.advance(now);
        let from = self.free_at.max(now);
        if let Some(pauses) = self.pauses.as_mut().filter(|pauses| !pauses.is_paused) {
            (pauses.is_paused, pauses.since) = (true, from);
            pauses.frames += 1;
        }
        self.next_change = self.next_timer.min(self.next_start());
    }

    /// Ends a pause when its frame arrives. A waiting packet leaves at once.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.advance(now);
        if let Some(pauses) = self.pauses.as_mut().filter(|pauses| pauses.is_paused) {
            pauses.total += now.since(pauses.since);
            pauses.is_paused = false;
        }
        if self.backlog.packets > 0 && self.free_at <= now {
            self.dequeue(now);
        }
        self.next_change = self.next_timer.min(self.next_start());
    }

    /// Sends a pause frame, which leaves after the packet in transmission. Returns its arrival time.
    pub(crate) fn send_pause_frame(&mut self, now: Instant) -> Instant {
        self.advance(now);
        self.free_at = self.free_at.max(now) + self.transmission_time(FRAME_BYTES);
        self.meter.start_transmission(FRAME_BYTES, self.free_at);
        self.next_change = self.next_timer.min(self.next_start());
        self.free_at + self.delay
    }

    /// Takes the departures from the queue since the last call: inputs and sizes of the packets, in their order.
    pub(crate) fn take_departures(&mut self) -> impl Iterator<Item = (u32, u16)> + '_ {
        self.outcome.departed.drain(..)
    }

    /// Adds the bytes of the waiting packets to the sums of their inputs.
    pub(crate) fn add_by_input(&self, sums: &mut [u64]) {
        if let Queue::Scheduler(scheduler) = &self.queue {
            scheduler.add_by_input(sums);
        }
    }

    /// Returns the time of the next departure if it needs an event that is not scheduled yet, and counts it as scheduled.
    ///
    /// The arrival of a packet at the far end brings its link up to date. That is too late if the switch has to know the
    /// departure's time (`exact`), and does not happen if a pause frame was the last in transmission.
    pub(crate) fn next_departure(&mut self, exact: bool) -> Option<Instant> {
        let (at, needed) = (self.free_at, exact || self.ring.is_empty());
        let waits = self.backlog.packets > 0 && needed;
        let pauses = self.pauses.as_mut().filter(|pauses| waits && !pauses.is_paused && at < pauses.due)?;
        pauses.due = at;
        Some(at)
    }

    /// Returns true if the event of a departure is valid, and counts it as handled.
    pub(crate) fn take_departure_event(&mut self, now: Instant) -> bool {
        let pauses = self.pauses.as_mut().filter(|pauses| pauses.due == now);
        pauses.map(|pauses| pauses.due = Instant::NEVER).is_some()
    }
}
