//! Watch that lets the caller of an engine stop a run, even within the engine's longest loops.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant as WallInstant;

/// Wall time in milliseconds between two questions to the caller.
const INTERVAL_MS: u64 = 50;

/// Watch that polls the caller of an engine for a request to stop the run, about twenty times per second of wall time.
///
/// Engines poll it in every loop whose length the user's numbers decide. After the first yes it stays stopped: loops end
/// early, and what the run holds is that of a run cut off. Without a question it never stops, and polling costs nothing.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<Inner>>);

/// Callback that returns true if a run must stop.
type Question = Box<dyn Fn() -> bool + Send + Sync>;

struct Inner {
    stopped: AtomicBool,
    /// Time of the last question, in milliseconds after `since`.
    asked_ms: AtomicU64,
    since: WallInstant,
    /// Thread that asks the caller, because an interpreter handles signals on only one thread.
    owner: Mutex<Option<ThreadId>>,
    question: Question,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.is_stopped()).finish()
    }
}

impl Watch {
    /// Creates a watch that calls `question` on the threads that call [`Watch::ask_here`].
    pub fn new(question: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Inner {
            stopped: AtomicBool::new(false),
            asked_ms: AtomicU64::new(0),
            since: WallInstant::now(),
            owner: Mutex::new(None),
            question: Box::new(question),
        })))
    }

    /// Makes this thread the one that asks the caller from now on. Other threads only receive the answer.
    pub fn ask_here(&self) {
        if let Some(inner) = &self.0 {
            *inner.owner.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current().id());
        }
    }

    /// Returns true if the caller has answered that the run must stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.stopped.load(Ordering::Relaxed))
    }

    /// Returns true if the run must stop. If a question is due and this thread may ask, asks the caller first.
    ///
    /// Asks the caller if the last question was some time ago and this thread is the one that asks.
    #[must_use]
    pub fn poll(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.poll())
    }
}

impl Inner {
    #[cold]
    fn poll(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return true;
        }
        let now_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now_ms < self.asked_ms.load(Ordering::Relaxed).saturating_add(INTERVAL_MS) {
            return false;
        }
        if *self.owner.lock().unwrap_or_else(PoisonError::into_inner) != Some(std::thread::current().id()) {
            return false;
        }
        self.asked_ms.store(now_ms, Ordering::Relaxed);
        let stops = (self.question)();
        if stops {
            self.stopped.store(true, Ordering::Relaxed);
        }
        stops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls a watch for up to 200 ms. Returns true as soon as the watch stops the run.
    fn poll_long(watch: &Watch) -> bool {
        let begun = WallInstant::now();
        while begun.elapsed().as_millis() < 200 {
            if watch.poll() {
                return true;
            }
        }
        false
    }

    #[test]
    fn a_yes_lasts() {
        let watch = Watch::new(|| true);
        assert!(!watch.poll(), "not asked yet");
        assert!(!poll_long(&watch), "no thread asks");
        watch.ask_here();
        assert!(poll_long(&watch) && watch.is_stopped() && watch.clone().poll());
        assert!(!Watch::default().poll());
    }

    #[test]
    fn other_threads_learn_the_answer() {
        let watch = Watch::new(|| true);
        watch.ask_here();
        std::thread::scope(|scope| {
            assert!(!scope.spawn(|| poll_long(&watch)).join().expect("no panic"), "only one thread asks");
            assert!(poll_long(&watch));
            assert!(scope.spawn(|| watch.poll()).join().expect("no panic"));
        });
    }
}
