//! Two namespaces with a TAP device each, connections between them, and `waterfilld host`. All of it ends with its owner.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use waterfill_linux::delay::tap::Tap;

use crate::wire::Wire;

/// Several at a time would wait for each other's processors.
static ONE: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);
/// No test waits so long for a byte but where a connection hangs.
const HANGS: Duration = Duration::from_secs(60);
const FRAME_BYTES: usize = 2048;

pub(crate) fn run(command: &str) -> Result<String, String> {
    let out = Command::new("sh").args(["-ec", command]).output().unwrap();
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// Namespaces `…a` and `…b` with addresses 10.97.0.1 and .2, and all of 10.98.0.0/16 and fd98::/64 at b; a cgroup, in
/// which this process is meanwhile. Connections are made here, by threads that enter a namespace.
#[derive(Debug)]
pub(crate) struct Network {
    prefix: String,
    cgroup: PathBuf,
    /// The file of processes of the cgroup that this one came from.
    home: PathBuf,
    pub(crate) wire: Wire,
    _alone: MutexGuard<'static, ()>,
}

impl Network {
    /// None, with a line that says why, where this machine cannot.
    pub(crate) fn new(kind: u8) -> Option<Self> {
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = requirements().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let mine = fs::read_to_string("/proc/self/cgroup").unwrap();
        let mine = mine.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let home = root.join(mine).join("cgroup.procs");
        let prefix = format!("wff{}x{}", id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let taps = ["a", "b"].map(|end| Tap::open(&format!("{prefix}{end}"), FRAME_BYTES));
        let [Ok(a), Ok(b)] = taps else {
            eprintln!("skipped: needs /dev/net/tun");
            return None;
        };
        let cgroup = root.join(format!("waterfill-test-{prefix}"));
        fs::create_dir(&cgroup).unwrap();
        let wire = Wire::new([a, b], kind, 1);
        let network = Self { prefix, cgroup, home, wire, _alone: alone };
        for (end, host) in [('a', 1), ('b', 2)] {
            let space = network.space(end);
            run(&format!(
                "ip netns add {space}; ip -n {space} link set lo up; ip link set {space} netns {space} name wire
                 ip -n {space} addr add 10.97.0.{host}/24 dev wire; ip -n {space} addr add fd97::{host}/64 dev wire nodad
                 ip -n {space} link set wire up"
            ))
            .unwrap();
        }
        let (a, b) = (network.space('a'), network.space('b'));
        run(&format!(
            "ip -n {b} route add local 10.98.0.0/16 dev lo; ip -n {b} -6 route add local fd98::/64 dev lo
             ip -n {a} route add 10.98.0.0/16 via 10.97.0.2; ip -n {a} -6 route add fd98::/64 via fd97::2"
        ))
        .unwrap();
        if let Err(why) = fs::write(network.cgroup.join("cgroup.procs"), id().to_string()) {
            eprintln!("skipped: cannot enter a control group: {why}");
            return None;
        }
        Some(network)
    }

    pub(crate) fn space(&self, which: char) -> String {
        format!("{}{which}", self.prefix)
    }

    /// The name of the law; the kernel takes 15 bytes, and one of a name.
    pub(crate) fn law(&self) -> String {
        format!("bpf_{}", self.prefix.chars().take(11).collect::<String>())
    }

    /// A command in both ends' namespaces.
    pub(crate) fn in_both(&self, command: &str) {
        for end in ['a', 'b'] {
            run(&format!("nsenter --net=/run/netns/{} {command}", self.space(end))).unwrap();
        }
    }

    /// Everybody's law from here on.
    pub(crate) fn use_law(&self) {
        self.in_both(&format!("sysctl -qw net.ipv4.tcp_congestion_control={}", self.law()));
    }

    /// A connection from a to an address of b that no other number has. The calling thread is in a then.
    pub(crate) fn connect(&self, number: u16) -> Pair {
        enter(&self.space('b'));
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        enter(&self.space('a'));
        // Options that do not get through to a place are not sent there again.
        let client = if number % 2 == 0 {
            TcpStream::connect((format!("10.98.{}.{}", number >> 8, number & 255).as_str(), port)).unwrap()
        } else {
            TcpStream::connect((format!("fd98::{number:x}").as_str(), port)).unwrap()
        };
        let (server, _) = listener.accept().unwrap();
        for end in [&client, &server] {
            end.set_read_timeout(Some(HANGS)).unwrap();
            end.set_write_timeout(Some(HANGS)).unwrap();
        }
        Pair { client, server, seed: u64::from(number) }
    }

    /// The sum of a counter over both ends' namespaces.
    pub(crate) fn counted(&self, protocol: &str, name: &str) -> u64 {
        let of = |end| {
            let text = run(&format!("nsenter --net=/run/netns/{} cat /proc/net/snmp", self.space(end))).unwrap();
            let rows: Vec<Vec<&str>> = text
                .lines()
                .filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))
                .map(|line| line.split_whitespace().collect())
                .collect();
            let column = rows[0].iter().position(|n| *n == name).unwrap();
            rows[1][column].parse::<u64>().unwrap()
        };
        of('a') + of('b')
    }

    /// The pacing rates of all connections of a that use the law, bit/s.
    pub(crate) fn pacing(&self) -> Vec<f64> {
        let text = run(&format!("nsenter --net=/run/netns/{} ss -tinOH", self.space('a'))).unwrap_or_default();
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        text.lines()
            .map(words)
            .filter(|line| line.contains(&self.law()))
            .filter_map(|line| {
                let at = line.iter().position(|word| word == "pacing_rate")?;
                line.get(at + 1)?.strip_suffix("bps")?.parse().ok()
            })
            .collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let root = self.cgroup.with_file_name("cgroup.procs");
        if fs::write(&self.home, id().to_string()).is_err() {
            drop(fs::write(root, id().to_string()));
        }
        for end in ['a', 'b'] {
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
    run("ip netns list; nsenter --version; ss --version; sysctl --version")
        .map_err(|_| "needs ip, ss, nsenter and sysctl".to_owned())?;
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

/// The calling thread's sockets are that namespace's from here on.
#[expect(unsafe_code, reason = "the standard library has no setns()")]
fn enter(space: &str) {
    let file = fs::File::open(format!("/run/netns/{space}")).unwrap();
    // SAFETY: two integers, of which the first is an open descriptor.
    let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) client: TcpStream,
    server: TcpStream,
    seed: u64,
}

impl Pair {
    /// Bytes from a to b and from b to a at once, each compared with what was sent.
    pub(crate) fn exchange(&mut self, there: usize, back: usize) {
        self.seed += 1 << 32;
        let (client, server, seed) = (&self.client, &self.server, self.seed);
        std::thread::scope(|scope| {
            scope.spawn(move || send(client, seed, there));
            scope.spawn(move || send(server, !seed, back));
            scope.spawn(move || check(server, seed, there));
            check(client, !seed, back);
        });
    }

    pub(crate) fn local(&self) -> String {
        self.client.local_addr().unwrap().to_string()
    }
}

const CHUNK: usize = 1 << 14;

fn fill(state: &mut u64, chunk: &mut [u8]) {
    for word in chunk.chunks_mut(8) {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bytes = state.to_be_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

fn send(mut stream: &TcpStream, seed: u64, bytes: usize) {
    let (mut state, mut left, mut chunk) = (seed, bytes, vec![0; CHUNK]);
    while left > 0 {
        let n = left.min(CHUNK);
        fill(&mut state, &mut chunk[..n]);
        stream.write_all(&chunk[..n]).expect("no connection hangs");
        left -= n;
    }
}

fn check(mut stream: &TcpStream, seed: u64, bytes: usize) {
    let (mut state, mut left) = (seed, bytes);
    let (mut chunk, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
    while left > 0 {
        let n = left.min(CHUNK);
        fill(&mut state, &mut expected[..n]);
        stream.read_exact(&mut chunk[..n]).expect("no connection hangs");
        assert!(chunk[..n] == expected[..n], "other bytes than were sent, {left} before the end");
        left -= n;
    }
}

/// `waterfilld …` with `--line`.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: Option<ChildStdin>,
}

impl Daemon {
    pub(crate) fn host(network: &Network, arguments: &str) -> Self {
        let (law, cgroup) = (network.law(), network.cgroup.display());
        Self::start(&format!(
            "exec {} host --no-pin --line --name {law} --cgroup {cgroup} {arguments}",
            env!("CARGO_BIN_EXE_waterfilld")
        ))
    }

    pub(crate) fn start(command: &str) -> Self {
        let mut child =
            Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().expect("the daemon starts").unwrap(), "{\"ready\":true}");
        let stdin = child.stdin.take();
        Self { child, lines, stdin }
    }

    pub(crate) fn status(&mut self) -> Value {
        self.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn flows(&mut self) -> Vec<Value> {
        self.status()["flows"].as_array().unwrap().clone()
    }

    /// The client's end of a connection.
    pub(crate) fn flow(&mut self, pair: &Pair) -> Value {
        let local = pair.local();
        let flows = self.flows();
        flows.into_iter().find(|flow| flow["local"] == local.as_str()).expect("a's end is shown")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stdin.take()); // with --line it ends when this closes
        drop(self.child.wait());
    }
}

/// What the kernel has complained about, a line each; none where its log cannot be read.
pub(crate) fn complaints() -> Vec<String> {
    let log = run("dmesg").unwrap_or_default();
    let marks = ["WARNING:", "BUG:", "Oops", "Call Trace", "general protection", "stall"];
    log.lines().filter(|line| marks.iter().any(|mark| line.contains(mark))).map(String::from).collect()
}
