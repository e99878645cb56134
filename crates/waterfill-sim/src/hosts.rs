//! The two ends of a connection without a network between them, for tests of loss recovery in any order of arrivals.

use waterfill_laws::protocol::{Ecn, Retransmission};
use waterfill_laws::registry::{AnyHeader, ProtocolId};
use waterfill_laws::units::{Duration, Instant};

use crate::binding::FlowProtocol;
use crate::packet::{Blocks, Cargo, Flags, Packet, Role, SackId, Sacks};
use crate::receiver::{Receiver, ReceiverSpec};
use crate::recovery::{AckTimes, Recovery};

/// Payload of every packet, in bytes.
const PAYLOAD: u64 = 1;

/// Scoreboard of a sender, and a receiver. The caller acts as the network: it loses, repeats and reorders their
/// packets.
#[derive(Debug)]
pub struct HostPair {
    recovery: Recovery,
    receiver: Receiver,
    sacks: Sacks,
    now: Instant,
}

/// An acknowledgement in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of the next packet that the receiver expects.
    pub next: u64,
    /// Up to three ranges of higher packet numbers that have arrived. Unused entries are empty ranges.
    pub blocks: Option<[(u64, u64); 3]>,
}

impl HostPair {
    /// Creates a sender and a receiver before the first data packet.
    #[must_use]
    pub fn new(retransmission: Retransmission, delayed_ack: bool) -> Self {
        let spec = ReceiverSpec {
            flow: 0,
            to: 0,
            path: 0,
            incarnation: 0,
            ack_bytes: 40,
            delayed_ack,
            retransmission,
            ecn: Ecn::Off,
            packets: u64::MAX,
            header_bytes: 0,
            counted: (Instant::ZERO, Instant::NEVER),
        };
        let law = FlowProtocol { protocol: ProtocolId::Window, params: ProtocolId::Window.params() };
        Self {
            recovery: Recovery::new(retransmission),
            receiver: Receiver::new(spec, &law, None),
            sacks: Sacks::default(),
            now: Instant::ZERO,
        }
    }

    /// Sends a lost packet again and returns its number, or `None` if there is none.
    pub fn resend(&mut self) -> Option<u64> {
        let number = self.recovery.to_resend()?;
        self.recovery.on_resent(number, self.now);
        Some(number)
    }

    /// Sends a new packet and returns its number.
    pub fn send(&mut self) -> u64 {
        self.recovery.on_sent(self.now);
        self.recovery.next() - 1
    }

    /// Delivers a packet to the receiver. Returns the acknowledgement unless it is delayed.
    pub fn arrive(&mut self, number: u64) -> Option<Acknowledgement> {
        let packet = Packet {
            flow: 0,
            to: 0,
            place: 0,
            bytes: PAYLOAD as u16,
            incarnation: 0,
            role: Role::Data,
            flags: Flags::default(),
            sack: SackId::NONE,
            number,
            sent: self.now,
            echoed: Instant::ZERO,
            cargo: Cargo::Header(AnyHeader::None),
        };
        let ack = self.receiver.on_packet(self.now, &packet, &mut self.sacks)?;
        Some(self.acknowledgement(&ack))
    }

    /// Fires the receiver's timer and returns the delayed acknowledgement, if there is one.
    pub fn receiver_timer(&mut self) -> Option<Acknowledgement> {
        let due = self.receiver.poll_timer();
        if due == Instant::NEVER {
            return None;
        }
        self.now = due;
        let ack = self.receiver.on_timer(due, &mut self.sacks)?;
        Some(self.acknowledgement(&ack))
    }

    fn acknowledgement(&mut self, ack: &Packet) -> Acknowledgement {
        Acknowledgement { next: ack.number, blocks: self.sacks.take(ack.sack) }
    }

    /// Delivers an acknowledgement to the sender. Returns the number of packets that it reports for the first time.
    pub fn acknowledge(&mut self, ack: &Acknowledgement) -> u64 {
        let blocks: Option<&Blocks> = ack.blocks.as_ref();
        let times = AckTimes {
            now: self.now,
            echo: self.now,
            base_rtt: Duration::from_ps(1),
            smoothed_rtt: Duration::from_ps(1),
        };
        self.recovery.on_ack(ack.next, blocks, &times).newly_arrived
    }

    /// Fires the retransmission timer. Every unacknowledged packet then counts as lost.
    pub fn time_out(&mut self) {
        self.recovery.on_timeout();
    }

    /// Reports an ECN mark to the sender.
    pub fn mark(&mut self) {
        self.recovery.on_mark();
    }

    /// Returns the number of the next packet to send again.
    #[must_use]
    pub fn to_resend(&self) -> Option<u64> {
        self.recovery.to_resend()
    }

    /// Returns the number of packets that have been sent, each counted once.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.recovery.next()
    }

    /// Returns the number of packets that are neither known to have arrived nor known to be lost.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.recovery.in_flight()
    }

    /// Returns the number of packets that are not known to have arrived.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.recovery.outstanding()
    }

    /// Returns the number of packets above the highest cumulative acknowledgement.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.recovery.unacknowledged()
    }

    /// Returns the number of packets that the receiver has, each counted once.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.receiver.payload_counted / PAYLOAD
    }

    /// Returns the number of SACK slots in use, which is zero between two calls.
    #[must_use]
    pub fn sacks_in_use(&self) -> usize {
        self.sacks.in_use()
    }
}
