//! Tests of `[[csig]]` in the daemon's file. Tags follow changes of the file, the router and devices, and outlive the
//! daemon.

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{Daemon, Namespaces, WATERFILLD, run};
use super::{Service, UNIT, capabilities, line};

const ROUTER: &str = "[[router]]\ndevice = \"rb\"\nrate = \"50 Mbit/s\"\n";
const INSIDE: &str = "[[csig]]\ndevice = \"rb\"\nrole = \"inside\"\n";
const LATE: &str = "[[csig]]\ndevice = \"late0\"\nrole = \"inside\"\n";

/// Creates the line, and a neighbour `b` of the router that reads tags. Frames of `rb` have no space for a tag next to
/// full packets.
fn domain() -> Option<(Namespaces, Daemon)> {
    if !fs::read_to_string("/proc/kallsyms").is_ok_and(|symbols| symbols.contains(" tcx_")) {
        eprintln!("skipped: needs tcx (Linux 6.6)");
        return None;
    }
    let namespaces = line(&["setpriv"])?;
    namespaces.run_in('b', "ip link set wb mtu 1508").unwrap();
    let end = Daemon::start(&namespaces.enter('b'), "csig --end wb --no-pin 2>/dev/null");
    Some((namespaces, end))
}

/// Number of datagrams that [`under_traffic`] sends. [`PATIENCE`] is the waiting time for late datagrams.
const DATAGRAMS: u32 = 100;
const FRAMES: u64 = DATAGRAMS as u64;
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends datagrams of `bytes` bytes from `a` through the router and back while `act` runs. No datagram may be lost.
#[track_caller]
fn under_traffic<T>(namespaces: &Namespaces, bytes: usize, act: impl FnOnce() -> T) -> T {
    let (done, there, back) = exchange(namespaces, bytes, true, act);
    assert_eq!((there, back), (DATAGRAMS, DATAGRAMS), "datagrams were lost");
    done
}

/// Sends datagrams without CSIG at the router, and checks that the router drops the tagged answers of `b`.
#[track_caller]
fn one_way(namespaces: &Namespaces) {
    let ((), there, back) = exchange(namespaces, 56, false, || ());
    assert_eq!((there, back), (DATAGRAMS, 0), "datagrams there, and none back");
}

/// Returns the result of `act`, and the numbers of datagrams that arrived at `b` and back at `a`. With `expected`, the
/// function waits for late answers.
fn exchange<T>(namespaces: &Namespaces, bytes: usize, expected: bool, act: impl FnOnce() -> T) -> (T, u32, u32) {
    let end = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = channel();
    let ended = Arc::clone(&end);
    let echo = namespaces.inside('b', move || {
        let socket = UdpSocket::bind("10.0.2.2:7007").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        ready.send(()).unwrap();
        let (mut buffer, mut there) = ([0; 2048], BTreeSet::new());
        while !ended.load(Ordering::Relaxed) {
            if let Ok((n, from)) = socket.recv_from(&mut buffer) {
                there.insert(u32::from_ne_bytes(buffer[..4].try_into().unwrap()));
                assert_eq!(n, bytes);
                socket.send_to(&buffer[..4], from).unwrap(); // a tagged frame has space
            }
        }
        there.len() as u32
    });
    is_ready.recv().unwrap();
    let sender = namespaces.inside('a', move || {
        let socket = UdpSocket::bind("10.0.1.2:0").unwrap();
        socket.connect("10.0.2.2:7007").unwrap();
        let (mut back, mut buffer) = (BTreeSet::new(), vec![0; bytes]);
        let mut take = |until: Instant, all: usize| {
            while back.len() < all && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
                socket.set_read_timeout(Some(left)).unwrap();
                if socket.recv(&mut buffer).is_ok() {
                    back.insert(u32::from_ne_bytes(buffer[..4].try_into().unwrap()));
                }
            }
            back.len()
        };
        for n in 0..DATAGRAMS {
            let mut datagram = vec![0; bytes];
            datagram[..4].copy_from_slice(&n.to_ne_bytes());
            socket.send(&datagram).unwrap();
            take(Instant::now() + Duration::from_millis(2), usize::MAX);
        }
        let late = if expected { PATIENCE } else { Duration::from_millis(100) };
        take(Instant::now() + late, DATAGRAMS as usize) as u32
    });
    let done = act();
    let back = sender.join().unwrap();
    end.store(true, Ordering::Relaxed);
    (done, echo.join().unwrap(), back)
}

/// Returns the state of a device's tags, read from the pins.
fn tags(service: &Service, device: &str) -> Value {
    let status = service.status();
    let found = status["csig"].as_array().and_then(|all| all.iter().find(|tags| tags["device"] == device));
    found.cloned().unwrap_or_default()
}

fn count(tags: &Value, name: &str) -> u64 {
    tags[name].as_u64().unwrap_or_else(|| panic!("{name}: {tags}"))
}

/// Returns the number of frames with a tag that `b` has received.
fn received(end: &mut Daemon) -> u64 {
    count(&end.status()["csig"][0], "popped")
}

#[test]
fn tags_follow_file_router_and_devices_without_a_lost_packet() {
    let Some((namespaces, mut end)) = domain() else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    service.write(&[ROUTER, INSIDE, LATE].concat());
    service.start(&format!("setpriv --bounding-set=-all{} --inh-caps=-all --no-new-privs", capabilities(&[UNIT])));
    assert!(service.ask(b"status\n").contains("1 link, 2 devices of CSIG; no device yet: late0"), "{}", service.log());

    under_traffic(&namespaces, 56, || ());
    let mut before = tags(&service, "rb");
    assert_eq!((&before["role"], &before["format"]), (&"inside".into(), &"wide".into()));
    assert!(count(&before, "pushed") >= FRAMES && count(&before, "compared") >= FRAMES, "{before}");
    assert!(count(&before, "popped") >= FRAMES && received(&mut end) >= FRAMES, "{before}");
    // An idle link of 50 Mbit/s: T ln(x_max / C).
    let price = 0.4 * (1e15_f64 / 50e6).ln();
    let value = |tags: &Value| tags["value"].as_f64();
    assert!(value(&before).is_some_and(|value| (value - price).abs() < 0.1), "{before}");

    let mut reload = |text: &str, expected: &str| {
        service.write(text);
        let answer = under_traffic(&namespaces, 56, || service.reload());
        assert_eq!(answer, (0, expected.into()), "{}", service.log());
        let now = tags(&service, "rb");
        assert!(count(&now, "popped") > count(&before, "popped"), "the counters continue: {now} after {before}");
        before.clone_from(&now);
        now
    };
    // Other tags; no tags; and again.
    let compact = format!("{INSIDE}format = \"compact\"\nlocator = 5\n");
    let now = reload(&[ROUTER, &compact, LATE].concat(), "1 changed (csig on rb)");
    assert_eq!((&now["format"], value(&now).is_some()), (&"compact".into(), true));
    let arrived = received(&mut end);
    let edge = INSIDE.replace("inside", "edge");
    let now = reload(&[ROUTER, &edge, LATE].concat(), "1 changed (csig on rb)");
    assert!(count(&now, "stripped") > 0 && value(&now).is_none(), "{now}");
    let last = received(&mut end);
    under_traffic(&namespaces, 56, || ());
    assert!(last > arrived && received(&mut end) == last, "no tag leaves an edge");
    // The router goes from this device and stays at another, then it goes as a whole, with its price, and comes again.
    reload(&[ROUTER, INSIDE, LATE].concat(), "1 changed (csig on rb)");
    let other = ROUTER.replace("rb", "ra");
    reload(&[ROUTER, &other, INSIDE, LATE].concat(), "1 added (router maxnet on ra)");
    let now = reload(&[&other, INSIDE, LATE].concat(), "1 removed (router maxnet on rb)");
    assert_eq!(value(&now), None, "the price of a router that went: {now}");
    let now = reload(&[INSIDE, LATE].concat(), "1 removed (router maxnet on ra)");
    let (pushed, compared) = (count(&now, "pushed"), count(&now, "compared"));
    assert_eq!(value(&now), None, "a price of no router: {now}");
    under_traffic(&namespaces, 56, || ());
    let now = tags(&service, "rb");
    assert!(count(&now, "pushed") >= pushed + FRAMES && count(&now, "compared") == compared, "{now}");
    let now = reload(&[ROUTER, INSIDE, LATE].concat(), "1 added (router maxnet on rb)");
    assert!(value(&now).is_some_and(|value| (value - price).abs() < 0.1), "{now}");

    // A wrong file changes nothing.
    let good = fs::read_to_string(service.file()).unwrap();
    for (from, to, said) in [
        ("\"inside\"", "\"outside\"", "csig.role \"outside\": unknown value; known: inside, edge, end"),
        (
            "role = \"inside\"",
            "role = \"inside\"\nlocator = 99999",
            "csig.locator 99999: must be a whole number from 1",
        ),
    ] {
        fs::write(service.file(), good.replacen(from, to, 1)).unwrap();
        let (code, text) = service.reload();
        assert!(code == 2 && text.contains(said) && text.contains("waterfilld.toml:"), "{text}");
    }
    fs::write(service.file(), &good).unwrap();
    assert_eq!(tags(&service, "rb")["role"], "inside");

    // A device that comes, goes and comes again, and an MTU that changes.
    let add = "ip link add late0 type veth peer name late1";
    for _ in 0..2 {
        namespaces.run_in('r', add).unwrap();
        service.wait("late0 has tags", |service| tags(service, "late0")["role"] == "inside");
        namespaces.run_in('r', "ip link del late0").unwrap();
        service.wait("late0 is missed", |service| service.ask(b"status\n").contains("no device yet: late0"));
        assert_eq!(tags(&service, "late0"), Value::Null);
    }
    under_traffic(&namespaces, 1472, || ());
    let full = tags(&service, "rb");
    assert!(count(&full, "too_long") >= FRAMES, "{full}");
    namespaces.run_in('r', "ip link set rb mtu 1508").unwrap();
    service.wait("full packets have tags", |service| {
        let pushed = count(&tags(service, "rb"), "pushed");
        under_traffic(&namespaces, 1472, || ());
        count(&tags(service, "rb"), "pushed") >= pushed + FRAMES
    });

    // A second process cannot push tags as well.
    let twice = namespaces.run_in('r', &format!("{WATERFILLD} csig --inside rb --no-pin")).unwrap_err();
    assert!(twice.contains("device rb is in use by another waterfilld csig; stop it first"), "{twice}");
    service.write("");
    assert_eq!(service.reload(), (0, "3 removed (csig on late0, csig on rb, router maxnet on rb)".into()));
    let last = received(&mut end);
    one_way(&namespaces);
    assert_eq!(received(&mut end), last, "no tags any more");
    assert!(!service.pins.exists(), "nothing is pinned");
    service.stop();
}

/// A datagram with SCONE's first version but no following packet, which the element counts as malformed.
const SCONE: [u8; 7] = [0xc0, 0x6f, 0x7d, 0xc0, 0xfd, 0, 0];

#[test]
fn a_killed_daemons_tags_and_advice_are_taken_over_or_unloaded() {
    let Some((namespaces, mut end)) = domain() else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    let both = format!("{ROUTER}scone = true\n{INSIDE}");
    let kill = |service: &mut Service| {
        let mut child = service.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let advised = |service: &Service| {
        let before = count(&service.link("rb", "maxnet").unwrap()["scone"], "malformed");
        let send = || {
            let socket = UdpSocket::bind("10.0.1.2:0").unwrap();
            (0..5).for_each(|_| assert_eq!(socket.send_to(&SCONE, "10.0.2.2:4433").unwrap(), SCONE.len()));
        };
        namespaces.inside('a', send).join().unwrap();
        count(&service.link("rb", "maxnet").unwrap()["scone"], "malformed") - before
    };
    service.write(&both);
    service.start("");
    under_traffic(&namespaces, 56, || ());
    assert_eq!(advised(&service), 5, "SCONE finds UDP in front of the tag");

    // Both go on without the daemon, and with the next one, which is behind SCONE again.
    kill(&mut service);
    let before = count(&tags(&service, "rb"), "pushed");
    under_traffic(&namespaces, 56, || ());
    let dead = count(&tags(&service, "rb"), "pushed");
    assert!(dead >= before + FRAMES && advised(&service) == 5, "{before} {dead}");
    under_traffic(&namespaces, 56, || service.start(""));
    let now = tags(&service, "rb");
    assert!(count(&now, "pushed") >= dead + FRAMES, "the counters continue: {now}");
    assert!(now["value"].as_f64().is_some_and(|price| price > 5.0), "{now}");
    assert_eq!(advised(&service), 5, "SCONE still finds UDP");
    // SCONE that comes later is behind the tags at first.
    service.write(&both.replace("scone = true\n", ""));
    assert_eq!(service.reload(), (0, "1 changed (router maxnet on rb)".into()));
    service.write(&both);
    assert_eq!(service.reload(), (0, "1 changed (router maxnet on rb)".into()));
    assert_eq!(advised(&service), 5, "tags are pushed last");

    // A start whose file names neither takes both off.
    kill(&mut service);
    service.write("[[router]]\ndevice = \"ra\"\nrate = \"1 Gbit/s\"\n");
    service.start("");
    let arrived = received(&mut end); // not before: until then the kernel's own packets get tags
    one_way(&namespaces);
    assert_eq!(received(&mut end), arrived, "no tags any more");
    let left = |service: &Service| -> Vec<String> {
        let folders = ["", "csig", "router"].map(|name| service.pins.join(name));
        let names = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    assert!(!left(&service).iter().any(|name| name == "csig" || name.starts_with("scone-")), "{:?}", left(&service));

    // And unload removes what a killed daemon left.
    service.write(&both);
    assert_eq!(service.reload().0, 0);
    under_traffic(&namespaces, 56, || ());
    assert!(received(&mut end) >= arrived + FRAMES);
    for name in ["csig", "devices", "counters", "saved", "next", "scone"] {
        assert!(left(&service).iter().any(|found| found == name), "{name}: {:?}", left(&service));
    }
    let unload = format!("{WATERFILLD} unload --pins {}", service.pins.display());
    let refused = namespaces.run_in('r', &unload).unwrap_err();
    assert!(refused.contains("in use by another waterfilld csig (process "), "{refused}");
    kill(&mut service);
    namespaces.run_in('r', &unload).unwrap();
    assert_eq!(left(&service), [] as [String; 0]);
    let arrived = received(&mut end);
    one_way(&namespaces);
    assert_eq!(received(&mut end), arrived, "no tags any more");
    assert_eq!(
        run(&format!("{WATERFILLD} status --json --pins {}", service.pins.display())).unwrap().trim(),
        r#"{"roles":[],"links":[],"flows":[]}"#
    );
}
