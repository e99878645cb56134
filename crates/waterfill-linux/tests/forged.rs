//! The host's programs against whoever writes options as he likes: real connections between two namespaces, over a path
//! that rewrites options packet by packet, with checksums that are right. Data arrive whole, what a sender does stays
//! within what is configured, and once options are honest again a connection goes on as if nothing had been.

#![cfg(feature = "daemon")]

#[path = "forged/lie.rs"]
mod lie;
#[path = "forged/network.rs"]
mod network;
#[path = "router/packet.rs"]
#[allow(dead_code, reason = "the router's test uses the rest")]
mod packet;
#[path = "forged/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lie::{LIES, Lie, NOTHING};
use network::{Daemon, Network, Pair, complaints};
use packet::FLAG;
use serde_json::Value;
use wire::{ACK, DATA, Plan, SYN};

const EXPERIMENT: u8 = 253;
const PAPER: u8 = 42;

/// The host's defaults.
const X_MAX_BPS: f64 = 1e15;
const T_S: f64 = 0.4;
/// What the path's honest price stands for, of one connection alone.
const RATE_BPS: f64 = 50e6;
/// `bpf/host_law.h`: most bytes in flight, longest round trip for the law, and the most that a window has beyond the law's.
const WINDOW_MAX_BYTES: f64 = (256_u32 << 20) as f64;
const TAU_MAX_S: f64 = 1.0;
const MARGIN_BYTES: f64 = 4.0 * 65536.0;
/// And how much faster than the law's rate packets may be spread, to make up for timers that come late; the window holds the rate then.
const PACING_MOST: f64 = 8.0;
/// Of a packet, at least, with all options.
const PAYLOAD_BYTES: f64 = 1400.0;

fn number(flow: &Value, key: &str) -> f64 {
    flow[key].as_f64().unwrap()
}

fn is_at(flow: &Value, rate_bps: f64) -> bool {
    flow["mode"] == "priced" && (number(flow, "rate_bps") / rate_bps - 1.0).abs() < 1e-3
}

/// Honest data until a connection is at its rate; false if that does not come, or if it falls back.
fn settles(pair: &mut Pair, daemon: &mut Daemon, rate_bps: f64) -> bool {
    (0..20).any(|_| {
        pair.exchange(200_000, 50_000);
        is_at(&daemon.flow(pair), rate_bps)
    })
}

/// The path writes the price at which a flow gets this rate, and a start rate a little below.
fn price(network: &Network, x_max_bps: f64, rate_bps: f64) {
    let code = |x: f64| (x * f64::from(1 << 18)).round() as u32;
    network.wire.shared.price.store(code(T_S * (x_max_bps / rate_bps).ln()), Relaxed);
    network.wire.shared.start.store(FLAG | code((x_max_bps / (0.8 * rate_bps)).ln()), Relaxed);
}

/// A network with the law, and a path that is honest.
fn honest(kind: u8, x_max_bps: f64, rate_bps: f64) -> Option<(Network, Daemon)> {
    let network = Network::new(kind)?;
    let daemon = Daemon::host(&network, &format!("--option-kind {kind} --x-max {x_max_bps}bit/s"));
    network.use_law();
    price(&network, x_max_bps, rate_bps);
    Some((network, daemon))
}

/// No connection may do more than is configured.
fn is_bounded(network: &Network, flows: &[Value], x_max_bps: f64) {
    for flow in flows.iter().filter(|flow| number(flow, "rate_bps") > 0.0) {
        assert!(number(flow, "rate_bps") <= x_max_bps, "{flow}");
        let most = (x_max_bps * TAU_MAX_S / 8.0).min(WINDOW_MAX_BYTES) + MARGIN_BYTES;
        assert!(number(flow, "window_packets") * PAYLOAD_BYTES <= most, "{flow}");
    }
    for pacing in network.pacing() {
        assert!(pacing <= PACING_MOST * x_max_bps, "a connection is paced at {pacing} bit/s");
    }
}

/// Nobody has found a wrong checksum.
fn checksums(network: &Network) {
    assert_eq!(network.wire.shared.unsealed.load(Relaxed), 0, "sent with a wrong checksum");
    assert_eq!(network.counted("Tcp", "InCsumErrors"), 0);
}

// ---------------------------------------------------------------------------------- one lie at a time

/// What a host does about a connection all of whose packets bear the lie.
#[derive(PartialEq)]
enum Effect {
    /// As if there were no option.
    FallsBack,
    /// As if it were not told.
    Obeys,
    /// It believes it.
    Believes,
}

fn effect(lie: Lie) -> Effect {
    match lie {
        lie if NOTHING.contains(&lie) => Effect::FallsBack,
        Lie::Zero => Effect::FallsBack, // 0 is nobody's price
        Lie::Behind | Lie::Full | Lie::Beside => Effect::Obeys,
        // A start rate on data is nobody's either, but is echoed: its receiver stops to ask, or the sender keeps its rate.
        _ => Effect::Believes,
    }
}

/// Each lie, told of all packets of an established connection that is priced.
fn one_at_a_time(kind: u8) {
    let Some((network, mut daemon)) = honest(kind, X_MAX_BPS, RATE_BPS) else { return };
    for (n, lie) in LIES.into_iter().enumerate() {
        let plan = |always| network.wire.shared.set(Plan { always, ..Plan::default() });
        let mut pair = network.connect(n as u16);
        assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{}", daemon.flow(&pair));
        plan(Some(lie));
        let effect = effect(lie);
        if effect == Effect::Believes {
            pair.exchange(10_000, 0); // the highest price leaves five packets a second
        } else {
            pair.exchange(200_000, 0);
            pair.exchange(200_000, 200_000);
        }
        let flow = daemon.flow(&pair);
        is_bounded(&network, std::slice::from_ref(&flow), X_MAX_BPS);
        plan(None);
        match effect {
            Effect::FallsBack => assert_eq!(flow["fallback_reason"], "echoes have stopped", "{lie:?}: {flow}"),
            Effect::Obeys => assert!(is_at(&flow, RATE_BPS), "{lie:?}: {flow}"),
            Effect::Believes => {}
        }
        if flow["mode"] == "fallen back" {
            pair.exchange(200_000, 200_000);
        } else {
            assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{lie:?}: {}", daemon.flow(&pair));
        }
        let told = LIES.iter().position(|l| *l == lie).unwrap();
        for class in [DATA, ACK] {
            let n = network.wire.shared.told[class][told].load(Relaxed);
            // Whoever is asked for nothing but a start rate stops to answer.
            assert!(n > 0 || (lie, class) == (Lie::Start, ACK), "{lie:?} was not told");
        }
    }
    checksums(&network);
}

#[test]
fn what_is_malformed_is_no_option_and_of_two_the_first_counts() {
    one_at_a_time(EXPERIMENT);
}

#[test]
fn the_papers_option_may_be_malformed_too() {
    one_at_a_time(PAPER);
}

#[test]
fn a_handshake_may_carry_any_lie() {
    let Some((network, mut daemon)) = honest(EXPERIMENT, X_MAX_BPS, RATE_BPS) else { return };
    for (n, lie) in LIES.into_iter().enumerate() {
        network.wire.shared.set(Plan { handshake: Some(lie), ..Plan::default() });
        for family in 0..2 {
            let mut pair = network.connect(2 * n as u16 + family);
            pair.exchange(60_000, 60_000);
            let flow = daemon.flow(&pair);
            if NOTHING.contains(&lie) {
                assert_eq!(flow["fallback_reason"], "the peer did not answer the option", "{lie:?}: {flow}");
            } else if flow["mode"] != "fallen back" {
                assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{lie:?}: {}", daemon.flow(&pair));
            }
        }
        let told = LIES.iter().position(|l| *l == lie).unwrap();
        assert!(network.wire.shared.told[SYN][told].load(Relaxed) > 0, "{lie:?} was not told");
    }
    checksums(&network);
}

#[test]
fn the_next_honest_price_is_obeyed_in_full() {
    let Some((network, mut daemon)) = honest(EXPERIMENT, X_MAX_BPS, RATE_BPS) else { return };
    for (n, lie) in [Lie::Most, Lie::Any, Lie::Before].into_iter().enumerate() {
        let mut pair = network.connect(n as u16);
        pair.exchange(60_000, 0);
        for _ in 0..2 {
            network.wire.shared.set(Plan { always: Some(lie), ..Plan::default() });
            pair.exchange(4_000, 0);
            network.wire.shared.set(Plan::default());
            // A packet's time at the slowest rate; then carefully, as after any silence, for a few round trips.
            assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{lie:?}: {}", daemon.flow(&pair));
        }
    }
}

/// A router whose link is full as a connection starts: the start rate is one at which a packet takes seconds, and prices
/// say soon after that there is room.
#[test]
fn a_start_rate_of_next_to_nothing_rises_to_the_prices() {
    let Some((network, mut daemon)) = honest(EXPERIMENT, X_MAX_BPS, RATE_BPS) else { return };
    let code = (X_MAX_BPS / 1e3).ln() * f64::from(1 << 18);
    network.wire.shared.start.store(FLAG | code as u32, Relaxed);
    let mut pair = network.connect(0);
    // Of 1400 bytes; at the slowest rate that is four seconds.
    pair.exchange(30_000, 0);
    assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{}", daemon.flow(&pair));
}

// ---------------------------------------------------------------------------------- all at once

/// At a time.
const CONNECTIONS: u16 = 16;
/// The sources' bound here, so that forged prices load the machine no more than this a connection.
const STORM_X_MAX_BPS: f64 = 100e6;
const STORM_RATE_BPS: f64 = 10e6;

/// Connections one after the other until the path has seen so much data; the last one is kept.
fn connections(network: &Network, next: &AtomicU16, goal: u64) -> Pair {
    loop {
        let mut pair = network.connect(next.fetch_add(1, Relaxed));
        pair.exchange(1_000_000, 250_000);
        if network.wire.shared.seen[DATA].load(Relaxed) >= goal {
            return pair;
        }
    }
}

/// Lies at random, in packets of connections that come and go; the last ones then go on with honest options.
fn storm(kind: u8, goal: u64) {
    let before = complaints();
    let Some((network, mut daemon)) = honest(kind, STORM_X_MAX_BPS, STORM_RATE_BPS) else { return };
    let network = &network;
    let shared = &network.wire.shared;
    shared.set(Plan { slow: 4, valid: 400, nothing: 100, handshakes: 200, ..Plan::default() });
    let next = AtomicU16::new(0);
    let next = &next;
    let began = Instant::now();
    let (mut samples, mut ends) = (0, BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        let (stormed, wait) = mpsc::channel();
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (go, told) = mpsc::channel::<()>();
                let stormed = stormed.clone();
                scope.spawn(move || {
                    let mut pair = connections(network, next, goal);
                    stormed.send(pair.local()).unwrap();
                    // With honest options, on the same connection, as often as is asked.
                    while told.recv().is_ok() {
                        pair.exchange(200_000, 50_000);
                        stormed.send(pair.local()).unwrap();
                    }
                });
                go
            })
            .collect();
        drop(stormed);
        let mut all = |daemon: &mut Daemon| {
            let mut left = CONNECTIONS;
            let mut locals = Vec::new();
            while left > 0 {
                match wait.recv_timeout(Duration::from_millis(50)) {
                    Ok(local) => {
                        locals.push(local);
                        left -= 1;
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => panic!("a connection has failed"),
                }
                is_bounded(network, &daemon.flows(), STORM_X_MAX_BPS);
                samples += 1;
            }
            locals
        };
        let locals = all(&mut daemon);
        shared.set(Plan::default());
        // Where each connection ends up, or its state if that is nowhere yet.
        let look = |daemon: &mut Daemon| -> Vec<Result<String, Value>> {
            let flows = daemon.flows();
            let of = |local: &String| flows.iter().find(|flow| flow["local"] == local.as_str()).expect("it is shown");
            let end = |flow: &Value| match flow["fallback_reason"].as_str() {
                Some(reason) => Ok(reason.to_owned()),
                None if is_at(flow, STORM_RATE_BPS) => Ok("obeys".to_owned()),
                None => Err(flow.clone()),
            };
            locals.iter().map(of).map(end).collect()
        };
        for _ in 0..20 {
            for go in &workers {
                go.send(()).unwrap();
            }
            all(&mut daemon);
            if look(&mut daemon).iter().all(Result::is_ok) {
                break;
            }
        }
        for end in look(&mut daemon) {
            *ends.entry(end.expect("it has settled")).or_default() += 1;
        }
    });
    checksums(network);
    let new: Vec<_> = complaints().into_iter().filter(|line| !before.contains(line)).collect();
    assert!(new.is_empty(), "the kernel complains: {new:#?}");
    let seen = [SYN, DATA, ACK].map(|class| shared.seen[class].load(Relaxed));
    assert!(seen[DATA] >= goal);
    for class in [DATA, ACK] {
        let told = shared.told[class].each_ref().map(|n| n.load(Relaxed));
        for (lie, n) in LIES.iter().zip(told) {
            assert!(n > 0, "{lie:?} was not told, of {} packets", seen[class]);
        }
    }
    eprintln!(
        "{} connections, {seen:?} packets of handshakes, data and acknowledgements, {} lies, {samples} samples, \
         at the end {ends:?}, {} retransmissions, {:.1} s",
        next.load(Relaxed),
        shared.told_in_all(),
        network.counted("Tcp", "RetransSegs"),
        began.elapsed().as_secs_f64(),
    );
}

#[test]
fn lies_at_random() {
    storm(EXPERIMENT, 20_000);
}

#[test]
fn lies_at_random_in_the_papers_option() {
    storm(PAPER, 20_000);
}

#[test]
#[ignore = "minutes: cargo test --features daemon --test forged -- --ignored --nocapture"]
fn a_million_packets_of_lies() {
    storm(EXPERIMENT, 1_000_000);
}

// ---------------------------------------------------------------------------------- queues

/// A connection over a path that holds frames for 20 ms one way, from when it is priced; what it is in the end.
fn held(way: usize, timestamps: bool, mut meanwhile: impl FnMut(&Network) + Send) -> Option<Value> {
    let (network, mut daemon) = honest(EXPERIMENT, X_MAX_BPS, RATE_BPS)?;
    if !timestamps {
        network.in_both("sysctl -qw net.ipv4.tcp_timestamps=0");
    }
    let mut pair = network.connect(0);
    assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{}", daemon.flow(&pair));
    network.wire.shared.hold_us[way].store(20_000, Relaxed);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                meanwhile(&network);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        // Some 60 round trips of a window of 17 packets; 8 to 16 are enough.
        pair.exchange(1_500_000, 0);
        done.store(true, Relaxed);
    });
    Some(daemon.flow(&pair))
}

const A_QUEUE_STANDS: &str = "a queue stands while the price does not rise";

/// The same to its source as a queue at a router whose price is still below that of another one on the path: the price
/// that it hears does not rise there either.
#[test]
fn a_queue_that_stands_under_a_constant_price_means_a_bottleneck_without_one() {
    for timestamps in [true, false] {
        let Some(flow) = held(0, timestamps, |_| ()) else { return };
        assert_eq!(flow["fallback_reason"], A_QUEUE_STANDS, "{flow}");
    }
}

#[test]
fn a_queue_whose_price_rises_is_waited_for() {
    let began = Instant::now();
    let rises = |network: &Network| {
        // A tenth of a second a second, as at a router with 4 % more than all of its capacity.
        price(network, X_MAX_BPS, RATE_BPS * (-0.1 * began.elapsed().as_secs_f64() / T_S).exp());
    };
    let Some(flow) = held(0, true, rises) else { return };
    assert_eq!(flow["mode"], "priced", "{flow}");
}

#[test]
fn a_queue_on_the_way_of_acknowledgements_is_none_of_the_datas() {
    // On a machine that is late frames may wait on the other way too.
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let Some(flow) = held(1, true, |_| ()) else { return };
        if is_at(&flow, RATE_BPS) {
            return;
        }
        seen.push(flow);
    }
    panic!("{seen:#?}");
}

/// Then the round trip is all that a source has.
#[test]
fn without_timestamps_it_cannot_be_told_from_one() {
    let Some(flow) = held(1, false, |_| ()) else { return };
    assert_eq!(flow["fallback_reason"], A_QUEUE_STANDS, "{flow}");
}

// ---------------------------------------------------------------------------------- the papers' option and a router

#[test]
fn a_router_and_hosts_speak_the_papers_option() {
    let Some(network) = Network::new(PAPER) else { return };
    let mut hosts = Daemon::host(&network, "--option-kind 42");
    network.use_law();
    let mut router = Daemon::start(&format!(
        "exec nsenter --net=/run/netns/{} {} router --no-pin --line --dev wire --rate 50Mbit/s --overhead 0",
        network.space('a'),
        env!("CARGO_BIN_EXE_waterfilld")
    ));
    let mut pair = network.connect(0);
    let local = pair.local();
    let mut echoed = 0;
    std::thread::scope(|scope| {
        let transfer = scope.spawn(|| pair.exchange(4_000_000, 0));
        while !transfer.is_finished() {
            let flows = hosts.flows();
            let flow = flows.iter().find(|flow| flow["local"] == local.as_str()).expect("it is shown");
            let link = number(&router.status()["links"][0], "price_s");
            // Nobody else on this path has a price. It moves by less than this while it comes back.
            echoed += usize::from((number(flow, "price_s") - link).abs() < 0.05);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let flow = hosts.flow(&pair);
    assert_eq!(flow["mode"], "priced", "{flow}");
    assert!(echoed > 0, "no price of the router's came back: {flow}");
    let link = &router.status()["links"][0];
    assert_eq!(link["starts"], 1, "{link}");
    // Super-packets, each of which is raised from 0.
    assert!(number(link, "segments") > 2700.0 && number(link, "marked") > 0.9 * number(link, "seen"), "{link}");
    assert_eq!(network.wire.shared.seen[SYN].load(Relaxed), 2);
    checksums(&network);
}
