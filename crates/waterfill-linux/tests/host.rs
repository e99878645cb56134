//! Tests of the host programs in the running kernel, over three namespaces in a row.
//!
//! The middle one changes options with a program in `bpf/test/path.bpf.c`. Both ends are this test program, started
//! again in a namespace and a cgroup.

#![cfg(feature = "daemon")]

#[path = "host/access.rs"]
mod access;
mod common;
#[path = "host/events.rs"]
mod events;
#[path = "host/locked.rs"]
mod locked;
#[path = "host/peers.rs"]
mod peers;
#[path = "host/probation.rs"]
mod probation;
#[path = "host/scrape.rs"]
mod scrape;
#[path = "host/selected.rs"]
mod selected;
#[path = "host/signed.rs"]
mod signed;
#[path = "host/upgrade.rs"]
mod upgrade;

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, id};
use std::time::{Duration, Instant};

use common::{Daemon, Namespaces, WATERFILLD, number, run};
use serde_json::Value;
use upgrade::{Pinned, is_listed};

/// Rate for the price that `path.bpf.c` writes, in bit/s.
const RATE_BPS: f64 = 50e6;
const BYTES: usize = 4_000_000;
const CLIENT: &str = "10.99.1.1";
const SERVER: [&str; 2] = ["10.99.2.1", "fd99:2::1"];

// ---------------------------------------------------------------------------------- one end of a connection

/// Runs one end of a connection if [`End::start`] has started this program again. In a normal test run, the function
/// does nothing.
#[test]
fn end() {
    let (Ok(role), Ok(bytes)) = (std::env::var("WATERFILL_END"), std::env::var("WATERFILL_BYTES")) else { return };
    let bytes: usize = bytes.parse().unwrap();
    let signs = std::env::var_os(signed::SIGN).is_some();
    let listener; // open until the end, so that more than one client can connect
    let mut stream = if role == "serve" {
        listener = if signs { signed::listener(CLIENT) } else { TcpListener::bind("[::]:7001").unwrap() };
        print_line("listening");
        listener.accept().unwrap().0
    } else if signs {
        signed::stream(&role)
    } else {
        TcpStream::connect((role.as_str(), 7001)).unwrap()
    };
    let mut reading = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut sum, mut count, mut buffer) = (START, 0, vec![0; 1 << 16]);
        loop {
            let n = reading.read(&mut buffer).unwrap();
            if n == 0 {
                return format!("received {count} {sum:x}");
            }
            sum = hashed(sum, &buffer[..n]);
            count += n;
        }
    });
    let (mut sum, mut state) = (START, u64::from(id()) | 1);
    let mut left = bytes;
    while left > 0 {
        let chunk: Vec<u8> = (0..left.min(1 << 14))
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        stream.write_all(&chunk).unwrap();
        sum = hashed(sum, &chunk);
        left -= chunk.len();
    }
    print_line(&format!("sent {bytes} {sum:x}"));
    // Keep the connection open until the test has read its state.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    print_line(&reader.join().unwrap());
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the FNV-1a hash of bytes, continued from `sum`.
fn hashed(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Prints a line with a mark that distinguishes the line from the harness's lines.
fn print_line(what: &str) {
    println!("\n@{what}");
    std::io::stdout().flush().unwrap();
}

struct End {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
}

impl End {
    fn start(network: &Network, end: char, role: &str, bytes: usize, in_cgroup: bool) -> Self {
        let cgroup = network.spaces.cgroup.display();
        let join = if in_cgroup { format!("echo $$ > {cgroup}/cgroup.procs; ") } else { String::new() };
        let enter = network.spaces.enter(end);
        let mut child = Command::new("sh")
            .args(["-ec", &format!("{join}exec {enter} \"$0\" --exact end --nocapture")])
            .arg(std::env::current_exe().unwrap())
            .env("WATERFILL_END", role)
            .env("WATERFILL_BYTES", bytes.to_string())
            .envs(network.sign.then_some((signed::SIGN, "1")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take().unwrap();
        Self { child, lines, stdin }
    }

    fn next(&mut self) -> String {
        let line = self.lines.by_ref().map(Result::unwrap).find_map(|line| line.strip_prefix('@').map(String::from));
        line.expect("an end prints its result before it exits")
    }

    fn go_on(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

// ---------------------------------------------------------------------------------- the network

/// Network of the namespaces `a`, `r` (the path) and `b` in a row.
struct Network {
    spaces: Namespaces,
    /// True if both ends sign their segments.
    sign: bool,
}

impl Network {
    /// Creates the network. If that is not possible, prints the reason and returns `None`.
    fn new() -> Option<Self> {
        Some(Self { spaces: Namespaces::in_a_row()?, sign: false })
    }

    /// Starts `waterfilld host` for the connections of the test's cgroup.
    fn daemon(&self, arguments: &str) -> Daemon {
        Daemon::host(&self.spaces, "", arguments)
    }

    /// Attaches a program of `path.bpf.c` to the path towards these ends.
    fn path(&self, section: &str, ends: &[char]) {
        for end in ends {
            self.spaces.path(Some(section), *end);
        }
    }

    /// Transfers data from `a` to `b`, and `back` bytes from `b` to `a`. Returns the status at `a` before the
    /// connection closes, and the status at `b` if it is shown.
    fn transfer(
        &self,
        daemon: &mut Daemon,
        address: &str,
        back: usize,
        peer_in_cgroup: bool,
    ) -> (Value, Option<Value>) {
        let mut server = End::start(self, 'b', "serve", back, peer_in_cgroup);
        assert_eq!(server.next(), "listening");
        let mut client = End::start(self, 'a', address, BYTES, true);
        let (sent, sent_back) = (client.next(), server.next());
        let flows = daemon.flows();
        client.go_on();
        server.go_on();
        assert_eq!(client.next(), sent_back.replace("sent", "received"), "from b to a");
        assert_eq!(server.next(), sent.replace("sent", "received"), "from a to b");
        let of = |key: &str| flows.iter().find(|flow| flow[key].as_str().unwrap().ends_with(":7001")).cloned();
        (of("remote").expect("a's end is shown"), of("local"))
    }
}

// ---------------------------------------------------------------------------------- tests

fn assert_priced(flow: &Value) {
    assert_eq!(flow["mode"], "priced", "{flow}");
    let rate = number(flow, "rate_bps");
    assert!((rate / RATE_BPS - 1.0).abs() < 1e-4, "{flow}");
    // W = tau x, where tau is the base RTT but at least a millisecond.
    let tau = number(flow, "base_rtt_us").max(1000.0) * 1e-6;
    assert!(number(flow, "window_bytes") >= rate * tau / 8.0 - 1500.0, "{flow}");
}

#[test]
fn a_price_sets_the_rate_in_both_directions_over_ipv4_and_ipv6() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    network.spaces.use_law();
    network.path("price", &['a', 'b']);
    for address in SERVER {
        let (flow, back) = network.transfer(&mut daemon, address, BYTES, true);
        assert_priced(&flow);
        assert_priced(&back.expect("b is in the cgroup"));
    }
    let (flow, back) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_priced(&flow);
    let echoed = number(&back.expect("b is in the cgroup"), "echoed_price_s");
    assert!((echoed - number(&flow, "price_s")).abs() < 1e-5, "b echoes {echoed}");

    assert_eq!((&flow["state"], &flow["ca_initialized"]), (&"established".into(), &true.into()), "{flow}");
    let flags: Vec<&str> = flow["flags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for flag in ["option sent", "negotiated", "established", "law active", "law started", "was priced"] {
        assert!(flags.contains(&flag), "{flag}: {flow}");
    }
    // A connection has one of the two, and the counter knows the second.
    assert!(flags.contains(&"init ran") != flags.contains(&"init unseen"), "{flow}");
    assert_eq!(flags.contains(&"init unseen"), number(&flow, "controls_without_init") > 0.0, "{flow}");
    let counters = &daemon.status()["counters"];
    // Three connections with two ends each, of which the last one sends no data.
    assert_eq!((number(counters, "started"), number(counters, "priced")), (6.0, 5.0), "{counters}");
    assert_eq!(number(counters, "no_memory"), 0.0, "{counters}");
}

#[test]
fn the_papers_option_works_too() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin --option-kind 42");
    network.spaces.use_law();
    // The path's program handles the other kind only: for this one it is a path without a router.
    network.path("price", &['a', 'b']);
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "no router on the path writes a price", "{flow}");
}

#[test]
fn connections_on_paths_without_a_price_fall_back() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    network.spaces.use_law();
    let mut falls_back = |path: &str, peer: bool, reason: &str| {
        if !path.is_empty() {
            network.path(path, &['b']);
        }
        let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, peer);
        assert_eq!(
            (&flow["mode"], &flow["fallback_reason"]),
            (&"fallen back".into(), &reason.into()),
            "{path}: {flow}"
        );
    };
    falls_back("", true, "no router on the path writes a price");
    falls_back("", false, "the peer did not answer the option");
    falls_back("remove", true, "the peer did not answer the option");
    // The first SYN to a destination has the kernel's time, one second, for long paths. After two failures the
    // destination is remembered.
    let mut seconds = || {
        let begin = Instant::now();
        falls_back("drop_syn", true, "a SYN with the option got no answer");
        begin.elapsed().as_secs_f64()
    };
    let (first, second) = (seconds(), seconds());
    assert!(first > 0.95 && second < first - 0.35, "{first} s, {second} s");
    falls_back("drop_syn", true, "earlier connections to this address lost the option");
    let fallbacks = &daemon.status()["counters"]["fallbacks"];
    assert_eq!(number(fallbacks, "a SYN with the option got no answer"), 2.0, "{fallbacks}");
    assert_eq!(number(fallbacks, "earlier connections to this address lost the option"), 1.0, "{fallbacks}");
    assert_eq!(number(fallbacks, "no echo arrives"), 0.0, "{fallbacks}");
}

/// An outage loses the SYNs of all connections that begin in it, whatever their options.
#[test]
fn syns_lost_at_the_same_time_are_one_failure() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    network.spaces.use_law();
    network.path("drop_syn", &['b']);
    let mut server = End::start(&network, 'b', "serve", 0, true);
    assert_eq!(server.next(), "listening");
    let mut clients = [0; 3].map(|bytes| End::start(&network, 'a', SERVER[0], bytes, true));
    for client in &mut clients {
        assert_eq!(client.next().split(' ').next(), Some("sent"));
    }
    drop((clients, server));
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "a SYN with the option got no answer", "{flow}");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "earlier connections to this address lost the option", "{flow}");
}

#[test]
fn missing_echoes_are_detected_and_remembered() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    network.spaces.use_law();
    network.path("remove_from_data", &['b']);
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    // The receiver gets no requests, so it echoes nothing. A single connection may be an accident.
    assert_eq!(flow["fallback_reason"], "no echo arrives", "{flow}");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "no echo arrives", "{flow}");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "earlier connections to this address lost the option", "{flow}");
    // Of another address, an echo on data ends the count.
    network.transfer(&mut daemon, SERVER[1], 0, true);
    network.path("price", &['b']);
    assert_priced(&network.transfer(&mut daemon, SERVER[1], 0, true).0);
    network.path("remove_from_data", &['b']);
    let (flow, _) = network.transfer(&mut daemon, SERVER[1], 0, true);
    assert_eq!(flow["fallback_reason"], "no echo arrives", "{flow}");
    network.path("price", &['b']);
    assert_priced(&network.transfer(&mut daemon, SERVER[1], 0, true).0);
}

#[test]
fn data_arrive_unchanged_whatever_the_option_contains() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    network.spaces.use_law();
    network.path("random", &['a', 'b']);
    for address in SERVER {
        let (flow, _) = network.transfer(&mut daemon, address, BYTES, true);
        assert!(number(&flow, "rate_bps") <= 1e15, "{flow}");
    }
}

#[test]
fn pins_outlive_a_killed_daemon_and_the_next_one_continues() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    let mut daemon = pinned.daemon(&network, "");
    network.spaces.use_law();
    network.path("price", &['b']);
    {
        let mut server = End::start(&network, 'b', "serve", 0, true);
        assert_eq!(server.next(), "listening");
        let mut client = End::start(&network, 'a', SERVER[0], BYTES, true);
        let first = |daemon: &mut Daemon| {
            daemon.flows().into_iter().find(|flow| flow["remote"].as_str().unwrap().ends_with(":7001"))
        };
        let priced = |_| {
            std::thread::sleep(Duration::from_millis(5));
            first(&mut daemon).is_some_and(|flow| flow["mode"] == "priced")
        };
        assert!((0..1000).any(priced), "the connection does not become priced");
        daemon.kill();
        let mut again = pinned.daemon(&network, "");
        assert_priced(&first(&mut again).expect("the next daemon does not list the connection"));
        let (sent, _) = (client.next(), server.next());
        assert_priced(&first(&mut again).unwrap());
        client.go_on();
        server.go_on();
        client.next();
        assert_eq!(server.next(), sent.replace("sent", "received"));
        drop(again);
    }
    pinned.unload();
    assert!(!is_listed(&network.spaces.law()));
}
