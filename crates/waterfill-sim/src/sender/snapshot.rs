//! What a log reads of a sender.

use waterfill_laws::units::Duration;

use super::{Phase, Sender};
use crate::limits::Limit;
use crate::recovery::Recovery;

/// Metrics of a sender. Times are `None` before the first RTT sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) rtt_variance: Option<Duration>,
    pub(crate) latest_rtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
    /// Window in whole packets, in bytes; `None` if nothing but the rate limits the sender.
    pub(crate) window_bytes: Option<u64>,
    pub(crate) pacing_bps: Option<u64>,
    pub(crate) in_flight: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) packet_bytes: f64,
}

impl Sender {
    /// Returns the metrics now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let packet_bytes = u64::from(self.spec.sizes.packet_bytes());
        let in_flight = self.recovery.in_flight();
        let window = self.window_packets;
        let sampled = self.smoothed.is_some();
        Snapshot {
            smoothed_rtt: self.smoothed.map(|(rtt, _)| rtt),
            rtt_variance: self.smoothed.map(|(_, variation)| variation),
            latest_rtt: sampled.then_some(self.latest_rtt),
            min_rtt: (sampled && self.base_rtt != Duration::MAX).then_some(self.base_rtt),
            window_bytes: (self.is_open() && window != u64::MAX).then(|| window.max(1) * packet_bytes),
            pacing_bps: self.pacing().map(|rate| rate.as_bps() as u64),
            in_flight,
            in_flight_bytes: in_flight * packet_bytes,
            packet_bytes: packet_bytes as f64,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns true if the sender waits for its application.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.limits.current() == Limit::Application
    }

    pub(crate) const fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}
