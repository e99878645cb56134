//! Tests of `waterfilld events` with real connections.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::spawn;
use std::time::Duration;

use serde_json::Value;

use super::probation::{Late, REASON};
use super::upgrade::Pinned;
use super::{Network, SERVER, WATERFILLD, number, run};

/// A process that follows events, which ends when it is dropped.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns the events that the command prints now, as documents.
fn events(pinned: &Pinned) -> Vec<Value> {
    let text = run(&format!("{} {WATERFILLD} events --json {}", pinned.inside, pinned.option)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_fallback_and_a_return_are_listed_with_their_evidence() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    let daemon = pinned.daemon(&network, "");
    assert_eq!(events(&pinned), Vec::<Value>::new());
    let script = format!("exec {} {WATERFILLD} events --json --follow {}", pinned.inside, pinned.option);
    let mut follower = Follower(Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    let (sender, received) = channel();
    spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));

    let mut late = Late::start(network, daemon, 60, 8);
    let flow = late.wait(|flow| flow["mode"] == "priced");
    let next = |_| received.recv_timeout(Duration::from_secs(5)).expect("an event in time");
    let followed: Vec<Value> = (0..2).map(next).map(|line| serde_json::from_str(&line).unwrap()).collect();
    drop(follower);

    let listed = events(&pinned);
    // The other end sends no data, so it has no events. Each reader converts the kernel's clock to that of the day.
    let same =
        |of: &[Value]| of.iter().map(|event| (event["number"].clone(), event["evidence"].clone())).collect::<Vec<_>>();
    assert_eq!(same(&listed), same(&followed));
    let [fallback, back] = &listed[..] else { panic!("two events: {listed:?}") };
    for event in [fallback, back] {
        let of = |key: &str| event[key].as_str().unwrap();
        assert_eq!((of("local"), of("remote")), (flow["local"].as_str().unwrap(), flow["remote"].as_str().unwrap()));
        assert_eq!((of("law"), of("reason"), number(event, "schema_version")), ("maxnet", REASON, 1.0));
        assert!(number(event, "netns_cookie") > 0.0 && number(event, "rtt_us") > 0.0, "{event}");
    }
    assert_eq!((&fallback["event"], &back["event"]), (&"fallback".into(), &"return".into()));
    assert_eq!((number(fallback, "number"), number(back, "number")), (1.0, 2.0));
    let seconds = number(back, "time_s") - number(fallback, "time_s");
    assert!((0.9..4.0).contains(&seconds), "the connection asks again after a second: {seconds} s");
    assert!(number(&fallback["evidence"], "rounds") >= 3.0, "{fallback}");
    assert!(number(&fallback["evidence"], "echoes") > 0.0 && fallback["rate_bps"].is_null(), "{fallback}");
    assert_eq!((number(&back["evidence"], "answers"), number(back, "rate_bps") > 1e6), (3.0, true), "{back}");
    assert!(number(&back["evidence"], "requests") >= 3.0 && number(&back["evidence"], "delivered") > 10.0, "{back}");
    late.end();
}

#[test]
fn fallbacks_of_handshakes_have_no_evidence_and_outlive_the_daemon() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    let mut daemon = pinned.daemon(&network, "");
    network.spaces.use_law();
    network.transfer(&mut daemon, SERVER[1], 0, false);
    drop(daemon);
    let listed = events(&pinned);
    let of_client = |event: &&Value| event["remote"].as_str().unwrap().ends_with("]:7001");
    let event = listed.iter().find(of_client).unwrap_or_else(|| panic!("no event: {listed:?}"));
    // The first SYN may wait for the neighbour's address, and is sent again.
    let reasons = ["the peer did not answer the option", "a SYN with the option got no answer"];
    assert!(reasons.contains(&event["reason"].as_str().unwrap()), "{event}");
    assert_eq!((&event["evidence"], &event["rate_bps"]), (&serde_json::json!({}), &Value::Null), "{event}");
    let text = run(&format!("{} {WATERFILLD} events {}", pinned.inside, pinned.option)).unwrap();
    assert!(text.starts_with("time (UTC)") && (text.contains("  no peer") || text.contains("  SYN lost")), "{text}");
    pinned.unload();
    let gone = run(&format!("{} {WATERFILLD} events {}", pinned.inside, pinned.option)).unwrap_err();
    assert!(gone.contains("no host has events here"), "{gone}");
}
