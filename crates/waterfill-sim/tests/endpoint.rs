//! Tests of endpoints, with the example in C of `waterfill-endpoint`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{build, column, flow, link, network};
use waterfill_endpoint::Side;
use waterfill_endpoint::library::EndpointLibrary;
use waterfill_network::{Network, Summary};
use waterfill_sim::{EndpointPair, Simulation};

/// Payload and size on a link of the example's data.
const PAYLOAD: f64 = 1200.0;
const PACKET: f64 = 1228.0;

fn compile(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../waterfill-endpoint");
    let library = folder.join(format!("waterfill-{}-aimd.so", std::process::id()));
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(source.join("include"))
        .arg("-o")
        .arg(&library)
        .arg(source.join("examples/aimd.c"))
        .status();
    assert!(done.expect("a C compiler").success());
    library
}

/// Returns the library of the example.
fn aimd() -> &'static EndpointLibrary {
    static LIBRARY: OnceLock<EndpointLibrary> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let file = compile(&std::env::temp_dir());
        let library = EndpointLibrary::load(&file).expect("a library of this version");
        let _ = std::fs::remove_file(file);
        library
    })
}

/// Returns a flow of endpoints over a link of 10 Mbit/s and 10 ms, with a buffer of 30 kB.
fn single(size_bytes: Option<u64>) -> Network {
    let mut n = network(20.0, link("l", 10e6, 0.01, 30_000).into(), vec![flow("f", "cubic", &[0], 20.0)]);
    n.flows[0].size_bytes = size_bytes;
    n.measure_s = [0.0, 20.0];
    n
}

fn run(n: &Network) -> (Simulation, Summary) {
    let mut sim = build(n);
    let endpoint = |side| aimd().create(side, 1, &[]).expect("memory");
    let pair =
        EndpointPair { name: aimd().name().into(), client: endpoint(Side::Client), server: endpoint(Side::Server) };
    sim.attach_endpoints(0, pair).expect("a flow");
    sim.advance(sim.end());
    let summary = sim.summary();
    (sim, summary)
}

fn assert_balanced(sim: &Simulation) {
    let ledger = sim.ledger();
    let ended = ledger.delivered + ledger.dropped + ledger.lost + ledger.in_transit;
    assert_eq!(ledger.sent + ledger.duplicated, ended);
    assert!(sim.sacks_in_use() as u64 <= ledger.in_transit);
}

/// Ten datagrams leave at once and are sent one after the other: 1228 bytes take 0.9824 ms each.
#[test]
fn a_short_transfer_takes_the_time_of_its_datagrams() {
    let (sim, summary) = run(&single(Some(12_000)));
    let flow = &summary.flows[0];
    assert_eq!((flow.packets_sent, &*flow.protocol), (10, "aimd"));
    let completed = flow.completed_s.expect("it completes");
    assert!((completed - (0.01 + 10.0 * PACKET * 8.0 / 10e6)).abs() < 1e-9, "{completed}");
    assert_balanced(&sim);
}

#[test]
fn additive_increase_fills_the_link_and_repeats() {
    let (sim, summary) = run(&single(None));
    let goodput = summary.flows[0].goodput_bps.expect("it was active");
    let most = 10e6 * PAYLOAD / PACKET;
    assert!(goodput > 0.85 * most && goodput <= most, "{goodput}");
    assert!(summary.links[0].drops > 10, "its losses end the growth of the window");
    assert_balanced(&sim);
    let (again, repeated) = run(&single(None));
    assert_eq!(repeated.flows, summary.flows);
    assert_eq!(column(again.series()[0], "rate_bps"), column(sim.series()[0], "rate_bps"));
}

#[test]
fn all_bytes_arrive_over_a_link_that_loses_and_duplicates() {
    let mut n = single(Some(600_000));
    n.links[0].loss = 0.01;
    n.links[0].duplicate = 0.05;
    let (sim, summary) = run(&n);
    assert!(summary.flows[0].completed_s.is_some());
    assert!(summary.flows[0].packets_sent > 500);
    assert!(sim.ledger().duplicated > 10);
    assert_balanced(&sim);
}

#[test]
fn what_is_no_library_is_one_sentence() {
    let error = EndpointLibrary::load(Path::new("missing.so")).expect_err("no file");
    assert!(error.starts_with("missing.so: cannot be loaded: "), "{error}");
}

#[test]
fn a_flow_whose_hosts_do_more_than_send_has_no_endpoint() {
    let mut n = single(None);
    n.flows[0].demand_bps = Some(1e6);
    let mut sim = build(&n);
    let endpoint = |side| aimd().create(side, 1, &[]).expect("memory");
    let pair = EndpointPair { name: "aimd".into(), client: endpoint(Side::Client), server: endpoint(Side::Server) };
    let error = sim.attach_endpoints(0, pair).expect_err("nothing limits an endpoint's rate");
    assert_eq!(error, "the flow of an endpoint cannot have `demand`; remove it");
}

#[test]
fn losses_of_an_endpoint_are_counted_on_arrival() {
    let mut n = single(Some(600_000));
    n.links[0].loss = 0.01;
    let (sim, summary) = run(&n);
    assert!(sim.ledger().lost + sim.ledger().dropped >= summary.flows[0].retransmissions);
    assert_eq!(summary.flows[0].retransmissions, summary.flows[0].packets_sent - 500);
}

#[test]
fn an_option_that_a_library_lacks_is_one_sentence() {
    let options = [("controller".to_owned(), "bbr".to_owned())];
    let error = aimd().create(Side::Client, 1, &options).map(|_| ()).expect_err("it has none");
    assert_eq!(error, "aimd: unknown option \"controller\"; there are none");
}

#[test]
fn endpoints_are_attached_before_the_run() {
    let mut sim = build(&single(None));
    sim.advance(sim.end());
    let endpoint = |side| aimd().create(side, 1, &[]).expect("memory");
    let pair = EndpointPair { name: "aimd".into(), client: endpoint(Side::Client), server: endpoint(Side::Server) };
    let error = sim.attach_endpoints(0, pair).expect_err("too late");
    assert_eq!(error, "endpoints must be attached before the run begins");
}
