//! Packets between the hosts of a QUIC connection.

use super::Part;
use crate::flow::Owner;
use crate::packet::Packet;

impl Part {
    /// Hands a QUIC packet that carries data to its receiver.
    #[inline(never)] // keeps the path of TCP's packets short
    pub(super) fn receive_datagram(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        let host = &mut self.receivers[packet.to as usize];
        if packet.incarnation != host.incarnation {
            self.sacks.take(packet.sack);
            return; // of a closed connection
        }
        if let Owner::Traffic(t) = host.owner {
            self.traffic[t as usize].receive(self.now, packet.bytes);
        }
        let answer = host.receiver.on_datagram(self.now, packet, &mut self.sacks);
        self.follow_up(packet.to);
        if let Some(ack) = answer {
            self.ledger.sent += 1;
            let sack = self.sacks.echo_stack(packet.sack, ack.sack);
            self.enqueue(self.first_link(&ack), Packet { sack, ..ack });
        } else {
            self.sacks.take(packet.sack);
        }
    }

    /// Hands an ACK frame to its sender.
    #[inline(never)] // keeps the path of TCP's packets short
    pub(super) fn receive_ack_frame(&mut self, packet: &Packet) {
        self.ledger.delivered += 1;
        self.pass_stack(packet);
        let frame = self.sacks.take(packet.sack);
        let host = &mut self.senders[packet.to as usize];
        let sender = &mut host.sender;
        if packet.incarnation != sender.spec.incarnation {
            return; // of a closed connection
        }
        if let Some(frame) = &frame {
            sender.on_ack_frame(self.now, packet, frame);
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.received(self.now, packet.to, packet, frame.as_ref(), sender);
        }
        if let Owner::Traffic(t) = host.owner {
            if sender.is_done() {
                self.finish_flow(packet.to, t);
                return;
            }
        }
        self.transmit_unasked(packet.to);
    }
}
