//! Switches: links that leave one node and share its buffer.

use serde::Deserialize;

use crate::check::positive;

/// A switch with a buffer that all its output queues share.
///
/// A packet is admitted to a queue that is shorter than `alpha` times the free part of the buffer (dynamic thresholds,
/// Choudhury and Hahne, 1998). A packet in transmission has left the buffer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// Name of the node.
    pub name: String,
    /// Size of the buffer in bytes.
    pub buffer_bytes: u64,
    /// Threshold of a queue, relative to the free part of the buffer.
    pub alpha: f64,
    /// Link directions that leave the switch.
    pub outputs: Vec<u32>,
}

/// Largest `alpha`: with more, one queue takes the whole buffer, as without thresholds.
const MAX_ALPHA: f64 = 1e6;

impl SwitchSpec {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.buffer_bytes == 0 {
            return Err("buffer: must be above zero, got 0 B".into());
        }
        positive("alpha", self.alpha)?;
        if self.alpha > MAX_ALPHA {
            return Err(format!("alpha: must be at most {MAX_ALPHA}, got {}", self.alpha));
        }
        Ok(())
    }
}
