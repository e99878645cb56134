//! Transmissions of a sender that are neither acknowledged nor lost.

use std::collections::VecDeque;

use crate::ack_frame::{AckFrame, Numbers};
use crate::packet::{Blocks, Packet};
use crate::recovery::Recovery;

/// Last transmission of a data packet.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    number: u64,
    data: u64,
    lost: bool,
}

/// A lost transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) number: u64,
}

/// Transmissions that may still be acknowledged, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Transmissions {
    open: VecDeque<Transmission>,
    /// Number of the next transmission, unless packets have numbers.
    next: u64,
    /// Data number below which all data has been sent once.
    data: u64,
    /// Number above those of all transmissions that have repeated data. From there on the data is in order.
    repeated_to: u64,
}

impl Transmissions {
    /// Adds a packet that has been sent. Returns the number of the transmission and that of its data.
    pub(super) fn add(&mut self, packet: &Packet, quic: bool) -> (u64, u64) {
        let (number, data) = if quic {
            let Numbers { packet, data } = Numbers::decode(packet.number, self.next);
            (packet, data)
        } else {
            (self.next, packet.number)
        };
        self.next = number + 1;
        if !quic && data < self.data {
            self.open.retain(|sent| sent.data != data);
            self.repeated_to = self.next;
        }
        self.data = self.data.max(data + 1);
        self.open.push_back(Transmission { number, data, lost: false });
        (number, data)
    }

    /// Removes the packets of a QUIC acknowledgement. Returns its ranges.
    pub(super) fn acknowledge_packets(&mut self, frame: &AckFrame) -> Vec<(u64, u64)> {
        let ranges: Vec<_> = frame.ranges().collect();
        let within = |number: u64| ranges.iter().any(|&(from, to)| from <= number && number < to);
        let _ = self.remove(|sent| within(sent.number), |first| first.number > frame.largest);
        ranges
    }

    /// Removes the transmissions of data below `una` and in `blocks`. Returns the ranges of their numbers.
    pub(super) fn acknowledge_data(&mut self, una: u64, blocks: Option<&Blocks>) -> Vec<(u64, u64)> {
        let within = |data: u64| {
            let sacked = |blocks: &Blocks| blocks.iter().any(|&(from, to)| from <= data && data < to);
            data < una || blocks.is_some_and(sacked)
        };
        let repeated_to = self.repeated_to;
        let numbers = self.remove(|sent| within(sent.data), |first| blocks.is_none() && first.number >= repeated_to);
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, to)) if *to == number => *to += 1,
                _ => ranges.push((number, number + 1)),
            }
        }
        ranges.reverse();
        ranges
    }

    /// Removes transmissions and returns their numbers. `is_last` of the first one that stays says that all after it stay.
    fn remove(
        &mut self,
        is_acknowledged: impl Fn(&Transmission) -> bool,
        is_last: impl Fn(&Transmission) -> bool,
    ) -> Vec<u64> {
        let mut removed = Vec::new();
        while let Some(sent) = self.open.front().filter(|sent| is_acknowledged(sent)) {
            removed.push(sent.number);
            self.open.pop_front();
        }
        if self.open.front().is_some_and(|first| !is_last(first)) {
            self.open.retain(|sent| {
                let acknowledged = is_acknowledged(sent);
                if acknowledged {
                    removed.push(sent.number);
                }
                !acknowledged
            });
        }
        removed
    }

    /// Returns the transmissions that are newly lost.
    pub(super) fn lose(&mut self, recovery: &Recovery) -> Vec<Loss> {
        let mut losses = Vec::new();
        if recovery.is_intact() {
            return losses;
        }
        let quic = recovery.is_quic();
        for sent in &mut self.open {
            let number = if quic { sent.number } else { sent.data };
            if quic && !recovery.is_lost(number) {
                break; // nor is any later one
            }
            if !sent.lost && recovery.is_lost(number) {
                sent.lost = true;
                losses.push(Loss { number: sent.number });
            }
        }
        if quic {
            self.open.retain(|sent| !sent.lost);
        }
        losses
    }
}
