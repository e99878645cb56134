//! A barrier for threads that meet every few microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Number of polls before a thread sleeps. These polls take about 50 µs, longer than most waits if each thread has a
/// CPU.
const SPINS: u32 = 1_500;

/// Duration of one sleep.
const NAP: Duration = Duration::from_millis(50);

/// Barrier at which threads wait for each other. The barrier spins first, because a wake-up by the kernel can take
/// longer than a window of events.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    /// True if a thread has panicked, so that the others must not wait for it.
    broken: AtomicBool,
    /// Number of threads that sleep until the generation changes.
    sleepers: Mutex<usize>,
    wake: Condvar,
}

impl Barrier {
    pub(super) const fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    /// Waits until every thread has called `wait`, and calls `idle` now and then in the meantime.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub(super) fn wait(&self, idle: impl Fn()) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake_all();
            return;
        }
        let waits = || self.generation.load(Ordering::Acquire) == generation && !self.broken.load(Ordering::Relaxed);
        let mut spins = 0;
        while waits() && spins < SPINS {
            spins += 1;
            std::hint::spin_loop();
        }
        while waits() {
            let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            *sleepers += 1;
            let woken = self.wake.wait_timeout_while(sleepers, NAP, |_| waits());
            let (mut sleepers, nap) = woken.unwrap_or_else(PoisonError::into_inner);
            *sleepers -= 1;
            drop(sleepers); // whoever ends the wait needs it
            if nap.timed_out() {
                idle();
            }
        }
        assert!(!self.broken.load(Ordering::Relaxed), "another thread of this run has panicked");
    }

    /// Wakes the sleeping threads after a change that they wait for.
    fn wake_all(&self) {
        // A thread that is about to sleep holds the lock until it sleeps, so it cannot miss this.
        if *self.sleepers.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            self.wake.notify_all();
        }
    }

    /// Returns a guard that frees the waiting threads if the current one panics.
    pub(super) const fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

/// Guard that frees the threads waiting at a barrier if its own thread panics.
#[derive(Debug)]
pub(super) struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
            self.0.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads step together: none is ever more than one step ahead.
    #[test]
    fn threads_step_together() {
        let (barrier, steps) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for step in 0..200 {
                        assert_eq!(steps.load(Ordering::SeqCst) / 3, step);
                        barrier.wait(|| ());
                        steps.fetch_add(1, Ordering::SeqCst);
                        barrier.wait(|| ());
                    }
                });
            }
        });
        assert_eq!(steps.into_inner(), 600);
    }

    #[test]
    fn a_panic_frees_the_others() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait(|| ()));
            let panics = scope.spawn(|| {
                let _guard = barrier.guard();
                panic!("as the test asks");
            });
            assert!(panics.join().is_err() && waits.join().is_err());
        });
    }
}
