//! Wall time and CPU time of a piece of work.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Duration of a piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds {
    /// Wall time.
    pub(crate) wall: f64,
    /// CPU time of this process, all threads: on a busy host less noisy than wall time.
    pub(crate) cpu: f64,
}

/// Runs `work`; returns its result and how long it took.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Seconds) {
    let (wall, cpu_s) = (Instant::now(), cpu_s());
    let result = work();
    (result, Seconds { wall: wall.elapsed().as_secs_f64(), cpu: self::cpu_s() - cpu_s })
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a process has a CPU clock");
    Duration::from(time).as_secs_f64()
}
