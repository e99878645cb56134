//! Tests of the handshake: what lost SYNs change for the data, with times computed by hand.

use crate::common::{assert_within, flow, link, network, run};
use waterfill_network::{ChangeSpec, Network};

/// Laws of TCP whose slow start adds one packet per acknowledged packet.
const TCPS: [&str; 6] = ["reno", "newreno", "sack", "cubic", "dctcp", "westwood"];

/// Returns a flow of ten packets from 50 ms on, over a link with an RTT of 0.1 s. Its direction `down` is interrupted in
/// each of the spans.
fn interrupted(protocol: &str, down: usize, spans: &[[f64; 2]]) -> Network {
    let mut flow = flow("f", protocol, &[0], 20.0);
    (flow.start_s, flow.size_bytes) = (0.05, Some(14_000));
    let mut n = network(20.0, link("l", 1e8, 0.05, 1 << 20).to_vec(), vec![flow]);
    let changes = spans.iter().flat_map(|&[from_s, to_s]| [(from_s, false), (to_s, true)]);
    n.links[down].changes =
        changes.map(|(at_s, up)| ChangeSpec { at_s, up: Some(up), ..ChangeSpec::default() }).collect();
    n
}

/// Returns the completion time and the number of timeouts.
fn outcome(n: &Network) -> (f64, u64) {
    let flow = &run(n).1.flows[0];
    (flow.completed_s.unwrap(), flow.timeouts)
}

/// SYNs at 0.05, 1.05 and 3.05 s are lost, or their answers. The one at 7.05 s is answered at 7.15 s. Windows of 1, 2, 4
/// and 3 packets take three RTTs and a one-way delay (RFC 5681 §3.1).
#[test]
fn after_several_lost_syns_the_first_window_is_one_packet() {
    for protocol in TCPS {
        for down in [0, 1] {
            let (completed_s, timeouts) = outcome(&interrupted(protocol, down, &[[0.001, 5.0]]));
            assert_eq!(timeouts, 3, "{protocol}");
            assert_within(completed_s, 7.5, 0.003, protocol);
        }
    }
}

/// One lost SYN leaves the initial window of ten packets (RFC 6928 §2).
#[test]
fn after_one_lost_syn_the_first_window_stays() {
    for protocol in TCPS {
        let (completed_s, timeouts) = outcome(&interrupted(protocol, 0, &[[0.001, 0.5]]));
        assert_eq!(timeouts, 1, "{protocol}");
        assert_within(completed_s, 1.2, 0.003, protocol);
    }
}

/// At an RTT of 10 s, the timer sends three more SYNs, but the first one is answered: no SYN was lost.
#[test]
fn a_long_path_is_no_loss_of_syns() {
    let mut n = interrupted("reno", 0, &[]);
    (n.links[0].delay_s, n.links[1].delay_s) = (5.0, 5.0);
    let (completed_s, timeouts) = outcome(&n);
    assert_eq!(timeouts, 3);
    assert_within(completed_s, 15.05, 0.003, "one window");
}

/// The window at 1.15 s is lost. After a repeated SYN the first timeout takes 3 s (RFC 6298, 5.7), not 1 s, and one
/// packet goes first.
#[test]
fn after_a_lost_syn_the_first_timeout_takes_three_seconds() {
    let (completed_s, timeouts) = outcome(&interrupted("reno", 0, &[[0.001, 0.5], [1.12, 1.2]]));
    assert_eq!(timeouts, 2);
    assert_within(completed_s, 4.5, 0.003, "reno");
    let (completed_s, timeouts) = outcome(&interrupted("reno", 0, &[[0.12, 0.2]]));
    assert_eq!(timeouts, 1);
    assert_within(completed_s, 0.15 + 1.0 + 0.35, 0.003, "without a lost SYN");
}

/// A router's answer to the SYN replaces the initial window: MaxNet and RCP start at its rate.
#[test]
fn a_start_rate_is_used_after_lost_syns() {
    for protocol in ["maxnet", "rcp"] {
        let (completed_s, _) = outcome(&interrupted(protocol, 0, &[[0.001, 5.0]]));
        assert!(completed_s < 7.35, "{protocol}: {completed_s}");
    }
}
