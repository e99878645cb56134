//! Senders and receivers over patterns of losses, next to the pseudo-code of RFC 9002.

use super::pseudocode;
use crate::sender::patterns::{Ends, Hosts, NONE, ONE_WAY_US, Pattern, Sent, TOTAL, sends};

/// The pseudo-code's ends.
struct Pseudocode {
    from: pseudocode::Sender,
    to: pseudocode::Receiver,
    arrived: std::collections::BTreeSet<u64>,
}

impl Ends for Pseudocode {
    type Ack = pseudocode::Ack;
    fn send(&mut self, now: u64) -> Option<(u64, u64)> {
        self.from.send(now as f64)
    }
    fn arrive(&mut self, now: u64, Sent { number, data, .. }: Sent) -> Option<pseudocode::Ack> {
        let last = self.arrived.insert(data) && self.arrived.len() as u64 == TOTAL;
        self.to.on_packet(now as f64, number, last)
    }
    fn receiver_timer(&self) -> Option<u64> {
        self.to.timer.map(|time| time as u64)
    }
    fn on_receiver_timer(&mut self, now: u64) -> Option<pseudocode::Ack> {
        Some(self.to.ack(now as f64))
    }
    fn on_ack(&mut self, now: u64, ack: &pseudocode::Ack) {
        self.from.on_ack_received(now as f64, ack);
    }
    fn timer(&self) -> Option<u64> {
        self.from.loss_detection_timer.map(|time| time.ceil() as u64)
    }
    fn on_timer(&mut self, now: u64) {
        self.from.on_loss_detection_timeout(now as f64);
    }
}

impl Pseudocode {
    fn new() -> Self {
        Self {
            from: pseudocode::Sender::new(TOTAL, 2.0 * ONE_WAY_US as f64),
            to: pseudocode::Receiver::default(),
            arrived: std::collections::BTreeSet::new(),
        }
    }
}

const UNDO: &str = "the window is restored when the late packets arrive; the pseudo-code keeps it reduced";
const LATE: &[u64] = &[40, 90, 140, 200];
const PATTERNS: [Pattern<'static>; 21] = [
    NONE,
    Pattern { name: "one loss", lost: &[50], ..NONE },
    Pattern { name: "burst of 3", lost: &[50, 51, 52], ..NONE },
    Pattern { name: "burst of 10", lost: &[60, 61, 62, 63, 64, 65, 66, 67, 68, 69], ..NONE },
    Pattern { name: "every fourth of 40", lost: &[60, 64, 68, 72, 76, 80, 84, 88, 92, 96], ..NONE },
    Pattern { name: "first packet", lost: &[0], ..NONE },
    Pattern { name: "first window", lost: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ..NONE },
    Pattern { name: "last packet", lost: &[299], ..NONE },
    Pattern { name: "last 3 packets", lost: &[297, 298, 299], ..NONE },
    Pattern { name: "last 3 packets and their probes", lost: &[297, 298, 299, 300, 301], ..NONE },
    Pattern { name: "lost retransmission", lost: &[50, 111], ..NONE },
    Pattern { name: "retransmissions lost twice", lost: &[50, 51, 110, 111, 112, 150, 151, 152, 153], ..NONE },
    Pattern { name: "late by 1 ms", late: LATE, late_ms: 1, ..NONE },
    Pattern { name: "late by 5 ms", late: LATE, late_ms: 5, differs: UNDO, ..NONE },
    Pattern { name: "late by 20 ms", late: LATE, late_ms: 20, differs: UNDO, ..NONE },
    Pattern { name: "late by 100 ms", late: LATE, late_ms: 100, differs: UNDO, ..NONE },
    Pattern { name: "every second acknowledgement lost", acks_lost: 2, lost: &[70, 75, 80], ..NONE },
    Pattern { name: "acknowledgements lost for 100 ms", mute: Some((100, 200)), ..NONE },
    Pattern { name: "outage of 150 ms", outage: Some((150, 300)), ..NONE },
    Pattern { name: "outage of 1 s", outage: Some((150, 1150)), ..NONE },
    Pattern { name: "outage of 5 s", outage: Some((150, 5150)), ..NONE },
];

/// `[rfc9002:§A]` The order in which data is sent is that of the pseudo-code, except where `differs` says why not.
#[test]
fn rfc9002_the_order_of_sends_is_that_of_the_pseudo_code() {
    for pattern in &PATTERNS {
        let (ours, theirs) = (sends(Hosts::new("quic", true), pattern), sends(Pseudocode::new(), pattern));
        let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(ours == theirs, pattern.differs.is_empty(), "{}: first difference at {first:?}", pattern.name);
        let mut data: Vec<_> = (0..TOTAL).collect();
        data.retain(|number| !ours.contains(number));
        assert!(data.is_empty(), "{}: all data is sent", pattern.name);
    }
}
