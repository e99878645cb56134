//! Tests of HPCC and PowerTCP: rates, queues of incasts and at rest, and telemetry on lossy and divided paths.

use crate::common::{assert_within, build, flow, link, network, run, run_on};
use waterfill_laws::units::Instant;
use waterfill_network::{Network, ReorderSpec};
use waterfill_sim::Simulation;

const RATE_BPS: f64 = 10e9;
const DELAY_S: f64 = 5e-6;
const PACKET_BITS: f64 = 12_000.0;
const RTT_S: f64 = rtt_s(DELAY_S);

/// Returns the RTT of a full packet and its acknowledgement over two links, without the acknowledgement's transmissions.
const fn rtt_s(delay_s: f64) -> f64 {
    4.0 * delay_s + 2.0 * PACKET_BITS / RATE_BPS
}

/// Returns `senders` hosts with links of 10 Gbit/s, which send `packets` packets each over one link of 10 Gbit/s.
fn incast(protocol: &str, senders: u32, packets: u32, duration_s: f64) -> Network {
    hosts(protocol, senders, packets, duration_s, DELAY_S)
}

/// Returns the network of [`incast`] with links of another delay.
fn hosts(protocol: &str, senders: u32, packets: u32, duration_s: f64, delay_s: f64) -> Network {
    let mut links = link("last", RATE_BPS, delay_s, 1 << 30).to_vec();
    let mut flows = Vec::new();
    for h in 1..=senders {
        links.extend(link(&format!("h{h}"), RATE_BPS, delay_s, 1 << 30));
        let mut f = flow(&format!("f{h}"), protocol, &[2 * h, 0], duration_s);
        f.reverse = vec![1, 2 * h + 1];
        f.base_rtt_s = rtt_s(delay_s);
        f.size_bytes = Some(u64::from(packets) * (1500 - 40 - 42));
        flows.push(f);
    }
    let mut n = network(duration_s, links, flows);
    n.measure_s = [0.0, duration_s];
    n.sample_s = duration_s / 10.0;
    n.set_param(protocol, "base_rtt", rtt_s(delay_s));
    n
}

/// One flow rests at η + W_AI/(B·T), where the window that scales to the target is the present one.
#[test]
fn one_flow_carries_the_target() {
    let mut n = incast("hpcc", 1, u32::MAX >> 8, 0.01);
    n.measure_s = [0.005, 0.01];
    let (_, summary) = run(&n);
    assert_within(summary.links[0].utilization, 0.95 + 0.05 / 100.0, 0.0004, "utilization"); // two packets
    assert!(summary.links[0].queue_bytes.max <= 1500.0, "{}", summary.links[0].queue_bytes.max);
}

/// Of n flows of PowerTCP with β = B·τ/N each, the queue at rest is n/N of B·τ. The window of the last RTT makes it swing, so
/// the mean is up to 0.1 B·τ above that, and the link idles now and then.
#[test]
fn flows_of_powertcp_queue_their_increases() {
    let delay_s = 50e-6;
    for count in [1_u32, 2, 10, 20] {
        let mut n = hosts("powertcp", count, u32::MAX >> 8, 0.03, delay_s);
        n.measure_s = [0.015, 0.03];
        let (_, summary) = run(&n);
        // The largest window of one flow is B·τ, which queues nothing.
        let (low, swing) = if count == 1 { (0.0, 0.0) } else { (f64::from(count) / 100.0, 0.1) };
        let queue = summary.links[0].queue_bytes.mean * 8.0 / (RATE_BPS * rtt_s(delay_s));
        assert_within(queue, low + swing / 2.0, swing / 2.0 + 1e-9, "B·τ of queue");
        assert_within(summary.links[0].utilization, 1.0, 0.04, "utilization");
        let rates: Vec<f64> = summary.flows.iter().filter_map(|f| f.rate_bps).collect();
        let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|rate| rate * rate).sum());
        let jain = sum * sum / (squares * f64::from(count));
        assert!(jain > 0.9, "Jain's index of {count} flows: {jain}");
    }
}

/// All senders start with B·T at line rate, which is 19 packets. The first acknowledgement of data returns after T, in
/// which the link has taken 18 packets from its queue.
#[test]
fn an_incast_queues_the_windows_of_its_senders() {
    for senders in [4_u32, 16] {
        let packets = 200;
        let (_, summary) = run(&incast("hpcc", senders, packets, 0.01));
        let queued = f64::from(19 * senders - 18);
        assert_within(summary.links[0].queue_bytes.max / 1500.0, queued, 1.0, "packets in the queue");
        let last_s = summary.flows.iter().filter_map(|f| f.completed_s).fold(0.0, f64::max);
        // All packets at the link's rate, the handshake, the first packet's way to the link, and the last one's from it.
        let ideal_s = f64::from(senders * packets) * PACKET_BITS / RATE_BPS + RTT_S + 2.0 * DELAY_S;
        assert!(ideal_s < last_s && last_s < 1.25 * ideal_s, "{senders} senders: {last_s} s, ideally {ideal_s} s");
        assert_eq!(summary.links[0].drops, 0);
    }
}

/// No slot of telemetry is lost or kept with lost, late and duplicated packets: with SACK blocks, over QUIC, and without a
/// handshake.
#[test]
fn telemetry_survives_faults() {
    for (quic, handshake) in [(false, true), (true, true), (false, false)] {
        let mut n = incast("hpcc", 3, 2000, 0.05);
        (n.rto_min_s, n.rttvar_min_s) = (1e-3, 1e-3); // the last packet may be lost
        for l in &mut n.links {
            (l.loss, l.duplicate) = (0.01, 0.01);
            l.reorder = Some(ReorderSpec { share: 0.01, delay_s: DELAY_S });
        }
        for f in &mut n.flows {
            f.recovery = quic.then(|| "quic".into());
            f.handshake = handshake;
        }
        let mut sim = build(&n);
        sim.advance(Instant::from_secs(0.05));
        let summary = sim.summary();
        assert!(
            summary.flows.iter().all(|f| f.completed_s.is_some()),
            "quic {quic}, handshake {handshake}: every flow completes"
        );
        assert_eq!(sim.sacks_in_use(), 0, "quic {quic}, handshake {handshake}");
    }
}

/// Telemetry crosses from one thread's part to another's.
#[test]
fn divided_runs_are_the_same() {
    let n = incast("hpcc", 6, 500, 0.01);
    let results = [1, 2, 3].map(|threads| serde_json::to_string(&run_on(&n, threads).1).expect("a summary"));
    assert!(results[1] == results[0] && results[2] == results[0]);
}

/// A stack holds the records of six links.
#[test]
fn longer_paths_are_refused() {
    let path: Vec<u32> = (0..7).map(|l| 2 * l).collect();
    let links = (0..7).flat_map(|l| link(&format!("l{l}"), RATE_BPS, DELAY_S, 1 << 30)).collect::<Vec<_>>();
    let with = |path: &[u32]| {
        let n = network(0.001, links.clone(), vec![flow("f", "hpcc", path, 0.001)]);
        Simulation::new(n.checked().expect("a valid network")).err()
    };
    let error = "hpcc: f has a path of 7 links, and its telemetry holds at most 6; shorten the path";
    assert_eq!((with(&path[1..]), with(&path)), (None, Some(error.to_owned())));
}
