//! `--separate`: one queue per class, at rates that follow the flows counted by the cohabitation module.
//!
//! The rule is the simulator's (`queue/cohabit/per_class.rs`). Each class's own rate is its share by the flows. The explicit
//! law's capacity is what the rest leaves it: the rest needs what it sends, or all of its share while packets wait in its
//! queue. The daemon applies it a few times a second, and reads the queue only then: packets that wait at two readings
//! count as waiting between them. Without the daemon the last division stays.

use std::time::Duration;

use anyhow::Result;

use super::{LinkSetup, Router, cohabit, shaper};
use crate::daemon::kernel::device::header_bytes;
use crate::daemon::kernel::interface::CohabitState;

/// Interval at which the link's capacity is redivided between the classes.
pub(crate) const UPDATE: Duration = Duration::from_millis(200);
/// Averaging time of the rate that non-explicit traffic needs, in seconds.
const AVERAGE_S: f64 = 0.5;
/// Minimum fraction of the link for a class.
const MIN_PART: f64 = 0.01;
/// Time for which a class counts as present after its last data, in ns (`COHABIT_PRESENCE_NS`).
const PRESENCE_NS: u64 = 2_000_000_000;
/// Fraction of the link for each class before both classes have been seen.
const EQUAL_PART: f64 = 0.5;
/// Minimum change of a class's fraction of the link for which the queues are set again.
const STEP: f64 = 0.005;

/// Division of a link between explicit packets and all others.
#[derive(Debug, PartialEq)]
pub(super) struct Division {
    capacity_bps: f64,
    /// Average rate that non-explicit traffic needs, in bit/s.
    need_bps: f64,
    /// True if non-explicit packets waited at the last update.
    waited: bool,
    /// End of the last interval that was used, in ns. `sent_bytes` counts all non-explicit bytes until then.
    ended_ns: Option<u64>,
    sent_bytes: u64,
    explicit_part: f64,
    /// Capacity of the explicit law in bit/s.
    explicit_bps: f64,
    /// Fraction for explicit packets to which the queues are set.
    set_part: f64,
    set_bps: f64,
}

impl Division {
    fn new(capacity_bps: f64) -> Self {
        Self {
            capacity_bps,
            need_bps: 0.0,
            waited: false,
            ended_ns: None,
            sent_bytes: 0,
            explicit_part: EQUAL_PART,
            explicit_bps: capacity_bps,
            set_part: EQUAL_PART,
            set_bps: capacity_bps,
        }
    }

    /// Updates the division from the module's measurements. `waits` is true if non-explicit packets wait now.
    fn update(&mut self, state: &CohabitState, waits: bool) {
        let link = &state.link;
        let ended = link.interval_end.saturating_sub(u64::from(state.setup.params.interval) * 1000);
        let sent_bytes = link.before.bytes[1].wrapping_add(link.before.bytes[2]);
        let before = self.ended_ns.replace(ended);
        let bytes = sent_bytes.wrapping_sub(std::mem::replace(&mut self.sent_bytes, sent_bytes));
        let waited = std::mem::replace(&mut self.waited, waits);
        let Some(lasted) = before.and_then(|before| ended.checked_sub(before)).filter(|lasted| *lasted > 0) else {
            return;
        };
        let lasted_s = lasted as f64 / 1e9;
        let present = (0..2).all(|class| {
            let seen = link.before.seen[class];
            link.flows_now[class].max(link.flows_last[class]) > 0
                && seen > 0
                && ended.saturating_sub(seen) < PRESENCE_NS
        });
        let explicit_share = if present { link.explicit_share as f64 } else { 0.0 };
        let share = self.capacity_bps - explicit_share;
        let need = if waited && waits && present { share } else { (bytes as f64 * 8.0 / lasted_s).min(share) };
        self.need_bps += (need - self.need_bps) * (1.0 - (-lasted_s / AVERAGE_S).exp());
        self.explicit_bps = (self.capacity_bps - self.need_bps).max(explicit_share).max(self.capacity_bps * MIN_PART);
        if present {
            self.explicit_part = (explicit_share / self.capacity_bps).clamp(MIN_PART, 1.0 - MIN_PART);
        }
    }
}

impl Router {
    /// Returns true if any device has a queue per class.
    pub(crate) fn divides(&self) -> bool {
        self.followed.values().any(|(setup, _)| setup.options.separate)
    }

    /// Divides the rate of each device with `--separate` between explicit and other packets, by its module's
    /// measurements. Errors are logged.
    pub(crate) fn divide(&mut self) {
        for (setup, ifindex) in self.followed.clone().into_values() {
            if setup.options.separate && ifindex != 0 {
                if let Err(e) = self.divide_device(&setup, ifindex) {
                    tracing::warn!("device {}: {e:#}", setup.device());
                }
            }
        }
    }

    fn divide_device(&mut self, setup: &LinkSetup, ifindex: u32) -> Result<()> {
        let Some(state) = cohabit::state(self.cohabit.as_ref(), &self.pins, ifindex)? else { return Ok(()) };
        let device = setup.device();
        let waits = shaper::other_backlog(device)? > 0;
        let capacity = setup.rate_bps() as f64;
        let division = self.divisions.entry(ifindex).or_insert_with(|| Division::new(capacity));
        division.update(&state, waits);
        let header_bytes = header_bytes(device)?;
        if (division.explicit_part - division.set_part).abs() >= STEP {
            shaper::divide(device, &setup.shaping(header_bytes), division.explicit_part)?;
            division.set_part = division.explicit_part;
        }
        let bps = division.explicit_bps;
        if (bps - division.set_bps).abs() >= STEP * capacity {
            let created = self.show(ifindex)?.attachment.created;
            self.set(&setup.at_rate(bps as u64), ifindex, header_bytes, created)?;
            self.divisions.entry(ifindex).and_modify(|division| division.set_bps = bps);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: f64 = 1e6;

    /// Returns the explicit capacity in Mbit/s and the explicit fraction of a link of 12 Mbit/s. Before, other traffic
    /// has sent at `rest_mbps` for 1000 s, and the explicit share is 9 Mbit/s.
    fn after(division: &mut Division, rest_mbps: f64, waits: bool, present: bool) -> (f64, f64) {
        let mut state = CohabitState::default();
        state.setup.params.interval = 100_000;
        for end_s in [10, 1010_u64] {
            state.link.interval_end = end_s * 1_000_000_000 + 100_000_000;
            state.link.before.bytes[2] += (rest_mbps * MBPS / 8.0 * 1000.0) as u64;
            let seen = end_s * 1_000_000_000 - 1000;
            state.link.before.seen = [seen, if present { seen } else { seen - PRESENCE_NS }];
            state.link.flows_last = [3, 1];
            state.link.explicit_share = 9_000_000;
            division.ended_ns = division.ended_ns.filter(|_| end_s > 10);
            division.update(&state, waits);
        }
        ((division.explicit_bps / MBPS * 1e3).round() / 1e3, division.explicit_part)
    }

    #[test]
    fn the_explicit_law_gets_what_the_rest_leaves() {
        let mut division = Division::new(12.0 * MBPS);
        assert_eq!((division.explicit_bps, division.explicit_part), (12.0 * MBPS, 0.5));
        assert_eq!(after(&mut division, 2.0, false, true), (10.0, 0.75), "the rest needs no more than 2");
        assert_eq!(after(&mut division, 5.0, false, true), (9.0, 0.75), "more than its share of 3");
        assert_eq!(after(&mut division, 1.0, true, true), (9.0, 0.75), "it sends 1, but its packets wait");
        assert_eq!(after(&mut division, 5.0, true, false), (7.0, 0.75), "one class: the rest is constant-rate traffic");
        assert_eq!(after(&mut division, 15.0, true, false), (0.12, 0.75), "a law divides by its capacity");
    }

    #[test]
    fn nothing_changes_before_an_interval_ends() {
        let mut division = Division::new(12.0 * MBPS);
        after(&mut division, 2.0, false, true);
        let before = (division.explicit_bps, division.explicit_part);
        let mut state = CohabitState::default();
        state.setup.params.interval = 100_000;
        state.link.interval_end = 1010 * 1_000_000_000 + 100_000_000;
        division.update(&state, true);
        assert_eq!((division.explicit_bps, division.explicit_part), before);
    }
}
