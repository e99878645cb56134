//! Tests of the host programs against forged options.
//!
//! Real connections run between two namespaces, over a path that rewrites options with valid checksums. Data arrive
//! unchanged, senders stay within the configured limits, and connections recover when options are true again.

#![cfg(feature = "daemon")]

mod common;
#[path = "forged/forgery.rs"]
mod forgery;
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

use common::{Daemon, number};
use forgery::{FORGERIES, Forgery, UNREADABLE};
use network::{Network, Pair, flow, kernel_warnings};
use packet::START_RATE;
use serde_json::Value;
use wire::{ACK, DATA, Plan, SYN};

const EXPERIMENT: u8 = 253;
const PAPER: u8 = 42;

/// Default x_max of the host, in bit/s.
const X_MAX_BPS: f64 = 1e15;
const T_S: f64 = 0.4;
/// Rate of a single connection at the path's true price, in bit/s.
const RATE_BPS: f64 = 50e6;
/// Maximum window in bytes, as in `bpf/guard.h`. [`TAU_MAX_S`] is the maximum RTT of the law (`kernel/host.h`).
/// [`MARGIN_BYTES`] is the margin of a window over the law's window.
const WINDOW_MAX_BYTES: f64 = (1_u32 << 30) as f64;
const TAU_MAX_S: f64 = 1.0;
const MARGIN_BYTES: f64 = 4.0 * 65536.0;
/// Maximum pacing rate relative to the law's rate. Faster pacing makes up for late timers, and the window then limits
/// the rate.
const PACING_MAX: f64 = 8.0;
/// Minimum payload of a full packet with all options, in bytes.
const MIN_PAYLOAD_BYTES: f64 = 1400.0;

fn is_at(flow: &Value, rate_bps: f64) -> bool {
    flow["mode"] == "priced" && (number(flow, "rate_bps") / rate_bps - 1.0).abs() < 1e-3
}

/// Transfers data until a connection reaches the rate. Returns false if it does not reach the rate.
fn settles(pair: &mut Pair, daemon: &mut Daemon, rate_bps: f64) -> bool {
    (0..20).any(|_| {
        pair.exchange(200_000, 50_000);
        is_at(&flow(daemon, pair), rate_bps)
    })
}

/// Makes the path write the price for a flow of `rate_bps`, and a slightly lower start rate.
fn set_price(network: &Network, x_max_bps: f64, rate_bps: f64) {
    let code = |x: f64| (x * f64::from(1 << 18)).round() as u32;
    network.wire.shared.price.store(code(T_S * (x_max_bps / rate_bps).ln()), Relaxed);
    network.wire.shared.start.store(START_RATE | code((x_max_bps / (0.8 * rate_bps)).ln()), Relaxed);
}

/// Creates a network that uses MaxNet, with a path that forges nothing.
fn unforged(kind: u8, x_max_bps: f64, rate_bps: f64) -> Option<(Network, Daemon)> {
    let network = Network::new(kind)?;
    let daemon =
        Daemon::host(&network.spaces, "", &format!("--no-pin --option-kind {kind} --set x_max={x_max_bps}bit/s"));
    network.spaces.use_law();
    set_price(&network, x_max_bps, rate_bps);
    Some((network, daemon))
}

/// Checks that no connection exceeds the configured limits of rate, window and pacing.
fn assert_bounded(network: &Network, flows: &[Value], x_max_bps: f64) {
    for flow in flows.iter().filter(|flow| number(flow, "rate_bps") > 0.0) {
        assert!(number(flow, "rate_bps") <= x_max_bps, "{flow}");
        let limit = (x_max_bps * TAU_MAX_S / 8.0).min(WINDOW_MAX_BYTES) + MARGIN_BYTES;
        assert!(number(flow, "window_packets") * MIN_PAYLOAD_BYTES <= limit, "{flow}");
    }
    for pacing in network.pacing() {
        assert!(pacing <= PACING_MAX * x_max_bps, "a connection is paced at {pacing} bit/s");
    }
}

/// Checks that no packet had an invalid checksum.
fn assert_checksums(network: &Network) {
    assert_eq!(network.wire.shared.bad_checksums.load(Relaxed), 0, "sent with an invalid checksum");
    assert_eq!(network.counted("Tcp", "InCsumErrors"), 0);
}

// ---------------------------------------------------------------------------------- one forgery at a time

/// Effect of a forgery in all packets of a connection.
#[derive(PartialEq)]
enum Effect {
    /// Fallback of the connection, as without the option.
    FallsBack,
    /// No effect on the connection.
    Unaffected,
    /// Use of the forged value by the host.
    Used,
}

fn effect(forgery: Forgery) -> Effect {
    match forgery {
        forgery if UNREADABLE.contains(&forgery) => Effect::FallsBack,
        Forgery::Zero => Effect::FallsBack, // 0 is no router's price
        Forgery::SecondAfter | Forgery::Repeated | Forgery::OtherKindBefore => Effect::Unaffected,
        // A start rate on data is no router's either, but is echoed: the receiver stops asking, or the sender keeps its rate.
        _ => Effect::Used,
    }
}

/// Applies each forgery to all packets of an established priced connection.
fn one_at_a_time(kind: u8) {
    let Some((network, mut daemon)) = unforged(kind, X_MAX_BPS, RATE_BPS) else { return };
    for (n, forgery) in FORGERIES.into_iter().enumerate() {
        let plan = |later| network.wire.shared.set(Plan { later, ..Plan::default() });
        let mut pair = network.connect(n as u16);
        assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{}", flow(&mut daemon, &pair));
        plan(Some(forgery));
        let effect = effect(forgery);
        if effect == Effect::Used {
            pair.exchange(10_000, 0); // the highest price leaves five packets per second
        } else {
            pair.exchange(200_000, 0);
            pair.exchange(200_000, 200_000);
        }
        let status = flow(&mut daemon, &pair);
        assert_bounded(&network, std::slice::from_ref(&status), X_MAX_BPS);
        plan(None);
        match effect {
            Effect::FallsBack => assert_eq!(status["fallback_reason"], "no echo arrives", "{forgery:?}: {status}"),
            Effect::Unaffected => assert!(is_at(&status, RATE_BPS), "{forgery:?}: {status}"),
            Effect::Used => {}
        }
        if status["mode"] == "fallen back" {
            pair.exchange(200_000, 200_000);
        } else {
            assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{forgery:?}: {}", flow(&mut daemon, &pair));
        }
        for class in [DATA, ACK] {
            let n = network.wire.shared.forged(class, forgery);
            // A host that is asked for a start rate only stops answering.
            assert!(n > 0 || (forgery, class) == (Forgery::StartRate, ACK), "{forgery:?} was not made");
        }
    }
    assert_checksums(&network);
}

#[test]
fn malformed_options_are_ignored_and_of_two_the_first_counts() {
    one_at_a_time(EXPERIMENT);
}

#[test]
fn malformed_options_of_the_papers_kind_are_ignored() {
    one_at_a_time(PAPER);
}

#[test]
fn a_handshake_may_carry_any_forgery() {
    let Some((network, mut daemon)) = unforged(EXPERIMENT, X_MAX_BPS, RATE_BPS) else { return };
    for (n, forgery) in FORGERIES.into_iter().enumerate() {
        network.wire.shared.set(Plan { handshake: Some(forgery), ..Plan::default() });
        for family in 0..2 {
            let mut pair = network.connect(2 * n as u16 + family);
            pair.exchange(60_000, 60_000);
            let status = flow(&mut daemon, &pair);
            if UNREADABLE.contains(&forgery) {
                assert_eq!(status["fallback_reason"], "the peer did not answer the option", "{forgery:?}: {status}");
            } else if status["mode"] != "fallen back" {
                assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{forgery:?}: {}", flow(&mut daemon, &pair));
            }
        }
        assert!(network.wire.shared.forged(SYN, forgery) > 0, "{forgery:?} was not made");
    }
    assert_checksums(&network);
}

#[test]
fn the_next_true_price_is_applied_in_full() {
    let Some((network, mut daemon)) = unforged(EXPERIMENT, X_MAX_BPS, RATE_BPS) else { return };
    for (n, forgery) in [Forgery::Max, Forgery::Random, Forgery::SecondBefore].into_iter().enumerate() {
        let mut pair = network.connect(n as u16);
        pair.exchange(60_000, 0);
        for _ in 0..2 {
            network.wire.shared.set(Plan { later: Some(forgery), ..Plan::default() });
            pair.exchange(4_000, 0);
            network.wire.shared.set(Plan::default());
            // One packet at the slowest rate; then a restart of a few RTTs, as after any silence.
            assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{forgery:?}: {}", flow(&mut daemon, &pair));
        }
    }
}

/// A connection that starts on a full link rises to the price's rate when the link is free. At the start rate, one
/// packet would take seconds.
#[test]
fn a_very_low_start_rate_rises_to_that_of_the_price() {
    let Some((network, mut daemon)) = unforged(EXPERIMENT, X_MAX_BPS, RATE_BPS) else { return };
    let code = (X_MAX_BPS / 1e3).ln() * f64::from(1 << 18);
    network.wire.shared.start.store(START_RATE | code as u32, Relaxed);
    let mut pair = network.connect(0);
    // In packets of 1400 bytes; at the slowest rate that takes four seconds.
    pair.exchange(30_000, 0);
    assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{}", flow(&mut daemon, &pair));
}

// ---------------------------------------------------------------------------------- all at once

/// Number of simultaneous connections.
const CONNECTIONS: u16 = 16;
/// Value of x_max in bit/s, which limits the load that a connection with forged prices can cause.
const STORM_X_MAX_BPS: f64 = 100e6;
const STORM_RATE_BPS: f64 = 10e6;

/// Opens connections one after the other until the path has seen `goal` data packets. Returns the last connection.
fn connections(network: &Network, next: &AtomicU16, goal: u64) -> Pair {
    loop {
        let mut pair = network.connect(next.fetch_add(1, Relaxed));
        pair.exchange(1_000_000, 250_000);
        if network.wire.shared.seen[DATA].load(Relaxed) >= goal {
            return pair;
        }
    }
}

/// Applies random forgeries to packets of short connections, and continues the last connections with true options.
fn storm(kind: u8, goal: u64) {
    let before = kernel_warnings();
    let Some((network, mut daemon)) = unforged(kind, STORM_X_MAX_BPS, STORM_RATE_BPS) else { return };
    let network = &network;
    let shared = &network.wire.shared;
    shared.set(Plan { raised: 4, well_formed: 400, unreadable: 100, handshakes: 200, ..Plan::default() });
    let next = AtomicU16::new(0);
    let next = &next;
    let began = Instant::now();
    let (mut samples, mut ends) = (0, BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        let (stormed, wait) = mpsc::channel();
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (go, again) = mpsc::channel::<()>();
                let stormed = stormed.clone();
                scope.spawn(move || {
                    let mut pair = connections(network, next, goal);
                    stormed.send(pair.local()).unwrap();
                    // With true options, on the same connection, as often as requested.
                    while again.recv().is_ok() {
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
                assert_bounded(network, &daemon.flows(), STORM_X_MAX_BPS);
                samples += 1;
            }
            locals
        };
        let locals = all(&mut daemon);
        shared.set(Plan::default());
        // The final state of each connection, or its status if it has none yet.
        let look = |daemon: &mut Daemon| -> Vec<Result<String, Value>> {
            let flows = daemon.flows();
            let of = |local: &String| flows.iter().find(|flow| flow["local"] == local.as_str()).expect("it is listed");
            let end = |flow: &Value| match flow["fallback_reason"].as_str() {
                Some(reason) => Ok(reason.to_owned()),
                None if is_at(flow, STORM_RATE_BPS) => Ok("priced".to_owned()),
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
    assert_checksums(network);
    let new: Vec<_> = kernel_warnings().into_iter().filter(|line| !before.contains(line)).collect();
    assert!(new.is_empty(), "the kernel warns: {new:#?}");
    let seen = [SYN, DATA, ACK].map(|class| shared.seen[class].load(Relaxed));
    assert!(seen[DATA] >= goal);
    for class in [DATA, ACK] {
        for forgery in FORGERIES {
            assert!(shared.forged(class, forgery) > 0, "{forgery:?} was not made in {} packets", seen[class]);
        }
    }
    eprintln!(
        "{} connections, {seen:?} packets of handshakes, data and ACKs, {} forgeries, {samples} samples, \
         final states {ends:?}, {} retransmissions, {:.1} s",
        next.load(Relaxed),
        shared.all_forged(),
        network.counted("Tcp", "RetransSegs"),
        began.elapsed().as_secs_f64(),
    );
}

#[test]
fn random_forgeries() {
    storm(EXPERIMENT, 20_000);
}

#[test]
fn random_forgeries_in_the_papers_option() {
    storm(PAPER, 20_000);
}

#[test]
#[ignore = "minutes: cargo test --features daemon --test forged -- --ignored --nocapture"]
fn a_million_packets_with_random_forgeries() {
    storm(EXPERIMENT, 1_000_000);
}

// ---------------------------------------------------------------------------------- queues

/// Frames of one direction wait on a longer path, or at a bottleneck without a price.
#[derive(Clone, Copy)]
enum Wait {
    Path,
    Bottleneck,
}

/// Delays frames by 20 ms in one direction after a connection is priced. Returns the connection's final status.
fn delayed((wait, way): (Wait, usize), timestamps: bool, mut meanwhile: impl FnMut(&Network) + Send) -> Option<Value> {
    let (network, mut daemon) = unforged(EXPERIMENT, X_MAX_BPS, RATE_BPS)?;
    if !timestamps {
        network.run_in_both("sysctl -qw net.ipv4.tcp_timestamps=0");
    }
    let mut pair = network.connect(0);
    assert!(settles(&mut pair, &mut daemon, RATE_BPS), "{}", flow(&mut daemon, &pair));
    let shared = &network.wire.shared;
    match wait {
        Wait::Path => shared.hold_us[way].store(20_000, Relaxed),
        // A window is 17 packets, with an acknowledgement for every second one.
        Wait::Bottleneck => shared.spacing_us[way].store([20_000 / 17, 20_000 / 8][way], Relaxed),
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                meanwhile(&network);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        // Some 60 RTTs with a window of 17 packets; 8 to 16 are enough.
        pair.exchange(1_500_000, 0);
        done.store(true, Relaxed);
    });
    Some(flow(&mut daemon, &pair))
}

const STANDING_QUEUE: &str = "the queue does not drain while the price does not rise";

/// A delay that comes at once and does not shrink with the window is a longer path.
#[test]
fn a_longer_path_keeps_the_law() {
    let Some(flow) = delayed((Wait::Path, 0), true, |_| ()) else { return };
    assert_eq!(flow["mode"], "priced", "{flow}");
}

/// A standing queue without a rising price causes a fallback, because the queue looks like an unpriced bottleneck.
#[test]
fn a_standing_queue_under_a_constant_price_means_an_unpriced_bottleneck() {
    for timestamps in [true, false] {
        // The wire loses nothing and delays by 20 ms, so a time-out means that the host stopped it for 200 ms.
        let undisturbed = (0..3).find_map(|_| match delayed((Wait::Bottleneck, 0), timestamps, |_| ()) {
            Some(flow) if flow["timeouts"] == 0 => Some(Some(flow)),
            Some(flow) => {
                eprintln!("timed out, tried again: {flow}");
                None
            }
            None => Some(None),
        });
        let Some(flow) = undisturbed.expect("one run of three without a time-out") else { return };
        assert_eq!(flow["fallback_reason"], STANDING_QUEUE, "{flow}");
    }
}

#[test]
fn a_standing_queue_under_a_rising_price_is_tolerated() {
    let began = Instant::now();
    let rises = |network: &Network| {
        // 0.1 s per second, as at a router with a load 4 % above its capacity.
        set_price(network, X_MAX_BPS, RATE_BPS * (-0.1 * began.elapsed().as_secs_f64() / T_S).exp());
    };
    let Some(flow) = delayed((Wait::Bottleneck, 0), true, rises) else { return };
    assert_eq!(flow["mode"], "priced", "{flow}");
}

#[test]
fn a_queue_on_the_ack_path_is_not_the_datas() {
    // On a busy host, frames may wait in the other direction too.
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let Some(flow) = delayed((Wait::Bottleneck, 1), true, |_| ()) else { return };
        if is_at(&flow, RATE_BPS) {
            return;
        }
        seen.push(flow);
    }
    panic!("{seen:#?}");
}

/// A source without timestamps falls back, because the RTT alone does not show the direction of a queue.
#[test]
fn without_timestamps_the_queues_direction_is_unknown() {
    // Rounds in which a busy host was late do not count as evidence.
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let Some(flow) = delayed((Wait::Bottleneck, 1), false, |_| ()) else { return };
        if flow["fallback_reason"] == STANDING_QUEUE {
            return;
        }
        seen.push(flow);
    }
    panic!("{seen:#?}");
}

// ---------------------------------------------------------------------------------- the papers' option with a router

#[test]
fn a_router_and_hosts_use_the_papers_option() {
    let Some(network) = Network::new(PAPER) else { return };
    let mut hosts = Daemon::host(&network.spaces, "", "--no-pin --option-kind 42");
    network.spaces.use_law();
    let arguments = "router --no-pin --dev wire --rate 50Mbit/s --overhead 0";
    let mut router = Daemon::start(&network.spaces.enter('a'), arguments);
    let mut pair = network.connect(0);
    let local = pair.local();
    let mut echoed = 0;
    std::thread::scope(|scope| {
        let transfer = scope.spawn(|| pair.exchange(4_000_000, 0));
        while !transfer.is_finished() {
            let flows = hosts.flows();
            let flow = flows.iter().find(|flow| flow["local"] == local.as_str()).expect("it is listed");
            let link = number(&router.status()["links"][0], "price_s");
            // The only price on this path, which changes by less than this until its echo arrives.
            echoed += usize::from((number(flow, "price_s") - link).abs() < 0.05);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let flow = flow(&mut hosts, &pair);
    assert_eq!(flow["mode"], "priced", "{flow}");
    assert!(echoed > 0, "no echo had the router's price: {flow}");
    let link = &router.status()["links"][0];
    assert_eq!(link["starts"], 1, "{link}");
    // Super-packets, each of which is raised from 0.
    assert!(number(link, "segments") > 2700.0 && number(link, "marked") > 0.9 * number(link, "seen"), "{link}");
    assert_eq!(network.wire.shared.seen[SYN].load(Relaxed), 2);
    assert_checksums(&network);
}
