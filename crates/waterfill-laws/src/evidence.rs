//! Tests of `kernel/evidence.h`: which paths end a connection's use of its law.
#![expect(unsafe_code, reason = "the evidence is C code")]

use crate::mirror::mirror;

mirror! {
    /// `struct evidence_input`.
    struct Input = waterfill_evidence_input_fields {
        now_us: u64,
        last_ack_us: u64,
        signal: u64,
        srtt_us: u32,
        rtt_us: u32,
        base_rtt_us: u32,
        margin_us: u32,
        delivered: u32,
        lost: u32,
        forward_ms: i32,
        has_forward: u32,
        timed_out: u32,
        queue_rests: u32,
        has_echo: u32,
        tightens: u32,
        rests_losing: u32,
        reserved: u32,
    }
}

mirror! {
    /// `struct evidence`.
    struct Evidence = waterfill_evidence_fields {
        start_us: u64,
        delivered: u32,
        lost: u32,
        rtt: u32,
        forward_ms: i32,
        ack_gap_us: u32,
        weight: u32,
        since_us: u64,
        signal: u64,
        first_rtt: u32,
        loss_rounds: u32,
        path_us: u64,
        path_rtt: u32,
        probe_rounds: u32,
        probed_rtt: u32,
        drained_rtt: u32,
        base_forward_ms: u32,
        forward_known: u32,
    }
}

mod c {
    use super::{Evidence, Input};

    unsafe extern "C" {
        pub(super) safe fn waterfill_evidence_restart(evidence: &mut Evidence, input: &Input);
        pub(super) safe fn waterfill_evidence_ack(evidence: &mut Evidence, input: &Input);
        pub(super) safe fn waterfill_evidence_end_round(evidence: &mut Evidence, input: &Input) -> u32;
    }
}

/// `enum evidence_verdict`.
const NONE: u32 = 0;
const OF_QUEUE: u32 = 1;
const OF_LOSS: u32 = 2;
const PROBE: u32 = 3;
const PATH: u32 = 4;

/// Base RTT before a change, in us.
const BASE_US: u32 = 40_000;

/// Connection with one acknowledgement per millisecond.
struct Connection {
    evidence: Evidence,
    input: Input,
}

impl Connection {
    fn new() -> Self {
        let input = Input {
            now_us: 1_000_000,
            last_ack_us: 1_000_000,
            srtt_us: 8 * BASE_US,
            base_rtt_us: BASE_US,
            margin_us: 3000,
            ..Input::default()
        };
        let mut evidence = Evidence::default();
        c::waterfill_evidence_restart(&mut evidence, &input);
        Self { evidence, input }
    }

    /// Takes an acknowledgement after `gap_us`.
    fn ack(&mut self, gap_us: u64, rtt_us: u32) {
        self.input.last_ack_us = self.input.now_us;
        self.input.now_us += gap_us;
        self.input.rtt_us = rtt_us;
        self.input.delivered += 1;
        c::waterfill_evidence_ack(&mut self.evidence, &self.input);
    }

    /// Runs an RTT with acknowledgements every `gap_us`, of which `lost` packets are lost, and returns the verdict.
    fn round(&mut self, rtt_us: u32, gap_us: u64, lost: u32) -> u32 {
        for _ in 0..(u64::from(rtt_us) / gap_us).max(1) {
            self.ack(gap_us, rtt_us);
        }
        self.input.lost += lost;
        self.input.has_echo = 1;
        c::waterfill_evidence_end_round(&mut self.evidence, &self.input)
    }

    /// Runs up to `rounds` rounds of this RTT, until a verdict. Returns the verdict and the number of rounds.
    fn rounds(&mut self, rounds: u32, rtt_us: u32) -> (u32, u32) {
        (1..=rounds).map(|n| (self.round(rtt_us, 1000, 0), n)).find(|found| found.0 != NONE).unwrap_or((NONE, rounds))
    }
}

#[test]
fn a_longer_path_keeps_the_law() {
    let mut one = Connection::new();
    assert_eq!(one.rounds(40, BASE_US), (NONE, 40));
    assert_eq!(one.rounds(40, 200_000), (PROBE, 8));
    assert_eq!(one.rounds(9, 200_000), (PATH, 3));
    // The base RTT has not followed yet.
    assert_eq!(one.rounds(40, 200_000), (NONE, 40));
    one.input.base_rtt_us = 200_000;
    assert_eq!(one.rounds(40, 200_000), (NONE, 40));
    // The next change is more than 10 s after the first.
    assert_eq!(one.rounds(40, 300_000), (PROBE, 16));
    assert_eq!(one.rounds(9, 300_000), (PATH, 3));
}

#[test]
fn a_queue_of_its_own_drains_in_the_probe_and_ends_the_law() {
    let mut one = Connection::new();
    assert_eq!(one.rounds(40, 200_000), (PROBE, 8));
    assert_eq!(one.round(200_000, 1000, 0), NONE);
    assert_eq!(one.round(60_000, 1000, 0), NONE);
    assert_eq!(one.round(110_000, 1000, 0), OF_QUEUE);
}

#[test]
fn a_queue_that_grows_ends_the_law_without_a_probe() {
    let mut one = Connection::new();
    let found = (0..40).map(|n| one.round(60_000 + 2000 * n, 1000, 0)).find(|verdict| *verdict != NONE);
    assert_eq!(found, Some(OF_QUEUE));
}

#[test]
fn a_second_longer_path_within_ten_seconds_ends_the_law() {
    let mut one = Connection::new();
    assert_eq!((one.rounds(40, 80_000).0, one.rounds(9, 80_000).0), (PROBE, PATH));
    assert_eq!(one.rounds(40, 300_000).0, OF_QUEUE);
}

#[test]
fn a_price_that_rises_clears_the_evidence() {
    let mut one = Connection::new();
    one.input.tightens = 1;
    assert_eq!(one.rounds(60, 80_000), (NONE, 60));
}

/// Every packet in flight is lost, the timer declares the losses, and the first echo comes after two seconds.
#[test]
fn an_outage_is_no_evidence() {
    let mut one = Connection::new();
    assert_eq!(one.round(BASE_US, 1000, 20), NONE);
    assert_eq!(one.round(BASE_US, 1000, 20), NONE);
    assert!(one.evidence.weight >= 12);
    one.input.lost += 40;
    one.input.timed_out = 1;
    one.ack(2_000_000, BASE_US);
    assert_eq!((one.evidence.weight, one.round(BASE_US, 1000, 0)), (0, NONE));
    one.input.timed_out = 0;
    assert_eq!((one.rounds(40, BASE_US), one.evidence.weight), ((NONE, 40), 0));
}

#[test]
fn losses_of_the_timer_do_not_count_and_others_do() {
    let mut one = Connection::new();
    one.input.timed_out = 1;
    for _ in 0..10 {
        one.input.lost += 20;
        assert_eq!(one.round(BASE_US, 1000, 0), NONE);
    }
    one.input.timed_out = 0;
    let verdicts = [one.round(BASE_US, 1000, 20), one.round(BASE_US, 1000, 20), one.round(BASE_US, 1000, 20)];
    assert_eq!(verdicts, [NONE, NONE, OF_LOSS]);
}

/// At an RTT of 0.1 ms a round has a minimum over 25 ms, and a host that pauses for 4 ms is not a queue.
#[test]
fn a_late_host_is_no_queue() {
    let mut one = Connection::new();
    (one.input.base_rtt_us, one.input.srtt_us) = (100, 800);
    for _ in 0..1000 {
        one.ack(4000, 4100);
        assert_eq!(one.round(100, 50, 0), NONE);
    }
    // A few RTTs of late samples, with acknowledgements in time.
    for n in 0..10_000 {
        let rtt_us = if n % 4 == 0 { 100 } else { 4100 };
        one.ack(50, rtt_us);
        assert_eq!(c::waterfill_evidence_end_round(&mut one.evidence, &one.input), NONE);
    }
    assert_eq!(one.evidence.weight, 0);
    // Even if every sample is late.
    for _ in 0..1000 {
        assert_eq!(one.round(4100, 4000, 0), NONE);
    }
    assert_eq!(one.evidence.weight, 0);
    // A queue of this length with acknowledgements in time does count.
    assert_eq!(one.rounds(1000, 4100).0, PROBE);
}

/// A law's own loss in equilibrium, and one more packet per round.
#[test]
fn a_loss_that_rests_is_no_evidence() {
    let mut one = Connection::new();
    one.input.rests_losing = 125; // five packets per round
    for _ in 0..60 {
        assert_eq!(one.round(BASE_US, 1000, 5), NONE);
    }
    let found = (0..40).map(|_| one.round(BASE_US, 1000, 6)).find(|verdict| *verdict != NONE);
    assert_eq!(found, Some(OF_LOSS));
}

#[test]
fn a_queue_that_rests_is_no_evidence() {
    let mut one = Connection::new();
    one.input.queue_rests = 1;
    assert_eq!(one.rounds(60, 200_000), (NONE, 60));
}
