//! Events and their order: by time, and at one time by the order number given when an event was scheduled.
//!
//! Links, delay lines and access links ("stations") have at most one event each, that of their head. Those events are
//! the leaves of a tournament: a tree whose inner nodes hold the earlier event of their two children. The root is
//! the next event, and a station's next event costs one comparison per level, without a branch to mispredict. All other
//! events are timers. They wait in a heap, which takes part in the tournament as one more leaf.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

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

/// An event with its time and sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) time: Instant,
    pub(super) order: u64,
    pub(super) event: Event,
}

/// An event and its key: time and order in one number, so that one comparison decides.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    event: Event,
}

impl Entry {
    /// Later than any event.
    const NONE: Self = Self { key: u128::MAX, event: Event::Sample };

    fn new(time: Instant, order: u64, event: Event) -> Self {
        Self { key: (u128::from(time.as_ps()) << 64) | u128::from(order), event }
    }

    const fn timed(self) -> Timed {
        Timed { time: Instant::from_ps((self.key >> 64) as u64), order: self.key as u64, event: self.event }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap returns its largest entry first: the earliest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
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

/// The events to come.
#[derive(Debug)]
pub(super) struct Events {
    /// The tournament: node `i` has the children `2i` and `2i + 1`, the root is node 1, the second half are the leaves.
    tree: Vec<Entry>,
    /// The first leaf of a delay line, and that of an access link.
    first: [usize; 2],
    timers: BinaryHeap<Entry>,
}

/// The leaf of the timers' heap.
const TIMERS: usize = 0;

impl Default for Events {
    /// An empty queue for timers alone.
    fn default() -> Self {
        Self { tree: vec![Entry::NONE; 2], first: [1, 1], timers: BinaryHeap::new() }
    }
}

impl Events {
    /// Adds the stations, before any of them has an event. Access links may follow at any time.
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

    /// Adds an event. A station has no other one.
    #[inline]
    pub(super) fn schedule(&mut self, time: Instant, order: u64, event: Event) {
        let entry = Entry::new(time, order, event);
        let leaf = self.leaf_of(event);
        if leaf == TIMERS {
            self.timers.push(entry);
            self.update_timers();
            return;
        }
        if leaf >= self.tree.len() / 2 {
            self.grow(leaf);
        }
        // Most events come later than others: those keep their place from some node on.
        let mut node = leaf + self.tree.len() / 2;
        while node > 0 && entry.key < self.tree[node].key {
            self.tree[node] = entry;
            node /= 2;
        }
    }

    /// Returns the next event.
    #[inline]
    pub(super) fn peek(&self) -> Option<Timed> {
        let root = self.tree[1];
        (root.key != u128::MAX).then(|| root.timed())
    }

    /// Replaces the next event, which is a station's, by the next event of that station.
    #[inline]
    pub(super) fn replace_next(&mut self, event: Event, next: Option<(Instant, u64)>) {
        let entry = next.map_or(Entry::NONE, |(time, order)| Entry::new(time, order, event));
        self.set(self.leaf_of(event), entry);
    }

    /// Removes the next event, which is a timer.
    #[inline]
    pub(super) fn pop_timer(&mut self) {
        self.timers.pop();
        self.update_timers();
    }

    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns all events, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Timed> {
        let stations = self.tree[self.tree.len() / 2 + 1..].iter().filter(|entry| entry.key != u128::MAX);
        self.timers.iter().chain(stations).map(|entry| entry.timed())
    }

    /// Keeps some of the timers.
    pub(super) fn retain_timers(&mut self, keep: impl Fn(Timed) -> bool) {
        self.timers.retain(|entry| keep(entry.timed()));
        self.update_timers();
    }

    /// Gives the events whose sequence number is above `after` the number from `number`, which keeps their order.
    pub(super) fn renumber(&mut self, after: u64, number: &dyn Fn(u64) -> u64) {
        let renumbered = |entry: &mut Entry| {
            let Timed { time, order, event } = entry.timed();
            if entry.key != u128::MAX && order > after {
                *entry = Entry::new(time, number(order), event);
            }
        };
        self.tree.iter_mut().for_each(renumbered);
        let mut timers = std::mem::take(&mut self.timers).into_vec();
        timers.iter_mut().for_each(renumbered);
        self.timers = timers.into();
    }

    fn update_timers(&mut self) {
        self.set(TIMERS, self.timers.peek().copied().unwrap_or(Entry::NONE));
    }

    /// Sets a leaf and plays its matches up to the root.
    #[inline]
    fn set(&mut self, leaf: usize, entry: Entry) {
        let mut node = leaf + self.tree.len() / 2;
        let Entry { mut key, mut event } = entry;
        self.tree[node] = entry;
        while node > 1 {
            // Selected, not branched on: which of two events comes first is as good as random.
            let other = self.tree[node ^ 1];
            let behind = other.key < key;
            key = if behind { other.key } else { key };
            event = if behind { other.event } else { event };
            node /= 2;
            self.tree[node] = Entry { key, event };
        }
    }

    /// Grows the tree so that it has this leaf.
    #[cold]
    fn grow(&mut self, leaf: usize) {
        let old = self.tree.split_off(self.tree.len() / 2);
        self.tree = vec![Entry::NONE; 2 * (leaf + 1).next_power_of_two()];
        for (leaf, entry) in old.into_iter().enumerate() {
            self.set(leaf, entry);
        }
    }
}
