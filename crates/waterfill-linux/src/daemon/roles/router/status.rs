//! Links and their counts, as the router program reports them.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use super::cohabit::CohabitStatus;
use super::shaper::ShaperState;
use crate::daemon::kernel::device;
use crate::daemon::kernel::hook::Chain;
use crate::daemon::kernel::interface::{Count, Request};
use crate::daemon::kernel::law::{LawSignal, LoadableLaw};
use crate::daemon::roles::scone::SconeStatus;

/// Counters of packets that pass unchanged, with the reasons that `status --json` and the metrics name.
const UNTOUCHED: [(Count, &str); 5] = [
    (Count::WATERFILL_COUNT_NO_OPTION, "no option"),
    (Count::WATERFILL_COUNT_FRAGMENT, "fragment"),
    (Count::WATERFILL_COUNT_MALFORMED, "malformed"),
    (Count::WATERFILL_COUNT_SIGNED, "signed"),
    (Count::WATERFILL_COUNT_NO_MEMORY, "no memory"),
];

/// State of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct LinkStatus {
    /// Time at which the other fields were read.
    #[serde(skip)]
    pub(crate) read: Option<Instant>,
    pub(crate) device: String,
    pub(crate) ifindex: u32,
    pub(crate) rate_bps: u64,
    /// Fraction of the rate to fill, or `None` for the law's own target.
    pub(crate) target: Option<f64>,
    /// Name of the law, as in the list of protocols.
    pub(crate) law: &'static str,
    /// Values of the law's signals by name, such as `price_s`.
    #[serde(flatten)]
    pub(crate) signals: BTreeMap<&'static str, f64>,
    /// Titles and formatted values of the signals for a table, in the law's order.
    #[serde(skip)]
    pub(crate) shown: Vec<(&'static str, String)>,
    /// Load y/C in the last full interval, or `None` for a law that does not show arrivals.
    pub(crate) load: Option<f64>,
    /// Share of the packets without the law's option between two readings, or `None` for a single reading.
    #[serde(skip)]
    pub(crate) unpriced: Option<f64>,
    /// Length of the device's queue when it was last read, in bytes. `None` if it cannot be read.
    pub(crate) queue_bytes: Option<u64>,
    /// Length of the queue that a link of exactly this rate would have, in bytes. `None` if the device's queue is read.
    pub(crate) virtual_queue_bytes: Option<u64>,
    pub(crate) packets: u64,
    /// Number of packets on the wire. Each segment of a super-packet counts.
    pub(crate) segments: u64,
    /// Number of bytes, including IP headers and the link's overhead.
    pub(crate) bytes: u64,
    /// Number of TCP segments with the law's option.
    pub(crate) seen: u64,
    pub(crate) marked: u64,
    pub(crate) starts: u64,
    /// Number of packets that passed unchanged, by reason.
    pub(crate) left_untouched: BTreeMap<String, u64>,
    /// Programs before the router's at the device's egress, in the order in which they run. They may keep packets from
    /// the router.
    pub(crate) programs_before: Vec<String>,
    pub(crate) programs_after: Vec<String>,
    /// State of the shaper, or `None` for a link without one.
    pub(crate) shaper: Option<ShaperState>,
    /// Status of the cohabitation module, or `None` without it.
    pub(crate) cohabit: Option<CohabitStatus>,
    /// Status of the SCONE element, or `None` without it.
    pub(crate) scone: Option<SconeStatus>,
}

impl LinkStatus {
    /// Converts a request with the kernel's answers to the state of a link.
    pub(crate) fn of(law: &'static LoadableLaw, answer: &Request, chain: Chain) -> Self {
        let values: Vec<(&LawSignal, f64)> =
            law.link.iter().zip(answer.signals).map(|(signal, raw)| (signal, signal.value(raw))).collect();
        let (arrival, shown): (Vec<_>, Vec<_>) = values.into_iter().partition(|(signal, _)| signal.is_arrival());
        let count = |which: Count| answer.counts[which.0 as usize];
        let seen = count(Count::WATERFILL_COUNT_OPTION);
        let mut left_untouched: BTreeMap<String, u64> =
            UNTOUCHED.iter().map(|(which, why)| ((*why).to_owned(), count(*which))).collect();
        let tcp = left_untouched.values().fold(seen, |sum, n| sum.saturating_add(*n)); // a map may hold any numbers
        left_untouched.insert("not TCP".into(), answer.packets.saturating_sub(tcp));
        let queue = |measured: bool| ((answer.queue_measured != 0) == measured).then_some(answer.queue);
        Self {
            read: Some(Instant::now()),
            device: device::name(answer.ifindex, &answer.attachment),
            ifindex: answer.ifindex,
            rate_bps: answer.rate,
            target: (answer.target != 0).then(|| f64::from(answer.target) / 1e6),
            law: law.name,
            signals: shown.iter().map(|(signal, value)| (signal.name, *value)).collect(),
            shown: shown.iter().map(|(signal, value)| (signal.title, signal.show(*value))).collect(),
            unpriced: None,
            load: arrival.first().map(|(_, rate)| rate / answer.rate.max(1) as f64),
            queue_bytes: queue(true),
            virtual_queue_bytes: queue(false),
            packets: answer.packets,
            segments: answer.segments,
            bytes: answer.bytes,
            seen,
            marked: count(Count::WATERFILL_COUNT_MARKED),
            starts: count(Count::WATERFILL_COUNT_START_RATE),
            left_untouched,
            shaper: None,
            cohabit: None,
            scone: None,
            programs_before: chain.before,
            programs_after: chain.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_without_a_counter_are_not_tcp() {
        let mut answer = Request { rate: 8, packets: 20, queue: 5, queue_measured: 1, ..Request::default() };
        for (which, n) in [
            (Count::WATERFILL_COUNT_OPTION, 3),
            (Count::WATERFILL_COUNT_MARKED, 2),
            (Count::WATERFILL_COUNT_START_RATE, 1),
            (Count::WATERFILL_COUNT_NO_OPTION, 4),
            (Count::WATERFILL_COUNT_SIGNED, 5),
        ] {
            answer.counts[which.0 as usize] = n;
        }
        let link = LinkStatus::of(crate::daemon::kernel::laws::default(), &answer, Chain::default());
        assert_eq!((link.seen, link.marked, link.starts), (3, 2, 1));
        assert_eq!((link.queue_bytes, link.virtual_queue_bytes), (Some(5), None));
        let reasons: Vec<_> = link.left_untouched.iter().filter(|(_, n)| **n > 0).collect();
        assert_eq!(format!("{reasons:?}"), r#"[("no option", 4), ("not TCP", 8), ("signed", 5)]"#);
    }
}
