//! Parameters of a link direction: rate, delay, buffer, queue discipline and faults.

use serde::Deserialize;

use crate::change::ChangeSpec;
use crate::check::{positive, probability, time};
use crate::fault::FaultSpec;
use crate::loss::LossSpec;
use crate::queue::QueueSpec;

/// Parameters of a link direction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name of the link direction. The name of a reverse direction ends in `:rev`.
    pub name: String,
    /// Initial capacity as router laws see it: the rate of the transmitter or, with a shaper or a policer, of its bucket.
    pub rate_bps: f64,
    /// Changes of rate, delay and state, in order of time.
    #[serde(default)]
    pub changes: Vec<ChangeSpec>,
    /// Token bucket in front of a faster transmitter, if any.
    pub shaper: Option<ShaperSpec>,
    /// Token bucket in front of the queue that drops packets without tokens, if any.
    #[serde(default)]
    pub policer: Option<ShaperSpec>,
    /// Initial propagation delay in seconds.
    pub delay_s: f64,
    /// Maximum backlog of the queue.
    pub buffer: BufferSpec,
    /// True if the hosts at its start keep the packets of their flows until the transmitter is free.
    #[serde(default)]
    pub pull: bool,
    /// Queue discipline.
    pub queue: QueueSpec,
    /// Probability that a packet is lost on the wire; zero if there is a `loss_model`.
    pub loss: f64,
    /// Loss model of the wire, if any.
    pub loss_model: Option<LossSpec>,
    /// Reordering of packets on the wire, if any.
    pub reorder: Option<ReorderSpec>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Faults of packets and of the wire, in the order in which they act on a packet.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// Target utilization; `None` for the protocols' own targets.
    pub target: Option<f64>,
    /// Protocols whose router law runs on the link; `None` for every protocol whose data crosses the link.
    pub routers: Option<Vec<String>>,
}

/// Maximum backlog of a link, excluding the packet in service.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(tag = "unit", content = "size", rename_all = "lowercase", deny_unknown_fields)]
pub enum BufferSpec {
    /// Maximum backlog in bytes.
    Bytes(u64),
    /// Maximum backlog in packets.
    Packets(u64),
}

impl BufferSpec {
    /// Buffer without a limit.
    pub const UNLIMITED: Self = Self::Bytes(u64::MAX);

    /// Returns the buffer size in bytes, for packets of `packet_bytes` bytes.
    #[must_use]
    pub fn as_bytes(self, packet_bytes: f64) -> f64 {
        match self {
            Self::Bytes(bytes) => bytes as f64,
            Self::Packets(packets) => packets as f64 * packet_bytes,
        }
    }
}

/// Token bucket, from which packets leave at the line's rate and, on average, at no more than the link's capacity.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ShaperSpec {
    /// Rate of the transmitter in bit/s.
    pub line_bps: f64,
    /// Depth of the bucket: the maximum number of tokens, in bytes.
    pub depth_bytes: f64,
    /// Interval in seconds at which tokens are added; zero to add them continuously.
    pub timer_s: f64,
}

/// Reordering: some packets arrive late and are overtaken by other packets.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// Probability that a packet is delayed.
    pub share: f64,
    /// Additional delay of a delayed packet in seconds.
    pub delay_s: f64,
}

impl LinkSpec {
    /// Returns the token bucket that sets the link's capacity, if any.
    #[must_use]
    pub fn bucket(&self) -> Option<&ShaperSpec> {
        self.shaper.as_ref().or(self.policer.as_ref())
    }

    /// Returns the smallest and largest nonzero rates of the link over the run, in bit/s.
    #[must_use]
    pub fn rate_range_bps(&self) -> (f64, f64) {
        let later = self.changes.iter().filter_map(|change| change.rate_bps).filter(|&rate| rate > 0.0);
        later.fold((self.rate_bps, self.rate_bps), |(low, high), rate| (low.min(rate), high.max(rate)))
    }

    /// Returns the smallest propagation delay of the link over the run, in seconds.
    #[must_use]
    pub fn delay_min_s(&self) -> f64 {
        self.changes.iter().filter_map(|change| change.delay_s).fold(self.delay_s, f64::min)
    }

    /// Checks the ranges of all fields.
    pub(crate) fn check(&self) -> Result<(), String> {
        let name = &self.name;
        positive(&format!("link.{name}.rate"), self.rate_bps)?;
        time(&format!("link.{name}.delay"), self.delay_s)?;
        self.check_faults_and_queue().map_err(|e| format!("link.{name}.{e}"))?;
        for (key, bucket) in [("shaper", &self.shaper), ("policer", &self.policer)] {
            bucket
                .iter()
                .try_for_each(|bucket| self.check_bucket(bucket))
                .map_err(|e| format!("link.{name}.{key}{e}"))?;
        }
        if self.shaper.is_some() && !self.queue.serves_in_order() {
            return Err(format!("link.{name}.shaper: needs a queue that serves in order of arrival (droptail, red)"));
        }
        if self.shaper.is_some() && self.policer.is_some() {
            return Err(format!("link.{name}.policer: not allowed on a link with a shaper"));
        }
        if self.target.is_some_and(|t| !(t > 0.0 && t <= 1.0)) {
            return Err(format!("link.{name}.target: must be in (0, 1]"));
        }
        Ok(())
    }

    fn check_bucket(&self, bucket: &ShaperSpec) -> Result<(), String> {
        if !self.changes.is_empty() {
            return Err(": not allowed on a link with events or a rate trace".into());
        }
        if !(self.rate_bps < bucket.line_bps && bucket.line_bps.is_finite()) {
            return Err(format!(".rate: must be below the line's {} bit/s", bucket.line_bps));
        }
        positive(".depth", bucket.depth_bytes)?;
        if !(0.0..=1.0).contains(&bucket.timer_s) {
            return Err(format!(".timer: must be 0 to 1 s, got {}", bucket.timer_s));
        }
        Ok(())
    }

    fn check_faults_and_queue(&self) -> Result<(), String> {
        probability("loss", self.loss)?;
        probability("duplicate", self.duplicate)?;
        if let Some(model) = &self.loss_model {
            if self.loss > 0.0 {
                return Err("loss_model: not allowed together with loss".into());
            }
            model.check().map_err(|e| format!("loss_model.{e}"))?;
        }
        if let Some(reorder) = &self.reorder {
            probability("reorder.share", reorder.share)?;
            if !(reorder.delay_s > 0.0 && reorder.delay_s <= 1e6) {
                return Err(format!("reorder.delay: must be above zero, got {} s", reorder.delay_s));
            }
        }
        self.queue.check()
    }
}
