//! Tests of fixed-point laws at the limits of their ranges, where proofs found that numbers wrapped
//! (docs/validation/proofs.md).

use waterfill_laws::cohabit::{self, IMPROVED, Measured, Verdict};
use waterfill_laws::kernel::{KernelLaw, Packet, RunsInKernel as _, Tcp, VALUE_MAX, Value, Words};
use waterfill_laws::protocols::{ixcp::IXcp, pxcp::PXcp, rcp::Rcp, xcp::Xcp};

/// Largest rate of XCP and its variants in 2⁻¹⁶ byte/s. `PETABIT` is the capacity of a link that is clamped to this
/// rate.
const RATE_MAX: u64 = 1 << 62;
const PETABIT: u64 = 1_000_000_000_000_000;
/// Smallest feedback on the wire. `FEEDBACK_ZERO` is the code of zero feedback.
const FEEDBACK_MIN: u64 = 1;
const FEEDBACK_ZERO: u64 = 1 << 39;
const INTERVAL_US: u64 = 50_000;

/// Returns `struct law_params` for XCP and P-XCP, or for iXCP on a link with the name 1.
fn params(law: &KernelLaw, alpha: u64, gamma: u64, weight: u64) -> Words {
    let mut numbers = vec![
        ("alpha", alpha),
        ("gamma", gamma),
        ("min_interval", 1000),
        ("max_interval", 1_000_000),
        ("first_interval", INTERVAL_US),
        ("weight", weight),
    ];
    if law.has_param("link") {
        numbers.push(("link", 1));
    }
    law.params(&numbers)
}

/// Returns a link after one control interval with these arrivals, given as words of `struct law_sums`.
fn after_an_interval(law: &KernelLaw, params: &Words, arrivals: &[u64]) -> Words {
    let mut link = law.link();
    law.link_set(&mut link, params, PETABIT, 0);
    let mut sums = law.sums();
    for (word, &count) in arrivals.iter().enumerate() {
        sums.set(word, count);
    }
    let mut elapsed = 0;
    while elapsed < INTERVAL_US {
        elapsed += u64::from(law.interval(&link));
        law.tick(&mut link, &sums, 0);
        sums = law.sums();
    }
    assert_eq!(elapsed, INTERVAL_US);
    link
}

/// Returns the state of a CPU that has counted all of these arrivals and takes the link's residues with the next
/// packet.
fn cpu_of(law: &KernelLaw, arrivals: &[u64]) -> Words {
    let mut cpu = law.cpu();
    for (word, &count) in arrivals.iter().enumerate() {
        cpu.set(word, count);
    }
    cpu
}

fn value(rtt_code: u32, time_code: u32, feedback: u64, bottleneck: u16) -> Value {
    let mut value = [0; VALUE_MAX];
    value[..3].copy_from_slice(&rtt_code.to_be_bytes()[1..]);
    value[3..6].copy_from_slice(&time_code.to_be_bytes()[1..]);
    value[6..11].copy_from_slice(&feedback.to_be_bytes()[3..]);
    value[11..13].copy_from_slice(&bottleneck.to_be_bytes());
    value
}

/// An idle XCP link clamps a queue of 2^48 bytes, and measures the queue again after 2 ms. `law_idle()` used to shift
/// the upper bits of the queue out.
#[test]
fn an_idle_xcp_link_clamps_the_queue() {
    for law in [Xcp::law(), PXcp::law(), IXcp::law()] {
        let params = params(law, 400_000, 100_000, 0);
        let mut link = law.link();
        law.link_set(&mut link, &params, 10_000_000_000, 0);
        law.idle(&mut link, 1000, 1 << 48);
        let mut waited = 0;
        while law.link_signals(&link)[3] != 100 && waited < INTERVAL_US {
            waited += u64::from(law.interval(&link));
            law.tick(&mut link, &law.sums(), 100);
        }
        assert!(waited <= 6000, "measured after {waited} us");
    }
}

/// A source of the largest weight with a window of one byte states the longest time per byte. The product with the
/// weight used to wrap to a short time.
#[test]
fn a_source_of_xcp_states_a_long_time_per_byte() {
    for law in [Xcp::law(), PXcp::law(), IXcp::law()] {
        let params = params(law, 400_000, 100_000, 1_000_000);
        let mut source = law.source();
        law.source_init(&params, &mut source, 1, 1);
        let tcp = Tcp { srtt_us: 32_768_001, packet: 1, ..Tcp::default() }; // 4.1 s
        law.ack(&params, &mut source, &tcp, None);
        assert_eq!(law.forward(&params, &mut source)[3..6], [255; 3]);
    }
}

/// Residues of P-XCP stay below the largest rate on a petabit link.
///
/// The CPU may give nearly all of the capacity, and keeps the rate that an earlier router took away. Their sum used to
/// exceed 63 bits, so that nothing was left.
#[test]
fn residues_of_pxcp_stay_below_the_largest_rate() {
    const GAIN_LEFT: usize = 7; // of struct law_cpu
    let law = PXcp::law();
    let params = params(law, 999_999, 0, 0);
    // Bytes, volume, X, rtt X, and X of packets lowered: N/N_b is 1.9.
    let arrivals = [1_000_000, 1_000_000, 1 << 50, 1 << 45, 592_592_481_486_592];
    let mut link = after_an_interval(law, &params, &arrivals);
    let mut cpu = cpu_of(law, &arrivals);
    let packet = Packet { bytes: 1500, segments: 1 << 14, syn: 0 };
    assert!(!law.mark(&mut link, &mut cpu, &packet, &mut value(1 << 20, 1 << 20, FEEDBACK_MIN, 0)));
    assert_eq!(cpu.words()[GAIN_LEFT], RATE_MAX);
}

/// In iXCP, a local packet of extreme X takes all remaining feedback. The sum of its own feedback and its feedback from
/// shuffling used to wrap.
#[test]
fn a_local_packet_of_ixcp_takes_what_is_left() {
    const GAIN_LEFT: usize = 10; // of struct law_cpu
    let law = IXcp::law();
    let params = params(law, 400_000, 100_000, 0);
    let bytes = (0.9 * 2_f64.powi(46) * 0.05) as u64;
    let (x, local_x) = (5_700_000_000_000_000, 7_100_000_000_000_000);
    let arrivals = [bytes, bytes, x, 1 << 50, bytes, local_x];
    let mut link = after_an_interval(law, &params, &arrivals);
    let mut cpu = cpu_of(law, &arrivals);
    let packet = Packet { bytes: 1 << 20, segments: 1, syn: 0 };
    let mut data = value(1 << 20, (1 << 24) - 1, 0, 1);
    assert!(law.mark(&mut link, &mut cpu, &packet, &mut data));
    assert!(data[6..11] > FEEDBACK_ZERO.to_be_bytes()[3..], "it gains");
    assert_eq!(cpu.words()[GAIN_LEFT], 0);
}

/// A super-packet of 2^19 bytes or more with headers is dropped if TCP's share is nearly zero.
///
/// Its time at that share used to wrap to a short time, so that the packet was admitted.
#[test]
fn cohabitation_limits_the_largest_packets() {
    let params = cohabit::Params {
        capacity: 1_000_000,
        target: 1_000_000,
        interval: 20_000,
        period: 2_000_000,
        controller: IMPROVED,
        weight: 1000,
        aim: 900_000,
        integral: 500,
        proportional: 1000,
        depth: 300_000,
        ..cohabit::Params::default()
    };
    let mut link = cohabit::Link::new(&params, 0);
    let measured =
        Measured { us: 20_000, usable: 1000, explicit_share: 1000, tcp_flows: 1, present: 1, ..Measured::default() };
    link.update(&params, &measured, 0);
    assert_eq!(link.decide(&params, 0, 1_099_512, 979, false, 0), Verdict::Drop);
    assert_eq!(link.decide(&params, 0, 1 << 19, 362, false, 0), Verdict::Drop);
}

/// Returns RCP's link of 1 Gbit/s with α = 1. `first_rate` is the first rate in millionths of the capacity.
fn rcp_link(first_rate: u64, first_rtt_us: u64) -> Words {
    let law = Rcp::law();
    let params = law.params(&[
        ("alpha", 1000),
        ("first_rate", first_rate),
        ("max_interval", 1_000_000),
        ("first_rtt", first_rtt_us),
        ("r_min", 1000),
    ]);
    let mut link = law.link();
    law.link_set(&mut link, &params, 1_000_000_000, 0);
    link
}

/// Returns RCP's rate R in bit/s.
fn rcp_rate(link: &Words) -> f64 {
    Rcp::law().link_signals(link)[0] as f64 / 1024.0
}

/// Each idle interval doubles RCP's rate R with α = 1 and T = d. Several intervals used to have the effect of one.
#[test]
fn idle_intervals_of_rcp_double_the_rate_each() {
    let mut link = rcp_link(10_000, 100_000);
    Rcp::law().idle(&mut link, 3, 0);
    assert!((rcp_rate(&link) / 80e6 - 1.0).abs() < 1e-5, "{}", rcp_rate(&link));
}

/// RCP's rate R grows to R (1 + g) even if the growth g is above one, here to 90 % of C.
///
/// The mean RTT falls from 100 to 50 ms in an interval without load, so g is 2. R used to become C.
#[test]
fn growth_of_rcp_above_one_is_multiplied() {
    let law = Rcp::law();
    let mut link = rcp_link(300_000, 100_000);
    let mut sums = law.sums();
    for (word, count) in [0, 1, 50_000].into_iter().enumerate() {
        sums.set(word, count);
    }
    law.tick(&mut link, &sums, 0);
    assert!((rcp_rate(&link) / 900e6 - 1.0).abs() < 1e-5, "{}", rcp_rate(&link));
}
