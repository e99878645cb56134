//! First-in-first-out queue of waiting frames, in one block of memory that is allocated once.

use std::collections::VecDeque;

use super::sys::Nanos;

/// Queue of frames in the order of arrival. Each frame is contiguous in memory.
#[derive(Debug)]
pub struct Store {
    bytes: Box<[u8]>,
    frames: VecDeque<Held>,
    /// Offset at which the next frame is stored if it fits before the end.
    head: usize,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    due: Nanos,
    start: usize,
    len: usize,
}

impl Store {
    /// Creates a queue with `capacity` bytes for frames.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let frames = VecDeque::with_capacity(capacity / 256);
        Self { bytes: vec![0; capacity].into_boxed_slice(), frames, head: 0 }
    }

    /// Appends a frame. Returns false if there is no space for it.
    pub fn push(&mut self, due: Nanos, frame: &[u8]) -> bool {
        let Some(start) = self.free_space(frame.len()) else { return false };
        self.bytes[start..start + frame.len()].copy_from_slice(frame);
        self.frames.push_back(Held { due, start, len: frame.len() });
        self.head = start + frame.len();
        true
    }

    /// Returns the offset of `len` contiguous free bytes after the newest frame or at the start of the memory. Returns
    /// `None` if there is no such space.
    fn free_space(&self, len: usize) -> Option<usize> {
        let size = self.bytes.len();
        match self.frames.front() {
            None => (len <= size).then_some(0),
            // The oldest frame is at or after the head, and the space between is free. Equal means full.
            Some(oldest) if oldest.start >= self.head => (self.head + len <= oldest.start).then_some(self.head),
            Some(_) if self.head + len <= size => Some(self.head),
            Some(oldest) => (len <= oldest.start).then_some(0),
        }
    }

    /// Returns the time at which the `i`-th oldest frame is due, and the frame. Returns `None` if fewer frames wait.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<(Nanos, &[u8])> {
        self.frames.get(i).map(|held| (held.due, &self.bytes[held.start..held.start + held.len]))
    }

    /// Removes the oldest frame.
    pub fn pop(&mut self) {
        self.frames.pop_front();
    }

    /// Returns the number of waiting frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if no frame waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_in_order_and_unchanged_when_the_memory_wraps() {
        let mut store = Store::new(1000);
        let mut expected = VecDeque::new();
        let mut state = 1u32;
        for n in 0..10_000u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let frame = vec![n as u8; 1 + (state >> 24) as usize];
            while !store.push(Nanos::new(u64::from(n)), &frame) {
                let (due, want): (u64, Vec<u8>) = expected.pop_front().expect("an empty store has space");
                assert_eq!(store.get(0), Some((Nanos::new(due), want.as_slice())));
                store.pop();
            }
            expected.push_back((u64::from(n), frame));
            assert_eq!(store.len(), expected.len());
        }
        for (i, (due, want)) in expected.iter().enumerate() {
            assert_eq!(store.get(i), Some((Nanos::new(*due), want.as_slice())));
        }
    }

    #[test]
    fn a_full_store_refuses_frames() {
        let mut store = Store::new(100);
        assert!(store.push(Nanos::new(0), &[1; 50]));
        assert!(store.push(Nanos::new(1), &[2; 50]));
        assert!(!store.push(Nanos::new(2), &[3; 1]));
        store.pop();
        assert!(store.push(Nanos::new(3), &[4; 50]));
        assert!(!store.push(Nanos::new(4), &[5; 1]));
        assert!(!Store::new(100).push(Nanos::new(0), &[0; 101]));
    }
}
