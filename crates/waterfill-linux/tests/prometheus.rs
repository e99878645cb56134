//! Tests of `packaging/grafana` and `packaging/prometheus` with real metrics. They run a host and a router in network
//! namespaces, run Debian's Prometheus, and send every query of the dashboard.

#![cfg(feature = "daemon")]

mod common;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{Daemon, Namespaces, WATERFILLD, run};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use serde_json::Value;

/// Address of the host's metrics in the router's namespace.
const HOST: &str = "127.0.0.1:9465";
const ROUTER: &str = "127.0.0.1:9466";
const PROMETHEUS: &str = "127.0.0.1:9090";
/// Maximum time until every query has data.
const PATIENCE: Duration = Duration::from_secs(20);

fn packaging(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// Runs promtool. Without promtool, prints the reason and returns false.
fn promtool(arguments: &[&str], input: &str) -> bool {
    let spawned = Command::new("promtool")
        .args(arguments)
        .current_dir(packaging("prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        eprintln!("skipped: needs promtool");
        return false;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let text = [&out.stdout[..], &out.stderr[..]].map(String::from_utf8_lossy).concat();
    assert!(out.status.success(), "promtool {}: {text}", arguments.join(" "));
    true
}

#[test]
fn the_alert_rules_are_valid_and_each_fires_when_it_should() {
    if !promtool(&["check", "rules", "waterfill.rules.yml"], "") {
        return;
    }
    promtool(&["test", "rules", "waterfill.test.yml"], "");
    promtool(&["check", "config", "prometheus.yml"], "");
    // Each alert has a unit test in which it fires.
    let read = |file: &str| fs::read_to_string(packaging("prometheus").join(file)).unwrap();
    let (rules, tests) = (read("waterfill.rules.yml"), read("waterfill.test.yml"));
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 12);
    for alert in alerts {
        let name = format!("alertname: {alert}\n");
        let mut after = tests.split(&name).skip(1);
        assert!(after.any(|text| text.trim_start().starts_with("exp_alerts:")), "no test in which {alert} fires");
    }
}

/// Returns the titles of the dashboard's panels and their queries, as a browser would send them for all instances.
fn queries() -> Vec<(String, String)> {
    let text = fs::read_to_string(packaging("grafana/waterfill.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array();
        assert!(targets.is_some() || panel["type"] == "row", "{title} has no query");
        for target in targets.into_iter().flatten() {
            let query = target["expr"].as_str().unwrap().replace("$instance", ".*").replace("$__rate_interval", "4s");
            assert!(!query.contains('$'), "{title}: {query}");
            found.push((title.to_owned(), query));
        }
    }
    assert!(found.len() > 35);
    found
}

/// Sends a GET request to an address of this thread's network namespace.
fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text.split_once("\r\n\r\n").unwrap_or_default().1.into())
}

/// Returns the number of series that a query returns now, or Prometheus' error.
fn series(query: &str) -> Result<usize, String> {
    let mut path = "/api/v1/query?query=".to_owned();
    for byte in query.bytes() {
        let _ = write!(path, "%{byte:02x}"); // a String takes all
    }
    let text = get(PROMETHEUS, &path).map_err(|e| e.to_string())?;
    let answer: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
    let found = answer["data"]["result"].as_array().ok_or_else(|| text.clone())?;
    Ok(found.iter().filter(|series| series["value"][1] != "NaN").count())
}

/// A Prometheus process with its folder, which ends when it is dropped.
struct Prometheus {
    child: Child,
    folder: PathBuf,
}

impl Prometheus {
    /// Starts Prometheus in this thread's network namespace. If the program is missing, prints the reason and returns
    /// `None`.
    fn start(prefix: &str) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("waterfill-prometheus-{prefix}"));
        fs::create_dir(&folder).unwrap();
        let config = format!(
            "global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}\nrule_files: ['{}']\nscrape_configs:\n- job_name: \
             waterfill\n  static_configs: [{{targets: ['{HOST}', '{ROUTER}']}}]\n",
            packaging("prometheus/waterfill.rules.yml").canonicalize().unwrap().display()
        );
        fs::write(folder.join("prometheus.yml"), config).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .args([&format!("--web.listen-address={PROMETHEUS}"), "--log.level=warn"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        if let Ok(child) = child {
            return Some(Self { child, folder });
        }
        eprintln!("skipped: needs prometheus");
        fs::remove_dir_all(&folder).unwrap();
        None
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// A process of `waterfilld run` as a router with SCONE, and with CSIG at another device. The process ends when this
/// value is dropped.
struct Router {
    child: Child,
    folder: PathBuf,
    unload: String,
}

impl Router {
    /// Starts the daemon in the namespace `r`. Without a BPF file system, prints the reason and returns `None`.
    fn start(spaces: &Namespaces) -> Option<Self> {
        let Ok(mount) = run("awk '$3 == \"bpf\" { print $2; found = 1; exit } END { exit !found }' /proc/mounts")
        else {
            eprintln!("skipped: no BPF file system is mounted");
            return None;
        };
        let (enter, prefix) = (spaces.enter('r'), &spaces.prefix);
        spaces.run_in('r', "ip link add tags0 type veth peer name tags1").unwrap();
        spaces.run_in('r', "ip link set tags0 up").unwrap();
        spaces.run_in('r', "ip link set tags1 up").unwrap();
        let folder = std::env::temp_dir().join(format!("waterfill-run-{prefix}"));
        fs::create_dir(&folder).unwrap();
        let pins = format!("{}/waterfill-test-{prefix}", mount.trim());
        let file = folder.join("waterfilld.toml");
        let text = format!(
            "[[router]]\ndevice = 'to-b'\nrate = '20 Mbit/s'\nshape = true\ncohabit = 'improved'\nscone = true\n\
             [[router]]\ndevice = 'tags0'\nrate = '1 Gbit/s'\n[[csig]]\ndevice = 'tags0'\nrole = 'inside'\n\
             [metrics]\nlisten = '{ROUTER}'\n[pins]\ndirectory = '{pins}'\n[control]\npath = '{}'\n",
            folder.join("run/control.sock").display()
        );
        fs::write(&file, text).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let child = Command::new("sh")
            .args(["-c", &format!("exec {enter} {WATERFILLD} run --config {}", file.display())])
            .stderr(log)
            .spawn()
            .unwrap();
        let router = Self { child, folder, unload: format!("{enter} {WATERFILLD} unload --pins {pins}") };
        let start = Instant::now();
        while !router.log().contains("ready: ") {
            assert!(start.elapsed() < PATIENCE, "{}", router.log());
            thread::sleep(Duration::from_millis(50));
        }
        Some(router)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(run(&self.unload));
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Moves this thread into a namespace. Processes that it starts are in the namespace as well.
fn enter(spaces: &Namespaces, end: char) {
    setns(File::open(format!("/run/netns/{}", spaces.name(end))).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
}

/// Returns the cookie of this thread's network namespace.
#[expect(unsafe_code, reason = "no library reads SO_NETNS_COOKIE")]
fn cookie() -> u64 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut cookie, mut bytes) = (0_u64, 8 as libc::socklen_t);
    // SAFETY: the kernel writes up to `bytes` bytes, which the number has.
    let code = unsafe {
        let into = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, into, &raw mut bytes)
    };
    assert_eq!(code, 0);
    cookie
}

/// Starts connections that send until `end` is set. Long connections use the law or CUBIC. Repeated short connections
/// use the law.
fn send(spaces: &Namespaces, end: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let serve = |at| {
        let end = Arc::clone(end);
        spaces.inside(at, move || {
            let listener = TcpListener::bind("0.0.0.0:7002").unwrap();
            listener.set_nonblocking(true).unwrap();
            let mut streams = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            while !end.load(Ordering::Relaxed) {
                if let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    streams.push(stream);
                }
                streams.retain_mut(|stream| !matches!(stream.read(&mut buffer), Ok(0)));
                thread::sleep(Duration::from_micros(200));
            }
        })
    };
    let connect = |address: &'static str, law: String, lasts: Duration| {
        let end = Arc::clone(end);
        spaces.inside('a', move || {
            while !end.load(Ordering::Relaxed) {
                let Ok(mut stream) = TcpStream::connect(address) else { continue };
                setsockopt(&stream, TcpCongestion, &law.clone().into()).unwrap();
                stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
                let start = Instant::now();
                while start.elapsed() < lasts && !end.load(Ordering::Relaxed) {
                    let _ = stream.write(&[0; 1 << 14]);
                }
            }
        })
    };
    let (long, short) = (Duration::MAX, Duration::from_millis(300));
    vec![
        serve('b'),
        serve('r'),
        connect("10.99.2.1:7002", spaces.law(), long),
        connect("10.99.2.1:7002", "cubic".into(), long),
        connect("10.99.2.1:7002", spaces.law(), short),
        connect("10.99.1.2:7002", spaces.law(), short),
    ]
}

#[test]
fn every_query_of_the_dashboard_returns_data() {
    let Some(spaces) = Namespaces::in_a_row() else { return };
    if !fs::read_to_string("/proc/kallsyms").is_ok_and(|symbols| symbols.contains(" tcx_")) {
        eprintln!("skipped: --cohabit needs tcx (Linux 6.6)");
        return;
    }
    let cookies = ['a', 'b'].map(|end| spaces.inside(end, cookie).join().unwrap());
    let namespaces = cookies.map(|cookie| format!("--netns-cookie {cookie}")).join(" ");
    let host = format!("host --unrestricted --no-pin --name {} {namespaces} --metrics {HOST}", spaces.law());
    let host = Daemon::start(&spaces.enter('r'), &host);
    let Some(router) = Router::start(&spaces) else { return };
    enter(&spaces, 'r');
    let Some(prometheus) = Prometheus::start(&spaces.prefix) else { return };
    let end = Arc::new(AtomicBool::new(false));
    let senders = send(&spaces, &end);

    let mut waiting = queries();
    let start = Instant::now();
    let mut last = Vec::new();
    while !waiting.is_empty() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(250));
        last.clear();
        waiting.retain(|(title, query)| match series(query) {
            Ok(n) if n > 0 => false,
            other => {
                last.push(format!("{title}: {query}: {other:?}"));
                true
            }
        });
    }
    let scrapes = [HOST, ROUTER].map(|address| get(address, "/metrics").unwrap());
    let rules = get(PROMETHEUS, "/api/v1/rules").unwrap();
    end.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.join().unwrap();
    }
    assert!(waiting.is_empty(), "{}\n{}\n{}", last.join("\n"), scrapes.concat(), prometheus.log());
    assert!(rules.contains("WaterfillDown") && !rules.contains(r#""health":"err""#), "{rules}");
    for text in scrapes {
        promtool(&["check", "metrics"], &text);
    }
    drop((prometheus, router, host));
}
