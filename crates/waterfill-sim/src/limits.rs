//! What limits a sender, how long its recoveries take, and how much it sends again.
//!
//! A sender asks at each opportunity to send why it cannot send more. The answer holds until the next opportunity, so
//! only a change of the answer costs anything.

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::summary::LimitedBy;

/// Reason why a sender sends no more than it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The SYN has not been answered.
    Handshake,
    /// As much is in flight as the window allows.
    Window,
    /// The next packet waits for its time.
    Pacing,
    /// The application has written nothing more.
    Application,
    /// Lost packets are repaired: the window allows no more, or nothing has arrived since before a timeout.
    Recovery,
}

const LIMITS: [Limit; 5] = [Limit::Handshake, Limit::Window, Limit::Pacing, Limit::Application, Limit::Recovery];

/// Time that a sender has spent under each limit, within a span of interest.
#[derive(Clone, Debug)]
pub(crate) struct LimitTimes {
    current: Limit,
    /// What came before; allocated when the connection opens.
    before: Option<Box<Past>>,
}

#[derive(Clone, Debug, Default)]
struct Past {
    /// Time of the last change of the limit.
    since: Instant,
    /// Picoseconds by limit, up to `since`.
    spent_ps: [u64; LIMITS.len()],
    recoveries: Recoveries,
    resent_bytes: u64,
    /// Time at which the last packet left, once all data has been acknowledged.
    quiet_since: Option<Instant>,
}

/// Times in picoseconds by limit, of one sender or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitSums([u128; LIMITS.len()]);

impl LimitSums {
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, spent_ps)| *sum += spent_ps);
    }

    /// Returns the share of all time for each limit, or `None` without any time.
    pub(crate) fn shares(&self) -> Option<LimitedBy> {
        let all_ps: u128 = self.0.iter().sum();
        let share = |limit: Limit| self.0[limit as usize] as f64 / all_ps as f64;
        (all_ps > 0).then(|| LimitedBy {
            handshake: share(Limit::Handshake),
            window: share(Limit::Window),
            pacing: share(Limit::Pacing),
            application: share(Limit::Application),
            recovery: share(Limit::Recovery),
        })
    }
}

/// The longest loss recovery of a sender, in RTTs.
#[derive(Clone, Copy, Debug, Default)]
struct Recoveries {
    /// Start and smoothed RTT of the recovery in progress.
    open: Option<(Instant, Duration)>,
    longest: LongestRecovery,
}

/// Duration of the recovery that took the most RTTs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LongestRecovery {
    pub(crate) took: Duration,
    /// `took`, in RTTs as they were at its start or its end, whichever were longer.
    pub(crate) rtts: f64,
}

impl LongestRecovery {
    /// Returns the longer of two, in RTTs.
    pub(crate) fn max(self, other: Self) -> Self {
        if other.rtts > self.rtts { other } else { self }
    }
}

impl LimitTimes {
    pub(crate) const fn new() -> Self {
        Self { current: Limit::Handshake, before: None }
    }

    /// Returns the limit that has applied since the last change.
    #[inline]
    pub(crate) const fn current(&self) -> Limit {
        self.current
    }

    /// Changes the limit at `now`, or at the last change if that was later. Only time in `span` counts.
    #[inline(never)] // keeps the packet path short
    pub(crate) fn change(&mut self, now: Instant, limit: Limit, span: (Instant, Instant)) {
        let past = self.before.get_or_insert_default();
        let now = now.max(past.since);
        past.spent_ps[self.current as usize] += within(span, past.since, now).as_ps();
        (self.current, past.since) = (limit, now);
    }

    /// Returns the time in `span` that each limit has applied.
    pub(crate) fn spent(&self, span: (Instant, Instant)) -> LimitSums {
        let (mut spent_ps, since) = self.before.as_ref().map_or_else(Default::default, |p| (p.spent_ps, p.since));
        spent_ps[self.current as usize] += within(span, since, span.1).as_ps();
        LimitSums(spent_ps.map(u128::from))
    }

    /// Records the start of a loss recovery, unless one is in progress.
    pub(crate) fn start_recovery(&mut self, now: Instant, rtt: Duration) {
        self.before.get_or_insert_default().recoveries.open.get_or_insert((now, rtt));
    }

    /// Records the end of a loss recovery, if one is in progress.
    pub(crate) fn end_recovery(&mut self, now: Instant, rtt: Duration) {
        let longest = self.longest_recovery(now, rtt);
        if let Some(past) = &mut self.before {
            past.recoveries = Recoveries { open: None, longest };
        }
    }

    /// Returns the longest recovery; one in progress counts up to `now`.
    pub(crate) fn longest_recovery(&self, now: Instant, rtt: Duration) -> LongestRecovery {
        let Recoveries { open, longest } = self.before.as_ref().map_or_else(Recoveries::default, |p| p.recoveries);
        let Some((start, before)) = open else { return longest };
        let (took, rtt) = (now.since(start), before.max(rtt));
        let rtts = took.as_ps() as f64 / rtt.as_ps() as f64;
        longest.max(LongestRecovery { took, rtts })
    }

    /// Records that all data is acknowledged, and when the last packet had left.
    pub(crate) fn start_pause(&mut self, last_sent: Instant) {
        self.before.get_or_insert_default().quiet_since = Some(last_sent);
    }

    /// Returns when the last packet left before a pause that ends now, or `NEVER` without one.
    pub(crate) fn end_pause(&mut self) -> Instant {
        let since = self.before.as_mut().and_then(|past| past.quiet_since.take());
        since.unwrap_or(Instant::NEVER)
    }

    /// Counts a retransmission.
    pub(crate) fn count_resent(&mut self, bytes: u16) {
        self.before.get_or_insert_default().resent_bytes += u64::from(bytes);
    }

    pub(crate) fn resent_bytes(&self) -> u64 {
        self.before.as_ref().map_or(0, |past| past.resent_bytes)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.before.as_ref().map_or(0, |_| size_of::<Past>())
    }
}

/// Returns the part of the time between two instants that lies within `span`.
fn within(span: (Instant, Instant), from: Instant, to: Instant) -> Duration {
    to.min(span.1).since(from.max(span.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    #[test]
    fn shares_count_the_time_within_the_span() {
        let span = (at(100), at(200));
        let mut times = LimitTimes::new();
        assert_eq!(times.spent((at(100), at(100))).shares(), None, "no time");
        times.change(at(110), Limit::Window, span);
        times.change(at(150), Limit::Recovery, span);
        times.change(at(170), Limit::Application, span);
        times.change(at(180), Limit::Pacing, span);
        let shares = times.spent(span).shares().unwrap();
        let expected = LimitedBy { handshake: 0.1, window: 0.4, pacing: 0.2, application: 0.1, recovery: 0.2 };
        assert_eq!(shares, expected);
        let early = times.spent((at(100), at(190))).shares().unwrap();
        assert_eq!(early.pacing, 10.0 / 90.0, "of a flow that completed at 190");
    }

    #[test]
    fn a_change_dated_back_counts_no_time_twice() {
        let span = (at(0), at(100));
        let mut times = LimitTimes::new();
        times.change(at(40), Limit::Window, span);
        times.change(at(20), Limit::Recovery, span);
        let shares = times.spent(span).shares().unwrap();
        assert_eq!((shares.handshake, shares.window, shares.recovery), (0.4, 0.0, 0.6));
    }

    #[test]
    fn the_longest_recovery_is_measured_in_rtts() {
        let rtt = Duration::from_ps;
        let mut times = LimitTimes::new();
        times.end_recovery(at(50), rtt(1));
        assert_eq!(times.longest_recovery(at(60), rtt(1)), LongestRecovery::default(), "none has begun");
        times.start_recovery(at(100), rtt(10));
        times.start_recovery(at(120), rtt(10)); // a further signal in the same recovery
        assert_eq!(times.longest_recovery(at(200), rtt(20)), LongestRecovery { took: rtt(100), rtts: 5.0 });
        times.end_recovery(at(140), rtt(8));
        assert_eq!(times.longest_recovery(at(900), rtt(1)), LongestRecovery { took: rtt(40), rtts: 4.0 });
        times.start_recovery(at(200), rtt(100));
        times.end_recovery(at(500), rtt(50));
        assert_eq!(times.longest_recovery(at(900), rtt(1)).rtts, 4.0, "300 ps are 3 of its RTTs");
    }
}
