//! Estimate of a simulator run: its memory, number of events and CPU time.

use waterfill_network::Network;
use waterfill_network::estimate::{EntryTraffic, Estimate, entries, first_burst};

use crate::flow::{ReceivingHost, SendingHost};
use crate::link::{Link, QUEUED_BYTES};
use crate::packet::Cargo;

/// Bytes of a flow's entry in the summary: in the engine, in the JSON document and in Python's objects.
const SUMMARY_BYTES: f64 = 1200.0;
/// CPU time per event in seconds, on a CPU of 2020.
const EVENT_S: f64 = 1e-7;
/// Maximum backlog assumed for a queue, in seconds at its link's rate, even if the buffer is larger.
const MAX_QUEUE_S: f64 = 1.0;

/// Estimates the cost of a checked network in the simulator.
///
/// The test against measured runs is `tests/python/runs/test_estimate.py`.
#[must_use]
pub fn estimate(network: &Network) -> Estimate {
    let mut estimate = Estimate::default();
    let entries = entries(network);
    for flow in &network.flows {
        let count = f64::from(flow.count);
        let hosts = size_of::<SendingHost>() + size_of::<ReceivingHost>();
        let bytes = count * (hosts as f64 + SUMMARY_BYTES);
        estimate.bytes.add(bytes, || format!("flow.{}.count", flow.name));
        estimate.events.add(first_burst(flow), || format!("flow.{}.initial_window", flow.name));
    }
    let links = network.links.len() as f64;
    estimate.bytes.add(links * size_of::<Link>() as f64 * 2.0, || "link".into());
    add_packets(&mut estimate, network, &entries);
    estimate.add_timers(network);
    estimate.add_series(network, &entries, |flow| f64::from(flow.count));
    estimate.cpu_s = estimate.events.total * EVENT_S;
    estimate
}

/// Adds the memory of packets on wires and in queues, and the events that these packets cause.
fn add_packets(estimate: &mut Estimate, network: &Network, entries: &[EntryTraffic<'_>]) {
    let packet_bytes = QUEUED_BYTES as f64 + size_of::<Cargo>() as f64;
    for entry in entries {
        let (out, back) = entry.ways;
        let carried = entry.packets * entry.carried;
        // What the first link drops costs an event as well; an acknowledgement costs one per link; a host's timers one.
        let events = entry.packets + carried * (out.len() as f64 + entry.acks * (back.len() as f64 + 1.0));
        estimate.events.add(events, || entry.key.clone());
        let per_s = entry.packets_per_s * entry.carried;
        for (&l, is_data) in out.iter().map(|l| (l, true)).chain(back.iter().map(|l| (l, false))) {
            let link = &network.links[l as usize];
            let buffer_s = link.buffer.as_bytes(f64::from(network.packet_bytes)) * 8.0 / link.rate_bps;
            let queue_s = if is_data { buffer_s.min(MAX_QUEUE_S) } else { 0.0 };
            let share = if is_data { 1.0 } else { entry.acks };
            let held = (per_s * share * (link.delay_s + queue_s)).min(entry.packets);
            estimate.bytes.add(held * packet_bytes, || format!("link.{}.delay", link.name));
        }
    }
}
