//! Sums over all connections of a law, which the kernel computes (`bpf/summary.h`). A scrape reads one record,
//! regardless of the number of connections.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use super::status::{CounterStatus, MODES, reason};
use crate::daemon::kernel::interface::{Bytes as _, HostReason, HostSamples, HostSummary};
use crate::daemon::kernel::law::LoadableLaw;

/// Sums over the present connections of a law, and counts over all connections since loading.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) law: &'static LoadableLaw,
    /// Number of connections and sum of their rates in bit/s, by mode.
    pub(crate) modes: BTreeMap<&'static str, (u64, u64)>,
    /// Number of present connections that fell back, by reason.
    pub(crate) fallen_back: BTreeMap<String, u64>,
    /// Quantiles of the law's first source signal, or `None` if no connection has received it.
    pub(crate) signal: Option<Quantiles>,
    pub(crate) counters: CounterStatus,
    /// Number of events that were overwritten before the daemon logged them.
    pub(crate) events_lost: u64,
}

/// Quantiles of a signal over the connections that have received it. Minimum and maximum are exact. The other quantiles
/// come from a random sample of at most `HOST_SAMPLES` connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantiles {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) p90: f64,
    pub(crate) most: f64,
}

impl Summary {
    /// Parses the record of the program `waterfill_summary`.
    pub(crate) fn parse(law: &'static LoadableLaw, bytes: &[u8], counters: CounterStatus) -> Result<Self> {
        ensure!(bytes.len() == size_of::<HostSummary>(), "the sums over connections are not from this waterfilld");
        let sums = HostSummary::from_prefix(bytes).context("no sums over connections")?;
        Ok(Self::of(law, &sums, counters))
    }

    fn of(law: &'static LoadableLaw, sums: &HostSummary, counters: CounterStatus) -> Self {
        let modes = MODES.iter().map(|(mode, name)| {
            let at = mode.0 as usize;
            (*name, (u64::from(sums.flows[at]), sums.rate[at]))
        });
        let reasons = sums.fallen_back.iter().enumerate();
        let named = |(n, count): (usize, &u32)| Some((reason(law, HostReason(n as u32))?, u64::from(*count)));
        Self {
            law,
            modes: modes.collect(),
            fallen_back: reasons.filter_map(named).collect(),
            signal: quantiles(law, sums),
            counters,
            events_lost: 0,
        }
    }
}

fn quantiles(law: &LoadableLaw, sums: &HostSummary) -> Option<Quantiles> {
    let signal = law.source.first()?;
    let sampled = sums.signals.min(HostSamples::HOST_SAMPLES.0) as usize;
    // Converted first, because a large code can be a small rate.
    let mut values: Vec<f64> = sums.samples[..sampled].iter().map(|raw| signal.value(*raw)).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |quantile: f64| values[(quantile * last as f64).round() as usize];
    let ends = [sums.signal_min, sums.signal_max].map(|raw| signal.value(raw));
    Some(Quantiles { least: ends[0].min(ends[1]), median: at(0.5), p90: at(0.9), most: ends[0].max(ends[1]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::interface::HostMode;
    use crate::daemon::kernel::laws::find;

    fn summary(law: &str, raw: &[u64]) -> Summary {
        let mut sums = HostSummary { signals: raw.len() as u32, ..HostSummary::default() };
        sums.samples[..raw.len()].copy_from_slice(raw);
        sums.signal_min = raw.iter().copied().min().unwrap_or(0);
        sums.signal_max = raw.iter().copied().max().unwrap_or(0);
        sums.flows[HostMode::HOST_MODE_PRICED.0 as usize] = 2;
        sums.rate[HostMode::HOST_MODE_PRICED.0 as usize] = 300;
        sums.fallen_back[HostReason::HOST_NO_ROUTER.0 as usize] = 4;
        Summary::parse(find(law).unwrap(), sums.as_bytes(), CounterStatus::default()).unwrap()
    }

    #[test]
    fn numbers_have_the_names_of_modes_and_reasons() {
        let found = summary("maxnet", &[]);
        assert_eq!((found.modes["priced"], found.modes["asking"]), ((2, 300), (0, 0)));
        assert_eq!(found.modes.len(), 7);
        assert_eq!(found.fallen_back["no router on the path writes a price"], 4);
        assert_eq!(found.signal, None);
        assert!(Summary::parse(find("maxnet").unwrap(), &[0; 8], CounterStatus::default()).is_err());
    }

    #[test]
    fn quantiles_are_of_the_laws_own_signal() {
        let prices: Vec<u64> = (1..=11).rev().map(|n| n << 18).collect();
        let of = summary("maxnet", &prices).signal.unwrap();
        assert_eq!((of.least, of.median, of.p90, of.most), (1.0, 6.0, 10.0, 11.0));
        // RCP's code is -ln(rate): the largest code is the smallest rate.
        let of = summary("rcp", &[1 << 18, 2 << 18, 3 << 18]).signal.unwrap();
        assert!(of.least < of.median && of.median < of.most, "{of:?}");
        assert!((of.median / 1e15 - (-2_f64).exp()).abs() < 1e-9, "{of:?}");
    }
}
