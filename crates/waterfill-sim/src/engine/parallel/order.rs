//! Sequence numbers within a window. Each thread assigns its own numbers, which are then replaced by the numbers that a
//! single thread would assign.
//!
//! Two events of one time are handled in the order of their sequence numbers, which the engine gives out as events are
//! scheduled. In a window each thread counts on from the last number that all agree on (`settled`). A thread handles its
//! own events in the right order, so its numbers are in the right order too, but they leave out what other threads give
//! out in between. Once all threads have finished the window, a number becomes the sequential one by adding what the
//! others have given out before. For that, their events are merged: by time, and at one time by sequence number. A
//! number of the same window is itself not final; then the events that gave out the two numbers are compared, and so on
//! back to the start of the window at most.

use waterfill_laws::units::Instant;
use waterfill_network::Watch;

use crate::engine::Simulation;
use crate::engine::event::{EVENTS_PER_POLL, Window};

/// An event whose handling assigned sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handled {
    time: Instant,
    /// Sequence number of the event.
    order: u64,
    /// Last sequence number assigned so far, including those of this event.
    given_out: u64,
}

/// Set of the events up to a limit, with a log of the events that assigned sequence numbers.
#[derive(Debug)]
pub(super) struct LoggedWindow<'a> {
    /// Time and sequence number of the first event beyond the window.
    limit: (Instant, u64),
    log: &'a mut Vec<Handled>,
    given_out: u64,
    /// Number of events handled since the last poll of the watch.
    handled: u64,
    watch: &'a Watch,
}

impl<'a> LoggedWindow<'a> {
    pub(super) fn new(limit: (Instant, u64), settled: u64, log: &'a mut Vec<Handled>, watch: &'a Watch) -> Self {
        log.clear();
        Self { limit, log, given_out: settled, handled: 0, watch }
    }
}

impl Window for LoggedWindow<'_> {
    fn contains(&self, time: Instant, order: u64) -> bool {
        (time, order) < self.limit
    }

    fn record(&mut self, time: Instant, order: u64, given_out: u64) {
        self.handled += 1;
        if self.handled == EVENTS_PER_POLL {
            self.handled = 0;
            if self.watch.poll() {
                self.limit = (Instant::ZERO, 0); // the run ends
            }
        }
        if given_out > self.given_out {
            self.given_out = given_out;
            self.log.push(Handled { time, order, given_out });
        }
    }
}

/// Logs of all threads after a window, ready to be merged.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    pub(super) logs: &'a [&'a [Handled]],
    /// Last sequence number assigned before the window.
    pub(super) settled: u64,
}

impl Merge<'_> {
    /// Returns the last sequence number assigned up to the end of the window.
    pub(super) fn settled_after(&self) -> u64 {
        let given_out = |log: &&[Handled]| log.last().map_or(0, |last| last.given_out - self.settled);
        self.settled + self.logs.iter().map(given_out).sum::<u64>()
    }

    /// Computes the amount to add to each sequence number that a thread assigned.
    pub(super) fn shifts(&self, thread: usize, shifts: &mut Vec<u64>) {
        shifts.clear();
        let mut next = vec![0; self.logs.len()];
        for event in self.logs[thread] {
            let mut shift = 0;
            for (other, log) in self.logs.iter().enumerate() {
                if other == thread {
                    continue;
                }
                let mut i = next[other];
                while i < log.len() && self.precedes((other, log[i]), (thread, *event)) {
                    i += 1;
                }
                next[other] = i;
                shift += i.checked_sub(1).map_or(0, |last| log[last].given_out - self.settled);
            }
            shifts.resize((event.given_out - self.settled) as usize, shift);
        }
    }

    /// Returns true if event `a` comes before event `b` of another thread. Each event is paired with the index of its
    /// thread.
    #[inline]
    fn precedes(&self, a: (usize, Handled), b: (usize, Handled)) -> bool {
        // A number of an earlier window is final, and below all of this window.
        if a.1.time == b.1.time && a.1.order.min(b.1.order) > self.settled {
            return self.causes_precede(a, b);
        }
        (a.1.time, a.1.order) < (b.1.time, b.1.order)
    }

    /// Returns true if event `a` comes before event `b`, when both were scheduled in this window for the same time.
    #[cold]
    fn causes_precede(&self, mut a: (usize, Handled), mut b: (usize, Handled)) -> bool {
        while a.1.time == b.1.time && a.1.order.min(b.1.order) > self.settled {
            (a.1, b.1) = (self.cause(a.0, a.1.order), self.cause(b.0, b.1.order));
        }
        (a.1.time, a.1.order) < (b.1.time, b.1.order)
    }

    /// Returns the event that assigned a sequence number in this window.
    fn cause(&self, thread: usize, order: u64) -> Handled {
        let log = self.logs[thread];
        log[log.partition_point(|event| event.given_out < order)]
    }
}

/// The entities that were given sequence numbers in the current window.
#[derive(Debug, Default)]
pub(in crate::engine) struct Journal {
    links: Touched,
    delay_lines: Touched,
    access_links: Touched,
}

impl Journal {
    pub(in crate::engine) fn note_link(&mut self, l: u32) {
        self.links.noted.push(l);
    }

    pub(in crate::engine) fn note_delay_line(&mut self, d: u32) {
        self.delay_lines.noted.push(d);
    }

    pub(in crate::engine) fn note_access(&mut self, a: u32) {
        self.access_links.noted.push(a);
    }

    /// Replaces the sequence numbers that a part of the network assigned in this window.
    pub(super) fn renumber(&mut self, part: &mut Simulation, settled: u64, shifts: &[u64]) {
        let number = |order: u64| order + shifts[(order - settled - 1) as usize];
        self.links.each(|l| part.links[l].renumber(settled, &number));
        self.delay_lines.each(|d| part.delay_lines[d].renumber(settled, &number));
        self.access_links.each(|a| part.access_links[a].wire.renumber(settled, &number));
        part.agenda.renumber(settled, &number);
    }
}

/// Indices of links, delay lines or access links, one entry for each sequence number assigned.
#[derive(Debug, Default)]
struct Touched {
    noted: Vec<u32>,
    seen: Vec<bool>,
}

impl Touched {
    /// Calls a function once for each distinct index, then clears the list.
    fn each(&mut self, mut visit: impl FnMut(usize)) {
        for &i in &self.noted {
            let i = i as usize;
            if i >= self.seen.len() {
                self.seen.resize(i + 1, false);
            }
            if !std::mem::replace(&mut self.seen[i], true) {
                visit(i);
            }
        }
        for i in self.noted.drain(..) {
            self.seen[i as usize] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handled(ps: u64, order: u64, given_out: u64) -> Handled {
        Handled { time: Instant::from_ps(ps), order, given_out }
    }

    /// Checks ties between two threads. At time 5, numbers from before the window decide. At time 7, the events that
    /// scheduled the tied ones decide.
    #[test]
    fn numbers_become_those_of_one_thread() {
        // Sequential order: a1 (5, #3) gives 11, b1 (5, #4) gives 12 and 13, a2 (6, #5) gives 14, then those that
        // a1 and b1 scheduled for 7: a3 (#11) gives 15, b2 (#13) gives 16; a4 (8, #14) gives 17.
        let a = [handled(5, 3, 11), handled(6, 5, 12), handled(7, 11, 13), handled(8, 12, 14)];
        let b = [handled(5, 4, 12), handled(7, 12, 13)];
        let merge = Merge { logs: &[&a, &b], settled: 10 };
        assert_eq!(merge.settled_after(), 17);
        let final_numbers = |thread| {
            let mut shifts = Vec::new();
            merge.shifts(thread, &mut shifts);
            (11..).zip(shifts).map(|(order, shift): (u64, u64)| order + shift).collect::<Vec<u64>>()
        };
        assert_eq!(final_numbers(0), [11, 14, 15, 17]);
        assert_eq!(final_numbers(1), [12, 13, 16]);
    }

    #[test]
    fn entities_are_visited_once() {
        let mut touched = Touched { noted: vec![4, 1, 4, 4, 1], seen: Vec::new() };
        for noted in [vec![], vec![1, 1]] {
            let mut visited = Vec::new();
            touched.each(|i| visited.push(i));
            assert_eq!(visited, if noted.is_empty() { vec![4, 1] } else { vec![1] });
            touched.noted = vec![1, 1];
        }
    }
}
