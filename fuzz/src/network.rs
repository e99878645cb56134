//! Target `network`: a run of the packet simulator on a small random network.
//!
//! Links have any queue discipline and any fault, flows any protocol, and there may be traffic beside them. Rates and times
//! are such that a run has a few thousand packets.

use arbitrary::Unstructured;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::{BufferSpec, FlowSpec, LinkSpec, Network};
use waterfill_sim::Simulation;

use crate::input::{below, byte, decades, number};

mod faults;
mod queues;
mod traffic;

use queues::queue;
use traffic::traffic;

/// Packets that the fastest link can send in a run.
const PACKETS: f64 = 1000.0;
/// Limit of events for half a run. ACKs of one byte on a link that copies each packet, which a route takes three times,
/// cause millions.
const EVENTS: u64 = 200_000;
/// Time is in picoseconds: shares of it, such as utilization, are exact to this.
const ROUNDING: f64 = 1e-6;

/// Runs the network that the bytes describe, unless its checks refuse it.
///
/// # Panics
/// The run panics, packets are not conserved, a figure is outside of its bounds, or a second run differs.
pub fn network(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let how = byte(&mut u);
    let Ok(network) = describe(&mut u).checked() else { return };
    let Ok(mut sim) = Simulation::new(network.clone()) else { return };
    for until in [Instant::from_secs(network.duration_s / 2.0), sim.end()] {
        let goes_on = sim.advance_slice(until, EVENTS);
        conserved(&sim);
        if goes_on {
            return;
        }
    }
    bounded(&mut sim, &network);
    if how & 1 == 1 {
        let again = match how >> 1 & 3 {
            0 => rerun(&network, 1, 7),
            1 => rerun(&network, 2, 1),
            _ => rerun(&network, 1, 1),
        };
        assert!(printed(sim) == printed(again), "a second run differs");
    }
}

/// Runs a network again on some threads and in some slices.
fn rerun(network: &Network, threads: usize, slices: u32) -> Simulation {
    let mut sim = Simulation::new(network.clone()).expect("it was built before");
    if threads > 1 {
        sim.set_threads(Some(threads));
    }
    for slice in 1..slices {
        sim.advance(Instant::from_secs(network.duration_s * f64::from(slice) / f64::from(slices)));
    }
    sim.advance(sim.end());
    sim
}

/// Everything that a run gives.
fn printed(mut sim: Simulation) -> (String, Vec<u64>) {
    let summary = format!("{:?}", sim.summary());
    (summary, sim.series().iter().flat_map(|series| series.columns()).flatten().map(|x| x.to_bits()).collect())
}

fn conserved(sim: &Simulation) {
    let ledger = sim.ledger();
    let found = ledger.delivered + ledger.dropped + ledger.lost + ledger.in_transit;
    assert_eq!(ledger.sent + ledger.duplicated, found, "{ledger:?}");
    assert!(sim.sacks_in_use() as u64 <= ledger.in_transit, "{} blocks, {ledger:?}", sim.sacks_in_use());
}

fn bounded(sim: &mut Simulation, network: &Network) {
    let summary = sim.summary();
    for (link, spec) in summary.links.iter().zip(&network.links) {
        let window_s = network.measure_s[1] - network.measure_s[0];
        let burst = spec.bucket().map_or(0.0, |bucket| bucket.depth_bytes * 8.0 / (spec.rate_bps * window_s));
        let used = link.utilization;
        assert!((0.0..=1.0 + burst + ROUNDING).contains(&used), "{}: utilization {used}, burst {burst}", link.name);
        let (bytes, packets) = match spec.buffer {
            BufferSpec::Bytes(bytes) => (Some(bytes), None),
            BufferSpec::Packets(packets) => (None, Some(packets)),
        };
        let queues = [(&link.queue_bytes, bytes), (&link.queue_packets, packets)];
        for (queue, buffer) in queues {
            assert!(buffer.is_none_or(|most| queue.max <= most as f64), "{}: {queue:?} of {buffer:?}", link.name);
            assert!(0.0 <= queue.mean && queue.mean <= queue.max * (1.0 + ROUNDING), "{}: {queue:?}", link.name);
            assert!(0.0 <= queue.p99 && queue.p99 <= queue.max, "{}: {queue:?}", link.name);
        }
    }
    for flow in &summary.flows {
        assert!(flow.retransmissions <= flow.packets_sent, "{flow:?}");
        let rates = [flow.rate_bps, flow.goodput_bps];
        assert!(rates.iter().flatten().all(|rate| rate.is_finite() && *rate >= 0.0), "{flow:?}");
        if let [Some(rate), Some(goodput)] = rates {
            assert!(goodput <= rate * (1.0 + ROUNDING), "{flow:?}");
        }
        let times = [flow.rtt_ms.mean, flow.rtt_ms.p50, flow.rtt_ms.p99];
        assert!(times.iter().flatten().all(|ms| ms.is_finite() && *ms >= 0.0), "{flow:?}");
        assert!(flow.completed_s.is_none_or(|s| (0.0..=network.duration_s).contains(&s)), "{flow:?}");
    }
    for column in sim.series().iter().flat_map(|series| series.columns()) {
        assert!(column.iter().all(|x| !x.is_infinite()), "a column has an infinite value");
    }
}

fn describe(u: &mut Unstructured<'_>) -> Network {
    let rate_max = decades(u, 1e4, 1e9);
    let duration_s = PACKETS * 1500.0 * 8.0 / rate_max;
    let mut network = Network::builder(Duration::from_secs(duration_s)).unchecked();
    network.seed = u64::from(byte(u));
    network.sample_s = duration_s / f64::from(1 + byte(u) % 40);
    network.measure_s = [[0.0, duration_s / 3.0][below(u, 2)], duration_s];
    network.rto_min_s = decades(u, duration_s / 100.0, duration_s);
    network.rttvar_min_s = network.rto_min_s.min(0.2);
    let share = f64::from(1 + byte(u) % 8) / 8.0;
    network.packet_bytes = [1500, 1500, 128, 9000][below(u, 4)];
    network.ack_bytes = [40, 40, 1, 1500][below(u, 4)];
    for i in 0..=below(u, 3) {
        let pair = LinkSpec::duplex(
            &format!("l{i}"),
            Rate::from_bps(rate_max * if i == 0 { 1.0 } else { share }),
            Duration::from_secs(delay(u, duration_s)),
            Volume::from_bytes(decades(u, 100.0, 1e7).round()),
        );
        for mut link in pair {
            vary(u, &mut link, duration_s);
            network.links.push(link);
        }
    }
    let links = network.links.len();
    for i in 0..byte(u) % 4 {
        let flow = flow(u, i, links, duration_s, rate_max);
        network.flows.push(flow);
    }
    for i in 0..byte(u) % 3 {
        let source = traffic(u, i, links, duration_s, rate_max);
        network.traffic.push(source);
    }
    if byte(u) & 1 == 1 {
        for id in ProtocolId::ALL {
            if id.params_list().iter().any(|info| info.name == "arithmetic") {
                network.set_param(id.info().name, "arithmetic", "kernel");
            }
        }
    }
    network.set_param("window", "packets", f64::from(1 + u16::from(byte(u))));
    network
}

/// Often short against the run, sometimes nothing or most of it.
fn delay(u: &mut Unstructured<'_>, duration_s: f64) -> f64 {
    match byte(u) {
        0..=31 => 0.0,
        32..=39 => duration_s,
        _ => decades(u, duration_s / 1e4, duration_s / 10.0),
    }
}

/// Gives a link direction a queue, faults, a shaper or changes.
fn vary(u: &mut Unstructured<'_>, link: &mut LinkSpec, duration_s: f64) {
    use waterfill_network::{ChangeSpec, LossSpec, ReorderSpec, ShaperSpec};
    let share = |u: &mut Unstructured<'_>| f64::from(byte(u)) / 255.0;
    let what = byte(u);
    if what & 1 == 1 {
        link.queue = queue(u, duration_s);
    }
    if what & 2 == 2 {
        let (p, r) = (share(u), share(u));
        link.loss_model = Some(match byte(u) % 3 {
            0 => LossSpec::Independent { p: p / 4.0 },
            1 => LossSpec::GilbertElliott { p, r, loss_good: 0.0, loss_bad: share(u) },
            _ => LossSpec::Periodic { every: u64::from(byte(u)) },
        });
    }
    if what & 4 == 4 {
        link.reorder = Some(ReorderSpec { share: share(u), delay_s: decades(u, duration_s / 1e4, duration_s) });
        link.duplicate = share(u);
    }
    match what >> 3 & 7 {
        0 => {
            let line_bps = link.rate_bps * decades(u, 1.001, 100.0);
            let depth_bytes = decades(u, 1.0, 1e6);
            let bucket = ShaperSpec { line_bps, depth_bytes, timer_s: share(u) * duration_s / 100.0 };
            if byte(u) & 1 == 0 { link.shaper = Some(bucket) } else { link.policer = Some(bucket) }
        }
        1 => {
            let mut at_s = 0.0;
            for _ in 0..=byte(u) % 4 {
                at_s += decades(u, duration_s / 1000.0, duration_s / 2.0);
                let which = byte(u);
                link.changes.push(ChangeSpec {
                    at_s,
                    rate_bps: (which & 1 == 1).then(|| share(u) * link.rate_bps),
                    delay_s: (which & 2 == 2).then(|| delay(u, duration_s)),
                    up: (which & 4 == 4).then_some(which & 8 == 8),
                    restart: which & 16 == 16,
                    clock_step_s: (which & 32 == 32).then(|| faults::step(u, at_s)),
                });
            }
        }
        2 => link.buffer = BufferSpec::Packets(u64::from(byte(u))),
        3 => link.buffer = BufferSpec::UNLIMITED,
        4 => link.target = Some(share(u)),
        5 => link.routers = Some(vec!["maxnet".into()]),
        6 => link.faults = faults::of_link(u, duration_s),
        _ => {}
    }
}

fn path(u: &mut Unstructured<'_>, links: usize) -> Vec<u32> {
    (0..=below(u, 4)).map(|_| below(u, links) as u32).collect()
}

fn flow(u: &mut Unstructured<'_>, i: u8, links: usize, duration_s: f64, rate_max: f64) -> FlowSpec {
    let id = ProtocolId::ALL[below(u, ProtocolId::ALL.len())];
    let forward = path(u, links);
    let mut flow = FlowSpec::new(&format!("f{i}"), id.info().name, &forward, Duration::from_secs(duration_s));
    if byte(u) & 3 == 0 {
        flow.reverse = path(u, links);
    }
    let what = byte(u);
    flow.count = u32::from(1 + what % 3);
    flow.start_s = duration_s * f64::from(byte(u)) / 512.0;
    flow.stagger_s = duration_s * f64::from(byte(u)) / 4096.0;
    flow.pad_s = if what & 8 == 8 { delay(u, duration_s) } else { 0.0 };
    flow.pacing = [None, Some(true), Some(false)][below(u, 3)];
    flow.delayed_ack = what & 16 == 16;
    flow.size_bytes = (what & 32 == 32).then(|| 1 + u.arbitrary::<u16>().map_or(0, u64::from));
    flow.access_bps = (what & 64 == 64).then(|| decades(u, rate_max / 100.0, rate_max * 100.0));
    if what & 128 == 128 {
        flow.weight = decades(u, 1e-3, 1e3);
        flow.demand_bps = Some(decades(u, rate_max / 1e3, rate_max * 10.0));
        flow.initial_window_packets = number(u).abs().clamp(0.1, 1e3);
        flow.ecn = (byte(u) & 1 == 1).then_some(true);
        flow.claimed_rtt_s = (byte(u) & 3 == 0).then(|| decades(u, 1e-6, 1e3));
        flow.faults = faults::of_hosts(u, duration_s);
    }
    flow
}
