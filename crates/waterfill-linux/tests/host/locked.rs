//! Tests of connections that the kernel keeps on the law, because their route has `congctl lock`.

use std::time::Instant;

use super::{BYTES, Network, SERVER, number};

#[test]
fn a_fallback_that_is_refused_is_our_reno() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    let law = network.spaces.law();
    // A bottleneck of 20 Mbit/s with 20 packets of buffer, and no router: the connection must leave the law.
    let route = format!("ip route replace default via 10.99.1.2 congctl lock {law}");
    network.spaces.run_in('a', &route).unwrap();
    network.spaces.run_in('r', "tc qdisc add dev to-b root tbf rate 20mbit burst 6kb limit 30kb").unwrap();
    let begin = Instant::now();
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    let seconds = begin.elapsed().as_secs_f64();
    // No router answers within three RTTs, or the buffer overflows before.
    let reason = flow["fallback_reason"].as_str().unwrap_or_else(|| panic!("no reason: {flow}"));
    assert_eq!(flow["mode"], "fallen back", "{flow}");
    assert!(flow["flags"].as_array().unwrap().contains(&"Reno".into()), "{flow}");
    // The window follows the losses: 8 packets fit the path and 20 its buffer.
    let window = number(&flow, "window_packets");
    assert!((2.0..64.0).contains(&window), "{flow}");
    assert!(seconds < 3.0 * 8.0 * BYTES as f64 / 20e6, "{seconds} s: {flow}");
    let counters = &daemon.status()["counters"];
    let counted = (number(counters, "fallback_refused"), number(&counters["fallbacks"], reason));
    assert_eq!(counted, (1.0, 1.0), "{counters}");
}
