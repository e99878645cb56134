//! Traffic sources: packets without congestion control, and arrivals of finite flows.
//!
//! Each source owns one random stream and draws one number per gap, period or size. Arriving flows occupy slots of two
//! hosts. When one finishes, the source's next flow on its route takes its slot: memory grows with the
//! number of concurrent flows, and by a row of [`ARRIVAL_COLUMNS`](waterfill_network::series::ARRIVAL_COLUMNS) for each
//! that has finished.
//!
//! The two hosts of a slot may be in different parts of the network. A part with senders of a source draws all of its
//! arrivals, which depend on nothing but its stream, and starts those that begin in the part. The first packet of a flow
//! tells the other part what its receiver must know. Neither part reads the other's host.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::distribution::{Sampler, exponential};
use waterfill_network::histogram::Histogram;
use waterfill_network::random::uniform;
use waterfill_network::{ArrivalSpec, FlowSpec, TrafficKind, TrafficSpec};

use crate::binding::FlowProtocol;
use crate::flow::{HostAccess, Route};
use crate::limits::{LimitSums, LongestRecovery};
use crate::receiver::Receiver;
use crate::sender::Sender;

/// First random stream of traffic sources, beyond the streams of links.
const STREAMS: u128 = u128::from_be_bytes(*b"\0\0\0\0\0\0\0\0\0traffic");

/// Tick of the histogram of completion times: 1 ns, far finer than the histogram's resolution of 1/64.
const TICK_PS: u64 = 1000;

/// A source of packets or of flows.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    /// Size of the source's packets, in bytes.
    pub(crate) packet_bytes: u16,
    /// Start of the packets' path in the list of all paths.
    pub(crate) path: u32,
    process: Process,
    rng: Pcg64,
    /// Time at which the source next sends a packet or starts a flow.
    pub(crate) next: Instant,
    pub(crate) stop: Instant,
    /// Measurement window of the summary, limited to the source's lifetime.
    pub(crate) counted: (Instant, Instant),
    /// Number of packets sent, without the packets of flows.
    pub(crate) sent: u64,
    /// Number of packets received, including the packets of flows.
    pub(crate) received: u64,
    /// Number of bytes received in the measurement window.
    pub(crate) bytes_counted: u64,
    /// Number of bytes received.
    pub(crate) bytes_total: u64,
    /// State of the flows, for a source of flows.
    pub(crate) web: Option<Box<WebFlows>>,
    /// Index of the access link, for a source of packets.
    pub(crate) access: Option<u32>,
    /// True if another part draws the same arrivals and counts them as events.
    pub(crate) is_copy: bool,
}

/// Arrival process of a source's packets or flows.
#[derive(Clone, Debug)]
enum Process {
    /// One packet per interval.
    Constant(Duration),
    /// Exponential gaps with this mean, in seconds.
    Poisson(f64),
    /// Given times.
    Times(std::vec::IntoIter<f64>),
    /// One packet per interval during on-periods.
    OnOff { interval: Duration, on: Sampler, off: Sampler, on_until: Instant },
}

/// Common properties of a source's flows, and the totals of those with a host in this part.
#[derive(Clone, Debug)]
pub(crate) struct WebFlows {
    pub(crate) law: FlowProtocol,
    /// Specification of the newest flow. Flows differ in size only.
    pub(crate) flow: FlowSpec,
    pub(crate) routes: SourceRoutes,
    /// Groups of routes, as ranges of `order`.
    groups: Vec<Range<usize>>,
    /// Indices of all routes. Drawing routes reorders the indices of their group.
    order: Vec<u32>,
    /// Number of flows that start at each arrival.
    pub(crate) fan_in: u32,
    sizes: Sampler,
    /// Number of the hosts of the first slot of the first route, and the distance between two slots of a route. Other
    /// sources' flows must not change the numbers.
    pub(crate) numbers: (u32, u32),
    /// Number of flows that the source has started, in all parts.
    pub(crate) started: u64,
    /// Number of flows whose sender is in this part and has not finished.
    pub(crate) open: u64,
    pub(crate) finished: FlowTotals,
}

/// Parts of the network where each route begins and ends.
type RouteParts = Arc<[(usize, usize)]>;

/// The routes of a traffic source's flows.
#[derive(Clone, Debug)]
pub(crate) struct SourceRoutes {
    /// All routes, each with its base RTT.
    all: Arc<[(Route, Duration)]>,
    /// This part of the network, and the parts where each route begins and ends; `None` if one part has all.
    places: Option<(usize, RouteParts)>,
    /// Routes that have had a flow, by their indices: those that begin in this part, and those that end there.
    begin: BTreeMap<u32, RouteBegin>,
    end: BTreeMap<u32, RouteEnd>,
}

/// A route of a traffic source in the part of its sending hosts.
#[derive(Clone, Debug)]
pub(crate) struct RouteBegin {
    pub(crate) route: Route,
    pub(crate) base_rtt: Duration,
    /// Senders whose flows have finished.
    pub(crate) free: Vec<u32>,
    /// Number of senders.
    pub(crate) slots: u32,
}

/// A route of a traffic source in the part of its receiving hosts.
#[derive(Clone, Debug)]
pub(crate) struct RouteEnd {
    pub(crate) route: Route,
    /// Receiver of each slot, if the slot has had a flow whose first packet has arrived.
    pub(crate) receivers: Vec<Option<u32>>,
}

/// Totals over a source's flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowTotals {
    pub(crate) packets_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) payload_counted: u64,
    pub(crate) completed: u64,
    pub(crate) resent_bytes: u64,
    /// Number of data packets that reached a receiver again.
    pub(crate) duplicates: u64,
    pub(crate) limits: LimitSums,
    pub(crate) longest_recovery: LongestRecovery,
}

/// Statistics of completion times, in memory that does not grow with the number of flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompletionTimes {
    ticks: Histogram,
    pub(crate) count: u64,
    sum_ps: u128,
    max: Duration,
}

impl Traffic {
    pub(crate) fn new(spec: &TrafficSpec, index: u32, seed: u64, measure: (Instant, Instant)) -> Self {
        let (start, stop) = (Instant::from_secs(spec.start_s), Instant::from_secs(spec.stop_s));
        let process = Process::new(spec);
        let mut traffic = Self {
            packet_bytes: spec.packet_bytes,
            path: 0,
            process,
            rng: Pcg64::new(u128::from(seed), STREAMS + u128::from(index)),
            next: start,
            stop,
            counted: (measure.0.max(start), measure.1.min(stop)),
            sent: 0,
            received: 0,
            bytes_counted: 0,
            bytes_total: 0,
            web: None,
            access: None,
            is_copy: false,
        };
        match &mut traffic.process {
            Process::Constant(_) => {}
            Process::Poisson(_) | Process::Times(_) => traffic.step(),
            Process::OnOff { on, on_until, .. } => {
                *on_until = start + draw_time(on, &mut traffic.rng);
                traffic.skip_off();
            }
        }
        traffic
    }

    /// Returns the source's counters for a part of the network in which it does not send.
    pub(crate) fn elsewhere(&self) -> Self {
        let process = Process::Constant(Duration::MAX);
        Self { process, rng: self.rng.clone(), next: Instant::NEVER, web: None, ..*self }
    }

    /// Returns the source for a part of the network, with the routes that begin or end there. `route_parts` gives the parts
    /// where each route begins and ends. The first part with senders counts the arrivals.
    pub(crate) fn for_part(&mut self, part: usize, route_parts: &[(usize, usize)]) -> Self {
        let mut there = self.elsewhere();
        let Some(web) = &self.web else { return there };
        let (begins, ends) =
            (route_parts.iter().any(|&(from, _)| from == part), route_parts.iter().any(|&(_, to)| to == part));
        if begins {
            (there.process, there.next, there.is_copy) = (self.process.clone(), self.next, self.is_copy);
            self.is_copy = true; // in the parts that follow
        }
        if begins || ends {
            let order = if begins { web.order.clone() } else { Vec::new() };
            there.web = Some(Box::new(WebFlows {
                law: web.law.clone(),
                flow: web.flow.clone(),
                routes: SourceRoutes {
                    all: Arc::clone(&web.routes.all),
                    places: Some((part, route_parts.into())),
                    begin: BTreeMap::new(),
                    end: BTreeMap::new(),
                },
                groups: web.groups.clone(),
                order,
                sizes: web.sizes.clone(),
                finished: FlowTotals::default(),
                ..**web
            }));
        }
        there
    }

    /// Returns true if the source's next event is before its stop time.
    pub(crate) fn is_on(&self) -> bool {
        self.next < self.stop
    }

    /// Advances `next` to the time of the following packet or arrival.
    pub(crate) fn step(&mut self) {
        match &mut self.process {
            Process::Times(times) => self.next = times.next().map_or(Instant::NEVER, Instant::from_secs),
            Process::Constant(interval) => self.next += *interval,
            Process::Poisson(mean_s) => {
                self.next += Duration::from_secs(exponential(*mean_s, uniform(&mut self.rng)));
            }
            Process::OnOff { interval, .. } => {
                self.next += *interval;
                self.skip_off();
            }
        }
    }

    /// Moves `next` out of the off-periods.
    ///
    /// The clock of an on–off source stops while it is off: the rest of an interval at the end of one on-period is
    /// waited for in the next. So the mean rate is exact however short the periods are.
    fn skip_off(&mut self) {
        let Process::OnOff { on, off, on_until, .. } = &mut self.process else { return };
        while *on_until <= self.next && self.next < self.stop {
            let left = self.next.since(*on_until);
            let on_from = *on_until + draw_time(off, &mut self.rng);
            *on_until = on_from + draw_time(on, &mut self.rng);
            self.next = on_from + left;
        }
    }

    /// Counts a packet of the source, or of one of its flows, at the end of its path.
    pub(crate) fn receive(&mut self, now: Instant, bytes: u16) {
        self.received += 1;
        self.bytes_total += u64::from(bytes);
        if self.counted.0 <= now && now <= self.counted.1 {
            self.bytes_counted += u64::from(bytes);
        }
    }

    /// Draws the group of routes of an arrival.
    pub(crate) fn draw_group(&mut self) -> Range<usize> {
        let Some(web) = &self.web else { return 0..0 };
        match &web.groups[..] {
            [only] => only.clone(),
            groups => groups[(uniform(&mut self.rng) * groups.len() as f64) as usize].clone(),
        }
    }

    /// Draws a route in a group, distinct from those drawn for the arrival's earlier flows. Returns the route's index.
    pub(crate) fn draw_route(&mut self, group: &Range<usize>, number: u32) -> u32 {
        let Some(web) = &mut self.web else { return 0 };
        let first = group.start + number as usize;
        if group.end - first > 1 {
            let among = (group.end - first) as f64;
            let drawn = first + (uniform(&mut self.rng) * among) as usize;
            web.order.swap(first, drawn);
        }
        web.order[first]
    }

    /// Draws the size of the next flow, in bytes of payload.
    pub(crate) fn draw_size(&mut self) -> u64 {
        let u = uniform(&mut self.rng);
        self.web.as_ref().map_or(1, |web| web.sizes.quantile(u).round().max(1.0) as u64)
    }
}

impl Process {
    fn new(spec: &TrafficSpec) -> Self {
        let bits = f64::from(spec.packet_bytes) * 8.0;
        let interval = |bps| Rate::from_bps(bps).time_for(u32::from(spec.packet_bytes)).max(Duration::from_ps(1));
        match (&spec.flows, spec.rate_bps, &spec.periods) {
            (Some(flows), _, _) if !flows.at_s.is_empty() => Self::Times(flows.at_s.clone().into_iter()),
            (Some(flows), _, _) => Self::Poisson(1.0 / flows.arrivals_per_s),
            (None, Some(bps), Some(periods)) => Self::OnOff {
                interval: interval(bps),
                on: periods.on_s.sampler(),
                off: periods.off_s.sampler(),
                on_until: Instant::ZERO,
            },
            (None, Some(bps), None) if spec.kind == TrafficKind::Poisson => Self::Poisson(bits / bps),
            (None, bps, _) => Self::Constant(bps.map_or(Duration::MAX, interval)),
        }
    }
}

impl WebFlows {
    /// Prepares a source of flows, which may send until the end of the run.
    pub(crate) fn new(
        spec: &ArrivalSpec,
        law: FlowProtocol,
        routes: Vec<(Route, Duration)>,
        numbers: (u32, u32),
        until: Instant,
    ) -> Self {
        let sizes = spec.group_sizes();
        let groups = sizes.into_iter().scan(0, |end, len| {
            *end += len;
            Some(*end - len..*end)
        });
        Self {
            law,
            flow: FlowSpec { stop_s: until.as_secs(), ..spec.flow.clone() },
            order: (0..routes.len() as u32).collect(),
            routes: SourceRoutes { all: routes.into(), places: None, begin: BTreeMap::new(), end: BTreeMap::new() },
            numbers,
            groups: groups.collect(),
            fan_in: spec.fan_in,
            sizes: spec.sizes_bytes.sampler(),
            started: 0,
            open: 0,
            finished: FlowTotals::default(),
        }
    }
}

impl SourceRoutes {
    /// Returns the state of a route where it begins, or `None` if that is in another part.
    pub(crate) fn begin(&mut self, route: u32) -> Option<&mut RouteBegin> {
        if self.places.as_ref().is_some_and(|(part, of)| of[route as usize].0 != *part) {
            return None;
        }
        let &(known, base_rtt) = self.all.get(route as usize)?;
        let new = || RouteBegin { route: known, base_rtt, free: Vec::new(), slots: 0 };
        Some(self.begin.entry(route).or_insert_with(new))
    }

    /// Returns the state of a route where it ends, or `None` if that is in another part or there is no such route.
    pub(crate) fn end(&mut self, route: u32) -> Option<&mut RouteEnd> {
        if self.places.as_ref().is_some_and(|(part, of)| of.get(route as usize).is_none_or(|(_, to)| to != part)) {
            return None;
        }
        let &(known, _) = self.all.get(route as usize)?;
        Some(self.end.entry(route).or_insert_with(|| RouteEnd { route: known, receivers: Vec::new() }))
    }

    /// Returns all routes, each with its base RTT.
    pub(crate) fn all(&self) -> &[(Route, Duration)] {
        &self.all
    }

    /// Replaces the way to the first link of each route, given the part where the route begins.
    pub(crate) fn change_entries(&mut self, entry: impl Fn(usize, HostAccess) -> HostAccess) {
        let Some((_, places)) = &self.places else { return };
        if self.all.iter().all(|(route, _)| matches!(route.entry, HostAccess::Ideal)) {
            return;
        }
        let moved = |(&(route, base_rtt), &(begins, _)): (&(Route, Duration), &(usize, usize))| {
            (Route { entry: entry(begins, route.entry), ..route }, base_rtt)
        };
        self.all = self.all.iter().zip(&places[..]).map(moved).collect();
    }
}

impl FlowTotals {
    /// Adds the counts of a flow's sender until now.
    pub(crate) fn add_sender(&mut self, sender: &Sender, now: Instant) {
        self.packets_sent += sender.packets_sent();
        self.retransmissions += sender.retransmissions;
        self.timeouts += sender.timeouts;
        self.resent_bytes += sender.resent_bytes();
        self.limits.add(&sender.limit_times(now));
        self.longest_recovery = self.longest_recovery.max(sender.longest_recovery(now));
    }

    /// Adds the counts of a flow's receiver.
    pub(crate) fn add_receiver(&mut self, receiver: &Receiver) {
        self.payload_counted += receiver.payload_counted;
        self.completed += u64::from(receiver.completed().is_some());
        self.duplicates += receiver.duplicates;
    }

    /// Adds the totals of another part.
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets_sent += other.packets_sent;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.payload_counted += other.payload_counted;
        self.completed += other.completed;
        self.resent_bytes += other.resent_bytes;
        self.duplicates += other.duplicates;
        self.limits.add(&other.limits);
        self.longest_recovery = self.longest_recovery.max(other.longest_recovery);
    }
}

impl CompletionTimes {
    pub(crate) fn add(&mut self, took: Duration) {
        self.ticks.add(took.as_ps() / TICK_PS, 1);
        self.count += 1;
        self.sum_ps += u128::from(took.as_ps());
        self.max = self.max.max(took);
    }

    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ps as f64 * 1e-12 / self.count as f64)
    }

    pub(crate) fn max_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max.as_secs())
    }

    /// Returns a quantile of the completion times in seconds, to within 1/64 and not above the maximum.
    pub(crate) fn quantile_s(&self, q: f64) -> Option<f64> {
        let ticks = self.ticks.quantile(q)?;
        Some((ticks * TICK_PS as f64 * 1e-12).min(self.max.as_secs()))
    }
}

pub(crate) fn draw_time(from: &Sampler, rng: &mut Pcg64) -> Duration {
    Duration::from_secs(from.quantile(uniform(rng)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;
    use waterfill_network::{Distribution, PeriodSpec};

    /// Returns a source of 8 Mbit/s in packets of 1000 bytes, one per millisecond.
    fn source(kind: TrafficKind, index: u32, periods: Option<PeriodSpec>) -> Traffic {
        let span = [1, 1_000_000].map(|s| Duration::from_millis(1000 * s));
        let cbr = TrafficSpec::cbr("t", &[0], Rate::from_bps(8e6), span);
        let spec = TrafficSpec { kind, packet_bytes: 1000, periods, ..cbr };
        Traffic::new(&spec, index, 1, (Instant::ZERO, Instant::NEVER))
    }

    fn on_off(on_s: Distribution, off_s: Distribution) -> Traffic {
        source(TrafficKind::OnOff, 0, Some(PeriodSpec { on_s, off_s }))
    }

    fn constant(mean: f64) -> Distribution {
        Distribution::Constant { mean }
    }

    fn times(traffic: &mut Traffic, count: usize) -> Vec<f64> {
        let next = |_| {
            let time = traffic.next.as_secs();
            traffic.step();
            time
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_variance_of_an_exponential() {
        let n = 1_000_000;
        let at = times(&mut source(TrafficKind::Poisson, 0, None), n + 1);
        let gaps: Vec<f64> = at.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / n as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n as f64;
        // The standard deviations are 1/√n = 0.1 % and √(8/n) = 0.28 %; the tolerances are four of them.
        assert_close(mean, 1e-3, 0.004);
        assert_close(variance, 1e-6, 0.0113);
        let longer = gaps.iter().filter(|&&gap| gap > 2e-3).count() as f64 / n as f64;
        assert_close(longer, (-2f64).exp(), 0.01); // √((1 − p) / np) = 0.25 %
        assert!(at[0] > 1.0, "the first packet comes after a gap too");
    }

    /// The variance of counts per second equals their mean, and two sources are uncorrelated.
    #[test]
    fn poisson_sources_are_independent() {
        let counts = |index| {
            let mut counts = vec![0.0; 2000];
            for at in times(&mut source(TrafficKind::Poisson, index, None), 2_100_000) {
                if let Some(count) = counts.get_mut(at as usize - 1) {
                    *count += 1.0;
                }
            }
            counts
        };
        let deviations = |counts: &[f64]| {
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            counts.iter().map(|c| c - mean).collect::<Vec<f64>>()
        };
        let [a, b] = [0, 1].map(|index| deviations(&counts(index)));
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() / a.len() as f64;
        // Both are means of 2,000 products: standard deviations √(2/2000) = 3.2 % and 2.2 % of 1000.
        assert_close(product(&a, &a), 1000.0, 0.13);
        assert!(product(&a, &b).abs() < 90.0, "{}", product(&a, &b));
    }

    #[test]
    fn a_constant_source_sends_at_its_interval() {
        assert_eq!(times(&mut source(TrafficKind::Cbr, 0, None), 3), [1.0, 1.001, 1.002]);
    }

    /// A source that is on for 2.5 ms and off for 7.5 ms sends at 0, 1, 2 and 10.5 ms. Half a millisecond of the third
    /// interval falls into the second on-period and ends at 10.5 ms.
    #[test]
    fn the_clock_of_an_on_off_source_stops_while_it_is_off() {
        let at = times(&mut on_off(constant(0.0025), constant(0.0075)), 6);
        for (at, by_hand) in at.iter().zip([1.0, 1.001, 1.002, 1.0105, 1.0115, 1.02]) {
            assert_close(*at, by_hand, 1e-12);
        }
    }

    /// The mean rate is duty × rate, even if a period is hardly longer than a packet.
    #[test]
    fn an_on_off_source_sends_at_its_duty_cycle() {
        let exponential = |mean: f64| Distribution::Exponential { mean };
        let pareto = |mean: f64| Distribution::Pareto { mean, shape: 1.5, max: Some(100.0 * mean) };
        let n = 400_000;
        for (on, off, duty, within) in [
            (constant(0.1), constant(0.3), 0.25, 1e-3),
            // Means of 4,000 and of 320,000 on-periods, and as many off-periods: three times √(2/4000) and √(2/320000).
            (exponential(0.1), exponential(0.3), 0.25, 0.067),
            (exponential(0.00125), exponential(0.00125), 0.5, 0.0075),
            // Bounded at 100 means, shape 1.5: a squared coefficient of variation of about 5, so three times
            // √(2·5/4000).
            (pareto(0.1), pareto(0.1), 0.5, 0.15),
        ] {
            let at = times(&mut on_off(on, off), n);
            assert_close(n as f64 * 1e-3 / (at[n - 1] - 1.0), duty, within);
        }
    }

    #[test]
    fn an_on_off_source_stops_at_the_end_of_the_clock() {
        let mut traffic = on_off(constant(0.001), Distribution::Pareto { mean: 9e5, shape: 1.01, max: None });
        let at = times(&mut traffic, 50);
        assert!(!traffic.is_on(), "{at:?}");
    }

    #[test]
    fn percentiles_of_completion_times_are_within_one_in_64() {
        let mut times = CompletionTimes::default();
        assert_eq!((times.mean_s(), times.quantile_s(0.5), times.max_s()), (None, None, None));
        let mut rng = Pcg64::new(1, 1);
        let mut all: Vec<f64> = (0..10_000).map(|_| exponential(0.2, uniform(&mut rng))).collect();
        for &s in &all {
            times.add(Duration::from_secs(s));
        }
        all.sort_by(f64::total_cmp);
        for q in [0.5, 0.9, 0.95, 0.99] {
            assert_close(times.quantile_s(q).unwrap(), all[(q * 1e4) as usize - 1], 1.0 / 64.0);
        }
        assert_close(times.mean_s().unwrap(), all.iter().sum::<f64>() / 1e4, 1e-9);
        assert_close(times.max_s().unwrap(), all[9999], 1e-9);
        assert!(times.quantile_s(1.0).unwrap() <= times.max_s().unwrap());
    }
}
