use std::collections::VecDeque;

use super::super::peer::{self, Codepoint, Offered, Pseudocode, Sent, Stated};
use super::*;
use crate::testing::queue_context;

fn spec() -> PieSpec {
    PieSpec {
        target_s: 0.015,
        update_s: 0.015,
        alpha_hz: 0.125,
        beta_hz: 1.25,
        max_burst_s: 0.15,
        ecn: true,
        mark_below: 0.1,
    }
}

#[test]
fn rfc8033_4_2_step_by_hand() {
    let of = |p, delay_s, before_s| step(&spec(), p, delay_s, before_s);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
    // 0.125 · (25 − 15) ms + 1.25 · (25 − 21) ms = 1.25e-3 + 5e-3
    close(of(0.5, 0.025, 0.021), 0.00625);
    close(of(0.05, 0.025, 0.021), 0.003125);
    close(of(0.005, 0.025, 0.021), 0.00625 / 8.0);
    close(of(0.0, 0.025, 0.021), 0.00625 / 2048.0);
    close(of(0.5, 0.0, 0.0), -0.125 * 0.015);
    // A jump by 100 ms: 0.125 · 0.1 + 1.25 · 0.1 = 0.1375, capped from a probability of 0.1 on.
    close(of(0.1, 0.115, 0.015), 0.02);
    close(of(0.099, 0.115, 0.015), 0.06875);
}

/// RFC 8033's Appendix B in its own variables, with the options of ECN, derandomization and the cap, and a delay measured
/// by timestamps.
struct AppendixB {
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: f64,
    qdelay_old: f64,
    current_qdelay: f64,
    updates: u64,
    queue: VecDeque<(Offered, bool)>,
    random: Pcg64,
}

const QDELAY_REF: f64 = 0.015;
const T_UPDATE: f64 = 0.015;
const MAX_BURST: f64 = 0.150;
const MEAN_PKTSIZE: u64 = 1500;

impl AppendixB {
    fn new(random: Pcg64) -> Self {
        let (drop_prob, accu_prob, burst_allowance, qdelay_old, current_qdelay) = (0.0, 0.0, 0.0, 0.0, 0.0);
        Self {
            drop_prob,
            accu_prob,
            burst_allowance,
            qdelay_old,
            current_qdelay,
            updates: 0,
            queue: VecDeque::new(),
            random,
        }
    }

    fn byte_length(&self) -> u64 {
        self.queue.iter().map(|(packet, _)| u64::from(packet.bytes)).sum()
    }

    fn tick(&mut self, now: Instant) {
        while now.as_ps() >= (self.updates + 1) * 15_000_000_000 {
            self.updates += 1;
            self.calculate_drop_prob();
        }
    }

    fn calculate_drop_prob(&mut self) {
        let mut p = 0.125 * (self.current_qdelay - QDELAY_REF) + 1.25 * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000_001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.000_01 {
            p /= 512.0;
        } else if self.drop_prob < 0.000_1 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = f64::max(0.0, self.burst_allowance - T_UPDATE);
        if self.burst_allowance < 1e-9 {
            self.burst_allowance = 0.0; // ten subtractions of 15 from 150 in binary fractions
        }
    }

    /// True stands for DROP.
    fn drop_early(&mut self) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2) || self.byte_length() <= 2 * MEAN_PKTSIZE {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            return true;
        }
        uniform(&mut self.random) < self.drop_prob
    }
}

impl Pseudocode for AppendixB {
    fn enqueue(&mut self, packet: Offered, fits: bool) {
        self.tick(packet.at);
        if !fits {
            self.accu_prob = 0.0;
            return;
        }
        if self.burst_allowance == 0.0 && self.drop_early() {
            self.accu_prob = 0.0;
            if packet.ecn == Codepoint::Ect0 && self.drop_prob < 0.1 {
                self.queue.push_back((packet, true));
            }
        } else {
            self.queue.push_back((packet, false));
        }
        if self.drop_prob == 0.0 && self.current_qdelay < QDELAY_REF / 2.0 && self.qdelay_old < QDELAY_REF / 2.0 {
            self.burst_allowance = MAX_BURST;
        }
    }

    fn dequeue(&mut self, now: Instant) -> Option<Sent> {
        self.tick(now);
        let (packet, marked) = self.queue.pop_front()?;
        self.current_qdelay = if self.queue.is_empty() { 0.0 } else { now.since(packet.at).as_secs() };
        Some((packet.number, marked))
    }

    fn state(&self) -> Vec<f64> {
        vec![self.drop_prob, self.accu_prob, self.burst_allowance, self.qdelay_old]
    }
}

impl Stated for PieQueue {
    fn state(&self) -> Vec<f64> {
        let law = &self.law;
        vec![law.drop_probability, law.accumulated, law.burst_allowance.as_secs(), law.delay_before.as_secs()]
    }
}

#[test]
fn decides_like_appendix_b_on_ten_thousand_arrivals() {
    let packets = peer::trace(10_000, &[Codepoint::NotEct, Codepoint::NotEct, Codepoint::Ect0]);
    let context = queue_context();
    let mut oracle = AppendixB::new(context.rng.clone());
    let mut queue = PieQueue::new(&spec(), context);
    let [sent, marked, dropped] = peer::assert_equal(&mut queue, &mut oracle, &packets, 120);
    assert_eq!(sent + dropped, 10_000);
    assert!(marked >= 10 && dropped > 500, "{marked} marked, {dropped} dropped");
}

/// A burst shorter than the allowance passes whole, and the same burst right behind it does not.
#[test]
fn a_burst_within_the_allowance_is_not_dropped() {
    let mut queue = PieQueue::new(&spec(), queue_context());
    let mut outcome = QueueOutcome::default();
    let mut offer = |ms: u64, outcome: &mut QueueOutcome| {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let arrival = Arrival { idle: None, ..crate::testing::arrival(queue.backlog(), 1000) };
        queue.enqueue(crate::testing::waiting(0, now), &arrival, outcome);
        if ms % 3 == 0 {
            queue.dequeue(now, outcome);
        }
    };
    (0..150).for_each(|ms| offer(ms, &mut outcome));
    assert_eq!(outcome.drops, 0, "150 ms of allowance, at three times the rate");
    (150..1500).for_each(|ms| offer(ms, &mut outcome));
    assert!(outcome.drops > 20, "{}", outcome.drops);
}

/// Two updates that find the queue empty let the probability decay, however long the link was idle.
#[test]
fn an_idle_link_forgets() {
    let mut law = Pie::new(&spec(), 1500);
    law.drop_probability = 0.5;
    law.catch_up(Instant::from_secs(0.031));
    let second = (0.5 - 0.001_875) * 0.98;
    assert!((law.drop_probability - (second - 0.001_875) * 0.98).abs() < 1e-15);
    law.catch_up(Instant::from_secs(1e6));
    assert_eq!(law.drop_probability, 0.0);
    assert!(law.next_update > Instant::from_secs(1e6));
    assert!(law.next_update <= Instant::from_secs(1e6 + 0.015));
}
