//! Connections of two endpoints over a path that delays datagrams and loses some.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use waterfill_endpoint::{Datagram, Endpoint, Side, Time};
use waterfill_quinn::endpoint::QuinnEndpoint;

const DELAY_NS: u64 = 10_000_000;
/// Time that a byte takes on the path, 80 Mbit/s.
const BYTE_NS: u64 = 100;

/// A datagram as it was sent.
type Sent = (u64, Side, Datagram);

/// Transfers bytes and returns all datagrams sent, and the bytes that the server's application has read. One of `lose`
/// datagrams of the client is lost, after the handshake.
fn transfer(bytes: u64, lose: u64, seed: u64, options: &[(&str, &str)]) -> (Vec<Sent>, u64) {
    let mut sides = [Side::Client, Side::Server].map(|side| {
        let mut endpoint = QuinnEndpoint::new(side, seed + side as u64);
        for (key, value) in options {
            endpoint.set(key, value).expect("an option");
        }
        endpoint.start(Time(0));
        endpoint
    });
    sides[0].write(Time(0), bytes);
    // Arrivals by time and number, with the side that they reach.
    let mut path: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::new();
    let mut sent: Vec<Sent> = Vec::new();
    let (mut now, mut free, mut read) = (0, [0; 2], 0);
    while read < bytes && now < 60_000_000_000 {
        for side in 0..2 {
            while let Some(datagram) = sides[side].poll_transmit(Time(now)) {
                let is_lost = side == 0 && lose > 0 && sent.len() > 20 && sent.len() as u64 % lose == 0;
                free[side] = now.max(free[side]) + datagram.payload.len() as u64 * BYTE_NS;
                if !is_lost {
                    path.push(Reverse((free[side] + DELAY_NS, sent.len(), 1 - side)));
                }
                sent.push((now, if side == 0 { Side::Client } else { Side::Server }, datagram));
            }
        }
        let timers = sides.iter().filter_map(Endpoint::next_timer).map(Time::as_nanos).min();
        let arrival = path.peek().map(|Reverse((at, ..))| *at);
        now = match (arrival, timers) {
            (Some(at), timer) if timer.is_none_or(|timer| at <= timer) => at,
            (_, Some(timer)) => timer.max(now + 1),
            (Some(at), None) => at,
            (None, None) => break,
        };
        while path.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, number, side))) = path.pop() else { break };
            sides[side].handle(Time(now), &sent[number].2);
            read += sides[side].read(Time(now));
        }
    }
    (sent, read)
}

const CONTROLLERS: [&str; 5] = ["cubic", "newreno", "bbr", "waterfill-cubic", "waterfill-reno"];

#[test]
fn every_controller_transfers_all_bytes_and_repeats() {
    for controller in CONTROLLERS {
        for crypto in ["tls", "none"] {
            let options = [("controller", controller), ("crypto", crypto)];
            let (sent, read) = transfer(3_000_000, 97, 7, &options);
            assert_eq!(read, 3_000_000, "{controller} {crypto}");
            assert_eq!(transfer(3_000_000, 97, 7, &options).0, sent, "{controller} {crypto}");
        }
    }
}

#[test]
fn the_seed_changes_the_bytes() {
    let sent = |seed| transfer(20_000, 0, seed, &[]).0;
    assert_ne!(sent(1), sent(2));
}

/// The same data takes as many full datagrams, so that headers and tags have the sizes of TLS.
#[test]
fn datagrams_without_encryption_have_the_sizes_of_tls() {
    let full = |crypto| {
        let sent = transfer(3_000_000, 0, 3, &[("crypto", crypto), ("mtu", "1472")]).0;
        sent.iter().filter(|(_, side, datagram)| *side == Side::Client && datagram.payload.len() == 1472).count()
    };
    let (tls, none) = (full("tls"), full("none"));
    assert!(tls > 2000 && tls.abs_diff(none) <= 2, "{tls} {none}");
}

#[test]
fn without_encryption_the_application_bytes_are_in_the_datagrams() {
    let zeros = |crypto| {
        let sent = transfer(100_000, 0, 3, &[("crypto", crypto)]).0;
        let count = |datagram: &Datagram| datagram.payload.iter().filter(|byte| **byte == 0).count();
        sent.iter().map(|(_, _, datagram)| count(datagram)).sum::<usize>()
    };
    assert!(zeros("none") > 100_000);
    assert!(zeros("tls") < 10_000, "padding is encrypted as well");
}

#[test]
fn wrong_options_are_one_sentence() {
    let mut endpoint = QuinnEndpoint::new(Side::Client, 1);
    let error = |endpoint: &mut QuinnEndpoint, key, value| endpoint.set(key, value).expect_err("wrong");
    assert_eq!(
        error(&mut endpoint, "controller", "vegas"),
        "unknown controller \"vegas\"; use cubic, newreno, bbr, waterfill-cubic, waterfill-reno"
    );
    assert_eq!(error(&mut endpoint, "mtu", "100"), "mtu must be a whole number from 1200 to 8972, got \"100\"");
    assert!(error(&mut endpoint, "speed", "1").starts_with("unknown option \"speed\"; use controller, "));
}
