//! Events and their order: by time, then by the rank of the entity whose event it is.
//!
//! The rank follows from the seed and the entity alone (see [`Ranks`]). So nothing that other entities have done decides a
//! tie, and a part of the network that runs by itself breaks its ties as the whole network would. The events of one
//! entity keep their order: links and delay lines are queues, and the timers of a flow or traffic source are alike.
//!
//! Links, delay lines and access links ("stations") have at most one event each, that of their head. Those events are
//! the leaves of a tournament: a tree whose inner nodes hold the earlier event of their two children. The root is
//! the next event, and a station's next event costs one comparison per level. All other events are timers. They wait in
//! a heap, which takes part in the tournament as one more leaf.
//!
//! Changes of links are apart. Each is handled before all other events of its time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use waterfill_laws::units::Instant;
use waterfill_network::Watch;

use crate::random::mix;

/// A kind of event, with the index of its link, delay line, flow or traffic source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// An endpoint's timer expires.
    Endpoint(u32),
    /// The link of a host that pulls is free.
    Nic(u32),
    /// A frame that begins a pause reaches a link's transmitter.
    Pause(u32),
    /// A frame that ends a pause reaches a link's transmitter.
    Resume(u32),
    /// A packet leaves the queue of a switch that has asked for pauses.
    Departure(u32),
}

/// Ranks of entities for one seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranks {
    salt: u64,
}

impl Ranks {
    pub(super) const fn new(seed: u64) -> Self {
        Self { salt: mix(seed, 0) }
    }

    /// Returns the rank of an entity: the place of its kind and number in a permutation that the seed draws.
    ///
    /// An index would let low-numbered links and flows win all ties. The number must not depend on threads: it is an index
    /// of the scenario, or follows from source, route and slot for a host that a traffic source adds during the run.
    const fn of(self, event: Event, number: u64) -> u64 {
        let kind: u64 = match event {
            Event::Link(_) => 0,
            Event::Reordered(_) => 1,
            Event::DelayLine(_) => 2,
            Event::Access(_) => 3,
            Event::Sender(_) => 4,
            Event::Receiver(_) => 5,
            Event::Traffic(_) => 6,
            Event::Endpoint(_) => 7,
            Event::Nic(_) => 8,
            Event::Pause(_) => 9,
            Event::Resume(_) => 10,
            Event::Departure(_) => 11,
        };
        mix(number ^ kind << 60, self.salt)
    }
}

/// A timer event in the heap. The order is reversed, so that the earliest event is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    time: u64,
    rank: u64,
    event: Event,
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |timer: &Self| (timer.time, timer.rank, timer.event);
        key(other).cmp(&key(self))
    }
}

/// The next event of a leaf.
#[derive(Clone, Copy, Debug)]
struct LeafEvent {
    time: u64,
    /// Upper half of the rank, then the leaf, which decides where those are equal.
    place: u64,
}

/// Bits of a rank that take part in the tournament.
const RANK_BITS: u64 = u64::MAX << 32;

impl LeafEvent {
    /// Placeholder that is later than any event.
    const NONE: Self = Self { time: u64::MAX, place: TIMERS as u64 };

    const fn is_none(&self) -> bool {
        self.time == u64::MAX
    }

    const fn leaf(&self) -> usize {
        (self.place & !RANK_BITS) as usize
    }

    /// Packs time and place into one integer, so that one comparison orders two events.
    const fn key(&self) -> u128 {
        ((self.time as u128) << 64) | self.place as u128
    }
}

/// Events before a time, limited in number.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    /// First time after the last event of the slice.
    pub(super) end: Instant,
    /// Number of events left until the next poll of the watch. `beyond` counts the events after that poll.
    left: u64,
    beyond: u64,
    watch: &'a Watch,
}

/// Number of events between two polls of the watch. Handling these events takes about a millisecond.
const EVENTS_PER_POLL: u64 = 1 << 13;

impl<'a> Slice<'a> {
    pub(super) fn new(end: Instant, events: u64, watch: &'a Watch) -> Self {
        let left = events.min(EVENTS_PER_POLL);
        Self { end: if events == 0 { Instant::ZERO } else { end }, left, beyond: events - left, watch }
    }

    /// Counts a handled event. Returns true if `end` may have changed.
    #[inline]
    pub(super) fn count(&mut self) -> bool {
        self.left -= 1;
        if self.left == 0 {
            self.refill();
            return true;
        }
        false
    }

    #[cold]
    fn refill(&mut self) {
        if self.beyond == 0 || self.watch.poll() {
            self.end = Instant::ZERO; // no event is before it
        }
        self.left = self.beyond.min(EVENTS_PER_POLL);
        self.beyond -= self.left;
    }
}

/// Queue of the pending events.
#[derive(Debug)]
pub(super) struct Events {
    ranks: Ranks,
    /// Tournament tree: node 1 is the root, node `i` has the children `2i` and `2i + 1`, and the second half are
    /// leaves. A leaf keeps its place while it has no event.
    tree: Vec<LeafEvent>,
    /// First leaf of the delay lines and first leaf of the access links.
    first: [usize; 2],
    timers: BinaryHeap<Timer>,
    /// Changes of links that are due, by time and link.
    changes: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// Leaf of the timer heap.
const TIMERS: usize = 0;

impl Events {
    /// Creates an empty queue with a leaf for timers only.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            ranks: Ranks::new(seed),
            tree: vec![LeafEvent::NONE; 2],
            first: [1, 1],
            timers: BinaryHeap::new(),
            changes: BinaryHeap::new(),
        }
    }

    /// Makes leaves for links and delay lines, which [`Events::add_station`] adds before any of their events is scheduled.
    /// Access links may follow at any time.
    pub(super) fn reserve(&mut self, links: usize, delay_lines: usize) {
        self.first = [1 + links, 1 + links + delay_lines];
        self.grow(self.first[1]);
    }

    /// Adds a station by its event and its number among those of its kind.
    pub(super) fn add_station(&mut self, event: Event, number: u64) {
        let leaf = self.leaf_of(event);
        if leaf >= self.tree.len() / 2 {
            self.grow(leaf);
        }
        let node = leaf + self.tree.len() / 2;
        self.tree[node].place = self.ranks.of(event, number) & RANK_BITS | leaf as u64;
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

    /// Returns the event of a leaf that has one.
    #[inline]
    fn event_of(&self, leaf: usize) -> Option<Event> {
        if leaf == TIMERS {
            self.timers.peek().map(|timer| timer.event)
        } else if leaf < self.first[0] {
            Some(Event::Link((leaf - 1) as u32))
        } else if leaf < self.first[1] {
            Some(Event::DelayLine((leaf - self.first[0]) as u32))
        } else {
            Some(Event::Access((leaf - self.first[1]) as u32))
        }
    }

    /// Schedules the event of a station, which must not have another one.
    #[inline]
    pub(super) fn schedule(&mut self, time: Instant, event: Event) {
        let mut node = self.leaf_of(event) + self.tree.len() / 2;
        let entry = LeafEvent { time: time.as_ps(), ..self.tree[node] };
        // Most events come later than others: those keep their place from some node on.
        while node > 0 && entry.key() < self.tree[node].key() {
            self.tree[node] = entry;
            node /= 2;
        }
    }

    /// Schedules a timer of the entity with this number among those of its kind.
    pub(super) fn add_timer(&mut self, time: Instant, event: Event, number: u64) {
        let timer = Timer { time: time.as_ps(), rank: self.ranks.of(event, number), event };
        self.timers.push(timer);
        self.update_timers();
    }

    /// Schedules a change of a link, or of [routes](super::path::ROUTES).
    pub(super) fn add_change(&mut self, time: Instant, l: u32) {
        self.changes.push(Reverse((time, l)));
    }

    /// Returns the time of the next change of a link; `NEVER` if there is none.
    pub(super) fn changes_at(&self) -> Instant {
        self.changes.peek().map_or(Instant::NEVER, |Reverse((time, _))| *time)
    }

    /// Removes and returns the next change of a link.
    pub(super) fn pop_change(&mut self) -> Option<(Instant, u32)> {
        self.changes.pop().map(|Reverse(next)| next)
    }

    /// Returns the index of the link whose event is next, or `None` if the next event is not a link's.
    #[inline]
    pub(super) fn next_link(&self) -> Option<usize> {
        let place = self.tree[1].leaf().wrapping_sub(1); // of the timers or of none: a large number
        (place.wrapping_add(1) < self.first[0]).then_some(place)
    }

    /// Returns the next event, unless it is a change of a link.
    #[inline]
    pub(super) fn peek(&self) -> Option<(Instant, Event)> {
        let root = &self.tree[1];
        if root.is_none() {
            return None;
        }
        self.event_of(root.leaf()).map(|event| (Instant::from_ps(root.time), event))
    }

    /// Returns the time of the next event, changes of links included; `NEVER` if there is none.
    pub(super) fn next_time(&self) -> Instant {
        Instant::from_ps(self.tree[1].time).min(self.changes_at())
    }

    /// Replaces the pending event of a link, delay line or access link by that entity's next event, if any. The
    /// replaced event is usually the earliest in the queue.
    #[inline]
    pub(super) fn replace_next(&mut self, event: Event, next: Option<Instant>) {
        let leaf = self.leaf_of(event);
        let LeafEvent { place, .. } = self.tree[leaf + self.tree.len() / 2];
        self.set(leaf, LeafEvent { time: next.unwrap_or(Instant::NEVER).as_ps(), place });
    }

    /// Removes the next event, which must be a timer.
    #[inline]
    pub(super) fn pop_timer(&mut self) {
        self.timers.pop();
        self.update_timers();
    }

    /// Returns the number of pending events.
    pub(super) fn len(&self) -> usize {
        let stations = self.tree[self.tree.len() / 2 + 1..].iter().filter(|entry| !entry.is_none());
        self.changes.len() + self.timers.len() + stations.count()
    }

    /// Removes all events when the run is over.
    #[cold]
    pub(super) fn clear(&mut self) {
        self.tree.iter_mut().for_each(|entry| entry.time = u64::MAX);
        self.timers.clear();
        self.changes.clear();
    }

    fn update_timers(&mut self) {
        let first = self.timers.peek();
        let entry = first.map_or(LeafEvent::NONE, |timer| LeafEvent {
            time: timer.time,
            place: timer.rank & RANK_BITS | TIMERS as u64,
        });
        self.set(TIMERS, entry);
    }

    /// Sets a leaf and replays its matches up to the root.
    #[inline]
    fn set(&mut self, leaf: usize, entry: LeafEvent) {
        let mut node = leaf + self.tree.len() / 2;
        self.tree[node] = entry;
        let LeafEvent { mut time, mut place } = entry;
        while node > 1 {
            // A branch: where it is predicted, the next event starts before this comparison is done. A selection by
            // masks is no faster where it is not, and slower with few links.
            let other = &self.tree[node ^ 1];
            let behind = other.key() < (LeafEvent { time, place }).key();
            time = if behind { other.time } else { time };
            place = if behind { other.place } else { place };
            node /= 2;
            self.tree[node] = LeafEvent { time, place };
        }
    }

    /// Grows the tree so that it has this leaf.
    #[cold]
    fn grow(&mut self, leaf: usize) {
        let old = self.tree.split_off(self.tree.len() / 2);
        self.tree = vec![LeafEvent::NONE; 2 * (leaf + 1).next_power_of_two()];
        for (leaf, entry) in old.into_iter().enumerate() {
            self.set(leaf, entry);
        }
    }
}
