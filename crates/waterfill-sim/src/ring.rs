//! First-in-first-out storage in chunks. Items are read and written in sequence, and memory of the longest backlog is
//! released.

use std::collections::VecDeque;

/// Number of items per chunk.
const CHUNK: usize = 32;

/// A queue of items that are pushed at the tail and popped at the head.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Oldest chunk, of which the first `popped` items have been removed.
    head: Vec<T>,
    popped: usize,
    /// Full chunks between the oldest and the newest chunk.
    full: VecDeque<Vec<T>>,
    /// Newest chunk.
    tail: Vec<T>,
    /// Empty chunk that becomes the next tail, so that a ring of constant length allocates nothing.
    spare: Vec<T>,
}

impl<T: Copy> Ring<T> {
    pub(crate) const fn new() -> Self {
        Self { head: Vec::new(), popped: 0, full: VecDeque::new(), tail: Vec::new(), spare: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.head.len() - self.popped + self.full.len() * CHUNK + self.tail.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.popped == self.head.len()
    }

    /// Returns the oldest item.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.head.get(self.popped)
    }

    /// Returns the item at position `index`, counted from the oldest.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let in_head = self.head.len() - self.popped;
        if index < in_head {
            return self.head.get(self.popped + index);
        }
        let behind = index - in_head;
        match self.full.get(behind / CHUNK) {
            Some(chunk) => chunk.get(behind % CHUNK),
            None => self.tail.get(behind - self.full.len() * CHUNK),
        }
    }

    /// Returns the item at position `index`, counted from the oldest, for modification.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let in_head = self.head.len() - self.popped;
        if index < in_head {
            return self.head.get_mut(self.popped + index);
        }
        let behind = index - in_head;
        let in_full = self.full.len() * CHUNK;
        match self.full.get_mut(behind / CHUNK) {
            Some(chunk) => chunk.get_mut(behind % CHUNK),
            None => self.tail.get_mut(behind - in_full),
        }
    }

    /// Returns the newest item for modification, if the ring is not empty.
    #[inline]
    pub(crate) fn newest_mut(&mut self) -> Option<&mut T> {
        if self.tail.is_empty() {
            self.full.back_mut().unwrap_or(&mut self.head).last_mut()
        } else {
            self.tail.last_mut()
        }
    }

    /// Adds an item at the tail.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.is_empty() {
            // The only item is the head's, so that the head is empty only if the ring is.
            self.head.clear();
            self.popped = 0;
            self.head.push(item);
            return;
        }
        if self.tail.len() == CHUNK {
            self.add_chunk();
        }
        self.tail.push(item);
    }

    #[cold]
    fn add_chunk(&mut self) {
        let empty = std::mem::take(&mut self.spare);
        self.full.push_back(std::mem::replace(&mut self.tail, empty));
    }

    /// Removes and returns the oldest item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = *self.front()?;
        self.drop_front();
        Some(item)
    }

    /// Removes the oldest item, if there is one.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        self.popped = (self.popped + 1).min(self.head.len());
        if self.popped == self.head.len() {
            self.next_chunk();
        }
    }

    /// Moves on to the next chunk when the head is used up.
    fn next_chunk(&mut self) {
        self.head.clear();
        self.popped = 0;
        if let Some(next) = self.full.pop_front() {
            self.spare = std::mem::replace(&mut self.head, next);
        } else {
            std::mem::swap(&mut self.head, &mut self.tail);
        }
    }

    /// Removes and returns the newest item.
    pub(crate) fn pop_newest(&mut self) -> Option<T> {
        if self.tail.is_empty() {
            if let Some(chunk) = self.full.pop_back() {
                self.spare = std::mem::replace(&mut self.tail, chunk);
            } else if self.head.len() > self.popped + 1 {
                return self.head.pop();
            } else {
                return self.pop();
            }
        }
        self.tail.pop()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let chunks = [&self.head, &self.tail, &self.spare].into_iter().chain(&self.full);
        chunks.map(|chunk| chunk.capacity() * size_of::<T>()).sum::<usize>()
            + self.full.capacity() * size_of::<Vec<T>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The ring agrees with a plain queue under any sequence of pushes and pops.
        #[test]
        fn agrees_with_a_plain_queue(steps in prop::collection::vec((0..4, 0usize..100), 1..40)) {
            let (mut ring, mut plain, mut next) = (Ring::new(), VecDeque::new(), 0);
            for (action, times) in steps {
                for _ in 0..times {
                    match action {
                        0 | 1 => {
                            next += 1;
                            ring.push(next);
                            plain.push_back(next);
                        }
                        2 => prop_assert_eq!(ring.pop(), plain.pop_front()),
                        _ => prop_assert_eq!(ring.pop_newest(), plain.pop_back()),
                    }
                    prop_assert_eq!((ring.len(), ring.is_empty()), (plain.len(), plain.is_empty()));
                    prop_assert_eq!(ring.front(), plain.front());
                    if !plain.is_empty() {
                        prop_assert_eq!(ring.newest_mut(), plain.back_mut());
                    }
                }
                for index in 0..plain.len() + 2 {
                    prop_assert_eq!(ring.get(index), plain.get(index));
                    prop_assert_eq!(ring.get_mut(index), plain.get_mut(index));
                }
            }
        }
    }

    /// A ring that was full and has emptied keeps three chunks and the list of chunks.
    #[test]
    fn memory_of_the_fullest_time_is_given_back() {
        let mut ring = Ring::new();
        for i in 0..100_000u64 {
            ring.push(i);
        }
        assert!(ring.heap_bytes() >= 800_000);
        while ring.pop().is_some() {}
        for i in 0..1000 {
            ring.push(i);
            ring.pop();
        }
        let list = ring.full.capacity() * size_of::<Vec<u64>>();
        assert!(ring.heap_bytes() - list <= 3 * CHUNK * size_of::<u64>(), "{}", ring.heap_bytes());
        assert!(list < 800_000 / 8, "{list}");
    }
}
