//! First flight of a flow without a handshake: the data packets that leave before any answer, at the rate of the host's
//! own link.

use waterfill_laws::protocol::ProtocolKind;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Instant, Rate};

use super::{Phase, Sender};
use crate::flow::FlowSetup;
use crate::limits::Limit;
use crate::packet::{Blocks, Flags, Packet, Role, named};

/// Properties of a flow's first flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstFlight {
    /// Rate of the host's own link.
    nic: Rate,
    /// Maximum number of packets of a law that has no window.
    window_packets: u64,
    /// True if the first packet asks routers for a start rate, as a SYN does.
    asks: bool,
}

impl FirstFlight {
    /// Returns the first flight of a new flow; `None` if the flow has a handshake.
    pub(super) fn new(setup: &FlowSetup<'_>) -> Option<Self> {
        let own = matches!(setup.law.protocol, ProtocolId::Own { .. });
        (!setup.spec.handshake).then(|| Self {
            nic: setup.route.view.host_rate,
            window_packets: setup.spec.initial_window_packets.max(1.0) as u64,
            // A law of a program's own sees data only.
            asks: setup.law.params.info().kind == ProtocolKind::Explicit && !own,
        })
    }
}

impl Sender {
    /// Takes the next packet of the first flight, as [`Sender::next_data`] does.
    #[cold]
    #[inline(never)]
    pub(super) fn next_of_first_flight(&mut self, now: Instant) -> Result<(Role, u64, u16, Flags), Instant> {
        let Some(flight) = self.rare.as_ref().and_then(|rare| rare.first_flight) else { return Err(Instant::NEVER) };
        if self.phase == Phase::Closed {
            if now < self.spec.start || self.spec.stop <= now {
                return Err(Instant::NEVER);
            }
            self.phase = Phase::Unanswered;
            (self.opened, self.next_send, self.rto_deadline) = (now, now, Instant::NEVER);
            self.open_application(now);
            // A law that starts at its link's rate sends on without an answer.
            let limited = self.law.limit().pacing.is_none_or(|rate| rate < flight.nic);
            self.window_packets = match self.law_window() {
                u64::MAX if limited => flight.window_packets,
                window => window,
            };
        }
        if now < self.next_send {
            self.limit_by(now, Limit::Pacing);
            return Err(self.next_send);
        }
        let untimed = self.rto_deadline == Instant::NEVER;
        let (_, number, bytes, flags) = self.next_data(now, self.recovery.in_flight())?;
        self.next_send = now + flight.nic.time_for(u32::from(bytes));
        if untimed {
            // No probe: its time would be a multiple of an RTT that is not known.
            (self.probing, self.rto_deadline) = (false, now + self.rto());
        }
        let first = flight.asks && number == 0;
        let Some(opening) = self.spec.opening() else {
            return Ok((if first { Role::First } else { Role::Data }, number, bytes, flags));
        };
        self.echoed = opening.echoed_with(number);
        Ok((if first { Role::First } else { Role::Early }, opening.number(), bytes, flags))
    }

    /// Ends the first flight at its first answer. Returns true if data has been sent.
    #[cold]
    #[inline(never)]
    pub(super) fn end_first_flight(&mut self, now: Instant) -> bool {
        if self.phase != Phase::Unanswered {
            return self.phase == Phase::Open;
        }
        self.phase = Phase::Open;
        if self.limits.current() == Limit::Handshake {
            self.limit_by(now, Limit::Window);
        }
        self.next_send = now;
        self.forget_first_flight();
        true
    }

    /// Handles the acknowledgement of a packet of the first flight, which tells a traffic source's flow its receiver.
    pub(super) fn on_first_flight_ack(&mut self, now: Instant, packet: &Packet, blocks: Option<&Blocks>) {
        let (receiver, blocks) = named(blocks);
        if let Some(receiver) = receiver {
            self.spec.to = receiver;
        }
        self.on_ack(now, packet, blocks.as_ref());
    }
}
