//! A network of two namespaces, each with a TAP device, and connections between them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::id;
use std::time::Duration;

use serde_json::Value;
use waterfill_linux::delay::tap::Tap;

use crate::common::{Daemon, Namespaces, run};
use crate::wire::Wire;

/// Time without a byte after which a connection counts as hanging.
const HANG_TIME: Duration = Duration::from_secs(60);
const FRAME_BYTES: usize = 2048;

/// Namespaces `a` and `b` with addresses 10.97.0.1 and .2. Namespace `b` also has all of 10.98.0.0/16 and fd98::/64.
/// This process is in the test's cgroup, and its threads enter a namespace to open connections.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) spaces: Namespaces,
    /// Path of the file `cgroup.procs` of this process's original cgroup.
    home: PathBuf,
    pub(crate) wire: Wire,
}

impl Network {
    /// Creates the network. If that is not possible, prints the reason and returns `None`.
    pub(crate) fn new(kind: u8) -> Option<Self> {
        let spaces = Namespaces::new(&['a', 'b'], &["ip", "ss", "nsenter", "sysctl"])?;
        let mine = fs::read_to_string("/proc/self/cgroup").unwrap();
        let mine = mine.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let home = spaces.cgroup_root.join(mine).join("cgroup.procs");
        let [Ok(a), Ok(b)] = ['a', 'b'].map(|end| Tap::open(&spaces.name(end), FRAME_BYTES)) else {
            eprintln!("skipped: needs /dev/net/tun");
            return None;
        };
        for (end, host) in [('a', 1), ('b', 2)] {
            let space = spaces.name(end);
            run(&format!(
                "ip link set {space} netns {space} name wire
                 ip -n {space} addr add 10.97.0.{host}/24 dev wire; ip -n {space} addr add fd97::{host}/64 dev wire nodad
                 ip -n {space} link set wire up"
            ))
            .unwrap();
        }
        let (space_a, space_b) = (spaces.name('a'), spaces.name('b'));
        run(&format!(
            "ip -n {space_b} route add local 10.98.0.0/16 dev lo; ip -n {space_b} -6 route add local fd98::/64 dev lo
             ip -n {space_a} route add 10.98.0.0/16 via 10.97.0.2; ip -n {space_a} -6 route add fd98::/64 via fd97::2"
        ))
        .unwrap();
        if let Err(why) = fs::write(spaces.cgroup.join("cgroup.procs"), id().to_string()) {
            eprintln!("skipped: cannot join a control group: {why}");
            return None;
        }
        Some(Self { wire: Wire::new([a, b], kind, 1), home, spaces })
    }

    /// Runs a command in both namespaces.
    pub(crate) fn run_in_both(&self, command: &str) {
        for end in ['a', 'b'] {
            self.spaces.run_in(end, command).unwrap();
        }
    }

    /// Connects `a` to the address of `b` that belongs to `number`. The calling thread is in `a` afterwards.
    pub(crate) fn connect(&self, number: u16) -> Pair {
        enter(&self.spaces.name('b'));
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        enter(&self.spaces.name('a'));
        // A new address each time, because hosts remember destinations that lose options.
        let client = if number % 2 == 0 {
            TcpStream::connect((format!("10.98.{}.{}", number >> 8, number & 255).as_str(), port)).unwrap()
        } else {
            TcpStream::connect((format!("fd98::{number:x}").as_str(), port)).unwrap()
        };
        let (server, _) = listener.accept().unwrap();
        for end in [&client, &server] {
            end.set_read_timeout(Some(HANG_TIME)).unwrap();
            end.set_write_timeout(Some(HANG_TIME)).unwrap();
        }
        Pair { client, server, seed: u64::from(number) }
    }

    /// Returns the sum of a counter over both namespaces.
    pub(crate) fn counted(&self, protocol: &str, name: &str) -> u64 {
        let of = |end| {
            let text = self.spaces.run_in(end, "cat /proc/net/snmp").unwrap();
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

    /// Returns the pacing rates of MaxNet connections in `a`, in bit/s.
    pub(crate) fn pacing(&self) -> Vec<f64> {
        let text = self.spaces.run_in('a', "ss -tinOH").unwrap_or_default();
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        text.lines()
            .map(words)
            .filter(|line| line.contains(&self.spaces.law()))
            .filter_map(|line| {
                let at = line.iter().position(|word| word == "pacing_rate")?;
                line.get(at + 1)?.strip_suffix("bps")?.parse().ok()
            })
            .collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Leave the cgroup, which can then be removed.
        let root = self.spaces.cgroup_root.join("cgroup.procs");
        if fs::write(&self.home, id().to_string()).is_err() {
            drop(fs::write(root, id().to_string()));
        }
    }
}

/// Moves the calling thread into a namespace. Sockets that it opens later are in this namespace.
#[expect(unsafe_code, reason = "the standard library has no setns()")]
fn enter(space: &str) {
    let file = fs::File::open(format!("/run/netns/{space}")).unwrap();
    // SAFETY: two integers, of which the first is an open descriptor.
    let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Both ends of a TCP connection.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) client: TcpStream,
    server: TcpStream,
    seed: u64,
}

impl Pair {
    /// Transfers bytes in both directions at the same time, and checks that they arrive unchanged.
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

    /// Returns the address of the client.
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
        stream.write_all(&chunk[..n]).expect("the connection hangs");
        left -= n;
    }
}

fn check(mut stream: &TcpStream, seed: u64, bytes: usize) {
    let (mut state, mut left) = (seed, bytes);
    let (mut chunk, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
    while left > 0 {
        let n = left.min(CHUNK);
        fill(&mut state, &mut expected[..n]);
        stream.read_exact(&mut chunk[..n]).expect("the connection hangs");
        assert!(chunk[..n] == expected[..n], "received other bytes than were sent, {left} before the end");
        left -= n;
    }
}

/// Returns the daemon's status of a connection at the client's end.
pub(crate) fn flow(daemon: &mut Daemon, pair: &Pair) -> Value {
    let local = pair.local();
    let flows = daemon.flows();
    flows.into_iter().find(|flow| flow["local"] == local.as_str()).expect("a's end is shown")
}

/// Returns the warnings in the kernel's log, or an empty list if the log cannot be read.
pub(crate) fn kernel_warnings() -> Vec<String> {
    let log = run("dmesg").unwrap_or_default();
    let marks = ["WARNING:", "BUG:", "Oops", "Call Trace", "general protection", "stall"];
    log.lines().filter(|line| marks.iter().any(|mark| line.contains(mark))).map(String::from).collect()
}
