//! Receiver law of ABC.

use crate::protocol::{PacketKind, Received};
use crate::units::Instant;

use super::{Abc, Mark, Params};

/// Receiver that echoes each packet's mark. A delayed acknowledgement echoes the sign of all marks (±1) that earlier
/// acknowledgements have not yet returned.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Number of data packets since the last acknowledgement.
    packets: i32,
    /// Sum of the received marks (accelerate is 1, brake is −1) that acknowledgements have not yet returned.
    owed: i32,
}

impl crate::protocol::Receiver<Abc> for Receiver {
    fn new(_params: &Params) -> Self {
        Self::default()
    }

    fn on_data(&mut self, received: &Received<Mark>) {
        if received.kind == PacketKind::Data {
            self.packets += 1;
            self.owed += if received.header == Mark::Accelerate { 1 } else { -1 };
        }
    }

    fn echo(&mut self, _now: Instant) -> Mark {
        let packets = std::mem::take(&mut self.packets);
        if self.owed >= 0 {
            self.owed -= packets;
            Mark::Accelerate
        } else {
            self.owed += packets;
            Mark::Brake
        }
    }
}
