//! Tests of a path whose delay changes: hosts forget their smallest RTT after a window.

use crate::common::{self, assert_within, flow, link, network, run};
use waterfill_network::{ChangeSpec, Network};

/// Returns a flow of some seconds over 50 Mbit/s, whose RTT of 40 ms becomes 200 ms at 14.9 s.
fn step(protocol: &str, window_s: Option<f64>, lasts_s: f64) -> Network {
    let mut n = network(lasts_s, link("l", 5e7, 0.02, 250_000).to_vec(), vec![flow("f", protocol, &[0], lasts_s)]);
    n.flows[0].base_rtt_window_s = window_s;
    for link in &mut n.links {
        link.changes = vec![ChangeSpec { at_s: 14.9, delay_s: Some(0.1), ..ChangeSpec::default() }];
    }
    n
}

/// Returns the rate in Mbit/s over the last third of the run.
fn mbps(n: &Network) -> f64 {
    run(n).1.flows[0].rate_bps.unwrap() / 1e6
}

/// A window of rate × 40 ms per 200 ms is a fifth of the capacity of 50 Mbit/s. With a base RTT of 200 ms, MaxNet has
/// its share: 0.9 of the capacity, and for the thesis's 0.94.
#[test]
fn a_window_gives_the_share_back() {
    for (protocol, share) in [("maxnet", 45.0), ("maxnet2006", 47.0)] {
        assert_within(mbps(&step(protocol, None, 120.0)), 10.0, 0.1, protocol);
        assert_within(mbps(&step(protocol, Some(10.0), 120.0)), share, 0.02 * share, protocol);
    }
}

/// A law that does not use the smallest RTT cannot have a window.
#[test]
fn a_window_without_use_is_refused() {
    let refused = common::refusal(step("xcp", Some(10.0), 120.0));
    assert_eq!(refused, "flow.f.base_rtt_window: not allowed, because xcp does not use the smallest RTT");
}

/// The RTT of the SYN lacks the transmission of a packet. Vegas and FAST keep 2 to 4 and α packets in the queue with the
/// RTT of data, as with a window that does not expire within the run.
#[test]
fn a_long_window_is_none() {
    for protocol in ["vegas", "fast"] {
        let n = |window_s| step(protocol, window_s, 15.0);
        assert_eq!(run(&n(None)).1.flows, run(&n(Some(100.0))).1.flows, "{protocol}");
    }
}
