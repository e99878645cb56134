//! Tests of connections that use the option, and of connections that do not.

use std::fs::File;
use std::os::fd::AsRawFd as _;

use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder};

use super::upgrade::Pinned;
use super::{BYTES, End, Network, SERVER, assert_priced, number};

/// Transfers data without reading the daemon's state. Calls `meanwhile` before the connection closes.
fn transfer(network: &Network, address: &str, peer_in_cgroup: bool, meanwhile: impl FnOnce()) {
    let mut server = End::start(network, 'b', "serve", 0, peer_in_cgroup);
    assert_eq!(server.next(), "listening");
    let mut client = End::start(network, 'a', address, BYTES, true);
    let (sent, _) = (client.next(), server.next());
    meanwhile();
    client.go_on();
    server.go_on();
    client.next();
    assert_eq!(server.next(), sent.replace("sent", "received"));
}

#[test]
fn connections_without_the_option_and_the_law_have_no_state() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    let daemon = pinned.daemon(&network, "");
    // CUBIC at both ends, and a peer without the programs.
    transfer(&network, SERVER[0], false, || assert_eq!(pinned.records_bytes(), 0));
    // The receiving end of a connection has state, as it answers.
    transfer(&network, SERVER[0], true, || assert!(pinned.records_bytes() > 0));
    drop(daemon);
}

#[test]
fn only_the_chosen_peers_are_asked() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    let mut daemon = pinned.daemon(&network, "--peers 10.99.2.2 --peers fd99::/16");
    network.spaces.use_law();
    // SYNs with the option are dropped, which would be counted.
    network.path("drop_syn", &['b']);
    transfer(&network, SERVER[0], true, || assert_eq!(pinned.records_bytes(), 0));
    let counters = &daemon.status()["counters"];
    assert!(number(counters, "without_state") >= 1.0, "{counters}");
    assert_eq!(number(&counters["fallbacks"], "a SYN with the option got no answer"), 0.0, "{counters}");
    network.path("price", &['a', 'b']);
    let (flow, _) = network.transfer(&mut daemon, SERVER[1], 0, true);
    assert_priced(&flow);
    drop(daemon);
    // The next daemon has other peers.
    let mut daemon = pinned.daemon(&network, "--peers 10.99.0.0/16");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_priced(&flow);
}

#[test]
fn another_program_keeps_its_callbacks() {
    let Some(network) = Network::new() else { return };
    let other = ObjectBuilder::default().open_file(env!("SHARED_OBJECT")).unwrap().load().unwrap();
    let cgroup = File::open(&network.spaces.cgroup).unwrap();
    let program = other.progs_mut().next().unwrap();
    let link = program.attach_cgroup(cgroup.as_raw_fd()).unwrap();
    let daemon = network.daemon("--no-pin");
    // The peer does not answer the option, so the daemon's programs have nothing to do.
    transfer(&network, SERVER[0], false, || ());
    let map = other.maps().find(|map| map.name().to_string_lossy().ends_with(".bss")).unwrap();
    let packets = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    let packets = u64::from_ne_bytes(packets[..8].try_into().unwrap());
    assert!(packets > 20, "the other program has seen {packets} packets");
    drop((daemon, link));
}
