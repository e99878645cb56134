//! The host's programs on the running kernel: three namespaces in a row, whose middle one does to options what
//! `bpf/test/path.bpf.c` says. Both ends are this same test program, started again in a namespace and a cgroup.

#![cfg(feature = "daemon")]

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// What `path.bpf.c`'s prices stand for.
const RATE_BPS: f64 = 50e6;
const BYTES: usize = 4_000_000;
const SERVER: [&str; 2] = ["10.99.2.1", "fd99:2::1"];

/// Several at a time would wait for each other's processors.
static ONE: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

// ---------------------------------------------------------------------------------- one end of a connection

/// One end, when [`End::start`] starts this program again; nothing otherwise.
#[test]
fn end() {
    let (Ok(role), Ok(bytes)) = (std::env::var("WATERFILL_END"), std::env::var("WATERFILL_BYTES")) else { return };
    let bytes: usize = bytes.parse().unwrap();
    let mut stream = if role == "serve" {
        let listener = TcpListener::bind("[::]:7001").unwrap();
        say("listening");
        listener.accept().unwrap().0
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
    say(&format!("sent {bytes} {sum:x}"));
    // Open until the test has looked at it.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    say(&reader.join().unwrap());
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: which bytes, and in which order.
fn hashed(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A line for the test; the harness writes others.
fn say(what: &str) {
    println!("\n@{what}");
    std::io::stdout().flush().unwrap();
}

struct End {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
}

impl End {
    fn start(network: &Network, namespace: char, role: &str, bytes: usize, takes_part: bool) -> Self {
        // `ip netns exec` would hide the cgroup.
        let join =
            if takes_part { format!("echo $$ > {}/cgroup.procs; ", network.cgroup.display()) } else { String::new() };
        let enter = format!("exec nsenter --net=/run/netns/{}", network.space(namespace));
        let mut child = Command::new("sh")
            .args(["-ec", &format!("{join}{enter} \"$0\" --exact end --nocapture")])
            .arg(std::env::current_exe().unwrap())
            .env("WATERFILL_END", role)
            .env("WATERFILL_BYTES", bytes.to_string())
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
        line.expect("an end says something before it ends")
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

/// Namespaces `…a`, `…r` and `…b` in a row, and a cgroup for the ends. All ends with it.
struct Network {
    prefix: String,
    cgroup: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

fn run(command: &str) -> Result<(), String> {
    let out = Command::new("sh").args(["-ec", command]).output().unwrap();
    if out.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&out.stderr)))
}

impl Network {
    /// None, with a line that says why, where this machine cannot.
    fn new() -> Option<Self> {
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = requirements().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let prefix = format!("wf{}x{}", id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let cgroup = root.join(format!("waterfill-test-{prefix}"));
        fs::create_dir(&cgroup).unwrap();
        let network = Self { prefix, cgroup, _alone: alone };
        let (a, r, b) = (network.space('a'), network.space('r'), network.space('b'));
        for space in [&a, &r, &b] {
            run(&format!("ip netns add {space}; ip -n {space} link set lo up")).unwrap();
        }
        for (end, n, space) in [("a", 1, &a), ("b", 2, &b)] {
            run(&format!(
                "ip -n {space} link add wire type veth peer name to-{end} netns {r}
                 ip -n {space} addr add 10.99.{n}.1/24 dev wire; ip -n {r} addr add 10.99.{n}.2/24 dev to-{end}
                 ip -n {space} addr add fd99:{n}::1/64 dev wire nodad; ip -n {r} addr add fd99:{n}::2/64 dev to-{end} nodad
                 ip -n {space} link set wire up; ip -n {r} link set to-{end} up
                 ip -n {space} route add default via 10.99.{n}.2; ip -n {space} -6 route add default via fd99:{n}::2
                 nsenter --net=/run/netns/{r} tc qdisc add dev to-{end} clsact"
            ))
            .unwrap();
        }
        run(&format!("nsenter --net=/run/netns/{r} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"))
            .unwrap();
        Some(network)
    }

    fn space(&self, which: char) -> String {
        format!("{}{which}", self.prefix)
    }

    /// The name of the law; the kernel takes 15 bytes, and one of a name.
    fn law(&self) -> String {
        format!("bpf_{}", self.prefix.chars().take(11).collect::<String>())
    }

    /// What the path does, towards both ends or towards b alone.
    fn path(&self, kind: &str, ends: &[&str]) {
        for end in ends {
            run(&format!(
                "nsenter --net=/run/netns/{} tc filter replace dev to-{end} egress prio 1 handle 1 bpf da obj {} sec {kind}",
                self.space('r'),
                env!("PATH_OBJECT"),
            ))
            .unwrap();
        }
    }

    /// Everybody's law from here on, in both ends' namespaces.
    fn use_law(&self) {
        for end in ['a', 'b'] {
            let (space, law) = (self.space(end), self.law());
            run(&format!("nsenter --net=/run/netns/{space} sysctl -qw net.ipv4.tcp_congestion_control={law}")).unwrap();
        }
    }

    /// A connection from a to b: a's flow as the daemon shows it before the connection ends, and b's if it is shown.
    fn transfer(
        &self,
        daemon: &mut Daemon,
        address: &str,
        back: usize,
        peer_takes_part: bool,
    ) -> (Value, Option<Value>) {
        let mut server = End::start(self, 'b', "serve", back, peer_takes_part);
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

impl Drop for Network {
    fn drop(&mut self) {
        for end in ['a', 'r', 'b'] {
            drop(run(&format!("ip netns del {}", self.space(end))));
        }
        drop(fs::remove_dir(&self.cgroup));
    }
}

/// The root of cgroup v2, if all that is needed is here.
fn requirements() -> Result<PathBuf, String> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err("this kernel has no type information (BTF)".into());
    }
    run("ip netns list; nsenter --version; tc -V; sysctl --version")
        .map_err(|_| "needs ip, tc, nsenter and sysctl".to_owned())?;
    let probe = format!("wfprobe{}", id());
    run(&format!("ip netns add {probe}; ip netns del {probe}"))
        .map_err(|_| "making network namespaces needs root".to_owned())?;
    let mounts = fs::read_to_string("/proc/mounts").map_err(|e| e.to_string())?;
    let cgroup = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        words.next().filter(|_| words.next() == Some("cgroup2"))
    });
    cgroup.map(PathBuf::from).ok_or_else(|| "no cgroup v2 is mounted".into())
}

/// `waterfilld host`.
struct Daemon {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: Option<ChildStdin>,
}

impl Daemon {
    fn start(network: &Network, arguments: &str) -> Self {
        Self::start_with(network, "", arguments)
    }

    fn start_with(network: &Network, before: &str, arguments: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_waterfilld");
        let (law, cgroup) = (network.law(), network.cgroup.display());
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec {before} {program} host --line --name {law} --cgroup {cgroup} {arguments}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().expect("the daemon starts").unwrap(), "{\"ready\":true}");
        let stdin = child.stdin.take();
        Self { child, lines, stdin }
    }

    fn flows(&mut self) -> Vec<Value> {
        self.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["flows"].as_array().unwrap().clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stdin.take()); // with --line it ends when this closes
        drop(self.child.wait());
    }
}

// ---------------------------------------------------------------------------------- tests

fn number(flow: &Value, key: &str) -> f64 {
    flow[key].as_f64().unwrap()
}

fn obeys(flow: &Value) {
    assert_eq!(flow["mode"], "priced", "{flow}");
    let rate = number(flow, "rate_bps");
    assert!((rate / RATE_BPS - 1.0).abs() < 1e-4, "{flow}");
    // W = tau x, where tau is the base round trip but at least a millisecond.
    let tau = number(flow, "base_rtt_us").max(1000.0) * 1e-6;
    assert!(number(flow, "window_bytes") >= rate * tau / 8.0 - 1500.0, "{flow}");
}

#[test]
fn a_price_is_obeyed_in_both_directions_and_by_both_families() {
    let Some(network) = Network::new() else { return };
    let mut daemon = Daemon::start(&network, "--no-pin");
    network.use_law();
    network.path("price", &["a", "b"]);
    for address in SERVER {
        let (flow, back) = network.transfer(&mut daemon, address, BYTES, true);
        obeys(&flow);
        obeys(&back.expect("b takes part"));
    }
    let (flow, back) = network.transfer(&mut daemon, SERVER[0], 0, true);
    obeys(&flow);
    let echoed = number(&back.expect("b takes part"), "echoed_price_s");
    assert!((echoed - number(&flow, "price_s")).abs() < 1e-5, "b echoes {echoed}");
}

#[test]
fn the_papers_option_works_too() {
    let Some(network) = Network::new() else { return };
    let mut daemon = Daemon::start(&network, "--no-pin --option-kind 42");
    network.use_law();
    // The test's path knows the other kind alone: to this one it is a path without a router.
    network.path("price", &["a", "b"]);
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "no router on the path writes a price", "{flow}");
}

#[test]
fn paths_that_give_no_price_fall_back() {
    let Some(network) = Network::new() else { return };
    let mut daemon = Daemon::start(&network, "--no-pin");
    network.use_law();
    let mut falls = |path: &str, peer: bool, reason: &str| {
        if !path.is_empty() {
            network.path(path, &["b"]);
        }
        let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, peer);
        assert_eq!(
            (&flow["mode"], &flow["fallback_reason"]),
            (&"fallen back".into(), &reason.into()),
            "{path}: {flow}"
        );
    };
    falls("", true, "no router on the path writes a price");
    falls("", false, "the peer did not answer the option");
    falls("strip", true, "the peer did not answer the option");
    // Twice may be chance; from then on it is known.
    falls("eat", true, "a SYN with the option got no answer");
    falls("eat", true, "a SYN with the option got no answer");
    falls("eat", true, "options did not get through to this place before");
}

#[test]
fn echoes_that_stop_are_noticed_and_remembered() {
    let Some(network) = Network::new() else { return };
    let mut daemon = Daemon::start(&network, "--no-pin");
    network.use_law();
    network.path("strip_data", &["b"]);
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    // Nobody asks the receiver for a price, so none is echoed.
    assert_eq!(flow["fallback_reason"], "echoes have stopped", "{flow}");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_eq!(flow["fallback_reason"], "options did not get through to this place before", "{flow}");
}

#[test]
fn whatever_the_option_says_data_arrives_whole() {
    let Some(network) = Network::new() else { return };
    let mut daemon = Daemon::start(&network, "--no-pin");
    network.use_law();
    network.path("forge", &["a", "b"]);
    for address in SERVER {
        let (flow, _) = network.transfer(&mut daemon, address, BYTES, true);
        assert!(number(&flow, "rate_bps") <= 1e15, "{flow}");
    }
}

#[test]
fn what_is_pinned_outlives_its_daemon_and_is_taken_over() {
    let Some(network) = Network::new() else { return };
    let folder = std::env::temp_dir().join(format!("waterfill-test-{}", network.prefix));
    fs::create_dir(&folder).unwrap();
    // A mount namespace of its own, for as long as this child lives.
    let mut holder = Command::new("unshare")
        .args(["--mount", "sh", "-c", &format!("mount -t bpf bpf {} && echo mounted && read end", folder.display())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut mounted = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut mounted).unwrap();
    let inside = format!("nsenter --mount --target {}", holder.id());
    let pins = format!("--pins {}/pins", folder.display());
    let mut daemon = Daemon::start_with(&network, &inside, &pins);
    network.use_law();
    network.path("price", &["b"]);
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
        assert!((0..1000).any(priced), "the connection is priced before long");
        daemon.child.kill().unwrap();
        drop(daemon);
        let mut again = Daemon::start_with(&network, &inside, &pins);
        obeys(&first(&mut again).expect("the connection is known to the next daemon"));
        let (sent, _) = (client.next(), server.next());
        obeys(&first(&mut again).unwrap());
        client.go_on();
        server.go_on();
        client.next();
        assert_eq!(server.next(), sent.replace("sent", "received"));
        drop(again);
    }
    run(&format!("{inside} {} unload {pins}", env!("CARGO_BIN_EXE_waterfilld"))).unwrap();
    let laws = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(!laws.split_whitespace().any(|law| law == network.law()), "{laws}");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    fs::remove_dir(&folder).unwrap();
}
