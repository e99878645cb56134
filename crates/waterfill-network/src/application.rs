//! Applications of flows: messages that become available to the sender at their times.

use serde::Deserialize;

use crate::check::{positive, time};
use crate::distribution::Distribution;

/// Application that writes a flow's data.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ApplicationSpec {
    /// Data at a constant rate in on periods, and none in off periods. The first on period begins when the connection opens.
    Onoff {
        /// Rate of full packets on the wire in on periods, in bit/s.
        rate_bps: f64,
        /// Lengths of the on periods in seconds.
        on_s: Distribution,
        /// Lengths of the off periods in seconds.
        off_s: Distribution,
    },
    /// Responses, of which the client requests the next one after it has received the last one and has paused.
    RequestResponse {
        /// Payload of the responses in bytes.
        sizes_bytes: Distribution,
        /// Pauses between a response and the next request in seconds; `None` for no pause.
        think_s: Option<Distribution>,
    },
    /// Segments of a video, which the client requests as long as its buffer has space for another one.
    Video {
        /// Payload of a second of video, in bit/s.
        bit_rate_bps: f64,
        /// Duration of a segment in seconds of video.
        segment_s: f64,
        /// Size of the client's buffer in seconds of video.
        buffer_s: f64,
        /// Number of segments in the buffer when playback begins.
        startup_segments: u32,
    },
    /// A message at each interval, whatever has become of the earlier ones.
    Ticks {
        /// Payload of the messages in bytes.
        sizes_bytes: Distribution,
        /// Time between two messages in seconds.
        interval_s: f64,
    },
}

impl ApplicationSpec {
    /// Checks that all values are in range.
    ///
    /// # Errors
    /// One clause: `KEY: must be …`.
    pub fn check(&self) -> Result<(), String> {
        let drawn = |key: &str, from: &Distribution| from.check().map_err(|e| format!("{key}: {e}"));
        let span = |key: &str, s: f64| time(key, s).and_then(|()| positive(key, s));
        match self {
            Self::Onoff { rate_bps, on_s, off_s } => {
                positive("rate", *rate_bps)?;
                drawn("on", on_s)?;
                drawn("off", off_s)
            }
            Self::RequestResponse { sizes_bytes, think_s } => {
                drawn("sizes", sizes_bytes)?;
                think_s.as_ref().map_or(Ok(()), |think_s| drawn("think", think_s))
            }
            Self::Video { bit_rate_bps, segment_s, buffer_s, startup_segments } => {
                positive("bit_rate", *bit_rate_bps)?;
                span("segment", *segment_s)?;
                span("buffer", *buffer_s)?;
                let startup_s = f64::from(*startup_segments) * segment_s;
                if *startup_segments == 0 || startup_s > *buffer_s {
                    return Err(format!(
                        "startup: must be at least one segment and fit into the buffer, got {startup_segments}"
                    ));
                }
                Ok(())
            }
            Self::Ticks { sizes_bytes, interval_s } => {
                drawn("sizes", sizes_bytes)?;
                span("interval", *interval_s)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        let video = |segment_s, buffer_s, startup_segments| {
            ApplicationSpec::Video { bit_rate_bps: 1e6, segment_s, buffer_s, startup_segments }.check()
        };
        assert_eq!(video(2.0, 4.0, 2), Ok(()));
        assert!(video(2.0, 3.0, 2).unwrap_err().starts_with("startup: must"), "they do not fit");
        assert!(video(2.0, 4.0, 0).unwrap_err().starts_with("startup: must"));
        assert!(video(0.0, 4.0, 1).unwrap_err().starts_with("segment: must"));
        let ticks = |mean| {
            let sizes_bytes = Distribution::Constant { mean };
            ApplicationSpec::Ticks { sizes_bytes, interval_s: 0.1 }.check()
        };
        assert_eq!(ticks(100.0), Ok(()));
        assert!(ticks(0.0).unwrap_err().starts_with("sizes: mean"));
    }
}
