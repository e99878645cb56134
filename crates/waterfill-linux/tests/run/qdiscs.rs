//! Tests of a shaper that others remove, change or replace while the daemon runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::Namespaces;
use super::{Service, line};

const ROUTER: &str =
    "[metrics]\nlisten = \"127.0.0.1:9477\"\n[[router]]\ndevice = \"rb\"\nrate = \"50 Mbit/s\"\nshape = true\n";
/// Time within which the daemon notices.
const SECOND: Duration = Duration::from_secs(1);

/// Returns kind, handle and rate in byte/s of the root qdisc of `rb`.
fn root(namespaces: &Namespaces) -> (String, String, Option<u64>) {
    let text = namespaces.run_in('r', "tc -j qdisc show dev rb root").unwrap();
    let qdiscs: Vec<Value> = serde_json::from_str(&text).unwrap();
    let of = |key: &str| qdiscs[0][key].as_str().unwrap().to_owned();
    (of("kind"), of("handle"), qdiscs[0]["options"]["rate"].as_u64())
}

fn shaper() -> (String, String, Option<u64>) {
    ("tbf".into(), "5746:".into(), Some(6_250_000))
}

#[track_caller]
fn within_a_second(what: &str, service: &Service, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < SECOND, "{what}: {}", service.log());
        sleep(Duration::from_millis(10));
    }
}

/// Returns the line of the metric that tells whether the shaper is there.
fn metric(namespaces: &Namespaces) -> String {
    let get = || {
        let mut stream = TcpStream::connect("127.0.0.1:9477").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.lines().find(|line| line.starts_with("waterfill_link_shaper_present{")).unwrap().to_owned()
    };
    namespaces.inside('r', get).join().unwrap()
}

#[test]
fn a_shaper_that_others_touch_is_restored_or_reported_within_a_second() {
    let Some(namespaces) = line(&[]) else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    service.write(ROUTER);
    service.start("");
    assert_eq!(root(&namespaces), shaper());
    assert_eq!(service.link("rb", "maxnet").unwrap()["shaper"], "present");

    namespaces.run_in('r', "tc qdisc del dev rb root").unwrap();
    within_a_second("restored", &service, || root(&namespaces) == shaper());
    within_a_second("logged", &service, || service.log().contains("its shaper was removed; installed it again"));
    namespaces.run_in('r', "tc qdisc change dev rb root handle 5746: tbf rate 1gbit burst 1m limit 10m").unwrap();
    within_a_second("changed back", &service, || root(&namespaces) == shaper());

    // Somebody chose this one, so it stays, and is reported.
    namespaces.run_in('r', "tc qdisc replace dev rb root handle 7: pfifo limit 50").unwrap();
    let reported = "device rb: pfifo 7: replaced its shaper";
    within_a_second("reported", &service, || service.log().contains(reported));
    assert_eq!(root(&namespaces).0, "pfifo");
    assert_eq!(service.link("rb", "maxnet").unwrap()["shaper"], "replaced by pfifo 7:");
    assert!(metric(&namespaces).ends_with(" 0"), "{}", metric(&namespaces));
    let (code, said) = service.reload();
    assert!(code == 2 && said.contains("remove it with `tc qdisc del dev rb root`"), "{code}: {said}");
    assert_eq!(service.log().matches(reported).count(), 1, "once: {}", service.log());
    namespaces.run_in('r', "tc qdisc del dev rb root").unwrap();
    within_a_second("it returns", &service, || root(&namespaces) == shaper());
    within_a_second("the metric follows", &service, || metric(&namespaces).ends_with(" 1"));
    assert_eq!(service.reload(), (0, "nothing changed".into()));
    service.stop();
}

#[test]
fn a_reload_restores_what_changed_while_no_message_came() {
    let Some(namespaces) = line(&[]) else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    service.write(ROUTER);
    service.start("");
    // A stopped process reads the message and the request at the same time.
    service.signal("STOP");
    namespaces.run_in('r', "tc qdisc del dev rb root").unwrap();
    service.signal("CONT");
    let (code, said) = service.reload();
    assert!(
        code == 0 && ["nothing changed", "1 restored (shaper of router maxnet on rb)"].contains(&said.as_str()),
        "{said}"
    );
    assert_eq!(root(&namespaces), shaper());
    service.stop();
}
