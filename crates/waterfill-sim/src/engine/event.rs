//! Events and their order.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;

use waterfill_laws::units::Instant;

/// What happens next; the numbers are indexes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The head of a link arrives at the far end.
    Link(u32),
    /// A late or duplicated packet arrives at the far end of its link.
    Reordered(u32),
    /// The head of a delay line arrives at its end.
    DelayLine(u32),
    /// The head of an access link arrives at its router.
    Access(u32),
    /// A sender's timer.
    Sender(u32),
    /// A receiver's timer.
    Receiver(u32),
    /// A traffic source sends a packet or starts a flow.
    Traffic(u32),
    /// Time to sample.
    Sample,
    /// The summary's window opens.
    WindowOpens,
    /// The summary's window closes.
    WindowCloses,
}

/// A heap entry. The heap returns its largest first: the earliest event, and at one time the one scheduled first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) time: Instant,
    pub(super) order: u64,
    pub(super) event: Event,
}

impl Timed {
    /// Time and order in one number: one comparison instead of two.
    fn key(&self) -> u128 {
        (u128::from(self.time.as_ps()) << 64) | u128::from(self.order)
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Which events a run of the event loop handles, and what is kept of them.
pub(super) trait Window {
    /// Whether the event of this time and sequence number belongs to it.
    fn contains(&self, time: Instant, order: u64) -> bool;
    /// Records an event that has been handled, and the sequence number given out last since.
    fn record(&mut self, time: Instant, order: u64, given_out: u64);
}

/// All events up to a time, inclusive; records nothing.
#[derive(Debug)]
pub(super) struct UpTo(pub(super) Instant);

impl Window for UpTo {
    fn contains(&self, time: Instant, _order: u64) -> bool {
        time <= self.0
    }

    fn record(&mut self, _time: Instant, _order: u64, _given_out: u64) {}
}

/// Replaces the heap's top entry by the next of its kind, in place: cheaper than pop and push.
pub(super) fn replace_top(mut top: PeekMut<'_, Timed>, event: Event, next: Option<(Instant, u64)>) {
    match next {
        Some((time, order)) => *top = Timed { time, order, event },
        None => {
            PeekMut::pop(top);
        }
    }
}
