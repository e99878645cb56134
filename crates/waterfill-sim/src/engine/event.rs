//! Events and their order: by time, then by the sequence number assigned when the event was scheduled.
//!
//! Links, delay lines and access links ("stations") have at most one event each, that of their head. Those events are
//! the leaves of a tournament: a tree whose inner nodes hold the earlier event of their two children. The root is
//! the next event, and a station's next event costs one comparison per level. All other events are timers. They wait in
//! a heap, which takes part in the tournament as one more leaf.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::Watch;

/// A kind of event, with the index of its link, delay line, flow or traffic source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The packet at the head of a link arrives at the far end.
    Link(u32),
    /// A late or duplicated packet arrives at the far end of its link.
    Reordered(u32),
    /// The packet at the head of a delay line arrives at its end.
    DelayLine(u32),
    /// The packet at the head of an access link arrives at its router.
    Access(u32),
    /// A sender's timer expires.
    Sender(u32),
    /// A receiver's timer expires.
    Receiver(u32),
    /// A traffic source sends a packet or starts flows.
    Traffic(u32),
    /// A link's rate, delay or state changes.
    Change(u32),
    /// A sample of the time series is due.
    Sample,
    /// The summary's measurement window opens.
    WindowOpens,
    /// The summary's measurement window closes.
    WindowCloses,
}

/// An event with its time and sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) time: Instant,
    pub(super) order: u64,
    pub(super) event: Event,
}

/// A timer event in the heap. The order is reversed, so that the earliest event is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    key: u128,
    event: Event,
}

impl Timer {
    const fn timed(self) -> Timed {
        let (time, order) = ((self.key >> 64) as u64, self.key as u64);
        Timed { time: Instant::from_ps(time), order, event: self.event }
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Packs time and sequence number into one integer, so that one comparison orders two events.
const fn key(time: u64, order: u64) -> u128 {
    ((time as u128) << 64) | order as u128
}

/// The next event of a leaf. Time and order are separate fields, so that reading the root does not wait for both.
#[derive(Clone, Copy, Debug)]
struct LeafEvent {
    time: u64,
    order: u64,
    leaf: usize,
}

impl LeafEvent {
    /// Placeholder that is later than any event.
    const NONE: Self = Self { time: u64::MAX, order: u64::MAX, leaf: TIMERS };

    const fn is_none(&self) -> bool {
        self.time == u64::MAX
    }

    const fn key(&self) -> u128 {
        key(self.time, self.order)
    }
}

/// Set of events that one pass of the event loop handles, with a log of them.
pub(super) trait Window {
    /// Returns true if the set contains the event with this time and sequence number.
    fn contains(&self, time: Instant, order: u64) -> bool;
    /// Records a handled event and the last sequence number assigned so far.
    fn record(&mut self, time: Instant, order: u64, given_out: u64);
}

/// Set of the events up to and including a time, limited in number.
#[derive(Debug)]
pub(super) struct UpTo<'a> {
    /// First time after the last event of the set.
    limit: Instant,
    /// Number of events left until the next poll of the watch. `beyond` counts the events after that poll.
    left: u64,
    beyond: u64,
    watch: &'a Watch,
}

/// Number of events between two polls of the watch. Handling these events takes about a millisecond.
pub(super) const EVENTS_PER_POLL: u64 = 1 << 13;

impl<'a> UpTo<'a> {
    pub(super) fn new(until: Instant, events: u64, watch: &'a Watch) -> Self {
        let left = events.min(EVENTS_PER_POLL);
        let limit = if events == 0 { Instant::ZERO } else { until + Duration::from_ps(1) };
        Self { limit, left, beyond: events - left, watch }
    }

    #[cold]
    fn refill(&mut self) {
        if self.beyond == 0 || self.watch.poll() {
            self.limit = Instant::ZERO; // no event is before it
        }
        self.left = self.beyond.min(EVENTS_PER_POLL);
        self.beyond -= self.left;
    }
}

impl Window for UpTo<'_> {
    #[inline]
    fn contains(&self, time: Instant, _order: u64) -> bool {
        time < self.limit
    }

    #[inline]
    fn record(&mut self, _time: Instant, _order: u64, _given_out: u64) {
        self.left -= 1;
        if self.left == 0 {
            self.refill();
        }
    }
}

/// Queue of the pending events.
#[derive(Debug)]
pub(super) struct Events {
    /// Tournament tree: node 1 is the root, node `i` has the children `2i` and `2i + 1`, and the second half are
    /// leaves.
    tree: Vec<LeafEvent>,
    /// First leaf of the delay lines and first leaf of the access links.
    first: [usize; 2],
    timers: BinaryHeap<Timer>,
}

/// Leaf of the timer heap.
const TIMERS: usize = 0;

impl Default for Events {
    /// Returns an empty queue with a leaf for timers only.
    fn default() -> Self {
        Self { tree: vec![LeafEvent::NONE; 2], first: [1, 1], timers: BinaryHeap::new() }
    }
}

impl Events {
    /// Adds leaves for links and delay lines, before any of their events is scheduled. Access links may follow at any
    /// time.
    pub(super) fn add_stations(&mut self, links: usize, delay_lines: usize) {
        self.first = [1 + links, 1 + links + delay_lines];
        self.grow(self.first[1]);
    }

    /// Returns the leaf of an event.
    const fn leaf_of(&self, event: Event) -> usize {
        match event {
            Event::Link(l) => 1 + l as usize,
            Event::DelayLine(d) => self.first[0] + d as usize,
            Event::Access(a) => self.first[1] + a as usize,
            _ => TIMERS,
        }
    }

    /// Returns the event that a leaf's entry describes.
    #[inline]
    fn event_of(&self, entry: &LeafEvent) -> Event {
        let LeafEvent { leaf, .. } = *entry;
        if leaf == TIMERS {
            self.timers.peek().map_or(Event::Sample, |timer| timer.event)
        } else if leaf < self.first[0] {
            Event::Link((leaf - 1) as u32)
        } else if leaf < self.first[1] {
            Event::DelayLine((leaf - self.first[0]) as u32)
        } else {
            Event::Access((leaf - self.first[1]) as u32)
        }
    }

    /// Adds an event. A link, delay line or access link must not have another event in the queue.
    #[inline]
    pub(super) fn schedule(&mut self, time: Instant, order: u64, event: Event) {
        let leaf = self.leaf_of(event);
        if leaf == TIMERS {
            self.timers.push(Timer { key: key(time.as_ps(), order), event });
            self.update_timers();
            return;
        }
        if leaf >= self.tree.len() / 2 {
            self.grow(leaf);
        }
        let entry = LeafEvent { time: time.as_ps(), order, leaf };
        // Most events come later than others: those keep their place from some node on.
        let mut node = leaf + self.tree.len() / 2;
        while node > 0 && entry.key() < self.tree[node].key() {
            self.tree[node] = entry;
            node /= 2;
        }
    }

    /// Returns the index of the link whose event is next, or `None` if the next event is not a link's.
    #[inline]
    pub(super) fn next_link(&self) -> Option<usize> {
        let place = self.tree[1].leaf.wrapping_sub(1); // of the timers or of none: a large number
        (place + 1 < self.first[0]).then_some(place)
    }

    /// Returns the next event, if there is one.
    #[inline]
    pub(super) fn peek(&self) -> Option<Timed> {
        let root = &self.tree[1];
        (!root.is_none()).then(|| self.timed(root))
    }

    #[inline]
    fn timed(&self, entry: &LeafEvent) -> Timed {
        Timed { time: Instant::from_ps(entry.time), order: entry.order, event: self.event_of(entry) }
    }

    /// Replaces the pending event of a link, delay line or access link by that entity's next event, if any. The
    /// replaced event is usually the earliest in the queue.
    #[inline]
    pub(super) fn replace_next(&mut self, event: Event, next: Option<(Instant, u64)>) {
        let leaf = self.leaf_of(event);
        self.set(next.map_or(LeafEvent { leaf, ..LeafEvent::NONE }, |(time, order)| LeafEvent {
            time: time.as_ps(),
            order,
            leaf,
        }));
    }

    /// Removes the next event, which must be a timer.
    #[inline]
    pub(super) fn pop_timer(&mut self) {
        self.timers.pop();
        self.update_timers();
    }

    /// Returns the number of pending events.
    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns all pending events, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Timed> {
        let stations = self.tree[self.tree.len() / 2 + 1..].iter().filter(|entry| !entry.is_none());
        self.timers.iter().map(|timer| timer.timed()).chain(stations.map(|entry| self.timed(entry)))
    }

    /// Removes all events when the run is over.
    #[cold]
    pub(super) fn clear(&mut self) {
        self.tree.fill(LeafEvent::NONE);
        self.timers.clear();
    }

    /// Keeps only the timers for which `keep` returns true.
    pub(super) fn retain_timers(&mut self, keep: impl Fn(Timed) -> bool) {
        self.timers.retain(|timer| keep(timer.timed()));
        self.update_timers();
    }

    /// Applies `number` to every sequence number above `after`. The mapping must keep the events' order.
    pub(super) fn renumber(&mut self, after: u64, number: &dyn Fn(u64) -> u64) {
        for entry in self.tree.iter_mut().filter(|entry| !entry.is_none() && entry.order > after) {
            entry.order = number(entry.order);
        }
        let mut timers = std::mem::take(&mut self.timers).into_vec();
        for timer in timers.iter_mut().filter(|timer| timer.key as u64 > after) {
            timer.key = key((timer.key >> 64) as u64, number(timer.key as u64));
        }
        self.timers = timers.into();
    }

    fn update_timers(&mut self) {
        self.set(self.timers.peek().map_or(LeafEvent::NONE, |timer| LeafEvent {
            time: (timer.key >> 64) as u64,
            order: timer.key as u64,
            leaf: TIMERS,
        }));
    }

    /// Sets a leaf and replays its matches up to the root.
    #[inline]
    fn set(&mut self, entry: LeafEvent) {
        let LeafEvent { mut time, mut order, mut leaf } = entry;
        let mut node = leaf + self.tree.len() / 2;
        self.tree[node] = entry;
        while node > 1 {
            // A branch: where it is predicted, the next event starts before this comparison is done. A selection by
            // masks is no faster where it is not, and slower with few links.
            let other = &self.tree[node ^ 1];
            let behind = other.key() < key(time, order);
            time = if behind { other.time } else { time };
            order = if behind { other.order } else { order };
            leaf = if behind { other.leaf } else { leaf };
            node /= 2;
            self.tree[node] = LeafEvent { time, order, leaf };
        }
    }

    /// Grows the tree until it includes this leaf.
    #[cold]
    fn grow(&mut self, leaf: usize) {
        let old = self.tree.split_off(self.tree.len() / 2);
        self.tree = vec![LeafEvent::NONE; 2 * (leaf + 1).next_power_of_two()];
        for (leaf, entry) in old.into_iter().enumerate() {
            self.set(LeafEvent { leaf, ..entry });
        }
    }
}
