//! Tests of `waterfilld run` as a process: reloads under traffic, devices and laws that appear and disappear, systemd,
//! and capabilities. Without root, they are skipped.

#![cfg(feature = "daemon")]

mod common;
#[path = "run/containers.rs"]
mod containers;
#[path = "run/csig.rs"]
mod csig;
#[path = "run/qdiscs.rs"]
mod qdiscs;

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use common::{Namespaces, WATERFILLD, kernel, run};
use serde_json::Value;

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/waterfilld.service");
const DROP_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/waterfilld-containers.conf");

/// `waterfilld run` in the namespace `r`, with its own files and pins, which are removed on drop.
struct Service {
    folder: PathBuf,
    pins: PathBuf,
    enter: String,
    child: Option<Child>,
}

impl Service {
    /// Creates the folder for the daemon's files. Without a BPF file system, prints the reason and returns `None`.
    fn new(namespaces: &Namespaces) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            words.next().filter(|_| words.next() == Some("bpf"))
        });
        let Some(mount) = mount else {
            eprintln!("skipped: no BPF file system is mounted");
            return None;
        };
        let folder = std::env::temp_dir().join(format!("waterfill-run-{}", namespaces.prefix));
        fs::create_dir(&folder).unwrap();
        let pins = Path::new(mount).join(format!("waterfill-test-{}", namespaces.prefix));
        Some(Self { folder, pins, enter: namespaces.enter('r'), child: None })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("waterfilld.toml")
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("run/control.sock")
    }

    /// Writes the configuration file with these tables, and with the service's own pins and control socket.
    fn write(&self, tables: &str) {
        let (pins, control) = (self.pins.display(), self.socket());
        let control = control.display();
        let text = format!("{tables}\n[pins]\ndirectory = \"{pins}\"\n[control]\npath = \"{control}\"\n");
        fs::write(self.file(), text).unwrap();
    }

    /// Starts the daemon with a command prefix, and waits until its control socket answers.
    fn start(&mut self, before: &str) {
        let log = fs::File::create(self.folder.join("log")).unwrap();
        let (enter, file) = (&self.enter, self.file());
        let child = Command::new("sh")
            .args(["-c", &format!("exec {enter} {before} {WATERFILLD} run --config {}", file.display())])
            .env("NOTIFY_SOCKET", self.folder.join("notify"))
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        self.wait("the daemon is ready", |service| service.ask(b"status\n").starts_with("ok "));
    }

    fn wait(&mut self, what: &str, mut until: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !until(self) {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "{what}: the daemon ended: {}", self.log());
            assert!(start.elapsed() < Duration::from_secs(30), "{what}: {}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Sends bytes to the control socket. Returns the answer, or an empty string without one.
    fn ask(&self, bytes: &[u8]) -> String {
        let mut answer = String::new();
        if let Ok(mut stream) = UnixStream::connect(self.socket()) {
            let _ = stream.write_all(bytes);
            let _ = stream.read_to_string(&mut answer);
        }
        answer
    }

    /// Runs `waterfilld reload`. Returns the exit code and the output.
    fn reload(&self) -> (i32, String) {
        let control = self.socket();
        let Output { status, stdout, stderr } =
            Command::new(WATERFILLD).args(["reload", "--control"]).arg(control).output().unwrap();
        let text = [stdout, stderr].concat();
        (status.code().unwrap(), String::from_utf8_lossy(&text).trim().to_owned())
    }

    fn status(&self) -> Value {
        let pins = self.pins.display();
        let text = run(&format!("{} {WATERFILLD} status --json --pins {pins}", self.enter)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the status of the link with this device and law, or `None` if there is no such link.
    fn link(&self, device: &str, law: &str) -> Option<Value> {
        let status = self.status();
        let links = status["links"].as_array().unwrap();
        links.iter().find(|link| link["device"] == device && link["law"] == law).cloned()
    }

    fn signal(&self, signal: &str) {
        run(&format!("kill -{signal} {}", self.child.as_ref().unwrap().id())).unwrap();
    }

    /// Ends the daemon with SIGTERM, and checks that it succeeds.
    fn stop(&mut self) {
        self.signal("TERM");
        let status = self.child.take().unwrap().wait().unwrap();
        assert!(status.success(), "{status}: {}", self.log());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = run(&format!("{} {WATERFILLD} unload --pins {}", self.enter, self.pins.display()));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Creates the namespaces `a` and `b` with `r` between them, which forwards from `ra` to `rb`. If that is not possible,
/// prints the reason and returns `None`.
fn line(tools: &[&str]) -> Option<Namespaces> {
    let namespaces = Namespaces::new(&['a', 'r', 'b'], &[&["ip", "tc"], tools].concat())?;
    let [a, r, b] = ['a', 'r', 'b'].map(|end| namespaces.name(end));
    run(&format!(
        "ip -n {r} link add ra type veth peer name wa netns {a}; ip -n {r} link add rb type veth peer name wb netns {b}
         ip -n {r} addr add 10.0.1.1/24 dev ra; ip -n {r} addr add 10.0.2.1/24 dev rb
         ip -n {a} addr add 10.0.1.2/24 dev wa; ip -n {b} addr add 10.0.2.2/24 dev wb
         ip -n {r} link set ra up; ip -n {r} link set rb up; ip -n {a} link set wa up; ip -n {b} link set wb up
         ip -n {a} route add default via 10.0.1.1; ip -n {b} route add default via 10.0.2.1"
    ))
    .unwrap();
    namespaces.run_in('r', "sysctl -qw net.ipv4.ip_forward=1").unwrap();
    Some(namespaces)
}

/// Returns the configuration tables of a host, and of the device `rb` at 50 Mbit/s.
fn tables(namespaces: &Namespaces, target: f64, host: &str) -> String {
    let (law, cgroup) = (namespaces.law(), namespaces.cgroup.display());
    format!(
        "[host]\nname = \"{law}\"\ncgroup = \"{cgroup}\"\nunrestricted = true\n{host}
         [[router]]\ndevice = \"rb\"\nrate = \"50 Mbit/s\"\nshape = true\ntarget = {target:?}\n"
    )
}

#[test]
fn reloads_under_traffic_lose_neither_packet_nor_price() {
    let Some(namespaces) = line(&["iperf3"]) else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    service.write(&tables(&namespaces, 0.9, ""));
    service.start("");
    namespaces.use_law();
    let procs = namespaces.cgroup.join("cgroup.procs");
    let start = |end, command: &str| {
        let script = format!("echo $$ > {}; exec {} {command}", procs.display(), namespaces.enter(end));
        Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut server = start('b', "iperf3 -s -1");
    let listens = || namespaces.run_in('b', "ss -ltnH").is_ok_and(|text| text.contains(":5201"));
    service.wait("iperf3 listens", |_| listens());
    let mut client = start('a', "iperf3 -c 10.0.2.2 -t 60");
    let priced = |service: &Service| {
        let flows = service.status()["flows"].as_array().unwrap().clone();
        flows.iter().any(|flow| flow["mode"] == "priced")
    };
    service.wait("a flow is priced", priced);

    let before = service.link("rb", "maxnet").unwrap();
    let (mut packets, mut prices) = (before["packets"].as_u64().unwrap(), Vec::new());
    for turn in 0..8 {
        let target = [0.8, 0.9][turn % 2];
        // The law's parameters change with every second reload, the control group's program is replaced with one.
        let host = ["", "params = { alpha = 0.5, t = \"400 ms\" }"][turn / 2 % 2];
        let text = tables(&namespaces, target, host);
        let more = "[[router]]\ndevice = \"ra\"\nrate = \"1 Gbit/s\"\n";
        service.write(&if turn == 3 { text + more } else { text });
        assert_eq!(service.reload().0, 0, "{}", service.log());
        let link = service.link("rb", "maxnet").unwrap();
        assert_eq!(link["target"], target, "{link}");
        assert_eq!(service.link("ra", "maxnet").is_some(), turn == 3, "a device comes and goes with the file");
        let now = link["packets"].as_u64().unwrap();
        assert!(now > packets, "the counters continue: {now} after {packets}");
        packets = now;
        prices.push(link["price_s"].as_f64().or_else(|| link["signals"]["price_s"].as_f64()).unwrap());
        sleep(Duration::from_millis(150));
    }
    // A link that is set up anew starts at T ln(x_max / C): the price continues above that of an idle link.
    assert!(prices.iter().all(|price| *price > 0.4 * (1e15_f64 / 50e6).ln() * 0.9), "{prices:?}");
    // A bad file changes nothing.
    let good = fs::read_to_string(service.file()).unwrap();
    fs::write(service.file(), good.replace("50 Mbit/s", "fast")).unwrap();
    let (code, said) = service.reload();
    assert!(
        code == 2 && said.contains("waterfilld.toml:") && said.contains("router.rate \"fast\": must be a rate"),
        "{said}"
    );
    fs::write(service.file(), good).unwrap();
    let link = service.link("rb", "maxnet").unwrap();
    assert_eq!((link["rate_bps"].as_u64(), link["target"].as_f64()), (Some(50_000_000), Some(0.9)));

    let status = service.status();
    let counters = &status["counters"];
    let fallbacks = counters["fallbacks"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(fallbacks, 0, "{status}");
    assert!(priced(&service), "the flow stays priced: {status}");
    let qdiscs = namespaces.run_in('r', "tc -s -j qdisc show dev rb").unwrap();
    let qdiscs: Value = serde_json::from_str(&qdiscs).unwrap();
    let shaper = qdiscs.as_array().unwrap().iter().find(|qdisc| qdisc["kind"] == "tbf").unwrap();
    assert_eq!(shaper["drops"], 0, "{shaper}");
    assert!(shaper["packets"].as_u64().unwrap() > 1000, "one shaper all the time: {shaper}");
    for process in [&mut client, &mut server] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    service.stop();
    // The file says where the pins are, as the package's removal does it.
    run(&format!("{} {WATERFILLD} unload --config {}", service.enter, service.file().display())).unwrap();
    assert!(!service.pins.exists(), "nothing is pinned");
}

#[test]
fn a_daemon_with_its_units_capabilities_follows_file_and_devices() {
    let Some(namespaces) = line(&["setpriv"]) else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    let notices = UnixDatagram::bind(service.folder.join("notify")).unwrap();
    let (sender, received) = channel();
    // Read all the time, as systemd does: what finds no space is lost.
    spawn(move || {
        let mut bytes = [0; 512];
        while let Ok(n) = notices.recv(&mut bytes) {
            if sender.send(String::from_utf8_lossy(&bytes[..n]).into_owned()).is_err() {
                return;
            }
        }
    });
    let next = || received.recv_timeout(Duration::from_secs(10)).expect("a notice for systemd");
    let until = |wanted: &str| while !next().lines().any(|line| line.starts_with(wanted)) {};

    let late = "[[router]]\ndevice = \"late0\"\nrate = \"1 Gbit/s\"\n";
    service.write(&(tables(&namespaces, 0.9, "") + late));
    let servers = ['r', 'b'].map(|end| listening(&namespaces, end));
    service.start(&format!("setpriv --bounding-set=-all{} --inh-caps=-all --no-new-privs", capabilities(&[UNIT])));
    until("READY=1");
    // They listened before. The unit may not enter other namespaces, and before Linux 6.12 the kernel refuses in its own, too.
    let silent = |end| silent(&namespaces, &service, end);
    assert_eq!((silent('r'), silent('b')), (usize::from(kernel() < (6, 12)), 1), "{}", service.log());
    assert!(service.log().contains("network namespaces without CAP_SYS_ADMIN: servers there"), "{}", service.log());
    drop(servers);
    assert_eq!((silent('r'), silent('b')), (0, 0));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&service.socket()), mode(service.socket().parent().unwrap())), (0o600, 0o700));

    // A device that does not exist yet, goes, and comes again.
    assert!(service.ask(b"status\n").contains("no device yet: late0"), "{}", service.log());
    let add = "ip link add late0 type veth peer name late1";
    namespaces.run_in('r', add).unwrap();
    service.wait("late0 is attached", |service| service.link("late0", "maxnet").is_some());
    namespaces.run_in('r', "ip link del late0").unwrap();
    service.wait("late0 is missed", |service| service.ask(b"status\n").contains("no device yet: late0"));
    namespaces.run_in('r', add).unwrap();
    service.wait("late0 is attached again", |service| service.link("late0", "maxnet").is_some());

    // A client that is silent, and one that sends too much, keep nobody waiting.
    let silent = UnixStream::connect(service.socket()).unwrap();
    assert_eq!(service.ask(&[b'x'; 1000]), "");
    assert_eq!(service.ask(b"stop\n"), "error 2 unknown request; write reload or status\n");
    let start = Instant::now();
    let (code, said) = service.reload();
    assert_eq!((code, said.as_str()), (0, "nothing changed"));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    drop(silent);
    until("RELOADING=1");
    until("READY=1");

    // Another law on the same device, and a host with another name.
    let law = namespaces.law();
    let other = "[[router]]\ndevice = \"rb\"\nlaw = \"rcp\"\nrate = \"40 Mbit/s\"\n";
    service.write(&(tables(&namespaces, 0.8, "").replace(&law, &format!("{}z", &law[..law.len() - 1])) + other));
    let (code, said) = service.reload();
    let changes =
        "1 added (router rcp on rb), 2 changed (host maxnet, router maxnet on rb), 1 removed (router maxnet on late0)";
    assert_eq!((code, said.as_str()), (0, changes), "{}", service.log());
    assert!(service.link("rb", "rcp").is_some() && service.link("late0", "maxnet").is_none());
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(!names.split_whitespace().any(|name| name == law), "{names}");

    // SIGHUP is a reload as well.
    service.write(&tables(&namespaces, 0.7, ""));
    service.signal("HUP");
    service.wait("the target is 0.7", |service| service.link("rb", "maxnet").unwrap()["target"] == 0.7);
    service.wait("rcp is gone", |service| service.link("rb", "rcp").is_none());

    // What cannot change while it runs, what the kernel lacks, and a second daemon.
    let good = fs::read_to_string(service.file()).unwrap();
    for (from, to, expected) in [
        ("control.sock", "other.sock", "control.path: cannot change from"),
        ("waterfill-test-", "waterfill-other-", "pins.directory: cannot change from"),
        (
            "[control]",
            "[metrics]\nlisten = \"192.0.2.1:1\"\n[control]",
            "waterfilld.toml: metrics.listen 192.0.2.1:1: ",
        ),
        ("unrestricted", "fallback = \"nosuch\"\nunrestricted", "host.fallback nosuch: this congestion control"),
    ] {
        fs::write(service.file(), good.replace(from, to)).unwrap();
        let (code, said) = service.reload();
        assert!(code == 2 && said.contains(expected), "{code}: {said}");
    }
    fs::write(service.file(), &good).unwrap();
    let second = run(&format!("{} {WATERFILLD} run --config {}", service.enter, service.file().display()));
    assert!(second.unwrap_err().contains("another daemon answers here"), "a second daemon");

    // Killed: the kernel programs run on, and the next start takes them over and removes what its file does not name.
    let mut child = service.child.take().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(service.link("rb", "maxnet").is_some());
    a_start_that_fails_half_way_leaves_what_ran(&namespaces, &service);
    service.write("[[router]]\ndevice = \"ra\"\nrate = \"1 Gbit/s\"\n");
    service.start("");
    let status = service.status();
    assert_eq!((status["links"].as_array().unwrap().len(), &status["roles"]), (1, &serde_json::json!(["router"])));
    service.write("");
    assert_eq!(service.reload(), (0, "1 removed (router maxnet on ra)".into()));
    assert!(!service.pins.exists(), "nothing is pinned");
    service.stop();
    until("STOPPING=1");
    assert!(!service.socket().exists());
    let (code, said) = service.reload();
    assert!(code == 2 && said.contains("no `waterfilld run` answers here"), "{said}");
}

#[test]
fn notices_that_nobody_reads_keep_nobody_waiting() {
    let Some(namespaces) = Namespaces::new(&['r'], &["ip"]) else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    // Its queue takes some notices (net.unix.max_dgram_qlen), and is full after half a second.
    let _unread = UnixDatagram::bind(service.folder.join("notify")).unwrap();
    service.write("");
    service.start("env WATCHDOG_USEC=20000");
    service
        .wait("the log names a lost notice", |service| service.log().contains("systemd was not notified of WATCHDOG"));
    assert!(service.ask(b"status\n").starts_with("ok "), "{}", service.log());
    assert_eq!(service.reload(), (0, "nothing changed".into()));
    service.stop();
}

/// Starts a daemon whose second device is refused, and checks that the first one keeps running.
fn a_start_that_fails_half_way_leaves_what_ran(namespaces: &Namespaces, service: &Service) {
    namespaces.run_in('r', "tc qdisc add dev ra root handle 7: pfifo limit 50").unwrap();
    let refused = "[[router]]\ndevice = \"ra\"\nrate = \"1 Gbit/s\"\nshape = true\n";
    service.write(&(tables(namespaces, 0.7, "") + refused));
    let start = run(&format!("{} {WATERFILLD} run --config {}", service.enter, service.file().display()));
    assert!(start.as_ref().is_err_and(|said| said.contains("already has a root qdisc")), "{start:?}");
    namespaces.run_in('r', "tc qdisc del dev ra root").unwrap();
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(
        service.link("rb", "maxnet").is_some() && names.split_whitespace().any(|name| name == namespaces.law()),
        "{names}"
    );
}

/// Starts a server in the control group, and waits until it listens.
fn listening(namespaces: &Namespaces, end: char) -> Server {
    let (procs, enter) = (namespaces.cgroup.join("cgroup.procs"), namespaces.enter(end));
    let script = format!("echo $$ > {}; exec {enter} {WATERFILLD} check-path --serve", procs.display());
    let server = Server(Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap());
    let start = Instant::now();
    while !namespaces.run_in(end, "cat /proc/net/tcp6 /proc/net/tcp").unwrap().contains(":1D29 ") {
        assert!(start.elapsed() < Duration::from_secs(10), "a server listens");
        sleep(Duration::from_millis(20));
    }
    server
}

/// A server process that ends with its test, even if the test fails. A process that continued would keep the test's
/// output open, and readers of this output would wait.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns the number of servers of a namespace that do not answer the option.
fn silent(namespaces: &Namespaces, service: &Service, end: char) -> usize {
    let pins = service.pins.display();
    let text = namespaces.run_in(end, &format!("{WATERFILLD} status --json --pins {pins}")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["silent_listeners"].as_array().map_or(0, Vec::len)
}

/// Returns the capabilities of a systemd unit and its drop-ins in the form that setpriv expects.
fn capabilities(files: &[&str]) -> String {
    let of = |file: &&str| {
        let unit = fs::read_to_string(file).unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
        let lower = |name: &str| name.strip_prefix("CAP_").unwrap().to_lowercase();
        line.split_whitespace().map(lower).collect::<Vec<_>>()
    };
    format!(",+{}", files.iter().flat_map(of).collect::<Vec<_>>().join(",+"))
}

#[test]
fn the_unit_is_confined() {
    let output = Command::new("systemd-analyze").args(["security", "--offline=true", "--no-pager", UNIT]).output();
    let Ok(output) = output else {
        eprintln!("skipped: needs systemd-analyze");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let score =
        text.split("Overall exposure level for waterfilld.service: ").nth(1).and_then(|rest| rest.split(' ').next());
    let Some(score) = score.and_then(|score| score.parse::<f64>().ok()) else {
        // Before systemd 250 there is no --offline.
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    assert!(score <= 3.0, "{text}");
}
