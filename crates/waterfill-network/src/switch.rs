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
    /// Pauses of the links that end at the switch; `None` if it drops packets.
    #[serde(default)]
    pub pfc: Option<PfcSpec>,
}

/// Pauses of the links that end at a switch (priority flow control), with which it drops nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfcSpec {
    /// Bytes of an input at which it is paused; `None` for `alpha` times the free part of the buffer.
    pub xoff_bytes: Option<u64>,
    /// Link directions that end at the switch.
    pub inputs: Vec<InputSpec>,
}

/// Input of a switch that pauses its inputs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Link direction that ends at the switch.
    pub link: u32,
    /// Its reverse direction, which carries the pause frames.
    pub back: u32,
    /// Part of the buffer for what arrives after the decision to pause, in bytes.
    pub headroom_bytes: u64,
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
        let Some(pfc) = &self.pfc else { return Ok(()) };
        if pfc.xoff_bytes == Some(0) {
            return Err("xoff: must be above zero, got 0 B".into());
        }
        let headroom: u64 = pfc.inputs.iter().map(|input| input.headroom_bytes).fold(0, u64::saturating_add);
        if headroom >= self.buffer_bytes {
            return Err(format!(
                "buffer: must be above the headroom of {}, {headroom} B, got {} B",
                self.name, self.buffer_bytes
            ));
        }
        Ok(())
    }
}
