//! How many flows of each class are active: three ways to count, behind one call a packet.
//!
//! All count what carries data. Only a share of the packets need be inspected (§6); which ones is drawn, for a fixed
//! pattern could fall in step with the flows.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::EstimatorSpec;

use super::exact::Exact;
use super::nred::Nred;
use super::sred::Sred;
use super::{Class, PerClass};

/// Work done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Packets seen.
    pub(crate) seen: u64,
    /// Packets inspected.
    pub(crate) inspected: u64,
    /// Operations on them, as §6 counts: for a zombie list two random numbers, an access and a comparison.
    pub(crate) operations: u64,
    /// Writes to the store.
    pub(crate) writes: u64,
}

/// A counter of flows.
#[derive(Debug)]
pub(super) struct Estimator {
    method: Method,
    /// Of 2³²: the share of packets inspected.
    inspect: u64,
    rng: Pcg64,
    work: Work,
}

#[derive(Debug)]
enum Method {
    Exact(Exact),
    Sred(Sred),
    Nred(Nred),
}

impl Estimator {
    pub(super) fn new(spec: &EstimatorSpec, inspect: f64, mut rng: Pcg64) -> Self {
        let method = match *spec {
            EstimatorSpec::Exact { period_s } => Method::Exact(Exact::new(Duration::from_secs(period_s))),
            EstimatorSpec::Sred { size, replace, shared } => Method::Sred(Sred::new(size, replace, shared)),
            EstimatorSpec::Nred { levels, bins, period_s } => {
                let salts = (0..levels).map(|_| rng.next_u64()).collect();
                Method::Nred(Nred::new(salts, bins, Duration::from_secs(period_s)))
            }
        };
        Self { method, inspect: (inspect * (1u64 << 32) as f64).round() as u64, rng, work: Work::default() }
    }

    /// A packet that carries data of this class and flow.
    pub(super) fn sees(&mut self, now: Instant, class: Class, flow: u64) {
        self.work.seen += 1;
        // One word of chance is enough for a packet: half of it decides here, a zombie list draws from another.
        if self.inspect < 1 << 32 && self.rng.next_u64() >> 32 >= self.inspect {
            return;
        }
        self.work.inspected += 1;
        let (operations, writes) = match &mut self.method {
            Method::Exact(exact) => exact.sees(now, class, flow),
            Method::Sred(sred) => sred.sees(self.rng.next_u64(), class, flow),
            Method::Nred(nred) => nred.sees(now, class, flow),
        };
        self.work.operations += operations;
        self.work.writes += writes;
    }

    /// Active flows of each class; zero where none is known.
    pub(super) fn flows(&mut self, now: Instant) -> PerClass<f64> {
        match &mut self.method {
            Method::Exact(exact) => exact.flows(now),
            Method::Sred(sred) => sred.flows(),
            Method::Nred(nred) => nred.flows(now),
        }
    }

    pub(super) const fn work(&self) -> Work {
        self.work
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match &self.method {
            Method::Exact(exact) => exact.heap_bytes(),
            Method::Sred(sred) => sred.heap_bytes(),
            Method::Nred(nred) => nred.heap_bytes(),
        }
    }
}

/// A count over measurement intervals: what the last one found, or more if this one already has.
#[derive(Debug)]
pub(super) struct Periods {
    length: Duration,
    ends: Instant,
    /// Of the last whole interval.
    before: PerClass<u32>,
    /// Of this one so far.
    pub(super) running: PerClass<u32>,
}

impl Periods {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, ends: Instant::ZERO + length, before: PerClass::default(), running: PerClass::default() }
    }

    /// Whether a new interval has begun; intervals in which nothing came are passed over.
    pub(super) fn turn(&mut self, now: Instant) -> bool {
        if now < self.ends {
            return false;
        }
        let late = now.since(self.ends);
        self.before = if late < self.length { self.running } else { PerClass::default() };
        self.running = PerClass::default();
        // The intervals stay where they are in time.
        self.ends = now + (self.length - Duration::from_ps(late.as_ps() % self.length.as_ps()));
        true
    }

    pub(super) fn flows(&self) -> PerClass<f64> {
        PerClass::from_fn(|class| f64::from(self.before[class].max(self.running[class])))
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// What an estimator says of flows whose packets come in random order, in proportion to their rates: after
    /// `packets` packets, a millisecond apart.
    pub(in super::super) fn estimate(
        spec: &EstimatorSpec,
        inspect: f64,
        rates: &[(Class, f64)],
        packets: u32,
    ) -> (PerClass<f64>, Work) {
        use waterfill_network::random::uniform;
        let mut estimator = Estimator::new(spec, inspect, Pcg64::new(7, 3));
        let mut rng = Pcg64::new(1, 1);
        let total: f64 = rates.iter().map(|r| r.1).sum();
        let mut now = Instant::ZERO;
        for _ in 0..packets {
            now += Duration::from_millis(1);
            let mut at = uniform(&mut rng) * total;
            let drawn = rates.iter().position(|r| {
                at -= r.1;
                at < 0.0
            });
            let flow = drawn.unwrap_or(rates.len() - 1);
            estimator.sees(now, rates[flow].0, flow as u64);
        }
        (estimator.flows(now), estimator.work())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::estimate;
    use super::*;

    #[test]
    fn half_of_the_packets_is_half_of_the_work() {
        let spec = |replace| EstimatorSpec::Sred { size: 1000, replace, shared: false };
        let rates: Vec<(Class, f64)> =
            (0..13).map(|i| (if i < 10 { Class::Explicit } else { Class::Tcp }, 1.0)).collect();
        let (all, every) = estimate(&spec(0.25), 1.0, &rates, 400_000);
        let (half, second) = estimate(&spec(0.5), 0.5, &rates, 400_000);
        assert_eq!((every.seen, every.inspected), (400_000, 400_000));
        assert_eq!(second.seen, 400_000);
        let ratio = second.operations as f64 / every.operations as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        for class in [Class::Explicit, Class::Tcp] {
            assert!((half[class] / all[class] - 1.0).abs() < 0.25, "{half:?} {all:?}");
        }
    }

    #[test]
    fn an_interval_forgets_the_one_before_the_last() {
        let spec = EstimatorSpec::Exact { period_s: 1.0 };
        let mut estimator = Estimator::new(&spec, 1.0, Pcg64::new(1, 1));
        let at = Instant::from_secs;
        estimator.sees(at(0.5), Class::Tcp, 1);
        estimator.sees(at(0.6), Class::Tcp, 2);
        assert_eq!(estimator.flows(at(0.7))[Class::Tcp], 2.0, "at once");
        estimator.sees(at(1.5), Class::Tcp, 1);
        assert_eq!(estimator.flows(at(1.9))[Class::Tcp], 2.0, "the last interval's");
        assert_eq!(estimator.flows(at(2.1))[Class::Tcp], 1.0);
        assert_eq!(estimator.flows(at(4.1))[Class::Tcp], 0.0);
    }
}
