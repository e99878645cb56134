//! Cohabitation of explicit flows and TCP in fixed-point arithmetic: `kernel/cohabit.h`, compiled unchanged for the
//! host.
//!
//! That file documents the scales; the module in real numbers is `waterfill-sim`'s queue `cohabit`, whose tests compare
//! the two. No simulation runs this one.

#![allow(
    unsafe_code,
    reason = "the module is C. Its functions take plain integers and structs of them by reference, keep no pointer, \
              allocate nothing and have no state, so every call is safe"
)]

use crate::mirror::mirror;

mirror! {
    /// Parameters of the cohabitation module: C's `struct cohabit_params`.
    #[expect(missing_docs, reason = "kernel/cohabit.h documents the fields")]
    pub struct Params = waterfill_cohabit_params_fields {
        capacity: u64,
        initial_log: u64,
        decrease_log: u64,
        increase_log: u64,
        target: u32,
        interval: u32,
        period: u32,
        controller: u32,
        weight: u32,
        ecn: u32,
        update: u32,
        threshold: u32,
        aim: u32,
        integral: u32,
        proportional: u32,
        depth: u32,
    }
}

mirror! {
    /// Sums of the arrivals in an interval: C's `struct cohabit_sums`.
    #[expect(missing_docs, reason = "kernel/cohabit.h documents the fields")]
    pub struct Sums = waterfill_cohabit_sums_fields {
        bytes: [u64; 3],
        packets: [u64; 3],
        seen: [u64; 2],
        dropped: u64,
        marked: u64,
    }
}

mirror! {
    /// State of a link: C's `struct cohabit_link`.
    #[expect(missing_docs, reason = "kernel/cohabit.h documents the fields")]
    pub struct Link = waterfill_cohabit_link_fields {
        interval_end: u64,
        other_rate: u64,
        log: u64,
        factor: i64,
        error: i64,
        used: u64,
        lent: u64,
        share: u64,
        limited_share: u64,
        flows_end: u64,
        flows_now: [u32; 2],
        flows_last: [u32; 2],
        filter: u32,
        active: u32,
        probability: u64,
        per_byte: u64,
        depth: u64,
        per_flow: u64,
        reaction: u64,
        excess: u64,
        drained: u64,
        reacted: u64,
        early: u64,
        pressure: u64,
        next_signal: u64,
        arrived: u64,
        limited: u64,
        rates: [u64; 3],
        usable: u64,
        explicit_share: u64,
        before: Sums,
    }
}

mirror! {
    /// Measurements of a control interval: C's `struct cohabit_measured`.
    #[expect(missing_docs, reason = "kernel/cohabit.h documents the fields")]
    pub struct Measured = waterfill_cohabit_measured_fields {
        us: u64,
        rates: [u64; 3],
        packets: [u64; 3],
        usable: u64,
        explicit_part: u64,
        explicit_share: u64,
        tcp_flows: u32,
        both: u32,
        present: u32,
    }
}

/// Number of the controller of xcp-tcp-2008: C's `COHABIT_PAPER`.
pub const PAPER: u32 = 1;
/// Number of the controller that improves on xcp-tcp-2008: C's `COHABIT_IMPROVED`.
pub const IMPROVED: u32 = 2;
/// Number of the class of explicit flows: C's `COHABIT_EXPLICIT`.
pub const EXPLICIT: usize = 0;
/// Number of the class of TCP flows: C's `COHABIT_TCP`.
pub const TCP: usize = 1;

/// A decision on a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet passes.
    Admit,
    /// The packet passes with a mark.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// Number of words in a Bloom filter: two classes of four levels of 4096 bits.
const FILTER_WORDS: usize = 2 * 4 * 64;

/// Bloom filters of four counting intervals: four of C's `struct cohabit_filter`.
#[derive(Clone, Debug)]
#[repr(transparent)]
pub struct Filters([[u64; FILTER_WORDS]; 4]);

impl Default for Filters {
    fn default() -> Self {
        Self([[0; FILTER_WORDS]; 4])
    }
}

mod c {
    use super::{Filters, Link, Measured, Params, Sums};

    unsafe extern "C" {
        pub(super) safe fn waterfill_cohabit_start(params: &Params, link: &mut Link, now: u64);
        pub(super) safe fn waterfill_cohabit_advance(
            params: &Params,
            link: &mut Link,
            filters: &mut Filters,
            total: &Sums,
            now: u64,
        ) -> i32;
        pub(super) safe fn waterfill_cohabit_count(sums: &mut Sums, class: u32, segments: u32, data: u32, now: u64);
        pub(super) safe fn waterfill_cohabit_flow(link: &mut Link, filters: &mut Filters, class: u32, hash: u64)
        -> i32;
        pub(super) safe fn waterfill_cohabit_decide(
            params: &Params,
            link: &mut Link,
            now: u64,
            bytes: u64,
            segments: u32,
            markable: u32,
            random: u32,
        ) -> u32;
        pub(super) safe fn waterfill_cohabit_update(params: &Params, link: &mut Link, measured: &Measured, now: u64);
        pub(super) safe fn waterfill_cohabit_mix(value: u64, salt: u64) -> u64;
        pub(super) safe fn waterfill_cohabit_explicit_part(explicit: u32, tcp: u32, weight: u32) -> u64;
    }
}

impl Link {
    /// Creates the state of a link that starts at `now`, in ns.
    #[must_use]
    pub fn new(params: &Params, now: u64) -> Self {
        let mut link = Self::default();
        c::waterfill_cohabit_start(params, &mut link, now);
        link
    }

    /// Ends the control intervals that are over at `now`. Returns true if a new counting interval began.
    pub fn advance(&mut self, params: &Params, filters: &mut Filters, total: &Sums, now: u64) -> bool {
        c::waterfill_cohabit_advance(params, self, filters, total, now) != 0
    }

    /// Counts the flow of a data packet. Returns true if the flow was already known in this class.
    pub fn count_flow(&mut self, filters: &mut Filters, class: usize, hash: u64) -> bool {
        c::waterfill_cohabit_flow(self, filters, class as u32, hash) != 0
    }

    /// Decides whether to admit, mark or drop a TCP data packet, given 32 random bits.
    pub fn decide(
        &mut self,
        params: &Params,
        now: u64,
        bytes: u64,
        segments: u32,
        markable: bool,
        random: u32,
    ) -> Verdict {
        match c::waterfill_cohabit_decide(params, self, now, bytes, segments, markable.into(), random) {
            0 => Verdict::Admit,
            1 => Verdict::Mark,
            _ => Verdict::Drop,
        }
    }

    /// Ends a control interval at `now` with the given measurements.
    pub fn update(&mut self, params: &Params, measured: &Measured, now: u64) {
        c::waterfill_cohabit_update(params, self, measured, now);
    }
}

impl Sums {
    /// Counts an arriving packet. If the packet is admitted, the caller adds its bytes.
    pub fn count(&mut self, class: usize, segments: u32, data: bool, now: u64) {
        c::waterfill_cohabit_count(self, class as u32, segments, data.into(), now);
    }
}

/// Returns a hash of a value and a salt.
#[must_use]
pub fn mix(value: u64, salt: u64) -> u64 {
    c::waterfill_cohabit_mix(value, salt)
}

/// Returns the explicit class's fraction of the usable capacity, in units of 2⁻³². The weight is in thousandths.
#[must_use]
pub fn explicit_part(explicit_flows: u32, tcp_flows: u32, weight: u32) -> u64 {
    c::waterfill_cohabit_explicit_part(explicit_flows, tcp_flows, weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: f64 = 4_294_967_296.0;
    const LOG: f64 = 17_179_869_184.0;

    /// `[xcp-tcp-2008:eq3, eq4]` The shares match §5 by hand: O = 1024 Mbit/s, with 10 XCP flows and 1, 2 or 3 TCP
    /// flows.
    #[test]
    fn shares_by_hand() {
        for (tcp, bw_xcp) in [(1, 1024e6 * 10.0 / 11.0), (2, 1024e6 * 10.0 / 12.0), (3, 1024e6 * 10.0 / 13.0)] {
            let part = explicit_part(10, tcp, 1000);
            assert!((part as f64 / ONE * 1024e6 - bw_xcp).abs() < 1.0, "{part}");
            let measured = Measured {
                us: 20_000,
                usable: 1_024_000_000,
                explicit_part: part,
                explicit_share: bw_xcp as u64,
                tcp_flows: tcp,
                present: 1,
                rates: [1_024_000_000, 0, 0],
                ..Measured::default()
            };
            let params = Params { controller: IMPROVED, aim: 900_000, ..params() };
            let mut link = Link::new(&params, 0);
            link.update(&params, &measured, 0);
            assert!((link.share as f64 - (1024e6 - bw_xcp)).abs() < 2.0, "{}", link.share);
        }
        // Weighted shares: 2 flows with 3 shares each, and 6 flows.
        assert_eq!(explicit_part(2, 6, 3000) as f64 / ONE, 0.5);
    }

    fn params() -> Params {
        Params {
            capacity: 100_000_000,
            target: 1_000_000,
            interval: 20_000,
            period: 2_000_000,
            controller: PAPER,
            weight: 1000,
            initial_log: (1000_f64.ln() * LOG) as u64,
            decrease_log: (-0.9999_f64.ln() * LOG) as u64,
            increase_log: (1.0001_f64.ln() * LOG) as u64,
            threshold: 970_000,
            depth: 300_000,
            ..Params::default()
        }
    }

    /// `[xcp-tcp-2008:§4.3, §4.4]` The paper's drop probability changes as calculated by hand.
    #[test]
    fn the_papers_p_drop_by_hand() {
        let params = params();
        let mut link = Link::new(&params, 0);
        let mut update = |explicit, tcp, both| {
            let measured = Measured {
                us: 20_000,
                rates: [explicit, tcp, 0],
                usable: 100_000_000,
                explicit_share: 60_000_000,
                both,
                ..Measured::default()
            };
            link.update(&params, &measured, 0);
            link.probability as f64 / ONE / 0.001
        };
        let near = |x: f64, wanted: f64| assert!((x - wanted).abs() < 2e-6, "{x} {wanted}");
        near(update(50_000_000, 50_000_000, 1), 1.0001);
        near(update(60_000_000, 40_000_000, 1), 1.0001);
        near(update(70_000_000, 30_000_000, 1), 1.0001 * 0.9999);
        assert_eq!(update(100_000_000, 0, 0), 0.0, "both classes must send");
        near(update(60_000_000, 40_000_000, 1), 1.0001 * 0.9999);
        assert_eq!(update(50_000_000, 46_000_000, 1), 0.0, "below the threshold");
        near(update(60_000_000, 40_000_000, 1), 1.0);
    }

    #[test]
    fn flows_are_counted_once_in_an_interval_and_forgotten_after_two() {
        let params = params();
        let (mut link, mut filters, mut sums) = (Link::new(&params, 0), Filters::default(), Sums::default());
        let flows = |link: &Link, class: usize| link.flows_now[class].max(link.flows_last[class]);
        for period in 0..6_u64 {
            let now = period * 2_000_000_000 + 1_000_000;
            for flow in 0..13 {
                let class = if flow < 10 { EXPLICIT } else { TCP };
                let hash = mix(flow, 7);
                let known = link.count_flow(&mut filters, class, hash);
                assert_eq!(known, period > 0, "flow {flow} in period {period}");
                assert!(link.count_flow(&mut filters, class, hash));
                sums.count(class, 1, true, now);
                sums.bytes[class] += 1500;
            }
            assert_eq!((link.flows_now[EXPLICIT], link.flows_now[TCP]), (10, 3));
            assert!(link.advance(&params, &mut filters, &sums, now + 2_000_000_000), "period {period} ends");
            assert_eq!((flows(&link, EXPLICIT), flows(&link, TCP)), (10, 3), "the last interval's count");
        }
        // Two intervals later nothing is known.
        link.advance(&params, &mut filters, &sums, 18_000_000_000);
        link.advance(&params, &mut filters, &sums, 20_100_000_000);
        assert_eq!((flows(&link, EXPLICIT), flows(&link, TCP)), (0, 0));
        assert!(!link.count_flow(&mut filters, TCP, mix(11, 7)));
    }

    #[test]
    fn empty_intervals_are_ended_together() {
        let params = Params { controller: IMPROVED, aim: 900_000, integral: 500, proportional: 1000, ..params() };
        let (mut link, mut filters, mut sums) = (Link::new(&params, 0), Filters::default(), Sums::default());
        for (class, n) in [(EXPLICIT, 100), (TCP, 120)] {
            link.count_flow(&mut filters, class, mix(class as u64, 1));
            sums.count(class, n, true, 1_000_000);
            sums.bytes[class] += u64::from(n) * 1000;
        }
        link.advance(&params, &mut filters, &sums, 20_000_000);
        assert_eq!(link.rates, [40_000_000, 48_000_000, 0]);
        assert_eq!((link.active, link.interval_end), (1, 40_000_000));
        let other = Sums { bytes: [sums.bytes[0], sums.bytes[1] + 5000, 0], ..sums };
        link.advance(&params, &mut filters, &other, 110_000_000);
        assert_eq!((link.rates, link.interval_end), ([0, 0, 0], 120_000_000), "the last three had no arrivals");
    }
}
