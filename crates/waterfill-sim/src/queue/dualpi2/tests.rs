use std::collections::VecDeque;

use super::super::peer::{self, Codepoint, Offered, Pseudocode, Sent, Stated};
use super::*;

fn spec() -> DualPi2Spec {
    DualPi2Spec {
        target_s: 0.015,
        rtt_max_s: 0.1,
        coupling: 2.0,
        ramp_start_s: 0.8e-3,
        ramp_range_s: 0.4e-3,
        ramp_packets: 1,
        classic_share: 0.1,
    }
}

#[test]
fn rfc9332_a1_constants_by_hand() {
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b, "{a} {b}");
    close(update_interval_s(0.015, 0.1), 0.015);
    close(update_interval_s(0.05, 0.1), 0.1 / 3.0);
    close(alpha_hz(0.015, 0.1), 0.15); // 0.1 · 15 ms / (100 ms)²
    close(beta_hz(0.1), 3.0); // 0.3 / 100 ms
    close(p_c_max(2.0), 0.25);
    close(p_c_max(0.5), 1.0);
}

#[test]
fn rfc9332_a1_update_by_hand() {
    let mut controller = DualPi2::new(&spec()).controller;
    controller.update(0.025);
    // 0.15 · (25 − 15) ms + 3 · 25 ms
    assert!((controller.probability - 0.0765).abs() < 1e-12);
    assert!((controller.classic() - 0.0765 * 0.0765).abs() < 1e-12);
    controller.update(0.025);
    assert!((controller.probability - 0.078).abs() < 1e-12, "no change of the delay: α only");
    controller.update(0.0);
    assert!((controller.probability - 0.000_75).abs() < 1e-12, "78 − 2.25 − 75 thousandths");
    controller.update(0.0);
    assert_eq!(controller.probability, 0.0);
}

#[test]
fn rfc9332_a1_ramp_and_step_by_hand() {
    let mut queue = DualPi2::new(&spec());
    let native = |queue: &DualPi2, us: f64| (queue.native(us * 1e-6) * 1e9).round() / 1e9;
    (0..2).for_each(|_| queue.low_latency.push(crate::testing::waiting(0, Instant::ZERO)));
    let seen = [799.0, 800.0, 1000.0, 1100.0, 1200.0, 5000.0].map(|us| native(&queue, us));
    assert_eq!(seen, [0.0, 0.0, 0.5, 0.75, 1.0, 1.0]);
    queue.spec.ramp_range_s = 0.0;
    assert_eq!([799.0, 800.1, 801.0].map(|us| native(&queue, us)), [0.0, 1.0, 1.0]);
    queue.low_latency.pop();
    assert_eq!(native(&queue, 5000.0), 0.0, "one packet is left");
}

#[test]
fn rfc9332_a1_recur_by_hand() {
    let mut recurrence = Recurrence::default();
    let due: Vec<bool> = (0..9).map(|_| recurrence.is_due(0.375)).collect();
    // Sums 0.375, 0.75, 1.125 → 0.125, 0.5, 0.875, 1.25 → 0.25, 0.625, 1.0 (not above one), 1.375 → 0.375.
    assert_eq!(due, [false, false, true, false, false, true, false, false, true]);
}

/// Backlogged queues share the link as 9 to 1 by bytes; a lone queue has all of it.
#[test]
fn the_scheduler_shares_by_weight() {
    let mut queue = DualPi2::new(&spec());
    for i in 0..200 {
        let mut waiting = crate::testing::waiting(0, Instant::ZERO);
        waiting.packet.flags = if i % 2 == 0 { Flags::L4S } else { Flags::default() };
        let fifo = if i % 2 == 0 { &mut queue.low_latency } else { &mut queue.classic };
        fifo.push(waiting);
    }
    let mut outcome = QueueOutcome::default();
    let mut low =
        |n: u32| (0..n).filter(|_| queue.dequeue(Instant::ZERO, &mut outcome).unwrap().packet.flags.is_l4s()).count();
    assert_eq!(low(1), 1, "L is first");
    assert!((89..=91).contains(&low(100)));
    low(29);
    assert_eq!(low(60), 0, "L is empty");
}

/// RFC 9332's Appendix A.2, with both queues, in its own variables.
struct AppendixA {
    p: f64,
    prevq: f64,
    updates: u64,
    lq: VecDeque<Offered>,
    cq: VecDeque<Offered>,
    l_count: f64,
    c_count: f64,
    /// Bytes times weights, in tenths: positive if the classic queue is next.
    balance: i64,
}

impl AppendixA {
    fn new() -> Self {
        let (lq, cq) = (VecDeque::new(), VecDeque::new());
        Self { p: 0.0, prevq: 0.0, updates: 0, lq, cq, l_count: 0.0, c_count: 0.0, balance: 0 }
    }

    fn tick(&mut self, now: Instant) {
        loop {
            let due = Instant::from_ps((self.updates + 1) * 15_000_000_000);
            if due > now {
                return;
            }
            self.updates += 1;
            let time = |queue: &VecDeque<Offered>| queue.front().map_or(0.0, |head| due.since(head.at).as_secs());
            let curq = f64::max(time(&self.cq), time(&self.lq));
            self.p = self.p + 0.15 * (curq - 0.015) + 3.0 * (curq - self.prevq);
            self.p = self.p.clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }

    fn recur(count: &mut f64, likelihood: f64) -> bool {
        *count += likelihood;
        if *count > 1.0 {
            *count -= 1.0;
            return true;
        }
        false
    }

    fn laqm(&self, qdelay: f64) -> f64 {
        if self.lq.len() <= 1 || qdelay <= 0.000_8 {
            0.0
        } else if qdelay >= 0.001_2 {
            1.0
        } else {
            (qdelay - 0.000_8) / 0.000_4
        }
    }
}

impl Pseudocode for AppendixA {
    fn enqueue(&mut self, packet: Offered, fits: bool) {
        self.tick(packet.at);
        if fits {
            let queue = if packet.ecn == Codepoint::Ect1 { &mut self.lq } else { &mut self.cq };
            queue.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Instant) -> Option<Sent> {
        self.tick(now);
        let (p_c, p_cl) = (self.p * self.p, 2.0 * self.p);
        while self.lq.len() + self.cq.len() > 0 {
            let both = !self.lq.is_empty() && !self.cq.is_empty();
            if !both {
                self.balance = 0;
            }
            if self.cq.is_empty() || (both && self.balance <= 0) {
                let packet = self.lq.pop_front()?;
                self.balance += if both { i64::from(packet.bytes) } else { 0 };
                if p_cl < 1.0 {
                    let p_l = f64::max(self.laqm(now.since(packet.at).as_secs()), p_cl);
                    return Some((packet.number, Self::recur(&mut self.l_count, p_l)));
                }
                if Self::recur(&mut self.l_count, p_c) {
                    continue;
                }
                return Some((packet.number, Self::recur(&mut self.l_count, 1.0)));
            }
            let packet = self.cq.pop_front()?;
            self.balance -= if both { 9 * i64::from(packet.bytes) } else { 0 };
            if !Self::recur(&mut self.c_count, p_c) {
                return Some((packet.number, false));
            }
            if packet.ecn == Codepoint::NotEct || p_c >= 0.25 {
                continue;
            }
            return Some((packet.number, true));
        }
        None
    }

    fn state(&self) -> Vec<f64> {
        vec![self.p, self.prevq, self.l_count, self.c_count]
    }
}

impl Stated for DualPi2 {
    fn state(&self) -> Vec<f64> {
        let (low, classic) = (self.low_latency_recurrence.0, self.classic_recurrence.0);
        vec![self.controller.probability, self.controller.delay_before_s, low, classic]
    }
}

#[test]
fn decides_like_appendix_a_on_ten_thousand_arrivals() {
    let packets = peer::trace(10_000, &[Codepoint::NotEct, Codepoint::Ect0, Codepoint::Ect1, Codepoint::Ect1]);
    let [sent, marked, dropped] = peer::assert_equal(&mut DualPi2::new(&spec()), &mut AppendixA::new(), &packets, 150);
    assert_eq!(sent + dropped, 10_000);
    assert!(marked > 1000 && dropped > 500, "{marked} marked, {dropped} dropped");
}
