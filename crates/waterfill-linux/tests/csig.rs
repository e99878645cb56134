//! Tests of CSIG's tags in the running kernel, with a domain of three routers between two hosts.
//!
//! A frame behind the domain's edge must have no tag, and every frame inside must have one. Without root, they are
//! skipped.

#![cfg(feature = "daemon")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Daemon, Namespaces, WATERFILLD, run};
use serde_json::Value;

const ENDS: &[char] = &['a', '1', '2', '3', 'b'];
/// Links between neighbours in the row, in the order of their network numbers. Links between routers form the domain.
const LINKS: [(char, char); 4] = [('a', '1'), ('1', '2'), ('2', '3'), ('3', 'b')];

/// Script that counts frames at a device by EtherType and direction, and super-packets.
const COUNTER: &str = r#"
import collections, json, socket, sys
device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
device.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
device.bind((sys.argv[1], 3))
device.settimeout(0.1)
print("ready", flush=True)
counts = collections.Counter()
done = False
while True:
    try:
        frame, (_, _, kind, *_) = device.recvfrom(70000)
    except TimeoutError:
        if done:
            break
        import select
        done = bool(select.select([sys.stdin], [], [], 0)[0])
        continue
    name = frame[12:14].hex()
    counts[name] += 1
    if len(frame) > 1600:
        counts["super"] += 1
    inner = {"88b5": 4, "88b6": 8}.get(name, 0)
    if inner:
        counts["tag " + frame[12:12 + inner].hex()] += 1
    kind = frame[12 + inner:14 + inner].hex()
    protocol = {"0800": 14 + 9, "86dd": 14 + 6}.get(kind)
    if protocol and len(frame) > protocol + inner:
        counts[f"{kind} {frame[protocol + inner]}"] += 1
print(json.dumps(counts), flush=True)
"#;

struct Counter {
    child: Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Counter {
    fn start(spaces: &Namespaces, end: char, device: &str) -> Self {
        use std::io::BufRead as _;
        let command = format!("exec {} python3 -c \"$COUNTER\" {device}", spaces.enter(end));
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .env("COUNTER", COUNTER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self { child, lines }
    }

    /// Waits until no more frames arrive. Returns the counts.
    fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let counts = self.lines.next().unwrap().unwrap();
        self.child.wait().unwrap();
        serde_json::from_str(&counts).unwrap()
    }
}

fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or(0)
}

/// Creates the row of namespaces, with addresses and routes of both families.
fn row(tools: &[&str], gso: bool) -> Option<Namespaces> {
    let tools: Vec<&str> = tools.iter().copied().chain(["python3", "iperf3", "ip"]).collect();
    let spaces = Namespaces::new(ENDS, &tools)?;
    let uname = run("uname -r").unwrap();
    let mut version = uname.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
    if (version.next(), version.next()) < (Some(6), Some(6)) {
        eprintln!("skipped: needs tcx (Linux 6.6)");
        return None;
    }
    for end in ENDS {
        let set = "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0";
        spaces.run_in(*end, &format!("sysctl -qw {set}")).unwrap();
    }
    for (i, (one, two)) in LINKS.into_iter().enumerate() {
        let (a, b) = (spaces.name(one), spaces.name(two));
        let temporary = [format!("{}l{one}{two}", spaces.prefix), format!("{}l{two}{one}", spaces.prefix)]
            .map(|name| name.chars().rev().take(15).collect::<String>().chars().rev().collect::<String>());
        let [left, right] = &temporary;
        run(&format!("ip link add {left} netns {a} type veth peer name {right} netns {b}")).unwrap();
        let inside = one.is_ascii_digit() && two.is_ascii_digit();
        // A tag of 8 bytes needs space beside packets of 1500 bytes.
        let (mtu, segments) = (if inside { 1508 } else { 1500 }, if gso { "" } else { "gso_max_segs 1" });
        for (end, from, to, host) in [(one, left, two, 1), (two, right, one, 2)] {
            let ip = format!("ip -n {}", spaces.name(end));
            run(&format!(
                "{ip} link set {from} name t{to} mtu {mtu} {segments}
                {ip} address add 10.97.{i}.{host}/24 dev t{to}
                {ip} address add fd97:{i}::{host}/64 dev t{to} nodad
                {ip} link set t{to} up"
            ))
            .unwrap();
        }
    }
    // Each knows its neighbours; the rest is to the right of a, 1 and 2, and to the left of b and 3.
    for (end, via) in [('a', "0"), ('1', "1"), ('2', "2")] {
        let ip = format!("ip -n {}", spaces.name(end));
        run(&format!(
            "{ip} route add default via 10.97.{via}.2
            {ip} -6 route add default via fd97:{via}::2"
        ))
        .unwrap();
    }
    for (end, via, to) in [('b', "3", ""), ('3', "2", ""), ('2', "1", "0")] {
        let ip = format!("ip -n {}", spaces.name(end));
        let (four, six) = match to {
            "" => ("default".to_owned(), "default".to_owned()),
            to => (format!("10.97.{to}.0/24"), format!("fd97:{to}::/64")),
        };
        run(&format!(
            "{ip} route add {four} via 10.97.{via}.1
            {ip} -6 route add {six} via fd97:{via}::1"
        ))
        .unwrap();
    }
    Some(spaces)
}

/// Starts `waterfilld csig` on all three routers. The outer routers have an edge.
fn domain(spaces: &Namespaces, format: &str, more: &str) -> Vec<Daemon> {
    let devices = [('1', "--inside t2 --edge ta"), ('2', "--inside t1 --inside t3"), ('3', "--inside t2 --edge tb")];
    let start = |(end, devices)| {
        Daemon::start(&spaces.enter(end), &format!("csig {devices} --format {format} --no-pin {more} 2>/dev/null"))
    };
    devices.into_iter().map(start).collect()
}

/// Sends TCP and UDP over both families from `a` to `b` at the same time. Returns the TCP and UDP counters of `b`.
fn traffic(spaces: &Namespaces) -> String {
    let flows = [
        (5301, "10.97.3.2", "-n 2M"),
        (5302, "fd97:3::2", "-n 2M"),
        (5303, "10.97.3.2", "-u -b 20M -n 300K"),
        (5304, "fd97:3::2", "-u -b 20M -n 300K"),
    ];
    let start = |end: char, command: String| {
        Command::new("sh").args(["-c", &format!("exec {} {command}", spaces.enter(end))]).stdout(Stdio::null()).spawn()
    };
    let servers = flows.map(|(port, _, _)| start('b', format!("iperf3 -s -1 -p {port}")).unwrap());
    for tries in 0.. {
        let listening = spaces.run_in('b', "ss -ltn").unwrap();
        if flows.iter().all(|(port, _, _)| listening.contains(&format!(":{port}"))) {
            break;
        }
        assert!(tries < 200, "iperf3 does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let client =
        |(port, address, kind)| start('a', format!("timeout 20 iperf3 -c {address} -p {port} {kind}")).unwrap();
    for mut client in flows.map(client) {
        assert!(client.wait().unwrap().success(), "iperf3 -c");
    }
    for mut server in servers {
        server.wait().unwrap();
    }
    spaces.run_in('b', "cat /proc/net/snmp /proc/net/snmp6").unwrap()
}

/// Returns a counter in the text of /proc/net/snmp.
fn counter(snmp: &str, family: &str, name: &str) -> u64 {
    let lines: Vec<Vec<&str>> =
        snmp.lines().filter(|l| l.starts_with(family)).map(|l| l.split_whitespace().collect()).collect();
    let column = lines[0].iter().position(|column| *column == name).unwrap();
    lines[1][column].parse().unwrap()
}

/// Checks that every frame inside the domain has `tag`, and that no frame behind the domain's edge has a tag. No router
/// has a link, so all tags carry the same code.
fn stripped(format: &str, more: &str, tag: &str, gso: bool) {
    let tpid = &tag[..4];
    let Some(spaces) = row(&[], gso) else { return };
    let mut daemons = domain(&spaces, format, more);
    let behind = [Counter::start(&spaces, 'a', "t1"), Counter::start(&spaces, 'b', "t3")];
    let inside = [Counter::start(&spaces, '2', "t1"), Counter::start(&spaces, '2', "t3")];
    let snmp = traffic(&spaces);
    for counts in behind.map(Counter::end) {
        assert_eq!((count(&counts, "88b5"), count(&counts, "88b6")), (0, 0), "a tag behind the edge: {counts}");
        for kind in ["0800 6", "86dd 6", "0800 17", "86dd 17"] {
            assert!(count(&counts, kind) > 20, "{kind}: {counts}");
        }
        assert_eq!(count(&counts, "super") > 0, gso, "{counts}");
    }
    for counts in inside.map(Counter::end) {
        assert_eq!((count(&counts, "0800"), count(&counts, "86dd")), (0, 0), "a frame without a tag: {counts}");
        for kind in ["0800 6", "86dd 6", "0800 17", "86dd 17"] {
            assert!(count(&counts, kind) > 20, "{kind}: {counts}");
        }
        assert!(count(&counts, tpid) > 100, "{counts}");
        assert_eq!(count(&counts, &format!("tag {tag}")), count(&counts, tpid), "{counts}");
        assert_eq!(count(&counts, "super") > 0, gso, "{counts}");
    }
    assert_eq!(counter(&snmp, "Tcp:", "InCsumErrors"), 0);
    assert_eq!(counter(&snmp, "Udp:", "InCsumErrors"), 0);
    let six = snmp.lines().find_map(|line| line.strip_prefix("Udp6InCsumErrors")).unwrap();
    assert_eq!(six.trim(), "0");
    for (daemon, edge) in daemons.iter_mut().zip([true, false, true]) {
        let status = daemon.status();
        for device in status["csig"].as_array().unwrap() {
            assert_eq!((&device["failed"], &device["too_long"]), (&0.into(), &0.into()), "{device}");
            assert!(edge || device["pushed"].as_u64() > Some(100), "{device}");
        }
    }
}

#[test]
fn every_frame_inside_has_a_wide_tag_and_none_behind_the_edge() {
    // lm 0, d 0; t 7 (the price), s 0, r 0.
    stripped("wide", "", "88b6000070000000", true);
}

#[test]
fn every_frame_inside_has_a_compact_tag_and_none_behind_the_edge_without_super_packets() {
    // t 0 (available bandwidth), r 0, s 31 (none has written), lm 0, d 0.
    stripped("compact", "--signal abw", "88b50f80", false);
}

/// Full packets pass without a tag if a device's MTU has no space for it. The edge removes tags from outside.
#[test]
fn full_packets_without_space_pass_untagged_and_foreign_tags_are_taken_off() {
    let Some(spaces) = row(&[], false) else { return };
    for (end, device) in [('1', "t2"), ('2', "t1")] {
        spaces.run_in(end, &format!("ip link set {device} mtu 1500")).unwrap();
    }
    let mut daemons = domain(&spaces, "wide", "");
    // a tags its frames, which the edge takes off: 1 has no link of a router, so a tag that stays would show.
    let outside =
        Daemon::start(&spaces.enter('a'), "csig --inside t1 --locator 7 --format compact --no-pin 2>/dev/null");
    traffic(&spaces);
    drop(outside);
    let status = daemons[0].status();
    let device = |name: &str| {
        status["csig"].as_array().unwrap().iter().find(|d| d["device"] == name).unwrap_or_else(|| panic!("{status}"))
    };
    assert!(device("t2")["too_long"].as_u64() > Some(500), "{status}");
    assert!(device("t2")["pushed"].as_u64() > Some(10), "{status}");
    assert!(device("ta")["stripped"].as_u64() > Some(100), "{status}");
    assert_eq!(device("t2")["failed"], 0, "{status}");
}

#[test]
fn wrong_options_are_one_sentence() {
    for (arguments, expected) in [
        ("", "csig: no device given; name one with --inside, --edge or --end, or type --off"),
        ("--inside x --edge x", "device x: given twice; give each device once, with --inside, --edge or --end"),
        ("--inside x --format compact --locator 64", "--locator 64: must be 1 to 63 in compact tags"),
        ("--inside x --tpid-wide 0x88b5", "--tpid-wide: must differ from --tpid-compact"),
        ("--inside x --tpid-wide 0x0800", "invalid value '0x0800' for '--tpid-wide <TPID>': must be an EtherType"),
        ("--inside x --from 1gbit --to 1mbit", "--from: must be above zero and less than --to"),
        ("--inside x --from fast", "--from fast: must be a rate"),
    ] {
        let out = Command::new(WATERFILLD).arg("csig").args(arguments.split_whitespace()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(expected) && said.lines().count() == 1, "{arguments}: {said}");
        assert_eq!(out.status.code(), Some(2), "{arguments}");
    }
}
