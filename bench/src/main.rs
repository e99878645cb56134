//! Speed and memory of the packet simulator on dumbbells, and of the fluid model on random networks, as one JSON
//! document.
//!
//! `waterfill-bench [CASE …] [--rounds N] [--seconds S]` runs all cases, or those named, N times, and the calibration loop before and
//! after every run. Figures are medians. Only `ratio`, the speed as a multiple of the calibration loop's, can be
//! compared with that of another day or host. `--seconds S` changes the dumbbells' simulated time.

mod calibration;
mod clock;
mod fluid;

use std::str::FromStr;

use serde_json::{Value, json};
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::{Network, Series};
use waterfill_sim::Simulation;

use clock::Seconds;

/// A dumbbell: one bottleneck and its reverse direction.
struct FlowCase {
    name: &'static str,
    protocol: &'static str,
    flows: u32,
    /// Time between the starts of two flows.
    stagger_s: f64,
    rate_bps: f64,
    rtt_s: f64,
    duration_s: f64,
}

const FEW: FlowCase = FlowCase {
    name: "maxnet-10",
    protocol: "maxnet",
    flows: 10,
    stagger_s: 0.05,
    rate_bps: 1e9,
    rtt_s: 0.05,
    duration_s: 120.0,
};

const MANY: FlowCase = FlowCase {
    name: "maxnet-10000",
    protocol: "maxnet",
    flows: 10_000,
    stagger_s: 0.001,
    rate_bps: 1e10,
    rtt_s: 0.05,
    duration_s: 20.0,
};

const CASES: &[FlowCase] = &[
    FEW,
    FlowCase { name: "window-10", protocol: "window", ..FEW },
    FlowCase { name: "sack-10", protocol: "sack", ..FEW },
    FlowCase { name: "cubic-10", protocol: "cubic", ..FEW },
    FlowCase { name: "xcp-10", protocol: "xcp", ..FEW },
    FlowCase { name: "aecp-10", protocol: "aecp", ..FEW },
    FlowCase { name: "xcp-256", protocol: "xcp", flows: 256, stagger_s: 0.005, duration_s: 60.0, ..FEW },
    MANY,
    FlowCase { name: "window-10000", protocol: "window", ..MANY },
    FlowCase { name: "sack-10000", protocol: "sack", ..MANY },
];

const PACKET_BYTES: u16 = 1500;
const SAMPLE_S: f64 = 1.0;

/// One run of a case.
struct Measurement {
    figures: Value,
    /// Quantity reported per second of wall time: key and count. The first one gives the ratio.
    counts: Vec<(&'static str, f64)>,
    took: Seconds,
}

/// Options of the command line.
#[derive(Debug, PartialEq)]
struct Options {
    /// Names of cases; all if empty.
    names: Vec<String>,
    rounds: usize,
    /// Simulated time of the dumbbells, if not their own.
    seconds: Option<f64>,
}

fn main() {
    let Options { names, rounds, seconds } = arguments(std::env::args().skip(1)).unwrap_or_else(|message| {
        eprintln!("waterfill-bench: {message}");
        std::process::exit(2)
    });
    let chosen = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let lasting = |case: &FlowCase| FlowCase { duration_s: seconds.unwrap_or(case.duration_s), ..*case };
    let packets = CASES.iter().filter(|case| chosen(case.name)).map(lasting).map(|case| measure(rounds, || run(&case)));
    let fluids = fluid::CASES.iter().filter(|case| chosen(case.name)).map(|case| measure(rounds, || fluid::run(case)));
    let runs: Vec<Value> = packets.chain(fluids).collect();
    let document = json!({ "version": env!("CARGO_PKG_VERSION"), "calibration": calibration::VERSION, "runs": runs });
    println!("{document:#}");
}

/// Reads the names of cases, the number of rounds and the simulated time.
fn arguments(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { names: Vec::new(), rounds: 1, seconds: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rounds" => options.rounds = above_zero(&word, words.next())?,
            "--seconds" => options.seconds = Some(above_zero(&word, words.next())?),
            name if known().any(|one| one == name) => options.names.push(word),
            _ => {
                let list: Vec<&str> = known().collect();
                let list = list.join(", ");
                return Err(format!("unknown argument {word:?}; write --rounds N, --seconds S, or cases of {list}"));
            }
        }
    }
    Ok(options)
}

fn above_zero<T: FromStr + PartialOrd + Default>(option: &str, word: Option<String>) -> Result<T, String> {
    let word = word.unwrap_or_default();
    let number = word.parse().ok().filter(|number| *number > T::default());
    number.ok_or_else(|| format!("{option}: must be a number above zero, got {word:?}"))
}

/// Returns the names of all cases.
fn known() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name).chain(fluid::CASES.iter().map(|case| case.name))
}

/// Runs a case several times, each between two calibrations; returns the last run's figures with the median speeds.
///
/// The ratio is the work done (packets, parcels) in the time of 1,000 steps of the calibration loop.
fn measure(rounds: usize, run: impl Fn() -> Measurement) -> Value {
    let (mut walls, mut cpus, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = calibration::cpu_s();
    let mut calibration_cpu_s = before;
    let mut last = None;
    for _ in 0..rounds {
        let done = run();
        let after = calibration::cpu_s();
        calibration_cpu_s += after;
        let step_s = f64::midpoint(before, after) / calibration::STEPS;
        let work = done.counts[0].1;
        ratios.push(1000.0 * step_s / (done.took.cpu / work));
        walls.push(done.took.wall);
        cpus.push(done.took.cpu);
        before = after;
        last = Some(done);
    }
    let Measurement { mut figures, counts, .. } = last.expect("at least one round");
    let wall_s = median(&mut walls);
    for (key, count) in counts {
        figures[key] = json!(count / wall_s);
    }
    figures["wall_s"] = json!(wall_s);
    figures["cpu_s"] = json!(median(&mut cpus));
    figures["ratio"] = json!(median(&mut ratios));
    figures["calibration_cpu_s"] = json!(calibration_cpu_s);
    figures
}

/// Returns the middle value; of an even number, the upper of the two.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn network(case: &FlowCase) -> Network {
    let (rate, rtt) = (Rate::from_bps(case.rate_bps), Duration::from_secs(case.rtt_s));
    let bdp = rate * rtt;
    // The windows add up to one bandwidth-delay product; a few packets wait, so the pipe is full.
    let packets = (bdp.as_bytes() / f64::from(PACKET_BYTES) / f64::from(case.flows)).floor().max(1.0);
    Network::builder(Duration::from_secs(case.duration_s))
        .link("bottleneck", rate, Duration::from_secs(case.rtt_s / 2.0), bdp)
        .flow("flow", case.protocol, &["bottleneck"])
        .param("window", "packets", packets)
        // With 1,000 starts per second, `promise` keeps MaxNet from granting each of them the whole link.
        .param("maxnet", "promise", true)
        .with(|network| {
            (network.packet_bytes, network.sample_s) = (PACKET_BYTES, SAMPLE_S);
            let flow = &mut network.flows[0];
            (flow.count, flow.stagger_s, flow.base_rtt_s) = (case.flows, case.stagger_s, case.rtt_s);
        })
        .build()
        .expect("a valid network")
}

/// Runs a case once.
fn run(case: &FlowCase) -> Measurement {
    let mut sim = Simulation::new(network(case)).expect("a valid network");
    let ((), took) = clock::measure(|| sim.advance(Instant::from_secs(case.duration_s)));
    let summary = sim.summary();
    let ledger = sim.ledger();
    let packets = packets_through(sim.series()[1], case.rate_bps);
    let (flow_bytes, path_bytes) = sim.heap_bytes();
    let figures = json!({
        "name": case.name, "protocol": case.protocol, "flows": case.flows, "stagger_s": case.stagger_s,
        "rate_bps": case.rate_bps, "rtt_s": case.rtt_s, "simulated_s": case.duration_s,
        "bottleneck_packets": packets.round(),
        "packet_hops": summary.engine.packet_hops,
        "packets_dropped": ledger.dropped,
        "utilization": summary.links[0].utilization,
        "bytes_per_flow": flow_bytes as f64 / f64::from(case.flows),
        "bytes_per_packet": path_bytes as f64 / ledger.in_transit.max(1) as f64,
        "packets_in_transit": ledger.in_transit,
    });
    let counts = vec![
        ("bottleneck_packets_per_s", packets),
        ("packet_transmissions_per_s", summary.engine.packet_hops as f64),
        ("events_per_s", summary.engine.events as f64),
    ];
    Measurement { figures, counts, took }
}

/// Counts the packets that the first link transmitted, from the bits in its samples: without those that it dropped or
/// that still wait. A SYN counts as its fraction of a packet.
fn packets_through(links: &Series, rate_bps: f64) -> f64 {
    let column = |name: &str| {
        let place = links.names().iter().position(|known| known == name).expect("a column of every series of links");
        &links.columns()[place]
    };
    let of_first = column("link").iter().zip(column("utilization")).filter(|&(&link, _)| link == 0.0);
    let busy_s: f64 = of_first.map(|(_, utilization)| utilization * SAMPLE_S).sum();
    busy_s * rate_bps / 8.0 / f64::from(PACKET_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: FlowCase = FlowCase { duration_s: 3.0, flows: 2, rate_bps: 1e7, ..FEW };

    #[test]
    fn packets_are_those_that_the_bottleneck_sent_on() {
        // Reno overflows the buffer: it sends more than the bottleneck transmits.
        let case = FlowCase { protocol: "sack", ..SHORT };
        let mut sim = Simulation::new(network(&case)).expect("a valid network");
        sim.advance(Instant::from_secs(case.duration_s));
        let sent: u64 = sim.summary().flows.iter().map(|flow| flow.packets_sent).sum();
        let ledger = sim.ledger();
        let packets = packets_through(sim.series()[1], case.rate_bps);
        let capacity = case.rate_bps * case.duration_s / 8.0 / f64::from(PACKET_BYTES);
        assert!(ledger.dropped > 0 && packets < (sent - ledger.dropped) as f64);
        assert!((0.9 * capacity..=capacity).contains(&packets), "{packets} of {capacity}");
        // Every packet of data and of acknowledgements is one hop; what has not arrived is in transit.
        let hops = sim.packet_hops() as f64;
        assert!((hops - 2.0 * packets).abs() <= 2.0 * ledger.in_transit as f64, "{hops} {packets}");
    }

    #[test]
    fn speeds_are_medians_and_ratios_positive() {
        let done = measure(3, || run(&SHORT));
        let pts = done["packet_hops"].as_f64().unwrap() / done["wall_s"].as_f64().unwrap();
        assert_eq!(done["packet_transmissions_per_s"].as_f64(), Some(pts));
        assert!(done["ratio"].as_f64().unwrap() > 0.0);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn a_wrong_argument_is_one_sentence() {
        let read = |words: &[&str]| arguments(words.iter().map(ToString::to_string));
        let options = Options { names: vec!["sack-10".into()], rounds: 3, seconds: Some(0.5) };
        assert_eq!(read(&["sack-10", "--rounds", "3", "--seconds", "0.5"]), Ok(options));
        assert!(read(&["maxnet"]).is_err_and(|message| message.starts_with("unknown argument \"maxnet\"")));
        assert!(read(&["--seconds"]).is_err_and(|message| message.ends_with("got \"\"")));
        assert!(read(&["--rounds", "0"]).is_err_and(|message| message.starts_with("--rounds: must be")));
    }
}
