//! Estimators of each class's number of active flows: three methods behind one call per packet.
//!
//! All methods count packets that carry data. Inspecting a share of them is enough (§6). Which ones is drawn at random:
//! a fixed pattern could synchronise with the flows.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::EstimatorSpec;

use super::exact::Exact;
use super::nred::Nred;
use super::sred::Sred;
use super::{Class, PerClass};

/// Work that an estimator has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Number of packets seen.
    pub(super) seen: u64,
    /// Number of packets inspected.
    pub(super) inspected: u64,
    /// Number of operations on inspected packets, counted as in §6. A zombie list takes two random numbers, an access
    /// and a comparison.
    pub(super) operations: u64,
    /// Number of writes to the estimator's store.
    pub(super) writes: u64,
}

/// Estimator of the number of active flows per class.
#[derive(Debug)]
pub(super) struct Estimator {
    method: Method,
    /// Share of packets inspected, times 2³².
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
            EstimatorSpec::Sred { size, replace, delta, shared, trials } => {
                Method::Sred(Sred::new(size, replace, delta, shared, trials))
            }
            EstimatorSpec::Nred { levels, bins, period_s, hash } => {
                let salts = (0..levels).map(|_| rng.next_u64()).collect();
                Method::Nred(Nred::new(salts, bins, Duration::from_secs(period_s), hash))
            }
        };
        Self { method, inspect: (inspect * (1u64 << 32) as f64).round() as u64, rng, work: Work::default() }
    }

    /// Counts a data packet of this class and flow, if the packet is drawn for inspection.
    pub(super) fn on_packet(&mut self, now: Instant, class: Class, flow: u64) {
        self.work.seen += 1;
        // One random word per packet is enough: half of it decides here, and a zombie list draws from another.
        if self.inspect < 1 << 32 && self.rng.next_u64() >> 32 >= self.inspect {
            return;
        }
        self.work.inspected += 1;
        let (operations, writes) = match &mut self.method {
            Method::Exact(exact) => exact.on_packet(now, class, flow),
            Method::Sred(sred) => sred.on_packet(self.rng.next_u64(), class, flow),
            Method::Nred(nred) => nred.on_packet(now, class, flow),
        };
        self.work.operations += operations;
        self.work.writes += writes;
    }

    /// Returns the estimated number of active flows of each class, or zero while nothing is known.
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

#[cfg(test)]
mod tests {
    use super::*;
    use waterfill_network::random::uniform;
    use waterfill_network::{HashKey, Trials};

    const OWN: EstimatorSpec = sred(0.25, false, Trials::Class);
    const SHARED: EstimatorSpec = sred(0.25, true, Trials::Class);

    const fn sred(replace: f64, shared: bool, trials: Trials) -> EstimatorSpec {
        EstimatorSpec::Sred { size: 1000, replace, delta: replace / 1000.0, shared, trials }
    }

    /// Returns the estimated number of flows per class, and the estimator's work, after `packets` packets. Flows with
    /// the given rates send in random order, one packet per millisecond.
    fn estimate(spec: &EstimatorSpec, inspect: f64, rates: &[(Class, f64)], packets: u32) -> (PerClass<f64>, Work) {
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
            estimator.on_packet(now, rates[flow].0, flow as u64);
        }
        (estimator.flows(now), estimator.work())
    }

    /// Returns the class and rate of each flow, with one rate per class.
    fn flows(explicit: (usize, f64), tcp: (usize, f64)) -> Vec<(Class, f64)> {
        let of = |class, (count, rate)| std::iter::repeat_n((class, rate), count);
        of(Class::Explicit, explicit).chain(of(Class::Tcp, tcp)).collect()
    }

    #[test]
    fn inspecting_half_of_the_packets_halves_the_work() {
        let spec = |replace| sred(replace, false, Trials::Class);
        let rates = flows((10, 1.0), (3, 1.0));
        let (all, every) = estimate(&spec(0.25), 1.0, &rates, 400_000);
        let (half, second) = estimate(&spec(0.5), 0.5, &rates, 400_000);
        assert_eq!((every.seen, every.inspected), (400_000, 400_000));
        assert_eq!(second.seen, 400_000);
        let ratio = second.operations as f64 / every.operations as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        for class in Class::BOTH {
            assert!((half[class] / all[class] - 1.0).abs() < 0.25, "{half:?} {all:?}");
        }
    }

    #[test]
    fn an_estimate_remembers_one_interval() {
        let spec = EstimatorSpec::Exact { period_s: 1.0 };
        let mut estimator = Estimator::new(&spec, 1.0, Pcg64::new(1, 1));
        let at = Instant::from_secs;
        estimator.on_packet(at(0.5), Class::Tcp, 1);
        estimator.on_packet(at(0.6), Class::Tcp, 2);
        assert_eq!(estimator.flows(at(0.7))[Class::Tcp], 2.0, "the current interval counts at once");
        estimator.on_packet(at(1.5), Class::Tcp, 1);
        assert_eq!(estimator.flows(at(1.9))[Class::Tcp], 2.0, "the last interval's count is larger");
        assert_eq!(estimator.flows(at(2.1))[Class::Tcp], 1.0);
        assert_eq!(estimator.flows(at(4.1))[Class::Tcp], 0.0);
    }

    #[test]
    fn a_zombie_list_counts_flows_of_equal_rates() {
        // The standard deviation of P is √(P (1 − P) δ/2), 3.4 % of P for ten flows; the tolerance is five of them.
        let found = estimate(&OWN, 1.0, &flows((10, 1.0), (3, 1.0)), 200_000).0;
        assert!((found[Class::Explicit] - 10.0).abs() < 1.7, "{found:?}");
        assert!((found[Class::Tcp] - 3.0).abs() < 0.3, "{found:?}");
    }

    /// With one table per class, a TCP rate ten times the explicit rate does not change the estimates.
    #[test]
    fn classes_of_unequal_rates_need_one_zombie_list_each() {
        let rates = flows((10, 1.0), (3, 10.0));
        let own = estimate(&OWN, 1.0, &rates, 400_000).0;
        assert!((own[Class::Explicit] - 10.0).abs() < 1.7, "{own:?}");
        assert!((own[Class::Tcp] - 3.0).abs() < 0.3, "{own:?}");
        // One table: 10/(10/40) = 40 explicit flows, and 3/(30/40) = 4 TCP flows.
        let shared = estimate(&SHARED, 1.0, &rates, 400_000).0;
        assert!((shared[Class::Explicit] - 40.0).abs() < 12.0, "{shared:?}");
        assert!((shared[Class::Tcp] - 4.0).abs() < 0.4, "{shared:?}");
    }

    /// An average over the packets of both classes raises the estimates by factors of 4 and 4/3.
    #[test]
    fn an_average_over_all_packets_counts_each_class_by_its_share() {
        let rates = flows((10, 1.0), (3, 10.0));
        let own = estimate(&sred(0.25, false, Trials::All), 1.0, &rates, 400_000).0;
        assert!((own[Class::Explicit] - 40.0).abs() < 12.0 && (own[Class::Tcp] - 4.0).abs() < 0.4, "{own:?}");
        let shared = estimate(&sred(0.25, true, Trials::All), 1.0, &rates, 400_000).0;
        assert!((shared[Class::Explicit] - 160.0).abs() < 60.0, "{shared:?}");
        assert!((shared[Class::Tcp] - 16.0 / 3.0).abs() < 0.5, "{shared:?}");
    }

    /// The standard deviation of P is √(P (1 − P) δ/2), so a δ 16 times as large gives a deviation four times as large.
    #[test]
    fn delta_sets_how_much_the_estimate_varies() {
        let spread = |delta| {
            let spec = EstimatorSpec::Sred { size: 1000, replace: 0.25, delta, shared: false, trials: Trials::Class };
            let counts = (1..=40).map(|i| estimate(&spec, 1.0, &flows((10, 1.0), (1, 1.0)), 20_000 + 500 * i).0);
            counts.map(|count| (count[Class::Explicit] / 10.0 - 1.0).abs()).sum::<f64>() / 40.0
        };
        let (slow, quick) = (spread(0.000_25), spread(0.004));
        assert!(quick > 2.0 * slow && quick < 8.0 * slow, "{slow} {quick}");
    }

    /// Ten successive connections between the same two hosts count as one address pair.
    #[test]
    fn address_pairs_count_successive_connections_once() {
        let count = |hash| {
            let spec = EstimatorSpec::Nred { levels: 4, bins: 4096, period_s: 2.0, hash };
            let mut estimator = Estimator::new(&spec, 1.0, Pcg64::new(7, 3));
            for incarnation in 0..10 {
                estimator.on_packet(Instant::from_secs(0.1), Class::Tcp, 5 | incarnation << 32);
            }
            estimator.flows(Instant::from_secs(0.2))[Class::Tcp]
        };
        assert_eq!((count(HashKey::Flow), count(HashKey::Pair)), (10.0, 1.0));
    }

    /// For four flows with rates 1, 2, 3 and 4, the estimate 1/Σ s² is (1 + 2 + 3 + 4)²/30 = 3.33.
    #[test]
    fn a_zombie_list_underestimates_flows_of_unequal_rates() {
        let mut rates = flows((10, 1.0), (0, 0.0));
        rates.extend([1.0, 2.0, 3.0, 4.0].map(|rate| (Class::Tcp, rate)));
        let found = estimate(&OWN, 1.0, &rates, 200_000).0;
        assert!((found[Class::Tcp] - 100.0 / 30.0).abs() < 0.3, "{found:?}");
    }

    #[test]
    fn a_zombie_list_knows_nothing_before_its_table_is_full() {
        assert_eq!(estimate(&OWN, 1.0, &flows((1, 1.0), (0, 0.0)), 1000).0[Class::Explicit], 0.0);
        assert_eq!(estimate(&OWN, 1.0, &flows((1, 1.0), (0, 0.0)), 1001).0[Class::Explicit], 1.0);
    }
}
