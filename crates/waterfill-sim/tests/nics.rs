//! Tests of hosts that keep their packets until their link is free.

use crate::common::{assert_close, cbr, flow, link, network, run, run_on};
use waterfill_network::{FlowSpec, Network, ParamValue};

/// Hosts a and b send to c over a link of 10 Mbit/s and one of 1 Gbit/s. Two links: that of the hosts, and c's.
fn shared_host(flows: Vec<FlowSpec>, pull: bool) -> Network {
    let mut links = [link("nic", 10e6, 1e-3, 30_000), link("core", 1e9, 1e-3, 1_000_000)].concat();
    links[0].pull = pull;
    let mut n = network(4.0, links, flows);
    n.set_param("window", "packets", ParamValue::Number(200.0));
    n.measure_s = [1.0, 4.0];
    n
}

fn sending(name: &str, bytes: Option<u64>) -> FlowSpec {
    FlowSpec { size_bytes: bytes, base_rtt_s: 4e-3, ..flow(name, "window", &[0, 2], 4.0) }
}

/// Four flows have 200 packets each for a link that holds 20.
#[test]
fn a_host_that_pulls_drops_nothing() {
    let flows: Vec<_> = ["a", "b", "c", "d"].map(|name| sending(name, None)).into();
    let (_, queued) = run(&shared_host(flows.clone(), false));
    assert!(queued.links[0].drops > 100, "{}", queued.links[0].drops);
    let (_, pulled) = run(&shared_host(flows, true));
    assert_eq!((pulled.links[0].drops, pulled.links[0].queue_packets.max), (0, 0.0));
    assert_close(pulled.links[0].utilization, 1.0, 1e-9);
    for flow in &pulled.flows {
        assert_eq!(flow.retransmissions, 0);
        assert_close(flow.rate_bps.unwrap(), 10e6 / 4.0, 2e-3);
        // A packet of 1500 B takes 1.2 ms, then 12 µs; its acknowledgement of 40 B 0.32 µs and 32 µs.
        assert_close(flow.rtt_ms.mean.unwrap(), 4.0 + 1.2 + 0.012 + 0.032 + 0.000_32, 1e-3);
    }
}

/// A flow of ten packets next to a long one: they take turns, so its last packet leaves after nineteen or twenty others.
#[test]
fn senders_take_turns_packet_by_packet() {
    let short = FlowSpec { start_s: 1.0, ..sending("short", Some(14_600)) };
    let (_, summary) = run(&shared_host(vec![sending("long", None), short], true));
    let took_s = summary.flows[1].completed_s.unwrap() - 1.0;
    // The handshake, then ten packets between ten others.
    let handshake_s = 4e-3 + 2.0 * 32e-6 + 1.2e-3;
    assert!((took_s - handshake_s - 20.0 * 1.2e-3 - 2e-3).abs() < 1.3e-3, "{took_s}");
}

/// Acknowledgements and packets of a source without flows do not wait for the flows' turns.
#[test]
fn other_packets_leave_first() {
    let mut n = shared_host(vec![sending("f", None)], true);
    n.traffic = vec![cbr("cbr", &[0, 2], 4e6, [0.0, 4.0], 1500)];
    let (_, summary) = run(&n);
    assert_close(summary.traffic[0].rate_bps.unwrap(), 4e6, 2e-3);
    assert_close(summary.flows[0].rate_bps.unwrap(), 6e6, 2e-3);
    assert!(summary.links[0].queue_packets.max <= 1.0, "{:?}", summary.links[0].queue_packets);
}

/// A flow alone leaves at the same times as through a queue that is long enough.
#[test]
fn a_flow_alone_is_as_with_a_queue() {
    let run = |pull| {
        let mut n = shared_host(vec![sending("f", Some(146_000))], pull);
        n.measure_s = [0.0, 4.0];
        n.links[0].buffer = waterfill_network::BufferSpec::UNLIMITED;
        run(&n).1
    };
    let (queued, pulled) = (run(false), run(true));
    assert_eq!(queued.flows[0].completed_s, pulled.flows[0].completed_s);
    assert!(queued.flows[0].rtt_ms.mean.unwrap() > 10.0 * pulled.flows[0].rtt_ms.mean.unwrap());
}

#[test]
fn threads_do_not_change_a_byte() {
    let hosts = (0..4).flat_map(|h| link(&format!("h{h}"), 10e6, 1e-3, 30_000));
    let mut links: Vec<_> = hosts.chain(link("trunk", 15e6, 5e-3, 60_000)).collect();
    (0..4).for_each(|h| links[2 * h].pull = true);
    let across = |name: &str, protocol: &str, h: u32| FlowSpec {
        count: 3,
        ..flow(name, protocol, &[2 * h, 8, if h == 0 { 5 } else { 7 }], 4.0)
    };
    let n = network(4.0, links, vec![across("a", "reno", 0), across("b", "dctcp", 1), across("c", "maxnet", 0)]);
    let ((one, whole), (two, divided)) = (run(&n), run_on(&n, 2));
    assert_eq!(two.threads(), 2);
    assert_eq!((&whole.flows, &whole.links), (&divided.flows, &divided.links));
    assert_eq!(one.ledger(), two.ledger());
}
