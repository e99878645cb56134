//! Configuration of the delay line, read from one JSON document.

use serde::Deserialize;
use waterfill_network::fault::Effect;
use waterfill_network::{FaultSpec, LossSpec};

/// Configuration of all lines of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of all random streams. Line `i` uses stream `i`.
    #[serde(default)]
    pub seed: u64,
    /// Tick within which due frames leave together. A shorter tick is more exact, a longer one needs less CPU.
    #[serde(default = "default_tick_ns")]
    pub tick_ns: u64,
    /// Maximum frame length of a receive ring in bytes, including the Ethernet header.
    #[serde(default = "default_frame_bytes")]
    pub frame_bytes: usize,
    /// Number of frames that a receive ring holds between two reads.
    #[serde(default = "default_ring_frames")]
    pub ring_frames: usize,
    /// Way in which frames reach user space.
    #[serde(default)]
    pub port: PortKind,
    /// True to request real-time priority (SCHED_FIFO) and locked memory.
    #[serde(default = "default_true")]
    pub realtime: bool,
    /// Lines of the run. An interface may be the start of at most one line, and the end of any number of lines.
    pub lines: Vec<LineConfig>,
}

/// Configuration of a line, which is one direction of one link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineConfig {
    /// Name of the line in the statistics.
    pub name: String,
    /// Interface from which the line takes arriving frames.
    pub from: String,
    /// Interface through which the line sends its frames.
    pub to: String,
    /// Time for which each frame is held, in nanoseconds.
    pub delay_ns: u64,
    /// Changes of the delay, ordered by time.
    #[serde(default)]
    pub changes: Vec<DelayChange>,
    /// Probability that a frame is lost, independently of all other frames.
    #[serde(default)]
    pub loss: f64,
    /// Loss model that replaces `loss`.
    #[serde(default)]
    pub loss_model: Option<LossSpec>,
    /// Probability that a frame is held `reorder_extra_ns` longer. Later frames can then overtake the frame.
    #[serde(default)]
    pub reorder: f64,
    /// Additional time for which a reordered frame is held, in nanoseconds.
    #[serde(default)]
    pub reorder_extra_ns: u64,
    /// Probability that a frame is delivered twice.
    #[serde(default)]
    pub duplicate: f64,
    /// Faults of frames and of the wire. Their times count from the start of the run.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// Space for waiting frames in bytes. A frame that does not fit is an overflow, which makes the run invalid.
    pub hold_bytes: usize,
}

/// A change of a line's delay.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DelayChange {
    /// Time of the change in nanoseconds since the start of the run, which the control line `start` gives.
    pub at_ns: u64,
    /// Time for which later frames are held, in nanoseconds.
    pub delay_ns: u64,
    /// Rate of the link in bit/s of IP bytes. When the delay falls, frames leave at most at this rate.
    pub rate_bps: f64,
}

/// Ways in which frames reach user space, compared in docs/validation/delay-line.md.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PortKind {
    /// AF_PACKET receive ring with one slot per frame (TPACKET_V2), and `sendmmsg` to send.
    #[default]
    Ring,
    /// AF_PACKET receive ring of blocks (TPACKET_V3), and `sendmmsg` to send.
    Blocks,
    /// AF_PACKET socket with `recvmmsg` and `sendmmsg`.
    Mmsg,
    /// TAP devices, which this process creates under the interfaces' names, with one `read` or `write` per frame.
    Tap,
    /// AF_XDP socket on queue 0 of the interface, in copy mode.
    Xdp,
}

/// Maximum size of a configuration document in bytes.
pub const MAX_DOCUMENT_BYTES: u64 = 256 << 20;
/// Maximum number of bytes that a line holds, enough for 5 s at 100 Gbit/s.
const MAX_HOLD_BYTES: usize = 1 << 36;
/// Maximum length of a frame in bytes.
pub(super) const MAX_FRAME_BYTES: usize = 1 << 17;

const fn default_tick_ns() -> u64 {
    50_000
}
const fn default_frame_bytes() -> usize {
    2048
}
const fn default_ring_frames() -> usize {
    8192
}
const fn default_true() -> bool {
    true
}

impl LineConfig {
    /// Returns the minimum delay of the line over all changes, in nanoseconds.
    pub(super) fn delay_min_ns(&self) -> u64 {
        self.changes.iter().map(|change| change.delay_ns).fold(self.delay_ns, u64::min)
    }

    /// Returns the loss model, or `None` without loss.
    pub(super) fn losses(&self) -> Option<LossSpec> {
        self.loss_model.or_else(|| (self.loss > 0.0).then_some(LossSpec::Independent { p: self.loss }))
    }
}

impl Config {
    /// Returns a configuration without lines, for opening interfaces for frames of `frame_bytes`.
    #[must_use]
    pub const fn for_ports(frame_bytes: usize) -> Self {
        Self {
            seed: 0,
            tick_ns: default_tick_ns(),
            frame_bytes,
            ring_frames: default_ring_frames(),
            port: PortKind::Ring,
            realtime: false,
            lines: Vec::new(),
        }
    }

    /// Parses and checks the delay line's configuration. The error is one line; it names the key if a value is out of
    /// range.
    ///
    /// # Errors
    /// When it is not JSON of this shape, or a value is out of its range.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = serde_json::from_str(text).map_err(|e| format!("not a configuration: {e}"))?;
        if config.tick_ns == 0 || config.tick_ns > 10_000_000 {
            return Err(format!("tick_ns: must be 1 to 10000000, got {}", config.tick_ns));
        }
        if !(256..=MAX_FRAME_BYTES).contains(&config.frame_bytes) {
            return Err(format!("frame_bytes: must be 256 to {MAX_FRAME_BYTES}, got {}", config.frame_bytes));
        }
        if !(64..=1 << 20).contains(&config.ring_frames) {
            return Err(format!("ring_frames: must be 64 to 1048576, got {}", config.ring_frames));
        }
        for (i, line) in config.lines.iter().enumerate() {
            for (key, p) in [("loss", line.loss), ("reorder", line.reorder), ("duplicate", line.duplicate)] {
                if !(0.0..=1.0).contains(&p) {
                    return Err(format!("{}.{key}: must be in [0, 1], got {p}", line.name));
                }
            }
            if let Some(Err(why)) = line.loss_model.map(|model| model.check()) {
                return Err(format!("{}.loss_model.{why}", line.name));
            }
            if line.loss_model.is_some() && line.loss > 0.0 {
                return Err(format!("{}.loss_model: not allowed together with loss", line.name));
            }
            for fault in &line.faults {
                fault.check(f64::INFINITY).map_err(|e| format!("{}.faults.{e}", line.name))?;
                if matches!(fault.effect, Effect::Acks { thinning: 2.., .. }) {
                    return Err(format!("{}.faults.thinning: not supported by the delay line", line.name));
                }
            }
            if !(config.frame_bytes..=MAX_HOLD_BYTES).contains(&line.hold_bytes) {
                return Err(format!(
                    "{}.hold_bytes: must be frame_bytes to {MAX_HOLD_BYTES}, got {}",
                    line.name, line.hold_bytes
                ));
            }
            if !line.changes.is_sorted_by(|one, next| one.at_ns < next.at_ns) {
                return Err(format!("{}.changes: times must increase", line.name));
            }
            if let Some(change) = line.changes.iter().find(|change| change.rate_bps.is_nan() || change.rate_bps <= 0.0)
            {
                return Err(format!("{}.changes.rate_bps: must be above zero, got {}", line.name, change.rate_bps));
            }
            if config.lines[..i].iter().any(|other| other.from == line.from) {
                return Err(format!("{}.from: {} is used by two lines", line.name, line.from));
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(line: &str) -> Result<Config, String> {
        Config::parse(&format!(
            r#"{{"lines":[{{"name":"l","from":"a","to":"b","delay_ns":1,"hold_bytes":4096{line}}}]}}"#
        ))
    }

    #[test]
    fn defaults_are_filled_in() {
        let config = with("").unwrap();
        assert_eq!((config.tick_ns, config.port), (50_000, PortKind::Ring));
        assert_eq!(config.lines[0].loss, 0.0);
    }

    #[test]
    fn an_error_names_the_key() {
        assert_eq!(with(r#","loss":1.5"#).unwrap_err(), "l.loss: must be in [0, 1], got 1.5");
        let periodic = r#","loss_model":{"kind":"periodic","every":0}"#;
        assert_eq!(with(periodic).unwrap_err(), "l.loss_model.every: must be a whole number above zero, got 0");
        let both = r#","loss":0.1,"loss_model":{"kind":"independent","p":0.1}"#;
        assert_eq!(with(both).unwrap_err(), "l.loss_model: not allowed together with loss");
        let back = r#","changes":[{"at_ns":2,"delay_ns":1,"rate_bps":1},{"at_ns":2,"delay_ns":1,"rate_bps":1}]"#;
        assert_eq!(with(back).unwrap_err(), "l.changes: times must increase");
        let held = r#","changes":[{"at_ns":2,"delay_ns":1,"rate_bps":0}]"#;
        assert_eq!(with(held).unwrap_err(), "l.changes.rate_bps: must be above zero, got 0");
        let never = r#","faults":[{"from_s":2,"until_s":2,"share":1,"effect":{"kind":"strip"}}]"#;
        assert_eq!(with(never).unwrap_err(), "l.faults.until: must be after at, 2 s, got 2");
        let thinned =
            r#","faults":[{"from_s":1,"until_s":2,"share":1,"effect":{"kind":"acks","every_s":0.1,"thinning":2}}]"#;
        assert_eq!(with(thinned).unwrap_err(), "l.faults.thinning: not supported by the delay line");
        assert!(with(r#","losss":0.5"#).unwrap_err().contains("unknown field `losss`"));
        let huge = r#"{"lines":[{"name":"l","from":"a","to":"b","delay_ns":1,"hold_bytes":18446744073709551615}]}"#;
        let why = Config::parse(huge).unwrap_err();
        assert_eq!(why, "l.hold_bytes: must be frame_bytes to 68719476736, got 18446744073709551615");
        let twice = r#"{"lines":[{"name":"l","from":"a","to":"b","delay_ns":1,"hold_bytes":4096},
            {"name":"m","from":"a","to":"c","delay_ns":1,"hold_bytes":4096}]}"#;
        assert_eq!(Config::parse(twice).unwrap_err(), "m.from: a is used by two lines");
    }
}
