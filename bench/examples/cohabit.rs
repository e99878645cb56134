//! Time per packet, memory and estimation errors of the cohabitation module, as one JSON document.
//!
//! `cargo run --release --package waterfill-bench --example cohabit`. Times are wall times on one core, the smallest of
//! five, less the time for drawing the packets: compare them within one run.

use std::hint::black_box;
use std::time::Instant as WallInstant;

use serde_json::{Value, json};
use waterfill_network::{CohabitSpec, ControllerSpec, CountDrops, EstimatorSpec, HashKey, Trials};
use waterfill_sim::ModuleBench;

const FLOWS: [u32; 5] = [10, 100, 1_000, 10_000, 100_000];

fn spec(controller: ControllerSpec, estimator: EstimatorSpec, inspect: f64) -> CohabitSpec {
    CohabitSpec {
        controller,
        estimator,
        inspect,
        interval_s: 0.02,
        interval_of_law: false,
        count_drops: CountDrops::Never,
        explicit_weight: 1.0,
        ecn: true,
    }
}

fn improved() -> ControllerSpec {
    ControllerSpec::Improved { aim: 0.9, integral: 0.5, proportional: 1.0, depth_s: 0.3 }
}

fn sred(size: u32, replace: f64) -> EstimatorSpec {
    EstimatorSpec::Sred { size, replace, delta: replace / f64::from(size), shared: false, trials: Trials::Class }
}

fn nred(levels: u32, bins: u32) -> EstimatorSpec {
    EstimatorSpec::Nred { levels, bins, period_s: 2.0, hash: HashKey::Flow }
}

/// Measures nanoseconds per packet and bytes of state.
fn cost(name: &str, spec: &CohabitSpec, flows: u32) -> Value {
    const PACKETS: u32 = 1_000_000;
    let mut bench = ModuleBench::new(spec, flows).expect("a valid specification");
    bench.run(2 * PACKETS);
    let mut best = [f64::INFINITY; 2];
    for _ in 0..5 {
        let started = WallInstant::now();
        bench.run(PACKETS);
        let middle = WallInstant::now();
        black_box(bench.run_baseline(PACKETS));
        let [with, without] = [(middle - started).as_secs_f64(), middle.elapsed().as_secs_f64()];
        best = [best[0].min(with), best[1].min(without)];
    }
    let ns = (best[0] - best[1]).max(0.0) * 1e9 / f64::from(PACKETS);
    json!({"module": name, "flows": flows, "ns_per_packet": (ns * 10.0).round() / 10.0, "state_bytes": bench.state_bytes()})
}

/// Measures the relative error of the explicit class's estimate: mean and root mean square over 20 instants.
fn error(name: &str, estimator: &EstimatorSpec, flows: u32) -> Value {
    let mut bench = ModuleBench::new(&spec(ControllerSpec::Off, estimator.clone(), 1.0), flows * 11 / 10)
        .expect("a valid specification");
    // Long enough to replace a table of 100,000 entries, and for every flow to send.
    bench.run(3_000_000);
    let errors: Vec<f64> = (0..20)
        .map(|_| {
            bench.run(200_000);
            let (found, actual) = bench.estimates()[0];
            found / actual as f64 - 1.0
        })
        .collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let rms = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
    json!({"estimator": name, "flows": flows, "mean_error": mean, "rms_error": rms})
}

fn main() {
    let modules = [
        ("sred", spec(improved(), sred(1000, 0.25), 1.0)),
        ("sred, half inspected", spec(improved(), sred(1000, 0.5), 0.5)),
        ("nred 4 × 4096", spec(improved(), nred(4, 4096), 1.0)),
        ("exact", spec(improved(), EstimatorSpec::Exact { period_s: 2.0 }, 1.0)),
    ];
    let mut costs = Vec::new();
    for (name, spec) in &modules {
        for flows in FLOWS {
            eprintln!("cost of {name} with {flows} flows");
            costs.push(cost(name, spec, flows));
        }
    }
    let mut errors = Vec::new();
    let tables = [100, 1_000, 10_000, 100_000].map(|size| (format!("sred {size}"), sred(size, 0.25)));
    let filters = [(1, 4096), (4, 1024), (4, 4096), (4, 65_536)];
    let filters = filters.map(|(levels, bins)| (format!("nred {levels} × {bins}"), nred(levels, bins)));
    for (name, estimator) in tables.iter().chain(&filters) {
        for flows in [10, 100, 1_000, 10_000] {
            eprintln!("error of {name} with {flows} flows");
            errors.push(error(name, estimator, flows));
        }
    }
    println!("{}", serde_json::to_string_pretty(&json!({"costs": costs, "errors": errors})).expect("plain data"));
}
