//! A sender whose packets are QUIC's: RTT samples, signals and probes of RFC 9002.
//!
//! No call of other methods leads here. Data and acknowledgements have roles of their own, and the timer of [`Quic`] replaces
//! `rto_deadline`.
//!
//! [`Quic`]: crate::recovery::quic::Quic

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod pseudocode;

use waterfill_laws::protocol::{Ecn, Event, PacketKind};
use waterfill_laws::units::{Duration, Instant, Volume};
use waterfill_network::FlowSpec;

use super::{Sender, SenderSpec};
use crate::ack_frame::{AckFrame, Numbers};
use crate::packet::{Blocks, Cargo, Flags, Packet};
use crate::recovery::Recovery;
use crate::recovery::quic::{Outcome, PathRtt, Signal};
use crate::recovery::rto::smoothed;

/// `[rfc9002:§7.2]` Minimum window, kMinimumWindow. The loss window of the laws is one packet, as TCP's.
const MIN_WINDOW: u64 = 2;

/// Returns the recovery of a new sender, which asks for the acknowledgements of `flow`.
pub(super) fn recovery(spec: &SenderSpec, flow: &FlowSpec) -> Recovery {
    let mut recovery = Recovery::new(spec.host.retransmission);
    if let (Some(quic), Some(asked)) = (recovery.quic(), &flow.ack_frequency) {
        quic.asked_delay = Some(Duration::from_secs(asked.max_delay_s));
    }
    recovery
}

impl Sender {
    /// Handles an ACK frame.
    #[inline(never)]
    pub(crate) fn on_ack_frame(&mut self, now: Instant, packet: &Packet, frame: &Blocks) {
        let frame = AckFrame::decode(frame);
        let Some(quic) = self.recovery.quic() else { return };
        let mut outcome = quic.on_ack(now, &frame);
        if let Some(sent) = outcome.sampled {
            self.sample_packet(now, sent, frame.delay);
        }
        let rtt = self.path_rtt();
        if let Some(quic) = self.recovery.quic() {
            quic.after_ack(now, &rtt, &mut outcome);
        }
        self.recovery.follow_quic();
        self.report_losses(now);
        self.apply_signal(now, outcome.signal);
        self.echoed = packet.echoed; // after the signal, which dates a limit back to the acknowledgement before
        self.acknowledge(now, packet, &outcome);
        self.window_packets = self.window_packets.max(MIN_WINDOW);
        self.app_limited = false;
        self.syn_repeated = false;
        if self.timed {
            self.on_message_acked(now, frame.delay);
        }
    }

    /// Passes an acknowledgement to the law. The packets sent before the last recovery period began do not count after
    /// it, because the window does not grow by them (`[rfc9002:§B.5]`).
    fn acknowledge(&mut self, now: Instant, packet: &Packet, outcome: &Outcome) {
        let Cargo::Echo(echo) = &packet.cargo else { return };
        if self.faults.is_some() && self.ignores(now, PacketKind::Ack) {
            return;
        }
        let counts = if self.recovery.is_recovering() { outcome.newly_arrived } else { outcome.after_recovery };
        let marked = if self.spec.host.ecn == Ecn::Off { 0 } else { outcome.newly_marked.min(counts) };
        let volumes: [Volume; 2] = [counts, marked].map(|packets| self.volume(packets));
        self.pass_to_law(now, echo, PacketKind::Ack, volumes, self.recovery.is_recovering());
    }

    /// Notifies the law of a signal.
    fn apply_signal(&mut self, now: Instant, signal: Option<Signal>) {
        let event = match signal {
            None => return,
            Some(Signal::Loss) => Event::Loss,
            Some(Signal::Mark) => Event::Marked,
            Some(Signal::Recovered) => Event::Recovered,
            Some(Signal::Spurious) => Event::Spurious,
            Some(Signal::PersistentCongestion) => {
                self.timeouts += 1;
                // [rfc9002:§5.2] The path may have changed.
                self.base_rtt = self.latest_rtt;
                self.recent_rtts.iter_mut().for_each(|recent| recent.clear());
                Event::Timeout
            }
        };
        self.on_event(now, event, 0);
        self.window_packets = self.law_window().max(MIN_WINDOW);
    }

    /// `[rfc9002:§5.3]` Takes the RTT sample of the packet sent at `sent`, whose acknowledgement the receiver delayed.
    fn sample_packet(&mut self, now: Instant, sent: Instant, ack_delay: Duration) {
        let rtt = now.since(sent).max(Duration::from_ps(1));
        self.record_rtt(now, rtt);
        let measured = match &self.faults {
            None => Some(rtt),
            Some(faults) => faults.rtt(sent, now),
        };
        let Some(rtt) = measured else { return };
        let before = self.smoothed;
        self.update_rtt(now, rtt); // the laws see the sample as it is
        let delay = ack_delay.min(self.recovery.max_ack_delay());
        if rtt >= self.base_rtt + delay {
            self.smoothed = Some(smoothed(before, rtt - delay));
        }
    }

    fn path_rtt(&self) -> PathRtt {
        let (smoothed, variation) = self.smoothed.unwrap_or((self.latest_rtt, self.latest_rtt / 2));
        PathRtt { latest: self.latest_rtt, smoothed, variation, max_ack_delay: self.recovery.max_ack_delay() }
    }

    /// Records a data packet that is being sent. Returns its numbers and flags.
    pub(super) fn on_datagram_sent(&mut self, now: Instant, data: u64) -> (u64, Flags) {
        let rtt = self.path_rtt();
        let sent = self.recovery.quic().map(|quic| (quic.on_sent(data, now, &rtt), quic.asks_at_once()));
        let (packet, at_once) = sent.unwrap_or((data, false));
        // QUIC sets ECT on every packet, because none is a retransmission.
        (Numbers { packet, data }.encode(), self.spec.ect.with(Flags::IMMEDIATE_ACK, at_once))
    }

    /// Handles the timer of loss detection and probes.
    pub(super) fn on_quic_timer(&mut self, now: Instant) {
        let rtt = self.path_rtt();
        let Some(quic) = self.recovery.quic() else { return };
        let (signal, probes) = quic.on_timer(now, &rtt);
        let waiting = quic.waiting() as u64;
        if probes {
            let first = self.recovery.next();
            let unsent = (first..first + 2).take_while(|&number| self.is_written(now, number)).count();
            if let Some(quic) = self.recovery.quic() {
                quic.probe(waiting + unsent as u64);
            }
        }
        self.recovery.follow_quic();
        self.report_losses(now);
        self.apply_signal(now, signal);
    }

    /// Returns true if new data of this number can be sent.
    fn is_written(&self, now: Instant, number: u64) -> bool {
        let exists = self.spec.sizes.packets.is_none_or(|(count, _)| number < count);
        exists && now < self.spec.stop && self.written_at(number) <= now
    }
}
