//! The receiver law.

use crate::protocol::{PacketKind, Received};
use crate::units::Instant;

use super::{Abc, Mark, Params};

/// The receiver: returns each packet's bit, or where an acknowledgement stands for several the sign of their sum.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Data packets since the last acknowledgement.
    packets: i32,
    /// Their accelerates less their brakes, and what the bits of earlier acknowledgements left over.
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
