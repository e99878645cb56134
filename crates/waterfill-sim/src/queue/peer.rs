//! Comparison of a queue discipline with the pseudo-code of its RFC, packet by packet.

use rand_pcg::Pcg64;
use waterfill_laws::units::{Instant, Rate};
use waterfill_network::random::{below, uniform};

use super::discipline::{Arrival, Backlog, BufferLimit, QueueOutcome, Scheduler, Waiting};
use crate::packet::Flags;
use crate::testing;

/// An arriving packet. `number` counts the packets of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    pub(super) at: Instant,
    pub(super) number: u64,
    pub(super) bytes: u16,
    pub(super) ecn: Codepoint,
}

/// ECN field of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codepoint {
    NotEct,
    Ect0,
    Ect1,
}

impl Codepoint {
    fn flags(self) -> Flags {
        match self {
            Self::NotEct => Flags::default(),
            Self::Ect0 => Flags::MARKABLE,
            Self::Ect1 => Flags::L4S,
        }
    }
}

/// A packet that a queue has sent: its number, and true if the queue has marked it.
pub(super) type Sent = (u64, bool);

/// A discipline whose state can be compared.
pub(super) trait Stated: Scheduler {
    /// Returns the values that [`Pseudocode::state`] returns.
    fn state(&self) -> Vec<f64>;
}

/// Pseudo-code of a discipline, with queues of its own.
pub(super) trait Pseudocode {
    /// Handles an arrival. `fits` is false if the buffer is full.
    fn enqueue(&mut self, packet: Offered, fits: bool);
    /// Returns the next packet when the transmitter is free.
    fn dequeue(&mut self, now: Instant) -> Option<Sent>;
    /// Returns the state to compare, such as a probability.
    fn state(&self) -> Vec<f64>;
}

/// Rate of the transmitter: a full packet takes 1 ms.
const RATE_BPS: f64 = 12e6;

/// Returns `count` packets that load the transmitter by 0.6 to 1.4 times its rate, in phases of random length and load.
pub(super) fn trace(count: u64, codepoints: &[Codepoint]) -> Vec<Offered> {
    let mut rng = Pcg64::new(5, 7);
    let (mut at_s, mut mean_gap_s, mut left) = (0.0, 1e-3, 0u64);
    let packet = |number| {
        if left == 0 {
            left = 20 + below(&mut rng, 1500) as u64;
            mean_gap_s = 1e-3 / (0.8 + 1.2 * uniform(&mut rng));
            if below(&mut rng, 8) == 0 {
                at_s += 3.0 * uniform(&mut rng); // a pause, in which the queue runs empty
            }
        }
        left -= 1;
        at_s += mean_gap_s * 2.0 * uniform(&mut rng);
        Offered {
            at: Instant::from_secs(at_s),
            number,
            bytes: [1500, 1500, 1500, 700, 52][below(&mut rng, 5)],
            ecn: codepoints[below(&mut rng, codepoints.len())],
        }
    };
    (0..count).map(packet).collect()
}

/// Runs a discipline and its pseudo-code on one trace and asserts that they send, mark and drop the same packets, and
/// that their states agree. Returns the number of packets sent, marked and dropped.
pub(super) fn assert_equal(
    queue: &mut dyn Stated,
    peer: &mut dyn Pseudocode,
    packets: &[Offered],
    limit_packets: u64,
) -> [u64; 3] {
    let limit = BufferLimit { bytes: u64::MAX, packets: limit_packets };
    let mut outcome = QueueOutcome::default();
    let mut free_at = Instant::ZERO;
    let mut counts = [0; 3];
    let mut transmit = |now: Instant, queue: &mut dyn Stated, peer: &mut dyn Pseudocode, outcome: &mut QueueOutcome| {
        let next = queue.dequeue(now, outcome);
        let sent = next.map(|waiting| (waiting.packet.number, waiting.packet.flags.has(Flags::MARKED)));
        assert_eq!(sent, peer.dequeue(now), "at {} s", now.as_secs());
        counts[0] += u64::from(sent.is_some());
        counts[1] += u64::from(sent.is_some_and(|(_, marked)| marked));
        next.map(|waiting| now + Rate::from_bps(RATE_BPS).time_for(u32::from(waiting.packet.bytes)))
    };
    for &offered in packets {
        while free_at <= offered.at && queue.backlog().packets > 0 {
            free_at = transmit(free_at, queue, peer, &mut outcome).unwrap_or(free_at);
        }
        let idle = free_at <= offered.at;
        let mut waiting = Waiting { since: offered.at, ..testing::waiting(0, offered.at) };
        waiting.packet.number = offered.number;
        waiting.packet.bytes = offered.bytes;
        waiting.packet.flags = offered.ecn.flags();
        let arrival = Arrival {
            backlog: queue.backlog(),
            limit,
            idle: idle.then(|| offered.at.since(free_at)),
            markable: offered.ecn != Codepoint::NotEct,
            input: 0,
        };
        queue.enqueue(waiting, &arrival, &mut outcome);
        peer.enqueue(offered, arrival.fits(offered.bytes));
        if idle {
            free_at = transmit(offered.at, queue, peer, &mut outcome).unwrap_or(free_at);
        }
        let (own, peers) = (queue.state(), peer.state());
        let equal = own.iter().zip(&peers).all(|(own, peer)| (own - peer).abs() <= 1e-9 * peer.abs() + 1e-11);
        assert!(equal, "after packet {}: {own:?}, pseudo-code {peers:?}", offered.number);
    }
    while queue.backlog() != Backlog::default() {
        free_at = transmit(free_at, queue, peer, &mut outcome).unwrap_or(free_at);
    }
    counts[2] = outcome.drops;
    counts
}
