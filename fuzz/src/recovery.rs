//! Target `recovery`: the sender's scoreboard and the receiver, with a network that loses, repeats and reorders.
//!
//! The oracle is a set: which packets the acknowledgements that arrived have reported. With selective acknowledgements the
//! scoreboard must agree with it exactly.

use arbitrary::Unstructured;
use waterfill_laws::protocol::Retransmission;
use waterfill_sim::{Acknowledgement, HostPair};

use crate::input::{below, byte};

/// Packets of a connection.
const MAX_SENT: u64 = 200;
/// Packets and acknowledgements under way.
const MAX_WAITING: usize = 64;

struct Network {
    selective: bool,
    hosts: HostPair,
    data: Vec<u64>,
    acks: Vec<Acknowledgement>,
    /// Reported by the acknowledgements that have arrived.
    reported: Vec<bool>,
    /// Have arrived at the receiver.
    arrived: Vec<bool>,
    /// The highest cumulative acknowledgement that has arrived.
    cumulative: u64,
    counted: u64,
}

/// Runs a connection whose network the bytes decide, then lets everything arrive.
///
/// # Panics
/// A packet is reported twice, is sent again though it is known to have arrived, is in flight more often than it was
/// sent, or does not arrive in the end.
pub fn recovery(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let how = byte(&mut u);
    let mode = [Retransmission::Rfc6675, Retransmission::NewReno, Retransmission::Reno][usize::from(how) % 3];
    let mut network = Network {
        selective: mode == Retransmission::Rfc6675,
        hosts: HostPair::new(mode, how & 64 == 64),
        data: Vec::new(),
        acks: Vec::new(),
        reported: Vec::new(),
        arrived: Vec::new(),
        cumulative: 0,
        counted: 0,
    };
    while !u.is_empty() {
        network.step(&mut u);
        network.check();
    }
    network.finish();
}

impl Network {
    fn step(&mut self, u: &mut Unstructured<'_>) {
        let what = byte(u);
        match what % 16 {
            0..=4 => {
                for _ in 0..=what >> 5 {
                    self.send();
                }
            }
            5 | 6 => self.resend(),
            7..=9 if !self.data.is_empty() => {
                let at = if what & 16 == 0 { 0 } else { below(u, self.data.len()) };
                match what >> 5 {
                    0 => drop(self.data.remove(at)),
                    1 => self.arrive(self.data[at]),
                    _ => {
                        let number = self.data.remove(at);
                        self.arrive(number);
                    }
                }
            }
            10..=12 if !self.acks.is_empty() => {
                let at = if what & 16 == 0 { 0 } else { below(u, self.acks.len()) };
                match what >> 5 {
                    0 => drop(self.acks.remove(at)),
                    1 => self.acknowledge(self.acks[at]),
                    _ => {
                        let ack = self.acks.remove(at);
                        self.acknowledge(ack);
                    }
                }
            }
            13 => self.receiver_timer(),
            14 if self.hosts.unacknowledged() > 0 => self.hosts.time_out(),
            15 => self.hosts.mark(),
            _ => {}
        }
    }

    fn send(&mut self) {
        if self.hosts.sent() < MAX_SENT && self.data.len() < MAX_WAITING {
            self.data.push(self.hosts.send());
            self.reported.push(false);
            self.arrived.push(false);
        }
    }

    fn resend(&mut self) {
        let expected = self.hosts.to_resend();
        let Some(number) = self.hosts.resend() else { return };
        assert_eq!(expected, Some(number));
        assert!(number < self.hosts.sent(), "sends {number} again, which was not sent");
        let known = self.reported[number as usize] && (self.selective || number < self.cumulative);
        assert!(!known, "sends {number} again, which is known to have arrived");
        self.data.push(number);
    }

    fn arrive(&mut self, number: u64) {
        self.arrived[number as usize] = true;
        let ack = self.hosts.arrive(number);
        self.answer(ack);
    }

    fn receiver_timer(&mut self) {
        let ack = self.hosts.receiver_timer();
        self.answer(ack);
    }

    fn answer(&mut self, ack: Option<Acknowledgement>) {
        let Some(ack) = ack else { return };
        for (start, end) in ack.blocks.into_iter().flatten().filter(|(start, end)| start < end) {
            assert!(ack.next < start, "a block {start}..{end} at or below {}", ack.next);
            let range = start as usize..end as usize;
            assert!(self.arrived[range].iter().all(|&arrived| arrived), "a block of packets that have not arrived");
        }
        assert!(self.arrived[..ack.next as usize].iter().all(|&arrived| arrived), "acknowledges what is missing");
        if self.acks.len() < MAX_WAITING {
            self.acks.push(ack);
        }
    }

    fn acknowledge(&mut self, ack: Acknowledgement) {
        let newly = self.hosts.acknowledge(&ack);
        let before = self.reported.iter().filter(|&&reported| reported).count();
        self.cumulative = self.cumulative.max(ack.next);
        self.reported[..self.cumulative as usize].fill(true);
        for (start, end) in ack.blocks.into_iter().flatten().filter(|(start, end)| start < end) {
            self.reported[start as usize..end as usize].fill(true);
        }
        let known = self.reported.iter().filter(|&&reported| reported).count();
        if self.selective {
            assert_eq!(newly, (known - before) as u64, "counts arrivals wrongly");
        }
        self.counted += newly;
    }

    fn check(&self) {
        let hosts = &self.hosts;
        let arrived = self.arrived.iter().filter(|&&arrived| arrived).count() as u64;
        assert_eq!(hosts.arrived(), arrived, "payload that arrived for the first time");
        assert_eq!(hosts.unacknowledged(), hosts.sent() - self.cumulative);
        assert!(hosts.in_flight() <= hosts.outstanding(), "{} of {}", hosts.in_flight(), hosts.outstanding());
        assert!(hosts.outstanding() <= hosts.unacknowledged());
        assert_eq!(hosts.sacks_in_use(), 0);
        if self.selective {
            let missing = self.reported.iter().filter(|&&reported| !reported).count() as u64;
            assert_eq!(hosts.outstanding(), missing, "packets not known to have arrived");
            assert!(self.counted <= hosts.sent());
        }
    }

    /// Ends the losses, so that all packets arrive and are acknowledged, by time-outs if necessary.
    fn finish(&mut self) {
        let rounds = 4 * (self.hosts.sent() + 1);
        for _ in 0..rounds {
            while self.hosts.to_resend().is_some() {
                self.resend();
            }
            for number in std::mem::take(&mut self.data) {
                self.arrive(number);
            }
            self.receiver_timer();
            for ack in std::mem::take(&mut self.acks) {
                self.acknowledge(ack);
            }
            self.check();
            if self.hosts.unacknowledged() == 0 {
                break;
            }
            if self.hosts.to_resend().is_none() {
                self.hosts.time_out();
            }
        }
        assert_eq!(self.hosts.unacknowledged(), 0, "not acknowledged after {rounds} RTTs without a loss");
        assert_eq!((self.hosts.in_flight(), self.hosts.outstanding()), (0, 0));
        assert_eq!(self.hosts.arrived(), self.hosts.sent());
    }
}
