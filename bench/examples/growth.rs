//! Cost of a packet and of a flow as the network grows: 10 to 10⁶ flows over one link, and 1 to 10⁴ links.
//!
//! `growth` runs every point of both tables, each in a process of its own, and prints them; `growth flows N` or
//! `growth links N` runs one point. A transmission is a packet over one link, acknowledgements included.

use nix::time::{ClockId, clock_gettime};
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::Network;
use waterfill_sim::Simulation;

const FLOWS: &[u32] = &[10, 100, 1_000, 10_000, 100_000, 1_000_000];
const LINKS: &[u32] = &[1, 10, 100, 1_000, 10_000];

/// Packets over the data's links that a run is made long enough for, and the least for each flow or link.
const PACKETS: f64 = 5e6;
const PACKETS_EACH: f64 = 20.0;

/// Consecutive links that a flow of the second table crosses.
const HOPS: usize = 4;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let point = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return all(),
        ["flows", n] => n.parse().ok().map(|n: u32| (n, many_flows as fn(u32) -> (Network, f64))),
        ["links", n] => n.parse().ok().map(|n: u32| (n, many_links as fn(u32) -> (Network, f64))),
        _ => None,
    };
    match point {
        Some((n, build)) if n > 0 => run(n, build),
        _ => {
            eprintln!("growth: unknown arguments {:?}; write nothing, flows N or links N", words.join(" "));
            std::process::exit(2);
        }
    }
}

/// Runs every point in a process of its own: a process' memory never shrinks.
fn all() {
    let program = std::env::current_exe().expect("the path of this program");
    for (kind, sizes) in [("flows", FLOWS), ("links", LINKS)] {
        println!(
            "| {kind} | simulated s | million transmissions | ns each (CPU) | load s | memory MB | bytes a flow, both ends | bytes a packet in flight |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for size in sizes {
            let status = std::process::Command::new(&program).args([kind, &size.to_string()]).status();
            assert!(status.is_ok_and(|status| status.success()), "{kind} {size} failed");
        }
        println!();
    }
}

/// `n` SACK flows of 1 Mbit/s or more over one link, with an RTT of 50 ms and a buffer of as much.
fn many_flows(n: u32) -> (Network, f64) {
    let (rate, rtt) = (Rate::from_bps((1e6 * f64::from(n)).max(1e9)), Duration::from_millis(50));
    let per_s = rate.as_bps() / 8.0 / 1500.0;
    let duration_s = PACKETS.max(PACKETS_EACH * f64::from(n)) / per_s;
    let network = Network::builder(Duration::from_secs(duration_s))
        .link("link", rate, Duration::from_millis(25), rate * rtt)
        .flow("flow", "sack", &["link"])
        .with(|network| {
            network.sample_s = duration_s;
            let flow = &mut network.flows[0];
            (flow.count, flow.stagger_s, flow.base_rtt_s) = (n, rtt.as_secs() / f64::from(n), rtt.as_secs());
        });
    (network.build().expect("a valid network"), duration_s)
}

/// `n` links of 100 Mbit/s and 5 ms in a row, and a SACK flow from each of them over four.
fn many_links(n: u32) -> (Network, f64) {
    let (rate, delay) = (Rate::from_bps(1e8), Duration::from_millis(5));
    let duration_s =
        (PACKETS.max(PACKETS_EACH * f64::from(n)) / (rate.as_bps() / 8.0 / 1500.0) / f64::from(n)).max(0.2);
    let names: Vec<String> = (0..n).map(|i| format!("l{i}")).collect();
    let mut network = Network::builder(Duration::from_secs(duration_s));
    for name in &names {
        network = network.link(name, rate, delay, rate * (delay * 8));
    }
    network = network.with(|network| {
        network.sample_s = duration_s;
        for first in 0..names.len() {
            let path: Vec<u32> = (first..(first + HOPS).min(names.len())).map(|link| 2 * link as u32).collect();
            let name = format!("f{first}");
            let flow = waterfill_network::FlowSpec::new(&name, "sack", &path, Duration::from_secs(duration_s));
            network.flows.push(flow);
        }
    });
    (network.build().expect("a valid network"), duration_s)
}

/// Runs a point and prints its row.
fn run(n: u32, build: fn(u32) -> (Network, f64)) {
    let started = cpu_s();
    let (network, duration_s) = build(n);
    let flows: u32 = network.flows.iter().map(|flow| flow.count).sum();
    let mut sim = Simulation::new(network).expect("a valid network");
    let loaded = cpu_s();
    sim.advance(Instant::from_secs(duration_s));
    let took = cpu_s() - loaded;
    let (flow_bytes, path_bytes) = sim.heap_bytes();
    let transmissions = sim.packet_hops() as f64;
    println!(
        "| {n} | {duration_s:.2} | {:.1} | {:.0} | {:.2} | {:.0} | {:.0} | {:.0} |",
        transmissions / 1e6,
        took * 1e9 / transmissions,
        loaded - started,
        memory_mb(),
        flow_bytes as f64 / f64::from(flows),
        path_bytes as f64 / sim.ledger().in_transit.max(1) as f64,
    );
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a process has a CPU clock");
    std::time::Duration::from(time).as_secs_f64()
}

/// The most memory that the process has held, in MB; NaN where the kernel does not say.
fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kb.map_or(f64::NAN, |kb: f64| kb * 1024.0 / 1e6)
}
