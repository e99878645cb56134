//! Helpers that tests of the daemon share: requirements, network namespaces, and `waterfilld` as a process.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use nix::sched::{CloneFlags, setns};
use serde_json::Value;

pub(crate) mod requirements;

use requirements::can_load_programs;

pub(crate) const WATERFILLD: &str = env!("CARGO_BIN_EXE_waterfilld");

/// Lock that one test with namespaces holds at a time, because simultaneous tests would compete for the CPUs.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Runs a shell script. Returns its output, or an error with the script and its messages.
pub(crate) fn run(script: &str) -> Result<String, String> {
    let out = Command::new("sh").args(["-ec", script]).output().unwrap();
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(format!("{script}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// Returns the first two numbers of the kernel's version.
pub(crate) fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-', '+', '\n']).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Checks that network namespaces and these tools can be used. Returns the root of cgroup v2.
fn requirements(tools: &[&str]) -> Result<PathBuf, String> {
    can_load_programs()?;
    for tool in tools {
        // `ip` has another spelling for its version than the others.
        run(&format!("{tool} --version || {tool} -V")).map_err(|_| format!("needs {tool}"))?;
    }
    let probe = format!("wfprobe{}", id());
    run(&format!("ip netns add {probe}; ip netns del {probe}"))
        .map_err(|_| "cannot make network namespaces".to_owned())?;
    let mounts = fs::read_to_string("/proc/mounts").map_err(|e| e.to_string())?;
    let cgroup = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        words.next().filter(|_| words.next() == Some("cgroup2"))
    });
    cgroup.map(PathBuf::from).ok_or_else(|| "no cgroup v2 is mounted".into())
}

/// Network namespaces and a cgroup, which are removed on drop.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) prefix: String,
    /// Path of the cgroup whose connections use the option.
    pub(crate) cgroup: PathBuf,
    /// Path of the root of cgroup v2.
    pub(crate) cgroup_root: PathBuf,
    ends: &'static [char],
    _alone: MutexGuard<'static, ()>,
}

impl Namespaces {
    /// Creates a namespace for each letter, with its loopback device up. If that is not possible, prints the reason and
    /// returns `None`.
    pub(crate) fn new(ends: &'static [char], tools: &[&str]) -> Option<Self> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let cgroup_root = requirements(tools).inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let prefix = format!("wf{}x{}", id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let cgroup = cgroup_root.join(format!("waterfill-test-{prefix}"));
        fs::create_dir(&cgroup).unwrap();
        let namespaces = Self { prefix, cgroup, cgroup_root, ends, _alone: alone };
        for end in ends {
            let name = namespaces.name(*end);
            run(&format!("ip netns add {name}; ip -n {name} link set lo up")).unwrap();
        }
        Some(namespaces)
    }

    /// Creates the namespaces `a`, `r` and `b` in a row, where `r` forwards. Device `wire` of `a` has addresses
    /// 10.99.1.1 and fd99:1::1, and leads to `to-a` of `r`. Device `wire` of `b` has 10.99.2.1 and fd99:2::1.
    pub(crate) fn in_a_row() -> Option<Self> {
        let spaces = Self::new(&['a', 'r', 'b'], &["ip", "tc", "nsenter", "sysctl"])?;
        let r = spaces.name('r');
        for (end, n) in [('a', 1), ('b', 2)] {
            let space = spaces.name(end);
            run(&format!(
                "ip -n {space} link add wire type veth peer name to-{end} netns {r}
                 ip -n {space} addr add 10.99.{n}.1/24 dev wire; ip -n {r} addr add 10.99.{n}.2/24 dev to-{end}
                 ip -n {space} addr add fd99:{n}::1/64 dev wire nodad; ip -n {r} addr add fd99:{n}::2/64 dev to-{end} nodad
                 ip -n {space} link set wire up; ip -n {r} link set to-{end} up
                 ip -n {space} route add default via 10.99.{n}.2; ip -n {space} -6 route add default via fd99:{n}::2"
            ))
            .unwrap();
        }
        spaces.run_in('r', "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1").unwrap();
        Some(spaces)
    }

    /// Attaches a program of `bpf/test/path.bpf.c` to the path towards an end, in place of an earlier program. `None`
    /// detaches the program.
    pub(crate) fn path(&self, section: Option<&str>, end: char) {
        let filters = match section {
            Some(section) => format!(
                "tc filter replace dev to-{end} egress prio 1 handle 1 bpf da obj {} sec {section}",
                env!("PATH_OBJECT")
            ),
            None => format!("tc filter del dev to-{end} egress"),
        };
        let enter = self.enter('r');
        run(&format!("{enter} tc qdisc replace dev to-{end} clsact; {enter} {filters}")).unwrap();
    }

    /// Returns the name of the namespace with this letter.
    pub(crate) fn name(&self, end: char) -> String {
        format!("{}{end}", self.prefix)
    }

    /// Returns the prefix that runs a command in a namespace. `ip netns exec` would hide the cgroup.
    pub(crate) fn enter(&self, end: char) -> String {
        format!("nsenter --net=/run/netns/{}", self.name(end))
    }

    /// Runs a command in a namespace.
    pub(crate) fn run_in(&self, end: char, command: &str) -> Result<String, String> {
        run(&format!("{} {command}", self.enter(end)))
    }

    /// Runs `act` in a new thread inside a namespace.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        end: char,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.name(end))).unwrap();
        spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            act()
        })
    }

    /// Returns the name of the test's congestion control. Names differ between tests and have at most 15 bytes.
    pub(crate) fn law(&self) -> String {
        format!("bpf_{}", self.prefix.chars().take(11).collect::<String>())
    }

    /// Makes the law the default congestion control in the namespaces `a` and `b`.
    pub(crate) fn use_law(&self) {
        for end in ['a', 'b'] {
            self.run_in(end, &format!("sysctl -qw net.ipv4.tcp_congestion_control={}", self.law())).unwrap();
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for end in self.ends {
            drop(run(&format!("ip netns del {}", self.name(*end))));
        }
        drop(fs::remove_dir(&self.cgroup));
    }
}

/// A process of `waterfilld … --line`, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: Option<ChildStdin>,
}

impl Daemon {
    /// Starts `waterfilld host`. `before` is the prefix of the command, such as the one from [`Namespaces::enter`].
    pub(crate) fn host(namespaces: &Namespaces, before: &str, arguments: &str) -> Self {
        let (law, cgroup) = (namespaces.law(), namespaces.cgroup.display());
        // Unrestricted, because tests set the sysctl in namespaces of their own.
        Self::start(before, &format!("host --unrestricted --name {law} --cgroup {cgroup} {arguments}"))
    }

    /// Starts the daemon and waits until it is ready.
    pub(crate) fn start(before: &str, arguments: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec {before} {WATERFILLD} {arguments} --line")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().expect("the daemon starts").unwrap(), "{\"ready\":true}");
        let stdin = child.stdin.take();
        Self { child, lines, stdin }
    }

    /// Kills the process before it can clean up.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
    }

    pub(crate) fn status(&mut self) -> Value {
        self.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn flows(&mut self) -> Vec<Value> {
        self.status()["flows"].as_array().unwrap().clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stdin.take()); // with --line it ends when this closes
        drop(self.child.wait());
    }
}

/// Returns a number in a status document.
pub(crate) fn number(status: &Value, key: &str) -> f64 {
    status[key].as_f64().unwrap()
}
